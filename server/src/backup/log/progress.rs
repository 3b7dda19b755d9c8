//! How far the WAL of a cluster was archived at most, in a file of the cluster itself.
//!
//! The file is part of every copy of the cluster. If the cluster is replaced by an earlier copy, pieces that were written since
//! reach further than the file of the copy says, and so they belong to another history.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::owner;

/// Name of the file in PostgreSQL's data folder.
pub const FILE: &str = "ferrobase-log-progress";
/// Only the beginning of a longer file is read.
const LENGTH: u64 = 200;

/// No piece of this cluster reaches further than `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub chain: String,
    /// Position in the WAL, in bytes.
    pub end: u64,
}

impl Progress {
    /// Reads what the cluster `db` says; `None` if it says nothing, for instance because an earlier version archived its WAL.
    pub fn read(db: &Path) -> Option<Self> {
        let mut text = String::new();
        File::open(db.join(FILE)).and_then(|file| file.take(LENGTH).read_to_string(&mut text)).ok()?;
        let (chain, end) = text.trim().split_once(' ')?;
        Some(Self { chain: chain.to_owned(), end: u64::from_str_radix(end, 16).ok()? })
    }

    /// Writes it to the disk. Called before a piece is written, so that no piece of this cluster is ever beyond it.
    pub fn write(&self, db: &Path) -> io::Result<()> {
        let path = db.join(FILE);
        let text = format!("{} {:016X}\n", self.chain, self.end);
        // In place, which takes no more room: on a full disk, archiving must go on so that PostgreSQL can remove WAL.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = options.open(&path)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)?;
        owner::hand_over(&path)?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_back() {
        let db = tempfile::tempdir().expect("a folder");
        assert_eq!(Progress::read(db.path()), None);
        for (chain, end) in [("0a1b", 0x16B_3748), ("0a1b", 0x1_016B_3748), ("c", 0)] {
            let progress = Progress { chain: chain.to_owned(), end };
            progress.write(db.path()).expect("written");
            assert_eq!(Progress::read(db.path()), Some(progress));
        }
        std::fs::write(db.path().join(FILE), "torn").expect("a file");
        assert_eq!(Progress::read(db.path()), None);
    }
}
