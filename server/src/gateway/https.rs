//! What differs between HTTP and HTTPS where the server itself serves both.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::dev::ServiceRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};

use crate::config::TlsConfig;
use crate::http::connection::is_secure;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Https {
    /// The port of HTTPS, if everybody is sent there.
    redirects_to: Option<u16>,
    /// Where this machine reaches the server by HTTP; edge functions do.
    own: Option<SocketAddr>,
    /// `Strict-Transport-Security` of answers over HTTPS.
    hsts: Option<HeaderValue>,
}

impl Https {
    /// `own`: where this machine reaches the server by HTTP.
    pub fn of(config: Option<&TlsConfig>, own: SocketAddr) -> Self {
        let Some(config) = config else { return Self::default() };
        let seconds = config.hsts.as_secs();
        Self {
            redirects_to: config.redirects.then(|| config.listen.port()),
            own: Some(own),
            hsts: (config.hsts > Duration::ZERO)
                .then(|| HeaderValue::try_from(format!("max-age={seconds}")).ok())
                .flatten(),
        }
    }

    /// The answer that sends a request to HTTPS, if it has to go there. Load balancers ask for `/health` as they can.
    pub fn redirect(&self, request: &ServiceRequest) -> Option<HttpResponse> {
        let port = self.redirects_to?;
        if is_secure(request.request()) || request.path() == "/health" {
            return None;
        }
        let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if self.is_own(request.peer_addr(), host) {
            return None;
        }
        let Some(name) = name_of(host) else { return Some(HttpResponse::BadRequest().finish()) };
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let location = format!("https://{name}{port}{target}");
        // The method and the body stay.
        Some(HttpResponse::PermanentRedirect().insert_header((header::LOCATION, location)).finish())
    }

    /// Whether a program on this machine asks at the address that edge functions are told. No certificate is for that address, and what
    /// is sent never leaves the machine.
    fn is_own(&self, peer: Option<SocketAddr>, host: &str) -> bool {
        let (Some(own), Some(peer)) = (self.own, peer.map(|peer| peer.ip().to_canonical())) else { return false };
        let without_port = || own.to_string().strip_suffix(":80").is_some_and(|name| name == host);
        (peer.is_loopback() || peer == own.ip()) && (host == own.to_string() || without_port())
    }

    /// Asks browsers to come by HTTPS alone.
    pub fn mark(&self, request: &actix_web::HttpRequest, headers: &mut HeaderMap) {
        if let Some(hsts) = &self.hsts
            && is_secure(request)
        {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
    }
}

/// The name of a `Host` header without its port; `None` unless it is a name or an address.
fn name_of(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    let is_port =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    (!name.is_empty() && name.bytes().all(is_name) && is_port).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: edge functions were sent to HTTPS at an address that no certificate is for.
    #[test]
    fn programs_on_this_machine_are_not_sent_to_https() {
        for (own, peer, host, is_own) in [
            ("127.0.0.1:80", "127.0.0.1:9", "127.0.0.1", true),
            ("127.0.0.1:80", "127.0.0.1:9", "127.0.0.1:80", true),
            ("127.0.0.1:8000", "[::ffff:127.0.0.1]:9", "127.0.0.1:8000", true),
            ("127.0.0.1:8000", "127.0.0.1:9", "127.0.0.1", false),
            ("[::1]:80", "[::1]:9", "[::1]", true),
            ("10.1.2.3:80", "10.1.2.3:9", "10.1.2.3", true),
            ("127.0.0.1:80", "127.0.0.1:9", "a.example", false),
            ("127.0.0.1:80", "192.0.2.7:9", "127.0.0.1", false),
        ] {
            let https = Https { own: own.parse().ok(), ..Https::default() };
            assert_eq!(https.is_own(peer.parse().ok(), host), is_own, "{own} {peer} {host}");
        }
        assert!(!Https::default().is_own("127.0.0.1:9".parse().ok(), "127.0.0.1"));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for (host, name) in [
            ("a.example", Some("a.example")),
            ("a.example:8080", Some("a.example")),
            ("192.0.2.7:80", Some("192.0.2.7")),
            ("[2001:db8::1]:80", Some("[2001:db8::1]")),
            ("[2001:db8::1]", Some("[2001:db8::1]")),
            ("", None),
            ("a.example:x", None),
            ("a.example@evil.example", None),
            ("a.example/x", None),
            ("[::1", None),
        ] {
            assert_eq!(name_of(host), name, "{host}");
        }
    }
}
