//! `/user/identities`: linking and unlinking the ways a user signs in.
//! Reference: supabase/auth `internal/api/identity.go`.

use actix_web::HttpResponse;
use serde_json::json;
use uuid::Uuid;

use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, empty};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::oauth::account;
use crate::auth::flows::user::insufficient_aal;
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::identity::{self, Identity};
use crate::auth::models::user::{self, Column};
use crate::auth::outside::mailer::{self, Notification};

/// Everything below `/user/identities` answers 404 while manual linking is off.
pub fn require_enabled(request: &Request) -> AuthResult<()> {
    if request.auth.config.security.manual_linking {
        return Ok(());
    }
    Err(AuthError::not_found(Code::ManualLinkingDisabled, "Manual linking is disabled"))
}

/// Whether the identity's provider has verified its address, if it has one. The session outlasts the unlinking, and
/// its tokens would name an address that anybody can claim.
fn is_no_claim(identity: &Identity) -> bool {
    identity.email.is_empty() || identity.is_email_verified()
}

/// `DELETE /user/identities/{id}`. If its address goes too, a verified one of another identity takes its place.
///
/// Errors: 404 `validation_failed` if it is not a uuid, 422 `single_identity_not_deletable`,
/// `identity_not_found` and `email_conflict_identity_not_deletable`, 401 `insufficient_aal`.
pub async fn unlink(request: &Request, caller: Caller, id: &str) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let id =
        Uuid::parse_str(id).map_err(|_| AuthError::not_found(Code::ValidationFailed, "identity_id must be an UUID"))?;
    if request.audience(Some(&caller.claims)) != caller.claims.first_audience() {
        let message = "Token audience doesn't match request audience";
        return Err(AuthError::forbidden(Code::UnexpectedAudience, message));
    }
    let single = || {
        let message = "User must have at least 1 identity after unlinking";
        AuthError::unprocessable(Code::SingleIdentityNotDeletable, message)
    };
    let gone = || AuthError::not_found(Code::UserNotFound, "User not found");
    let address = request.client_ip_text();
    let is_aal2 = caller.is_aal2();
    // Under autoconfirm, addresses need no proof.
    let accepts = if config.mailer.autoconfirm { |_: &Identity| true } else { is_no_claim };
    let user = caller.user;
    let recipient = user.email.clone();
    let db = request.db().await?;
    let (user, provider) = db
        .transaction(async |db| {
            // Read again under a lock, so that two requests cannot unlink the last two identities at once.
            let mut user = user::find_and_lock(db, user.id).await?.ok_or_else(gone)?;
            let (email, identities) = (user.email.clone(), user.identities());
            if identities.len() <= 1 {
                return Err(single());
            }
            let identity = identities
                .iter()
                .find(|identity| identity.id == id)
                .cloned()
                .ok_or_else(|| AuthError::unprocessable(Code::IdentityNotFound, "Identity doesn't exist"))?;
            Entry::of(&user, Action::IdentityUnlinked)
                .from_address(&address)
                .with(json!({
                    "identity_id": identity.id,
                    "provider": identity.provider,
                    "provider_id": identity.provider_id,
                }))
                .record(db, config.audit_log_only)
                .await
                .or_internal("Error recording audit log entry")?;
            identity::delete(db, identity.id).await.or_internal("Database error deleting identity")?;
            if identity.provider == "phone" {
                user.phone.clear();
                user.phone_confirmed_at = None;
                user.update(db, &[Column::Phone, Column::PhoneConfirmedAt])
                    .await
                    .or_internal("Database error updating user phone")?;
            } else if !account::promote_email(request, db, &mut user, accepts).await? {
                let message = "Unable to unlink identity due to email conflict";
                return Err(AuthError::unprocessable(Code::EmailConflictIdentityNotDeletable, message));
            }
            // Upstream also lets a session of the first level change the address of a user with a second factor.
            if user.email != email && user.has_mfa() && !is_aal2 {
                return Err(insufficient_aal());
            }
            user.update_providers(db).await.or_internal("Database error updating user providers")?;
            Ok((user, identity.provider))
        })
        .await?;
    if !recipient.is_empty() {
        let notice = Notification::IdentityUnlinked { provider: &provider, recipient: &recipient };
        mailer::notify(request, &db, &user, notice).await;
    }
    empty()
}
