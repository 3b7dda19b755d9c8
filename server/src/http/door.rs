//! Refuses requests of a flood before HTTP is parsed: on the bytes of a connection, without a context, a route, or a check of a token.
//!
//! Under lasting overload most requests are refused, and what their refusals cost is missing for those that are served. A request
//! that was refused the whole way leaves its answer here, together with who refused it ([`learn`]). Further ones like it get a copy for
//! a second, as long as that one goes on refusing. [`super::lenient`] asks for each head that has arrived ([`Doorway::judge`]). Requests are
//! alike if they differ only in headers that no answer depends on, in the digits of their query and of the end of their path, and in a
//! short body, which is read and dropped before the refusal is sent.
//!
//! The first request of a connection always takes the whole way, and so do all of HTTP/2.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use actix_http::ConnectionType;
use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue, HttpDate};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use actix_web::{Error, HttpMessage as _};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use memchr::{memchr, memchr_iter, memmem};
use tokio::time::Sleep;

use super::draining::Draining;
use super::request_id;
use super::traffic::{InFlight, Traffic};

/// For how long an answer is copied, and for how long after a refusal requests are compared at all.
const COPIED: Duration = Duration::from_secs(1);
/// After so long one request like it goes the whole way again, and another one each time so long has passed without a new answer. Otherwise,
/// whenever a copy becomes too old, all that come until there is the next would go that way.
const RENEWED: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(100));
/// The most answers that a worker keeps.
const MOST_KEPT: usize = 1024;
/// How often the log says how many were refused here.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How many parts of the path are compared with their digits: the API and what of it is asked for, such as `rest/v1/rpc/close_2026`.
const EXACT_PARTS: usize = 4;
/// Headers that no refusal depends on and that may be others in each request of a client, like its id.
const NOT_COMPARED: [&[u8]; 3] = [b"traceparent", b"tracestate", b"referer"];
/// With one of these a request is no simple question, or the connection does not go on as before.
const NOT_SIMPLE: [&[u8]; 4] = [b"connection", b"expect", b"transfer-encoding", b"upgrade"];
/// Methods of requests that may be refused here, and whether they may have a body.
const METHODS: [(&[u8], bool); 6] =
    [(b"GET", false), (b"HEAD", false), (b"POST", true), (b"PUT", true), (b"PATCH", true), (b"DELETE", true)];
/// A longer body is not dropped here: its request goes the whole way.
const LONGEST_DROPPED: u64 = 64 << 10;
/// What follows is another text in each request.
const BOUNDARY: &[u8] = b"boundary=";
/// Headers of answers that are not copied, or written anew.
const NOT_COPIED: [HeaderName; 5] = [
    header::CONTENT_LENGTH,
    header::DATE,
    HeaderName::from_static("server-timing"),
    header::TRANSFER_ENCODING,
    X_REQUEST_ID,
];
const X_REQUEST_ID: HeaderName = HeaderName::from_static(request_id::HEADER);

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

/// What one worker of a server knows of refusals. Cheap to clone.
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
    /// When the next request goes the whole way.
    renewed: Cell<Instant>,
    by: RefusedBy,
    traffic: Option<Data<Traffic>>,
    draining: Option<Data<Draining>>,
    /// The answer's bytes up to the request's id, if answers have one, and after it.
    answer: (Vec<u8>, Vec<u8>),
    has_id: bool,
}

/// A connection at the door of its worker.
pub struct Doorway {
    door: Door,
    /// Where it comes from, and whether it is encrypted.
    from: (Option<SocketAddr>, bool),
    /// The kind of the request that is being answered.
    asked: Cell<Option<u64>>,
}

/// A refusal that is about to be sent.
pub struct Refusal {
    /// The whole answer.
    pub bytes: Vec<u8>,
    /// How many of them have been sent.
    pub sent: usize,
    /// When it is sent.
    pub due: Pin<Box<Sleep>>,
    begun: Option<InFlight>,
}

impl Refusal {
    /// It has been sent.
    pub fn note_sent(self) {
        if let Some(begun) = self.begun {
            begun.answered(StatusCode::SERVICE_UNAVAILABLE.as_u16());
        }
    }
}

impl Doorway {
    pub fn of(door: &Door, peer: Option<SocketAddr>, is_secure: bool) -> Rc<Self> {
        Rc::new(Self { door: door.clone(), from: (peer, is_secure), asked: Cell::new(None) })
    }

