//! One socket: its frames, its channels, its end.
//!
//! A socket's task reads frames and handles them one after another. Work that needs the database (a join, a new token,
//! the first message to a private channel) runs concurrently, so that heartbeats are still answered. Other frames wait
//! in a short queue, and beyond that in the connection.

mod broadcast;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzed;
mod joins;
mod presence;
mod tokens;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use actix_http::ws::{CloseCode, OpCode};
use actix_web::web::Payload as Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncWriteExt as _, WriteHalf};
use tokio::sync::Notify;

use super::Inner;
use super::frame::frame;
use super::hub::Member;
use super::limits::{Place, Rate, Share, Shared};
use super::outbox::{Outbox, Outgoing};
use super::protocol::{self, Incoming, Ref, TOPIC_PREFIX, Version};
use super::token;
use crate::http::connection::LINGER;
use crate::http::takeover::{Taken, Wire};
use frames::{Read, Reader, Whole};

/// The most frames and bytes that may wait for the database.
const BACKLOG: (usize, usize) = (64, 1 << 20);
/// A socket without channels is closed after this time.
const WITHOUT_CHANNELS: Duration = Duration::from_secs(600);

/// The timeout for sending queued frames, and what the client has sent, when a socket ends.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The event of broadcasts.
const BROADCAST: &str = "broadcast";

const TOO_FAST: &str = "Too many messages per second";

/// Commands to a socket's task.
#[derive(Default)]
pub struct Commands {
    waiting: Mutex<Vec<Command>>,
    wake: Notify,
}

/// Ends a channel.
pub struct Command {
    pub member: u64,
    /// The `system` message before it.
    pub message: String,
    pub extension: &'static str,
    /// Sends `phx_error`, upon which clients rejoin; else `phx_close`, upon which they do not.
    pub rejoin: bool,
}

impl Commands {
    pub fn give(&self, command: Command) {
        self.waiting.lock().push(command);
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.waiting.lock())
    }
}

/// What the policies of a private channel allow, as far as they were checked.
#[derive(Clone, Copy, Debug, Default)]
struct Rights {
    read_broadcast: bool,
    read_presence: Option<bool>,
    write_broadcast: Option<bool>,
    write_presence: Option<bool>,
    /// Whether broadcasts may be stored.
    persist: Option<bool>,
}

struct Channel {
    member: Arc<Member>,
    token: Box<str>,
    rights: Rights,
    ack: bool,
    echo: bool,
    presence_key: Box<str>,
    presence_enabled: bool,
    /// Bytes of its presence, of those of the address.
    presence_size: Share,
    changes: Arc<[Map<String, Value>]>,
    has_config: bool,
    /// Presence calls in the current window.
    presence_calls: (Option<Instant>, usize),
}

/// A socket's data from its handshake.
pub struct Handshake {
    pub version: Version,
    pub token: Box<str>,
    /// The request's headers as JSON, for policies.
    pub headers: Arc<str>,
    pub place: Option<Place>,
}

/// Work that needs the database, and the change of the session to apply when it is done.
type Work = LocalBoxFuture<'static, Box<dyn FnOnce(&mut Session)>>;

/// What was received and not answered yet.
#[derive(Default)]
struct Unanswered {
    work: Option<Work>,
    /// Whether that sends a broadcast.
    is_broadcast: bool,
    backlog: VecDeque<Incoming>,
}

/// Why a socket is no longer served.
#[derive(PartialEq)]
enum Ending {
    /// The client ended it.
    Client,
    Server,
}

pub struct Session {
    realtime: Arc<Inner>,
    version: Version,
    token: Box<str>,
    headers: Arc<str>,
    outbox: Arc<Outbox>,
    commands: Arc<Commands>,
    channels: HashMap<Box<str>, Channel>,
    /// Whether it counts as a user: once it has joined.
    is_user: bool,
    last_frame: Instant,
    alone_since: Instant,
    rate: Rate,
    joins: Rate,
    closing: bool,
    place: Option<Place>,
    /// With the other sockets of the address.
    shared: Arc<Shared>,
}

/// A registered socket; dropped when it ends.
pub struct Listed {
    realtime: Arc<Inner>,
    number: u64,
    outbox: Arc<Outbox>,
}

