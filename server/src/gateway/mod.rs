//! API keys: which key a request carries and which role that allows.
//!
//! As in Supabase's gateway, `/auth/v1` and `/rest/v1` need an `apikey` (header or query). If `Authorization` is missing or holds an
//! opaque key, it is replaced by the key's token, so that the APIs see only JSON Web Tokens.
//! Routes: supabase/supabase `docker/volumes/api/kong.yml`.

mod https;
mod keys;
mod reset;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use actix_web::http::{Method, Uri};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, web};
use serde_json::json;

use crate::config::TrustedProxies;
use crate::http::client::{client_address, network};
use crate::http::context::{self, PresentedKey};
use crate::http::cors;
use crate::jwt::bearer::token_of;
pub use https::Https;
pub use keys::{ApiKeys, sign_key};
pub use reset::{RESET, Reset, reset};

const APIKEY: HeaderName = HeaderName::from_static("apikey");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Paths opened without a key: links in mails, and OAuth, whose clients have only their own credentials.
const OPEN_PATHS: [&str; 10] = [
    "/auth/v1/verify",
    "/auth/v1/callback",
    "/auth/v1/authorize",
    "/auth/v1/.well-known/",
    "/auth/v1/sso/saml/acs",
    "/auth/v1/sso/saml/metadata",
    "/auth/v1/oauth/authorize",
    "/auth/v1/oauth/token",
    "/auth/v1/oauth/userinfo",
    "/auth/v1/oauth/clients/register",
];

/// Root paths of the auth API, and its own: discovery for OAuth clients, also as RFC 8414 forms it of the issuer, and SAML identity
/// providers.
const AUTH_AT_ROOT: [(&str, &str); 5] = [
    ("/.well-known/oauth-authorization-server", "/auth/v1/.well-known/oauth-authorization-server"),
    ("/.well-known/oauth-authorization-server/auth/v1", "/auth/v1/.well-known/oauth-authorization-server"),
    ("/.well-known/openid-configuration/auth/v1", "/auth/v1/.well-known/openid-configuration"),
    ("/sso/saml/acs", "/auth/v1/sso/saml/acs"),
    ("/sso/saml/metadata", "/auth/v1/sso/saml/metadata"),
];

/// Middleware for all requests: sets the client's address, maps root paths to their API, and refuses methods meant
/// for proxies, as nginx in Supabase's gateway does.
///
/// The client's address in the database (`X-Forwarded-For` in `request.headers`, used by rate limits) is the one we
/// saw, not the claimed one.
pub async fn enter(
    proxies: web::Data<TrustedProxies>,
    https: web::Data<Https>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    if let Some(elsewhere) = https.redirect(&request) {
        return Ok(request.into_response(elsewhere).map_into_right_body());
    }
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        let refusal = HttpResponse::MethodNotAllowed().json(json!({ "message": "Method not allowed" }));
        return Ok(request.into_response(refusal).map_into_right_body());
    }
    let client = client_address(request.request(), &proxies);
    client.map(network).into_iter().for_each(context::comes_from);
    match client.and_then(|address| HeaderValue::from_str(&address.to_string()).ok()) {
        Some(address) => drop(request.headers_mut().insert(X_FORWARDED_FOR, address)),
        None => drop(request.headers_mut().remove(X_FORWARDED_FOR)),
    }
    let at_root = AUTH_AT_ROOT.iter().find(|(path, _)| *path == request.path());
    if let Some((_, path)) = at_root {
        let target = match request.uri().query() {
            Some(query) => format!("{path}?{query}"),
            None => (*path).to_owned(),
        };
        set_target(&mut request, &target);
    }
    let reset = request.app_data::<web::Data<Reset>>().filter(|_| request.path() != RESET).cloned();
    let _inside = match &reset {
        Some(reset) => Some(reset.enter().await),
        None => None,
    };
    let mut response = next.call(request).await?;
    let asked = response.request().clone();
    https.mark(&asked, response.headers_mut());
    Ok(response.map_into_left_body())
}

/// Middleware for an API without its own CORS headers: all origins may read, as in Supabase.
pub async fn allow_origins(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if cors::is_preflight(request.method(), request.headers()) {
        let answer = cors::preflight(request.headers());
        return Ok(request.into_response(answer));
    }
    let mut response = next.call(request).await?.map_into_boxed_body();
    cors::allow(response.headers_mut());
    Ok(response)
}

/// The answer of Supabase's gateway for an API that is not served here.
pub async fn unknown_api() -> HttpResponse {
    HttpResponse::NotFound()
        .insert_header(("Access-Control-Allow-Origin", "*"))
        .json(json!({ "message": "no Route matched with those values" }))
}

