//! Resumable uploads by TUS 1.0.0 at `/upload/resumable`, and at `/upload/resumable/sign` with a signed upload token.
//!
//! Each request stores a part, which is durable before the offset advances, so an upload can continue after a restart or on another
//! instance. After the last byte the parts are joined into the object's file and its row is written. Errors are plain text with their
//! true status. Reference: <https://tus.io/protocols/resumable-upload>,
//! supabase/storage `src/http/routes/tus`.

mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzed;
mod lease;
mod protocol;
mod rows;

use actix_web::http::{Method, StatusCode, header};
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use futures_util::{Stream, StreamExt, TryStreamExt};
use md5::{Digest, Md5};
use serde_json::{Value, json};
use uuid::Uuid;

use self::error::TusError;
use self::lease::Lease;
pub use self::lease::Writers;
use self::protocol::{Announced, UploadId, number_in};
use self::rows::Upload;
use super::backend::{Place, StoredFile};
use super::key::ObjectKey;
use super::queries::Bucket;
use super::receive::{Described, check_mime, unreadable};
use super::signed::Scope as UrlScope;
use super::upload::{Completed, NewRow, Replaces, Trial, wants_upsert};
use super::{Scope, Storage, StorageError, header_text};
use crate::jwt::caller::Caller;
pub use rows::{expired, known_uploads};

const VERSION: &str = "1.0.0";
const EXTENSIONS: &str = "creation,creation-with-upload,creation-defer-length,termination,expiration";
/// Response headers that browsers may read.
const EXPOSED: &str = "Location, Tus-Complete, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Defer-Length, \
     Upload-Expires, Upload-Length, Upload-Metadata, Upload-Offset, X-Request-Id";
const PATCH_TYPE: &str = "application/offset+octet-stream";
/// Maximum number of parts of an upload, as in S3.
const MAX_PARTS: i64 = 10_000;

/// The path below which uploads are.
const BASE: &str = "/upload/resumable";
const SIGNED: &str = "/upload/resumable/sign";

/// What authorizes a request.
enum Permission {
    /// A user, subject to policies; and whether they sent `x-upsert: true`.
    Caller { caller: Caller, upsert: bool },
    /// The holder of a signed upload token.
    Link { token: String },
}

/// A checked permission for one object.
struct Permitted {
    rules: Bucket,
    owner: Option<String>,
    replaces: Replaces,
    operation: String,
}

/// Handles every request for resumable uploads.
pub async fn serve(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, TusError> {
    let overridden = header_text(&request, "x-http-method-override").and_then(|name| name.parse::<Method>().ok());
    let method = overridden.unwrap_or_else(|| request.method().clone());
    if method == Method::OPTIONS {
        return Ok(options(&storage));
    }
    if header_text(&request, "tus-resumable") != Some(VERSION) {
        return Err(TusError::Version);
    }
    protocol::check_headers(&request, &method)?;
    let signed = request.path().contains(SIGNED);
    let permission = if signed {
        let token = header_text(&request, "x-signature").filter(|token| !token.is_empty());
        Permission::Link { token: token.ok_or(TusError::NoSignature)?.to_owned() }
    } else {
        let caller = storage.require_token(&request).map_err(TusError::Token)?;
        Permission::Caller { caller, upsert: wants_upsert(&request) }
    };
    let id = request.match_info().get("id").filter(|id| !id.is_empty());
    match (method, id) {
        (Method::POST, None) => create(&storage, &request, body, permission).await,
        (Method::HEAD, Some(id)) => tell(&storage, &request, UploadId::parse(id)?, permission).await,
        (Method::PATCH, Some(id)) => write(&storage, &request, UploadId::parse(id)?, body, permission).await,
        (Method::DELETE, Some(id)) => terminate(&storage, &request, UploadId::parse(id)?, permission).await,
        _ => Err(TusError::NotFound),
    }
}

fn answer(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header(("Tus-Resumable", VERSION))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED));
    response
}

