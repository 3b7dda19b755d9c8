//! A database with `schema.sql`, a REST API on it, and requests made by an actor.

use ferrobase::app;
use ferrobase::config::Source;
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::http::listen::Listener;
use ferrobase::rest::Rest;
use ferrobase::rest::live::Live;

use crate::support::cluster::{Database, Template, connect};

const SECRET: &str = "a secret of the tests that is long enough";

pub struct Fixture {
    pub database: Database,
    pub base: String,
    pub client: reqwest::Client,
    stop: Option<std::sync::mpsc::Sender<()>>,
    server: Option<std::thread::JoinHandle<()>>,
}

/// The received answer.
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
    /// `settings`: more `PGRST_*` settings, named without that prefix, or `FERROBASE_*`.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let database = Database::new(Template::Studio).await;
        let mut uri = url::Url::parse(&database.url).expect("url");
        uri.set_username("studio_gate").expect("user");
        uri.set_password(Some("pass")).expect("password");
        let mut pairs: Vec<(String, String)> = [
            ("DB_URI", uri.as_str()),
            ("DB_SCHEMAS", "public,archive"),
            ("DB_ANON_ROLE", "studio_visitor"),
            ("JWT_SECRET", SECRET),
            ("DB_AGGREGATES_ENABLED", "true"),
            ("DB_PLAN_ENABLED", "true"),
        ]
        .iter()
        .chain(settings)
        .map(|(name, value)| {
            let prefix = if name.starts_with("FERROBASE_") { "" } else { "PGRST_" };
            (format!("{prefix}{name}"), (*value).to_owned())
        })
        .collect();
        pairs.reverse();
        pairs.dedup_by(|later, kept| later.0 == kept.0);
        let source = Source::from_pairs(pairs.into_iter().rev());
        let (stop, stopped) = std::sync::mpsc::channel();
        let (address, listening) = std::sync::mpsc::channel();
        let uri = uri.to_string();
        let server = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let pool = Pool::new(&uri, &PoolOptions::default()).expect("pool");
                let live = Live::new(source, pool).expect("settings");
                live.start().await.expect("started");
                let rest = Rest::new(live, "", None).expect("rest");
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
            database,
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
    }

    /// A query as superuser: the first column of the first row.
    pub async fn one(&self, sql: &str) -> String {
        let rows = connect(&self.database.url)
            .await
            .simple_query(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// Runs `sql` and waits until the server has reloaded the schema, so that `probe` finds something.
    pub async fn reload_with(&self, sql: &str, probe: &str) {
        self.one(&format!("{sql}; notify pgrst")).await;
        for _ in 0..1200 {
            if self.send(self.request("anon", "GET", probe)).await.status == 200 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{probe} does not come");
    }

    /// A request whose answer is read at the test's own pace.
    pub async fn raw(&self, head: &str) -> tokio::net::TcpStream {
        use tokio::io::AsyncWriteExt;
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        // Small socket buffers.
        socket.set_recv_buffer_size(64 << 10).expect("a small buffer");
        let address: std::net::SocketAddr = self.base.trim_start_matches("http://").parse().expect("an address");
        socket.connect(&address.into()).expect("connected");
        socket.set_nonblocking(true).expect("a mode");
        let mut client = tokio::net::TcpStream::from_std(socket.into()).expect("a stream");
        client.write_all(head.as_bytes()).await.expect("sent");
        client
    }

    /// A request as `actor`: `anon`, or `member:sub` and `keeper:sub` with a token of that role and subject.
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

/// A token signed with the tests' secret.
pub fn token(role: &str, sub: &str) -> String {
    let claims = serde_json::json!({ "role": format!("studio_{role}"), "sub": sub });
    let key = jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token")
}
