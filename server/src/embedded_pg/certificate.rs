//! The certificate of the embedded PostgreSQL: made once per cluster and signed by its own key.
//!
//! Encryption is optional (`sslmode=require`, which the Supabase CLI insists on for all but loopback addresses).
//! `sslmode=verify-full` works with `sslrootcert=<data folder>/db/server.crt`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use super::EmbeddedError;
use super::account::Account;

/// PostgreSQL's default names of the files in the cluster's folder.
const KEY: &str = "server.key";
const CERTIFICATE: &str = "server.crt";

/// Its subject names. The server listens on loopback only.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Creates key and certificate if one of them is missing.
pub fn ensure(db: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    let (key_file, certificate_file) = (db.join(KEY), db.join(CERTIFICATE));
    if key_file.exists() && certificate_file.exists() {
        return Ok(());
    }
    let failed = |error| EmbeddedError::io("cannot make", &certificate_file)(std::io::Error::other(error));
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned)).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "Ferrobase's embedded PostgreSQL");
    // It is never renewed, because clients that trust it have copied it.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 12, 31);
    let certificate = params.self_signed(&key).map_err(failed)?;
    // The certificate is written last: if both exist, they belong together.
    write(&key_file, &key.serialize_pem(), account)?;
    write(&certificate_file, &certificate.pem(), account)
}

fn write(path: &Path, pem: &str, account: Option<&Account>) -> Result<(), EmbeddedError> {
    let partial = path.with_extension("partial");
    let _ = std::fs::remove_file(&partial);
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)
        .and_then(|mut file| file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()))
        .map_err(EmbeddedError::io("cannot write", &partial))?;
    if let Some(account) = account {
        account.own(&partial)?;
    }
    std::fs::rename(&partial, path).map_err(EmbeddedError::io("cannot write", path))
}
