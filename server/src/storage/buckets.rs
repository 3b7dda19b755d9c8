//! Buckets: `/bucket`. Every statement runs as the caller, except counts of a bucket's objects, which run as service_role.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::StorageError;
use super::fields::{Fields, Given, JsonBody, Size};
use super::key::{is_bucket_name, is_listed_type, is_new_bucket_name};
use super::queries;
use super::{Scope, Storage, bucket_in, header_text};
use crate::db::Transaction;
use crate::jwt::caller::Caller;

/// Objects removed per transaction when a bucket is emptied.
const BATCH: i64 = 500;
/// How long the answer waits for the objects of a small bucket.
const EMPTY_WAIT: Duration = Duration::from_secs(5);
/// The first pause before a bucket that could not be emptied is tried again, and the longest. Each is twice the one before.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_EMPTY_PAUSE: Duration = Duration::from_secs(1024);

const COLUMNS: &str = "id, name, owner::text, public, created_at, updated_at, file_size_limit, allowed_mime_types";

/// A bucket to be created.
pub struct NewBucket {
    pub id: String,
    pub name: String,
    pub public: bool,
    pub file_size_limit: Option<i64>,
    pub allowed_mime_types: Option<Vec<String>>,
}

/// `POST /bucket`: `{name}`.
pub async fn create(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let fields = body.fields()?;
    fields.require(&["name"])?;
    let name = fields.string("name")?.unwrap_or_default();
    let id = fields.string("id")?.filter(|id| !id.is_empty()).unwrap_or_else(|| name.clone());
    let public = fields.boolean("public")?.unwrap_or(false);
    let kind = fields.one_of("type", &["STANDARD", "ANALYTICS"])?;
    let limit = fields.size("file_size_limit")?;
    let types = fields.strings("allowed_mime_types")?;
    let versioning = versioning_status(&fields)?;
    drop(fields);
    if !is_new_bucket_name(&name) || !is_bucket_name(&id) {
        return Err(StorageError::InvalidBucketName);
    }
    if kind == Some("ANALYTICS") {
        return Err(StorageError::FeatureNotEnabled("Iceberg buckets are not enabled for this tenant"));
    }
    refuse_versioning(versioning)?;
    let bucket = NewBucket {
        file_size_limit: storage.limit_in_bytes(limit)?.into_option(),
        allowed_mime_types: checked_types(types)?.into_option(),
        id,
        name: name.clone(),
        public,
    };
    storage.create_bucket(&caller, &Scope::of(&request, "storage.bucket.create"), &bucket).await?;
    Ok(HttpResponse::Ok().json(json!({ "name": name })))
}

fn versioning_status(fields: &Fields) -> Result<Option<&'static str>, StorageError> {
    fields.one_of("versioning_status", &["DISABLED", "ENABLED", "SUSPENDED"])
}

/// Former versions of objects are not kept, so a bucket's status can only be the one that it has.
fn refuse_versioning(status: Option<&str>) -> Result<(), StorageError> {
    match status {
        None | Some("DISABLED") => Ok(()),
        Some(_) => Err(StorageError::FeatureNotEnabled("object versioning")),
    }
}

/// `GET /bucket`: the buckets that the caller may see.
pub async fn list(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let query = Fields::of_query(request.query_string());
    let limit = query.integer("limit", 1)?;
    let offset = query.integer("offset", 0)?.unwrap_or(0);
    let column = query.one_of("sortColumn", &["id", "name", "created_at", "updated_at"])?;
    let order = query.one_of("sortOrder", &["asc", "desc"])?.unwrap_or("asc");
    let search = query.string("search")?.unwrap_or_default();
    let with_type = !is_old_python_client(&request);
    let tx = storage.as_caller(&caller, &Scope::of(&request, "storage.bucket.list")).await?;
    let rows = list_rows(&tx, &search, column.map(|column| (column, order)), limit, offset).await?;
    tx.rollback().await?;
    let buckets: Result<Vec<Value>, StorageError> = rows.iter().map(|row| shown(row, with_type)).collect();
    Ok(HttpResponse::Ok().json(buckets?))
}

/// Python clients before these versions cannot read a bucket with a `type`.
fn is_old_python_client(request: &HttpRequest) -> bool {
    let before = |header: &str, prefix: &str, known: [u32; 3]| {
        let text = header_text(request, header).unwrap_or("");
        let Some(at) = text.find(prefix) else { return false };
        let parts: Vec<u32> = text[at + prefix.len()..]
            .split(|c: char| !c.is_ascii_digit())
            .take(3)
            .filter_map(|part| part.parse().ok())
            .collect();
        parts.len() == 3 && parts.as_slice() < known.as_slice()
    };
    before("x-client-info", "supabase-py/", [2, 18, 0]) || before("user-agent", "supabase-py/storage3 v", [0, 12, 1])
}

