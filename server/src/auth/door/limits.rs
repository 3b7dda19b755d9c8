//! Rate limits: per client address for routes, per user and purpose for messages, and global for all
//! messages. Reference: supabase/auth `internal/api/apilimiter/`, `internal/ratelimit/`,
//! `internal/api/middleware.go`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use crate::auth::door::address::check_authorized;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::store::Db;
use crate::config::{AuthMode, RateLimits};
use crate::db::{DbError, Pool};

/// The buckets of routes. Each named route counts separately.
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

/// A message requested for an address or number, which may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A recovery or a sign-in link.
    Recovery,
    Confirmation,
    EmailChange,
    PhoneChange,
}

/// One client's request about one address or number. The wait until the next request does not depend on whether the
/// address is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    what: Ask,
    about: String,
    client: String,
}

impl Asked {
    pub fn new(request: &Request, what: Ask, about: &str) -> Self {
        Self { what, about: about.to_owned(), client: client(request) }
    }

    /// The same client and address, for another message.
    pub fn instead(&self, what: Ask) -> Self {
        Self { what, ..self.clone() }
    }
}

/// The limits of one server.
pub struct Limits {
    config: RateLimits,
    /// Until when clients must wait after a request.
    asked: Mutex<HashMap<Asked, Instant>>,
    by_peer: bool,
    buckets: Mutex<HashMap<(Bucket, String), Tokens>>,
    /// The database in which all instances count messages.
    counter: Pool,
}

/// What is counted for everybody together.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Email,
    Sms,
}

/// A token bucket: its number of tokens at an instant.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    left: f64,
    at: Instant,
}

impl Limits {
    /// `pool` reaches the database that all instances share.
    pub fn new(config: &RateLimits, mode: AuthMode, pool: &Pool) -> Result<Self, DbError> {
        Ok(Self {
            config: config.clone(),
            by_peer: mode == AuthMode::Full && config.header.is_none(),
            buckets: Mutex::default(),
            asked: Mutex::default(),
            counter: pool.beside(1, None)?,
        })
    }

    /// Forgets past requests.
    pub fn forget(&self) {
        self.asked.lock().clear();
        self.buckets.lock().clear();
    }

    /// Tokens per second, and the burst size.
    fn pace(&self, bucket: Bucket) -> (f64, f64) {
        let config = &self.config;
        // A drop-in's burst size is fixed. The full server counts addresses, which many clients may share, so its burst
        // size follows the setting.
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

    /// Takes a token for the request's client, and refuses if none is left. The configured header
    /// identifies the client. Without one, a drop-in does not count and the full server counts
    /// addresses.
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
        if self.take(bucket, client_of(key), Instant::now()) {
            return Ok(());
        }
        Err(AuthError::too_many_requests(Code::OverRequestRateLimit, "Request rate limit reached"))
    }

