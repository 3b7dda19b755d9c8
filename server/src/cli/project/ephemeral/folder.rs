//! The folders of temporary copies, below the system's temporary folder. Each is locked as long as it is in use.

use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;

use crate::cli::project::say;
use crate::embedded_pg;

const PREFIX: &str = "ferrobase-test-";
const LOCK: &str = "use.lock";
/// A folder without a lock is being created, unless it is older than this.
const BEING_MADE: Duration = Duration::from_secs(3600);

/// Environment variable with the copy's folder, set for everything that runs on the copy. It identifies processes that outlive a
/// killed run.
pub const MARK: &str = "FERROBASE_TEST_FOLDER";

/// A folder in use. Dropping this does not remove the folder.
pub struct Folder {
    pub path: PathBuf,
    _use: File,
}

impl Folder {
    pub fn make() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        loop {
            let path = parent.join(format!("{PREFIX}{:08x}", rand::random::<u32>()));
            // PostgreSQL may run as another user, who has to be able to enter.
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

    /// Shares a folder with the process that created it; `None` if it is being removed.
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

    /// Releases the folder, and removes it with all processes in it unless it is still in use.
    pub async fn remove(self) -> anyhow::Result<()> {
        let path = self.path.clone();
        drop(self);
        remove_unused(&path).await
    }
}

/// Removes the folders of killed runs.
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
            say(&format!("WARN: leftovers of a killed run cannot be removed: {error:#}"));
        }
    }
}

async fn remove_unused(path: &Path) -> anyhow::Result<()> {
    let lock = path.join(LOCK);
    let Ok(file) = File::options().read(true).write(true).create(true).truncate(false).open(&lock) else {
        // Removed already.
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

/// Ends the leftover processes that were started on the copy in `folder`.
pub async fn end_marked(folder: &Path) {
    use rustix::process::{Signal, kill_process};
    for (signal, attempts) in [(Signal::TERM, 60_u32), (Signal::KILL, 20)] {
        for pid in marked(folder) {
            let _ = kill_process(pid, signal);
        }
        for _ in 0..attempts {
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
