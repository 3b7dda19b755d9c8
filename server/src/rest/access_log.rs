//! Access log: one line per request on stdout, in Apache's combined format, with the role as the user.
//!
//! `log-level` selects the lines: none (`crit`), server errors (`error`), all refusals (`warn`), everything
//! (`info`). Reference: PostgREST `Logger.hs`, `Logger/Apache.hs`.

use std::io::Write as _;

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderName, REFERER, USER_AGENT};
use chrono::{DateTime, Utc};

use crate::config::rest::LogLevel;

/// The logged properties of an answer.
pub struct Answered<'a> {
    pub status: u16,
    /// Bytes of the body, if there is one.
    pub length: Option<usize>,
    /// `None` if the token was refused.
    pub role: Option<&'a str>,
}

/// Whether an answer of that status is logged.
pub fn is_logged(level: LogLevel, status: u16) -> bool {
    match level {
        LogLevel::Crit => false,
        LogLevel::Error => status >= 500,
        LogLevel::Warn => status >= 400,
        LogLevel::Info | LogLevel::Debug => true,
    }
}

/// Writes the line. A closed stdout does not fail the request.
pub fn write(request: &HttpRequest, answered: &Answered<'_>) {
    let line = line(request, answered, Utc::now());
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes a statement to stderr, as one line with the time before it.
pub fn write_query(sql: &str) {
    let now = Utc::now().format("%d/%b/%Y:%H:%M:%S %z");
    let _ = writeln!(std::io::stderr().lock(), "{now}: {}", sql.replace('\n', " "));
}

fn line(request: &HttpRequest, answered: &Answered<'_>, now: DateTime<Utc>) -> String {
    format!(
        "{peer} - {role} [{now}] \"{method} {target} {version:?}\" {status} {length} \"{referer}\" \"{agent}\"",
        peer = request.peer_addr().map_or_else(|| "-".to_owned(), |peer| peer.ip().to_string()),
        role = answered.role.unwrap_or("-"),
        now = now.format("%d/%b/%Y:%H:%M:%S %z"),
        method = request.method(),
        target = request.uri(),
        version = request.version(),
        status = answered.status,
        length = answered.length.map_or_else(|| "-".to_owned(), |length| length.to_string()),
        referer = text(request.headers(), &REFERER),
        agent = text(request.headers(), &USER_AGENT),
    )
}

/// A header's value without characters that could end the quotes or the line.
fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    value.chars().filter(|c| !c.is_control() && *c != '"').collect()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_log_level_selects_the_logged_answers() {
        let logged = |level| [200, 404, 503].map(|status| is_logged(level, status));
        assert_eq!(logged(LogLevel::Crit), [false, false, false]);
        assert_eq!(logged(LogLevel::Error), [false, false, true]);
        assert_eq!(logged(LogLevel::Warn), [false, true, true]);
        assert_eq!(logged(LogLevel::Info), [true, true, true]);
    }

    #[test]
    fn lines_have_apaches_format() {
        let request = TestRequest::get()
            .uri("/t?a=eq.1")
            .peer_addr(([10, 0, 0, 7], 99).into())
            .insert_header(("user-agent", "a \"quoted\" agent"))
            .to_http_request();
        let now = DateTime::from_timestamp(1_700_000_000, 0).expect("time");
        let answered = Answered { status: 200, length: Some(12), role: Some("anon") };
        assert_eq!(
            line(&request, &answered, now),
            "10.0.0.7 - anon [14/Nov/2023:22:13:20 +0000] \"GET /t?a=eq.1 HTTP/1.1\" 200 12 \"\" \"a quoted agent\""
        );
    }
}
