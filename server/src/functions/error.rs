//! Errors of function calls and their rendering.
//!
//! Errors of the relay (no such function, invalid token, no database) have `x-relay-error: true`. Errors that the function raised
//! are its own answers, `{code, message, details, hint}`.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use crate::db::{DbError, RETRY_AFTER};

#[derive(Debug, thiserror::Error)]
pub(super) enum FunctionError {
    #[error("Requested function was not found")]
    NotFound,
    #[error("Invalid JWT")]
    InvalidToken,
    #[error("{0}")]
    Body(String),
    #[error("the body is too large")]
    TooLarge,
    #[error("a body of type {0} is not taken; send JSON or text")]
    Type(String),
    /// An error raised in the function, with the role that called it.
    #[error("the function failed: {0}")]
    Raised(tokio_postgres::Error, String),
    #[error(transparent)]
    Database(#[from] DbError),
}

impl From<tokio_postgres::Error> for FunctionError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl FunctionError {
    pub(super) fn raised(error: tokio_postgres::Error, role: &str) -> Self {
        if error.as_db_error().is_some() { Self::Raised(error, role.to_owned()) } else { error.into() }
    }
}

/// The HTTP status for a SQLSTATE. `PTnnn` names an error status directly; the caller's mistakes are 4xx.
fn status_of(sqlstate: &str, role: &str) -> StatusCode {
    let named = sqlstate.strip_prefix("PT").and_then(|n| n.parse().ok()).and_then(|n| StatusCode::from_u16(n).ok());
    let named = named.filter(|status| status.is_client_error() || status.is_server_error());
    match (named, sqlstate) {
        (Some(status), _) => status,
        (None, "42501") if role == "anon" => StatusCode::UNAUTHORIZED,
        (None, "42501") => StatusCode::FORBIDDEN,
        (None, "23503" | "23505") => StatusCode::CONFLICT,
        (None, "57014") => StatusCode::GATEWAY_TIMEOUT,
        // JSON nested deeper than PostgreSQL's stack allows.
        (None, "54001") => StatusCode::BAD_REQUEST,
        (None, code) if code == "P0001" || code.starts_with("22") || code.starts_with("23") => StatusCode::BAD_REQUEST,
        (None, _) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl ResponseError for FunctionError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::InvalidToken => StatusCode::UNAUTHORIZED,
            Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Type(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Raised(error, role) => {
                error.code().map_or(StatusCode::INTERNAL_SERVER_ERROR, |state| status_of(state.code(), role))
            }
            Self::Database(error) if error.is_unavailable() => StatusCode::SERVICE_UNAVAILABLE,
            Self::Database(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        match self {
            Self::NotFound => response
                .insert_header(("x-relay-error", "true"))
                .json(json!({ "code": "NOT_FOUND", "message": self.to_string() })),
            Self::InvalidToken => response
                .insert_header(("x-relay-error", "true"))
                .json(json!({ "code": 401, "message": self.to_string() })),
            Self::Body(_) | Self::Type(_) | Self::TooLarge => {
                response.json(json!({ "code": "BAD_REQUEST", "message": self.to_string() }))
            }
            Self::Raised(error, _) => match error.as_db_error() {
                Some(db) if !self.status_code().is_server_error() => response.json(json!({
                    "code": db.code().code(), "message": db.message(), "details": db.detail(), "hint": db.hint(),
                })),
                Some(_) | None => {
                    tracing::error!(%error, "a function failed");
                    response.json(json!({ "code": "INTERNAL", "message": "The function failed" }))
                }
            },
            Self::Database(error) => {
                if !matches!(error, DbError::PoolBusy) {
                    tracing::error!(%error, "a function call failed on the way to the database");
                }
                if error.is_unavailable() {
                    response.insert_header((header::RETRY_AFTER, RETRY_AFTER));
                }
                response
                    .insert_header(("x-relay-error", "true"))
                    .json(json!({ "code": "UNAVAILABLE", "message": "The function could not be run" }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::status_of;

    #[test]
    fn the_sqlstate_decides_the_status() {
        let cases = [
            ("PT429", "anon", 429),
            ("PTabc", "anon", 500),
            ("PT101", "anon", 500),
            ("PT204", "anon", 500),
            ("PT503", "anon", 503),
            ("42501", "anon", 401),
            ("42501", "authenticated", 403),
            ("23505", "anon", 409),
            ("P0001", "anon", 400),
            ("22P02", "anon", 400),
            ("54001", "anon", 400),
            ("42703", "anon", 500),
        ];
        for (state, role, status) in cases {
            assert_eq!(status_of(state, role).as_u16(), status, "{state} as {role}");
        }
    }
}
