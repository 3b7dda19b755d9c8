//! Authentication: from the bearer token to the transaction's role and claims.
//!
//! Signatures are checked once per token and cached; times and audience are checked at every request.
//! Reference: PostgREST `Auth/Jwt.hs`, `Auth/JwtCache.hs`.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use quick_cache::Lifecycle;
use quick_cache::sync::Cache;

use crate::config::RestConfig;
use crate::db::replica::Subject;
use crate::jwt::{Claims, Issuers, JwtError, KeySet, RolePath, verify};

/// The role of the request, and the claims that policies may read. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub role: Arc<str>,
    /// All claims as a JSON object, with `role` set to the role of the request; for `request.jwt.claims`.
    pub claims_json: Arc<str>,
    /// Whether no role was named, so that the anonymous one is used.
    pub is_anonymous: bool,
    /// Whose writes its reads have to see; `None` for guests.
    pub subject: Option<Subject>,
}

/// Verified tokens by their text; evictions are counted.
type VerifiedTokens =
    Cache<Box<str>, Arc<Verified>, quick_cache::UnitWeighter, foldhash::fast::RandomState, CountEvictions>;

/// Checks tokens against one configuration. Replaced when that is reloaded.
pub struct Authenticator {
    keys: Option<KeySet>,
    audience: Option<String>,
    role_path: RolePath,
    anonymous: Option<Identity>,
    verified: Option<VerifiedTokens>,
    /// [`KeySet::changes`] of when the cached tokens were verified.
    keys_seen: AtomicU64,
    counters: Arc<CacheCounters>,
}

/// The content of a verified token.
struct Verified {
    claims: Claims,
    /// When [`Claims::check`] passes, in seconds since 1970.
    valid: Option<RangeInclusive<i64>>,
    /// `None` if the token names no role and there is no anonymous one.
    identity: Option<Identity>,
}

/// Use of the cache of verified tokens since start; survives reloads.
#[derive(Debug, Default)]
pub struct CacheCounters {
    pub requests: AtomicU64,
    pub hits: AtomicU64,
    pub evictions: AtomicU64,
}

#[derive(Clone)]
struct CountEvictions(Arc<CacheCounters>);

impl Lifecycle<Box<str>, Arc<Verified>> for CountEvictions {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), _: Box<str>, _: Arc<Verified>) {
        self.0.evictions.fetch_add(1, Ordering::Relaxed);
    }
}

impl Authenticator {
    /// `issuers`: whose tokens count besides those of the configured keys.
    pub fn new(config: &RestConfig, issuers: Option<Issuers>, counters: Arc<CacheCounters>) -> Self {
        let capacity = config.jwt.cache_entries;
        let verified = (capacity > 0).then(|| {
            Cache::with(
                capacity,
                capacity as u64,
                Default::default(),
                Default::default(),
                CountEvictions(counters.clone()),
            )
        });
        let anonymous = config.anon_role.as_deref().map(|role| identity(role, &Claims::default(), true, true));
        Self {
            keys_seen: AtomicU64::new(0),
            keys: match (config.jwt.keys.clone(), issuers) {
                (None, None) => None,
                (keys, issuers) => Some(keys.unwrap_or_default().trusting(issuers)),
            },
            audience: config.jwt.audience.clone(),
            role_path: config.jwt.role_path.clone(),
            anonymous,
            verified,
            counters,
        }
    }

    /// The role of requests without a token.
    pub fn anonymous_role(&self) -> Option<&Arc<str>> {
        self.anonymous.as_ref().map(|anonymous| &anonymous.role)
    }

    /// `token`: of a bearer `Authorization` header, see [`bearer_token`].
    pub fn authenticate(&self, token: Option<&str>) -> Result<Identity, JwtError> {
        self.authenticate_at(token, now())
    }

    fn authenticate_at(&self, token: Option<&str>, now: i64) -> Result<Identity, JwtError> {
        let Some(token) = token else { return self.anonymous.clone().ok_or(JwtError::TokenRequired) };
        let verified = self.verified(token)?;
        if !verified.valid.as_ref().is_some_and(|valid| valid.contains(&now)) {
            verified.claims.check(now, self.audience.as_deref())?;
        }
        verified.identity.clone().ok_or(JwtError::TokenRequired)
    }

    fn verified(&self, token: &str) -> Result<Arc<Verified>, JwtError> {
        let keys = self.keys.as_ref().ok_or(JwtError::NoSecret)?;
        let Some(cache) = &self.verified else { return self.verify(token, keys) };
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let changes = keys.changes();
        if self.keys_seen.load(Ordering::Acquire) != changes {
            cache.clear();
            self.keys_seen.store(changes, Ordering::Release);
        }
        if let Some(found) = cache.get(token) {
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(found);
        }
        let verified = self.verify(token, keys)?;
        cache.insert(token.into(), verified.clone());
        Ok(verified)
    }

