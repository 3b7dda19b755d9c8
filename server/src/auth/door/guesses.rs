//! Slows down guessing without locking out the owner.
//!
//! Wrong passwords and second factors of an account delay its next tries, longer each time. Tries are processed one
//! after the other. A client on which the account has signed in has its own queue and does not wait behind strangers;
//! among strangers, those with the fewest failures go first. Wrong codes are counted per code and client: after too
//! many tries a code becomes invalid, while the link in its mail stays valid. The counts exist only in this process.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::auth::error::{AuthError, AuthResult, Code};
use crate::config::GuessesConfig;

/// The first delay; each further failure doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// One failure is forgotten after this time.
const FORGIVEN: Duration = Duration::from_secs(300);

/// How many tries of one account are checked at a time.
const AT_ONCE: usize = 8;

/// How many may wait for one account, and how long.
const WAITING: usize = 32;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(7);

/// How many accounts and clients are remembered.
const REMEMBERED: usize = 100_000;

/// All clients together may try this many times as many wrong codes within an hour as one client.
const TOGETHER: f64 = 10.0;

/// The guessed item, hashed with a random key of the process, so that attackers cannot choose collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target(u64);

#[derive(Default)]
struct Lane {
    failures: f64,
    /// When `failures` was last brought up to date.
    seen: Option<Instant>,
    /// No try before this time.
    next: Option<Instant>,
    running: usize,
    /// Failures per client: those with fewer go first.
    clients: HashMap<u64, u32>,
    waiting: Vec<(u32, u64)>,
    wake: Arc<Notify>,
}

impl Lane {
    fn forgive(&mut self, now: Instant) {
        let seen = self.seen.replace(now).unwrap_or(now);
        self.failures = (self.failures - now.duration_since(seen).as_secs_f64() / FORGIVEN.as_secs_f64()).max(0.0);
        if self.failures == 0.0 {
            self.clients.clear();
        }
    }

    fn delay(&self, config: &GuessesConfig) -> Duration {
        // A failure counts in full until it is forgotten.
        let beyond = self.failures.ceil() - f64::from(config.free_tries);
        if beyond < 0.0 {
            return Duration::ZERO;
        }
        FIRST_DELAY.mul_f64(beyond.min(16.0).exp2()).min(config.max_delay)
    }

    fn is_idle(&self) -> bool {
        self.failures == 0.0 && self.running == 0 && self.waiting.is_empty()
    }

    /// Takes a turn if one is free now.
    fn enter(&mut self, now: Instant, config: &GuessesConfig) -> bool {
        self.forgive(now);
        if self.running >= AT_ONCE || self.next.is_some_and(|next| next > now) {
            return false;
        }
        self.running += 1;
        self.next = Some(now + self.delay(config));
        true
    }
}

/// How often a code was tried.
struct Tries {
    by_client: HashMap<u64, u32>,
    seen: Instant,
}

/// The throttle of one server.
pub struct Guesses {
    config: GuessesConfig,
    hashes: RandomState,
    lanes: Mutex<HashMap<Target, Lane>>,
    /// Which clients have signed in to which account.
    known: Mutex<HashMap<u64, Instant>>,
    codes: Mutex<HashMap<Target, Tries>>,
    /// Wrong codes of an account, whichever code they were tried for.
    wrong: Mutex<HashMap<Target, (f64, Instant)>>,
}

/// A try in progress.
pub struct Try<'a> {
    guesses: &'a Guesses,
    /// `None` if nothing is counted.
    lane: Option<Target>,
    account: Target,
    client: u64,
}

/// A place in the queue, given up when dropped.
struct Place<'a> {
    guesses: &'a Guesses,
    lane: Target,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.guesses.lanes.lock().get_mut(&self.lane) {
            lane.waiting.retain(|(_, id)| *id != self.id);
        }
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        let Some(target) = self.lane else { return };
        let mut lanes = self.guesses.lanes.lock();
        if let Some(lane) = lanes.get_mut(&target) {
            lane.running = lane.running.saturating_sub(1);
            lane.wake.notify_waiters();
            if lane.is_idle() {
                lanes.remove(&target);
            }
        }
    }
}

