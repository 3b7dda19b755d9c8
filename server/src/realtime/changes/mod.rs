//! Changes of tables, from the write-ahead log to the subscribers who may see them.
//!
//! [`stream`] follows the log. [`deliver`] finds out who may see each changed row and sends it. Subscriptions are kept in
//! [`registry`]. A subscription is registered before its join is answered, so that no later commit is missed.

mod catalog;
mod change;
mod deliver;
mod filter;
mod json;
mod pgoutput;
mod prepare;
pub mod record;
mod registry;
pub mod stream;
mod view;
mod wanted;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use super::hub::Member;
use crate::db::{DbError, ExclusivePool, replaced};
use catalog::{all_published, ask};
pub use filter::Comparison;
use record::Record;
pub use registry::Subscription;
use registry::{Entry, Registry, Shape};

/// The most subscriptions of a channel, and conditions of a subscription. The database checks each.
const MOST: (usize, usize) = (100, 32);
/// The most different conditions of a socket that only the database can compare, since it is asked each of them for each
/// batch of changes: two for each of a hundred channels.
const MOST_COMPARED: usize = 200;
/// How long a join waits for the stream.
const START_WAIT: Duration = Duration::from_secs(6);
/// How long a replacement of the database waits for the next stream.
const NEXT_STREAM: Duration = Duration::from_secs(2);

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Insert,
    Update,
    Delete,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Why there is no subscription.
#[derive(Debug)]
pub enum NotSubscribed {
    /// The stream is still being opened.
    Starting,
    Refused(String),
    /// Checking took too long, because of what is asked or because the database is busy.
    TooSlow(String),
}

/// The state of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not needed.
    Idle,
    Starting,
    Running {
        /// Whether the publication of tables is part of it.
        has_tables: bool,
    },
    /// Not available, with the reason.
    Unavailable(String),
}

/// Subscriptions, and the stream that feeds them.
pub struct Changes {
    db: ExclusivePool,
    /// The `search_path` for queries as callers.
    search_path: String,
    registry: RwLock<Registry>,
    state: watch::Sender<State>,
    /// Which database the stream followed last, of [`replaced::times`].
    followed: watch::Sender<u64>,
    /// Notified when the stream is needed.
    wanted: Notify,
    /// Notified when the publication of tables has appeared after the stream began.
    restart: Notify,
    /// Channels waiting for the stream.
    waiting: Mutex<Vec<Arc<Member>>>,
    /// `realtime.subscription`.
    record: Record,
    /// Incremented whenever the stream ends: earlier preparations may have missed changes.
    generation: AtomicU64,
}

