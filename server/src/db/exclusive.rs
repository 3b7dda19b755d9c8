//! A pool of connections that one transaction at a time holds exclusively, each with its prepared statements.
//!
//! [`ExclusivePool::hold`] returns a connection that nobody else can use until it is given back. If a holder is dropped in
//! mid-transaction because the client hung up, the running statement is cancelled and the connection closed. No role, claim or
//! open transaction reaches the next request.
//!
//! Each worker thread has a lane. A connection belongs to the lane of the thread that opened it, because that thread's event loop
//! wakes its holder. A request prefers a connection of its own lane and takes one of another lane only if its own makes it wait.
//! So a busy connection usually passes from request to request without waking another thread. That pays: on two cores (50 connections,
//! a release build with and without lanes, medians of ten rounds in turn) reads of a row were 33 % quicker than with one lane, calls 30 %,
//! embeds 20 % and inserts 13 %; the p99 of embeds was a millisecond longer, those of the others shorter.

mod queue;
mod waiters;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio_postgres::Config;

use super::cancel::Registration;
use super::limits::{ACQUIRE, OPEN};
use super::open::open;
use super::overload::{LOOK_AGAIN, hold_back, sent_at};
use super::wire::Backend;
use super::{DbError, Pulse, Query, replaced};
use crate::http::context;
use crate::http::door::{Overloaded, RefusedBy};
use queue::{Claim, LANE_WAIT, Replacement, State};
pub use waiters::Asker;
use waiters::Holder;

/// Turns just-in-time compilation off unless somebody has set `jit` explicitly. PostgreSQL compiles statements whose estimated
/// cost is high. Embeds add up to such costs, above all on tables that were never analyzed: a statement of half a millisecond is
/// then compiled for a quarter of a second or longer.
const NO_JIT: &str = "select set_config('jit', 'off', false) from pg_catalog.pg_settings \
                      where name = 'jit' and source = 'default'";

/// Settings of the pool. The defaults are PostgREST's.
#[derive(Clone)]
pub struct ExclusiveOptions {
    /// The maximum number of open connections. There is briefly one more while an old one is replaced.
    pub size: usize,
    /// How long a request waits for a connection.
    pub acquire_timeout: Duration,
    /// A connection older than this is replaced.
    pub max_lifetime: Duration,
    /// A connection that was idle for longer is not used again.
    pub max_idle: Duration,
    /// `application_name` where the connection string names none.
    pub application_name: String,
    /// Whether to prepare statements. Behind a transaction pooler they cannot be.
    pub prepare: bool,
    /// The number of prepared statements kept per connection. The least recently used is dropped first.
    pub statements: usize,
    /// Whether requests are refused while a long queue lasts. For requests that somebody can send again.
    pub refuses_under_overload: bool,
    /// Shared with another pool of the same database.
    pub pulse: Option<Pulse>,
}

impl Default for ExclusiveOptions {
    fn default() -> Self {
        Self {
            size: 10,
            acquire_timeout: ACQUIRE,
            max_lifetime: Duration::from_secs(1800),
            max_idle: Duration::from_secs(30),
            application_name: "ferrobase".to_owned(),
            prepare: true,
            statements: 256,
            refuses_under_overload: false,
            pulse: None,
        }
    }
}

/// Figures for `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    pub max: usize,
    /// Connections that could be handed out now, whether already open or not.
    pub available: usize,
    pub waiting: usize,
    /// Requests that timed out while they waited, since the start.
    pub timeouts: u64,
    /// Requests that were refused because too many waited, since the start.
    pub refused: u64,
}

/// A bounded pool of exclusively held connections. Cheap to clone.
#[derive(Clone)]
pub struct ExclusivePool {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    pulse: Pulse,
    options: ExclusiveOptions,
    state: Mutex<State<Box<Connection>>>,
    lanes: usize,
    /// Incremented by [`ExclusivePool::flush`]. Connections of an older generation are replaced.
    generation: AtomicU64,
    /// The version of the schema for which statements may be prepared.
    schema_epoch: AtomicU64,
    timeouts: AtomicU64,
    refused: AtomicU64,
}

/// Boxed, because it is passed on from request to request.
struct Connection {
    backend: Backend,
    registration: Registration,
    opened: Instant,
    used: Instant,
    generation: u64,
    /// [`replaced::times`] when it was opened.
    database: u64,
    lane: usize,
}

