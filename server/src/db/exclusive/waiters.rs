//! Who waits in one lane: a line for each role, served in turn, so that one role's flood keeps no other from its share.

use std::collections::VecDeque;
use std::time::Instant;

use tokio::sync::oneshot;

use super::Held;

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

    /// The first of the role whose turn it is.
    pub fn pop(&mut self) -> Option<oneshot::Sender<Held>> {
        let (role, mut line) = self.lines.pop_front()?;
        let waiter = line.pop_front()?;
        if !line.is_empty() {
            self.lines.push_back((role, line));
        }
        Some(waiter.to)
    }

    /// Since when the one has waited who has waited longest.
    pub fn oldest(&self) -> Option<Instant> {
        self.lines.iter().filter_map(|(_, line)| line.front()).map(|waiter| waiter.since).min()
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

    /// For tests: lets the first one have waited since another moment.
    #[cfg(test)]
    pub fn set_since(&mut self, since: Instant) {
        if let Some(waiter) = self.lines.front_mut().and_then(|(_, line)| line.front_mut()) {
            waiter.since = since;
        }
    }
}
