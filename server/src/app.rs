//! Builds the server: the state of each API, the order of middleware, one `configure` call per API. Serves all APIs or one alone.
//!
//! `serve` and every test use it, so tests run what production runs.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_server::Server;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use actix_web::http::{ConnectionType, Method};
use actix_web::middleware::{DefaultHeaders, Next, from_fn};
use actix_web::web::{self, ServiceConfig};
use actix_web::{App as ActixApp, Error, HttpResponse};
use serde_json::json;
use tokio::runtime::Handle;

use crate::audit::{self, Audit};
use crate::auth::{self, Auth, Delivery};
use crate::config::{
    self, AuthConfig, AuthMode, DEVELOPMENT_JWT_SECRET, DEVELOPMENT_S3_KEYS, DEVELOPMENT_SIGNING_KEY, Problems, Reader,
    RestConfig, Secret, ServerConfig, Source, SqlSource, TrustedProxies,
};
use crate::db::replica::Subject;
use crate::db::{Pool, PoolOptions, Pulse};
use crate::functions::{self, Edge, EdgeConfig, Functions, PlatformValues};
use crate::gateway::{self, ApiKeys, Https};
use crate::http::bodies::Bodies;
use crate::http::body_limits;
use crate::http::client::{client_address, network};
use crate::http::context::{self, PresentedKey, RequestContext, id_of};
use crate::http::door;
use crate::http::draining::Draining;
use crate::http::listen::{self, Listener};
use crate::http::loopback::reachable;
use crate::http::room::Entrance;
use crate::http::span;
use crate::http::traffic::{InFlight, Traffic};
use crate::jwt::bearer::{Bearer, unverified_subject};
use crate::jwt::{self, Issuers, KeySet};
use crate::mail::MailConfig;
use crate::migrate::PlatformUrls;
use crate::outgoing;
use crate::realtime::{self, Realtime, RealtimeConfig};
use crate::rest::live::Live;
use crate::rest::{self, Rest};
use crate::sms::{self, TextTransport};
use crate::storage::{self, Storage, StorageConfig};
use crate::telemetry;
use crate::web::{AppSettings, Providers};

/// After this time a write that was under way when its client left is shared again.
const LATE_COMMIT: Duration = Duration::from_secs(1);

/// Every setting of the full server, except those that the REST API rereads while it runs.
#[derive(Clone)]
pub struct Settings {
    pub server: ServerConfig,
    pub mail: MailConfig,
    pub auth: AuthConfig,
    pub storage: StorageConfig,
    /// Edge functions, if the served project has any.
    pub edge: Option<EdgeConfig>,
    pub realtime: RealtimeConfig,
}

impl Settings {
    /// Applies the defaults to `source`, reads everything, and reports all problems at once.
    pub fn read(source: &mut Source) -> Result<Self, Problems> {
        let mut reader = Reader::new(source);
        let server = ServerConfig::read(&mut reader);
        telemetry::Settings::read(&mut reader);
        config::slow_query(&mut reader);
        let mut problems = reader.into_problems();
        lay_defaults(source, &server);
        let mut reader = Reader::new(source);
        let mail = MailConfig::read(&mut reader, server.development, &server.support_email);
        let storage = StorageConfig::read(&mut reader, &server.data_dir, storage::Mode::Full);
        let realtime = RealtimeConfig::read(&mut reader, realtime::Mode::Full);
        let auth = AuthConfig::read(&mut reader, AuthMode::Full);
        // In development, functions may reach the database, as on a local stack.
        let closed = if server.development { vec![] } else { vec![server.embedded_port, server.admin_listen.port()] };
        let edge = EdgeConfig::read(&mut reader, &server.data_dir, closed, server.development);
        problems.extend(reader.into_problems());
        if let Err(Problems(more)) = RestConfig::load(source) {
            problems.extend(more);
        }
        problems.extend(ApiKeys::problems(&server));
        // Several modules may read the same setting.
        let mut told = std::collections::HashSet::new();
        problems.retain(|problem| told.insert(problem.clone()));
        if problems.is_empty() {
            Ok(Self { server, mail, auth, storage, edge, realtime })
        } else {
            Err(Problems(problems))
        }
    }
}

