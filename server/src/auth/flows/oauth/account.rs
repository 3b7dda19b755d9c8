//! Finds the user of an external identity: an existing one, one to link, or a new one. Reference:
//! supabase/auth `internal/models/linking.go`, `internal/api/external.go`
//! (`createAccountFromExternalIdentity`), `internal/api/identity.go`.

use serde_json::json;
use uuid::Uuid;

use super::claims::Profile;
use crate::auth::door::bearer::no_session;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::signup::{create_user, provider_metadata, send_confirmation};
use crate::auth::flows::user::insufficient_aal;
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::identity::{self, Identity};
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Column, User};
use crate::auth::models::{Json, session, unproved_address};
use crate::auth::outside::hooks;
use crate::auth::outside::mailer::{self, Notification};

/// What to do with an identity.
#[allow(clippy::large_enum_variant, reason = "made once per sign-in and taken apart at once")]
enum Decision {
    Exists(Box<User>, Identity),
    Link(Box<User>),
    Create,
    Several,
}

struct Linking {
    decision: Decision,
    domain: String,
    /// The address of the new or found user.
    email: String,
    /// Whether the provider has verified that address, or for a user without one, the address that it names.
    verified: bool,
    /// Whether the provider names an address, the user's or not.
    names_email: bool,
}

/// A user, or a refusal that is returned after committing what was stored.
pub enum Outcome {
    User(Box<User>, bool),
    Refused(AuthError),
}

/// The linking domain: accounts are linked by address only within it.
fn domain(request: &Request, provider: &str) -> String {
    if provider.starts_with("sso:") {
        return provider.to_owned();
    }
    let own = &request.auth.config.provider_linking_domains;
    own.get(&provider.to_lowercase()).cloned().unwrap_or_else(|| "default".to_owned())
}

async fn decide(request: &Request, db: &Db, profile: &Profile, provider: &str, aud: &str) -> AuthResult<Linking> {
    let trusted: Vec<String> = profile
        .emails
        .iter()
        // Autoconfirm only skips the mail and verifies nothing. Upstream links by any address under it.
        .filter(|address| !address.email.is_empty() && address.verified)
        .map(|address| address.email.to_ascii_lowercase())
        .collect();
    let primary = profile.emails.iter().rfind(|address| address.primary);
    let mut linking = Linking {
        decision: Decision::Create,
        domain: domain(request, provider),
        email: primary.map(|address| address.email.to_ascii_lowercase()).unwrap_or_default(),
        verified: primary.is_some_and(|address| address.verified),
        names_email: primary.is_some_and(|address| !address.email.is_empty()),
    };
    if let Some(known) = identity::find(db, profile.subject(), provider).await? {
        let user = user::find_by_id(db, known.user_id)
            .await?
            .ok_or_else(|| AuthError::not_found(Code::UserNotFound, "User not found"))?;
        linking.email.clone_from(&user.email);
        linking.verified = vouches(&trusted, &user, &linking);
        linking.decision = Decision::Exists(Box::new(user), known);
        return Ok(linking);
    }
    if trusted.is_empty() {
        leave_out_taken(request, db, &mut linking, aud).await?;
        return Ok(linking);
    }
    // Upstream also looks up unverified identities, and so signs the owner of an address in to the account of somebody
    // who linked it unproved.
    let mut owners: Vec<Uuid> = identity::verified_by_emails(db, &trusted)
        .await?
        .into_iter()
        .filter(|known| domain(request, &known.provider) == linking.domain)
        .map(|known| known.user_id)
        .collect();
    if linking.domain == "default" {
        owners.extend(user::ids_by_emails(db, &trusted).await?);
    }
    owners.sort_unstable();
    owners.dedup();
    linking.decision = match owners.as_slice() {
        [] => {
            // The provider names one address first and has verified another.
            if !linking.verified {
                leave_out_taken(request, db, &mut linking, aud).await?;
            }
            Decision::Create
        }
        [owner] => match user::find_by_id(db, *owner).await? {
            Some(user) => {
                linking.verified = vouches(&trusted, &user, &linking);
                Decision::Link(Box::new(user))
            }
            None => Decision::Create,
        },
        _ => Decision::Several,
    };
    Ok(linking)
}

