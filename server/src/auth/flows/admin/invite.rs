//! `POST /invite`. Reference: supabase/auth `internal/api/invite.go`.

use actix_web::HttpResponse;
use serde_json::json;
use uuid::Uuid;

use crate::auth::credentials::otp;
use crate::auth::door::address::parse_email;
use crate::auth::door::bearer::Admin;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::signup;
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::confirmation;
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::user::{self, Column, User};
use crate::auth::models::{identity, now};
use crate::auth::outside::hooks;
use crate::auth::outside::mailer::{self, Mail};

/// Invites an address: creates its user unless there is an unconfirmed one, and mails the link.
///
/// Errors: 422 `email_exists` for a confirmed user.
pub async fn invite(request: &Request, admin: Admin) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let params = request.params()?;
    let (email, data) = (params.text("email")?, params.object("data")?);
    let email = parse_email(&email)?;
    let aud = request.audience(Some(&admin.claims));
    let db = request.db().await?;
    let found = user::find_by_email(&db, &email, &aud).await.or_internal("Database error finding user")?;
    let is_new = found.is_none();
    let user = match found {
        Some(user) if user.is_confirmed() => {
            let message = "A user with this email address has already been registered";
            return Err(AuthError::unprocessable(Code::EmailExists, message));
        }
        Some(user) => user,
        None => {
            let mut user = User::new(&email, "", &aud, data.unwrap_or_default());
            user.app_metadata = Some(signup::provider_metadata(&["email"]));
            hooks::before_user_created(request, &db, &user).await?;
            user
        }
    };
    let user = db
        .transaction(async |db| {
            let mut user = if is_new { user.clone() } else { user::as_of_now(db, &user).await? };
            if is_new {
                user = signup::create_user(request, db, user).await?;
                let claims = identity::claims(user.id, &user.email, "");
                let id = request.once(&format!("identity of {}", user.id), Uuid::new_v4);
                user.identities = Some(vec![identity::create_as(db, id, user.id, "email", claims).await?]);
            }
            let traits = json!({ "user_id": user.id, "user_email": user.email });
            Entry::by_admin(admin.role(), Action::UserInvited, traits).record(db, config.audit_log_only).await?;
            let otp = otp::for_mail(request, "invite", &user.email);
            let hash = request.auth.code_hasher.hash(&user.email, &otp);
            user.set_token(Purpose::Confirmation, &hash);
            mailer::send(request, db, &user, Mail::Invite { otp: &otp }).await?;
            user.save_token(db, Purpose::Confirmation, hash.clone()).await.or_internal("Error inviting user")?;
            // Following an invitation proves the address, so an earlier password is removed.
            let origin = confirmation::invitation(db, user.id).await.or_internal("Error inviting user")?;
            confirmation::record(db, user.id, &hash, &origin, "", None).await.or_internal("Error inviting user")?;
            user.invited_at = Some(now());
            user.update(db, &[Column::InvitedAt]).await.or_internal("Error inviting user")?;
            Ok(user)
        })
        .await?;
    hooks::after_user_created(request, &db, &user).await?;
    ok(&user)
}
