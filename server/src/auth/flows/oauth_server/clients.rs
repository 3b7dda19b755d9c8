//! Clients: registered by administrators, or by themselves (RFC 7591) where that is allowed.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;
use uuid::Uuid;

use crate::auth::door::limits::Bucket;
use crate::auth::door::params::Params;
use crate::auth::door::redirect::is_executable;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _, json_response};
use crate::auth::models::now;
use crate::auth::models::oauth_client::{self, OAuthClient};

const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];

/// A client as the wire shows it; `secret` only when it was just made.
fn wire(client: &OAuthClient, secret: Option<&str>) -> Value {
    let mut body = json!({
        "client_id": client.id,
        "client_type": client.client_type,
        "redirect_uris": client.redirect_uris,
        "token_endpoint_auth_method": client.token_endpoint_auth_method,
        "grant_types": client.grant_types,
        "response_types": ["code"],
        "registration_type": client.registration_type,
        "created_at": client.created_at,
        "updated_at": client.updated_at,
    });
    let texts = [
        ("client_secret", secret),
        ("client_name", client.client_name.as_deref()),
        ("client_uri", client.client_uri.as_deref()),
        ("logo_uri", client.logo_uri.as_deref()),
    ];
    for (name, value) in texts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            body[name] = json!(value);
        }
    }
    body
}

fn new_secret() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn hash(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret))
}

/// Whether `secret` is the client's; compared in constant time.
pub fn is_secret_of(client: &OAuthClient, secret: &str) -> bool {
    client.client_secret_hash.as_deref().is_some_and(|stored| hash(secret).as_bytes().ct_eq(stored.as_bytes()).into())
}

/// Why a redirect URI cannot be registered.
fn redirect_fault(uri: &str) -> Option<String> {
    if uri.is_empty() {
        return Some("redirect URI cannot be empty".to_owned());
    }
    let Some((scheme, rest)) = uri.split_once(':') else { return Some("must have scheme and host".to_owned()) };
    let named = !scheme.is_empty()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let authority = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
    if !named && !scheme.contains('/') {
        return Some("invalid URL format".to_owned());
    }
    if !named || authority.is_empty() {
        return Some("must have scheme and host".to_owned());
    }
    let parsed = Url::parse(uri).ok();
    if parsed.is_none() {
        return Some("invalid URL format".to_owned());
    }
    let scheme = scheme.to_ascii_lowercase();
    if is_executable(&scheme) {
        return Some(format!("scheme '{scheme}' is not allowed for security reasons"));
    }
    // The host on the consent page must be where the code goes.
    if authority.contains('@') {
        return Some("user information not allowed in redirect URI".to_owned());
    }
    if uri.contains('*') {
        return Some("wildcards not allowed in redirect URI".to_owned());
    }
    // They are stored as one text, in which a comma would start a second, unchecked URI.
    if uri.contains(',') {
        return Some("commas not allowed in redirect URI".to_owned());
    }
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or("");
    if scheme == "http" && !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
        return Some("HTTP scheme only allowed for localhost".to_owned());
    }
    uri.split_once('#')
        .is_some_and(|(_, fragment)| !fragment.is_empty())
        .then(|| "fragment not allowed in redirect URI".to_owned())
}

fn check_redirects(uris: &[String], required: bool) -> Result<(), String> {
    if uris.is_empty() {
        return Err(if required { "redirect_uris is required" } else { "redirect_uris cannot be empty" }.to_owned());
    }
    if uris.len() > 10 {
        return Err("redirect_uris cannot exceed 10 items".to_owned());
    }
    match uris.iter().find_map(|uri| redirect_fault(uri).map(|fault| (uri, fault))) {
        Some((uri, fault)) => Err(format!("invalid redirect_uri '{uri}': {fault}")),
        None => Ok(()),
    }
}

fn check_grants(grants: &[String]) -> Result<(), String> {
    if grants.is_empty() {
        return Err("grant_types cannot be empty".to_owned());
    }
    if grants.iter().any(|grant| !matches!(grant.as_str(), "authorization_code" | "refresh_token")) {
        return Err("grant_types must only contain 'authorization_code' and/or 'refresh_token'".to_owned());
    }
    Ok(())
}

fn check_texts(name: Option<&str>, uri: Option<&str>, logo: Option<&str>) -> Result<(), String> {
    if name.is_some_and(|name| name.len() > 1024) {
        return Err("client_name cannot exceed 1024 characters".to_owned());
    }
    for (field, value) in [("client_uri", uri), ("logo_uri", logo)] {
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        if value.len() > 2048 {
            return Err(format!("{field} cannot exceed 2048 characters"));
        }
        if !value.starts_with('/') && Url::parse(value).is_err() {
            return Err(format!("{field} must be a valid URL"));
        }
    }
    Ok(())
}

