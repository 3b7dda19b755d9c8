//! Clients that mean no good, and the end of connections.

use std::convert::Infallible;

use ::h2::client::{self, ResponseFuture, SendRequest};
use actix_web::body::BodyStream;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;

/// What a test waits for at most.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);
/// Nothing ends by itself.
const PATIENT: Times = Times { opening: LONG, idle: LONG, stalled: LONG, farewell: LONG };

/// A service that is a function.
struct Answers<F>(F);

impl<F, R> Service<Request> for Answers<F>
where
    F: Fn(Request) -> R + 'static,
    R: Future<Output = Response<BoxBody>> + 'static,
{
    type Response = Response<BoxBody>;
    type Error = Infallible;
    type Future = LocalBoxFuture<'static, Result<Self::Response, Infallible>>;

    actix_service::always_ready!();

    fn call(&self, request: Request) -> Self::Future {
        let answer = (self.0)(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

type Served = JoinHandle<Result<(), DispatchError>>;

/// The client's end of a connection that is served until `stopping`.
fn served_until<F, R>(times: Times, stopping: Rc<Notify>, answers: F) -> (DuplexStream, Served)
where
    F: Fn(Request) -> R + 'static,
    R: Future<Output = Response<BoxBody>> + 'static,
{
    let (client, server) = tokio::io::duplex(64 << 10);
    let stopping = async move { stopping.notified().await };
    (client, spawn_local(serve(Rc::new(Answers(answers)), server, None, stopping, times)))
}

fn served<F, R>(times: Times, answers: F) -> (DuplexStream, Served)
where
    F: Fn(Request) -> R + 'static,
    R: Future<Output = Response<BoxBody>> + 'static,
{
    served_until(times, Rc::default(), answers)
}

async fn local<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(async { timeout(LONG, test).await.expect("in time") }).await
}

fn plain(status: StatusCode) -> Response<BoxBody> {
    Response::with_body(status, ()).map_into_boxed_body()
}

async fn fine(_: Request) -> Response<BoxBody> {
    plain(StatusCode::OK)
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

type Client = SendRequest<Bytes>;

async fn speaking(io: DuplexStream) -> Client {
    let (client, connection) = client::handshake(io).await.expect("HTTP/2");
    spawn_local(connection);
    client
}

fn request(method: &str, target: &str) -> http_0_2::request::Builder {
    http_0_2::Request::builder().method(method).uri(format!("https://localhost{target}"))
}

/// Sends a request without a body.
async fn ask(client: &Client, request: http_0_2::request::Builder) -> Result<ResponseFuture, ::h2::Error> {
    let mut client = client.clone().ready().await?;
    Ok(client.send_request(request.body(()).expect("a request"), true)?.0)
}

async fn status(client: &Client, request: http_0_2::request::Builder) -> Result<u16, ::h2::Error> {
    Ok(ask(client, request).await?.await?.status().as_u16())
}

/// Sends a body of this length, or as much of it as is taken; the answer's status.
async fn upload(client: &Client, target: &str, declared: Option<usize>, length: usize) -> Result<u16, ::h2::Error> {
    let mut head = request("POST", target);
    if let Some(declared) = declared {
        head = head.header(CONTENT_LENGTH, declared);
    }
    let mut client = client.clone().ready().await?;
    let (answer, mut sending) = client.send_request(head.body(()).expect("a request"), false)?;
    let sent = async {
        let mut left = length;
        while left > 0 {
            sending.reserve_capacity(left.min(CHUNK));
            let Some(Ok(room)) = poll_fn(|context| sending.poll_capacity(context)).await else { return };
            left -= room.min(left);
            if sending.send_data(vec![b'a'; room].into(), left == 0).is_err() {
                return;
            }
        }
    };
    let (answer, ()) = futures_util::join!(answer, sent);
    Ok(answer?.status().as_u16())
}

#[tokio::test]
async fn an_idle_connection_ends_whether_its_client_answers_or_not() {
    local(async {
        let times = Times { idle: SHORT, farewell: SHORT, ..PATIENT };
        let (silent, ended) = served(times, fine);
        let mut silent = Raw::begin(silent).await;
        silent.send(HEADERS, END_STREAM | END_HEADERS, 1, GET).await.expect("sent");
        ended.await.expect("it ends").expect("without an error");

        // One that is asked to go may still have sent what it had.
        let (io, ended) = served(Times { idle: SHORT, ..PATIENT }, fine);
        let client = speaking(io).await;
        assert_eq!(status(&client, request("GET", "/")).await.ok(), Some(200));
        // With an error if the client was the first to close.
        let _ = ended.await.expect("it ends");
        assert!(status(&client, request("GET", "/")).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_answers_what_is_under_way_and_nothing_else() {
    local(async {
        let (stop, go_on, begun) = (Rc::new(Notify::new()), Rc::new(Notify::new()), Rc::new(Cell::new(0)));
        let (waits, counts) = (go_on.clone(), begun.clone());
        let (io, ended) = served_until(PATIENT, stop.clone(), move |_| {
            counts.set(counts.get() + 1);
            let waits = waits.clone();
            async move {
                waits.notified().await;
                plain(StatusCode::OK)
            }
        });
        let client = speaking(io).await;
        let under_way = spawn_local(ask(&client, request("GET", "/")).await.expect("sent"));
        until(|| begun.get() == 1).await;
        stop.notify_one();
        // Until the client has heard of it.
        while client.clone().ready().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(status(&client, request("GET", "/")).await.is_err());
        assert_eq!(begun.get(), 1);
        go_on.notify_one();
        assert_eq!(under_way.await.expect("asked").expect("an answer").status(), 200);
        ended.await.expect("it ends").expect("without an error");
    })
    .await;
}

/// Counts as long as it is there.
struct Present(Rc<Cell<usize>>);

impl Present {
    fn of(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(count.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[tokio::test]
async fn a_client_that_only_gives_requests_up_is_sent_away() {
    local(async {
        let present = Rc::new(Cell::new(0));
        let counts = present.clone();
        let (io, ended) = served(PATIENT, move |request| {
            let present = Present::of(&counts);
            async move {
                if request.path() == "/waits" {
                    std::future::pending::<()>().await;
                }
                drop(present);
                plain(StatusCode::OK)
            }
        });
        let client = speaking(io).await;
        let give_up = async || -> Result<(), ::h2::Error> {
            let mut asked = Vec::new();
            for _ in 0..50 {
                asked.push(ask(&client, request("GET", "/waits")).await?);
            }
            until(|| present.get() == 50 || ended.is_finished()).await;
            drop(asked);
            until(|| present.get() == 0 || ended.is_finished()).await;
            Ok(())
        };
        // As when a page is left, again and again.
        for _ in 0..MOST_GIVEN_UP.0 / 50 {
            give_up().await.expect("it may");
            assert_eq!(status(&client, request("GET", "/")).await.ok(), Some(200));
        }
        let error = async {
            loop {
                if let Err(error) = give_up().await {
                    return error;
                }
            }
        };
        let error = error.await;
        assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{error:?}");
        ended.await.expect("it ends").expect("without an error");
        assert_eq!(present.get(), 0, "nothing goes on");
    })
    .await;
}

#[test]
fn requests_given_up_long_ago_do_not_count() {
    let begun = Instant::now();
    let mut given_up = GivenUp { since: begun, count: 0 };
    let mut now = begun;
    for _ in 0..10 {
        for _ in 0..MOST_GIVEN_UP.0 {
            assert!(!given_up.is_too_many(now));
        }
        now += MOST_GIVEN_UP.1 + Duration::from_millis(1);
    }
    for _ in 0..MOST_GIVEN_UP.0 {
        given_up.is_too_many(now);
    }
    assert!(given_up.is_too_many(now));
}

/// Reads the whole body.
async fn read(mut request: Request) -> Result<usize, PayloadError> {
    let mut payload = request.take_payload();
    let mut length = 0;
    while let Some(part) = payload.next().await {
        length += part?.len();
    }
    Ok(length)
}

#[tokio::test]
async fn bodies_that_nobody_reads_leave_the_connection_its_window() {
    local(async {
        let (io, _served) = served(PATIENT, |request| async {
            if request.path() == "/refused" {
                return plain(StatusCode::UNAUTHORIZED);
            }
            let length = read(request).await.expect("a body");
            plain(if length == 3 << 20 { StatusCode::OK } else { StatusCode::BAD_REQUEST })
        });
        let client = speaking(io).await;
        // More than fits into the window of the connection.
        for _ in 0..20 {
            assert_eq!(upload(&client, "/refused", None, 900 << 10).await.ok(), Some(401));
        }
        assert_eq!(upload(&client, "/read", None, 3 << 20).await.ok(), Some(200));
    })
    .await;
}

#[tokio::test]
async fn a_body_of_another_length_than_declared_is_never_taken_for_whole() {
    local(async {
        let whole = Rc::new(Cell::new(0));
        let counts = whole.clone();
        let (io, _served) = served(PATIENT, move |request| {
            let counts = counts.clone();
            async move {
                match read(request).await {
                    Ok(_) => counts.set(counts.get() + 1),
                    Err(_) => return plain(StatusCode::BAD_REQUEST),
                }
                plain(StatusCode::OK)
            }
        });
        let client = speaking(io).await;
        for declared in [1, 999, 1001, 1 << 40] {
            let answer = upload(&client, "/", Some(declared), 1000).await;
            let is_refused = match &answer {
                Ok(status) => *status == 400,
                Err(error) => error.reason() == Some(Reason::PROTOCOL_ERROR),
            };
            assert!(is_refused, "{declared}: {answer:?}");
        }
        assert_eq!(whole.get(), 0);
        assert_eq!(upload(&client, "/", Some(1000), 1000).await.ok(), Some(200));
    })
    .await;
}

/// Regression: what relays bodies took a request without `Content-Length` for one without a body.
#[tokio::test]
async fn a_body_of_unknown_length_is_announced_as_in_http_1() {
    local(async {
        let (io, _served) = served(PATIENT, |request| async {
            let headers = request.headers().clone();
            let is_chunked = headers.get(TRANSFER_ENCODING).is_some_and(|value| value == "chunked");
            let expected = match request.path() {
                "/unknown" => (true, false, 5000),
                "/known" => (false, true, 5000),
                _ => (false, false, 0),
            };
            let found = (is_chunked, headers.contains_key(CONTENT_LENGTH), read(request).await.expect("a body"));
            plain(if found == expected { StatusCode::OK } else { StatusCode::BAD_REQUEST })
        });
        let client = speaking(io).await;
        assert_eq!(upload(&client, "/unknown", None, 5000).await.ok(), Some(200));
        assert_eq!(upload(&client, "/known", Some(5000), 5000).await.ok(), Some(200));
        for method in ["GET", "POST"] {
            assert_eq!(status(&client, request(method, "/none")).await.ok(), Some(200), "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_has_one_host() {
    local(async {
        let (io, _served) = served(PATIENT, |request| async move {
            let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            plain(if host.eq_ignore_ascii_case("localhost") { StatusCode::OK } else { StatusCode::IM_A_TEAPOT })
        });
        let client = speaking(io).await;
        let get = || request("GET", "/");
        assert_eq!(status(&client, get()).await.ok(), Some(200));
        assert_eq!(status(&client, get().header(HOST, "LOCALHOST")).await.ok(), Some(200));
        for other in ["elsewhere", "localhost:1", "localhost.", ""] {
            assert_eq!(status(&client, get().header(HOST, other)).await.ok(), Some(400), "{other:?}");
        }
        let twice = get().header(HOST, "localhost").header(HOST, "elsewhere");
        assert_eq!(status(&client, twice).await.ok(), Some(400));
        let with_user = http_0_2::Request::builder().uri("https://elsewhere@localhost/");
        assert_eq!(status(&client, with_user).await.ok(), Some(400));
    })
    .await;
}

/// Regression: all cookies but the first were lost.
#[tokio::test]
async fn cookies_in_fields_of_their_own_are_one_list() {
    local(async {
        let (io, _served) = served(PATIENT, |request| async move {
            let fields: Vec<_> = request.headers().get_all("cookie").map(|field| field.as_bytes().to_vec()).collect();
            plain(if fields == [b"a=1; b=2; c=3"] { StatusCode::OK } else { StatusCode::IM_A_TEAPOT })
        });
        let client = speaking(io).await;
        let get = request("GET", "/").header("cookie", "a=1").header("cookie", "b=2; c=3");
        assert_eq!(status(&client, get).await.ok(), Some(200));
        let get = request("GET", "/").header("cookie", "a=1; b=2; c=3");
        assert_eq!(status(&client, get).await.ok(), Some(200));
    })
    .await;
}

#[tokio::test]
async fn an_answer_of_which_nothing_is_taken_is_given_up_and_not_gathered() {
    local(async {
        let (parts, present) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (counts, here) = (parts.clone(), present.clone());
        let (io, _served) = served(Times { stalled: SHORT, ..PATIENT }, move |request| {
            let (counts, here) = (counts.clone(), here.clone());
            async move {
                if request.path() == "/short" {
                    return plain(StatusCode::NO_CONTENT);
                }
                let present = Present::of(&here);
                let endless = stream::repeat_with(move || {
                    let _ = &present;
                    counts.set(counts.get() + 1);
                    Ok::<_, Infallible>(Bytes::from(vec![b'a'; CHUNK]))
                });
                Response::with_body(StatusCode::OK, BodyStream::new(endless)).map_into_boxed_body()
            }
        });
        let (client, connection) = client::Builder::new().initial_window_size(0).handshake(io).await.expect("HTTP/2");
        spawn_local(connection);
        let mut answers = Vec::new();
        for _ in 0..MOST_STREAMS {
            let answer = ask(&client, request("GET", "/endless")).await.expect("sent").await.expect("a head");
            answers.push(answer.into_body());
        }
        until(|| present.get() == 0).await;
        assert!(parts.get() <= MOST_STREAMS as usize, "{} parts were gathered", parts.get());
        let error = answers[0].data().await.expect("an end").expect_err("it is given up");
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        assert_eq!(status(&client, request("GET", "/short")).await.ok(), Some(204), "the connection stays");
    })
    .await;
}

#[tokio::test]
async fn a_head_has_a_longest_length() {
    local(async {
        let (io, _served) = served(PATIENT, fine);
        let client = speaking(io).await;
        let with_headers = |count: usize| {
            let names = (0..count).map(|number| format!("x-{number}"));
            names.fold(request("GET", "/"), |head, name| head.header(name, "a".repeat(16 << 10)))
        };
        assert_eq!(status(&client, with_headers(7)).await.ok(), Some(200));
        assert_eq!(status(&client, with_headers(9)).await.ok(), Some(431));
        assert_eq!(status(&client, request("GET", "/")).await.ok(), Some(200), "the connection stays");
    })
    .await;
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:method GET`, `:scheme https`, `:path /`, `:authority a`.
const GET: &[u8] = &[0x82, 0x87, 0x84, 0x01, 1, b'a'];

/// A client that sends frames as it likes.
struct Raw(DuplexStream);

impl Raw {
    async fn begin(mut io: DuplexStream) -> Self {
        io.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("sent");
        let mut raw = Self(io);
        raw.send(SETTINGS, 0, 0, &[]).await.expect("sent");
        raw
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.0.write_all(&frame).await
    }

    /// The next frame of this kind: its stream and payload. `None` at the end.
    async fn next(&mut self, wanted: u8) -> Option<(u32, Vec<u8>)> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            if head[3] == wanted {
                return Some((u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload));
            }
        }
    }

    /// The reason with which the server ends the connection.
    async fn farewell(&mut self) -> Option<Reason> {
        let (_, payload) = self.next(GOAWAY).await?;
        Some(u32::from_be_bytes(payload[4..8].try_into().ok()?).into())
    }
}

/// A header that is not kept for later ones.
fn header(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

#[tokio::test]
async fn headers_of_a_connection_are_refused_and_nothing_is_upgraded() {
    local(async {
        let asked = Rc::new(Cell::new(0));
        let counts = asked.clone();
        let (io, _served) = served(PATIENT, move |_| {
            counts.set(counts.get() + 1);
            async { plain(StatusCode::OK) }
        });
        let mut client = Raw::begin(io).await;
        let mut stream = 1;
        for (name, value) in [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "gzip"),
            (":path", "/other"),
            (":status", "200"),
        ] {
            let head = [GET, &header(name, value)].concat();
            client.send(HEADERS, END_STREAM | END_HEADERS, stream, &head).await.expect("sent");
            let reset = client.next(RST_STREAM).await.expect("a reset");
            assert_eq!(reset, (stream, vec![0, 0, 0, 1]), "{name}");
            stream += 2;
        }
        assert_eq!(asked.get(), 0);
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, GET).await.expect("sent");
        assert_eq!(client.next(HEADERS).await.expect("an answer").0, stream);
    })
    .await;
}

#[tokio::test]
async fn a_head_without_an_end_ends_the_connection() {
    local(async {
        let (io, ended) = served(PATIENT, fine);
        let mut client = Raw::begin(io).await;
        client.send(HEADERS, END_STREAM, 1, GET).await.expect("sent");
        let mut sent = 0;
        while client.send(CONTINUATION, 0, 1, &header("x", "y")).await.is_ok() {
            sent += 1;
            assert!(sent < 10_000, "it goes on for ever");
        }
        assert_eq!(client.farewell().await, Some(Reason::ENHANCE_YOUR_CALM));
        assert!(ended.await.expect("it ends").is_err());
    })
    .await;
}

/// Sends frames without reading what is answered, until the server reads no more; how many.
async fn flood(client: &mut Raw, kind: u8, payload: &[u8]) -> usize {
    let mut sent = 0;
    while let Ok(outcome) = timeout(SHORT * 10, client.send(kind, 0, 0, payload)).await {
        outcome.expect("sent");
        sent += 1;
        assert!(sent < 1_000_000, "answers are gathered for ever");
    }
    sent
}

#[tokio::test]
async fn answers_to_pings_and_settings_are_not_gathered() {
    local(async {
        for (kind, payload) in [(PING, &[1; 8][..]), (SETTINGS, &[])] {
            let (io, _served) = served(PATIENT, fine);
            let mut client = Raw::begin(io).await;
            let sent = flood(&mut client, kind, payload).await;
            assert!(sent < 50_000, "{sent} before the first answer was taken");
        }
    })
    .await;
}

#[tokio::test]
async fn data_for_no_request_ends_the_connection() {
    local(async {
        let (io, ended) = served(PATIENT, fine);
        let mut client = Raw::begin(io).await;
        client.send(DATA, END_STREAM, 1, b"a").await.expect("sent");
        assert_eq!(client.farewell().await, Some(Reason::PROTOCOL_ERROR));
        assert!(ended.await.expect("it ends").is_err());
    })
    .await;
}
