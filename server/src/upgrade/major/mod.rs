//! The change of a cluster to a later major version of PostgreSQL, by `pg_upgrade`.
//!
//! The cluster itself is only read: `pg_upgrade` works on a copy in `.upgrading`, started there by the former binaries (which also
//! recovers it after a crash). The new cluster is started by the binaries that will serve it, compared with the former and brought up
//! to date. Only then the two exchange their names, by one rename. A kill at any moment leaves the former cluster or the new one in
//! place, and a folder `.upgrading` that the next upgrade removes.
//!
//! `copy` makes the copy, `staging` the new cluster, `former` is what is known of the other one, `place` exchanges the two and cleans up.

mod copy;
mod former;
mod place;
mod staging;

use std::path::{Path, PathBuf};

use chrono::Utc;

use super::UpgradeError;
use super::programs::{Places, Programs, number};
use crate::embedded_pg::{self, EmbeddedOptions, Logins, Site};
use crate::owner;
use place::{AFTER, BEFORE, exchange, rename, sync_folder, tidy};
use staging::Staging;

/// Room for the catalogs of a new cluster and its first log, beside the copy.
const NEW_CLUSTER_MIB: u64 = 256;

/// What came of an upgrade.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The cluster is of the binaries' version already.
    Current {
        major: String,
    },
    Upgraded(Upgraded),
}

#[derive(Clone, Debug)]
pub struct Upgraded {
    pub from: String,
    pub to: String,
    /// Where the former cluster is now.
    pub former: PathBuf,
    pub tables: usize,
    pub rows: i64,
    /// Logical replication slots that were not taken along.
    pub lost_slots: Vec<String>,
    /// What could not be done, without consequences.
    pub notes: Vec<String>,
}

/// Upgrades the cluster of `embedded` to the version of its binaries, unless it is of that version. `bring_up` gets the logins of the
/// new cluster before it is put in place; if it fails, nothing is. `say` reports the progress.
pub async fn major(
    embedded: &EmbeddedOptions,
    places: &Places,
    say: &(dyn Fn(&str) + Sync),
    bring_up: impl AsyncFnOnce(&Logins) -> Result<(), UpgradeError>,
) -> Result<Outcome, UpgradeError> {
    let site = Site::claim(embedded).await?;
    tidy(&site.root).await?;
    let outcome = attempt(&site, embedded, places, say, bring_up).await;
    if let Err(error) = tidy(&site.root).await {
        tracing::warn!(%error, "leftovers of the upgrade will be removed by the next one");
    }
    outcome
}

/// Ends and removes what an upgrade has left that was given up.
pub async fn clear(embedded: &EmbeddedOptions) -> Result<(), UpgradeError> {
    tidy(&Site::claim(embedded).await?.root).await
}

async fn attempt(
    site: &Site,
    embedded: &EmbeddedOptions,
    places: &Places,
    say: &(dyn Fn(&str) + Sync),
    bring_up: impl AsyncFnOnce(&Logins) -> Result<(), UpgradeError>,
) -> Result<Outcome, UpgradeError> {
    let db = site.cluster();
    let Some(from) = embedded_pg::version_of(&db) else { return Err(UpgradeError::NoCluster { dir: db }) };
    match (number(&from), number(&site.major)) {
        (cluster, binaries) if cluster == binaries => return Ok(Outcome::Current { major: from }),
        (cluster, binaries) if cluster > binaries => {
            return Err(UpgradeError::Newer { dir: db, cluster: from, binaries: site.major.clone() });
        }
        _ => {}
    }
    let (former, current) = programs(site, places, &from).await?;
    require_room(&db)?;
    let staging = Staging::begin(site, &from)?;
    say(&format!("copying the database of PostgreSQL {from}"));
    staging.copy_cluster().await?;
    let before = staging.start_former(&former, embedded).await?;
    say(&format!("upgrading the copy to PostgreSQL {}", site.major));
    staging.make_new(&current, &before).await?;
    staging.run(&former, &current, &before).await?;
    staging.carry_over()?;
    say("starting and comparing it");
    let notes = staging.answer(embedded, &before.facts, bring_up).await?;
    let aside = staging.put_in_place().await?;
    Ok(Outcome::Upgraded(Upgraded {
        to: site.major.clone(),
        former: aside,
        tables: before.facts.tables(),
        rows: before.facts.rows(),
        lost_slots: before.lost_slots,
        notes,
        from,
    }))
}

