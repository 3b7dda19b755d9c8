//! What a data folder knows about its backups: the last one made and the last one verified.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::backup_store::BackupStore;
use super::error::BackupError;
use super::retention;
use crate::owner;

/// Below the data folder. A server that was started as root and has dropped its privileges can write there.
pub const FOLDER: &str = "backups";
const FILE: &str = "state.json";
/// Held while that file is read and replaced: the server makes a backup while a command verifies another.
const LOCK: &str = "state.lock";
/// Of as many places besides the last one it is known which backup was the last.
const PLACES: usize = 8;
/// A separate file, because the server writes it every few seconds and commands write the other one.
const LOG_FILE: &str = "log.json";

/// The backups that this data folder knows of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub made: Option<Backup>,
    pub proved: Option<Backup>,
    /// The last ones that were made in other places than `made`, oldest first.
    #[serde(default)]
    elsewhere: Vec<Backup>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub archive: String,
    /// The point in time of the backup.
    pub made_at: DateTime<Utc>,
    /// The WAL chain that continues from it.
    #[serde(default)]
    pub chain: Option<String>,
}

/// How far the WAL is archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    pub chain: String,
    /// The latest point in time that can be restored, given an archive of the chain.
    pub reached: DateTime<Utc>,
}

impl Backup {
    /// `archive` is the archive's full name.
    pub fn new(archive: &str, made_at: DateTime<Utc>) -> Self {
        Self { archive: archive.to_owned(), made_at, chain: None }
    }

    /// The archive's name in its place.
    pub fn name(&self) -> &str {
        self.archive.rsplit('/').next().unwrap_or(&self.archive)
    }

    /// Where it was made.
    fn place(&self) -> &str {
        self.archive.strip_suffix(self.name()).unwrap_or_default()
    }

    /// When it was started, as its name says. The next one is due by this time, not by the moment that it holds, so that a schedule does
    /// not drift by what backups take.
    pub fn begun(&self) -> DateTime<Utc> {
        retention::time_of(self.name()).unwrap_or(self.made_at)
    }

    /// Adds the chain of a continuous archive.
    pub fn in_chain(self, chain: Option<String>) -> Self {
        Self { chain, ..self }
    }
}

