//! The one door to PostgreSQL: pools, and transactions that already carry who acts.

mod causes;
mod exclusive;
mod pool;
mod stream;
mod tls;
mod transaction;
mod unit;
mod wire;

pub use causes::with_causes;
pub use exclusive::{ExclusiveOptions, ExclusivePool, PoolFigures};
pub use pool::{DbError, Pool, PoolOptions};
pub use stream::{Piece, RowStream, StreamUnit};
pub use tls::tls;
pub use transaction::Transaction;
pub use unit::{Answers, End, OpenUnit, Param, Query, Unit};
pub use wire::{Refusal, Row};
