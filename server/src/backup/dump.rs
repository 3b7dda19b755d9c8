//! Backups of a database that somebody else runs: a dump by `pg_dump`, the roles that it names, and the files of objects.
//!
//! Nothing of the dump is ever on a disk in plain: it comes through a pipe, in stretches of a few megabytes, each an entry of the archive.
//! Points in time are the provider's. A restore is one transaction of `pg_restore`.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use chrono::Utc;
use tokio_postgres::Client;

use super::archive::{self, Item, Manifest, Writer};
use super::depot::Depot;
use super::error::BackupError;
use super::halt::Halt;
use super::restore::{Unpacked, require_no_files};
use super::{Contents, Files, Identity, Made, Recipient, archive_name, blocking, cluster, files, inspect, keys};
use crate::db;
use crate::storage::hold_removals;

/// Where the stretches of the dump are in the archive, in the order of their names.
const FOLDER: &str = "dump";
/// Statements that make the roles that the dump names.
const ROLES: &str = "roles.sql";
const STRETCH: usize = 8 << 20;

/// Whose tables are everybody's, and no content.
const SYSTEM: &str = "('pg_catalog', 'information_schema')";

/// Writes the roles of a database down so that another one has them: without passwords, which the server sets itself.
const ROLES_QUERY: &str = "
    with ours as (
        select oid, rolname, rolcanlogin, rolinherit, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication
        from pg_catalog.pg_roles
        where not starts_with(rolname, 'pg_') and not rolsuper and rolname <> current_user
    ), lines as (
        select 1 as step, rolname, format(
            'do $r$ begin if not exists (select from pg_catalog.pg_roles where rolname = %1$L) then create role %1$I %2$s; end if; end $r$;',
            rolname, concat_ws(' ', case when rolcanlogin then 'login' end, case when not rolinherit then 'noinherit' end,
                case when rolcreaterole then 'createrole' end, case when rolcreatedb then 'createdb' end)) as line from ours
        union all
        -- Not everybody may give these away.
        select 2, rolname, format('do $r$ begin alter role %I bypassrls; exception when insufficient_privilege then null; end $r$;', rolname)
        from ours where rolbypassrls
        union all
        select 2, rolname, format('do $r$ begin alter role %I replication; exception when insufficient_privilege then null; end $r$;', rolname)
        from ours where rolreplication
        union all
        select 3, rolname, format('do $r$ begin comment on role %I is %L; exception when insufficient_privilege then null; end $r$;',
            rolname, shobj_description(oid, 'pg_authid')) from ours where shobj_description(oid, 'pg_authid') is not null
        union all
        select 4, member.rolname, format('do $r$ begin grant %I to %I; exception when insufficient_privilege then null; end $r$;',
            role.rolname, member.rolname)
        from pg_catalog.pg_auth_members m join ours role on role.oid = m.roleid join ours member on member.oid = m.member
        union all
        -- Whoever restores hands objects over to them.
        select 5, rolname, format('do $r$ begin grant %I to current_user; exception when insufficient_privilege then null; end $r$;', rolname)
        from ours
    )
    select coalesce(string_agg(line, E'\\n' order by step, rolname, line), '') from lines";

/// The major version of the server behind a URL.
pub async fn major_of(url: &str) -> Result<u32, BackupError> {
    let row = connect(url).await?.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?;
    Ok(u32::try_from(row.get::<_, i32>(0)).unwrap_or(0))
}

async fn connect(url: &str) -> Result<Client, BackupError> {
    let config = url.parse().map_err(|_| BackupError::Database("DATABASE_URL is no connection string".to_owned()))?;
    let opened = db::connect(&config).await.map_err(|error| BackupError::Database(error.to_string()));
    let (client, connection) = opened?;
    tokio::spawn(connection);
    Ok(client)
}

