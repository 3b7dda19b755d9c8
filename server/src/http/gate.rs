//! Lets a connection's requests in one at a time.
//!
//! Clients may pipeline requests. The HTTP library reads ahead, and what it reads (`Connection: close`, or an invalid
//! request) affects pending answers. So it gets a request only after the previous one was answered.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use pin_project_lite::pin_project;

/// One connection's passed and answered requests.
#[derive(Debug, Default)]
pub struct Gate {
    passed: Cell<u64>,
    answered: Cell<u64>,
    waiting: RefCell<Option<Waker>>,
}

impl Gate {
    /// Whether an answer is pending.
    pub fn is_shut(&self) -> bool {
        self.passed.get() > self.answered.get()
    }

    /// Whether there was a request.
    pub fn has_passed(&self) -> bool {
        self.passed.get() > 0
    }

    pub fn note_passed(&self) {
        self.passed.set(self.passed.get() + 1);
    }

    /// Wakes `waker` after the answer.
    pub fn wait(&self, waker: &Waker) {
        *self.waiting.borrow_mut() = Some(waker.clone());
    }
}

/// Opens a gate when dropped: the answer has been written, or there will be none.
#[derive(Debug)]
pub struct Opening(Rc<Gate>);

impl Opening {
    pub fn of(gate: &Rc<Gate>) -> Self {
        Self(gate.clone())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.answered.set(self.0.passed.get());
        if let Some(waker) = self.0.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
}

pin_project! {
    /// The body of an answer, dropped when completely written.
    pub struct Answer<B> {
        #[pin]
        body: B,
        opening: Option<Opening>,
    }
}

impl<B> Answer<B> {
    pub fn new(body: B, opening: Option<Opening>) -> Self {
        Self { body, opening }
    }
}

impl<B: MessageBody> MessageBody for Answer<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        self.project().body.poll_next(context)
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { body, opening } = self;
        body.try_into_bytes().map_err(|body| Self { body, opening })
    }
}
