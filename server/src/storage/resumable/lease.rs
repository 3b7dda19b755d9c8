//! Allows one request at a time to write an upload.
//!
//! The writer holds a lease in the upload's row and renews it. Another request asks for the lease and waits. A writer in this
//! process is notified at once, one on another instance when it renews. The lease of a lost writer expires. Such a writer cannot
//! advance the offset any more, because each update checks the writer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::error::TusError;
use super::protocol::UploadId;
use super::rows::{self, Upload};
use crate::storage::{Storage, StorageError};

/// How long a request waits for the lease.
const WAIT: Duration = Duration::from_secs(5);
/// How often it asks.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How often a lease is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// Writers of this process, which can be notified directly.
#[derive(Clone, Debug, Default)]
pub struct Writers(Arc<Mutex<HashMap<Uuid, Arc<Notify>>>>);

/// The right to write an upload.
pub struct Lease {
    storage: web::Data<Storage>,
    upload: Uuid,
    writer: Uuid,
    asked: Arc<Notify>,
    renewal: JoinHandle<()>,
    released: bool,
}

impl Lease {
    /// Waits until the upload is free, and asks its writer to release it; at most five seconds.
    pub async fn acquire(storage: &web::Data<Storage>, id: &UploadId) -> Result<(Upload, Self), TusError> {
        let writer = Uuid::new_v4();
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            if let Some(upload) = rows::claim(storage, id, writer).await? {
                return Ok((upload, Self::held(storage, id.version, writer)));
            }
            if let Some(asked) = storage.writers.0.lock().get(&id.version) {
                asked.notify_one();
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(StorageError::LockTimeout.into());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    fn held(storage: &web::Data<Storage>, upload: Uuid, writer: Uuid) -> Self {
        let asked = Arc::new(Notify::new());
        storage.writers.0.lock().insert(upload, Arc::clone(&asked));
        let (renewed, told) = (web::Data::clone(storage), Arc::clone(&asked));
        let renewal = actix_web::rt::spawn(async move {
            loop {
                tokio::time::sleep(RENEW_EVERY).await;
                match rows::renew(&renewed, upload, writer).await {
                    Ok(false) => {}
                    // Another request asked for the lease, or it was lost.
                    Ok(true) => told.notify_one(),
                    Err(error) => tracing::warn!(%upload, %error, "the lease of an upload could not be renewed"),
                }
            }
        });
        Self { storage: web::Data::clone(storage), upload, writer, asked, renewal, released: false }
    }

    pub fn writer(&self) -> Uuid {
        self.writer
    }

    /// Resolves when another request wants to write.
    pub async fn asked_to_let_go(&self) {
        self.asked.notified().await;
    }

    /// Releases the lease.
    pub async fn release(mut self) {
        self.end();
        if let Err(error) = rows::release(&self.storage, self.upload, self.writer).await {
            tracing::warn!(upload = %self.upload, %error, "the lease of an upload ends by itself");
        }
    }

    fn end(&mut self) {
        self.released = true;
        self.renewal.abort();
        let mut writers = self.storage.writers.0.lock();
        if writers.get(&self.upload).is_some_and(|known| Arc::ptr_eq(known, &self.asked)) {
            writers.remove(&self.upload);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        self.end();
        let (storage, upload, writer) = (web::Data::clone(&self.storage), self.upload, self.writer);
        actix_web::rt::spawn(async move {
            if let Err(error) = rows::release(&storage, upload, writer).await {
                tracing::warn!(%upload, %error, "the lease of an upload ends by itself");
            }
        });
    }
}