/// Leaves out an address that another account has.
async fn leave_out_taken(request: &Request, db: &Db, linking: &mut Linking, aud: &str) -> AuthResult<()> {
    let own_domains = request.auth.own_linking_domains();
    if !linking.email.is_empty()
        && user::find_duplicate_email(db, &linking.email, aud, None, &own_domains).await?.is_some()
    {
        linking.email.clear();
    }
    Ok(())
}

/// Whether the provider, which has verified `trusted`, proves the user's address. It may name another one first.
fn vouches(trusted: &[String], user: &User, linking: &Linking) -> bool {
    if user.email.is_empty() { linking.verified } else { trusted.contains(&user.email) }
}

fn new_user(request: &Request, profile: &Profile, linking: &Linking, provider: &str, aud: &str) -> User {
    let mut user = User::new(&linking.email, "", aud, profile.identity_data());
    user.id = request.once("new user", || user.id);
    user.app_metadata = Some(provider_metadata(&[provider]));
    user.is_sso_user = linking.domain != "default";
    user
}

/// Calls the hook about the user that would be created; outside of any transaction.
pub async fn ask_before(request: &Request, db: &Db, profile: &Profile, provider: &str) -> AuthResult<()> {
    let config = &request.auth.config;
    if config.hooks.before_user_created.is_none() {
        return Ok(());
    }
    let aud = request.audience(None);
    let linking = decide(request, db, profile, provider, &aud).await?;
    let Decision::Create = linking.decision else { return Ok(()) };
    if config.disable_signup {
        return Err(signup_disabled());
    }
    let mut user = new_user(request, profile, &linking, provider, &aud);
    user.is_sso_user = linking.domain.starts_with("sso:");
    hooks::before_user_created(request, db, &user).await
}

fn signup_disabled() -> AuthError {
    AuthError::unprocessable(Code::SignupDisabled, "Signups not allowed for this instance")
}

async fn add_identity(db: &Db, user: &User, provider: &str, data: Json) -> AuthResult<Identity> {
    identity::create(db, user.id, provider, data).await.or_internal("Error creating identity")
}

/// Creates, links or finds the user of an external identity; within a transaction.
///
/// Errors: 422 `signup_disabled`, 403 `user_banned`; refusals that keep what was stored, as
/// `provider_email_needs_verification`, are an [`Outcome`].
pub async fn sign_in(
    request: &Request,
    db: &Db,
    profile: &Profile,
    provider: &str,
    email_optional: bool,
) -> AuthResult<Outcome> {
    let config = &request.auth.config;
    let aud = request.audience(None);
    let data = profile.identity_data();
    let linking = decide(request, db, profile, provider, &aud).await?;
    let created = matches!(linking.decision, Decision::Create);
    let (mut user, identity) = match linking.decision {
        Decision::Several => {
            return Err(AuthError::internal(format!(
                "Multiple accounts with the same email address in the same linking domain detected: {}",
                linking.domain
            )));
        }
        Decision::Link(mut user) => {
            // The owner of the address signs in to an account whose creator never proved it.
            if linking.verified && user.has_claimed_email(db).await? {
                user::lock(db, user.id).await?;
                user.hand_over(db).await?;
            }
            let identity = add_identity(db, &user, provider, data.clone()).await?;
            user.merge_user_metadata(db, &data).await?;
            user.update_providers(db).await?;
            record_link(request, db, &user, &identity).await?;
            // The answer lists the earlier identities, as upstream.
            (user, identity)
        }
        Decision::Create => {
            if config.disable_signup {
                return Err(signup_disabled());
            }
            let user = new_user(request, profile, &linking, provider, &aud);
            let mut user = create_user(request, db, user).await?;
            let identity = add_identity(db, &user, provider, data).await?;
            user.identities.get_or_insert_default().push(identity.clone());
            (Box::new(user), identity)
        }
        Decision::Exists(mut user, mut identity) => {
            if linking.verified && user.is_confirmed() {
                // The address is proved now.
                unproved_address::forget(db, user.id).await?;
            }
            identity.replace_data(db, data.clone()).await?;
            user.merge_user_metadata(db, &data).await?;
            user.update_providers(db).await?;
            for known in user.identities.iter_mut().flatten().filter(|known| known.id == identity.id) {
                *known = identity.clone();
            }
            (user, identity)
        }
    };
    if user.is_banned() {
        return Err(AuthError::forbidden(Code::UserBanned, "User is banned"));
    }
    let has_email = provider != "web3" && !(email_optional && linking.email.is_empty());
    if !has_email || user.is_confirmed() {
        Entry::of(&user, Action::Login).with(json!({ "provider": provider })).record(db, config.audit_log_only).await?;
        return Ok(Outcome::User(user, created));
    }
    // Autoconfirm confirms the account's address, but not an account that has none because the address belongs to
    // somebody else.
    let confirms = config.mailer.autoconfirm && !(linking.names_email && linking.email.is_empty());
    if linking.verified || confirms {
        // The creator of the unconfirmed account knows its password, so everything is removed.
        remove_unconfirmed(db, &mut user, &identity).await.or_internal("Error updating user")?;
        Entry::of(&user, Action::UserSignedUp)
            .with(json!({ "provider": provider }))
            .record(db, config.audit_log_only)
            .await?;
        user.confirm(db).await.or_internal("Error updating user")?;
        if !linking.verified && !user.email.is_empty() {
            unproved_address::note(db, user.id, &user.email).await.or_internal("Error updating user")?;
        }
        // The answer shows the identity as confirmed too; its row keeps the provider's data.
        for known in user.identities.iter_mut().flatten().filter(|known| known.id == identity.id) {
            known.identity_data.get_or_insert_default().insert("email_verified".to_owned(), json!(true));
        }
        return Ok(Outcome::User(user, created));
    }
    let mut how = format!("Verify the email with {provider} in order to sign in");
    if !linking.email.is_empty() {
        send_confirmation(request, db, &mut user, None).await?;
        how = format!("A confirmation email has been sent to your {provider} email");
    }
    if config.mailer.allow_unverified_email_sign_ins {
        return Ok(Outcome::User(user, created));
    }
    let message = format!("Unverified email with {provider}. {how}");
    Ok(Outcome::Refused(AuthError::unprocessable(Code::ProviderEmailNeedsVerification, message)))
}

