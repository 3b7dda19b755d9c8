//! `/realtime/v1`: channels over a WebSocket, with broadcast, presence and changes of tables.
//!
//! A socket's task ([`session`]) reads frames and keeps the socket's channels. The [`hub`] knows the members of each channel and queues
//! messages in each socket's [`outbox`]. [`changes`] follows the write-ahead log. [`bus`] connects instances.
//! Reference: supabase/realtime.

mod bus;
mod changes;
mod config;
mod frame;
mod http;
mod hub;
mod inspect;
mod join;
mod limits;
mod metrics;
mod outbox;
mod persistence;
mod policies;
mod presence;
mod protocol;
mod replay;
mod session;
mod token;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_http::ws::CloseCode;
use actix_web::web::ServiceConfig;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::db::{DbError, ExclusiveOptions, ExclusivePool, Pulse};
use crate::jwt::KeySet;
use bus::Bus;
use changes::Changes;
pub use config::{Mode, RealtimeConfig};
use hub::{Hub, Member, World};
use inspect::Inspector;
use limits::{Addresses, Rate};
use metrics::Metrics;
use outbox::Outbox;
use presence::{Presence, Tracked};
use protocol::Broadcast;
use replay::{Arrivals, Stored};
#[cfg(any(test, feature = "fuzz"))]
pub use session::fuzzed;

/// What realtime needs from the server.
pub struct Setting<'a> {
    /// The login of the authenticator, for policies and rows as callers.
    pub request_url: &'a str,
    /// The login of a role that may replicate.
    pub replication_url: &'a str,
    /// The server's, if it has one.
    pub pulse: Option<Pulse>,
    pub keys: Arc<KeySet>,
    /// The project's secret; instances authenticate each other with it.
    pub secret: &'a str,
    /// `search_path` under which policies run, as in requests of the REST API.
    pub search_path: String,
}

/// The API's state. Cheap to clone.
#[derive(Clone)]
pub struct Realtime {
    inner: Arc<Inner>,
}

struct Inner {
    config: RealtimeConfig,
    mode: Mode,
    keys: Arc<KeySet>,
    db: ExclusivePool,
    search_path: String,
    /// Identifies the instance; new at every start.
    instance: u64,
    hub: Hub,
    changes: Changes,
    bus: Bus,
    metrics: Arc<Metrics>,
    inspector: Arc<Inspector>,
    stopping: watch::Sender<bool>,
    has_background: AtomicBool,
    /// Sockets that have joined a channel.
    users: AtomicUsize,
    sockets: Mutex<HashMap<u64, Weak<Outbox>>>,
    next_socket: AtomicU64,
    next_presence: AtomicU64,
    arrivals: Arc<Arrivals>,
    addresses: Addresses,
    /// For checks of joins and for private broadcasts: the other connections are left to the delivery of changes.
    checks: Arc<Semaphore>,
    /// The project's rates, if limited.
    events: Rate,
    joins: Rate,
    presence_events: Rate,
    /// Bytes of unfinished frames in all sockets.
    buffered: AtomicUsize,
    replication: tokio_postgres::Config,
}

