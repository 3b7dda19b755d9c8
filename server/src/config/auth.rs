//! Settings of the authentication API: the `GOTRUE_*` names of Supabase Auth, with its defaults.
//!
//! Reference: supabase/auth `internal/conf/configuration.go`. Where the full server differs from a drop-in
//! GoTrue ([`AuthMode`]) the field says so.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::duration::parse_go_duration;
use super::{Reader, Secret};

/// How the API is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// `serve --only auth`: mounted at `/`, defaults of Supabase Auth, mail within the request.
    DropIn,
    /// Beside the other APIs at `/auth/v1`, defaults of a deployed Supabase, mail through the outbox.
    Full,
}

/// The providers that take `GOTRUE_EXTERNAL_<NAME>_*` settings, by their name on the wire.
pub const PROVIDERS: [&str; 25] = [
    "apple",
    "azure",
    "bitbucket",
    "discord",
    "facebook",
    "figma",
    "fly",
    "github",
    "gitlab",
    "google",
    "kakao",
    "keycloak",
    "linkedin",
    "linkedin_oidc",
    "notion",
    "slack",
    "slack_oidc",
    "snapchat",
    "spotify",
    "twitch",
    "twitter",
    "vercel_marketplace",
    "workos",
    "x",
    "zoom",
];

/// The mails that have a template and a subject of their own, by the name of their setting.
pub const MAILS: [&str; 13] = [
    "invite",
    "confirmation",
    "recovery",
    "email_change",
    "magic_link",
    "reauthentication",
    "password_changed_notification",
    "email_changed_notification",
    "phone_changed_notification",
    "identity_linked_notification",
    "identity_unlinked_notification",
    "mfa_factor_enrolled_notification",
    "mfa_factor_unenrolled_notification",
];

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
    /// `GOTRUE_SITE_URL`/`SITE_URL`: the application; where redirects go that may go nowhere else.
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
    pub hooks: HooksConfig,
    pub mfa: MfaConfig,
    pub webauthn: WebAuthnConfig,
    pub external: ExternalConfig,
    pub oauth_server: OAuthServerConfig,
    /// `GOTRUE_CUSTOM_OAUTH_ENABLED`, default true; `_MAX_PROVIDERS`, 0 = no limit.
    pub custom_oauth_enabled: bool,
    pub custom_oauth_max_providers: usize,
    /// `GOTRUE_SAML_ENABLED`, default false.
    pub saml_enabled: bool,
    /// `GOTRUE_EXPERIMENTAL_SCIM_ENABLED`, default false.
    pub scim_enabled: bool,
    /// `GOTRUE_EXPERIMENTAL_PROVIDER_LINKING_DOMAINS` (`provider=domain,…`) and the older
    /// `…_PROVIDERS_WITH_OWN_LINKING_DOMAIN`: providers that link only within their domain.
    pub provider_linking_domains: BTreeMap<String, String>,
    /// `GOTRUE_EXPERIMENTAL_CREATE_EMAIL_IDENTITY_ON_PASSWORD_SET_ENABLED`, default false.
    pub email_identity_on_password: bool,
    /// `GOTRUE_AUDIT_LOG_DISABLE_POSTGRES`, default false: audit entries go to the log only.
    pub audit_log_only: bool,
}

#[derive(Clone, Debug)]
pub struct JwtConfig {
    /// `GOTRUE_JWT_SECRET`/`JWT_SECRET`.
    pub secret: Secret,
    /// `GOTRUE_JWT_KEYS`: JSON array of private JWKs, exactly one with `sign` in `key_ops`.
    pub keys: Option<Secret>,
    /// `GOTRUE_JWT_KEY_ID`: `kid` of tokens signed with the secret.
    pub key_id: String,
    /// `GOTRUE_JWT_VALID_METHODS`; `None`: the algorithms of the configured keys.
    pub valid_methods: Option<Vec<String>>,
    /// `GOTRUE_JWT_EXP`/`JWT_EXPIRY`, default 3600 s.
    pub exp: u32,
    /// `GOTRUE_JWT_AUD`, default empty in a drop-in, `authenticated` in the full server.
    pub aud: String,
    /// `GOTRUE_JWT_DEFAULT_GROUP_NAME`: role of new users; default as `aud`.
    pub default_group_name: String,
    /// `GOTRUE_JWT_ADMIN_GROUP_NAME`, default `admin`.
    pub admin_group_name: String,
    /// `GOTRUE_JWT_ADMIN_ROLES`, default service_role and supabase_admin.
    pub admin_roles: Vec<String>,
    /// `GOTRUE_JWT_ISSUER`; default empty in a drop-in, `<external URL>/auth/v1` in the full server.
    pub issuer: String,
}

