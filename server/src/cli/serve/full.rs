//! `serve`: everything together, on the ports of `supabase start`: configuration, database, states, listeners, and a graceful
//! end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix_web::dev::ServerHandle;
use anyhow::Context;

use super::backups::{Backups, Plan};
use super::listen::{DRAIN_SECONDS, bind, until_drained};
use super::rights::{self, Belongings};
use crate::admin::{self, Admin, Census};
use crate::app::{self, App, Settings};
use crate::audit::{self, Audit};
use crate::backup::{self, BackupConfig, Contents};
use crate::cli::card;
use crate::cli::stop::Stop;
use crate::config::{Reader, ServerConfig, Source, SqlSource};
use crate::db::{self, Pool, PoolOptions, Pulse};
use crate::embedded_pg::{EmbeddedOptions, EmbeddedPostgres, Logins, Passwords};
use crate::gateway::ApiKeys;
use crate::http::listen::Listener;
use crate::jobs::{Jobs, JobsConfig, Outbound};
use crate::mail::inbox::{self, Inbox};
use crate::mail::outbox::{self, Channel, Outbox};
use crate::mail::{self, MailConfig, Sender, Smtp};
use crate::migrate::{self, GivenUrls, MigrateError, PlatformUrls};
use crate::sms::{Outgoing, Way};

/// Everything together, at the paths and ports of `supabase start`.
pub async fn run(mut source: Source, stop: &Stop) -> anyhow::Result<()> {
    let settings = Settings::read(&mut source)?;
    let schedule = backup_config(&source)?;
    let listeners = Listeners::bind(&settings.server, &settings.mail)?;
    let Some(database) = stop.before(Database::open(&settings.server)).await else { return Ok(()) };
    let database = database?;
    let outcome = served(&source, &settings, &database, schedule, listeners, stop).await;
    database.close().await;
    outcome
}

/// From a database that runs to the end of serving.
async fn served(
    source: &Source,
    settings: &Settings,
    database: &Database,
    schedule: BackupConfig,
    listeners: Listeners,
    stop: &Stop,
) -> anyhow::Result<()> {
    let Some(urls) = stop.before(prepare(source, settings, database)).await else { return Ok(()) };
    let urls = urls?;
    give_up_rights(settings, &schedule, database)?;
    let app = App::build(source, settings, &urls).await?;
    let started = Started { app, listeners };
    let ready = async |keys: &ApiKeys| announce(settings, database, keys).await;
    let backups = Backups::start(backup_plan(schedule, source, settings, &database.logins), stop)?;
    let outcome = serve(source, settings, &database.logins, &urls, started, stop, ready).await;
    backups.ended().await;
    outcome
}

fn backup_config(source: &Source) -> anyhow::Result<BackupConfig> {
    let mut reader = Reader::new(source);
    let config = BackupConfig::read(&mut reader);
    Ok(reader.finish(config)?)
}

fn backup_plan(config: BackupConfig, source: &Source, settings: &Settings, logins: &Logins) -> Plan {
    let contents = Contents {
        admin_url: logins.admin_url.clone(),
        files: crate::cli::backup::files(&settings.storage.backend),
        keys: backup::keys::collect(source),
    };
    Plan { config, contents, data_dir: settings.server.data_dir.clone() }
}

/// The ports, taken before anything is started: a taken one is told at once.
pub struct Listeners {
    api: TcpListener,
    admin: TcpListener,
    /// Where mail is caught instead of sent.
    inbox: Option<TcpListener>,
}

impl Listeners {
    /// On loopback, wherever there is room.
    pub fn anywhere() -> anyhow::Result<Self> {
        let bind = || TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on 127.0.0.1");
        Ok(Self { api: bind()?, admin: bind()?, inbox: Some(bind()?) })
    }

    /// Of the API and of the inbox.
    pub fn ports(&self) -> std::io::Result<(u16, u16)> {
        let inbox = self.inbox.as_ref().map_or(Ok(0), |inbox| inbox.local_addr().map(|address| address.port()))?;
        Ok((self.api.local_addr()?.port(), inbox))
    }

    pub fn bind(config: &ServerConfig, mail: &MailConfig) -> anyhow::Result<Self> {
        let has_inbox = matches!(mail, MailConfig::Inbox(_));
        Ok(Self {
            api: bind(config.listen, "FERROBASE_LISTEN")?,
            admin: bind(config.admin_listen, "FERROBASE_ADMIN_LISTEN")?,
            inbox: has_inbox.then(|| bind(config.inbox_listen, "FERROBASE_INBOX_LISTEN")).transpose()?,
        })
    }
}

