//! `GET|POST /callback`: the browser returns from the provider.

use actix_web::HttpResponse;
use actix_web::http::Method;
use serde::Deserialize;
use uuid::Uuid;

use super::account::{self, Begun, Outcome};
use super::authorize::found;
use super::claims::Profile;
use super::exchange::{ProviderTokens, exchange};
use super::{profiles, provider};
use crate::auth::credentials::tokens;
use crate::auth::door::location::{oauth_error, see_other, with_fragment, with_query};
use crate::auth::door::query::Pairs;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::flow_state::{self, FlowState};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, User};
use crate::auth::models::{identity, now, oauth_client_state};
use crate::auth::outside::hooks;

/// Answers 302 to the flow's redirect target with an auth code, a session in the fragment, or an error in
/// query and fragment. Without a known state it is 303 to the site, with the error in the query.
pub async fn callback(request: &Request) -> AuthResult<HttpResponse> {
    let answer = Answer::read(request);
    let db = request.db().await?;
    let site = &request.auth.config.site_url;
    let state = match load_state(request, &db, &answer).await {
        Ok(state) => state,
        Err(error) => {
            let text = error_pairs(&error);
            let redirect = see_other(&with_query(site, &pairs(&text)));
            if *request.method() == Method::GET {
                return Ok(redirect);
            }
            // A redirected form gets the error as a body, too.
            let body = error.respond(request.headers(), &request.id).into_body();
            return Ok(redirect.set_body(body));
        }
    };
    if !matches!(*request.method(), Method::GET | Method::POST) {
        return Err(AuthError::MethodNotAllowed(vec![Method::GET, Method::POST]));
    }
    let set = Some(&request.auth.config.external.redirect_url).filter(|target| !target.is_empty());
    let asked = state.referrer.as_ref().filter(|target| !target.is_empty());
    let target = set.or(asked).unwrap_or(site).clone();
    match complete(request, &db, &answer, state, &target).await {
        Ok(location) => Ok(found(&location)),
        Err(error) => {
            if error.status().is_server_error() {
                // Not the whole error: PostgreSQL's details contain rows.
                let cause = error.fault().map_or_else(|| error.message().to_owned(), ToString::to_string);
                tracing::error!(request_id = request.id, cause, "auth: a sign-in through a provider failed");
            }
            let text = error_pairs(&error);
            let pairs = pairs(&text);
            let location = with_query(&target, &pairs);
            let told: Vec<(&str, &str)> =
                pairs.into_iter().filter(|(_, value)| !value.is_empty()).chain([("sb", "")]).collect();
            Ok(found(&with_fragment(&location, &told)))
        }
    }
}

fn pairs<'a>(text: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    text.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// `error`, `error_code` and `error_description` of a redirect.
fn error_pairs(error: &AuthError) -> Vec<(&'static str, String)> {
    if let AuthError::OAuth { error, description } = error {
        return vec![("error", error.clone()), ("error_description", description.clone())];
    }
    let name = match error.code() {
        Some(Code::SignupDisabled | Code::UserBanned | Code::ProviderEmailNeedsVerification) => "access_denied",
        _ => oauth_error(error.status()).unwrap_or("server_error"),
    };
    let mut pairs = vec![("error", name.to_owned()), ("error_description", error.message().to_owned())];
    match (error, error.code()) {
        (_, Some(code)) => pairs.push(("error_code", code.as_str().to_owned())),
        (AuthError::Hook { status, .. }, None) => {
            let code = if status.as_u16() == 500 { Code::UnexpectedFailure } else { Code::Unknown };
            pairs.push(("error_code", code.as_str().to_owned()));
        }
        _ => {}
    }
    pairs
}

/// The provider's parameters, from the query or a form.
struct Answer {
    pairs: Vec<(String, String)>,
}

impl Answer {
    fn read(request: &Request) -> Self {
        let mut pairs = Vec::new();
        if *request.method() == Method::POST
            && let Ok(body) = request.body()
        {
            pairs.extend(Pairs::parse(body).pairs);
        }
        pairs.extend(request.query_pairs().iter().cloned());
        Self { pairs }
    }

