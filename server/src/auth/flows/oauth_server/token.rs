//! `POST /oauth/token`: codes and refresh tokens of clients. Reference: RFC 6749 §3.2, OAuth 2.1.

use actix_web::HttpResponse;
use chrono::Utc;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::clients::is_secret_of;
use super::userinfo::profile_claims;
use crate::auth::credentials::lenient_base64;
use crate::auth::credentials::pkce::{Challenge, ChallengeMethod};
use crate::auth::credentials::tokens::{self, SessionAnswer};
use crate::auth::door::params::Params;
use crate::auth::door::query::Pairs;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::flows::token::{RefreshOf, refresh};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::oauth_client::{self, Authorization, OAuthClient};
use crate::auth::models::user::{self, User};

/// The fields of the body: JSON or a form.
enum Fields {
    Json(Params),
    Form(Vec<(String, String)>),
}

impl Fields {
    fn read(request: &Request) -> AuthResult<Option<Self>> {
        if request.header("content-type").unwrap_or("").contains("application/json") {
            return match request.params() {
                Ok(params) => Ok(Some(Self::Json(params))),
                Err(error) if error.code() == Some(Code::BadJson) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let mut pairs = Pairs::parse(request.body()?).pairs;
        pairs.extend(request.query_pairs().iter().cloned());
        Ok(Some(Self::Form(pairs)))
    }

    /// A text, empty when absent; `None` for a JSON value of another type.
    fn text(&self, name: &str) -> Option<String> {
        match self {
            Self::Json(params) => params.text(name).ok(),
            Self::Form(pairs) => {
                Some(pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default())
            }
        }
    }
}

fn bad_client(why: &str) -> AuthError {
    let text = if why.is_empty() { String::new() } else { format!(": {why}") };
    AuthError::bad_request(Code::InvalidCredentials, format!("Invalid client credentials{text}"))
}

/// Authenticates the client by its registered method.
async fn authenticate(request: &Request, fields: Option<&Fields>) -> AuthResult<OAuthClient> {
    let header = request.header("authorization").unwrap_or("");
    let (id, secret, method) = if let Some(encoded) = header.strip_prefix("Basic ") {
        let decoded = lenient_base64::standard(encoded).ok_or_else(|| bad_client("invalid basic auth encoding"))?;
        let decoded = String::from_utf8_lossy(&decoded).into_owned();
        let (id, secret) = decoded.split_once(':').ok_or_else(|| bad_client("invalid basic auth format"))?;
        (id.to_owned(), secret.to_owned(), "client_secret_basic")
    } else {
        let fields = fields.ok_or_else(|| bad_client("failed to parse JSON body"))?;
        let unreadable = || bad_client("failed to parse JSON body");
        let id = fields.text("client_id").ok_or_else(unreadable)?;
        let secret = fields.text("client_secret").ok_or_else(unreadable)?;
        if id.is_empty() {
            return Err(bad_client("client_id is required"));
        }
        let method = if secret.is_empty() { "none" } else { "client_secret_post" };
        (id, secret, method)
    };
    if id.is_empty() {
        return Err(AuthError::oauth("invalid_client", "Client authentication required"));
    }
    let invalid = |message: String| AuthError::bad_request(Code::InvalidCredentials, message);
    let id = Uuid::parse_str(&id).map_err(|_| invalid("Invalid client_id format".to_owned()))?;
    let db = request.db().await?;
    let client = oauth_client::find(&db, id)
        .await
        .or_internal("Error validating client credentials")?
        .ok_or_else(|| bad_client(""))?;
    let registered = &client.token_endpoint_auth_method;
    if method != registered {
        return Err(invalid(format!(
            "invalid authentication method: client is registered for '{registered}' but '{method}' was used"
        )));
    }
    match (client.is_confidential(), secret.is_empty()) {
        (false, true) => {}
        (false, false) => return Err(invalid("public clients must not provide client_secret".to_owned())),
        (true, true) => return Err(invalid("confidential clients must provide client_secret".to_owned())),
        (true, false) if is_secret_of(&client, &secret) => {}
        (true, false) => return Err(invalid("invalid client credentials".to_owned())),
    }
    Ok(client)
}

/// Exchanges a code or refreshes a session of the client.
///
/// Errors: 400 `invalid_credentials` for the client, OAuth's shape for the grant; those of refreshing.
pub async fn token(request: &Request) -> AuthResult<HttpResponse> {
    let fields = Fields::read(request)?;
    let client = authenticate(request, fields.as_ref()).await?;
    let unreadable = || AuthError::oauth("invalid_request", "Invalid JSON body");
    let fields = fields.ok_or_else(unreadable)?;
    let text = |name: &str| fields.text(name).ok_or_else(unreadable);
    let grant = text("grant_type")?;
    if grant.is_empty() {
        return Err(AuthError::oauth("invalid_request", "grant_type is required"));
    }
    if !client.grant_types.contains(&grant) {
        let message = format!("Client is not allowed to use grant type: {grant}");
        return Err(AuthError::oauth("unsupported_grant_type", message));
    }
    if grant == "authorization_code" {
        let code = text("code")?;
        // Only JSON bodies can contain the resource: upstream does not read it from forms.
        let resource = if matches!(fields, Fields::Json(_)) { text("resource")? } else { String::new() };
        return exchange(request, &client, &code, &text("redirect_uri")?, &text("code_verifier")?, &resource).await;
    }
    let refresh_token = text("refresh_token")?;
    if refresh_token.is_empty() {
        let message = "refresh_token is required for refresh_token grant";
        return Err(AuthError::oauth("invalid_request", message));
    }
    let answer = refresh(request, &refresh_token, RefreshOf::Client(client.id)).await?;
    ok(&wire(&answer))
}

fn wire(answer: &SessionAnswer) -> Value {
    json!({
        "access_token": answer.access_token,
        "token_type": answer.token_type,
        "expires_in": answer.expires_in,
        "refresh_token": answer.refresh_token,
    })
}

fn invalid_grant(why: impl Into<String>) -> AuthError {
    AuthError::oauth("invalid_grant", why)
}

fn check_verifier(authorization: &Authorization, verifier: &str) -> AuthResult<()> {
    let Some(challenge) = authorization.code_challenge.clone().filter(|challenge| !challenge.is_empty()) else {
        return Ok(());
    };
    let failed = |why: &str| invalid_grant(format!("PKCE verification failed: {why}"));
    if verifier.is_empty() {
        return Err(failed("code_verifier is required when PKCE challenge is present"));
    }
    let method = authorization.code_challenge_method.as_deref().and_then(ChallengeMethod::parse);
    let method = method.ok_or_else(|| failed("code challenge method not supported"))?;
    if (Challenge { method, code: challenge }).is_met_by(verifier) {
        return Ok(());
    }
    Err(failed("code challenge does not match previously saved code verifier"))
}

async fn exchange(
    request: &Request,
    client: &OAuthClient,
    code: &str,
    redirect_uri: &str,
    verifier: &str,
    resource: &str,
) -> AuthResult<HttpResponse> {
    if code.is_empty() {
        return Err(AuthError::oauth("invalid_request", "code is required for authorization_code grant"));
    }
    let db = request.db().await?;
    let exchanged = db
        .transaction(async |db| {
            // As everywhere, the user is locked before other rows.
            if let Some(owner) = oauth_client::owner_of_code(db, code).await.or_internal("Error finding user")? {
                user::lock(db, owner).await.or_internal("Error finding user")?;
            }
            // Locked, so that only the first of several exchanges of one code finds it.
            let found = oauth_client::find_by_code(db, code).await.or_internal("Error finding authorization code")?;
            let Some(authorization) = found else {
                // Presented again after use: somebody else has the code too.
                oauth_client::end_spent(db, code, client.id).await?;
                return Ok(None);
            };
            if authorization.is_expired() {
                return Err(invalid_grant("Authorization code has expired"));
            }
            if authorization.client_id != client.id {
                return Err(invalid_grant("Authorization code was not issued for this client"));
            }
            if !resource.is_empty() && resource != authorization.resource.as_deref().unwrap_or("") {
                return Err(invalid_grant("Authorization code resource does not match the resource parameter"));
            }
            if !redirect_uri.is_empty() && redirect_uri != authorization.redirect_uri {
                return Err(invalid_grant("Invalid redirect_uri"));
            }
            check_verifier(&authorization, verifier)?;
            let user_id =
                authorization.user_id.ok_or_else(|| invalid_grant("Authorization code has no associated user"))?;
            let user = user::find_by_id(db, user_id)
                .await
                .or_internal("Error finding user")?
                .ok_or_else(|| invalid_grant("User not found for authorization code"))?;
            if user.is_banned() {
                return Err(AuthError::oauth("access_denied", "User is banned"));
            }
            // Upstream does not look, and a code that was not exchanged yet brings a revoked grant back.
            if oauth_client::find_consent(db, user_id, client.id).await.or_internal("Error finding consent")?.is_none()
            {
                return Err(invalid_grant("The user has revoked the grant"));
            }
            let mut grant = request.grant();
            grant.oauth_client_id = Some(client.id);
            grant.scopes = Some(authorization.scope.clone());
            Entry::of(&user, Action::Login)
                .with(json!({ "provider_type": "oauth_provider_authorization_code", "client_id": client.id }))
                .record(db, request.auth.config.audit_log_only)
                .await?;
            let answer = tokens::issue(request, db, user, "oauth_provider/authorization_code", &grant).await?;
            authorization.delete(db).await?;
            if let Some(session) = answer.session_id {
                oauth_client::note_spent(db, code, client.id, session).await?;
            }
            Ok(Some((answer, authorization)))
        })
        .await
        .or_internal("Error exchanging authorization code")?;
    let (answer, authorization) = exchanged.ok_or_else(|| invalid_grant("Invalid authorization code"))?;
    let mut body = wire(&answer);
    if authorization.scopes().contains(&"openid") {
        let is_verified = answer.user.has_proved_email(&db).await?;
        body["id_token"] = json!(id_token(request, client, &authorization, &answer.user, is_verified)?);
    }
    ok(&body)
}

/// An ID token for the client. Needs an asymmetric key.
///
/// `is_verified`: whether the user's address is.
fn id_token(
    request: &Request,
    client: &OAuthClient,
    authorization: &Authorization,
    user: &User,
    is_verified: bool,
) -> AuthResult<String> {
    let failed = |why: String| AuthError::internal("Error generating ID token").caused_by(Fault::new(why));
    if !request.auth.keys.is_asymmetric() {
        return Err(failed("HS256 is not supported for ID token signing".to_owned()));
    }
    let now = Utc::now().timestamp();
    let mut claims = Map::new();
    let mut add = |name: &str, value: Value| {
        claims.insert(name.to_owned(), value);
    };
    let issuer = &request.auth.config.jwt.issuer;
    if !issuer.is_empty() {
        add("iss", json!(issuer));
    }
    add("sub", json!(user.id));
    add("aud", json!(client.id));
    add("exp", json!(now + 3600));
    add("iat", json!(now));
    add("auth_time", json!(user.last_sign_in_at.map_or(now, |at| at.timestamp())));
    add("client_id", json!(client.id));
    if let Some(nonce) = authorization.nonce.as_deref().filter(|nonce| !nonce.is_empty()) {
        add("nonce", json!(nonce));
    }
    let has = |scope: &str| authorization.scopes().contains(&scope);
    if has("email") {
        if !user.email.is_empty() {
            add("email", json!(user.email));
        }
        add("email_verified", json!(is_verified));
    }
    if has("phone") {
        if !user.phone.is_empty() {
            add("phone_number", json!(user.phone));
        }
        if user.is_phone_confirmed() {
            add("phone_number_verified", json!(true));
        }
    }
    if has("profile") {
        claims.extend(profile_claims(user));
    }
    request.auth.keys.sign(&claims).map_err(|error| failed(error.to_string()))
}
