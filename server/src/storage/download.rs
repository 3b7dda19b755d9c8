//! Downloads: own, public and signed reads, ranges, conditional requests, and `info`.

use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::backend::{Place, wrong_size};
use super::error::StorageError;
use super::fields::Fields;
use super::key::{self, ObjectKey};
use super::queries::{self, Bucket, Object};
use super::signed::Scope as UrlScope;
use super::upload::token_in_query;
use super::{Scope, Storage, bucket_and_key, header_text, valid_bucket_and_key};
use crate::db::{Client, Statement};
use crate::http::client::client_address;

/// The characters that `encodeURIComponent` encodes.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// How long a download waits for other downloads of the same client.
const READERS_WAIT: Duration = Duration::from_secs(5);

/// How often opening a file is retried while overwrites keep removing it.
const SEND_TRIES: usize = 16;

/// The last second of the year 9999, after which a header can give no date.
const LAST_DATE: i64 = 253_402_300_799;

/// Who may cache an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Everyone,
    Caller,
    /// Holders of the link, until this time (Unix seconds).
    Link(i64),
}

/// A readable object, and who may cache it.
pub struct Found {
    pub bucket: String,
    pub key: ObjectKey,
    pub object: Object,
    pub audience: Audience,
}

impl Found {
    pub fn place(&self) -> Place {
        Place::object(&self.bucket, &self.key, self.object.version())
    }
}

/// Sends an object. If an overwrite has removed its file since, looks the object up again.
pub async fn send_found(
    mut found: Found,
    find: impl AsyncFn() -> Result<Found, StorageError>,
    send: impl AsyncFn(&Found) -> Result<HttpResponse, StorageError>,
) -> Result<HttpResponse, StorageError> {
    for _ in 1..SEND_TRIES {
        match send(&found).await {
            Err(StorageError::NoSuchFile) => {}
            answer => return answer,
        }
        let now = find().await?;
        if now.object.version == found.object.version {
            return Err(StorageError::NoSuchFile);
        }
        found = now;
    }
    send(&found).await
}

/// `/object/{bucket}/{key}`: public buckets are open to all, other objects as the caller sees them. An invalid token counts as no
/// token.
pub async fn own(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let operation = operation_of(&request);
    let find = async || storage.find_own(&request, "/object/", false, operation).await;
    send_found(find().await?, find, async |found| storage.send(&request, found).await).await
}

/// `/object/authenticated/…`: the same, but requires a token.
pub async fn authenticated(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let operation = operation_of(&request);
    let find = async || storage.find_own(&request, "/object/authenticated/", true, operation).await;
    send_found(find().await?, find, async |found| storage.send(&request, found).await).await
}

/// `?versionId=`: the version that must still be the object's.
fn named_version(request: &HttpRequest) -> Result<Option<String>, StorageError> {
    Fields::of_query(request.query_string()).string("versionId")
}

/// The name of the operation for policies.
fn operation_of(request: &HttpRequest) -> &'static str {
    match *request.method() {
        Method::HEAD => "object.head_authenticated_info",
        _ => "storage.object.get_authenticated",
    }
}

/// `/object/public/…`: public buckets only.
pub async fn public(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let find = async || storage.find_public(&request, "/object/public/").await;
    send_found(find().await?, find, async |found| storage.send(&request, found).await).await
}

/// `/object/sign/…?token=`: the token grants the access.
pub async fn signed(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let (found, transformations) = storage.find_signed(&request, "/object/sign/").await?;
    // The token was signed for a transformed image, not for the original file.
    if transformations.is_some() {
        return Err(StorageError::InvalidSignature("Invalid signature"));
    }
    let find = async || Ok(storage.find_signed(&request, "/object/sign/").await?.0);
    send_found(found, find, async |found| storage.send(&request, found).await).await
}

