//! States of flows that span several requests: PKCE links and sign-ins at providers. Reference:
//! supabase/auth `internal/models/flow_state.go`, `internal/api/pkce.go`.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use uuid::Uuid;

use super::now;
use crate::auth::credentials::pkce::{Challenge, ChallengeMethod};
use crate::auth::error::{AuthError, AuthResult, Fault};
use crate::auth::models::store::Db;

#[derive(Clone, Debug, Default)]
pub struct FlowState {
    pub id: Uuid,
    pub user_id: Option<Uuid>,
    pub auth_code: Option<String>,
    /// `s256` or `plain`.
    pub code_challenge_method: Option<String>,
    pub code_challenge: Option<String>,
    pub provider_type: String,
    pub provider_access_token: String,
    pub provider_refresh_token: String,
    pub created_at: DateTime<Utc>,
    pub authentication_method: String,
    pub auth_code_issued_at: Option<DateTime<Utc>>,
    pub invite_token: Option<String>,
    pub referrer: Option<String>,
    pub oauth_client_state_id: Option<Uuid>,
    pub linking_target_id: Option<Uuid>,
    pub email_optional: bool,
}

const COLUMNS: &str = "f.id, f.user_id, f.auth_code, f.code_challenge_method::text, f.code_challenge, f.provider_type, \
    coalesce(f.provider_access_token, ''), coalesce(f.provider_refresh_token, ''), coalesce(f.created_at, now()), \
    f.authentication_method, f.auth_code_issued_at, f.invite_token, f.referrer, f.oauth_client_state_id, \
    f.linking_target_id, f.email_optional";

impl FlowState {
    /// A new state. With a challenge it gets an auth code, which is issued at the end.
    pub fn new(provider_type: &str, method: &str, user_id: Option<Uuid>, challenge: Option<&Challenge>) -> Self {
        Self {
            id: Uuid::new_v4(),
            user_id,
            auth_code: challenge.map(|_| Uuid::new_v4().to_string()),
            code_challenge_method: challenge.map(|c| c.method.as_str().to_owned()),
            code_challenge: challenge.map(|c| c.code.clone()),
            provider_type: provider_type.to_owned(),
            created_at: now(),
            authentication_method: method.to_owned(),
            ..Self::default()
        }
    }

    fn from_row(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: row.try_get(0)?,
            user_id: row.try_get(1)?,
            auth_code: row.try_get(2)?,
            code_challenge_method: row.try_get(3)?,
            code_challenge: row.try_get(4)?,
            provider_type: row.try_get(5)?,
            provider_access_token: row.try_get(6)?,
            provider_refresh_token: row.try_get(7)?,
            created_at: row.try_get(8)?,
            authentication_method: row.try_get(9)?,
            auth_code_issued_at: row.try_get(10)?,
            invite_token: row.try_get(11)?,
            referrer: row.try_get(12)?,
            oauth_client_state_id: row.try_get(13)?,
            linking_target_id: row.try_get(14)?,
            email_optional: row.try_get(15)?,
        })
    }

    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "insert into auth.flow_state (id, user_id, auth_code, code_challenge_method, code_challenge, provider_type, \
             provider_access_token, provider_refresh_token, created_at, updated_at, authentication_method, \
             invite_token, referrer, oauth_client_state_id, linking_target_id, email_optional) \
             values ($1, $2, $3, $4::text::auth.code_challenge_method, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14, $15)",
            &[
                &self.id,
                &self.user_id,
                &self.auth_code,
                &self.code_challenge_method,
                &self.code_challenge,
                &self.provider_type,
                &self.provider_access_token,
                &self.provider_refresh_token,
                &self.created_at,
                &self.authentication_method,
                &self.invite_token,
                &self.referrer,
                &self.oauth_client_state_id,
                &self.linking_target_id,
                &self.email_optional,
            ],
        )
        .await?;
        Ok(())
    }

    /// Writes the result of a flow: the user, the provider's tokens, when the code was issued.
    pub async fn update(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "update auth.flow_state set user_id = $2, provider_access_token = $3, provider_refresh_token = $4, \
             auth_code_issued_at = $5, updated_at = $6 where id = $1",
            &[
                &self.id,
                &self.user_id,
                &self.provider_access_token,
                &self.provider_refresh_token,
                &self.auth_code_issued_at,
                &now(),
            ],
        )
        .await?;
        Ok(())
    }

    pub fn is_pkce(&self) -> bool {
        self.code_challenge.as_deref().is_some_and(|challenge| !challenge.is_empty())
    }

    /// States expire `expiry` after their creation, or after their code was issued, which happens when a
    /// mail's link is followed. Upstream does the latter for magic links only; other mails fail.
    pub fn is_expired(&self, expiry: std::time::Duration) -> bool {
        let start = self.auth_code_issued_at.unwrap_or(self.created_at);
        chrono::Duration::from_std(expiry).is_ok_and(|expiry| Utc::now() > start + expiry)
    }

    /// Whether `verifier` is what the challenge was made of.
    pub fn verify(&self, verifier: &str) -> bool {
        let method = self.code_challenge_method.as_deref().and_then(ChallengeMethod::parse);
        match (method, &self.code_challenge) {
            (Some(method), Some(code)) => Challenge { method, code: code.clone() }.is_met_by(verifier),
            _ => false,
        }
    }
}

