//! A request's id: the caller's `X-Request-Id` if it is short and plain, else a new uuid.

use actix_web::http::header::HeaderValue;

/// In requests and answers.
pub const HEADER: &str = "x-request-id";

/// The id in logs and in the answer, given the request's own.
pub fn request_id(given: Option<&HeaderValue>) -> String {
    given
        .and_then(|v| v.to_str().ok())
        .filter(|v| {
            !v.is_empty() && v.len() <= 128 && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        })
        .map_or_else(|| uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string(), str::to_owned)
}
