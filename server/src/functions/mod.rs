//! `/functions/v1/{name}`: PostgreSQL functions of the schema `functions`, then a project's edge functions ([`edge`]).
//!
//! A name calls `functions."<name>"(input jsonb) returns jsonb`, with the name quoted exactly. The function runs as the caller (anon
//! without a token) with the settings of a REST request (`request.method`, `.path`, `.headers`, and those of `alter role … set`), so
//! row level security applies. `input` is the JSON body or, without a body, an object of the query's parameters. The answer is the
//! returned JSON.

pub mod edge;
mod error;

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, header};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::future::try_join;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::db::{DbError, Pool};
use crate::http::{cors, span};
use crate::jwt::bearer::{Bearer, BearerError};
use crate::jwt::caller::Caller;
pub use edge::{Edge, EdgeConfig, PlatformValues};
use error::FunctionError;

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 6 * 1024 * 1024;
/// How much of a larger body is read and discarded, in bytes.
const MOST_READ: usize = 8 * MAX_BODY;

/// How long a call waits for a slot, the same as for a connection.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// The state of the handler. Cheap to clone.
#[derive(Clone)]
pub struct Functions {
    db: Pool,
    tokens: Bearer,
    edge: Option<Edge>,
    /// Limits how many connections functions use, so that others find some free.
    turns: Arc<Semaphore>,
}

impl Functions {
    /// `db` must log in as the authenticator.
    pub fn new(db: Pool, tokens: Bearer, edge: Option<Edge>) -> Self {
        let turns = Arc::new(Semaphore::new(Self::most_at_once(db.max_size())));
        Self { db, tokens, edge, turns }
    }

    /// Makes the edge functions start with fresh processes after the database was replaced.
    pub fn renew(&self) {
        if let Some(edge) = &self.edge {
            edge.renew();
        }
    }

    /// Closes the websockets of edge functions.
    pub fn close_sockets(&self) {
        if let Some(edge) = &self.edge {
            edge.close_sockets();
        }
    }

    /// Ends the processes of edge functions, after all requests have ended.
    pub async fn stop(&self) {
        if let Some(edge) = &self.edge {
            edge.stop().await;
        }
    }

    /// How many of the pool's connections functions may hold: three quarters, always leaving one.
    fn most_at_once(connections: usize) -> usize {
        (connections * 3 / 4).min(connections.saturating_sub(1)).max(1)
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, DbError> {
        match tokio::time::timeout(TURN_WAIT, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(DbError::PoolTimeout),
        }
    }

    /// The edge functions, unless a PostgreSQL function with this name exists, which takes precedence.
    async fn edge_for(&self, name: &str) -> Result<Option<&Edge>, DbError> {
        let Some(edge) = self.edge.as_ref().filter(|edge| edge.has(name)) else { return Ok(None) };
        let connection = self.db.lease().await?;
        let known = "select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace \
                     where n.nspname = 'functions' and p.proname = $1 and p.proargtypes = '3802'::oidvector)";
        let is_ours: bool = connection.query_one(known, &[&name]).await?.get(0);
        Ok((!is_ours).then_some(edge))
    }
}

/// Mounts the route below the given scope.
pub fn configure(service: &mut ServiceConfig) {
    service
        .service(web::resource("/_internal/health").route(web::get().to(health)))
        .service(web::resource("/_internal/metric").route(web::get().to(metric)))
        .service(web::resource("/{name}").route(web::route().to(invoke)))
        .service(web::resource("/{name}/{rest:.*}").route(web::route().to(invoke)));
}

/// What scripts wait for until functions are served. No edge function has such a name.
async fn health(functions: web::Data<Functions>) -> HttpResponse {
    let _received = functions.edge.as_ref().map(Edge::receive);
    let mut response = HttpResponse::Ok().json(serde_json::json!({ "message": "ok" }));
    cors::allow(response.headers_mut());
    response
}

/// Figures about requests and processes.
async fn metric(functions: web::Data<Functions>) -> HttpResponse {
    let _received = functions.edge.as_ref().map(Edge::receive);
    let mut response = match functions.edge.as_ref().and_then(Edge::metrics) {
        Some(figures) => HttpResponse::Ok().json(figures),
        None => FunctionError::NotFound.error_response(),
    };
    cors::allow(response.headers_mut());
    response
}

/// Any method except OPTIONS calls the function. Segments after the name are passed on (`request.path`).
async fn invoke(functions: web::Data<Functions>, request: HttpRequest, body: web::Payload) -> HttpResponse {
    let name = percent_encoding::percent_decode_str(request.match_info().query("name")).decode_utf8_lossy();
    let received = functions.edge.as_ref().map(Edge::receive);
    match functions.edge_for(&name).await {
        // Edge functions answer preflight requests themselves.
        Ok(Some(edge)) => return edge::call(edge, &functions.tokens, &name, &request, body, received).await,
        Ok(None) => {}
        Err(error) => {
            let mut response = FunctionError::from(error).error_response();
            cors::allow(response.headers_mut());
            return response;
        }
    }
    if request.method() == Method::OPTIONS {
        return cors::preflight(request.headers());
    }
    let answer = match read(body).await {
        Ok(body) => call(&functions, &request, &body).await,
        Err(error) => Err(error),
    };
    let mut response = match answer {
        Ok(answer) => HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "application/json")).body(answer),
        Err(error) => error.error_response(),
    };
    cors::allow(response.headers_mut());
    response
}

