//! Serving bytes: own, public and signed reads, ranges, conditional requests, and `info`.

use actix_web::body::SizedStream;
use actix_web::guard::{self, Guard};
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::error::StorageError;
use super::key::ObjectKey;
use super::queries::{self, Object};
use super::signed::Scope;
use super::upload::{header_text, token_in_query};
use super::{Storage, bucket_and_key};
use crate::jwt::caller::Caller;

/// Bytes read from a file at a time.
const CHUNK: usize = 64 * 1024;

/// GET and HEAD.
pub fn reads() -> impl Guard {
    guard::Any(guard::Get()).or(guard::Head())
}

/// Who may keep a copy of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Everyone,
    Caller,
    /// Whoever holds the link, until this time (unix seconds).
    Link(i64),
}

/// `/object/{bucket}/{key}` and `/object/authenticated/…`: public buckets are open, others as the caller sees.
pub async fn own(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = bucket_and_key(&request)?;
    let must_sign_in = request.path().contains("/object/authenticated/");
    let caller = match storage.require_caller(&request) {
        Ok(caller) => Some(caller),
        Err(error) if must_sign_in => return Err(error),
        Err(_) => None,
    };
    let (object, audience) = if is_public(&storage, &bucket).await? {
        (find_as_service(&storage, &bucket, &key).await?, Audience::Everyone)
    } else {
        let caller = caller.ok_or(StorageError::NoSuchBucket)?;
        (
            find_as(&storage, &caller, &request, &bucket, &key, "storage.object.get_authenticated").await?,
            Audience::Caller,
        )
    };
    send(&storage, &request, &bucket, &key, object, audience).await
}

/// `/object/public/…`: public buckets only.
pub async fn public(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = bucket_and_key(&request)?;
    if !is_public(&storage, &bucket).await? {
        return Err(StorageError::NoSuchBucket);
    }
    let object = find_as_service(&storage, &bucket, &key).await?;
    send(&storage, &request, &bucket, &key, object, Audience::Everyone).await
}

/// `/object/sign/…?token=`: the token is the permission.
pub async fn signed(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = bucket_and_key(&request)?;
    let token = token_in_query(&request)?;
    let claims = storage.signer.verify(&token, Scope::Download, &format!("{bucket}/{}", key.as_str()))?;
    let object = find_as_service(&storage, &bucket, &key).await?;
    send(&storage, &request, &bucket, &key, object, Audience::Link(claims.exp)).await
}

/// `GET /object/info/…`: the row, with the user's metadata.
pub async fn info(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = bucket_and_key(&request)?;
    let caller = storage.require_caller(&request)?;
    let object = find_as(&storage, &caller, &request, &bucket, &key, "object.get_authenticated_info").await?;
    let text = |name: &str| object.metadata.get(name).cloned().unwrap_or(Value::Null);
    Ok(HttpResponse::Ok().json(json!({
        "id": object.id,
        "name": object.name,
        "version": object.version,
        "bucket_id": bucket,
        "size": text("size"),
        "content_type": text("mimetype"),
        "cache_control": text("cacheControl"),
        "etag": text("eTag"),
        "metadata": object.user_metadata,
        "last_modified": object.updated_at,
        "created_at": object.created_at,
    })))
}

async fn is_public(storage: &Storage, bucket: &str) -> Result<bool, StorageError> {
    let tx = storage.as_service().await?;
    let found = queries::find_bucket(&tx, bucket).await?;
    tx.rollback().await?;
    Ok(found.ok_or(StorageError::NoSuchBucket)?.public)
}

async fn find_as_service(storage: &Storage, bucket: &str, key: &ObjectKey) -> Result<Object, StorageError> {
    let tx = storage.as_service().await?;
    let found = queries::find_object(&tx, bucket, key.as_str()).await?;
    tx.rollback().await?;
    found.ok_or(StorageError::NoSuchKey)
}

async fn find_as(
    storage: &Storage,
    caller: &Caller,
    request: &HttpRequest,
    bucket: &str,
    key: &ObjectKey,
    operation: &str,
) -> Result<Object, StorageError> {
    let tx = storage.as_caller(caller, request, operation).await?;
    let found = queries::find_object(&tx, bucket, key.as_str()).await?;
    tx.rollback().await?;
    found.ok_or(StorageError::NoSuchKey)
}

