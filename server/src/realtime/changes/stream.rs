//! Follows the database's log while it is needed: changed rows, broadcasts of the database, messages of other instances.
//!
//! The slot is temporary: it ends with its connection, so a dead server retains no log. Commits between a loss
//! and the next start are missing. Every channel is then told to rejoin, which clients do automatically, and to
//! read again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::Config;

use super::change::Change;
use super::deliver::{Known, deliver};
use super::pgoutput::{Cell, Message, Relation, Tuple};
use super::{Action, State, ask};
use crate::db::{Copied, DbError, Replication, replaced};
use crate::realtime::hub::World;
use crate::realtime::protocol::UserPayload;
use crate::realtime::replay::Stored;
use crate::realtime::session::Command;
use crate::realtime::{Inner, bus};

/// The publications: tables that projects publish, and the messages that the database sends.
const TABLES: &str = "supabase_realtime";
const MESSAGES: &str = "supabase_realtime_messages_publication";

/// The size of a batch, in rows and bytes.
const BATCH: (usize, usize) = (256, 1 << 20);
/// The most batches waiting for delivery; beyond that, reading the log pauses.
const BATCHES: usize = 64;
/// How often PostgreSQL gets the position read.
const CONFIRM: Duration = bus::TICK;
/// The stream ends after this time without channels.
const LINGER: Duration = Duration::from_secs(60);
/// Pauses before the stream is opened again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The pause before trying again if the stream is unavailable.
const UNAVAILABLE: Duration = Duration::from_secs(5);
/// How often the publication is checked for removed tables.
const LOOK: Duration = Duration::from_secs(5);

/// How following ended.
enum Ended {
    /// No longer needed.
    Unwanted,
    /// Must be reopened at once, with new publications.
    Restart,
    Lost(DbError),
    /// Not available.
    Unavailable(String),
}

