//! `POST /signup`: by e-mail, by phone, or anonymously.
//! Reference: supabase/auth `internal/api/signup.go`, `internal/api/anonymous.go`.

use actix_web::HttpResponse;
use chrono::Utc;
use serde_json::json;
use uuid::Uuid;

use crate::auth::credentials::pkce::{self, Challenge};
use crate::auth::credentials::{encryption, otp, password, tokens};
use crate::auth::door::address::{parse_email, parse_phone};
use crate::auth::door::limits::{self, Ask, Asked, Bucket, check_frequency, require_pause};
use crate::auth::door::params::Params;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::token;
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::confirmation::{self, Origin, ProvedData};
use crate::auth::models::flow_state::FlowState;
use crate::auth::models::identity::{self, Identity};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Column, User};
use crate::auth::models::{Json, now};
use crate::auth::outside::mailer::{self, Mail};
use crate::auth::outside::{hooks, sms};

/// The fields of a sign-up.
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

/// The result of a sign-up.
pub enum SignedUp {
    /// Confirmed at once: a session.
    Session(Box<tokens::SessionAnswer>),
    /// Not confirmed yet, or the address was taken: a user object.
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

    /// The request, for rate limits.
    fn asked(&self, request: &Request) -> Asked {
        Asked::new(request, Ask::Confirmation, if self.email.is_empty() { &self.phone } else { &self.email })
    }

    /// Starts the client's wait until the next request.
    fn note(&self, request: &Request) {
        let config = &request.auth.config;
        let pause = if self.email.is_empty() { config.sms.max_frequency } else { config.smtp.max_frequency };
        request.auth.limits.note_asked(self.asked(request), pause);
    }

    /// The claims for the identity and metadata of user `id`.
    fn claims(&self, id: Uuid) -> Json {
        let mut claims = identity::claims(id, &self.email, "");
        for (key, value) in &self.data {
            claims.entry(key.clone()).or_insert_with(|| value.clone());
        }
        claims
    }

    /// An unconfirmed user built only from the request; `identity` is the id of its identity, if it gets one.
    fn waiting(&self, request: &Request, id: Uuid, aud: &str, identity: Option<Uuid>) -> User {
        let now = now();
        let claims = self.claims(id);
        let mut user = User::new(&self.email, &self.phone, aud, claims.clone());
        user.id = id;
        user.role = request.auth.config.jwt.default_group_name.trim().to_owned();
        user.app_metadata = Some(provider_metadata(&[self.provider()]));
        user.confirmation_sent_at = Some(now);
        let identity = identity.map(|identity| Identity {
            id: identity,
            provider_id: id.to_string(),
            user_id: id,
            identity_data: Some(claims),
            provider: self.provider().to_owned(),
            last_sign_in_at: Some(now),
            created_at: now,
            updated_at: now,
            email: self.email.clone(),
        });
        user.identities = Some(identity.into_iter().collect());
        user
    }
}

