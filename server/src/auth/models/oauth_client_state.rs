//! PKCE verifiers for providers that require them from this server. Reference: supabase/auth
//! `internal/models/oauth_client_state.go`.

use chrono::{DateTime, Duration, Utc};
use uuid::Uuid;

use super::now;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

pub struct OAuthClientState {
    pub provider_type: String,
    pub code_verifier: String,
    created_at: DateTime<Utc>,
}

impl OAuthClientState {
    /// They expire after five minutes.
    pub fn is_expired(&self) -> bool {
        Utc::now() > self.created_at + Duration::minutes(5)
    }
}

pub async fn store(db: &Db, provider_type: &str, code_verifier: &str) -> Result<Uuid, Fault> {
    let id = Uuid::new_v4();
    db.execute(
        "insert into auth.oauth_client_states (id, provider_type, code_verifier, created_at) values ($1, $2, $3, $4)",
        &[&id, &provider_type, &code_verifier, &now()],
    )
    .await?;
    Ok(id)
}

/// Removes a verifier, so that it is used once.
pub async fn take(db: &Db, id: Uuid) -> Result<Option<OAuthClientState>, Fault> {
    let row = db
        .query_opt(
            "delete from auth.oauth_client_states where id = $1 \
             returning provider_type, coalesce(code_verifier, ''), created_at",
            &[&id],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(OAuthClientState {
        provider_type: row.try_get(0)?,
        code_verifier: row.try_get(1)?,
        created_at: row.try_get(2)?,
    }))
}
