//! The audit log of administrators: who changed something with a service key or by a command, in `_supavisor.admin_audit`.
//!
//! Requests with a service key are often a project's own backend, thousands a second. So the log has one row for each minute, key,
//! address, action, target and outcome, with a count and the id of the first request; the access log has each of them. What is noted is
//! written within a second and after the answer. What cannot be written is kept for a while and then counted as lost.
//! Why it is so: `docs/decisions/audit-log.md`.

mod entry;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::db::{Pool, replaced};
use crate::http::prometheus::{Counter, Metrics};
pub use entry::{Entry, actor_of, actor_of_s3, fingerprint, target_of};
pub use write::note_command;

/// Different entries that wait to be written, at most.
const KEPT: usize = 10_000;
/// Pause between two writes.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// How often entries are removed that are too old.
const SWEEP_EVERY: Duration = Duration::from_secs(6 * 60 * 60);

static NOTED: Counter = Counter::new();
static LOST: Counter = Counter::new();

/// Where changes are noted. Cheap to clone.
#[derive(Clone, Default)]
pub struct Audit {
    waiting: Option<Arc<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    entries: Mutex<HashMap<Entry, Repeated>>,
    stop: Notify,
}

/// How often an entry was noted since it was last written.
#[derive(Clone, Debug)]
struct Repeated {
    count: i64,
    request_id: String,
    /// [`replaced::times`] of the database that it was about.
    database: u64,
}

/// The task that writes.
pub struct Writing {
    audit: Audit,
    task: JoinHandle<()>,
}

impl Audit {
    /// Begins to write to the database of `pool`, which logs in as `supabase_ferrobase_admin`. Entries stay for `days`.
    pub fn start(pool: Pool, days: u32) -> (Self, Writing) {
        let audit = Self { waiting: Some(Arc::default()) };
        let task = tokio::spawn(write_on(audit.clone(), pool, days));
        (audit.clone(), Writing { audit, task })
    }

    /// Whether anything is noted at all.
    pub fn is_on(&self) -> bool {
        self.waiting.is_some()
    }

    /// Notes a change that a request has made or tried.
    pub fn note(&self, entry: Entry, request_id: &str) {
        let Some(waiting) = &self.waiting else { return };
        NOTED.increment();
        let mut entries = waiting.entries.lock();
        if let Some(noted) = entries.get_mut(&entry) {
            noted.count += 1;
        } else if entries.len() < KEPT {
            entries
                .insert(entry, Repeated { count: 1, request_id: request_id.to_owned(), database: replaced::times() });
        } else {
            LOST.increment();
        }
    }

    fn take(&self) -> HashMap<Entry, Repeated> {
        self.waiting.as_ref().map(|waiting| std::mem::take(&mut *waiting.entries.lock())).unwrap_or_default()
    }

    /// What could not be written waits again.
    fn put_back(&self, entries: HashMap<Entry, Repeated>) {
        let Some(waiting) = &self.waiting else { return };
        let mut kept = waiting.entries.lock();
        for (entry, noted) in entries {
            if let Some(known) = kept.get_mut(&entry) {
                known.count += noted.count;
                known.request_id = noted.request_id;
            } else if kept.len() < KEPT {
                kept.insert(entry, noted);
            } else {
                LOST.add(u64::try_from(noted.count).unwrap_or(0));
            }
        }
    }

    async fn write(&self, pool: &Pool) {
        // What was noted of a database that a reset has replaced is gone with it.
        let _held = replaced::hold().await;
        let mut entries = self.take();
        entries.retain(|_, noted| noted.database == replaced::times());
        if entries.is_empty() {
            return;
        }
        if let Err(error) = write::entries(pool, &entries).await {
            tracing::warn!(%error, waiting = entries.len(), "the audit log cannot be written at the moment");
            self.put_back(entries);
        }
    }
}

impl Writing {
    /// Writes what was noted and ends.
    pub async fn stop(self) {
        if let Some(waiting) = &self.audit.waiting {
            waiting.stop.notify_one();
        }
        let _ = self.task.await;
    }
}

async fn write_on(audit: Audit, pool: Pool, days: u32) {
    let Some(waiting) = audit.waiting.clone() else { return };
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    loop {
        let is_over = tokio::select! {
            () = waiting.stop.notified() => true,
            () = tokio::time::sleep(WRITE_EVERY) => false,
            _ = sweep.tick() => {
                if let Err(error) = write::sweep(&pool, days).await {
                    tracing::warn!(%error, "old entries of the audit log could not be removed");
                }
                false
            }
        };
        audit.write(&pool).await;
        if is_over {
            return;
        }
    }
}

/// Prometheus' text format.
pub fn metrics() -> String {
    let mut metrics = Metrics::default();
    metrics.single("ferrobase_audit_changes_total", "Changes recorded in the audit log", NOTED.get());
    metrics.single("ferrobase_audit_lost_total", "Changes that the audit log has lost", LOST.get());
    metrics.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(target: &str) -> Entry {
        Entry {
            minute: 7,
            actor: "key 1".to_owned(),
            address: "127.0.0.1".to_owned(),
            action: "POST".to_owned(),
            target: target.to_owned(),
            outcome: "2xx".to_owned(),
        }
    }

    #[test]
    fn the_same_change_in_a_minute_is_one_entry_with_a_count_and_the_first_id() {
        let audit = Audit { waiting: Some(Arc::default()) };
        for id in ["a", "b", "c"] {
            audit.note(entry("/rest/v1/notes"), id);
        }
        let taken = audit.take();
        let noted = &taken[&entry("/rest/v1/notes")];
        assert_eq!((taken.len(), noted.count, noted.request_id.as_str()), (1, 3, "a"));
        audit.note(entry("/rest/v1/notes"), "d");
        audit.put_back(taken);
        let again = audit.take();
        let noted = &again[&entry("/rest/v1/notes")];
        assert_eq!((noted.count, noted.request_id.as_str()), (4, "a"));
    }

    #[test]
    fn the_queue_is_bounded() {
        let audit = Audit { waiting: Some(Arc::default()) };
        let lost = LOST.get();
        for n in 0..KEPT + 5 {
            audit.note(entry(&n.to_string()), "id");
        }
        assert_eq!(audit.take().len(), KEPT);
        assert_eq!(LOST.get() - lost, 5);
    }
}
