//! Runs a request within its log context ([`super::context`]), so that every log line names it, and within a span if
//! spans are exported.

use std::pin::Pin;
use std::sync::Arc;
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

use super::context::{self, RequestContext};

/// Whether spans are exported. Otherwise none are created.
static EXPORTED: AtomicBool = AtomicBool::new(false);

/// Notes that spans are exported from now on.
pub fn exported() {
    EXPORTED.store(true, Ordering::Relaxed);
}

/// Middleware: answers within the context and the span of the request.
pub async fn in_span<B: MessageBody + Unpin + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let known = RequestContext::of(request.head());
    let span = if EXPORTED.load(Ordering::Relaxed) { span_of(&known) } else { Span::none() };
    let known = Some(Arc::new(known));
    let mut end = End::of(&span);
    let answering = next.call(request);
    let answer = match span.is_none() {
        true => context::within(known.clone(), answering).await,
        false => context::within(known.clone(), answering.instrument(span.clone())).await,
    };
    if let (Ok(response), Some(by)) = (&answer, known.as_ref().and_then(|known| known.refused_by())) {
        // For the door.
        response.request().extensions_mut().insert(by.clone());
    }
    match &answer {
        Ok(response) => end.answered(response.status(), || {
            let request = response.request();
            request.match_pattern().or_else(|| request.extensions().get::<Route>().map(|route| route.0.clone()))
        }),
        Err(error) => end.answered(error.as_response_error().status_code(), || None),
    }
    let response = answer?;
    Ok(response.map_body(|_, body| InSpan { body, known, span }))
}

/// At every log level, so that errors name their request.
fn span_of(known: &RequestContext) -> Span {
    tracing::error_span!(
        "request",
        id = known.id(),
        method = known.method(),
        path = known.path(),
        role = Empty,
        status = Empty,
        route = Empty,
        outcome = Empty,
        // OpenTelemetry's name for the status.
        http.response.status_code = Empty,
    )
}

/// Records the request's role.
pub fn acts_as(role: Arc<str>) {
    if EXPORTED.load(Ordering::Relaxed) {
        Span::current().record("role", &*role);
    }
    context::acts_as(role);
}

/// Notes how the request ended.
pub fn answered(status: u16) {
    context::answered(status);
    if EXPORTED.load(Ordering::Relaxed) {
        Span::current().record("status", status);
    }
}

/// The route of a request, matched by its API.
struct Route(String);

/// Sets the route of a request for its span, if actix's router has none.
pub fn routed(request: &HttpRequest, route: impl FnOnce() -> String) {
    if EXPORTED.load(Ordering::Relaxed) {
        request.extensions_mut().insert(Route(route()));
    }
}

/// Records the outcome of a request, `abandoned` if it is dropped before an answer.
struct End(Option<Span>);

impl End {
    fn of(span: &Span) -> Self {
        Self((!span.is_none()).then(|| span.clone()))
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

/// A body whose parts are made within the request's context and span.
struct InSpan<B> {
    body: B,
    known: Option<Arc<RequestContext>>,
    span: Span,
}

impl<B: MessageBody + Unpin> MessageBody for InSpan<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = &mut *self;
        let _working = context::enter(&mut this.known);
        let _entered = this.span.enter();
        Pin::new(&mut this.body).poll_next(cx)
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { body, known, span } = self;
        body.try_into_bytes().map_err(|body| Self { body, known, span })
    }
}
