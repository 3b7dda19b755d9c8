//! All errors of `/storage/v1` and their rendering.
//!
//! The HTTP status differs from the body's `statusCode`: handled errors are 400, with few exceptions. Resumable uploads and the
//! S3 protocol answer with the true status in formats of their own. Reference: supabase/storage `src/internal/errors/codes.ts`,
//! `storage-error.ts`, `src/storage/database/errors.ts`.

use std::io::ErrorKind;

use actix_web::http::header::{CACHE_CONTROL, RETRY_AFTER};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use serde_json::json;
use tokio_postgres::error::SqlState;

use super::metrics;
use crate::db::DbError;

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("Bucket not found")]
    NoSuchBucket,
    #[error("Object not found")]
    NoSuchKey,
    /// The row exists but its file does not.
    #[error("The resource was not found")]
    NoSuchFile,
    #[error("Upload not found")]
    NoSuchUpload,
    /// The message names the reason: a policy, a token.
    #[error("{0}")]
    AccessDenied(String),
    /// The route requires another role.
    #[error("Access denied: Invalid role")]
    RoleRefused,
    #[error("The resource already exists")]
    AlreadyExists,
    #[error("The resource already exists")]
    BucketAlreadyExists,
    #[error("The resource already exists")]
    ResourceAlreadyExists,
    #[error("The bucket you tried to delete is not empty")]
    BucketNotEmpty,
    #[error("Unable to empty the bucket because it contains too many objects")]
    TooManyObjects,
    #[error("The object exceeded the maximum allowed size")]
    EntityTooLarge,
    #[error("mime type {0} is not supported")]
    InvalidMimeType(String),
    #[error("Invalid key: {0}")]
    InvalidKey(String),
    #[error("Bucket name invalid")]
    InvalidBucketName,
    #[error("invalid range provided")]
    InvalidRange,
    /// A signed URL with an invalid token.
    #[error("{0}")]
    InvalidToken(String),
    #[error("{0}")]
    InvalidSignature(&'static str),
    #[error("The provided token has expired.")]
    ExpiredToken,
    #[error("{0}")]
    InvalidParameter(String),
    #[error("Invalid X-Robots-Tag header: {0}")]
    InvalidRobotsTag(String),
    #[error("The condition of the request does not hold")]
    PreconditionFailed,
    /// A request that does not match its schema.
    #[error("{0}")]
    Invalid(String),
    /// A body that cannot be parsed as its content type.
    #[error("{0}")]
    Unparsed(&'static str),
    /// A body with an unsupported content type.
    #[error("Invalid Content-Type header")]
    NotJson,
    #[error("Request body is too large")]
    BodyTooLarge,
    /// A well-formed request that makes no sense.
    #[error("{0}")]
    InvalidRequest(String),
    #[error("The feature {0} is not enabled for this resource")]
    FeatureNotEnabled(&'static str),
    /// An API that this server does not have, such as that of vectors.
    #[error("feature not enabled for this tenant")]
    NoSuchFeature,
    #[error("The related resource does not exist")]
    RelatedNotFound,
    #[error("{0}")]
    Referenced(&'static str),
    #[error("The resource is locked")]
    Locked,
    #[error("acquiring lock timeout")]
    LockTimeout,
    #[error("The connection to the database timed out")]
    StatementTimeout,
    #[error("The database is currently in read-only mode. Please try again later.")]
    ReadOnly,
    #[error("There is a database schema mismatch in a trigger or RLS policy")]
    SchemaMismatch,
    #[error("The database schema is invalid or incompatible.")]
    InvalidDefinition,
    #[error("Too many connections issued to the database")]
    SlowDown,
    /// Too many requests wait for the database. The same is said by S3's code `SlowDown`, whose status is 503.
    #[error("The server is busy. Please try again later.")]
    Overloaded,
    /// No place for an expensive operation became free in time.
    #[error("Too many requests")]
    TooManyRequests,
    /// One client requests the same picture too often.
    #[error("Rate limit exceeded, retry in 4 seconds")]
    TooOften,
    /// The database or the file store is unavailable or full.
    #[error("The storage server cannot work at the moment. Please try again later.")]
    Unavailable(String),
    /// An error that a trigger raised as `PTnnn`: a client error with a status and a public message.
    #[error("{message}")]
    Refused { status: StatusCode, message: String },
    #[error("Route {0} not found")]
    NoSuchRoute(String),
    /// Errors that exist only in the S3 protocol, with their S3 code.
    #[error("{message}")]
    S3 { status: u16, code: &'static str, message: &'static str },
    #[error("database error, code: {code}")]
    Database { code: String, cause: DbError },
    #[error("Internal server error")]
    File(std::io::Error),
    #[error("Internal server error")]
    Internal(String),
}

/// Schema validation's message for a missing `Authorization` header.
pub const NO_AUTHORIZATION: &str = "headers must have required property 'authorization'";
/// The verifier's message for a malformed token.
pub const NOT_A_TOKEN: &str = "Invalid Compact JWS";

impl StorageError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchBucket => "NoSuchBucket",
            Self::NoSuchKey | Self::NoSuchFile => "NoSuchKey",
            Self::NoSuchUpload => "NoSuchUpload",
            Self::AccessDenied(_) | Self::RoleRefused => "AccessDenied",
            Self::AlreadyExists => "KeyAlreadyExists",
            Self::BucketAlreadyExists => "BucketAlreadyExists",
            Self::ResourceAlreadyExists => "ResourceAlreadyExists",
            Self::BucketNotEmpty => "ResourceNotEmpty",
            Self::EntityTooLarge | Self::BodyTooLarge => "EntityTooLarge",
            Self::InvalidMimeType(_) | Self::NotJson => "InvalidMimeType",
            Self::InvalidKey(_) => "InvalidKey",
            Self::InvalidBucketName => "InvalidBucketName",
            Self::InvalidRange => "InvalidRange",
            Self::InvalidToken(_) => "InvalidJWT",
            Self::InvalidSignature(_) => "InvalidSignature",
            Self::ExpiredToken => "ExpiredToken",
            Self::InvalidParameter(_) => "InvalidParameter",
            Self::PreconditionFailed => "PreconditionFailed",
            Self::FeatureNotEnabled(_) | Self::NoSuchFeature => "FeatureNotEnabled",
            Self::Referenced(_) => "ResourceReferenced",
            Self::Locked => "ResourceLocked",
            Self::LockTimeout => "LockTimeout",
            Self::StatementTimeout => "DatabaseTimeout",
            Self::ReadOnly => "DatabaseReadOnly",
            Self::SchemaMismatch => "DatabaseSchemaMismatch",
            Self::InvalidDefinition => "DatabaseInvalidObjectDefinition",
            Self::SlowDown | Self::TooOften | Self::Overloaded => "SlowDown",
            Self::Invalid(_)
            | Self::Unparsed(_)
            | Self::InvalidRequest(_)
            | Self::InvalidRobotsTag(_)
            | Self::TooManyObjects
            | Self::RelatedNotFound
            | Self::NoSuchRoute(_)
            | Self::TooManyRequests
            | Self::Refused { .. } => "InvalidRequest",
            Self::S3 { code, .. } => code,
            Self::Database { .. } => "DatabaseError",
            Self::Unavailable(_) | Self::File(_) | Self::Internal(_) => "InternalError",
        }
    }

    /// The older label that some clients still read.
    fn label(&self) -> &'static str {
        match self {
            Self::NoSuchBucket => "Bucket not found",
            Self::NoSuchKey => "not_found",
            Self::NoSuchFile => "Not found",
            Self::AccessDenied(_) | Self::RoleRefused => "Unauthorized",
            Self::AlreadyExists | Self::BucketAlreadyExists | Self::ResourceAlreadyExists => "Duplicate",
            Self::EntityTooLarge => "Payload too large",
            Self::InvalidMimeType(_) | Self::NotJson => "invalid_mime_type",
            Self::InvalidBucketName => "Invalid Input",
            Self::InvalidRange => "invalid_range",
            Self::InvalidRobotsTag(_) => "invalid_x_robots_tag",
            Self::LockTimeout => "acquiring_lock_timeout",
            Self::SlowDown | Self::Overloaded => "too_many_connections",
            Self::TooOften => "Too Many Requests",
            Self::Invalid(_) | Self::Refused { .. } => "Error",
            // The name that the reference's framework gives its own errors.
            Self::Unparsed(_) | Self::BodyTooLarge => "FastifyError",
            Self::NoSuchRoute(_) => "Not Found",
            Self::NoSuchUpload
            | Self::BucketNotEmpty
            | Self::TooManyObjects
            | Self::InvalidKey(_)
            | Self::InvalidToken(_)
            | Self::InvalidSignature(_)
            | Self::ExpiredToken
            | Self::InvalidParameter(_)
            | Self::InvalidRequest(_)
            | Self::PreconditionFailed
            | Self::FeatureNotEnabled(_)
            | Self::NoSuchFeature
            | Self::RelatedNotFound
            | Self::Referenced(_)
            | Self::Locked
            | Self::StatementTimeout
            | Self::ReadOnly
            | Self::SchemaMismatch
            | Self::InvalidDefinition
            | Self::TooManyRequests
            | Self::Unavailable(_)
            | Self::S3 { .. }
            | Self::Database { .. }
            | Self::File(_)
            | Self::Internal(_) => self.code(),
        }
    }

    /// The `statusCode` of the body, which is the HTTP status for resumable uploads and S3.
    pub fn true_status(&self) -> u16 {
        match self {
            Self::NoSuchBucket
            | Self::NoSuchKey
            | Self::NoSuchFile
            | Self::NoSuchUpload
            | Self::RelatedNotFound
            | Self::NoSuchRoute(_) => 404,
            Self::AccessDenied(_) | Self::RoleRefused | Self::NoSuchFeature => 403,
            Self::AlreadyExists
            | Self::BucketAlreadyExists
            | Self::ResourceAlreadyExists
            | Self::BucketNotEmpty
            | Self::TooManyObjects
            | Self::FeatureNotEnabled(_)
            | Self::Referenced(_) => 409,
            Self::PreconditionFailed => 412,
            Self::EntityTooLarge | Self::BodyTooLarge => 413,
            Self::InvalidMimeType(_) | Self::NotJson => 415,
            Self::InvalidRange => 416,
            Self::Locked => 423,
            Self::SlowDown | Self::TooManyRequests | Self::TooOften => 429,
            Self::InvalidKey(_)
            | Self::InvalidBucketName
            | Self::InvalidToken(_)
            | Self::InvalidSignature(_)
            | Self::ExpiredToken
            | Self::InvalidParameter(_)
            | Self::InvalidRobotsTag(_)
            | Self::Invalid(_)
            | Self::Unparsed(_)
            | Self::InvalidRequest(_) => 400,
            Self::Refused { status, .. } => status.as_u16(),
            Self::S3 { status, .. } => *status,
            Self::LockTimeout
            | Self::ReadOnly
            | Self::SchemaMismatch
            | Self::InvalidDefinition
            | Self::Overloaded
            | Self::Unavailable(_) => 503,
            Self::StatementTimeout => 544,
            Self::Database { .. } | Self::File(_) | Self::Internal(_) => 500,
        }
    }

    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        matches!(self.true_status(), 408 | 423 | 425 | 429 | 500..)
    }

    /// Logs what the answer does not reveal.
    pub fn log(&self) {
        if matches!(self, Self::Database { .. } | Self::File(_) | Self::Internal(_) | Self::Unavailable(_)) {
            metrics::FAILED.increment();
        }
        match self {
            Self::Database { cause, .. } => tracing::error!(%cause, "a storage request failed in the database"),
            Self::File(cause) => tracing::error!(%cause, "a storage request failed at the file store"),
            Self::Internal(cause) => tracing::error!(%cause, "a storage request failed"),
            Self::Unavailable(cause) => tracing::warn!(%cause, "a storage request could not be served"),
            _ => {}
        }
    }
}

