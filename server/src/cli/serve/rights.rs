//! A server that was started as root goes on as somebody else.
//!
//! Ports are bound, settings read and the database is there by then; what is left is written by the account that
//! PostgreSQL runs as, too, which may signal it. In development nothing is given up: a checkout belongs to whoever works
//! on it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use crate::embedded_pg::{Account, EmbeddedPostgres};

/// What the account has to write from now on.
pub struct Belongings<'a> {
    /// `FERROBASE_DATA_DIR`.
    pub data_dir: &'a Path,
    /// Folders of files that the server writes; they may not be there yet.
    pub folders: &'a [&'a Path],
    pub embedded: Option<&'a EmbeddedPostgres>,
}

/// Makes this process that of an account without rights, for good; says as whom it goes on. `wanted`: `FERROBASE_USER`.
///
/// Without a wanted account, one that could not reach its folders is not taken: the server goes on as root then, and says
/// so.
pub fn give_up(wanted: Option<&str>, belongings: &Belongings<'_>) -> anyhow::Result<()> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    if wanted == Some("root") {
        return keep(belongings);
    }
    let account = account(wanted, belongings)?;
    if let Err(error) = hand_over(&account, belongings) {
        if wanted.is_some() {
            return Err(error);
        }
        tracing::warn!(
            user = account.name,
            cause = format!("{error:#}"),
            "the server keeps the rights of root: choose a FERROBASE_DATA_DIR that this user can reach, or a FERROBASE_USER"
        );
        return keep(belongings);
    }
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    // In this order: without the rights of root the groups could not be left any more.
    setgroups(&[gid])
        .and_then(|()| setgid(gid))
        .and_then(|()| setuid(uid))
        .with_context(|| format!("cannot become the user '{}'", account.name))?;
    tracing::info!(user = account.name, "the rights of root were given up");
    Ok(())
}

fn account(wanted: Option<&str>, belongings: &Belongings<'_>) -> anyhow::Result<Account> {
    let of_database = belongings.embedded.and_then(EmbeddedPostgres::account);
    let Some(name) = wanted else {
        if let Some(account) = of_database {
            return Ok(account.clone());
        }
        let found = Account::to_drop_to(belongings.data_dir)?;
        return found.context("there is neither a user 'postgres' nor 'nobody' to go on as");
    };
    let account = Account::by_name(name).with_context(|| format!("FERROBASE_USER: there is no user '{name}'"))?;
    if let Some(other) = of_database.filter(|other| other.uid != account.uid) {
        anyhow::bail!(
            "FERROBASE_USER: the embedded database belongs to '{}', whom it has to be, so that the server may stop it",
            other.name
        );
    }
    Ok(account)
}

/// Gives the account what it has to write, where it can be reached.
fn hand_over(account: &Account, belongings: &Belongings<'_>) -> anyhow::Result<()> {
    for folder in belongings.folders {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = std::fs::canonicalize(folder).with_context(|| format!("cannot enter {}", folder.display()))?;
        for above in folder.ancestors().skip(1) {
            let known = std::fs::metadata(above).with_context(|| format!("cannot enter {}", above.display()))?;
            anyhow::ensure!(may_enter(&known, account), "'{}' may not enter {}", account.name, above.display());
        }
        // A folder that is the account's already holds nothing of root's.
        if owner(&folder)? != account.uid {
            own_all(&folder, account)?;
        }
    }
    if let Some(embedded) = belongings.embedded {
        embedded.hand_over_log(account)?;
    }
    Ok(())
}

/// What root writes among the account's files is found and handed over by the next start that gives up its rights.
fn keep(belongings: &Belongings<'_>) -> anyhow::Result<()> {
    for folder in belongings.folders {
        if folder.exists() && owner(folder)? != 0 {
            std::os::unix::fs::chown(folder, Some(0), None)
                .with_context(|| format!("cannot take over {}", folder.display()))?;
        }
    }
    Ok(())
}

fn owner(path: &Path) -> anyhow::Result<u32> {
    Ok(std::fs::symlink_metadata(path).with_context(|| format!("cannot look at {}", path.display()))?.uid())
}

/// Whether the account may go through a directory; of its groups the first counts alone, because it is left no other.
fn may_enter(directory: &Metadata, account: &Account) -> bool {
    let shift = match () {
        () if directory.uid() == account.uid => 6,
        () if directory.gid() == account.gid => 3,
        () => 0,
    };
    directory.mode() >> shift & 1 == 1
}

/// A folder with all that is in it; links are handed over, never followed.
fn own_all(folder: &Path, account: &Account) -> anyhow::Result<()> {
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let kind = std::fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
        // The folder itself comes first of all here, but a walk that breaks off must be seen by the next start.
        if path != folder {
            account.own(&path)?;
        }
    }
    Ok(account.own(folder)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn who_may_enter_is_said_by_the_first_that_fits() {
        let folder = tempfile::tempdir().expect("a folder");
        let us = std::fs::metadata(folder.path()).expect("a folder");
        let account = |uid: u32, gid: u32| Account { name: String::new(), uid, gid };
        for (mode, [owner, group, other]) in
            [(0o100, [true, false, false]), (0o010, [false, true, false]), (0o001, [false, false, true])]
        {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), permissions).expect("permissions");
            let known = std::fs::metadata(folder.path()).expect("a folder");
            assert_eq!(may_enter(&known, &account(us.uid(), us.gid())), owner, "{mode:o}");
            assert_eq!(may_enter(&known, &account(us.uid() + 1, us.gid())), group, "{mode:o}");
            assert_eq!(may_enter(&known, &account(us.uid() + 1, us.gid() + 1)), other, "{mode:o}");
        }
    }
}
