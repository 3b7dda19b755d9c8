//! Files in a bucket of an S3-compatible server.
//!
//! A short body is sent in one request. A longer one is spooled to an unnamed file and sent in parts while the client still
//! uploads. So a slow client holds no memory and no connection to the store, and a failed part can be sent again. Every request
//! has deadlines: if the store hangs or disconnects, the answer is 503.
//!
//! Built on `reqwest` and the signatures that the S3 protocol needs anyway. `object_store` does not accept keys with an empty
//! segment (`a//b`), which Supabase allows, and other clients bring a second HTTP stack.

mod file;
mod listing;
mod request;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use md5::{Digest, Md5};
use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::file::S3File;
use self::request::{Asked, Body, Held, Stores};
use super::write_buffer::BufferBudget;
use super::{Listed, OpenFile, Place};
use crate::storage::config::S3StoreConfig;
use crate::storage::error::StorageError;
use crate::storage::s3::xml;
use crate::storage::sigv4::encoded_path;
use crate::storage::sniff::{self, HEAD_BYTES};

/// Keys removed per request.
const REMOVE_PAGE: usize = 1000;
/// Maximum size of a part, and of an object copied in one request, in bytes.
const LONGEST_COPY: u64 = 5 << 30;
/// Minimum size of a part that is not the last, in bytes.
const LEAST_PART: u64 = 5 << 20;
/// A multipart upload counts as abandoned at this many times the minimum age of files, because another instance may be writing it
/// for hours.
const ABORT_AFTER: u32 = 24;
/// How many joins of small parts pass through this process at a time: long ones, each of which holds some parts of the store's size in
/// memory, and short ones, each of which holds the whole object.
const LONG_JOINS: usize = 2;
const SHORT_JOINS: usize = 8;
/// How long a join waits for others. It goes on without its client.
const JOIN_WAIT: Duration = Duration::from_secs(10 * 60);
/// How often an interrupted download is resumed.
const RESUMPTIONS: usize = 3;

/// A bucket of an S3-compatible server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct S3Store {
    stores: Arc<Stores>,
    room: BufferBudget,
    long_joins: Arc<Semaphore>,
    short_joins: Arc<Semaphore>,
    /// Ids of multipart uploads that this process is writing.
    under_way: Arc<Mutex<HashSet<String>>>,
}

/// The store's metadata of an object.
struct Known {
    size: u64,
    etag: String,
}

impl S3Store {
    pub fn new(config: &S3StoreConfig) -> anyhow::Result<Self> {
        Ok(Self {
            stores: Arc::new(Stores::new(config)?),
            room: BufferBudget::default(),
            long_joins: Arc::new(Semaphore::new(LONG_JOINS)),
            short_joins: Arc::new(Semaphore::new(SHORT_JOINS)),
            under_way: Arc::default(),
        })
    }

    pub fn create(&self, place: &Place) -> S3File {
        S3File::new(self.clone(), place.clone())
    }

    pub async fn open(&self, place: &Place, range: Option<(u64, u64)>) -> Result<Option<OpenFile>, StorageError> {
        let asked = self.stores.key(place);
        let Some((response, held)) = self.read(&asked, range, None).await? else { return Ok(None) };
        // Without a length, an answer that was cut off would look complete.
        let length = response.content_length().ok_or_else(no_size)?;
        let (first, size) = match range {
            Some((first, _)) => (first, whole_size(&response).unwrap_or(0)),
            None => (0, length),
        };
        if range.is_some_and(|(first, last)| length != last - first + 1) {
            return Err(super::wrong_size());
        }
        let etag = header(&response, "etag");
        let state = Download {
            store: self.clone(),
            asked,
            response,
            held: Some(held),
            etag,
            at: first,
            end: first + length,
            tries: 0,
        };
        let bytes = stream::try_unfold(state, |mut download| async move {
            let piece = download.next().await?;
            Ok(piece.map(|piece| (piece, download)))
        });
        Ok(Some(OpenFile { size, bytes: Box::pin(bytes) }))
    }

