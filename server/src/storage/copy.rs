//! Copying and moving objects, within a bucket and between buckets.
//!
//! Callers who may not see the source are told that it does not exist. The file is copied before its row changes, and removed
//! from its old place afterwards.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};
use uuid::Uuid;

use super::backend::{Place, StoredFile};
use super::delete::shown;
use super::error::StorageError;
use super::fields::{Fields, JsonBody};
use super::key::{self, ObjectKey};
use super::queries::{self, Bucket, Destination, NewObject, Object, TriedInsert};
use super::receive::{self, check_mime, metadata_in_header};
use super::upload::{NewRow, Replaces, is_unknown, wants_upsert};
use super::{Scope, Storage, header_text, sniff, valid_bucket};
use crate::db::{Client, Statement};
use crate::jwt::caller::Caller;

/// How often a copy or move is retried because its source was replaced meanwhile.
const TRIES: usize = 5;

/// Source and destination.
#[derive(Clone, Debug)]
pub struct Route {
    pub from_bucket: String,
    pub from_key: String,
    /// The version that the source must still have.
    pub from_version: Option<String>,
    pub to_bucket: String,
    pub to_key: ObjectKey,
}

impl Route {
    fn of_body(fields: &Fields) -> Result<Self, StorageError> {
        let text = |name: &str| Ok::<_, StorageError>(fields.string(name)?.unwrap_or_default());
        let from_bucket = text("bucketId")?;
        let to_bucket = fields.string("destinationBucket")?.filter(|name| !name.is_empty());
        let route = Self {
            to_bucket: to_bucket.unwrap_or_else(|| from_bucket.clone()),
            from_bucket: valid_bucket(from_bucket)?,
            from_key: text("sourceKey")?,
            from_version: fields.string("sourceVersionId")?,
            to_key: ObjectKey::parse(&text("destinationKey")?)?,
        };
        // No name contains NUL, and PostgreSQL would refuse the parameter.
        if route.from_key.contains('\0') {
            return Err(StorageError::NoSuchKey);
        }
        Ok(route)
    }

    fn means(&self, source: &Object) -> bool {
        source.is_version(self.from_version.as_deref())
    }
}

/// What a copy changes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub cache_control: Option<String>,
    pub mime: Option<String>,
    /// Empty if the copy has none.
    pub content_encoding: Option<String>,
    /// Whether unspecified metadata is dropped instead of kept: S3's `REPLACE`.
    pub drop_rest: bool,
    pub user_metadata: Option<Value>,
}

/// Preconditions on the source of a copy. Times in Unix seconds.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    pub if_modified_since: Option<i64>,
    pub if_unmodified_since: Option<i64>,
}

impl Conditions {
    /// Refuses the copy unless all conditions hold. As in S3, an ETag condition overrides the time condition beside it.
    pub fn check(&self, source: &Object) -> Result<(), StorageError> {
        let at = source.updated_at.timestamp();
        let is_same = |tag: &String| tag == "*" || tag.trim_matches('"') == source.text("eTag").trim_matches('"');
        let is_meant = match &self.if_match {
            Some(tag) => is_same(tag),
            None => self.if_unmodified_since.is_none_or(|since| at <= since),
        };
        let is_new = match &self.if_none_match {
            Some(tag) => !is_same(tag),
            None => self.if_modified_since.is_none_or(|since| at > since),
        };
        if is_meant && is_new { Ok(()) } else { Err(StorageError::PreconditionFailed) }
    }
}

