//! Restores an archive. It is read to its end and checked against its manifest, then unpacked beside the target and recovered by
//! PostgreSQL. Only a complete copy replaces the target.
//!
//! The cluster is moved into place by one rename at the very end. Files of objects are added before that: their names contain
//! their versions, so none replaces another, and files without a row are swept. So the data in place is complete at any time,
//! either the former or the restored.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::archive::{self, Item, Manifest};
use super::backup_store::{self, BackupStore};
use super::error::BackupError;
use super::log::{Piece, RestorePoint, covering, parse_lsn};
use super::program::Running;
use super::stop_flag::StopFlag;
use super::{age::Identity, blocking, cluster, files, keys, log};
use crate::embedded_pg::{self, BEFORE_RESTORE, EmbeddedError, EmbeddedOptions, EmbeddedPostgres, Passwords, Site};
use crate::owner;

/// Folder for unpacking, below the data root and below the folder of files. The sweep and the next backup skip names that begin
/// with a dot.
const STAGING: &str = ".restoring";

/// How long PostgreSQL may take to replay the WAL.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// PostgreSQL's message if the WAL has no commit after the requested point in time.
const NOTHING_LATER: &str = "recovery ended before configured recovery target was reached";

/// Where an archive is restored to.
#[derive(Clone, Debug)]
pub struct Target {
    pub embedded: EmbeddedOptions,
    /// The folder of the files of objects.
    pub files: PathBuf,
    /// Whether existing data may be replaced.
    pub replace: bool,
    /// `pg_combinebackup`, for incremental archives; or why there is none.
    pub combine: Result<PathBuf, String>,
}

/// The WAL archive to replay after the backup, and up to which point.
#[derive(Clone, Debug)]
pub struct LogFrom {
    pub backup_store: BackupStore,
    pub moment: RestorePoint,
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    pub manifest: Manifest,
    /// The point in time that was restored.
    pub as_of: DateTime<Utc>,
    /// The folder of the cluster.
    pub cluster: PathBuf,
    /// Where the former cluster was moved to, if there was one.
    pub former: Option<PathBuf>,
    /// Files of objects.
    pub files: usize,
    /// The keys that the backup was made with, in `.env` format.
    pub keys: String,
}

/// The last step of a restore, which puts the data in place. Once it has begun, only its result says whether the data was replaced.
#[derive(Clone, Debug, Default)]
pub struct Placing(Arc<OnceLock<StopFlag>>);

impl Placing {
    fn begin(&self, stop_flag: &StopFlag) {
        // A restore ends with this step, so it is only begun once.
        let _ = self.0.set(stop_flag.clone());
    }

    /// Asks for it to stop, if it has begun: then the restore has to be awaited. Otherwise it can be dropped.
    pub fn stop(&self) -> bool {
        let begun = self.0.get();
        begun.inspect(|stop_flag| stop_flag.set()).is_some()
    }
}

