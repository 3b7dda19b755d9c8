//! The way back: an archive is read to its end and compared with its list, then unpacked beside the target and brought to its moment by
//! PostgreSQL, and only a whole copy takes the target's place.
//!
//! The cluster is put in place by one rename, at the very end. Files of objects only come in addition before that: their names hold
//! their versions, so none takes the place of another, and those without a row are swept. So at each moment what is in place
//! is whole, the former or the restored.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::archive::{self, Item, Manifest};
use super::depot::Depot;
use super::error::BackupError;
use super::halt::Halt;
use super::log::{Moment, Piece, covering, parse_lsn};
use super::{age::Identity, blocking, cluster, files, keys, log};
use crate::embedded_pg::{self, EmbeddedError, EmbeddedOptions, EmbeddedPostgres, Passwords, Site};

/// Where things are unpacked, below the data root and below the folder of files. The sweep and the next backup leave out
/// what begins with a dot.
const STAGING: &str = ".restoring";

/// How long PostgreSQL may take for the log of changes.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// What it says where the log has no commit after the moment that was asked for.
const NOTHING_LATER: &str = "recovery ended before configured recovery target was reached";

/// Where an archive is brought back to.
#[derive(Clone, Debug)]
pub struct Target {
    pub embedded: EmbeddedOptions,
    /// The folder of the files of objects.
    pub files: PathBuf,
    /// Whether what is there may be replaced.
    pub replace: bool,
}

/// The log of changes that is followed after the archive, and how far.
#[derive(Clone, Debug)]
pub struct LogFrom {
    pub depot: Depot,
    pub moment: Moment,
}

/// What was brought back.
#[derive(Clone, Debug)]
pub struct Restored {
    pub manifest: Manifest,
    /// The moment that it was brought back to.
    pub as_of: DateTime<Utc>,
    /// The folder of the cluster.
    pub cluster: PathBuf,
    /// Where the former cluster is now, if there was one.
    pub former: Option<PathBuf>,
    /// Files of objects.
    pub files: usize,
    /// The keys of the settings that the backup was made with, as an `.env` file.
    pub keys: String,
}

/// Restores `archive`, and what came after it where `log` is given. Where it fails, is asked to stop or is killed, the target is as
/// it was.
pub async fn restore(
    archive: &Path,
    identities: &[Identity],
    target: &Target,
    log: Option<&LogFrom>,
) -> Result<Restored, BackupError> {
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    if identities.is_empty() {
        return Err(BackupError::NoIdentity);
    }
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), halt.clone());
    // Nothing is written before all of it was read once.
    let manifest = blocking(move || archive::read(&path, &keys, &asked, |_, _| Ok(()))).await?;
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
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), halt.clone());
    let files = target.files.clone();
    let (staged, mut restored_keys) = blocking(move || {
        let staged = Staged::begin(site, &files)?;
        let mut restored_keys = String::new();
        archive::read(&path, &keys, &asked, |name, item| staged.take(name, item, &mut restored_keys))?;
        staged.require_cluster()?;
        Ok((staged, restored_keys))
    })
    .await?;
    let staged = match log {
        Some(log) => staged.take_pieces(&pieces, log, identities, &halt).await?,
        None => staged,
    };
    let moment = log.map(|log| log.moment);
    staged.recover(&target.embedded, moment).await?;
    let as_of = match moment {
        Some(Moment::At(time)) => time,
        _ => pieces.last().map_or(manifest.made_at, |piece| piece.time),
    };
    blocking(move || staged.put_in_place(manifest, as_of, std::mem::take(&mut restored_keys))).await
}

/// The pieces of the log that lead from the archive to the moment that is asked for.
async fn pieces_after(archive: &Path, manifest: &Manifest, log: &LogFrom) -> Result<Vec<Piece>, BackupError> {
    let no_log = || BackupError::NoLog { archive: archive.to_owned() };
    let chain = manifest.chain.as_deref().ok_or_else(no_log)?;
    if matches!(log.moment, Moment::At(time) if time < manifest.made_at) {
        return Err(BackupError::TooEarly { archive: archive.to_owned(), made_at: manifest.made_at });
    }
    let from = parse_lsn(&manifest.stop_lsn).ok_or_else(no_log)?;
    covering(&log.depot.names().await?, chain, from, log.moment)
}

/// Refuses a target with a database or files in it.
fn require_empty(site: &Site, files: &Path) -> Result<(), BackupError> {
    if site.cluster().exists() {
        return Err(BackupError::NotEmpty { dir: site.root.clone(), what: "a database" });
    }
    require_no_files(files)
}

/// Refuses a folder with files in it. What an interrupted restore has left is none.
pub fn require_no_files(files: &Path) -> Result<(), BackupError> {
    let entries = || std::fs::read_dir(files).into_iter().flatten().flatten();
    let is_ours = entries().any(|entry| entry.file_name() == STAGING);
    if !is_ours && entries().any(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
        return Err(BackupError::NotEmpty { dir: files.to_owned(), what: "files" });
    }
    Ok(())
}

