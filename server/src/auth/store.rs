//! The API's door to the database: statements on one connection, alone or in a transaction.

use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::{AuthResult, Fault};
use crate::db::{DbError, Pool, PoolOptions};

/// The API's statements find a few rows by an index. Of a table that was never analyzed (who has no second factors has an
/// empty one) the planner expects more and begins with a bitmap, which takes longer to set up than the rows to read.
const NO_BITMAPS: &str = "set enable_bitmapscan = off";

/// Connections of the API to the database at `url`, which logs in as `supabase_auth_admin`; `size` at most.
pub fn pool(url: &str, size: usize) -> Result<Pool, DbError> {
    Pool::new(
        url,
        &PoolOptions {
            size,
            application_name: "ferrobase auth".to_owned(),
            prelude: Some(NO_BITMAPS),
            ..PoolOptions::default()
        },
    )
}

/// A statement's parameter.
pub type Param<'a> = &'a (dyn ToSql + Sync);

/// A connection that nobody else uses meanwhile. Statements are prepared once per connection; those that are
/// awaited together travel in one round trip.
pub struct Db {
    client: Object,
    in_transaction: AtomicBool,
    /// The open transaction was committed by its last statement.
    committed: AtomicBool,
}

impl Db {
    pub async fn acquire(pool: &Pool) -> AuthResult<Self> {
        Ok(Self {
            client: pool.connection().await?,
            in_transaction: AtomicBool::new(false),
            committed: AtomicBool::new(false),
        })
    }

    /// Closes the connection: it may be stuck, or at work for nobody.
    pub fn discard(self) {
        drop(Object::take(self.client));
    }

    pub async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.client.prepare_cached(sql).await?;
        Ok(self.client.query(&statement, params).await?)
    }

    pub async fn query_opt(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Fault> {
        let statement = self.client.prepare_cached(sql).await?;
        Ok(self.client.query_opt(&statement, params).await?)
    }

    pub async fn query_one(&self, sql: &str, params: &[Param<'_>]) -> Result<Row, Fault> {
        let statement = self.client.prepare_cached(sql).await?;
        Ok(self.client.query_one(&statement, params).await?)
    }

    /// Runs a statement and says how many rows it touched.
    pub async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
        let statement = self.client.prepare_cached(sql).await?;
        Ok(self.client.execute(&statement, params).await?)
    }

    /// Runs statements without parameters.
    pub async fn batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Whether a transaction is open on it.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction.load(Ordering::Relaxed)
    }

    /// Runs the last statement of a transaction and commits it, both in one round trip. When the statement
    /// fails so has the transaction, and the commit sent after it rolls back.
    pub async fn execute_and_commit(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
        let statement = self.client.prepare_cached(sql).await?;
        // Polled in this order, they are written in this order.
        let (done, committed) =
            futures_util::join!(self.client.execute(&statement, params), self.client.batch_execute("commit"));
        self.committed.store(true, Ordering::Relaxed);
        let touched = done?;
        committed?;
        Ok(touched)
    }

    /// Runs `work` in a transaction: committed if it succeeds, rolled back if it fails. When the request is
    /// dropped in the middle, so is the connection, and PostgreSQL rolls back.
    ///
    /// `begin` travels with the first statement of `work`, and `work` may end with
    /// [`Db::execute_and_commit`]: then the transaction is over once that is.
    pub async fn transaction<T>(&self, work: impl AsyncFnOnce(&Db) -> AuthResult<T>) -> AuthResult<T> {
        let guard = OpenTransaction { db: self, open: true };
        self.in_transaction.store(true, Ordering::Relaxed);
        self.committed.store(false, Ordering::Relaxed);
        let (begun, result) = futures_util::join!(self.client.batch_execute("begin"), work(self));
        let result = match begun {
            Ok(()) => result,
            Err(error) => Err(Fault::from(error).into()),
        };
        let ended = if self.committed.load(Ordering::Relaxed) {
            Ok(())
        } else {
            self.batch(if result.is_ok() { "commit" } else { "rollback" }).await
        };
        self.in_transaction.store(false, Ordering::Relaxed);
        guard.close();
        match (result, ended) {
            (Ok(value), Ok(())) => Ok(value),
            (Ok(_), Err(fault)) => Err(fault.into()),
            (Err(error), _) => Err(error),
        }
    }
}

/// Marks a transaction as unfinished; if it is still so when dropped, a rollback is sent after it.
struct OpenTransaction<'a> {
    db: &'a Db,
    open: bool,
}

impl OpenTransaction<'_> {
    fn close(mut self) {
        self.open = false;
    }
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if self.open {
            // The request is written when the future is first polled; its answer is of no interest.
            let mut rollback = Box::pin(self.db.client.batch_execute("rollback"));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = rollback.as_mut().poll(&mut context);
        }
    }
}
