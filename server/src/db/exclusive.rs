//! Connections that one transaction holds alone, each with its prepared statements.
//!
//! [`ExclusivePool::hold`] gives a connection that nobody else can write to until it is given back. A holder that goes
//! away in mid-transaction (the client hung up) takes its connection with it: the running statement is cancelled and
//! the connection closed, so that no role, claim or open transaction reaches the next request.
//!
//! Each worker thread has a lane: a connection belongs to the lane of the thread that opened it, whose event loop
//! wakes its holder. A request takes one of its own lane where it can and another lane's where its own keeps it
//! waiting, so that a busy connection changes hands without waking another thread.

mod queue;
mod waiters;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_postgres::Config;

use super::wire::{Backend, Canceller, connect};
use super::{DbError, Query};
use queue::{Claim, PATIENCE, Replacement, State};

/// PostgreSQL compiles what it thinks to be long before it runs it. Costs of embeds add up, more so on tables that were
/// never analyzed, and then a statement of half a millisecond is compiled for a quarter of a second or several. Whoever
/// has said what `jit` is to be, in whatever place, is obeyed.
const NO_JIT: &str = "select set_config('jit', 'off', false) from pg_catalog.pg_settings \
                      where name = 'jit' and source = 'default'";

/// How the pool behaves; defaults are PostgREST's.
#[derive(Clone, Debug)]
pub struct ExclusiveOptions {
    /// Most connections open at once; one more for a moment while an old one is replaced.
    pub size: usize,
    /// How long a request waits for a connection.
    pub acquire_timeout: Duration,
    /// A connection older than this is replaced.
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
    state: Mutex<State<Connection>>,
    lanes: usize,
    /// Raised by a flush: connections of an older generation are replaced.
    generation: AtomicU64,
    timeouts: AtomicU64,
}

struct Connection {
    backend: Backend,
    canceller: Canceller,
    opened: Instant,
    used: Instant,
    generation: u64,
    lane: usize,
}

/// The lane of this thread, of so many.
fn lane_of_thread(lanes: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| number % lanes)
}

