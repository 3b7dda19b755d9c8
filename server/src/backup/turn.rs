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
}
