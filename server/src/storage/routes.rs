//! The routes of storage. More specific paths come first, because `/object/{bucket}/…` would match them all.

use actix_web::guard::{self, Guard};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;

use super::error::unknown_route;
use super::{Storage, StorageError, buckets, copy, delete, download, list, render, resumable, s3, sign, upload};

/// Maximum size in bytes of a body with names: a thousand of the longest, as JSON.
const MOST_JSON: usize = 4 << 20;

/// GET and HEAD.
fn reads() -> impl Guard {
    guard::Any(guard::Get()).or(guard::Head())
}

/// Mounts the routes below the scope they are given.
pub fn configure(service: &mut ServiceConfig) {
    service
        .app_data(web::PayloadConfig::new(MOST_JSON))
        .route("/bucket", web::post().to(buckets::create))
        .route("/bucket", web::get().to(buckets::list))
        .route("/bucket/", web::post().to(buckets::create))
        .route("/bucket/", web::get().to(buckets::list))
        .route("/bucket/{bucket}/empty", web::post().to(buckets::empty))
        .route("/bucket/{bucket}/lifecycle", web::route().guard(reads()).to(buckets::lifecycle))
        .route("/bucket/{bucket}/lifecycle", web::put().to(buckets::lifecycle))
        .route("/bucket/{bucket}/lifecycle", web::delete().to(buckets::lifecycle))
        .route("/bucket/{bucket}", web::route().guard(reads()).to(buckets::get))
        .route("/bucket/{bucket}", web::put().to(buckets::update))
        .route("/bucket/{bucket}", web::delete().to(buckets::delete))
        .route("/object/copy", web::post().to(copy::copy))
        .route("/object/move", web::post().to(copy::rename))
        .route("/object/upload/sign/{bucket}/{key:.*}", web::post().to(sign::sign_upload))
        .route("/object/upload/sign/{bucket}/{key:.*}", web::put().to(upload::upload_signed))
        .route("/object/sign/{bucket}/{key:.*}", web::post().to(sign::sign_download))
        .route("/object/sign/{bucket}/{key:.*}", web::route().guard(reads()).to(download::signed))
        .route("/object/sign/{bucket}", web::post().to(sign::sign_downloads))
        .route("/object/list/{bucket}", web::post().to(list::list))
        .route("/object/list-v2/{bucket}", web::post().to(list::list_v2))
        .route("/object/info/public/{bucket}/{key:.*}", web::route().guard(reads()).to(download::info_public))
        .route("/object/info/authenticated/{bucket}/{key:.*}", web::route().guard(reads()).to(download::info))
        .route("/object/info/{bucket}/{key:.*}", web::route().guard(reads()).to(download::info))
        .route("/object/public/{bucket}/{key:.*}", web::route().guard(reads()).to(download::public))
        .route("/object/authenticated/{bucket}/{key:.*}", web::route().guard(reads()).to(download::authenticated))
        .route("/object/{bucket}/{key:.*}", web::route().guard(reads()).to(download::own))
        .route("/object/{bucket}/{key:.*}", web::post().to(upload::insert))
        .route("/object/{bucket}/{key:.*}", web::put().to(upload::replace))
        .route("/object/{bucket}/{key:.*}", web::delete().to(delete::one))
        .route("/object/{bucket}", web::delete().to(delete::many))
        .route("/render/image/public/{bucket}/{key:.*}", web::route().guard(reads()).to(render::public))
        .route("/render/image/authenticated/{bucket}/{key:.*}", web::route().guard(reads()).to(render::authenticated))
        .route("/render/image/sign/{bucket}/{key:.*}", web::route().guard(reads()).to(render::signed))
        .route("/upload/resumable/sign", web::to(resumable::serve))
        .route("/upload/resumable/sign/", web::to(resumable::serve))
        .route("/upload/resumable/sign/{id}", web::to(resumable::serve))
        .route("/upload/resumable", web::to(resumable::serve))
        .route("/upload/resumable/", web::to(resumable::serve))
        .route("/upload/resumable/{id}", web::to(resumable::serve))
        .route("/s3", web::to(s3::serve))
        .route("/s3/{tail:.*}", web::to(s3::serve))
        .route("/iceberg", web::to(analytics))
        .route("/iceberg/{tail:.*}", web::to(analytics))
        .route("/vector", web::to(vectors))
        .route("/vector/{tail:.*}", web::to(vectors))
        .route("/cdn", web::delete().to(purge))
        .route("/cdn/{tail:.*}", web::delete().to(purge))
        .route("/status", web::get().to(HttpResponse::Ok))
        .route("/version", web::get().to(version))
        .route("/health", web::get().to(health))
        .default_service(web::to(unknown_route));
}

/// `DELETE /cdn…`: there is no cache in front of this server, so there is nothing to purge.
async fn purge(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    if storage.require_caller(&request)?.role != "service_role" {
        return Err(StorageError::RoleRefused);
    }
    Ok(HttpResponse::Ok().json(json!({ "message": "success", "statusCode": "200" })))
}

/// `/iceberg/…`: there are no analytics buckets.
async fn analytics(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    if storage.require_caller(&request)?.role != "service_role" {
        return Err(StorageError::RoleRefused);
    }
    Err(StorageError::NoSuchFeature)
}

/// `/vector/…`: there are no vector buckets, whoever asks.
async fn vectors() -> Result<HttpResponse, StorageError> {
    Err(StorageError::NoSuchFeature)
}

async fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// `GET /health`: whether the database answers. The status is 200 either way, as in the reference.
async fn health(storage: web::Data<Storage>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "healthy": storage.db.answers().await.is_ok() }))
}
