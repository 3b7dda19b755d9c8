//! The refresh grant: both formats of tokens, rotation, grace and reuse detection.
//! Reference: supabase/auth `internal/tokens/service.go` (`RefreshTokenGrant`).

use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use chrono::Utc;
use rand::Rng as _;
use uuid::Uuid;

use crate::auth::encryption;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::refresh_token::{self, RefreshToken};
use crate::auth::models::session::{self, Invalid, Session};
use crate::auth::models::user::{self, User};
use crate::auth::refresh_format::{CounterToken, new_key};
use crate::auth::request::Request;
use crate::auth::store::Db;
use crate::auth::tokens::{self, SessionAnswer};

/// How long requests wait for each other's locks on one session.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which kind of session a refresh is for.
#[derive(Clone, Copy, Debug)]
pub enum RefreshOf {
    /// At `/token`: sessions that no OAuth client holds.
    Ordinary,
    /// At `/oauth/token`: sessions of this client.
    Client(Uuid),
}

/// A token as presented.
enum Presented {
    Stored(String),
    Counter(CounterToken),
}

/// What a try in a transaction came to.
enum Outcome {
    Done(Box<SessionAnswer>),
    /// Another request holds the rows: try again.
    Locked,
    /// Refused, and what was written stays.
    Refused(AuthError),
}

/// Handles the body of the grant.
pub async fn grant(request: &Request) -> AuthResult<HttpResponse> {
    let token = request.params()?.text("refresh_token")?;
    refresh(request, &token, RefreshOf::Ordinary).await?.respond()
}

