//! Incremental archives: what has changed since another archive, by PostgreSQL's own means (`summarize_wal`, `pg_basebackup
//! --incremental`; `pg_combinebackup` at the restore).
//!
//! PostgreSQL asks for the list of files of the archive that this one continues. The server cannot open that archive, so the list
//! of the last one is kept beside the state of the backups. The name of an incremental archive says which one it continues.
//!
//! PostgreSQL accepts the list of any archive of its timeline, also of another history: two restores of one archive both begin
//! timeline 2. So a file in the cluster, which no archive contains, names the list that belongs to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chrono::{DateTime, Utc};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::archive::{Manifest, Writer};
use super::backup_store::BackupStore;
use super::cluster::{self, Source};
use super::error::BackupError;
use super::files::Names;
use super::program::Running;
use super::state::{self, FOLDER};
use super::{Contents, Made, Recipient, Written, blocking, create, finish, retention, room};
use crate::embedded_pg;
use crate::owner;

/// Which archive the next one continues, and what PostgreSQL needs to know about it.
const PARENT: &str = "parent.json";
const LIST: &str = "parent.manifest";
/// Which files of objects it and its parents hold.
const NAMES: &str = "parent.files";
/// Only the beginning of a longer mark is read.
const MARK_MAX: u64 = 100;
/// A longer list is not used.
const LIST_MAX: u64 = 1 << 30;
/// PostgreSQL's own list, the last entry of what `pg_basebackup` writes.
const ENTRY: &str = "backup_manifest";

/// The archive that the next incremental one continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Its name in its place.
    pub name: String,
    /// Its full name.
    pub archive: String,
    /// When the full archive was begun that its chain goes back to.
    pub full_at: DateTime<Utc>,
    /// Of the list beside it.
    sha256: String,
    /// Of the names beside it; empty if an earlier version has recorded it.
    #[serde(default)]
    names_sha256: String,
    /// What the cluster says that it belongs to; empty if an earlier version has recorded it.
    #[serde(default)]
    mark: String,
    #[serde(skip)]
    list: PathBuf,
    /// The files of objects that it and its parents hold.
    #[serde(skip)]
    names: Names,
}

impl Parent {
    /// The last archive of `backup_store` that this data folder has made; absent where none can be gone on from.
    pub async fn find(data_dir: &Path, backup_store: &BackupStore) -> Result<Option<Self>, BackupError> {
        let folder = data_dir.join(FOLDER);
        let known = std::fs::read(folder.join(PARENT)).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        let Some(mut parent) = known else { return Ok(None) };
        parent.list = folder.join(LIST);
        let names = std::fs::read(folder.join(NAMES)).unwrap_or_default();
        // A kill between the files leaves some that do not belong together.
        let is_whole = std::fs::read(&parent.list).is_ok_and(|list| hex::encode(Sha256::digest(list)) == parent.sha256)
            && hex::encode(Sha256::digest(&names)) == parent.names_sha256;
        parent.names = Names::parse(&names);
        let mark = embedded_pg::cluster_of(data_dir).and_then(|db| read_mark(&db));
        let is_of_cluster = !parent.mark.is_empty() && mark.as_ref() == Some(&parent.mark);
        let is_there = parent.archive == backup_store.full_name(&parent.name)
            && backup_store.names().await?.contains(&parent.name);
        // An archive may only continue an earlier one.
        let is_past = retention::time_of(&parent.name).is_some_and(|begun| begun < Utc::now());
        Ok((is_whole && is_of_cluster && is_there && is_past).then_some(parent))
    }

    /// Has the next archive be a full one, for the cluster has been replaced.
    pub fn forget(data_dir: &Path) {
        // Without the file, the mark decides: the new cluster has none.
        let _ = std::fs::remove_file(data_dir.join(FOLDER).join(PARENT));
    }

    /// Has the next incremental archive continue `made`, if PostgreSQL can.
    pub fn record(data_dir: &Path, made: &Made) -> Result<(), BackupError> {
        let db = embedded_pg::cluster_of(data_dir);
        let (Some(list), Some(db)) = (&made.list, db) else {
            Self::forget(data_dir);
            return Ok(());
        };
        let names = made.names.to_bytes();
        let parent = Self {
            name: made.name.clone(),
            archive: made.archive.clone(),
            full_at: made.full_at,
            sha256: hex::encode(Sha256::digest(list)),
            names_sha256: hex::encode(Sha256::digest(&names)),
            mark: uuid::Uuid::new_v4().simple().to_string(),
            list: PathBuf::new(),
            names: Names::default(),
        };
        // A kill between the two leaves a mark that nothing matches.
        write_mark(&db, &parent.mark).map_err(BackupError::io("cannot write below", &db))?;
        state::replace(data_dir, LIST, list)?;
        state::replace(data_dir, NAMES, &names)?;
        let text = serde_json::to_vec_pretty(&parent)
            .map_err(|error| BackupError::io("cannot write", PARENT)(error.into()))?;
        state::replace(data_dir, PARENT, &text)
    }
}

