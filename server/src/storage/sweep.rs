//! Hourly housekeeping: calls the functions that the project registered (`ferrobase.hourly`), ends expired uploads, continues to empty
//! buckets, then removes files without a row.
//! Crashes leave such files, and so do rows that were deleted in the database directly.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use actix_web::rt::task::JoinHandle;

use super::backend::{Listed, Place};
use super::error::StorageError;
use super::resumable::{expired, forget, known_uploads};
use super::{SERVICE_SETTINGS, Storage};
use crate::db::{DbError, with_causes};
use crate::jwt::caller::Caller;

/// How often the store is scanned.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Younger files may belong to an upload that has not been committed yet.
const MIN_AGE: Duration = Duration::from_secs(60 * 60);
/// Versions looked up per statement.
const BATCH: usize = 1000;
/// Files without a row that are collected before they are checked again.
const GATHERED: usize = 50_000;
/// For one call of an hourly function. The login's own limit is meant for requests.
const HOURLY_TIMEOUT: &str = "set local statement_timeout = '10min'";
/// Most calls of a function in an hour.
const MOST_CALLS: usize = 1000;
/// Expired uploads ended per query.
const EXPIRED_PAGE: i64 = 100;

/// Runs at startup and then every hour, until it is aborted: before a server stops its database, so that the log does not call its end
/// a failure. While one of these folders of databases that were `set_aside` exists, no file is removed, because a row there may name it.
pub fn spawn(storage: Storage, set_aside: Vec<PathBuf>) -> JoinHandle<()> {
    actix_web::rt::spawn(async move {
        loop {
            match call_hourly(&storage).await {
                Ok(failed) => {
                    for (function, error) in failed {
                        tracing::warn!(function, error, "an hourly function failed");
                    }
                }
                Err(error) => tracing::warn!(%error, "the hourly functions could not be called"),
            }
            match end_expired(&storage).await {
                Ok(0) => {}
                Ok(ended) => tracing::info!(ended, "resumable uploads ended unfinished"),
                Err(error) => tracing::warn!(%error, "old resumable uploads could not be ended"),
            }
            if let Err(error) = storage.empty_noted_buckets().await {
                tracing::warn!(%error, "the emptying of buckets could not be continued");
            }
            // One that cannot be seen is there.
            match set_aside.iter().find(|folder| folder.try_exists().unwrap_or(true)) {
                Some(folder) => {
                    tracing::info!(folder = %folder.display(), "files without a row are kept for a database that was set aside");
                }
                None => match sweep(&storage, MIN_AGE).await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "files without a row were removed from the store"),
                    Err(error) => tracing::warn!(%error, "the file store could not be swept"),
                },
            }
            tokio::time::sleep(INTERVAL).await;
        }
    })
}

/// Calls the functions named in `ferrobase.hourly`, as service_role. Returns those that failed, with the reason. Each call is a
/// transaction of its own. Functions that say so are called again, after the others.
pub async fn call_hourly(storage: &Storage) -> Result<Vec<(String, String)>, StorageError> {
    let mut due = hourly_functions(storage).await?;
    let mut failed = Vec::new();
    for _ in 0..MOST_CALLS {
        let mut unfinished = Vec::new();
        for function in due {
            match call_once(storage, &function).await {
                Ok(Called::Finished) => {}
                Ok(Called::Unfinished) => unfinished.push(function),
                Ok(Called::Unknown) => failed.push((function, "there is no such function".to_owned())),
                Err(error) => failed.push((function, with_causes(&error))),
            }
        }
        if unfinished.is_empty() {
            break;
        }
        due = unfinished;
    }
    Ok(failed)
}

