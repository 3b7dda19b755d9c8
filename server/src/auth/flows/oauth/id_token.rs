//! Translates the claims of ID tokens, per issuer. Reference: supabase/auth
//! `internal/api/provider/oidc.go`.

use serde_json::{Map, Value, json};

use super::claims::Profile;
use super::oidc::{self, IdToken};

/// The profile in an ID token; `None` if its claims have wrong types.
pub fn profile(token: &IdToken) -> Option<Profile> {
    let issuer = token.text("iss");
    for name in ["email", "name", "picture"] {
        if token.claims.get(name).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return None;
        }
    }
    let sub = token.text("sub");
    let (email, name, picture) = (token.text("email"), token.text("name"), token.text("picture"));
    let base = [("iss", issuer), ("sub", sub), ("provider_id", sub)];
    let with = |more: &[(&str, &str)]| {
        let mut profile = Profile::new(&base);
        for (name, value) in more {
            profile.set(name, value);
        }
        profile
    };
    Some(match issuer {
        oidc::GOOGLE | "accounts.google.com" => {
            let verified = flag(token, "email_verified") || flag(token, "verified_email");
            let mut profile =
                with(&[("name", name), ("picture", picture), ("avatar_url", picture), ("full_name", name)])
                    .with_email(email, verified);
            if !token.text("hd").is_empty() {
                profile = profile.with_custom(json!({ "hd": token.text("hd") }));
            }
            profile
        }
        oidc::FACEBOOK => with(&[("name", name), ("picture", picture), ("email", email)]).with_email(email, true),
        oidc::KAKAO => {
            let nickname = token.text("nickname");
            with(&[("name", nickname), ("preferred_username", nickname), ("picture", picture)]).with_email(email, true)
        }
        oidc::LINKEDIN => {
            let verified = match token.claims.get("email_verified") {
                Some(Value::String(text)) => spelled_flag(text)?,
                Some(Value::Bool(flag)) => *flag,
                _ => return None,
            };
            let (given, family) = (token.text("given_name"), token.text("family_name"));
            with(&[
                ("name", format!("{given} {family}").trim()),
                ("given_name", given),
                ("family_name", family),
                ("locale", token.text("locale")),
                ("picture", picture),
            ])
            .with_email(email, verified)
        }
        oidc::VERCEL_MARKETPLACE => {
            let global = token.text("global_user_id");
            let subject = if global.is_empty() { sub.to_owned() } else { format!("global_user_id:{global}") };
            with(&[
                ("sub", &subject),
                ("provider_id", &subject),
                ("name", token.text("user_name")),
                ("picture", token.text("user_avatar_url")),
            ])
            .vouched_for(token.text("user_email"))
        }
        oidc::SNAPCHAT => {
            let mut profile = Profile::from_document(&token.claims)?;
            if !email.is_empty() {
                profile.set_value("email_verified", json!(true));
            }
            profile.with_email(email, true)
        }
        issuer if oidc::is_apple(issuer) => apple(token, with(&[]))?,
        issuer if oidc::is_azure(issuer) => azure(token, &with(&[]))?,
        _ => {
            let profile = Profile::from_document(&token.claims)?;
            let verified = profile.flag("email_verified");
            profile.with_email(email, verified)
        }
    })
}

fn flag(token: &IdToken, name: &str) -> bool {
    token.claims.get(name) == Some(&Value::Bool(true))
}

/// Apple may write flags as texts. Its addresses, including relay addresses, are verified unless it states otherwise
/// (accounts of schools and companies); upstream trusts all of them. The address may be missing.
fn apple(token: &IdToken, profile: Profile) -> Option<Profile> {
    let mut custom = Map::new();
    for name in ["is_private_email", "auth_time", "transfer_sub"] {
        let value = match (name, token.claims.get(name)) {
            (_, None | Some(Value::Null)) => continue,
            ("is_private_email", Some(Value::Bool(flag))) => json!(flag),
            ("is_private_email", Some(Value::String(text))) => json!(spelled_flag(text)?),
            ("auth_time", Some(Value::Number(at))) => json!(at),
            ("transfer_sub", Some(Value::String(sub))) if sub.is_empty() => continue,
            ("transfer_sub", Some(Value::String(sub))) => json!(sub),
            _ => return None,
        };
        custom.insert(name.to_owned(), value);
    }
    let is_unverified = match token.claims.get("email_verified") {
        Some(Value::Bool(flag)) => !flag,
        Some(Value::String(text)) => spelled_flag(text) == Some(false),
        _ => false,
    };
    let email = token.text("email");
    let profile = if is_unverified { profile.with_email(email, false) } else { profile.vouched_for(email) };
    Some(if custom.is_empty() { profile } else { profile.with_custom(Value::Object(custom)) })
}

/// A flag as Go's `strconv.ParseBool` reads it.
fn spelled_flag(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Claims of Azure that say nothing about the person.
const PLUMBING: [&str; 16] = [
    "aud",
    "iss",
    "iat",
    "nbf",
    "exp",
    "c_hash",
    "at_hash",
    "aio",
    "nonce",
    "rh",
    "uti",
    "jti",
    "ver",
    "sub",
    "name",
    "preferred_username",
];

/// An address counts as verified if `xms_edov` (the tenant's owner verified the domain) is true or missing.
fn azure(token: &IdToken, base: &Profile) -> Option<Profile> {
    let verified = match token.claims.get("xms_edov") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(text)) => text == "1" || text == "true",
        Some(_) => false,
    };
    if token.claims.get("preferred_username").is_some_and(|name| !name.is_string() && !name.is_null()) {
        return None;
    }
    let mut profile = base.clone();
    profile.set("preferred_username", token.text("preferred_username"));
    profile.set("full_name", token.text("name"));
    let mut custom = token.claims.clone();
    custom.retain(|name, _| !PLUMBING.contains(&name.as_str()));
    Some(profile.with_custom(Value::Object(custom)).with_email(token.text("email"), verified))
}