impl Changes {
    pub fn new(db: ExclusivePool, search_path: String) -> Self {
        Self {
            db,
            search_path,
            registry: RwLock::default(),
            state: watch::Sender::new(State::Idle),
            followed: watch::Sender::new(0),
            wanted: Notify::new(),
            restart: Notify::new(),
            waiting: Mutex::default(),
            record: Record::default(),
            generation: AtomicU64::new(0),
        }
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn raise_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Requests the stream.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Waits until the stream, if there is one, follows the new database after a replacement.
    pub async fn follow_next(&self) {
        let (database, mut followed) = (replaced::times(), self.followed.subscribe());
        if matches!(*self.state.borrow(), State::Running { .. } | State::Starting) {
            let follows = followed.wait_for(|followed| *followed == database);
            if tokio::time::timeout(NEXT_STREAM, follows).await.is_err() {
                tracing::warn!("there is no stream of changes of the next database yet");
            }
        }
    }

    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Registers subscriptions and then runs `first`, with no change delivered in between.
    pub fn register(&self, member: &Arc<Member>, subscriptions: Vec<Subscription>, first: impl FnOnce()) {
        let has_any = !subscriptions.is_empty();
        let mut registry = self.registry.write();
        for subscription in subscriptions {
            registry.insert(member, subscription, None);
        }
        first();
        drop(registry);
        if has_any {
            self.record.touch(member.id);
        }
    }

    /// Replaces the subscriptions of a channel. Changes already being checked for the old ones are still delivered.
    pub fn replace(&self, member: &Arc<Member>, subscriptions: Vec<Subscription>) {
        let mut registry = self.registry.write();
        let old = registry.of_channel(member.id).to_vec();
        let number = old.iter().map(|entry| entry.number).min();
        // The channel has still seen the rows of its old subscriptions.
        for subscription in &subscriptions {
            let before = old.iter().find(|entry| entry.subscription.id == subscription.id);
            let before = before.and_then(|entry| entry.subscription.view.as_ref());
            if let (Some(view), Some(before)) = (&subscription.view, before) {
                view.add(before);
            }
        }
        registry.remove(member.id);
        for subscription in subscriptions {
            registry.insert(member, subscription, number);
        }
        drop(registry);
        self.record.touch(member.id);
    }

    pub fn remove(&self, member: u64) {
        let had_any = self.registry.write().remove(member);
        if had_any {
            self.record.touch(member);
        }
        self.waiting.lock().retain(|waiting| waiting.id != member);
    }

    /// The different comparisons of these channels by the database.
    pub fn compared(&self, channels: impl Iterator<Item = u64>) -> HashSet<Arc<Comparison>> {
        let registry = self.registry.read();
        let entries = channels.flat_map(|channel| registry.of_channel(channel));
        let filters = entries.flat_map(|entry| &entry.subscription.filters);
        filters.flat_map(|filter| filter.comparisons()).map(Arc::clone).collect()
    }

    /// A description of the channel's subscriptions.
    pub fn described(&self, member: u64) -> Vec<String> {
        self.registry.read().of_channel(member).iter().map(|entry| entry.subscription.to_string()).collect()
    }

    /// Notifies a channel once the database's broadcasts are streamed.
    pub fn tell_when_ready(&self, member: &Arc<Member>) {
        let mut waiting = self.waiting.lock();
        if matches!(*self.state.borrow(), State::Running { .. }) {
            member.system("system", "ok", "Replication connection established");
        } else {
            waiting.push(Arc::clone(member));
        }
    }

    fn set_state(&self, state: State) {
        let mut waiting = self.waiting.lock();
        let is_running = matches!(state, State::Running { .. });
        self.state.send_replace(state);
        if is_running {
            for member in waiting.drain(..) {
                member.system("system", "ok", "Replication connection established");
            }
        }
    }

    /// Waits until the stream runs; returns whether it includes tables.
    pub async fn running(&self) -> Result<bool, NotSubscribed> {
        let mut state = self.state.subscribe();
        self.want();
        let settled = async {
            loop {
                match &*state.borrow_and_update() {
                    State::Running { has_tables } => return Ok(*has_tables),
                    State::Unavailable(reason) => return Err(NotSubscribed::Refused(reason.clone())),
                    State::Idle | State::Starting => {}
                }
                if state.changed().await.is_err() {
                    return Err(NotSubscribed::Starting);
                }
            }
        };
        tokio::time::timeout(START_WAIT, settled).await.unwrap_or(Err(NotSubscribed::Starting))
    }

    /// Channels with subscriptions to tables that are no longer published, whose changes would be missing silently.
    async fn orphans(&self) -> Result<Vec<Arc<Member>>, DbError> {
        let places: Vec<(String, String)> = self.registry.read().exact.keys().cloned().collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let published = all_published(&self.db).await?;
        let registry = self.registry.read();
        let gone = places.iter().filter(|place| !published.contains(place));
        let entries = gone.filter_map(|place| registry.exact.get(place)).flatten();
        let mut members: Vec<Arc<Member>> = Vec::new();
        for entry in entries {
            if !members.iter().any(|member| member.id == entry.member.id) {
                members.push(Arc::clone(&entry.member));
            }
        }
        Ok(members)
    }
}