#[derive(Clone, Debug)]
pub struct MailerConfig {
    /// `GOTRUE_MAILER_AUTOCONFIRM`/`ENABLE_EMAIL_AUTOCONFIRM`, default false.
    pub autoconfirm: bool,
    /// `GOTRUE_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS`, default false.
    pub allow_unverified_email_sign_ins: bool,
    /// `GOTRUE_MAILER_SECURE_EMAIL_CHANGE_ENABLED`, default true: both addresses confirm a change.
    pub secure_email_change: bool,
    /// `GOTRUE_MAILER_OTP_EXP`, default 86400 s.
    pub otp_exp: Duration,
    /// `GOTRUE_MAILER_OTP_LENGTH`, 6 to 10, else 6.
    pub otp_length: usize,
    /// `GOTRUE_MAILER_EXTERNAL_HOSTS`: hosts that may appear in links instead of the external URL's.
    pub external_hosts: Vec<String>,
    /// `GOTRUE_MAILER_URLPATHS_*`, default `/verify` (`/auth/v1/verify` in the full server).
    pub url_path_invite: String,
    pub url_path_confirmation: String,
    pub url_path_recovery: String,
    pub url_path_email_change: String,
    /// `GOTRUE_MAILER_SUBJECTS_<MAIL>`: inline text, by name of [`MAILS`].
    pub subjects: BTreeMap<&'static str, String>,
    /// `GOTRUE_MAILER_TEMPLATES_<MAIL>`: URL, path below the site URL, file (`file:…`) or inline text.
    pub templates: BTreeMap<&'static str, String>,
    /// `GOTRUE_MAILER_NOTIFICATIONS_<CHANGE>_ENABLED`: the notifications of [`MAILS`] that are sent.
    pub notifications: BTreeMap<&'static str, bool>,
    /// `GOTRUE_MAILER_TEMPLATE_MAX_AGE` 10 min, `…_RETRY_INTERVAL` 10 s, `…_MAX_SIZE` 1,000,000 bytes.
    pub template_max_age: Duration,
    pub template_retry_interval: Duration,
    pub template_max_size: usize,
}

#[derive(Clone, Debug)]
pub struct SmtpConfig {
    /// `GOTRUE_SMTP_HOST`; empty: mail is dropped.
    pub host: String,
    /// `GOTRUE_SMTP_PORT`, default 587.
    pub port: u16,
    pub user: Option<String>,
    pub pass: Option<Secret>,
    pub admin_email: String,
    pub sender_name: String,
    /// `GOTRUE_SMTP_MAX_FREQUENCY`, default 1 min: pause between two mails of a purpose to a user.
    pub max_frequency: Duration,
    /// `GOTRUE_SMTP_HEADERS`: JSON map of lists; `$messageType` is replaced.
    pub headers: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Debug)]
pub struct SmsConfig {
    pub autoconfirm: bool,
    pub otp_exp: Duration,
    pub otp_length: usize,
    pub max_frequency: Duration,
    /// `GOTRUE_SMS_PROVIDER`: twilio, twilio_verify, messagebird, textlocal, vonage; ours: inbox.
    pub provider: String,
    /// `GOTRUE_SMS_TEMPLATE`, default `Your code is {{ .Code }}`.
    pub template: String,
    /// `GOTRUE_SMS_TEST_OTP` and `…_VALID_UNTIL`.
    pub test_otp: BTreeMap<String, String>,
    pub test_otp_valid_until: Option<DateTime<Utc>>,
    pub twilio: TwilioConfig,
}

#[derive(Clone, Debug)]
pub struct TwilioConfig {
    pub account_sid: String,
    pub auth_token: Secret,
    pub message_service_sid: String,
    pub content_sid: String,
    /// `FERROBASE_SMS_TWILIO_URL`, default `https://api.twilio.com`: any service with Twilio's API.
    pub base_url: String,
}

#[derive(Clone, Debug)]
pub struct PasswordConfig {
    /// `GOTRUE_PASSWORD_MIN_LENGTH`, in bytes, at least 6.
    pub min_length: usize,
    /// `GOTRUE_PASSWORD_REQUIRED_CHARACTERS`: sets of which each must be met.
    pub required_characters: Vec<String>,
    pub hibp_enabled: bool,
    pub hibp_fail_closed: bool,
    /// `GOTRUE_PASSWORD_HIBP_URL`, default `https://api.pwnedpasswords.com/range/`.
    pub hibp_url: String,
    pub hibp_user_agent: String,
    /// `FERROBASE_PASSWORD_THREADS`: hashes computed at once; default the number of processors.
    pub threads: usize,
}

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

#[derive(Clone, Debug)]
pub struct SessionsConfig {
    pub timebox: Option<Duration>,
    pub inactivity_timeout: Option<Duration>,
    pub allow_low_aal: Option<Duration>,
    pub single_per_user: bool,
    pub tags: Vec<String>,
}

