//! The queue in front of the threads that hash: clients take turns, however many requests each has waiting.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::auth::error::{AuthError, AuthResult, Code};

/// How many requests of one client wait.
const PER_CLIENT: usize = 64;

/// The requests of one client that wait for a slot.
struct Lane {
    client: String,
    waiting: VecDeque<oneshot::Sender<Slot>>,
}

struct State {
    free: usize,
    /// In turn order; none is empty.
    lanes: VecDeque<Lane>,
}

/// Allows a fixed number at a time, client by client.
#[derive(Clone)]
pub struct Queue {
    state: Arc<Mutex<State>>,
}

/// The right to hash. When dropped, it passes to the next client.
pub struct Slot {
    state: Option<Arc<Mutex<State>>>,
}

impl Queue {
    pub fn new(slots: usize) -> Self {
        Self { state: Arc::new(Mutex::new(State { free: slots, lanes: VecDeque::new() })) }
    }

    /// Waits for a slot.
    ///
    /// Errors: 429 `over_request_rate_limit` for a client that has too many waiting.
    pub async fn enter(&self, client: &str) -> AuthResult<Slot> {
        let turn = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Slot { state: Some(Arc::clone(&self.state)) });
            }
            let (sender, turn) = oneshot::channel();
            match state.lanes.iter_mut().find(|lane| lane.client == client) {
                Some(lane) => {
                    lane.waiting.retain(|waiting| !waiting.is_closed());
                    if lane.waiting.len() >= PER_CLIENT {
                        let message = "Request rate limit reached";
                        return Err(AuthError::too_many_requests(Code::OverRequestRateLimit, message));
                    }
                    lane.waiting.push_back(sender);
                }
                None => {
                    state.lanes.push_back(Lane { client: client.to_owned(), waiting: VecDeque::from([sender]) });
                }
            }
            turn
        };
        turn.await.map_err(|_| AuthError::internal("Unable to process the password"))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(shared) = self.state.take() else { return };
        loop {
            let next = {
                let mut state = shared.lock();
                let Some(mut lane) = state.lanes.pop_front() else {
                    state.free += 1;
                    return;
                };
                let next = lane.waiting.pop_front();
                if !lane.waiting.is_empty() {
                    state.lanes.push_back(lane);
                }
                next
            };
            let Some(next) = next else { continue };
            match next.send(Slot { state: Some(Arc::clone(&shared)) }) {
                Ok(()) => return,
                // That request is gone: it is the next one's turn.
                Err(mut unused) => drop(unused.state.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn one_client_with_many_requests_keeps_no_other_waiting() {
        let queue = Queue::new(1);
        let held = queue.enter("busy").await.expect("a slot");
        let order = Mutex::new(Vec::new());
        let one = async |client: &'static str| {
            let slot = queue.enter(client).await.expect("a slot");
            order.lock().push(client);
            drop(slot);
        };
        let release = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(held);
        };
        futures_util::join!(one("busy"), one("busy"), one("busy"), one("honest"), release);
        assert_eq!(*order.lock(), ["busy", "honest", "busy", "busy"]);
        assert_eq!(queue.state.lock().free, 1);
    }

    #[tokio::test]
    async fn who_goes_away_gives_way_and_too_many_are_refused() {
        let queue = Queue::new(1);
        let held = queue.enter("busy").await.expect("a slot");
        let waiting = futures_util::future::join_all((0..PER_CLIENT).map(|_| queue.enter("busy")));
        let refused = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            queue.enter("busy").await.is_err()
                && tokio::time::timeout(Duration::from_millis(20), queue.enter("x")).await.is_err()
        };
        tokio::select! {
            _ = waiting => panic!("nobody has a turn"),
            refused = refused => assert!(refused),
        }
        drop(held);
        assert!(queue.enter("busy").await.is_ok());
        assert_eq!(queue.state.lock().free, 1);
    }
}
