//! The database gives way to another of the same name, as a copy of a project does between two tests.
//!
//! From [`begin`] until its end no connection is opened, and connections from before are not used again.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, watch};

static TIMES: AtomicU64 = AtomicU64::new(0);
static IS_UNDER_WAY: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));
static WORK: RwLock<()> = RwLock::const_new(());

/// How long a replacement waits for work that [`hold`]s it off.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many replacements have begun. A connection that was opened at another count leads to a former database.
pub fn times() -> u64 {
    TIMES.load(Ordering::Acquire)
}

/// The same, once no replacement is under way: for work that goes on with the database of now. Counted while one is, it would
/// be the count of neither.
pub async fn current() -> u64 {
    loop {
        over().await;
        let times = times();
        // Another may have begun in between.
        if !*IS_UNDER_WAY.borrow() {
            return times;
        }
    }
}

/// Waits for the end of a replacement that is under way.
pub async fn over() {
    // The sender lives as long as the process.
    let _ = IS_UNDER_WAY.subscribe().wait_for(|is_under_way| !is_under_way).await;
}

/// Holds off a replacement: for work in the background that takes something from the database and brings back the outcome,
/// which the next database knows nothing of.
pub async fn hold() -> RwLockReadGuard<'static, ()> {
    WORK.read().await
}

/// A replacement under way. It ends when this is dropped.
pub struct Replacement {
    _alone: Option<RwLockWriteGuard<'static, ()>>,
}

/// One at a time.
pub async fn begin() -> Replacement {
    let alone = tokio::time::timeout(PATIENCE, WORK.write()).await.ok();
    IS_UNDER_WAY.send_replace(true);
    TIMES.fetch_add(1, Ordering::AcqRel);
    Replacement { _alone: alone }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        IS_UNDER_WAY.send_replace(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_database_of_now_is_known_once_a_replacement_is_over() {
        let before = current().await;
        let replacement = begin().await;
        let mut counting = Box::pin(current());
        assert!(futures_util::poll!(&mut counting).is_pending());
        drop(replacement);
        assert!(counting.await > before);
    }
}