async fn list_rows(
    tx: &Transaction,
    search: &str,
    sorting: Option<(&str, &str)>,
    limit: Option<i64>,
    offset: i64,
) -> Result<Vec<Row>, StorageError> {
    let pattern = format!("%{}%", search.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
    // Both words come from fixed lists.
    let sorting = sorting.map_or_else(String::new, |(column, order)| format!("order by {column} {order}"));
    let sql = format!(
        "select {COLUMNS}, type::text from storage.buckets where $1 = '' or name ilike $2 {sorting} limit $3 offset $4"
    );
    let statement = tx.client()?.prepare_cached(&sql).await?;
    Ok(tx.client()?.query(&statement, &[&search, &pattern, &limit, &offset]).await?)
}

/// A bucket in the form of answers.
fn shown(row: &Row, with_type: bool) -> Result<Value, StorageError> {
    let time = |name: &str| -> Result<Value, StorageError> {
        let at: Option<DateTime<Utc>> = row.try_get(name)?;
        Ok(at.map_or(Value::Null, |at| json!(at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))))
    };
    let mut bucket = json!({
        "id": row.try_get::<_, String>("id")?,
        "name": row.try_get::<_, String>("name")?,
        // A string in the reference's schema, which turns null into an empty one.
        "owner": row.try_get::<_, Option<String>>("owner")?.unwrap_or_default(),
        "public": row.try_get::<_, Option<bool>>("public")?.unwrap_or(false),
    });
    if with_type {
        bucket["type"] = json!(row.try_get::<_, String>("type")?);
    }
    bucket["file_size_limit"] = json!(row.try_get::<_, Option<i64>>("file_size_limit")?);
    bucket["allowed_mime_types"] = json!(row.try_get::<_, Option<Vec<String>>>("allowed_mime_types")?);
    bucket["created_at"] = time("created_at")?;
    bucket["updated_at"] = time("updated_at")?;
    Ok(bucket)
}

/// `GET /bucket/{id}`.
pub async fn get(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let id = bucket_in(&request, "/bucket/")?;
    let tx = storage.as_caller(&caller, &Scope::of(&request, "storage.bucket.get")).await?;
    let sql = format!("select {COLUMNS} from storage.buckets where id = $1");
    let statement = tx.client()?.prepare_cached(&sql).await?;
    let row = tx.client()?.query_opt(&statement, &[&id]).await?;
    tx.rollback().await?;
    Ok(HttpResponse::Ok().json(shown(&row.ok_or(StorageError::NoSuchBucket)?, false)?))
}

/// `PUT /bucket/{id}`: changes the given fields.
pub async fn update(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let id = bucket_in(&request, "/bucket/")?;
    let fields = body.fields()?;
    let known = ["public", "file_size_limit", "allowed_mime_types"];
    if !known.iter().any(|name| fields.has(name)) && !fields.has("versioning_status") {
        let missing = known.map(|name| format!("body must have required property '{name}'")).join(", ");
        return Err(StorageError::Invalid(format!("{missing}, body must match a schema in anyOf")));
    }
    let public = fields.boolean("public")?;
    let limit = storage.limit_in_bytes(fields.size("file_size_limit")?)?;
    let types = checked_types(fields.strings("allowed_mime_types")?)?;
    let versioning = versioning_status(&fields)?;
    drop(fields);
    if !is_bucket_name(&id) {
        return Err(StorageError::InvalidBucketName);
    }
    refuse_versioning(versioning)?;
    let (set_limit, limit) = (!limit.is_absent(), limit.into_option());
    let (set_types, types) = (!types.is_absent(), types.into_option());
    let tx = storage.as_caller(&caller, &Scope::of(&request, "storage.bucket.update")).await?;
    let statement = tx
        .client()?
        .prepare_cached(
            "update storage.buckets set public = coalesce($2, public), \
             file_size_limit = case when $3 then $4 else file_size_limit end, \
             allowed_mime_types = case when $5 then $6 else allowed_mime_types end, updated_at = now() \
             where id = $1 returning id",
        )
        .await?;
    let values: [&(dyn ToSql + Sync); 6] = [&id, &public, &set_limit, &limit, &set_types, &types];
    let changed = tx.client()?.query(&statement, &values).await?;
    if changed.is_empty() {
        tx.rollback().await?;
        return Err(StorageError::NoSuchBucket);
    }
    tx.commit().await?;
    Ok(HttpResponse::Ok().json(json!({ "message": "Successfully updated" })))
}

/// `DELETE /bucket/{id}`: the bucket must be empty.
pub async fn delete(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    body.check_if_any()?;
    let id = bucket_in(&request, "/bucket/")?;
    storage.delete_bucket(&caller, &Scope::of(&request, "storage.bucket.delete"), &id).await?;
    Ok(HttpResponse::Ok().json(json!({ "message": "Successfully deleted" })))
}

