//! The refresh grant: both formats of tokens, rotation, grace and reuse detection.
//! Reference: supabase/auth `internal/tokens/service.go` (`RefreshTokenGrant`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use chrono::{DateTime, Utc};
use rand::Rng as _;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_postgres::types::Json as SqlJson;
use uuid::Uuid;

use super::found::{Found, columns};
use super::rotation;
use super::rotations::{Rotation, Rotations};
use crate::auth::credentials::encryption;
use crate::auth::credentials::refresh_format::{CounterToken, new_key};
use crate::auth::credentials::tokens::{self, SessionAnswer};
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::now;
use crate::auth::models::refresh_token::{self, RefreshToken};
use crate::auth::models::session::{self, Invalid, Session};
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, User};

/// How long a request waits for locks that another instance holds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Which kind of session a refresh is for.
#[derive(Clone, Copy, Debug)]
pub enum RefreshOf {
    /// At `/token`: sessions that no OAuth client holds.
    Ordinary,
    /// At `/oauth/token`: sessions of this client.
    Client(Uuid),
}

/// Serialises requests with the same token, in order of arrival. Later requests receive the answer of the first. None holds a
/// connection while it waits.
#[derive(Default)]
pub struct Turns {
    lanes: parking_lot::Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// A place in the queue of one token. The last request to leave removes the queue.
struct Place<'a> {
    turns: &'a Turns,
    token: &'a str,
    lane: Arc<Mutex<()>>,
}

impl Turns {
    fn queue<'a>(&'a self, token: &'a str) -> Place<'a> {
        let lane = Arc::clone(self.lanes.lock().entry(token.to_owned()).or_default());
        Place { turns: self, token, lane }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lanes = self.turns.lanes.lock();
        // The map holds one reference and we hold the other.
        if Arc::strong_count(&self.lane) <= 2 {
            lanes.remove(self.token);
        }
    }
}

/// A refresh token as the client sent it.
enum Presented {
    Stored(String),
    Counter(CounterToken),
}

/// The outcome of an attempt in a transaction.
enum Outcome {
    Done(Box<SessionAnswer>),
    /// Another request has locked the rows: try again.
    Locked,
    /// Refused. What the transaction wrote is kept.
    Refused(AuthError),
}

/// Handles the body of the grant.
pub async fn grant(request: &Request) -> AuthResult<HttpResponse> {
    let token = request.params()?.text("refresh_token")?;
    refresh(request, &token, RefreshOf::Ordinary).await?.respond()
}

