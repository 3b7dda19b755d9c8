//! The queue in front of the threads that hash: clients take turns, however many requests each has waiting. Under lasting overload,
//! and where a request would wait until it times out, requests are refused at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::auth::error::{AuthError, AuthResult, Code};
use crate::db::overload::{self, Overload, Typical, Verdict};

/// How many requests of one client wait. Clients take turns, so this only bounds memory; what would wait for too long is refused by
/// the forecast. A test suite may sign up hundreds at once.
const PER_CLIENT: usize = 1000;
/// So many per thread may always wait, because the forecast is a guess.
const WAITING_ANYWAY: usize = 4;

/// How far beyond the longest wait a forecast has to be before it counts, because few and contended hashes mislead it. Whoever is let in
/// and waits too long after all has cost no hash.
const FORECAST_MARGIN: u32 = 2;

/// The requests of one client that wait for a slot.
struct Lane {
    client: String,
    /// Never empty.
    waiting: VecDeque<Waiter>,
}

struct Waiter {
    since: Instant,
    to: oneshot::Sender<Slot>,
}

struct State {
    slots: usize,
    free: usize,
    /// In turn order.
    lanes: VecDeque<Lane>,
    /// How long a slot is held.
    hold: Typical,
    /// `None` if requests wait whatever the load.
    overload: Option<Overload>,
}

/// Allows a fixed number at a time, client by client.
#[derive(Clone)]
pub struct Queue {
    state: Arc<Mutex<State>>,
    longest_wait: Duration,
}

/// The right to hash. When dropped, it passes to the next client.
pub struct Slot {
    state: Option<Arc<Mutex<State>>>,
    since: Instant,
}

impl Queue {
    /// `longest_wait`: requests that would wait for longer are refused. `refuses`: whether they are under lasting overload too.
    pub fn new(slots: usize, longest_wait: Duration, refuses: bool) -> Self {
        let state = State {
            slots,
            free: slots,
            lanes: VecDeque::new(),
            hold: Typical::default(),
            overload: refuses.then(Overload::default),
        };
        Self { state: Arc::new(Mutex::new(state)), longest_wait }
    }

    /// Waits for a slot.
    ///
    /// Errors: 429 `over_request_rate_limit` for a client that has too many waiting; 503 if too many wait in all.
    pub async fn enter(&self, client: &str) -> AuthResult<Slot> {
        let turn = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Slot { state: Some(Arc::clone(&self.state)), since: Instant::now() });
            }
            state.forget_gone();
            // Judged in any case: one client's flood is overload, too.
            let is_overloaded = state.is_overloaded(client);
            if state.of_client(client) >= PER_CLIENT {
                return Err(AuthError::too_many_requests(Code::OverRequestRateLimit, "Request rate limit reached"));
            }
            if is_overloaded || state.forecast(client) > self.longest_wait * FORECAST_MARGIN {
                return Err(AuthError::busy());
            }
            state.push(client)
        };
        match tokio::time::timeout(self.longest_wait, turn).await {
            Ok(Ok(slot)) => Ok(slot),
            // The queue was cleared, or has not moved.
            Ok(Err(_)) | Err(_) => Err(AuthError::busy()),
        }
    }
}

impl State {
    fn push(&mut self, client: &str) -> oneshot::Receiver<Slot> {
        let (to, turn) = oneshot::channel();
        let waiter = Waiter { since: Instant::now(), to };
        match self.lanes.iter_mut().find(|lane| lane.client == client) {
            Some(lane) => lane.waiting.push_back(waiter),
            None => self.lanes.push_back(Lane { client: client.to_owned(), waiting: VecDeque::from([waiter]) }),
        }
        turn
    }

    fn forget_gone(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.waiting.retain(|waiter| !waiter.to.is_closed()));
        self.lanes.retain(|lane| !lane.waiting.is_empty());
    }

    fn of_client(&self, client: &str) -> usize {
        self.lanes.iter().find(|lane| lane.client == client).map_or(0, |lane| lane.waiting.len())
    }

    /// How long another request of this client would wait.
    fn forecast(&self, client: &str) -> Duration {
        let own = self.of_client(client);
        let ahead: usize = self.lanes.iter().map(|lane| lane.waiting.len().min(own + 1)).sum();
        if ahead < self.slots * WAITING_ANYWAY {
            return Duration::ZERO;
        }
        self.hold.get().mul_f64(ahead as f64 / self.slots as f64)
    }

    /// Whether another request of this client is refused because of lasting overload.
    fn is_overloaded(&mut self, client: &str) -> bool {
        let (now, own) = (Instant::now(), self.of_client(client));
        let oldest = self.lanes.iter().filter_map(|lane| lane.waiting.front()).map(|waiter| waiter.since).min();
        let queue = overload::Queue {
            size: self.slots,
            waiting: self.lanes.iter().map(|lane| lane.waiting.len()).sum(),
            own,
            wait: oldest.map_or(Duration::ZERO, |since| now.duration_since(since)),
            hold: self.hold.get(),
            is_still: self.hold.is_still(now),
            is_limited: false,
        };
        match self.overload.as_mut().map(|overload| overload.judge(queue, now)) {
            None | Some(Verdict::Queue) => false,
            Some(Verdict::Refuse) => true,
            Some(Verdict::RefuseAll) => {
                tracing::warn!(
                    waiting = queue.waiting,
                    "passwords come faster than they are hashed; some requests are refused"
                );
                self.lanes.iter_mut().for_each(|lane| lane.waiting.truncate(1));
                true
            }
        }
    }
}

