//! Shares broadcasts and presence with the project's other instances, through the database's log or over NATS.
//!
//! Nothing is sent while no other instance is known. Each instance owns the presences of its sockets and sends all of
//! them to a new instance. An instance that was silent for [`LEASE`] is removed with its presences.

pub mod log;
mod message;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(not(feature = "nats"))]
#[path = "no_nats.rs"]
pub mod nats;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::changes::State;
use super::hub::World;
use super::presence::Presence;
use super::protocol::{Broadcast, UserPayload};
use super::replay::Stored;
use super::{Inner, token};
use message::{Assembler, Content, Room, Signer};
pub use nats::NatsConfig;

/// The most messages and bytes that may wait to be sent; further ones are lost.
const WAITING: (usize, usize) = (4096, 64 << 20);
/// The interval of heartbeats.
pub const TICK: Duration = Duration::from_secs(5);
/// An instance that was silent for this long is gone.
const LEASE: Duration = Duration::from_secs(20);
/// About how many presences go into one message.
const PRESENCES: usize = 500;
/// The timeout for the farewell when the server stops.
const LAST_WORD: Duration = Duration::from_secs(2);

/// The connection to other instances.
pub struct Bus {
    instance: u64,
    signer: Signer,
    nats: Option<NatsConfig>,
    out: mpsc::Sender<Bytes>,
    waiting: Mutex<Option<mpsc::Receiver<Bytes>>>,
    waiting_bytes: AtomicUsize,
    /// Notified when the queue is empty.
    sent: Notify,
    next_message: AtomicU64,
    assembler: Mutex<Assembler>,
    peers: Mutex<HashMap<u64, Peer>>,
    /// See [`Bus::announcing`].
    listing: RwLock<()>,
    has_peers: AtomicBool,
    /// Whether NATS is connected, if it is used.
    is_connected: AtomicBool,
    /// When a loss was logged last, seconds since 1970.
    warned: AtomicI64,
}

/// Another instance.
struct Peer {
    heard: Instant,
    /// Rooms whose presences it has sent, until it has sent all.
    told: HashSet<World>,
}

impl Bus {
    pub fn new(instance: u64, secret: &[u8], nats: Option<NatsConfig>) -> Self {
        let (out, waiting) = mpsc::channel(WAITING.0);
        Self {
            instance,
            signer: Signer::new(secret),
            nats,
            out,
            waiting: Mutex::new(Some(waiting)),
            waiting_bytes: AtomicUsize::new(0),
            sent: Notify::new(),
            next_message: AtomicU64::new(1),
            assembler: Mutex::default(),
            peers: Mutex::default(),
            listing: RwLock::default(),
            has_peers: AtomicBool::new(false),
            is_connected: AtomicBool::new(false),
            warned: AtomicI64::new(0),
        }
    }

    /// Whether messages go through the database's log.
    pub fn is_in_log(&self) -> bool {
        self.nats.is_none()
    }

    /// The name shared by the project's instances only.
    #[cfg(feature = "nats")]
    fn name(&self) -> String {
        self.signer.name()
    }

    fn message(&self, content: &Content) -> Bytes {
        serde_json::to_vec(content).unwrap_or_default().into()
    }

    /// A message for the transport, in parts of at most `longest` bytes.
    fn signed(&self, message: &[u8], longest: usize) -> Vec<Bytes> {
        let number = self.next_message.fetch_add(1, Ordering::Relaxed);
        self.signer.sign(self.instance, number, message, longest)
    }

    fn write(&self, inner: &Inner, content: &Content) {
        let message = self.message(content);
        let size = message.len();
        let before = self.waiting_bytes.fetch_add(size, Ordering::AcqRel);
        let is_full = before > 0 && before + size > WAITING.1;
        if is_full || size > message::LONGEST || self.out.try_send(message).is_err() {
            self.waiting_bytes.fetch_sub(size, Ordering::AcqRel);
            self.lose(inner, 1, &"they are taken too slowly");
        }
    }

