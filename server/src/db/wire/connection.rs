//! Reads and writes messages.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::{Prepared, Refusal, Row, Statements, Use};
use crate::db::socket::Socket;
use crate::db::{DbError, Param, PartAnswer, Query, Step};

/// How much is read at once, in bytes: little at first, more for large answers.
const READ: (usize, usize) = (8 << 10, 64 << 10);
/// A buffer that has grown beyond this is freed after use, in bytes.
const KEPT: usize = 64 << 10;

/// The most memory reserved for a message before it has arrived, in bytes.
const AHEAD: usize = 16 << 20;

/// `jsonb` in `pg_type`.
const JSONB: u32 = 3802;

/// Both directions of a connection.
pub struct Wire {
    stream: Socket,
    inbox: BytesMut,
    outbox: BytesMut,
    /// How much to read at once.
    portion: usize,
}

impl Wire {
    pub fn new(stream: Socket) -> Self {
        Self { stream, inbox: BytesMut::new(), outbox: BytesMut::new(), portion: READ.0 }
    }

    /// The next message: its type byte and body.
    pub(super) async fn message(&mut self) -> Result<(u8, Bytes), DbError> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            let wanted = self.missing().min(AHEAD).max(self.portion);
            self.inbox.reserve(wanted);
            match self.stream.read_buf(&mut self.inbox).await {
                Ok(0) => return Err(DbError::Broken("connection closed".to_owned())),
                Ok(count) if count >= READ.0 => self.portion = READ.1,
                Ok(_) => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// A message that has already arrived.
    fn buffered(&mut self) -> Result<Option<(u8, Bytes)>, DbError> {
        let Some(length) = self.length()? else { return Ok(None) };
        if self.inbox.len() < length {
            return Ok(None);
        }
        let tag = self.inbox[0];
        // ParseComplete, BindComplete, CloseComplete, CommandComplete, EmptyQueryResponse, NoData: the type says
        // everything.
        if matches!(tag, b'1' | b'2' | b'3' | b'C' | b'I' | b'n') {
            self.inbox.advance(length);
            return Ok(Some((tag, Bytes::new())));
        }
        let mut message = self.inbox.split_to(length).freeze();
        message.advance(5);
        Ok(Some((tag, message)))
    }

    /// The length of the first message in the inbox, including its type byte.
    fn length(&self) -> Result<Option<usize>, DbError> {
        let Some(bytes) = self.inbox.get(1..5).and_then(|bytes| bytes.try_into().ok()) else { return Ok(None) };
        match usize::try_from(i32::from_be_bytes(bytes)) {
            Ok(length) if length >= 4 => Ok(Some(length + 1)),
            _ => Err(DbError::Broken("a message of impossible length".to_owned())),
        }
    }

    /// The number of bytes still missing from the current message.
    fn missing(&self) -> usize {
        self.length().ok().flatten().map_or(0, |length| length.saturating_sub(self.inbox.len()))
    }

    /// Writes everything in the outbox. Reads at the same time, because otherwise both sides could block.
    pub(super) async fn flush(&mut self) -> Result<(), DbError> {
        let Self { stream, inbox, outbox, .. } = self;
        let written: io::Result<()> = poll_fn(|cx| {
            while !outbox.is_empty() {
                match Pin::new(&mut *stream).poll_write(cx, outbox) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => outbox.advance(count),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        inbox.reserve(READ.0);
                        match pin!(stream.read_buf(inbox)).poll(cx) {
                            Poll::Ready(Ok(0)) => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                            Poll::Ready(Ok(_)) => {}
                            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                            Poll::Pending => return Poll::Pending,
                        }
                    }
                }
            }
            Pin::new(&mut *stream).poll_flush(cx)
        })
        .await;
        written.map_err(|error| broken(&error))
    }

    /// What is to be written next.
    pub(super) fn outbox(&mut self) -> &mut BytesMut {
        &mut self.outbox
    }

    /// Frees buffers that grew for a large statement or result.
    fn settle(&mut self) {
        self.portion = READ.0;
        if self.outbox.capacity() > KEPT {
            self.outbox = BytesMut::new();
        }
        if self.inbox.is_empty() && self.inbox.capacity() > KEPT {
            self.inbox = BytesMut::new();
        }
    }

    /// Whether an idle connection is alive. Only parameters and notices may have arrived.
    pub fn is_alive(&mut self) -> bool {
        loop {
            self.inbox.reserve(READ.0);
            match pin!(self.stream.read_buf(&mut self.inbox)).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) if count > 0 => {}
                Poll::Ready(_) => return false,
            }
        }
        loop {
            match self.buffered() {
                Ok(Some((b'N' | b'S' | b'A', _))) => {}
                Ok(None) => return true,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Runs a single statement outside of a transaction.
    pub async fn ask(&mut self, query: &Query<'_>) -> Result<Vec<Row>, DbError> {
        self.put(query, &Use::Once)?;
        frontend::sync(&mut self.outbox);
        self.stream.watch.raise();
        self.flush().await?;
        let mut rows = Vec::new();
        let mut refused: Option<Refusal> = None;
        loop {
            match self.message().await? {
                (b'D', body) => rows.push(Row::new(body, 0)),
                (b'E', body) => {
                    let refusal = Refusal::parse(&body);
                    if refusal.severity != "ERROR" {
                        return Err(refusal.into());
                    }
                    refused = Some(refusal);
                }
                (b'Z', _) => {
                    self.stream.watch.lower();
                    return refused.map_or(Ok(rows), |refusal| Err(refusal.into()));
                }
                _ => {}
            }
        }
    }

    fn put(&mut self, query: &Query<'_>, how: &Use) -> Result<(), DbError> {
        let out = &mut self.outbox;
        // Reserve the exact size of large values: growing step by step would take several times their length.
        let bytes = |(Param::Text(bytes) | Param::Binary(bytes)): &Param| bytes.len();
        let length: usize = query.params.iter().map(bytes).sum();
        if length > KEPT {
            out.reserve(length + query.text.len() + KEPT);
        }
        let (name, is_new) = match how {
            Use::Once => ("", true),
            Use::Prepare(name) => (&**name, true),
            Use::Prepared(prepared) => (&*prepared.name, false),
        };
        if is_new {
            frontend::parse(name, query.text, std::iter::empty(), out).map_err(|error| unsendable(&error))?;
        }
        // Without format codes all parameters are text.
        let has_binary = query.params.iter().any(|param| matches!(param, Param::Binary(_)));
        let formats = query.params.iter().filter(|_| has_binary).map(|param| match param {
            Param::Text(_) => 0,
            Param::Binary(_) => 1,
        });
        let value = |param: &Param, out: &mut BytesMut| {
            let (Param::Text(bytes) | Param::Binary(bytes)) = param;
            out.extend_from_slice(bytes);
            Ok(IsNull::No)
        };
        frontend::bind("", name, formats, query.params, value, [1], out).map_err(|error| match error {
            BindError::Conversion(error) => DbError::Broken(error.to_string()),
            BindError::Serialization(error) => unsendable(&error),
        })?;
        if is_new {
            frontend::describe(b'P', "", out).map_err(|error| unsendable(&error))?;
        }
        frontend::execute("", 0, out).map_err(|error| unsendable(&error))
    }
}

fn broken(error: &io::Error) -> DbError {
    DbError::Broken(format!("error communicating with the server: {error}"))
}

fn unsendable(error: &io::Error) -> DbError {
    DbError::Broken(format!("error encoding message to server: {error}"))
}

/// A connection with its prepared statements and transaction status.
pub struct Backend {
    wire: Wire,
    statements: Statements,
    /// The schema that the statements were prepared for, see [`Backend::renew`].
    epoch: u64,
    /// `I`: idle, `T`: in a transaction, `E`: in a failed one.
    status: u8,
}

/// Statements in flight, whose answers have not been read yet.
pub struct Exchange {
    sent: Vec<Sent>,
    /// The index of the statement being answered.
    step: usize,
    refusal: Option<Refusal>,
}

struct Sent {
    how: Use,
    /// (role, text) of a statement that is being prepared.
    preparing: Option<(Box<str>, Box<str>)>,
    is_parsed: bool,
    is_bound: bool,
    jsonb: u64,
}

/// An answer of an exchange.
pub enum Answer {
    /// A row, with the index of its statement.
    Row(usize, Row),
    Complete(usize),
    /// The exchange is over.
    Ready,
}

impl Backend {
    pub fn new(wire: Wire, statements: usize) -> Self {
        Self { wire, statements: Statements::new(statements), epoch: 0, status: b'I' }
    }

    /// Drops statements prepared for another schema than that of `epoch`. PostgreSQL itself detects changed result
    /// columns, but parameters keep the types that they had when the statement was prepared.
    pub fn renew(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.statements.forget();
        }
    }

    pub fn is_alive(&mut self) -> bool {
        self.wire.is_alive()
    }

    /// Whether no transaction is open.
    pub fn is_idle(&self) -> bool {
        self.status == b'I'
    }

    pub fn forget_statements(&mut self) {
        self.statements.forget();
    }

    /// Writes all statements at once. Nothing else may be sent until the answers are read to [`Answer::Ready`].
    pub async fn send(&mut self, queries: impl IntoIterator<Item = Query<'_>>) -> Result<Exchange, DbError> {
        self.send_by(queries, Statements::find).await
    }

    /// Like [`Backend::send`], but parses every statement again.
    pub async fn send_afresh(&mut self, queries: impl IntoIterator<Item = Query<'_>>) -> Result<Exchange, DbError> {
        self.send_by(queries, |_, _, _| Use::Once).await
    }

    async fn send_by(
        &mut self,
        queries: impl IntoIterator<Item = Query<'_>>,
        how: impl FnMut(&mut Statements, &str, &str) -> Use,
    ) -> Result<Exchange, DbError> {
        let exchange = self.put_all(queries, how)?;
        // Until PostgreSQL says otherwise.
        self.status = b'T';
        self.wire.stream.watch.raise();
        self.wire.flush().await?;
        Ok(exchange)
    }

    /// Puts all statements and a `Sync` into the outbox.
    fn put_all<'a>(
        &mut self,
        queries: impl IntoIterator<Item = Query<'a>>,
        mut how: impl FnMut(&mut Statements, &str, &str) -> Use,
    ) -> Result<Exchange, DbError> {
        for name in self.statements.closing.drain(..) {
            frontend::close(b'S', &name, &mut self.wire.outbox).map_err(|error| unsendable(&error))?;
        }
        let mut sent = Vec::with_capacity(8);
        for query in queries {
            let how = how(&mut self.statements, query.role, query.text);
            if let Err(error) = self.wire.put(&query, &how) {
                self.wire.outbox.clear();
                return Err(error);
            }
            let text = matches!(how, Use::Prepare(_)).then(|| (query.role.into(), query.text.into()));
            let jsonb = if let Use::Prepared(prepared) = &how { prepared.jsonb } else { 0 };
            sent.push(Sent { how, preparing: text, is_parsed: false, is_bound: false, jsonb });
        }
        frontend::sync(&mut self.wire.outbox);
        Ok(Exchange { sent, step: 0, refusal: None })
    }

    /// The next answer. A refusal is kept until the end of the exchange, since PostgreSQL skips the statements after
    /// it.
    pub async fn next(&mut self, exchange: &mut Exchange) -> Result<Answer, DbError> {
        loop {
            let (tag, body) = self.wire.message().await?;
            let step = exchange.step;
            match tag {
                b'D' => {
                    let jsonb = exchange.sent.get(step).map_or(0, |sent| sent.jsonb);
                    return Ok(Answer::Row(step, Row::new(body, jsonb)));
                }
                b'C' | b'I' => {
                    exchange.step += 1;
                    return Ok(Answer::Complete(step));
                }
                b'1' => {
                    if let Some(sent) = exchange.sent.get_mut(step) {
                        sent.is_parsed = true;
                    }
                }
                b'T' | b'n' => self.described(exchange, jsonb_columns(if tag == b'T' { &body } else { &[] })),
                b'E' => {
                    let mut refusal = Refusal::parse(&body);
                    if refusal.severity != "ERROR" {
                        return Err(refusal.into());
                    }
                    let is_prepared = |sent: &Sent| matches!(sent.how, Use::Prepared(_)) && !sent.is_bound;
                    refusal.in_binding = exchange.sent.get(step).is_some_and(is_prepared);
                    exchange.refusal.get_or_insert(refusal);
                }
                b'Z' => {
                    self.status = body.first().copied().unwrap_or(b'E');
                    self.wire.stream.watch.lower();
                    self.wire.settle();
                    return match exchange.refusal.take() {
                        Some(refusal) => {
                            self.abandon_half_prepared(exchange);
                            Err(refusal.into())
                        }
                        None => Ok(Answer::Ready),
                    };
                }
                b'2' => {
                    if let Some(sent) = exchange.sent.get_mut(step) {
                        sent.is_bound = true;
                    }
                }
                // Close done; notices, parameters, notifications.
                b'3' | b'N' | b'S' | b'A' => {}
                other => return Err(DbError::Broken(format!("an unexpected message '{}'", char::from(other)))),
            }
        }
    }

    fn described(&mut self, exchange: &mut Exchange, jsonb: u64) {
        let Some(sent) = exchange.sent.get_mut(exchange.step) else { return };
        sent.jsonb = jsonb;
        if let (Use::Prepare(name), Some((role, text))) = (&sent.how, sent.preparing.take()) {
            self.statements.keep(&role, &text, Prepared { name: name.clone(), jsonb });
        }
    }

    /// Drops a statement that was parsed but failed before it described its columns.
    fn abandon_half_prepared(&mut self, exchange: &Exchange) {
        if let Some(Sent { how: Use::Prepare(name), preparing: Some(_), is_parsed: true, .. }) =
            exchange.sent.get(exchange.step)
        {
            self.statements.closing.push(name.clone());
        }
    }

    /// Writes all parts, each with its own `Sync`, and then reads their answers.
    pub async fn run_each(&mut self, parts: &[Vec<Step>]) -> Result<Vec<PartAnswer>, DbError> {
        let mut exchanges = Vec::with_capacity(parts.len());
        // Only its answer tells whether a statement was prepared. Until then it is sent unprepared each time.
        let mut preparing: Vec<(Box<str>, Box<str>)> = Vec::new();
        for part in parts {
            exchanges.push(self.put_all(part.iter().map(Step::as_query), |statements, role, text| {
                if preparing.iter().any(|(other, of)| **other == *role && **of == *text) {
                    return Use::Once;
                }
                let how = statements.find(role, text);
                if matches!(how, Use::Prepare(_)) {
                    preparing.push((role.into(), text.into()));
                }
                how
            })?);
        }
        self.status = b'T';
        self.wire.stream.watch.raise();
        self.wire.flush().await?;
        let mut answers = Vec::with_capacity(parts.len());
        for mut exchange in exchanges {
            // The end of the previous part lowered it.
            self.wire.stream.watch.raise();
            let mut rows: Vec<Vec<Row>> = vec![Vec::new(); exchange.sent.len()];
            let answer = loop {
                match self.next(&mut exchange).await {
                    Ok(Answer::Row(step, row)) => rows[step].push(row),
                    Ok(Answer::Complete(_)) => {}
                    Ok(Answer::Ready) => break Ok(rows),
                    Err(DbError::Refused(refusal)) if refusal.severity == "ERROR" => break Err(refusal),
                    Err(error) => return Err(error),
                }
            };
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Runs all statements and returns the rows of each, or the first refusal.
    pub async fn run(&mut self, queries: impl IntoIterator<Item = Query<'_>>) -> Result<Vec<Vec<Row>>, DbError> {
        let exchange = self.send(queries).await?;
        self.gather(exchange).await
    }

    /// Like [`Backend::run`], but parses every statement again. If they succeed now, the prepared ones did not fit the
    /// schema.
    pub async fn run_afresh(&mut self, queries: impl IntoIterator<Item = Query<'_>>) -> Result<Vec<Vec<Row>>, DbError> {
        let exchange = self.send_afresh(queries).await?;
        let rows = self.gather(exchange).await?;
        self.forget_statements();
        Ok(rows)
    }

    async fn gather(&mut self, mut exchange: Exchange) -> Result<Vec<Vec<Row>>, DbError> {
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); exchange.sent.len()];
        loop {
            match self.next(&mut exchange).await? {
                Answer::Row(step, row) => rows[step].push(row),
                Answer::Complete(_) => {}
                Answer::Ready => return Ok(rows),
            }
        }
    }
}

/// A bit per `jsonb` column among the first 64 of a `RowDescription`.
fn jsonb_columns(body: &[u8]) -> u64 {
    let mut columns = 0;
    let mut rest = body.get(2..).unwrap_or_default();
    let mut column = 0;
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        // After the name: table (4), column (2), type (4), and 8 more bytes.
        let Some(fields) = rest.get(end + 1..end + 19) else { break };
        if column < 64 && fields[6..10] == JSONB.to_be_bytes() {
            columns |= 1 << column;
        }
        column += 1;
        rest = &rest[end + 19..];
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonb_columns_are_found_in_a_description() {
        let mut body = 3u16.to_be_bytes().to_vec();
        for (name, oid) in [("a", 20u32), ("b", JSONB), ("c", 25)] {
            body.extend_from_slice(name.as_bytes());
            body.push(0);
            body.extend_from_slice(&[0; 6]);
            body.extend(oid.to_be_bytes());
            body.extend_from_slice(&[0; 8]);
        }
        assert_eq!(jsonb_columns(&body), 0b010);
        assert_eq!(jsonb_columns(&[]), 0);
        assert_eq!(jsonb_columns(&body[..20]), 0);
    }
}
