//! What is known of the backups of a data folder: the last one that was made and the last one that was proved.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::BackupError;

/// Below the data folder. A server that was started as root and is no more writes there.
pub const FOLDER: &str = "backups";
const FILE: &str = "state.json";
/// Of its own: the server writes it every few seconds, and commands write the other.
const LOG_FILE: &str = "log.json";

/// What is known, as far as this data folder has seen it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub made: Option<Backup>,
    pub proved: Option<Backup>,
}

/// One backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub archive: String,
    /// The moment that it holds.
    pub made_at: DateTime<Utc>,
    /// The continuous archive that goes on from it.
    #[serde(default)]
    pub chain: Option<String>,
}

/// How far the log of changes is archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    pub chain: String,
    /// The last moment that can be restored, as far as an archive of the chain is there.
    pub reached: DateTime<Utc>,
}

impl Backup {
    /// By the archive's full name.
    pub fn new(archive: &str, made_at: DateTime<Utc>) -> Self {
        Self { archive: archive.to_owned(), made_at, chain: None }
    }

    /// One that a continuous archive goes on from.
    pub fn in_chain(self, chain: Option<String>) -> Self {
        Self { chain, ..self }
    }
}

impl State {
    /// Of a data folder; nothing is known where there is no such file.
    pub fn read(data_dir: &Path) -> Self {
        let text = std::fs::read(data_dir.join(FOLDER).join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub fn record_made(data_dir: &Path, backup: Backup) -> Result<(), BackupError> {
        Self { made: Some(backup), ..Self::read(data_dir) }.write(data_dir)
    }

    /// A proof of an older backup than the last proved one changes nothing.
    pub fn record_proved(data_dir: &Path, backup: Backup) -> Result<(), BackupError> {
        let state = Self::read(data_dir);
        if state.proved.as_ref().is_some_and(|known| known.made_at > backup.made_at) {
            return Ok(());
        }
        Self { proved: Some(backup), ..state }.write(data_dir)
    }

    fn write(&self, data_dir: &Path) -> Result<(), BackupError> {
        write(data_dir, FILE, self)
    }

    /// For Prometheus: the moments that the last backups hold; 0 where there is none.
    pub fn metrics(&self) -> String {
        let gauges = [("made", "made", &self.made), ("proved", "proved by 'ferrobase backup verify'", &self.proved)];
        gauges
            .into_iter()
            .map(|(name, help, backup)| {
                let name = format!("ferrobase_backup_last_{name}_timestamp_seconds");
                let seconds = backup.as_ref().map_or(0, |backup| backup.made_at.timestamp());
                format!(
                    "# HELP {name} The moment that the last backup holds that was {help}.\n# TYPE {name} gauge\n{name} {seconds}\n"
                )
            })
            .collect()
    }
}

impl LogState {
    /// Of a data folder; absent where nothing is archived.
    pub fn read(data_dir: &Path) -> Option<Self> {
        let text = std::fs::read(data_dir.join(FOLDER).join(LOG_FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn write(&self, data_dir: &Path) -> Result<(), BackupError> {
        write(data_dir, LOG_FILE, self)
    }

    /// Says that nothing is archived any more.
    pub fn forget(data_dir: &Path) {
        // Mostly there is none.
        let _ = std::fs::remove_file(data_dir.join(FOLDER).join(LOG_FILE));
    }

    /// For Prometheus: the last moment that can be restored.
    pub fn metrics(&self) -> String {
        let (name, seconds) = ("ferrobase_backup_log_reached_timestamp_seconds", self.reached.timestamp());
        format!(
            "# HELP {name} The moment up to which the log of changes is archived.\n# TYPE {name} gauge\n{name} {seconds}\n"
        )
    }
}

fn write(data_dir: &Path, name: &str, content: &impl Serialize) -> Result<(), BackupError> {
    let folder = data_dir.join(FOLDER);
    let (path, partial) = (folder.join(name), folder.join(format!("{name}.partial")));
    let write = || -> io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        match std::fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::write(&partial, serde_json::to_vec_pretty(content)?)?;
        // The server may run as somebody else than the command.
        std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(0o644))?;
        std::fs::rename(&partial, &path)
    };
    write().map_err(BackupError::io("cannot write", &path))
}
