//! Backups of an external database: a dump made with `pg_dump`, the roles that it names, and the files of objects.
//!
//! The unencrypted dump is never written to disk. It is read from a pipe in chunks of a few megabytes, each an entry of the archive.
//! Point-in-time recovery is left to the database's provider. `pg_restore` restores everything in one transaction.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::Utc;
use tokio_postgres::Client;

use super::archive::{self, Item, Manifest, Writer};
use super::backup_store::BackupStore;
use super::counts::{count_rows, counted_xid};
use super::dump_facts::{self, Fact};
use super::error::BackupError;
use super::program::Running;
use super::restore::{Unpacked, require_no_files};
use super::stop_flag::StopFlag;
use super::{
    Contents, Identity, Made, Recipient, Written, archive_name, blocking, create, files, finish, inspect, keys,
};
use crate::db;

/// Folder of the dump's chunks in the archive, sorted by name.
const FOLDER: &str = "dump";
/// Entry with the statements that create the roles that the dump names.
const ROLES: &str = "roles.sql";
/// Entry with the statements to run after `pg_restore`.
const AFTER: &str = "after.sql";
const CHUNK: usize = 8 << 20;
/// How `pg_restore` restores a dump. Another server need not have the tablespaces, which a dump only names.
pub const RESTORED: [&str; 4] = ["--exit-on-error", "--single-transaction", "--no-password", "--no-tablespaces"];

/// The setting for how many locks a PostgreSQL has.
pub const LOCK_SETTING: &str = "max_locks_per_transaction";

/// Schemas whose tables exist in every database and are not content.
const SYSTEM: &str = "('pg_catalog', 'information_schema')";

/// Yields the content of [`ROLES`].
const ROLES_QUERY: &str = include_str!("dump_roles.sql");
/// Yields the content of [`AFTER`].
const AFTER_QUERY: &str = include_str!("dump_after.sql");

/// The major version of the server behind a URL.
pub async fn major_of(url: &str) -> Result<u32, BackupError> {
    let row = connect(url).await?.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?;
    Ok(u32::try_from(row.get::<_, i32>(0)).unwrap_or(0))
}

async fn connect(url: &str) -> Result<Client, BackupError> {
    let config = url
        .parse()
        .map_err(|_| BackupError::Database("DATABASE_URL is not a PostgreSQL connection string".to_owned()))?;
    let opened = db::connect(&config).await.map_err(|error| BackupError::Database(error.to_string()));
    let (client, connection) = opened?;
    tokio::spawn(connection);
    // A provider's limits are for requests. Counting large tables takes longer.
    client.batch_execute("set statement_timeout = 0; set idle_session_timeout = 0").await?;
    Ok(client)
}

/// Dumps the database of `contents` into a new archive in `backup_store`. `pg_dump` already has its connection settings.
pub async fn make(
    contents: &Contents,
    pg_dump: Command,
    backup_store: &BackupStore,
    recipients: &[Recipient],
) -> Result<Made, BackupError> {
    let begun = Utc::now();
    create(backup_store, &archive_name(begun), begun, recipients, |writer| write(contents, pg_dump, writer)).await
}

async fn write(contents: &Contents, mut pg_dump: Command, mut writer: Writer) -> Result<Written, BackupError> {
    let hold = contents.files.hold().await?;
    let client = connect(&contents.admin_url).await?;
    // Whoever restores it locks all that it makes: tables, indexes, sequences, views. Objects of PostgreSQL itself have lower numbers.
    let about = "select (current_setting('server_version_num')::int / 10000)::text, \
                 (select count(*) from pg_class where oid >= 16384 and relpersistence <> 't')";
    let row = client.query_one(about, &[]).await?;
    let xid = counted_xid(&client).await?;
    let before = count_rows(&client).await?;
    let roles: String = client.query_one(ROLES_QUERY, &[]).await?.get(0);
    let after: String = client.query_one(AFTER_QUERY, &[]).await?.get(0);
    let facts = Fact::read_all(&client).await?;
    let made_at = Utc::now();
    let manifest = writer.manifest();
    manifest.dump = true;
    manifest.facts = facts;
    manifest.postgres = row.get(0);
    manifest.relations = row.get(1);
    manifest.counted_xid = xid;
    manifest.made_at = made_at;
    pg_dump.args(["--format=custom", "--compress=0", "--no-password"]);
    let mut writer = blocking(move || {
        writer.bytes(ROLES, roles.as_bytes())?;
        writer.bytes(AFTER, after.as_bytes())?;
        let pipes = (Stdio::null(), Stdio::piped());
        let mut running = Running::start("pg_dump", &mut pg_dump, pipes, writer.stop_flag())?;
        let mut number = 0;
        if let Some(mut out) = running.output.take() {
            loop {
                let mut chunk = Vec::new();
                (&mut out)
                    .take(CHUNK as u64)
                    .read_to_end(&mut chunk)
                    .map_err(BackupError::io("cannot read", "pg_dump"))?;
                if chunk.is_empty() {
                    break;
                }
                number += 1;
                writer.bytes(&format!("{FOLDER}/{number:08}"), &chunk)?;
            }
        }
        running.end()?;
        Ok(writer)
    })
    .await?;
    let after = count_rows(&client).await?;
    let rows = before.into_iter().filter_map(|(table, rows)| Some((table.clone(), [rows, *after.get(&table)?])));
    writer.manifest().rows = rows.collect();
    let (size, files, names) = finish(writer, contents, None).await?;
    drop(hold);
    Ok(Written { size, made_at, chain: None, files, list: None, names })
}

