//! A request's id: the caller's `X-Request-Id` if it is short and plain, else a new uuid.

use actix_web::HttpMessage;
use actix_web::http::header::HeaderMap;

use super::context;

/// The id of the request that is being answered, or what its headers say.
pub fn id_of(request: &impl HttpMessage) -> String {
    context::current().map_or_else(|| request_id(request.headers()), |current| current.id.clone())
}

/// The id under which a request is logged and answered (`X-Request-Id`).
pub fn request_id(headers: &HeaderMap) -> String {
    headers
        .get("x-request-id")
        .and_then(|v| v.to_str().ok())
        .filter(|v| {
            !v.is_empty() && v.len() <= 128 && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        })
        .map_or_else(|| uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string(), str::to_owned)
}
