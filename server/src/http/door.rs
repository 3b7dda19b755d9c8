//! Refuses requests of a flood before they are looked at: without a context, a route, or a check of their token.
//!
//! Under lasting overload most requests are refused, and what their refusals cost is missing for those that are served. A request
//! that was refused the whole way leaves its answer here, together with who refused it. Further ones like it get a copy for a second,
//! as long as that one goes on refusing. Requests are alike if they differ only in headers that no answer to them depends on and in
//! the digits of their query and of the end of their path.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpMessage as _, HttpResponse};
use foldhash::HashMap;
use foldhash::fast::RandomState;

use super::connection::Secure;
use super::draining::Draining;
use super::request_id;
use super::traffic::Traffic;

/// For how long an answer is copied, and for how long after a refusal requests are compared at all.
const COPIED: Duration = Duration::from_secs(1);
/// The most answers that a worker keeps.
const MOST_KEPT: usize = 1024;
/// How often the log says how many were refused here.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How many parts of the path are compared with their digits: the API and what of it is asked for.
const EXACT_PARTS: usize = 3;
const X_REQUEST_ID: HeaderName = HeaderName::from_static(request_id::HEADER);
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// The headers that a refusal depends on: who asks and from where, and what kind of answer is wanted.
const COMPARED: [HeaderName; 9] = [
    header::AUTHORIZATION,
    HeaderName::from_static("apikey"),
    HeaderName::from_static("x-forwarded-for"),
    header::HOST,
    header::ORIGIN,
    header::ACCEPT,
    HeaderName::from_static("accept-profile"),
    HeaderName::from_static("prefer"),
    header::RANGE,
];

/// What refuses requests while there is lasting overload, for one kind of requests.
pub trait Overloaded: Send + Sync {
    /// Refuses another one: when the refusal is to be sent. `None` if it may wait to be served.
    fn refuse(&self) -> Option<Instant>;
}

/// Who refused a request, among the request's extensions once it is answered.
#[derive(Clone)]
pub struct RefusedBy(pub Arc<dyn Overloaded>);

impl fmt::Debug for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefusedBy")
    }
}

/// The door of one worker of a server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Door(Rc<Inside>);

#[derive(Default)]
struct Inside {
    /// Requests are compared until then.
    until: Cell<Option<Instant>>,
    kept: RefCell<HashMap<u64, Kept>>,
    hasher: RandomState,
    /// How many were refused since the log was told, and when that was.
    refused: Cell<u64>,
    told: Cell<Option<Instant>>,
}

struct Kept {
    since: Instant,
    by: RefusedBy,
    answer: Rc<Answer>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Door {
    /// The outermost middleware, for `wrap_fn`.
    pub fn pass<S, B>(
        &self,
        request: ServiceRequest,
        next: &S,
    ) -> impl Future<Output = Result<ServiceResponse<EitherBody<B>>, Error>> + use<S, B>
    where
        S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
        B: MessageBody + 'static,
    {
        let now = Instant::now();
        let kind = if self.0.compares(now) { self.0.kind(&request) } else { None };
        let way = match kind.and_then(|kind| self.0.refuse(kind, now)) {
            Some(refusal) => Err((request, refusal)),
            None => Ok(next.call(request)),
        };
        let door = self.0.clone();
        async move {
            match way {
                Ok(answering) => Ok(door.learn(kind, answering.await?)),
                Err((request, (answer, until))) => {
                    let begun = request.app_data::<Data<Traffic>>().map(|traffic| traffic.begin(request.path()));
                    tokio::time::sleep_until(until.into()).await;
                    if let Some(begun) = begun {
                        begun.answered(answer.status.as_u16());
                    }
                    let copy = answer.copy(request.headers());
                    Ok(request.into_response(copy).map_into_right_body())
                }
            }
        }
    }
}

impl Inside {
    /// Whether requests are compared: somebody was refused lately.
    fn compares(&self, now: Instant) -> bool {
        let Some(until) = self.until.get() else { return false };
        if until < now {
            self.until.set(None);
            self.kept.borrow_mut().clear();
            self.tell(now);
            return false;
        }
        true
    }

