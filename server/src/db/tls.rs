//! TLS to the database, if the server offers it or the URL demands it (`sslmode`).
//!
//! As in libpq, `sslmode=prefer` (the default) encrypts if the server can, and `require` refuses unencrypted
//! connections. Neither verifies the server's certificate, because managed databases use authorities of their own. If
//! there is a root certificate and the mode is `require` or stricter, it is verified ([`install`]).

use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DEFAULT_VERSIONS, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::conninfo::{CertificateCheck, DatabaseTls, Roots};
use crate::outgoing;

/// A process uses one database server, whatever the number of logins and pools.
static INSTALLED: OnceLock<(DatabaseTls, MakeRustlsConnect)> = OnceLock::new();

/// The TLS settings of every connection to PostgreSQL.
pub(super) fn tls() -> MakeRustlsConnect {
    static USUAL: LazyLock<MakeRustlsConnect> = LazyLock::new(|| {
        #[expect(clippy::expect_used, reason = "no file is read for it")]
        connector(&DatabaseTls::default()).expect("ring speaks TLS 1.2 and 1.3")
    });
    INSTALLED.get().map_or(&*USUAL, |(_, connector)| connector).clone()
}

/// Sets up verification of the server's certificate and the client's certificate from `settings`. Must be called before
/// anything connects. The files are read once; the same settings may come again.
pub fn install(settings: &DatabaseTls) -> Result<(), String> {
    if *settings == DatabaseTls::default() {
        return Ok(());
    }
    let (installed, _) = match INSTALLED.get() {
        Some(installed) => installed,
        None => {
            let connector = connector(settings)?;
            INSTALLED.get_or_init(|| (settings.clone(), connector))
        }
    };
    if installed == settings { Ok(()) } else { Err("the way to the database is settled already".to_owned()) }
}

fn connector(settings: &DatabaseTls) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match settings.check {
        CertificateCheck::None => Arc::new(AnyServer { provider: provider.clone() }),
        CertificateCheck::Authority => Arc::new(AnyName { inner: verifier(settings, &provider)? }),
        CertificateCheck::Full => verifier(settings, &provider)?,
    };
    let versions = if settings.only_newest { &[&TLS13] } else { DEFAULT_VERSIONS };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match &settings.identity {
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                format!("the key {} cannot be read (nor one with a password): {error}", key.display())
            })?;
            builder.with_client_auth_cert(chain, key).map_err(|error| format!("the client's certificate: {error}"))?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| format!("the certificates {} cannot be read: {error}", file.display()))?;
    if read.is_empty() { Err(format!("there is no certificate in {}", file.display())) } else { Ok(read) }
}

/// Checks names, too.
fn verifier(settings: &DatabaseTls, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut roots = RootCertStore::empty();
    match &settings.roots {
        Some(Roots::File(file)) => {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| format!("a certificate of {}: {error}", file.display()))?;
            }
        }
        Some(Roots::System) => {
            roots = RootCertStore::clone(&outgoing::system_roots());
        }
        None => {}
    }
    let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    if let Some(file) = &settings.revoked {
        let read = CertificateRevocationListDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        builder = builder.with_crls(read.map_err(|error| format!("{} cannot be read: {error}", file.display()))?);
    }
    builder.build().map_err(|error| error.to_string())
}

/// Accepts a certificate of a known authority with any name.
#[derive(Debug)]
struct AnyName {
    inner: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is checked last.
        match self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts any certificate, but requires that the server holds its key.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a command that read the same settings from the environment and from a file was refused.
    #[test]
    fn the_same_settings_may_come_again() {
        let settings = DatabaseTls { only_newest: true, ..DatabaseTls::default() };
        for _ in 0..2 {
            install(&settings).expect("installed");
        }
        install(&DatabaseTls::default()).expect("nothing to do");
        let other = DatabaseTls { check: CertificateCheck::Full, roots: Some(Roots::System), ..settings };
        install(&other).expect_err("another server");
    }
}
