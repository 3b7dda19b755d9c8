//! Watches the processor time and the memory of a function's process, and kills one that is over its limits.
//!
//! Processor time counts in one stretch: from when the process last rested, or last began or finished something. So a request that
//! waits is not charged with what others use meanwhile, while a loop that never ends is found even if requests keep coming. What a
//! process uses until it listens has a limit of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::worker::Worker;

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watches `worker` for as long as it lives. Systems that do not report what a process uses have no limits.
pub fn watch(worker: &Arc<Worker>) {
    let (Some(pid), worker) = (worker.pid, Arc::downgrade(worker)) else { return };
    tokio::spawn(async move {
        let mut stretch: Option<Stretch> = None;
        let mut looked = Instant::now();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(worker) = worker.upgrade().filter(|worker| worker.is_alive()) else { return };
            let Some(usage) = Usage::of(pid) else { return };
            let (function, limits) = (worker.slug.as_str(), worker.limits);
            if limits.process_mb > 0 && usage.memory_mb > limits.process_mb {
                let (used, allowed) = (usage.memory_mb, limits.process_mb);
                tracing::warn!(function, used, allowed, "an edge function used more memory than it may");
                worker.kill();
                return;
            }
            let (used, allowed) = if worker.port().is_none() {
                (usage.cpu, limits.boot_cpu)
            } else {
                let stretch = stretch.get_or_insert_with(|| Stretch::new(usage, worker.steps()));
                (stretch.used(usage, looked.elapsed(), worker.steps()), limits.cpu * worker.tasks())
            };
            looked = Instant::now();
            if used > allowed {
                tracing::warn!(function, "an edge function used more processor time than it may");
                worker.kill();
                return;
            }
        }
    });
}

/// What a process uses.
#[derive(Clone, Copy, Debug)]
struct Usage {
    /// Processor time so far.
    cpu: Duration,
    /// Whether its first thread, which runs the JavaScript, has something to do.
    is_running: bool,
    /// Memory without the program's files, wherever it is.
    memory_mb: u64,
}

impl Usage {
    /// `None` if the process has ended, or the system does not report it.
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let (is_running, cpu) = parse_stat(&stat)?;
        Some(Self { cpu, is_running, memory_mb: parse_status(&status) })
    }
}

fn parse_stat(stat: &str) -> Option<(bool, Duration)> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // Linux reports hundredths of a second to programs, whatever its internal clock rate.
    Some((*fields.first()? != "S", Duration::from_millis(ticks * 10)))
}

fn parse_status(status: &str) -> u64 {
    let kilobytes = |line: &str| line.split_whitespace().next()?.parse::<u64>().ok();
    let counted = status.lines().filter_map(|line| {
        ["RssAnon:", "RssShmem:", "VmSwap:"].iter().find_map(|name| line.strip_prefix(name)).and_then(kilobytes)
    });
    counted.sum::<u64>() / 1024
}

/// A stretch of work.
#[derive(Debug)]
struct Stretch {
    /// The processor time at its begin and at the last look.
    begun: Duration,
    last: Duration,
    steps: u64,
}

impl Stretch {
    fn new(usage: Usage, steps: u64) -> Self {
        Self { begun: usage.cpu, last: usage.cpu, steps }
    }

    /// The processor time of this stretch, `since` after the last look. A process that has to wait for a processor does not rest.
    fn used(&mut self, usage: Usage, since: Duration, steps: u64) -> Duration {
        let rests = !usage.is_running && usage.cpu.saturating_sub(self.last) * 2 < since;
        if rests || steps != self.steps {
            self.begun = usage.cpu;
        }
        (self.last, self.steps) = (usage.cpu, steps);
        usage.cpu.saturating_sub(self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = LOOK_EVERY;

    fn at(ms: u64, is_running: bool) -> Usage {
        Usage { cpu: Duration::from_millis(ms), is_running, memory_mb: 0 }
    }

    #[test]
    fn what_the_system_reports_is_read() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 9423 0 0 0 64 1 0 0 20 0 9 0";
        assert_eq!(parse_stat(stat), Some((true, Duration::from_millis(650))));
        assert_eq!(parse_stat(&stat.replace(" R ", " S ")).map(|(is_running, _)| is_running), Some(false));
        let status =
            "VmRSS:\t 400000 kB\nRssAnon:\t  2048 kB\nRssFile:\t 300000 kB\nRssShmem:\t 1024 kB\nVmSwap:\t 1024 kB\n";
        assert_eq!(parse_status(status), 4);
        assert!(Usage::of(std::process::id()).is_some_and(|usage| usage.memory_mb > 0) || !cfg!(target_os = "linux"));
    }

    /// Regression: a call that waited for long was charged with all that the process used meanwhile.
    #[test]
    fn rest_ends_a_stretch() {
        let mut stretch = Stretch::new(at(0, false), 0);
        for look in 1..1000 {
            let used = stretch.used(at(look * 20, look % 3 == 0), LOOK, 0);
            assert!(used < LOOK, "{used:?} after {look} looks");
        }
    }

    #[test]
    fn a_loop_is_one_stretch_also_on_a_busy_machine() {
        let mut stretch = Stretch::new(at(0, true), 0);
        let used: Vec<_> = (1..=100).map(|look| stretch.used(at(look * 30, true), LOOK, 0)).collect();
        assert_eq!(used.last(), Some(&Duration::from_secs(3)));
        // So is work on other threads that the first one waits for.
        let mut stretch = Stretch::new(at(0, true), 0);
        let used: Vec<_> = (1..=30).map(|look| stretch.used(at(look * 100, false), LOOK, 0)).collect();
        assert_eq!(used.last(), Some(&Duration::from_secs(3)));
    }

    #[test]
    fn each_step_begins_a_stretch() {
        let mut stretch = Stretch::new(at(0, true), 0);
        for look in 1..1000 {
            assert_eq!(stretch.used(at(look * 100, true), LOOK, look), Duration::ZERO);
        }
    }
}
