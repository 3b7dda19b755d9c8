//! Uploads: `POST` and `PUT /object/{bucket}/{key}`, and with a signed URL.
//!
//! The steps: token; key; the file's metadata; the bucket's restrictions and the caller's permission (their own INSERT, rolled
//! back); the bytes, counted, into a new version; the row as service_role under the key's lock; removal of the old version.

use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::join;
use serde_json::{Value, json};
use uuid::Uuid;

use super::backend::{Place, StoredFile};
use super::error::StorageError;
use super::key::ObjectKey;
use super::queries::{self, Bucket, NewObject, Object, Replaceable, Seen, TriedInsert};
use super::receive::Incoming;
use super::signed::Scope as UrlScope;
use super::{Scope, Storage, header_text, valid_bucket_and_key};
use crate::db::{Client, DbError, Statement};
use crate::jwt::caller::Caller;

/// How often a caller is tried because another upload replaced the row meanwhile. Of some that wait for one key, one succeeds each time.
const TRIES: usize = 64;

/// `POST`: a new object, or with `x-upsert: true` a replacement. Answers `{Id, Key}`.
pub async fn insert(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    let upsert = wants_upsert(&request);
    upload(&storage, &request, body, upsert, "storage.object.upload").await
}

/// `PUT`: an object, whether it exists or not.
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
    let (bucket, key) = valid_bucket_and_key(request, "/object/")?;
    let incoming = Incoming::of_request(request, body).await?;
    let trial = Trial {
        bucket: &bucket,
        key: &key,
        metadata: incoming.announced(),
        user_metadata: incoming.user_metadata.as_ref(),
        upsert,
    };
    let (rules, permitted) = trial.run_before_storing(storage, &caller, &Scope::of(request, operation)).await?;
    let limit = incoming.check(storage, &rules, &key)?;
    let replaces = permitted?;
    storage.hand_on(request).await?;
    let owner = caller.subject();
    let (object, _) = store(storage, incoming, limit, &bucket, &key, owner, replaces, operation).await?;
    Ok(HttpResponse::Ok().json(json!({ "Id": object.id, "Key": format!("{bucket}/{}", key.as_str()) })))
}

/// `PUT /object/upload/sign/{bucket}/{key}?token=`: the token grants the upload. Answers `{Key}`.
pub async fn upload_signed(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, StorageError> {
    let (bucket, key) = valid_bucket_and_key(&request, "/object/upload/sign/")?;
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
    let replaces = Replaces::by_link(claims.upsert);
    store(&storage, incoming, limit, &bucket, &key, claims.owner, replaces, operation).await?;
    Ok(HttpResponse::Ok().json(json!({ "Key": path })))
}

/// `?token=` of a signed URL.
pub fn token_in_query(request: &HttpRequest) -> Result<String, StorageError> {
    url::form_urlencoded::parse(request.query_string().as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value.into_owned())
        .ok_or_else(|| StorageError::Invalid("querystring must have required property 'token'".to_owned()))
}

/// An upload as policies check it in advance.
pub struct Trial<'a> {
    pub bucket: &'a str,
    pub key: &'a ObjectKey,
    pub metadata: Value,
    pub user_metadata: Option<&'a Value>,
    pub upsert: bool,
}

impl Trial<'_> {
    /// [`Self::run`] for an upload that writes its row in the same request. The row is written as service_role, so a trial as
    /// service_role would learn nothing that the row itself does not, and leaves a dead row: whether the key is taken is read instead.
    pub async fn run_before_storing(
        &self,
        storage: &Storage,
        caller: &Caller,
        scope: &Scope,
    ) -> Result<(Bucket, Result<Replaces, StorageError>), StorageError> {
        if caller.role != "service_role" {
            return self.run(storage, caller, scope).await;
        }
        let (rules, there) = storage.find_bucket_and_object(self.bucket, self.key).await?;
        let permitted = match self.upsert {
            true => Ok(Replaces::Anything),
            false if there.is_some() => Err(StorageError::AlreadyExists),
            false => Ok(Replaces::Nothing),
        };
        Ok((rules, permitted))
    }

    /// The bucket's restrictions, and what the caller may replace: their own INSERT, rolled back.
    pub async fn run(
        &self,
        storage: &Storage,
        caller: &Caller,
        scope: &Scope,
    ) -> Result<(Bucket, Result<Replaces, StorageError>), StorageError> {
        let (rules, permitted) = self.attempt(storage, caller, scope).await?;
        Ok((rules.ok_or(StorageError::NoSuchBucket)?, permitted))
    }

    /// The same for requests that must not tell strangers which buckets exist.
    pub async fn attempt(
        &self,
        storage: &Storage,
        caller: &Caller,
        scope: &Scope,
    ) -> Result<(Option<Bucket>, Result<Replaces, StorageError>), StorageError> {
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
        let TriedInsert { rules, seen, permitted } =
            storage.look_before_caller(caller, scope, statements, attempt).await?;
        Ok((rules, permitted.map(|()| Replaces::after_trial(self.upsert, caller, scope, &row, seen))))
    }
}

