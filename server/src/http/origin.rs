//! The address at which a client has asked: scheme and host, as links in answers need them.

use actix_web::HttpRequest;
use actix_web::http::header;

use super::connection::is_secure;
use crate::config::TrustedProxies;

/// The scheme and the host, with the port if it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: &'static str,
    pub host: String,
}

impl Origin {
    /// `X-Forwarded-Proto` and `X-Forwarded-Host` count from trusted proxies only; anybody else could put any address into our answers.
    /// `Forwarded` is ignored as in [`client_address`](super::client::client_address).
    pub fn of(request: &HttpRequest, proxies: &TrustedProxies) -> Self {
        let is_forwarded = from_proxy(request, proxies);
        let forwarded = |name: &str| if is_forwarded { forwarded(request, name, proxies.hops) } else { None };
        let scheme = match forwarded("x-forwarded-proto") {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => "http",
            _ if is_secure(request) => "https",
            _ => "http",
        };
        let asked = || {
            let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
            named.or_else(|| request.uri().authority().map(|authority| authority.as_str()))
        };
        Self { scheme, host: forwarded("x-forwarded-host").or_else(asked).unwrap_or_default().to_owned() }
    }
}

/// Whether the peer is a trusted proxy.
pub fn from_proxy(request: &HttpRequest, proxies: &TrustedProxies) -> bool {
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
    proxies.hops > 0 || peer.is_some_and(|peer| proxies.addresses.contains(&peer))
}

/// The entry that the outermost of `hops` proxies wrote, counted from the right. Most proxies replace what they get, so there may be
/// fewer.
fn forwarded<'a>(request: &'a HttpRequest, name: &str, hops: usize) -> Option<&'a str> {
    let lines: Vec<&str> = request.headers().get_all(name).filter_map(|value| value.to_str().ok()).collect();
    let entries = lines.into_iter().rev().flat_map(|line| line.rsplit(',')).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).take(hops.max(1)).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::HttpMessage as _;
    use actix_web::test::TestRequest;

    const PROXY: &str = "10.0.0.1:9";

    fn seen(peer: &str, hops: usize, headers: &[(&'static str, &'static str)]) -> String {
        let request = TestRequest::default().peer_addr(peer.parse().expect("an address"));
        let request = headers.iter().fold(request, |request, header| request.append_header(*header));
        let proxies = TrustedProxies { addresses: vec!["10.0.0.1".parse().expect("an address")], hops };
        let Origin { scheme, host } = Origin::of(&request.to_http_request(), &proxies);
        format!("{scheme}://{host}")
    }

    /// Regression: any client could choose the address that functions and links in answers had.
    #[test]
    fn forwarded_addresses_count_only_from_a_trusted_proxy() {
        let forwarded = [("host", "a.example"), ("x-forwarded-host", "b.example"), ("x-forwarded-proto", "https")];
        assert_eq!(seen("192.0.2.7:9", 0, &forwarded), "http://a.example");
        assert_eq!(seen(PROXY, 0, &forwarded), "https://b.example");
        assert_eq!(seen("192.0.2.7:9", 1, &forwarded), "https://b.example");
        assert_eq!(
            seen(PROXY, 0, &[("host", "a.example"), ("forwarded", "host=b.example;proto=https")]),
            "http://a.example"
        );
        assert_eq!(seen(PROXY, 0, &[("host", "a.example"), ("x-forwarded-proto", "gopher")]), "http://a.example");
    }

    #[test]
    fn the_entries_of_a_client_stay_left_of_those_of_the_proxies() {
        let forged = [("x-forwarded-host", "evil.example, b.example"), ("x-forwarded-host", "c.example")];
        assert_eq!(seen(PROXY, 0, &forged), "http://c.example");
        assert_eq!(seen(PROXY, 2, &forged), "http://b.example");
        assert_eq!(seen(PROXY, 9, &[("x-forwarded-host", "b.example")]), "http://b.example");
    }

    #[test]
    fn our_own_encryption_counts() {
        let request = TestRequest::default().insert_header(("host", "a.example")).to_http_request();
        request.extensions_mut().insert(crate::http::connection::Secure);
        assert_eq!(Origin::of(&request, &TrustedProxies::default()).scheme, "https");
    }
}
