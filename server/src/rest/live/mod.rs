//! What changes while the server runs: configuration and schema cache, and how they are loaded again.
//!
//! Requests take [`Live::settings`] and [`Live::cache`] once and keep them; neither waits for a load. Reloads are
//! asked for by `NOTIFY` (see [`listener`]), by SIGUSR1 (schema) and SIGUSR2 (configuration), or by
//! [`Live::request`]; while one runs, any number of further requests are one.
//! Reference: PostgREST `AppState/Reload.hs`.

mod in_database;
mod listener;
mod loader;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures_util::future::join;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::authenticate::{Authenticator, CacheCounters};
use crate::config::rest::{FunctionName, over};
use crate::config::{Problems, RestConfig, Source};
use crate::db::{DbError, Pool};
use crate::schema_cache::introspect::{Pace, Scope, load};
use crate::schema_cache::{SchemaCache, SchemaCacheHandle};

pub use in_database::{RoleSetting, RoleSettings};

/// Everything of the configuration that requests ask; swapped in whole.
pub struct Settings {
    pub config: RestConfig,
    pub authenticator: Authenticator,
    pub roles: RoleSettings,
}

/// The running state of the REST API.
pub struct Live {
    /// Environment and file; what lies in the database is laid over it at every reload.
    source: Source,
    pool: Pool,
    /// The loading thread's own: who opens a connection is woken by it.
    loading: Pool,
    settings: ArcSwap<Settings>,
    cache: SchemaCacheHandle,
    sessions: Sessions,
    wanted: Wanted,
    is_loaded: AtomicBool,
    /// Whether [`Live::settings`] hold what the database says, too.
    is_configured: AtomicBool,
    /// Rung when the listener listens, or has failed to.
    listening: Notify,
    /// Rung after every successful load.
    loaded: Notify,
    /// Rung when the database is gone and nobody is to wait for it.
    given_up: Notify,
    /// The server ends: what fails from now on is no news.
    is_stopping: AtomicBool,
    pub counters: Counters,
}

/// What is to be loaded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The schema cache, and the configuration before it.
    Schema,
    Configuration,
}

/// What sessions begin with, as of the last load.
#[derive(Default)]
struct Sessions {
    defaults: Mutex<Option<String>>,
    epoch: AtomicU64,
}

impl Sessions {
    /// Open ones no longer fit if a new one would begin with other settings, or if it is not known.
    fn note(&self, defaults: String) {
        let mut known = self.defaults.lock();
        if known.as_ref() != Some(&defaults) {
            *known = Some(defaults);
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The database may be another one when it is reached again.
    fn forget(&self) {
        *self.defaults.lock() = None;
    }
}

/// At most one of each kind waits.
#[derive(Default)]
struct Wanted {
    schema: AtomicBool,
    configuration: AtomicBool,
    bell: Notify,
}

/// Counts since start, for `/metrics`.
#[derive(Debug, Default)]
pub struct Counters {
    pub loads: AtomicU64,
    pub failed_loads: AtomicU64,
    /// How long the last load took.
    pub load_micros: AtomicU64,
    pub tokens: Arc<CacheCounters>,
}

/// First and longest pause between attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32));

/// How long the first load waits for the listener.
const LISTEN_PATIENCE: Duration = Duration::from_secs(1);

/// Pauses that double up to a bound.
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(BACKOFF.0)
    }

    fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(BACKOFF.1);
        pause
    }
}

impl Live {
    /// With the configuration of environment and file alone; [`Live::start`] reads the rest.
    pub fn new(source: Source, pool: Pool) -> Result<Arc<Self>, Problems> {
        let config = RestConfig::load(&source)?;
        let counters = Counters::default();
        let authenticator = Authenticator::new(&config, counters.tokens.clone());
        Ok(Arc::new(Self {
            source,
            loading: pool.beside(2, None).map_err(|error| Problems(vec![error.to_string()]))?,
            pool,
            sessions: Sessions::default(),
            settings: ArcSwap::from_pointee(Settings { config, authenticator, roles: RoleSettings::default() }),
            cache: SchemaCacheHandle::default(),
            wanted: Wanted::default(),
            is_loaded: AtomicBool::new(false),
            is_configured: AtomicBool::new(false),
            listening: Notify::new(),
            loaded: Notify::new(),
            given_up: Notify::new(),
            is_stopping: AtomicBool::new(false),
            counters,
        }))
    }

