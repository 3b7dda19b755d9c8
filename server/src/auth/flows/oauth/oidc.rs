//! OpenID Connect issuers: their discovery documents and keys, cached, and the ID tokens they sign.
//! Reference: OpenID Connect Core 1.0 §3.1.3.7, Discovery 1.0 §4; supabase/auth `provider/oidc.go`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq as _;

use crate::auth::credentials::lenient_base64;
use crate::auth::error::Fault;
use crate::auth::outside::Providers;
use crate::db::with_causes;
use crate::http::answer_body::{AnswerFault, read_answer};
use crate::http::json::parse_json;

pub const GOOGLE: &str = "https://accounts.google.com";
pub const APPLE: &str = "https://appleid.apple.com";
pub const OTHER_APPLE: &str = "https://account.apple.com";
pub const LINKEDIN: &str = "https://www.linkedin.com/oauth";
pub const FACEBOOK: &str = "https://www.facebook.com";
pub const KAKAO: &str = "https://kauth.kakao.com";
pub const VERCEL_MARKETPLACE: &str = "https://marketplace.vercel.com";
pub const SNAPCHAT: &str = "https://accounts.snapchat.com/accounts/oauth2/token";

/// How long a discovery document is cached.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// An unknown key causes the set to be fetched again, at most this often.
const KEYS_PAUSE: Duration = Duration::from_secs(10);
/// The maximum size of an answer, in bytes.
const LIMIT: usize = 1 << 20;

pub fn is_apple(issuer: &str) -> bool {
    matches!(issuer, APPLE | OTHER_APPLE)
}

/// `https://login.microsoftonline.com/<tenant>/v2.0`.
pub fn is_azure(issuer: &str) -> bool {
    issuer
        .strip_prefix("https://login.microsoftonline.com/")
        .and_then(|rest| rest.strip_suffix("/v2.0").or(rest.strip_suffix("/v2.0/")))
        .is_some_and(|tenant| !tenant.is_empty() && !tenant.contains('/'))
}

/// `https://<name>.ciamlogin.com/<tenant>/v2.0`.
pub fn is_azure_ciam(issuer: &str) -> bool {
    let Some((host, path)) = issuer.strip_prefix("https://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let named = host.strip_suffix(".ciamlogin.com").is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    });
    let tenant = path.strip_suffix("/v2.0").or(path.strip_suffix("/v2.0/"));
    named && tenant.is_some_and(|tenant| !tenant.is_empty() && !tenant.contains('/'))
}

/// An issuer as its discovery document describes it.
#[derive(Clone)]
pub struct Issuer {
    pub issuer: String,
    pub auth_url: String,
    pub token_url: String,
    pub userinfo_url: String,
    jwks_url: String,
    algorithms: Vec<Algorithm>,
    keys: Arc<Mutex<Keys>>,
}

#[derive(Default)]
struct Keys {
    set: Vec<Jwk>,
    fetched: Option<Instant>,
}

/// The cached issuers.
pub struct Discovery {
    /// The URLs of documents that are not read from the issuer itself.
    relays: BTreeMap<String, String>,
    issuers: Mutex<HashMap<Source, (Issuer, Instant)>>,
}

/// An issuer and, if unusual, the URL of its document. One provider's document for an issuer must not be used for
/// another provider.
type Source = (String, Option<String>);

/// The claims of a verified ID token.
pub struct IdToken {
    pub claims: Map<String, Value>,
    algorithm: Algorithm,
}

impl Discovery {
    /// Reads the documents of some issuers at other addresses, see
    /// [`discovery_urls`](crate::config::ExternalConfig::discovery_urls).
    pub fn new(relays: BTreeMap<String, String>) -> Self {
        Self { relays, issuers: Mutex::default() }
    }

    /// The issuer at `issuer`. Its document is read from `discovery_url`, a relay, or the issuer. If the
    /// issuer does not answer, an old document stays in use.
    pub async fn issuer(
        &self,
        http: Providers<'_>,
        issuer: &str,
        discovery_url: Option<&str>,
    ) -> Result<Issuer, Fault> {
        let discovery_url = discovery_url.or_else(|| self.relays.get(issuer).map(String::as_str));
        let key = (issuer.to_owned(), discovery_url.map(str::to_owned));
        let cached = self.issuers.lock().get(&key).cloned();
        if let Some((known, read)) = &cached
            && read.elapsed() < MAX_AGE
        {
            return Ok(known.clone());
        }
        match Self::read(http, issuer, discovery_url).await {
            Ok(fresh) => {
                self.issuers.lock().insert(key, (fresh.clone(), Instant::now()));
                Ok(fresh)
            }
            Err(fault) => cached.map(|(known, _)| known).ok_or(fault),
        }
    }

    /// Makes the next use fetch the issuer's documents again.
    pub fn forget(&self, issuer: &str) {
        self.issuers.lock().retain(|(known, _), _| known != issuer);
    }

    /// Whether the issuer's document is read at another address.
    pub fn has_relay(&self, issuer: &str) -> bool {
        self.relays.contains_key(issuer)
    }

    async fn read(http: Providers<'_>, issuer: &str, discovery_url: Option<&str>) -> Result<Issuer, Fault> {
        let url = match discovery_url {
            Some(url) => url.to_owned(),
            None => format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/')),
        };
        let document: Map<String, Value> = get_json(http, &url).await?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        if text("issuer") != issuer && !is_apple(issuer) {
            return Err(Fault::new(format!(
                "oidc: issuer did not match the issuer returned by provider, expected \"{issuer}\" got \"{}\"",
                text("issuer")
            )));
        }
        let listed = document.get("id_token_signing_alg_values_supported").and_then(Value::as_array);
        let mut algorithms: Vec<Algorithm> =
            listed.into_iter().flatten().filter_map(|name| algorithm(name.as_str()?)).collect();
        if algorithms.is_empty() {
            algorithms.push(Algorithm::RS256);
        }
        Ok(Issuer {
            issuer: text("issuer"),
            auth_url: text("authorization_endpoint"),
            token_url: text("token_endpoint"),
            userinfo_url: text("userinfo_endpoint"),
            jwks_url: text("jwks_uri"),
            algorithms,
            keys: Arc::default(),
        })
    }
}

/// The algorithms that are accepted at all: asymmetric ones.
fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "EdDSA" => Algorithm::EdDSA,
        _ => return None,
    })
}

