//! Uploads: `POST` and `PUT /object/{bucket}/{key}`, and with a signed URL.
//!
//! Order: token → key → bucket rules → the caller's permission (their own INSERT, undone) → bytes to a new
//! version, counted → row as service_role under the key's lock → the old version goes.

use actix_multipart::Multipart;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::backend::NewFile;
use super::error::StorageError;
use super::key::{ObjectKey, mime_allowed};
use super::queries::{self, Bucket, NewObject};
use super::signed::Scope;
use super::{Storage, bucket_and_key};
use crate::jwt::caller::Caller;

/// Most form fields beside the file, and the most bytes each may hold.
const MAX_FIELDS: usize = 10;
const MAX_FIELD_BYTES: usize = 1024 * 1024;

/// What a request says of its file.
struct Described {
    mime: String,
    cache_control: String,
    user_metadata: Value,
}

/// `POST`: a new object, or any with `x-upsert: true`. Answers `{Id, Key}`.
pub async fn insert(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    let upsert = header_text(&request, "x-upsert").is_some_and(|v| v == "true");
    upload(&storage, &request, body, upsert, "storage.object.upload").await
}

/// `PUT`: an object, there before or not.
pub async fn replace(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    upload(&storage, &request, body, true, "storage.object.upload_update").await
}

async fn upload(
    storage: &Storage,
    request: &HttpRequest,
    body: web::Payload,
    upsert: bool,
    operation: &str,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(request)?;
    let (bucket, key) = bucket_and_key(request)?;
    test_upload(storage, request, &caller, &bucket, &key, upsert, operation).await?;
    let owner = caller.subject();
    let id = store(storage, request, body, &bucket, &key, owner.as_deref(), upsert).await?;
    Ok(HttpResponse::Ok().json(json!({ "Id": id, "Key": format!("{bucket}/{}", key.as_str()) })))
}

/// `PUT /object/upload/sign/{bucket}/{key}?token=`: the token is the permission. Answers `{Key}`.
pub async fn upload_signed(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = bucket_and_key(&request)?;
    let token = token_in_query(&request)?;
    let path = format!("{bucket}/{}", key.as_str());
    let claims = storage.signer.verify(&token, Scope::Upload, &path)?;
    store(&storage, &request, body, &bucket, &key, claims.owner.as_deref(), claims.upsert).await?;
    Ok(HttpResponse::Ok().json(json!({ "Key": path })))
}

/// `?token=` of a signed URL.
pub(super) fn token_in_query(request: &HttpRequest) -> Result<String, StorageError> {
    url::form_urlencoded::parse(request.query_string().as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value.into_owned())
        .ok_or_else(|| StorageError::InvalidRequest("querystring must have required property 'token'".to_owned()))
}

/// Whether the caller may upload: their own INSERT, undone.
pub(super) async fn test_upload(
    storage: &Storage,
    request: &HttpRequest,
    caller: &Caller,
    bucket: &str,
    key: &ObjectKey,
    upsert: bool,
    operation: &str,
) -> Result<(), StorageError> {
    require_bucket(storage, bucket).await?;
    let tx = storage.as_caller(caller, request, operation).await?;
    let owner = caller.subject();
    let mime = header_text(request, "content-type").unwrap_or("application/octet-stream");
    let length = header_text(request, "content-length").and_then(|v| v.parse::<u64>().ok());
    let trial = NewObject {
        bucket,
        name: key.as_str(),
        owner: owner.as_deref(),
        version: "1",
        metadata: json!({ "mimetype": mime, "contentLength": length }),
        user_metadata: json!({}),
    };
    let tried = queries::insert_object(&tx, &trial, upsert).await;
    // Refused or not, the connection is as good as before.
    tx.rollback().await?;
    tried.map(drop)
}

async fn require_bucket(storage: &Storage, bucket: &str) -> Result<Bucket, StorageError> {
    let tx = storage.as_service().await?;
    let found = queries::find_bucket(&tx, bucket).await?;
    tx.rollback().await?;
    found.ok_or(StorageError::NoSuchBucket)
}

