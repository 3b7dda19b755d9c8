//! Messages of private channels that the database keeps, for who joins later.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::policies::text;
use super::protocol::{Broadcast, UserPayload};
use crate::db::{DbError, ExclusivePool, Step};

/// A stored broadcast.
pub struct Stored {
    pub id: Uuid,
    pub event: String,
    pub payload: UserPayload,
}

impl Stored {
    /// As it goes to who asked for a replay.
    pub fn as_replay(&self) -> Broadcast {
        self.with_meta(format!(r#"{{"replayed":true,"id":"{}"}}"#, self.id))
    }

    /// As it goes to everybody when it is new.
    pub fn as_live(&self) -> Broadcast {
        self.with_meta(format!(r#"{{"id":"{}"}}"#, self.id))
    }

    fn with_meta(&self, meta: String) -> Broadcast {
        Broadcast::User {
            event: self.event.as_str().into(),
            payload: self.payload.clone(),
            meta: Some(meta.into_boxed_str()),
        }
    }
}

/// The newest private broadcasts on `topic` since then (milliseconds since 1970), oldest first.
pub async fn load(db: &ExclusivePool, topic: &str, since: i64, limit: i64) -> Result<Vec<Stored>, DbError> {
    const SQL: &str = "select * from realtime.stored_messages($1, $2::int8, $3::int8)";
    let step = Step {
        text: SQL.into(),
        params: vec![text(topic), text(&since.to_string()), text(&limit.to_string())],
        role: "".into(),
    };
    let answer = db.run_each("", &[vec![step]]).await?.pop();
    let rows = match answer {
        Some(Ok(mut rows)) => rows.pop().unwrap_or_default(),
        Some(Err(refusal)) => return Err(DbError::Refused(refusal)),
        None => Vec::new(),
    };
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let (Some(id), Some(event)) = (row.text(0)?, row.text(1)?) else { continue };
        let Ok(id) = id.parse() else { continue };
        let payload = match (row.text(2)?, row.text(3)?) {
            (_, Some(binary)) => {
                // `encode(…, 'base64')` breaks lines.
                let binary: String = binary.split_whitespace().collect();
                UserPayload::Binary(STANDARD.decode(binary).unwrap_or_default().into())
            }
            (Some(json), None) => UserPayload::Json(json.into()),
            (None, None) => continue,
        };
        found.push(Stored { id, event, payload });
    }
    Ok(found)
}