/// GETs a JSON document of at most [`LIMIT`] bytes.
pub async fn get_json<T: serde::de::DeserializeOwned>(http: Providers<'_>, url: &str) -> Result<T, Fault> {
    read_json(ask(http, url).await?).await
}

/// GETs a document, with a `User-Agent`, which some providers require.
pub async fn ask(http: Providers<'_>, url: &str) -> Result<reqwest::Response, Fault> {
    let request = http.get(url)?.header("accept", "application/json").header("user-agent", "ferrobase");
    request.timeout(Duration::from_secs(10)).send().await.map_err(transport)
}

/// The error for a request without an answer. The cause is only logged.
pub fn transport(error: reqwest::Error) -> Fault {
    let place = error.url().map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let error = error.without_url();
    tracing::warn!(place, cause = with_causes(&error), "auth: a provider could not be asked");
    Fault::new(error.to_string())
}

/// The JSON body of a successful answer. Other answers are only logged: they may come from the private network, and
/// whoever starts a sign-in would see them (upstream shows them).
pub async fn read_json<T: serde::de::DeserializeOwned>(answer: reqwest::Response) -> Result<T, Fault> {
    let status = answer.status();
    let body = read_body(answer).await?;
    let start = || String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
    if !status.is_success() {
        tracing::warn!(status = status.as_u16(), body = start(), "auth: a provider answered with an error");
        return Err(Fault::new(status.to_string()));
    }
    serde_json::from_slice(&body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        tracing::warn!(line, column, "auth: a provider's answer is not the JSON that was asked for");
        Fault::new("the answer is not the JSON that was asked for")
    })
}

/// The body of an answer, if it is not too long.
pub async fn read_body(answer: reqwest::Response) -> Result<Vec<u8>, Fault> {
    read_answer(answer, LIMIT).await.map_err(|fault| match fault {
        AnswerFault::Transport(error) => transport(error),
        AnswerFault::TooLong => Fault::new(fault.to_string()),
    })
}

/// Whether a token's header requires critical extensions (RFC 7515, 4.1.11). None are supported.
fn is_critical(token: &str) -> bool {
    let header = token.split('.').next().and_then(lenient_base64::url_safe_no_pad);
    let header = header.and_then(|bytes| parse_json::<Map<String, Value>>(&bytes).ok());
    header.is_none_or(|header| header.contains_key("crit"))
}

/// The claims of an unverified token, only to find its issuer.
pub fn unverified_claims(token: &str) -> Option<Map<String, Value>> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    parse_json(&lenient_base64::url_safe_no_pad(payload)?).ok()
}

fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512) => true,
        (AlgorithmParameters::RSA(_), Algorithm::PS256 | Algorithm::PS384 | Algorithm::PS512) => true,
        (AlgorithmParameters::EllipticCurve(ec), Algorithm::ES256) => ec.curve == EllipticCurve::P256,
        (AlgorithmParameters::EllipticCurve(ec), Algorithm::ES384) => ec.curve == EllipticCurve::P384,
        (AlgorithmParameters::OctetKeyPair(_), Algorithm::EdDSA) => true,
        _ => false,
    }
}

