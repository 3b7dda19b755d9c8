//! Certificates from an authority that speaks ACME, by `instant-acme`.
//!
//! The authority checks each name with a handshake at our own listener (TLS-ALPN-01), so no other port has to be reachable.
//! Account, certificate and key are kept in a folder, and a certificate is renewed when a third of its time is left.

use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use bytes::Bytes;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType, Error, HttpClient,
    Identifier, NewAccount, NewOrder, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use x509_cert::der::Decode as _;

use super::{Certificates, certified, provider};
use crate::config::AcmeConfig;
use crate::outgoing;

/// The pause after a failure: the first, which doubles, and the longest. Authorities limit how often one may fail.
const PAUSE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(6 * 3600));
/// How often the time left is looked at, at least: the clock may be set.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// How long one request to the authority may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How the state of an order is asked for.
const POLL: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(120));

const ACCOUNT: &str = "account.json";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// The authority, and the names in the certificate, one a line.
const NAMES: &str = "names";

/// Gets a certificate unless there is one, and renews it in time.
pub async fn follow(config: AcmeConfig, folder: PathBuf, certificates: Arc<Certificates>) {
    let mut pause = PAUSE.0;
    let mut due = match kept(&config, &folder) {
        Some((certificate, due)) => {
            certificates.current.store(Some(Arc::new(certificate)));
            due
        }
        None => UNIX_EPOCH,
    };
    loop {
        if let Ok(left) = due.duration_since(SystemTime::now())
            && !left.is_zero()
        {
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
            continue;
        }
        let ordered = order(&config, &folder, &certificates).await;
        certificates.challenges.lock().clear();
        match ordered.and_then(|()| kept(&config, &folder).context("the certificate is not usable")) {
            Ok((certificate, next)) => {
                certificates.current.store(Some(Arc::new(certificate)));
                tracing::info!(names = config.domains.join(","), "there is a new certificate");
                (due, pause) = (next, PAUSE.0);
            }
            Err(error) => {
                let has_one = certificates.current.load().is_some();
                tracing::error!(
                    error = format!("{error:#}"),
                    has_one,
                    seconds = pause.as_secs(),
                    "no certificate was given, trying again later"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// The certificate in the folder, and when it has to be renewed: at once if it is for other names or another authority gave it.
fn kept(config: &AcmeConfig, folder: &Path) -> Option<(CertifiedKey, SystemTime)> {
    let text = std::fs::read_to_string(folder.join(NAMES)).ok()?;
    let mut lines = text.lines().peekable();
    let authority = lines.next_if(|line| line.contains("://")).map(str::to_owned);
    let has_our_names = lines.eq(config.domains.iter().map(String::as_str));
    let (chain, key) = (std::fs::read(folder.join(CERTIFICATE)).ok()?, std::fs::read(folder.join(KEY)).ok()?);
    let certificate = certified(&chain, &key).ok()?;
    let due = renewal(certificate.cert.first()?)?;
    // Earlier versions named it only beside the account.
    let is_ours = authority.or_else(|| known_authority(folder)).is_none_or(|authority| authority == config.directory);
    Some((certificate, if is_ours && has_our_names { due } else { UNIX_EPOCH }))
}

/// The authority of the account in the folder.
fn known_authority(folder: &Path) -> Option<String> {
    let account: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join(ACCOUNT)).ok()?).ok()?;
    Some(account.get("directory")?.as_str()?.to_owned())
}

/// When a third of a certificate's time is left.
fn renewal(certificate: &[u8]) -> Option<SystemTime> {
    let validity = x509_cert::Certificate::from_der(certificate).ok()?.tbs_certificate.validity;
    let (from, to) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
    Some(UNIX_EPOCH + to.saturating_sub(to.saturating_sub(from) / 3))
}

/// Orders a certificate and keeps it in the folder.
async fn order(config: &AcmeConfig, folder: &Path, certificates: &Certificates) -> anyhow::Result<()> {
    let account = account(config, folder).await?;
    let names: Vec<_> = config.domains.iter().map(|name| Identifier::Dns(name.clone())).collect();
    let mut order = account.new_order(&NewOrder::new(&names)).await.context("the order was refused")?;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            other => anyhow::bail!("the check of a name is {other:?}"),
        }
        let mut challenge = authorization
            .challenge(ChallengeType::TlsAlpn01)
            .context("the authority does not check names by TLS (TLS-ALPN-01)")?;
        let name = challenge.identifier().to_string();
        let answer = answer(&name, challenge.key_authorization().digest().as_ref())?;
        certificates.challenges.lock().insert(name, Arc::new(answer));
        challenge.set_ready().await?;
    }
    let status = order.poll_ready(&POLL).await.context("the names were not checked")?;
    if status != OrderStatus::Ready {
        anyhow::bail!("the authority did not find the names at this server: the order is {status:?}");
    }
    let key = order.finalize().await.context("the order was not finished")?;
    let chain = order.poll_certificate(&POLL).await.context("the certificate was not given")?;
    // A key of another certificate is as good as none; the names come last, and say that both are there.
    remove(folder, NAMES)?;
    write(folder, KEY, key.as_bytes())?;
    write(folder, CERTIFICATE, chain.as_bytes())?;
    // An authority for tests gives certificates that no browser accepts.
    let names = format!("{}\n{}\n", config.directory, config.domains.join("\n"));
    write(folder, NAMES, names.as_bytes())
}

/// The account at this authority, made at the first time.
async fn account(config: &AcmeConfig, folder: &Path) -> anyhow::Result<Account> {
    let builder = || anyhow::Ok(Account::builder_with_http(Box::new(Http(client(config)?))));
    let path = folder.join(ACCOUNT);
    if let Ok(text) = std::fs::read(&path) {
        let Kept { directory, credentials } = serde_json::from_slice(&text)
            .with_context(|| format!("{} cannot be read; remove it to begin anew", path.display()))?;
        if directory == config.directory {
            return builder()?.from_credentials(credentials).await.context("the authority does not answer");
        }
    }
    let contact = config.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let made = builder()?.create(&new, config.directory.clone(), None).await;
    let (account, credentials) = made.context("the authority gave no account")?;
    let kept = Kept { directory: config.directory.clone(), credentials };
    write(folder, ACCOUNT, &serde_json::to_vec(&kept)?)?;
    Ok(account)
}

/// An account and where it is.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    directory: String,
    credentials: AccountCredentials,
}

