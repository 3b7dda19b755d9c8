//! Connections that one transaction holds alone, each with its prepared statements.
//!
//! [`ExclusivePool::hold`] gives a connection that nobody else can write to until it is given back. A holder
//! that goes away in mid-transaction (the client hung up, a task was dropped) takes its connection with it:
//! the running statement is cancelled and the connection closed, so that no role, claim or open transaction
//! reaches the next request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::{Client, Config, Statement};

use super::{DbError, tls};

/// How the pool behaves; defaults are PostgREST's.
#[derive(Clone, Debug)]
pub struct ExclusiveOptions {
    /// Most connections open at once.
    pub size: usize,
    /// How long a request waits for a connection.
    pub acquire_timeout: Duration,
    /// A connection older than this is not used again.
    pub max_lifetime: Duration,
    /// A connection unused for longer than this is not used again.
    pub max_idle: Duration,
    /// `application_name` where the connection string names none.
    pub application_name: String,
    /// Whether statements may be prepared; not behind a transaction pooler.
    pub prepare: bool,
    /// Prepared statements kept per connection; the least recently used goes first.
    pub statements: usize,
}

impl Default for ExclusiveOptions {
    fn default() -> Self {
        Self {
            size: 10,
            acquire_timeout: Duration::from_secs(10),
            max_lifetime: Duration::from_secs(1800),
            max_idle: Duration::from_secs(30),
            application_name: "ferrobase".to_owned(),
            prepare: true,
            statements: 256,
        }
    }
}

/// Figures for `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    pub max: usize,
    /// Connections that could be handed out now, open or not.
    pub available: usize,
    pub waiting: usize,
    /// Requests that waited in vain, since the start.
    pub timeouts: u64,
}

/// A bounded pool of exclusively held connections. Cheap to clone.
#[derive(Clone)]
pub struct ExclusivePool {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    options: ExclusiveOptions,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// Raised by a flush: connections of an older generation are not used again.
    generation: AtomicU64,
    waiting: AtomicUsize,
    timeouts: AtomicU64,
}

struct Connection {
    client: Client,
    statements: StatementCache,
    opened: Instant,
    used: Instant,
    generation: u64,
}

impl ExclusivePool {
    /// Parses `url` (postgres URL or key-value form); nothing is connected yet.
    pub fn new(url: &str, options: ExclusiveOptions) -> Result<Self, DbError> {
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| DbError::Url(e.to_string()))?;
        if config.get_application_name().is_none() {
            config.application_name(&options.application_name);
        }
        let shared = Shared {
            config,
            permits: Arc::new(Semaphore::new(options.size)),
            options,
            idle: Mutex::new(Vec::new()),
            generation: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            timeouts: AtomicU64::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A connection for one transaction.
    pub async fn hold(&self) -> Result<Held, DbError> {
        let shared = &self.shared;
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        let acquired = tokio::time::timeout(shared.options.acquire_timeout, self.acquire()).await;
        shared.waiting.fetch_sub(1, Ordering::Relaxed);
        match acquired {
            Ok(held) => held,
            Err(_) => {
                shared.timeouts.fetch_add(1, Ordering::Relaxed);
                Err(DbError::PoolTimeout)
            }
        }
    }

    async fn acquire(&self) -> Result<Held, DbError> {
        let shared = &self.shared;
        let permit = shared
            .permits
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| DbError::Connect("the connection pool is closed".to_owned()))?;
        let connection = match shared.take_idle() {
            Some(connection) => connection,
            None => shared.connect().await?,
        };
        Ok(Held { shared: shared.clone(), connection: Some(connection), clean: true, _permit: permit })
    }

    /// Closes idle connections now and held ones when they come back: after the schema has changed.
    pub fn flush(&self) {
        self.shared.generation.fetch_add(1, Ordering::Relaxed);
        self.shared.idle.lock().clear();
    }

    pub fn figures(&self) -> PoolFigures {
        let shared = &self.shared;
        PoolFigures {
            max: shared.options.size,
            available: shared.permits.available_permits(),
            waiting: shared.waiting.load(Ordering::Relaxed),
            timeouts: shared.timeouts.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    fn usable(&self, connection: &Connection) -> bool {
        !connection.client.is_closed()
            && connection.opened.elapsed() < self.options.max_lifetime
            && connection.used.elapsed() < self.options.max_idle
            && connection.generation == self.generation.load(Ordering::Relaxed)
    }

    /// The most recently used one that is still good; others found on the way are closed.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(connection) = idle.pop() {
            if self.usable(&connection) {
                return Some(connection);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Connection, DbError> {
        let generation = self.generation.load(Ordering::Relaxed);
        let (client, connection) =
            self.config.connect(tls()).await.map_err(|error| DbError::Connect(describe(&error)))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a database connection ended");
            }
        });
        let now = Instant::now();
        Ok(Connection {
            client,
            statements: StatementCache::new(self.options.statements),
            opened: now,
            used: now,
            generation,
        })
    }
}

