//! `GET|PUT /user`: reads and changes the signed-in user. Reference: supabase/auth
//! `internal/api/user.go`.

use actix_web::HttpResponse;
use chrono::{Duration, Utc};

use crate::auth::credentials::pkce::Challenge;
use crate::auth::credentials::{encryption, password};
use crate::auth::door::address::{parse_email, parse_phone};
use crate::auth::door::bearer::{self, Caller};
use crate::auth::door::limits::{self, Bucket};
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::{changes, recover, token};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, User};
use crate::auth::models::{Json, identity};
use crate::auth::outside::mailer::{self, Notification};
use crate::auth::outside::sms;

/// The user of the token.
pub async fn get(request: &Request) -> AuthResult<HttpResponse> {
    let (claims, user) = bearer::require_reader(request).await?;
    let own = claims.first_audience();
    if claims.has_no_audience() || request.audience(Some(&claims)) != own {
        return Err(AuthError::invalid("Token audience doesn't match request audience"));
    }
    ok(&user)
}

/// What a user asks to change; empty texts change nothing.
struct Update {
    email: String,
    phone: String,
    password: Option<String>,
    current_password: String,
    nonce: String,
    data: Option<Json>,
    app_metadata: Option<Json>,
    channel: String,
    challenge: (String, String),
}

impl Update {
    fn read(request: &Request) -> AuthResult<Self> {
        let params = request.params()?;
        Ok(Self {
            email: params.text("email")?,
            phone: params.text("phone")?,
            password: params.optional_text("password")?,
            current_password: params.text("current_password")?,
            nonce: params.text("nonce")?,
            data: params.object("data")?,
            app_metadata: params.object("app_metadata")?,
            channel: params.text("channel")?,
            challenge: (params.text("code_challenge_method")?, params.text("code_challenge")?),
        })
    }

    fn new_password(&self) -> Option<&str> {
        self.password.as_deref().filter(|password| !password.is_empty())
    }

    fn changes_email(&self, user: &User) -> bool {
        !self.email.is_empty() && self.email != user.email
    }

    fn changes_phone(&self, user: &User) -> bool {
        !self.phone.is_empty() && self.phone != user.phone
    }

    async fn validate(&mut self, request: &Request) -> AuthResult<()> {
        if !self.email.is_empty() {
            self.email = parse_email(&self.email)?;
        }
        if !self.phone.is_empty() {
            self.phone = parse_phone(&self.phone)?;
            if self.channel.is_empty() {
                self.channel = sms::SMS.to_owned();
            }
            sms::check_channel(request, &self.channel)?;
        }
        if let Some(password) = &self.password {
            request.auth.password_rules.check(&request.away(), password).await?;
        }
        Ok(())
    }
}

/// Changes the user of the token.
///
/// A new password ends all other sessions; a new address or number is confirmed first. Errors in order:
/// 400 `validation_failed`, 422 `weak_password`, 403 `not_admin`, 401 `insufficient_aal`, 422 `user_sso_managed`,
/// 422 `email_exists`/`phone_exists`, 400 `reauthentication_needed`, `current_password_*`, 422 `same_password`.
pub async fn put(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let auth = &request.auth;
    let config = &auth.config;
    auth.limits.check(Bucket::UpdateUser, request)?;
    let aud = request.audience(Some(&caller.claims));
    let mut update = Update::read(request)?;
    update.validate(request).await?;
    if update.app_metadata.is_some() && !is_group_admin(request, &caller.user) {
        let message = "Updating app_metadata requires admin privileges";
        return Err(AuthError::forbidden(Code::NotAdmin, message));
    }
    refuse_by_state(&caller, &update)?;
    let challenge = if update.changes_email(&caller.user) {
        Challenge::read(&update.challenge.0, &update.challenge.1)?
    } else {
        None
    };
    let db = request.db().await?;
    refuse_taken(request, &db, &caller.user, &update, &aud).await?;
    let session_id = caller.session_id();
    let first_password = update.new_password().is_some() && !caller.user.has_password();
    let user = prepare_password(request, &db, caller, &update).await?;

    let old_email = user.email.clone();
    let (user, notices) = db
        .transaction(async |db| {
            let mut user = user.clone();
            let mut notices: Vec<Notification<'_>> = Vec::new();
            if update.password.is_some() {
                user.update_password(db, session_id).await.or_internal("Error during password storage")?;
                Entry::of(&user, Action::UserUpdatedPassword).record(db, config.audit_log_only).await?;
                if first_password && config.email_identity_on_password {
                    ensure_email_identity(db, &mut user).await?;
                }
                notices.push(Notification::PasswordChanged);
            }
            if let Some(data) = &update.data {
                user.merge_user_metadata(db, data).await.or_internal("Error updating user")?;
            }
            if let Some(data) = &update.app_metadata {
                user.merge_app_metadata(db, data).await.or_internal("Error updating user")?;
            }
            if update.changes_email(&user) {
                if user.is_anonymous && config.mailer.autoconfirm {
                    user.email_change.clone_from(&update.email);
                    changes::change_email(request, db, &mut user).await?;
                    notices.push(Notification::EmailChanged { old_email: &old_email });
                } else {
                    recover::send_email_change(request, db, &mut user, &update.email, challenge.as_ref()).await?;
                }
            }
            if update.changes_phone(&user) {
                if config.sms.autoconfirm {
                    user.phone_change.clone_from(&update.phone);
                    changes::change_phone(request, db, &mut user, &update.phone).await?;
                } else {
                    let (phone, channel) = (update.phone.clone(), update.channel.clone());
                    sms::send_otp(request, db, &mut user, &phone, Purpose::PhoneChange, &channel).await?;
                }
            }
            Entry::of(&user, Action::UserModified)
                .record(db, config.audit_log_only)
                .await
                .or_internal("Error recording audit log entry")?;
            Ok((user, notices))
        })
        .await?;
    for notice in notices {
        let told = !matches!(notice, Notification::EmailChanged { old_email } if old_email.is_empty());
        if told {
            mailer::notify(request, &db, &user, notice).await;
        }
    }
    ok(&user)
}

