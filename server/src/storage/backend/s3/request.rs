//! A request to the store: signed, with deadlines, and retried if that is safe.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::Utc;
use futures_util::stream;
use reqwest::{Method, Response, StatusCode, Url};
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Secret;
use crate::db::with_causes;
use crate::outgoing;
use crate::storage::backend::Place;
use crate::storage::config::S3StoreConfig;
use crate::storage::error::StorageError;
use crate::storage::s3::xml;
use crate::storage::sigv4::{ALGORITHM, SigningKey, UNSIGNED, encoded, encoded_path};

/// Deadline for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request waits for a free connection before it is refused.
const SOCKET_WAIT: Duration = Duration::from_secs(5);
/// How many attempts a request has, and the first pause between them.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// The slowest transfer that deadlines allow for, in bytes per second.
const SLOWEST: u64 = 256 << 10;
/// Bytes read from the spool at a time.
const PIECE: u64 = 256 << 10;
/// How much of an error response is read.
const LONGEST_REFUSAL: usize = 64 << 10;

/// The client of a store.
#[derive(Debug)]
pub struct Stores {
    http: reqwest::Client,
    /// The bucket's URL; keys are appended.
    base: Url,
    /// The host name as signed.
    host: String,
    bucket: String,
    region: String,
    access_key: String,
    secret_key: Secret,
    session_token: Option<Secret>,
    tenant: String,
    timeout: Duration,
    sockets: Arc<Semaphore>,
    part_size: u64,
    queue_size: usize,
    spool: PathBuf,
}

/// A permit for a connection to the store, held while an answer is read.
pub type Held = OwnedSemaphorePermit;

/// A request body. Every kind can be sent again.
#[derive(Clone, Debug)]
pub enum Body {
    Empty,
    Whole(Bytes),
    /// A part of a spooled body.
    Spooled {
        file: Arc<File>,
        first: u64,
        length: u64,
    },
}

impl Body {
    fn length(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Spooled { length, .. } => *length,
        }
    }

    fn sent(&self) -> reqwest::Body {
        match self {
            Self::Empty => reqwest::Body::from(Bytes::new()),
            Self::Whole(bytes) => reqwest::Body::from(bytes.clone()),
            Self::Spooled { file, first, length } => {
                let end = first + length;
                let pieces = stream::try_unfold((Arc::clone(file), *first), move |(file, at)| async move {
                    if at >= end {
                        return Ok::<_, std::io::Error>(None);
                    }
                    let (file, piece) = read_piece(file, at, end.min(at + PIECE)).await?;
                    let next = at + piece.len() as u64;
                    Ok(Some((piece, (file, next))))
                });
                reqwest::Body::wrap_stream(pieces)
            }
        }
    }
}

