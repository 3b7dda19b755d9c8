//! HTTP/2 on an encrypted connection.
//!
//! The HTTP library's own dispatcher works on when a client has given a request up or the connection is gone. Here such a request is dropped
//! at once, as over HTTP/1.1: what it waits for is cancelled and freed. For the rest a request is the same as one of HTTP/1.1:
//! its host is a header, and its target has only path and query.
//!
//! There are limits on concurrent requests, the size of heads, unread request bodies, requests that the client resets, responses that it
//! does not read, and idle connections.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use ::h2::server::{Connection, SendResponse};
use ::h2::{Reason, RecvStream, SendStream};
use actix_http::error::{DispatchError, PayloadError};
use actix_http::{BoxedPayloadStream, HttpMessage as _, Payload, Request, Response};
use actix_service::Service;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, DATE, HOST, HeaderMap, HeaderName, HeaderValue, HttpDate, TRANSFER_ENCODING,
    UPGRADE,
};
use actix_web::http::{Method, StatusCode, Uri};
use bytes::Bytes;
use futures_util::stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::connection::{HEAD_TIMEOUT, KEEP_ALIVE, LINGER, Secure};

/// The most requests of one connection at a time.
const MOST_STREAMS: u32 = 128;
/// The most bytes of a request's head, as the parser of HTTP/1.1 allows.
const LONGEST_HEAD: u32 = 128 << 10;
/// How much of a body a client may send before it is read: for one request, and for all of a connection.
const WINDOW: (u32, u32) = (1 << 20, 4 << 20);
/// How much of an answer is handed to the library at once.
const CHUNK: usize = 64 << 10;
/// How many requests of one connection the client may reset within this time. Browsers reset all pending requests when a page is left.
/// More than that is an attack: starting and cancelling a request costs the server more than the client.
const MOST_GIVEN_UP: (u32, Duration) = (1000, Duration::from_secs(10));

/// Not in HTTP/2.
const KEEP_ALIVE_HEADER: HeaderName = HeaderName::from_static("keep-alive");

/// How long a connection waits for its client.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// For the first settings.
    pub opening: Duration,
    /// For the next request.
    pub idle: Duration,
    /// For the client to take more of an answer.
    pub stalled: Duration,
    /// For the client to close a connection after it was asked to, once nothing is under way.
    pub farewell: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { opening: HEAD_TIMEOUT, idle: KEEP_ALIVE, stalled: KEEP_ALIVE, farewell: HEAD_TIMEOUT }
    }
}

/// Counts requests that were given up.
#[derive(Debug)]
struct GivenUp {
    since: Instant,
    count: u32,
}

impl GivenUp {
    /// Counts another one. Whether there are too many.
    fn is_too_many(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) > MOST_GIVEN_UP.1 {
            *self = Self { since: now, count: 0 };
        }
        self.count += 1;
        self.count > MOST_GIVEN_UP.0
    }
}

