//! The actix handlers.

use std::sync::Arc;
use std::time::Instant;

use actix_web::body::SizedStream;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;

use super::access_log;
use super::authenticate::bearer_token;
use super::body;
use super::cors;
use super::error::{ApiError, Limit};
use super::execute::{self, Caller, LongBody};
use super::live::Settings;
use super::plan::{self, DatabasePlan, Plan, PlanRules};
use super::request::{self, RawRequest, RequestRules};
use super::response::{self, Response};
use super::state::{COMPATIBLE_VERSION, Rest};
use super::streaming;
use crate::config::RestConfig;
use crate::config::rest::OpenApiMode;
use crate::http::client::{client_address, network};
use crate::http::span;

/// The maximum length of path and query together, in bytes; the HTTP library accepts at most 65,534.
pub const MAX_URL: usize = 60_000;

/// Mounts the API at the root or, inside a scope, under its prefix (the state knows which).
pub fn configure(service: &mut ServiceConfig) {
    service.default_service(web::route().to(handle));
}

/// How long each stage took, in milliseconds. The clock is read only if this is enabled.
struct Timing {
    wanted: bool,
    stages: Vec<(&'static str, f64)>,
}

impl Timing {
    fn new(wanted: bool) -> Self {
        Self { wanted, stages: Vec::new() }
    }

    fn start(&self) -> Option<Instant> {
        self.wanted.then(Instant::now)
    }

    fn measure<T>(&mut self, stage: &'static str, work: impl FnOnce() -> T) -> T {
        let started = self.start();
        let result = work();
        self.note(stage, started);
        result
    }

    fn note(&mut self, stage: &'static str, started: Option<Instant>) {
        self.stages.extend(started.map(|started| (stage, started.elapsed().as_secs_f64() * 1000.0)));
    }

