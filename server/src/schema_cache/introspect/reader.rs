//! Reads catalog rows, either all at once or so slowly that requests are hardly affected.

use std::time::{Duration, Instant};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use crate::db::Client;

/// The pace of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The first load, which requests wait for.
    AtOnce,
    /// A reload: a few rows at a time, with pauses longer than the work. A query over thousands of tables would
    /// otherwise keep a processor busy for some hundred milliseconds.
    Gentle,
}

/// Rows at a time: about a millisecond's work.
const FEW: usize = 200;
/// The pause as a multiple of the work, and its bounds.
const REST: (u32, Duration, Duration) = (2, Duration::from_millis(1), Duration::from_millis(20));

/// A connection in a transaction, and the pace at which it is read from. One query at a time.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub client: &'a Client,
    pub pace: Pace,
}

impl Reader<'_> {
    /// All rows of `sql`, which should not sort, because that takes long before the first row. With parameter types
    /// given, the statement needs no round trip to be prepared.
    pub async fn rows(&self, sql: &str, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Row>, Error> {
        match self.pace {
            Pace::AtOnce => self.client.query_typed(sql, params).await,
            Pace::Gentle => self.rows_gently(sql, params).await,
        }
    }

    async fn rows_gently(&self, sql: &str, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Row>, Error> {
        self.client.query_typed(&format!("declare few no scroll cursor for {sql}"), params).await?;
        // Its columns depend on the cursor, so it is prepared for each.
        let fetch = self.client.prepare(&format!("fetch {FEW} from few")).await?;
        let mut rows = Vec::new();
        loop {
            let started = Instant::now();
            let some = self.client.query(&fetch, &[]).await?;
            let is_last = some.len() < FEW;
            rows.extend(some);
            if is_last {
                break;
            }
            tokio::time::sleep((started.elapsed() * REST.0).clamp(REST.1, REST.2)).await;
        }
        self.client.batch_execute("close few").await?;
        Ok(rows)
    }
}
