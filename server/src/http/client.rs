//! The client's address, for rate limits and logs.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;

use crate::config::TrustedProxies;

/// The address of the peer, or the forwarded one: with a number of trusted hops the entry of `X-Forwarded-For` that the
/// outermost of them wrote, counted from the right; else, when the peer is a trusted proxy, the last entry that is not itself
/// one. If that is no address, the client may have written it and all before it, so it is that of the last proxy. Headers from anyone
/// else are ignored.
pub fn client_address(request: &HttpRequest, proxies: &TrustedProxies) -> Option<IpAddr> {
    // A dual-stack socket reports IPv4 peers as IPv6 addresses.
    let peer = request.peer_addr().map(|a| a.ip().to_canonical())?;
    if proxies.hops == 0 && !proxies.addresses.contains(&peer) {
        return Some(peer);
    }
    // A proxy may add its own header line below the client's; together they are one list.
    // What a client adds may be any bytes, and must not hide the proxy's entry.
    let lines = request.headers().get_all("x-forwarded-for").map(|line| String::from_utf8_lossy(line.as_bytes()));
    let lines: Vec<_> = lines.collect();
    let from_the_right = lines.iter().rev().flat_map(|line| line.rsplit(',')).map(str::trim);
    if proxies.hops > 0 {
        // Every entry counts, valid or not, so that the client's entries stay left of the proxies'.
        let entries: Vec<&str> = from_the_right.filter(|part| !part.is_empty()).take(proxies.hops).collect();
        return Some(entries.last().and_then(|entry| parse_entry(entry)).unwrap_or(peer));
    }
    let mut nearest = peer;
    for entry in from_the_right.filter(|part| !part.is_empty()) {
        let Some(address) = parse_entry(entry) else { return Some(nearest) };
        nearest = address;
        if !proxies.addresses.contains(&address) {
            break;
        }
    }
    Some(nearest)
}

/// The address under which a client's requests are counted: its IPv4 address, or its IPv6 network.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// An entry of `X-Forwarded-For`: an address, optionally in brackets or with a port.
pub fn parse_entry(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    let address = bare.parse::<IpAddr>().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn trusting(proxy: IpAddr) -> TrustedProxies {
        TrustedProxies { addresses: vec![proxy], hops: 0 }
    }

    #[test]
    fn entries_have_ports_and_brackets_or_not() {
        let address: IpAddr = "192.0.2.7".parse().expect("ip");
        for entry in ["192.0.2.7", " 192.0.2.7:4711", "::ffff:192.0.2.7", "[::ffff:192.0.2.7]:80"] {
            assert_eq!(parse_entry(entry), Some(address), "{entry}");
        }
        for entry in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443"] {
            assert_eq!(parse_entry(entry), "2001:db8::1".parse().ok(), "{entry}");
        }
        assert_eq!(parse_entry("unknown"), None);
    }

    #[test]
    fn hops_are_counted_from_the_right() {
        let hops = |hops| TrustedProxies { addresses: Vec::new(), hops };
        let request = |forwarded: &str| {
            TestRequest::default()
                .peer_addr("10.0.0.1:9".parse().expect("addr"))
                .insert_header(("x-forwarded-for", forwarded))
                .to_http_request()
        };
        let forged = request("6.6.6.6, garbage, 192.0.2.7:5, 10.0.0.2");
        assert_eq!(client_address(&forged, &hops(2)), "192.0.2.7".parse().ok());
        assert_eq!(client_address(&forged, &hops(1)), "10.0.0.2".parse().ok());
        // An unreadable entry is no address, and the next one is not used instead.
        assert_eq!(client_address(&forged, &hops(3)), "10.0.0.1".parse().ok());
        assert_eq!(client_address(&request("192.0.2.7"), &hops(2)), "192.0.2.7".parse().ok());
    }

    #[test]
    fn forwarded_addresses_count_only_from_a_trusted_proxy() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let request = TestRequest::default()
            .peer_addr("10.0.0.1:9".parse().expect("addr"))
            .insert_header(("x-forwarded-for", "6.6.6.6, 192.0.2.7, 10.0.0.1"))
            .to_http_request();
        assert_eq!(client_address(&request, &trusting(proxy)), "192.0.2.7".parse().ok());
        assert_eq!(client_address(&request, &TrustedProxies::default()), Some(proxy));
    }

    /// Regression: the client was counted as the proxy, or under an address of its choice.
    #[test]
    fn an_entry_that_is_no_address_ends_the_list() {
        let trusted = TrustedProxies {
            addresses: vec!["10.0.0.1".parse().expect("ip"), "10.0.0.2".parse().expect("ip")],
            hops: 0,
        };
        for (forwarded, seen) in [
            (&b"\xff, 192.0.2.7"[..], "192.0.2.7"),
            (b"6.6.6.6, unknown", "10.0.0.1"),
            (b"6.6.6.6, unknown, 10.0.0.2", "10.0.0.2"),
            (b"6.6.6.6, 192.0.2.7, , 10.0.0.2", "192.0.2.7"),
            (b"10.0.0.2", "10.0.0.2"),
            (b"", "10.0.0.1"),
        ] {
            let value = actix_web::http::header::HeaderValue::from_bytes(forwarded).expect("a value");
            let request = TestRequest::default()
                .peer_addr("10.0.0.1:9".parse().expect("addr"))
                .insert_header(("x-forwarded-for", value))
                .to_http_request();
            assert_eq!(client_address(&request, &trusted), seen.parse().ok(), "{forwarded:?}");
        }
    }

    #[test]
    fn an_ipv4_peer_of_a_dual_stack_socket_has_its_ipv4_address() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let request = TestRequest::default()
            .peer_addr("[::ffff:10.0.0.1]:9".parse().expect("addr"))
            .insert_header(("x-forwarded-for", "192.0.2.7"))
            .to_http_request();
        assert_eq!(client_address(&request, &trusting(proxy)), "192.0.2.7".parse().ok());
        assert_eq!(client_address(&request, &TrustedProxies::default()), Some(proxy));
    }

    #[test]
    fn the_last_of_several_header_lines_is_the_proxys() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let request = TestRequest::default()
            .peer_addr("10.0.0.1:9".parse().expect("addr"))
            .append_header(("x-forwarded-for", "6.6.6.6"))
            .append_header(("x-forwarded-for", "192.0.2.7"))
            .to_http_request();
        assert_eq!(client_address(&request, &trusting(proxy)), "192.0.2.7".parse().ok());
    }
}
