//! The format of log lines: time, level, request, message.

use std::fmt;

use serde_json::json;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::Format;
use crate::http::context::{self, RequestContext};

/// Writes a line per event, with its request.
pub struct Lines(pub Format);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = *event.metadata().level();
        match self.0 {
            Format::Text => {
                write_head(&mut writer, level)?;
                if let Some(request) = context::current() {
                    write_request(&mut writer, &request)?;
                }
                context.format_fields(writer.by_ref(), event)?;
            }
            Format::Json => {
                let (mut time, mut fields) = (String::new(), String::new());
                SystemTime.format_time(&mut Writer::new(&mut time))?;
                context.format_fields(Writer::new(&mut fields), event)?;
                write!(writer, r#"{{"timestamp":{},"level":"{level}","fields":{fields}"#, json!(time))?;
                if let Some(request) = context::current() {
                    write!(writer, r#","request":{}"#, fields_of(&request))?;
                }
                writer.write_char('}')?;
            }
        }
        writeln!(writer)
    }
}

fn write_head(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    if !writer.has_ansi_escapes() {
        SystemTime.format_time(writer)?;
        return write!(writer, " {level:>5} ");
    }
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    writer.write_str("\x1b[2m")?;
    SystemTime.format_time(writer)?;
    write!(writer, "\x1b[0m \x1b[{colour}m{level:>5}\x1b[0m ")
}

/// `request{id="…" method="GET" path="/…" role="…" status=200}: `
fn write_request(writer: &mut Writer<'_>, request: &RequestContext) -> fmt::Result {
    let (id, method, path) = (request.id(), request.method(), request.path());
    write!(writer, "request{{id={id:?} method={method:?} path={path:?}")?;
    if let Some(role) = request.role() {
        write!(writer, " role={role:?}")?;
    }
    if let Some(status) = request.status() {
        write!(writer, " status={status}")?;
    }
    writer.write_str("}: ")
}

fn fields_of(request: &RequestContext) -> serde_json::Value {
    let mut fields = json!({ "id": request.id(), "method": request.method(), "path": request.path() });
    if let Some(role) = request.role() {
        fields["role"] = json!(role);
    }
    if let Some(status) = request.status() {
        fields["status"] = json!(status);
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use actix_web::test::TestRequest;
    use parking_lot::Mutex;
    use tracing_subscriber::fmt::format::{DefaultFields, JsonFields};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::http::request_id::HEADER;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of an event inside and one outside of a request, without the time.
    fn written(format: Format) -> Vec<String> {
        let out = Written::default();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false);
        let writer = out.clone();
        let subscriber: Box<dyn Subscriber + Send + Sync> = match format {
            Format::Text => Box::new(tracing_subscriber::registry().with(
                layer.fmt_fields(DefaultFields::new()).event_format(Lines(format)).with_writer(move || writer.clone()),
            )),
            Format::Json => Box::new(tracing_subscriber::registry().with(
                layer.fmt_fields(JsonFields::new()).event_format(Lines(format)).with_writer(move || writer.clone()),
            )),
        };
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!("outside");
            let request = TestRequest::with_uri("/a?token=t").insert_header((HEADER, "r-1")).to_http_request();
            let mut known = Some(Arc::new(RequestContext::of(request.head())));
            let _entered = context::enter(&mut known);
            context::acts_as("an\non".into());
            context::answered(200);
            tracing::info!(ms = 5, "request answered");
        });
        let text = String::from_utf8(out.0.lock().clone()).expect("text");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_of_text_names_its_request_and_stays_one_line() {
        let lines = written(Format::Text);
        assert!(lines[0].ends_with("  WARN outside"), "{}", lines[0]);
        let expected =
            r#"  INFO request{id="r-1" method="GET" path="/a" role="an\non" status=200}: request answered ms=5"#;
        assert!(lines[1].ends_with(expected), "{}", lines[1]);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_line_of_json_is_an_object() {
        let lines: Vec<serde_json::Value> =
            written(Format::Json).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines[0]["fields"], json!({ "message": "outside" }));
        assert_eq!(lines[1]["level"], "INFO");
        assert_eq!(lines[1]["fields"], json!({ "message": "request answered", "ms": 5 }));
        let request = json!({ "id": "r-1", "method": "GET", "path": "/a", "role": "an\non", "status": 200 });
        assert_eq!(lines[1]["request"], request);
    }
}
