//! Verifies a backup: restores it into a scratch cluster, then reads every row and file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use md5::{Digest, Md5};
use tokio_postgres::{Client, NoTls};

use super::counts::count_rows;
use super::dump::Prepared;
use super::error::BackupError;
use super::restore::{LogFrom, Placing, Restored, Target, restore};
use super::stop_flag::StopFlag;
use super::{Identity, blocking, dump, dump_facts, inspect};
use crate::embedded_pg::{EmbeddedOptions, EmbeddedPostgres, Passwords, Site};
use crate::storage::Place;

/// How many rows of objects are read at a time.
const PAGE: i64 = 1000;

/// PostgreSQL's defaults of `max_connections` and of `max_locks_per_transaction`.
pub const SESSIONS: i64 = 100;
pub const LOCKS: i64 = 64;

/// The result of a scratch restore.
#[derive(Clone, Debug)]
pub struct Proof {
    pub restored: Restored,
    pub tables: usize,
    pub rows: i64,
    /// Number of files of objects that were hashed.
    pub files: usize,
    /// What differs from the backup, a sentence each.
    pub differences: Vec<String>,
}

/// The folder of a scratch restore and the data root of its cluster; both are removed when dropped.
struct Scratch {
    embedded: EmbeddedOptions,
    root: PathBuf,
}