impl Try<'_> {
    /// The try was wrong: the next ones wait longer.
    pub fn failed(self) {
        let Some(target) = self.lane else { return };
        let now = Instant::now();
        if let Some(lane) = self.guesses.lanes.lock().get_mut(&target) {
            lane.forgive(now);
            lane.failures += 1.0;
            if lane.clients.len() < 1000 || lane.clients.contains_key(&self.client) {
                *lane.clients.entry(self.client).or_insert(0) += 1;
            }
            lane.next = Some(now + lane.delay(&self.guesses.config));
        }
    }

    pub fn judged(self, right: bool) {
        if right { self.succeeded() } else { self.failed() }
    }

    /// The try was right: its client is now known to the account. Failures of others still count.
    pub fn succeeded(self) {
        if self.lane.is_none() {
            return;
        }
        let mut known = self.guesses.known.lock();
        if known.len() >= REMEMBERED {
            let oldest = Instant::now().checked_sub(Duration::from_secs(24 * 3600));
            known.retain(|_, seen| oldest.is_some_and(|oldest| *seen > oldest));
        }
        if known.len() < REMEMBERED {
            known.insert(self.guesses.hashes.hash_one((self.account, self.client)), Instant::now());
        }
    }
}

pub fn too_many() -> AuthError {
    AuthError::too_many_requests(Code::OverRequestRateLimit, "Request rate limit reached")
}