    /// What is the same for all requests that get the same refusal. `None` if it cannot be said without looking closer.
    fn kind(&self, request: &ServiceRequest) -> Option<u64> {
        let head = request.head();
        let is_stopping = || request.app_data::<Data<Draining>>().is_some_and(|draining| draining.has_begun());
        if !matches!(head.method, Method::GET | Method::HEAD) || head.upgrade() || is_stopping() {
            return None;
        }
        let query = head.uri.query().unwrap_or_default();
        // The gateway takes the key out of it.
        if head.headers.contains_key(header::UPGRADE) || query.contains("apikey=") {
            return None;
        }
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u8(u8::from(head.method == Method::HEAD));
        hasher.write_u8(u8::from(request.conn_data::<Secure>().is_some() || request.extensions().contains::<Secure>()));
        head.peer_addr.map(|peer| peer.ip()).hash(&mut hasher);
        let path = head.uri.path();
        let exact = path.match_indices('/').nth(EXACT_PARTS).map_or(path.len(), |(at, _)| at);
        hasher.write(&path.as_bytes()[..exact]);
        for text in [&path[exact..], query] {
            hasher.write_u8(b'?');
            let parts = text.as_bytes().split(u8::is_ascii_digit).filter(|part| !part.is_empty());
            parts.for_each(|part| hasher.write(part));
        }
        for name in &COMPARED {
            for value in head.headers.get_all(name) {
                hasher.write(value.as_bytes());
                hasher.write_u8(b'\n');
            }
            hasher.write_u8(0);
        }
        Some(hasher.finish())
    }

    /// The answer to a request of `kind`, and when it is sent, if it is refused.
    fn refuse(&self, kind: u64, now: Instant) -> Option<(Rc<Answer>, Instant)> {
        let kept = self.kept.borrow();
        let kept = kept.get(&kind).filter(|kept| now.duration_since(kept.since) < COPIED)?;
        let until = kept.by.0.refuse()?;
        self.until.set(Some(now + COPIED));
        self.refused.set(self.refused.get() + 1);
        let is_due = self.told.get().is_none_or(|told| now.duration_since(told) >= TOLD_EVERY);
        if is_due {
            self.tell(now);
        }
        Some((kept.answer.clone(), until))
    }

    /// Writes one line for all refusals since the last: a line for each would cost more than they do.
    fn tell(&self, now: Instant) {
        let refused = self.refused.take();
        if refused > 0 {
            self.told.set(Some(now));
            tracing::warn!(refused, "requests like others that had been refused were refused at the door");
        }
    }

    /// Keeps the answer if it is a refusal.
    fn learn<B: MessageBody + 'static>(
        &self,
        kind: Option<u64>,
        response: ServiceResponse<B>,
    ) -> ServiceResponse<EitherBody<B>> {
        if response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return response.map_into_left_body();
        }
        let by = response.request().extensions().get::<RefusedBy>().cloned();
        let Some(by) = by else { return response.map_into_left_body() };
        let now = Instant::now();
        self.until.set(Some(now + COPIED));
        let Some(kind) = kind else { return response.map_into_left_body() };
        let (request, response) = response.into_parts();
        let (response, body) = response.into_parts();
        let (status, headers) = (response.status(), response.headers().clone());
        match body.try_into_bytes() {
            Ok(body) => {
                let answer = Rc::new(Answer { status, headers, body: body.clone() });
                let mut kept = self.kept.borrow_mut();
                if kept.len() >= MOST_KEPT {
                    kept.clear();
                }
                kept.insert(kind, Kept { since: now, by, answer });
                ServiceResponse::new(request, response.set_body(EitherBody::right(BoxBody::new(body))))
            }
            Err(body) => ServiceResponse::new(request, response.set_body(EitherBody::left(body))),
        }
    }
}

impl Answer {
    /// The same for another request, with the id of that one.
    fn copy(&self, asked: &HeaderMap) -> HttpResponse {
        let mut response = HttpResponse::new(self.status).set_body(BoxBody::new(self.body.clone()));
        let headers = response.headers_mut();
        *headers = self.headers.clone();
        if headers.contains_key(&X_REQUEST_ID)
            && let Ok(id) = HeaderValue::from_str(&request_id::request_id(asked.get(&X_REQUEST_ID)))
        {
            headers.insert(X_REQUEST_ID, id);
        }
        headers.remove(&SERVER_TIMING);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::{self, TestRequest};
    use actix_web::{App, HttpRequest, web};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Refuses while it is told so.
    #[derive(Default)]
    struct Pool {
        is_full: AtomicBool,
        asked: AtomicUsize,
    }

    impl Overloaded for Pool {
        fn refuse(&self) -> Option<Instant> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.is_full.load(Ordering::Relaxed).then(Instant::now)
        }
    }