/// Answers with a session or an unconfirmed user. A taken address gets the same answer, so that it is not revealed.
///
/// Errors: 422 `signup_disabled`, 400 `validation_failed`, 422 `weak_password`, 400 `*_provider_disabled`,
/// 422 `user_already_exists` (with autoconfirm), 429 `over_*_rate_limit`.
pub async fn signup(request: &Request) -> AuthResult<HttpResponse> {
    crate::auth::outside::captcha::check(request).await?;
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

/// Signs up for `/otp` and `/magiclink`, where a code proves the address later. Gives a random password and
/// no session.
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
    auth.password_rules.check(&request.away(), &signup.password).await?;
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
    let existing = if provider == "email" {
        if !config.external.email_enabled {
            return Err(AuthError::bad_request(Code::EmailProviderDisabled, "Email signups are disabled"));
        }
        signup.email = parse_email(&signup.email)?;
        let db = request.db().await?;
        user::find_duplicate_email(&db, &signup.email, &aud, None, &auth.own_linking_domains()).await
    } else {
        if !config.external.phone_enabled {
            return Err(AuthError::bad_request(Code::PhoneProviderDisabled, "Phone signups are disabled"));
        }
        signup.phone = parse_phone(&signup.phone)?;
        let db = request.db().await?;
        user::find_by_phone(&db, &signup.phone, &aud).await.map_err(Into::into)
    }
    .or_internal("Database error finding user")?;

    // For an unconfirmed address the account stores when it was mailed. All others have the same wait.
    let confirmed = |user: &User| if provider == "email" { user.is_confirmed() } else { user.is_phone_confirmed() };
    let autoconfirm = if provider == "email" { config.mailer.autoconfirm } else { config.sms.autoconfirm };
    if proves && !autoconfirm && existing.as_ref().is_none_or(confirmed) {
        let too_soon = if provider == "email" { Code::OverEmailSendRateLimit } else { Code::OverSmsSendRateLimit };
        auth.limits.check_asked(&signup.asked(request), too_soon)?;
    }
    // The password is always hashed, so that the response time does not reveal a taken address.
    let hash = password::hash(&request.away(), &limits::client(request), &signup.password).await?;
    // Found by a verified identity of an account with another address: taken all the same.
    let elsewhere = |user: &User| provider == "email" && !user.email.eq_ignore_ascii_case(&signup.email);
    if let Some(user) = existing.as_ref().filter(|user| confirmed(user) || elsewhere(user)) {
        return taken(request, user, &signup, &aud).await;
    }
    let db = request.db().await?;
    let is_new = existing.is_none();
    let sealed = |user: &User| encryption::seal(&config.security.encryption, &user.id.to_string(), &hash);
    let user = match existing {
        Some(user) => user,
        None => {
            let mut user = User::new(&signup.email, &signup.phone, &aud, signup.data.clone());
            user.encrypted_password = Some(sealed(&user)?);
            user.app_metadata = Some(provider_metadata(&[provider]));
            hooks::before_user_created(request, &db, &user).await?;
            user
        }
    };
    // A code for an unconfirmed address carries no metadata, unless the request has some.
    let says = proves || !signup.data.is_empty();
    let proved_data = if is_new {
        ProvedData::Account
    } else {
        ProvedData::Own {
            encrypted_password: Some(sealed(&user)?),
            user_metadata: says.then(|| signup.claims(user.id)),
        }
    };
    // With autoconfirm on, upstream confirms an unconfirmed address for anybody. Here only the right password
    // gets the session.
    if autoconfirm && !is_new && proves {
        let stored = user.encrypted_password.as_deref().unwrap_or("");
        let hash = encryption::open(&config.security.encryption, &user.id.to_string(), stored)?;
        let address = if provider == "email" { &signup.email } else { &signup.phone };
        if !token::is_right(request, &aud, address, user.id, &signup.password, Some(&hash)).await? {
            return Err(AuthError::unprocessable(Code::UserAlreadyExists, "User already registered"));
        }
    }
    let attempt = Attempt { signup: &signup, is_new, proved_data, challenge: challenge.as_ref() };
    let stored = db
        .transaction(async |db| {
            let user = if is_new { user.clone() } else { user::as_of_now(db, &user).await? };
            store(request, db, user, &attempt).await
        })
        .await;
    let mut user: User = match stored {
        // Another request took the address, or it exists for another audience.
        Err(error) if is_new && matches!(error.code(), Some(Code::EmailExists | Code::PhoneExists)) => {
            return concurrent(request, &db, &signup, &aud).await;
        }
        other => other?,
    };
    // Of an account that has confirmed its other address, upstream gives anybody a session here.
    if !confirmed(&user) {
        signup.note(request);
    } else {
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
        // Upstream calls the hook only for new users that still have to confirm.
        return Ok(SignedUp::Session(Box::new(answer)));
    }
    if is_new {
        hooks::after_user_created(request, &db, &user).await.or_internal("Error invoking hook")?;
        return Ok(SignedUp::User(Box::new(user)));
    }
    // No stored data is shown: the answer is the same as for an unknown address.
    let identity = user.identities.take().into_iter().flatten().find(|identity| identity.provider == provider);
    Ok(SignedUp::User(Box::new(signup.waiting(request, user.id, &aud, identity.map(|identity| identity.id)))))
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
    user.insert(db).await.map_err(AuthError::unless_taken).or_internal("Database error saving new user")?;
    user.role = request.auth.config.jwt.default_group_name.trim().to_owned();
    user.update(db, &[Column::Role]).await.or_internal("Database error updating user")?;
    user.reload(db).await.or_internal("Database error loading user after sign-up")?;
    Ok(user)
}

/// A sign-up before it is stored.
struct Attempt<'a> {
    signup: &'a Signup,
    is_new: bool,
    proved_data: ProvedData,
    challenge: Option<&'a Challenge>,
}

