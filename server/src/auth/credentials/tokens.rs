//! Access tokens and the sessions they belong to. Reference: supabase/auth `internal/tokens/service.go`.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use chrono::{DateTime, Utc};
use futures_util::future::LocalBoxFuture;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::auth::credentials::refresh_format::{CounterToken, new_key};
use crate::auth::credentials::{encryption, lenient_base64};
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::refresh_token;
use crate::auth::models::session::{Grant, Session};
use crate::auth::models::store::Db;
use crate::auth::models::user::{Current, User};
use crate::auth::outside::hooks::{self, Hook};
use crate::http::context;

/// The answer to a sign-in.
#[derive(Debug, Serialize)]
pub struct SessionAnswer {
    pub access_token: String,
    /// `bearer`.
    pub token_type: &'static str,
    /// Seconds.
    pub expires_in: i64,
    /// Unix seconds.
    pub expires_at: i64,
    pub refresh_token: String,
    pub user: User,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider_token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider_refresh_token: String,
    /// Always present for the password grant: null, or why the password is now considered weak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weak_password: Option<Value>,
    /// The session, if this opened one.
    #[serde(skip)]
    pub session_id: Option<Uuid>,
}

impl SessionAnswer {
    pub fn new(access: AccessToken, refresh_token: String, user: User) -> Self {
        Self {
            access_token: access.text,
            token_type: "bearer",
            expires_in: access.expires_in,
            expires_at: access.expires_at,
            refresh_token,
            user,
            provider_token: String::new(),
            provider_refresh_token: String::new(),
            weak_password: None,
            session_id: None,
        }
    }

    pub fn respond(&self) -> AuthResult<HttpResponse> {
        ok(self)
    }

    /// `target` with the session in its fragment, as the implicit flow hands it over; `extra` pairs join it.
    pub fn as_redirect(&self, target: &str, extra: &[(&str, &str)]) -> String {
        let (expires_in, expires_at) = (self.expires_in.to_string(), self.expires_at.to_string());
        let mut pairs = vec![
            ("access_token", self.access_token.as_str()),
            ("expires_at", &expires_at),
            ("expires_in", &expires_in),
            ("refresh_token", &self.refresh_token),
            ("sb", ""),
            ("token_type", self.token_type),
        ];
        pairs.extend(extra.iter().copied().filter(|(_, value)| !value.is_empty()));
        pairs.sort_unstable();
        let base = target.split('#').next().unwrap_or(target);
        format!("{base}#{}", url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
    }
}

/// A signed access token.
pub struct AccessToken {
    pub text: String,
    /// Seconds from the time of signing, however long the answer takes.
    pub expires_in: i64,
    /// Unix seconds.
    pub expires_at: i64,
}

/// Opens a session for `user`, notes how (`method` is the `amr` entry), and makes its first tokens.
pub fn issue<'a>(
    request: &'a Request,
    db: &'a Db,
    user: User,
    method: &'a str,
    grant: &'a Grant,
) -> LocalBoxFuture<'a, AuthResult<SessionAnswer>> {
    Box::pin(issue_now(request, db, user, method, grant))
}