    /// Removes these from the count of waiting messages.
    fn taken(&self, messages: &[Bytes]) {
        let size: usize = messages.iter().map(Bytes::len).sum();
        if self.waiting_bytes.fetch_sub(size, Ordering::AcqRel) == size {
            self.sent.notify_waiters();
        }
    }

    /// Counts messages that other instances will not get; logs it from time to time.
    fn lose(&self, inner: &Inner, count: usize, why: &dyn std::fmt::Display) {
        const PAUSE: i64 = 10;
        inner.metrics.lost_between_instances.fetch_add(count as u64, Ordering::Relaxed);
        let (now, last) = (token::now(), self.warned.load(Ordering::Relaxed));
        if now - last >= PAUSE && self.warned.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!(reason = %why, "messages for other instances of realtime are lost");
        }
    }

    /// Whether anybody may be listening: another instance is known, or none could have been heard yet.
    fn is_of_use(&self, inner: &Inner) -> bool {
        self.has_peers.load(Ordering::Acquire)
            || match self.nats {
                Some(_) => !self.is_connected.load(Ordering::Acquire),
                None => matches!(inner.changes.state(), State::Idle | State::Starting),
            }
    }

    /// This instance now receives messages: announces it to the others, which answer with their presences.
    pub fn up(&self, inner: &Inner) {
        self.write(inner, &Content::Hello);
        self.present(inner);
    }

    /// To be held while a presence is changed and announced: the list of all presences is not made meanwhile, so the others get both in
    /// the order in which they happened.
    pub fn announcing(&self) -> RwLockReadGuard<'_, ()> {
        self.listing.read()
    }

    /// Sends all presences of this instance.
    fn present(&self, inner: &Inner) {
        let _listing = self.listing.write();
        let (mut rooms, mut count): (Vec<Room>, usize) = (Vec::new(), 0);
        for (world, presences) in inner.hub.presences_of(self.instance) {
            count += presences.len();
            rooms.push(Room { topic: world.topic.to_string(), private: world.private, presences });
            if count >= PRESENCES {
                self.write(inner, &Content::Present { rooms: std::mem::take(&mut rooms), is_last: false });
                count = 0;
            }
        }
        self.write(inner, &Content::Present { rooms, is_last: true });
    }

    /// Announces that this instance leaves.
    pub fn leave(&self, inner: &Inner) {
        self.write(inner, &Content::Bye);
        self.peers.lock().clear();
        self.has_peers.store(false, Ordering::Release);
    }

    /// Messages are no longer received. The others send their presences again after the next [`Self::up`].
    pub fn lost(&self, inner: &Inner) {
        let gone: Vec<u64> = self.peers.lock().drain().map(|(peer, _)| peer).collect();
        self.has_peers.store(false, Ordering::Release);
        for peer in gone {
            self.forget(inner, peer);
        }
    }

    /// Every [`TICK`]: sends a heartbeat, and removes silent instances.
    pub fn tick(&self, inner: &Inner) {
        let mut gone = Vec::new();
        let has_peers = {
            let mut peers = self.peers.lock();
            peers.retain(|number, peer| {
                let lives = peer.heard.elapsed() < LEASE;
                if !lives {
                    gone.push(*number);
                }
                lives
            });
            self.has_peers.store(!peers.is_empty(), Ordering::Release);
            !peers.is_empty()
        };
        if has_peers && (self.nats.is_none() || self.is_connected.load(Ordering::Acquire)) {
            self.write(inner, &Content::Here);
        }
        for peer in gone {
            tracing::info!(instance = format!("{peer:x}"), "an instance of realtime is gone");
            self.forget(inner, peer);
        }
    }

    pub fn broadcast(&self, inner: &Inner, world: &World, message: &Broadcast, id: Option<Uuid>) {
        if !self.is_of_use(inner) {
            return;
        }
        let (event, json, bytes) = match message {
            Broadcast::Text(text) => (None, Some(text.to_string()), None),
            Broadcast::User { event, payload: UserPayload::Json(json), .. } => {
                (Some(event.to_string()), Some(json.to_string()), None)
            }
            Broadcast::User { event, payload: UserPayload::Binary(bytes), .. } => {
                (Some(event.to_string()), None, Some(STANDARD_NO_PAD.encode(bytes)))
            }
            Broadcast::Bytes(bytes) => (None, None, Some(STANDARD_NO_PAD.encode(bytes))),
        };
        let (topic, private) = (world.topic.to_string(), world.private);
        self.write(inner, &Content::Broadcast { topic, private, event, json, bytes, id });
    }

    pub fn track(&self, inner: &Inner, world: &World, presence: impl FnOnce() -> Presence) {
        if self.is_of_use(inner) {
            let (topic, private) = (world.topic.to_string(), world.private);
            self.write(inner, &Content::Track { topic, private, presence: presence() });
        }
    }

    pub fn untrack(&self, inner: &Inner, world: &World, channel: u64) {
        if self.is_of_use(inner) {
            self.write(inner, &Content::Untrack { topic: world.topic.to_string(), private: world.private, channel });
        }
    }

    /// Handles a received part.
    pub fn receive(&self, inner: &Inner, content: Bytes) {
        let Some(part) = self.signer.open(content) else {
            self.lose(inner, 1, &"a message is not signed by this project");
            return;
        };
        let from = part.from;
        if from == self.instance {
            return;
        }
        let Some(message) = self.assembler.lock().put(part) else { return };
        match serde_json::from_slice(&message) {
            Ok(content) => self.read(inner, from, content),
            // A message of another version.
            Err(error) => self.lose(inner, 1, &error),
        }
    }

    fn read(&self, inner: &Inner, from: u64, content: Content) {
        if content != Content::Bye {
            let mut peers = self.peers.lock();
            let new = || Peer { heard: Instant::now(), told: HashSet::new() };
            peers.entry(from).or_insert_with(new).heard = Instant::now();
            self.has_peers.store(true, Ordering::Release);
        }
        match content {
            Content::Hello => {
                if let Some(peer) = self.peers.lock().get_mut(&from) {
                    peer.told.clear();
                }
                self.write(inner, &Content::Here);
                self.present(inner);
            }
            Content::Here => {}
            Content::Bye => {
                let mut peers = self.peers.lock();
                peers.remove(&from);
                self.has_peers.store(!peers.is_empty(), Ordering::Release);
                drop(peers);
                self.forget(inner, from);
            }
            Content::Broadcast { topic, private, event, json, bytes, id } => {
                let world = World::new(&topic, private);
                match (message(event, json, bytes), id) {
                    (Some(Broadcast::User { event, payload, .. }), Some(id)) => {
                        let stored = Stored { id, event: event.into(), payload };
                        inner.deliver_stored(&world, &Arc::new(stored), None);
                    }
                    (Some(message), _) => {
                        let count = inner.hub.broadcast(&world, &message, None, None);
                        inner.events.add(count);
                    }
                    (None, _) => {}
                }
            }
            Content::Track { topic, private, presence } => {
                inner.hub.change_presence(&World::new(&topic, private), |presences| {
                    let Presence { channel, key, reference, payload } = presence;
                    presences.track(from, channel, &key, &reference, payload)
                });
            }
            Content::Untrack { topic, private, channel } => {
                let world = World::new(&topic, private);
                inner.hub.change_presence(&world, |presences| presences.untrack(from, channel));
            }
            Content::Present { rooms, is_last } => self.presences_of(inner, from, rooms, is_last),
        }
    }

    /// Replaces another instance's presences, room by room; those that it no longer names are removed.
    fn presences_of(&self, inner: &Inner, from: u64, rooms: Vec<Room>, is_last: bool) {
        let worlds: Vec<World> = rooms.iter().map(Room::world).collect();
        for (world, room) in worlds.iter().zip(rooms) {
            inner.hub.change_presence(world, |presences| presences.replace(from, room.presences));
        }
        let told = {
            let mut peers = self.peers.lock();
            let Some(peer) = peers.get_mut(&from) else { return };
            peer.told.extend(worlds);
            if !is_last {
                return;
            }
            std::mem::take(&mut peer.told)
        };
        for world in inner.hub.worlds().into_iter().filter(|world| !told.contains(world)) {
            inner.hub.change_presence(&world, |presences| presences.replace(from, Vec::new()));
        }
    }

    fn forget(&self, inner: &Inner, instance: u64) {
        self.assembler.lock().forget(instance);
        for world in inner.hub.worlds() {
            inner.hub.change_presence(&world, |presences| presences.replace(instance, Vec::new()));
        }
    }

    /// Sends queued messages until the server stops, and then the farewell.
    pub async fn run(inner: Arc<Inner>) {
        let bus = &inner.bus;
        let Some(mut waiting) = bus.waiting.lock().take() else { return };
        let mut stopping = inner.stopping.subscribe();
        let work = async {
            match &bus.nats {
                Some(config) => nats::run(&inner, config, &mut waiting).await,
                None => log::run(&inner, &mut waiting).await,
            }
        };
        tokio::pin!(work);
        tokio::select! {
            () = &mut work => return,
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        if bus.has_peers.load(Ordering::Acquire) {
            bus.leave(&inner);
            tokio::select! {
                () = work => {}
                () = bus.sent.notified() => {}
                () = tokio::time::sleep(LAST_WORD) => {}
            }
        }
    }
}

