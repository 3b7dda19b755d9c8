//! The caller: bearer tokens, the users and sessions they name, and administrators. Reference:
//! supabase/auth `internal/api/auth.go`, `internal/api/middleware.go`.

use chrono::Utc;
use uuid::Uuid;

use crate::auth::door::claims::Claims;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::session::Session;
use crate::auth::models::user::{self, User};
use crate::http::span;

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

    /// Whether the caller is a client of the OAuth server. The session decides, and the claim only if there is no
    /// session, because a hook may write or drop the claim.
    pub fn is_client(&self) -> bool {
        match &self.session {
            Some(session) => session.oauth_client_id.is_some(),
            None => !self.claims.client_id.is_empty(),
        }
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
    let claims = Claims::read(verified);
    if let Some(claims) = &claims {
        span::acts_as(claims.role.as_str().into());
    }
    claims.ok_or_else(|| refused("token is malformed: could not read the claims".to_owned()))
}

/// The signed-in user of the request. Refuses tokens of deleted users and ended sessions, banned users, and tokens that
/// a third party got from the OAuth server: those act within their scopes and never on the account. Upstream lets them
/// change the password.
pub async fn require_user(request: &Request) -> AuthResult<Caller> {
    let caller = require_user_or_client(request).await?;
    if caller.is_client() {
        return Err(AuthError::forbidden(Code::NoAuthorization, CLIENT));
    }
    Ok(caller)
}

/// Like [`require_user`], but also accepts clients of the OAuth server.
pub async fn require_user_or_client(request: &Request) -> AuthResult<Caller> {
    let claims = claims(request)?;
    let caller = load(request, claims).await?;
    refuse_banned(&caller.user)?;
    Ok(caller)
}

const CLIENT: &str = "OAuth clients are not allowed to perform these actions";

/// Like [`require_user`], for reading only: checks only that the session exists, which saves the database a
/// quarter of the work.
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

pub fn no_session() -> AuthError {
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

/// The calling administrator. A token with a session is valid only as long as the session.
pub async fn require_admin(request: &Request) -> AuthResult<Admin> {
    let claims = claims(request)?;
    let config = &request.auth.config;
    let caller = if claims.session()?.is_some() { Some(load(request, claims.clone()).await?) } else { None };
    if caller.as_ref().is_some_and(Caller::is_client) {
        return Err(AuthError::forbidden(Code::NotAdmin, "User not allowed"));
    }
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

/// Refuses anonymous users.
pub fn refuse_anonymous(caller: &Caller) -> AuthResult<()> {
    if caller.claims.is_anonymous {
        return Err(AuthError::forbidden(Code::NoAuthorization, "Anonymous user not allowed to perform these actions"));
    }
    Ok(())
}
