//! Writes pieces: the WAL since the last piece, and the new files of objects.
//!
//! Flushed WAL never changes, so it is read from PostgreSQL's own files, which the replication slot keeps.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rand::TryRngCore;
use rand::rngs::OsRng;
use tokio_postgres::{Client, NoTls};

use super::known::Known;
use super::progress::Progress;
use super::segments::WalRange;
use super::{PIECE, Piece, SLOT, entry_name, of_chain, parse_lsn};
use crate::backup::age::Recipient;
use crate::backup::archive::Writer;
use crate::backup::backup_store::BackupStore;
use crate::backup::error::BackupError;
use crate::backup::stop_flag::StopFlag;
use crate::backup::{blocking, cluster, files};
use crate::storage::Archiving;

/// While nothing changes, an empty piece is written at this interval, so that a restore can still stop at a recent point in time.
const IDLE: Duration = Duration::from_secs(300);
/// How much WAL the slot keeps for an archive that cannot be reached.
const WAITING: &str = "4GB";
/// At most one part in this many of the time is spent looking for new files, unless that takes very long.
const LOOKING: u32 = 50;
/// Beyond this, points in time would be too old.
const LONGEST_PAUSE: Duration = IDLE;

/// What one step archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub piece: Piece,
    /// Whether more WAL is waiting.
    pub is_behind: bool,
}

/// Follows the WAL of one cluster. At most one follower works at a time.
pub struct Follower {
    client: Client,
    chain: String,
    /// All WAL before this position is archived.
    at: u64,
    timeline: u32,
    segment: u64,
    /// PostgreSQL's data folder.
    db: PathBuf,
    files: Option<LogFiles>,
    last: Option<Instant>,
    /// Everything committed before this time is archived.
    reached: DateTime<Utc>,
    looked_for: Duration,
}

/// The files of objects. While this is held, servers do not remove files that are not archived yet.
pub struct LogFiles {
    root: PathBuf,
    archiving: Archiving,
    /// The known files, and the chain that they belong to.
    known: Option<(String, Known)>,
}

impl LogFiles {
    pub fn hold(root: &Path) -> Result<Self, BackupError> {
        let archiving = Archiving::begin(root).map_err(BackupError::io("cannot hold", root))?;
        Ok(Self { root: root.to_owned(), archiving, known: None })
    }

    fn go_on(&mut self, chain: &str) -> Result<(), BackupError> {
        if self.known.as_ref().is_some_and(|(known, _)| known == chain) {
            return Ok(());
        }
        let since = self.archiving.go_on(chain).map_err(BackupError::io("cannot write below", &self.root))?;
        self.known = Some((chain.to_owned(), Known::new(&self.root, since)));
        Ok(())
    }

    fn look(&mut self) -> std::io::Result<Vec<String>> {
        self.known.as_mut().map_or(Ok(Vec::new()), |(_, known)| known.look())
    }

    fn forget(&mut self, names: &[String]) {
        if let Some((_, known)) = &mut self.known {
            known.forget(names);
        }
    }
}

