//! The house of the API tests: one PostgreSQL per test program, one database and one server per test.
//!
//! The cluster starts with the first test that asks and ends with the program. A template database is migrated
//! once; every test gets a copy of it, and a server built by [`ferrobase::app`] on a free port.

#![allow(dead_code, clippy::expect_used, clippy::unwrap_used)]

pub mod outside;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrobase::app::{self, App, Settings};
use ferrobase::config::Source;
use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::http::listen::Listener;
use ferrobase::migrate::{self, GivenUrls, PlatformUrls};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_postgres::NoTls;

pub const PASSWORD: &str = "correct-Horse-7";

/// The cluster of this test program.
struct Cluster {
    /// Owner's URL of the database `postgres`.
    url: String,
    /// Logins for the template, to be pointed at each copy.
    urls: PlatformUrls,
    folder: PathBuf,
    /// Names of databases whose test has ended.
    done: UnboundedSender<String>,
}

static CLUSTER: OnceLock<Cluster> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(0);

const SECRET: &str = ferrobase::config::DEVELOPMENT_JWT_SECRET;
const TEMPLATE: &str = "template_app";

fn cluster() -> &'static Cluster {
    CLUSTER.get_or_init(|| {
        // The cluster outlives the runtime of the test that happened to ask first.
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("runtime");
            runtime.block_on(async {
                let (done, mut databases) = unbounded_channel::<String>();
                let (cluster, _postgres) = start_cluster(done).await;
                let owner = admin(&cluster.url).await;
                send.send(cluster).expect("the first test waits");
                while let Some(name) = databases.recv().await {
                    // A test may have dropped it itself.
                    let _ = owner.batch_execute(&format!("drop database {name} with (force)")).await;
                }
            });
        });
        receive.recv().expect("the cluster starts")
    })
}

async fn start_cluster(done: UnboundedSender<String>) -> (Cluster, EmbeddedPostgres) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = std::env::temp_dir().join(format!("ferrobase-tests-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary folder");
    let settings = [
        ("fsync", "off"),
        ("synchronous_commit", "off"),
        ("full_page_writes", "off"),
        ("autovacuum", "off"),
        ("max_connections", "300"),
        ("shared_buffers", "64MB"),
        // Every test copies a database; without these the copies' log alone would fill a gigabyte.
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "64MB"),
    ];
    let postgres = EmbeddedPostgres::start(&EmbeddedOptions {
        data_root: folder.clone(),
        port: 0,
        bin_dir: None,
        settings: settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
    })
    .await
    .expect("PostgreSQL starts (tools/install.sh postgres installs it)");
    end_with_this_program(&postgres);

    admin(&postgres.url).await.batch_execute(&format!("create database {TEMPLATE}")).await.expect("template");
    let owner = with_database(&postgres.url, TEMPLATE);
    let urls = migrate::prepare(&owner, SECRET, &GivenUrls::default()).await.expect("platform");
    ferrobase::auth::migrate(&urls.auth_url).await.expect("auth schema");
    migrate::dir(&owner, &migrate::Source::App).await.expect("application migrations");
    (Cluster { url: postgres.url.clone(), urls, folder, done }, postgres)
}

/// A test program may end in any way; this stops PostgreSQL and removes its folder once it has.
#[allow(clippy::zombie_processes, reason = "the shell waits for our end, not we for its")]
fn end_with_this_program(postgres: &EmbeddedPostgres) {
    let own = std::process::id();
    let folder = std::env::temp_dir().join(format!("ferrobase-tests-{own}"));
    let script = format!(
        "while kill -0 {own} 2>/dev/null; do sleep 0.3; done; \
         kill -INT $(head -n 1 '{cluster}/postmaster.pid'); \
         n=0; while [ -e '{cluster}/postmaster.pid' ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; rm -rf '{folder}'",
        cluster = postgres.cluster.display(),
        folder = folder.display(),
    );
    Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell to clean up");
}

async fn admin(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connection");
    tokio::spawn(connection);
    client
}

fn with_database(url: &str, database: &str) -> String {
    let mut parsed = url::Url::parse(url).expect("url");
    parsed.set_path(&format!("/{database}"));
    parsed.into()
}

/// A server on a database of its own.
pub struct TestApp {
    /// `http://127.0.0.1:<port>`.
    pub base: String,
    pub anon_key: String,
    pub service_key: String,
    /// The owner's connection, past every policy.
    pub owner: tokio_postgres::Client,
    pub owner_url: String,
    /// Logs in as `supabase_auth_admin`.
    pub auth_url: String,
    /// The authentication API's state, for what it counts.
    pub auth: std::sync::Arc<ferrobase::auth::Auth>,
    /// The storage API's state, for its hourly housekeeping.
    pub storage: ferrobase::storage::Storage,
    http: reqwest::Client,
    stop: actix_web::dev::ServerHandle,
    /// The database goes with this server: it is the first on it.
    owns_database: bool,
}