/// Follows the log whenever it is needed, until the server stops.
pub async fn run(inner: Arc<Inner>, config: Config) {
    let mut stopping = inner.stopping.subscribe();
    let work = async {
        loop {
            inner.changes.set_state(State::Idle);
            inner.changes.wanted.notified().await;
            follow_while_wanted(&inner, &config).await;
        }
    };
    tokio::select! {
        () = work => {}
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

async fn follow_while_wanted(inner: &Arc<Inner>, config: &Config) {
    let mut pause = PAUSES.0;
    let mut told = None;
    loop {
        // Stays unavailable until an attempt succeeds.
        if told.is_none() {
            inner.changes.set_state(State::Starting);
        }
        let since = Instant::now();
        let database = replaced::current().await;
        let ended = follow(inner, config, told.is_some(), database).await;
        let was_up = inner.metrics.stream_up.swap(0, Ordering::Relaxed) == 1;
        if was_up {
            inner.changes.raise_generation();
            told = None;
        }
        match ended {
            Ended::Unwanted => return,
            Ended::Restart => {
                tell_all(inner, "Realtime follows other publications now");
                continue;
            }
            Ended::Lost(_) if replaced::times() != database => {
                inner.changes.set_state(State::Starting);
                if was_up && inner.bus.is_in_log() {
                    inner.bus.lost(inner);
                }
                // The replacement notifies the channels once the next database is followed.
                continue;
            }
            Ended::Lost(error) => {
                inner.changes.set_state(State::Starting);
                if was_up {
                    tracing::warn!(%error, "the stream of changes was lost");
                    inner.metrics.stream_lost.fetch_add(1, Ordering::Relaxed);
                    if inner.bus.is_in_log() {
                        inner.bus.lost(inner);
                    }
                    tell_all(inner, "The connection to the database was lost");
                } else {
                    tracing::debug!(%error, "the stream of changes cannot be opened");
                }
                if since.elapsed() > PAUSES.1 {
                    pause = PAUSES.0;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
            Ended::Unavailable(reason) => {
                if told.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "there is no stream of changes");
                    told = Some(reason.clone());
                }
                inner.changes.set_state(State::Unavailable(reason));
                tokio::time::sleep(UNAVAILABLE).await;
                if inner.hub.members().is_empty() {
                    return;
                }
            }
        }
    }
}

/// Makes every channel rejoin, because it may have missed anything.
pub(in crate::realtime) fn tell_all(inner: &Inner, message: &str) {
    for member in inner.hub.members() {
        let message = message.to_owned();
        member.commands.give(Command { member: member.id, message, extension: "system", rejoin: true });
    }
}

/// `was_refused`: channels may have been told that there is no stream. `database`: of [`replaced::times`].
async fn follow(inner: &Arc<Inner>, config: &Config, was_refused: bool, database: u64) -> Ended {
    let publications = match look(inner).await {
        Ok(Ok(publications)) => publications,
        Ok(Err(reason)) => return Ended::Unavailable(reason),
        Err(error) => return Ended::Lost(error),
    };
    let names: Vec<&str> = publications.iter().map(String::as_str).collect();
    let stream = match open(inner, config, &names).await {
        Ok(stream) => stream,
        Err(error) => return unavailable_or_lost(error),
    };
    // Broadcasts of other instances and of the database do not wait for the checks of changes.
    let (queue, mut batches) = mpsc::channel::<Vec<Change>>(BATCHES);
    let delivering = {
        let inner = Arc::clone(inner);
        async move {
            let mut known = Known::default();
            while let Some(mut batch) = batches.recv().await {
                // Batches that have arrived meanwhile are checked together.
                while batch.len() < BATCH.0
                    && let Ok(more) = batches.try_recv()
                {
                    batch.extend(more);
                }
                deliver(&inner, &mut known, &batch).await;
            }
        }
    };
    let mut follower = Follower {
        inner: Arc::clone(inner),
        stream,
        relations: HashMap::new(),
        committed: 0,
        xid: 0,
        batch: Vec::new(),
        batch_size: 0,
        queue,
        position: 0,
        heard: Instant::now(),
        empty_since: None,
    };
    inner.metrics.stream_up.store(1, Ordering::Relaxed);
    inner.changes.record.sweep();
    inner.changes.followed.send_replace(database);
    inner.changes.set_state(State::Running { has_tables: names.contains(&TABLES) });
    if inner.bus.is_in_log() {
        inner.bus.up(inner);
    }
    if was_refused {
        tell_all(inner, "Realtime follows the database now");
    }
    let following = async {
        let ended = follower.follow().await;
        // Closes the queue.
        drop(follower);
        ended
    };
    tokio::pin!(delivering);
    let ended = tokio::select! {
        ended = following => ended,
        never = watch_publication(inner) => match never {},
        // It ends only with the queue.
        () = &mut delivering => return Ended::Restart,
    };
    // Changes already read are still delivered, except after a loss: everybody then rejoins and reads again, and the
    // database may not answer.
    if !matches!(ended, Ended::Lost(_)) {
        delivering.await;
    }
    ended
}

/// Ends the channels of tables that are no longer published. Their clients rejoin and get the reason.
async fn watch_publication(inner: &Inner) -> Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        match inner.changes.orphans().await {
            Ok(orphans) => {
                for member in orphans {
                    let message = "A table of this channel is not published any more".to_owned();
                    member.commands.give(Command {
                        member: member.id,
                        message,
                        extension: "postgres_changes",
                        rejoin: true,
                    });
                }
            }
            Err(error) => tracing::debug!(%error, "the publication cannot be looked at"),
        }
    }
}

/// The existing publications, or why the stream is unavailable.
async fn look(inner: &Inner) -> Result<Result<Vec<String>, String>, DbError> {
    const SQL: &str = "select pg_catalog.current_setting('wal_level'),
        array(select p.pubname::text from pg_catalog.pg_publication p where p.pubname = any ($1::text[]) order by 1)";
    let names = crate::realtime::policies::array([TABLES, MESSAGES]);
    let rows = ask(&inner.db, SQL, vec![names]).await?;
    let Some(row) = rows.first() else { return Err(DbError::Broken("no answer".to_owned())) };
    let level = row.text(0)?.unwrap_or_default();
    if level != "logical" {
        return Ok(Err(format!(
            "Realtime cannot follow the database: its setting wal_level is {level} and must be logical (then restart \
             PostgreSQL)"
        )));
    }
    let publications = row.texts(1)?.unwrap_or_default();
    if publications.is_empty() {
        return Ok(Err(format!("Realtime cannot follow the database: publication {TABLES} does not exist")));
    }
    Ok(Ok(publications))
}

