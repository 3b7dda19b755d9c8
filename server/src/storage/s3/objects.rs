//! S3's requests to put, get, copy and delete objects.

use std::collections::HashSet;

use actix_web::HttpResponse;
use actix_web::HttpResponseBuilder;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use chrono::DateTime;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::listing::time;
use super::xml::{self, Xml};
use super::{Call, ONLY_VERSION, copy_source, not_there, refused, source_conditions};
use crate::db::Client;
use crate::storage::StorageError;
use crate::storage::backend::Place;
use crate::storage::copy::{Changes, Route};
use crate::storage::download::{
    Audience, Found, content_encoding, http_date, is_unchanged, no_body, parse_range, security_policy, send_found,
};
use crate::storage::key::ObjectKey;
use crate::storage::queries::{self, Object};
use crate::storage::receive::{Described, check_mime, coding_of};
use crate::storage::upload::{NewRow, Trial};

/// Maximum number of keys per removal.
const MOST_KEYS: usize = 1000;

/// The metadata that a client sends with an object.
pub struct ClientMetadata {
    pub mime: String,
    pub cache_control: Option<String>,
    pub content_encoding: Option<String>,
    pub user_metadata: Value,
}

impl ClientMetadata {
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let metadata: Map<String, Value> = call
            .request
            .headers()
            .iter()
            .filter_map(|(name, value)| {
                let name = name.as_str().strip_prefix("x-amz-meta-")?;
                Some((name.to_owned(), Value::String(String::from_utf8_lossy(value.as_bytes()).into_owned())))
            })
            .collect();
        Ok(Self {
            mime: call
                .header("content-type")
                .filter(|text| !text.is_empty())
                .unwrap_or("application/octet-stream")
                .to_owned(),
            cache_control: call.header("cache-control").map(str::to_owned),
            content_encoding: coding_of(call.header("content-encoding"))?,
            user_metadata: Value::Object(metadata),
        })
    }
}

/// The length of a body.
#[derive(Clone, Copy)]
pub enum Length {
    Exactly(u64),
    /// A file in a form; the announced length includes the rest of the form.
    Within {
        least: u64,
        most: u64,
        announced: Option<u64>,
    },
}

impl Length {
    /// The size that policies may check before the bytes arrive.
    fn announced(self) -> Option<u64> {
        match self {
            Self::Exactly(length) => Some(length),
            Self::Within { announced, .. } => announced,
        }
    }

    /// The size limit, given the bucket's `limit`.
    fn most(self, limit: u64) -> Result<u64, StorageError> {
        match self {
            Self::Exactly(length) if length > limit => Err(StorageError::EntityTooLarge),
            Self::Exactly(length) => Ok(length),
            Self::Within { most, .. } => Ok(most.min(limit)),
        }
    }

    fn too_long(self) -> StorageError {
        match self {
            Self::Exactly(_) => incomplete(),
            Self::Within { .. } => StorageError::EntityTooLarge,
        }
    }