impl Follower {
    /// Continues where the pieces in `backup_store` end, or begins a new chain, which needs a new archive. Takes `files` on success;
    /// [`Self::end`] returns them.
    pub async fn start(
        admin_url: &str,
        files: &mut Option<LogFiles>,
        backup_store: &BackupStore,
    ) -> Result<Self, BackupError> {
        let (client, connection) = tokio_postgres::connect(admin_url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("set statement_timeout = 0; set idle_session_timeout = 0").await?;
        let about = "select current_setting('data_directory'), pg_size_bytes(current_setting('wal_segment_size')), \
                     current_setting('max_slot_wal_keep_size') = '-1'";
        let row = client.query_one(about, &[]).await?;
        let (data_dir, segment, is_unbounded): (String, i64, bool) = (row.get(0), row.get(1), row.get(2));
        if is_unbounded {
            // Losing points in time is better than filling the disk.
            client.batch_execute(&format!("alter system set max_slot_wal_keep_size = '{WAITING}'")).await?;
            client.batch_execute("select pg_reload_conf()").await?;
        }
        let now = Utc::now();
        let db = PathBuf::from(data_dir);
        let (chain, at, reached) = match resume(&client, backup_store, Progress::read(&db).as_ref(), now).await? {
            Some(found) => found,
            None => begin_chain(&client).await.map(|(chain, at)| (chain, at, now))?,
        };
        if let Some(files) = files {
            files.go_on(&chain)?;
        }
        Ok(Self {
            client,
            chain,
            at,
            timeline: 0,
            segment: u64::try_from(segment).unwrap_or(16 << 20),
            db,
            files: files.take(),
            last: None,
            reached,
            looked_for: Duration::ZERO,
        })
    }

    /// Returns the files, which stay held.
    pub fn end(self) -> Option<LogFiles> {
        self.files
    }

    /// The chain that archives have to belong to.
    pub fn chain(&self) -> &str {
        &self.chain
    }

    /// The shortest wait before the next step.
    pub fn pause(&self) -> Duration {
        pause_after(self.looked_for)
    }

    /// Archives new WAL and files. `None` if there is nothing new and that was recorded recently.
    pub async fn step(
        &mut self,
        backup_store: &BackupStore,
        recipients: &[Recipient],
    ) -> Result<Option<Step>, BackupError> {
        // Transactions committed before this time are in the WAL by the time its end is read.
        let time = Utc::now();
        let state = "select pg_current_wal_flush_lsn()::text, pg_walfile_name(pg_current_wal_flush_lsn()), \
                     coalesce((select wal_status <> 'lost' from pg_replication_slots where slot_name = $1), false)";
        let row = self.client.query_one(state, &[&self.slot()]).await?;
        let (flushed, file, is_kept): (String, String, bool) = (row.get(0), row.get(1), row.get(2));
        if !is_kept {
            return Err(BackupError::LogLost);
        }
        let flushed = parse_lsn(&flushed).unwrap_or(self.at);
        self.timeline = file.get(..8).and_then(|text| u32::from_str_radix(text, 16).ok()).unwrap_or(self.timeline);
        let end = flushed.min(self.at + PIECE).max(self.at);
        let is_behind = end < flushed;
        let (new, looked_at) = self.look().await?;
        let is_idle = end == self.at && new.is_empty();
        if is_idle && self.last.is_some_and(|last| last.elapsed() < IDLE) {
            self.cover(looked_at)?;
            return Ok(None);
        }
        // Until the rest of the WAL is archived, no later time is covered.
        let time = if is_behind { self.reached + chrono::Duration::milliseconds(1) } else { time };
        let piece = Piece { time, chain: self.chain.clone(), start: self.at, end };
        Progress { chain: self.chain.clone(), end }
            .write(&self.db)
            .map_err(BackupError::io("cannot write below", &self.db))?;
        if let Err(error) = self.write(&piece, new.clone(), backup_store, recipients).await {
            if let Some(objects) = &mut self.files {
                objects.forget(&new);
            }
            return Err(error);
        }
        self.at = end;
        self.last = Some(Instant::now());
        self.reached = time;
        self.cover(looked_at)?;
        // Archived WAL may be removed.
        let advance = "select pg_replication_slot_advance($1, $2::text::pg_lsn)";
        self.client.query_one(advance, &[&self.slot(), &format!("{:X}/{:X}", end >> 32, end & 0xffff_ffff)]).await?;
        Ok(Some(Step { piece, is_behind }))
    }

    fn slot(&self) -> String {
        format!("{SLOT}{}", self.chain)
    }

    /// Names of new files, and when the search began, in seconds since 1970.
    async fn look(&mut self) -> Result<(Vec<String>, i64), BackupError> {
        let begun = Utc::now().timestamp();
        let Some(mut objects) = self.files.take() else { return Ok((Vec::new(), begun)) };
        let started = Instant::now();
        let (objects, found) = blocking(move || {
            let found = objects.look();
            Ok((objects, found))
        })
        .await?;
        self.looked_for = started.elapsed();
        let root = objects.root.clone();
        self.files = Some(objects);
        found.map(|found| (found, begun)).map_err(BackupError::io("cannot read", root))
    }

    /// Allows servers to remove files from before `looked_at`.
    fn cover(&mut self, looked_at: i64) -> Result<(), BackupError> {
        let Some(objects) = &mut self.files else { return Ok(()) };
        objects.archiving.cover(&self.chain, looked_at).map_err(BackupError::io("cannot write below", &objects.root))
    }

    async fn write(
        &self,
        piece: &Piece,
        new: Vec<String>,
        backup_store: &BackupStore,
        recipients: &[Recipient],
    ) -> Result<(), BackupError> {
        let name = piece.to_string();
        let stop_flag = StopFlag::default();
        let _given_up = stop_flag.on_drop();
        let (sink, arrival) = backup_store.begin(&name, &stop_flag).await?;
        let mut writer = match Writer::create(sink, &backup_store.full_name(&name), recipients, &stop_flag) {
            Ok(writer) => writer,
            Err(error) => return arrival.confirm(Err(error)).await,
        };
        let manifest = writer.manifest();
        manifest.made_at = piece.time;
        manifest.chain = Some(self.chain.clone());
        let range = WalRange::new(&self.db.join("pg_wal"), self.timeline, self.segment, piece.start, piece.end);
        let entry = entry_name(self.timeline, self.segment, piece.start);
        let (length, root) = (piece.end - piece.start, self.files.as_ref().map(|objects| objects.root.clone()));
        let db = self.db.clone();
        let written = blocking(move || {
            if length > 0 {
                writer.stream(&entry, length, range)?;
            }
            // The WAL may change the passwords.
            for name in cluster::PASSWORDS {
                writer.file(name, &db.with_file_name(name))?;
            }
            if let Some(root) = root.filter(|_| !new.is_empty()) {
                writer.stop_compressing()?;
                for file in &new {
                    writer.file(&format!("{}/{file}", files::FOLDER), &root.join(file))?;
                }
            }
            writer.finish()
        })
        .await;
        arrival.confirm(written).await.map(drop)
    }
}

/// How long to wait after looking through the files for so long.
fn pause_after(looked_for: Duration) -> Duration {
    looked_for.saturating_mul(LOOKING).min(LONGEST_PAUSE)
}

/// The chain of the existing slot, and the position and time of its last piece; `None` if the chain cannot be continued.
async fn resume(
    client: &Client,
    backup_store: &BackupStore,
    progress: Option<&Progress>,
    now: DateTime<Utc>,
) -> Result<Option<(String, u64, DateTime<Utc>)>, BackupError> {
    let slots = "select slot_name::text, coalesce(restart_lsn::text, ''), wal_status <> 'lost', \
                 pg_current_wal_flush_lsn()::text from pg_replication_slots \
                 where slot_type = 'physical' and starts_with(slot_name, $1) order by 1";
    let mut found = None;
    let mut names = None;
    for row in client.query(slots, &[&SLOT]).await? {
        let (slot, kept, is_kept): (String, String, Option<bool>) = (row.get(0), row.get(1), row.get(2));
        let chain = slot.trim_start_matches(SLOT).to_owned();
        let names = match &mut names {
            Some(names) => names,
            unknown => unknown.insert(backup_store.names().await?),
        };
        let pieces = of_chain(names, &chain);
        let archived = pieces.iter().map(|piece| piece.end).max();
        // Without pieces there is no archive of that chain either.
        let reached = pieces.last().map_or(now, |piece| piece.time);
        let state = SlotState {
            kept: parse_lsn(&kept),
            flushed: parse_lsn(row.get(3)),
            written: progress.filter(|progress| progress.chain == chain).map(|progress| progress.end),
        };
        let is_usable = is_kept == Some(true) && found.is_none();
        match state.goes_on(archived).filter(|_| is_usable) {
            Some(at) => found = Some((chain, at, reached)),
            None => drop(client.query_one("select pg_drop_replication_slot($1)", &[&slot]).await?),
        }
    }
    Ok(found)
}

/// What the cluster knows of a chain, as positions in the WAL.
#[derive(Clone, Copy, Debug)]
struct SlotState {
    /// The WAL that the slot keeps begins here.
    kept: Option<u64>,
    /// The WAL of the cluster ends here.
    flushed: Option<u64>,
    /// No piece that this cluster has written ends later; `None` if an earlier version has written them.
    written: Option<u64>,
}

impl SlotState {
    /// Where the chain continues whose pieces in the store reach to `archived`; `None` if it cannot be continued.
    fn goes_on(self, archived: Option<u64>) -> Option<u64> {
        let Some(archived) = archived else { return self.kept };
        // Pieces that somebody removed leave a gap.
        let is_gapless = self.kept.is_some_and(|kept| kept <= archived);
        // After the cluster was replaced by an earlier copy of itself, pieces reach further than the copy. Its WAL does not
        // continue theirs, and may have grown beyond them already.
        let is_ours = self.flushed.is_some_and(|flushed| archived <= flushed)
            && self.written.is_none_or(|written| archived <= written);
        (is_gapless && is_ours).then_some(archived)
    }
}

async fn begin_chain(client: &Client) -> Result<(String, u64), BackupError> {
    let mut bytes = [0; 8];
    OsRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| BackupError::io("cannot read", "/dev/urandom")(std::io::Error::other(error)))?;
    let chain = hex::encode(bytes);
    let slot = format!("{SLOT}{chain}");
    client.query_one("select pg_create_physical_replication_slot($1, true)", &[&slot]).await?;
    let begin = "select restart_lsn::text from pg_replication_slots where slot_name = $1";
    let begin: String = client.query_one(begin, &[&slot]).await?.get(0);
    Ok((chain, parse_lsn(&begin).ok_or(BackupError::LogLost)?))
}