/// A global limit: `N` per fixed hour, or `N/dur`: a burst of N, one more per `dur`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub events: f64,
    pub over: Duration,
    pub burst: bool,
}

#[derive(Clone, Debug)]
pub struct RateLimits {
    /// `GOTRUE_RATE_LIMIT_HEADER`; without one the full server counts by peer address, a drop-in not at all.
    pub header: Option<String>,
    pub email_sent: Rate,
    pub sms_sent: Rate,
    /// Per 5 minutes unless said otherwise.
    pub verify: f64,
    pub token_refresh: f64,
    pub sso: f64,
    /// Per hour.
    pub anonymous_users: f64,
    pub otp: f64,
    pub web3: f64,
    pub passkey: f64,
    pub oauth_client_register: f64,
    pub saml_assertion: f64,
    /// Per minute.
    pub mfa: f64,
}

/// One hook: where it is and what signs it.
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

#[derive(Clone, Debug)]
pub struct MfaConfig {
    /// `GOTRUE_MFA_CHALLENGE_EXPIRY_DURATION`, seconds, at least 300.
    pub challenge_expiry: Duration,
    pub factor_expiry: Duration,
    pub max_enrolled_factors: usize,
    pub max_verified_factors: usize,
    pub totp_enroll: bool,
    pub totp_verify: bool,
    pub phone_enroll: bool,
    pub phone_verify: bool,
    pub phone_otp_length: usize,
    pub phone_max_frequency: Duration,
    pub phone_template: String,
    pub webauthn_enroll: bool,
    pub webauthn_verify: bool,
}

#[derive(Clone, Debug)]
pub struct WebAuthnConfig {
    pub rp_id: String,
    pub rp_display_name: String,
    pub rp_origins: Vec<String>,
    pub challenge_expiry: Duration,
    /// `GOTRUE_PASSKEY_ENABLED`, default false.
    pub passkey_enabled: bool,
    pub max_passkeys_per_user: usize,
}

#[derive(Clone, Debug)]
pub struct ExternalConfig {
    pub email_enabled: bool,
    pub email_authorized_addresses: Vec<String>,
    pub email_magic_link_enabled: bool,
    pub phone_enabled: bool,
    pub anonymous_users_enabled: bool,
    pub web3_solana_enabled: bool,
    pub web3_solana_max_validity: Duration,
    pub web3_ethereum_enabled: bool,
    pub web3_ethereum_max_validity: Duration,
    /// By name of [`PROVIDERS`].
    pub providers: BTreeMap<&'static str, OAuthProviderConfig>,
    pub ios_bundle_id: String,
    pub allowed_id_token_issuers: Vec<String>,
    /// `GOTRUE_EXTERNAL_FLOW_STATE_EXPIRY_DURATION`, at least 300 s.
    pub flow_state_expiry: Duration,
}

#[derive(Clone, Debug)]
pub struct OAuthProviderConfig {
    pub enabled: bool,
    pub client_id: Vec<String>,
    pub secret: Secret,
    pub redirect_uri: String,
    pub url: String,
    pub api_url: String,
    pub email_optional: bool,
    pub skip_nonce_check: bool,
}

