//! The admin listener for operators: liveness, readiness and metrics.
//!
//! | route | answer |
//! |---|---|
//! | `GET /live` | 200 while the process answers |
//! | `GET /ready` | 200 when the database answers and the REST API knows its schema, else 503 |
//! | `GET /metrics` | Prometheus text |
//! | `GET /realtime` | the inspector of sockets, a page |
//!
//! It listens on a separate address (`FERROBASE_ADMIN_LISTEN`), because its answers are not public.

mod census;
mod process;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use tokio::sync::Mutex;

use crate::audit;
use crate::backup::{self, BackupStore, LogState, State};
use crate::db::replica::ReadReplica;
use crate::db::{Pool, PoolFigures, slow};
use crate::http::connection::KEEP_ALIVE;
use crate::http::draining::Draining;
use crate::http::prometheus::{self, Metrics};
use crate::http::traffic::Traffic;
use crate::jobs;
use crate::mail::outbox;
use crate::realtime::Realtime;
use crate::rest::{self, Rest};
use crate::storage;
pub use census::Census;

/// How long `/metrics` waits for disks.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of the routes.
#[derive(Clone)]
pub struct Admin {
    pub database: Pool,
    /// Absent if only the authentication API runs.
    pub rest: Option<Rest>,
    pub realtime: Option<Realtime>,
    /// In development, requests from this machine need no key for the inspector.
    pub is_development: bool,
    pub traffic: Traffic,
    /// Pools beside that of the REST API, by what they serve.
    pub pools: Vec<(&'static str, Pool)>,
    /// What only the database knows; absent where one API runs alone.
    pub census: Option<Census>,
    /// Folders whose disk must not fill up, by what they hold.
    pub folders: Vec<(&'static str, PathBuf)>,
    pub draining: Draining,
    /// The data folder, which records the last backups; absent with an external database.
    pub data_dir: Option<PathBuf>,
    /// Where scheduled backups are made; absent without a schedule.
    pub scheduled_to: Option<BackupStore>,
}

impl Admin {
    /// For one API that is served alone.
    pub fn alone(api: &'static str, database: Pool, traffic: Traffic) -> Self {
        Self {
            rest: None,
            realtime: None,
            is_development: false,
            traffic,
            pools: vec![(api, database.clone())],
            database,
            census: None,
            folders: Vec::new(),
            draining: Draining::default(),
            data_dir: None,
            scheduled_to: None,
        }
    }
}

/// Serves on `listener` until the handle is told to stop. Call from an actix runtime.
pub fn spawn(listener: TcpListener, admin: Admin) -> std::io::Result<ServerHandle> {
    process::started();
    let server = HttpServer::new(move || App::new().configure(|service| configure(admin.clone(), service)))
        .workers(1)
        .keep_alive(KEEP_ALIVE)
        .disable_signals()
        .listen(listener)?
        .run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    Ok(handle)
}

/// Mounts the routes.
pub fn configure(admin: Admin, service: &mut web::ServiceConfig) {
    if let Some(realtime) = &admin.realtime {
        realtime.clone().configure_inspector(admin.is_development, service);
    }
    service
        .app_data(web::Data::new(admin))
        .route("/live", web::get().to(HttpResponse::Ok))
        .route("/ready", web::get().to(ready))
        .route("/metrics", web::get().to(metrics));
}

async fn ready(admin: web::Data<Admin>) -> HttpResponse {
    if admin.draining.has_begun() {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let knows_schema = admin.rest.as_ref().is_none_or(|rest| rest.live.is_loaded());
    if knows_schema && admin.database.answers().await.is_ok() {
        HttpResponse::Ok().finish()
    } else {
        HttpResponse::ServiceUnavailable().finish()
    }
}

async fn metrics(admin: web::Data<Admin>) -> HttpResponse {
    let mut metrics = Metrics::default();
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    metrics.gauge("ferrobase_build_info", "Which version runs", [(version, 1)]);
    process::write(&mut metrics);
    metrics.append(&of_disks(&admin).await);
    metrics.append(&admin.traffic.as_text());
    let is_up = admin.database.answers().await.is_ok();
    metrics.single("ferrobase_database_up", "Whether the database answers", u8::from(is_up));
    let rest_pool = admin.rest.as_ref().map(|rest| ("rest", rest.pool.figures()));
    let replica = admin.rest.as_ref().and_then(|rest| rest.replica.as_ref());
    let rest_pool = rest_pool.into_iter().chain(replica.map(|replica| ("replica", replica.pool().figures())));
    let pools = admin.pools.iter().map(|(name, pool)| (*name, pool.figures()));
    write_pools(&mut metrics, &rest_pool.chain(pools).collect::<Vec<_>>());
    metrics.single("ferrobase_db_slow_queries_total", "Queries that were logged as slow", slow::seen());
    if let Some(census) = &admin.census {
        metrics.append(&census.metrics().await);
        metrics.append(&outbox::metrics());
        metrics.append(&jobs::metrics());
        metrics.append(&audit::metrics());
    }
    metrics.append(&storage::metrics::as_text());
    if let Some(rest) = &admin.rest {
        metrics.append(&rest::admin::metrics(rest));
        metrics.append(&ReadReplica::metrics(rest.replica.as_ref()));
    }
    if let Some(realtime) = &admin.realtime {
        metrics.append(&realtime.metrics());
    }
    if admin.data_dir.is_some() {
        let failed = "Scheduled backups that failed";
        metrics.single("ferrobase_backup_failures_total", failed, backup::FAILED.get());
    }
    HttpResponse::Ok().content_type(prometheus::CONTENT_TYPE).body(metrics.into_text())
}

/// The connections of each pool, and who waits for them.
fn write_pools(metrics: &mut Metrics, pools: &[(&str, PoolFigures)]) {
    let each = |value: fn(&PoolFigures) -> u64| {
        pools.iter().map(move |(name, figures)| (format!("{{pool=\"{name}\"}}"), value(figures)))
    };
    metrics.gauge("ferrobase_db_pool_max", "Maximum number of connections of a pool", each(|pool| pool.max as u64));
    metrics.gauge(
        "ferrobase_db_pool_in_use",
        "Connections that a request holds",
        each(|pool| pool.max.saturating_sub(pool.available) as u64),
    );
    metrics.gauge("ferrobase_db_pool_waiting", "Requests that wait for a connection", each(|pool| pool.waiting as u64));
    let timeouts = "Requests that got no connection in time";
    metrics.counter("ferrobase_db_pool_timeouts_total", timeouts, each(|pool| pool.timeouts));
    let refused = "Requests that were refused because too many waited";
    metrics.counter("ferrobase_db_pool_refused_total", refused, each(|pool| pool.refused));
}

/// What has to be read from disks. A disk that does not answer leaves its metrics out, and does not keep the other ones waiting.
async fn of_disks(admin: &Admin) -> String {
    // One at a time, so that a disk that does not answer keeps one thread.
    static TURN: Mutex<()> = Mutex::const_new(());
    let (folders, data_dir) = (admin.folders.clone(), admin.data_dir.clone());
    let scheduled_to = admin.scheduled_to.clone();
    let read = async {
        let turn = TURN.lock().await;
        let read = web::block(move || {
            let mut metrics = Metrics::default();
            process::write_disks(&mut metrics, &folders);
            if let Some(data_dir) = data_dir {
                metrics.append(&backup_metrics(&data_dir, scheduled_to.as_ref()));
            }
            drop(turn);
            metrics.into_text()
        });
        read.await.unwrap_or_default()
    };
    tokio::time::timeout(DISK_TIMEOUT, read).await.unwrap_or_default()
}

fn backup_metrics(data_dir: &Path, scheduled_to: Option<&BackupStore>) -> String {
    let log = LogState::read(data_dir).map(|log| log.metrics()).unwrap_or_default();
    State::read(data_dir).metrics(scheduled_to) + &log
}