/// Middleware for the scopes that need a key.
pub async fn require_key(
    keys: web::Data<ApiKeys>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if request.method() == Method::OPTIONS {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let presented = take_key(&mut request).map(|key| (keys.token_of(&key), key));
    match presented {
        Some((Some(token), key)) => act_as(&mut request, &key, &token),
        // A link in an old mail may carry a key that has been rotated since.
        None | Some((None, _)) if keys.is_open() || is_open(request.path()) => use_opaque_bearer(&mut request, &keys),
        None => {
            return Ok(refuse(
                request,
                "No API key found in request",
                "No `apikey` request header or url param was found.",
            ));
        }
        Some((None, _)) => {
            let hint = "Double check your Supabase `anon` or `service_role` API key.";
            return Ok(refuse(request, "Invalid API key", hint));
        }
    }
    settle(&request, &keys).await;
    Ok(next.call(request).await?.map_into_boxed_body())
}

/// Middleware for the scopes that are open without a key but understand one.
pub async fn accept_key(
    keys: web::Data<ApiKeys>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if request.method() != Method::OPTIONS {
        match take_key(&mut request).and_then(|key| Some((keys.token_of(&key)?, key))) {
            Some((token, key)) => act_as(&mut request, &key, &token),
            None => use_opaque_bearer(&mut request, &keys),
        }
        settle(&request, &keys).await;
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}

fn is_open(path: &str) -> bool {
    OPEN_PATHS.iter().any(|open| {
        path.strip_prefix(open).is_some_and(|rest| open.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
    })
}

/// The key from the header or the query. It is removed from the query, so that the API does not read it as a
/// filter.
fn take_key(request: &mut ServiceRequest) -> Option<String> {
    let from_header = request.headers().get(&APIKEY).and_then(|v| v.to_str().ok());
    let from_header = from_header.filter(|key| !key.is_empty()).map(str::to_owned);
    let query = request.query_string().to_owned();
    if !query.split('&').any(|pair| pair.starts_with("apikey=")) {
        return from_header;
    }
    let mut from_query = None;
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| match pair.strip_prefix("apikey=") {
            Some(value) => {
                from_query = Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned());
                false
            }
            None => true,
        })
        .collect();
    let path = request.uri().path().to_owned();
    let target = if kept.is_empty() { path } else { format!("{path}?{}", kept.join("&")) };
    set_target(request, &target);
    from_header.or(from_query.filter(|key| !key.is_empty()))
}

/// Replaces the request's path and query for routing.
fn set_target(request: &mut ServiceRequest, target: &str) {
    if let Ok(uri) = target.parse::<Uri>() {
        request.head_mut().uri = uri.clone();
        request.match_info_mut().get_mut().update(&uri);
    }
}

/// The token of the request's `apikey`, unless a user's is given. An opaque key as bearer is none, whatever it is.
fn act_as(request: &mut ServiceRequest, key: &str, token: &str) {
    if !request.headers().contains_key(AUTHORIZATION) || opaque_bearer(request).is_some() {
        context::presents(|| PresentedKey::ApiKey(key.into()));
        set_bearer(request, token);
    }
}

/// Without an `apikey`, `Authorization: Bearer sb_…` means the key's role and no user.
fn use_opaque_bearer(request: &mut ServiceRequest, keys: &ApiKeys) {
    if let Some(token) = opaque_bearer(request).and_then(|bearer| keys.token_of(bearer)) {
        set_bearer(request, &token);
    }
}

/// `sb_…` of `Authorization: Bearer sb_…`
fn opaque_bearer(request: &ServiceRequest) -> Option<&str> {
    let (scheme, bearer) = request.headers().get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && bearer.starts_with("sb_")).then(|| bearer.trim())
}

/// Waits for the keys of another issuer, if those of the token are not known yet.
async fn settle(request: &ServiceRequest, keys: &ApiKeys) {
    let Some(issuers) = keys.issuers() else { return };
    if let Ok(token) = token_of(request.headers()) {
        issuers.settle(token).await;
    }
}

fn set_bearer(request: &mut ServiceRequest, token: &str) {
    if let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        request.headers_mut().insert(AUTHORIZATION, value);
    }
}

