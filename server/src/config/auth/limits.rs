//! Rate limits: `GOTRUE_RATE_LIMIT_*` and others.

use std::time::Duration;

use crate::config::{Reader, parse_go_duration};

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
    /// Per 5 minutes unless stated otherwise.
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

impl RateLimits {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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
