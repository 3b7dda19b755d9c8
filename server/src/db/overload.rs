//! When a queue stops growing and refuses: once requests have waited for too long without a break, which a burst's do not.
//!
//! Under lasting overload a queue makes every answer late and no answer sooner. What counts is how long requests wait, compared
//! with how long they are served: a long queue of quick requests is no overload, if it is over in a moment. While overload lasts,
//! only so many requests wait that connections never idle, and the others are refused. Each class of requests (quick or
//! not) has its own state, since slow requests may queue for long while quick ones pass them. A database that stands still is no
//! overload either: requests wait until it answers again.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A wait up to this is not long, however short requests are.
pub const LONG_WAIT: Duration = Duration::from_millis(100);
/// Nor is one up to so many times what requests of the class are served.
const LONG_WAIT_IN_HOLDS: u32 = 8;
/// If none has been served for so many times that, nor for [`LONG_WAIT`], the queue does not move.
const STILL_IN_HOLDS: u32 = 4;
/// With fewer requests per connection than this it is not the number of requests that makes them wait.
const LEAST_QUEUE: usize = 4;
/// For how long requests wait too long before it counts as overload.
pub const LASTING: Duration = Duration::from_millis(500);
/// How long a refusal is held back at least, so that clients that try again at once leave the processors to those who are served.
const HELD_BACK: Duration = Duration::from_millis(30);
/// The longest that it is held back.
const LONGEST_BACK: Duration = Duration::from_millis(500);
/// Refusals a second for each processor, unless one would be held back for too long: of requests that went the whole way to here, where
/// each costs as much of a processor as a quick request, and of those that are refused at the door ([`crate::http::door`]). Twice as many
/// there answer 2,000 clients within 50 ms, but half as many rows are served then (docs/reports/bench-overload.md).
const REFUSALS: [usize; 2] = [5_000, 12_000];
/// How long after the last refusal the state ends.
const CALM_AFTER: Duration = Duration::from_secs(1);
/// How few requests are served at once at least.
const LEAST_AT_ONCE: usize = 2;
/// How many requests of a client wait at least, if there are so many.
const LEAST_WAITING: usize = 2;
/// For how long at least the requests are counted that are served with so many at once, and how many at least.
const COUNTED: (Duration, u32) = (Duration::from_millis(200), 50);
/// Twice as many at once are kept if so many times as many are served.
const PAYS: f64 = 1.25;
/// So many counts pass after an attempt that was of no use, and twice as many after the next, up to the second number.
const REST: (u32, u32) = (8, 128);
/// After so many served requests it is known whether there still is a flood.
const FLOOD_CHECK: u32 = 16;
/// How often those who wait look whether more may be served by now.
pub const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// A moving average of how long requests are served. The first one counts in full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Typical {
    seconds: f64,
    /// When the last one was served.
    last: Option<Instant>,
}

impl Typical {
    /// Notes that a request has been served at `now`.
    pub fn note(&mut self, took: Duration, now: Instant) {
        let took = took.as_secs_f64();
        let former = if self.last.is_some() { self.seconds } else { took };
        self.seconds = former + (took - former) / 16.0;
        self.last = Some(now);
    }

    pub fn get(self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Whether none has been served for so long that the queue does not move.
    pub fn is_still(self, now: Instant) -> bool {
        let still = self.last.map_or(Duration::MAX, |last| now.saturating_duration_since(last));
        still >= LONG_WAIT.max(self.get() * STILL_IN_HOLDS)
    }
}

/// Whether the requests of one class come faster than they are served.
#[derive(Debug, Default)]
pub struct Overload {
    /// Since when every request that came has found a long wait.
    long_since: Option<Instant>,
    /// While there is overload.
    found: Option<Found>,
}

/// Overload that lasts.
#[derive(Debug)]
struct Found {
    /// The last refusal.
    refused: Instant,
    at_once: AtOnce,
}

/// How many requests are served at once under overload. A few fill the processors; more would only make each other slow, unless
/// PostgreSQL has many or requests wait for its disk. So twice as many are tried now and then, and kept if more are served.
#[derive(Debug)]
struct AtOnce {
    few: usize,
    /// The most that are served at once, as outside of overload.
    most: usize,
    /// Whether more are refused than served. Otherwise there soon is no overload any more, and nothing is limited.
    is_flood: bool,
    /// What was before the change that is being tried, and how many were served a second then.
    before: Option<(usize, f64)>,
    /// Whether fewer are tried next.
    fewer: bool,
    /// Counts until then, and after the next attempt of no use.
    rest: (u32, u32),
    /// Requests that began before the last change.
    skip: usize,
    since: Instant,
    /// When the last one was served.
    last: Instant,
    served: u32,
    /// Requests that were served and refused since the last look at the flood.
    lately: (u32, u32),
}

impl AtOnce {
    fn new(most: usize, now: Instant) -> Self {
        Self {
            few: LEAST_AT_ONCE.min(most),
            most,
            is_flood: true,
            before: None,
            fewer: false,
            rest: (0, REST.0),
            skip: most,
            since: now,
            last: now,
            served: 0,
            lately: (0, 0),
        }
    }

