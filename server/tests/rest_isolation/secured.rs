//! Database connections with libpq's parameters, and PostgREST's configuration file: `serve --only rest` as a process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::cluster::{Database, Template};
use crate::support::ports::free_port;

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls").join(name)
}

/// A TLS port in front of the PostgreSQL at `address`, with a certificate for 127.0.0.1 and localhost.
async fn encrypted(address: String) -> u16 {
    let chain = CertificateDer::pem_file_iter(certificate("server.pem")).expect("a file");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate with its key");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (acceptor, address) = (acceptor.clone(), address.clone());
            tokio::spawn(async move {
                let mut request = [0; 8];
                client.read_exact(&mut request).await?;
                assert_eq!(request[4..], 80_877_103u32.to_be_bytes(), "SSLRequest");
                client.write_all(b"S").await?;
                let mut client = acceptor.accept(client).await?;
                let mut database = TcpStream::connect(address).await?;
                copy_bidirectional(&mut client, &mut database).await
            });
        }
    });
    port
}

struct Server {
    child: Child,
    base: String,
    folder: tempfile::TempDir,
}

impl Server {
    /// With a settings file, given by `--config` or as an argument.
    fn start(uri: &str, by_option: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let settings = format!(
            "# PostgREST's own\ndb-uri = \"{uri}\"\ndb-anon-role = \"studio_visitor\"\ndb-schemas = \"public\"\n\
             server-host = \"127.0.0.1\"\nserver-port = {port}\ndb-pool = 2\ndb-pool-acquisition-timeout = 2\n"
        );
        let file = folder.path().join("postgrest.conf");
        std::fs::write(&file, settings).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
        command.args(["serve", "--only", "rest"]);
        if by_option {
            command.arg("--config");
        }
        let errors = std::fs::File::create(folder.path().join("stderr")).expect("a file");
        let child = command
            .arg(&file)
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("the server starts");
        Self { child, base: format!("http://127.0.0.1:{port}"), folder }
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// 200, or the error without a database or after an early end.
    async fn outcome(mut self) -> Result<(), String> {
        let since = Instant::now();
        loop {
            let answer = reqwest::get(format!("{}/clients?select=id&id=eq.1", self.base)).await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return Ok(());
            }
            let has_ended = self.child.try_wait().expect("a child").is_some();
            if has_ended || self.errors().contains("certificate") || since.elapsed() > Duration::from_secs(40) {
                return Err(self.errors());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_databases_certificate_is_checked_where_libpq_checks_it() {
    let database = Database::new(Template::Studio).await;
    let url = url::Url::parse(&database.url).expect("a url");
    let address = format!("{}:{}", url.host_str().expect("a host"), url.port().expect("a port"));
    let port = encrypted(address).await;
    let name = url.path().trim_start_matches('/').to_owned();
    let (authority, other) = (certificate("authority.pem"), certificate("server.pem"));
    let (authority, other) = (authority.display(), other.display());
    // Host names that are not in the certificate, at the same address.
    let elsewhere =
        format!("host=db.example hostaddr=127.0.0.1 port={port} user=studio_gate password=pass dbname={name}");
    let here = format!("postgresql://studio_gate:pass@127.0.0.1:{port}/{name}");
    let encoding = "client_encoding=latin1";
    let cases = [
        (format!("{here}?sslmode=require&{encoding}"), None),
        (format!("{here}?sslmode=verify-full&sslrootcert={authority}"), None),
        (format!("{elsewhere} sslmode=verify-ca sslrootcert={authority}"), None),
        (format!("{elsewhere} sslmode=require sslrootcert=/nowhere"), None),
        (format!("{elsewhere} sslmode=verify-full sslrootcert={authority}"), Some("certificate")),
        (format!("{here}?sslmode=verify-ca&sslrootcert={other}"), Some("certificate")),
        (format!("{here}?sslmode=require&sslrootcert={other}"), Some("certificate")),
        (format!("{here}?sslmode=verify-full"), Some("root certificate file")),
    ];
    for (number, (uri, fault)) in cases.into_iter().enumerate() {
        let outcome = Server::start(&uri, number % 2 == 0).outcome().await;
        match fault {
            None => assert_eq!(outcome, Ok(()), "{uri}"),
            Some(fault) => assert!(outcome.as_ref().is_err_and(|said| said.contains(fault)), "{uri}: {outcome:?}"),
        }
    }
}
