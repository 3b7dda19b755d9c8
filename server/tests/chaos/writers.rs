//! Writers over REST, auth and storage, each with a ledger of the possible values of its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::PASSWORD;
use crate::support::binary::SERVICE_KEY;

/// Writers per API, and keys per writer.
const WRITERS: usize = 2;
const KEYS: u64 = 5;

/// The API that a writer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    Rest,
    Auth,
    Storage,
}

/// Possible values of each key; `None` means absent.
type Ledger = BTreeMap<u64, BTreeSet<Option<u64>>>;

/// Numbers of acknowledged, refused and lost writes.
pub type Counts = BTreeMap<Api, [u64; 3]>;

pub struct Writer {
    pub api: Api,
    number: usize,
    base: String,
    http: Client,
    random: StdRng,
    ledger: Ledger,
    /// Values of lost writes since the last check.
    lost: Ledger,
    /// Whether a lost write may be executed after an acknowledged one that was sent later, as when a stopped PostgreSQL goes on
    /// with all that it was sent meanwhile.
    pub lost_may_be_late: bool,
    pub counts: [u64; 3],
    /// The next value. Each value is written once.
    next: u64,
    /// Tokens of users known to exist, by key.
    tokens: BTreeMap<u64, String>,
}

/// The outcome of a write from the client's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    Unknown,
}

