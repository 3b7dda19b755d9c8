//! Who gets which connection: lanes of idle ones and of waiting requests. No I/O here.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Held;
use super::waiters::Waiters;

/// Most requests that wait at once, if all wait as one role; with several, each has its part of that.
const MOST_WAITING: usize = 10_000;
/// However many roles there are, no more than so many requests wait.
const MOST_WAITING_OF_ALL: usize = 2 * MOST_WAITING;
/// Before that, so many per connection may wait whatever the outlook.
const WAITING_ANYWAY: usize = 64;
/// How long a request waits for a connection of its own lane before it takes one of another's: the first if the lane
/// has served nobody for as long, the second in any case. Each change of lanes wakes another thread, twice, which is
/// dearer than many a statement; a lane that is merely busy is better left alone.
pub const PATIENCE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(20));

/// The pool's book. `C`: a connection.
pub struct State<C> {
    size: usize,
    /// Connections held, idle and being opened, by lane.
    lanes: Vec<Lane<C>>,
    waiting: usize,
    timeout: Duration,
    /// How long a connection is held, in seconds, recent ones counting most.
    typical_hold: f64,
}

struct Lane<C> {
    open: usize,
    idle: Vec<C>,
    waiters: Waiters,
    /// When one of its requests was last served.
    served: Instant,
    /// Opened to take the place of an old one.
    successors: Vec<C>,
    is_replacing: bool,
    /// The last attempt to open a successor failed.
    is_stuck: bool,
}

/// What there is to take the place of an old connection.
pub enum Replacement<C> {
    Opened(C),
    /// None can be opened beside it; it has to go first.
    Impossible,
    None,
}

/// The answer to a request for a connection.
pub enum Claim<C> {
    /// An idle connection, or the right to open one.
    Granted(Option<C>),
    Wait(oneshot::Receiver<Held>),
    /// There is no point in waiting.
    Full,
}

impl<C> State<C> {
    pub fn new(size: usize, lanes: usize, timeout: Duration) -> Self {
        let lane = || Lane {
            open: 0,
            idle: Vec::new(),
            waiters: Waiters::default(),
            served: Instant::now(),
            successors: Vec::new(),
            is_replacing: false,
            is_stuck: false,
        };
        Self { size, lanes: (0..lanes).map(|_| lane()).collect(), waiting: 0, timeout, typical_hold: 0.0 }
    }

    /// Requests that wait now.
    pub fn waiting(&mut self) -> usize {
        self.forget_gone();
        self.waiting
    }

    /// Strikes those off the list who no longer wait.
    fn forget_gone(&mut self) {
        for lane in &mut self.lanes {
            lane.waiters.forget_gone();
        }
        self.waiting = self.lanes.iter().map(|lane| lane.waiters.len()).sum();
    }

    fn open(&self) -> usize {
        self.lanes.iter().map(|lane| lane.open).sum()
    }

    /// Connections that could be handed out now, open or not.
    pub fn available(&self) -> usize {
        let idle: usize = self.lanes.iter().map(|lane| lane.idle.len()).sum();
        idle + self.size.saturating_sub(self.open())
    }

    /// For a request of `lane` that acts as `role`, and for how long it has waited already. Having had patience it may
    /// open more than its lane's share or take what another lane has idle, and waits on where it stands if nothing is
    /// free.
    pub fn claim(&mut self, lane: usize, role: &str, waited: Option<Duration>) -> Claim<C> {
        if let Some(connection) = self.lanes[lane].idle.pop() {
            self.lanes[lane].served = Instant::now();
            return Claim::Granted(Some(connection));
        }
        let insists = waited.is_some_and(|waited| self.has_been_patient(lane, waited));
        let share = self.size.div_ceil(self.lanes.len());
        let has_share = self.lanes[lane].open < share;
        if self.open() < self.size && (has_share || insists) {
            self.lanes[lane].open += 1;
            return Claim::Granted(None);
        }
        if (has_share || insists)
            && let Some(connection) = self.lanes.iter_mut().find_map(|other| other.idle.pop())
        {
            return Claim::Granted(Some(connection));
        }
        if waited.is_some() || self.is_full(role) {
            return Claim::Full;
        }
        let (to, ticket) = oneshot::channel();
        self.lanes[lane].waiters.push(role, Instant::now(), to);
        self.waiting += 1;
        Claim::Wait(ticket)
    }

    fn has_been_patient(&self, lane: usize, waited: Duration) -> bool {
        waited >= PATIENCE.1 || (waited >= PATIENCE.0 && self.lanes[lane].served.elapsed() >= PATIENCE.0)
    }

