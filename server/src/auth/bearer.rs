//! Who asks: bearer tokens, the users and sessions they name, and administrators.
//! Reference: supabase/auth `internal/api/auth.go`, `internal/api/middleware.go`.

use chrono::Utc;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::error::{AuthError, AuthResult, Code};
use super::models::session::Session;
use super::models::user::{self, User};
use super::request::Request;

/// The claims of an access token that this API reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Claims {
    pub sub: String,
    pub aud: Audience,
    pub role: String,
    pub session_id: String,
    pub is_anonymous: bool,
    pub client_id: String,
    pub scope: String,
}

/// One audience or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Default for Audience {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Claims {
    /// `None` if a claim of an access token has a type it must not have, read here or not.
    fn read(mut claims: Map<String, Value>) -> Option<Self> {
        claims.retain(|_, value| !value.is_null());
        let fits = claims.iter().all(|(name, value)| match name.as_str() {
            "email" | "phone" | "aal" => value.is_string(),
            "app_metadata" | "user_metadata" => value.is_object(),
            "amr" => value.is_array(),
            _ => true,
        });
        if !fits {
            return None;
        }
        serde_json::from_value(Value::Object(claims)).ok()
    }

    /// The first audience, `""` if there is none.
    pub fn first_audience(&self) -> &str {
        match &self.aud {
            Audience::One(aud) => aud,
            Audience::Many(many) => many.first().map_or("", String::as_str),
        }
    }

    /// The session the token belongs to; the zero uuid is none.
    fn session(&self) -> AuthResult<Option<Uuid>> {
        if self.session_id.is_empty() {
            return Ok(None);
        }
        let id = Uuid::parse_str(&self.session_id)
            .map_err(|_| AuthError::forbidden(Code::BadJwt, "invalid claim: session_id claim must be a UUID"))?;
        Ok((!id.is_nil()).then_some(id))
    }
}

/// A signed-in user, as a route for users sees its caller.
pub struct Caller {
    pub claims: Claims,
    pub user: User,
    pub session: Option<Session>,
}

impl Caller {
    /// Whether the session reached the second level.
    pub fn is_aal2(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_aal2)
    }

    pub fn session_id(&self) -> Option<Uuid> {
        self.session.as_ref().map(|session| session.id)
    }
}

/// An administrator: a token of one of the admin roles.
pub struct Admin {
    pub claims: Claims,
}

impl Admin {
    pub fn role(&self) -> &str {
        &self.claims.role
    }
}

fn bearer(request: &Request) -> AuthResult<&str> {
    request
        .header("authorization")
        .and_then(|header| header.split_once(' '))
        .filter(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(char::is_whitespace)
        })
        .map(|(_, token)| token)
        .ok_or_else(|| AuthError::unauthorized(Code::NoAuthorization, "This endpoint requires a valid Bearer token"))
}

/// The claims of the request's bearer token, its signature and times checked.
pub fn claims(request: &Request) -> AuthResult<Claims> {
    let refused = |reason: String| {
        AuthError::forbidden(Code::BadJwt, format!("invalid JWT: unable to parse or verify signature, {reason}"))
    };
    let token = bearer(request)?;
    let verified = request.auth.keys.verify(token).map_err(|error| refused(error.to_string()))?;
    Claims::read(verified).ok_or_else(|| refused("token is malformed: could not read the claims".to_owned()))
}

/// The signed-in user of the request; refuses tokens of users and sessions that are gone, and banned users.
pub async fn require_user(request: &Request) -> AuthResult<Caller> {
    let claims = claims(request)?;
    let caller = load(request, claims).await?;
    refuse_banned(&caller.user)?;
    Ok(caller)
}

/// Like [`require_user`] for who only looks: of the session nothing is read but that it is there, which spares the
/// database a quarter of the work.
pub async fn require_reader(request: &Request) -> AuthResult<(Claims, User)> {
    let claims = claims(request)?;
    let (user_id, session_id) = (subject(&claims)?, claims.session());
    let wanted = session_id.as_ref().ok().copied().flatten();
    let db = request.db().await?;
    let (user, is_present) = user::find_with_presence(&db, user_id, wanted).await?.ok_or_else(nobody)?;
    if session_id?.is_some() && !is_present {
        return Err(no_session());
    }
    refuse_banned(&user)?;
    Ok((claims, user))
}

fn refuse_banned(user: &User) -> AuthResult<()> {
    if user.is_banned() {
        return Err(AuthError::forbidden(Code::UserBanned, "User is banned"));
    }
    Ok(())
}

fn subject(claims: &Claims) -> AuthResult<Uuid> {
    if claims.sub.is_empty() {
        return Err(AuthError::forbidden(Code::BadJwt, "invalid claim: missing sub claim"));
    }
    Uuid::parse_str(&claims.sub)
        .map_err(|_| AuthError::bad_request(Code::BadJwt, "invalid claim: sub claim must be a UUID"))
}

fn nobody() -> AuthError {
    AuthError::forbidden(Code::UserNotFound, "User from sub claim in JWT does not exist")
}

fn no_session() -> AuthError {
    AuthError::forbidden(Code::SessionNotFound, "Session from session_id claim in JWT does not exist")
}

async fn load(request: &Request, claims: Claims) -> AuthResult<Caller> {
    let (user_id, session_id) = (subject(&claims)?, claims.session());
    let db = request.db().await?;
    let wanted = session_id.as_ref().ok().copied().flatten();
    let found = match wanted {
        Some(session) => user::find_with_session(&db, user_id, session).await?,
        None => user::find_by_id(&db, user_id).await?.map(|user| (user, None)),
    };
    let (user, session) = found.ok_or_else(nobody)?;
    if session_id?.is_some() && session.is_none() {
        return Err(no_session());
    }
    Ok(Caller { claims, user, session })
}

/// The administrator who asks. A token with a session is good only while that session is.
pub async fn require_admin(request: &Request) -> AuthResult<Admin> {
    let claims = claims(request)?;
    let config = &request.auth.config;
    let caller = if claims.session()?.is_some() { Some(load(request, claims.clone()).await?) } else { None };
    if let Some(Caller { user, session: Some(session), .. }) = caller
        && session.check(&config.sessions, Utc::now(), None, user.has_mfa()).is_err()
    {
        return Err(AuthError::forbidden(Code::SessionExpired, "Session is no longer valid"));
    }
    if !config.jwt.admin_roles.contains(&claims.role) {
        return Err(AuthError::forbidden(Code::NotAdmin, "User not allowed"));
    }
    Ok(Admin { claims })
}

/// Refuses anonymous users where a real account is needed.
pub fn refuse_anonymous(caller: &Caller) -> AuthResult<()> {
    if caller.claims.is_anonymous {
        return Err(AuthError::forbidden(Code::NoAuthorization, "Anonymous user not allowed to perform these actions"));
    }
    Ok(())
}
