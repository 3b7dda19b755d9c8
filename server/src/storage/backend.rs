//! The file store: `root/bucket/key/version`, a new version per write.
//!
//! A write never touches the bytes a reader may hold. A file is complete and synced before its row commits;
//! whatever is dropped half-way leaves no row, and its file is removed.

use std::path::PathBuf;

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::error::StorageError;
use super::key::ObjectKey;

/// Files below one folder.
#[derive(Clone, Debug)]
pub struct FileBackend {
    root: PathBuf,
}

/// A file being written; removed again unless [`NewFile::keep`] is called.
pub struct NewFile {
    path: PathBuf,
    file: Option<File>,
    pub version: Uuid,
    pub size: u64,
    kept: bool,
}

impl FileBackend {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &std::path::Path {
        &self.root
    }

    fn path(&self, bucket: &str, key: &ObjectKey, version: &str) -> PathBuf {
        // Bucket names hold no '/', keys no '.' or '..' segment, versions are uuids.
        self.root
            .join(bucket.replace(['/', '\\'], "_").trim_start_matches('.'))
            .join(key.as_str().trim_matches('/'))
            .join(version)
    }

    /// Opens a new version for writing.
    pub async fn create(&self, bucket: &str, key: &ObjectKey) -> Result<NewFile, StorageError> {
        let version = Uuid::new_v4();
        let path = self.path(bucket, key, &version.to_string());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).await?;
        }
        let file = File::create_new(&path).await?;
        Ok(NewFile { path, file: Some(file), version, size: 0, kept: false })
    }

    /// The bytes of a version; `None` if there is no such file.
    pub async fn open(&self, bucket: &str, key: &ObjectKey, version: &str) -> Result<Option<File>, StorageError> {
        match File::open(self.path(bucket, key, version)).await {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a version; one that is gone already is fine.
    pub async fn remove(&self, bucket: &str, key: &ObjectKey, version: &str) -> Result<(), StorageError> {
        let path = self.path(bucket, key, version);
        match fs::remove_file(&path).await {
            Ok(()) => {
                if let Some(folder) = path.parent() {
                    // Fails while other versions or keys live below; that is as it should be.
                    let _ = fs::remove_dir(folder).await;
                }
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl NewFile {
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes).await?;
            self.size += bytes.len() as u64;
        }
        Ok(())
    }

    /// Everything is on disk.
    pub async fn sync(&mut self) -> Result<(), StorageError> {
        if let Some(mut file) = self.file.take() {
            file.flush().await?;
            file.sync_all().await?;
        }
        Ok(())
    }

    /// The row that names this file has committed.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            let path = self.path.clone();
            // Off the worker: dropping happens anywhere.
            std::thread::spawn(move || {
                if let Err(error) = std::fs::remove_file(&path) {
                    tracing::warn!(path = %path.display(), %error, "an unfinished upload's file stays behind");
                }
            });
        }
    }
}
