//! The requests that wait for a connection of a [`Pool`](super::Pool), and those that are refused under lasting overload.
//!
//! Only a request that has had no connection yet is refused: the work of the others would be lost. Work of the server itself, outside
//! of requests, always waits.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::overload::{Overload, Queue, Typical, Verdict};
use crate::http::context::RequestContext;
use crate::http::prometheus::Counter;

/// See the module.
pub(super) struct Line {
    /// Connections of the pool.
    size: usize,
    state: Mutex<State>,
    refused: Counter,
}

#[derive(Default)]
struct State {
    overload: Overload,
    /// In the order of arrival.
    waiting: VecDeque<Waiter>,
    /// The number of the last one.
    last: u64,
    hold: Typical,
}

struct Waiter {
    number: u64,
    since: Instant,
    who: Who,
    /// Dropped when the request is refused.
    _stays: oneshot::Sender<Infallible>,
}

/// Who asks for a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Who {
    client: Option<IpAddr>,
    /// Whether it may be refused.
    is_new: bool,
}

impl Who {
    /// The request that this thread works for.
    pub fn of(request: Option<&Arc<RequestContext>>) -> Self {
        request.map_or_else(Self::default, |request| Self { client: request.client(), is_new: !request.is_admitted() })
    }
}

/// A place in the line, until it is dropped.
pub(super) struct Place<'a> {
    line: &'a Line,
    number: u64,
    stays: oneshot::Receiver<Infallible>,
}

impl Line {
    pub fn new(size: usize) -> Self {
        Self { size, state: Mutex::default(), refused: Counter::default() }
    }

    /// A place, or `None` if the request is refused.
    pub fn join(&self, who: Who) -> Option<Place<'_>> {
        let joined = self.state.lock().join(self.size, who, Instant::now());
        match joined {
            Some((number, stays)) => Some(Place { line: self, number, stays }),
            None => {
                self.refused.increment();
                None
            }
        }
    }

    /// Notes how long a connection was held.
    pub fn note_hold(&self, held: Duration) {
        self.state.lock().hold.note(held, Instant::now());
    }

    /// The number of requests that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }
}

impl State {
    fn join(&mut self, size: usize, who: Who, now: Instant) -> Option<(u64, oneshot::Receiver<Infallible>)> {
        let queue = Queue {
            size,
            waiting: self.waiting.len(),
            own: self.waiting.iter().filter(|waiter| waiter.who.client == who.client).count(),
            wait: self.waiting.front().map_or(Duration::ZERO, |first| now.duration_since(first.since)),
            hold: self.hold.get(),
            still: self.hold.still(now),
        };
        if who.is_new {
            match self.overload.judge(queue, now) {
                Verdict::Queue => {}
                Verdict::Refuse => return None,
                Verdict::RefuseAll => {
                    tracing::warn!(
                        waiting = queue.waiting,
                        "requests come faster than they are served; some are refused"
                    );
                    self.keep_first_of_each();
                    return None;
                }
            }
        }
        let (sender, stays) = oneshot::channel();
        self.last += 1;
        self.waiting.push_back(Waiter { number: self.last, since: now, who, _stays: sender });
        Some((self.last, stays))
    }

    fn keep_first_of_each(&mut self) {
        let mut clients = Vec::new();
        self.waiting.retain(|waiter| {
            let is_first = !clients.contains(&waiter.who.client);
            if is_first {
                clients.push(waiter.who.client);
            }
            is_first || !waiter.who.is_new
        });
    }
}

impl Place<'_> {
    /// Ends when the request is refused after all.
    pub async fn refused(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.stays).await;
        self.line.refused.increment();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let waiting = &mut self.line.state.lock().waiting;
        if let Ok(at) = waiting.binary_search_by_key(&self.number, |waiter| waiter.number) {
            waiting.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::overload::LASTING;

    const SIZE: usize = 2;
    /// Longer than the hold of a new line allows.
    const LONG: Duration = Duration::from_millis(101);

    fn of(client: u8) -> Who {
        Who { client: Some([192, 0, 2, client].into()), is_new: true }
    }

    /// Eight requests, the last of another client, and one more that has found them waiting for long.
    fn crowd(state: &mut State, start: Instant) -> Vec<oneshot::Receiver<Infallible>> {
        let mut kept: Vec<_> =
            (0..8).map(|n| state.join(SIZE, of(u8::from(n == 7)), start).expect("a burst").1).collect();
        state.hold.note(Duration::ZERO, start + LONG);
        kept.push(state.join(SIZE, of(0), start + LONG).expect("not for long yet").1);
        state.hold.note(Duration::ZERO, start + LONG + LASTING);
        kept
    }

    #[test]
    fn lasting_waits_are_ended_but_for_the_first_of_each_client() {
        let (mut state, start) = (State::default(), Instant::now());
        let mut waiting = crowd(&mut state, start);
        assert!(state.join(SIZE, of(2), start + LONG + LASTING).is_none());
        let stay = waiting.iter_mut().map(|waiter| waiter.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        assert_eq!(stay.collect::<Vec<_>>(), [true, false, false, false, false, false, false, true, false]);
        assert!(state.join(SIZE, of(0), start + LONG + LASTING).is_none(), "its other request waits");
    }

    #[test]
    fn a_request_that_had_a_connection_is_never_refused() {
        let (mut state, start) = (State::default(), Instant::now());
        let old = Who { is_new: false, ..of(0) };
        let mut kept = state.join(SIZE, old, start).expect("a place").1;
        let mut second = state.join(SIZE, old, start).expect("a place").1;
        let _waiting = crowd(&mut state, start);
        let late = start + LONG + LASTING;
        assert!(state.join(SIZE, of(0), late).is_none());
        assert!(state.join(SIZE, old, late).is_some());
        for waiter in [&mut kept, &mut second] {
            assert_eq!(waiter.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        }
    }

    #[test]
    fn requests_that_leave_are_not_counted() {
        let line = Line::new(SIZE);
        let place = line.join(of(0));
        assert!(place.is_some());
        assert_eq!(line.state.lock().waiting.len(), 1);
        drop(place);
        assert_eq!(line.state.lock().waiting.len(), 0);
    }
}
