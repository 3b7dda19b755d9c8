//! Counts requests by API, status and duration.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The APIs as labels, in the order of the counters; other paths count for the web app.
const APIS: [&str; 6] = ["auth", "rest", "storage", "functions", "realtime", "web"];

/// Upper bounds of the histogram's buckets, seconds.
const BOUNDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Statuses that say that there was too much: of one client, or of all.
const REFUSALS: [u16; 2] = [429, 503];

/// Counters since the start. Cheap to clone; clones count together.
#[derive(Clone, Default)]
pub struct Traffic {
    apis: Arc<[Counters; APIS.len()]>,
    /// The only API, served at `/`.
    alone: Option<&'static str>,
}

#[derive(Default)]
struct Counters {
    /// By the first digit of the status, from 1.
    statuses: [AtomicU64; 5],
    /// Answered within each of [`BOUNDS`], and later than all.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
    /// Begun and not answered yet.
    in_flight: AtomicI64,
    /// Answered with 429 and 503.
    refused: [AtomicU64; 2],
}

/// A request in progress, until it is dropped: because it was answered or because its client disconnected.
pub struct InFlight {
    traffic: Traffic,
    api: usize,
    since: Instant,
}

impl InFlight {
    /// Counts the answer.
    pub fn answered(self, status: u16) -> Duration {
        let took = self.since.elapsed();
        self.traffic.note(self.api, status, took);
        took
    }

    /// Its client left before the answer; only that it is over is counted.
    pub fn abandoned(self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(counters) = self.traffic.apis.get(self.api) {
            counters.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Traffic {
    /// For a single API.
    pub fn of(api: &'static str) -> Self {
        Self { alone: Some(api), ..Self::default() }
    }

    /// Begins a request.
    pub fn begin(&self, path: &str) -> InFlight {
        let api = self.api_of(path);
        if let Some(counters) = self.apis.get(api) {
            counters.in_flight.fetch_add(1, Ordering::Relaxed);
        }
        InFlight { traffic: self.clone(), api, since: Instant::now() }
    }

    fn api_of(&self, path: &str) -> usize {
        let name = self.alone.unwrap_or_else(|| path.split('/').nth(1).unwrap_or_default());
        let is_api = self.alone.is_some() || path.split('/').nth(2) == Some("v1");
        APIS.iter().position(|api| is_api && *api == name).unwrap_or(APIS.len() - 1)
    }

    fn note(&self, api: usize, status: u16, took: Duration) {
        let Some(counters) = self.apis.get(api) else { return };
        let class = usize::from(status / 100).saturating_sub(1).min(4);
        let bucket = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BOUNDS.len());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for (counter, by) in
            [(&counters.statuses[class], 1), (&counters.buckets[bucket], 1), (&counters.micros, micros)]
        {
            counter.fetch_add(by, Ordering::Relaxed);
        }
        if let Some(at) = REFUSALS.iter().position(|refusal| *refusal == status) {
            counters.refused[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Prometheus' text format.
    pub fn as_text(&self) -> String {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::from(
            "# HELP ferrobase_http_requests_total Requests answered\n# TYPE ferrobase_http_requests_total counter\n",
        );
        for (api, counters) in APIS.iter().zip(self.apis.iter()) {
            for (class, counter) in (1..).zip(&counters.statuses) {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "ferrobase_http_requests_total{{api=\"{api}\",status=\"{class}xx\"}} {}",
                    load(counter)
                );
            }
        }
        let name = "ferrobase_http_refusals_total";
        let _ = writeln!(text, "# HELP {name} Answers 429 and 503\n# TYPE {name} counter");
        for (api, counters) in APIS.iter().zip(self.apis.iter()) {
            for (status, counter) in REFUSALS.iter().zip(&counters.refused) {
                let _ = writeln!(text, "{name}{{api=\"{api}\",status=\"{status}\"}} {}", load(counter));
            }
        }
        let name = "ferrobase_http_requests_in_flight";
        let _ = writeln!(text, "# HELP {name} Requests without an answer yet\n# TYPE {name} gauge");
        for (api, counters) in APIS.iter().zip(self.apis.iter()) {
            let _ = writeln!(text, "{name}{{api=\"{api}\"}} {}", counters.in_flight.load(Ordering::Relaxed));
        }
        let name = "ferrobase_http_request_duration_seconds";
        let _ = writeln!(text, "# HELP {name} Time until the head of the answer\n# TYPE {name} histogram");
        for (api, counters) in APIS.iter().zip(self.apis.iter()) {
            let mut so_far = 0;
            let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
            for (bound, counter) in bounds.zip(&counters.buckets) {
                so_far += load(counter);
                let _ = writeln!(text, "{name}_bucket{{api=\"{api}\",le=\"{bound}\"}} {so_far}");
            }
            let seconds = load(&counters.micros) as f64 / 1e6;
            let _ = writeln!(text, "{name}_sum{{api=\"{api}\"}} {seconds}\n{name}_count{{api=\"{api}\"}} {so_far}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Traffic {
        fn record(&self, path: &str, status: u16, took: Duration) {
            self.note(self.api_of(path), status, took);
        }
    }

    #[test]
    fn requests_in_flight_are_neither_answered_nor_abandoned() {
        let traffic = Traffic::default();
        let (answered, abandoned) = (traffic.begin("/rest/v1/a"), traffic.begin("/rest/v1/b"));
        assert!(traffic.as_text().contains("in_flight{api=\"rest\"} 2"));
        answered.answered(503);
        drop(abandoned);
        let text = traffic.as_text();
        assert!(text.contains("in_flight{api=\"rest\"} 0"), "{text}");
        assert!(text.contains("refusals_total{api=\"rest\",status=\"503\"} 1"), "{text}");
        assert!(text.contains("duration_seconds_count{api=\"rest\"} 1"), "{text}");
    }

    #[test]
    fn answers_are_counted_by_api_status_and_time() {
        let traffic = Traffic::default();
        traffic.record("/rest/v1/todos", 200, Duration::from_millis(2));
        traffic.record("/rest/v1", 404, Duration::from_secs(9));
        traffic.record("/auth", 200, Duration::ZERO);
        let text = traffic.as_text();
        for line in [
            "ferrobase_http_requests_total{api=\"rest\",status=\"2xx\"} 1",
            "ferrobase_http_requests_total{api=\"rest\",status=\"4xx\"} 1",
            "ferrobase_http_requests_total{api=\"auth\",status=\"2xx\"} 0",
            "ferrobase_http_requests_total{api=\"web\",status=\"2xx\"} 1",
            "ferrobase_http_request_duration_seconds_bucket{api=\"rest\",le=\"0.001\"} 0",
            "ferrobase_http_request_duration_seconds_bucket{api=\"rest\",le=\"0.0025\"} 1",
            "ferrobase_http_request_duration_seconds_bucket{api=\"rest\",le=\"+Inf\"} 2",
            "ferrobase_http_request_duration_seconds_sum{api=\"rest\"} 9.002",
            "ferrobase_http_request_duration_seconds_count{api=\"rest\"} 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn an_api_alone_is_counted_under_its_name_wherever_it_is_mounted() {
        let traffic = Traffic::of("auth");
        traffic.record("/token", 500, Duration::ZERO);
        assert!(traffic.as_text().contains("{api=\"auth\",status=\"5xx\"} 1"));
    }
}
