//! The queries to PostgreSQL about the changes of a batch.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Candidate, Known};
use crate::db::{DbError, Param, Part, PartAnswer, Refusal, Step};
use crate::realtime::Inner;
use crate::realtime::changes::catalog::{Rights, Table, act_as, read_rights, rights_step};
use crate::realtime::changes::change::Change;
use crate::realtime::changes::filter::{Comparison, Verdict};
use crate::realtime::changes::pgoutput::Cell;
use crate::realtime::changes::{Action, Entry};
use crate::realtime::policies::{array, text};
use crate::realtime::token::Identity;

/// The most parts in one round trip.
const PARTS: usize = 2000;
/// The most questions in one round trip. In between the time is checked here.
const QUESTIONS: usize = 500;

/// The queries of one round trip, and the positions of their answers.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) parts: Vec<Part>,
    /// By relation: the part with the rights of roles.
    pub(super) rights: HashMap<u32, usize>,
    /// By (group, relation): the part, and the change of each of its rows.
    pub(super) visible: HashMap<(usize, u32), (usize, Vec<usize>)>,
}

/// A row of a question: a change and one of its columns.
type Subject = (usize, usize);

/// Comparisons that PostgreSQL evaluates, each for several rows.
#[derive(Default)]
pub(super) struct Questions {
    all: Vec<(Arc<Comparison>, Vec<Subject>)>,
    /// By comparison: the question.
    numbers: HashMap<Arc<Comparison>, usize>,
    /// By question, change and column: the row.
    rows: HashMap<(usize, usize, usize), usize>,
}

impl Questions {
    /// Adds a row to a question, unless they are known. Returns their numbers.
    fn add(&mut self, comparison: &Arc<Comparison>, change: usize, column: usize) -> (usize, usize) {
        let question = *self.numbers.entry(Arc::clone(comparison)).or_insert_with(|| {
            self.all.push((Arc::clone(comparison), Vec::new()));
            self.all.len() - 1
        });
        let rows = &mut self.all[question].1;
        let row = *self.rows.entry((question, change, column)).or_insert_with(|| {
            rows.push((change, column));
            rows.len() - 1
        });
        (question, row)
    }

    /// The order in which to ask them: patterns last, because they can take all the time.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|question| self.all[*question].0.is_pattern);
        order
    }

    /// How many rows a question has.
    fn rows(&self, question: usize) -> usize {
        self.all[question].1.len()
    }

    /// The query of a question for some of its rows.
    fn part(&self, question: usize, rows: Range<usize>, changes: &[Change]) -> Part {
        let (comparison, all) = &self.all[question];
        let rows = all.get(rows).unwrap_or_default();
        let cells = rows.iter().map(|(change, column)| changes[*change].filtered_cell(*column).and_then(Cell::text));
        let params = vec![array_of(cells), text(&comparison.value)];
        vec![question_timeout(), Step { text: (*comparison.sql).into(), params, role: "".into() }]
    }
}

/// By question: its answer for each row, or `None` if there was none in time.
pub(super) type Compared = Vec<Option<Vec<bool>>>;

/// The result of a subscription's filters for a change.
pub(super) enum Filtered {
    /// Passes if these questions are answered with yes.
    Passes(Vec<(usize, usize)>),
    Fails,
    /// The table has changed since the filters were checked, so the result is unknown.
    Stale,
}

pub(super) fn check_filters(change: &Change, place: usize, entry: &Entry, questions: &mut Questions) -> Filtered {
    let mut pending = Vec::new();
    let is_of_one_table = entry.subscription.is_of_one_table();
    for filter in &entry.subscription.filters {
        let Some(column) = change.relation.columns.iter().position(|column| column.name == *filter.column) else {
            // A new table without such a column may have joined a subscription to many tables.
            return if is_of_one_table { Filtered::Stale } else { Filtered::Fails };
        };
        let Some(bound) = filter.of(change.relation.columns[column].kind) else {
            // A table that was meant from the beginning has another type now. A new one of a type that none had is none of those.
            let was_meant = is_of_one_table || entry.subscription.tables.contains(&change.relation.id);
            return if was_meant { Filtered::Stale } else { Filtered::Fails };
        };
        let Some(cell) = change.filtered_cell(column) else { return Filtered::Fails };
        match bound.check(cell.text()) {
            Verdict::Holds => {}
            Verdict::Fails => return Filtered::Fails,
            Verdict::Ask => {
                let Some(comparison) = bound.comparison() else { return Filtered::Fails };
                pending.push(questions.add(comparison, place, column));
            }
        }
    }
    Filtered::Passes(pending)
}

/// Sets when the time for all further questions of this connection ends, in so many milliseconds.
fn end_of_questions(left: Duration) -> Part {
    let sql = "select set_config('realtime.end_of_questions', \
               (extract(epoch from clock_timestamp()) * 1000 + $1::int8)::text, false)";
    vec![Step { text: sql.into(), params: vec![text(&left.as_millis().to_string())], role: "".into() }]
}

