//! The data directory: created once, checked before every start, cleaned after a crash.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::EmbeddedError;
use super::account::{Account, command};
use super::binaries::Binaries;
use super::roles::{ADMIN, Roles};

/// A new cluster takes about 40 MiB and its first write-ahead log 16 MiB; the rest is working space.
const NEEDED_NEW_MIB: u64 = 160;
/// An existing cluster must at least be able to write its next log segments.
const NEEDED_EXISTING_MIB: u64 = 48;

/// Creates the cluster in `db` with this superuser, or checks that an existing one matches `major` and the current
/// user.
pub async fn ensure(
    db: &Path,
    binaries: &Binaries,
    major: &str,
    account: Option<&Account>,
    roles: &Roles,
) -> Result<(), EmbeddedError> {
    let parent = db.parent().unwrap_or(db);
    if !db.exists() {
        require_room(parent, NEEDED_NEW_MIB)?;
        return create(db, binaries, major, account, &roles.password_for_new()).await;
    }
    let version_file = db.join("PG_VERSION");
    let cluster = match std::fs::read_to_string(&version_file) {
        Ok(text) => text.trim().to_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Err(foreign(db)),
        Err(_) => return Err(EmbeddedError::NotACluster { dir: db.to_owned() }),
    };
    if cluster != major {
        return Err(EmbeddedError::OtherMajorVersion { dir: db.to_owned(), cluster, binaries: major.to_owned() });
    }
    let runs_as = account.map_or_else(|| rustix::process::geteuid().as_raw(), |a| a.uid);
    if std::fs::metadata(db).is_ok_and(|m| m.uid() != runs_as) {
        return Err(foreign(db));
    }
    require_room(db, NEEDED_EXISTING_MIB)
}

fn foreign(db: &Path) -> EmbeddedError {
    let owner = std::fs::metadata(db).map_or(0, |m| m.uid());
    EmbeddedError::ForeignCluster { dir: db.to_owned(), owner }
}

/// Runs `initdb` beside the final place and renames, so that an interrupted run leaves no partial cluster.
async fn create(
    db: &Path,
    binaries: &Binaries,
    major: &str,
    account: Option<&Account>,
    admin_password: &str,
) -> Result<(), EmbeddedError> {
    clear_partial(db).await?;
    let partial = db.with_extension("partial");
    let password = db.with_extension("password");
    std::fs::DirBuilder::new().mode(0o700).create(&partial).map_err(EmbeddedError::io("cannot create", &partial))?;
    let _ = std::fs::remove_file(&password);
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&password)
        .and_then(|mut file| std::io::Write::write_all(&mut file, admin_password.as_bytes()))
        .map_err(EmbeddedError::io("cannot write", &password))?;
    if let Some(account) = account {
        account.own(&partial)?;
        account.own(&password)?;
    }
    let locale: &[&str] = if major.parse::<u32>().unwrap_or(0) >= 17 {
        &["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    } else {
        &["--locale=C.UTF-8"]
    };
    let output = command(&binaries.dir.join("initdb"), account)
        .arg("-D")
        .arg(&partial)
        .args(["-U", ADMIN, "-A", "scram-sha-256", "--encoding=UTF8", "--data-checksums"])
        .arg("--pwfile")
        .arg(&password)
        .args(locale)
        .env("LC_ALL", "C")
        .current_dir(db.parent().unwrap_or(db))
        // If the server is stopped in the middle, it does not wait; the next start begins again.
        .kill_on_drop(true)
        .output()
        .await
        .map_err(EmbeddedError::io("cannot run", binaries.dir.join("initdb")))?;
    let _ = std::fs::remove_file(&password);
    if !output.status.success() {
        let _ = std::fs::remove_dir_all(&partial);
        let text = String::from_utf8_lossy(&output.stderr);
        if text.contains("No space left on device") {
            return Err(disk_full(db.parent().unwrap_or(db), NEEDED_NEW_MIB));
        }
        return Err(EmbeddedError::Init { dir: db.to_owned(), reason: telling_line(&text) });
    }
    std::fs::rename(&partial, db).map_err(EmbeddedError::io("cannot create", db))
}

/// Removes the remains of interrupted creations of `db`. An `initdb` that outlived its server may still write there, so
/// it is ended first.
async fn clear_partial(db: &Path) -> Result<(), EmbeddedError> {
    let parent = db.parent().unwrap_or(db);
    let prefix = format!("{}.partial", db.file_name().unwrap_or_default().to_string_lossy());
    let Ok(entries) = std::fs::read_dir(parent) else { return Ok(()) };
    let left = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    for partial in left.map(|entry| entry.path()) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        loop {
            let writing = processes_that_name(&partial);
            signal_all(&writing, Signal::KILL);
            // Without writers the removal is final; otherwise new files may appear during it.
            match std::fs::remove_dir_all(&partial) {
                Ok(()) if writing.is_empty() => break,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                Err(error) if tokio::time::Instant::now() > deadline => {
                    return Err(EmbeddedError::io("cannot remove", &partial)(error));
                }
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
    Ok(())
}

/// `initdb` and its servers have the directory among their arguments, or as working directory.
#[cfg(target_os = "linux")]
fn processes_that_name(dir: &Path) -> Vec<Pid> {
    let wanted = dir.as_os_str().as_encoded_bytes();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| *pid != rustix::process::getpid())
        .filter(|pid| {
            let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
            std::fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd == dir)
                || std::fs::read(proc.join("cmdline"))
                    .is_ok_and(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == wanted))
        })
        .collect()
}