impl State {
    /// Reads the state of a data folder; empty if there is no such file.
    pub fn read(data_dir: &Path) -> Self {
        let text = std::fs::read(data_dir.join(FOLDER).join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub fn record_made(data_dir: &Path, backup: Backup) -> Result<(), BackupError> {
        let _lock = lock(data_dir)?;
        let Self { made, proved, mut elsewhere } = Self::read(data_dir);
        elsewhere.extend(made);
        elsewhere.retain(|other| other.place() != backup.place());
        elsewhere.drain(..elsewhere.len().saturating_sub(PLACES));
        Self { made: Some(backup), proved, elsewhere }.write(data_dir)
    }

    /// The last one made in `backup_store`. One that was made by hand elsewhere is none of a schedule's.
    pub fn made_in(&self, backup_store: &BackupStore) -> Option<&Backup> {
        self.made.iter().chain(&self.elsewhere).find(|made| made.archive == backup_store.full_name(made.name()))
    }

    /// Verifying an older backup than the last verified one changes nothing.
    pub fn record_proved(data_dir: &Path, backup: Backup) -> Result<(), BackupError> {
        let _lock = lock(data_dir)?;
        let state = Self::read(data_dir);
        if state.proved.as_ref().is_some_and(|known| known.made_at > backup.made_at) {
            return Ok(());
        }
        Self { proved: Some(backup), ..state }.write(data_dir)
    }

    fn write(&self, data_dir: &Path) -> Result<(), BackupError> {
        write(data_dir, FILE, self)
    }

    /// The last one that a schedule for `scheduled_to` has made, or the last one of all without a schedule.
    pub fn last_made(&self, scheduled_to: Option<&BackupStore>) -> Option<&Backup> {
        scheduled_to.map_or(self.made.as_ref(), |place| self.made_in(place))
    }

    /// Prometheus metrics: the points in time of the last backups; 0 if there is none. With a schedule, only those made where it makes them.
    pub fn metrics(&self, scheduled_to: Option<&BackupStore>) -> String {
        let made = self.last_made(scheduled_to);
        let proved = self.proved.as_ref();
        let gauges = [("made", "made", made), ("proved", "proved by 'ferrobase backup verify'", proved)];
        gauges
            .into_iter()
            .map(|(name, help, backup)| {
                let name = format!("ferrobase_backup_last_{name}_timestamp_seconds");
                let seconds = backup.map_or(0, |backup| backup.made_at.timestamp());
                format!(
                    "# HELP {name} The moment that the last backup holds that was {help}.\n# TYPE {name} gauge\n{name} {seconds}\n"
                )
            })
            .collect()
    }
}

impl LogState {
    /// Reads the state of a data folder; absent if no WAL is archived.
    pub fn read(data_dir: &Path) -> Option<Self> {
        let text = std::fs::read(data_dir.join(FOLDER).join(LOG_FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn write(&self, data_dir: &Path) -> Result<(), BackupError> {
        write(data_dir, LOG_FILE, self)
    }

    /// Records that WAL is no longer archived.
    pub fn forget(data_dir: &Path) {
        // Usually there is no file.
        let _ = std::fs::remove_file(data_dir.join(FOLDER).join(LOG_FILE));
    }

    /// Prometheus metric: the latest point in time that can be restored.
    pub fn metrics(&self) -> String {
        let (name, seconds) = ("ferrobase_backup_log_reached_timestamp_seconds", self.reached.timestamp());
        format!(
            "# HELP {name} The moment up to which the log of changes is archived.\n# TYPE {name} gauge\n{name} {seconds}\n"
        )
    }
}

/// Waits until no other process changes the state; the result ends that.
fn lock(data_dir: &Path) -> Result<File, BackupError> {
    let take = || -> io::Result<File> {
        let file = open_lock(data_dir, LOCK)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        Ok(file)
    };
    take().map_err(BackupError::io("cannot lock", data_dir.join(FOLDER).join(LOCK)))
}

/// Opens a file of the folder for what is known of backups, to be locked by the server and by commands of other users.
pub fn open_lock(data_dir: &Path, name: &str) -> io::Result<File> {
    let folder = data_dir.join(FOLDER);
    let path = folder.join(name);
    owner::make_folder(&folder)?;
    let is_new = !path.exists();
    // Over NFS only who may write gets a lock.
    let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
        // Another user's can only be read, which suffices elsewhere.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(&path).map_err(|_| error)?,
        opened => opened?,
    };
    if is_new {
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
        owner::hand_over(&path)?;
    }
    Ok(file)
}

fn write(data_dir: &Path, name: &str, content: &impl Serialize) -> Result<(), BackupError> {
    let text =
        serde_json::to_vec_pretty(content).map_err(|error| BackupError::io("cannot write", name)(error.into()))?;
    replace(data_dir, name, &text)
}

/// Replaces a file of the folder for what is known of backups.
pub fn replace(data_dir: &Path, name: &str, content: &[u8]) -> Result<(), BackupError> {
    let folder = data_dir.join(FOLDER);
    let (path, partial) = (folder.join(name), folder.join(format!("{name}.partial")));
    let write = || -> io::Result<()> {
        owner::make_folder(&folder)?;
        match std::fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        file.write_all(content)?;
        // The server may run as another user than the command.
        std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(0o644))?;
        owner::hand_over(&partial)?;
        // A machine that stops must not leave an empty file: it would forget the verified backup.
        file.sync_all()?;
        std::fs::rename(&partial, &path)
    };
    write().map_err(BackupError::io("cannot write", &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's backup and a command's verification were each forgotten if the other one was recorded meanwhile.
    #[test]
    fn what_is_recorded_at_the_same_time_is_all_known() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..200 {
            let backup = |name: &str| Backup::new(&format!("{name}-{round}"), Utc::now());
            std::thread::scope(|scope| {
                scope.spawn(|| State::record_made(folder.path(), backup("made")).expect("recorded"));
                scope.spawn(|| State::record_proved(folder.path(), backup("proved")).expect("recorded"));
            });
            let State { made, proved, .. } = State::read(folder.path());
            let names = [made, proved].map(|backup| backup.map(|backup| backup.archive));
            assert_eq!(names, [Some(format!("made-{round}")), Some(format!("proved-{round}"))]);
        }
    }

    #[test]
    fn the_last_backup_of_each_place_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let make = |name: &str, number: usize| {
            let archive = place(name).join(format!("{number}.age")).display().to_string();
            State::record_made(folder.path(), Backup::new(&archive, Utc::now())).expect("recorded");
        };
        let last = |name: &str| {
            let state = State::read(folder.path());
            state.made_in(&BackupStore::Folder(place(name))).map(|made| made.name().to_owned())
        };
        for (number, name) in ["daily", "by-hand", "daily", "by-hand"].into_iter().enumerate() {
            make(name, number);
        }
        assert_eq!((last("daily"), last("by-hand")), (Some("2.age".to_owned()), Some("3.age".to_owned())));
        assert_eq!(last("never"), None);
        let state = State::read(folder.path());
        let last_made = |name: &str| {
            let metrics = state.metrics(Some(&BackupStore::Folder(place(name))));
            let made = "\nferrobase_backup_last_made_timestamp_seconds ";
            metrics.split(made).nth(1).and_then(|rest| rest.lines().next()).map(str::to_owned)
        };
        // Made by hand elsewhere, one would hide that the schedule fails.
        let made_at = |name: &str| {
            let seconds = state.made_in(&BackupStore::Folder(place(name))).map_or(0, |made| made.made_at.timestamp());
            Some(seconds.to_string())
        };
        assert_eq!((last_made("daily"), last_made("never")), (made_at("daily"), Some("0".to_owned())));
        for number in 0..PLACES {
            make(&format!("other-{number}"), number);
        }
        assert_eq!((last("daily"), last("by-hand")), (None, Some("3.age".to_owned())), "the oldest is forgotten");
    }
}