/// Reads the whole body. Up to a limit, an oversized one is read and discarded, because clients that are still sending when the
/// connection closes do not see our answer.
async fn read(mut body: web::Payload) -> Result<BytesMut, FunctionError> {
    let (mut kept, mut length) = (BytesMut::new(), 0);
    while let Some(part) = body.next().await {
        let part = part.map_err(|error| FunctionError::Body(format!("the body could not be read: {error}")))?;
        length += part.len();
        if length <= MAX_BODY {
            kept.extend_from_slice(&part);
        } else if length > MOST_READ {
            break;
        }
    }
    if length > MAX_BODY { Err(FunctionError::TooLarge) } else { Ok(kept) }
}

async fn call(functions: &Functions, request: &HttpRequest, body: &[u8]) -> Result<String, FunctionError> {
    let caller = match functions.tokens.caller(request.headers()) {
        Ok(caller) => caller,
        Err(BearerError::Missing) => Caller::anonymous("anon"),
        Err(BearerError::Invalid | BearerError::Expired) => return Err(FunctionError::InvalidToken),
    };
    span::acts_as(caller.role.as_str().into());
    let name = percent_encoding::percent_decode_str(request.match_info().query("name"))
        .decode_utf8()
        .map_err(|_| FunctionError::NotFound)?
        .into_owned();
    // No PostgreSQL name or text contains NUL.
    if name.contains('\0') {
        return Err(FunctionError::NotFound);
    }
    let input = input(request, body)?;
    let headers = headers_as_json(request);
    let settings = [
        ("request.method", request.method().as_str()),
        ("request.path", request.path()),
        ("request.headers", headers.as_str()),
    ];
    let _turn = functions.turn().await?;
    let tx = functions.db.as_caller(&caller, &settings).await.map_err(|error| match error {
        DbError::Role(_) => FunctionError::InvalidToken,
        error => error.into(),
    })?;
    let client = tx.client()?;
    let known = client
        .prepare_cached(
            "select format('select %I.%I($1::text::jsonb)::text', n.nspname, p.proname) from pg_proc p \
             join pg_namespace n on n.oid = p.pronamespace \
             where n.nspname = 'functions' and p.proname = $1 and p.proargtypes = '3802'::oidvector",
        )
        .await?;
    let own = client.prepare_cached(include_str!("role_settings.sql")).await?;
    // Sent together, in one round trip.
    let (found, _) = try_join(client.query_opt(&known, &[&name]), client.query(&own, &[])).await?;
    let Some(statement) = found else {
        tx.rollback().await?;
        return Err(FunctionError::NotFound);
    };
    let prepared = client.prepare_cached(statement.try_get(0)?).await;
    let statement = prepared.map_err(|error| FunctionError::raised(error, &caller.role))?;
    let row = match client.query_one(&statement, &[&input]).await {
        Ok(row) => row,
        Err(error) => {
            let error = FunctionError::raised(error, &caller.role);
            if matches!(error, FunctionError::Raised(..)) {
                // The connection is still usable.
                tx.rollback().await?;
            }
            return Err(error);
        }
    };
    let answer: Option<String> = row.try_get(0)?;
    tx.commit().await?;
    Ok(answer.unwrap_or_else(|| "null".to_owned()))
}

/// The body's JSON text unchanged, so that numbers keep all digits; `text/plain` becomes a JSON string. Without a body, the
/// query's parameters.
fn input(request: &HttpRequest, body: &[u8]) -> Result<String, FunctionError> {
    if body.is_empty() {
        let query = url::form_urlencoded::parse(request.query_string().as_bytes())
            .filter(|(name, _)| name != "forceFunctionRegion")
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect::<Map<_, _>>();
        return Ok(Value::Object(query).to_string());
    }
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("application/json");
    match kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
        "text/plain" => std::str::from_utf8(body)
            .map(|text| Value::from(text).to_string())
            .map_err(|_| FunctionError::Body("text/plain is not UTF-8".to_owned())),
        "application/json" | "" => serde_json::from_slice::<&RawValue>(body)
            .map(|json| json.get().to_owned())
            .map_err(|e| FunctionError::Body(format!("the body is not JSON: {e}"))),
        other => Err(FunctionError::Type(other.to_owned())),
    }
}

fn headers_as_json(request: &HttpRequest) -> String {
    let headers: Map<String, Value> = request
        .headers()
        .iter()
        .filter(|(name, _)| *name != header::COOKIE)
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), Value::String(value.to_str().ok()?.to_owned()))))
        .collect();
    Value::Object(headers).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn input_is_the_body_or_the_query() {
        let get = TestRequest::get().uri("/x?a=1&forceFunctionRegion=eu-west-1").to_http_request();
        assert_eq!(input(&get, b"").expect("input"), r#"{"a":"1"}"#);
        let text = TestRequest::post().insert_header(("content-type", "text/plain;charset=UTF-8")).to_http_request();
        assert_eq!(input(&text, b"hi").expect("input"), r#""hi""#);
        let post = TestRequest::post().insert_header(("content-type", "application/json")).to_http_request();
        assert_eq!(
            input(&post, br#"{"a":[12345678901234567890.10]}"#).expect("input"),
            r#"{"a":[12345678901234567890.10]}"#
        );
        assert!(input(&post, b"{").is_err());
    }
}