#[derive(Clone, Debug)]
pub struct OAuthServerConfig {
    pub enabled: bool,
    pub allow_dynamic_registration: bool,
    pub authorization_path: String,
    pub authorization_ttl: Duration,
    pub default_scope: String,
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
            .map(|p| (p.clone(), p))
            .collect();
        for pair in reader.list(&["GOTRUE_EXPERIMENTAL_PROVIDER_LINKING_DOMAINS"]).unwrap_or_default() {
            match pair.split_once('=') {
                Some((p, d)) if !p.trim().is_empty() && !d.trim().is_empty() => {
                    linking.insert(p.trim().to_owned(), d.trim().to_owned());
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
            hooks: HooksConfig::read(reader),
            mfa: MfaConfig::read(reader),
            webauthn: WebAuthnConfig::read(reader),
            external: ExternalConfig::read(reader),
            oauth_server: OAuthServerConfig::read(reader),
            custom_oauth_enabled: reader.flag(&["GOTRUE_CUSTOM_OAUTH_ENABLED"], true),
            custom_oauth_max_providers: reader.parse_or(&["GOTRUE_CUSTOM_OAUTH_MAX_PROVIDERS"], "a number", 0),
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

impl JwtConfig {
    fn read(reader: &mut Reader<'_>, full: bool, external_url: &str) -> Self {
        let secret = reader.secret(&["GOTRUE_JWT_SECRET", "JWT_SECRET"]).unwrap_or_else(|| {
            if !full {
                reader.problem("GOTRUE_JWT_SECRET is not set");
            }
            Secret::new(if full { super::server::DEVELOPMENT_JWT_SECRET } else { "" })
        });
        let exp = reader.parse_or(&["GOTRUE_JWT_EXP", "JWT_EXPIRY"], "a whole number of seconds", 3600_u32);
        let everyone = if full { "authenticated" } else { "" };
        let base = external_url.trim_end_matches('/').trim_end_matches("/auth/v1");
        let issuer = if full { format!("{base}/auth/v1") } else { String::new() };
        let admin_roles = reader.list(&["GOTRUE_JWT_ADMIN_ROLES"]).filter(|l| !l.is_empty());
        Self {
            secret,
            keys: reader.secret(&["GOTRUE_JWT_KEYS"]),
            key_id: reader.text_or(&["GOTRUE_JWT_KEY_ID"], ""),
            valid_methods: reader.list(&["GOTRUE_JWT_VALID_METHODS", "GOTRUE_JWT_VALIDMETHODS"]),
            exp: if exp == 0 { 3600 } else { exp },
            aud: reader.text_or(&["GOTRUE_JWT_AUD"], everyone),
            default_group_name: reader.text_or(&["GOTRUE_JWT_DEFAULT_GROUP_NAME"], everyone),
            admin_group_name: reader.text_or(&["GOTRUE_JWT_ADMIN_GROUP_NAME"], "admin"),
            admin_roles: admin_roles.unwrap_or_else(|| vec!["service_role".into(), "supabase_admin".into()]),
            issuer: reader.text_or(&["GOTRUE_JWT_ISSUER"], &issuer),
        }
    }
}

impl MailerConfig {
    fn read(reader: &mut Reader<'_>, full: bool) -> Self {
        let verify = if full { "/auth/v1/verify" } else { "/verify" };
        let autoconfirm = reader.flag(&["GOTRUE_MAILER_AUTOCONFIRM", "ENABLE_EMAIL_AUTOCONFIRM"], false);
        let allow_unverified = reader.flag(&["GOTRUE_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS"], false);
        if autoconfirm && allow_unverified {
            reader.problem(
                "GOTRUE_MAILER_AUTOCONFIRM and GOTRUE_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS cannot both be true",
            );
        }
        let per_mail = |prefix: &str| {
            MAILS
                .iter()
                .filter_map(|mail| {
                    let name = format!("{prefix}{}", mail.to_uppercase());
                    let value = reader.source().get(&name).filter(|v| !v.is_empty())?;
                    Some((*mail, value.to_owned()))
                })
                .collect()
        };
        let subjects = per_mail("GOTRUE_MAILER_SUBJECTS_");
        let templates = per_mail("GOTRUE_MAILER_TEMPLATES_");
        let mut notifications = BTreeMap::new();
        for (mail, name) in [
            ("password_changed_notification", "GOTRUE_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED"),
            ("email_changed_notification", "GOTRUE_MAILER_NOTIFICATIONS_EMAIL_CHANGED_ENABLED"),
            ("phone_changed_notification", "GOTRUE_MAILER_NOTIFICATIONS_PHONE_CHANGED_ENABLED"),
            ("identity_linked_notification", "GOTRUE_MAILER_NOTIFICATIONS_IDENTITY_LINKED_ENABLED"),
            ("identity_unlinked_notification", "GOTRUE_MAILER_NOTIFICATIONS_IDENTITY_UNLINKED_ENABLED"),
            ("mfa_factor_enrolled_notification", "GOTRUE_MAILER_NOTIFICATIONS_MFA_FACTOR_ENROLLED_ENABLED"),
            ("mfa_factor_unenrolled_notification", "GOTRUE_MAILER_NOTIFICATIONS_MFA_FACTOR_UNENROLLED_ENABLED"),
        ] {
            notifications.insert(mail, reader.flag(&[name], false));
        }
        Self {
            autoconfirm,
            allow_unverified_email_sign_ins: allow_unverified,
            secure_email_change: reader.flag(&["GOTRUE_MAILER_SECURE_EMAIL_CHANGE_ENABLED"], true),
            otp_exp: seconds_unless_zero(reader, "GOTRUE_MAILER_OTP_EXP", 86_400),
            otp_length: otp_length(reader, "GOTRUE_MAILER_OTP_LENGTH"),
            external_hosts: reader.list(&["GOTRUE_MAILER_EXTERNAL_HOSTS"]).unwrap_or_default(),
            url_path_invite: reader.text_or(&["GOTRUE_MAILER_URLPATHS_INVITE"], verify),
            url_path_confirmation: reader.text_or(&["GOTRUE_MAILER_URLPATHS_CONFIRMATION"], verify),
            url_path_recovery: reader.text_or(&["GOTRUE_MAILER_URLPATHS_RECOVERY"], verify),
            url_path_email_change: reader.text_or(&["GOTRUE_MAILER_URLPATHS_EMAIL_CHANGE"], verify),
            subjects,
            templates,
            notifications,
            template_max_age: duration(reader, &["GOTRUE_MAILER_TEMPLATE_MAX_AGE"], Duration::from_secs(600)),
            template_retry_interval: duration(
                reader,
                &["GOTRUE_MAILER_TEMPLATE_RETRY_INTERVAL"],
                Duration::from_secs(10),
            ),
            template_max_size: reader.parse_or(&["GOTRUE_MAILER_TEMPLATE_MAX_SIZE"], "a number of bytes", 1_000_000),
        }
    }
}

impl SmtpConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let headers = match reader.text(&["GOTRUE_SMTP_HEADERS"]) {
            None => Vec::new(),
            Some(text) => match serde_json::from_str::<BTreeMap<String, Vec<String>>>(&text) {
                Ok(map) => map.into_iter().collect(),
                Err(_) => {
                    reader.problem("GOTRUE_SMTP_HEADERS must be a JSON object of lists of texts");
                    Vec::new()
                }
            },
        };
        Self {
            host: reader.text_or(&["GOTRUE_SMTP_HOST", "SMTP_HOST"], ""),
            port: reader.parse_or(&["GOTRUE_SMTP_PORT", "SMTP_PORT"], "a port", 587),
            user: reader.text(&["GOTRUE_SMTP_USER", "SMTP_USER"]),
            pass: reader.secret(&["GOTRUE_SMTP_PASS", "SMTP_PASS"]),
            admin_email: reader.text_or(&["GOTRUE_SMTP_ADMIN_EMAIL", "SMTP_ADMIN_EMAIL"], ""),
            sender_name: reader.text_or(&["GOTRUE_SMTP_SENDER_NAME", "SMTP_SENDER_NAME"], ""),
            max_frequency: frequency(reader, "GOTRUE_SMTP_MAX_FREQUENCY"),
            headers,
        }
    }
}

impl SmsConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let mut test_otp = BTreeMap::new();
        for pair in reader.list(&["GOTRUE_SMS_TEST_OTP"]).unwrap_or_default() {
            match pair.split_once(':') {
                Some((phone, otp)) => {
                    let phone = phone.strip_prefix('+').unwrap_or(phone).replace(' ', "");
                    test_otp.insert(phone, otp.to_owned());
                }
                None => reader.problem(format!("GOTRUE_SMS_TEST_OTP: '{pair}' is not of the form phone:code")),
            }
        }
        Self {
            autoconfirm: reader.flag(&["GOTRUE_SMS_AUTOCONFIRM", "ENABLE_PHONE_AUTOCONFIRM"], false),
            otp_exp: seconds_unless_zero(reader, "GOTRUE_SMS_OTP_EXP", 60),
            otp_length: otp_length(reader, "GOTRUE_SMS_OTP_LENGTH"),
            max_frequency: frequency(reader, "GOTRUE_SMS_MAX_FREQUENCY"),
            provider: reader.text_or(&["GOTRUE_SMS_PROVIDER"], ""),
            template: reader.text_or(&["GOTRUE_SMS_TEMPLATE"], "Your code is {{ .Code }}"),
            test_otp,
            test_otp_valid_until: reader.parse(&["GOTRUE_SMS_TEST_OTP_VALID_UNTIL"], "a time (RFC 3339)"),
            twilio: {
                let verify = reader.text(&["GOTRUE_SMS_PROVIDER"]).as_deref() == Some("twilio_verify");
                let names: [&[&'static str]; 3] = if verify {
                    [
                        &["GOTRUE_SMS_TWILIO_VERIFY_ACCOUNT_SID"],
                        &["GOTRUE_SMS_TWILIO_VERIFY_AUTH_TOKEN"],
                        &["GOTRUE_SMS_TWILIO_VERIFY_MESSAGE_SERVICE_SID"],
                    ]
                } else {
                    [
                        &["GOTRUE_SMS_TWILIO_ACCOUNT_SID"],
                        &["GOTRUE_SMS_TWILIO_AUTH_TOKEN"],
                        &["GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID"],
                    ]
                };
                let default = if verify { "https://verify.twilio.com" } else { "https://api.twilio.com" };
                TwilioConfig {
                    account_sid: reader.text_or(names[0], ""),
                    auth_token: reader.secret(names[1]).unwrap_or_else(|| Secret::new("")),
                    message_service_sid: reader.text_or(names[2], ""),
                    content_sid: reader.text_or(&["GOTRUE_SMS_TWILIO_CONTENT_SID"], ""),
                    base_url: reader.text_or(&["FERROBASE_SMS_TWILIO_URL"], default),
                }
            },
        }
    }

    /// The fixed code of a test number, while such codes are valid.
    pub fn test_otp(&self, phone: &str, now: DateTime<Utc>) -> Option<&str> {
        if self.test_otp_valid_until.is_some_and(|until| now >= until) {
            return None;
        }
        self.test_otp.get(phone).map(String::as_str)
    }
}

impl PasswordConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let required = reader.text_or(&["GOTRUE_PASSWORD_REQUIRED_CHARACTERS", "PASSWORD_REQUIRED_CHARACTERS"], "");
        Self {
            min_length: reader.parse_or(&["GOTRUE_PASSWORD_MIN_LENGTH"], "a number of bytes", 6_usize).max(6),
            required_characters: character_sets(&required),
            hibp_enabled: reader.flag(&["GOTRUE_PASSWORD_HIBP_ENABLED"], false),
            hibp_fail_closed: reader.flag(&["GOTRUE_PASSWORD_HIBP_FAIL_CLOSED"], false),
            hibp_url: reader.text_or(&["GOTRUE_PASSWORD_HIBP_URL"], "https://api.pwnedpasswords.com/range/"),
            hibp_user_agent: reader.text_or(&["GOTRUE_PASSWORD_HIBP_USER_AGENT"], "ferrobase"),
            threads: reader.parse_or(&["FERROBASE_PASSWORD_THREADS"], "a number of threads", processors).max(1),
        }
    }
}