    fn verify(&self, token: &str, keys: &KeySet) -> Result<Arc<Verified>, JwtError> {
        let claims = verify(token, keys)?;
        let identity = match self.role_path.find(&claims) {
            Some(role) => {
                let is_guest = self.anonymous.as_ref().is_some_and(|anonymous| *anonymous.role == *role);
                Some(identity(&role, &claims, false, is_guest))
            }
            None => self.anonymous.as_ref().map(|anonymous| identity(&anonymous.role, &claims, true, true)),
        };
        let valid = claims.valid(self.audience.as_deref());
        Ok(Arc::new(Verified { claims, valid, identity }))
    }
}

/// `is_guest`: whether the role is the anonymous one, named or not.
fn identity(role: &str, claims: &Claims, is_anonymous: bool, is_guest: bool) -> Identity {
    let subject = Subject::named(claims.text("sub"), role, is_guest);
    Identity { role: role.into(), claims_json: claims.to_json_as(role).into(), is_anonymous, subject }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// The token of an `Authorization` header with the scheme `Bearer` (ignoring case); `None` for other schemes.
pub fn bearer_token(header: &str) -> Option<&str> {
    let header = header.trim();
    let (scheme, token) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    use super::*;
    use crate::config::Source;
    use crate::jwt::ClaimsError;

    const SECRET: &str = "a secret that is long enough for HS256";

    fn authenticator(pairs: &[(&str, &str)]) -> Authenticator {
        let source = Source::from_pairs(pairs.iter().copied());
        Authenticator::new(&RestConfig::load(&source).expect("config"), None, Arc::default())
    }

    fn token(claims: &Value) -> String {
        encode(&Header::default(), claims, &EncodingKey::from_secret(SECRET.as_bytes())).expect("token")
    }

    #[test]
    fn only_the_text_after_bearer_is_a_token() {
        assert_eq!(bearer_token("bearer  abc "), Some("abc"));
        assert_eq!(bearer_token("Bearer"), Some(""));
        assert_eq!(bearer_token("Basic abc"), None);
    }

    #[test]
    fn the_tokens_role_is_used_or_the_anonymous_role() {
        let auth = authenticator(&[("PGRST_JWT_SECRET", SECRET), ("PGRST_DB_ANON_ROLE", "anon")]);
        let named = auth.authenticate(Some(&token(&json!({"role": "r", "sub": "1"})))).expect("identity");
        assert_eq!((&*named.role, &*named.claims_json), ("r", r#"{"role":"r","sub":"1"}"#));
        let without = auth.authenticate(Some(&token(&json!({"sub": "1"})))).expect("identity");
        assert_eq!((&*without.role, &*without.claims_json), ("anon", r#"{"role":"anon","sub":"1"}"#));
        let nobody = auth.authenticate(None).expect("identity");
        assert_eq!((&*nobody.claims_json, nobody.is_anonymous), (r#"{"role":"anon"}"#, true));
    }

    #[test]
    fn without_anonymous_role_a_role_is_required() {
        let auth = authenticator(&[("PGRST_JWT_SECRET", SECRET)]);
        assert_eq!(auth.authenticate(None), Err(JwtError::TokenRequired));
        assert_eq!(auth.authenticate(Some(&token(&json!({})))), Err(JwtError::TokenRequired));
        assert_eq!(authenticator(&[]).authenticate(Some("x")), Err(JwtError::NoSecret));
    }

    #[test]
    fn a_cached_token_still_expires() {
        let auth = authenticator(&[("PGRST_JWT_SECRET", SECRET)]);
        let token = token(&json!({"role": "r", "exp": 1000}));
        assert!(auth.authenticate_at(Some(&token), 1030).is_ok());
        assert_eq!(auth.authenticate_at(Some(&token), 1031), Err(JwtError::Claims(ClaimsError::Expired)));
        assert_eq!(auth.counters.hits.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_cache_is_bounded_and_excludes_refusals() {
        let auth = authenticator(&[("PGRST_JWT_SECRET", SECRET), ("PGRST_JWT_CACHE_MAX_ENTRIES", "3")]);
        for n in 0..20 {
            auth.authenticate(Some(&token(&json!({"role": "r", "n": n})))).expect("identity");
        }
        assert!(auth.counters.evictions.load(Ordering::Relaxed) >= 17);
        for _ in 0..2 {
            assert!(auth.authenticate(Some("a.b.c")).is_err());
        }
        assert_eq!(auth.counters.hits.load(Ordering::Relaxed), 0);
    }
}
