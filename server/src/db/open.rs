//! Opens connections for [`Pool`](super::Pool) and [`ExclusivePool`](super::ExclusivePool): socket, encryption and
//! login, within [`limits::OPEN`](super::limits::OPEN).
//!
//! tokio-postgres negotiates and logs in on a stream that it does not own. [`Opened::into_client`] leaves the stream
//! there; [`Opened::into_wire`] takes it back for our own protocol code. The order of hosts and addresses and
//! `target_session_attrs` work as in tokio-postgres and libpq. Keepalives have other defaults ([`keep_alive`]).

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rand::seq::SliceRandom;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Config};

use super::acknowledgements::Acknowledgements;
use super::address::{Address, Place, SilentAddresses};
use super::cancel::{Cancel, Canceller, Registration};
#[cfg(target_os = "linux")]
use super::limits::UNACKNOWLEDGED;
use super::limits::{CANCEL, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_RETRIES, OPEN, PULSE};
use super::socket::{Guard, Socket, Stream, Watch};
use super::wire::Wire;
use super::{Client, DbError, Pulse, replaced, tls, with_causes};

/// Why no connection could be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Unreachable(String),
    /// The server accepted the connection and did not answer in time.
    #[error("{0}")]
    Silent(String),
    /// The server answers, and is not what `target_session_attrs` asks for.
    #[error("{0}")]
    Unsuitable(String),
    /// The attempt failed on our side, or at the encryption: no fault of the address.
    #[error("{0}")]
    Failed(String),
    /// PostgreSQL refused.
    #[error("{}", with_causes(.0))]
    Refused(tokio_postgres::Error),
}

impl From<OpenError> for DbError {
    fn from(error: OpenError) -> Self {
        Self::Connect(error.to_string())
    }
}

/// Cancels a connection's statement.
struct OverSocket {
    place: Place,
    token: CancelToken,
}

impl Cancel for OverSocket {
    /// Over a separate connection, as the protocol requires.
    fn cancel(&self) -> BoxFuture<'_, Result<(), DbError>> {
        let sent = async {
            let stream = open_stream(&self.place.address).await.map_err(|error| unreachable(&error))?;
            let keep = Keep::for_host(self.place.hostname.as_deref())?;
            let socket = Socket::new(stream, Watch::default(), None);
            let mut lent = Lent { stays_open: true, ..Lent::new(socket) };
            self.token.cancel_query_raw(lent.clone(), keep).await?;
            // The other side closes the connection once the request has reached the statement's process. If we did so
            // earlier, PgBouncer 1.18 would stop with a fatal error.
            let mut more = [0; 64];
            while let Ok(1..) = tokio::io::AsyncReadExt::read(&mut lent, &mut more).await {}
            Ok(())
        };
        let late = Err(DbError::Connect("the cancel request could not be sent in time".to_owned()));
        Box::pin(async { timeout(CANCEL, sent).await.unwrap_or(late) })
    }
}

/// The other half of a [`tokio_postgres::Client`]: does its reading and writing.
pub type Connection = tokio_postgres::Connection<Lent, Lent>;

/// A connection that has logged in.
pub(super) struct Opened {
    client: tokio_postgres::Client,
    connection: Connection,
    lent: Lent,
    watch: Watch,
    registration: Registration,
    address: Address,
    /// [`replaced::times`] when it was opened.
    database: u64,
}

impl Opened {
    /// A tokio-postgres client, with its own task.
    pub fn into_client(self) -> Client {
        let Self { client, connection, watch, registration, database, .. } = self;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = with_causes(&error), "a connection to the database ended");
            }
        });
        Client::new(client, watch, registration, database)
    }

    /// For callers that read and write the stream themselves. Returns the count of [`replaced::times`] that it belongs
    /// to.
    pub fn into_wire(self) -> Result<(Wire, Registration, u64), OpenError> {
        let Self { client, connection, lent, registration, database, .. } = self;
        // Neither has sent anything since the login, nor will: only a polled connection sends `Terminate`.
        drop((client, connection));
        let socket = lent.take().map_err(|error| unreachable(&error))?;
        Ok((Wire::new(socket), registration, database))
    }

    fn into_halves(self) -> (tokio_postgres::Client, Connection) {
        let Self { client, connection, registration, .. } = self;
        // Nothing to cancel: a listening connection runs no statement.
        drop(registration);
        (client, connection)
    }
}

