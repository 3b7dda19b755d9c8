//! Settings of the authentication API: the `GOTRUE_*` names of Supabase Auth, with its defaults.
//!
//! Reference: supabase/auth `internal/conf/configuration.go`. A field says if the full server differs from `serve --only auth`
//! ([`AuthMode`]).

mod factors;
mod guesses;
mod hooks;
mod jwt;
mod limits;
mod mail;
mod outbound;
mod passwords;
mod providers;
mod security;
mod sms;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use factors::{MfaConfig, WebAuthnConfig};
pub use guesses::GuessesConfig;
pub use hooks::{HookConfig, HooksConfig};
pub use jwt::JwtConfig;
pub use limits::{Rate, RateLimits};
pub use mail::{MAILS, MailerConfig, SmtpConfig};
pub use outbound::OutboundAllow;
pub use passwords::PasswordConfig;
pub use providers::{ExternalConfig, OAuthProviderConfig, OAuthServerConfig, PROVIDERS};
pub use security::{CaptchaConfig, EncryptionConfig, SecurityConfig, SessionsConfig};
pub use sms::{SmsConfig, TwilioConfig};
use values::duration;

use super::{Reader, Secret};

/// How the API is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// `serve --only auth`: mounted at `/`, defaults of Supabase Auth, mail within the request.
    DropIn,
    /// Beside the other APIs at `/auth/v1`, defaults of a deployed Supabase, mail through the outbox.
    Full,
}

#[derive(Clone, Debug)]
pub struct AuthConfig {
    pub mode: AuthMode,
    /// `GOTRUE_API_HOST` and `PORT`/`GOTRUE_API_PORT` (8081): where a drop-in listens.
    pub host: String,
    pub port: u16,
    /// `GOTRUE_DB_DATABASE_URL`/`DATABASE_URL`, as `supabase_auth_admin`.
    pub database_url: Option<Secret>,
    /// `GOTRUE_DB_MAX_POOL_SIZE`, default 10; 0 is upstream's "no limit" and means 50 here.
    pub max_pool_size: usize,
    /// `GOTRUE_DB_CLEANUP_ENABLED`, default false.
    pub cleanup_enabled: bool,
    /// `API_EXTERNAL_URL`: where clients reach this API; links in mails are built on it.
    pub external_url: String,
    /// `GOTRUE_SITE_URL`/`SITE_URL`: the application, and the target of redirects without an allowed one.
    pub site_url: String,
    /// `GOTRUE_URI_ALLOW_LIST`/`ADDITIONAL_REDIRECT_URLS`: globs of further redirect targets.
    pub uri_allow_list: Vec<String>,
    /// `GOTRUE_API_MAX_REQUEST_DURATION`, default 10 s.
    pub max_request_duration: Duration,
    /// `GOTRUE_CORS_ALLOWED_HEADERS`: request headers allowed beside the fixed ones.
    pub cors_allowed_headers: Vec<String>,
    /// `GOTRUE_DISABLE_SIGNUP`/`DISABLE_SIGNUP`, default false.
    pub disable_signup: bool,
    pub jwt: JwtConfig,
    pub mailer: MailerConfig,
    pub smtp: SmtpConfig,
    pub sms: SmsConfig,
    pub password: PasswordConfig,
    pub security: SecurityConfig,
    pub sessions: SessionsConfig,
    pub rate_limits: RateLimits,
    pub guesses: GuessesConfig,
    pub hooks: HooksConfig,
    pub mfa: MfaConfig,
    pub webauthn: WebAuthnConfig,
    pub external: ExternalConfig,
    pub oauth_server: OAuthServerConfig,
    /// `GOTRUE_CUSTOM_OAUTH_ENABLED`, default true; `_MAX_PROVIDERS`, 0 = no limit; `_EXTERNAL_URL`, the base of their
    /// callback, default [`AuthConfig::external_url`].
    pub custom_oauth_enabled: bool,
    pub custom_oauth_max_providers: usize,
    pub custom_oauth_external_url: Option<String>,
    /// `FERROBASE_OUTBOUND_ALLOW`, default nothing: non-public addresses of custom providers.
    pub outbound_allow: OutboundAllow,
    /// `FERROBASE_OUTBOUND_CA_FILE`: certificates (PEM) of additional authorities for all providers, including those
    /// of the settings; default none.
    pub outbound_ca_file: Option<PathBuf>,
    /// `GOTRUE_SAML_ENABLED`, default false; SAML is not served, so true only causes a warning at start.
    pub saml_enabled: bool,
    /// `GOTRUE_EXPERIMENTAL_SCIM_ENABLED`, default false; as with SAML.
    pub scim_enabled: bool,
    /// `GOTRUE_EXPERIMENTAL_PROVIDER_LINKING_DOMAINS` (`provider=domain,…`) and the older
    /// `…_PROVIDERS_WITH_OWN_LINKING_DOMAIN`: providers, in lower case, that link only within their domain.
    pub provider_linking_domains: BTreeMap<String, String>,
    /// `GOTRUE_EXPERIMENTAL_CREATE_EMAIL_IDENTITY_ON_PASSWORD_SET_ENABLED`, default false.
    pub email_identity_on_password: bool,
    /// `GOTRUE_AUDIT_LOG_DISABLE_POSTGRES`, default false: audit entries go to the log only.
    pub audit_log_only: bool,
}

