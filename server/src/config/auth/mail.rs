//! Mails, their templates, and the mail server: `GOTRUE_MAILER_*`, `GOTRUE_SMTP_*`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::values::{duration, frequency, otp_length, seconds_unless_zero};
use crate::config::{Reader, Secret};

/// The mails with their own template and subject, by the name of their setting.
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

impl MailerConfig {
    pub(super) fn read(reader: &mut Reader<'_>, full: bool) -> Self {
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

impl SmtpConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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
