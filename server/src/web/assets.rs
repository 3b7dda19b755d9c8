//! Files of the web app: choice of encoding, cache and security headers.

use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../frontend/dist"]
#[allow_missing = true]
struct Dist;

/// Scripts come from our own files only; styles may be inline because positioned menus set them.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'self'; \
     form-action 'self'; frame-ancestors 'none'";

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const REVALIDATE: &str = "no-cache";

pub(super) async fn serve(request: HttpRequest) -> HttpResponse {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, "GET, HEAD")).finish();
    }
    let path = request.path().trim_start_matches('/');
    let wanted = if path.is_empty() { "index.html" } else { path };
    if let Some((encoding, file)) = find(wanted, &request) {
        return answer(&request, wanted, encoding, file);
    }
    // A name with an extension is a file that is not there; anything else is a place inside the app.
    if wanted.starts_with("assets/") || wanted.rsplit('/').next().is_some_and(|name| name.contains('.')) {
        return HttpResponse::NotFound().content_type("text/plain; charset=utf-8").body("There is no such file.\n");
    }
    match find("index.html", &request) {
        Some((encoding, file)) => answer(&request, "index.html", encoding, file),
        None => HttpResponse::NotFound()
            .content_type("text/plain; charset=utf-8")
            .body("This build holds no web app. 'just build' puts it in; the API is served all the same.\n"),
    }
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
    let etag = format!("\"{}{}\"", hex::encode(&file.metadata.sha256_hash()[..12]), encoding.unwrap_or(""));
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::ETAG, etag.clone()))
        .insert_header((header::VARY, "Accept-Encoding"))
        .insert_header((header::CACHE_CONTROL, if path.starts_with("assets/") { IMMUTABLE } else { REVALIDATE }))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "same-origin"))
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY))
        .insert_header(("Permissions-Policy", "camera=(), microphone=(), geolocation=()"))
        .insert_header((header::CONTENT_TYPE, content_type(path)));
    if request.headers().get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains(&etag)) {
        return response.status(actix_web::http::StatusCode::NOT_MODIFIED).finish();
    }
    if let Some(encoding) = encoding {
        response.insert_header((header::CONTENT_ENCODING, encoding));
    }
    response.body(file.data.into_owned())
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
    use super::accepts;

    #[test]
    fn an_encoding_is_taken_when_listed_and_not_refused() {
        assert!(accepts("gzip, br;q=0.9", "br"));
        assert!(!accepts("gzip, br;q=0", "br"));
        assert!(!accepts("gzip", "br"));
        assert!(accepts("GZIP", "gzip"));
    }
}
