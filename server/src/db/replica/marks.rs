//! Which position of the primary's log a read has to see. Does no I/O.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashMapExt};

use super::{Position, SubjectId};

/// The most subjects remembered one by one. With more, everybody counts as having written last.
const MOST: usize = 100_000;

/// What an instance knows of the primary: who wrote up to where, and where its log was when.
pub struct LogPositions {
    max_age: Duration,
    /// What everybody has to see, because earlier marks were missed. `None` while there is no connection to the primary.
    floor: Option<Position>,
    /// The primary's, which stays the same for as long as the connection. `None` without one.
    timeline: Option<u32>,
    /// Where the log was after the last write of a subject, and when we heard of it.
    marked: HashMap<SubjectId, (Position, Instant)>,
    /// Positions that include everything committed before a moment, oldest first.
    samples: VecDeque<(Instant, Position)>,
    /// When the newest sample that the replica has passed was taken; at first, when the connection began.
    passed: Option<Instant>,
}

impl LogPositions {
    pub fn new(max_age: Duration) -> Self {
        Self { max_age, floor: None, timeline: None, marked: HashMap::new(), samples: VecDeque::new(), passed: None }
    }

    /// From now on marks of all instances arrive; `position` includes the writes of all earlier ones.
    pub fn begin(&mut self, timeline: u32, position: Position, asked: Instant) {
        self.lost();
        self.timeline = Some(timeline);
        self.floor = Some(position);
        self.samples.push_back((asked, position));
        self.passed = Some(asked);
    }

    /// Marks may be missed from now on. Returns whether they were heard before.
    pub fn lost(&mut self) -> bool {
        self.marked.clear();
        self.samples.clear();
        self.timeline = None;
        self.passed = None;
        self.floor.take().is_some()
    }

    /// The timeline that the positions belong to; `None`: not known.
    pub fn timeline(&self) -> Option<u32> {
        self.timeline
    }

    pub fn mark(&mut self, subject: SubjectId, position: Position, now: Instant) {
        if self.marked.len() >= MOST && !self.marked.contains_key(&subject) {
            let last = self.marked.values().map(|(position, _)| *position).max();
            self.floor = self.floor.max(last);
            self.marked.clear();
        }
        let known = self.marked.entry(subject).or_insert((position, now));
        if known.0 < position {
            *known = (position, now);
        }
    }

    /// The primary was at `position` when it was asked, or a moment later.
    pub fn note(&mut self, position: Position, asked: Instant) {
        self.samples.push_back((asked, position));
        // One sample per moment would be enough; there are a few in each.
        while self.samples.front().is_some_and(|(at, _)| asked.duration_since(*at) > self.max_age) {
            self.samples.pop_front();
        }
        // Any role of the database may send a mark. None that we heard of before was really beyond this position.
        for (mark, heard) in self.marked.values_mut() {
            if *heard <= asked && *mark > position {
                *mark = position;
            }
        }
    }

    /// The replica has replayed up to there. Forgets the marks that it has passed: every later read there sees them.
    pub fn pass(&mut self, replayed: Position) {
        self.marked.retain(|_, (position, _)| *position > replayed);
        let passed = self.samples.iter().rev().find(|(_, position)| *position <= replayed);
        self.passed = passed.map(|(at, _)| *at).or(self.passed);
    }

    /// What a read that begins at `now` has to see: everything older than the greatest age, and the subject's own writes. `None`:
    /// not known.
    pub fn needed(&self, subject: SubjectId, now: Instant) -> Option<Position> {
        let floor = self.floor?;
        // The oldest one within the age: everything before it is older.
        let (_, aged) = self.samples.iter().find(|(at, _)| now.duration_since(*at) <= self.max_age)?;
        let own = self.marked.get(&subject).map_or(floor, |(position, _)| *position);
        Some(floor.max(*aged).max(own))
    }

    /// How old the replica's data are at most; less if it has passed nothing since the connection to the primary began.
    /// `None` without one.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.passed.map(|at| now.duration_since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(5);

