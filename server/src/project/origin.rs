//! Maps the server's variables back to keys and lines of `config.toml`.
//!
//! The server's errors name its own variables (`GOTRUE_SITE_URL must be a URL`). Users of `config.toml` know the key
//! (`auth.site_url`) instead.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::Project;
use super::keys::{KEYS, Use};
use super::values::{Value, unset_variable};

/// Variables set by the code in `settings.rs`, and their keys.
const DIRECT: [(&str, &str); 22] = [
    ("FERROBASE_LISTEN", "api.port"),
    ("FERROBASE_INBOX_LISTEN", "local_smtp.port"),
    ("FERROBASE_DB_PORT", "db.port"),
    ("PGRST_DB_SCHEMAS", "api.schemas"),
    ("PGRST_DB_EXTRA_SEARCH_PATH", "api.extra_search_path"),
    ("FILE_SIZE_LIMIT", "storage.file_size_limit"),
    ("SITE_URL", "auth.site_url"),
    ("GOTRUE_SITE_URL", "auth.site_url"),
    ("PGRST_APP_SETTINGS_SITE_URL", "auth.site_url"),
    ("API_EXTERNAL_URL", "auth.external_url"),
    ("GOTRUE_JWT_ISSUER", "auth.jwt_issuer"),
    ("GOTRUE_URI_ALLOW_LIST", "auth.additional_redirect_urls"),
    ("GOTRUE_WEBAUTHN_RP_ORIGINS", "auth.webauthn.rp_origins"),
    ("GOTRUE_PASSWORD_REQUIRED_CHARACTERS", "auth.password_requirements"),
    ("JWT_SECRET", "auth.jwt_secret"),
    ("GOTRUE_JWT_SECRET", "auth.jwt_secret"),
    ("SB_PUBLISHABLE_KEY", "auth.publishable_key"),
    ("SB_SECRET_KEY", "auth.secret_key"),
    ("ANON_KEY", "auth.anon_key"),
    ("SERVICE_ROLE_KEY", "auth.service_role_key"),
    ("GOTRUE_JWT_KEYS", "auth.signing_keys_path"),
    ("GOTRUE_SMS_TEST_OTP", "auth.sms.test_otp"),
];

/// Prefixes of variables, the corresponding key prefixes (`*` is the rest of the name), and the last parts of the keys.
const FAMILIES: [(&str, &str, &[&str]); 6] = [
    ("GOTRUE_HOOK_", "auth.hook.*", &["enabled", "uri", "secrets"]),
    (
        "GOTRUE_EXTERNAL_",
        "auth.external.*",
        &["enabled", "client_id", "secret", "url", "redirect_uri", "skip_nonce_check", "email_optional"],
    ),
    ("GOTRUE_SMS_TWILIO_VERIFY_", "auth.sms.twilio_verify", &["account_sid", "message_service_sid", "auth_token"]),
    ("GOTRUE_SMS_TWILIO_", "auth.sms.twilio", &["account_sid", "message_service_sid", "auth_token"]),
    ("GOTRUE_SMTP_", "auth.email.smtp", &["host", "port", "user", "pass", "admin_email", "sender_name"]),
    ("SMTP_", "auth.email.smtp", &["host", "port", "user", "pass", "admin_email", "sender_name"]),
];

/// Lines of the keys in `config.toml`, and `SUPABASE_…` variables that override keys.
#[derive(Clone, Debug, Default)]
pub struct Places {
    lines: BTreeMap<String, usize>,
    variables: BTreeMap<String, String>,
}

impl Places {
    /// `text` is the content of `config.toml`; `overrides` are the keys that variables override, and these.
    pub fn of(text: &str, overrides: Vec<(String, String)>) -> Self {
        let mut places = Self::default();
        if let Ok(table) = DeTable::parse(text) {
            places.add("", table.get_ref(), text);
        }
        places.variables.extend(overrides);
        places
    }

    fn add(&mut self, path: &str, table: &DeTable<'_>, text: &str) {
        for (key, value) in table.iter() {
            let name = key.get_ref().to_lowercase();
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            let before = text.get(..key.span().start).unwrap_or_default();
            self.lines.insert(path.clone(), 1 + before.matches('\n').count());
            if let DeValue::Table(table) = value.get_ref() {
                self.add(&path, table, text);
            }
        }
    }

    fn has(&self, path: &str) -> bool {
        self.lines.contains_key(path) || self.variables.contains_key(path)
    }

    /// `supabase/config.toml:12`, or the name of the variable that overrides the key.
    pub fn place(&self, path: &str) -> String {
        if let Some(name) = self.variables.get(path) {
            return name.clone();
        }
        // The section may have its older name.
        let old = path.replacen("local_smtp.", "inbucket.", 1);
        match self.lines.get(path).or_else(|| self.lines.get(&old)) {
            Some(line) => format!("supabase/config.toml:{line}"),
            None => "supabase/config.toml".to_owned(),
        }
    }
}