/// The parts of the full server. Cheap to clone: each worker gets its own.
#[derive(Clone)]
pub struct App {
    pub auth: Arc<Auth>,
    pub keys: ApiKeys,
    pub functions: Functions,
    pub rest: Rest,
    pub storage: Storage,
    pub realtime: Realtime,
    /// Checks the database for `/health`.
    pub health: Pool,
    /// Settings of the web app; without them it is not served.
    pub settings: Option<AppSettings>,
    pub trusted_proxies: TrustedProxies,
    /// HTTPS by the server itself.
    pub https: Https,
    /// Counters for the admin listener.
    pub traffic: Traffic,
    /// Records changes by administrators.
    pub audit: Audit,
    /// Whether this server is about to stop.
    pub draining: Draining,
    /// Where texts in the outbox are sent.
    pub texts: TextTransport,
    /// Receives people's replies to texts, if a provider sends them.
    pub answers: Option<sms::Webhook>,
    /// The reset of a temporary copy to its seed.
    pub reset: Option<gateway::Reset>,
}

impl App {
    /// Builds all state from `source` and the settings read from it. `urls` are the logins created by
    /// [`crate::migrate::prepare`].
    pub async fn build(source: &Source, settings: &Settings, urls: &PlatformUrls) -> anyhow::Result<Self> {
        let (config, auth) = (&settings.server, settings.auth.clone());
        let keys = ApiKeys::from_config(config);
        let key_set = Arc::new(KeySet::parse(shared_jwt_secret(source, config).as_bytes())?);
        // A token of another issuer is never an API key.
        let keys = if config.development { keys.vouched_for_by(Arc::clone(&key_set)) } else { keys };
        let issuers = Issuers::spawn(&config.third_party_issuers)?;
        let keys = keys.trusting(issuers.clone());
        let key_set = Arc::new(KeySet::clone(&key_set).trusting(issuers.clone()));
        let tokens = Bearer::new(Arc::clone(&key_set));
        let pooled = urls.pooled.as_ref();
        let options = PoolOptions {
            size: config.connections.requests,
            prepare: pooled.is_none(),
            refuses_under_overload: config.refuses_overload,
            ..PoolOptions::default()
        };
        // The schema is loaded over a permanent session, because a pooler passes connections on between transactions.
        let (requests, direct) = match pooled {
            Some(pooled) => {
                let direct = Pool::new(&urls.rest_url, &PoolOptions { size: 1, ..PoolOptions::default() })?;
                let pulse = Some(Pulse::of_pooler(&pooled.rest_url, direct.pulse())?);
                (Pool::new(&pooled.rest_url, &PoolOptions { pulse, ..options })?, direct)
            }
            None => {
                let requests = Pool::new(&urls.rest_url, &options)?;
                (requests.clone(), requests)
            }
        };
        // All pools share one pulse, as those behind a pooler do.
        let (pulse, pulse_of_requests) = (direct.pulse().clone(), requests.pulse().clone());
        // For startup, and for the few replies to texts.
        let own = PoolOptions { size: 1, pulse: Some(pulse.clone()), ..PoolOptions::default() };
        let own = Pool::new(&urls.service_url, &own)?;
        let texts = TextTransport::of(&auth.sms, &settings.mail, outgoing::client().build()?);
        texts.announce(&own).await?;
        let app = Self {
            rest: build_rest(source, urls, direct, &pulse_of_requests, issuers.clone(), config).await?,
            realtime: build_realtime(source, settings, urls, key_set, &pulse)?,
            functions: Functions::new(requests.clone(), tokens.clone(), build_edge(source, settings, &keys, issuers)?),
            storage: Storage::new(&settings.storage, requests.clone(), tokens, &config.jwt_secret)?
                .accepting(&config.accepted_keys)
                .with_anon_key(keys.anon()),
            health: requests,
            trusted_proxies: config.trusted_proxies.clone(),
            https: Https::of(config.tls.as_ref(), reachable(config.listen)),
            traffic: Traffic::default(),
            audit: Audit::default(),
            draining: Draining::default(),
            reset: None,
            settings: config.web.then(|| AppSettings {
                api_url: String::new(),
                publishable_key: config.publishable_key.clone().unwrap_or_else(|| keys.anon().to_owned()),
                support_email: config.support_email.clone(),
                site_name: "AidBridge".to_owned(),
                site_url: config.site_url.clone(),
                providers: Providers {
                    google: auth.external.providers.get("google").is_some_and(|provider| provider.enabled),
                    azure: auth.external.providers.get("azure").is_some_and(|provider| provider.enabled),
                },
                autoconfirm: auth.mailer.autoconfirm,
                sms: texts.is_served(),
            }),
            answers: sms::Webhook::new(&auth.sms, &config.api_external_url, own),
            texts,
            auth: Arc::new(build_auth(auth, config, urls, &pulse_of_requests).await?),
            keys,
        };
        auth::keep_clean(&app.auth);
        app.realtime.spawn();
        Ok(app)
    }

