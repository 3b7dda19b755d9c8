//! The members of each channel, and delivery of messages to them.
//!
//! A room is a topic in one of two worlds: public and private channels of the same name are separate. Messages are
//! encoded once per serializer and queued under the room's lock, so that every member sees them in the same order.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;

use super::inspect::Inspector;
use super::metrics::{Kind, Metrics};
use super::outbox::Outbox;
use super::presence::{Diff, Presence, Presences};
use super::protocol::{self, Broadcast, Ref, TOPIC_PREFIX, Version};
use super::session::Commands;
use super::token::Identity;

const SHARDS: usize = 64;

/// A sub-topic and whether its channels are private.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub topic: Arc<str>,
    pub private: bool,
}

impl World {
    pub fn new(topic: &str, private: bool) -> Self {
        Self { topic: topic.into(), private }
    }

    /// The topic as clients name it.
    pub fn full_topic(&self) -> String {
        format!("{TOPIC_PREFIX}{}", self.topic)
    }
}

/// What may be sent to a member.
const BROADCASTS: u8 = 1;
const PRESENCE: u8 = 2;

/// A joined channel of a socket.
pub struct Member {
    pub id: u64,
    pub world: World,
    /// As the client named it.
    pub topic: Box<str>,
    pub join_ref: Ref,
    pub version: Version,
    pub outbox: Arc<Outbox>,
    /// Commands to the socket's task, which can end the channel.
    pub commands: Arc<Commands>,
    pub identity: ArcSwap<Identity>,
    allowed: AtomicU8,
    gone: AtomicBool,
    /// When it was last warned of dropped messages, in seconds since 1970.
    warned: AtomicI64,
    /// Ids of replayed messages, whose live copies are not sent again.
    pub replayed: Mutex<HashSet<uuid::Uuid>>,
    inspector: Arc<Inspector>,
}

impl Member {
    #[allow(clippy::too_many_arguments, reason = "a record, made in one place")]
    pub fn new(
        id: u64,
        world: World,
        topic: &str,
        join_ref: Ref,
        version: Version,
        outbox: Arc<Outbox>,
        commands: Arc<Commands>,
        identity: Arc<Identity>,
        inspector: Arc<Inspector>,
    ) -> Self {
        Self {
            id,
            world,
            topic: topic.into(),
            join_ref,
            version,
            outbox,
            commands,
            identity: ArcSwap::new(identity),
            allowed: AtomicU8::new(0),
            gone: AtomicBool::new(false),
            warned: AtomicI64::new(0),
            replayed: Mutex::default(),
            inspector,
        }
    }

    /// Sets what may be sent to it.
    pub fn allow(&self, broadcasts: bool, presence: bool) {
        let bits = if broadcasts { BROADCASTS } else { 0 } | if presence { PRESENCE } else { 0 };
        self.allowed.store(bits, Ordering::Release);
    }

    /// Whether it has not left.
    pub fn is_in(&self) -> bool {
        !self.gone.load(Ordering::Acquire)
    }

