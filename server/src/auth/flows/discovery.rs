//! Discovery for clients: health, settings, keys and metadata. Reference: supabase/auth
//! `internal/api/settings.go`, `internal/api/jwks.go`.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use crate::auth::door::request::{Request, ok};
use crate::auth::error::AuthResult;

/// `GET /health`: does not use the database.
pub fn health() -> AuthResult<HttpResponse> {
    ok(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": "GoTrue",
        "description": "GoTrue is a user registration and authentication API",
    }))
}

/// `GET /settings`: the enabled features.
pub fn settings(request: &Request) -> AuthResult<HttpResponse> {
    const LISTED: [&str; 23] = [
        "apple",
        "azure",
        "bitbucket",
        "discord",
        "facebook",
        "snapchat",
        "figma",
        "fly",
        "github",
        "gitlab",
        "google",
        "keycloak",
        "kakao",
        "linkedin",
        "linkedin_oidc",
        "notion",
        "spotify",
        "slack",
        "slack_oidc",
        "workos",
        "twitch",
        "twitter",
        "zoom",
    ];
    let config = &request.auth.config;
    let mut external = json!({
        "anonymous_users": config.external.anonymous_users_enabled,
        "email": config.external.email_enabled,
        "phone": config.external.phone_enabled,
    });
    for name in LISTED {
        external[name] = json!(config.external.providers.get(name).is_some_and(|provider| provider.enabled));
    }
    ok(&json!({
        "external": external,
        "disable_signup": config.disable_signup,
        "mailer_autoconfirm": config.mailer.autoconfirm,
        "phone_autoconfirm": config.sms.autoconfirm,
        "sms_provider": config.sms.provider,
        // Always false, in line with everything below `/sso`.
        "saml_enabled": false,
        // Upstream reports this whether or not there is a next key.
        "saml_private_key_next_configured": true,
        "passkeys_enabled": config.webauthn.passkey_enabled,
    }))
}

fn cached(body: &Value) -> AuthResult<HttpResponse> {
    let mut response = ok(body)?;
    let value = actix_web::http::header::HeaderValue::from_static("public, max-age=600");
    response.headers_mut().insert(actix_web::http::header::CACHE_CONTROL, value);
    Ok(response)
}

/// `GET /.well-known/jwks.json`.
pub fn jwks(request: &Request) -> AuthResult<HttpResponse> {
    cached(&request.auth.keys.public_jwks())
}

/// `GET /.well-known/openid-configuration`, and the same for OAuth.
pub fn openid_configuration(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let issuer = config.jwt.issuer.as_str();
    let base = issuer.trim_end_matches('/');
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"),
        "jwks_uri": format!("{base}/.well-known/jwks.json"),
        "userinfo_endpoint": format!("{base}/oauth/userinfo"),
        "scopes_supported": ["openid", "profile", "email", "phone", "offline_access"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "HS256", "ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "code_challenge_methods_supported": ["S256", "plain"],
        "claims_supported": [
            "sub", "aud", "iss", "exp", "iat", "auth_time", "nonce", "email", "email_verified", "phone_number",
            "phone_number_verified", "name", "picture", "preferred_username", "updated_at",
        ],
    });
    if config.oauth_server.enabled && config.oauth_server.allow_dynamic_registration {
        document["registration_endpoint"] = json!(format!("{base}/oauth/clients/register"));
    }
    cached(&document)
}
