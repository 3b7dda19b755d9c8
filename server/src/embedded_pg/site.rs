//! Locks a stopped cluster, so that it cannot be started while its files are replaced.

use std::path::{Path, PathBuf};

use super::account::Account;
use super::binaries::Binaries;
use super::{EmbeddedError, EmbeddedOptions, Place, account, cluster, extensions, lock, prepare_directory, socket_dir};

/// A data root, locked until this is dropped.
#[derive(Debug)]
pub struct Site {
    /// The place of the cluster: the data root, or a place that PostgreSQL's user can reach.
    pub root: PathBuf,
    /// Major version of the binaries.
    pub major: String,
    pub binaries: Binaries,
    account: Option<Account>,
    _lock: std::fs::File,
}

impl Site {
    /// Locks the place that a start with these options would use.
    ///
    /// Errors: a server runs the cluster, or there are no binaries to run one.
    pub async fn claim(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let requested = prepare_directory(&options.data_root)?;
        let place = Place::choose(&requested, Binaries::find(options.bin_dir.as_deref())?).await?;
        let lock = lock(&place.root)?;
        cluster::clear_leftovers(&place.root.join("db")).await?;
        let Place { root, binaries, major, account } = place;
        Ok(Self { root, major, binaries, account, _lock: lock })
    }

    pub fn cluster(&self) -> PathBuf {
        self.root.join("db")
    }

    /// Gives a path to PostgreSQL's user.
    pub fn own(&self, path: &Path) -> Result<(), EmbeddedError> {
        self.account.as_ref().map_or(Ok(()), |account| account.own(path))
    }

    /// A program that runs as PostgreSQL's user.
    pub fn command(&self, program: &Path) -> tokio::process::Command {
        account::command(program, self.account.as_ref())
    }

    /// Whether PostgreSQL's user can run `program` in the data root.
    pub async fn can_run(&self, program: &Path) -> bool {
        let asked = self.command(program).arg("--version").current_dir(&self.root).output().await;
        asked.is_ok_and(|output| output.status.success())
    }

    /// PostgreSQL's user, where that is not ourselves.
    pub fn user(&self) -> Option<&str> {
        self.account.as_ref().map(|account| account.name.as_str())
    }

    /// A folder for sockets below `root`, or elsewhere if that path would be too long.
    pub fn socket_folder(&self, root: &Path, port: u16) -> Result<PathBuf, EmbeddedError> {
        socket_dir(root, port, self.account.as_ref())
    }

    /// Writes the extensions beside the cluster below `root`; yields the settings by which `binaries` of `major` find them.
    pub fn extension_settings(
        &self,
        root: &Path,
        binaries: &Binaries,
        major: &str,
    ) -> Result<Vec<(String, String)>, EmbeddedError> {
        extensions::prepare(root, binaries, major, &root.join("db"), self.account.as_ref())
    }

    /// The files that hold the passwords of the superuser and of the owner.
    pub fn password_files(&self) -> [PathBuf; 2] {
        ["admin.password", "owner.password"].map(|name| self.root.join(name))
    }
}
