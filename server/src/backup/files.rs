//! The files of objects, copied after the database.
//!
//! Files are named by their version and never change. A file is written before its row and removed after it. So each row in the
//! copied database has its file, as long as no file is removed before the copy is complete; `hold_removals` ensures that, also in
//! a running server. Files that were added later have no row after the restore, and the sweep removes them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::archive::Writer;
use super::error::BackupError;

/// Path of the files in the archive.
pub const FOLDER: &str = "files";

/// Copies every file below `root`, except entries that begin with a dot, such as files being written (`.new`). The parts of
/// unfinished uploads (`.parts`) are included. With `since`, older files are left out.
pub fn copy(root: &Path, since: Option<DateTime<Utc>>, into: &mut Writer) -> Result<(), BackupError> {
    let mut folders = vec![(root.to_owned(), FOLDER.to_owned())];
    while let Some((folder, inside)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(BackupError::io("cannot read", folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(BackupError::io("cannot read", &folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if folder == root && name.starts_with('.') && name != ".parts" {
                continue;
            }
            let (path, inside) = (entry.path(), format!("{inside}/{name}"));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push((path, inside)),
                Ok(kind) if kind.is_file() && is_older(&entry, since) => {}
                // A removed file had no row any more.
                Ok(kind) if kind.is_file() => drop(into.file(&inside, &path)?),
                _ => {}
            }
        }
    }
    Ok(())
}

/// How far the clocks of disk and system may differ, in seconds. Copying a file twice is harmless.
const MARGIN: i64 = 60;

fn is_older(entry: &std::fs::DirEntry, since: Option<DateTime<Utc>>) -> bool {
    let Some(since) = since else { return false };
    // Renaming a file into its place updates this time.
    entry.metadata().is_ok_and(|metadata| metadata.ctime() < since.timestamp() - MARGIN)
}
