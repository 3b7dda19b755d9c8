//! A span per request: every line that is written on its behalf, in whatever room, carries its id, method, path and
//! role, and the last one its status.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest};
use bytes::Bytes;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::request_id::{RequestId, request_id};

/// Whether spans are exported. Fields that only exports need are not recorded otherwise.
static EXPORTED: AtomicBool = AtomicBool::new(false);

/// Notes that spans are exported from now on.
pub fn exported() {
    EXPORTED.store(true, Ordering::Relaxed);
}

/// Middleware: answers within a span of the request. The path comes without its query, which may hold tokens.
///
/// The span is there at every log level, so that an error says whose it was.
pub async fn in_span<B: MessageBody + Unpin + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let id = request_id(request.headers());
    let span = tracing::error_span!(
        "request",
        id,
        method = request.method().as_str(),
        path = request.path(),
        role = Empty,
        status = Empty,
        route = Empty,
        outcome = Empty,
        // The status under OpenTelemetry's name.
        http.response.status_code = Empty,
    );
    request.extensions_mut().insert(RequestId(id));
    let mut end = End::of(&span);
    let answer = next.call(request).instrument(span.clone()).await;
    match &answer {
        Ok(response) => end.answered(response.status(), || {
            let request = response.request();
            request.match_pattern().or_else(|| request.extensions().get::<Route>().map(|route| route.0.clone()))
        }),
        Err(error) => end.answered(error.as_response_error().status_code(), || None),
    }
    let response = answer?;
    Ok(response.map_body(|_, body| InSpan { body, span }))
}

/// Notes in the request's span who it acts as.
pub fn acts_as(role: &str) {
    Span::current().record("role", role);
}

/// Notes in the request's span how it ended.
pub fn answered(status: u16) {
    Span::current().record("status", status);
}

/// The route of a request that its API has matched itself.
struct Route(String);

/// Names the route of a request for its span, where actix's router knows none.
pub fn routed(request: &HttpRequest, route: impl FnOnce() -> String) {
    if EXPORTED.load(Ordering::Relaxed) {
        request.extensions_mut().insert(Route(route()));
    }
}

/// Records the outcome of a request, `abandoned` if it is dropped before an answer.
struct End(Option<Span>);

impl End {
    /// Records nothing unless spans are exported.
    fn of(span: &Span) -> Self {
        Self(EXPORTED.load(Ordering::Relaxed).then(|| span.clone()))
    }

    fn answered(&mut self, status: StatusCode, route: impl FnOnce() -> Option<String>) {
        let Some(span) = self.0.take() else { return };
        span.record("http.response.status_code", status.as_u16());
        span.record(
            "outcome",
            match status.as_u16() {
                ..400 => "ok",
                400..500 => "refused",
                _ => "failed",
            },
        );
        if let Some(route) = route() {
            span.record("route", route.as_str());
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(span) = &self.0 {
            span.record("outcome", "abandoned");
        }
    }
}

/// A body whose parts are made within the request's span.
struct InSpan<B> {
    body: B,
    span: Span,
}

impl<B: MessageBody + Unpin> MessageBody for InSpan<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = &mut *self;
        let _entered = this.span.enter();
        Pin::new(&mut this.body).poll_next(cx)
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { body, span } = self;
        body.try_into_bytes().map_err(|body| Self { body, span })
    }
}
