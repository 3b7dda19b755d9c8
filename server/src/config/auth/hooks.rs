//! Hooks: `GOTRUE_HOOK_*`.

use crate::config::{Reader, Secret};

/// One hook: its address and signing secrets.
#[derive(Clone, Debug)]
pub struct HookConfig {
    pub uri: String,
    pub secrets: Vec<Secret>,
}

#[derive(Clone, Debug, Default)]
pub struct HooksConfig {
    pub mfa_verification_attempt: Option<HookConfig>,
    pub password_verification_attempt: Option<HookConfig>,
    pub custom_access_token: Option<HookConfig>,
    pub send_email: Option<HookConfig>,
    pub send_sms: Option<HookConfig>,
    pub before_user_created: Option<HookConfig>,
    pub after_user_created: Option<HookConfig>,
}

impl HooksConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut hook = |names: [&'static str; 3]| {
            if !reader.flag(&[names[0]], false) {
                return None;
            }
            let uri = reader.text_or(&[names[1]], "");
            if let Some(problem) = hook_uri_problem(&uri) {
                reader.problem(format!("{} {problem}", names[1]));
            }
            let secrets: Vec<Secret> =
                reader.text_or(&[names[2]], "").split('|').filter(|part| !part.is_empty()).map(Secret::new).collect();
            for secret in &secrets {
                if !secret.reveal().starts_with("v1,whsec_") && !secret.reveal().starts_with("v1a,whpk_") {
                    reader.problem(format!("{} must hold secrets of the form v1,whsec_<base64>", names[2]));
                }
            }
            Some(HookConfig { uri, secrets })
        };
        macro_rules! names {
            ($name:literal) => {
                [
                    concat!("GOTRUE_HOOK_", $name, "_ENABLED"),
                    concat!("GOTRUE_HOOK_", $name, "_URI"),
                    concat!("GOTRUE_HOOK_", $name, "_SECRETS"),
                ]
            };
        }
        Self {
            mfa_verification_attempt: hook(names!("MFA_VERIFICATION_ATTEMPT")),
            password_verification_attempt: hook(names!("PASSWORD_VERIFICATION_ATTEMPT")),
            custom_access_token: hook(names!("CUSTOM_ACCESS_TOKEN")),
            send_email: hook(names!("SEND_EMAIL")),
            send_sms: hook(names!("SEND_SMS")),
            before_user_created: hook(names!("BEFORE_USER_CREATED")),
            after_user_created: hook(names!("AFTER_USER_CREATED")),
        }
    }
}

/// What is wrong with the address of a hook, if anything.
fn hook_uri_problem(uri: &str) -> Option<String> {
    let Ok(parsed) = url::Url::parse(uri) else { return Some("must be a URI".to_owned()) };
    let host = parsed.host_str().unwrap_or("");
    match parsed.scheme() {
        "pg-functions" => {
            let parts: Vec<&str> = parsed.path().split('/').collect();
            let named = |part: Option<&&str>| {
                part.is_some_and(|p| {
                    p.len() <= 63
                        && p.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                        && p.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
                })
            };
            (!named(parts.get(1)) || !named(parts.get(2)))
                .then(|| "must be of the form pg-functions://<any>/<schema>/<function>".to_owned())
        }
        "https" => None,
        "http" if matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "host.docker.internal") => None,
        _ => Some("must be https, http to this machine, or pg-functions".to_owned()),
    }
}
