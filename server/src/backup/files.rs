//! The files of objects, copied after the database.
//!
//! Files are named by their version and never change. A file is written before its row and removed after it. So each row in the
//! copied database has its file, as long as no file is removed before the copy is complete; `hold_removals` ensures that, also in
//! a running server. Files that were added later have no row after the restore, and the sweep removes them.

use std::collections::HashSet;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::archive::Writer;
use super::error::BackupError;

/// Path of the files in the archive.
pub const FOLDER: &str = "files";

/// The files that an archive and its parents hold. Hashes of names, because the names themselves would take too much room.
///
/// Times of change would not do: the clock may have been set back since the parent was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(HashSet<u64>);

impl Names {
    fn hash(name: &str) -> u64 {
        let digest: [u8; 32] = Sha256::digest(name).into();
        digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// Parses what [`Self::to_bytes`] has written.
    pub fn parse(bytes: &[u8]) -> Self {
        Self(bytes.as_chunks().0.iter().map(|hash| u64::from_be_bytes(*hash)).collect())
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|hash| hash.to_be_bytes()).collect()
    }
}

/// Copies every file below `root`, except entries that begin with a dot, such as files being written (`.new`). The parts of
/// unfinished uploads (`.parts`) are included. With `known`, the files that the parents hold are left out; it returns those that
/// are now held, which is of use to the next archive only.
pub fn copy(root: &Path, known: Option<&Names>, into: &mut Writer) -> Result<Names, BackupError> {
    let mut held = Names::default();
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
                Ok(kind) if kind.is_file() => {
                    let hash = Names::hash(&inside);
                    let is_held = known.is_some_and(|known| known.0.contains(&hash));
                    // A removed file had no row any more.
                    if (is_held || into.file(&inside, &path)?) && known.is_some() {
                        held.0.insert(hash);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::age::Identity;
    use crate::backup::backup_store::Sink;
    use crate::backup::stop_flag::StopFlag;

    /// A clock that was set back after the parent was made gave new files times from before it, and no archive had them.
    #[test]
    fn an_incremental_archive_has_the_files_that_its_parents_lack_whatever_their_times() {
        let root = tempfile::tempdir().expect("a folder");
        let files = root.path().join("storage");
        let recipient = Identity::generate().expect("a key").recipient();
        let put = |name: &str| {
            let path = files.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, name).expect("a file");
        };
        let archive = |known: Option<&Names>| {
            let sink = Sink::file(&root.path().join("archive")).expect("a sink");
            let mut writer =
                Writer::create(sink, "archive", std::slice::from_ref(&recipient), &StopFlag::default()).expect("begun");
            let held = copy(&files, known, &mut writer).expect("copied");
            (writer.manifest().entries.keys().cloned().collect::<Vec<_>>(), held)
        };
        put("b/letter/1");
        put(".parts/u/1");
        put(".new/2");
        assert_eq!(
            archive(None),
            (vec!["files/.parts/u/1".to_owned(), "files/b/letter/1".to_owned()], Names::default())
        );
        let (full, held) = archive(Some(&Names::default()));
        assert_eq!(full, ["files/.parts/u/1", "files/b/letter/1"]);
        let held = Names::parse(&held.to_bytes());
        put("b/letter/2");
        put(".parts/u/2");
        let (second, held) = archive(Some(&held));
        assert_eq!(second, ["files/.parts/u/2", "files/b/letter/2"]);
        std::fs::remove_file(files.join("b/letter/1")).expect("removed");
        let (third, held) = archive(Some(&held));
        assert_eq!(third, [""; 0]);
        put("b/letter/1");
        assert_eq!(archive(Some(&held)).0, ["files/b/letter/1"], "not known any more");
    }
}
