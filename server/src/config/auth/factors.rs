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
    pub recovery_codes: RecoveryCodesConfig,
}

/// `GOTRUE_MFA_RECOVERY_CODES_…`.
#[derive(Clone, Debug)]
pub struct RecoveryCodesConfig {
    /// `…ENROLL_ENABLED`, default false.
    pub enroll: bool,
    /// `…VERIFY_ENABLED`, default false.
    pub verify: bool,
    /// `…COUNT`: how many codes a user gets, 4 to 16, default 10.
    pub count: usize,
    /// `…CODE_LENGTH`: characters of a code, 13 to 32, default 16.
    pub code_length: usize,
    /// `…MAX_VERIFY_ATTEMPTS`: wrong codes until a user's codes are locked, 3 to 15, default 5.
    pub max_attempts: i32,
    /// `…LOCKOUT_DURATION`: how long they are locked, 1m to 24h, default 15m.
    pub lockout: Duration,
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
            recovery_codes: RecoveryCodesConfig::read(reader),
        }
    }
}

impl RecoveryCodesConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let config = Self {
            enroll: reader.flag(&["GOTRUE_MFA_RECOVERY_CODES_ENROLL_ENABLED"], false),
            verify: reader.flag(&["GOTRUE_MFA_RECOVERY_CODES_VERIFY_ENABLED"], false),
            count: reader.parse_or(&["GOTRUE_MFA_RECOVERY_CODES_COUNT"], "a number", 10),
            code_length: reader.parse_or(&["GOTRUE_MFA_RECOVERY_CODES_CODE_LENGTH"], "a number", 16),
            max_attempts: reader.parse_or(&["GOTRUE_MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS"], "a number", 5),
            lockout: duration(reader, &["GOTRUE_MFA_RECOVERY_CODES_LOCKOUT_DURATION"], minutes(15)),
        };
        if config.enroll || config.verify {
            for (is_valid, sentence) in [
                ((4..=16).contains(&config.count), "COUNT must be between 4 and 16"),
                ((13..=32).contains(&config.code_length), "CODE_LENGTH must be between 13 and 32"),
                ((3..=15).contains(&config.max_attempts), "MAX_VERIFY_ATTEMPTS must be between 3 and 15"),
                (
                    (minutes(1)..=minutes(24 * 60)).contains(&config.lockout),
                    "LOCKOUT_DURATION must be between 1m and 24h",
                ),
            ] {
                if !is_valid {
                    reader.problem(format!("GOTRUE_MFA_RECOVERY_CODES_{sentence}"));
                }
            }
        }
        config
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