/// Without `/proc`, `ps` shows the arguments; processes that only work in the directory end with their parent.
#[cfg(not(target_os = "linux"))]
fn processes_that_name(dir: &Path) -> Vec<Pid> {
    let listing = std::process::Command::new("ps").args(["-axo", "pid=,command="]).output();
    listing.map_or_else(|_| Vec::new(), |listing| named_in(&String::from_utf8_lossy(&listing.stdout), dir))
}

/// The processes in `ps` with the directory as an argument.
#[cfg(any(test, not(target_os = "linux")))]
fn named_in(listing: &str, dir: &Path) -> Vec<Pid> {
    let wanted = dir.to_string_lossy();
    let names = |command: &str| {
        command
            .split_once(&*wanted)
            .is_some_and(|(before, after)| before.ends_with(' ') && (after.is_empty() || after.starts_with(' ')))
    };
    listing
        .lines()
        .filter_map(|line| line.trim_start().split_once(' '))
        .filter(|(_, command)| names(command))
        .filter_map(|(pid, _)| Pid::from_raw(pid.parse().ok()?))
        .filter(|pid| *pid != rustix::process::getpid())
        .collect()
}

/// The answer to connections while PostgreSQL starts, recovers or ends.
const NOT_YET: &str = "FATAL:  the database system is ";

/// The most informative line of PostgreSQL's output: what ended it, else the last error, else the last line.
pub fn telling_line(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains(NOT_YET));
    let last = |marks: [&str; 2]| lines().rfind(|line| marks.iter().any(|mark| line.contains(mark)));
    let line = last(["FATAL:", "PANIC:"])
        .or_else(|| last(["error:", "could not"]))
        .or_else(|| lines().next_back())
        .unwrap_or("it said nothing");
    // Drops the time and process at the beginning of a log line.
    ["FATAL:  ", "PANIC:  ", "error: "]
        .iter()
        .find_map(|mark| line.split_once(mark).map(|(_, rest)| rest))
        .unwrap_or(line)
        .to_owned()
}

fn free_mib(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) >> 20)
}

pub fn disk_full(dir: &Path, needed_mib: u64) -> EmbeddedError {
    EmbeddedError::DiskFull { dir: dir.to_owned(), free_mib: free_mib(dir).unwrap_or(0), needed_mib }
}

fn require_room(dir: &Path, needed_mib: u64) -> Result<(), EmbeddedError> {
    match free_mib(dir) {
        Some(free) if free < needed_mib => Err(disk_full(dir, needed_mib)),
        _ => Ok(()),
    }
}

/// Cleans up after a killed server: ends a running postmaster or the last backends of a killed one, and
/// removes a pid file whose process is gone or belongs to something else.
///
/// Only called while holding the data directory's lock, so no living server owns these processes.
pub async fn clear_leftovers(db: &Path) -> Result<(), EmbeddedError> {
    let pid_file = db.join("postmaster.pid");
    let mut found = processes_in(db);
    if let Some(pid) = pid_in(&pid_file)
        && is_postgres_of(pid, db)
        && !found.contains(&pid)
    {
        found.push(pid);
    }
    if !found.is_empty() {
        tracing::info!(processes = found.len(), "stopping the database processes that an earlier server left behind");
        // Fast shutdown for an orphaned postmaster; orphaned backends are ended by the immediate one below.
        signal_all(&found, Signal::INT);
        if !gone_within(db, &found, Duration::from_secs(20)).await {
            signal_all(&found, Signal::QUIT);
            if !gone_within(db, &found, Duration::from_secs(10)).await {
                signal_all(&found, Signal::KILL);
                gone_within(db, &found, Duration::from_secs(5)).await;
            }
        }
    }
    match std::fs::remove_file(&pid_file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("cannot remove the stale", &pid_file)(e))
        }
        _ => Ok(()),
    }
}

