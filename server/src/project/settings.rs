//! Translates `config.toml` into settings of the server, with the defaults of `supabase start`.

use std::path::PathBuf;

use super::keys::{self, DEFAULTS, KEYS, Use};
use super::values::{Value, parse_flag, parse_size};
use super::{Project, ProjectError, third_party, values};

/// The published keys of the local stack, which tutorials, tools and `.env` files contain. For loopback only.
pub struct KnownKeys;

impl KnownKeys {
    pub const PUBLISHABLE: &str = crate::config::DEVELOPMENT_PUBLISHABLE_KEY;
    pub const SECRET: &str = crate::config::DEVELOPMENT_SECRET_KEY;
    pub const S3_ACCESS_KEY: &str = crate::config::DEVELOPMENT_S3_KEYS.0;
    pub const S3_SECRET_KEY: &str = crate::config::DEVELOPMENT_S3_KEYS.1;
    /// Signs users' tokens if a project has no signing keys of its own (supabase/cli `pkg/config/config.go`).
    const SIGNING: &str = crate::config::DEVELOPMENT_SIGNING_KEY;
}

/// The character sets behind each named password requirement.
const CHARACTERS: [(&str, &str); 3] = [
    ("letters_digits", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:0123456789"),
    ("lower_upper_letters_digits", "abcdefghijklmnopqrstuvwxyz:ABCDEFGHIJKLMNOPQRSTUVWXYZ:0123456789"),
    (
        "lower_upper_letters_digits_symbols",
        "abcdefghijklmnopqrstuvwxyz:ABCDEFGHIJKLMNOPQRSTUVWXYZ:0123456789:!@#$%^&*()_+-=[]{};'\\\\:\"|<>?,./`~",
    ),
];

/// High enough that rate limits have no effect in a local stack.
const NO_LIMIT: &str = "360000";

impl Project {
    pub fn api_port(&self) -> u16 {
        self.elsewhere.as_ref().map_or_else(|| self.port("api.port", 54321), |elsewhere| elsewhere.api)
    }

    pub fn db_port(&self) -> u16 {
        self.elsewhere.as_ref().map_or_else(|| self.port("db.port", 54322), |elsewhere| elsewhere.db)
    }

    pub fn inbox_port(&self) -> u16 {
        self.elsewhere.as_ref().map_or_else(|| self.port("local_smtp.port", 54324), |elsewhere| elsewhere.inbox)
    }

    /// Where the inbox takes mail by SMTP. `supabase start` has no port for that unless the configuration names one.
    pub fn smtp_port(&self) -> Option<u16> {
        let port =
            self.elsewhere.as_ref().map_or_else(|| self.port("local_smtp.smtp_port", 0), |elsewhere| elsewhere.smtp);
        Some(port).filter(|port| *port != 0)
    }

    fn port(&self, path: &str, default: u16) -> u16 {
        self.values.text(path).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// `http://127.0.0.1:<port>`, or the external URL of the configuration.
    pub fn api_url(&self) -> String {
        self.outside_url("api.external_url")
            .map_or_else(|| format!("http://127.0.0.1:{}", self.api_port()), |url| url.trim_end_matches('/').to_owned())
    }

    /// Where clients reach the auth API: the external URL of the configuration, which need not end in `/auth/v1`.
    fn auth_url(&self) -> String {
        self.outside_url("auth.external_url").unwrap_or_else(|| format!("{}/auth/v1", self.api_url()))
    }

    /// Where OAuth providers send the browser back: below the issuer, as with the CLI, unless that is no URL.
    fn callback_url(&self) -> String {
        let issuer = self.outside_url("auth.jwt_issuer").filter(|issuer| url::Url::parse(issuer).is_ok());
        format!("{}/callback", issuer.unwrap_or_else(|| self.auth_url()).trim_end_matches('/'))
    }

    /// An external address of the configuration. A copy served elsewhere ignores it.
    fn outside_url(&self, path: &str) -> Option<String> {
        self.values.text(path).filter(|_| self.elsewhere.is_none())
    }

    pub fn jwt_secret(&self) -> String {
        self.values.text_or("auth.jwt_secret", crate::config::DEVELOPMENT_JWT_SECRET)
    }

    /// The publishable key, which identifies the project, and the secret key, which bypasses row level security.
    pub fn publishable_key(&self) -> String {
        self.values.text_or("auth.publishable_key", KnownKeys::PUBLISHABLE)
    }

    pub fn secret_key(&self) -> String {
        self.values.text_or("auth.secret_key", KnownKeys::SECRET)
    }

    pub(super) fn is_on(&self, path: &str, default: bool) -> bool {
        self.values.flag(path, default)
    }

    /// The file with the keys that sign users' tokens, if configured.
    pub fn signing_keys_path(&self) -> Option<PathBuf> {
        self.values.text("auth.signing_keys_path").map(|path| self.folder().join(path.trim_start_matches("./")))
    }

    /// Schemas exposed by the REST API.
    pub fn schemas(&self) -> Vec<String> {
        self.values.list("api.schemas").unwrap_or_else(|| vec!["public".to_owned(), "graphql_public".to_owned()])
    }

    /// PostgreSQL settings from `[db.settings]`.
    pub fn db_settings(&self) -> Vec<(String, String)> {
        self.values.below("db.settings").into_iter().filter(|(_, value)| !values::is_unset(value)).collect()
    }

    /// Refuses invalid ports and sizes.
    fn check(&self) -> Result<(), ProjectError> {
        for key in ["api.port", "db.port", "local_smtp.port"] {
            self.require(key, "a port", |text| text.parse::<u16>().is_ok_and(|port| port > 0))?;
        }
        self.require("storage.file_size_limit", "a size such as 50MiB", |text| parse_size(text).is_some())
    }

    fn require(
        &self,
        key: &'static str,
        wanted: &'static str,
        is_right: impl Fn(&str) -> bool,
    ) -> Result<(), ProjectError> {
        match self.values.text(key).filter(|text| !is_right(text)) {
            Some(found) => Err(ProjectError::Type { place: self.places.place(key), key, wanted, found }),
            None => Ok(()),
        }
    }

    /// The server's settings, by name.
    pub fn settings(&self) -> Result<Vec<(String, String)>, ProjectError> {
        self.check()?;
        let mut settings = Settings(Vec::new());
        for (path, found) in KEYS {
            let default = DEFAULTS.iter().find(|(known, _)| known == path).map(|(_, value)| (*value).to_owned());
            let Some(text) = self.values.text(path).or(default) else { continue };
            match found {
                Use::Setting(name) => settings.set(name, text),
                Use::Flag(name) => settings.set(name, parse_flag(&text).unwrap_or(false).to_string()),
                Use::NotFlag(name) => settings.set(name, (!parse_flag(&text).unwrap_or(false)).to_string()),
                Use::Read | Use::Accepted | Use::AlwaysOn(_) | Use::NotServed(_) => {}
            }
        }
        self.server(&mut settings);
        self.keys_and_tokens(&mut settings)?;
        self.mail(&mut settings)?;
        self.sms(&mut settings);
        self.providers_and_hooks(&mut settings);
        Ok(settings.0)
    }

    fn server(&self, settings: &mut Settings) {
        let values = &self.values;
        settings.set("FERROBASE_DEV", "true");
        settings.set("FERROBASE_LISTEN", format!("127.0.0.1:{}", self.api_port()));
        settings.set("FERROBASE_INBOX_LISTEN", format!("127.0.0.1:{}", self.inbox_port()));
        if let Some(port) = self.smtp_port() {
            settings.set("FERROBASE_INBOX_SMTP_LISTEN", format!("127.0.0.1:{port}"));
        }
        settings.set("FERROBASE_ADMIN_LISTEN", "127.0.0.1:0");
        settings.set("FERROBASE_DB_PORT", self.db_port().to_string());
        settings.set("FERROBASE_DATA_DIR", self.data_dir().display().to_string());
        settings.set("FERROBASE_MIGRATIONS", "none");
        settings.set("FERROBASE_SEED", "none");
        settings.set("FERROBASE_WEB", "false");
        settings.set("FERROBASE_OPEN_GATEWAY", "true");
        settings.set("FERROBASE_FUNCTIONS", self.root.display().to_string());
        settings.set("PGRST_DB_SCHEMAS", self.schemas().join(","));
        let search = values.list("api.extra_search_path");
        settings
            .set("PGRST_DB_EXTRA_SEARCH_PATH", search.map_or_else(|| "public,extensions".to_owned(), |s| s.join(",")));
        let size = values.text("storage.file_size_limit").and_then(|text| parse_size(&text)).unwrap_or(50 << 20);
        settings.set("FILE_SIZE_LIMIT", size.to_string());
        settings.set("SITE_URL", values.text_or("auth.site_url", "http://127.0.0.1:3000"));
        let external = self.auth_url();
        for mail in ["INVITE", "CONFIRMATION", "RECOVERY", "EMAIL_CHANGE"] {
            let link = format!("{}/verify", external.trim_end_matches('/'));
            settings.set(&format!("GOTRUE_MAILER_URLPATHS_{mail}"), link);
        }
        settings.set("API_EXTERNAL_URL", external.clone());
        settings.set("GOTRUE_JWT_ISSUER", values.text("auth.jwt_issuer").unwrap_or(external));
        if let Some(urls) = values.list("auth.additional_redirect_urls") {
            settings.set("GOTRUE_URI_ALLOW_LIST", urls.join(","));
        }
        if let Some(origins) = values.list("auth.webauthn.rp_origins") {
            settings.set("GOTRUE_WEBAUTHN_RP_ORIGINS", origins.join(","));
        }
        if let Some(wanted) = values.text("auth.password_requirements") {
            let sets = CHARACTERS.iter().find(|(name, _)| *name == wanted).map_or(wanted.as_str(), |(_, sets)| sets);
            settings.set("GOTRUE_PASSWORD_REQUIRED_CHARACTERS", sets);
        }
        for limit in
            ["EMAIL_SENT", "SMS_SENT", "VERIFY", "TOKEN_REFRESH", "SSO", "ANONYMOUS_USERS", "OTP", "WEB3", "PASSKEY"]
        {
            settings.set(&format!("GOTRUE_RATE_LIMIT_{limit}"), NO_LIMIT);
        }
        settings.set("GOTRUE_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY", NO_LIMIT);
        settings.set("FERROBASE_GUESS_LIMITS", "false");
    }

    fn keys_and_tokens(&self, settings: &mut Settings) -> Result<(), ProjectError> {
        settings.set("JWT_SECRET", self.jwt_secret());
        settings.set("SB_PUBLISHABLE_KEY", self.publishable_key());
        settings.set("SB_SECRET_KEY", self.secret_key());
        for (path, name) in [("auth.anon_key", "ANON_KEY"), ("auth.service_role_key", "SERVICE_ROLE_KEY")] {
            if let Some(key) = self.values.text(path) {
                settings.set(name, key);
            }
        }
        let own = match self.signing_keys_path() {
            Some(path) => {
                Some(std::fs::read_to_string(&path).map_err(|e| self.unreadable("auth.signing_keys_path", path, &e))?)
            }
            None => None,
        };
        let (issuers, _) = third_party::issuers(&self.values);
        if !issuers.is_empty() {
            settings.set("FERROBASE_THIRD_PARTY_ISSUERS", issuers.join(","));
        }
        let keys = signing_keys(own.as_deref().unwrap_or(&format!("[{}]", KnownKeys::SIGNING)), &self.jwt_secret());
        let key = "auth.signing_keys_path";
        let wrong = |reason| ProjectError::Wrong { place: self.places.place(key), key, reason };
        settings.set("GOTRUE_JWT_KEYS", keys.map_err(wrong)?);
        Ok(())
    }

    fn mail(&self, settings: &mut Settings) -> Result<(), ProjectError> {
        let values = &self.values;
        let host = values.text_or("auth.email.smtp.host", "");
        // The inbox, as the CLI's containers see it.
        let is_inbox = matches!(host.as_str(), "inbucket" | "mailpit") || host.starts_with("supabase_inbucket_");
        let smtp = values.has_table("auth.email.smtp") && values.flag("auth.email.smtp.enabled", true) && !is_inbox;
        settings.set("FERROBASE_MAIL", if smtp { "smtp" } else { "inbox" });
        if smtp {
            for (key, name) in [
                ("host", "GOTRUE_SMTP_HOST"),
                ("port", "GOTRUE_SMTP_PORT"),
                ("user", "GOTRUE_SMTP_USER"),
                ("pass", "GOTRUE_SMTP_PASS"),
                ("admin_email", "GOTRUE_SMTP_ADMIN_EMAIL"),
                ("sender_name", "GOTRUE_SMTP_SENDER_NAME"),
            ] {
                // Without its variable a login is wrong, but the rest of the project works, as with the CLI.
                let path = format!("auth.email.smtp.{key}");
                let text = if ["user", "pass"].contains(&key) { values.written(&path) } else { values.text(&path) };
                if let Some(text) = text {
                    settings.set(name, if text == "host.docker.internal" { "127.0.0.1".to_owned() } else { text });
                }
            }
        }
        // Paths of templates are relative to the project's folder, those of notifications to `supabase/`.
        for (kind, suffix, base) in
            [("template", "", self.root.clone()), ("notification", "_NOTIFICATION", self.folder())]
        {
            for mail in values.tables_below(&format!("auth.email.{kind}")) {
                let name = format!("{}{suffix}", mail.to_uppercase());
                let path = format!("auth.email.{kind}.{mail}");
                if let Some(subject) = values.text(&format!("{path}.subject")) {
                    settings.set(&format!("GOTRUE_MAILER_SUBJECTS_{name}"), subject);
                }
                if let Some(file) = values.text(&format!("{path}.content_path")) {
                    let file = base.join(file.trim_start_matches("./"));
                    let file = std::fs::canonicalize(&file)
                        .map_err(|e| self.unreadable(&format!("{path}.content_path"), file.clone(), &e))?;
                    let file = file.display();
                    settings.set(&format!("GOTRUE_MAILER_TEMPLATES_{name}"), format!("file:{file}"));
                }
                if kind == "notification" {
                    let on = values.flag(&format!("{path}.enabled"), false);
                    settings
                        .set(&format!("GOTRUE_MAILER_NOTIFICATIONS_{}_ENABLED", mail.to_uppercase()), on.to_string());
                }
            }
        }
        Ok(())
    }

    fn sms(&self, settings: &mut Settings) {
        let values = &self.values;
        settings.set("GOTRUE_SMS_OTP_EXP", "6000");
        let codes: Vec<String> =
            values.below("auth.sms.test_otp").iter().map(|(phone, code)| format!("{phone}:{code}")).collect();
        if !codes.is_empty() {
            settings.set("GOTRUE_SMS_TEST_OTP", codes.join(","));
        }
        let on = ["twilio", "twilio_verify"]
            .into_iter()
            .find(|name| values.flag(&format!("auth.sms.{name}.enabled"), false));
        let Some(name) = on else {
            if values.flag("auth.hook.send_sms.enabled", false) || !codes.is_empty() {
                settings.set("GOTRUE_SMS_PROVIDER", "inbox");
            } else if values.flag("auth.sms.enabled", values.flag("auth.sms.enable_signup", false)) {
                // As upstream: without a provider, nothing could be sent.
                settings.set("GOTRUE_EXTERNAL_PHONE_ENABLED", "false");
            }
            return;
        };
        settings.set("GOTRUE_SMS_PROVIDER", name);
        for (key, variable) in [
            ("account_sid", "ACCOUNT_SID"),
            ("message_service_sid", "MESSAGE_SERVICE_SID"),
            ("auth_token", "AUTH_TOKEN"),
        ] {
            if let Some(text) = values.text(&format!("auth.sms.{name}.{key}")) {
                settings.set(&format!("GOTRUE_SMS_{}_{variable}", name.to_uppercase()), text);
            }
        }
    }

    fn providers_and_hooks(&self, settings: &mut Settings) {
        let values = &self.values;
        for provider in values.tables_below("auth.external") {
            let path = |key: &str| format!("auth.external.{provider}.{key}");
            if !values.flag(&path("enabled"), false) {
                continue;
            }
            for key in ["enabled", "client_id", "secret", "url", "redirect_uri", "skip_nonce_check", "email_optional"] {
                if let Some(text) = values.text(&path(key)) {
                    let name = format!("GOTRUE_EXTERNAL_{}_{}", provider.to_uppercase(), key.to_uppercase());
                    settings.set(&name, text);
                }
            }
            if values.text(&path("redirect_uri")).is_none() {
                let name = format!("GOTRUE_EXTERNAL_{}_REDIRECT_URI", provider.to_uppercase());
                settings.set(&name, self.callback_url());
            }
        }
        for hook in values.tables_below("auth.hook") {
            let path = |key: &str| format!("auth.hook.{hook}.{key}");
            if !values.flag(&path("enabled"), false) {
                continue;
            }
            for key in ["enabled", "uri", "secrets"] {
                if let Some(text) = values.text(&path(key)) {
                    let text = if key == "uri" { self.reachable(&text) } else { text };
                    settings.set(&format!("GOTRUE_HOOK_{}_{}", hook.to_uppercase(), key.to_uppercase()), text);
                }
            }
        }
    }

    /// A URL as this machine reaches it. Projects name the host and their own API as the CLI's containers see them
    /// (`http://host.docker.internal:54321/functions/v1/x`, `http://kong:8000`).
    fn reachable(&self, text: &str) -> String {
        let Ok(mut url) = url::Url::parse(text) else { return text.to_owned() };
        let host = url.host_str().unwrap_or_default();
        let is_gateway = (host == "kong" || host.starts_with("supabase_kong_")) && url.port() == Some(8000);
        let is_here = is_gateway || host == "host.docker.internal";
        // A copy is served at another port than the configured one.
        let is_loopback = matches!(host, "127.0.0.1" | "localhost");
        let is_own = is_gateway || url.port() == Some(self.port("api.port", 54321));
        if !matches!(url.scheme(), "http" | "https") || !(is_here || (is_loopback && is_own)) {
            return text.to_owned();
        }
        if is_here {
            let _ = url.set_host(Some("127.0.0.1"));
        }
        if is_own {
            let _ = url.set_port(Some(self.api_port()));
        }
        url.to_string()
    }

    /// The error for a file that is named by a key.
    fn unreadable(&self, key: &str, path: PathBuf, error: &std::io::Error) -> ProjectError {
        ProjectError::Named { place: self.places.place(key), key: key.to_owned(), path, reason: error.to_string() }
    }

    /// The value as a list. `path` must be a known key.
    pub(super) fn value_list(&self, path: &str) -> Option<Vec<String>> {
        debug_assert!(keys::use_of(path).is_some(), "{path}");
        self.values.iter().find(|(known, _)| *known == path).and_then(|(_, value)| match value {
            Value::List(items) => Some(items.clone()),
            Value::Text(_) => self.values.list(path),
        })
    }
}

struct Settings(Vec<(String, String)>);

impl Settings {
    /// Replaces an earlier value.
    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value.into()));
    }
}

