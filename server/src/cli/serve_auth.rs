//! `serve --only auth`: a drop-in GoTrue at `/`, configured by `GOTRUE_*`.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::dev::Service as _;
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use actix_web::{App as ActixApp, HttpServer};
use anyhow::Context;

use super::serve::{DRAIN_SECONDS, bind, until_stopped};
use super::stop::Stop;
use crate::admin::{self, Admin, Traffic};
use crate::auth::{self, Auth, Delivery};
use crate::config::{AuthConfig, AuthMode, Reader, Source};
use crate::http::listen::{HEAD_TIMEOUT, KEEP_ALIVE};
use crate::http::patience::bound_body;
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
            Some(admin::spawn(bind(address, "FERROBASE_ADMIN_LISTEN")?, admin)?)
        }
        None => None,
    };
    let auth = Auth::new(config, pool, Delivery::Direct(sender), "", Vec::new()).await?;
    let auth = Arc::new(auth);
    auth::keep_clean(&auth);
    let app = move || {
        ActixApp::new()
            .app_data(Data::new(traffic.clone()))
            .wrap(from_fn(admin::count))
            .wrap_fn(|mut request, next| {
                bound_body(&mut request);
                next.call(request)
            })
            .configure(auth::configure(Arc::clone(&auth)))
    };
    let server = HttpServer::new(app)
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_TIMEOUT)
        .disable_signals()
        .shutdown_timeout(DRAIN_SECONDS)
        .bind((host.as_str(), port))
        .with_context(|| format!("cannot listen on {host}:{port}"))?
        .run();
    tracing::info!(host, port, "serving the authentication API");
    let outcome = until_stopped(server, stop).await;
    if let Some(admin) = admin {
        admin.stop(false).await;
    }
    outcome
}
