//! The `web3` grant: a wallet signs a message that names this site.
//! Reference: EIP-4361, Sign-In With Solana; supabase/auth `internal/api/web3.go`.

mod ethereum;
mod message;
mod solana;

use actix_web::HttpResponse;
use chrono::{Duration, Utc};
use serde_json::json;

use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::flows::oauth::Profile;
use crate::auth::flows::oauth::account::{self, Outcome};
use crate::auth::flows::oauth::session;
use crate::auth::models::audit::{Action, Entry};
use message::{Chain, SignedMessage};

/// The provider name of wallet identities.
const PROVIDER: &str = "web3";

fn invalid_grant(why: impl Into<String>) -> AuthError {
    AuthError::oauth("invalid_grant", why)
}

/// A session for the wallet that signed `message`.
///
/// Errors: 422 `web3_provider_disabled`, 400 `web3_unsupported_chain`, 400 `validation_failed` for a malformed
/// message or signature, OAuth's shape `invalid_grant` for one that is not valid here and now.
pub async fn grant(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let external = &config.external;
    let disabled =
        |what: &str| AuthError::unprocessable(Code::Web3ProviderDisabled, format!("{what} provider is disabled"));
    if !external.web3_solana_enabled && !external.web3_ethereum_enabled {
        return Err(disabled("Web3"));
    }
    let params = request.params()?;
    let (text, signature) = (params.text("message")?, params.text("signature")?);
    let (chain, validity) = match params.text("chain")?.as_str() {
        "solana" if !external.web3_solana_enabled => return Err(disabled("Solana Web3")),
        "solana" => (Chain::Solana, external.web3_solana_max_validity),
        "ethereum" if !external.web3_ethereum_enabled => return Err(disabled("Ethereum Web3")),
        "ethereum" => (Chain::Ethereum, external.web3_ethereum_max_validity),
        _ => return Err(AuthError::bad_request(Code::Web3UnsupportedChain, "Unsupported chain")),
    };
    if text.len() < 64 {
        return Err(AuthError::invalid("message is too short"));
    }
    if text.len() > 20 * 1024 {
        return Err(AuthError::invalid("message must not exceed 20KB"));
    }
    let signature = match chain {
        Chain::Solana => solana::read_signature(&signature)?,
        Chain::Ethereum => ethereum::read_signature(&signature)?,
    };
    let message = SignedMessage::parse(chain, &text).map_err(AuthError::invalid)?;
    let genuine = signature.is_some_and(|signature| match chain {
        Chain::Solana => solana::verify(&message, &signature),
        Chain::Ethereum => ethereum::verify(&message, &signature),
    });
    if !genuine {
        return Err(invalid_grant("Signature does not match address in message"));
    }
    check_place(request, &message)?;
    check_time(&message, Duration::from_std(validity).unwrap_or_else(|_| Duration::minutes(10)))?;
    sign_in(request, &message).await
}

/// Checks that the message was signed for this site.
fn check_place(request: &Request, message: &SignedMessage) -> AuthResult<()> {
    let (chain, redirects) = (message.chain.title(), &request.auth.redirects);
    let local = message.uri.as_ref().and_then(|uri| uri.host_str()) == Some("localhost");
    if message.uri.as_ref().is_none_or(|uri| uri.scheme() != "https") && !local {
        return Err(invalid_grant(format!("Signed {chain} message is using URI which does not use HTTPS")));
    }
    if !redirects.allows(&message.uri_text) {
        return Err(invalid_grant(format!(
            "Signed {chain} message is using URI which is not allowed on this server, message was signed for another app"
        )));
    }
    let authority =
        message.uri_text.split("//").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
    // Upstream takes any domain with a URI of this machine, also one that only looks like the user's application.
    let allows_domain = || local || redirects.allows(&format!("https://{}/", message.domain));
    if authority != message.domain || !allows_domain() {
        return Err(invalid_grant(format!(
            "Signed {chain} message is using a Domain that does not match the one in URI which is not allowed on this server"
        )));
    }
    Ok(())
}

/// Unlike upstream, an expiration time counts for Ethereum too when there is no `Not Before`.
fn check_time(message: &SignedMessage, validity: Duration) -> AuthResult<()> {
    let (chain, now) = (message.chain.title(), Utc::now());
    if message.not_before.is_some_and(|start| now < start) {
        return Err(invalid_grant(format!("Signed {chain} message becomes valid in the future")));
    }
    if message.expiration_time.is_some_and(|end| now > end) {
        return Err(invalid_grant(format!("Signed {chain} message is expired")));
    }
    if now > message.issued_at + validity {
        return Err(invalid_grant(format!("{chain} message was issued too long ago")));
    }
    if now < message.issued_at - validity {
        return Err(invalid_grant(format!("{chain} message was issued too far in the future")));
    }
    Ok(())
}

async fn sign_in(request: &Request, message: &SignedMessage) -> AuthResult<HttpResponse> {
    let chain = message.chain.name();
    let subject = format!("{PROVIDER}:{chain}:{}", message.address);
    let mut profile = Profile::new(&[("sub", &subject)]).with_custom(json!({
        "address": message.address,
        "chain": chain,
        "network": message.chain_id,
        "domain": message.domain,
        "statement": message.statement,
    }));
    profile.choose_email();
    let db = request.db().await?;
    account::ask_before(request, &db, &profile, PROVIDER).await?;
    session::answer(request, &db, PROVIDER, async |db| {
        let outcome = account::sign_in(request, db, &profile, PROVIDER, true).await?;
        if let Outcome::User(user, _) = &outcome {
            Entry::of(user, Action::Login)
                .with(json!({
                    "provider": PROVIDER,
                    "chain": chain,
                    "network": message.chain_id,
                    "address": message.address,
                    "domain": message.domain,
                    "uri": message.uri_text,
                }))
                .record(db, request.auth.config.audit_log_only)
                .await?;
        }
        Ok(outcome)
    })
    .await
}
