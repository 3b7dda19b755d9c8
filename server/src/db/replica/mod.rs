//! A read replica: which reads it may answer, and how instances tell each other who wrote.
//!
//! A replica replays the primary's log a moment later. So that people see what they have just written, every write is followed by a
//! *mark*: the position of the primary's log after it, kept by whoever wrote (a user, a role without users, or the address of a
//! guest). A read goes to the replica only if that has replayed the reader's mark, and everything older than
//! [`ReplicaOptions::max_age`]. Everything else is answered by the primary, as is a read that the replica refuses or loses.
//!
//! Instances share marks by `NOTIFY`, before a write is answered. A notification may still be under way when the writer's next
//! request reaches another instance. So a signed-in read first makes a round trip on the connection that listens: PostgreSQL sends
//! a session what was notified before it answers that session's query. All reads that wait at one time share this round trip, and
//! so do writes. The check of the position travels with the read's own statements, since several replicas may answer at one URL.
//!
//! Positions are comparable on one timeline only. After a failover, a replica that did not follow the new primary may have replayed a
//! greater position of the former one's log, so the timeline is checked with it.

mod marks;
mod primary;
mod subject;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use super::{DbError, ExclusiveOptions, ExclusivePool};
use crate::http::prometheus::{Counter, Metrics};
use marks::LogPositions;
pub use subject::{Subject, SubjectId};

/// How long a read waits for the primary to say where it is, before the primary answers the read itself.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the answer to a write waits until its mark is shared. Only a primary that just went away takes longer.
const MARK_TIMEOUT: Duration = Duration::from_secs(2);

/// A position in the primary's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

impl Position {
    /// PostgreSQL's text: two hexadecimal halves.
    fn parse(text: &str) -> Option<Self> {
        let (high, low) = text.split_once('/')?;
        let half = |text: &str| u32::from_str_radix(text, 16).ok().map(u64::from);
        Some(Self(half(high)? << 32 | half(low)?))
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// What a replica has to have replayed: a position of the log on the primary's timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub timeline: u32,
    pub position: Position,
}

/// The timeline that a replica follows, as an SQL expression. What is streamed is visible with the rights of `pg_read_all_stats` only. The
/// control file, which all may read, names the timeline a moment after a switch.
pub const FOLLOWED_TIMELINE: &str = "(select greatest(
    (select r.received_tli from pg_catalog.pg_stat_wal_receiver r where r.status = 'streaming'),
    (select c.timeline_id from pg_catalog.pg_control_checkpoint() c),
    (select c.min_recovery_end_timeline from pg_catalog.pg_control_recovery() c)))";

/// How a replica is used.
pub struct ReplicaOptions<'a> {
    /// The primary itself, not a pooler: marks are heard over a session.
    pub primary_url: &'a str,
    pub url: &'a str,
    /// How old an answer may be.
    pub max_age: Duration,
    /// The pool of connections to the replica.
    pub pool: ExclusiveOptions,
}

/// A replica that answers reads. Cheap to clone.
#[derive(Clone)]
pub struct ReadReplica {
    shared: Arc<Shared>,
    /// Dropped with the last clone, which ends the tasks of this module.
    owner: Arc<Owner>,
}

struct Owner;

struct Shared {
    pool: ExclusivePool,
    primary: Config,
    replica: Config,
    marks: Mutex<LogPositions>,
    pending: Mutex<Pending>,
    /// Rung when something is pending.
    bell: Notify,
    /// What the replica has replayed at least; `None` while it is not used.
    replayed: tokio::sync::watch::Sender<Option<Position>>,
    figures: Figures,
}

/// What waits for the next round trip to the primary.
#[derive(Default)]
struct Pending {
    /// Who wrote.
    written: Vec<SubjectId>,
    waiting: Vec<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Figures {
    answered: Counter,
    /// Reads that the replica could have answered, if it had been there and far enough.
    behind: Counter,
    /// Reads that were begun there, and answered by the primary all the same.
    failed: Counter,
}

/// The connection to the other side has ended.
#[derive(Debug)]
struct Unanswered;

impl ReadReplica {
    /// Nothing is connected before [`ReadReplica::spawn`].
    pub fn new(options: ReplicaOptions<'_>) -> Result<Self, DbError> {
        let parse =
            |url: &str| url.parse::<Config>().map_err(|error: tokio_postgres::Error| DbError::Url(error.to_string()));
        let mut primary = parse(options.primary_url)?;
        primary.target_session_attrs(TargetSessionAttrs::ReadWrite).application_name("ferrobase marks");
        let mut replica = parse(options.url)?;
        replica.application_name("ferrobase replica");
        let shared = Shared {
            pool: ExclusivePool::new(options.url, options.pool)?,
            primary,
            replica,
            marks: Mutex::new(LogPositions::new(options.max_age)),
            pending: Mutex::default(),
            bell: Notify::new(),
            replayed: tokio::sync::watch::Sender::new(None),
            figures: Figures::default(),
        };
        Ok(Self { shared: Arc::new(shared), owner: Arc::new(Owner) })
    }

