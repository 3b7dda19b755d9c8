//! Room for connections. Each needs a file descriptor, and so do the database, files and functions: without any left, nothing works.
//!
//! While less than half of the room is taken, everybody may connect. Beyond that, an address that holds an eighth of it may not, so
//! that one client leaves room for others. The addresses of an IPv6 network count together, and trusted proxies do not count.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::client::network;
use crate::config::TrustedProxies;

/// Most connections for each processor, whatever the limit of descriptors. An idle one takes 3 kB of memory.
const PER_PROCESSOR: usize = 25_600;
/// Connections of an entrance that has a room of its own.
const APART: usize = 256;
/// Long heads that are gathered at a time, 64 MiB at most.
const LONG_HEADS: usize = 512;
/// How often a refused connection is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The room of this process, for all its listeners.
static PROCESS: LazyLock<Arc<Room>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Room::of((descriptors() / 4 * 3).min(processors.saturating_mul(PER_PROCESSOR)))
});

/// How many files and sockets the process may have open.
pub fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1 << 20)
}

/// Most connections that the process serves.
pub fn most() -> usize {
    PROCESS.most
}

/// Where connections come in.
#[derive(Clone)]
pub struct Entrance {
    room: Arc<Room>,
    proxies: TrustedProxies,
}

impl Entrance {
    /// For the public. These proxies do not count by address.
    pub fn of(proxies: TrustedProxies) -> Self {
        Self { room: PROCESS.clone(), proxies }
    }

    /// With a room of its own, for those who look after the server.
    pub fn apart() -> Self {
        Self { room: Room::of(APART), proxies: TrustedProxies::default() }
    }

    pub fn most(&self) -> usize {
        self.room.most
    }

    /// Lets a connection in, or refuses it, which is logged once a minute. Those without an address (over a Unix socket) may take all.
    pub fn enter(&self, peer: Option<IpAddr>) -> Option<Place> {
        self.room.enter(peer, &self.proxies)
    }
}

/// Counts connections.
struct Room {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_network: HashMap<IpAddr, usize>,
    /// Long heads that are gathered.
    long_heads: usize,
    long_heads_by_network: HashMap<IpAddr, usize>,
    logged: Option<Instant>,
}

impl Room {
    fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    fn enter(self: &Arc<Self>, peer: Option<IpAddr>, proxies: &TrustedProxies) -> Option<Place> {
        let peer = peer.map(|address| address.to_canonical());
        let is_proxy = |address: &IpAddr| proxies.hops > 0 || proxies.addresses.contains(address);
        let network = peer.filter(|address| !is_proxy(address)).map(network);
        let mut taken = self.taken.lock();
        let held = network.map_or(0, |network| taken.by_network.get(&network).copied().unwrap_or_default());
        let has_much = taken.all >= self.most / 2 && held >= (self.most / 8).max(1) && network.is_some();
        if taken.all >= self.most || has_much {
            if taken.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                taken.logged = Some(Instant::now());
                let open = taken.all;
                tracing::warn!(open, most = self.most, has_much, "connections are refused: there is no room for them");
            }
            return None;
        }
        taken.all += 1;
        if let Some(network) = network {
            *taken.by_network.entry(network).or_default() += 1;
        }
        Some(Place { room: self.clone(), network })
    }

    fn leave(&self, network: Option<IpAddr>) {
        let taken = &mut *self.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        count_down(&mut taken.by_network, network);
    }
}

fn count_down(held: &mut HashMap<IpAddr, usize>, network: Option<IpAddr>) {
    let Some(network) = network else { return };
    if let Some(count) = held.get_mut(&network) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            held.remove(&network);
        }
    }
}

/// A connection's place, until it is dropped.
pub struct Place {
    room: Arc<Room>,
    network: Option<IpAddr>,
}