/// Beside the files of a restore that has not ended: they may be put there again.
const UNFINISHED: &str = ".unfinished-restore";

/// Where a dump is restored to.
#[derive(Clone, Debug)]
pub struct DumpTarget {
    pub url: String,
    /// The folder of the files of objects.
    pub files: std::path::PathBuf,
}

/// Restores a dump with `pg_restore`, which already has the connection settings of `target`. The whole database is one transaction.
/// Returns the manifest, the number of files, the keys, and what could not be restored beside the dump, a sentence each.
pub async fn restore(
    archive: &Path,
    identities: &[Identity],
    target: &DumpTarget,
    mut pg_restore: Command,
) -> Result<(Manifest, usize, String, Vec<String>), BackupError> {
    let stop_flag = StopFlag::default();
    let _given_up = stop_flag.on_drop();
    // Read the whole archive before anything is written.
    let manifest = inspect(archive, identities).await?;
    if !manifest.dump {
        return Err(BackupError::NoDump { archive: archive.to_owned() });
    }
    let client = connect(&target.url).await?;
    require_empty(&client).await?;
    let unfinished = target.files.join(UNFINISHED);
    if !unfinished.exists() {
        require_no_files(&target.files)?;
        let marked = DirBuilder::new().recursive(true).mode(0o700).create(&target.files);
        marked.and_then(|()| std::fs::write(&unfinished, "")).map_err(BackupError::io("cannot write", &unfinished))?;
    }
    // Files first: a file without a row is harmless, a row without its file is not.
    let Prepared { files, settings, after } = prepare(archive, identities, &stop_flag, &client, &target.files).await?;
    drop(client);
    pg_restore.args(RESTORED);
    if let Err(error) = feed(archive, identities, &stop_flag, pg_restore, &manifest).await {
        return Err(explained(error, &target.url, &manifest).await);
    }
    // The database is restored already, so a failure is only reported.
    let missing = complete(&target.url, &after, &manifest).await.unwrap_or_else(|error| {
        vec![format!(
            "settings of roles and of the database, event triggers and publications of all tables may be missing: {error}"
        )]
    });
    // Everything is there; the next restore is refused because of the database.
    let _ = std::fs::remove_file(&unfinished);
    Ok((manifest, files, settings, missing))
}

/// Says what the database needs that could not lock all that the dump makes.
async fn explained(error: BackupError, url: &str, manifest: &Manifest) -> BackupError {
    let BackupError::Program { said, .. } = &error else { return error };
    // The message may be in any language; this is in the hint that comes with it.
    if manifest.relations == 0 || !said.contains(LOCK_SETTING) {
        return error;
    }
    let sessions = "select current_setting('max_connections')::bigint";
    let sessions = async { Ok::<i64, BackupError>(connect(url).await?.query_one(sessions, &[]).await?.get(0)) };
    match sessions.await {
        Ok(sessions) => {
            BackupError::TooFewLocks { relations: manifest.relations, needed: manifest.locks_needed(sessions) }
        }
        Err(_) => error,
    }
}

/// Runs the statements for after `pg_restore`. Returns what is missing nevertheless.
async fn complete(url: &str, after: &str, manifest: &Manifest) -> Result<Vec<String>, BackupError> {
    let client = connect(url).await?;
    client.batch_execute(after).await?;
    dump_facts::missing(&client, &manifest.facts, &BTreeSet::new()).await
}

/// What a restore has found in an archive besides the dump.
pub struct Prepared {
    /// The number of files.
    pub files: usize,
    /// The keys.
    pub settings: String,
    /// Statements to run once the dump is restored.
    pub after: String,
}

