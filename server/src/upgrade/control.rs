//! What `pg_upgrade` asks `pg_controldata` and `pg_resetwal` of the former version: the npm packages lack both. Their answers are
//! written from the cluster's control file, in which the places of these values have been the same since PostgreSQL 13.
//!
//! Reference: `ControlFileData` in PostgreSQL's `pg_control.h`. A checksum at its end shows whether the layout is the one meant.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc};

use super::UpgradeError;

/// Offsets in bytes; the first are of the checkpoint that the file holds.
const REDO: usize = 40;
const TIMELINE: usize = 48;
const NEXT_XID: usize = 64;
const NEXT_OID: usize = 72;
const NEXT_MULTI: usize = 76;
const NEXT_MULTI_OFFSET: usize = 80;
const OLDEST_XID: usize = 84;
const OLDEST_MULTI: usize = 92;
const STATE: usize = 16;
const MAX_ALIGN: usize = 204;
const BLOCK_SIZE: usize = 216;
const SEGMENT_BLOCKS: usize = 220;
const LOG_BLOCK_SIZE: usize = 224;
const LOG_SEGMENT_SIZE: usize = 228;
const NAME_LENGTH: usize = 232;
const INDEX_KEYS: usize = 236;
const TOAST_CHUNK: usize = 240;
const LARGE_OBJECT_CHUNK: usize = 244;
const FLOAT8_BY_VALUE: usize = 248;
const CHECKSUMS: usize = 252;
/// Since version 18.
const CHAR_SIGNEDNESS: usize = 256;

/// `DB_SHUTDOWNED`.
const SHUT_DOWN: u32 = 1;

/// A folder with links to the programs in `programs` and stand-ins for the two, which speak of the stopped cluster `db`.
pub fn stand_in(programs: &Path, db: &Path, folder: &Path) -> Result<PathBuf, UpgradeError> {
    // PostgreSQL's user runs what is in it.
    std::fs::DirBuilder::new().mode(0o755).create(folder).map_err(UpgradeError::io("cannot create", folder))?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .map_err(UpgradeError::io("cannot open", folder))?;
    for program in ["postgres", "pg_ctl"] {
        let link = folder.join(program);
        symlink(programs.join(program), &link).map_err(UpgradeError::io("cannot create", link))?;
    }
    let path = db.join("global/pg_control");
    let bytes = std::fs::read(&path).map_err(UpgradeError::io("cannot read", &path))?;
    let newest = newest_segment(&db.join("pg_wal"));
    let text = describe(&bytes, newest).ok_or(UpgradeError::Control { file: path })?;
    for program in ["pg_controldata", "pg_resetwal"] {
        let script = folder.join(program);
        std::fs::write(&script, format!("#!/bin/sh\ncat <<'END'\n{text}END\n"))
            .map_err(UpgradeError::io("cannot write", &script))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
            .map_err(UpgradeError::io("cannot open", &script))?;
    }
    Ok(folder.to_owned())
}

/// The log and the segment, as the last 16 digits of its name, of the newest file of the log.
fn newest_segment(folder: &Path) -> Option<(u32, u32)> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let places = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.len() == 24)?;
        let number = |from: usize| u32::from_str_radix(name.get(from..from + 8)?, 16).ok();
        Some((number(8)?, number(16)?))
    });
    places.max()
}

