//! `POST /signup`: by e-mail, by phone, or anonymously.
//! Reference: supabase/auth `internal/api/signup.go`, `internal/api/anonymous.go`.

use actix_web::HttpResponse;
use chrono::Utc;
use serde_json::json;
use uuid::Uuid;

use super::address::{parse_email, parse_phone};
use super::encryption;
use super::error::{AuthError, AuthResult, Code, Meaning as _};
use super::hooks;
use super::limits::{Bucket, check_frequency};
use super::mailer::{self, Mail};
use super::models::audit::{Action, Entry};
use super::models::flow_state::FlowState;
use super::models::identity;
use super::models::one_time_token::Purpose;
use super::models::user::{self, Column, User};
use super::models::{Json, now};
use super::otp;
use super::params::Params;
use super::pkce::{self, Challenge};
use super::request::{Request, ok};
use super::sms;
use super::store::Db;
use super::tokens;

/// What somebody signs up with.
#[derive(Clone, Debug, Default)]
pub struct Signup {
    pub email: String,
    pub phone: String,
    pub password: String,
    pub data: Json,
    pub channel: String,
    pub code_challenge: String,
    pub code_challenge_method: String,
}

/// What signing up came to.
pub enum SignedUp {
    /// Confirmed at once: a session.
    Session(Box<tokens::SessionAnswer>),
    /// To be confirmed, or nobody (the address was taken): a user object.
    User(Box<User>),
}

impl SignedUp {
    fn respond(&self) -> AuthResult<HttpResponse> {
        match self {
            Self::Session(answer) => answer.respond(),
            Self::User(user) => ok(user),
        }
    }
}

impl Signup {
    fn read(params: &Params) -> AuthResult<Self> {
        Ok(Self {
            email: params.text("email")?,
            phone: params.text("phone")?,
            password: params.text("password")?,
            data: params.object("data")?.unwrap_or_default(),
            channel: params.text("channel")?,
            code_challenge: params.text("code_challenge")?,
            code_challenge_method: params.text("code_challenge_method")?,
        })
    }

    fn provider(&self) -> &'static str {
        if self.email.is_empty() { "phone" } else { "email" }
    }
}

/// Answers with a session, with a user to be confirmed, or as if with one: an address that is taken is not told.
///
/// Errors: 422 `signup_disabled`, 400 `validation_failed`, 422 `weak_password`, 400 `*_provider_disabled`,
/// 422 `user_already_exists` (with autoconfirm), 429 `over_*_rate_limit`.
pub async fn signup(request: &Request) -> AuthResult<HttpResponse> {
    super::captcha::check(request).await?;
    let signup = Signup::read(&request.params()?)?;
    if signup.email.is_empty() && signup.phone.is_empty() {
        if !request.auth.config.external.anonymous_users_enabled {
            let message = "Anonymous sign-ins are disabled";
            return Err(AuthError::unprocessable(Code::AnonymousProviderDisabled, message));
        }
        request.auth.limits.check(Bucket::AnonymousSignup, request)?;
        return anonymous(request, signup.data).await;
    }
    request.auth.limits.check(Bucket::Signup, request)?;
    run(request, signup).await?.respond()
}

fn disabled() -> AuthError {
    AuthError::unprocessable(Code::SignupDisabled, "Signups not allowed for this instance")
}

