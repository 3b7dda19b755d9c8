//! The load generator of `just bench realtime`: one thread with many WebSockets, and the twin that they are compared
//! with. Prints lines of JSON.
//!
//! ```text
//! sockets hold JOB.json        opens sockets, tells when all are open, and holds them until its input ends
//! sockets broadcast JOB.json   one sender, all others listen: how long each copy takes, and whether all came
//! sockets changes JOB.json     listens to changes of a table, tells when all are subscribed, and how long each took
//! sockets twin PORT            a server of the same library that passes a text of one socket to all others, and no more
//! ```
//!
//! A job is `{"url","count","plain","tokens":[…],"messages","pause_ms","bytes","table"}`; `plain`: the twin's sockets, which
//! join nothing.

use std::collections::HashMap;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_http::ws::{Codec, Frame, Parser, handshake};
use actix_web::web::{self, Payload};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, Stream, StreamExt};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// Sockets that are being opened at once.
const OPENING: usize = 64;
/// How long the last messages may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Job {
    url: String,
    count: usize,
    #[serde(default)]
    plain: bool,
    /// Whom each socket acts as, beside the key in the URL.
    #[serde(default)]
    tokens: Vec<String>,
    /// Sent in a broadcast, or changes to come.
    #[serde(default)]
    messages: usize,
    #[serde(default)]
    pause_ms: u64,
    /// Of a message.
    #[serde(default)]
    bytes: usize,
    #[serde(default)]
    table: String,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn main() -> anyhow::Result<()> {
    raise_descriptors()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words.as_slice() {
        ["hold", path] => runtime.block_on(hold(read_job(path)?)),
        ["broadcast", path] => runtime.block_on(broadcast(read_job(path)?)),
        ["changes", path] => runtime.block_on(changes(read_job(path)?)),
        ["twin", port] => actix_web::rt::System::new().block_on(twin(port.parse()?)),
        _ => anyhow::bail!("usage: sockets hold|broadcast|changes JOB.json | sockets twin PORT"),
    }
}

/// Every socket is a file.
fn raise_descriptors() -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

fn read_job(path: &str) -> anyhow::Result<Arc<Job>> {
    Ok(Arc::new(serde_json::from_slice(&std::fs::read(path)?)?))
}

/// Microseconds since 1970: of one clock for all programs of this machine.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

/// Opens a socket and joins its channel.
async fn open(job: Arc<Job>, number: usize) -> anyhow::Result<Socket> {
    let config = WebSocketConfig::default().read_buffer_size(4096).write_buffer_size(4096);
    let (mut socket, _) = connect_async_with_config(&job.url, Some(config), true).await?;
    if job.plain {
        return Ok(socket);
    }
    let mut wanted = json!({ "config": { "broadcast": {} } });
    if !job.table.is_empty() {
        wanted["config"]["postgres_changes"] = json!([{ "event": "INSERT", "schema": "public", "table": job.table }]);
    }
    if let Some(token) = job.tokens.get(number) {
        wanted["access_token"] = token.as_str().into();
    }
    let join = json!(["1", "1", "realtime:bench", "phx_join", wanted]);
    socket.send(Message::text(join.to_string())).await?;
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        let answer: Value = serde_json::from_str(&text)?;
        if answer[3] == "phx_reply" {
            anyhow::ensure!(answer[4]["status"] == "ok", "a join was refused: {text}");
            return Ok(socket);
        }
    }
    anyhow::bail!("the socket was closed before its join was answered")
}

async fn open_all(job: &Arc<Job>) -> anyhow::Result<Vec<Socket>> {
    let opening = futures_util::stream::iter(0..job.count)
        .map(|number| async move { open(Arc::clone(job), number).await.with_context(|| format!("socket {number}")) })
        .buffered(OPENING);
    opening.collect::<Vec<_>>().await.into_iter().collect()
}

async fn hold(job: Arc<Job>) -> anyhow::Result<()> {
    let sockets = open_all(&job).await?;
    println!("{}", json!({ "open": sockets.len() }));
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    drop(sockets);
    Ok(())
}

/// What the listeners saw.
#[derive(Default)]
struct Seen {
    latencies: Vec<u64>,
    missing: usize,
    disorder: usize,
}

impl Seen {
    fn print(mut self, more: Value) {
        self.latencies.sort_unstable();
        let last = self.latencies.len().saturating_sub(1);
        let at = |share: f64| {
            let place = ((last as f64) * share) as usize;
            self.latencies.get(place).copied().unwrap_or(0) as f64 / 1000.0
        };
        let mut summary = json!({
            "received": self.latencies.len(), "missing": self.missing, "disorder": self.disorder,
            "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0),
        });
        if let (Some(summary), Value::Object(more)) = (summary.as_object_mut(), more) {
            summary.extend(more);
        }
        println!("{summary}");
    }
}

/// Listens until `wanted` messages have come; `read` finds a message's number and when it was sent.
async fn listen(
    mut socket: SplitStream<Socket>,
    wanted: usize,
    read: fn(&str) -> Option<(usize, u64)>,
) -> (Vec<u64>, usize) {
    let (mut latencies, mut disorder) = (Vec::with_capacity(wanted), 0);
    let mut next = 0;
    let all = async {
        while latencies.len() < wanted
            && let Some(Ok(message)) = socket.next().await
        {
            let Message::Text(text) = message else { continue };
            if let Some((number, sent)) = read(&text) {
                latencies.push(now().saturating_sub(sent));
                disorder += usize::from(number != next);
                next = number + 1;
            }
        }
    };
    // What has not come by then is missing.
    let _ = tokio::time::timeout(ANSWER_TIMEOUT, all).await;
    (latencies, disorder)
}