    /// Makes the first attempt to load everything, then goes on in the background: retries, reloads, listening.
    ///
    /// Errors if the configuration in the database is wrong; a database that cannot be reached is waited for.
    pub async fn start(self: &Arc<Self>) -> Result<(), Problems> {
        loader::start(self).await?;
        tokio::spawn(self.clone().watch_signals());
        Ok(())
    }

    /// Opens what the first load will need beside the configuration's connection, so that nobody waits for it later.
    async fn open_ahead(&self) {
        let settings = self.settings();
        // Who uses a connection will be told why there is none.
        match (settings.config.db_config, settings.config.pool.size) {
            (true, 0 | 1) => {}
            (true, _) | (false, 0 | 1) => drop(self.loading.connection().await),
            (false, _) => drop(join(self.loading.connection(), self.loading.connection()).await),
        }
    }

    /// Only what lies in the database and is wrong is an error.
    async fn load_first_configuration(&self) -> Result<(), Problems> {
        match self.load_configuration().await {
            Err(ConfigurationFault::Wrong(problems)) => return Err(problems),
            Err(ConfigurationFault::Database(error)) => {
                tracing::error!(%error, "the configuration in the database could not be read");
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Counts how often a session that is open has become unlike one that would be opened now.
    pub fn session_epoch(&self) -> u64 {
        self.sessions.epoch.load(Ordering::Acquire)
    }

    /// The configuration as of now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// The schema cache as of now; none before the first load has succeeded.
    pub fn cache(&self) -> Option<Arc<SchemaCache>> {
        self.cache.load()
    }

    /// Whether the last load succeeded and none is being retried.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Acquire)
    }

    /// Returns once a load has succeeded.
    pub async fn until_loaded(&self) {
        loop {
            let loaded = self.loaded.notified();
            if self.is_loaded() {
                return;
            }
            loaded.await;
        }
    }

    /// Returns once the database was found gone with `db-pool-automatic-recovery` off.
    pub async fn until_given_up(&self) {
        self.given_up.notified().await;
    }

    /// Tells that the database will go away on purpose.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// The database cannot be reached, or not any more. Only a server of this API alone ends for that.
    fn note_lost(&self) {
        if !self.settings().config.pool.automatic_recovery {
            tracing::error!("the database is gone and automatic recovery is disabled");
            self.given_up.notify_one();
        }
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Asks for a reload and returns at once.
    pub fn request(&self, what: Reload) {
        match what {
            Reload::Schema => self.wanted.schema.store(true, Ordering::Release),
            Reload::Configuration => self.wanted.configuration.store(true, Ordering::Release),
        }
        self.wanted.bell.notify_one();
    }

    async fn serve_reloads(self: &Arc<Self>) {
        loop {
            self.wanted.bell.notified().await;
            let configuration = self.wanted.configuration.swap(false, Ordering::AcqRel);
            let schema = self.wanted.schema.swap(false, Ordering::AcqRel);
            if configuration || schema {
                match self.load_configuration().await {
                    Ok(()) => tracing::info!("the configuration was loaded"),
                    Err(error) => tracing::error!(%error, "the configuration could not be loaded, keeping the old one"),
                }
            }
            if schema {
                self.load_schema_until_it_succeeds().await;
            }
        }
    }

    async fn load_schema_until_it_succeeds(&self) {
        let mut backoff = Backoff::new();
        while let Err(error) = self.load_schema().await {
            let pause = backoff.next();
            tracing::error!(%error, seconds = pause.as_secs(), "the schema cache could not be loaded, retrying");
            tokio::time::sleep(pause).await;
        }
    }

    async fn load_schema(&self) -> Result<(), DbError> {
        let started = Instant::now();
        let settings = self.settings();
        let loaded = self.introspect(&settings.config).await;
        match loaded {
            Ok((cache, session_defaults)) => {
                let summary = cache.summary();
                let replaced = self.cache.store(cache);
                self.sessions.note(session_defaults);
                replaced.into_iter().for_each(loader::release);
                self.is_loaded.store(true, Ordering::Release);
                self.counters.loads.fetch_add(1, Ordering::Relaxed);
                let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.counters.load_micros.store(micros, Ordering::Relaxed);
                self.loaded.notify_waiters();
                tracing::info!(ms = micros / 1000, "schema cache loaded: {summary}");
                Ok(())
            }
            Err(error) => {
                self.is_loaded.store(false, Ordering::Release);
                self.counters.failed_loads.fetch_add(1, Ordering::Relaxed);
                // A connection that failed may not be the only one that is dead.
                self.pool.flush();
                self.loading.flush();
                self.sessions.forget();
                if is_gone(&error) {
                    self.note_lost();
                }
                Err(error)
            }
        }
    }

    /// The cache, and what a new session begins with. A reload runs its queries one after another and at a gentle pace,
    /// or it would leave requests no processor on a machine that has two.
    async fn introspect(&self, config: &RestConfig) -> Result<(SchemaCache, String), DbError> {
        let scope = Scope {
            schemas: config.schemas.clone(),
            extra_search_path: config.extra_search_path.clone(),
            hoisted_settings: config.hoisted_tx_settings.clone(),
        };
        let first = self.loading.connection().await?;
        let session_defaults = in_database::load_session_defaults(&first).await?;
        // While requests wait, two connections read, unless fewer are allowed.
        let at_once = !self.is_loaded();
        let second = if at_once && config.pool.size >= 2 { Some(self.loading.connection().await?) } else { None };
        let pace = if at_once { Pace::AtOnce } else { Pace::Gentle };
        let cache = load(&first, second.as_deref().map(|client| &**client), &scope, pace).await?;
        // Closed, not given back: reloads take one.
        drop(second.map(deadpool_postgres::Object::take));
        Ok((cache, session_defaults))
    }

    /// The environment is that of the start; the settings file, files named by settings and what lies in the
    /// database are read anew.
    async fn load_configuration(&self) -> Result<(), ConfigurationFault> {
        let source = self.source.reread();
        let environment = RestConfig::load(&source).map_err(ConfigurationFault::Wrong)?;
        let (config, roles) = if environment.db_config {
            let connection = self.loading.connection().await?;
            let roles = in_database::load_role_settings(&connection).await?;
            let read = async |pre_config: Option<&FunctionName>| {
                let stored = in_database::load_settings(&connection, pre_config).await?;
                RestConfig::load(&over(&source, &stored)).map_err(ConfigurationFault::Wrong)
            };
            let named = environment.pre_config.clone();
            let mut config = self.or_at_first(read(named.as_ref()).await, environment)?;
            // The function may itself be named in the database.
            if config.pre_config != named {
                config = self.or_at_first(read(config.pre_config.as_ref()).await, config)?;
            }
            (config, roles)
        } else {
            (environment, RoleSettings::default())
        };
        let authenticator = Authenticator::new(&config, self.counters.tokens.clone());
        self.settings.store(Arc::new(Settings { config, authenticator, roles }));
        self.is_configured.store(true, Ordering::Release);
        Ok(())
    }

    /// What was read; where the database refuses and there is no older configuration to keep, what is known without.
    fn or_at_first(
        &self,
        read: Result<RestConfig, ConfigurationFault>,
        known: RestConfig,
    ) -> Result<RestConfig, ConfigurationFault> {
        match read {
            Err(ConfigurationFault::Database(error))
                if !is_gone(&error) && !self.is_configured.load(Ordering::Acquire) =>
            {
                tracing::error!(%error, "the settings in the database could not be read, going on without");
                Ok(known)
            }
            read => read,
        }
    }

    async fn watch_signals(self: Arc<Self>) {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut schema), Ok(mut configuration)) =
            (signal(SignalKind::user_defined1()), signal(SignalKind::user_defined2()))
        else {
            tracing::warn!("SIGUSR1 and SIGUSR2 cannot be watched");
            return;
        };
        loop {
            tokio::select! {
                Some(()) = schema.recv() => self.request(Reload::Schema),
                Some(()) = configuration.recv() => self.request(Reload::Configuration),
                else => return,
            }
        }
    }
}

/// Whether an error says that there is no database to talk to, rather than what it answered.
fn is_gone(error: &DbError) -> bool {
    match error {
        DbError::Connect(_) | DbError::PoolTimeout | DbError::PoolBusy | DbError::Broken(_) => true,
        DbError::Postgres(error) => error.as_db_error().is_none(),
        DbError::Url(_) | DbError::Role(_) | DbError::TransactionEnded | DbError::Refused(_) => false,
    }
}

#[derive(Debug, thiserror::Error)]
enum ConfigurationFault {
    #[error(transparent)]
    Wrong(Problems),
    #[error(transparent)]
    Database(#[from] DbError),
}

impl From<tokio_postgres::Error> for ConfigurationFault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_one_to_thirty_two_seconds() {
        let mut backoff = Backoff::new();
        let seconds: Vec<u64> = (0..7).map(|_| backoff.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 32]);
    }
}
