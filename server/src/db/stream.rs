//! A reading transaction whose rows are handed on as they come, in bounded memory.
//!
//! As with [`super::Unit`], everything is written at once. A task of its own reads the rows, so that the
//! connection is either read to its end or, when nobody listens any more, cancelled and closed.

use bytes::BytesMut;
use futures_util::future::{join, join_all, maybe_done};
use futures_util::{TryStreamExt, poll};
use tokio::sync::mpsc;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::exclusive::{Held, Known};
use super::unit::{run_prepared, run_unnamed};
use super::{DbError, ExclusivePool, Param, Query};

/// Encoded rows are handed on in pieces of about this size, in bytes.
const PIECE: usize = 64 << 10;
/// So many pieces may wait for the listener.
const WAITING: usize = 4;

/// A statement that owns its text and values.
#[derive(Clone, Debug)]
pub struct OwnedQuery {
    pub text: String,
    pub params: Vec<Param>,
}

impl OwnedQuery {
    fn query(&self) -> Query<'_> {
        Query { text: &self.text, params: &self.params }
    }
}

/// A transaction that only reads.
#[derive(Clone, Debug)]
pub struct StreamUnit {
    /// `BEGIN … READ ONLY`
    pub begin: &'static str,
    /// The settings and whatever else precedes the rows.
    pub before: Vec<OwnedQuery>,
    pub rows: OwnedQuery,
    /// Run when the rows are read; its own rows come with [`Event::Done`].
    pub after: OwnedQuery,
}

/// What comes of a [`StreamUnit`], ended by `Done` or `Failed`.
#[derive(Debug)]
pub enum Event {
    /// Encoded rows.
    Piece(BytesMut),
    Done {
        rows: u64,
        after: Vec<Row>,
    },
    Failed(DbError),
}

impl ExclusivePool {
    /// Starts reading; `encode` appends one row (told its number, from 0) to a piece.
    pub async fn stream(
        &self,
        unit: StreamUnit,
        encode: impl FnMut(u64, &Row, &mut BytesMut) -> Result<(), tokio_postgres::Error> + Send + 'static,
    ) -> Result<mpsc::Receiver<Event>, DbError> {
        let mut held = self.hold().await?;
        let (events, listener) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = read(&mut held, &unit, encode, &events) => ended,
                () = events.closed() => return,
            };
            let last = match ended {
                Ok((rows, after)) => Event::Done { rows, after },
                Err(error) => Event::Failed(error),
            };
            drop(held);
            // A listener that has gone misses nothing.
            let _ = events.send(last).await;
        });
        Ok(listener)
    }
}

async fn read(
    held: &mut Held,
    unit: &StreamUnit,
    mut encode: impl FnMut(u64, &Row, &mut BytesMut) -> Result<(), tokio_postgres::Error>,
    events: &mpsc::Sender<Event>,
) -> Result<(u64, Vec<Row>), DbError> {
    let known: Vec<Known> = unit.before.iter().map(|query| held.known_statement(&query.text)).collect();
    let known_after = held.known_statement(&unit.after.text);
    held.begin_use();
    let client = held.client()?;
    let before = unit.before.iter().zip(known).map(|(query, known)| run(client, query, known));
    let mut start = Box::pin(maybe_done(join(client.batch_execute(unit.begin), join_all(before))));
    let params = unit.rows.params.iter().map(|param| (param, Type::UNKNOWN));
    let mut rows = Box::pin(maybe_done(client.query_typed_raw(&unit.rows.text, params)));
    let after = run(client, &unit.after, known_after);
    let mut end = Box::pin(maybe_done(join(after, client.batch_execute("COMMIT"))));
    // Polled once each, in this order, and so written in this order.
    let _ = poll!(start.as_mut());
    let _ = poll!(rows.as_mut());
    let _ = poll!(end.as_mut());

    let streamed = async {
        start.as_mut().await;
        if let Some((begun, before)) = start.as_mut().take_output() {
            begun?;
            before.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        rows.as_mut().await;
        let stream = rows.as_mut().take_output().ok_or(DbError::TransactionEnded)??;
        let mut stream = std::pin::pin!(stream);
        let mut piece = BytesMut::with_capacity(PIECE + PIECE / 4);
        let mut count = 0;
        while let Some(row) = stream.try_next().await? {
            encode(count, &row, &mut piece)?;
            count += 1;
            if piece.len() >= PIECE {
                let full = std::mem::replace(&mut piece, BytesMut::with_capacity(PIECE + PIECE / 4));
                if events.send(Event::Piece(full)).await.is_err() {
                    return Err(DbError::TransactionEnded);
                }
            }
        }
        if !piece.is_empty() && events.send(Event::Piece(piece)).await.is_err() {
            return Err(DbError::TransactionEnded);
        }
        Ok::<_, DbError>(count)
    }
    .await;
    let abandoned = events.is_closed();
    if abandoned {
        return Err(DbError::TransactionEnded);
    }
    end.as_mut().await;
    let ended = end.as_mut().take_output();
    drop((start, rows, end));
    held.end_use();
    let count = streamed?;
    let (after, committed) = ended.ok_or(DbError::TransactionEnded)?;
    let after = after?;
    committed?;
    Ok((count, after))
}

async fn run(client: &Client, query: &OwnedQuery, known: Known) -> Result<Vec<Row>, tokio_postgres::Error> {
    match known {
        Known::Prepared(statement) => run_prepared(client, &statement, &query.params).await,
        Known::New | Known::Seen => run_unnamed(client, &query.query()).await,
    }
}
