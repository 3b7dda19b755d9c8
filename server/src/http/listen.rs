//! Listening for HTTP/1.1 with request targets mended on the way in (see [`super::lenient`]), and for HTTPS, over which HTTP/2 is
//! spoken as well.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::rc::Rc;

#[cfg(feature = "https")]
use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_http::{HttpServiceBuilder, Request, Response};
use actix_server::{GracefulShutdownSignal, Server, ServerBuilder};
#[cfg(feature = "https")]
use actix_service::fn_factory;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config,
};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::AppConfig;
use actix_web::rt::net::{TcpStream, UnixStream};

use super::connection::{HEAD_TIMEOUT, KEEP_ALIVE, LINGER, Secure};
use super::door::{Door, Doorway};
use super::gate::{Answer, Gate, Opening};
use super::lenient::Lenient;
use super::room::Entrance;
use super::takeover::Takeover;

/// A listening socket.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// With TLS, see [`super::tls`].
    #[cfg(feature = "https")]
    Tls(TcpListener, std::sync::Arc<rustls::ServerConfig>),
}

/// A worker's threads for blocking work, by default 512 divided by the workers. A disk that stalls keeps up to 128 of them
/// (`storage::backend::folder`), and all may be this worker's.
const BLOCKING_THREADS: usize = 256;
/// Connections beyond the room that a worker may have for a moment, because it has not closed them yet.
const SPARE: usize = 1024;

/// A server that runs one `app` per worker. Signals are left to the caller; on a stop, idle connections are closed and
/// requests in flight get `shutdown_seconds`. If a client hangs up, its request is dropped at once and its resources
/// are freed. Connections that find no room at the `entrance` are closed at once.
pub fn serve<F, I, S, B>(
    listeners: Vec<Listener>,
    entrance: Entrance,
    shutdown_seconds: u64,
    app: F,
) -> io::Result<Server>
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
    let mut builder: ServerBuilder = Server::build()
        // At the server's own limit new connections would wait, also those that would be refused.
        .max_concurrent_connections(entrance.most().saturating_add(SPARE))
        .shutdown_timeout(shutdown_seconds)
        .worker_max_blocking_threads(BLOCKING_THREADS)
        .disable_signals();
    let stopping = builder.graceful_shutdown_signal();
    for listener in listeners {
        let app = app.clone();
        let stopping = stopping.clone();
        let entrance = entrance.clone();
        builder = match listener {
            Listener::Tcp(listener) => {
                let local = listener.local_addr()?;
                builder.listen("http", listener, move || {
                    let door = Door::default();
                    let entrance = entrance.clone();
                    fn_service(move |stream: TcpStream| {
                        let peer: Option<SocketAddr> = stream.peer_addr().ok();
                        let place = entrance.enter(peer.map(|peer| peer.ip()));
                        let accepted = place.map(|place| {
                            super::connection::prepare(&stream);
                            (Lenient::new(stream).at(place).through(Doorway::of(&door, peer, false)), peer)
                        });
                        async move { accepted.ok_or_else(no_room) }
                    })
                    .and_then(to_its_end(http(stopping.clone(), false).local_addr(local).h1(with_config(app()))))
                })?
            }
            #[cfg(feature = "https")]
            Listener::Tls(listener, server) => {
                let local = listener.local_addr()?;
                builder.listen("https", listener, move || {
                    let (server, door) = (server.clone(), Door::default());
                    let entrance = entrance.clone();
                    fn_service(move |stream: TcpStream| {
                        let place = entrance.enter(stream.peer_addr().ok().map(|peer| peer.ip()));
                        let (server, door) = (server.clone(), door.clone());
                        async move { super::tls::accept(server, door, stream, place.ok_or_else(no_room)?).await }
                    })
                    .and_then(encrypted(
                        to_its_end(http(stopping.clone(), true).local_addr(local).h1(with_config(app()))),
                        with_config(app()),
                        stopping.clone(),
                    ))
                })?
            }
            Listener::Unix(listener) => builder.listen_uds("http", listener, move || {
                let door = Door::default();
                let entrance = entrance.clone();
                fn_service(move |stream: UnixStream| {
                    let accepted = entrance.enter(None).map(|place| {
                        (Lenient::new(stream).at(place).through(Doorway::of(&door, None, false)), None::<SocketAddr>)
                    });
                    async move { accepted.ok_or_else(no_room) }
                })
                .and_then(to_its_end(http(stopping.clone(), false).h1(with_config(app()))))
            })?,
        };
    }
    Ok(builder.run())
}

