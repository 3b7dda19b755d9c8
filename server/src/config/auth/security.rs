//! Refresh tokens, captchas, encryption at rest, and limits of sessions: `GOTRUE_SECURITY_*`, `GOTRUE_SESSIONS_*`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::values::{duration, limit};
use crate::config::{Reader, Secret};

#[derive(Clone, Debug)]
pub struct SecurityConfig {
    pub captcha: Option<CaptchaConfig>,
    /// `GOTRUE_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED`, default true.
    pub refresh_token_rotation: bool,
    /// `GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL`, default 10 s (as hosted; upstream's code says 0).
    pub refresh_token_reuse_interval: Duration,
    pub refresh_token_allow_reuse: bool,
    /// `GOTRUE_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION`: 0, 1 or 2.
    pub refresh_token_version: u8,
    pub refresh_token_upgrade_percentage: u8,
    pub update_password_require_reauthentication: bool,
    pub update_password_require_current_password: bool,
    pub manual_linking: bool,
    /// `GOTRUE_SECURITY_SB_FORWARDED_FOR_ENABLED`, default false.
    pub sb_forwarded_for: bool,
    pub encryption: EncryptionConfig,
}

impl SecurityConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let captcha = reader.flag(&["GOTRUE_SECURITY_CAPTCHA_ENABLED"], false).then(|| {
            let provider = reader.text_or(&["GOTRUE_SECURITY_CAPTCHA_PROVIDER"], "hcaptcha");
            let url = match provider.as_str() {
                "turnstile" => "https://challenges.cloudflare.com/turnstile/v0/siteverify",
                "hcaptcha" => "https://hcaptcha.com/siteverify",
                _ => {
                    reader.problem("GOTRUE_SECURITY_CAPTCHA_PROVIDER must be hcaptcha or turnstile");
                    ""
                }
            };
            let secret =
                reader.text_or(&["GOTRUE_SECURITY_CAPTCHA_SECRET", "GOTRUE_SECURITY_CAPTCHA_PROVIDER_SECRET"], "");
            if secret.trim().is_empty() {
                reader.problem("GOTRUE_SECURITY_CAPTCHA_SECRET is not set");
            }
            CaptchaConfig {
                provider,
                secret: Secret::new(secret.trim()),
                timeout: duration(reader, &["GOTRUE_SECURITY_CAPTCHA_TIMEOUT"], Duration::from_secs(10)),
                url: reader.text_or(&["FERROBASE_CAPTCHA_URL"], url),
            }
        });
        let version = reader.parse_or(&["GOTRUE_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION"], "0, 1 or 2", 0_u8);
        if version > 2 {
            reader.problem("GOTRUE_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION must be 0, 1 or 2");
        }
        let share = reader.parse_or(&["GOTRUE_SECURITY_REFRESH_TOKEN_UPGRADE_PERCENTAGE"], "0 to 100", 0_u8);
        if share > 100 {
            reader.problem("GOTRUE_SECURITY_REFRESH_TOKEN_UPGRADE_PERCENTAGE must be 0 to 100");
        }
        Self {
            captcha,
            refresh_token_rotation: reader.flag(&["GOTRUE_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED"], true),
            refresh_token_reuse_interval: reader
                .seconds_or(&["GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL"], Duration::from_secs(10)),
            refresh_token_allow_reuse: reader.flag(&["GOTRUE_SECURITY_REFRESH_TOKEN_ALLOW_REUSE"], false),
            refresh_token_version: version,
            refresh_token_upgrade_percentage: share,
            update_password_require_reauthentication: reader
                .flag(&["GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION"], false),
            update_password_require_current_password: reader
                .flag(&["GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD"], false),
            manual_linking: reader.flag(&["GOTRUE_SECURITY_MANUAL_LINKING_ENABLED"], false),
            sb_forwarded_for: reader.flag(&["GOTRUE_SECURITY_SB_FORWARDED_FOR_ENABLED"], false),
            encryption: EncryptionConfig::read(reader),
        }
    }
}

#[derive(Clone, Debug)]
pub struct CaptchaConfig {
    /// `hcaptcha` or `turnstile`.
    pub provider: String,
    pub secret: Secret,
    pub timeout: Duration,
    /// `FERROBASE_CAPTCHA_URL`: another verification endpoint; default the provider's.
    pub url: String,
}

/// `GOTRUE_SECURITY_DATABASE_ENCRYPTION_*`: columns encrypted at rest.
#[derive(Clone, Debug, Default)]
pub struct EncryptionConfig {
    pub encrypt: bool,
    pub key_id: String,
    pub key: Option<Secret>,
    /// Keys by id, base64url of 32 bytes each.
    pub decryption_keys: BTreeMap<String, Secret>,
}

impl EncryptionConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut decryption_keys = BTreeMap::new();
        for pair in reader.list(&["GOTRUE_SECURITY_DATABASE_ENCRYPTION_DECRYPTION_KEYS"]).unwrap_or_default() {
            match pair.split_once(':') {
                Some((id, key)) => {
                    decryption_keys.insert(id.to_owned(), Secret::new(key));
                }
                None => reader.problem("GOTRUE_SECURITY_DATABASE_ENCRYPTION_DECRYPTION_KEYS must be id:key pairs"),
            }
        }
        let config = Self {
            encrypt: reader.flag(&["GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPT"], false),
            key_id: reader.text_or(&["GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY_ID"], ""),
            key: reader.secret(&["GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY"]),
            decryption_keys,
        };
        if config.encrypt && (config.key.is_none() || !config.decryption_keys.contains_key(&config.key_id)) {
            reader.problem(
                "GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY must be set and also be among the decryption keys",
            );
        }
        config
    }
}

#[derive(Clone, Debug)]
pub struct SessionsConfig {
    pub timebox: Option<Duration>,
    pub inactivity_timeout: Option<Duration>,
    pub allow_low_aal: Option<Duration>,
    pub single_per_user: bool,
    pub tags: Vec<String>,
}

impl SessionsConfig {
    /// Whether a refresh depends on the session's age, its level or the user's other sessions.
    pub fn judges_refreshes(&self) -> bool {
        self.single_per_user
            || self.timebox.is_some()
            || self.inactivity_timeout.is_some()
            || self.allow_low_aal.is_some()
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            timebox: limit(reader, "GOTRUE_SESSIONS_TIMEBOX"),
            inactivity_timeout: limit(reader, "GOTRUE_SESSIONS_INACTIVITY_TIMEOUT"),
            allow_low_aal: limit(reader, "GOTRUE_SESSIONS_ALLOW_LOW_AAL"),
            single_per_user: reader.flag(&["GOTRUE_SESSIONS_SINGLE_PER_USER"], false),
            tags: reader.list(&["GOTRUE_SESSIONS_TAGS"]).unwrap_or_default(),
        }
    }
}
