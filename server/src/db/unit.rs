//! A whole transaction as one unit on the wire.
//!
//! BEGIN, the settings, the statements and COMMIT are written at once on a connection that nobody else can write to,
//! and their answers are read together: one round trip. Where a check has to look at a result first, the end is held
//! back and sent by [`OpenUnit`].

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::exclusive::{Asker, Held};
use super::wire::{Refusal, Row};
use super::{DbError, ExclusivePool};

/// A value sent beside a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// As text of no declared type: PostgreSQL decides from the context what it is.
    Text(Bytes),
    /// The bytes of a `bytea`.
    Binary(Bytes),
}

/// A statement with its values.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub text: &'a str,
    pub params: &'a [Param],
    /// The role that runs it, if its plan may depend on that; empty if not.
    pub role: &'a str,
}

impl Query<'_> {
    /// A statement without values that is the same for everybody.
    pub(super) fn plain(text: &str) -> Query<'_> {
        Query { text, params: &[], role: "" }
    }
}

/// How a transaction ends when nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    /// As `COMMIT` would, but nothing stays: deferred constraints are checked, then all is undone.
    Rollback,
    /// The caller decides, having seen the results.
    Decide,
}

impl End {
    fn statements(self) -> &'static [&'static str] {
        match self {
            Self::Commit => &["COMMIT"],
            Self::Rollback => &["SET CONSTRAINTS ALL IMMEDIATE", "ROLLBACK"],
            Self::Decide => &[],
        }
    }
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// Who waits for a connection.
    pub asker: Asker<'a>,
    /// `BEGIN …`
    pub begin: &'static str,
    /// The settings statement, then whatever follows; each one's rows are returned.
    pub steps: Vec<Query<'a>>,
    pub end: End,
}

/// A transaction that awaits its end. Dropped, it is undone by closing its connection.
pub struct OpenUnit {
    held: Held,
}

impl OpenUnit {
    /// Ends it as decided; [`End::Decide`] leaves nothing of it, whatever it did.
    pub async fn end(mut self, how: End) -> Result<(), DbError> {
        let statements = if how == End::Decide { &["ROLLBACK"] } else { how.statements() };
        run(&mut self.held, statements.iter().map(|text| Query::plain(text))).await?;
        Ok(())
    }
}

/// What a unit answered: the rows of each step, and the transaction itself if its end was held back.
pub struct Answers {
    pub rows: Vec<Vec<Row>>,
    /// From when there was a connection for it.
    pub took: Duration,
    pub open: Option<OpenUnit>,
}

impl ExclusivePool {
    /// Runs a transaction. Of several failures the first is reported; nothing of a failed transaction stays.
    pub async fn run(&self, unit: &Unit<'_>) -> Result<Answers, DbError> {
        let mut held = self.hold(&unit.asker).await?;
        let started = Instant::now();
        let rows = match attempt(&mut held, unit, false).await {
            // The schema may have changed under a prepared statement: the transaction is undone, so it can be repeated.
            Err(DbError::Refused(refusal)) if refusal.may_be_stale() => attempt(&mut held, unit, true).await?,
            result => result?,
        };
        let open = (unit.end == End::Decide).then_some(OpenUnit { held });
        Ok(Answers { rows, took: started.elapsed(), open })
    }
}

async fn attempt(held: &mut Held, unit: &Unit<'_>, afresh: bool) -> Result<Vec<Vec<Row>>, DbError> {
    let ends = unit.end.statements();
    let queries = std::iter::once(Query::plain(unit.begin))
        .chain(unit.steps.iter().copied())
        .chain(ends.iter().map(|text| Query::plain(text)));
    let mut rows = if afresh { run_afresh(held, queries).await? } else { run(held, queries).await? };
    rows.truncate(rows.len() - ends.len());
    rows.remove(0);
    Ok(rows)
}

/// Runs statements; a transaction that fails is undone.
async fn run<'a>(held: &mut Held, queries: impl IntoIterator<Item = Query<'a>>) -> Result<Vec<Vec<Row>>, DbError> {
    let result = held.begin_use()?.run(queries).await;
    concluded(held, result).await
}

/// The same with every statement parsed anew.
async fn run_afresh<'a>(
    held: &mut Held,
    queries: impl IntoIterator<Item = Query<'a>>,
) -> Result<Vec<Vec<Row>>, DbError> {
    let result = held.begin_use()?.run_afresh(queries).await;
    concluded(held, result).await
}

async fn concluded(held: &mut Held, result: Result<Vec<Vec<Row>>, DbError>) -> Result<Vec<Vec<Row>>, DbError> {
    match result {
        Ok(rows) => {
            held.end_use();
            Ok(rows)
        }
        Err(error) => {
            undo(held, &error).await;
            Err(error)
        }
    }
}

/// Leaves the connection of a failed transaction clean, if it is still of use.
pub(super) async fn undo(held: &mut Held, error: &DbError) {
    let DbError::Refused(refusal) = error else { return };
    if refusal.severity != "ERROR" {
        return;
    }
    let Ok(backend) = held.begin_use() else { return };
    // With its end held back or never reached, a failed transaction is still open.
    if backend.is_idle() || backend.run([Query::plain("ROLLBACK")]).await.is_ok() {
        held.end_use();
    }
}

/// Statements that are one transaction of their own, without BEGIN: a failure undoes them and nothing else.
pub type Part = Vec<Step>;

/// A statement with its values, owned.
#[derive(Clone, Debug)]
pub struct Step {
    pub text: std::sync::Arc<str>,
    pub params: Vec<Param>,
    /// The role that runs it, if its plan may depend on that; empty if not.
    pub role: std::sync::Arc<str>,
}

impl Step {
    pub(super) fn as_query(&self) -> Query<'_> {
        Query { text: &self.text, params: &self.params, role: &self.role }
    }
}

/// What a part answered: the rows of each step, or why PostgreSQL refused.
pub type PartAnswer = Result<Vec<Vec<Row>>, Box<Refusal>>;

impl ExclusivePool {
    /// Runs many small transactions in one round trip: all are written before the first answer is awaited. Each is
    /// refused or not by itself; an error is one of the connection, which says nothing of any.
    pub async fn run_each(&self, role: &str, parts: &[Part]) -> Result<Vec<PartAnswer>, DbError> {
        let mut held = self.hold(&Asker { role, client: None, is_quick: true }).await?;
        let answers = held.begin_use()?.run_each(parts).await?;
        held.end_use();
        Ok(answers)
    }
}
