//! The memory budget for request bodies of all APIs.
//!
//! A collected body counts until its answer begins. A body that is passed on as it arrives counts only with what is
//! held at a time ([`hand_on`]), a discarded one not at all ([`pass_on`]). The beginnings of bodies have a separate
//! budget, so that large bodies do not block small ones. The bodies of one client have at most half of either budget,
//! or one of them has all that is free, so that no client blocks the others.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::{HttpMessage as _, HttpRequest};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::budget::Budget;
use super::client::network;

/// The size of the beginning of a body, in bytes.
pub const BEGINNING: u64 = 64 << 10;

/// How long a part waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(5);

/// The budget. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bodies {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    beginnings: Budget,
    rest: Budget,
    freed: Notify,
    /// What the bodies of each client have taken. Without bodies, a client has no entry.
    clients: Mutex<HashMap<IpAddr, Taken>>,
}

/// Bytes of the budget for beginnings and of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    first: u64,
    rest: u64,
}

impl Bodies {
    /// A budget of `most` bytes, a quarter of them for beginnings.
    pub fn new(most: u64) -> Self {
        let shared = Shared {
            beginnings: Budget::of(most / 4),
            rest: Budget::of(most - most / 4),
            freed: Notify::new(),
            clients: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The longest body that fits, in bytes.
    pub fn longest(&self) -> u64 {
        self.shared.rest.most()
    }

    /// For one body of `client`, within the share of its network. An unknown client has no share.
    pub fn lease(&self, client: Option<IpAddr>) -> Rc<Lease> {
        let (taken, is_passed_on, is_refused) = (Cell::default(), Cell::new(false), Cell::new(false));
        let client = Cell::new(client.map(network));
        Rc::new(Lease { shared: self.shared.clone(), client, taken, is_passed_on, is_refused })
    }
}

impl Shared {
    /// Takes both, or nothing and returns false.
    fn take(&self, first: u64, rest: u64) -> bool {
        if first > 0 && !self.beginnings.take(first) {
            return false;
        }
        let has_room = rest == 0 || self.rest.take(rest);
        if !has_room {
            self.beginnings.give_back(first);
        }
        has_room
    }
}

/// One body's share of the budget, freed with its last owner.
#[derive(Debug)]
pub struct Lease {
    shared: Arc<Shared>,
    /// The network of the client.
    client: Cell<Option<IpAddr>>,
    taken: Cell<Taken>,
    is_passed_on: Cell<bool>,
    is_refused: Cell<bool>,
}

impl Lease {
    /// Takes room for another part; false if there is none now.
    pub fn take(&self, length: usize) -> bool {
        if self.is_passed_on.get() {
            return true;
        }
        let (length, own) = (length as u64, self.taken.get());
        let first = length.min(BEGINNING.saturating_sub(own.first));
        let rest = length - first;
        let Some(client) = self.client.get() else {
            let has_room = self.shared.take(first, rest);
            if has_room {
                self.taken.set(Taken { first: own.first + first, rest: own.rest + rest });
            }
            return has_room;
        };
        let mut clients = self.shared.clients.lock();
        let all = clients.get(&client).copied().unwrap_or_default();
        // Without others of this client, a body may take whatever is free.
        let fits = |more: u64, own: u64, all: u64, budget: &Budget| {
            more == 0 || all <= own || all.saturating_add(more) <= budget.most() / 2
        };
        let has_room = fits(first, own.first, all.first, &self.shared.beginnings)
            && fits(rest, own.rest, all.rest, &self.shared.rest)
            && self.shared.take(first, rest);
        if has_room {
            clients.insert(client, Taken { first: all.first + first, rest: all.rest + rest });
            self.taken.set(Taken { first: own.first + first, rest: own.rest + rest });
        }
        has_room
    }

    /// Like [`Lease::take`], but waits a little for room.
    pub async fn take_soon(self: Rc<Self>, length: usize) -> bool {
        let shared = self.shared.clone();
        let deadline = Instant::now() + ROOM_WAIT;
        loop {
            let freed = shared.freed.notified();
            if self.take(length) {
                return true;
            }
            if timeout_at(deadline, freed).await.is_err() {
                self.is_refused.set(true);
                return false;
            }
        }
    }

    pub fn is_passed_on(&self) -> bool {
        self.is_passed_on.get()
    }

    /// Whether there was no room for a part.
    pub fn is_refused(&self) -> bool {
        self.is_refused.get()
    }

    fn give_back(&self) {
        let Taken { first, rest } = self.taken.take();
        if let Some(client) = self.client.get() {
            let mut clients = self.shared.clients.lock();
            if let Some(all) = clients.get_mut(&client) {
                *all = Taken { first: all.first.saturating_sub(first), rest: all.rest.saturating_sub(rest) };
                if *all == Taken::default() {
                    clients.remove(&client);
                }
            }
        }
        // Every body begins with its beginning.
        if first > 0 {
            self.shared.beginnings.give_back(first);
            self.shared.rest.give_back(rest);
            self.shared.freed.notify_waiters();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Declares that the body of `request` is not collected, so its length is not limited.
pub fn pass_on(request: &HttpRequest) {
    if let Some(lease) = request.extensions().get::<Rc<Lease>>() {
        lease.is_passed_on.set(true);
        lease.give_back();
    }
}

/// Declares that the body of `request` is passed on as it arrives, with at most `held` bytes in memory. Its length is
/// not limited, and only `held` counts, from now on as `client`'s if it is known. Returns whether there is room, which
/// may take a while.
#[must_use]
pub async fn hand_on(request: &HttpRequest, client: Option<IpAddr>, held: usize) -> bool {
    let Some(lease) = request.extensions().get::<Rc<Lease>>().cloned() else { return true };
    lease.give_back();
    lease.is_passed_on.set(false);
    if client.is_some() {
        lease.client.set(client.map(network));
    }
    let has_room = lease.clone().take_soon(held).await;
    lease.is_passed_on.set(true);
    has_room
}

/// The error of reading a body if the budget is used up.
pub fn no_room() -> PayloadError {
    PayloadError::Io(std::io::Error::new(std::io::ErrorKind::QuotaExceeded, "too many request bodies at once"))
}

/// Whether reading a body failed with [`no_room`].
pub fn is_no_room(error: &PayloadError) -> bool {
    matches!(error, PayloadError::Io(error) if error.kind() == std::io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_share_a_budget_and_leave_room_for_small_ones() {
        let bodies = Bodies::new(4 << 20);
        assert_eq!(bodies.longest(), 3 << 20);
        let (first, second, small) = (bodies.lease(None), bodies.lease(None), bodies.lease(None));
        assert!(first.take(2 << 20) && !second.take(2 << 20));
        assert!(second.take(1 << 20), "what was refused has taken nothing");
        assert!(small.take(BEGINNING as usize));
        assert!(!small.take(1 << 20));
        drop(first);
        assert!(small.take(1 << 20));
    }

    #[tokio::test]
    async fn streamed_bodies_count_only_what_is_buffered() {
        let bodies = Bodies::new(4 << 20);
        let requests = [(); 5].map(|()| {
            let request = actix_web::test::TestRequest::default().to_http_request();
            request.extensions_mut().insert(bodies.lease(None));
            request
        });
        let lease = |request: &HttpRequest| request.extensions().get::<Rc<Lease>>().cloned().expect("a lease");
        for request in &requests[..3] {
            assert!(lease(request).take(1 << 10));
            assert!(hand_on(request, None, 1 << 20).await);
            assert!(lease(request).take(100 << 20), "however long it is");
        }
        assert!(!lease(&requests[3]).take(1 << 20), "the budget is used up");
        let (fourth, fifth) = (requests[3].clone(), requests[4].clone());
        let (has_room, ()) = tokio::join!(hand_on(&fourth, None, 1 << 20), async {
            tokio::task::yield_now().await;
            requests[0].extensions_mut().remove::<Rc<Lease>>();
        });
        assert!(has_room, "an upload has ended");
        let waiting = tokio::time::timeout(Duration::from_millis(20), hand_on(&fifth, None, 1 << 20));
        assert!(waiting.await.is_err(), "it waits for the next to end");
    }

    #[tokio::test]
    async fn one_client_uses_at_most_half_of_the_budget() {
        let bodies = Bodies::new(8 << 20);
        let request = || {
            let request = actix_web::test::TestRequest::default().to_http_request();
            request.extensions_mut().insert(bodies.lease(None));
            request
        };
        let (busy, other): (Option<IpAddr>, _) = ("2001:db8::1".parse().ok(), "192.0.2.1".parse().ok());
        let neighbour = "2001:db8::2".parse().ok();
        let requests = [(); 6].map(|()| request());
        for request in &requests[..3] {
            assert!(hand_on(request, busy, 1 << 20).await);
        }
        let waiting = tokio::time::timeout(Duration::from_millis(20), hand_on(&requests[3], neighbour, 1 << 20));
        assert!(waiting.await.is_err(), "those of one network share");
        for request in &requests[3..] {
            assert!(hand_on(request, other, 1 << 20).await);
        }
        requests[0].extensions_mut().remove::<Rc<Lease>>();
        assert!(hand_on(&request(), busy, 1 << 20).await, "what ended counts no more");
        let small = Bodies::new(1 << 20);
        let only = request();
        only.extensions_mut().insert(small.lease(None));
        assert!(hand_on(&only, busy, 700 << 10).await, "one body is always taken where there is room");
    }

    /// Regression: collected bodies had no share, so one client with many slow bodies blocked those of all others.
    #[test]
    fn collected_bodies_of_one_client_leave_room_for_others() {
        let bodies = Bodies::new(8 << 20);
        let (busy, other): (Option<IpAddr>, _) = ("2001:db8::1".parse().ok(), "192.0.2.1".parse().ok());
        let neighbour = "2001:db8::2".parse().ok();
        let begun = |client: Option<IpAddr>| {
            let leases: Vec<_> = (0..1000).map(|_| bodies.lease(client)).collect();
            leases.into_iter().filter(|lease| lease.take(BEGINNING as usize)).collect::<Vec<_>>()
        };
        let leases = begun(busy);
        assert_eq!(leases.len(), 16, "half of the beginnings");
        assert!(!bodies.lease(neighbour).take(1), "those of one network share");
        let others = begun(other);
        assert_eq!(others.len(), 16);
        assert!(leases[0].take(4 << 20), "one body may be larger than the half");
        assert!(!leases[1].take(1));
        assert!(others[0].take(1 << 20), "there is room for another client");
        drop(leases);
        assert!(bodies.shared.clients.lock().keys().all(|client| Some(*client) == other));
        drop(others);
        assert_eq!(bodies.shared.clients.lock().len(), 0, "nothing is kept of clients without bodies");
        assert_eq!(begun(busy).len(), 16, "what ended counts no more");
        let all = bodies.lease(busy);
        assert!(all.take(6 << 20) && !all.take(1 << 20), "a single body may take all of the rest");
    }

    #[tokio::test]
    async fn a_part_waits_until_another_body_is_answered() {
        let bodies = Bodies::new(4 << 20);
        let (first, second) = (bodies.lease(None), bodies.lease(None));
        assert!(first.take(3 << 20));
        let waiting = second.clone().take_soon(1 << 20);
        let (is_taken, ()) = tokio::join!(waiting, async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(first);
        });
        assert!(is_taken && !second.is_refused());
    }
}
