//! Making signed URLs, for downloads and for uploads.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::StorageError;
use super::signed::{Scope, SignedUrl};
use super::upload::{header_text, test_upload};
use super::{Storage, bucket_and_key};
use crate::storage::queries;

/// How long a signed upload URL lives.
const UPLOAD_SECONDS: i64 = 2 * 60 * 60;
/// Most paths of one call.
const MAX_PATHS: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignRequest {
    expires_in: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignManyRequest {
    expires_in: i64,
    paths: Vec<String>,
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, StorageError> {
    serde_json::from_slice(body).map_err(|e| StorageError::InvalidRequest(format!("body is not as expected: {e}")))
}

fn download_token(storage: &Storage, path: &str, expires_in: i64) -> Result<String, StorageError> {
    if expires_in < 1 {
        return Err(StorageError::InvalidRequest("body/expiresIn must be >= 1".to_owned()));
    }
    let now = chrono::Utc::now().timestamp();
    let exp = now.checked_add(expires_in).filter(|exp| *exp <= 9_007_199_254_740);
    let exp = exp.ok_or_else(|| StorageError::InvalidRequest("Invalid Parameter expiresIn".to_owned()))?;
    storage.signer.sign(&SignedUrl {
        url: path.to_owned(),
        scope: Scope::Download,
        owner: None,
        upsert: false,
        iat: now,
        exp,
    })
}

/// `POST /object/sign/{bucket}/{key}`: `{signedURL}`, relative to the storage base.
pub async fn sign_download(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Bytes,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let (bucket, key) = bucket_and_key(&request)?;
    let asked: SignRequest = parse(&body)?;
    let tx = storage.as_caller(&caller, &request, "storage.object.sign").await?;
    let found = queries::find_object(&tx, &bucket, key.as_str()).await?;
    tx.rollback().await?;
    found.ok_or(StorageError::NoSuchKey)?;
    let path = format!("{bucket}/{}", key.as_str());
    let token = download_token(&storage, &path, asked.expires_in)?;
    Ok(HttpResponse::Ok().json(json!({ "signedURL": format!("/object/sign/{path}?token={token}") })))
}

/// `POST /object/sign/{bucket}`: many at once; a missing one gets a text instead of a URL.
pub async fn sign_downloads(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Bytes,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = super::bucket(&request)?;
    let asked: SignManyRequest = parse(&body)?;
    if asked.paths.is_empty() || asked.paths.len() > MAX_PATHS {
        return Err(StorageError::InvalidRequest(format!("body/paths must hold 1 to {MAX_PATHS} paths")));
    }
    let tx = storage.as_caller(&caller, &request, "storage.object.sign_many").await?;
    let mut answers: Vec<Value> = Vec::with_capacity(asked.paths.len());
    for name in &asked.paths {
        let there = queries::find_object(&tx, &bucket, name).await?.is_some();
        answers.push(if there {
            let path = format!("{bucket}/{name}");
            let token = download_token(&storage, &path, asked.expires_in)?;
            json!({ "error": null, "path": name, "signedURL": format!("/object/sign/{path}?token={token}") })
        } else {
            json!({
                "error": "Either the object does not exist or you do not have access to it",
                "path": name,
                "signedURL": null,
            })
        });
    }
    tx.rollback().await?;
    Ok(HttpResponse::Ok().json(answers))
}

/// `POST /object/upload/sign/{bucket}/{key}`: `{url, token}` for one upload that the caller may make.
pub async fn sign_upload(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let (bucket, key) = bucket_and_key(&request)?;
    let upsert = header_text(&request, "x-upsert").is_some_and(|v| v == "true");
    test_upload(&storage, &request, &caller, &bucket, &key, upsert, "storage.object.sign_upload_url").await?;
    let path = format!("{bucket}/{}", key.as_str());
    let now = chrono::Utc::now().timestamp();
    let token = storage.signer.sign(&SignedUrl {
        url: path.clone(),
        scope: Scope::Upload,
        owner: caller.subject(),
        upsert,
        iat: now,
        exp: now + UPLOAD_SECONDS,
    })?;
    Ok(HttpResponse::Ok().json(json!({ "url": format!("/object/upload/sign/{path}?token={token}"), "token": token })))
}
