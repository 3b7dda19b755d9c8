//! `GET|POST /verify`: a followed link or a typed code. Each proves a mailbox or phone once. Reference:
//! supabase/auth `internal/api/verify.go`.

use actix_web::HttpResponse;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::credentials::{encryption, otp, password, pkce, tokens};
use crate::auth::door::address::{parse_email, parse_phone};
use crate::auth::door::limits::{self, Bucket};
use crate::auth::door::location::{error_redirect, halfway_redirect, see_other, with_query};
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::changes::{Notices, change_email, change_phone, confirm_phone, first_half, flag};
use crate::auth::flows::user::ensure_email_identity;
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::confirmation::{self, Confirmation, ProvedData};
use crate::auth::models::flow_state;
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, User};
use crate::auth::outside::sms;

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

    /// The purposes of its hashes; none for codes sent by phone.
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
    /// A code typed for an address or a number; `hashes` are what it may hash to, `plain` is what upstream would make of it.
    Code { email: String, phone: String, code: String, hashes: Vec<String>, plain: String },
}

impl Proof {
    fn is(&self, stored: &str) -> bool {
        match self {
            Self::Hash(hash) => hash == stored,
            Self::Code { hashes, plain, .. } => hashes.iter().chain([plain]).any(|hash| hash == stored),
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

async fn follow(request: &Request, kind: &str, token: &str, target: &str, pkce: bool) -> AuthResult<String> {
    let proof = Proof::Hash(token.to_owned());
    let grant = request.grant();
    let db = request.db().await?;
    let (location, notices) = db
        .transaction(async |db| {
            let Some(verified) = verify(request, db, Kind::parse(kind), &proof, "").await? else {
                return Ok((halfway_redirect(target, HALFWAY, pkce), None));
            };
            if pkce {
                // A flow state belongs to the method for which the mail was requested.
                let method = if kind == "signup" { "email/signup" } else { kind };
                let code = flow_state::issue_auth_code(db, verified.user.id, method, verified.flow).await?;
                let location = with_query(target, &[("code", &code)]);
                return Ok((location, Some((verified.user, verified.notices))));
            }
            let Verified { user, kind, notices, .. } = verified;
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
/// Errors: 403 `otp_expired` if anything does not match, 403 `user_banned`, 400 `validation_failed`.
pub async fn post(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::Verify, request)?;
    let params = request.params()?;
    let (kind, token, hash) = (params.text("type")?, params.text("token")?, params.text("token_hash")?);
    let (email, phone, redirect) = (params.text("email")?, params.text("phone")?, params.text("redirect_to")?);
    if kind.is_empty() {
        return Err(AuthError::invalid("Verify requires a verification type"));
    }
    let code_hasher = &request.auth.code_hasher;
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
                let (hashes, plain) = (code_hasher.hashes(&phone, &token), otp::plain_hash(&phone, &token));
                Proof::Code { email: String::new(), phone, code: token, hashes, plain }
            }
            (false, true) => {
                let email = parse_email(&email)
                    .map_err(|_| AuthError::unprocessable(Code::ValidationFailed, "Invalid email format"))?;
                let (hashes, plain) = (code_hasher.hashes(&email, &token), otp::plain_hash(&email, &token));
                Proof::Code { email, phone: String::new(), code: token, hashes, plain }
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
        // A text, because clients expect one here.
        return ok(&json!({ "msg": HALFWAY, "code": "200" }));
    };
    notices.send(request, &db, &answer.user).await;
    answer.respond()
}

/// A proof that was accepted.
struct Verified {
    user: User,
    /// What it proved.
    kind: Kind,
    notices: Notices,
    /// The PKCE flow that began with it, if that is known.
    flow: Option<Uuid>,
}

/// Checks the proof and carries out its purpose. `None` for the first confirmation of a change that both addresses
/// confirm.
async fn verify(
    request: &Request,
    db: &Db,
    kind: Option<Kind>,
    proof: &Proof,
    aud: &str,
) -> AuthResult<Option<Verified>> {
    let Found { mut user, kind, attempt } = match proof {
        Proof::Hash(hash) => by_hash(request, db, kind, hash).await?,
        Proof::Code { .. } => by_code(request, db, kind, proof, aud).await?,
    };
    let mut notices = Notices::default();
    let is_own = |attempt: &Confirmation| matches!(attempt.proved_data, ProvedData::Own { .. });
    let takes_over = matches!(kind, Kind::Signup | Kind::Invite)
        && attempt.as_ref().is_some_and(is_own)
        && user.has_claimed_email(db).await.or_internal("Database error updating user")?;
    if takes_over {
        user.hand_over(db).await.or_internal("Database error updating user")?;
    }
    if let Some(attempt) = attempt.as_ref().filter(|_| user.is_unproved()) {
        user.receive(db, &attempt.proved_data).await.or_internal("Database error updating user")?;
    }
    match kind {
        Kind::Signup | Kind::Invite => {
            confirm_signup(request, db, &mut user).await?;
            if takes_over {
                ensure_email_identity(db, &mut user).await?;
            }
        }
        Kind::Recovery | Kind::MagicLink => {
            confirm_recovery(request, db, &mut user).await.or_internal("Database error updating user")?;
        }
        Kind::EmailChange => {
            if first_half(request, db, &mut user, |stored| proof.is(stored)).await? {
                return Ok(None);
            }
            notices.old_email = Some(user.email.clone());
            change_email(request, db, &mut user).await?;
        }
        Kind::Sms => confirm_phone(request, db, &mut user).await?,
        Kind::PhoneChange => {
            notices.old_phone = Some(user.phone.clone());
            notices.phone_identity = change_phone(request, db, &mut user, proof.phone()).await?;
        }
        Kind::Email => return Err(AuthError::invalid("Unsupported verification type")),
    }
    user.update_providers(db).await?;
    user.reload(db).await?;
    Ok(Some(Verified { user, kind, notices, flow: attempt.and_then(|attempt| attempt.flow_state_id) }))
}

/// The user of the proof, and the sign-up attempt that it was sent for.
struct Found {
    user: User,
    kind: Kind,
    attempt: Option<Confirmation>,
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

/// The user of a link. The user's row stays locked, so a link works once.
async fn by_hash(request: &Request, db: &Db, kind: Option<Kind>, hash: &str) -> AuthResult<Found> {
    let config = &request.auth.config.mailer;
    let kind = kind
        .filter(|kind| !kind.purposes().is_empty())
        .ok_or_else(|| AuthError::invalid("Invalid email verification type"))?;
    let user = user::lock_by_token(db, hash, kind.purposes())
        .await
        .or_internal("Database error finding user from email link")?
        .ok_or_else(|| expired(LINK_EXPIRED))?;
    refuse_banned(&user)?;
    let kind = match kind {
        Kind::Email if user.recovery_token == hash => Kind::MagicLink,
        Kind::Email => Kind::Signup,
        kind => kind,
    };
    let attempt = match kind {
        Kind::Signup | Kind::Invite => confirmation::find(db, user.id, hash).await?,
        _ => None,
    };
    let (kind, sent_at) = match kind {
        Kind::Signup | Kind::Invite if user.confirmation_token == hash => (kind, user.confirmation_sent_at),
        Kind::Signup | Kind::Invite => (kind, attempt.as_ref().map(|attempt| attempt.sent_at)),
        Kind::EmailChange => (kind, user.email_change_sent_at),
        _ => (kind, user.recovery_sent_at),
    };
    if sent_at.is_none_or(|sent_at| otp::is_expired(sent_at, config.otp_exp)) {
        return Err(expired(LINK_EXPIRED));
    }
    Ok(Found { user, kind, attempt })
}

/// The user of a typed code. The user's row is locked before the code is compared, so it is used once.
async fn by_code(request: &Request, db: &Db, kind: Option<Kind>, proof: &Proof, aud: &str) -> AuthResult<Found> {
    let config = &request.auth.config;
    let Proof::Code { email, phone, code, hashes, plain } = proof else { return Err(expired(CODE_EXPIRED)) };
    let guesses = &request.auth.guesses;
    let client = limits::client(request);
    // A change of address is found by its code, and several accounts may await one at the same address. So tries are
    // counted per address and hour.
    let hour = chrono::Utc::now().timestamp() / 3600;
    let by_address = (guesses.target(("changes", email)), guesses.target(("changes", email, hour)));
    // Only once, even if the transaction is repeated.
    let may_change = || guesses.may_try(by_address.0, by_address.1, &client);
    if kind == Some(Kind::EmailChange) && !request.once("a try of a change", may_change) {
        return Err(expired(CODE_EXPIRED));
    }
    let found = match kind {
        Some(Kind::PhoneChange) => {
            let hashes: Vec<&str> = hashes.iter().chain([plain]).map(String::as_str).collect();
            user::find_by_phone_change(db, phone, aud, &hashes).await
        }
        Some(Kind::Sms) => user::find_by_phone(db, phone, aud).await,
        Some(Kind::EmailChange) => {
            let mut found = None;
            let purposes: &[Purpose] = if config.mailer.secure_email_change {
                &[Purpose::EmailChangeCurrent, Purpose::EmailChangeNew]
            } else {
                &[Purpose::EmailChangeNew]
            };
            let candidates = hashes.iter().chain([plain]);
            for hash in candidates.flat_map(|hash| [hash.clone(), format!("{}{hash}", pkce::PREFIX)]) {
                if found.is_none() {
                    found =
                        user::find_by_token(db, &hash, purposes).await.or_internal("Database error finding user")?;
                }
            }
            Ok(found.filter(|user| user.aud == aud))
        }
        _ => user::find_by_email(db, email, aud).await,
    };
    let found = found.or_internal("Database error finding user")?.ok_or_else(|| expired(CODE_EXPIRED))?;
    let user = user::find_and_lock(db, found.id).await?.ok_or_else(|| expired(CODE_EXPIRED))?;
    // Counted before the check, per sent code: a new code has its own tries, and links stay valid however often codes
    // are guessed.
    let account = guesses.target(("codes", user.id));
    let target = guesses.target((
        user.id,
        &user.confirmation_token,
        &user.recovery_token,
        &user.email_change_token_current,
        &user.email_change_token_new,
        &user.phone_change_token,
    ));
    if !request.once("a try of a code", || guesses.may_try(account, target, &client)) {
        return Err(expired(CODE_EXPIRED));
    }
    let mail = config.mailer.otp_exp;
    let valid = |stored: &str, sent_at, validity| {
        hashes.iter().chain([plain]).any(|hash| otp::is_valid(hash, stored, sent_at, validity))
    };
    let mut attempt = None;
    if matches!(kind, Some(Kind::Email | Kind::Signup | Kind::Invite | Kind::Sms)) {
        for hash in hashes {
            if attempt.is_none() {
                attempt = confirmation::find(db, user.id, hash).await?;
            }
        }
    }
    // The newest token is the user's; tokens of other attempts stay valid beside it.
    let is_newest = hashes.iter().any(|hash| pkce::bare(&user.confirmation_token) == hash);
    let earlier = attempt.as_ref().filter(|_| !is_newest).map(|attempt| attempt.sent_at);
    let confirmation = |validity| {
        valid(&user.confirmation_token, user.confirmation_sent_at, validity)
            || earlier.is_some_and(|sent_at| !otp::is_expired(sent_at, validity))
    };
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
            let stored = if kind == Kind::Sms { &user.confirmation_token } else { &user.phone_change_token };
            // A provider that makes the codes decides how long they live. A code that was not requested here is
            // refused. Upstream leaves that to the provider, which knows the number but not the code's purpose.
            let right = if test || stored.is_empty() {
                test
            } else if let Some(approved) = sms::check_code(request, phone, code).await? {
                approved
            } else if kind == Kind::Sms {
                confirmation(config.sms.otp_exp)
            } else {
                valid(stored, user.phone_change_sent_at, config.sms.otp_exp)
            };
            right.then_some(kind)
        }
        _ => None,
    };
    let kind = accepted.ok_or_else(|| expired(CODE_EXPIRED))?;
    guesses.was_right(account, target);
    guesses.was_right(by_address.0, by_address.1);
    // Upstream reveals a ban to anybody who names the address.
    refuse_banned(&user)?;
    if kind == Kind::Sms && attempt.is_none() {
        // The provider made the code: it was sent for the newest attempt.
        attempt = confirmation::find(db, user.id, &user.confirmation_token).await?;
    }
    Ok(Found { user, kind, attempt })
}

/// Confirms the address. An invited user without a password gets a random one.
async fn confirm_signup(request: &Request, db: &Db, user: &mut User) -> AuthResult<()> {
    let auth = &request.auth;
    if !user.has_password() && user.invited_at.is_some() {
        let client = limits::client(request);
        // The user's row is locked here, so hashing happens outside and the transaction runs again.
        let hash = request.ask(format!("password of {}", user.id), |away| async move {
            let password = otp::unknown_password(&[]);
            password::hash(&away, &client, &password).await.map(Value::from)
        });
        let hash = hash.await?;
        let hash = hash.as_str().unwrap_or_default();
        let sealed = encryption::seal(&auth.config.security.encryption, &user.id.to_string(), hash)?;
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
    // Anything added to the account before the address was proved may come from anybody.
    let was_claimed = user.has_claimed_email(db).await?;
    if was_claimed {
        user.hand_over(db).await?;
    } else if user.is_unproved() {
        user.receive(db, &ProvedData::PROOF).await?;
    }
    if user.is_confirmed() {
        Entry::of(user, Action::Login).record(db, log_only).await?;
    } else {
        Entry::of(user, Action::UserSignedUp).with(json!({ "provider": "email" })).record(db, log_only).await?;
        user.confirm(db).await?;
    }
    if was_claimed {
        ensure_email_identity(db, user).await?;
    }
    Ok(())
}
