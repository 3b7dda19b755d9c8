//! One PostgreSQL per test program, one database and one REST server per test.
//!
//! `TEST_DATABASE_URL` (of a superuser) replaces the embedded PostgreSQL.

#![allow(dead_code, clippy::expect_used, clippy::unwrap_used)]

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrobase::app;
use ferrobase::config::{RestConfig, Source};
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::http::listen::Listener;
use ferrobase::rest::Rest;
use ferrobase::rest::live::Live;
use tokio_postgres::{Client, NoTls};

use crate::relay::{Relay, Rewrite};

pub const SECRET: &str = "an-observatory-secret-of-more-than-32-bytes";
const TEMPLATE: &str = "observatory";

static CLUSTER: OnceLock<String> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(0);

/// URL of a superuser's database in the cluster of this program, which holds the template.
fn cluster() -> &'static str {
    CLUSTER.get_or_init(|| {
        // The cluster outlives the runtime of the test that happened to ask first.
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("runtime");
            runtime.block_on(async {
                let (url, _postgres) = open_cluster().await;
                make_template(&url).await;
                send.send(url).expect("the first test waits");
                std::future::pending::<()>().await;
            });
        });
        receive.recv().expect("the cluster starts")
    })
}

#[allow(clippy::zombie_processes, reason = "the shell waits for our end, not we for its")]
async fn open_cluster() -> (String, Option<EmbeddedPostgres>) {
    if let Ok(url) = std::env::var("TEST_DATABASE_URL") {
        return (url, None);
    }
    let folder = std::env::temp_dir().join(format!("ferrobase-rest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary folder");
    let settings = [
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("autovacuum", "off"),
        ("max_connections", "300"),
        // Every test copies a database; without these the copies' log alone would fill a gigabyte.
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "64MB"),
    ];
    let postgres = EmbeddedPostgres::start(&EmbeddedOptions {
        data_root: folder.clone(),
        port: 0,
        bin_dir: None,
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    })
    .await
    .expect("PostgreSQL starts");
    // However this program ends, PostgreSQL stops and its folder goes.
    let script = format!(
        "while kill -0 {own} 2>/dev/null; do sleep 0.3; done; \
         kill -INT $(head -n 1 '{cluster}/postmaster.pid'); \
         n=0; while [ -e '{cluster}/postmaster.pid' ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; rm -rf '{folder}'",
        own = std::process::id(),
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
    (postgres.url.clone(), Some(postgres))
}

async fn make_template(url: &str) {
    let admin = connect(url).await;
    admin.batch_execute(&format!("drop database if exists {TEMPLATE}")).await.expect("no old template");
    admin
        .batch_execute(&format!("create database {TEMPLATE} template template0 encoding 'UTF8' locale 'C.UTF-8'"))
        .await
        .expect("template");
    let owner = connect(&with_database(url, TEMPLATE)).await;
    owner.batch_execute(include_str!("schema.sql")).await.expect("schema.sql loads");
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connection");
    tokio::spawn(connection);
    client
}

fn with_database(url: &str, database: &str) -> String {
    let mut parsed = url::Url::parse(url).expect("url");
    parsed.set_path(&format!("/{database}"));
    parsed.into()
}

/// A database of its own, made from the template.
pub struct Ground {
    /// Of a superuser.
    pub owner_url: String,
    /// What stands between the server and the database, if anything does.
    pub relay: Option<Relay>,
}

impl Ground {
    /// `more`: statements of the owner, run before any server looks.
    pub async fn new(more: Option<&str>) -> Self {
        let cluster = cluster();
        let name = format!("sky_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let create = format!("create database {name} template {TEMPLATE}");
        let admin = connect(cluster).await;
        // PostgreSQL copies one template at a time, and only while nobody is connected to it.
        for attempt in 0.. {
            match admin.batch_execute(&create).await {
                Ok(()) => break,
                Err(error) if attempt > 200 => panic!("cannot copy the template: {error:?}"),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
        let owner_url = with_database(cluster, &name);
        if let Some(more) = more {
            connect(&owner_url).await.batch_execute(more).await.expect("the statements run");
        }
        Self { owner_url, relay: None }
    }

    /// Everything the server says to the database now goes through a relay.
    pub async fn behind_relay(mut self, rewrite: Option<Rewrite>) -> Self {
        let url = url::Url::parse(&self.owner_url).expect("url");
        let to = format!("{}:{}", url.host_str().expect("host"), url.port().unwrap_or(5432));
        self.relay = Some(Relay::start(to, rewrite).await);
        self
    }

    pub fn database(&self) -> String {
        url::Url::parse(&self.owner_url).expect("url").path().trim_start_matches('/').to_owned()
    }

    /// The connection string of a login role.
    pub fn login_url(&self, role: &str, password: &str) -> String {
        let mut url = url::Url::parse(&self.owner_url).expect("url");
        url.set_username(role).and_then(|()| url.set_password(Some(password))).expect("url with a user");
        if let Some(relay) = &self.relay {
            url.set_host(Some("127.0.0.1")).expect("host");
            url.set_port(Some(relay.port)).expect("port");
            url.query_pairs_mut().append_pair("sslmode", "disable");
        }
        url.into()
    }
}

/// A database made from the template, and a REST server on it.
pub struct House {
    /// `127.0.0.1:<port>`
    pub address: String,
    pub live: std::sync::Arc<Live>,
    /// The owner's connection, past every policy.
    pub owner: Client,
    pub owner_url: String,
    stop: actix_server::ServerHandle,
}

impl House {
    /// `settings` are laid over those of the suite: schemas sky and workshop, visitors welcome, writes rolled back.
    pub async fn open(settings: &[(&str, &str)]) -> Self {
        Self::build(settings, &Ground::new(None).await).await
    }

    /// The same over a database that holds more, or through a relay.
    pub async fn build(settings: &[(&str, &str)], ground: &Ground) -> Self {
        let mut source = Source::from_pairs([
            ("PGRST_DB_SCHEMAS", "sky,workshop"),
            ("PGRST_DB_EXTRA_SEARCH_PATH", "tools"),
            ("PGRST_DB_ANON_ROLE", "sky_visitor"),
            ("PGRST_JWT_SECRET", SECRET),
            ("PGRST_DB_TX_END", "rollback-allow-override"),
            ("PGRST_DB_AGGREGATES_ENABLED", "true"),
            ("PGRST_OPENAPI_SERVER_PROXY_URI", "https://sky.example/rest"),
            ("PGRST_APP_SETTINGS_MOTTO", "per aspera"),
            ("PGRST_LOG_LEVEL", "crit"),
        ]);
        source.set("PGRST_DB_URI", ground.login_url("sky_gate", "gate"));
        for (name, value) in settings {
            source.set(name, *value);
        }
        let config = RestConfig::load(&source).expect("settings");
        let options = PoolOptions { size: 2, ..PoolOptions::default() };
        let pool = Pool::new(config.db_uri.reveal(), &options).expect("pool");
        let live = Live::new(source, pool).expect("settings");
        live.start().await.expect("configuration");
        let rest = Rest::new(live.clone(), "").expect("state");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("free port");
        let address = listener.local_addr().expect("address").to_string();
        let server = app::serve_rest(rest, vec![Listener::Tcp(listener)], 1).expect("listening");
        let stop = server.handle();
        actix_web::rt::spawn(server);
        Self { address, live, owner: connect(&ground.owner_url).await, owner_url: ground.owner_url.clone(), stop }
    }

    /// A signed token; `claims` is JSON text.
    pub fn token(claims: &str) -> String {
        let claims: serde_json::Value = serde_json::from_str(claims).expect("claims are JSON");
        let key = jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token")
    }
}

impl Drop for House {
    fn drop(&mut self) {
        drop(self.stop.stop(false));
    }
}
