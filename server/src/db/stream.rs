//! A reading transaction whose rows are handed on as they come, in bounded memory.
//!
//! As with [`super::Unit`], everything is written at once. Whoever wants the rows reads them from the connection:
//! rows that nobody takes stay with PostgreSQL. A stream that is dropped before its end is cancelled.

use bytes::BytesMut;

use super::exclusive::Held;
use super::unit::undo;
use super::wire::{Answer, Exchange, Row};
use super::{DbError, ExclusivePool, Query};

/// Encoded rows are handed on in pieces of about this size, in bytes.
const PIECE: usize = 64 << 10;

/// A transaction that only reads.
#[derive(Clone, Debug)]
pub struct StreamUnit<'a> {
    /// Who waits for a connection: each role has its share.
    pub role: &'a str,
    /// `BEGIN … READ ONLY`
    pub begin: &'static str,
    /// The settings and whatever else precedes the rows.
    pub before: Vec<Query<'a>>,
    pub rows: Query<'a>,
    /// Run when the rows are read; its own rows come with [`Piece::Done`].
    pub after: Query<'a>,
}

/// What comes of a [`StreamUnit`], ended by `Done`.
#[derive(Debug)]
pub enum Piece {
    /// Encoded rows.
    Rows(BytesMut),
    Done {
        rows: u64,
        after: Vec<Row>,
    },
}

/// Rows on their way.
pub struct RowStream {
    held: Held,
    exchange: Exchange,
    /// Which statement's rows are streamed; the next one's are kept.
    step: usize,
    rows: u64,
    after: Vec<Row>,
}

impl std::fmt::Debug for RowStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowStream").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl ExclusivePool {
    /// Starts reading.
    pub async fn stream(&self, unit: &StreamUnit<'_>) -> Result<RowStream, DbError> {
        let mut held = self.hold(unit.role).await?;
        let queries = std::iter::once(Query::plain(unit.begin)).chain(unit.before.iter().copied()).chain([
            unit.rows,
            unit.after,
            Query::plain("COMMIT"),
        ]);
        let exchange = held.begin_use()?.send(queries).await?;
        Ok(RowStream { held, exchange, step: 1 + unit.before.len(), rows: 0, after: Vec::new() })
    }
}

impl RowStream {
    /// The next piece; `encode` appends one row (told its number, from 0) to it. Not to be called after `Done` or an
    /// error.
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
                    }
                }
                Ok(Answer::Complete(step)) => {
                    if step == self.step && !piece.is_empty() {
                        return Ok(Piece::Rows(piece));
                    }
                }
                Ok(Answer::Ready) => {
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

    /// The statements prepared on this connection no longer fit the schema. For a stream that has given no row.
    pub fn forget_statements(&mut self) {
        if let Ok(backend) = self.held.begin_use() {
            backend.forget_statements();
            self.held.end_use();
        }
    }
}