fn refuse(request: ServiceRequest, message: &str, hint: &str) -> ServiceResponse<BoxBody> {
    let response = HttpResponse::Unauthorized()
        .insert_header(("Access-Control-Allow-Origin", "*"))
        .insert_header(("WWW-Authenticate", "Key realm=\"kong\""))
        .json(json!({ "message": message, "hint": hint }));
    request.into_response(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::{App, HttpRequest, middleware::from_fn, test};

    async fn echo(request: HttpRequest) -> String {
        let bearer = request.headers().get(AUTHORIZATION).and_then(|v| v.to_str().ok()).unwrap_or("-");
        format!("{bearer} {}", request.query_string())
    }

    fn keys() -> ApiKeys {
        ApiKeys::fixed("anon.jwt.x", "service.jwt.x", Some("sb_publishable_a"), Some("sb_secret_b"))
    }

    async fn call(path: &str, headers: &[(&'static str, &str)]) -> (u16, String) {
        call_with(keys(), path, headers).await
    }

    async fn call_with(keys: ApiKeys, path: &str, headers: &[(&'static str, &str)]) -> (u16, String) {
        let keys = web::Data::new(keys);
        let app = test::init_service(
            App::new()
                .app_data(keys)
                .service(web::scope("/rest/v1").wrap(from_fn(require_key)).default_service(web::to(echo)))
                .service(web::scope("/auth/v1").wrap(from_fn(require_key)).default_service(web::to(echo))),
        )
        .await;
        let mut request = test::TestRequest::get().uri(path);
        for header in headers {
            request = request.insert_header(*header);
        }
        let response = test::call_service(&app, request.to_request()).await;
        let status = response.status().as_u16();
        (status, String::from_utf8_lossy(&test::read_body(response).await).into_owned())
    }

    #[actix_web::test]
    async fn a_request_without_a_key_gets_the_gateways_error() {
        let (status, body) = call("/rest/v1/t", &[]).await;
        assert_eq!(status, 401);
        assert_eq!(
            body,
            r#"{"message":"No API key found in request","hint":"No `apikey` request header or url param was found."}"#
        );
        // A page without a configured key.
        for (path, headers) in [("/rest/v1/t", &[("apikey", "")][..]), ("/rest/v1/t?apikey=", &[])] {
            assert!(call(path, headers).await.1.contains("No API key found"), "{path}");
        }
        let (status, body) = call("/rest/v1/t", &[("apikey", "nonsense")]).await;
        assert_eq!(status, 401);
        assert!(body.contains("Invalid API key"), "{body}");
    }

    #[actix_web::test]
    async fn without_authorization_the_keys_own_role_applies() {
        assert_eq!(call("/rest/v1/t?a=1", &[("apikey", "anon.jwt.x")]).await.1, "Bearer anon.jwt.x a=1");
        assert_eq!(call("/rest/v1/t", &[("apikey", "sb_secret_b")]).await.1, "Bearer service.jwt.x ");
    }

    #[actix_web::test]
    async fn a_key_in_the_query_is_accepted_and_not_passed_on() {
        assert_eq!(call("/rest/v1/t?apikey=anon.jwt.x&b=eq.2", &[]).await.1, "Bearer anon.jwt.x b=eq.2");
    }

    #[actix_web::test]
    async fn a_users_token_is_passed_on_and_an_opaque_bearer_is_replaced_by_its_keys_token() {
        let key = ("apikey", "sb_publishable_a");
        assert_eq!(call("/rest/v1/t", &[key, ("authorization", "Bearer user.jwt")]).await.1, "Bearer user.jwt ");
        assert_eq!(
            call("/rest/v1/t", &[key, ("authorization", "bearer sb_publishable_a")]).await.1,
            "Bearer anon.jwt.x "
        );
        // The apikey decides, as in Supabase's gateway.
        for bearer in ["Bearer sb_publishable_of_another_project", "Bearer sb_secret_b"] {
            assert_eq!(call("/rest/v1/t", &[key, ("authorization", bearer)]).await.1, "Bearer anon.jwt.x ", "{bearer}");
        }
    }

    #[actix_web::test]
    async fn links_from_mails_need_no_key() {
        assert_eq!(call("/auth/v1/verify?token=x", &[]).await.0, 200);
        assert_eq!(call("/auth/v1/.well-known/jwks.json", &[]).await.0, 200);
        assert_eq!(call("/auth/v1/verifyx", &[]).await.0, 401);
        // Regression with a rotated key: the link in the mail was refused.
        assert_eq!(call("/auth/v1/verify?token=x&apikey=old", &[]).await, (200, "- token=x".to_owned()));
    }

    /// MCP servers and other clients call a local stack without a key.
    #[actix_web::test]
    async fn an_open_gateway_lets_requests_without_a_key_pass() {
        for (headers, seen) in [
            (&[][..], "- "),
            (&[("apikey", "nonsense")], "- "),
            (&[("apikey", "user.jwt"), ("authorization", "Bearer user.jwt")], "Bearer user.jwt "),
            (&[("apikey", "sb_secret_b")], "Bearer service.jwt.x "),
        ] {
            assert_eq!(call_with(keys().open(), "/rest/v1/t", headers).await, (200, seen.to_owned()), "{headers:?}");
        }
    }

    #[actix_web::test]
    async fn oauth_clients_need_no_key() {
        for path in ["authorize?client_id=x", "token", "userinfo", "clients/register"] {
            assert_eq!(call(&format!("/auth/v1/oauth/{path}"), &[]).await.0, 200, "{path}");
        }
        assert_eq!(call("/auth/v1/oauth/authorizations/x", &[]).await.0, 401);
    }
}
