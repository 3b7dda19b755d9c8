//! The fixed statements of storage: typed arguments in, typed rows out, the transaction first.

use serde_json::Value;
use tokio_postgres::Row;

use super::error::StorageError;
use crate::db::Transaction;

/// What a bucket allows.
pub struct Bucket {
    pub public: bool,
    pub file_size_limit: Option<i64>,
    pub allowed_mime_types: Option<Vec<String>>,
}

/// A stored object's row.
pub struct Object {
    pub id: uuid::Uuid,
    pub name: String,
    pub version: Option<String>,
    pub metadata: Value,
    pub user_metadata: Value,
    pub created_at: chrono::DateTime<chrono::Utc>,
    pub updated_at: chrono::DateTime<chrono::Utc>,
}

/// A row to be written.
pub struct NewObject<'a> {
    pub bucket: &'a str,
    pub name: &'a str,
    /// The uploader's `sub`; a uuid also fills the older column `owner`.
    pub owner: Option<&'a str>,
    pub version: &'a str,
    pub metadata: Value,
    pub user_metadata: Value,
}

const OBJECT_COLUMNS: &str = "id, name, version, coalesce(metadata, '{}') as metadata, \
     coalesce(user_metadata, '{}') as user_metadata, created_at, updated_at";

fn object(row: &Row) -> Result<Object, StorageError> {
    Ok(Object {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        metadata: row.try_get("metadata")?,
        user_metadata: row.try_get("user_metadata")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}

pub async fn find_bucket(tx: &Transaction, id: &str) -> Result<Option<Bucket>, StorageError> {
    let statement = tx
        .client()?
        .prepare_cached("select public, file_size_limit, allowed_mime_types from storage.buckets where id = $1")
        .await?;
    let row = tx.client()?.query_opt(&statement, &[&id]).await?;
    row.map(|row| {
        Ok(Bucket {
            public: row.try_get::<_, Option<bool>>("public")?.unwrap_or(false),
            file_size_limit: row.try_get("file_size_limit")?,
            allowed_mime_types: row.try_get("allowed_mime_types")?,
        })
    })
    .transpose()
}

pub async fn find_object(tx: &Transaction, bucket: &str, name: &str) -> Result<Option<Object>, StorageError> {
    let sql = format!("select {OBJECT_COLUMNS} from storage.objects where bucket_id = $1 and name = $2");
    let statement = tx.client()?.prepare_cached(&sql).await?;
    tx.client()?.query_opt(&statement, &[&bucket, &name]).await?.as_ref().map(object).transpose()
}

/// Serialises writers of one key until the transaction ends.
pub async fn lock_key(tx: &Transaction, bucket: &str, name: &str) -> Result<(), StorageError> {
    let statement =
        tx.client()?.prepare_cached("select pg_advisory_xact_lock(hashtextextended($1 || '/' || $2, 0))").await?;
    tx.client()?.query(&statement, &[&bucket, &name]).await?;
    Ok(())
}

/// Inserts a row. A key that exists already is a unique violation, unless `upsert`. Without RETURNING where
/// nothing is updated, so that an uploader needs no right to read.
pub async fn insert_object(tx: &Transaction, new: &NewObject<'_>, upsert: bool) -> Result<(), StorageError> {
    const INSERT: &str = "insert into storage.objects (bucket_id, name, owner, owner_id, version, metadata, user_metadata) \
         values ($1, $2, $3, $4, $5, $6, $7)";
    const ON_CONFLICT: &str = " on conflict (name, bucket_id) do update set owner = excluded.owner, \
         owner_id = excluded.owner_id, version = excluded.version, metadata = excluded.metadata, \
         user_metadata = excluded.user_metadata returning id";
    let sql = if upsert { format!("{INSERT}{ON_CONFLICT}") } else { INSERT.to_owned() };
    let owner_uuid = new.owner.and_then(|o| uuid::Uuid::parse_str(o).ok());
    let statement = tx.client()?.prepare_cached(&sql).await?;
    tx.client()?
        .query(
            &statement,
            &[&new.bucket, &new.name, &owner_uuid, &new.owner, &new.version, &new.metadata, &new.user_metadata],
        )
        .await?;
    Ok(())
}

/// Deletes the named objects the caller may delete and sees; the rows as the API answers them.
pub async fn delete_objects(
    tx: &Transaction,
    bucket: &str,
    names: &[String],
) -> Result<Vec<(Object, Value)>, StorageError> {
    let sql = format!(
        "with gone as (delete from storage.objects where bucket_id = $1 and name = any($2) returning *) \
         select {OBJECT_COLUMNS}, to_jsonb(gone) - 'path_tokens' as whole from gone order by name"
    );
    let statement = tx.client()?.prepare_cached(&sql).await?;
    let rows = tx.client()?.query(&statement, &[&bucket, &names]).await?;
    rows.iter().map(|row| Ok((object(row)?, row.try_get("whole")?))).collect()
}

/// What a listing asks for.
pub struct Listing<'a> {
    pub bucket: &'a str,
    pub prefix: &'a str,
    pub search: &'a str,
    pub limit: i32,
    pub offset: i32,
    pub sort_column: &'a str,
    pub sort_order: &'a str,
}

/// Rows of `storage.search`: names relative to the prefix, folders with a null id.
pub async fn list_objects(tx: &Transaction, asked: &Listing<'_>) -> Result<Vec<Value>, StorageError> {
    let levels = i32::try_from(asked.prefix.split('/').filter(|s| !s.is_empty()).count()).unwrap_or(i32::MAX) + 1;
    let statement = tx
        .client()?
        .prepare_cached("select to_jsonb(found) as row from storage.search($1, $2, $3, $4, $5, $6, $7, $8) as found")
        .await?;
    let rows = tx
        .client()?
        .query(
            &statement,
            &[
                &asked.prefix,
                &asked.bucket,
                &asked.limit,
                &levels,
                &asked.offset,
                &asked.search,
                &asked.sort_column,
                &asked.sort_order,
            ],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get("row")?)).collect()
}
