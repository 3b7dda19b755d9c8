//! `realtime.subscription`: subscriptions as rows, for tools that read them.
//!
//! The rows follow the registry with a short delay, in batches. Nothing depends on them, so a database that does not
//! accept them delays nobody. An instance's rows are visible while its slot exists: a stop, a crash or a lost
//! connection hides them at once, and the next instance that opens a stream deletes them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{Action, Entry};
use crate::db::{DbError, Param, Step, replaced};
use crate::realtime::Inner;
use crate::realtime::policies::{array, text};

/// How long changes of the registry are collected.
const GATHER: Duration = Duration::from_millis(250);
/// Channels whose rows are written in one statement.
const BATCH: usize = 500;
/// Pause after the database has refused or failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Pending updates of the rows.
#[derive(Default)]
pub struct Record {
    pending: Mutex<PendingWrites>,
    wake: Notify,
}

#[derive(Default)]
struct PendingWrites {
    channels: HashSet<u64>,
    /// Every channel, because a write has failed.
    all: bool,
    /// A stream has been opened, so rows of dead instances have to be deleted.
    sweep: bool,
}

impl Record {
    /// The subscriptions of a channel have changed.
    pub fn touch(&self, channel: u64) {
        let mut pending = self.pending.lock();
        if !pending.all {
            pending.channels.insert(channel);
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// The stream runs.
    pub fn sweep(&self) {
        self.pending.lock().sweep = true;
        self.wake.notify_one();
    }

    fn take(&self) -> PendingWrites {
        std::mem::take(&mut *self.pending.lock())
    }

    fn failed(&self, sweep: bool) {
        let mut pending = self.pending.lock();
        // Pending updates are dropped, because everything is written again.
        *pending = PendingWrites { channels: HashSet::new(), all: true, sweep: sweep || pending.sweep };
        drop(pending);
        self.wake.notify_one();
    }
}

/// Keeps the rows in step with the registry until the server stops.
pub async fn run(inner: Arc<Inner>) {
    let record = &inner.changes.record;
    let mut stopping = inner.stopping.subscribe();
    loop {
        tokio::select! {
            () = record.wake.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        tokio::time::sleep(GATHER).await;
        let pending = record.take();
        let database = replaced::times();
        if let Err(error) = write(&inner, &pending).await {
            tracing::debug!(%error, "realtime.subscription is not kept up to date");
            record.failed(pending.sweep);
            if replaced::times() == database {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn write(inner: &Inner, pending: &PendingWrites) -> Result<(), DbError> {
    if pending.sweep {
        call(inner, "select realtime.forget_subscriptions()", Vec::new()).await?;
    }
    if pending.all {
        note(inner, None, &[]).await?;
    }
    let channels: Vec<u64> =
        if pending.all { inner.changes.registry.read().channels() } else { pending.channels.iter().copied().collect() };
    for batch in channels.chunks(BATCH) {
        let Err(error) = note(inner, Some(batch), &rows(inner, batch)).await else { continue };
        let DbError::Refused(_) = error else { return Err(error) };
        // A channel whose claims PostgreSQL cannot store (with a NUL) must not block the others.
        for channel in batch {
            match note(inner, Some(&[*channel]), &rows(inner, &[*channel])).await {
                Err(DbError::Refused(refusal)) => tracing::debug!(%refusal, "a subscription cannot be shown"),
                outcome => outcome?,
            }
        }
    }
    Ok(())
}

fn rows(inner: &Inner, channels: &[u64]) -> Vec<Value> {
    let registry = inner.changes.registry.read();
    let entries = channels.iter().flat_map(|channel| registry.of_channel(*channel));
    entries.filter_map(|entry| row(inner.instance, entry)).collect()
}

fn row(instance: u64, entry: &Entry) -> Option<Value> {
    let subscription = &entry.subscription;
    let filters: Vec<Value> = subscription
        .conditions
        .iter()
        .map(|filter| {
            json!({
                "column_name": filter.column, "op": filter.op.name(), "value": filter.value, "negate": filter.negate,
            })
        })
        .collect();
    let identity = entry.member.identity.load();
    let claims: Value = serde_json::from_str(&identity.caller.claims).ok()?;
    Some(json!({
        "channel": entry.member.id,
        "id": Uuid::from_u64_pair(instance, entry.member.id),
        "tables": &*subscription.tables,
        "filters": filters,
        "claims": claims,
        "action": subscription.action.map_or("*", Action::name),
        "columns": subscription.shape.select.as_deref(),
    }))
}

async fn note(inner: &Inner, channels: Option<&[u64]>, rows: &[Value]) -> Result<(), DbError> {
    let channels = match channels {
        Some(channels) => {
            let channels: Vec<String> = channels.iter().map(u64::to_string).collect();
            array(channels.iter().map(String::as_str))
        }
        None => text(""),
    };
    let params = vec![text(&inner.instance_name()), channels, text(&Value::from(rows).to_string())];
    call(inner, "select realtime.note_subscriptions($1, nullif($2, '')::int8[], $3::jsonb)", params).await
}

async fn call(inner: &Inner, sql: &str, params: Vec<Param>) -> Result<(), DbError> {
    let step = Step { text: sql.into(), params, role: "".into() };
    match inner.db.run_each("realtime", &[vec![step]]).await?.pop() {
        Some(Err(refusal)) => Err(DbError::Refused(refusal)),
        _ => Ok(()),
    }
}
