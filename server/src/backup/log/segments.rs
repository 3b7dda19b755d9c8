//! The WAL as PostgreSQL stores it, in segment files of one size: reading a range of it, and writing one back.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the piece's entry that holds a range of the WAL. It states what is needed to write the range back.
pub fn entry_name(timeline: u32, segment: u64, start: u64) -> String {
    format!("log/{timeline:08X}-{segment:X}-{start:016X}")
}

/// Parses a name of [`entry_name`], without `log/`.
fn parse(name: &str) -> Option<(u32, u64, u64)> {
    let mut parts = name.split('-');
    let timeline = u32::from_str_radix(parts.next()?, 16).ok()?;
    let [segment, start] = [parts.next()?, parts.next()?].map(|text| u64::from_str_radix(text, 16));
    let (segment, start) = (segment.ok()?, start.ok()?);
    // PostgreSQL's limits. In a file's name, the last part counts segments within 4 GiB.
    let is_size = segment.is_power_of_two() && (1 << 20..=1 << 30).contains(&segment);
    (parts.next().is_none() && is_size).then_some((timeline, segment, start))
}

/// The segment file that contains position `place`.
fn file_name(timeline: u32, segment: u64, place: u64) -> String {
    let (number, per_id) = (place / segment, 0x1_0000_0000 / segment);
    format!("{timeline:08X}{:08X}{:08X}", number / per_id, number % per_id)
}

/// Reads a range of WAL that is flushed to disk.
pub struct WalRange {
    folder: PathBuf,
    timeline: u32,
    segment: u64,
    at: u64,
    end: u64,
    open: Option<(u64, File)>,
}

impl WalRange {
    pub fn new(folder: &Path, timeline: u32, segment: u64, start: u64, end: u64) -> Self {
        Self { folder: folder.to_owned(), timeline, segment, at: start, end, open: None }
    }
}

impl Read for WalRange {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (number, within) = (self.at / self.segment, self.at % self.segment);
        let length = (self.end - self.at).min(self.segment - within).min(into.len() as u64);
        if length == 0 {
            return Ok(0);
        }
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let file = File::open(self.folder.join(file_name(self.timeline, self.segment, self.at)))?;
            self.open = Some((number, file));
        }
        let Some((_, file)) = &self.open else { return Ok(0) };
        let room = usize::try_from(length).unwrap_or(into.len());
        let read = file.read_at(&mut into[..room], within)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(read)
    }
}

/// Writes a range back into the segment files of `folder`; `name` is its entry's name without `log/`. Returns the files.
pub fn put(folder: &Path, name: &str, mut content: impl Read) -> io::Result<Vec<PathBuf>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "an entry of the log has no name of one");
    let (timeline, segment, mut at) = parse(name).ok_or_else(bad)?;
    let mut buffer = vec![0; 256 << 10];
    let mut files: Vec<(PathBuf, File)> = Vec::new();
    loop {
        let within = at % segment;
        let room = usize::try_from(segment - within).unwrap_or(buffer.len()).min(buffer.len());
        let read = content.read(&mut buffer[..room])?;
        if read == 0 {
            return Ok(files.into_iter().map(|(path, _)| path).collect());
        }
        let path = folder.join(file_name(timeline, segment, at));
        if files.last().is_none_or(|(last, _)| *last != path) {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            // Zeros follow the WAL, as in a new segment of PostgreSQL.
            if file.metadata()?.len() < segment {
                file.set_len(segment)?;
            }
            files.push((path, file));
        }
        if let Some((_, file)) = files.last() {
            file.write_all_at(&buffer[..read], within)?;
        }
        at += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_files_have_postgresqls_names() {
        let segment = 16 << 20;
        assert_eq!(file_name(1, segment, 0x16B_3748), "000000010000000000000001");
        assert_eq!(file_name(0x1F, segment, 0x5_FF00_0000), "0000001F00000005000000FF");
        assert_eq!(file_name(1, 1 << 30, 0x1_4000_0000), "000000010000000100000001");
    }

    #[test]
    fn a_range_over_several_segments_is_written_back_in_place() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let segment: u64 = 1 << 20;
        for number in 0..3_u8 {
            let bytes: Vec<u8> = (0..segment).map(|at| (at % 251) as u8 ^ number).collect();
            std::fs::write(from.path().join(file_name(1, segment, u64::from(number) * segment)), bytes)
                .expect("a file");
        }
        let (start, middle, end) = (segment - 10, segment + 5, 2 * segment + 7);
        for (start, end) in [(start, middle), (middle, end)] {
            let range = WalRange::new(from.path(), 1, segment, start, end);
            let name = entry_name(1, segment, start);
            put(to.path(), name.strip_prefix("log/").expect("an entry"), range).expect("put");
        }
        let read = |folder: &Path| {
            let mut bytes = Vec::new();
            WalRange::new(folder, 1, segment, start, end).read_to_end(&mut bytes).expect("read");
            bytes
        };
        assert!(read(to.path()) == read(from.path()));
        let last = std::fs::read(to.path().join(file_name(1, segment, end))).expect("a file");
        assert!(last.len() as u64 == segment && last[7..].iter().all(|byte| *byte == 0));
        let gone = WalRange::new(to.path(), 1, segment, end, 4 * segment).read_to_end(&mut Vec::new());
        assert_eq!(gone.expect_err("not there").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn malformed_names_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["", "../../x", "00000001-0-0", "00000001-1000001-0000000000000000", "1-1000000-0-0"] {
            assert!(put(folder.path(), name, io::empty()).is_err(), "{name}");
        }
    }
}
