//! A whole transaction as one unit on the wire.
//!
//! BEGIN, the settings, the statements and COMMIT are written at once on a connection that nobody else can
//! write to, and their answers are read together: one round trip. Where a check has to look at a result first,
//! the end is held back and sent by [`OpenUnit`].

use std::error::Error as StdError;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use futures_util::future::{join_all, try_join};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, Statement};

use super::exclusive::{Held, Known};
use super::{DbError, ExclusivePool};

/// A value sent beside a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// As text of no declared type: PostgreSQL decides from the context what it is.
    Text(Bytes),
    /// The bytes of a `bytea`.
    Binary(Bytes),
}

impl ToSql for Param {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let (Param::Text(bytes) | Param::Binary(bytes)) = self;
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self {
            Param::Text(_) => Format::Text,
            Param::Binary(_) => Format::Binary,
        }
    }

    to_sql_checked!();
}

/// A statement with its values.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub text: &'a str,
    pub params: &'a [Param],
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

/// One transaction.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
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
    /// The connection, for further statements of this transaction.
    pub fn client(&self) -> Result<&Client, DbError> {
        self.held.client()
    }

    pub async fn end(mut self, commit: bool) -> Result<(), DbError> {
        self.held.client()?.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        self.held.end_use();
        Ok(())
    }

    /// Checks deferred constraints, then undoes everything.
    pub async fn rollback_checked(mut self) -> Result<(), DbError> {
        let client = self.held.client()?;
        let (checked, ended) = futures_util::future::join(
            client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE"),
            client.batch_execute("ROLLBACK"),
        )
        .await;
        ended?;
        self.held.end_use();
        Ok(checked?)
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
        let mut held = self.hold().await?;
        match attempt(&mut held, unit).await {
            // The schema changed under a prepared statement: the transaction is undone, so it can be repeated.
            Err(DbError::Postgres(error)) if is_stale_statement(&error) => {
                held.forget_statements();
                let rows = attempt(&mut held, unit).await?;
                Ok(answers(held, rows, unit.end))
            }
            result => Ok(answers(held, result?, unit.end)),
        }
    }
}

fn answers(held: Held, rows: Vec<Vec<Row>>, end: End) -> Answers {
    let open = (end == End::Decide).then_some(OpenUnit { held });
    Answers { rows, open }
}

fn is_stale_statement(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|db| {
        // "cached plan must not change result type"; and a statement that somebody deallocated.
        (db.code().code() == "0A000" && db.message().contains("cached plan")) || db.code().code() == "26000"
    })
}

async fn attempt(held: &mut Held, unit: &Unit<'_>) -> Result<Vec<Vec<Row>>, DbError> {
    let known: Vec<Known> = unit.steps.iter().map(|step| held.statement(step.text)).collect();
    held.begin_use();
    let outcome = if known.iter().any(|known| matches!(known, Known::Seen)) {
        prepare_and_run(held, unit, known).await
    } else {
        let begin = Some(unit.begin);
        run_steps(held.client()?, begin, &unit.steps, &known, unit.end).await
    };
    match outcome {
        Ok(rows) => {
            if unit.end != End::Decide {
                held.end_use();
            }
            Ok(rows)
        }
        Err(error) => {
            // With its end held back or never reached, a failed transaction is still open.
            if held.client()?.batch_execute("ROLLBACK").await.is_ok() {
                held.end_use();
            }
            Err(error)
        }
    }
}

/// Statements met for the second time are prepared. What precedes the first of them has to run before, for a
/// statement is parsed as the role and with the search path that the settings choose.
async fn prepare_and_run(held: &mut Held, unit: &Unit<'_>, mut known: Vec<Known>) -> Result<Vec<Vec<Row>>, DbError> {
    let mut rows = Vec::with_capacity(unit.steps.len());
    let mut done = 0;
    let mut begin = Some(unit.begin);
    while let Some(position) = (done..unit.steps.len()).find(|n| matches!(known[*n], Known::Seen)) {
        let text = unit.steps[position].text;
        let client = held.client()?;
        let before = run_steps(client, begin.take(), &unit.steps[done..position], &known[done..position], End::Decide);
        let prepare = async { Ok(client.prepare(text).await?) };
        let (earlier, statement) = if position == 0 {
            // The settings themselves depend on no role and can be prepared along with BEGIN.
            try_join(before, prepare).await?
        } else {
            match futures_util::future::join(before, prepare).await {
                (Ok(earlier), statement) => (earlier, statement?),
                (Err(error), _) => return Err(error),
            }
        };
        rows.extend(earlier);
        held.keep_statement(text, statement.clone());
        known[position] = Known::Prepared(statement);
        done = position;
    }
    let client = held.client()?;
    rows.extend(run_steps(client, begin, &unit.steps[done..], &known[done..], unit.end).await?);
    Ok(rows)
}

/// Sends everything at once and collects the answers; the first failure in order is the one that counts.
async fn run_steps(
    client: &Client,
    begin: Option<&'static str>,
    steps: &[Query<'_>],
    known: &[Known],
    end: End,
) -> Result<Vec<Vec<Row>>, DbError> {
    let start = async {
        match begin {
            Some(begin) => client.batch_execute(begin).await,
            None => Ok(()),
        }
    };
    let queries = steps.iter().zip(known).map(|(step, known)| async move {
        match known {
            Known::Prepared(statement) => run_prepared(client, statement, step.params).await,
            Known::New | Known::Seen => run_unnamed(client, step).await,
        }
    });
    let finish = async {
        match end {
            End::Commit => client.batch_execute("COMMIT").await,
            End::Rollback => {
                let check = client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE");
                let (checked, ended) = futures_util::future::join(check, client.batch_execute("ROLLBACK")).await;
                ended.and(checked)
            }
            End::Decide => Ok(()),
        }
    };
    // Polled in this order, so written in this order.
    let (started, answered, finished) = futures_util::future::join3(start, join_all(queries), finish).await;
    started?;
    let rows = answered.into_iter().collect::<Result<Vec<_>, _>>()?;
    finished?;
    Ok(rows)
}

pub(super) async fn run_prepared(
    client: &Client,
    statement: &Statement,
    params: &[Param],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    client.query_raw(statement, params).await?.try_collect().await
}

pub(super) async fn run_unnamed(client: &Client, step: &Query<'_>) -> Result<Vec<Row>, tokio_postgres::Error> {
    let params = step.params.iter().map(|param| (param, Type::UNKNOWN));
    client.query_typed_raw(step.text, params).await?.try_collect().await
}