    fn header(&self) -> String {
        let stages: Vec<String> = self.stages.iter().map(|(stage, ms)| format!("{stage};dur={ms:.1}")).collect();
        stages.join(", ")
    }
}

/// The route of a path below `mount`, for the request's span.
fn route_of(mount: &str, path: &str) -> String {
    let target = path.strip_prefix(mount).unwrap_or(path).trim_start_matches('/');
    let route = match target {
        "" => "",
        _ if target.starts_with("rpc/") => "rpc/{function}",
        _ => "{relation}",
    };
    format!("{mount}/{route}")
}

/// Boxed at once: otherwise actix would build this large future elsewhere and copy it.
async fn handle(request: HttpRequest, body: web::Payload, rest: Data<Rest>) -> HttpResponse {
    Box::pin(answered(request, body, rest)).await
}

async fn answered(request: HttpRequest, body: web::Payload, rest: Data<Rest>) -> HttpResponse {
    span::routed(&request, || route_of(&rest.mount, request.path()));
    let settings = rest.live.settings();
    let config = &settings.config;
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let asked = cors::Asked {
        method: request.method().as_str(),
        origin: header(header::ORIGIN),
        request_method: header(header::ACCESS_CONTROL_REQUEST_METHOD),
        request_headers: header(header::ACCESS_CONTROL_REQUEST_HEADERS),
    };
    let for_browsers = match cors::judge(asked, &config.cors_allowed_origins) {
        cors::Verdict::Preflight(headers) => {
            return send(Response::new(200), headers, &request, config, false);
        }
        cors::Verdict::Actual(headers) => headers,
    };
    let mut acting = None;
    let answer = match answer(&request, body, &rest, &settings, &mut acting).await {
        Ok(answer) => answer,
        Err(error) => Response::from_error(&error, !config.verbose_errors),
    };
    let (status, length) = (answer.status, (!answer.headers_only).then_some(answer.body.len()));
    let sent = send(answer, for_browsers, &request, config, rest.live.cache().is_none());
    // The full server has an access log of its own.
    if rest.mount.is_empty() && access_log::is_logged(config.log_level, status) {
        access_log::write(&request, &access_log::Answered { status, length, role: acting.as_deref() });
    }
    sent
}

/// Headers on which the statement of a read depends.
const SELECTING: [&str; 4] = ["accept", "accept-profile", "prefer", "range"];

/// `acting` receives the request's role, for the log.
async fn answer(
    request: &HttpRequest,
    body: web::Payload,
    rest: &Rest,
    settings: &Settings,
    acting: &mut Option<Arc<str>>,
) -> Result<Response, ApiError> {
    let config = &settings.config;
    let mut timing = Timing::new(config.server_timing);
    let authorization = request.headers().get(header::AUTHORIZATION).map(|value| request::lossy(value.as_bytes()));
    let identity = timing.measure("jwt", || {
        let token = authorization.as_deref().and_then(bearer_token);
        settings.authenticator.authenticate(token).map_err(ApiError::Token)
    })?;
    span::acts_as(identity.role.clone());
    *acting = Some(identity.role.clone());
    let client = client_address(request, &config.trusted_proxies).map(network);
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let target = is_read.then(|| {
        let headers = SELECTING.iter().filter_map(|name| request.headers().get(*name)).map(HeaderValue::as_bytes);
        let further = std::iter::once(request.method().as_str().as_bytes()).chain(headers);
        rest.costs.target(request.path(), request.query_string(), further)
    });
    let caller = Caller { identity: &identity, client, target };
    execute::admit(rest, settings, &caller).await?;
    let cache = rest.cache().ok_or(ApiError::NoSchemaCache)?;
    let mut raw = raw_request(request, &rest.mount)?;
    let rules = RequestRules {
        schemas: &config.schemas,
        root_function: config.root_spec.as_ref().map(|function| function.name.as_str()),
        root_disabled: config.openapi.mode == OpenApiMode::Disabled,
        tx_override: config.tx_end.allow_override,
    };
    raw.body = body::read(request, body, &raw, &rules, rest, &identity).await?;
    let parsed = timing.measure("parse", || request::parse(&raw, &rules))?;
    let plan_rules = PlanRules {
        max_rows: config.max_rows,
        aggregates: config.aggregates,
        legacy_target_names: config.legacy_target_names,
        plan_enabled: config.plan_enabled,
        limit: config.limits.of(settings.is_anon(&identity.role)),
    };
    let planned = timing.measure("plan", || plan::plan(&parsed, &cache, &plan_rules))?;
    let mut answer = match planned {
        Plan::Info { allow } => {
            timing.measure("transaction", || ());
            timing.measure("response", || response::info(&allow))
        }
        Plan::Document { head } => {
            let started = timing.start();
            let offer = Box::pin(execute::inspect(rest.live.pool(), settings, &identity, &parsed, &cache)).await?;
            timing.note("transaction", started);
            timing.measure("response", || response::document(&parsed, &offer, &cache, config, head))
        }
        Plan::Database(plan) => {
            let started = timing.start();
            let outcome = execute::execute(rest, settings, &caller, &parsed, &plan, &cache).await;
            timing.note("transaction", started);
            let answered = outcome.and_then(|outcome| {
                timing.measure("response", || response::respond(&parsed, &plan, outcome, !config.verbose_errors))
            });
            if config.log_query {
                let status = answered.as_ref().map_or_else(ApiError::status, |answer| answer.status);
                if access_log::is_logged(config.log_level, status) {
                    access_log::write_query(&execute::main_text(&parsed, &plan, config.max_rows));
                }
            }
            with_warning(answered?, &plan)
        }
    };
    if config.server_timing {
        answer.headers.push(("Server-Timing".to_owned(), timing.header()));
    }
    if !answer.has_header("vary") {
        answer.headers.push(("Vary".to_owned(), "Accept, Prefer, Range".to_owned()));
    }
    Ok(answer)
}

/// Warns clients that still address an aliased embed by its relation's name.
fn with_warning(mut answer: Response, plan: &DatabasePlan) -> Response {
    let references = plan::legacy_references(&plan.read);
    if !references.is_empty() {
        let changes: Vec<String> = references.iter().map(|(name, alias)| format!("`{name}` to `{alias}`")).collect();
        let text = format!(
            "299 PostgRESTv{COMPATIBLE_VERSION} \"Embedded resource was referenced by relation name even though it \
             has an alias. This is deprecated and will stop working in a future release. Update {} in query string \
             filters, orders or limits.\"",
            changes.join(", ")
        );
        answer.headers.push(("Warning".to_owned(), text));
    }
    answer
}

/// All but the body.
fn raw_request<'a>(request: &'a HttpRequest, mount: &str) -> Result<RawRequest<'a>, ApiError> {
    let uri = request.uri();
    let path = uri.path().strip_prefix(mount).unwrap_or(uri.path());
    let query = uri.query().unwrap_or_default();
    if path.len() + query.len() > MAX_URL {
        return Err(ApiError::TooLarge(Limit::Url));
    }
    let headers = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let path = if path.is_empty() { "/" } else { path };
    Ok(RawRequest { method: request.method().as_str(), path, query, headers, body: Bytes::new() })
}

