//! A raw HTTP client that sends the target byte for byte, as no URL library would.

#![allow(clippy::expect_used)]

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A whole answer. Header names are lower case.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,

    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// All values of a header, joined as HTTP prescribes.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One request on a connection of its own.
pub async fn send(address: &str, method: &str, target: &str, headers: &[(String, String)], body: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.expect("the server accepts");
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: sky.example\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("received");
    parse(&answer)
}

/// Requests a tunnel but neither sends anything through it nor closes, so this hangs if the server waits for more. The
/// answer must be complete and the connection must end with it. `head` is the request's head without `Host`.
#[allow(dead_code, reason = "of the programs with this file, not all ask for tunnels")]
pub async fn tunnel(address: &str, head: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.expect("the server accepts");
    let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let request = format!("{line} HTTP/1.1\r\nHost: sky.example\r\n{headers}\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the server ends the connection");
    let reply = parse(&answer);
    assert_eq!(reply.header("connection").as_deref(), Some("close"), "{head}");
    let length = reply.header("content-length").and_then(|length| length.parse().ok());
    assert!(length.is_none_or(|length: usize| length == reply.body.len()), "{head}: {length:?}, {}", reply.text());
    reply
}

/// The headers of tunnel and upgrade requests.
#[allow(dead_code, reason = "as above")]
pub const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

/// Parses these bytes as an answer.
pub fn parse(answer: &[u8]) -> Reply {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut status_line = lines.next().expect("a status line").splitn(3, ' ').skip(1);
    let status = status_line.next().and_then(|code| code.parse().ok()).expect("a status");

    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let body = &answer[end + 4..];
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if is_chunked { unchunk(body) } else { body.to_vec() };
    Reply { status, headers, body }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]);
        let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
        let start = end + 2;
        if size == 0 || start + size > rest.len() {
            break;
        }
        body.extend_from_slice(&rest[start..start + size]);
        rest = &rest[(start + size + 2).min(rest.len())..];
    }
    body
}