impl ResponseError for StorageError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::InvalidRange => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::NoSuchRoute(_) => StatusCode::NOT_FOUND,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::RoleRefused | Self::NoSuchFeature => StatusCode::FORBIDDEN,
            Self::SlowDown | Self::TooManyRequests | Self::TooOften => StatusCode::TOO_MANY_REQUESTS,
            Self::StatementTimeout => StatusCode::from_u16(544).unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
            Self::Unavailable(_) | Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Database { .. } | Self::File(_) | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoSuchBucket
            | Self::NoSuchKey
            | Self::NoSuchFile
            | Self::NoSuchUpload
            | Self::AccessDenied(_)
            | Self::AlreadyExists
            | Self::BucketAlreadyExists
            | Self::ResourceAlreadyExists
            | Self::BucketNotEmpty
            | Self::TooManyObjects
            | Self::EntityTooLarge
            | Self::InvalidMimeType(_)
            | Self::NotJson
            | Self::InvalidKey(_)
            | Self::InvalidBucketName
            | Self::InvalidToken(_)
            | Self::InvalidSignature(_)
            | Self::ExpiredToken
            | Self::InvalidParameter(_)
            | Self::InvalidRobotsTag(_)
            | Self::Invalid(_)
            | Self::Unparsed(_)
            | Self::InvalidRequest(_)
            | Self::FeatureNotEnabled(_)
            | Self::RelatedNotFound
            | Self::Referenced(_)
            | Self::Locked
            | Self::LockTimeout
            | Self::ReadOnly
            | Self::SchemaMismatch
            | Self::InvalidDefinition
            | Self::S3 { .. }
            | Self::Refused { .. } => StatusCode::BAD_REQUEST,
        }
    }

    fn error_response(&self) -> HttpResponse {
        self.log();
        let mut response = HttpResponse::build(self.status_code());
        match self {
            Self::NoSuchFile => drop(response.insert_header((CACHE_CONTROL, "no-store"))),
            Self::Unavailable(_) | Self::Overloaded => drop(response.insert_header((RETRY_AFTER, "1"))),
            Self::TooOften => drop(response.insert_header((RETRY_AFTER, "4"))),
            _ => {}
        }
        response.json(json!({
            "statusCode": self.true_status().to_string(),
            "error": self.label(),
            "code": self.code(),
            "message": self.to_string(),
        }))
    }
}

