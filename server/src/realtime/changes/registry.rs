//! Subscriptions by table.

use std::collections::HashMap;
use std::sync::Arc;

use super::Action;
use super::filter::{Bounds, Filter};
use super::view::View;
use crate::realtime::hub::Member;

/// A channel's subscription.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The id known to the client.
    pub id: u32,
    pub(super) action: Option<Action>,
    /// None stands for all.
    pub(super) schema: Option<String>,
    pub(super) table: Option<String>,
    pub(super) filters: Vec<Bounds>,
    /// The filters as they were written, and the tables that were meant when it began, for `realtime.subscription`.
    pub(super) conditions: Arc<[Filter]>,
    pub(super) tables: Arc<[u32]>,
    pub(super) shape: Shape,
    pub(super) has_config: bool,
    /// The rows in its view, if it wants to know of rows that leave it.
    pub(super) view: Option<Arc<View>>,
}

impl Subscription {
    pub(super) fn is_of_one_table(&self) -> bool {
        self.schema.is_some() && self.table.is_some()
    }

    /// Whether changes of this kind matter to it.
    pub(super) fn follows(&self, action: Action) -> bool {
        self.view.is_some() || self.tells(action)
    }

    /// Whether changes of this kind are sent to it.
    pub(super) fn tells(&self, action: Action) -> bool {
        self.action.is_none_or(|wanted| wanted == action)
    }
}

/// The requested form of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Columns besides the primary key; `None` stands for all.
    pub(super) select: Option<Arc<[String]>>,
    /// `int8` and `numeric` as strings, for clients whose numbers end at 2^53.
    pub(super) has_text_numbers: bool,
}

impl Subscription {
    /// Schema and table, if it is for one table.
    pub(super) fn place(&self) -> Option<(String, String)> {
        self.schema.clone().zip(self.table.clone())
    }
}

impl std::fmt::Display for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (schema, table) = (self.schema.as_deref().unwrap_or("*"), self.table.as_deref().unwrap_or("*"));
        write!(f, "{} {schema}.{table}", self.action.map_or("*", Action::name))?;
        for condition in self.conditions.iter() {
            let negation = if condition.negate { "not." } else { "" };
            write!(f, " {}={negation}{}.{}", condition.column, condition.op.name(), condition.value)?;
        }
        Ok(())
    }
}

/// A subscription and its channel.
pub struct Entry {
    pub member: Arc<Member>,
    /// Later subscriptions have higher numbers; a new token does not change it.
    pub(super) number: u64,
    pub subscription: Subscription,
}

/// Subscriptions by table.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) exact: HashMap<(String, String), Vec<Arc<Entry>>>,
    /// Subscriptions to all tables, or to all tables of a schema.
    wide: Vec<Arc<Entry>>,
    by_member: HashMap<u64, Vec<Arc<Entry>>>,
    /// The highest number of an entry.
    pub(super) newest: u64,
}

impl Registry {
    /// `number` if it had one before.
    pub(super) fn insert(&mut self, member: &Arc<Member>, subscription: Subscription, number: Option<u64>) {
        let number = number.unwrap_or_else(|| {
            self.newest += 1;
            self.newest
        });
        let entry = Arc::new(Entry { member: Arc::clone(member), number, subscription });
        match entry.subscription.place() {
            Some(place) => self.exact.entry(place).or_default().push(Arc::clone(&entry)),
            None => self.wide.push(Arc::clone(&entry)),
        }
        self.by_member.entry(entry.member.id).or_default().push(entry);
    }

    /// Whether there was any.
    pub(super) fn remove(&mut self, member: u64) -> bool {
        let Some(gone) = self.by_member.remove(&member) else { return false };
        for entry in gone {
            match entry.subscription.place() {
                Some(place) => {
                    if let Some(entries) = self.exact.get_mut(&place) {
                        entries.retain(|entry| entry.member.id != member);
                        if entries.is_empty() {
                            self.exact.remove(&place);
                        }
                    }
                }
                None => self.wide.retain(|entry| entry.member.id != member),
            }
        }
        true
    }

    /// Channels that have subscriptions.
    pub(super) fn channels(&self) -> Vec<u64> {
        self.by_member.keys().copied().collect()
    }

    pub(super) fn of_channel(&self, member: u64) -> &[Arc<Entry>] {
        self.by_member.get(&member).map(Vec::as_slice).unwrap_or_default()
    }

    /// The subscriptions that match a table's changes.
    pub(super) fn find(&self, place: &(String, String)) -> Vec<Arc<Entry>> {
        let exact = self.exact.get(place).map(Vec::as_slice).unwrap_or_default();
        let wide = self.wide.iter().filter(|entry| {
            let subscription = &entry.subscription;
            subscription.schema.as_ref().is_none_or(|schema| *schema == place.0)
                && subscription.table.as_ref().is_none_or(|table| *table == place.1)
        });
        exact.iter().chain(wide).cloned().collect()
    }
}
