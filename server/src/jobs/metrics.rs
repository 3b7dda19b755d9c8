//! Outcomes of the work that the database requested, for `/metrics`.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::http::prometheus::{Counter, Metrics};

/// Runs of jobs and requests since the start, by how they ended.
#[derive(Debug)]
pub struct Outcomes {
    pub succeeded: Counter,
    pub failed: Counter,
}

impl Outcomes {
    const fn new() -> Self {
        Self { succeeded: Counter::new(), failed: Counter::new() }
    }

    pub fn note(&self, has_succeeded: bool) {
        if has_succeeded { &self.succeeded } else { &self.failed }.increment();
    }

    fn samples(&self) -> [(&'static str, u64); 2] {
        [("{outcome=\"ok\"}", self.succeeded.get()), ("{outcome=\"failed\"}", self.failed.get())]
    }
}

/// Runs of pg_cron's jobs.
pub static RUNS: Outcomes = Outcomes::new();
/// Requests of pg_net; every answer is a success, whatever its status.
pub static REQUESTS: Outcomes = Outcomes::new();
/// Whether this instance has the schedule.
pub static HAS_SCHEDULE: AtomicBool = AtomicBool::new(false);

/// Prometheus' text format.
pub fn as_text() -> String {
    let mut metrics = Metrics::default();
    metrics.counter("ferrobase_jobs_runs_total", "Runs of scheduled jobs on this instance", RUNS.samples());
    metrics.counter("ferrobase_jobs_requests_total", "HTTP requests that the database queued", REQUESTS.samples());
    let has = u8::from(HAS_SCHEDULE.load(Ordering::Relaxed));
    metrics.single("ferrobase_jobs_has_schedule", "Whether this instance runs the scheduled jobs", has);
    metrics.into_text()
}
