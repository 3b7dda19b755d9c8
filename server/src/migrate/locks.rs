//! How the runner waits for locks while requests are served.
//!
//! A file and a request may lock the same tables in a different order. PostgreSQL checks for a deadlock once a statement has waited for
//! `deadlock_timeout` (1 s), and cancels the one that checks first, which may be the request's. So a file's statements wait for less than
//! that. Then the transaction is rolled back and retried, and the request continues.

use std::time::{Duration, Instant};

use rand::Rng as _;

/// How long a statement waits for a lock. Requests that the transaction blocks check for deadlocks after 1 s.
const WAIT: Duration = Duration::from_millis(300);
/// From this age on, a transaction may block requests that are about to check.
const YOUNG: Duration = Duration::from_millis(500);
/// How long its statements wait then.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// The pause before the second attempt; the later ones are longer, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// No attempt begins later than this after the first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A transaction of the runner.
#[derive(Debug)]
pub struct Attempt {
    began: Instant,
    /// The limit in force; `None` if the statements wait for as long as it takes.
    limit: Option<Duration>,
    /// Whether something of it was committed.
    is_kept: bool,
    /// Whether its statements are sent together, so that the limit cannot change between them.
    is_swift: bool,
}

impl Attempt {
    /// One that is repeated if it has to wait for too long.
    pub fn repeatable(now: Instant) -> Self {
        Self { began: now, limit: Some(WAIT), is_kept: false, is_swift: false }
    }

    /// A first one: mostly nobody holds a lock. Its statements are sent together and wait only for a short time.
    pub fn swift(now: Instant) -> Self {
        Self { limit: Some(SHORT_WAIT), is_swift: true, ..Self::repeatable(now) }
    }

    pub fn is_swift(&self) -> bool {
        self.is_swift
    }

    /// One that waits for as long as it takes.
    pub fn only(now: Instant) -> Self {
        Self { limit: None, ..Self::repeatable(now) }
    }

    /// The limit with which a file begins, or goes on after its settings were reset.
    pub fn begin_file(&mut self, now: Instant) -> Option<Duration> {
        if self.is_kept {
            return None;
        }
        let age = now.saturating_duration_since(self.began);
        self.limit = Some(if self.is_swift { SHORT_WAIT } else { limit_at(age) });
        self.limit
    }

    /// The limit that has to be set before the next statement, unless it is in force.
    pub fn change(&mut self, now: Instant) -> Option<Duration> {
        if self.is_swift {
            return None;
        }
        let due = limit_at(now.saturating_duration_since(self.began));
        if self.limit.is_none_or(|limit| limit == due) {
            return None;
        }
        self.limit = Some(due);
        self.limit
    }

    /// The file sets its own limit.
    pub fn leave(&mut self) {
        self.limit = None;
    }

    /// Something was committed: it is not repeated, and so its statements wait for as long as it takes.
    pub fn keep(&mut self) {
        self.is_kept = true;
        self.limit = None;
    }

    pub fn is_kept(&self) -> bool {
        self.is_kept
    }
}

fn limit_at(age: Duration) -> Duration {
    if age < YOUNG { WAIT } else { SHORT_WAIT }
}

/// How often and for how long files are repeated.
#[derive(Debug)]
pub struct Patience {
    began: Instant,
    pub attempts: u32,
}

impl Patience {
    pub fn new(now: Instant) -> Self {
        Self { began: now, attempts: 0 }
    }

    /// Notes that an attempt has failed. How long to wait before the next one; `None` if there is none.
    pub fn pause(&mut self, now: Instant) -> Option<Duration> {
        let most = FIRST_PAUSE.saturating_mul(1 << self.attempts.min(16)).min(LONGEST_PAUSE);
        self.attempts += 1;
        // With jitter, since requests may come at regular intervals.
        (now.saturating_duration_since(self.began) < PATIENCE).then(|| rand::rng().random_range(most / 2..=most))
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_waits_for_less_the_more_requests_it_may_have_kept_waiting() {
        let began = Instant::now();
        let mut attempt = Attempt::repeatable(began);
        assert_eq!((attempt.begin_file(began), attempt.change(began)), (Some(WAIT), None));
        let later = began + YOUNG;
        assert_eq!((attempt.change(later), attempt.change(later)), (Some(SHORT_WAIT), None));
        assert_eq!(attempt.begin_file(later), Some(SHORT_WAIT));
        // A request that a young transaction blocks has not checked yet when the last statement gives up.
        assert!(YOUNG + WAIT < Duration::from_secs(1));
        let mut swift = Attempt::swift(began);
        assert_eq!((swift.begin_file(began), swift.change(began), swift.change(later)), (Some(SHORT_WAIT), None, None));
        attempt.leave();
        assert_eq!(attempt.change(later), None, "the file has its own");
        attempt.keep();
        assert_eq!(attempt.begin_file(later), None, "it is not repeated");
    }

    #[test]
    fn attempts_come_with_growing_pauses_and_end() {
        let began = Instant::now();
        let (mut now, mut patience, mut pauses) = (began, Patience::new(began), Vec::new());
        while let Some(pause) = patience.pause(now) {
            pauses.push(pause);
            now += WAIT + pause;
        }
        assert!(pauses[0] <= FIRST_PAUSE && pauses[0] >= FIRST_PAUSE / 2, "{pauses:?}");
        let longest = &pauses[9..];
        assert!(longest.iter().all(|pause| *pause >= LONGEST_PAUSE / 2 && *pause <= LONGEST_PAUSE), "{pauses:?}");
        assert!(longest.iter().any(|pause| *pause != longest[0]), "jitter");
        assert!(now - began >= PATIENCE && now - began < PATIENCE + WAIT + LONGEST_PAUSE);
        assert_eq!(patience.attempts as usize, pauses.len() + 1);
    }
}
