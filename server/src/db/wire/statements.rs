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

/// A longer text is never prepared, in bytes. Both sides keep what they have prepared, PostgreSQL at many times its length.
const LONGEST: usize = 16 << 10;
/// The texts that are kept of a connection's statements take at most this, in bytes.
const MOST_TEXT: usize = 1 << 20;

/// Statements by text and role: PostgreSQL plans a statement with row level security again whenever another role runs
/// it. Only prepared ones are kept with their text; of others, which may be anything that a client makes up, a hash.
pub struct Statements {
    capacity: usize,
    clock: u64,
    made: u64,
    hasher: RandomState,
    entries: HashMap<u64, Entry>,
    /// The length of all texts in `entries`.
    text: usize,
    /// Names to be closed with the next transaction.
    pub closing: Vec<Arc<str>>,
}

struct Entry {
    kept: Option<Kept>,
    used: u64,
}

struct Kept {
    role: Box<str>,
    text: Box<str>,
    prepared: Prepared,
}

impl Statements {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clock: 0,
            made: 0,
            hasher: RandomState::default(),
            entries: HashMap::new(),
            text: 0,
            closing: Vec::new(),
        }
    }

    /// How to send `text` as `role`; counts as a use.
    pub fn find(&mut self, role: &str, text: &str) -> Use {
        if self.capacity == 0 || text.len() > LONGEST {
            return Use::Once;
        }
        self.clock += 1;
        let key = self.hasher.hash_one((role, text));
        match self.entries.get_mut(&key) {
            Some(Entry { kept: Some(kept), used }) if *kept.text == *text && *kept.role == *role => {
                *used = self.clock;
                Use::Prepared(kept.prepared.clone())
            }
            // A hash collision: the second text stays unprepared.
            Some(Entry { kept: Some(_), .. }) => Use::Once,
            Some(Entry { kept: None, used }) => {
                *used = self.clock;
                self.made += 1;
                Use::Prepare(format!("s{}", self.made).into())
            }
            None => {
                if self.entries.len() >= self.capacity {
                    self.make_room();
                }
                self.entries.insert(key, Entry { kept: None, used: self.clock });
                Use::Once
            }
        }
    }

    /// Remembers that the connection has prepared a statement.
    pub fn keep(&mut self, role: &str, text: &str, prepared: Prepared) {
        while self.text + text.len() > MOST_TEXT && !self.entries.is_empty() {
            self.make_room();
        }
        let key = self.hasher.hash_one((role, text));
        match self.entries.get_mut(&key) {
            Some(Entry { kept: Some(kept), .. }) if *kept.text == *text && *kept.role == *role => {
                self.closing.push(std::mem::replace(&mut kept.prepared, prepared).name);
            }
            Some(Entry { kept: kept @ None, .. }) => {
                self.text += text.len();
                *kept = Some(Kept { role: role.into(), text: text.into(), prepared });
            }
            // Forgotten meanwhile, or a hash collision.
            Some(Entry { kept: Some(_), .. }) | None => self.closing.push(prepared.name),
        }
    }

    /// Drops all statements, because one of them no longer fits the schema.
    pub fn forget(&mut self) {
        let names = self.entries.drain().filter_map(|(_, entry)| entry.kept).map(|kept| kept.prepared.name);
        self.closing.extend(names);
        self.text = 0;
    }

    /// Removes the least recently used: a tenth at a time, so that a series of one-off statements does not search on every insert.
    fn make_room(&mut self) {
        let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let cut = ages.len() / 10;
        let (_, threshold, _) = ages.select_nth_unstable(cut);
        let threshold = *threshold;
        let Self { entries, closing, text, .. } = self;
        entries.retain(|_, entry| {
            let is_kept = entry.used > threshold;
            if let Some(kept) = entry.kept.take_if(|_| !is_kept) {
                *text -= kept.text.len();
                closing.push(kept.prepared.name);
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

    fn texts(statements: &Statements) -> usize {
        statements.entries.values().filter_map(|entry| entry.kept.as_ref()).map(|kept| kept.text.len()).sum()
    }

    #[test]
    fn of_statements_that_are_not_prepared_no_text_is_kept() {
        let mut statements = Statements::new(256);
        for n in 0..300 {
            let text = format!("select {n} {}", "a,".repeat(LONGEST / 3));
            assert!(matches!(statements.find("", &text), Use::Once));
            // Refused by PostgreSQL, so never kept.
            statements.find("", &text);
        }
        assert_eq!(texts(&statements), 0);
    }

    #[test]
    fn a_text_that_is_too_long_is_never_prepared() {
        let mut statements = Statements::new(4);
        let text = "x".repeat(LONGEST + 1);
        for _ in 0..3 {
            assert!(matches!(statements.find("", &text), Use::Once));
        }
        assert!(statements.entries.is_empty());
        statements.find("", &text[1..]);
        assert!(matches!(statements.find("", &text[1..]), Use::Prepare(_)));
    }

    #[test]
    fn the_texts_of_prepared_statements_are_bounded() {
        let mut statements = Statements::new(256);
        let prepare = |statements: &mut Statements, n: usize| {
            let text = format!("{n:0>LONGEST$}");
            statements.find("", &text);
            statements.find("", &text);
            statements.keep("", &text, prepared(&n.to_string()));
            text
        };
        let first = prepare(&mut statements, 0);
        for n in 1..200 {
            prepare(&mut statements, n);
            assert!(matches!(statements.find("", &first), Use::Prepared(_)), "{n}");
            assert_eq!(texts(&statements), statements.text);
            assert!(statements.text <= MOST_TEXT, "{n}");
        }
        assert!(statements.text > MOST_TEXT / 2);
        let kept = statements.text / LONGEST;
        assert_eq!(statements.closing.len(), 200 - kept, "all others are closed");
        statements.forget();
        assert_eq!(statements.text, 0);
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