async fn gather(
    sockets: Vec<SplitStream<Socket>>,
    wanted: usize,
    read: fn(&str) -> Option<(usize, u64)>,
    meanwhile: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Seen> {
    let count = sockets.len();
    let listening: Vec<_> = sockets.into_iter().map(|socket| tokio::spawn(listen(socket, wanted, read))).collect();
    meanwhile.await?;
    let mut seen = Seen::default();
    for task in listening {
        let (latencies, disorder) = task.await?;
        seen.latencies.extend(latencies);
        seen.disorder += disorder;
    }
    seen.missing = count * wanted - seen.latencies.len();
    Ok(seen)
}

/// `…<number>,<time>…` behind a mark that nothing else in the message has.
fn stamp(text: &str) -> Option<(usize, u64)> {
    let (_, rest) = text.split_once("stamp:")?;
    let (number, rest) = rest.split_once(',')?;
    let time = rest.split(';').next()?;
    Some((number.parse().ok()?, time.parse().ok()?))
}

async fn broadcast(job: Arc<Job>) -> anyhow::Result<()> {
    let mut sockets = open_all(&job).await?;
    let sender = sockets.pop().context("no socket to send with")?;
    let (mut sink, kept): (SplitSink<Socket, Message>, _) = sender.split();
    let (sinks, streams): (Vec<_>, Vec<_>) = sockets.into_iter().map(StreamExt::split).unzip();
    let sending = async {
        let mut pause = tokio::time::interval(Duration::from_millis(job.pause_ms.max(1)));
        for number in 0..job.messages {
            pause.tick().await;
            let text = format!("stamp:{number},{};{}", now(), "x".repeat(job.bytes));
            let payload = json!({ "type": "broadcast", "event": "e", "payload": { "text": text } });
            let message = json!(["1", "2", "realtime:bench", "broadcast", payload]);
            sink.send(Message::text(message.to_string())).await?;
        }
        Ok(())
    };
    let seen = gather(streams, job.messages, stamp, sending).await?;
    drop((sinks, kept));
    seen.print(json!({}));
    Ok(())
}

/// The row of a change holds its number and when it was written.
fn row(text: &str) -> Option<(usize, u64)> {
    let message: Value = serde_json::from_str(text).ok()?;
    let record = &message[4]["data"]["record"];
    (message[3] == "postgres_changes")
        .then(|| Some((usize::try_from(record["number"].as_u64()?).ok()?, record["written"].as_u64()?)))?
}

async fn changes(job: Arc<Job>) -> anyhow::Result<()> {
    let sockets = open_all(&job).await?;
    println!("{}", json!({ "open": sockets.len() }));
    let (sinks, streams): (Vec<_>, Vec<_>) = sockets.into_iter().map(StreamExt::split).unzip();
    let seen = gather(streams, job.messages, row, async { Ok(()) }).await?;
    drop(sinks);
    seen.print(json!({}));
    Ok(())
}

// The twin.

type Others = Arc<Mutex<HashMap<u64, UnboundedSender<Bytes>>>>;

/// Frames on their way to a socket.
struct Outgoing(UnboundedReceiver<Bytes>);

impl Stream for Outgoing {
    type Item = Result<Bytes, actix_web::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

async fn twin(port: u16) -> anyhow::Result<()> {
    let others = Others::default();
    let server =
        HttpServer::new(move || App::new().app_data(web::Data::new(others.clone())).default_service(web::to(pass)));
    Ok(server.bind(("127.0.0.1", port))?.run().await?)
}

async fn pass(request: HttpRequest, mut body: Payload, others: web::Data<Others>) -> HttpResponse {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Ok(mut response) = handshake(request.head()) else { return HttpResponse::Ok().finish() };
    let (out, outgoing) = unbounded_channel();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    others.lock().insert(number, out);
    actix_web::rt::spawn(async move {
        use actix_codec::Decoder as _;
        let (mut codec, mut buffer) = (Codec::new(), BytesMut::new());
        'socket: while let Some(Ok(bytes)) = body.next().await {
            buffer.extend_from_slice(&bytes);
            loop {
                match codec.decode(&mut buffer) {
                    Ok(Some(Frame::Text(text))) => {
                        let mut frame = BytesMut::new();
                        Parser::write_message(&mut frame, text, actix_http::ws::OpCode::Text, true, false);
                        let frame = frame.freeze();
                        for (_, other) in others.lock().iter().filter(|(other, _)| **other != number) {
                            let _ = other.send(frame.clone());
                        }
                    }
                    Ok(Some(Frame::Close(_))) | Err(_) => break 'socket,
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                }
            }
            if buffer.is_empty() {
                buffer = BytesMut::new();
            }
        }
        others.lock().remove(&number);
    });
    match response.message_body(actix_web::body::BodyStream::new(Outgoing(outgoing))) {
        Ok(response) => HttpResponse::from(response.map_into_boxed_body()),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}
