//! Access to PostgreSQL: pools, and transactions that already carry the caller's role and claims.

mod cancel;
mod causes;
mod client;
mod exclusive;
mod lease;
pub(crate) mod limits;
mod line;
mod open;
pub mod overload;
mod pool;
mod pulse;
pub mod replaced;
pub mod replica;
pub mod slow;
mod socket;
mod statement;
mod stream;
mod tls;
mod transaction;
mod unit;
mod wire;

pub use cancel::cancel_all;
pub use causes::with_causes;
pub use client::{Client, Value};
pub use exclusive::{Asker, ExclusiveOptions, ExclusivePool, PoolFigures};
pub use lease::Lease;
pub use open::{Connection, OpenError, connect, connect_client};
pub use pool::{DbError, Pool, PoolOptions, RETRY_AFTER, RETRY_AFTER_OVERLOAD, is_unavailable};
pub use pulse::Pulse;
pub use statement::{Ask, Statement};
pub use stream::{Piece, RowStream, StreamUnit};
pub use tls::install as install_tls;
use tls::tls;
pub use transaction::Transaction;
pub use unit::{Answers, End, OpenUnit, Param, Part, PartAnswer, Query, Step, Unit};
pub use wire::{Copied, Refusal, Replication, Row};
