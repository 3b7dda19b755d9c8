//! Kills server, PostgreSQL or both during uploads, replacements, moves, copies, removals and multipart and resumable
//! uploads. Then a ledger of acknowledged requests is compared with the stored state.
//!
//! Each worker has its own keys and tracks their possible states: an acknowledged request leaves one state, a lost
//! answer leaves the states before and after it. After each kill, the keys must be completely in one of these states;
//! after a sweep, the store must have exactly one file per row. `CRASH_KILLS` and `CRASH_SEED` make it longer (`just
//! crash-storage`), `CRASH_REPORT` names a file for its figures.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use md5::{Digest as _, Md5};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::binary::SERVICE_KEY;
use crate::support::server_process::ServerProcess;

/// The keys of `supabase start`.
const ACCESS_KEY: &str = "625729a08b95bf1b7ff351a663f3a23c";
const SECRET_KEY: &str = "850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907";

/// Characters not encoded in a signed query.
const UNRESERVED: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Keys per worker.
const KEYS: usize = 4;
const WORKERS: usize = 4;
/// Kills between two sweeps.
const SWEEP_EVERY: usize = 10;

/// The numbers of version files and of upload parts in a store of this server.
fn files(server: &ServerProcess, store: &str) -> (usize, usize) {
    let (mut folders, mut versions, mut parts) = (vec![server.root.join(store)], 0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_part = path.components().any(|part| part.as_os_str() == ".parts");
            if path.is_dir() {
                folders.push(path);
            } else if is_part {
                parts += 1;
            } else if !is_temporary(&path) {
                versions += 1;
            }
        }
    }
    (versions, parts)
}

fn is_temporary(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".new")
}

/// A file's content: bytes generated from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    number: u64,
    length: usize,
}

impl Content {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        StdRng::seed_from_u64(self.number).fill(&mut bytes[..]);
        bytes
    }
}

/// The content of a worker's keys.
type World = BTreeMap<String, Content>;

/// The effect of a request on a world.
#[derive(Clone, Debug)]
enum Deed {
    Put(String, Content),
    Move(String, String),
    Copy(String, String),
    Remove(String),
}

impl Deed {
    /// The world afterwards; `None` if the request cannot have succeeded.
    fn done_to(&self, world: &World) -> Option<World> {
        let mut world = world.clone();
        match self {
            Self::Put(key, content) => drop(world.insert(key.clone(), *content)),
            Self::Move(from, to) => {
                let content = world.remove(from)?;
                if world.insert(to.clone(), content).is_some() {
                    return None;
                }
            }
            Self::Copy(from, to) => {
                let content = *world.get(from)?;
                world.insert(to.clone(), content);
            }
            Self::Remove(key) => drop(world.remove(key)?),
        }
        Some(world)
    }
}

/// The outcome of a request from the client's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    Unknown,
}

/// An interrupted resumable upload.
struct Unfinished {
    key: String,
    content: Content,
    location: String,
    /// Bytes acknowledged by the server.
    offset: usize,
    upsert: bool,
}

struct Worker {
    name: usize,
    http: Client,
    base: String,
    random: StdRng,
    worlds: Vec<World>,
    unfinished: Option<Unfinished>,
    counts: HashMap<&'static str, [u64; 3]>,
}

