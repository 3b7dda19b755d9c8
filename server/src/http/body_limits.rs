//! Limits on request bodies: how long a client may delay the rest, how much of all bodies is in memory
//! ([`super::bodies`]), and where a body ends. (The HTTP library limits heads.) Also handles `CONNECT` and `Upgrade`:
//! only WebSocket is supported, at paths that end in its name. Any other such request is answered normally, and its
//! connection closed.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::{Payload, RequestHead, Service, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::HeaderValue;
use actix_web::http::{ConnectionType, Method, StatusCode, header};
use actix_web::web::Data;
use actix_web::{Error, HttpMessage as _};
use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep};

use super::bodies::{Bodies, Lease, no_room};
use super::client::client_address;
use crate::config::TrustedProxies;

/// The longest silence within a body.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for a whole body, extended by what has arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);
/// The minimum rates after that, in bytes per second: of a body collected in memory, and of one that is passed on.
const MIN_RATES: (u64, u64) = (64 << 10, 8 << 10);

/// Middleware (for `wrap_fn`) of every API: limits the body. For a request for a tunnel, the end of the connection
/// marks the end of the answer; the HTTP library closes it.
pub fn bound<S, B>(
    mut request: ServiceRequest,
    next: &S,
) -> impl Future<Output = Result<ServiceResponse<B>, Error>> + use<S, B>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    let is_tunnel = asks_for_tunnel(request.head());
    let lease = if is_tunnel && may_be_socket(request.head()) { None } else { bound_body(&mut request) };
    let answer = next.call(request);
    async move {
        let mut answer = answer.await?;
        if lease.is_some_and(|lease| lease.is_refused()) {
            let head = answer.response_mut().head_mut();
            head.status = StatusCode::SERVICE_UNAVAILABLE;
            head.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        if is_tunnel && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let head = answer.response_mut().head_mut();
            head.set_connection_type(ConnectionType::Close);
            // It would announce chunked encoding, but send no chunks.
            head.no_chunking(true);
        }
        Ok(answer)
    }
}

/// Makes the body of `request` fail if its sender is silent for half a minute (a slow sender may continue within
/// [`BODY_TIMEOUT`]) or if there is no room, and end at its announced length. Its share of the budget counts until the lease
/// is dropped.
fn bound_body(request: &mut ServiceRequest) -> Option<Rc<Lease>> {
    let body = request.take_payload();
    let left = end_of_tunnel(request.head());
    if matches!(body, Payload::None) || left == Some(0) {
        return None;
    }
    let proxies = request.app_data::<Data<TrustedProxies>>();
    let client = proxies.and_then(|proxies| client_address(request.request(), proxies));
    let lease = request.app_data::<Data<Bodies>>().map(|bodies| bodies.lease(client));
    if let Some(lease) = &lease {
        request.extensions_mut().insert(lease.clone());
    }
    let bounded = Bounded {
        body,
        left,
        silence_timeout: SILENCE_TIMEOUT,
        silence: None,
        begun: Instant::now(),
        received: 0,
        lease: lease.clone(),
        waiting: None,
    };
    request.set_payload(Payload::Stream { payload: Box::pin(bounded) });
    lease
}

fn asks_for_tunnel(head: &RequestHead) -> bool {
    head.method == Method::CONNECT || head.headers.contains_key(header::UPGRADE) || head.upgrade()
}

/// Whether the request may open a WebSocket. Its body is the rest of the stream: it has no end, and the socket handles
/// silence.
fn may_be_socket(head: &RequestHead) -> bool {
    let asks =
        head.headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    asks && head.method == Method::GET && head.uri.path().ends_with("/websocket")
}

/// The body's length where the HTTP library sees no end: it treats everything after CONNECT and
/// `Upgrade: websocket` as the body.
fn end_of_tunnel(head: &RequestHead) -> Option<usize> {
    if !asks_for_tunnel(head) || head.headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    let announced = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    Some(announced.unwrap_or_default())
}

/// Resolves to whether there is room for a part.
type Room = Pin<Box<dyn Future<Output = bool>>>;

struct Bounded {
    body: Payload,
    /// Remaining bytes, if they have to be counted.
    left: Option<usize>,
    silence_timeout: Duration,
    /// Started when there was nothing to read.
    silence: Option<Pin<Box<Sleep>>>,
    begun: Instant,
    /// Bytes so far.
    received: u64,
    lease: Option<Rc<Lease>>,
    /// A part that waits for room.
    waiting: Option<(Bytes, Room)>,
}

impl Stream for Bounded {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some((part, room)) = &mut self.waiting {
            let has_room = std::task::ready!(room.as_mut().poll(context));
            let part = std::mem::take(part);
            self.waiting = None;
            return Poll::Ready(Some(if has_room { Ok(part) } else { Err(no_room()) }));
        }
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(part) = Pin::new(&mut self.body).poll_next(context) {
            self.silence = None;
            return match part {
                Some(Ok(part)) => self.take(part, context),
                end => Poll::Ready(end),
            };
        }
        let silence_timeout = self.silence_timeout;
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(silence_timeout)));
        if silence.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        // A repeated read fails again.
        silence.as_mut().reset(Instant::now());
        let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, "the rest of the body did not come");
        Poll::Ready(Some(Err(PayloadError::Io(silent))))
    }
}