    fn get(&self) -> usize {
        if self.is_flood { self.few } else { self.most }
    }

    fn note_refused(&mut self) {
        self.lately.1 = self.lately.1.saturating_add(1);
    }

    fn note_served(&mut self, now: Instant) {
        let is_late = now.duration_since(std::mem::replace(&mut self.last, now)) >= LONG_WAIT;
        if is_late && self.is_flood {
            // Some wait for something else, such as a lock: that many more may be served.
            (self.before, self.rest) = (None, (REST.0, REST.0));
            self.change((self.few * 2).min(self.most));
        }
        self.lately.0 += 1;
        if self.lately.0 >= FLOOD_CHECK {
            let (served, refused) = std::mem::take(&mut self.lately);
            if self.is_flood != (refused >= served) {
                self.is_flood = !self.is_flood;
                if let Some((few, _)) = self.before.take() {
                    self.few = few;
                }
                self.skip = self.most;
            }
        }
        if self.skip > 0 {
            (self.skip, self.since, self.served) = (self.skip - 1, now, 0);
            return;
        }
        self.served += 1;
        let passed = now.duration_since(self.since);
        if self.is_flood && passed >= COUNTED.0 && self.served >= COUNTED.1 {
            let rate = f64::from(self.served) / passed.as_secs_f64();
            (self.since, self.served) = (now, 0);
            self.conclude(rate);
        }
    }

    /// `rate` have been served a second.
    fn conclude(&mut self, rate: f64) {
        if let Some((few, before)) = self.before.take() {
            let (fewer, more) = if self.fewer { (rate, before) } else { (before, rate) };
            if self.fewer == (more >= fewer * PAYS) {
                self.turn();
                return self.change(few);
            }
            self.rest = (0, REST.0);
        }
        if self.rest.0 > 0 {
            self.rest.0 -= 1;
            return;
        }
        let next = if self.fewer { (self.few / 2).max(LEAST_AT_ONCE) } else { self.few * 2 }.min(self.most);
        if next == self.few {
            self.turn();
        } else {
            self.before = Some((self.few, rate));
            self.change(next);
        }
    }

    /// Rests, and tries the other direction then.
    fn turn(&mut self) {
        let (_, rest) = self.rest;
        (self.fewer, self.rest) = (!self.fewer, (rest, (rest * 2).min(REST.1)));
    }

    fn change(&mut self, few: usize) {
        self.skip = self.few;
        self.few = few;
    }
}

/// What a request finds when it comes.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// How many are served at once: the connections of a pool, or threads.
    pub size: usize,
    /// Requests of its class that wait.
    pub waiting: usize,
    /// Those of its own role and client.
    pub own: usize,
    /// How long the one that comes next has waited.
    pub wait: Duration,
    /// How long such a request is usually served.
    pub hold: Duration,
    /// Whether none is served any more.
    pub is_still: bool,
    /// Whether fewer are served at once under overload ([`Overload::at_once`]).
    pub is_limited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Queue,
    Refuse,
    /// Overload has just been found: the request is refused, and so are those that wait, except for the first of each client.
    RefuseAll,
}

impl Overload {
    /// How many requests may be served at once: as many as there are connections, unless there is overload and they are `served`.
    pub fn at_once(&self, served: Typical) -> usize {
        let Some(found) = &self.found else { return usize::MAX };
        let now = Instant::now();
        let is_over = now.duration_since(found.refused) > CALM_AFTER;
        if is_over || served.is_still(now) { usize::MAX } else { found.at_once.get() }
    }

    /// Notes that a request has been served.
    pub fn note_served(&mut self, now: Instant) {
        if let Some(found) = &mut self.found {
            found.at_once.note_served(now);
        }
    }

    /// Whether a request may wait.
    pub fn judge(&mut self, queue: Queue, now: Instant) -> Verdict {
        let is_over =
            |found: &Found| now.duration_since(found.refused) > CALM_AFTER || (queue.waiting == 0 && queue.is_still);
        if self.found.as_ref().is_some_and(is_over) {
            *self = Self::default();
        }
        if let Some(found) = &mut self.found {
            if !queue.is_enough(if queue.is_limited { found.at_once.get() } else { queue.size }) {
                return Verdict::Queue;
            }
            found.refused = now;
            found.at_once.note_refused();
            return Verdict::Refuse;
        }
        if !queue.is_long() {
            self.long_since = None;
            return Verdict::Queue;
        }
        let since = *self.long_since.get_or_insert(now);
        if now.duration_since(since) < LASTING {
            return Verdict::Queue;
        }
        self.found = Some(Found { refused: now, at_once: AtOnce::new(queue.size, now) });
        Verdict::RefuseAll
    }
}