/// An error with its causes, on one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// A connection held by one transaction. Dropped while [`Held::begin_use`] has not been followed by
/// [`Held::end_use`], it is closed instead of going back to the pool.
pub struct Held {
    shared: Arc<Shared>,
    connection: Option<Connection>,
    clean: bool,
    _permit: OwnedSemaphorePermit,
}

impl Held {
    /// From here on the connection may be in a transaction.
    pub fn begin_use(&mut self) {
        self.clean = false;
    }

    /// The transaction is over and known to be.
    pub fn end_use(&mut self) {
        self.clean = true;
    }

    pub fn client(&self) -> Result<&Client, DbError> {
        self.connection.as_ref().map(|c| &c.client).ok_or(DbError::TransactionEnded)
    }

    /// Whether statements may be prepared.
    pub fn prepares(&self) -> bool {
        self.shared.options.prepare
    }

    /// What is known of the statement with this text; counts as a use of it.
    pub fn statement(&mut self, text: &str) -> Known {
        match &mut self.connection {
            Some(connection) if self.shared.options.prepare => connection.statements.find(text),
            _ => Known::New,
        }
    }

    /// What is known of the statement, without this being a reason to prepare it.
    pub fn known_statement(&self, text: &str) -> Known {
        match self.connection.as_ref().and_then(|connection| connection.statements.entries.get(text)) {
            Some((Some(statement), _)) => Known::Prepared(statement.clone()),
            Some((None, _)) => Known::Seen,
            None => Known::New,
        }
    }

    /// Keeps a prepared statement, closing the least recently used one if there are too many.
    pub fn keep_statement(&mut self, text: &str, statement: Statement) {
        if let Some(connection) = &mut self.connection {
            connection.statements.insert(text, statement);
        }
    }

    /// Forgets all prepared statements: one of them no longer fits the schema.
    pub fn forget_statements(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.statements.entries.clear();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.clean {
            connection.used = Instant::now();
            if self.shared.usable(&connection) {
                self.shared.idle.lock().push(connection);
            }
            return;
        }
        let cancel = connection.client.cancel_token();
        drop(connection);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = cancel.cancel_query(tls()).await {
                    tracing::debug!(%error, "an abandoned statement could not be cancelled");
                }
            });
        }
    }
}

/// What a connection knows of a statement.
#[derive(Clone)]
pub enum Known {
    /// Never met: preparing it would cost a round trip that may not pay.
    New,
    /// Met once: from now on worth preparing.
    Seen,
    Prepared(Statement),
}

struct StatementCache {
    capacity: usize,
    clock: u64,
    entries: HashMap<Box<str>, (Option<Statement>, u64)>,
}

impl StatementCache {
    fn new(capacity: usize) -> Self {
        Self { capacity, clock: 0, entries: HashMap::new() }
    }

    fn find(&mut self, text: &str) -> Known {
        self.clock += 1;
        match self.entries.get_mut(text) {
            Some((statement, used)) => {
                *used = self.clock;
                statement.clone().map_or(Known::Seen, Known::Prepared)
            }
            None => {
                self.put(text, None);
                Known::New
            }
        }
    }

    fn insert(&mut self, text: &str, statement: Statement) {
        self.clock += 1;
        self.put(text, Some(statement));
    }

    fn put(&mut self, text: &str, statement: Option<Statement>) {
        if self.entries.len() >= self.capacity && !self.entries.contains_key(text) {
            // A tenth at a time, so that a stream of one-off statements does not search on every insert.
            let mut ages: Vec<u64> = self.entries.values().map(|(_, used)| *used).collect();
            let cut = ages.len() / 10;
            let (_, threshold, _) = ages.select_nth_unstable(cut);
            let threshold = *threshold;
            self.entries.retain(|_, (_, used)| *used > threshold);
        }
        self.entries.insert(text.into(), (statement, self.clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_worth_preparing_from_its_second_use() {
        let mut cache = StatementCache::new(4);
        assert!(matches!(cache.find("a"), Known::New));
        assert!(matches!(cache.find("a"), Known::Seen));
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let mut cache = StatementCache::new(10);
        cache.find("kept");
        for n in 0..100 {
            cache.find(&format!("one-off {n}"));
            cache.find("kept");
        }
        assert!(cache.entries.len() <= 10);
        assert!(matches!(cache.find("kept"), Known::Seen));
    }
}
