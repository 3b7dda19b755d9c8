//! Shared by all ways to serve: listeners, and shutdown.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use crate::cli::stop::Stop;
use crate::embedded_pg;
use crate::http::listen::Listener;
use actix_web::dev::Server;

/// How long requests in flight may take when the server is asked to stop, in seconds.
pub const DRAIN_SECONDS: u64 = 10;

/// What the ports of the whole server are called where people set them.
#[derive(Clone, Copy, Debug)]
pub struct PortNames {
    pub api: &'static str,
    pub admin: &'static str,
    pub database: &'static str,
    pub inbox: &'static str,
    pub smtp: &'static str,
}

impl PortNames {
    pub const VARIABLES: Self = Self {
        api: "FERROBASE_LISTEN",
        admin: "FERROBASE_ADMIN_LISTEN",
        database: "FERROBASE_DB_PORT",
        inbox: "FERROBASE_INBOX_LISTEN",
        smtp: "FERROBASE_INBOX_SMTP_LISTEN",
    };
    /// Of a project's `config.toml`, which has none for the admin listener.
    pub const PROJECT: Self = Self {
        api: "api.port in supabase/config.toml",
        database: "db.port in supabase/config.toml",
        inbox: "local_smtp.port in supabase/config.toml",
        smtp: "local_smtp.smtp_port in supabase/config.toml",
        ..Self::VARIABLES
    };
}

/// A listener on `address`; `setting` is named in errors.
pub fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => taken(address, setting, embedded_pg::holder_of(address.port())),
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address} ({setting})")),
    })
}

/// Reports that another process uses a port.
pub fn taken(address: SocketAddr, setting: &str, holder: Option<String>) -> anyhow::Error {
    let holder = holder.unwrap_or_else(|| "another program".to_owned());
    anyhow::anyhow!("cannot listen on {address} ({setting}): {holder} has this port; stop it, or choose another port")
}

/// Serves until asked to stop and the requests in flight are answered, or until asked a second time.
pub async fn until_stopped(server: Server, stop: Stop) -> anyhow::Result<()> {
    until_drained(server, stop, async || {}).await
}

/// The same, but waits for `drained` first, while requests are still accepted.
pub async fn until_drained(server: Server, stop: Stop, drained: impl AsyncFnOnce() + 'static) -> anyhow::Result<()> {
    let handle = server.handle();
    let asked = stop.clone();
    actix_web::rt::spawn(async move {
        asked.asked().await;
        drained().await;
        tracing::info!("stopping: requests in flight are finished first");
        handle.stop(true).await;
    });
    tokio::select! {
        outcome = server => Ok(outcome?),
        () = stop.urged() => {
            tracing::warn!("asked again: requests in flight are abandoned");
            Ok(())
        }
    }
}

/// Listeners on all addresses of `host` that can be bound, at least one.
pub fn bind_host(host: &str, port: u16) -> std::io::Result<Vec<Listener>> {
    let (mut listeners, mut fault) = (Vec::new(), std::io::Error::other("the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            Err(error) => fault = error,
        }
    }
    if listeners.is_empty() { Err(fault) } else { Ok(listeners) }
}
