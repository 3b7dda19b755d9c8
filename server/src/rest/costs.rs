//! The cost of statements: which are known to be quick, and which PostgreSQL estimates as too expensive.
//!
//! Both are stored per statement text, independent of its values. Quick statements may use connections that are
//! reserved for them ([`crate::db::Asker`]). The estimate is made once per text and role, and only for reads that embed
//! deeply; others cannot cost much more than their own tables.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};
use parking_lot::Mutex;

/// A request that holds its connection for less than this is quick.
const QUICK: Duration = Duration::from_millis(100);
/// The number of statement times stored. Two statements in the same slot share one.
const PLACES: usize = 4096;
/// The number of estimates stored. When it is exceeded, all are dropped.
const MOST_ESTIMATES: usize = 1000;
/// A statement that takes this long is estimated again next time, because the estimate may have been for other values.
const DOUBTFUL: Duration = Duration::from_secs(1);

/// A hash of a statement's text, or of text and role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

/// A hash of all that a read asks for, without the digits of its query's values: the same for reads that differ only in an id or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(u64);

/// Times and estimates of statements.
pub struct Costs {
    hasher: RandomState,
    /// The statement that a read was turned into, by its target: both hashes, 0 if unknown.
    targets: Box<[(AtomicU64, AtomicU64)]>,
    /// Typical time in microseconds, 0 if unknown.
    times: Box<[AtomicU32]>,
    estimates: Mutex<HashMap<(u64, u64), f64>>,
}

impl Default for Costs {
    fn default() -> Self {
        let times = (0..PLACES).map(|_| AtomicU32::new(0)).collect();
        let targets = (0..PLACES).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect();
        Self { hasher: RandomState::default(), targets, times, estimates: Mutex::new(HashMap::new()) }
    }
}

impl Costs {
    pub fn shape(&self, text: &str) -> Shape {
        Shape(self.hasher.hash_one(text))
    }

    /// `further`: what selects a statement besides the address, such as headers.
    pub fn target<'a>(&self, path: &str, query: &str, further: impl Iterator<Item = &'a [u8]>) -> Target {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(path.as_bytes());
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            hasher.write(name.as_bytes());
            hasher.write_u8(b'=');
            // Writing nothing would change the hash, too.
            let pieces = value.split(|c: char| c.is_ascii_digit()).filter(|piece| !piece.is_empty());
            pieces.for_each(|piece| hasher.write(piece.as_bytes()));
            hasher.write_u8(b'&');
        }
        for part in further {
            hasher.write_u8(b' ');
            hasher.write(part);
        }
        Target(hasher.finish())
    }

    /// Records the statement of a read, so that it is known from its target.
    pub fn note_target(&self, target: Target, shape: Shape) {
        let (known, statement) = &self.targets[target.0 as usize % PLACES];
        if known.load(Ordering::Relaxed) != target.0 || statement.load(Ordering::Relaxed) != shape.0 {
            known.store(target.0, Ordering::Relaxed);
            statement.store(shape.0, Ordering::Relaxed);
        }
    }

    /// Whether the statement of a read is known and quick.
    pub fn is_quick_target(&self, target: Target) -> bool {
        let (known, statement) = &self.targets[target.0 as usize % PLACES];
        known.load(Ordering::Relaxed) == target.0 && self.is_quick(Shape(statement.load(Ordering::Relaxed)))
    }

    fn time(&self, shape: Shape) -> &AtomicU32 {
        &self.times[shape.0 as usize % PLACES]
    }

    /// Whether a statement is known to take a short time.
    pub fn is_quick(&self, shape: Shape) -> bool {
        let micros = self.time(shape).load(Ordering::Relaxed);
        micros > 0 && u128::from(micros) < QUICK.as_micros()
    }

    /// Records how long a statement took. A slow run counts at once, quick ones only gradually.
    pub fn note(&self, shape: Shape, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1);
        let time = self.time(shape);
        let known = time.load(Ordering::Relaxed);
        let typical = if known == 0 || micros > known { micros } else { known - (known - micros) / 4 };
        if typical != known {
            time.store(typical, Ordering::Relaxed);
        }
        if took > DOUBTFUL {
            self.estimates.lock().retain(|(text, _), _| *text != shape.0);
        }
    }

    /// The stored estimate for a statement run by `role` with the schema of `epoch`.
    pub fn estimate(&self, shape: Shape, role: &str, epoch: u64) -> Option<f64> {
        self.estimates.lock().get(&(shape.0, self.hasher.hash_one((role, epoch)))).copied()
    }

    pub fn keep_estimate(&self, shape: Shape, role: &str, epoch: u64, cost: f64) {
        let mut estimates = self.estimates.lock();
        if estimates.len() >= MOST_ESTIMATES {
            estimates.clear();
        }
        estimates.insert((shape.0, self.hasher.hash_one((role, epoch))), cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_counts_as_quick_once_measured_unless_it_was_slow_recently() {
        let costs = Costs::default();
        let shape = costs.shape("select 1");
        assert!(!costs.is_quick(shape), "nothing is known");
        costs.note(shape, Duration::from_millis(2));
        assert!(costs.is_quick(shape));
        costs.note(shape, Duration::from_millis(900));
        assert!(!costs.is_quick(shape));
        for _ in 0..20 {
            costs.note(shape, Duration::from_millis(2));
        }
        assert!(costs.is_quick(shape));
    }

    #[test]
    fn a_read_is_known_to_be_quick_by_its_path_and_query_without_digits() {
        let costs = Costs::default();
        let target = |path, query| costs.target(path, query, std::iter::once(&b"GET"[..]));
        let (shape, one) = (costs.shape("select 1"), target("/item", "id=eq.1"));
        costs.note(shape, Duration::from_millis(2));
        assert!(!costs.is_quick_target(one), "nothing is known");
        costs.note_target(one, shape);
        assert!(costs.is_quick_target(target("/item", "id=eq.2027")));
        for (path, query) in
            [("/item", "id=gt.1"), ("/item1", "id=eq.1"), ("/itemid", "=eq.1"), ("/item", "id=eq.1&a=")]
        {
            assert!(!costs.is_quick_target(target(path, query)), "{path} {query}");
        }
        let counted = costs.target("/item", "id=eq.1", [&b"GET"[..], b"count=exact"].into_iter());
        assert!(!costs.is_quick_target(counted));
        costs.note(shape, Duration::from_millis(900));
        assert!(!costs.is_quick_target(one));
    }

    #[test]
    fn estimates_are_kept_per_role_and_schema_and_bounded() {
        let costs = Costs::default();
        let shape = costs.shape("select 1");
        costs.keep_estimate(shape, "anon", 1, 7.5);
        assert_eq!(costs.estimate(shape, "anon", 1), Some(7.5));
        assert_eq!((costs.estimate(shape, "other", 1), costs.estimate(shape, "anon", 2)), (None, None));
        costs.note(shape, Duration::from_secs(2));
        assert_eq!(costs.estimate(shape, "anon", 1), None, "asked for again");
        for number in 0..3000 {
            costs.keep_estimate(costs.shape(&number.to_string()), "anon", 1, 0.0);
        }
        assert!(costs.estimates.lock().len() <= MOST_ESTIMATES);
    }
}