impl Queue {
    fn is_long(self) -> bool {
        self.waiting >= self.size * LEAST_QUEUE
            && self.wait > LONG_WAIT.max(self.hold * LONG_WAIT_IN_HOLDS)
            && !self.is_still
    }

    /// Whether connections stay busy without this request, where so many are served `at_once`. A client whose other requests do not
    /// wait may be one of a few more, so that a client that floods the server does not take all places.
    fn is_enough(self, at_once: usize) -> bool {
        let most = at_once.div_ceil(2).max(LEAST_WAITING).min(self.size.div_ceil(2));
        self.waiting >= 2 * most || (self.own > 0 && self.waiting >= most)
    }
}

/// Waits before a refusal is sent to a request that went the whole way.
pub async fn hold_back() {
    tokio::time::sleep_until(sent_at(false).into()).await;
}

/// When a refusal is sent to a request of now, by turns.
pub fn sent_at(is_at_door: bool) -> Instant {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    static APART: LazyLock<[Duration; 2]> = LazyLock::new(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        REFUSALS.map(|refusals| Duration::from_secs(1).div_f64((refusals * processors) as f64))
    });
    let now = Instant::now();
    let until = {
        let mut last = LAST.lock();
        let until = turn(*last, now, APART[usize::from(is_at_door)]);
        *last = Some(until);
        until
    };
    until.max(now + HELD_BACK)
}

