//! Shared by all tests: the cluster and its databases, a full server on its own database, raw HTTP, and simulated
//! outside servers.

#![allow(dead_code, clippy::expect_used, clippy::unwrap_used)]

pub mod alone;
pub mod binary;
pub mod cluster;
pub mod commands;
pub mod dump;
pub mod first_start;
pub mod outside;
pub mod ports;
pub mod server_process;
pub mod valve;
pub mod wire;

use cluster::{Cluster, Database, Template, connect};
use ferrobase::app::{self, App, Settings};
use ferrobase::config::Source;
use ferrobase::http::listen::Listener;
use ferrobase::http::tls::Tls;
use ferrobase::migrate::PlatformUrls;
use serde_json::{Value, json};
use std::path::PathBuf;

pub const PASSWORD: &str = "correct-Horse-7";

/// A server on its own database.
pub struct TestApp {
    /// `http://127.0.0.1:<port>`.
    pub base: String,
    pub anon_key: String,
    pub service_key: String,
    /// The owner's connection, which bypasses all policies.
    pub owner: tokio_postgres::Client,
    pub owner_url: String,
    /// URL that logs in as `supabase_auth_admin`.
    pub auth_url: String,
    /// The auth API's state, for its counters.
    pub auth: std::sync::Arc<ferrobase::auth::Auth>,
    /// The storage API's state, for its hourly housekeeping.
    pub storage: ferrobase::storage::Storage,
    /// The realtime state, for its sockets and metrics.
    pub realtime: ferrobase::realtime::Realtime,
    http: reqwest::Client,
    cluster: &'static Cluster,
    stop: actix_web::dev::ServerHandle,
    /// The database, if this is the first server on it; dropped with the server.
    owns: Option<Database>,
}

impl TestApp {
    /// The full server with development settings.
    pub async fn start() -> Self {
        Self::with_settings(&[]).await
    }

    /// The full server with further settings.
    pub async fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::on(Database::new(Template::App).await, settings).await
    }

    /// The full server on a database with logical WAL.
    pub async fn logical(settings: &[(&str, &str)]) -> Self {
        Self::on(Database::logical(Template::App).await, settings).await
    }

    /// The full server on this database, which is dropped with it.
    pub async fn on(database: Database, settings: &[(&str, &str)]) -> Self {
        let served = Self::try_serve(database.cluster, &database.name, settings).await;
        let mut app = served.expect("the server builds");
        app.owns = Some(database);
        app
    }

    /// Another server on the same database.
    pub async fn another(&self, settings: &[(&str, &str)]) -> Self {
        self.try_another(settings).await.expect("the server builds")
    }

    /// The full server, connected to its database through a valve.
    pub async fn behind_valve(settings: &[(&str, &str)]) -> (Self, valve::Valve) {
        Self::behind_valve_on(Database::new(Template::App).await, settings).await
    }

    /// The full server, connected through a valve to a database with logical WAL.
    pub async fn logical_behind_valve(settings: &[(&str, &str)]) -> (Self, valve::Valve) {
        Self::behind_valve_on(Database::logical(Template::App).await, settings).await
    }

    async fn behind_valve_on(database: Database, settings: &[(&str, &str)]) -> (Self, valve::Valve) {
        let valve = valve::Valve::before(&database.url).await;
        let logins = database.logins();
        let urls = PlatformUrls {
            rest_url: valve.url(&logins.rest_url),
            auth_url: valve.url(&logins.auth_url),
            service_url: valve.url(&logins.service_url),
            replication_url: valve.url(&logins.replication_url),
            pooled: None,
            replica_url: None,
        };
        let served = Self::try_serve_on(database.cluster, &database.name, urls, settings).await;
        let mut app = served.expect("the server builds");
        app.owns = Some(database);
        (app, valve)
    }

    /// Another server on the same database, or why it does not start.
    pub async fn try_another(&self, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::try_serve(self.cluster, self.database(), settings).await
    }

    /// Where this server keeps the files of objects.
    pub fn files(&self) -> PathBuf {
        data_folder(self.cluster, self.database()).join("storage")
    }

    async fn try_serve(cluster: &'static Cluster, name: &str, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::try_serve_on(cluster, name, cluster.logins(name), settings).await
    }

    async fn try_serve_on(
        cluster: &'static Cluster,
        name: &str,
        urls: PlatformUrls,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let owner_url = cluster.superuser_url(name);
        let data = data_folder(cluster, name);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("free port");
        let address = listener.local_addr().expect("address");

        let mut source = Source::from_pairs([("FERROBASE_DEV", "true")]);
        source.set("FERROBASE_PASSWORD_COST", "4");
        source.set("FERROBASE_LISTEN", address.to_string());
        source.set("FERROBASE_DATA_DIR", data.display().to_string());
        for (name, value) in settings {
            source.set(name, *value);
        }
        let settings = Settings::read(&mut source)?;
        let app = App::build(&source, &settings, &urls).await?;
        let (auth, storage) = (std::sync::Arc::clone(&app.auth), app.storage.clone());
        let realtime = app.realtime.clone();
        let (anon_key, service_key) = (app.keys.anon().to_owned(), app.keys.service_role().to_owned());
        let mut listeners = vec![Listener::Tcp(listener)];
        if let Some(config) = &settings.server.tls {
            let tls = Tls::open(config, &data)?;
            listeners.push(tls.listener(std::net::TcpListener::bind(config.listen)?));
            tls.keep();
        }
        let server = app::serve(app, listeners, 1).expect("listening");
        let stop = server.handle();
        actix_web::rt::spawn(server);
        Ok(Self {
            base: format!("http://{address}"),
            anon_key,
            service_key,
            owner: connect(&owner_url).await,
            owner_url,
            auth_url: urls.auth_url.clone(),
            auth,
            storage,
            realtime,
            cluster,
            http: reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("client"),
            stop,
            owns: None,
        })
    }

    /// An actor without an account.
    pub fn anon(&self) -> Actor<'_> {
        Actor { app: self, token: None, key: &self.anon_key }
    }

    /// An actor with the service_role key.
    pub fn service(&self) -> Actor<'_> {
        Actor { app: self, token: None, key: &self.service_key }
    }

    /// A newly signed-up user with this address.
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

    /// Drops the database of the running server, as if PostgreSQL had become unreachable.
    pub async fn lose_database(&self) {
        self.cluster.drop_database(self.database()).await;
    }

    /// A request without the gateway's key.
    pub fn plain(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        // The returned future only waits for the end, which is not needed.
        drop(self.stop.stop(false));
        self.realtime.stop();
    }
}

/// A signed-up user.
pub struct User<'a> {
    pub id: String,
    pub actor: Actor<'a>,
}

/// The sender of requests.
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

/// The data folder of a server on the database `name`.
fn data_folder(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.folder.join(name)
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
