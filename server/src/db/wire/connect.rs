//! Opens a connection: socket, encryption, login.
//!
//! tokio-postgres negotiates and logs in on a stream that is only lent to it; then the stream is taken back, and with
//! it the connection. The order of hosts and addresses, keepalives and the demand for a session that may (not) write
//! are as tokio-postgres and libpq have them.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use rand::seq::SliceRandom;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Config};

use super::connection::Wire;
use super::stream::Stream;
use crate::db::{DbError, Query, tls, with_causes};

/// Where a connection goes.
#[derive(Clone, Debug)]
enum Address {
    Tcp(IpAddr, u16),
    Unix(PathBuf),
}

/// Asks PostgreSQL to give up what a connection is doing.
#[derive(Clone)]
pub struct Canceller {
    address: Address,
    hostname: Option<String>,
    timeout: Option<Duration>,
    token: CancelToken,
}

impl Canceller {
    /// Over a connection of its own, as the protocol wants it. PostgreSQL does not say whether it helped.
    pub async fn cancel(&self) -> Result<(), DbError> {
        let lent = Lent::new(within(self.timeout, open_stream(&self.address)).await?);
        let keep = Keep::for_host(self.hostname.as_deref())?;
        Ok(self.token.cancel_query_raw(lent, keep).await?)
    }
}

/// Connects to the first host that will have us.
pub async fn connect(config: &Config) -> Result<(Wire, Canceller), DbError> {
    let is_random = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let mut order: Vec<usize> = (0..count).collect();
    if is_random {
        order.shuffle(&mut rand::rng());
    }
    let mut fault = DbError::Connect("both host and hostaddr are missing".to_owned());
    for n in order {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        let hostname = match hosts.get(n) {
            Some(Host::Tcp(name)) => Some(name.clone()),
            _ => None,
        };
        let candidates = match (addresses.get(n), hosts.get(n)) {
            (Some(address), _) => Ok(vec![Address::Tcp(*address, port)]),
            (None, Some(Host::Unix(folder))) => Ok(vec![Address::Unix(folder.join(format!(".s.PGSQL.{port}")))]),
            (None, Some(Host::Tcp(name))) => resolve(name, port, is_random).await,
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
            match connect_to(config, address, hostname.as_deref()).await {
                Ok(connected) => return Ok(connected),
                Err(error) => fault = error,
            }
        }
    }
    Err(fault)
}

async fn resolve(name: &str, port: u16, is_random: bool) -> io::Result<Vec<Address>> {
    let mut found: Vec<Address> =
        lookup_host((name, port)).await?.map(|address| Address::Tcp(address.ip(), port)).collect();
    if is_random {
        found.shuffle(&mut rand::rng());
    }
    Ok(found)
}

async fn connect_to(config: &Config, address: Address, hostname: Option<&str>) -> Result<(Wire, Canceller), DbError> {
    let timeout = config.get_connect_timeout().copied();
    let stream = within(timeout, open_stream(&address)).await?;
    if let Stream::Tcp(stream) = &stream {
        keep_alive(config, stream).map_err(|error| unreachable(&error))?;
    }
    let lent = Lent::new(stream);
    let keep = Keep::for_host(hostname)?;
    let logged_in = config.connect_raw(lent.clone(), keep).await;
    let (client, connection) = logged_in.map_err(|error| DbError::Connect(with_causes(&error)))?;
    let token = client.cancel_token();
    // Neither has sent anything since the login, nor will: only a connection that is polled says goodbye.
    drop((client, connection));
    let stream = lent.take().map_err(|error| unreachable(&error))?;
    let mut wire = Wire::new(stream);
    demand(&mut wire, config.get_target_session_attrs()).await?;
    Ok((wire, Canceller { address, hostname: hostname.map(str::to_owned), timeout, token }))
}

async fn demand(wire: &mut Wire, wanted: TargetSessionAttrs) -> Result<(), DbError> {
    if wanted == TargetSessionAttrs::Any {
        return Ok(());
    }
    let query = Query { text: "SHOW transaction_read_only", params: &[], role: "" };
    let rows = wire.ask(&query).await?;
    let is_read_only = rows.first().and_then(|row| row.bytes(0)).as_deref() == Some(b"on");
    match (wanted, is_read_only) {
        (TargetSessionAttrs::ReadWrite, true) => Err(DbError::Connect("database does not allow writes".to_owned())),
        (TargetSessionAttrs::ReadOnly, false) => Err(DbError::Connect("database is not read only".to_owned())),
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

async fn within(
    timeout: Option<Duration>,
    opening: impl Future<Output = io::Result<Stream>>,
) -> Result<Stream, DbError> {
    let opened = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, opening)
            .await
            .unwrap_or_else(|_| Err(io::Error::new(ErrorKind::TimedOut, "connection timed out"))),
        None => opening.await,
    };
    opened.map_err(|error| unreachable(&error))
}

fn keep_alive(config: &Config, stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    if let Some(timeout) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*timeout))?;
    }
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(())
}

fn unreachable(error: &io::Error) -> DbError {
    DbError::Connect(format!("error connecting to server: {error}"))
}

/// A stream that can be taken back from whoever uses it.
#[derive(Clone)]
struct Lent {
    stream: Arc<Mutex<Option<Stream>>>,
    /// Of the encryption, until somebody asks.
    binding: Arc<Mutex<Option<ChannelBinding>>>,
}

impl Lent {
    fn new(stream: Stream) -> Self {
        Self { stream: Arc::new(Mutex::new(Some(stream))), binding: Arc::default() }
    }

    fn take(&self) -> io::Result<Stream> {
        self.stream.lock().take().ok_or_else(taken)
    }

    fn with<T>(&self, work: impl FnOnce(Pin<&mut Stream>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match self.stream.lock().as_mut() {
            Some(stream) => work(Pin::new(stream)),
            None => Poll::Ready(Err(taken())),
        }
    }
}

fn taken() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the stream was taken back")
}

impl AsyncRead for Lent {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(cx, out))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(cx))
    }
}

impl TlsStream for Lent {
    fn channel_binding(&self) -> ChannelBinding {
        self.binding.lock().take().unwrap_or_else(ChannelBinding::none)
    }
}

type RustlsConnector = <tokio_postgres_rustls::MakeRustlsConnect as MakeTlsConnect<Stream>>::TlsConnect;

/// Encrypts a lent stream in place.
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
            let encrypted = self.0.connect(lent.take()?).await?;
            *lent.binding.lock() = Some(encrypted.channel_binding());
            *lent.stream.lock() = Some(Stream::Tls(Box::new(encrypted)));
            Ok(lent)
        })
    }
}