    /// The refusal of the request with this `head`, if it may be refused here and is. Otherwise its answer may teach more.
    pub fn judge(&self, head: &[u8], may_refuse: bool) -> Option<Refusal> {
        let (door, now) = (&self.door.0, Instant::now());
        let asked = if door.compares(now) { self.read(head) } else { None };
        self.asked.set(asked.as_ref().map(|asked| asked.kind));
        let refusal = door.refuse(&asked.filter(|_| may_refuse)?, now)?;
        self.asked.set(None);
        Some(refusal)
    }

    /// `None` if it cannot be said without looking closer what the request asks for: a body is simple if its length is announced.
    fn read<'a>(&self, head: &'a [u8]) -> Option<Asked<'a>> {
        let mut lines = Lines(head);
        let target = lines.next()?.strip_suffix(b" HTTP/1.1")?;
        let (method, target) = target.split_at_checked(memchr(b' ', target)?)?;
        let (_, may_have_body) = METHODS.into_iter().find(|(name, _)| *name == method)?;
        let target = target.strip_prefix(b" ").filter(|target| target.starts_with(b"/"))?;
        let (path, query) = match memchr(b'?', target) {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, &[][..]),
        };
        // The gateway takes the key out of it.
        if memmem::find(query, b"apikey=").is_some() {
            return None;
        }
        let mut hasher = self.door.0.hasher.build_hasher();
        let (peer, is_secure) = self.from;
        (peer.map(|peer| peer.ip()), is_secure, method).hash(&mut hasher);
        let exact = memchr_iter(b'/', path).nth(EXACT_PARTS).unwrap_or(path.len());
        hasher.write(&path[..exact]);
        let write_without_digits = |hasher: &mut _, text: &[u8]| {
            let parts = text.split(u8::is_ascii_digit).filter(|part| !part.is_empty());
            parts.for_each(|part| Hasher::write(hasher, part));
        };
        write_without_digits(&mut hasher, &path[exact..]);
        for pair in query.split(|byte| *byte == b'&') {
            let value = memchr(b'=', pair).unwrap_or(pair.len());
            // Single bytes would not count where they stand.
            hasher.write(b"?&");
            hasher.write(&pair[..value]);
            write_without_digits(&mut hasher, &pair[value..]);
        }
        let (mut id, mut has_length) = (None, false);
        for line in lines.take_while(|line| !line.is_empty()) {
            let colon = memchr(b':', line)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let is_one_of = |names: &[&[u8]]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
            // A line may go on with what was before it.
            let is_name = name.first().is_some_and(u8::is_ascii_alphanumeric);
            let is_usual = name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"keep-alive");
            if !is_name || (is_one_of(&NOT_SIMPLE) && !is_usual) {
                return None;
            }
            if name.eq_ignore_ascii_case(request_id::HEADER.as_bytes()) {
                id = HeaderValue::from_bytes(value).ok();
            } else if name.eq_ignore_ascii_case(b"content-length") {
                if !may_have_body || std::mem::replace(&mut has_length, true) || !is_short(value) {
                    return None;
                }
            } else if name.eq_ignore_ascii_case(b"content-type")
                && let Some(at) = memmem::find(value, BOUNDARY)
            {
                hasher.write(&value[..at]);
                hasher.write(b"\r\n");
            } else if !is_one_of(&NOT_COMPARED) {
                hasher.write(line);
                hasher.write(b"\r\n");
            }
        }
        Some(Asked { kind: hasher.finish(), path, id })
    }

    /// Keeps the answer if it is a refusal.
    fn learn<B: MessageBody + 'static>(&self, response: ServiceResponse<B>) -> ServiceResponse<EitherBody<B>> {
        // Whatever the answer is: a request that was not judged must not teach it as this one's.
        let asked = self.asked.take();
        if response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return response.map_into_left_body();
        }
        let by = response.request().extensions().get::<RefusedBy>().cloned();
        let Some(by) = by else { return response.map_into_left_body() };
        let (door, now) = (&self.door.0, Instant::now());
        door.until.set(Some(now + COPIED));
        let ends = response.response().head().connection_type() != ConnectionType::KeepAlive;
        let Some(kind) = asked.filter(|_| !ends) else { return response.map_into_left_body() };
        let (request, response) = response.into_parts();
        let (response, body) = response.into_parts();
        let body = match body.try_into_bytes() {
            Ok(body) => body,
            Err(body) => return ServiceResponse::new(request, response.set_body(EitherBody::left(body))),
        };
        let headers = response.headers();
        let has_id = headers.contains_key(&X_REQUEST_ID);
        let mut start = format!(
            "HTTP/1.1 {}\r\ncontent-length: {}\r\ndate: {}\r\n",
            response.status(),
            body.len(),
            HttpDate::from(SystemTime::now())
        )
        .into_bytes();
        for (name, value) in headers.iter().filter(|(name, _)| !NOT_COPIED.contains(name)) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                start.extend_from_slice(part);
            }
        }
        let mut end = Vec::new();
        if has_id {
            start.extend_from_slice(request_id::HEADER.as_bytes());
            start.extend_from_slice(b": ");
            end.extend_from_slice(b"\r\n");
        }
        end.extend_from_slice(b"\r\n");
        if request.method() != Method::HEAD {
            end.extend_from_slice(&body);
        }
        let (traffic, draining) = (request.app_data().cloned(), request.app_data().cloned());
        let renewed = Cell::new(now + RENEWED.0);
        let kept = Kept { since: now, renewed, by, traffic, draining, answer: (start, end), has_id };
        door.keep(kind, kept);
        ServiceResponse::new(request, response.set_body(EitherBody::right(BoxBody::new(body))))
    }
}