    /// A server whose handler counts and refuses while the pool is full.
    macro_rules! server {
        ($pool:expr, $handled:expr) => {{
            let (pool, handled, door): (Arc<Pool>, Arc<AtomicUsize>, Door) =
                ($pool.clone(), $handled.clone(), Door::default());
            let handler = move |request: HttpRequest| {
                handled.fetch_add(1, Ordering::Relaxed);
                let response = if pool.is_full.load(Ordering::Relaxed) {
                    request.extensions_mut().insert(RefusedBy(pool.clone()));
                    HttpResponse::ServiceUnavailable()
                        .insert_header(("retry-after", "1"))
                        .insert_header((X_REQUEST_ID, "first"))
                        .body("full")
                } else {
                    HttpResponse::Ok().body("rows")
                };
                async move { response }
            };
            test::init_service(
                App::new().wrap_fn(move |request, next| door.pass(request, next)).default_service(web::to(handler)),
            )
            .await
        }};
    }

    #[actix_web::test]
    async fn what_is_like_a_refused_request_is_refused_without_being_handled_while_the_pool_says_so() {
        let (pool, handled) = (Arc::new(Pool::default()), Arc::new(AtomicUsize::new(0)));
        let app = server!(pool, handled);
        let ask = |path: &str| TestRequest::get().uri(path).insert_header((X_REQUEST_ID, "mine")).to_request();
        let full = |is_full| pool.is_full.store(is_full, Ordering::Relaxed);
        let count = || handled.swap(0, Ordering::Relaxed);
        assert_eq!(test::call_service(&app, ask("/rest/v1/a?id=eq.1")).await.status(), 200);
        full(true);
        // The first tells that there is overload, the second is kept.
        for _ in 0..2 {
            assert_eq!(test::call_service(&app, ask("/rest/v1/a?id=eq.1")).await.status(), 503);
        }
        assert_eq!((count(), pool.asked.load(Ordering::Relaxed)), (3, 0));
        let copy = test::call_service(&app, ask("/rest/v1/a?id=eq.27")).await;
        assert_eq!((copy.status().as_u16(), count()), (503, 0));
        assert_eq!(copy.headers().get("retry-after").map(HeaderValue::as_bytes), Some(&b"1"[..]));
        assert_eq!(copy.headers().get(&X_REQUEST_ID).map(HeaderValue::as_bytes), Some(&b"mine"[..]));
        assert_eq!(test::read_body(copy).await, "full");
        full(false);
        assert_eq!(test::call_service(&app, ask("/rest/v1/a?id=eq.1")).await.status(), 200, "served again at once");
        assert_eq!(count(), 1);
    }

    #[actix_web::test]
    async fn others_are_looked_at() {
        let (pool, handled) = (Arc::new(Pool::default()), Arc::new(AtomicUsize::new(0)));
        let app = server!(pool, handled);
        pool.is_full.store(true, Ordering::Relaxed);
        let like = || TestRequest::get().uri("/rest/v1/a?id=eq.1").insert_header((header::AUTHORIZATION, "Bearer a"));
        for _ in 0..3 {
            test::call_service(&app, like().to_request()).await;
        }
        assert_eq!(handled.swap(0, Ordering::Relaxed), 2, "the third is like the second");
        let peer = "192.0.2.1:9".parse().expect("an address");
        for other in [
            like().method(Method::POST),
            like().method(Method::HEAD),
            like().uri("/rest/v1/b?id=eq.1"),
            like().uri("/rest/v1/a?id=gt.1"),
            like().uri("/rest/v2/a?id=eq.1"),
            like().uri("/rest/v1/a?id=eq.1&apikey=1"),
            like().insert_header((header::AUTHORIZATION, "Bearer b")),
            like().insert_header(("x-forwarded-for", "192.0.2.1")),
            like().insert_header((header::ORIGIN, "http://other.example")),
            like().insert_header((header::UPGRADE, "websocket")),
            like().peer_addr(peer),
        ] {
            let request = other.to_request();
            let text = format!("{request:?}");
            test::call_service(&app, request).await;
            assert_eq!(handled.swap(0, Ordering::Relaxed), 1, "{text}");
        }
        for same in [like(), like().uri("/rest/v1/a?id=eq.99"), like().insert_header((header::USER_AGENT, "another"))] {
            test::call_service(&app, same.to_request()).await;
            assert_eq!(handled.swap(0, Ordering::Relaxed), 0);
        }
    }

    #[actix_web::test]
    async fn no_request_is_compared_while_none_is_refused() {
        let (pool, handled) = (Arc::new(Pool::default()), Arc::new(AtomicUsize::new(0)));
        let app = server!(pool, handled);
        for _ in 0..3 {
            test::call_service(&app, TestRequest::get().uri("/rest/v1/a").to_request()).await;
        }
        assert_eq!((handled.load(Ordering::Relaxed), pool.asked.load(Ordering::Relaxed)), (3, 0));
    }
}
