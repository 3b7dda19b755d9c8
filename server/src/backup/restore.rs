//! The way back: an archive is read to its end and compared with its list, then unpacked beside the target, and only a whole
//! copy takes the target's place.
//!
//! The cluster is put in place by one rename, at the very end. Files of objects only come in addition before that: their names hold
//! their versions, so none takes the place of another, and those without a row are swept. So at each moment what is in place
//! is whole, the former or the restored.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::Utc;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::archive::{self, Halt, Item, Manifest};
use super::error::BackupError;
use super::{age::Identity, blocking, cluster, files, keys};
use crate::embedded_pg::{EmbeddedOptions, Site};

/// Where things are unpacked, below the data root and below the folder of files. The sweep and the next backup leave out
/// what begins with a dot.
const STAGING: &str = ".restoring";

/// Where an archive is brought back to.
#[derive(Clone, Debug)]
pub struct Target {
    pub embedded: EmbeddedOptions,
    /// The folder of the files of objects.
    pub files: PathBuf,
    /// Whether what is there may be replaced.
    pub replace: bool,
}

/// What was brought back.
#[derive(Clone, Debug)]
pub struct Restored {
    pub manifest: Manifest,
    /// The folder of the cluster.
    pub cluster: PathBuf,
    /// Where the former cluster is now, if there was one.
    pub former: Option<PathBuf>,
    /// Files of objects.
    pub files: usize,
    /// The keys of the settings that the backup was made with, as an `.env` file.
    pub keys: String,
}

/// Restores `archive`. Where it fails, is asked to stop or is killed, the target is as it was.
pub async fn restore(archive: &Path, identities: &[Identity], target: &Target) -> Result<Restored, BackupError> {
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    if identities.is_empty() {
        return Err(BackupError::NoIdentity);
    }
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), halt.clone());
    // Nothing is written before all of it was read once.
    let manifest = blocking(move || archive::read(&path, &keys, &asked, |_, _| Ok(()))).await?;
    let site = Site::claim(&target.embedded).await?;
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
    let (path, identities, target, asked) = (archive.to_owned(), identities.to_vec(), target.clone(), halt.clone());
    blocking(move || {
        let staged = Staged::begin(site, &target.files)?;
        let mut keys = String::new();
        let manifest = archive::read(&path, &identities, &asked, |name, item| staged.take(name, item, &mut keys))?;
        staged.put_in_place(manifest, keys)
    })
    .await
}

/// Refuses a target with a database or files in it. What an interrupted restore has left is none.
fn require_empty(site: &Site, files: &Path) -> Result<(), BackupError> {
    if site.cluster().exists() {
        return Err(BackupError::NotEmpty { dir: site.root.clone(), what: "a database" });
    }
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
    files: PathBuf,
    below_files: PathBuf,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What stays behind is in nobody's way, and the next restore removes it.
        let _ = std::fs::remove_dir_all(&self.below_root);
        let _ = std::fs::remove_dir_all(&self.below_files);
    }
}

impl Staged {
    fn begin(site: Site, files: &Path) -> Result<Self, BackupError> {
        let (below_root, below_files) = (site.root.join(STAGING), files.join(STAGING));
        make_folders(files)?;
        for folder in [&below_root, &below_files] {
            match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(BackupError::io("cannot remove", folder)(error));
                }
                _ => make_folders(folder)?,
            }
        }
        site.own(&below_root)?;
        Ok(Self { site, below_root, files: files.to_owned(), below_files })
    }

    /// Unpacks one entry.
    fn take(&self, name: &str, item: Item<'_>, keys: &mut String) -> Result<(), BackupError> {
        let (folder, rest) = name.split_once('/').unwrap_or((name, ""));
        let is_of_cluster = folder == cluster::FOLDER;
        let path = match folder {
            files::FOLDER => self.below_files.join(rest),
            _ => self.below_root.join(name),
        };
        match item {
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

    fn put_in_place(self, manifest: Manifest, keys: String) -> Result<Restored, BackupError> {
        let db = self.below_root.join(cluster::FOLDER);
        if !db.join("PG_VERSION").is_file() {
            return Err(BackupError::Io {
                action: "there is no cluster in",
                path: self.below_root.clone(),
                source: ErrorKind::NotFound.into(),
            });
        }
        sync_all(&self.below_root)?;
        sync_all(&self.below_files)?;
        let files = self.put_files()?;
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
        Ok(Restored { manifest, cluster: target, former, files, keys })
    }

    /// Gives the files of objects their places. Yields how many there are.
    fn put_files(&self) -> Result<usize, BackupError> {
        let owner = std::fs::metadata(&self.files).map_err(BackupError::io("cannot read", &self.files))?;
        let mut count = 0;
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            let from = self.below_files.join(&inside);
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
