//! Reads an upload's body: a file and its metadata.
//!
//! A raw body is the file itself. In a form, fields come first, then one file under any name. Anything after the file is ignored.

use std::pin::Pin;

use actix_multipart::{Field, Multipart};
use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{self, Bytes};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::backend::{NewFile, StoredFile};
use super::error::StorageError;
use super::key::{self, ObjectKey, mime_allowed};
use super::queries::Bucket;
use super::{Storage, header_text};
use crate::http::bodies;
use crate::http::client::client_address;
use crate::http::json::{JsonFault, parse_json};

/// How many form fields besides the file are read, and maximum bytes of each.
const MAX_FIELDS: usize = 10;
const MAX_FIELD_BYTES: usize = 1024 * 1024;

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, StorageError>>>>;

/// An upload whose file has not been read yet.
pub struct Incoming {
    pub mime: String,
    pub cache_control: String,
    pub user_metadata: Option<Value>,
    pub robots: Option<String>,
    /// The codings in which the file's bytes are.
    pub content_encoding: Option<String>,
    /// The announced `Content-Length`; for a form it includes everything around the file.
    pub declared_length: Option<u64>,
    /// The file's length, if known in advance.
    pub length: Option<u64>,
    pub(super) body: Body,
}

impl Incoming {
    /// Reads up to the beginning of the file.
    pub async fn of_request(request: &HttpRequest, body: web::Payload) -> Result<Self, StorageError> {
        let robots = header_text(request, "x-robots-tag").map(str::to_owned);
        if let Some(text) = &robots {
            key::check_robots_tag(text)?;
        }
        let mime = header_text(request, "content-type").filter(|text| !text.is_empty());
        if mime.is_some_and(|text| !key::is_media_type(text)) {
            return Err(StorageError::NotJson);
        }
        let mime = mime.unwrap_or("application/octet-stream").to_owned();
        let declared_length = header_text(request, "content-length").and_then(|v| v.parse().ok());
        if mime.to_ascii_lowercase().starts_with("multipart/form-data") {
            let form = Multipart::new(request.headers(), body);
            return Self::of_form(form, robots, declared_length).await;
        }
        Ok(Self {
            mime,
            content_encoding: coding_of(header_text(request, "content-encoding"))?,
            cache_control: header_text(request, "cache-control")
                .filter(|text| !text.is_empty())
                .unwrap_or("no-cache")
                .to_owned(),
            user_metadata: header_text(request, "x-metadata").and_then(metadata_in_header),
            robots,
            declared_length,
            length: declared_length,
            body: Box::pin(body.map_err(unreadable)),
        })
    }

    pub(super) async fn of_form(
        mut form: Multipart,
        robots: Option<String>,
        declared_length: Option<u64>,
    ) -> Result<Self, StorageError> {
        let mut cache_control = "no-cache".to_owned();
        let mut user_metadata = None;
        let mut declared_type = None;
        let mut content_encoding = None;
        let mut fields = 0;
        while let Some(field) = form.try_next().await.map_err(unreadable)? {
            let disposition = field.content_disposition().cloned();
            let name = disposition.as_ref().and_then(|d| d.get_name()).unwrap_or("").to_owned();
            // As the reference's parser understands and shows types: without parameters.
            let own_type = field.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let own_type = own_type.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
            let is_file = disposition.as_ref().is_some_and(|d| d.get_filename().is_some())
                || name.is_empty()
                || own_type.as_deref() == Some("application/octet-stream");
            if is_file {
                let own_type = own_type.unwrap_or_else(|| "text/plain".to_owned());
                // The form is kept with its field, which reads from it.
                let body = futures_util::stream::try_unfold((field, form), |(mut field, form)| async move {
                    let chunk = field.try_next().await.map_err(unreadable)?;
                    Ok(chunk.map(|chunk| (chunk, (field, form))))
                });
                return Ok(Self {
                    mime: declared_type.unwrap_or(own_type),
                    cache_control,
                    user_metadata,
                    robots,
                    content_encoding,
                    declared_length,
                    length: None,
                    body: Box::pin(body),
                });
            }
            fields += 1;
            if fields > MAX_FIELDS {
                continue;
            }
            let text = field_text(field, MAX_FIELD_BYTES).await?;
            match name.as_str() {
                "cacheControl" if text.chars().any(char::is_control) => {
                    return Err(StorageError::InvalidRequest("Invalid cacheControl".to_owned()));
                }
                "cacheControl" if !text.is_empty() => cache_control = format!("max-age={text}"),
                "metadata" | "userMetadata" => {
                    user_metadata = match parse_json(text.as_bytes()) {
                        Ok(metadata) => Some(metadata),
                        // As in the reference, invalid JSON is ignored.
                        Err(JsonFault::Syntax(_)) => None,
                        Err(JsonFault::TooManyValues) => return Err(StorageError::EntityTooLarge),
                    }
                }
                "contentType" if !text.is_empty() => declared_type = Some(text),
                "contentEncoding" => content_encoding = key::content_encoding(&text)?,
                _ => {}
            }
        }
        Err(StorageError::InvalidRequest("No content provided".to_owned()))
    }