/// Dumps the database of `contents` by `pg_dump`, which is connected, into a new archive in `depot`.
pub async fn make(
    contents: &Contents,
    pg_dump: Command,
    depot: &Depot,
    recipients: &[Recipient],
) -> Result<Made, BackupError> {
    if recipients.is_empty() {
        return Err(BackupError::NoRecipient);
    }
    let name = archive_name(Utc::now());
    let archive = depot.full_name(&name);
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    let (sink, arrival) = depot.begin(&name, &halt).await?;
    let written = match Writer::create(sink, &archive, recipients, &halt) {
        Ok(writer) => write(contents, pg_dump, writer).await,
        Err(error) => Err(error),
    };
    let (size, made_at, files) = arrival.confirm(written).await?;
    Ok(Made { archive, size, made_at, chain: None, files })
}

async fn write(
    contents: &Contents,
    mut pg_dump: Command,
    mut writer: Writer,
) -> Result<(u64, chrono::DateTime<Utc>, usize), BackupError> {
    let root = contents.files.clone();
    // Before the database is read, so that no row of it loses its file.
    let hold = blocking(move || match root {
        Files::Folder(root) => hold_removals(&root).map_err(BackupError::io("cannot hold", &root)),
        Files::Elsewhere(_) => Ok(None),
    })
    .await?;
    let client = connect(&contents.admin_url).await?;
    let about = "select (current_setting('server_version_num')::int / 10000)::text, \
                 pg_snapshot_xmin(pg_current_snapshot())::text";
    let row = client.query_one(about, &[]).await?;
    let (before, xid) = cluster::count_rows(&client).await?;
    let roles: String = client.query_one(ROLES_QUERY, &[]).await?.get(0);
    let made_at = Utc::now();
    let manifest = writer.manifest();
    manifest.dump = true;
    manifest.postgres = row.get(0);
    manifest.counted_xid = xid;
    manifest.made_at = made_at;
    pg_dump.args(["--format=custom", "--compress=0", "--no-password"]);
    let mut writer = blocking(move || {
        writer.bytes(ROLES, roles.as_bytes())?;
        let mut running = Running::start("pg_dump", &mut pg_dump, Stdio::null(), Stdio::piped())?;
        let mut number = 0;
        if let Some(mut out) = running.child.stdout.take() {
            loop {
                let mut stretch = Vec::new();
                (&mut out)
                    .take(STRETCH as u64)
                    .read_to_end(&mut stretch)
                    .map_err(BackupError::io("cannot read", "pg_dump"))?;
                if stretch.is_empty() {
                    break;
                }
                number += 1;
                writer.bytes(&format!("{FOLDER}/{number:08}"), &stretch)?;
            }
        }
        running.end()?;
        Ok(writer)
    })
    .await?;
    let (after, _) = cluster::count_rows(&client).await?;
    let rows = before.into_iter().filter_map(|(table, rows)| Some((table.clone(), [rows, *after.get(&table)?])));
    writer.manifest().rows = rows.collect();
    let (kept, keys) = (contents.files.clone(), contents.keys.clone());
    let (size, files) = blocking(move || {
        writer.bytes(keys::ENTRY, keys.as_bytes())?;
        let before = writer.manifest().entries.len();
        match kept {
            Files::Folder(root) => {
                writer.stop_compressing()?;
                files::copy(&root, &mut writer)?;
            }
            Files::Elsewhere(place) => writer.manifest().files_elsewhere = Some(place),
        }
        let files = writer.manifest().entries.len() - before;
        Ok((writer.finish()?, files))
    })
    .await?;
    drop(hold);
    Ok((size, made_at, files))
}

/// Where a dump is brought back to.
#[derive(Clone, Debug)]
pub struct DumpTarget {
    pub url: String,
    /// The folder of the files of objects.
    pub files: std::path::PathBuf,
}

/// Brings a dump back, by `pg_restore`, which is connected to the database of `target`. All of the database comes in one transaction.
/// Yields what it was, how many files came, and the keys.
pub async fn restore(
    archive: &Path,
    identities: &[Identity],
    target: &DumpTarget,
    mut pg_restore: Command,
) -> Result<(Manifest, usize, String), BackupError> {
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    // Nothing is written before all of it was read once.
    let manifest = inspect(archive, identities).await?;
    if !manifest.dump {
        return Err(BackupError::NoDump { archive: archive.to_owned() });
    }
    let client = connect(&target.url).await?;
    require_empty(&client).await?;
    require_no_files(&target.files)?;
    // Files without rows do no harm, rows without files would.
    let (files, settings) = prepare(archive, identities, &halt, &client, &target.files).await?;
    drop(client);
    pg_restore.args(["--exit-on-error", "--single-transaction", "--no-password"]);
    feed(archive, identities, &halt, pg_restore).await?;
    Ok((manifest, files, settings))
}

