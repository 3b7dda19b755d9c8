//! Spans and log lines at an OpenTelemetry collector, and with a collector that never answers.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::cluster::{Database, Template};
use crate::support::ports::free_port;

/// How long a server that hangs may take.
const HANGS: Duration = Duration::from_secs(60);

/// `serve --only rest` on a database with one table.
struct Server {
    child: Child,
    base: String,
    _database: Database,
}

impl Server {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let database = Database::new(Template::Platform).await;
        let client = crate::support::cluster::connect(&database.url).await;
        client
            .batch_execute("create table notes (id int primary key); insert into notes values (7)")
            .await
            .expect("a table");
        let port = free_port().to_string();
        let child = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .args(["serve", "--only", "rest"])
            .env_clear()
            .envs([
                ("PGRST_DB_URI", database.url.as_str()),
                ("PGRST_DB_ANON_ROLE", "anon"),
                ("PGRST_DB_SCHEMAS", "public"),
                ("PGRST_SERVER_HOST", "127.0.0.1"),
                ("PGRST_SERVER_PORT", &port),
                // Both are delivered soon.
                ("OTEL_BSP_SCHEDULE_DELAY", "50"),
                ("OTEL_BLRP_SCHEDULE_DELAY", "50"),
            ])
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let server = Self { child, base: format!("http://127.0.0.1:{port}"), _database: database };
        // Until the schema is loaded, requests get 503.
        let ready = async {
            while !matches!(server.get("/notes", "waiting").await, Ok((200, _))) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(HANGS, ready).await.expect("the server answers");
        server
    }

    async fn get(&self, path: &str, id: &str) -> reqwest::Result<(u16, String)> {
        let request = reqwest::Client::new().get(format!("{}{path}", self.base)).header("x-request-id", id);
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Tells it to stop and waits for the end.
    async fn stop(mut self) -> bool {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id")).expect("a process id");
        kill_process(pid, Signal::TERM).expect("it runs");
        let ended = async {
            loop {
                match self.child.try_wait().expect("a child") {
                    Some(status) => return status.success(),
                    None => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        tokio::time::timeout(HANGS, ended).await.expect("the server ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A delivery: path, `api-key` header, body.
type Delivery = (String, String, Vec<u8>);

async fn take(request: HttpRequest, body: web::Bytes, send: web::Data<UnboundedSender<Delivery>>) -> HttpResponse {
    let key = request.headers().get("api-key").map_or("", |key| key.to_str().unwrap_or_default());
    let _ = send.send((request.path().to_owned(), key.to_owned(), body.to_vec()));
    HttpResponse::Ok().content_type("application/x-protobuf").finish()
}

/// A collector that accepts everything.
fn collector() -> (String, UnboundedReceiver<Delivery>) {
    let (send, received) = unbounded_channel();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("address"));
    let app = move || App::new().app_data(web::Data::new(send.clone())).default_service(web::to(take));
    let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).expect("listening").run();
    actix_web::rt::spawn(server);
    (base, received)
}

fn texts(attributes: &[KeyValue]) -> HashMap<&str, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        _ => None,
    };
    attributes.iter().filter_map(|attribute| Some((attribute.key.as_str(), text(attribute)?))).collect()
}

#[actix_web::test]
async fn spans_and_logs_with_request_attributes_reach_a_collector() {
    let (base, mut received) = collector();
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k%201"),
        ("OTEL_SERVICE_NAME", "the-test"),
    ];
    let server = Server::start(&settings).await;
    assert_eq!(server.get("/notes?select=id", "one-row").await.expect("answer").0, 200);
    assert_eq!(server.get("/nowhere", "no-table").await.expect("answer").0, 404);
    assert!(server.stop().await, "waiting spans and lines are sent before the process ends");

    let (mut spans, mut lines): (Vec<Span>, Vec<LogRecord>) = (Vec::new(), Vec::new());
    while let Ok((path, key, body)) = received.try_recv() {
        assert_eq!(key, "k 1");
        let resource = match path.as_str() {
            "/v1/traces" => {
                let sent = ExportTraceServiceRequest::decode(body.as_slice()).expect("OTLP");
                let resource = sent.resource_spans[0].resource.clone();
                spans.extend(sent.resource_spans.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans));
                resource
            }
            "/v1/logs" => {
                let sent = ExportLogsServiceRequest::decode(body.as_slice()).expect("OTLP");
                let resource = sent.resource_logs[0].resource.clone();
                lines.extend(sent.resource_logs.into_iter().flat_map(|r| r.scope_logs).flat_map(|s| s.log_records));
                resource
            }
            other => panic!("{other}"),
        };
        let resource = resource.expect("a resource");
        assert_eq!(texts(&resource.attributes).get("service.name").map(String::as_str), Some("the-test"));
    }
    for (id, path, outcome, status) in [("one-row", "/notes", "ok", "200"), ("no-table", "/nowhere", "refused", "404")]
    {
        let span = spans.iter().find(|span| texts(&span.attributes).get("id").is_some_and(|given| given == id));
        let span = span.unwrap_or_else(|| panic!("no span of {id} in {spans:#?}"));
        let fields = texts(&span.attributes);
        for (field, expected) in [
            ("method", "GET"),
            ("path", path),
            ("role", "anon"),
            ("outcome", outcome),
            ("http.response.status_code", status),
        ] {
            assert_eq!(fields.get(field).map(String::as_str), Some(expected), "{id} {field}");
        }
        assert_eq!(fields.get("route").map(String::as_str), Some("/{relation}"));
        assert_eq!((span.name.as_str(), span.kind()), ("GET /{relation}", SpanKind::Server));
    }
    assert!(!lines.is_empty(), "the log is delivered too");
    assert!(lines.iter().all(|line| line.body.is_some()), "{lines:#?}");
}

#[actix_web::test]
async fn a_hanging_collector_delays_neither_requests_nor_shutdown() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("address"));
    // Accepts connections, but neither reads nor answers.
    let (tell, mut told) = unbounded_channel();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
            let _ = tell.send(());
        }
    });
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str()),
        // Some data of each request is dropped, and no request waits for room in the queue.
        ("OTEL_BSP_MAX_QUEUE_SIZE", "2"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
    ];
    let server = Server::start(&settings).await;
    tokio::time::timeout(HANGS, told.recv()).await.expect("a delivery is tried").expect("the listener lives");
    let requests = async {
        for number in 0..100 {
            assert_eq!(server.get("/notes", &number.to_string()).await.expect("answer").0, 200);
        }
    };
    tokio::time::timeout(HANGS, requests).await.expect("every request is answered");
    assert!(server.stop().await, "the server ends in good order");
}