    fn get(&self, name: &str) -> &str {
        self.pairs.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

fn unknown_state() -> AuthError {
    AuthError::bad_request(Code::BadOauthState, "OAuth state not found or expired")
}

async fn load_state(request: &Request, db: &Db, answer: &Answer) -> AuthResult<FlowState> {
    let bad = |message: &str| AuthError::bad_request(Code::BadOauthState, message);
    let state = answer.get("state");
    if state.is_empty() {
        return Err(AuthError::bad_request(Code::BadOauthCallback, "OAuth state parameter missing"));
    }
    let id = Uuid::parse_str(state).map_err(|_| bad("OAuth state parameter is invalid"))?;
    let state = flow_state::find_by_id(db, id)
        .await
        .or_internal("Error loading flow state")?
        .filter(|state| state.authentication_method == "oauth")
        .ok_or_else(unknown_state)?;
    if state.is_expired(request.auth.config.external.flow_state_expiry) {
        return Err(bad("OAuth state has expired"));
    }
    if state.is_pkce() && state.user_id.is_some() {
        return Err(AuthError::bad_request(Code::FlowStateAlreadyUsed, "State has already been used"));
    }
    Ok(state)
}

/// Exchanges the code and loads the profile.
async fn identify(
    request: &Request,
    db: &Db,
    answer: &Answer,
    state: &FlowState,
) -> AuthResult<(Profile, ProviderTokens)> {
    let refused = answer.get("error");
    if !refused.is_empty() {
        return Err(AuthError::oauth(refused, answer.get("error_description")));
    }
    let code = answer.get("code");
    if code.is_empty() {
        let message = "OAuth callback with missing authorization code missing";
        return Err(AuthError::bad_request(Code::BadOauthCallback, message));
    }
    let unsupported =
        |why: String| AuthError::bad_request(Code::OauthProviderNotSupported, format!("Unsupported provider: {why}"));
    let provider = provider::resolve(request, db, &state.provider_type, "", unsupported).await?;
    let verifier = match state.oauth_client_state_id {
        None if provider.requires_pkce => {
            let message = "OAuth PKCE code verifier missing";
            return Err(AuthError::bad_request(Code::OauthInvalidState, message));
        }
        None => None,
        Some(id) => {
            let taken = oauth_client_state::take(db, id).await.or_internal("Failed to find OAuth state")?;
            let taken = taken
                .ok_or_else(|| AuthError::unprocessable(Code::OauthClientStateNotFound, "OAuth state not found"))?;
            if taken.provider_type != state.provider_type {
                return Err(AuthError::bad_request(Code::OauthInvalidState, "OAuth provider mismatch"));
            }
            if taken.is_expired() {
                return Err(AuthError::unprocessable(Code::OauthClientStateExpired, "OAuth state expired"));
            }
            Some(taken.code_verifier)
        }
    };
    let away = request.away();
    let http = profiles::http_of(&away, &provider);
    let tokens = exchange(http, &provider, code, verifier.as_deref()).await.map_err(|fault| {
        let start: String = code.chars().take(4).collect();
        AuthError::internal(format!("Unable to exchange external code: {start}")).caused_by(fault)
    })?;
    let mut profile = profiles::fetch(request, &provider, &tokens)
        .await
        .map_err(|fault| AuthError::internal("Error getting user profile from external provider").caused_by(fault))?;
    if provider.name == "apple" {
        let name = apple_name(answer.get("user"))?;
        profile.set("name", &name);
        profile.set("full_name", &name);
    }
    if profile.subject().is_empty() && (state.email_optional || !profile.emails.is_empty()) {
        return Err(AuthError::internal("Error getting user profile from external provider"));
    }
    Ok((profile, tokens))
}

/// The name in the field `user` of Apple's form, sent only with the first consent; empty without one.
///
/// Errors: a shape other than `{"name": {"firstName", "lastName"}}` ends the sign-in.
fn apple_name(user: &str) -> AuthResult<String> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Name {
        first_name: Option<String>,
        last_name: Option<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct User {
        name: Option<Name>,
    }
    if user.is_empty() {
        return Ok(String::new());
    }
    let user: Option<User> = serde_json::from_str(user)
        .map_err(|error| Fault::new(format!("apple: the field user cannot be read: {error}")))?;
    let Name { first_name, last_name } = user.unwrap_or_default().name.unwrap_or_default();
    let name = format!("{} {}", first_name.unwrap_or_default(), last_name.unwrap_or_default());
    Ok(name.trim().to_owned())
}

async fn complete(request: &Request, db: &Db, answer: &Answer, state: FlowState, target: &str) -> AuthResult<String> {
    let linking_target = match state.linking_target_id {
        None => None,
        Some(id) => {
            let user = user::find_by_id(db, id).await.or_internal("Database error loading user")?;
            let gone = || AuthError::unprocessable(Code::UserNotFound, "Linking target user not found");
            Some(user.ok_or_else(gone)?)
        }
    };
    let (mut profile, provider_tokens) = identify(request, db, answer, &state).await?;
    if profile.emails.is_empty() && !state.email_optional {
        return Err(AuthError::internal("Error getting user email from external provider"));
    }
    profile.choose_email();
    let invite = state.invite_token.clone().filter(|token| !token.is_empty());
    let provider = state.provider_type.clone();
    if linking_target.is_none() && invite.is_none() {
        account::ask_before(request, db, &profile, &provider).await?;
    }
    let signs_in = linking_target.is_none() && invite.is_none();
    let grant = request.grant();
    let outcome = db
        .transaction_beside_others(async |db| {
            let outcome = match (linking_target.clone(), &invite) {
                (Some(user), _) => {
                    // Locked in this order, as everywhere. A new password or a sign-out ends what was begun before it.
                    user::lock(db, user.id).await?;
                    flow_state::find_by_id(db, state.id).await?.ok_or_else(unknown_state)?;
                    account::link(request, db, user, Begun::State, &profile, &provider).await?
                }
                (None, Some(token)) => accept_invite(request, db, &profile, token, &provider).await?,
                (None, None) => account::sign_in(request, db, &profile, &provider, state.email_optional).await?,
            };
            let user = match outcome {
                Outcome::User(user, _) => *user,
                Outcome::Refused(error) => return Ok(Err(error)),
            };
            if !state.is_pkce() {
                // Spent together with the session: of two callbacks with one state only one gets a session.
                if !flow_state::take(db, state.id).await? {
                    return Err(unknown_state());
                }
                let answer = tokens::issue(request, db, user, "oauth", &grant).await?;
                let user = answer.user.clone();
                return Ok(Ok((
                    user,
                    answer.as_redirect(
                        target,
                        &[
                            ("provider_token", &provider_tokens.access_token),
                            ("provider_refresh_token", &provider_tokens.refresh_token),
                        ],
                    ),
                )));
            }
            let used = || AuthError::bad_request(Code::FlowStateAlreadyUsed, "State has already been used");
            let mut state = flow_state::find_by_id(db, state.id).await?.ok_or_else(used)?;
            if state.user_id.is_some() {
                return Err(used());
            }
            state.provider_access_token.clone_from(&provider_tokens.access_token);
            state.provider_refresh_token.clone_from(&provider_tokens.refresh_token);
            state.user_id = Some(user.id);
            state.auth_code_issued_at = Some(now());
            state.update(db).await?;
            let code = state.auth_code.clone().unwrap_or_default();
            Ok(Ok((user, with_query(target, &[("code", &code)]))))
        })
        .await?;
    let (user, location) = outcome?;
    if signs_in {
        hooks::after_user_created(request, db, &user).await?;
    }
    Ok(location)
}

/// Accepts an invitation at a provider that names the invited address.
async fn accept_invite(
    request: &Request,
    db: &Db,
    profile: &Profile,
    token: &str,
    provider: &str,
) -> AuthResult<Outcome> {
    let mut user: User = user::lock_by_token(db, token, &[Purpose::Confirmation])
        .await
        .or_internal("Database error finding user")?
        .ok_or_else(|| AuthError::not_found(Code::InviteNotFound, "Invite not found"))?;
    if user.email.is_empty() || !profile.emails.iter().any(|address| address.email == user.email) {
        return Err(AuthError::invalid("Invited email does not match emails from external provider"));
    }
    let data = profile.identity_data();
    let identity =
        identity::create(db, user.id, provider, data.clone()).await.or_internal("Error creating identity")?;
    user.update_providers(db).await?;
    user.merge_user_metadata(db, &data).await.or_internal("Database error updating user")?;
    Entry::of(&user, Action::InviteAccepted)
        .with(serde_json::json!({ "provider": provider }))
        .record(db, request.auth.config.audit_log_only)
        .await?;
    user.identities.get_or_insert_default().push(identity.clone());
    account::remove_unconfirmed(db, &mut user, &identity).await.or_internal("Error updating user")?;
    user.confirm(db).await?;
    Ok(Outcome::User(Box::new(user), false))
}
