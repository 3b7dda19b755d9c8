//! How often: per client address on routes, per user and purpose for messages, globally for all messages.
//! Reference: supabase/auth `internal/api/apilimiter/`, `internal/ratelimit/`, `internal/api/middleware.go`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use super::error::{AuthError, AuthResult, Code};
use super::request::Request;
use crate::config::{AuthMode, Rate, RateLimits};

/// The buckets of routes; each route that is named counts on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    Signup,
    AnonymousSignup,
    Recover,
    Resend,
    MagicLink,
    Otp,
    UpdateUser,
    Token,
    Verify,
    Web3,
    FactorChallenge,
    FactorVerify,
    Passkey,
    #[allow(dead_code, reason = "its limit is a setting of the reference; SSO answers that it is disabled")]
    Sso,
    #[allow(dead_code, reason = "its limit is a setting of the reference; SAML answers that it is disabled")]
    SamlAssertion,
    OauthClientRegister,
}

/// The limits of one server.
pub struct Limits {
    config: RateLimits,
    by_peer: bool,
    buckets: Mutex<HashMap<(Bucket, String), Tokens>>,
    emails: Mutex<Window>,
    sms: Mutex<Window>,
}

/// A token bucket: so many tokens at an instant.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    left: f64,
    at: Instant,
}

/// Counts events: within fixed windows, or as a bucket that refills.
#[derive(Debug)]
struct Window {
    rate: Rate,
    start: Instant,
    count: f64,
}

impl Limits {
    pub fn new(config: &RateLimits, mode: AuthMode) -> Self {
        let window = |rate: Rate| Mutex::new(Window { rate, start: Instant::now(), count: 0.0 });
        Self {
            config: config.clone(),
            by_peer: mode == AuthMode::Full && config.header.is_none(),
            buckets: Mutex::default(),
            emails: window(config.email_sent),
            sms: window(config.sms_sent),
        }
    }

    /// Tokens per second and how many at once.
    fn pace(&self, bucket: Bucket) -> (f64, f64) {
        let config = &self.config;
        // A drop-in's bursts are fixed; the full server's, counting addresses that many may share, follow the setting.
        let burst = |events: f64| if self.by_peer { events.max(30.0) } else { 30.0 };
        let per_five_minutes = |events: f64| (events / 300.0, burst(events));
        match bucket {
            Bucket::AnonymousSignup => (config.anonymous_users / 3600.0, config.anonymous_users.trunc()),
            Bucket::Signup
            | Bucket::Recover
            | Bucket::Resend
            | Bucket::MagicLink
            | Bucket::Otp
            | Bucket::UpdateUser => per_five_minutes(config.otp),
            Bucket::Token => per_five_minutes(config.token_refresh),
            Bucket::Verify => per_five_minutes(config.verify),
            Bucket::Web3 => per_five_minutes(config.web3),
            Bucket::FactorChallenge | Bucket::FactorVerify => (config.mfa / 60.0, burst(config.mfa)),
            Bucket::Passkey => per_five_minutes(config.passkey),
            Bucket::Sso => per_five_minutes(config.sso),
            Bucket::SamlAssertion => per_five_minutes(config.saml_assertion),
            Bucket::OauthClientRegister => per_five_minutes(config.oauth_client_register),
        }
    }

    /// Takes a token for the request's client; refuses when none is left. Who the client is says the
    /// configured header; without one a drop-in does not count, and the full server counts addresses.
    pub fn check(&self, bucket: Bucket, request: &Request) -> AuthResult<()> {
        let key = if request.auth.config.security.sb_forwarded_for && request.sb_forwarded_for().is_some() {
            request.sb_forwarded_for().map(|ip| ip.to_string())
        } else if let Some(header) = &self.config.header {
            request.header(header).and_then(|value| value.split(',').next()).map(|first| first.trim().to_owned())
        } else if self.by_peer {
            Some(request.client_ip_text())
        } else {
            None
        };
        let Some(key) = key.filter(|key| !key.is_empty()) else { return Ok(()) };
        if self.take(bucket, key, Instant::now()) {
            return Ok(());
        }
        Err(AuthError::too_many_requests(Code::OverRequestRateLimit, "Request rate limit reached"))
    }