/// The silent addresses of all connections without a [`Pulse`], which try them last.
static SILENT: LazyLock<SilentAddresses> = LazyLock::new(SilentAddresses::default);

/// The same as [`connect`], for statements that are cancelled on request.
pub async fn connect_cancellable(
    config: &Config,
) -> Result<(tokio_postgres::Client, Connection, Canceller), OpenError> {
    let Opened { client, connection, registration, .. } = open(config, None).await?;
    Ok((client, connection, registration.into_canceller()))
}

/// A connection outside of any pool, for `LISTEN` and for commands; the second half must be polled.
pub async fn connect(config: &Config) -> Result<(tokio_postgres::Client, Connection), OpenError> {
    Ok(open(config, None).await?.into_halves())
}

/// The same, for statements only.
pub async fn connect_client(config: &Config) -> Result<Client, OpenError> {
    Ok(open(config, None).await?.into_client())
}

/// Opens a connection to the first host that accepts one. Fails at once if `pulse` found PostgreSQL silent a moment
/// ago.
pub(super) fn open<'a>(config: &'a Config, pulse: Option<&'a Pulse>) -> BoxFuture<'a, Result<Opened, OpenError>> {
    Box::pin(async move {
        if pulse.is_some_and(Pulse::is_known_silent) {
            return Err(OpenError::Silent("the database does not answer".to_owned()));
        }
        let known = pulse.map_or(&*SILENT, Pulse::addresses);
        let opened = open_current(config, pulse, known, Purpose::Statements).await;
        if let (Err(OpenError::Silent(_)), Some(pulse)) = (&opened, pulse) {
            pulse.note_silence();
        }
        opened
    })
}

/// Opens the connection of a [`Pulse`], which is not watched itself, and says where it goes.
pub(super) fn open_for_pulse<'a>(
    config: &'a Config,
    known: &'a SilentAddresses,
) -> BoxFuture<'a, Result<(Client, Address), OpenError>> {
    Box::pin(async move {
        let opened = open_current(config, None, known, Purpose::Statements).await?;
        let address = opened.address.clone();
        Ok((opened.into_client(), address))
    })
}

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Statements,
    /// Reading the database's log, requested in the start-up message.
    Replication,
}

/// Opens a connection that reads the database's log.
pub(super) fn open_replication(config: &Config) -> BoxFuture<'_, Result<Opened, OpenError>> {
    Box::pin(open_current(config, None, &SILENT, Purpose::Replication))
}

/// Opens a connection to the current database. If it was replaced during the attempt, the result is discarded and the
/// attempt repeated.
async fn open_current(
    config: &Config,
    pulse: Option<&Pulse>,
    known: &SilentAddresses,
    purpose: Purpose,
) -> Result<Opened, OpenError> {
    loop {
        replaced::over().await;
        let database = replaced::times();
        let opened = open_first(config, pulse, known, purpose).await;
        if replaced::times() == database {
            return opened;
        }
    }
}