fn options(storage: &Storage) -> HttpResponse {
    answer(StatusCode::NO_CONTENT)
        .insert_header(("Tus-Version", VERSION))
        .insert_header(("Tus-Extension", EXTENSIONS))
        .insert_header(("Tus-Max-Size", storage.config.file_size_limit.to_string()))
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "POST, HEAD, PATCH, OPTIONS, DELETE"))
        .insert_header((
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Tus-Resumable, Upload-Concat, Upload-Defer-Length, Upload-Length, \
             Upload-Metadata, Upload-Offset, X-HTTP-Method-Override, X-Requested-With, X-Forwarded-Host, \
             X-Forwarded-Proto, Forwarded, X-Upsert, Upload-Expires, ApiKey, x-signature",
        ))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, "86400"))
        .finish()
}

impl Permission {
    /// Checks whether the object may be uploaded: with the caller's INSERT, rolled back, or by the token.
    async fn look(
        &self,
        storage: &Storage,
        scope: Scope,
        bucket: &str,
        key: &ObjectKey,
        announced: &Announced,
    ) -> Result<Permitted, TusError> {
        match self {
            Self::Caller { caller, upsert } => {
                let user_metadata = announced.user_metadata();
                let trial = Trial {
                    bucket,
                    key,
                    metadata: json!({ "mimetype": announced.content_type, "contentLength": announced.size }),
                    user_metadata: user_metadata.as_ref(),
                    upsert: *upsert,
                };
                let (rules, permitted) = trial.run(storage, caller, &scope).await?;
                let replaces = permitted?;
                Ok(Permitted { rules, owner: caller.subject(), replaces, operation: scope.operation })
            }
            Self::Link { token } => {
                let claims = storage.signer.verify(token, UrlScope::Upload, &format!("{bucket}/{}", key.as_str()))?;
                let (rules, there) = storage.find_bucket_and_object(bucket, key).await?;
                // The reference overwrites here although the token does not allow it.
                if there.is_some() && !claims.upsert {
                    return Err(StorageError::AlreadyExists.into());
                }
                let operation = format!("{}_signed", scope.operation);
                let replaces = Replaces::by_link(claims.upsert);
                Ok(Permitted { rules, owner: claims.owner, replaces, operation })
            }
        }
    }

    /// For requests that reveal only how far an upload is.
    fn check_link(&self, storage: &Storage, id: &UploadId) -> Result<(), TusError> {
        match self {
            Self::Caller { .. } => Ok(()),
            Self::Link { token } => {
                let url = format!("{}/{}", id.bucket, id.key.as_str());
                storage.signer.verify(token, UrlScope::Upload, &url)?;
                Ok(())
            }
        }
    }
}

/// `POST`: a new upload, optionally with its first bytes.
async fn create(
    storage: &web::Data<Storage>,
    request: &HttpRequest,
    body: web::Payload,
    permission: Permission,
) -> Result<HttpResponse, TusError> {
    if header_text(request, "upload-concat").is_some() {
        return Err(TusError::Concatenation);
    }
    let mut announced = Announced::of_request(request)?;
    let key = ObjectKey::parse(&announced.object_name)?;
    let scope = Scope::of(request, "storage.tus.upload.create");
    let permitted = permission.look(storage, scope, &announced.bucket_name, &key, &announced).await?;
    let limit = storage.size_limit(&permitted.rules, &key);
    if announced.size.is_some_and(|size| size > limit) {
        return Err(TusError::TooLargeInAll);
    }
    if !key.is_placeholder() {
        check_mime(announced.mime(), &permitted.rules)?;
    }
    announced.upsert = !matches!(permitted.replaces, Replaces::Nothing);
    let id = UploadId { bucket: announced.bucket_name.clone(), key, version: Uuid::new_v4() };
    rows::insert(storage, &id, &announced, permitted.owner.as_deref()).await?;
    let location = protocol::location(storage, request, &id, matches!(permission, Permission::Link { .. }));
    let mut response = answer(StatusCode::CREATED);
    response.insert_header((header::LOCATION, location));
    let with_body = header_text(request, "content-type").is_some_and(|kind| kind == PATCH_TYPE);
    if with_body || announced.size == Some(0) {
        let length = header_text(request, "content-length").and_then(|text| text.parse().ok());
        storage.hand_on(request).await?;
        let body = if with_body { Some(Box::pin(body.map_err(unreadable))) } else { None };
        let upload = take(storage, id, permitted, 0, None, limit, length, body).await?;
        response.insert_header(("Upload-Offset", upload.offset.to_string()));
        if upload.is_finished() {
            return Ok(response.insert_header(("Tus-Complete", "1")).finish());
        }
        return Ok(response.insert_header(("Upload-Expires", upload.expires())).finish());
    }
    let expires = chrono::Utc::now() + storage.config.resumable_life;
    Ok(response.insert_header(("Upload-Expires", super::download::http_date(expires))).finish())
}