    /// Whether one more that acts as `role` could not be served before its time is up, by far: what is known is a guess.
    fn is_full(&mut self, role: &str) -> bool {
        self.looks_full(role) && {
            self.forget_gone();
            self.looks_full(role)
        }
    }

    fn looks_full(&self, role: &str) -> bool {
        if self.waiting < self.size * WAITING_ANYWAY {
            return false;
        }
        let ahead = self.ahead_of(role);
        let seconds = ahead as f64 * self.typical_hold / self.size.max(1) as f64;
        self.waiting >= MOST_WAITING_OF_ALL
            || ahead >= MOST_WAITING
            || (ahead >= self.size * WAITING_ANYWAY && seconds > 2.0 * self.timeout.as_secs_f64())
    }

    /// How many would be served before one more that acts as `role`: in a lane as many of each role as there are of its
    /// own.
    fn ahead_of(&self, role: &str) -> usize {
        let in_lane = |waiters: &Waiters| {
            let own = waiters.of_role(role);
            let others = waiters.roles() - usize::from(own > 0);
            own + others * (own + 1)
        };
        let ahead: usize = self.lanes.iter().map(|lane| in_lane(&lane.waiters)).sum();
        ahead.min(self.waiting)
    }

    pub fn note_hold(&mut self, held_for: Duration) {
        self.typical_hold += (held_for.as_secs_f64() - self.typical_hold) / 16.0;
    }

    /// Who is served next by a connection of `lane`: its own lane's roles in turn, unless another lane has waited much
    /// longer.
    pub fn next_waiter(&mut self, lane: usize) -> Option<oneshot::Sender<Held>> {
        let own = self.lanes[lane].waiters.oldest();
        let other = (0..self.lanes.len())
            .filter(|n| *n != lane)
            .filter_map(|n| self.lanes[n].waiters.oldest().map(|since| (since, n)))
            .min();
        let from = match (own, other) {
            (None, None) => return None,
            (Some(_), None) => lane,
            // Who has not been patient yet looks for idle connections of all lanes when it has.
            (None, Some((other, n))) if self.has_been_patient(n, other.elapsed()) => n,
            (None, Some(_)) => return None,
            (Some(own), Some((other, n))) => {
                if other + PATIENCE.1 < own {
                    n
                } else {
                    lane
                }
            }
        };
        let to = self.lanes[from].waiters.pop()?;
        self.lanes[from].served = Instant::now();
        self.waiting -= 1;
        Some(to)
    }

    /// Keeps a connection for later, or notes that there is one less.
    pub fn put(&mut self, connection: Option<C>, lane: usize) {
        match connection {
            Some(connection) => self.lanes[lane].idle.push(connection),
            None => self.lanes[lane].open = self.lanes[lane].open.saturating_sub(1),
        }
    }

    /// The right to a connection moves to another lane.
    pub fn rehome(&mut self, from: usize, to: usize) {
        self.lanes[from].open = self.lanes[from].open.saturating_sub(1);
        self.lanes[to].open += 1;
    }

    /// Whether a successor may be opened now: one at a time.
    pub fn begin_replacing(&mut self, lane: usize) -> bool {
        let lane = &mut self.lanes[lane];
        let may = !lane.is_replacing && lane.successors.is_empty();
        lane.is_replacing |= may;
        may
    }

    /// Puts a successor in the place of an idle connection that is old (which is returned, to be closed), or keeps it
    /// until one comes back. An old one that can have no successor goes as well: the next request opens one.
    pub fn end_replacing(&mut self, lane: usize, successor: Option<C>, is_old: impl Fn(&C) -> bool) -> Option<C> {
        let lane = &mut self.lanes[lane];
        lane.is_replacing = false;
        let old = lane.idle.iter().position(is_old).map(|n| lane.idle.swap_remove(n));
        match (successor, &old) {
            (Some(successor), Some(_)) => lane.idle.push(successor),
            (Some(successor), None) => lane.successors.push(successor),
            (None, Some(_)) => lane.open = lane.open.saturating_sub(1),
            (None, None) => lane.is_stuck = true,
        }
        old
    }

    /// For an old connection that is coming back.
    pub fn replacement(&mut self, lane: usize) -> Replacement<C> {
        let lane = &mut self.lanes[lane];
        match (lane.successors.pop(), std::mem::take(&mut lane.is_stuck)) {
            (Some(successor), _) => Replacement::Opened(successor),
            (None, true) => Replacement::Impossible,
            (None, false) => Replacement::None,
        }
    }

