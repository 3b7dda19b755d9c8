//! The waiting requests of one lane. Within a role, clients take turns: a client that sends many requests waits for its own.
//! Between roles, requests are served in order of arrival. Once waits become long, roles take turns, however many requests each
//! has waiting. Requests that are known to be quick are queued apart from the others.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashMapExt};
use tokio::sync::oneshot;

use super::Held;

/// The wait from which roles take turns. While waits are short, taking turns would only lengthen those of the busier role, and
/// the queues of the roles would drift apart.
pub const LONG_WAIT: Duration = Duration::from_millis(50);

/// Who asks for a connection, and whether it will be held briefly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker<'a> {
    pub role: &'a str,
    /// The client's address, where it is known.
    pub client: Option<IpAddr>,
    /// Whether such requests are known to hold a connection briefly.
    pub is_quick: bool,
}

/// What the pool remembers of an [`Asker`] while it holds a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub client: Option<IpAddr>,
    pub is_quick: bool,
}

impl Asker<'_> {
    pub fn holder(&self) -> Holder {
        Holder { client: self.client, is_quick: self.is_quick }
    }
}

/// A request that waits.
struct Waiter {
    since: Instant,
    to: oneshot::Sender<Held>,
}

/// The waiting requests of a lane.
#[derive(Default)]
pub struct Waiters {
    /// See [`Waiters::oldest`]. Other threads look at it far more often than at the queues.
    oldest: Option<Instant>,
    quick: Lines,
    slow: Lines,
}

/// A queue per role, the role whose turn it is first. None of them is empty.
#[derive(Default)]
struct Lines {
    roles: VecDeque<(Box<str>, Line)>,
}

/// Requests of one role.
struct Line {
    /// Clients in turn order, each with the time since which its first request has waited.
    turns: VecDeque<(Option<IpAddr>, Instant)>,
    clients: HashMap<Option<IpAddr>, VecDeque<Waiter>>,
    length: usize,
}

impl Line {
    fn new() -> Self {
        Self { turns: VecDeque::new(), clients: HashMap::new(), length: 0 }
    }

    fn push(&mut self, client: Option<IpAddr>, waiter: Waiter) {
        let own = self.clients.entry(client).or_default();
        if own.is_empty() {
            self.turns.push_back((client, waiter.since));
        }
        own.push_back(waiter);
        self.length += 1;
    }

    /// The position of the first client in turn that `may` be served, and since when it has waited.
    fn front(&self, may: &dyn Fn(Option<IpAddr>) -> bool) -> Option<(usize, Instant)> {
        let place = self.turns.iter().position(|(client, _)| may(*client))?;
        Some((place, self.turns[place].1))
    }

    fn pop(&mut self, place: usize) -> Option<(Option<IpAddr>, Waiter)> {
        let (client, _) = self.turns.remove(place)?;
        let own = self.clients.get_mut(&client)?;
        let waiter = own.pop_front()?;
        self.length -= 1;
        match own.front() {
            Some(next) => self.turns.push_back((client, next.since)),
            None => drop(self.clients.remove(&client)),
        }
        Some((client, waiter))
    }

    fn forget_gone(&mut self) {
        for own in self.clients.values_mut() {
            own.retain(|waiter| !waiter.to.is_closed());
        }
        self.clients.retain(|_, own| !own.is_empty());
        self.renew_turns();
        self.length = self.clients.values().map(VecDeque::len).sum();
    }

    /// Drops all requests but the first of each client.
    fn keep_first_of_each(&mut self) {
        self.clients.values_mut().for_each(|own| own.truncate(1));
        self.length = self.clients.len();
    }

    /// Drops the turns of clients without waiting requests, and updates the waiting times of the others.
    fn renew_turns(&mut self) {
        let clients = &self.clients;
        self.turns.retain_mut(|(client, since)| {
            let first = clients.get(client).and_then(VecDeque::front);
            first.inspect(|waiter| *since = waiter.since).is_some()
        });
    }
}

impl Lines {
    fn push(&mut self, role: &str, client: Option<IpAddr>, waiter: Waiter) {
        match self.roles.iter_mut().find(|(known, _)| **known == *role) {
            Some((_, line)) => line.push(client, waiter),
            None => {
                let mut line = Line::new();
                line.push(client, waiter);
                self.roles.push_back((role.into(), line));
            }
        }
    }

    /// The next request: the oldest one or, after a long wait, one of the next role in turn. Returns the positions of role and
    /// client, and since when the request has waited.
    fn next(&self, may: &dyn Fn(Option<IpAddr>) -> bool) -> Option<(usize, usize, Instant)> {
        let front = |(role, (_, line)): (usize, &(Box<str>, Line))| {
            line.front(may).map(|(client, since)| (role, client, since))
        };
        let oldest = self.roles.iter().enumerate().filter_map(front).min_by_key(|(_, _, since)| *since)?;
        if oldest.2.elapsed() < LONG_WAIT {
            return Some(oldest);
        }
        self.roles.iter().enumerate().find_map(front)
    }

