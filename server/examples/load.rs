//! The load generator of `just bench`: one thread, keep-alive HTTP/1.1 by hand, so that it takes little of the cores
//! that it measures. Prints one line of JSON.
//!
//! ```text
//! load http JOB.json           many connections for a while, every response compared
//! load open JOB.json           requests at a rate of their own, whatever the answers: how admitted and refused ones fare
//! load once JOB.json           one request: time to the first byte of the body, to the last, and the size
//! load bcrypt THREADS SECONDS  bare bcrypt verifications, cost 10
//! load pauses THREADS SECONDS  how long threads that only look at the clock stand still: what others take of the cores
//! ```
//!
//! A job is `{"address","connections","seconds","pause_ms","rate","requests":[{"method","path","headers":{},"body","status","expect",
//! "capture"}],"initial":[…]}`. `expect` must occur in the body. `capture` names a JSON string of the answer that
//! replaces `{{value}}` in the bodies of that connection's later requests; `initial` holds each connection's first.
//! `{{count}}` in a path is another number in each request. `rate` is of `open`: requests a second, whose times are drawn
//! by chance; a connection that still waits for an answer sends its next request late.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Deserialize)]
struct Job {
    address: String,
    #[serde(default)]
    connections: usize,
    #[serde(default)]
    seconds: f64,
    /// Rest between an answer and the next request of its connection.
    #[serde(default)]
    pause_ms: u64,
    /// Requests a second of all connections together.
    #[serde(default)]
    rate: f64,
    requests: Vec<Request>,
    #[serde(default)]
    initial: Vec<String>,
    /// Requests whose path was counted.
    #[serde(skip)]
    counted: AtomicU64,
    /// The bytes of each request that does not vary.
    #[serde(skip)]
    fixed: Vec<Option<Vec<u8>>>,
}

impl Job {
    /// Sends the request at `place`.
    async fn send(&self, wire: &mut Wire, place: usize, value: &str) -> io::Result<()> {
        match self.fixed.get(place).and_then(Option::as_ref) {
            Some(bytes) => wire.send(bytes).await,
            None => wire.send(&self.requests[place].bytes(self, value)).await,
        }
    }
}

#[derive(Deserialize)]
struct Request {
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A body in this file, for those too large for the job.
    #[serde(default)]
    body_file: Option<String>,
    #[serde(default)]
    body: String,
    status: u16,
    #[serde(default)]
    expect: String,
    #[serde(default)]
    capture: Option<String>,
}

impl Request {
    fn varies(&self) -> bool {
        self.capture.is_some() || self.body.contains("{{value}}") || self.path.contains("{{count}}")
    }

