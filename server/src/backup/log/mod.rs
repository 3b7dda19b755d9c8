//! Continuous archiving. Every few seconds, the new WAL and the new files of objects are stored as a piece beside the archives.
//! An archive and the pieces after it can be restored to any point in time.
//!
//! [`follow`] writes pieces, [`covering`] finds those that a restore needs, [`segments`] reassembles the WAL. A replication slot
//! keeps the WAL until it is archived. The slot's name contains the chain, a number chosen when archiving begins. A restored
//! cluster has no slot and so begins a new chain, which keeps two histories apart. So does a cluster that was replaced by an earlier
//! copy of itself ([`progress`]).

mod follow;
mod known;
mod progress;
mod segments;

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};

use super::SUFFIX;
use super::error::BackupError;
pub use follow::{Follower, LogFiles, forget_slots};
pub use progress::FILE as PROGRESS_FILE;
pub use segments::{entry_name, put};

/// Prefix of slot names; the chain follows.
pub const SLOT: &str = "ferrobase_log_";
const PREFIX: &str = "ferrobase-log-";
/// The most WAL in one piece. More than that is cut, and only the last piece gets the time at which that was done.
const PIECE: u64 = 256 << 20;
const TIME: &str = "%Y%m%dT%H%M%S%3fZ";

/// Where a restore stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    At(DateTime<Utc>),
    /// At the end of the archived WAL.
    Latest,
}

/// The content of a piece, as its name states it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// Everything committed before this time is in this piece or an earlier one.
    pub time: DateTime<Utc>,
    pub chain: String,
    /// Positions in the WAL, in bytes.
    pub start: u64,
    pub end: u64,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, chain, start, end } = self;
        write!(f, "{PREFIX}{chain}-{start:016X}-{end:016X}-{}{SUFFIX}", time.format(TIME))
    }
}

impl Piece {
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
        let (chain, start, end, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let place = |text: &str| (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
        let time = NaiveDateTime::parse_from_str(time, TIME).ok()?.and_utc();
        let piece = Self { time, chain: chain.to_owned(), start: place(start)?, end: place(end)? };
        (parts.next().is_none() && piece.start <= piece.end).then_some(piece)
    }
}

/// Parses `0/16B3748` into bytes.
pub fn parse_lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?)
}

/// The pieces of `chain`, in the order of the WAL. The clock may have been set back between two of them.
pub fn of_chain(names: &[String], chain: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = names.iter().filter_map(|name| Piece::parse(name)).collect();
    pieces.retain(|piece| piece.chain == chain);
    pieces.sort_by_key(|piece| (piece.start, piece.end, piece.time));
    pieces
}

/// The pieces in `names` from position `from`, where an archive ends, to `moment`.
///
/// Errors: a piece in between is missing, they do not reach `moment`, or the clock was set back so that it is uncertain which do.
pub fn covering(names: &[String], chain: &str, from: u64, moment: RestorePoint) -> Result<Vec<Piece>, BackupError> {
    let mut reached = from;
    let mut taken: Vec<Piece> = Vec::new();
    let is_far_enough = |piece: &Piece| matches!(moment, RestorePoint::At(time) if piece.time >= time);
    let mut pieces = of_chain(names, chain).into_iter().filter(|piece| piece.end >= from);
    while let Some(piece) = pieces.next() {
        if piece.start > reached {
            return Err(BackupError::LogGap { after: taken.last().map(|piece| piece.time), before: piece.to_string() });
        }
        reached = reached.max(piece.end);
        if is_far_enough(&piece) {
            // Commits before the moment may follow those that have a later time only because the clock was ahead.
            if let Some(later) = pieces.find(|later| later.time < piece.time) {
                return Err(BackupError::LogClock { from: piece.time, to: later.time });
            }
            taken.push(piece);
            return Ok(taken);
        }
        taken.push(piece);
    }
    match moment {
        RestorePoint::Latest => Ok(taken),
        RestorePoint::At(_) => Err(BackupError::LogEnds { at: taken.last().map(|piece| piece.time) }),
    }
}