/// Puts the files of objects in their places and makes the roles. Yields how many files there are, and the keys.
pub async fn prepare(
    archive: &Path,
    identities: &[Identity],
    halt: &Halt,
    client: &Client,
    folder: &Path,
) -> Result<(usize, String), BackupError> {
    let (path, keys, asked, folder) = (archive.to_owned(), identities.to_vec(), halt.clone(), folder.to_owned());
    let (files, settings, roles) = blocking(move || {
        let unpacked = Unpacked::begin(&folder)?;
        let (mut settings, mut roles) = (String::new(), String::new());
        archive::read(&path, &keys, &asked, |name, item| match (name, item) {
            (keys::ENTRY, Item::File(content)) => read_text(content, &mut settings),
            (ROLES, Item::File(content)) => read_text(content, &mut roles),
            (name, Item::File(content)) if name.starts_with(files::FOLDER) => unpacked.take(name, content),
            _ => Ok(()),
        })?;
        Ok((unpacked.put()?, settings, roles))
    })
    .await?;
    client.batch_execute(&roles).await?;
    Ok((files, settings))
}

/// Hands the dump to `pg_restore`, and waits for its word.
pub async fn feed(
    archive: &Path,
    identities: &[Identity],
    halt: &Halt,
    mut pg_restore: Command,
) -> Result<(), BackupError> {
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), halt.clone());
    blocking(move || {
        let mut running = Running::start("pg_restore", &mut pg_restore, Stdio::piped(), Stdio::null())?;
        let mut into = running.child.stdin.take();
        let fed = archive::read(&path, &keys, &asked, |name, item| match (item, &mut into) {
            (Item::File(content), Some(into)) if name.starts_with(FOLDER) => {
                std::io::copy(content, into).map(drop).map_err(BackupError::io("cannot write to", "pg_restore"))
            }
            _ => Ok(()),
        });
        if fed.is_err() {
            // Before it sees the end of its input and takes that for the end of the dump.
            running.kill();
        }
        drop(into);
        // What the program says of itself tells more than that nobody takes its input.
        running.end().and(fed.map(drop))
    })
    .await
}

fn read_text(mut content: impl Read, into: &mut String) -> Result<(), BackupError> {
    content.read_to_string(into).map(drop).map_err(BackupError::io("cannot read", "the archive"))
}

/// Refuses a database with tables that no extension brought.
async fn require_empty(client: &Client) -> Result<(), BackupError> {
    let tables = format!(
        "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p') \
         and n.nspname not in {SYSTEM} and c.relpersistence = 'p' and not exists (select from pg_depend d \
         where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')"
    );
    let tables: i64 = client.query_one(&tables, &[]).await?.get(0);
    if tables == 0 { Ok(()) } else { Err(BackupError::DatabaseNotEmpty { tables }) }
}

/// A program of PostgreSQL's at work; ended when dropped.
struct Running {
    name: &'static str,
    child: Child,
    /// The last line of what it complains about.
    said: Option<JoinHandle<String>>,
}

impl Running {
    fn start(name: &'static str, command: &mut Command, input: Stdio, output: Stdio) -> Result<Self, BackupError> {
        let mut child = command
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(BackupError::io("cannot run", name))?;
        let said = child.stderr.take().map(|mut errors| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = errors.read_to_string(&mut text);
                text.lines()
                    .rfind(|line| line.contains("error:"))
                    .or(text.lines().last())
                    .unwrap_or_default()
                    .to_owned()
            })
        });
        Ok(Self { name, child, said })
    }

    fn kill(&mut self) {
        // One that has ended is what we want.
        let _ = self.child.kill();
    }

    fn end(mut self) -> Result<(), BackupError> {
        let status = self.child.wait().map_err(BackupError::io("cannot wait for", self.name))?;
        if status.success() {
            return Ok(());
        }
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        Err(BackupError::Program { name: self.name, said })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}