    fn bytes(&self, job: &Job, value: &str) -> Vec<u8> {
        let body = if self.body_file.is_some() { self.body.clone() } else { self.body.replace("{{value}}", value) };
        let path = if self.path.contains("{{count}}") {
            self.path.replace("{{count}}", &job.counted.fetch_add(1, Ordering::Relaxed).to_string())
        } else {
            self.path.clone()
        };
        let mut text = format!("{} {path} HTTP/1.1\r\nHost: {}\r\n", self.method, job.address);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if self.method != "GET" {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        [text.into_bytes(), body.into_bytes()].concat()
    }
}

/// What one connection saw; latencies in microseconds.
#[derive(Default)]
struct Seen {
    latencies: Vec<u32>,
    wrong: u64,
    first_wrong: Option<String>,
}

#[derive(Serialize)]
struct Summary {
    requests: usize,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    wrong: u64,
    first_wrong: Option<String>,
}

/// A request of `open`.
struct Sent {
    /// When, since the beginning.
    at: Duration,
    took: Duration,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Admitted,
    /// 503 with `Retry-After`.
    Refused,
    /// 503 without it.
    Rebuffed,
    Wrong,
}

#[derive(Serialize)]
struct Fared {
    requests: usize,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

#[derive(Serialize)]
struct Open {
    per_second: f64,
    /// Share of requests that were sent later than drawn, because their connection waited.
    late: f64,
    admitted: Fared,
    refused: Fared,
    without_retry_after: usize,
    wrong: usize,
    first_wrong: Option<String>,
    /// The same by the second in which requests were sent.
    seconds: Vec<(Fared, Fared)>,
    /// The same of all those after the first second.
    later: (Fared, Fared),
}

#[derive(Serialize)]
struct Once {
    first_byte_ms: f64,
    total_ms: f64,
    bytes: usize,
    status: u16,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["http", path] => on_runtime(load(read_job(path)?)),
        ["open", path] => on_runtime(open(read_job(path)?)),
        ["once", path] => on_runtime(once(read_job(path)?)),
        ["bcrypt", threads, seconds] => bcrypt_alone(threads.parse()?, Duration::from_secs_f64(seconds.parse()?)),
        ["pauses", threads, seconds] => pauses(threads.parse()?, Duration::from_secs_f64(seconds.parse()?)),
        _ => anyhow::bail!("usage: load http|open|once JOB.json | load bcrypt|pauses THREADS SECONDS"),
    }
}

fn read_job(path: &str) -> anyhow::Result<Job> {
    let mut job: Job = serde_json::from_slice(&std::fs::read(path)?)?;
    for request in &mut job.requests {
        if let Some(path) = &request.body_file {
            request.body = std::fs::read_to_string(path)?;
        }
    }
    anyhow::ensure!(!job.requests.is_empty(), "a job without requests");
    job.fixed = job.requests.iter().map(|request| (!request.varies()).then(|| request.bytes(&job, ""))).collect();
    Ok(job)
}

fn on_runtime(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

async fn load(job: Job) -> anyhow::Result<()> {
    let job = Arc::new(job);
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(job.seconds);
    let tasks: Vec<_> =
        (0..job.connections.max(1)).map(|number| tokio::spawn(connection(job.clone(), number, end))).collect();
    let mut all = Seen::default();
    for task in tasks {
        let seen = task.await??;
        all.latencies.extend(seen.latencies);
        all.wrong += seen.wrong;
        all.first_wrong = all.first_wrong.or(seen.first_wrong);
    }
    let seconds = begin.elapsed().as_secs_f64();
    all.latencies.sort_unstable();
    let at = |share: f64| {
        let place = (all.latencies.len() as f64 * share) as usize;
        f64::from(all.latencies.get(place.min(all.latencies.len().saturating_sub(1))).copied().unwrap_or(0)) / 1000.0
    };
    let summary = Summary {
        requests: all.latencies.len(),
        per_second: all.latencies.len() as f64 / seconds,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
        max_ms: at(1.0),
        wrong: all.wrong,
        first_wrong: all.first_wrong,
    };
    println!("{}", serde_json::to_string(&summary)?);
    Ok(())
}

async fn connection(job: Arc<Job>, number: usize, end: Instant) -> anyhow::Result<Seen> {
    let mut wire = Wire::open(&job.address).await?;
    let mut seen = Seen::default();
    let mut value = job.initial.get(number).cloned().unwrap_or_default();
    // Each connection begins elsewhere and strides, so that neighbours on the wire ask for different roles.
    let mut turn = number * 37;
    // At least one request, however short the time.
    loop {
        let request = &job.requests[turn % job.requests.len()];
        let sent = Instant::now();
        job.send(&mut wire, turn % job.requests.len(), &value).await?;
        let head = wire.head().await?;
        let body = wire.body(&head).await?;
        seen.latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        if head.status != request.status || !contains(body, request.expect.as_bytes()) {
            seen.wrong += 1;
            if seen.first_wrong.is_none() {
                let body = String::from_utf8_lossy(&body[..body.len().min(300)]);
                let asked = format!("{} {}", request.method, request.path);
                seen.first_wrong =
                    Some(format!("{asked}: {} {body}; wanted {} {}", head.status, request.status, request.expect));
            }
        } else if let Some(name) = &request.capture {
            let answer: serde_json::Value = serde_json::from_slice(body)?;
            value = answer.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        }
        turn += 1;
        let close = head.close;
        wire.done();
        if close {
            wire = Wire::open(&job.address).await?;
        }
        if Instant::now() >= end {
            return Ok(seen);
        }
        if job.pause_ms > 0 {
            tokio::time::sleep(Duration::from_millis(job.pause_ms)).await;
        }
    }
}

fn fared<'a>(sent: impl Iterator<Item = &'a Sent>) -> Fared {
    let mut times: Vec<Duration> = sent.map(|sent| sent.took).collect();
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    Fared { requests: times.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
}

async fn open(job: Job) -> anyhow::Result<()> {
    anyhow::ensure!(job.rate > 0.0, "a job without a rate");
    let job = Arc::new(job);
    // Connecting is no part of what is measured.
    let mut wires = Vec::new();
    for _ in 0..job.connections.max(1) {
        wires.push(Wire::open(&job.address).await?);
    }
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(job.seconds);
    let tasks = wires.into_iter().enumerate();
    let tasks: Vec<_> =
        tasks.map(|(number, wire)| tokio::spawn(at_a_rate(job.clone(), wire, number, begin, end))).collect();
    let (mut all, mut late, mut first_wrong) = (Vec::new(), 0, None);
    for task in tasks {
        let (sent, of_late, wrong) = task.await??;
        all.extend(sent);
        late += of_late;
        first_wrong = first_wrong.or(wrong);
    }
    let of = |all: &[Sent]| {
        let with = |outcome: &[Outcome]| fared(all.iter().filter(|sent| outcome.contains(&sent.outcome)));
        (with(&[Outcome::Admitted]), with(&[Outcome::Refused, Outcome::Rebuffed]))
    };
    let number_of = |outcome| all.iter().filter(|sent| sent.outcome == outcome).count();
    let (without_retry_after, wrong) = (number_of(Outcome::Rebuffed), number_of(Outcome::Wrong));
    let (admitted, refused) = of(&all);
    let (per_second, late) = (all.len() as f64 / job.seconds, late as f64 / all.len().max(1) as f64);
    all.sort_unstable_by_key(|sent| sent.at);
    let later = of(&all[all.partition_point(|sent| sent.at.as_secs() == 0)..]);
    let seconds = all.chunk_by(|a, b| a.at.as_secs() == b.at.as_secs()).map(of).collect();
    let open = Open { per_second, late, admitted, refused, without_retry_after, wrong, first_wrong, seconds, later };
    println!("{}", serde_json::to_string(&open)?);
    Ok(())
}

/// Requests of one connection; how many were late, and the first wrong answer.
async fn at_a_rate(
    job: Arc<Job>,
    mut wire: Wire,
    number: usize,
    begin: Instant,
    end: Instant,
) -> anyhow::Result<(Vec<Sent>, usize, Option<String>)> {
    use rand::{Rng as _, SeedableRng as _};
    let mut random = rand::rngs::StdRng::seed_from_u64(number as u64);
    let mean = job.connections.max(1) as f64 / job.rate;
    let mut pause = || Duration::from_secs_f64(-mean * (1.0 - random.random::<f64>()).ln());
    let (mut sent, mut late, mut first_wrong) = (Vec::new(), 0, None);
    let mut turn = number * 37;
    let mut next = begin + pause();
    while next < end {
        let now = Instant::now();
        if now < next {
            tokio::time::sleep_until(next.into()).await;
        } else {
            late += 1;
            // What could not be sent in time is not made up for: the rate is a rate, no backlog.
            next = now;
        }
        let (request, asked) = (&job.requests[turn % job.requests.len()], Instant::now());
        job.send(&mut wire, turn % job.requests.len(), "").await?;
        let head = wire.head().await?;
        let body = wire.body(&head).await?;
        let outcome = match head.status {
            status if status == request.status && contains(body, request.expect.as_bytes()) => Outcome::Admitted,
            503 if head.retry_after => Outcome::Refused,
            503 => Outcome::Rebuffed,
            status => {
                let body = String::from_utf8_lossy(&body[..body.len().min(300)]);
                first_wrong.get_or_insert_with(|| format!("{} {}: {status} {body}", request.method, request.path));
                Outcome::Wrong
            }
        };
        sent.push(Sent { at: asked - begin, took: asked.elapsed(), outcome });
        turn += 1;
        let close = head.close;
        wire.done();
        if close {
            wire = Wire::open(&job.address).await?;
        }
        next += pause();
    }
    Ok((sent, late, first_wrong))
}

async fn once(job: Job) -> anyhow::Result<()> {
    let request = &job.requests[0];
    let bytes = request.bytes(&job, "");
    let mut wire = Wire::open(&job.address).await?;
    let begin = Instant::now();
    wire.send(&bytes).await?;
    let head = wire.head().await?;
    if wire.kept.len() == head.length_of_head && !matches!(head.content, Content::Length(0)) {
        wire.fill().await?;
    }
    let first = begin.elapsed();
    let bytes = wire.body(&head).await?.len();
    let total = begin.elapsed();
    let answer = Once {
        first_byte_ms: first.as_secs_f64() * 1000.0,
        total_ms: total.as_secs_f64() * 1000.0,
        bytes,
        status: head.status,
    };
    println!("{}", serde_json::to_string(&answer)?);
    anyhow::ensure!(head.status == request.status, "status {} instead of {}", head.status, request.status);
    Ok(())
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    part.is_empty() || body.windows(part.len()).any(|window| window == part)
}

struct Head {
    status: u16,
    length_of_head: usize,
    content: Content,
    close: bool,
    retry_after: bool,
}

enum Content {
    Length(usize),
    Chunked,
}

/// A connection and what has arrived on it of the current response.
struct Wire {
    stream: TcpStream,
    kept: Vec<u8>,
    joined: Vec<u8>,
    used: usize,
}

impl Wire {
    async fn open(address: &str) -> io::Result<Wire> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, kept: Vec::with_capacity(16_384), joined: Vec::new(), used: 0 })
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.kept.reserve(65_536);
        match self.stream.read_buf(&mut self.kept).await? {
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            _ => Ok(()),
        }
    }

    async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some(place) = find(&self.kept, b"\r\n\r\n", 0) {
                let text = String::from_utf8_lossy(&self.kept[..place]).to_ascii_lowercase();
                return parse_head(&text, place + 4);
            }
            self.fill().await?;
        }
    }

    async fn body(&mut self, head: &Head) -> io::Result<&[u8]> {
        match head.content {
            Content::Length(length) => {
                let end = head.length_of_head + length;
                while self.kept.len() < end {
                    self.fill().await?;
                }
                self.used = end;
                Ok(&self.kept[head.length_of_head..end])
            }
            Content::Chunked => {
                self.joined.clear();
                // Taken chunks leave the buffer, so that a large body is moved once and not searched again.
                self.kept.drain(..head.length_of_head);
                let mut place = 0;
                loop {
                    let Some(line) = find(&self.kept, b"\r\n", place) else {
                        self.fill().await?;
                        continue;
                    };
                    let digits = String::from_utf8_lossy(&self.kept[place..line]);
                    let size = usize::from_str_radix(digits.trim(), 16)
                        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "a chunk without its size"))?;
                    let end = line + 2 + size + 2;
                    while self.kept.len() < end {
                        self.fill().await?;
                    }
                    if size == 0 {
                        self.used = end;
                        return Ok(&self.joined);
                    }
                    self.joined.extend_from_slice(&self.kept[line + 2..line + 2 + size]);
                    place = end;
                    if place > 1 << 20 {
                        self.kept.drain(..place);
                        place = 0;
                    }
                }
            }
        }
    }

    /// Forgets the response that was read.
    fn done(&mut self) {
        self.kept.drain(..self.used);
        self.used = 0;
    }
}

