//! Slows a backup down while the processors are busy with other work.
//!
//! A low priority is not enough: Linux compares priorities only within a session or a control group, and PostgreSQL and the server are
//! often in different ones. Linux counts for how long a thread has waited for a processor (`schedstat`). A thread that waits half as long
//! as it works is taking time from somebody, so it then pauses until it has used no more than [`SHARE`] of the processors. Other
//! systems do not say it; there a backup does not pause.

use std::io;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::stop_flag::StopFlag;

/// The share of all processors. PostgreSQL and `pg_basebackup` may use about as much for the same backup.
const SHARE: f64 = 0.015;
/// How often the thread is looked at, and how much it has to have used.
const STEP: Duration = Duration::from_millis(5);
/// The processors are busy if the thread has waited for more than one part in so many of what it has used. A part is other processes of
/// the same backup.
const BUSY: u32 = 2;
/// The longest single pause, and how often the stop flag is checked during one.
const LONGEST: Duration = Duration::from_secs(2);
const CHECK: Duration = Duration::from_millis(100);
/// All pauses of one backup together: while it runs, the database keeps its WAL and servers keep removed files.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// The pace of one backup, which may move from thread to thread.
#[derive(Debug)]
pub struct Pace {
    /// Processors that the backup may use.
    processors: f64,
    last: Option<Seen>,
    looked: Option<Instant>,
    /// How long it may still pause.
    patience: Duration,
}

/// What the system has counted for a thread.
#[derive(Clone, Copy, Debug)]
struct Seen {
    thread: ThreadId,
    at: Instant,
    used: Duration,
    waited: Duration,
}

impl Pace {
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        Self { processors: processors * SHARE, last: None, looked: None, patience: PATIENCE }
    }

    /// Pauses if the thread has used its share. Called between pieces of work.
    pub fn keep(&mut self, stop_flag: &StopFlag) -> io::Result<()> {
        if self.looked.is_some_and(|at| at.elapsed() < STEP) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let Some(seen) = Seen::now() else { return Ok(()) };
        let mut pause = self.pause(seen);
        while !pause.is_zero() {
            stop_flag.check()?;
            let part = pause.min(CHECK);
            std::thread::sleep(part);
            pause -= part;
        }
        Ok(())
    }

    /// How long to pause.
    fn pause(&mut self, seen: Seen) -> Duration {
        let Some(last) = self.last.filter(|last| last.thread == seen.thread) else {
            self.last = Some(seen);
            return Duration::ZERO;
        };
        let (used, waited) = (seen.used.saturating_sub(last.used), seen.waited.saturating_sub(last.waited));
        if used < STEP {
            return Duration::ZERO;
        }
        self.last = Some(seen);
        if waited * BUSY < used {
            return Duration::ZERO;
        }
        let took = seen.at.saturating_duration_since(last.at);
        let pause = used.div_f64(self.processors).saturating_sub(took).min(LONGEST).min(self.patience);
        self.patience -= pause;
        // The pause belongs to what it follows.
        self.last = Some(Seen { at: seen.at + pause, ..seen });
        pause
    }
}

impl Seen {
    /// Of this thread; `None` where the system does not tell.
    fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut numbers = text.split(' ').map_while(|number| number.parse().ok()).map(Duration::from_nanos);
        let (used, waited) = (numbers.next()?, numbers.next()?);
        // Some kernels have the file and do not count.
        (!used.is_zero()).then(|| Self { thread: std::thread::current().id(), at: Instant::now(), used, waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn seen(start: Instant, at: u64, used: u64, waited: u64) -> Seen {
        Seen { thread: std::thread::current().id(), at: start + ms(at), used: ms(used), waited: ms(waited) }
    }

    fn pace(patience: Duration) -> Pace {
        Pace { processors: 0.03, last: None, looked: None, patience }
    }

    #[test]
    fn a_backup_pauses_only_while_the_processors_are_busy() {
        let start = Instant::now();
        let mut pace = pace(PATIENCE);
        assert_eq!(pace.pause(seen(start, 0, 500, 500)), Duration::ZERO, "what came before does not count");
        assert_eq!(pace.pause(seen(start, 50, 550, 501)), Duration::ZERO, "there is room");
        assert_eq!(pace.pause(seen(start, 52, 552, 600)), Duration::ZERO, "too little to tell");
        assert_eq!(pace.pause(seen(start, 80, 580, 600)), ms(1000) - ms(30), "30 ms in a second");
        assert_eq!(pace.pause(seen(start, 1060, 592, 620)), ms(400) - ms(10), "the pause does not count again");
        assert_eq!(pace.pause(seen(start, 3080, 605, 630)), Duration::ZERO, "it has been slow enough");
        assert_eq!(pace.pause(seen(start, 3180, 705, 730)), LONGEST);
    }

    #[test]
    fn a_backup_ends_even_if_the_processors_are_always_busy() {
        let start = Instant::now();
        let mut pace = pace(ms(2500));
        let pauses: Vec<_> = (0..4).map(|n| pace.pause(seen(start, n * 100, n * 100, n * 100))).collect();
        assert_eq!(pauses, [Duration::ZERO, LONGEST, ms(500), Duration::ZERO]);
    }

    #[test]
    fn another_thread_begins_anew() {
        let start = Instant::now();
        let mut pace = pace(PATIENCE);
        pace.pause(seen(start, 0, 0, 0));
        let other = std::thread::spawn(|| std::thread::current().id()).join().expect("it ends");
        assert_eq!(pace.pause(Seen { thread: other, ..seen(start, 10, 900, 900) }), Duration::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_says_what_a_thread_has_used() {
        let Some(first) = Seen::now() else {
            eprintln!("not tried: this kernel does not count");
            return;
        };
        let begun = Instant::now();
        while Seen::now().is_none_or(|seen| seen.used < first.used + ms(2)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is counted");
        }
    }
}
