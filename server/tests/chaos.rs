//! Faults under a server that is being written to over REST, auth and storage (`just chaos-server`): kills, a stalled
//! database, a full and a read-only disk, cut and slow networks, a clock that jumps. (`storage_crash` looks closer at
//! storage, `frontend/e2e/chaos.spec.ts` at AidBridge's pages.)
//!
//! Each writer keeps a ledger: for each of its keys what may be there. An acknowledged write leaves one value, one whose answer
//! was lost adds one, a refused one changes nothing. After each fault the server has to come back by itself or by being
//! started again, and every key has to hold one of its values.
//! `CHAOS_ROUNDS` and `CHAOS_SEED` make it long, `CHAOS_REPORT` names a file for its figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use reqwest::{Client, Method, RequestBuilder};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::house::{House, SERVICE_KEY};
use crate::support::valve::Valve;
use crate::support::{PASSWORD, TestApp};

/// Writers of each API, and keys of each writer.
const WRITERS: usize = 2;
const KEYS: u64 = 5;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Which API a writer writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Api {
    Rest,
    Auth,
    Storage,
}

/// What may be under a key; `None`: nothing.
type Ledger = BTreeMap<u64, BTreeSet<Option<u64>>>;

/// Acknowledged, refused, and lost answers.
type Counts = BTreeMap<Api, [u64; 3]>;

struct Writer {
    api: Api,
    number: usize,
    base: String,
    http: Client,
    random: StdRng,
    ledger: Ledger,
    counts: [u64; 3],
    /// The next value: each is written once.
    next: u64,
    /// Users that are known to be there, by key.
    tokens: BTreeMap<u64, String>,
}

/// How a write ended, as far as its client knows.
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

    /// Writes until it is told to stop.
    async fn work(mut self, stop: Arc<AtomicBool>) -> Self {
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
                // One that was not there is refused, and nothing is there then either.
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
            Outcome::Done => *possible = BTreeSet::from([written]),
            Outcome::Refused => {}
            Outcome::Unknown => {
                possible.insert(written);
            }
        }
        outcome
    }

    /// Signs a person up, or changes what is said of them.
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

    /// What is under a key now.
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

    /// Holds what is there against the ledger.
    async fn check(&mut self, what: &str) {
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
        if self.api == Api::Auth {
            // Who is there can sign in.
            let known = (0..KEYS).find(|key| self.ledger[key].iter().all(Option::is_some));
            if let Some(key) = known {
                assert!(self.sign_in(key).await.is_some(), "{what}: {} cannot sign in", self.email(key));
            }
            self.tokens.clear();
        }
    }
}

/// A file that says which it is, some of them longer than a buffer.
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
    // Storage tells its statuses in the body.
    let told = told["statusCode"].as_str().and_then(|text| text.parse().ok()).unwrap_or(status);
    match (status, told) {
        (200..300, _) => Outcome::Done,
        (_, 423 | 429 | 500..) | (500.., _) => Outcome::Unknown,
        _ => Outcome::Refused,
    }
}

/// The answer, once what a fault broke has been replaced.
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

fn client() -> Client {
    // A second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(Duration::from_secs(30)).build().expect("a client")
}

