//! Sessions and how they were opened. Reference: supabase/auth `internal/models/sessions.go`, `amr.go`.

use std::net::IpAddr;

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use super::user::User;
use super::{flow_state, now, oauth_client};
use crate::auth::error::Fault;
use crate::auth::models::store::Db;
use crate::config::SessionsConfig;

/// A session with the methods by which it was opened or raised.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: Uuid,
    pub user_id: Uuid,
    pub created_at: DateTime<Utc>,
    pub factor_id: Option<Uuid>,
    /// `aal1`, `aal2` or `aal3`.
    pub aal: String,
    pub not_after: Option<DateTime<Utc>>,
    pub refreshed_at: Option<DateTime<Utc>>,
    pub user_agent: Option<String>,
    pub ip: Option<IpAddr>,
    pub tag: Option<String>,
    pub oauth_client_id: Option<Uuid>,
    pub refresh_token_hmac_key: Option<String>,
    pub refresh_token_counter: Option<i64>,
    pub scopes: Option<String>,
    pub amr: Vec<Method>,
}

/// One way the session's user proved who they are, and when last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    pub authentication_method: String,
    pub updated_at: DateTime<Utc>,
}

impl Method {
    /// Reads one as [`COLUMNS`] writes it: the method, a space, microseconds since 1970.
    fn parse(text: &str) -> Option<Self> {
        let (method, micros) = text.rsplit_once(' ')?;
        let updated_at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
        Some(Self { authentication_method: method.to_owned(), updated_at })
    }

    fn raises_to_aal2(&self) -> bool {
        matches!(self.authentication_method.as_str(), "totp" | "mfa/phone" | "mfa/webauthn" | "mfa/recovery_code")
    }
}

/// Data of a new session from the request and the flow that opens it.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    pub factor_id: Option<Uuid>,
    pub not_after: Option<DateTime<Utc>>,
    pub tag: Option<String>,
    pub oauth_client_id: Option<Uuid>,
    pub scopes: Option<String>,
    pub user_agent: String,
    pub ip: Option<IpAddr>,
}

/// Why a session cannot be refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    PastNotAfter,
    PastTimebox,
    TimedOut,
    LowAal,
}

/// The columns of a session, in the order [`Session::from_row`] reads them. The methods are texts, which cost
/// PostgreSQL less than rows as JSON.
pub const COLUMNS: &str = "s.id, s.user_id, coalesce(s.created_at, now()) as created_at, s.factor_id, \
    coalesce(s.aal::text, 'aal1') as aal, s.not_after, s.refreshed_at, s.user_agent, s.ip, s.tag, s.oauth_client_id, \
    s.refresh_token_hmac_key, s.refresh_token_counter, s.scopes, array(select c.authentication_method || ' ' \
    || (extract(epoch from c.updated_at) * 1000000)::bigint from auth.mfa_amr_claims c where c.session_id = s.id) as amr";

/// How many columns [`COLUMNS`] names.
pub const WIDTH: usize = 15;

impl Session {
    /// Reads [`COLUMNS`] starting at `offset`.
    pub fn from_row(row: &Row, offset: usize) -> Result<Self, Fault> {
        let refreshed: Option<NaiveDateTime> = row.try_get(offset + 6)?;
        let amr: Vec<&str> = row.try_get(offset + 14)?;
        let unreadable = || Fault::new("a method of a session cannot be read");
        Ok(Self {
            id: row.try_get(offset)?,
            user_id: row.try_get(offset + 1)?,
            created_at: row.try_get(offset + 2)?,
            factor_id: row.try_get(offset + 3)?,
            aal: row.try_get(offset + 4)?,
            not_after: row.try_get(offset + 5)?,
            refreshed_at: refreshed.map(|naive| naive.and_utc()),
            user_agent: row.try_get(offset + 7)?,
            ip: row.try_get(offset + 8)?,
            tag: row.try_get(offset + 9)?,
            oauth_client_id: row.try_get(offset + 10)?,
            refresh_token_hmac_key: row.try_get(offset + 11)?,
            refresh_token_counter: row.try_get(offset + 12)?,
            scopes: row.try_get(offset + 13)?,
            amr: amr.into_iter().map(|text| Method::parse(text).ok_or_else(unreadable)).collect::<Result<_, _>>()?,
        })
    }