impl Listed {
    pub fn new(realtime: &Arc<Inner>) -> Self {
        let outbox = Outbox::new(realtime.config.max_queue(), realtime.config.max_queues());
        let number = realtime.next_socket.fetch_add(1, Ordering::Relaxed);
        realtime.sockets.lock().insert(number, Arc::downgrade(&outbox));
        Self { realtime: Arc::clone(realtime), number, outbox }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.realtime.sockets.lock().remove(&self.number);
    }
}

/// Runs a socket to its end. `body` has what the client sent before the handshake was answered.
pub async fn run(listed: Listed, handshake: Handshake, mut body: Body, taken: Taken) {
    let mut early = BytesMut::new();
    while let Some(Ok(bytes)) = body.next().await {
        early.extend_from_slice(&bytes);
    }
    early.extend_from_slice(&taken.early);
    drop((body, taken.early));
    let (realtime, outbox) = (Arc::clone(&listed.realtime), Arc::clone(&listed.outbox));
    let (read, wire) = tokio::io::split(taken.wire);
    let mut reader = Reader::new(read, early, Arc::clone(&realtime));
    let writing = write(wire, Outgoing(Arc::clone(&outbox)));
    tokio::pin!(writing);
    let mut is_written = false;
    let mut unanswered = Unanswered::default();
    realtime.metrics.sockets.fetch_add(1, Ordering::Relaxed);
    let now = Instant::now();
    let mut session = Session {
        version: handshake.version,
        token: handshake.token,
        headers: handshake.headers,
        outbox,
        commands: Arc::default(),
        channels: HashMap::new(),
        is_user: false,
        last_frame: now,
        alone_since: now,
        rate: Rate::new(realtime.config.max_events_per_socket, 10),
        joins: Rate::new(realtime.config.max_joins, 1),
        closing: false,
        shared: match &handshake.place {
            Some(place) if realtime.config.max_sockets_per_address > 0 => Arc::clone(place.shared()),
            // Behind a proxy that hides them, all clients may have one address.
            _ => Arc::new(Shared::new(0)),
        },
        place: handshake.place,
        realtime,
    };
    let ending = tokio::select! {
        ending = session.serve(&mut reader, &mut unanswered) => ending,
        ending = &mut writing => {
            is_written = true;
            ending
        }
    };
    if ending == Ending::Client {
        let finishing = tokio::time::timeout(LAST_WORDS, session.finish(&mut unanswered));
        if is_written {
            let _ = finishing.await;
        } else {
            // The client need not wait for the end of its socket.
            let _ = tokio::join!(finishing, tokio::time::timeout(LAST_WORDS, &mut writing));
            is_written = true;
        }
    }
    session.end();
    drop((session, unanswered, listed));
    if !is_written {
        let _ = tokio::time::timeout(LAST_WORDS, writing).await;
    }
    // Closing while the client still sends would reset the connection and lose the last frames.
    let _ = tokio::time::timeout(LINGER, reader.drain()).await;
}

/// Writes queued frames until the socket ends or the client stops reading.
async fn write(mut wire: WriteHalf<Box<dyn Wire>>, mut outgoing: Outgoing) -> Ending {
    while let Some(bytes) = outgoing.next().await {
        if wire.write_all(&bytes).await.is_err() {
            return Ending::Client;
        }
    }
    let _ = wire.shutdown().await;
    Ending::Server
}

impl Session {
    async fn serve(&mut self, reader: &mut Reader, unanswered: &mut Unanswered) -> Ending {
        let Unanswered { work, is_broadcast, backlog } = unanswered;
        let commands = Arc::clone(&self.commands);
        let outbox = Arc::clone(&self.outbox);
        while !self.closing {
            if work.is_none()
                && let Some(incoming) = backlog.pop_front()
            {
                reader.waiting -= incoming.size();
                *is_broadcast = incoming.event == BROADCAST;
                *work = self.handle(incoming);
                continue;
            }
            let deadline = self.next_deadline();
            tokio::select! {
                biased;
                () = outbox.gone.notified() => {
                    if !outbox.is_open() {
                        self.realtime.metrics.slow_readers.fetch_add(u64::from(reader.is_open), Ordering::Relaxed);
                        return Ending::Server;
                    }
                }
                () = commands.wake.notified() => {
                    for command in commands.take() {
                        self.obey(command);
                    }
                }
                done = async { match work { Some(work) => work.await, None => std::future::pending().await } } => {
                    *work = None;
                    done(self);
                }
                read = reader.next(), if backlog.len() < BACKLOG.0 && reader.waiting < BACKLOG.1 => match read {
                    Read::Message(message) => {
                        self.last_frame = Instant::now();
                        if let Some(incoming) = self.read(message) {
                            reader.waiting += incoming.size();
                            backlog.push_back(incoming);
                        }
                    }
                    Read::Ping(bytes) => {
                        self.last_frame = Instant::now();
                        if self.is_too_fast() {
                            self.close(CloseCode::Policy, TOO_FAST);
                        }
                        self.outbox.push(frame(OpCode::Pong, &bytes));
                    }
                    Read::Nothing => self.last_frame = Instant::now(),
                    Read::End(code, why) => {
                        self.outbox.close(code, why);
                        return Ending::Client;
                    }
                },
                () = tokio::time::sleep_until(deadline.into()) => self.look_at_the_clock(),
            }
        }
        Ending::Server
    }

