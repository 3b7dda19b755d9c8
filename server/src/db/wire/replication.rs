//! A connection that reads the database's log through a temporary slot, decoded by `pgoutput`.
//!
//! Reference: PostgreSQL's documentation, "Streaming Replication Protocol" and "Logical Streaming Replication
//! Parameters". A temporary slot lives as long as its connection, so no abandoned slot retains the log.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use postgres_protocol::escape::escape_identifier;
use postgres_protocol::message::frontend;
use tokio_postgres::Config;

use super::connection::Wire;
use super::{Refusal, Row};
use crate::db::DbError;
use crate::db::open::open_replication;

/// From 1970 to 2000, where PostgreSQL's clock starts, in microseconds.
const EPOCH: i64 = 946_684_800_000_000;

/// An open stream of the log.
pub struct Replication {
    wire: Wire,
}

/// A message of the stream.
#[derive(Debug)]
pub enum Copied {
    /// A message of `pgoutput`; `end` is the end of the log.
    Data { start: u64, end: u64, body: Bytes },
    /// A keepalive: the end of the log, and whether PostgreSQL wants a reply at once.
    Alive { end: u64, reply: bool },
}

impl Replication {
    /// Logs in for replication. The text format of values does not depend on the database's settings.
    pub async fn connect(config: &Config) -> Result<Self, DbError> {
        let mut config = config.clone();
        let ours = "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c extra_float_digits=1 \
                    -c bytea_output=hex -c client_encoding=UTF8 -c statement_timeout=0 -c wal_sender_timeout=60s";
        let options = match config.get_options() {
            Some(given) => format!("{given} {ours}"),
            None => ours.to_owned(),
        };
        config.options(&options);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        let (wire, registration, _) = open_replication(&config).await?.into_wire()?;
        // Nothing is cancelled: the slot ends with its connection.
        drop(registration);
        Ok(Self { wire })
    }

    /// Creates a temporary slot; the stream will start at its consistent point. Waits for open transactions.
    pub async fn create_slot(&mut self, name: &str) -> Result<(), DbError> {
        let name = escape_identifier(name);
        // The syntax of all versions from 15.
        let command = format!("CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')");
        self.command(&command).await.map(drop)
    }

    /// Starts the stream of these publications, including the logical messages of this database.
    pub async fn start(&mut self, slot: &str, publications: &[&str]) -> Result<(), DbError> {
        let names: Vec<String> = publications.iter().map(|name| escape_identifier(name)).collect();
        let names = names.join(",").replace('\'', "''");
        let command = format!(
            "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names '{names}', messages 'true')",
            escape_identifier(slot)
        );
        self.send(&command).await?;
        loop {
            match self.wire.message().await? {
                (b'W', _) => return Ok(()),
                (b'E', body) => return Err(Refusal::parse(&body).into()),
                (b'N' | b'S', _) => {}
                (other, _) => return Err(unexpected(other)),
            }
        }
    }

    /// The next message. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Result<Copied, DbError> {
        loop {
            let (tag, mut body) = self.wire.message().await?;
            match tag {
                b'd' => match body.first() {
                    Some(b'w') if body.len() >= 25 => {
                        body.advance(1);
                        let (start, end, _clock) = (body.get_u64(), body.get_u64(), body.get_i64());
                        return Ok(Copied::Data { start, end, body });
                    }
                    Some(b'k') if body.len() >= 18 => {
                        body.advance(1);
                        let (end, _clock) = (body.get_u64(), body.get_i64());
                        return Ok(Copied::Alive { end, reply: body.get_u8() == 1 });
                    }
                    _ => return Err(DbError::Broken("a malformed message in the stream".to_owned())),
                },
                b'E' => return Err(Refusal::parse(&body).into()),
                b'N' | b'S' => {}
                b'c' => return Err(DbError::Broken("the stream has ended".to_owned())),
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Tells PostgreSQL that everything up to `position` has been read and can be discarded. It also requests an
    /// answer, so that silence means that PostgreSQL is gone.
    pub async fn confirm(&mut self, position: u64) -> Result<(), DbError> {
        let now = chrono::Utc::now().timestamp_micros() - EPOCH;
        let out = self.wire.outbox();
        out.put_u8(b'd');
        out.put_u32(4 + 1 + 8 * 4 + 1);
        out.put_u8(b'r');
        for _written_flushed_applied in 0..3 {
            out.put_u64(position);
        }
        out.put_i64(now);
        out.put_u8(1);
        self.wire.flush().await
    }

    async fn send(&mut self, command: &str) -> Result<(), DbError> {
        frontend::query(command, self.wire.outbox()).map_err(|error| DbError::Broken(error.to_string()))?;
        self.wire.flush().await
    }

    async fn command(&mut self, command: &str) -> Result<Vec<Row>, DbError> {
        self.send(command).await?;
        let mut rows = Vec::new();
        let mut refused: Option<Refusal> = None;
        loop {
            match self.wire.message().await? {
                (b'D', body) => rows.push(Row::new(body, 0)),
                (b'E', body) => {
                    let refusal = Refusal::parse(&body);
                    if refusal.severity != "ERROR" {
                        return Err(refusal.into());
                    }
                    refused = Some(refusal);
                }
                (b'Z', _) => return refused.map_or(Ok(rows), |refusal| Err(refusal.into())),
                _ => {}
            }
        }
    }
}

fn unexpected(tag: u8) -> DbError {
    DbError::Broken(format!("an unexpected message '{}'", char::from(tag)))
}
