//! The registry of open connections, and how to cancel their statements.
//!
//! PostgreSQL continues a statement after its client has gone. So abandoned statements are cancelled, and all are at
//! the end of the process ([`cancel_all`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tracing::Instrument as _;

use super::DbError;
use crate::http::context;

/// Asks PostgreSQL to cancel a connection's statement.
pub(super) trait Cancel: Send + Sync {
    /// Within [`limits::CANCEL`](super::limits::CANCEL). PostgreSQL does not report whether it succeeded.
    fn cancel(&self) -> BoxFuture<'_, Result<(), DbError>>;
}

/// Global, because the end of the process cancels them all. Locked only when a connection opens or closes.
static OPEN: LazyLock<Mutex<HashMap<u64, Arc<dyn Cancel>>>> = LazyLock::new(Mutex::default);

/// The entry of an open connection, removed when it is dropped.
pub(super) struct Registration {
    id: u64,
    canceller: Arc<dyn Cancel>,
    /// Whether the entry stays after the drop: the statement runs on until the cancel request is sent.
    stays: bool,
}

impl Registration {
    pub fn new(canceller: Arc<dyn Cancel>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        OPEN.lock().insert(id, canceller.clone());
        Self { id, canceller, stays: false }
    }

    /// Cancels what `connection` is doing, in the background, and closes it afterwards: a pooler no longer knows whose
    /// statement it is once its client has gone. If the runtime ends before, [`cancel_all`] does it.
    pub fn cancel(mut self, connection: impl Send + 'static) {
        self.stays = true;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let cancelled = async move {
            self.cancelled().await;
            drop(connection);
        };
        runtime.spawn(context::kept(cancelled).in_current_span());
    }
}

/// Cancels the statement of a connection that [`cancel_all`] leaves alone.
pub struct Canceller(Arc<dyn Cancel>);

impl Canceller {
    /// Within [`limits::CANCEL`](super::limits::CANCEL).
    pub async fn cancel(&self) -> Result<(), DbError> {
        self.0.cancel().await
    }
}

impl Registration {
    pub fn into_canceller(self) -> Canceller {
        Canceller(self.canceller.clone())
    }

    async fn cancelled(mut self) {
        if let Err(error) = self.canceller.cancel().await {
            tracing::warn!(%error, "an abandoned statement could not be cancelled");
        }
        self.stays = false;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.stays {
            OPEN.lock().remove(&self.id);
        }
    }
}

/// Cancels everything that is running on any connection of this process, within
/// [`limits::CANCEL`](super::limits::CANCEL). For the end of the process.
pub async fn cancel_all() {
    let open: Vec<Arc<dyn Cancel>> = OPEN.lock().drain().map(|(_, canceller)| canceller).collect();
    for outcome in join_all(open.iter().map(|canceller| canceller.cancel())).await {
        if let Err(error) = outcome {
            tracing::warn!(%error, "a running statement could not be cancelled");
        }
    }
}
