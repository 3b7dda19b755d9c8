//! Other issuers whose tokens count as well, as with Supabase's third-party auth: Firebase, Auth0, Cognito, Clerk, WorkOS, or
//! any that has a discovery document. Their keys are read in the background and kept.
//!
//! A token counts if its `iss` is the issuer, its `kid` names one of the issuer's keys, that key signed it, and it has an end. A
//! request whose key is not known yet waits, before it holds anything, until the issuer has been asked; see [`Issuers::settle`].
//! Reference: OpenID Connect Discovery 1.0 §4; supabase/cli `pkg/config/config.go` (`ResolveJWKS`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};
use url::{Host, Url};

use super::keys::{Check, KeySet, OtherKeys, Signed};
use super::material::{Algorithm, BASE64URL};
use crate::outgoing;

/// The setting that names the issuers, separated by commas; after an issuer's URL and a space may stand that of its keys.
pub const THIRD_PARTY_ISSUERS: &str = "FERROBASE_THIRD_PARTY_ISSUERS";

/// How long keys count as fresh. (Supabase reads them again within 30 minutes.)
const MAX_AGE: Duration = Duration::from_secs(600);
/// When to ask again an issuer that did not answer.
const RETRY: Duration = Duration::from_secs(60);
/// The pause after a question that a token caused. Tokens with unknown keys cause no other one meanwhile.
const PAUSE: Duration = Duration::from_secs(10);
/// For both documents together.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request waits for an issuer at most.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How many requests wait for an issuer at the same time.
const MOST_WAITING: usize = 64;
const MOST_ISSUERS: usize = 8;
const MOST_KEYS: usize = 64;
const MOST_BYTES: usize = 256 << 10;

/// An issuer as the setting names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerSetting {
    /// Without slashes at the end: Auth0 has one in its tokens, not in its configuration.
    name: String,
    document: Document,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Document {
    /// Names the URL of the keys.
    Discovery(Url),
    Keys(Url),
}

impl IssuerSetting {
    /// The issuers of [`THIRD_PARTY_ISSUERS`]. Errors: a sentence about the first that cannot be one.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let issuers = entries.map(Self::parse_one).collect::<Result<Vec<_>, _>>()?;
        if issuers.len() > MOST_ISSUERS {
            return Err(format!("{THIRD_PARTY_ISSUERS} names more than {MOST_ISSUERS} issuers"));
        }
        Ok(issuers)
    }

    fn parse_one(entry: &str) -> Result<Self, String> {
        let url = |text: &str| {
            Url::parse(text).ok().filter(is_safe).ok_or_else(|| {
                format!("{THIRD_PARTY_ISSUERS}: '{text}' must be an https:// URL (http:// only on this machine)")
            })
        };
        let (issuer, keys) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
        let name = bare(issuer).to_owned();
        url(&name)?;
        let document = match keys.trim() {
            "" => Document::Discovery(url(&format!("{name}/.well-known/openid-configuration"))?),
            keys => Document::Keys(url(keys)?),
        };
        Ok(Self { name, document })
    }

    fn is_local(&self) -> bool {
        let (Document::Discovery(url) | Document::Keys(url)) = &self.document;
        url.scheme() == "http"
    }
}

/// An issuer without the slashes at its end.
fn bare(issuer: &str) -> &str {
    issuer.trim_end_matches('/')
}

