//! Backups of an external database: a dump made with `pg_dump`, the roles that it names, and the files of objects.
//!
//! The unencrypted dump is never written to disk. It is read from a pipe in chunks of a few megabytes, each an entry of the archive.
//! Point-in-time recovery is left to the database's provider. `pg_restore` restores everything in one transaction.

use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::Utc;
use tokio_postgres::Client;

use super::archive::{self, Item, Manifest, Writer};
use super::backup_store::BackupStore;
use super::error::BackupError;
use super::program::Running;
use super::restore::{Unpacked, require_no_files};
use super::stop_flag::StopFlag;
use super::{
    Contents, Identity, Made, Recipient, Written, archive_name, blocking, cluster, create, files, finish, inspect, keys,
};
use crate::db;

/// Folder of the dump's chunks in the archive, sorted by name.
const FOLDER: &str = "dump";
/// Entry with the statements that create the roles that the dump names.
const ROLES: &str = "roles.sql";
const CHUNK: usize = 8 << 20;

/// Schemas whose tables exist in every database and are not content.
const SYSTEM: &str = "('pg_catalog', 'information_schema')";

/// Builds statements that recreate the roles of a database, without passwords, which the server sets itself; and what a dump leaves out
/// because it belongs to plpgsql (`migrate/members.sql`), as far as a project's own objects may need it. The platform's first run repairs it.
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
        -- The restoring role may lack the right to set these attributes.
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
        -- The restoring role must be a member of a role to make it an owner.
        select 5, rolname, format('do $r$ begin grant %I to current_user; exception when insufficient_privilege then null; end $r$;', rolname)
        from ours
    ), members as (
        select d.classid, d.objid from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
        where d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and d.deptype = 'e' and e.extname = 'plpgsql' and d.objid >= 16384
    ), objects as (
        select 6 as step, n.nspname, format('create schema if not exists %I;', n.nspname) as line
        from members m join pg_catalog.pg_namespace n on m.classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and n.oid = m.objid
        union all
        select 7, '', 'set check_function_bodies = off;'
        union all
        select 8, p.proname, pg_catalog.pg_get_functiondef(p.oid) || ';'
        from members m join pg_catalog.pg_proc p on m.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = m.objid
        union all
        select 9, c.relname, format('create or replace view %s as %s', c.oid::pg_catalog.regclass, pg_catalog.pg_get_viewdef(c.oid))
        from members m join pg_catalog.pg_class c on m.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and c.oid = m.objid and c.relkind = 'v'
    )
    select coalesce(string_agg(line, E'\\n' order by step, rolname, line), '') from (select * from lines union all select * from objects) all_lines";

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
    let (after, _) = cluster::count_rows(&client).await?;
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
/// Returns the manifest, the number of files, and the keys.
pub async fn restore(
    archive: &Path,
    identities: &[Identity],
    target: &DumpTarget,
    mut pg_restore: Command,
) -> Result<(Manifest, usize, String), BackupError> {
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
    let (files, settings) = prepare(archive, identities, &stop_flag, &client, &target.files).await?;
    drop(client);
    pg_restore.args(["--exit-on-error", "--single-transaction", "--no-password"]);
    feed(archive, identities, &stop_flag, pg_restore).await?;
    // Everything is there; the next restore is refused because of the database.
    let _ = std::fs::remove_file(&unfinished);
    Ok((manifest, files, settings))
}

/// Moves the files of objects into place and creates the roles. Returns the number of files, and the keys.
pub async fn prepare(
    archive: &Path,
    identities: &[Identity],
    stop_flag: &StopFlag,
    client: &Client,
    folder: &Path,
) -> Result<(usize, String), BackupError> {
    let (path, keys, asked, folder) = (archive.to_owned(), identities.to_vec(), stop_flag.clone(), folder.to_owned());
    let (files, settings, roles) = blocking(move || {
        let mut unpacked = Unpacked::begin(&folder)?;
        let (mut settings, mut roles) = (String::new(), String::new());
        archive::read(&path, &keys, &asked, |name, item| match (name, item) {
            (keys::ENTRY, Item::File(content)) => read_text(content, &mut settings),
            (ROLES, Item::File(content)) => read_text(content, &mut roles),
            (name, Item::File(content)) if name.starts_with(files::FOLDER) => unpacked.take(name, content),
            _ => Ok(()),
        })?;
        let files = unpacked.put(|| asked.check())?;
        unpacked.finish();
        Ok((files, settings, roles))
    })
    .await?;
    client.batch_execute(&roles).await?;
    Ok((files, settings))
}

/// Writes the dump to `pg_restore` and waits until it ends.
pub async fn feed(
    archive: &Path,
    identities: &[Identity],
    stop_flag: &StopFlag,
    mut pg_restore: Command,
) -> Result<(), BackupError> {
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), stop_flag.clone());
    blocking(move || {
        let mut running = Running::start("pg_restore", &mut pg_restore, (Stdio::piped(), Stdio::null()), &asked)?;
        let mut into = running.input.take();
        let fed = archive::read(&path, &keys, &asked, |name, item| match (item, &mut into) {
            (Item::File(content), Some(into)) if name.starts_with(FOLDER) => {
                std::io::copy(content, into).map(drop).map_err(BackupError::io("cannot write to", "pg_restore"))
            }
            _ => Ok(()),
        });
        if fed.is_err() {
            // Killed before its input closes, so that it does not take that for the end of the dump.
            running.kill();
        }
        drop(into);
        // The program's own error says more than the broken pipe.
        running.end().and(fed.map(drop))
    })
    .await
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