    /// A GET whose body has not been read yet; `None` if the object does not exist.
    async fn read(
        &self,
        key: &str,
        range: Option<(u64, u64)>,
        etag: Option<&str>,
    ) -> Result<Option<(reqwest::Response, Held)>, StorageError> {
        let mut asked = Asked::new(Method::GET, key);
        if let Some((first, last)) = range {
            asked = asked.header("range", format!("bytes={first}-{last}"));
        }
        if let Some(etag) = etag {
            asked = asked.header("if-match", etag);
        }
        let (response, held) = self.stores.send(&asked, &Body::Empty).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK if range.is_none() => Ok(Some((response, held))),
            StatusCode::PARTIAL_CONTENT => Ok(Some((response, held))),
            _ => Err(self.stores.refusal(response).await),
        }
    }

    async fn known(&self, key: &str) -> Result<Option<Known>, StorageError> {
        let (response, _held) = self.stores.send(&Asked::new(Method::HEAD, key), &Body::Empty).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => {
                let size = header(&response, "content-length").and_then(|text| text.parse().ok());
                let size = size.ok_or_else(no_size)?;
                Ok(Some(Known { size, etag: header(&response, "etag").unwrap_or_default() }))
            }
            _ => Err(self.stores.refusal(response).await),
        }
    }

    /// Copies within the store.
    pub async fn copy(&self, from: &Place, to: &Place) -> Result<bool, StorageError> {
        let (from, to) = (self.stores.key(from), self.stores.key(to));
        let Some(known) = self.known(&from).await? else { return Ok(false) };
        if known.size <= LONGEST_COPY {
            return match self.copy_whole(&from, &to, known.size, Some(&known.etag)).await {
                Ok(()) => Ok(true),
                Err(StorageError::NoSuchKey) => Ok(false),
                Err(error) => Err(error),
            };
        }
        let mut upload = self.begin_parts(&to).await?;
        let mut first = 0;
        while first < known.size {
            let last = (first + LONGEST_COPY).min(known.size) - 1;
            upload.copy(&from, Some((first, last)), last - first + 1).await?;
            first = last + 1;
        }
        upload.complete().await?;
        Ok(true)
    }

    /// Copies an object of at most [`LONGEST_COPY`] bytes in one request.
    async fn copy_whole(&self, from: &str, to: &str, size: u64, etag: Option<&str>) -> Result<(), StorageError> {
        let mut asked = Asked::new(Method::PUT, to)
            .header("x-amz-copy-source", self.copy_source(from))
            .within(self.stores.time_for(size));
        if let Some(etag) = etag {
            asked = asked.header("x-amz-copy-source-if-match", etag);
        }
        self.stores.answer(&asked, &Body::Empty).await.map(drop)
    }

    fn copy_source(&self, key: &str) -> String {
        encoded_path(&format!("/{}/{key}", self.stores.bucket()))
    }

    /// Joins parts, with their sizes, into one object. Parts that are large enough are copied by the store; smaller ones are downloaded
    /// and uploaded together.
    pub async fn assemble(&self, parts: &[(Place, u64)], to: &Place) -> Result<&'static str, StorageError> {
        let joined = self.join(parts, &self.stores.key(to)).await;
        joined.map_err(|error| if matches!(error, StorageError::NoSuchKey) { gone() } else { error })
    }

    async fn join(&self, parts: &[(Place, u64)], to: &str) -> Result<&'static str, StorageError> {
        let keys: Vec<String> = parts.iter().map(|(part, _)| self.stores.key(part)).collect();
        let sizes: Vec<u64> = parts.iter().map(|(_, size)| *size).collect();
        let head = match (keys.first(), sizes.first()) {
            (Some(first), Some(size)) if *size > 0 => {
                self.gather(first, Some((0, (*size).min(HEAD_BYTES as u64) - 1))).await?
            }
            _ => Vec::new(),
        };
        let whole: u64 = sizes.iter().sum();
        if let ([only], 1..=LONGEST_COPY) = (keys.as_slice(), whole) {
            self.copy_whole(only, to, whole, None).await?;
            return Ok(sniff::detect(&head));
        }
        if whole <= LEAST_PART {
            let _turn = turn(&self.short_joins).await?;
            let mut bytes = Vec::with_capacity(usize::try_from(whole).unwrap_or(0));
            for (key, size) in keys.iter().zip(&sizes) {
                if *size > 0 {
                    bytes.extend(self.gather(key, None).await?);
                }
            }
            self.put(to, bytes.into()).await?;
            return Ok(sniff::detect(&head));
        }
        let is_copied = |size: &u64| (LEAST_PART..=LONGEST_COPY).contains(size);
        let _turn = match sizes.split_last() {
            Some((_, others)) if !others.iter().all(is_copied) => Some(turn(&self.long_joins).await?),
            _ => None,
        };
        let mut upload = self.begin_parts(to).await?;
        let mut waiting: Vec<u8> = Vec::new();
        for (number, (key, size)) in keys.iter().zip(&sizes).enumerate() {
            let is_last = number + 1 == keys.len();
            let mut at = 0;
            while at < *size {
                let rest = size - at;
                if waiting.is_empty() && (rest >= LEAST_PART || is_last) {
                    let length = rest.min(LONGEST_COPY);
                    let range = (length < *size).then_some((at, at + length - 1));
                    upload.copy(key, range, length).await?;
                    at += length;
                    continue;
                }
                let length = (self.stores.part_size() - waiting.len() as u64).min(rest);
                waiting.extend(self.gather(key, Some((at, at + length - 1))).await?);
                at += length;
                if waiting.len() as u64 >= self.stores.part_size() {
                    upload.put(std::mem::take(&mut waiting).into()).await?;
                }
            }
        }
        if !waiting.is_empty() {
            upload.put(waiting.into()).await?;
        }
        upload.complete().await?;
        Ok(sniff::detect(&head))
    }

    /// All bytes of a small object, or of a small range.
    async fn gather(&self, key: &str, range: Option<(u64, u64)>) -> Result<Vec<u8>, StorageError> {
        let (response, _held) = self.read(key, range, None).await?.ok_or_else(gone)?;
        let announced = response.content_length();
        let limit = self.stores.time_for(announced.unwrap_or(LEAST_PART));
        let bytes = request::whole(response, limit).await?;
        let wanted = range.map(|(first, last)| last - first + 1);
        if wanted.or(announced).is_some_and(|length| length != bytes.len() as u64) {
            return Err(StorageError::Unavailable("the store cut an answer off".to_owned()));
        }
        Ok(bytes.into())
    }

    /// Creates an object in one request.
    pub async fn put_short(&self, place: &Place, bytes: Bytes) -> Result<(), StorageError> {
        self.put(&self.stores.key(place), bytes).await
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StorageError> {
        let sum = request::content_md5(&Md5::digest(&bytes));
        let asked = Asked::new(Method::PUT, key).header("content-md5", sum);
        self.stores.answer(&asked, &Body::Whole(bytes)).await.map(drop)
    }

    pub async fn remove(&self, places: &[Place]) -> Vec<(Place, StorageError)> {
        let mut left = Vec::new();
        for page in places.chunks(REMOVE_PAGE) {
            match self.remove_page(page).await {
                Ok(refused) => left.extend(refused),
                Err(error) => {
                    let why = error.to_string();
                    error.log();
                    left.extend(page.iter().map(|place| (place.clone(), StorageError::Unavailable(why.clone()))));
                }
            }
        }
        left
    }

    async fn remove_page(&self, places: &[Place]) -> Result<Vec<(Place, StorageError)>, StorageError> {
        let gone = |status| matches!(status, StatusCode::NO_CONTENT | StatusCode::OK | StatusCode::NOT_FOUND);
        if let [only] = places {
            let asked = Asked::new(Method::DELETE, &self.stores.key(only));
            let (response, _held) = self.stores.send(&asked, &Body::Empty).await?;
            return if gone(response.status()) { Ok(Vec::new()) } else { Err(self.stores.refusal(response).await) };
        }
        let mut body = xml::Xml::new("Delete");
        for place in places {
            body.group("Object", |xml| {
                xml.element("Key", self.stores.key(place));
            });
        }
        body.element("Quiet", "true");
        let body = Bytes::from(body.into_text());
        let asked = Asked::new(Method::POST, "")
            .parameter("delete", "")
            .header("content-md5", request::content_md5(&Md5::digest(&body)));
        let answer = self.stores.answer(&asked, &Body::Whole(body)).await?;
        let (refused, _) = xml::read(&answer, "DeleteResult", "Error").map_err(request::unreadable)?;
        let known = |record: &xml::Record| {
            let key = xml::text_of(record, "Key")?;
            let place = places.iter().find(|place| self.stores.key(place) == key)?;
            let why = xml::text_of(record, "Message").unwrap_or_default().to_owned();
            (xml::text_of(record, "Code") != Some("NoSuchKey")).then(|| (place.clone(), StorageError::Unavailable(why)))
        };
        Ok(refused.iter().filter_map(known).collect())
    }

    pub async fn walk(
        &self,
        min_age: Duration,
        take: impl AsyncFnMut(Vec<Listed>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.abort_old_uploads(min_age.saturating_mul(ABORT_AFTER)).await?;
        self.list(min_age, take).await
    }
}

/// A body being downloaded. If the connection breaks, it is resumed at the same position.
struct Download {
    store: S3Store,
    asked: String,
    response: reqwest::Response,
    /// `None` while the download is being resumed.
    held: Option<Held>,
    etag: Option<String>,
    at: u64,
    end: u64,
    tries: usize,
}

impl Download {
    async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        while self.at < self.end {
            let fault = match self.store.stores.chunk(&mut self.response).await {
                Ok(Some(piece)) if piece.is_empty() => continue,
                Ok(Some(piece)) => {
                    self.at += piece.len() as u64;
                    return Ok(Some(piece));
                }
                Ok(None) => "the store ended an answer early".to_owned(),
                Err(StorageError::Unavailable(cause)) => cause,
                Err(error) => error.to_string(),
            };
            if self.tries == RESUMPTIONS {
                tracing::warn!(fault, "the file store cut a download off");
                return Err(std::io::Error::other(fault));
            }
            self.tries += 1;
            // Downloads that wait for each other's connections would all fail.
            self.held = None;
            let again = self.store.read(&self.asked, Some((self.at, self.end - 1)), self.etag.as_deref()).await;
            match again {
                Ok(Some((response, held))) => (self.response, self.held) = (response, Some(held)),
                Ok(None) => return Err(std::io::Error::other("the file went away while it was read")),
                Err(error) => return Err(std::io::Error::other(error.to_string())),
            }
        }
        Ok(None)
    }
}

/// Waits until a join may begin.
async fn turn(joins: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, StorageError> {
    let turn = tokio::time::timeout(JOIN_WAIT, Arc::clone(joins).acquire_owned()).await;
    let turn = turn.map_err(|_| StorageError::Unavailable("too many uploads are being joined".to_owned()))?;
    turn.map_err(|error| StorageError::Internal(error.to_string()))
}

fn gone() -> StorageError {
    StorageError::Internal("a part of an upload is gone".to_owned())
}

fn no_size() -> StorageError {
    StorageError::Unavailable("the store tells no size".to_owned())
}

/// The size of the whole object, from an answer with a range.
fn whole_size(response: &reqwest::Response) -> Option<u64> {
    header(response, "content-range")?.rsplit('/').next()?.parse().ok()
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
