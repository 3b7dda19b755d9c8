//! Delivers the rows of `_supavisor.outbox`: after the commit, with retries, at least once. Mails and texts have
//! separate workers, so that a hanging SMS provider does not delay mail.
//!
//! A row is leased while it is being sent, and deleted when the next hop has accepted it; when a lease ends, the row is
//! due again. A lease is short, so that a crash delays mail little, and renewed while sending, which may take minutes.
//! No connection or lock is held meanwhile. After a crash in between, the mail is sent again: twice is better than
//! never. Several servers can share an outbox, because a leased row is not due.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::ToSql;

use super::{MailError, Message, Sender};
use crate::db::{self, DbError, Pool, replaced};
use crate::http::prometheus::{Counter, Metrics};

/// How often to look for due retries, for which there are no notifications.
const POLL: Duration = Duration::from_secs(2);
/// How long a row is leased. It is renewed after a third of that.
const LEASE: Duration = Duration::from_secs(90);
/// How long mails in flight may take when the server stops.
const GRACE: Duration = Duration::from_secs(3);

/// The kind of a row, and how it is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Mail,
    /// `recipient` is a phone number and `body_text` the whole message.
    Sms,
}

impl Channel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Sms => "sms",
        }
    }

    fn figures(self) -> &'static Figures {
        match self {
            Self::Mail => &MAILS,
            Self::Sms => &TEXTS,
        }
    }

    /// How many are sent at the same time. Workers are independent, so a slow mail server blocks only one.
    fn lanes(self) -> usize {
        match self {
            Self::Mail => 4,
            Self::Sms => 2,
        }
    }

    /// With the pauses of [`retry_after`], about a day for mails and an hour for texts, which cost money and lose
    /// their point. After that the row needs a person.
    fn max_attempts(self) -> i32 {
        match self {
            Self::Mail => 36,
            Self::Sms => 12,
        }
    }
}

/// Attempts to deliver since the start, by what came of them.
#[derive(Debug)]
struct Figures {
    sent: Counter,
    /// To be tried again.
    put_off: Counter,
    given_up: Counter,
}

impl Figures {
    const fn new() -> Self {
        Self { sent: Counter::new(), put_off: Counter::new(), given_up: Counter::new() }
    }
}

static MAILS: Figures = Figures::new();
static TEXTS: Figures = Figures::new();

/// What was delivered, for Prometheus.
pub fn metrics() -> String {
    let samples = [Channel::Mail, Channel::Sms].into_iter().flat_map(|channel| {
        let figures = channel.figures();
        let outcomes = [("sent", &figures.sent), ("retry", &figures.put_off), ("failed", &figures.given_up)];
        outcomes.map(|(outcome, counter)| {
            (format!("{{channel=\"{}\",outcome=\"{outcome}\"}}", channel.as_str()), counter.get())
        })
    });
    let mut metrics = Metrics::default();
    metrics.counter("ferrobase_mail_deliveries_total", "Attempts to deliver mails and texts", samples);
    metrics.into_text()
}

/// The running delivery.
pub struct Outbox {
    stop: watch::Sender<bool>,
    lanes: Vec<JoinHandle<()>>,
    listening: JoinHandle<()>,
}

/// Starts the delivery of `channel`. `pool` and `url` log in as the role that owns the outbox's rows
/// ([`PlatformUrls::service_url`](crate::migrate::PlatformUrls)).
pub fn spawn(pool: Pool, url: String, sender: Arc<dyn Sender>, channel: Channel) -> Outbox {
    let (stop, stopped) = watch::channel(false);
    let (wake, woken) = watch::channel(());
    let listening = tokio::spawn(listen(url, wake));
    let lanes = (0..channel.lanes())
        .map(|_| tokio::spawn(lane(pool.clone(), Arc::clone(&sender), channel, woken.clone(), stopped.clone())))
        .collect();
    Outbox { stop, lanes, listening }
}

impl Outbox {
    /// Waits briefly for mails in flight, and ends; the rest waits for the next start.
    pub async fn stop(self) {
        // The receivers live as long as the workers; if those have ended, there is nothing to stop.
        let _ = self.stop.send(true);
        join_all(self.lanes).await;
        self.listening.abort();
    }
}

