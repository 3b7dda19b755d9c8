//! `serve`: all APIs on the ports of `supabase start`: configuration, database, state, listeners and a graceful shutdown.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix_web::dev::ServerHandle;
use anyhow::Context;

use super::backups::{Backups, Plan};
use super::listen::{DRAIN_SECONDS, PortNames, bind, until_drained};
use super::rights::{self, WritablePaths};
use crate::admin::{self, Admin, Census};
use crate::app::{self, App, Settings};
use crate::audit::{self, Audit};
use crate::backup::{self, BackupConfig, Contents};
use crate::cli::card;
use crate::cli::stop::Stop;
use crate::config::{CertificateSource, INBOX_TAKES_SMTP, Reader, ServerConfig, Source, SqlSource};
use crate::db::{self, Pool, PoolOptions, Pulse};
use crate::embedded_pg::{EmbeddedOptions, EmbeddedPostgres, Logins, Passwords};
use crate::gateway::ApiKeys;
use crate::http::draining;
use crate::http::listen::Listener;
use crate::http::tls::{ACME_FOLDER, Tls};
use crate::jobs::{CALLS_SOCKET, Calls, Jobs, JobsConfig, Outbound};
use crate::mail::inbox::{self, Inbox, Receiver};
use crate::mail::outbox::{self, Channel, Outbox};
use crate::mail::{self, MailConfig, Sender, Smtp};
use crate::migrate::{self, GivenUrls, MigrateError, PlatformUrls};
use crate::sms::{Outgoing, TextTransport};

/// Serves everything at the paths and ports of `supabase start`.
pub async fn run(mut source: Source, stop: &Stop) -> anyhow::Result<()> {
    // Not those that follow from others, which are set beside them next.
    let keys = backup::keys::collect(&source);
    let settings = Settings::read(&mut source)?;
    let schedule = Schedule { config: backup_config(&source)?, keys };
    let listeners = Listeners::bind(&settings.server, &settings.mail, &PortNames::VARIABLES)?;
    let Some(database) = stop.before(Database::open(&settings.server)).await else { return Ok(()) };
    let database = database?;
    let outcome = served(&source, &settings, &database, schedule, listeners, stop).await;
    database.close().await;
    outcome
}

/// What is backed up by schedule: when and where to, and the keys among the settings.
struct Schedule {
    config: BackupConfig,
    keys: String,
}

/// Everything from the running database to the end of serving.
async fn served(
    source: &Source,
    settings: &Settings,
    database: &Database,
    schedule: Schedule,
    listeners: Listeners,
    stop: &Stop,
) -> anyhow::Result<()> {
    let Some(urls) = stop.before(prepare(source, settings, database)).await else { return Ok(()) };
    let urls = urls?;
    give_up_rights(settings, &schedule.config, database)?;
    let app = App::build(source, settings, &urls).await?;
    let started = Started { app, listeners, set_aside: database.set_aside() };
    let ready = async |keys: &ApiKeys| announce(settings, database, keys).await;
    let backups = Backups::start(backup_plan(schedule, settings, &database.logins), stop)?;
    let outcome = serve(source, settings, &database.logins, &urls, started, stop, ready).await;
    tokio::select! {
        () = backups.ended() => {}
        // A program that waits for the disk may hold it up.
        () = stop.urged() => {}
    }
    outcome
}

fn backup_config(source: &Source) -> anyhow::Result<BackupConfig> {
    let mut reader = Reader::new(source);
    let config = BackupConfig::read(&mut reader);
    Ok(reader.finish(config)?)
}

fn backup_plan(Schedule { config, keys }: Schedule, settings: &Settings, logins: &Logins) -> Plan {
    let contents = Contents {
        admin_url: logins.admin_url.clone(),
        files: crate::cli::backup::files(&settings.storage.backend),
        keys,
        summarizes: config.full_every.is_some(),
        // Each backup of the schedule decides.
        gives_way: false,
    };
    let external = settings.server.database_url.as_ref().map(|url| url.reveal().to_owned());
    Plan { config, contents, data_dir: settings.server.data_dir.clone(), external }
}

/// The listeners. Bound before anything is started, so that a port in use is reported at once.
pub struct Listeners {
    api: TcpListener,
    /// HTTPS, if this server serves it itself.
    secure: Option<(TcpListener, Tls)>,
    admin: TcpListener,
    /// The inbox, if mail is caught instead of sent.
    inbox: Option<TcpListener>,
    /// Where others hand mail over to be caught.
    smtp: Option<TcpListener>,
}

