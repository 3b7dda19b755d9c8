//! Cross-origin requests.
//!
//! Only requests with `Origin` are affected. A refused origin gets no headers but is served anyway, since the
//! browser withholds the answer from it. Reference: PostgREST `Cors.hs` over the package wai-cors.

/// Headers of a response.
pub type Headers = Vec<(&'static str, String)>;

/// The result of the CORS check.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A preflight: answered with 200, these headers and no body, before anything else is checked.
    Preflight(Headers),
    /// Headers to add to the answer; often none.
    Actual(Headers),
}

/// The headers that CORS needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub method: &'a str,
    pub origin: Option<&'a str>,
    /// `Access-Control-Request-Method`
    pub request_method: Option<&'a str>,
    /// `Access-Control-Request-Headers`
    pub request_headers: Option<&'a str>,
}

const METHODS: [&str; 7] = ["GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "HEAD"];
const EXPOSED: &str = "Content-Encoding, Content-Location, Content-Range, Content-Type, Date, Location, Server, \
                       Transfer-Encoding, Range-Unit";
const MAX_AGE_SECONDS: &str = "86400";

/// `allowed`: origins that may read answers with credentials; empty lets all read, without credentials.
pub fn judge(asked: Asked<'_>, allowed: &[String]) -> Verdict {
    let Some(origin) = asked.origin else { return Verdict::Actual(Vec::new()) };
    let mut headers = Headers::new();
    if allowed.is_empty() {
        headers.push(("Access-Control-Allow-Origin", "*".to_owned()));
    } else if allowed.iter().any(|one| one == origin) {
        headers.push(("Access-Control-Allow-Origin", origin.to_owned()));
        headers.push(("Access-Control-Allow-Credentials", "true".to_owned()));
    } else {
        return Verdict::Actual(Vec::new());
    }
    if asked.method != "OPTIONS" {
        headers.push(("Access-Control-Expose-Headers", EXPOSED.to_owned()));
        return Verdict::Actual(headers);
    }
    // An OPTIONS request that is not a preflight for one of our methods is handled like any other request.
    if !asked.request_method.is_some_and(|method| METHODS.contains(&method)) {
        return Verdict::Actual(Vec::new());
    }
    headers.push(("Access-Control-Allow-Methods", METHODS.join(", ")));
    if let Some(requested) = asked.request_headers {
        let Some(names) = allowed_headers(requested) else { return Verdict::Actual(Vec::new()) };
        headers.push(("Access-Control-Allow-Headers", names.join(", ")));
    }
    headers.push(("Access-Control-Max-Age", MAX_AGE_SECONDS.to_owned()));
    Verdict::Preflight(headers)
}

/// The allowed headers: those in `requested` and the ones that are always allowed. `None` if a name is invalid.
fn allowed_headers(requested: &str) -> Option<Vec<&str>> {
    let listed = requested.split(',').map(str::trim).filter(|_| !requested.is_empty());
    let mut names: Vec<&str> = std::iter::once("Authorization").chain(listed).collect();
    let is_among = |names: &[&str], wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    // A name ends at the first character that cannot be part of one, such as a space after a comma.
    let mut rest = requested.trim_start();
    loop {
        let end = rest.find(|c| !is_of_a_name(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() {
            break;
        }
        if !is_among(&names, name) && !is_among(&SIMPLE, name) {
            return None;
        }
        let Some(next) = rest[end..].trim_start().strip_prefix(',') else { break };
        rest = next;
    }
    let simple: Vec<&str> = SIMPLE.into_iter().filter(|name| !is_among(&names, name)).collect();
    names.extend(simple);
    Some(names)
}

const SIMPLE: [&str; 3] = ["Accept", "Accept-Language", "Content-Language"];

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(headers: &Headers) -> Vec<&str> {
        headers.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn without_an_origin_no_cors_headers_are_sent() {
        assert_eq!(judge(Asked { method: "GET", ..Asked::default() }, &[]), Verdict::Actual(vec![]));
        let options = Asked { method: "OPTIONS", request_method: Some("GET"), ..Asked::default() };
        assert_eq!(judge(options, &[]), Verdict::Actual(vec![]));
    }

    #[test]
    fn any_origin_may_read_without_credentials_unless_some_are_named() {
        let asked = Asked { method: "GET", origin: Some("https://a"), ..Asked::default() };
        let Verdict::Actual(open) = judge(asked, &[]) else { panic!("no preflight") };
        assert_eq!(open[0].1, "*");
        assert_eq!(names(&open), ["Access-Control-Allow-Origin", "Access-Control-Expose-Headers"]);
        let Verdict::Actual(named) = judge(asked, &["https://a".to_owned()]) else { panic!("no preflight") };
        assert_eq!(named[0].1, "https://a");
        assert_eq!(named[1], ("Access-Control-Allow-Credentials", "true".to_owned()));
        assert_eq!(judge(asked, &["https://b".to_owned()]), Verdict::Actual(vec![]));
    }

    #[test]
    fn a_preflight_must_ask_for_a_supported_method() {
        let asked = |method| Asked {
            method: "OPTIONS",
            origin: Some("x"),
            request_method: Some(method),
            request_headers: None,
        };
        let Verdict::Preflight(headers) = judge(asked("PUT"), &[]) else { panic!("a preflight") };
        assert_eq!(
            names(&headers),
            ["Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Max-Age"]
        );
        for other in ["TRACE", "put", ""] {
            assert_eq!(judge(asked(other), &[]), Verdict::Actual(vec![]), "{other}");
        }
    }

    #[test]
    fn requested_headers_are_listed_once_and_invalid_names_are_refused() {
        let simple = "Accept, Accept-Language, Content-Language";
        let cases = [
            ("", Some(format!("Authorization, {simple}"))),
            ("accept", Some("Authorization, accept, Accept-Language, Content-Language".to_owned())),
            ("x-a,CONTENT-LANGUAGE", Some("Authorization, x-a, CONTENT-LANGUAGE, Accept, Accept-Language".to_owned())),
            ("x-a,,x-b", Some(format!("Authorization, x-a, , x-b, {simple}"))),
            ("x-a, x(b)", Some(format!("Authorization, x-a, x(b), {simple}"))),
            ("x-a,x(b)", None),
            ("x y", None),
        ];
        for (requested, allowed) in cases {
            assert_eq!(allowed_headers(requested).map(|names| names.join(", ")), allowed, "{requested}");
        }
    }

    #[test]
    fn requested_headers_are_all_allowed() {
        let asked = Asked {
            method: "OPTIONS",
            origin: Some("x"),
            request_method: Some("GET"),
            request_headers: Some("apikey,x-a"),
        };
        let Verdict::Preflight(headers) = judge(asked, &[]) else { panic!("a preflight") };
        assert!(headers.contains(&(
            "Access-Control-Allow-Headers",
            "Authorization, apikey, x-a, Accept, Accept-Language, Content-Language".to_owned()
        )));
    }
}