impl Writer {
    fn new(api: Api, number: usize, base: &str, http: &Client, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(number as u64 * 3 + api as u64));
        Self {
            api,
            number,
            base: base.to_owned(),
            http: http.clone(),
            random,
            ledger: (0..KEYS).map(|key| (key, BTreeSet::from([None]))).collect(),
            lost: Ledger::new(),
            lost_may_be_late: false,
            counts: [0; 3],
            next: 1,
            tokens: BTreeMap::new(),
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        request.bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY)
    }

    fn id(&self, key: u64) -> u64 {
        self.number as u64 * 1000 + key
    }

    fn email(&self, key: u64) -> String {
        format!("writer{}-{key}@chaos.example", self.number)
    }

    /// Writes until told to stop.
    pub async fn work(mut self, stop: Arc<AtomicBool>) -> Self {
        while !stop.load(Ordering::Acquire) {
            if self.write().await != Outcome::Done {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        self
    }

    async fn write(&mut self) -> Outcome {
        let (key, value) = (self.random.random_range(0..KEYS), self.next);
        self.next += 1;
        let removes = self.api != Api::Auth && self.random.random_ratio(1, 6);
        let written = (!removes).then_some(value);
        let outcome = match (self.api, written) {
            (Api::Rest, Some(value)) => {
                let row = json!({ "id": self.id(key), "value": value });
                let sent = self.request(Method::POST, "/rest/v1/chaos?on_conflict=id");
                ended(sent.header("prefer", "resolution=merge-duplicates").json(&row)).await
            }
            (Api::Rest, None) => {
                ended(self.request(Method::DELETE, &format!("/rest/v1/chaos?id=eq.{}", self.id(key)))).await
            }
            (Api::Storage, Some(value)) => {
                let sent = self.request(Method::POST, &format!("/storage/v1/object/chaos/{}", self.id(key)));
                let sent = sent.header("x-upsert", "true").header("content-type", "application/octet-stream");
                ended(sent.body(content(value))).await
            }
            (Api::Storage, None) => {
                // Deleting a missing object is refused, and it is absent afterwards too.
                let sent = self.request(Method::DELETE, &format!("/storage/v1/object/chaos/{}", self.id(key)));
                match ended(sent).await {
                    Outcome::Refused => Outcome::Refused,
                    outcome => outcome,
                }
            }
            (Api::Auth, _) => self.write_user(key, value).await,
        };
        self.counts[outcome as usize] += 1;
        let possible = self.ledger.get_mut(&key).expect("a key");
        match outcome {
            Outcome::Done => {
                *possible = BTreeSet::from([written]);
                if self.lost_may_be_late {
                    possible.extend(self.lost.get(&key).into_iter().flatten());
                }
            }
            Outcome::Refused => {}
            Outcome::Unknown => {
                possible.insert(written);
                self.lost.entry(key).or_default().insert(written);
            }
        }
        outcome
    }

    /// Signs up a user, or changes their metadata.
    async fn write_user(&mut self, key: u64, value: u64) -> Outcome {
        let is_known = self.ledger[&key].iter().all(Option::is_some);
        if !is_known {
            let body = json!({ "email": self.email(key), "password": PASSWORD, "data": { "value": value } });
            let sent = self.http.post(format!("{}/auth/v1/signup", self.base)).header("apikey", SERVICE_KEY);
            return ended(sent.json(&body)).await;
        }
        if !self.tokens.contains_key(&key) {
            let Some(token) = self.sign_in(key).await else { return Outcome::Refused };
            self.tokens.insert(key, token);
        }
        let sent = self.http.put(format!("{}/auth/v1/user", self.base)).header("apikey", SERVICE_KEY);
        let sent = sent.bearer_auth(&self.tokens[&key]).json(&json!({ "data": { "value": value } }));
        let outcome = ended(sent).await;
        if outcome == Outcome::Refused {
            // The clock may have ended the session.
            self.tokens.remove(&key);
        }
        outcome
    }

    async fn sign_in(&self, key: u64) -> Option<String> {
        let body = json!({ "email": self.email(key), "password": PASSWORD });
        let url = format!("{}/auth/v1/token?grant_type=password", self.base);
        let answer = self.http.post(url).header("apikey", SERVICE_KEY).json(&body).send().await.ok()?;
        answer.json::<Value>().await.ok()?["access_token"].as_str().map(str::to_owned)
    }

    /// The current value of a key.
    async fn read(&self, key: u64) -> Option<u64> {
        match self.api {
            Api::Rest => {
                let path = format!("/rest/v1/chaos?select=value&id=eq.{}", self.id(key));
                let (status, body) = patiently(self.request(Method::GET, &path)).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
                let rows: Value = serde_json::from_slice(&body).expect("JSON");
                rows[0]["value"].as_u64()
            }
            Api::Storage => {
                let path = format!("/storage/v1/object/chaos/{}", self.id(key));
                let (status, body) = patiently(self.request(Method::GET, &path)).await;
                if status == 400 {
                    let told: Value = serde_json::from_slice(&body).expect("JSON");
                    assert_eq!(told["message"], "Object not found", "a row without its file");
                    return None;
                }
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
                let value = body.get(..8).and_then(|head| Some(u64::from_le_bytes(head.try_into().ok()?)));
                let value = value.expect("a value");
                assert_eq!(body, content(value), "a torn file");
                Some(value)
            }
            Api::Auth => {
                let path = format!("/auth/v1/admin/users?per_page=200&filter={}", self.email(key));
                let (status, body) = patiently(self.request(Method::GET, &path)).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
                let users: Value = serde_json::from_slice(&body).expect("JSON");
                let users = users["users"].as_array().expect("users");
                let user = users.iter().find(|user| user["email"] == self.email(key));
                user.map(|user| user["user_metadata"]["value"].as_u64().expect("a value"))
            }
        }
    }

    /// Compares the current values with the ledger.
    pub async fn check(&mut self, what: &str) {
        for key in 0..KEYS {
            let there = self.read(key).await;
            let possible = &self.ledger[&key];
            assert!(
                possible.contains(&there),
                "{what}: {:?} {} has {there:?} under {key}, and may have {possible:?}",
                self.api,
                self.number
            );
            self.ledger.insert(key, BTreeSet::from([there]));
        }
        self.lost.clear();
        if self.api == Api::Auth {
            // Existing users can sign in.
            let known = (0..KEYS).find(|key| self.ledger[key].iter().all(Option::is_some));
            if let Some(key) = known {
                assert!(self.sign_in(key).await.is_some(), "{what}: {} cannot sign in", self.email(key));
            }
            self.tokens.clear();
        }
    }
}

/// A file that contains its number. Some are longer than a buffer.
fn content(value: u64) -> Vec<u8> {
    let length = 8 + (value % 7) as usize * 30_000;
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(length, value as u8);
    bytes
}

async fn ended(request: RequestBuilder) -> Outcome {
    let Ok(response) = request.send().await else { return Outcome::Unknown };
    let status = response.status().as_u16();
    let Ok(body) = response.bytes().await else { return Outcome::Unknown };
    let told = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    // Storage has its status in the body.
    let told = told["statusCode"].as_str().and_then(|text| text.parse().ok()).unwrap_or(status);
    match (status, told) {
        (200..300, _) => Outcome::Done,
        (_, 423 | 429 | 500..) | (500.., _) => Outcome::Unknown,
        _ => Outcome::Refused,
    }
}

/// The answer, retried until broken connections have been replaced.
async fn patiently(request: RequestBuilder) -> (u16, Vec<u8>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let sent = request.try_clone().expect("no body").send().await;
        if let Ok(response) = sent {
            let status = response.status().as_u16();
            let body = response.bytes().await;
            match body {
                Ok(body) if status < 500 && status != 429 || Instant::now() > deadline => {
                    return (status, body.to_vec());
                }
                _ => {}
            }
        }
        assert!(Instant::now() < deadline, "no answer within a minute");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub fn writers(base: &str, http: &Client, seed: u64) -> Vec<Writer> {
    let apis = [Api::Rest, Api::Auth, Api::Storage];
    apis.iter().flat_map(|api| (0..WRITERS).map(move |number| Writer::new(*api, number, base, http, seed))).collect()
}