/// A question may take a quarter of the time that is left, so that a slow one leaves some to the next.
fn question_timeout() -> Step {
    let sql = "select set_config('statement_timeout', greatest(1, (current_setting('realtime.end_of_questions')::numeric \
               - extract(epoch from clock_timestamp()) * 1000) / 4)::int::text, true)";
    Step { text: sql.into(), params: Vec::new(), role: "".into() }
}

/// Asks the questions, and takes their time from `left`.
pub(super) async fn compare(
    inner: &Inner,
    changes: &[Change],
    questions: &Questions,
    left: &mut Duration,
) -> Result<Compared, DbError> {
    let mut compared: Compared = vec![None; questions.all.len()];
    let mut refused: Vec<(usize, usize)> = Vec::new();
    for numbers in questions.order().chunks(QUESTIONS) {
        if left.is_zero() {
            return Ok(compared);
        }
        let parts = numbers.iter().map(|question| questions.part(*question, 0..questions.rows(*question), changes));
        for (question, answer) in numbers.iter().zip(put(inner, parts, left).await?) {
            compared[*question] = holding(&answer);
            let rows = questions.rows(*question);
            if rows > 1 && compared[*question].as_ref().is_some_and(Vec::is_empty) {
                refused.extend((0..rows).map(|row| (*question, row)));
            }
        }
    }
    // One row that cannot be compared must not hide the others, so each is asked alone. Beyond that, none of them holds.
    refused.truncate(QUESTIONS);
    if refused.is_empty() || left.is_zero() {
        return Ok(compared);
    }
    let parts = refused.iter().map(|(question, row)| questions.part(*question, *row..*row + 1, changes));
    for ((question, _), answer) in refused.iter().zip(put(inner, parts, left).await?) {
        let answer = holding(&answer).map(|rows| rows.first().copied().unwrap_or_default());
        match (&mut compared[*question], answer) {
            (Some(rows), Some(holds)) => rows.push(holds),
            (rows, _) => *rows = None,
        }
    }
    Ok(compared)
}

/// Asks some questions in one round trip, and takes its time from `left`.
async fn put(
    inner: &Inner,
    parts: impl Iterator<Item = Part>,
    left: &mut Duration,
) -> Result<impl Iterator<Item = PartAnswer>, DbError> {
    let since = Instant::now();
    let parts: Vec<Part> = std::iter::once(end_of_questions(*left)).chain(parts).collect();
    let answers = run(inner, &parts).await;
    *left = left.saturating_sub(since.elapsed());
    Ok(answers?.into_iter().skip(1))
}

/// For which rows it holds; none if PostgreSQL refuses to compare them, and `None` if it did not answer.
fn holding(answer: &PartAnswer) -> Option<Vec<bool>> {
    match answer {
        Ok(rows) => {
            let rows = rows.last().map(Vec::as_slice).unwrap_or_default();
            Some(rows.iter().map(|row| row.slice(0) == Some(&[1])).collect())
        }
        Err(refusal) => {
            tracing::debug!(%refusal, "a filter could not be compared");
            (!is_fault(refusal)).then(Vec::new)
        }
    }
}

/// Whether a refusal says nothing about the rows: a timeout, a failing server.
pub(super) fn is_fault(refusal: &Refusal) -> bool {
    ["57", "53", "40", "08", "55", "58", "XX"].iter().any(|class| refusal.code.starts_with(class))
}

/// Adds the first part, which checks that the changes' transactions are visible to others. Before that, policies would
/// not see the rows yet, and clients would read too early.
pub(super) fn await_commits(asked: &mut Asked, changes: &[Change]) {
    let mut xids: Vec<String> = changes.iter().map(|change| change.xid.to_string()).collect();
    xids.dedup();
    let params = vec![text(&format!("{{{}}}", xids.join(",")))];
    let text = "select realtime.await_commits($1::bigint[])".into();
    asked.parts.push(vec![Step { text, params, role: "".into() }]);
}

/// Whether they are visible.
pub(super) fn are_visible(answers: &[PartAnswer]) -> Result<bool, DbError> {
    match answers.first() {
        Some(Ok(rows)) => Ok(rows.last().and_then(|rows| rows.first()).is_some_and(|row| row.slice(0) == Some(&[1]))),
        Some(Err(refusal)) => Err(DbError::Refused(refusal.clone())),
        None => Ok(false),
    }
}