/// The answer for unknown paths and methods.
pub async fn unknown_route(request: HttpRequest) -> HttpResponse {
    // HEAD gets the same message as GET.
    let method = if *request.method() == Method::HEAD { &Method::GET } else { request.method() };
    no_such_route(method, &request).error_response()
}

/// The error names the path below `/storage/v1`, which the reference's gateway takes off.
pub fn no_such_route(method: &Method, request: &HttpRequest) -> StorageError {
    let address = request.uri().path_and_query().map_or("", |address| address.as_str());
    let below = address.strip_prefix("/storage/v1").filter(|rest| rest.starts_with('/')).unwrap_or(address);
    StorageError::NoSuchRoute(format!("{method}:{below}"))
}

/// The client error that a SQLSTATE `PTnnn` names, as at `/rest/v1`.
fn raised_status(sqlstate: &str) -> Option<StatusCode> {
    let number = sqlstate.strip_prefix("PT")?.parse().ok()?;
    StatusCode::from_u16(number).ok().filter(StatusCode::is_client_error)
}

impl From<DbError> for StorageError {
    fn from(error: DbError) -> Self {
        let cause = match error {
            DbError::Role(message) => return Self::AccessDenied(message),
            DbError::PoolBusy => return Self::Overloaded,
            DbError::PoolTimeout | DbError::Connect(_) | DbError::Broken(_) => {
                return Self::Unavailable(error.to_string());
            }
            DbError::Postgres(ref cause) => cause,
            other => return Self::Database { code: "unknown".to_owned(), cause: other },
        };
        let Some(refusal) = cause.as_db_error() else {
            return Self::Unavailable(crate::db::with_causes(cause));
        };
        let code = refusal.code();
        if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            let by_policy = refusal.message().contains("row-level security");
            let message = if by_policy { "new row violates row-level security policy" } else { refusal.message() };
            return Self::AccessDenied(message.to_owned());
        }
        if *code == SqlState::FOREIGN_KEY_VIOLATION {
            if !refusal.detail().is_some_and(|detail| detail.contains("is still referenced from table")) {
                return Self::RelatedNotFound;
            }
            let by_upload = refusal.constraint().is_some_and(|name| name.starts_with("s3_multipart_uploads"));
            return Self::Referenced(if by_upload {
                "The bucket could not be updated because it is referenced by a pending multipart upload."
            } else {
                "The resource could not be updated or removed due to a foreign key constraint"
            });
        }
        if let Some(status) = raised_status(code.code()) {
            return Self::Refused { status, message: refusal.message().to_owned() };
        }
        match code.code() {
            "23505" => Self::AlreadyExists,
            "55P03" => Self::Locked,
            "57014" => Self::StatementTimeout,
            "25006" => Self::ReadOnly,
            "42P17" => Self::InvalidDefinition,
            "42703" | "42P01" => Self::SchemaMismatch,
            "22P02" => Self::InvalidParameter(refusal.message().to_owned()),
            // A NUL in a name or in metadata.
            "22021" | "22P05" => Self::InvalidRequest("The request holds a character that cannot be stored".to_owned()),
            "53300" => Self::SlowDown,
            "53100" | "57P01" | "57P02" | "57P03" => Self::Unavailable(refusal.message().to_owned()),
            raised if raised.starts_with("P0") => Self::InvalidRequest(refusal.message().to_owned()),
            other => Self::Database { code: other.to_owned(), cause: error },
        }
    }
}

impl From<tokio_postgres::Error> for StorageError {
    fn from(error: tokio_postgres::Error) -> Self {
        DbError::from(error).into()
    }
}

impl From<std::io::Error> for StorageError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            // The disk is full, or stalls.
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::TimedOut => {
                Self::Unavailable(error.to_string())
            }
            _ => Self::File(error),
        }
    }
}