async fn issue_now(
    request: &Request,
    db: &Db,
    mut user: User,
    method: &str,
    grant: &Grant,
) -> AuthResult<SessionAnswer> {
    let config = &request.auth.config;
    request.add_header("sb-auth-user-id", user.id.to_string());
    // Before inserting the session: its foreign key takes a shared lock on the user's row, and two sign-ins that both
    // try to upgrade it would deadlock.
    let current = user.note_sign_in(db).await.or_internal("Database error updating user's last_sign_in_at")?;
    refuse_changed(&user, method, current)?;
    // A hook may be called with it and must then see the same session again.
    let mut session = request.once(&format!("session of {}", user.id), || Session::new(user.id, grant));
    let refresh_token = if config.security.refresh_token_version == 2 {
        let key = new_key();
        session.refresh_token_hmac_key =
            Some(encryption::seal(&config.security.encryption, &session.id.to_string(), &key)?);
        session.refresh_token_counter = Some(0);
        session.insert(db).await.or_internal("Database error creating new session")?;
        request.add_header("sb-auth-refresh-token-counter", "0");
        counter_token(request, &session, 0)?
    } else {
        session.insert(db).await.or_internal("Database error granting user")?;
        let token = refresh_token::generate();
        refresh_token::insert(db, user.id, session.id, &token, None)
            .await
            .or_internal("Database error granting user")?;
        request.add_header("sb-auth-refresh-token-prefix", &token[..5]);
        token
    };
    request.add_header("sb-auth-session-id", session.id.to_string());
    session.add_method(db, method).await?;
    let access = access_token(request, Some(db), &user, &session, method).await?;
    let mut answer = SessionAnswer::new(access, refresh_token, user);
    answer.session_id = Some(session.id);
    Ok(answer)
}

/// Refuses a user whose account was closed or whose password was changed after it was read, for example while the
/// password was hashed. Its row is locked from here on: whoever changes it now finds the new session and ends it.
fn refuse_changed(user: &User, method: &str, current: Option<Current>) -> AuthResult<()> {
    let by_password = method == "password";
    let refused = || AuthError::bad_request(Code::InvalidCredentials, "Invalid login credentials");
    let current = current.ok_or_else(|| {
        if by_password { refused() } else { AuthError::not_found(Code::UserNotFound, "User not found") }
    })?;
    if by_password && current.encrypted_password != user.encrypted_password {
        return Err(refused());
    }
    if user.is_banned() {
        let status = if by_password { StatusCode::BAD_REQUEST } else { StatusCode::FORBIDDEN };
        return Err(AuthError::new(status, Code::UserBanned, "User is banned"));
    }
    Ok(())
}

/// The text of a session's token of the second format.
pub fn counter_token(request: &Request, session: &Session, counter: i64) -> AuthResult<String> {
    let key = session_key(request, session)?
        .ok_or_else(|| AuthError::internal("Failed to get session's refresh token key"))?;
    CounterToken::encode(session.id, counter, &key)
        .ok_or_else(|| AuthError::internal("Failed to get session's refresh token key"))
}

/// The key that signs a session's tokens of the second format; `None` for sessions that have none.
pub fn session_key(request: &Request, session: &Session) -> AuthResult<Option<Vec<u8>>> {
    let Some(stored) = &session.refresh_token_hmac_key else { return Ok(None) };
    let config = &request.auth.config.security.encryption;
    let text = encryption::open(config, &session.id.to_string(), stored)?;
    let key = lenient_base64::url_safe_no_pad(&text);
    key.map(Some).ok_or_else(|| Fault::new("the key of a session is not base64url").into())
}

/// Signs the access token of a session. `method` is what the custom claims hook is told; a function runs on `db`, or on
/// a connection of its own.
pub async fn access_token(
    request: &Request,
    db: Option<&Db>,
    user: &User,
    session: &Session,
    method: &str,
) -> AuthResult<AccessToken> {
    context::is_for(&user.id.to_string());
    let auth = &request.auth;
    let issued_at = request.once("issued at", Utc::now);
    let mut expires_at = issued_at + chrono::Duration::seconds(auth.config.jwt.exp.into());
    let (aal, amr) = session.aal_and_amr(user);
    if let Some(limit) = auth.config.sessions.allow_low_aal
        && user.has_mfa()
        && aal == "aal1"
        && let Ok(limit) = chrono::Duration::from_std(limit)
    {
        expires_at = expires_at.min(session.created_at + limit);
    }
    let claims = claims(&auth.config.jwt.issuer, user, session, aal, amr, issued_at, expires_at);
    let claims = custom_claims(request, db, user.id, claims, method).await?;
    let text = auth
        .keys
        .sign(&claims)
        .map_err(|error| AuthError::internal("error generating jwt token").caused_by(Fault::new(error.to_string())))?;
    let expires_at = expires_at.timestamp();
    Ok(AccessToken { text, expires_in: expires_at - issued_at.timestamp(), expires_at })
}

