//! Which statements a connection has prepared.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};

/// A statement that the connection has prepared.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub name: Arc<str>,
    /// A bit per `jsonb` column, see [`super::Row`].
    pub jsonb: u64,
}

/// How to send a statement.
#[derive(Clone, Debug)]
pub enum Use {
    /// Seen for the first time: not prepared, since most statements are not repeated.
    Once,
    /// Seen for the second time: prepare it under this name.
    Prepare(Arc<str>),
    Prepared(Prepared),
}

/// Statements by text and role: PostgreSQL plans a statement with row level security again whenever another role runs
/// it.
pub struct Statements {
    capacity: usize,
    clock: u64,
    made: u64,
    hasher: RandomState,
    entries: HashMap<u64, Entry>,
    /// Names to be closed with the next transaction.
    pub closing: Vec<Arc<str>>,
}

struct Entry {
    role: Box<str>,
    text: Box<str>,
    prepared: Option<Prepared>,
    used: u64,
}

impl Statements {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clock: 0,
            made: 0,
            hasher: RandomState::default(),
            entries: HashMap::new(),
            closing: Vec::new(),
        }
    }

    /// How to send `text` as `role`; counts as a use.
    pub fn find(&mut self, role: &str, text: &str) -> Use {
        if self.capacity == 0 {
            return Use::Once;
        }
        self.clock += 1;
        let key = self.hasher.hash_one((role, text));
        match self.entries.get_mut(&key) {
            Some(entry) if *entry.text == *text && *entry.role == *role => {
                entry.used = self.clock;
                match &entry.prepared {
                    Some(prepared) => Use::Prepared(prepared.clone()),
                    None => {
                        self.made += 1;
                        Use::Prepare(format!("s{}", self.made).into())
                    }
                }
            }
            // A hash collision: the second text stays unprepared.
            Some(_) => Use::Once,
            None => {
                self.make_room();
                let entry = Entry { role: role.into(), text: text.into(), prepared: None, used: self.clock };
                self.entries.insert(key, entry);
                Use::Once
            }
        }
    }

    /// Remembers that the connection has prepared a statement.
    pub fn keep(&mut self, role: &str, text: &str, prepared: Prepared) {
        let key = self.hasher.hash_one((role, text));
        match self.entries.get_mut(&key) {
            Some(entry) if *entry.text == *text && *entry.role == *role => {
                if let Some(replaced) = entry.prepared.replace(prepared) {
                    self.closing.push(replaced.name);
                }
            }
            // Forgotten meanwhile.
            Some(_) | None => self.closing.push(prepared.name),
        }
    }

    /// Drops all statements, because one of them no longer fits the schema.
    pub fn forget(&mut self) {
        let names = self.entries.drain().filter_map(|(_, entry)| entry.prepared).map(|prepared| prepared.name);
        self.closing.extend(names);
    }

    /// Removes a tenth at a time, so that a series of one-off statements does not search on every insert.
    fn make_room(&mut self) {
        if self.entries.len() < self.capacity {
            return;
        }
        let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let cut = ages.len() / 10;
        let (_, threshold, _) = ages.select_nth_unstable(cut);
        let threshold = *threshold;
        let closing = &mut self.closing;
        self.entries.retain(|_, entry| {
            let is_kept = entry.used > threshold;
            if !is_kept {
                closing.extend(entry.prepared.take().map(|prepared| prepared.name));
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(name: &str) -> Prepared {
        Prepared { name: name.into(), jsonb: 0 }
    }

    #[test]
    fn a_statement_is_prepared_at_its_second_use_and_used_from_its_third() {
        let mut statements = Statements::new(4);
        assert!(matches!(statements.find("", "a"), Use::Once));
        let Use::Prepare(name) = statements.find("", "a") else { panic!("to be prepared") };
        statements.keep("", "a", prepared(&name));
        assert!(matches!(statements.find("", "a"), Use::Prepared(found) if found.name == name));
    }

    #[test]
    fn each_role_has_its_own() {
        let mut statements = Statements::new(4);
        statements.find("r", "a");
        assert!(matches!(statements.find("s", "a"), Use::Once));
        statements.find("r", "a");
        statements.keep("r", "a", prepared("one"));
        assert!(matches!(statements.find("r", "a"), Use::Prepared(_)));
        assert!(matches!(statements.find("s", "a"), Use::Prepare(_)));
    }

    #[test]
    fn the_cache_is_bounded_lru_and_closes_evicted_statements() {
        let mut statements = Statements::new(10);
        statements.find("", "kept");
        statements.find("", "kept");
        statements.keep("", "kept", prepared("kept"));
        for n in 0..100 {
            let text = format!("one-off {n}");
            statements.find("", &text);
            statements.find("", &text);
            statements.keep("", &text, prepared(&text));
            statements.find("", "kept");
        }
        assert!(statements.entries.len() <= 10);
        assert!(matches!(statements.find("", "kept"), Use::Prepared(_)));
        assert!(statements.closing.len() >= 90 && statements.closing.iter().all(|name| &**name != "kept"));
    }

    #[test]
    fn forgetting_closes_everything() {
        let mut statements = Statements::new(10);
        statements.find("", "a");
        statements.find("", "a");
        statements.keep("", "a", prepared("s1"));
        statements.forget();
        assert_eq!(statements.closing, ["s1".into()]);
        assert!(matches!(statements.find("", "a"), Use::Once));
        statements.keep("", "gone", prepared("s2"));
        assert_eq!(statements.closing.len(), 2);
    }

    #[test]
    fn no_statements_are_cached_if_preparing_is_disabled() {
        let mut statements = Statements::new(0);
        assert!(matches!(statements.find("", "a"), Use::Once));
        assert!(matches!(statements.find("", "a"), Use::Once));
    }
}
