//! Passkeys and pending ceremonies. Reference: supabase/auth
//! `internal/models/webauthn_credential.go`, `webauthn_challenge.go`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use super::now;
use crate::auth::credentials::webauthn::{Ceremony, Credential};
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// A passkey; serialized it is the item of a list.
#[derive(Clone, Debug, Serialize)]
pub struct Passkey {
    pub id: Uuid,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub friendly_name: String,
    pub created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
    #[serde(skip)]
    pub user_id: Uuid,
    #[serde(skip)]
    pub credential: Credential,
}

const COLUMNS: &str = "id, friendly_name, created_at, last_used_at, user_id, credential_id, public_key, \
    attestation_type, aaguid, sign_count, transports, backup_eligible, backed_up";

impl Passkey {
    /// A new one, not stored yet.
    pub fn new(user_id: Uuid, credential: Credential, friendly_name: &str) -> Self {
        Self {
            id: Uuid::new_v4(),
            friendly_name: friendly_name.to_owned(),
            created_at: now(),
            last_used_at: None,
            user_id,
            credential,
        }
    }

    fn from_row(row: &Row) -> Result<Self, Fault> {
        let sign_count: i64 = row.try_get(9)?;
        let transports: Value = row.try_get(10)?;
        Ok(Self {
            id: row.try_get(0)?,
            friendly_name: row.try_get(1)?,
            created_at: row.try_get(2)?,
            last_used_at: row.try_get(3)?,
            user_id: row.try_get(4)?,
            credential: Credential {
                id: row.try_get(5)?,
                public_key: row.try_get(6)?,
                attestation_type: row.try_get(7)?,
                aaguid: row.try_get(8)?,
                sign_count: u32::try_from(sign_count).unwrap_or(u32::MAX),
                transports: transports
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|transport| transport.as_str().map(str::to_owned))
                    .collect(),
                backup_eligible: row.try_get(11)?,
                backed_up: row.try_get(12)?,
            },
        })
    }

    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        let credential = &self.credential;
        db.execute(
            "insert into auth.webauthn_credentials (id, user_id, credential_id, public_key, attestation_type, aaguid, \
             sign_count, transports, backup_eligible, backed_up, friendly_name, created_at, updated_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)",
            &[
                &self.id,
                &self.user_id,
                &credential.id,
                &credential.public_key,
                &credential.attestation_type,
                &credential.aaguid,
                &i64::from(credential.sign_count),
                &json!(credential.transports),
                &credential.backup_eligible,
                &credential.backed_up,
                &self.friendly_name,
                &self.created_at,
            ],
        )
        .await?;
        Ok(())
    }

    pub async fn record_use(&mut self, db: &Db, sign_count: u32) -> Result<(), Fault> {
        self.last_used_at = Some(now());
        db.execute(
            "update auth.webauthn_credentials set last_used_at = $2, sign_count = $3, updated_at = $2 where id = $1",
            &[&self.id, &self.last_used_at, &i64::from(sign_count)],
        )
        .await?;
        Ok(())
    }

    pub async fn rename(&mut self, db: &Db, friendly_name: &str) -> Result<(), Fault> {
        self.friendly_name = friendly_name.to_owned();
        db.execute(
            "update auth.webauthn_credentials set friendly_name = $2, updated_at = $3 where id = $1",
            &[&self.id, &friendly_name, &now()],
        )
        .await?;
        Ok(())
    }

    pub async fn delete(&self, db: &Db) -> Result<(), Fault> {
        db.execute("delete from auth.webauthn_credentials where id = $1", &[&self.id]).await?;
        Ok(())
    }
}

/// The user's passkeys, oldest first.
pub async fn of_user(db: &Db, user_id: Uuid) -> Result<Vec<Passkey>, Fault> {
    let sql = format!("select {COLUMNS} from auth.webauthn_credentials where user_id = $1 order by created_at, id");
    db.query(&sql, &[&user_id]).await?.iter().map(Passkey::from_row).collect()
}

pub async fn find_owned(db: &Db, user_id: Uuid, id: Uuid) -> Result<Option<Passkey>, Fault> {
    let sql = format!("select {COLUMNS} from auth.webauthn_credentials where id = $1 and user_id = $2");
    db.query_opt(&sql, &[&id, &user_id]).await?.as_ref().map(Passkey::from_row).transpose()
}

/// The passkey of a credential's id.
pub async fn find_by_credential(db: &Db, credential_id: &[u8]) -> Result<Option<Passkey>, Fault> {
    let sql = format!("select {COLUMNS} from auth.webauthn_credentials where credential_id = $1");
    db.query_opt(&sql, &[&credential_id]).await?.as_ref().map(Passkey::from_row).transpose()
}

/// What a stored ceremony is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Registration,
    Authentication,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::Authentication => "authentication",
        }
    }
}

/// Stores a ceremony; the answer names it by the id returned.
pub async fn store_ceremony(
    db: &Db,
    user_id: Option<Uuid>,
    purpose: Purpose,
    ceremony: &Ceremony,
    expires_at: DateTime<Utc>,
) -> Result<Uuid, Fault> {
    let id = Uuid::new_v4();
    db.execute(
        "insert into auth.webauthn_challenges (id, user_id, challenge_type, session_data, created_at, expires_at) \
         values ($1, $2, $3, $4, $5, $6)",
        &[&id, &user_id, &purpose.as_str(), &ceremony.to_json(expires_at), &now(), &expires_at],
    )
    .await?;
    Ok(id)
}

/// Removes a ceremony, so that only the first request gets it. Returns whether it has expired.
pub async fn take_ceremony(
    db: &Db,
    id: Uuid,
    purpose: Purpose,
    user_id: Option<Uuid>,
) -> Result<Option<(Ceremony, bool)>, Fault> {
    let row = db
        .query_opt(
            "delete from auth.webauthn_challenges where id = $1 and challenge_type = $2 \
             and user_id is not distinct from $3 returning session_data, expires_at",
            &[&id, &purpose.as_str(), &user_id],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let (data, expires_at): (Value, DateTime<Utc>) = (row.try_get(0)?, row.try_get(1)?);
    let ceremony = Ceremony::from_json(&data).ok_or_else(|| Fault::new("a stored WebAuthn ceremony cannot be read"))?;
    Ok(Some((ceremony, Utc::now() > expires_at)))
}
