//! A client requests authorization, and the user consents or denies.

use actix_web::HttpResponse;
use chrono::Duration;
use rand::Rng as _;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use crate::auth::door::bearer::Caller;
use crate::auth::door::limits::Bucket;
use crate::auth::door::location::with_query;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::oauth::found;
use crate::auth::models::now;
use crate::auth::models::oauth_client::{self, Authorization, OAuthClient};
use crate::auth::models::store::Db;

const SCOPES: [&str; 5] = ["openid", "profile", "email", "phone", "offline_access"];

/// `GET /oauth/authorize`: 302 to the site's consent page.
///
/// Until client and redirect URI are validated, errors are 400 JSON: `validation_failed`,
/// `oauth_client_not_found`; afterwards they are 302 to the client. Too many requests are 429 `over_request_rate_limit`.
pub async fn authorize(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::OauthAuthorize, request)?;
    let config = &request.auth.config;
    let query = |name: &str| request.query(name).unwrap_or("");
    let (client_id, redirect_uri, state) = (query("client_id"), query("redirect_uri"), query("state"));
    for (name, value) in [("client_id", client_id), ("redirect_uri", redirect_uri)] {
        if value.is_empty() {
            return Err(AuthError::invalid(format!("{name} is required")));
        }
    }
    let unknown = |message: &str| AuthError::bad_request(Code::OauthClientNotFound, message);
    let client_id = Uuid::parse_str(client_id).map_err(|_| unknown("invalid client_id format"))?;
    let db = request.db().await?;
    let client: OAuthClient = oauth_client::find(&db, client_id)
        .await
        .or_internal("error validating client")?
        .ok_or_else(|| unknown("invalid client_id"))?;
    // Compared as text, so that only identical URIs pass.
    if !client.redirect_uris.iter().any(|known| known == redirect_uri) {
        return Err(AuthError::invalid("invalid redirect_uri"));
    }
    let refuse = |error: &str, why: &str| {
        let mut pairs = vec![("error", error), ("error_description", why)];
        if !state.is_empty() {
            pairs.push(("state", state));
        }
        Ok(found(&with_query(redirect_uri, &pairs)))
    };
    let scope = if query("scope").is_empty() { config.oauth_server.default_scope.as_str() } else { query("scope") };
    if let Err(why) = check(query, scope) {
        return refuse("invalid_request", &why);
    }
    let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let created_at = now();
    let ttl = Duration::from_std(config.oauth_server.authorization_ttl).unwrap_or_else(|_| Duration::minutes(10));
    let authorization = Authorization {
        id: Uuid::new_v4(),
        authorization_id: random_id(),
        client_id: client.id,
        user_id: None,
        redirect_uri: redirect_uri.to_owned(),
        scope: scope.to_owned(),
        state: filled(state),
        resource: filled(query("resource")),
        code_challenge: filled(query("code_challenge")),
        code_challenge_method: filled(&query("code_challenge_method").to_ascii_lowercase()),
        nonce: filled(query("nonce")),
        status: "pending".to_owned(),
        authorization_code: None,
        created_at,
        expires_at: created_at + ttl,
    };
    if let Err(fault) = authorization.insert(&db).await {
        tracing::error!(request_id = request.id, %fault, "auth: an authorization could not be stored");
        return refuse("server_error", "error creating authorization");
    }
    let path = &config.oauth_server.authorization_path;
    if path.is_empty() {
        return refuse("server_error", "oauth authorization path not configured");
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let page = format!("{}{slash}{path}", config.site_url.trim_end_matches('/'));
    Ok(found(&format!("{page}?authorization_id={}", authorization.authorization_id)))
}

/// 32 characters of lower-case base32, 160 bits.
fn random_id() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut rng = rand::rng();
    (0..32).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])).collect()
}

/// Checks the parameters whose errors go to the client.
fn check<'a>(query: impl Fn(&str) -> &'a str, scope: &str) -> Result<(), String> {
    if !matches!(query("response_type"), "" | "code") {
        return Err("only response_type=code is supported".to_owned());
    }
    if scope.split_whitespace().next().is_none() {
        return Err("scope parameter cannot be empty".to_owned());
    }
    if let Some(unknown) = scope.split_whitespace().find(|scope| !SCOPES.contains(scope)) {
        return Err(format!("unsupported scope: {unknown}"));
    }
    check_resource(query("resource"))?;
    let (challenge, method) = (query("code_challenge"), query("code_challenge_method"));
    if challenge.is_empty() || method.is_empty() {
        return Err("PKCE flow requires both code_challenge and code_challenge_method".to_owned());
    }
    if !matches!(method.to_ascii_lowercase().as_str(), "s256" | "plain") {
        return Err("code_challenge_method must be 'S256' or 'plain'".to_owned());
    }
    if !(43..=128).contains(&challenge.len()) {
        return Err("code_challenge must be between 43 and 128 characters".to_owned());
    }
    Ok(())
}

/// RFC 8707: an absolute URI without query and fragment.
fn check_resource(resource: &str) -> Result<(), String> {
    if resource.is_empty() {
        return Ok(());
    }
    match Url::parse(resource) {
        Err(url::ParseError::RelativeUrlWithoutBase) => Err("resource must be an absolute URI".to_owned()),
        Err(_) => Err("resource must be a valid URI".to_owned()),
        Ok(url) if url.fragment().is_some_and(|fragment| !fragment.is_empty()) => {
            Err("resource must not include a fragment component".to_owned())
        }
        Ok(url) if url.query().is_some_and(|query| !query.is_empty()) => {
            Err("resource must not include a query component".to_owned())
        }
        Ok(_) => Ok(()),
    }
}

