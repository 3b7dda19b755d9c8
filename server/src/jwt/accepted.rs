//! Keys that count beside the project's own: former ones until a stated time, and those that come next.
//! `ferrobase keys rotate` writes them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// The setting that holds them, a JSON array.
pub const ACCEPTED_KEYS: &str = "FERROBASE_ACCEPTED_KEYS";

/// One secret and the API keys that belong to it. Times are absent of keys that come next: those have no end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedKeys {
    #[serde(with = "revealed")]
    pub jwt_secret: Secret,
    /// `kid` of tokens that the secret signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_key_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "perhaps_revealed")]
    pub anon_key: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "perhaps_revealed")]
    pub service_role_key: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "perhaps_revealed")]
    pub publishable_key: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "perhaps_revealed")]
    pub secret_key: Option<Secret>,
    /// Until then every token counts that the secret has signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_until: Option<DateTime<Utc>>,
    /// Until then these API keys count, and links to files that the secret has signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_until: Option<DateTime<Utc>>,
}

impl AcceptedKeys {
    /// Errors: a sentence that names the setting and holds nothing of its text, which is secret.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("{ACCEPTED_KEYS} is not what 'ferrobase keys rotate' writes (line {line}, column {column})")
        })
    }

    /// Whether they come next: nothing was signed with them yet.
    pub fn is_next(&self) -> bool {
        self.tokens_until.is_none() && self.keys_until.is_none()
    }

    /// Whether nothing of them counts any more.
    pub fn is_over(&self, now: DateTime<Utc>) -> bool {
        !self.is_next() && [self.tokens_until, self.keys_until].iter().flatten().all(|until| *until <= now)
    }

    /// The API keys that are JSON Web Tokens.
    pub fn tokens(&self) -> impl Iterator<Item = &Secret> {
        [&self.anon_key, &self.service_role_key].into_iter().flatten()
    }
}

/// A secret where it is written on purpose.
mod revealed {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::secret::Secret;

    pub fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(secret.reveal())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        String::deserialize(from).map(Secret::new)
    }
}

mod perhaps_revealed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::secret::Secret;

    pub fn serialize<S: Serializer>(secret: &Option<Secret>, to: S) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::reveal).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Secret::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_values_are_named_without_their_content() {
        for text in ["geheim", r#"[{"jwt_secret":"geheim","x":1}]"#, r#"[{"jwt_secret":1,"anon_key":"geheim"}]"#] {
            let problem = AcceptedKeys::parse(text).expect_err("refused");
            assert!(problem.starts_with(ACCEPTED_KEYS) && !problem.contains("geheim"), "{problem}");
        }
    }

    #[test]
    fn next_keys_never_expire_and_former_ones_expire_with_all_their_uses() {
        let parse = |text: &str| AcceptedKeys::parse(text).expect("keys").remove(0);
        let now = Utc::now();
        let next = parse(r#"[{"jwt_secret":"s"}]"#);
        assert!(next.is_next() && !next.is_over(now));
        let half =
            parse(r#"[{"jwt_secret":"s","tokens_until":"2001-01-01T00:00:00Z","keys_until":"2999-01-01T00:00:00Z"}]"#);
        assert!(!half.is_next() && !half.is_over(now));
        assert!(AcceptedKeys { keys_until: half.tokens_until, ..half }.is_over(now));
    }
}