impl ExclusivePool {
    /// Parses `url` (postgres URL or key-value form); nothing is connected yet.
    pub fn new(url: &str, options: ExclusiveOptions) -> Result<Self, DbError> {
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| DbError::Url(e.to_string()))?;
        if config.get_application_name().is_none() {
            config.application_name(&options.application_name);
        }
        let lanes = std::thread::available_parallelism().map_or(1, usize::from).min(options.size.max(1));
        let shared = Shared {
            config,
            state: Mutex::new(State::new(options.size, lanes, options.acquire_timeout)),
            lanes,
            options,
            generation: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A connection for one transaction. Waits in a queue that is bounded: who could not be served in time is refused
    /// at once. Roles have their turns in it: `role` is the one that the request acts as.
    pub async fn hold(&self, role: &str) -> Result<Held, DbError> {
        let shared = &self.shared;
        let lane = lane_of_thread(shared.lanes);
        let claim = shared.state.lock().claim(lane, role, None);
        let mut ticket = match claim {
            Claim::Granted(connection) => return shared.granted(connection, lane).await,
            Claim::Full => return Err(DbError::PoolBusy),
            Claim::Wait(ticket) => ticket,
        };
        let since = tokio::time::Instant::now();
        let deadline = since + shared.options.acquire_timeout;
        for patience in [PATIENCE.0, PATIENCE.1] {
            match tokio::time::timeout_at((since + patience).min(deadline), &mut ticket).await {
                Ok(Ok(held)) => return held.ready().await,
                // A place in the queue is never given up by the pool.
                Ok(Err(_)) => return Err(DbError::Connect("the connection pool is closed".to_owned())),
                Err(_) => {}
            }
            // The lock is let go before anything is waited for or dropped.
            let claim = shared.state.lock().claim(lane, role, Some(patience));
            if let Claim::Granted(connection) = claim {
                drop(ticket);
                return shared.granted(connection, lane).await;
            }
        }
        match tokio::time::timeout_at(deadline, &mut ticket).await {
            Ok(Ok(held)) => held.ready().await,
            Ok(Err(_)) => Err(DbError::Connect("the connection pool is closed".to_owned())),
            Err(_) => {
                shared.timeouts.fetch_add(1, Ordering::Relaxed);
                Err(DbError::PoolTimeout)
            }
        }
    }

    /// Replaces all connections, each when it is given back: when new ones would begin with other settings.
    pub fn flush(&self) {
        self.shared.generation.fetch_add(1, Ordering::Relaxed);
    }

    pub fn figures(&self) -> PoolFigures {
        let mut state = self.shared.state.lock();
        PoolFigures {
            max: self.shared.options.size,
            available: state.available(),
            waiting: state.waiting(),
            timeouts: self.shared.timeouts.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    /// Neither too old nor forgotten for too long.
    fn is_usable(&self, connection: &mut Connection) -> bool {
        let now = Instant::now();
        now.duration_since(connection.opened) < self.options.max_lifetime
            && now.duration_since(connection.used) < self.options.max_idle
            && connection.backend.is_alive()
    }

    /// Still good for use, but one opened since the last [`ExclusivePool::flush`] would be better.
    fn is_old(&self, connection: &Connection) -> bool {
        connection.generation != self.generation.load(Ordering::Relaxed)
    }

    async fn granted(self: &Arc<Self>, connection: Option<Connection>, lane: usize) -> Result<Held, DbError> {
        let lane = connection.as_ref().map_or(lane, |connection| connection.lane);
        let since = Instant::now();
        Held { shared: self.clone(), connection, lane, since, clean: true, returned: false }.ready().await
    }

    async fn connect(&self, lane: usize) -> Result<Connection, DbError> {
        let generation = self.generation.load(Ordering::Relaxed);
        let (mut wire, canceller) = connect(&self.config).await?;
        // Behind a transaction pooler the session is somebody else's next.
        if self.options.prepare {
            match wire.ask(&Query::plain(NO_JIT)).await {
                Err(DbError::Refused(refusal)) if refusal.severity == "ERROR" => {
                    tracing::debug!(%refusal, "just-in-time compilation stays as it is");
                }
                answer => drop(answer?),
            }
        }
        let now = Instant::now();
        let statements = if self.options.prepare { self.options.statements } else { 0 };
        let backend = Backend::new(wire, statements);
        Ok(Connection { backend, canceller, opened: now, used: now, generation, lane })
    }

    /// Opens a successor of a connection that is old; it takes the place of an old one that is idle or comes back.
    fn replace_one(self: &Arc<Self>, lane: usize) {
        // Its event loop has to be this thread's.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        {
            let mut state = self.state.lock();
            if lane != lane_of_thread(self.lanes) || !state.begin_replacing(lane) {
                return;
            }
        }
        let shared = self.clone();
        runtime.spawn(async move {
            let connected = shared.connect(lane).await;
            if let Err(error) = &connected {
                tracing::debug!(%error, "an old connection could not be replaced");
            }
            let dropped = {
                let mut state = shared.state.lock();
                state.end_replacing(lane, connected.ok(), |connection| shared.is_old(connection))
            };
            let more = dropped.is_some();
            drop(dropped);
            if more && shared.state.lock().has_idle(lane, |connection| shared.is_old(connection)) {
                shared.replace_one(lane);
            }
        });
    }

    /// Takes a connection (or the right to open one) back and passes it on.
    fn give_back(self: &Arc<Self>, mut connection: Option<Connection>, lane: usize, held_for: Duration) {
        let is_old = connection.as_ref().is_some_and(|connection| self.is_old(connection));
        let mut state = self.state.lock();
        state.note_hold(held_for);
        let mut dropped = None;
        if is_old {
            match state.replacement(lane) {
                Replacement::Opened(successor) => dropped = connection.replace(successor),
                Replacement::Impossible => dropped = connection.take(),
                Replacement::None => {}
            }
        }
        loop {
            let Some(waiter) = state.next_waiter(lane) else {
                state.put(connection, lane);
                drop(state);
                break;
            };
            drop(state);
            let since = Instant::now();
            let connection_now = connection.take();
            let shared = self.clone();
            let held = Held { shared, connection: connection_now, lane, since, clean: true, returned: false };
            match waiter.send(held) {
                Ok(()) => break,
                // Gone meanwhile: to the next one.
                Err(mut refused) => {
                    refused.returned = true;
                    connection = refused.connection.take();
                }
            }
            state = self.state.lock();
        }
        if is_old && dropped.is_none() {
            self.replace_one(lane);
        }
    }
}

/// A connection held by one transaction. Dropped while [`Held::begin_use`] has not been followed by
/// [`Held::end_use`], it is closed instead of going back to the pool.
pub struct Held {
    shared: Arc<Shared>,
    connection: Option<Connection>,
    lane: usize,
    since: Instant,
    clean: bool,
    /// Whether what it held has gone elsewhere.
    returned: bool,
}

impl Held {
    /// With an open connection that is good for use.
    async fn ready(mut self) -> Result<Self, DbError> {
        let shared = self.shared.clone();
        if let Some(connection) = &mut self.connection {
            if shared.is_usable(connection) {
                return Ok(self);
            }
            self.connection = None;
        }
        // The event loop of this thread will wake whoever uses it.
        let lane = lane_of_thread(shared.lanes);
        shared.state.lock().rehome(self.lane, lane);
        self.lane = lane;
        self.connection = Some(shared.connect(lane).await?);
        Ok(self)
    }

    /// The connection; from here on it may be in a transaction.
    pub fn begin_use(&mut self) -> Result<&mut Backend, DbError> {
        if self.clean {
            // What came before (connecting, mostly) says nothing about how long statements take.
            self.since = Instant::now();
        }
        self.clean = false;
        self.connection.as_mut().map(|connection| &mut connection.backend).ok_or(DbError::TransactionEnded)
    }

    /// The transaction is over and known to be.
    pub fn end_use(&mut self) {
        self.clean = self.connection.as_ref().is_some_and(|connection| connection.backend.is_idle());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.returned {
            return;
        }
        let now = Instant::now();
        let held_for = now.duration_since(self.since);
        let mut connection = self.connection.take();
        if self.clean {
            if let Some(connection) = &mut connection {
                connection.used = now;
            }
            return self.shared.give_back(connection, self.lane, held_for);
        }
        if let Some(connection) = connection {
            let canceller = connection.canceller.clone();
            drop(connection);
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    if let Err(error) = canceller.cancel().await {
                        tracing::debug!(%error, "an abandoned statement could not be cancelled");
                    }
                });
            }
        }
        self.shared.give_back(None, self.lane, held_for);
    }
}
