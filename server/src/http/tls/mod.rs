//! HTTPS by the server itself: certificates from files or from an authority that speaks ACME.
//!
//! The certificate in use is replaced while the server runs, without touching open connections. Cargo's feature `https` contains
//! all of this; [`super::tls_absent`] stands here without it.

mod acme;
mod files;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_web::rt::net::TcpStream;
use anyhow::Context as _;
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::door::{Door, Doorway};
use super::lenient::Lenient;
use super::listen::Listener;
use super::room::Place;
use crate::config::{CertificateSource, TlsConfig};

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The protocol of an authority's check of a name (RFC 8737).
const ACME_TLS: &[u8] = b"acme-tls/1";

/// The folder below the data folder with the account and the certificate that an authority gave.
pub const ACME_FOLDER: &str = "acme";

/// HTTPS, before it is served.
pub struct Tls {
    server: Arc<rustls::ServerConfig>,
    certificates: Arc<Certificates>,
    source: CertificateSource,
    /// [`ACME_FOLDER`]
    folder: PathBuf,
}

/// What handshakes choose from.
#[derive(Debug, Default)]
struct Certificates {
    current: ArcSwapOption<CertifiedKey>,
    /// By name, while an authority checks it.
    challenges: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|mut offered| offered.any(|protocol| protocol == ACME_TLS)) {
            return self.challenges.lock().get(hello.server_name()?).cloned();
        }
        self.current.load_full()
    }
}

impl Tls {
    /// Reads the certificate, unless it has to be asked for first.
    pub fn open(config: &TlsConfig, data_dir: &Path) -> anyhow::Result<Self> {
        let certificates = Arc::new(Certificates::default());
        let folder = data_dir.join(ACME_FOLDER);
        let mut protocols: Vec<Vec<u8>> = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        match &config.certificate {
            CertificateSource::Files { chain, key } => {
                let read = files::read(chain, key).context("FERROBASE_TLS_CERT, FERROBASE_TLS_KEY")?;
                certificates.current.store(Some(Arc::new(read)));
            }
            CertificateSource::Acme(_) => protocols.push(ACME_TLS.to_vec()),
        }
        let mut server = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificates.clone());
        server.alpn_protocols = protocols;
        server.ticketer = Ticketer::new()?;
        Ok(Self { server: Arc::new(server), certificates, source: config.certificate.clone(), folder })
    }

    pub fn listener(&self, listener: TcpListener) -> Listener {
        Listener::Tls(listener, self.server.clone())
    }

    /// Keeps the certificate up to date from now on. An authority connects to the listener to check the names.
    pub fn keep(self) {
        match self.source {
            CertificateSource::Files { chain, key } => {
                actix_web::rt::spawn(files::follow(chain, key, self.certificates));
            }
            CertificateSource::Acme(config) => {
                actix_web::rt::spawn(acme::follow(config, self.folder, self.certificates));
            }
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A chain and its key, both PEM.
fn certified(chain: &[u8], key: &[u8]) -> anyhow::Result<CertifiedKey> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().context("the certificate")?;
    anyhow::ensure!(!chain.is_empty(), "there is no certificate in the file");
    let key = PrivateKeyDer::from_pem_slice(key).context("the key")?;
    CertifiedKey::from_der(chain, key, &provider()).context("the key and the certificate do not fit")
}

/// A connection on which HTTP/1.1 is spoken.
pub type Plain = (Lenient<TlsStream<TcpStream>>, Option<SocketAddr>);

/// A connection after its handshake.
pub type Encrypted = (Lenient<TlsStream<TcpStream>>, Protocol, Option<SocketAddr>);

/// Makes the handshake. `door` is the worker's, `place` the connection's.
pub async fn accept(
    server: Arc<rustls::ServerConfig>,
    door: Door,
    stream: TcpStream,
    place: Place,
) -> Result<Encrypted, DispatchError> {
    super::connection::prepare(&stream);
    let peer = stream.peer_addr().ok();
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(server).accept(stream));
    let stream = handshake.await.map_err(|_| DispatchError::SlowRequestTimeout)?.map_err(DispatchError::Io)?;
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Ok((Lenient::opaque(stream).at(place), Protocol::Http2, peer)),
        Some(ACME_TLS) => Err(DispatchError::Io(io::Error::other("an authority has checked a name"))),
        _ => Ok((Lenient::new(stream).at(place).through(Doorway::of(&door, peer, true)), Protocol::Http1, peer)),
    }
}