/// Tries each host in turn. Those that were silent a moment ago come last, or each connection would first wait for them;
/// `known` learns which those are.
async fn open_first(
    config: &Config,
    pulse: Option<&Pulse>,
    known: &SilentAddresses,
    purpose: Purpose,
) -> Result<Opened, OpenError> {
    let is_random = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let mut order: Vec<usize> = (0..count).collect();
    if is_random {
        order.shuffle(&mut rand::rng());
    }
    let limit = config.get_connect_timeout().copied().unwrap_or(OPEN);
    let attempt = async |address: &Address, hostname: Option<&str>| {
        let opened = match timeout(limit, open_at(config, address.clone(), hostname, pulse, purpose)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(OpenError::Silent("error connecting to server: connection timed out".to_owned())),
        };
        match &opened {
            Err(OpenError::Unreachable(_) | OpenError::Silent(_)) => known.note(address),
            Ok(_) | Err(OpenError::Refused(_) | OpenError::Unsuitable(_)) => known.forget(address),
            Err(OpenError::Failed(_)) => {}
        }
        opened
    };
    let mut fault = OpenError::Unreachable("both host and hostaddr are missing".to_owned());
    let mut last = Vec::new();
    for n in order {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        let hostname = match hosts.get(n) {
            Some(Host::Tcp(name)) => Some(name.as_str()),
            _ => None,
        };
        let candidates = match (addresses.get(n), hosts.get(n)) {
            (Some(address), _) => Ok(vec![Address::Tcp(*address, port)]),
            (None, Some(Host::Unix(folder))) => Ok(vec![Address::Unix(folder.join(format!(".s.PGSQL.{port}")))]),
            (None, Some(Host::Tcp(name))) => {
                timeout(limit, Address::resolve(name, port, is_random)).await.unwrap_or_else(|_| {
                    Err(io::Error::new(ErrorKind::TimedOut, "the host's name was not resolved in time"))
                })
            }
            (None, None) => continue,
        };
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(error) => {
                fault = unreachable(&error);
                continue;
            }
        };
        for address in candidates {
            if known.is_last(&address) {
                last.push((address, hostname));
                continue;
            }
            match attempt(&address, hostname).await {
                Ok(opened) => return Ok(opened),
                Err(error) => fault = error,
            }
        }
    }
    for (address, hostname) in last {
        match attempt(&address, hostname).await {
            Ok(opened) => return Ok(opened),
            Err(error) => fault = error,
        }
    }
    Err(fault)
}

async fn open_at(
    config: &Config,
    address: Address,
    hostname: Option<&str>,
    pulse: Option<&Pulse>,
    purpose: Purpose,
) -> Result<Opened, OpenError> {
    let database = replaced::times();
    let stream = open_stream(&address).await.map_err(|error| unreachable(&error))?;
    if let Stream::Tcp(stream) = &stream {
        keep_alive(config, stream, pulse.is_some()).map_err(|error| unreachable(&error))?;
    }
    let watch = Watch::default();
    let guard = pulse.map(|pulse| Guard {
        pulse: pulse.clone(),
        place: Place { address: address.clone(), hostname: hostname.map(str::to_owned) },
        acknowledgements: match &stream {
            Stream::Tcp(stream) if limits_acknowledgements(config) => Acknowledgements::of(stream).ok(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) => None,
        },
    });
    let lent = Lent::new(Socket::new(stream, watch.clone(), guard));
    lent.edited.lock().wanted = purpose == Purpose::Replication;
    let keep = Keep::for_host(hostname).map_err(|error| OpenError::Failed(error.to_string()))?;
    let (client, mut connection) = config.connect_raw(lent.clone(), keep).await.map_err(not_logged_in)?;
    // A stream of changes does not answer statements.
    if purpose == Purpose::Statements {
        demand(&client, &mut connection, config.get_target_session_attrs()).await?;
    }
    let place = Place { address: address.clone(), hostname: hostname.map(str::to_owned) };
    let canceller = OverSocket { place, token: client.cancel_token() };
    let registration = Registration::new(Arc::new(canceller));
    Ok(Opened { client, connection, lent, watch, registration, address, database })
}

/// Refuses a session that does not match `target_session_attrs`.
async fn demand(
    client: &tokio_postgres::Client,
    connection: &mut Connection,
    wanted: TargetSessionAttrs,
) -> Result<(), OpenError> {
    if wanted == TargetSessionAttrs::Any {
        return Ok(());
    }
    let asked = client.simple_query("SHOW transaction_read_only");
    let answer = tokio::select! {
        answer = asked => answer,
        ended = &mut *connection => {
            let text = ended.err().map_or_else(|| "connection closed".to_owned(), |error| with_causes(&error));
            return Err(OpenError::Unreachable(text));
        }
    };
    let rows = answer.map_err(OpenError::Refused)?;
    let is_read_only = rows
        .iter()
        .any(|message| matches!(message, tokio_postgres::SimpleQueryMessage::Row(row) if row.get(0) == Some("on")));
    match (wanted, is_read_only) {
        (TargetSessionAttrs::ReadWrite, true) => {
            Err(OpenError::Unsuitable("database does not allow writes".to_owned()))
        }
        (TargetSessionAttrs::ReadOnly, false) => Err(OpenError::Unsuitable("database is not read only".to_owned())),
        _ => Ok(()),
    }
}