/// The lines that `pg_upgrade` reads; `None` where the file has another layout or the cluster was not shut down.
fn describe(bytes: &[u8], newest: Option<(u32, u32)>) -> Option<String> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let version = u32_at(8)?;
    // The nonce before the checksum has moved by one byte, and the checksum by its alignment.
    let checksum = match version {
        1300 | 1700 => 288,
        1800 => 292,
        _ => return None,
    };
    if Crc::<u32>::new(&CRC_32_ISCSI).checksum(bytes.get(..checksum)?) != u32_at(checksum)? {
        return None;
    }
    if u32_at(STATE)? != SHUT_DOWN {
        return None;
    }
    let xid = u64_at(NEXT_XID)?;
    let segment = u64::from(u32_at(LOG_SEGMENT_SIZE)?);
    let per_log = 0x1_0000_0000_u64.checked_div(segment)?;
    let newest = newest.map_or(0, |(log, part)| u64::from(log) * per_log + u64::from(part));
    let next = newest.max(u64_at(REDO)?.checked_div(segment)?) + 1;
    let by_value = if *bytes.get(FLOAT8_BY_VALUE)? == 0 { "by reference" } else { "by value" };
    let mut lines = vec![
        ("Database cluster state", "shut down".to_owned()),
        ("pg_control version number", version.to_string()),
        ("Catalog version number", u32_at(12)?.to_string()),
        ("Latest checkpoint's TimeLineID", u32_at(TIMELINE)?.to_string()),
        ("Latest checkpoint's NextXID", format!("{}:{}", xid >> 32, xid & 0xffff_ffff)),
        ("Latest checkpoint's NextOID", u32_at(NEXT_OID)?.to_string()),
        ("Latest checkpoint's NextMultiXactId", u32_at(NEXT_MULTI)?.to_string()),
        ("Latest checkpoint's NextMultiOffset", u32_at(NEXT_MULTI_OFFSET)?.to_string()),
        ("Latest checkpoint's oldestXID", u32_at(OLDEST_XID)?.to_string()),
        ("Latest checkpoint's oldestMultiXid", u32_at(OLDEST_MULTI)?.to_string()),
        ("Maximum data alignment", u32_at(MAX_ALIGN)?.to_string()),
        ("Database block size", u32_at(BLOCK_SIZE)?.to_string()),
        ("Blocks per segment of large relation", u32_at(SEGMENT_BLOCKS)?.to_string()),
        ("WAL block size", u32_at(LOG_BLOCK_SIZE)?.to_string()),
        ("Bytes per WAL segment", segment.to_string()),
        ("Maximum length of identifiers", u32_at(NAME_LENGTH)?.to_string()),
        ("Maximum columns in an index", u32_at(INDEX_KEYS)?.to_string()),
        ("Maximum size of a TOAST chunk", u32_at(TOAST_CHUNK)?.to_string()),
        ("Size of a large-object chunk", u32_at(LARGE_OBJECT_CHUNK)?.to_string()),
        ("Date/time type storage", "64-bit integers".to_owned()),
        ("Float8 argument passing", by_value.to_owned()),
        ("Data page checksum version", u32_at(CHECKSUMS)?.to_string()),
    ];
    if version >= 1800 {
        let signed = if *bytes.get(CHAR_SIGNEDNESS)? == 0 { "unsigned" } else { "signed" };
        lines.push(("Default char data signedness", signed.to_owned()));
    }
    let first = format!("{:08X}{:08X}{:08X}", u32_at(TIMELINE)?, next / per_log, next % per_log);
    lines.push(("First log segment after reset", first));
    Some(lines.iter().map(|(name, value)| format!("{:<38}{value}\n", format!("{name}:"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control file of `version` with its checksum.
    fn control(version: u32, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = vec![0; 8192];
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(8, version);
        put(STATE, SHUT_DOWN);
        put(TIMELINE, 3);
        put(NEXT_XID, 752);
        put(NEXT_XID + 4, 1);
        put(REDO, 0x0500_0028);
        put(LOG_SEGMENT_SIZE, 16 << 20);
        put(CHECKSUMS, 1);
        bytes[FLOAT8_BY_VALUE] = 1;
        change(&mut bytes);
        let end = if version >= 1800 { 292 } else { 288 };
        let checksum = Crc::<u32>::new(&CRC_32_ISCSI).checksum(&bytes[..end]);
        bytes[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn a_control_file_is_described_as_pg_resetwal_does() {
        let text = describe(&control(1700, |_| {}), Some((0, 9))).expect("a description");
        for line in [
            "pg_control version number:            1700",
            "Latest checkpoint's NextXID:          1:752",
            "Float8 argument passing:              by value",
            "First log segment after reset:        00000003000000000000000A",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let text = describe(&control(1300, |_| {}), None).expect("a description");
        assert!(text.contains("000000030000000000000006"), "{text}");
        let signed = describe(&control(1800, |bytes| bytes[CHAR_SIGNEDNESS] = 1), None).expect("a description");
        assert!(signed.contains("Default char data signedness:         signed"), "{signed}");
    }

    #[test]
    fn another_layout_and_a_cluster_that_was_not_shut_down_are_refused() {
        assert_eq!(describe(&control(1900, |_| {}), None), None);
        assert_eq!(describe(&control(1700, |bytes| bytes[STATE] = 6), None), None);
        let mut altered = control(1700, |_| {});
        altered[NEXT_XID] ^= 1;
        assert_eq!(describe(&altered, None), None);
        assert_eq!(describe(&[], None), None);
    }
}
