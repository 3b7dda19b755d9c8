//! Figures for `/metrics`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Kinds of messages.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Broadcast,
    Presence,
    Change,
}

/// Counters since the start, and current values.
#[derive(Default)]
pub struct Metrics {
    pub sockets: AtomicI64,
    pub channels: AtomicI64,
    pub joins: AtomicU64,
    pub joins_refused: AtomicU64,
    pub messages_in: AtomicU64,
    /// By kind, and whether the channel is private.
    delivered: [[AtomicU64; 2]; 3],
    pub changes: AtomicU64,
    pub broadcasts_from_database: AtomicU64,
    pub broadcasts_stored: AtomicU64,
    /// Broadcasts that should have been stored but were not, for lack of room or because the database refused them.
    pub broadcasts_not_stored: AtomicU64,
    pub slow_readers: AtomicU64,
    pub too_large: AtomicU64,
    pub rate_limited: AtomicU64,
    pub malformed: AtomicU64,
    pub unauthorized: AtomicU64,
    pub stream_lost: AtomicU64,
    /// 1 while the replication stream runs.
    pub stream_up: AtomicU64,
    /// Bytes of log not read yet, as of the last message.
    pub lag_bytes: AtomicU64,
    /// 1 while NATS is connected, where it is used.
    pub bus_up: AtomicU64,
    /// Messages that other instances did not get, or that could not be read from them.
    pub lost_between_instances: AtomicU64,
    /// Round trips to the database to check who may see changes.
    pub visibility_trips: AtomicU64,
}

impl Metrics {
    pub fn sent(&self, kind: Kind, private: bool, count: usize) {
        self.delivered[kind as usize][usize::from(private)].fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Prometheus' text format.
    pub fn as_text(&self) -> String {
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, help: &str, values: &[(&str, i64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP ferrobase_realtime_{name} {help}\n# TYPE ferrobase_realtime_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "ferrobase_realtime_{name}{labels} {value}");
            }
        };
        let load = |counter: &AtomicU64| i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        put("sockets", "gauge", "Open sockets", &[("", self.sockets.load(Ordering::Relaxed))]);
        put("channels", "gauge", "Joined channels", &[("", self.channels.load(Ordering::Relaxed))]);
        put(
            "joins_total",
            "counter",
            "Joins answered",
            &[("{outcome=\"ok\"}", load(&self.joins)), ("{outcome=\"refused\"}", load(&self.joins_refused))],
        );
        put(
            "messages_total",
            "counter",
            "Messages from and to clients",
            &[
                ("{way=\"in\"}", load(&self.messages_in)),
                ("{way=\"out\"}", self.delivered.iter().flatten().map(load).sum()),
            ],
        );
        let [broadcasts, presences, changes] = self.delivered.each_ref().map(|both| both.each_ref().map(load));
        put(
            "deliveries_total",
            "counter",
            "Messages to clients, by what they are and by the class of their channel",
            &[
                ("{kind=\"broadcast\",channel=\"public\"}", broadcasts[0]),
                ("{kind=\"broadcast\",channel=\"private\"}", broadcasts[1]),
                ("{kind=\"presence\",channel=\"public\"}", presences[0]),
                ("{kind=\"presence\",channel=\"private\"}", presences[1]),
                ("{kind=\"change\",channel=\"public\"}", changes[0]),
                ("{kind=\"change\",channel=\"private\"}", changes[1]),
            ],
        );
        put("changes_total", "counter", "Changed rows read from the stream", &[("", load(&self.changes))]);
        put(
            "database_broadcasts_total",
            "counter",
            "Broadcasts that the database sent",
            &[("", load(&self.broadcasts_from_database))],
        );
        put(
            "stored_broadcasts_total",
            "counter",
            "Broadcasts of clients that were to be stored",
            &[
                ("{outcome=\"ok\"}", load(&self.broadcasts_stored)),
                ("{outcome=\"failed\"}", load(&self.broadcasts_not_stored)),
            ],
        );
        put(
            "drops_total",
            "counter",
            "What was not delivered, by reason",
            &[
                ("{reason=\"slow_reader\"}", load(&self.slow_readers)),
                ("{reason=\"too_large\"}", load(&self.too_large)),
                ("{reason=\"rate_limit\"}", load(&self.rate_limited)),
                ("{reason=\"malformed\"}", load(&self.malformed)),
                ("{reason=\"unauthorized\"}", load(&self.unauthorized)),
                ("{reason=\"between_instances\"}", load(&self.lost_between_instances)),
            ],
        );
        put("bus_up", "gauge", "Whether NATS is connected", &[("", load(&self.bus_up))]);
        put("stream_up", "gauge", "Whether the replication stream runs", &[("", load(&self.stream_up))]);
        put("stream_lost_total", "counter", "Times the stream was lost", &[("", load(&self.stream_lost))]);
        put("stream_lag_bytes", "gauge", "Log not read yet, bytes", &[("", load(&self.lag_bytes))]);
        put(
            "visibility_round_trips_total",
            "counter",
            "Round trips to ask who may see changes",
            &[("", load(&self.visibility_trips))],
        );
        text
    }
}