/// Serves a connection to its end.
pub async fn serve<T, S, B>(
    service: Rc<S>,
    io: T,
    peer: Option<SocketAddr>,
    stopping: impl Future<Output = ()>,
    times: Times,
) -> Result<(), DispatchError>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request, Response = Response<B>> + 'static,
    S::Error: Into<Response<BoxBody>>,
    B: MessageBody + 'static,
{
    let mut settings = ::h2::server::Builder::new();
    settings
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(LONGEST_HEAD)
        .initial_window_size(WINDOW.0)
        .initial_connection_window_size(WINDOW.1);
    let opening = timeout(times.opening, settings.handshake(io)).await;
    let mut connection: Connection<T, Bytes> = opening.map_err(|_| DispatchError::SlowRequestTimeout)??;
    let mut stopping = pin!(stopping);
    let is_closing = Rc::new(Cell::new(false));
    // Requests under way. They are dropped with it.
    let mut answering = JoinSet::new();
    let (mut is_stopping, mut last) = (false, Instant::now());
    // The first request's head has the time that it has over HTTP/1.1.
    let mut idle = times.opening;
    let mut given_up = GivenUp { since: last, count: 0 };
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(accepted) = accepted else { break };
                let (request, mut respond) = accepted?;
                (last, idle) = (Instant::now(), times.idle);
                if is_ambiguous(&request) {
                    refuse(&mut respond);
                    continue;
                }
                let (service, is_closing) = (service.clone(), is_closing.clone());
                answering.spawn_local(async move {
                    let (request, is_head) = received(request, peer);
                    let sent = answer(&*service, request, respond, is_head, &is_closing, times.stalled).await;
                    if let Err(error) = &sent {
                        tracing::debug!(%error, "an answer over HTTP/2 was not sent");
                    }
                    sent
                });
            }
            Some(sent) = answering.join_next() => {
                last = Instant::now();
                if matches!(sent, Ok(Err(Unsent::GivenUp(_)))) && given_up.is_too_many(last) {
                    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                    break;
                }
                if is_closing.get() && !is_stopping {
                    is_stopping = true;
                    connection.graceful_shutdown();
                }
            }
            () = &mut stopping, if !is_stopping => {
                (is_stopping, last) = (true, Instant::now());
                connection.graceful_shutdown();
            }
            () = sleep_until(last + idle), if !is_stopping && answering.is_empty() => {
                (is_stopping, last) = (true, Instant::now());
                connection.graceful_shutdown();
            }
            // The client has not answered the GOAWAY.
            () = sleep_until(last + times.farewell), if is_stopping && answering.is_empty() => break,
        }
    }
    // The last answers may still have to be written.
    let _ = timeout(LINGER, poll_fn(|context| connection.poll_closed(context))).await;
    Ok(())
}

/// Whether the request names more than one host, or user information. A proxy that reads another name than we do would route or cache it
/// as a request to another host.
fn is_ambiguous(request: &http_0_2::Request<RecvStream>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, authority) = (hosts.next(), request.uri().authority());
    hosts.next().is_some()
        || authority.is_some_and(|authority| {
            authority.as_str().contains('@')
                || host.is_some_and(|host| !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()))
        })
}

fn refuse(respond: &mut SendResponse<Bytes>) {
    let mut head = http_0_2::Response::new(());
    *head.status_mut() = StatusCode::BAD_REQUEST;
    if let Err(error) = respond.send_response(head, true) {
        tracing::debug!(%error, "a refusal over HTTP/2 was not sent");
    }
}

/// The request in the form that one of HTTP/1.1 has, and whether its answer has no body.
fn received(request: http_0_2::Request<RecvStream>, peer: Option<SocketAddr>) -> (Request, bool) {
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    // In HTTP/2 only the frames tell that a body follows. CONNECT has none unless it announces one.
    let is_unannounced =
        !body.is_end_stream() && !parts.headers.contains_key(CONTENT_LENGTH) && parts.method != Method::CONNECT;
    let body: BoxedPayloadStream = Box::pin(stream::unfold(body, async |mut body| {
        let part = match body.data().await? {
            Ok(part) => body.flow_control().release_capacity(part.len()).map(|()| part),
            Err(error) => Err(error),
        };
        Some((part.map_err(PayloadError::Http2Payload), body))
    }));
    let mut request = Request::with_payload(Payload::Stream { payload: body });
    request.extensions_mut().insert(Secure);
    let head = request.head_mut();
    head.method = parts.method;
    head.version = parts.version;
    head.headers = parts.headers.into();
    head.peer_addr = peer;
    join_cookies(&mut head.headers);
    if is_unannounced {
        head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if let Some(authority) = parts.uri.authority()
        && !head.headers.contains_key(HOST)
        && let Ok(value) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, value);
    }
    head.uri = match parts.uri.path_and_query() {
        Some(target) => Uri::from(target.clone()),
        None => parts.uri,
    };
    (request, is_head)
}

/// Clients may send each cookie in a field of its own, which other protocols do not allow (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let fields: Vec<&[u8]> = headers.get_all(COOKIE).map(HeaderValue::as_bytes).collect();
    if fields.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&fields.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