/// What is left to do needs no rights of root. In development all is left as it is: files of the checkout are read.
fn give_up_rights(settings: &Settings, schedule: &BackupConfig, database: &Database) -> anyhow::Result<()> {
    let config = &settings.server;
    if config.development {
        return Ok(());
    }
    let mut folders = vec![settings.storage.backend.folder()];
    let backups = config.data_dir.join(backup::STATE_FOLDER);
    folders.extend(schedule.every.map(|_| backups.as_path()));
    folders.extend(settings.edge.as_ref().map(|edge| edge.cache.as_path()));
    let belongings = Belongings { data_dir: &config.data_dir, folders: &folders, embedded: database.embedded.as_ref() };
    rights::give_up(config.user.as_deref(), &belongings)
}

/// Brings the database up to date. Yields the server's logins.
async fn prepare(source: &Source, settings: &Settings, database: &Database) -> anyhow::Result<PlatformUrls> {
    let config = &settings.server;
    let given = GivenUrls::read(&Reader::new(source));
    let urls = migrate::prepare(&database.logins.admin_url, config.jwt_secret.reveal(), &given).await?;
    migrate::auth(&urls.auth_url).await?;
    if let Some(migrations) = source_of(&config.migrations, migrate::Source::App, migrate::Source::Folder) {
        migrate::dir(&database.logins.url, &migrations).await?;
    }
    if let Some(seed) = source_of(&config.seed, migrate::Source::Demo, migrate::Source::SeedFolder) {
        match migrate::seed(&database.logins.url, &seed).await {
            // Newer demo data is no reason to keep people from the accounts that they have made meanwhile.
            Err(error @ MigrateError::ForeignUsers { .. }) => tracing::warn!(%error, "the demo data stays as it is"),
            outcome => drop(outcome?),
        }
    }
    if !config.listen.ip().is_loopback() && migrate::has_demo_accounts(&database.logins.url).await? {
        anyhow::bail!("the database holds demo accounts, so the server does not listen on {}", config.listen);
    }
    Ok(urls)
}

/// Says that everything is there.
async fn announce(settings: &Settings, database: &Database, keys: &ApiKeys) {
    let config = &settings.server;
    if !config.development {
        tracing::info!(listen = %config.listen, "serving");
        return;
    }
    // A card that leaves out the demo accounts is better than none.
    let has_demo =
        config.seed == SqlSource::Embedded && migrate::has_demo_accounts(&database.logins.url).await.unwrap_or(false);
    let card = card::text(settings, keys, database.embedded.as_ref(), has_demo);
    // Where nobody can read it, the server serves all the same.
    if let Err(error) = crate::cli::print_all(&card) {
        tracing::warn!(%error, "the card cannot be printed");
    }
}

/// What is there before anybody is served.
pub struct Started {
    pub app: App,
    pub listeners: Listeners,
}

/// Serves until asked to stop; `ready` is called once everybody can be.
pub async fn serve(
    source: &Source,
    settings: &Settings,
    logins: &Logins,
    urls: &PlatformUrls,
    started: Started,
    stop: &Stop,
    ready: impl AsyncFnOnce(&ApiKeys),
) -> anyhow::Result<()> {
    let Started { mut app, listeners } = started;
    let mail = Mail::start(&settings.mail, &app.texts, urls, listeners.inbox, app.health.pulse())?;
    let jobs = Jobs::start(JobsConfig {
        service_url: urls.service_url.clone(),
        owner_url: logins.url.clone(),
        outbound: Outbound { reaches_private: settings.server.development, api: settings.server.listen },
    })?;
    let auditing =
        (settings.server.audit_days > 0).then(|| Audit::start(mail.pool.clone(), settings.server.audit_days));
    let writing = auditing.map(|(audit, writing)| {
        app.audit = audit;
        writing
    });
    let (keys, rest) = (app.keys.clone(), app.rest.clone());
    crate::storage::sweep::spawn(app.storage.clone());
    let admin = admin::spawn(listeners.admin, admin_of(&app, &mail, settings))?;
    let (realtime, draining, drain) = (app.realtime.clone(), app.draining.clone(), settings.server.drain);
    let server = app::serve(app, vec![Listener::Tcp(listeners.api)], DRAIN_SECONDS)?;

    for name in source.unread() {
        tracing::warn!("nothing reads the setting {name}");
    }
    let urged = stop.clone();
    let drained = async move || {
        draining.begin();
        if !drain.is_zero() {
            tracing::info!(seconds = drain.as_secs_f64(), "stopping soon: load balancers are told first");
        }
        tokio::select! {
            () = tokio::time::sleep(drain) => {}
            () = urged.urged() => {}
        }
        // Sockets never end by themselves.
        realtime.stop();
    };
    // The workers answer from now on.
    let served = actix_web::rt::spawn(until_drained(server, stop.clone(), drained));
    ready(&keys).await;
    let outcome = served.await.map_err(anyhow::Error::from).and_then(|outcome| outcome);
    rest.live.stop();
    tokio::select! {
        ((), (), ()) = async { futures_util::join!(mail.stop(), jobs.stop(), ended(writing)) } => {}
        () = stop.urged() => {}
    }
    admin.stop(false).await;
    // PostgreSQL would go on with what nobody waits for.
    db::cancel_all().await;
    outcome
}

