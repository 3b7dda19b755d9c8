//! Errors that the relay returns in place of a function. All have `x-relay-error: true`, which supabase-js uses to tell them from
//! the function's own answers.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    #[error("Requested function was not found")]
    NotFound,
    #[error("Missing authorization header")]
    MissingToken,
    #[error("Invalid JWT")]
    InvalidToken,
    #[error("there is no Deno")]
    NoDeno,
    #[error("Worker failed to boot (please check logs)")]
    Boot,
    #[error("Function exited due to an error (please check logs)")]
    Exited,
    #[error("Worker failed to respond due to a resource limit (please check logs)")]
    Limit,
    #[error("Function did not respond in time")]
    Timeout,
    #[error("Too many request bodies at once")]
    Busy,
    #[error("Too many calls of this function at once")]
    Crowded,
    #[error("Too many functions are busy")]
    Full,
    #[error("Request body is too large")]
    TooLarge,
}

impl RelayError {
    pub fn respond(self) -> HttpResponse {
        let (status, code, marker) = match self {
            Self::NotFound => (404, json!("NOT_FOUND"), "NOT_FOUND"),
            Self::MissingToken => (401, json!(401), "UNAUTHORIZED_NO_AUTH_HEADER"),
            Self::InvalidToken => (401, json!(401), "UNAUTHORIZED_INVALID_JWT_FORMAT"),
            Self::NoDeno | Self::Boot => (503, json!("BOOT_ERROR"), "BOOT_ERROR"),
            Self::Exited => (500, json!("WORKER_ERROR"), "WORKER_ERROR"),
            Self::Limit => (546, json!("WORKER_LIMIT"), "WORKER_RESOURCE_LIMIT"),
            Self::Timeout => (504, json!("IDLE_TIMEOUT"), "IDLE_TIMEOUT"),
            Self::Busy | Self::Crowded | Self::Full => (503, json!("SERVICE_UNAVAILABLE"), "SERVICE_UNAVAILABLE"),
            Self::TooLarge => (413, json!("PAYLOAD_TOO_LARGE"), "PAYLOAD_TOO_LARGE"),
        };
        let message = match self {
            Self::NoDeno => {
                "Edge functions need Deno: run 'npm ci --prefix tools/deno', or name one in FERROBASE_DENO".to_owned()
            }
            _ => self.to_string(),
        };
        HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
            .insert_header(("x-relay-error", "true"))
            .insert_header(("sb-error-code", marker))
            .json(json!({ "code": code, "message": message }))
    }
}
