//! S3 multipart uploads: parts that arrive in any order and become one object on completion.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use md5::{Digest, Md5};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use super::body::Body;
use super::listing::time;
use super::objects::{ClientMetadata, may_replace, taken};
use super::xml::{self, Xml};
use super::{Call, copy_source, refused, source_conditions};
use crate::db::{Client, Statement};
use crate::jwt::caller::Caller;
use crate::storage::backend::{Place, StoredFile};
use crate::storage::key::ObjectKey;
use crate::storage::queries::{self, Bucket};
use crate::storage::receive::{Described, check_mime};
use crate::storage::sigv4::encoded_path;
use crate::storage::upload::{Completed, NewRow, Replaces, Trial};
use crate::storage::{Storage, StorageError};

const MOST_PARTS: i64 = 10_000;
/// Maximum size of a part, in bytes.
const LONGEST_PART: u64 = 5 << 30;
/// How often the source of a copied part is looked up again because it was replaced meanwhile.
const SOURCE_TRIES: usize = 5;
/// How long a completion is remembered for clients that lost the answer.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);
/// Maximum number of entries per page.
const PAGE: i64 = 1000;

/// An upload in progress.
struct Upload {
    owner: Option<String>,
    user_metadata: Value,
    metadata: Value,
}

/// An uploaded part.
struct Part {
    id: Uuid,
    number: i32,
    etag: String,
    size: i64,
    created_at: DateTime<Utc>,
}

impl Part {
    fn size(&self) -> u64 {
        u64::try_from(self.size).unwrap_or(0)
    }
}

fn part(row: &Row) -> Result<Part, StorageError> {
    Ok(Part {
        id: row.try_get("id")?,
        number: row.try_get("part_number")?,
        etag: row.try_get("etag")?,
        size: row.try_get("size")?,
        created_at: row.try_get("created_at")?,
    })
}

const PART_COLUMNS: &str = "id, part_number, etag, size, created_at";

/// Whether the caller may write this object: the bucket's restrictions, and what it may replace.
async fn look(
    call: &Call,
    key: &ObjectKey,
    metadata: &Value,
    user_metadata: &Value,
    operation: &str,
) -> Result<(Bucket, Replaces), StorageError> {
    let trial = Trial {
        bucket: &call.bucket,
        key,
        metadata: metadata.clone(),
        user_metadata: Some(user_metadata),
        upsert: true,
    };
    let (rules, permitted) = trial.run(&call.storage, &call.caller, &call.scope(operation)).await?;
    Ok((rules, permitted?))
}

fn upload_id(call: &Call) -> String {
    call.parameter("uploadId").unwrap_or_default().to_owned()
}

/// The upload named in a request, if it belongs to this object.
async fn find(call: &Call, key: &ObjectKey) -> Result<Upload, StorageError> {
    let id = upload_id(call);
    if id.contains('\0') {
        return Err(StorageError::NoSuchUpload);
    }
    let tx = call.storage.as_service().await?;
    let statement = tx
        .client()?
        .prepare_cached(
            "select owner_id, coalesce(user_metadata, '{}') as user_metadata, coalesce(metadata, '{}') as metadata \
             from storage.s3_multipart_uploads where id = $1 and bucket_id = $2 and key = $3",
        )
        .await?;
    let row = tx.client()?.query_opt(&statement, &[&id, &call.bucket, &key.as_str()]).await?;
    tx.rollback().await?;
    let row = row.ok_or(StorageError::NoSuchUpload)?;
    Ok(Upload {
        owner: row.try_get("owner_id")?,
        user_metadata: row.try_get("user_metadata")?,
        metadata: row.try_get("metadata")?,
    })
}

async fn parts_of(storage: &Storage, upload: &str, after: i64, most: i64) -> Result<Vec<Part>, StorageError> {
    let tx = storage.as_service().await?;
    let sql = format!(
        "select {PART_COLUMNS} from storage.s3_multipart_uploads_parts \
         where upload_id = $1 and part_number > $2 order by part_number, created_at limit $3"
    );
    let statement = tx.client()?.prepare_cached(&sql).await?;
    let after = i32::try_from(after).unwrap_or(i32::MAX);
    let rows = tx.client()?.query(&statement, &[&upload, &after, &most]).await?;
    tx.rollback().await?;
    rows.iter().map(part).collect()
}

