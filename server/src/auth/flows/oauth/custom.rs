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
