//! Rate limits: per client address for routes, per user and purpose for messages, and global for all
//! messages. Reference: supabase/auth `internal/api/apilimiter/`, `internal/ratelimit/`,
//! `internal/api/middleware.go`.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::auth::door::address::check_authorized;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user;
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
    /// A sign-in at a provider. Upstream does not limit it, although each stores a row, nor the next.
    Authorize,
    /// A request of an OAuth client.
    OauthAuthorize,
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
    buckets: Mutex<Buckets>,
    sending: Sending,
    /// The database in which all instances count messages.
    counter: Pool,
}

/// Messages that requests are sending: user and column of the time of sending, and until when the others wait at most.
type Sending = Arc<Mutex<HashMap<(Uuid, &'static str), Instant>>>;

/// One of them, until the request ends.
struct Turn {
    all: Sending,
    what: (Uuid, &'static str),
    until: Instant,
}

impl Turn {
    /// `None` while another request sends the same to the same user.
    fn take(all: &Sending, what: (Uuid, &'static str), longest: Duration) -> Option<Self> {
        let now = Instant::now();
        let until = now.checked_add(longest)?;
        let mut others = all.lock();
        if others.get(&what).is_some_and(|until| *until > now) {
            return None;
        }
        others.insert(what, until);
        Some(Self { all: Arc::clone(all), what, until })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if all.get(&self.what) == Some(&self.until) {
            all.remove(&self.what);
        }
    }
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

impl Tokens {
    /// How many there are at `now`, at a pace and up to a burst size.
    fn at(&self, now: Instant, (pace, burst): (f64, f64)) -> f64 {
        (self.left + now.saturating_duration_since(self.at).as_secs_f64() * pace).min(burst)
    }
}

/// The token buckets of clients. A client without one has a full one.
#[derive(Default)]
struct Buckets(HashMap<(Bucket, String), Tokens>);

impl Buckets {
    /// Takes a token, if there is one. `pace` is known for every bucket.
    fn take(&mut self, key: (Bucket, String), now: Instant, pace: impl Fn(Bucket) -> (f64, f64)) -> bool {
        let limit = pace(key.0);
        if !self.0.contains_key(&key) {
            // The fullest ones are dropped, so that many new clients do not give those that were refused a full one.
            make_room(&mut self.0, |(bucket, _), tokens| {
                let limit = pace(*bucket);
                tokens.at(now, limit) / limit.1.max(1.0)
            });
        }
        let tokens = self.0.entry(key).or_insert(Tokens { left: limit.1, at: now });
        *tokens = Tokens { left: tokens.at(now, limit), at: now };
        if tokens.left < 1.0 {
            return false;
        }
        tokens.left -= 1.0;
        true
    }
}

/// How many clients are remembered.
const REMEMBERED: usize = 100_000;

/// Makes room in a map that is full: drops the half with the highest scores, so that the next entries need no search.
fn make_room<K: Eq + Hash, V>(map: &mut HashMap<K, V>, score: impl Fn(&K, &V) -> f64) {
    if map.len() < REMEMBERED {
        return;
    }
    let mut scores: Vec<f64> = map.iter().map(|(key, value)| score(key, value)).collect();
    let middle = scores.len() / 2;
    let (_, median, _) = scores.select_nth_unstable_by(middle, f64::total_cmp);
    let median = *median;
    map.retain(|key, value| score(key, value) < median);
}

impl Limits {
    /// `pool` reaches the database that all instances share.
    pub fn new(config: &RateLimits, mode: AuthMode, pool: &Pool) -> Result<Self, DbError> {
        Ok(Self {
            config: config.clone(),
            by_peer: mode == AuthMode::Full && config.header.is_none(),
            buckets: Mutex::default(),
            asked: Mutex::default(),
            sending: Sending::default(),
            counter: pool.beside(1, None)?,
        })
    }

    /// Forgets past requests.
    pub fn forget(&self) {
        self.asked.lock().clear();
        self.buckets.lock().0.clear();
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
            // As many as tokens, and always as a burst: a browser comes here once for each sign-in.
            Bucket::Authorize | Bucket::OauthAuthorize => {
                (config.token_refresh / 300.0, config.token_refresh.max(30.0))
            }
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
        self.buckets.lock().take((bucket, key), now, |bucket| self.pace(bucket))
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
        // Those that wait no longer, or not for long, are dropped.
        make_room(&mut all, |_, ready| -ready.saturating_duration_since(now).as_secs_f64());
        if let Some(ready) = now.checked_add(pause) {
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

/// Counts one in fixed windows of $3 seconds with $2 in each. Returns a row if there was room. The window may have begun after this
/// transaction did, if it waited for the row; then it stays as it is.
const WINDOW: &str = "insert into auth.message_counts as c (kind, since, counted) values ($1, now(), 1) \
    on conflict (kind) do update set \
    since = c.since + greatest(floor(extract(epoch from now() - c.since) / $3::float8), 0) * make_interval(secs => $3::float8), \
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

/// How long a message to the user has to wait after the last of its purpose; `None` if it may be sent now. In a transaction,
/// whose end makes the message count.
///
/// The user's row is locked and read again, so that of several requests at once only one sends. While a message is sent in
/// the middle of a transaction no row is locked, so the others wait for the request's turn to end.
pub async fn wait_for(
    request: &Request,
    db: &Db,
    user_id: Uuid,
    purpose: Purpose,
    pause: Duration,
) -> AuthResult<Option<Duration>> {
    let wait = left(user::lock_sent_at(db, user_id, purpose).await?, pause);
    if wait.is_some() {
        return Ok(wait);
    }
    let (what, longest) = ((user_id, purpose.sent_at()), request.auth.config.max_request_duration);
    let take = || Turn::take(&request.auth.limits.sending, what, longest).map(Arc::new);
    let turn: Option<Arc<Turn>> = request.once(&format!("turn {} {user_id}", purpose.sent_at()), take);
    Ok(if turn.is_some() { None } else { Some(pause) })
}

/// The same, with a refusal of a message that would follow too soon.
pub async fn require_pause(
    request: &Request,
    db: &Db,
    user_id: Uuid,
    purpose: Purpose,
    pause: Duration,
    code: Code,
) -> AuthResult<()> {
    match wait_for(request, db, user_id, purpose, pause).await? {
        Some(left) => Err(too_soon(left.as_secs(), code)),
        None => Ok(()),
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

/// 429: the caller has to wait for `seconds`.
pub fn too_soon(seconds: u64, code: Code) -> AuthError {
    let message = format!("For security purposes, you can only request this after {seconds} seconds.");
    AuthError::too_many_requests(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_has_the_turn_to_send() {
        let (all, what, longest) = (Sending::default(), (Uuid::nil(), "recovery_sent_at"), Duration::from_secs(60));
        let first = Turn::take(&all, what, longest).expect("a turn");
        assert!(Turn::take(&all, what, longest).is_none());
        assert!(Turn::take(&all, (Uuid::nil(), "confirmation_sent_at"), longest).is_some());
        drop(first);
        // A turn that was never given back ends, and does not end the next one when it is.
        let lost = Turn::take(&all, what, Duration::ZERO).expect("a turn");
        let next = Turn::take(&all, what, longest).expect("a turn");
        drop(lost);
        assert!(Turn::take(&all, what, longest).is_none());
        drop(next);
        assert!(all.lock().is_empty());
    }

    #[test]
    fn the_memory_of_clients_is_bounded_and_keeps_those_that_were_refused() {
        let (mut buckets, now) = (Buckets::default(), Instant::now());
        let mut take = |client: &str| {
            let taken = buckets.take((Bucket::Token, client.to_owned()), now, |_| (0.1, 30.0));
            (taken, buckets.0.len())
        };
        assert_eq!((0..31).filter(|_| take("192.0.2.1").0).count(), 30);
        let (mut before, mut searches) = (1, 0);
        for number in 0..200_000 {
            let (taken, len) = take(&number.to_string());
            assert!(taken && len <= REMEMBERED, "{number}: {len}");
            searches += usize::from(len < before);
            before = len;
        }
        assert!((1..=4).contains(&searches), "{searches}");
        assert!(!take("192.0.2.1").0, "it was refused before");
        let later = now + Duration::from_secs(10);
        assert!(buckets.take((Bucket::Token, "192.0.2.1".to_owned()), later, |_| (0.1, 30.0)));
    }

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
