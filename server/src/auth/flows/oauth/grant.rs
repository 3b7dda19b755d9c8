//! The `id_token` grant: a token that an application got from a provider's own library.

use actix_web::HttpResponse;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::account::{self, Begun};
use super::oidc::{self, unverified_claims};
use super::{azure, id_token, session};
use crate::auth::door::bearer;
use crate::auth::door::params::Params;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Fault};
use crate::auth::flows::custom_providers;
use crate::auth::models::store::Db;
use crate::config::ExternalConfig;

/// The expected issuer and audience of a token.
struct Expected {
    /// The provider of the identity.
    provider: String,
    issuer: String,
    discovery_url: Option<String>,
    client_ids: Vec<String>,
    skip_nonce_check: bool,
    email_optional: bool,
    custom: bool,
}

fn invalid_request(description: impl Into<String>) -> AuthError {
    AuthError::oauth("invalid request", description)
}

/// A session for the person of the ID token, or the identity linked to the caller.
///
/// Errors: OAuth's shape `invalid request` and `invalid nonce`; 400 `provider_disabled`, `validation_failed`; those
/// of [`account::sign_in`].
pub async fn grant(request: &Request) -> AuthResult<HttpResponse> {
    let params = request.params()?;
    let token = params.text("id_token")?;
    let (access_token, nonce) = (params.text("access_token")?, params.text("nonce")?);
    let links = params.flag("link_identity", false)?;
    let (provider, issuer, client_id) = (params.text("provider")?, params.text("issuer")?, params.text("client_id")?);
    if token.is_empty() {
        return Err(invalid_request("id_token required"));
    }
    if provider.is_empty() && (client_id.is_empty() || issuer.is_empty()) {
        return Err(invalid_request("provider or client_id and issuer required"));
    }
    let target = if links {
        if request.header("authorization").unwrap_or("").is_empty() {
            return Err(invalid_request("Linking requires a valid user access token in Authorization"));
        }
        Some(bearer::require_user(request).await?)
    } else {
        None
    };
    let db = request.db().await?;
    let expected = expect(request, &db, &params, &token).await?;
    let away = request.away();
    let http = if expected.custom { away.custom_providers() } else { away.providers() };
    let unreachable = |fault: Fault| {
        AuthError::internal("Unexpected failure, please check server logs for more information").caused_by(fault)
    };
    let found = request.auth.discovery.issuer(http, &expected.issuer, expected.discovery_url.as_deref()).await;
    let bad = || invalid_request("Bad ID token");
    let token = found.map_err(unreachable)?.verify(http, &token).await.map_err(|fault| {
        tracing::debug!(request_id = request.id, %fault, "auth: an ID token was refused");
        bad()
    })?;
    let mut profile = id_token::profile(&token).ok_or_else(bad)?;
    if !access_token.is_empty() && !token.goes_with(&access_token) {
        return Err(bad());
    }
    profile.choose_email();
    if token.text("sub").is_empty() {
        return Err(invalid_request("Missing sub claim in id_token"));
    }
    let audience = token.audience();
    if !expected.client_ids.iter().any(|id| !id.is_empty() && audience.contains(&id.as_str())) {
        return Err(invalid_request(format!("Unacceptable audience in id_token: [{}]", audience.join(" "))));
    }
    // With several audiences, `azp` names the token's application. Google puts the mobile application there, beside the
    // requested audience.
    let party = token.text("azp");
    let foreign = !party.is_empty() && !expected.client_ids.iter().any(|id| id == party);
    if foreign && !(expected.issuer == oidc::GOOGLE && audience.len() == 1) {
        return Err(invalid_request(format!("Unacceptable authorized party in id_token: {party}")));
    }
    if !expected.skip_nonce_check {
        check_nonce(token.text("nonce"), &nonce)?;
    }
    if target.is_none() {
        account::ask_before(request, &db, &profile, &expected.provider).await?;
    }
    session::answer(request, &db, "oauth", async |db| match &target {
        Some(caller) => {
            let begun = Begun::Token(caller.session_id());
            account::link(request, db, caller.user.clone(), begun, &profile, &expected.provider).await
        }
        None => account::sign_in(request, db, &profile, &expected.provider, expected.email_optional).await,
    })
    .await
}