/// The outermost middleware, for `wrap_fn`.
pub fn learn<S, B>(
    request: ServiceRequest,
    next: &S,
) -> impl Future<Output = Result<ServiceResponse<EitherBody<B>>, Error>> + use<S, B>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    let doorway = request.conn_data::<Rc<Doorway>>().cloned();
    let answering = next.call(request);
    async move {
        let response = answering.await?;
        Ok(match doorway {
            Some(doorway) => doorway.learn(response),
            None => response.map_into_left_body(),
        })
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

    fn keep(&self, kind: u64, kept: Kept) {
        let mut all = self.kept.borrow_mut();
        if all.len() >= MOST_KEPT {
            all.clear();
        }
        all.insert(kind, kept);
    }

    /// The refusal of a request, if it is refused.
    fn refuse(&self, asked: &Asked<'_>, now: Instant) -> Option<Refusal> {
        let kept = self.kept.borrow();
        let kept = kept.get(&asked.kind).filter(|kept| now.duration_since(kept.since) < COPIED)?;
        if kept.draining.as_ref().is_some_and(|draining| draining.has_begun()) {
            return None;
        }
        if now >= kept.renewed.get() {
            kept.renewed.set(now + RENEWED.1);
            return None;
        }
        let until = kept.by.0.refuse()?;
        self.until.set(Some(now + COPIED));
        self.refused.set(self.refused.get() + 1);
        let is_due = self.told.get().is_none_or(|told| now.duration_since(told) >= TOLD_EVERY);
        if is_due {
            self.tell(now);
        }
        let (start, end) = &kept.answer;
        let id = if kept.has_id { request_id::request_id(asked.id.as_ref()) } else { String::new() };
        let path = std::str::from_utf8(asked.path).unwrap_or_default();
        Some(Refusal {
            bytes: [&start[..], id.as_bytes(), end].concat(),
            sent: 0,
            due: Box::pin(tokio::time::sleep_until(until.into())),
            begun: kept.traffic.as_ref().map(|traffic| traffic.begin(path)),
        })
    }

    /// Writes one line for all refusals since the last: a line for each would cost more than they do.
    fn tell(&self, now: Instant) {
        let refused = self.refused.take();
        if refused > 0 {
            self.told.set(Some(now));
            tracing::warn!(refused, "requests like others that had been refused were refused at the door");
        }
    }
}

/// A simple request.
struct Asked<'a> {
    /// The same for all that get the same refusal.
    kind: u64,
    path: &'a [u8],
    id: Option<HeaderValue>,
}

/// Whether a body of the announced length may be dropped.
fn is_short(length: &[u8]) -> bool {
    let digits = std::str::from_utf8(length).ok().filter(|_| length.iter().all(u8::is_ascii_digit));
    digits.and_then(|digits| digits.parse().ok()).is_some_and(|length: u64| length <= LONGEST_DROPPED)
}