impl SecurityConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
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

impl EncryptionConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
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

impl SessionsConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            timebox: limit(reader, "GOTRUE_SESSIONS_TIMEBOX"),
            inactivity_timeout: limit(reader, "GOTRUE_SESSIONS_INACTIVITY_TIMEOUT"),
            allow_low_aal: limit(reader, "GOTRUE_SESSIONS_ALLOW_LOW_AAL"),
            single_per_user: reader.flag(&["GOTRUE_SESSIONS_SINGLE_PER_USER"], false),
            tags: reader.list(&["GOTRUE_SESSIONS_TAGS"]).unwrap_or_default(),
        }
    }
}

impl RateLimits {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            header: reader.text(&["GOTRUE_RATE_LIMIT_HEADER"]),
            email_sent: rate(reader, "GOTRUE_RATE_LIMIT_EMAIL_SENT", 30.0),
            sms_sent: rate(reader, "GOTRUE_RATE_LIMIT_SMS_SENT", 30.0),
            verify: reader.parse_or(&["GOTRUE_RATE_LIMIT_VERIFY"], "a number", 30.0),
            token_refresh: reader.parse_or(&["GOTRUE_RATE_LIMIT_TOKEN_REFRESH"], "a number", 150.0),
            sso: reader.parse_or(&["GOTRUE_RATE_LIMIT_SSO"], "a number", 30.0),
            anonymous_users: reader.parse_or(&["GOTRUE_RATE_LIMIT_ANONYMOUS_USERS"], "a number", 30.0),
            otp: reader.parse_or(&["GOTRUE_RATE_LIMIT_OTP"], "a number", 30.0),
            web3: reader.parse_or(&["GOTRUE_RATE_LIMIT_WEB3"], "a number", 30.0),
            passkey: reader.parse_or(&["GOTRUE_RATE_LIMIT_PASSKEY"], "a number", 30.0),
            oauth_client_register: reader.parse_or(
                &[
                    "GOTRUE_RATE_LIMIT_OAUTH_DYNAMIC_CLIENT_REGISTER",
                    "GOTRUE_RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER",
                ],
                "a number",
                10.0,
            ),
            saml_assertion: reader.parse_or(&["GOTRUE_SAML_RATE_LIMIT_ASSERTION"], "a number", 15.0),
            mfa: reader.parse_or(&["GOTRUE_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY"], "a number", 15.0),
        }
    }
}

