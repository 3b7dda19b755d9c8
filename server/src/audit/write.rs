//! Entries on their way into the database.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Entry, Repeated};
use crate::db::{self, DbError, Pool};

/// Adds entries; those that are there already are counted up.
const NOTE: &str = "select ferrobase.note_admin_actions($1::jsonb)";

/// The name of this machine, which tells instances apart.
static INSTANCE: LazyLock<String> = LazyLock::new(|| {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
});

pub(super) async fn entries(pool: &Pool, entries: &HashMap<Entry, Repeated>) -> Result<(), DbError> {
    let rows = entries.iter().map(|(entry, noted)| {
        json!({
            "at": entry.minute * 60,
            "instance": *INSTANCE,
            "actor": entry.actor,
            "address": entry.address,
            "action": entry.action,
            "target": entry.target,
            "outcome": entry.outcome,
            "count": noted.count,
            "request_id": noted.request_id,
        })
    });
    pool.lease().await?.execute(NOTE, &[&Value::from_iter(rows)]).await?;
    Ok(())
}

pub(super) async fn sweep(pool: &Pool, days: u32) -> Result<(), DbError> {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    pool.lease().await?.execute("select ferrobase.sweep_admin_audit($1)", &[&days]).await?;
    Ok(())
}

/// Notes a command that somebody ran on this machine. `url` logs in as the owner of the schema `ferrobase`.
///
/// A database without the log, as before its first migration, has nowhere to note it.
pub async fn note_command(url: &str, command: &str, target: &str, has_succeeded: bool) {
    if let Err(error) = try_note_command(url, command, target, has_succeeded).await {
        tracing::warn!(%error, command, "the command is not in the audit log");
    }
}

async fn try_note_command(url: &str, command: &str, target: &str, has_succeeded: bool) -> anyhow::Result<()> {
    let id = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(id).ok().flatten().map_or_else(|| id.to_string(), |user| user.name);
    let entry = json!([{
        "at": chrono::Utc::now().timestamp() / 60 * 60,
        "instance": *INSTANCE,
        "actor": format!("user {user}"),
        "address": "",
        "action": command,
        "target": target,
        "outcome": if has_succeeded { "ok" } else { "failed" },
        "count": 1,
        "request_id": "",
    }]);
    let client = db::connect_client(&url.parse()?).await?;
    let is_there = "select to_regprocedure('ferrobase.note_admin_actions(jsonb)') is not null";
    if client.query_one(is_there, &[]).await?.try_get(0)? {
        client.execute(NOTE, &[&entry]).await?;
    }
    Ok(())
}
