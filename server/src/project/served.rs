//! The options of a running `functions serve`. Its command locks a file in the project's data folder and writes them into it; the
//! server uses them for as long as the lock is held, so they end with the command, however it ends.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Served {
    /// The functions' environment, instead of `supabase/functions/.env`.
    pub env_file: Option<PathBuf>,
    /// The import map of all functions, instead of their own.
    pub import_map: Option<PathBuf>,
    /// Whether functions can be called without a token.
    pub is_open: bool,
    /// Where debuggers connect to the first function, by name; each next one has the next port.
    pub inspector: Option<Inspector>,
}

/// How a function's process opens V8's inspector on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Inspector {
    pub mode: InspectMode,
    pub port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum InspectMode {
    /// Runs whether or not a debugger is there.
    Run,
    /// Waits for a debugger, and stops at the first statement.
    Brk,
    /// Waits for a debugger.
    Wait,
}

impl InspectMode {
    pub const NAMES: [&str; 3] = ["run", "brk", "wait"];

    pub fn named(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        [Self::Run, Self::Brk, Self::Wait].get(place).copied()
    }
}

impl Inspector {
    /// That of the function in this place of all functions; `None` after the last port.
    pub fn of(self, place: usize) -> Option<Self> {
        let port = self.port.checked_add(u16::try_from(place).ok()?)?;
        Some(Self { port, ..self })
    }
}

const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Held by the command.
pub struct ServedLock {
    _file: File,
}

/// The file in a project's data folder.
fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("functions-serve.json")
}

impl ServedLock {
    /// What the server logs when it has taken the options.
    pub const NOTICED: &str = "the functions are served with the options of 'functions serve'";

    pub fn take(data_dir: &Path, served: &Served) -> anyhow::Result<Self> {
        let path = path(data_dir);
        let opened = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let mut file = opened.with_context(|| format!("cannot write {}", path.display()))?;
        // The server holds the lock for a moment whenever it looks.
        let begun = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if begun.elapsed() < LOCK_TIMEOUT => std::thread::sleep(LOCK_PAUSE),
                TryLockError::WouldBlock => {
                    anyhow::bail!("another 'functions serve' of this project has options already")
                }
                TryLockError::Error(error) => {
                    return Err(error).context("cannot lock the options of 'functions serve'");
                }
            }
        }
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(served)?)?;
        Ok(Self { _file: file })
    }
}

impl Served {
    /// The options of a command that runs now; none while it is still writing.
    pub fn current(data_dir: &Path) -> Option<Self> {
        let mut file = File::open(path(data_dir)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).ok()?;
                serde_json::from_str(&text).ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_count_for_as_long_as_the_command_holds_them() {
        let folder = std::env::temp_dir().join(format!("ferrobase-served-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let wanted =
            Served { env_file: Some(PathBuf::from("/a/.env")), import_map: None, is_open: true, inspector: None };
        assert_eq!(Served::current(&folder), None);
        let lock = ServedLock::take(&folder, &wanted).expect("the lock");
        assert_eq!(Served::current(&folder), Some(wanted.clone()));
        assert!(ServedLock::take(&folder, &wanted).is_err(), "one command at a time");
        drop(lock);
        assert_eq!(Served::current(&folder), None);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
