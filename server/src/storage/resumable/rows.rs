//! The rows of resumable uploads: `_supavisor.resumable_uploads` and their parts.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::TusError;
use super::protocol::{Announced, UploadId};
use crate::db::Transaction;
use crate::storage::backend::{Place, StoredFile};
use crate::storage::download::http_date;
use crate::storage::key::ObjectKey;
use crate::storage::{Storage, StorageError};

/// The row of an upload.
#[derive(Clone, Debug)]
pub struct Upload {
    /// `None` until a client that deferred the length has sent it.
    pub size: Option<u64>,
    pub offset: u64,
    pub announced: Announced,
    pub parts: i64,
    pub expires_at: DateTime<Utc>,
    pub finished: bool,
}

impl Upload {
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether all bytes arrived but the object does not exist yet.
    pub fn lacks_object(&self) -> bool {
        self.size == Some(self.offset) && !self.finished
    }

    pub fn expires(&self) -> String {
        http_date(self.expires_at)
    }
}

/// The bytes of one request.
pub struct Part {
    pub id: Uuid,
    pub size: u64,
    pub md5: Vec<u8>,
}

impl Part {
    pub fn place(&self, upload: Uuid) -> Place {
        Place::part(&upload.to_string(), self.id)
    }
}

/// Duration of a lease unless it is renewed.
const LEASE: &str = "30 seconds";

const COLUMNS: &str = "size, \"offset\", metadata, expires_at, finished_at is not null as finished, \
     (select count(*) from _supavisor.resumable_parts as p where p.upload = u.id) as parts";

fn upload(row: &Row) -> Result<Upload, StorageError> {
    let size: Option<i64> = row.try_get("size")?;
    let metadata: serde_json::Value = row.try_get("metadata")?;
    let mut announced: Announced = serde_json::from_value(metadata).unwrap_or_default();
    announced.size = size.and_then(|size| u64::try_from(size).ok());
    Ok(Upload {
        size: announced.size,
        offset: u64::try_from(row.try_get::<_, i64>("offset")?).unwrap_or(0),
        announced,
        parts: row.try_get("parts")?,
        expires_at: row.try_get("expires_at")?,
        finished: row.try_get("finished")?,
    })
}

/// A number in PostgreSQL's integer type.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

