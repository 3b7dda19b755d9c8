//! The requests that wait for a connection of a [`Pool`](super::Pool), and those that are refused under lasting overload.
//!
//! Only a request that has had no connection yet is refused: the work of the others would be lost. Work of the server itself, outside
//! of requests, always waits.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::overload::{LONG_WAIT, LOOK_AGAIN, Overload, Queue, Typical, Verdict, hold_back, sent_at};
use crate::http::context::{self, RequestContext};
use crate::http::door::{Overloaded, RefusedBy};
use crate::http::prometheus::Counter;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    state: Arc<Mutex<State>>,
    refused: Arc<Counter>,
}

struct State {
    /// Connections of the pool.
    size: usize,
    /// Since when each turn has been held.
    held: Vec<Instant>,
    overload: Overload,
    /// In the order of arrival.
    waiting: VecDeque<Waiter>,
    hold: Typical,
}

struct Waiter {
    since: Instant,
    who: Who,
    /// Dropped when the request is refused.
    to: oneshot::Sender<Turn>,
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

/// The right to a connection. When it is dropped, the next in line gets it.
pub(super) struct Turn {
    /// `None` if nobody has got it.
    state: Option<Arc<Mutex<State>>>,
    since: Instant,
    /// Whether it is the first of a request.
    is_new: bool,
}

/// What a request finds when it comes.
enum Place {
    First,
    Waits(oneshot::Receiver<Turn>),
    Refused,
}

/// Why a request gets no turn.
#[derive(Debug)]
pub(super) enum NoTurn {
    Refused,
    Timeout,
}

impl Line {
    pub fn new(size: usize) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(size))), refused: Arc::default() }
    }

    /// Waits for a turn, for `longest` at most.
    pub async fn turn(&self, who: Who, longest: Duration) -> Result<Turn, NoTurn> {
        let now = Instant::now();
        let place = self.state.lock().join(who, now);
        if !matches!(place, Place::First) {
            // More may have a turn by now.
            pass_on(&self.state);
        }
        let turn = match place {
            Place::First => {
                return Ok(Turn { state: Some(Arc::clone(&self.state)), since: now, is_new: who.is_new });
            }
            Place::Waits(turn) => self.wait(turn, now + longest).await?,
            Place::Refused => {
                self.refused.increment();
                let line = self.clone();
                context::refused_by(|| RefusedBy(Arc::new(Refused { line, who })));
                hold_back().await;
                return Err(NoTurn::Refused);
            }
        };
        turn.map_err(|_| {
            self.refused.increment();
            NoTurn::Refused
        })
    }

    /// Waits in line until `deadline`. An error inside: the request is refused.
    async fn wait(
        &self,
        mut turn: oneshot::Receiver<Turn>,
        deadline: Instant,
    ) -> Result<Result<Turn, oneshot::error::RecvError>, NoTurn> {
        loop {
            let until = (Instant::now() + LOOK_AGAIN).min(deadline);
            if let Ok(turn) = tokio::time::timeout_at(until.into(), &mut turn).await {
                return Ok(turn);
            }
            if until >= deadline {
                return Err(NoTurn::Timeout);
            }
            pass_on(&self.state);
        }
    }

    /// Notes how long a connection was held with this turn.
    pub fn note_hold(&self, turn: &Turn, held: Duration) {
        self.state.lock().note_hold(turn.is_new, held, Instant::now());
    }

    pub fn waiting(&self) -> usize {
        let mut state = self.state.lock();
        state.forget_gone();
        state.waiting.len()
    }

    /// The number of requests that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }
}

/// New requests of a client that are refused.
struct Refused {
    line: Line,
    who: Who,
}

impl Overloaded for Refused {
    fn refuse(&self) -> Option<Instant> {
        if !self.line.state.lock().refuses(self.who, Instant::now()) {
            return None;
        }
        self.line.refused.increment();
        Some(sent_at(true))
    }
}

impl State {
    fn new(size: usize) -> Self {
        Self {
            size,
            held: Vec::with_capacity(size),
            overload: Overload::default(),
            waiting: VecDeque::new(),
            hold: Typical::default(),
        }
    }

