//! `serve --only auth`: a drop-in GoTrue at `/`, configured by `GOTRUE_*`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;

use super::listen::{self, DRAIN_SECONDS, until_stopped};
use crate::admin::{self, Admin};
use crate::app;
use crate::auth::{self, Auth, Delivery};
use crate::cli::stop::Stop;
use crate::config::{self, AuthConfig, AuthMode, Reader, Source};
use crate::db::{self, PoolOptions};
use crate::http::bodies::Bodies;
use crate::http::traffic::Traffic;
use crate::mail::{self, MailConfig, Sender, Smtp};
use crate::migrate;

/// Brings schema `auth` up to date, then serves until stopped.
pub async fn run(source: Source, stop: &Stop) -> anyhow::Result<()> {
    let mut reader = Reader::new(&source);
    let admin_listen = reader.parse::<SocketAddr>(&["FERROBASE_ADMIN_LISTEN"], "an address with a port");
    // Supabase Auth lets everybody wait.
    let refuses_under_overload = reader.flag(&["FERROBASE_REFUSE_OVERLOAD"], false);
    let config = AuthConfig::read(&mut reader, AuthMode::DropIn);
    if config.database_url.is_none() {
        reader.problem("DATABASE_URL is not set");
    }
    let mail = if config.smtp.host.is_empty() { MailConfig::Drop } else { MailConfig::read(&mut reader, false, "") };
    let bodies = config::bodies(&mut reader);
    let trusted_proxies = config::trusted_proxies(&mut reader);
    let (config, mail) = reader.finish((config, mail))?;
    let bodies = Bodies::new(bodies);
    let url = config.database_url.as_ref().map_or("", |url| url.reveal()).to_owned();
    let Some(migrated) = stop.before(migrate::auth(&url)).await else { return Ok(()) };
    migrated?;
    let sender: Arc<dyn Sender> = match &mail {
        // A request may send two mails, and has to end before its own deadline.
        MailConfig::Smtp(smtp) => Arc::new(Smtp::new(smtp)?.within_request(config.max_request_duration / 3)),
        MailConfig::Inbox(_) | MailConfig::Drop => Arc::new(mail::Drop),
    };
    let (host, port) = (config.host.clone(), config.port);
    let options = PoolOptions { size: config.max_pool_size, refuses_under_overload, ..PoolOptions::default() };
    let pool = auth::pool(&url, options)?;
    let traffic = Traffic::of("auth");
    let admin = match admin_listen {
        Some(address) => {
            let (database, traffic) = (pool.clone(), traffic.clone());
            let admin = Admin::alone("auth", database, traffic);
            Some(admin::spawn(listen::bind(address, "FERROBASE_ADMIN_LISTEN")?, admin)?)
        }
        None => None,
    };
    let auth = Auth::new(config, pool, Delivery::Direct(sender), "", trusted_proxies).await?;
    let auth = Arc::new(auth);
    auth::keep_clean(&auth);
    let listeners = listen::bind_host(&host, port).with_context(|| format!("cannot listen on {host}:{port}"))?;
    let server = app::serve_auth(auth, bodies, traffic, listeners, DRAIN_SECONDS)?;
    tracing::info!(host, port, "serving the authentication API");
    let outcome = until_stopped(server, stop.clone()).await;
    if let Some(admin) = admin {
        admin.stop(false).await;
    }
    db::cancel_all().await;
    outcome
}