    /// Sends the broadcasts of a client that has gone; what it sent before them is handled first. The rest is dropped.
    async fn finish(&mut self, unanswered: &mut Unanswered) {
        let Unanswered { work, is_broadcast, backlog } = unanswered;
        while !self.closing && (work.is_some() && *is_broadcast || backlog.iter().any(|next| next.event == BROADCAST)) {
            if let Some(running) = work {
                let done = running.await;
                *work = None;
                done(self);
            } else if let Some(incoming) = backlog.pop_front() {
                *is_broadcast = incoming.event == BROADCAST;
                *work = self.handle(incoming);
            }
        }
    }

    /// The next deadline: silence, expiry of a token, a socket without channels.
    fn next_deadline(&self) -> Instant {
        let idle = self.last_frame + self.realtime.config.idle;
        let now = token::now();
        let expiry = self.channels.values().map(|channel| channel.member.identity.load().expires - now).min();
        let expiry = expiry.map(|left| {
            // Distant times are checked again in between.
            Instant::now() + Duration::from_secs(u64::try_from(left).unwrap_or(0).min(300))
        });
        let alone = self.channels.is_empty().then(|| self.alone_since + WITHOUT_CHANNELS);
        [expiry, alone].into_iter().flatten().fold(idle, Instant::min)
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.last_frame) >= self.realtime.config.idle {
            self.close(CloseCode::Normal, "");
            return;
        }
        if self.channels.is_empty() && now.duration_since(self.alone_since) >= WITHOUT_CHANNELS {
            self.close(CloseCode::Normal, "");
            return;
        }
        let time = token::now();
        let expired: Vec<(u64, i64)> = self
            .channels
            .values()
            .map(|channel| (channel.member.id, channel.member.identity.load().expires))
            .filter(|(_, expires)| *expires <= time)
            .collect();
        for (member, expires) in expired {
            let message = token::TokenError::Expired(time - expires).to_string();
            self.obey(Command { member, message, extension: "system", rejoin: false });
        }
    }

    /// Parses a message; invalid ones are dropped. Heartbeats are answered at once.
    fn read(&mut self, message: Whole) -> Option<Incoming> {
        let metrics = &self.realtime.metrics;
        metrics.messages_in.fetch_add(1, Ordering::Relaxed);
        let parsed = match &message {
            Whole::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => protocol::parse_text(self.version, text),
                Err(_) => Err(protocol::Malformed::Utf8),
            },
            Whole::Binary(bytes) => protocol::parse_binary(self.version, bytes),
        };
        let is_too_fast = self.is_too_fast();
        match parsed {
            Ok(incoming) if incoming.topic == "phoenix" => {
                if is_too_fast {
                    self.close(CloseCode::Policy, TOO_FAST);
                } else if incoming.event == "heartbeat" {
                    self.reply(&incoming.join_ref, &incoming.reference, "phoenix", Ok(&json!({})));
                }
                None
            }
            Ok(incoming) => {
                let private = self.channels.get(incoming.topic.as_str()).map(|channel| channel.member.world.private);
                self.realtime.inspector.note_in(&incoming, private);
                self.realtime.events.add(1);
                if is_too_fast {
                    self.end_channel_at(&incoming.topic, TOO_FAST);
                    return None;
                }
                Some(incoming)
            }
            Err(error) => {
                metrics.malformed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, "a malformed frame of a realtime client was dropped");
                // There is no channel to end for it.
                if is_too_fast {
                    self.close(CloseCode::Policy, TOO_FAST);
                }
                None
            }
        }
    }

    /// Counts a frame.
    fn is_too_fast(&self) -> bool {
        self.rate.add(1);
        let is_too_fast = self.rate.is_exceeded_by(0);
        if is_too_fast {
            self.realtime.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
        }
        is_too_fast
    }

    fn handle(&mut self, incoming: Incoming) -> Option<Work> {
        let Some(sub_topic) = incoming.topic.strip_prefix(TOPIC_PREFIX) else {
            self.refuse_unmatched(&incoming);
            return None;
        };
        if incoming.event == "phx_join" {
            let sub_topic = sub_topic.to_owned();
            return self.join(incoming, &sub_topic);
        }
        if !self.channels.contains_key(incoming.topic.as_str()) {
            if incoming.event == "phx_leave" {
                self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
            } else {
                self.refuse_unmatched(&incoming);
            }
            return None;
        }
        if self.realtime.events.is_exceeded_by(0) {
            self.realtime.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
            self.end_channel_at(&incoming.topic, TOO_FAST);
            return None;
        }
        match incoming.event.as_str() {
            "phx_leave" => {
                self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
                // A former channel of the topic may be left after the new one was joined.
                let is_former = self
                    .channels
                    .get(incoming.topic.as_str())
                    .is_some_and(|channel| channel.member.join_ref.is_other_than(&incoming.join_ref));
                if !is_former {
                    self.leave(&incoming.topic, false);
                }
                None
            }
            BROADCAST => self.broadcast(incoming),
            "presence" => self.presence(incoming),
            "access_token" => self.refresh(&incoming),
            other => {
                tracing::debug!(event = other, "a realtime client sent an event that nobody knows");
                None
            }
        }
    }

    fn refuse_unmatched(&self, incoming: &Incoming) {
        let reason = json!({ "reason": "unmatched topic" });
        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
    }

    fn reply(&self, join_ref: &Ref, reference: &Ref, topic: &str, outcome: Result<&Value, &Value>) {
        self.tell(topic, protocol::reply(self.version, join_ref, reference, topic, outcome));
    }

    /// Queues a frame about a topic.
    fn tell(&self, topic: &str, frame: Bytes) {
        let private = self.channels.get(topic).map(|channel| channel.member.world.private);
        self.realtime.inspector.note_out(topic, private, &frame, 1);
        self.outbox.push(frame);
    }

    /// Ends a channel; `phx_error` makes clients join again.
    fn leave(&mut self, topic: &str, rejoin: bool) {
        let Some(channel) = self.channels.remove(topic) else { return };
        self.forget(&channel);
        let event = if rejoin { "phx_error" } else { "phx_close" };
        let join_ref = &channel.member.join_ref;
        channel.member.send(protocol::message(self.version, join_ref, join_ref, topic, event, "{}"));
        if self.channels.is_empty() {
            self.alone_since = Instant::now();
        }
    }

    fn forget(&self, channel: &Channel) {
        self.realtime.changes.remove(channel.member.id);
        let _announcing = self.realtime.bus.announcing();
        let diff = self.realtime.hub.leave(&channel.member, self.realtime.instance);
        if diff.is_some() {
            self.realtime.announce_absence(&channel.member);
        }
    }

    fn obey(&mut self, command: Command) {
        let found = self.channels.iter().find(|(_, channel)| channel.member.id == command.member);
        let Some((topic, channel)) = found else { return };
        channel.member.system(command.extension, "error", &command.message);
        let topic = topic.clone();
        self.leave(&topic, command.rejoin);
    }

    fn end_channel_at(&mut self, topic: &str, message: &str) {
        if let Some(channel) = self.channels.get(topic) {
            let member = channel.member.id;
            self.obey(Command { member, message: message.to_owned(), extension: "system", rejoin: false });
        }
    }

    fn close(&mut self, code: CloseCode, why: &str) {
        self.closing = true;
        self.outbox.close(code, why);
    }

    /// Cleans up.
    fn end(&mut self) {
        for (_, channel) in std::mem::take(&mut self.channels) {
            self.forget(&channel);
        }
        if self.is_user {
            self.realtime.users.fetch_sub(1, Ordering::AcqRel);
        }
        self.outbox.close(CloseCode::Normal, "");
        self.realtime.metrics.sockets.fetch_sub(1, Ordering::Relaxed);
    }
}