    /// Mounts everything at the paths that Supabase uses; the web app gets the rest.
    pub fn configure(self, service: &mut ServiceConfig) {
        if let Some(reset) = self.reset {
            service.app_data(web::Data::new(reset)).route(gateway::RESET, web::post().to(gateway::reset));
        }
        if let Some(answers) = self.answers {
            answers.configure(service);
        }
        service
            .app_data(web::Data::new(self.keys))
            .app_data(web::Data::new(self.trusted_proxies))
            .app_data(web::Data::new(self.https))
            .app_data(web::Data::new(self.traffic))
            .app_data(web::Data::new(self.audit))
            .app_data(web::Data::new(self.draining))
            .app_data(web::Data::new(self.health))
            .app_data(web::Data::new(self.functions))
            .app_data(web::Data::new(self.storage))
            .app_data(web::Data::new(self.rest))
            .service(web::resource("/health").route(web::get().to(health)).route(web::head().to(health)))
            .service(
                web::scope("/auth/v1")
                    .wrap(from_fn(gateway::require_key))
                    .configure(|service| auth::configure(self.auth, service)),
            )
            .service(web::scope("/rest/v1").wrap(from_fn(gateway::require_key)).configure(rest::configure))
            .service(web::scope("/functions/v1").wrap(from_fn(gateway::accept_key)).configure(functions::configure))
            .service(
                web::scope("/storage/v1")
                    .wrap(from_fn(gateway::accept_key))
                    .wrap(from_fn(gateway::allow_origins))
                    .configure(storage::configure),
            )
            .service(
                web::scope("/realtime/v1")
                    .wrap(from_fn(gateway::require_key))
                    .configure(|service| self.realtime.configure(service)),
            )
            .service(
                web::scope("/{api}/v1")
                    .wrap(from_fn(gateway::require_key))
                    .default_service(web::to(gateway::unknown_api)),
            );
        match self.settings {
            Some(settings) => crate::web::configure(settings, service),
            None => drop(service.default_service(web::to(gateway::unknown_api))),
        }
    }
}

/// The REST API on the platform's database. `PGRST_*` settings apply, except for the database. `pool` serves its root
/// document; `pulse` is that of requests.
async fn build_rest(
    source: &Source,
    urls: &PlatformUrls,
    pool: Pool,
    pulse: &Pulse,
    issuers: Option<Issuers>,
    config: &ServerConfig,
) -> anyhow::Result<Rest> {
    let mut source = source.clone();
    source.set("PGRST_DB_URI", urls.rest_url.as_str());
    source.set("FERROBASE_REFUSE_OVERLOAD", config.refuses_overload.to_string());
    let live = Live::trusting(source, pool, issuers)?;
    live.start().await?;
    let pooler = urls.pooled.as_ref().map(|pooled| (pooled.rest_url.as_str(), pulse.clone()));
    let rest = Rest::new(live, "/rest/v1", pooler)?;
    Ok(match &urls.replica_url {
        Some(url) => rest.with_replica(url, config.replica_max_age)?,
        None => rest,
    })
}

