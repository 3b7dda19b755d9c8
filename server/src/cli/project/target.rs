//! The database that a command works on: the project's own, or one given by its connection string.

use clap::Args;

use super::running::Place;
use super::{open, say};
use crate::config::Source;
use crate::config::conninfo::Conninfo;
use crate::db::{self, Client};
use crate::embedded_pg;
use crate::migrate;
use crate::project::Project;

#[derive(Args)]
pub struct TargetArgs {
    /// This project's own database, the default
    #[arg(long, conflicts_with_all = ["db_url", "linked"])]
    local: bool,
    /// Another database, as postgresql://user:password@host:port/name with special characters percent-encoded
    #[arg(long, value_name = "URL", conflicts_with = "linked")]
    db_url: Option<String>,
    /// There are no linked projects here
    #[arg(long, hide = true)]
    linked: bool,
    /// The password of a linked project's database
    #[arg(short, long, hide = true, conflicts_with_all = ["db_url", "local"])]
    password: Option<String>,
}

/// An open target database.
pub struct Target {
    /// For libpq.
    pub url: String,
    /// For the driver.
    pub text: String,
    pub client: Client,
    /// Major version of its server.
    pub major: u32,
    /// `local` or `remote`, for messages.
    pub place: &'static str,
}

impl TargetArgs {
    /// Connects. Must be called on a runtime.
    pub async fn open(&self) -> anyhow::Result<Target> {
        let project = if self.is_local() { Some(open()?) } else { None };
        self.reach(project.as_ref()).await
    }

    /// Whether the database is the one of this folder's project.
    pub fn is_local(&self) -> bool {
        self.db_url.is_none() && !self.linked && self.password.is_none()
    }

    /// The connection string for the driver, and `local` or `remote` for messages.
    pub fn text(&self, project: &Project) -> anyhow::Result<(String, &'static str)> {
        let found = self.find(Some(project))?;
        Ok((found.text, found.place))
    }

    fn find(&self, project: Option<&Project>) -> anyhow::Result<Found> {
        let wants_linked = self.linked || self.password.is_some();
        anyhow::ensure!(!wants_linked, "there is no linked project: pass its database with --db-url");
        match (&self.db_url, project) {
            (Some(url), _) => Ok(Found { url: url.clone(), text: resolved(url)?, place: "remote" }),
            (None, Some(project)) => {
                let url = logins(project)?.url;
                Ok(Found { text: url.clone(), url, place: "local" })
            }
            (None, None) => anyhow::bail!("there is no project here: pass a database with --db-url"),
        }
    }

    /// Connects to the given database, or to the one of `project`. Must be called on a runtime.
    pub async fn reach(&self, project: Option<&Project>) -> anyhow::Result<Target> {
        let Found { url, text, place } = self.find(project)?;
        let client = connect(&url).await?;
        let row = client.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?;
        Ok(Target { url, text, client, major: u32::try_from(row.get::<_, i32>(0))?, place })
    }
}

/// Connection strings of a database.
struct Found {
    url: String,
    text: String,
    place: &'static str,
}

impl Target {
    /// See [`require_schemas`].
    pub async fn require_schemas(&self, schemas: &[String]) -> anyhow::Result<()> {
        require_schemas(&self.client, schemas).await
    }
}

/// Refuses names of schemas that do not exist. Patterns are passed through.
pub async fn require_schemas(client: &Client, schemas: &[String]) -> anyhow::Result<()> {
    for schema in schemas.iter().filter(|schema| !schema.contains(['*', '?'])) {
        let found = client.query_opt("select from pg_namespace where nspname = $1", &[schema]).await?;
        anyhow::ensure!(found.is_some(), "there is no schema named '{schema}' in the database");
    }
    Ok(())
}

/// Stores the secrets of `[db.vault]`, which migrations may read.
pub async fn store_secrets(project: &Project, url: &str) -> anyhow::Result<()> {
    if !migrate::project::vault(url, &project.vault()).await? {
        say("WARN: the secrets of [db.vault] were not stored: the database has no vault");
    }
    Ok(())
}

pub async fn connect(url: &str) -> anyhow::Result<Client> {
    let config = configuration(url)?;
    db::connect_client(&config).await.map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))
}

/// A connection of the driver itself, for what [`Client`] does not do. It ends with its runtime.
pub async fn connect_plainly(url: &str) -> anyhow::Result<tokio_postgres::Client> {
    let opened = db::connect(&configuration(url)?).await;
    let (client, connection) = opened.map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))?;
    tokio::spawn(connection);
    Ok(client)
}

/// Parses a connection string with libpq's rules, including how the database's certificate is verified.
pub fn configuration(url: &str) -> anyhow::Result<tokio_postgres::Config> {
    Ok(resolved(url)?.parse()?)
}

/// The connection string for the driver. Sets up the verification of the server's certificate.
fn resolved(url: &str) -> anyhow::Result<String> {
    let Conninfo { text, tls, .. } =
        Conninfo::resolve(url, &Source::from_pairs(std::iter::empty::<(String, String)>()))
            .map_err(|error| anyhow::anyhow!("the database cannot be reached by this connection string: {error}"))?;
    db::install_tls(&tls).map_err(|error| anyhow::anyhow!("the way to the database: {error}"))?;
    Ok(text)
}

/// The logins of the project's running database.
pub fn logins(project: &Project) -> anyhow::Result<embedded_pg::Logins> {
    let logins = Place::of(project).process().and_then(|_| embedded_pg::logins_of(&project.data_dir()));
    logins.ok_or_else(|| anyhow::anyhow!("the project is not running: start it with 'ferrobase start'"))
}
