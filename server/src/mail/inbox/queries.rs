//! The statements of the inbox.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_postgres::Row;

use super::InboxError;
use super::search::Term;
use crate::db::{DbError, Pool};
use crate::mail::Message;

/// A message as stored and as the JSON API shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Stored {
    /// A number as text, so that clients treat it as an opaque id.
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
    /// What only mails that came by SMTP have, by Mailpit's names.
    #[serde(skip)]
    pub details: Option<Value>,
    /// The size of their source.
    #[serde(skip)]
    pub size: Option<i32>,
}

/// A mail that came by SMTP.
#[cfg(feature = "inbox-smtp")]
pub struct Received {
    /// `Name, address`, or only the address.
    pub sender: String,
    pub recipient: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub details: Value,
    pub source: Vec<u8>,
}

const COLUMNS: &str = "id, sender, recipient, subject, body_text, body_html, headers, received_at,
  opened_at is not null as opened, details, octet_length(source) as size";

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
        details: row.get("details"),
        size: row.get("size"),
    }
}

pub async fn insert(pool: &Pool, sender: &str, message: &Message) -> Result<(), DbError> {
    let headers: Map<String, Value> =
        message.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let lease = pool.lease().await?;
    lease
        .execute(
            "insert into _supavisor.inbox (sender, recipient, subject, body_text, body_html, headers)
             values ($1, $2, $3, $4, $5, $6)",
            &[&sender, &message.to, &message.subject, &message.text, &message.html, &Value::Object(headers)],
        )
        .await?;
    Ok(())
}

/// Yields the mail's number.
#[cfg(feature = "inbox-smtp")]
pub async fn insert_received(pool: &Pool, mail: &Received) -> Result<i64, DbError> {
    let lease = pool.lease().await?;
    let row = lease
        .query_one(
            "insert into _supavisor.inbox (sender, recipient, subject, body_text, body_html, details, source)
             values ($1, $2, $3, $4, $5, $6, $7) returning id",
            &[&mail.sender, &mail.recipient, &mail.subject, &mail.text, &mail.html, &mail.details, &mail.source],
        )
        .await?;
    Ok(row.try_get(0)?)
}

/// What came by SMTP, as it came.
pub async fn source(pool: &Pool, message: &Stored) -> Result<Option<Vec<u8>>, InboxError> {
    if message.details.is_none() {
        return Ok(None);
    }
    let lease = pool.lease().await?;
    let row = lease.query_opt("select source from _supavisor.inbox where id::text = $1", &[&message.id]).await?;
    Ok(row.and_then(|row| row.get(0)))
}

/// Newest first; `to` is compared case-insensitively.
pub async fn list(pool: &Pool, to: Option<&str>, limit: u16) -> Result<Vec<Stored>, InboxError> {
    let lease = pool.lease().await?;
    let rows = lease
        .query(
            &format!(
                "select {COLUMNS} from _supavisor.inbox
                 where $1::text is null or lower(recipient) = lower($1) or details->'Recipients' ? lower($1)
                 order by id desc limit $2"
            ),
            &[&to, &i64::from(limit)],
        )
        .await?;
    Ok(rows.iter().map(stored).collect())
}

pub async fn find(pool: &Pool, id: i64) -> Result<Option<Stored>, InboxError> {
    let lease = pool.lease().await?;
    let row = lease.query_opt(&format!("select {COLUMNS} from _supavisor.inbox where id = $1"), &[&id]).await?;
    Ok(row.as_ref().map(stored))
}

pub async fn mark_opened(pool: &Pool, message: &Stored) -> Result<(), InboxError> {
    if !message.opened {
        let lease = pool.lease().await?;
        lease.execute("update _supavisor.inbox set opened_at = now() where id::text = $1", &[&message.id]).await?;
    }
    Ok(())
}