impl Guesses {
    pub fn new(config: &GuessesConfig) -> Self {
        Self {
            config: config.clone(),
            hashes: RandomState::new(),
            lanes: Mutex::default(),
            known: Mutex::default(),
            codes: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    pub fn target(&self, what: impl Hash) -> Target {
        Target(self.hashes.hash_one(what))
    }

    /// Waits for a turn to try `account`. `is_known`, which tells whether the account has signed in on this client, is
    /// called only if tries have to wait. Without wrong guesses this costs almost nothing.
    ///
    /// Errors: 429 `over_request_rate_limit` when too many wait, or too long.
    pub async fn begin(
        &self,
        account: Target,
        client: &str,
        is_known: impl AsyncFnOnce() -> AuthResult<bool>,
    ) -> AuthResult<Try<'_>> {
        let client = self.hashes.hash_one(client);
        if !self.config.enabled {
            return Ok(Try { guesses: self, lane: None, account, client });
        }
        if self.enter(account) {
            return Ok(Try { guesses: self, lane: Some(account), account, client });
        }
        let own = self.hashes.hash_one((account, client));
        let known = self.known.lock().contains_key(&own) || is_known().await?;
        let lane = if known { Target(own) } else { account };
        if !(known && self.enter(lane)) {
            self.wait(lane, client).await?;
        }
        Ok(Try { guesses: self, lane: Some(lane), account, client })
    }

    fn enter(&self, target: Target) -> bool {
        let now = Instant::now();
        let mut lanes = self.lanes.lock();
        if lanes.len() >= REMEMBERED && !lanes.contains_key(&target) {
            lanes.retain(|_, lane| {
                lane.forgive(now);
                lane.running > 0 || !lane.waiting.is_empty() || lane.failures > f64::from(self.config.free_tries)
            });
        }
        lanes.entry(target).or_default().enter(now, &self.config)
    }

    async fn wait(&self, target: Target, client: u64) -> AuthResult<()> {
        let deadline = Instant::now() + QUEUE_TIMEOUT;
        let place = {
            let mut lanes = self.lanes.lock();
            let lane = lanes.entry(target).or_default();
            let tries = lane.clients.get(&client).copied().unwrap_or(0);
            if lane.waiting.len() >= WAITING {
                // The client with the most failures gives way.
                match lane
                    .waiting
                    .iter()
                    .enumerate()
                    .max_by_key(|(_, place)| **place)
                    .map(|(index, place)| (index, *place))
                {
                    Some((index, (most, _))) if most > tries => drop(lane.waiting.swap_remove(index)),
                    _ => return Err(too_many()),
                }
                lane.wake.notify_waiters();
            }
            let id = lane.waiting.iter().map(|(_, id)| id + 1).max().unwrap_or(0);
            lane.waiting.push((tries, id));
            Place { guesses: self, lane: target, id }
        };
        loop {
            let (wake, pause) = {
                let now = Instant::now();
                let mut lanes = self.lanes.lock();
                // Already forgotten, so the try may proceed.
                let Some(lane) = lanes.get_mut(&target) else { return Ok(()) };
                if now >= deadline || !lane.waiting.iter().any(|(_, id)| *id == place.id) {
                    return Err(too_many());
                }
                let is_first = lane.waiting.iter().min().is_some_and(|(_, id)| *id == place.id);
                if is_first && lane.enter(now, &self.config) {
                    return Ok(());
                }
                let until = lane.next.filter(|next| *next > now).unwrap_or(now + Duration::from_millis(20));
                (Arc::clone(&lane.wake), until.min(deadline).saturating_duration_since(now))
            };
            // A wake-up missed before this wait is noticed when the pause is over.
            let _ = tokio::time::timeout(pause.max(Duration::from_millis(1)), wake.notified()).await;
        }
    }

    /// Counts a try of `code` by `client` and returns whether it may be checked. Call before checking. `account` owns
    /// the code.
    pub fn may_try(&self, account: Target, code: Target, client: &str) -> bool {
        if !self.config.enabled {
            return true;
        }
        // What is not compared counts for nobody: one client alone would keep all others from the account.
        if !self.may_try_alone(code, client) {
            return false;
        }
        let now = Instant::now();
        let most = f64::from(self.config.code_tries) * TOGETHER;
        let mut wrong = self.wrong.lock();
        make_room(&mut wrong, REMEMBERED, now, |(_, seen)| *seen);
        let (count, seen) = wrong.entry(account).or_insert((0.0, now));
        let left = (*count - now.duration_since(*seen).as_secs_f64() / 3600.0 * most).max(0.0);
        // Nor do those that are refused now, so that it is over an hour later at the latest.
        (*count, *seen) = ((left + 1.0).min(most + 1.0), now);
        *count <= most
    }

    /// The same without the count of all clients together: if the code is the owner's only way in, other clients'
    /// guesses must not block it.
    pub fn may_try_alone(&self, code: Target, client: &str) -> bool {
        if !self.config.enabled {
            return true;
        }
        let (now, client) = (Instant::now(), self.hashes.hash_one(client));
        let mut codes = self.codes.lock();
        make_room(&mut codes, REMEMBERED, now, |tries| tries.seen);
        let tries = codes.entry(code).or_insert_with(|| Tries { by_client: HashMap::new(), seen: now });
        tries.seen = now;
        let count = tries.by_client.entry(client).or_insert(0);
        *count += 1;
        *count <= self.config.code_tries
    }

    /// The client was right: forgets its own count, but not those of others.
    pub fn was_right_alone(&self, code: Target, client: &str) {
        if let Some(tries) = self.codes.lock().get_mut(&code) {
            tries.by_client.remove(&self.hashes.hash_one(client));
        }
    }

    /// The code was right: forgets the counts of its account.
    pub fn was_right(&self, account: Target, code: Target) {
        self.wrong.lock().remove(&account);
        self.codes.lock().remove(&code);
    }
}

/// Makes room in a map of `most` entries: removes entries unused for an hour, and if that is not enough, the older
/// half. Needed because anybody can ask about any number of unknown addresses.
fn make_room<V>(map: &mut HashMap<Target, V>, most: usize, now: Instant, seen: impl Fn(&V) -> Instant) {
    if map.len() < most {
        return;
    }
    map.retain(|_, value| now.duration_since(seen(value)).as_secs() < 3600);
    if map.len() < most {
        return;
    }
    let mut times: Vec<Instant> = map.values().map(&seen).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    map.retain(|_, value| seen(value) > median);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guesses() -> Guesses {
        Guesses::new(&GuessesConfig {
            enabled: true,
            free_tries: 3,
            max_delay: Duration::from_millis(400),
            code_tries: 4,
        })
    }

    async fn fail(guesses: &Guesses, account: Target, client: &str) -> Duration {
        let started = Instant::now();
        guesses.begin(account, client, async || Ok(false)).await.expect("a turn").failed();
        started.elapsed()
    }

    #[tokio::test]
    async fn strangers_wait_longer_each_time_and_known_clients_do_not() {
        let guesses = guesses();
        let account = guesses.target("ada");
        for _ in 0..3 {
            assert!(fail(&guesses, account, "stranger").await < Duration::from_millis(240));
        }
        assert!(fail(&guesses, account, "stranger").await >= Duration::from_millis(200));
        assert!(fail(&guesses, account, "another stranger").await >= Duration::from_millis(350));
        // Another account, and the owner on a known client.
        assert!(fail(&guesses, guesses.target("bob"), "stranger").await < Duration::from_millis(240));
        let started = Instant::now();
        guesses.begin(account, "home", async || Ok(true)).await.expect("a turn").succeeded();
        assert!(started.elapsed() < Duration::from_millis(240));
        guesses.begin(account, "home", async || panic!("it is known by now")).await.expect("a turn").succeeded();
    }

    #[tokio::test]
    async fn the_waiting_client_with_the_fewest_guesses_goes_first() {
        let guesses = guesses();
        let account = guesses.target("ada");
        for _ in 0..5 {
            fail(&guesses, account, "stranger").await;
        }
        let order = Mutex::new(Vec::new());
        let turn = async |client: &'static str| {
            let turn = guesses.begin(account, client, async || Ok(false)).await.expect("a turn");
            order.lock().push(client);
            turn.failed();
        };
        let later = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            turn("owner").await;
        };
        futures_util::join!(turn("stranger"), turn("stranger"), later);
        assert_eq!(*order.lock(), ["owner", "stranger", "stranger"]);
    }

    #[tokio::test]
    async fn many_guesses_at_one_account_are_checked_a_few_at_a_time_and_the_rest_refused() {
        let guesses = guesses();
        let account = guesses.target("ada");
        let mut running = Vec::new();
        for _ in 0..AT_ONCE {
            running.push(guesses.begin(account, "stranger", async || Ok(false)).await.expect("a turn"));
        }
        let refused = async {
            let many = (0..WAITING + 5).map(|_| guesses.begin(account, "stranger", async || Ok(false)));
            let waiting = futures_util::future::join_all(many);
            tokio::time::timeout(Duration::from_millis(100), waiting).await.is_err()
        };
        assert!(refused.await, "it still waits");
        drop(running);
        assert!(guesses.begin(account, "stranger", async || Ok(false)).await.is_ok());
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_the_newest_entries() {
        let guesses = guesses();
        let begin = Instant::now();
        let mut map = HashMap::new();
        for number in 0..1000_u32 {
            let now = begin + Duration::from_secs(u64::from(number));
            make_room(&mut map, 100, now, |seen| *seen);
            map.insert(guesses.target(number), now);
            assert!(map.len() <= 100 && map.contains_key(&guesses.target(number.saturating_sub(40))), "{number}");
        }
        make_room(&mut map, 10, begin + Duration::from_secs(1000 + 3600), |seen| *seen);
        assert!(map.is_empty(), "{}", map.len());
    }

    #[test]
    fn attempts_at_a_code_are_limited_per_client_and_start_again_with_a_new_code() {
        let guesses = guesses();
        let (account, code) = (guesses.target("ada"), guesses.target("code 1"));
        for _ in 0..4 {
            assert!(guesses.may_try(account, code, "stranger"));
        }
        assert!(!guesses.may_try(account, code, "stranger"));
        assert!(guesses.may_try(account, code, "owner"));
        assert!(guesses.may_try(account, guesses.target("code 2"), "stranger"));
        for _ in 0..10_000 {
            assert!(!guesses.may_try(account, code, "stranger"));
        }
        assert!(guesses.may_try(account, guesses.target("code 2"), "owner"), "one client does not shut out another");
        for client in 0..100 {
            guesses.may_try(account, code, &client.to_string());
        }
        assert!(!guesses.may_try(account, guesses.target("code 3"), "owner"), "all together have tried too often");
    }
}
