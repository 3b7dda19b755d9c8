//! Locations of redirects: the query and fragment of the URL. Reference: supabase/auth
//! `internal/api/verify.go`, `internal/api/external.go`.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use url::form_urlencoded::Serializer;

use crate::auth::error::{AuthError, Code};

/// 303 to `location`.
pub fn see_other(location: &str) -> HttpResponse {
    HttpResponse::build(StatusCode::SEE_OTHER).insert_header(("location", ascii(location))).finish()
}

/// A header holds ASCII: other characters are percent-encoded.
pub fn ascii(location: &str) -> String {
    let mut out = String::with_capacity(location.len());
    for byte in location.bytes() {
        if byte.is_ascii() && !byte.is_ascii_control() {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut sorted = pairs.to_vec();
    sorted.sort_unstable();
    Serializer::new(String::new()).extend_pairs(sorted).finish()
}

/// `target` with `pairs` in its query, sorted, replacing those of the same name; its fragment is dropped.
pub fn with_query(target: &str, pairs: &[(&str, &str)]) -> String {
    let (base, query) = split(target);
    let mut all: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .filter(|(name, _)| !pairs.iter().any(|(new, _)| new == name))
        .collect();
    all.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    // Go's encoding sorts by name and keeps the order of values of one name.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    if all.is_empty() {
        return base.to_owned();
    }
    format!("{base}?{}", Serializer::new(String::new()).extend_pairs(all).finish())
}

fn split(target: &str) -> (&str, &str) {
    let without_fragment = target.split('#').next().unwrap_or("");
    without_fragment.split_once('?').unwrap_or((without_fragment, ""))
}

/// `target` with `pairs` as its fragment, sorted.
pub fn with_fragment(target: &str, pairs: &[(&str, &str)]) -> String {
    format!("{}#{}", target.split('#').next().unwrap_or(""), encoded(pairs).replace('%', "%25"))
}

/// The location after the first of two confirmations, with `message`.
pub fn halfway_redirect(target: &str, message: &str, pkce: bool) -> String {
    let target = if pkce { with_query(target, &[("message", message)]) } else { with_query(target, &[]) };
    with_fragment(&target, &[("message", message), ("sb", "")])
}

/// OAuth's name for a status, if it has one.
pub fn oauth_error(status: StatusCode) -> Option<&'static str> {
    Some(match status.as_u16() {
        400 => "invalid_request",
        401 => "unauthorized_client",
        403 => "access_denied",
        500 => "server_error",
        503 => "temporarily_unavailable",
        _ => return None,
    })
}

/// The location for an error: in the fragment, and for PKCE also in the query.
pub fn error_redirect(error: &AuthError, target: &str, pkce: bool) -> String {
    let mut pairs = Vec::new();
    if let Some(name) = oauth_error(error.status()) {
        pairs.push(("error", name));
    }
    pairs.push(("error_code", error.code().map_or("", Code::as_str)));
    pairs.push(("error_description", error.message()));
    let target = if pkce { with_query(target, &pairs) } else { target.to_owned() };
    pairs.push(("sb", ""));
    with_fragment(&target, &pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_parameters_are_added_to_the_query_and_replace_the_fragment() {
        assert_eq!(with_query("https://a/p?z=1&code=x#f", &[("code", "c")]), "https://a/p?code=c&z=1");
        assert_eq!(with_fragment("https://a/p?z=1#f", &[("b", "2 3"), ("a", ":")]), "https://a/p?z=1#a=%253A&b=2+3");
    }

    #[test]
    fn an_error_goes_into_the_fragment_and_for_pkce_into_the_query_too() {
        let error = AuthError::forbidden(Code::OtpExpired, "Email link is invalid or has expired");
        let pairs = "error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired";
        assert_eq!(error_redirect(&error, "https://a", false), format!("https://a#{pairs}&sb="));
        assert_eq!(error_redirect(&error, "https://a?error=old", true), format!("https://a?{pairs}#{pairs}&sb="));
    }
}