/// Renews a session by its refresh token.
///
/// Errors, all 400 unless said: `validation_failed` for what is no token, `refresh_token_not_found`,
/// `user_banned`, `session_not_found`, `session_expired`, `refresh_token_already_used`; 409 `conflict`.
pub async fn refresh(request: &Request, token: &str, of: RefreshOf) -> AuthResult<SessionAnswer> {
    let presented = parse(token).ok_or_else(|| AuthError::invalid("Refresh token is not valid"))?;
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let db = request.db().await?;
        let outcome = db.transaction(async |db| attempt(request, db, &presented, of).await).await?;
        drop(db);
        match outcome {
            Outcome::Done(answer) => return Ok(*answer),
            Outcome::Refused(error) => return Err(error),
            Outcome::Locked => {
                let pause = rand::rng().random_range(10..30);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    }
    Err(AuthError::new(
        actix_web::http::StatusCode::CONFLICT,
        Code::Conflict,
        "Too many concurrent token refresh requests on the same session or refresh token",
    ))
}

fn parse(token: &str) -> Option<Presented> {
    if token.len() == 12 {
        let plain = token.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        return plain.then(|| Presented::Stored(token.to_owned()));
    }
    CounterToken::parse(token).map(Presented::Counter)
}

fn refused(code: Code, reason: &str) -> AuthError {
    AuthError::bad_request(code, format!("Invalid Refresh Token: {reason}"))
}

/// What a presented token was found to be.
struct Found {
    user: User,
    session: Session,
    stored: Option<RefreshToken>,
}

async fn attempt(request: &Request, db: &Db, presented: &Presented, of: RefreshOf) -> AuthResult<Outcome> {
    let config = &request.auth.config;
    let found = match presented {
        Presented::Stored(token) => match find_stored(db, token).await? {
            Some(found) => found,
            None => return Ok(Outcome::Locked),
        },
        Presented::Counter(token) => match find_counter(request, db, token).await? {
            Some(found) => found,
            None => return Ok(Outcome::Locked),
        },
    };
    let Found { user, mut session, stored } = found;
    request.add_header("sb-auth-user-id", user.id.to_string());
    request.add_header("sb-auth-session-id", session.id.to_string());
    let token_time = stored.as_ref().map(|token| token.updated_at);
    if user.is_banned() {
        return Err(refused(Code::UserBanned, "User Banned"));
    }
    session.check(&config.sessions, Utc::now(), token_time, user.has_mfa()).map_err(|invalid| {
        let reason = match invalid {
            Invalid::PastNotAfter | Invalid::PastTimebox => "Session Expired",
            Invalid::TimedOut => "Session Expired (Inactivity)",
            Invalid::LowAal => "Session Expired (Low AAL: User Needs MFA Verification)",
        };
        refused(Code::SessionExpired, reason)
    })?;
    check_client(&session, of)?;
    if config.sessions.single_per_user {
        check_only_session(request, db, &user, &session, token_time).await?;
    }
    let issued = match (presented, stored) {
        (Presented::Counter(token), _) => by_counter(request, db, token, &mut session).await?,
        (Presented::Stored(_), Some(token)) => by_stored(request, db, &token, &user, &mut session).await?,
        (Presented::Stored(_), None) => Err(refused(Code::RefreshTokenNotFound, "Refresh Token Not Found")),
    };
    let issued = match issued {
        Ok(issued) => issued,
        Err(error) => return Ok(Outcome::Refused(error)),
    };
    let audit = Entry::of(&user, Action::TokenRefreshed).record(db, config.audit_log_only);
    let noted =
        session::record_refresh(db, session.id, request.header("user-agent").unwrap_or(""), request.client_ip());
    futures_util::try_join!(audit, noted)?;
    let access = tokens::access_token(request, db, &user, &session, "token_refresh").await?;
    Ok(Outcome::Done(Box::new(SessionAnswer::new(access, issued, user))))
}

/// Finds and locks a stored token, its session and its user; `None` when somebody else holds the locks.
async fn find_stored(db: &Db, token: &str) -> AuthResult<Option<Found>> {
    let unknown = || refused(Code::RefreshTokenNotFound, "Refresh Token Not Found");
    let sql = format!(
        "select {} from auth.refresh_tokens t where t.token = $1 for update skip locked",
        refresh_token::COLUMNS
    );
    let Some(row) = db.query_opt(&sql, &[&token]).await? else {
        let exists = db.query_opt("select 1 from auth.refresh_tokens where token = $1", &[&token]).await?;
        return if exists.is_some() { Ok(None) } else { Err(unknown()) };
    };
    let stored = RefreshToken::from_row(&row)?;
    let user_id = Uuid::parse_str(&stored.user_id).map_err(|_| unknown())?;
    let session_id = stored.session_id.unwrap_or_default();
    let (user, session) = futures_util::try_join!(user::find_by_id(db, user_id), session::try_lock(db, session_id))?;
    let user = user.ok_or_else(unknown)?;
    let Some(session) = session else {
        return if session::find(db, session_id).await?.is_some() {
            Ok(None)
        } else if user.is_banned() {
            Err(refused(Code::UserBanned, "User Banned"))
        } else {
            Err(refused(Code::SessionNotFound, "No Valid Session Found"))
        };
    };
    Ok(Some(Found { user, session, stored: Some(stored) }))
}

/// Finds and locks the session a counter token names, if its key signed the token.
async fn find_counter(request: &Request, db: &Db, token: &CounterToken) -> AuthResult<Option<Found>> {
    let unknown = || refused(Code::RefreshTokenNotFound, "Refresh Token Not Found");
    let session = session::find(db, token.session_id).await?.ok_or_else(unknown)?;
    let key = tokens::session_key(request, &session)?.ok_or_else(unknown)?;
    if session.refresh_token_counter.is_none() || !token.is_signed_by(&key) {
        return Err(unknown());
    }
    let (user, session) =
        futures_util::try_join!(user::find_by_id(db, session.user_id), session::try_lock(db, session.id))?;
    let user = user.ok_or_else(unknown)?;
    Ok(session.map(|session| Found { user, session, stored: None }))
}

/// OAuth sessions refresh only through their client, ordinary ones only without.
fn check_client(session: &Session, of: RefreshOf) -> AuthResult<()> {
    let refused = |description| Err(AuthError::oauth("invalid_client", description));
    match (session.oauth_client_id, of) {
        (None, RefreshOf::Ordinary) => Ok(()),
        (Some(holder), RefreshOf::Client(client)) if holder == client => Ok(()),
        (Some(_), RefreshOf::Ordinary) => refused("Client authentication required for OAuth session"),
        (Some(_), RefreshOf::Client(_)) => refused("Client does not match the session's OAuth client"),
        (None, RefreshOf::Client(_)) => refused("Client authentication not allowed for non-OAuth session"),
    }
}

/// With one session per user (and tag), only the last refreshed one goes on.
async fn check_only_session(
    request: &Request,
    db: &Db,
    user: &User,
    session: &Session,
    token_time: Option<chrono::DateTime<Utc>>,
) -> AuthResult<()> {
    let config = &request.auth.config.sessions;
    user::lock(db, user.id).await?;
    let own = (session.tag_among(&config.tags), session.last_refreshed_at(token_time));
    for other in session::of_user(db, user.id).await? {
        let competes = other.id != session.id
            && other.check(config, Utc::now(), None, user.has_mfa()).is_ok()
            && other.tag_among(&config.tags) == own.0;
        if competes && other.last_refreshed_at(None) > own.1 {
            return Err(refused(Code::SessionExpired, "Session Expired (Revoked by Newer Login)"));
        }
    }
    Ok(())
}

fn reuse() -> AuthError {
    refused(Code::RefreshTokenAlreadyUsed, "Already Used")
}

/// Rotates a stored token. A revoked one is good only as the parent of the active token (its holder did not get
/// the answer), or within the reuse interval; otherwise its whole family is revoked.
async fn by_stored(
    request: &Request,
    db: &Db,
    token: &RefreshToken,
    user: &User,
    session: &mut Session,
) -> AuthResult<Result<String, AuthError>> {
    let config = &request.auth.config;
    let security = &config.security;
    if token.revoked {
        let active = refresh_token::active_of(db, session.id).await?;
        if let Some(active) = active.as_ref().filter(|active| active.parent == token.token) {
            request.add_header("sb-auth-refresh-token-prefix", &active.token[..active.token.len().min(5)]);
            return Ok(Ok(active.token.clone()));
        }
        let interval = chrono::Duration::from_std(security.refresh_token_reuse_interval).unwrap_or_default();
        // A family without an active token was revoked on purpose: no interval brings it back. Upstream
        // accepts its last token once more.
        let forgotten = active.is_none() && session.refresh_token_counter.is_none();
        if forgotten || Utc::now() > token.updated_at + interval {
            if security.refresh_token_rotation {
                refresh_token::revoke_session(db, session.id).await?;
            }
            return Ok(Err(reuse()));
        }
    }
    let new = refresh_token::generate();
    let audit = Entry::of(user, Action::TokenRevoked).record(db, config.audit_log_only);
    let revoked = refresh_token::revoke(db, token.id);
    let inserted = refresh_token::insert(db, user.id, session.id, &new, Some(&token.token));
    futures_util::try_join!(audit, revoked, inserted)?;
    request.add_header("sb-auth-refresh-token-reuse", "false");
    let issued = if upgrades(security.refresh_token_version, security.refresh_token_upgrade_percentage, session.id) {
        upgrade(request, db, session, &new).await?
    } else {
        new
    };
    request.add_header("sb-auth-refresh-token-prefix", &issued[..5]);
    Ok(Ok(issued))
}

/// Whether a session is among those that move to the second format.
fn upgrades(version: u8, percentage: u8, session_id: Uuid) -> bool {
    let place = u64::from_be_bytes(session_id.as_bytes()[8..].try_into().unwrap_or_default()) % 100;
    version == 2 && place < u64::from(percentage)
}

/// Gives a session its key and counter, and revokes the stored token it no longer needs.
async fn upgrade(request: &Request, db: &Db, session: &mut Session, unneeded: &str) -> AuthResult<String> {
    let counter = match (&session.refresh_token_hmac_key, session.refresh_token_counter) {
        (Some(_), Some(counter)) => counter + 1,
        _ => {
            let encryption = &request.auth.config.security.encryption;
            let key = encryption::seal(encryption, &session.id.to_string(), &new_key())?;
            session.refresh_token_hmac_key = Some(key);
            0
        }
    };
    session.refresh_token_counter = Some(counter);
    db.execute(
        "update auth.sessions set refresh_token_hmac_key = $2, refresh_token_counter = $3 where id = $1",
        &[&session.id, &session.refresh_token_hmac_key, &session.refresh_token_counter],
    )
    .await?;
    db.execute("update auth.refresh_tokens set revoked = true where token = $1", &[&unneeded]).await?;
    request.add_header("sb-auth-refresh-token-counter", counter.to_string());
    tokens::counter_token(request, session, counter)
}

/// Advances a session's counter. One behind (its holder did not get the answer) or within the interval gives
/// the current token again; further behind ends the session.
async fn by_counter(
    request: &Request,
    db: &Db,
    token: &CounterToken,
    session: &mut Session,
) -> AuthResult<Result<String, AuthError>> {
    let security = &request.auth.config.security;
    let current = session.refresh_token_counter.unwrap_or(0);
    let behind = current - token.counter;
    if behind < 0 {
        return Err(AuthError::invalid("Invalid Refresh Token: Not Issued By This Server"));
    }
    let mut counter = current;
    if behind == 0 {
        counter += 1;
        db.execute(
            "update auth.sessions set refresh_token_counter = $2, updated_at = now() where id = $1",
            &[&session.id, &counter],
        )
        .await?;
        session.refresh_token_counter = Some(counter);
        request.add_header("sb-auth-refresh-token-reuse", "false");
    } else {
        let age = Utc::now() - session.last_refreshed_at(None);
        let recent = age.to_std().is_ok_and(|age| age < security.refresh_token_reuse_interval);
        let causes: Vec<&str> = [
            (recent, "concurrent-refresh"),
            (behind == 1, "fail-to-save"),
            (security.refresh_token_allow_reuse, "always-allow"),
        ]
        .into_iter()
        .filter_map(|(holds, cause)| holds.then_some(cause))
        .collect();
        if causes.is_empty() {
            if security.refresh_token_rotation {
                session::delete(db, session.id).await?;
                request.add_header("sb-auth-refresh-token-rotated", "true");
            }
            return Ok(Err(reuse()));
        }
        request.add_header("sb-auth-refresh-token-reuse-cause", causes.join(","));
    }
    request.add_header("sb-auth-refresh-token-counter", counter.to_string());
    Ok(Ok(tokens::counter_token(request, session, counter)?))
}