    fn take(&self, bucket: Bucket, key: String, now: Instant) -> bool {
        let (pace, burst) = self.pace(bucket);
        let mut buckets = self.buckets.lock();
        if buckets.len() > 100_000 {
            // Full buckets can be dropped: a client without one starts with a full one.
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

    /// Refuses a client that must wait after its last request.
    pub fn check_asked(&self, asked: &Asked, code: Code) -> AuthResult<()> {
        match self.asked.lock().get(asked).map(|ready| ready.saturating_duration_since(Instant::now())) {
            Some(left) if !left.is_zero() => Err(too_soon(left.as_secs(), code)),
            _ => Ok(()),
        }
    }

    /// Whether the client asked a moment ago.
    pub fn has_asked(&self, asked: &Asked) -> bool {
        self.asked.lock().get(asked).is_some_and(|ready| *ready > Instant::now())
    }

    /// Notes that the client was answered and must now wait for `pause`.
    pub fn note_asked(&self, asked: Asked, pause: Duration) {
        let now = Instant::now();
        let mut all = self.asked.lock();
        if all.len() >= 100_000 {
            all.retain(|_, ready| *ready > now);
        }
        if all.len() < 100_000
            && let Some(ready) = now.checked_add(pause)
        {
            all.insert(asked, ready);
        }
    }

    /// Counts and refuses like a mail to `email`, for an unknown address. Otherwise the limit would reveal who has an
    /// account.
    pub async fn count_unsent(&self, request: &Request, email: &str) -> AuthResult<()> {
        let config = &request.auth.config;
        check_authorized(email, &config.external.email_authorized_addresses)?;
        if self.emails_are_off() || (!config.mailer.autoconfirm && !self.allow_email().await?) {
            return Err(AuthError::too_many_requests(Code::OverEmailSendRateLimit, "email rate limit exceeded"));
        }
        Ok(())
    }

    /// Counts a mail and returns whether it may be sent.
    pub async fn allow_email(&self) -> AuthResult<bool> {
        self.allow(Kind::Email).await
    }

    /// Whether mail is switched off altogether.
    pub fn emails_are_off(&self) -> bool {
        self.config.email_sent.events <= 0.0
    }

    /// Counts a text message and returns whether it may be sent.
    pub async fn allow_sms(&self) -> AuthResult<bool> {
        self.allow(Kind::Sms).await
    }

    /// Counts in the database, immediately and for all instances. A later failure of the request does not undo
    /// the count, and no request waits for another's transaction.
    async fn allow(&self, kind: Kind) -> AuthResult<bool> {
        let (kind, rate) = match kind {
            Kind::Email => ("email", self.config.email_sent),
            Kind::Sms => ("sms", self.config.sms_sent),
        };
        let events = rate.events.floor();
        if events < 1.0 {
            return Ok(false);
        }
        let seconds = rate.over.as_secs_f64().max(0.001);
        let sql = if rate.burst { BURST } else { WINDOW };
        let db = Db::acquire(&self.counter).await?;
        Ok(db.query_opt(sql, &[&kind, &events, &seconds]).await?.is_some())
    }
}

/// Counts one in fixed windows of $3 seconds with $2 in each. Returns a row if there was room.
const WINDOW: &str = "insert into auth.message_counts as c (kind, since, counted) values ($1, now(), 1) \
    on conflict (kind) do update set \
    since = c.since + floor(extract(epoch from now() - c.since) / $3::float8) * make_interval(secs => $3::float8), \
    counted = case when extract(epoch from now() - c.since) >= $3::float8 then 1 else c.counted + 1 end \
    where extract(epoch from now() - c.since) >= $3::float8 or c.counted + 1 <= $2::float8 returning 1";

/// Counts one in a bucket of $2 that gains one every $3 seconds. Returns a row if there was room.
const BURST: &str = "insert into auth.message_counts as c (kind, since, counted) values ($1, now(), 1) \
    on conflict (kind) do update set since = now(), \
    counted = greatest(c.counted - extract(epoch from now() - c.since) / $3::float8, 0) + 1 \
    where greatest(c.counted - extract(epoch from now() - c.since) / $3::float8, 0) + 1 <= $2::float8 returning 1";

/// The request's client for limits: an IPv4 address or IPv6 network; `""` if unknown.
pub fn client(request: &Request) -> String {
    client_of(request.client_ip_text())
}

/// The owner of a bucket: for an IPv6 address its /64 network, which is what one client gets.
fn client_of(key: String) -> String {
    match key.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        Ok(IpAddr::V4(address)) => address.to_string(),
        Err(_) => key,
    }
}

/// Refuses a message that follows the last of its purpose too soon.
pub fn check_frequency(sent_at: Option<DateTime<Utc>>, pause: Duration, code: Code) -> AuthResult<()> {
    match left(sent_at, pause) {
        Some(left) => Err(too_soon(left.as_secs(), code)),
        None => Ok(()),
    }
}

/// Whether a message would follow the last of its purpose too soon.
pub fn is_too_soon(sent_at: Option<DateTime<Utc>>, pause: Duration) -> bool {
    left(sent_at, pause).is_some()
}

fn left(sent_at: Option<DateTime<Utc>>, pause: Duration) -> Option<Duration> {
    let ready = sent_at? + chrono::Duration::from_std(pause).ok()?;
    (ready - Utc::now()).to_std().ok().filter(|left| !left.is_zero())
}

fn too_soon(seconds: u64, code: Code) -> AuthError {
    let message = format!("For security purposes, you can only request this after {seconds} seconds.");
    AuthError::too_many_requests(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_64_bits() {
        let same = ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:0DB8:0001:0002:0:0:0:9"];
        for address in same {
            assert_eq!(client_of(address.to_owned()), "2001:db8:1:2::/64");
        }
        assert_eq!(client_of("2001:db8:1:3::1".to_owned()), "2001:db8:1:3::/64");
        assert_eq!(client_of("::ffff:192.0.2.7".to_owned()), "192.0.2.7");
        assert_eq!(client_of("192.0.2.7".to_owned()), "192.0.2.7");
        assert_eq!(client_of("a name of the edge".to_owned()), "a name of the edge");
    }
}
