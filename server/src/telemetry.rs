//! Structured logs. `RUST_LOG` filters; `FERROBASE_LOG_FORMAT=json` writes one JSON object a line.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::Reader;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people; in colour on a terminal.
    #[default]
    Text,
    Json,
}

impl Format {
    /// `FERROBASE_LOG_FORMAT`: `text` (default) or `json`.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        match reader.find(&["FERROBASE_LOG_FORMAT"]) {
            None | Some((_, "text")) => Self::Text,
            Some((_, "json")) => Self::Json,
            Some(_) => {
                reader.problem("FERROBASE_LOG_FORMAT must be text or json");
                Self::Text
            }
        }
    }
}

/// Installs the process-wide subscriber; a second call changes nothing (tests start many servers).
pub fn init(default_filter: &str, format: Format) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let _ = match format {
        Format::Json => builder.json().try_init(),
        // A file or a log collector wants no escape sequences.
        Format::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
}
