//! The connection on which a migration runs: exclusive, and reset before each file.

use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::MigrateError;
use super::emulated::{CreateExtension, DropExtension, commented_extension, emulated};
use super::error::{describe, in_file, unopened};
use super::files::SqlFile;
use super::foreign;
use super::locks::Attempt;
use super::statements::{Role, Statement, split};
use crate::db::{self, NOTICE_OUR_DEATH};

/// Key of the advisory lock that lets one instance at a time change a database ("ferro" in ASCII).
const LOCK: i64 = 0x66_65_72_72_6f;

/// How long to wait before asking for the lock again.
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// How many statements are sent before the first one is answered.
const AHEAD: usize = 32;

/// The `search_path` of a project's migrations.
const PROJECT: &str = "\"$user\", public, extensions";

/// The `search_path` of the platform's files, which run as a superuser: in any other schema, a project could place its
/// own functions.
const PLATFORM: &str = "pg_catalog, pg_temp";

/// Disables event triggers, whose functions may be a project's. Not possible before PostgreSQL 17.
const WITHOUT_EVENT_TRIGGERS: &str = "do $$ begin
  if pg_catalog.current_setting('is_superuser') = 'on'
     and pg_catalog.current_setting('event_triggers', true) is not null then
    set event_triggers = off;
  end if;
end $$";

/// An exclusive connection. The driver task ends when the client is dropped.
pub struct Session {
    pub client: Client,
    /// Whether statements reserved for superusers are replaced by functions of the platform.
    emulates: bool,
    /// Whether it does the platform's work, isolated from a project's objects.
    is_platforms: bool,
    _driver: JoinHandle<()>,
}

impl Session {
    /// For a project's own work.
    pub async fn connect(url: &str) -> Result<Self, MigrateError> {
        Self::open(url, false).await
    }

    /// For the platform's work, as its administrator: isolated from a project's functions and triggers.
    pub async fn connect_for_platform(url: &str) -> Result<Self, MigrateError> {
        Self::open(url, true).await
    }