async fn store(request: &Request, db: &Db, user: User, attempt: &Attempt<'_>) -> AuthResult<User> {
    let Attempt { signup, is_new, proved_data, challenge } = attempt;
    let (is_new, challenge) = (*is_new, *challenge);
    let config = &request.auth.config;
    let provider = signup.provider();
    let mut user = if is_new {
        create_user(request, db, user).await?
    } else {
        // Another attempt may be confirmed concurrently.
        user::lock(db, user.id).await?;
        user
    };
    let found = identity::find(db, &user.id.to_string(), provider).await?;
    let identity = match found {
        Some(identity) => identity,
        None => {
            // Hooks see the id, and the transaction may be repeated after them.
            let id = request.once(&format!("identity of {}", user.id), Uuid::new_v4);
            let identity = identity::create_as(db, id, user.id, provider, signup.claims(user.id)).await?;
            if is_new {
                user.user_metadata.clone_from(&identity.identity_data);
                user.update(db, &[Column::UserMetadata]).await?;
            }
            user.update_providers(db).await?;
            identity
        }
    };
    let fresh = is_new.then_some(identity.id);
    let client = limits::client(request);
    let origin = Origin::New(proved_data.clone());
    user.identities = Some(vec![identity]);
    let traits = json!({ "provider": provider });
    if provider == "email" {
        if config.mailer.autoconfirm {
            Entry::of(&user, Action::UserSignedUp).with(traits).record(db, config.audit_log_only).await?;
            user.confirm(db).await.or_internal("Database error updating user")?;
            // The answer shows the identity as confirmed.
            if let Some(identity) = user.identities.iter_mut().flatten().find(|i| Some(i.id) == fresh)
                && let Some(data) = &mut identity.identity_data
            {
                data.insert("email_verified".to_owned(), json!(true));
            }
        } else {
            Entry::of(&user, Action::UserConfirmationRequested).with(traits).record(db, config.audit_log_only).await?;
            let flow = match challenge {
                Some(challenge) => {
                    let flow = FlowState::new(provider, "email/signup", Some(user.id), Some(challenge));
                    flow.insert(db).await?;
                    Some(flow.id)
                }
                None => None,
            };
            // The mail uses the metadata of this attempt.
            let stored = user.user_metadata.clone();
            if let ProvedData::Own { user_metadata: Some(metadata), .. } = proved_data {
                user.user_metadata = Some(metadata.clone());
            }
            send_confirmation(request, db, &mut user, challenge).await?;
            user.user_metadata = stored;
            confirmation::record(db, user.id, &user.confirmation_token, &origin, &client, flow).await?;
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
        confirmation::record(db, user.id, &user.confirmation_token, &origin, &client, None).await?;
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
    let pause = config.smtp.max_frequency;
    require_pause(request, db, user.id, Purpose::Confirmation, pause, Code::OverEmailSendRateLimit).await?;
    let otp = otp::for_mail(request, "confirmation", &user.email);
    let hash = pkce::prefixed(request.auth.code_hasher.hash(&user.email, &otp), challenge);
    user.set_token(Purpose::Confirmation, &hash);
    mailer::send(request, db, user, Mail::Confirmation { otp: &otp }).await?;
    user.save_token(db, Purpose::Confirmation, hash).await.or_internal("Error sending confirmation email")
}

/// The address is confirmed by somebody: answers like for a new user, without stored data.
async fn taken(request: &Request, user: &User, signup: &Signup, aud: &str) -> AuthResult<SignedUp> {
    let config = &request.auth.config;
    let db = request.db().await?;
    Entry::of(user, Action::UserRepeatedSignup)
        .with(json!({ "provider": signup.provider() }))
        .record(&db, config.audit_log_only)
        .await?;
    drop(db);
    if !(config.mailer.autoconfirm || config.sms.autoconfirm) {
        if signup.email.is_empty() {
            sms::wait_as_if_sent(request).await?;
        } else {
            mailer::send_nobody(request, &signup.email, Mail::Confirmation { otp: "" }).await?;
        }
    }
    signup.note(request);
    nobody(request, signup, aud)
}

/// The answer for a taken address.
fn nobody(request: &Request, signup: &Signup, aud: &str) -> AuthResult<SignedUp> {
    let config = &request.auth.config;
    if config.mailer.autoconfirm || config.sms.autoconfirm {
        return Err(AuthError::unprocessable(Code::UserAlreadyExists, "User already registered"));
    }
    // Only the missing identity differs; applications use it to tell people that they have an account.
    Ok(SignedUp::User(Box::new(signup.waiting(request, Uuid::new_v4(), aud, None))))
}

async fn find_existing(db: &Db, signup: &Signup, aud: &str) -> AuthResult<Option<User>> {
    Ok(if signup.email.is_empty() {
        user::find_by_phone(db, &signup.phone, aud).await?
    } else {
        user::find_by_email(db, &signup.email, aud).await?
    })
}

/// Another request signed up the same address at once; this one answers as if it had come later.
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
            let identity = user.identities().first().map(|identity| identity.id);
            Ok(SignedUp::User(Box::new(signup.waiting(request, user.id, aud, identity))))
        }
        Some(user) => {
            request.away().leave()?;
            taken(request, &user, signup, aud).await
        }
        // The address belongs to another audience.
        None => nobody(request, signup, aud),
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
            let user = create_user(request, db, user.clone()).await?;
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
