//! The one connection on which a migration runs: alone, and with a clean slate before each file.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::MigrateError;
use super::error::{describe, in_file};
use super::files::SqlFile;
use super::statements::{Mode, mode, split};
use crate::db::tls;

/// Key of the advisory lock that lets one instance at a time change a database ("ferro" in ASCII).
const LOCK: i64 = 0x66_65_72_72_6f;

/// How long to wait before asking for the lock again.
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// A connection that nobody else uses. The driver task ends when the client is dropped.
pub struct Session {
    pub client: Client,
    _driver: JoinHandle<()>,
}

impl Session {
    pub async fn connect(url: &str) -> Result<Self, MigrateError> {
        let mut config: tokio_postgres::Config = url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
        config.application_name("ferrobase migrate");
        let (client, connection) = config.connect(tls()).await.map_err(|e| MigrateError::Connect(describe(&e)))?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a migration connection ended");
            }
        });
        let session = Self { client, _driver: driver };
        session.require_version().await?;
        Ok(session)
    }

    /// Connects and waits until no other instance migrates this database. The lock goes with the connection.
    ///
    /// It is asked for again and again: a statement that waits for the lock would hold a snapshot, for whose end
    /// `create index concurrently` of the instance that has the lock waits in turn.
    pub async fn connect_alone(url: &str) -> Result<Self, MigrateError> {
        let session = Self::connect(url).await?;
        // The owner's role may carry time limits that are meant for requests.
        session.client.batch_execute("set statement_timeout = 0; set lock_timeout = 0").await?;
        let mut is_told = false;
        loop {
            if session.client.query_one("select pg_try_advisory_lock($1)", &[&LOCK]).await?.get(0) {
                return Ok(session);
            }
            if !is_told {
                is_told = true;
                tracing::info!("another instance brings the database up to date; waiting for it");
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    async fn require_version(&self) -> Result<(), MigrateError> {
        let row = self.client.query_one("select current_setting('server_version_num')::int", &[]).await?;
        match row.get::<_, i32>(0) / 10_000 {
            major if major < 15 => Err(MigrateError::OldServer(major.to_string())),
            _ => Ok(()),
        }
    }

    /// Forgets roles, settings and open transactions of an earlier file, and finds extensions without a schema name.
    pub async fn reset(&self) -> Result<(), MigrateError> {
        self.client
            .batch_execute(
                "rollback; reset session authorization; reset role; reset all; \
                 set statement_timeout = 0; set lock_timeout = 0; set client_min_messages = warning; \
                 set search_path = \"$user\", public, extensions",
            )
            .await?;
        Ok(())
    }

    /// Runs a file and `record` after it: in one transaction, unless the file cannot run in one.
    ///
    /// A file of single statements that fails half-way leaves what was done before the failing one.
    pub async fn run(&self, file: &SqlFile, record: &Record<'_>) -> Result<(), MigrateError> {
        self.reset().await?;
        let statements = split(&file.text);
        let outcome = match mode(&statements) {
            Mode::Transaction => {
                self.client.batch_execute("begin").await?;
                self.whole(file).await
            }
            Mode::OwnTransactions => self.whole(file).await,
            Mode::Single => {
                for statement in &statements {
                    self.client
                        .batch_execute(statement.text)
                        .await
                        .map_err(|e| in_file(&file.file, &file.text, statement.offset, &e))?;
                }
                Ok(())
            }
        };
        if let Err(error) = outcome {
            self.reset().await?;
            return Err(error);
        }
        // The file may have changed role and search path; the record names its table in full.
        self.client.batch_execute("reset session authorization; reset role").await?;
        self.client.execute(record.sql, record.values).await?;
        // Deferred constraints are checked only now; the last line is as near to their cause as we get.
        let end = file.text.chars().count();
        self.client.batch_execute("commit").await.map_err(|e| in_file(&file.file, &file.text, end, &e))
    }

    async fn whole(&self, file: &SqlFile) -> Result<(), MigrateError> {
        self.client.batch_execute(&file.text).await.map_err(|e| in_file(&file.file, &file.text, 0, &e))
    }
}

/// The bookkeeping statement that goes with a file.
pub struct Record<'a> {
    pub sql: &'a str,
    pub values: &'a [&'a (dyn tokio_postgres::types::ToSql + Sync)],
}
