//! Names of this machine.

use std::net::IpAddr;

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
    fn only_loopback_names_are_local() {
        for host in ["127.0.0.1:54324", "localhost:54324", "localhost", "[::1]:54324", "127.0.0.2"] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in ["inbox.evil.example:54324", "localhost.evil.example", "10.0.0.1:54324", ""] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