async fn open(inner: &Inner, config: &Config, publications: &[&str]) -> Result<Replication, DbError> {
    let mut stream = Replication::connect(config).await?;
    // `realtime.subscription` shows an instance's rows while a slot of this name exists.
    let slot = format!("ferrobase_realtime_{}_{:x}", inner.instance_name(), rand::random::<u32>());
    stream.create_slot(&slot).await?;
    stream.start(&slot, publications).await?;
    Ok(stream)
}

/// Whether an error at start needs an administrator (unavailable) or is temporary (lost).
fn unavailable_or_lost(error: DbError) -> Ended {
    let DbError::Refused(refusal) = &error else {
        let text = error.to_string();
        // The login was refused.
        let is_right = ["REPLICATION", "replication", "password", "pg_hba"].iter().any(|word| text.contains(word));
        return if is_right {
            Ended::Unavailable(format!("Realtime cannot follow the database: {text}"))
        } else {
            Ended::Lost(error)
        };
    };
    match refusal.code.as_str() {
        // Rights, settings, no free slot or walsender.
        "42501" | "55000" | "53400" | "53300" | "42601" | "0A000" => {
            Ended::Unavailable(format!("Realtime cannot follow the database: {}", refusal.message))
        }
        _ => Ended::Lost(error),
    }
}

struct Follower {
    inner: Arc<Inner>,
    stream: Replication,
    relations: HashMap<u32, Arc<Relation>>,
    /// The commit time of the current transaction.
    committed: i64,
    xid: u32,
    batch: Vec<Change>,
    batch_size: usize,
    queue: mpsc::Sender<Vec<Change>>,
    /// How far the log was read.
    position: u64,
    /// When PostgreSQL was last heard.
    heard: Instant,
    empty_since: Option<Instant>,
}