/// Ends whatever works in `folder` or below it.
pub async fn end_workers(folder: &Path) {
    let Ok(folder) = std::fs::canonicalize(folder) else { return };
    let begun = tokio::time::Instant::now();
    loop {
        let found = working_below(&folder);
        if found.is_empty() || begun.elapsed() > Duration::from_secs(20) {
            return;
        }
        for (pid, is_postgres) in found {
            // PostgreSQL releases its shared memory if it may.
            let may = is_postgres && begun.elapsed() < Duration::from_secs(10);
            signal_all(&[pid], if may { Signal::QUIT } else { Signal::KILL });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Processes whose working directory is `folder` or below it, and whether they are PostgreSQL's.
#[cfg(target_os = "linux")]
fn working_below(folder: &Path) -> Vec<(Pid, bool)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| *pid != rustix::process::getpid())
        .filter(|pid| {
            let cwd = std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
            cwd.is_ok_and(|cwd| cwd.starts_with(folder))
        })
        .map(|pid| (pid, program_is_postgres(pid)))
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn working_below(_folder: &Path) -> Vec<(Pid, bool)> {
    Vec::new()
}

fn signal_all(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // Already gone is fine.
        let _ = kill_process(*pid, signal);
    }
}

async fn gone_within(db: &Path, pids: &[Pid], limit: Duration) -> bool {
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if !pids.iter().any(|pid| is_postgres_of(*pid, db)) {
            return true;
        }
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether PostgreSQL runs in `db`, as its `postmaster.pid` says. A process that does not show where it works counts as PostgreSQL.
///
/// Errors: whether there is such a file, or what it says, is hidden from this user.
pub fn is_running(db: &Path) -> std::io::Result<bool> {
    let text = match std::fs::read_to_string(db.join("postmaster.pid")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        text => text?,
    };
    Ok(first_pid(&text).is_some_and(|pid| is_postgres_of(pid, db) || hides_its_directory(pid)))
}

fn pid_in(pid_file: &Path) -> Option<Pid> {
    first_pid(&std::fs::read_to_string(pid_file).ok()?)
}

/// The first line of `postmaster.pid`.
fn first_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
}

/// From root in a container, for example, the processes of other users do.
#[cfg(target_os = "linux")]
fn hides_its_directory(pid: Pid) -> bool {
    let cwd = std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
    cwd.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

#[cfg(not(target_os = "linux"))]
fn hides_its_directory(_pid: Pid) -> bool {
    false
}

/// Every PostgreSQL process works in its data directory, which `/proc` shows.
#[cfg(target_os = "linux")]
fn is_postgres_of(pid: Pid, db: &Path) -> bool {
    let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let is_zombie = std::fs::read_to_string(proc.join("stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')));
    let canonical = std::fs::canonicalize(db);
    !is_zombie && canonical.is_ok_and(|db| std::fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd == db))
}

#[cfg(not(target_os = "linux"))]
fn is_postgres_of(pid: Pid, db: &Path) -> bool {
    let output =
        std::process::Command::new("ps").args(["-o", "command=", "-p", &pid.as_raw_nonzero().to_string()]).output();
    output.is_ok_and(|out| {
        let line = String::from_utf8_lossy(&out.stdout).into_owned();
        line.contains("postgres") && line.contains(&*db.to_string_lossy())
    })
}

#[cfg(target_os = "linux")]
fn processes_in(db: &Path) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| is_postgres_of(*pid, db) && program_is_postgres(*pid))
        .collect()
}

/// Do not end a shell that happens to be in the data directory.
#[cfg(target_os = "linux")]
fn program_is_postgres(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).is_ok_and(|c| c.starts_with("postgres"))
}

#[cfg(not(target_os = "linux"))]
fn processes_in(_db: &Path) -> Vec<Pid> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_recognized_by_the_directory_in_their_arguments() {
        let listing = "    1 /sbin/launchd\n  501 /opt/pg/bin/initdb -D /data/my db.partial -U supabase_admin\n\
                       \u{20} 502 /opt/pg/bin/postgres --boot -D /data/my db.partial\n\
                       \u{20} 503 postgres -D /data/my db\n  504 ls /data/my db.partial-2\n";
        let found = named_in(listing, Path::new("/data/my db.partial"));
        let found: Vec<_> = found.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [501, 502]);
    }

    #[test]
    fn the_reported_line_is_the_error_without_its_prefix() {
        let log = "2026-01-01 00:00:00 UTC [7] LOG:  starting\n\
                   2026-01-01 00:00:00 UTC [7] FATAL:  data directory \"/x\" has invalid permissions\n\
                   2026-01-01 00:00:00 UTC [7] DETAIL:  Permissions should be u=rwx (0700).\n";
        assert_eq!(telling_line(log), "data directory \"/x\" has invalid permissions");
        assert_eq!(telling_line("initdb: error: directory exists\ninitdb: hint: x"), "directory exists");
        assert_eq!(telling_line("\n"), "it said nothing");
        // What our own attempts to connect were told, after the reason and before it.
        let told = "2026-01-01 00:00:00 UTC [8] FATAL:  the database system is not accepting connections\n\
                    2026-01-01 00:00:00 UTC [8] DETAIL:  Hot standby mode is disabled.\n";
        let reason =
            "2026-01-01 00:00:00 UTC [7] FATAL:  recovery ended before configured recovery target was reached\n";
        // What the other processes could not do any more after it.
        let then = "2026-01-01 00:00:00 UTC [9] LOG:  could not send to the statistics collector\n";
        for log in [format!("{told}{reason}{told}"), format!("{reason}{told}"), format!("{reason}{then}")] {
            assert_eq!(telling_line(&log), "recovery ended before configured recovery target was reached");
        }
    }
}