/// `POST /object/copy`: `{Id, Key}` and the new row.
pub async fn copy(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let fields = body.fields()?;
    fields.require(&["sourceKey", "bucketId", "destinationKey"])?;
    let route = Route::of_body(&fields)?;
    let metadata = fields.object("metadata")?;
    let text = |name: &str| metadata.as_ref().map_or(Ok(None), |fields| fields.string(name));
    let (cache_control, mime) = (text("cacheControl")?, text("mimetype")?);
    let content_encoding = match text("contentEncoding")? {
        Some(text) => Some(key::content_encoding(&text)?.unwrap_or_default()),
        None => None,
    };
    let changes = (!fields.boolean("copyMetadata")?.unwrap_or(true)).then(|| Changes {
        cache_control,
        mime,
        content_encoding,
        drop_rest: false,
        user_metadata: header_text(&request, "x-metadata").and_then(metadata_in_header),
    });
    drop((fields, metadata));
    let scope = Scope::of(&request, "storage.object.copy");
    let (any, upsert) = (Conditions::default(), wants_upsert(&request));
    let (object, whole) = storage.copy_object(&caller, &scope, &route, changes, &any, upsert).await?;
    let mut answer = json!({ "Id": object.id, "Key": format!("{}/{}", route.to_bucket, route.to_key.as_str()) });
    if let (Some(answer), Value::Object(row)) = (answer.as_object_mut(), shown(whole)) {
        answer.extend(row);
    }
    Ok(HttpResponse::Ok().json(answer))
}

impl Storage {
    /// Copies an object as the caller. Metadata is copied too unless `changes` says otherwise.
    pub(super) async fn copy_object(
        &self,
        caller: &Caller,
        scope: &Scope,
        route: &Route,
        changes: Option<Changes>,
        conditions: &Conditions,
        upsert: bool,
    ) -> Result<(Object, Value), StorageError> {
        for _ in 0..TRIES {
            if let Some(copied) = self.try_copy(caller, scope, route, changes.clone(), conditions, upsert).await? {
                return Ok(copied);
            }
        }
        Err(StorageError::Locked)
    }

    /// `None` if the source was replaced meanwhile.
    async fn try_copy(
        &self,
        caller: &Caller,
        scope: &Scope,
        route: &Route,
        changes: Option<Changes>,
        conditions: &Conditions,
        upsert: bool,
    ) -> Result<Option<(Object, Value)>, StorageError> {
        let owner = caller.subject();
        let tx = self.as_caller(caller, scope).await?;
        let source = queries::find_object(&tx, &route.from_bucket, &route.from_key).await?;
        let Some(source) = source.filter(|source| route.means(source)) else {
            tx.rollback().await?;
            return Err(StorageError::NoSuchKey);
        };
        if let Err(refused) = conditions.check(&source) {
            tx.rollback().await?;
            return Err(refused);
        }
        let (mut metadata, user_metadata) = (source.metadata.clone(), source.user_metadata.clone());
        let user_metadata = match changes {
            // A source without any replaces what the destination has.
            None if user_metadata.is_null() => upsert.then(|| json!({})),
            None => Some(user_metadata),
            Some(changes) => {
                let fields = [
                    ("cacheControl", changes.cache_control),
                    ("mimetype", changes.mime),
                    ("contentEncoding", changes.content_encoding),
                ];
                for (name, value) in fields {
                    match (value, metadata.as_object_mut()) {
                        (Some(none), Some(fields)) if name == "contentEncoding" && none.is_empty() => {
                            fields.remove(name);
                        }
                        (Some(value), Some(fields)) => drop(fields.insert(name.to_owned(), value.into())),
                        (None, Some(fields)) if changes.drop_rest => drop(fields.remove(name)),
                        _ => {}
                    }
                }
                changes.user_metadata
            }
        };
        let row = NewObject {
            bucket: &route.to_bucket,
            name: route.to_key.as_str(),
            owner: owner.as_deref(),
            version: "1",
            metadata: &metadata,
            user_metadata: user_metadata.as_ref(),
        };
        queries::set_role(&tx, "service_role").await?;
        let statements = if upsert { queries::TRY_UPSERT } else { queries::TRY_INSERT };
        let prepared = tx.client()?.prepare_each(statements).await?;
        let tried = queries::try_insert(tx.client()?, prepared, &caller.role, &row).await;
        tx.rollback().await?;
        let TriedInsert { rules, seen, permitted } = tried?;
        let replaces = Replaces::after_trial(upsert, caller, scope, &row, seen);
        let Some(rules) = rules else {
            permitted?;
            return Err(StorageError::RelatedNotFound);
        };
        permitted?;
        let mime = metadata.get("mimetype").and_then(Value::as_str).unwrap_or("application/octet-stream");
        // What a bucket has, it may have twice, also if it would not accept it any more.
        if route.from_bucket != route.to_bucket {
            self.check_destination(&rules, &route.to_key, mime, source.size())?;
        } else if metadata.get("mimetype") != source.metadata.get("mimetype") {
            check_type(&rules, &route.to_key, mime)?;
        }

        let version = Uuid::new_v4();
        let from = Place::named(&route.from_bucket, &route.from_key, source.version());
        let to = Place::object(&route.to_bucket, &route.to_key, &version.to_string());
        if !self.files.copy(&from, &to).await? {
            self.check_replaced(&route.from_bucket, &route.from_key, &source).await?;
            return Ok(None);
        }
        if let Some(fields) = metadata.as_object_mut() {
            fields.insert("lastModified".to_owned(), json!(receive::now()));
        }
        let detected = self.detect(&to).await?;
        let file = StoredFile { place: to, size: source.size(), md5: [0; 16], detected };
        let new_row = NewRow {
            operation: scope.operation.clone(),
            bucket: route.to_bucket.clone(),
            key: route.to_key.clone(),
            owner,
            version,
            metadata,
            user_metadata,
            replaces,
            completes: None,
        };
        self.write_new_row(file, new_row).await.map(Some)
    }