pub(super) fn ask_rights(
    asked: &mut Asked,
    changes: &[Change],
    known: &Known,
    candidates: &[Candidate],
    groups: &[Arc<Identity>],
) {
    let mut roles: HashMap<u32, Vec<&str>> = HashMap::new();
    for candidate in candidates {
        let Some(table) = known.table(&changes[candidate.change].relation) else { continue };
        let roles = roles.entry(table.oid).or_default();
        let role = groups[candidate.group].caller.role.as_str();
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    for (table, roles) in roles {
        asked.rights.insert(table, asked.parts.len());
        asked.parts.push(vec![rights_step(table, &roles)]);
    }
}

/// Asks which rows each group may see, for the tables selected by `is_wanted` that have a primary key.
pub(super) fn ask_visible(
    asked: &mut Asked,
    inner: &Inner,
    changes: &[Change],
    known: &Known,
    candidates: &[Candidate],
    groups: &[Arc<Identity>],
    is_wanted: impl Fn(&Table) -> bool,
) {
    let mut rows: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    for candidate in candidates {
        let change = &changes[candidate.change];
        let Some(table) = known.table(&change.relation) else { continue };
        if change.action == Action::Delete || !candidate.passes || !is_wanted(table) {
            continue;
        }
        let rows = rows.entry((candidate.group, table.oid)).or_default();
        if rows.last() != Some(&candidate.change) && !rows.contains(&candidate.change) {
            rows.push(candidate.change);
        }
    }
    for ((group, oid), mut places) in rows {
        let Some(first) = places.first() else { continue };
        let Some(table) = known.table(&changes[*first].relation) else { continue };
        let Some(sql) = &table.visible_sql else { continue };
        let mut keys: Vec<Vec<Option<&str>>> = vec![Vec::new(); table.keys().count()];
        places.retain(|place| {
            let Some(values) = new_key(&changes[*place], table) else { return false };
            for (column, value) in keys.iter_mut().zip(values) {
                column.push(Some(value));
            }
            true
        });
        if places.is_empty() {
            continue;
        }
        let caller = &groups[group].caller;
        let act = act_as(caller, &inner.search_path);
        let params = keys.into_iter().map(array_of).collect();
        let see = Step { text: Arc::clone(sql), params, role: caller.role.as_str().into() };
        asked.visible.insert((group, oid), (asked.parts.len(), places));
        asked.parts.push(vec![act, see]);
    }
}

/// The value of a key column after the change.
fn key_text<'a>(change: &'a Change, name: &str) -> Option<&'a str> {
    let column = change.relation.columns.iter().position(|column| column.name == name)?;
    change.new_cell(column)?.text()
}

/// The key of the row before the change.
pub(super) fn old_key<'a>(change: &'a Change, table: &Table) -> Option<Vec<&'a str>> {
    let cell = |name: &str| {
        let column = change.relation.columns.iter().position(|column| column.name == name)?;
        change.identified_cell(column)?.text()
    };
    table.keys().map(|key| cell(&key.name)).collect()
}

/// The key of the row after the change.
pub(super) fn new_key<'a>(change: &'a Change, table: &Table) -> Option<Vec<&'a str>> {
    table.keys().map(|key| key_text(change, &key.name)).collect()
}

pub(super) fn array_of<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> Param {
    let values: Vec<Option<&str>> = values.into_iter().collect();
    if values.iter().all(Option::is_some) {
        return array(values.into_iter().flatten());
    }
    // With nulls among them.
    let items: Vec<String> = values
        .into_iter()
        .map(|value| match value {
            Some(value) => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
            None => "NULL".to_owned(),
        })
        .collect();
    text(&format!("{{{}}}", items.join(",")))
}

pub(super) async fn run(inner: &Inner, parts: &[Part]) -> Result<Vec<PartAnswer>, DbError> {
    let mut answers = Vec::with_capacity(parts.len());
    for parts in parts.chunks(PARTS) {
        inner.metrics.visibility_trips.fetch_add(1, Ordering::Relaxed);
        answers.extend(inner.db.run_each("realtime", parts).await?);
    }
    Ok(answers)
}

/// By table and role.
pub(super) type AllRights = HashMap<u32, HashMap<String, Rights>>;

pub(super) fn rights_of(asked: &Asked, answers: &[PartAnswer]) -> Result<AllRights, DbError> {
    let mut all = AllRights::new();
    for (table, part) in &asked.rights {
        match &answers[*part] {
            Ok(rows) => drop(all.insert(*table, read_rights(rows.last().map(Vec::as_slice).unwrap_or_default())?)),
            Err(refusal) => return Err(DbError::Refused(refusal.clone())),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_comparisons_are_one_question_and_patterns_are_asked_last() {
        let comparison =
            |value: &str, is_pattern| Arc::new(Comparison { sql: "".into(), value: value.into(), is_pattern });
        let mut questions = Questions::default();
        assert_eq!(questions.add(&comparison("a%", true), 0, 1), (0, 0));
        assert_eq!(questions.add(&comparison("1", false), 0, 1), (1, 0));
        assert_eq!(questions.add(&comparison("1", false), 0, 1), (1, 0), "of another subscription");
        assert_eq!(questions.add(&comparison("1", false), 0, 2), (1, 1));
        assert_eq!(questions.add(&comparison("1", false), 3, 2), (1, 2));
        assert_eq!(questions.add(&comparison("2", false), 3, 2), (2, 0));
        assert_eq!(questions.all[1].1, [(0, 1), (0, 2), (3, 2)]);
        assert_eq!(questions.order(), [1, 2, 0]);
    }
}