impl Worker {
    fn new(name: usize, server: &ServerProcess, http: &Client, seed: u64) -> Self {
        Self {
            name,
            http: http.clone(),
            base: server.base(),
            random: StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(name as u64)),
            worlds: vec![World::new()],
            unfinished: None,
            counts: HashMap::new(),
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}/storage/v1{path}", self.base) };
        self.http.request(method, url).bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY)
    }

    fn key(&mut self) -> String {
        format!("w{}/k{}", self.name, self.random.random_range(0..KEYS))
    }

    fn content(&mut self) -> Content {
        let longest = if self.random.random_ratio(1, 6) { 2 << 20 } else { 20_000 };
        Content { number: self.random.random(), length: self.random.random_range(1..longest) }
    }

    /// Works until a request is not answered, or until told to stop.
    async fn work(mut self, stop: Arc<AtomicBool>) -> Self {
        while !stop.load(Ordering::Acquire) {
            let name = self.one().await;
            if name.1 == Outcome::Unknown {
                break;
            }
        }
        self
    }

    async fn one(&mut self) -> (&'static str, Outcome) {
        let (key, other) = (self.key(), self.key());
        let content = self.content();
        let route = json!({ "bucketId": "crash", "sourceKey": key, "destinationKey": other });
        let (name, deed, outcome) = match self.random.random_range(0..10) {
            0 | 1 => {
                let sent = self.request(Method::POST, &format!("/object/crash/{key}")).header("x-upsert", "false");
                let outcome = ended(sent.body(content.bytes()).send().await).await;
                ("upload", Deed::Put(key, content), outcome)
            }
            2 | 3 => {
                let sent = self.request(Method::PUT, &format!("/object/crash/{key}")).body(content.bytes());
                ("replace", Deed::Put(key, content), ended(sent.send().await).await)
            }
            4 => {
                let sent = self.request(Method::POST, "/object/move").json(&route);
                ("move", Deed::Move(key, other), ended(sent.send().await).await)
            }
            5 => {
                let sent = self.request(Method::POST, "/object/copy").header("x-upsert", "true").json(&route);
                ("copy", Deed::Copy(key, other), ended(sent.send().await).await)
            }
            6 => {
                let sent = self.request(Method::DELETE, &format!("/object/crash/{key}"));
                ("delete", Deed::Remove(key), ended(sent.send().await).await)
            }
            7 | 8 => ("multipart", Deed::Put(key.clone(), content), self.multipart(&key, content).await),
            _ => ("resumable", Deed::Put(key.clone(), content), self.resumable(key, content).await),
        };
        self.counts.entry(name).or_default()[outcome as usize] += 1;
        let after: Vec<World> = self.worlds.iter().filter_map(|world| deed.done_to(world)).collect();
        match outcome {
            Outcome::Done => {
                assert!(!after.is_empty(), "{deed:?} was acknowledged and cannot have been done in {:?}", self.worlds);
                self.worlds = after;
            }
            Outcome::Refused => {}
            Outcome::Unknown => self.worlds.extend(after),
        }
        (name, outcome)
    }

    /// An S3 multipart upload with two parts, and its completion.
    async fn multipart(&self, key: &str, content: Content) -> Outcome {
        let bytes = content.bytes();
        let path = format!("/crash/{key}");
        let begun = self.s3(Method::POST, &path, "uploads=", b"").await;
        let Some(text) = said(begun).await else { return Outcome::Unknown };
        let Some(id) = text.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once('<')) else {
            return Outcome::Unknown;
        };
        let id = percent_encoding::utf8_percent_encode(id.0, UNRESERVED).to_string();
        let mut completion = String::from("<CompleteMultipartUpload>");
        for (number, half) in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]].into_iter().enumerate() {
            let query = format!("partNumber={}&uploadId={id}", number + 1);
            if said(self.s3(Method::PUT, &path, &query, half).await).await.is_none() {
                return Outcome::Unknown;
            }
            let etag = hex::encode(Md5::digest(half));
            completion
                .push_str(&format!("<Part><PartNumber>{}</PartNumber><ETag>\"{etag}\"</ETag></Part>", number + 1));
        }
        completion.push_str("</CompleteMultipartUpload>");
        match said(self.s3(Method::POST, &path, &format!("uploadId={id}"), completion.as_bytes()).await).await {
            Some(_) => Outcome::Done,
            None => Outcome::Unknown,
        }
    }

    async fn s3(&self, method: Method, path: &str, query: &str, body: &[u8]) -> reqwest::Result<Response> {
        let mac = |key: &[u8], text: &str| {
            let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
            mac.chain_update(text).finalize().into_bytes().to_vec()
        };
        let at = chrono::Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
        let (host, path) = (self.base.trim_start_matches("http://"), format!("/storage/v1/s3{path}"));
        let hash = hex::encode(Sha256::digest(body));
        let signed = "host;x-amz-content-sha256;x-amz-date";
        let canonical = format!(
            "{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{hash}\nx-amz-date:{at}\n\n{signed}\n{hash}"
        );
        let scope = format!("{}/local/s3/aws4_request", &at[..8]);
        let text = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", hex::encode(Sha256::digest(canonical)));
        let key = ["local", "s3", "aws4_request"]
            .iter()
            .fold(mac(format!("AWS4{SECRET_KEY}").as_bytes(), &at[..8]), |key, part| mac(&key, part));
        let signature = hex::encode(mac(&key, &text));
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={signed}, Signature={signature}");
        let request = self.http.request(method, format!("{}{path}?{query}", self.base));
        let request = request.header("authorization", authorization).header("x-amz-date", at);
        request.header("x-amz-content-sha256", hash).body(body.to_vec()).send().await
    }

    fn tus(&self, method: Method, path: &str, upsert: bool) -> RequestBuilder {
        self.request(method, path).header("tus-resumable", "1.0.0").header("x-upsert", upsert.to_string())
    }

    async fn resumable(&mut self, key: String, content: Content) -> Outcome {
        let metadata = format!("bucketName {},objectName {}", STANDARD.encode("crash"), STANDARD.encode(&key));
        let upsert = self.random.random_ratio(2, 3);
        let created = self.tus(Method::POST, "/upload/resumable", upsert);
        let created = created.header("upload-length", content.length.to_string());
        let Ok(created) = created.header("upload-metadata", metadata).send().await else { return Outcome::Unknown };
        match created.status().as_u16() {
            201 => {}
            409 if !upsert => return Outcome::Refused,
            _ => return Outcome::Unknown,
        }
        let location = created.headers()["location"].to_str().expect("an address").to_owned();
        self.unfinished = Some(Unfinished { key, content, location, offset: 0, upsert });
        self.resume().await
    }

    /// Sends the remaining bytes in pieces.
    async fn resume(&mut self) -> Outcome {
        let Some(mut upload) = self.unfinished.take() else { return Outcome::Refused };
        let bytes = upload.content.bytes();
        let piece = bytes.len().div_ceil(3);
        while upload.offset < bytes.len() {
            let end = (upload.offset + piece).min(bytes.len());
            let patch = self
                .tus(Method::PATCH, &upload.location, upload.upsert)
                .header("content-type", "application/offset+octet-stream")
                .header("upload-offset", upload.offset.to_string())
                .body(bytes[upload.offset..end].to_vec());
            match patch.send().await {
                Ok(response) if response.status() == 204 => upload.offset = end,
                _ => {
                    self.unfinished = Some(upload);
                    return Outcome::Unknown;
                }
            }
        }
        Outcome::Done
    }

    /// Compares the stored state with the ledger.
    async fn check(&mut self) {
        // Acknowledged bytes of an interrupted upload still exist, and it can be resumed.
        if let Some(upload) = &mut self.unfinished {
            let head = self.http.head(&upload.location).bearer_auth(SERVICE_KEY).header("tus-resumable", "1.0.0");
            let head = patiently(head).await;
            assert_eq!(head.status(), 200, "{} is known", upload.location);
            let offset =
                head.headers()["upload-offset"].to_str().ok().and_then(|text| text.parse().ok()).expect("a number");
            assert!(
                (upload.offset..=upload.content.length).contains(&offset),
                "{offset}, and {} was told",
                upload.offset
            );
            upload.offset = offset;
            let deed = Deed::Put(upload.key.clone(), upload.content);
            if offset < upload.content.length {
                assert_eq!(self.resume().await, Outcome::Done);
                self.worlds = self.worlds.iter().filter_map(|world| deed.done_to(world)).collect();
            }
            self.unfinished = None;
        }
        let mut there = World::new();
        let known: Vec<Content> = self.worlds.iter().flat_map(|world| world.values().copied()).collect();
        for number in 0..KEYS {
            let key = format!("w{}/k{number}", self.name);
            let response = patiently(self.request(Method::GET, &format!("/object/crash/{key}"))).await;
            let status = response.status().as_u16();
            let bytes = response.bytes().await.expect("a whole body");
            if status == 400 {
                let refusal: Value = serde_json::from_slice(&bytes).expect("JSON");
                assert_eq!(refusal["message"], "Object not found", "{key}: a row without a file");
                continue;
            }
            assert_eq!(status, 200, "{key}: {}", String::from_utf8_lossy(&bytes));
            let content = known.iter().find(|content| content.length == bytes.len() && content.bytes() == bytes[..]);
            there.insert(
                key.clone(),
                *content.unwrap_or_else(|| panic!("{key} holds {} bytes that nobody sent", bytes.len())),
            );
        }
        assert!(self.worlds.contains(&there), "there is {there:?}, and there may be {:?}", self.worlds);
        self.worlds = vec![there];
    }
}