    /// The metadata that policies may check before the bytes arrive.
    pub fn announced(&self) -> Value {
        json!({ "mimetype": self.mime, "contentLength": self.declared_length })
    }

    /// Checks the bucket's restrictions as far as possible before the bytes arrive. Returns the size limit.
    pub fn check(&self, storage: &Storage, bucket: &Bucket, key: &ObjectKey) -> Result<u64, StorageError> {
        let mut limit = storage.size_limit(bucket, key);
        if !key.is_placeholder() {
            check_mime(&self.mime, bucket)?;
        }
        if storage.config.standard_size_limit > 0 {
            limit = limit.min(storage.config.standard_size_limit);
        }
        if self.length.is_some_and(|length| length > limit) {
            return Err(StorageError::EntityTooLarge);
        }
        Ok(limit)
    }

    /// Writes the bytes, at most `limit` of them.
    pub async fn store(mut self, mut file: NewFile, limit: u64) -> Result<(StoredFile, Described), StorageError> {
        while let Some(chunk) = self.body.next().await {
            let chunk = chunk?;
            if file.size() + chunk.len() as u64 > limit {
                return Err(StorageError::EntityTooLarge);
            }
            file.write(chunk).await?;
        }
        if self.length.is_some_and(|length| length != file.size()) {
            return Err(unreadable("it ended early"));
        }
        let described = Described {
            mime: self.mime,
            cache_control: self.cache_control,
            robots: self.robots,
            content_encoding: self.content_encoding,
            user_metadata: self.user_metadata.map_or_else(|| json!({}), spread),
        };
        Ok((file.finish().await?, described))
    }
}

/// Maximum bytes of an upload in memory: those collected for the next write, and those that arrived meanwhile.
const HELD: usize = 1 << 20;

impl Storage {
    /// Lifts the body size limit of `request`, because its body is written as it arrives. Call it only after the sender is known
    /// to be permitted, so that strangers cannot use up the room.
    ///
    /// Errors: too many such requests at once, overall or from this client.
    pub async fn hand_on(&self, request: &HttpRequest) -> Result<(), StorageError> {
        let announced = header_text(request, "content-length").and_then(|length| length.parse().ok());
        let client = client_address(request, &self.config.trusted_proxies);
        if bodies::hand_on(request, client, announced.unwrap_or(HELD).min(HELD)).await {
            return Ok(());
        }
        Err(StorageError::Unavailable("too many uploads at once".to_owned()))
    }
}

/// The metadata that a request gave its file.
pub struct Described {
    pub mime: String,
    pub cache_control: String,
    pub robots: Option<String>,
    pub content_encoding: Option<String>,
    pub user_metadata: Value,
}

impl Described {
    /// The row's metadata.
    pub fn metadata(&self, etag: &str, size: u64) -> Value {
        let mut metadata = json!({
            "eTag": etag,
            "size": size,
            "mimetype": self.mime,
            "cacheControl": self.cache_control,
            "lastModified": now(),
            "contentLength": size,
            "httpStatusCode": 200,
        });
        if let Some(robots) = &self.robots {
            metadata["xRobotsTag"] = json!(robots);
        }
        if let Some(codings) = &self.content_encoding {
            metadata["contentEncoding"] = json!(codings);
        }
        metadata
    }
}

/// The codings in a header, if it is there.
pub fn coding_of(header: Option<&str>) -> Result<Option<String>, StorageError> {
    header.map_or(Ok(None), key::content_encoding)
}

/// User metadata as an object, like JavaScript's spread: a list by its indices, a text by its characters.
fn spread(value: Value) -> Value {
    let numbered =
        |values: Vec<Value>| values.into_iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect();
    match value {
        Value::Object(_) => value,
        Value::Array(values) => Value::Object(numbered(values)),
        Value::String(text) => Value::Object(numbered(text.chars().map(|c| c.to_string().into()).collect())),
        Value::Null | Value::Bool(_) | Value::Number(_) => json!({}),
    }
}

/// The current time in the format of metadata.
pub fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

pub fn check_mime(mime: &str, bucket: &Bucket) -> Result<(), StorageError> {
    match &bucket.allowed_mime_types {
        Some(list) if !list.is_empty() && !mime_allowed(mime, list) => {
            Err(StorageError::InvalidMimeType(mime.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Base64 as JavaScript decodes it: of either alphabet, with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// User metadata in a header: base64 of JSON. Anything else is ignored.
pub fn metadata_in_header(text: &str) -> Option<Value> {
    let text = text.replace('-', "+").replace('_', "/");
    serde_json::from_slice(&LENIENT.decode(text.trim()).ok()?).ok()
}

/// A form field that is not a file, at most `most` bytes long.
pub async fn field_text(mut field: Field, most: usize) -> Result<String, StorageError> {
    let bytes = field.bytes(most).await.map_err(|_| StorageError::EntityTooLarge)?.map_err(unreadable)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| StorageError::InvalidRequest("A form field is not UTF-8".to_owned()))
}

pub fn unreadable(error: impl std::fmt::Display) -> StorageError {
    StorageError::InvalidRequest(format!("The body could not be read: {error}"))
}