/// Whether what is read there cannot be changed in transit.
fn is_safe(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

/// The trusted issuers. Cheap to clone; the last clone ends the reading of keys.
#[derive(Clone, Debug)]
pub struct Issuers {
    all: Arc<[Arc<Issuer>]>,
    changes: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Issuer {
    setting: IssuerSetting,
    keys: ArcSwap<Published>,
    phase: watch::Sender<Phase>,
    /// Rung when a token names an unknown key.
    bell: Arc<Notify>,
    waiting: Semaphore,
    /// Counts changed sets of keys, of all issuers.
    changes: Arc<AtomicU64>,
}

/// The keys of an issuer.
#[derive(Debug, Default)]
struct Published {
    keys: KeySet,
    /// The text that they were read from.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asking,
    /// Has answered a question that a token caused, or failed to.
    Resting,
    Idle,
}

/// The parts of a token that choose a key, unverified.
struct Named {
    issuer: String,
    kid: String,
}

/// Why an issuer's keys could not be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("{0:?}")]
    Transport(reqwest::Error),
    #[error("it answered {0}")]
    Status(reqwest::StatusCode),
    #[error("its answer has more than {MOST_BYTES} bytes")]
    TooLong,
    #[error("its answer is not the JSON that was asked for")]
    NotJson,
    #[error("its discovery document is that of the issuer '{0}'")]
    AnotherIssuer(String),
    #[error("its discovery document has no usable URL of keys")]
    NoKeysUrl,
    #[error("it has no keys, or more than {MOST_KEYS}")]
    NumberOfKeys,
    #[error("it does not answer")]
    TimedOut,
}

impl Issuers {
    /// Begins to read the keys, in the background. `None` without issuers.
    pub fn spawn(settings: &[IssuerSetting]) -> reqwest::Result<Option<Self>> {
        if settings.is_empty() {
            return Ok(None);
        }
        // A redirect could lead anywhere.
        let http = outgoing::client()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER_TIMEOUT)
            .user_agent("ferrobase")
            .build()?;
        let changes = Arc::<AtomicU64>::default();
        let spawn = |setting: &IssuerSetting| {
            let issuer = Arc::new(Issuer {
                setting: setting.clone(),
                keys: ArcSwap::default(),
                phase: watch::Sender::new(Phase::Asking),
                bell: Arc::default(),
                waiting: Semaphore::new(MOST_WAITING),
                changes: Arc::clone(&changes),
            });
            tokio::spawn(keep_fresh(Arc::downgrade(&issuer), Arc::clone(&issuer.bell), http.clone()));
            issuer
        };
        Ok(Some(Self { all: settings.iter().map(spawn).collect(), changes }))
    }

    /// The public keys of all issuers as JWKs. Waits for an issuer's first answer, but not for long.
    pub async fn keys(&self) -> Vec<Value> {
        let asked = async {
            for issuer in self.all.iter().filter(|issuer| issuer.keys.load().text.is_empty()) {
                let _ = issuer.phase.subscribe().wait_for(|phase| *phase != Phase::Asking).await;
            }
        };
        let _ = tokio::time::timeout(REQUEST_TIMEOUT, asked).await;
        let published = |issuer: &Arc<Issuer>| {
            serde_json::from_str::<Value>(&issuer.keys.load().text)
                .ok()?
                .get_mut("keys")?
                .as_array_mut()
                .map(std::mem::take)
        };
        self.all.iter().filter_map(published).flatten().collect()
    }

    /// Counts the changes of these keys.
    pub fn key_changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Waits, if `token` is of one of the issuers and names a key that is not known yet, until the issuer has been asked: not
    /// for long, not in crowds, and not again soon after. Call it before taking anything that others wait for.
    pub async fn settle(&self, token: &str) {
        let Some((issuer, named)) = self.issuer_of(token) else { return };
        if issuer.keys.load().keys.names(&named.kid) {
            return;
        }
        let Ok(_place) = issuer.waiting.try_acquire() else { return };
        let mut phase = issuer.phase.subscribe();
        let seen = *phase.borrow_and_update();
        let is_over: fn(&Phase) -> bool = match seen {
            Phase::Resting => return,
            Phase::Asking => |phase| *phase != Phase::Asking,
            Phase::Idle => {
                issuer.bell.notify_one();
                |phase| *phase == Phase::Resting
            }
        };
        // Whatever came of it, the token is judged then.
        let _ = tokio::time::timeout(REQUEST_TIMEOUT, phase.wait_for(is_over)).await;
    }

    fn issuer_of(&self, token: &str) -> Option<(&Issuer, Named)> {
        let named = Named::read(token)?;
        Some((self.named(&named.issuer)?, named))
    }

    fn named(&self, issuer: &str) -> Option<&Issuer> {
        let issuer = bare(issuer);
        self.all.iter().map(|known| &**known).find(|known| known.setting.name == issuer)
    }
}