/// Writes the bytes and the row; the object's id.
async fn store(
    storage: &Storage,
    request: &HttpRequest,
    body: web::Payload,
    bucket: &str,
    key: &ObjectKey,
    owner: Option<&str>,
    upsert: bool,
) -> Result<uuid::Uuid, StorageError> {
    let rules = require_bucket(storage, bucket).await?;
    let limit = rules
        .file_size_limit
        .and_then(|l| u64::try_from(l).ok())
        .map_or(storage.file_size_limit, |l| l.min(storage.file_size_limit));
    let mut file = storage.files.create(bucket, key).await?;
    let content_type = header_text(request, "content-type").unwrap_or("application/octet-stream").to_owned();
    let (described, etag) = if content_type.to_ascii_lowercase().starts_with("multipart/form-data") {
        receive_form(Multipart::new(request.headers(), body), &rules, limit, &mut file).await?
    } else {
        if header_text(request, "content-length").and_then(|v| v.parse::<u64>().ok()).is_some_and(|n| n > limit) {
            return Err(StorageError::EntityTooLarge);
        }
        let described = Described {
            mime: content_type,
            cache_control: header_text(request, "cache-control").unwrap_or("no-cache").to_owned(),
            user_metadata: header_text(request, "x-metadata")
                .and_then(|v| STANDARD.decode(v).ok())
                .and_then(|bytes| serde_json::from_slice(&bytes).ok())
                .unwrap_or_else(|| json!({})),
        };
        check_mime(&described.mime, &rules)?;
        let etag = receive(body.map_err(unreadable), limit, &mut file).await?;
        (described, etag)
    };
    file.sync().await?;

    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let row = NewObject {
        bucket,
        name: key.as_str(),
        owner,
        version: &file.version.to_string(),
        metadata: json!({
            "eTag": etag,
            "size": file.size,
            "mimetype": described.mime,
            "cacheControl": described.cache_control,
            "lastModified": now,
            "contentLength": file.size,
            "httpStatusCode": 200,
        }),
        user_metadata: described.user_metadata,
    };
    let tx = storage.as_service_landing(file.detected()).await?;
    queries::lock_key(&tx, bucket, key.as_str()).await?;
    let before = queries::find_object(&tx, bucket, key.as_str()).await?;
    queries::insert_object(&tx, &row, upsert).await?;
    let id = queries::find_object(&tx, bucket, key.as_str()).await?.ok_or(StorageError::NoSuchKey)?.id;
    tx.commit().await?;
    file.keep();
    if let Some(version) = before.and_then(|object| object.version)
        && let Err(error) = storage.files.remove(bucket, key, &version).await
    {
        tracing::warn!(bucket, key = key.as_str(), version, %error, "a replaced file stays behind");
    }
    Ok(id)
}

fn check_mime(mime: &str, rules: &Bucket) -> Result<(), StorageError> {
    match &rules.allowed_mime_types {
        Some(list) if !list.is_empty() && !mime_allowed(mime, list) => {
            Err(StorageError::InvalidMimeType(mime.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Writes a stream to the file, counting; the ETag (with quotes).
async fn receive<B: AsRef<[u8]>>(
    body: impl Stream<Item = Result<B, StorageError>>,
    limit: u64,
    file: &mut NewFile,
) -> Result<String, StorageError> {
    let mut digest = Sha256::new();
    let mut body = std::pin::pin!(body);
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if file.size + chunk.as_ref().len() as u64 > limit {
            return Err(StorageError::EntityTooLarge);
        }
        digest.update(chunk.as_ref());
        file.write(chunk.as_ref()).await?;
    }
    Ok(format!("\"{}\"", hex::encode(&digest.finalize()[..16])))
}

/// A form: fields first, then one file under any name.
async fn receive_form(
    mut form: Multipart,
    rules: &Bucket,
    limit: u64,
    file: &mut NewFile,
) -> Result<(Described, String), StorageError> {
    let mut cache_control = "no-cache".to_owned();
    let mut user_metadata = json!({});
    let mut declared_type = None;
    for _ in 0..=MAX_FIELDS {
        let Some(field) = form.try_next().await.map_err(unreadable)? else { break };
        let disposition = field.content_disposition().cloned();
        let name = disposition.as_ref().and_then(|d| d.get_name()).unwrap_or("").to_owned();
        let is_file = disposition.as_ref().is_some_and(|d| d.get_filename().is_some()) || name.is_empty();
        if is_file {
            let own_type = field.content_type().map_or("application/octet-stream".to_owned(), ToString::to_string);
            let mime = declared_type.unwrap_or(own_type);
            check_mime(&mime, rules)?;
            let etag = receive(field.map_err(unreadable), limit, file).await?;
            return Ok((Described { mime, cache_control, user_metadata }, etag));
        }
        let text = field_text(field).await?;
        match name.as_str() {
            "cacheControl" if text.chars().any(char::is_control) => {
                return Err(StorageError::InvalidRequest("Invalid cacheControl".to_owned()));
            }
            "cacheControl" => cache_control = format!("max-age={text}"),
            "metadata" | "userMetadata" => {
                user_metadata = serde_json::from_str(&text)
                    .map_err(|_| StorageError::InvalidRequest("Invalid metadata: not JSON".to_owned()))?;
            }
            "contentType" => declared_type = Some(text),
            _ => {}
        }
    }
    Err(StorageError::InvalidRequest("No content provided".to_owned()))
}

async fn field_text(mut field: actix_multipart::Field) -> Result<String, StorageError> {
    let bytes = field.bytes(MAX_FIELD_BYTES).await.map_err(|_| StorageError::EntityTooLarge)?.map_err(unreadable)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| StorageError::InvalidRequest("A form field is not UTF-8".to_owned()))
}

fn unreadable(error: impl std::fmt::Display) -> StorageError {
    StorageError::InvalidRequest(format!("The body could not be read: {error}"))
}

pub(super) fn header_text<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    request.headers().get(header::HeaderName::from_bytes(name.as_bytes()).ok()?)?.to_str().ok()
}
