//! Transport over the database's log: messages are written with `pg_logical_emit_message`, and every instance reads them
//! from its own stream, in the same order.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;

use crate::db::{Param, Step};
use crate::realtime::Inner;

/// The prefix of our messages in the log.
pub const PREFIX: &str = "ferrobase.realtime";
/// The most messages, and about the most bytes, written at once.
const BATCH: (usize, usize) = (256, 8 << 20);

/// Writes queued messages until the queue is closed.
pub async fn run(inner: &Arc<Inner>, waiting: &mut Receiver<Bytes>) {
    while let Some(first) = waiting.recv().await {
        let mut messages = vec![first];
        let mut size = messages[0].len();
        while messages.len() < BATCH.0
            && size < BATCH.1
            && let Ok(message) = waiting.try_recv()
        {
            size += message.len();
            messages.push(message);
        }
        write(inner, messages).await;
    }
}

/// One transaction, so that a single commit flushes all of them to the log.
pub async fn write(inner: &Inner, messages: Vec<Bytes>) {
    let count = messages.len();
    let steps = messages.iter().flat_map(|message| inner.bus.signed(message, usize::MAX)).map(|part| Step {
        text: "select pg_catalog.pg_logical_emit_message(true, 'ferrobase.realtime', $1::bytea)".into(),
        params: vec![Param::Binary(part)],
        role: "".into(),
    });
    let answer = inner.db.run_each("realtime", &[steps.collect()]).await.map(|mut answers| answers.pop());
    inner.bus.taken(&messages);
    match answer {
        Ok(Some(Err(refusal))) => inner.bus.lose(inner, count, &refusal),
        Err(error) => inner.bus.lose(inner, count, &error),
        Ok(_) => {}
    }
}
