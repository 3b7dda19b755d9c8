//! Who waits in one lane: a line for each role. Who came first is served first; when that makes for long waits the roles
//! take turns, so that one role's flood keeps no other from its share.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Held;

/// From so long a wait on roles take turns. While waits are short, turns would only make some of them longer: a role
/// that more wait as than as another has no more turns than that, and the lengths of the lines drift apart.
pub const LONG_WAIT: Duration = Duration::from_millis(50);

/// A request that waits.
struct Waiter {
    since: Instant,
    to: oneshot::Sender<Held>,
}

/// The waiting requests of a lane.
#[derive(Default)]
pub struct Waiters {
    /// Roles that somebody waits as, the one whose turn it is first; none of the lines is empty.
    lines: VecDeque<(Box<str>, VecDeque<Waiter>)>,
}

impl Waiters {
    /// At the end of its role's line; a role that nobody waited as has its turn when all others have had theirs.
    pub fn push(&mut self, role: &str, since: Instant, to: oneshot::Sender<Held>) {
        let waiter = Waiter { since, to };
        match self.lines.iter_mut().find(|(known, _)| **known == *role) {
            Some((_, line)) => line.push_back(waiter),
            None => self.lines.push_back((role.into(), VecDeque::from([waiter]))),
        }
    }

    /// The one who came first, or the first of the role whose turn it is if that one has waited for long.
    pub fn pop(&mut self) -> Option<oneshot::Sender<Held>> {
        let (oldest, since) = self.fronts().min_by_key(|(_, since)| *since)?;
        let place = if since.elapsed() < LONG_WAIT { oldest } else { 0 };
        let (role, mut line) = self.lines.remove(place)?;
        let waiter = line.pop_front()?;
        if !line.is_empty() {
            self.lines.push_back((role, line));
        }
        Some(waiter.to)
    }

    /// Since when the one has waited who has waited longest.
    pub fn oldest(&self) -> Option<Instant> {
        self.fronts().map(|(_, since)| since).min()
    }

    /// Since when the first of each line has waited, with the line's place.
    fn fronts(&self) -> impl Iterator<Item = (usize, Instant)> {
        let front = |(place, (_, line)): (usize, &(_, VecDeque<Waiter>))| Some((place, line.front()?.since));
        self.lines.iter().enumerate().filter_map(front)
    }

    /// Strikes those off who no longer wait.
    pub fn forget_gone(&mut self) {
        for (_, line) in &mut self.lines {
            line.retain(|waiter| !waiter.to.is_closed());
        }
        self.lines.retain(|(_, line)| !line.is_empty());
    }

    pub fn len(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    /// How many wait as `role`.
    pub fn of_role(&self, role: &str) -> usize {
        self.lines.iter().find(|(known, _)| **known == *role).map_or(0, |(_, line)| line.len())
    }

    /// How many roles there are that somebody waits as.
    pub fn roles(&self) -> usize {
        self.lines.len()
    }

    /// For tests: everybody has waited for so much longer.
    #[cfg(test)]
    pub fn have_waited(&mut self, longer: Duration) {
        for waiter in self.lines.iter_mut().flat_map(|(_, line)| line) {
            waiter.since -= longer;
        }
    }

    /// For tests: lets the first one have waited since another moment.
    #[cfg(test)]
    pub fn set_since(&mut self, since: Instant) {
        if let Some(waiter) = self.lines.front_mut().and_then(|(_, line)| line.front_mut()) {
            waiter.since = since;
        }
    }
}
