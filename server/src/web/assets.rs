//! Files of the web app: choice of encoding, cache and security headers.

use actix_web::http::{Method, header};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::AppSettings;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../../frontend/dist"]
#[allow_missing = true]
struct Dist;

/// The paths of the app's scripts. Nothing else on this origin may run, such as an uploaded file.
const SCRIPTS: [&str; 2] = ["/assets/", "/theme.js"];

/// Where the app keeps the language that was chosen (`frontend/src/messages/locale.ts`).
const LANGUAGE_COOKIE: &str = "aidbridge-language";

/// The app's service worker, the only one.
const WORKER: &str = "/sw.js";

/// Scripts come from the app's own files only; styles may be inline because positioned menus set them.
const REST_OF_POLICY: &str = "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

/// The policy names its hosts, because a path needs a host: the requested one, the one forwarded by a proxy, and the
/// site's.
fn content_security_policy(request: &HttpRequest, site_url: &str) -> String {
    let asked = request.connection_info().host().to_owned();
    let own = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let site = url::Url::parse(site_url).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
    });
    let mut hosts: Vec<&str> = Vec::new();
    for host in [asked.as_str(), own, site.as_deref().unwrap_or_default()] {
        let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:_".contains(c));
        if is_host && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    // The grammar has no IPv6 address.
    if own.starts_with('[') || hosts.is_empty() {
        return format!("default-src 'self'; script-src 'self'; worker-src 'none'; {REST_OF_POLICY}");
    }
    let workers = hosts.iter().map(|host| format!("{host}{WORKER}")).collect::<Vec<_>>().join(" ");
    let sources =
        hosts.iter().flat_map(|host| SCRIPTS.map(|path| format!("{host}{path}"))).collect::<Vec<_>>().join(" ");
    format!("default-src 'self'; script-src {sources}; worker-src {workers}; {REST_OF_POLICY}")
}

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const REVALIDATE: &str = "no-cache";
const BY_LANGUAGE: &str = "Accept-Encoding, Accept-Language, Cookie";

pub(super) async fn serve(request: HttpRequest) -> HttpResponse {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, "GET, HEAD")).finish();
    }
    let path = request.path().trim_start_matches('/');
    if let Some((page, encoding, file)) = arrival(path, &request) {
        return answer(&request, &page, encoding, file);
    }
    let wanted = if path.is_empty() { "index.html" } else { path };
    if let Some((encoding, file)) = find(wanted, &request) {
        return answer(&request, wanted, encoding, file);
    }
    // A name with an extension is a missing file, and programs look for well-known ones; anything else is a page of the app.
    if wanted.starts_with("assets/")
        || wanted.starts_with(".well-known/")
        || wanted.rsplit('/').next().is_some_and(|name| name.contains('.'))
    {
        return HttpResponse::NotFound().content_type("text/plain; charset=utf-8").body("There is no such file.\n");
    }
    match find("index.html", &request) {
        Some((encoding, file)) => answer(&request, "index.html", encoding, file),
        None => HttpResponse::NotFound()
            .content_type("text/plain; charset=utf-8")
            .body("This build contains no web app ('just build' adds it). The API is served anyway.\n"),
    }
}

/// The page that a build holds for an address, in the reader's language: `pages/<path>.<language>.html`.
fn arrival(path: &str, request: &HttpRequest) -> Option<(String, Option<&'static str>, EmbeddedFile)> {
    let name = if path.is_empty() { "index" } else { path };
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return None;
    }
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
    let mut languages = languages(request.query_string(), header(header::COOKIE), header(header::ACCEPT_LANGUAGE));
    languages.push("en".to_owned());
    languages.into_iter().find_map(|language| {
        let page = format!("pages/{name}.{language}.html");
        find(&page, request).map(|(encoding, file)| (page, encoding, file))
    })
}

/// The requested languages, best first: `lang` in the URL, the choice made here before, then `Accept-Language`.
/// `fr-CA` is `fr`. Few browsers offer Haitian Creole, so the app keeps a choice in a cookie as well.
fn languages(query: &str, cookies: &str, header: &str) -> Vec<String> {
    let in_address = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "lang");
    let chosen = cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix(LANGUAGE_COOKIE)?.strip_prefix('='));
    let mut listed: Vec<(f32, &str)> = header
        .split(',')
        .filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let tag = parts.next()?;
            let weight = parts.find_map(|p| p.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok())?;
            (weight > 0.0).then_some((weight, tag))
        })
        .collect();
    listed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let tags = in_address.iter().map(|(_, tag)| tag.as_ref()).chain(chosen).chain(listed.iter().map(|(_, tag)| *tag));
    tags.map(|tag| tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase())
        .filter(|language| (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_lowercase()))
        .take(20)
        .collect()
}

/// The best encoding of `path` that the client takes: Brotli, then gzip, then the file itself.
fn find(path: &str, request: &HttpRequest) -> Option<(Option<&'static str>, EmbeddedFile)> {
    let accepted = request.headers().get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or("");
    for (token, suffix) in [("br", ".br"), ("gzip", ".gz")] {
        if accepts(accepted, token)
            && let Some(file) = Dist::get(&format!("{path}{suffix}"))
        {
            return Some((Some(token), file));
        }
    }
    Dist::get(path).map(|file| (None, file))
}