/// Sends one mail after the other, and waits while none is due.
async fn lane(
    pool: Pool,
    sender: Arc<dyn Sender>,
    channel: Channel,
    mut woken: watch::Receiver<()>,
    mut stopped: watch::Receiver<bool>,
) {
    while !*stopped.borrow() {
        // Marked before the check, so that a commit during it wakes us again.
        woken.mark_unchanged();
        match deliver(&pool, &*sender, channel, LEASE, given_up(stopped.clone())).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the mail outbox cannot be read at the moment"),
        }
        tokio::select! {
            _ = stopped.changed() => return,
            () = notified(&mut woken) => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Waits until woken; forever if no waker is left.
async fn notified(woken: &mut watch::Receiver<()>) {
    if woken.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Ready [`GRACE`] after the server was asked to stop.
async fn given_up(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(GRACE).await;
}

/// Sends the first due row of `channel`; false if there is none.
pub async fn deliver_next(pool: &Pool, sender: &dyn Sender, channel: Channel) -> Result<bool, DbError> {
    deliver_leased(pool, sender, channel, LEASE).await
}

/// [`deliver_next`] with a lease of another length than [`LEASE`].
pub async fn deliver_leased(
    pool: &Pool,
    sender: &dyn Sender,
    channel: Channel,
    length: Duration,
) -> Result<bool, DbError> {
    deliver(pool, sender, channel, length, std::future::pending()).await
}

/// The right to send a row.
struct Lease {
    id: i64,
    /// Also identifies the lease.
    until: DateTime<Utc>,
}

/// A leased mail.
struct Leased {
    lease: Lease,
    attempts: i32,
    message: Message,
}

async fn deliver(
    pool: &Pool,
    sender: &dyn Sender,
    channel: Channel,
    length: Duration,
    given_up: impl Future<Output = ()>,
) -> Result<bool, DbError> {
    let _held = replaced::hold().await;
    let Some(Leased { mut lease, attempts, message }) = lease(pool, channel, length).await? else { return Ok(false) };
    let mut sending = sender.send(&message);
    tokio::pin!(given_up);
    let sent = loop {
        tokio::select! {
            sent = &mut sending => break sent,
            () = &mut given_up => {
                tracing::info!(mail = lease.id, "a mail was left for the next start");
                give_back(pool, &lease).await?;
                return Ok(true);
            }
            // Awaited to the end, because a renewal without its answer would leave us with the former lease.
            () = tokio::time::sleep(length / 3) => renew(pool, &mut lease, length).await,
        }
    };
    match sent {
        Ok(()) => {
            channel.figures().sent.increment();
            delete(pool, &lease).await?;
        }
        Err(error) => put_off(pool, &lease, attempts, channel, &error).await?,
    }
    Ok(true)
}

/// Leases the first due mail; no other server takes it before the lease ends.
async fn lease(pool: &Pool, channel: Channel, length: Duration) -> Result<Option<Leased>, DbError> {
    let row = pool
        .lease()
        .await?
        .query_opt(
            "update _supavisor.outbox set next_attempt_at = now() + $1 * interval '1 second'
             where id = (
               select id from _supavisor.outbox
               where channel = $2 and failed_at is null and next_attempt_at <= now()
               order by next_attempt_at, id
               limit 1
               for update skip locked
             )
             returning id, recipient, subject, body_text, body_html, headers, attempts, next_attempt_at",
            &[&length.as_secs_f64(), &channel.as_str()],
        )
        .await?;
    row.map(|row| {
        Ok(Leased {
            lease: Lease { id: row.try_get("id")?, until: row.try_get("next_attempt_at")? },
            attempts: row.try_get("attempts")?,
            message: Message {
                to: row.try_get("recipient")?,
                subject: row.try_get("subject")?,
                text: row.try_get("body_text")?,
                html: row.try_get("body_html")?,
                headers: headers(&row.try_get("headers")?),
            },
        })
    })
    .transpose()
}

/// Keeps a row leased for another `length`. If the database cannot do it, the mail may be sent twice, as after a crash.
async fn renew(pool: &Pool, lease: &mut Lease, length: Duration) {
    let renewed = async {
        let sql = "update _supavisor.outbox set next_attempt_at = now() + $3 * interval '1 second'
             where id = $1 and next_attempt_at = $2
             returning next_attempt_at";
        let values: &[&(dyn ToSql + Sync)] = &[&lease.id, &lease.until, &length.as_secs_f64()];
        let row = pool.lease().await?.query_opt(sql, values).await?;
        Ok::<_, DbError>(row.map(|row| row.try_get("next_attempt_at")).transpose()?)
    };
    match renewed.await {
        Ok(Some(until)) => lease.until = until,
        Ok(None) => tracing::warn!(mail = lease.id, "a mail is being sent whose row somebody else has changed"),
        Err(error) => tracing::warn!(mail = lease.id, %error, "the lease of a mail could not be renewed"),
    }
}

async fn delete(pool: &Pool, lease: &Lease) -> Result<(), DbError> {
    let sql = "delete from _supavisor.outbox where id = $1 and next_attempt_at = $2";
    pool.lease().await?.execute(sql, &[&lease.id, &lease.until]).await?;
    Ok(())
}

/// Makes the mail due again at once.
async fn give_back(pool: &Pool, lease: &Lease) -> Result<(), DbError> {
    let sql = "update _supavisor.outbox set next_attempt_at = now() where id = $1 and next_attempt_at = $2";
    pool.lease().await?.execute(sql, &[&lease.id, &lease.until]).await?;
    Ok(())
}

/// Records why the mail was refused, in the words of the other side, and when to retry, if at all. `attempts`: those before.
async fn put_off(
    pool: &Pool,
    lease: &Lease,
    attempts: i32,
    channel: Channel,
    error: &MailError,
) -> Result<(), DbError> {
    let attempts = attempts + 1;
    // A mail server may answer anything, but PostgreSQL cannot store a NUL.
    let reason = error.to_string().replace('\0', " ");
    let gives_up =
        matches!(error, MailError::Unusable(_) | MailError::Rejected(_)) || attempts >= channel.max_attempts();
    let figures = channel.figures();
    if gives_up { &figures.given_up } else { &figures.put_off }.increment();
    tracing::warn!(
        mail = lease.id,
        ?channel,
        attempts,
        gives_up,
        outcome = error.outline(),
        "a message was not delivered"
    );
    pool.lease()
        .await?
        .execute(
            "update _supavisor.outbox
             set attempts = $3, last_error = $4, next_attempt_at = now() + $5 * interval '1 second',
                 failed_at = case when $6 then now() end
             where id = $1 and next_attempt_at = $2",
            &[&lease.id, &lease.until, &attempts, &reason, &retry_after(attempts).as_secs_f64(), &gives_up],
        )
        .await?;
    Ok(())
}

/// Doubles from a second to an hour.
fn retry_after(attempts: i32) -> Duration {
    let exponent = u32::try_from(attempts.saturating_sub(1)).unwrap_or(0).min(12);
    Duration::from_secs(1 << exponent).min(Duration::from_secs(3600))
}

/// `{"Name": "value"}` as header lines; other values are ignored.
fn headers(json: &serde_json::Value) -> Vec<(String, String)> {
    let object = json.as_object().into_iter().flatten();
    object.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// Wakes the delivery whenever a transaction with mail commits. While the connection is lost, polling still delivers.
async fn listen(url: String, wake: watch::Sender<()>) {
    let mut pause = Duration::from_secs(1);
    loop {
        let database = replaced::current().await;
        match listen_once(&url, &wake, database).await {
            _ if replaced::times() != database => continue,
            Ok(()) => pause = Duration::from_secs(1),
            Err(error) => tracing::debug!(%error, "listening for mail is interrupted"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(30));
    }
}

/// Listens until the connection ends. `database`: of [`replaced::current`]; does not listen to another database.
async fn listen_once(url: &str, wake: &watch::Sender<()>, database: u64) -> Result<(), DbError> {
    let mut config: tokio_postgres::Config = url.parse()?;
    if config.get_application_name().is_none() {
        config.application_name("ferrobase mail");
    }
    let (client, mut connection) = db::connect(&config).await?;
    if replaced::times() != database {
        return Ok(());
    }
    let statement = "listen ferrobase_outbox";
    let (begun, lost) = (client.batch_execute(statement), db::lost(&client, statement));
    tokio::pin!(begun, lost);
    let mut listening = false;
    loop {
        tokio::select! {
            outcome = &mut begun, if !listening => {
                outcome?;
                listening = true;
                // For commits before we listened.
                wake.send_replace(());
            }
            error = &mut lost => return Err(error),
            message = std::future::poll_fn(|context| connection.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(_))) => wake.send_replace(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_double_up_to_an_hour_and_end_after_about_a_day() {
        assert_eq!(retry_after(1), Duration::from_secs(1));
        assert_eq!(retry_after(4), Duration::from_secs(8));
        assert_eq!(retry_after(30), Duration::from_secs(3600));
        for (channel, hours) in [(Channel::Mail, 20..30), (Channel::Sms, 0..1)] {
            let whole: Duration = (1..channel.max_attempts()).map(retry_after).sum();
            assert!(hours.contains(&(whole.as_secs() / 3600)), "{channel:?} {whole:?}");
        }
    }

    #[test]
    fn headers_are_the_string_members_of_an_object() {
        let json = serde_json::json!({"A": "1", "B": 2});
        assert_eq!(headers(&json), [("A".to_owned(), "1".to_owned())]);
        assert!(headers(&serde_json::json!([])).is_empty());
    }
}