async fn open_stream(address: &Address) -> io::Result<Stream> {
    match address {
        Address::Tcp(ip, port) => {
            let stream = TcpStream::connect((*ip, *port)).await?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        }
        Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
    }
}

/// The same in the other direction: has PostgreSQL notice within 25 seconds that our machine has died, so that it releases
/// the locks of this connection.
pub const NOTICE_OUR_DEATH: &str = "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; \
                                    set tcp_user_timeout = 20000";

/// Ends the connection if the server's machine dies without closing it; the system's defaults notice that after two
/// hours. The connection string may set other values. `is_watched`: by a [`Pulse`] and [`Acknowledgements`].
#[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "other systems have no such time limit"))]
fn keep_alive(config: &Config, stream: &TcpStream, is_watched: bool) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let (idle, default_idle) = (config.get_keepalives_idle(), Config::new().get_keepalives_idle());
    let (interval, retries) = (config.get_keepalives_interval(), config.get_keepalives_retries());
    // The driver does not tell its default from the same value in the connection string.
    let idle = if idle == default_idle { KEEPALIVE_IDLE } else { idle };
    if config.get_keepalives() {
        let keepalive = TcpKeepalive::new()
            .with_time(idle)
            .with_interval(interval.unwrap_or(KEEPALIVE_INTERVAL))
            .with_retries(retries.unwrap_or(KEEPALIVE_RETRIES));
        socket.set_tcp_keepalive(&keepalive)?;
    }
    #[cfg(target_os = "linux")]
    {
        let default = (limits_acknowledgements(config) && !is_watched).then_some(UNACKNOWLEDGED);
        socket.set_tcp_user_timeout(config.get_tcp_user_timeout().copied().or(default))?;
    }
    Ok(())
}

/// Whether acknowledgements may be missing for [`UNACKNOWLEDGED`] at most: not if the connection string has a limit of its
/// own, or keepalives of its own, which Linux would not wait for after that time.
fn limits_acknowledgements(config: &Config) -> bool {
    let has_default_keepalives = config.get_keepalives()
        && [Config::new().get_keepalives_idle(), KEEPALIVE_IDLE].contains(&config.get_keepalives_idle())
        && config.get_keepalives_interval().is_none()
        && config.get_keepalives_retries().is_none();
    has_default_keepalives && config.get_tcp_user_timeout().is_none()
}

/// Whether something answers at `place` within [`PULSE`], whatever it says; true if it could not be asked.
pub(super) fn answers_at<'a>(config: &'a Config, place: &'a Place) -> BoxFuture<'a, bool> {
    Box::pin(async move {
        let asked = async {
            let hostname = place.hostname.as_deref();
            match open_at(config, place.address.clone(), hostname, None, Purpose::Statements).await {
                // A login may be answered where statements are not.
                Ok(opened) => {
                    let answer = opened.into_client().batch_execute("select 1").await;
                    answer.is_ok() || answer.is_err_and(|error| error.as_db_error().is_some())
                }
                Err(OpenError::Unreachable(_) | OpenError::Silent(_)) => false,
                Err(OpenError::Refused(_) | OpenError::Unsuitable(_) | OpenError::Failed(_)) => true,
            }
        };
        timeout(PULSE, asked).await.unwrap_or(false)
    })
}

fn unreachable(error: &io::Error) -> OpenError {
    let text = format!("error connecting to server: {error}");
    if is_ours(error) { OpenError::Failed(text) } else { OpenError::Unreachable(text) }
}

/// Whether this machine lacks something: file descriptors, ports, memory, rights.
fn is_ours(error: &io::Error) -> bool {
    let has_no_file = match error.raw_os_error() {
        #[cfg(unix)]
        Some(code) => [libc::EMFILE, libc::ENFILE, libc::ENOBUFS].contains(&code),
        _ => false,
    };
    let ours = [ErrorKind::AddrNotAvailable, ErrorKind::OutOfMemory, ErrorKind::PermissionDenied];
    has_no_file || ours.contains(&error.kind())
}

