//! A project's server in the background. It is found by a lock in the project's data folder, which the system releases when the
//! process ends.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::say;
use crate::project::Project;

/// The line that the server prints among its progress when it is ready or gives up.
pub const READY: &str = "\u{4}ready";
pub const FAILED: &str = "\u{4}failed";

/// The longest time that an orderly stop takes: requests in flight, then PostgreSQL.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The files through which the commands of one project find each other.
pub struct Place {
    folder: PathBuf,
}

impl Place {
    pub fn of(project: &Project) -> Self {
        Self { folder: project.data_dir() }
    }

    /// The files of a copy in `folder`.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Creates the folder and makes git ignore it.
    pub fn prepare(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot create {}", self.folder.display()))?;
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n").with_context(|| format!("cannot write {}", ignore.display()))?;
        }
        Ok(())
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Starts a new server log that only its owner can read.
    pub fn create_log(&self) -> anyhow::Result<File> {
        let path = self.log();
        let opened = File::options().create(true).write(true).truncate(true).mode(0o600).open(&path);
        opened.with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn progress(&self) -> PathBuf {
        self.folder.join("start.log")
    }

    /// The socket of the Docker stand-in, if one was requested. Stored in a file, so that a restart by another command keeps it.
    pub fn docker_socket(&self) -> Option<PathBuf> {
        std::fs::read_to_string(self.docker_note()).ok().map(PathBuf::from)
    }

    pub fn set_docker_socket(&self, socket: Option<&Path>) -> anyhow::Result<()> {
        let note = self.docker_note();
        match socket {
            Some(socket) => std::fs::write(&note, socket.as_os_str().as_encoded_bytes())
                .with_context(|| format!("cannot write {}", note.display())),
            None if note.exists() => {
                std::fs::remove_file(&note).with_context(|| format!("cannot remove {}", note.display()))
            }
            None => Ok(()),
        }
    }

    fn docker_note(&self) -> PathBuf {
        self.folder.join("docker-socket")
    }

    fn open_lock(&self) -> std::io::Result<File> {
        let path = self.folder.join("server.lock");
        File::options().read(true).write(true).create(true).truncate(false).open(path)
    }

    /// Takes the lock of the project's server, or returns which process has it.
    pub fn take(&self) -> anyhow::Result<Taken> {
        let mut file = self.open_lock().with_context(|| format!("cannot write in {}", self.folder.display()))?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "{}", std::process::id())?;
                Ok(Taken { _lock: file })
            }
            Err(TryLockError::WouldBlock) => anyhow::bail!("this project is already running"),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Waits until no other command is starting the server. Two at once would write the same logs, and each would take the other's
    /// progress for its own.
    pub fn starting(&self) -> anyhow::Result<Starting> {
        self.prepare()?;
        let path = self.folder.join("start.lock");
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.with_context(|| format!("cannot write {}", path.display()))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            say("Waiting for another command that is starting this project...");
        }
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Starting { _lock: file })
    }

    /// An error unless the project is running. Another project may listen on its ports.
    pub fn require_running(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.process().is_some(), "the project is not running: start it with 'ferrobase start'");
        Ok(())
    }

    /// The process that serves this project.
    pub fn process(&self) -> Option<i32> {
        if !self.folder.is_dir() {
            return None;
        }
        let mut file = self.open_lock().ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).ok()?;
                text.trim().parse().ok()
            }
            _ => None,
        }
    }

    /// Stops the server in order; false if there is none.
    pub fn stop(&self) -> anyhow::Result<bool> {
        let Some(process) = self.process() else { return Ok(false) };
        let pid = rustix::process::Pid::from_raw(process).context("the server's process is unknown")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let begun = Instant::now();
        while self.process() == Some(process) {
            anyhow::ensure!(begun.elapsed() < STOP_LIMIT, "the server (process {process}) does not end");
            std::thread::sleep(Duration::from_millis(30));
        }
        Ok(true)
    }
}

/// Held by a command from before it looks for the server until the one that it starts is ready.
pub struct Starting {
    _lock: File,
}

/// Held as long as the server runs.
pub struct Taken {
    _lock: File,
}
