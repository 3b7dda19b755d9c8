//! `POST /admin/generate_link`: the link of a mail that is not sent.
//! Reference: supabase/auth `internal/api/mail.go` (`adminGenerateLink`).

use actix_web::HttpResponse;
use serde::Serialize;
use serde_json::json;

use crate::auth::credentials::{encryption, otp, password};
use crate::auth::door::address::parse_email;
use crate::auth::door::bearer::Admin;
use crate::auth::door::limits;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::signup;
use crate::auth::models::audit::{Action, Actor, Entry};
use crate::auth::models::confirmation::{self, Origin, ProvedData};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Column, User};
use crate::auth::models::{Json, identity, now};
use crate::auth::outside::hooks;
use crate::auth::outside::mailer::{ActionLink, action_link};

/// The user's fields with the link's beside them.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    user: &'a User,
    action_link: String,
    email_otp: String,
    hashed_token: String,
    verification_type: &'a str,
    redirect_to: &'a str,
}

const EXISTS: &str = "A user with this email address has already been registered";

/// Creates a link of the requested type, and the user if the type allows it. Sends nothing.
///
/// Errors: 400 `validation_failed`, 404 `user_not_found`, 422 `email_exists`, 422 `weak_password`.
pub async fn generate_link(request: &Request, admin: &Admin) -> AuthResult<HttpResponse> {
    let auth = &request.auth;
    let config = &auth.config;
    let params = request.params()?;
    let mut kind = params.text("type")?;
    let (email, new_email, mut password) = (params.text("email")?, params.text("new_email")?, params.text("password")?);
    let (data, redirect_to) = (params.object("data")?, params.text("redirect_to")?);
    let email = parse_email(&email)?;
    let redirect_to = if auth.redirects.allows(&redirect_to) { redirect_to } else { request.redirect_target() };
    let aud = request.audience(Some(&admin.claims));
    let db = request.db().await?;
    let found = user::find_by_email(&db, &email, &aud).await.or_internal("Database error finding user")?;
    if found.is_none() {
        match kind.as_str() {
            "magiclink" => {
                kind = "signup".to_owned();
                password = otp::unknown_password(&config.password.required_characters);
            }
            "recovery" | "email_change_current" | "email_change_new" => {
                return Err(AuthError::not_found(Code::UserNotFound, "User with this email not found"));
            }
            _ => {}
        }
    }
    let is_new = found.is_none() && matches!(kind.as_str(), "signup" | "invite");
    let new_user = if is_new {
        let mut user = User::new(&email, "", &aud, data.clone().unwrap_or_default());
        user.app_metadata = Some(signup::provider_metadata(&["email"]));
        if kind == "signup" {
            if password.is_empty() {
                return Err(AuthError::invalid("Signup requires a valid password"));
            }
            auth.password_rules.check(&request.away(), &password).await?;
            let hash = password::hash(&request.away(), &limits::client(request), &password).await?;
            let sealed = encryption::seal(&config.security.encryption, &user.id.to_string(), &hash)?;
            user.encrypted_password = Some(sealed);
        }
        hooks::before_user_created(request, &db, &user).await?;
        Some(user)
    } else {
        None
    };
    let otp = otp::generate(config.mailer.otp_length);
    let hash = request.auth.code_hasher.hash(&email, &otp);
    let (user, token_hash) = db
        .transaction(async |db| {
            let mut user = match (found.clone(), new_user.clone()) {
                (Some(user), _) => user,
                (None, Some(user)) => {
                    let mut user = signup::create_user(request, db, user).await?;
                    let claims = identity::claims(user.id, &user.email, "");
                    user.identities = Some(vec![identity::create(db, user.id, "email", claims).await?]);
                    user
                }
                (None, None) => return Err(unknown_type(&kind)),
            };
            let link_hash = match kind.as_str() {
                "magiclink" | "recovery" => {
                    Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
                    user.save_token(db, Purpose::Recovery, hash.clone()).await?;
                    hash.clone()
                }
                "invite" | "signup" => {
                    confirmation(request, db, admin, &mut user, &kind, is_new, data.as_ref(), &hash).await?;
                    hash.clone()
                }
                "email_change_current" | "email_change_new" => {
                    email_change(request, db, &mut user, &kind, &new_email, &otp, &hash).await?
                }
                other => return Err(unknown_type(other)),
            };
            Ok((user, link_hash))
        })
        .await?;
    if is_new {
        hooks::after_user_created(request, &db, &user).await?;
    }
    let mailer = &config.mailer;
    let (path, link_kind) = match kind.as_str() {
        "invite" => (&mailer.url_path_invite, "invite"),
        "signup" => (&mailer.url_path_confirmation, "signup"),
        "email_change_current" | "email_change_new" => (&mailer.url_path_email_change, "email_change"),
        "magiclink" => (&mailer.url_path_recovery, "magiclink"),
        _ => (&mailer.url_path_recovery, "recovery"),
    };
    let link = ActionLink { path, token_hash: &token_hash, kind: link_kind, redirect_to: &redirect_to };
    ok(&Answer {
        user: &user,
        action_link: action_link(&request.external_url(), &link),
        email_otp: otp,
        // Always for `email`, as upstream; the link also works for a new address.
        hashed_token: hash,
        verification_type: &kind,
        redirect_to: &redirect_to,
    })
}