    fn at(position: u64) -> Position {
        Position(position)
    }

    fn needed(marks: &LogPositions, subject: u64, now: Instant) -> Option<u64> {
        marks.needed(SubjectId(subject), now).map(|position| position.0)
    }

    #[test]
    fn writers_need_their_own_write_and_others_only_old_enough_ones() {
        let start = Instant::now();
        let mut marks = LogPositions::new(AGE);
        assert_eq!(needed(&marks, 1, start), None, "nothing is known yet");
        marks.begin(1, at(100), start);
        marks.mark(SubjectId(1), at(150), start);
        assert_eq!((needed(&marks, 1, start), needed(&marks, 2, start)), (Some(150), Some(100)));
        // An older mark that arrives late changes nothing.
        marks.mark(SubjectId(1), at(120), start);
        assert_eq!(needed(&marks, 1, start), Some(150));
        marks.note(at(200), start + Duration::from_secs(3));
        assert_eq!(needed(&marks, 2, start + Duration::from_secs(5)), Some(100));
        assert_eq!(needed(&marks, 2, start + Duration::from_secs(6)), Some(200), "the first sample is too old");
        assert_eq!(needed(&marks, 2, start + Duration::from_secs(9)), None, "and now the second");
    }

    #[test]
    fn marks_that_the_replica_has_passed_are_dropped() {
        let now = Instant::now();
        let mut marks = LogPositions::new(AGE);
        marks.begin(1, at(100), now);
        marks.mark(SubjectId(1), at(150), now);
        marks.mark(SubjectId(2), at(160), now);
        marks.pass(at(150));
        assert_eq!(marks.marked.len(), 1);
        assert_eq!((needed(&marks, 1, now), needed(&marks, 2, now)), (Some(100), Some(160)));
    }

    #[test]
    fn after_a_gap_everybody_needs_the_position_at_its_end() {
        let now = Instant::now();
        let mut marks = LogPositions::new(AGE);
        marks.begin(1, at(100), now);
        marks.lost();
        assert_eq!(needed(&marks, 1, now), None);
        marks.begin(1, at(300), now);
        assert_eq!(needed(&marks, 1, now), Some(300));
    }

    #[test]
    fn too_many_writers_count_as_everybody() {
        let now = Instant::now();
        let mut marks = LogPositions::new(AGE);
        marks.begin(1, at(1), now);
        for n in 0..=MOST as u64 {
            marks.mark(SubjectId(n), at(1000 + n), now);
        }
        assert_eq!(marks.marked.len(), 1);
        assert_eq!(needed(&marks, u64::MAX, now), Some(1000 + MOST as u64 - 1));
    }

    #[test]
    fn a_forged_mark_lasts_no_longer_than_the_next_sample() {
        let now = Instant::now();
        let mut marks = LogPositions::new(AGE);
        marks.begin(1, at(100), now);
        marks.mark(SubjectId(1), at(u64::MAX), now);
        marks.note(at(110), now + Duration::from_millis(1));
        assert_eq!(needed(&marks, 1, now + Duration::from_millis(1)), Some(110));
    }

    #[test]
    fn the_age_is_that_of_the_newest_passed_sample() {
        let start = Instant::now();
        let mut marks = LogPositions::new(AGE);
        marks.begin(1, at(100), start);
        marks.note(at(200), start + Duration::from_secs(1));
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(marks.age(after(2)), Some(Duration::from_secs(2)), "it has passed nothing yet");
        marks.pass(at(150));
        assert_eq!(marks.age(after(2)), Some(Duration::from_secs(2)));
        marks.pass(at(200));
        assert_eq!(marks.age(after(2)), Some(Duration::from_secs(1)));
        // Regression: as soon as the sample was older than the greatest age, there was none.
        marks.note(at(300), after(20));
        marks.pass(at(200));
        assert_eq!(marks.age(after(20)), Some(Duration::from_secs(19)));
        marks.lost();
        assert_eq!(marks.age(after(21)), None);
    }
}
