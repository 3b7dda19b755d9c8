//! The migrator on a real database: the platform's SQL, a project's migrations, demo data.

mod application;
mod escalation;
mod locks;
mod names;
mod platform;
mod project;
mod requests;
mod runner;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::migrate::{self, GivenUrls, Source};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::support::cluster::{Database, Template, place};
use crate::support::ports::free_port;

/// An empty database and a folder for its migrations.
struct Fixture {
    database: Option<Database>,
    postgres: Option<EmbeddedPostgres>,
    root: PathBuf,
    /// URL of the owner, who runs migrations.
    url: String,
    /// URL of the superuser, who owns the platform.
    admin: String,
}

static COUNTER: AtomicU32 = AtomicU32::new(0);

impl Fixture {
    /// In the shared cluster, which has the platform's roles already.
    async fn new() -> Self {
        let database = Database::new(Template::Empty).await;
        let (url, admin) = (database.owner_url.clone(), database.url.clone());
        Self { database: Some(database), postgres: None, root: Self::folder(), url, admin }
    }

    /// The same with the platform installed.
    async fn with_platform() -> Self {
        let database = Database::new(Template::Platform).await;
        let (url, admin) = (database.owner_url.clone(), database.url.clone());
        Self { database: Some(database), postgres: None, root: Self::folder(), url, admin }
    }

    /// In a new cluster that has no roles except its owner.
    async fn in_a_new_cluster() -> Self {
        let root = Self::folder();
        let options = EmbeddedOptions {
            data_root: root.clone(),
            port: free_port(),
            settings: vec![("fsync".to_owned(), "off".to_owned())],
            ..EmbeddedOptions::default()
        };
        let postgres = EmbeddedPostgres::start(&options).await.expect("PostgreSQL");
        let (url, admin) = (postgres.url.clone(), postgres.admin_url.clone());
        Self { database: None, postgres: Some(postgres), root, url, admin }
    }

    fn folder() -> PathBuf {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let root = place().join(format!("ferrobase-migrate-{}-{number}", std::process::id()));
        std::fs::create_dir_all(root.join("sql")).expect("a temporary directory");
        root
    }

    fn write(&self, name: &str, sql: &str) -> Source {
        std::fs::write(self.root.join("sql").join(name), sql).expect("a migration");
        Source::Folder(self.root.join("sql"))
    }

    async fn one(&self, sql: &str) -> String {
        query(&self.admin, sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))
    }

    async fn stop(mut self) {
        drop(self.database.take());
        if let Some(postgres) = self.postgres.take() {
            postgres.stop().await;
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

async fn query(url: &str, sql: &str) -> Result<String, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    for message in client.simple_query(sql).await? {
        if let SimpleQueryMessage::Row(row) = message {
            return Ok(row.get(0).unwrap_or("").to_owned());
        }
    }
    Ok(String::new())
}

async fn wait_for(db: &Fixture, sql: &str) {
    for _ in 0..600 {
        if db.one(sql).await == "t" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not within a minute: {sql}");
}

/// A fresh database with the platform and the auth schema, as a project's migrations expect it.
async fn base_image() -> Fixture {
    let db = Fixture::in_a_new_cluster().await;
    let urls = migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("platform");
    migrate::auth(&urls.auth_url).await.expect("auth schema");
    db
}
