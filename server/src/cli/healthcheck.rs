//! `healthcheck`: checks that the server of this configuration answers and reaches its database. For containers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::database::block_on;
use crate::config::{Reader, Source};
use crate::http::loopback::reachable;

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