impl HooksConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
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

impl MfaConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let floor = Duration::from_secs(300);
        let expiry: f64 = reader.parse_or(&["GOTRUE_MFA_CHALLENGE_EXPIRY_DURATION"], "a number of seconds", 300.0);
        Self {
            challenge_expiry: Duration::try_from_secs_f64(expiry).unwrap_or(floor).max(floor),
            factor_expiry: duration(reader, &["GOTRUE_MFA_FACTOR_EXPIRY_DURATION"], floor).max(floor),
            max_enrolled_factors: reader.parse_or(&["GOTRUE_MFA_MAX_ENROLLED_FACTORS"], "a number", 10),
            max_verified_factors: reader.parse_or(&["GOTRUE_MFA_MAX_VERIFIED_FACTORS"], "a number", 10),
            totp_enroll: reader.flag(&["GOTRUE_MFA_TOTP_ENROLL_ENABLED"], true),
            totp_verify: reader.flag(&["GOTRUE_MFA_TOTP_VERIFY_ENABLED"], true),
            phone_enroll: reader.flag(&["GOTRUE_MFA_PHONE_ENROLL_ENABLED"], false),
            phone_verify: reader.flag(&["GOTRUE_MFA_PHONE_VERIFY_ENABLED"], false),
            phone_otp_length: otp_length(reader, "GOTRUE_MFA_PHONE_OTP_LENGTH"),
            phone_max_frequency: frequency(reader, "GOTRUE_MFA_PHONE_MAX_FREQUENCY"),
            phone_template: reader.text_or(&["GOTRUE_MFA_PHONE_TEMPLATE"], "Your code is {{ .Code }}"),
            webauthn_enroll: reader.flag(&["GOTRUE_MFA_WEB_AUTHN_ENROLL_ENABLED"], false),
            webauthn_verify: reader.flag(&["GOTRUE_MFA_WEB_AUTHN_VERIFY_ENABLED"], false),
        }
    }
}

