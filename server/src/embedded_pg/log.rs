//! PostgreSQL's own log, in a folder that PostgreSQL's user may own. As root we write there, so links are not followed.
//!
//! A client can have PostgreSQL write a line with each request, so the log is bounded while PostgreSQL runs as well.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::{EmbeddedError, NO_LINKS};
use crate::owner;

/// A log larger than this becomes `postgres.log.1`.
const MAX_BYTES: u64 = 16 << 20;
/// How often its length is looked at.
pub const LOOK: Duration = Duration::from_secs(10);
/// It may contain statements with their values.
const MODE: u32 = 0o600;

/// Opens the log to append to it; also returns its length.
pub fn open(path: &Path) -> Result<(File, u64), EmbeddedError> {
    let file = File::options()
        .create(true)
        .append(true)
        .mode(MODE)
        .custom_flags(NO_LINKS)
        .open(path)
        .map_err(EmbeddedError::io("cannot write", path))?;
    owner::hand_over(path).map_err(EmbeddedError::io("cannot hand over", path))?;
    let known = file.metadata().map_err(EmbeddedError::io("cannot read", path))?;
    // Older servers created it readable for everybody.
    if known.mode() & 0o077 != 0 {
        let closed = std::fs::Permissions::from_mode(MODE);
        file.set_permissions(closed).map_err(EmbeddedError::io("cannot close", path))?;
    }
    Ok((file, known.len()))
}

/// Renames a log that is too large; PostgreSQL must not run.
pub fn rotate(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|known| known.len() > MAX_BYTES) {
        // A failed rotation does not prevent the start.
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
}

/// Empties a log that is too large, and keeps a copy of its end. PostgreSQL appends to the same file meanwhile; what it writes between
/// the copy and the end of this is lost.
pub fn trim(path: &Path) -> io::Result<()> {
    let log = File::options().read(true).write(true).custom_flags(NO_LINKS).open(path)?;
    let length = log.metadata()?.len();
    if length <= MAX_BYTES {
        return Ok(());
    }
    let (aside, kept) = (path.with_extension("log.new"), path.with_extension("log.1"));
    // Usually there is none.
    let _ = std::fs::remove_file(&aside);
    let mut copy = File::options().write(true).create_new(true).mode(MODE).open(&aside)?;
    owner::hand_over(&aside)?;
    let mut end = &log;
    io::Seek::seek(&mut end, io::SeekFrom::Start(length - MAX_BYTES))?;
    io::copy(&mut end.take(MAX_BYTES), &mut copy)?;
    std::fs::rename(&aside, &kept)?;
    log.set_len(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_log_that_grows_is_trimmed_while_it_is_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("postgres.log");
        let (mut written, begin) = open(&path).expect("a log");
        assert_eq!(begin, 0);
        written.write_all(b"begin\n").expect("written");
        trim(&path).expect("small");
        assert_eq!(std::fs::read(&path).expect("a log"), b"begin\n");
        written.write_all(&vec![b'.'; 16 << 20]).expect("written");
        written.write_all(b"end\n").expect("written");
        trim(&path).expect("trimmed");
        written.write_all(b"next\n").expect("written");
        assert_eq!(std::fs::read(&path).expect("a log"), b"next\n");
        let kept = std::fs::read(folder.path().join("postgres.log.1")).expect("a copy");
        assert_eq!(kept.len() as u64, MAX_BYTES);
        assert!(kept.starts_with(b".") && kept.ends_with(b".end\n"));
        assert_eq!(std::fs::metadata(folder.path().join("postgres.log.1")).expect("a copy").mode() & 0o777, MODE);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("postgres.log"), folder.path().join("other"));
        std::fs::write(&other, vec![b'.'; 17 << 20]).expect("written");
        std::os::unix::fs::symlink(&other, &path).expect("linked");
        assert!(trim(&path).is_err() && open(&path).is_err());
        assert_eq!(std::fs::metadata(&other).expect("it").len(), 17 << 20);
    }
}