    /// Keeps in touch with both servers, until the last clone is dropped.
    pub fn spawn(&self) {
        tokio::spawn(primary::follow(self.shared.clone(), Arc::downgrade(&self.owner)));
        tokio::spawn(watch::follow(self.shared.clone(), Arc::downgrade(&self.owner)));
    }

    /// The connections to the replica.
    pub fn pool(&self) -> &ExclusivePool {
        &self.shared.pool
    }

    /// What a read of `subject` has to find at the replica; `None` if the primary has to answer.
    pub async fn place(&self, subject: Subject) -> Option<Target> {
        let found = self.shared.place(subject).await;
        if found.is_none() {
            self.shared.figures.behind.increment();
        }
        found
    }

    /// Ends when the replica is found silent or gone.
    pub async fn lost(&self) {
        let mut replayed = self.shared.replayed.subscribe();
        // The sender is in `shared`.
        let _ = replayed.wait_for(Option::is_none).await;
    }

    /// Counts a read that the replica answered, or did not.
    pub fn note(&self, has_answered: bool) {
        let figures = &self.shared.figures;
        if has_answered { figures.answered.increment() } else { figures.failed.increment() }
    }

    /// Makes later reads of `subject` see what it has written by now, at every instance.
    pub async fn wrote(&self, subject: Subject) {
        let shared = &self.shared;
        let sharing = async {
            while shared.ask(Some(subject.id())).await.is_err() {
                // Until there is a connection again, this instance answers by the primary alone.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(MARK_TIMEOUT, sharing).await.is_err() {
            tracing::warn!("a write could not be announced to other instances, because the primary does not answer");
        }
    }

    /// Prometheus text; without a replica all figures are zero.
    pub fn metrics(replica: Option<&Self>) -> String {
        let mut metrics = Metrics::default();
        let count = |of: fn(&Figures) -> &Counter| replica.map_or(0, |known| of(&known.shared.figures).get());
        metrics.counter(
            "ferrobase_replica_reads_total",
            "Reads that a replica could answer, by outcome",
            [
                ("{outcome=\"answered\"}", count(|figures| &figures.answered)),
                ("{outcome=\"behind\"}", count(|figures| &figures.behind)),
                ("{outcome=\"failed\"}", count(|figures| &figures.failed)),
            ],
        );
        let configured = u8::from(replica.is_some());
        metrics.single("ferrobase_replica_configured", "Whether the settings name a replica", configured);
        let replayed = replica.and_then(|known| *known.shared.replayed.borrow());
        metrics.single("ferrobase_replica_up", "Whether the replica is used", u8::from(replayed.is_some()));
        let age = replica.zip(replayed).and_then(|(known, _)| known.shared.marks.lock().age(Instant::now()));
        let age = age.map_or(0.0, |age| age.as_secs_f64());
        metrics.single("ferrobase_replica_age_seconds", "How far the replica is behind the primary at most", age);
        metrics.into_text()
    }
}

impl Shared {
    async fn place(&self, subject: Subject) -> Option<Target> {
        // Without a round trip, if that is already known to be pointless.
        self.find(subject)?;
        if subject.is_known() {
            tokio::time::timeout(ASK_TIMEOUT, self.ask(None)).await.ok()?.ok()?;
        }
        self.find(subject)
    }

    fn find(&self, subject: Subject) -> Option<Target> {
        let replayed = (*self.replayed.borrow())?;
        let marks = self.marks.lock();
        let target = Target { timeline: marks.timeline()?, position: marks.needed(subject.id(), Instant::now())? };
        (replayed >= target.position).then_some(target)
    }

    /// Takes part in the next round trip to the primary, and returns after it. All marks sent before are known then.
    async fn ask(&self, written: Option<SubjectId>) -> Result<(), Unanswered> {
        let (waiting, answered) = oneshot::channel();
        {
            let mut pending = self.pending.lock();
            pending.written.extend(written);
            pending.waiting.push(waiting);
        }
        self.bell.notify_one();
        answered.await.map_err(|_| Unanswered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_and_written_as_postgresql_does() {
        let position = Position::parse("1A/3000028").expect("a position");
        assert_eq!(position, Position(0x1A_0300_0028));
        assert_eq!(position.to_string(), "1A/3000028");
        assert!(Position::parse("FF/FFFFFFFF") < Position::parse("100/0"));
        for text in ["", "1", "1/", "/1", "1/100000000", "x/1"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }
}