fn not_logged_in(error: tokio_postgres::Error) -> OpenError {
    if error.as_db_error().is_some() {
        return OpenError::Refused(error);
    }
    let mut causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let broken = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    // What is not about the connection is about encryption or passwords.
    let is_broken =
        error.is_closed() || broken.is_some_and(|cause| cause.kind() != ErrorKind::InvalidData && !is_ours(cause));
    let text = with_causes(&error);
    if is_broken { OpenError::Unreachable(text) } else { OpenError::Failed(text) }
}

/// A socket that can be taken back from its user.
#[derive(Clone)]
pub struct Lent {
    socket: Arc<Mutex<Option<Socket>>>,
    /// The TLS channel binding, until it is taken.
    binding: Arc<Mutex<Option<ChannelBinding>>>,
    edited: Arc<Mutex<StartUp>>,
    /// Whether only the other side closes it.
    stays_open: bool,
}

/// The start-up message of a replication connection. tokio-postgres cannot be told to ask for one, so the parameter is
/// put into the message on its way.
#[derive(Default)]
struct StartUp {
    wanted: bool,
    /// The message with the parameter, as far as it is not written yet.
    rest: Option<BytesMut>,
}

impl StartUp {
    /// What to write instead of `bytes`, if they are a whole start-up message of protocol 3.
    fn begin(&mut self, bytes: &[u8]) {
        const PARAMETER: &[u8] = b"replication\0database\0\0";
        let is_start_up = bytes.len() > 9
            && bytes[..4] == u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes()
            && bytes[4..6] == 3u16.to_be_bytes();
        if !self.wanted || !is_start_up {
            return;
        }
        self.wanted = false;
        let mut message = BytesMut::from(&bytes[..bytes.len() - 1]);
        message.extend_from_slice(PARAMETER);
        let length = u32::try_from(message.len()).unwrap_or(0).to_be_bytes();
        message[..4].copy_from_slice(&length);
        self.rest = Some(message);
    }
}

impl Lent {
    fn new(socket: Socket) -> Self {
        let (socket, stays_open) = (Arc::new(Mutex::new(Some(socket))), false);
        Self { socket, binding: Arc::default(), edited: Arc::default(), stays_open }
    }

    fn take(&self) -> io::Result<Socket> {
        self.socket.lock().take().ok_or_else(taken)
    }

    fn with<T>(&self, work: impl FnOnce(Pin<&mut Socket>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match self.socket.lock().as_mut() {
            Some(socket) => work(Pin::new(socket)),
            None => Poll::Ready(Err(taken())),
        }
    }
}

fn taken() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the stream was taken back")
}

impl AsyncRead for Lent {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.with(|socket| socket.poll_read(cx, out))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut edited = self.edited.lock();
        if edited.rest.is_none() {
            edited.begin(bytes);
        }
        let Some(rest) = &mut edited.rest else { return self.with(|socket| socket.poll_write(cx, bytes)) };
        while !rest.is_empty() {
            let count = std::task::ready!(self.with(|socket| socket.poll_write(cx, rest)))?;
            if count == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            rest.advance(count);
        }
        edited.rest = None;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.with(|socket| socket.poll_write_vectored(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|socket| socket.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.stays_open {
            return Poll::Ready(Ok(()));
        }
        self.with(|socket| socket.poll_shutdown(cx))
    }
}

impl TlsStream for Lent {
    fn channel_binding(&self) -> ChannelBinding {
        self.binding.lock().take().unwrap_or_else(ChannelBinding::none)
    }
}

type RustlsConnector = <tokio_postgres_rustls::MakeRustlsConnect as MakeTlsConnect<Stream>>::TlsConnect;

/// Encrypts a [`Lent`] stream in place.
struct Keep(RustlsConnector);

impl Keep {
    fn for_host(hostname: Option<&str>) -> Result<Self, DbError> {
        let made = MakeTlsConnect::<Stream>::make_tls_connect(&mut tls(), hostname.unwrap_or_default());
        made.map(Self).map_err(|error| DbError::Connect(error.to_string()))
    }
}

impl TlsConnect<Lent> for Keep {
    type Stream = Lent;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Lent>> + Send>>;