fn no_room() -> DispatchError {
    DispatchError::Io(io::Error::other("there is no room for another connection"))
}

/// The HTTP service for every kind of socket.
fn http<T, S>(stopping: GracefulShutdownSignal, is_secure: bool) -> HttpServiceBuilder<Lenient<T>, S>
where
    S: ServiceFactory<Request, Config = ()>,
    S::Error: Into<Response<BoxBody>> + 'static,
    S::InitError: fmt::Debug,
    <S::Service as Service<Request>>::Future: 'static,
{
    HttpServiceBuilder::default()
        .on_connect_ext(move |stream: &Lenient<T>, data| {
            if is_secure {
                data.insert(Secure);
            }
            data.insert(stream.gate().clone());
            data.insert(stream.takeover().clone());
            if let Some(doorway) = stream.doorway() {
                data.insert(doorway.clone());
            }
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
fn to_its_end<A, H>(
    http: H,
) -> impl ServiceFactory<
    A,
    Config = (),
    Response = (),
    Error = DispatchError,
    InitError = H::InitError,
    Future = impl Future + 'static,
    Service = impl Service<A, Response = (), Error = DispatchError, Future = impl Future + 'static> + 'static,
>
where
    A: Accepted,
    H: ServiceFactory<A, Config = (), Response = (), Error = DispatchError> + 'static,
    H::Service: 'static,
{
    apply_fn_factory(http, |accepted: A, http: &H::Service| {
        let takeover = accepted.takeover();
        let spoken = Box::pin(http.call(accepted));
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

/// A connection as HTTP takes it.
trait Accepted: 'static {
    fn takeover(&self) -> Rc<Takeover>;
}

impl<T: 'static> Accepted for (Lenient<T>, Option<SocketAddr>) {
    fn takeover(&self) -> Rc<Takeover> {
        self.0.takeover().clone()
    }
}

/// Serves an encrypted connection by the protocol that both sides agreed on: `http1`, or HTTP/2 to `app`.
#[cfg(feature = "https")]
fn encrypted<H, A, B>(
    http1: H,
    app: A,
    stopping: GracefulShutdownSignal,
) -> impl ServiceFactory<
    super::tls::Encrypted,
    Config = (),
    Response = (),
    Error = DispatchError,
    InitError = (),
    Future = impl Future + 'static,
    Service = impl Service<super::tls::Encrypted, Response = (), Error = DispatchError, Future = impl Future + 'static>
              + 'static,
>
where
    H: ServiceFactory<super::tls::Plain, Config = (), Response = (), Error = DispatchError> + 'static,
    A: ServiceFactory<Request, Config = (), Response = Response<B>, Error = actix_web::Error> + 'static,
    A::Service: 'static,
    B: MessageBody + 'static,
{
    let (http1, app) = (Rc::new(http1), Rc::new(app));
    fn_factory(move || {
        let (http1, app, stopping) = (http1.clone(), app.clone(), stopping.clone());
        async move {
            let http1 = Rc::new(http1.new_service(()).await.map_err(drop)?);
            let app = Rc::new(app.new_service(()).await.map_err(drop)?);
            Ok::<_, ()>(fn_service(move |(stream, protocol, peer): super::tls::Encrypted| {
                let (http1, app, stopping) = (http1.clone(), app.clone(), stopping.clone());
                async move {
                    match protocol {
                        Protocol::Http2 => {
                            let stopping = async move { stopping.notified().await };
                            super::h2::serve(app, stream, peer, stopping, super::h2::Times::default()).await
                        }
                        _ => http1.call((stream, peer)).await,
                    }
                }
            }))
        }
    })
}

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
