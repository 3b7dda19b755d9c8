//! Keeping removals off while a backup copies the files.
//!
//! A file is removed after its row. The backup takes the hold before it reads the rows, so a removal that does not see the hold
//! yet is one whose row is not in the backup. What is not removed now has no row, and the sweep removes it later. The kernel
//! lets go of the hold when the backup ends, however that happens.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// The hold's file; it says nothing while nobody has locked it.
const FILE: &str = ".backup";

/// Until this is dropped, no server removes a file below `root`. Waits for a backup that has begun before.
///
/// `None` where there is no such folder.
pub fn hold_removals(root: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    // The server may run as somebody else.
    options.write(true).create(true).truncate(false).mode(0o644);
    let file = match options.open(root.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome?,
    };
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(Some(file))
}

/// Whether somebody holds removals.
pub(super) fn are_held(root: &Path) -> bool {
    let Ok(file) = File::open(root.join(FILE)) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}