    pub fn has_idle(&self, lane: usize, is_old: impl Fn(&C) -> bool) -> bool {
        self.lanes[lane].idle.iter().any(is_old)
    }
}

#[cfg(test)]
mod tests {
    use super::super::waiters::LONG_WAIT;
    use super::*;

    fn state(size: usize, lanes: usize) -> State<u32> {
        State::new(size, lanes, Duration::from_secs(10))
    }

    fn granted(claim: Claim<u32>) -> Option<Option<u32>> {
        match claim {
            Claim::Granted(connection) => Some(connection),
            Claim::Wait(_) | Claim::Full => None,
        }
    }

    #[test]
    fn each_lane_opens_its_share_and_more_only_when_it_has_waited() {
        let mut state = state(3, 2);
        assert_eq!(granted(state.claim(0, "", None)), Some(None));
        assert_eq!(granted(state.claim(0, "", None)), Some(None));
        assert_eq!(granted(state.claim(0, "", None)), None);
        assert_eq!(granted(state.claim(0, "", Some(PATIENCE.1))), Some(None));
        assert_eq!(granted(state.claim(1, "", None)), None);
        assert_eq!(state.available(), 0);
    }

    #[test]
    fn idle_connections_of_the_own_lane_come_first_and_others_after_waiting() {
        let mut state = state(2, 2);
        for lane in [0, 1] {
            state.claim(lane, "", None);
            state.put(Some(u32::try_from(lane).expect("small")), lane);
        }
        assert_eq!(granted(state.claim(1, "", None)), Some(Some(1)));
        assert_eq!(granted(state.claim(1, "", None)), None, "waits, for what is idle is another lane's");
        assert_eq!(granted(state.claim(1, "", Some(PATIENCE.1))), Some(Some(0)));
        assert_eq!(granted(state.claim(1, "", Some(PATIENCE.1))), None);
    }

    #[test]
    fn a_lane_without_its_share_takes_what_is_idle_elsewhere_at_once() {
        let mut state = state(2, 2);
        for _ in 0..2 {
            state.claim(0, "", Some(PATIENCE.1));
            state.put(Some(7), 0);
            state.claim(0, "", Some(PATIENCE.1));
        }
        state.put(Some(7), 0);
        assert_eq!(granted(state.claim(1, "", None)), Some(Some(7)));
    }

