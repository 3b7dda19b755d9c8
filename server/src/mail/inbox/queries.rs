//! The statements of the inbox.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_postgres::Row;

use super::InboxError;
use crate::db::{DbError, Pool};
use crate::mail::Message;

/// A message as stored and as the JSON API shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Stored {
    /// A number, as text so that clients treat it as the name it is.
    pub id: String,
    pub from: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub headers: Value,
    #[serde(rename = "receivedAt")]
    pub received_at: DateTime<Utc>,
    /// Whether a person has looked at it.
    pub opened: bool,
}

const COLUMNS: &str =
    "id, sender, recipient, subject, body_text, body_html, headers, received_at, opened_at is not null as opened";

fn stored(row: &Row) -> Stored {
    Stored {
        id: row.get::<_, i64>("id").to_string(),
        from: row.get("sender"),
        to: row.get("recipient"),
        subject: row.get("subject"),
        text: row.get("body_text"),
        html: row.get("body_html"),
        headers: row.get("headers"),
        received_at: row.get("received_at"),
        opened: row.get("opened"),
    }
}

pub async fn insert(pool: &Pool, sender: &str, message: &Message) -> Result<(), DbError> {
    let headers: Map<String, Value> =
        message.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let lease = pool.lease().await?;
    lease
        .execute(
            "insert into ferrobase.inbox (sender, recipient, subject, body_text, body_html, headers)
             values ($1, $2, $3, $4, $5, $6)",
            &[&sender, &message.to, &message.subject, &message.text, &message.html, &Value::Object(headers)],
        )
        .await?;
    Ok(())
}

/// Newest first; `to` is compared without regard to letter case.
pub async fn list(pool: &Pool, to: Option<&str>, limit: u16) -> Result<Vec<Stored>, InboxError> {
    let lease = pool.lease().await?;
    let rows = lease
        .query(
            &format!(
                "select {COLUMNS} from ferrobase.inbox
                 where $1::text is null or lower(recipient) = lower($1)
                 order by id desc limit $2"
            ),
            &[&to, &i64::from(limit)],
        )
        .await?;
    Ok(rows.iter().map(stored).collect())
}

pub async fn find(pool: &Pool, id: i64) -> Result<Option<Stored>, InboxError> {
    let lease = pool.lease().await?;
    let row = lease.query_opt(&format!("select {COLUMNS} from ferrobase.inbox where id = $1"), &[&id]).await?;
    Ok(row.as_ref().map(stored))
}

pub async fn mark_opened(pool: &Pool, message: &Stored) -> Result<(), InboxError> {
    if !message.opened {
        let lease = pool.lease().await?;
        lease.execute("update ferrobase.inbox set opened_at = now() where id::text = $1", &[&message.id]).await?;
    }
    Ok(())
}

pub async fn delete_all(pool: &Pool) -> Result<(), InboxError> {
    pool.lease().await?.execute("delete from ferrobase.inbox", &[]).await?;
    Ok(())
}