/// Which row an upload may replace.
#[derive(Clone, Debug)]
pub enum Replaces {
    /// None: the key must be free.
    Nothing,
    /// Any: by service_role, or by a link that allows it.
    Anything,
    /// The one that the caller's trial saw. Bytes may take hours to arrive, so there may be another one by the time they are stored.
    Tried(Box<Tried>),
}

/// A trial that permitted an upsert, and all that it takes to repeat it.
#[derive(Clone, Debug)]
pub struct Tried {
    caller: Caller,
    scope: Scope,
    metadata: Value,
    user_metadata: Option<Value>,
    seen: Option<Seen>,
}

impl Replaces {
    /// What a caller may replace whose trial succeeded with this row.
    pub(super) fn after_trial(
        upsert: bool,
        caller: &Caller,
        scope: &Scope,
        row: &NewObject<'_>,
        seen: Option<Seen>,
    ) -> Self {
        match upsert {
            false => Self::Nothing,
            true if caller.role == "service_role" => Self::Anything,
            true => Self::Tried(Box::new(Tried {
                caller: caller.clone(),
                scope: scope.clone(),
                metadata: row.metadata.clone(),
                user_metadata: row.user_metadata.cloned(),
                seen,
            })),
        }
    }

    pub fn by_link(upsert: bool) -> Self {
        if upsert { Self::Anything } else { Self::Nothing }
    }

    fn rows(&self) -> Replaceable<'_> {
        match self {
            Self::Nothing => Replaceable::Nothing,
            Self::Anything => Replaceable::Anything,
            Self::Tried(tried) => Replaceable::Only(tried.seen.as_ref()),
        }
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
    replaces: Replaces,
    operation: &str,
) -> Result<(Object, Value), StorageError> {
    let version = Uuid::new_v4();
    let file = storage.files.create(&Place::object(bucket, key, &version.to_string()))?;
    let (file, described) = incoming.store(file, limit).await?;
    let new_row = NewRow {
        operation: operation.to_owned(),
        bucket: bucket.to_owned(),
        key: key.clone(),
        owner,
        version,
        metadata: described.metadata(&file.etag(), file.size),
        user_metadata: Some(described.user_metadata),
        replaces,
        completes: None,
    };
    storage.write_new_row(file, new_row).await
}

/// The row to write for a stored file.
pub struct NewRow {
    pub operation: String,
    pub bucket: String,
    pub key: ObjectKey,
    pub owner: Option<String>,
    pub version: Uuid,
    pub metadata: Value,
    pub user_metadata: Option<Value>,
    pub replaces: Replaces,
    pub completes: Option<Completed>,
}

/// The multipart or resumable upload that this object completes. It ends in the transaction that writes the row, so it cannot be
/// completed again and overwrite a later object.
pub enum Completed {
    /// A resumable upload, and the holder of its lease.
    Resumable(Uuid, Uuid),
    Multipart(String),
}

/// Why no row was written.
struct RowNotWritten {
    error: StorageError,
    /// Whether the transaction may have committed although its answer was lost.
    unknown: bool,
}

impl From<StorageError> for RowNotWritten {
    fn from(error: StorageError) -> Self {
        Self { error, unknown: false }
    }
}

impl Storage {
    /// Writes the row of a file, then removes the version that it replaces. Runs to completion even if the client disconnects.
    pub async fn write_new_row(&self, file: StoredFile, mut new_row: NewRow) -> Result<(Object, Value), StorageError> {
        let storage = self.clone();
        let task = actix_web::rt::spawn(async move {
            match storage.write_permitted_row(&file, &mut new_row).await {
                Ok((written, before)) => {
                    let replaced = before.map(|version| Place::object(&new_row.bucket, &new_row.key, &version));
                    storage.files.discard(replaced).await;
                    Ok(written)
                }
                Err(RowNotWritten { error, unknown }) => {
                    // If the row was committed after all, it needs its file; if not, the sweep removes the file.
                    if !unknown {
                        storage.files.discard([file.place]).await;
                    }
                    Err(error)
                }
            }
        });
        task.await.unwrap_or_else(|error| Err(StorageError::Internal(error.to_string())))
    }

    /// The row as written, and the version it had before. If the key's row is another than the caller's trial saw, they are tried again.
    async fn write_permitted_row(&self, file: &StoredFile, new_row: &mut NewRow) -> Result<Landed, RowNotWritten> {
        for _ in 0..TRIES {
            if let Some(written) = self.write_row(file, new_row).await? {
                return Ok(written);
            }
            let Replaces::Tried(tried) = &new_row.replaces else { break };
            let trial = Trial {
                bucket: &new_row.bucket,
                key: &new_row.key,
                metadata: tried.metadata.clone(),
                user_metadata: tried.user_metadata.as_ref(),
                upsert: true,
            };
            let (_, permitted) = trial.run(self, &tried.caller, &tried.scope).await?;
            new_row.replaces = permitted?;
        }
        Err(StorageError::Locked.into())
    }