/// Where the listeners of a copy are.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub api: u16,
    pub inbox: u16,
    /// 0 without one.
    pub smtp: u16,
}

impl Listeners {
    /// On free loopback ports.
    pub fn anywhere() -> anyhow::Result<Self> {
        let bind = || TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on 127.0.0.1");
        let smtp = INBOX_TAKES_SMTP.then(bind).transpose()?;
        Ok(Self { api: bind()?, secure: None, admin: bind()?, inbox: Some(bind()?), smtp })
    }

    pub fn ports(&self) -> std::io::Result<Ports> {
        let port = |listener: &Option<TcpListener>| {
            listener.as_ref().map_or(Ok(0), |listener| listener.local_addr().map(|address| address.port()))
        };
        Ok(Ports { api: self.api.local_addr()?.port(), inbox: port(&self.inbox)?, smtp: port(&self.smtp)? })
    }

    pub fn bind(config: &ServerConfig, mail: &MailConfig, names: &PortNames) -> anyhow::Result<Self> {
        let has_inbox = matches!(mail, MailConfig::Inbox(_));
        let smtp = config.inbox_smtp_listen.filter(|_| has_inbox);
        if smtp.is_some() && !INBOX_TAKES_SMTP {
            tracing::warn!("this build does not accept mail by SMTP (Cargo feature inbox-smtp)");
        }
        let smtp = smtp.filter(|_| INBOX_TAKES_SMTP);
        let secure = config.tls.as_ref().map(|tls| {
            let listener = bind(tls.listen, "FERROBASE_TLS_LISTEN")?;
            anyhow::Ok((listener, Tls::open(tls, &config.data_dir)?))
        });
        Ok(Self {
            secure: secure.transpose()?,
            api: bind(config.listen, names.api)?,
            admin: bind(config.admin_listen, names.admin)?,
            inbox: has_inbox.then(|| bind(config.inbox_listen, names.inbox)).transpose()?,
            smtp: smtp.map(|address| bind(address, names.smtp)).transpose()?,
        })
    }
}

/// Drops root's rights, which the rest does not need. Not in development, where files of the checkout are read.
fn give_up_rights(settings: &Settings, schedule: &BackupConfig, database: &Database) -> anyhow::Result<()> {
    let config = &settings.server;
    if config.development {
        return Ok(());
    }
    let mut folders = vec![settings.storage.backend.folder()];
    let backups = config.data_dir.join(backup::STATE_FOLDER);
    folders.extend(schedule.every.map(|_| backups.as_path()));
    let acme = config.data_dir.join(ACME_FOLDER);
    let asks = config.tls.as_ref().is_some_and(|tls| matches!(tls.certificate, CertificateSource::Acme(_)));
    folders.extend(asks.then_some(acme.as_path()));
    folders.extend(settings.edge.as_ref().map(|edge| edge.cache.as_path()));
    let belongings =
        WritablePaths { data_dir: &config.data_dir, folders: &folders, embedded: database.embedded.as_ref() };
    rights::give_up(config.user.as_deref(), &belongings)
}

/// Brings the database up to date. Returns the server's logins.
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
            // Newer demo data must not lock people out of accounts that they have created.
            Err(error @ MigrateError::ForeignUsers { .. }) => {
                tracing::warn!(%error, "the demo data was left unchanged")
            }
            outcome => drop(outcome?),
        }
    }
    if !config.is_local() && migrate::has_demo_accounts(&database.logins.url).await? {
        anyhow::bail!("the database contains demo accounts, so the server does not listen on {}", config.listen);
    }
    Ok(urls)
}

/// Announces that the server is ready.
async fn announce(settings: &Settings, database: &Database, keys: &ApiKeys) {
    let config = &settings.server;
    if !config.development {
        tracing::info!(listen = %config.listen, "serving");
        return;
    }
    // A summary without the demo accounts is better than none.
    let has_demo =
        config.seed == SqlSource::Embedded && migrate::has_demo_accounts(&database.logins.url).await.unwrap_or(false);
    let card = card::text(settings, keys, database.embedded.as_ref(), has_demo);
    // The server continues even if stdout is closed.
    if let Err(error) = crate::cli::print_all(&card) {
        tracing::warn!(%error, "the start-up summary cannot be printed");
    }
}

/// What has to be ready before requests are served.
pub struct Started {
    pub app: App,
    pub listeners: Listeners,
    /// See [`EmbeddedPostgres::set_aside`].
    pub set_aside: Vec<PathBuf>,
}