    /// Whether another request may have a turn. Those who have held theirs for long do not fill the processors.
    fn has_turn(&self, now: Instant) -> bool {
        let lately = self.held.iter().filter(|since| now.saturating_duration_since(**since) < LONG_WAIT).count();
        self.held.len() < self.size && lately < self.overload.at_once(self.hold)
    }

    fn give_back(&mut self, since: Instant) {
        if let Some(at) = self.held.iter().position(|held| *held == since) {
            self.held.swap_remove(at);
        }
    }

    fn join(&mut self, who: Who, now: Instant) -> Place {
        self.forget_gone();
        if self.waiting.is_empty() && self.has_turn(now) {
            self.held.push(now);
            return Place::First;
        }
        if who.is_new && self.is_refused(who, now) {
            return Place::Refused;
        }
        let (to, turn) = oneshot::channel();
        self.waiting.push_back(Waiter { since: now, who, to });
        Place::Waits(turn)
    }

    /// Whether another request is refused because of lasting overload that has been found before.
    fn refuses(&mut self, who: Who, now: Instant) -> bool {
        if self.overload.at_once(self.hold) == usize::MAX {
            return false;
        }
        self.forget_gone();
        let is_free = self.waiting.is_empty() && self.has_turn(now);
        !is_free && self.is_refused(who, now)
    }

    fn is_refused(&mut self, who: Who, now: Instant) -> bool {
        let queue = Queue {
            size: self.size,
            waiting: self.waiting.len(),
            own: self.waiting.iter().filter(|waiter| waiter.who.client == who.client).count(),
            wait: self.waiting.front().map_or(Duration::ZERO, |first| now.duration_since(first.since)),
            hold: self.hold.get(),
            is_still: self.hold.is_still(now),
            is_limited: true,
        };
        match self.overload.judge(queue, now) {
            Verdict::Queue => return false,
            Verdict::Refuse => {}
            Verdict::RefuseAll => {
                tracing::warn!(waiting = queue.waiting, "requests come faster than they are served; some are refused");
                self.keep_first_of_each();
            }
        }
        true
    }

    fn note_hold(&mut self, is_new: bool, held: Duration, now: Instant) {
        self.hold.note(held, now);
        if is_new {
            self.overload.note_served(now);
        }
    }

