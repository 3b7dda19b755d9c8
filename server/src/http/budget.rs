//! A shared budget of bytes: request bodies in memory, long answers in memory and on disk.

use std::sync::atomic::{AtomicU64, Ordering};

/// The taker must give back what it took.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    used: AtomicU64,
}

impl Budget {
    pub fn of(most: u64) -> Self {
        Self { most, used: AtomicU64::new(0) }
    }

    pub fn most(&self) -> u64 {
        self.most
    }

    /// Takes `length` bytes, or nothing and returns false.
    #[must_use]
    pub fn take(&self, length: u64) -> bool {
        let fits = |used: u64| used.checked_add(length).filter(|used| *used <= self.most);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_ok()
    }

    pub fn give_back(&self, length: u64) {
        self.used.fetch_sub(length, Ordering::AcqRel);
    }

    pub fn free(&self) -> u64 {
        self.most.saturating_sub(self.used.load(Ordering::Acquire))
    }
}
