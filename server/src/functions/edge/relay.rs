//! Relays a request to a function's process and its response back, streaming both bodies.

use std::cell::Cell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::http::header::{self, HeaderMap, HeaderName};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use super::error::RelayError;
use super::worker::{Ended, OpenRequest};
use super::{Edge, Received};
use crate::config::TrustedProxies;
use crate::http::client::client_address;
use crate::http::origin::Origin;
use crate::http::takeover::{self, Taken};
use crate::http::{bodies, cors};
use crate::jwt::bearer::{Bearer, BearerError};

/// Headers of a single connection (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const X_RELAY_ERROR: HeaderName = HeaderName::from_static("x-relay-error");

/// Headers that the server sets itself; a client's values are dropped.
const OURS: [HeaderName; 7] = [
    header::CONTENT_LENGTH,
    header::HOST,
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-path"),
    HeaderName::from_static("x-ferrobase-worker"),
];

/// How many parts of a body wait for the function.
const PARTS: usize = 4;
/// How much of a body is in memory, in bytes: those parts, one that was read and one that is being sent, each of up to 32 KiB.
const HELD: usize = (PARTS + 2) * (32 << 10);

/// How long a websocket may send the rest, once one side has closed it.
const LAST_BYTES: Duration = Duration::from_secs(5);

/// Answers a call of the function `slug`, or returns the relay's error. `received` counts until the answer has ended.
pub async fn call(
    edge: &Edge,
    tokens: &Bearer,
    slug: &str,
    request: &HttpRequest,
    body: web::Payload,
    received: Option<Received>,
) -> HttpResponse {
    match forward(edge, tokens, slug, request, body, received).await {
        Ok(response) => response,
        Err(error) => {
            let mut response = error.respond();
            cors::allow(response.headers_mut());
            response
        }
    }
}

