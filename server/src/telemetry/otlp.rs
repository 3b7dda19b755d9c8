//! Settings of the OpenTelemetry collector, with OpenTelemetry's own variable names.

use std::collections::HashMap;
use std::time::Duration;

use crate::config::Reader;

/// A collector that takes OTLP over HTTP, in protobuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The URL for spans; `None` to export none.
    pub traces: Option<String>,
    /// The URL for log lines; `None` to export none.
    pub logs: Option<String>,
    /// Headers of each request, such as an API key.
    pub headers: HashMap<String, String>,
    /// The timeout of a request.
    pub timeout: Duration,
    pub service_name: String,
}

impl Otlp {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, to which `/v1/traces` and `/v1/logs` are added; `…_TRACES_ENDPOINT` and `…_LOGS_ENDPOINT`,
    /// taken as they are; `OTEL_TRACES_EXPORTER` and `OTEL_LOGS_EXPORTER` (`otlp` or `none`); `OTEL_EXPORTER_OTLP_HEADERS`,
    /// `_TIMEOUT` (milliseconds, default 10000) and `_PROTOCOL` (only `http/protobuf`); `OTEL_SERVICE_NAME` (default `ferrobase`);
    /// `OTEL_SDK_DISABLED`. `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*` and `OTEL_BLRP_*` are read from the
    /// environment by OpenTelemetry's library.
    ///
    /// `None` without an endpoint.
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let is_disabled = reader.flag(&["OTEL_SDK_DISABLED"], false);
        let traces = signal(reader, "/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER");
        let logs = signal(reader, "/v1/logs", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_LOGS_EXPORTER");
        let headers = headers(reader);
        let what = "a number of milliseconds";
        let timeout =
            reader.parse(&["OTEL_EXPORTER_OTLP_TIMEOUT"], what).map_or(Duration::from_secs(10), Duration::from_millis);
        let service_name = reader.text_or(&["OTEL_SERVICE_NAME"], "ferrobase");
        if is_disabled || (traces.is_none() && logs.is_none()) {
            return None;
        }
        if reader.find(&["OTEL_EXPORTER_OTLP_PROTOCOL"]).is_some_and(|(_, protocol)| protocol != "http/protobuf") {
            reader.problem("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf: no other protocol is supported");
        }
        Some(Self { traces, logs, headers, timeout, service_name })
    }
}

/// The URL of one signal.
fn signal(reader: &mut Reader<'_>, path: &str, endpoint: &'static str, exporter: &'static str) -> Option<String> {
    match reader.find(&[exporter]) {
        None | Some((_, "otlp")) => {}
        Some((_, "none")) => return None,
        Some(_) => reader.problem(format!("{exporter} must be otlp or none")),
    }
    let (name, url) = match reader.find(&[endpoint]) {
        Some((name, url)) => (name, url.to_owned()),
        None => {
            let (name, base) = reader.find(&["OTEL_EXPORTER_OTLP_ENDPOINT"])?;
            (name, format!("{}{path}", base.trim_end_matches('/')))
        }
    };
    if !url::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
        reader.problem(format!("{name} must be an http or https URL"));
    }
    Some(url)
}

/// `key=value,key2=value2`, percent-encoded.
fn headers(reader: &mut Reader<'_>) -> HashMap<String, String> {
    let Some((name, text)) = reader.find(&["OTEL_EXPORTER_OTLP_HEADERS"]) else { return HashMap::new() };
    let pairs: Option<HashMap<String, String>> = text
        .split(',')
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| pair.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())))
        .collect();
    pairs.unwrap_or_else(|| {
        reader.problem(format!("{name} must be comma-separated key=value pairs"));
        HashMap::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<Otlp>, String> {
        let source = Source::from_pairs(pairs.iter().copied());
        let mut reader = Reader::new(&source);
        let otlp = Otlp::read(&mut reader);
        reader.finish(otlp).map_err(|problems| problems.to_string())
    }

    #[test]
    fn the_endpoint_gets_a_path_per_signal_and_a_signals_own_is_used_unchanged() {
        let otlp = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"),
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://logs.example/in"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k, tenant=t"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        ]);
        let otlp = otlp.expect("settings").expect("a collector");
        assert_eq!(otlp.traces.as_deref(), Some("http://collector:4318/v1/traces"));
        assert_eq!(otlp.logs.as_deref(), Some("https://logs.example/in"));
        assert_eq!(otlp.headers.get("tenant").map(String::as_str), Some("t"));
        assert_eq!((otlp.timeout, otlp.service_name.as_str()), (Duration::from_millis(1500), "ferrobase"));
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint_or_when_disabled() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        assert_eq!(read(&[endpoint, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")]), Ok(None));
        let traces = read(&[endpoint, ("OTEL_LOGS_EXPORTER", "none")]).expect("settings").expect("a collector");
        assert_eq!(traces.logs, None);
    }

    #[test]
    fn unsupported_otlp_settings_are_reported() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        for (pairs, expected) in [
            (
                vec![endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
                "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf",
            ),
            (
                vec![("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318")],
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http",
            ),
            (
                vec![endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "key")],
                "OTEL_EXPORTER_OTLP_HEADERS must be comma-separated",
            ),
            (vec![endpoint, ("OTEL_TRACES_EXPORTER", "zipkin")], "OTEL_TRACES_EXPORTER must be otlp or none"),
        ] {
            let problem = read(&pairs).expect_err(expected);
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