impl Follower {
    async fn follow(&mut self) -> Ended {
        let silence = self.inner.config.stream_timeout;
        let mut tick = tokio::time::interval(CONFIRM.min(silence / 3).max(Duration::from_millis(100)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let inner = Arc::clone(&self.inner);
        loop {
            tokio::select! {
                copied = self.stream.next() => match copied {
                    Ok(copied) => match self.heard(copied).await {
                        Ok(()) => {}
                        Err(error) => return Ended::Lost(error),
                    },
                    Err(error) => return Ended::Lost(error),
                },
                _ = tick.tick() => {
                    if self.is_unwanted() {
                        inner.changes.set_state(State::Idle);
                        if inner.bus.is_in_log() {
                            inner.bus.leave(&inner);
                        }
                        return Ended::Unwanted;
                    }
                    if inner.bus.is_in_log() {
                        inner.bus.tick(&inner);
                    }
                    // A silently dead connection would be an unnoticed gap.
                    if self.heard.elapsed() > silence {
                        let text = format!("PostgreSQL was silent for {} s", silence.as_secs());
                        return Ended::Lost(DbError::Broken(text));
                    }
                    if let Err(error) = self.stream.confirm(self.position).await {
                        return Ended::Lost(error);
                    }
                }
                () = inner.changes.restart.notified() => return Ended::Restart,
            }
        }
    }

    fn is_unwanted(&mut self) -> bool {
        if !self.inner.hub.members().is_empty() {
            self.empty_since = None;
            return false;
        }
        self.empty_since.get_or_insert_with(Instant::now).elapsed() > LINGER
    }

    async fn heard(&mut self, copied: Copied) -> Result<(), DbError> {
        self.heard = Instant::now();
        self.take(copied).await?;
        // Waiting for delivery does not count as silence of the database.
        self.heard = Instant::now();
        Ok(())
    }

    async fn take(&mut self, copied: Copied) -> Result<(), DbError> {
        match copied {
            Copied::Alive { end, reply } => {
                // All that was before has been read.
                self.position = self.position.max(end);
                self.inner.metrics.lag_bytes.store(0, Ordering::Relaxed);
                if reply {
                    self.stream.confirm(self.position).await?;
                }
            }
            Copied::Data { start, end, body } => {
                self.inner.metrics.lag_bytes.store(end.saturating_sub(start), Ordering::Relaxed);
                let message = Message::parse(body).map_err(|error| DbError::Broken(error.to_string()))?;
                self.read(message).await?;
            }
        }
        Ok(())
    }

    async fn read(&mut self, message: Message) -> Result<(), DbError> {
        match message {
            Message::Begin { committed, xid } => (self.committed, self.xid) = (committed, xid),
            Message::Commit { end } => {
                self.position = self.position.max(end);
                self.hand_over().await;
            }
            Message::Relation(relation) => drop(self.relations.insert(relation.id, Arc::new(relation))),
            Message::Insert { relation, new } => {
                let relation = self.relation(relation)?;
                if is_messages(&relation) {
                    self.broadcast(&relation, &new);
                } else {
                    self.change(relation, Action::Insert, None, Some(new)).await;
                }
            }
            Message::Update { relation, old, new } => {
                let relation = self.relation(relation)?;
                self.change(relation, Action::Update, old, Some(new)).await;
            }
            Message::Delete { relation, old } => {
                let relation = self.relation(relation)?;
                self.change(relation, Action::Delete, Some(old), None).await;
            }
            Message::Logical { prefix, content } => {
                if prefix == bus::log::PREFIX && self.inner.bus.is_in_log() {
                    self.inner.bus.receive(&self.inner, content);
                }
            }
            Message::Other => {}
        }
        Ok(())
    }

    fn relation(&self, id: u32) -> Result<Arc<Relation>, DbError> {
        let relation = self.relations.get(&id).cloned();
        relation.ok_or_else(|| DbError::Broken(format!("the stream did not announce table {id}")))
    }

    async fn change(
        &mut self,
        relation: Arc<Relation>,
        action: Action,
        old: Option<super::pgoutput::Old>,
        new: Option<Tuple>,
    ) {
        // Messages have their own policies and delivery.
        if is_messages(&relation) {
            return;
        }
        let change = Change { relation, action, old, new, committed: self.committed, xid: self.xid };
        self.batch_size += change.size();
        self.batch.push(change);
        if self.batch.len() >= BATCH.0 || self.batch_size >= BATCH.1 {
            self.hand_over().await;
        }
    }

    /// Waits if delivery is behind; PostgreSQL then waits, too.
    async fn hand_over(&mut self) {
        self.batch_size = 0;
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            // The receiver lives until this sender is dropped.
            let _ = self.queue.send(batch).await;
        }
    }

    /// Sends a message that the database has stored.
    fn broadcast(&self, relation: &Relation, row: &Tuple) {
        let value = |name: &str| {
            let column = relation.columns.iter().position(|column| column.name == name)?;
            row.get(column).and_then(Cell::text)
        };
        let (Some(topic), Some(event), Some(id)) = (value("topic"), value("event"), value("id")) else { return };
        let Ok(id) = id.parse() else { return };
        let payload = match (value("binary_payload"), value("payload")) {
            (Some(binary), _) => match hex::decode(binary.strip_prefix("\\x").unwrap_or(binary)) {
                Ok(bytes) => UserPayload::Binary(bytes.into()),
                Err(_) => return,
            },
            (None, Some(json)) => UserPayload::Json(json.into()),
            (None, None) => return,
        };
        if payload.len() > self.inner.config.max_payload() {
            self.inner.metrics.too_large.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let world = World::new(topic, value("private") == Some("t"));
        let message = Arc::new(Stored { id, event: event.to_owned(), payload });
        if value("skip_broadcast") == Some("t") {
            // A client's, which its instance sends itself.
            self.inner.arrivals.note(&world, &message);
            return;
        }
        self.inner.deliver_stored(&world, &message, None);
        self.inner.metrics.broadcasts_from_database.fetch_add(1, Ordering::Relaxed);
    }
}

/// `realtime.messages` or one of its partitions.
fn is_messages(relation: &Relation) -> bool {
    relation.schema == "realtime" && (relation.name == "messages" || relation.name.starts_with("messages_"))
}
