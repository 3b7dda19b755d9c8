//! The project's API keys: two JSON Web Tokens and the two corresponding opaque keys.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;
use subtle::ConstantTimeEq;

use crate::config::{DEVELOPMENT_PUBLISHABLE_KEY, DEVELOPMENT_SECRET_KEY, Secret, ServerConfig};
use crate::jwt::secret::{SecretKey, unverified};
use crate::jwt::{AcceptedKeys, Issuers, KeySet, verify};

/// `exp` of the development keys and of keys signed at start: the Supabase CLI's.
const KEY_EXPIRY: u64 = 1_983_812_996;

/// Maps presented keys to tokens. Cheap to clone.
#[derive(Clone)]
pub struct ApiKeys {
    inner: Arc<Keys>,
}

#[derive(Clone)]
struct Keys {
    anon: String,
    service_role: String,
    publishable: Option<String>,
    secret: Option<String>,
    /// Whether requests without an API key are allowed, as at the gateway of `supabase start`.
    is_open: bool,
    /// Whether the public development keys are accepted.
    takes_known: bool,
    /// Tokens for anon and service_role signed with these keys are accepted as keys too.
    vouching: Option<Arc<KeySet>>,
    issuers: Option<Issuers>,
    /// Former and next keys, with their role and expiry.
    accepted: Vec<(Secret, Holder, Option<DateTime<Utc>>)>,
}

/// The role of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Anon,
    Service,
}

impl ApiKeys {
    /// The configured keys. A JWT that is not configured is signed with the secret, as `supabase start` prints it.
    pub fn from_config(config: &ServerConfig) -> Self {
        let secret = config.jwt_secret.reveal();
        let anon = config.anon_key.clone().unwrap_or_else(|| sign_key(secret, "anon"));
        let service_role = config
            .service_role_key
            .as_ref()
            .map_or_else(|| sign_key(secret, "service_role"), |k| k.reveal().to_owned());
        Self {
            inner: Arc::new(Keys {
                anon,
                service_role,
                publishable: config.publishable_key.clone(),
                secret: config.secret_key.as_ref().map(|k| k.reveal().to_owned()),
                is_open: config.open_gateway,
                takes_known: config.takes_known_keys(),
                vouching: None,
                issuers: None,
                accepted: config.accepted_keys.iter().flat_map(accepted).collect(),
            }),
        }
    }

    /// In development, accepts every anon and service_role token signed with a key of the project: those of `supabase gen
    /// bearer-jwt`, and those of a project whose keys have changed.
    pub fn vouched_for_by(mut self, keys: Arc<KeySet>) -> Self {
        Arc::make_mut(&mut self.inner).vouching = Some(keys);
        self
    }

    /// Tokens of `issuers` are waited for where their keys are not known yet. They are no API keys.
    pub fn trusting(mut self, issuers: Option<Issuers>) -> Self {
        Arc::make_mut(&mut self.inner).issuers = issuers;
        self
    }

    /// Whose tokens the APIs accept besides the project's own.
    pub fn issuers(&self) -> Option<&Issuers> {
        self.inner.issuers.as_ref()
    }

    /// Problems of the configured keys.
    pub fn problems(config: &ServerConfig) -> Vec<String> {
        let secret = config.jwt_secret.reveal();
        let tokens = [
            ("ANON_KEY", "anon", config.anon_key.as_deref()),
            ("SERVICE_ROLE_KEY", "service_role", config.service_role_key.as_ref().map(|key| key.reveal())),
        ];
        let opaque = [
            ("SB_PUBLISHABLE_KEY", "sb_publishable_", config.publishable_key.as_deref()),
            ("SB_SECRET_KEY", "sb_secret_", config.secret_key.as_ref().map(|key| key.reveal())),
        ];
        let wrong_tokens = tokens.into_iter().filter_map(|(name, role, key)| match token_role(secret, key?) {
            Some(named) if named == role => None,
            // Tokens signed with a key pair are verified by the server that has the key.
            None if unverified(key?).is_some_and(|(header, _)| header["alg"] != "HS256") => None,
            Some(named) => Some(format!("{name} is a key of the role {named}")),
            None => {
                Some(format!("{name} is not signed with JWT_SECRET (generate keys with 'ferrobase keys generate')"))
            }
        });
        let wrong_opaque = opaque
            .into_iter()
            .filter(|(_, prefix, key)| key.is_some_and(|key| !key.starts_with(prefix)))
            .map(|(name, prefix, _)| format!("{name} must begin with {prefix}"));
        wrong_tokens.chain(wrong_opaque).collect()
    }