fn message(event: Option<String>, json: Option<String>, bytes: Option<String>) -> Option<Broadcast> {
    Some(match (event, json, bytes) {
        (None, Some(json), _) => Broadcast::Text(json.into()),
        (Some(event), Some(json), _) => {
            Broadcast::User { event: event.into(), payload: UserPayload::Json(json.into()), meta: None }
        }
        (Some(event), None, Some(bytes)) => {
            let payload = UserPayload::Binary(STANDARD_NO_PAD.decode(bytes).ok()?.into());
            Broadcast::User { event: event.into(), payload, meta: None }
        }
        (None, None, Some(bytes)) => Broadcast::Bytes(STANDARD_NO_PAD.decode(bytes).ok()?.into()),
        (_, None, None) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Reader, Source};
    use crate::jwt::KeySet;
    use crate::realtime::{Mode, Realtime, RealtimeConfig, Setting};

    /// An instance that is connected to nothing.
    fn instance() -> Arc<Inner> {
        let setting = Setting {
            request_url: "postgres://localhost",
            replication_url: "postgres://localhost",
            pulse: None,
            keys: Arc::new(KeySet::default()),
            secret: "a secret",
            search_path: String::new(),
        };
        let source = Source::from_pairs::<&str, &str>([]);
        let config = RealtimeConfig::read(&mut Reader::new(&source), Mode::Full);
        Realtime::new(config, Mode::Full, setting).expect("an instance").inner
    }

    #[test]
    fn a_stored_broadcast_of_another_instance_reaches_joins_in_progress() {
        let (one, two) = (instance(), instance());
        let (room, other) = (World::new("room", true), World::new("other", true));
        let joining = two.arrivals.begin();
        let mut waiting = one.bus.waiting.lock().take().expect("the queue");
        for payload in [UserPayload::Json("{}".into()), UserPayload::Binary(Bytes::from_static(&[0, 255]))] {
            let id = Uuid::new_v4();
            one.broadcast_stored(&room, Stored { id, event: "e".to_owned(), payload: payload.clone() }, None);
            let message = waiting.try_recv().expect("a message");
            for part in one.bus.signed(&message, usize::MAX) {
                two.bus.receive(&two, part);
            }
            let come = joining.come(&room).expect("all are kept");
            let last = come.last().expect("the message");
            assert_eq!((last.id, &*last.event, &last.payload), (id, "e", &payload));
        }
        assert_eq!(joining.come(&other).map(|come| come.len()), Some(0));
    }
}
