//! The fixed statements of storage: the transaction first, typed arguments, typed rows.

use futures_util::join;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::error::StorageError;
use crate::db::{Client, Statement, Transaction, Value as Param};

/// The restrictions of a bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub public: bool,
    pub file_size_limit: Option<i64>,
    pub allowed_mime_types: Option<Vec<String>>,
}

/// The row of an object.
#[derive(Clone, Debug)]
pub struct Object {
    pub id: uuid::Uuid,
    pub name: String,
    pub version: Option<String>,
    pub metadata: Value,
    /// Null if nobody has set any.
    pub user_metadata: Value,
    pub created_at: chrono::DateTime<chrono::Utc>,
    pub updated_at: chrono::DateTime<chrono::Utc>,
}

impl Object {
    /// A string in the file's metadata; empty if absent.
    pub fn text(&self, name: &str) -> &str {
        self.metadata.get(name).and_then(Value::as_str).unwrap_or("")
    }

    pub fn size(&self) -> u64 {
        self.known_size().unwrap_or(0)
    }

    /// `None` if the row tells no size.
    pub fn known_size(&self) -> Option<u64> {
        self.metadata.get("size").and_then(Value::as_u64)
    }

    pub fn version(&self) -> &str {
        self.version.as_deref().unwrap_or("")
    }

    /// Whether this is the version that a client names, if it names one. Former versions are not kept.
    pub fn is_version(&self, named: Option<&str>) -> bool {
        named.is_none_or(|id| self.version.as_deref() == Some(id))
    }
}

/// A row to write.
#[derive(Clone, Debug)]
pub struct NewObject<'a> {
    pub bucket: &'a str,
    pub name: &'a str,
    /// The uploader's `sub`. A uuid is also stored in the older column `owner`.
    pub owner: Option<&'a str>,
    pub version: &'a str,
    pub metadata: &'a Value,
    pub user_metadata: Option<&'a Value>,
}

impl NewObject<'_> {
    fn owner_uuid(&self) -> Option<uuid::Uuid> {
        self.owner.and_then(|owner| uuid::Uuid::parse_str(owner).ok())
    }

    fn values<'a>(&'a self, owner: &'a Option<uuid::Uuid>) -> [Param<'a>; 7] {
        [&self.bucket, &self.name, owner, &self.owner, &self.version, &self.metadata, &self.user_metadata]
    }
}

/// The row that a key had during a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub id: uuid::Uuid,
    pub version: Option<String>,
}

/// Which row of its key an upload may replace.
#[derive(Clone, Copy, Debug)]
pub enum Replaceable<'a> {
    /// None: the key must be free.
    Nothing,
    Anything,
    /// The one that the caller's trial saw, if it saw one.
    Only(Option<&'a Seen>),
}

impl Replaceable<'_> {
    /// The statement for [`write_object`].
    pub fn statement(self) -> &'static str {
        match self {
            Self::Nothing => WRITE_NEW,
            Self::Anything | Self::Only(_) => WRITE,
        }
    }
}

const OBJECT_COLUMNS: &str = "id, name, version, coalesce(metadata, '{}') as metadata, \
     user_metadata, created_at, updated_at";

fn object(row: &Row) -> Result<Object, StorageError> {
    Ok(Object {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        metadata: row.try_get("metadata")?,
        user_metadata: row.try_get::<_, Option<Value>>("user_metadata")?.unwrap_or_default(),
        created_at: row.try_get::<_, Option<_>>("created_at")?.unwrap_or_default(),
        updated_at: row.try_get::<_, Option<_>>("updated_at")?.unwrap_or_default(),
    })
}

fn bucket(row: &Row) -> Result<Bucket, StorageError> {
    Ok(Bucket {
        public: row.try_get::<_, Option<bool>>("public")?.unwrap_or(false),
        file_size_limit: row.try_get("file_size_limit")?,
        allowed_mime_types: row.try_get("allowed_mime_types")?,
    })
}

pub const FIND_BUCKET: &str = "select public, file_size_limit, allowed_mime_types from storage.buckets where id = $1";
const SET_ROLE: &str = "select set_config('role', $1, true)";

pub async fn find_bucket(tx: &Transaction, id: &str) -> Result<Option<Bucket>, StorageError> {
    let statement = tx.client()?.prepare_cached(FIND_BUCKET).await?;
    read_bucket(tx.client()?, &statement, id).await
}

