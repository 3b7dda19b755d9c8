//! Refresh tokens of the first format, kept in clear in `auth.refresh_tokens`.
//! Reference: supabase/auth `internal/models/refresh_token.go`.

use chrono::{DateTime, Utc};
use rand::RngCore as _;
use tokio_postgres::Row;
use uuid::Uuid;

use super::now;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

#[derive(Clone, Debug)]
pub struct RefreshToken {
    pub id: i64,
    pub token: String,
    pub user_id: String,
    pub revoked: bool,
    pub updated_at: DateTime<Utc>,
    pub parent: String,
    pub session_id: Option<Uuid>,
}

pub const COLUMNS: &str = "t.id, t.token, coalesce(t.user_id, '') as user_id, coalesce(t.revoked, false) as revoked, \
    coalesce(t.updated_at, t.created_at, now()) as updated_at, coalesce(t.parent, '') as parent, t.session_id";

/// How many columns [`COLUMNS`] names.
pub const WIDTH: usize = 7;

impl RefreshToken {
    pub fn from_row(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: row.try_get(0)?,
            token: row.try_get(1)?,
            user_id: row.try_get(2)?,
            revoked: row.try_get(3)?,
            updated_at: row.try_get(4)?,
            parent: row.try_get(5)?,
            session_id: row.try_get(6)?,
        })
    }
}

/// A new token's text: 12 characters of lower-case base32, 60 bits.
pub fn generate() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0_u8; 12];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect()
}

/// Inserts a token of a session; `parent` is the one it follows.
pub async fn insert(db: &Db, user_id: Uuid, session_id: Uuid, token: &str, parent: Option<&str>) -> Result<(), Fault> {
    db.execute(
        "insert into auth.refresh_tokens (instance_id, token, user_id, parent, session_id, revoked, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, false, $6, $6)",
        &[&Uuid::nil(), &token, &user_id.to_string(), &parent, &session_id, &now()],
    )
    .await?;
    Ok(())
}

pub async fn revoke(db: &Db, id: i64) -> Result<(), Fault> {
    db.execute("update auth.refresh_tokens set revoked = true, updated_at = $2 where id = $1", &[&id, &now()]).await?;
    Ok(())
}

pub async fn revoke_session(db: &Db, session_id: Uuid) -> Result<(), Fault> {
    db.execute(
        "update auth.refresh_tokens set revoked = true, updated_at = $2 where session_id = $1 and revoked = false",
        &[&session_id, &now()],
    )
    .await?;
    Ok(())
}

/// Deletes every token of a session.
pub async fn delete_session(db: &Db, session_id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.refresh_tokens where session_id = $1", &[&session_id]).await?;
    Ok(())
}

/// The last token of the session that is not revoked.
pub async fn active_of(db: &Db, session_id: Uuid) -> Result<Option<RefreshToken>, Fault> {
    let sql = format!(
        "select {COLUMNS} from auth.refresh_tokens t where t.session_id = $1 and t.revoked is false order by t.id desc limit 1"
    );
    db.query_opt(&sql, &[&session_id]).await?.as_ref().map(RefreshToken::from_row).transpose()
}
