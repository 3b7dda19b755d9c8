//! HTTP requests of statements that wait for the answer (extension `http`).
//!
//! From within a statement PostgreSQL can only reach the server as it reaches another database. So the server listens beside
//! PostgreSQL's own socket and speaks its protocol, with JSON in place of SQL: the text of a query is a request, the one row of its
//! result the answer. The extension's function connects with dblink's code. Only PostgreSQL's user can open the socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::net;
use super::outbound::Outbound;

/// The socket's name: libpq derives it from a port, and the extension's function names this one.
pub const SOCKET: &str = ".s.PGSQL.80";
/// The most requests at once. Each holds a connection to the database, which has others to serve.
const AT_ONCE: usize = 32;
/// The longest timeout of a request.
const LONGEST: Duration = Duration::from_secs(60);
/// The most bytes of a request or an answer.
const LARGEST: usize = 16 << 20;
/// The most bytes of all answers that are being received.
const LARGEST_OF_ALL: usize = 64 << 20;
const REDIRECTS: usize = 5;
/// How long a connection may take to say what it wants.
const GREETING: Duration = Duration::from_secs(10);

const PROTOCOL_3: u32 = 3;
const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];
/// The type `text`.
const TEXT: u32 = 25;

#[derive(Deserialize)]
struct Asked {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    content_type: Option<String>,
    content: Option<String>,
    agent: String,
    /// `user:password`.
    login: Option<String>,
    milliseconds: u64,
}

#[derive(Serialize)]
struct Answer {
    status: u16,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    /// None if it is empty.
    content: Option<String>,
}

/// The listening socket. Dropping it ends the requests.
#[derive(Debug)]
pub struct Calls {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Caller {
    outbound: Outbound,
    following: reqwest::Client,
    /// For HEAD.
    staying: reqwest::Client,
    room: Semaphore,
    bytes: Semaphore,
}

impl Calls {
    /// Listens at `path`, which a killed server may have left behind.
    pub fn listen(path: &Path, outbound: Outbound) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let caller = Arc::new(Caller {
            following: net::client(&outbound, REDIRECTS)?,
            staying: net::client(&outbound, 0)?,
            outbound,
            room: Semaphore::new(AT_ONCE),
            bytes: Semaphore::new(LARGEST_OF_ALL),
        });
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let caller = Arc::clone(&caller);
                        connections.spawn(async move {
                            if let Err(error) = serve(stream, &caller).await {
                                tracing::debug!(%error, "a statement's connection ended");
                            }
                        });
                    }
                    // Out of descriptors, for example.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { path: path.to_owned(), task })
    }
}

