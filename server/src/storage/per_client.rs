//! Limits how much of a shared resource one client may hold: connections to the file store, or slots for image transformation. No
//! client can use all of it, so none can lock out the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::client::network;

type Clients = Mutex<HashMap<IpAddr, Arc<Semaphore>>>;

/// The limit per client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PerClientLimit {
    most: usize,
    clients: Arc<Clients>,
}

/// One slot of a client; released when dropped.
#[derive(Debug)]
pub struct Share {
    _held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    client: IpAddr,
    clients: Arc<Clients>,
    permit: Option<OwnedSemaphorePermit>,
}

impl PerClientLimit {
    /// Each client may have half of `all`, but at least one.
    pub fn half_of(all: usize) -> Self {
        Self { most: (all / 2).max(1), clients: Arc::default() }
    }

    /// A slot, waiting until the client has one free. Clients on Unix sockets have no address and no limit.
    pub async fn take(&self, client: Option<IpAddr>, wait: Duration) -> Option<Share> {
        let Some(client) = client.map(network) else { return Some(Share { _held: None }) };
        let semaphore = {
            let mut clients = self.clients.lock();
            Arc::clone(clients.entry(client).or_insert_with(|| Arc::new(Semaphore::new(self.most))))
        };
        // Created first, so that it cleans up even if dropped while waiting.
        let mut held = Held { client, clients: Arc::clone(&self.clients), permit: None };
        let permit = tokio::time::timeout(wait, semaphore.acquire_owned()).await;
        held.permit = permit.ok()?.ok();
        Some(Share { _held: Some(held) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut clients = self.clients.lock();
        // Every holder and waiter has a reference as well.
        if clients.get(&self.client).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            clients.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_client_has_a_limit_and_idle_ones_are_forgotten() {
        let per_client = PerClientLimit::half_of(4);
        let (soon, client, other) = (Duration::from_millis(10), "192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let first = per_client.take(client, soon).await;
        let second = per_client.take(client, soon).await;
        assert!(first.is_some() && second.is_some());
        assert!(per_client.take(client, soon).await.is_none(), "half of four are two");
        assert!(per_client.take(other, soon).await.is_some());
        assert!(per_client.take(None, soon).await.is_some());
        let waiting = per_client.take(client, Duration::from_secs(60));
        let (third, ()) = tokio::join!(waiting, async { drop(first) });
        assert!(third.is_some(), "a released slot can be used again");
        drop((second, third));
        assert!(per_client.clients.lock().is_empty());
    }
}