/// Locks the user of an auth code, if it has one. As everywhere, the user is locked before other rows.
pub async fn lock_user(db: &Db, code: &str) -> Result<(), Fault> {
    let sql = "select 1 from auth.users where id = (select user_id from auth.flow_state where auth_code = $1 limit 1) \
               for update";
    db.execute(sql, &[&code]).await?;
    Ok(())
}

/// The state of an auth code, locked: a code is exchanged once.
pub async fn find_by_auth_code(db: &Db, code: &str) -> Result<Option<FlowState>, Fault> {
    let sql = format!("select {COLUMNS} from auth.flow_state f where f.auth_code = $1 limit 1 for update");
    db.query_opt(&sql, &[&code]).await?.as_ref().map(FlowState::from_row).transpose()
}

/// The state by its id, locked.
pub async fn find_by_id(db: &Db, id: Uuid) -> Result<Option<FlowState>, Fault> {
    let sql = format!("select {COLUMNS} from auth.flow_state f where f.id = $1 for update");
    db.query_opt(&sql, &[&id]).await?.as_ref().map(FlowState::from_row).transpose()
}

/// The newest state of a user and method.
pub async fn find_newest(db: &Db, user_id: Uuid, method: &str) -> Result<Option<FlowState>, Fault> {
    let sql = format!(
        "select {COLUMNS} from auth.flow_state f where f.user_id = $1 and f.authentication_method = $2 \
         order by f.created_at desc limit 1"
    );
    db.query_opt(&sql, &[&user_id, &method]).await?.as_ref().map(FlowState::from_row).transpose()
}

pub async fn delete(db: &Db, id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.flow_state where id = $1", &[&id]).await?;
    Ok(())
}

/// Deletes states whose auth code was issued but not exchanged.
pub async fn delete_issued(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.flow_state where user_id = $1 and auth_code_issued_at is not null", &[&user_id])
        .await?;
    Ok(())
}

/// Deletes states that would link an identity to the user.
pub async fn delete_linking(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.flow_state where linking_target_id = $1", &[&user_id]).await?;
    Ok(())
}

/// Issues the auth code of the state that belongs to the proof or, if unknown, of the newest state of (user, method),
/// and stores the time.
pub async fn issue_auth_code(db: &Db, user_id: Uuid, method: &str, own: Option<Uuid>) -> AuthResult<String> {
    let lost = |text: &str| {
        let message = format!("No associated flow state found. 422: {text}");
        AuthError::bad_request(crate::auth::error::Code::FlowStateNotFound, message)
    };
    let own = match own {
        Some(id) => find_by_id(db, id).await?.filter(|state| state.user_id == Some(user_id)),
        None => None,
    };
    let found = match own {
        Some(state) if state.authentication_method == method => Some(state),
        _ => find_newest(db, user_id, method).await?,
    };
    let mut state = found.ok_or_else(|| lost("No valid flow state found for user."))?;
    let code = state
        .auth_code
        .clone()
        .filter(|_| state.is_pkce())
        .ok_or_else(|| lost("Flow state does not have an auth code (not a PKCE flow)."))?;
    state.auth_code_issued_at = Some(now());
    state.update(db).await?;
    Ok(code)
}

/// Removes a state and returns whether it existed.
pub async fn take(db: &Db, id: Uuid) -> Result<bool, Fault> {
    Ok(db.execute("delete from auth.flow_state where id = $1", &[&id]).await? == 1)
}
