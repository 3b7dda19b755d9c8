//! `serve --only auth`: a drop-in GoTrue at `/`, configured by `GOTRUE_*`.

use std::sync::Arc;

use actix_web::{App as ActixApp, HttpServer};
use anyhow::Context;

use super::serve::{DRAIN_SECONDS, asked_to_stop};
use crate::auth::{self, Auth, Delivery};
use crate::config::{AuthConfig, AuthMode, Reader, Source};
use crate::db::{Pool, PoolOptions};
use crate::mail::{self, MailConfig, Sender, Smtp};

/// Brings schema `auth` up to date, then runs until stopped.
pub async fn run(source: Source) -> anyhow::Result<()> {
    let mut reader = Reader::new(&source);
    let config = AuthConfig::read(&mut reader, AuthMode::DropIn);
    if config.database_url.is_none() {
        reader.problem("DATABASE_URL is not set");
    }
    let mail = if config.smtp.host.is_empty() { MailConfig::Drop } else { MailConfig::read(&mut reader, false, "") };
    let (config, mail) = reader.finish((config, mail))?;
    let url = config.database_url.as_ref().map_or("", |url| url.reveal()).to_owned();
    auth::migrate(&url).await?;
    let options = PoolOptions {
        size: config.max_pool_size,
        application_name: "ferrobase auth".to_owned(),
        ..PoolOptions::default()
    };
    let sender: Arc<dyn Sender> = match &mail {
        MailConfig::Smtp(smtp) => Arc::new(Smtp::new(smtp)?),
        MailConfig::Inbox(_) | MailConfig::Drop => Arc::new(mail::Drop),
    };
    let (host, port) = (config.host.clone(), config.port);
    let auth = Auth::new(config, Pool::new(&url, &options)?, Delivery::Direct(sender), "", Vec::new()).await?;
    let auth = Arc::new(auth);
    let server = HttpServer::new(move || ActixApp::new().configure(auth::configure(Arc::clone(&auth))))
        .disable_signals()
        .shutdown_timeout(DRAIN_SECONDS)
        .bind((host.as_str(), port))
        .with_context(|| format!("cannot listen on {host}:{port}"))?
        .run();
    tracing::info!(host, port, "serving the authentication API");
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        asked_to_stop().await;
        tracing::info!("stopping: requests in flight are finished first");
        handle.stop(true).await;
    });
    server.await?;
    Ok(())
}