impl Place {
    /// For gathering a long head, of which an address has an eighth.
    pub fn long_head(&self) -> Option<LongHead> {
        let taken = &mut *self.room.taken.lock();
        let held = self.network.and_then(|network| taken.long_heads_by_network.get(&network)).copied();
        if taken.long_heads >= LONG_HEADS || held.is_some_and(|held| held >= LONG_HEADS / 8) {
            return None;
        }
        taken.long_heads += 1;
        if let Some(network) = self.network {
            *taken.long_heads_by_network.entry(network).or_default() += 1;
        }
        Some(LongHead { room: self.room.clone(), network: self.network })
    }
}

/// The right to gather a long head, until it is dropped.
pub struct LongHead {
    room: Arc<Room>,
    network: Option<IpAddr>,
}

impl Drop for LongHead {
    fn drop(&mut self) {
        let taken = &mut *self.room.taken.lock();
        taken.long_heads = taken.long_heads.saturating_sub(1);
        count_down(&mut taken.long_heads_by_network, self.network);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.leave(self.network);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(room: &Arc<Room>, address: &str, times: usize) -> Vec<Place> {
        let address = Some(address.parse().expect("an address"));
        (0..times).map_while(|_| room.enter(address, &TrustedProxies::default())).collect()
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let room = Room::of(80);
        let flood = enter(&room, "192.0.2.1", 100);
        assert_eq!(flood.len(), 40);
        let others = enter(&room, "192.0.2.2", 100);
        assert_eq!(others.len(), 10, "an eighth, now that half is taken");
        assert_eq!(enter(&room, "192.0.2.3", 1).len(), 1);
        drop(flood);
        assert_eq!(enter(&room, "192.0.2.2", 100).len(), 30, "up to half again");
        drop(others);
        assert!(room.taken.lock().by_network.is_empty());
    }

    #[test]
    fn addresses_of_a_network_count_together() {
        let room = Room::of(16);
        let mut held = enter(&room, "2001:db8::1", 8);
        assert_eq!(enter(&room, "2001:db8::2", 1).len(), 0);
        held.extend(enter(&room, "2001:db8:1::1", 2));
        assert_eq!(held.len(), 10);
        let room = Room::of(16);
        let _held = enter(&room, "::ffff:192.0.2.1", 8);
        assert_eq!(enter(&room, "192.0.2.1", 1).len(), 0);
    }

    /// Regression: thousands of unfinished heads of 126 kB waited in memory.
    #[test]
    fn only_so_many_long_heads_are_gathered_at_a_time() {
        let room = Room::of(8);
        let places: Vec<_> = (1..=9).flat_map(|n| enter(&room, &format!("192.0.2.{n}"), 1)).collect();
        assert_eq!(places.len(), 8);
        let gathered = |place: &Place| std::iter::from_fn(|| place.long_head()).collect::<Vec<_>>();
        let mut all: Vec<_> = places.iter().map(gathered).collect();
        assert!(all.iter().all(|heads| heads.len() == LONG_HEADS / 8));
        let proxies = TrustedProxies { addresses: Vec::new(), hops: 1 };
        drop(places.into_iter().next());
        let proxy = room.enter(Some("192.0.2.9".parse().expect("an address")), &proxies).expect("a place");
        assert!(proxy.long_head().is_none(), "all are taken");
        all.truncate(1);
        assert_eq!(gathered(&proxy).len(), LONG_HEADS / 8 * 7);
        drop(all);
        assert!(room.taken.lock().long_heads_by_network.is_empty() && room.taken.lock().long_heads == 0);
    }

    #[test]
    fn a_trusted_proxy_may_take_all() {
        let proxy: IpAddr = "192.0.2.1".parse().expect("an address");
        for proxies in
            [TrustedProxies { addresses: vec![proxy], hops: 0 }, TrustedProxies { addresses: Vec::new(), hops: 1 }]
        {
            let room = Room::of(16);
            let held: Vec<_> = (0..20).map_while(|_| room.enter(Some(proxy), &proxies)).collect();
            assert_eq!(held.len(), 16);
            assert!(room.enter(None, &proxies).is_none(), "the room is full");
        }
    }
}