/// Serves until asked to stop; calls `ready` once requests are accepted.
pub async fn serve(
    source: &Source,
    settings: &Settings,
    logins: &Logins,
    urls: &PlatformUrls,
    started: Started,
    stop: &Stop,
    ready: impl AsyncFnOnce(&ApiKeys),
) -> anyhow::Result<()> {
    let Started { mut app, listeners, set_aside } = started;
    // Mail is sent over the direct URL.
    let pulse = app.rest.live.pool().pulse();
    let mail = Mail::start(&settings.mail, &app.texts, urls, (listeners.inbox, listeners.smtp), pulse)?;
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
    let housekeeping = crate::storage::sweep::spawn(app.storage.clone(), set_aside);
    let admin = admin::spawn(listeners.admin, admin_of(&app, &mail, settings, source))?;
    let (realtime, functions) = (app.realtime.clone(), app.functions.clone());
    let (draining, drain) = (app.draining.clone(), settings.server.drain);
    let mut doors = vec![listeners.api.try_clone()?];
    let mut served = vec![Listener::Tcp(listeners.api)];
    let secure = match listeners.secure {
        Some((listener, tls)) => {
            served.push(tls.listener(listener.try_clone()?));
            doors.push(listener);
            Some(tls)
        }
        None => None,
    };
    let server = app::serve(app, served, DRAIN_SECONDS)?;
    if let Some(tls) = secure {
        tls.keep();
    }

    for name in source.unread() {
        tracing::warn!("unknown setting {name}");
    }
    let (urged, sockets) = (stop.clone(), functions.clone());
    let drained = async move || {
        draining.begin();
        if !drain.is_zero() {
            tracing::info!(seconds = drain.as_secs_f64(), "stopping soon: load balancers are notified first");
        }
        tokio::select! {
            () = async {
                tokio::time::sleep(drain).await;
                if !drain.is_zero() {
                    begin_none(&doors).await;
                }
            } => {}
            () = urged.urged() => {}
        }
        // A port stays open as long as anybody holds its listener.
        drop(doors);
        // WebSockets never end by themselves.
        realtime.stop();
        sockets.close_sockets();
    };
    // The workers answer from now on.
    let served = actix_web::rt::spawn(until_drained(server, stop.clone(), drained));
    ready(&keys).await;
    let outcome = served.await.map_err(anyhow::Error::from).and_then(|outcome| outcome);
    rest.live.stop();
    tokio::select! {
        ((), (), (), ()) = async { futures_util::join!(mail.stop(), jobs.stop(), ended(writing), functions.stop()) } => {}
        () = stop.urged() => {}
    }
    admin.stop(false).await;
    housekeeping.abort();
    // PostgreSQL would continue statements whose clients are gone.
    db::cancel_all().await;
    outcome
}

/// Lets no further connection begin, and those accepted that have begun.
async fn begin_none(doors: &[TcpListener]) {
    for door in doors {
        if let Err(error) = draining::begin_none(door) {
            tracing::debug!(%error, "connections can begin until the port is closed");
        }
    }
    tokio::time::sleep(draining::LAST_CONNECTIONS).await;
}

/// The state that the admin listener shows.
fn admin_of(app: &App, mail: &Mail, settings: &Settings, source: &Source) -> Admin {
    // Backups of an external database may be its provider's.
    let backups = BackupConfig::read(&mut Reader::new(source));
    let knows_of_backups = settings.server.database_url.is_none() || backups.every.is_some();
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
        data_dir: knows_of_backups.then(|| settings.server.data_dir.clone()),
        scheduled_to: backups.every.and(backups.to),
    }
}

async fn ended(writing: Option<audit::Writing>) {
    if let Some(writing) = writing {
        writing.stop().await;
    }
}

/// Delivery of mails and texts from the outbox, and the inbox if mail is caught instead of sent.
struct Mail {
    /// Logs in as `supabase_ferrobase_admin`.
    pool: Pool,
    outbox: Outbox,
    /// Where texts are sent.
    texts: Option<Outbox>,
    inbox: Option<ServerHandle>,
    receiver: Option<Receiver>,
}

