//! A whole transaction as one unit on the wire.
//!
//! BEGIN, the settings, the statements and COMMIT are written at once on an exclusively held connection, and their
//! answers are read together: one round trip. If a result has to be checked first, the end is held back and sent by
//! [`OpenUnit`].

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::exclusive::{Asker, Held};
use super::wire::{Refusal, Row};
use super::{DbError, ExclusivePool, slow};

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// Text without a declared type: PostgreSQL infers the type from the context.
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
    /// A statement without parameters whose plan does not depend on the role.
    pub(super) fn plain(text: &str) -> Query<'_> {
        Query { text, params: &[], role: "" }
    }
}

/// How a transaction ends if nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    /// Checks deferred constraints as `COMMIT` would, then rolls back.
    Rollback,
    /// The caller decides after seeing the results.
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
    /// The settings statement, then the others; the rows of each are returned.
    pub steps: Vec<Query<'a>>,
    pub end: End,
}

impl Unit<'_> {
    /// The text that says most of what the transaction does: its settings are short.
    fn longest_text(&self) -> &str {
        self.steps.iter().map(|step| step.text).max_by_key(|text| text.len()).unwrap_or_default()
    }
}

/// A transaction whose end is held back. If dropped, it is rolled back by closing its connection.
pub struct OpenUnit {
    held: Held,
}

impl OpenUnit {
    /// Ends it as decided. [`End::Decide`] rolls back.
    pub async fn end(mut self, how: End) -> Result<(), DbError> {
        let statements = if how == End::Decide { &["ROLLBACK"] } else { how.statements() };
        run(&mut self.held, statements.iter().map(|text| Query::plain(text))).await?;
        Ok(())
    }
}

/// The results of a unit: the rows of each step, and the transaction itself if its end was held back.
pub struct Answers {
    pub rows: Vec<Vec<Row>>,
    /// Measured from when it got a connection.
    pub took: Duration,
    pub open: Option<OpenUnit>,
}

impl ExclusivePool {
    /// Runs a transaction. Reports the first of several failures; a failed transaction is rolled back.
    pub fn run<'a>(&'a self, unit: &'a Unit<'_>) -> BoxFuture<'a, Result<Answers, DbError>> {
        Box::pin(self.run_unit(unit))
    }

    async fn run_unit(&self, unit: &Unit<'_>) -> Result<Answers, DbError> {
        let mut held = self.hold(&unit.asker).await?;
        let started = Instant::now();
        let rows = match attempt(&mut held, unit, false).await {
            // The schema may have changed since a statement was prepared. The transaction is rolled back, so it can be
            // repeated.
            Err(DbError::Refused(refusal)) if refusal.may_be_stale() => attempt(&mut held, unit, true).await?,
            result => result?,
        };
        let open = (unit.end == End::Decide).then_some(OpenUnit { held });
        let took = started.elapsed();
        slow::note(took, unit.longest_text());
        Ok(Answers { rows, took, open })
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

/// Runs statements and rolls back a failed transaction.
async fn run<'a>(held: &mut Held, queries: impl IntoIterator<Item = Query<'a>>) -> Result<Vec<Vec<Row>>, DbError> {
    let result = held.begin_use()?.run(queries).await;
    concluded(held, result).await
}

/// The same, with every statement parsed again.
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

/// Cleans the connection of a failed transaction, if it is still usable.
pub(super) async fn undo(held: &mut Held, error: &DbError) {
    let DbError::Refused(refusal) = error else { return };
    if refusal.severity != "ERROR" {
        return;
    }
    let Ok(backend) = held.begin_use() else { return };
    // If its end was held back or not reached, a failed transaction is still open.
    if backend.is_idle() || backend.run([Query::plain("ROLLBACK")]).await.is_ok() {
        held.end_use();
    }
}

/// Statements that form an implicit transaction, without BEGIN: a failure rolls back only them.
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

/// The result of a part: the rows of each step, or PostgreSQL's refusal.
pub type PartAnswer = Result<Vec<Vec<Row>>, Box<Refusal>>;

impl ExclusivePool {
    /// Runs many small transactions in one round trip: all are written before the first answer is awaited. Each
    /// succeeds or fails on its own. An error means that the connection failed, and says nothing about any of
    /// them.
    pub fn run_each<'a>(&'a self, role: &'a str, parts: &'a [Part]) -> BoxFuture<'a, Result<Vec<PartAnswer>, DbError>> {
        Box::pin(async move {
            let mut held = self.hold(&Asker { role, client: None, is_quick: true }).await?;
            let answers = held.begin_use()?.run_each(parts).await?;
            held.end_use();
            Ok(answers)
        })
    }
}
