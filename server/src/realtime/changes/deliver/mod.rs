//! Decides who may see a changed row, and which columns.
//!
//! The rows of a batch are checked together. One round trip asks what the roles may read and which rows each (role,
//! claims) may see now. Another one asks for the result of filters that cannot be evaluated here, if there are any. Nothing
//! is sent without PostgreSQL's positive answer to exactly that question. Reference: supabase/realtime
//! `priv/repo/tenant_schema/realtime/functions/apply_rls.sql`.

mod ask;
mod send;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::catalog::{Table, tables};
use super::change::Change;
use super::pgoutput::Relation;
use super::{Action, Entry};
use crate::db::DbError;
use crate::realtime::Inner;
use crate::realtime::hub::Member;
use crate::realtime::session::Command;
use crate::realtime::token::Identity;
use ask::{
    Asked, Filtered, Questions, are_visible, ask_rights, ask_visible, await_commits, check_filters, compare, rights_of,
    run,
};
use send::send;

const STALE: &str = "A table of this channel has changed its columns";

/// How often a failing database is asked.
const ATTEMPTS: u32 = 3;
/// The time for all filters of a batch that PostgreSQL evaluates. Clients choose them, and all changes wait for them.
const COMPARING: Duration = Duration::from_secs(5);

/// Tables loaded for the relations that the stream announced last.
#[derive(Default)]
pub struct Known {
    tables: HashMap<u32, KnownRelation>,
    /// The last transaction known to be visible to others.
    visible: Option<u32>,
}

struct KnownRelation {
    relation: Arc<Relation>,
    table: Option<Arc<Table>>,
    /// Columns are identified by name. After a rename, the columns of earlier changes are unknown.
    is_stale: bool,
}