async fn record_link(request: &Request, db: &Db, user: &User, identity: &Identity) -> AuthResult<()> {
    let address = request.client_ip_text();
    Entry::of(user, Action::IdentityLinked)
        .from_address(&address)
        .with(json!({
            "identity_id": identity.id,
            "provider": identity.provider,
            "provider_id": identity.provider_id,
        }))
        .record(db, request.auth.config.audit_log_only)
        .await
        .or_internal("Error recording audit log entry")
}

/// Removes everything that was added to an account that nobody confirmed, except the identity that signs in now.
pub async fn remove_unconfirmed(db: &Db, user: &mut User, keep: &Identity) -> AuthResult<()> {
    user.hand_over_to(db, keep).await?;
    user.update_providers(db).await?;
    Ok(())
}

/// What a link was begun with.
#[derive(Clone, Copy)]
pub enum Begun {
    /// The bearer token of this request, and its session if it has one.
    Token(Option<Uuid>),
    /// A state of the browser flow, which does not know its session.
    State,
}

impl Begun {
    /// Whether it may change the address of a user with a second factor. A state was checked when it was made; in case
    /// the factor is newer, its user has to have a session of the second level.
    async fn is_aal2(self, db: &Db, user: &User) -> AuthResult<bool> {
        Ok(match self {
            Self::Token(None) => false,
            Self::Token(Some(id)) => session::find(db, id).await?.is_some_and(|session| session.is_aal2()),
            Self::State => session::exists_at_aal2(db, user.id).await?,
        })
    }
}

