//! The certificate of the embedded PostgreSQL: made once per cluster and signed by its own key.
//!
//! Whoever asks for encryption gets it (`sslmode=require`, which the Supabase CLI insists on at any address that is not its
//! own). `sslmode=verify-full` works with `sslrootcert=<data folder>/db/server.crt`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use super::EmbeddedError;
use super::account::Account;

/// PostgreSQL's own names for them, in the cluster's folder.
const KEY: &str = "server.key";
const CERTIFICATE: &str = "server.crt";

/// Whom it names: the server listens on loopback alone.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Makes key and certificate where one of them is missing.
pub fn ensure(db: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    let (key_file, certificate_file) = (db.join(KEY), db.join(CERTIFICATE));
    if key_file.exists() && certificate_file.exists() {
        return Ok(());
    }
    let failed = |error| EmbeddedError::io("cannot make", &certificate_file)(std::io::Error::other(error));
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned)).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "Ferrobase's embedded PostgreSQL");
    // Nobody renews it: whoever trusts it has copied it from here.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 12, 31);
    let certificate = params.self_signed(&key).map_err(failed)?;
    // The certificate last: with both there, they belong together.
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
