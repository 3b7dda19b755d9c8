//! One-time tokens: at most one live token per user and purpose.
//! Reference: supabase/auth `internal/models/one_time_token.go`.

use uuid::Uuid;

use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// What a token is for: the labels of `auth.one_time_token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Confirmation,
    Reauthentication,
    Recovery,
    EmailChangeNew,
    EmailChangeCurrent,
    PhoneChange,
}

impl Purpose {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation_token",
            Self::Reauthentication => "reauthentication_token",
            Self::Recovery => "recovery_token",
            Self::EmailChangeNew => "email_change_token_new",
            Self::EmailChangeCurrent => "email_change_token_current",
            Self::PhoneChange => "phone_change_token",
        }
    }

    /// The user's column with the time at which the last message of this purpose was sent.
    pub fn sent_at(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation_sent_at",
            Self::Reauthentication => "reauthentication_sent_at",
            Self::Recovery => "recovery_sent_at",
            Self::EmailChangeNew | Self::EmailChangeCurrent => "email_change_sent_at",
            Self::PhoneChange => "phone_change_sent_at",
        }
    }
}

/// Replaces the user's token of this purpose.
pub async fn create(db: &Db, user_id: Uuid, purpose: Purpose, relates_to: &str, hash: &str) -> Result<(), Fault> {
    db.execute(
        "insert into auth.one_time_tokens (id, user_id, token_type, token_hash, relates_to) \
         values ($1, $2, $3::text::auth.one_time_token_type, $4, $5) \
         on conflict (user_id, token_type) do update set id = excluded.id, token_hash = excluded.token_hash, \
         relates_to = excluded.relates_to, created_at = now(), updated_at = now()",
        &[&Uuid::new_v4(), &user_id, &purpose.as_str(), &hash, &relates_to.to_ascii_lowercase()],
    )
    .await?;
    Ok(())
}

/// Spends the user's token of one purpose and returns whether there was one.
pub async fn clear(db: &Db, user_id: Uuid, purpose: Purpose) -> Result<bool, Fault> {
    let deleted = db
        .execute(
            "delete from auth.one_time_tokens where user_id = $1 and token_type::text = $2",
            &[&user_id, &purpose.as_str()],
        )
        .await?;
    Ok(deleted > 0)
}

/// Spends all the user's tokens, including those of earlier sign-up attempts.
pub async fn clear_all(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    db.execute(
        "with attempts as (delete from auth.pending_confirmations where user_id = $1) \
         delete from auth.one_time_tokens where user_id = $1",
        &[&user_id],
    )
    .await?;
    Ok(())
}