/// The lane of the current thread among `lanes`.
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
        let pulse = options.pulse.clone().unwrap_or_else(|| Pulse::new(config.clone()));
        let shared = Shared {
            config,
            pulse,
            state: Mutex::new(
                State::new(options.size, lanes, options.acquire_timeout).refusing(options.refuses_under_overload),
            ),
            lanes,
            options,
            generation: AtomicU64::new(0),
            schema_epoch: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Acquires a connection for one transaction. Requests wait in a bounded queue: one that could not be served before its timeout
    /// is refused. Roles and clients take turns in the queue. A pool may refuse more under lasting overload
    /// ([`ExclusiveOptions::refuses_under_overload`]).
    pub async fn hold(&self, asker: &Asker<'_>) -> Result<Held, DbError> {
        let shared = &self.shared;
        let lane = lane_of_thread(shared.lanes);
        let claim = shared.state.lock().claim(lane, asker, None);
        let mut ticket = match claim {
            Claim::Granted(connection) => return shared.granted(connection, lane, asker.holder()).await,
            Claim::Full => {
                let refusal = shared.refused();
                self.note_refused(asker);
                hold_back().await;
                return Err(refusal);
            }
            Claim::Wait(ticket) => ticket,
        };
        let since = tokio::time::Instant::now();
        let deadline = since + shared.options.acquire_timeout;
        for wait in [LANE_WAIT.0, LANE_WAIT.1] {
            match tokio::time::timeout_at((since + wait).min(deadline), &mut ticket).await {
                Ok(Ok(held)) => return held.ready().await,
                // The queue was cleared, because overload was found.
                Ok(Err(_)) => return Err(shared.refused()),
                Err(_) => {}
            }
            // Release the lock before awaiting or dropping anything.
            let claim = shared.state.lock().claim(lane, asker, Some(wait));
            if let Claim::Granted(connection) = claim {
                drop(ticket);
                return shared.granted(connection, lane, asker.holder()).await;
            }
        }
        loop {
            let until = (tokio::time::Instant::now() + LOOK_AGAIN).min(deadline);
            match tokio::time::timeout_at(until, &mut ticket).await {
                Ok(Ok(held)) => return held.ready().await,
                Ok(Err(_)) => return Err(shared.refused()),
                Err(_) if until >= deadline => {
                    shared.timeouts.fetch_add(1, Ordering::Relaxed);
                    return Err(DbError::PoolTimeout);
                }
                Err(_) => {}
            }
            let claim = shared.state.lock().claim(lane, asker, Some(since.elapsed()));
            if let Claim::Granted(connection) = claim {
                drop(ticket);
                return shared.granted(connection, lane, asker.holder()).await;
            }
        }
    }

    /// Refuses a request before it is known what it asks for, if quick ones of its role and client are being refused: a flood should
    /// cost no parsing and planning. Errors: [`DbError::PoolBusy`].
    pub async fn admit(&self, asker: &Asker<'_>) -> Result<(), DbError> {
        if !self.shared.state.lock().refuses(asker) {
            return Ok(());
        }
        let refusal = self.shared.refused();
        self.note_refused(asker);
        hold_back().await;
        Err(refusal)
    }

    /// Lets the door refuse further quick requests of this role and client while they are refused here.
    fn note_refused(&self, asker: &Asker<'_>) {
        if asker.is_quick {
            let (shared, role, client) = (self.shared.clone(), asker.role.into(), asker.client);
            context::refused_by(|| RefusedBy(Arc::new(Refused { shared, role, client })));
        }
    }

    /// Replaces every connection when it is next given back. Used when new sessions would start with other settings.
    pub fn flush(&self) {
        self.shared.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes each connection prepare its statements again, with its next transaction, if they were prepared before the schema of
    /// `epoch`.
    pub fn renew_statements(&self, epoch: u64) {
        if self.shared.schema_epoch.load(Ordering::Relaxed) != epoch {
            self.shared.schema_epoch.store(epoch, Ordering::Relaxed);
        }
    }

    pub fn figures(&self) -> PoolFigures {
        let mut state = self.shared.state.lock();
        PoolFigures {
            max: self.shared.options.size,
            available: state.available(),
            waiting: state.waiting(),
            timeouts: self.shared.timeouts.load(Ordering::Relaxed),
            refused: self.shared.refused.load(Ordering::Relaxed),
        }
    }
}

/// Quick requests of a role and client that are refused.
struct Refused {
    shared: Arc<Shared>,
    role: Box<str>,
    client: Option<IpAddr>,
}

impl Overloaded for Refused {
    fn refuse(&self) -> Option<Instant> {
        let asker = Asker { role: &self.role, client: self.client, is_quick: true };
        if !self.shared.state.lock().refuses(&asker) {
            return None;
        }
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
        Some(sent_at(true))
    }
}

impl Shared {
    /// Counts a request that is refused because too many wait.
    fn refused(&self) -> DbError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        DbError::PoolBusy
    }

    /// Whether the connection is alive, not too old and not idle for too long.
    fn is_usable(&self, connection: &mut Connection) -> bool {
        let now = Instant::now();
        now.duration_since(connection.opened) < self.options.max_lifetime
            && now.duration_since(connection.used) < self.options.max_idle
            && connection.database == replaced::times()
            && connection.backend.is_alive()
    }

    /// Whether the connection was opened before the last [`ExclusivePool::flush`]. It is usable, but should be replaced.
    fn is_old(&self, connection: &Connection) -> bool {
        connection.generation != self.generation.load(Ordering::Relaxed)
    }

    async fn granted(
        self: &Arc<Self>,
        connection: Option<Box<Connection>>,
        lane: usize,
        holder: Holder,
    ) -> Result<Held, DbError> {
        let lane = connection.as_ref().map_or(lane, |connection| connection.lane);
        let since = Instant::now();
        Held { shared: self.clone(), connection, lane, holder, since, clean: true, returned: false }.ready().await
    }

    /// Boxed because it is rare and large: every request's future would have room for it.
    fn connect(&self, lane: usize) -> BoxFuture<'_, Result<Box<Connection>, DbError>> {
        Box::pin(async move {
            let generation = self.generation.load(Ordering::Relaxed);
            let (mut wire, registration, database) = open(&self.config, Some(&self.pulse)).await?.into_wire()?;
            // Behind a transaction pooler another client may get the session after this statement.
            if self.options.prepare {
                let asked = tokio::time::timeout(OPEN, wire.ask(&Query::plain(NO_JIT))).await;
                match asked.unwrap_or_else(|_| Err(DbError::Connect("a new connection does not answer".to_owned()))) {
                    Err(DbError::Refused(refusal)) if refusal.severity == "ERROR" => {
                        tracing::debug!(%refusal, "just-in-time compilation stays as it is");
                    }
                    answer => drop(answer?),
                }
            }
            let now = Instant::now();
            let statements = if self.options.prepare { self.options.statements } else { 0 };
            let mut backend = Backend::new(wire, statements);
            backend.renew(self.schema_epoch.load(Ordering::Relaxed));
            Ok(Box::new(Connection { backend, registration, opened: now, used: now, generation, database, lane }))
        })
    }

    /// Opens a successor in the background. It replaces an old connection that is idle or the next one that is given back.
    fn replace_one(self: &Arc<Self>, lane: usize) {
        // The successor must live on this thread's event loop.
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

    /// Takes back a connection, or the right to open one, and passes it to the next waiter.
    fn give_back(
        self: &Arc<Self>,
        mut connection: Option<Box<Connection>>,
        own: usize,
        holder: Holder,
        held_for: Duration,
    ) {
        let mut lane = own;
        let is_old = connection.as_ref().is_some_and(|connection| self.is_old(connection));
        let mut state = self.state.lock();
        state.note_hold(holder, held_for);
        state.release(holder);
        let mut dropped = None;
        if is_old {
            match state.replacement(lane) {
                Replacement::Opened(successor) => dropped = connection.replace(successor),
                Replacement::Impossible => dropped = connection.take(),
                Replacement::None => {}
            }
        }
        loop {
            let Some((of, holder, waiter)) = state.next_waiter(lane) else {
                state.put(connection, lane);
                drop(state);
                break;
            };
            let passed;
            (passed, lane) = state.exchange(connection.take(), lane, of);
            drop(state);
            let since = Instant::now();
            let shared = self.clone();
            let held = Held { shared, connection: passed, lane, holder, since, clean: true, returned: false };
            match waiter.send(held) {
                Ok(()) => break,
                // That request has gone meanwhile: try the next one.
                Err(mut refused) => {
                    refused.returned = true;
                    connection = refused.connection.take();
                }
            }
            state = self.state.lock();
            state.release(holder);
        }
        if is_old && dropped.is_none() {
            self.replace_one(own);
        }
    }
}

