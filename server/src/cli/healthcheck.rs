//! `healthcheck`: checks that the server of this configuration answers and reaches its database. For containers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::database::block_on;
use crate::config::{Reader, Source};

const TIMEOUT: Duration = Duration::from_secs(5);

pub fn run(source: &Source) -> anyhow::Result<()> {
    let mut reader = Reader::new(source);
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, 54321));
    let listen = reader.parse_or(&["FERROBASE_LISTEN"], "an address with a port", default);
    let url = format!("http://{}/health", reachable(reader.finish(listen)?));
    // The HTTP client needs a TLS provider even for plain HTTP. A second installation has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        let client = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build()?;
        let response = client.get(&url).send().await.map_err(|_| anyhow::anyhow!("{url} does not answer"))?;
        let status = response.status();
        anyhow::ensure!(status.is_success(), "{url} answers {status}");
        super::print_all("healthy\n")
    })
}

/// A server that listens on all addresses is queried on loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_queried_on_loopback() {
        for (listen, asked) in
            [("0.0.0.0:8000", "127.0.0.1:8000"), ("[::]:8000", "[::1]:8000"), ("10.1.2.3:80", "10.1.2.3:80")]
        {
            assert_eq!(reachable(listen.parse().expect("address")), asked.parse().expect("address"));
        }
    }
}