/// Reads a range of a file off the worker threads.
pub async fn read_piece(file: Arc<File>, first: u64, end: u64) -> std::io::Result<(Arc<File>, Bytes)> {
    let read = tokio::task::spawn_blocking(move || {
        let mut piece = vec![0; usize::try_from(end - first).unwrap_or(0)];
        file.read_exact_at(&mut piece, first)?;
        Ok((file, Bytes::from(piece)))
    });
    read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

/// A request without its body.
#[derive(Clone, Debug)]
pub struct Asked {
    method: Method,
    key: String,
    parameters: Vec<(String, String)>,
    headers: Vec<(&'static str, String)>,
    /// Deadline for sending the request and receiving the response head.
    within: Option<Duration>,
}

impl Asked {
    /// A request about an object or, with an empty key, about the bucket.
    pub fn new(method: Method, key: &str) -> Self {
        Self { method, key: key.to_owned(), parameters: Vec::new(), headers: Vec::new(), within: None }
    }

    pub fn parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets a longer deadline.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }
}

impl Stores {
    pub fn new(config: &S3StoreConfig) -> anyhow::Result<Self> {
        let http = outgoing::client()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(config.max_sockets.min(32))
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let mut base = config.endpoint.clone();
        if config.path_style {
            base.path_segments_mut()
                .map_err(|()| anyhow::anyhow!("STORAGE_S3_ENDPOINT has no path"))?
                .pop_if_empty()
                .push(&config.bucket);
        } else {
            let host = base.host_str().unwrap_or_default().to_owned();
            base.set_host(Some(&format!("{}.{host}", config.bucket)))?;
        }
        let host = base.host_str().unwrap_or_default().to_owned();
        let host = base.port().map_or(host.clone(), |port| format!("{host}:{port}"));
        Ok(Self {
            http,
            base,
            host,
            bucket: config.bucket.clone(),
            region: config.region.clone(),
            access_key: config.access_key.clone(),
            secret_key: config.secret_key.clone(),
            session_token: config.session_token.clone(),
            tenant: config.tenant.clone(),
            timeout: config.timeout,
            sockets: Arc::new(Semaphore::new(config.max_sockets)),
            part_size: config.part_size,
            queue_size: config.queue_size,
            spool: config.spool.clone(),
        })
    }

    pub fn key(&self, place: &Place) -> String {
        format!("{}{}", self.prefix(), place.as_str())
    }

    /// Prefix of all our keys.
    pub fn prefix(&self) -> String {
        if self.tenant.is_empty() { String::new() } else { format!("{}/", self.tenant) }
    }

    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    pub fn part_size(&self) -> u64 {
        self.part_size
    }

    pub fn queue_size(&self) -> usize {
        self.queue_size
    }

    pub fn spool(&self) -> &PathBuf {
        &self.spool
    }

    /// Deadline for transferring this many bytes.
    pub fn time_for(&self, bytes: u64) -> Duration {
        self.timeout + Duration::from_secs(bytes / SLOWEST)
    }

    /// Deadline of a request until its response head is there, and again for the rest of a short answer.
    fn limit(&self, asked: &Asked, body: &Body) -> Duration {
        asked.within.unwrap_or_else(|| self.time_for(body.length()))
    }

    /// The response head, whatever its status. Retries after errors of the store or the network. All our requests may be
    /// repeated, because each version has a single writer.
    pub async fn send(&self, asked: &Asked, body: &Body) -> Result<(Response, Held), StorageError> {
        let held = tokio::time::timeout(SOCKET_WAIT, Arc::clone(&self.sockets).acquire_owned()).await;
        let held = held.map_err(|_| StorageError::Unavailable("too many requests to the file store".to_owned()))?;
        let held = held.map_err(|error| StorageError::Internal(error.to_string()))?;
        let limit = self.limit(asked, body);
        let mut pause = PAUSE;
        for attempt in 1.. {
            let sent = tokio::time::timeout(limit, self.send_once(asked, body)).await;
            let fault = match sent {
                Ok(Ok(response)) if is_passing(response.status()) && attempt < TRIES => {
                    format!("status {}", response.status())
                }
                Ok(Ok(response)) => return Ok((response, held)),
                // A timeout is not retried, because a client is waiting.
                Err(_) => return Err(late()),
                Ok(Err(error)) if error.is_timeout() || attempt == TRIES => return Err(transport(error)),
                Ok(Err(error)) => with_causes(&error),
            };
            tracing::debug!(attempt, fault, "a request to the file store is made again");
            tokio::time::sleep(pause).await;
            pause *= 4;
        }
        Err(StorageError::Internal("no request was made".to_owned()))
    }

    /// The whole answer to a request that must succeed. Some stores send status 200 first and an error in the body.
    pub async fn answer(&self, asked: &Asked, body: &Body) -> Result<Bytes, StorageError> {
        let (response, _held) = self.send(asked, body).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        // A store that sends 200 first does its work now.
        let bytes = whole(response, self.limit(asked, body)).await?;
        match said_error(&bytes) {
            Some(error) => Err(error),
            None => Ok(bytes),
        }
    }

    /// The next bytes of an answer. Each has the client's timeout; time in which nobody asks for them does not count.
    pub async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, StorageError> {
        let read = tokio::time::timeout(self.timeout, response.chunk()).await;
        read.map_err(|_| late())?.map_err(transport)
    }

    /// The error in an unsuccessful response.
    pub async fn refusal(&self, mut response: Response) -> StorageError {
        let status = response.status();
        let mut text = Vec::new();
        let read = async {
            while let Ok(Some(piece)) = response.chunk().await {
                text.extend_from_slice(&piece);
                if text.len() > LONGEST_REFUSAL {
                    break;
                }
            }
        };
        // The status says enough if the rest does not come.
        let _ = tokio::time::timeout(self.timeout, read).await;
        let said = said_error(&text);
        match status.as_u16() {
            404 if !matches!(said, Some(StorageError::Internal(_))) => StorageError::NoSuchKey,
            429 | 500.. => StorageError::Unavailable(format!("the file store answers {status}")),
            _ => said.unwrap_or_else(|| StorageError::Internal(format!("the file store answers {status}"))),
        }
    }

    async fn send_once(&self, asked: &Asked, body: &Body) -> reqwest::Result<Response> {
        let timestamp = Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
        let payload = match body {
            Body::Empty => hex::encode(Sha256::digest(b"")),
            Body::Whole(bytes) => hex::encode(Sha256::digest(bytes)),
            Body::Spooled { .. } => UNSIGNED.to_owned(),
        };
        let root = self.base.path().trim_end_matches('/');
        let path = if asked.key.is_empty() {
            if root.is_empty() { "/".to_owned() } else { root.to_owned() }
        } else {
            format!("{root}/{}", encoded_path(&asked.key))
        };
        let mut pairs: Vec<(String, String)> =
            asked.parameters.iter().map(|(name, value)| (encoded(name), encoded(value))).collect();
        pairs.sort();
        let query = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let mut headers = asked.headers.clone();
        headers.push(("host", self.host.clone()));
        headers.push(("x-amz-content-sha256", payload.clone()));
        headers.push(("x-amz-date", timestamp.clone()));
        if let Some(token) = &self.session_token {
            headers.push(("x-amz-security-token", token.reveal().to_owned()));
        }
        headers.sort();
        let signed = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let canonical = format!("{}\n{path}\n{query}\n{lines}\n{signed}\n{payload}", asked.method);
        let key = SigningKey::new(self.secret_key.reveal(), &timestamp, &self.region);
        let signature = key.sign(ALGORITHM, &hex::encode(Sha256::digest(canonical)));
        let credential = format!("{}/{}", self.access_key, key.scope());
        let mut url = self.base.clone();
        url.set_path(&path);
        url.set_query((!query.is_empty()).then_some(&query));
        let mut request = self.http.request(asked.method.clone(), url).header(
            "authorization",
            format!("{ALGORITHM} Credential={credential},SignedHeaders={signed},Signature={signature}"),
        );
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            request = request.header(*name, value);
        }
        if !matches!(asked.method, Method::GET | Method::HEAD | Method::DELETE) {
            request = request.header("content-length", body.length()).body(body.sent());
        }
        request.send().await
    }
}