/// The edge functions of the served project, if it has any.
fn build_edge(
    source: &Source,
    settings: &Settings,
    keys: &ApiKeys,
    issuers: Option<Issuers>,
) -> anyhow::Result<Option<Edge>> {
    let (Some(config), server) = (&settings.edge, &settings.server) else { return Ok(None) };
    let database = format!("postgresql://postgres:postgres@127.0.0.1:{}/postgres", server.embedded_port);
    let platform = PlatformValues {
        // Functions reach this server at another address than browsers do.
        api_url: format!("http://{}", reachable(server.listen)),
        anon_key: keys.anon().to_owned(),
        service_role_key: Secret::new(keys.service_role()),
        publishable_key: server.publishable_key.clone(),
        secret_key: server.secret_key.clone(),
        database_url: server.development.then(|| server.database_url.clone().unwrap_or_else(|| Secret::new(database))),
        jwks: jwt::shared::public_keys(Reader::new(source).secret(&["GOTRUE_JWT_KEYS"]).as_ref().map(Secret::reveal)),
        issuers,
    };
    Ok(Some(Edge::new(config.clone(), platform)?))
}

/// Realtime on the platform's database.
fn build_realtime(
    source: &Source,
    settings: &Settings,
    urls: &PlatformUrls,
    keys: Arc<KeySet>,
    pulse: &Pulse,
) -> anyhow::Result<Realtime> {
    let reader = Reader::new(source);
    let mut schemas = reader.list(&["PGRST_DB_SCHEMAS"]).unwrap_or_default();
    schemas.truncate(1);
    schemas.extend(reader.list(&["PGRST_DB_EXTRA_SEARCH_PATH"]).unwrap_or_default());
    let quoted: Vec<String> = schemas.iter().map(|schema| format!("\"{}\"", schema.replace('"', "\"\""))).collect();
    let setting = realtime::Setting {
        request_url: &urls.rest_url,
        replication_url: &urls.replication_url,
        pulse: Some(pulse.clone()),
        keys,
        secret: settings.server.jwt_secret.reveal(),
        search_path: quoted.join(", "),
    };
    Ok(Realtime::new(settings.realtime.clone(), realtime::Mode::Full, setting)?)
}

/// The auth API on the platform's database. It sends mail through the outbox.
async fn build_auth(
    auth: AuthConfig,
    config: &ServerConfig,
    urls: &PlatformUrls,
    pulse: &Pulse,
) -> anyhow::Result<Auth> {
    let options = PoolOptions {
        size: auth.max_pool_size,
        refuses_under_overload: config.refuses_overload,
        pulse: Some(pulse.clone()),
        ..PoolOptions::default()
    };
    let pool = match &urls.pooled {
        Some(pooled) => auth::pool(&pooled.auth_url, PoolOptions { prepare: false, ..options })?,
        None => auth::pool(&urls.auth_url, options)?,
    };
    Auth::new(auth, pool, Delivery::Outbox, "/auth/v1", config.trusted_proxies.clone()).await
}

/// Serves everything that [`App::configure`] mounts. The last middleware is the outermost.
pub fn serve(app: App, listeners: Vec<Listener>, shutdown_seconds: u64) -> io::Result<Server> {
    let bodies = app.rest.bodies.clone();
    let entrance = Entrance::of(app.trusted_proxies.clone());
    listen::serve(listeners, entrance, shutdown_seconds, move || {
        let app = app.clone();
        ActixApp::new()
            .wrap(from_fn(gateway::enter))
            // Also for refusals and settings, so that JSON is never interpreted as a page.
            .wrap(DefaultHeaders::new().add((X_CONTENT_TYPE_OPTIONS, "nosniff")))
            .wrap(from_fn(log_request))
            .wrap(from_fn(span::in_span))
            .wrap_fn(body_limits::bound)
            .wrap_fn(door::learn)
            .app_data(web::Data::new(bodies.clone()))
            .configure(|service| app.configure(service))
    })
}

/// Serves the REST API alone, at `/`.
pub fn serve_rest(rest: Rest, listeners: Vec<Listener>, shutdown_seconds: u64) -> io::Result<Server> {
    let proxies = rest.live.settings().config.trusted_proxies.clone();
    serve_alone(listeners, proxies, shutdown_seconds, move |service| {
        let proxies = rest.live.settings().config.trusted_proxies.clone();
        service.app_data(web::Data::new(proxies));
        service.app_data(web::Data::new(rest.bodies.clone())).app_data(web::Data::new(rest.clone()));
        rest::configure(service);
    })
}

