//! `[auth.third_party.*]`: other issuers whose tokens count. Reference: supabase/cli `pkg/config/config.go` (`issuerURL`).

use super::values::Values;

const PROVIDERS: [&str; 5] = ["firebase", "auth0", "aws_cognito", "clerk", "workos"];

/// The URLs of the enabled issuers, and sentences about those that lack something.
pub fn issuers(values: &Values) -> (Vec<String>, Vec<String>) {
    let mut found = (Vec::new(), Vec::new());
    for provider in PROVIDERS {
        let path = format!("auth.third_party.{provider}");
        if !values.flag(&format!("{path}.enabled"), false) {
            continue;
        }
        match issuer(values, provider, &path) {
            Ok(url) => found.0.push(url),
            Err(key) => found.1.push(format!(
                "supabase/config.toml: {path} is enabled, but {path}.{key} is not set or cannot be part of a URL: tokens of \
                 this provider are refused"
            )),
        }
    }
    found
}

/// Errors: the key without a usable value.
fn issuer(values: &Values, provider: &str, path: &str) -> Result<String, &'static str> {
    let text = |key: &'static str| values.text(&format!("{path}.{key}")).ok_or(key);
    let name = |key: &'static str| text(key).and_then(|value| if is_name(&value) { Ok(value) } else { Err(key) });
    Ok(match provider {
        "firebase" => format!("https://securetoken.google.com/{}", name("project_id")?),
        "auth0" => {
            let tenant = name("tenant")?;
            match text("tenant_region") {
                Ok(_) => format!("https://{tenant}.{}.auth0.com", name("tenant_region")?),
                Err(_) => format!("https://{tenant}.auth0.com"),
            }
        }
        "aws_cognito" => {
            let (pool, region) = (name("user_pool_id")?, name("user_pool_region")?);
            format!("https://cognito-idp.{region}.amazonaws.com/{pool}")
        }
        "clerk" => format!("https://{}", name("domain")?),
        _ => {
            let url = text("issuer_url")?;
            let is_url = url::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
            if is_url && !url.contains([',', ' ']) { Ok(url) } else { Err("issuer_url") }?
        }
    })
}

/// Whether a value leads nowhere else when it stands in a URL.
fn is_name(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_provider_has_its_issuer_and_missing_settings_are_reported() {
        let parse = |text: &str| issuers(&Values::parse(text, &BTreeMap::new()).expect("values"));
        for (section, wanted) in [
            ("firebase]\nproject_id = \"p-1\"", "https://securetoken.google.com/p-1"),
            ("auth0]\ntenant = \"t\"\ntenant_region = \"eu\"", "https://t.eu.auth0.com"),
            ("auth0]\ntenant = \"t\"", "https://t.auth0.com"),
            (
                "aws_cognito]\nuser_pool_id = \"eu-1_x\"\nuser_pool_region = \"eu-1\"",
                "https://cognito-idp.eu-1.amazonaws.com/eu-1_x",
            ),
            ("clerk]\ndomain = \"x.clerk.accounts.dev\"", "https://x.clerk.accounts.dev"),
            (
                "workos]\nissuer_url = \"https://api.workos.com/user_management/c\"",
                "https://api.workos.com/user_management/c",
            ),
        ] {
            let on = parse(&format!("[auth.third_party.{section}\nenabled = true\n"));
            assert_eq!(on, (vec![wanted.to_owned()], Vec::new()));
            assert_eq!(parse(&format!("[auth.third_party.{section}\n")), (Vec::new(), Vec::new()));
        }
        for (section, key) in [
            ("firebase]", "project_id"),
            ("firebase]\nproject_id = \"env(NONE)\"", "project_id"),
            ("auth0]\ntenant = \"evil.example/?\"", "tenant"),
            ("aws_cognito]\nuser_pool_id = \"x\"", "user_pool_region"),
            ("workos]\nissuer_url = \"https://x,https://y\"", "issuer_url"),
        ] {
            let (found, problems) = parse(&format!("[auth.third_party.{section}\nenabled = true\n"));
            assert!(
                found.is_empty() && problems.len() == 1 && problems[0].contains(&format!(".{key} ")),
                "{problems:?}"
            );
        }
    }
}