/// One statement's connection.
async fn serve(mut stream: UnixStream, caller: &Caller) -> std::io::Result<()> {
    let mut greeting = tokio::time::timeout(GREETING, message(&mut stream)).await??;
    while ENCRYPTION_REQUESTS.contains(&version(&greeting)) {
        stream.write_all(b"N").await?;
        greeting = tokio::time::timeout(GREETING, message(&mut stream)).await??;
    }
    if version(&greeting) >> 16 != PROTOCOL_3 {
        // A request to cancel, for example: statements cancel by closing the connection.
        return Ok(());
    }
    let mut out = BytesMut::new();
    put(&mut out, b'R', |out| out.put_u32(0));
    for (name, value) in [("client_encoding", "UTF8"), ("server_encoding", "UTF8"), ("server_version", "18.0")] {
        put(&mut out, b'S', |out| {
            put_text(out, name);
            put_text(out, value);
        });
    }
    ready(&mut out);
    stream.write_all(&out).await?;
    loop {
        let kind = match stream.read_u8().await {
            Ok(kind) => kind,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let text = message(&mut stream).await?;
        out.clear();
        match kind {
            b'Q' => {
                let text = text.strip_suffix(b"\0").unwrap_or(&text);
                let outcome = tokio::select! {
                    outcome = call(caller, text) => outcome,
                    // The statement was cancelled.
                    _ = stream.read_u8() => return Ok(()),
                };
                match outcome {
                    Ok(answer) => put_row(&mut out, &serde_json::to_string(&answer)?),
                    Err(reason) => put_error(&mut out, "XX000", &reason),
                }
            }
            b'X' => return Ok(()),
            _ => put_error(&mut out, "0A000", "only requests are answered here"),
        }
        ready(&mut out);
        stream.write_all(&out).await?;
    }
}

fn version(greeting: &[u8]) -> u32 {
    greeting.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The body of a message; its length, which counts itself, comes first.
async fn message(stream: &mut UnixStream) -> std::io::Result<Bytes> {
    let length = usize::try_from(stream.read_u32().await?).unwrap_or(usize::MAX);
    let length = length.checked_sub(4).filter(|length| *length <= LARGEST);
    let length = length.ok_or_else(|| std::io::Error::other("a message is too long"))?;
    let mut body = BytesMut::zeroed(length);
    stream.read_exact(&mut body).await?;
    Ok(body.freeze())
}

fn put(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(kind);
    let begin = out.len();
    out.put_u32(0);
    body(out);
    let length = u32::try_from(out.len() - begin).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(begin..begin + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

fn put_row(out: &mut BytesMut, value: &str) {
    put(out, b'T', |out| {
        out.put_u16(1);
        put_text(out, "answer");
        out.put_u32(0);
        out.put_u16(0);
        out.put_u32(TEXT);
        out.put_i16(-1);
        out.put_i32(-1);
        out.put_u16(0);
    });
    put(out, b'D', |out| {
        out.put_u16(1);
        out.put_u32(u32::try_from(value.len()).unwrap_or(0));
        out.put_slice(value.as_bytes());
    });
    put(out, b'C', |out| put_text(out, "SELECT 1"));
}

fn put_error(out: &mut BytesMut, code: &str, message: &str) {
    put(out, b'E', |out| {
        for (field, value) in [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', code), (b'M', message)] {
            out.put_u8(field);
            put_text(out, &value.replace('\0', ""));
        }
        out.put_u8(0);
    });
}

fn ready(out: &mut BytesMut) {
    put(out, b'Z', |out| out.put_u8(b'I'));
}

/// The error is worded as libcurl words it.
async fn call(caller: &Caller, text: &[u8]) -> Result<Answer, String> {
    let asked: Asked = serde_json::from_slice(text).map_err(|error| format!("the request cannot be read: {error}"))?;
    let url = caller.outbound.target(&asked.url)?;
    let method = reqwest::Method::from_bytes(asked.method.as_bytes())
        .map_err(|_| format!("Unsupported request method {}", asked.method))?;
    let client = if method == reqwest::Method::HEAD { &caller.staying } else { &caller.following };
    let mut request = client.request(method, url.clone()).header(reqwest::header::USER_AGENT, asked.agent);
    for (name, value) in asked.headers {
        request = request.header(name, value);
    }
    if let Some(content) = asked.content {
        request = request.header(reqwest::header::CONTENT_TYPE, asked.content_type.unwrap_or_default()).body(content);
    }
    if let Some(login) = asked.login {
        let (user, password) = login.split_once(':').unwrap_or((&login, ""));
        request = request.basic_auth(user, Some(password));
    }
    // As with libcurl, no limit is a limit of 0; here the longest.
    let limit = Duration::from_millis(asked.milliseconds);
    let limit = if limit.is_zero() { LONGEST } else { limit.min(LONGEST) };
    let begun = Instant::now();
    let mut received = 0;
    let answering = async {
        let _room = caller.room.acquire().await;
        answer(request, &caller.bytes, &mut received).await
    };
    match tokio::time::timeout(limit, answering).await {
        Ok(outcome) => outcome.map_err(|failure| failure.told(&url)),
        Err(_) => {
            let took = begun.elapsed().as_millis();
            Err(format!("Operation timed out after {took} milliseconds with {received} bytes received"))
        }
    }
}

enum Failure {
    Http(reqwest::Error),
    TooLarge,
    /// Together with the others.
    TooMuch,
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error)
    }
}

impl Failure {
    fn told(&self, url: &url::Url) -> String {
        let error = match self {
            Self::TooLarge => return format!("the answer is longer than {LARGEST} bytes"),
            Self::TooMuch => return "too many long answers are being received".to_owned(),
            Self::Http(error) => error,
        };
        let causes = crate::db::with_causes(error);
        let host = url.host_str().unwrap_or_default();
        if causes.contains("Connection refused") {
            let port = url.port_or_known_default().unwrap_or_default();
            format!("Failed to connect to {host} port {port}: Connection refused")
        } else if causes.contains("dns error") {
            format!("Could not resolve host: {host}")
        } else if error.is_redirect() {
            format!("Maximum ({REDIRECTS}) redirects followed")
        } else {
            causes
        }
    }
}

async fn answer(request: reqwest::RequestBuilder, bytes: &Semaphore, received: &mut usize) -> Result<Answer, Failure> {
    let response = request.send().await?;
    let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers();
    let content_type = headers.get(reqwest::header::CONTENT_TYPE).map(text);
    let headers = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let status = response.status().as_u16();
    let mut content = Vec::new();
    let mut held = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(part) = body.next().await {
        let part = part?;
        *received += part.len();
        if *received > LARGEST {
            return Err(Failure::TooLarge);
        }
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        held.push(bytes.try_acquire_many(length).map_err(|_| Failure::TooMuch)?);
        content.extend_from_slice(&part);
    }
    let content = as_text(content, content_type.as_deref().unwrap_or_default());
    Ok(Answer { status, content_type, headers, content: Some(content).filter(|text| !text.is_empty()) })
}

/// PostgreSQL's text cannot contain a zero byte, and only UTF-8.
fn as_text(content: Vec<u8>, content_type: &str) -> String {
    let is_latin = ["iso-8859-1", "latin1"].iter().any(|charset| content_type.to_ascii_lowercase().contains(charset));
    let text = if is_latin {
        content.iter().map(|byte| char::from(*byte)).collect()
    } else {
        String::from_utf8_lossy(&content).into_owned()
    };
    text.replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_bodies_become_text() {
        for (content, content_type, text) in [
            (&b"caf\xe9"[..], "text/plain; charset=ISO-8859-1", "café"),
            (b"caf\xc3\xa9\0", "text/plain", "café"),
            (b"caf\xe9", "application/json", "caf\u{fffd}"),
        ] {
            assert_eq!(as_text(content.to_vec(), content_type), text);
        }
    }
}