/// When a refusal is sent to a request that comes `now`, after the `last` one, with `apart` between two.
fn turn(last: Option<Instant>, now: Instant, apart: Duration) -> Instant {
    last.map_or(now, |last| (last + apart).clamp(now, now + LONGEST_BACK))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_millis(161);

    fn queue(waiting: usize, own: usize) -> Queue {
        Queue { size: 10, waiting, own, wait: LONG, hold: SERVED, is_still: false, is_limited: true }
    }

    #[test]
    fn lasting_long_waits_are_overload_and_bursts_are_not() {
        let (mut overload, start) = (Overload::default(), Instant::now());
        assert_eq!(overload.judge(queue(5000, 5000), start), Verdict::Queue);
        assert_eq!(overload.judge(queue(160, 160), start + LASTING / 2), Verdict::Queue);
        assert_eq!(overload.judge(queue(39, 39), start + LASTING), Verdict::Queue, "it was shorter in between");
        let again = start + 2 * LASTING;
        assert_eq!(overload.judge(queue(160, 160), again), Verdict::Queue);
        assert_eq!(overload.judge(queue(160, 160), again + LASTING), Verdict::RefuseAll);
        assert_eq!(overload.judge(queue(5, 5), again + LASTING), Verdict::Refuse);
    }

    /// It counted requests instead, and refused what would have been served 40 ms later.
    #[test]
    fn a_long_queue_that_moves_quickly_is_no_overload() {
        let (mut overload, start) = (Overload::default(), Instant::now());
        for (wait, hold) in [(40, 1), (100, 1), (160, 20), (4000, 500)] {
            let (wait, hold) = (Duration::from_millis(wait), Duration::from_millis(hold));
            for part in 0..5 {
                let found = Queue { wait, hold, ..queue(5000, 5000) };
                assert_eq!(overload.judge(found, start + LASTING * part), Verdict::Queue, "{wait:?} {hold:?}");
            }
        }
        // Few requests that wait for something else, such as a database that stands still for a moment.
        let found = Queue { wait: Duration::from_secs(5), ..queue(30, 1) };
        assert_eq!(overload.judge(found, start), Verdict::Queue);
        assert_eq!(overload.judge(found, start + LASTING), Verdict::Queue);
    }

    /// Requests were refused as soon as a database that had stood still for a second answered again.
    #[test]
    fn a_stalled_queue_does_not_count_as_overload() {
        let (mut overload, start) = (Overload::default(), Instant::now());
        for part in 0..5 {
            let found = Queue { is_still: true, ..queue(1000, 1000) };
            assert_eq!(overload.judge(found, start + LASTING * part), Verdict::Queue);
        }
        let again = start + LASTING * 5;
        assert_eq!(overload.judge(queue(1000, 1000), again), Verdict::Queue);
        assert_eq!(overload.judge(queue(500, 500), again + LASTING / 2), Verdict::Queue);
        assert_eq!(overload.judge(queue(500, 500), again + LASTING), Verdict::RefuseAll, "it moves, and is too long");
    }

    #[test]
    fn refusals_come_one_after_the_other_and_never_too_late() {
        let (start, apart) = (Instant::now(), Duration::from_millis(100));
        let mut last = None;
        let turns: Vec<Duration> = (0..8)
            .map(|_| {
                let next = turn(last, start, apart);
                last = Some(next);
                next - start
            })
            .collect();
        assert_eq!(turns, [0, 100, 200, 300, 400, 500, 500, 500].map(Duration::from_millis));
        let later = start + Duration::from_secs(2);
        assert_eq!(turn(last, later, apart), later, "what is over does not count");
    }

    /// Has requests served, `per_second`, until they have been counted, with `refused` others for each.
    fn count(at_once: &mut AtOnce, now: &mut Instant, per_second: u32, refused: u32) {
        let mut skip = at_once.skip;
        loop {
            at_once.lately.1 += refused;
            *now += Duration::from_secs(1) / per_second;
            at_once.note_served(*now);
            if skip == 0 && at_once.served == 0 {
                return;
            }
            skip = skip.saturating_sub(1);
        }
    }

    #[test]
    fn more_at_once_if_more_are_served() {
        let mut now = Instant::now();
        for (fill, settled) in [(1, 2), (4, 4), (6, 8), (16, 16)] {
            let mut at_once = AtOnce::new(20, now);
            let mut seen = Vec::new();
            for _ in 0..40 {
                let served = 1000 * u32::try_from(at_once.get().min(fill)).expect("small");
                count(&mut at_once, &mut now, served, 9);
                seen.push(at_once.get());
            }
            let often = seen[6..].iter().filter(|now| **now == settled).count();
            assert!(often >= 26, "{fill}: {seen:?}");
        }
    }

    #[test]
    fn as_many_at_once_as_before_when_the_flood_goes() {
        let mut now = Instant::now();
        let mut at_once = AtOnce::new(10, now);
        count(&mut at_once, &mut now, 500, 9);
        count(&mut at_once, &mut now, 500, 9);
        assert_eq!(at_once.get(), 2);
        count(&mut at_once, &mut now, 500, 0);
        assert_eq!(at_once.get(), 10);
        count(&mut at_once, &mut now, 500, 9);
        assert_eq!(at_once.get(), 2, "it comes back");
    }

    /// Two that waited for a lock kept all others of a flood waiting.
    #[test]
    fn more_at_once_after_a_pause_in_which_none_was_served() {
        let mut now = Instant::now();
        let mut at_once = AtOnce::new(10, now);
        count(&mut at_once, &mut now, 500, 9);
        assert_eq!(at_once.few, 4, "as an attempt");
        at_once.before = None;
        at_once.few = 2;
        now += LONG_WAIT;
        at_once.note_served(now);
        assert_eq!(at_once.get(), 4);
    }

    /// Bursts kept a state alive that they would not have begun.
    #[test]
    fn overload_ends_when_nobody_waits_and_none_is_served() {
        let start = Instant::now();
        let mut overload = overloaded(start);
        let found = Queue { is_still: true, ..queue(0, 0) };
        assert_eq!(overload.judge(found, start + LASTING), Verdict::Queue);
        assert_eq!(overload.judge(queue(100, 100), start + LASTING), Verdict::Queue, "it is over");
    }

    fn overloaded(start: Instant) -> Overload {
        let mut overload = Overload::default();
        overload.judge(queue(1000, 1000), start);
        assert_eq!(overload.judge(queue(1000, 1000), start + LASTING), Verdict::RefuseAll);
        overload
    }

    #[test]
    fn in_overload_the_queue_is_short_and_a_flood_leaves_places_to_others() {
        let start = Instant::now();
        let mut overload = overloaded(start);
        let mut judge = |waiting, own| overload.judge(queue(waiting, own), start + LASTING);
        assert_eq!((judge(1, 1), judge(2, 2)), (Verdict::Queue, Verdict::Refuse));
        assert_eq!((judge(2, 0), judge(3, 0), judge(3, 1)), (Verdict::Queue, Verdict::Queue, Verdict::Refuse));
        assert_eq!(judge(4, 0), Verdict::Refuse);
    }

    #[test]
    fn requests_queue_again_after_overload() {
        let start = Instant::now();
        let mut overload = overloaded(start);
        let later = start + LASTING + CALM_AFTER / 2;
        assert_eq!(overload.judge(queue(1, 1), later), Verdict::Queue, "at once");
        let calm = later + CALM_AFTER;
        assert_eq!(overload.judge(queue(1, 1), calm), Verdict::Queue);
        assert_eq!(overload.judge(queue(100, 100), calm), Verdict::Queue, "a burst");
    }
}
