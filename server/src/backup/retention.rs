//! Which archives stay.

use chrono::{DateTime, NaiveDateTime, Utc};
use std::num::NonZeroUsize;

use super::SUFFIX;

/// The archives among `names` that are older than the newest `keep`, but for `proved`, the last one that is known to be good. Other
/// names are none of ours.
pub fn too_old(names: &[String], keep: NonZeroUsize, proved: Option<&str>) -> Vec<String> {
    let mut archives: Vec<String> = names.iter().filter(|name| is_archive(name)).cloned().collect();
    archives.sort();
    let old = archives.len().saturating_sub(keep.get());
    archives.truncate(old);
    archives.retain(|name| proved != Some(name.as_str()));
    archives
}

/// Whether this is a name that we give to an archive. Sorted by name they are sorted by time.
pub fn is_archive(name: &str) -> bool {
    time_of(name).is_some()
}

/// When the archive of this name was begun.
pub fn time_of(name: &str) -> Option<DateTime<Utc>> {
    let time = name.strip_prefix("ferrobase-")?.strip_suffix(SUFFIX)?;
    let parsed = NaiveDateTime::parse_from_str(time, "%Y%m%dT%H%M%S%3fZ").ok()?;
    (time.len() == 19).then(|| parsed.and_utc())
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;
    use crate::backup::archive_name;

    #[test]
    fn the_newest_stay_and_the_proved_one_and_what_is_not_ours() {
        let name = |day| archive_name(Utc.with_ymd_and_hms(2026, 3, day, 4, 5, 6).single().expect("a time"));
        let mut names: Vec<String> = (1..=5).rev().map(name).collect();
        names.extend(["ferrobase-mine.tar.gz.age".to_owned(), format!("{}.partial", name(6)), "notes.txt".to_owned()]);
        let old = |keep: usize| too_old(&names, NonZeroUsize::new(keep).expect("not zero"), Some(&name(2)));
        assert_eq!(old(9), [""; 0]);
        assert_eq!(old(2), [name(1), name(3)]);
    }
}
