//! The copy of a cluster, which can be given up at any moment.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, lchown};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::super::UpgradeError;
use crate::backup::StopFlag;

/// How much is copied before it is asked again whether the copy was given up.
const CHUNK: u64 = 16 << 20;

/// Copies a folder with modes and owners. If this is dropped, the copy has ended by then.
pub async fn copy(from: PathBuf, to: PathBuf) -> Result<(), UpgradeError> {
    let stop_flag = StopFlag::default();
    let asked = stop_flag.clone();
    let (tell, copied) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        // Nobody listens if the copy was given up.
        let _ = tell.send(copy_folder(&from, &to, &asked));
    });
    let _copying = Copying { stop_flag, thread: Some(thread) };
    copied.await.map_err(|_| UpgradeError::Stopped)?
}

/// Stops the copy when dropped, and waits for that: what is given up is removed next, and would be written again.
struct Copying {
    stop_flag: StopFlag,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.stop_flag.set();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

fn copy_folder(from: &Path, to: &Path, stop_flag: &StopFlag) -> Result<(), UpgradeError> {
    let read = || UpgradeError::io("cannot read", from);
    let metadata = std::fs::metadata(from).map_err(read())?;
    DirBuilder::new()
        .mode(metadata.mode() & 0o777)
        .create(to)
        .and_then(|()| keep_owner(&metadata, to))
        .map_err(UpgradeError::io("cannot create", to))?;
    for entry in std::fs::read_dir(from).map_err(read())? {
        let entry = entry.map_err(read())?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(UpgradeError::io("cannot read", &source))?;
        if kind.is_dir() {
            copy_folder(&source, &target, stop_flag)?;
        } else if kind.is_file() {
            copy_file(&source, &target, stop_flag).map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionAborted => UpgradeError::Stopped,
                _ => UpgradeError::io("cannot copy to", target)(error),
            })?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, stop_flag: &StopFlag) -> io::Result<()> {
    let mut source = File::open(from)?;
    let metadata = source.metadata()?;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(metadata.mode() & 0o777).open(to)?;
    loop {
        stop_flag.check()?;
        if io::copy(&mut source.by_ref().take(CHUNK), &mut target)? == 0 {
            target.set_permissions(metadata.permissions())?;
            return keep_owner(&metadata, to);
        }
    }
}

/// Only root can change owners. The copies of other users belong to them anyway.
fn keep_owner(of: &std::fs::Metadata, to: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    lchown(to, Some(of.uid()), Some(of.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn everything_is_copied_with_its_mode() {
        let root = tempfile::tempdir().expect("a folder");
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        std::fs::create_dir_all(from.join("base/1")).expect("a folder");
        let content = vec![7; usize::try_from(CHUNK).expect("a size") + 9];
        for (name, content) in [("PG_VERSION", &b"17"[..]), ("base/1/empty", b""), ("base/1/large", &content)] {
            std::fs::write(from.join(name), content).expect("a file");
            std::fs::set_permissions(from.join(name), std::fs::Permissions::from_mode(0o600)).expect("its mode");
        }
        std::fs::set_permissions(from.join("base"), std::fs::Permissions::from_mode(0o700)).expect("its mode");
        copy(from, to.clone()).await.expect("copied");
        assert!(std::fs::read(to.join("base/1/large")).expect("a file") == content);
        assert_eq!(std::fs::read(to.join("base/1/empty")).expect("a file"), b"");
        let mode = |name: &str| std::fs::metadata(to.join(name)).expect("it").permissions().mode() & 0o777;
        assert_eq!((mode("PG_VERSION"), mode("base")), (0o600, 0o700));
        let again = copy(root.path().join("from"), to).await.expect_err("it exists").to_string();
        assert!(again.contains("cannot create"), "{again}");
    }

    /// The copy went on, while its folder was being removed.
    #[tokio::test]
    async fn a_copy_that_was_given_up_writes_nothing_more() {
        let root = tempfile::tempdir().expect("a folder");
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        std::fs::create_dir(&from).expect("a folder");
        for number in 0..20_000 {
            std::fs::write(from.join(number.to_string()), "x").expect("a file");
        }
        let copying = copy(from, to.clone());
        assert!(tokio::time::timeout(Duration::from_millis(5), copying).await.is_err(), "it takes longer");
        let count = || std::fs::read_dir(&to).map_or(0, Iterator::count);
        let copied = count();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(count(), copied);
        assert!(copied < 20_000);
    }
}
