//! Room on the database's disk while it is backed up.
//!
//! The database keeps its WAL until that is copied. A destination that hangs, such as a network folder, would fill the disk with it and stop
//! the database, so the backup gives up before. `max_slot_wal_keep_size` would also end the slots of others.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use super::error::BackupError;

/// A backup gives up when less is free, or less than half of what was free when it began.
const LEAST: u64 = 128 << 20;
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Does `work` as long as the disk of the cluster `db` has room. Dropping the work ends its connection, and so its slot.
pub async fn kept<T>(db: &Path, work: impl Future<Output = Result<T, BackupError>>) -> Result<T, BackupError> {
    kept_by(db, work, LOOK_AGAIN, || free(db)).await
}

async fn kept_by<T>(
    db: &Path,
    work: impl Future<Output = Result<T, BackupError>>,
    every: Duration,
    free: impl Fn() -> Option<u64>,
) -> Result<T, BackupError> {
    let least = free().map_or(0, |free| LEAST.min(free / 2));
    let mut work = pin!(work);
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
            () = tokio::time::sleep(every) => {}
        }
        if let Some(free) = free().filter(|free| *free < least) {
            return Err(BackupError::NoRoom { dir: db.to_owned(), free_mib: free >> 20 });
        }
    }
}

fn free(db: &Path) -> Option<u64> {
    rustix::fs::statvfs(db).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_backup_gives_up_before_the_disk_of_the_database_is_full() {
        let slow = async |millis: u64| {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok(())
        };
        let often = Duration::from_millis(1);
        for at_first in [100_u64 << 30, 1 << 20] {
            // Each look finds an eighth less than the one before.
            let left = Cell::new(at_first);
            let free = || {
                let now = left.get();
                left.set(now - now / 8);
                Some(now)
            };
            let outcome = kept_by(Path::new("/db"), slow(60_000), often, free).await;
            assert!(matches!(outcome, Err(BackupError::NoRoom { .. })), "{at_first}: {outcome:?}");
            assert!(left.get() > at_first.min(LEAST) / 4, "{at_first}: {} are left", left.get());
        }
        // Little room alone is no reason.
        for constant in [None, Some(0), Some(1 << 20), Some(100 << 30)] {
            assert!(kept_by(Path::new("/db"), slow(20), often, || constant).await.is_ok(), "{constant:?}");
        }
        assert!(kept(Path::new("/nowhere"), slow(1)).await.is_ok());
    }
}