/// The table and the bucket that are written to.
async fn furnish(owner: &tokio_postgres::Client, http: &Client, base: &str) {
    owner
        .batch_execute(
            "create table if not exists public.chaos (id bigint primary key, value bigint not null);
             grant all on public.chaos to service_role; notify pgrst, 'reload schema'",
        )
        .await
        .expect("a table");
    let made = http.post(format!("{base}/storage/v1/bucket")).bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY);
    let made = made.json(&json!({ "name": "chaos" })).send().await.expect("an answer");
    assert_eq!(made.status(), 200);
    let rows = http.get(format!("{base}/rest/v1/chaos")).bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY);
    let deadline = Instant::now() + Duration::from_secs(30);
    while rows.try_clone().expect("no body").send().await.is_ok_and(|answer| answer.status() != 200) {
        assert!(Instant::now() < deadline, "the table is not known");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn writers(base: &str, http: &Client, seed: u64) -> Vec<Writer> {
    let apis = [Api::Rest, Api::Auth, Api::Storage];
    apis.iter().flat_map(|api| (0..WRITERS).map(move |number| Writer::new(*api, number, base, http, seed))).collect()
}

/// Lets the writers work while `fault` happens to them.
async fn during(writers: &mut Vec<Writer>, fault: impl Future<Output = ()>) {
    let stop = Arc::new(AtomicBool::new(false));
    let working: Vec<_> =
        writers.drain(..).map(|writer| actix_web::rt::spawn(writer.work(Arc::clone(&stop)))).collect();
    fault.await;
    stop.store(true, Ordering::Release);
    for task in working {
        writers.push(task.await.expect("a writer"));
    }
}

/// Waits until no statement of a request is under way: what was lost may still be done until then.
async fn settled(url: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let busy = "select count(*) from pg_stat_activity where backend_type = 'client backend' and state <> 'idle' \
                and pid <> pg_backend_pid()";
    loop {
        if let Ok((owner, connection)) = tokio_postgres::connect(url, tokio_postgres::NoTls).await {
            tokio::spawn(connection);
            if owner.query_one(busy, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 0) {
                return;
            }
        }
        assert!(Instant::now() < deadline, "statements do not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn pause(random: &mut StdRng, most: u64) -> Duration {
    Duration::from_millis(random.random_range(5..most))
}

fn report(title: &str, faults: &BTreeMap<&str, usize>, writers: &[Writer]) {
    let mut counts = Counts::new();
    for writer in writers {
        let sum = counts.entry(writer.api).or_default();
        (0..3).for_each(|at| sum[at] += writer.counts[at]);
    }
    let mut text = format!("## {title}\n\n| fault | times |\n|---|---|\n");
    for (fault, times) in faults {
        text.push_str(&format!("| {fault} | {times} |\n"));
    }
    if !counts.is_empty() {
        text.push_str("\n| writes over | acknowledged | refused | answer lost |\n|---|---|---|---|\n");
    }
    for (api, [done, refused, unknown]) in counts {
        text.push_str(&format!("| {api:?} | {done} | {refused} | {unknown} |\n"));
    }
    println!("{text}");
    if let Ok(path) = std::env::var("CHAOS_REPORT") {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a report");
        writeln!(file, "{text}").expect("written");
    }
}

/// Kills and stalls, one a round, by the seed.
#[actix_web::test]
async fn nothing_acknowledged_is_lost_whatever_is_killed_or_stalled() {
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6), setting("CHAOS_SEED", 7));
    let http = client();
    let mut random = StdRng::seed_from_u64(seed);
    let mut house = House::new();
    house.serve();
    house.ready(&http).await;
    let url = house.database_url();
    let owner = crate::support::cluster::connect(&url).await;
    furnish(&owner, &http, &house.base()).await;
    drop(owner);
    let mut writers = writers(&house.base(), &http, seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let fault = match round % 6 {
            0 => "server killed",
            1 => "PostgreSQL killed",
            2 => "both killed",
            3 => "one backend killed",
            4 => "both killed, and again while they start",
            // A stall takes longer than all others; in between, another backend.
            _ if round % 12 == 5 => "PostgreSQL stopped for seconds (SIGSTOP)",
            _ => "server stopped for a second (SIGSTOP)",
        };
        *faults.entry(fault).or_default() += 1;
        let until = pause(&mut random, 500);
        let again = pause(&mut random, 1500);
        let (house, random, http) = (&mut house, &mut random, &http);
        during(&mut writers, async move {
            tokio::time::sleep(until).await;
            match fault {
                "server killed" => house.kill_server(),
                "PostgreSQL killed" => house.kill_database(),
                "both killed" => {
                    house.kill_server();
                    house.kill_database();
                }
                "one backend killed" => {
                    let all = house.database_processes();
                    if let Some(pid) = all.get(1..).and_then(|backends| backends.choose(random)) {
                        let _ = kill_process(*pid, Signal::KILL);
                    }
                }
                "both killed, and again while they start" => {
                    house.kill_server();
                    house.kill_database();
                    house.serve_again().await;
                    tokio::time::sleep(again).await;
                    house.kill_server();
                    house.kill_database();
                }
                "PostgreSQL stopped for seconds (SIGSTOP)" => {
                    house.signal_database(Signal::STOP);
                    tokio::time::sleep(Duration::from_secs(7)).await;
                    house.signal_database(Signal::CONT);
                }
                _ => {
                    let pid = house.child.as_ref().and_then(|child| rustix::process::Pid::from_raw(child.id() as i32));
                    let pid = pid.expect("a server");
                    kill_process(pid, Signal::STOP).expect("stopped");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    kill_process(pid, Signal::CONT).expect("going on");
                }
            }
            if house.child.is_none() {
                house.serve_again().await;
            }
            house.ready(http).await;
        })
        .await;
        settled(&url).await;
        for writer in &mut writers {
            writer.check(&format!("seed {seed}, round {round}, {fault}")).await;
        }
    }
    assert!(writers.iter().all(|writer| writer.counts[0] > rounds / 4), "everybody has written");
    report(&format!("Kills and stalls: {rounds} rounds, seed {seed}"), &faults, &writers);
}

/// Networks to the database that are cut, slow or silent, by the seed.
#[actix_web::test]
async fn nothing_acknowledged_is_lost_when_the_way_to_the_database_is_cut_slow_or_silent() {
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6).div_ceil(4), setting("CHAOS_SEED", 7));
    let (app, valve): (TestApp, Valve) = TestApp::behind_valve(&[]).await;
    let http = client();
    let mut random = StdRng::seed_from_u64(seed);
    furnish(&app.owner, &http, &app.base).await;
    let mut writers = writers(&app.base, &http, seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let fault = ["connections cut", "a slow way (30 ms a piece)", "a silent way for seconds"][round as usize % 3];
        *faults.entry(fault).or_default() += 1;
        let pauses = [pause(&mut random, 400), pause(&mut random, 400), pause(&mut random, 400)];
        let valve = &valve;
        during(&mut writers, async move {
            tokio::time::sleep(pauses[0]).await;
            match round % 3 {
                0 => {
                    for pause in pauses {
                        valve.cut();
                        tokio::time::sleep(pause).await;
                    }
                }
                1 => {
                    valve.slow(Duration::from_millis(30));
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    valve.slow(Duration::ZERO);
                }
                _ => {
                    valve.freeze();
                    tokio::time::sleep(Duration::from_secs(6)).await;
                    valve.thaw();
                }
            }
        })
        .await;
        // Of this database alone: others of the cluster are at work.
        let busy = "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()";
        crate::support::valve::until("statements have ended", async || {
            app.owner.query_one(busy, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 0)
        })
        .await;
        for writer in &mut writers {
            writer.check(&format!("seed {seed}, round {round}, {fault}")).await;
        }
    }
    report(&format!("The way to the database: {rounds} rounds, seed {seed}"), &faults, &writers);
}

