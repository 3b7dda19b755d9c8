//! The minutes for which jobs with cron fields are due, also if the clock jumps or the server was stopped for a while.
//!
//! The cases are those of pg_cron's `StartPendingRuns`, which has them from Vixie cron. pg_cron itself never sees a step
//! back as one and starts no job until its clock has caught up; we do what its comments say.

use super::schedule::Schedule;

/// Three hours. A greater step means that the clock was set.
const CLOCK_WAS_SET: i64 = 180;
/// Up to so many minutes, every job has its run for each.
const CAUGHT_UP: i64 = 5;
const AFTER_THAT: i64 = CAUGHT_UP + 1;

/// Which jobs are due in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    /// Those of a fixed time.
    Fixed,
    /// Those with a star in the minute or the hour.
    Repeated,
}

impl Which {
    pub fn includes(self, schedule: &Schedule) -> bool {
        match self {
            Self::All => true,
            Self::Fixed => !schedule.is_repeated(),
            Self::Repeated => schedule.is_repeated(),
        }
    }
}

/// The clock, in minutes since 1970.
#[derive(Debug)]
pub struct Minutes {
    /// Up to where jobs of a fixed time were run. Ahead of the clock after a step back.
    reached: i64,
    seen: i64,
}

impl Minutes {
    pub fn starting(now: i64) -> Self {
        Self { reached: now, seen: now }
    }

    /// The minutes to look at now, and for which jobs. Each minute of the clock is looked at once.
    pub fn until(&mut self, now: i64) -> Vec<(i64, Which)> {
        if self.seen == now {
            return Vec::new();
        }
        self.seen = now;
        let (reached, passed) = (self.reached, now - self.reached);
        let missed = |which| (reached + 1..=now).map(move |minute| (minute, which));
        let due = match passed {
            0 => Vec::new(),
            1..=CAUGHT_UP => missed(Which::All).collect(),
            AFTER_THAT..=CLOCK_WAS_SET => missed(Which::Fixed).chain([(now, Which::Repeated)]).collect(),
            // Jobs of a fixed time have run.
            _ if passed < 0 && passed > -CLOCK_WAS_SET => return vec![(now, Which::Repeated)],
            _ => vec![(now, Which::All)],
        };
        self.reached = now;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minutes, from 1,000 on, in which a job of minute 1,003 (of a fixed time) and one of every minute are due.
    fn runs(clock: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let mut minutes = Minutes::starting(1_000);
        let (mut fixed, mut repeated) = (Vec::new(), Vec::new());
        for now in clock {
            for (minute, which) in minutes.until(*now) {
                if minute == 1_003 && which != Which::Repeated {
                    fixed.push(minute);
                }
                if which != Which::Fixed {
                    repeated.push(minute);
                }
            }
        }
        (fixed, repeated)
    }

    #[test]
    fn each_minute_counts_once() {
        assert_eq!(runs(&[1_000, 1_000, 1_001, 1_001, 1_002, 1_003, 1_003]), (vec![1_003], vec![1_001, 1_002, 1_003]));
    }

    /// Regression: after a step back, jobs of a fixed time ran a second time.
    #[test]
    fn after_a_step_back_only_repeated_jobs_run_until_the_clock_has_caught_up() {
        let clock = [1_003, 1_001, 1_001, 1_002, 1_003, 1_004];
        assert_eq!(runs(&clock), (vec![1_003], vec![1_001, 1_002, 1_003, 1_001, 1_002, 1_004]));
        // Unless the clock was set.
        assert_eq!(runs(&[1_003, 824, 1_003]).0, [1_003]);
        assert_eq!(runs(&[1_003, 823, 1_003]).0, [1_003, 1_003]);
    }

    /// Regression: the minutes of a pause were skipped.
    #[test]
    fn after_a_pause_every_job_runs_for_each_minute_or_after_a_long_one_those_of_a_fixed_time() {
        assert_eq!(runs(&[1_005]), (vec![1_003], vec![1_001, 1_002, 1_003, 1_004, 1_005]));
        assert_eq!(runs(&[1_006]), (vec![1_003], vec![1_006]));
        assert_eq!(runs(&[1_180]), (vec![1_003], vec![1_180]));
        // The clock was set.
        assert_eq!(runs(&[1_181]), (vec![], vec![1_181]));
    }
}