/// Whether an `Accept-Encoding` lists `token` without refusing it (`q=0`).
fn accepts(header: &str, token: &str) -> bool {
    header.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case(token))
            && !parts.any(|p| p.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0))
    })
}

fn answer(request: &HttpRequest, path: &str, encoding: Option<&'static str>, file: EmbeddedFile) -> HttpResponse {
    let site_url = request.app_data::<Data<AppSettings>>().map_or("", |settings| settings.site_url.as_str());
    let etag = format!("\"{}{}\"", hex::encode(&file.metadata.sha256_hash()[..12]), encoding.unwrap_or(""));
    let mut response = headers(request, path, site_url);
    response.insert_header((header::ETAG, etag.clone()));
    if request.headers().get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains(&etag)) {
        return response.status(actix_web::http::StatusCode::NOT_MODIFIED).finish();
    }
    if let Some(encoding) = encoding {
        response.insert_header((header::CONTENT_ENCODING, encoding));
    }
    response.body(file.data.into_owned())
}

/// The headers of every file of the app.
fn headers(request: &HttpRequest, path: &str, site_url: &str) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::VARY, if path.starts_with("pages/") { BY_LANGUAGE } else { "Accept-Encoding" }))
        .insert_header((header::CACHE_CONTROL, if path.starts_with("assets/") { IMMUTABLE } else { REVALIDATE }))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "same-origin"))
        .insert_header((header::CONTENT_SECURITY_POLICY, content_security_policy(request, site_url)))
        .insert_header(("Permissions-Policy", "camera=(), microphone=(), geolocation=()"))
        .insert_header((header::CONTENT_TYPE, content_type(path)));
    response
}

/// The types a Vite build can hold.
fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or("") {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{accepts, content_security_policy, headers, languages};
    use actix_web::test::TestRequest;

    #[test]
    fn scripts_and_workers_run_only_from_the_built_files() {
        let part = |name: &str, host: &str, forwarded: Option<&str>| {
            let mut request = TestRequest::get().insert_header(("host", host));
            if let Some(forwarded) = forwarded {
                request = request.insert_header(("x-forwarded-host", forwarded));
            }
            let policy = content_security_policy(&request.to_http_request(), "https://app.example/");
            policy.split(';').map(str::trim).find(|part| part.starts_with(name)).expect("its part").to_owned()
        };
        let policy = |host, forwarded| part("script-src", host, forwarded);
        let own = "app.example/assets/ app.example/theme.js";
        let local = "127.0.0.1:54321/assets/ 127.0.0.1:54321/theme.js";
        assert_eq!(policy("127.0.0.1:54321", None), format!("script-src {local} {own}"));
        assert_eq!(policy("app.example", None), format!("script-src {own}"));
        assert_eq!(
            policy("inner:8000", Some("app.example")),
            format!("script-src {own} inner:8000/assets/ inner:8000/theme.js")
        );
        // The sender of such a header gets the policy itself, and cannot inject into it.
        assert_eq!(policy("app.example", Some("x 'unsafe-inline'")), format!("script-src {own}"));
        assert_eq!(part("worker-src", "app.example", None), "worker-src app.example/sw.js");
        assert_eq!(part("worker-src", "127.0.0.1:54321", None), "worker-src 127.0.0.1:54321/sw.js app.example/sw.js");
        assert_eq!(part("worker-src", "[::1]:54321", None), "worker-src 'none'");
    }

    /// Its addresses hold numbers of requests and codes of mailed links.
    #[test]
    fn the_app_cannot_be_framed_and_sends_no_referrer_to_other_sites() {
        let request = TestRequest::get().insert_header(("host", "app.example")).to_http_request();
        for path in ["index.html", "pages/fr/index.html", "assets/index.js", "sw.js"] {
            let response = headers(&request, path, "https://app.example").finish();
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
            assert_eq!(header("referrer-policy"), "same-origin", "{path}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
            assert!(header("content-security-policy").contains("frame-ancestors 'none'"), "{path}");
        }
    }

    #[test]
    fn the_urls_language_precedes_the_chosen_one_and_the_browsers() {
        assert_eq!(languages("", "", "en;q=0.5, fr-CA, ht;q=0.8"), ["fr", "ht", "en"]);
        assert_eq!(languages("id=1&lang=HT", "a=b; aidbridge-language=fr", "es-419"), ["ht", "fr", "es"]);
        assert_eq!(
            languages("lang=../../secret", "aidbridge-language-new=1", "*, de;q=0, fr;q=x"),
            Vec::<String>::new()
        );
        assert_eq!(languages("", "", &"fr,".repeat(10_000)).len(), 20);
    }

    #[test]
    fn an_encoding_is_used_if_listed_with_nonzero_quality() {
        assert!(accepts("gzip, br;q=0.9", "br"));
        assert!(!accepts("gzip, br;q=0", "br"));
        assert!(!accepts("gzip", "br"));
        assert!(accepts("GZIP", "gzip"));
    }
}
