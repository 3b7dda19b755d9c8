//! Full and read-only disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

use super::{client, during, report, setting, settled, started, writes_again};
use crate::support::binary::SERVICE_KEY;
use crate::support::server_process::ServerProcess;

/// A small disk in memory, unmounted when dropped. `None` if mounting is not permitted.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mounted(at: &Path, megabytes: u32) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a folder");
        let options = format!("size={megabytes}m,mode=0755");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "chaos"]).arg(at).output();
        done.is_ok_and(|done| done.status.success()).then(|| Self(at.to_owned()))
    }

    /// Whether it could be remounted read-only or writable.
    fn remount(&self, how: &str) -> bool {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).output();
        done.is_ok_and(|done| done.status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// The disk of the files is full, then read-only; the disk of everything is full. Once there is room again, everything
/// continues.
#[actix_web::test]
async fn a_full_or_read_only_disk_loses_nothing_and_is_recovered_from() {
    let seed = setting("CHAOS_SEED", 7);
    let root = std::env::temp_dir().join(format!("ferrobase-small-disk-{}", std::process::id()));
    let Some(whole) = SmallDisk::mounted(&root, 400) else {
        println!("nothing may be mounted here: not tried");
        return;
    };
    // Also visible to PostgreSQL's user.
    let files = SmallDisk::mounted(&root.join("files"), 8).expect("a second disk");
    let http = client();
    let mut server = ServerProcess::at(root.clone());
    let (url, mut writers) = started(&mut server, &http, seed).await;
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in ["full disk of the files", "read-only disk of the files", "full disk of database and files"] {
        *faults.entry(fault).or_default() += 1;
        let ballast = if fault.ends_with("and files") { root.join("ballast") } else { root.join("files/ballast") };
        let (files, http, url, base) = (&files, &http, &url, server.base());
        let at = ballast.clone();
        during(&mut writers, async move {
            if fault.starts_with("read-only") {
                // A file being written keeps the disk writable, so this waits for a moment between two of them.
                let deadline = Instant::now() + Duration::from_secs(30);
                while !files.remount("ro") {
                    assert!(Instant::now() < deadline, "it stays writable");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            } else {
                // Filled to the last block, even if other files are removed meanwhile.
                let _ = Command::new("sh").args(["-c", &format!("cat /dev/zero > {}", at.display())]).output();
            }
            if fault.ends_with("and files") {
                // PostgreSQL uses space that it has allocated before, until it needs more.
                let (owner, connection) = tokio_postgres::connect(url, NoTls).await.expect("a login");
                tokio::spawn(connection);
                let bulk =
                    "create temporary table bulk as select repeat(md5(n::text), 3000) from generate_series(1, 2000) n";
                assert!(owner.batch_execute(bulk).await.is_err(), "the disk is not full");
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            // The server is alive and reports what it can.
            let live = http.get(format!("{base}/auth/v1/health")).header("apikey", SERVICE_KEY).send().await;
            assert!(live.is_ok_and(|answer| answer.status() == 200), "{fault}: the server is gone");
            if fault.starts_with("read-only") {
                assert!(files.remount("rw"), "writable again");
            } else {
                std::fs::remove_file(&at).expect("room again");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        })
        .await;
        server.ready(http).await;
        settled(url).await;
        for writer in &mut writers {
            writer.check(fault).await;
        }
        writes_again(&mut writers, fault).await;
    }
    report(&format!("Disks, seed {seed}"), &faults, &writers);
    drop(server);
    drop(files);
    drop(whole);
    let _ = std::fs::remove_dir_all(root);
}
