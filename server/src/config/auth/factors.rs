//! Second factors and passkeys: `GOTRUE_MFA_*`, `GOTRUE_WEBAUTHN_*`, `GOTRUE_PASSKEY_*`.

use std::time::Duration;

use super::values::{duration, frequency, otp_length};
use crate::config::Reader;

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

impl MfaConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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

impl WebAuthnConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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
