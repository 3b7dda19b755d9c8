//! S3's listings of buckets and objects.

use actix_web::HttpResponse;
use actix_web::http::header;
use serde_json::Value;

use super::xml::Xml;
use super::{Call, ONLY_VERSION};
use crate::storage::buckets::{NewBucket, names_and_times};
use crate::storage::key::is_new_bucket_name;
use crate::storage::list::{Asked, MAX_PAGE, Page, Position, Sorting};
use crate::storage::queries;
use crate::storage::sigv4::{encoded, encoded_path};
use crate::storage::{Storage, StorageError};

/// `GET /`: the buckets that the caller may see.
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

/// A time in S3's format.
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
    // The only answer whose root element contains text.
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

/// Refuses the request unless the caller may see the bucket.
async fn require_seen(call: &Call, operation: &str) -> Result<(), StorageError> {
    let tx = call.storage.as_caller(&call.caller, &call.scope(operation)).await?;
    let found = queries::find_bucket(&tx, &call.bucket).await?;
    tx.rollback().await?;
    found.map(drop).ok_or(StorageError::NoSuchBucket)
}

impl Storage {
    /// Refuses the request unless the bucket exists, visible or not.
    pub(in crate::storage) async fn require_bucket(&self, name: &str) -> Result<queries::Bucket, StorageError> {
        let tx = self.as_service().await?;
        let found = queries::find_bucket(&tx, name).await?;
        tx.rollback().await?;
        found.ok_or(StorageError::NoSuchBucket)
    }
}

/// The parameters of both listing versions.
struct Shape {
    prefix: String,
    delimiter: Option<String>,
    limit: i64,
    /// Whether names are percent-encoded, because XML cannot represent all of them.
    by_url: bool,
}

impl Shape {
    fn of(call: &Call) -> Result<Self, StorageError> {
        let shape = Self {
            prefix: call.parameter("prefix").unwrap_or_default().to_owned(),
            delimiter: call.parameter("delimiter").filter(|text| !text.is_empty()).map(str::to_owned),
            limit: call.number("max-keys")?.unwrap_or(i64::from(MAX_PAGE)).min(i64::from(MAX_PAGE)),
            by_url: call.wants_encoded()?,
        };
        if shape.prefix.contains('\0') { Err(StorageError::InvalidKey(shape.prefix)) } else { Ok(shape) }
    }

    fn shown(&self, text: &str) -> String {
        if self.by_url { encoded_path(text) } else { text.to_owned() }
    }

    async fn page(&self, call: &Call, operation: &str, position: Option<Position>) -> Result<Page, StorageError> {
        let asked = Asked {
            bucket: &call.bucket,
            prefix: &self.prefix,
            delimiter: self.delimiter.as_deref(),
            limit: i32::try_from(self.limit).unwrap_or(MAX_PAGE),
            sorting: Sorting::default(),
            position,
        };
        let mut page = call.storage.page(&call.caller, &call.scope(operation), &asked).await?;
        if self.limit == 0 {
            page.next = None;
        }
        Ok(page)
    }

    /// The beginning of both answers.
    fn begin(&self, call: &Call, root: &'static str, page: &Page) -> Xml {
        let mut xml = Xml::new(root);
        xml.element("Name", &call.bucket).element("Prefix", self.shown(&self.prefix));
        xml.given("Delimiter", self.delimiter.as_deref().map(|text| self.shown(text)));
        xml.given("EncodingType", self.by_url.then_some("url"));
        xml.element("MaxKeys", self.limit.to_string()).element("IsTruncated", page.next.is_some().to_string());
        xml
    }

    fn objects(&self, xml: &mut Xml, page: &Page, item: &str, further: impl Fn(&mut Xml)) {
        for object in &page.objects {
            let text = |name: &str| object.get(name).and_then(Value::as_str);
            let metadata = object.get("metadata").cloned().unwrap_or_default();
            xml.group(item, |xml| {
                xml.element("Key", self.shown(text("name").unwrap_or_default()));
                further(xml);
                xml.given("LastModified", text("updated_at"));
                xml.given("ETag", metadata.get("eTag").and_then(Value::as_str));
                xml.element("Size", metadata.get("size").and_then(Value::as_u64).unwrap_or(0).to_string());
                xml.element("StorageClass", "STANDARD");
            });
        }
        for folder in &page.folders {
            let name = folder.get("name").and_then(Value::as_str).unwrap_or_default();
            xml.group("CommonPrefixes", |xml| {
                xml.element("Prefix", self.shown(name));
            });
        }
    }
}

/// The position of a page that starts after a name.
fn following(name: Option<&str>) -> Result<Option<Position>, StorageError> {
    match name.filter(|text| !text.is_empty()) {
        Some(name) if name.contains('\0') => Err(StorageError::InvalidKey(name.to_owned())),
        Some(name) => {
            Ok(Some(Position { after: name.to_owned(), after_value: String::new(), sorting: Sorting::default() }))
        }
        None => Ok(None),
    }
}

/// `GET /bucket`, both versions of the listing.
pub async fn objects(call: Call) -> Result<HttpResponse, StorageError> {
    call.storage.require_bucket(&call.bucket).await?;
    let shape = Shape::of(&call)?;
    let newer = call.parameter("list-type") == Some("2");
    let token = call.parameter("continuation-token").filter(|_| newer);
    let after = if newer { call.parameter("start-after") } else { call.parameter("marker") };
    let begins = following(after)?;
    let position = token.map(Position::parse).transpose()?.or(begins);
    let page = shape.page(&call, "object.list", position).await?;
    let mut xml = shape.begin(&call, "ListBucketResult", &page);
    if newer {
        xml.given("ContinuationToken", token).given("StartAfter", after.map(|text| shape.shown(text)));
        xml.element("KeyCount", (page.objects.len() + page.folders.len()).to_string());
        xml.given("NextContinuationToken", page.next.as_ref().map(|(position, _)| position.to_text()));
    } else {
        xml.element("Marker", after.map(|text| shape.shown(text)).unwrap_or_default());
        let next = page.next.as_ref().filter(|_| shape.delimiter.is_some());
        xml.given("NextMarker", next.map(|(position, _)| shape.shown(&position.after)));
    }
    shape.objects(&mut xml, &page, "Contents", |_| ());
    Ok(xml.answer())
}

/// `GET ?versions`: S3's answer for a bucket without versioning. Each object is its own only version.
pub async fn versions(call: Call) -> Result<HttpResponse, StorageError> {
    call.storage.require_bucket(&call.bucket).await?;
    let shape = Shape::of(&call)?;
    let marker = call.parameter("key-marker");
    let page = shape.page(&call, "object.list", following(marker)?).await?;
    let mut xml = shape.begin(&call, "ListVersionsResult", &page);
    xml.element("KeyMarker", marker.map(|text| shape.shown(text)).unwrap_or_default());
    xml.element("VersionIdMarker", call.parameter("version-id-marker").unwrap_or_default());
    if let Some((position, _)) = &page.next {
        xml.element("NextKeyMarker", shape.shown(&position.after)).element("NextVersionIdMarker", ONLY_VERSION);
    }
    shape.objects(&mut xml, &page, "Version", |xml| {
        xml.element("VersionId", ONLY_VERSION).element("IsLatest", "true");
    });
    Ok(xml.answer())
}