/// Signs up for `/otp` and `/magiclink`, where a code that is sent proves the address later: nobody knows the
/// password, and no session is given.
pub async fn run_unproven(request: &Request, signup: Signup) -> AuthResult<()> {
    match attempt(request, signup, false).await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(Code::UserAlreadyExists) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Signs up with what the body says.
async fn run(request: &Request, signup: Signup) -> AuthResult<SignedUp> {
    attempt(request, signup, true).await
}

async fn attempt(request: &Request, mut signup: Signup, proves: bool) -> AuthResult<SignedUp> {
    let auth = &request.auth;
    let config = &auth.config;
    if config.disable_signup {
        return Err(disabled());
    }
    if !signup.phone.is_empty() && signup.channel.is_empty() {
        signup.channel = sms::SMS.to_owned();
    }
    if signup.password.is_empty() {
        return Err(AuthError::invalid("Signup requires a valid password"));
    }
    auth.password_rules.check(&signup.password).await?;
    if !signup.email.is_empty() && !signup.phone.is_empty() {
        return Err(AuthError::invalid("Only an email address or phone number should be provided on signup."));
    }
    let provider = signup.provider();
    if provider == "phone" {
        sms::check_channel(request, &signup.channel)?;
        if !signup.code_challenge.is_empty() {
            return Err(AuthError::invalid("PKCE not supported for phone signups"));
        }
    }
    let challenge = Challenge::read(&signup.code_challenge_method, &signup.code_challenge)?;
    let aud = request.audience(None);
    let db = request.db().await?;
    let existing = if provider == "email" {
        if !config.external.email_enabled {
            return Err(AuthError::bad_request(Code::EmailProviderDisabled, "Email signups are disabled"));
        }
        signup.email = parse_email(&signup.email)?;
        user::find_duplicate_email(&db, &signup.email, &aud, None, &auth.own_linking_domains()).await
    } else {
        if !config.external.phone_enabled {
            return Err(AuthError::bad_request(Code::PhoneProviderDisabled, "Phone signups are disabled"));
        }
        signup.phone = parse_phone(&signup.phone)?;
        user::find_by_phone(&db, &signup.phone, &aud).await.map_err(Into::into)
    }
    .or_internal("Database error finding user")?;
    drop(db);

    // The password is hashed whether or not the address is taken: the time tells nothing.
    let hash = auth.hasher.hash(&signup.password).await?;
    let confirmed = |user: &User| if provider == "email" { user.is_confirmed() } else { user.is_phone_confirmed() };
    if let Some(user) = existing.as_ref().filter(|user| confirmed(user)) {
        return taken(request, user, &signup, &aud).await;
    }
    let db = request.db().await?;
    let is_new = existing.is_none();
    let user = match existing {
        Some(user) => user,
        None => {
            let mut user = User::new(&signup.email, &signup.phone, &aud, signup.data.clone());
            let encryption = &config.security.encryption;
            user.encrypted_password = Some(encryption::seal(encryption, &user.id.to_string(), &hash)?);
            user.app_metadata = Some(provider_metadata(&[provider]));
            hooks::before_user_created(request, &db, &user).await?;
            user
        }
    };
    // Upstream confirms an address that waits for its confirmation as soon as autoconfirm is on, whoever asks.
    // Only who knows its password may have the session.
    let autoconfirm = if provider == "email" { config.mailer.autoconfirm } else { config.sms.autoconfirm };
    if autoconfirm && !is_new && proves {
        let stored = user.encrypted_password.as_deref().unwrap_or("");
        let hash = encryption::open(&config.security.encryption, &user.id.to_string(), stored)?;
        if !auth.hasher.verify(&signup.password, Some(&hash)).await? {
            return Err(AuthError::unprocessable(Code::UserAlreadyExists, "User already registered"));
        }
    }
    let stored = db.transaction(async |db| store(request, db, user, is_new, &signup, challenge.as_ref()).await).await;
    let mut user = match stored {
        // Somebody else took the address meanwhile.
        Err(error) if is_new && error.is_unique_violation() && taken_meanwhile(&db, &signup, &aud).await? => {
            return concurrent(request, &db, &signup, &aud).await;
        }
        other => other?,
    };
    if user.is_confirmed() || user.is_phone_confirmed() {
        let grant = request.grant();
        let answer = db
            .transaction(async |db| {
                Entry::of(&user, Action::Login)
                    .with(json!({ "provider": provider }))
                    .record(db, config.audit_log_only)
                    .await?;
                tokens::issue(request, db, user.clone(), "password", &grant).await
            })
            .await?;
        // Upstream tells of new users only where they still have to confirm themselves.
        return Ok(SignedUp::Session(Box::new(answer)));
    }
    if user.invited_at.is_some() {
        user.user_metadata = Some(Json::new());
        user.identities = Some(Vec::new());
    }
    if is_new {
        hooks::after_user_created(request, &db, &user).await.or_internal("Error invoking hook")?;
    }
    Ok(SignedUp::User(Box::new(user)))
}

/// `{"provider", "providers"}` of `app_metadata`.
pub fn provider_metadata(providers: &[&str]) -> Json {
    let mut metadata = Json::new();
    if let Some(first) = providers.first() {
        metadata.insert("provider".to_owned(), json!(first));
        metadata.insert("providers".to_owned(), json!(providers));
    }
    metadata
}

/// Inserts a new user as triggers expect it, gives it its role and reads it back.
pub async fn create_user(request: &Request, db: &Db, mut user: User) -> AuthResult<User> {
    user.insert(db).await.or_internal("Database error saving new user")?;
    user.role = request.auth.config.jwt.default_group_name.trim().to_owned();
    user.update(db, &[Column::Role]).await.or_internal("Database error updating user")?;
    user.reload(db).await.or_internal("Database error loading user after sign-up")?;
    Ok(user)
}

async fn store(
    request: &Request,
    db: &Db,
    user: User,
    is_new: bool,
    signup: &Signup,
    challenge: Option<&Challenge>,
) -> AuthResult<User> {
    let config = &request.auth.config;
    let provider = signup.provider();
    let mut user = if is_new { create_user(request, db, user).await? } else { user };
    let found = identity::find(db, &user.id.to_string(), provider).await?;
    let identity = match found {
        Some(identity) => identity,
        None => {
            let mut data = identity::claims(user.id, &user.email, "");
            for (key, value) in &signup.data {
                data.entry(key.clone()).or_insert_with(|| value.clone());
            }
            let identity = identity::create(db, user.id, provider, data).await?;
            // What was there before is unconfirmed: this identity replaces it.
            user.user_metadata.clone_from(&identity.identity_data);
            user.update(db, &[Column::UserMetadata]).await?;
            for other in user.identities().iter().filter(|other| other.id != identity.id) {
                identity::delete(db, other.id).await?;
            }
            user.update_providers(db).await?;
            identity
        }
    };
    let fresh = is_new.then_some(identity.id);
    user.identities = Some(vec![identity]);
    let traits = json!({ "provider": provider });
    if provider == "email" {
        if config.mailer.autoconfirm {
            Entry::of(&user, Action::UserSignedUp).with(traits).record(db, config.audit_log_only).await?;
            user.confirm(db).await.or_internal("Database error updating user")?;
            // The answer shows what the identity's mailbox counts as from now on.
            if let Some(identity) = user.identities.iter_mut().flatten().find(|i| Some(i.id) == fresh)
                && let Some(data) = &mut identity.identity_data
            {
                data.insert("email_verified".to_owned(), json!(true));
            }
        } else {
            Entry::of(&user, Action::UserConfirmationRequested).with(traits).record(db, config.audit_log_only).await?;
            if let Some(challenge) = challenge {
                FlowState::new(provider, "email/signup", Some(user.id), Some(challenge)).insert(db).await?;
            }
            send_confirmation(request, db, &mut user, challenge).await?;
        }
    } else if config.sms.autoconfirm {
        Entry::of(&user, Action::UserSignedUp)
            .with(json!({ "provider": provider, "channel": signup.channel }))
            .record(db, config.audit_log_only)
            .await?;
        user.confirm_phone(db).await.or_internal("Database error updating user")?;
    } else {
        Entry::of(&user, Action::UserConfirmationRequested).with(traits).record(db, config.audit_log_only).await?;
        let phone = user.phone.clone();
        sms::send_otp(request, db, &mut user, &phone, Purpose::Confirmation, &signup.channel).await?;
    }
    Ok(user)
}

/// Mails a link and a code that confirm the address.
pub async fn send_confirmation(
    request: &Request,
    db: &Db,
    user: &mut User,
    challenge: Option<&Challenge>,
) -> AuthResult<()> {
    let config = &request.auth.config;
    check_frequency(user.confirmation_sent_at, config.smtp.max_frequency, Code::OverEmailSendRateLimit)?;
    let otp = otp::generate(config.mailer.otp_length);
    let hash = pkce::prefixed(otp::hash(&user.email, &otp), challenge);
    user.set_token(Purpose::Confirmation, &hash);
    mailer::send(request, db, user, Mail::Confirmation { otp: &otp }).await?;
    user.save_token(db, Purpose::Confirmation, hash).await.or_internal("Error sending confirmation email")
}

/// The address belongs to somebody who confirmed it: an answer like that of a new user, about nobody.
async fn taken(request: &Request, user: &User, signup: &Signup, aud: &str) -> AuthResult<SignedUp> {
    let config = &request.auth.config;
    let db = request.db().await?;
    Entry::of(user, Action::UserRepeatedSignup)
        .with(json!({ "provider": signup.provider() }))
        .record(&db, config.audit_log_only)
        .await?;
    if config.mailer.autoconfirm || config.sms.autoconfirm {
        return Err(AuthError::unprocessable(Code::UserAlreadyExists, "User already registered"));
    }
    let mut nobody = User::new(&signup.email, &signup.phone, aud, signup.data.clone());
    let now = now();
    nobody.id = Uuid::new_v4();
    nobody.app_metadata = Some(provider_metadata(&[signup.provider()]));
    nobody.created_at = now;
    nobody.updated_at = now;
    nobody.confirmation_sent_at = Some(now);
    Ok(SignedUp::User(Box::new(nobody)))
}

async fn taken_meanwhile(db: &Db, signup: &Signup, aud: &str) -> AuthResult<bool> {
    Ok(find_existing(db, signup, aud).await?.is_some())
}

async fn find_existing(db: &Db, signup: &Signup, aud: &str) -> AuthResult<Option<User>> {
    Ok(if signup.email.is_empty() {
        user::find_by_phone(db, &signup.phone, aud).await?
    } else {
        user::find_by_email(db, &signup.email, aud).await?
    })
}

/// Several requests signed up one address at once; the others answer as if they had come later.
async fn concurrent(request: &Request, db: &Db, signup: &Signup, aud: &str) -> AuthResult<SignedUp> {
    let existing = find_existing(db, signup, aud).await?;
    match existing {
        Some(user) if !user.is_confirmed() && !user.is_phone_confirmed() => {
            let sent = if signup.email.is_empty() {
                (request.auth.config.sms.max_frequency, Code::OverSmsSendRateLimit)
            } else {
                (request.auth.config.smtp.max_frequency, Code::OverEmailSendRateLimit)
            };
            check_frequency(user.confirmation_sent_at.or(Some(Utc::now())), sent.0, sent.1)?;
            Ok(SignedUp::User(Box::new(user)))
        }
        Some(user) => taken(request, &user, signup, aud).await,
        None => Err(AuthError::internal("Database error saving new user")),
    }
}

/// A user without any address, and a session at once.
async fn anonymous(request: &Request, data: Json) -> AuthResult<HttpResponse> {
    if request.auth.config.disable_signup {
        return Err(disabled());
    }
    let mut user = User::new("", "", &request.audience(None), data);
    user.is_anonymous = true;
    user.app_metadata = Some(Json::new());
    let db = request.db().await?;
    hooks::before_user_created(request, &db, &user).await?;
    let grant = request.grant();
    let answer = db
        .transaction(async |db| {
            let user = create_user(request, db, user).await?;
            tokens::issue(request, db, user, "anonymous", &grant).await
        })
        .await
        .map_err(|error| error.internal_unless_unstorable("Database error creating anonymous user"))?;
    hooks::after_user_created(request, &db, &answer.user).await?;
    answer.respond()
}

/// A body's `data`, or an empty object.
pub fn data_of(params: &Params) -> AuthResult<Json> {
    Ok(params.object("data")?.unwrap_or_default())
}