/// `HEAD`: how far an upload is. A current writer stops first, so that the offset is final.
async fn tell(
    storage: &web::Data<Storage>,
    request: &HttpRequest,
    id: UploadId,
    permission: Permission,
) -> Result<HttpResponse, TusError> {
    permission.check_link(storage, &id)?;
    let (mut upload, lease) = Lease::acquire(storage, &id).await?;
    lease.release().await;
    if upload.lacks_object() {
        // `x-upsert` is sent only with requests that write, not with this one.
        let permission = match permission {
            Permission::Caller { caller, upsert } => {
                Permission::Caller { caller, upsert: upsert || upload.announced.upsert }
            }
            link @ Permission::Link { .. } => link,
        };
        upload = make_object(storage, request, id, upload, &permission).await?;
    }
    let mut response = answer(StatusCode::OK);
    response.insert_header(("Upload-Offset", upload.offset.to_string()));
    match upload.size {
        Some(size) => response.insert_header(("Upload-Length", size.to_string())),
        None => response.insert_header(("Upload-Defer-Length", "1")),
    };
    if let Some(text) = upload.announced.header.as_deref().filter(|text| !text.is_empty()) {
        response.insert_header(("Upload-Metadata", text));
    }
    if !upload.is_finished() {
        response.insert_header(("Upload-Expires", upload.expires()));
    }
    Ok(response.finish())
}

/// Creates the object of an upload whose bytes are complete, if the request that sent the last bytes failed to. Clients that see
/// the full offset consider the upload finished, so they get a lock error until the object exists.
async fn make_object(
    storage: &web::Data<Storage>,
    request: &HttpRequest,
    id: UploadId,
    upload: Upload,
    permission: &Permission,
) -> Result<Upload, TusError> {
    let made = async {
        let scope = Scope::of(request, "storage.tus.upload.part");
        let permitted = permission.look(storage, scope, &id.bucket, &id.key, &upload.announced).await?;
        let limit = storage.size_limit(&permitted.rules, &id.key);
        let nothing = None::<futures_util::stream::Empty<Result<Bytes, StorageError>>>;
        take(storage, id, permitted, upload.offset, None, limit, None, nothing).await
    };
    match made.await {
        Err(TusError::Storage(error)) if error.may_pass() => {
            error.log();
            Err(StorageError::Locked.into())
        }
        made => made,
    }
}

/// `PATCH`: more bytes.
async fn write(
    storage: &web::Data<Storage>,
    request: &HttpRequest,
    id: UploadId,
    body: web::Payload,
    permission: Permission,
) -> Result<HttpResponse, TusError> {
    let offset = number_in(request, "upload-offset")?.ok_or(TusError::NoOffset)?;
    if header_text(request, "content-type") != Some(PATCH_TYPE) {
        return Err(TusError::NoContentType);
    }
    let upload = rows::find(storage, &id).await?;
    if upload.is_finished() {
        // The answer to the last bytes was lost.
        let whole = upload.size == Some(offset);
        return if whole { Ok(moved_on(&upload)) } else { Err(TusError::OffsetConflict) };
    }
    let scope = Scope::of(request, "storage.tus.upload.part");
    let permitted = permission.look(storage, scope, &id.bucket, &id.key, &upload.announced).await?;
    let limit = storage.size_limit(&permitted.rules, &id.key);
    let size = number_in(request, "upload-length")?;
    check_size(&upload, size, limit)?;
    let length = header_text(request, "content-length").and_then(|text| text.parse().ok());
    storage.hand_on(request).await?;
    let body = Some(Box::pin(body.map_err(unreadable)));
    let upload = take(storage, id, permitted, offset, size, limit, length, body).await?;
    Ok(moved_on(&upload))
}

