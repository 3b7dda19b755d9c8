//! Uploads: `POST` and `PUT /object/{bucket}/{key}`, and with a signed URL.
//!
//! Order: token → key → what is said of the file → the bucket's rules and the caller's permission (their own INSERT,
//! undone) → bytes to a new version, counted → row as service_role under the key's lock → the old version goes.

use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::join;
use serde_json::{Value, json};
use uuid::Uuid;

use super::backend::{Place, StoredFile};
use super::error::StorageError;
use super::key::ObjectKey;
use super::queries::{self, Bucket, NewObject, Object};
use super::receive::Incoming;
use super::signed::Scope as UrlScope;
use super::{Scope, Storage, bucket_and_key, header_text};
use crate::db::{Client, DbError, Statement};
use crate::jwt::caller::Caller;

/// `POST`: a new object, or any with `x-upsert: true`. Answers `{Id, Key}`.
pub async fn insert(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    let upsert = wants_upsert(&request);
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

pub fn wants_upsert(request: &HttpRequest) -> bool {
    header_text(request, "x-upsert").is_some_and(|v| v == "true")
}

async fn upload(
    storage: &Storage,
    request: &HttpRequest,
    body: web::Payload,
    upsert: bool,
    operation: &str,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(request)?;
    let (bucket, key) = bucket_and_key(request, "/object/")?;
    let incoming = Incoming::of_request(request, body).await?;
    let trial = Trial {
        bucket: &bucket,
        key: &key,
        metadata: incoming.announced(),
        user_metadata: incoming.user_metadata.as_ref(),
        upsert,
    };
    let (rules, permitted) = trial.run(storage, &caller, &Scope::of(request, operation)).await?;
    let limit = incoming.check(storage, &rules, &key)?;
    permitted?;
    storage.hand_on(request).await?;
    let owner = caller.subject();
    let (object, _) = store(storage, incoming, limit, &bucket, &key, owner, upsert, operation).await?;
    Ok(HttpResponse::Ok().json(json!({ "Id": object.id, "Key": format!("{bucket}/{}", key.as_str()) })))
}

/// `PUT /object/upload/sign/{bucket}/{key}?token=`: the token is the permission. Answers `{Key}`.
pub async fn upload_signed(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = bucket_and_key(&request, "/object/upload/sign/")?;
    let path = format!("{bucket}/{}", key.as_str());
    let claims = storage.signer.verify(&token_in_query(&request)?, UrlScope::Upload, &path)?;
    let incoming = Incoming::of_request(&request, body).await?;
    let (rules, there) = storage.find_bucket_and_object(&bucket, &key).await?;
    let taken = !claims.upsert && there.is_some();
    let limit = incoming.check(&storage, &rules, &key)?;
    if taken {
        return Err(StorageError::AlreadyExists);
    }
    storage.hand_on(&request).await?;
    let operation = "storage.object.upload_signed";
    store(&storage, incoming, limit, &bucket, &key, claims.owner, claims.upsert, operation).await?;
    Ok(HttpResponse::Ok().json(json!({ "Key": path })))
}

/// `?token=` of a signed URL.
pub fn token_in_query(request: &HttpRequest) -> Result<String, StorageError> {
    url::form_urlencoded::parse(request.query_string().as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value.into_owned())
        .ok_or_else(|| StorageError::Invalid("querystring must have required property 'token'".to_owned()))
}

/// An upload as policies judge it beforehand.
pub struct Trial<'a> {
    pub bucket: &'a str,
    pub key: &'a ObjectKey,
    pub metadata: Value,
    pub user_metadata: Option<&'a Value>,
    pub upsert: bool,
}

impl Trial<'_> {
    /// The bucket's rules, and whether the caller may upload: their own INSERT, undone.
    pub async fn run(
        &self,
        storage: &Storage,
        caller: &Caller,
        scope: &Scope,
    ) -> Result<(Bucket, Result<(), StorageError>), StorageError> {
        let owner = caller.subject();
        let row = NewObject {
            bucket: self.bucket,
            name: self.key.as_str(),
            owner: owner.as_deref(),
            version: "1",
            metadata: &self.metadata,
            user_metadata: self.user_metadata,
        };
        let statements = if self.upsert { queries::TRY_UPSERT } else { queries::TRY_INSERT };
        let attempt = async |client: &Client, prepared| queries::try_insert(client, prepared, &caller.role, &row).await;
        storage.look_before_caller(caller, scope, statements, attempt).await
    }
}