async fn send(
    storage: &Storage,
    request: &HttpRequest,
    bucket: &str,
    key: &ObjectKey,
    object: Object,
    audience: Audience,
) -> Result<HttpResponse, StorageError> {
    let text = |name: &str| object.metadata.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let size = object.metadata.get("size").and_then(Value::as_u64).unwrap_or(0);
    let etag = text("eTag");
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::CONTENT_TYPE, served_type(&text("mimetype"))))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header(("X-Robots-Tag", "none"))
        .insert_header((header::LAST_MODIFIED, http_date(object.updated_at)));
    if let Ok(value) = HeaderValue::from_str(&etag) {
        response.insert_header((header::ETAG, value));
    }
    // What is stored is not always fit for a header.
    let cache_control = |text: String| HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("no-cache"));
    match audience {
        Audience::Everyone => response.insert_header((header::CACHE_CONTROL, cache_control(text("cacheControl")))),
        Audience::Caller => response
            .insert_header((header::CACHE_CONTROL, cache_control(format!("private, {}", text("cacheControl")))))
            .insert_header((header::VARY, "Authorization")),
        Audience::Link(until) => response.insert_header((
            header::EXPIRES,
            http_date(chrono::DateTime::from_timestamp(until, 0).unwrap_or_default()),
        )),
    };
    if let Some(disposition) = disposition(request) {
        response.insert_header((header::CONTENT_DISPOSITION, disposition));
    }
    if is_unchanged(request, &etag, object.updated_at) {
        return Ok(response.status(StatusCode::NOT_MODIFIED).finish());
    }
    let range = match header_text(request, "range") {
        Some(text) => Some(parse_range(text, size).ok_or(StorageError::InvalidRange)?),
        None => None,
    };
    let (first, length) = match range {
        Some((first, last)) => {
            response
                .status(StatusCode::PARTIAL_CONTENT)
                .insert_header((header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}")));
            (first, last - first + 1)
        }
        None => (0, size),
    };
    if request.method() == Method::HEAD {
        return Ok(response
            .no_chunking(length)
            .body(SizedStream::new(length, futures_util::stream::empty::<Result<_, actix_web::Error>>())));
    }
    let version = object.version.as_deref().unwrap_or("");
    let Some(mut file) = storage.files.open(bucket, key, version).await? else { return Err(StorageError::NoSuchKey) };
    if first > 0 {
        file.seek(std::io::SeekFrom::Start(first)).await?;
    }
    let chunks = futures_util::stream::try_unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return Ok::<_, std::io::Error>(None);
        }
        let mut buffer = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
        let read = file.read(&mut buffer).await?;
        if read == 0 {
            return Ok(None);
        }
        buffer.truncate(read);
        Ok(Some((web::Bytes::from(buffer), (file, left - read as u64))))
    });
    Ok(response.body(SizedStream::new(length, chunks)))
}

/// HTML is never served as HTML: an upload must not become a page of this origin.
fn served_type(stored: &str) -> String {
    if stored.to_ascii_lowercase().contains("text/html") {
        return "text/plain".to_owned();
    }
    if stored.is_empty() || HeaderValue::from_str(stored).is_err() {
        return "application/octet-stream".to_owned();
    }
    stored.to_owned()
}

fn http_date(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// `?download` and `?download=name`.
fn disposition(request: &HttpRequest) -> Option<String> {
    let (_, name) = url::form_urlencoded::parse(request.query_string().as_bytes()).find(|(k, _)| k == "download")?;
    if name.is_empty() {
        return Some("attachment;".to_owned());
    }
    let encoded = utf8_percent_encode(&name, NON_ALPHANUMERIC);
    Some(format!("attachment; filename={encoded}; filename*=UTF-8''{encoded}"))
}

fn is_unchanged(request: &HttpRequest, etag: &str, updated_at: chrono::DateTime<chrono::Utc>) -> bool {
    if let Some(tags) = header_text(request, "if-none-match") {
        return !etag.is_empty() && tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag);
    }
    header_text(request, "if-modified-since")
        .and_then(|text| chrono::DateTime::parse_from_rfc2822(text).ok())
        .is_some_and(|since| updated_at.timestamp() <= since.timestamp())
}

/// The first and last byte of a single range; `None` if it cannot be satisfied.
fn parse_range(text: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", "") => return None,
        ("", suffix) => (size.saturating_sub(suffix.parse().ok()?), size.checked_sub(1)?),
        (first, "") => (first.parse().ok()?, size.checked_sub(1)?),
        (first, last) => (first.parse().ok()?, last.parse::<u64>().ok()?.min(size.checked_sub(1)?)),
    };
    (range.0 <= range.1 && range.0 < size).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_is_clipped_and_anything_else_refused() {
        let cases = [
            ("bytes=0-4", Some((0, 4))),
            ("bytes=5-", Some((5, 9))),
            ("bytes=-3", Some((7, 9))),
            ("bytes=8-99", Some((8, 9))),
            ("bytes=10-", None),
            ("bytes=4-2", None),
            ("bytes=a-b", None),
            ("bytes=0-1,3-4", None),
            ("items=0-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_range(text, 10), expected, "{text}");
        }
        assert_eq!(parse_range("bytes=0-0", 0), None);
    }

    #[test]
    fn html_is_served_as_text() {
        assert_eq!(served_type("text/html; charset=utf-8"), "text/plain");
        assert_eq!(served_type("image/png"), "image/png");
        assert_eq!(served_type("a\nb"), "application/octet-stream");
    }
}
