//! `serve`: configuration, database, states, listeners, and a graceful end.

use std::sync::Arc;

use actix_web::dev::ServerHandle;
use anyhow::Context;
use clap::Args;

use super::card;
use crate::app::{self, App};
use crate::auth;
use crate::config::{Api, Reader, ServerConfig, Source, SqlSource};
use crate::db::{Pool, PoolOptions};
use crate::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use crate::http::listen::{self, Listener};
use crate::mail::inbox::{self, Inbox};
use crate::mail::outbox::{self, Outbox};
use crate::mail::{self, MailConfig, Sender, Smtp};
use crate::migrate::{self, GivenUrls, MigrateError, PlatformUrls};

/// How long requests in flight may take when the server is asked to stop, in seconds.
pub(super) const DRAIN_SECONDS: u64 = 10;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Start just these APIs, comma-separated; 'rest' or 'auth' alone is a drop-in at '/'
    #[arg(long, value_delimiter = ',', value_name = "API")]
    only: Vec<Api>,
}

pub fn run(args: ServeArgs, source: Source) -> anyhow::Result<()> {
    let log_format = source.get("FERROBASE_LOG_FORMAT") == Some("json");
    crate::telemetry::init("info", log_format);
    // TLS for SMTP, hooks and providers; a second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match args.only.as_slice() {
        [] => actix_web::rt::System::new().block_on(full(source)),
        [Api::Auth] => actix_web::rt::System::new().block_on(super::serve_auth::run(source)),
        [Api::Rest] => actix_web::rt::System::new().block_on(super::serve_rest::run(source)),
        only => anyhow::bail!("--only {only:?} is not served by this build"),
    }
}

/// Everything together, at the paths and ports of `supabase start`.
async fn full(mut source: Source) -> anyhow::Result<()> {
    let mut reader = Reader::new(&source);
    let config = ServerConfig::read(&mut reader);
    let config = reader.finish(config)?;
    app::lay_defaults(&mut source, &config);
    let mut reader = Reader::new(&source);
    let mail = MailConfig::read(&mut reader, config.development, &config.support_email);
    let mail = reader.finish(mail)?;
    let database = Database::open(&config).await?;
    let outcome = serve(&source, &config, &mail, &database).await;
    database.close().await;
    outcome
}

async fn serve(source: &Source, config: &ServerConfig, mail: &MailConfig, database: &Database) -> anyhow::Result<()> {
    let given = GivenUrls::read(&Reader::new(source));
    let urls = migrate::prepare(&database.url, config.jwt_secret.reveal(), &given).await?;
    auth::migrate(&urls.auth_url).await?;
    if let Some(migrations) = source_of(&config.migrations, migrate::Source::App) {
        migrate::dir(&database.url, &migrations).await?;
    }
    if let Some(seed) = source_of(&config.seed, migrate::Source::Demo) {
        match migrate::seed(&database.url, &seed).await {
            // Newer demo data is no reason to keep people from the accounts that they have made meanwhile.
            Err(error @ MigrateError::ForeignUsers { .. }) => tracing::warn!(%error, "the demo data stays as it is"),
            outcome => drop(outcome?),
        }
    }
    if !config.listen.ip().is_loopback() && migrate::has_demo_accounts(&database.url).await? {
        anyhow::bail!("the database holds demo accounts, so the server does not listen on {}", config.listen);
    }

    let mail = Mail::start(mail, &urls, config)?;
    let app = App::build(source, config, &urls).await?;
    let keys = app.keys.clone();
    crate::storage::sweep::spawn(app.storage.clone());
    let listener =
        std::net::TcpListener::bind(config.listen).with_context(|| format!("cannot listen on {}", config.listen))?;
    let server = listen::serve(vec![Listener::Tcp(listener)], DRAIN_SECONDS, move || app::actix_app(app.clone()))?;

    if config.development {
        card::print(config, &keys, database.embedded.as_ref());
    } else {
        tracing::info!(listen = %config.listen, "serving");
    }
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        asked_to_stop().await;
        tracing::info!("stopping: requests in flight are finished first");
        handle.stop(true).await;
    });
    let outcome = server.await;
    mail.stop().await;
    Ok(outcome?)
}

/// Delivery of the outbox and, where mail is caught instead of sent, the inbox that shows it.
struct Mail {
    outbox: Outbox,
    inbox: Option<ServerHandle>,
}

impl Mail {
    fn start(mail: &MailConfig, urls: &PlatformUrls, config: &ServerConfig) -> anyhow::Result<Self> {
        let options = PoolOptions { application_name: "ferrobase mail".to_owned(), ..PoolOptions::default() };
        let pool = Pool::new(&urls.service_url, &options)?;
        let mut inbox = None;
        let sender: Arc<dyn Sender> = match mail {
            MailConfig::Smtp(smtp) => Arc::new(Smtp::new(smtp)?),
            MailConfig::Inbox(from) => {
                let listen = config.inbox_listen;
                let server = inbox::spawn(listen, pool.clone());
                inbox = Some(server.with_context(|| format!("the inbox cannot listen on {listen}"))?);
                Arc::new(Inbox::new(pool.clone(), from.clone()))
            }
            MailConfig::Drop => Arc::new(mail::Drop),
        };
        Ok(Self { outbox: outbox::spawn(pool, urls.service_url.clone(), sender), inbox })
    }

    async fn stop(self) {
        self.outbox.stop().await;
        if let Some(inbox) = self.inbox {
            inbox.stop(false).await;
        }
    }
}

/// The database: somebody else's by `DATABASE_URL`, or our own.
struct Database {
    url: String,
    embedded: Option<EmbeddedPostgres>,
}

impl Database {
    async fn open(config: &ServerConfig) -> anyhow::Result<Self> {
        if let Some(url) = &config.database_url {
            return Ok(Self { url: url.reveal().to_owned(), embedded: None });
        }
        let embedded = EmbeddedPostgres::start(&EmbeddedOptions {
            data_root: config.data_dir.clone(),
            port: config.embedded_port,
            bin_dir: config.pg_bin_dir.clone(),
            settings: Vec::new(),
        })
        .await?;
        Ok(Self { url: embedded.url.clone(), embedded: Some(embedded) })
    }

    async fn close(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }
}

fn source_of(setting: &SqlSource, embedded: migrate::Source) -> Option<migrate::Source> {
    match setting {
        SqlSource::Embedded => Some(embedded),
        SqlSource::Folder(folder) => Some(migrate::Source::Folder(folder.clone())),
        SqlSource::None => None,
    }
}

/// SIGTERM or Ctrl-C.
pub(super) async fn asked_to_stop() {
    let interrupt = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! { _ = interrupt => {}, _ = terminate.recv() => {} }
        }
        Err(error) => {
            tracing::warn!(%error, "SIGTERM cannot be watched; only Ctrl-C stops in order");
            let _ = interrupt.await;
        }
    }
}