    /// Refuses a body that ended early.
    fn check_end(self, size: u64) -> Result<(), StorageError> {
        match self {
            Self::Exactly(length) if size != length => Err(incomplete()),
            Self::Within { least, .. } if size < least => {
                Err(refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"))
            }
            Self::Exactly(_) | Self::Within { .. } => Ok(()),
        }
    }
}

/// `PUT`.
pub async fn put(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let length = call
        .length
        .ok_or_else(|| refused(411, "MissingContentLength", "You must provide the Content-Length HTTP header."))?;
    let said = ClientMetadata::of(&call)?;
    let upsert = may_replace(&call)?;
    // An empty folder, as Supabase stores it.
    let key = match key.as_str().ends_with('/') && length == 0 {
        true => ObjectKey::parse(&format!("{}.emptyFolderPlaceholder", key.as_str()))?,
        false => key,
    };
    let etag = store(call, key, said, upsert, Length::Exactly(length)).await?;
    Ok(HttpResponse::Ok().insert_header((header::ETAG, etag)).finish())
}

/// Writes the body of a call as an object. Returns its ETag.
pub async fn store(
    mut call: Call,
    key: ObjectKey,
    said: ClientMetadata,
    upsert: bool,
    length: Length,
) -> Result<String, StorageError> {
    let trial = Trial {
        bucket: &call.bucket,
        key: &key,
        metadata: json!({ "mimetype": said.mime, "contentLength": length.announced() }),
        user_metadata: Some(&said.user_metadata),
        upsert,
    };
    let scope = call.scope("upload");
    let (rules, permitted) = trial.run_before_storing(&call.storage, &call.caller, &scope).await?;
    if !key.is_placeholder() {
        check_mime(&said.mime, &rules)?;
    }
    let most = length.most(call.storage.size_limit(&rules, &key))?;
    let replaces = permitted.map_err(taken)?;
    call.storage.hand_on(&call.request).await?;
    let version = Uuid::new_v4();
    let mut file = call.storage.files.create(&Place::object(&call.bucket, &key, &version.to_string()))?;
    while let Some(chunk) = futures_util::TryStreamExt::try_next(&mut call.body).await? {
        if file.size() + chunk.len() as u64 > most {
            return Err(length.too_long());
        }
        file.write(chunk).await?;
    }
    length.check_end(file.size())?;
    let file = file.finish().await?;
    let etag = file.etag();
    let described = Described {
        mime: said.mime,
        cache_control: said.cache_control.unwrap_or_else(|| "no-cache".to_owned()),
        robots: None,
        content_encoding: said.content_encoding,
        user_metadata: said.user_metadata,
    };
    let new_row = NewRow {
        operation: scope.operation.clone(),
        bucket: call.bucket.clone(),
        key,
        owner: call.caller.subject(),
        version,
        metadata: described.metadata(&etag, file.size),
        user_metadata: Some(described.user_metadata),
        replaces,
        completes: None,
    };
    call.storage.write_new_row(file, new_row).await.map_err(taken)?;
    Ok(etag)
}

/// Whether a write may replace an existing object: not with `If-None-Match: *`.
///
/// Errors: any other condition, which would otherwise be ignored.
pub fn may_replace(call: &Call) -> Result<bool, StorageError> {
    match (call.header("if-match"), call.header("if-none-match")) {
        (None, None) => Ok(true),
        (None, Some("*")) => Ok(false),
        _ => Err(not_there()),
    }
}

/// The error of a conditional write to an existing key.
pub fn taken(error: StorageError) -> StorageError {
    match error {
        StorageError::AlreadyExists => StorageError::PreconditionFailed,
        other => other,
    }
}

fn incomplete() -> StorageError {
    refused(
        400,
        "IncompleteBody",
        "You did not provide the number of bytes specified by the Content-Length HTTP header.",
    )
}

/// An object that the caller may see.
async fn find(call: &Call, key: &ObjectKey, operation: &str) -> Result<Object, StorageError> {
    let ask = async |client: &Client, prepared| {
        queries::find_as_caller(client, prepared, &call.bucket, key.as_str(), &call.caller.role).await
    };
    let scope = call.scope(operation);
    let object = call.storage.look_before_caller(&call.caller, &scope, queries::FIND_AS_CALLER, ask).await?;
    object.ok_or(StorageError::NoSuchKey)
}

/// `GET` and `HEAD`.
pub async fn read(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let is_head = *call.request.method() == Method::HEAD;
    let find = async || {
        let object = find(&call, &key, if is_head { "object.info" } else { "object.get" }).await?;
        Ok(Found { bucket: call.bucket.clone(), key: key.clone(), object, audience: Audience::Caller })
    };
    // SDKs send it in either format.
    let expires = call.parameter("response-expires").map(|text| {
        let at = DateTime::parse_from_rfc2822(text).or_else(|_| DateTime::parse_from_rfc3339(text));
        at.map(|at| http_date(at.to_utc()))
    });
    let invalid = |_| StorageError::InvalidParameter("Invalid Parameter response-expires".to_owned());
    let expires = expires.transpose().map_err(invalid)?;
    let found = find().await?;
    let mut response = headers(&call, &found.object, expires.as_deref());
    if is_head || is_unchanged(&call.request, &found.object) {
        crate::storage::download::check_match(&call.request, &found.object)?;
        if is_unchanged(&call.request, &found.object) {
            return Ok(response.status(StatusCode::NOT_MODIFIED).finish());
        }
        if let Some(text) = call.header("range") {
            let (first, last) = parse_range(text, found.object.size()).ok_or(StorageError::InvalidRange)?;
            response
                .status(StatusCode::PARTIAL_CONTENT)
                .insert_header((header::CONTENT_RANGE, format!("bytes {first}-{last}/{}", found.object.size())));
            return Ok(no_body(response, last - first + 1));
        }
        return Ok(no_body(response, found.object.size()));
    }
    let send = async |found: &Found| {
        let response = headers(&call, &found.object, expires.as_deref());
        call.storage.send_with(&call.request, found, response).await
    };
    send_found(found, find, send).await
}

/// The headers of an object; a client may override some of them.
fn headers(call: &Call, object: &Object, expires: Option<&str>) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::LAST_MODIFIED, http_date(object.updated_at)));
    if let Some(codings) = content_encoding(object) {
        response.insert_header((header::CONTENT_ENCODING, codings));
    }
    // A presigned link may be opened in a browser.
    let asked_type = call.parameter("response-content-type").filter(|kind| !kind.is_empty());
    if let Some(policy) = security_policy(asked_type.unwrap_or(object.text("mimetype"))) {
        response.insert_header((header::CONTENT_SECURITY_POLICY, policy));
    }
    let mut set = |name: HeaderName, value: &str| {
        if let Some(value) = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty()) {
            response.insert_header((name, value));
        }
    };
    set(header::ETAG, object.text("eTag"));
    set(header::CONTENT_TYPE, object.text("mimetype"));
    set(header::CACHE_CONTROL, object.text("cacheControl"));
    for name in ["content-type", "cache-control", "content-disposition", "content-encoding", "content-language"] {
        if let Some(value) = call.parameter(&format!("response-{name}")) {
            set(HeaderName::from_static(name), value);
        }
    }
    if let Some(expires) = expires {
        set(header::EXPIRES, expires);
    }
    let mut missing = 0;
    for (name, value) in object.user_metadata.as_object().into_iter().flatten() {
        let name = HeaderName::try_from(format!("x-amz-meta-{}", name.to_ascii_lowercase()));
        let value = value.as_str().filter(|text| text.is_ascii()).and_then(|text| HeaderValue::from_str(text).ok());
        match (name, value) {
            (Ok(name), Some(value)) => drop(response.insert_header((name, value))),
            _ => missing += 1,
        }
    }
    if missing > 0 {
        response.insert_header(("x-amz-missing-meta", missing));
    }
    response
}