impl Issuer {
    /// The keys that may have signed a token of `kid` and `algorithm`. `refresh` fetches the set if it is not
    /// too young.
    async fn candidates(
        &self,
        http: Providers<'_>,
        kid: Option<&str>,
        algorithm: Algorithm,
        refresh: bool,
    ) -> Result<Vec<Jwk>, Fault> {
        let due = {
            let keys = self.keys.lock();
            keys.fetched.is_none_or(|at| refresh && at.elapsed() > KEYS_PAUSE)
        };
        if due {
            let document: Map<String, Value> = get_json(http, &self.jwks_url).await?;
            let set = document.get("keys").and_then(Value::as_array).into_iter().flatten();
            // Skip keys of unknown kinds.
            let set: Vec<Jwk> = set.filter_map(|key| serde_json::from_value(key.clone()).ok()).collect();
            *self.keys.lock() = Keys { set, fetched: Some(Instant::now()) };
        }
        let keys = self.keys.lock();
        let named = |key: &&Jwk| kid.is_none_or(|kid| key.common.key_id.as_deref() == Some(kid));
        Ok(keys.set.iter().filter(named).filter(|key| fits(key, algorithm)).cloned().collect())
    }

    /// Verifies signature, issuer and times. The flow checks audience and nonce.
    pub async fn verify(&self, http: Providers<'_>, token: &str) -> Result<IdToken, Fault> {
        let bad = |what: &str| Fault::new(format!("oidc: {what}"));
        let header = jsonwebtoken::decode_header(token).map_err(|_| bad("malformed jwt"))?;
        if is_critical(token) {
            return Err(bad("the header names extensions that are not supported"));
        }
        if !self.algorithms.contains(&header.alg) {
            return Err(bad("id token signed with unsupported algorithm"));
        }
        let claims = unverified_claims(token).ok_or_else(|| bad("malformed jwt"))?;
        let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or("");
        let google = self.issuer == GOOGLE && issuer == "accounts.google.com";
        if issuer != self.issuer && !google && !(is_apple(issuer) && is_apple(&self.issuer)) {
            return Err(bad("id token issued by a different provider"));
        }
        let now = Utc::now().timestamp() as f64;
        let instant = |name: &str| claims.get(name).and_then(Value::as_f64);
        if instant("exp").is_none_or(|exp| exp < now) {
            return Err(bad("token is expired"));
        }
        // Five minutes of leeway, as in upstream's library.
        if instant("nbf").is_some_and(|nbf| nbf > now + 300.0) {
            return Err(bad("token is not valid yet"));
        }
        let mut validation = Validation::new(header.alg);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        for refresh in [false, true] {
            for key in self.candidates(http, header.kid.as_deref(), header.alg, refresh).await? {
                let Ok(key) = DecodingKey::from_jwk(&key) else { continue };
                if let Ok(verified) = jsonwebtoken::decode::<Map<String, Value>>(token, &key, &validation) {
                    return Ok(IdToken { claims: verified.claims, algorithm: header.alg });
                }
            }
        }
        Err(bad("failed to verify id token signature"))
    }
}

impl IdToken {
    pub fn text(&self, name: &str) -> &str {
        self.claims.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// Its audiences, one or several.
    pub fn audience(&self) -> Vec<&str> {
        match self.claims.get("aud") {
            Some(Value::String(aud)) => vec![aud],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the token was issued with `access_token`, according to `at_hash`; true without one.
    pub fn goes_with(&self, access_token: &str) -> bool {
        let wanted = self.text("at_hash");
        if wanted.is_empty() {
            return true;
        }
        let half = |digest: &[u8]| URL_SAFE_NO_PAD.encode(&digest[..digest.len() / 2]);
        let hash = match self.algorithm {
            Algorithm::RS384 | Algorithm::ES384 | Algorithm::PS384 => half(&Sha384::digest(access_token)),
            Algorithm::RS512 | Algorithm::PS512 | Algorithm::EdDSA => half(&Sha512::digest(access_token)),
            _ => half(&Sha256::digest(access_token)),
        };
        hash.as_bytes().ct_eq(wanted.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_issuers_are_compared_by_their_whole_url() {
        assert!(is_azure("https://login.microsoftonline.com/tenant/v2.0"));
        assert!(is_azure_ciam("https://my-app.ciamlogin.com/tenant/v2.0"));
        for bad in [
            "https://login.microsoftonline.com.evil.example/tenant/v2.0",
            "https://login.microsoftonline.com/a/b/v2.0",
            "https://login.microsoftonline.com//v2.0",
            "https://evil.example/my.ciamlogin.com/tenant/v2.0",
        ] {
            assert!(!is_azure(bad) && !is_azure_ciam(bad), "{bad}");
        }
    }
}