/// Whether a message matches all terms of `$1`, see [`Term`].
const MATCHES: &str = "not exists (
  select from jsonb_to_recordset($1::jsonb) as t (field text, word text, excluded boolean)
  where t.excluded = case t.field
    when 'to' then strpos(lower(coalesce(details->>'To', recipient)), t.word) > 0
    when 'cc' then strpos(lower(coalesce(details->>'Cc', '')), t.word) > 0
    when 'bcc' then strpos(lower(coalesce(details->>'Bcc', '')), t.word) > 0
    when 'reply-to' then strpos(lower(coalesce(details->>'ReplyTo', '')), t.word) > 0
    when 'from' then strpos(lower(sender), t.word) > 0
    when 'addressed' then strpos(lower(concat_ws(' ', recipient, sender, details->>'To', details->>'Cc', details->>'Bcc',
      details->>'ReplyTo')), t.word) > 0
    when 'subject' then strpos(lower(subject), t.word) > 0
    when 'message-id' then strpos(lower(coalesce(details->>'MessageID', id || '@ferrobase')), t.word) > 0
    when 'attachment' then coalesce(jsonb_array_length(details->'Attachments'), 0) > 0
    when 'inline' then coalesce(jsonb_array_length(details->'Inline'), 0) > 0
    when 'read' then opened_at is not null
    when 'after' then received_at >= t.word::timestamptz
    when 'before' then received_at < t.word::timestamptz
    when 'larger' then coalesce(octet_length(source), octet_length(body_text) + octet_length(body_html)) > t.word::bigint
    when 'smaller' then coalesce(octet_length(source), octet_length(body_text) + octet_length(body_html)) < t.word::bigint
    when 'text' then strpos(regexp_replace(lower(concat_ws(' ', sender, subject, recipient, body_text,
      regexp_replace(body_html, '<[^>]*>', ' ', 'g'))), '[\\s<>\",;()]+', ' ', 'g'), t.word) > 0
    else false
  end)";

/// Some of the matching messages, and their total number.
pub struct Selected {
    pub messages: Vec<Stored>,
    pub total: i64,
    pub unread: i64,
    pub matching: i64,
    pub matching_unread: i64,
}

/// Newest first, from the one numbered `start`; without a limit all.
pub async fn select(pool: &Pool, terms: &[Term], start: i64, limit: Option<i64>) -> Result<Selected, InboxError> {
    let terms = serde_json::to_value(terms).unwrap_or_default();
    let lease = pool.lease().await?;
    let counts = lease
        .query_one(
            &format!(
                "select count(*), count(*) filter (where opened_at is null), count(*) filter (where {MATCHES}),
                        count(*) filter (where opened_at is null and {MATCHES}) from _supavisor.inbox"
            ),
            &[&terms],
        )
        .await?;
    let page = format!("select {COLUMNS} from _supavisor.inbox where {MATCHES} order by id desc offset $2 limit $3");
    let rows = lease.query(&page, &[&terms, &start, &limit]).await?;
    Ok(Selected {
        messages: rows.iter().map(stored).collect(),
        total: counts.get(0),
        unread: counts.get(1),
        matching: counts.get(2),
        matching_unread: counts.get(3),
    })
}

/// Marks the matching messages with these numbers, or all, as opened or not.
pub async fn mark(pool: &Pool, ids: Option<&[i64]>, terms: &[Term], opened: bool) -> Result<(), InboxError> {
    let mark = format!(
        "update _supavisor.inbox set opened_at = case when $3 then coalesce(opened_at, now()) end
         where ($2::bigint[] is null or id = any ($2)) and {MATCHES}"
    );
    let terms = serde_json::to_value(terms).unwrap_or_default();
    pool.lease().await?.execute(&mark, &[&terms, &ids, &opened]).await?;
    Ok(())
}

/// Deletes the matching messages with these numbers, or all.
pub async fn delete(pool: &Pool, ids: Option<&[i64]>, terms: &[Term]) -> Result<(), InboxError> {
    let delete = format!("delete from _supavisor.inbox where ($2::bigint[] is null or id = any ($2)) and {MATCHES}");
    let terms = serde_json::to_value(terms).unwrap_or_default();
    pool.lease().await?.execute(&delete, &[&terms, &ids]).await?;
    Ok(())
}
