//! How long PostgreSQL may keep us waiting: every limit of this room in one place.

use std::time::Duration;

/// To open a connection to one host: TCP, TLS, login and what the session begins with. `connect_timeout` in the URL
/// overrides it.
pub const OPEN: Duration = Duration::from_secs(5);

/// For a free connection of a pool, unless the pool's options say otherwise.
pub const ACQUIRE: Duration = Duration::from_secs(10);

/// To send a cancel request, connecting included, or to roll back what a lease left behind.
pub const CANCEL: Duration = Duration::from_secs(3);

/// Silence on a connection that awaits an answer before it is asked whether PostgreSQL still answers anybody. The second
/// look comes after as much again at most.
pub const SILENCE: Duration = Duration::from_secs(3);

/// For the answer to that question.
pub const PULSE: Duration = Duration::from_secs(2);

/// How long an answer to it holds, for all who ask.
pub const PULSE_AGE: Duration = Duration::from_millis(500);

/// How long nothing new is opened once PostgreSQL was found silent.
pub const DOWN: Duration = Duration::from_secs(1);