    /// A new session of `user_id`, not in the database yet.
    pub fn new(user_id: Uuid, grant: &Grant) -> Self {
        Self {
            id: Uuid::new_v4(),
            user_id,
            created_at: now(),
            factor_id: grant.factor_id,
            aal: "aal1".to_owned(),
            not_after: grant.not_after,
            refreshed_at: None,
            user_agent: (!grant.user_agent.is_empty()).then(|| grant.user_agent.clone()),
            ip: grant.ip,
            tag: grant.tag.clone().filter(|tag| !tag.is_empty()),
            oauth_client_id: grant.oauth_client_id,
            refresh_token_hmac_key: None,
            refresh_token_counter: None,
            scopes: grant.scopes.clone().filter(|scopes| !scopes.is_empty()),
            amr: Vec::new(),
        }
    }

    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "insert into auth.sessions (id, user_id, created_at, updated_at, factor_id, aal, not_after, user_agent, \
             ip, tag, oauth_client_id, refresh_token_hmac_key, refresh_token_counter, scopes) \
             values ($1, $2, $3, $3, $4, $5::text::auth.aal_level, $6, $7, $8, $9, $10, $11, $12, $13)",
            &[
                &self.id,
                &self.user_id,
                &self.created_at,
                &self.factor_id,
                &self.aal,
                &self.not_after,
                &self.user_agent,
                &self.ip,
                &self.tag,
                &self.oauth_client_id,
                &self.refresh_token_hmac_key,
                &self.refresh_token_counter,
                &self.scopes,
            ],
        )
        .await?;
        Ok(())
    }

    /// Records a method, or that it was used again.
    pub async fn add_method(&mut self, db: &Db, method: &str) -> Result<(), Fault> {
        let now = now();
        db.execute(
            "insert into auth.mfa_amr_claims (id, session_id, created_at, updated_at, authentication_method) \
             values ($1, $2, $3, $3, $4) on conflict (session_id, authentication_method) do update \
             set updated_at = excluded.updated_at",
            &[&Uuid::new_v4(), &self.id, &now, &method],
        )
        .await?;
        self.amr.retain(|known| known.authentication_method != method);
        self.amr.push(Method { authentication_method: method.to_owned(), updated_at: now });
        Ok(())
    }

    pub fn is_aal2(&self) -> bool {
        self.aal == "aal2"
    }

    /// Whether it was opened by proof of the mailbox: a code, a link or a recovery.
    pub fn is_recovery(&self) -> bool {
        self.amr.iter().any(|m| matches!(m.authentication_method.as_str(), "otp" | "magiclink" | "recovery"))
    }

    /// The level of its methods, and the `amr` claim, newest first.
    pub fn aal_and_amr(&self, user: &User) -> (&'static str, Value) {
        let aal = if self.amr.iter().any(Method::raises_to_aal2) { "aal2" } else { "aal1" };
        let mut methods: Vec<&Method> = self.amr.iter().collect();
        methods.sort_by_key(|method| std::cmp::Reverse(method.updated_at.timestamp()));
        let entries = methods.into_iter().map(|method| {
            let mut entry =
                json!({ "method": method.authentication_method, "timestamp": method.updated_at.timestamp() });
            if method.authentication_method == "sso/saml"
                && let [identity] = user.identities()
                && let Some(provider) = identity.provider.strip_prefix("sso:")
            {
                entry["provider"] = json!(provider);
            }
            entry
        });
        (aal, entries.collect())
    }

    /// When it was last refreshed; `token_time` helps sessions of old releases that did not note it.
    pub fn last_refreshed_at(&self, token_time: Option<DateTime<Utc>>) -> DateTime<Utc> {
        self.refreshed_at.unwrap_or_else(|| token_time.map_or(self.created_at, |time| time.max(self.created_at)))
    }

    /// Checks the limits of `config` at `now`; `reachable` is the level its user could reach.
    pub fn check(
        &self,
        config: &SessionsConfig,
        now: DateTime<Utc>,
        token_time: Option<DateTime<Utc>>,
        user_has_mfa: bool,
    ) -> Result<(), Invalid> {
        let past = |start: DateTime<Utc>, limit: Option<std::time::Duration>| {
            limit.and_then(|limit| chrono::Duration::from_std(limit).ok()).is_some_and(|limit| now > start + limit)
        };
        if self.not_after.is_some_and(|limit| now > limit) {
            Err(Invalid::PastNotAfter)
        } else if past(self.created_at, config.timebox) {
            Err(Invalid::PastTimebox)
        } else if past(self.last_refreshed_at(token_time), config.inactivity_timeout) {
            Err(Invalid::TimedOut)
        } else if user_has_mfa && self.aal == "aal1" && past(self.created_at, config.allow_low_aal) {
            Err(Invalid::LowAal)
        } else {
            Ok(())
        }
    }

    /// Its tag among the configured ones; the first one is used for all others.
    pub fn tag_among<'a>(&self, tags: &'a [String]) -> &'a str {
        let own = self.tag.as_deref().unwrap_or("");
        tags.iter().find(|tag| *tag == own).or(tags.first()).map_or("", String::as_str)
    }
}