impl WebAuthnConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            rp_id: reader.text_or(&["GOTRUE_WEBAUTHN_RP_ID"], ""),
            rp_display_name: reader.text_or(&["GOTRUE_WEBAUTHN_RP_DISPLAY_NAME"], ""),
            rp_origins: reader.list(&["GOTRUE_WEBAUTHN_RP_ORIGINS"]).unwrap_or_default(),
            challenge_expiry: duration(
                reader,
                &["GOTRUE_WEBAUTHN_CHALLENGE_EXPIRY_DURATION"],
                Duration::from_secs(300),
            ),
            passkey_enabled: reader.flag(&["GOTRUE_PASSKEY_ENABLED"], false),
            max_passkeys_per_user: reader.parse_or(&["GOTRUE_PASSKEY_MAX_PASSKEYS_PER_USER"], "a number", 10),
        }
    }
}

impl ExternalConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let ten_minutes = Duration::from_secs(600);
        let floor = Duration::from_secs(300);
        let issuers = reader.list(&["GOTRUE_EXTERNAL_ALLOWED_ID_TOKEN_ISSUERS"]).filter(|l| !l.is_empty());
        Self {
            email_enabled: reader.flag(&["GOTRUE_EXTERNAL_EMAIL_ENABLED", "ENABLE_EMAIL_SIGNUP"], true),
            email_authorized_addresses: reader
                .list(&["GOTRUE_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES"])
                .unwrap_or_default(),
            email_magic_link_enabled: reader.flag(&["GOTRUE_EXTERNAL_EMAIL_MAGIC_LINK_ENABLED"], true),
            phone_enabled: reader.flag(&["GOTRUE_EXTERNAL_PHONE_ENABLED", "ENABLE_PHONE_SIGNUP"], false),
            anonymous_users_enabled: reader
                .flag(&["GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED", "ENABLE_ANONYMOUS_USERS"], false),
            web3_solana_enabled: reader.flag(&["GOTRUE_EXTERNAL_WEB3_SOLANA_ENABLED"], false),
            web3_solana_max_validity: duration(
                reader,
                &["GOTRUE_EXTERNAL_WEB3_SOLANA_MAXIMUM_VALIDITY_DURATION"],
                ten_minutes,
            ),
            web3_ethereum_enabled: reader.flag(&["GOTRUE_EXTERNAL_WEB3_ETHEREUM_ENABLED"], false),
            web3_ethereum_max_validity: duration(
                reader,
                &["GOTRUE_EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION"],
                ten_minutes,
            ),
            providers: PROVIDERS
                .iter()
                .map(|name| (*name, OAuthProviderConfig::read(reader, &name.to_uppercase())))
                .collect(),
            ios_bundle_id: reader.text_or(&["GOTRUE_EXTERNAL_IOS_BUNDLE_ID"], ""),
            allowed_id_token_issuers: issuers
                .unwrap_or_else(|| vec!["https://appleid.apple.com".into(), "https://accounts.google.com".into()]),
            flow_state_expiry: duration(reader, &["GOTRUE_EXTERNAL_FLOW_STATE_EXPIRY_DURATION"], floor).max(floor),
        }
    }
}

impl OAuthProviderConfig {
    fn read(reader: &mut Reader<'_>, name: &str) -> Self {
        let source = reader.source();
        let text = |key: &str| source.get(&format!("GOTRUE_EXTERNAL_{name}_{key}")).unwrap_or("").to_owned();
        let mut flag = |key: &str| match text(key).to_ascii_lowercase().as_str() {
            "" | "false" | "0" | "f" => false,
            "true" | "1" | "t" => true,
            _ => {
                reader.problem(format!("GOTRUE_EXTERNAL_{name}_{key} must be true or false"));
                false
            }
        };
        Self {
            enabled: flag("ENABLED"),
            email_optional: flag("EMAIL_OPTIONAL"),
            skip_nonce_check: flag("SKIP_NONCE_CHECK"),
            client_id: text("CLIENT_ID").split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect(),
            secret: Secret::new(text("SECRET")),
            redirect_uri: text("REDIRECT_URI"),
            url: text("URL"),
            api_url: text("API_URL"),
        }
    }
}