/// `GET /object/info/…`: the row with the user metadata.
pub async fn info(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    // A key may begin with `authenticated` too, and a bucket have this name.
    let rest = super::tail(&request, "/object/info/")?.strip_prefix("authenticated/");
    let (literal, must_sign_in) = match rest.and_then(|rest| rest.split_once('/')) {
        Some((bucket, _)) if !bucket.is_empty() => ("/object/info/authenticated/", true),
        _ => ("/object/info/", false),
    };
    let operation = "object.get_authenticated_info";
    let found = storage.find_own(&request, literal, must_sign_in, operation).await?;
    Ok(storage.tell(&request, &found))
}

/// `GET /object/info/public/…`.
pub async fn info_public(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let found = storage.find_public(&request, "/object/info/public/").await?;
    Ok(storage.tell(&request, &found))
}

impl Storage {
    /// An object in a public bucket, or one that the caller may see, found in one transaction.
    pub async fn find_own(
        &self,
        request: &HttpRequest,
        literal: &str,
        must_sign_in: bool,
        operation: &str,
    ) -> Result<Found, StorageError> {
        let caller = match self.require_caller(request) {
            Ok(caller) => Some(caller),
            Err(error) if must_sign_in => return Err(error),
            Err(_) => None,
        };
        let (bucket, key) = bucket_and_key(request, literal)?;
        let version = named_version(request)?;
        let scope = Scope::of(request, operation);
        let (object, audience) = match caller {
            Some(caller) => {
                let ask = async |client: &Client, prepared| {
                    queries::find_bucket_and_object(client, prepared, &bucket, key.as_str(), &caller.role).await
                };
                let statements = queries::FIND_BUCKET_AND_OBJECT;
                let (rules, object) = self.look_before_caller(&caller, &scope, statements, ask).await?;
                (object, if rules.public { Audience::Everyone } else { Audience::Caller })
            }
            None => (self.find_in_public(&bucket, &key).await?, Audience::Everyone),
        };
        let object = object.filter(|object| object.is_version(version.as_deref())).ok_or(StorageError::NoSuchKey)?;
        Ok(Found { object, bucket, key, audience })
    }

    /// An object in a public bucket.
    pub async fn find_public(&self, request: &HttpRequest, literal: &str) -> Result<Found, StorageError> {
        let (bucket, key) = valid_bucket_and_key(request, literal)?;
        let version = named_version(request)?;
        let object = self.find_in_public(&bucket, &key).await?;
        let object = object.filter(|object| object.is_version(version.as_deref())).ok_or(StorageError::NoSuchKey)?;
        Ok(Found { bucket, key, object, audience: Audience::Everyone })
    }

    async fn find_in_public(&self, bucket: &str, key: &ObjectKey) -> Result<Option<Object>, StorageError> {
        match self.find_bucket_and_object(bucket, key).await? {
            (rules, object) if rules.public => Ok(object),
            _ => Err(StorageError::NoSuchBucket),
        }
    }

    /// A bucket and an object, regardless of the caller.
    pub async fn find_bucket_and_object(
        &self,
        bucket: &str,
        key: &ObjectKey,
    ) -> Result<(Bucket, Option<Object>), StorageError> {
        let ask = async |client: &Client, prepared| {
            queries::find_bucket_and_object(client, prepared, bucket, key.as_str(), "service_role").await
        };
        self.look_as_service(queries::FIND_BUCKET_AND_OBJECT, ask).await
    }

    /// The object of a signed URL, and the transformations fixed in it.
    pub async fn find_signed(
        &self,
        request: &HttpRequest,
        literal: &str,
    ) -> Result<(Found, Option<String>), StorageError> {
        let (bucket, key) = valid_bucket_and_key(request, literal)?;
        let token = token_in_query(request)?;
        let claims = self.signer.verify(&token, UrlScope::Download, &format!("{bucket}/{}", key.as_str()))?;
        let version = named_version(request)?;
        let ask = async |client: &Client, [read]: [Statement; 1]| {
            queries::read_object(client, &read, &bucket, key.as_str()).await
        };
        let object = self.look_as_service([queries::FIND_OBJECT], ask).await?;
        let is_meant =
            |object: &Object| object.is_version(claims.version.as_deref()) && object.is_version(version.as_deref());
        let object = object.filter(is_meant).ok_or(StorageError::NoSuchKey)?;
        Ok((Found { bucket, key, object, audience: Audience::Link(claims.exp) }, claims.transformations))
    }

