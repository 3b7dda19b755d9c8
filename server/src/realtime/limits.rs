//! Rates of events: a mean over a window, as upstream, without a timer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::http::client::network;

/// Counts events of the last seconds. Exceeded if their mean is above the limit.
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
    /// At most `limit` events per second, as a mean over `seconds`.
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

    /// Whether the mean would be above the limit with `more` events.
    pub fn is_exceeded_by(&self, more: usize) -> bool {
        self.limit > 0 && self.mean() + more > self.limit
    }

    /// Whether the window has no events.
    fn is_quiet(&self) -> bool {
        self.add(0);
        self.window.lock().sum == 0
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

/// Beyond this number, addresses without open sockets are dropped.
const ADDRESSES: usize = 1024;

/// Checks of joins of one address that may use the database at the same time.
const CHECKS: usize = 2;

/// The open sockets and recently refused joins of each address. Those of an IPv6 network count together, because one
/// client has all of it.
#[derive(Clone, Default)]
pub struct Addresses {
    known: Arc<Mutex<HashMap<IpAddr, Address>>>,
}

struct Address {
    sockets: usize,
    visits: usize,
    shared: Arc<Shared>,
}

impl Address {
    fn new(refusals: usize) -> Self {
        Self { sockets: 0, visits: 0, shared: Arc::new(Shared::new(refusals)) }
    }

    /// What it has begun to store may still have a turn.
    fn is_gone(&self) -> bool {
        let is_unused = self.sockets == 0 && self.visits == 0 && self.shared.checks.available_permits() == CHECKS;
        is_unused && self.shared.refusals.is_quiet()
    }
}

/// What the sockets and requests of an address share.
pub struct Shared {
    refusals: Rate,
    /// Bytes of presences.
    pub presences: Arc<AtomicUsize>,
    /// Keys of rows in the views of subscriptions.
    pub keys: Arc<AtomicUsize>,
    /// For joins and private broadcasts that use the database.
    checks: Arc<Semaphore>,
}

/// One of the checks that may use the database at the same time, until it is dropped.
pub struct Turn {
    _permits: [Result<OwnedSemaphorePermit, AcquireError>; 2],
}

impl Shared {
    /// For sockets of an address with so many `refusals` per second (0: no limit).
    pub fn new(refusals: usize) -> Self {
        Self {
            refusals: Rate::new(refusals, 10),
            presences: Arc::default(),
            keys: Arc::default(),
            checks: Arc::new(Semaphore::new(CHECKS)),
        }
    }

    /// Waits until the address, and then all clients together, have few enough checks in progress.
    pub async fn turn(&self, all: &Arc<Semaphore>) -> Turn {
        // Never closed.
        Turn { _permits: [Arc::clone(&self.checks).acquire_owned().await, Arc::clone(all).acquire_owned().await] }
    }
}

/// A share of a total; returned when dropped.
#[derive(Debug)]
pub struct Share {
    size: usize,
    total: Arc<AtomicUsize>,
}

impl Share {
    pub fn none_of(total: &Arc<AtomicUsize>) -> Self {
        Self { size: 0, total: Arc::clone(total) }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// The total of all shares.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    pub fn set(&mut self, size: usize) {
        self.total.fetch_add(size, Ordering::Relaxed);
        self.total.fetch_sub(self.size, Ordering::Relaxed);
        self.size = size;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// One socket of an address, until it is dropped.
pub struct Place {
    address: IpAddr,
    addresses: Addresses,
    shared: Arc<Shared>,
}

/// Why a socket is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum NoPlace {
    TooManySockets,
    TooManyRefusals,
}

impl Addresses {
    /// Registers a socket of an address, which may have `sockets`, and `refusals` per second as a mean over ten (0: no
    /// limit).
    pub fn enter(&self, address: IpAddr, sockets: usize, refusals: usize) -> Result<Place, NoPlace> {
        let address = network(address.to_canonical());
        let mut known = self.known.lock();
        let found = find(&mut known, address, refusals);
        if sockets > 0 && found.sockets >= sockets {
            return Err(NoPlace::TooManySockets);
        }
        if found.shared.refusals.is_exceeded_by(0) {
            return Err(NoPlace::TooManyRefusals);
        }
        found.sockets += 1;
        Ok(Place { address, addresses: self.clone(), shared: Arc::clone(&found.shared) })
    }

    /// Registers a request of an address; without one it shares nothing. `refusals`: see [`Addresses::enter`].
    pub fn visit(&self, address: Option<IpAddr>, refusals: usize) -> Visit {
        let Some(address) = address.map(|address| network(address.to_canonical())) else {
            return Visit { of: None, shared: Arc::new(Shared::new(0)) };
        };
        let mut known = self.known.lock();
        let found = find(&mut known, address, refusals);
        found.visits += 1;
        Visit { of: Some((address, self.clone())), shared: Arc::clone(&found.shared) }
    }

    fn leave(&self, address: &IpAddr, change: impl FnOnce(&mut Address)) {
        let mut known = self.known.lock();
        if let Some(found) = known.get_mut(address) {
            change(found);
            if found.is_gone() {
                known.remove(address);
            }
        }
    }
}

/// The entry of an address, which is made if it is missing.
fn find(known: &mut HashMap<IpAddr, Address>, address: IpAddr, refusals: usize) -> &mut Address {
    if known.len() >= ADDRESSES && !known.contains_key(&address) {
        known.retain(|_, address| !address.is_gone());
    }
    known.entry(address).or_insert_with(|| Address::new(refusals))
}

/// One request of an address, until it is dropped.
pub struct Visit {
    of: Option<(IpAddr, Addresses)>,
    shared: Arc<Shared>,
}

impl Visit {
    pub fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some((address, addresses)) = &self.of {
            addresses.leave(address, |address| address.visits -= 1);
        }
    }
}

impl Place {
    /// Counts a refusal; returns whether there are too many now.
    pub fn refuse(&self) -> bool {
        self.shared.refusals.add(1);
        self.shared.refusals.is_exceeded_by(0)
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.addresses.leave(&self.address, |address| address.sockets -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_covers_only_the_window() {
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
    fn places_of_an_address_are_returned() {
        let addresses = Addresses::default();
        let address = IpAddr::from([127, 0, 0, 1]);
        let places: Vec<_> = (0..2).map(|_| addresses.enter(address, 2, 0).expect("a place")).collect();
        assert_eq!(addresses.enter(address, 2, 0).err(), Some(NoPlace::TooManySockets));
        drop(places);
        assert!(addresses.known.lock().is_empty());
        assert!(addresses.enter(address, 2, 0).is_ok());
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_count_as_one() {
        let addresses = Addresses::default();
        let enter = |address: &str| addresses.enter(address.parse().expect("an address"), 1, 0);
        let place = enter("2001:db8:0:1::1").expect("a place");
        assert_eq!(enter("2001:db8:0:1:ffff::2").err(), Some(NoPlace::TooManySockets));
        assert!(enter("2001:db8:0:2::1").is_ok());
        drop(place);
        assert!(addresses.known.lock().is_empty());
        // IPv4 clients of a dual-stack socket are in no common network.
        let _place = enter("::ffff:192.0.2.1").expect("a place");
        assert!(enter("::ffff:192.0.2.2").is_ok());
        assert_eq!(enter("192.0.2.1").err(), Some(NoPlace::TooManySockets));
    }

    #[tokio::test]
    async fn requests_wait_for_the_turns_of_their_address_only() {
        let (addresses, all) = (Addresses::default(), Arc::new(Semaphore::new(CHECKS + 1)));
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let place = addresses.enter(one, 1, 0).expect("a place");
        let visits: Vec<_> = (0..CHECKS + 1).map(|_| addresses.visit(Some(one), 0)).collect();
        assert_eq!(
            addresses.enter(one, 1, 0).err(),
            Some(NoPlace::TooManySockets),
            "requests are not counted as sockets"
        );
        let turn = |shared: Arc<Shared>| {
            let all = Arc::clone(&all);
            async move { shared.turn(&all).await }
        };
        let mut turns = vec![turn(Arc::clone(place.shared())).await];
        drop(place);
        turns.push(turn(Arc::clone(&visits[0].shared)).await);
        let waiting = tokio::spawn(turn(Arc::clone(&visits[1].shared)));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        let elsewhere = addresses.visit(Some(other), 0);
        elsewhere.shared().turn(&all).await;
        turns.pop();
        waiting.await.expect("its turn");
        // The message of a client that has gone may still be being stored.
        let shared = Arc::clone(&visits[0].shared);
        drop((visits, elsewhere));
        let again = addresses.visit(Some(one), 0);
        assert!(Arc::ptr_eq(&again.shared, &shared));
        drop(turns);
        drop(again);
        assert!(addresses.known.lock().is_empty());
        // Behind a proxy that hides the addresses, they share nothing.
        let (first, second) = (addresses.visit(None, 0), addresses.visit(None, 0));
        assert!(!Arc::ptr_eq(&first.shared, &second.shared));
    }

    #[test]
    fn shares_are_returned() {
        let total = Arc::default();
        let (mut one, mut other) = (Share::none_of(&total), Share::none_of(&total));
        one.set(5);
        other.set(7);
        other.set(3);
        assert_eq!((one.size(), other.size(), one.total()), (5, 3, 8));
        drop(one);
        assert_eq!(other.total(), 3);
    }

    #[test]
    fn refusals_are_counted_per_address_beyond_its_sockets() {
        let addresses = Addresses::default();
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let place = addresses.enter(one, 0, 1).expect("a place");
        assert!((0..19).all(|_| !place.refuse()), "the mean of ten seconds, rounded down");
        assert!(place.refuse());
        drop(place);
        assert_eq!(addresses.enter(one, 0, 1).err(), Some(NoPlace::TooManyRefusals));
        assert!(addresses.enter(other, 0, 1).is_ok());
        assert_eq!(addresses.known.lock().len(), 1);
    }
}
