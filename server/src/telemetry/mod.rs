//! Structured logs, and the export of spans and logs to an OpenTelemetry collector.
//!
//! `RUST_LOG` filters by level and target; `FERROBASE_LOG_FORMAT=json` writes one JSON object a line; `OTEL_EXPORTER_OTLP_ENDPOINT` names the
//! collector.

#[cfg(feature = "otel")]
mod export;
mod lines;
mod otlp;

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::{Layered, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::config::Reader;
pub use lines::Lines;
pub use otlp::Otlp;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people; in colour on a terminal.
    #[default]
    Text,
    Json,
}

/// Settings of logs and export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub format: Format,
    /// The collector, if there is one.
    pub otlp: Option<Otlp>,
}

impl Settings {
    /// `FERROBASE_LOG_FORMAT`: `text` (default) or `json`; the collector's are OpenTelemetry's own ([`Otlp::read`]).
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let format = match reader.find(&["FERROBASE_LOG_FORMAT"]) {
            None | Some((_, "text")) => Format::Text,
            Some((_, "json")) => Format::Json,
            Some(_) => {
                reader.problem("FERROBASE_LOG_FORMAT must be text or json");
                Format::Text
            }
        };
        Self { format, otlp: Otlp::read(reader) }
    }
}

/// The running telemetry. [`close`](Self::close) delivers queued spans and logs.
#[must_use = "queued spans and logs are lost without `close`"]
#[derive(Default)]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    export: Option<export::Export>,
}

impl Telemetry {
    /// Delivers what is queued, within a second. A collector that hangs does not keep the process from ending.
    pub fn close(self) {
        #[cfg(feature = "otel")]
        if let Some(export) = self.export {
            export.close();
        }
    }
}

/// The subscriber below all layers, filtered by level and target.
type Filtered = Layered<Targets, Registry>;

/// Reads a level, or levels by target: `warn,ferrobase_rest=debug`. `EnvFilter` would also filter by spans and their fields, which
/// takes regular expressions to parse.
fn filter(text: &str) -> Option<Targets> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(",").parse().ok()).flatten()
}

/// Installs the process-wide subscriber; a second call changes nothing (tests start many servers).
pub fn init(default_filter: &str, settings: &Settings) -> Telemetry {
    let set = std::env::var("RUST_LOG").ok().and_then(|text| filter(&text));
    let filter = set.or_else(|| filter(default_filter)).unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).event_format(Lines(settings.format));
    let lines: Box<dyn Layer<Filtered> + Send + Sync> = match settings.format {
        Format::Json => lines.fmt_fields(JsonFields::new()).with_ansi(false).boxed(),
        // No escape sequences in files and log collectors.
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
    };
    let telemetry = Telemetry::default();
    #[cfg(feature = "otel")]
    let (telemetry, lines) = match settings.otlp.as_ref().map(export::Export::start) {
        Some(Ok((export, layers))) => (Telemetry { export: Some(export) }, lines.and_then(layers).boxed()),
        Some(Err(error)) => {
            // Logging is not set up yet.
            eprintln!("ferrobase: no traces are delivered: {error}");
            (telemetry, lines)
        }
        None => (telemetry, lines),
    };
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    #[cfg(not(feature = "otel"))]
    if settings.otlp.is_some() {
        tracing::warn!(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and this build has no OpenTelemetry: a release has (`just build`)"
        );
    }
    telemetry
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::filter;

    #[test]
    fn levels_are_set_for_all_or_by_target() {
        let one = filter("warn, ferrobase_rest=debug,").expect("a filter");
        assert!(one.would_enable("ferrobase_auth::door", &Level::WARN));
        assert!(!one.would_enable("ferrobase_auth::door", &Level::INFO));
        assert!(one.would_enable("ferrobase_rest::plan", &Level::DEBUG));
        assert!(filter("off").is_some_and(|filter| !filter.would_enable("ferrobase", &Level::ERROR)));
        for text in ["", " , ", "ferrobase=loud", "a=b=c"] {
            assert!(filter(text).is_none(), "{text}");
        }
    }
}