impl AuthConfig {
    pub fn read(reader: &mut Reader<'_>, mode: AuthMode) -> Self {
        let full = mode == AuthMode::Full;
        let site_url = reader.text(&["GOTRUE_SITE_URL", "SITE_URL"]).unwrap_or_else(|| {
            reader.problem("GOTRUE_SITE_URL is not set");
            String::new()
        });
        let external_url = reader.text(&["API_EXTERNAL_URL", "GOTRUE_API_EXTERNAL_URL"]).unwrap_or_else(|| {
            if !full {
                reader.problem("API_EXTERNAL_URL is not set");
            }
            site_url.clone()
        });
        for (name, value) in [("GOTRUE_SITE_URL", &site_url), ("API_EXTERNAL_URL", &external_url)] {
            if !value.is_empty() && url::Url::parse(value).is_err() {
                reader.problem(format!("{name} must be a URL"));
            }
        }
        if let Some(namespace) = reader.text(&["DB_NAMESPACE", "GOTRUE_DB_NAMESPACE"])
            && namespace != "auth"
        {
            reader.problem("DB_NAMESPACE must be auth");
        }
        let mailer = MailerConfig::read(reader, full);
        let mut linking: BTreeMap<String, String> = reader
            .list(&["GOTRUE_EXPERIMENTAL_PROVIDERS_WITH_OWN_LINKING_DOMAIN"])
            .unwrap_or_default()
            .into_iter()
            .map(|p| (p.to_lowercase(), p))
            .collect();
        for pair in reader.list(&["GOTRUE_EXPERIMENTAL_PROVIDER_LINKING_DOMAINS"]).unwrap_or_default() {
            match pair.split_once('=') {
                Some((p, d)) if !p.trim().is_empty() && !d.trim().is_empty() => {
                    linking.insert(p.trim().to_lowercase(), d.trim().to_owned());
                }
                _ => reader.problem(format!(
                    "GOTRUE_EXPERIMENTAL_PROVIDER_LINKING_DOMAINS: '{pair}' is not of the form provider=domain"
                )),
            }
        }
        let pool = reader.parse_or(&["GOTRUE_DB_MAX_POOL_SIZE"], "a number of connections", 10_usize);
        Self {
            mode,
            host: reader.text_or(&["GOTRUE_API_HOST"], "0.0.0.0"),
            port: reader.parse_or(&["PORT", "GOTRUE_API_PORT"], "a port", 8081),
            database_url: reader.secret(&["GOTRUE_DB_DATABASE_URL", "DATABASE_URL"]),
            max_pool_size: if pool == 0 { 50 } else { pool },
            cleanup_enabled: reader.flag(&["GOTRUE_DB_CLEANUP_ENABLED"], full),
            uri_allow_list: reader.list(&["GOTRUE_URI_ALLOW_LIST", "ADDITIONAL_REDIRECT_URLS"]).unwrap_or_default(),
            max_request_duration: duration(reader, &["GOTRUE_API_MAX_REQUEST_DURATION"], Duration::from_secs(10)),
            cors_allowed_headers: reader.list(&["GOTRUE_CORS_ALLOWED_HEADERS"]).unwrap_or_default(),
            disable_signup: reader.flag(&["GOTRUE_DISABLE_SIGNUP", "DISABLE_SIGNUP"], false),
            jwt: JwtConfig::read(reader, full, &external_url),
            smtp: SmtpConfig::read(reader),
            sms: SmsConfig::read(reader),
            password: PasswordConfig::read(reader),
            security: SecurityConfig::read(reader),
            sessions: SessionsConfig::read(reader),
            rate_limits: RateLimits::read(reader),
            guesses: GuessesConfig::read(reader),
            hooks: HooksConfig::read(reader),
            mfa: MfaConfig::read(reader),
            webauthn: WebAuthnConfig::read(reader),
            external: ExternalConfig::read(reader),
            oauth_server: OAuthServerConfig::read(reader),
            custom_oauth_enabled: reader.flag(&["GOTRUE_CUSTOM_OAUTH_ENABLED"], true),
            custom_oauth_external_url: reader.text(&["GOTRUE_CUSTOM_OAUTH_EXTERNAL_URL"]),
            custom_oauth_max_providers: reader.parse_or(&["GOTRUE_CUSTOM_OAUTH_MAX_PROVIDERS"], "a number", 0),
            outbound_allow: OutboundAllow::read(reader),
            outbound_ca_file: reader.text(&["FERROBASE_OUTBOUND_CA_FILE"]).map(PathBuf::from),
            saml_enabled: reader.flag(&["GOTRUE_SAML_ENABLED"], false),
            scim_enabled: reader.flag(&["GOTRUE_EXPERIMENTAL_SCIM_ENABLED"], false),
            provider_linking_domains: linking,
            email_identity_on_password: reader
                .flag(&["GOTRUE_EXPERIMENTAL_CREATE_EMAIL_IDENTITY_ON_PASSWORD_SET_ENABLED"], false),
            audit_log_only: reader.flag(&["GOTRUE_AUDIT_LOG_DISABLE_POSTGRES"], false),
            external_url,
            site_url,
            mailer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source};

    fn read(pairs: &[(&str, &str)]) -> Result<AuthConfig, Problems> {
        let base =
            [("GOTRUE_SITE_URL", "https://app"), ("API_EXTERNAL_URL", "https://api"), ("GOTRUE_JWT_SECRET", "s")];
        let source = Source::from_pairs(base.into_iter().chain(pairs.iter().copied()));
        let mut reader = Reader::new(&source);
        let config = AuthConfig::read(&mut reader, AuthMode::DropIn);
        reader.finish(config)
    }

    #[test]
    fn limits_have_the_defaults_of_the_reference() {
        let limits = read(&[]).expect("config").rate_limits;
        let hourly = Rate { events: 30.0, over: Duration::from_secs(3600), burst: false };
        assert_eq!((limits.header, limits.email_sent, limits.sms_sent), (None, hourly, hourly));
        assert_eq!([limits.otp, limits.verify, limits.sso, limits.web3, limits.passkey], [30.0; 5]);
        assert_eq!((limits.token_refresh, limits.anonymous_users), (150.0, 30.0));
        assert_eq!((limits.saml_assertion, limits.mfa, limits.oauth_client_register), (15.0, 15.0, 10.0));
    }

    #[test]
    fn defaults_match_the_reference_except_for_the_reuse_interval() {
        let config = read(&[]).expect("config");
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert_eq!((config.jwt.exp, config.jwt.aud.as_str(), config.jwt.default_group_name.as_str()), (3600, "", ""));
        assert_eq!(config.jwt.admin_roles, ["service_role", "supabase_admin"]);
        assert_eq!((config.mailer.otp_exp, config.sms.otp_exp), (minutes(24 * 60), minutes(1)));
        assert_eq!((config.smtp.max_frequency, config.sms.max_frequency), (minutes(1), minutes(1)));
        assert_eq!((config.mailer.template_max_age, config.mfa.challenge_expiry), (minutes(10), minutes(5)));
        assert_eq!((config.password.min_length, config.mfa.max_enrolled_factors), (6, 10));
        assert!(config.mailer.secure_email_change && config.security.refresh_token_rotation && config.mfa.totp_enroll);
        assert!(
            !config.cleanup_enabled && !config.mailer.autoconfirm && !config.disable_signup && !config.saml_enabled
        );
        assert!(config.external.email_enabled && !config.external.phone_enabled && config.custom_oauth_enabled);
        // Upstream's default is 0; every deployment sets 10.
        assert_eq!(config.security.refresh_token_reuse_interval, Duration::from_secs(10));
    }

    #[test]
    fn numbers_of_recovery_codes_have_bounds_where_they_are_on() {
        let codes = read(&[]).expect("config").mfa.recovery_codes;
        assert_eq!((codes.enroll, codes.verify, codes.count, codes.code_length), (false, false, 10, 16));
        assert_eq!((codes.max_attempts, codes.lockout), (5, Duration::from_secs(15 * 60)));
        for (name, value) in [
            ("GOTRUE_MFA_RECOVERY_CODES_COUNT", "17"),
            ("GOTRUE_MFA_RECOVERY_CODES_CODE_LENGTH", "12"),
            ("GOTRUE_MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS", "2"),
            ("GOTRUE_MFA_RECOVERY_CODES_LOCKOUT_DURATION", "59s"),
        ] {
            assert!(read(&[(name, value)]).is_ok(), "{name} does not matter while codes are off");
            let problems = read(&[("GOTRUE_MFA_RECOVERY_CODES_VERIFY_ENABLED", "true"), (name, value)]);
            let problems = problems.expect_err("a problem").to_string();
            assert!(problems.contains(&format!("{name} must be between")), "{problems}");
        }
    }

    #[test]
    fn a_colon_can_be_a_required_character() {
        assert_eq!(passwords::character_sets(r"abc:012:\:;"), ["abc", "012", ":;"]);
    }

    #[test]
    fn rates_are_per_hour_or_a_burst() {
        let hourly = Rate { events: 7.0, over: Duration::from_secs(3600), burst: false };
        assert_eq!(read(&[("GOTRUE_RATE_LIMIT_EMAIL_SENT", "7")]).expect("config").rate_limits.email_sent, hourly);
        let burst = Rate { events: 30.0, over: Duration::from_secs(60), burst: true };
        assert_eq!(read(&[("GOTRUE_RATE_LIMIT_EMAIL_SENT", "30/1m")]).expect("config").rate_limits.email_sent, burst);
    }

    #[test]
    fn contradictory_and_unusable_settings_are_reported() {
        let problems = read(&[
            ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
            ("GOTRUE_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS", "true"),
            ("GOTRUE_SESSIONS_TIMEBOX", "-1h"),
            ("GOTRUE_HOOK_SEND_SMS_ENABLED", "true"),
            ("GOTRUE_HOOK_SEND_SMS_URI", "http://elsewhere.example"),
        ])
        .expect_err("refused")
        .to_string();
        for part in ["ALLOW_UNVERIFIED", "SESSIONS_TIMEBOX", "SEND_SMS_URI"] {
            assert!(problems.contains(part), "{problems}");
        }
    }

    #[test]
    fn quick_password_hashes_are_for_development_only() {
        let cost = |pairs: &[(&str, &str)]| read(pairs).map(|config| config.password.cost).map_err(|p| p.to_string());
        assert_eq!(cost(&[]), Ok(10));
        assert_eq!(cost(&[("FERROBASE_PASSWORD_COST", "4"), ("FERROBASE_DEV", "true")]), Ok(4));
        assert!(cost(&[("FERROBASE_PASSWORD_COST", "9")]).is_err_and(|p| p.contains("development only")));
        for wrong in ["3", "11", "x"] {
            let refused = cost(&[("FERROBASE_PASSWORD_COST", wrong), ("FERROBASE_DEV", "true")]);
            assert!(refused.is_err_and(|p| p.contains("FERROBASE_PASSWORD_COST")), "{wrong}");
        }
    }

    #[test]
    fn code_lengths_out_of_range_fall_back_to_six() {
        assert_eq!(read(&[("GOTRUE_MAILER_OTP_LENGTH", "11")]).expect("config").mailer.otp_length, 6);
        assert_eq!(read(&[("GOTRUE_MAILER_OTP_LENGTH", "8")]).expect("config").mailer.otp_length, 8);
    }
}