async fn forward(
    edge: &Edge,
    tokens: &Bearer,
    slug: &str,
    request: &HttpRequest,
    body: web::Payload,
    received: Option<Received>,
) -> Result<HttpResponse, RelayError> {
    let inner = &edge.inner;
    let function = inner.function(slug).ok_or(RelayError::NotFound)?;
    if function.config.verify_jwt && request.method() != Method::OPTIONS {
        match tokens.caller(request.headers()) {
            Ok(_) => {}
            Err(BearerError::Missing) => return Err(RelayError::MissingToken),
            Err(BearerError::Invalid | BearerError::Expired) => return Err(RelayError::InvalidToken),
        }
    }
    let is_upgrade = wants_websocket(request.headers());
    let has_body = !is_upgrade
        && (request.headers().contains_key(header::TRANSFER_ENCODING)
            || request.headers().get(header::CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0"));
    let most = inner.config.limits.body.unwrap_or(u64::MAX);
    if has_body {
        let announced = announced(request);
        if announced.is_some_and(|length| length > most) {
            return Err(RelayError::TooLarge);
        }
        hand_on(request, announced).await?;
    }
    let turn = function.turns.take(client(request)).ok_or(RelayError::Crowded)?;
    let mut visit = inner.worker(&function).await?.enter(received, turn);
    let worker = Arc::clone(&visit.worker);
    // The function's own path begins with its name.
    let path = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let target = path.strip_prefix("/functions/v1").unwrap_or(path);
    let port = worker.port().ok_or(RelayError::Boot)?;
    let url = format!("http://127.0.0.1:{port}{target}");
    let method = reqwest::Method::from_bytes(request.method().as_str().as_bytes()).map_err(|_| RelayError::NotFound)?;
    let mut call = inner.http.request(method, url);
    for (name, value) in request.headers() {
        if is_passed_on(name) {
            call = call.header(name.as_str(), value.as_bytes());
        }
    }
    let proxies = request.app_data::<web::Data<TrustedProxies>>();
    let seen = Origin::of(request, proxies.map_or(&TrustedProxies::default(), |proxies| proxies));
    call = call
        .header("host", &seen.host)
        .header("x-ferrobase-worker", &worker.secret)
        .header("x-forwarded-host", &seen.host)
        .header("x-forwarded-proto", seen.scheme)
        .header("x-forwarded-path", request.path());
    let mut body = body;
    let mut rest = None;
    let is_too_large = Rc::new(Cell::new(false));
    if is_upgrade {
        call = call.header("connection", "upgrade").header("upgrade", "websocket");
        rest = Some(body);
    } else if has_body {
        if let Some(length) = request.headers().get(header::CONTENT_LENGTH) {
            call = call.header("content-length", length.as_bytes());
        }
        // The payload stays on this thread; the HTTP client reads from a channel.
        let (send, receive) = tokio::sync::mpsc::channel(PARTS);
        let exceeded = Rc::clone(&is_too_large);
        actix_web::rt::spawn(async move {
            let mut length = 0_u64;
            while let Some(part) = body.next().await {
                let mut part = part.map_err(|error| std::io::Error::other(error.to_string()));
                length += part.as_ref().map_or(0, |part| part.len() as u64);
                if length > most {
                    exceeded.set(true);
                    part = Err(std::io::Error::other("the body is too large"));
                }
                let is_end = part.is_err();
                if send.send(part).await.is_err() || is_end {
                    return;
                }
            }
        });
        let parts = futures_util::stream::unfold(receive, |mut receive| async move {
            let part: Result<Bytes, std::io::Error> = receive.recv().await?;
            Some((part, receive))
        });
        call = call.body(reqwest::Body::wrap_stream(parts));
    }
    let answered = tokio::select! {
        answered = call.send() => answered,
        () = tokio::time::sleep(worker.limits.response) => return Err(RelayError::Timeout),
    };
    let response = match answered {
        Ok(response) => response,
        Err(_) if is_too_large.get() => return Err(RelayError::TooLarge),
        Err(error) => {
            // The process may have ended before we are notified.
            let ended = tokio::time::timeout(Duration::from_millis(500), worker.ended()).await;
            tracing::warn!(function = slug, %error, ?ended, "an edge function did not answer");
            return Err(if ended == Ok(Ended::Limit) { RelayError::Limit } else { RelayError::Exited });
        }
    };
    visit.answers();
    Ok(match rest {
        Some(payload) if response.status() == reqwest::StatusCode::SWITCHING_PROTOCOLS => {
            tunnel(request, response, payload, visit, inner.closes_sockets.subscribe()).await?
        }
        _ => answer(response, visit),
    })
}

/// The length of the body, if the client says it.
fn announced(request: &HttpRequest) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

fn client(request: &HttpRequest) -> Option<IpAddr> {
    request.app_data::<web::Data<TrustedProxies>>().and_then(|proxies| client_address(request, proxies))
}

/// Lets the body of `request` be longer than others, because the function reads it as it arrives.
async fn hand_on(request: &HttpRequest, announced: Option<u64>) -> Result<(), RelayError> {
    let held = announced.and_then(|length| usize::try_from(length).ok()).map_or(HELD, |length| length.min(HELD));
    let has_room = bodies::hand_on(request, client(request), held).await;
    if has_room { Ok(()) } else { Err(RelayError::Busy) }
}

/// Whether a client's header is passed to the function.
fn is_passed_on(name: &HeaderName) -> bool {
    !HOP_BY_HOP.contains(name) && !OURS.contains(name)
}

fn wants_websocket(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The function's response, streamed byte for byte.
fn answer(response: reqwest::Response, visit: OpenRequest) -> HttpResponse {
    let status = StatusCode::from_u16(response.status().as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut builder = HttpResponse::build(status);
    let length = response.headers().get("content-length").and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    for pair in passed_back(&response) {
        builder.append_header(pair);
    }
    let has_type = response.headers().contains_key("content-type");
    let body = Answer { body: Box::pin(response.bytes_stream()), _visit: visit };
    if let Some(length) = length {
        builder.no_chunking(length);
    }
    let mut answer = builder.streaming(body);
    if !has_type {
        // Actix adds one, and clients would take a text for a file.
        answer.headers_mut().remove(header::CONTENT_TYPE);
    }
    answer
}

/// The headers of the function's response that are passed to the client.
fn passed_back(response: &reqwest::Response) -> impl Iterator<Item = (HeaderName, header::HeaderValue)> + '_ {
    response.headers().iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
        let value = header::HeaderValue::from_bytes(value.as_bytes()).ok()?;
        // Only the relay itself may set its error header.
        let is_passed = !HOP_BY_HOP.contains(&name) && name != X_RELAY_ERROR && name != header::CONTENT_LENGTH;
        is_passed.then_some((name, value))
    })
}

/// Both directions of an upgraded connection.
async fn tunnel(
    request: &HttpRequest,
    response: reqwest::Response,
    payload: web::Payload,
    visit: OpenRequest,
    closing: watch::Receiver<bool>,
) -> Result<HttpResponse, RelayError> {
    let mut head = actix_http::ResponseBuilder::new(StatusCode::SWITCHING_PROTOCOLS);
    for pair in passed_back(&response) {
        head.append_header(pair);
    }
    head.upgrade("websocket");
    let upgraded = response.upgrade().await.map_err(|error| {
        tracing::warn!(%error, "a websocket to an edge function was not opened");
        RelayError::Exited
    })?;
    let begin =
        move |taken| -> LocalBoxFuture<'static, ()> { Box::pin(carry(upgraded, payload, taken, visit, closing)) };
    takeover::answer(request, head, begin).ok_or(RelayError::Exited)
}

/// Runs until either side closes, or the server does; the worker counts as busy meanwhile.
async fn carry(
    mut function: reqwest::Upgraded,
    mut payload: web::Payload,
    taken: Taken,
    visit: OpenRequest,
    mut closing: watch::Receiver<bool>,
) {
    while let Some(Ok(part)) = payload.next().await {
        if function.write_all(&part).await.is_err() {
            return;
        }
    }
    if function.write_all(&taken.early).await.is_ok() {
        // The WebSocket's own close frame tells how it ended.
        tokio::select! {
            () = exchange(taken.wire, function, LAST_BYTES) => {}
            _ = closing.wait_for(|closes| *closes) => {}
        }
    }
    drop(visit);
}

/// Copies both directions. When one has ended, the other has a moment for the rest: the side that has gone may never say so.
async fn exchange(client: impl AsyncRead + AsyncWrite, function: impl AsyncRead + AsyncWrite, moment: Duration) {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_function, mut to_function) = tokio::io::split(function);
    // An error ends a direction as its end does.
    let up = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_function).await;
        let _ = to_function.shutdown().await;
    };
    let down = async {
        let _ = tokio::io::copy(&mut from_function, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::pin!(up, down);
    let in_time = tokio::select! {
        () = &mut up => tokio::time::timeout(moment, down).await,
        () = &mut down => tokio::time::timeout(moment, up).await,
    };
    if in_time.is_err() {
        tracing::debug!("a websocket of an edge function was closed by one side only");
    }
}

/// A response body that keeps its worker busy while it is read.
struct Answer<S> {
    body: Pin<Box<S>>,
    _visit: OpenRequest,
}

impl<S, E> Stream for Answer<S>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.body.as_mut().poll_next(cx).map(|part| part.map(|part| part.map_err(std::io::Error::other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::bodies::Bodies;
    use actix_web::HttpMessage as _;
    use actix_web::test::TestRequest;
    use tokio::io::AsyncReadExt as _;

    /// Regression: a body counted as a whole, so one that was longer than the budget was cut off.
    #[actix_web::test]
    async fn a_body_counts_only_with_what_is_held_of_it() {
        let bodies = Bodies::new(1 << 20);
        let proxies = web::Data::new(TrustedProxies::default());
        let begin = |client: &str| {
            let peer = format!("{client}:9").parse().expect("an address");
            let request = TestRequest::post().peer_addr(peer).app_data(proxies.clone()).to_http_request();
            request.extensions_mut().insert(bodies.lease(None));
            request
        };
        let requests = [begin("192.0.2.1"), begin("192.0.2.1"), begin("192.0.2.2")];
        for request in &requests {
            hand_on(request, None).await.expect("room");
            let lease = request.extensions().get::<std::rc::Rc<bodies::Lease>>().cloned().expect("a lease");
            assert!(lease.take(100 << 20), "however long it is");
        }
        assert_eq!(hand_on(&begin("192.0.2.1"), None).await, Err(RelayError::Busy), "a client has half of the room");
        hand_on(&begin("192.0.2.2"), None).await.expect("room for another client");
    }

    /// Regression: a websocket lasted until both sides had closed it, and a phone that is gone never does.
    #[tokio::test]
    async fn a_websocket_ends_when_one_side_has_closed_it() {
        for client_closes in [true, false] {
            let ((client, mut phone), (mut handler, function)) = (tokio::io::duplex(64), tokio::io::duplex(64));
            let exchanged = tokio::spawn(exchange(client, function, Duration::from_millis(200)));
            let (closing, open) = if client_closes { (&mut phone, &mut handler) } else { (&mut handler, &mut phone) };
            closing.write_all(b"bye").await.expect("sent");
            closing.shutdown().await.expect("closed");
            let mut heard = String::new();
            open.read_to_string(&mut heard).await.expect("its words, and the end");
            assert_eq!(heard, "bye");
            open.write_all(b"well").await.expect("sent");
            let mut last = [0; 4];
            closing.read_exact(&mut last).await.expect("the rest");
            assert_eq!(&last, b"well");
            // The other side is open still.
            exchanged.await.expect("the end");
        }
    }

    #[test]
    fn clients_cannot_set_the_servers_forwarding_headers() {
        for (name, is_passed) in [
            ("forwarded", false),
            ("x-forwarded-host", false),
            ("x-forwarded-proto", false),
            ("x-forwarded-path", false),
            ("x-ferrobase-worker", false),
            ("connection", false),
            ("x-forwarded-for", true),
            ("authorization", true),
        ] {
            assert_eq!(is_passed_on(&HeaderName::from_static(name)), is_passed, "{name}");
        }
    }
}
