//! The database that a command works on: `DATABASE_URL`, the running embedded PostgreSQL, or one started for the command.

use std::path::{Path, PathBuf};

use super::stop::Stop;
use crate::config::{Reader, Source};
use crate::embedded_pg::{self, EmbeddedError, EmbeddedOptions, EmbeddedPostgres, Logins, Passwords};

/// An open database, and what has to be stopped afterwards.
pub struct Database {
    pub logins: Logins,
    embedded: Option<EmbeddedPostgres>,
}

impl Database {
    pub async fn open(source: &Source) -> anyhow::Result<Self> {
        let mut reader = Reader::new(source);
        let url = reader.text(&["DATABASE_URL"]);
        let options = EmbeddedOptions {
            data_root: PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase")),
            port: reader.parse_or(&["FERROBASE_DB_PORT"], "a port", 54322),
            bin_dir: reader.text(&["PG_BIN_DIR"]).map(PathBuf::from),
            passwords: Passwords::Keep,
            ..EmbeddedOptions::default()
        };
        let options = reader.finish(options)?;
        if let Some(url) = url {
            // An external database has one role for both purposes.
            return Ok(Self { logins: Logins { admin_url: url.clone(), url }, embedded: None });
        }
        match EmbeddedPostgres::start(&options).await {
            Ok(embedded) => Ok(Self { logins: embedded.logins(), embedded: Some(embedded) }),
            // A server runs on the same data folder, on whatever port; the command shares its database. Another program on our
            // port is never mistaken for it.
            Err(EmbeddedError::InUse { dir, pid }) => match embedded_pg::logins_of_running(&dir) {
                Some(logins) => Ok(Self { logins, embedded: None }),
                None => Err(EmbeddedError::InUse { dir, pid }.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Runs `work` on the database, which must exist, then stops what was started for it, whatever the outcome.
    pub async fn with<T, F, W>(source: &Source, work: W) -> anyhow::Result<T>
    where
        F: Future<Output = anyhow::Result<T>>,
        W: FnOnce(Logins) -> F,
    {
        require(source)?;
        Self::with_or_new(source, work).await
    }

    /// The same, and creates the database of an empty data folder first: for commands that fill one.
    pub async fn with_or_new<T, F, W>(source: &Source, work: W) -> anyhow::Result<T>
    where
        F: Future<Output = anyhow::Result<T>>,
        W: FnOnce(Logins) -> F,
    {
        let stop = Stop::watch()?;
        let stopped = || anyhow::anyhow!("stopped before it was finished");
        let database = stop.before(Self::open(source)).await.ok_or_else(stopped)??;
        let outcome = stop.before(work(database.logins.clone())).await;
        if let Some(embedded) = database.embedded {
            embedded.stop().await;
        }
        outcome.ok_or_else(stopped)?
    }
}

/// Refuses a data folder without a database: a command in the wrong folder would create an empty one and report on that, or back it up.
fn require(source: &Source) -> anyhow::Result<()> {
    let reader = Reader::new(source);
    if reader.text(&["DATABASE_URL"]).is_some() {
        return Ok(());
    }
    let data_dir = reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase");
    let data_dir = Path::new(&data_dir);
    // The start tells more about a folder that is no database, or that belongs to another user.
    let is_missing = || matches!(data_dir.join("db").try_exists(), Ok(false));
    if embedded_pg::cluster_of(data_dir).is_none() && is_missing() {
        let shown = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        anyhow::bail!(
            "there is no database in {}: set FERROBASE_DATA_DIR to the server's data folder, or DATABASE_URL",
            shown.display()
        );
    }
    Ok(())
}

/// Runs a command on a runtime with one thread.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