/// The first start, killed at any moment, is gone on with by the next; so are migrations.
#[actix_web::test]
async fn a_first_start_and_migrations_that_were_killed_are_gone_on_with() {
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6).div_ceil(6), setting("CHAOS_SEED", 7));
    let http = client();
    let mut random = StdRng::seed_from_u64(seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let mut house = House::new();
        let kills = random.random_range(1..4);
        for _ in 0..kills {
            house.serve();
            tokio::time::sleep(pause(&mut random, 3000)).await;
            house.kill_server();
            if random.random_ratio(1, 2) {
                house.kill_database();
            }
            *faults.entry("first start killed").or_default() += 1;
        }
        house.serve();
        house.ready(&http).await;
        let owner = crate::support::cluster::connect(&house.database_url()).await;
        furnish(&owner, &http, &house.base()).await;
        // Twenty files, each of which counts itself; killed in between.
        let folder = house.root.join("project");
        std::fs::create_dir_all(&folder).expect("a folder");
        owner
            .batch_execute("create table public.steps (n int, at timestamptz default clock_timestamp())")
            .await
            .expect("a table");
        for n in 1..=20 {
            let text = format!(
                "insert into public.steps (n) values ({n}); select pg_sleep(0.03); create table public.of_step_{n} (a int);"
            );
            std::fs::write(folder.join(format!("20260101{n:06}_step.sql")), text).expect("written");
        }
        let dir = folder.display().to_string();
        for _ in 0..kills {
            let mut child = house
                .command(&["migrate", "--dir", &dir])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("it runs");
            tokio::time::sleep(pause(&mut random, 700)).await;
            child.kill().expect("killed");
            child.wait().expect("gone");
            *faults.entry("migrations killed").or_default() += 1;
        }
        let done = house.command(&["migrate", "--dir", &dir]).output().expect("it runs");
        assert!(done.status.success(), "seed {seed}, round {round}: {}", String::from_utf8_lossy(&done.stderr));
        let row = owner.query_one("select count(*), count(distinct n) from public.steps", &[]).await.expect("steps");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (20, 20), "each file ran once");
    }
    report(&format!("First starts and migrations: {rounds} houses, seed {seed}"), &faults, &[]);
}