    fn forget_gone(&mut self) {
        self.waiting.retain(|waiter| !waiter.to.is_closed());
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

    /// The next in line, if it may have a turn.
    fn next(&mut self, now: Instant) -> Option<Waiter> {
        if !self.has_turn(now) {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.held.push(now);
        Some(next)
    }
}

/// Gives turns to those who are next, as many as may have one.
fn pass_on(state: &Arc<Mutex<State>>) {
    loop {
        let now = Instant::now();
        let Some(next) = state.lock().next(now) else { return };
        let turn = Turn { state: Some(Arc::clone(state)), since: now, is_new: next.who.is_new };
        if let Err(mut unused) = next.to.send(turn) {
            // That request has gone.
            unused.state = None;
            state.lock().give_back(now);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        state.lock().give_back(self.since);
        pass_on(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::overload::LASTING;

    const SIZE: usize = 2;
    /// Longer than the hold of a new line allows.
    const LONG: Duration = Duration::from_millis(101);
    const LONGEST: Duration = Duration::from_secs(10);

    fn of(client: u8) -> Who {
        Who { client: Some([192, 0, 2, client].into()), is_new: true }
    }

    /// All of whose turns are taken.
    fn busy() -> State {
        State { held: vec![Instant::now(); SIZE], ..State::new(SIZE) }
    }

    fn waits(place: Place) -> oneshot::Receiver<Turn> {
        let Place::Waits(turn) = place else { panic!("waits") };
        turn
    }

    fn is_refused(place: &Place) -> bool {
        matches!(place, Place::Refused)
    }

    fn stays(waiting: &mut oneshot::Receiver<Turn>) -> bool {
        waiting.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty)
    }

    /// Eight requests, the last of another client, and one more that has found them waiting for long.
    fn crowd(state: &mut State, start: Instant) -> Vec<oneshot::Receiver<Turn>> {
        let mut kept: Vec<_> = (0..8).map(|n| waits(state.join(of(u8::from(n == 7)), start))).collect();
        state.note_hold(true, Duration::ZERO, start + LONG);
        kept.push(waits(state.join(of(0), start + LONG)));
        state.note_hold(true, Duration::ZERO, start + LONG + LASTING);
        kept
    }

    #[test]
    fn lasting_waits_are_ended_but_for_the_first_of_each_client() {
        let (mut state, start) = (busy(), Instant::now());
        let mut waiting = crowd(&mut state, start);
        assert!(is_refused(&state.join(of(2), start + LONG + LASTING)));
        let stay: Vec<bool> = waiting.iter_mut().map(stays).collect();
        assert_eq!(stay, [true, false, false, false, false, false, false, true, false]);
        assert!(is_refused(&state.join(of(0), start + LONG + LASTING)), "its other request waits");
    }

    #[test]
    fn at_the_door_requests_are_refused_only_while_there_is_overload_and_no_turn_is_free() {
        let (mut state, start) = (busy(), Instant::now());
        let late = start + LONG + LASTING;
        let _waiting = crowd(&mut state, start);
        assert!(!state.refuses(of(2), late), "a burst, for all that is known");
        assert!(is_refused(&state.join(of(2), late)));
        assert!(state.refuses(of(0), late));
        state.waiting.clear();
        assert!(!state.refuses(of(0), late), "some have to wait");
        state.held.clear();
        assert!(!state.refuses(of(0), late));
    }

    #[test]
    fn a_request_that_had_a_connection_is_never_refused() {
        let (mut state, start) = (busy(), Instant::now());
        let old = Who { is_new: false, ..of(0) };
        let mut kept = [(); 2].map(|()| waits(state.join(old, start)));
        let _waiting = crowd(&mut state, start);
        let late = start + LONG + LASTING;
        assert!(is_refused(&state.join(of(0), late)));
        assert!(!is_refused(&state.join(old, late)));
        assert!(kept.iter_mut().all(stays));
    }

    #[tokio::test]
    async fn turns_pass_in_order_and_requests_that_leave_are_not_counted() {
        let line = Line::new(1);
        let turn = line.turn(of(0), LONGEST).await.expect("a turn");
        assert!(matches!(line.turn(of(0), Duration::ZERO).await, Err(NoTurn::Timeout)));
        assert_eq!(line.waiting(), 0);
        let mut gone = waits(line.state.lock().join(of(0), Instant::now()));
        let mut next = waits(line.state.lock().join(of(1), Instant::now()));
        let mut last = waits(line.state.lock().join(of(0), Instant::now()));
        gone.close();
        drop(turn);
        let turn = next.try_recv().expect("a turn");
        assert!(stays(&mut last));
        assert_eq!((line.waiting(), line.state.lock().held.len()), (1, 1));
        // With its turn, that nobody has received.
        drop(last);
        drop(turn);
        assert_eq!((line.waiting(), line.state.lock().held.len()), (0, 0));
    }

    #[test]
    fn under_overload_fewer_have_a_turn() {
        let (mut state, start) = (State::new(64), Instant::now());
        state.held = vec![start; 64];
        let hold = Duration::from_millis(1);
        let waiting: Vec<_> = (0..300).map(|_| waits(state.join(of(0), start))).collect();
        state.note_hold(true, hold, start + LONG);
        let _one = waits(state.join(of(0), start + LONG));
        state.note_hold(true, hold, start + LONG + LASTING);
        assert!(is_refused(&state.join(of(0), start + LONG + LASTING)));
        assert_eq!((state.waiting.len(), state.overload.at_once(state.hold)), (1, 2));
        let late = start + LONG + LASTING;
        state.held = vec![late; 2];
        assert!(state.next(late).is_none(), "until one of them is done");
        assert!(state.next(late + LONG_WAIT).is_some(), "or takes long");
        drop(waiting);
    }
}