/// Links an external identity to `user`; within a transaction.
///
/// Errors: 422 `user_not_found`, 403 `user_banned`, 403 `session_not_found`, 422 `identity_already_exists`, 400
/// `email_exists`, 401 `insufficient_aal`; 422 `email_not_confirmed` is an [`Outcome`].
pub async fn link(
    request: &Request,
    db: &Db,
    mut user: User,
    begun: Begun,
    profile: &Profile,
    provider: &str,
) -> AuthResult<Outcome> {
    user::lock(db, user.id).await?;
    // The account may have changed during the call to the provider.
    let gone = || AuthError::unprocessable(Code::UserNotFound, "Linking target user not found");
    user = user::find_by_id(db, user.id).await?.filter(|user| user.deleted_at.is_none()).ok_or_else(gone)?;
    if user.is_banned() {
        return Err(AuthError::forbidden(Code::UserBanned, "User is banned"));
    }
    if let Begun::Token(Some(id)) = begun
        && session::find(db, id).await?.is_none()
    {
        return Err(no_session());
    }
    let known = identity::find(db, profile.subject(), provider)
        .await
        .or_internal("Database error finding identity for linking")?;
    if let Some(known) = known {
        let whose = if known.user_id == user.id { "" } else { " to another user" };
        let message = format!("Identity is already linked{whose}");
        return Err(AuthError::unprocessable(Code::IdentityAlreadyExists, message));
    }
    let identity = add_identity(db, &user, provider, profile.identity_data()).await?;
    record_link(request, db, &user, &identity).await?;
    let names_email = !identity.email.is_empty();
    user.identities.get_or_insert_default().push(identity);
    if profile.emails.iter().any(|address| address.verified && address.email.eq_ignore_ascii_case(&user.email)) {
        unproved_address::forget(db, user.id).await?;
    }
    if user.email.is_empty() && names_email {
        let taken = || {
            let message = "A user with this email address has already been registered";
            AuthError::bad_request(Code::EmailExists, message)
        };
        // Upstream gives no address to a user with a number, whose identity has none either.
        let identities = user.identities().to_vec();
        if !take_email(request, db, &mut user, identities, |identity| !identity.email.is_empty()).await? {
            return Err(taken());
        }
        if user.has_mfa() && !begun.is_aal2(db, &user).await? {
            return Err(insufficient_aal());
        }
        if !profile.is_email_verified() || unproved_address::is_of(db, user.id, &user.email).await? {
            send_confirmation(request, db, &mut user, None).await?;
            let message = format!(
                "Unverified email with {provider}. A confirmation email has been sent to your {provider} email"
            );
            return Ok(Outcome::Refused(AuthError::unprocessable(Code::EmailNotConfirmed, message)));
        }
        user.confirm(db).await?;
        if user.is_anonymous {
            user.is_anonymous = false;
            user.update(db, &[Column::IsAnonymous]).await?;
        }
    }
    user.update_providers(db).await?;
    mailer::notify(request, db, &user, Notification::IdentityLinked { provider }).await;
    Ok(Outcome::User(Box::new(user), false))
}

/// Gives the user the address of one of its identities if its own belongs to none: verified ones first, then
/// the oldest. `false` if each of them is another user's or refused by `accepts`.
pub async fn promote_email(
    request: &Request,
    db: &Db,
    user: &mut User,
    accepts: fn(&Identity) -> bool,
) -> AuthResult<bool> {
    let identities = identity::of_user(db, user.id).await?;
    if identities.iter().any(|identity| identity.email == user.email) {
        return Ok(true);
    }
    take_email(request, db, user, identities, accepts).await
}

/// Gives the user the address of one of `identities`, as [`promote_email`] does.
async fn take_email(
    request: &Request,
    db: &Db,
    user: &mut User,
    mut identities: Vec<Identity>,
    accepts: fn(&Identity) -> bool,
) -> AuthResult<bool> {
    identities.sort_by_key(|identity| match (identity.email.is_empty(), identity.is_email_verified()) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    });
    for candidate in identities.into_iter().filter(accepts) {
        // Addresses are unique across all audiences.
        let of_address = user::ids_by_emails(db, std::slice::from_ref(&candidate.email)).await?;
        if !candidate.email.is_empty() && of_address.iter().any(|id| *id != user.id) {
            continue;
        }
        user.email.clone_from(&candidate.email);
        user.update(db, &[Column::Email]).await.map_err(AuthError::unless_taken)?;
        // Pending tokens were sent for another address.
        user.clear_pending(db).await?;
        let covered = candidate.is_email_verified() || request.auth.config.mailer.autoconfirm;
        if candidate.email.is_empty() || !covered {
            user.email_confirmed_at = None;
            user.update(db, &[Column::EmailConfirmedAt]).await?;
            let mut unverified = Json::new();
            unverified.insert("email_verified".to_owned(), json!(false));
            user.merge_user_metadata(db, &unverified).await?;
        }
        // Whoever proves the address later must not get this account with what others added to it.
        if !candidate.email.is_empty() && !candidate.is_email_verified() {
            unproved_address::note(db, user.id, &user.email).await?;
        }
        return Ok(true);
    }
    Ok(false)
}
