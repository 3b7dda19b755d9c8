//! A PostgreSQL with `schema.sql`, the REST API over it, and requests made by an actor.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrobase::app;
use ferrobase::config::Source;
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::http::listen::Listener;
use ferrobase::rest::Rest;
use ferrobase::rest::live::Live;
use tokio_postgres::NoTls;

const SECRET: &str = "a secret of the tests that is long enough";
static COUNTER: AtomicU32 = AtomicU32::new(0);

pub struct Fixture {
    postgres: Option<EmbeddedPostgres>,
    root: PathBuf,
    pub base: String,
    pub client: reqwest::Client,
    stop: Option<std::sync::mpsc::Sender<()>>,
    server: Option<std::thread::JoinHandle<()>>,
}

/// What came back.
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Fixture {
    /// `settings`: further `PGRST_*` by their names without that prefix.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("ferrobase-rest-{}-{number}", std::process::id()));
        let options = EmbeddedOptions {
            data_root: root.clone(),
            port: 0,
            bin_dir: std::env::var_os("PG_BIN_DIR").map(PathBuf::from),
            settings: vec![("fsync".to_owned(), "off".to_owned())],
        };
        let postgres = EmbeddedPostgres::start(&options).await.expect("PostgreSQL");
        let (admin, connection) = tokio_postgres::connect(&postgres.url, NoTls).await.expect("connect");
        tokio::spawn(connection);
        admin.batch_execute(include_str!("schema.sql")).await.expect("schema");

        let mut uri = url::Url::parse(&postgres.url).expect("url");
        uri.set_username("authenticator").expect("user");
        uri.set_password(Some("pass")).expect("password");
        let mut pairs: Vec<(String, String)> = [
            ("DB_URI", uri.as_str()),
            ("DB_SCHEMAS", "public,archive"),
            ("DB_ANON_ROLE", "anon"),
            ("JWT_SECRET", SECRET),
            ("DB_AGGREGATES_ENABLED", "true"),
            ("DB_PLAN_ENABLED", "true"),
        ]
        .iter()
        .chain(settings)
        .map(|(name, value)| (format!("PGRST_{name}"), (*value).to_owned()))
        .collect();
        pairs.reverse();
        pairs.dedup_by(|later, kept| later.0 == kept.0);
        let source = Source::from_pairs(pairs.into_iter().rev());
        // Plain HTTP only, but the client is built with TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (stop, stopped) = std::sync::mpsc::channel();
        let (address, listening) = std::sync::mpsc::channel();
        let uri = uri.to_string();
        let server = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let pool = Pool::new(&uri, &PoolOptions::default()).expect("pool");
                let live = Live::new(source, pool).expect("settings");
                live.start().await.expect("started");
                let rest = Rest::new(live, "").expect("rest");
                let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
                address.send(listener.local_addr().expect("address")).expect("told");
                let server = app::serve_rest(rest, vec![Listener::Tcp(listener)], 1).expect("server");
                let handle = server.handle();
                actix_web::rt::spawn(async move {
                    let _ = tokio::task::spawn_blocking(move || stopped.recv()).await;
                    handle.stop(false).await;
                });
                server.await.expect("served");
            });
        });
        let address = listening.recv().expect("address");
        Self {
            postgres: Some(postgres),
            root,
            base: format!("http://{address}"),
            client: reqwest::Client::new(),
            stop: Some(stop),
            server: Some(server),
        }
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            tokio::task::spawn_blocking(move || server.join()).await.expect("joined").expect("server");
        }
        if let Some(postgres) = self.postgres.take() {
            postgres.stop().await;
        }
    }

    /// A query as superuser; the first column of the first row.
    pub async fn one(&self, sql: &str) -> String {
        let url = self.postgres.as_ref().map(|postgres| postgres.url.clone()).expect("running");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("connect");
        tokio::spawn(connection);
        let rows = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// A request as `actor`: `anon`, or `role:sub` with a token of that role and subject.
    pub fn request(&self, actor: &str, method: &str, target: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("method");
        let request = self.client.request(method, format!("{}{target}", self.base));
        match actor.split_once(':') {
            None => request,
            Some((role, sub)) => request.bearer_auth(token(role, sub)),
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        let response = request.send().await.expect("a response");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, body: response.text().await.expect("a body") }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A token of the tests' secret.
pub fn token(role: &str, sub: &str) -> String {
    let claims = serde_json::json!({ "role": role, "sub": sub });
    let key = jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token")
}