/// The pieces in `names` that are older than `oldest`, the oldest archive: of each chain those before the first that is not.
///
/// Pieces that were cut have the time of the piece before them, and their WAL may be of any later time. Of these, the last ones are
/// kept: the archive may end within them.
pub fn too_old(names: &[String], oldest: DateTime<Utc>) -> Vec<String> {
    let chains: BTreeSet<String> = names.iter().filter_map(|name| Some(Piece::parse(name)?.chain)).collect();
    let old = |chain: &String| {
        let mut pieces = of_chain(names, chain);
        pieces.truncate(pieces.iter().take_while(|piece| piece.time < oldest).count());
        let is_cut = |piece: &Piece| piece.end - piece.start >= PIECE;
        pieces.truncate(pieces.iter().rposition(|piece| !is_cut(piece)).map_or(0, |last| last + 1));
        pieces
    };
    chains.iter().flat_map(old).map(|piece| piece.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    fn at(second: u32) -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 3, 4, 5, 6, second).single().expect("a time")
    }

    fn piece(chain: &str, start: u64, end: u64, second: u32) -> String {
        Piece { time: at(second), chain: chain.to_owned(), start, end }.to_string()
    }

    #[test]
    fn a_pieces_name_can_be_parsed_back() {
        let name = piece("0a1b", 0x16B_3748, 0x200_0000, 7);
        assert_eq!(name, "ferrobase-log-0a1b-00000000016B3748-0000000002000000-20260304T050607000Z.tar.gz.age");
        assert_eq!(Piece::parse(&name).map(|piece| piece.to_string()), Some(name.clone()));
        for other in ["ferrobase-20260304T050607000Z.tar.gz.age", &format!("{name}.partial"), &piece("a", 2, 1, 0)] {
            assert_eq!(Piece::parse(other), None, "{other}");
        }
        assert_eq!(parse_lsn("1/16B3748"), Some(0x1_016B_3748));
    }

    #[test]
    fn a_clock_that_was_ahead_leaves_no_gap_and_no_moment_that_is_wrong() {
        let names = [
            piece("a", 0, 10, 2),
            piece("a", 10, 20, 30),
            piece("a", 20, 20, 31),
            piece("a", 20, 20, 5),
            piece("a", 20, 30, 6),
            piece("a", 30, 40, 32),
        ];
        let ends = |from, moment| {
            let taken = covering(&names, "a", from, moment);
            taken
                .map(|taken| taken.iter().map(|piece| piece.end).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(ends(4, RestorePoint::Latest).expect("whole"), [10, 20, 20, 20, 30, 40]);
        assert_eq!(ends(4, RestorePoint::At(at(1))).expect("whole"), [10]);
        for moment in [3, 5, 6, 7, 31] {
            let refused = ends(4, RestorePoint::At(at(moment))).expect_err("uncertain");
            assert!(refused.contains("the clock was set back"), "{refused}");
        }
        assert_eq!(ends(4, RestorePoint::At(at(32))).expect("whole"), [10, 20, 20, 20, 30, 40]);
        assert_eq!(ends(21, RestorePoint::At(at(7))).expect("an archive from after it"), [30, 40]);
        assert_eq!(too_old(&names, at(7)), [piece("a", 0, 10, 2)], "those that follow a newer one are needed with it");
    }

    #[test]
    fn a_restore_uses_the_pieces_of_its_chain_up_to_its_moment() {
        let names = [
            piece("a", 0, 10, 1),
            piece("a", 10, 20, 2),
            piece("b", 5, 90, 2),
            // The same bytes twice, after a restart of the server.
            piece("a", 10, 30, 3),
            // No WAL was written.
            piece("a", 30, 30, 4),
            piece("a", 30, 40, 5),
        ];
        let seconds = |from, moment| -> Result<Vec<i64>, BackupError> {
            let pieces = covering(&names, "a", from, moment)?;
            Ok(pieces.iter().map(|piece| (piece.time - at(0)).num_seconds()).collect())
        };
        assert_eq!(seconds(15, RestorePoint::At(at(4))).expect("covered"), [2, 3, 4]);
        assert_eq!(seconds(15, RestorePoint::Latest).expect("covered"), [2, 3, 4, 5]);
        assert_eq!(seconds(99, RestorePoint::Latest).expect("covered"), [0; 0]);
        let beyond = seconds(15, RestorePoint::At(at(6)));
        assert!(matches!(beyond, Err(BackupError::LogEnds { at: Some(time) }) if time == at(5)), "{beyond:?}");
    }

    #[test]
    fn a_missing_piece_is_an_error() {
        let names = [piece("a", 0, 10, 1), piece("a", 20, 30, 3)];
        let gap = covering(&names, "a", 5, RestorePoint::Latest);
        assert!(matches!(gap, Err(BackupError::LogGap { after: Some(time), .. }) if time == at(1)), "{gap:?}");
        assert!(covering(&names, "a", 5, RestorePoint::At(at(1))).is_ok(), "what lies before it is whole");
    }

    #[test]
    fn pieces_older_than_the_oldest_archive_are_removed() {
        let names = [piece("a", 0, 10, 1), piece("a", 10, 20, 5), "ferrobase-notes.txt".to_owned()];
        assert_eq!(too_old(&names, at(3)), [piece("a", 0, 10, 1)]);
    }

    /// Retention removed pieces that the oldest archive needed, because their times were older than their WAL.
    #[test]
    fn cut_pieces_are_kept_until_a_later_piece_is_old_too() {
        let names = |first| {
            let cut = |number: u64, second| piece("a", number * PIECE, (number + 1) * PIECE, second);
            [first, cut(1, 1), cut(2, 1), piece("a", 3 * PIECE, 3 * PIECE + 9, 7)]
        };
        let short = names(piece("a", PIECE - 5, PIECE, 1));
        assert_eq!(too_old(&short, at(5)), short[..1]);
        assert_eq!(too_old(&short, at(8)), short);
        let long = names(piece("a", 0, PIECE, 1));
        assert_eq!(too_old(&long, at(5)), [""; 0], "a chain that begins with cut pieces");
    }
}
