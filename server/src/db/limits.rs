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

/// How long no connection is opened after PostgreSQL was found silent.
pub const DOWN: Duration = Duration::from_secs(1);
