//! `serve --only auth`: a drop-in GoTrue at `/`, configured by `GOTRUE_*`.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use anyhow::Context;

use super::serve::{self, DRAIN_SECONDS, until_stopped};
use super::stop::Stop;
use crate::admin::{self, Admin, Traffic};
use crate::app;
use crate::auth::{self, Auth, Delivery};
use crate::config::{AuthConfig, AuthMode, Reader, Source};
use crate::http::listen::Listener;
use crate::mail::{self, MailConfig, Sender, Smtp};

/// Brings schema `auth` up to date, then runs until stopped.
pub async fn run(source: Source, stop: &Stop) -> anyhow::Result<()> {
    let mut reader = Reader::new(&source);
    let admin_listen = reader.parse::<SocketAddr>(&["FERROBASE_ADMIN_LISTEN"], "an address with a port");
    let config = AuthConfig::read(&mut reader, AuthMode::DropIn);
    if config.database_url.is_none() {
        reader.problem("DATABASE_URL is not set");
    }
    let mail = if config.smtp.host.is_empty() { MailConfig::Drop } else { MailConfig::read(&mut reader, false, "") };
    let (config, mail) = reader.finish((config, mail))?;
    let url = config.database_url.as_ref().map_or("", |url| url.reveal()).to_owned();
    let Some(migrated) = stop.before(auth::migrate(&url)).await else { return Ok(()) };
    migrated?;
    let sender: Arc<dyn Sender> = match &mail {
        MailConfig::Smtp(smtp) => Arc::new(Smtp::new(smtp)?),
        MailConfig::Inbox(_) | MailConfig::Drop => Arc::new(mail::Drop),
    };
    let (host, port) = (config.host.clone(), config.port);
    let pool = auth::pool(&url, config.max_pool_size)?;
    let traffic = Traffic::of("auth");
    let admin = match admin_listen {
        Some(address) => {
            let admin = Admin { database: pool.clone(), rest: None, traffic: traffic.clone() };
            Some(admin::spawn(serve::bind(address, "FERROBASE_ADMIN_LISTEN")?, admin)?)
        }
        None => None,
    };
    let auth = Auth::new(config, pool, Delivery::Direct(sender), "", Vec::new()).await?;
    let auth = Arc::new(auth);
    auth::keep_clean(&auth);
    let listeners = bind(&host, port).with_context(|| format!("cannot listen on {host}:{port}"))?;
    let server = app::serve_auth(auth, traffic, listeners, DRAIN_SECONDS)?;
    tracing::info!(host, port, "serving the authentication API");
    let outcome = until_stopped(server, stop).await;
    if let Some(admin) = admin {
        admin.stop(false).await;
    }
    outcome
}

/// A listener on every address of `host` that can be had, one at least.
fn bind(host: &str, port: u16) -> std::io::Result<Vec<Listener>> {
    let (mut listeners, mut fault) = (Vec::new(), std::io::Error::other("the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            Err(error) => fault = error,
        }
    }
    if listeners.is_empty() { Err(fault) } else { Ok(listeners) }
}
