//! The state that changes while the server runs, configuration and schema cache, and how it is reloaded.
//!
//! A request reads [`Live::settings`] and [`Live::cache`] once and keeps them. Neither waits for a load. A reload is requested by
//! `NOTIFY` (see [`listener`]), by SIGUSR1 (schema) or SIGUSR2 (configuration), or by [`Live::request`]. Requests that arrive
//! during a reload are merged into one.
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
use tokio::sync::{Notify, watch};

use super::authenticate::{Authenticator, CacheCounters};
use crate::config::rest::{FunctionName, over};
use crate::config::{Problems, RestConfig, Source};
use crate::db::{DbError, Pool, replaced};
use crate::jwt::Issuers;
use crate::schema_cache::introspect::{Pace, Scope, load};
use crate::schema_cache::{SchemaCache, SchemaCacheHandle};

pub use in_database::{RoleSetting, RoleSettings};

/// The part of the configuration that requests use. It is replaced as a whole.
pub struct Settings {
    pub config: RestConfig,
    pub authenticator: Authenticator,
    pub roles: RoleSettings,
}

impl Settings {
    /// Whether `role` is the role of requests without a token.
    pub fn is_anon(&self, role: &str) -> bool {
        self.config.anon_role.as_deref() == Some(role)
    }
}

/// The running state of the REST API.
pub struct Live {
    /// Settings from the environment and the file. Every reload lays those of the database over them.
    source: Source,
    issuers: Option<Issuers>,
    pool: Pool,
    /// The loader thread's own pool: a connection is driven by the thread that opened it.
    loading: Pool,
    settings: ArcSwap<Settings>,
    cache: SchemaCacheHandle,
    sessions: Sessions,
    /// The number of schema caches loaded so far.
    schema_epoch: AtomicU64,
    wanted: Wanted,
    is_loaded: AtomicBool,
    /// Whether [`Live::settings`] include those of the database.
    is_configured: AtomicBool,
    /// Notified when the listener is listening or has failed to.
    listening: Notify,
    /// The database in which the listener listened last, of [`replaced::times`].
    listening_in: watch::Sender<Option<u64>>,
    /// Held while a load is published, so that a load from a former database never is.
    publishing: Mutex<()>,
    /// Notified after every successful load.
    loaded: Notify,
    /// Notified when the database is gone and recovery is disabled.
    given_up: Notify,
    /// Set when the server stops: later failures are expected and not logged.
    is_stopping: AtomicBool,
    pub counters: Counters,
}

/// Configuration and schema cache of one database.
#[derive(Clone)]
pub struct Loaded {
    settings: Arc<Settings>,
    cache: Arc<SchemaCache>,
}

/// What to reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The configuration and then the schema cache.
    Schema,
    Configuration,
}

/// The settings that sessions start with, as of the last load.
#[derive(Default)]
struct Sessions {
    defaults: Mutex<Option<String>>,
    epoch: AtomicU64,
}

