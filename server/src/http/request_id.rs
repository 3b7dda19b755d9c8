//! A request's id: the caller's `X-Request-Id` if it is short and plain, else a new uuid.

use actix_web::http::header::HeaderMap;

/// The id under which a request is logged and answered (`X-Request-Id`).
pub fn request_id(headers: &HeaderMap) -> String {
    headers
        .get("x-request-id")
        .and_then(|v| v.to_str().ok())
        .filter(|v| {
            !v.is_empty() && v.len() <= 128 && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        })
        .map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}
