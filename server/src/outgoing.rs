//! The HTTP client with which the server asks others.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use reqwest::{Certificate, Client, ClientBuilder};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// A client that trusts the authorities of the system.
pub fn client() -> ClientBuilder {
    static TLS: LazyLock<ClientConfig> = LazyLock::new(|| {
        let mut config = ClientConfig::builder().with_root_certificates(system_roots()).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    });
    Client::builder().tls_backend_preconfigured(TLS.clone())
}

/// A client that trusts these `authorities`, too.
pub fn client_trusting(authorities: &[Certificate]) -> ClientBuilder {
    if authorities.is_empty() {
        return client();
    }
    Client::builder().tls_certs_merge(authorities.iter().cloned())
}

/// The authorities of the system, read once: a dozen clients of a server need its some 150 certificates.
pub fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(system_certificates());
        Arc::new(roots)
    });
    Arc::clone(&ROOTS)
}

/// The certificates of the system's authorities, except those that cannot be used. They are read again each time.
pub fn system_certificates() -> Vec<CertificateDer<'static>> {
    let mut found = rustls_native_certs::load_native_certs();
    found.certs.retain(|authority| RootCertStore::empty().add(authority.clone()).is_ok());
    if found.certs.is_empty() {
        tracing::warn!(errors = ?found.errors, "this system has no certificates of authorities: requests by HTTPS will fail");
    }
    found.certs
}

/// Whether the address is public, judging by its range.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 198 && (18..20).contains(&b)))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(v4.into()),
            None => {
                let first = v6.segments()[0];
                let is_local = (first & 0xfe00) == 0xfc00 || (first & 0xffc0) == 0xfe80;
                let is_translated = first == 0x64 || first == 0x2002 || (first == 0x2001 && v6.segments()[1] == 0);
                !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || is_local || is_translated)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client takes settings of TLS only from the version of the library that it is built with.
    #[test]
    fn a_client_can_be_built() {
        client().build().expect("client");
    }
}