impl OtherKeys for Issuers {
    fn check(&self, algorithm: Algorithm, kid: Option<&str>, signed: Signed<'_>, claims: &[u8]) -> Option<Check> {
        let claims: Map<String, Value> = serde_json::from_slice(claims).ok()?;
        let issuer = self.named(claims.get("iss")?.as_str()?)?;
        // Without a `kid` there is no telling whether the issuer has to be asked.
        let kid = kid?;
        if !claims.get("exp").is_some_and(Value::is_number) {
            return Some(Check::NotSigned);
        }
        let published = issuer.keys.load();
        if !published.keys.names(kid) && *issuer.phase.borrow() == Phase::Idle {
            issuer.bell.notify_one();
        }
        Some(published.keys.check(algorithm, Some(kid), signed))
    }

    fn changes(&self) -> u64 {
        self.key_changes()
    }
}

impl KeySet {
    /// The same keys, and those of `issuers` for their tokens.
    pub fn trusting(mut self, issuers: Option<Issuers>) -> Self {
        self.others = issuers.map(|issuers| Arc::new(issuers) as Arc<dyn OtherKeys>);
        self
    }
}

impl Named {
    fn read(token: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Header {
            kid: String,
        }
        #[derive(Deserialize)]
        struct Payload {
            iss: String,
        }
        let (header, rest) = token.split_once('.')?;
        let (payload, _) = rest.split_once('.')?;
        let header: Header = serde_json::from_slice(&BASE64URL.decode(header).ok()?).ok()?;
        let payload: Payload = serde_json::from_slice(&BASE64URL.decode(payload).ok()?).ok()?;
        Some(Self { issuer: payload.iss, kid: header.kid })
    }
}

