//! A bounded pool of connections to one database as one login role.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, RecyclingMethod, Runtime, Timeouts};

use super::{Refusal, tls, with_causes};

/// How a pool behaves; defaults are PostgREST's.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Most connections open at once.
    pub size: usize,
    /// How long a request waits for a free connection.
    pub acquire_timeout: Duration,
    /// `application_name` shown in `pg_stat_activity` where the connection string names none.
    pub application_name: String,
    /// A statement that each new connection begins with.
    pub prelude: Option<&'static str>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            size: 10,
            acquire_timeout: Duration::from_secs(10),
            application_name: "ferrobase".to_owned(),
            prelude: None,
        }
    }
}

/// A fault of the database or on the way to it.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    #[error("the database URL is not usable: {0}")]
    Url(String),
    #[error("timed out waiting for a database connection")]
    PoolTimeout,
    #[error("cannot connect to the database: {0}")]
    Connect(String),
    /// So many wait already that waiting would be in vain.
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
    /// The caller's role is none, or not one that this login may take.
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

/// Connections to one database as one login role. Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    inner: deadpool_postgres::Pool,
    config: tokio_postgres::Config,
    acquire_timeout: Duration,
}

impl Pool {
    /// Parses `url` (postgres URL or key-value form); nothing is connected yet.
    pub fn new(url: &str, options: &PoolOptions) -> Result<Self, DbError> {
        let mut config: tokio_postgres::Config =
            url.parse().map_err(|e: tokio_postgres::Error| DbError::Url(e.to_string()))?;
        if config.get_application_name().is_none() {
            config.application_name(&options.application_name);
        }
        Self::of(config, options.size, options.acquire_timeout, options.prelude)
    }

    /// Another pool to the same database as the same role, of at most `size` connections: for work that a request
    /// does beside the transaction it holds, and must not wait for connections that wait for it, or that has a
    /// `prelude` of its own.
    pub fn beside(&self, size: usize, prelude: Option<&'static str>) -> Result<Self, DbError> {
        Self::of(self.config.clone(), size, self.acquire_timeout, prelude)
    }

    fn of(
        config: tokio_postgres::Config,
        size: usize,
        acquire_timeout: Duration,
        prelude: Option<&'static str>,
    ) -> Result<Self, DbError> {
        let manager =
            Manager::from_config(config.clone(), tls(), ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let timeouts = Timeouts { wait: Some(acquire_timeout), create: Some(acquire_timeout), recycle: None };
        let begin = Hook::async_fn(move |client, _| {
            Box::pin(async move {
                match prelude {
                    Some(sql) => client.batch_execute(sql).await.map_err(HookError::Backend),
                    None => Ok(()),
                }
            })
        });
        let inner = deadpool_postgres::Pool::builder(manager)
            .max_size(size)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .post_create(begin)
            .build()
            .map_err(|e| DbError::Url(e.to_string()))?;
        Ok(Self { inner, config, acquire_timeout })
    }

    /// Closes all idle connections: when one was found dead, the others may be, too.
    pub fn flush(&self) {
        self.inner.retain(|_, _| false);
    }

    /// Asks the database for a sign of life, three seconds at most.
    pub async fn answers(&self) -> Result<(), DbError> {
        let asked = async { Ok(self.connection().await?.simple_query("select 1").await.map(drop)?) };
        tokio::time::timeout(Duration::from_secs(3), asked).await.unwrap_or(Err(DbError::PoolTimeout))
    }

    /// A connection that nobody else uses until it is dropped.
    pub async fn connection(&self) -> Result<Object, DbError> {
        self.inner.get().await.map_err(|error| match error {
            deadpool_postgres::PoolError::Timeout(_) => DbError::PoolTimeout,
            deadpool_postgres::PoolError::Backend(e)
            | deadpool_postgres::PoolError::PostCreateHook(HookError::Backend(e)) => DbError::Connect(with_causes(&e)),
            other => DbError::Connect(other.to_string()),
        })
    }
}