    /// The metadata of an object as an answer without a body.
    fn tell(&self, request: &HttpRequest, found: &Found) -> HttpResponse {
        let object = &found.object;
        let known = |name: &str| object.metadata.get(name).cloned().unwrap_or(Value::Null);
        let mut response = self.headers(request, found);
        response.insert_header((header::CONTENT_TYPE, "application/json"));
        if *request.method() == Method::HEAD {
            return no_body(response, object.size());
        }
        response.json(json!({
            "id": object.id,
            "name": object.name,
            "version": object.version,
            "bucket_id": found.bucket,
            "size": known("size"),
            "content_type": known("mimetype"),
            "cache_control": known("cacheControl"),
            "content_encoding": known("contentEncoding"),
            "etag": known("eTag"),
            "metadata": object.user_metadata,
            "last_modified": object.updated_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "created_at": object.created_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        }))
    }

    /// The headers common to all answers about an object.
    pub fn headers(&self, request: &HttpRequest, found: &Found) -> HttpResponseBuilder {
        let object = &found.object;
        let etag = object.text("eTag");
        let robots = Some(object.text("xRobotsTag")).filter(|text| key::check_robots_tag(text).is_ok());
        let robots = robots.and_then(|text| HeaderValue::from_str(text).ok());
        let mut response = HttpResponse::Ok();
        response
            .insert_header((header::ACCEPT_RANGES, "bytes"))
            .insert_header((header::CONTENT_TYPE, served_type(object.text("mimetype"))))
            .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
            // A signed link holds its token.
            .insert_header((header::REFERRER_POLICY, "no-referrer"))
            .insert_header(("X-Robots-Tag", robots.unwrap_or(HeaderValue::from_static("none"))))
            .insert_header((header::LAST_MODIFIED, http_date(object.updated_at)));
        if let Some(policy) = security_policy(object.text("mimetype")) {
            response.insert_header((header::CONTENT_SECURITY_POLICY, policy));
        }
        if let Some(value) = HeaderValue::from_str(etag).ok().filter(|value| !value.is_empty()) {
            response.insert_header((header::ETAG, value));
        }
        // Stored values are not always valid in a header.
        let stored = match object.text("cacheControl") {
            text if HeaderValue::from_str(text).is_ok() => text,
            _ => "no-cache",
        };
        let private = if found.audience == Audience::Caller { "private" } else { "" };
        let mut cache: Vec<String> =
            [private, stored].into_iter().filter(|text| !text.is_empty()).map(str::to_owned).collect();
        if let Some(tag) = header_text(request, "if-none-match") {
            let is_head = *request.method() == Method::HEAD;
            if self.config.shared_max_age > 0 && (!is_head || tag == etag) {
                cache.push(format!("s-maxage={}", self.config.shared_max_age));
            }
            if tag != etag {
                cache.push(if is_head { "must-revalidate" } else { "stale-while-revalidate=30" }.to_owned());
            }
        }
        if let Audience::Link(until) = found.audience {
            let until = chrono::DateTime::from_timestamp(until.min(LAST_DATE), 0).unwrap_or_default();
            response.insert_header((header::EXPIRES, http_date(until)));
        } else if !cache.is_empty() {
            response.insert_header((header::CACHE_CONTROL, cache.join(", ")));
        }
        if found.audience == Audience::Caller {
            response.insert_header((header::VARY, "Authorization"));
        }
        if let Some(disposition) = disposition(request) {
            response.insert_header((header::CONTENT_DISPOSITION, disposition));
        }
        response
    }

    /// Sends the whole file, a range of it, or 304.
    pub async fn send(&self, request: &HttpRequest, found: &Found) -> Result<HttpResponse, StorageError> {
        let mut response = self.headers(request, found);
        // The stored bytes are sent as they are, whatever the client accepts, as by S3. So a range is one of the encoded bytes.
        if let Some(codings) = content_encoding(&found.object) {
            response.insert_header((header::CONTENT_ENCODING, codings));
        }
        self.send_with(request, found, response).await
    }

