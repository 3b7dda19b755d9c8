//! A bounded pool of connections to one database as one login role.

use std::sync::Arc;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Manager, Metrics, PoolError, RecycleError, RecycleResult, Timeouts};
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tokio_postgres::Config;

use super::limits::{ACQUIRE, OPEN};
use super::line::{Line, NoTurn, Who};
use super::open::{OpenError, open};
use super::{Client, Lease, PoolFigures, Pulse, Refusal, with_causes};
use crate::http::context;
use crate::http::prometheus::Counter;

/// How a pool behaves; defaults are PostgREST's.
#[derive(Clone)]
pub struct PoolOptions {
    /// Most connections open at once.
    pub size: usize,
    /// How long a request waits for a free connection.
    pub acquire_timeout: Duration,
    /// `application_name` shown in `pg_stat_activity` where the connection string names none.
    pub application_name: String,
    /// A statement that each new connection begins with.
    pub prelude: Option<&'static str>,
    /// Whether connections keep what they have prepared. Behind a transaction pooler they do not, and no prelude is run.
    pub prepare: bool,
    /// Whether requests are refused while a long queue lasts.
    pub refuses_under_overload: bool,
    /// Shared with another pool on the same server: one connection is enough.
    pub pulse: Option<Pulse>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            size: 10,
            acquire_timeout: ACQUIRE,
            application_name: "ferrobase".to_owned(),
            prelude: None,
            prepare: true,
            refuses_under_overload: false,
            pulse: None,
        }
    }
}

/// An error of the database or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    #[error("the database URL is not usable: {0}")]
    Url(String),
    #[error("timed out waiting for a database connection")]
    PoolTimeout,
    #[error("cannot connect to the database: {0}")]
    Connect(String),
    /// The queue is so long that waiting would be pointless.
    #[error("too many requests wait for a database connection")]
    PoolBusy,
    /// A statement was refused.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// The connection broke in use.
    #[error("{0}")]
    Broken(String),
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
    /// The caller's role does not exist, or this login may not switch to it.
    #[error("{0}")]
    Role(String),
    #[error("the transaction has already ended")]
    TransactionEnded,
}

impl From<Refusal> for DbError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// `Retry-After` in seconds for requests that failed with [`DbError::is_unavailable`].
pub const RETRY_AFTER: &str = "2";
/// The same for [`DbError::PoolBusy`].
pub const RETRY_AFTER_OVERLOAD: &str = "1";

impl DbError {
    /// Whether the database is unreachable, full or overloaded, so that the same request may succeed later.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::PoolTimeout | Self::Connect(_) | Self::PoolBusy | Self::Broken(_) => true,
            Self::Postgres(error) => is_unavailable(error),
            Self::Refused(refusal) => is_state_of_unavailability(&refusal.code),
            Self::Url(_) | Self::Role(_) | Self::TransactionEnded => false,
        }
    }
}

/// Whether an error means that the database is unreachable, full or overloaded.
pub fn is_unavailable(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        Some(refusal) => is_state_of_unavailability(refusal.code().code()),
        // Not from the server: the connection broke, or a value could not be encoded.
        None => {
            error.is_closed()
                || std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
        }
    }
}

/// Connection faults, no room on the disk, in memory or for connections, shutting down, starting up, read only.
fn is_state_of_unavailability(sqlstate: &str) -> bool {
    sqlstate.starts_with("08")
        || sqlstate.starts_with("53")
        || matches!(sqlstate, "57P01" | "57P02" | "57P03" | "25006")
}

/// Connections to one database as one login role. Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    inner: managed::Pool<Opener>,
    config: Config,
    acquire_timeout: Duration,
    prepare: bool,
    pulse: Pulse,
    timeouts: Arc<Counter>,
    /// Who waits, where requests may be refused.
    line: Option<Line>,
}

/// Opens connections for a pool and checks returned ones.
pub(super) struct Opener {
    config: Config,
    prelude: Option<&'static str>,
    prepare: bool,
    pulse: Pulse,
}

impl Manager for Opener {
    type Type = Client;
    type Error = OpenError;

    async fn create(&self) -> Result<Client, OpenError> {
        let mut client = open(&self.config, Some(&self.pulse)).await?.into_client();
        if !self.prepare {
            client.prepare_nothing();
        } else if let Some(prelude) = self.prelude {
            match timeout(OPEN, client.batch_execute(prelude)).await {
                Ok(begun) => begun.map_err(OpenError::Refused)?,
                Err(_) => return Err(OpenError::Silent("a new connection does not answer".to_owned())),
            }
            client.rest();
        }
        Ok(client)
    }

