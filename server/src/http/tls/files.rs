//! A certificate in files that somebody else renews.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use rustls::sign::CertifiedKey;

use super::{Certificates, certified};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What tells that a file has changed: its time, its length, and which file it is, since a link may be moved to another.
type Stamp = Option<(SystemTime, u64, u64)>;

pub fn read(chain: &Path, key: &Path) -> anyhow::Result<CertifiedKey> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    certified(&read(chain)?, &read(key)?)
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let known = std::fs::metadata(path).ok()?;
    Some((known.modified().ok()?, known.len(), known.ino()))
}

/// Uses the files' new contents when both have been replaced. Contents that are not usable change nothing.
pub async fn follow(chain: PathBuf, key: PathBuf, certificates: Arc<Certificates>) {
    let stamps = || (stamp(&chain), stamp(&key));
    let (mut used, mut refused) = (stamps(), None);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let found = stamps();
        if found == used || Some(found) == refused {
            continue;
        }
        match read(&chain, &key) {
            Ok(read) => {
                certificates.current.store(Some(Arc::new(read)));
                used = found;
                tracing::info!(certificate = %chain.display(), "the certificate was replaced");
            }
            Err(error) => {
                // Perhaps only one of the two has been replaced yet.
                refused = Some(found);
                tracing::warn!(error = format!("{error:#}"), "the new certificate cannot be used; the old one stays");
            }
        }
    }
}