    /// The same, with headers of another protocol.
    pub async fn send_with(
        &self,
        request: &HttpRequest,
        found: &Found,
        mut response: HttpResponseBuilder,
    ) -> Result<HttpResponse, StorageError> {
        let object = &found.object;
        check_match(request, object)?;
        if is_unchanged(request, object) {
            return Ok(response.status(StatusCode::NOT_MODIFIED).finish());
        }
        if *request.method() == Method::HEAD {
            return Ok(no_body(response, object.size()));
        }
        // A range of an object that has changed would be useless to the client.
        let same = header_text(request, "if-range").is_none_or(|tag| tag == object.text("eTag"));
        let range = match header_text(request, "range") {
            Some(text) if same => Some(parse_range(text, object.size()).ok_or(StorageError::InvalidRange)?),
            _ => None,
        };
        let share = match &self.readers {
            Some(readers) => {
                let share = readers.take(client_address(request, &self.config.trusted_proxies), READERS_WAIT).await;
                Some(share.ok_or_else(|| StorageError::Unavailable("one client has too many downloads".to_owned()))?)
            }
            None => None,
        };
        let file = self.files.open(&found.place(), range).await?.ok_or(StorageError::NoSuchFile)?;
        let length = match range {
            Some((first, last)) => {
                response
                    .status(StatusCode::PARTIAL_CONTENT)
                    .insert_header((header::CONTENT_RANGE, format!("bytes {first}-{last}/{}", object.size())));
                last - first + 1
            }
            None if object.known_size().is_some_and(|size| size != file.size) => return Err(wrong_size()),
            None => file.size,
        };
        let bytes = futures_util::StreamExt::map(file.bytes, move |piece| {
            let _held = &share;
            piece
        });
        Ok(response.body(SizedStream::new(length, bytes)))
    }
}

/// The codings in which an object's bytes are.
pub fn content_encoding(object: &Object) -> Option<HeaderValue> {
    // Rows may be written by others.
    let codings = key::content_encoding(object.text("contentEncoding")).ok().flatten()?;
    HeaderValue::from_str(&codings).ok()
}

/// An answer to HEAD, with the length of the body.
pub fn no_body(mut response: HttpResponseBuilder, length: u64) -> HttpResponse {
    response
        .no_chunking(length)
        .body(SizedStream::new(length, futures_util::stream::empty::<Result<_, actix_web::Error>>()))
}

/// HTML is never served as HTML, because an upload must not become a page of this origin.
pub fn served_type(stored: &str) -> String {
    if stored.to_ascii_lowercase().contains("text/html") {
        return "text/plain".to_owned();
    }
    if stored.is_empty() || HeaderValue::from_str(stored).is_err() {
        return "application/octet-stream".to_owned();
    }
    stored.to_owned()
}

/// The `Content-Security-Policy` of a file of this type: it must not run on this origin when a browser opens it.
///
/// None for types that run nothing. Chrome's and Safari's viewers of PDF and of media do not work with a sandbox.
pub fn security_policy(stored: &str) -> Option<&'static str> {
    let kind = stored.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_media = ["image/", "audio/", "video/"].iter().any(|start| kind.starts_with(start));
    let is_inert = kind == "application/pdf" || is_media && !kind.contains("svg") && !kind.contains("xml");
    // Of several types in one header, browsers take the last. A value that does not fit into a header is not sent, and what is no
    // type may be guessed.
    let is_one = stored.is_ascii() && !stored.contains([',', '"']) && HeaderValue::from_str(stored).is_ok();
    (!is_inert || !is_one).then_some("default-src 'none'; sandbox")
}

