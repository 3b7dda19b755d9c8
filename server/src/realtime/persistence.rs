//! Broadcasts of clients that are kept for replays, if their sender asks for it (`persist`).
//!
//! Policies for inserts with the extension `persistence` decide who may. Reference: supabase/realtime
//! `lib/realtime/messages.ex`, `lib/realtime_web/channels/realtime_channel/broadcast_handler.ex`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;
use uuid::Uuid;

use super::Inner;
use super::hub::World;
use super::limits::Turn;
use super::policies::text;
use super::protocol::UserPayload;
use super::replay::Stored;
use crate::db::{DbError, Param, Step};

/// The longest time that a message is kept, in seconds: partitions are dropped after it.
const LONGEST: u64 = 72 * 60 * 60;

/// How long a message is to be kept, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(u64);

/// The time is not a whole number of seconds from 1 to [`LONGEST`].
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidTtl;

impl Ttl {
    /// Reads `persist`: a boolean, or `{ttl}`. `None` if the message is not to be kept.
    pub fn parse(persist: Option<&Value>) -> Result<Option<Self>, InvalidTtl> {
        let ttl = match persist {
            None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
            Some(Value::String(word)) if word == "false" => return Ok(None),
            Some(Value::Bool(true)) => None,
            Some(Value::String(word)) if word == "true" => None,
            Some(Value::Object(options)) => options.get("ttl").filter(|ttl| !ttl.is_null()),
            Some(_) => return Err(InvalidTtl),
        };
        let seconds = match ttl {
            None => Some(LONGEST),
            Some(Value::String(digits)) => digits.parse().ok(),
            Some(seconds) => seconds.as_u64(),
        };
        let seconds = seconds.filter(|seconds| (1..=LONGEST).contains(seconds)).ok_or(InvalidTtl)?;
        Ok(Some(Self(seconds)))
    }
}

/// Stores a private broadcast. `None` if there is no room for it.
async fn keep(
    inner: &Inner,
    topic: &str,
    event: &str,
    payload: &UserPayload,
    ttl: Ttl,
) -> Result<Option<Stored>, DbError> {
    let (sql, payload_param) = match payload {
        UserPayload::Json(json) => {
            ("select realtime.keep_message($1, $2, $3::jsonb, null, $4::int8, $5::int8)", text(json))
        }
        UserPayload::Binary(bytes) => {
            ("select realtime.keep_message($1, $2, null, $3::bytea, $4::int8, $5::int8)", Param::Binary(bytes.clone()))
        }
    };
    let most = i64::try_from(inner.config.max_persisted()).unwrap_or(i64::MAX);
    let params = vec![text(topic), text(event), payload_param, text(&ttl.0.to_string()), text(&most.to_string())];
    let step = Step { text: sql.into(), params, role: "".into() };
    let rows = match inner.db.run_each("realtime", &[vec![step]]).await?.pop() {
        Some(Ok(mut rows)) => rows.pop().unwrap_or_default(),
        Some(Err(refusal)) => return Err(DbError::Refused(refusal)),
        None => Vec::new(),
    };
    let id = rows.first().map(|row| row.text(0)).transpose()?.flatten();
    let id = id.and_then(|id| id.parse::<Uuid>().ok());
    Ok(id.map(|id| Stored { id, event: event.to_owned(), payload: payload.clone() }))
}

/// Stores a private broadcast, whose sender may have it stored, then sends it. Returns its id; `None` if it was neither stored nor sent.
/// Runs as a task of its own: a stored message is also sent if the connection of its sender ends meanwhile.
pub async fn keep_and_send(
    inner: &Arc<Inner>,
    turn: Turn,
    world: &World,
    event: &str,
    payload: &UserPayload,
    ttl: Ttl,
    except: Option<u64>,
) -> Option<Uuid> {
    let (inner, world) = (Arc::clone(inner), world.clone());
    let (event, payload) = (event.to_owned(), payload.clone());
    let task = tokio::spawn(async move {
        let stored = keep_or_log(&inner, &world.topic, &event, &payload, ttl).await;
        drop(turn);
        stored.map(|stored| {
            let id = stored.id;
            inner.broadcast_stored(&world, stored, except);
            id
        })
    });
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the task that stores a broadcast failed");
        None
    })
}

/// [`keep`] for senders who are only told the id: what goes wrong is logged and counted.
async fn keep_or_log(inner: &Inner, topic: &str, event: &str, payload: &UserPayload, ttl: Ttl) -> Option<Stored> {
    let stored = match keep(inner, topic, event, payload, ttl).await {
        Ok(Some(stored)) => Some(stored),
        Ok(None) => {
            tracing::debug!(topic, "a broadcast was not stored: realtime.messages has its greatest size");
            None
        }
        // Of the message itself: JSON that PostgreSQL cannot store.
        Err(error @ DbError::Refused(_)) => {
            tracing::debug!(topic, %error, "a broadcast was not stored");
            None
        }
        Err(error) => {
            tracing::warn!(topic, %error, "a broadcast was not stored");
            None
        }
    };
    let counter =
        if stored.is_some() { &inner.metrics.broadcasts_stored } else { &inner.metrics.broadcasts_not_stored };
    counter.fetch_add(1, Ordering::Relaxed);
    stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_time_beyond_that_of_the_partitions_is_refused() {
        for (persist, expected) in [
            (json!(true), Ok(Some(259_200))),
            (json!("true"), Ok(Some(259_200))),
            (json!({}), Ok(Some(259_200))),
            (json!({ "ttl": null }), Ok(Some(259_200))),
            (json!({ "ttl": 1 }), Ok(Some(1))),
            (json!({ "ttl": "60" }), Ok(Some(60))),
            (json!({ "ttl": 259_200 }), Ok(Some(259_200))),
            (json!(false), Ok(None)),
            (json!("false"), Ok(None)),
            (json!(null), Ok(None)),
            (json!({ "ttl": 259_201 }), Err(InvalidTtl)),
            (json!({ "ttl": 0 }), Err(InvalidTtl)),
            (json!({ "ttl": -1 }), Err(InvalidTtl)),
            (json!({ "ttl": 1.5 }), Err(InvalidTtl)),
            (json!({ "ttl": "1h" }), Err(InvalidTtl)),
            (json!({ "ttl": true }), Err(InvalidTtl)),
            (json!("yes"), Err(InvalidTtl)),
            (json!(60), Err(InvalidTtl)),
            (json!([]), Err(InvalidTtl)),
        ] {
            assert_eq!(Ttl::parse(Some(&persist)), expected.map(|ttl: Option<u64>| ttl.map(Ttl)), "{persist}");
        }
        assert_eq!(Ttl::parse(None), Ok(None));
    }
}
