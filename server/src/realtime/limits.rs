//! Counting events per second: a mean over a window, as upstream has it, without a timer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// Events of the last seconds. Exceeded once their mean is above the limit.
pub struct Rate {
    /// Events per second; 0 means none.
    limit: usize,
    started: Instant,
    window: Mutex<Window>,
}

struct Window {
    /// Events in each second of the window.
    counts: Box<[u32]>,
    /// The second of the last event.
    second: u64,
    sum: u64,
}

impl Rate {
    /// At most `limit` events per second, mean of so many seconds.
    pub fn new(limit: usize, seconds: usize) -> Self {
        let counts = if limit == 0 { Box::default() } else { vec![0; seconds.max(1)].into_boxed_slice() };
        Self { limit, started: Instant::now(), window: Mutex::new(Window { counts, second: 0, sum: 0 }) }
    }

    /// Counts events.
    pub fn add(&self, events: usize) {
        if self.limit > 0 {
            self.at(self.started.elapsed().as_secs(), events);
        }
    }

    /// The mean, rounded down.
    pub fn mean(&self) -> usize {
        if self.limit == 0 { 0 } else { self.at(self.started.elapsed().as_secs(), 0) }
    }

    /// Whether the mean, with these more, is above the limit.
    pub fn is_exceeded_by(&self, more: usize) -> bool {
        self.limit > 0 && self.mean() + more > self.limit
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    fn at(&self, second: u64, events: usize) -> usize {
        let mut window = self.window.lock();
        let length = window.counts.len() as u64;
        let passed = second.saturating_sub(window.second).min(length);
        for step in 1..=passed {
            let place = ((window.second + step) % length) as usize;
            window.sum -= u64::from(std::mem::take(&mut window.counts[place]));
        }
        window.second = window.second.max(second);
        let place = (window.second % length) as usize;
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        window.counts[place] = window.counts[place].saturating_add(events);
        window.sum += u64::from(events);
        (window.sum / length) as usize
    }
}

/// How many sockets each address has open.
#[derive(Clone, Default)]
pub struct Addresses {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One socket of an address, until it is dropped.
pub struct Place {
    address: IpAddr,
    addresses: Addresses,
}

impl Addresses {
    /// A place for one more socket; none if the address has `most` already (0: no limit).
    pub fn enter(&self, address: IpAddr, most: usize) -> Option<Place> {
        let mut counts = self.counts.lock();
        let count = counts.entry(address).or_default();
        if most > 0 && *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { address, addresses: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.addresses.counts.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_covers_the_window_and_forgets_what_is_older() {
        let rate = Rate::new(2, 10);
        assert_eq!(rate.at(0, 10), 1);
        assert_eq!(rate.at(5, 15), 2);
        assert_eq!(rate.at(9, 0), 2);
        assert_eq!(rate.at(10, 0), 1, "the first ten are ten seconds old");
        assert_eq!(rate.at(500, 0), 0);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rate = Rate::new(0, 60);
        rate.add(1_000_000);
        assert!(!rate.is_exceeded_by(1_000_000));
    }

    #[test]
    fn an_address_gets_its_places_back() {
        let addresses = Addresses::default();
        let address = IpAddr::from([127, 0, 0, 1]);
        let places: Vec<_> = (0..2).map(|_| addresses.enter(address, 2).expect("a place")).collect();
        assert!(addresses.enter(address, 2).is_none());
        drop(places);
        assert!(addresses.enter(address, 2).is_some());
    }
}