/// Restores the last of `archives`, and replays the WAL after it if `log` is given. If it is incremental, those before it are its
/// parents, the full one first. If the restore fails, is stopped or is killed, the target is unchanged; the exception is `placing`.
pub async fn restore(
    archives: &[PathBuf],
    identities: &[Identity],
    target: &Target,
    log: Option<&LogFrom>,
    placing: &Placing,
) -> Result<Restored, BackupError> {
    let stop_flag = StopFlag::default();
    let _given_up = stop_flag.on_drop();
    if identities.is_empty() {
        return Err(BackupError::NoIdentity);
    }
    // Read all of them before anything is written.
    let (archive, manifest) = read_all(archives, identities, &stop_flag).await?;
    let archive = archive.as_path();
    let pieces = match log {
        Some(log) => pieces_after(archive, &manifest, log).await?,
        None => Vec::new(),
    };
    let site = Site::claim(&target.embedded).await?;
    if manifest.dump {
        return Err(BackupError::IsDump { archive: archive.to_owned() });
    }
    if site.major != manifest.postgres {
        return Err(BackupError::OtherMajorVersion {
            archive: archive.to_owned(),
            archived: manifest.postgres,
            binaries: site.major,
        });
    }
    if !target.replace {
        require_empty(&site, &target.files)?;
    }
    // A killed restore may have left its PostgreSQL running.
    embedded_pg::end_leftovers(&site.root.join(STAGING)).await?;
    let combine = match (archives.len(), &target.combine) {
        (0 | 1, _) => None,
        (_, Ok(program)) => Some(program.clone()),
        (_, Err(reason)) => return Err(BackupError::NoCombine(reason.clone())),
    };
    let (paths, keys, asked) = (archives.to_vec(), identities.to_vec(), stop_flag.clone());
    let files = target.files.clone();
    let (staged, mut restored_keys) = blocking(move || {
        let staged = Staged::begin(site, &files)?;
        let mut restored_keys = String::new();
        for (number, path) in paths.iter().enumerate() {
            restored_keys.clear();
            archive::read(path, &keys, &asked, |name, item| staged.take(name, item, &mut restored_keys))?;
            staged.require_cluster()?;
            if combine.is_some() {
                staged.set_part_aside(number)?;
            }
        }
        if let Some(program) = combine {
            staged.combine(&program, paths.len(), &asked)?;
            asked.check().map_err(BackupError::io("cannot write below", &staged.below_root))?;
        }
        Ok((staged, restored_keys))
    })
    .await?;
    let staged = match log {
        Some(log) => staged.take_pieces(&pieces, log, identities, &stop_flag).await?,
        None => staged,
    };
    let moment = log.map(|log| log.moment);
    staged.recover(&target.embedded, moment).await?;
    let as_of = match moment {
        Some(RestorePoint::At(time)) => time,
        _ => pieces.last().map_or(manifest.made_at, |piece| piece.time),
    };
    placing.begin(&stop_flag);
    blocking(move || staged.put_in_place(manifest, as_of, std::mem::take(&mut restored_keys), &stop_flag)).await
}

/// Reads the archives to their ends and checks that each continues the one before it. Returns the last one.
async fn read_all(
    archives: &[PathBuf],
    identities: &[Identity],
    stop_flag: &StopFlag,
) -> Result<(PathBuf, Manifest), BackupError> {
    let mut last: Option<(PathBuf, Manifest)> = None;
    for path in archives {
        let (read, keys, asked) = (path.clone(), identities.to_vec(), stop_flag.clone());
        let manifest = blocking(move || archive::read(&read, &keys, &asked, |_, _| Ok(()))).await?;
        let before = last.as_ref().and_then(|(path, _)| name_of(path));
        if manifest.parent != before {
            return Err(BackupError::Renamed { archive: path.clone() });
        }
        last = Some((path.clone(), manifest));
    }
    last.ok_or_else(|| BackupError::io("cannot read", "an archive")(ErrorKind::NotFound.into()))
}

/// The name of an archive; a copy of one in a bucket has a prefix.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    Some(name.strip_prefix(backup_store::COPY_PREFIX).unwrap_or(&name).to_owned())
}

/// The WAL pieces between the archive and the requested point in time.
async fn pieces_after(archive: &Path, manifest: &Manifest, log: &LogFrom) -> Result<Vec<Piece>, BackupError> {
    let no_log = || BackupError::NoLog { archive: archive.to_owned() };
    let chain = manifest.chain.as_deref().ok_or_else(no_log)?;
    let earliest = manifest.ended_at.unwrap_or(manifest.made_at);
    if matches!(log.moment, RestorePoint::At(time) if time < earliest) {
        return Err(BackupError::TooEarly { archive: archive.to_owned(), made_at: earliest });
    }
    let from = parse_lsn(&manifest.stop_lsn).ok_or_else(no_log)?;
    covering(&log.backup_store.names().await?, chain, from, log.moment)
}

/// Refuses a target that contains a database or files.
fn require_empty(site: &Site, files: &Path) -> Result<(), BackupError> {
    if site.cluster().exists() {
        return Err(BackupError::NotEmpty { dir: site.root.clone(), what: "a database" });
    }
    require_no_files(files)
}

/// Refuses a folder that contains files. Remains of an interrupted restore do not count.
pub fn require_no_files(files: &Path) -> Result<(), BackupError> {
    let entries = || std::fs::read_dir(files).into_iter().flatten().flatten();
    let is_ours = entries().any(|entry| entry.file_name() == STAGING);
    if !is_ours && entries().any(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
        return Err(BackupError::NotEmpty { dir: files.to_owned(), what: "files" });
    }
    Ok(())
}

