//! Second factors and their challenges. Answers show factors as [`super::user::Factor`]. Reference:
//! supabase/auth `internal/models/factor.go`, `challenge.go`.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio_postgres::types::Json as SqlJson;
use uuid::Uuid;

use super::now;
use super::user::Factor;
use crate::auth::credentials::webauthn::Credential;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// The type of the factor that a user's recovery codes are.
pub const RECOVERY_CODE: &str = "recovery_code";

/// A new factor. All but recovery codes are not verified yet.
pub struct NewFactor<'a> {
    pub id: Uuid,
    pub user_id: Uuid,
    pub friendly_name: &'a str,
    /// `totp`, `phone`, `webauthn` or `recovery_code`.
    pub factor_type: &'static str,
    /// Of a TOTP factor, as it is stored.
    pub secret: Option<&'a str>,
    /// E.164 digits, of a phone factor.
    pub phone: Option<&'a str>,
}

impl NewFactor<'_> {
    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        let status = if self.factor_type == RECOVERY_CODE { "verified" } else { "unverified" };
        db.execute(
            "insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, secret, phone, created_at, \
             updated_at) values ($1, $2, $3, $4::text::auth.factor_type, $5::text::auth.factor_status, $6, $7, $8, $8)",
            &[
                &self.id,
                &self.user_id,
                &self.friendly_name,
                &self.factor_type,
                &status,
                &self.secret,
                &self.phone,
                &now(),
            ],
        )
        .await?;
        Ok(())
    }
}

/// Records that the factor is challenged now, unless it was less than `pause` ago. Returns the former time, for
/// [`unmark_challenged`], and the new one.
pub async fn mark_challenged(db: &Db, id: Uuid, pause: Duration) -> Result<Option<Marked>, Fault> {
    let now = now();
    let due = chrono::Duration::from_std(pause).ok().and_then(|pause| now.checked_sub_signed(pause));
    let row = db
        .query_opt(
            "update auth.mfa_factors f set last_challenged_at = $2 from \
             (select last_challenged_at as before from auth.mfa_factors where id = $1 for update) as old \
             where f.id = $1 and (old.before is null or old.before <= $3) returning old.before",
            &[&id, &now, &due],
        )
        .await?;
    row.map(|row| Ok(Marked { id, before: row.try_get(0)?, now })).transpose()
}

/// A factor that was marked as challenged.
pub struct Marked {
    id: Uuid,
    before: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

/// Takes it back, for a challenge that could not be sent.
pub async fn unmark_challenged(db: &Db, marked: &Marked) -> Result<(), Fault> {
    db.execute(
        "update auth.mfa_factors set last_challenged_at = $3 where id = $1 and last_challenged_at = $2",
        &[&marked.id, &marked.now, &marked.before],
    )
    .await?;
    Ok(())
}

/// The user's factor of that id.
pub async fn find_owned(db: &Db, user_id: Uuid, id: Uuid) -> Result<Option<Factor>, Fault> {
    let row = db
        .query_opt("select to_json(f) from auth.mfa_factors f where f.id = $1 and f.user_id = $2", &[&id, &user_id])
        .await?;
    Ok(match row {
        Some(row) => Some(row.try_get::<_, SqlJson<Factor>>(0)?.0),
        None => None,
    })
}

/// All factors of a user, oldest first.
pub async fn of_user(db: &Db, user_id: Uuid) -> Result<Vec<Factor>, Fault> {
    let rows = db
        .query(
            "select to_json(f) from auth.mfa_factors f where f.user_id = $1 order by f.created_at, f.id",
            &[&user_id],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get::<_, SqlJson<Factor>>(0)?.0)).collect()
}

/// Removes unverified factors of all users that were never challenged and are older than `age`.
pub async fn delete_expired(db: &Db, age: Duration) -> Result<(), Fault> {
    let oldest = chrono::Duration::from_std(age).map_or(DateTime::UNIX_EPOCH, |age| Utc::now() - age);
    db.execute(
        "delete from auth.mfa_factors f where f.status <> 'verified' and f.created_at < $1 \
         and not exists (select from auth.mfa_challenges c where c.factor_id = f.id)",
        &[&oldest],
    )
    .await?;
    Ok(())
}