fn is_group_admin(request: &Request, user: &User) -> bool {
    let jwt = &request.auth.config.jwt;
    user.aud == jwt.aud && user.role == jwt.admin_group_name
}

/// The second level is required to change what the account signs in with.
pub fn insufficient_aal() -> AuthError {
    let message = "AAL2 session is required to update email or password when MFA is enabled.";
    AuthError::unauthorized(Code::InsufficientAal, message)
}

/// Refuses changes that the session's level, anonymity or single sign-on forbid.
fn refuse_by_state(caller: &Caller, update: &Update) -> AuthResult<()> {
    let user = &caller.user;
    let sensitive = update.new_password().is_some() || update.changes_email(user) || update.changes_phone(user);
    if user.has_mfa() && !caller.is_aal2() && sensitive {
        return Err(insufficient_aal());
    }
    let unreachable = update.email.is_empty() && update.phone.is_empty();
    if user.is_anonymous && update.new_password().is_some() && unreachable {
        let message = "Updating password of an anonymous user without an email or phone is not allowed";
        return Err(AuthError::unprocessable(Code::ValidationFailed, message));
    }
    if user.is_sso_user && (sensitive || !update.nonce.is_empty()) {
        let message = "Updating email, phone, password of a SSO account only possible via SSO";
        return Err(AuthError::unprocessable(Code::UserSsoManaged, message));
    }
    Ok(())
}

async fn refuse_taken(request: &Request, db: &Db, user: &User, update: &Update, aud: &str) -> AuthResult<()> {
    if update.changes_email(user) {
        let domains = request.auth.own_linking_domains();
        let other = user::find_duplicate_email(db, &update.email, aud, Some(user.id), &domains)
            .await
            .or_internal("Database error checking email")?;
        if other.is_some() {
            let message = "A user with this email address has already been registered";
            return Err(AuthError::unprocessable(Code::EmailExists, message));
        }
    }
    if update.changes_phone(user) {
        let other = user::find_by_phone(db, &update.phone, aud).await.or_internal("Database error checking phone")?;
        if other.is_some() {
            let message = "A user with this phone number has already been registered";
            return Err(AuthError::unprocessable(Code::PhoneExists, message));
        }
    }
    Ok(())
}

/// Checks that the password may be changed and sets its hash on the model.
async fn prepare_password(request: &Request, db: &Db, caller: Caller, update: &Update) -> AuthResult<User> {
    let auth = &request.auth;
    let security = &auth.config.security;
    let Caller { mut user, session, .. } = caller;
    let Some(password) = &update.password else { return Ok(user) };
    if security.update_password_require_reauthentication {
        let recent = session.as_ref().is_some_and(|session| Utc::now() <= session.created_at + Duration::hours(24));
        if !recent {
            if update.nonce.is_empty() {
                let message = "Password update requires reauthentication";
                return Err(AuthError::bad_request(Code::ReauthenticationNeeded, message));
            }
            recover::check_reauthentication(request, db, &mut user, &update.nonce).await?;
        }
    }
    if password.is_empty() {
        user.encrypted_password = None;
        return Ok(user);
    }
    if user.has_password() {
        let stored = user.encrypted_password.as_deref().unwrap_or("");
        let hash = encryption::open(&security.encryption, &user.id.to_string(), stored)?;
        let recovering = session.as_ref().is_some_and(|session| session.is_recovery());
        if security.update_password_require_current_password && !recovering {
            let message = "Current password required when setting new password.";
            if update.current_password.is_empty() {
                return Err(AuthError::bad_request(Code::CurrentPasswordRequired, message));
            }
            let address = if user.email.is_empty() { &user.phone } else { &user.email };
            let current = &update.current_password;
            if !token::is_right(request, &user.aud, address, user.id, current, Some(&hash)).await? {
                return Err(AuthError::bad_request(Code::CurrentPasswordInvalid, message));
            }
        }
        if password::verify(&request.away(), &limits::client(request), password, Some(&hash)).await? {
            let message = "New password should be different from the old password.";
            return Err(AuthError::unprocessable(Code::SamePassword, message));
        }
    }
    let hash = password::hash(&request.away(), &limits::client(request), password).await?;
    user.encrypted_password = Some(encryption::seal(&security.encryption, &user.id.to_string(), &hash)?);
    Ok(user)
}

/// Creates a missing e-mail identity for a user with a first password or a newly proved address.
pub async fn ensure_email_identity(db: &Db, user: &mut User) -> AuthResult<()> {
    let has_one = user.identities().iter().any(|identity| identity.provider == "email");
    if user.is_sso_user || user.is_anonymous || user.email.is_empty() || !user.is_confirmed() || has_one {
        return Ok(());
    }
    let mut claims = identity::claims(user.id, &user.email, "");
    let is_proved = user.has_proved_email(db).await?;
    claims.insert("email_verified".to_owned(), serde_json::Value::Bool(is_proved));
    let created = identity::create(db, user.id, "email", claims).await?;
    user.identities.get_or_insert_default().push(created);
    user.update_providers(db).await.or_internal("Database error updating user providers")
}