/// Checks that the token contains the hash of the application's nonce, or that neither has one.
fn check_nonce(in_token: &str, passed: &str) -> AuthResult<()> {
    match (in_token.is_empty(), passed.is_empty()) {
        (true, true) => Ok(()),
        (false, false) => {
            let hash = hex::encode(Sha256::digest(passed));
            if hash.as_bytes().ct_eq(in_token.as_bytes()).into() {
                return Ok(());
            }
            Err(AuthError::oauth("invalid nonce", "Nonces mismatch"))
        }
        _ => Err(invalid_request("Passed nonce and nonce in id_token should either both exist or not.")),
    }
}

/// The issuer inside a token, for providers that have several.
fn detected(token: &str, provider: &str, passed: &str, is_right: fn(&str) -> bool) -> AuthResult<String> {
    let claims = unverified_claims(token)
        .ok_or_else(|| AuthError::invalid(format!("Unable to detect issuer in ID token for {provider} provider")))?;
    let issuer = claims.get("iss").and_then(serde_json::Value::as_str).unwrap_or("");
    if !is_right(issuer) {
        let article = if provider == "Apple" || provider == "Azure" { "an" } else { "a" };
        return Err(AuthError::invalid(format!(
            "Detected ID token issuer is not {article} {provider} ID token issuer"
        )));
    }
    if !passed.is_empty() && passed != issuer {
        return Err(AuthError::invalid("Provided issuer does not match ID token issuer"));
    }
    Ok(issuer.to_owned())
}

async fn expect(request: &Request, db: &Db, params: &Params, token: &str) -> AuthResult<Expected> {
    let config = &request.auth.config;
    let (provider, passed) = (params.text("provider")?, params.text("issuer")?);
    if provider.starts_with("custom:") {
        return expect_custom(request, db, &provider).await;
    }
    let keycloak = config.external.providers.get("keycloak");
    let keycloak_url = keycloak.map_or("", |keycloak| keycloak.url.as_str());
    let is_keycloak =
        keycloak.is_some_and(|keycloak| keycloak.enabled) && !keycloak_url.is_empty() && passed == keycloak_url;
    let (name, issuer) = match provider.as_str() {
        _ if provider == "apple" || oidc::is_apple(&passed) => {
            ("apple", detected(token, "Apple", &passed, oidc::is_apple)?)
        }
        _ if provider == "google" || passed == oidc::GOOGLE => ("google", oidc::GOOGLE.to_owned()),
        _ if provider == "azure" || oidc::is_azure(&passed) => {
            let is_azure: fn(&str) -> bool = |issuer| {
                issuer.starts_with("https://login.microsoftonline.com/")
                    || issuer.starts_with("https://sts.windows.net/")
            };
            ("azure", detected(token, "Azure", &passed, is_azure)?)
        }
        _ if provider == "facebook" || passed == oidc::FACEBOOK => ("facebook", oidc::FACEBOOK.to_owned()),
        _ if provider == "keycloak" || is_keycloak => ("keycloak", keycloak_url.to_owned()),
        _ if provider == "kakao" || passed == oidc::KAKAO => ("kakao", oidc::KAKAO.to_owned()),
        _ if provider == "vercel_marketplace" || passed == oidc::VERCEL_MARKETPLACE => {
            ("vercel_marketplace", oidc::VERCEL_MARKETPLACE.to_owned())
        }
        _ if provider == "snapchat" || passed == oidc::SNAPCHAT => ("snapchat", oidc::SNAPCHAT.to_owned()),
        _ => return expect_listed(request, db, params, &provider, passed).await,
    };
    let settings = config.external.providers.get(name).filter(|settings| settings.enabled).ok_or_else(|| {
        AuthError::bad_request(Code::ProviderDisabled, format!("Provider (issuer {issuer:?}) is not enabled"))
    })?;
    // Upstream checks this only in the browser flow.
    if name == "azure"
        && let Some(tenant) = azure::tenant_of_endpoints(&settings.url)
        && azure::tenant_of_issuer(&issuer) != Some(tenant)
    {
        return Err(AuthError::invalid("Detected ID token issuer is not the configured Azure tenant"));
    }
    let mut client_ids = settings.client_id.clone();
    if name == "apple" {
        client_ids.push(config.external.ios_bundle_id.clone());
    }
    Ok(Expected {
        provider: name.to_owned(),
        issuer,
        discovery_url: None,
        client_ids,
        // Facebook's tokens contain the nonce unhashed.
        skip_nonce_check: settings.skip_nonce_check || name == "facebook",
        email_optional: settings.email_optional,
        custom: false,
    })
}