    #[cfg(test)]
    pub(super) fn fixed(anon: &str, service_role: &str, publishable: Option<&str>, secret: Option<&str>) -> Self {
        Self {
            inner: Arc::new(Keys {
                anon: anon.to_owned(),
                service_role: service_role.to_owned(),
                publishable: publishable.map(str::to_owned),
                secret: secret.map(str::to_owned),
                is_open: false,
                takes_known: false,
                vouching: None,
                issuers: None,
                accepted: Vec::new(),
            }),
        }
    }

    /// The same keys at a gateway that lets requests without one pass.
    #[cfg(test)]
    pub(super) fn open(mut self) -> Self {
        if let Some(keys) = Arc::get_mut(&mut self.inner) {
            keys.is_open = true;
        }
        self
    }

    /// Whether requests without an API key are allowed. Each API then checks the `Authorization` header.
    pub fn is_open(&self) -> bool {
        self.inner.is_open
    }

    /// The anon token, which is public.
    pub fn anon(&self) -> &str {
        &self.inner.anon
    }

    /// The service_role token, which bypasses all policies.
    pub fn service_role(&self) -> &str {
        &self.inner.service_role
    }

    /// The token for a presented key; `None` if it is not one of the project's. Compared in constant time.
    pub fn token_of(&self, presented: &str) -> Option<String> {
        match self.known(presented) {
            Some(Holder::Anon) => Some(self.inner.anon.clone()),
            Some(Holder::Service) => Some(self.inner.service_role.clone()),
            None => self.vouched(presented).map(|_| presented.to_owned()),
        }
    }

    /// Whether a presented key bypasses all policies.
    pub fn is_of_service(&self, presented: &str) -> bool {
        self.known(presented).or_else(|| self.vouched(presented)) == Some(Holder::Service)
    }

    fn known(&self, presented: &str) -> Option<Holder> {
        let keys = &self.inner;
        let same = |key: &str| bool::from(key.as_bytes().ct_eq(presented.as_bytes()));
        if same(&keys.anon) || keys.publishable.as_deref().is_some_and(same) {
            Some(Holder::Anon)
        } else if same(&keys.service_role) || keys.secret.as_deref().is_some_and(same) {
            Some(Holder::Service)
        } else if keys.takes_known && presented == DEVELOPMENT_PUBLISHABLE_KEY {
            Some(Holder::Anon)
        } else if keys.takes_known && presented == DEVELOPMENT_SECRET_KEY {
            Some(Holder::Service)
        } else {
            let now = Utc::now();
            let is_taken = |(key, _, until): &&(Secret, Holder, Option<DateTime<Utc>>)| {
                same(key.reveal()) && until.is_none_or(|until| now < until)
            };
            keys.accepted.iter().find(is_taken).map(|(_, holder, _)| *holder)
        }
    }

    /// The role of an unexpired token signed with one of the project's keys.
    fn vouched(&self, presented: &str) -> Option<Holder> {
        let claims = verify(presented, self.inner.vouching.as_ref()?).ok()?;
        claims.check(chrono::Utc::now().timestamp(), None).ok()?;
        match claims.text("role")? {
            "anon" => Some(Holder::Anon),
            "service_role" => Some(Holder::Service),
            _ => None,
        }
    }
}

fn accepted(keys: &AcceptedKeys) -> impl Iterator<Item = (Secret, Holder, Option<DateTime<Utc>>)> {
    let until = keys.keys_until;
    [
        (&keys.anon_key, Holder::Anon),
        (&keys.publishable_key, Holder::Anon),
        (&keys.service_role_key, Holder::Service),
        (&keys.secret_key, Holder::Service),
    ]
    .into_iter()
    .filter_map(move |(key, holder)| Some((key.clone()?, holder, until)))
}