/// Checks a length that comes after the beginning.
fn check_size(upload: &Upload, size: Option<u64>, limit: u64) -> Result<(), TusError> {
    match (size, upload.size) {
        (Some(_), Some(_)) => Err(TusError::NoLength),
        (Some(size), None) if size > limit || size < upload.offset => Err(TusError::TooLargeInAll),
        _ => Ok(()),
    }
}

fn moved_on(upload: &Upload) -> HttpResponse {
    let mut response = answer(StatusCode::NO_CONTENT);
    response.insert_header(("Upload-Offset", upload.offset.to_string()));
    if upload.is_finished() {
        response.insert_header(("Tus-Complete", "1"));
    } else {
        response.insert_header(("Upload-Expires", upload.expires()));
    }
    response.finish()
}

/// `DELETE`: aborts an upload.
async fn terminate(
    storage: &web::Data<Storage>,
    request: &HttpRequest,
    id: UploadId,
    permission: Permission,
) -> Result<HttpResponse, TusError> {
    let upload = rows::find(storage, &id).await?;
    if upload.is_finished() {
        return Err(TusError::Finished);
    }
    let scope = Scope::of(request, "storage.tus.upload.delete");
    permission.look(storage, scope, &id.bucket, &id.key, &upload.announced).await?;
    let (upload, lease) = Lease::acquire(storage, &id).await?;
    if upload.is_finished() {
        lease.release().await;
        return Err(TusError::Finished);
    }
    forget(storage, &id).await?;
    lease.release().await;
    Ok(answer(StatusCode::NO_CONTENT).finish())
}

/// Removes an upload and its parts.
pub async fn forget(storage: &Storage, id: &UploadId) -> Result<(), StorageError> {
    let parts = rows::parts(storage, id.version).await?;
    rows::delete(storage, id.version).await?;
    storage.files.discard(parts.iter().map(|part| part.place(id.version))).await;
    Ok(())
}

/// Writes a body at `offset` and, with the last byte, the object. Continues without the client: received bytes are kept.
#[allow(clippy::too_many_arguments, reason = "each is another fact of one request")]
async fn take<S>(
    storage: &web::Data<Storage>,
    id: UploadId,
    permitted: Permitted,
    offset: u64,
    size: Option<u64>,
    limit: u64,
    length: Option<u64>,
    body: Option<S>,
) -> Result<Upload, TusError>
where
    S: Stream<Item = Result<Bytes, StorageError>> + Unpin + 'static,
{
    let storage = web::Data::clone(storage);
    let work = async move {
        let (upload, lease) = Lease::acquire(&storage, &id).await?;
        let taken = take_leased(&storage, &id, &permitted, upload, &lease, offset, size, limit, length, body).await;
        lease.release().await;
        taken
    };
    actix_web::rt::spawn(work).await.map_err(|error| StorageError::Internal(error.to_string()))?
}