pub fn http_date(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// `?download` and `?download=name`.
fn disposition(request: &HttpRequest) -> Option<String> {
    let (_, name) = url::form_urlencoded::parse(request.query_string().as_bytes()).find(|(k, _)| k == "download")?;
    if name.is_empty() {
        return Some("attachment;".to_owned());
    }
    let encoded = utf8_percent_encode(&name, COMPONENT);
    Some(format!("attachment; filename={encoded}; filename*=UTF-8''{encoded}"))
}

/// `If-Match` and `If-Unmodified-Since`.
pub fn check_match(request: &HttpRequest, object: &Object) -> Result<(), StorageError> {
    let holds = match header_text(request, "if-match") {
        Some(tags) => tags.trim() == "*" || tags.split(',').any(|tag| tag.trim() == object.text("eTag")),
        None => date_in(request, "if-unmodified-since").is_none_or(|since| object.updated_at.timestamp() <= since),
    };
    if holds { Ok(()) } else { Err(StorageError::PreconditionFailed) }
}

/// `If-None-Match`, or else `If-Modified-Since`, which has a precision of seconds.
pub fn is_unchanged(request: &HttpRequest, object: &Object) -> bool {
    let etag = object.text("eTag");
    if let Some(tags) = header_text(request, "if-none-match") {
        let same = |tag: &str| tag.trim() == "*" || tag.trim().trim_start_matches("W/") == etag;
        return !etag.is_empty() && tags.split(',').any(same);
    }
    date_in(request, "if-modified-since").is_some_and(|since| object.updated_at.timestamp() <= since)
}

/// A date header in Unix seconds.
pub fn date_in(request: &HttpRequest, name: &str) -> Option<i64> {
    let text = header_text(request, name)?;
    chrono::DateTime::parse_from_rfc2822(text).ok().map(|at| at.timestamp())
}

/// The first and last byte of a single range; `None` if it cannot be satisfied.
pub fn parse_range(text: &str, size: u64) -> Option<(u64, u64)> {
    // Rust also parses "+5".
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", "") => return None,
        ("", suffix) => (size.saturating_sub(number(suffix)?), size.checked_sub(1)?),
        (first, "") => (number(first)?, size.checked_sub(1)?),
        (first, last) => (number(first)?, number(last)?.min(size.checked_sub(1)?)),
    };
    (range.0 <= range.1 && range.0 < size).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_is_clipped_and_others_are_refused() {
        let cases = [
            ("bytes=0-4", Some((0, 4))),
            ("bytes=5-", Some((5, 9))),
            ("bytes=-3", Some((7, 9))),
            ("bytes=8-99", Some((8, 9))),
            ("bytes=10-", None),
            ("bytes=4-2", None),
            ("bytes=a-b", None),
            ("bytes=+0-4", None),
            ("bytes=-+3", None),
            ("bytes= 0-4", None),
            ("bytes=-0", None),
            ("bytes=0-1,3-4", None),
            ("items=0-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_range(text, 10), expected, "{text}");
        }
        assert_eq!(parse_range("bytes=0-0", 0), None);
    }

    #[test]
    fn download_names_are_encoded_as_browsers_do() {
        let request = |query: &str| actix_web::test::TestRequest::get().uri(&format!("/x?{query}")).to_http_request();
        let named = "attachment; filename=my_file%20(1).svg; filename*=UTF-8''my_file%20(1).svg";
        assert_eq!(disposition(&request("download=my_file%20(1).svg")).as_deref(), Some(named));
        assert_eq!(disposition(&request("download=")).as_deref(), Some("attachment;"));
        assert_eq!(disposition(&request("cacheNonce=1")), None);
    }

    #[test]
    fn only_types_that_run_nothing_are_without_a_sandbox() {
        for inert in ["application/pdf", "image/png", "Image/JPEG; q=1", "video/mp4", "audio/mpeg"] {
            assert_eq!(security_policy(inert), None, "{inert}");
        }
        for active in [
            "",
            "text/plain",
            "image/svg+xml",
            "application/xml",
            "image/png, application/xhtml+xml",
            "image/png; a=b, image/svg+xml",
            "application/pdf; a=\"",
            "image/x+xml",
            "image/png\n",
            "image/png\u{e4}",
            "image/pngä",
        ] {
            assert!(security_policy(active).is_some(), "{active}");
        }
    }

    #[test]
    fn html_is_served_as_text() {
        assert_eq!(served_type("text/html; charset=utf-8"), "text/plain");
        assert_eq!(served_type("image/png"), "image/png");
        assert_eq!(served_type("a\nb"), "application/octet-stream");
    }
}
