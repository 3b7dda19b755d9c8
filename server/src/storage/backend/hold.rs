//! Prevents the removal of files while backups copy them.
//!
//! A file is removed after its row. A backup takes the hold before it reads the rows, so the row of any removal that does not see
//! the hold yet is not in the backup. Files kept because of the hold have no row, and the sweep removes them later. The hold is a
//! file lock, which the kernel releases when the backup ends in any way.
//!
//! Continuous archiving keeps its hold permanently, but only on files that it has not copied yet: a restore may stop at a point
//! in time at which a file existed for only a second.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::owner;

/// The lock file of the hold. Its content does not matter.
const FILE: &str = ".backup";
/// The lock file of continuous archiving, which contains how far files were copied.
const ARCHIVING: &str = ".log";

/// Until this is dropped, no server removes a file below `root`. `None` if the folder does not exist.
///
/// Errors: `WouldBlock` until another backup, or a removal of files, has ended.
pub fn hold_removals(root: &Path) -> io::Result<Option<File>> {
    let file = match open(root, FILE) {
        // Another user has created it. A lock needs no right to write.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Some(File::open(root.join(FILE)).map_err(|_| error)?)
        }
        outcome => outcome?,
    };
    let Some(file) = file else { return Ok(None) };
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(Some(file))
}

fn open(root: &Path, name: &str) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    // The server may run as another user.
    options.read(true).write(true).create(true).truncate(false).mode(0o644);
    match options.open(root.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => {
            let file = outcome?;
            owner::hand_over(&root.join(name))?;
            Ok(Some(file))
        }
    }
}

/// Continuous archiving of the files below a folder. Until this is dropped, servers remove only copied files.
#[derive(Debug)]
pub struct Archiving {
    file: File,
    /// The WAL chain, and the time before which all files were copied for it, in seconds since 1970.
    covered: Option<(String, i64)>,
}

impl Archiving {
    /// Holds everything that an earlier process has not copied. A missing folder is created, because files will follow.
    ///
    /// Errors: another process archives them.
    pub fn begin(root: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        let mut file = open(root, ARCHIVING)?.ok_or(io::ErrorKind::NotFound)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let known =
            text.trim().split_once(' ').and_then(|(chain, covered)| Some((chain.to_owned(), covered.parse().ok()?)));
        Ok(Self { file, covered: known })
    }

    /// Continues a chain. Returns the time before which all files were copied for it; `None` for a new chain, which gets a full
    /// archive.
    pub fn go_on(&mut self, chain: &str) -> io::Result<Option<i64>> {
        match &self.covered {
            Some((known, covered)) if known == chain => Ok(Some(*covered)),
            _ => self.cover(chain, chrono::Utc::now().timestamp()).map(|()| None),
        }
    }

    /// Records that all files from before `moment`, in seconds since 1970, were copied.
    pub fn cover(&mut self, chain: &str, moment: i64) -> io::Result<()> {
        // Padded, so that a concurrent reader never sees a truncated number.
        let text = format!("{chain} {moment:020}\n");
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        self.covered = Some((chain.to_owned(), moment));
        Ok(())
    }
}

/// The files that may not be removed now.
pub(super) enum Held {
    Nothing,
    Everything,
    /// Files changed since this time, in seconds since 1970.
    Since(i64),
}

impl Held {
    pub fn of(root: &Path) -> Self {
        if is_locked(root, FILE).is_some() {
            return Self::Everything;
        }
        let Some(mut file) = is_locked(root, ARCHIVING) else { return Self::Nothing };
        let mut text = String::new();
        let covered = file.read_to_string(&mut text).ok().and_then(|_| text.trim().split_once(' ')?.1.parse().ok());
        covered.map_or(Self::Everything, Self::Since)
    }

    pub fn keeps(&self, path: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Since(moment) => std::fs::metadata(path).is_ok_and(|metadata| metadata.ctime() >= *moment),
        }
    }
}

/// The file, if a process has locked it.
fn is_locked(root: &Path, name: &str) -> Option<File> {
    let file = File::open(root.join(name)).ok()?;
    (flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archiving_keeps_only_files_that_were_not_copied() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("file");
        std::fs::write(&file, "x").expect("a file");
        let changed = std::fs::metadata(&file).expect("a file").ctime();
        let keeps = || Held::of(root.path()).keeps(&file);
        assert!(!keeps());
        let mut archiving = Archiving::begin(root.path()).expect("begun");
        assert!(keeps(), "nothing was copied yet");
        assert_eq!(archiving.go_on("a").expect("said"), None);
        archiving.cover("a", changed).expect("said");
        assert!(keeps());
        assert!(Archiving::begin(root.path()).is_err(), "one at a time");
        archiving.cover("a", changed + 1).expect("said");
        assert!(!keeps());
        let hold = hold_removals(root.path()).expect("held").expect("a folder");
        assert!(keeps(), "a backup keeps all");
        let second = hold_removals(root.path()).expect_err("one at a time");
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop((hold, archiving));
        assert!(!keeps());
        let mut again = Archiving::begin(root.path()).expect("begun");
        assert_eq!(again.go_on("a").expect("said"), Some(changed + 1));
        assert_eq!(again.go_on("b").expect("said"), None, "another chain knows nothing of it");
    }
}