/// Drops the slots, so that the database keeps no WAL for an archive that is no longer written.
pub async fn forget_slots(admin_url: &str) -> Result<(), BackupError> {
    let (client, connection) = tokio_postgres::connect(admin_url, NoTls).await?;
    tokio::spawn(connection);
    let drop = "select pg_drop_replication_slot(slot_name) from pg_replication_slots \
                where slot_type = 'physical' and not active and starts_with(slot_name, $1)";
    client.query(drop, &[&SLOT]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_through_very_many_files_delays_no_piece_for_long() {
        for (looked_for, pause) in [(0, 0), (1, 50), (5, 250), (18, 300), (3600, 300)] {
            let expected = Duration::from_secs(pause);
            assert_eq!(pause_after(Duration::from_secs(looked_for)), expected, "{looked_for} s");
        }
    }

    #[test]
    fn a_chain_continues_only_in_the_history_that_wrote_its_pieces() {
        let state = |kept, flushed, written| SlotState { kept, flushed: Some(flushed), written };
        for (state, archived, expected) in [
            (state(Some(10), 30, Some(20)), Some(20), Some(20)),
            (state(Some(10), 30, None), Some(20), Some(20)),
            // The last piece did not arrive.
            (state(Some(10), 30, Some(25)), Some(20), Some(20)),
            // No piece was written yet.
            (state(Some(10), 30, Some(10)), None, Some(10)),
            // Pieces were removed.
            (state(Some(21), 30, Some(25)), Some(20), None),
            (state(None, 30, Some(25)), Some(20), None),
            // The cluster is an earlier copy, whose WAL has not reached the pieces yet, or has.
            (state(Some(10), 19, None), Some(20), None),
            (state(Some(10), 30, Some(19)), Some(20), None),
        ] {
            assert_eq!(state.goes_on(archived), expected, "{state:?} {archived:?}");
        }
    }
}