    fn connect(self, lent: Lent) -> Self::Future {
        Box::pin(async move {
            let Socket { stream, watch, guard, .. } = lent.take()?;
            let encrypted = self.0.connect(stream).await?;
            *lent.binding.lock() = Some(encrypted.channel_binding());
            let stream = Stream::Tls(Box::new(encrypted));
            *lent.socket.lock() = Some(Socket::new(stream, watch, guard));
            Ok(lent)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_machine_that_dies_silently_is_noticed_within_25_seconds_unless_the_url_differs() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seconds = |n: u64| std::time::Duration::from_secs(n);
        for (parameters, is_watched, (idle, interval, retries), limit) in [
            ("", false, (10, 5, 3), Some(20)),
            // The watch notices it, and a server that reads slowly is not dead.
            ("", true, (10, 5, 3), None),
            ("?keepalives_idle=60", false, (60, 5, 3), None),
            ("?keepalives_interval=7&keepalives_retries=9", false, (10, 7, 9), None),
            ("?tcp_user_timeout=40", false, (10, 5, 3), Some(40)),
            ("?tcp_user_timeout=40", true, (10, 5, 3), Some(40)),
        ] {
            let config: Config = format!("postgresql://me@localhost/d{parameters}").parse().expect(parameters);
            let stream = TcpStream::connect(address).await.expect("a connection");
            keep_alive(&config, &stream, is_watched).expect(parameters);
            let socket = SockRef::from(&stream);
            assert!(socket.keepalive().expect("a flag"), "{parameters}");
            assert_eq!(socket.tcp_keepalive_time().expect("a time"), seconds(idle), "{parameters}");
            assert_eq!(socket.tcp_keepalive_interval().expect("a time"), seconds(interval), "{parameters}");
            assert_eq!(socket.tcp_keepalive_retries().expect("a number"), retries, "{parameters}");
            assert_eq!(socket.tcp_user_timeout().expect("a time"), limit.map(seconds), "{parameters} {is_watched}");
        }
        let off: Config = "postgresql://me@localhost/d?keepalives=0".parse().expect("a URL");
        let stream = TcpStream::connect(address).await.expect("a connection");
        keep_alive(&off, &stream, false).expect("nothing to set");
        let socket = SockRef::from(&stream);
        assert!(!socket.keepalive().expect("a flag"));
        assert_eq!(socket.tcp_user_timeout().expect("a time"), None);
    }

    /// Regression: a lack of file descriptors, and a certificate that is refused, made an address a silent one.
    #[tokio::test]
    async fn what_this_machine_lacks_and_faults_of_encryption_are_no_silence() {
        let reset = io::Error::from(ErrorKind::ConnectionReset);
        assert!(matches!(unreachable(&reset), OpenError::Unreachable(_)));
        #[cfg(unix)]
        assert!(matches!(unreachable(&io::Error::from_raw_os_error(libc::EMFILE)), OpenError::Failed(_)));

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // It refuses encryption, speaks none, or hangs up.
        tokio::spawn(async move {
            let mut open = Vec::new();
            for answer in ["N", "SThis is no TLS.", ""] {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 64]).await;
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
                if !answer.is_empty() {
                    open.push(stream);
                }
            }
        });
        let config: Config = format!("postgresql://me@127.0.0.1:{port}/d?sslmode=require").parse().expect("a URL");
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            outcomes.push(open_first(&config, None, &SilentAddresses::default(), Purpose::Statements).await.err());
        }
        let [Some(OpenError::Failed(_)), Some(OpenError::Failed(_)), Some(OpenError::Unreachable(_))] = &outcomes[..]
        else {
            panic!("{outcomes:?}")
        };
    }

    #[test]
    fn a_startup_message_is_recognized_and_requests_replication() {
        let message = b"\0\0\0\x11\0\x03\0\0user\0me\0\0";
        let mut start_up = StartUp { wanted: true, rest: None };
        // A request for encryption comes first.
        start_up.begin(b"\0\0\0\x08\x04\xd2\x16\x2f");
        assert!(start_up.rest.is_none());
        start_up.begin(message);
        let edited = start_up.rest.take().expect("edited");
        assert_eq!(&edited[..], b"\0\0\0\x26\0\x03\0\0user\0me\0replication\0database\0\0");
        // Once only, and never for statements.
        start_up.begin(message);
        assert!(start_up.rest.is_none());
        let mut other = StartUp::default();
        other.begin(message);
        assert!(other.rest.is_none());
    }
}