fn parse_head(text: &str, length_of_head: usize) -> io::Result<Head> {
    let invalid = |what| io::Error::new(ErrorKind::InvalidData, what);
    let status: u16 =
        text.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(|| invalid("a response without status"))?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let content = if field("transfer-encoding:") == Some("chunked") {
        Content::Chunked
    } else if let Some(length) = field("content-length:") {
        Content::Length(length.parse().map_err(|_| invalid("a length that is no number"))?)
    } else {
        Content::Length(0)
    };
    Ok(Head {
        status,
        length_of_head,
        content,
        close: field("connection:") == Some("close"),
        retry_after: field("retry-after:").is_some(),
    })
}

fn find(bytes: &[u8], part: &[u8], from: usize) -> Option<usize> {
    bytes[from..].windows(part.len()).position(|window| window == part).map(|place| place + from)
}

/// What these cores do of bcrypt when nothing else is in the way: the measure of password sign-in.
fn bcrypt_alone(threads: usize, time: Duration) -> anyhow::Result<()> {
    let hash = bcrypt::hash("correct horse battery", 10)?;
    let begin = Instant::now();
    let counts: Vec<_> = (0..threads)
        .map(|_| {
            let hash = hash.clone();
            std::thread::spawn(move || {
                let mut count = 0_u64;
                while begin.elapsed() < time {
                    match bcrypt::verify("correct horse battery", &hash) {
                        Ok(true) => count += 1,
                        _ => return None,
                    }
                }
                Some(count)
            })
        })
        .collect();
    let mut total = 0;
    for thread in counts {
        total += thread.join().ok().flatten().ok_or_else(|| anyhow::anyhow!("bcrypt refused its own hash"))?;
    }
    println!("{{\"per_second\":{}}}", total as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

/// From so long a thread that only looks at the clock has stood still.
const PAUSE: Duration = Duration::from_micros(200);

#[derive(Serialize)]
struct Pauses {
    /// Of all threads' time.
    share: f64,
    longest_ms: f64,
}

fn pauses(threads: usize, time: Duration) -> anyhow::Result<()> {
    let watch = move || {
        let begin = Instant::now();
        let (mut last, mut sum, mut longest) = (begin, Duration::ZERO, Duration::ZERO);
        while last - begin < time {
            let now = Instant::now();
            let gap = now - last;
            if gap > PAUSE {
                sum += gap;
                longest = longest.max(gap);
            }
            last = now;
        }
        (sum, longest)
    };
    let watching: Vec<_> = (0..threads).map(|_| std::thread::spawn(watch)).collect();
    let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
    for thread in watching {
        let (paused, most) = thread.join().map_err(|_| anyhow::anyhow!("a watching thread ended early"))?;
        sum += paused;
        longest = longest.max(most);
    }
    let share = sum.as_secs_f64() / (time.as_secs_f64() * threads as f64);
    println!("{}", serde_json::to_string(&Pauses { share, longest_ms: longest.as_secs_f64() * 1000.0 })?);
    Ok(())
}