fn claims(
    issuer: &str,
    user: &User,
    session: &Session,
    aal: &str,
    amr: Value,
    issued_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
) -> Map<String, Value> {
    let mut claims = Map::new();
    let mut set = |name: &str, value: Value| {
        claims.insert(name.to_owned(), value);
    };
    if !issuer.is_empty() {
        set("iss", json!(issuer));
    }
    set("sub", json!(user.id));
    set("aud", json!(user.aud));
    set("exp", json!(expires_at.timestamp()));
    set("iat", json!(issued_at.timestamp()));
    set("email", json!(user.email_for_tokens()));
    set("phone", json!(user.phone));
    set("app_metadata", json!(user.app_metadata));
    set("user_metadata", json!(user.user_metadata));
    set("role", json!(user.role));
    set("aal", json!(aal));
    if amr.as_array().is_some_and(|entries| !entries.is_empty()) {
        set("amr", amr);
    }
    set("session_id", json!(session.id));
    set("is_anonymous", json!(user.is_anonymous));
    if let Some(client) = session.oauth_client_id {
        set("client_id", json!(client));
    }
    if let Some(scopes) = session.scopes.as_deref().filter(|scopes| !scopes.is_empty()) {
        set("scope", json!(scopes));
    }
    claims
}

async fn custom_claims(
    request: &Request,
    db: Option<&Db>,
    user_id: Uuid,
    claims: Map<String, Value>,
    method: &str,
) -> AuthResult<Map<String, Value>> {
    if request.auth.config.hooks.custom_access_token.is_none() {
        return Ok(claims);
    }
    let input = json!({ "user_id": user_id, "claims": claims, "authentication_method": method });
    let mut output = hooks::run(request, db, Hook::CustomAccessToken, input).await?;
    match output.get_mut("claims").map(Value::take) {
        None => Err(told("output claims field is missing".to_owned())),
        Some(Value::Object(claims)) => check_claims(&claims).map(|()| claims),
        Some(_) => Err(AuthError::internal("Error unmarshaling JSON output.")),
    }
}

/// A hook's error, which has no code.
fn told(message: String) -> AuthError {
    AuthError::Hook { status: actix_web::http::StatusCode::INTERNAL_SERVER_ERROR, message }
}

/// What the hook returns must still be an access token.
fn check_claims(claims: &Map<String, Value>) -> AuthResult<()> {
    const REQUIRED: [&str; 10] =
        ["aud", "exp", "iat", "sub", "email", "phone", "role", "aal", "session_id", "is_anonymous"];
    let mut faults: Vec<String> = REQUIRED
        .iter()
        .filter(|name| !claims.contains_key(**name))
        .map(|name| format!("- (root): {name} is required\n"))
        .collect();
    for (name, value) in claims {
        let (fits, wanted) = match name.as_str() {
            "aud" => (value.is_string() || value.is_array(), "string/array"),
            "exp" | "iat" | "nbf" => (value.as_f64().is_some_and(|n| n.fract() == 0.0), "integer"),
            "jti" | "iss" | "sub" | "email" | "phone" | "role" | "aal" | "session_id" | "client_id" => {
                (value.is_string(), "string")
            }
            "app_metadata" | "user_metadata" => (value.is_object(), "object"),
            "amr" => {
                (value.as_array().is_some_and(|items| items.iter().all(|i| i.is_string() || i.is_object())), "array")
            }
            _ => (true, ""),
        };
        if !fits {
            faults.push(format!("- {name}: Invalid type. Expected: {wanted}\n"));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(told(format!("output claims do not conform to the expected schema: \n{}", faults.concat())))
}