/// Why an answer was not sent.
#[derive(Debug, thiserror::Error)]
enum Unsent {
    #[error("the client has given it up: {0}")]
    GivenUp(Reason),
    #[error("the client takes nothing of it")]
    Stalled,
    #[error(transparent)]
    Connection(#[from] ::h2::Error),
    #[error("its body failed: {0}")]
    Body(String),
}

/// Lets the application answer. Whatever it does is dropped when the client gives the request up.
async fn answer<S, B>(
    service: &S,
    request: Request,
    mut respond: SendResponse<Bytes>,
    is_head: bool,
    is_closing: &Cell<bool>,
    stalled: Duration,
) -> Result<(), Unsent>
where
    S: Service<Request, Response = Response<B>>,
    S::Error: Into<Response<BoxBody>>,
    B: MessageBody,
{
    let answered = tokio::select! {
        reason = poll_fn(|context| respond.poll_reset(context)) => return Err(Unsent::GivenUp(reason?)),
        answered = service.call(request) => answered,
    };
    match answered {
        Ok(answer) => send(answer, respond, is_head, is_closing, stalled).await,
        Err(error) => send(error.into(), respond, is_head, is_closing, stalled).await,
    }
}

async fn send<B: MessageBody>(
    answer: Response<B>,
    mut respond: SendResponse<Bytes>,
    is_head: bool,
    is_closing: &Cell<bool>,
    stalled: Duration,
) -> Result<(), Unsent> {
    if !answer.head().keep_alive() {
        is_closing.set(true);
    }
    let (answer, body) = answer.into_parts();
    let size = match answer.status() {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => BodySize::None,
        _ => body.size(),
    };
    let is_empty = is_head || size.is_eof();
    let mut sending = respond.send_response(head_of(&answer, size), is_empty)?;
    if is_empty {
        return Ok(());
    }
    let mut body = pin!(body);
    loop {
        let part = tokio::select! {
            reason = poll_fn(|context| sending.poll_reset(context)) => return Err(Unsent::GivenUp(reason?)),
            part = poll_fn(|context| body.as_mut().poll_next(context)) => part,
        };
        match part {
            Some(Ok(part)) => send_part(&mut sending, part, stalled).await?,
            Some(Err(error)) => {
                let error: Box<dyn std::error::Error> = error.into();
                sending.send_reset(Reason::INTERNAL_ERROR);
                return Err(Unsent::Body(error.to_string()));
            }
            None => return Ok(sending.send_data(Bytes::new(), true)?),
        }
    }
}

/// Sends as much as the client's window allows, until all is sent. If the window stays closed for as long as `stalled`, the response is
/// reset, so that clients cannot keep responses in memory.
async fn send_part(sending: &mut SendStream<Bytes>, mut part: Bytes, stalled: Duration) -> Result<(), Unsent> {
    while !part.is_empty() {
        sending.reserve_capacity(part.len().min(CHUNK));
        let Ok(room) = timeout(stalled, poll_fn(|context| sending.poll_capacity(context))).await else {
            sending.send_reset(Reason::CANCEL);
            return Err(Unsent::Stalled);
        };
        match room {
            Some(room) => sending.send_data(part.split_to(room?.min(part.len())), false)?,
            None => return Err(Unsent::GivenUp(Reason::CANCEL)),
        }
    }
    Ok(())
}

/// The head of an answer, without what HTTP/2 does not know.
fn head_of(answer: &Response<()>, size: BodySize) -> http_0_2::Response<()> {
    let mut head = http_0_2::Response::new(());
    *head.status_mut() = answer.status();
    *head.version_mut() = http_0_2::Version::HTTP_2;
    let headers = head.headers_mut();
    for (name, value) in answer.headers() {
        if ![CONNECTION, TRANSFER_ENCODING, UPGRADE, KEEP_ALIVE_HEADER].contains(name) {
            headers.append(name, value.clone());
        }
    }
    if let BodySize::Sized(length) = size {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if !headers.contains_key(DATE)
        && let Ok(now) = HeaderValue::try_from(HttpDate::from(SystemTime::now()).to_string())
    {
        headers.insert(DATE, now);
    }
    head
}

#[cfg(test)]
mod tests;