/// The answer, retried until broken connections have been replaced.
async fn patiently(request: RequestBuilder) -> Response {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let response = request.try_clone().expect("no body").send().await.expect("an answer");
        if response.status() != 503 || Instant::now() > deadline {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn ended(sent: reqwest::Result<Response>) -> Outcome {
    let Ok(response) = sent else { return Outcome::Unknown };
    let status = response.status().as_u16();
    let Ok(body) = response.bytes().await else { return Outcome::Unknown };
    let told = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    match (status, told["statusCode"].as_str().and_then(|text| text.parse::<u16>().ok())) {
        (200, _) => Outcome::Done,
        // Locked, overloaded or unreachable: it may have been executed.
        (_, Some(423 | 429 | 500..)) => Outcome::Unknown,
        (400, Some(_)) => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

/// The body of a successful answer.
async fn said(sent: reqwest::Result<Response>) -> Option<String> {
    let response = sent.ok().filter(|response| response.status() == 200)?;
    response.text().await.ok()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[actix_web::test]
async fn kills_neither_lose_nor_tear_acknowledged_writes() {
    let (kills, seed) = (setting("CRASH_KILLS", 6) as usize, setting("CRASH_SEED", 7));
    // A second installation has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = Client::builder().timeout(Duration::from_secs(60)).build().expect("a client");
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = ServerProcess::started_before();
    server.serve();
    server.ready(&http).await;
    let mut workers: Vec<Worker> = (0..WORKERS).map(|name| Worker::new(name, &server, &http, seed)).collect();
    let made = workers[0].request(Method::POST, "/bucket").json(&json!({ "name": "crash" })).send().await;
    assert_eq!(made.expect("an answer").status(), 200);
    let (mut killed, mut orphans) = ([0_usize; 3], 0);
    for round in 1..=kills {
        let stop = Arc::new(AtomicBool::new(false));
        let working: Vec<_> =
            workers.drain(..).map(|worker| actix_web::rt::spawn(worker.work(Arc::clone(&stop)))).collect();
        tokio::time::sleep(Duration::from_millis(random.random_range(5..600))).await;
        let victim = round % 3;
        killed[victim] += 1;
        if victim != 1 {
            server.kill();
        }
        if victim != 0 {
            server.kill_database();
        }
        stop.store(true, Ordering::Release);
        for task in working {
            workers.push(task.await.expect("a worker"));
        }
        if victim != 1 {
            server.serve_again().await;
        }
        server.ready(&http).await;
        for worker in &mut workers {
            worker.check().await;
        }
        if round % SWEEP_EVERY == 0 || round == kills {
            orphans += swept(&server);
            let rows: usize = workers.iter().map(|worker| worker.worlds[0].len()).sum();
            assert_eq!(files(&server, "files").0, rows, "after a sweep there is one file for each row");
        }
    }
    // The remaining files move to another store with their rows, through the owner's login.
    let rows = files(&server, "files").0;
    std::fs::create_dir_all(server.root.join("moved")).expect("a folder");
    let to = server.root.join("moved").display().to_string();
    let moved = server.command(&["storage", "migrate", "--from", "file", "--to", &to]).output().expect("it runs");
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    assert_eq!(files(&server, "moved").0, rows);
    report(kills, seed, killed, orphans, &workers);
}

/// Sweeps files of any age. Returns how many had no row.
fn swept(server: &ServerProcess) -> usize {
    let output = server.command(&["storage", "sweep", "--min-age", "0"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn report(kills: usize, seed: u64, killed: [usize; 3], orphans: usize, workers: &[Worker]) {
    let mut all: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for (name, counts) in workers.iter().flat_map(|worker| &worker.counts) {
        let sum = all.entry(*name).or_default();
        (0..3).for_each(|at| sum[at] += counts[at]);
    }
    let [server, database, both] = killed;
    let mut text = format!(
        "# Storage, killed {kills} times\n\n`just crash-storage {kills}`, seed {seed}: the server {server} times, PostgreSQL \
         {database} times, both {both} times, each\nwithin 0.6 s of work by {WORKERS} clients. No acknowledged write was lost or \
         torn, no row was without its file, each resumable\nupload could be resumed, and after every sweep there was one \
         file per row; the sweeps removed {orphans} files\nthat crashes had left.\n\n\
         | request | acknowledged | refused | answer lost |\n|---|---|---|---|\n"
    );
    for (name, [done, refused, unknown]) in all {
        text.push_str(&format!("| {name} | {done} | {refused} | {unknown} |\n"));
    }
    println!("{text}");
    if let Ok(path) = std::env::var("CRASH_REPORT") {
        // Cargo runs tests in their package's folder; the path is relative to the repository.
        let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::fs::write(repository.join(path), text).expect("a report");
    }
}
