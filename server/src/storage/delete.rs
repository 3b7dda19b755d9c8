//! Removing objects: rows as the caller, then their files.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::StorageError;
use super::key::ObjectKey;
use super::queries::{self, Object};
use super::{Storage, bucket_and_key};

#[derive(Deserialize)]
struct DeleteRequest {
    prefixes: Vec<String>,
}

/// `DELETE /object/{bucket}/{key}`.
pub async fn one(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let (bucket, key) = bucket_and_key(&request)?;
    let service = storage.as_service().await?;
    let there = queries::find_object(&service, &bucket, key.as_str()).await?;
    service.rollback().await?;
    there.ok_or(StorageError::NoSuchKey)?;
    let tx = storage.as_caller(&caller, &request, "storage.object.delete").await?;
    let gone = queries::delete_objects(&tx, &bucket, &[key.as_str().to_owned()]).await?;
    if gone.is_empty() {
        tx.rollback().await?;
        return Err(StorageError::AccessDenied("Access denied".to_owned()));
    }
    tx.commit().await?;
    remove_files(&storage, &bucket, gone.iter().map(|(object, _)| object)).await;
    Ok(HttpResponse::Ok().json(json!({ "message": "Successfully deleted" })))
}

/// `DELETE /object/{bucket}` with exact keys: the rows that went; the others are silently missing.
pub async fn many(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Bytes,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = super::bucket(&request)?;
    let asked: DeleteRequest = serde_json::from_slice(&body)
        .map_err(|_| StorageError::InvalidRequest("body must have required property 'prefixes'".to_owned()))?;
    let tx = storage.as_caller(&caller, &request, "storage.object.delete_many").await?;
    let gone = queries::delete_objects(&tx, &bucket, &asked.prefixes).await?;
    tx.commit().await?;
    remove_files(&storage, &bucket, gone.iter().map(|(object, _)| object)).await;
    let rows: Vec<Value> = gone.into_iter().map(|(_, row)| row).collect();
    Ok(HttpResponse::Ok().json(rows))
}

/// The rows are gone for good; a file that cannot be removed is only litter.
async fn remove_files(storage: &Storage, bucket: &str, objects: impl Iterator<Item = &Object>) {
    for object in objects {
        let (Ok(key), Some(version)) = (ObjectKey::parse(&object.name), object.version.as_deref()) else { continue };
        if let Err(error) = storage.files.remove(bucket, &key, version).await {
            tracing::warn!(bucket, key = key.as_str(), version, %error, "a deleted object's file stays behind");
        }
    }
}
