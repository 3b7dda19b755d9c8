//! Counters of the store, for `/metrics`.

use bytes::Bytes;

use crate::http::prometheus::{Counter, Metrics};

/// Bytes written to the store, parts of uploads included.
pub static RECEIVED: Counter = Counter::new();
/// Bytes read from the store.
static SENT: Counter = Counter::new();
/// Files and parts of files that were written completely.
pub static FILES: Counter = Counter::new();
/// Requests that failed because of the store or the database, not the client.
pub static FAILED: Counter = Counter::new();

/// Counts bytes sent to clients.
pub fn sent(bytes: &Bytes) {
    SENT.add(bytes.len() as u64);
}

/// Prometheus' text format.
pub fn as_text() -> String {
    let mut metrics = Metrics::default();
    let ways = [("{way=\"in\"}", RECEIVED.get()), ("{way=\"out\"}", SENT.get())];
    metrics.counter("ferrobase_storage_bytes_total", "Bytes of files written and read", ways);
    let files = "Files and parts of files that were written";
    metrics.single("ferrobase_storage_files_written_total", files, FILES.get());
    let failed = "Requests that the store or the database failed";
    metrics.single("ferrobase_storage_failures_total", failed, FAILED.get());
    metrics.into_text()
}
