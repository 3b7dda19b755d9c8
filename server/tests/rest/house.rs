//! One database with the observatory's schema and one REST server per test.

use std::sync::Arc;

use ferrobase::app;
use ferrobase::config::{RestConfig, Source};
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::http::listen::Listener;
use ferrobase::rest::Rest;
use ferrobase::rest::live::Live;
use tokio_postgres::Client;

use crate::rest::relay::{Relay, Rewrite};
pub use crate::support::cluster::connect;
use crate::support::cluster::{Database, Template};

pub const SECRET: &str = "an-observatory-secret-of-more-than-32-bytes";

/// A separate database, copied from the template.
pub struct Ground {
    /// URL of a superuser.
    pub owner_url: String,
    /// A relay between the server and the database, if any.
    pub relay: Option<Relay>,
    /// Dropped with the last server on it.
    database: Arc<Database>,
}

impl Ground {
    /// `more`: statements of the owner, run before any server starts.
    pub async fn new(more: Option<&str>) -> Self {
        let database = Database::new(Template::Observatory).await;
        if let Some(more) = more {
            connect(&database.url).await.batch_execute(more).await.expect("the statements run");
        }
        Self::on(database)
    }

    /// A database without the observatory.
    pub fn on(database: Database) -> Self {
        Self { owner_url: database.url.clone(), relay: None, database: Arc::new(database) }
    }

    /// From now on, servers reach the database through a relay.
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

/// A database copied from the template, and a REST server on it.
pub struct House {
    /// `127.0.0.1:<port>`
    pub address: String,
    pub live: std::sync::Arc<Live>,
    /// The owner's connection, which bypasses all policies.
    pub owner: Client,
    pub owner_url: String,
    stop: actix_server::ServerHandle,
    _database: Arc<Database>,
}

impl House {
    /// `settings` override those of the suite: schemas sky and workshop, anonymous access, writes rolled back.
    pub async fn open(settings: &[(&str, &str)]) -> Self {
        Self::build(settings, &Ground::new(None).await).await
    }

    /// The same on another database, or through a relay.
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
        let rest = Rest::new(live.clone(), "", None).expect("state");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("free port");
        let address = listener.local_addr().expect("address").to_string();
        let server = app::serve_rest(rest, vec![Listener::Tcp(listener)], 1).expect("listening");
        let stop = server.handle();
        actix_web::rt::spawn(server);
        let owner_url = ground.owner_url.clone();
        let owner = connect(&owner_url).await;
        Self { address, live, owner, owner_url, stop, _database: Arc::clone(&ground.database) }
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
