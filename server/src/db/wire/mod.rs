//! PostgreSQL's wire protocol for connections that one request holds exclusively.
//!
//! A whole transaction is written at once and ends with one `Sync`. The request's own task reads the answers, so there is no extra
//! task per connection. tokio-postgres does encryption and login ([`super::open`]); this module does the rest.
//! Reference: PostgreSQL's documentation, "Frontend/Backend Protocol", "Extended Query" and "Pipelining".

mod connection;
#[cfg(test)]
mod properties;
mod refusal;
mod replication;
mod row;
mod statements;

pub(super) use connection::{Answer, Backend, Exchange, Wire};
pub use refusal::Refusal;
pub use replication::{Copied, Replication};
pub use row::Row;
use statements::{Prepared, Statements, Use};