impl Known {
    async fn learn(&mut self, inner: &Inner, changes: &[Change]) -> Result<(), DbError> {
        let mut unknown: Vec<Arc<Relation>> = Vec::new();
        for change in changes {
            let relation = &change.relation;
            let is_known = self.tables.get(&relation.id).is_some_and(|known| Arc::ptr_eq(&known.relation, relation));
            if !is_known && !unknown.iter().any(|other| Arc::ptr_eq(other, relation)) {
                unknown.push(Arc::clone(relation));
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let oids: Vec<u32> = unknown.iter().map(|relation| relation.id).collect();
        let found: HashMap<u32, Arc<Table>> =
            tables(&inner.db, &oids).await?.into_iter().map(|table| (table.oid, Arc::new(table))).collect();
        inner.metrics.visibility_trips.fetch_add(1, Ordering::Relaxed);
        for relation in unknown {
            // A table that was altered within the batch appears twice.
            let table = found.get(&relation.id).cloned();
            let is_gone = |name: &str| table.as_ref().is_some_and(|table| table.column(name).is_none());
            let is_stale = relation.columns.iter().any(|column| is_gone(&column.name));
            self.tables.insert(relation.id, KnownRelation { relation, table, is_stale });
        }
        Ok(())
    }

    fn table(&self, relation: &Relation) -> Option<&Arc<Table>> {
        self.tables.get(&relation.id)?.table.as_ref()
    }

    fn is_stale(&self, relation: &Relation) -> bool {
        self.tables.get(&relation.id).is_some_and(|known| known.is_stale)
    }
}

/// A change and a subscription that it may concern.
struct Candidate {
    change: usize,
    entry: Arc<Entry>,
    /// The identity of the entry's channel at the time of the query.
    identity: Arc<Identity>,
    group: usize,
    /// Whether its filters pass, except for the questions.
    passes: bool,
    /// Questions that must all be answered with yes: (question, its row).
    questions: Vec<(usize, usize)>,
}

/// Sends the changes of a batch to those who may see them.
pub async fn deliver(inner: &Arc<Inner>, known: &mut Known, changes: &[Change]) {
    inner.metrics.changes.fetch_add(changes.len() as u64, Ordering::Relaxed);
    let mut left: Option<Vec<(usize, Arc<Entry>)>> = None;
    let mut comparing = COMPARING;
    // Tokens may be exchanged during the query; those channels are then checked again.
    for _ in 0..4 {
        let mut attempt = 0;
        let outcome = loop {
            match pass(inner, known, changes, left.as_deref(), &mut comparing).await {
                Ok(Some(again)) => break Ok(again),
                Ok(None) => tracing::debug!("changes are not visible to others yet"),
                Err(error) if attempt < ATTEMPTS => {
                    attempt += 1;
                    tracing::debug!(%error, attempt, "the database could not be asked who may see changes");
                    tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
                }
                Err(error) => break Err(error),
            }
        };
        match outcome {
            Ok(again) if again.is_empty() => return,
            Ok(again) => left = Some(again),
            Err(error) => {
                tracing::warn!(%error, "changes cannot be delivered: nobody can say who may see them");
                break;
            }
        }
    }
    // Never a silent gap: every channel that may be affected has to join and read again.
    let mut told = HashSet::new();
    let mut end_once = |entry: &Entry| {
        if told.insert(entry.member.id) {
            end(&entry.member, "Changes could not be checked against the database");
        }
    };
    match left {
        // All others have been served, so a client that keeps exchanging tokens does not affect them.
        Some(left) => left.iter().for_each(|(_, entry)| end_once(entry)),
        None => {
            let registry = inner.changes.registry.read();
            changes.iter().flat_map(|change| registry.find(&change.place())).for_each(|entry| end_once(&entry));
        }
    }
}

fn end(member: &Arc<Member>, message: &str) {
    member.commands.give(Command {
        member: member.id,
        message: message.to_owned(),
        extension: "postgres_changes",
        rejoin: true,
    });
}

/// One attempt for all candidates, or for those given. Returns those that must be checked again, or `None` while
/// others cannot see the changes yet: the log runs ahead of visibility, with a synchronous standby until that has
/// answered. `comparing` is the time that is left for filters.
async fn pass(
    inner: &Arc<Inner>,
    known: &mut Known,
    changes: &[Change],
    only: Option<&[(usize, Arc<Entry>)]>,
    comparing: &mut Duration,
) -> Result<Option<Vec<(usize, Arc<Entry>)>>, DbError> {
    known.learn(inner, changes).await?;
    let mut asked = Asked::default();
    await_commits(&mut asked, changes);
    let mut groups: Vec<Arc<Identity>> = Vec::new();
    let mut candidates = Vec::new();
    let mut questions = Questions::default();
    let (pairs, newest) = match only {
        Some(pairs) => (pairs.to_vec(), 0),
        None => find_pairs(inner, changes, 0),
    };
    {
        let mut numbers: HashMap<Arc<Identity>, usize> = HashMap::new();
        for (place, entry) in pairs {
            let change = &changes[place];
            if known.table(&change.relation).is_none() {
                continue;
            }
            let filtered = match known.is_stale(&change.relation) {
                true => Filtered::Stale,
                false => check_filters(change, place, &entry, &mut questions),
            };
            let (passes, pending) = match filtered {
                Filtered::Stale => {
                    end(&entry.member, STALE);
                    continue;
                }
                Filtered::Passes(pending) => (true, pending),
                // A row that it has seen, perhaps in this very batch, may leave its view.
                Filtered::Fails if entry.subscription.view.is_some() && change.action != Action::Insert => {
                    (false, Vec::new())
                }
                Filtered::Fails => continue,
            };
            let identity = entry.member.identity.load_full();
            let group = *numbers.entry(Arc::clone(&identity)).or_insert_with(|| {
                groups.push(Arc::clone(&identity));
                groups.len() - 1
            });
            candidates.push(Candidate { change: place, entry, identity, group, passes, questions: pending });
        }
    }
    if candidates.is_empty() && changes.iter().all(|change| Some(change.xid) == known.visible) {
        return Ok(Some(Vec::new()));
    }
    ask_rights(&mut asked, changes, known, &candidates, &groups);
    ask_visible(&mut asked, inner, changes, known, &candidates, &groups, |table| table.had_rls);
    let mut answers = run(inner, &asked.parts).await?;
    if !are_visible(&answers)? {
        return Ok(None);
    }
    known.visible = changes.last().map(|change| change.xid);
    // A new subscriber may have read the table before the changes were visible.
    let late = if only.is_none() { find_pairs(inner, changes, newest).0 } else { Vec::new() };
    if candidates.is_empty() {
        return Ok(Some(late));
    }
    let rights = rights_of(&asked, &answers)?;
    // Row level security was turned on since, so its query is added.
    let missing = |table: &Table| {
        !table.had_rls && rights.get(&table.oid).is_some_and(|roles| roles.values().any(|rights| rights.rls))
    };
    let first = asked.parts.len();
    ask_visible(&mut asked, inner, changes, known, &candidates, &groups, missing);
    if asked.parts.len() > first {
        answers.extend(run(inner, &asked.parts[first..]).await?);
    }
    let compared = compare(inner, changes, &questions, comparing).await?;
    let mut again = send(inner, known, changes, candidates, &groups, &asked, &answers, &rights, &compared);
    again.extend(late);
    Ok(Some(again))
}

/// Pairs each change with each subscription to its table and kind that is newer than `after`. Also returns the newest
/// subscription.
fn find_pairs(inner: &Inner, changes: &[Change], after: u64) -> (Vec<(usize, Arc<Entry>)>, u64) {
    let registry = inner.changes.registry.read();
    let mut found: HashMap<(String, String), Vec<Arc<Entry>>> = HashMap::new();
    let mut pairs = Vec::new();
    if registry.newest == after {
        return (pairs, after);
    }
    for (place, change) in changes.iter().enumerate() {
        let entries = found.entry(change.place()).or_insert_with_key(|key| registry.find(key));
        for entry in entries.iter() {
            if entry.subscription.follows(change.action) && entry.number > after {
                pairs.push((place, Arc::clone(entry)));
            }
        }
    }
    (pairs, registry.newest)
}
