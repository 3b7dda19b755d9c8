//! Which files of objects are archived already. Files never change, so each is copied once.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The assumed largest difference between the clocks of file system and server, in seconds. Copying a file twice is harmless.
const MARGIN: i64 = 60;

/// What is known about the files below a folder.
pub struct Known {
    root: PathBuf,
    /// Hashes of names, because the names themselves would take too much memory.
    seen: Option<HashSet<u64>>,
    hasher: RandomState,
    /// After a restart: files changed since this time count as not archived. Seconds since 1970.
    since: Option<i64>,
}

impl Known {
    /// For `root`, where everything before `since` is archived or will be part of a full archive.
    pub fn new(root: &Path, since: Option<i64>) -> Self {
        Self { root: root.to_owned(), seen: None, hasher: RandomState::new(), since }
    }

    /// Names of files that were added since the last call. From then on they count as known.
    pub fn look(&mut self) -> io::Result<Vec<String>> {
        let mut new = Vec::new();
        let mut seen = HashSet::new();
        let mut folders = vec![String::new()];
        while let Some(inside) = folders.pop() {
            let folder = self.root.join(&inside);
            let entries = match std::fs::read_dir(&folder) {
                // A folder is removed with its last file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                // Internal files, and parts of uploads that are not objects yet.
                if inside.is_empty() && name.starts_with('.') {
                    continue;
                }
                let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() => {
                        let hash = self.hasher.hash_one(&path);
                        seen.insert(hash);
                        let is_new = match &self.seen {
                            Some(known) => !known.contains(&hash),
                            None => self.since.is_some_and(|since| {
                                entry.metadata().is_ok_and(|metadata| metadata.ctime() >= since - MARGIN)
                            }),
                        };
                        if is_new {
                            new.push(path);
                        }
                    }
                    _ => {}
                }
            }
        }
        self.seen = Some(seen);
        Ok(new)
    }

    /// The next call to `look` returns these names again, because they were not archived.
    pub fn forget(&mut self, names: &[String]) {
        if let Some(seen) = &mut self.seen {
            for name in names {
                seen.remove(&self.hasher.hash_one(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_new_once_and_again_after_forget() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "x").expect("a file");
        };
        put("b/old/1");
        let mut known = Known::new(root.path(), None);
        assert_eq!(known.look().expect("a look"), [""; 0], "a full archive contains it");
        put("b/new/2");
        put(".parts/u/3");
        assert_eq!(known.look().expect("a look"), ["b/new/2"]);
        assert_eq!(known.look().expect("a look"), [""; 0]);
        known.forget(&["b/new/2".to_owned()]);
        assert_eq!(known.look().expect("a look"), ["b/new/2"]);
        // After a restart: files added since the earlier server last looked.
        let now = std::fs::metadata(root.path().join("b/new/2")).expect("a file").ctime();
        let mut later = Known::new(root.path(), Some(now));
        assert_eq!(later.look().expect("a look").len(), 2);
        assert_eq!(Known::new(root.path(), Some(now + 2 * MARGIN)).look().expect("a look"), [""; 0]);
    }
}
