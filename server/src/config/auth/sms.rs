//! Text messages: `GOTRUE_SMS_*`.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::values::{frequency, otp_length, seconds_unless_zero};
use crate::config::{Reader, Secret};

#[derive(Clone, Debug)]
pub struct SmsConfig {
    pub autoconfirm: bool,
    pub otp_exp: Duration,
    pub otp_length: usize,
    pub max_frequency: Duration,
    /// `GOTRUE_SMS_PROVIDER`: twilio, twilio_verify or our own inbox. messagebird, textlocal and vonage are
    /// not supported.
    pub provider: String,
    /// `GOTRUE_SMS_TEMPLATE`, default `Your code is {{ .Code }}`.
    pub template: String,
    /// `GOTRUE_SMS_TEST_OTP` and `…_VALID_UNTIL`.
    pub test_otp: BTreeMap<String, String>,
    pub test_otp_valid_until: Option<DateTime<Utc>>,
    pub twilio: TwilioConfig,
    pub twilio_verify: TwilioConfig,
}

impl SmsConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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
            twilio: TwilioConfig {
                account_sid: reader.text_or(&["GOTRUE_SMS_TWILIO_ACCOUNT_SID"], ""),
                auth_token: reader.secret(&["GOTRUE_SMS_TWILIO_AUTH_TOKEN"]).unwrap_or_else(|| Secret::new("")),
                message_service_sid: reader.text_or(&["GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID"], ""),
                content_sid: reader.text_or(&["GOTRUE_SMS_TWILIO_CONTENT_SID"], ""),
                base_url: reader.text_or(&["FERROBASE_SMS_TWILIO_URL"], "https://api.twilio.com"),
            },
            twilio_verify: TwilioConfig {
                account_sid: reader.text_or(&["GOTRUE_SMS_TWILIO_VERIFY_ACCOUNT_SID"], ""),
                auth_token: reader.secret(&["GOTRUE_SMS_TWILIO_VERIFY_AUTH_TOKEN"]).unwrap_or_else(|| Secret::new("")),
                message_service_sid: reader.text_or(&["GOTRUE_SMS_TWILIO_VERIFY_MESSAGE_SERVICE_SID"], ""),
                content_sid: String::new(),
                base_url: reader.text_or(&["FERROBASE_SMS_TWILIO_VERIFY_URL"], "https://verify.twilio.com"),
            },
        }
    }

    /// The fixed code of a test number, as long as such codes are valid.
    pub fn test_otp(&self, phone: &str, now: DateTime<Utc>) -> Option<&str> {
        if self.test_otp_valid_until.is_some_and(|until| now >= until) {
            return None;
        }
        self.test_otp.get(phone).map(String::as_str)
    }
}

/// An account of one of Twilio's APIs: `GOTRUE_SMS_TWILIO_*` for Messages, `GOTRUE_SMS_TWILIO_VERIFY_*` for Verify.
#[derive(Clone, Debug)]
pub struct TwilioConfig {
    pub account_sid: String,
    pub auth_token: Secret,
    /// The sender: a number or service of Messages, or a service of Verify.
    pub message_service_sid: String,
    /// A template of Messages for WhatsApp, or empty.
    pub content_sid: String,
    /// `FERROBASE_SMS_TWILIO_URL`, default `https://api.twilio.com`, and `FERROBASE_SMS_TWILIO_VERIFY_URL`, default
    /// `https://verify.twilio.com`: any service with Twilio's API.
    pub base_url: String,
}

impl TwilioConfig {
    /// Whether all required settings are present.
    pub fn is_complete(&self) -> bool {
        ![&self.account_sid, self.auth_token.reveal(), &self.message_service_sid].iter().any(|text| text.is_empty())
    }
}