fn unknown_type(kind: &str) -> AuthError {
    AuthError::invalid(format!("Invalid email action link type requested: {kind}"))
}

#[allow(clippy::too_many_arguments)]
async fn confirmation(
    request: &Request,
    db: &Db,
    admin: &Admin,
    user: &mut User,
    kind: &str,
    is_new: bool,
    data: Option<&Json>,
    hash: &str,
) -> AuthResult<()> {
    if user.is_confirmed() {
        return Err(AuthError::unprocessable(Code::EmailExists, EXISTS));
    }
    let origin;
    if kind == "invite" {
        origin = confirmation::invitation(db, user.id).await?;
        let traits = json!({ "user_id": user.id, "user_email": user.email });
        let entry =
            Entry { actor: Actor::Admin { role: admin.role() }, action: Action::UserInvited, ip_address: "", traits };
        entry.record(db, request.auth.config.audit_log_only).await?;
        user.invited_at = Some(now());
        user.update(db, &[Column::InvitedAt]).await?;
    } else if is_new {
        origin = Origin::New(ProvedData::Account);
    } else {
        user.merge_user_metadata(db, data.unwrap_or(&Json::new())).await.or_internal("Database error updating user")?;
        origin = confirmation::resumed(db, user.id, "").await?;
    }
    user.save_token(db, Purpose::Confirmation, hash.to_owned()).await?;
    Ok(confirmation::record(db, user.id, hash, &origin, "", None).await?)
}

async fn email_change(
    request: &Request,
    db: &Db,
    user: &mut User,
    kind: &str,
    new_email: &str,
    otp: &str,
    hash: &str,
) -> Result<String, AuthError> {
    let current = kind == "email_change_current";
    if current && !request.auth.config.mailer.secure_email_change {
        let message = "Enable secure email change to generate link for current email";
        return Err(AuthError::invalid(message));
    }
    let new_email = parse_email(new_email)?;
    let domains = request.auth.own_linking_domains();
    let taken = user::find_duplicate_email(db, &new_email, &user.aud, Some(user.id), &domains)
        .await
        .or_internal("Database error checking email")?;
    if taken.is_some() {
        return Err(AuthError::unprocessable(Code::EmailExists, EXISTS));
    }
    user.email_change = new_email;
    user.email_change_confirm_status = 0;
    user.update(db, &[Column::EmailChange, Column::EmailChangeConfirmStatus]).await?;
    if current {
        user.save_token(db, Purpose::EmailChangeCurrent, hash.to_owned()).await?;
        return Ok(hash.to_owned());
    }
    let own = request.auth.code_hasher.hash(&user.email_change, otp);
    user.save_token(db, Purpose::EmailChangeNew, own.clone()).await?;
    Ok(own)
}
