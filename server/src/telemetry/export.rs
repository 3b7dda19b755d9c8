//! Exports spans and log lines to a collector by OTLP over HTTP.
//!
//! A slow collector cannot delay requests: spans and lines go into bounded queues, which drop what does not fit, and separate
//! threads deliver them with a timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanKind, Status, TracerProvider as _};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{LogExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::Otlp;
use crate::http::span;
use crate::outgoing;

/// How long a stopping process waits for the last delivery of each signal.
const LAST_DELIVERY: Duration = Duration::from_millis(500);

/// The interval between warnings about failed deliveries, in seconds.
const TOLD_EVERY: u64 = 60;

/// The maximum size of a collector's answer.
const MOST_ANSWER: usize = 64 * 1024;

/// The running exporters.
pub struct Export {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
}

impl Export {
    /// Starts the exporters and returns the layer that feeds them.
    pub fn start<S>(otlp: &Otlp) -> anyhow::Result<(Self, Box<dyn Layer<S> + Send + Sync>)>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let client: Arc<dyn HttpClient> = Arc::new(Client::new(otlp.timeout)?);
        let resource = Resource::builder().with_service_name(otlp.service_name.clone()).build();
        let mut layers: Vec<Box<dyn Layer<S> + Send + Sync>> = Vec::new();
        let mut traces = None;
        if let Some(url) = &otlp.traces {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_shared_http_client(Arc::clone(&client))
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(url)
                .with_headers(otlp.headers.clone())
                .with_timeout(otlp.timeout)
                .build()?;
            let provider = SdkTracerProvider::builder()
                .with_resource(resource.clone())
                .with_batch_exporter(Requests(exporter))
                .build();
            let layer = tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("ferrobase"))
                .with_location(false)
                .with_threads(false)
                .with_tracked_inactivity(false);
            // Events are exported as log lines.
            layers.push(layer.with_filter(filter_fn(|metadata| metadata.is_span() && is_ours(metadata))).boxed());
            traces = Some(provider);
            span::exported();
        }
        let mut logs = None;
        if let Some(url) = &otlp.logs {
            let exporter = LogExporter::builder()
                .with_http()
                .with_shared_http_client(client)
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(url)
                .with_headers(otlp.headers.clone())
                .with_timeout(otlp.timeout)
                .build()?;
            let provider = SdkLoggerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
            layers.push(OpenTelemetryTracingBridge::new(&provider).with_filter(filter_fn(is_ours)).boxed());
            logs = Some(provider);
        }
        Ok((Self { traces, logs }, layers.boxed()))
    }

    /// Delivers what is queued, within [`LAST_DELIVERY`] per signal.
    pub fn close(self) {
        if let Some(traces) = self.traces {
            let _ = traces.shutdown_with_timeout(LAST_DELIVERY);
        }
        if let Some(logs) = self.logs {
            let _ = logs.shutdown_with_timeout(LAST_DELIVERY);
        }
    }
}

/// An exporter that gives the spans of requests the name, kind and status of OpenTelemetry's conventions. These are known only when a
/// span ends, and cannot be changed before it is exported.
#[derive(Debug)]
struct Requests(SpanExporter);

impl opentelemetry_sdk::trace::SpanExporter for Requests {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(describe);
        self.0.export(batch).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// Describes a request's span by its fields (`http::span`).
fn describe(span: &mut SpanData) {
    let field = |key: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
        found.map(|attribute| attribute.value.as_str().into_owned())
    };
    let (method, route, outcome) = (field("method"), field("route"), field("outcome"));
    let Some(method) = method.filter(|_| span.name == "request") else { return };
    // Without a route, a name per path would be too many.
    span.name = route.map_or_else(|| method.clone(), |route| format!("{method} {route}")).into();
    span.span_kind = SpanKind::Server;
    if outcome.as_deref() == Some("failed") {
        span.status = Status::error("");
    }
}

/// Whether to export it. The log lines of a delivery would cause the next delivery, without end.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    !["opentelemetry", "hyper", "reqwest", "rustls", module_path!()].iter().any(|other| target.starts_with(other))
}

/// Sends requests of the exporters, whose threads have no async runtime.
#[derive(Debug)]
struct Client {
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    /// When the last warning was logged, in seconds since 1970.
    told: AtomicU64,
}

impl Client {
    fn new(timeout: Duration) -> anyhow::Result<Self> {
        let http = outgoing::client().timeout(timeout).redirect(reqwest::redirect::Policy::none()).build()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("telemetry")
            .enable_all()
            .build()?;
        Ok(Self { http, runtime, told: AtomicU64::new(0) })
    }

    fn tell(&self, reason: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let told = self.told.load(Ordering::Relaxed);
        if now >= told + TOLD_EVERY
            && self.told.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!(reason, "traces and logs do not reach the collector");
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        let sent = self.runtime.spawn(async move { send(&http, request).await }).await;
        let outcome = sent.map_err(HttpError::from).and_then(|outcome| outcome);
        match &outcome {
            Ok(response) if !response.status().is_success() => self.tell(response.status().as_str()),
            Ok(_) => {}
            Err(error) => self.tell(&error.to_string()),
        }
        outcome
    }
}

async fn send(http: &reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let mut answer = http.execute(request.try_into()?).await?;
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        *headers = std::mem::take(answer.headers_mut());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > MOST_ANSWER {
            return Err("the collector's answer is too long".into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(response.body(body.into())?)
}