/// Unpacked data that is not in place yet; removed when dropped.
struct Staged {
    site: Site,
    /// Below the data root: the cluster and the passwords.
    below_root: PathBuf,
    files: Unpacked,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Remains do no harm, and the next restore removes them.
        let _ = std::fs::remove_dir_all(&self.below_root);
    }
}

/// Files of objects that are unpacked but not in place yet; removed when dropped.
pub struct Unpacked {
    files: PathBuf,
    below: PathBuf,
    /// Whether files are in place already, while the restore may still fail.
    is_begun: bool,
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.below);
        if self.is_begun {
            // Has the next restore accept the files that this one has put in place.
            let _ = make_folders(&self.below);
        }
    }
}

/// Creates an empty folder, removing the remains of an interrupted restore.
fn make_empty(folder: &Path) -> Result<(), BackupError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(BackupError::io("cannot remove", folder)(error)),
        _ => make_folders(folder),
    }
}

impl Unpacked {
    /// Creates the staging folder below the folder of files.
    pub fn begin(files: &Path) -> Result<Self, BackupError> {
        make_folders(files)?;
        let below = files.join(STAGING);
        make_empty(&below)?;
        Ok(Self { files: files.to_owned(), below, is_begun: false })
    }

    /// Unpacks an entry. Files never change, so an existing one has the same content.
    pub fn take(&self, name: &str, content: &mut dyn Read) -> Result<(), BackupError> {
        let path = self.below.join(name.split_once('/').map_or(name, |(_, rest)| rest));
        path.parent().map_or(Ok(()), make_folders)?;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            file => file
                .and_then(|mut file| std::io::copy(content, &mut file).and_then(|_| sync_each(&file)))
                .map_err(BackupError::io("cannot write", &path)),
        }
    }

    /// Moves the files of objects into place, unless `check` fails. Returns how many there are.
    pub fn put(&mut self, check: impl Fn() -> std::io::Result<()>) -> Result<usize, BackupError> {
        sync_all(&self.below)?;
        let owner = std::fs::metadata(&self.files).map_err(BackupError::io("cannot read", &self.files))?;
        check().map_err(|_| BackupError::Stopped)?;
        self.is_begun = true;
        let mut count = 0;
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            let from = self.below.join(&inside);
            let to = self.files.join(&inside);
            make_folders(&to)?;
            own_as(&to, &owner)?;
            for entry in std::fs::read_dir(&from).map_err(BackupError::io("cannot read", &from))? {
                let entry = entry.map_err(BackupError::io("cannot read", &from))?;
                let kind = entry.file_type().map_err(BackupError::io("cannot read", entry.path()))?;
                if kind.is_dir() {
                    folders.push(inside.join(entry.file_name()));
                } else {
                    check().map_err(|_| BackupError::StoppedAmongFiles)?;
                    own_as(&entry.path(), &owner)?;
                    rename(&entry.path(), &to.join(entry.file_name()))?;
                    count += 1;
                }
            }
            sync_folder(&to)?;
        }
        Ok(count)
    }

    /// The restore succeeded.
    pub fn finish(&mut self) {
        self.is_begun = false;
    }
}

impl Staged {
    fn begin(site: Site, files: &Path) -> Result<Self, BackupError> {
        let below_root = site.root.join(STAGING);
        make_empty(&below_root)?;
        site.own(&below_root)?;
        Ok(Self { site, below_root, files: Unpacked::begin(files)? })
    }

    fn part(&self, number: usize) -> PathBuf {
        self.below_root.join(format!("part-{number}"))
    }

    /// Moves an unpacked cluster aside, to be combined with others. Passwords are those of the last archive.
    fn set_part_aside(&self, number: usize) -> Result<(), BackupError> {
        rename(&self.below_root.join(cluster::FOLDER), &self.part(number))?;
        for file in self.site.password_files() {
            let staged = self.below_root.join(file.file_name().unwrap_or_default());
            if staged.exists() {
                rename(&staged, &staged.with_extension("last"))?;
            }
        }
        Ok(())
    }

