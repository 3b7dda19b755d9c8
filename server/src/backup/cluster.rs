//! Copies a running cluster file by file between `pg_backup_start` and `pg_backup_stop`, with the WAL that makes the copy
//! consistent.
//!
//! This needs no PostgreSQL tool, and the server stays available. A temporary replication slot keeps the WAL until it is copied.
//! The slot ends with the connection, so a killed command leaves nothing in the database. References: PostgreSQL's "Making a Base
//! Backup Using the Low Level API"; the files that pg_basebackup leaves out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use super::archive::Writer;
use super::counts::{count_rows, counted_xid};
use super::error::BackupError;
use super::log;

/// Path of the cluster's files in the archive.
pub const FOLDER: &str = "db";

/// Folders whose content PostgreSQL recreates at startup.
const EMPTIED: [&str; 8] =
    ["pg_wal", "pg_dynshmem", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"];
const LEFT_OUT: [&str; 6] = [
    "postmaster.pid",
    "postmaster.opts",
    "backup_label",
    "tablespace_map",
    "backup_manifest",
    "postgresql.auto.conf.tmp",
];
/// In the cluster: the mark of the archive that its next incremental one continues. A restored cluster has none, and one that was
/// put back has an earlier one.
pub const MARK: &str = "ferrobase-backup-parent";
/// What we note in a cluster and what is not true of a restored one: it begins a chain and a full archive of its own.
pub const OF_THIS_CLUSTER: [&str; 2] = [log::PROGRESS_FILE, MARK];
/// Copied last, because its WAL position must not be older than the other files.
const CONTROL: &str = "global/pg_control";
/// How long a changed setting may take to reach our session.
const SUMMARIZER_STARTS: Duration = Duration::from_secs(10);

/// Files beside the cluster that hold the passwords of the superuser and of the owner.
pub const PASSWORDS: [&str; 2] = ["admin.password", "owner.password"];

/// A cluster that retains its WAL until this is dropped.
pub struct Source {
    client: Client,
    pub data_dir: PathBuf,
    pub major: String,
    /// PostgreSQL's system identifier.
    pub system: String,
    /// The WAL chain that is being archived.
    pub chain: Option<String>,
}

/// A backup in progress. It ends with its connection.
pub struct Running {
    pub source: Source,
    pub start_file: String,
    pub start_lsn: String,
}

/// The results of `pg_backup_stop`, which make the copied files a valid backup.
pub struct Stopped {
    label: String,
    stop_file: String,
    pub stop_lsn: String,
    client: Client,
}

impl Source {
    /// Connects and reserves the WAL. `summarizes` also turns on WAL summaries, which incremental archives need.
    pub async fn open(admin_url: &str, summarizes: bool) -> Result<Self, BackupError> {
        let (client, connection) = tokio_postgres::connect(admin_url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("set statement_timeout = 0; set idle_session_timeout = 0").await?;
        let about = "select current_setting('data_directory'), current_setting('server_version_num')::int / 10000, \
                     exists (select from pg_tablespace where spcname not in ('pg_default', 'pg_global')), \
                     (select system_identifier::text from pg_control_system())";
        let row = client.query_one(about, &[]).await?;
        let (data_dir, major, has_tablespaces): (String, i32, bool) = (row.get(0), row.get(1), row.get(2));
        let system = row.get(3);
        let data_dir = PathBuf::from(data_dir);
        if has_tablespaces {
            return Err(BackupError::Tablespaces);
        }
        if std::fs::read_dir(data_dir.join("base")).is_err() {
            return Err(BackupError::Elsewhere { dir: data_dir });
        }
        let slot = "select pg_create_physical_replication_slot('ferrobase_backup_' || pg_backend_pid(), true, true)";
        client.query_one(slot, &[]).await?;
        if summarizes {
            summarize(&client).await?;
        }
        let chain = "select substr(slot_name, $2) from pg_replication_slots where slot_type = 'physical' \
                     and starts_with(slot_name, $1) and wal_status <> 'lost'";
        let after = i32::try_from(log::SLOT.len()).unwrap_or(0) + 1;
        let chain = client.query_opt(chain, &[&log::SLOT, &after]).await?.map(|row| row.get(0));
        Ok(Self { client, data_dir, major: major.to_string(), system, chain })
    }

    /// Row counts of all permanent tables, and the first transaction that may be missing from them.
    pub async fn count_rows(&self) -> Result<(BTreeMap<String, i64>, String), BackupError> {
        let xid = counted_xid(&self.client).await?;
        Ok((count_rows(&self.client).await?, xid))
    }
}

/// Has the database summarize what changes, now and after restarts.
async fn summarize(client: &Client) -> Result<(), BackupError> {
    let state = "select current_setting('summarize_wal', true)";
    match client.query_one(state, &[]).await?.get::<_, Option<String>>(0).as_deref() {
        None => return Err(BackupError::NoIncrements),
        Some("on") => return Ok(()),
        Some(_) => {}
    }
    client.batch_execute("alter system set summarize_wal = on").await?;
    client.query_one("select pg_reload_conf()", &[]).await?;
    let deadline = tokio::time::Instant::now() + SUMMARIZER_STARTS;
    while client.query_one(state, &[]).await?.get::<_, Option<String>>(0).as_deref() != Some("on") {
        if tokio::time::Instant::now() > deadline {
            return Err(BackupError::Database("summarize_wal stays off".to_owned()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

impl Running {
    /// Begins: from here on the copy of any file is as good as of any other moment.
    pub async fn start(source: Source) -> Result<Self, BackupError> {
        // A checkpoint at once: to wait for the next one takes minutes.
        let start = "select lsn::text, pg_walfile_name(lsn) from pg_backup_start('ferrobase', true) lsn";
        let row = source.client.query_one(start, &[]).await?;
        Ok(Self { start_lsn: row.get(0), start_file: row.get(1), source })
    }

    pub async fn stop(self) -> Result<Stopped, BackupError> {
        let stop = "select lsn::text, labelfile, pg_walfile_name(lsn) from pg_backup_stop(false)";
        let client = self.source.client;
        let row = client.query_one(stop, &[]).await?;
        Ok(Stopped { stop_lsn: row.get(0), label: row.get(1), stop_file: row.get(2), client })
    }
}

/// Copies everything except the WAL.
pub fn copy_files(data_dir: &Path, into: &mut Writer) -> Result<(), BackupError> {
    copy_below(data_dir, "", into)?;
    into.file(&format!("{FOLDER}/{CONTROL}"), &data_dir.join(CONTROL))?;
    Ok(())
}

fn copy_below(data_dir: &Path, inside: &str, into: &mut Writer) -> Result<(), BackupError> {
    let folder = data_dir.join(inside);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        // The folder was removed meanwhile, for instance because its database was dropped.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(BackupError::io("cannot read", folder)(error)),
    };
    into.folder(&if inside.is_empty() { FOLDER.to_owned() } else { format!("{FOLDER}/{inside}") })?;
    for entry in entries {
        let entry = entry.map_err(BackupError::io("cannot read", &folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if inside.is_empty() { name.clone() } else { format!("{inside}/{name}") };
        let is_left_out = LEFT_OUT.contains(&path.as_str())
            || OF_THIS_CLUSTER.contains(&path.as_str())
            || path == CONTROL
            || name.starts_with("pgsql_tmp")
            || name.starts_with("pg_internal.init")
            || name.ends_with(".partial");
        if is_left_out {
            continue;
        }
        let Ok(kind) = entry.file_type() else { continue };
        if EMPTIED.contains(&path.as_str()) {
            into.folder(&format!("{FOLDER}/{path}"))?;
        } else if kind.is_dir() {
            copy_below(data_dir, &path, into)?;
        } else if kind.is_file() {
            into.file(&format!("{FOLDER}/{path}"), &entry.path())?;
        }
    }
    Ok(())
}

impl Stopped {
    /// Row counts as in [`Running::count_rows`].
    pub async fn count_rows(&self) -> Result<BTreeMap<String, i64>, BackupError> {
        Ok(count_rows(&self.client).await?)
    }
}

/// Copies the WAL between start and stop, and the backup label with the start position.
pub fn copy_log(data_dir: &Path, start_file: &str, stopped: &Stopped, into: &mut Writer) -> Result<(), BackupError> {
    let folder = data_dir.join("pg_wal");
    let names = std::fs::read_dir(&folder).map_err(BackupError::io("cannot read", &folder))?;
    let mut names: Vec<String> =
        names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_needed = |name: &String| {
        let is_segment = name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_history = name.len() == 16 && name.ends_with(".history");
        is_history || is_segment && name.as_str() >= start_file && *name <= stopped.stop_file
    };
    names.retain(is_needed);
    names.sort();
    // The slot keeps these files, unless the WAL limit of the slot was exceeded.
    for file in [start_file, &stopped.stop_file] {
        if !names.iter().any(|name| name == file) {
            return Err(BackupError::LogGone { file: file.to_owned() });
        }
    }
    for folder in ["archive_status", "summaries"] {
        into.folder(&format!("{FOLDER}/pg_wal/{folder}"))?;
    }
    for name in names {
        into.file(&format!("{FOLDER}/pg_wal/{name}"), &folder.join(&name))?;
    }
    into.bytes(&format!("{FOLDER}/backup_label"), stopped.label.as_bytes())
}