    fn take(&self, bucket: Bucket, key: String, now: Instant) -> bool {
        let (pace, burst) = self.pace(bucket);
        let mut buckets = self.buckets.lock();
        if buckets.len() > 100_000 {
            // Full buckets say nothing: a client without one starts with a full one.
            buckets.retain(|(bucket, _), tokens| {
                let (pace, burst) = self.pace(*bucket);
                tokens.left + now.duration_since(tokens.at).as_secs_f64() * pace < burst
            });
        }
        let tokens = buckets.entry((bucket, key)).or_insert(Tokens { left: burst, at: now });
        tokens.left = (tokens.left + now.duration_since(tokens.at).as_secs_f64() * pace).min(burst);
        tokens.at = now;
        if tokens.left < 1.0 {
            return false;
        }
        tokens.left -= 1.0;
        true
    }

    /// Counts a mail; says whether it may be sent.
    pub fn allow_email(&self) -> bool {
        self.emails.lock().allow(Instant::now())
    }

    /// Whether mail is switched off altogether.
    pub fn emails_are_off(&self) -> bool {
        self.config.email_sent.events <= 0.0
    }

    /// Counts a text message; says whether it may be sent.
    pub fn allow_sms(&self) -> bool {
        self.sms.lock().allow(Instant::now())
    }
}

impl Window {
    fn allow(&mut self, now: Instant) -> bool {
        let over = self.rate.over.max(Duration::from_millis(1));
        if self.rate.burst {
            // `count` is what was taken and not refilled yet.
            let refilled = now.duration_since(self.start).as_secs_f64() / over.as_secs_f64();
            self.count = (self.count - refilled).max(0.0);
            self.start = now;
        } else if now.duration_since(self.start) >= over {
            let windows = now.duration_since(self.start).as_nanos() / over.as_nanos();
            self.start += over * u32::try_from(windows).unwrap_or(u32::MAX);
            self.count = 0.0;
        }
        let allowed = self.count + 1.0 <= self.rate.events.floor();
        if allowed {
            self.count += 1.0;
        }
        allowed
    }
}

/// Refuses a message that follows the last of its purpose too soon.
pub fn check_frequency(sent_at: Option<DateTime<Utc>>, pause: Duration, code: Code) -> AuthResult<()> {
    let Some(ready) = sent_at.zip(chrono::Duration::from_std(pause).ok()).map(|(at, pause)| at + pause) else {
        return Ok(());
    };
    let left = ready - Utc::now();
    if left <= chrono::Duration::zero() {
        return Ok(());
    }
    let message = format!("For security purposes, you can only request this after {} seconds.", left.num_seconds());
    Err(AuthError::too_many_requests(code, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_allows_its_events_and_starts_anew() {
        let rate = Rate { events: 2.0, over: Duration::from_secs(60), burst: false };
        let start = Instant::now();
        let mut window = Window { rate, start, count: 0.0 };
        assert!(window.allow(start) && window.allow(start) && !window.allow(start));
        assert!(!window.allow(start + Duration::from_secs(59)));
        assert!(window.allow(start + Duration::from_secs(61)));
    }

    #[test]
    fn a_burst_refills_one_by_one() {
        let rate = Rate { events: 2.0, over: Duration::from_secs(60), burst: true };
        let start = Instant::now();
        let mut window = Window { rate, start, count: 0.0 };
        assert!(window.allow(start) && window.allow(start) && !window.allow(start));
        assert!(window.allow(start + Duration::from_secs(60)));
        assert!(!window.allow(start + Duration::from_secs(61)));
    }

    #[test]
    fn zero_events_allow_nothing() {
        let rate = Rate { events: 0.0, over: Duration::from_secs(60), burst: false };
        assert!(!Window { rate, start: Instant::now(), count: 0.0 }.allow(Instant::now()));
    }
}