impl Sessions {
    /// Whether open sessions are outdated: a new one would start with other settings, or that is unknown.
    fn note(&self, defaults: String) {
        let mut known = self.defaults.lock();
        if known.as_ref() != Some(&defaults) {
            *known = Some(defaults);
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Forgets them: after a reconnect it may be another database.
    fn forget(&self) {
        *self.defaults.lock() = None;
    }
}

/// Pending reloads, at most one of each kind.
#[derive(Default)]
struct Wanted {
    schema: AtomicBool,
    configuration: AtomicBool,
    bell: Notify,
}

/// Counters since the start, for `/metrics`.
#[derive(Debug, Default)]
pub struct Counters {
    pub loads: AtomicU64,
    pub failed_loads: AtomicU64,
    /// The duration of the last load.
    pub load_micros: AtomicU64,
    pub tokens: Arc<CacheCounters>,
}

/// The first and the longest pause between attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32));

/// The longest that the first load waits for the listener.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// Reads the configuration of environment and file. [`Live::start`] reads the rest.
    pub fn new(source: Source, pool: Pool) -> Result<Arc<Self>, Problems> {
        Self::trusting(source, pool, None)
    }

    /// The same; tokens of `issuers` count as well.
    pub fn trusting(source: Source, pool: Pool, issuers: Option<Issuers>) -> Result<Arc<Self>, Problems> {
        let config = RestConfig::load(&source)?;
        let counters = Counters::default();
        let authenticator = Authenticator::new(&config, issuers.clone(), counters.tokens.clone());
        Ok(Arc::new(Self {
            source,
            issuers,
            loading: pool.beside(2, None).map_err(|error| Problems(vec![error.to_string()]))?,
            pool,
            sessions: Sessions::default(),
            schema_epoch: AtomicU64::new(0),
            settings: ArcSwap::from_pointee(Settings { config, authenticator, roles: RoleSettings::default() }),
            cache: SchemaCacheHandle::default(),
            wanted: Wanted::default(),
            is_loaded: AtomicBool::new(false),
            is_configured: AtomicBool::new(false),
            listening: Notify::new(),
            listening_in: watch::Sender::new(None),
            publishing: Mutex::default(),
            loaded: Notify::new(),
            given_up: Notify::new(),
            is_stopping: AtomicBool::new(false),
            counters,
        }))
    }

    /// Makes the first attempt to load everything, then continues in the background: retries, reloads, listening.
    ///
    /// Fails if the configuration in the database is invalid. A database that cannot be reached is retried.
    pub async fn start(self: &Arc<Self>) -> Result<(), Problems> {
        loader::start(self).await?;
        tokio::spawn(self.clone().watch_signals());
        Ok(())
    }

    /// Opens the connections that the first load needs, so that it does not wait for them later.
    async fn open_ahead(&self) {
        let settings = self.settings();
        // Callers get the reason why no connection could be opened.
        match (settings.config.db_config, settings.config.pool.size) {
            (true, 0 | 1) => {}
            (true, _) | (false, 0 | 1) => drop(self.loading.lease().await),
            (false, _) => drop(join(self.loading.lease(), self.loading.lease()).await),
        }
    }

    /// Fails only if the configuration in the database is invalid.
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

    /// How often open sessions have become outdated since the start.
    pub fn session_epoch(&self) -> u64 {
        self.sessions.epoch.load(Ordering::Acquire)
    }

    /// The number of the schema cache that [`Live::cache`] returns, or of a later one.
    pub fn schema_epoch(&self) -> u64 {
        self.schema_epoch.load(Ordering::Acquire)
    }

    /// The current configuration.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// The current schema cache; none before the first successful load.
    pub fn cache(&self) -> Option<Arc<SchemaCache>> {
        self.cache.load()
    }

    /// Whether the last load succeeded and no retry is pending.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Acquire)
    }

    /// The last loaded state, unless a load is pending.
    pub fn loaded(&self) -> Option<Loaded> {
        let cache = self.cache().filter(|_| self.is_loaded())?;
        Some(Loaded { settings: self.settings(), cache })
    }

    /// Uses configuration and cache loaded earlier from an identical database, after a replacement. Returns once the
    /// listener is listening.
    pub async fn put_back(&self, loaded: &Loaded) {
        let database = replaced::times();
        {
            let _publishing = self.publishing.lock();
            self.settings.store(Arc::clone(&loaded.settings));
            self.schema_epoch.fetch_add(1, Ordering::AcqRel);
            self.cache.put_back(Arc::clone(&loaded.cache)).into_iter().for_each(loader::release);
            self.is_loaded.store(true, Ordering::Release);
        }
        self.loaded.notify_waiters();
        if !loaded.settings.config.channel_enabled {
            return;
        }
        let mut listening = self.listening_in.subscribe();
        let listens = listening.wait_for(|listening| *listening == Some(database));
        if !matches!(tokio::time::timeout(LISTEN_TIMEOUT, listens).await, Ok(Ok(_))) {
            self.request(Reload::Schema);
        }
    }

    /// Loads everything again after a replacement of the database, and waits for it.
    pub async fn reload(&self) {
        // Requests wait for it, so it is loaded at once.
        self.is_loaded.store(false, Ordering::Release);
        self.request(Reload::Schema);
        self.until_loaded().await;
    }

    /// Waits for a successful load.
    pub async fn until_loaded(&self) {
        loop {
            let loaded = self.loaded.notified();
            if self.is_loaded() {
                return;
            }
            loaded.await;
        }
    }