pub async fn delete(db: &Db, id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.mfa_factors where id = $1", &[&id]).await?;
    Ok(())
}

/// Removes the user's other unverified factors, of one type or (`None`) of all.
pub async fn delete_unverified(db: &Db, user_id: Uuid, factor_type: Option<&str>) -> Result<(), Fault> {
    db.execute(
        "delete from auth.mfa_factors where user_id = $1 and status = 'unverified' \
         and ($2::text is null or factor_type::text = $2)",
        &[&user_id, &factor_type],
    )
    .await?;
    Ok(())
}

/// Marks it as verified; returns whether it still exists.
pub async fn mark_verified(db: &Db, id: Uuid) -> Result<bool, Fault> {
    let marked = db
        .execute("update auth.mfa_factors set status = 'verified', updated_at = $2 where id = $1", &[&id, &now()])
        .await?;
    Ok(marked == 1)
}

pub async fn rename(db: &Db, id: Uuid, friendly_name: &str) -> Result<(), Fault> {
    db.execute(
        "update auth.mfa_factors set friendly_name = $2, updated_at = $3 where id = $1",
        &[&id, &friendly_name, &now()],
    )
    .await?;
    Ok(())
}

pub async fn set_phone(db: &Db, id: Uuid, phone: &str) -> Result<(), Fault> {
    db.execute("update auth.mfa_factors set phone = $2, updated_at = $3 where id = $1", &[&id, &phone, &now()]).await?;
    Ok(())
}

/// The stored secret of a TOTP factor.
pub async fn secret(db: &Db, id: Uuid) -> Result<String, Fault> {
    let row = db.query_one("select coalesce(secret, '') from auth.mfa_factors where id = $1", &[&id]).await?;
    Ok(row.try_get(0)?)
}

pub async fn set_secret(db: &Db, id: Uuid, secret: &str) -> Result<(), Fault> {
    db.execute("update auth.mfa_factors set secret = $2 where id = $1", &[&id, &secret]).await?;
    Ok(())
}

/// Stores the time step of the accepted code and returns whether it is later than all before. Steps only move
/// forward (RFC 6238, section 5.2).
pub async fn advance_step(db: &Db, id: Uuid, step: u64) -> Result<bool, Fault> {
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let advanced = db
        .execute(
            "insert into auth.totp_steps as known (factor_id, step) values ($1, $2) \
             on conflict (factor_id) do update set step = excluded.step where known.step < excluded.step",
            &[&id, &step],
        )
        .await?;
    Ok(advanced == 1)
}

/// The credentials of the user's verified WebAuthn factors.
pub async fn credentials(db: &Db, user_id: Uuid) -> Result<Vec<Credential>, Fault> {
    let rows = db
        .query(
            "select web_authn_credential from auth.mfa_factors where user_id = $1 and status = 'verified' \
             and factor_type = 'webauthn' and web_authn_credential is not null order by created_at, id",
            &[&user_id],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let stored: Value = row.try_get(0)?;
            Credential::from_json(&stored).ok_or_else(|| Fault::new("a stored WebAuthn credential cannot be read"))
        })
        .collect()
}

pub async fn save_credential(db: &Db, id: Uuid, credential: &Credential) -> Result<(), Fault> {
    db.execute(
        "update auth.mfa_factors set web_authn_credential = $2, web_authn_aaguid = $3, updated_at = $4 where id = $1",
        &[&id, &credential.to_json(), &credential.aaguid, &now()],
    )
    .await?;
    Ok(())
}

/// Stores the last ceremony for investigations.
pub async fn save_last_ceremony(db: &Db, id: Uuid, ceremony: &Value) -> Result<(), Fault> {
    db.execute(
        "update auth.mfa_factors set last_webauthn_challenge_data = $2, updated_at = $3 where id = $1",
        &[&id, ceremony, &now()],
    )
    .await?;
    Ok(())
}

