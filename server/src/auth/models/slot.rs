//! A request's connection: leased by a statement, returned to the pool while the request calls another service.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::db::{DbError, Lease, Pool};

/// Holds the lease of a [`Db`](crate::auth::models::store::Db).
pub struct Slot {
    pool: Pool,
    lease: Mutex<Option<Arc<Lease>>>,
    leasing: tokio::sync::Mutex<()>,
}

impl Slot {
    pub fn new(pool: Pool) -> Self {
        Self { pool, lease: Mutex::default(), leasing: tokio::sync::Mutex::default() }
    }

    /// The held lease, or a new one.
    pub async fn lease(&self) -> Result<Arc<Lease>, DbError> {
        if let Some(lease) = self.lease.lock().clone() {
            return Ok(lease);
        }
        // Statements awaited together share one lease.
        let _leasing = self.leasing.lock().await;
        if let Some(lease) = self.lease.lock().clone() {
            return Ok(lease);
        }
        let lease = Arc::new(self.pool.lease().await?);
        *self.lease.lock() = Some(Arc::clone(&lease));
        Ok(lease)
    }

    pub fn in_transaction(&self) -> bool {
        self.lease.lock().as_ref().is_some_and(|lease| lease.in_transaction())
    }

    /// Returns the connection to the pool unless a transaction is open on it. True if no connection is held afterwards.
    pub fn give_back(&self) -> bool {
        let mut lease = self.lease.lock();
        let is_open = lease.as_ref().is_some_and(|lease| lease.in_transaction());
        if !is_open {
            *lease = None;
        }
        !is_open
    }
}
