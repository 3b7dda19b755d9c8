//! Property tests: the reader copes with any answer of PostgreSQL, split into any pieces.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::connection::{Backend, Wire};
use super::row::Row;
use crate::db::socket::{Socket, Stream, Watch};
use crate::db::{DbError, Query};

type Values = Vec<Option<Vec<u8>>>;

/// The answer to a statement.
#[derive(Clone, Debug)]
struct Script {
    statements: Vec<Vec<Values>>,
    /// Which statement is refused, and after how many of its rows.
    refused: Option<(usize, usize)>,
    /// Whether a notice, a parameter and a notification precede each message.
    is_chatty: bool,
}

fn script() -> impl Strategy<Value = Script> {
    let row = vec(option::of(vec(any::<u8>(), 0..200)), 0..5);
    let statements = vec(vec(row, 0..6), 1..5);
    let refused = option::of((0usize..5, 0usize..6));
    (statements, refused, any::<bool>()).prop_map(|(statements, refused, is_chatty)| {
        let refused = refused.filter(|(statement, _)| *statement < statements.len());
        Script { statements, refused, is_chatty }
    })
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend(u32::try_from(body.len() + 4).expect("short").to_be_bytes());
    out.extend_from_slice(body);
}

fn data_row(values: &Values) -> Vec<u8> {
    let mut body = u16::try_from(values.len()).expect("few").to_be_bytes().to_vec();
    for value in values {
        match value {
            Some(bytes) => {
                body.extend(i32::try_from(bytes.len()).expect("short").to_be_bytes());
                body.extend_from_slice(bytes);
            }
            None => body.extend((-1i32).to_be_bytes()),
        }
    }
    body
}

impl Script {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let chat = |out: &mut Vec<u8>| {
            if self.is_chatty {
                message(out, b'N', b"SNOTICE\0Mwell\0\0");
                message(out, b'S', b"TimeZone\0UTC\0");
                message(out, b'A', b"\0\0\0\x01channel\0text\0");
            }
        };
        'all: for (number, rows) in self.statements.iter().enumerate() {
            message(&mut out, b'1', b"");
            message(&mut out, b'2', b"");
            chat(&mut out);
            let columns = rows.first().map_or(0, Vec::len);
            let mut description = u16::try_from(columns).expect("few").to_be_bytes().to_vec();
            for _ in 0..columns {
                description.extend_from_slice(b"c\0");
                description.extend_from_slice(&[0; 18]);
            }
            message(&mut out, if columns == 0 { b'n' } else { b'T' }, if columns == 0 { b"" } else { &description });
            for (place, row) in rows.iter().enumerate() {
                if self.refused == Some((number, place)) {
                    break;
                }
                message(&mut out, b'D', &data_row(row));
                chat(&mut out);
            }
            if self.refused.is_some_and(|(refused, _)| refused == number) {
                message(&mut out, b'E', b"SERROR\0VERROR\0C22012\0Mdivision by zero\0\0");
                break 'all;
            }
            message(&mut out, b'C', b"SELECT 1\0");
        }
        message(&mut out, b'Z', if self.refused.is_some() { b"E" } else { b"I" });
        out
    }
}

/// What the reader makes of `bytes`, which arrive in pieces of these lengths (repeated) until the stream ends.
fn read(statements: usize, bytes: Vec<u8>, pieces: Vec<usize>) -> (Result<Vec<Vec<Row>>, DbError>, bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let (ours, mut theirs) = duplex(1 << 10);
        let mut backend = Backend::new(Wire::new(Socket::new(Stream::Tls(Box::new(ours)), Watch::default(), None)), 10);
        let answering = async move {
            // The request is read while the answer is sent, as PostgreSQL does with a long one.
            let mut request = [0; 1 << 10];
            let mut rest = &bytes[..];
            for piece in pieces.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*piece).min(rest.len()));
                if theirs.write_all(now).await.is_err() {
                    return;
                }
                rest = later;
                let _ = tokio::time::timeout(Duration::ZERO, theirs.read(&mut request)).await;
            }
            let _ = theirs.shutdown().await;
            while theirs.read(&mut request).await.is_ok_and(|count| count > 0) {}
        };
        let asking = async move {
            let queries = (0..statements).map(|_| Query { text: "select", params: &[], role: "" });
            let outcome = backend.run(queries).await;
            (outcome, backend.is_idle())
        };
        let (outcome, ()) = tokio::join!(asking, answering);
        outcome
    })
}

fn values(row: &Row, columns: usize) -> Values {
    (0..columns).map(|column| row.bytes(column).map(|bytes| bytes.to_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_read_the_same_in_any_pieces(script in script(), pieces in vec(1usize..60, 1..8)) {
        let (outcome, is_idle) = read(script.statements.len(), script.bytes(), pieces);
        match (&script.refused, outcome) {
            (None, Ok(rows)) => {
                prop_assert!(is_idle);
                prop_assert_eq!(rows.len(), script.statements.len());
                for (read, given) in rows.iter().zip(&script.statements) {
                    prop_assert_eq!(read.len(), given.len());
                    for (read, given) in read.iter().zip(given) {
                        prop_assert_eq!(&values(read, given.len()), given);
                        prop_assert_eq!(read.bytes(given.len()), None);
                    }
                }
            }
            (Some(_), Err(DbError::Refused(refusal))) => {
                prop_assert_eq!((refusal.code.as_str(), is_idle), ("22012", false));
            }
            (_, outcome) => prop_assert!(false, "{:?}", outcome),
        }
    }

    #[test]
    fn a_truncated_answer_is_an_error(script in script(), cut in 0.0..1.0, pieces in vec(1usize..60, 1..8)) {
        let mut bytes = script.bytes();
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        let (outcome, is_idle) = read(script.statements.len(), bytes, pieces);
        prop_assert!(outcome.is_err() && !is_idle);
    }

    #[test]
    fn meaningless_bytes_cause_no_panic(bytes in vec(any::<u8>(), 0..400), pieces in vec(1usize..60, 1..8)) {
        // Whatever the result, reading ends without a panic.
        let (outcome, _) = read(2, bytes, pieces);
        drop(outcome);
    }
}