impl Mail {
    fn start(
        mail: &MailConfig,
        transport: &TextTransport,
        urls: &PlatformUrls,
        (inbox_listener, smtp_listener): (Option<TcpListener>, Option<TcpListener>),
        pulse: &Pulse,
    ) -> anyhow::Result<Self> {
        // Each connection is held for one statement.
        let options = PoolOptions {
            size: 2,
            application_name: "ferrobase mail".to_owned(),
            pulse: Some(pulse.clone()),
            ..PoolOptions::default()
        };
        let pool = Pool::new(&urls.service_url, &options)?;
        let (mut inbox, mut receiver) = (None, None);
        let sender: Arc<dyn Sender> = match mail {
            MailConfig::Smtp(smtp) => Arc::new(Smtp::new(smtp)?),
            MailConfig::Inbox(from) => {
                inbox = inbox_listener.map(|listener| inbox::spawn(listener, pool.clone())).transpose()?;
                receiver = smtp_listener.map(|listener| Receiver::spawn(listener, pool.clone())).transpose()?;
                Arc::new(Inbox::new(pool.clone(), from.clone()))
            }
            MailConfig::Drop => Arc::new(mail::Drop),
        };
        let texts = transport.is_served().then(|| {
            let outgoing = Outgoing::new(pool.clone(), transport.clone(), Arc::clone(&sender));
            outbox::spawn(pool.clone(), urls.service_url.clone(), Arc::new(outgoing), Channel::Sms)
        });
        let outbox = outbox::spawn(pool.clone(), urls.service_url.clone(), sender, Channel::Mail);
        Ok(Self { pool, outbox, texts, inbox, receiver })
    }

    async fn stop(self) {
        if let Some(receiver) = self.receiver {
            receiver.stop().await;
        }
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

/// PostgreSQL's settings that keep statements, rows and the values of parameters out of its log.
const NO_VALUES_LOGGED: [(&str, &str); 2] = [("log_min_error_statement", "panic"), ("log_error_verbosity", "terse")];

/// The database: external (`DATABASE_URL`) or embedded.
pub struct Database {
    pub logins: Logins,
    embedded: Option<EmbeddedPostgres>,
    /// Makes the requests of statements, also of migrations.
    _calls: Option<Calls>,
}

impl Database {
    async fn open(config: &ServerConfig) -> anyhow::Result<Self> {
        Self::open_with(config, Vec::new()).await
    }

    /// Opens the database; an embedded one gets these extra PostgreSQL settings, which come before our own.
    pub async fn open_with(config: &ServerConfig, settings: Vec<(String, String)>) -> anyhow::Result<Self> {
        if let Some(url) = &config.database_url {
            let url = url.reveal().to_owned();
            return Ok(Self { logins: Logins { admin_url: url.clone(), url }, embedded: None, _calls: None });
        }
        // In development they help; otherwise they are somebody's data.
        let logged = if config.development { &[][..] } else { &NO_VALUES_LOGGED[..] };
        let logged = logged.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let embedded = EmbeddedPostgres::start(&EmbeddedOptions {
            data_root: config.data_dir.clone(),
            port: config.embedded_port,
            bin_dir: config.pg_bin_dir.clone(),
            settings: logged.chain(settings).collect(),
            passwords: if config.development { Passwords::WellKnown } else { Passwords::Private },
            ..EmbeddedOptions::default()
        })
        .await?;
        let outbound = Outbound { reaches_private: config.development, api: config.listen };
        let calls = calls(&embedded, outbound)
            .inspect_err(|error| tracing::warn!(%error, "HTTP requests from SQL (extension http) are not available"));
        Ok(Self { logins: embedded.logins(), embedded: Some(embedded), _calls: calls.ok() })
    }

    pub async fn close(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }

    /// Stops it at once, for data that is no longer needed.
    pub async fn discard(self) {
        if let Some(embedded) = self.embedded {
            embedded.discard().await;
        }
    }

    /// The folders of databases that were set aside beside this one.
    pub fn set_aside(&self) -> Vec<PathBuf> {
        self.embedded.as_ref().map(|embedded| embedded.set_aside.clone()).unwrap_or_default()
    }

    /// The cluster's location, if it could not be in the data folder.
    pub fn relocated(&self) -> Option<&Path> {
        self.embedded.as_ref().and_then(|embedded| embedded.relocated.as_deref())
    }
}

/// Listens beside the socket of PostgreSQL, whose user has to reach it.
fn calls(embedded: &EmbeddedPostgres, outbound: Outbound) -> anyhow::Result<Calls> {
    let path = embedded.socket_dir.join(CALLS_SOCKET);
    let calls = Calls::listen(&path, outbound)?;
    if let Some(account) = embedded.account() {
        account.own(&path)?;
    }
    Ok(calls)
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
