//! Cross-origin requests. Reference: supabase/auth `internal/api/api.go`, rs/cors.

use std::collections::BTreeSet;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};

use crate::config::{AuthConfig, AuthMode};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const HEADERS: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    "x-client-ip",
    "x-client-info",
    "x-jwt-aud",
    "x-use-cookie",
    "x-supabase-api-version",
];
const EXPOSED: &str = "X-Total-Count, Link, X-Supabase-Api-Version";

/// Whether a request is a preflight: it is answered here and goes no further.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key("access-control-request-method")
}

fn set(response: &mut HttpResponse, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

/// Answers a preflight: 204, with or without permission.
///
/// The full server allows all requested headers, as Supabase's gateway does, because clients add their own. On its own,
/// the API allows only its own and the configured headers. Per the Fetch standard, browsers send the names in lower
/// case and sorted; other lists get no permission.
pub fn preflight(headers: &HeaderMap, config: &AuthConfig) -> HttpResponse {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut response = HttpResponse::build(StatusCode::NO_CONTENT).finish();
    set(&mut response, "vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    let method = text("access-control-request-method").to_owned();
    let asked = headers
        .get_all("access-control-request-headers")
        .filter_map(|value| value.to_str().ok())
        .collect::<Vec<_>>()
        .join(",");
    let mut allowed: BTreeSet<String> = HEADERS.iter().map(|name| (*name).to_owned()).collect();
    allowed.extend(config.cors_allowed_headers.iter().map(|name| name.to_lowercase()));
    let names: Vec<&str> = asked.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let permitted = headers.contains_key("origin")
        && METHODS.contains(&method.as_str())
        && match config.mode {
            AuthMode::Full => names.iter().all(|name| HeaderName::try_from(*name).is_ok()),
            AuthMode::DropIn => names.is_sorted() && names.iter().all(|name| allowed.contains(*name)),
        };
    if permitted {
        set(&mut response, "access-control-allow-origin", "*");
        set(&mut response, "access-control-allow-methods", &method);
        if !names.is_empty() {
            set(&mut response, "access-control-allow-headers", &asked);
        }
        set(&mut response, "access-control-allow-credentials", "true");
    }
    response
}

/// Puts the permission on the answer of an ordinary request.
pub fn permit(response: &mut HttpResponse, request_headers: &HeaderMap) {
    set(response, "vary", "Origin");
    if request_headers.contains_key("origin") {
        set(response, "access-control-allow-origin", "*");
        set(response, "access-control-allow-credentials", "true");
        set(response, "access-control-expose-headers", EXPOSED);
    }
}
