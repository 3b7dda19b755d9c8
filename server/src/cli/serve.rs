//! `serve`: configuration, database, states, listeners, and a graceful end.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use actix_web::dev::{Server, ServerHandle};
use anyhow::Context;
use clap::Args;

use super::card;
use super::stop::Stop;
use crate::admin::{self, Admin};
use crate::app::{self, App, Settings};
use crate::auth;
use crate::config::{Api, Reader, ServerConfig, Source, SqlSource};
use crate::db::{Pool, PoolOptions};
use crate::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use crate::http::listen::Listener;
use crate::mail::inbox::{self, Inbox};
use crate::mail::outbox::{self, Outbox};
use crate::mail::{self, MailConfig, Sender, Smtp};
use crate::migrate::{self, GivenUrls, MigrateError, PlatformUrls};
use crate::telemetry;

/// How long requests in flight may take when the server is asked to stop, in seconds.
pub(super) const DRAIN_SECONDS: u64 = 10;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Start one API alone, as a drop-in at '/': 'rest' (PostgREST, configured by PGRST_*) or 'auth' (GoTrue, GOTRUE_*)
    #[arg(long, value_name = "API")]
    only: Option<Api>,
}

pub fn run(args: ServeArgs, source: Source) -> anyhow::Result<()> {
    // What is wrong with it is told together with all other problems.
    telemetry::init("info", telemetry::Format::read(&mut Reader::new(&source)));
    // TLS for SMTP, hooks and providers; a second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    actix_web::rt::System::new().block_on(async {
        let stop = Stop::watch()?;
        match args.only {
            None => full(source, &stop).await,
            Some(Api::Auth) => super::serve_auth::run(source, &stop).await,
            Some(Api::Rest) => super::serve_rest::run(source, &stop).await,
        }
    })
}

/// Everything together, at the paths and ports of `supabase start`.
async fn full(mut source: Source, stop: &Stop) -> anyhow::Result<()> {
    let settings = Settings::read(&mut source)?;
    let listeners = Listeners::bind(&settings.server, &settings.mail)?;
    let Some(database) = stop.before(Database::open(&settings.server)).await else { return Ok(()) };
    let database = database?;
    let outcome = match stop.before(prepare(&source, &settings, &database)).await {
        Some(Ok(urls)) => serve(&source, &settings, &database, &urls, listeners, stop).await,
        Some(Err(error)) => Err(error),
        None => Ok(()),
    };
    database.close().await;
    outcome
}

/// The ports, taken before anything is started: a taken one is told at once.
struct Listeners {
    api: TcpListener,
    admin: TcpListener,
    /// Where mail is caught instead of sent.
    inbox: Option<TcpListener>,
}

impl Listeners {
    fn bind(config: &ServerConfig, mail: &MailConfig) -> anyhow::Result<Self> {
        let has_inbox = matches!(mail, MailConfig::Inbox(_));
        Ok(Self {
            api: bind(config.listen, "FERROBASE_LISTEN")?,
            admin: bind(config.admin_listen, "FERROBASE_ADMIN_LISTEN")?,
            inbox: has_inbox.then(|| bind(config.inbox_listen, "FERROBASE_INBOX_LISTEN")).transpose()?,
        })
    }
}

/// A listener on `address`, which `setting` names.
pub(super) fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("cannot listen on {address} ({setting})"))
}

/// Brings the database up to date. Yields the server's logins.
async fn prepare(source: &Source, settings: &Settings, database: &Database) -> anyhow::Result<PlatformUrls> {
    let config = &settings.server;
    let given = GivenUrls::read(&Reader::new(source));
    let urls = migrate::prepare(&database.url, config.jwt_secret.reveal(), &given).await?;
    auth::migrate(&urls.auth_url).await?;
    if let Some(migrations) = source_of(&config.migrations, migrate::Source::App, migrate::Source::Folder) {
        migrate::dir(&database.url, &migrations).await?;
    }
    if let Some(seed) = source_of(&config.seed, migrate::Source::Demo, migrate::Source::SeedFolder) {
        match migrate::seed(&database.url, &seed).await {
            // Newer demo data is no reason to keep people from the accounts that they have made meanwhile.
            Err(error @ MigrateError::ForeignUsers { .. }) => tracing::warn!(%error, "the demo data stays as it is"),
            outcome => drop(outcome?),
        }
    }
    if !config.listen.ip().is_loopback() && migrate::has_demo_accounts(&database.url).await? {
        anyhow::bail!("the database holds demo accounts, so the server does not listen on {}", config.listen);
    }
    Ok(urls)
}

async fn serve(
    source: &Source,
    settings: &Settings,
    database: &Database,
    urls: &PlatformUrls,
    listeners: Listeners,
    stop: &Stop,
) -> anyhow::Result<()> {
    let config = &settings.server;
    let app = App::build(source, settings, urls).await?;
    let mail = Mail::start(&settings.mail, urls, listeners.inbox)?;
    let (keys, rest) = (app.keys.clone(), app.rest.clone());
    crate::storage::sweep::spawn(app.storage.clone());
    let admin = Admin { database: app.health.clone(), rest: Some(app.rest.clone()), traffic: app.traffic.clone() };
    let admin = admin::spawn(listeners.admin, admin)?;
    let server = app::serve(app, vec![Listener::Tcp(listeners.api)], DRAIN_SECONDS)?;

    for name in source.unread() {
        tracing::warn!("nothing reads the setting {name}");
    }
    if config.development {
        let has_demo = config.seed == SqlSource::Embedded && migrate::has_demo_accounts(&database.url).await?;
        let card = card::text(settings, &keys, database.embedded.as_ref(), has_demo);
        // Where nobody can read it, the server serves all the same.
        if let Err(error) = super::print_all(&card) {
            tracing::warn!(%error, "the card cannot be printed");
        }
    } else {
        tracing::info!(listen = %config.listen, "serving");
    }
    let outcome = until_stopped(server, stop).await;
    rest.live.stop();
    tokio::select! {
        () = mail.stop() => {}
        () = stop.urged() => {}
    }
    admin.stop(false).await;
    outcome
}

/// Serves until asked to stop and the requests in flight are answered, or until asked again.
pub(super) async fn until_stopped(server: Server, stop: &Stop) -> anyhow::Result<()> {
    let handle = server.handle();
    let asked = stop.clone();
    actix_web::rt::spawn(async move {
        asked.asked().await;
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

/// Delivery of the outbox and, where mail is caught instead of sent, the inbox that shows it.
struct Mail {
    outbox: Outbox,
    inbox: Option<ServerHandle>,
}

impl Mail {
    fn start(mail: &MailConfig, urls: &PlatformUrls, listener: Option<TcpListener>) -> anyhow::Result<Self> {
        let options = PoolOptions { application_name: "ferrobase mail".to_owned(), ..PoolOptions::default() };
        let pool = Pool::new(&urls.service_url, &options)?;
        let mut inbox = None;
        let sender: Arc<dyn Sender> = match mail {
            MailConfig::Smtp(smtp) => Arc::new(Smtp::new(smtp)?),
            MailConfig::Inbox(from) => {
                inbox = listener.map(|listener| inbox::spawn(listener, pool.clone())).transpose()?;
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

fn source_of(
    setting: &SqlSource,
    embedded: migrate::Source,
    folder: fn(PathBuf) -> migrate::Source,
) -> Option<migrate::Source> {
    match setting {
        SqlSource::Embedded => Some(embedded),
        SqlSource::Folder(path) => Some(folder(path.clone())),
        SqlSource::None => None,
    }
}
