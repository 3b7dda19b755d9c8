//! The body of a request as we take it: how long a client may keep us waiting for the rest of it, and where it ends. (For
//! the head, the HTTP library sees to it.) And that nobody waits at a tunnel: the protocols that requests ask for by
//! `CONNECT` and `Upgrade` are not spoken here, so such a request is answered like any other, and its connection ends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::{Payload, RequestHead, Service, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::{ConnectionType, Method, header};
use actix_web::{Error, HttpMessage as _};
use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep};

/// Longest silence within a body.
const PATIENCE: Duration = Duration::from_secs(30);

/// Middleware (for `wrap_fn`) of every API: bounds the body, and sees to it that who asked for a tunnel is told the end
/// of the answer by the end of the connection, which the HTTP library closes then.
pub fn bound<S, B>(
    mut request: ServiceRequest,
    next: &S,
) -> impl Future<Output = Result<ServiceResponse<B>, Error>> + use<S, B>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    let is_tunnel = asks_for_tunnel(request.head());
    bound_body(&mut request);
    let answer = next.call(request);
    async move {
        let mut answer = answer.await?;
        if is_tunnel {
            let head = answer.response_mut().head_mut();
            head.set_connection_type(ConnectionType::Close);
            // It would announce chunks, and send none.
            head.no_chunking(true);
        }
        Ok(answer)
    }
}

/// Lets the body of `request` fail once its sender has been silent for half a minute (who takes its time but goes on
/// may), and end where it was announced to.
fn bound_body(request: &mut ServiceRequest) {
    let body: Payload = match request.take_payload() {
        Payload::None => Payload::None,
        body => match end_of_tunnel(request.head()) {
            Some(0) => Payload::None,
            left => Payload::Stream { payload: Box::pin(Bounded { body, left, patience: PATIENCE, silence: None }) },
        },
    };
    request.set_payload(body);
}

fn asks_for_tunnel(head: &RequestHead) -> bool {
    head.method == Method::CONNECT || head.headers.contains_key(header::UPGRADE) || head.upgrade()
}

/// How long the body is where the HTTP library sees no end: it takes all that follows CONNECT and
/// `Upgrade: websocket` for a part of it.
fn end_of_tunnel(head: &RequestHead) -> Option<usize> {
    if !asks_for_tunnel(head) || head.headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    let announced = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    Some(announced.unwrap_or_default())
}

struct Bounded {
    body: Payload,
    /// Bytes until the end, where it has to be counted.
    left: Option<usize>,
    patience: Duration,
    /// Runs from the first time that there was nothing to read.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Stream for Bounded {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(part) = Pin::new(&mut self.body).poll_next(context) {
            self.silence = None;
            return Poll::Ready(part.map(|part| part.map(|part| self.cut(part))));
        }
        let patience = self.patience;
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(patience)));
        if silence.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        // Asked once more, it fails once more.
        silence.as_mut().reset(Instant::now());
        let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, "the rest of the body did not come");
        Poll::Ready(Some(Err(PayloadError::Io(silent))))
    }
}

impl Bounded {
    /// What of a part belongs to the body.
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
        Bounded { body, left, patience: Duration::from_millis(10), silence: None }
    }

    #[tokio::test]
    async fn a_body_that_stops_in_the_middle_fails_and_one_that_comes_passes() {
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
    async fn a_body_without_an_end_ends_where_it_was_announced_to() {
        let endless = || body(stream::iter([Ok(Bytes::from_static(b"abc"))]).chain(stream::pending()));
        for length in [1, 3] {
            let parts: Vec<_> = bounded(endless(), Some(length)).collect().await;
            assert!(matches!(parts.as_slice(), [Ok(part)] if *part == b"abc"[..length]), "{length}");
        }
    }

    #[test]
    fn tunnels_have_the_body_that_they_announce() {
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
