//! Which connections are open, and how to cancel what they are doing.
//!
//! PostgreSQL goes on with a statement when its client is gone. So a statement that nobody waits for is cancelled, and
//! at the end of the process ([`cancel_all`]) all are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tracing::Instrument as _;

use super::DbError;
use crate::http::context;

/// Asks PostgreSQL to give up what a connection is doing.
pub(super) trait Cancel: Send + Sync {
    /// Within [`limits::CANCEL`](super::limits::CANCEL). PostgreSQL does not say whether it helped.
    fn cancel(&self) -> BoxFuture<'_, Result<(), DbError>>;
}

/// The process's, since it is its end that asks for all of them. Touched when a connection opens and when it ends.
static OPEN: LazyLock<Mutex<HashMap<u64, Arc<dyn Cancel>>>> = LazyLock::new(Mutex::default);

/// An open connection's entry; goes with it.
pub(super) struct Registration {
    id: u64,
    canceller: Arc<dyn Cancel>,
    /// Not to be forgotten yet: its statement goes on until the cancel request was sent.
    stays: bool,
}

impl Registration {
    pub fn new(canceller: Arc<dyn Cancel>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        OPEN.lock().insert(id, canceller.clone());
        Self { id, canceller, stays: false }
    }

    /// Cancels what the connection is doing, in the background. If the runtime ends before, [`cancel_all`] does it.
    pub fn cancel(mut self) {
        self.stays = true;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(context::kept(self.cancelled()).in_current_span());
    }
}

impl Registration {
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