    fn pop(&mut self, (role, client, _): (usize, usize, Instant)) -> Option<(Option<IpAddr>, Waiter)> {
        let (name, mut line) = self.roles.remove(role)?;
        let popped = line.pop(client);
        if line.length > 0 {
            self.roles.push_back((name, line));
        }
        popped
    }

    fn oldest(&self) -> Option<Instant> {
        self.roles.iter().filter_map(|(_, line)| line.turns.front()).map(|(_, since)| *since).min()
    }

    fn forget_gone(&mut self) {
        self.roles.iter_mut().for_each(|(_, line)| line.forget_gone());
        self.roles.retain(|(_, line)| line.length > 0);
    }

    fn len(&self) -> usize {
        self.roles.iter().map(|(_, line)| line.length).sum()
    }

    fn of_role(&self, role: &str) -> usize {
        self.roles.iter().find(|(known, _)| **known == *role).map_or(0, |(_, line)| line.length)
    }
}

impl Waiters {
    /// Queues a request behind those of its client. A role or client without waiting requests gets its turn after all others.
    pub fn push(&mut self, asker: &Asker<'_>, since: Instant, to: oneshot::Sender<Held>) {
        let lines = if asker.is_quick { &mut self.quick } else { &mut self.slow };
        lines.push(asker.role, asker.client, Waiter { since, to });
        self.oldest.get_or_insert(since);
    }

    /// Takes the next request that `may` hold a connection.
    pub fn pop(&mut self, may: &dyn Fn(Holder) -> bool) -> Option<(Holder, oneshot::Sender<Held>)> {
        let of_class = |is_quick| move |client| may(Holder { client, is_quick });
        let (quick, slow) = (self.quick.next(&of_class(true)), self.slow.next(&of_class(false)));
        let is_quick = match (quick, slow) {
            (Some((_, _, quick)), Some((_, _, slow))) => quick <= slow,
            (quick, _) => quick.is_some(),
        };
        let (lines, place) = if is_quick { (&mut self.quick, quick?) } else { (&mut self.slow, slow?) };
        let (client, waiter) = lines.pop(place)?;
        self.renew_oldest();
        Some((Holder { client, is_quick }, waiter.to))
    }

    /// Since when the oldest request has waited, approximately.
    pub fn oldest(&self) -> Option<Instant> {
        debug_assert_eq!(self.oldest, self.find_oldest(), "every change updates the cached value");
        self.oldest
    }

    fn find_oldest(&self) -> Option<Instant> {
        [self.quick.oldest(), self.slow.oldest()].into_iter().flatten().min()
    }

    fn renew_oldest(&mut self) {
        self.oldest = self.find_oldest();
    }

    /// Removes requests that no longer wait.
    pub fn forget_gone(&mut self) {
        self.quick.forget_gone();
        self.slow.forget_gone();
        self.renew_oldest();
    }

    pub fn len(&self) -> usize {
        self.quick.len() + self.slow.len()
    }

    fn class(&self, is_quick: bool) -> &Lines {
        if is_quick { &self.quick } else { &self.slow }
    }

    /// Since when the oldest one of them has waited, approximately.
    pub fn oldest_of_class(&self, is_quick: bool) -> Option<Instant> {
        self.class(is_quick).oldest()
    }

    /// The number of quick requests, or of the others.
    pub fn of_class(&self, is_quick: bool) -> usize {
        self.class(is_quick).len()
    }

    /// The number of requests of the same class, role and client.
    pub fn of_client(&self, asker: &Asker<'_>) -> usize {
        let line = self.class(asker.is_quick).roles.iter().find(|(role, _)| **role == *asker.role);
        line.and_then(|(_, line)| line.clients.get(&asker.client)).map_or(0, VecDeque::len)
    }

    /// Drops all requests of a class but the first of each role's clients.
    pub fn keep_first_of_each(&mut self, is_quick: bool) {
        let lines = if is_quick { &mut self.quick } else { &mut self.slow };
        lines.roles.iter_mut().for_each(|(_, line)| line.keep_first_of_each());
    }

    /// The number of requests that wait as `role`.
    pub fn of_role(&self, role: &str) -> usize {
        self.quick.of_role(role) + self.slow.of_role(role)
    }

    /// The number of roles with waiting requests.
    pub fn roles(&self) -> usize {
        let is_new = |role: &str| self.quick.roles.iter().all(|(known, _)| **known != *role);
        self.quick.roles.len() + self.slow.roles.iter().filter(|(role, _)| is_new(role)).count()
    }

    /// For tests: makes every request have waited for `longer`.
    #[cfg(test)]
    pub fn have_waited(&mut self, longer: Duration) {
        self.change_since(|since| since - longer);
    }

    /// For tests: makes every request have waited since `since`.
    #[cfg(test)]
    pub fn set_since(&mut self, since: Instant) {
        self.change_since(|_| since);
    }

    #[cfg(test)]
    fn change_since(&mut self, change: impl Fn(Instant) -> Instant) {
        for (_, line) in self.quick.roles.iter_mut().chain(&mut self.slow.roles) {
            line.clients.values_mut().flatten().for_each(|waiter| waiter.since = change(waiter.since));
            line.renew_turns();
        }
        self.renew_oldest();
    }
}
