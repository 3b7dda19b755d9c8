//! The admin listener: `/live`, `/ready`, `/schema_cache`, `/metrics`.
//!
//! Off unless `admin-server-port` or its socket is set. Reference: PostgREST `Admin.hs`, `Metrics.hs`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value, json};

use super::Rest;
use crate::db::replica::ReadReplica;
use crate::schema_cache::SchemaCache;

/// The API's own address, to check that it accepts connections.
#[derive(Clone, Debug)]
pub enum MainSocket {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The state of the admin routes.
#[derive(Clone)]
pub struct Admin {
    pub rest: Rest,
    pub main_socket: MainSocket,
}

/// Mounts the admin routes; everything else is 404 with an empty body.
pub fn configure(admin: Admin, service: &mut web::ServiceConfig) {
    service.app_data(web::Data::new(admin)).default_service(web::to(answer));
}

async fn answer(request: HttpRequest, admin: web::Data<Admin>) -> HttpResponse {
    match request.path() {
        "/live" => status(if admin.main_socket.accepts().await { 200 } else { 500 }),
        "/ready" => status(admin.readiness().await),
        "/schema_cache" => match admin.rest.live.cache() {
            Some(cache) => HttpResponse::Ok().content_type("application/json; charset=utf-8").json(dump(&cache)),
            None => HttpResponse::Ok().finish(),
        },
        "/metrics" => HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(all_metrics(&admin.rest)),
        _ => HttpResponse::NotFound().finish(),
    }
}

fn status(code: u16) -> HttpResponse {
    let code = actix_web::http::StatusCode::from_u16(code).unwrap_or_default();
    HttpResponse::build(code).finish()
}

impl Admin {
    /// 503 if the schema cache is not loaded or its load is being retried, or if the database does not answer; 500 if
    /// the API accepts no connections.
    async fn readiness(&self) -> u16 {
        if !self.rest.live.is_loaded() || self.rest.live.pool().answers().await.is_err() {
            503
        } else if !self.main_socket.accepts().await {
            500
        } else {
            200
        }
    }
}

impl MainSocket {
    async fn accepts(&self) -> bool {
        let connected = async {
            match self {
                Self::Tcp(address) => tokio::net::TcpStream::connect(address).await.is_ok(),
                Self::Unix(path) => tokio::net::UnixStream::connect(path).await.is_ok(),
            }
        };
        tokio::time::timeout(Duration::from_secs(1), connected).await.unwrap_or(false)
    }
}

/// Everything in the cache, as JSON under the reference's top names.
fn dump(cache: &SchemaCache) -> Value {
    let tables: Vec<_> = cache.tables().map(|table| json!([table.name, table])).collect();
    let relationships: Vec<_> = cache.relationships().map(|relationship| json!(relationship)).collect();
    let functions: Vec<_> = cache.functions().map(|function| json!([function.name, function])).collect();
    let representations: Vec<_> = cache
        .representations()
        .iter()
        .map(|(source, target, function)| json!({ "source": source, "target": target, "function": function }))
        .collect();
    let handlers: Vec<_> = cache.media_handlers().iter().map(|(media, handler)| json!([media, handler])).collect();
    Value::Object(Map::from_iter([
        ("dbTables".to_owned(), tables.into()),
        ("dbRelationships".to_owned(), relationships.into()),
        ("dbRoutines".to_owned(), functions.into()),
        ("dbRepresentations".to_owned(), representations.into()),
        ("dbMediaHandlers".to_owned(), handlers.into()),
    ]))
}

/// Prometheus text.
pub fn metrics(rest: &Rest) -> String {
    let counters = &rest.live.counters;
    let pool = rest.pool.figures();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let seconds = count(&counters.load_micros) as f64 / 1e6;
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(&str, f64)]| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let load = "pgrst_schema_cache_query_time_seconds";
    metric(load, "gauge", "The query time in seconds of the last schema cache load", &[("", seconds)]);
    metric(
        "pgrst_schema_cache_loads_total",
        "counter",
        "The total number of times the schema cache was loaded",
        &[
            ("{status=\"SUCCESS\"}", count(&counters.loads) as f64),
            ("{status=\"FAIL\"}", count(&counters.failed_loads) as f64),
        ],
    );
    let timeouts = "The total number of pool connection timeouts";
    metric("pgrst_db_pool_timeouts_total", "counter", timeouts, &[("", pool.timeouts as f64)]);
    let available = "Available connections in the pool";
    metric("pgrst_db_pool_available", "gauge", available, &[("", pool.available as f64)]);
    let waiting = "Requests waiting to acquire a pool connection";
    metric("pgrst_db_pool_waiting", "gauge", waiting, &[("", pool.waiting as f64)]);
    metric("pgrst_db_pool_max", "gauge", "Max pool connections", &[("", pool.max as f64)]);
    let tokens = &counters.tokens;
    for (name, help, counter) in [
        ("pgrst_jwt_cache_requests_total", "The total number of JWT cache lookups", &tokens.requests),
        ("pgrst_jwt_cache_hits_total", "The total number of JWT cache hits", &tokens.hits),
        ("pgrst_jwt_cache_evictions_total", "The total number of JWT cache evictions", &tokens.evictions),
    ] {
        metric(name, "counter", help, &[("", count(counter) as f64)]);
    }
    text
}

/// The same with what PostgREST has not, for the REST API alone.
fn all_metrics(rest: &Rest) -> String {
    let replica = rest.replica.as_ref().map(|replica| ReadReplica::metrics(Some(replica)));
    metrics(rest) + &replica.unwrap_or_default()
}
