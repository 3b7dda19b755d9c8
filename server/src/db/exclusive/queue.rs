//! Decides which request gets which connection: lanes of idle connections and of waiting requests. Does no I/O.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use tokio::sync::oneshot;

use super::Held;
use super::waiters::{Asker, Holder, Waiters};
use crate::db::overload::{Overload, Queue, Typical, Verdict};

/// The most requests that may wait as one role. Roles share the queue.
const MOST_WAITING: usize = 10_000;
/// The most requests that may wait in all, however many roles there are.
const MOST_WAITING_OF_ALL: usize = 2 * MOST_WAITING;
/// Requests per connection that may always wait, whatever the expected delay.
const WAITING_ANYWAY: usize = 64;
/// How long a request waits for its own lane before it takes a connection of another lane: the first value if its lane has served
/// nobody for that long, the second in any case. Changing lanes wakes another thread twice, which costs more than many
/// statements, so a lane that is merely busy is left alone.
pub const LANE_WAIT: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(20));

/// The pool's bookkeeping. `C` is a connection.
pub struct State<C> {
    size: usize,
    /// Connections held, idle and being opened, by lane.
    lanes: Vec<Lane<C>>,
    waiting: usize,
    holding: Holding,
    timeout: Duration,
    /// How long connections are held.
    typical_hold: Typical,
    /// The same of quick requests and of others.
    class_holds: [Typical; 2],
    /// Of quick requests and of others, where lasting overload is refused.
    overload: Option<[Overload; 2]>,
}

/// The held connections, and how many may be held: by all requests that are not known to be quick, by those of one client, and by all
/// requests of one client.
///
/// Long requests never hold all connections, and one client never holds their whole share. Quick requests and other clients therefore
/// always find connections that return soon. That a request is quick is known from others with the same statement, and with other values
/// it may take far longer: so one client never holds all connections, whatever its requests are taken for.
struct Holding {
    most_long: usize,
    most_long_of_client: usize,
    most_of_client: usize,
    long: Holds,
    quick: Holds,
}

impl Holding {
    fn of(size: usize) -> Self {
        let long = if size < 3 { size } else { size - (size / 5).max(1) };
        let long_of_client = if long < 3 { long } else { long - (long / 4).max(1) };
        let (most_long, most_long_of_client, most_of_client) = (long, long_of_client, long);
        Self { most_long, most_long_of_client, most_of_client, long: Holds::default(), quick: Holds::default() }
    }

    /// Whether another such request may hold a connection, where so many quick ones are served `at_once`.
    fn may_begin(&self, holder: Holder, at_once: usize) -> bool {
        let long_of_client = self.long.of(holder.client);
        if holder.is_quick {
            self.quick.all < at_once && self.quick.of(holder.client) + long_of_client < self.most_of_client
        } else {
            self.long.all < self.most_long && long_of_client < self.most_long_of_client
        }
    }

    fn class(&mut self, holder: Holder) -> &mut Holds {
        if holder.is_quick { &mut self.quick } else { &mut self.long }
    }
}

/// Connections held by requests of one class.
#[derive(Default)]
struct Holds {
    all: usize,
    by_client: HashMap<IpAddr, usize>,
}

impl Holds {
    fn of(&self, client: Option<IpAddr>) -> usize {
        client.and_then(|client| self.by_client.get(&client)).copied().unwrap_or_default()
    }

    fn begin(&mut self, client: Option<IpAddr>) {
        self.all += 1;
        if let Some(client) = client {
            *self.by_client.entry(client).or_default() += 1;
        }
    }

    fn end(&mut self, client: Option<IpAddr>) {
        self.all = self.all.saturating_sub(1);
        let Some(client) = client else { return };
        if let Some(count) = self.by_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&client);
            }
        }
    }
}

struct Lane<C> {
    open: usize,
    idle: Vec<C>,
    waiters: Waiters,
    /// When the lane last served one of its requests.
    served: Instant,
    /// Connections opened to replace old ones.
    successors: Vec<C>,
    is_replacing: bool,
    /// Whether the last attempt to open a successor failed.
    is_stuck: bool,
}

/// What can replace an old connection.
pub enum Replacement<C> {
    Opened(C),
    /// No successor could be opened beside it, so it has to be closed first.
    Impossible,
    None,
}

