//! Buffers long answers between PostgreSQL and clients of different speed.
//!
//! A transaction must not last as long as its client takes to read: it holds a connection and locks, and the role's
//! `statement_timeout` would cut the answer off. So a separate task takes the rows at PostgreSQL's speed. Unread data
//! waits in memory up to a bound, then in unlinked files. All answers share one budget of each. If the files' budget is
//! used up or the disk is full, a new long answer waits briefly before its first byte and is then refused; one that has
//! begun waits for its client to catch up, and is aborted if that takes too long. The answers of one network have at most
//! half of the files' budget, or one of them has all that is free, so that no client blocks the others.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::config::rest::Spill;
use crate::http::answer_file::AnswerFile;
use crate::http::budget::Budget;
use crate::http::client::network;

/// The memory for one answer, and for all together, in bytes.
const IN_MEMORY: (u64, u64) = (4 << 20, 32 << 20);
/// The size of a file, in bytes. A file is removed when all of it has been read.
const SEGMENT: u64 = 16 << 20;
/// A new answer needs this much free in the files' budget, in bytes (or all of a smaller one).
const ROOM: u64 = 16 << 20;
/// Threads that write to files at once.
const WRITES: usize = 32;
/// How often a full disk is checked again.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long an answer waits for room before its first byte, and in all once it has begun.
const ROOM_WAIT: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(10));

/// The budgets, and the folder of the files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Spools {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    memory: Budget,
    disk: Budget,
    /// What the answers of each network have taken of `disk`. Without any, a network has no entry.
    networks: Mutex<HashMap<IpAddr, u64>>,
    /// For each thread that writes to a file. A disk that stalls keeps them, also those of answers that nobody waits for any more.
    writes: Arc<Semaphore>,
    /// Free bytes on the disk of the files, if known.
    left: fn(&Path) -> Option<u64>,
    /// [`ROOM_WAIT`]
    waits: (Duration, Duration),
    /// Notified when part of either budget is freed.
    freed: Notify,
}

impl Spools {
    pub fn new(settings: &Spill) -> Self {
        Self::with(settings, ROOM_WAIT, left_on_disk)
    }

