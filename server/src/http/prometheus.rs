//! Prometheus' text format, and the counters that rooms keep for it.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A number that only grows, from the start of the process.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Metrics as text, one after the other. A sample is its labels, with braces or empty, and its value.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    pub fn counter<L: Display>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (L, u64)>) {
        self.family(name, "counter", help, samples);
    }

    pub fn gauge<L: Display, V: Display>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (L, V)>) {
        self.family(name, "gauge", help, samples);
    }

    /// A metric without labels.
    pub fn single(&mut self, name: &str, help: &str, value: impl Display) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        self.family(name, kind, help, [("", value)]);
    }

    /// What a room has written already.
    pub fn append(&mut self, text: &str) {
        self.0.push_str(text);
    }

    pub fn into_text(self) -> String {
        self.0
    }

    /// A metric without samples is left out: it would only be a name.
    fn family<L: Display, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_its_help_its_type_and_its_samples() {
        let mut metrics = Metrics::default();
        metrics.counter("a_total", "What a is", [("{x=\"1\"}", 3), ("{x=\"2\"}", 0)]);
        metrics.single("b_bytes", "What b is", 1.5);
        metrics.gauge("c", "Nothing is known of c", std::iter::empty::<(&str, u64)>());
        let expected = "# HELP a_total What a is\n# TYPE a_total counter\na_total{x=\"1\"} 3\na_total{x=\"2\"} 0\n\
                        # HELP b_bytes What b is\n# TYPE b_bytes gauge\nb_bytes 1.5\n";
        assert_eq!(metrics.into_text(), expected);
    }
}
