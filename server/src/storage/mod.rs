//! `/storage/v1`: objects in buckets, rows in PostgreSQL, bytes in files.
//!
//! Served: upload (raw and multipart), signed uploads, download (own, public, signed, ranges), info, signed
//! URLs, listing, removal. Every permission is the caller's own statement on `storage.objects`, undone again;
//! the write itself then happens as service_role. Reference: supabase/storage.

mod backend;
mod delete;
mod download;
mod error;
mod key;
mod list;
mod queries;
mod sign;
mod signed;
mod sniff;
pub mod sweep;
mod upload;

use std::path::PathBuf;

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, ResponseError};

use crate::config::{Reader, Secret};
use crate::db::{Pool, Transaction};
use crate::jwt::bearer::{Bearer, BearerError};
use crate::jwt::caller::Caller;
use backend::FileBackend;
pub use error::StorageError;
use key::ObjectKey;
use signed::UrlSigner;

/// Settings of storage.
#[derive(Clone, Debug)]
pub struct StorageConfig {
    /// `UPLOAD_FILE_SIZE_LIMIT`, bytes, default 50 MiB: no object is larger, whatever its bucket says.
    pub file_size_limit: u64,
    /// `FERROBASE_STORAGE_DIR`, default `<data dir>/storage`.
    pub folder: PathBuf,
}

impl StorageConfig {
    pub fn read(reader: &mut Reader<'_>, data_dir: &std::path::Path) -> Self {
        Self {
            file_size_limit: reader.parse_or(
                &["UPLOAD_FILE_SIZE_LIMIT", "FILE_SIZE_LIMIT"],
                "a whole number of bytes",
                50 * 1024 * 1024,
            ),
            folder: reader.text(&["FERROBASE_STORAGE_DIR"]).map_or_else(|| data_dir.join("storage"), PathBuf::from),
        }
    }
}

/// What the handlers share. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    db: Pool,
    tokens: Bearer,
    signer: UrlSigner,
    files: FileBackend,
    file_size_limit: u64,
}

impl Storage {
    /// `db` logs in as the authenticator; `secret` is the project's JWT secret.
    pub fn new(config: &StorageConfig, db: Pool, tokens: Bearer, secret: &Secret) -> Self {
        Self {
            db,
            tokens,
            signer: UrlSigner::new(secret),
            files: FileBackend::new(config.folder.clone()),
            file_size_limit: config.file_size_limit,
        }
    }

    /// The caller of a route that needs a token.
    fn require_caller(&self, request: &HttpRequest) -> Result<Caller, StorageError> {
        self.tokens.caller(request.headers()).map_err(|error| match error {
            BearerError::Missing => {
                StorageError::InvalidRequest("headers must have required property 'authorization'".to_owned())
            }
            BearerError::Invalid => StorageError::AccessDenied("Invalid Compact JWS".to_owned()),
            BearerError::Expired => StorageError::AccessDenied("\"exp\" claim timestamp check failed".to_owned()),
        })
    }

    async fn as_service(&self) -> Result<Transaction, StorageError> {
        Ok(self.db.as_caller(&Caller::anonymous("service_role"), &[("storage.allow_delete_query", "true")]).await?)
    }

    /// The transaction that writes the row of a file whose bytes are there. Triggers on `storage.objects` read what
    /// the bytes show in `storage.detected_mimetype`; at a trial of permission it is not set.
    async fn as_service_landing(&self, detected: &str) -> Result<Transaction, StorageError> {
        let settings = [("storage.allow_delete_query", "true"), ("storage.detected_mimetype", detected)];
        Ok(self.db.as_caller(&Caller::anonymous("service_role"), &settings).await?)
    }

    async fn as_caller(
        &self,
        caller: &Caller,
        request: &HttpRequest,
        operation: &str,
    ) -> Result<Transaction, StorageError> {
        let settings = [
            ("storage.operation", operation),
            ("storage.allow_delete_query", "true"),
            ("request.method", request.method().as_str()),
            ("request.path", request.path()),
        ];
        Ok(self.db.as_caller(caller, &settings).await?)
    }
}

/// Longest body of names, bytes: a thousand of the longest, written as JSON.
const MOST_JSON: usize = 4 << 20;

/// The bucket of a route, decoded.
fn bucket(request: &HttpRequest) -> Result<String, StorageError> {
    decoded(request, "bucket")
}

/// The bucket and key of a route, decoded.
fn bucket_and_key(request: &HttpRequest) -> Result<(String, ObjectKey), StorageError> {
    Ok((bucket(request)?, ObjectKey::parse(&decoded(request, "key")?)?))
}

fn decoded(request: &HttpRequest, part: &str) -> Result<String, StorageError> {
    let raw = request.match_info().query(part);
    let text = percent_encoding::percent_decode_str(raw).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| StorageError::InvalidKey(raw.to_owned()))
}

/// Mounts the routes below the scope they are given.
pub fn configure(service: &mut ServiceConfig) {
    // The more special paths first: '/object/{bucket}/…' would take them all.
    service
        .app_data(web::PayloadConfig::new(MOST_JSON))
        .route("/object/upload/sign/{bucket}/{key:.+}", web::post().to(sign::sign_upload))
        .route("/object/upload/sign/{bucket}/{key:.+}", web::put().to(upload::upload_signed))
        .route("/object/sign/{bucket}/{key:.+}", web::post().to(sign::sign_download))
        .route("/object/sign/{bucket}/{key:.+}", web::get().to(download::signed))
        .route("/object/sign/{bucket}", web::post().to(sign::sign_downloads))
        .route("/object/list/{bucket}", web::post().to(list::list))
        .route("/object/list-v2/{bucket}", web::route().to(unknown_route))
        .route("/object/info/public/{bucket}/{key:.+}", web::route().to(unknown_route))
        .route("/object/info/authenticated/{bucket}/{key:.+}", web::get().to(download::info))
        .route("/object/info/{bucket}/{key:.+}", web::get().to(download::info))
        .route("/object/public/{bucket}/{key:.+}", web::route().guard(download::reads()).to(download::public))
        .route("/object/authenticated/{bucket}/{key:.+}", web::route().guard(download::reads()).to(download::own))
        .route("/object/{bucket}/{key:.+}", web::route().guard(download::reads()).to(download::own))
        .route("/object/{bucket}/{key:.+}", web::post().to(upload::insert))
        .route("/object/{bucket}/{key:.+}", web::put().to(upload::replace))
        .route("/object/{bucket}/{key:.+}", web::delete().to(delete::one))
        .route("/object/{bucket}", web::delete().to(delete::many))
        .route("/status", web::get().to(HttpResponse::Ok))
        .default_service(web::to(unknown_route));
}

async fn unknown_route(request: HttpRequest) -> HttpResponse {
    StorageError::NoSuchRoute(format!("{}:{}", request.method(), request.path())).error_response()
}
