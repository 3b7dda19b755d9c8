//! Creates signed URLs, for downloads and for uploads.

use std::collections::HashSet;

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::error::StorageError;
use super::fields::{Fields, JsonBody};
use super::queries;
use super::receive::metadata_in_header;
use super::signed::SignedUrl;
use super::upload::{Trial, wants_upsert};
use super::{Scope, Storage, header_text, valid_bucket_and_key, valid_bucket_in};
use crate::db::{Client, Statement};

/// Maximum number of paths per call.
const MAX_PATHS: usize = 1000;

fn expires_in(fields: &Fields) -> Result<i64, StorageError> {
    fields.require(&["expiresIn"])?;
    Ok(fields.integer("expiresIn", 1)?.unwrap_or(1))
}

fn download_token(
    storage: &Storage,
    path: &str,
    seconds: i64,
    transformations: Option<String>,
    version: Option<String>,
) -> Result<String, StorageError> {
    let claims = SignedUrl::download(path, seconds, transformations, version);
    let claims = claims.ok_or_else(|| StorageError::InvalidParameter("Invalid Parameter expiresIn".to_owned()))?;
    storage.signer.sign(&claims)
}

/// Relative to the storage base, not encoded but for `?`, which would end the path.
fn address(route: &str, path: &str, token: &str) -> String {
    format!("{route}/{}?token={token}", path.replace('?', "%3F"))
}

/// `POST /object/sign/{bucket}/{key}`: `{signedURL}`, relative to the storage base; with `transform`, of a transformed image; with
/// `versionId`, for that version only.
pub async fn sign_download(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let (bucket, key) = valid_bucket_and_key(&request, "/object/sign/")?;
    let fields = body.fields()?;
    let seconds = expires_in(&fields)?;
    let transformations = storage.transformations(&fields)?;
    let version = fields.string("versionId")?;
    drop(fields);
    let route = if transformations.is_some() { "/render/image/sign" } else { "/object/sign" };
    let path = format!("{bucket}/{}", key.as_str());
    let token = download_token(&storage, &path, seconds, transformations, version.clone())?;
    let ask = async |client: &Client, [read]: [Statement; 1]| {
        queries::read_object(client, &read, &bucket, key.as_str()).await
    };
    let scope = Scope::of(&request, "storage.object.sign");
    let found = storage.look_as_caller(&caller, &scope, [queries::FIND_OBJECT], ask).await?;
    found.filter(|object| object.is_version(version.as_deref())).ok_or(StorageError::NoSuchKey)?;
    Ok(HttpResponse::Ok().json(json!({ "signedURL": address(route, &path, &token) })))
}

/// `POST /object/sign/{bucket}`: several at once. A missing object gets an error text instead of a URL.
pub async fn sign_downloads(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = valid_bucket_in(&request, "/object/sign/")?;
    let fields = body.fields()?;
    fields.require(&["expiresIn", "paths"])?;
    let seconds = expires_in(&fields)?;
    let paths = fields.some_strings("paths", MAX_PATHS)?;
    drop(fields);
    // No name contains NUL, and PostgreSQL would refuse the parameter.
    let asked: Vec<String> = paths.iter().filter(|path| !path.contains('\0')).cloned().collect();
    let tx = storage.as_caller(&caller, &Scope::of(&request, "storage.object.sign_many")).await?;
    let visible: HashSet<String> = queries::visible_names(&tx, &bucket, &asked).await?.into_iter().collect();
    tx.rollback().await?;
    let mut answers: Vec<Value> = Vec::with_capacity(paths.len());
    for name in &paths {
        answers.push(if visible.contains(name) {
            let path = format!("{bucket}/{name}");
            let token = download_token(&storage, &path, seconds, None, None)?;
            json!({ "error": null, "path": name, "signedURL": address("/object/sign", &path, &token) })
        } else {
            json!({
                "error": "Either the object does not exist or you do not have access to it",
                "path": name,
                "signedURL": null,
            })
        });
    }
    Ok(HttpResponse::Ok().json(answers))
}

/// `POST /object/upload/sign/{bucket}/{key}`: `{url, token}` for one upload that the caller may make.
pub async fn sign_upload(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let (bucket, key) = valid_bucket_and_key(&request, "/object/upload/sign/")?;
    let upsert = wants_upsert(&request);
    let user_metadata = header_text(&request, "x-metadata").and_then(metadata_in_header);
    let length = header_text(&request, "content-length").and_then(|v| v.parse::<u64>().ok());
    let trial = Trial {
        bucket: &bucket,
        key: &key,
        metadata: json!({ "mimetype": header_text(&request, "content-type"), "contentLength": length }),
        user_metadata: user_metadata.as_ref(),
        upsert,
    };
    let (_, permitted) =
        trial.attempt(&storage, &caller, &Scope::of(&request, "storage.object.sign_upload_url")).await?;
    permitted?;
    let path = format!("{bucket}/{}", key.as_str());
    let claims = SignedUrl::upload(&path, storage.config.upload_url_life, caller.subject(), upsert);
    let token = storage.signer.sign(&claims)?;
    Ok(HttpResponse::Ok().json(json!({ "url": address("/object/upload/sign", &path, &token), "token": token })))
}