    async fn recycle(&self, client: &mut Client, _: &Metrics) -> RecycleResult<OpenError> {
        if client.is_closed() || client.is_of_former_database() { Err(RecycleError::message("closed")) } else { Ok(()) }
    }
}

impl Pool {
    /// Parses `url` (postgres URL or key-value form); nothing is connected yet.
    pub fn new(url: &str, options: &PoolOptions) -> Result<Self, DbError> {
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| DbError::Url(with_causes(&e)))?;
        let pulse = options.pulse.clone().unwrap_or_else(|| Pulse::new(named(config.clone(), "ferrobase health")));
        config = named(config, &options.application_name);
        Self::of(config, options, pulse)
    }

    /// Another pool to the same database and role, with at most `size` connections. For work that a request does
    /// while it holds a transaction, which would deadlock if it waited for the same pool, or that needs its own
    /// `prelude`.
    pub fn beside(&self, size: usize, prelude: Option<&'static str>) -> Result<Self, DbError> {
        let (acquire_timeout, prepare) = (self.acquire_timeout, self.prepare);
        let options = PoolOptions { size, acquire_timeout, prelude, prepare, ..PoolOptions::default() };
        Self::of(self.config.clone(), &options, self.pulse.clone())
    }

    fn of(config: Config, options: &PoolOptions, pulse: Pulse) -> Result<Self, DbError> {
        let PoolOptions { size, acquire_timeout, prelude, prepare, refuses_under_overload, .. } = *options;
        let opener = Opener { config: config.clone(), prelude, prepare, pulse: pulse.clone() };
        let inner = managed::Pool::builder(opener)
            .max_size(size)
            .timeouts(Timeouts { wait: Some(acquire_timeout), create: None, recycle: None })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| DbError::Url(e.to_string()))?;
        let line = refuses_under_overload.then(|| Line::new(size));
        Ok(Self { inner, config, acquire_timeout, prepare, pulse, timeouts: Arc::default(), line })
    }

    /// See [`PoolOptions::refuses_under_overload`].
    pub fn refuses_under_overload(&self) -> bool {
        self.line.is_some()
    }

    /// Most connections open at once.
    pub fn max_size(&self) -> usize {
        self.inner.status().max_size
    }

    pub fn figures(&self) -> PoolFigures {
        let status = self.inner.status();
        let used = status.size.saturating_sub(status.available);
        PoolFigures {
            max: status.max_size,
            available: status.max_size.saturating_sub(used),
            waiting: status.waiting + self.line.as_ref().map_or(0, Line::waiting),
            timeouts: self.timeouts.get(),
            refused: self.line.as_ref().map_or(0, Line::refused),
        }
    }

    /// Closes all idle connections. If one was found dead, the others may be dead too.
    pub fn flush(&self) {
        self.inner.retain(|_, _| false);
    }

    /// Checks that the database answers, on a dedicated connection.
    pub async fn answers(&self) -> Result<(), DbError> {
        self.pulse.answers().await
    }

    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Leases a connection for exclusive use until it is dropped.
    ///
    /// Errors: [`DbError::PoolBusy`] under lasting overload ([`PoolOptions::refuses_under_overload`]).
    pub fn lease(&self) -> BoxFuture<'_, Result<Lease, DbError>> {
        Box::pin(self.lease_in_turn())
    }

    async fn lease_in_turn(&self) -> Result<Lease, DbError> {
        let request = self.line.as_ref().and_then(|_| context::current());
        let turn = match &self.line {
            None => None,
            Some(line) => match line.turn(Who::of(request.as_ref()), self.acquire_timeout).await {
                Ok(turn) => Some((line.clone(), turn)),
                Err(NoTurn::Refused) => return Err(DbError::PoolBusy),
                Err(NoTurn::Timeout) => return Err(self.timed_out()),
            },
        };
        match self.inner.get().await {
            Ok(held) => {
                if let Some(request) = request {
                    request.admit();
                }
                Ok(Lease::new(held, turn))
            }
            Err(PoolError::Timeout(_)) => Err(self.timed_out()),
            Err(PoolError::Backend(error)) => Err(error.into()),
            Err(other) => Err(DbError::Connect(other.to_string())),
        }
    }

    fn timed_out(&self) -> DbError {
        self.timeouts.increment();
        DbError::PoolTimeout
    }
}

/// With an `application_name`, unless it has one.
pub(super) fn named(mut config: Config, name: &str) -> Config {
    if config.get_application_name().is_none() {
        config.application_name(name);
    }
    config
}