async fn query(
    tx: &Transaction,
    sql: &str,
    values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<Vec<Row>, StorageError> {
    let statement = tx.client()?.prepare_cached(sql).await?;
    Ok(tx.client()?.query(&statement, values).await?)
}

pub async fn insert(
    storage: &Storage,
    id: &UploadId,
    announced: &Announced,
    owner: Option<&str>,
) -> Result<(), StorageError> {
    let metadata = serde_json::to_value(announced).map_err(|error| StorageError::Internal(error.to_string()))?;
    let expires_at = Utc::now() + storage.config.resumable_life;
    let size = announced.size.map(signed);
    let tx = storage.as_service().await?;
    query(
        &tx,
        "insert into _supavisor.resumable_uploads (id, bucket_id, key, owner_id, size, metadata, expires_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
        &[&id.version, &id.bucket, &id.key.as_str(), &owner, &size, &metadata, &expires_at],
    )
    .await?;
    Ok(tx.commit().await?)
}

/// Finds an upload that exists and has not expired. None expires while it is being written: one request may take longer than its life.
pub async fn find(storage: &Storage, id: &UploadId) -> Result<Upload, TusError> {
    let tx = storage.as_service().await?;
    let sql = format!(
        "select {COLUMNS}, expires_at < now() and (writer is null or writer_until < now()) as expired \
         from _supavisor.resumable_uploads as u \
         where id = $1 and bucket_id = $2 and key = $3"
    );
    let rows = query(&tx, &sql, &[&id.version, &id.bucket, &id.key.as_str()]).await?;
    tx.rollback().await?;
    let row = rows.first().ok_or(TusError::NotFound)?;
    let found = upload(row)?;
    let expired: bool = row.try_get("expired")?;
    if expired && !found.finished { Err(TusError::Gone) } else { Ok(found) }
}

/// Takes the lease if it is free. Otherwise asks its holder to release it and returns `None`.
pub async fn claim(storage: &Storage, id: &UploadId, writer: Uuid) -> Result<Option<Upload>, TusError> {
    find(storage, id).await?;
    let tx = storage.as_service().await?;
    let sql = format!(
        "update _supavisor.resumable_uploads as u \
         set writer = $2, writer_until = now() + interval '{LEASE}', writer_asked = false \
         where id = $1 and (writer is null or writer_until < now()) returning {COLUMNS}"
    );
    let rows = query(&tx, &sql, &[&id.version, &writer]).await?;
    if rows.is_empty() {
        let ask = "update _supavisor.resumable_uploads set writer_asked = true where id = $1 and not writer_asked";
        query(&tx, ask, &[&id.version]).await?;
    }
    tx.commit().await?;
    Ok(rows.first().map(upload).transpose()?)
}

/// Renews a lease. Returns whether another request asks for it or has it.
pub async fn renew(storage: &Storage, upload: Uuid, writer: Uuid) -> Result<bool, StorageError> {
    let tx = storage.as_service().await?;
    let sql = format!(
        "update _supavisor.resumable_uploads set writer_until = now() + interval '{LEASE}' \
         where id = $1 and writer = $2 returning writer_asked"
    );
    let rows = query(&tx, &sql, &[&upload, &writer]).await?;
    tx.commit().await?;
    rows.first().map_or(Ok(true), |row| Ok(row.try_get(0)?))
}

pub async fn release(storage: &Storage, upload: Uuid, writer: Uuid) -> Result<(), StorageError> {
    let tx = storage.as_service().await?;
    let sql = "update _supavisor.resumable_uploads set writer = null, writer_until = null, writer_asked = false \
               where id = $1 and writer = $2";
    query(&tx, sql, &[&upload, &writer]).await?;
    Ok(tx.commit().await?)
}

/// Sets the length that was deferred. Only the lease's holder may do this. False if it has lost the lease.
pub async fn set_size(storage: &Storage, id: &UploadId, writer: Uuid, size: u64) -> Result<bool, StorageError> {
    let tx = storage.as_service().await?;
    let sql = "update _supavisor.resumable_uploads set size = $2 \
               where id = $1 and writer = $3 and size is null and \"offset\" <= $2 returning id";
    let rows = query(&tx, sql, &[&id.version, &signed(size), &writer]).await?;
    tx.commit().await?;
    Ok(!rows.is_empty())
}

/// Advances the offset past a durable part. Only the lease's holder may do this. Also extends the upload's expiry.
pub async fn add_part(
    storage: &Storage,
    id: &UploadId,
    writer: Uuid,
    before: &Upload,
    part: Uuid,
    file: &StoredFile,
) -> Result<Upload, TusError> {
    let (size, offset) = (signed(file.size), signed(before.offset));
    let expires_at = Utc::now() + storage.config.resumable_life;
    let number = i32::try_from(before.parts).unwrap_or(i32::MAX);
    let tx = storage.as_service().await?;
    let moved = query(
        &tx,
        "update _supavisor.resumable_uploads set \"offset\" = \"offset\" + $3, expires_at = $4 \
         where id = $1 and writer = $2 and \"offset\" = $5 returning id",
        &[&id.version, &writer, &size, &expires_at, &offset],
    )
    .await?;
    if moved.is_empty() {
        tx.rollback().await?;
        return Err(TusError::OffsetConflict);
    }
    query(
        &tx,
        "insert into _supavisor.resumable_parts (upload, number, id, size, md5) values ($1, $2, $3, $4, $5)",
        &[&id.version, &number, &part, &size, &file.md5.as_slice()],
    )
    .await?;
    let sql = format!("select {COLUMNS} from _supavisor.resumable_uploads as u where id = $1");
    let rows = query(&tx, &sql, &[&id.version]).await?;
    tx.commit().await?;
    Ok(upload(rows.first().ok_or(TusError::NotFound)?)?)
}

/// The parts in order.
pub async fn parts(storage: &Storage, id: Uuid) -> Result<Vec<Part>, StorageError> {
    let tx = storage.as_service().await?;
    let sql = "select id, size, md5 from _supavisor.resumable_parts where upload = $1 order by number";
    let rows = query(&tx, sql, &[&id]).await?;
    tx.rollback().await?;
    rows.iter()
        .map(|row| {
            let size = u64::try_from(row.try_get::<_, i64>("size")?).unwrap_or(0);
            Ok(Part { id: row.try_get("id")?, size, md5: row.try_get("md5")? })
        })
        .collect()
}

pub async fn delete(storage: &Storage, id: Uuid) -> Result<(), StorageError> {
    let tx = storage.as_service().await?;
    query(&tx, "delete from _supavisor.resumable_uploads where id = $1", &[&id]).await?;
    Ok(tx.commit().await?)
}

/// Some expired uploads that are not being written.
pub async fn expired(storage: &Storage, most: i64) -> Result<Vec<UploadId>, StorageError> {
    let tx = storage.as_service().await?;
    let rows = query(
        &tx,
        "select id, bucket_id, key from _supavisor.resumable_uploads \
         where expires_at < now() and (writer is null or writer_until < now()) order by expires_at limit $1",
        &[&most],
    )
    .await?;
    tx.rollback().await?;
    rows.iter()
        .map(|row| {
            let key: String = row.try_get("key")?;
            Ok(UploadId {
                bucket: row.try_get("bucket_id")?,
                key: ObjectKey::parse(&key)?,
                version: row.try_get("id")?,
            })
        })
        .collect()
}

/// Those of these uploads, resumable or S3's, that are unfinished and need their parts.
pub async fn known_uploads(storage: &Storage, ids: &[String]) -> Result<HashSet<String>, StorageError> {
    let tx = storage.as_service().await?;
    let rows = query(
        &tx,
        "select id::text from _supavisor.resumable_uploads where id::text = any($1) and finished_at is null \
         union all select id from storage.s3_multipart_uploads where id = any($1)",
        &[&ids],
    )
    .await?;
    tx.rollback().await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
