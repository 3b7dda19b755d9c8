//! A whole transaction as one unit on the wire.
//!
//! BEGIN, the settings, the statements and COMMIT are written at once on a connection that nobody else can write to,
//! and their answers are read together: one round trip. Where a check has to look at a result first, the end is held
//! back and sent by [`OpenUnit`].

use bytes::Bytes;

use super::exclusive::Held;
use super::wire::Row;
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
    /// Who waits for a connection: each role has its share.
    pub role: &'a str,
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
    pub async fn end(mut self, commit: bool) -> Result<(), DbError> {
        run(&mut self.held, [Query::plain(if commit { "COMMIT" } else { "ROLLBACK" })]).await?;
        Ok(())
    }
}

/// What a unit answered: the rows of each step, and the transaction itself if its end was held back.
pub struct Answers {
    pub rows: Vec<Vec<Row>>,
    pub open: Option<OpenUnit>,
}

impl ExclusivePool {
    /// Runs a transaction. Of several failures the first is reported; nothing of a failed transaction stays.
    pub async fn run(&self, unit: &Unit<'_>) -> Result<Answers, DbError> {
        let mut held = self.hold(unit.role).await?;
        let rows = match attempt(&mut held, unit).await {
            // The schema changed under a prepared statement: the transaction is undone, so it can be repeated.
            Err(DbError::Refused(refusal)) if refusal.is_stale_statement() => {
                held.begin_use()?.forget_statements();
                attempt(&mut held, unit).await?
            }
            result => result?,
        };
        let open = (unit.end == End::Decide).then_some(OpenUnit { held });
        Ok(Answers { rows, open })
    }
}

async fn attempt(held: &mut Held, unit: &Unit<'_>) -> Result<Vec<Vec<Row>>, DbError> {
    let ends = unit.end.statements();
    let queries = std::iter::once(Query::plain(unit.begin))
        .chain(unit.steps.iter().copied())
        .chain(ends.iter().map(|text| Query::plain(text)));
    let mut rows = run(held, queries).await?;
    rows.truncate(rows.len() - ends.len());
    rows.remove(0);
    Ok(rows)
}

/// Runs statements; a transaction that fails is undone.
async fn run<'a>(held: &mut Held, queries: impl IntoIterator<Item = Query<'a>>) -> Result<Vec<Vec<Row>>, DbError> {
    let backend = held.begin_use()?;
    match backend.run(queries).await {
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
