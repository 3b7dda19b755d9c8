//! Replacing the database by another of the same name, as between two tests on copies of a project.
//!
//! From [`begin`] until its end no connection is opened, and earlier connections are not used again.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, watch};

static TIMES: AtomicU64 = AtomicU64::new(0);
static IS_UNDER_WAY: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));
static WORK: RwLock<()> = RwLock::const_new(());

/// How long a replacement waits for work that blocks it with [`hold`].
const HOLD_TIMEOUT: Duration = Duration::from_secs(1);

/// How many replacements have begun. A connection opened at another count belongs to a former database.
pub fn times() -> u64 {
    TIMES.load(Ordering::Acquire)
}

/// The same, after waiting for a replacement in progress. For work that continues with the current database; during a
/// replacement the count would match neither.
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

/// Waits for the end of a replacement in progress.
pub async fn over() {
    // The sender lives as long as the process.
    let _ = IS_UNDER_WAY.subscribe().wait_for(|is_under_way| !is_under_way).await;
}

/// Blocks replacements. For background work that takes a job from the database and writes back the outcome, which would
/// make no sense in the next database.
pub async fn hold() -> RwLockReadGuard<'static, ()> {
    WORK.read().await
}

/// A replacement in progress. It ends when this is dropped.
pub struct Replacement {
    _alone: Option<RwLockWriteGuard<'static, ()>>,
}

/// One at a time.
pub async fn begin() -> Replacement {
    let alone = tokio::time::timeout(HOLD_TIMEOUT, WORK.write()).await.ok();
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
    async fn the_current_database_is_known_once_a_replacement_is_complete() {
        let before = current().await;
        let replacement = begin().await;
        let mut counting = Box::pin(current());
        assert!(futures_util::poll!(&mut counting).is_pending());
        drop(replacement);
        assert!(counting.await > before);
    }
}
