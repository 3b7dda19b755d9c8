//! The folders of copies, below the machine's folder for temporary files. Each is held by a lock as long as anybody uses it.

use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;

use crate::cli::project::say;
use crate::embedded_pg;

const PREFIX: &str = "ferrobase-test-";
const LOCK: &str = "use.lock";
/// A folder without a lock is one that somebody is making, unless it is older.
const BEING_MADE: Duration = Duration::from_secs(3600);

/// In the environment of what is run on a copy: names its folder, so that what outlives a killed run is found.
pub const MARK: &str = "FERROBASE_TEST_FOLDER";

/// A folder in use; letting go of it does not remove it.
pub struct Folder {
    pub path: PathBuf,
    _use: File,
}

impl Folder {
    pub fn make() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        loop {
            let path = parent.join(format!("{PREFIX}{:08x}", rand::random::<u32>()));
            // PostgreSQL may run as another user, who has to pass through.
            match std::fs::DirBuilder::new().mode(0o711).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot create {}", path.display())),
            }
            if let Some(folder) = Self::hold(&path)? {
                return Ok(folder);
            }
        }
    }

    /// Uses a folder together with whoever made it; `None` if it is being removed.
    pub fn hold(path: &Path) -> anyhow::Result<Option<Self>> {
        let lock = path.join(LOCK);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&lock);
        let file = file.with_context(|| format!("cannot write {}", lock.display()))?;
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), _use: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Lets go, and removes the folder with what still runs in it unless somebody else uses it.
    pub async fn remove(self) -> anyhow::Result<()> {
        let path = self.path.clone();
        drop(self);
        remove_unused(&path).await
    }
}

/// Removes the folders of runs that were killed.
pub async fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    let us = rustix::process::geteuid().as_raw();
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let age = metadata.modified().ok().and_then(|made| SystemTime::now().duration_since(made).ok());
        let is_being_made = !path.join(LOCK).exists() && age.is_none_or(|age| age < BEING_MADE);
        if !metadata.is_dir() || metadata.uid() != us || is_being_made {
            continue;
        }
        if let Err(error) = remove_unused(&path).await {
            say(&format!("WARN: what a killed run has left cannot be removed: {error:#}"));
        }
    }
}

async fn remove_unused(path: &Path) -> anyhow::Result<()> {
    let lock = path.join(LOCK);
    let Ok(file) = File::options().read(true).write(true).create(true).truncate(false).open(&lock) else {
        // Gone already.
        return Ok(());
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    end_marked(path).await;
    embedded_pg::end_leftovers(path).await?;
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Ends the processes that were started on the copy in `folder` and that nobody waits for any more.
pub async fn end_marked(folder: &Path) {
    use rustix::process::{Signal, kill_process};
    for (signal, patience) in [(Signal::TERM, 60_u32), (Signal::KILL, 20)] {
        for pid in marked(folder) {
            let _ = kill_process(pid, signal);
        }
        for _ in 0..patience {
            if marked(folder).is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[cfg(target_os = "linux")]
fn marked(folder: &Path) -> Vec<rustix::process::Pid> {
    let wanted = [MARK.as_bytes(), b"=", folder.as_os_str().as_encoded_bytes()].concat();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| rustix::process::Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| *pid != rustix::process::getpid())
        .filter(|pid| {
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
                .is_ok_and(|variables| variables.split(|byte| *byte == 0).any(|variable| variable == wanted))
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn marked(_folder: &Path) -> Vec<rustix::process::Pid> {
    Vec::new()
}