impl Project {
    /// Rewrites an error about the server's settings in terms of `config.toml`. Variables for which `is_given` returns true were set
    /// in the environment and keep their name.
    pub fn explain(&self, problem: &str, is_given: impl Fn(&str) -> bool) -> String {
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let mut text = String::new();
        let mut first = None;
        let mut rest = problem;
        while let Some(start) = rest.find(is_name) {
            let word = rest[start..].split(|c| !is_name(c)).next().unwrap_or_default();
            text.push_str(&rest[..start]);
            rest = &rest[start + word.len()..];
            match self.key_of(word).filter(|_| !is_given(word)) {
                Some(path) => {
                    text.push_str(&path);
                    first.get_or_insert(path);
                }
                None => text.push_str(word),
            }
        }
        text.push_str(rest);
        let Some(path) = first else { return text };
        let found = self.values.iter().find(|(known, _)| *known == path);
        if let Some((_, Value::Text(value))) = found
            && let Some(name) = unset_variable(value)
        {
            text.push_str(&format!(" (the variable {name} is not set)"));
        }
        format!("{}: {text}", self.places.place(&path))
    }

    /// The key that sets a variable of the server.
    fn key_of(&self, variable: &str) -> Option<String> {
        let of_key = |found: &Use| match found {
            Use::Setting(name) | Use::Flag(name) | Use::NotFlag(name) => *name == variable,
            Use::Read | Use::Accepted | Use::AlwaysOn(_) | Use::NotServed(_) => false,
        };
        let mut keys: Vec<String> =
            KEYS.iter().filter(|(_, found)| of_key(found)).map(|(path, _)| (*path).to_owned()).collect();
        keys.extend(DIRECT.iter().filter(|(name, _)| *name == variable).map(|(_, path)| (*path).to_owned()));
        for (start, family, lasts) in FAMILIES {
            let Some(rest) = variable.strip_prefix(start).map(str::to_lowercase) else { continue };
            keys.extend(lasts.iter().filter_map(|last| {
                let name = rest.strip_suffix(last)?;
                let is_whole = if family.ends_with('*') { name.ends_with('_') } else { name.is_empty() };
                is_whole.then(|| format!("{}.{last}", family.replace('*', name.trim_end_matches('_'))))
            }));
        }
        // If several keys set the variable, the one that is used wins.
        keys.iter().find(|path| self.places.has(path)).or(keys.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    #[test]
    fn problems_name_the_key_and_its_line() {
        let config = "[auth]\nsite_url = \"x\"\n\n[auth.email]\nmax_frequency = 'soon'\nsmtp.port = 'y'\n\
                      [auth.hook.send_sms]\nuri = ''\n[auth.external.linkedin_oidc]\nclient_id = ''\n[inbucket]\nport = 1\n\
                      [auth.hook.send_email]\nuri = 'env(NO_SUCH_HOOK)'\n";
        let folder = Folder::new("origins", &[("supabase/config.toml", config)]);
        let project = folder.load(&[("SUPABASE_AUTH_JWT_EXPIRY", "never")]);
        for (problem, explained) in [
            ("GOTRUE_SITE_URL must be a URL", "supabase/config.toml:2: auth.site_url must be a URL"),
            (
                "GOTRUE_SMTP_MAX_FREQUENCY must be a duration like 1h30m",
                "supabase/config.toml:5: auth.email.max_frequency must be a duration like 1h30m",
            ),
            ("GOTRUE_SMTP_PORT must be a port", "supabase/config.toml:6: auth.email.smtp.port must be a port"),
            ("GOTRUE_HOOK_SEND_SMS_URI is empty", "supabase/config.toml:8: auth.hook.send_sms.uri is empty"),
            (
                "GOTRUE_EXTERNAL_LINKEDIN_OIDC_CLIENT_ID is not set",
                "supabase/config.toml:10: auth.external.linkedin_oidc.client_id is not set",
            ),
            (
                "GOTRUE_HOOK_SEND_EMAIL_URI must be a URI",
                "supabase/config.toml:14: auth.hook.send_email.uri must be a URI (the variable NO_SUCH_HOOK is not set)",
            ),
            ("FERROBASE_INBOX_LISTEN is taken", "supabase/config.toml:12: local_smtp.port is taken"),
            ("GOTRUE_JWT_EXP must be a number", "SUPABASE_AUTH_JWT_EXPIRY: auth.jwt_expiry must be a number"),
            ("GOTRUE_SECURITY_CAPTCHA_SECRET is not set", "supabase/config.toml: auth.captcha.secret is not set"),
            ("FERROBASE_DENO names no file", "FERROBASE_DENO names no file"),
        ] {
            assert_eq!(project.explain(problem, |_| false), explained);
        }
        // Set in the environment.
        assert_eq!(project.explain("GOTRUE_SITE_URL must be a URL", |_| true), "GOTRUE_SITE_URL must be a URL");
    }
}