pub async fn find(db: &Db, id: Uuid) -> Result<Option<Session>, Fault> {
    let sql = format!("select {COLUMNS} from auth.sessions s where s.id = $1");
    db.query_opt(&sql, &[&id]).await?.map(|row| Session::from_row(&row, 0)).transpose()
}

/// The session, locked until the transaction ends; `None` if it is gone or another transaction holds it.
pub async fn try_lock(db: &Db, id: Uuid) -> Result<Option<Session>, Fault> {
    let sql = format!("select {COLUMNS} from auth.sessions s where s.id = $1 for update of s skip locked");
    db.query_opt(&sql, &[&id]).await?.map(|row| Session::from_row(&row, 0)).transpose()
}

/// The session, locked until the transaction ends.
pub async fn find_and_lock(db: &Db, id: Uuid) -> Result<Option<Session>, Fault> {
    db.execute("select 1 from auth.sessions where id = $1 for update", &[&id]).await?;
    find(db, id).await
}

pub async fn of_user(db: &Db, user_id: Uuid) -> Result<Vec<Session>, Fault> {
    let sql = format!("select {COLUMNS} from auth.sessions s where s.user_id = $1");
    db.query(&sql, &[&user_id]).await?.iter().map(|row| Session::from_row(row, 0)).collect()
}

/// Whether a user has a session (of the second level, if required) that was opened or refreshed by this client,
/// as [`client_of`](crate::auth::door::limits::client_of) names clients.
pub async fn exists_from(db: &Db, user_id: Uuid, client: &str, second_level: bool) -> Result<bool, Fault> {
    // An address or an IPv6 network; anything else is not a client.
    let is_network = client.split('/').next().is_some_and(|address| address.parse::<IpAddr>().is_ok());
    if !is_network {
        return Ok(false);
    }
    let row = db
        .query_opt(
            "select 1 from auth.sessions where user_id = $1 and ip <<= $2::text::inet and (not $3 or aal = 'aal2') limit 1",
            &[&user_id, &client, &second_level],
        )
        .await?;
    Ok(row.is_some())
}

/// Ends all sessions of a user; their refresh tokens go with them, and whatever could open further ones.
pub async fn delete_all(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    delete_begun(db, user_id).await?;
    db.execute("delete from auth.sessions where user_id = $1", &[&user_id]).await?;
    Ok(())
}

/// Ends the other sessions of a user in the same way.
pub async fn delete_others(db: &Db, user_id: Uuid, keep: Uuid) -> Result<(), Fault> {
    delete_begun(db, user_id).await?;
    db.execute("delete from auth.sessions where user_id = $1 and id <> $2", &[&user_id, &keep]).await?;
    Ok(())
}

/// Ends what the user's sessions have begun: codes of the OAuth server and links of identities. Called before the
/// sessions are deleted, because an exchange that is under way holds its code until its session can be found.
async fn delete_begun(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    let (codes, links) = futures_util::future::join(
        oauth_client::delete_codes(db, user_id, None),
        flow_state::delete_linking(db, user_id),
    )
    .await;
    codes.and(links)
}

pub async fn delete(db: &Db, id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.sessions where id = $1", &[&id]).await?;
    Ok(())
}

/// Whether a session of the user reached the second level.
pub async fn exists_at_aal2(db: &Db, user_id: Uuid) -> Result<bool, Fault> {
    let sql = "select from auth.sessions where user_id = $1 and aal = 'aal2' limit 1";
    Ok(db.query_opt(sql, &[&user_id]).await?.is_some())
}

/// Ends the user's sessions that did not reach the second level, and links of identities that they may have begun.
pub async fn delete_below_aal2(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    flow_state::delete_linking(db, user_id).await?;
    db.execute("delete from auth.sessions where user_id = $1 and (aal is null or aal < 'aal2')", &[&user_id]).await?;
    Ok(())
}

/// Stores the level a session reached, and by which factor.
pub async fn set_level(db: &Db, id: Uuid, aal: &str, factor_id: Option<Uuid>) -> Result<(), Fault> {
    db.execute(
        "update auth.sessions set aal = $2::text::auth.aal_level, factor_id = $3, updated_at = $4 where id = $1",
        &[&id, &aal, &factor_id, &now()],
    )
    .await?;
    Ok(())
}

/// Sets the key and the counter of a session's tokens of the second format.
pub async fn set_key_and_counter(db: &Db, id: Uuid, sealed_key: &str, counter: i64) -> Result<(), Fault> {
    db.execute(
        "update auth.sessions set refresh_token_hmac_key = $2, refresh_token_counter = $3, updated_at = $4 where id = $1",
        &[&id, &sealed_key, &counter, &now()],
    )
    .await?;
    Ok(())
}
