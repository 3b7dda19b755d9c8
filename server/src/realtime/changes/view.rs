//! The keys that a subscription has seen, so that it can be told of rows that leave its view.
//!
//! PostgreSQL cannot tell who could see a row's previous version. So the keys are stored: of the rows that the
//! subscriber could select when it subscribed, and of those sent since. A subscriber never gets a key that it has not
//! seen.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// The most keys of one subscription, of those of an address, and of all together.
pub const MOST: usize = 1000;
const MOST_OF_ADDRESS: usize = MOST_OF_ALL / 8;
const MOST_OF_ALL: usize = 1_000_000;

/// Keys of all subscriptions.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// A digest of a key.
type Digest = [u8; 16];

/// The rows in a subscription's view.
#[derive(Debug, Default)]
pub struct View {
    keys: Mutex<HashSet<Digest>>,
    /// The keys of all views of the address.
    of_address: Arc<AtomicUsize>,
}

fn digest(key: &[&str]) -> Digest {
    let mut hash = Sha256::new();
    for part in key {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut digest = Digest::default();
    digest.copy_from_slice(&hash.finalize()[..size_of::<Digest>()]);
    digest
}

impl View {
    /// An empty view for a client whose address has `of_address` keys.
    pub fn new(of_address: &Arc<AtomicUsize>) -> Self {
        Self { keys: Mutex::default(), of_address: Arc::clone(of_address) }
    }

    /// Adds a row; false if there is no room for it.
    pub fn enter(&self, key: &[&str]) -> bool {
        self.put(digest(key))
    }

    fn put(&self, key: Digest) -> bool {
        let mut keys = self.keys.lock();
        if keys.contains(&key) {
            return true;
        }
        let (of_address, of_all) = (self.of_address.load(Ordering::Relaxed), ALL.load(Ordering::Relaxed));
        if keys.len() >= MOST || of_address >= MOST_OF_ADDRESS || of_all >= MOST_OF_ALL {
            return false;
        }
        for total in self.totals() {
            total.fetch_add(1, Ordering::Relaxed);
        }
        keys.insert(key)
    }

    fn count_less(&self, keys: usize) {
        for total in self.totals() {
            total.fetch_sub(keys, Ordering::Relaxed);
        }
    }

    fn totals(&self) -> [&AtomicUsize; 2] {
        [&ALL, &self.of_address]
    }

    /// Removes a row; returns whether it was there.
    pub fn leave(&self, key: &[&str]) -> bool {
        let was_there = self.keys.lock().remove(&digest(key));
        if was_there {
            self.count_less(1);
        }
        was_there
    }

    #[cfg(test)]
    fn has(&self, key: &[&str]) -> bool {
        self.keys.lock().contains(&digest(key))
    }

    /// Adds the rows of another view, as far as there is room.
    pub fn add(&self, other: &Self) {
        let keys: Vec<Digest> = other.keys.lock().iter().copied().collect();
        for key in keys {
            self.put(key);
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let keys = self.keys.lock().len();
        self.count_less(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entered_members_can_leave_and_only_once() {
        let view = View::default();
        assert!(!view.leave(&["1"]));
        assert!(view.enter(&["1"]) && view.enter(&["1"]) && view.enter(&["a", "bc"]));
        assert!(!view.has(&["ab", "c"]) && !view.has(&["abc"]), "parts are distinguished");
        assert!(view.leave(&["1"]) && !view.leave(&["1"]));
        assert!(view.has(&["a", "bc"]));
    }

    #[test]
    fn an_address_has_a_share_of_all_members() {
        let (one, other) = (Arc::new(AtomicUsize::new(MOST_OF_ADDRESS - 1)), Arc::default());
        let view = View::new(&one);
        assert!(view.enter(&["1"]) && view.enter(&["1"]) && !view.enter(&["2"]));
        assert!(View::new(&other).enter(&["2"]));
        assert!(view.leave(&["1"]) && view.enter(&["2"]));
        drop(view);
        assert_eq!(one.load(Ordering::Relaxed), MOST_OF_ADDRESS - 1);
    }

    #[test]
    fn the_number_of_members_is_bounded() {
        let view = View::default();
        assert!((0..MOST).all(|n| view.enter(&[&n.to_string()])));
        assert!(!view.enter(&["one more"]) && view.enter(&["7"]));
        assert!(view.leave(&["7"]) && view.enter(&["one more"]));
        let other = View::default();
        other.enter(&["x"]);
        other.add(&view);
        assert!(other.has(&["x"]) && other.keys.lock().len() == MOST);
    }
}
