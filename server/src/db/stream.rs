//! A read-only transaction whose rows are passed on as they arrive, in bounded memory.
//!
//! As with [`super::Unit`], everything is written at once. The consumer reads rows from the connection; while it
//! does not, PostgreSQL waits and the transaction stays open. Dropping a stream before its end cancels it.

use bytes::BytesMut;

use super::exclusive::{Asker, Held};
use super::unit::undo;
use super::wire::{Answer, Exchange, Row};
use super::{DbError, ExclusivePool, Query};

/// Encoded rows are passed on in pieces of about this size, in bytes.
const PIECE: usize = 64 << 10;

/// A transaction that only reads.
#[derive(Clone, Debug)]
pub struct StreamUnit<'a> {
    /// Who waits for a connection.
    pub asker: Asker<'a>,
    /// `BEGIN … READ ONLY`
    pub begin: &'static str,
    /// The settings and whatever else precedes the rows.
    pub before: Vec<Query<'a>>,
    /// Runs right before the rows; [`RowStream::take_ahead`] returns its own rows.
    pub ahead: Option<Query<'a>>,
    pub rows: Query<'a>,
    /// Runs after the rows are read; its own rows come with [`Piece::Done`].
    pub after: Query<'a>,
}

/// A part of a [`StreamUnit`]'s result; the last one is `Done`.
#[derive(Debug)]
pub enum Piece {
    /// Encoded rows.
    Rows(BytesMut),
    Done {
        rows: u64,
        after: Vec<Row>,
    },
}

/// A stream of rows.
pub struct RowStream {
    held: Held,
    exchange: Exchange,
    /// The statement whose rows are streamed; the next one's are kept.
    step: usize,
    rows: u64,
    /// The statement of [`StreamUnit::ahead`].
    ahead_step: Option<usize>,
    ahead: Vec<Row>,
    after: Vec<Row>,
    /// Whether every statement was parsed again because a prepared one was refused.
    is_afresh: bool,
}

impl std::fmt::Debug for RowStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowStream").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl ExclusivePool {
    /// Starts reading.
    pub async fn stream(&self, unit: &StreamUnit<'_>) -> Result<RowStream, DbError> {
        let mut held = self.hold(&unit.asker).await?;
        let exchange = held.begin_use()?.send(unit.queries()).await?;
        let next = 1 + unit.before.len();
        let (ahead_step, step) = if unit.ahead.is_some() { (Some(next), next + 1) } else { (None, next) };
        let (ahead, after) = (Vec::new(), Vec::new());
        Ok(RowStream { held, exchange, step, rows: 0, ahead_step, ahead, after, is_afresh: false })
    }
}

impl<'a> StreamUnit<'a> {
    fn queries(&self) -> impl Iterator<Item = Query<'a>> {
        let ends = [self.rows, self.after, Query::plain("COMMIT")];
        let begin = std::iter::once(Query::plain(self.begin));
        begin.chain(self.before.iter().copied()).chain(self.ahead).chain(ends)
    }
}

impl RowStream {
    /// Returns the next piece. `encode` gets a row with its number (from 0) and appends it. Must not be called after
    /// `Done` or an error.
    pub async fn next(&mut self, encode: impl Fn(u64, &Row, &mut BytesMut)) -> Result<Piece, DbError> {
        let mut piece = BytesMut::new();
        loop {
            let answer = self.held.begin_use()?.next(&mut self.exchange).await;
            match answer {
                Ok(Answer::Row(step, row)) if step == self.step => {
                    if piece.capacity() == 0 {
                        piece.reserve(PIECE + PIECE / 8);
                    }
                    encode(self.rows, &row, &mut piece);
                    self.rows += 1;
                    if piece.len() >= PIECE {
                        return Ok(Piece::Rows(piece));
                    }
                }
                Ok(Answer::Row(step, row)) => {
                    if step > self.step {
                        self.after.push(row);
                    } else if self.ahead_step == Some(step) {
                        self.ahead.push(row);
                    }
                }
                Ok(Answer::Complete(step)) => {
                    if step == self.step && !piece.is_empty() {
                        return Ok(Piece::Rows(piece));
                    }
                }
                Ok(Answer::Ready) => {
                    if self.is_afresh {
                        self.held.begin_use()?.forget_statements();
                    }
                    self.held.end_use();
                    return Ok(Piece::Done { rows: self.rows, after: std::mem::take(&mut self.after) });
                }
                Err(error) => {
                    undo(&mut self.held, &error).await;
                    return Err(error);
                }
            }
        }
    }

    /// Sends `unit` again with every statement parsed again, because prepared ones may no longer fit the schema. For a
    /// stream that was refused before its first row.
    pub async fn restart(&mut self, unit: &StreamUnit<'_>) -> Result<(), DbError> {
        self.exchange = self.held.begin_use()?.send_afresh(unit.queries()).await?;
        self.is_afresh = true;
        self.ahead.clear();
        Ok(())
    }

    /// The rows of [`StreamUnit::ahead`], which have arrived with the first row of the result.
    pub fn take_ahead(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.ahead)
    }
}