/// The answer to a request for a connection.
pub enum Claim<C> {
    /// An idle connection, or `None` for the right to open one.
    Granted(Option<C>),
    Wait(oneshot::Receiver<Held>),
    /// The queue is full, or the request would time out.
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
        let lanes = (0..lanes).map(|_| lane()).collect();
        Self {
            size,
            lanes,
            waiting: 0,
            holding: Holding::of(size),
            timeout,
            typical_hold: Typical::default(),
            class_holds: Default::default(),
            overload: None,
        }
    }

    /// The same, refusing requests while there is lasting overload if so told.
    pub fn refusing(mut self, refuses: bool) -> Self {
        self.overload = refuses.then(Default::default);
        self
    }

    /// The number of waiting requests.
    pub fn waiting(&mut self) -> usize {
        self.forget_gone();
        self.waiting
    }

    /// Removes requests that no longer wait.
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

    /// Claims a connection for a request of `lane` that has already waited for `waited`. After the wait it may open more than its
    /// lane's share or take an idle connection of another lane. If nothing is free, it keeps its place in the queue.
    pub fn claim(&mut self, lane: usize, asker: &Asker<'_>, waited: Option<Duration>) -> Claim<C> {
        if self.may_begin(asker.holder())
            && let Some(connection) = self.grant(lane, waited)
        {
            self.begin(asker.holder());
            return Claim::Granted(connection);
        }
        if waited.is_some() || self.is_full(asker.role) || self.is_overloaded(asker) {
            return Claim::Full;
        }
        let (to, ticket) = oneshot::channel();
        self.lanes[lane].waiters.push(asker, Instant::now(), to);
        self.waiting += 1;
        Claim::Wait(ticket)
    }

    /// An idle connection, or the right to open one, if the lane may have it.
    fn grant(&mut self, lane: usize, waited: Option<Duration>) -> Option<Option<C>> {
        if let Some(connection) = self.lanes[lane].idle.pop() {
            self.lanes[lane].served = Instant::now();
            return Some(Some(connection));
        }
        let insists = waited.is_some_and(|waited| self.has_been_patient(lane, waited));
        let share = self.size.div_ceil(self.lanes.len());
        let has_share = self.lanes[lane].open < share;
        if self.open() < self.size && (has_share || insists) {
            self.lanes[lane].open += 1;
            return Some(None);
        }
        if (has_share || insists)
            && let Some(connection) = self.lanes.iter_mut().find_map(|other| other.idle.pop())
        {
            return Some(Some(connection));
        }
        None
    }

    /// Whether a request of `lane` has waited long enough for a connection of another. While few are served at once, any wait is.
    fn has_been_patient(&self, lane: usize, waited: Duration) -> bool {
        self.is_limited()
            || waited >= LANE_WAIT.1
            || (waited >= LANE_WAIT.0 && self.lanes[lane].served.elapsed() >= LANE_WAIT.0)
    }

    /// Whether another request as `role` would clearly time out. The margin is wide because the forecast is a guess.
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
        let seconds = ahead as f64 * self.typical_hold.get().as_secs_f64() / self.size.max(1) as f64;
        self.waiting >= MOST_WAITING_OF_ALL
            || ahead >= MOST_WAITING
            || (ahead >= self.size * WAITING_ANYWAY && seconds > 2.0 * self.timeout.as_secs_f64())
    }

    /// Whether another such request is refused because of lasting overload that has been found before.
    pub fn refuses(&mut self, asker: &Asker<'_>) -> bool {
        if !asker.is_quick || self.at_once() == usize::MAX {
            return false;
        }
        self.forget_gone();
        let is_free = self.may_begin(asker.holder()) && self.available() > 0;
        !is_free && self.is_overloaded(asker)
    }

    /// Whether another such request is refused because of lasting overload.
    fn is_overloaded(&mut self, asker: &Asker<'_>) -> bool {
        let Some(overload) = &mut self.overload else { return false };
        let in_lanes =
            |count: &dyn Fn(&Waiters) -> usize| -> usize { self.lanes.iter().map(|lane| count(&lane.waiters)).sum() };
        let (class, now) = (usize::from(asker.is_quick), Instant::now());
        let oldest = self.lanes.iter().filter_map(|lane| lane.waiters.oldest_of_class(asker.is_quick)).min();
        let queue = Queue {
            size: self.size,
            waiting: in_lanes(&|waiters| waiters.of_class(asker.is_quick)),
            own: in_lanes(&|waiters| waiters.of_client(asker)),
            wait: oldest.map_or(Duration::ZERO, |since| now.duration_since(since)),
            hold: self.class_holds[class].get(),
            is_still: self.class_holds[class].is_still(now),
            is_limited: asker.is_quick,
        };
        match overload[class].judge(queue, now) {
            Verdict::Queue => false,
            Verdict::Refuse => true,
            Verdict::RefuseAll => {
                tracing::warn!(
                    waiting = queue.waiting,
                    "requests come faster than the database serves them; some are refused"
                );
                self.lanes.iter_mut().for_each(|lane| lane.waiters.keep_first_of_each(asker.is_quick));
                self.forget_gone();
                true
            }
        }
    }

    /// How many requests would be served before another one as `role`. Roles take turns, so in each lane that is its own role's
    /// requests and as many of every other role.
    fn ahead_of(&self, role: &str) -> usize {
        let in_lane = |waiters: &Waiters| {
            let own = waiters.of_role(role);
            let others = waiters.roles() - usize::from(own > 0);
            own + others * (own + 1)
        };
        let ahead: usize = self.lanes.iter().map(|lane| in_lane(&lane.waiters)).sum();
        ahead.min(self.waiting)
    }

    /// How many quick requests may be served at once.
    fn at_once(&self) -> usize {
        let quick = usize::from(true);
        self.overload.as_ref().map_or(usize::MAX, |overload| overload[quick].at_once(self.class_holds[quick]))
    }

    fn may_begin(&self, holder: Holder) -> bool {
        self.holding.may_begin(holder, self.at_once())
    }

    fn is_limited(&self) -> bool {
        self.at_once() < usize::MAX
    }

    fn begin(&mut self, holder: Holder) {
        self.holding.class(holder).begin(holder.client);
    }

    /// Notes that `holder` has released its connection, or never used it.
    pub fn release(&mut self, holder: Holder) {
        self.holding.class(holder).end(holder.client);
    }

    pub fn note_hold(&mut self, holder: Holder, held_for: Duration) {
        let now = Instant::now();
        self.typical_hold.note(held_for, now);
        let class = usize::from(holder.is_quick);
        self.class_holds[class].note(held_for, now);
        if let Some(overload) = &mut self.overload {
            overload[class].note_served(now);
        }
    }

    /// The request that a connection of `lane` serves next, after its lane: one of `lane`, unless another lane has waited much longer.
    pub fn next_waiter(&mut self, lane: usize) -> Option<(usize, Holder, oneshot::Sender<Held>)> {
        let ahead = if self.is_limited() { Duration::ZERO } else { LANE_WAIT.1 };
        let own = self.lanes[lane].waiters.oldest();
        let other = (0..self.lanes.len())
            .filter(|n| *n != lane)
            .filter_map(|n| self.lanes[n].waiters.oldest().map(|since| (since, n)))
            .min();
        let first = match (own, other) {
            (None, None) => return None,
            (Some(_), None) => lane,
            // A request that has not waited long enough will look for idle connections of all lanes when it has.
            (None, Some((other, n))) if self.has_been_patient(n, other.elapsed()) => n,
            (None, Some(_)) => return None,
            (Some(own), Some((other, n))) => {
                if other + ahead < own {
                    n
                } else {
                    lane
                }
            }
        };
        // If every client that waits there already holds its limit, look at the other lanes.
        let others = (0..self.lanes.len()).filter(|n| *n != first);
        let (holding, at_once) = (&self.holding, self.at_once());
        let (mut of, mut popped) = (first, None);
        for next in std::iter::once(first).chain(others) {
            let is_patient = next == first || next == lane || {
                let oldest = self.lanes[next].waiters.oldest();
                oldest.is_some_and(|since| self.has_been_patient(next, since.elapsed()))
            };
            if !is_patient {
                continue;
            }
            popped = self.lanes[next].waiters.pop(&|holder| holding.may_begin(holder, at_once));
            if popped.is_some() {
                of = next;
                self.lanes[next].served = Instant::now();
                break;
            }
        }
        let (holder, to) = popped?;
        self.begin(holder);
        self.waiting -= 1;
        Some((of, holder, to))
    }

    /// Stores a connection of `lane`, or the right to open one, in exchange for an idle one of `other`, if there is one. Returns the one
    /// and its lane.
    pub fn exchange(&mut self, connection: Option<C>, lane: usize, other: usize) -> (Option<C>, usize) {
        if other == lane && connection.is_some() {
            return (connection, lane);
        }
        let Some(idle) = self.lanes[other].idle.pop() else { return (connection, lane) };
        self.put(connection, lane);
        (Some(idle), other)
    }

    /// Stores an idle connection, or notes that one was closed.
    pub fn put(&mut self, connection: Option<C>, lane: usize) {
        match connection {
            Some(connection) => self.lanes[lane].idle.push(connection),
            None => self.lanes[lane].open = self.lanes[lane].open.saturating_sub(1),
        }
    }

    /// Moves the right to a connection to another lane.
    pub fn rehome(&mut self, from: usize, to: usize) {
        self.lanes[from].open = self.lanes[from].open.saturating_sub(1);
        self.lanes[to].open += 1;
    }

    /// Whether a successor may be opened now. A lane opens one at a time.
    pub fn begin_replacing(&mut self, lane: usize) -> bool {
        let lane = &mut self.lanes[lane];
        let may = !lane.is_replacing && lane.successors.is_empty();
        lane.is_replacing |= may;
        may
    }

    /// Replaces an old idle connection by `successor` and returns the old one to be closed. Without an old idle one, keeps the
    /// successor until one is given back. Without a successor, an old idle connection is closed all the same: the next request
    /// opens a new one.
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

    /// What replaces an old connection that is being given back.
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
    use super::super::waiters;
    use super::*;
    use crate::db::overload::{LASTING, LONG_WAIT};

    fn state(size: usize, lanes: usize) -> State<u32> {
        State::new(size, lanes, Duration::from_secs(10))
    }

    fn as_role(role: &str) -> Asker<'_> {
        Asker { role, client: None, is_quick: true }
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
        assert_eq!(granted(state.claim(0, &as_role(""), None)), Some(None));
        assert_eq!(granted(state.claim(0, &as_role(""), None)), Some(None));
        assert_eq!(granted(state.claim(0, &as_role(""), None)), None);
        assert_eq!(granted(state.claim(0, &as_role(""), Some(LANE_WAIT.1))), Some(None));
        assert_eq!(granted(state.claim(1, &as_role(""), None)), None);
        assert_eq!(state.available(), 0);
    }

    #[test]
    fn idle_connections_of_the_own_lane_come_first_and_others_after_waiting() {
        let mut state = state(2, 2);
        for lane in [0, 1] {
            state.claim(lane, &as_role(""), None);
            state.put(Some(u32::try_from(lane).expect("small")), lane);
        }
        assert_eq!(granted(state.claim(1, &as_role(""), None)), Some(Some(1)));
        assert_eq!(
            granted(state.claim(1, &as_role(""), None)),
            None,
            "waits, because the idle connections belong to another lane"
        );
        assert_eq!(granted(state.claim(1, &as_role(""), Some(LANE_WAIT.1))), Some(Some(0)));
        assert_eq!(granted(state.claim(1, &as_role(""), Some(LANE_WAIT.1))), None);
    }

    #[test]
    fn a_lane_below_its_share_takes_idle_connections_of_others_at_once() {
        let mut state = state(2, 2);
        for _ in 0..2 {
            state.claim(0, &as_role(""), Some(LANE_WAIT.1));
            state.put(Some(7), 0);
            state.claim(0, &as_role(""), Some(LANE_WAIT.1));
        }
        state.put(Some(7), 0);
        assert_eq!(granted(state.claim(1, &as_role(""), None)), Some(Some(7)));
    }

    #[test]
    fn a_request_of_another_lane_is_given_a_connection_when_it_has_waited() {
        let mut state = state(2, 2);
        for lane in [0, 1] {
            state.claim(lane, &as_role(""), None);
        }
        let Claim::Wait(mut waiting) = state.claim(1, &as_role(""), None) else { panic!("waits") };
        assert!(state.next_waiter(0).is_none(), "it may yet be served by its own lane");
        state.lanes[1].waiters.set_since(Instant::now() - LANE_WAIT.0);
        assert!(state.next_waiter(0).is_none(), "its own lane is not stuck");
        state.lanes[1].served = Instant::now() - LANE_WAIT.0;
        drop(state.next_waiter(0).expect("it has waited"));
        assert_eq!(waiting.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn the_own_lane_is_served_first_until_another_has_waited_longer() {
        let mut state = state(1, 2);
        state.claim(0, &as_role(""), None);
        let Claim::Wait(mut first) = state.claim(1, &as_role(""), None) else { panic!("waits") };
        let Claim::Wait(mut second) = state.claim(0, &as_role(""), None) else { panic!("waits") };
        let now = Instant::now();
        state.lanes[0].waiters.set_since(now);
        state.lanes[1].waiters.set_since(now);
        drop(state.next_waiter(0));
        assert!(second.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        assert_eq!(first.try_recv().err(), Some(oneshot::error::TryRecvError::Empty));

        let Claim::Wait(mut third) = state.claim(0, &as_role(""), None) else { panic!("waits") };
        state.lanes[0].waiters.set_since(now + LANE_WAIT.1 * 2);
        drop(state.next_waiter(0));
        assert_eq!(first.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
        assert_eq!(third.try_recv().err(), Some(oneshot::error::TryRecvError::Empty));
        assert_eq!(state.waiting(), 1);
    }

    #[test]
    fn requests_that_cannot_be_served_in_time_are_refused_at_once() {
        let mut state = state(1, 1);
        state.claim(0, &as_role(""), None);
        let mut tickets = Vec::new();
        for _ in 0..WAITING_ANYWAY {
            tickets.push(state.claim(0, &as_role(""), None));
        }
        assert!(tickets.iter().all(|claim| matches!(claim, Claim::Wait(_))));
        assert!(matches!(state.claim(0, &as_role(""), None), Claim::Wait(_)), "holds are short so far");
        for _ in 0..100 {
            state.note_hold(as_role("").holder(), Duration::from_secs(5));
        }
        assert!(matches!(state.claim(0, &as_role(""), None), Claim::Full));
    }

    #[test]
    fn a_lasting_flood_is_refused_but_quick_requests_and_other_clients_are_not() {
        let mut state = state(2, 1).refusing(true);
        let quick = |number: u8| Asker { role: "r", client: client(number), is_quick: true };
        let refused = |claim: &Claim<u32>| matches!(claim, Claim::Full);
        for _ in 0..2 {
            assert_eq!(granted(state.claim(0, &quick(1), None)), Some(None));
        }
        let mut flood: Vec<Claim<u32>> = (0..100).map(|_| state.claim(0, &quick(1), None)).collect();
        assert!(!flood.iter().any(refused) && !state.refuses(&quick(1)), "a burst waits");
        let mut slow = state.claim(0, &long(4), None);
        let mut other = state.claim(0, &quick(2), None);
        let serve = |state: &mut State<u32>| state.note_hold(quick(1).holder(), Duration::ZERO);
        std::thread::sleep(LONG_WAIT);
        serve(&mut state);
        flood.push(state.claim(0, &quick(1), None));
        assert!(!flood.iter().any(refused), "not yet");
        std::thread::sleep(LASTING);
        flood.push(state.claim(0, &quick(1), None));
        assert!(!flood.iter().any(refused), "the queue does not move");
        serve(&mut state);
        flood.push(state.claim(0, &quick(1), None));
        std::thread::sleep(LASTING);
        serve(&mut state);
        assert!(refused(&state.claim(0, &quick(1), None)));
        // The first of each client stay, and the slow ones.
        assert!(!is_served(&mut flood[0]) && !is_served(&mut other) && !is_served(&mut slow));
        assert!(flood[1..].iter_mut().all(is_served), "they are told");
        assert_eq!(state.waiting(), 3);
        assert!(refused(&state.claim(0, &quick(1), None)) && refused(&state.claim(0, &quick(3), None)));
        assert!(
            state.refuses(&quick(1)) && state.refuses(&quick(3)) && !state.refuses(&long(1)),
            "before it is planned"
        );
        let next = state.next_waiter(0);
        assert!(next.is_some_and(|(_, holder, _)| !holder.is_quick), "as many quick ones as may are served");
        state.release(quick(1).holder());
        drop(state.next_waiter(0));
        assert!(state.refuses(&quick(2)) && !state.refuses(&quick(3)));
        assert!(refused(&state.claim(0, &quick(2), None)) && !refused(&state.claim(0, &quick(3), None)));
        let mut state = self::state(2, 1);
        let flood: Vec<Claim<u32>> = (0..100).map(|_| state.claim(0, &quick(1), None)).collect();
        std::thread::sleep(LONG_WAIT);
        assert!(!refused(&state.claim(0, &quick(1), None)));
        std::thread::sleep(LASTING);
        assert!(!refused(&state.claim(0, &quick(1), None)), "where it is not asked for");
        drop(flood);
    }

    /// Whether the request with this ticket has been served. The test drops what came with it.
    fn is_served(claim: &mut Claim<u32>) -> bool {
        let Claim::Wait(ticket) = claim else { panic!("waits") };
        ticket.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn requests_are_served_in_order_while_waits_are_short() {
        let mut state = state(1, 1);
        state.claim(0, &as_role("a"), None);
        let mut tickets: Vec<_> = ["a", "a", "b", "a", "b"].map(|role| state.claim(0, &as_role(role), None)).into();
        for (number, ticket) in tickets.iter_mut().enumerate() {
            let waiter = state.next_waiter(0);
            assert!(waiter.is_some());
            drop(waiter);
            assert!(is_served(ticket), "{number}");
        }
        assert_eq!(state.waiting(), 0);
    }

    #[test]
    fn roles_take_turns_regardless_of_their_number_of_requests() {
        let mut state = state(1, 1);
        state.claim(0, &as_role("flood"), None);
        let mut flood: Vec<Claim<u32>> = (0..1000).map(|_| state.claim(0, &as_role("flood"), None)).collect();
        state.lanes[0].waiters.have_waited(waiters::LONG_WAIT);
        let mut others: Vec<Claim<u32>> = (0..3).map(|_| state.claim(0, &as_role("other"), None)).collect();
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
        state.claim(0, &as_role("flood"), None);
        let mut flood: Vec<Claim<u32>> = (0..WAITING_ANYWAY).map(|_| state.claim(0, &as_role("flood"), None)).collect();
        for _ in 0..100 {
            state.note_hold(as_role("").holder(), Duration::from_secs(5));
        }
        assert!(matches!(state.claim(0, &as_role("flood"), None), Claim::Full));
        let mut other = state.claim(0, &as_role("other"), None);
        assert!(matches!(other, Claim::Wait(_)), "its turn comes soon");
        state.lanes[0].waiters.have_waited(waiters::LONG_WAIT);
        drop((state.next_waiter(0), state.next_waiter(0)));
        assert!(is_served(&mut flood[0]) && is_served(&mut other));
        // Without a timeout, memory is still bounded.
        let mut state = State::<u32>::new(1, 1, Duration::from_secs(10));
        state.claim(0, &as_role("flood"), None);
        let kept: Vec<Claim<u32>> = (0..MOST_WAITING).map(|_| state.claim(0, &as_role("flood"), None)).collect();
        assert!(kept.iter().all(|claim| matches!(claim, Claim::Wait(_))));
        assert!(matches!(state.claim(0, &as_role("flood"), None), Claim::Full));
        assert!(matches!(state.claim(0, &as_role("other"), None), Claim::Wait(_)));
    }

    fn client(number: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, number]))
    }

    fn long(number: u8) -> Asker<'static> {
        Asker { role: "r", client: client(number), is_quick: false }
    }

    #[test]
    fn long_requests_never_hold_all_connections_nor_one_client_all_of_theirs() {
        let mut state = state(10, 1);
        let of = |state: &mut State<u32>, number: u8| {
            (0..10).filter(|_| matches!(state.claim(0, &long(number), None), Claim::Granted(_))).count()
        };
        assert_eq!(of(&mut state, 1), 6);
        assert_eq!(of(&mut state, 2), 2);
        let quick = (0..10).filter(|_| matches!(state.claim(0, &as_role("r"), None), Claim::Granted(_))).count();
        assert_eq!(quick, 2);
        // Client 1's connection goes to client 2, and the next one to no slow request.
        state.release(long(1).holder());
        assert_eq!(
            state.next_waiter(0).map(|(_, holder, _)| holder.client),
            Some(client(1)),
            "the one that has waited longest"
        );
        state.release(long(2).holder());
        state.release(long(1).holder());
        assert_eq!(state.next_waiter(0).map(|(_, holder, _)| holder.client), Some(client(2)), "client 2 is next");
    }

    /// Ten calls of a function that is mostly quick, with values that keep it busy until the statement timeout, stopped everybody.
    #[test]
    fn one_client_never_holds_all_connections_however_quick_its_requests_are_taken_to_be() {
        let mut state = state(10, 1);
        let quick = |number: u8| Asker { role: "r", client: client(number), is_quick: true };
        let mut of = |asker: Asker<'_>| {
            let claims: Vec<_> = (0..10).map(|_| state.claim(0, &asker, None)).collect();
            (claims.iter().filter(|claim| matches!(claim, Claim::Granted(_))).count(), claims)
        };
        let (held, _waiting) = of(quick(1));
        assert_eq!(held, 8);
        let (held, _others) = of(quick(2));
        assert_eq!(held, 2);
        state.release(quick(2).holder());
        let next = state.next_waiter(0).map(|(_, holder, _)| holder.client);
        assert_eq!(next, Some(client(2)), "client 1 has waited longer, and holds its share");
        state.release(quick(1).holder());
        assert_eq!(state.next_waiter(0).map(|(_, holder, _)| holder.client), Some(client(1)));
    }

    #[test]
    fn quick_requests_are_served_beside_any_number_of_long_ones() {
        let mut state = state(3, 1);
        let mut waiting: Vec<_> = (0..500).map(|n| state.claim(0, &long((n % 250) as u8), None)).collect();
        waiting.retain(|claim| matches!(claim, Claim::Wait(_)));
        assert_eq!(waiting.len(), 498);
        assert!(matches!(state.claim(0, &as_role("r"), None), Claim::Granted(_)));
        let mut quick = state.claim(0, &as_role("r"), None);
        assert!(matches!(quick, Claim::Wait(_)));
        drop(state.next_waiter(0).expect("the quick one"));
        assert!(is_served(&mut quick));
        assert!(state.next_waiter(0).is_none(), "the others have reached their limit");
    }

    #[test]
    fn a_waiting_request_of_another_lane_gets_an_idle_connection_of_its_own() {
        let mut state = state(4, 2);
        for (lane, connection) in [(0, 1), (1, 2)] {
            state.claim(lane, &as_role(""), None);
            state.put(Some(connection), lane);
        }
        assert_eq!(state.exchange(Some(3), 0, 0), (Some(3), 0), "of the same lane");
        assert_eq!(state.exchange(Some(3), 0, 1), (Some(2), 1));
        assert_eq!(state.exchange(Some(4), 0, 1), (Some(4), 0), "none is idle");
        assert_eq!(state.exchange(None, 0, 0), (Some(3), 0), "instead of opening one");
        assert_eq!((state.lanes[0].idle.clone(), state.lanes[0].open), (vec![1], 0));
    }

    #[test]
    fn clients_of_one_role_take_turns() {
        let mut state = state(1, 1);
        state.claim(0, &long(1), None);
        let mut flood: Vec<_> = (0..100).map(|_| state.claim(0, &long(1), None)).collect();
        let mut other = state.claim(0, &long(2), None);
        for _ in 0..2 {
            state.release(long(1).holder());
            drop(state.next_waiter(0).expect("somebody"));
        }
        assert!(is_served(&mut flood[0]) && is_served(&mut other) && !is_served(&mut flood[1]));
    }

    #[test]
    fn a_successor_replaces_an_old_connection() {
        let mut state = state(2, 1);
        state.claim(0, &as_role(""), None);
        state.put(Some(1), 0);
        assert!(state.begin_replacing(0));
        assert!(!state.begin_replacing(0), "one at a time");
        assert_eq!(state.end_replacing(0, Some(10), |c| *c < 10), Some(1));
        assert_eq!(granted(state.claim(0, &as_role(""), None)), Some(Some(10)));
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