impl Scratch {
    /// Claims `folder` and removes what a killed command left there. Refuses while another command works there.
    async fn claim(folder: &Path, bin_dir: Option<PathBuf>) -> Result<Self, BackupError> {
        let embedded = EmbeddedOptions {
            data_root: folder.to_owned(),
            port: 0,
            bin_dir,
            passwords: Passwords::Keep,
            ..EmbeddedOptions::default()
        };
        let site = Site::claim(&embedded).await?;
        let scratch = Self { embedded, root: site.root.clone() };
        for left in [site.cluster(), scratch.files()] {
            match std::fs::remove_dir_all(&left) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(BackupError::io("cannot remove", left)(error));
                }
                _ => {}
            }
        }
        Ok(scratch)
    }

    /// The folder of the files of objects.
    fn files(&self) -> PathBuf {
        self.embedded.data_root.join("storage")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for folder in [&self.root, &self.embedded.data_root] {
            // Remains are removed by the next `claim`.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Restores the last of `archives` (see [`restore`]) below `scratch`, which is removed afterwards, and compares row counts and file
/// hashes. With `log` it verifies that point in time: all rows are read, but there are no counts to compare them with.
pub async fn verify(
    archives: &[PathBuf],
    identities: &[Identity],
    scratch: &Path,
    bin_dir: Option<PathBuf>,
    combine: Result<PathBuf, String>,
    log: Option<&LogFrom>,
) -> Result<Proof, BackupError> {
    let scratch = Scratch::claim(scratch, bin_dir).await?;
    let files = scratch.files();
    let target = Target { embedded: scratch.embedded.clone(), files: files.clone(), replace: false, combine };
    let mut restored = restore(archives, identities, &target, log, &Placing::default()).await?;
    if log.is_some() {
        restored.manifest.rows.clear();
    }
    let running = EmbeddedPostgres::start(&scratch.embedded).await?;
    let outcome = examine(&running.admin_url, restored, &files).await;
    running.discard().await;
    outcome
}

/// The same for a dump, restored into an empty PostgreSQL by the command that `pg_restore` returns for its URL.
pub async fn verify_dump(
    archive: &Path,
    identities: &[Identity],
    scratch: &Path,
    bin_dir: Option<PathBuf>,
    pg_restore: impl FnOnce(&str) -> Result<Command, BackupError>,
) -> Result<Proof, BackupError> {
    let stop_flag = StopFlag::default();
    let _given_up = stop_flag.on_drop();
    let manifest = inspect(archive, identities).await?;
    let mut scratch = Scratch::claim(scratch, bin_dir).await?;
    let locks = manifest.locks_needed(SESSIONS).max(LOCKS);
    scratch.embedded.settings.push((dump::LOCK_SETTING.to_owned(), locks.to_string()));
    let files = scratch.files();
    let running = EmbeddedPostgres::start(&scratch.embedded).await?;
    let outcome = async {
        let (client, connection) = tokio_postgres::connect(&running.admin_url, NoTls).await?;
        tokio::spawn(connection);
        let former = dump_facts::roles(&client, "true").await?;
        let Prepared { files: count, settings: keys, after } =
            dump::prepare(archive, identities, &stop_flag, &client, &files).await?;
        let mut command = pg_restore(&running.admin_url)?;
        command.args(dump::RESTORED);
        dump::feed(archive, identities, &stop_flag, command, &manifest).await?;
        let as_of = manifest.made_at;
        let cluster = running.cluster.clone();
        let restored = Restored { manifest, as_of, cluster, former: None, files: count, keys };
        let mut proof = examine(&running.admin_url, restored, &files).await?;
        // Last: the database's settings may name what is missing here, and count for all later connections.
        client.batch_execute(&after).await?;
        proof.differences.extend(dump_facts::missing(&client, &proof.restored.manifest.facts, &former).await?);
        Ok(proof)
    }
    .await;
    running.discard().await;
    outcome
}

async fn examine(admin_url: &str, restored: Restored, files: &Path) -> Result<Proof, BackupError> {
    let (client, connection) = tokio_postgres::connect(admin_url, NoTls).await?;
    tokio::spawn(connection);
    let rows = count_rows(&client).await?;
    let mut differences = Vec::new();
    for (table, counted) in &restored.manifest.rows {
        let found = rows.get(table).copied();
        let [before, after] = *counted;
        let is_expected = found.is_some_and(|found| (before.min(after)..=before.max(after)).contains(&found));
        if !is_expected && !is_newer(&client, table, &restored.manifest.counted_xid, found).await? {
            let found = found.map_or("no such table".to_owned(), |found| format!("{found} rows"));
            differences.push(format!("{table}: {} rows were backed up, {found} were restored", counted[0]));
        }
    }
    let mut hashed = 0;
    if restored.manifest.files_elsewhere.is_none() && rows.contains_key("storage.objects") {
        hashed = compare_files(&client, files, &mut differences).await?;
    }
    Ok(Proof { tables: rows.len(), rows: rows.values().sum(), restored, files: hashed, differences })
}

/// Whether a table was changed after its rows were counted; then the counts cannot be compared.
async fn is_newer(client: &Client, table: &str, xid: &str, found: Option<i64>) -> Result<bool, BackupError> {
    if found.is_none() {
        return Ok(false);
    }
    // The name is quoted by the catalog query. A row's xmin has the lower 32 of the transaction id's 64 bits.
    let xid = xid.parse::<u64>().unwrap_or(0) & 0xffff_ffff;
    let newer = format!("select exists (select from only {table} where age(xmin) <= age('{xid}'::xid))");
    Ok(client.query_one(&newer, &[]).await?.get(0))
}

/// Compares each object's file with its row. Returns the number of objects.
async fn compare_files(client: &Client, folder: &Path, differences: &mut Vec<String>) -> Result<usize, BackupError> {
    let page = "select bucket_id, name, coalesce(version, ''), metadata->>'eTag', (metadata->>'size')::bigint, id::text \
                from storage.objects where id > $1::text::uuid and bucket_id is not null order by id limit $2";
    let mut after = uuid::Uuid::nil().to_string();
    let mut count = 0;
    loop {
        let rows = client.query(page, &[&after, &PAGE]).await?;
        let Some(last) = rows.last() else { return Ok(count) };
        after = last.get(5);
        let wanted: Vec<(PathBuf, Option<String>, Option<i64>)> = rows
            .iter()
            .map(|row| {
                let place = Place::named(row.get(0), row.get(1), row.get(2));
                (folder.join(place.as_str()), row.get(3), row.get(4))
            })
            .collect();
        count += wanted.len();
        let found = blocking(move || Ok(wanted.iter().filter_map(differs).collect::<Vec<_>>())).await?;
        differences.extend(found);
    }
}

/// Describes how a file differs from its row, if it does.
fn differs((path, etag, size): &(PathBuf, Option<String>, Option<i64>)) -> Option<String> {
    let mut digest = Md5::new();
    let hashed = std::fs::File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut HashWriter(&mut digest)));
    let length = match hashed {
        Ok(length) => length,
        Err(error) => return Some(format!("{}: its file is missing ({error})", path.display())),
    };
    if size.is_some_and(|size| u64::try_from(size) != Ok(length)) {
        return Some(format!("{}: its length differs from its row", path.display()));
    }
    let etag = etag.as_deref().map(|etag| etag.trim_matches('"'));
    // The ETag of a multipart upload is not a hash of the whole file.
    let known = etag.filter(|etag| etag.len() == 32 && etag.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if known.is_some_and(|known| known != hex::encode(digest.finalize())) {
        return Some(format!("{}: its content differs from its row", path.display()));
    }
    None
}

struct HashWriter<'a>(&'a mut Md5);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
