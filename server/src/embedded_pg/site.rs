//! Locks a stopped cluster, so that it cannot be started while its files are replaced.

use std::path::{Path, PathBuf};

use super::account::Account;
use super::binaries::Binaries;
use super::{EmbeddedError, EmbeddedOptions, Place, cluster, lock, prepare_directory};

/// A data root, locked until this is dropped.
#[derive(Debug)]
pub struct Site {
    /// The place of the cluster: the data root, or a place that PostgreSQL's user can reach.
    pub root: PathBuf,
    /// Major version of the binaries.
    pub major: String,
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
        Ok(Self { root: place.root, major: place.major, account: place.account, _lock: lock })
    }

    pub fn cluster(&self) -> PathBuf {
        self.root.join("db")
    }

    /// Gives a path to PostgreSQL's user.
    pub fn own(&self, path: &Path) -> Result<(), EmbeddedError> {
        self.account.as_ref().map_or(Ok(()), |account| account.own(path))
    }

    /// The files that hold the passwords of the superuser and of the owner.
    pub fn password_files(&self) -> [PathBuf; 2] {
        ["admin.password", "owner.password"].map(|name| self.root.join(name))
    }
}