/// What is unpacked and not in place yet; removed when dropped.
struct Staged {
    site: Site,
    /// Below the data root: the cluster and the passwords.
    below_root: PathBuf,
    files: Unpacked,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What stays behind is in nobody's way, and the next restore removes it.
        let _ = std::fs::remove_dir_all(&self.below_root);
    }
}

/// Files of objects that are unpacked and not in place yet; removed when dropped.
pub struct Unpacked {
    files: PathBuf,
    below: PathBuf,
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.below);
    }
}

/// A folder without what an interrupted restore has left in it.
fn make_empty(folder: &Path) -> Result<(), BackupError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(BackupError::io("cannot remove", folder)(error)),
        _ => make_folders(folder),
    }
}

impl Unpacked {
    /// Below the folder of files.
    pub fn begin(files: &Path) -> Result<Self, BackupError> {
        make_folders(files)?;
        let below = files.join(STAGING);
        make_empty(&below)?;
        Ok(Self { files: files.to_owned(), below })
    }

    /// Unpacks an entry. Files never change: one that is there already is the same.
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

    /// Gives the files of objects their places. Yields how many there are.
    pub fn put(&self) -> Result<usize, BackupError> {
        sync_all(&self.below)?;
        let owner = std::fs::metadata(&self.files).map_err(BackupError::io("cannot read", &self.files))?;
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
                    own_as(&entry.path(), &owner)?;
                    rename(&entry.path(), &to.join(entry.file_name()))?;
                    count += 1;
                }
            }
            sync_folder(&to)?;
        }
        Ok(count)
    }
}

impl Staged {
    fn begin(site: Site, files: &Path) -> Result<Self, BackupError> {
        let below_root = site.root.join(STAGING);
        make_empty(&below_root)?;
        site.own(&below_root)?;
        Ok(Self { site, below_root, files: Unpacked::begin(files)? })
    }

    /// Unpacks what came after the archive.
    async fn take_pieces(
        mut self,
        pieces: &[Piece],
        log: &LogFrom,
        identities: &[Identity],
        halt: &Halt,
    ) -> Result<Self, BackupError> {
        for piece in pieces {
            let local = log.depot.local(&piece.to_string(), &self.below_root).await?;
            let (keys, asked, staged) = (identities.to_vec(), halt.clone(), self);
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
            _ => Ok(()),
        }
    }

    /// Has PostgreSQL bring the copy to its moment, on a timeline of its own: what it writes from then on is no
    /// continuation of the log that it came from.
    async fn recover(&self, embedded: &EmbeddedOptions, moment: Option<Moment>) -> Result<(), BackupError> {
        let db = self.below_root.join(cluster::FOLDER);
        let signal = db.join("recovery.signal");
        std::fs::write(&signal, "").map_err(BackupError::io("cannot write", &signal))?;
        self.site.own(&signal)?;
        // All of the log lies where PostgreSQL looks after it has asked in vain.
        let mut settings = vec![
            ("restore_command", "false".to_owned()),
            ("recovery_target_timeline", "current".to_owned()),
            ("recovery_target_action", "promote".to_owned()),
            ("hot_standby", "off".to_owned()),
        ];
        if let Some(Moment::At(time)) = moment {
            settings.push(("recovery_target_time", time.format("%Y-%m-%d %H:%M:%S%.6f+00").to_string()));
        }
        let options = |settings: &[(&str, String)]| EmbeddedOptions {
            data_root: self.below_root.clone(),
            port: 0,
            bin_dir: embedded.bin_dir.clone(),
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            passwords: Passwords::Keep,
            patience: RECOVERY_PATIENCE,
        };
        let started = match EmbeddedPostgres::start(&options(&settings)).await {
            // Nothing was committed between that moment and the end of the log, which lies behind it: the end is the same state.
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

    fn put_in_place(self, manifest: Manifest, as_of: DateTime<Utc>, keys: String) -> Result<Restored, BackupError> {
        let db = self.below_root.join(cluster::FOLDER);
        sync_all(&self.below_root)?;
        let files = self.files.put()?;
        // With both passwords there a start finds the one that holds, whichever cluster it meets.
        let passwords = self.site.password_files();
        let staged = passwords.each_ref().map(|file| self.below_root.join(file.file_name().unwrap_or_default()));
        for (file, staged) in passwords.iter().zip(&staged).filter(|(_, staged)| staged.exists()) {
            rename(staged, &file.with_extension("next"))?;
        }
        let target = self.site.cluster();
        let former = if target.exists() {
            // Renamed first: what an interrupted exchange leaves must not be taken for rubbish.
            let aside = self.site.root.join(format!("before-restore-{}", Utc::now().format("%Y%m%dT%H%M%SZ")));
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
                // The former cluster's.
                let _ = std::fs::remove_file(file);
            }
        }
        sync_folder(&self.site.root)?;
        Ok(Restored { manifest, as_of, cluster: target, former, files, keys })
    }
}

/// Files that root unpacks belong to whom the folder belongs to.
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

/// One call for all files of the disk where there is one.
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
