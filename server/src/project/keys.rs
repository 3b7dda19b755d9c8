//! Every key of `config.toml` that the Supabase CLI knows, and how it is used here. A star stands for any name.

/// How a key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Passed to the server unchanged, under this name.
    Setting(&'static str),
    /// A boolean, passed on under this name.
    Flag(&'static str),
    /// A boolean, passed on negated.
    NotFlag(&'static str),
    /// Read by code in this module.
    Read,
    /// Ignored: it concerns the hosted platform, or a part that is missing here and affects nothing else.
    Accepted,
    /// Served, whatever it says. If it is turned off, the user is told that this is on.
    AlwaysOn(&'static str),
    /// Not supported. If it is enabled or has a value, the user is told this.
    NotServed(&'static str),
}

use Use::{Accepted, AlwaysOn, Flag, NotFlag, NotServed, Read, Setting};

const TLS: &str = "the API is served without TLS";
const SMTP_PORT: Use =
    if crate::config::INBOX_TAKES_SMTP { Read } else { NotServed("this build's inbox does not accept mail by SMTP") };
const SMS: &str = "messages leave through twilio or twilio_verify, or the hook send_sms";

pub const KEYS: &[(&str, Use)] = &[
    ("project_id", Read),
    ("api.enabled", AlwaysOn("the REST API")),
    ("api.port", Read),
    ("api.schemas", Read),
    ("api.extra_search_path", Read),
    ("api.max_rows", Setting("PGRST_DB_MAX_ROWS")),
    ("api.external_url", Read),
    ("api.auto_expose_new_tables", Read),
    ("api.tls.enabled", NotServed(TLS)),
    ("api.tls.cert_path", Accepted),
    ("api.tls.key_path", Accepted),
    ("db.port", Read),
    ("db.shadow_port", Accepted),
    ("db.major_version", Accepted),
    ("db.health_timeout", Accepted),
    ("db.orioledb_version", NotServed("tables are stored in PostgreSQL's own heap")),
    ("db.root_key", NotServed("the vault encrypts with a key of its own, which is in the data folder")),
    ("db.pooler.enabled", NotServed("there is no pooler: connect to the database itself")),
    ("db.pooler.*", Accepted),
    ("db.migrations.enabled", Read),
    ("db.migrations.schema_paths", Read),
    ("db.seed.enabled", Read),
    ("db.seed.sql_paths", Read),
    ("db.vault.*", Read),
    ("db.settings.*", Read),
    ("db.network_restrictions.*", Accepted),
    ("db.ssl_enforcement.*", Accepted),
    ("realtime.enabled", AlwaysOn("the realtime API")),
    ("realtime.ip_version", Accepted),
    ("realtime.max_header_length", Accepted),
    ("studio.*", Accepted),
    ("local_smtp.enabled", AlwaysOn("the inbox")),
    ("local_smtp.port", Read),
    ("local_smtp.smtp_port", SMTP_PORT),
    ("local_smtp.pop3_port", NotServed("the inbox is not read by POP3")),
    ("local_smtp.admin_email", Setting("GOTRUE_SMTP_ADMIN_EMAIL")),
    ("local_smtp.sender_name", Setting("GOTRUE_SMTP_SENDER_NAME")),
    ("analytics.*", Accepted),
    ("storage.enabled", AlwaysOn("the storage API")),
    ("storage.file_size_limit", Read),
    ("storage.s3_protocol.enabled", AlwaysOn("the S3 protocol")),
    ("storage.image_transformation.enabled", Flag("ENABLE_IMAGE_TRANSFORMATION")),
    ("storage.buckets.*.public", Read),
    ("storage.buckets.*.file_size_limit", Read),
    ("storage.buckets.*.allowed_mime_types", Read),
    ("storage.buckets.*.objects_path", Read),
    ("storage.analytics.*", Accepted),
    ("storage.analytics.buckets.*", Accepted),
    ("storage.vector.*", Accepted),
    ("storage.vector.buckets.*", Accepted),
    ("auth.enabled", AlwaysOn("the auth API")),
    ("auth.site_url", Read),
    ("auth.additional_redirect_urls", Read),
    ("auth.external_url", Read),
    ("auth.jwt_issuer", Read),
    ("auth.jwt_expiry", Setting("GOTRUE_JWT_EXP")),
    ("auth.jwt_secret", Read),
    ("auth.anon_key", Read),
    ("auth.service_role_key", Read),
    ("auth.publishable_key", Read),
    ("auth.secret_key", Read),
    ("auth.signing_keys_path", Read),
    ("auth.enable_refresh_token_rotation", Flag("GOTRUE_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED")),
    ("auth.refresh_token_reuse_interval", Setting("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL")),
    ("auth.enable_signup", NotFlag("GOTRUE_DISABLE_SIGNUP")),
    ("auth.enable_anonymous_sign_ins", Flag("GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED")),
    ("auth.enable_manual_linking", Flag("GOTRUE_SECURITY_MANUAL_LINKING_ENABLED")),
    ("auth.minimum_password_length", Setting("GOTRUE_PASSWORD_MIN_LENGTH")),
    ("auth.password_requirements", Read),
    // Limits do not apply in a local stack, where a test suite signs up hundreds of people from one address.
    ("auth.rate_limit.*", Accepted),
    ("auth.captcha.enabled", Flag("GOTRUE_SECURITY_CAPTCHA_ENABLED")),
    ("auth.captcha.provider", Setting("GOTRUE_SECURITY_CAPTCHA_PROVIDER")),
    ("auth.captcha.secret", Setting("GOTRUE_SECURITY_CAPTCHA_SECRET")),
    ("auth.email.enable_signup", Flag("GOTRUE_EXTERNAL_EMAIL_ENABLED")),
    // The name of version 3, which wins over the older one.
    ("auth.email.enabled", Flag("GOTRUE_EXTERNAL_EMAIL_ENABLED")),
    ("auth.email.double_confirm_changes", Flag("GOTRUE_MAILER_SECURE_EMAIL_CHANGE_ENABLED")),
    ("auth.email.enable_confirmations", NotFlag("GOTRUE_MAILER_AUTOCONFIRM")),
    ("auth.email.secure_password_change", Flag("GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION")),
    ("auth.email.require_current_password", Flag("GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD")),
    ("auth.email.max_frequency", Setting("GOTRUE_SMTP_MAX_FREQUENCY")),
    ("auth.email.otp_length", Setting("GOTRUE_MAILER_OTP_LENGTH")),
    ("auth.email.otp_expiry", Setting("GOTRUE_MAILER_OTP_EXP")),
    ("auth.email.smtp.*", Read),
    ("auth.email.template.*.subject", Read),
    ("auth.email.template.*.content_path", Read),
    ("auth.email.template.*.content", NotServed("write the template to a file and name it in content_path")),
    ("auth.email.notification.*.enabled", Read),
    ("auth.email.notification.*.subject", Read),
    ("auth.email.notification.*.content_path", Read),
    ("auth.sms.enable_signup", Flag("GOTRUE_EXTERNAL_PHONE_ENABLED")),
    ("auth.sms.enabled", Flag("GOTRUE_EXTERNAL_PHONE_ENABLED")),
    ("auth.sms.enable_confirmations", NotFlag("GOTRUE_SMS_AUTOCONFIRM")),
    ("auth.sms.template", Setting("GOTRUE_SMS_TEMPLATE")),
    ("auth.sms.max_frequency", Setting("GOTRUE_SMS_MAX_FREQUENCY")),
    ("auth.sms.test_otp.*", Read),
    ("auth.sms.twilio.*", Read),
    ("auth.sms.twilio_verify.*", Read),
    ("auth.sms.messagebird.enabled", NotServed(SMS)),
    ("auth.sms.messagebird.*", Accepted),
    ("auth.sms.textlocal.enabled", NotServed(SMS)),
    ("auth.sms.textlocal.*", Accepted),
    ("auth.sms.vonage.enabled", NotServed(SMS)),
    ("auth.sms.vonage.*", Accepted),
    ("auth.sessions.timebox", Setting("GOTRUE_SESSIONS_TIMEBOX")),
    ("auth.sessions.inactivity_timeout", Setting("GOTRUE_SESSIONS_INACTIVITY_TIMEOUT")),
    ("auth.mfa.max_enrolled_factors", Setting("GOTRUE_MFA_MAX_ENROLLED_FACTORS")),
    ("auth.mfa.totp.enroll_enabled", Flag("GOTRUE_MFA_TOTP_ENROLL_ENABLED")),
    ("auth.mfa.totp.verify_enabled", Flag("GOTRUE_MFA_TOTP_VERIFY_ENABLED")),
    ("auth.mfa.phone.enroll_enabled", Flag("GOTRUE_MFA_PHONE_ENROLL_ENABLED")),
    ("auth.mfa.phone.verify_enabled", Flag("GOTRUE_MFA_PHONE_VERIFY_ENABLED")),
    ("auth.mfa.phone.otp_length", Setting("GOTRUE_MFA_PHONE_OTP_LENGTH")),
    ("auth.mfa.phone.template", Setting("GOTRUE_MFA_PHONE_TEMPLATE")),
    ("auth.mfa.phone.max_frequency", Setting("GOTRUE_MFA_PHONE_MAX_FREQUENCY")),
    ("auth.mfa.web_authn.enroll_enabled", Flag("GOTRUE_MFA_WEB_AUTHN_ENROLL_ENABLED")),
    ("auth.mfa.web_authn.verify_enabled", Flag("GOTRUE_MFA_WEB_AUTHN_VERIFY_ENABLED")),
    ("auth.passkey.enabled", Flag("GOTRUE_PASSKEY_ENABLED")),
    ("auth.webauthn.rp_id", Setting("GOTRUE_WEBAUTHN_RP_ID")),
    ("auth.webauthn.rp_display_name", Setting("GOTRUE_WEBAUTHN_RP_DISPLAY_NAME")),
    ("auth.webauthn.rp_origins", Read),
    ("auth.hook.*.enabled", Read),
    ("auth.hook.*.uri", Read),
    ("auth.hook.*.secrets", Read),
    ("auth.external.*.enabled", Read),
    ("auth.external.*.client_id", Read),
    ("auth.external.*.secret", Read),
    ("auth.external.*.url", Read),
    ("auth.external.*.redirect_uri", Read),
    ("auth.external.*.skip_nonce_check", Read),
    ("auth.external.*.email_optional", Read),
    ("auth.web3.solana.enabled", Flag("GOTRUE_EXTERNAL_WEB3_SOLANA_ENABLED")),
    ("auth.web3.ethereum.enabled", Flag("GOTRUE_EXTERNAL_WEB3_ETHEREUM_ENABLED")),
    ("auth.oauth_server.enabled", Flag("GOTRUE_OAUTH_SERVER_ENABLED")),
    ("auth.oauth_server.authorization_url_path", Setting("GOTRUE_OAUTH_SERVER_AUTHORIZATION_PATH")),
    ("auth.oauth_server.allow_dynamic_registration", Flag("GOTRUE_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION")),
    ("auth.third_party.firebase.enabled", Read),
    ("auth.third_party.firebase.project_id", Read),
    ("auth.third_party.auth0.enabled", Read),
    ("auth.third_party.auth0.tenant", Read),
    ("auth.third_party.auth0.tenant_region", Read),
    ("auth.third_party.aws_cognito.enabled", Read),
    ("auth.third_party.aws_cognito.user_pool_id", Read),
    ("auth.third_party.aws_cognito.user_pool_region", Read),
    ("auth.third_party.clerk.enabled", Read),
    ("auth.third_party.clerk.domain", Read),
    ("auth.third_party.workos.enabled", Read),
    ("auth.third_party.workos.issuer_url", Read),
    ("edge_runtime.enabled", Read),
    ("edge_runtime.policy", Accepted),
    ("edge_runtime.inspector_port", Read),
    ("edge_runtime.deno_version", Accepted),
    ("edge_runtime.secrets.*", Read),
    ("functions.*.enabled", Read),
    ("functions.*.verify_jwt", Read),
    ("functions.*.import_map", Read),
    ("functions.*.entrypoint", Read),
    ("functions.*.static_files", Read),
    ("experimental.pgdelta.enabled", Read),
    ("experimental.pgdelta.declarative_schema_path", Read),
    ("experimental.*", Accepted),
    ("experimental.*.*", Accepted),
    ("remotes.*", Accepted),
];

/// The CLI's defaults for keys that are passed on unchanged. They apply to a project even where the server's own defaults differ.
pub const DEFAULTS: &[(&str, &str)] = &[
    ("api.max_rows", "1000"),
    ("local_smtp.admin_email", "admin@email.com"),
    ("local_smtp.sender_name", "Admin"),
    ("auth.jwt_expiry", "3600"),
    ("auth.enable_refresh_token_rotation", "true"),
    ("auth.refresh_token_reuse_interval", "10"),
    ("auth.enable_signup", "true"),
    ("auth.enable_anonymous_sign_ins", "false"),
    ("auth.enable_manual_linking", "false"),
    ("auth.minimum_password_length", "6"),
    ("auth.email.enable_signup", "true"),
    ("auth.email.double_confirm_changes", "true"),
    ("auth.email.enable_confirmations", "false"),
    ("auth.email.secure_password_change", "false"),
    ("auth.email.max_frequency", "1s"),
    ("auth.email.otp_length", "6"),
    ("auth.email.otp_expiry", "3600"),
    ("auth.sms.enable_signup", "false"),
    ("auth.sms.enable_confirmations", "false"),
    ("auth.sms.max_frequency", "5s"),
    ("auth.mfa.max_enrolled_factors", "10"),
    ("auth.mfa.totp.enroll_enabled", "false"),
    ("auth.mfa.totp.verify_enabled", "false"),
    ("auth.mfa.phone.enroll_enabled", "false"),
    ("auth.mfa.phone.verify_enabled", "false"),
    ("auth.oauth_server.authorization_url_path", "/oauth/consent"),
];

/// How the key at `path` is used.
pub fn use_of(path: &str) -> Option<Use> {
    KEYS.iter().find(|(pattern, _)| matches(pattern, path)).map(|(_, found)| *found)
}

fn matches(pattern: &str, path: &str) -> bool {
    // A star stands for exactly one part, so a quoted name with dots (`functions."a.b".enabled`) matches nothing.
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), path.split('.').collect());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(wanted, found)| *wanted == "*" || wanted == found)
}

/// The key that an environment variable sets: `AUTH_SITE_URL` is `auth.site_url`.
pub fn path_of_variable(name: &str) -> Option<&'static str> {
    KEYS.iter()
        .map(|(path, _)| *path)
        .filter(|path| !path.contains('*'))
        .find(|path| path.len() == name.len() && path.replace('.', "_").eq_ignore_ascii_case(name))
}

/// The known keys of a section of the file, such as `auth.external.github`, whose name a star stands for. Other sections have
/// only keys that [`path_of_variable`] finds.
pub fn keys_of_section(section: &str) -> impl Iterator<Item = String> {
    KEYS.iter().filter_map(move |(pattern, _)| {
        let (above, key) = pattern.rsplit_once('.')?;
        (key != "*" && above.contains('*') && matches(above, section)).then(|| format!("{section}.{key}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_setting_has_a_known_key() {
        for (path, _) in DEFAULTS {
            assert!(matches!(use_of(path), Some(Setting(_) | Flag(_) | NotFlag(_))), "{path}");
        }
    }

    #[test]
    fn variables_are_mapped_to_keys() {
        assert_eq!(path_of_variable("AUTH_SITE_URL"), Some("auth.site_url"));
        assert_eq!(path_of_variable("URL"), None);
    }
}
