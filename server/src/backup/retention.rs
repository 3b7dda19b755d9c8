//! Which archives are kept.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::SUFFIX;
use super::error::BackupError;

/// How far the clocks of machines with one destination may differ.
const SKEW: TimeDelta = TimeDelta::minutes(5);

/// The archives among `names` that are older than the newest `keep` that can be restored, except `made`, which was just made, `proved`, the
/// last verified one, and the parents of incremental archives that are kept. Those from well after `made` and `now` count as the oldest: they
/// were made while the clock was ahead, and would otherwise outlive all that follow. Names that are not archives are ignored.
pub fn too_old(
    names: &[String],
    keep: NonZeroUsize,
    made: &str,
    proved: Option<&str>,
    now: DateTime<Utc>,
) -> Vec<String> {
    let mut archives: Vec<String> = names.iter().filter(|name| is_archive(name)).cloned().collect();
    // It may have been started while the clock was ahead.
    let latest = time_of(made).map_or(now, |begun| begun.max(now)) + SKEW;
    archives.sort_by_cached_key(|name| (time_of(name).is_none_or(|time| time <= latest), name.clone()));
    // Without an archive that it continues, one is of no use.
    let whole = |(at, name): (usize, &String)| lineage(names, name).is_ok().then_some(at);
    let old = archives.iter().enumerate().filter_map(whole).nth_back(keep.get() - 1).unwrap_or(0);
    let stays = archives.iter().skip(old).map(String::as_str).chain([made]).chain(proved);
    // Of a chain with a gap, the remaining archives are kept.
    let needed: HashSet<String> = stays.flat_map(|name| lineage_of(names, name)).collect();
    archives.truncate(old);
    archives.retain(|name| !needed.contains(name));
    archives
}

/// The last of the times at which archives were started, as they are known at `now`. One from well after `now` is of a clock that was
/// ahead, and says nothing about when the next one is due.
pub fn last_begun(times: impl IntoIterator<Item = DateTime<Utc>>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    times.into_iter().filter(|begun| *begun <= now + SKEW).max()
}

/// How long before `now` an archive was started. One of a machine whose clock is ahead was started just now.
pub fn age_of(begun: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (now - begun).to_std().unwrap_or_default()
}

/// Whether this is the name of an archive. Sorting archives by name sorts them by time.
pub fn is_archive(name: &str) -> bool {
    time_of(name).is_some()
}

/// What the name of the note beside an archive that it was verified ends with.
const PROVED: &str = ".proved";

/// The name of the note that the archive `name` was verified.
pub fn note_name(name: &str) -> String {
    format!("{name}{PROVED}")
}

/// The newest archive among `names` that a note says was verified.
pub fn proved(names: &[String]) -> Option<&str> {
    let is_there = |archive: &&str| is_archive(archive) && names.iter().any(|name| name == archive);
    names.iter().filter_map(|name| name.strip_suffix(PROVED)).filter(is_there).max()
}

/// The notes among `names` whose archives are gone, or are among those `removed`.
pub fn notes_without_archive(names: &[String], removed: &[String]) -> Vec<String> {
    let stays = |archive: &str| names.iter().any(|name| name == archive) && !removed.iter().any(|old| old == archive);
    let is_left =
        |name: &&String| name.strip_suffix(PROVED).is_some_and(|archive| is_archive(archive) && !stays(archive));
    names.iter().filter(is_left).cloned().collect()
}

const PREFIX: &str = "ferrobase-";
const AFTER: &str = "-after-";
const TIME: &str = "%Y%m%dT%H%M%S%3fZ";

/// The name of an archive that is incremental to the one started at `parent`.
pub fn incremental_name(begun: DateTime<Utc>, parent: DateTime<Utc>) -> String {
    format!("{PREFIX}{}{AFTER}{}{SUFFIX}", begun.format(TIME), parent.format(TIME))
}

pub fn is_incremental(name: &str) -> bool {
    times_of(name).is_some_and(|(_, parent)| parent.is_some())
}

/// When the archive of this name was started.
pub fn time_of(name: &str) -> Option<DateTime<Utc>> {
    times_of(name).map(|(begun, _)| begun)
}