/// Switches to another role of the same login.
pub async fn set_role(tx: &Transaction, role: &str) -> Result<(), StorageError> {
    let statement = tx.client()?.prepare_cached(SET_ROLE).await?;
    tx.client()?.query(&statement, &[&role]).await.map(drop).map_err(about_role)
}

/// A role that does not exist or is not permitted is the token's fault.
fn about_role(error: tokio_postgres::Error) -> StorageError {
    match error.as_db_error() {
        Some(refusal)
            if [SqlState::INVALID_PARAMETER_VALUE, SqlState::INSUFFICIENT_PRIVILEGE].contains(refusal.code()) =>
        {
            StorageError::AccessDenied(refusal.message().to_owned())
        }
        _ => error.into(),
    }
}

pub const FIND_OBJECT: &str = "select id, name, version, coalesce(metadata, '{}') as metadata, \
     user_metadata, created_at, updated_at \
     from storage.objects where bucket_id = $1 and name = $2";

pub async fn find_object(tx: &Transaction, bucket: &str, name: &str) -> Result<Option<Object>, StorageError> {
    let statement = tx.client()?.prepare_cached(FIND_OBJECT).await?;
    read_object(tx.client()?, &statement, bucket, name).await
}

pub const FIND_BUCKET_AND_OBJECT: [&str; 3] = [
    FIND_BUCKET,
    "select set_config('role', case \
       when coalesce((select public from storage.buckets where id = $2), false) then current_setting('role') else $1 \
     end, true)",
    FIND_OBJECT,
];

/// [`find_object`] with its statement prepared.
pub async fn read_object(
    client: &Client,
    statement: &Statement,
    bucket: &str,
    name: &str,
) -> Result<Option<Object>, StorageError> {
    client.query_opt(statement, &[&bucket, &name]).await?.as_ref().map(object).transpose()
}

/// [`find_bucket`] with its statement prepared.
pub async fn read_bucket(client: &Client, statement: &Statement, id: &str) -> Result<Option<Bucket>, StorageError> {
    client.query_opt(statement, &[&id]).await?.as_ref().map(bucket).transpose()
}