impl Bounded {
    /// Accepts an arrived part if it is in time and there is room.
    fn take(&mut self, part: Bytes, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        let part = self.cut(part);
        self.received += part.len() as u64;
        let is_passed_on = self.lease.as_ref().is_some_and(|lease| lease.is_passed_on());
        let rate = if is_passed_on { MIN_RATES.1 } else { MIN_RATES.0 };
        if self.begun.elapsed() > BODY_TIMEOUT + Duration::from_secs(self.received / rate) {
            let slow = std::io::Error::new(std::io::ErrorKind::TimedOut, "the body came too slowly");
            return Poll::Ready(Some(Err(PayloadError::Io(slow))));
        }
        match &self.lease {
            Some(lease) if !lease.take(part.len()) => {
                let mut room: Room = Box::pin(lease.clone().take_soon(part.len()));
                match room.as_mut().poll(context) {
                    Poll::Ready(true) => Poll::Ready(Some(Ok(part))),
                    Poll::Ready(false) => Poll::Ready(Some(Err(no_room()))),
                    Poll::Pending => {
                        self.waiting = Some((part, room));
                        Poll::Pending
                    }
                }
            }
            Some(_) | None => Poll::Ready(Some(Ok(part))),
        }
    }

    /// Cuts a part at the end of the body.
    fn cut(&mut self, mut part: Bytes) -> Bytes {
        if let Some(left) = &mut self.left {
            part.truncate(*left);
            *left -= part.len();
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use futures_util::{StreamExt, stream};

    fn body(parts: impl Stream<Item = Result<Bytes, PayloadError>> + 'static) -> Payload {
        let payload: Pin<Box<dyn Stream<Item = _>>> = Box::pin(parts);
        Payload::Stream { payload }
    }

    fn bounded(body: Payload, left: Option<usize>) -> Bounded {
        Bounded {
            body,
            left,
            silence_timeout: Duration::from_millis(10),
            silence: None,
            begun: Instant::now(),
            received: 0,
            lease: None,
            waiting: None,
        }
    }

    #[tokio::test]
    async fn an_interrupted_body_times_out_and_a_complete_one_passes() {
        let begun = || stream::iter([Ok(Bytes::from_static(b"ab"))]);
        let mut stuck = bounded(body(begun().chain(stream::pending())), None);
        assert_eq!(stuck.next().await.expect("a part").expect("read"), "ab");
        assert!(
            matches!(stuck.next().await, Some(Err(PayloadError::Io(e))) if e.kind() == std::io::ErrorKind::TimedOut)
        );
        let parts: Vec<_> = bounded(body(begun()), None).collect().await;
        assert!(matches!(parts.as_slice(), [Ok(part)] if part == "ab"));
    }

    #[tokio::test]
    async fn an_endless_body_ends_at_its_announced_length() {
        let endless = || body(stream::iter([Ok(Bytes::from_static(b"abc"))]).chain(stream::pending()));
        for length in [1, 3] {
            let parts: Vec<_> = bounded(endless(), Some(length)).collect().await;
            assert!(matches!(parts.as_slice(), [Ok(part)] if *part == b"abc"[..length]), "{length}");
        }
    }

    #[tokio::test]
    async fn a_body_sent_byte_by_byte_times_out() {
        let drip = || body(stream::iter([Ok(Bytes::from_static(b"a"))]));
        let mut late = bounded(drip(), None);
        late.begun -= BODY_TIMEOUT + Duration::from_secs(1);
        assert!(
            matches!(late.next().await, Some(Err(PayloadError::Io(e))) if e.kind() == std::io::ErrorKind::TimedOut)
        );
        let mut large = bounded(drip(), None);
        large.begun -= BODY_TIMEOUT + Duration::from_secs(1);
        large.received = 2 * MIN_RATES.0;
        assert!(large.next().await.is_some_and(|part| part.is_ok()));
    }

    #[tokio::test]
    async fn a_body_counts_against_the_budget_unless_it_is_passed_on() {
        let bodies = Bodies::new(4 << 20);
        let part = || Ok(Bytes::from(vec![0; 1 << 20]));
        let mut kept = bounded(body(stream::iter([part(), part(), part(), part(), part()])), None);
        kept.lease = Some(bodies.lease(None));
        let parts: Vec<_> = kept.by_ref().collect().await;
        assert!(parts[..3].iter().all(Result::is_ok));
        assert!(parts[3].as_ref().is_err_and(super::super::bodies::is_no_room));
    }

    #[test]
    fn tunnel_requests_have_the_body_they_announce() {
        let end = |request: TestRequest| end_of_tunnel(request.to_srv_request().head());
        let tunnels = || {
            [TestRequest::default().method(Method::CONNECT), TestRequest::get().insert_header(("upgrade", "websocket"))]
        };
        for tunnel in tunnels() {
            assert_eq!(end(tunnel), Some(0));
        }
        for tunnel in tunnels() {
            assert_eq!(end(tunnel.insert_header(("content-length", "7"))), Some(7));
        }
        for tunnel in tunnels() {
            assert_eq!(end(tunnel.insert_header(("transfer-encoding", "chunked"))), None);
        }
        assert_eq!(end(TestRequest::post()), None);
    }
}