    /// Succeeds if an object's row names another file by now, which explains why the former file is missing.
    ///
    /// Errors: the row is gone or unchanged.
    pub(super) async fn check_replaced(&self, bucket: &str, key: &str, before: &Object) -> Result<(), StorageError> {
        let ask =
            async |client: &Client, [read]: [Statement; 1]| queries::read_object(client, &read, bucket, key).await;
        match self.look_as_service([queries::FIND_OBJECT], ask).await? {
            None => Err(StorageError::NoSuchKey),
            Some(now) if now.version == before.version => Err(StorageError::NoSuchFile),
            Some(_) => Ok(()),
        }
    }

    /// Checks that a bucket accepts an object of another bucket.
    fn check_destination(&self, rules: &Bucket, key: &ObjectKey, mime: &str, size: u64) -> Result<(), StorageError> {
        check_type(rules, key, mime)?;
        if size > self.size_limit(rules, key) { Err(StorageError::EntityTooLarge) } else { Ok(()) }
    }

    /// The media type detected from a file's bytes.
    async fn detect(&self, place: &Place) -> Result<&'static str, StorageError> {
        let Some(mut file) = self.files.open(place, None).await? else { return Err(StorageError::NoSuchFile) };
        let mut head: Vec<u8> = Vec::new();
        while head.len() < sniff::HEAD_BYTES {
            match futures_util::StreamExt::next(&mut file.bytes).await {
                Some(piece) => head.extend_from_slice(&piece?),
                None => break,
            }
        }
        head.truncate(sniff::HEAD_BYTES);
        Ok(sniff::detect(&head))
    }
}

/// Checks that a bucket accepts objects of this type.
fn check_type(rules: &Bucket, key: &ObjectKey, mime: &str) -> Result<(), StorageError> {
    if key.is_placeholder() { Ok(()) } else { check_mime(mime, rules) }
}

/// `POST /object/move`: the row keeps its id.
pub async fn rename(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let fields = body.fields()?;
    fields.require(&["bucketId", "sourceKey", "destinationKey"])?;
    let route = Route::of_body(&fields)?;
    drop(fields);
    let scope = Scope::of(&request, "storage.object.move");
    for _ in 0..TRIES {
        if storage.move_object(&caller, &scope, &route).await? {
            return Ok(HttpResponse::Ok().json(json!({ "message": "Successfully moved" })));
        }
    }
    Err(StorageError::Locked)
}

/// The reference tells a move to an existing key from an upload to it.
fn taken(error: StorageError) -> StorageError {
    match error {
        StorageError::AlreadyExists => StorageError::ResourceAlreadyExists,
        other => other,
    }
}

