//! Structured logs. `RUST_LOG` filters; `FERROBASE_LOG_FORMAT=json` writes one JSON object a line.

use tracing_subscriber::EnvFilter;

/// Installs the process-wide subscriber; a second call changes nothing (tests start many servers).
pub fn init(default_filter: &str, json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
}
