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
}

impl Backup {
    pub fn new(archive: &Path, made_at: DateTime<Utc>) -> Self {
        let archive = std::path::absolute(archive).unwrap_or_else(|_| archive.to_owned());
        Self { archive: archive.display().to_string(), made_at }
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
        let folder = data_dir.join(FOLDER);
        let (path, partial) = (folder.join(FILE), folder.join("state.json.partial"));
        let write = || -> io::Result<()> {
            std::fs::create_dir_all(&folder)?;
            match std::fs::remove_file(&partial) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            std::fs::write(&partial, serde_json::to_vec_pretty(self)?)?;
            // The server may run as somebody else than the command.
            std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(0o644))?;
            std::fs::rename(&partial, &path)
        };
        write().map_err(BackupError::io("cannot write", &path))
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