    /// Waits until the database is found to be gone while `db-pool-automatic-recovery` is off.
    pub async fn until_given_up(&self) {
        self.given_up.notified().await;
    }

    /// Announces that the database is about to go away on purpose.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Handles a database that cannot be reached. Only a server of the REST API alone ends because of it.
    fn note_lost(&self) {
        if !self.settings().config.pool.automatic_recovery {
            tracing::error!("the database is gone and automatic recovery is disabled");
            self.given_up.notify_one();
        }
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Requests a reload and returns at once.
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
            let database = replaced::times();
            if configuration || schema {
                match self.load_configuration().await {
                    Ok(()) => tracing::info!("the configuration was loaded"),
                    Err(_) if replaced::times() != database || self.is_stopping.load(Ordering::Acquire) => {}
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
            if self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            let pause = backoff.next();
            tracing::error!(%error, seconds = pause.as_secs(), "the schema cache could not be loaded, retrying");
            tokio::time::sleep(pause).await;
        }
    }

    async fn load_schema(&self) -> Result<(), DbError> {
        let started = Instant::now();
        let settings = self.settings();
        let database = replaced::times();
        let loaded = self.introspect(&settings.config).await;
        let _publishing = self.publishing.lock();
        if replaced::times() != database {
            // Outdated: the code that replaced the database also loads its cache.
            return Ok(());
        }
        match loaded {
            Ok((cache, session_defaults)) => {
                let summary = cache.summary();
                // Before the cache is published: a request that sees the new cache must not use a statement prepared for the old one.
                self.schema_epoch.fetch_add(1, Ordering::AcqRel);
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
                // If one connection has failed, others may be dead too.
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

    /// Loads the cache and the settings that a new session starts with. A reload runs its queries one at a time with pauses, or it
    /// would starve requests on a machine with two cores.
    async fn introspect(&self, config: &RestConfig) -> Result<(SchemaCache, String), DbError> {
        let scope = Scope {
            schemas: config.schemas.clone(),
            extra_search_path: config.extra_search_path.clone(),
            hoisted_settings: config.hoisted_tx_settings.clone(),
        };
        let first = self.loading.lease().await?;
        let session_defaults = in_database::load_session_defaults(&first).await?;
        // The first load keeps requests waiting, so it reads over two connections if that many are allowed.
        let at_once = !self.is_loaded();
        let second = if at_once && config.pool.size >= 2 { Some(self.loading.lease().await?) } else { None };
        let pace = if at_once { Pace::AtOnce } else { Pace::Gentle };
        let cache = load(&first, second.as_deref(), &scope, pace).await?;
        // Close the second connection: reloads need only one.
        if let Some(second) = second {
            second.close();
        }
        Ok((cache, session_defaults))
    }

    /// Reads the settings file, files named by settings and the database again. The environment stays that of the start.
    async fn load_configuration(&self) -> Result<(), ConfigurationFault> {
        let database = replaced::times();
        let source = self.source.reread();
        let environment = RestConfig::load(&source).map_err(ConfigurationFault::Wrong)?;
        let (config, roles) = if environment.db_config {
            let connection = self.loading.lease().await?;
            let roles = in_database::load_role_settings(&connection).await?;
            let read = async |pre_config: Option<&FunctionName>| {
                let stored = in_database::load_settings(&connection, pre_config).await?;
                RestConfig::load(&over(&source, &stored)).map_err(ConfigurationFault::Wrong)
            };
            let named = environment.pre_config.clone();
            let mut config = self.or_at_first(read(named.as_ref()).await, environment)?;
            // The database may also name the function.
            if config.pre_config != named {
                config = self.or_at_first(read(config.pre_config.as_ref()).await, config)?;
            }
            (config, roles)
        } else {
            (environment, RoleSettings::default())
        };
        let authenticator = Authenticator::new(&config, self.issuers.clone(), self.counters.tokens.clone());
        let _publishing = self.publishing.lock();
        if replaced::times() != database {
            return Ok(());
        }
        self.settings.store(Arc::new(Settings { config, authenticator, roles }));
        self.is_configured.store(true, Ordering::Release);
        Ok(())
    }

    /// The configuration that was read. If the database refuses and there is no older configuration, the one without the
    /// database's part.
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

/// Whether an error means that the database cannot be reached, as opposed to an error that it returned.
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