/// The certificate that answers the check of a name.
fn answer(name: &str, digest: &[u8]) -> anyhow::Result<CertifiedKey> {
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    // Not `from_der`: it looks into the certificate, and its extension is critical and strange to it.
    let key = provider().key_provider.load_private_key(key)?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

fn remove(folder: &Path, name: &str) -> anyhow::Result<()> {
    match std::fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a file that only this account may read, as a whole or not at all.
fn write(folder: &Path, name: &str, contents: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let context = || format!("cannot write {}", folder.join(name).display());
    std::fs::create_dir_all(folder).with_context(context)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).with_context(context)?;
    let partial = folder.join(format!("{name}.partial"));
    remove(folder, &format!("{name}.partial"))?;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
    file.as_mut().map_err(|error| std::io::Error::new(error.kind(), error.to_string())).with_context(context)?;
    let mut file = file?;
    file.write_all(contents).and_then(|()| file.sync_all()).with_context(context)?;
    std::fs::rename(&partial, folder.join(name)).with_context(context)
}

fn client(config: &AcmeConfig) -> anyhow::Result<reqwest::Client> {
    let authorities = match &config.authorities {
        Some(path) => {
            let read =
                std::fs::read(path).with_context(|| format!("FERROBASE_ACME_CA: cannot read {}", path.display()))?;
            reqwest::Certificate::from_pem_bundle(&read).context("FERROBASE_ACME_CA")?
        }
        None => Vec::new(),
    };
    let client = outgoing::client_trusting(&authorities);
    Ok(client.timeout(REQUEST_TIMEOUT).redirect(reqwest::redirect::Policy::none()).build()?)
}

/// The client that the rest of the server uses.
struct Http(reqwest::Client);

impl HttpClient for Http {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let request = reqwest::Request::try_from(request.map(reqwest::Body::wrap));
            let answer = client.execute(request.map_err(other)?).await.map_err(other)?;
            Ok(BytesResponse::from(http::Response::from(answer)))
        })
    }
}

fn other(error: reqwest::Error) -> Error {
    Error::Other(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
        let mut params = CertificateParams::new(["a.example".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 3, 32 - 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let days = |n: u64| Duration::from_secs(n * 24 * 3600);
        // January and February have 59 days, March 30 more.
        let end = renewal(certificate.der()).expect("its time").duration_since(UNIX_EPOCH).expect("later");
        let begin = Duration::from_secs(1_767_225_600);
        assert_eq!(end - begin, days(89) - days(89) / 3);
    }

    /// Found by a real authority: the check of key and certificate refused the extension.
    #[test]
    fn a_tls_alpn_challenge_is_answered_with_a_certificate_with_the_acme_extension() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let answer = answer("a.example", &[7; 32]).expect("an answer");
        let certificate = x509_cert::Certificate::from_der(&answer.cert[0]).expect("a certificate");
        let extensions = certificate.tbs_certificate.extensions.unwrap_or_default();
        let found = extensions.iter().find(|extension| extension.extn_id.to_string() == "1.3.6.1.5.5.7.1.31");
        let found = found.expect("acmeIdentifier");
        assert!(found.critical && found.extn_value.as_bytes().ends_with(&[7; 32]));
    }

    #[test]
    fn a_stored_certificate_is_used_until_there_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(["a.example".to_owned()]).expect("a name").self_signed(&key);
        let certificate = certificate.expect("a certificate");
        write(folder.path(), KEY, key.serialize_pem().as_bytes()).expect("written");
        write(folder.path(), CERTIFICATE, certificate.pem().as_bytes()).expect("written");
        let config = |names: &[&str]| AcmeConfig {
            domains: names.iter().map(|name| (*name).to_owned()).collect(),
            email: None,
            directory: String::new(),
            authorities: None,
        };
        assert!(kept(&config(&["a.example"]), folder.path()).is_none(), "it was not finished");
        write(folder.path(), NAMES, b"a.example").expect("written");
        assert!(kept(&config(&["a.example"]), folder.path()).is_some());
        let (_, due) = kept(&config(&["a.example", "b.example"]), folder.path()).expect("a certificate");
        assert_eq!(due, UNIX_EPOCH, "served until there is one for both names");
        let at = |directory: &str| AcmeConfig { directory: directory.to_owned(), ..config(&["a.example"]) };
        write(folder.path(), NAMES, b"https://tests.example/directory\na.example\n").expect("written");
        let due = |directory: &str| kept(&at(directory), folder.path()).expect("a certificate").1;
        assert!(due("https://tests.example/directory") > SystemTime::now());
        assert_eq!(due("https://real.example/directory"), UNIX_EPOCH, "served until the other authority gives one");
        let mode = std::fs::metadata(folder.path().join(KEY)).expect("the key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