fn type_of(method: &str) -> &'static str {
    if method == "none" { "public" } else { "confidential" }
}

/// Reads and checks a registration; the error's text is for the caller.
fn registration(params: &Params, registration_type: &str) -> AuthResult<Result<OAuthClient, String>> {
    let redirect_uris = params.texts("redirect_uris")?.unwrap_or_default();
    let grant_types = params.texts("grant_types")?.unwrap_or_default();
    let (name, uri, logo) = (params.text("client_name")?, params.text("client_uri")?, params.text("logo_uri")?);
    let (kind, method) = (params.text("client_type")?, params.text("token_endpoint_auth_method")?);
    let checked = (|| {
        check_redirects(&redirect_uris, true)?;
        if !grant_types.is_empty() {
            check_grants(&grant_types)?;
        }
        check_texts(Some(&name), Some(&uri), Some(&logo))?;
        if !matches!(kind.as_str(), "" | "public" | "confidential") {
            return Err("client_type must be 'public' or 'confidential'".to_owned());
        }
        if !method.is_empty() && !METHODS.contains(&method.as_str()) {
            return Err(format!("token_endpoint_auth_method must be one of: [{}]", METHODS.join(" ")));
        }
        if !kind.is_empty() && !method.is_empty() && kind != type_of(&method) {
            return Err(format!(
                "client_type '{kind}' is inconsistent with token_endpoint_auth_method '{method}' (expected client_type '{}')",
                type_of(&method)
            ));
        }
        Ok(())
    })();
    if let Err(why) = checked {
        return Ok(Err(why));
    }
    let client_type = match (kind.is_empty(), method.is_empty()) {
        (false, _) => kind,
        (true, false) => type_of(&method).to_owned(),
        (true, true) => "confidential".to_owned(),
    };
    let default_method = if client_type == "public" { "none" } else { "client_secret_basic" };
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    let now = now();
    Ok(Ok(OAuthClient {
        id: Uuid::new_v4(),
        client_secret_hash: None,
        registration_type: registration_type.to_owned(),
        token_endpoint_auth_method: filled(method).unwrap_or_else(|| default_method.to_owned()),
        client_type,
        redirect_uris,
        grant_types: if grant_types.is_empty() {
            vec!["authorization_code".to_owned(), "refresh_token".to_owned()]
        } else {
            grant_types
        },
        client_name: filled(name),
        client_uri: filled(uri),
        logo_uri: filled(logo),
        created_at: now,
        updated_at: now,
    }))
}

fn body(request: &Request) -> AuthResult<Params> {
    request.params().map_err(|error| match error.code() {
        Some(Code::BadJson) => AuthError::bad_request(Code::BadJson, "Invalid JSON body"),
        _ => error,
    })
}

async fn add(request: &Request, registration_type: &str) -> AuthResult<HttpResponse> {
    let mistyped = |error: AuthError| match error.code() {
        Some(Code::BadJson) => AuthError::bad_request(Code::BadJson, "Invalid JSON body"),
        _ => error,
    };
    let mut client = registration(&body(request)?, registration_type)
        .map_err(mistyped)?
        .map_err(|why| AuthError::invalid(format!("400: {why}")))?;
    let secret = client.is_confidential().then(new_secret);
    client.client_secret_hash = secret.as_deref().map(hash);
    let db = request.db().await?;
    client.insert(&db).await.or_internal("failed to create OAuth client")?;
    Ok(json_response(StatusCode::CREATED, &wire(&client, secret.as_deref())))
}

/// `POST /admin/oauth/clients`: 201, with the secret of a confidential client.
pub async fn create(request: &Request) -> AuthResult<HttpResponse> {
    add(request, "manual").await
}

/// `POST /oauth/clients/register`: the same by the client itself.
///
/// Errors: 403 `oauth_dynamic_client_registration_disabled`, 429.
pub async fn register(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::OauthClientRegister, request)?;
    if !request.auth.config.oauth_server.allow_dynamic_registration {
        let message = "Dynamic client registration is not enabled";
        return Err(AuthError::forbidden(Code::OauthDynamicClientRegistrationDisabled, message));
    }
    add(request, "dynamic").await
}

/// `GET /admin/oauth/clients`; without clients the key is missing.
pub async fn list(request: &Request) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    let clients = oauth_client::all(&db).await.or_internal("Error listing OAuth clients")?;
    if clients.is_empty() {
        return ok(&json!({}));
    }
    ok(&json!({ "clients": clients.iter().map(|client| wire(client, None)).collect::<Vec<_>>() }))
}

