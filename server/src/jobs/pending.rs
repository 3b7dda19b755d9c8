//! The runs of jobs that are due and have not begun, as pg_cron counts them: while a job runs, or too many do, the next runs wait.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, Utc};

/// By job, in the order in which they became due.
#[derive(Debug, Default)]
pub struct Pending {
    runs: HashMap<i64, Runs>,
    order: Vec<i64>,
}

#[derive(Debug, Default)]
struct Runs {
    /// Runs that may not be needed, each for the time when it was missed. They come first.
    missed: VecDeque<Missed>,
    /// The others.
    count: u32,
}

/// A run that another server may have begun: from one time on, and before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    pub since: DateTime<Utc>,
    pub before: Option<DateTime<Utc>>,
}

impl Runs {
    fn are_none(&self) -> bool {
        self.count == 0 && self.missed.is_empty()
    }
}

impl Pending {
    /// Adds a run. `missed`: it is not needed if another one began then.
    pub fn add(&mut self, job: i64, missed: Option<Missed>) {
        let runs = self.runs.entry(job).or_insert_with(|| {
            self.order.push(job);
            Runs::default()
        });
        match missed {
            Some(missed) => runs.missed.push_back(missed),
            None => runs.count = runs.count.saturating_add(1),
        }
    }

    pub fn has(&self, job: i64) -> bool {
        self.runs.contains_key(&job)
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Forgets the runs of all other jobs.
    pub fn keep(&mut self, is_kept: impl Fn(i64) -> bool) {
        self.order.retain(|job| is_kept(*job));
        self.runs.retain(|job, _| is_kept(*job));
    }

    /// Offers a run of each job, the longest waiting first. `begins` returns whether it has begun.
    pub fn offer(&mut self, mut begins: impl FnMut(i64, Option<Missed>) -> bool) {
        let mut again = Vec::new();
        self.order.retain(|job| {
            let Some(runs) = self.runs.get_mut(job) else { return false };
            if !begins(*job, runs.missed.front().copied()) {
                return true;
            }
            if runs.missed.pop_front().is_none() {
                runs.count -= 1;
            }
            if !runs.are_none() {
                again.push(*job);
            }
            false
        });
        self.order.extend(again);
        self.runs.retain(|_, runs| !runs.are_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers the runs to so many places; one run of a job at a time.
    fn begun(pending: &mut Pending, places: usize, busy: &[i64]) -> Vec<i64> {
        let mut begun = Vec::new();
        pending.offer(|job, _| {
            let begins = begun.len() < places && !busy.contains(&job);
            if begins {
                begun.push(job);
            }
            begins
        });
        begun
    }

    /// Regression: runs without a free place were lost, and so was one that was due while its job ran.
    #[test]
    fn runs_wait_for_a_place_and_for_the_run_before() {
        let mut pending = Pending::default();
        for job in 1..=5 {
            pending.add(job, None);
        }
        assert_eq!(begun(&mut pending, 2, &[]), [1, 2]);
        pending.add(1, None);
        assert_eq!(begun(&mut pending, 2, &[1, 2]), [3, 4]);
        assert_eq!(begun(&mut pending, 2, &[1, 3, 4]), [5], "1 runs");
        assert_eq!(begun(&mut pending, 2, &[]), [1]);
        assert!(!pending.has(1) && begun(&mut pending, 2, &[]).is_empty());
    }

    #[test]
    fn each_run_counts_and_a_removed_job_has_none() {
        let mut pending = Pending::default();
        (0..3).for_each(|_| pending.add(7, None));
        pending.add(8, None);
        assert_eq!(begun(&mut pending, 9, &[]), [7, 8]);
        assert_eq!(begun(&mut pending, 9, &[]), [7]);
        pending.add(8, None);
        pending.keep(|job| job == 8);
        assert_eq!(begun(&mut pending, 9, &[]), [8]);
        assert!(begun(&mut pending, 9, &[]).is_empty());
    }

    /// Jobs that end late do not keep others from running.
    #[test]
    fn jobs_take_turns() {
        let mut pending = Pending::default();
        let mut all = Vec::new();
        for _ in 0..4 {
            (1..=4).for_each(|job| pending.add(job, None));
            all.extend(begun(&mut pending, 2, &[]));
        }
        assert!((1..=4).all(|job| all.iter().filter(|begun| **begun == job).count() == 2), "{all:?}");
    }

    #[test]
    fn each_run_that_was_missed_is_offered_for_its_own_time_and_before_the_others() {
        let (mut pending, first) = (Pending::default(), Utc::now());
        let missed = |minutes| Missed { since: first + chrono::Duration::minutes(minutes), before: None };
        pending.add(1, None);
        pending.add(1, Some(missed(0)));
        pending.add(1, Some(missed(1)));
        let mut offered = Vec::new();
        for _ in 0..4 {
            pending.offer(|_, missed| {
                offered.push(missed);
                true
            });
        }
        assert_eq!(offered, [Some(missed(0)), Some(missed(1)), None]);
    }
}
