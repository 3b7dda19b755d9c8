//! PostgreSQL's protocol for connections that one request holds alone.
//!
//! A whole transaction is written at once, closed by one `Sync`, and its answers are read where they are wanted: by
//! the task of the request itself, without a task per connection in between. Encryption and login are tokio-postgres'
//! ([`connect`]); what follows is here.
//! Reference: PostgreSQL's documentation, "Frontend/Backend Protocol", "Extended Query" and "Pipelining".

mod connect;
mod connection;
mod refusal;
mod row;
mod statements;
mod stream;

pub(super) use connect::{Canceller, connect};
pub(super) use connection::{Answer, Backend, Exchange};
pub use refusal::Refusal;
pub use row::Row;
use statements::{Prepared, Statements, Use};