/// The lines of a head, without their ends.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let at = memchr(b'\n', self.0)?;
        let line = self.0[..at].strip_suffix(b"\r")?;
        self.0 = &self.0[at + 1..];
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use actix_server::ServerHandle;
    use actix_web::{App, HttpRequest, HttpResponse, web};
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::super::listen::{Listener, serve};
    use super::super::room::Entrance;
    use super::*;

    /// Refuses while it is told so, each request after a moment.
    #[derive(Default)]
    struct Pool {
        is_full: AtomicBool,
        asked: AtomicUsize,
        handled: AtomicUsize,
    }

    const HELD_BACK: Duration = Duration::from_millis(20);

    impl Overloaded for Pool {
        fn refuse(&self) -> Option<Instant> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.is_full.load(Ordering::Relaxed).then(|| Instant::now() + HELD_BACK)
        }
    }

    impl Pool {
        fn set_full(&self, is_full: bool) {
            self.is_full.store(is_full, Ordering::Relaxed);
        }

        /// How many requests were handled since the last time.
        fn handled(&self) -> usize {
            self.handled.swap(0, Ordering::Relaxed)
        }
    }

    /// A server whose handler counts, and refuses while the pool is full.
    struct Server {
        address: SocketAddr,
        handle: ServerHandle,
        pool: Arc<Pool>,
        traffic: Traffic,
        draining: Draining,
    }

    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (pool, traffic, draining) = (Arc::<Pool>::default(), Traffic::default(), Draining::default());
        let (shared, counted, state) = (pool.clone(), traffic.clone(), draining.clone());
        let server = serve(vec![Listener::Tcp(listener)], Entrance::apart(), 1, move || {
            let pool = shared.clone();
            let handler = move |request: HttpRequest, _body: Bytes| {
                pool.handled.fetch_add(1, Ordering::Relaxed);
                let response = if pool.is_full.load(Ordering::Relaxed) {
                    request.extensions_mut().insert(RefusedBy(pool.clone()));
                    HttpResponse::ServiceUnavailable()
                        .insert_header(("retry-after", "1"))
                        .insert_header(("server-timing", "first"))
                        .insert_header((X_REQUEST_ID, "first"))
                        .body("full")
                } else {
                    HttpResponse::Ok().body("rows")
                };
                async move { response }
            };
            App::new()
                .wrap_fn(learn)
                .app_data(Data::new(counted.clone()))
                .app_data(Data::new(state.clone()))
                .default_service(web::to(handler))
        });
        let server = server.expect("a server");
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Server { address, handle, pool, traffic, draining }
    }

    impl Server {
        /// A connection whose requests are compared and have been refused.
        async fn refused(&self, like: &str) -> Client {
            self.pool.set_full(true);
            let mut client = self.client().await;
            // The first tells that there is overload, the second is kept.
            for _ in 0..2 {
                assert_eq!(client.ask(like).await.status, 503);
            }
            assert_eq!(self.pool.handled(), 2);
            client
        }

        /// Waits until the metrics say so: an answer is counted after its last byte was sent, when its reader may be ahead.
        async fn counts(&self, line: &str) {
            let counted = async {
                while !self.traffic.as_text().contains(line) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let waited = tokio::time::timeout(Duration::from_secs(10), counted).await;
            assert!(waited.is_ok(), "{line} is missing:\n{}", self.traffic.as_text());
        }

        async fn client(&self) -> Client {
            Client(TcpStream::connect(self.address).await.expect("a connection"))
        }
    }

    struct Client(TcpStream);

    struct Reply {
        status: u16,
        head: String,
        body: String,
    }

    impl Client {
        async fn send(&mut self, head: &str) {
            self.write(&format!("{head}\r\n\r\n")).await;
        }

        async fn write(&mut self, text: &str) {
            self.0.write_all(text.as_bytes()).await.expect("sent");
        }

        async fn receive(&mut self, has_body: bool) -> Reply {
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"\r\n\r\n") {
                bytes.push(self.0.read_u8().await.expect("a head"));
            }
            let head = String::from_utf8(bytes).expect("text");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            let mut body = vec![0; if has_body { length.parse().expect("a number") } else { 0 }];
            self.0.read_exact(&mut body).await.expect("a body");
            let status = head[9..12].parse().expect("a status");
            Reply { status, head, body: String::from_utf8(body).expect("text") }
        }

        async fn ask(&mut self, head: &str) -> Reply {
            self.send(head).await;
            self.receive(!head.starts_with("HEAD")).await
        }
    }

    const LIKE: &str =
        "GET /rest/v1/a?id=eq.1 HTTP/1.1\r\nHost: h\r\nConnection: Keep-Alive\r\nAuthorization: Bearer a";

    #[actix_web::test]
    async fn what_is_like_a_refused_request_is_refused_without_being_handled_while_the_pool_says_so() {
        let server = start();
        let mut client = server.client().await;
        assert_eq!((client.ask(LIKE).await.status, server.pool.handled()), (200, 1));
        let mut client = server.refused(LIKE).await;
        let begun = Instant::now();
        let other_id = LIKE.replace("eq.1", "eq.27");
        let copy = client.ask(&format!("{other_id}\r\nX-Request-Id:  mine ")).await;
        assert!(begun.elapsed() >= HELD_BACK, "as late as the pool says");
        assert_eq!((copy.status, &*copy.body, server.pool.handled()), (503, "full", 0));
        for (line, is_there) in [
            ("HTTP/1.1 503 Service Unavailable", true),
            ("retry-after: 1", true),
            ("x-request-id: mine", true),
            ("server-timing: first", false),
        ] {
            assert_eq!(copy.head.lines().any(|other| other == line), is_there, "{line}: {}", copy.head);
        }
        assert!(copy.head.contains("\r\ndate: "), "{}", copy.head);
        server.counts("refusals_total{api=\"rest\",status=\"503\"} 1").await;
        server.counts("in_flight{api=\"rest\"} 0").await;
        server.pool.set_full(false);
        assert_eq!(client.ask(LIKE).await.status, 200, "served again at once");
        assert_eq!(server.pool.handled(), 1);
    }

    #[actix_web::test]
    async fn one_of_many_goes_the_whole_way_before_what_is_copied_is_too_old() {
        let (door, pool, now) = (Inside::default(), Arc::<Pool>::default(), Instant::now());
        pool.set_full(true);
        let renewed = Cell::new(now + RENEWED.0);
        let (traffic, draining, answer) = (None, None, (Vec::new(), Vec::new()));
        let by = RefusedBy(pool);
        door.keep(1, Kept { since: now, renewed, by, traffic, draining, answer, has_id: false });
        for (ms, is_copied) in [
            (0, true),
            (499, true),
            (500, false),
            (501, true),
            (599, true),
            (600, false),
            (601, true),
            (1000, false),
            (1001, false),
        ] {
            let asked = Asked { kind: 1, path: b"/rest/v1/a", id: None };
            let refusal = door.refuse(&asked, now + Duration::from_millis(ms));
            assert_eq!(refusal.is_some(), is_copied, "after {ms} ms");
        }
    }

    #[actix_web::test]
    async fn others_are_looked_at() {
        let server = start();
        let mut client = server.refused(LIKE).await;
        let more = |line: &str| format!("{LIKE}\r\n{line}");
        for other in [
            LIKE.replace("GET", "HEAD"),
            LIKE.replace("GET", "DELETE"),
            LIKE.replace("/a?", "/b?"),
            LIKE.replace("eq.1", "gt.1"),
            LIKE.replace("/a?id=eq.1", "/a/?id=eq.1"),
            LIKE.replace("id=", "id2="),
            LIKE.replace("id=eq.1", "id=eq.1&id=eq.1"),
            LIKE.replace("v1", "v2"),
            LIKE.replace("id=eq.1", "id=eq.1&apikey=1"),
            LIKE.replace("Bearer a", "Bearer b"),
            LIKE.replace("GET /", "GET http://h/"),
            more("X-Forwarded-For: 192.0.2.1"),
            more("Origin: http://other.example"),
            more("Expect: nothing"),
            more("Content-Length: 0"),
        ] {
            client.ask(&other).await;
            assert_eq!(server.pool.handled(), 1, "{other}");
        }
        for same in [LIKE.replace("eq.1", "eq.99"), more("traceparent: 00-1"), more("Referer: /there")] {
            assert_eq!(client.ask(&same).await.status, 503);
            assert_eq!(server.pool.handled(), 0, "{same}");
        }
        // Nor is the first of a connection refused here, or one that ends it.
        assert_eq!(server.client().await.ask(LIKE).await.status, 503);
        assert_eq!(client.ask(&more("Connection: close")).await.status, 503);
        assert_eq!(server.pool.handled(), 2);
    }

    /// One function's refusal is not another one's, nor one bucket's.
    #[actix_web::test]
    async fn names_of_what_is_asked_for_are_compared_with_their_digits() {
        for (path, other) in [
            ("/rest/v1/rpc/f1", "/rest/v1/rpc/f2"),
            ("/rest/v1/rpc/f?x", "/rest/v1/rpc/f7x"),
            ("/rest/v1/rpc/f/7?x", "/rest/v1/rpc/f/7x"),
            ("/storage/v1/object/a1/b", "/storage/v1/object/a2/b"),
        ] {
            let server = start();
            let like = |path: &str| LIKE.replace("/rest/v1/a?id=eq.1", path);
            let mut client = server.refused(&like(path)).await;
            client.ask(&like(path)).await;
            assert_eq!(server.pool.handled(), 0, "{path}");
            client.ask(&like(other)).await;
            assert_eq!(server.pool.handled(), 1, "{path} {other}");
        }
    }

    /// Regression: it was kept as the answer to the last request of its connection that had been compared.
    #[actix_web::test]
    async fn a_request_that_was_not_compared_teaches_nothing() {
        let server = start();
        let mut other = server.refused(LIKE).await;
        // Each twice: workers take connections by turns.
        for (is_full, status) in [(true, 503), (true, 503), (false, 200), (false, 200)] {
            let mut one = server.client().await;
            while one.ask(LIKE).await.status == 503 && server.pool.handled() > 0 {}
            server.pool.set_full(is_full);
            assert_eq!(one.ask(LIKE).await.status, status);
            server.pool.set_full(true);
            one.write("HEAD /rest/v1/b HTTP/1.1\nHost: h\n\n").await;
            assert_eq!(one.receive(false).await.status, 503);
            assert_eq!(other.ask(LIKE).await.body, "full", "after {status}");
        }
    }

    /// Regression: the connection was neither read nor closed any more.
    #[actix_web::test]
    async fn blank_lines_between_requests_keep_no_connection() {
        let server = start();
        let mut client = server.client().await;
        assert_eq!(client.ask(LIKE).await.status, 200);
        client.write("\r\n\r\n").await;
        let asking = tokio::time::timeout(Duration::from_secs(10), client.ask(LIKE));
        assert_eq!(asking.await.expect("an answer").status, 200);
        client.write("\r\n\r\nG").await;
        client.0.shutdown().await.expect("shut down");
        let mut rest = Vec::new();
        let ending = tokio::time::timeout(Duration::from_secs(10), client.0.read_to_end(&mut rest));
        ending.await.expect("the connection ends").expect("read");
    }

    #[actix_web::test]
    async fn an_answer_to_head_has_no_body() {
        let server = start();
        let like = LIKE.replace("GET", "HEAD");
        let mut client = server.refused(&like).await;
        for _ in 0..2 {
            let reply = client.ask(&like).await;
            assert!(reply.head.contains("content-length: 4\r\n"), "{}", reply.head);
        }
        assert_eq!(server.pool.handled(), 0);
    }

    #[actix_web::test]
    async fn a_short_body_is_dropped_before_its_request_is_refused() {
        let server = start();
        let post = |length: usize| format!("{}\r\nContent-Length: {length}", LIKE.replace("GET", "POST"));
        let whole = |head: &str, body: &str| format!("{head}\r\n\r\n{body}");
        server.pool.set_full(true);
        let mut client = server.client().await;
        for body in ["one", "three"] {
            client.write(&whole(&post(body.len()), body)).await;
            assert_eq!(client.receive(true).await.status, 503);
        }
        assert_eq!(server.pool.handled(), 2);
        // What looks like a request within a body is none, and the one after it is not lost.
        let hidden = "GET /hidden HTTP/1.1\r\n\r\n";
        let id = format!("{}\r\nX-Request-Id: last", post(0));
        client.write(&[whole(&post(hidden.len()), hidden), whole(&id, "")].concat()).await;
        assert_eq!(client.receive(true).await.status, 503);
        assert!(client.receive(true).await.head.contains("x-request-id: last"));
        assert_eq!(server.pool.handled(), 0);
        // In pieces: it is not answered before its end.
        let before = server.pool.asked.load(Ordering::Relaxed);
        client.write(&whole(&post(4), "a")).await;
        while server.pool.asked.load(Ordering::Relaxed) == before {
            tokio::task::yield_now().await;
        }
        assert!(tokio::time::timeout(HELD_BACK * 3, client.0.read_u8()).await.is_err(), "answered within the body");
        client.write("bcd").await;
        assert_eq!((client.receive(true).await.status, server.pool.handled()), (503, 0));
        server.pool.set_full(false);
        client.write(&whole(&post(1), "1")).await;
        assert_eq!((client.receive(true).await.status, server.pool.handled()), (200, 1));
    }

    #[actix_web::test]
    async fn lengths_that_are_not_plain_are_looked_at() {
        let (server, post) = (start(), LIKE.replace("GET", "POST"));
        let mut client = server.refused(&post).await;
        let long = "x".repeat(usize::try_from(LONGEST_DROPPED).expect("small") + 1);
        client.write(&format!("{post}\r\nContent-Length: {}\r\n\r\n{long}", long.len())).await;
        assert_eq!((client.receive(true).await.status, server.pool.handled()), (503, 1));
        client.write(&format!("{post}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")).await;
        assert_eq!((client.receive(true).await.status, server.pool.handled()), (503, 1));
        for lengths in ["Content-Length: 1\r\nContent-Length: 1", "Content-Length: +1", "Content-Length: 1, 1"] {
            let server = start();
            let mut client = server.refused(&post).await;
            let asked = server.pool.asked.load(Ordering::Relaxed);
            client.write(&format!("{post}\r\n{lengths}\r\n\r\nx")).await;
            client.0.read_u8().await.expect("an answer");
            assert_eq!(server.pool.asked.load(Ordering::Relaxed), asked, "{lengths}");
        }
    }

    #[actix_web::test]
    async fn forms_are_alike_whatever_separates_their_parts() {
        let server = start();
        let form = |boundary: &str| {
            let head = LIKE.replace("GET", "POST");
            format!("{head}\r\nContent-Type: multipart/form-data; boundary={boundary}")
        };
        let mut client = server.refused(&form("a")).await;
        assert_eq!((client.ask(&form("b")).await.status, server.pool.handled()), (503, 0));
        client.ask(&form("a").replace("form-data", "mixed")).await;
        assert_eq!(server.pool.handled(), 1);
    }

    #[actix_web::test]
    async fn pipelined_requests_are_answered_in_their_order() {
        let server = start();
        let mut client = server.refused(LIKE).await;
        let id = |id: &str| format!("{LIKE}\r\nX-Request-Id: {id}");
        let other = LIKE.replace("/a?", "/b?");
        client.send(&[id("one"), id("two"), other, id("three"), id("four")].join("\r\n\r\n")).await;
        let mut ids = Vec::new();
        for _ in 0..5 {
            let reply = client.receive(true).await;
            ids.extend(reply.head.lines().find_map(|line| line.strip_prefix("x-request-id: ").map(str::to_owned)));
        }
        assert_eq!(ids, ["one", "two", "first", "three", "four"]);
        assert_eq!(server.pool.handled(), 1);
    }

    #[actix_web::test]
    async fn a_server_that_is_about_to_stop_says_so_to_each() {
        let server = start();
        let mut client = server.refused(LIKE).await;
        server.draining.begin();
        assert_eq!(client.ask(LIKE).await.status, 503);
        assert_eq!(server.pool.handled(), 1);
    }

    #[actix_web::test]
    async fn a_refusal_that_is_held_back_is_sent_when_the_server_stops() {
        let server = start();
        let mut client = server.refused(LIKE).await;
        client.send(LIKE).await;
        while server.pool.asked.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let (reply, ()) = tokio::join!(client.receive(true), server.handle.stop(true));
        assert_eq!((reply.status, server.pool.handled()), (503, 0));
    }

    #[actix_web::test]
    async fn no_request_is_compared_while_none_is_refused() {
        let server = start();
        let mut client = server.client().await;
        for _ in 0..3 {
            assert_eq!(client.ask(LIKE).await.status, 200);
        }
        assert_eq!((server.pool.handled(), server.pool.asked.load(Ordering::Relaxed)), (3, 0));
    }
}
