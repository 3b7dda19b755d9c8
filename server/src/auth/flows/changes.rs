//! Changes of address and number after they are proved. Reference: supabase/auth
//! `internal/api/verify.go`, `internal/api/user.go`.

use serde_json::json;

use crate::auth::credentials::pkce;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::one_time_token::{self, Purpose};
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Column, User};
use crate::auth::models::{Json, identity};
use crate::auth::outside::mailer::{self, Notification};

/// Notifications to send once everything is committed.
#[derive(Default)]
pub struct Notices {
    pub old_email: Option<String>,
    pub old_phone: Option<String>,
    pub phone_identity: bool,
}

impl Notices {
    pub async fn send(&self, request: &Request, db: &Db, user: &User) {
        if let Some(old_email) = self.old_email.as_deref().filter(|old| !old.is_empty() && *old != user.email) {
            mailer::notify(request, db, user, Notification::EmailChanged { old_email }).await;
        }
        if let Some(old_phone) = self.old_phone.as_deref().filter(|old| !old.is_empty() && *old != user.phone) {
            mailer::notify(request, db, user, Notification::PhoneChanged { old_phone }).await;
        }
        if self.phone_identity {
            mailer::notify(request, db, user, Notification::IdentityLinked { provider: "phone" }).await;
        }
    }
}

/// An update that sets one flag.
pub fn flag(name: &str) -> Json {
    let mut updates = Json::new();
    updates.insert(name.to_owned(), json!(true));
    updates
}

/// If both addresses must confirm and none has, notes the one with the token `is_proven`. Returns whether the other is
/// still missing.
pub async fn first_half(
    request: &Request,
    db: &Db,
    user: &mut User,
    is_proven: impl Fn(&str) -> bool,
) -> AuthResult<bool> {
    let config = &request.auth.config.mailer;
    if config.autoconfirm
        || !config.secure_email_change
        || user.email_change_confirm_status != 0
        || user.email.is_empty()
    {
        return Ok(false);
    }
    let is = |stored: &str| !stored.is_empty() && (is_proven(stored) || is_proven(pkce::bare(stored)));
    user.email_change_confirm_status = 1;
    if is(&user.email_change_token_current) {
        user.email_change_token_current.clear();
        one_time_token::clear(db, user.id, Purpose::EmailChangeCurrent).await?;
    } else if is(&user.email_change_token_new) {
        user.email_change_token_new.clear();
        one_time_token::clear(db, user.id, Purpose::EmailChangeNew).await?;
    }
    user.update(db, &[Column::EmailChangeConfirmStatus, Column::EmailChangeTokenCurrent, Column::EmailChangeTokenNew])
        .await?;
    Ok(true)
}

/// Makes the pending address the user's.
pub async fn change_email(request: &Request, db: &Db, user: &mut User) -> AuthResult<()> {
    Entry::of(user, Action::UserModified).record(db, request.auth.config.audit_log_only).await?;
    let mut data = flag("email_verified");
    data.insert("email".to_owned(), json!(user.email_change));
    user::upsert_identity(db, user, "email", &data).await?;
    if user.is_anonymous {
        user.is_anonymous = false;
        user.update(db, &[Column::IsAnonymous]).await?;
    }
    user.confirm_email_change(db).await.map_err(AuthError::unless_taken).or_internal("Error confirm email")?;
    user.identities = Some(identity::of_user(db, user.id).await?);
    Ok(())
}

/// Confirms the number that a user signed up with.
pub async fn confirm_phone(request: &Request, db: &Db, user: &mut User) -> AuthResult<()> {
    let log_only = request.auth.config.audit_log_only;
    Entry::of(user, Action::UserSignedUp).with(json!({ "provider": "phone" })).record(db, log_only).await?;
    user.confirm_phone(db).await.or_internal("Error confirming user")?;
    is_somebody(db, user).await
}

/// Makes the pending number the user's. Returns whether it created an identity.
pub async fn change_phone(request: &Request, db: &Db, user: &mut User, phone: &str) -> AuthResult<bool> {
    Entry::of(user, Action::UserModified).record(db, request.auth.config.audit_log_only).await?;
    let mut data = flag("phone_verified");
    data.insert("phone".to_owned(), json!(phone));
    let created = user::upsert_identity(db, user, "phone", &data).await?;
    user.confirm_phone_change(db).await.map_err(AuthError::unless_taken).or_internal("Error confirming user")?;
    is_somebody(db, user).await?;
    Ok(created)
}

/// A user with a proved number is no longer anonymous.
async fn is_somebody(db: &Db, user: &mut User) -> AuthResult<()> {
    if user.is_anonymous {
        user.is_anonymous = false;
        user.update(db, &[Column::IsAnonymous]).await?;
    }
    user.identities = Some(identity::of_user(db, user.id).await?);
    Ok(())
}
