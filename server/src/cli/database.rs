//! The database that a command works on: `DATABASE_URL`, the running embedded PostgreSQL, or one started for the command.

use std::path::PathBuf;

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

    /// Runs `work` on the database, then stops what was started for it, whatever the outcome.
    pub async fn with<T, F, W>(source: &Source, work: W) -> anyhow::Result<T>
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

/// Runs a command on a runtime with one thread.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