impl Realtime {
    /// Connects to nothing before the first client.
    pub fn new(config: RealtimeConfig, mode: Mode, setting: Setting<'_>) -> Result<Self, DbError> {
        let parse = |url: &str| {
            url.parse::<tokio_postgres::Config>().map_err(|error| DbError::Url(crate::db::with_causes(&error)))
        };
        let options = ExclusiveOptions {
            size: config.pool,
            acquire_timeout: Duration::from_secs(5),
            application_name: "ferrobase realtime".to_owned(),
            pulse: setting.pulse,
            ..ExclusiveOptions::default()
        };
        let db = ExclusivePool::new(setting.request_url, options)?;
        let mut replication = parse(setting.replication_url)?;
        replication.application_name("ferrobase realtime");
        let metrics = Arc::new(Metrics::default());
        let inspector = Arc::new(Inspector::default());
        let instance = rand::random();
        let project_joins = if mode == Mode::DropIn { config.max_joins } else { 0 };
        let inner = Inner {
            mode,
            keys: setting.keys,
            search_path: setting.search_path.clone(),
            instance,
            hub: Hub::new(Arc::clone(&metrics), Arc::clone(&inspector)),
            changes: Changes::new(db.clone(), setting.search_path),
            bus: Bus::new(instance, setting.secret.as_bytes(), config.bus.clone()),
            metrics,
            inspector,
            db,
            stopping: watch::Sender::new(false),
            has_background: AtomicBool::new(false),
            users: AtomicUsize::new(0),
            sockets: Mutex::default(),
            next_socket: AtomicU64::new(1),
            next_presence: AtomicU64::new(1),
            arrivals: Arc::default(),
            addresses: Addresses::default(),
            checks: Arc::new(Semaphore::new(config.pool.saturating_sub(2).max(2))),
            events: Rate::new(config.max_events, 60),
            joins: Rate::new(project_joins, 1),
            presence_events: Rate::new(config.max_presence_events, 60),
            buffered: AtomicUsize::new(0),
            replication,
            config,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Starts the background tasks. Call from the runtime that outlives the workers.
    pub fn spawn(&self) {
        if self.inner.has_background.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = &self.inner;
        tokio::spawn(changes::stream::run(Arc::clone(inner), inner.replication.clone()));
        tokio::spawn(Bus::run(Arc::clone(inner)));
        tokio::spawn(changes::record::run(Arc::clone(inner)));
        tokio::spawn(keep_partitions(Arc::clone(inner)));
    }

    /// Mounts the routes below the scope they are given.
    pub fn configure(self, service: &mut ServiceConfig) {
        http::configure(self, service);
    }

    /// Mounts the inspector, which shows live traffic to operators. `is_development`: this machine's requests need
    /// no key.
    pub fn configure_inspector(self, is_development: bool, service: &mut ServiceConfig) {
        inspect::routes::configure(self, is_development, service);
    }

    /// Closes all sockets and refuses further joins. The slot ends with its connection.
    pub fn stop(&self) {
        self.inner.stopping.send_replace(true);
        let sockets: Vec<_> = self.inner.sockets.lock().values().filter_map(Weak::upgrade).collect();
        for outbox in sockets {
            outbox.close(CloseCode::Restart, "the server is restarting");
        }
    }

    /// Repeats the start's work after the database was replaced. Sockets stay open, but their channels must rejoin,
    /// because their rights and messages came from another database.
    pub async fn renew(&self) -> Result<(), DbError> {
        let (made, ()) = futures_util::join!(make_partitions(&self.inner), self.inner.changes.follow_next());
        changes::stream::tell_all(&self.inner, "The database was replaced");
        made
    }

    /// Prometheus' text format.
    pub fn metrics(&self) -> String {
        self.inner.metrics.as_text()
    }
}

impl Inner {
    /// The instance's name in its slots.
    fn instance_name(&self) -> String {
        format!("{:016x}", self.instance)
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Sends a broadcast to everybody in the room, on all instances.
    fn broadcast(&self, world: &World, message: Broadcast, except: Option<u64>) {
        let count = self.hub.broadcast(world, &message, except, None);
        self.events.add(count);
        self.bus.broadcast(self, world, &message, None);
    }

    /// Sends a broadcast that was stored, so that it comes once to those who also get it by replay.
    fn broadcast_stored(&self, world: &World, message: Stored, except: Option<u64>) {
        let message = Arc::new(message);
        self.deliver_stored(world, &message, except);
        self.bus.broadcast(self, world, &message.as_live(), Some(message.id));
    }

    /// Sends a stored broadcast to this instance's members of the room, also to those whose join is in progress.
    fn deliver_stored(&self, world: &World, message: &Arc<Stored>, except: Option<u64>) {
        self.arrivals.note(world, message);
        let count = self.hub.broadcast(world, &message.as_live(), except, Some(message.id));
        self.events.add(count);
    }

    /// A reference for a presence, unique across instances and time.
    fn presence_reference(&self) -> String {
        let number = self.next_presence.fetch_add(1, Ordering::Relaxed);
        format!("{:x}.{number:x}", self.instance)
    }

    fn announce_presence(&self, member: &Member, key: &str, reference: &str, payload: &Tracked) {
        self.bus.track(self, &member.world, || Presence {
            channel: member.id,
            key: key.to_owned(),
            reference: reference.to_owned(),
            payload: payload.clone(),
        });
    }

    fn announce_absence(&self, member: &Member) {
        self.bus.untrack(self, &member.world, member.id);
    }
}

async fn make_partitions(inner: &Inner) -> Result<(), DbError> {
    let step =
        crate::db::Step { text: "select realtime.keep_partitions()".into(), params: Vec::new(), role: "".into() };
    match inner.db.run_each("realtime", &[vec![step]]).await?.pop() {
        Some(Err(refusal)) => Err(DbError::Refused(refusal)),
        _ => Ok(()),
    }
}

/// Creates the partitions of `realtime.messages` for the coming days and drops old ones, now and every hour; sooner if somebody reads the table.
async fn keep_partitions(inner: Arc<Inner>) {
    const PAUSE: Duration = Duration::from_secs(60 * 60);
    const RETRY: Duration = Duration::from_secs(5 * 60);
    let mut stopping = inner.stopping.subscribe();
    loop {
        let pause = match make_partitions(&inner).await {
            Ok(()) => PAUSE,
            Err(error) => {
                tracing::warn!(%error, "partitions of realtime.messages are not kept");
                RETRY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}