#[allow(clippy::too_many_arguments, reason = "each is another fact of one request")]
async fn take_leased<S>(
    storage: &Storage,
    id: &UploadId,
    permitted: &Permitted,
    mut upload: Upload,
    lease: &Lease,
    offset: u64,
    size: Option<u64>,
    limit: u64,
    length: Option<u64>,
    body: Option<S>,
) -> Result<Upload, TusError>
where
    S: Stream<Item = Result<Bytes, StorageError>> + Unpin,
{
    if upload.offset != offset {
        return Err(TusError::OffsetConflict);
    }
    if let Some(size) = size {
        // Under the lease, because another request may have sent a length or more bytes than that since.
        check_size(&upload, Some(size), limit)?;
        if !rows::set_size(storage, id, lease.writer(), size).await? {
            return Err(TusError::OffsetConflict);
        }
        upload.size = Some(size);
    }
    let end = upload.size.unwrap_or(limit);
    if length.is_some_and(|length| offset.saturating_add(length) > end) {
        return Err(TusError::TooLarge);
    }
    // If only the object is missing, no part is added.
    if body.is_some() && !upload.lacks_object() && upload.parts >= MAX_PARTS {
        return Err(StorageError::InvalidRequest(format!("An upload has {MAX_PARTS} parts at most")).into());
    }
    let mut interrupted = None;
    if let Some(mut body) = body {
        let part = Uuid::new_v4();
        let mut file = storage.files.create(&Place::part(&id.version.to_string(), part))?;
        loop {
            let chunk = tokio::select! {
                chunk = body.next() => chunk,
                () = lease.asked_to_let_go() => {
                    interrupted = Some(TusError::LetGo);
                    None
                }
            };
            match chunk {
                None => break,
                Some(Ok(chunk)) if offset + file.size() + chunk.len() as u64 > end => return Err(TusError::TooLarge),
                Some(Ok(chunk)) => file.write(chunk).await?,
                // The client disconnected; received bytes are kept.
                Some(Err(error)) => {
                    interrupted = Some(error.into());
                    break;
                }
            }
        }
        if file.size() > 0 {
            let file = file.finish().await?;
            let saved = rows::add_part(storage, id, lease.writer(), &upload, part, &file).await;
            match saved {
                Ok(moved) => upload = moved,
                Err(error) => {
                    // If the outcome of a COMMIT is unknown, nothing is removed. The sweep checks which files are named.
                    if matches!(error, TusError::OffsetConflict) {
                        storage.files.discard([file.place]).await;
                    }
                    return Err(error);
                }
            }
        }
    }
    if let Some(reason) = interrupted {
        return Err(reason);
    }
    if upload.lacks_object() {
        complete(storage, id, permitted, &upload, lease.writer()).await?;
        upload.finished = true;
    }
    Ok(upload)
}

/// Joins the parts into the object.
async fn complete(
    storage: &Storage,
    id: &UploadId,
    permitted: &Permitted,
    upload: &Upload,
    writer: Uuid,
) -> Result<(), TusError> {
    let parts = rows::parts(storage, id.version).await?;
    let place = Place::object(&id.bucket, &id.key, &id.version.to_string());
    let sources: Vec<(Place, u64)> = parts.iter().map(|part| (part.place(id.version), part.size)).collect();
    // Replaces what an interrupted attempt has left, but removes nothing: if the lease was lost, the file may have a row by now.
    let detected = storage.files.assemble(&sources, &place).await?;
    let file = StoredFile { place, size: upload.offset, md5: [0; 16], detected };
    let described = Described {
        mime: upload.announced.mime().to_owned(),
        cache_control: upload.announced.cache_control(),
        robots: None,
        content_encoding: upload.announced.content_encoding.clone(),
        user_metadata: Value::Null,
    };
    let new_row = NewRow {
        operation: permitted.operation.clone(),
        bucket: id.bucket.clone(),
        key: id.key.clone(),
        owner: permitted.owner.clone(),
        version: id.version,
        metadata: described.metadata(&etag(&parts), upload.offset),
        user_metadata: upload.announced.user_metadata(),
        replaces: permitted.replaces.clone(),
        completes: Some(Completed::Resumable(id.version, writer)),
    };
    if let Err(error) = storage.write_new_row(file, new_row).await {
        // A refusal is final; a lock or a failure may be retried.
        if !error.may_pass() {
            forget(storage, id).await?;
        }
        return Err(error.into());
    }
    storage.files.discard(parts.iter().map(|part| part.place(id.version))).await;
    Ok(())
}

/// The hash of a single part, or S3's hash of all part hashes with their number.
pub fn etag(parts: &[rows::Part]) -> String {
    match parts {
        [only] => format!("\"{}\"", hex::encode(&only.md5)),
        [] => format!("\"{}\"", hex::encode(Md5::digest(b""))),
        many => {
            let mut digest = Md5::new();
            many.iter().for_each(|part| digest.update(&part.md5));
            format!("\"{}-{}\"", hex::encode(digest.finalize()), many.len())
        }
    }
}

/// The sent user metadata, if it is JSON.
fn parsed(text: Option<&str>) -> Option<Value> {
    serde_json::from_str(text?).ok()
}
