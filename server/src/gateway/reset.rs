//! `POST /ferrobase/v1/reset`: resets a copy of a project to its seed between two tests. Requests wait meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::http::header::AUTHORIZATION;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::future::LocalBoxFuture;
use serde_json::json;
use tokio::sync::{Mutex, watch};

use super::{APIKEY, ApiKeys};

/// The path of the reset.
pub const RESET: &str = "/ferrobase/v1/reset";

/// How long requests in flight may take to end; then they lose their connections.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

type Work = Box<dyn Fn() -> LocalBoxFuture<'static, anyhow::Result<()>> + Send + Sync>;

/// The reset, and the gate that holds back requests. Cheap to clone.
#[derive(Clone)]
pub struct Reset {
    inner: Arc<Inner>,
}

struct Inner {
    work: Work,
    /// One reset at a time.
    turn: Mutex<()>,
    is_closed: watch::Sender<bool>,
    inside: AtomicUsize,
}

/// A request in flight.
pub struct Inside(Reset);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inner.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Closed<'a>(&'a Inner);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.is_closed.send_replace(false);
    }
}

impl Reset {
    pub fn new(work: Work) -> Self {
        let inner = Inner { work, turn: Mutex::default(), is_closed: watch::Sender::new(false), inside: 0.into() };
        Self { inner: Arc::new(inner) }
    }

    /// Waits for the end of a reset. While the value is held, a reset waits for it, up to [`DRAIN_TIMEOUT`].
    pub async fn enter(&self) -> Inside {
        let mut is_closed = self.inner.is_closed.subscribe();
        loop {
            // Counted first, so that a reset that begins now sees it.
            self.inner.inside.fetch_add(1, Ordering::AcqRel);
            let inside = Inside(self.clone());
            if !*is_closed.borrow_and_update() {
                return inside;
            }
            drop(inside);
            // We own the sender.
            let _ = is_closed.wait_for(|is_closed| !is_closed).await;
        }
    }

    async fn run(&self) -> anyhow::Result<()> {
        let inner = &self.inner;
        let _turn = inner.turn.lock().await;
        inner.is_closed.send_replace(true);
        let _closed = Closed(inner);
        let empty = async {
            while inner.inside.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, empty).await;
        (inner.work)().await
    }
}

/// 204 once everything is as after a fresh start. Requires the service_role key.
pub async fn reset(request: HttpRequest, reset: web::Data<Reset>, keys: web::Data<ApiKeys>) -> HttpResponse {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let bearer = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    if ![header(APIKEY), bearer].into_iter().flatten().any(|key| keys.is_of_service(key)) {
        return HttpResponse::Unauthorized()
            .json(json!({ "message": "a reset requires the secret or service_role key" }));
    }
    let reset = reset.get_ref().clone();
    // In a separate task, so that a client that hangs up does not interrupt it.
    match actix_web::rt::spawn(async move { reset.run().await }).await {
        Ok(Ok(())) => HttpResponse::NoContent().finish(),
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error.into()),
    }
}

fn failed(error: &anyhow::Error) -> HttpResponse {
    tracing::error!(error = format!("{error:#}"), "the project could not be reset");
    HttpResponse::InternalServerError().json(json!({ "message": format!("the reset failed: {error:#}") }))
}
