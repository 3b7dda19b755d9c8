//! What one client may have at once of something that all share: connections to the file store, places where pictures are
//! made. Nobody has all of it, so nobody keeps the others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::client::network;

type Clients = Mutex<HashMap<IpAddr, Arc<Semaphore>>>;

/// So much for each client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shares {
    most: usize,
    clients: Arc<Clients>,
}

/// One piece of a client's share, given back when it is dropped.
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

impl Shares {
    /// Each client may have half of `all`, and one in any case.
    pub fn half_of(all: usize) -> Self {
        Self { most: (all / 2).max(1), clients: Arc::default() }
    }

    /// A piece, if the client has less than its share or soon will. Who comes by a socket of this machine has no address and
    /// no limit.
    pub async fn take(&self, client: Option<IpAddr>, wait: Duration) -> Option<Share> {
        let Some(client) = client.map(network) else { return Some(Share { _held: None }) };
        let semaphore = {
            let mut clients = self.clients.lock();
            Arc::clone(clients.entry(client).or_insert_with(|| Arc::new(Semaphore::new(self.most))))
        };
        // Made first: dropped while it waits, it tidies up too.
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
        // Whoever holds or awaits a piece refers to it as well.
        if clients.get(&self.client).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            clients.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_client_has_its_share_and_is_forgotten_when_it_has_nothing() {
        let shares = Shares::half_of(4);
        let (soon, client, other) = (Duration::from_millis(10), "192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let first = shares.take(client, soon).await;
        let second = shares.take(client, soon).await;
        assert!(first.is_some() && second.is_some());
        assert!(shares.take(client, soon).await.is_none(), "half of four are two");
        assert!(shares.take(other, soon).await.is_some());
        assert!(shares.take(None, soon).await.is_some());
        let waiting = shares.take(client, Duration::from_secs(60));
        let (third, ()) = tokio::join!(waiting, async { drop(first) });
        assert!(third.is_some(), "what is given back can be taken");
        drop((second, third));
        assert!(shares.clients.lock().is_empty());
    }
}