/// `/bucket/{id}/lifecycle`: a bucket's rules for former versions, which are not kept.
pub async fn lifecycle(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    storage.require_caller(&request)?;
    match *request.method() {
        Method::PUT => body.fields()?.require(&["rules"])?,
        _ => body.check_if_any()?,
    }
    Err(StorageError::FeatureNotEnabled("object lifecycles"))
}

/// `POST /bucket/{id}/empty`: for service_role. The removal of the existing objects continues after the answer.
pub async fn empty(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    body.check_if_any()?;
    let id = bucket_in(&request, "/bucket/")?;
    if caller.role != "service_role" {
        return Err(StorageError::RoleRefused);
    }
    let tx = storage.as_caller(&caller, &Scope::of(&request, "storage.bucket.empty")).await?;
    queries::find_bucket(&tx, &id).await?.ok_or(StorageError::NoSuchBucket)?;
    let statement = tx
        .client()?
        .prepare_cached(
            "select count(*), now() from (select 1 from storage.objects where bucket_id = $1 limit $2) as counted",
        )
        .await?;
    let most = storage.config.empty_bucket_max;
    let row = tx.client()?.query_one(&statement, &[&id, &most.saturating_add(1)]).await?;
    let (count, before): (i64, DateTime<Utc>) = (row.try_get(0)?, row.try_get(1)?);
    if count > most {
        tx.rollback().await?;
        return Err(StorageError::TooManyObjects);
    }
    let note = "insert into _supavisor.emptied_buckets as e (bucket_id, before) values ($1, $2) \
                on conflict (bucket_id) do update set before = greatest(e.before, excluded.before)";
    tx.client()?.execute(note, &[&id, &before]).await?;
    tx.commit().await?;
    let storage = web::Data::clone(&storage);
    let work = async move {
        let mut pause = EMPTY_PAUSE;
        while let Err(error) = storage.empty_bucket(&id, before).await {
            let again = error.may_pass() && pause <= LONGEST_EMPTY_PAUSE;
            tracing::warn!(bucket = id, %error, again, "a bucket could not be emptied");
            if !error.may_pass() {
                storage.give_up_emptying(&id, before).await;
            }
            if !again {
                return;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    };
    let emptied = actix_web::rt::spawn(work);
    // A few objects are removed before the answer, if nothing is in the way.
    if count <= BATCH {
        let _ = tokio::time::timeout(EMPTY_WAIT, emptied).await;
    }
    let message = "Empty bucket has been queued. Completion may take up to an hour.";
    Ok(HttpResponse::Ok().json(json!({ "message": message })))
}

/// A bucket's allowed media types; empty strings are left out.
fn checked_types(types: Given<Vec<String>>) -> Result<Given<Vec<String>>, StorageError> {
    let Given::Value(mut types) = types else { return Ok(types) };
    types.retain(|text| !text.is_empty());
    match types.iter().find(|text| !is_listed_type(text)) {
        Some(unknown) => Err(StorageError::InvalidMimeType(unknown.clone())),
        None => Ok(Given::Value(types)),
    }
}

impl Storage {
    /// A bucket's size limit, at most the global one.
    fn limit_in_bytes(&self, limit: Given<Size>) -> Result<Given<i64>, StorageError> {
        match limit {
            Given::Value(Size(bytes)) if bytes > self.config.file_size_limit => Err(StorageError::EntityTooLarge),
            Given::Value(Size(bytes)) => {
                i64::try_from(bytes).map(Given::Value).map_err(|_| StorageError::EntityTooLarge)
            }
            Given::Null => Ok(Given::Null),
            Given::Absent => Ok(Given::Absent),
        }
    }

    pub(super) async fn create_bucket(
        &self,
        caller: &Caller,
        scope: &Scope,
        new: &NewBucket,
    ) -> Result<(), StorageError> {
        let owner = caller.subject();
        let owner_uuid = owner.as_deref().and_then(|o| uuid::Uuid::parse_str(o).ok());
        let tx = self.as_caller(caller, scope).await?;
        let statement = tx
            .client()?
            .prepare_cached(
                "insert into storage.buckets \
                   (id, name, owner, owner_id, public, file_size_limit, allowed_mime_types, type) \
                 values ($1, $2, $3, $4, $5, $6, $7, 'STANDARD')",
            )
            .await?;
        let values: [&(dyn ToSql + Sync); 7] =
            [&new.id, &new.name, &owner_uuid, &owner, &new.public, &new.file_size_limit, &new.allowed_mime_types];
        let inserted = tx.client()?.execute(&statement, &values).await.map_err(StorageError::from);
        match inserted {
            Ok(_) => Ok(tx.commit().await?),
            Err(error) => {
                tx.rollback().await?;
                Err(match error {
                    StorageError::AlreadyExists => StorageError::BucketAlreadyExists,
                    other => other,
                })
            }
        }
    }

    pub(super) async fn delete_bucket(&self, caller: &Caller, scope: &Scope, id: &str) -> Result<(), StorageError> {
        let tx = self.before_caller(caller, scope).await?;
        let client = tx.client()?;
        let lock = client.prepare_cached("select id from storage.buckets where id = $1 for update").await?;
        if client.query_opt(&lock, &[&id]).await?.is_none() {
            tx.rollback().await?;
            return Err(StorageError::NoSuchBucket);
        }
        let look = client.prepare_cached("select exists (select from storage.objects where bucket_id = $1)").await?;
        let full: bool = client.query_one(&look, &[&id]).await?.try_get(0)?;
        queries::set_role(&tx, &caller.role).await?;
        // Callers who may not see the bucket must not learn whether it is empty.
        let seen = queries::find_bucket(&tx, id).await?.is_some();
        let outcome = match (seen, full) {
            (false, _) => Err(StorageError::NoSuchBucket),
            (true, true) => Err(StorageError::BucketNotEmpty),
            (true, false) => {
                let delete = client.prepare_cached("delete from storage.buckets where id = $1 returning id").await?;
                match client.query(&delete, &[&id]).await {
                    Ok(gone) if gone.is_empty() => Err(StorageError::NoSuchBucket),
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
        };
        match outcome {
            Ok(()) => Ok(tx.commit().await?),
            Err(error) => {
                tx.rollback().await?;
                Err(error)
            }
        }
    }

    /// Continues where a server was stopped while it emptied buckets, or a passing error lasted. After a week they are given up.
    pub async fn empty_noted_buckets(&self) -> Result<(), StorageError> {
        let tx = self.as_service().await?;
        let client = tx.client()?;
        client.execute("delete from _supavisor.emptied_buckets where before < now() - interval '7 days'", &[]).await?;
        let rows = client.query("select bucket_id, before from _supavisor.emptied_buckets", &[]).await?;
        tx.commit().await?;
        for row in rows {
            let id: String = row.try_get(0)?;
            let before = row.try_get(1)?;
            if let Err(error) = self.empty_bucket(&id, before).await {
                tracing::warn!(bucket = id, %error, "a bucket could not be emptied");
                if !error.may_pass() {
                    self.give_up_emptying(&id, before).await;
                }
            }
        }
        Ok(())
    }

    /// Removes the note that a bucket is being emptied. What is put into it later must not be removed.
    async fn give_up_emptying(&self, id: &str, before: DateTime<Utc>) {
        let removed = async {
            let tx = self.as_service().await?;
            forget_emptying(&tx, id, before).await?;
            Ok::<_, StorageError>(tx.commit().await?)
        };
        if let Err(error) = removed.await {
            tracing::warn!(bucket = id, %error, "the note that a bucket is being emptied stays behind");
        }
    }

    /// Removes the objects of a bucket that were last changed before a time, in batches of one transaction each, then the note that says so.
    async fn empty_bucket(&self, id: &str, before: DateTime<Utc>) -> Result<(), StorageError> {
        loop {
            let tx = self.as_service().await?;
            let client = tx.client()?;
            let statement = client
                .prepare_cached(
                    "select name from storage.objects \
                     where bucket_id = $1 and created_at <= $2 and coalesce(updated_at <= $2, true) limit $3",
                )
                .await?;
            let rows = client.query(&statement, &[&id, &before, &BATCH]).await?;
            let names: Result<Vec<String>, _> = rows.iter().map(|row| row.try_get("name")).collect();
            let names = names?;
            let gone = queries::delete_objects(&tx, id, &names).await?;
            // None are left, a trigger keeps them, or another instance is at it.
            if gone.is_empty() {
                forget_emptying(&tx, id, before).await?;
                return Ok(tx.commit().await?);
            }
            tx.commit().await?;
            self.remove_files(id, gone.iter().map(|(object, _)| object)).await;
        }
    }
}

async fn forget_emptying(tx: &Transaction, id: &str, before: DateTime<Utc>) -> Result<(), StorageError> {
    let done = "delete from _supavisor.emptied_buckets where bucket_id = $1 and before <= $2";
    tx.client()?.execute(done, &[&id, &before]).await?;
    Ok(())
}

/// Names and creation times of the buckets that the caller may see, for S3's listing.
pub async fn names_and_times(tx: &Transaction) -> Result<Vec<(String, Option<DateTime<Utc>>)>, StorageError> {
    let statement = tx.client()?.prepare_cached("select name, created_at from storage.buckets order by name").await?;
    let rows = tx.client()?.query(&statement, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get("name")?, row.try_get("created_at")?))).collect()
}
