//! The file store: `root/bucket/key/version`, a new version per write.
//!
//! A write never touches the bytes a reader may hold. A file is complete and synced before its row commits;
//! whatever is dropped half-way leaves no row, and its file is removed.

use std::path::{Path, PathBuf};

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::error::StorageError;
use super::key::ObjectKey;
use super::sniff::{self, HEAD_BYTES};

/// How often a folder that was removed meanwhile is made anew.
const FOLDER_TRIES: usize = 100;

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
    /// Bytes written so far.
    pub size: u64,
    /// The first of them, for [`NewFile::detected`].
    head: Vec<u8>,
    kept: bool,
}

impl FileBackend {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, bucket: &str, key: &ObjectKey, version: &str) -> PathBuf {
        // Bucket names hold no '/', keys no '.' or '..' segment, versions are uuids.
        self.root
            .join(bucket.replace(['/', '\\'], "_").trim_start_matches('.'))
            .join(key.as_str().trim_matches('/'))
            .join(version)
    }

    /// Opens a new version for writing. Whoever removes the key's last version takes its empty folder away, perhaps
    /// between the making of the folder and of the file; then both are made again.
    pub async fn create(&self, bucket: &str, key: &ObjectKey) -> Result<NewFile, StorageError> {
        let version = Uuid::new_v4();
        let path = self.path(bucket, key, &version.to_string());
        let mut tries = 0;
        let file = loop {
            tries += 1;
            match create_in_folder(&path).await {
                // A removal took the folder away: before the file was made in it, or while it was being made.
                Err(error)
                    if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::AlreadyExists)
                        && tries < FOLDER_TRIES => {}
                outcome => break outcome?,
            }
        };
        Ok(NewFile { path, file: Some(file), version, size: 0, head: Vec::new(), kept: false })
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

async fn create_in_folder(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).await?;
    }
    File::create_new(path).await
}

impl NewFile {
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes).await?;
            self.size += bytes.len() as u64;
            let wanted = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..wanted]);
        }
        Ok(())
    }

    /// The media type that the bytes themselves show.
    pub fn detected(&self) -> &'static str {
        sniff::detect(&self.head)
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
            let removal = std::thread::Builder::new().spawn(move || {
                if let Err(error) = std::fs::remove_file(&path) {
                    tracing::warn!(path = %path.display(), %error, "an unfinished upload's file stays behind");
                }
            });
            if let Err(error) = removal {
                tracing::warn!(%error, "an unfinished upload's file stays behind");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn a_folder_that_a_removal_takes_away_is_made_again() {
        let root = std::env::temp_dir().join(format!("backend-{}", Uuid::new_v4()));
        let files = FileBackend::new(root.clone());
        let key = ObjectKey::parse("person/letter.pdf").expect("key");
        let rounds = |files: FileBackend, key: ObjectKey| async move {
            for _ in 0..200 {
                let mut file = files.create("documents", &key).await.expect("a new version");
                file.write(b"%PDF-1.7").await.expect("write");
                file.sync().await.expect("sync");
                assert_eq!(file.detected(), "application/pdf");
                let version = file.version.to_string();
                file.keep();
                assert!(files.open("documents", &key, &version).await.expect("open").is_some());
                files.remove("documents", &key, &version).await.expect("remove");
            }
        };
        let tasks: Vec<_> = (0..4).map(|_| actix_web::rt::spawn(rounds(files.clone(), key.clone()))).collect();
        for task in tasks {
            task.await.expect("no version was lost");
        }
        std::fs::remove_dir_all(&root).expect("clean");
    }
}
