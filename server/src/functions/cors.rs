//! Browsers may call functions from anywhere; the server answers for them.

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};

const ALWAYS_ALLOWED: &str = "authorization, x-client-info, apikey, content-type, x-region, prefer";

/// The answer to a preflight: the usual headers and whatever else was asked for.
pub(super) fn preflight(request: &HttpRequest) -> HttpResponse {
    let asked =
        request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).and_then(|v| v.to_str().ok()).unwrap_or("");
    let allowed = if asked.is_empty() { ALWAYS_ALLOWED.to_owned() } else { format!("{ALWAYS_ALLOWED}, {asked}") };
    let mut response = HttpResponse::NoContent();
    response
        .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE, OPTIONS"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, allowed))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, "86400"));
    response.finish()
}

/// What lets a browser read an answer and the relay's header in it.
pub(super) fn allow(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("x-relay-error"));
}
