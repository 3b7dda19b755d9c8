//! Removing objects: the rows as the caller, then the files.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::backend::Place;
use super::error::StorageError;
use super::fields::{Fields, JsonBody};
use super::list::with_short_times;
use super::queries::{self, Object};
use super::{Scope, Storage, name_in, valid_bucket_in};
use crate::jwt::caller::Caller;

/// Keys whose rows are deleted per transaction.
const BATCH: usize = 500;
/// Maximum number of keys per call if hard limits are enabled.
const HARD_LIMIT: usize = 1000;

/// `DELETE /object/{bucket}/{key}`. An object that the caller may not see gets the same answer as a missing one.
pub async fn one(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = valid_bucket_in(&request, "/object/")?;
    let name = name_in(&request, "/object/")?;
    let version = Fields::of_query(request.query_string()).string("versionId")?;
    let scope = Scope::of(&request, "storage.object.delete");
    storage.delete_object(&caller, &scope, &bucket, &name, version.as_deref()).await?;
    Ok(HttpResponse::Ok().json(json!({ "message": "Successfully deleted" })))
}

/// `DELETE /object/{bucket}` with exact keys, each alone or with the version that it must still have. Returns the deleted rows; others
/// are left out silently.
pub async fn many(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = valid_bucket_in(&request, "/object/")?;
    let entries = body.fields()?.some_pairs("prefixes", ["path", "versionId"])?;
    if storage.config.hard_limits && entries.len() > HARD_LIMIT {
        return Err(StorageError::InvalidRequest(format!(
            "Bulk object requests are limited to {HARD_LIMIT} objects per request."
        )));
    }
    let scope = Scope::of(&request, "storage.object.delete_many");
    let mut rows: Vec<Value> = Vec::new();
    for batch in entries.chunks(BATCH) {
        let (mut names, mut keys, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        for (name, version) in batch {
            match version {
                Some(version) => {
                    keys.push(name.as_str());
                    versions.push(version.as_str());
                }
                None => names.push(name.clone()),
            }
        }
        let tx = storage.as_caller(&caller, &scope).await?;
        let mut gone = queries::delete_objects(&tx, &bucket, &names).await?;
        if !keys.is_empty() {
            gone.extend(queries::delete_versions(&tx, &bucket, &keys, &versions).await?);
        }
        tx.commit().await?;
        storage.remove_files(&bucket, gone.iter().map(|(object, _)| object)).await;
        rows.extend(gone.into_iter().map(|(_, row)| shown(row)));
    }
    Ok(HttpResponse::Ok().json(rows))
}

/// A row's columns in the form of answers: only those that clients know.
pub fn shown(row: Value) -> Value {
    let mut row = with_short_times(row);
    if let Some(fields) = row.as_object_mut() {
        for internal in ["path_tokens", "archived_at", "is_delete_marker", "is_versioned"] {
            fields.remove(internal);
        }
        // Strings in the reference's schema, which turns null into an empty one.
        for text in ["owner", "owner_id"] {
            if fields.get(text).is_some_and(Value::is_null) {
                fields.insert(text.to_owned(), Value::String(String::new()));
            }
        }
    }
    row
}

impl Storage {
    /// Removes an object as the caller; with a version, only if it still has that one.
    pub(super) async fn delete_object(
        &self,
        caller: &Caller,
        scope: &Scope,
        bucket: &str,
        name: &str,
        version: Option<&str>,
    ) -> Result<(), StorageError> {
        // No name and no version contains NUL, and PostgreSQL would refuse the parameter.
        if name.contains('\0') || version.is_some_and(|version| version.contains('\0')) {
            return Err(StorageError::NoSuchKey);
        }
        let tx = self.as_caller(caller, scope).await?;
        let gone = match version {
            Some(version) => queries::delete_versions(&tx, bucket, &[name], &[version]).await?,
            None => queries::delete_objects(&tx, bucket, &[name.to_owned()]).await?,
        };
        if gone.is_empty() {
            let seen = queries::find_object(&tx, bucket, name).await?;
            let seen = seen.filter(|object| object.is_version(version));
            tx.rollback().await?;
            return Err(match seen {
                Some(_) => StorageError::AccessDenied("Access denied".to_owned()),
                None => StorageError::NoSuchKey,
            });
        }
        tx.commit().await?;
        self.remove_files(bucket, gone.iter().map(|(object, _)| object)).await;
        Ok(())
    }

    /// The rows are deleted already, so a file that cannot be removed is left to the sweep.
    pub async fn remove_files(&self, bucket: &str, objects: impl Iterator<Item = &Object>) {
        self.files.discard(objects.map(|object| Place::named(bucket, &object.name, object.version()))).await;
    }
}