/// A connection held by one transaction. If it is dropped between [`Held::begin_use`] and [`Held::end_use`], it is closed instead
/// of returned to the pool.
pub struct Held {
    shared: Arc<Shared>,
    connection: Option<Box<Connection>>,
    lane: usize,
    holder: Holder,
    since: Instant,
    clean: bool,
    /// Whether the connection has already been passed on.
    returned: bool,
}

impl Held {
    /// Makes sure that the connection is open and usable.
    async fn ready(mut self) -> Result<Self, DbError> {
        let shared = self.shared.clone();
        if let Some(connection) = &mut self.connection {
            if shared.is_usable(connection) {
                connection.backend.renew(shared.schema_epoch.load(Ordering::Relaxed));
                return Ok(self);
            }
            self.connection = None;
        }
        // The new connection is woken by this thread's event loop, so it belongs to this thread's lane.
        let lane = lane_of_thread(shared.lanes);
        shared.state.lock().rehome(self.lane, lane);
        self.lane = lane;
        self.connection = Some(shared.connect(lane).await?);
        Ok(self)
    }

    /// Returns the connection. From now on it may be in a transaction.
    pub fn begin_use(&mut self) -> Result<&mut Backend, DbError> {
        if self.clean {
            // The time before, mostly for connecting, says nothing about how long statements take.
            self.since = Instant::now();
        }
        self.clean = false;
        self.connection.as_mut().map(|connection| &mut connection.backend).ok_or(DbError::TransactionEnded)
    }

    /// Notes that the transaction has ended, as the server confirmed.
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
            return self.shared.give_back(connection, self.lane, self.holder, held_for);
        }
        if let Some(connection) = connection {
            let Connection { backend, registration, .. } = *connection;
            registration.cancel(backend);
        }
        self.shared.give_back(None, self.lane, self.holder, held_for);
    }
}
