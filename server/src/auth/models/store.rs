//! The auth API's access to the database: statements on a leased connection, single or in a transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_postgres::Row;

use crate::auth::error::{AuthResult, Code, Fault};
use crate::auth::models::action::Action;
use crate::auth::models::slot::Slot;
use crate::auth::outside::Memory;
use crate::db::{DbError, Lease, Pool, PoolOptions, Statement, Value};

/// The API's statements find a few rows by an index. For a table that was never analyzed, such as an empty `mfa_factors`, the
/// planner expects more rows and builds a bitmap, which takes longer than reading the rows.
const NO_BITMAPS: &str = "set enable_bitmapscan = off";

/// A pool of connections to `url`, which logs in as `supabase_auth_admin`.
pub fn pool(url: &str, options: PoolOptions) -> Result<Pool, DbError> {
    let application_name = "ferrobase auth".to_owned();
    Pool::new(url, &PoolOptions { application_name, prelude: Some(NO_BITMAPS), ..options })
}

/// A statement's parameter.
pub type Param<'a> = Value<'a>;

/// Runs a request's statements on a connection that no other request uses. Statements are prepared once per connection.
/// Statements awaited together take one round trip.
///
/// The connection goes back to the pool while the request calls another service. The next statement leases one again.
pub struct Db {
    slot: Arc<Slot>,
    /// The request's calls to other services.
    memory: Arc<Memory>,
    /// Whether the last statement of the open transaction has already committed it.
    committed: AtomicBool,
    /// Whether the open transaction is a repeat, after another service has answered.
    is_repeated: AtomicBool,
    /// Actions of the open transaction, logged once it is committed.
    actions: Mutex<Vec<Action>>,
}

/// How often a transaction may run again for answers from other services. Leaves room for every call of a flow, and for calls
/// that are repeated because what they depend on has changed.
const ATTEMPTS: usize = 10;

impl Db {
    /// For work that calls no other service.
    pub async fn acquire(pool: &Pool) -> AuthResult<Self> {
        Self::acquire_for(pool, Arc::default()).await
    }

    /// For a request. `memory` keeps the answers of other services across repeats.
    pub async fn acquire_for(pool: &Pool, memory: Arc<Memory>) -> AuthResult<Self> {
        let slot = Slot::new(pool.clone());
        slot.lease().await?;
        let slot = Arc::new(slot);
        memory.watch(&slot);
        Ok(Self {
            slot,
            memory,
            committed: AtomicBool::new(false),
            is_repeated: AtomicBool::new(false),
            actions: Mutex::default(),
        })
    }

    async fn prepared(&self, sql: &str) -> Result<(Arc<Lease>, Statement), Fault> {
        let lease = self.slot.lease().await?;
        let statement = lease.prepare_cached(sql).await?;
        Ok((lease, statement))
    }

    pub async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        let (lease, statement) = self.prepared(sql).await?;
        Ok(lease.query(&statement, params).await?)
    }

    pub async fn query_opt(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Fault> {
        let (lease, statement) = self.prepared(sql).await?;
        Ok(lease.query_opt(&statement, params).await?)
    }

    pub async fn query_one(&self, sql: &str, params: &[Param<'_>]) -> Result<Row, Fault> {
        let (lease, statement) = self.prepared(sql).await?;
        Ok(lease.query_one(&statement, params).await?)
    }

    /// Runs a statement and returns the number of affected rows.
    pub async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
        let (lease, statement) = self.prepared(sql).await?;
        Ok(lease.execute(&statement, params).await?)
    }

    /// Runs statements without parameters.
    pub async fn batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.slot.lease().await?.batch_execute(sql).await?)
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.slot.in_transaction()
    }

    /// Whether the open transaction is a repeat after a call to another service. What was read before the call may be stale.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated.load(Ordering::Relaxed)
    }

    /// Logs an action. Inside a transaction it is logged after the commit.
    pub fn note(&self, action: Action) {
        if self.in_transaction() {
            self.actions.lock().push(action);
        } else {
            action.log();
        }
    }

    /// Runs the last statement of a transaction and commits, in one round trip. If the statement fails, the transaction has failed
    /// too, and the commit that follows rolls it back.
    pub async fn execute_and_commit(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
        if self.memory.is_pending() {
            return Err(Fault::new("an answer from the outside is awaited"));
        }
        let (lease, statement) = self.prepared(sql).await?;
        // `join!` polls in this order, so they are written in this order.
        let (done, committed) = futures_util::join!(lease.execute(&statement, params), lease.batch_execute("commit"));
        self.committed.store(true, Ordering::Relaxed);
        let touched = done?;
        committed?;
        Ok(touched)
    }

    /// Runs `work` in a transaction: commits if it succeeds, rolls back if it fails. If the request is dropped in the middle, the
    /// running statement is cancelled, the connection is closed and PostgreSQL rolls back.
    ///
    /// If `work` calls another service, the transaction is rolled back and its connection returned. `work` runs again once the
    /// answer is there.
    ///
    /// `begin` is sent together with the first statement of `work`. `work` may end with [`Db::execute_and_commit`], which also
    /// ends the transaction.
    pub async fn transaction<T>(&self, work: impl AsyncFn(&Db) -> AuthResult<T>) -> AuthResult<T> {
        for attempt in 0..ATTEMPTS {
            self.is_repeated.store(attempt > 0, Ordering::Relaxed);
            let outcome = Box::pin(self.attempt(&work)).await;
            let actions = std::mem::take(&mut *self.actions.lock());
            let Some(pending) = self.memory.take_pending() else {
                if outcome.is_ok() {
                    actions.into_iter().for_each(Action::log);
                }
                return outcome;
            };
            if !self.memory.give_back() {
                return Err(Fault::new("a call to the outside in a transaction").into());
            }
            self.memory.settle(pending).await;
        }
        Err(Fault::new("what a transaction asks the outside changes with every attempt").into())
    }

    /// Like [`Db::transaction`], but runs `work` once more if another request has stored the same address or identity
    /// meanwhile, which `work` then finds.
    pub async fn transaction_beside_others<T>(&self, work: impl AsyncFn(&Db) -> AuthResult<T>) -> AuthResult<T> {
        match self.transaction(&work).await {
            Err(error) if error.is_unique_violation() || error.code() == Some(Code::EmailExists) => {
                self.transaction(&work).await
            }
            outcome => outcome,
        }
    }

    async fn attempt<T>(&self, work: &impl AsyncFn(&Db) -> AuthResult<T>) -> AuthResult<T> {
        let lease = self.slot.lease().await?;
        self.committed.store(false, Ordering::Relaxed);
        let (begun, result) = futures_util::join!(lease.batch_execute("begin"), work(self));
        let result = match begun {
            Ok(()) => result,
            Err(error) => Err(Fault::from(error).into()),
        };
        let ended = if self.committed.load(Ordering::Relaxed) {
            Ok(())
        } else {
            let is_kept = result.is_ok() && !self.memory.is_pending();
            lease.batch_execute(if is_kept { "commit" } else { "rollback" }).await
        };
        match (result, ended) {
            (Ok(value), Ok(())) => Ok(value),
            (Ok(_), Err(error)) => Err(Fault::from(error).into()),
            (Err(error), _) => Err(error),
        }
    }
}
