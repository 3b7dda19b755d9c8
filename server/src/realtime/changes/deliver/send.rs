//! Sends what the answers allow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::ask::{AllRights, Asked, Compared, is_fault, new_key, old_key};
use super::write::{Outgoing, Shown, Writer};
use super::{Candidate, Known, end};
use crate::db::PartAnswer;
use crate::realtime::Inner;
use crate::realtime::changes::catalog::Table;
use crate::realtime::changes::change::Change;
use crate::realtime::changes::view::View;
use crate::realtime::changes::{Action, Entry, Shape};
use crate::realtime::token::Identity;

/// PostgreSQL's answer about a row for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visibility {
    Seen,
    Unseen,
    /// No answer: a timeout, a failing server.
    Unknown,
}

/// Sends what the answers allow. Returns candidates whose channel has changed its identity meanwhile.
#[allow(clippy::too_many_arguments, reason = "all that was asked and answered")]
pub(super) fn send(
    inner: &Inner,
    known: &Known,
    changes: &[Change],
    candidates: Vec<Candidate>,
    groups: &[Arc<Identity>],
    asked: &Asked,
    answers: &[PartAnswer],
    rights: &AllRights,
    compared: &Compared,
) -> Vec<(usize, Arc<Entry>)> {
    let mut sights: HashMap<(usize, usize), Visibility> = HashMap::new();
    for ((group, _), (part, places)) in &asked.visible {
        let (seen, other) = match &answers[*part] {
            Ok(rows) => {
                let rows = rows.last().map(Vec::as_slice).unwrap_or_default();
                let seen: Vec<usize> =
                    rows.iter().filter_map(|row| usize::try_from(row.int4(0).ok()??).ok()?.checked_sub(1)).collect();
                (seen, Visibility::Unseen)
            }
            Err(refusal) => {
                tracing::debug!(%refusal, role = groups[*group].caller.role, "a policy failed for a subscriber");
                (Vec::new(), if is_fault(refusal) { Visibility::Unknown } else { Visibility::Unseen })
            }
        };
        for (row, place) in places.iter().enumerate() {
            sights.insert((*group, *place), if seen.contains(&row) { Visibility::Seen } else { other });
        }
    }
    // `None` if PostgreSQL has not answered; a question without the row is one that could not be compared.
    let holds = |(question, row): &(usize, usize)| {
        compared[*question].as_ref().map(|rows| rows.get(*row).copied().unwrap_or_default())
    };
    let mut writer = Writer::new(inner, changes);
    let mut again = Vec::new();
    let mut failed: HashSet<u64> = HashSet::new();
    let mut fail = |entry: &Entry| {
        if failed.insert(entry.member.id) {
            end(&entry.member, "Changes could not be checked against the database");
        }
    };
    // A channel gets one message per change for all its subscriptions of the same shape.
    let mut outgoing: Vec<Outgoing> = Vec::new();
    let mut index: HashMap<MessageKey, usize> = HashMap::new();
    for candidate in candidates {
        let Candidate { change: place, entry, identity, group, passes, questions } = candidate;
        let passes = passes && !questions.iter().any(|asked| holds(asked) == Some(false));
        let is_open = passes && questions.iter().any(|asked| holds(asked).is_none());
        let view = entry.subscription.view.as_deref();
        if !passes && view.is_none() {
            continue;
        }
        let change = &changes[place];
        let Some(table) = known.table(&change.relation) else { continue };
        let role = groups[group].caller.role.as_str();
        // An unknown role may read nothing.
        let Some(rights) = rights.get(&table.oid).and_then(|roles| roles.get(role)) else { continue };
        // A filter must not reveal a column that the role may not read.
        if entry.subscription.filters.iter().any(|filter| !rights.columns.contains(&*filter.column)) {
            continue;
        }
        if !Arc::ptr_eq(&identity, &entry.member.identity.load()) {
            again.push((place, entry));
            continue;
        }
        if is_open {
            fail(&entry);
            continue;
        }
        let is_keyed = table.visible_sql.is_some();
        let is_key_open = table.keys().all(|key| rights.columns.contains(&key.name));
        // Whether the row was in view; it is removed from it.
        let leaves = || view.is_some_and(|view| old_key(change, table).is_some_and(|key| view.leave(&key)));
        let verdict = match change.action {
            Action::Delete if rights.columns.is_empty() => continue,
            Action::Delete if leaves() || passes => Shown::Row,
            Action::Delete => continue,
            _ if !is_keyed && (rights.columns.is_empty() || !passes) => continue,
            _ if !is_keyed => Shown::NoKey,
            _ if !is_key_open && !passes => continue,
            _ if !is_key_open => Shown::Unauthorized,
            _ if !passes && leaves() => Shown::Left,
            _ if !passes => continue,
            _ if !rights.rls => Shown::Row,
            _ => match sights.get(&(group, place)) {
                Some(Visibility::Seen) => Shown::Row,
                Some(Visibility::Unseen) if leaves() => Shown::Left,
                Some(Visibility::Unknown) => {
                    fail(&entry);
                    continue;
                }
                // Not asked means not allowed.
                Some(Visibility::Unseen) | None => continue,
            },
        };
        if let Some(view) = view.filter(|_| verdict == Shown::Row && change.action != Action::Delete) {
            enter(view, change, table, &entry);
        }
        let kind = if verdict == Shown::Left { Action::Delete } else { change.action };
        if !entry.subscription.tells(kind) {
            continue;
        }
        let shape = entry.subscription.shape.clone();
        let place_of = index.entry((place, entry.member.id, shape, verdict)).or_insert_with(|| {
            outgoing.push(Outgoing { change: place, entry: Arc::clone(&entry), group, verdict, ids: Vec::new() });
            outgoing.len() - 1
        });
        let ids = &mut outgoing[*place_of].ids;
        if !ids.contains(&entry.subscription.id) {
            ids.push(entry.subscription.id);
        }
    }
    // In the order of the log, not of the subscriptions.
    outgoing.sort_by_key(|message| message.change);
    for message in &outgoing {
        let table = known.table(&changes[message.change].relation);
        let role = groups[message.group].caller.role.as_str();
        let Some((table, rights)) = table.and_then(|table| Some((table, rights.get(&table.oid)?.get(role)?))) else {
            continue;
        };
        if failed.contains(&message.entry.member.id) {
            continue;
        }
        writer.send(message, table, role, rights);
    }
    again
}

/// Records that a subscription has seen a row.
fn enter(view: &View, change: &Change, table: &Table, entry: &Entry) {
    let (old, new) = (old_key(change, table), new_key(change, table));
    if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
        view.leave(&old);
    }
    if new.is_some_and(|new| !view.enter(&new)) && entry.member.warn() {
        let text = "There are too many rows in view to remember: some will leave it without a word";
        entry.member.system("postgres_changes", "error", text);
    }
}

/// (change, channel, shape, what is shown)
type MessageKey = (usize, u64, Shape, Shown);
