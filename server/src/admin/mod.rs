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

mod traffic;

use std::net::TcpListener;
use std::path::PathBuf;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};

use crate::backup::State;
use crate::db::Pool;
use crate::http::listen::KEEP_ALIVE;
use crate::realtime::Realtime;
use crate::rest::{self, Rest};
pub use traffic::{Traffic, count};

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
    /// The data folder, which knows of the last backups; absent where the database is somebody else's.
    pub data_dir: Option<PathBuf>,
}

/// Serves on `listener` until the handle is told to stop. Call from an actix runtime.
pub fn spawn(listener: TcpListener, admin: Admin) -> std::io::Result<ServerHandle> {
    let server = HttpServer::new(move || App::new().configure(configure(admin.clone())))
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
pub fn configure(admin: Admin) -> impl FnOnce(&mut web::ServiceConfig) {
    move |service| {
        if let Some(realtime) = &admin.realtime {
            service.configure(realtime.clone().configure_inspector(admin.is_development));
        }
        service
            .app_data(web::Data::new(admin))
            .route("/live", web::get().to(HttpResponse::Ok))
            .route("/ready", web::get().to(ready))
            .route("/metrics", web::get().to(metrics));
    }
}

async fn ready(admin: web::Data<Admin>) -> HttpResponse {
    let knows_schema = admin.rest.as_ref().is_none_or(|rest| rest.live.is_loaded());
    if knows_schema && admin.database.answers().await.is_ok() {
        HttpResponse::Ok().finish()
    } else {
        HttpResponse::ServiceUnavailable().finish()
    }
}

async fn metrics(admin: web::Data<Admin>) -> HttpResponse {
    let mut text = admin.traffic.as_text();
    if let Some(rest) = &admin.rest {
        text.push_str(&rest::admin::metrics(rest));
    }
    if let Some(realtime) = &admin.realtime {
        text.push_str(&realtime.metrics());
    }
    if let Some(data_dir) = admin.data_dir.clone() {
        // Blocking, because it reads a file.
        text.push_str(&web::block(move || State::read(&data_dir).metrics()).await.unwrap_or_default());
    }
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)
}