/// Serves the auth API alone at `/`, within the budget of `bodies`; `traffic` counts its answers.
pub fn serve_auth(
    auth: Arc<Auth>,
    bodies: Bodies,
    traffic: Traffic,
    listeners: Vec<Listener>,
    shutdown_seconds: u64,
) -> io::Result<Server> {
    serve_alone(listeners, auth.trusted_proxies().clone(), shutdown_seconds, move |service| {
        service.app_data(web::Data::new(bodies.clone())).app_data(web::Data::new(traffic.clone()));
        service.app_data(web::Data::new(auth.trusted_proxies().clone()));
        auth::configure(Arc::clone(&auth), service);
    })
}

/// Serves storage alone, at `/`, within the budget of `bodies`; `traffic` counts its answers.
pub fn serve_storage(
    storage: Storage,
    bodies: Bodies,
    traffic: Traffic,
    listeners: Vec<Listener>,
    shutdown_seconds: u64,
) -> io::Result<Server> {
    serve_alone(listeners, storage.trusted_proxies().clone(), shutdown_seconds, move |service| {
        service.app_data(web::Data::new(bodies.clone())).app_data(web::Data::new(traffic.clone()));
        service.app_data(web::Data::new(storage.trusted_proxies().clone())).app_data(web::Data::new(storage.clone()));
        storage::configure(service);
    })
}

/// Serves realtime alone, at `/`; `traffic` counts its answers.
pub fn serve_realtime(
    realtime: Realtime,
    traffic: Traffic,
    listeners: Vec<Listener>,
    shutdown_seconds: u64,
) -> io::Result<Server> {
    // A gateway stands before it, as before upstream's.
    let proxies = TrustedProxies { hops: 1, ..TrustedProxies::default() };
    serve_alone(listeners, proxies, shutdown_seconds, move |service| {
        service.app_data(web::Data::new(traffic.clone()));
        realtime.clone().configure(service);
    })
}

/// Serves one API at `/`. `configure` is boxed, so that HTTP is compiled once for all four.
fn serve_alone(
    listeners: Vec<Listener>,
    proxies: TrustedProxies,
    shutdown_seconds: u64,
    configure: impl Fn(&mut ServiceConfig) + Send + Sync + 'static,
) -> io::Result<Server> {
    let configure: Arc<dyn Fn(&mut ServiceConfig) + Send + Sync> = Arc::new(configure);
    serve_configured(listeners, Entrance::of(proxies), shutdown_seconds, configure)
}

fn serve_configured(
    listeners: Vec<Listener>,
    entrance: Entrance,
    shutdown_seconds: u64,
    configure: Arc<dyn Fn(&mut ServiceConfig) + Send + Sync>,
) -> io::Result<Server> {
    listen::serve(listeners, entrance, shutdown_seconds, move || {
        ActixApp::new()
            .wrap(from_fn(attend))
            .wrap(from_fn(span::in_span))
            .wrap_fn(body_limits::bound)
            .wrap_fn(door::learn)
            .configure(|service| configure(service))
    })
}

/// `GET /health`: whether the process answers and reaches its database.
async fn health(pool: web::Data<Pool>, draining: web::Data<Draining>) -> HttpResponse {
    if draining.has_begun() {
        return HttpResponse::ServiceUnavailable().json(json!({ "status": "stopping" }));
    }
    match pool.answers().await {
        Ok(()) => HttpResponse::Ok().json(json!({ "status": "ok", "database": "ok" })),
        Err(error) => {
            tracing::warn!(%error, "the health check cannot reach the database");
            HttpResponse::ServiceUnavailable().json(json!({ "status": "failed", "database": "unreachable" }))
        }
    }
}

