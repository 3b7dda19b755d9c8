//! Hourly housekeeping: what the project asked to have called (`ferrobase.hourly`), then the files whose row is gone, left
//! by a crash between the two or by rows that the database removed itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Storage;
use super::error::StorageError;

/// How often the store is walked.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Younger files may belong to an upload that has not committed yet.
const MIN_AGE: Duration = Duration::from_secs(60 * 60);
/// Versions asked about in one statement.
const BATCH: usize = 1000;

/// Keeps house at start and then every hour, for as long as the runtime lives.
pub fn spawn(storage: Storage) {
    actix_web::rt::spawn(async move {
        loop {
            match call_hourly(&storage).await {
                Ok(failed) => {
                    for (function, error) in failed {
                        tracing::warn!(function, error, "an hourly function failed");
                    }
                }
                Err(error) => tracing::warn!(%error, "the hourly functions could not be called"),
            }
            match sweep(&storage, MIN_AGE).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "files without a row were removed from the store"),
                Err(error) => tracing::warn!(%error, "the file store could not be swept"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

/// Calls each function named in `ferrobase.hourly` once, as service_role; those that failed, with their reason. One
/// that fails undoes only itself.
pub async fn call_hourly(storage: &Storage) -> Result<Vec<(String, String)>, StorageError> {
    let tx = storage.as_service().await?;
    let rows = tx.client()?.query("select function, error from ferrobase.call_hourly()", &[]).await?;
    tx.commit().await?;
    rows.iter().map(|row| Ok((row.try_get("function")?, row.try_get("error")?))).collect()
}

/// Removes every file older than `min_age` that no row names; how many there were.
pub async fn sweep(storage: &Storage, min_age: Duration) -> Result<usize, StorageError> {
    let root = storage.files.root().to_owned();
    let files = tokio::task::spawn_blocking(move || old_files(&root, min_age))
        .await
        .map_err(|e| StorageError::File(std::io::Error::other(e)))??;
    let mut removed = 0;
    for batch in files.chunks(BATCH) {
        let versions: Vec<&str> = batch.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        let tx = storage.as_service().await?;
        let rows =
            tx.client()?.query("select version from storage.objects where version = any($1)", &[&versions]).await?;
        tx.rollback().await?;
        let known: HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
        for path in batch {
            let orphan = path.file_name().and_then(|n| n.to_str()).is_some_and(|version| !known.contains(version));
            if orphan && tokio::fs::remove_file(path).await.is_ok() {
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// All version files below `root` that are older than `min_age`. Their names are uuids.
fn old_files(root: &Path, min_age: Duration) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && entry.file_name().to_str().is_some_and(|name| uuid::Uuid::parse_str(name).is_ok())
                && SystemTime::now().duration_since(entry.metadata()?.modified()?).unwrap_or_default() >= min_age
            {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_version_files_are_looked_at() {
        let root = std::env::temp_dir().join(format!("sweep-{}", uuid::Uuid::new_v4()));
        let folder = root.join("bucket/some/key");
        std::fs::create_dir_all(&folder).expect("folder");
        let version = uuid::Uuid::new_v4().to_string();
        std::fs::write(folder.join(&version), "x").expect("file");
        std::fs::write(folder.join("notes.txt"), "x").expect("file");
        assert_eq!(old_files(&root, Duration::ZERO).expect("walk"), [folder.join(version)]);
        assert!(old_files(&root, Duration::from_secs(60)).expect("walk").is_empty());
        assert!(old_files(&root.join("none"), Duration::ZERO).expect("walk").is_empty());
        std::fs::remove_dir_all(&root).expect("clean");
    }
}