/// Writes the bytes and the row.
#[allow(clippy::too_many_arguments, reason = "each is another fact of one upload")]
async fn store(
    storage: &Storage,
    incoming: Incoming,
    limit: u64,
    bucket: &str,
    key: &ObjectKey,
    owner: Option<String>,
    upsert: bool,
    operation: &str,
) -> Result<(Object, Value), StorageError> {
    let version = Uuid::new_v4();
    let file = storage.files.create(&Place::object(bucket, key, &version.to_string()))?;
    let (file, described) = incoming.store(file, limit).await?;
    let landing = Landing {
        operation: operation.to_owned(),
        bucket: bucket.to_owned(),
        key: key.clone(),
        owner,
        version,
        metadata: described.metadata(&file.etag(), file.size),
        user_metadata: described.user_metadata,
        upsert,
        completes: None,
    };
    storage.land(file, landing).await
}

/// The row of a file that is there.
pub struct Landing {
    pub operation: String,
    pub bucket: String,
    pub key: ObjectKey,
    pub owner: Option<String>,
    pub version: Uuid,
    pub metadata: Value,
    pub user_metadata: Value,
    pub upsert: bool,
    pub completes: Option<Completed>,
}

/// The upload in parts whose object this is. It ends in the transaction that writes the row, so nobody completes it
/// again over what came later.
pub enum Completed {
    Resumable(Uuid),
    Multipart(String),
}

/// Why no row was written.
struct NotLanded {
    error: StorageError,
    /// The transaction may have committed although nobody heard of it.
    unknown: bool,
}

impl From<StorageError> for NotLanded {
    fn from(error: StorageError) -> Self {
        Self { error, unknown: false }
    }
}

impl Storage {
    /// Writes the row of a file, then removes what it replaces. Runs to its end even if the client goes away.
    pub async fn land(&self, file: StoredFile, landing: Landing) -> Result<(Object, Value), StorageError> {
        let storage = self.clone();
        let task = actix_web::rt::spawn(async move {
            match storage.write_row(&file, &landing).await {
                Ok((written, before)) => {
                    let replaced = before.map(|version| Place::object(&landing.bucket, &landing.key, &version));
                    storage.files.discard(replaced).await;
                    Ok(written)
                }
                Err(NotLanded { error, unknown }) => {
                    // If there is a row after all, it needs its file; if not, the sweep takes it.
                    if !unknown {
                        storage.files.discard([file.place]).await;
                    }
                    Err(error)
                }
            }
        });
        task.await.unwrap_or_else(|error| Err(StorageError::Internal(error.to_string())))
    }

    /// The row as written, and the version it had before.
    async fn write_row(
        &self,
        file: &StoredFile,
        landing: &Landing,
    ) -> Result<((Object, Value), Option<String>), NotLanded> {
        let (bucket, name) = (landing.bucket.as_str(), landing.key.as_str());
        let version = landing.version.to_string();
        let row = NewObject {
            bucket,
            name,
            owner: landing.owner.as_deref(),
            version: &version,
            metadata: &landing.metadata,
            user_metadata: Some(&landing.user_metadata),
        };
        let write = if landing.upsert { queries::WRITE } else { queries::WRITE_NEW };
        let statements = [queries::LOCK_KEY, queries::FIND_OBJECT, write];
        let write = async |client: &Client, [lock, find, write]: [Statement; 3]| {
            let (locked, before, written) = join!(
                queries::lock_key(client, &lock, bucket, name),
                queries::read_object(client, &find, bucket, name),
                queries::write_object(client, &write, &row),
            );
            locked?;
            Ok((before?, written?))
        };
        let (tx, (before, written)) =
            self.as_service_landing(&landing.operation, file.detected, statements, write).await?;
        let is_first = match &landing.completes {
            None => true,
            Some(Completed::Multipart(id)) => queries::delete_multipart(&tx, id).await?,
            Some(Completed::Resumable(id)) => queries::finish_resumable(&tx, *id).await?,
        };
        if !is_first {
            tx.rollback().await.map_err(StorageError::from)?;
            // The version of a resumable upload is its object's: whoever was first needs the file.
            let needs_file = matches!(landing.completes, Some(Completed::Resumable(_)));
            let error = if needs_file { StorageError::LockTimeout } else { StorageError::NoSuchUpload };
            return Err(NotLanded { error, unknown: needs_file });
        }
        tx.commit().await.map_err(|error| NotLanded { unknown: is_unknown(&error), error: error.into() })?;
        let replaced = before.and_then(|object| object.version);
        Ok((written, replaced.filter(|replaced| *replaced != version)))
    }
}

/// Whether a transaction whose COMMIT failed so may have committed all the same. PostgreSQL says so when it has not.
pub fn is_unknown(error: &DbError) -> bool {
    let DbError::Postgres(error) = error else { return true };
    let refused = |code: &str| ["23", "40", "42", "P0", "PT"].iter().any(|class| code.starts_with(class));
    !error.as_db_error().is_some_and(|refusal| refused(refusal.code().code()))
}
