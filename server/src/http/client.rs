//! The client's address, for rate limits and logs.

use std::net::IpAddr;

use actix_web::HttpRequest;

/// The address of the peer, or the forwarded one when the peer is a trusted proxy: the last entry of
/// `X-Forwarded-For` that is not itself a trusted proxy. Headers from anyone else are ignored.
pub fn client_address(request: &HttpRequest, trusted_proxies: &[IpAddr]) -> Option<IpAddr> {
    // A socket for both families names IPv4 peers in the manner of IPv6.
    let peer = request.peer_addr().map(|a| a.ip().to_canonical())?;
    if !trusted_proxies.contains(&peer) {
        return Some(peer);
    }
    // A proxy may add a line of its own below the one that the client sent: together they are one list.
    let lines: Vec<&str> = request.headers().get_all("x-forwarded-for").filter_map(|v| v.to_str().ok()).collect();
    let first_untrusted = lines
        .iter()
        .rev()
        .flat_map(|line| line.rsplit(','))
        .filter_map(|part| part.trim().parse::<IpAddr>().ok())
        .map(|address| address.to_canonical())
        .find(|address| !trusted_proxies.contains(address));
    Some(first_untrusted.unwrap_or(peer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn forwarded_addresses_count_only_from_a_trusted_proxy() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let request = TestRequest::default()
            .peer_addr("10.0.0.1:9".parse().expect("addr"))
            .insert_header(("x-forwarded-for", "6.6.6.6, 192.0.2.7, 10.0.0.1"))
            .to_http_request();
        assert_eq!(client_address(&request, &[proxy]), "192.0.2.7".parse().ok());
        assert_eq!(client_address(&request, &[]), Some(proxy));
    }

    #[test]
    fn an_ipv4_peer_of_a_socket_for_both_families_is_known_by_its_own_address() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let request = TestRequest::default()
            .peer_addr("[::ffff:10.0.0.1]:9".parse().expect("addr"))
            .insert_header(("x-forwarded-for", "192.0.2.7"))
            .to_http_request();
        assert_eq!(client_address(&request, &[proxy]), "192.0.2.7".parse().ok());
        assert_eq!(client_address(&request, &[]), Some(proxy));
    }

    #[test]
    fn of_several_header_lines_the_last_is_the_proxys() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let request = TestRequest::default()
            .peer_addr("10.0.0.1:9".parse().expect("addr"))
            .append_header(("x-forwarded-for", "6.6.6.6"))
            .append_header(("x-forwarded-for", "192.0.2.7"))
            .to_http_request();
        assert_eq!(client_address(&request, &[proxy]), "192.0.2.7".parse().ok());
    }
}