    /// Combines a full cluster and its increments, `count` in all, into one.
    fn combine(&self, program: &Path, count: usize, stop_flag: &StopFlag) -> Result<(), BackupError> {
        let db = self.below_root.join(cluster::FOLDER);
        let mut command = std::process::Command::new(program);
        command.args((0..count).map(|number| self.part(number))).arg("--no-sync").arg("--no-manifest");
        command.arg("--output").arg(&db).env("LC_ALL", "C");
        Running::start("pg_combinebackup", &mut command, (Stdio::null(), Stdio::null()), stop_flag)?.end()?;
        for number in 0..count {
            let part = self.part(number);
            std::fs::remove_dir_all(&part).map_err(BackupError::io("cannot remove", part))?;
        }
        for file in self.site.password_files() {
            let staged = self.below_root.join(file.file_name().unwrap_or_default());
            let last = staged.with_extension("last");
            if last.exists() {
                rename(&last, &staged)?;
            }
        }
        self.own_all(&db)
    }

    /// Gives a folder with all that is in it to PostgreSQL's user.
    fn own_all(&self, folder: &Path) -> Result<(), BackupError> {
        self.site.own(folder)?;
        for entry in std::fs::read_dir(folder).map_err(BackupError::io("cannot read", folder))? {
            let entry = entry.map_err(BackupError::io("cannot read", folder))?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.own_all(&entry.path())?;
            } else {
                self.site.own(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Unpacks the WAL pieces after the archive.
    async fn take_pieces(
        mut self,
        pieces: &[Piece],
        log: &LogFrom,
        identities: &[Identity],
        stop_flag: &StopFlag,
    ) -> Result<Self, BackupError> {
        for piece in pieces {
            let local = log.backup_store.local(&piece.to_string(), &self.below_root).await?;
            let (keys, asked, staged) = (identities.to_vec(), stop_flag.clone(), self);
            self = blocking(move || {
                archive::read(local.path(), &keys, &asked, |name, item| staged.take_of_piece(name, item))?;
                Ok(staged)
            })
            .await?;
        }
        Ok(self)
    }

    fn take_of_piece(&self, name: &str, item: Item<'_>) -> Result<(), BackupError> {
        let Item::File(content) = item else { return Ok(()) };
        match name.split_once('/') {
            Some((files::FOLDER, _)) => self.files.take(name, content),
            Some(("log", rest)) => {
                let folder = self.below_root.join(cluster::FOLDER).join("pg_wal");
                let written =
                    log::put(&folder, rest, content).map_err(BackupError::io("cannot write below", &folder))?;
                written.iter().try_for_each(|path| Ok(self.site.own(path)?))
            }
            None if cluster::PASSWORDS.contains(&name) => self.take_password(name, content),
            _ => Ok(()),
        }
    }

    /// Takes a password that is newer than those known so far, and keeps the one before it: startup tries both, because the last
    /// piece may hold the change and the point in time be before it.
    fn take_password(&self, name: &str, content: &mut dyn Read) -> Result<(), BackupError> {
        let file = self.below_root.join(name);
        let next = file.with_extension("next");
        let mut password = Vec::new();
        content.read_to_end(&mut password).map_err(BackupError::io("cannot read", name))?;
        let has_next = next.exists();
        if std::fs::read(if has_next { &next } else { &file }).is_ok_and(|known| known == password) {
            return Ok(());
        }
        if has_next {
            rename(&next, &file)?;
        }
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next);
        created.and_then(|mut file| file.write_all(&password)).map_err(BackupError::io("cannot write", &next))
    }

    /// Lets PostgreSQL recover the copy on a new timeline, because what it writes from then on does not continue the archived
    /// WAL.
    async fn recover(&self, embedded: &EmbeddedOptions, moment: Option<RestorePoint>) -> Result<(), BackupError> {
        let db = self.below_root.join(cluster::FOLDER);
        let signal = db.join("recovery.signal");
        std::fs::write(&signal, "").map_err(BackupError::io("cannot write", &signal))?;
        self.site.own(&signal)?;
        // All WAL is in `pg_wal`, where PostgreSQL looks after `restore_command` fails.
        let mut settings = vec![
            ("restore_command", "false".to_owned()),
            ("recovery_target_timeline", "current".to_owned()),
            ("recovery_target_action", "promote".to_owned()),
            ("hot_standby", "off".to_owned()),
        ];
        if let Some(RestorePoint::At(time)) = moment {
            settings.push(("recovery_target_time", time.format("%Y-%m-%d %H:%M:%S%.6f+00").to_string()));
        }
        let options = |settings: &[(&str, String)]| EmbeddedOptions {
            data_root: self.below_root.clone(),
            port: 0,
            bin_dir: embedded.bin_dir.clone(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            passwords: Passwords::Keep,
            start_timeout: RECOVERY_TIMEOUT,
        };
        let started = match EmbeddedPostgres::start(&options(&settings)).await {
            // There was no commit between that point in time and the end of the WAL, so the end is the same state.
            Err(EmbeddedError::Start { reason, .. }) if reason.contains(NOTHING_LATER) => {
                settings.retain(|(name, _)| *name != "recovery_target_time");
                EmbeddedPostgres::start(&options(&settings)).await
            }
            started => started,
        };
        started?.stop().await;
        for name in ["run", "extensions"] {
            let _ = std::fs::remove_dir_all(self.below_root.join(name));
        }
        for name in ["postgres.log", "embedded.lock"] {
            let _ = std::fs::remove_file(self.below_root.join(name));
        }
        // The start has written the valid passwords to the files themselves.
        for file in cluster::PASSWORDS {
            let _ = std::fs::remove_file(self.below_root.join(file).with_extension("next"));
        }
        Ok(())
    }

    fn require_cluster(&self) -> Result<(), BackupError> {
        if self.below_root.join(cluster::FOLDER).join("PG_VERSION").is_file() {
            return Ok(());
        }
        Err(BackupError::Io {
            action: "there is no cluster in",
            path: self.below_root.clone(),
            source: ErrorKind::NotFound.into(),
        })
    }

    /// Unpacks one entry.
    fn take(&self, name: &str, item: Item<'_>, keys: &mut String) -> Result<(), BackupError> {
        let folder = name.split_once('/').map_or(name, |(folder, _)| folder);
        let is_of_cluster = folder == cluster::FOLDER;
        let path = self.below_root.join(name);
        match item {
            Item::Folder if folder == files::FOLDER => {}
            Item::File(content) if folder == files::FOLDER => self.files.take(name, content)?,
            Item::Folder => {
                make_folders(&path)?;
                if is_of_cluster {
                    self.site.own(&path)?;
                }
            }
            Item::File(content) if name == keys::ENTRY => {
                std::io::Read::read_to_string(content, keys).map_err(BackupError::io("cannot read", &path))?;
            }
            Item::File(content) => {
                if !is_of_cluster {
                    path.parent().map_or(Ok(()), make_folders)?;
                }
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)
                    .map_err(BackupError::io("cannot write", &path))?;
                std::io::copy(content, &mut file).map_err(BackupError::io("cannot write", &path))?;
                sync_each(&file).map_err(BackupError::io("cannot write", &path))?;
                if is_of_cluster {
                    self.site.own(&path)?;
                }
            }
        }
        Ok(())
    }

    fn put_in_place(
        mut self,
        manifest: Manifest,
        as_of: DateTime<Utc>,
        keys: String,
        stop_flag: &StopFlag,
    ) -> Result<Restored, BackupError> {
        let db = self.below_root.join(cluster::FOLDER);
        sync_all(&self.below_root)?;
        let files = self.files.put(|| stop_flag.check())?;
        // The last moment at which it can be stopped.
        stop_flag.check().map_err(|_| BackupError::StoppedAmongFiles)?;
        // With both password files in place, startup finds the one that works for either cluster.
        let passwords = self.site.password_files();
        let staged = passwords.each_ref().map(|file| self.below_root.join(file.file_name().unwrap_or_default()));
        for (file, staged) in passwords.iter().zip(&staged).filter(|(_, staged)| staged.exists()) {
            let next = file.with_extension("next");
            rename(staged, &next)?;
            owner::hand_over(&next).map_err(BackupError::io("cannot hand over", &next))?;
        }
        let target = self.site.cluster();
        let former = if target.exists() {
            // Copied beforehand: after a kill, the next start keeps only the one that works.
            for file in passwords.iter().filter(|file| file.exists()) {
                let aside = self.below_root.join(file.file_name().unwrap_or_default());
                let owner = std::fs::metadata(file).map_err(BackupError::io("cannot read", file))?;
                std::fs::copy(file, &aside).map_err(BackupError::io("cannot write", &aside))?;
                own_as(&aside, &owner)?;
                File::open(&aside).and_then(|file| file.sync_all()).map_err(BackupError::io("cannot write", &aside))?;
            }
            // Renamed first, so that an interrupted swap is not mistaken for remains and removed.
            let aside = self.site.root.join(format!("{BEFORE_RESTORE}{}", Utc::now().format("%Y%m%dT%H%M%SZ")));
            rename(&self.below_root, &aside)?;
            let former = aside.join(cluster::FOLDER);
            renameat_with(CWD, &former, CWD, &target, RenameFlags::EXCHANGE)
                .map_err(|error| BackupError::io("cannot replace", &target)(error.into()))?;
            Some(former)
        } else {
            rename(&db, &target)?;
            None
        };
        for file in &passwords {
            let next = file.with_extension("next");
            if next.exists() {
                rename(&next, file)?;
            } else {
                let _ = std::fs::remove_file(file);
            }
        }
        sync_folder(&self.site.root)?;
        self.files.finish();
        Ok(Restored { manifest, as_of, cluster: target, former, files, keys })
    }
}

/// Gives files that root unpacks to the owner of the folder.
fn own_as(path: &Path, owner: &std::fs::Metadata) -> Result<(), BackupError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid()))
        .map_err(BackupError::io("cannot hand over", path))
}

