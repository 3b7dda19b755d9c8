//! The places of the two clusters: what an interrupted upgrade leaves, and the exchange of names by one rename.

use std::fs::File;
use std::path::{Path, PathBuf};

use chrono::Utc;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::UpgradeError;
use crate::embedded_pg;

/// Where everything is made, below the place of the cluster.
pub const STAGING: &str = ".upgrading";
/// In it: the new cluster has answered, and the exchange is under way.
pub const MARKER: &str = "answered";
pub use embedded_pg::{AFTER_UPGRADE as AFTER, BEFORE_UPGRADE as BEFORE};

/// Ends and removes what an interrupted upgrade has left. If that was interrupted after the exchange, the former cluster is kept.
pub async fn tidy(root: &Path) -> Result<(), UpgradeError> {
    let staging = root.join(STAGING);
    if !staging.exists() {
        return Ok(());
    }
    embedded_pg::end_workers(&staging).await;
    for part in ["old", "new"] {
        embedded_pg::end_leftovers(&staging.join(part)).await?;
    }
    if let Some(from) = exchanged(root) {
        set_aside(root, &from)?;
    }
    std::fs::remove_dir_all(&staging).map_err(UpgradeError::io("cannot remove", &staging))
}

/// The version of the former cluster, if it is in `.upgrading` because the upgraded one has taken its place.
fn exchanged(root: &Path) -> Option<String> {
    let marker = std::fs::read_to_string(root.join(STAGING).join(MARKER)).ok()?;
    let (from, to) = marker.trim().split_once(' ')?;
    let is_former = embedded_pg::version_of(&root.join(STAGING).join("new/db")).as_deref() == Some(from);
    let is_in_place = embedded_pg::version_of(&root.join("db")).as_deref() == Some(to);
    (is_former && is_in_place).then(|| from.to_owned())
}

/// Gives the folder of the former cluster its name.
pub fn set_aside(root: &Path, from: &str) -> Result<PathBuf, UpgradeError> {
    let aside = root.join(format!("{BEFORE}{from}-{}", Utc::now().format("%Y%m%dT%H%M%SZ")));
    rename(&root.join(STAGING).join("new"), &aside)?;
    sync_folder(root)?;
    Ok(aside)
}

pub fn exchange(one: &Path, other: &Path) -> Result<(), UpgradeError> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
        .map_err(|error| UpgradeError::io("cannot replace", other)(error.into()))
}

pub fn rename(from: &Path, to: &Path) -> Result<(), UpgradeError> {
    std::fs::rename(from, to).map_err(UpgradeError::io("cannot write", to))
}

pub fn sync_folder(path: &Path) -> Result<(), UpgradeError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(UpgradeError::io("cannot write", path))
}

/// Everything below is on the disk afterwards.
#[cfg(target_os = "linux")]
pub fn sync_all(below: &Path) -> Result<(), UpgradeError> {
    let folder = File::open(below).map_err(UpgradeError::io("cannot read", below))?;
    rustix::fs::syncfs(&folder).map_err(|error| UpgradeError::io("cannot write", below)(error.into()))
}

#[cfg(not(target_os = "linux"))]
pub fn sync_all(below: &Path) -> Result<(), UpgradeError> {
    for entry in std::fs::read_dir(below).map_err(UpgradeError::io("cannot read", below))?.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sync_all(&path)?,
            Ok(kind) if kind.is_file() => sync_folder(&path)?,
            _ => {}
        }
    }
    sync_folder(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(folder: &Path, major: &str) {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("PG_VERSION"), format!("{major}\n")).expect("a file");
    }

    fn versions(root: &Path) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = std::fs::read_dir(root)
            .expect("a folder")
            .flatten()
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let db = if name == "db" { entry.path() } else { entry.path().join("db") };
                let name = if name.starts_with(BEFORE) { BEFORE.to_owned() } else { name };
                (name, embedded_pg::version_of(&db).unwrap_or_default())
            })
            .collect();
        found.sort();
        found
    }

    /// A kill may come at each of these moments; the last is between the exchange and the former cluster's name.
    #[tokio::test]
    async fn leftovers_of_an_interrupted_upgrade_are_removed_but_never_the_former_cluster() {
        for (place, staged, marker, expected) in [
            ("17", None, None, vec![("db", "17")]),
            ("17", Some("18"), None, vec![("db", "17")]),
            ("17", Some("18"), Some("17 18"), vec![("db", "17")]),
            ("18", Some("17"), Some("17 18"), vec![(BEFORE, "17"), ("db", "18")]),
        ] {
            let root = tempfile::tempdir().expect("a folder");
            let staging = root.path().join(STAGING);
            cluster(&root.path().join("db"), place);
            std::fs::create_dir_all(staging.join("old")).expect("a folder");
            if let Some(staged) = staged {
                cluster(&staging.join("new/db"), staged);
            }
            if let Some(marker) = marker {
                std::fs::write(staging.join(MARKER), marker).expect("a marker");
            }
            tidy(root.path()).await.expect("tidied");
            let expected: Vec<_> =
                expected.into_iter().map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
            assert_eq!(versions(root.path()), expected, "{place} {staged:?} {marker:?}");
        }
    }
}
