//! Names and addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where this machine reaches a server that listens on `listen`: on loopback if that is all addresses.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Whether a `Host` header names this machine. A foreign name that resolves to it does not count.
pub fn is_loopback_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_reached_on_loopback() {
        for (listen, reached) in
            [("0.0.0.0:8000", "127.0.0.1:8000"), ("[::]:8000", "[::1]:8000"), ("10.1.2.3:80", "10.1.2.3:80")]
        {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable(listen).to_string(), reached);
        }
    }

    #[test]
    fn only_loopback_names_are_local() {
        for host in ["127.0.0.1:54324", "localhost:54324", "localhost", "[::1]:54324", "127.0.0.2"] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in ["inbox.evil.example:54324", "localhost.evil.example", "10.0.0.1:54324", ""] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