/// The array of keys in which only the first one signs, plus the secret that verifies the API keys.
fn signing_keys(text: &str, secret: &str) -> Result<String, String> {
    use base64::Engine;
    let not_keys = |reason: String| format!("the file is not a JSON array of JWKs: {reason}");
    let mut keys: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|e| not_keys(e.to_string()))?;
    if keys.is_empty() {
        return Err(not_keys("it is empty".to_owned()));
    }
    for (place, key) in keys.iter_mut().enumerate() {
        let key = key.as_object_mut().ok_or_else(|| not_keys("one of them is not an object".to_owned()))?;
        let operations = if place == 0 { vec!["sign", "verify"] } else { vec!["verify"] };
        key.insert("key_ops".to_owned(), operations.into());
    }
    let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(secret);
    keys.push(serde_json::json!({
        "kty": "oct", "alg": "HS256", "kid": "jwt-secret", "k": encoded, "key_ops": ["verify"],
    }));
    Ok(serde_json::Value::Array(keys).to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::Folder;
    use super::*;

    fn settings(project: &Project) -> BTreeMap<String, String> {
        project.settings().expect("settings").into_iter().collect()
    }

    #[test]
    fn addresses_inside_of_containers_become_those_of_this_machine() {
        let hook = |name: &str, uri: &str| format!("[auth.hook.{name}]\nenabled = true\nuri = \"{uri}\"\n");
        let config = "[api]\nport = 60001\n[auth.email.smtp]\nhost = \"inbucket\"\nport = 2500\n".to_owned()
            + &hook("send_email", "http://host.docker.internal:60001/functions/v1/send-email")
            + &hook("send_sms", "http://kong:8000/functions/v1/send-sms")
            + &hook("before_user_created", "http://host.docker.internal:3000/api/hook")
            + &hook("custom_access_token", "http://localhost:60001/functions/v1/claims")
            + &hook("mfa_verification_attempt", "https://kong.example:60001/hook");
        let folder = Folder::new("containers", &[("supabase/config.toml", config.as_str())]);
        let project = folder.load(&[]);
        let uri = |project: &Project, name: &str| settings(project).remove(&format!("GOTRUE_HOOK_{name}_URI"));
        for (name, here) in [
            ("SEND_EMAIL", "http://127.0.0.1:60001/functions/v1/send-email"),
            ("SEND_SMS", "http://127.0.0.1:60001/functions/v1/send-sms"),
            ("BEFORE_USER_CREATED", "http://127.0.0.1:3000/api/hook"),
            ("CUSTOM_ACCESS_TOKEN", "http://localhost:60001/functions/v1/claims"),
            ("MFA_VERIFICATION_ATTEMPT", "https://kong.example:60001/hook"),
        ] {
            assert_eq!(uri(&project, name).as_deref(), Some(here), "{name}");
        }
        assert_eq!(settings(&project).remove("FERROBASE_MAIL").as_deref(), Some("inbox"));
        // A copy calls its own functions.
        let copy = project.served_at(super::super::CopyTarget {
            data_dir: folder.0.clone(),
            api: 7,
            db: 8,
            inbox: 9,
            smtp: 0,
        });
        assert_eq!(uri(&copy, "CUSTOM_ACCESS_TOKEN").as_deref(), Some("http://localhost:7/functions/v1/claims"));
    }

    #[test]
    fn without_a_configuration_the_cli_defaults_apply() {
        let found = settings(&Folder::new("defaults", &[]).load(&[]));
        for (name, value) in [
            ("FERROBASE_LISTEN", "127.0.0.1:54321"),
            ("SITE_URL", "http://127.0.0.1:3000"),
            ("API_EXTERNAL_URL", "http://127.0.0.1:54321/auth/v1"),
            ("GOTRUE_MAILER_URLPATHS_RECOVERY", "http://127.0.0.1:54321/auth/v1/verify"),
            ("GOTRUE_JWT_ISSUER", "http://127.0.0.1:54321/auth/v1"),
            ("PGRST_DB_SCHEMAS", "public,graphql_public"),
            ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
            ("GOTRUE_DISABLE_SIGNUP", "false"),
            ("GOTRUE_PASSWORD_MIN_LENGTH", "6"),
            ("GOTRUE_MFA_TOTP_ENROLL_ENABLED", "false"),
            ("FILE_SIZE_LIMIT", "52428800"),
            ("FERROBASE_MAIL", "inbox"),
            ("GOTRUE_RATE_LIMIT_EMAIL_SENT", "360000"),
            ("FERROBASE_GUESS_LIMITS", "false"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        let keys: Vec<serde_json::Value> = serde_json::from_str(&found["GOTRUE_JWT_KEYS"]).expect("keys");
        assert_eq!(found.get("FERROBASE_INBOX_SMTP_LISTEN"), None);
        assert_eq!((keys[0]["kid"].as_str(), keys.len()), (Some("b81269f1-21d8-4f2e-b719-c2240a840d90"), 2));
    }

    #[test]
    fn a_copy_served_elsewhere_uses_its_own_addresses() {
        let config =
            "[api]\nport = 1\nexternal_url = \"https://x.example\"\n[auth]\nexternal_url = \"https://y.example\"\n";
        let project = Folder::new("elsewhere", &[("supabase/config.toml", config)]).load(&[]);
        let data_dir = "/tmp/copy".into();
        let copy = project.served_at(super::super::CopyTarget { data_dir, api: 7, db: 8, inbox: 9, smtp: 10 });
        let found = settings(&copy);
        for (name, value) in [
            ("FERROBASE_LISTEN", "127.0.0.1:7"),
            ("FERROBASE_DB_PORT", "8"),
            ("FERROBASE_INBOX_LISTEN", "127.0.0.1:9"),
            ("FERROBASE_INBOX_SMTP_LISTEN", "127.0.0.1:10"),
            ("FERROBASE_DATA_DIR", "/tmp/copy"),
            ("API_EXTERNAL_URL", "http://127.0.0.1:7/auth/v1"),
            ("GOTRUE_MAILER_URLPATHS_INVITE", "http://127.0.0.1:7/auth/v1/verify"),
            ("GOTRUE_JWT_ISSUER", "http://127.0.0.1:7/auth/v1"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(settings(&project)["API_EXTERNAL_URL"], "https://y.example");
    }

    /// Regression: mails linked to `<external_url>/auth/v1/verify`, and OAuth providers got the address of this machine.
    #[test]
    fn links_and_callbacks_are_below_the_external_address_of_auth() {
        let tunnel = "https://tunnel.example/auth/v1";
        for (auth, verify, issuer, callback) in [
            (
                "external_url = \"https://auth.example.com\"",
                "https://auth.example.com",
                "https://auth.example.com",
                "https://auth.example.com",
            ),
            ("external_url = \"https://tunnel.example/auth/v1\"", tunnel, tunnel, tunnel),
            ("external_url = \"https://tunnel.example/auth/v1/\"", tunnel, "https://tunnel.example/auth/v1/", tunnel),
            (
                "jwt_issuer = \"https://issuer.example\"",
                "http://api.example/auth/v1",
                "https://issuer.example",
                "https://issuer.example",
            ),
            ("jwt_issuer = \"my-app\"", "http://api.example/auth/v1", "my-app", "http://api.example/auth/v1"),
        ] {
            let config = format!(
                "[api]\nexternal_url = \"http://api.example/\"\n[auth]\n{auth}\n[auth.external.github]\nenabled = true\n\
                 client_id = \"id\"\n[auth.external.gitlab]\nenabled = true\nredirect_uri = \"https://own.example\"\n"
            );
            let folder = Folder::new("external", &[("supabase/config.toml", config.as_str())]);
            let found = settings(&folder.load(&[]));
            for mail in ["INVITE", "CONFIRMATION", "RECOVERY", "EMAIL_CHANGE"] {
                assert_eq!(found[&format!("GOTRUE_MAILER_URLPATHS_{mail}")], format!("{verify}/verify"), "{auth}");
            }
            assert_eq!(found["GOTRUE_JWT_ISSUER"], issuer, "{auth}");
            assert_eq!(found["GOTRUE_EXTERNAL_GITHUB_REDIRECT_URI"], format!("{callback}/callback"), "{auth}");
            assert_eq!(found["GOTRUE_EXTERNAL_GITLAB_REDIRECT_URI"], "https://own.example", "{auth}");
        }
    }

    #[test]
    fn sections_are_translated_into_settings() {
        let folder = Folder::new(
            "sections",
            &[
                (
                    "supabase/config.toml",
                    "[inbucket]\nsmtp_port = 60002\n[api]\nport = 60001\nschemas = [\"public\", \"api\"]\n[auth]\nsite_url = \"http://localhost:5173\"\n\
                     additional_redirect_urls = [\"a://b\", \"c://d/**\"]\nenable_signup = false\n\
                     password_requirements = \"letters_digits\"\n\
                     [auth.email]\nenable_confirmations = true\n[auth.email.smtp]\nhost = \"mail.x\"\nport = 2500\nuser = \"me\"\npass = \"env(SMTP_PASS)\"\n\
                     [auth.email.template.invite]\nsubject = \"Come\"\ncontent_path = \"./supabase/templates/invite.html\"\n\
                     [auth.external.github]\nenabled = true\nclient_id = \"id\"\nsecret = \"env(GH)\"\n\
                     [auth.external.apple]\nenabled = false\nsecret = \"env(NONE)\"\n\
                     [auth.hook.custom_access_token]\nenabled = true\nuri = \"pg-functions://postgres/public/hook\"\n\
                     [auth.sms.test_otp]\n4152127777 = \"123456\"\n",
                ),
                ("supabase/templates/invite.html", "<p>"),
            ],
        );
        let project = folder.load(&[("GH", "s3cret")]);
        assert_eq!(project.warnings, ["environment variable is unset: SMTP_PASS (auth.email.smtp.pass)"]);
        let found = settings(&project);
        for (name, value) in [
            ("FERROBASE_LISTEN", "127.0.0.1:60001"),
            ("FERROBASE_INBOX_SMTP_LISTEN", "127.0.0.1:60002"),
            ("API_EXTERNAL_URL", "http://127.0.0.1:60001/auth/v1"),
            ("PGRST_DB_SCHEMAS", "public,api"),
            ("GOTRUE_URI_ALLOW_LIST", "a://b,c://d/**"),
            ("GOTRUE_DISABLE_SIGNUP", "true"),
            ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
            ("FERROBASE_MAIL", "smtp"),
            ("GOTRUE_SMTP_HOST", "mail.x"),
            ("GOTRUE_SMTP_USER", "me"),
            ("GOTRUE_SMTP_PASS", "env(SMTP_PASS)"),
            ("GOTRUE_MAILER_SUBJECTS_INVITE", "Come"),
            ("GOTRUE_EXTERNAL_GITHUB_SECRET", "s3cret"),
            ("GOTRUE_EXTERNAL_GITHUB_REDIRECT_URI", "http://127.0.0.1:60001/auth/v1/callback"),
            ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_URI", "pg-functions://postgres/public/hook"),
            ("GOTRUE_SMS_TEST_OTP", "4152127777:123456"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        let template = &found["GOTRUE_MAILER_TEMPLATES_INVITE"];
        assert!(template.starts_with("file:/") && template.ends_with("supabase/templates/invite.html"), "{template}");
        assert!(!found.contains_key("GOTRUE_EXTERNAL_APPLE_ENABLED"));
    }
}
