//! Hands a connection over to another protocol (WebSocket) once the head of the answer has been written.
//!
//! The HTTP library would keep its state and two buffers of 8 kB for the life of the socket. So it is told that the
//! connection has ended, and the stream goes to the new owner. The worker counts the connection until that ends.

use std::cell::{OnceCell, RefCell};
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use actix_web::body::{BodySize, MessageBody};
use actix_web::{HttpRequest, HttpResponse};
use bytes::{Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use super::room::Place;

/// A connection over any transport.
pub trait Wire: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire for S {}

/// A connection that has been taken over.
pub struct Taken {
    pub wire: Box<dyn Wire>,
    /// Bytes already read, after those still in the request's payload.
    pub early: BytesMut,
}

/// The task that takes over a connection.
type Work = LocalBoxFuture<'static, ()>;
type Begin = Box<dyn FnOnce(Taken) -> Work>;

#[derive(Default)]
enum State {
    #[default]
    Http,
    /// The answer is on its way to the HTTP library.
    Asked(Begin),
    /// Its head is in the library's buffer. Once that is written, the connection is handed over.
    Due(Begin, Waker),
    Taken(Work),
    Gone,
}

/// The takeover state of a connection, and its place, which whoever takes it over keeps.
#[derive(Default)]
pub struct Takeover(RefCell<State>, OnceCell<Place>);

impl Takeover {
    /// Keeps the connection's place as long as this is there.
    pub fn keep(&self, place: Place) {
        let _ = self.1.set(place);
    }

    pub fn place(&self) -> Option<&Place> {
        self.1.get()
    }

    /// Whether HTTP ends after what is being written.
    pub fn is_due(&self) -> bool {
        matches!(*self.0.borrow(), State::Due(..))
    }

    /// Hands the connection over.
    pub fn hand_over(&self, taken: Taken) {
        let mut state = self.0.borrow_mut();
        if let State::Due(begin, waker) = std::mem::take(&mut *state) {
            *state = State::Taken(begin(taken));
            waker.wake();
        }
    }

    /// The task to run after HTTP has ended.
    pub fn take(&self) -> Option<Work> {
        match self.0.replace(State::Gone) {
            State::Taken(work) => Some(work),
            _ => None,
        }
    }
}

/// The answer to `request`, after which `begin` takes over the connection. `None` if that is not possible.
pub fn answer(
    request: &HttpRequest,
    mut head: actix_http::ResponseBuilder,
    begin: impl FnOnce(Taken) -> Work + 'static,
) -> Option<HttpResponse> {
    let takeover = Rc::clone(request.conn_data::<Rc<Takeover>>()?);
    takeover.0.replace(State::Asked(Box::new(begin)));
    let response = head.message_body(Rest(takeover)).ok()?;
    Some(HttpResponse::from(response.map_into_boxed_body()))
}

/// An empty body that lasts until the handover. The library polls it after the head.
struct Rest(Rc<Takeover>);

impl MessageBody for Rest {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let mut state = self.0.0.borrow_mut();
        match std::mem::take(&mut *state) {
            State::Asked(begin) | State::Due(begin, _) => {
                *state = State::Due(begin, context.waker().clone());
                Poll::Pending
            }
            other => {
                *state = other;
                Poll::Ready(None)
            }
        }
    }
}