/// What the admin listener looks at.
fn admin_of(app: &App, mail: &Mail, settings: &Settings) -> Admin {
    let files = settings.storage.backend.folder().to_owned();
    Admin {
        database: app.health.clone(),
        rest: Some(app.rest.clone()),
        realtime: Some(app.realtime.clone()),
        is_development: settings.server.development,
        traffic: app.traffic.clone(),
        pools: vec![
            ("auth", app.auth.connections().clone()),
            ("storage_and_functions", app.health.clone()),
            ("mail", mail.pool.clone()),
        ],
        census: Some(Census::new(mail.pool.clone())),
        folders: vec![("data", settings.server.data_dir.clone()), ("files", files)],
        draining: app.draining.clone(),
        data_dir: settings.server.database_url.is_none().then(|| settings.server.data_dir.clone()),
    }
}

async fn ended(writing: Option<audit::Writing>) {
    if let Some(writing) = writing {
        writing.stop().await;
    }
}

/// Delivery of the outbox, by mail and by text, and, where mail is caught instead of sent, the inbox that shows it.
struct Mail {
    /// Logs in as `ferrobase_admin`.
    pool: Pool,
    outbox: Outbox,
    /// Where texts are sent.
    texts: Option<Outbox>,
    inbox: Option<ServerHandle>,
}

impl Mail {
    fn start(
        mail: &MailConfig,
        way: &Way,
        urls: &PlatformUrls,
        listener: Option<TcpListener>,
        pulse: &Pulse,
    ) -> anyhow::Result<Self> {
        // Held for a statement at a time.
        let options = PoolOptions {
            size: 2,
            application_name: "ferrobase mail".to_owned(),
            pulse: Some(pulse.clone()),
            ..PoolOptions::default()
        };
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
        let texts = way.is_served().then(|| {
            let outgoing = Outgoing::new(pool.clone(), way.clone(), Arc::clone(&sender));
            outbox::spawn(pool.clone(), urls.service_url.clone(), Arc::new(outgoing), Channel::Sms)
        });
        let outbox = outbox::spawn(pool.clone(), urls.service_url.clone(), sender, Channel::Mail);
        Ok(Self { pool, outbox, texts, inbox })
    }

    async fn stop(self) {
        let texts = async {
            if let Some(texts) = self.texts {
                texts.stop().await;
            }
        };
        futures_util::join!(self.outbox.stop(), texts);
        if let Some(inbox) = self.inbox {
            inbox.stop(false).await;
        }
    }
}

/// The database: somebody else's by `DATABASE_URL`, or our own.
pub struct Database {
    pub logins: Logins,
    embedded: Option<EmbeddedPostgres>,
}

impl Database {
    async fn open(config: &ServerConfig) -> anyhow::Result<Self> {
        Self::open_with(config, Vec::new()).await
    }

    /// With further settings of PostgreSQL, where that is our own.
    pub async fn open_with(config: &ServerConfig, settings: Vec<(String, String)>) -> anyhow::Result<Self> {
        if let Some(url) = &config.database_url {
            let url = url.reveal().to_owned();
            return Ok(Self { logins: Logins { admin_url: url.clone(), url }, embedded: None });
        }
        let embedded = EmbeddedPostgres::start(&EmbeddedOptions {
            data_root: config.data_dir.clone(),
            port: config.embedded_port,
            bin_dir: config.pg_bin_dir.clone(),
            settings,
            passwords: if config.development { Passwords::WellKnown } else { Passwords::Private },
            ..EmbeddedOptions::default()
        })
        .await?;
        Ok(Self { logins: embedded.logins(), embedded: Some(embedded) })
    }

    pub async fn close(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }

    /// Ends it at once: nobody needs the data.
    pub async fn discard(self) {
        if let Some(embedded) = self.embedded {
            embedded.discard().await;
        }
    }

    /// Where the cluster lies, if that could not be in its data folder.
    pub fn relocated(&self) -> Option<&Path> {
        self.embedded.as_ref().and_then(|embedded| embedded.relocated.as_deref())
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
