//! Buckets, and what is in them, as S3 lists it.

use actix_web::HttpResponse;
use actix_web::http::header;
use serde_json::Value;

use super::Call;
use super::xml::Xml;
use crate::storage::buckets::{NewBucket, names_and_times};
use crate::storage::key::is_new_bucket_name;
use crate::storage::list::{Asked, MAX_PAGE, Position, Sorting};
use crate::storage::queries;
use crate::storage::sigv4::{encoded, encoded_path};
use crate::storage::{Storage, StorageError};

/// `GET /`: the buckets that the caller sees.
pub async fn buckets(call: Call) -> Result<HttpResponse, StorageError> {
    let tx = call.storage.as_caller(&call.caller, &call.scope("bucket.list")).await?;
    let buckets = names_and_times(&tx).await?;
    tx.rollback().await?;
    let mut xml = Xml::new("ListAllMyBucketsResult");
    xml.group("Buckets", |xml| {
        for (name, created) in &buckets {
            xml.group("Bucket", |xml| {
                xml.element("Name", name);
                xml.given("CreationDate", created.map(time));
            });
        }
    });
    Ok(xml.answer())
}

/// A time as S3 writes it.
pub fn time(at: chrono::DateTime<chrono::Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

pub async fn create_bucket(call: Call) -> Result<HttpResponse, StorageError> {
    let name = call.bucket.clone();
    if !is_new_bucket_name(&name) {
        return Err(StorageError::InvalidBucketName);
    }
    let public = call.header("x-amz-acl") == Some("public-read");
    let bucket =
        NewBucket { id: name.clone(), name: name.clone(), public, file_size_limit: None, allowed_mime_types: None };
    call.storage.create_bucket(&call.caller, &call.scope("bucket.create"), &bucket).await?;
    Ok(HttpResponse::Ok().insert_header((header::LOCATION, format!("/{}", encoded(&name)))).finish())
}

pub async fn delete_bucket(call: Call) -> Result<HttpResponse, StorageError> {
    call.storage.delete_bucket(&call.caller, &call.scope("bucket.delete"), &call.bucket).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub async fn head_bucket(call: Call) -> Result<HttpResponse, StorageError> {
    require_seen(&call, "bucket.head").await?;
    Ok(HttpResponse::Ok().insert_header(("x-amz-bucket-region", call.storage.config.s3_region.as_str())).finish())
}

pub async fn location(call: Call) -> Result<HttpResponse, StorageError> {
    require_seen(&call, "bucket.get_location").await?;
    // The one answer whose root holds a text.
    let region = &call.storage.config.s3_region;
    let text = Xml::new("LocationConstraint").into_text().replace("</Loc", &format!("{region}</Loc"));
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "application/xml")).body(text))
}

pub async fn versioning(call: Call) -> Result<HttpResponse, StorageError> {
    require_seen(&call, "bucket.get_versioning").await?;
    let mut xml = Xml::new("VersioningConfiguration");
    xml.element("Status", "Suspended").element("MfaDelete", "Disabled");
    Ok(xml.answer())
}

/// Refuses unless the caller sees the bucket.
async fn require_seen(call: &Call, operation: &str) -> Result<(), StorageError> {
    let tx = call.storage.as_caller(&call.caller, &call.scope(operation)).await?;
    let found = queries::find_bucket(&tx, &call.bucket).await?;
    tx.rollback().await?;
    found.map(drop).ok_or(StorageError::NoSuchBucket)
}

impl Storage {
    /// Refuses unless there is such a bucket, seen or not.
    pub(in crate::storage) async fn require_bucket(&self, name: &str) -> Result<queries::Bucket, StorageError> {
        let tx = self.as_service().await?;
        let found = queries::find_bucket(&tx, name).await?;
        tx.rollback().await?;
        found.ok_or(StorageError::NoSuchBucket)
    }
}

/// `GET /bucket`, of either version.
pub async fn objects(call: Call) -> Result<HttpResponse, StorageError> {
    call.storage.require_bucket(&call.bucket).await?;
    let newer = call.parameter("list-type") == Some("2");
    let limit = call.number("max-keys")?.unwrap_or(i64::from(MAX_PAGE)).min(i64::from(MAX_PAGE));
    let prefix = call.parameter("prefix").unwrap_or_default().to_owned();
    let delimiter = call.parameter("delimiter").filter(|text| !text.is_empty());
    let by_url = call.parameter("encoding-type") == Some("url");
    let shown = |text: &str| if by_url { encoded_path(text) } else { text.to_owned() };
    let token = call.parameter("continuation-token").filter(|_| newer);
    let after = if newer { call.parameter("start-after") } else { call.parameter("marker") };
    let position = match (token, after.filter(|text| !text.is_empty())) {
        (Some(token), _) => Some(Position::parse(token)?),
        (None, Some(name)) => {
            Some(Position { after: name.to_owned(), after_value: String::new(), sorting: Sorting::default() })
        }
        (None, None) => None,
    };
    if prefix.contains('\0') || after.is_some_and(|name| name.contains('\0')) {
        return Err(StorageError::InvalidKey(prefix));
    }
    let asked = Asked {
        bucket: &call.bucket,
        prefix: &prefix,
        delimiter,
        limit: i32::try_from(limit).unwrap_or(MAX_PAGE),
        sorting: Sorting::default(),
        position,
    };
    let mut page = call.storage.page(&call.caller, &call.scope("object.list"), &asked).await?;
    if limit == 0 {
        page.next = None;
    }
    let mut xml = Xml::new("ListBucketResult");
    xml.element("Name", &call.bucket).element("Prefix", shown(&prefix));
    xml.given("Delimiter", delimiter.map(shown)).given("EncodingType", by_url.then_some("url"));
    xml.element("MaxKeys", limit.to_string()).element("IsTruncated", page.next.is_some().to_string());
    if newer {
        xml.given("ContinuationToken", token).given("StartAfter", after.map(shown));
        xml.element("KeyCount", (page.objects.len() + page.folders.len()).to_string());
        xml.given("NextContinuationToken", page.next.as_ref().map(|(position, _)| position.to_text()));
    } else {
        xml.element("Marker", after.map(shown).unwrap_or_default());
        let next = page.next.as_ref().filter(|_| delimiter.is_some());
        xml.given("NextMarker", next.map(|(position, _)| shown(&position.after)));
    }
    for object in &page.objects {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        xml.group("Contents", |xml| {
            xml.element("Key", shown(text("name").unwrap_or_default()));
            xml.given("LastModified", text("updated_at"));
            xml.given("ETag", metadata.get("eTag").and_then(Value::as_str));
            xml.element("Size", metadata.get("size").and_then(Value::as_u64).unwrap_or(0).to_string());
            xml.element("StorageClass", "STANDARD");
        });
    }
    for folder in &page.folders {
        let name = folder.get("name").and_then(Value::as_str).unwrap_or_default();
        xml.group("CommonPrefixes", |xml| {
            xml.element("Prefix", shown(name));
        });
    }
    Ok(xml.answer())
}
