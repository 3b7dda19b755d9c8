//! `serve --only rest`: a drop-in PostgREST at `/`, configured by `PGRST_*` only.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;

use actix_server::Server;
use actix_web::App as ActixApp;
use anyhow::{Context, bail};
use tokio::net::TcpSocket;

use super::listen::{DRAIN_SECONDS, until_stopped};
use crate::app;
use crate::cli::stop::Stop;
use crate::config::rest::RestServer;
use crate::config::{self, Reader, RestConfig, Source};
use crate::db::{self, Pool, PoolOptions};
use crate::http::listen::{Listener, serve};
use crate::http::room::Entrance;
use crate::migrate;
use crate::rest::admin::{self, Admin, MainSocket};
use crate::rest::live::Live;
use crate::rest::{COMPATIBLE_VERSION, Rest};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Serves until stopped. While the database cannot be reached, requests get 503.
pub async fn run(source: Source, stop: &Stop) -> anyhow::Result<()> {
    let config = RestConfig::load(&source)?;
    let mut reader = Reader::new(&source);
    let replica_max_age = config::replica_max_age(&mut reader);
    let replica = reader.text(&["FERROBASE_READ_REPLICA_URL"]);
    let replica =
        reader.finish(replica)?.map(|url| migrate::with_login_of(&url, config.db_uri.reveal())).transpose()?;
    let pool = Pool::new(
        config.db_uri.reveal(),
        &PoolOptions {
            // For the root document; the schema is loaded over separate connections.
            size: 2,
            acquire_timeout: config.pool.acquisition_timeout,
            application_name: format!("PostgREST {COMPATIBLE_VERSION}"),
            ..PoolOptions::default()
        },
    )?;
    let live = Live::new(source, pool)?;
    let Some(started) = stop.before(live.start()).await else { return Ok(()) };
    started?;
    let listen = &config.server;
    if listen.reuse_port {
        // Another process may share the port, so accept no requests before they can be answered.
        tokio::select! {
            () = live.until_loaded() => {}
            () = live.until_given_up() => bail!("the database is gone and automatic recovery is disabled"),
            () = stop.asked() => return Ok(()),
        }
    }
    let rest = Rest::new(live.clone(), "", None)?;
    let rest = match &replica {
        Some(url) => rest.with_replica(url, replica_max_age)?,
        None => rest,
    };
    let (listener, socket) = bind(&listen.host, listen.port, listen.unix_socket.as_ref(), listen.reuse_port)?;
    let server = app::serve_rest(rest.clone(), vec![listener], DRAIN_SECONDS)?;
    let admin = if listen.admin_port.is_some() || listen.admin_unix_socket.is_some() {
        let port = listen.admin_port.unwrap_or_default();
        let (listener, _) = bind(&listen.admin_host, port, listen.admin_unix_socket.as_ref(), false)?;
        let admin = Admin { rest, main_socket: socket };
        let app = move || ActixApp::new().configure(|service| admin::configure(admin.clone(), service));
        Some(serve(vec![listener], Entrance::apart(), 0, app)?)
    } else {
        None
    };
    tracing::info!(host = config.server.host, port = config.server.port, "serving the REST API");
    let admin_handle = admin.as_ref().map(Server::handle);
    if let Some(admin) = admin {
        actix_web::rt::spawn(admin);
    }
    tokio::select! {
        outcome = until_stopped(server, stop.clone()) => outcome?,
        () = live.until_given_up() => bail!("the database is gone and automatic recovery is disabled"),
    }
    if let Some(admin) = admin_handle {
        admin.stop(false).await;
    }
    db::cancel_all().await;
    Ok(())
}

/// A listener on a Unix socket (path, mode), or else on host and port; and its local address.
fn bind(
    host: &str,
    port: u16,
    socket: Option<&(PathBuf, u32)>,
    reuse_port: bool,
) -> anyhow::Result<(Listener, MainSocket)> {
    if let Some((path, mode)) = socket {
        use std::os::unix::fs::PermissionsExt;
        // A socket left by a process that has ended.
        let _ = std::fs::remove_file(path);
        let listener = std::os::unix::net::UnixListener::bind(path)
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
        return Ok((Listener::Unix(listener), MainSocket::Unix(path.clone())));
    }
    let host = RestServer::bind_host(host);
    let listener = if reuse_port { bind_shared(host, port) } else { TcpListener::bind((host, port)) };
    let listener = listener.with_context(|| format!("cannot listen on {host}:{port}"))?;
    let mut address = listener.local_addr()?;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    Ok((Listener::Tcp(listener), MainSocket::Tcp(address)))
}

/// Binds with `SO_REUSEPORT`: several processes may listen, and the kernel distributes the connections.
fn bind_shared(host: &str, port: u16) -> std::io::Result<TcpListener> {
    let mut fault = std::io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return listener.into_std(),
            Err(error) => fault = error,
        }
    }
    Err(fault)
}