/// A key token with the claims `iss`, `role`, `exp` in the order of the Supabase CLI's local keys.
pub fn sign_key(secret: &str, role: &str) -> String {
    let claims = format!(r#"{{"iss":"supabase-demo","role":"{role}","exp":{KEY_EXPIRY}}}"#);
    SecretKey::new(secret).sign_text(&claims)
}

/// The role in a token signed with this secret, even if it has expired; `None` for any other text.
fn token_role(secret: &str, token: &str) -> Option<String> {
    let claims: Value = SecretKey::new(secret).verify(token).ok()?;
    Some(claims["role"].as_str().unwrap_or("none").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_development_secret_gives_the_well_known_anon_key() {
        let known = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0";
        assert_eq!(sign_key("super-secret-jwt-token-with-at-least-32-characters-long", "anon"), known);
    }

    #[test]
    fn in_development_all_keys_of_the_project_are_accepted() {
        let own = "0123456789abcdef0123456789abcdef";
        let keys = |pairs: &[(&str, &str)]| {
            let source = crate::config::Source::from_pairs(pairs.iter().copied());
            let config = ServerConfig::read(&mut crate::config::Reader::new(&source));
            let vouching = Arc::new(KeySet::from_secret(config.jwt_secret.reveal().as_bytes()));
            ApiKeys::from_config(&config).vouched_for_by(vouching)
        };
        let local = keys(&[("FERROBASE_DEV", "true"), ("SB_SECRET_KEY", "sb_secret_own")]);
        for (key, is_of_service) in
            [(DEVELOPMENT_PUBLISHABLE_KEY, false), (DEVELOPMENT_SECRET_KEY, true), ("sb_secret_own", true)]
        {
            assert!(local.token_of(key).is_some() && local.is_of_service(key) == is_of_service, "{key}");
        }
        let sign = |secret: &str, claims: &str| SecretKey::new(secret).sign_text(claims);
        let older = sign(crate::config::DEVELOPMENT_JWT_SECRET, r#"{"role":"service_role","iat":1}"#);
        assert_eq!(local.token_of(&older), Some(older.clone()));
        assert!(local.is_of_service(&older));
        for claims in [r#"{"role":"authenticated"}"#, r#"{"role":"anon","exp":1}"#, "{}"] {
            assert_eq!(local.token_of(&sign(crate::config::DEVELOPMENT_JWT_SECRET, claims)), None, "{claims}");
        }
        assert_eq!(local.token_of(&sign(own, r#"{"role":"anon"}"#)), None);
        // Well-known keys are refused if the project has its own secret, or if others can reach the server.
        for pairs in [
            &[("FERROBASE_DEV", "true"), ("JWT_SECRET", own)][..],
            &[("JWT_SECRET", own)],
            &[("FERROBASE_DEV", "true"), ("FERROBASE_LISTEN", "0.0.0.0:54321")],
        ] {
            assert_eq!(keys(pairs).token_of(DEVELOPMENT_SECRET_KEY), None, "{pairs:?}");
        }
    }

    #[test]
    fn former_keys_are_exchanged_for_current_ones_until_they_end() {
        let keys = |until: &str| {
            let accepted = format!(
                r#"[{{"jwt_secret":"{}","anon_key":"a.b.c","secret_key":"sb_secret_former","keys_until":"{until}"}}]"#,
                "f".repeat(32)
            );
            let pairs =
                [("JWT_SECRET", "0123456789abcdef0123456789abcdef"), ("FERROBASE_ACCEPTED_KEYS", accepted.as_str())];
            let source = crate::config::Source::from_pairs(pairs);
            ApiKeys::from_config(&ServerConfig::read(&mut crate::config::Reader::new(&source)))
        };
        let current = keys("2999-01-01T00:00:00Z");
        assert_eq!(current.token_of("a.b.c").as_deref(), Some(current.anon()));
        assert_eq!(current.token_of("sb_secret_former").as_deref(), Some(current.service_role()));
        assert!(current.is_of_service("sb_secret_former") && !current.is_of_service("a.b.c"));
        let over = keys("2001-01-01T00:00:00Z");
        assert_eq!((over.token_of("a.b.c"), over.token_of("sb_secret_former")), (None, None));
    }

    #[test]
    fn unusable_configured_keys_are_reported() {
        let own = "0123456789abcdef0123456789abcdef";
        let problems = |pairs: &[(&str, &str)]| {
            let mut source = crate::config::Source::from_pairs(pairs.iter().copied());
            source.set("JWT_SECRET", own);
            ApiKeys::problems(&ServerConfig::read(&mut crate::config::Reader::new(&source)))
        };
        let (anon, service) = (sign_key(own, "anon"), sign_key(own, "service_role"));
        assert!(problems(&[("ANON_KEY", &anon), ("SERVICE_ROLE_KEY", &service)]).is_empty());
        // Regression with swapped keys: the browser got the one that bypasses all policies.
        assert_eq!(
            problems(&[("ANON_KEY", &service), ("SERVICE_ROLE_KEY", &sign_key("another secret", "service_role"))]),
            [
                "ANON_KEY is a key of the role service_role",
                "SERVICE_ROLE_KEY is not signed with JWT_SECRET (generate keys with 'ferrobase keys generate')",
            ]
        );
        assert_eq!(problems(&[("SB_SECRET_KEY", "x")]), ["SB_SECRET_KEY must begin with sb_secret_"]);
    }

    #[test]
    fn the_development_secret_gives_the_well_known_service_key() {
        let known = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
        assert_eq!(sign_key("super-secret-jwt-token-with-at-least-32-characters-long", "service_role"), known);
    }
}
