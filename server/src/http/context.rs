//! The request on whose behalf a thread works: what every log line says of it.
//!
//! A span of `tracing` would carry the same and costs each request 10,000 instructions, a tenth of a small read. Spans are made
//! where they are exported ([`super::span`]).

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// What is known of a request.
#[derive(Debug)]
pub struct RequestContext {
    pub id: String,
    pub method: String,
    /// Without its query, which may hold tokens.
    pub path: String,
    role: OnceLock<Box<str>>,
    /// 0 until there is an answer.
    status: AtomicU16,
}

impl RequestContext {
    pub fn new(id: String, method: String, path: String) -> Self {
        Self { id, method, path, role: OnceLock::new(), status: AtomicU16::new(0) }
    }

    /// As whom the request acts, once it is known.
    pub fn role(&self) -> Option<&str> {
        self.role.get().map(|role| &**role)
    }

    /// How it was answered.
    pub fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<RequestContext>>> = const { RefCell::new(None) };
}

/// The request that this thread works for now.
pub fn current() -> Option<Arc<RequestContext>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Notes who the current request acts as; the first to know is right.
pub fn acts_as(role: &str) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            request.role.get_or_init(|| role.into());
        }
    });
}

/// Notes how the current request was answered.
pub fn answered(status: u16) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            request.status.store(status, Ordering::Relaxed);
        }
    });
}

/// Works for `request` until the guard is dropped.
pub fn enter(request: &Option<Arc<RequestContext>>) -> Entered {
    Entered(CURRENT.replace(request.clone()))
}

/// The request that the thread worked for before, and will again.
pub struct Entered(Option<Arc<RequestContext>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs `work`, on whatever thread, for the request that is current now.
pub fn kept<F>(work: F) -> Within<F> {
    within(current(), work)
}

/// Runs `work` for `request`.
pub fn within<F>(request: Option<Arc<RequestContext>>, work: F) -> Within<F> {
    Within { request, work }
}

pin_project! {
    /// See [`within`].
    pub struct Within<F> {
        request: Option<Arc<RequestContext>>,
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = enter(this.request);
        this.work.poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str) -> Option<Arc<RequestContext>> {
        Some(Arc::new(RequestContext::new(id.to_owned(), "GET".to_owned(), "/".to_owned())))
    }

    fn current_id() -> Option<String> {
        current().map(|request| request.id.clone())
    }

    #[tokio::test]
    async fn what_waits_finds_its_own_request_again() {
        let ask = |id: &'static str| {
            within(request(id), async move {
                acts_as(id);
                tokio::task::yield_now().await;
                assert_eq!(current_id().as_deref(), Some(id));
                let elsewhere = tokio::spawn(kept(async { current_id() })).await.expect("it ends");
                assert_eq!(elsewhere.as_deref(), Some(id));
                answered(200);
                let request = current().expect("it is current");
                assert_eq!((request.role(), request.status()), (Some(id), Some(200)));
            })
        };
        tokio::join!(ask("a"), ask("b"));
        assert_eq!(current_id(), None);
    }
}