impl TestApp {
    /// The full server with development settings.
    pub async fn start() -> Self {
        Self::with_settings(&[]).await
    }

    /// The full server with further settings.
    pub async fn with_settings(settings: &[(&str, &str)]) -> Self {
        let cluster = cluster();
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let create = format!("create database {name} template {TEMPLATE}");
        // PostgreSQL copies one template at a time, and only while nobody is connected to it.
        for attempt in 0.. {
            match admin(&cluster.url).await.batch_execute(&create).await {
                Ok(()) => break,
                Err(error) if attempt > 100 => panic!("cannot copy the template: {error:?}"),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
        let mut app = Self::serve(&name, settings).await;
        app.owns_database = true;
        app
    }

    /// Another server beside this one, on the same database.
    pub async fn another(&self, settings: &[(&str, &str)]) -> Self {
        Self::serve(self.database(), settings).await
    }

    async fn serve(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::try_serve(name, settings).await.expect("the server builds")
    }

    /// Another server beside this one, or why it does not start.
    pub async fn try_another(&self, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::try_serve(self.database(), settings).await
    }

    async fn try_serve(name: &str, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let cluster = cluster();
        let urls = PlatformUrls {
            rest_url: with_database(&cluster.urls.rest_url, name),
            auth_url: with_database(&cluster.urls.auth_url, name),
            service_url: with_database(&cluster.urls.service_url, name),
        };
        let owner_url = with_database(&cluster.url, name);
        let data = cluster.folder.join(name);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("free port");
        let address = listener.local_addr().expect("address");

        let mut source = Source::from_pairs([("FERROBASE_DEV", "true")]);
        source.set("FERROBASE_LISTEN", address.to_string());
        source.set("FERROBASE_DATA_DIR", data.display().to_string());
        for (name, value) in settings {
            source.set(name, *value);
        }
        let settings = Settings::read(&mut source)?;
        let app = App::build(&source, &settings, &urls).await?;
        let (auth, storage) = (std::sync::Arc::clone(&app.auth), app.storage.clone());
        let (anon_key, service_key) = (app.keys.anon().to_owned(), app.keys.service_role().to_owned());
        let server = app::serve(app, vec![Listener::Tcp(listener)], 1).expect("listening");
        let stop = server.handle();
        actix_web::rt::spawn(server);
        Ok(Self {
            base: format!("http://{address}"),
            anon_key,
            service_key,
            owner: admin(&owner_url).await,
            owner_url,
            auth_url: urls.auth_url.clone(),
            auth,
            storage,
            http: reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("client"),
            stop,
            owns_database: false,
        })
    }

    /// Somebody without an account.
    pub fn anon(&self) -> Actor<'_> {
        Actor { app: self, token: None, key: &self.anon_key }
    }

    /// The service_role key.
    pub fn service(&self) -> Actor<'_> {
        Actor { app: self, token: None, key: &self.service_key }
    }

    /// A user who has just signed up under this address.
    pub async fn user(&self, email: &str) -> User<'_> {
        let reply = self
            .anon()
            .post("/auth/v1/signup", json!({ "email": email, "password": PASSWORD, "data": { "full_name": email } }))
            .await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        User {
            id: reply.body["user"]["id"].as_str().expect("id").to_owned(),
            actor: Actor {
                app: self,
                token: Some(reply.body["access_token"].as_str().expect("token").to_owned()),
                key: &self.anon_key,
            },
        }
    }

    fn database(&self) -> &str {
        self.owner_url.rsplit('/').next().expect("a database name")
    }

    /// Drops the database under the running server, as when PostgreSQL cannot be reached any more.
    pub async fn lose_database(&self) {
        let drop = format!("drop database {} with (force)", self.database());
        admin(&cluster().url).await.batch_execute(&drop).await.expect("the database goes");
    }

    /// A request without the gateway's key.
    pub fn plain(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        // The returned future only waits for the end; asking is enough.
        drop(self.stop.stop(false));
        if self.owns_database {
            let _ = cluster().done.send(self.database().to_owned());
        }
    }
}

/// A signed-up user.
pub struct User<'a> {
    pub id: String,
    pub actor: Actor<'a>,
}

/// Whoever makes requests.
#[derive(Clone)]
pub struct Actor<'a> {
    app: &'a TestApp,
    pub token: Option<String>,
    key: &'a str,
}

/// A whole answer. `body` is JSON, or the text as a JSON string.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }
}

impl Actor<'_> {
    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.app.plain(method, path).header("apikey", self.key);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        send(self.request(reqwest::Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        send(self.request(reqwest::Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Reply {
        send(self.request(reqwest::Method::PATCH, path).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        send(self.request(reqwest::Method::PUT, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        send(self.request(reqwest::Method::DELETE, path)).await
    }
}

/// Sends a request and reads its whole answer.
pub async fn send(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.expect("a body");
    let body =
        serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Reply { status, headers, body }
}
