//! Errors of resumable uploads: plain text with the true status. Messages: tus-node-server `packages/utils/src/constants.ts`.

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_TYPE, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};

use crate::storage::error::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum TusError {
    #[error("Tus-Resumable Required\n")]
    Version,
    #[error("Missing x-signature header")]
    NoSignature,
    /// A malformed token, the only error that is JSON here, too.
    #[error("{0}")]
    Token(StorageError),
    #[error("Concatenation extension is not (yet) supported. Disable parallel uploads in the tus client.\n")]
    Concatenation,
    #[error("Upload-Length or Upload-Defer-Length header required\n")]
    NoLength,
    #[error(
        "Upload-Metadata is invalid. It MUST consist of one or more comma-separated key-value pairs. The key and value MUST be separated by a space. The key MUST NOT contain spaces and commas and MUST NOT be empty. The key SHOULD be ASCII encoded and the value MUST be Base64 encoded. All keys MUST be unique"
    )]
    Metadata,
    #[error("Metadata header is required")]
    NoMetadata,
    #[error("Invalid {0}\n")]
    Header(String),
    #[error("Upload-Offset header required\n")]
    NoOffset,
    #[error("Content-Type header required\n")]
    NoContentType,
    #[error("Upload-Offset conflict\n")]
    OffsetConflict,
    #[error("The file for this url was not found\n")]
    NotFound,
    #[error("The file for this url no longer exists\n")]
    Gone,
    #[error("upload's size exceeded\n")]
    TooLarge,
    #[error("Maximum size exceeded\n")]
    TooLargeInAll,
    #[error("Cannot terminate an already completed upload")]
    Finished,
    /// Another request wants to continue this upload.
    #[error("Request aborted due to lock acquired")]
    LetGo,
    #[error("{0}")]
    Storage(#[from] StorageError),
}

impl From<tokio_postgres::Error> for TusError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Storage(error.into())
    }
}

impl From<crate::db::DbError> for TusError {
    fn from(error: crate::db::DbError) -> Self {
        Self::Storage(error.into())
    }
}

impl ResponseError for TusError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Version => StatusCode::PRECONDITION_FAILED,
            Self::NoSignature
            | Self::NoLength
            | Self::Metadata
            | Self::NoMetadata
            | Self::Header(_)
            | Self::Finished
            | Self::LetGo => StatusCode::BAD_REQUEST,
            Self::Token(error) => error.status_code(),
            Self::Concatenation => StatusCode::NOT_IMPLEMENTED,
            Self::NoOffset | Self::NoContentType => StatusCode::FORBIDDEN,
            Self::OffsetConflict => StatusCode::CONFLICT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Gone => StatusCode::GONE,
            Self::TooLarge | Self::TooLargeInAll => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Storage(error) => {
                StatusCode::from_u16(error.true_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        match self {
            Self::Token(error) => return error.error_response(),
            Self::Version => drop(response.insert_header(("Tus-Version", super::VERSION))),
            Self::Storage(error) => {
                error.log();
                if matches!(error, StorageError::Unavailable(_) | StorageError::Overloaded | StorageError::LockTimeout)
                {
                    response.insert_header((RETRY_AFTER, "1"));
                }
            }
            _ => {}
        }
        response
            .insert_header(("Tus-Resumable", super::VERSION))
            .insert_header((ACCESS_CONTROL_EXPOSE_HEADERS, super::EXPOSED))
            .insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"))
            .body(self.to_string())
    }
}
