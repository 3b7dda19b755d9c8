//! The project's API keys: two JSON Web Tokens and their opaque twins.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::config::ServerConfig;

/// `exp` of the development keys and of keys signed at start: the Supabase CLI's.
const KEY_EXPIRY: u64 = 1_983_812_996;

/// Which presented key acts as which token. Cheap to clone.
#[derive(Clone)]
pub struct ApiKeys {
    inner: Arc<Keys>,
}

struct Keys {
    anon: String,
    service_role: String,
    publishable: Option<String>,
    secret: Option<String>,
}

impl ApiKeys {
    /// The configured keys; a JWT that is not given is signed from the secret, as `supabase start` prints it.
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
            }),
        }
    }

    #[cfg(test)]
    pub(super) fn fixed(anon: &str, service_role: &str, publishable: Option<&str>, secret: Option<&str>) -> Self {
        Self {
            inner: Arc::new(Keys {
                anon: anon.to_owned(),
                service_role: service_role.to_owned(),
                publishable: publishable.map(str::to_owned),
                secret: secret.map(str::to_owned),
            }),
        }
    }

    /// The anon token: public knowledge.
    pub fn anon(&self) -> &str {
        &self.inner.anon
    }

    /// The service_role token: passes every policy.
    pub fn service_role(&self) -> &str {
        &self.inner.service_role
    }

    /// The token a presented key acts as; `None` if it is none of the project's keys. Compared in constant time.
    pub fn token_of(&self, presented: &str) -> Option<String> {
        let keys = &self.inner;
        let same = |key: &str| bool::from(key.as_bytes().ct_eq(presented.as_bytes()));
        if same(&keys.anon) || keys.publishable.as_deref().is_some_and(same) {
            Some(keys.anon.clone())
        } else if same(&keys.service_role) || keys.secret.as_deref().is_some_and(same) {
            Some(keys.service_role.clone())
        } else {
            None
        }
    }
}

/// An HS256 key token with the claims `iss`, `role`, `exp` in the order of the Supabase CLI's local keys.
pub fn sign_key(secret: &str, role: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"iss":"supabase-demo","role":"{role}","exp":{KEY_EXPIRY}}}"#));
    let signed = format!("{header}.{claims}");
    // HMAC takes a key of any length.
    let signature = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map(|mut mac| {
            mac.update(signed.as_bytes());
            URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
        })
        .unwrap_or_default();
    format!("{signed}.{signature}")
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
    fn the_development_secret_gives_the_well_known_service_key() {
        let known = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
        assert_eq!(sign_key("super-secret-jwt-token-with-at-least-32-characters-long", "service_role"), known);
    }
}
