//! The request that a thread works for, named by every log line.
//!
//! A `tracing` span would do the same but costs each request 10,000 instructions, a tenth of a small read. Spans are
//! created only if they are exported ([`super::span`]).

use std::cell::RefCell;
use std::mem;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::dev::RequestHead;
use actix_web::http::header::HeaderValue;
use actix_web::http::{Method, Uri};
use parking_lot::Mutex;
use pin_project_lite::pin_project;

use super::door::RefusedBy;
use super::request_id;

/// A key as a request presents it.
#[derive(Debug)]
pub enum PresentedKey {
    /// The `apikey` in whose name it acts.
    ApiKey(Box<str>),
    /// The id of an access key for the S3 protocol.
    S3(Box<str>),
}

/// The logged fields of a request.
#[derive(Debug)]
pub struct RequestContext {
    method: Method,
    uri: Uri,
    /// The received `X-Request-Id`.
    given: Option<HeaderValue>,
    /// Created on first use.
    id: OnceLock<Box<str>>,
    role: OnceLock<Arc<str>>,
    /// The key that proves the role, where it is not that of the header `Authorization`.
    key: Mutex<Option<Arc<PresentedKey>>>,
    /// The user that the request is for, if its API told.
    user: Mutex<Option<Box<str>>>,
    /// 0 until there is an answer.
    status: AtomicU16,
    client: OnceLock<IpAddr>,
    is_admitted: AtomicBool,
    refused_by: OnceLock<RefusedBy>,
}

impl RequestContext {
    pub fn of(request: &RequestHead) -> Self {
        Self {
            method: request.method.clone(),
            uri: request.uri.clone(),
            given: request.headers.get(request_id::HEADER).cloned(),
            id: OnceLock::new(),
            role: OnceLock::new(),
            key: Mutex::default(),
            user: Mutex::default(),
            status: AtomicU16::new(0),
            client: OnceLock::new(),
            is_admitted: AtomicBool::new(false),
            refused_by: OnceLock::new(),
        }
    }

    /// The id in logs and in the answer.
    pub fn id(&self) -> &str {
        self.id.get_or_init(|| request_id::request_id(self.given.as_ref()).into())
    }

    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// The path without the query, which may contain tokens.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// The request's role, once known.
    pub fn role(&self) -> Option<&str> {
        self.role.get().map(|role| &**role)
    }

    /// The key that proves the role, where it is not in the headers.
    pub fn key(&self) -> Option<Arc<PresentedKey>> {
        self.key.lock().clone()
    }

    /// The user whom the request is for, where the API told.
    pub fn user(&self) -> Option<Box<str>> {
        self.user.lock().clone()
    }

    /// The status of the answer.
    pub fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// The client's address, where it was noted.
    pub fn client(&self) -> Option<IpAddr> {
        self.client.get().copied()
    }

    /// Whether the request has had a connection to the database, so that refusing it would waste work.
    pub fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }

    pub fn admit(&self) {
        self.is_admitted.store(true, Ordering::Relaxed);
    }

    /// Who refused the request under overload, if somebody did.
    pub fn refused_by(&self) -> Option<&RefusedBy> {
        self.refused_by.get()
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<RequestContext>>> = const { RefCell::new(None) };
}

/// The request that this thread is working for.
pub fn current() -> Option<Arc<RequestContext>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The id of the current request, or the one in its headers.
pub fn id_of(request: &impl HttpMessage) -> String {
    current().map_or_else(
        || request_id::request_id(request.headers().get(request_id::HEADER)),
        |current| current.id().to_owned(),
    )
}

/// Records the role of the current request; the first call wins.
pub fn acts_as(role: Arc<str>) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            request.role.get_or_init(|| role);
        }
    });
}

/// Records the key of the current request, if it is not that of the header `Authorization`; the last call wins, since a signature
/// counts more than an `apikey` beside it.
pub fn presents(key: impl FnOnce() -> PresentedKey) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            *request.key.lock() = Some(Arc::new(key()));
        }
    });
}

/// Records who refuses the current request under overload; the first call wins.
pub fn refused_by(by: impl FnOnce() -> RefusedBy) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            request.refused_by.get_or_init(by);
        }
    });
}

/// Records the user whom the current request is for; the last call wins, since a request may sign somebody in.
pub fn is_for(user: &str) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            *request.user.lock() = Some(user.into());
        }
    });
}

/// Records the client's address; the first call wins.
pub fn comes_from(client: IpAddr) {
    CURRENT.with_borrow(|current| {
        if let Some(request) = current {
            request.client.get_or_init(|| client);
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

/// Makes `request` current until the guard is dropped.
pub fn enter(request: &mut Option<Arc<RequestContext>>) -> Entered<'_> {
    swap(request);
    Entered(request)
}

/// Restores the previous request when dropped.
pub struct Entered<'a>(&'a mut Option<Arc<RequestContext>>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap(self.0);
    }
}

fn swap(request: &mut Option<Arc<RequestContext>>) {
    CURRENT.with_borrow_mut(|current| mem::swap(current, request));
}

/// Runs `work`, on any thread, for the current request.
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
    use actix_web::test::TestRequest;

    fn request(id: &str) -> Option<Arc<RequestContext>> {
        let request = TestRequest::default().insert_header((request_id::HEADER, id)).to_http_request();
        Some(Arc::new(RequestContext::of(request.head())))
    }

    fn current_id() -> Option<String> {
        current().map(|request| request.id().to_owned())
    }

    #[tokio::test]
    async fn the_request_context_survives_waiting() {
        let ask = |id: &'static str| {
            within(request(id), async move {
                acts_as(id.into());
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