    fn with(settings: &Spill, waits: (Duration, Duration), left: fn(&Path) -> Option<u64>) -> Self {
        let shared = Shared {
            folder: settings.folder.clone(),
            memory: Budget::of(IN_MEMORY.1),
            disk: Budget::of(settings.most),
            networks: Mutex::default(),
            writes: Arc::new(Semaphore::new(WRITES)),
            left,
            waits,
            freed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Opens an empty answer for `client`, within the share of its network. An unknown client has no share. Fails if
    /// there is still no room after waiting.
    pub async fn open(&self, client: Option<IpAddr>) -> Result<(Sink, Spool), NoRoom> {
        let share = Arc::new(Share::of(&self.shared, client));
        let deadline = Instant::now() + self.shared.waits.0;
        let room = ROOM.min(self.shared.disk.most());
        self.shared.until(deadline, || share.may_begin(room)).await?;
        while (self.shared.left)(&self.shared.folder).is_some_and(|left| left < room) {
            if Instant::now() >= deadline {
                tracing::warn!(folder = %self.shared.folder.display(), "the disk of long answers is full");
                return Err(NoRoom);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let pipe = Arc::new(Pipe { queue: Mutex::default(), arrived: Notify::new(), shared: self.shared.clone() });
        let sink = Sink { pipe: pipe.clone(), share, segment: None, remaining_wait: self.shared.waits.1 };
        Ok((sink, Spool { pipe, filler: None }))
    }
}

/// Others write to the disk too, so it may be full although the budget is not.
fn left_on_disk(folder: &Path) -> Option<u64> {
    let known = rustix::fs::statvfs(folder).ok()?;
    Some(known.f_bavail.saturating_mul(known.f_frsize))
}

impl Shared {
    /// Waits until `is_so`; checked again whenever part of a budget is freed.
    async fn until(&self, deadline: Instant, is_so: impl Fn() -> bool) -> Result<(), NoRoom> {
        loop {
            let freed = self.freed.notified();
            if is_so() {
                return Ok(());
            }
            timeout_at(deadline, freed).await.map_err(|_| NoRoom)?;
        }
    }
}

/// What one answer takes of the files' budget.
#[derive(Debug)]
struct Share {
    shared: Arc<Shared>,
    /// The network of the client.
    network: Option<IpAddr>,
    /// In bytes. Changes only under the lock of [`Shared::networks`], and not for an unknown client.
    own: AtomicU64,
}

impl Share {
    fn of(shared: &Arc<Shared>, client: Option<IpAddr>) -> Self {
        Self { shared: shared.clone(), network: client.map(network), own: AtomicU64::new(0) }
    }

    /// Whether there is room for a new answer.
    fn may_begin(&self, room: u64) -> bool {
        // Half of a small budget may be less than `room`.
        let own_room = room.min(self.shared.disk.most() / 2);
        self.shared.disk.free() >= room && self.fits(&self.shared.networks.lock(), own_room)
    }

    fn has_room(&self, length: u64) -> bool {
        self.shared.disk.free() >= length && self.fits(&self.shared.networks.lock(), length)
    }

    /// Without others of this network, an answer may take whatever is free.
    fn fits(&self, networks: &HashMap<IpAddr, u64>, length: u64) -> bool {
        let all = self.network.and_then(|network| networks.get(&network)).copied().unwrap_or_default();
        all <= self.own.load(Ordering::Relaxed) || all.saturating_add(length) <= self.shared.disk.most() / 2
    }

    /// Takes `length` bytes, or nothing and returns false.
    #[must_use]
    fn take(&self, length: u64) -> bool {
        let Some(network) = self.network else { return self.shared.disk.take(length) };
        let mut networks = self.shared.networks.lock();
        let has_room = self.fits(&networks, length) && self.shared.disk.take(length);
        if has_room {
            *networks.entry(network).or_default() += length;
            self.own.fetch_add(length, Ordering::Relaxed);
        }
        has_room
    }

    fn give_back(&self, length: u64) {
        if let Some(network) = self.network {
            let mut networks = self.shared.networks.lock();
            self.own.fetch_sub(length, Ordering::Relaxed);
            if let Some(all) = networks.get_mut(&network) {
                *all = all.saturating_sub(length);
                if *all == 0 {
                    networks.remove(&network);
                }
            }
        }
        self.shared.disk.give_back(length);
        self.shared.freed.notify_waiters();
    }
}

/// There is no room for another long answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for another long answer")]
pub struct NoRoom;

/// Why a piece could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("a long answer could not be kept in a temporary file: {0}")]
    File(#[from] io::Error),
}

/// The queue between writer and reader.
#[derive(Debug)]
struct Pipe {
    queue: Mutex<Queue>,
    arrived: Notify,
    shared: Arc<Shared>,
}

impl Pipe {
    /// Drops unread pieces.
    fn clear(&self) {
        let mut queue = self.queue.lock();
        let in_memory = std::mem::take(&mut queue.in_memory);
        let pieces = std::mem::take(&mut queue.pieces);
        drop(queue);
        drop(pieces);
        self.shared.memory.give_back(in_memory);
        self.shared.freed.notify_waiters();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.clear();
    }
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    /// Bytes of [`Piece::Memory`].
    in_memory: u64,
    /// The number of pieces in files.
    in_files: usize,
    end: Option<Result<(), String>>,
}

#[derive(Debug)]
enum Piece {
    Memory(Bytes),
    File { segment: Arc<Segment>, at: u64, length: usize },
}

/// A temporary file without a name; its share of the budget goes with it.
#[derive(Debug)]
struct Segment {
    file: AnswerFile,
    written: AtomicU64,
    share: Arc<Share>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.share.give_back(*self.written.get_mut());
    }
}

/// The writing end of an answer.
#[derive(Debug)]
pub struct Sink {
    pipe: Arc<Pipe>,
    share: Arc<Share>,
    segment: Option<Arc<Segment>>,
    /// How long this answer may still wait for room.
    remaining_wait: Duration,
}

impl Sink {
    /// Stores a piece until it is read.
    pub async fn push(&mut self, piece: Bytes) -> Result<(), SpoolError> {
        if piece.is_empty() || self.push_in_memory(&piece) {
            return Ok(());
        }
        let length = piece.len() as u64;
        let shared = self.pipe.shared.clone();
        let since = Instant::now();
        let deadline = since + self.remaining_wait;
        let outcome = loop {
            let freed = shared.freed.notified();
            if self.push_in_memory(&piece) {
                break Ok(());
            }
            if self.share.has_room(length) {
                let Ok(turn) = timeout_at(deadline, Arc::clone(&shared.writes).acquire_owned()).await else {
                    break Err(NoRoom.into());
                };
                let turn = turn.map_err(io::Error::other)?;
                if self.share.take(length) && self.append(piece.clone(), turn).await? {
                    break Ok(());
                }
            }
            if timeout_at(deadline, freed).await.is_err() {
                break Err(NoRoom.into());
            }
        };
        self.remaining_wait = self.remaining_wait.saturating_sub(since.elapsed());
        outcome
    }

    /// Stores a piece in memory if there is room. After pieces in files there is none: the memory is for answers that
    /// are read in time.
    fn push_in_memory(&self, piece: &Bytes) -> bool {
        let length = piece.len() as u64;
        let mut queue = self.pipe.queue.lock();
        // A single piece always fits the answer's share, however long it is.
        let fits = queue.pieces.is_empty() || (queue.in_files == 0 && queue.in_memory + length <= IN_MEMORY.0);
        if !fits || !self.pipe.shared.memory.take(length) {
            return false;
        }
        queue.in_memory += length;
        queue.pieces.push_back(Piece::Memory(piece.clone()));
        drop(queue);
        self.pipe.arrived.notify_one();
        true
    }

    /// Writes a piece, whose budget is already taken, to a file; false if the disk is full.
    async fn append(&mut self, piece: Bytes, turn: OwnedSemaphorePermit) -> Result<bool, SpoolError> {
        let length = piece.len();
        let share = self.share.clone();
        let segment = self.segment.take().filter(|segment| segment.written.load(Ordering::Relaxed) < SEGMENT);
        let written = spawn_blocking(move || {
            let _turn = turn;
            write(&share, segment, &piece)
        });
        let written = written.await.map_err(io::Error::other)?;
        let (segment, at) = match written {
            Ok(written) => written,
            Err(error) if [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind()) => {
                tracing::warn!(folder = %self.pipe.shared.folder.display(), "the disk of long answers is full");
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        self.segment = Some(segment.clone());
        let mut queue = self.pipe.queue.lock();
        queue.in_files += 1;
        queue.pieces.push_back(Piece::File { segment, at, length });
        drop(queue);
        self.pipe.arrived.notify_one();
        Ok(true)
    }

    /// Whether so much is waiting that the reader should run first.
    pub fn is_ahead(&self) -> bool {
        self.pipe.queue.lock().in_memory > IN_MEMORY.0 / 4
    }

    /// Ends the answer: complete, or failed with this text.
    pub fn end(self, outcome: Result<(), String>) {
        self.pipe.queue.lock().end = Some(outcome);
        self.pipe.arrived.notify_one();
    }
}

/// Appends to `segment` or a new one, and returns the position. The budget for `piece` is already taken, and is freed
/// on failure.
fn write(share: &Arc<Share>, segment: Option<Arc<Segment>>, piece: &[u8]) -> io::Result<(Arc<Segment>, u64)> {
    let length = piece.len() as u64;
    let attempt = || {
        let segment = match segment {
            Some(segment) => segment,
            None => {
                let file = tempfile::tempfile_in(&share.shared.folder)?.into();
                Arc::new(Segment { file, written: AtomicU64::new(0), share: share.clone() })
            }
        };
        let at = segment.written.load(Ordering::Relaxed);
        segment.file.write_all_at(piece, at)?;
        segment.written.fetch_add(length, Ordering::Relaxed);
        Ok((segment, at))
    };
    attempt().inspect_err(|_| share.give_back(length))
}

/// The reading end of an answer. Dropping it ends the task that fills it.
#[derive(Debug)]
pub struct Spool {
    pipe: Arc<Pipe>,
    filler: Option<JoinHandle<()>>,
}

impl Spool {
    /// Names the task that fills it.
    pub fn filled_by(&mut self, filler: JoinHandle<()>) {
        self.filler = Some(filler);
    }

    /// The next piece; none at the end. An error ends the answer in the middle.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            let arrived = self.pipe.arrived.notified();
            let piece = {
                let mut queue = self.pipe.queue.lock();
                match queue.pieces.pop_front() {
                    Some(Piece::Memory(piece)) => {
                        queue.in_memory -= piece.len() as u64;
                        drop(queue);
                        self.pipe.shared.memory.give_back(piece.len() as u64);
                        self.pipe.shared.freed.notify_waiters();
                        return Some(Ok(piece));
                    }
                    Some(Piece::File { segment, at, length }) => {
                        queue.in_files -= 1;
                        Some((segment, at, length))
                    }
                    None => match &mut queue.end {
                        Some(end) => {
                            return std::mem::replace(end, Ok(())).err().map(|text| Err(io::Error::other(text)));
                        }
                        None => None,
                    },
                }
            };
            match piece {
                Some((segment, at, length)) => return Some(read(segment, at, length).await),
                None => arrived.await,
            }
        }
    }
}

async fn read(segment: Arc<Segment>, at: u64, length: usize) -> io::Result<Bytes> {
    let reading = spawn_blocking(move || {
        let mut piece = BytesMut::zeroed(length);
        segment.file.read_exact_at(&mut piece, at)?;
        Ok(piece.freeze())
    });
    reading.await.map_err(io::Error::other)?
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some(filler) = &self.filler {
            filler.abort();
        }
        self.pipe.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spools(most: u64) -> Spools {
        spools_on(most, |_| Some(u64::MAX))
    }

    fn spools_on(most: u64, left: fn(&Path) -> Option<u64>) -> Spools {
        let waits = (Duration::from_millis(50), Duration::from_millis(100));
        Spools::with(&Spill { folder: std::env::temp_dir(), most }, waits, left)
    }

    /// Distinguishable pieces of 64 KiB.
    fn piece(number: usize) -> Bytes {
        let mut piece = vec![0; 64 << 10];
        piece[..8].copy_from_slice(&number.to_be_bytes());
        piece.into()
    }

    #[tokio::test]
    async fn written_rows_are_read_in_order_from_memory_and_files() {
        let spools = spools(64 << 20);
        let (mut sink, mut spool) = spools.open(None).await.expect("room");
        for number in 0..500 {
            sink.push(piece(number)).await.expect("kept");
        }
        assert!(spools.shared.disk.free() < 64 << 20, "more than memory holds");
        assert!(spools.shared.memory.free() >= IN_MEMORY.1 - IN_MEMORY.0);
        sink.end(Ok(()));
        for number in 0..500 {
            assert_eq!(spool.next().await.expect("a piece").expect("read"), piece(number));
        }
        assert!(spool.next().await.is_none() && spool.next().await.is_none());
        assert_eq!((spools.shared.disk.free(), spools.shared.memory.free()), (64 << 20, IN_MEMORY.1));
    }

    #[tokio::test]
    async fn a_fast_reader_needs_no_file() {
        let spools = spools(0);
        let (mut sink, mut spool) = spools.open(None).await.expect("room");
        for number in 0..500 {
            sink.push(piece(number)).await.expect("kept");
            assert_eq!(spool.next().await.expect("a piece").expect("read"), piece(number));
        }
    }

    #[tokio::test]
    async fn an_error_ends_the_answer_after_the_rows_sent() {
        let (mut sink, mut spool) = spools(0).open(None).await.expect("room");
        sink.push(piece(1)).await.expect("kept");
        sink.end(Err("gone".to_owned()));
        assert_eq!(spool.next().await.expect("a piece").expect("read"), piece(1));
        assert!(spool.next().await.expect("an answer").is_err());
    }

    #[tokio::test]
    async fn a_full_budget_lets_no_further_answer_begin_until_something_is_read() {
        let spools = spools(ROOM);
        let (mut sink, mut spool) = spools.open(None).await.expect("room");
        for number in 0..100 {
            sink.push(piece(number)).await.expect("kept");
        }
        assert_eq!(spools.open(None).await.err(), Some(NoRoom));
        sink.end(Ok(()));
        while spool.next().await.is_some() {}
        assert!(spools.open(None).await.is_ok());
    }

    #[tokio::test]
    async fn on_a_full_disk_answers_start_only_once_there_is_room() {
        static LEFT: AtomicU64 = AtomicU64::new(ROOM - 1);
        let spools = spools_on(64 << 20, |_| Some(LEFT.load(Ordering::Acquire)));
        assert_eq!(spools.open(None).await.err(), Some(NoRoom));
        LEFT.store(ROOM, Ordering::Release);
        assert!(spools.open(None).await.is_ok());
        assert!(spools_on(64 << 20, |_| None).open(None).await.is_ok(), "free space unknown: it is tried");
        assert!(spools_on(0, |_| Some(0)).open(None).await.is_ok(), "without files the disk does not matter");
        assert!(left_on_disk(&std::env::temp_dir()).is_some());
    }

    #[tokio::test]
    async fn a_started_answer_waits_for_its_reader_and_is_finally_aborted() {
        let spools = spools(1 << 20);
        let (mut sink, mut spool) = spools.open(None).await.expect("room");
        let mut kept = 0;
        while sink.push(piece(kept)).await.is_ok() {
            kept += 1;
        }
        assert_eq!(kept as u64, (IN_MEMORY.0 + (1 << 20)) / (64 << 10));
        assert!(sink.remaining_wait.is_zero());
        for number in 0..kept {
            assert_eq!(spool.next().await.expect("a piece").expect("read"), piece(number));
        }
        drop((sink, spool));
        assert_eq!((spools.shared.disk.free(), spools.shared.memory.free()), (1 << 20, IN_MEMORY.1));
    }

    #[tokio::test]
    async fn a_disconnected_reader_releases_everything_and_ends_the_writer() {
        let spools = spools(64 << 20);
        let (mut sink, mut spool) = spools.open(None).await.expect("room");
        let filler = tokio::spawn(async move {
            for number in 0..200 {
                sink.push(piece(number)).await.expect("kept");
            }
            std::future::pending::<()>().await;
        });
        let watched = filler.abort_handle();
        spool.filled_by(filler);
        while spools.shared.disk.free() == 64 << 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(spool);
        // The budget of a piece that is being written when the reader goes is freed after the write.
        let is_free = || (spools.shared.disk.free(), spools.shared.memory.free()) == (64 << 20, IN_MEMORY.1);
        for _ in 0..2000 {
            if watched.is_finished() && is_free() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(watched.is_finished() && is_free());
    }

    /// Regression: one client with many slow answers kept all room from the others.
    #[tokio::test]
    async fn the_answers_of_one_network_have_at_most_half_of_the_files() {
        const MOST: u64 = 4 * ROOM;
        let spools = spools(MOST);
        let (busy, other): (Option<IpAddr>, _) = ("2001:db8::1".parse().ok(), "192.0.2.1".parse().ok());
        let neighbour = "2001:db8::2".parse().ok();
        let mut first = spools.open(busy).await.expect("room");
        let mut second = spools.open(neighbour).await.expect("room");
        let begun = (IN_MEMORY.0 + (1 << 20)) / (64 << 10);
        for number in 0..begun as usize {
            first.0.push(piece(number)).await.expect("kept");
        }
        while second.0.push(piece(0)).await.is_ok() {}
        assert_eq!(spools.shared.disk.free(), MOST / 2, "those of one network share");
        assert_eq!(spools.open(busy).await.err(), Some(NoRoom));
        assert!(first.0.push(piece(0)).await.is_err());
        let mut others = spools.open(other).await.expect("room for another client");
        assert!(spools.open(None).await.is_ok());
        drop(first);
        assert!(second.0.push(piece(0)).await.is_ok(), "what ended counts no more");
        drop(second);
        while others.0.push(piece(0)).await.is_ok() {}
        assert!(spools.shared.disk.free() < 64 << 10, "one answer alone may take all that is free");
        drop(others);
        assert_eq!(spools.shared.disk.free(), MOST);
        assert!(spools.shared.networks.lock().is_empty(), "nothing is kept of networks without answers");
    }
}