/// Renews a session by its refresh token.
///
/// Errors, 400 unless stated: `validation_failed` for an invalid token, `refresh_token_not_found`,
/// `user_banned`, `session_not_found`, `session_expired`, `refresh_token_already_used`; 409 `conflict`.
pub async fn refresh(request: &Request, token: &str, of: RefreshOf) -> AuthResult<SessionAnswer> {
    let presented = parse(token).ok_or_else(|| AuthError::invalid("Refresh token is not valid"))?;
    let place = request.auth.refreshes.queue(token);
    let _turn = place.lane.lock().await;
    if let Some(answer) = rotate_at_once(request, &presented, of).await? {
        return Ok(answer);
    }
    let started = Instant::now();
    while started.elapsed() < LOCK_WAIT {
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

/// What a valid token is answered with, and what has to be written.
struct Issued {
    token: String,
    /// The stored token that the new one replaces; `None` if no token changes.
    replaces: Option<RefreshToken>,
}

impl Issued {
    fn again(token: String) -> Self {
        Self { token, replaces: None }
    }
}

/// The common case: rotates the token in one statement together with other requests, if nothing speaks against it.
///
/// `None` in all other cases. [`attempt`] then decides under locks.
async fn rotate_at_once(request: &Request, presented: &Presented, of: RefreshOf) -> AuthResult<Option<SessionAnswer>> {
    let config = &request.auth.config;
    // Not possible if other sessions, a time limit or a hook inside the refresh's transaction decide, or if the session moves
    // to the second token format.
    if config.sessions.judges_refreshes()
        || config.hooks.custom_access_token.is_some()
        || config.security.refresh_token_version == 2
    {
        return Ok(None);
    }
    let Presented::Stored(token) = presented else { return Ok(None) };
    let rotation = Rotation {
        token: token.clone(),
        successor: refresh_token::generate(),
        client: match of {
            RefreshOf::Ordinary => None,
            RefreshOf::Client(id) => Some(id),
        },
        agent: agent(request).map(str::to_owned),
        address: request.client_ip(),
    };
    let new = rotation.successor.clone();
    let Some(Found { user, session, .. }) = Rotations::rotate(&request.auth, rotation).await else {
        return Ok(None);
    };
    let access = tokens::access_token(request, None, &user, &session, "token_refresh").await?;
    for action in [Action::TokenRefreshed, Action::TokenRevoked] {
        Entry::of(&user, action).log();
    }
    add_ids(request, &user, &session);
    add_rotation(request, &new);
    Ok(Some(SessionAnswer::new(access, new, user)))
}

fn add_ids(request: &Request, user: &User, session: &Session) {
    request.add_header("sb-auth-user-id", user.id.to_string());
    request.add_header("sb-auth-session-id", session.id.to_string());
}

fn add_rotation(request: &Request, new: &str) {
    request.add_header("sb-auth-refresh-token-reuse", "false");
    request.add_header("sb-auth-refresh-token-prefix", &new[..5]);
}

/// Whether this user may refresh this session at this endpoint.
fn check(
    request: &Request,
    user: &User,
    session: &Session,
    token_time: Option<DateTime<Utc>>,
    of: RefreshOf,
) -> AuthResult<()> {
    if user.deleted_at.is_some() {
        return Err(refused(Code::RefreshTokenNotFound, "Refresh Token Not Found"));
    }
    if user.is_banned() {
        return Err(refused(Code::UserBanned, "User Banned"));
    }
    session.check(&request.auth.config.sessions, Utc::now(), token_time, user.has_mfa()).map_err(|invalid| {
        let reason = match invalid {
            Invalid::PastNotAfter | Invalid::PastTimebox => "Session Expired",
            Invalid::TimedOut => "Session Expired (Inactivity)",
            Invalid::LowAal => "Session Expired (Low AAL: User Needs MFA Verification)",
        };
        refused(Code::SessionExpired, reason)
    })?;
    check_client(session, of)
}

/// The request's `User-Agent`, if it has one.
fn agent(request: &Request) -> Option<&str> {
    request.header("user-agent").filter(|agent| !agent.is_empty())
}

/// Audit entries as rows to insert; empty if they go to the log only.
struct AuditRows {
    ids: Vec<Uuid>,
    payloads: Vec<SqlJson<Value>>,
    times: Vec<DateTime<Utc>>,
}

impl AuditRows {
    fn of(entries: &[Entry<'_>], log_only: bool, now: DateTime<Utc>) -> Self {
        let payloads: Vec<SqlJson<Value>> =
            entries.iter().filter_map(|entry| entry.stored(log_only)).map(SqlJson).collect();
        let ids = payloads.iter().map(|_| Uuid::new_v4()).collect();
        // Ascending times keep the order for readers that sort by time.
        let times = (0..).map(|step| now + chrono::Duration::microseconds(step)).take(payloads.len()).collect();
        Self { ids, payloads, times }
    }
}

/// Takes two round trips in the normal case: one locks and reads, one writes and commits.
async fn attempt(request: &Request, db: &Db, presented: &Presented, of: RefreshOf) -> AuthResult<Outcome> {
    let config = &request.auth.config;
    let found = match presented {
        Presented::Stored(token) => match find_all(db, token).await? {
            Some(found) => Some(found),
            None => find_stored(db, token).await?,
        },
        Presented::Counter(token) => find_counter(request, db, token).await?,
    };
    let Some(Found { user, mut session, stored }) = found else { return Ok(Outcome::Locked) };
    add_ids(request, &user, &session);
    let token_time = stored.as_ref().map(|token| token.updated_at);
    check(request, &user, &session, token_time, of)?;
    if config.sessions.single_per_user {
        check_only_session(request, db, &user, &session, token_time).await?;
    }
    let issued = match (presented, stored) {
        (Presented::Counter(token), _) => by_counter(request, db, token, &mut session).await?,
        (Presented::Stored(_), Some(token)) => by_stored(request, db, token, &user, &mut session).await?,
        (Presented::Stored(_), None) => Err(refused(Code::RefreshTokenNotFound, "Refresh Token Not Found")),
    };
    let issued = match issued {
        Ok(issued) => issued,
        Err(error) => return Ok(Outcome::Refused(error)),
    };
    let access = tokens::access_token(request, Some(db), &user, &session, "token_refresh").await?;
    write(request, db, &user, &session, &issued).await?;
    Ok(Outcome::Done(Box::new(SessionAnswer::new(access, issued.token, user))))
}

/// Writes the rotation, the audit entries and the session's refresh time and origin, and commits.
async fn write(request: &Request, db: &Db, user: &User, session: &Session, issued: &Issued) -> AuthResult<()> {
    let now = now();
    let mut entries = Vec::with_capacity(2);
    entries.push(Entry::of(user, Action::TokenRefreshed));
    if issued.replaces.is_some() {
        entries.push(Entry::of(user, Action::TokenRevoked));
    }
    entries.iter().for_each(Entry::log);
    let rows = AuditRows::of(&entries, request.auth.config.audit_log_only, now);
    let old = issued.replaces.as_ref();
    static SQL: LazyLock<String> = LazyLock::new(|| rotation::within(include_str!("refresh.sql"), "$1::timestamptz"));
    db.execute_and_commit(
        &SQL,
        &[
            &now,
            &rows.ids,
            &rows.payloads,
            &rows.times,
            &old.map(|old| old.id),
            &old.map(|_| issued.token.as_str()),
            &session.id,
            &agent(request),
            &request.client_ip(),
        ],
    )
    .await?;
    Ok(())
}

/// Finds and locks a stored token, its session and its user in one statement. `None` if one of them is missing or locked;
/// [`find_stored`] tells which. Locking reads the newest version of each row, so a token revoked meanwhile is seen as revoked.
async fn find_all(db: &Db, token: &str) -> AuthResult<Option<Found>> {
    let sql = format!(
        "select {columns} from auth.refresh_tokens t \
         join auth.sessions s on s.id = t.session_id join auth.users u on u.id = s.user_id \
         where t.token = $1 and u.id::text = t.user_id and {of_instance} for update of t, s skip locked",
        columns = columns(),
        of_instance = user::OF_INSTANCE,
    );
    Ok(db.query_opt(&sql, &[&token]).await?.as_ref().map(Found::from_row).transpose()?)
}

/// Finds and locks a stored token, its session and its user. `None` if another transaction holds the locks.
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

/// Finds and locks the session named by a counter token, if the session's key signed the token.
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

/// OAuth sessions can only be refreshed by their client, ordinary sessions only without one.
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

/// Where a user may have only one session (per tag), only the most recently refreshed one is valid.
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

/// Rotates a stored token. A revoked token is accepted only if it is the parent of the active token (the client never received
/// the answer), or within the reuse interval. Otherwise its whole family is revoked.
async fn by_stored(
    request: &Request,
    db: &Db,
    token: RefreshToken,
    user: &User,
    session: &mut Session,
) -> AuthResult<Result<Issued, AuthError>> {
    let config = &request.auth.config;
    let security = &config.security;
    if token.revoked {
        let active = refresh_token::active_of(db, session.id).await?;
        if let Some(active) = active.as_ref().filter(|active| active.parent == token.token) {
            request.add_header("sb-auth-refresh-token-prefix", &active.token[..active.token.len().min(5)]);
            return Ok(Ok(Issued::again(active.token.clone())));
        }
        let interval = chrono::Duration::from_std(security.refresh_token_reuse_interval).unwrap_or_default();
        // A family without an active token was revoked on purpose, and the reuse interval does not revive it. Upstream
        // accepts its last token once more.
        let forgotten = active.is_none() && session.refresh_token_counter.is_none();
        if forgotten || Utc::now() > token.updated_at + interval {
            if security.refresh_token_rotation {
                refresh_token::revoke_session(db, session.id).await?;
            }
            return Ok(Err(reuse()));
        }
    }
    if upgrades(security.refresh_token_version, security.refresh_token_upgrade_percentage, session.id) {
        Entry::of(user, Action::TokenRevoked).record(db, config.audit_log_only).await?;
        refresh_token::revoke(db, token.id).await?;
        let upgraded = upgrade(request, db, session).await?;
        add_rotation(request, &upgraded);
        return Ok(Ok(Issued::again(upgraded)));
    }
    let new = refresh_token::generate();
    add_rotation(request, &new);
    Ok(Ok(Issued { token: new, replaces: Some(token) }))
}

/// Whether a session moves to the second token format.
fn upgrades(version: u8, percentage: u8, session_id: Uuid) -> bool {
    let place = u64::from_be_bytes(session_id.as_bytes()[8..].try_into().unwrap_or_default()) % 100;
    version == 2 && place < u64::from(percentage)
}

/// Gives a session a key and a counter, which replace stored tokens.
async fn upgrade(request: &Request, db: &Db, session: &mut Session) -> AuthResult<String> {
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
    request.add_header("sb-auth-refresh-token-counter", counter.to_string());
    tokens::counter_token(request, session, counter)
}

/// Advances a session's counter. A token one behind (the client never received the answer) or within the reuse interval gets the
/// current token again. A token further behind ends the session.
async fn by_counter(
    request: &Request,
    db: &Db,
    token: &CounterToken,
    session: &mut Session,
) -> AuthResult<Result<Issued, AuthError>> {
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
    Ok(Ok(Issued::again(tokens::counter_token(request, session, counter)?)))
}