/// Sets `X-Request-Id` on each answer, counts it and writes one access log line. The request's context adds the other
/// fields.
async fn log_request(
    traffic: web::Data<Traffic>,
    audit: web::Data<Audit>,
    draining: web::Data<Draining>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
    let id = id_of(&request);
    let value = HeaderValue::from_str(&id).ok();
    if let Some(value) = value.clone() {
        request.headers_mut().insert(X_REQUEST_ID, value);
    }
    let write = Write::of(&request);
    let mut record = Record {
        known: context::current(),
        id,
        change: Change::of(&audit, &request),
        audit: audit.into_inner(),
        begun: Some(traffic.begin(request.path())),
    };
    let answer = next.call(request).await;
    record.answered(status_of(&answer));
    if let Some(write) = write {
        write.share(status_of(&answer)).await;
    }
    let mut response = answer?;
    if let Some(value) = value {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    if draining.has_begun() {
        // Makes the client open its next connection to another server.
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(response)
}

fn status_of<B>(answer: &Result<ServiceResponse<B>, Error>) -> u16 {
    match answer {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    }
    .as_u16()
}

/// The log line and the audit entry of a request. A request whose client leaves before the answer is dropped wherever
/// it waits, and may have changed something all the same: it is recorded as abandoned.
struct Record {
    known: Option<Arc<RequestContext>>,
    id: String,
    change: Option<Change>,
    audit: Arc<Audit>,
    /// `None` once there is an answer.
    begun: Option<InFlight>,
}

impl Record {
    fn answered(&mut self, status: u16) {
        let Some(begun) = self.begun.take() else { return };
        let ms = begun.answered(status).as_secs_f64() * 1000.0;
        span::answered(status);
        tracing::info!(ms, "request answered");
        self.note(&format!("{}xx", status / 100));
    }

    fn note(&mut self, outcome: &str) {
        let Some(known) = self.known.as_ref().filter(|known| known.role() == Some("service_role")) else { return };
        if let Some(change) = self.change.take() {
            self.audit.note(change.entry(outcome, known.key().as_deref()), &self.id);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(begun) = self.begun.take() else { return };
        let ms = begun.abandoned().as_secs_f64() * 1000.0;
        let mut known = self.known.clone();
        // A dropped request is not polled within its context any more.
        let _entered = context::enter(&mut known);
        tracing::info!(ms, "request abandoned");
        self.note("abandoned");
    }
}

/// A request that may write, on a server with a read replica: its writer's later reads have to see it. If its client
/// leaves before the answer, the write is shared in the background.
struct Write {
    rest: web::Data<Rest>,
    known: Option<Arc<RequestContext>>,
    is_rest: bool,
    authorization: Option<HeaderValue>,
    address: Option<IpAddr>,
    /// Of the answer, if there is one.
    status: Option<u16>,
    is_shared: bool,
}

impl Write {
    fn of(request: &ServiceRequest) -> Option<Self> {
        let rest = request.app_data::<web::Data<Rest>>()?;
        rest.replica.as_ref()?;
        let path = request.path();
        let may_write = match *request.method() {
            Method::OPTIONS => false,
            // Links in mails sign people in, and what a function does is its own affair.
            Method::GET | Method::HEAD => {
                ["/auth/v1/verify", "/auth/v1/callback"].contains(&path) || path.starts_with("/functions/v1/")
            }
            _ => !path.starts_with("/realtime/v1/"),
        };
        may_write.then(|| Self {
            rest: rest.clone(),
            known: context::current(),
            is_rest: path.starts_with("/rest/v1/"),
            authorization: request.headers().get(AUTHORIZATION).cloned(),
            address: request
                .app_data::<web::Data<TrustedProxies>>()
                .and_then(|proxies| client_address(request.request(), proxies))
                .map(network),
            status: None,
            is_shared: false,
        })
    }

    async fn share(mut self, status: u16) {
        self.status = Some(status);
        if let (Some(replica), Some(subject)) = (&self.rest.replica, self.subject()) {
            replica.wrote(subject).await;
        }
        self.is_shared = true;
    }

    /// Who has written, if anybody.
    fn subject(&self) -> Option<Subject> {
        let role = self.known.as_ref().and_then(|known| known.role());
        let is_anonymous = role.is_none_or(|role| self.rest.live.settings().is_anon(role));
        // The token may be forged, unless it was accepted.
        let has_written = match self.status {
            // Others than the REST API commit nothing if they answer with an error.
            Some(status) => status < 400 || (self.is_rest && status != 401),
            None => role.is_some(),
        };
        let signed_in = self.known.as_ref().and_then(|known| known.user());
        let user = match signed_in {
            Some(user) => Some(String::from(user)),
            None if has_written => {
                self.authorization.as_ref().and_then(|value| unverified_subject(value.to_str().ok()?))
            }
            None => return None,
        };
        let subject = Subject::named(user.as_deref(), role.unwrap_or_default(), is_anonymous);
        Some(subject.unwrap_or_else(|| Subject::guest(self.address)))
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        if self.is_shared {
            return;
        }
        let (Some(replica), Some(subject)) = (self.rest.replica.clone(), self.subject()) else { return };
        // None while the server stops.
        let Ok(runtime) = Handle::try_current() else { return };
        let has_answer = self.status.is_some();
        runtime.spawn(async move {
            replica.wrote(subject).await;
            if !has_answer {
                // A commit may have been under way.
                tokio::time::sleep(LATE_COMMIT).await;
                replica.wrote(subject).await;
            }
        });
    }
}

/// Middleware of an API alone: the part of [`log_request`] and of the full server's headers that it needs.
async fn attend(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let begun = request.app_data::<web::Data<Traffic>>().map(|traffic| traffic.begin(request.path()));
    let write = Write::of(&request).map(|mut write| {
        write.is_rest = true;
        write
    });
    let serves_files = request.app_data::<web::Data<Storage>>().is_some();
    let answer = next.call(request).await;
    if let Some(begun) = begun {
        begun.answered(status_of(&answer));
    }
    if let Some(write) = write {
        write.share(status_of(&answer)).await;
    }
    let mut response = answer?;
    if serves_files && !response.headers().contains_key(X_CONTENT_TYPE_OPTIONS) {
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    Ok(response)
}

/// A request that may change something. It is recorded if it was made with a service key.
struct Change {
    key: Option<HeaderValue>,
    method: Method,
    path: String,
    address: String,
}

impl Change {
    fn of(audit: &Audit, request: &ServiceRequest) -> Option<Self> {
        let method = request.method();
        // A broadcast changes nothing permanent.
        if !audit.is_on()
            || matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
            || request.path().starts_with("/realtime/v1/")
        {
            return None;
        }
        let headers = request.headers();
        let is_key = |value: &&HeaderValue| !value.is_empty();
        let key = headers.get(AUTHORIZATION).or_else(|| headers.get("apikey").filter(is_key));
        let proxies = request.app_data::<web::Data<TrustedProxies>>();
        let address = proxies.and_then(|proxies| client_address(request.request(), proxies));
        Some(Self {
            key: key.cloned(),
            method: method.clone(),
            path: request.path().to_owned(),
            address: address.map(|address| address.to_string()).unwrap_or_default(),
        })
    }

    /// `elsewhere`: the key, if it is not that of the header `Authorization`.
    fn entry(self, outcome: &str, elsewhere: Option<&PresentedKey>) -> audit::Entry {
        let in_header = self.key.as_ref().and_then(|key| key.to_str().ok());
        audit::Entry {
            minute: chrono::Utc::now().timestamp() / 60,
            actor: match (in_header, elsewhere) {
                (_, Some(PresentedKey::ApiKey(key))) => audit::actor_of(Some(key)),
                (_, Some(PresentedKey::S3(id))) => audit::actor_of_s3(id),
                (in_header, _) => audit::actor_of(in_header),
            },
            address: self.address,
            action: self.method.to_string(),
            target: audit::target_of(&self.path),
            outcome: outcome.to_owned(),
        }
    }
}

/// The keys with which REST, functions and storage verify the auth API's tokens.
fn shared_jwt_secret(source: &Source, config: &ServerConfig) -> String {
    let reader = Reader::new(source);
    let key_id = reader.text_or(&["GOTRUE_JWT_KEY_ID"], "");
    let keys = reader.secret(&["GOTRUE_JWT_KEYS"]);
    let keys = keys.as_ref().map(Secret::reveal);
    jwt::shared::jwt_secret(config.jwt_secret.reveal(), &key_id, keys, &config.accepted_keys)
}

/// Sets defaults: aliases of settings that several modules use and, in development, the settings of `supabase start` with
/// AidBridge's password rule.
fn lay_defaults(source: &mut Source, config: &ServerConfig) {
    let external = format!("{}/auth/v1", config.api_external_url);
    let (rest, auth) = (config.connections.rest.to_string(), config.connections.auth.to_string());
    for (name, value) in [
        ("PGRST_DB_SCHEMAS", "public,graphql_public"),
        ("PGRST_DB_EXTRA_SEARCH_PATH", "public,extensions"),
        ("PGRST_DB_ANON_ROLE", "anon"),
        ("PGRST_DB_MAX_ROWS", "1000"),
        ("PGRST_DB_POOL", &rest),
        ("GOTRUE_DB_MAX_POOL_SIZE", &auth),
        ("PGRST_APP_SETTINGS_SITE_URL", &config.site_url),
        ("GOTRUE_SITE_URL", &config.site_url),
        ("API_EXTERNAL_URL", &external),
        ("GOTRUE_JWT_AUD", "authenticated"),
        ("GOTRUE_JWT_DEFAULT_GROUP_NAME", "authenticated"),
        ("GOTRUE_MAILER_URLPATHS_CONFIRMATION", "/auth/v1/verify"),
        ("GOTRUE_MAILER_URLPATHS_INVITE", "/auth/v1/verify"),
        ("GOTRUE_MAILER_URLPATHS_RECOVERY", "/auth/v1/verify"),
        ("GOTRUE_MAILER_URLPATHS_EMAIL_CHANGE", "/auth/v1/verify"),
    ] {
        source.set_default(name, value);
    }
    let names_keys = |source: &Source| Reader::new(source).find(&["GOTRUE_JWT_KEYS", "GOTRUE_JWT_KEY_ID"]).is_some();
    if config.takes_known_keys() && !names_keys(source) {
        source.set_default(
            "GOTRUE_JWT_KEYS",
            jwt::shared::beside_secret(DEVELOPMENT_JWT_SECRET, DEVELOPMENT_SIGNING_KEY),
        );
    }
    // AidBridge writes the sign-in mails itself, in the reader's language, unless templates are configured.
    let has_own_mails = ["GOTRUE_MAILER_TEMPLATES_", "GOTRUE_MAILER_SUBJECTS_"]
        .iter()
        .any(|prefix| source.with_prefix(prefix).next().is_some());
    if config.migrations == SqlSource::Embedded && !has_own_mails {
        source.set_default("GOTRUE_HOOK_SEND_EMAIL_ENABLED", "true");
        source.set_default("GOTRUE_HOOK_SEND_EMAIL_URI", "pg-functions://postgres/private/sign_in_mail");
    }
    source.set_default("PGRST_JWT_SECRET", shared_jwt_secret(source, config));
    source.set_default("GOTRUE_JWT_SECRET", config.jwt_secret.reveal());
    if !config.development {
        return;
    }
    if config.is_local() {
        source.set_default("S3_PROTOCOL_ACCESS_KEY_ID", DEVELOPMENT_S3_KEYS.0);
        source.set_default("S3_PROTOCOL_ACCESS_KEY_SECRET", DEVELOPMENT_S3_KEYS.1);
    }
    for (name, value) in [
        ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1s"),
        ("GOTRUE_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED", "true"),
        ("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL", "10"),
        ("GOTRUE_PASSWORD_MIN_LENGTH", "8"),
        ("GOTRUE_RATE_LIMIT_EMAIL_SENT", "1000"),
        ("GOTRUE_RATE_LIMIT_VERIFY", "1000"),
        ("GOTRUE_RATE_LIMIT_TOKEN_REFRESH", "1000"),
        ("GOTRUE_RATE_LIMIT_ANONYMOUS_USERS", "1000"),
        ("GOTRUE_RATE_LIMIT_OTP", "1000"),
    ] {
        source.set_default(name, value);
    }
}
