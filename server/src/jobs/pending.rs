//! The runs of jobs that are due and have not begun, as pg_cron counts them: while a job runs, or too many do, the next runs wait.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

/// By job, in the order in which they became due.
#[derive(Debug, Default)]
pub struct Pending {
    runs: HashMap<i64, Runs>,
    order: Vec<i64>,
}

#[derive(Debug, Default)]
struct Runs {
    count: u32,
    /// See [`Pending::add`].
    unless_since: Option<DateTime<Utc>>,
}

impl Pending {
    /// Adds a run. `unless_since`: it is not needed if another one began since then.
    pub fn add(&mut self, job: i64, unless_since: Option<DateTime<Utc>>) {
        let runs = self.runs.entry(job).or_insert_with(|| {
            self.order.push(job);
            Runs::default()
        });
        runs.count = runs.count.saturating_add(1);
        runs.unless_since = unless_since.or(runs.unless_since);
    }

    pub fn has(&self, job: i64) -> bool {
        self.runs.contains_key(&job)
    }

    /// Forgets the runs of all other jobs.
    pub fn keep(&mut self, is_kept: impl Fn(i64) -> bool) {
        self.order.retain(|job| is_kept(*job));
        self.runs.retain(|job, _| is_kept(*job));
    }

    /// Offers a run of each job, the longest waiting first. `begins` returns whether it has begun.
    pub fn offer(&mut self, mut begins: impl FnMut(i64, Option<DateTime<Utc>>) -> bool) {
        let mut again = Vec::new();
        self.order.retain(|job| {
            let Some(runs) = self.runs.get_mut(job) else { return false };
            if !begins(*job, runs.unless_since) {
                return true;
            }
            runs.count -= 1;
            runs.unless_since = None;
            if runs.count > 0 {
                again.push(*job);
            }
            false
        });
        self.order.extend(again);
        self.runs.retain(|_, runs| runs.count > 0);
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
    fn only_the_run_that_catches_up_may_be_left_out() {
        let (mut pending, since) = (Pending::default(), Utc::now());
        let mut offered = Vec::new();
        pending.add(1, Some(since));
        pending.offer(|_, unless_since| {
            offered.push(unless_since);
            true
        });
        pending.add(1, None);
        pending.offer(|_, unless_since| {
            offered.push(unless_since);
            true
        });
        assert_eq!(offered, [Some(since), None]);
    }
}
