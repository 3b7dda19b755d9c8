//! Which database a command means: the project's own, or one by its connection string.

use clap::Args;

use super::open;
use super::running::Place;
use crate::config::Source;
use crate::config::conninfo::Conninfo;
use crate::db::{self, Client};
use crate::embedded_pg;
use crate::project::Project;

#[derive(Args)]
pub struct TargetArgs {
    /// This project's own database, as without it
    #[arg(long, conflicts_with_all = ["db_url", "linked"])]
    local: bool,
    /// Another database, as postgresql://user:password@host:port/name with special characters percent-encoded
    #[arg(long, value_name = "URL", conflicts_with = "linked")]
    db_url: Option<String>,
    /// There are no linked projects here
    #[arg(long, hide = true)]
    linked: bool,
}

/// A database that a command reads.
pub struct Target {
    pub url: String,
    pub client: Client,
    /// Major version of its server.
    pub major: u32,
    /// `local` or `remote`, for messages.
    pub place: &'static str,
}

impl TargetArgs {
    /// Connects; from a runtime.
    pub async fn open(&self) -> anyhow::Result<Target> {
        anyhow::ensure!(!self.linked, "there is no linked project: name its database by --db-url");
        let (url, place) = match &self.db_url {
            Some(url) => (url.clone(), "remote"),
            None => (logins(&open()?)?.url, "local"),
        };
        let client = connect(&url).await?;
        let row = client.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?;
        Ok(Target { url, client, major: u32::try_from(row.get::<_, i32>(0))?, place })
    }
}

impl Target {
    /// Refuses names of schemas that are not there; patterns are left to whoever understands them.
    pub async fn require_schemas(&self, schemas: &[String]) -> anyhow::Result<()> {
        for schema in schemas.iter().filter(|schema| !schema.contains(['*', '?'])) {
            let found = self.client.query_opt("select from pg_namespace where nspname = $1", &[schema]).await?;
            anyhow::ensure!(found.is_some(), "there is no schema named '{schema}' in the database");
        }
        Ok(())
    }
}

pub async fn connect(url: &str) -> anyhow::Result<Client> {
    let config = configuration(url)?;
    db::connect_client(&config).await.map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))
}

/// A connection string as libpq reads it, and how the database's certificate is judged.
pub fn configuration(url: &str) -> anyhow::Result<tokio_postgres::Config> {
    let Conninfo { text, tls } = Conninfo::resolve(url, &Source::from_pairs(std::iter::empty::<(String, String)>()))
        .map_err(|error| anyhow::anyhow!("the database cannot be reached by this connection string: {error}"))?;
    db::install_tls(&tls).map_err(|error| anyhow::anyhow!("the way to the database: {error}"))?;
    Ok(text.parse()?)
}

/// The logins of the project's running database.
pub fn logins(project: &Project) -> anyhow::Result<embedded_pg::Logins> {
    let logins = Place::of(project).process().and_then(|_| embedded_pg::logins_of(&project.data_dir()));
    logins.ok_or_else(|| anyhow::anyhow!("the project is not running: start it with 'ferrobase start'"))
}