/// Only pages of the site may send a user's decision; browsers name the page's origin.
fn check_origin(request: &Request) -> AuthResult<()> {
    match request.header("origin").unwrap_or("") {
        "" => Ok(()),
        origin if request.auth.redirects.allows(origin) => Ok(()),
        _ => Err(AuthError::invalid("unauthorized request origin")),
    }
}

fn not_found() -> AuthError {
    AuthError::not_found(Code::OauthAuthorizationNotFound, "authorization not found")
}

/// Locks a pending authorization. An inner error is returned after what was written is committed.
async fn load(db: &Db, id: &str, no_longer: &str) -> AuthResult<Result<Authorization, AuthError>> {
    let mut found = oauth_client::lock_authorization(db, id)
        .await
        .or_internal("error finding authorization")?
        .ok_or_else(not_found)?;
    if found.is_expired() {
        if found.is_pending() {
            found.close(db, "expired").await?;
        }
        return Ok(Err(not_found()));
    }
    if !found.is_pending() {
        return Err(AuthError::invalid(no_longer));
    }
    Ok(Ok(found))
}

fn success(authorization: &Authorization) -> String {
    let mut pairs = Vec::new();
    if let Some(code) = &authorization.authorization_code {
        pairs.push(("code", code.as_str()));
    }
    if let Some(state) = &authorization.state {
        pairs.push(("state", state.as_str()));
    }
    with_query(&authorization.redirect_uri, &pairs)
}

/// `GET /oauth/authorizations/{id}`: the requested scopes, or the redirect if they were granted before. The
/// first viewer owns it.
pub async fn view(request: &Request, caller: Caller, id: &str) -> AuthResult<HttpResponse> {
    check_origin(request)?;
    let user = &caller.user;
    let db = request.db().await?;
    let (authorization, granted) = db
        .transaction(async |db| {
            let mut found = match load(db, id, "authorization request cannot be processed").await? {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            match found.user_id {
                Some(owner) if owner != user.id => return Err(not_found()),
                Some(_) => return Ok(Ok((found, false))),
                None => found.set_user(db, user.id).await?,
            }
            let consent = oauth_client::find_consent(db, user.id, found.client_id).await?;
            let covered = consent
                .is_some_and(|consent| found.scopes().iter().all(|scope| consent.scopes.iter().any(|s| s == scope)));
            if covered {
                found.approve(db).await.or_internal("Error auto-approving authorization")?;
            }
            Ok(Ok((found, covered)))
        })
        .await??;
    if granted {
        return ok(&json!({ "redirect_url": success(&authorization) }));
    }
    let client = oauth_client::find(&db, authorization.client_id)
        .await
        .or_internal("error finding client")?
        .ok_or_else(not_found)?;
    let mut person = json!({ "id": user.id });
    if !user.email.is_empty() {
        person["email"] = json!(user.email);
    }
    ok(&json!({
        "authorization_id": authorization.authorization_id,
        "redirect_uri": authorization.redirect_uri,
        "client": describe(&client),
        "user": person,
        "scope": authorization.scope,
    }))
}

/// A client as users see it.
pub fn describe(client: &OAuthClient) -> Value {
    let mut body = json!({ "id": client.id });
    let texts = [("name", &client.client_name), ("uri", &client.client_uri), ("logo_uri", &client.logo_uri)];
    for (name, value) in texts {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            body[name] = json!(value);
        }
    }
    body
}

/// `POST /oauth/authorizations/{id}/consent` `{"action": "approve" | "deny"}`: returns the redirect for the decision.
pub async fn consent(request: &Request, caller: Caller, id: &str) -> AuthResult<HttpResponse> {
    check_origin(request)?;
    let bad = || AuthError::bad_request(Code::BadJson, "invalid JSON body");
    let action = request.params().and_then(|params| params.text("action")).map_err(|error| match error.code() {
        Some(Code::BadJson) => bad(),
        _ => error,
    })?;
    if !matches!(action.as_str(), "approve" | "deny") {
        return Err(AuthError::invalid("action must be 'approve' or 'deny'"));
    }
    let user_id = caller.user.id;
    let db = request.db().await?;
    let target = db
        .transaction(async |db| {
            let mut found = match load(db, id, "authorization request is no longer pending").await? {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            if found.user_id != Some(user_id) {
                return Err(not_found());
            }
            if action == "deny" {
                found.close(db, "denied").await.or_internal("error denying authorization")?;
                let mut pairs = vec![("error", "access_denied"), ("error_description", "User denied the request")];
                if let Some(state) = found.state.as_deref().filter(|state| !state.is_empty()) {
                    pairs.push(("state", state));
                }
                return Ok(Ok(with_query(&found.redirect_uri, &pairs)));
            }
            found.approve(db).await.or_internal("error approving authorization")?;
            oauth_client::grant(db, user_id, found.client_id, &found.scopes().join(" "))
                .await
                .or_internal("error storing consent")?;
            Ok(Ok(success(&found)))
        })
        .await??;
    ok(&json!({ "redirect_url": target }))
}
