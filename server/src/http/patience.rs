//! How long a client may keep us waiting for the rest of its request. (For the head, the HTTP library sees to it.)

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep};

/// Longest silence within a body.
const PATIENCE: Duration = Duration::from_secs(30);

/// `body`, failing once its sender has been silent for half a minute; who takes its time but goes on may.
pub fn patient(body: Payload) -> Payload {
    match body {
        Payload::None => Payload::None,
        body => Payload::Stream { payload: Box::pin(Patient { body, patience: PATIENCE, silence: None }) },
    }
}

struct Patient {
    body: Payload,
    patience: Duration,
    /// Runs from the first time that there was nothing to read.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Stream for Patient {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(part) = Pin::new(&mut self.body).poll_next(context) {
            self.silence = None;
            return Poll::Ready(part);
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};

    fn body(parts: impl Stream<Item = Result<Bytes, PayloadError>> + 'static) -> Payload {
        let payload: Pin<Box<dyn Stream<Item = _>>> = Box::pin(parts);
        Payload::Stream { payload }
    }

    #[tokio::test]
    async fn a_body_that_stops_in_the_middle_fails_and_one_that_comes_passes() {
        let begun = || stream::iter([Ok(Bytes::from_static(b"ab"))]);
        let patience = Duration::from_millis(10);
        let stuck = body(begun().chain(stream::pending()));
        let mut stuck = Patient { body: stuck, patience, silence: None };
        assert_eq!(stuck.next().await.expect("a part").expect("read"), "ab");
        assert!(
            matches!(stuck.next().await, Some(Err(PayloadError::Io(e))) if e.kind() == std::io::ErrorKind::TimedOut)
        );
        let parts: Vec<_> = Patient { body: body(begun()), patience, silence: None }.collect().await;
        assert!(matches!(parts.as_slice(), [Ok(part)] if part == "ab"));
    }
}