/// `POST ?uploads`.
pub async fn create(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let said = ClientMetadata::of(&call)?;
    let metadata = json!({
        "mimetype": said.mime,
        "cacheControl": said.cache_control,
        "contentEncoding": said.content_encoding,
    });
    let trial = json!({ "mimetype": said.mime });
    let (rules, _) = look(&call, &key, &trial, &said.user_metadata, "upload.create_multipart").await?;
    check_mime(&said.mime, &rules)?;
    let (id, version) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4().to_string());
    let tx = call.storage.as_service().await?;
    let statement = tx
        .client()?
        .prepare_cached(
            "insert into storage.s3_multipart_uploads \
               (id, upload_signature, bucket_id, key, version, owner_id, user_metadata, metadata) \
             values ($1, '', $2, $3, $4, $5, $6, $7)",
        )
        .await?;
    let owner = call.caller.subject();
    tx.client()?
        .execute(&statement, &[&id, &call.bucket, &key.as_str(), &version, &owner, &said.user_metadata, &metadata])
        .await?;
    tx.commit().await?;
    let mut xml = Xml::new("InitiateMultipartUploadResult");
    xml.element("Bucket", &call.bucket).element("Key", key.as_str()).element("UploadId", id);
    Ok(xml.answer())
}

fn part_number(call: &Call) -> Result<i32, StorageError> {
    let number = call.number("partNumber")?.filter(|number| (1..=MOST_PARTS).contains(number));
    let number = number.and_then(|number| i32::try_from(number).ok());
    number
        .ok_or_else(|| refused(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive"))
}

/// `PUT ?partNumber&uploadId`.
pub async fn upload_part(mut call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let number = part_number(&call)?;
    let length = call
        .length
        .ok_or_else(|| refused(411, "MissingContentLength", "You must provide the Content-Length HTTP header."))?;
    let body = std::mem::replace(&mut call.body, Box::pin(futures_util::stream::empty()));
    let file = take_part(&call, &key, number, length, body, "upload.part").await?;
    Ok(HttpResponse::Ok()
        .insert_header((header::ETAG, file.etag()))
        .insert_header((header::ACCESS_CONTROL_EXPOSE_HEADERS, "etag"))
        .finish())
}

/// `PUT ?partNumber&uploadId` with `x-amz-copy-source`: a part copied from another object.
pub async fn copy_part(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let number = part_number(&call)?;
    let (bucket, name) = copy_source(&call)?;
    let mut tries = 0;
    let (file, range) = loop {
        let ask =
            async |client: &Client, [read]: [Statement; 1]| queries::read_object(client, &read, &bucket, &name).await;
        let scope = call.scope("upload.part_copy");
        let source = call.storage.look_as_caller(&call.caller, &scope, [queries::FIND_OBJECT], ask).await?;
        let source = source.ok_or(StorageError::NoSuchKey)?;
        source_conditions(&call).check(&source)?;
        let range = match call.header("x-amz-copy-source-range") {
            Some(text) => Some(source_range(text, source.size())?),
            None => None,
        };
        let place = Place::named(&bucket, &name, source.version());
        if let Some(file) = call.storage.files.open(&place, range).await? {
            break (file, range);
        }
        tries += 1;
        if tries == SOURCE_TRIES {
            return Err(StorageError::Locked);
        }
        call.storage.check_replaced(&bucket, &name, &source).await?;
    };
    let length = range.map_or(file.size, |(first, last)| last - first + 1);
    let body: Body = Box::pin(file.bytes.map_err(StorageError::from));
    let part = take_part(&call, &key, number, length, body, "upload.part_copy").await?;
    let mut xml = Xml::new("CopyPartResult");
    xml.element("LastModified", time(Utc::now())).element("ETag", part.etag());
    Ok(xml.answer())
}

/// The first and last byte that a copied part takes from its source. As in S3, both must be given and exist.
fn source_range(text: &str, size: u64) -> Result<(u64, u64), StorageError> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let range = text.strip_prefix("bytes=").and_then(|text| text.split_once('-'));
    let range = range.and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let within = range.filter(|(first, last)| first <= last && *last < size);
    within.ok_or_else(|| refused(400, "InvalidRange", "invalid range provided"))
}

/// Stores a part, replacing an earlier one with the same number.
async fn take_part(
    call: &Call,
    key: &ObjectKey,
    number: i32,
    length: u64,
    mut body: Body,
    operation: &str,
) -> Result<StoredFile, StorageError> {
    let upload = find(call, key).await?;
    let (rules, _) = look(call, key, &upload.metadata, &upload.user_metadata, operation).await?;
    let most = call.storage.size_limit(&rules, key);
    if length > most.min(LONGEST_PART) {
        return Err(StorageError::EntityTooLarge);
    }
    call.storage.hand_on(&call.request).await?;
    let (id, part) = (upload_id(call), Uuid::new_v4());
    let mut file = call.storage.files.create(&Place::part(&id, part))?;
    while let Some(chunk) = body.try_next().await? {
        if file.size() + chunk.len() as u64 > length {
            return Err(incomplete());
        }
        file.write(chunk).await?;
    }
    if file.size() != length {
        return Err(incomplete());
    }
    let file = file.finish().await?;
    // Runs to completion even if the client disconnects.
    let (storage, bucket, key, stored) = (call.storage.clone(), call.bucket.clone(), key.clone(), file.clone());
    let owner = call.caller.subject();
    let task = actix_web::rt::spawn(async move {
        let tx = storage.as_service().await?;
        let client = tx.client()?;
        let lock =
            client.prepare_cached("select version from storage.s3_multipart_uploads where id = $1 for update").await?;
        let row = client.query_opt(&lock, &[&id]).await?;
        let Some(row) = row else {
            tx.rollback().await?;
            storage.files.discard([stored.place]).await;
            return Err(StorageError::NoSuchUpload);
        };
        let version: String = row.try_get(0)?;
        let replace = client
            .prepare_cached(
                "delete from storage.s3_multipart_uploads_parts where upload_id = $1 and part_number = $2 returning id",
            )
            .await?;
        let replaced = client.query(&replace, &[&id, &number]).await?;
        let size = i64::try_from(stored.size).unwrap_or(i64::MAX);
        let insert = client
            .prepare_cached(
                "insert into storage.s3_multipart_uploads_parts \
                   (id, upload_id, size, part_number, bucket_id, key, etag, owner_id, version) \
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            )
            .await?;
        client
            .execute(&insert, &[&part, &id, &size, &number, &bucket, &key.as_str(), &stored.etag(), &owner, &version])
            .await?;
        let progress = client
            .prepare_cached(
                "update storage.s3_multipart_uploads set in_progress_size = \
                   (select sum(size) from storage.s3_multipart_uploads_parts where upload_id = $1) \
                 where id = $1 returning in_progress_size",
            )
            .await?;
        let total: i64 = client.query_one(&progress, &[&id]).await?.try_get(0)?;
        if u64::try_from(total).unwrap_or(u64::MAX) > most {
            tx.rollback().await?;
            storage.files.discard([stored.place]).await;
            return Err(StorageError::EntityTooLarge);
        }
        // If the answer is lost, the file stays: the sweep checks whether its upload still exists.
        tx.commit().await?;
        let gone: Result<Vec<Uuid>, _> = replaced.iter().map(|row| row.try_get(0)).collect();
        storage.files.discard(gone?.into_iter().map(|old| Place::part(&id, old))).await;
        Ok(())
    });
    task.await.unwrap_or_else(|error| Err(StorageError::Internal(error.to_string())))?;
    Ok(file)
}

fn incomplete() -> StorageError {
    refused(
        400,
        "IncompleteBody",
        "You did not provide the number of bytes specified by the Content-Length HTTP header.",
    )
}

/// Completions in this process, by upload: those at work, and for a while those that have succeeded. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Completions(Arc<Mutex<HashMap<String, Entry>>>);

/// Locked while the completion is at work.
type Entry = Arc<tokio::sync::Mutex<Option<Done>>>;

/// A completion that has succeeded.
#[derive(Debug)]
struct Done {
    bucket: String,
    key: String,
    caller: Caller,
    /// The hash of the request's body.
    asked: [u8; 16],
    etag: String,
}

impl Completions {
    fn entry(&self, id: &str) -> Entry {
        Arc::clone(self.0.lock().entry(id.to_owned()).or_default())
    }

    /// The ETag, if the same request of the same caller has just succeeded.
    async fn done(&self, call: &Call, key: &ObjectKey, asked: [u8; 16]) -> Option<String> {
        let entry = self.0.lock().get(&upload_id(call)).map(Arc::clone)?;
        let done = entry.lock().await;
        let done = done.as_ref()?;
        let is_same = done.bucket == call.bucket && done.key == key.as_str() && done.asked == asked;
        (is_same && is_same_caller(&done.caller, &call.caller)).then(|| done.etag.clone())
    }

    /// Forgets a completion, at once if it failed and nobody waits for it.
    fn leave(&self, id: String, entry: Entry, succeeded: bool) {
        if succeeded {
            let completions = self.clone();
            actix_web::rt::spawn(async move {
                tokio::time::sleep(REMEMBERED).await;
                completions.0.lock().remove(&id);
            });
            return;
        }
        let mut known = self.0.lock();
        if Arc::strong_count(&entry) == 2 {
            known.remove(&id);
        }
    }
}

fn is_same_caller(one: &Caller, other: &Caller) -> bool {
    one.role == other.role && one.subject() == other.subject()
}

/// A permitted request to complete an upload.
struct Completion {
    storage: web::Data<Storage>,
    bucket: String,
    key: ObjectKey,
    id: String,
    caller: Caller,
    operation: String,
    upload: Upload,
    /// The request's body, which names the parts, and its hash.
    body: Vec<u8>,
    asked: [u8; 16],
    /// The size limit of the object.
    most: u64,
    replaces: Replaces,
}

/// `POST ?uploadId`: joins the parts into an object.
///
/// That may take longer than a client waits. So it goes on without the client, and a request that is repeated waits for it.
pub async fn complete(mut call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let upsert = may_replace(&call)?;
    let body = call.xml().await?;
    let asked = Md5::digest(&body).into();
    let completions = call.storage.completions.clone();
    let upload = match find(&call, &key).await {
        Err(StorageError::NoSuchUpload) => {
            let done = completions.done(&call, &key, asked).await;
            return done.map(|etag| completed(&call, &key, etag)).ok_or(StorageError::NoSuchUpload);
        }
        upload => upload?,
    };
    let (rules, tried) =
        look(&call, &key, &upload.metadata, &upload.user_metadata, "upload.complete_multipart").await?;
    let completion = Completion {
        bucket: call.bucket.clone(),
        key: key.clone(),
        id: upload_id(&call),
        caller: call.caller.clone(),
        operation: call.scope("upload.complete_multipart").operation,
        upload,
        body,
        asked,
        most: call.storage.size_limit(&rules, &key),
        replaces: if upsert { tried } else { Replaces::Nothing },
        storage: call.storage.clone(),
    };
    let id = completion.id.clone();
    let work = actix_web::rt::spawn(async move {
        let entry = completions.entry(&id);
        let mut done = Arc::clone(&entry).lock_owned().await;
        if done.is_some() {
            // Completed meanwhile: the upload is gone.
            return Err(StorageError::NoSuchUpload);
        }
        let made = completion.run().await;
        let succeeded = made.is_ok();
        let made = made.map(|made| done.insert(made).etag.clone());
        drop(done);
        completions.leave(id, entry, succeeded);
        made
    });
    match work.await.unwrap_or_else(|error| Err(StorageError::Internal(error.to_string()))) {
        Err(StorageError::NoSuchUpload) => {
            let done = call.storage.completions.done(&call, &key, asked).await;
            done.map(|etag| completed(&call, &key, etag)).ok_or(StorageError::NoSuchUpload)
        }
        made => Ok(completed(&call, &key, made.map_err(taken)?)),
    }
}

fn completed(call: &Call, key: &ObjectKey, etag: String) -> HttpResponse {
    let mut xml = Xml::new("CompleteMultipartUploadResult");
    xml.element("Location", format!("{}/{}", call.bucket, key.as_str()));
    xml.element("Bucket", &call.bucket).element("Key", key.as_str()).element("ETag", etag);
    xml.answer()
}

impl Completion {
    /// Joins the parts and writes the object's row.
    async fn run(self) -> Result<Done, StorageError> {
        let Self { storage, bucket, key, id, caller, operation, upload, body, asked, most, replaces } = self;
        let there = parts_of(&storage, &id, 0, MOST_PARTS).await?;
        let named = if body.is_empty() { Vec::new() } else { xml::read(&body, "CompleteMultipartUpload", "Part")?.0 };
        let all: Vec<Place> = there.iter().map(|part| Place::part(&id, part.id)).collect();
        let parts = if named.is_empty() { there } else { chosen(&named, there)? };
        let size = parts.iter().map(Part::size).sum();
        if parts.is_empty() {
            return Err(refused(400, "MalformedXML", "You must specify at least one part"));
        }
        if size > most {
            return Err(StorageError::EntityTooLarge);
        }
        let mut digest = Md5::new();
        for part in &parts {
            digest.update(hex::decode(part.etag.trim_matches('"')).unwrap_or_default());
        }
        let etag = format!("\"{}-{}\"", hex::encode(digest.finalize()), parts.len());
        // A separate version, so that two instances completing the same upload do not touch each other's file.
        let version = Uuid::new_v4();
        let place = Place::object(&bucket, &key, &version.to_string());
        let sources: Vec<(Place, u64)> = parts.iter().map(|part| (Place::part(&id, part.id), part.size())).collect();
        let detected = storage.files.assemble(&sources, &place).await?;
        let text = |name: &str| upload.metadata.get(name).and_then(Value::as_str).map(str::to_owned);
        let described = Described {
            mime: text("mimetype").unwrap_or_else(|| "application/octet-stream".to_owned()),
            cache_control: text("cacheControl").unwrap_or_else(|| "no-cache".to_owned()),
            robots: None,
            content_encoding: text("contentEncoding"),
            user_metadata: upload.user_metadata,
        };
        let new_row = NewRow {
            operation,
            bucket: bucket.clone(),
            key: key.clone(),
            owner: upload.owner,
            version,
            metadata: described.metadata(&etag, size),
            user_metadata: Some(described.user_metadata),
            replaces,
            completes: Some(Completed::Multipart(id)),
        };
        storage.write_new_row(StoredFile { place, size, md5: [0; 16], detected }, new_row).await?;
        storage.files.discard(all).await;
        Ok(Done { bucket, key: key.as_str().to_owned(), caller, asked, etag })
    }
}

/// The parts that the client named, in order.
fn chosen(asked: &[xml::Record], there: Vec<Part>) -> Result<Vec<Part>, StorageError> {
    // Both lists are sorted by number, so one pass is enough.
    let mut there = there.into_iter();
    let mut parts: Vec<Part> = Vec::with_capacity(asked.len());
    for named in asked {
        let number = xml::text_of(named, "PartNumber").and_then(|text| text.trim().parse::<i32>().ok());
        let number = number.ok_or_else(|| refused(400, "MalformedXML", "A part has no number"))?;
        if parts.last().is_some_and(|last| last.number >= number) {
            return Err(refused(400, "InvalidPartOrder", "The list of parts was not in ascending order."));
        }
        let etag = xml::text_of(named, "ETag").ok_or_else(|| refused(400, "MalformedXML", "A part has no ETag"))?;
        let etag = etag.trim().trim_matches('"');
        let known =
            there.find(|part| part.number > number || part.number == number && etag == part.etag.trim_matches('"'));
        let message = "One or more of the specified parts could not be found.";
        let known = known.filter(|part| part.number == number);
        parts.push(known.ok_or_else(|| refused(400, "InvalidPart", message))?);
    }
    Ok(parts)
}

/// Removes an upload and its parts.
async fn forget(call: &Call) -> Result<(), StorageError> {
    let id = upload_id(call);
    let parts = parts_of(&call.storage, &id, 0, i64::MAX).await?;
    let tx = call.storage.as_service().await?;
    queries::delete_multipart(&tx, &id).await?;
    tx.commit().await?;
    call.storage.files.discard(parts.iter().map(|part| Place::part(&id, part.id))).await;
    Ok(())
}

/// `DELETE ?uploadId`.
pub async fn abort(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let upload = find(&call, &key).await?;
    look(&call, &key, &upload.metadata, &upload.user_metadata, "upload.abort_multipart").await?;
    forget(&call).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET ?uploadId`: for callers who may upload it.
pub async fn list_parts(call: Call, key: ObjectKey) -> Result<HttpResponse, StorageError> {
    let upload = find(&call, &key).await?;
    look(&call, &key, &upload.metadata, &upload.user_metadata, "upload.list_parts").await?;
    let most = call.number("max-parts")?.unwrap_or(PAGE).min(PAGE);
    let after = call.number("part-number-marker")?.unwrap_or(0);
    let mut parts = parts_of(&call.storage, &upload_id(&call), after, most + 1).await?;
    let more = parts.len() as i64 > most;
    parts.truncate(usize::try_from(most).unwrap_or(0));
    let mut xml = Xml::new("ListPartsResult");
    xml.element("Bucket", &call.bucket).element("Key", key.as_str()).element("UploadId", upload_id(&call));
    xml.element("PartNumberMarker", after.to_string()).element("MaxParts", most.to_string());
    let next = parts.last().filter(|_| more).map(|part| part.number.to_string());
    xml.given("NextPartNumberMarker", next).element("IsTruncated", more.to_string());
    for part in &parts {
        xml.group("Part", |xml| {
            xml.element("PartNumber", part.number.to_string()).element("LastModified", time(part.created_at));
            xml.element("ETag", &part.etag).element("Size", part.size.to_string());
        });
    }
    Ok(xml.answer())
}

/// `GET ?uploads`: the uploads that the caller may see.
pub async fn list_uploads(call: Call) -> Result<HttpResponse, StorageError> {
    call.storage.require_bucket(&call.bucket).await?;
    let most = call.number("max-uploads")?.unwrap_or(PAGE);
    if !(1..=PAGE).contains(&most) {
        return Err(StorageError::InvalidParameter("Invalid Parameter MaxUploads".to_owned()));
    }
    let text = |name: &str| call.parameter(name).unwrap_or_default().replace('\0', "");
    let (prefix, delimiter, after, after_id) =
        (text("prefix"), text("delimiter"), text("key-marker"), text("upload-id-marker"));
    let by_url = call.wants_encoded()?;
    let shown = |text: &str| if by_url { encoded_path(text) } else { text.to_owned() };
    let tx = call.storage.as_caller(&call.caller, &call.scope("upload.list_multipart")).await?;
    // A common prefix counts as one entry, represented by its first upload.
    let statement = tx
        .client()?
        .prepare_cached(
            "select place, is_prefix, id, created_at from ( \
               select distinct on (place, entry) place, is_prefix, id, created_at from ( \
                 select coalesce(folder, key) collate \"C\" as place, folder is not null as is_prefix, id, created_at, \
                        case when folder is null then id else '' end as entry \
                 from (select m.*, case when $3 = '' then null else storage.get_common_prefix(m.key, $2, $3) end as folder \
                       from storage.s3_multipart_uploads as m where m.bucket_id = $1 and starts_with(m.key, $2)) as m \
               ) as all_entries \
               where $4 = '' or place > $4 or (place = $4 and $5 <> '' and not is_prefix and id > $5) \
               order by place, entry \
             ) as entries order by place, id limit $6",
        )
        .await?;
    let rows =
        tx.client()?.query(&statement, &[&call.bucket, &prefix, &delimiter, &after, &after_id, &(most + 1)]).await?;
    tx.rollback().await?;
    let more = rows.len() as i64 > most;
    let rows = &rows[..rows.len().min(usize::try_from(most).unwrap_or(0))];
    let mut xml = Xml::new("ListMultipartUploadsResult");
    xml.element("Bucket", &call.bucket).element("KeyMarker", shown(&after)).element("UploadIdMarker", &after_id);
    xml.element("Prefix", shown(&prefix)).given("Delimiter", Some(shown(&delimiter)).filter(|text| !text.is_empty()));
    xml.given("EncodingType", by_url.then_some("url")).element("MaxUploads", most.to_string());
    xml.element("IsTruncated", more.to_string());
    if let (true, Some(last)) = (more, rows.last()) {
        xml.element("NextKeyMarker", shown(last.try_get::<_, &str>("place")?));
        xml.element("NextUploadIdMarker", last.try_get::<_, &str>("id")?);
    }
    for row in rows {
        let (place, id): (String, String) = (row.try_get("place")?, row.try_get("id")?);
        let created: DateTime<Utc> = row.try_get("created_at")?;
        if row.try_get("is_prefix")? {
            xml.group("CommonPrefixes", |xml| {
                xml.element("Prefix", shown(&place));
            });
        } else {
            xml.group("Upload", |xml| {
                xml.element("Key", shown(&place)).element("UploadId", &id).element("StorageClass", "STANDARD");
                xml.element("Initiated", time(created));
            });
        }
    }
    Ok(xml.answer())
}