/// Moves the files of objects into place and creates the roles.
pub async fn prepare(
    archive: &Path,
    identities: &[Identity],
    stop_flag: &StopFlag,
    client: &Client,
    folder: &Path,
) -> Result<Prepared, BackupError> {
    let (path, keys, asked, folder) = (archive.to_owned(), identities.to_vec(), stop_flag.clone(), folder.to_owned());
    let (prepared, roles) = blocking(move || {
        let mut unpacked = Unpacked::begin(&folder)?;
        let (mut settings, mut roles, mut after) = (String::new(), String::new(), String::new());
        archive::read(&path, &keys, &asked, |name, item| match (name, item) {
            (keys::ENTRY, Item::File(content)) => read_text(content, &mut settings),
            (ROLES, Item::File(content)) => read_text(content, &mut roles),
            (AFTER, Item::File(content)) => read_text(content, &mut after),
            (name, Item::File(content)) if name.starts_with(files::FOLDER) => unpacked.take(name, content),
            _ => Ok(()),
        })?;
        let files = unpacked.put(|| asked.check())?;
        unpacked.finish();
        Ok((Prepared { files, settings, after }, roles))
    })
    .await?;
    client.batch_execute(&roles).await?;
    Ok(prepared)
}

/// Writes the dump to `pg_restore` and waits until it ends.
pub async fn feed(
    archive: &Path,
    identities: &[Identity],
    stop_flag: &StopFlag,
    mut pg_restore: Command,
    manifest: &Manifest,
) -> Result<(), BackupError> {
    let (path, keys, asked, facts) =
        (archive.to_owned(), identities.to_vec(), stop_flag.clone(), manifest.facts.clone());
    blocking(move || {
        let mut kept_list = None;
        if dump_facts::has_objects(&facts) {
            let list = tempfile::NamedTempFile::new().map_err(BackupError::io("cannot create", "a temporary file"))?;
            let failed = |error| BackupError::io("cannot write", list.path())(error);
            let out = list.reopen().map_err(failed)?;
            let mut program = Command::new(pg_restore.get_program());
            // It does not read on after the table of contents.
            pipe(&path, &keys, &asked, program.arg("--list"), Stdio::from(out)).0?;
            let listed = std::fs::read_to_string(list.path()).map_err(failed)?;
            let kept = dump_facts::without(&facts, &listed);
            std::fs::write(list.path(), kept).map_err(failed)?;
            pg_restore.arg("--use-list").arg(list.path());
            kept_list = Some(list);
        }
        let (ended, fed) = pipe(&path, &keys, &asked, &mut pg_restore, Stdio::null());
        drop(kept_list);
        // The program's own error says more than the broken pipe.
        ended.and(fed)
    })
    .await
}

/// Runs `pg_restore` with the dump as its input. Returns how that ended, and whether the whole dump was written.
fn pipe(
    archive: &Path,
    identities: &[Identity],
    stop_flag: &StopFlag,
    pg_restore: &mut Command,
    output: Stdio,
) -> (Result<(), BackupError>, Result<(), BackupError>) {
    let mut running = match Running::start("pg_restore", pg_restore, (Stdio::piped(), output), stop_flag) {
        Ok(running) => running,
        Err(error) => return (Err(error), Ok(())),
    };
    let mut into = running.input.take();
    let fed = archive::read(archive, identities, stop_flag, |name, item| match (item, &mut into) {
        (Item::File(content), Some(into)) if name.starts_with(FOLDER) => {
            std::io::copy(content, into).map(drop).map_err(BackupError::io("cannot write to", "pg_restore"))
        }
        _ => Ok(()),
    });
    let is_over = matches!(&fed, Err(BackupError::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe);
    if fed.is_err() && !is_over {
        // Killed before its input closes, so that it does not take that for the end of the dump.
        running.kill();
    }
    drop(into);
    (running.end(), fed.map(drop))
}

fn read_text(mut content: impl Read, into: &mut String) -> Result<(), BackupError> {
    content.read_to_string(into).map(drop).map_err(BackupError::io("cannot read", "the archive"))
}

/// Refuses a database that has tables other than those of extensions.
async fn require_empty(client: &Client) -> Result<(), BackupError> {
    let tables = format!(
        "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p') \
         and n.nspname not in {SYSTEM} and c.relpersistence = 'p' and not exists (select from pg_depend d \
         where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')"
    );
    let tables: i64 = client.query_one(&tables, &[]).await?.get(0);
    if tables == 0 { Ok(()) } else { Err(BackupError::DatabaseNotEmpty { tables }) }
}