impl Issuer {
    fn publish(&self, keys: KeySet, text: String) {
        if self.keys.load().text != text {
            self.keys.store(Arc::new(Published { keys, text }));
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The keys, and the text that they were read from.
    async fn read(&self, http: &reqwest::Client) -> Result<(KeySet, String), ReadError> {
        let url = match &self.setting.document {
            Document::Keys(url) => url.clone(),
            Document::Discovery(url) => self.url_of_keys(&json(http, url).await?)?,
        };
        let document = json(http, &url).await?;
        let keys = document.get("keys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let set = usable(keys);
        if keys.len() > MOST_KEYS || set.is_empty() {
            return Err(ReadError::NumberOfKeys);
        }
        Ok((set, Value::Object(document).to_string()))
    }

    fn url_of_keys(&self, discovery: &Map<String, Value>) -> Result<Url, ReadError> {
        let text = |name: &str| discovery.get(name).and_then(Value::as_str).unwrap_or_default();
        if bare(text("issuer")) != self.setting.name {
            return Err(ReadError::AnotherIssuer(text("issuer").to_owned()));
        }
        let url = Url::parse(text("jwks_uri")).ok().filter(is_safe);
        // An issuer of the world outside does not send us to this machine.
        url.filter(|url| url.scheme() == "https" || self.setting.is_local()).ok_or(ReadError::NoKeysUrl)
    }
}

impl Drop for Issuer {
    /// Wakes the task that reads the keys, which then ends.
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}

/// Those of an issuer's keys that can verify: with a name, never a shared secret; others are left out.
fn usable(keys: &[Value]) -> KeySet {
    let set = KeySet::default();
    keys.iter().filter_map(Value::as_object).fold(set, |set, key| {
        let mut key = key.clone();
        // Members that have a meaning only in our own settings.
        key.remove("exp");
        key.remove("only");
        let has_name = key.get("kid").is_some_and(Value::is_string);
        match KeySet::from_jwks(&key) {
            Ok(one) if has_name && !key.contains_key("keys") && !one.has_secrets() => set.and(one),
            _ => set,
        }
    })
}

/// Reads the keys of `issuer`, again when they are old or its bell rings, until it is dropped.
async fn keep_fresh(issuer: Weak<Issuer>, bell: Arc<Notify>, http: reqwest::Client) {
    let mut is_called = false;
    while let Some(issuer) = issuer.upgrade() {
        issuer.phase.send_replace(Phase::Asking);
        let read = tokio::time::timeout(ANSWER_TIMEOUT, issuer.read(&http)).await;
        let next = match read.unwrap_or(Err(ReadError::TimedOut)) {
            Ok((keys, text)) => {
                issuer.publish(keys, text);
                MAX_AGE
            }
            Err(error) => {
                // Known keys stay.
                tracing::warn!(issuer = issuer.setting.name, cause = %error, "the keys of an issuer could not be read");
                RETRY
            }
        };
        if is_called {
            issuer.phase.send_replace(Phase::Resting);
            tokio::time::sleep(PAUSE).await;
        }
        issuer.phase.send_replace(Phase::Idle);
        drop(issuer);
        is_called = tokio::time::timeout(next, bell.notified()).await.is_ok();
    }
}

/// A JSON object, if it is not too long.
async fn json(http: &reqwest::Client, url: &Url) -> Result<Map<String, Value>, ReadError> {
    let request = http.get(url.clone()).header("accept", "application/json");
    let mut answer = request.send().await.map_err(ReadError::Transport)?;
    if !answer.status().is_success() {
        return Err(ReadError::Status(answer.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(ReadError::Transport)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(ReadError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|_| ReadError::NotJson)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_issuer_needs_an_https_address() {
        let one = |text: &str| IssuerSetting::parse(text).map(|mut all| all.remove(0));
        let named = one("https://x.auth0.com/").expect("an issuer");
        assert_eq!(named.name, "https://x.auth0.com");
        let discovery = Url::parse("https://x.auth0.com/.well-known/openid-configuration").expect("a URL");
        assert_eq!(named.document, Document::Discovery(discovery));
        let keys = one("https://x.example https://keys.example/jwks").expect("an issuer");
        assert!(matches!(keys.document, Document::Keys(url) if url.as_str() == "https://keys.example/jwks"));
        assert!(one("http://127.0.0.1:9").is_ok() && one("http://localhost:9/a").is_ok());
        for wrong in [
            "http://x.example",
            "x.example",
            "ftp://x",
            "https://x.example http://y.example/",
            "http://127.evil.example",
        ] {
            let problem = one(wrong).expect_err(wrong);
            assert!(problem.starts_with(THIRD_PARTY_ISSUERS), "{problem}");
        }
        assert_eq!(IssuerSetting::parse(" , "), Ok(Vec::new()));
        let many = ["https://x.example"; MOST_ISSUERS + 1].join(",");
        assert!(IssuerSetting::parse(&many).is_err());
    }

    #[test]
    fn a_shared_secret_or_a_key_without_an_id_is_not_accepted_from_an_issuer() {
        let secret = json!({"kty": "oct", "kid": "s", "k": "AAAA"});
        let broken = json!({"kty": "EC", "kid": "b", "crv": "P-256", "x": "AA"});
        let nameless = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let mut named = nameless.clone();
        named["kid"] = json!("n");
        let nested = json!({"kid": "k", "keys": [secret]});
        assert!(usable(&[secret.clone(), broken.clone(), nameless.clone(), nested, json!(1)]).is_empty());
        let set = usable(&[secret, broken, nameless, named]);
        assert!(set.names("n") && !set.names("s") && !set.names("b"));
    }
}