/// A small disk of memory, gone with this value. None where nothing may be mounted.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mounted(at: &Path, megabytes: u32) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a folder");
        let options = format!("size={megabytes}m,mode=0755");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "chaos"]).arg(at).output();
        done.is_ok_and(|done| done.status.success()).then(|| Self(at.to_owned()))
    }

    /// Whether it could be made readable only, or writable again.
    fn remount(&self, how: &str) -> bool {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).output();
        done.is_ok_and(|done| done.status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// The disk of the files is full, then readable only; the disk of everything is full. Room made, all goes on.
#[actix_web::test]
async fn a_full_or_read_only_disk_loses_nothing_and_is_got_over() {
    let seed = setting("CHAOS_SEED", 7);
    let root = std::env::temp_dir().join(format!("ferrobase-small-disk-{}", std::process::id()));
    let Some(whole) = SmallDisk::mounted(&root, 400) else {
        println!("nothing may be mounted here: not tried");
        return;
    };
    // Seen by PostgreSQL's own user as well.
    let files = SmallDisk::mounted(&root.join("files"), 8).expect("a second disk");
    let http = client();
    let mut house = House::at(root.clone());
    house.serve();
    house.ready(&http).await;
    let url = house.database_url();
    let owner = crate::support::cluster::connect(&url).await;
    furnish(&owner, &http, &house.base()).await;
    drop(owner);
    let mut writers = writers(&house.base(), &http, seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in ["full disk of the files", "read-only disk of the files", "full disk of database and files"] {
        *faults.entry(fault).or_default() += 1;
        let ballast = if fault.ends_with("and files") { root.join("ballast") } else { root.join("files/ballast") };
        let (files, http, url, base) = (&files, &http, &url, house.base());
        let at = ballast.clone();
        during(&mut writers, async move {
            if fault.starts_with("read-only") {
                // A file that is being written keeps the disk writable: between two of them.
                let deadline = Instant::now() + Duration::from_secs(30);
                while !files.remount("ro") {
                    assert!(Instant::now() < deadline, "it stays writable");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            } else {
                // Filled to the last block, whatever else is freed meanwhile.
                let _ = Command::new("sh").args(["-c", &format!("cat /dev/zero > {}", at.display())]).output();
            }
            if fault.ends_with("and files") {
                // PostgreSQL writes into room that it took before: until it needs more.
                let (owner, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a login");
                tokio::spawn(connection);
                let bulk =
                    "create temporary table bulk as select repeat(md5(n::text), 3000) from generate_series(1, 2000) n";
                assert!(owner.batch_execute(bulk).await.is_err(), "the disk is not full");
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            // It is there, and says what it can.
            let live = http.get(format!("{base}/auth/v1/health")).header("apikey", SERVICE_KEY).send().await;
            assert!(live.is_ok_and(|answer| answer.status() == 200), "{fault}: the server is gone");
            if fault.starts_with("read-only") {
                assert!(files.remount("rw"), "writable again");
            } else {
                std::fs::remove_file(&at).expect("room again");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        })
        .await;
        house.ready(http).await;
        settled(url).await;
        for writer in &mut writers {
            writer.check(fault).await;
        }
        let before: Vec<u64> = writers.iter().map(|writer| writer.counts[0]).collect();
        during(&mut writers, tokio::time::sleep(Duration::from_secs(2))).await;
        for (writer, before) in writers.iter().zip(before) {
            assert!(writer.counts[0] > before, "{fault}: {:?} writes again", writer.api);
        }
        for writer in &mut writers {
            writer.check(fault).await;
        }
    }
    report(&format!("Disks, seed {seed}"), &faults, &writers);
    drop(house);
    drop(files);
    drop(whole);
    let _ = std::fs::remove_dir_all(root);
}

/// Debian's libfaketime, where it is installed.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// The server's clock jumps by hours, forth and back. Sessions may end by it; nothing is lost.
#[actix_web::test]
async fn a_clock_that_jumps_loses_nothing() {
    if !Path::new(FAKETIME).exists() {
        println!("libfaketime is not installed (Debian: apt-get install libfaketime): not tried");
        return;
    }
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6).div_ceil(3), setting("CHAOS_SEED", 7));
    let http = client();
    let mut house = House::new();
    let clock = house.root.join("clock");
    std::fs::write(&clock, "+0").expect("a clock");
    for (name, value) in [
        ("LD_PRELOAD", FAKETIME.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ] {
        house.settings.push((name.to_owned(), value));
    }
    house.serve();
    house.ready(&http).await;
    let url = house.database_url();
    let owner = crate::support::cluster::connect(&url).await;
    furnish(&owner, &http, &house.base()).await;
    drop(owner);
    let mut writers = writers(&house.base(), &http, seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let jump = ["+3h", "-3h", "+40s", "-40s", "+30d", "+0"][round as usize % 6];
        *faults.entry("clock jumped").or_default() += 1;
        let clock = clock.clone();
        during(&mut writers, async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            std::fs::write(&clock, jump).expect("a clock");
            tokio::time::sleep(Duration::from_millis(900)).await;
        })
        .await;
        house.ready(&http).await;
        settled(&url).await;
        for writer in &mut writers {
            writer.check(&format!("seed {seed}, round {round}, the clock jumped by {jump}")).await;
        }
    }
    report(&format!("Clocks: {rounds} jumps, seed {seed}"), &faults, &writers);
}