fn make_folders(path: &Path) -> Result<(), BackupError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(BackupError::io("cannot create", path))
}

fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    std::fs::rename(from, to).map_err(BackupError::io("cannot write", to))
}

fn sync_folder(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(BackupError::io("cannot write", path))
}

/// One syscall syncs all files of the disk, where the system has one.
#[cfg(target_os = "linux")]
fn sync_all(below: &Path) -> Result<(), BackupError> {
    let folder = File::open(below).map_err(BackupError::io("cannot read", below))?;
    rustix::fs::syncfs(&folder).map_err(|error| BackupError::io("cannot write", below)(error.into()))
}

#[cfg(target_os = "linux")]
fn sync_each(_file: &File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn sync_all(below: &Path) -> Result<(), BackupError> {
    sync_folder(below)
}

#[cfg(not(target_os = "linux"))]
fn sync_each(file: &File) -> std::io::Result<()> {
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The entries of a folder, and whether a restore would accept them as files of its own.
    fn state(files: &Path) -> (Vec<String>, bool) {
        let entries = std::fs::read_dir(files.join("b")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        (names, require_no_files(files).is_ok())
    }

    /// A stop is accepted until the files are in place, and the next restore is not refused because of some of them.
    #[test]
    fn files_are_put_in_place_until_it_is_stopped() {
        for (checks, expected) in
            [(0, "Err(Stopped)"), (1, "Err(StoppedAmongFiles)"), (3, "Err(StoppedAmongFiles)"), (9, "Ok(3)")]
        {
            let root = tempfile::tempdir().expect("a folder");
            let files = root.path().join("storage");
            let mut unpacked = Unpacked::begin(&files).expect("begun");
            for name in ["files/b/1", "files/b/2", "files/b/3"] {
                unpacked.take(name, &mut name.as_bytes()).expect("taken");
            }
            let left = Cell::new(checks);
            let check = || {
                let now = left.get();
                left.set(now - i32::from(now > 0));
                if now > 0 { Ok(()) } else { Err(ErrorKind::ConnectionAborted.into()) }
            };
            let outcome = unpacked.put(check);
            assert_eq!(format!("{outcome:?}"), expected);
            if outcome.is_ok() {
                unpacked.finish();
            }
            drop(unpacked);
            let (names, is_accepted) = state(&files);
            let put = if checks == 9 { 3 } else { (checks - 1).max(0) };
            assert_eq!((names.len(), is_accepted), (usize::try_from(put).expect("a number"), put < 3), "{expected}");
        }
    }

    #[test]
    fn a_restore_has_to_be_awaited_once_it_puts_its_data_in_place() {
        let (placing, stop_flag) = (Placing::default(), StopFlag::default());
        assert!(!placing.stop());
        placing.begin(&stop_flag);
        assert!(stop_flag.check().is_ok());
        assert!(placing.stop() && stop_flag.check().is_err());
    }
}