async fn hourly_functions(storage: &Storage) -> Result<Vec<String>, StorageError> {
    let tx = storage.as_service().await?;
    // With `serve --only storage`, the database may lack the platform's objects.
    let known = "select to_regclass('ferrobase.hourly') is not null";
    if !tx.client()?.query_one(known, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(Vec::new());
    }
    let rows = tx.client()?.query("select function from ferrobase.hourly order by 1", &[]).await?;
    tx.rollback().await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// The outcome of one call.
enum Called {
    Finished,
    Unfinished,
    Unknown,
}

/// An error is the database's own, which whoever wrote the function has to read.
async fn call_once(storage: &Storage, function: &str) -> Result<Called, DbError> {
    let tx = storage.db.as_caller(&Caller::anonymous("service_role"), &SERVICE_SETTINGS).await?;
    let client = tx.client()?;
    client.batch_execute(HOURLY_TIMEOUT).await?;
    let found = "select format('%I.%I', n.nspname, p.proname), coalesce('again' = any (p.proargnames), false)
                 from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
                 where p.oid = to_regproc($1)";
    let Some(row) = client.query_opt(found, &[&function]).await? else { return Ok(Called::Unknown) };
    let (name, may_repeat): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
    let told = if may_repeat { "coalesce(bool_or(again), false)" } else { "count(*) < 0" };
    // The name was quoted by PostgreSQL.
    let again: bool = client.query_one(&*format!("select {told} from {name}()"), &[]).await?.try_get(0)?;
    tx.commit().await?;
    Ok(if again { Called::Unfinished } else { Called::Finished })
}

/// Ends expired resumable uploads. Returns how many there were.
pub async fn end_expired(storage: &Storage) -> Result<usize, StorageError> {
    let mut ended = 0;
    loop {
        let old = expired(storage, EXPIRED_PAGE).await?;
        for id in &old {
            forget(storage, id).await?;
        }
        ended += old.len();
        if old.is_empty() {
            return Ok(ended);
        }
    }
}

/// Removes every file older than `min_age` that no row names, page by page. Returns how many there were.
pub async fn sweep(storage: &Storage, min_age: Duration) -> Result<usize, StorageError> {
    let pause = storage.files.settling(min_age);
    sweep_after(storage, min_age, async || tokio::time::sleep(pause).await).await
}

/// The same, but awaits `pause` before files without a row are checked again and removed. A store may report a greater age than a
/// file has, so its row may not be committed yet.
pub async fn sweep_after(storage: &Storage, min_age: Duration, pause: impl AsyncFn()) -> Result<usize, StorageError> {
    let mut removed = 0;
    let mut found: Vec<Listed> = Vec::new();
    let page = async |page: Vec<Listed>| {
        for batch in page.chunks(BATCH) {
            found.extend(without_row(storage, batch).await?);
        }
        if found.len() >= GATHERED {
            pause().await;
            removed += remove_orphans(storage, std::mem::take(&mut found)).await?;
        }
        Ok(())
    };
    storage.files.walk(min_age, page).await?;
    if !found.is_empty() {
        pause().await;
        removed += remove_orphans(storage, found).await?;
    }
    Ok(removed)
}

/// Removes those of these files that still have no row.
async fn remove_orphans(storage: &Storage, found: Vec<Listed>) -> Result<usize, StorageError> {
    let mut removed = 0;
    for batch in found.chunks(BATCH) {
        let orphans = without_row(storage, batch).await?;
        let orphans: Vec<Place> = orphans.into_iter().map(|file| file.place).collect();
        let left = storage.files.remove(&orphans).await;
        removed += orphans.len() - left.len();
        for (place, error) in left {
            tracing::warn!(file = place.as_str(), %error, "an orphan stays behind");
        }
    }
    Ok(removed)
}

/// Those of these files that no row and no upload names.
async fn without_row(storage: &Storage, batch: &[Listed]) -> Result<Vec<Listed>, StorageError> {
    let named = |file: &Listed| file.upload.clone().unwrap_or_else(|| file.place.last_segment().to_owned());
    let (parts, files): (Vec<&Listed>, Vec<&Listed>) = batch.iter().partition(|file| file.upload.is_some());
    let mut known = known_files(storage, &files).await?;
    if !parts.is_empty() {
        known.extend(known_uploads(storage, &parts.into_iter().map(named).collect::<Vec<_>>()).await?);
    }
    let mut orphans: Vec<Listed> = batch.iter().filter(|file| !known.contains(&named(file))).cloned().collect();
    let places: Vec<&Place> = orphans.iter().filter(|file| file.upload.is_none()).map(|file| &file.place).collect();
    if !places.is_empty() {
        let kept = versionless(storage, &places).await?;
        orphans.retain(|file| !kept.contains(&file.place));
    }
    Ok(orphans)
}

/// Those of these places that hold the file of a row without a version. Other servers wrote such rows, and their names may end in
/// what looks like one of our versions.
async fn versionless(storage: &Storage, places: &[&Place]) -> Result<HashSet<Place>, StorageError> {
    // A place omits slashes around the name.
    let below = places.iter().filter_map(|place| Some(place.as_str().split_once('/')?.1));
    let names: Vec<String> =
        below.flat_map(|key| [key.to_owned(), format!("/{key}"), format!("{key}/"), format!("/{key}/")]).collect();
    let tx = storage.as_service().await?;
    let text = "select bucket_id, name from storage.objects where name = any($1) and coalesce(version, '') = ''";
    let statement = tx.client()?.prepare_cached(text).await?;
    let rows = tx.client()?.query(&statement, &[&names]).await?;
    tx.rollback().await?;
    rows.iter().map(|row| Ok(Place::named(row.try_get("bucket_id")?, row.try_get("name")?, ""))).collect()
}

/// Versions of these files that a row names. Nearly all are found by their objects' names, which are indexed; only the others
/// need a scan of the whole table.
async fn known_files(storage: &Storage, files: &[&Listed]) -> Result<HashSet<String>, StorageError> {
    let versions: Vec<&str> = files.iter().map(|file| file.place.last_segment()).collect();
    if versions.is_empty() {
        return Ok(HashSet::new());
    }
    let name = |file: &&Listed| Some(file.place.as_str().split_once('/')?.1.rsplit_once('/')?.0.to_owned());
    let names: Vec<String> = files.iter().filter_map(name).collect();
    let tx = storage.as_service().await?;
    let text = "select version from storage.objects where name = any($1) and version = any($2)";
    let by_name = tx.client()?.prepare_cached(text).await?;
    let rows = tx.client()?.query(&by_name, &[&names, &versions]).await?;
    let mut known: HashSet<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let left: Vec<&str> = versions.into_iter().filter(|version| !known.contains(*version)).collect();
    if !left.is_empty() {
        let text = "select version from storage.objects where version = any($1)";
        let by_version = tx.client()?.prepare_cached(text).await?;
        for row in tx.client()?.query(&by_version, &[&left]).await? {
            known.insert(row.try_get(0)?);
        }
    }
    tx.rollback().await?;
    Ok(known)
}