fn read_mark(db: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(db.join(cluster::MARK)).and_then(|file| file.take(MARK_MAX).read_to_string(&mut text)).ok()?;
    Some(text.trim().to_owned())
}

fn write_mark(db: &Path, mark: &str) -> io::Result<()> {
    let path = db.join(cluster::MARK);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(&path)?;
    file.write_all(format!("{mark}\n").as_bytes())?;
    // PostgreSQL's programs read all files of the folder.
    owner::hand_over(&path)?;
    file.sync_all()
}

/// PostgreSQL's list for an archive that we have copied ourselves: the files of the cluster, and the log that makes them whole.
/// Reference: PostgreSQL's "Backup Manifest Format".
pub fn list(manifest: &Manifest, system: &str, timeline: u32) -> Vec<u8> {
    let folder = format!("{}/", cluster::FOLDER);
    let modified = manifest.made_at.format("%Y-%m-%d %H:%M:%S GMT");
    let files = manifest.entries.iter().filter_map(|(path, content)| {
        let path = path.strip_prefix(&folder).filter(|path| !path.starts_with("pg_wal/"))?;
        let path = serde_json::Value::from(path);
        Some(format!(
            "{{ \"Path\": {path}, \"Size\": {}, \"Last-Modified\": \"{modified}\", \"Checksum-Algorithm\": \"SHA256\", \"Checksum\": \"{}\" }}",
            content.size, content.sha256
        ))
    });
    let files: Vec<String> = files.collect();
    let mut text = format!(
        "{{ \"PostgreSQL-Backup-Manifest-Version\": 2,\n\"System-Identifier\": {system},\n\"Files\": [\n{}\n],\n\"WAL-Ranges\": [\n\
         {{ \"Timeline\": {timeline}, \"Start-LSN\": \"{}\", \"End-LSN\": \"{}\" }}\n],\n",
        files.join(",\n"),
        manifest.start_lsn,
        manifest.stop_lsn
    );
    let digest = hex::encode(Sha256::digest(text.as_bytes()));
    text.push_str(&format!("\"Manifest-Checksum\": \"{digest}\"}}\n"));
    text.into_bytes()
}

/// What a list of PostgreSQL's says of the log: where it begins and ends.
fn log_range(list: &[u8]) -> Option<(String, String)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Range {
        #[serde(rename = "Start-LSN")]
        start: String,
        #[serde(rename = "End-LSN")]
        end: String,
    }
    #[derive(Deserialize)]
    struct List {
        #[serde(rename = "WAL-Ranges")]
        ranges: Vec<Range>,
    }
    let List { ranges } = serde_json::from_slice(list).ok()?;
    Some((ranges.first()?.start.clone(), ranges.last()?.end.clone()))
}

/// Writes what has changed since `parent` into a new archive in `backup_store`, by `pg_basebackup`, which is connected.
pub async fn make(
    contents: &Contents,
    parent: &Parent,
    pg_basebackup: Command,
    backup_store: &BackupStore,
    recipients: &[Recipient],
) -> Result<Made, BackupError> {
    let since = retention::time_of(&parent.name).ok_or(BackupError::NoParent { name: parent.name.clone() })?;
    let name = retention::incremental_name(Utc::now(), since);
    create(backup_store, &name, parent.full_at, recipients, |writer| write(contents, parent, pg_basebackup, writer))
        .await
}

async fn write(
    contents: &Contents,
    parent: &Parent,
    pg_basebackup: Command,
    writer: Writer,
) -> Result<Written, BackupError> {
    let hold = contents.files.hold().await?;
    let source = Source::open(&contents.admin_url, true).await?;
    let db = source.data_dir.clone();
    let written = room::kept(&db, copy(contents, parent, source, pg_basebackup, writer)).await?;
    drop(hold);
    Ok(written)
}

