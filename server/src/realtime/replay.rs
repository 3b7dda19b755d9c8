//! Replays stored messages of private channels to clients that join later.

use std::collections::VecDeque;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use uuid::Uuid;

use super::hub::World;
use super::join::Replay;
use super::policies::text;
use super::protocol::{Broadcast, UserPayload};
use crate::db::{DbError, ExclusivePool, Row, Step};

/// The most messages replayed after an id, and their bytes.
const MOST: (usize, usize) = (1000, 4 << 20);

/// A stored broadcast.
pub struct Stored {
    pub id: Uuid,
    pub event: String,
    pub payload: UserPayload,
}

impl Stored {
    /// The form for a replay.
    pub fn as_replay(&self) -> Broadcast {
        self.with_meta(format!(r#"{{"replayed":true,"id":"{}"}}"#, self.id).into())
    }

    /// The form for live delivery.
    pub fn as_live(&self) -> Broadcast {
        self.with_meta(format!(r#"{{"id":"{}"}}"#, self.id).into())
    }

    fn with_meta(&self, meta: Box<str>) -> Broadcast {
        Broadcast::User { event: self.event.as_str().into(), payload: self.payload.clone(), meta: Some(meta) }
    }
}

/// A loaded replay.
#[derive(Default)]
pub struct Replayed {
    /// Oldest first.
    pub messages: Vec<Arc<Stored>>,
    /// Whether the replay is incomplete, so that the client has to read again.
    pub is_cut: bool,
}

/// Loads the private broadcasts on `topic` for a replay.
pub async fn load(db: &ExclusivePool, topic: &str, replay: Replay) -> Result<Replayed, DbError> {
    let (sql, params) = match replay {
        Replay::Since { since, limit } => (
            "select * from realtime.stored_messages($1, $2::int8, $3::int8)",
            vec![text(topic), text(&since.to_string()), text(&limit.to_string())],
        ),
        Replay::After(id) => (
            "select * from realtime.stored_after($1, $2::uuid, $3::int8, $4::int8)",
            vec![text(topic), text(&id.to_string()), text(&MOST.0.to_string()), text(&MOST.1.to_string())],
        ),
    };
    let answer = db.run_each("", &[vec![Step { text: sql.into(), params, role: "".into() }]]).await?.pop();
    let rows = match answer {
        Some(Ok(mut rows)) => rows.pop().unwrap_or_default(),
        Some(Err(refusal)) => return Err(DbError::Refused(refusal)),
        None => Vec::new(),
    };
    let mut found = Replayed::default();
    let Replay::After(after) = replay else {
        for row in &rows {
            found.messages.extend(read(row)?.map(Arc::new));
        }
        return Ok(found);
    };
    // The named message is among them, unless it has been dropped.
    found.is_cut = true;
    for row in &rows {
        if row.slice(4) != Some(&[1]) {
            found.is_cut = true;
            break;
        }
        match read(row)? {
            Some(message) if message.id == after => found.is_cut = false,
            Some(message) => found.messages.push(Arc::new(message)),
            None => {}
        }
    }
    Ok(found)
}

fn read(row: &Row) -> Result<Option<Stored>, DbError> {
    let (Some(id), Some(event)) = (row.text(0)?, row.text(1)?) else { return Ok(None) };
    let Ok(id) = id.parse() else { return Ok(None) };
    let payload = match (row.text(2)?, row.text(3)?) {
        (_, Some(binary)) => {
            // `encode(…, 'base64')` breaks lines.
            let binary: String = binary.split_whitespace().collect();
            UserPayload::Binary(STANDARD.decode(binary).unwrap_or_default().into())
        }
        (Some(json), None) => UserPayload::Json(json.into()),
        (None, None) => return Ok(None),
    };
    Ok(Some(Stored { id, event, payload }))
}

/// Messages that arrive during joins with a replay: after the replay was read, and before the channel exists.
#[derive(Default)]
pub struct Arrivals {
    come: Mutex<Arrived>,
}

#[derive(Default)]
struct Arrived {
    joins: usize,
    messages: VecDeque<(World, Arc<Stored>)>,
    bytes: usize,
    /// The number of messages before the first of those.
    before: usize,
    /// The number of messages before the newest join.
    newest: usize,
}

impl Arrived {
    /// Whether the message was noted since the newest join began. Noted earlier, it may not have been visible yet to what that join read.
    fn is_known_to_all(&self, world: &World, id: Uuid) -> bool {
        let mut since = self.messages.iter().skip(self.newest.saturating_sub(self.before)).rev();
        since.any(|(other, message)| message.id == id && other == world)
    }
}

/// A join with a replay, until it is dropped.
pub struct Joining {
    arrivals: Arc<Arrivals>,
    begin: usize,
}

impl Arrivals {
    pub fn begin(self: &Arc<Self>) -> Joining {
        let mut come = self.come.lock();
        come.joins += 1;
        come.newest = come.before + come.messages.len();
        Joining { arrivals: Arc::clone(self), begin: come.newest }
    }

    /// Notes a new message of a private channel; those of public ones are not replayed. Call before sending it to members.
    pub fn note(&self, world: &World, message: &Arc<Stored>) {
        let mut come = self.come.lock();
        // An instance may learn of a message from its sender, from another instance and from the log.
        if come.joins == 0 || !world.private || come.is_known_to_all(world, message.id) {
            return;
        }
        come.bytes += message.payload.len();
        come.messages.push_back((world.clone(), Arc::clone(message)));
        while come.messages.len() > MOST.0 || come.bytes > MOST.1 {
            let Some((_, oldest)) = come.messages.pop_front() else { break };
            come.bytes -= oldest.payload.len();
            come.before += 1;
        }
    }
}

impl Joining {
    /// The messages to the room since the join began; `None` if there were too many to keep.
    pub fn come(&self, world: &World) -> Option<Vec<Arc<Stored>>> {
        let come = self.arrivals.come.lock();
        let first = self.begin.checked_sub(come.before)?;
        let later = come.messages.iter().skip(first).filter(|(other, _)| other == world);
        Some(later.map(|(_, message)| Arc::clone(message)).collect())
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        let mut come = self.arrivals.come.lock();
        come.joins -= 1;
        if come.joins == 0 {
            come.before += come.messages.len();
            come.messages = VecDeque::new();
            come.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(size: usize) -> Arc<Stored> {
        let payload = UserPayload::Json("x".repeat(size).into());
        Arc::new(Stored { id: Uuid::new_v4(), event: "e".to_owned(), payload })
    }

    #[test]
    fn a_join_receives_messages_sent_since_it_began() {
        let arrivals = Arc::new(Arrivals::default());
        let (room, other) = (World::new("a", true), World::new("a", false));
        let count = |joining: &Joining| joining.come(&room).map(|messages| messages.len());
        arrivals.note(&room, &stored(1));
        let first = arrivals.begin();
        arrivals.note(&room, &stored(1));
        arrivals.note(&other, &stored(1));
        let second = arrivals.begin();
        arrivals.note(&room, &stored(1));
        assert_eq!((count(&first), count(&second)), (Some(2), Some(1)));
        drop(first);
        assert_eq!(count(&second), Some(1));
        drop(second);
        assert!(arrivals.come.lock().messages.is_empty());
        let third = arrivals.begin();
        assert_eq!(count(&third), Some(0));
        // Too many or too large: the client must not take a part for all.
        for size in [1, MOST.1 / 4] {
            let joining = arrivals.begin();
            for _ in 0..=MOST.0 {
                arrivals.note(&room, &stored(size));
            }
            assert_eq!((count(&joining), count(&third)), (None, None), "{size}");
            assert!(arrivals.come.lock().bytes <= MOST.1);
        }
    }

    #[test]
    fn a_message_learned_of_twice_is_noted_once_per_join() {
        let arrivals = Arc::new(Arrivals::default());
        let (room, other) = (World::new("a", true), World::new("b", true));
        let first = arrivals.begin();
        let messages: Vec<_> = (0..MOST.0).map(|_| stored(1)).collect();
        for message in &messages {
            arrivals.note(&room, message);
            arrivals.note(&room, message);
        }
        assert_eq!(first.come(&room).map(|messages| messages.len()), Some(MOST.0));
        drop(first);

        let first = arrivals.begin();
        let message = stored(1);
        arrivals.note(&room, &message);
        // What this join reads may be older than the first notice.
        let second = arrivals.begin();
        arrivals.note(&room, &message);
        arrivals.note(&room, &message);
        arrivals.note(&other, &message);
        for joining in [&first, &second] {
            let ids = |world| joining.come(world).map(|come| come.iter().map(|message| message.id).collect::<Vec<_>>());
            assert!(ids(&room).is_some_and(|ids| !ids.is_empty() && ids.iter().all(|id| *id == message.id)));
            assert_eq!(ids(&other), Some(vec![message.id]));
        }
        assert_eq!(arrivals.come.lock().messages.len(), 3);
    }
}