impl Slot {
    /// Notes how long hashing took.
    pub fn used(self) {
        if let Some(state) = &self.state {
            state.lock().hold.note(self.since.elapsed(), Instant::now());
        }
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
            match next.to.send(Slot { state: Some(Arc::clone(&shared)), since: Instant::now() }) {
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
    use actix_web::http::StatusCode;

    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    /// Slots are held for as long.
    fn that_takes(queue: Queue, hold: Duration) -> Queue {
        queue.state.lock().hold.note(hold, Instant::now());
        queue
    }

    #[tokio::test]
    async fn a_client_with_many_requests_does_not_delay_others() {
        let queue = Queue::new(1, LONGEST_WAIT, false);
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
    async fn abandoned_waiters_are_skipped_and_too_many_are_refused() {
        let queue = Queue::new(1, LONGEST_WAIT, false);
        let held = queue.enter("busy").await.expect("a slot");
        let waiting = futures_util::future::join_all((0..PER_CLIENT).map(|_| queue.enter("busy")));
        let refused = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            queue.enter("busy").await.is_err()
                && tokio::time::timeout(Duration::from_millis(20), queue.enter("x")).await.is_err()
        };
        tokio::select! {
            _ = waiting => panic!("no waiting request gets a turn"),
            refused = refused => assert!(refused),
        }
        drop(held);
        assert!(queue.enter("busy").await.is_ok());
        assert_eq!(queue.state.lock().free, 1);
    }

    /// Every one of them timed out, because it hashed only when its time was nearly over.
    #[tokio::test]
    async fn whoever_would_wait_too_long_is_refused_at_once() {
        let queue = that_takes(Queue::new(1, Duration::from_secs(6), false), Duration::from_secs(4));
        let held = queue.enter("busy").await.expect("a slot");
        let waiting = futures_util::future::join_all((0..4).map(|_| queue.enter("busy")));
        let refused = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let refused = queue.enter("busy").await.err().map(|error| error.status());
            let other = tokio::time::timeout(Duration::from_millis(20), queue.enter("other")).await;
            (refused, other.is_err())
        };
        tokio::select! {
            _ = waiting => panic!("no waiting request gets a turn"),
            (refused, other_waits) = refused => {
                assert_eq!(refused, Some(StatusCode::SERVICE_UNAVAILABLE));
                assert!(other_waits, "its turn is next");
            }
        }
        drop(held);
    }

    #[tokio::test]
    async fn waiting_for_a_turn_times_out() {
        let queue = Queue::new(1, Duration::from_millis(20), false);
        let held = queue.enter("a").await.expect("a slot");
        let error = queue.enter("b").await.err().expect("no turn");
        assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(held);
        assert!(queue.enter("b").await.is_ok());
    }

    #[tokio::test]
    async fn in_lasting_overload_the_first_of_each_client_waits_and_the_others_are_refused() {
        let queue = that_takes(Queue::new(1, LONGEST_WAIT, true), Duration::from_millis(1));
        let held = queue.enter("a").await.expect("a slot");
        let (mut flood, mut other) = {
            let mut state = queue.state.lock();
            ((0..8).map(|_| state.push("a")).collect::<Vec<_>>(), state.push("b"))
        };
        // Until it has lasted.
        let mut more = Vec::new();
        let refused = loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            queue.state.lock().hold.note(Duration::from_millis(1), Instant::now());
            let mut entering = Box::pin(async { queue.enter("a").await.err().map(|error| error.status()) });
            match futures_util::poll!(&mut entering) {
                std::task::Poll::Ready(refused) => break refused,
                std::task::Poll::Pending => more.push(entering),
            }
            assert!(more.len() < 60, "no request is refused");
        };
        assert_eq!(refused, Some(StatusCode::SERVICE_UNAVAILABLE));
        assert_eq!(queue.state.lock().lanes.iter().map(|lane| lane.waiting.len()).collect::<Vec<_>>(), [1, 1]);
        for refused in more {
            assert_eq!(refused.await, Some(StatusCode::SERVICE_UNAVAILABLE));
        }
        drop(held);
        let first = flood.remove(0).await.expect("its turn");
        drop(first);
        assert!(other.try_recv().is_ok());
    }
}