async fn copy(
    contents: &Contents,
    parent: &Parent,
    source: Source,
    mut pg_basebackup: Command,
    mut writer: Writer,
) -> Result<Written, BackupError> {
    let (before, xid) = source.count_rows().await?;
    let made_at = Utc::now();
    pg_basebackup.args(["--pgdata=-", "--format=tar", "--wal-method=fetch", "--checkpoint=fast", "--no-password"]);
    if contents.gives_way {
        writer.give_way();
    }
    pg_basebackup.args(["--manifest-checksums=SHA256", "--no-sync", "--label=ferrobase"]);
    pg_basebackup.arg(format!("--incremental={}", parent.list.display()));
    let (mut writer, list) = blocking(move || {
        let pipes = (Stdio::null(), Stdio::piped());
        let mut running = Running::start("pg_basebackup", &mut pg_basebackup, pipes, writer.stop_flag())?;
        let copied = match running.output.take() {
            Some(out) => take_all(out, &mut writer),
            None => Ok(Vec::new()),
        };
        // What the program says of itself tells more than that its output ends.
        running.end()?;
        Ok((writer, copied?))
    })
    .await?;
    let ended_at = Utc::now();
    let (after, _) = source.count_rows().await?;
    let (start_lsn, stop_lsn) = log_range(&list)
        .ok_or_else(|| BackupError::io("cannot read", ENTRY)(std::io::ErrorKind::InvalidData.into()))?;
    let manifest = writer.manifest();
    manifest.parent = Some(parent.name.clone());
    manifest.postgres.clone_from(&source.major);
    manifest.chain.clone_from(&source.chain);
    manifest.start_lsn = start_lsn;
    manifest.stop_lsn = stop_lsn;
    manifest.counted_xid = xid;
    manifest.made_at = made_at;
    manifest.ended_at = Some(ended_at);
    manifest.rows =
        before.into_iter().filter_map(|(table, rows)| Some((table.clone(), [rows, *after.get(&table)?]))).collect();
    let (chain, data_dir) = (source.chain.clone(), source.data_dir.clone());
    // The archive has the WAL that it needs, so the slot need not keep it while files are copied.
    drop(source);
    let writer = blocking(move || {
        for name in cluster::PASSWORDS {
            writer.file(name, &data_dir.with_file_name(name))?;
        }
        Ok(writer)
    })
    .await?;
    let (size, files, names) = finish(writer, contents, Some(parent.names.clone())).await?;
    Ok(Written { size, made_at, chain, files, list: Some(list), names })
}

/// Takes what `pg_basebackup` writes into the archive. Yields PostgreSQL's list of it.
fn take_all(out: impl Read, writer: &mut Writer) -> Result<Vec<u8>, BackupError> {
    let io = || BackupError::io("cannot read", "pg_basebackup");
    // Files of the top come first.
    writer.folder(cluster::FOLDER)?;
    let mut tar = tar::Archive::new(out);
    let mut list = Vec::new();
    for entry in tar.entries().map_err(io())? {
        let mut entry = entry.map_err(io())?;
        let path = entry.path().map_err(io())?.to_string_lossy().trim_matches(['.', '/']).to_owned();
        if entry.header().entry_type().is_dir() {
            writer.folder(&format!("{}/{path}", cluster::FOLDER))?;
        } else if path == ENTRY {
            (&mut entry).take(LIST_MAX).read_to_end(&mut list).map_err(io())?;
        } else if !cluster::OF_THIS_CLUSTER.contains(&path.as_str()) {
            let size = entry.size();
            writer.stream(&format!("{}/{path}", cluster::FOLDER), size, &mut entry)?;
        }
    }
    std::io::copy(&mut tar.into_inner(), &mut std::io::sink()).map_err(io())?;
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::archive::Content;

    #[test]
    fn a_list_has_the_files_of_the_cluster_and_its_own_checksum() {
        let content = |sha256: &str| Content { size: 8192, sha256: sha256.to_owned() };
        let manifest = Manifest {
            start_lsn: "0/2000028".to_owned(),
            stop_lsn: "0/2000120".to_owned(),
            entries: [
                ("db/base/1/1255".to_owned(), content("aa")),
                ("db/pg_wal/000000010000000000000002".to_owned(), content("bb")),
                ("files/b/letter/1".to_owned(), content("cc")),
            ]
            .into(),
            ..Manifest::default()
        };
        let list = list(&manifest, "7123456789012345678", 3);
        let text = String::from_utf8(list.clone()).expect("a text");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["System-Identifier"], 7_123_456_789_012_345_678_u64);
        let paths: Vec<_> = value["Files"].as_array().expect("files").iter().map(|file| &file["Path"]).collect();
        assert_eq!(paths, ["base/1/1255"]);
        assert_eq!(value["WAL-Ranges"][0]["Timeline"], 3);
        assert_eq!(log_range(&list), Some(("0/2000028".to_owned(), "0/2000120".to_owned())));
        let (checked, _) = text.split_once("\"Manifest-Checksum\"").expect("a checksum");
        assert_eq!(value["Manifest-Checksum"], hex::encode(Sha256::digest(checked)));
        assert!(checked.ends_with("],\n") && text.ends_with("}\n"));
    }
}