    /// `None` if the key's row is another than the one that may be replaced.
    async fn write_row(&self, file: &StoredFile, new_row: &NewRow) -> Result<Option<Landed>, RowNotWritten> {
        let (bucket, name) = (new_row.bucket.as_str(), new_row.key.as_str());
        let version = new_row.version.to_string();
        let row = NewObject {
            bucket,
            name,
            owner: new_row.owner.as_deref(),
            version: &version,
            metadata: &new_row.metadata,
            user_metadata: new_row.user_metadata.as_ref(),
        };
        let Some(completed) = &new_row.completes else {
            return self.write_at_once(file, new_row, &row).await;
        };
        let replaceable = new_row.replaces.rows();
        let statements = [queries::LOCK_KEY, queries::FIND_OBJECT, replaceable.statement()];
        let write = async |client: &Client, [lock, find, write]: [Statement; 3]| {
            let (locked, before, written) = join!(
                queries::lock_key(client, &lock, bucket, name),
                queries::read_object(client, &find, bucket, name),
                queries::write_object(client, &write, &row, replaceable),
            );
            locked?;
            Ok((before?, written?))
        };
        let (tx, (before, written)) =
            self.as_service_landing(&new_row.operation, file.detected, statements, write).await?;
        let Some(written) = written else {
            tx.rollback().await.map_err(StorageError::from)?;
            return Ok(None);
        };
        let is_first = match completed {
            Completed::Multipart(id) => queries::delete_multipart(&tx, id).await?,
            Completed::Resumable(id, writer) => queries::finish_resumable(&tx, *id, *writer).await?,
        };
        if !is_first {
            tx.rollback().await.map_err(StorageError::from)?;
            // All attempts to complete a resumable upload share one version, so the first successful one needs the file.
            let needs_file = matches!(completed, Completed::Resumable(..));
            let error = if needs_file { StorageError::LockTimeout } else { StorageError::NoSuchUpload };
            return Err(RowNotWritten { error, unknown: needs_file });
        }
        tx.commit().await.map_err(|error| RowNotWritten { unknown: is_unknown(&error), error: error.into() })?;
        Ok(Some((written, replaced(before, &version))))
    }

    /// The same for a row with which nothing else has to be written, in one round trip.
    async fn write_at_once(
        &self,
        file: &StoredFile,
        new_row: &NewRow,
        row: &NewObject<'_>,
    ) -> Result<Option<Landed>, RowNotWritten> {
        let (operation, detected) = (new_row.operation.as_str(), file.detected);
        let replaceable = new_row.replaces.rows();
        let (written, committed) = if !matches!(replaceable, Replaceable::Nothing) {
            let write = async |client: &Client, [lock, find, write]: [Statement; 3]| -> Written {
                let (locked, before, written) = join!(
                    queries::lock_key(client, &lock, row.bucket, row.name),
                    queries::read_object(client, &find, row.bucket, row.name),
                    queries::write_object(client, &write, row, replaceable),
                );
                locked?;
                let before = before?;
                Ok(written?.map(|written| (written, replaced(before, row.version))))
            };
            let statements = [queries::LOCK_KEY, queries::FIND_OBJECT, replaceable.statement()];
            self.commit_landing(operation, detected, statements, write).await
        } else {
            let write = async |client: &Client, [lock, write]: [Statement; 2]| -> Written {
                let (locked, written) = join!(
                    queries::lock_key(client, &lock, row.bucket, row.name),
                    queries::write_object(client, &write, row, replaceable),
                );
                locked?;
                Ok(written?.map(|written| (written, None)))
            };
            self.commit_landing(operation, detected, [queries::LOCK_KEY, replaceable.statement()], write).await
        }
        .map_err(not_landed)?;
        match (written, committed) {
            (Ok(written), Ok(())) => Ok(written),
            (Ok(_), Err(error)) => Err(not_landed(error)),
            // COMMIT was sent with the statements: if its answer is missing as well, all of them may have succeeded.
            (Err(error), committed) => {
                Err(RowNotWritten { error, unknown: committed.is_err_and(|error| is_unknown(&error)) })
            }
        }
    }
}

/// The version that an upload replaces, unless it is its own.
fn replaced(before: Option<Object>, version: &str) -> Option<String> {
    before.and_then(|object| object.version).filter(|replaced| *replaced != version)
}

/// A written row in both forms, and the version that it replaced.
type Landed = ((Object, Value), Option<String>);

/// Outcomes of the statements that write a row.
type Written = Result<Option<Landed>, StorageError>;

/// What a failed attempt to write a row means. Before its connection was there, nothing was sent.
fn not_landed(error: DbError) -> RowNotWritten {
    let unsent = matches!(error, DbError::PoolBusy | DbError::PoolTimeout | DbError::Connect(_));
    RowNotWritten { unknown: !unsent && is_unknown(&error), error: error.into() }
}

/// Whether a transaction whose COMMIT failed this way may have committed. PostgreSQL reports definite failures itself.
pub fn is_unknown(error: &DbError) -> bool {
    let DbError::Postgres(error) = error else { return true };
    let refused = |code: &str| ["23", "40", "42", "P0", "PT"].iter().any(|class| code.starts_with(class));
    !error.as_db_error().is_some_and(|refusal| refused(refusal.code().code()))
}