/// When the archive of this name was started, and its parent.
fn times_of(name: &str) -> Option<(DateTime<Utc>, Option<DateTime<Utc>>)> {
    let parse = |text: &str| {
        let parsed = NaiveDateTime::parse_from_str(text, TIME).ok()?;
        (text.len() == 19).then(|| parsed.and_utc())
    };
    let times = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    match times.split_once(AFTER) {
        None => Some((parse(times)?, None)),
        Some((begun, parent)) => Some((parse(begun)?, Some(parse(parent)?))),
    }
}

/// The archives among `names` that restoring `name` needs, oldest first: a full one, then each incremental one up to `name`.
pub fn lineage(names: &[String], name: &str) -> Result<Vec<String>, BackupError> {
    let found = lineage_of(names, name);
    match found.first().and_then(|first| times_of(first)).and_then(|(_, parent)| parent) {
        None => Ok(found),
        Some(parent) => Err(BackupError::NoParent { name: format!("{PREFIX}{}…{SUFFIX}", parent.format(TIME)) }),
    }
}

/// The same, without the parents that are missing.
fn lineage_of(names: &[String], name: &str) -> Vec<String> {
    let mut found = vec![name.to_owned()];
    // Forged names could form a cycle.
    let before = |(begun, parent): (DateTime<Utc>, Option<DateTime<Utc>>)| parent.filter(|parent| *parent < begun);
    let mut wanted = times_of(name).and_then(before);
    while let Some(time) = wanted {
        let parent =
            names.iter().find_map(|name| times_of(name).filter(|(begun, _)| *begun == time).map(|found| (name, found)));
        let Some((name, times)) = parent else { break };
        found.push(name.clone());
        wanted = before(times);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;
    use crate::backup::archive_name;

    #[test]
    fn the_newest_and_the_verified_archive_and_foreign_files_are_kept() {
        let name = |day| archive_name(Utc.with_ymd_and_hms(2026, 3, day, 4, 5, 6).single().expect("a time"));
        let mut names: Vec<String> = (1..=5).rev().map(name).collect();
        names.extend(["ferrobase-mine.tar.gz.age".to_owned(), format!("{}.partial", name(6)), "notes.txt".to_owned()]);
        let now = Utc.with_ymd_and_hms(2026, 3, 5, 5, 0, 0).single().expect("a time");
        let old =
            |keep: usize| too_old(&names, NonZeroUsize::new(keep).expect("not zero"), &name(5), Some(&name(2)), now);
        assert_eq!(old(9), [""; 0]);
        assert_eq!(old(2), [name(1), name(3)]);
    }

    #[test]
    fn notes_tell_which_archive_was_verified_and_go_with_it() {
        let name = |day| archive_name(Utc.with_ymd_and_hms(2026, 3, day, 4, 5, 6).single().expect("a time"));
        let names = [name(1), note_name(&name(1)), name(2), note_name(&name(2)), name(3), note_name(&name(4))];
        assert_eq!(proved(&names), Some(name(2).as_str()), "the fourth is gone");
        assert_eq!(proved(&[name(1), "notes.proved".to_owned()]), None);
        assert_eq!(notes_without_archive(&names, &[name(1)]), [note_name(&name(1)), note_name(&name(4))]);
        assert_eq!(notes_without_archive(&["notes.proved".to_owned()], &[]), [""; 0], "a foreign file");
    }

    #[test]
    fn archives_of_a_clock_that_was_ahead_are_removed_first() {
        let name = |day| archive_name(Utc.with_ymd_and_hms(2026, 3, day, 4, 5, 6).single().expect("a time"));
        let now = Utc.with_ymd_and_hms(2026, 3, 3, 4, 5, 6).single().expect("a time");
        let names = [name(1), name(2), name(3), name(20), name(21)];
        let keep = |keep| NonZeroUsize::new(keep).expect("not zero");
        assert_eq!(too_old(&names, keep(3), &name(3), None, now), [name(20), name(21)]);
        assert_eq!(too_old(&names, keep(1), &name(3), None, now), [name(20), name(21), name(1), name(2)]);
    }

    /// Two instances whose clocks differed by a minute made two dumps in each interval.
    #[test]
    fn an_archive_of_a_machine_whose_clock_is_minutes_ahead_was_just_made() {
        let now = Utc.with_ymd_and_hms(2026, 3, 3, 4, 5, 6).single().expect("a time");
        let at = |minutes: i64| now + TimeDelta::minutes(minutes);
        assert_eq!(last_begun([at(-60), at(-9), at(1)], now), Some(at(1)));
        assert_eq!(last_begun([at(-60), at(-9), at(6)], now), Some(at(-9)), "of a clock that was ahead");
        assert_eq!(last_begun([at(6)], now), None);
        assert_eq!(age_of(at(1), now), Duration::ZERO);
        assert_eq!(age_of(at(-9), now), Duration::from_secs(9 * 60));
    }

    /// It was removed as soon as it was made, if there were enough from the hours to come.
    #[test]
    fn the_archive_just_made_is_kept_whatever_the_clock_said_before() {
        let name = |hour| archive_name(Utc.with_ymd_and_hms(2026, 3, 3, hour, 0, 0).single().expect("a time"));
        let at = |hour, minute| Utc.with_ymd_and_hms(2026, 3, 3, hour, minute, 0).single().expect("a time");
        let names = [name(3), name(4), name(6), name(7)];
        let old = |keep: usize, made, now| {
            too_old(&names, NonZeroUsize::new(keep).expect("not zero"), &name(made), None, now)
        };
        assert_eq!(old(2, 4, at(4, 10)), [name(6), name(7)]);
        assert_eq!(old(1, 4, at(4, 10)), [name(6), name(7), name(3)]);
        // The clock was set back while it was made.
        assert_eq!(old(1, 7, at(5, 0)), [name(3), name(4), name(6)]);
        // Another one was begun later, and has ended.
        assert_eq!(old(1, 6, at(7, 10)), [name(3), name(4)]);
    }

    #[test]
    fn an_archive_that_a_later_one_depends_on_is_kept() {
        let at = |day| Utc.with_ymd_and_hms(2026, 3, day, 4, 5, 6).single().expect("a time");
        let (full, after) = (|day| archive_name(at(day)), |day, parent| incremental_name(at(day), at(parent)));
        let names = [full(1), after(2, 1), full(3), after(4, 3), after(5, 4), full(6), after(7, 6)];
        let keep = |keep: usize| NonZeroUsize::new(keep).expect("not zero");
        let old = |number: usize, proved: Option<&str>| too_old(&names, keep(number), &after(7, 6), proved, at(8));
        assert_eq!(old(2, None), [full(1), after(2, 1), full(3), after(4, 3), after(5, 4)]);
        assert_eq!(old(3, None), [full(1), after(2, 1)], "the fifth needs the third and the fourth");
        assert_eq!(old(1, None), [full(1), after(2, 1), full(3), after(4, 3), after(5, 4)]);
        assert_eq!(old(1, Some(&after(4, 3))), [full(1), after(2, 1), after(5, 4)]);
        // The seventh cannot be restored.
        let without: Vec<_> = names.iter().filter(|name| **name != full(6)).cloned().collect();
        let old = |number: usize| too_old(&without, keep(number), &after(5, 4), None, at(8));
        assert_eq!(old(1), [full(1), after(2, 1)], "the fifth is the last that can be restored");
        assert_eq!(old(4), [""; 0], "the second is the fourth of them");
        assert_eq!(lineage(&names, &after(5, 4)).expect("whole"), [full(3), after(4, 3), after(5, 4)]);
        assert_eq!(lineage(&names, &full(6)).expect("whole"), [full(6)]);
        assert_eq!(lineage(&[], "renamed.age").expect("as it is named"), ["renamed.age"]);
        let gap = lineage(&names[3..], &after(5, 4)).expect_err("a gap").to_string();
        assert!(gap.starts_with("ferrobase-20260303T040506000Z…"), "{gap}");
        let circle = [after(2, 3), after(3, 2)];
        assert_eq!(lineage_of(&circle, &circle[1]), [circle[0].clone(), circle[1].clone()]);
    }
}
