//! The development inbox: catches outgoing mail in a table and shows it, as a page and as JSON for tests.
//!
//! It serves loopback only, and only requests with a loopback `Host`: the mails contain sign-in links, which other web pages in the
//! developer's browser must not read.
//!
//! | route | answer |
//! |---|---|
//! | `GET /` | the page; `?id=` the message shown, `?view=html`, `text` or `source` |
//! | `GET /api/messages?to=` | array of messages, newest first |
//! | `GET /api/messages/{id}` | one message |
//! | `DELETE /api/messages` | 204, all are gone |
//! | `GET /messages/{id}/html` | the HTML part, sandboxed |
//! | `/api/v1/…`, `/view/…` | what Mailpit answers ([`mailpit`]) |
//!
//! Apps that send mails of their own hand them to its [`Receiver`].

mod mailpit;
#[cfg(feature = "inbox-smtp")]
mod mime;
mod page;
mod queries;
mod search;
#[cfg(feature = "inbox-smtp")]
mod smtp;
#[cfg(not(feature = "inbox-smtp"))]
#[path = "no_smtp.rs"]
mod smtp;

#[cfg(not(feature = "inbox-smtp"))]
use smtp as mime;
pub use smtp::Receiver;

use std::net::TcpListener;

use actix_web::body::MessageBody;
use actix_web::dev::{ServerHandle, ServiceRequest, ServiceResponse};
use actix_web::http::{StatusCode, header};
use actix_web::middleware::{Next, from_fn};
use actix_web::web::{self, Data, Path, Query};
use actix_web::{App, HttpResponse, HttpServer};
use futures_util::future::BoxFuture;
use serde::Deserialize;

use super::config::FromAddress;
use super::{MailError, Message, Sender};
use crate::db::{DbError, Pool};
use crate::http::connection::KEEP_ALIVE;
use crate::http::loopback::is_loopback_host;
use crate::http::page::STYLE;

/// Puts messages into the inbox.
pub struct Inbox {
    pool: Pool,
    from: FromAddress,
}

impl Inbox {
    /// `pool` logs in as the role that owns the inbox's rows.
    pub fn new(pool: Pool, from: FromAddress) -> Self {
        Self { pool, from }
    }
}

impl Sender for Inbox {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(async move {
            let stored = queries::insert(&self.pool, &self.from.to_string(), message).await;
            stored.map_err(|e| MailError::Refused(e.to_string().into()))
        })
    }
}

/// Serves the inbox on `listener`, which must be at a loopback address. Call from an actix runtime.
pub fn spawn(listener: TcpListener, pool: Pool) -> std::io::Result<ServerHandle> {
    loopback_address(&listener)?;
    let server = HttpServer::new(move || {
        App::new().app_data(Data::new(pool.clone())).wrap(from_fn(loopback_only)).configure(routes)
    })
    .workers(1)
    .keep_alive(KEEP_ALIVE)
    .disable_signals()
    .shutdown_timeout(1)
    .listen(listener)?
    .run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    Ok(handle)
}

/// Refuses a listener that other machines reach.
fn loopback_address(listener: &TcpListener) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    if address.ip().is_loopback() {
        return Ok(());
    }
    let reason = format!("the inbox may only listen on loopback, and {address} can be reached from other machines");
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason))
}

fn routes(service: &mut web::ServiceConfig) {
    service
        .route("/", web::get().to(show))
        .route("/delete", web::post().to(delete_and_show))
        .route("/inbox.css", web::get().to(style))
        .route("/inbox.js", web::get().to(script))
        .route("/messages/{id}/html", web::get().to(html_part))
        .route("/api/messages", web::get().to(list))
        .route("/api/messages", web::delete().to(delete))
        .route("/api/messages/{id}", web::get().to(one))
        .configure(mailpit::routes);
}