    /// Whether to warn it of dropped messages now.
    pub fn warn(&self) -> bool {
        const PAUSE: i64 = 10;
        let now = super::token::now();
        let last = self.warned.load(Ordering::Relaxed);
        now - last >= PAUSE && self.warned.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn may(&self, what: u8) -> bool {
        self.allowed.load(Ordering::Acquire) & what != 0
    }

    /// Sends a message to this channel only.
    pub fn push(&self, event: &str, payload: impl Display) {
        let none = Ref::default();
        self.send(protocol::message(self.version, &self.join_ref, &none, &self.topic, event, payload));
    }

    /// Queues a frame for this channel only.
    pub fn send(&self, frame: Bytes) {
        self.inspector.note_out(&self.world.topic, Some(self.world.private), &frame, 1);
        self.outbox.push(frame);
    }

    /// A `system` message.
    pub fn system(&self, extension: &str, status: &str, message: &str) {
        let channel: &str = &self.world.topic;
        self.push(
            "system",
            serde_json::json!({
                "message": message, "status": status, "extension": extension, "channel": channel,
            }),
        );
    }
}

#[derive(Default)]
struct Room {
    members: Vec<Arc<Member>>,
    presences: Presences,
}

/// All rooms of this instance.
pub struct Hub {
    shards: [Mutex<HashMap<World, Arc<Mutex<Room>>>>; SHARDS],
    hasher: foldhash::fast::FixedState,
    next: AtomicU64,
    /// Bytes of the presences of all rooms, also of those of other instances.
    presence_size: AtomicUsize,
    metrics: Arc<Metrics>,
    inspector: Arc<Inspector>,
}

impl Hub {
    pub fn new(metrics: Arc<Metrics>, inspector: Arc<Inspector>) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: foldhash::fast::FixedState::default(),
            next: AtomicU64::new(1),
            presence_size: AtomicUsize::new(0),
            metrics,
            inspector,
        }
    }

    /// An id for a member.
    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn shard(&self, world: &World) -> &Mutex<HashMap<World, Arc<Mutex<Room>>>> {
        &self.shards[self.hasher.hash_one(world) as usize % SHARDS]
    }

    fn find(&self, world: &World) -> Option<Arc<Mutex<Room>>> {
        self.shard(world).lock().get(world).cloned()
    }

    /// Runs `work` in the room, which is created if missing and removed if empty afterwards.
    fn within<T>(&self, world: &World, work: impl FnOnce(&mut Room) -> T) -> T {
        let mut shard = self.shard(world).lock();
        let room = Arc::clone(shard.entry(world.clone()).or_default());
        let mut locked = room.lock();
        let before = locked.presences.size();
        let answer = work(&mut locked);
        self.presence_size.fetch_add(locked.presences.size(), Ordering::Relaxed);
        self.presence_size.fetch_sub(before, Ordering::Relaxed);
        if locked.members.is_empty() && locked.presences.is_empty() {
            shard.remove(world);
        }
        answer
    }

    /// Adds a member after `first`, which answers its join. With `sees_presence` it then gets the presence state,
    /// with nothing in between.
    pub fn enter(&self, member: &Arc<Member>, sees_presence: bool, first: impl FnOnce()) {
        self.within(&member.world, |room| {
            first();
            if sees_presence {
                member.push("presence_state", room.presences.state());
            }
            room.members.push(Arc::clone(member));
        });
        self.metrics.channels.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a member and its presence; returns the presence diff.
    pub fn leave(&self, member: &Arc<Member>, instance: u64) -> Option<Diff> {
        self.metrics.channels.fetch_sub(1, Ordering::Relaxed);
        member.gone.store(true, Ordering::Release);
        self.within(&member.world, |room| {
            room.members.retain(|other| other.id != member.id);
            let diff = room.presences.untrack(instance, member.id)?;
            self.spread_diff(room, &diff);
            Some(diff)
        })
    }

    /// About the bytes of the presences of all rooms.
    pub fn presence_size(&self) -> usize {
        self.presence_size.load(Ordering::Relaxed)
    }

    /// Changes presences and notifies every member that may see them.
    pub fn change_presence(&self, world: &World, work: impl FnOnce(&mut Presences) -> Option<Diff>) -> Option<Diff> {
        self.within(world, |room| {
            let diff = work(&mut room.presences)?;
            self.spread_diff(room, &diff);
            Some(diff)
        })
    }

    fn spread_diff(&self, room: &Room, diff: &Diff) {
        let mut frames: [Option<Bytes>; 2] = [None, None];
        let mut payload = None;
        let mut counts = [0; 2];
        for member in room.members.iter().filter(|member| member.may(PRESENCE)) {
            let frame = frames[member.version as usize].get_or_insert_with(|| {
                let payload = payload.get_or_insert_with(|| diff.as_json());
                let none = Ref::default();
                protocol::message(member.version, &none, &none, &member.topic, "presence_diff", payload)
            });
            member.outbox.push(frame.clone());
            counts[member.version as usize] += 1;
        }
        let Some(world) = room.members.first().map(|member| &member.world) else { return };
        self.metrics.sent(Kind::Presence, world.private, counts.iter().sum());
        for (frame, count) in frames.iter().zip(counts) {
            if let Some(frame) = frame {
                self.inspector.note_out(&world.topic, Some(world.private), frame, count);
            }
        }
    }

    /// All rooms.
    pub fn worlds(&self) -> Vec<World> {
        self.shards.iter().flat_map(|shard| shard.lock().keys().cloned().collect::<Vec<_>>()).collect()
    }

    /// Every member of every room.
    pub fn members(&self) -> Vec<Arc<Member>> {
        let rooms: Vec<_> =
            self.shards.iter().flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>()).collect();
        rooms.iter().flat_map(|room| room.lock().members.clone()).collect()
    }

    /// All rooms, with their numbers of members and presences.
    pub fn rooms(&self) -> Vec<(World, usize, usize)> {
        let shards = self.shards.iter().map(|shard| shard.lock().clone());
        let rooms: Vec<_> = shards.flatten().collect();
        let sizes = rooms.into_iter().map(|(world, room)| {
            let room = room.lock();
            (world, room.members.len(), room.presences.len())
        });
        sizes.collect()
    }

    /// The first members of a room, at most `most`.
    pub fn members_of(&self, world: &World, most: usize) -> Vec<Arc<Member>> {
        let room = self.find(world);
        room.map_or_else(Vec::new, |room| room.lock().members.iter().take(most).cloned().collect())
    }

    /// The presences of an instance, room by room.
    pub fn presences_of(&self, instance: u64) -> Vec<(World, Vec<Presence>)> {
        let mut found = Vec::new();
        for world in self.worlds() {
            let Some(room) = self.find(&world) else { continue };
            let presences = room.lock().presences.owned_by(instance);
            if !presences.is_empty() {
                found.push((world, presences));
            }
        }
        found
    }

    /// Sends a broadcast to the members of a room except its sender. `id` is that of a stored message, which is not
    /// sent again to members that got it by replay. Returns the number of receivers.
    pub fn broadcast(&self, world: &World, message: &Broadcast, except: Option<u64>, id: Option<uuid::Uuid>) -> usize {
        let Some(room) = self.find(world) else { return 0 };
        let room = room.lock();
        let topic = world.full_topic();
        let mut frames: [Option<Option<Bytes>>; 2] = [None, None];
        let mut counts = [0; 2];
        for member in &room.members {
            if Some(member.id) == except || !member.may(BROADCASTS) {
                continue;
            }
            // It comes once.
            if id.is_some_and(|id| member.replayed.lock().remove(&id)) {
                continue;
            }
            let frame = frames[member.version as usize]
                .get_or_insert_with(|| protocol::broadcast(member.version, &topic, message));
            if let Some(frame) = frame {
                member.outbox.push(frame.clone());
                counts[member.version as usize] += 1;
            }
        }
        for (frame, count) in frames.iter().zip(counts) {
            if let Some(Some(frame)) = frame {
                self.inspector.note_out(&world.topic, Some(world.private), frame, count);
            }
        }
        let count = counts.iter().sum();
        self.metrics.sent(Kind::Broadcast, world.private, count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_presences_are_counted() {
        let hub = Hub::new(Arc::default(), Arc::default());
        let (one, other) = (World::new("one", false), World::new("other", true));
        let track = |world: &World, channel: u64, payload: &str| {
            let tracked = serde_json::from_str(payload).expect("an object");
            hub.change_presence(world, |presences| presences.track(1, channel, "key", "r", tracked));
            hub.presence_size()
        };
        assert_eq!(track(&one, 1, r#"{"a":1}"#), 10);
        assert_eq!(track(&other, 2, r#"{"a":123}"#), 22);
        assert_eq!(track(&one, 1, "{}"), 17);
        hub.change_presence(&one, |presences| presences.untrack(1, 1));
        assert_eq!(hub.presence_size(), 12);
        hub.change_presence(&other, |presences| presences.replace(1, Vec::new()));
        assert_eq!(hub.presence_size(), 0);
    }
}
