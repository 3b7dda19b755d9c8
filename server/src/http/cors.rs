//! Cross-origin requests to APIs that browsers may call from anywhere.

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderValue};

const ALWAYS_ALLOWED: &str = "authorization, x-client-info, apikey, content-type, x-region, prefer";

/// Whether a browser asks for permission to make a request.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight: allows the usual headers and all requested ones.
pub fn preflight(request: &HeaderMap) -> HttpResponse {
    let asked = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS).and_then(|v| v.to_str().ok()).unwrap_or("");
    let allowed = if asked.is_empty() { ALWAYS_ALLOWED.to_owned() } else { format!("{ALWAYS_ALLOWED}, {asked}") };
    let mut response = HttpResponse::NoContent();
    response
        .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, allowed))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, "86400"));
    response.finish()
}

/// Lets browsers read an answer and the headers that clients use.
pub fn allow(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    // An answer may have its own list.
    if !headers.contains_key(header::ACCESS_CONTROL_EXPOSE_HEADERS) {
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("x-relay-error, x-request-id, content-range, content-disposition, etag"),
        );
    }
}
