//! The connection to the primary over which marks are sent and received.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Notification};

use super::{Owner, Pending, Position, Shared, SubjectId};
use crate::db::{self, Connection, DbError};

/// How often the primary is asked for its position, if no request asks.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// How long it may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before connecting again.
const PAUSE: Duration = Duration::from_millis(500);
/// The channel of marks.
const CHANNEL: &str = "ferrobase_marks";
/// A notification carries at most 8,000 bytes: a position, and this many subjects of 17 bytes.
const SUBJECTS: usize = 450;

/// A notification need not reach the disk: with the primary, its listeners are gone too.
const PRELUDE: &str = "set synchronous_commit = off; listen ferrobase_marks";
const WHERE: &str = "select pg_catalog.pg_current_wal_insert_lsn()::text";
/// A name of a file of the log begins with the timeline.
const TIMELINE: &str = "select pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn())";
const TELL: &str = "with here as materialized (select pg_catalog.pg_current_wal_insert_lsn()::text as position) \
                    select position, pg_catalog.pg_notify('ferrobase_marks', position || $1)::text from here";

/// Keeps the connection until it is no longer needed.
pub async fn follow(shared: Arc<Shared>, owner: Weak<Owner>) {
    let mut was_told = false;
    while owner.strong_count() > 0 {
        let outcome = keep(&shared, &owner).await;
        let was_up = shared.marks.lock().lost();
        // Waiting requests learn that nothing is known.
        drop(std::mem::take(&mut *shared.pending.lock()));
        let Err(error) = outcome else { return };
        // Once for each time that it goes.
        if was_up || !std::mem::replace(&mut was_told, true) {
            tracing::warn!(%error, "the primary cannot be asked for its position: it answers all reads itself");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Ends with an error when the connection does, and without one when it is no longer needed.
async fn keep(shared: &Shared, owner: &Weak<Owner>) -> Result<(), DbError> {
    let (client, mut connection) = db::connect(&shared.primary).await?;
    let mut link = Link { shared, client: &client, connection: &mut connection };
    link.until(client.batch_execute(PRELUDE)).await?;
    let timeline = link.timeline().await?;
    let asked = Instant::now();
    let position = link.exchange(&[]).await?;
    shared.marks.lock().begin(timeline, position, asked);
    tracing::info!("reads are sent to the replica as far as it is up to date");
    let mut tick = interval(SAMPLE_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.bell.notified() => {}
            _ = tick.tick() => {
                if owner.strong_count() == 0 {
                    return Ok(());
                }
            }
            message = poll_fn(|cx| link.connection.poll_message(cx)) => {
                link.received(message)?;
                continue;
            }
        }
        let Pending { written, waiting } = std::mem::take(&mut *shared.pending.lock());
        let asked = Instant::now();
        // Several notifications if there are very many.
        let mut rest = &written[..];
        loop {
            let (now, later) = rest.split_at(rest.len().min(SUBJECTS));
            let position = link.exchange(now).await?;
            let mut marks = shared.marks.lock();
            marks.note(position, asked);
            now.iter().for_each(|subject| marks.mark(*subject, position, asked));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        for waiter in waiting {
            // It may have gone.
            let _ = waiter.send(());
        }
    }
}

struct Link<'a> {
    shared: &'a Shared,
    client: &'a Client,
    connection: &'a mut Connection,
}

impl Link<'_> {
    async fn timeline(&mut self) -> Result<u32, DbError> {
        let client = self.client;
        let rows = self.until(client.query_typed(TIMELINE, &[])).await?;
        let file: &str = rows.first().map_or(Ok(""), |row| row.try_get(0))?;
        let timeline = file.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        timeline.ok_or_else(|| DbError::Broken("the primary named no timeline".to_owned()))
    }

    /// Tells the other instances who wrote, if anybody did, and returns the position of the log. Notifications that were sent
    /// before have been received then, because PostgreSQL sends them before it says that it is ready again.
    async fn exchange(&mut self, written: &[SubjectId]) -> Result<Position, DbError> {
        let client = self.client;
        let told: String = written.iter().map(|subject| format!(" {:016x}", subject.0)).collect();
        let rows = if written.is_empty() {
            self.until(client.query_typed(WHERE, &[])).await?
        } else {
            self.until(client.query_typed(TELL, &[(&told, Type::TEXT)])).await?
        };
        let text: &str = rows.first().map_or(Ok(""), |row| row.try_get(0))?;
        Position::parse(text).ok_or_else(|| DbError::Broken("the primary named no position".to_owned()))
    }

    /// Waits for `answer` and takes in what arrives before it.
    async fn until<T>(&mut self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, DbError> {
        let mut answer = pin!(answer);
        let answered = async {
            loop {
                tokio::select! {
                    biased;
                    message = poll_fn(|cx| self.connection.poll_message(cx)) => self.received(message)?,
                    answer = &mut answer => return Ok(answer?),
                }
            }
        };
        timeout(ANSWER_TIMEOUT, answered)
            .await
            .unwrap_or_else(|_| Err(DbError::Broken("the primary does not answer".to_owned())))
    }

    fn received(&self, message: Option<Result<AsyncMessage, tokio_postgres::Error>>) -> Result<(), DbError> {
        match message {
            None => Err(DbError::Broken("the connection was closed".to_owned())),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(AsyncMessage::Notification(told))) if told.channel() == CHANNEL => {
                self.take(&told);
                Ok(())
            }
            Some(Ok(_)) => Ok(()),
        }
    }

    fn take(&self, told: &Notification) {
        let mut words = told.payload().split(' ');
        let Some(position) = words.next().and_then(Position::parse) else { return };
        let now = Instant::now();
        let mut marks = self.shared.marks.lock();
        for subject in words.filter_map(|word| u64::from_str_radix(word, 16).ok()) {
            marks.mark(SubjectId(subject), position, now);
        }
    }
}
