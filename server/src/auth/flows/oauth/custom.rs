//! An administrator's settings for a provider's claims: which are accepted, and how they are mapped.
//! Reference: supabase/auth `internal/api/provider/custom_oauth.go`.

use serde_json::{Map, Value};

use super::claims::Profile;
use crate::auth::flows::custom_providers::CustomProvider;

/// The profile with the accepted claims and mapped attributes.
pub fn described(custom: &CustomProvider, mut profile: Profile, document: &Map<String, Value>) -> Profile {
    let mut kept = profile.document().get("custom_claims").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in &custom.custom_claims_allowlist {
        if let Some(value) = document.get(name) {
            kept.insert(name.clone(), value.clone());
        }
    }
    if !kept.is_empty() {
        profile.set_value("custom_claims", Value::Object(kept));
    }
    if !custom.attribute_mapping.is_empty() {
        let mut mapped = profile.document().clone();
        for (target, source) in &custom.attribute_mapping {
            match source {
                Value::String(name) => {
                    if let Some(value) = profile.document().get(name) {
                        mapped.insert(target.clone(), value.clone());
                    }
                }
                literal => {
                    mapped.insert(target.clone(), literal.clone());
                }
            }
        }
        if let Some(read) = Profile::from_document(&mapped) {
            profile = read;
        }
    }
    profile
}

/// The same for a user-info document, whose address becomes the profile's.
///
/// What the provider has verified is its own `email`. An address that is mapped from another claim (a nickname, say) is not
/// verified, unless the mapping itself says so. Upstream takes it for verified, and so signs in to accounts of others.
pub fn described_by_document(custom: &CustomProvider, profile: &Profile, document: &Map<String, Value>) -> Profile {
    let own = profile.text("email");
    let mut mapped = described(custom, profile.clone(), document);
    let email = mapped.text("email").to_owned();
    let is_vouched_for = custom.attribute_mapping.get("email_verified") == Some(&Value::Bool(true));
    let is_own = own.is_empty() || own.eq_ignore_ascii_case(&email);
    let verified = mapped.flag("email_verified") && (is_own || is_vouched_for);
    mapped.set_value("email_verified", Value::Bool(verified));
    mapped.with_email(&email, verified)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn custom(mapping: Value, allowed: &[&str]) -> CustomProvider {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        CustomProvider {
            attribute_mapping: object(mapping),
            custom_claims_allowlist: allowed.iter().map(|claim| (*claim).to_owned()).collect(),
            ..CustomProvider::new("oidc".to_owned(), "custom:x".to_owned())
        }
    }

    /// A mapped address took over what the provider said of another one.
    #[test]
    fn a_mapped_address_is_verified_only_if_it_is_the_providers_own() {
        for (mapping, document, wanted) in [
            (json!({}), json!({ "email": "a@x", "email_verified": true }), ("a@x", true)),
            (
                json!({ "email": "nickname" }),
                json!({ "email": "a@x", "email_verified": true, "nickname": "b@x" }),
                ("b@x", false),
            ),
            (
                json!({ "email": "nickname" }),
                json!({ "email": "a@x", "email_verified": true, "nickname": "A@x" }),
                ("A@x", true),
            ),
            (json!({ "email": "nickname" }), json!({ "email_verified": true, "nickname": "b@x" }), ("b@x", true)),
            (json!({ "email": "nickname" }), json!({ "nickname": "b@x" }), ("b@x", false)),
            (
                json!({ "email": "nickname", "email_verified": true }),
                json!({ "email": "a@x", "nickname": "b@x" }),
                ("b@x", true),
            ),
        ] {
            let document = document.as_object().expect("object");
            let profile = Profile::from_document(document).expect("profile");
            let found = described_by_document(&custom(mapping.clone(), &[]), &profile, document);
            let [address] = found.emails.as_slice() else { panic!("{:?}", found.emails) };
            assert_eq!((address.email.as_str(), address.verified), wanted, "{mapping} {document:?}");
            assert_eq!(found.flag("email_verified"), wanted.1, "{mapping} {document:?}");
        }
    }

    #[test]
    fn claims_are_filtered_and_mapped_as_configured() {
        let document = json!({ "sub": "1", "name": "Ada", "email": "a@x", "email_verified": true, "groups": ["g"] });
        let document = document.as_object().expect("object");
        let profile = || Profile::from_document(document).expect("profile");
        for (mapping, allowed, wanted) in [
            (json!({}), vec![], json!({ "name": "Ada" })),
            (json!({}), vec!["groups", "absent"], json!({ "name": "Ada", "custom_claims": { "groups": ["g"] } })),
            (json!({ "full_name": "name", "locale": "absent" }), vec![], json!({ "name": "Ada", "full_name": "Ada" })),
            (
                json!({ "custom_claims": { "plan": 1 } }),
                vec![],
                json!({ "name": "Ada", "custom_claims": { "plan": 1 } }),
            ),
            // A mapping with an invalid result changes nothing.
            (json!({ "name": 7 }), vec![], json!({ "name": "Ada" })),
        ] {
            let mut whole = json!({ "sub": "1", "email": "a@x", "email_verified": true, "phone_verified": false });
            whole.as_object_mut().expect("object").extend(wanted.as_object().cloned().unwrap_or_default());
            let found = described(&custom(mapping.clone(), &allowed), profile(), document);
            assert_eq!(Value::Object(found.identity_data()), whole, "{mapping} {allowed:?}");
        }
    }
}