/// Refuses requests whose `Host` is not this machine (a foreign name that resolves here), and writing requests that
/// another site has sent.
async fn loopback_only<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    // Only the `Host` header itself: a foreign page could set forwarding headers.
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let origin = request.headers().get(header::ORIGIN).and_then(|value| value.to_str().ok());
    let own_origin = origin.is_none_or(|origin| origin == format!("http://{host}"));
    if !is_loopback_host(host) || !(own_origin || request.method().is_safe()) {
        let refusal = HttpResponse::Forbidden().body("the inbox answers this machine only\n");
        return Ok(request.into_response(refusal).map_into_right_body());
    }
    Ok(next.call(request).await?.map_into_left_body())
}

/// Errors of reading the inbox.
#[derive(Debug, thiserror::Error)]
enum InboxError {
    #[error("there is no such message")]
    Unknown,
    #[error("the database cannot be reached")]
    Database(#[from] DbError),
}

impl actix_web::ResponseError for InboxError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::Database(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Database(error) = self {
            tracing::warn!(%error, "the inbox cannot be read");
        }
        HttpResponse::build(self.status_code()).json(serde_json::json!({ "message": self.to_string() }))
    }
}

impl From<tokio_postgres::Error> for InboxError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

#[derive(Deserialize)]
struct ListQuery {
    to: Option<String>,
    /// Most messages to answer, default 100.
    limit: Option<u16>,
}

async fn list(pool: Data<Pool>, query: Query<ListQuery>) -> Result<HttpResponse, InboxError> {
    let messages = queries::list(&pool, query.to.as_deref(), query.limit.unwrap_or(100)).await?;
    Ok(HttpResponse::Ok().json(messages))
}

async fn one(pool: Data<Pool>, id: Path<String>) -> Result<HttpResponse, InboxError> {
    Ok(HttpResponse::Ok().json(find(&pool, &id).await?))
}

async fn find(pool: &Pool, id: &str) -> Result<queries::Stored, InboxError> {
    let id = id.parse().map_err(|_| InboxError::Unknown)?;
    queries::find(pool, id).await?.ok_or(InboxError::Unknown)
}

async fn delete(pool: Data<Pool>) -> Result<HttpResponse, InboxError> {
    queries::delete(&pool, None, &[]).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn delete_and_show(pool: Data<Pool>) -> Result<HttpResponse, InboxError> {
    queries::delete(&pool, None, &[]).await?;
    Ok(HttpResponse::SeeOther().insert_header((header::LOCATION, "/")).finish())
}

#[derive(Deserialize)]
struct PageQuery {
    id: Option<String>,
    view: Option<String>,
}

async fn show(pool: Data<Pool>, query: Query<PageQuery>) -> Result<HttpResponse, InboxError> {
    let messages = queries::list(&pool, None, 200).await?;
    let shown = match &query.id {
        Some(id) => Some(find(&pool, id).await?),
        None => messages.first().cloned(),
    };
    if let Some(shown) = &shown {
        queries::mark_opened(&pool, shown).await?;
    }
    let view = page::View::parse(query.view.as_deref());
    let source = match &shown {
        Some(shown) if view == page::View::Source => queries::source(&pool, shown).await?,
        _ => None,
    };
    let text = page::render(&messages, shown.as_ref(), source.as_deref(), view, chrono::Local::now());
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(text))
}

/// The HTML part in a sandbox: no scripts, no forms, no access to the inbox; links open in a new tab.
async fn html_part(pool: Data<Pool>, id: Path<String>) -> Result<HttpResponse, InboxError> {
    let message = find(&pool, &id).await?;
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
             img-src http: https: data:; style-src 'unsafe-inline'; font-src data:",
        ))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(format!("<!doctype html><base target=\"_blank\">{}", message.html)))
}

async fn style() -> HttpResponse {
    HttpResponse::Ok().content_type("text/css; charset=utf-8").body(format!("{STYLE}{}", include_str!("inbox.css")))
}

async fn script() -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(include_str!("inbox.js"))
}
