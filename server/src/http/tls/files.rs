//! A certificate in files that somebody else renews.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use rustls::sign::CertifiedKey;

use super::{Certificates, certified};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// When files that could not be used are read again although they look the same.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// What tells that a file has changed: the time of its contents, its length, which file it is, since a link may be moved to another,
/// and the time of its rights, since it may become readable only later.
type Stamp = Option<(SystemTime, u64, u64, (i64, i64))>;

pub fn read(chain: &Path, key: &Path) -> anyhow::Result<CertifiedKey> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    certified(&read(chain)?, &read(key)?)
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let known = std::fs::metadata(path).ok()?;
    Some((known.modified().ok()?, known.len(), known.ino(), (known.ctime(), known.ctime_nsec())))
}

/// Uses the files' new contents when both have been replaced. Contents that are not usable change nothing.
pub async fn follow(chain: PathBuf, key: PathBuf, certificates: Arc<Certificates>) {
    let stamps = || (stamp(&chain), stamp(&key));
    let (mut used, mut refused) = (stamps(), None::<((Stamp, Stamp), Instant)>);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let found = stamps();
        let is_refused = |(stamps, at): ((Stamp, Stamp), Instant)| stamps == found && at.elapsed() < READ_AGAIN;
        if found == used || refused.is_some_and(is_refused) {
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
                refused = Some((found, Instant::now()));
                tracing::warn!(error = format!("{error:#}"), "the new certificate cannot be used; the old one stays");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Regression: a tool wrote the key for itself alone, and only then gave others the right to read it. The old one was used on.
    #[test]
    fn new_rights_count_as_a_change() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let before = stamp(file.path());
        assert_eq!(stamp(file.path()), before);
        // The clock of files ticks every few milliseconds.
        std::thread::sleep(Duration::from_millis(50));
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).expect("its mode");
        assert_ne!(stamp(file.path()), before);
    }
}