/// For an issuer of the allow-list. The caller names its application; it has to be one of those that the settings know.
async fn expect_listed(
    request: &Request,
    db: &Db,
    params: &Params,
    provider: &str,
    issuer: String,
) -> AuthResult<Expected> {
    let config = &request.auth.config;
    let listed = config.external.allowed_id_token_issuers.get(&issuer).filter(|_| !issuer.is_empty());
    let listed = listed.ok_or_else(|| AuthError::invalid(format!("Custom OIDC provider {provider:?} not allowed")))?;
    let mut known = listed.clone();
    if issuer == oidc::LINKEDIN
        && let Some(settings) = config.external.providers.get("linkedin_oidc").filter(|settings| settings.enabled)
    {
        known.extend(settings.client_id.clone());
    }
    if config.custom_oauth_enabled {
        for custom in custom_providers::of_issuer(db, &issuer).await? {
            known.push(custom.client_id);
            known.extend(custom.acceptable_client_ids);
        }
    }
    let client_id = params.text("client_id")?;
    let client_ids = if known.is_empty() {
        static WARNED: std::sync::Once = std::sync::Once::new();
        WARNED.call_once(|| warn_of_any_application(&issuer));
        vec![client_id]
    } else {
        known.into_iter().filter(|known| *known == client_id).collect()
    };
    Ok(Expected {
        provider: issuer.clone(),
        issuer,
        discovery_url: None,
        client_ids,
        skip_nonce_check: false,
        email_optional: false,
        custom: false,
    })
}

fn warn_of_any_application(issuer: &str) {
    tracing::warn!(
        issuer,
        "GOTRUE_EXTERNAL_ALLOWED_ID_TOKEN_ISSUERS accepts ID tokens of every application of this issuer, and each of them \
         can sign in as its users: write issuer=client_id"
    );
}

/// Warns at the start of issuers of the allow-list for which no application is named.
pub fn warn_of_open_issuers(config: &ExternalConfig) {
    let of_provider = |issuer: &str| {
        oidc::is_apple(issuer)
            || oidc::is_azure(issuer)
            || [oidc::GOOGLE, oidc::FACEBOOK, oidc::KAKAO, oidc::VERCEL_MARKETPLACE, oidc::SNAPCHAT].contains(&issuer)
            || config.providers.get("keycloak").is_some_and(|keycloak| keycloak.enabled && keycloak.url == issuer)
    };
    for (issuer, client_ids) in &config.allowed_id_token_issuers {
        if client_ids.is_empty() && !of_provider(issuer) {
            warn_of_any_application(issuer);
        }
    }
}

async fn expect_custom(request: &Request, db: &Db, name: &str) -> AuthResult<Expected> {
    if !request.auth.config.custom_oauth_enabled {
        return Err(AuthError::invalid("Custom OAuth providers are disabled"));
    }
    let custom = custom_providers::find(db, name)
        .await?
        .ok_or_else(|| AuthError::invalid(format!("Custom provider {name:?} not found")))?;
    if !custom.enabled {
        return Err(AuthError::bad_request(Code::ProviderDisabled, format!("Custom provider {name:?} is disabled")));
    }
    if !custom.is_oidc() {
        return Err(AuthError::invalid(format!("Provider {name:?} is not an OIDC provider")));
    }
    let issuer =
        custom.issuer.clone().ok_or_else(|| AuthError::invalid(format!("OIDC provider {name:?} missing issuer")))?;
    let mut client_ids = vec![custom.client_id.clone()];
    client_ids.extend(custom.acceptable_client_ids.clone());
    Ok(Expected {
        provider: name.to_owned(),
        issuer,
        discovery_url: custom.discovery_url.clone(),
        client_ids,
        skip_nonce_check: custom.skip_nonce_check,
        email_optional: custom.email_optional,
        custom: true,
    })
}
