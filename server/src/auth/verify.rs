//! `GET|POST /verify`: a link that was followed or a code that was typed. Each proves a mailbox or phone once.
//! Reference: supabase/auth `internal/api/verify.go`.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde_json::json;
use url::form_urlencoded::Serializer;

use super::address::{parse_email, parse_phone};
use super::encryption;
use super::error::{AuthError, AuthResult, Code, Meaning as _};
use super::limits::Bucket;
use super::mailer::{self, Notification};
use super::models::audit::{Action, Entry};
use super::models::one_time_token::{self, Purpose};
use super::models::user::{self, Column, User};
use super::models::{Json, flow_state};
use super::otp;
use super::pkce;
use super::request::{Request, ok};
use super::sms;
use super::store::Db;
use super::tokens;

const HALFWAY: &str = "Confirmation link accepted. Please proceed to confirm link sent to the other email";
const LINK_EXPIRED: &str = "Email link is invalid or has expired";
const CODE_EXPIRED: &str = "Token has expired or is invalid";

/// What is verified. Some types stand for several purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Signup,
    Invite,
    Recovery,
    MagicLink,
    EmailChange,
    /// A pending sign-up or a sign-in link, whichever has this token.
    Email,
    Sms,
    PhoneChange,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "signup" => Self::Signup,
            "invite" => Self::Invite,
            "recovery" => Self::Recovery,
            "magiclink" => Self::MagicLink,
            "email_change" => Self::EmailChange,
            "email" => Self::Email,
            "sms" => Self::Sms,
            "phone_change" => Self::PhoneChange,
            _ => return None,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Signup => "signup",
            Self::Invite => "invite",
            Self::Recovery => "recovery",
            Self::MagicLink => "magiclink",
            Self::EmailChange => "email_change",
            Self::Email => "email",
            Self::Sms => "sms",
            Self::PhoneChange => "phone_change",
        }
    }

    /// The purposes whose hashes it opens; none for codes that come by phone.
    fn purposes(self) -> &'static [Purpose] {
        match self {
            Self::Signup | Self::Invite => &[Purpose::Confirmation],
            Self::Recovery | Self::MagicLink => &[Purpose::Recovery],
            Self::Email => &[Purpose::Confirmation, Purpose::Recovery],
            Self::EmailChange => &[Purpose::EmailChangeCurrent, Purpose::EmailChangeNew],
            Self::Sms | Self::PhoneChange => &[],
        }
    }
}

/// How the proof was presented.
enum Proof {
    /// The hash of a link.
    Hash(String),
    /// A code typed for an address or a number; `hash` is what it should hash to.
    Code { email: String, phone: String, code: String, hash: String },
}

impl Proof {
    fn hash(&self) -> &str {
        match self {
            Self::Hash(hash) | Self::Code { hash, .. } => hash,
        }
    }

    fn phone(&self) -> &str {
        match self {
            Self::Hash(_) => "",
            Self::Code { phone, .. } => phone,
        }
    }
}

/// `GET /verify`: answers 303 to the redirect target, whatever the outcome, once type and token are there.
pub async fn get(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::Verify, request)?;
    let (kind, token) = (request.query("type").unwrap_or(""), request.query("token").unwrap_or(""));
    if kind.is_empty() {
        return Err(AuthError::invalid("Verify requires a verification type"));
    }
    if token.is_empty() {
        return Err(AuthError::invalid("Verify requires a token or a token hash"));
    }
    let target = request.redirect_target();
    let pkce = token.starts_with(pkce::PREFIX);
    let location = match follow(request, kind, token, &target, pkce).await {
        Ok(location) => location,
        Err(error @ (AuthError::Unhandled(_) | AuthError::MethodNotAllowed(_) | AuthError::RouteNotFound)) => {
            return Err(error);
        }
        Err(error) => error_redirect(&error, &target, pkce),
    };
    Ok(see_other(&location))
}

/// 303 to `location`.
pub fn see_other(location: &str) -> HttpResponse {
    HttpResponse::build(StatusCode::SEE_OTHER).insert_header(("location", ascii(location))).finish()
}