/// The bucket regardless of the role, and the object as `role` sees it, or regardless of the role if the bucket is public. The
/// transaction begins as service_role and may end as `role`.
pub async fn find_bucket_and_object(
    client: &Client,
    [find, switch, read]: [Statement; 3],
    id: &str,
    name: &str,
    role: &str,
) -> Result<(Bucket, Option<Object>), StorageError> {
    let (of_bucket, of_switch, of_object): ([Param<'_>; 1], [Param<'_>; 2], [Param<'_>; 2]) =
        ([&id], [&role, &id], [&id, &name]);
    let (found, switched, seen) = join!(
        client.query_opt(&find, &of_bucket),
        client.query(&switch, &of_switch),
        client.query_opt(&read, &of_object),
    );
    let found = found?.as_ref().map(bucket).transpose()?.ok_or(StorageError::NoSuchBucket)?;
    switched.map_err(about_role)?;
    Ok((found, seen?.as_ref().map(object).transpose()?))
}

pub const FIND_AS_CALLER: [&str; 3] = [FIND_BUCKET, SET_ROLE, FIND_OBJECT];

/// The object as `role` sees it, even if its bucket is public. The transaction begins as service_role.
pub async fn find_as_caller(
    client: &Client,
    [find, switch, read]: [Statement; 3],
    id: &str,
    name: &str,
    role: &str,
) -> Result<Option<Object>, StorageError> {
    let (of_bucket, of_role, of_object): ([Param<'_>; 1], [Param<'_>; 1], [Param<'_>; 2]) =
        ([&id], [&role], [&id, &name]);
    let (found, switched, seen) = join!(
        client.query_opt(&find, &of_bucket),
        client.query(&switch, &of_role),
        client.query_opt(&read, &of_object),
    );
    found?.ok_or(StorageError::NoSuchBucket)?;
    switched.map_err(about_role)?;
    seen?.as_ref().map(object).transpose()
}

/// The names among these that the caller may see.
pub async fn visible_names(tx: &Transaction, bucket: &str, names: &[String]) -> Result<Vec<String>, StorageError> {
    let statement =
        tx.client()?.prepare_cached("select name from storage.objects where bucket_id = $1 and name = any($2)").await?;
    let rows = tx.client()?.query(&statement, &[&bucket, &names]).await?;
    rows.iter().map(|row| Ok(row.try_get("name")?)).collect()
}

pub const LOCK_KEY: &str = "select pg_advisory_xact_lock(hashtextextended($1 || '/' || $2, 0))";

/// Serializes writers of one key until the transaction ends. To lock two keys, lock them in the order of their names.
pub async fn lock_key(client: &Client, statement: &Statement, bucket: &str, name: &str) -> Result<(), StorageError> {
    match client.query(statement, &[&bucket, &name]).await.map_err(StorageError::from) {
        Err(StorageError::Locked) => Err(StorageError::LockTimeout),
        outcome => outcome.map(drop),
    }
}

macro_rules! insert {
    ($further:literal) => {
        concat!(
            "insert into storage.objects (bucket_id, name, owner, owner_id, version, metadata, user_metadata) \
             values ($1, $2, $3, $4, $5, $6, $7)",
            $further
        )
    };
}

// As in the reference, what a writer does not give stays as it is: the owner if a server with the service key overwrites a user's
// object, the user metadata if a copy brings none.
macro_rules! upsert {
    ($condition:literal, $further:literal) => {
        concat!(
            insert!(
                " on conflict (name, bucket_id) do update set \
                 owner = case when excluded.owner_id is null then objects.owner else excluded.owner end, \
                 owner_id = coalesce(excluded.owner_id, objects.owner_id), version = excluded.version, \
                 metadata = excluded.metadata, \
                 user_metadata = coalesce(excluded.user_metadata, objects.user_metadata)"
            ),
            $condition,
            " returning ",
            $further
        )
    };
}

const FIND_BUCKET_AND_SEEN: &str = "select public, file_size_limit, allowed_mime_types, o.id as object, o.version \
     from storage.buckets as b left join storage.objects as o on o.bucket_id = b.id and o.name = $2 where b.id = $1";

pub const TRY_INSERT: [&str; 3] = [FIND_BUCKET_AND_SEEN, SET_ROLE, insert!("")];
pub const TRY_UPSERT: [&str; 3] = [FIND_BUCKET_AND_SEEN, SET_ROLE, upsert!("", "id")];

/// The outcome of a trial.
pub struct TriedInsert {
    /// The bucket's restrictions if it exists.
    pub rules: Option<Bucket>,
    /// The row of the key, also if the caller may not see it.
    pub seen: Option<Seen>,
    /// Whether the caller may write the row.
    pub permitted: Result<(), StorageError>,
}

/// Tries to write a row. The transaction begins as service_role, which reads the bucket and the key's row; then `role` inserts. It
/// must be rolled back in any case.
pub async fn try_insert(
    client: &Client,
    [find, switch, insert]: [Statement; 3],
    role: &str,
    new: &NewObject<'_>,
) -> Result<TriedInsert, StorageError> {
    let owner = new.owner_uuid();
    let (of_bucket, of_role): ([Param<'_>; 2], [Param<'_>; 1]) = ([&new.bucket, &new.name], [&role]);
    let of_row = new.values(&owner);
    let (found, switched, inserted) =
        join!(client.query_opt(&find, &of_bucket), client.query(&switch, &of_role), client.query(&insert, &of_row),);
    let found = found?;
    let rules = found.as_ref().map(bucket).transpose()?;
    let seen = match &found {
        Some(row) => row
            .try_get::<_, Option<_>>("object")?
            .map(|id| Ok::<_, StorageError>(Seen { id, version: row.try_get("version")? })),
        None => None,
    };
    let permitted = switched.map_err(about_role).and_then(|_| Ok(inserted.map(drop)?));
    Ok(TriedInsert { rules, seen: seen.transpose()?, permitted })
}

pub const WRITE_NEW: &str = insert!(
    " returning id, name, version, coalesce(metadata, '{}') as metadata, user_metadata, \
     created_at, updated_at, to_jsonb(objects) as whole"
);
pub const WRITE: &str = upsert!(
    " where $8 or (objects.id = $9 and objects.version is not distinct from $10)",
    "id, name, version, coalesce(metadata, '{}') as metadata, user_metadata, \
     created_at, updated_at, to_jsonb(objects) as whole"
);

/// Writes a row as the transaction's role, with [`Replaceable::statement`]. `None` if the key's row is another than the one that may be
/// replaced; if none may, that is a unique violation.
pub async fn write_object(
    client: &Client,
    statement: &Statement,
    new: &NewObject<'_>,
    replaceable: Replaceable<'_>,
) -> Result<Option<(Object, Value)>, StorageError> {
    let owner = new.owner_uuid();
    let [bucket, name, owner_uuid, owner_id, version, metadata, user_metadata] = new.values(&owner);
    let (any, seen) = match replaceable {
        Replaceable::Nothing => {
            let row = client.query_one(statement, &new.values(&owner)).await?;
            return Ok(Some((object(&row)?, row.try_get("whole")?)));
        }
        Replaceable::Anything => (true, None),
        Replaceable::Only(seen) => (false, seen),
    };
    let (id, version_seen) = (seen.map(|seen| seen.id), seen.and_then(|seen| seen.version.as_deref()));
    let values: [Param<'_>; 10] =
        [bucket, name, owner_uuid, owner_id, version, metadata, user_metadata, &any, &id, &version_seen];
    match client.query_opt(statement, &values).await? {
        Some(row) => Ok(Some((object(&row)?, row.try_get("whole")?))),
        None if any => Err(StorageError::Unavailable("the database wrote no row".to_owned())),
        None => Ok(None),
    }
}

/// Ends a resumable upload in the transaction that writes its object. It is remembered for clients that lost the answer. False if
/// it has ended already, or if this writer has lost the lease.
pub async fn finish_resumable(tx: &Transaction, id: uuid::Uuid, writer: uuid::Uuid) -> Result<bool, StorageError> {
    let client = tx.client()?;
    let finish = client
        .prepare_cached(
            "update _supavisor.resumable_uploads set finished_at = now() \
             where id = $1 and writer = $2 and finished_at is null",
        )
        .await?;
    let clear = client.prepare_cached("delete from _supavisor.resumable_parts where upload = $1").await?;
    let finished = client.execute(&finish, &[&id, &writer]).await?;
    client.execute(&clear, &[&id]).await?;
    Ok(finished > 0)
}

/// Removes a multipart upload and its parts; false if it does not exist any more.
pub async fn delete_multipart(tx: &Transaction, id: &str) -> Result<bool, StorageError> {
    let statement = tx.client()?.prepare_cached("delete from storage.s3_multipart_uploads where id = $1").await?;
    Ok(tx.client()?.execute(&statement, &[&id]).await? > 0)
}

/// The destination of an object.
pub struct Destination<'a> {
    pub bucket: &'a str,
    pub name: &'a str,
    pub version: &'a str,
    pub owner: Option<&'a str>,
}

/// Moves an object; false if the transaction's role does not see it or may not move it.
pub async fn rename_object(
    tx: &Transaction,
    bucket: &str,
    name: &str,
    to: &Destination<'_>,
) -> Result<bool, StorageError> {
    let owner_uuid = to.owner.and_then(|o| uuid::Uuid::parse_str(o).ok());
    let statement = tx
        .client()?
        .prepare_cached(
            "update storage.objects set bucket_id = $3, name = $4, version = $5, owner = coalesce($6, owner), \
             owner_id = coalesce($7, owner_id) where bucket_id = $1 and name = $2 returning id",
        )
        .await?;
    let rows = tx
        .client()?
        .query(&statement, &[&bucket, &name, &to.bucket, &to.name, &to.version, &owner_uuid, &to.owner])
        .await?;
    Ok(!rows.is_empty())
}

/// Deletes those of the named objects that the caller may see and delete. Returns their rows in the API's form.
pub async fn delete_objects(
    tx: &Transaction,
    bucket: &str,
    names: &[String],
) -> Result<Vec<(Object, Value)>, StorageError> {
    let sql = format!(
        "with gone as (delete from storage.objects where bucket_id = $1 and name = any($2) returning *) \
         select {OBJECT_COLUMNS}, to_jsonb(gone) as whole from gone order by name"
    );
    let statement = tx.client()?.prepare_cached(&sql).await?;
    let rows = tx.client()?.query(&statement, &[&bucket, &names]).await?;
    rows.iter().map(|row| Ok((object(row)?, row.try_get("whole")?))).collect()
}

/// The same for objects that still have the version named beside each.
pub async fn delete_versions(
    tx: &Transaction,
    bucket: &str,
    names: &[&str],
    versions: &[&str],
) -> Result<Vec<(Object, Value)>, StorageError> {
    let sql = format!(
        "with gone as (delete from storage.objects as o using unnest($2::text[], $3::text[]) as named(key, id) \
           where o.bucket_id = $1 and o.name = named.key and o.version = named.id returning o.*) \
         select {OBJECT_COLUMNS}, to_jsonb(gone) as whole from gone order by name"
    );
    let statement = tx.client()?.prepare_cached(&sql).await?;
    let rows = tx.client()?.query(&statement, &[&bucket, &names, &versions]).await?;
    rows.iter().map(|row| Ok((object(row)?, row.try_get("whole")?))).collect()
}

/// The parameters of a listing.
pub struct Listing<'a> {
    pub bucket: &'a str,
    pub prefix: &'a str,
    pub search: &'a str,
    pub limit: i32,
    pub offset: i32,
    pub sort_column: &'a str,
    pub sort_order: &'a str,
}

/// Rows of `storage.search`: names relative to the prefix; folders have a null id.
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

macro_rules! entry {
    () => {
        "jsonb_build_object('id', id, 'name', name, 'metadata', metadata, 'updated_at', updated_at, \
           'created_at', created_at, 'last_accessed_at', last_accessed_at) as row"
    };
}

/// The object with exactly this name, if its name contains `search` in any letter case.
pub async fn find_entry(
    tx: &Transaction,
    bucket: &str,
    name: &str,
    search: &str,
) -> Result<Option<Value>, StorageError> {
    let statement = tx
        .client()?
        .prepare_cached(concat!(
            "select ",
            entry!(),
            " from storage.objects \
             where bucket_id = $1 and name = $2 and ($3 = '' or position(lower($3) in lower(name)) > 0)"
        ))
        .await?;
    let row = tx.client()?.query_opt(&statement, &[&bucket, &name, &search]).await?;
    row.map(|row| Ok(row.try_get("row")?)).transpose()
}

/// The parameters of a page of list-v2.
#[derive(Clone, Debug)]
pub struct PageAsked<'a> {
    pub bucket: &'a str,
    pub prefix: &'a str,
    pub delimiter: Option<&'a str>,
    pub limit: i32,
    /// Entries up to this name are left out. A folder's name ends with the delimiter.
    pub after: &'a str,
    /// `name`, `created_at` or `updated_at`.
    pub sort_column: &'a str,
    /// The value of the sort column at `after`; empty if sorted by name.
    pub after_value: &'a str,
    pub descending: bool,
}

/// Entries of list-v2; a folder has a null `id`.
pub async fn list_page(tx: &Transaction, asked: &PageAsked<'_>) -> Result<Vec<Value>, StorageError> {
    let order = if asked.descending { "desc" } else { "asc" };
    let client = tx.client()?;
    let rows = match asked.delimiter {
        Some("/") => {
            let levels = i32::try_from(asked.prefix.split('/').count()).unwrap_or(i32::MAX);
            let statement = client
                .prepare_cached(
                    "select to_jsonb(found) as row from storage.search_v2($1, $2, $3, $4, $5, $6, $7, $8) as found",
                )
                .await?;
            client
                .query(
                    &statement,
                    &[
                        &asked.prefix,
                        &asked.bucket,
                        &asked.limit,
                        &levels,
                        &asked.after,
                        &order,
                        &asked.sort_column,
                        &asked.after_value,
                    ],
                )
                .await?
        }
        Some(delimiter) => {
            let statement = client
                .prepare_cached(
                    "select to_jsonb(found) as row \
                     from storage.list_objects_with_delimiter($1, $2, $3, $4, $5, '', $6) as found",
                )
                .await?;
            client
                .query(&statement, &[&asked.bucket, &asked.prefix, &delimiter, &asked.limit, &asked.after, &order])
                .await?
        }
        None => {
            // Both words come from fixed lists.
            let at = match asked.sort_column {
                "created_at" => Some("created_at"),
                "updated_at" => Some("updated_at"),
                _ => None,
            };
            let beyond = if asked.descending { "<" } else { ">" };
            let (condition, sorting) = match at {
                Some(column) => (
                    format!(
                        "(coalesce(date_trunc('milliseconds', {column}), 'epoch'), name collate \"C\") {beyond} \
                         (coalesce(nullif($4, '')::text::timestamptz, 'epoch'), $3)"
                    ),
                    format!("coalesce(date_trunc('milliseconds', {column}), 'epoch') {order}, "),
                ),
                None => (format!("name collate \"C\" {beyond} $3 and $4 = ''"), String::new()),
            };
            let statement = client
                .prepare_cached(&format!(
                    "select {entry} from storage.objects \
                     where bucket_id = $1 and name collate \"C\" >= $2 and name collate \"C\" < $2 || chr(1114111) \
                       and ($3 = '' or {condition}) \
                     order by {sorting}name collate \"C\" {order} limit $5",
                    entry = entry!(),
                ))
                .await?;
            client
                .query(
                    &statement,
                    &[&asked.bucket, &asked.prefix, &asked.after, &asked.after_value, &i64::from(asked.limit)],
                )
                .await?
        }
    };
    rows.iter().map(|row| Ok(row.try_get("row")?)).collect()
}
