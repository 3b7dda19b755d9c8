//! What only the database knows: queues, connections, its size and age. Counted when somebody asks, but not again within
//! [`FRESH`], however many ask.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::db::{DbError, Pool};
use crate::http::prometheus::Metrics;

/// How long an answer holds.
const FRESH: Duration = Duration::from_secs(10);
/// A request for metrics waits no longer than this for the database.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

const OUTBOX: &str = "select channel,
    count(*) filter (where failed_at is null),
    count(*) filter (where failed_at is not null),
    coalesce(extract(epoch from now() - min(next_attempt_at)
             filter (where failed_at is null and next_attempt_at <= now())), 0)::float8
  from _supavisor.outbox group by channel";

const DATABASE: &str = "select
    pg_catalog.pg_database_size(current_database()),
    (select count(*) from pg_catalog.pg_stat_activity where datname is not null),
    current_setting('max_connections')::bigint,
    pg_catalog.pg_is_in_recovery(),
    (select pg_catalog.age(datfrozenxid)::bigint from pg_catalog.pg_database where datname = current_database()),
    (select deadlocks from pg_catalog.pg_stat_database where datname = current_database()),
    case when not pg_catalog.pg_is_in_recovery() then
      (select coalesce(max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn)), 0)::bigint
       from pg_catalog.pg_replication_slots) end,
    to_regclass('net.http_request_queue') is not null";

const NET: &str = "select count(*) from net.http_request_queue";

/// Asks the database. Cheap to clone; clones share the last answer.
#[derive(Clone)]
pub struct Census {
    pool: Pool,
    last: Arc<Mutex<Option<(Instant, String)>>>,
}

impl Census {
    /// `pool` logs in as `supabase_ferrobase_admin`.
    pub fn new(pool: Pool) -> Self {
        Self { pool, last: Arc::default() }
    }

    /// Prometheus' text format; nothing while the database does not answer.
    pub async fn metrics(&self) -> String {
        let mut last = self.last.lock().await;
        if let Some((_, text)) = last.as_ref().filter(|(asked, _)| asked.elapsed() < FRESH) {
            return text.clone();
        }
        let text = match timeout(QUERY_TIMEOUT, self.ask()).await {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the database's statistics cannot be read at the moment");
                String::new()
            }
            Err(_) => String::new(),
        };
        *last = Some((Instant::now(), text.clone()));
        text
    }

    async fn ask(&self) -> Result<String, DbError> {
        let client = self.pool.lease().await?;
        let database = client.query_one(DATABASE, &[]).await?;
        let outbox = client.query(OUTBOX, &[]).await?;
        // Somebody else's pg_net may keep its queue to itself.
        let queued: Option<i64> = match database.try_get(7)? {
            true => client.query_one(NET, &[]).await.ok().and_then(|row| row.try_get(0).ok()),
            false => None,
        };
        let mut metrics = Metrics::default();
        let mut figure = |name: &str, help: &str, column: usize| -> Result<(), DbError> {
            if let Some(value) = database.try_get::<_, Option<i64>>(column)? {
                metrics.single(&format!("ferrobase_database_{name}"), help, value);
            }
            Ok(())
        };
        figure("size_bytes", "Size of the database", 0)?;
        figure("connections", "Connections to the PostgreSQL server, of all clients", 1)?;
        figure("connections_max", "Maximum number of connections to the PostgreSQL server", 2)?;
        figure("transaction_age", "Transactions since the oldest row was frozen; at 2 billion PostgreSQL stops", 4)?;
        figure("deadlocks_total", "Deadlocks in this database", 5)?;
        figure("log_kept_bytes", "Log that PostgreSQL keeps for the replication slot that is furthest behind", 6)?;
        let is_replica: bool = database.try_get(3)?;
        metrics.single("ferrobase_database_is_replica", "Whether the database cannot be written", u8::from(is_replica));
        let mut mails: Vec<(String, i64, i64, f64)> = Vec::with_capacity(2);
        for channel in ["mail", "sms"] {
            let labels = format!("{{channel=\"{channel}\"}}");
            match outbox.iter().find(|row| row.get::<_, &str>(0) == channel) {
                Some(row) => mails.push((labels, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)),
                None => mails.push((labels, 0, 0, 0.0)),
            }
        }
        let waiting = mails.iter().map(|(labels, waiting, ..)| (labels, *waiting));
        metrics.gauge("ferrobase_mail_waiting", "Mails and texts to be delivered", waiting);
        let failed = mails.iter().map(|(labels, _, failed, _)| (labels, *failed));
        metrics.gauge("ferrobase_mail_failed", "Mails and texts that failed for good and need an operator", failed);
        let overdue = mails.iter().map(|(labels, .., overdue)| (labels, *overdue));
        metrics.gauge("ferrobase_mail_overdue_seconds", "How long the oldest overdue one has waited", overdue);
        if let Some(queued) = queued {
            metrics.single("ferrobase_jobs_requests_waiting", "HTTP requests that the database has queued", queued);
        }
        Ok(metrics.into_text())
    }
}