fn send(
    answer: Response,
    for_browsers: cors::Headers,
    request: &HttpRequest,
    config: &RestConfig,
    cache_is_missing: bool,
) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut builder = HttpResponse::build(status);
    match answer.reason.as_deref().and_then(reason_phrase) {
        Some(reason) => drop(builder.reason(reason)),
        // An unknown status has no reason phrase.
        None if status.canonical_reason().is_none() => drop(builder.reason("")),
        None => {}
    }
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), header_value(value)) {
            builder.append_header((name, value));
        }
    }
    for (name, value) in for_browsers {
        builder.append_header((name, value));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE && !answer.has_header("retry-after") {
        builder.insert_header(("Retry-After", if cache_is_missing { "1" } else { "0" }));
    }
    if let Some(name) = &config.trace_header {
        let value = request.headers().get(name.as_str()).cloned().unwrap_or_else(|| HeaderValue::from_static(""));
        if let Ok(name) = HeaderName::try_from(name.as_str()) {
            builder.insert_header((name, value));
        }
    }
    if let Some(LongBody { spool, length }) = answer.long {
        let pieces = futures_util::stream::unfold(spool, |mut spool| async move {
            let piece = spool.next().await?;
            Some((piece, spool))
        });
        let pieces = streaming::pieces(Box::pin(pieces), streaming::UNREAD_TIMEOUT);
        match length {
            Some(length) => builder.body(SizedStream::new(length, pieces)),
            None => builder.streaming(pieces),
        }
    } else if answer.headers_only {
        // Not an empty body, which would have a `Content-Length`.
        builder.body(actix_web::body::None::new()).map_into_boxed_body()
    } else if status == StatusCode::NO_CONTENT {
        builder.finish()
    } else {
        builder.body(answer.body)
    }
}

/// A header's bytes; text beyond ASCII goes out as UTF-8.
fn header_value(text: &str) -> Result<HeaderValue, actix_web::http::header::InvalidHeaderValue> {
    HeaderValue::from_bytes(text.as_bytes())
}

/// A reason phrase chosen by SQL. The HTTP library requires a `'static` text, so phrases are never freed:
/// only plain text up to a length, and only the first few distinct ones, are accepted.
fn reason_phrase(text: &str) -> Option<&'static str> {
    use parking_lot::Mutex;
    use std::collections::HashSet;
    const MOST: usize = 256;
    const LONGEST: usize = 200;
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let plain = text.len() <= LONGEST && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if !plain || text.is_empty() {
        return None;
    }
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_with(HashSet::new);
    if let Some(found) = known.get(text) {
        return Some(found);
    }
    if known.len() >= MOST {
        return None;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(kept);
    Some(kept)
}
