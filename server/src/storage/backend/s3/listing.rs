//! Lists the objects in the store, page by page.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::Method;

use super::S3Store;
use super::request::{self, Asked, Body};
use crate::storage::backend::bucket::BucketEntry;
use crate::storage::backend::{Listed, listed};
use crate::storage::error::StorageError;
use crate::storage::s3::xml::{self, Record, text_of};

impl S3Store {
    /// Versions and parts older than `min_age`, one page of the store at a time.
    pub(super) async fn list(
        &self,
        min_age: Duration,
        mut take: impl AsyncFnMut(Vec<Listed>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.pages(
            |path, object| {
                let age = age_of(object, "LastModified").filter(|age| *age >= min_age)?;
                listed(path, age)
            },
            async |page| take(page).await,
        )
        .await
    }

    /// All objects below the prefix.
    pub async fn everything(&self) -> Result<Vec<BucketEntry>, StorageError> {
        let mut found = Vec::new();
        self.pages(
            |path, object| {
                let size = text_of(object, "Size")?.parse().ok()?;
                Some(BucketEntry { name: path.to_owned(), size })
            },
            async |page| {
                found.extend(page);
                Ok(())
            },
        )
        .await?;
        Ok(found)
    }

    /// Maps each object with `read`, one page of the store at a time.
    async fn pages<T>(
        &self,
        read: impl Fn(&str, &Record) -> Option<T>,
        mut take: impl AsyncFnMut(Vec<T>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let prefix = self.stores.prefix();
        let mut token: Option<String> = None;
        loop {
            let mut asked = Asked::new(Method::GET, "")
                .parameter("list-type", "2")
                .parameter("encoding-type", "url")
                .parameter("prefix", &prefix);
            if let Some(token) = &token {
                asked = asked.parameter("continuation-token", token);
            }
            let answer = self.stores.answer(&asked, &Body::Empty).await?;
            let (objects, others) = xml::read(&answer, "ListBucketResult", "Contents").map_err(request::unreadable)?;
            let is_encoded = text_of(&others, "EncodingType") == Some("url");
            let page: Vec<T> = objects
                .iter()
                .filter_map(|object| {
                    let key = decoded(text_of(object, "Key")?, is_encoded);
                    read(key.strip_prefix(&prefix)?, object)
                })
                .collect();
            if !page.is_empty() {
                take(page).await?;
            }
            if text_of(&others, "IsTruncated") != Some("true") {
                return Ok(());
            }
            let next = further(text_of(&others, "NextContinuationToken"))?;
            if token.as_ref() == Some(&next) {
                return Err(endless());
            }
            token = Some(next);
        }
    }

    /// Aborts abandoned multipart uploads, whose parts use space without being listed.
    pub async fn abort_old_uploads(&self, min_age: Duration) -> Result<(), StorageError> {
        let mut after: Option<(String, String)> = None;
        loop {
            let mut asked =
                Asked::new(Method::GET, "").parameter("uploads", "").parameter("prefix", self.stores.prefix());
            if let Some((key, id)) = &after {
                asked = asked.parameter("key-marker", key).parameter("upload-id-marker", id);
            }
            let answer = self.stores.answer(&asked, &Body::Empty).await?;
            let (uploads, others) =
                xml::read(&answer, "ListMultipartUploadsResult", "Upload").map_err(request::unreadable)?;
            for upload in &uploads {
                let (Some(key), Some(id)) = (text_of(upload, "Key"), text_of(upload, "UploadId")) else { continue };
                let is_ours = self.under_way.lock().contains(id);
                if !is_ours
                    && age_of(upload, "Initiated").is_some_and(|age| age >= min_age)
                    && let Err(error) = self.abort_parts(key, id).await
                {
                    tracing::warn!(key, %error, "the parts of an old upload stay in the store");
                }
            }
            if text_of(&others, "IsTruncated") != Some("true") {
                return Ok(());
            }
            let next = (further(text_of(&others, "NextKeyMarker"))?, further(text_of(&others, "NextUploadIdMarker"))?);
            if after.as_ref() == Some(&next) {
                return Err(endless());
            }
            after = Some(next);
        }
    }
}

/// Where the next page begins.
///
/// Errors: the store does not say so. The rest would look as if it did not exist.
fn further(token: Option<&str>) -> Result<String, StorageError> {
    token.filter(|token| !token.is_empty()).map(str::to_owned).ok_or_else(endless)
}

fn endless() -> StorageError {
    StorageError::Unavailable("the file store's listing does not go on".to_owned())
}

fn decoded(key: &str, is_encoded: bool) -> String {
    if !is_encoded {
        return key.to_owned();
    }
    // Some stores encode a space as a plus here.
    percent_encoding::percent_decode_str(&key.replace('+', " ")).decode_utf8_lossy().into_owned()
}

fn age_of(record: &Record, name: &str) -> Option<Duration> {
    let at = DateTime::parse_from_rfc3339(text_of(record, name)?).ok()?;
    Some((Utc::now() - at.with_timezone(&Utc)).to_std().unwrap_or_default())
}