/// A header holds ASCII: other characters are percent-encoded.
pub fn ascii(location: &str) -> String {
    let mut out = String::with_capacity(location.len());
    for byte in location.bytes() {
        if byte.is_ascii() && !byte.is_ascii_control() {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

async fn follow(request: &Request, kind: &str, token: &str, target: &str, pkce: bool) -> AuthResult<String> {
    let proof = Proof::Hash(token.to_owned());
    let grant = request.grant();
    let db = request.db().await?;
    let (location, notices) = db
        .transaction(async |db| {
            let Some(verified) = verify(request, db, Kind::parse(kind), &proof, "").await? else {
                return Ok((halfway_redirect(target, pkce), None));
            };
            if pkce {
                // A state belongs to the method the mail was asked for.
                let method = if kind == "signup" { "email/signup" } else { kind };
                let code = flow_state::issue_auth_code(db, verified.user.id, method).await?;
                let location = with_query(target, &[("code", &code)]);
                return Ok((location, Some((verified.user, verified.notices))));
            }
            let Verified { user, kind, notices } = verified;
            let answer = tokens::issue(request, db, user, "otp", &grant).await?;
            let location = answer.as_redirect(target, &[("type", kind.as_str())]);
            Ok((location, Some((answer.user, notices))))
        })
        .await?;
    if let Some((user, notices)) = notices {
        notices.send(request, &db, &user).await;
    }
    Ok(location)
}

/// `POST /verify`: answers with a session.
///
/// Errors: 403 `otp_expired` for whatever does not match, 403 `user_banned`, 400 `validation_failed`.
pub async fn post(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::Verify, request)?;
    let params = request.params()?;
    let (kind, token, hash) = (params.text("type")?, params.text("token")?, params.text("token_hash")?);
    let (email, phone, redirect) = (params.text("email")?, params.text("phone")?, params.text("redirect_to")?);
    if kind.is_empty() {
        return Err(AuthError::invalid("Verify requires a verification type"));
    }
    let proof = match (token.is_empty(), hash.is_empty()) {
        (true, true) | (false, false) => {
            return Err(AuthError::invalid("Verify requires either a token or a token hash"));
        }
        (true, false) if !(email.is_empty() && phone.is_empty() && redirect.is_empty()) => {
            return Err(AuthError::invalid("Only the token_hash and type should be provided"));
        }
        (true, false) => Proof::Hash(hash),
        (false, true) => match (email.is_empty(), phone.is_empty()) {
            (true, false) => {
                let phone = parse_phone(&phone)?;
                let hash = otp::hash(&phone, &token);
                Proof::Code { email: String::new(), phone, code: token, hash }
            }
            (false, true) => {
                let email = parse_email(&email)
                    .map_err(|_| AuthError::unprocessable(Code::ValidationFailed, "Invalid email format"))?;
                let hash = otp::hash(&email, &token);
                Proof::Code { email, phone: String::new(), code: token, hash }
            }
            _ => {
                let message = "Only an email address or phone number should be provided on verify";
                return Err(AuthError::invalid(message));
            }
        },
    };
    let aud = request.audience(None);
    let grant = request.grant();
    let db = request.db().await?;
    let outcome = db
        .transaction(async |db| {
            let Some(Verified { user, notices, .. }) = verify(request, db, Kind::parse(&kind), &proof, &aud).await?
            else {
                return Ok(None);
            };
            let answer = tokens::issue(request, db, user, "otp", &grant).await?;
            Ok(Some((answer, notices)))
        })
        .await?;
    let Some((answer, notices)) = outcome else {
        // The code is a text here: clients read it as one.
        return ok(&json!({ "msg": HALFWAY, "code": "200" }));
    };
    notices.send(request, &db, &answer.user).await;
    answer.respond()
}

/// A proof that was accepted.
struct Verified {
    user: User,
    /// What it turned out to prove.
    kind: Kind,
    notices: Notices,
}

/// Notifications to send once everything is committed.
#[derive(Default)]
struct Notices {
    old_email: Option<String>,
    old_phone: Option<String>,
    phone_identity: bool,
}

impl Notices {
    async fn send(&self, request: &Request, db: &Db, user: &User) {
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

/// Checks the proof and does what it allows; `None` for the first half of a change both addresses confirm.
async fn verify(
    request: &Request,
    db: &Db,
    kind: Option<Kind>,
    proof: &Proof,
    aud: &str,
) -> AuthResult<Option<Verified>> {
    let (mut user, kind) = match proof {
        Proof::Hash(hash) => by_hash(request, db, kind, hash).await?,
        Proof::Code { .. } => by_code(request, db, kind, proof, aud).await?,
    };
    let mut notices = Notices::default();
    match kind {
        Kind::Signup | Kind::Invite => confirm_signup(request, db, &mut user).await?,
        Kind::Recovery | Kind::MagicLink => {
            confirm_recovery(request, db, &mut user).await.or_internal("Database error updating user")?;
        }
        Kind::EmailChange => {
            if first_half(request, db, &mut user, proof).await? {
                return Ok(None);
            }
            notices.old_email = Some(user.email.clone());
            change_email(request, db, &mut user).await?;
        }
        Kind::Sms | Kind::PhoneChange => {
            let old_phone = user.phone.clone();
            notices.phone_identity = confirm_phone(request, db, &mut user, kind, proof.phone()).await?;
            notices.old_phone = (kind == Kind::PhoneChange).then_some(old_phone);
        }
        Kind::Email => return Err(AuthError::invalid("Unsupported verification type")),
    }
    user.update_providers(db).await?;
    user.reload(db).await?;
    Ok(Some(Verified { user, kind, notices }))
}

fn expired(message: &str) -> AuthError {
    AuthError::forbidden(Code::OtpExpired, message)
}

fn refuse_banned(user: &User) -> AuthResult<()> {
    if user.is_banned() {
        return Err(AuthError::forbidden(Code::UserBanned, "User is banned"));
    }
    Ok(())
}

/// The user of a link. The token's row stays locked, so a link is followed once.
async fn by_hash(request: &Request, db: &Db, kind: Option<Kind>, hash: &str) -> AuthResult<(User, Kind)> {
    let config = &request.auth.config.mailer;
    let kind = kind
        .filter(|kind| !kind.purposes().is_empty())
        .ok_or_else(|| AuthError::invalid("Invalid email verification type"))?;
    let user = user::find_by_token(db, hash, kind.purposes())
        .await
        .or_internal("Database error finding user from email link")?
        .ok_or_else(|| expired(LINK_EXPIRED))?;
    refuse_banned(&user)?;
    let (kind, sent_at) = match kind {
        Kind::Email if user.recovery_token == hash => (Kind::MagicLink, user.recovery_sent_at),
        Kind::Email => (Kind::Signup, user.confirmation_sent_at),
        Kind::Signup | Kind::Invite => (kind, user.confirmation_sent_at),
        Kind::EmailChange => (kind, user.email_change_sent_at),
        _ => (kind, user.recovery_sent_at),
    };
    if sent_at.is_none_or(|sent_at| otp::is_expired(sent_at, config.otp_exp)) {
        return Err(expired(LINK_EXPIRED));
    }
    Ok((user, kind))
}

/// The user of a typed code. The user's row is locked before the code is compared, so it is used once.
async fn by_code(request: &Request, db: &Db, kind: Option<Kind>, proof: &Proof, aud: &str) -> AuthResult<(User, Kind)> {
    let config = &request.auth.config;
    let Proof::Code { email, phone, code, hash } = proof else { return Err(expired(CODE_EXPIRED)) };
    let found = match kind {
        Some(Kind::PhoneChange) => user::find_by_phone_change(db, phone, aud).await,
        Some(Kind::Sms) => user::find_by_phone(db, phone, aud).await,
        Some(Kind::EmailChange) => {
            let prefixed = format!("{}{hash}", pkce::PREFIX);
            let mut found = None;
            let purposes: &[Purpose] = if config.mailer.secure_email_change {
                &[Purpose::EmailChangeCurrent, Purpose::EmailChangeNew]
            } else {
                &[Purpose::EmailChangeNew]
            };
            for hash in [hash.as_str(), &prefixed] {
                if found.is_none() {
                    found = user::find_by_token(db, hash, purposes).await.or_internal("Database error finding user")?;
                }
            }
            Ok(found.filter(|user| user.aud == aud))
        }
        _ => user::find_by_email(db, email, aud).await,
    };
    let found = found.or_internal("Database error finding user")?.ok_or_else(|| expired(CODE_EXPIRED))?;
    user::lock(db, found.id).await?;
    let user = user::find_by_id(db, found.id).await?.ok_or_else(|| expired(CODE_EXPIRED))?;
    refuse_banned(&user)?;
    let mail = config.mailer.otp_exp;
    let valid = |stored: &str, sent_at, validity| otp::is_valid(hash, stored, sent_at, validity);
    let confirmation = |validity| valid(&user.confirmation_token, user.confirmation_sent_at, validity);
    let recovery = valid(&user.recovery_token, user.recovery_sent_at, mail);
    let accepted = match kind {
        Some(Kind::Email) if confirmation(mail) => Some(Kind::Signup),
        Some(Kind::Email) if recovery => Some(Kind::MagicLink),
        Some(kind @ (Kind::Signup | Kind::Invite)) if confirmation(mail) => Some(kind),
        Some(kind @ (Kind::Recovery | Kind::MagicLink)) if recovery => Some(kind),
        Some(Kind::EmailChange) => [&user.email_change_token_current, &user.email_change_token_new]
            .iter()
            .any(|stored| valid(stored, user.email_change_sent_at, mail))
            .then_some(Kind::EmailChange),
        Some(kind @ (Kind::Sms | Kind::PhoneChange)) => {
            let test = config.sms.test_otp(phone, chrono::Utc::now()) == Some(code.as_str());
            let (stored, sent_at) = if kind == Kind::Sms {
                (&user.confirmation_token, user.confirmation_sent_at)
            } else {
                (&user.phone_change_token, user.phone_change_sent_at)
            };
            // A provider that makes the codes says how long they live. One that nobody asked for here opens nothing:
            // upstream leaves that to the provider, who knows the number but not what the code was for.
            let right = if test || stored.is_empty() {
                test
            } else if let Some(approved) = sms::check_code(request, phone, code).await {
                approved
            } else {
                valid(stored, sent_at, config.sms.otp_exp)
            };
            right.then_some(kind)
        }
        _ => None,
    };
    accepted.map(|kind| (user, kind)).ok_or_else(|| expired(CODE_EXPIRED))
}

fn flag(name: &str) -> Json {
    let mut updates = Json::new();
    updates.insert(name.to_owned(), json!(true));
    updates
}

/// Confirms the address. Somebody invited without a password gets one nobody knows.
async fn confirm_signup(request: &Request, db: &Db, user: &mut User) -> AuthResult<()> {
    let auth = &request.auth;
    if !user.has_password() && user.invited_at.is_some() {
        let password = otp::unknown_password(&[]);
        let hash = auth.hasher.hash(&password).await?;
        let sealed = encryption::seal(&auth.config.security.encryption, &user.id.to_string(), &hash)?;
        user.encrypted_password = Some(sealed);
        user.update_password(db, None).await.or_internal("Error storing password")?;
    }
    Entry::of(user, Action::UserSignedUp)
        .with(json!({ "provider": "email" }))
        .record(db, auth.config.audit_log_only)
        .await?;
    user.confirm(db).await.or_internal("Error confirming user")?;
    let email = user.email.clone();
    for identity in user.identities.iter_mut().flatten().filter(|i| !email.is_empty() && i.email == email) {
        identity
            .merge_data(db, &flag("email_verified"))
            .await
            .or_internal("Error setting email_verified to true on identity")?;
    }
    Ok(())
}

async fn confirm_recovery(request: &Request, db: &Db, user: &mut User) -> AuthResult<()> {
    let log_only = request.auth.config.audit_log_only;
    user.recover(db).await?;
    if user.is_confirmed() {
        Entry::of(user, Action::Login).record(db, log_only).await?;
    } else {
        Entry::of(user, Action::UserSignedUp).with(json!({ "provider": "email" })).record(db, log_only).await?;
        user.confirm(db).await?;
    }
    Ok(())
}

/// Where both addresses must confirm and none has: notes this one. Says whether the other is still missing.
async fn first_half(request: &Request, db: &Db, user: &mut User, proof: &Proof) -> AuthResult<bool> {
    let config = &request.auth.config.mailer;
    if config.autoconfirm
        || !config.secure_email_change
        || user.email_change_confirm_status != 0
        || user.email.is_empty()
    {
        return Ok(false);
    }
    let hash = proof.hash();
    let is = |stored: &str| !stored.is_empty() && (stored == hash || stored.strip_prefix(pkce::PREFIX) == Some(hash));
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
    user.confirm_email_change(db).await.or_internal("Error confirm email")?;
    user.identities = Some(super::models::identity::of_user(db, user.id).await?);
    Ok(())
}

/// Confirms the number, or makes the pending one the user's; says whether an identity was made for it.
pub async fn confirm_number_change(request: &Request, db: &Db, user: &mut User, phone: &str) -> AuthResult<bool> {
    confirm_phone(request, db, user, Kind::PhoneChange, phone).await
}

async fn confirm_phone(request: &Request, db: &Db, user: &mut User, kind: Kind, phone: &str) -> AuthResult<bool> {
    let log_only = request.auth.config.audit_log_only;
    let mut created = false;
    if kind == Kind::Sms {
        Entry::of(user, Action::UserSignedUp).with(json!({ "provider": "phone" })).record(db, log_only).await?;
        user.confirm_phone(db).await.or_internal("Error confirming user")?;
    } else {
        Entry::of(user, Action::UserModified).record(db, log_only).await?;
        let mut data = flag("phone_verified");
        data.insert("phone".to_owned(), json!(phone));
        created = user::upsert_identity(db, user, "phone", &data).await?;
        user.confirm_phone_change(db).await.or_internal("Error confirming user")?;
    }
    if user.is_anonymous {
        user.is_anonymous = false;
        user.update(db, &[Column::IsAnonymous]).await?;
    }
    user.identities = Some(super::models::identity::of_user(db, user.id).await?);
    Ok(created)
}

// ---------------------------------------------------------------- redirects

fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut sorted = pairs.to_vec();
    sorted.sort_unstable();
    Serializer::new(String::new()).extend_pairs(sorted).finish()
}

/// `target` with `pairs` in its query, sorted, replacing those of the same name; its fragment is dropped.
pub fn with_query(target: &str, pairs: &[(&str, &str)]) -> String {
    let (base, query) = split(target);
    let mut all: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .filter(|(name, _)| !pairs.iter().any(|(new, _)| new == name))
        .collect();
    all.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    // Go's encoding sorts by name and keeps the order of values of one name.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    if all.is_empty() {
        return base.to_owned();
    }
    format!("{base}?{}", Serializer::new(String::new()).extend_pairs(all).finish())
}

fn split(target: &str) -> (&str, &str) {
    let without_fragment = target.split('#').next().unwrap_or("");
    without_fragment.split_once('?').unwrap_or((without_fragment, ""))
}

/// `target` with `pairs` as its fragment, sorted.
pub fn with_fragment(target: &str, pairs: &[(&str, &str)]) -> String {
    format!("{}#{}", target.split('#').next().unwrap_or(""), encoded(pairs).replace('%', "%25"))
}

fn halfway_redirect(target: &str, pkce: bool) -> String {
    let target = if pkce { with_query(target, &[("message", HALFWAY)]) } else { with_query(target, &[]) };
    with_fragment(&target, &[("message", HALFWAY), ("sb", "")])
}

/// OAuth's name of a status, where it has one.
pub fn oauth_error(status: StatusCode) -> Option<&'static str> {
    Some(match status.as_u16() {
        400 => "invalid_request",
        401 => "unauthorized_client",
        403 => "access_denied",
        500 => "server_error",
        503 => "temporarily_unavailable",
        _ => return None,
    })
}

fn error_redirect(error: &AuthError, target: &str, pkce: bool) -> String {
    let mut pairs = Vec::new();
    if let Some(name) = oauth_error(error.status()) {
        pairs.push(("error", name));
    }
    pairs.push(("error_code", error.code().map_or("", Code::as_str)));
    pairs.push(("error_description", error.message()));
    let target = if pkce { with_query(target, &pairs) } else { target.to_owned() };
    pairs.push(("sb", ""));
    with_fragment(&target, &pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_pairs_join_the_query_and_replace_the_fragment() {
        assert_eq!(with_query("https://a/p?z=1&code=x#f", &[("code", "c")]), "https://a/p?code=c&z=1");
        assert_eq!(with_fragment("https://a/p?z=1#f", &[("b", "2 3"), ("a", ":")]), "https://a/p?z=1#a=%253A&b=2+3");
    }

    #[test]
    fn an_error_goes_into_the_fragment_and_for_pkce_into_the_query_too() {
        let error = expired(LINK_EXPIRED);
        let pairs = "error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired";
        assert_eq!(error_redirect(&error, "https://a", false), format!("https://a#{pairs}&sb="));
        assert_eq!(error_redirect(&error, "https://a?error=old", true), format!("https://a?{pairs}#{pairs}&sb="));
    }
}