    async fn open(url: &str, is_platforms: bool) -> Result<Self, MigrateError> {
        let mut config: tokio_postgres::Config = url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
        config.application_name("ferrobase migrate");
        if config.get_tcp_user_timeout().is_none() {
            // A statement may run for longer while PostgreSQL reads none of those that were sent ahead.
            config.tcp_user_timeout(Duration::ZERO);
        }
        let (client, connection) = db::connect(&config).await.map_err(unopened)?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a migration connection ended");
            }
        });
        let mut session = Self { client, emulates: false, is_platforms, _driver: driver };
        if is_platforms {
            session.keep_out_projects().await?;
        }
        session.require_version().await?;
        let stand_in = "select to_regprocedure('ferrobase.create_event_trigger(text, text, text[], regprocedure)')
                               is not null and not (select rolsuper from pg_roles where rolname = current_user)";
        session.emulates = session.client.query_one(stand_in, &[]).await?.get(0);
        Ok(session)
    }

    async fn keep_out_projects(&self) -> Result<(), MigrateError> {
        self.client.batch_execute(&format!("set search_path = {PLATFORM}; {WITHOUT_EVENT_TRIGGERS}")).await?;
        Ok(())
    }

    /// Connects and waits until no other instance migrates this database. The lock ends with the connection.
    ///
    /// The lock is polled, because a statement that waits for it would hold a snapshot, and `create index
    /// concurrently` in the instance with the lock waits for all snapshots to end.
    pub async fn connect_alone(url: &str) -> Result<Self, MigrateError> {
        Self::connect(url).await?.alone().await
    }

    /// [`Self::connect_for_platform`] and the same.
    pub async fn connect_alone_for_platform(url: &str) -> Result<Self, MigrateError> {
        Self::connect_for_platform(url).await?.alone().await
    }

    async fn alone(self) -> Result<Self, MigrateError> {
        let session = self;
        // The owner's role may carry time limits that are meant for requests.
        let limits = format!("set statement_timeout = 0; set lock_timeout = 0; {NOTICE_OUR_DEATH}");
        session.client.batch_execute(&limits).await?;
        let mut is_told = false;
        loop {
            if session.client.query_one("select pg_try_advisory_lock($1)", &[&LOCK]).await?.get(0) {
                return Ok(session);
            }
            if !is_told {
                is_told = true;
                tracing::info!("another instance is updating the database; waiting for it");
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

    /// Resets the session for a file, outside of a transaction.
    pub async fn reset(&self) -> Result<(), MigrateError> {
        self.in_order([String::from("rollback"), self.cleaning()].iter().map(String::as_str))
            .await
            .map_err(|(_, e)| e)?;
        self.keep_out().await
    }

    /// Resets roles and settings of an earlier file, and puts extensions on the search path.
    pub async fn clean(&self) -> Result<(), MigrateError> {
        self.client.batch_execute(&self.cleaning()).await?;
        self.keep_out().await
    }

    fn cleaning(&self) -> String {
        let path = if self.is_platforms { PLATFORM } else { PROJECT };
        format!(
            "reset session authorization; reset role; reset all; set search_path = {path}; \
             set statement_timeout = 0; set lock_timeout = 0; set client_min_messages = warning; {NOTICE_OUR_DEATH}"
        )
    }

    async fn keep_out(&self) -> Result<(), MigrateError> {
        if self.is_platforms {
            self.keep_out_projects().await?;
        }
        Ok(())
    }

    /// Tells the API to reload its schema cache if event triggers do not.
    pub async fn tell_api(&self) -> Result<(), MigrateError> {
        self.reset().await?;
        self.client.batch_execute("notify pgrst, 'reload schema'").await?;
        Ok(())
    }

    /// Lets the statements of this transaction wait for a lock for so long.
    pub(super) async fn limit_waits(&self, limit: Duration) -> Result<(), MigrateError> {
        Ok(self.client.batch_execute(&format!("set local lock_timeout = {}", limit.as_millis())).await?)
    }

    /// Runs the statements of a file in the transaction of this attempt, which notes when something of the file is committed.
    pub(super) async fn statements(&self, file: &SqlFile, attempt: &mut Attempt) -> Result<(), MigrateError> {
        let statements = split(&file.text);
        let mut next = 0;
        while let Some(statement) = statements.get(next) {
            if attempt.is_swift() {
                let ahead = statements[next..].iter().take(AHEAD);
                let together: Vec<&Statement<'_>> = ahead.take_while(|one| self.is_sent_ahead(one)).collect();
                if together.len() > 1 {
                    next += together.len();
                    let sent: Vec<_> = together.iter().map(|one| self.emulated(one.text)).collect();
                    let texts = together.iter().zip(&sent).map(|(one, instead)| instead.as_deref().unwrap_or(one.text));
                    self.in_order(texts)
                        .await
                        .map_err(|(place, error)| in_file(&file.file, &file.text, together[place], &error))?;
                    continue;
                }
            }
            next += 1;
            let role = statement.role();
            let located = |e: tokio_postgres::Error| in_file(&file.file, &file.text, statement, &e);
            match role {
                Role::Begins => continue,
                Role::Alone => {
                    self.client.batch_execute("commit").await.map_err(located)?;
                    attempt.keep();
                }
                Role::Plain | Role::Ends => {}
            }
            if statement.sets("lock_timeout") {
                attempt.leave();
            } else if let Some(limit) = attempt.change(Instant::now()) {
                self.limit_waits(limit).await?;
            }
            match statement.data {
                Some(data) => self.copy(statement.text, data).await.map_err(located)?,
                None => {
                    let instead = self.instead_of(statement.text).await.map_err(located)?;
                    let text = instead.as_deref().unwrap_or(statement.text);
                    self.client.batch_execute(text).await.map_err(located)?;
                }
            }
            if role == Role::Ends || role == Role::Alone {
                attempt.keep();
                self.client.batch_execute("begin").await?;
            }
        }
        Ok(())
    }

    /// Sends all at once and waits for the answers, instead of waiting for each before the next is sent. After a failure, whose place
    /// is returned, the server refuses the rest of the transaction.
    async fn in_order<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Result<(), (usize, tokio_postgres::Error)> {
        let mut answers = Vec::new();
        for text in texts {
            let mut answer = Box::pin(self.client.batch_execute(text));
            // The first poll sends it.
            let early = futures_util::poll!(&mut answer);
            answers.push((answer, early));
        }
        for (place, (answer, early)) in answers.into_iter().enumerate() {
            let outcome = match early {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => answer.await,
            };
            outcome.map_err(|error| (place, error))?;
        }
        Ok(())
    }

    /// Whether nothing has to be known before the next statement is sent.
    fn is_sent_ahead(&self, statement: &Statement<'_>) -> bool {
        let text = statement.text;
        let is_asked_about = || {
            CreateExtension::of(text).is_some()
                || DropExtension::of(text).is_some()
                || commented_extension(text).is_some()
        };
        statement.is_sent_ahead() && (self.is_platforms || !is_asked_about())
    }

    fn emulated(&self, statement: &str) -> Option<String> {
        if self.is_platforms || !self.emulates { None } else { emulated(statement) }
    }

    /// What runs in a project's statement's place, if anything.
    async fn instead_of(&self, statement: &str) -> Result<Option<String>, tokio_postgres::Error> {
        if self.is_platforms {
            return Ok(None);
        }
        if let Some(extension) = CreateExtension::of(statement) {
            let here = "select count(*) > 0, coalesce(bool_or(version = $2), false), count(schema) > 0
                        from pg_catalog.pg_available_extension_versions where name = $1";
            let wanted = extension.version.as_deref().unwrap_or_default();
            let row = self.client.query_one(here, &[&extension.name, &wanted]).await?;
            let (is_here, has_version, has_own_schema): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
            if is_here {
                return Ok(extension.adjusted(has_version, has_own_schema));
            }
            // Of the embedded PostgreSQL: it says what is wrong.
            return foreign::instead_of(&self.client, &extension).await;
        }
        if let Some(dropped) = DropExtension::of(statement)
            && self.records_extensions().await?
        {
            return foreign::dropped(&self.client, &dropped).await;
        }
        if let Some(extension) = commented_extension(statement)
            && self.records_extensions().await?
            && foreign::is_recorded(&self.client, &extension).await?
        {
            return Ok(Some("select 1".to_owned()));
        }
        Ok(self.emulated(statement))
    }

    async fn records_extensions(&self) -> Result<bool, tokio_postgres::Error> {
        let there = "select pg_catalog.to_regclass('_supavisor.extensions') is not null";
        Ok(self.client.query_one(there, &[]).await?.get(0))
    }

    async fn copy(&self, statement: &str, data: &str) -> Result<(), tokio_postgres::Error> {
        let sink = self.client.copy_in(statement).await?;
        let mut sink = std::pin::pin!(sink);
        sink.send(bytes::Bytes::copy_from_slice(data.as_bytes())).await?;
        sink.finish().await.map(drop)
    }
}
