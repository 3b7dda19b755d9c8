//! One backup of a data folder at a time.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::error::BackupError;
use super::{once_free, state};

const FILE: &str = "turn.lock";

/// While this is held, no other backup of the data folder is made: from the choice of the archive that it continues until it is recorded
/// itself and old ones are removed. Otherwise a second one that waits for the files would continue an archive that PostgreSQL no longer
/// continues, or that was removed meanwhile.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for the backup under way to end.
    pub async fn wait(data_dir: &Path) -> Result<Self, BackupError> {
        let folder = data_dir.to_owned();
        let take = move || {
            let file = state::open_lock(&folder, FILE)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Self { _lock: file })
        };
        let failed = BackupError::io("cannot lock", data_dir.join(state::FOLDER).join(FILE));
        once_free("another backup of this data folder", take).await.map_err(failed)
    }

    /// The same for a dump of an external database, which continues no other archive: a data folder in which nothing can be locked, such as
    /// a read-only one, does not prevent it.
    pub async fn wait_for_dump(data_dir: &Path) -> Option<Self> {
        let turn = Self::wait(data_dir).await;
        turn.inspect_err(|error| tracing::warn!(%error, "another dump may be made at the same time")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::HOLD_RETRY;

    #[tokio::test]
    async fn a_second_backup_waits_for_the_first_to_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Turn::wait(folder.path()).await.expect("the first");
        let second = async { tokio::time::timeout(HOLD_RETRY * 2, Turn::wait(folder.path())).await };
        assert!(second.await.is_err(), "it waits");
        drop(first);
        Turn::wait(folder.path()).await.expect("the second");
    }

    #[tokio::test]
    async fn only_a_dump_is_made_without_a_turn() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join(state::FOLDER).join(FILE)).expect("no file to lock");
        Turn::wait(folder.path()).await.expect_err("not to be locked");
        assert!(Turn::wait_for_dump(folder.path()).await.is_none());
    }

    #[tokio::test]
    async fn a_dump_waits_for_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Turn::wait_for_dump(folder.path()).await.expect("the first");
        let second = async { tokio::time::timeout(HOLD_RETRY * 2, Turn::wait_for_dump(folder.path())).await };
        assert!(second.await.is_err(), "it waits");
        drop(first);
        assert!(Turn::wait_for_dump(folder.path()).await.is_some());
    }
}