/// The client that a path names.
///
/// Errors: 400 `validation_failed` for an invalid UUID, 404 `oauth_client_not_found`.
pub async fn load(request: &Request, id: &str) -> AuthResult<OAuthClient> {
    if id.is_empty() {
        return Err(AuthError::invalid("client_id is required"));
    }
    let id = Uuid::parse_str(id).map_err(|_| AuthError::invalid("invalid client_id format"))?;
    let db = request.db().await?;
    oauth_client::find(&db, id)
        .await
        .or_internal("Error loading OAuth client")?
        .ok_or_else(|| AuthError::not_found(Code::OauthClientNotFound, "OAuth client not found"))
}

pub fn show(client: &OAuthClient) -> AuthResult<HttpResponse> {
    ok(&wire(client, None))
}

/// `PUT /admin/oauth/clients/{id}`: changes what the body names.
pub async fn update(request: &Request, mut client: OAuthClient) -> AuthResult<HttpResponse> {
    let params = body(request)?;
    let (uris, grants) = (params.texts("redirect_uris")?, params.texts("grant_types")?);
    let (name, uri) = (params.optional_text("client_name")?, params.optional_text("client_uri")?);
    let (logo, method) = (params.optional_text("logo_uri")?, params.optional_text("token_endpoint_auth_method")?);
    if uris.is_none() && grants.is_none() && name.is_none() && uri.is_none() && logo.is_none() && method.is_none() {
        return Err(AuthError::invalid("No fields provided for update"));
    }
    let checked = (|| {
        uris.as_deref().map_or(Ok(()), |uris| check_redirects(uris, false))?;
        grants.as_deref().map_or(Ok(()), check_grants)?;
        check_texts(name.as_deref(), uri.as_deref(), logo.as_deref())?;
        match &method {
            Some(method) if !METHODS.contains(&method.as_str()) => {
                Err(format!("invalid token_endpoint_auth_method: must be one of [{}]", METHODS.join(" ")))
            }
            Some(method) if type_of(method) != client.client_type => {
                let valid = if client.is_confidential() { "client_secret_basic client_secret_post" } else { "none" };
                Err(format!(
                    "token_endpoint_auth_method '{method}' is not valid for client_type '{}'; valid methods: [{valid}]",
                    client.client_type
                ))
            }
            _ => Ok(()),
        }
    })();
    checked.map_err(AuthError::invalid)?;
    if let Some(uris) = uris {
        client.redirect_uris = uris;
    }
    if let Some(grants) = grants {
        client.grant_types = grants;
    }
    if let Some(method) = method {
        client.token_endpoint_auth_method = method;
    }
    let fields = [(name, &mut client.client_name), (uri, &mut client.client_uri), (logo, &mut client.logo_uri)];
    for (value, field) in fields {
        if let Some(value) = value {
            *field = Some(value).filter(|value| !value.is_empty());
        }
    }
    let db = request.db().await?;
    client.update(&db).await.or_internal("Error updating OAuth client")?;
    show(&client)
}

/// `DELETE /admin/oauth/clients/{id}`: 204; the row stays, marked as deleted.
pub async fn delete(request: &Request, client: &OAuthClient) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    client.delete(&db).await.or_internal("Error deleting OAuth client")?;
    Ok(HttpResponse::NoContent().finish())
}

/// `POST /admin/oauth/clients/{id}/regenerate_secret`: the old secret ends at once.
pub async fn regenerate_secret(request: &Request, mut client: OAuthClient) -> AuthResult<HttpResponse> {
    if !client.is_confidential() {
        return Err(AuthError::invalid("Cannot regenerate secret for public client"));
    }
    let secret = new_secret();
    client.client_secret_hash = Some(hash(&secret));
    let db = request.db().await?;
    client.update(&db).await.or_internal("Error regenerating OAuth client secret")?;
    ok(&wire(&client, Some(&secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_uris_have_scheme_and_host_and_no_fragment() {
        for good in ["https://a.example/cb?x=1", "http://localhost:3000/cb", "http://[::1]/", "myapp://callback"] {
            assert_eq!(redirect_fault(good), None, "{good}");
        }
        for bad in [
            "",
            "/cb",
            "com.app:/cb",
            "http://a.example/",
            "https://a.example/#f",
            "javascript://x/%0aalert(1)",
            "data://x",
            "https://good.example@evil.example/cb",
            "https://*.example/cb",
            "https://a.example/cb,javascript://x/%0aalert(1)",
        ] {
            assert!(redirect_fault(bad).is_some(), "{bad}");
        }
    }
}
