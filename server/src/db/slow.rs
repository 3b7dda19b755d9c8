//! Slow queries: one line in the log for each, which names its request as every line does.
//!
//! The text is logged without values, which are sent beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::http::prometheus::Counter;

/// What counts as slow where nothing is set.
pub const DEFAULT: Duration = Duration::from_secs(1);

/// The longest text that is logged, in bytes.
const LOGGED: usize = 4000;

/// From when on a query is slow, in microseconds.
static THRESHOLD: AtomicU64 = AtomicU64::new(DEFAULT.as_micros() as u64);

static SEEN: Counter = Counter::new();

/// Sets from when on a query is slow, for this process; none for never.
pub fn set_threshold(threshold: Option<Duration>) {
    let micros = threshold.map_or(u64::MAX, |threshold| u64::try_from(threshold.as_micros()).unwrap_or(u64::MAX));
    THRESHOLD.store(micros, Ordering::Relaxed);
}

/// Slow queries since the start.
pub fn seen() -> u64 {
    SEEN.get()
}

/// Logs a query that `took` too long.
pub fn note(took: Duration, text: &str) {
    if u64::try_from(took.as_micros()).unwrap_or(u64::MAX) < THRESHOLD.load(Ordering::Relaxed) {
        return;
    }
    SEEN.increment();
    let mut end = text.len().min(LOGGED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(ms, query = &text[..end], "a query was slow");
}