/// Puts the cluster from before the last upgrade back in place. Yields its version and where the upgraded one is now.
pub async fn back(embedded: &EmbeddedOptions) -> Result<(String, PathBuf), UpgradeError> {
    let site = Site::claim(embedded).await?;
    tidy(&site.root).await?;
    let nothing = || UpgradeError::NothingToGoBackTo { dir: site.root.clone() };
    let entries = std::fs::read_dir(&site.root).map_err(UpgradeError::io("cannot read", &site.root))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    // The names end in the time.
    let last =
        names.filter(|name| name.starts_with(BEFORE)).max_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    let last = site.root.join(last.ok_or_else(nothing)?);
    let beside = embedded_pg::version_of(&last.join("db")).ok_or_else(nothing)?;
    let none = || UpgradeError::NoCluster { dir: site.cluster() };
    let in_place = embedded_pg::version_of(&site.cluster()).ok_or_else(none)?;
    // So it is if this was interrupted before.
    let is_exchanged = number(&beside) > number(&in_place);
    let (version, upgraded) = if is_exchanged { (in_place, beside) } else { (beside, in_place) };
    let passwords = site.password_files().map(|file| {
        let beside = last.join(file.file_name().unwrap_or_default());
        (file.with_extension("next"), beside, file)
    });
    if !is_exchanged {
        // With both password files in place, startup finds the one that works for either cluster.
        for (next, beside, _) in passwords.iter().filter(|(_, beside, _)| beside.exists()) {
            std::fs::copy(beside, next)
                .and_then(|_| owner::hand_over(next))
                .and_then(|()| std::fs::File::open(next)?.sync_all())
                .map_err(UpgradeError::io("cannot write", next))?;
        }
        // Not every file system syncs folders.
        let _ = sync_folder(&site.root);
        exchange(&last.join("db"), &site.cluster())?;
    }
    for (next, beside, file) in &passwords {
        if next.exists() && beside.exists() {
            if file.exists() {
                rename(file, beside)?;
            }
            rename(next, file)?;
        }
    }
    let aside = site.root.join(format!("{AFTER}{upgraded}-{}", Utc::now().format("%Y%m%dT%H%M%SZ")));
    rename(&last, &aside)?;
    sync_folder(&site.root)?;
    Ok((version, aside))
}

/// What an upgrade would need, as far as it can be known beforehand.
pub async fn programs(site: &Site, places: &Places, from: &str) -> Result<(Programs, Programs), UpgradeError> {
    let missing_former = |found| UpgradeError::NoFormerPrograms { major: from.to_owned(), found };
    let former = places.former(from).await.map_err(missing_former)?;
    let missing = |found| UpgradeError::NoPrograms { major: site.major.clone(), found };
    let current = places.current(&site.major).await.map_err(missing)?;
    for program in [former.folder.join("postgres"), current.folder.join("pg_upgrade")] {
        if let Some(user) = site.user()
            && !site.can_run(&program).await
        {
            return Err(UpgradeError::Unreachable { user: user.to_owned(), program });
        }
    }
    Ok((former, current))
}

/// Room that an upgrade of the cluster `db` needs, and that there is.
pub fn room(db: &Path) -> (u64, u64) {
    let free = rustix::fs::statvfs(db).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize) >> 20);
    ((size_below(db) >> 20) + NEW_CLUSTER_MIB, free)
}

fn require_room(db: &Path) -> Result<(), UpgradeError> {
    if std::fs::read_dir(db.join("pg_tblspc")).is_ok_and(|mut entries| entries.next().is_some())
        || std::fs::symlink_metadata(db.join("pg_wal")).is_ok_and(|metadata| metadata.is_symlink())
    {
        return Err(UpgradeError::Tablespaces);
    }
    let (needed_mib, free_mib) = room(db);
    if free_mib < needed_mib {
        return Err(UpgradeError::NoRoom { dir: db.to_owned(), free_mib, needed_mib });
    }
    Ok(())
}

fn size_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
