//! Which archives stay.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::archive::SUFFIX;
use super::error::BackupError;

/// Removes archives of a folder but for the newest `keep`, and but for `proved`, the last one that is known to be good. Files with
/// other names stay. Yields what was removed.
pub fn keep_newest(folder: &Path, keep: NonZeroUsize, proved: Option<&Path>) -> Result<Vec<PathBuf>, BackupError> {
    let entries = std::fs::read_dir(folder).map_err(BackupError::io("cannot read", folder))?;
    let mut archives: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_archive(path)).collect();
    archives.sort();
    let old = archives.len().saturating_sub(keep.get());
    archives.truncate(old);
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    archives.retain(|path| proved.is_none_or(|proved| absolute(path) != absolute(proved)));
    for path in &archives {
        std::fs::remove_file(path).map_err(BackupError::io("cannot remove", path))?;
    }
    Ok(archives)
}

/// Whether a file has a name that we give. Sorted by name they are sorted by time.
fn is_archive(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let time = name.strip_prefix("ferrobase-").and_then(|name| name.strip_suffix(SUFFIX));
    time.is_some_and(|time| {
        time.len() == 19
            && time.bytes().enumerate().all(|(at, byte)| match at {
                8 => byte == b'T',
                18 => byte == b'Z',
                _ => byte.is_ascii_digit(),
            })
    })
}

#[cfg(test)]
mod tests {
    use chrono::{TimeZone, Utc};

    use super::*;
    use crate::backup::archive_name;

    #[test]
    fn the_newest_stay_and_the_proved_one_and_what_is_not_ours() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |day| archive_name(Utc.with_ymd_and_hms(2026, 3, day, 4, 5, 6).single().expect("a time"));
        let mut names: Vec<String> = (1..=5).map(name).collect();
        names.extend(["ferrobase-mine.tar.gz.age".to_owned(), format!("{}.partial", name(6)), "notes.txt".to_owned()]);
        for name in &names {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let proved = folder.path().join(name(2));
        let keep = |keep: usize| {
            let keep = NonZeroUsize::new(keep).expect("not zero");
            let removed = keep_newest(folder.path(), keep, Some(&proved)).expect("removed");
            removed
                .iter()
                .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(keep(9), [""; 0]);
        assert_eq!(keep(2), [name(1), name(3)]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 6);
    }
}