impl Storage {
    /// False if the source was replaced meanwhile.
    async fn move_object(&self, caller: &Caller, scope: &Scope, route: &Route) -> Result<bool, StorageError> {
        let owner = caller.subject();
        let version = Uuid::new_v4().to_string();
        let to = Destination {
            bucket: &route.to_bucket,
            name: route.to_key.as_str(),
            version: &version,
            owner: owner.as_deref(),
        };
        let tx = self.as_caller(caller, scope).await?;
        let source = queries::find_object(&tx, &route.from_bucket, &route.from_key).await?;
        let Some(source) = source.filter(|source| route.means(source)) else {
            tx.rollback().await?;
            return Err(StorageError::NoSuchKey);
        };
        queries::set_role(&tx, "service_role").await?;
        let rules = queries::find_bucket(&tx, &route.to_bucket).await?;
        queries::set_role(&tx, &caller.role).await?;
        let tried = queries::rename_object(&tx, &route.from_bucket, &route.from_key, &to).await;
        tx.rollback().await?;
        if !tried.map_err(taken)? {
            // The caller sees the object but may not change it.
            return Err(StorageError::NoSuchKey);
        }
        let mime = Some(source.text("mimetype")).filter(|mime| !mime.is_empty());
        if route.from_bucket != route.to_bucket {
            let rules = rules.ok_or(StorageError::NoSuchBucket)?;
            let mime = mime.unwrap_or("application/octet-stream");
            self.check_destination(&rules, &route.to_key, mime, source.size())?;
        } else if route.from_key == route.to_key.as_str() {
            return Ok(true);
        }

        let first = Place::named(&route.from_bucket, &route.from_key, source.version());
        let second = Place::object(&route.to_bucket, &route.to_key, &version);
        if !self.files.copy(&first, &second).await? {
            self.check_replaced(&route.from_bucket, &route.from_key, &source).await?;
            return Ok(false);
        }
        let (storage, route, scope) = (self.clone(), route.clone(), scope.clone());
        let task = actix_web::rt::spawn(async move {
            match storage.write_move(&scope, &route, &source, &version, owner.as_deref()).await {
                Ok(true) => {
                    storage.files.discard([first]).await;
                    Ok(true)
                }
                Ok(false) => {
                    storage.files.discard([second]).await;
                    Ok(false)
                }
                Err((error, unknown)) => {
                    if !unknown {
                        storage.files.discard([second]).await;
                    }
                    Err(error)
                }
            }
        });
        task.await.unwrap_or_else(|error| Err(StorageError::Internal(error.to_string())))
    }

    /// Moves the row; false if it names another file by now. An error comes with whether the outcome is unknown.
    async fn write_move(
        &self,
        scope: &Scope,
        route: &Route,
        source: &Object,
        version: &str,
        owner: Option<&str>,
    ) -> Result<bool, (StorageError, bool)> {
        let moved = async {
            // Without a detected type, because the bytes were checked when they were uploaded.
            let (tx, [lock]) =
                self.as_service_landing(&scope.operation, "", [queries::LOCK_KEY], async |_, lock| Ok(lock)).await?;
            let mut keys = [
                (route.from_bucket.as_str(), route.from_key.as_str()),
                (route.to_bucket.as_str(), route.to_key.as_str()),
            ];
            keys.sort_unstable();
            for (bucket, name) in keys {
                queries::lock_key(tx.client()?, &lock, bucket, name).await?;
            }
            let now = queries::find_object(&tx, &route.from_bucket, &route.from_key).await?;
            let now = now.ok_or(StorageError::NoSuchKey)?;
            if now.version != source.version {
                tx.rollback().await?;
                return Ok(None);
            }
            let to = Destination { bucket: &route.to_bucket, name: route.to_key.as_str(), version, owner };
            if !queries::rename_object(&tx, &route.from_bucket, &route.from_key, &to).await.map_err(taken)? {
                // Removed since it was found, because a DELETE does not take the key's lock.
                tx.rollback().await?;
                return Err(StorageError::NoSuchKey);
            }
            Ok::<_, StorageError>(Some(tx))
        };
        let Some(tx) = moved.await.map_err(|error| (error, false))? else { return Ok(false) };
        tx.commit().await.map_err(|error| {
            let unknown = is_unknown(&error);
            (error.into(), unknown)
        })?;
        Ok(true)
    }
}