/// Whether the store may succeed a moment later.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

pub fn content_md5(md5: &[u8]) -> String {
    STANDARD.encode(md5)
}

/// All bytes of a short answer within a deadline.
pub async fn whole(response: Response, limit: Duration) -> Result<Bytes, StorageError> {
    tokio::time::timeout(limit, response.bytes()).await.map_err(|_| late())?.map_err(transport)
}

fn late() -> StorageError {
    StorageError::Unavailable("the file store did not answer in time".to_owned())
}

pub fn transport(error: reqwest::Error) -> StorageError {
    StorageError::Unavailable(format!("the file store: {}", with_causes(&error.without_url())))
}

pub fn unreadable(_: StorageError) -> StorageError {
    StorageError::Unavailable("the file store's answer cannot be read".to_owned())
}

/// The error in a response body, if it is one.
pub fn said_error(text: &[u8]) -> Option<StorageError> {
    let (_, said) = xml::read(text, "Error", "none").ok()?;
    let code = xml::text_of(&said, "Code")?;
    let message = xml::text_of(&said, "Message").unwrap_or_default();
    Some(match code {
        "NoSuchKey" => StorageError::NoSuchKey,
        "SlowDown" | "InternalError" | "ServiceUnavailable" | "RequestTimeout" => {
            StorageError::Unavailable(format!("the file store answers {code}"))
        }
        _ => StorageError::Internal(format!("the file store answers {code}: {message}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_in_answers_of_any_status() {
        let text = b"<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>x</Message></Error>";
        assert!(matches!(said_error(text), Some(StorageError::Unavailable(_))));
        let text = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
        assert!(matches!(said_error(text), Some(StorageError::Internal(_))));
        assert!(said_error(b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>").is_none());
        assert!(said_error(b"").is_none());
    }
}
