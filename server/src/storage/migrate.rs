//! Copies the files of a project from one store to another, even while a server is running.
//!
//! Every file that a row names, and every part of an unfinished upload, is copied under the same name. A copy counts only after
//! it was read back and has the hash of the source, and of the row if that is a hash of the whole file. Existing files are read
//! and compared instead, so the copy can be repeated: first while the old store is in use, then again while the server is
//! stopped.

use futures_util::TryStreamExt;
use md5::{Digest, Md5};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::backend::{Place, Store};
use super::config::BackendConfig;
use super::error::StorageError;
use crate::db::{Client, DbError, Pool, Statement};
use crate::jwt::caller::Caller;

/// Rows read at a time.
const PAGE: i64 = 500;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub copied: u64,
    pub already_there: u64,
    pub bytes: u64,
    /// Files that rows name but the source does not have.
    pub missing: Vec<String>,
    /// Files that differ from their rows, or whose copies differ.
    pub differing: Vec<String>,
}

impl Moved {
    /// Whether every row has its file in the new store.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.differing.is_empty()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("the stores are the same")]
    Same,
    #[error("a store cannot be used: {0}")]
    Store(#[from] anyhow::Error),
    #[error("the database: {0}")]
    Database(#[from] DbError),
    #[error("{place}: {error}")]
    File { place: String, error: StorageError },
}

impl From<tokio_postgres::Error> for MoveError {
    fn from(error: tokio_postgres::Error) -> Self {
        DbError::from(error).into()
    }
}

/// A file that the new store must have.
struct Wanted {
    place: Place,
    /// The hash of the whole file, if known.
    md5: Option<String>,
}

/// Copies missing files. `pool` must log in as a role that may become service_role; `tell` receives progress. No connection is
/// held while files are copied.
pub async fn move_files(
    pool: &Pool,
    from: &BackendConfig,
    to: &BackendConfig,
    mut tell: impl FnMut(&Moved),
) -> Result<Moved, MoveError> {
    let same = match (from, to) {
        (BackendConfig::Folder(from), BackendConfig::Folder(to)) => from == to,
        (BackendConfig::S3(from), BackendConfig::S3(to)) => {
            (&from.endpoint, &from.bucket, &from.tenant) == (&to.endpoint, &to.bucket, &to.tenant)
        }
        _ => false,
    };
    if same {
        return Err(MoveError::Same);
    }
    let (from, to) = (Store::of(from)?, Store::of(to)?);
    let mut moved = Moved::default();
    for wanted in parts(pool).await? {
        one(&from, &to, wanted, &mut moved).await?;
    }
    let mut after = (String::new(), String::new());
    loop {
        let text = "select bucket_id, name, coalesce(version, ''), coalesce(metadata, '{}') from storage.objects \
                    where (bucket_id collate \"C\", name collate \"C\") > ($1, $2) and bucket_id is not null \
                    order by bucket_id collate \"C\", name collate \"C\" limit $3";
        let rows = read(pool, text, &[&after.0, &after.1, &PAGE]).await?;
        let Some(last) = rows.last() else { break };
        after = (last.try_get(0)?, last.try_get(1)?);
        for row in &rows {
            let (bucket, name, version): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let metadata: Value = row.try_get(3)?;
            let etag = metadata.get("eTag").and_then(Value::as_str).map(|etag| etag.trim_matches('"').to_owned());
            let md5 = etag.filter(|etag| etag.len() == 32 && etag.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let wanted = Wanted { place: Place::named(&bucket, &name, &version), md5 };
            one(&from, &to, wanted, &mut moved).await?;
        }
        tell(&moved);
    }
    Ok(moved)
}

/// Reads rows as service_role.
async fn read(pool: &Pool, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, MoveError> {
    let ask = async |client: &Client, [statement]: [Statement; 1]| client.query(&statement, params).await;
    Ok(pool.look_as_caller(&Caller::anonymous("service_role"), &[], [text], ask).await??)
}

/// Parts of unfinished uploads, both resumable and S3's.
async fn parts(pool: &Pool) -> Result<Vec<Wanted>, MoveError> {
    let mut wanted = Vec::new();
    for sql in [
        "select p.upload::text, p.id, encode(p.md5, 'hex') from _supavisor.resumable_parts p",
        "select upload_id, id, trim(both '\"' from etag) from storage.s3_multipart_uploads_parts",
    ] {
        for row in read(pool, sql, &[]).await? {
            let (upload, part): (String, Uuid) = (row.try_get(0)?, row.try_get(1)?);
            wanted.push(Wanted { place: Place::part(&upload, part), md5: Some(row.try_get(2)?) });
        }
    }
    Ok(wanted)
}

/// Copies one file unless it exists.
async fn one(from: &Store, to: &Store, wanted: Wanted, moved: &mut Moved) -> Result<(), MoveError> {
    let name = || wanted.place.as_str().to_owned();
    let failed = |error| MoveError::File { place: name(), error };
    let there = hash(to, &wanted.place).await.map_err(failed)?;
    if let (Some((md5, _)), Some(known)) = (&there, &wanted.md5)
        && md5 == known
    {
        moved.already_there += 1;
        return Ok(());
    }
    if let Some((md5, _)) = &there
        && let Some((source, _)) = hash(from, &wanted.place).await.map_err(failed)?
        && source == *md5
    {
        moved.already_there += 1;
        return Ok(());
    }
    let Some(mut source) = from.open(&wanted.place, None).await.map_err(failed)? else {
        // It may have been replaced or removed since its row was read. The next run finds out.
        if there.is_none() {
            moved.missing.push(name());
        } else {
            moved.differing.push(name());
        }
        return Ok(());
    };
    let mut file = to.create(&wanted.place).map_err(failed)?;
    while let Some(piece) = source.bytes.try_next().await.map_err(|error| failed(error.into()))? {
        file.write(piece).await.map_err(failed)?;
    }
    let stored = file.finish().await.map_err(failed)?;
    let sent = hex::encode(stored.md5);
    let back = hash(to, &wanted.place).await.map_err(failed)?;
    moved.bytes += stored.size;
    if back.is_some_and(|(md5, _)| md5 == sent) && wanted.md5.as_ref().is_none_or(|known| *known == sent) {
        moved.copied += 1;
    } else {
        moved.differing.push(name());
    }
    Ok(())
}

/// A file's MD5 in hex, and its length.
async fn hash(store: &Store, place: &Place) -> Result<Option<(String, u64)>, StorageError> {
    let Some(mut file) = store.open(place, None).await? else { return Ok(None) };
    let (mut digest, mut length) = (Md5::new(), 0);
    while let Some(piece) = file.bytes.try_next().await? {
        digest.update(&piece);
        length += piece.len() as u64;
    }
    Ok(Some((hex::encode(digest.finalize()), length)))
}