/// Removes from sessions what the factor gave them: its method and the second level.
pub async fn downgrade_sessions(db: &Db, factor: &Factor, user_id: Uuid) -> Result<(), Fault> {
    let method = method_of(&factor.factor_type);
    db.execute(
        "delete from auth.mfa_amr_claims where authentication_method = $2 \
         and session_id in (select id from auth.sessions where factor_id = $1)",
        &[&factor.id, &method],
    )
    .await?;
    db.execute(
        "update auth.sessions set aal = 'aal1', factor_id = null where user_id = $2 and factor_id = $1",
        &[&factor.id, &user_id],
    )
    .await?;
    Ok(())
}

/// The `amr` method of a factor type.
pub fn method_of(factor_type: &str) -> &'static str {
    match factor_type {
        "totp" => "totp",
        "phone" => "mfa/phone",
        RECOVERY_CODE => "mfa/recovery_code",
        _ => "mfa/webauthn",
    }
}

/// A challenge of a factor.
#[derive(Clone, Debug)]
pub struct Challenge {
    pub id: Uuid,
    pub factor_id: Uuid,
    pub created_at: DateTime<Utc>,
    pub verified_at: Option<DateTime<Utc>>,
    pub ip_address: IpAddr,
    /// The code that was sent, as it is stored.
    pub otp_code: Option<String>,
    pub web_authn_session_data: Option<Value>,
}

impl Challenge {
    /// A new one, not stored yet.
    pub fn new(factor_id: Uuid, ip_address: IpAddr) -> Self {
        Self {
            id: Uuid::new_v4(),
            factor_id,
            created_at: now(),
            verified_at: None,
            ip_address,
            otp_code: None,
            web_authn_session_data: None,
        }
    }

    /// Stores it, and when the factor was challenged.
    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "insert into auth.mfa_challenges (id, factor_id, created_at, ip_address, otp_code, web_authn_session_data) \
             values ($1, $2, $3, $4, $5, $6)",
            &[
                &self.id,
                &self.factor_id,
                &self.created_at,
                &self.ip_address,
                &self.otp_code,
                &self.web_authn_session_data,
            ],
        )
        .await?;
        db.execute(
            "update auth.mfa_factors set last_challenged_at = $2 where id = $1",
            &[&self.factor_id, &self.created_at],
        )
        .await?;
        Ok(())
    }

    pub fn expires_at(&self, validity: Duration) -> DateTime<Utc> {
        chrono::Duration::from_std(validity).map_or(self.created_at, |validity| self.created_at + validity)
    }

    /// Spends it and returns whether it was unspent. Only one of several requests with a challenge succeeds.
    pub async fn spend(&self, db: &Db) -> Result<bool, Fault> {
        let spent = db
            .execute(
                "update auth.mfa_challenges set verified_at = $2 where id = $1 and verified_at is null",
                &[&self.id, &now()],
            )
            .await?;
        Ok(spent == 1)
    }

    /// Removes it and returns whether it existed.
    pub async fn delete(&self, db: &Db) -> Result<bool, Fault> {
        Ok(db.execute("delete from auth.mfa_challenges where id = $1", &[&self.id]).await? == 1)
    }
}

/// The factor's challenge of that id.
pub async fn find_challenge(db: &Db, factor_id: Uuid, id: Uuid) -> Result<Option<Challenge>, Fault> {
    let row = db
        .query_opt(
            "select created_at, verified_at, ip_address, otp_code, web_authn_session_data from auth.mfa_challenges \
             where id = $1 and factor_id = $2",
            &[&id, &factor_id],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Challenge {
        id,
        factor_id,
        created_at: row.try_get(0)?,
        verified_at: row.try_get(1)?,
        ip_address: row.try_get(2)?,
        otp_code: row.try_get(3)?,
        web_authn_session_data: row.try_get(4)?,
    }))
}