    #[test]
    fn a_request_of_another_lane_is_given_a_connection_when_it_has_waited() {
        let mut state = state(2, 2);
        for lane in [0, 1] {
            state.claim(lane, "", None);
        }
        let Claim::Wait(mut waiting) = state.claim(1, "", None) else { panic!("waits") };
        assert!(state.next_waiter(0).is_none(), "it may yet be served by its own lane");
        state.lanes[1].waiters.set_since(Instant::now() - PATIENCE.0);
        assert!(state.next_waiter(0).is_none(), "its own lane is not stuck");
        state.lanes[1].served = Instant::now() - PATIENCE.0;
        drop(state.next_waiter(0).expect("it has waited"));
        assert_eq!(waiting.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn the_own_lane_is_served_first_until_another_has_waited_longer() {
        let mut state = state(1, 2);
        state.claim(0, "", None);
        let Claim::Wait(mut first) = state.claim(1, "", None) else { panic!("waits") };
        let Claim::Wait(mut second) = state.claim(0, "", None) else { panic!("waits") };
        let now = Instant::now();
        state.lanes[0].waiters.set_since(now);
        state.lanes[1].waiters.set_since(now);
        drop(state.next_waiter(0));
        assert!(second.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        assert_eq!(first.try_recv().err(), Some(oneshot::error::TryRecvError::Empty));

        let Claim::Wait(mut third) = state.claim(0, "", None) else { panic!("waits") };
        state.lanes[0].waiters.set_since(now + PATIENCE.1 * 2);
        drop(state.next_waiter(0));
        assert_eq!(first.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
        assert_eq!(third.try_recv().err(), Some(oneshot::error::TryRecvError::Empty));
        assert_eq!(state.waiting(), 1);
    }

    #[test]
    fn who_could_not_be_served_in_time_is_refused_at_once() {
        let mut state = state(1, 1);
        state.claim(0, "", None);
        let mut tickets = Vec::new();
        for _ in 0..WAITING_ANYWAY {
            tickets.push(state.claim(0, "", None));
        }
        assert!(tickets.iter().all(|claim| matches!(claim, Claim::Wait(_))));
        assert!(matches!(state.claim(0, "", None), Claim::Wait(_)), "holds are short so far");
        for _ in 0..100 {
            state.note_hold(Duration::from_secs(5));
        }
        assert!(matches!(state.claim(0, "", None), Claim::Full));
    }

    /// Whether the one who waits with this ticket has been served: the test drops what would have come with it.
    fn is_served(claim: &mut Claim<u32>) -> bool {
        let Claim::Wait(ticket) = claim else { panic!("waits") };
        ticket.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_came_first_is_served_first_while_waits_are_short() {
        let mut state = state(1, 1);
        state.claim(0, "a", None);
        let mut tickets: Vec<_> = ["a", "a", "b", "a", "b"].map(|role| state.claim(0, role, None)).into();
        for (number, ticket) in tickets.iter_mut().enumerate() {
            let waiter = state.next_waiter(0);
            assert!(waiter.is_some());
            drop(waiter);
            assert!(is_served(ticket), "{number}");
        }
        assert_eq!(state.waiting(), 0);
    }

    #[test]
    fn roles_are_served_in_turn_however_many_wait_as_one_of_them() {
        let mut state = state(1, 1);
        state.claim(0, "flood", None);
        let mut flood: Vec<Claim<u32>> = (0..1000).map(|_| state.claim(0, "flood", None)).collect();
        state.lanes[0].waiters.have_waited(LONG_WAIT);
        let mut others: Vec<Claim<u32>> = (0..3).map(|_| state.claim(0, "other", None)).collect();
        let served = |claims: &mut [Claim<u32>]| claims.iter_mut().map(is_served).filter(|is| *is).count();
        for turn in 1..=6 {
            drop(state.next_waiter(0));
            assert_eq!((served(&mut flood), served(&mut others)), (turn - turn / 2, turn / 2));
        }
        assert!(is_served(&mut flood[2]) && !is_served(&mut flood[3]), "in their order");
        drop(state.next_waiter(0));
        drop(state.next_waiter(0));
        assert_eq!((served(&mut flood), served(&mut others), state.waiting()), (5, 3, 995));
    }

    #[test]
    fn a_role_that_floods_the_queue_is_refused_and_others_are_not() {
        let mut state = state(1, 1);
        state.claim(0, "flood", None);
        let mut flood: Vec<Claim<u32>> = (0..WAITING_ANYWAY).map(|_| state.claim(0, "flood", None)).collect();
        for _ in 0..100 {
            state.note_hold(Duration::from_secs(5));
        }
        assert!(matches!(state.claim(0, "flood", None), Claim::Full));
        let mut other = state.claim(0, "other", None);
        assert!(matches!(other, Claim::Wait(_)), "its turn comes soon");
        state.lanes[0].waiters.have_waited(LONG_WAIT);
        drop((state.next_waiter(0), state.next_waiter(0)));
        assert!(is_served(&mut flood[0]) && is_served(&mut other));
        // No outlook, but a bound on memory all the same.
        let mut state = State::<u32>::new(1, 1, Duration::from_secs(10));
        state.claim(0, "flood", None);
        let kept: Vec<Claim<u32>> = (0..MOST_WAITING).map(|_| state.claim(0, "flood", None)).collect();
        assert!(kept.iter().all(|claim| matches!(claim, Claim::Wait(_))));
        assert!(matches!(state.claim(0, "flood", None), Claim::Full));
        assert!(matches!(state.claim(0, "other", None), Claim::Wait(_)));
    }

    #[test]
    fn a_successor_takes_the_place_of_an_old_connection() {
        let mut state = state(2, 1);
        state.claim(0, "", None);
        state.put(Some(1), 0);
        assert!(state.begin_replacing(0));
        assert!(!state.begin_replacing(0), "one at a time");
        assert_eq!(state.end_replacing(0, Some(10), |c| *c < 10), Some(1));
        assert_eq!(granted(state.claim(0, "", None)), Some(Some(10)));
        assert!(state.begin_replacing(0));
        assert_eq!(state.end_replacing(0, Some(11), |c| *c < 10), None);
        assert!(matches!(state.replacement(0), Replacement::Opened(11)));
        assert!(state.begin_replacing(0));
        assert_eq!(state.end_replacing(0, None, |c| *c < 10), None);
        assert!(matches!(state.replacement(0), Replacement::Impossible));
        assert!(matches!(state.replacement(0), Replacement::None));
        assert_eq!(state.available(), 1);
    }
}
