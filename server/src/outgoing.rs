//! The HTTP client with which the server asks others.

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client takes settings of TLS only from the version of the library that it is built with.
    #[test]
    fn a_client_can_be_built() {
        client().build().expect("client");
    }
}
