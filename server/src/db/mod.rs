//! The one door to PostgreSQL: pools, and transactions that already carry who acts.

mod pool;

pub use pool::{DbError, Pool, PoolOptions};
