//! The one door to PostgreSQL: pools, and transactions that already carry who acts.

mod pool;
mod transaction;

pub use pool::{DbError, Pool, PoolOptions};
pub use transaction::Transaction;
