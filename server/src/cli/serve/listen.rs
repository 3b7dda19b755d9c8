//! What all ways to serve share: listeners, and the end.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use actix_web::dev::Server;
use anyhow::Context;

use crate::cli::stop::Stop;
use crate::http::listen::Listener;

/// How long requests in flight may take when the server is asked to stop, in seconds.
pub const DRAIN_SECONDS: u64 = 10;

/// A listener on `address`, which `setting` names.
pub fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("cannot listen on {address} ({setting})"))
}

/// Serves until asked to stop and the requests in flight are answered, or until asked again.
pub async fn until_stopped(server: Server, stop: Stop) -> anyhow::Result<()> {
    until_drained(server, stop, async || {}).await
}

/// The same, but first `drained` is waited for, while requests are still taken.
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
            tracing::warn!("asked again: requests in flight are left");
            Ok(())
        }
    }
}

/// A listener on every address of `host` that can be had, one at least.
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
