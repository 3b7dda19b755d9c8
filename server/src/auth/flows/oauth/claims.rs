//! A provider's claims about a person, in the common form for all providers.

use chrono::DateTime;
use serde_json::{Map, Value, json};

use crate::auth::models::Json;

/// An address, and whether the provider has verified it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub email: String,
    pub verified: bool,
    pub primary: bool,
}

/// A person as a provider knows them.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub emails: Vec<Address>,
    claims: Json,
}

/// The text claims copied from tokens and user-info documents.
const TEXTS: [&str; 22] = [
    "iss",
    "sub",
    "name",
    "family_name",
    "given_name",
    "middle_name",
    "nickname",
    "preferred_username",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
    "email",
    "phone",
    "full_name",
    "avatar_url",
    "slug",
    "provider_id",
    "user_name",
];

impl Profile {
    /// The claims given, without empty texts.
    pub fn new(claims: &[(&str, &str)]) -> Self {
        let mut profile = Self::default();
        for (name, value) in claims {
            profile.set(name, value);
        }
        profile
    }

    /// Copies the known claims of a document, like a typed JSON decoder: `None` if one has the wrong type.
    pub fn from_document(document: &Map<String, Value>) -> Option<Self> {
        let mut profile = Self::default();
        for name in TEXTS {
            match document.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => profile.set(name, text),
                Some(_) => return None,
            }
        }
        for name in ["email_verified", "phone_verified"] {
            match document.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(flag)) => profile.set_value(name, json!(flag)),
                Some(_) => return None,
            }
        }
        for name in ["iat", "exp"] {
            match document.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Number(number)) if number.as_f64() == Some(0.0) => {}
                Some(Value::Number(number)) => profile.set_value(name, json!(number)),
                Some(_) => return None,
            }
        }
        match document.get("aud") {
            None | Some(Value::Null) => {}
            Some(Value::String(aud)) => profile.set_value("aud", json!([aud])),
            Some(Value::Array(all)) if all.iter().all(Value::is_string) => profile.set_value("aud", json!(all)),
            Some(_) => return None,
        }
        match document.get("custom_claims") {
            None | Some(Value::Null) => {}
            Some(Value::Object(custom)) => profile.set_value("custom_claims", json!(custom)),
            Some(_) => return None,
        }
        match document.get("updated_at") {
            None | Some(Value::Null) => {}
            Some(Value::Number(number)) => {
                let at = DateTime::from_timestamp(number.as_f64()?.trunc() as i64, 0)?;
                profile.set_value("updated_at", json!(at.format("%Y-%m-%dT%H:%M:%SZ").to_string()));
            }
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => {
                let at = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
                profile.set_value("updated_at", json!(at.format("%Y-%m-%dT%H:%M:%SZ").to_string()));
            }
            Some(_) => return None,
        }
        Some(profile)
    }

    /// Sets a text, or removes it when empty.
    pub fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.claims.remove(name);
        } else {
            self.claims.insert(name.to_owned(), json!(value));
        }
    }

    pub fn set_value(&mut self, name: &str, value: Value) {
        self.claims.insert(name.to_owned(), value);
    }

    pub fn with_custom(mut self, custom: Value) -> Self {
        self.set_value("custom_claims", custom);
        self
    }

    /// Adds the address, the primary one, unless it is empty.
    pub fn with_email(mut self, email: &str, verified: bool) -> Self {
        if !email.is_empty() {
            self.emails.push(Address { email: email.to_owned(), verified, primary: true });
        }
        self
    }

    /// Adds the address as the primary, verified one even if it is empty: the provider verifies the person with or
    /// without an address.
    pub fn vouched_for(mut self, email: &str) -> Self {
        self.emails.push(Address { email: email.to_owned(), verified: true, primary: true });
        self
    }

    pub fn text(&self, name: &str) -> &str {
        self.claims.get(name).and_then(Value::as_str).unwrap_or("")
    }

    pub fn flag(&self, name: &str) -> bool {
        self.claims.get(name) == Some(&Value::Bool(true))
    }

    /// The provider's id of the person.
    pub fn subject(&self) -> &str {
        self.text("sub")
    }

    /// Makes the primary address (else the last) the `email` claim.
    pub fn choose_email(&mut self) {
        let chosen = self.emails.iter().find(|address| address.primary).or(self.emails.last()).cloned();
        self.claims.insert("email_verified".to_owned(), Value::Bool(false));
        if let Some(address) = chosen {
            self.set("email", &address.email);
            self.claims.insert("email_verified".to_owned(), Value::Bool(address.verified));
        }
    }

    pub fn is_email_verified(&self) -> bool {
        self.flag("email_verified")
    }

    /// As stored in `identity_data` and `user_metadata`: both flags are always present.
    pub fn identity_data(&self) -> Json {
        let mut data = self.claims.clone();
        for flag in ["email_verified", "phone_verified"] {
            data.entry(flag.to_owned()).or_insert(Value::Bool(false));
        }
        data
    }

    /// The claims as a document, for attribute mappings.
    pub fn document(&self) -> &Json {
        &self.claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_claims_are_adopted_and_wrong_types_refused() {
        let document = json!({
            "sub": "1", "aud": "a", "exp": 5, "iat": 0, "email": "", "unknown": 1, "updated_at": 0, "picture": null,
        });
        let profile = Profile::from_document(document.as_object().expect("object")).expect("profile");
        assert_eq!(
            Value::Object(profile.identity_data()),
            json!({
                "sub": "1", "aud": ["a"], "exp": 5, "updated_at": "1970-01-01T00:00:00Z",
                "email_verified": false, "phone_verified": false,
            })
        );
        let wrong = json!({ "email_verified": "true" });
        assert!(Profile::from_document(wrong.as_object().expect("object")).is_none());
    }

    #[test]
    fn the_primary_address_becomes_the_email_claim() {
        let mut profile = Profile::new(&[("sub", "1")]).with_email("a@x", true);
        profile.emails.push(Address { email: "b@x".to_owned(), verified: false, primary: false });
        profile.choose_email();
        assert_eq!((profile.text("email"), profile.is_email_verified()), ("a@x", true));
    }
}
