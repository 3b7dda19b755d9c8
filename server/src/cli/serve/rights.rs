//! Drops root's rights after startup.
//!
//! By then, ports are bound, settings are read and the database runs. The account is the one that PostgreSQL runs as, which can
//! also signal it and owns the files written from now on. In development nothing is dropped, because a checkout belongs to its
//! developer.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use crate::embedded_pg::{Account, EmbeddedPostgres};

/// What the account has to be able to write.
pub struct WritablePaths<'a> {
    /// `FERROBASE_DATA_DIR`.
    pub data_dir: &'a Path,
    /// Folders of files that the server writes; they may not exist yet.
    pub folders: &'a [&'a Path],
    pub embedded: Option<&'a EmbeddedPostgres>,
}

/// Switches this process permanently to an unprivileged account, and logs which one. `wanted` is `FERROBASE_USER`.
///
/// If no account is wanted and the default one could not reach its folders, the server stays root and says so.
pub fn give_up(wanted: Option<&str>, belongings: &WritablePaths<'_>) -> anyhow::Result<()> {
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
            "the server keeps root's rights: choose a FERROBASE_DATA_DIR that this user can reach, or a FERROBASE_USER"
        );
        return keep(belongings);
    }
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    // Groups first: without root's rights they could not be changed any more.
    setgroups(&[gid])
        .and_then(|()| setgid(gid))
        .and_then(|()| setuid(uid))
        .with_context(|| format!("cannot become the user '{}'", account.name))?;
    tracing::info!(user = account.name, "dropped root's rights");
    Ok(())
}

fn account(wanted: Option<&str>, belongings: &WritablePaths<'_>) -> anyhow::Result<Account> {
    let of_database = belongings.embedded.and_then(EmbeddedPostgres::account);
    let Some(name) = wanted else {
        if let Some(account) = of_database {
            return Ok(account.clone());
        }
        let found = Account::to_drop_to(belongings.data_dir)?;
        return found.context("there is neither a user 'postgres' nor 'nobody' to switch to");
    };
    let account = Account::by_name(name).with_context(|| format!("FERROBASE_USER: there is no user '{name}'"))?;
    if let Some(other) = of_database.filter(|other| other.uid != account.uid) {
        anyhow::bail!(
            "FERROBASE_USER must be '{}', the owner of the embedded database, so that the server can stop it",
            other.name
        );
    }
    Ok(account)
}

/// Gives the account ownership of what it has to write, if it can reach it.
fn hand_over(account: &Account, belongings: &WritablePaths<'_>) -> anyhow::Result<()> {
    for folder in belongings.folders {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = std::fs::canonicalize(folder).with_context(|| format!("cannot enter {}", folder.display()))?;
        for above in folder.ancestors().skip(1) {
            let known = std::fs::metadata(above).with_context(|| format!("cannot enter {}", above.display()))?;
            anyhow::ensure!(may_enter(&known, account), "'{}' may not enter {}", account.name, above.display());
        }
        // A folder that already belongs to the account contains nothing of root's.
        if owner(&folder)? != account.uid {
            own_all(&folder, account)?;
        }
    }
    if let Some(embedded) = belongings.embedded {
        embedded.hand_over_log(account)?;
    }
    Ok(())
}

/// Makes root the owner of the folders again, so that the next start that drops root's rights also changes the owner of what root
/// writes in them.
fn keep(belongings: &WritablePaths<'_>) -> anyhow::Result<()> {
    for folder in belongings.folders {
        if folder.exists() && owner(folder)? != 0 {
            std::os::unix::fs::chown(folder, Some(0), None)
                .with_context(|| format!("cannot take over {}", folder.display()))?;
        }
    }
    Ok(())
}

fn owner(path: &Path) -> anyhow::Result<u32> {
    Ok(std::fs::symlink_metadata(path).with_context(|| format!("cannot read {}", path.display()))?.uid())
}

/// Whether the account may enter a directory. Only its primary group counts, because it keeps no other.
fn may_enter(directory: &Metadata, account: &Account) -> bool {
    let shift = match () {
        () if directory.uid() == account.uid => 6,
        () if directory.gid() == account.gid => 3,
        () => 0,
    };
    directory.mode() >> shift & 1 == 1
}

/// Changes the owner of a folder and everything in it. Symbolic links are changed but not followed.
fn own_all(folder: &Path, account: &Account) -> anyhow::Result<()> {
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let kind = std::fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
        // The folder itself is changed last, so that the next start notices an interrupted walk.
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
    fn the_first_matching_permission_class_decides() {
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
