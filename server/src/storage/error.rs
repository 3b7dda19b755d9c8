//! What can go wrong at `/storage/v1` and how it looks: one place.
//!
//! The HTTP status differs from the body's `statusCode`: handled errors are 400 but for the few exceptions.
//! Reference: supabase/storage `src/internal/errors/codes.ts`, `storage-error.ts`.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;
use tokio_postgres::error::SqlState;

use crate::db::DbError;

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("Bucket not found")]
    NoSuchBucket,
    #[error("Object not found")]
    NoSuchKey,
    /// The text says why: a policy, a token.
    #[error("{0}")]
    AccessDenied(String),
    #[error("The resource already exists")]
    AlreadyExists,
    #[error("The object exceeded the maximum allowed size")]
    EntityTooLarge,
    #[error("mime type {0} is not supported")]
    InvalidMimeType(String),
    #[error("Invalid key: {0}")]
    InvalidKey(String),
    #[error("invalid range provided")]
    InvalidRange,
    /// A signed URL's token that does not verify.
    #[error("{0}")]
    InvalidToken(String),
    #[error("{0}")]
    InvalidSignature(&'static str),
    #[error("{0}")]
    InvalidRequest(String),
    /// What a trigger of the project raised as `PTnnn`: a client error's status and its words, fit to show.
    #[error("{message}")]
    Refused { status: StatusCode, message: String },
    #[error("Route {0} not found")]
    NoSuchRoute(String),
    #[error("database error")]
    Database(DbError),
    #[error("Internal server error")]
    File(std::io::Error),
}

impl StorageError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoSuchBucket => "NoSuchBucket",
            Self::NoSuchKey => "NoSuchKey",
            Self::AccessDenied(_) => "AccessDenied",
            Self::AlreadyExists => "KeyAlreadyExists",
            Self::EntityTooLarge => "EntityTooLarge",
            Self::InvalidMimeType(_) => "InvalidMimeType",
            Self::InvalidKey(_) => "InvalidKey",
            Self::InvalidRange => "InvalidRange",
            Self::InvalidToken(_) => "InvalidJWT",
            Self::InvalidSignature(_) => "InvalidSignature",
            Self::InvalidRequest(_) | Self::NoSuchRoute(_) | Self::Refused { .. } => "InvalidRequest",
            Self::Database(_) => "DatabaseError",
            Self::File(_) => "InternalError",
        }
    }

    /// The older label some clients still read.
    fn label(&self) -> &'static str {
        match self {
            Self::NoSuchBucket => "Bucket not found",
            Self::NoSuchKey => "not_found",
            Self::AccessDenied(_) => "Unauthorized",
            Self::AlreadyExists => "Duplicate",
            Self::EntityTooLarge => "Payload too large",
            Self::InvalidMimeType(_) => "invalid_mime_type",
            Self::InvalidRange => "invalid_range",
            Self::InvalidRequest(_) | Self::Refused { .. } => "Error",
            Self::NoSuchRoute(_) => "Not Found",
            Self::InvalidKey(_)
            | Self::InvalidToken(_)
            | Self::InvalidSignature(_)
            | Self::Database(_)
            | Self::File(_) => self.code(),
        }
    }

    /// The number in the body.
    fn inner_status(&self) -> u16 {
        match self {
            Self::NoSuchBucket | Self::NoSuchKey | Self::NoSuchRoute(_) => 404,
            Self::AccessDenied(_) => 403,
            Self::AlreadyExists => 409,
            Self::EntityTooLarge => 413,
            Self::InvalidMimeType(_) => 415,
            Self::InvalidRange => 416,
            Self::InvalidKey(_) | Self::InvalidToken(_) | Self::InvalidSignature(_) | Self::InvalidRequest(_) => 400,
            Self::Refused { status, .. } => status.as_u16(),
            Self::Database(_) | Self::File(_) => 500,
        }
    }
}

impl ResponseError for StorageError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::InvalidRange => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::NoSuchRoute(_) => StatusCode::NOT_FOUND,
            Self::Database(_) | Self::File(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoSuchBucket
            | Self::NoSuchKey
            | Self::AccessDenied(_)
            | Self::AlreadyExists
            | Self::EntityTooLarge
            | Self::InvalidMimeType(_)
            | Self::InvalidKey(_)
            | Self::InvalidToken(_)
            | Self::InvalidSignature(_)
            | Self::InvalidRequest(_)
            | Self::Refused { .. } => StatusCode::BAD_REQUEST,
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::Database(cause) => tracing::error!(%cause, "a storage request failed in the database"),
            Self::File(cause) => tracing::error!(%cause, "a storage request failed at the file store"),
            _ => {}
        }
        HttpResponse::build(self.status_code()).json(json!({
            "statusCode": self.inner_status().to_string(),
            "error": self.label(),
            "code": self.code(),
            "message": self.to_string(),
        }))
    }
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
            DbError::Postgres(ref cause) => cause,
            _ => return Self::Database(error),
        };
        let Some(db) = cause.as_db_error() else { return Self::Database(error) };
        if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE {
            Self::AccessDenied("new row violates row-level security policy".to_owned())
        } else if *db.code() == SqlState::UNIQUE_VIOLATION {
            Self::AlreadyExists
        } else if [SqlState::CHARACTER_NOT_IN_REPERTOIRE, SqlState::UNTRANSLATABLE_CHARACTER].contains(db.code()) {
            // A NUL, in a name or in metadata.
            Self::InvalidRequest("The request holds a character that cannot be stored".to_owned())
        } else if let Some(status) = raised_status(db.code().code()) {
            Self::Refused { status, message: db.message().to_owned() }
        } else if db.code().code().starts_with("P0") {
            Self::InvalidRequest(db.message().to_owned())
        } else {
            Self::Database(error)
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
        Self::File(error)
    }
}