impl OAuthServerConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            enabled: reader.flag(&["GOTRUE_OAUTH_SERVER_ENABLED"], false),
            allow_dynamic_registration: reader.flag(&["GOTRUE_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION"], false),
            authorization_path: reader.text_or(&["GOTRUE_OAUTH_SERVER_AUTHORIZATION_PATH"], ""),
            authorization_ttl: duration(reader, &["GOTRUE_OAUTH_SERVER_AUTHORIZATION_TTL"], Duration::from_secs(600)),
            default_scope: reader.text_or(&["GOTRUE_OAUTH_SERVER_DEFAULT_SCOPE"], "email"),
        }
    }
}

/// A duration in Go's syntax; a negative one counts as zero.
fn duration(reader: &mut Reader<'_>, names: &[&'static str], default: Duration) -> Duration {
    let Some((name, value)) = reader.find(names) else { return default };
    match parse_go_duration(value.trim()) {
        Some(nanos) => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
        None => {
            reader.problem(format!("{name} must be a duration like 1h30m"));
            default
        }
    }
}

/// A pause between messages: unset or zero is a minute.
fn frequency(reader: &mut Reader<'_>, name: &'static str) -> Duration {
    let minute = Duration::from_secs(60);
    let value = duration(reader, &[name], minute);
    if value.is_zero() { minute } else { value }
}

/// A limit that must be positive when it is set.
fn limit(reader: &mut Reader<'_>, name: &'static str) -> Option<Duration> {
    reader.find(&[name])?;
    let value = duration(reader, &[name], Duration::ZERO);
    if value.is_zero() {
        reader.problem(format!("{name} must be a positive duration"));
    }
    Some(value)
}

fn seconds_unless_zero(reader: &mut Reader<'_>, name: &'static str, default: u64) -> Duration {
    let value = reader.seconds_or(&[name], Duration::from_secs(default));
    if value.is_zero() { Duration::from_secs(default) } else { value }
}

fn otp_length(reader: &mut Reader<'_>, name: &'static str) -> usize {
    let length = reader.parse_or(&[name], "a number of digits", 6_usize);
    if (6..=10).contains(&length) { length } else { 6 }
}

fn rate(reader: &mut Reader<'_>, name: &'static str, default: f64) -> Rate {
    let hour = Duration::from_secs(3600);
    let Some((_, text)) = reader.find(&[name]) else { return Rate { events: default, over: hour, burst: false } };
    if let Ok(events) = text.parse::<f64>() {
        return Rate { events, over: hour, burst: false };
    }
    let parsed = text.split_once('/').and_then(|(events, over)| {
        let nanos = u64::try_from(parse_go_duration(over)?).ok()?;
        let over = if nanos == 0 { hour } else { Duration::from_nanos(nanos) };
        Some(Rate { events: f64::from(events.parse::<u32>().ok()?), over, burst: true })
    });
    parsed.unwrap_or_else(|| {
        reader.problem(format!("{name} must be a number per hour or a rate like 30/1m"));
        Rate { events: default, over: hour, burst: false }
    })
}

/// Sets separated by `:`; `\:` is a colon within a set.
fn character_sets(text: &str) -> Vec<String> {
    let mut sets = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek() == Some(&':') => {
                characters.next();
                if let Some(last) = sets.last_mut() {
                    last.push(':');
                }
            }
            ':' => sets.push(String::new()),
            other => {
                if let Some(last) = sets.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    sets.retain(|set| !set.is_empty());
    sets
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
    fn a_colon_can_be_a_required_character() {
        assert_eq!(character_sets(r"abc:012:\:;"), ["abc", "012", ":;"]);
    }

    #[test]
    fn rates_are_per_hour_or_a_burst() {
        let hourly = Rate { events: 7.0, over: Duration::from_secs(3600), burst: false };
        assert_eq!(read(&[("GOTRUE_RATE_LIMIT_EMAIL_SENT", "7")]).expect("config").rate_limits.email_sent, hourly);
        let burst = Rate { events: 30.0, over: Duration::from_secs(60), burst: true };
        assert_eq!(read(&[("GOTRUE_RATE_LIMIT_EMAIL_SENT", "30/1m")]).expect("config").rate_limits.email_sent, burst);
    }

    #[test]
    fn contradicting_and_unusable_settings_are_named() {
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
    fn code_lengths_out_of_range_fall_back_to_six() {
        assert_eq!(read(&[("GOTRUE_MAILER_OTP_LENGTH", "11")]).expect("config").mailer.otp_length, 6);
        assert_eq!(read(&[("GOTRUE_MAILER_OTP_LENGTH", "8")]).expect("config").mailer.otp_length, 8);
    }
}
