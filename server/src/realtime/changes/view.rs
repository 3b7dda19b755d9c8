//! The keys that a subscription has seen, so that it can be told of rows that leave its view.
//!
//! PostgreSQL cannot tell who could see a row's previous version. So the keys are stored: of the rows that the
//! subscriber could select when it subscribed, and of those sent since. A subscriber never gets a key that it has not
//! seen.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// The most keys of one subscription, and of all together.
pub const MOST: usize = 1000;
const MOST_OF_ALL: usize = 1_000_000;

/// Keys of all subscriptions.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// A digest of a key.
type Digest = [u8; 16];

/// The rows in a subscription's view.
#[derive(Debug, Default)]
pub struct View {
    keys: Mutex<HashSet<Digest>>,
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
    /// Adds a row; false if there is no room for it.
    pub fn enter(&self, key: &[&str]) -> bool {
        self.put(digest(key))
    }

    fn put(&self, key: Digest) -> bool {
        let mut keys = self.keys.lock();
        if keys.contains(&key) {
            return true;
        }
        if keys.len() >= MOST || ALL.fetch_add(1, Ordering::Relaxed) >= MOST_OF_ALL {
            if keys.len() < MOST {
                ALL.fetch_sub(1, Ordering::Relaxed);
            }
            return false;
        }
        keys.insert(key)
    }

    /// Removes a row; returns whether it was there.
    pub fn leave(&self, key: &[&str]) -> bool {
        let was_there = self.keys.lock().remove(&digest(key));
        if was_there {
            ALL.fetch_sub(1, Ordering::Relaxed);
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
        ALL.fetch_sub(self.keys.get_mut().len(), Ordering::Relaxed);
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