/// `GET ?tagging`: always empty, since tags are not supported.
pub async fn tagging(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    find(&call, &key, "object.get_tagging").await?;
    let mut xml = Xml::new("Tagging");
    xml.group("TagSet", |_| {});
    Ok(xml.answer())
}

/// `PUT` with `x-amz-copy-source`.
pub async fn copy(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let (from_bucket, from_key) = copy_source(&call)?;
    let replace = call.header("x-amz-metadata-directive").is_some_and(|text| text.eq_ignore_ascii_case("replace"));
    let said = replace.then(|| ClientMetadata::of(&call)).transpose()?;
    let changes = said.map(|said| Changes {
        cache_control: said.cache_control,
        mime: Some(said.mime),
        content_encoding: said.content_encoding,
        drop_rest: true,
        user_metadata: Some(said.user_metadata),
    });
    let route = Route { from_bucket, from_key, from_version: None, to_bucket: call.bucket.clone(), to_key: key };
    let scope = call.scope("object.copy");
    let (conditions, upsert) = (source_conditions(&call), may_replace(&call)?);
    let copied = call.storage.copy_object(&call.caller, &scope, &route, changes, &conditions, upsert).await;
    let (object, _) = copied.map_err(taken)?;
    let mut xml = Xml::new("CopyObjectResult");
    xml.element("LastModified", time(object.updated_at)).element("ETag", object.text("eTag"));
    Ok(xml.answer())
}

/// `DELETE`: succeeds for missing objects too.
pub async fn delete(call: Call, name: &str) -> Result<HttpResponse, StorageError> {
    match call.storage.delete_object(&call.caller, &call.scope("object.delete"), &call.bucket, name, None).await {
        Err(StorageError::NoSuchKey) => drop(call.storage.require_bucket(&call.bucket).await?),
        outcome => outcome?,
    }
    Ok(HttpResponse::NoContent().finish())
}

/// `POST ?delete`: up to a thousand keys.
pub async fn delete_many(mut call: Call) -> Result<HttpResponse, StorageError> {
    let (objects, others) = xml::read(&call.xml().await?, "Delete", "Object")?;
    let keys: Option<Vec<String>> = objects
        .iter()
        .map(|object| xml::text_of(object, "Key").filter(|key| !key.contains('\0')).map(str::to_owned))
        .collect();
    let keys = keys.filter(|keys| (1..=MOST_KEYS).contains(&keys.len())).ok_or_else(|| {
        refused(400, "MalformedXML", "The XML you provided did not validate against our published schema")
    })?;
    // A request to delete another version must not delete the existing one.
    let is_meant =
        |object: &xml::Record| xml::text_of(object, "VersionId").is_none_or(|id| id.is_empty() || id == ONLY_VERSION);
    let meant: Vec<String> =
        objects.iter().zip(&keys).filter(|(object, _)| is_meant(object)).map(|(_, key)| key.clone()).collect();
    call.storage.require_bucket(&call.bucket).await?;
    let tx = call.storage.as_caller(&call.caller, &call.scope("object.delete_many")).await?;
    let gone = queries::delete_objects(&tx, &call.bucket, &meant).await?;
    let left: HashSet<String> = queries::visible_names(&tx, &call.bucket, &meant).await?.into_iter().collect();
    tx.commit().await?;
    call.storage.remove_files(&call.bucket, gone.iter().map(|(object, _)| object)).await;
    let quiet = xml::text_of(&others, "Quiet") == Some("true");
    let mut xml = Xml::new("DeleteResult");
    for (object, key) in objects.iter().zip(&keys) {
        if !is_meant(object) {
            xml.group("Error", |xml| {
                xml.element("Key", key).given("VersionId", xml::text_of(object, "VersionId"));
                xml.element("Code", "NoSuchVersion").element("Message", "The specified version does not exist.");
            });
        } else if left.contains(key) {
            xml.group("Error", |xml| {
                xml.element("Key", key).element("Code", "AccessDenied").element("Message", "Access Denied");
            });
        } else if !quiet {
            xml.group("Deleted", |xml| {
                xml.element("Key", key);
            });
        }
    }
    Ok(xml.answer())
}
