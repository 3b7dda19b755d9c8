//! The files of objects, copied after the database.
//!
//! Files are named by their version and never change. They are written before their rows, and removed after them. So each row of
//! the copied database has its file as long as none is removed until the copy is done: `hold_removals` sees to that, also
//! in a server that runs. Files that came later have no row after the restore, and the sweep removes them.

use std::path::Path;

use super::archive::Writer;
use super::error::BackupError;

/// Where the files are in the archive.
pub const FOLDER: &str = "files";

/// Copies every file below `root`, but for those that are still being written (`.new` and what else begins with a dot, apart from
/// the parts of unfinished uploads).
pub fn copy(root: &Path, into: &mut Writer) -> Result<(), BackupError> {
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
                // One that has gone had no row either.
                Ok(kind) if kind.is_file() => drop(into.file(&inside, &path)?),
                _ => {}
            }
        }
    }
    Ok(())
}
