//! All time limits of this module.

use std::time::Duration;

/// To open a connection to one host: TCP, TLS, login and the session's first statements. `connect_timeout` in the
/// URL overrides it.
pub const OPEN: Duration = Duration::from_secs(5);

/// To wait for a free connection of a pool, unless the pool's options differ.
pub const ACQUIRE: Duration = Duration::from_secs(10);

/// To send a cancel request, connecting included, or to roll back what a lease left behind.
pub const CANCEL: Duration = Duration::from_secs(3);

/// Silence on a connection that awaits an answer, after which [`Pulse`](super::Pulse) checks whether PostgreSQL answers
/// at all. The next check follows after at most the same time.
pub const SILENCE: Duration = Duration::from_secs(3);

/// To wait for the answer to that check.
pub const PULSE: Duration = Duration::from_secs(2);

/// How long its result is reused.
pub const PULSE_AGE: Duration = Duration::from_millis(500);

/// How long a pooler's login counts that ended while nobody asked: a slow one takes longer than a caller waits.
pub const LOGIN_AGE: Duration = Duration::from_secs(10);

/// How long no connection is opened after PostgreSQL was found silent.
pub const DOWN: Duration = Duration::from_secs(1);

/// How often a connection that only listens asks whether PostgreSQL still answers on it, and how long the answer may take.
pub const LISTENER_ASKS: Duration = Duration::from_secs(10);
pub const LISTENER_ANSWER: Duration = Duration::from_secs(5);

/// Silence on an idle connection after which TCP asks whether the other machine still answers, how often it repeats
/// that, and how many probes may stay without an answer. The connection string may override all three.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub const KEEPALIVE_RETRIES: u32 = 3;

/// How long sent bytes may stay without an acknowledgement (Linux only): by `TCP_USER_TIMEOUT` on connections without a
/// [`Pulse`](super::Pulse), by the watch on others. `tcp_user_timeout` in the URL overrides it.
pub const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
