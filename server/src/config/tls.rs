//! `FERROBASE_TLS_…` and `FERROBASE_ACME_…`: HTTPS by the server itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::Reader;

/// Let's Encrypt.
const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// How long browsers ask for nothing but HTTPS, by default.
const HSTS: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// `FERROBASE_TLS_LISTEN`: where HTTPS is served. Unset: nowhere.
    pub listen: SocketAddr,
    pub certificate: CertificateSource,
    /// `FERROBASE_TLS_REDIRECT`, default false: whether `FERROBASE_LISTEN` sends everybody here.
    pub redirects: bool,
    /// `FERROBASE_TLS_HSTS`, default a year in seconds, 0 for none: `Strict-Transport-Security` of answers over HTTPS.
    pub hsts: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// `FERROBASE_TLS_CERT`, the chain, and `FERROBASE_TLS_KEY`, both PEM. Read again when they change.
    Files {
        chain: PathBuf,
        key: PathBuf,
    },
    Acme(AcmeConfig),
}

/// Certificates of an authority that speaks ACME (RFC 8555).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// `FERROBASE_ACME_DOMAINS`: the names in the certificate.
    pub domains: Vec<String>,
    /// `FERROBASE_ACME_EMAIL`: whom the authority may write to.
    pub email: Option<String>,
    /// `FERROBASE_ACME_DIRECTORY`, default Let's Encrypt's.
    pub directory: String,
    /// `FERROBASE_ACME_CA`: certificates (PEM) to trust at that address in addition to the system's.
    pub authorities: Option<PathBuf>,
}

impl TlsConfig {
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let listen: Option<SocketAddr> = reader.parse(&["FERROBASE_TLS_LISTEN"], "an address with a port");
        let files = (reader.text(&["FERROBASE_TLS_CERT"]), reader.text(&["FERROBASE_TLS_KEY"]));
        let domains = reader.list(&["FERROBASE_ACME_DOMAINS"]).unwrap_or_default();
        let acme = AcmeConfig {
            email: reader.text(&["FERROBASE_ACME_EMAIL"]),
            directory: reader.text_or(&["FERROBASE_ACME_DIRECTORY"], DIRECTORY),
            authorities: reader.text(&["FERROBASE_ACME_CA"]).map(PathBuf::from),
            domains,
        };
        let redirects = reader.flag(&["FERROBASE_TLS_REDIRECT"], false);
        let hsts = reader.seconds_or(&["FERROBASE_TLS_HSTS"], HSTS);
        let certificate = match (files, acme.domains.is_empty()) {
            ((None, None), true) => None,
            ((Some(chain), Some(key)), true) => Some(CertificateSource::Files { chain: chain.into(), key: key.into() }),
            ((None, None), false) => Some(CertificateSource::Acme(acme)),
            ((_, _), false) => {
                reader.problem(
                    "FERROBASE_TLS_CERT and FERROBASE_ACME_DOMAINS both provide the certificate: set only one",
                );
                return None;
            }
            ((_, _), true) => {
                reader.problem("FERROBASE_TLS_CERT and FERROBASE_TLS_KEY must be set together");
                return None;
            }
        };
        match (listen, certificate) {
            (Some(listen), Some(certificate)) => Some(Self { listen, certificate, redirects, hsts }),
            (Some(_), None) => {
                reader.problem(
                    "FERROBASE_TLS_LISTEN needs a certificate: FERROBASE_TLS_CERT and FERROBASE_TLS_KEY, or \
                     FERROBASE_ACME_DOMAINS",
                );
                None
            }
            (None, Some(_)) => {
                reader.problem("there is a certificate, but FERROBASE_TLS_LISTEN is not set");
                None
            }
            (None, None) => {
                if redirects {
                    reader.problem("FERROBASE_TLS_REDIRECT needs FERROBASE_TLS_LISTEN");
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<TlsConfig>, String> {
        let source = Source::from_pairs(pairs.iter().copied());
        let mut reader = Reader::new(&source);
        let config = TlsConfig::read(&mut reader);
        reader.finish(config).map_err(|problems| problems.to_string())
    }

    const LISTEN: (&str, &str) = ("FERROBASE_TLS_LISTEN", "0.0.0.0:443");
    const FILES: [(&str, &str); 2] = [("FERROBASE_TLS_CERT", "/c.pem"), ("FERROBASE_TLS_KEY", "/k.pem")];
    const DOMAINS: (&str, &str) = ("FERROBASE_ACME_DOMAINS", "a.example, b.example");

    #[test]
    fn a_certificate_comes_from_files_or_from_an_authority() {
        assert_eq!(read(&[]), Ok(None));
        let files = read(&[LISTEN, FILES[0], FILES[1]]).expect("valid").expect("HTTPS");
        assert_eq!(files.certificate, CertificateSource::Files { chain: "/c.pem".into(), key: "/k.pem".into() });
        assert_eq!((files.redirects, files.hsts), (false, HSTS));
        let acme = read(&[LISTEN, DOMAINS, ("FERROBASE_TLS_HSTS", "0")]).expect("valid").expect("HTTPS");
        let CertificateSource::Acme(AcmeConfig { domains, directory, .. }) = acme.certificate else { panic!("ACME") };
        assert_eq!((domains, &*directory), (vec!["a.example".to_owned(), "b.example".to_owned()], DIRECTORY));
        assert!(acme.hsts.is_zero());
    }

    #[test]
    fn half_a_configuration_is_refused() {
        for (pairs, reason) in [
            (&[LISTEN][..], "needs a certificate"),
            (&[LISTEN, FILES[0]], "must be set together"),
            (&[FILES[0], FILES[1]], "FERROBASE_TLS_LISTEN is not set"),
            (&[LISTEN, FILES[0], FILES[1], DOMAINS], "both provide"),
            (&[("FERROBASE_TLS_REDIRECT", "true")], "needs FERROBASE_TLS_LISTEN"),
        ] {
            let problems = read(pairs).expect_err("refused");
            assert!(problems.contains(reason), "{problems}");
        }
    }
}
