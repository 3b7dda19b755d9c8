//! Listening for HTTP/1.1 with request targets mended on the way in (see [`super::lenient`]).

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpServiceBuilder, Request, Response};
use actix_server::{GracefulShutdownSignal, Server, ServerBuilder};
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config,
};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::AppConfig;
use actix_web::rt::net::{TcpStream, UnixStream};

use super::gate::{Answer, Gate, Opening};
use super::lenient::Lenient;

/// How long a connection may wait for its next request. Clients that reuse connections should close them first: if the
/// server does, a request in flight is lost, and writing requests are not retried. Load balancers keep theirs for 60 s;
/// nginx waits for 75 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a client may take to send a request's head, even over a slow mobile connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the rest of a request is read and discarded after an early answer (a refusal). Closing at once would reset
/// the connection and lose the answer.
pub const LINGER: Duration = Duration::from_secs(1);

/// A listening socket.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A server that runs one `app` per worker. Signals are left to the caller; on a stop, idle connections are closed and
/// requests in flight get `shutdown_seconds`. If a client hangs up, its request is dropped at once and its resources
/// are freed.
pub fn serve<F, I, S, B>(listeners: Vec<Listener>, shutdown_seconds: u64, app: F) -> io::Result<Server>
where
    F: Fn() -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as actix_service::Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let mut builder: ServerBuilder = Server::build().shutdown_timeout(shutdown_seconds).disable_signals();
    let stopping = builder.graceful_shutdown_signal();
    for listener in listeners {
        let app = app.clone();
        let stopping = stopping.clone();
        builder = match listener {
            Listener::Tcp(listener) => {
                let local = listener.local_addr()?;
                builder.listen("http", listener, move || {
                    fn_service(|stream: TcpStream| async move {
                        // Answers are written as a whole, so Nagle's algorithm would only delay them.
                        let _ = stream.set_nodelay(true);
                        let peer: Option<SocketAddr> = stream.peer_addr().ok();
                        Ok::<_, DispatchError>((Lenient::new(stream), peer))
                    })
                    .and_then(to_its_end(http(stopping.clone()).local_addr(local).h1(with_config(app()))))
                })?
            }
            Listener::Unix(listener) => builder.listen_uds("http", listener, move || {
                fn_service(|stream: UnixStream| async move {
                    Ok::<_, DispatchError>((Lenient::new(stream), None::<SocketAddr>))
                })
                .and_then(to_its_end(http(stopping.clone()).h1(with_config(app()))))
            })?,
        };
    }
    Ok(builder.run())
}

/// The HTTP service for every kind of socket.
fn http<T, S>(stopping: GracefulShutdownSignal) -> HttpServiceBuilder<Lenient<T>, S>
where
    S: ServiceFactory<Request, Config = ()>,
    S::Error: Into<Response<BoxBody>> + 'static,
    S::InitError: fmt::Debug,
    <S::Service as Service<Request>>::Future: 'static,
{
    HttpServiceBuilder::default()
        .on_connect_ext(|stream: &Lenient<T>, data| {
            data.insert(stream.gate().clone());
            data.insert(stream.takeover().clone());
        })
        .h1_allow_half_closed(false)
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_TIMEOUT)
        .client_disconnect_timeout(LINGER)
        .graceful_shutdown_signal(move || {
            let stopping = stopping.clone();
            async move { stopping.notified().await }
        })
}

/// Serves a connection to its end: HTTP, then what takes it over, without keeping HTTP's state.
fn to_its_end<T, H>(
    http: H,
) -> impl ServiceFactory<
    Accepted<T>,
    Config = (),
    Response = (),
    Error = DispatchError,
    InitError = H::InitError,
    Future = impl Future + 'static,
    Service = impl Service<Accepted<T>, Response = (), Error = DispatchError, Future = impl Future + 'static> + 'static,
>
where
    T: 'static,
    H: ServiceFactory<Accepted<T>, Config = (), Response = (), Error = DispatchError> + 'static,
    H::Service: 'static,
{
    apply_fn_factory(http, |(stream, peer): Accepted<T>, http: &H::Service| {
        let takeover = stream.takeover().clone();
        let spoken = Box::pin(http.call((stream, peer)));
        async move {
            let outcome = spoken.await;
            match takeover.take() {
                Some(work) => {
                    work.await;
                    Ok(())
                }
                None => outcome,
            }
        }
    })
}

/// A connection and its peer.
type Accepted<T> = (Lenient<T>, Option<SocketAddr>);

/// The application's answer.
type Answered<B> = Result<Response<Answer<B>>, actix_web::Error>;

/// The application with actix's configuration; its answers open the connection's gate.
fn with_config<I, S, B>(
    app: I,
) -> impl ServiceFactory<
    Request,
    Config = (),
    Response = Response<Answer<B>>,
    Error = actix_web::Error,
    InitError = S::InitError,
    Future = impl Future + 'static,
    Service = impl actix_service::Service<
        Request,
        Response = Response<Answer<B>>,
        Error = actix_web::Error,
        Future = impl Future<Output = Answered<B>> + 'static,
    > + 'static,
>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    B: MessageBody + 'static,
{
    let app = map_config(app.into_factory().map_err(Into::into), |()| AppConfig::default());
    apply_fn_factory(app, |request: Request, app: &_| {
        let opening = request.conn_data::<Rc<Gate>>().map(Opening::of);
        let answer = Service::call(app, request);
        async move {
            let answer: Response<B> = answer.await?.into();
            Ok(answer.map_body(|_, body| Answer::new(body, opening)))
        }
    })
}
