//! The calls of a function at once. A client's network has at most half of them, so that no client closes a function to others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::client::network;

/// What calls take turns for.
#[derive(Debug)]
pub struct Turns {
    free: Arc<Semaphore>,
    /// The most calls of one network.
    share: usize,
    networks: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A call in progress.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
    network: Option<IpAddr>,
    networks: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Turns {
    pub fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(most)), share: most.div_ceil(2), networks: Arc::default() }
    }

    /// `None` if there are too many calls, of all or of this client. An unknown client has no share.
    pub fn take(&self, client: Option<IpAddr>) -> Option<Turn> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let network = client.map(network);
        if let Some(network) = network {
            let mut networks = self.networks.lock();
            let taken = networks.entry(network).or_default();
            if *taken >= self.share {
                return None;
            }
            *taken += 1;
        }
        Some(Turn { _permit: permit, network, networks: Arc::clone(&self.networks) })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut networks = self.networks.lock();
        if let Some(taken) = networks.get_mut(&network) {
            *taken -= 1;
            if *taken == 0 {
                networks.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a single client could take all calls.
    #[test]
    fn a_network_has_at_most_half_of_the_calls() {
        let turns = Turns::new(4);
        let client = |text: &str| turns.take(Some(text.parse().expect("an address")));
        let first = [client("2001:db8::1"), client("2001:db8::2")];
        assert!(first.iter().all(Option::is_some));
        assert!(client("2001:db8::3").is_none(), "of the same network");
        let second = client("192.0.2.1");
        let unknown = turns.take(None);
        assert!(second.is_some() && unknown.is_some());
        assert!(client("192.0.2.2").is_none(), "there is none left");
        drop((first, second, unknown));
        assert!(turns.networks.lock().is_empty());
        assert_eq!(turns.free.available_permits(), 4);
        assert!(Turns::new(1).take(Some(IpAddr::from([192, 0, 2, 1]))).is_some());
        assert!(Turns::new(0).take(None).is_none());
    }
}
