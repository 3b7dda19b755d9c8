//! Joins: refusals, checks in the database, and the new channel.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_http::ws::CloseCode;
use serde_json::{Value, json};

use super::{Channel, Command, Rights, Session, Work};
use crate::realtime::Inner;
use crate::realtime::changes::{Comparison, NotSubscribed, Subscription};
use crate::realtime::hub::{Member, World};
use crate::realtime::join::{JoinRequest, entry_id, problems, replay_bounds};
use crate::realtime::limits::{Place, Share, Shared};
use crate::realtime::policies::{Asked, Extension, PolicyError, readable};
use crate::realtime::protocol::{self, Incoming, Payload};
use crate::realtime::replay::{Joining, Replayed, load};
use crate::realtime::token::{self, Identity, identify};

/// The most bytes of a channel's name and of its join, which are kept as long as the channel.
const LONGEST_TOPIC: usize = 1024;
const LONGEST_JOIN: usize = 64 << 10;
/// How long a join that waits for its subscription pauses before it tries again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

impl Session {
    pub(super) fn refuse_join(&mut self, incoming: &Incoming, code: &str, text: &str) {
        self.realtime.metrics.joins_refused.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(topic = incoming.topic, code, text, "a join was refused");
        // As upstream: a repeated join ends the previous channel in any case.
        self.leave(&incoming.topic, false);
        let reason = json!({ "reason": format!("{code}: {text}") });
        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
        // What the server or the database cannot do at the moment is no fault of the address.
        if !is_passing(code) {
            self.count_refusal();
        }
    }

    /// Instead of upstream's pause of five seconds, which would also affect honest mistakes.
    fn count_refusal(&mut self) {
        if self.place.as_ref().is_some_and(Place::refuse) {
            self.realtime.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
            self.close(CloseCode::Policy, "too many joins of this address were refused");
        }
    }

    pub(super) fn join(&mut self, incoming: Incoming, sub_topic: &str) -> Option<Work> {
        let realtime = Arc::clone(&self.realtime);
        let config = &realtime.config;
        if sub_topic.is_empty() {
            self.refuse_join(&incoming, "TopicNameRequired", "You must provide a topic name");
            return None;
        }
        if sub_topic.len() > LONGEST_TOPIC {
            let text = format!("A topic name may have {LONGEST_TOPIC} bytes");
            self.refuse_join(&incoming, "TopicNameTooLong", &text);
            return None;
        }
        if incoming.size() > LONGEST_JOIN {
            let text = format!("A join may have {LONGEST_JOIN} bytes");
            self.refuse_join(&incoming, "InvalidJoinPayload", &text);
            return None;
        }
        let payload: Value = match &incoming.payload {
            Payload::Json(raw) => serde_json::from_str(raw.get()).unwrap_or_default(),
            // In upstream, a join with bytes fails, too.
            Payload::Broadcast(_) => {
                self.refuse_join(&incoming, "UnknownErrorOnChannel", "Unknown Error on Channel");
                return None;
            }
        };
        let problems = problems(&payload);
        if !problems.is_empty() {
            tracing::info!(topic = incoming.topic, ?problems, "InvalidJoinPayload: joined with what did parse");
        }
        let request = JoinRequest::parse(&payload, sub_topic);
        drop(payload);
        if self.realtime.is_stopping() {
            self.refuse_join(&incoming, "RealtimeRestarting", "Realtime is restarting, please standby");
            return None;
        }
        if config.private_only && !request.private {
            self.refuse_join(&incoming, "PrivateOnly", "This project only allows private channels");
            return None;
        }
        if !self.is_user && config.max_users > 0 && self.realtime.users.load(Ordering::Acquire) >= config.max_users {
            self.refuse_join(&incoming, "ConnectionRateLimitReached", "Too many connected users");
            return None;
        }
        self.joins.add(1);
        self.realtime.joins.add(1);
        if self.joins.mean() > self.joins.limit() || self.realtime.joins.is_exceeded_by(0) {
            self.refuse_join(&incoming, "ClientJoinRateLimitReached", "Too many joins per second");
            self.close(CloseCode::Normal, "");
            return None;
        }
        let is_new = !self.channels.contains_key(incoming.topic.as_str());
        if is_new && config.max_channels > 0 && self.channels.len() >= config.max_channels {
            self.refuse_join(&incoming, "ChannelRateLimitReached", "Too many channels");
            return None;
        }
        let token = match request.access_token.as_deref() {
            // An opaque key is not a user's token, so the connection's token is used.
            None => &*self.token,
            Some(token) if token.starts_with("sb_") => &*self.token,
            Some(token) => token,
        };
        let identity = match identify(token, &self.realtime.keys, token::now()) {
            Ok(identity) => identity,
            Err(error) => {
                self.refuse_join(&incoming, error.code(), &error.to_string());
                return None;
            }
        };
        let token: Box<str> = token.into();
        let (realtime, headers) = (Arc::clone(&self.realtime), Arc::clone(&self.headers));
        let world = World::new(sub_topic, request.private);
        let (compared, shared) = (self.compared_besides(&incoming.topic), Arc::clone(&self.shared));
        Some(Box::pin(async move {
            let prepared = prepare(&realtime, &world, &request, &identity, &headers, compared, &shared).await;
            Box::new(move |session: &mut Session| session.joined(incoming, world, request, identity, token, prepared))
                as Box<dyn FnOnce(&mut Session)>
        }))
    }

    /// What the database has to compare for the socket's channels except this one, whose subscriptions are replaced.
    pub(super) fn compared_besides(&self, topic: &str) -> HashSet<Arc<Comparison>> {
        let others = self.channels.iter().filter(|(other, _)| ***other != *topic);
        self.realtime.changes.compared(others.map(|(_, channel)| channel.member.id))
    }

    pub(super) fn joined(
        &mut self,
        incoming: Incoming,
        world: World,
        request: JoinRequest,
        identity: Arc<Identity>,
        token: Box<str>,
        prepared: Result<Prepared, Refused>,
    ) {
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(Refused { code, text }) => {
                self.refuse_join(&incoming, code, &text);
                return;
            }
        };
        // A repeated join ends the previous channel.
        self.leave(&incoming.topic, false);
        if !self.is_user {
            self.is_user = true;
            self.realtime.users.fetch_add(1, Ordering::AcqRel);
        }
        let member = Arc::new(Member::new(
            self.realtime.hub.next_id(),
            world,
            &incoming.topic,
            incoming.join_ref.clone(),
            self.version,
            Arc::clone(&self.outbox),
            Arc::clone(&self.commands),
            Arc::clone(&identity),
            Arc::clone(&self.realtime.inspector),
        ));
        let rights = prepared.rights;
        let sees_presence = rights.read_presence.unwrap_or(!request.private);
        member.allow(rights.read_broadcast, sees_presence);
        let entries: Vec<Value> = request
            .changes
            .iter()
            .map(|entry| {
                let mut entry = entry.clone();
                let id = entry_id(&entry);
                entry.insert("id".to_owned(), Value::from(id));
                Value::Object(entry)
            })
            .collect();
        let reply = protocol::reply(
            self.version,
            &incoming.join_ref,
            &incoming.reference,
            &incoming.topic,
            Ok(&json!({ "postgres_changes": entries })),
        );
        let hub = &self.realtime.hub;
        let mut is_cut = prepared.replayed.is_cut;
        // From here on the channel gets everything, after the reply.
        let subscriptions = std::mem::take(&mut prepared.subscriptions);
        self.realtime.changes.register(&member, subscriptions, || {
            hub.enter(&member, sees_presence && request.presence_enabled, || {
                member.send(reply);
                is_cut |= !replay_to(&member, &prepared);
            });
        });
        if is_cut {
            member.system("system", "error", "Messages are missing from the replay: read them from the database");
        }
        for (ok, text) in &prepared.messages {
            member.system("postgres_changes", if *ok { "ok" } else { "error" }, text);
        }
        if prepared.took_too_long {
            self.count_refusal();
        }
        let follows = !request.changes.is_empty() || request.replay.is_some();
        if follows && prepared.generation != self.realtime.changes.generation() {
            // The stream ended between the check and the answer.
            self.commands.give(Command {
                member: member.id,
                message: "The connection to the database was lost".to_owned(),
                extension: "system",
                rejoin: true,
            });
        }
        if request.replication_ready {
            self.realtime.changes.tell_when_ready(&member);
        }
        self.realtime.changes.want();
        self.realtime.metrics.joins.fetch_add(1, Ordering::Relaxed);
        let key = request.presence_key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let channel = Channel {
            member,
            token,
            rights,
            ack: request.ack,
            echo: request.broadcast_self,
            presence_key: key.into(),
            presence_enabled: request.presence_enabled,
            presence_size: Share::none_of(&self.shared.presences),
            changes: request.changes.into(),
            has_config: request.has_config,
            presence_calls: (None, 0),
        };
        self.channels.insert(incoming.topic.into(), channel);
    }
}

/// Sends a channel its replay, and the messages since it was read. False if there were too many.
fn replay_to(member: &Member, prepared: &Prepared) -> bool {
    let Some(joining) = &prepared.joining else { return true };
    let come = joining.come(&member.world);
    let mut told = member.replayed.lock();
    for message in prepared.replayed.messages.iter().chain(come.iter().flatten()) {
        if !told.insert(message.id) {
            continue;
        }
        if let Some(frame) = protocol::broadcast(member.version, &member.topic, &message.as_replay()) {
            member.send(frame);
        }
    }
    come.is_some()
}

/// The results of a join's database checks.
pub(super) struct Prepared {
    pub(super) rights: Rights,
    pub(super) replayed: Replayed,
    /// With a replay: collects messages that arrive meanwhile.
    pub(super) joining: Option<Joining>,
    pub(super) subscriptions: Vec<Subscription>,
    /// The result for the subscriptions to changes: success and text.
    pub(super) messages: Vec<(bool, String)>,
    /// Whether the subscriptions were refused because checking them took too long.
    pub(super) took_too_long: bool,
    /// The stream's generation when the join began.
    pub(super) generation: u64,
}

/// Why a join is refused.
pub(super) struct Refused {
    pub(super) code: &'static str,
    pub(super) text: String,
}

impl Refused {
    fn starting() -> Self {
        let text = "Realtime is initializing the project connection".to_owned();
        Self { code: "InitializingProjectConnection", text }
    }

    /// The subscription of a join that waits for it is refused.
    fn not_subscribed(text: String) -> Self {
        Self { code: "RealtimeDisabledForConfiguration", text }
    }

    fn waited_too_long(wait: Duration) -> Self {
        let text = format!("Timed out after {}ms waiting for the postgres_changes subscription", wait.as_millis());
        Self { code: "PostgresChangesSubscribeTimeout", text }
    }

    fn is_starting(&self) -> bool {
        self.code == "InitializingProjectConnection"
    }

    /// Whether the refusal is temporary, because the database did not answer.
    pub(super) fn is_passing(&self) -> bool {
        is_passing(self.code)
    }
}

/// Whether this refusal says that the server or the database cannot answer at the moment.
fn is_passing(code: &str) -> bool {
    matches!(
        code,
        "InitializingProjectConnection"
            | "PostgresChangesSubscribeTimeout"
            | "RealtimeRestarting"
            | "QueryCanceled"
            | "MissingPartition"
            | "IncreaseConnectionPool"
            | "UnableToConnectToProject"
    )
}

/// Checks policies and subscriptions for a channel and loads its replay. `compared`: see [`Session::compared_besides`]. A join that waits for
/// its subscription tries until its time is over, and fails with it. An attempt that has begun may end later, as in upstream.
pub(super) async fn prepare(
    realtime: &Arc<Inner>,
    world: &World,
    request: &JoinRequest,
    identity: &Identity,
    headers: &str,
    compared: HashSet<Arc<Comparison>>,
    shared: &Shared,
) -> Result<Prepared, Refused> {
    let attempt = |compared| attempt(realtime, world, request, identity, headers, compared, shared);
    let Some(wait) = request.changes_wait.filter(|_| !request.changes.is_empty()) else {
        return attempt(compared).await;
    };
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        // The attempt itself does not wait for the stream then.
        let running = tokio::time::timeout_at(deadline, realtime.changes.running()).await;
        let prepared = match running {
            Ok(Err(NotSubscribed::Starting)) => Err(Refused::starting()),
            Ok(_) => attempt(compared.clone()).await,
            Err(_) => return Err(Refused::waited_too_long(wait)),
        };
        match prepared {
            Err(refused) if refused.is_starting() => {}
            prepared => return prepared,
        }
        let now = tokio::time::Instant::now();
        if now >= deadline {
            return Err(Refused::waited_too_long(wait));
        }
        tokio::time::sleep_until(deadline.min(now + RETRY_PAUSE)).await;
    }
}

/// One attempt to prepare a channel. What uses the database waits until the address and all clients have few enough checks in progress.
async fn attempt(
    realtime: &Arc<Inner>,
    world: &World,
    request: &JoinRequest,
    identity: &Identity,
    headers: &str,
    compared: HashSet<Arc<Comparison>>,
    shared: &Shared,
) -> Result<Prepared, Refused> {
    // A stream that is being opened keeps nobody else from a check.
    if (!request.changes.is_empty() || request.replay.is_some())
        && let Err(NotSubscribed::Starting) = realtime.changes.running().await
    {
        return Err(Refused::starting());
    }
    let _turn =
        if world.private || !request.changes.is_empty() { Some(shared.turn(&realtime.checks).await) } else { None };
    let generation = realtime.changes.generation();
    let mut rights = Rights { read_broadcast: !world.private, ..Rights::default() };
    let unreadable = || Refused {
        code: "Unauthorized",
        text: format!("You do not have permissions to read from this Channel topic: {}", world.topic),
    };
    if world.private {
        let asked = Asked { identity, topic: &world.topic, headers };
        let extensions: &[Extension] = if request.presence_enabled {
            &[Extension::Broadcast, Extension::Presence]
        } else {
            &[Extension::Broadcast]
        };
        let read = readable(&realtime.db, asked, extensions).await.map_err(|error| match error {
            PolicyError::Policy(reason) => {
                tracing::debug!(topic = &*world.topic, reason, "a policy on realtime.messages failed");
                unreadable()
            }
            other => Refused { code: other.code(), text: other.to_string() },
        })?;
        rights.read_broadcast = read.first() == Some(&true);
        rights.read_presence = read.get(1).copied();
        if !rights.read_broadcast && rights.read_presence != Some(true) {
            return Err(unreadable());
        }
    }
    let refused = |text: &str| Refused { code: "UnableToReplayMessages", text: text.to_owned() };
    let mut joining = None;
    let replayed = match &request.replay {
        None => Replayed::default(),
        Some(_) if !world.private => return Err(refused("Replay is not allowed for public channels")),
        Some(_) if !rights.read_broadcast => return Err(unreadable()),
        Some(replay) => {
            let replay = replay_bounds(replay).ok_or_else(|| refused("Replay params are not valid"))?;
            joining = Some(realtime.arrivals.begin());
            load(&realtime.db, &world.topic, replay).await.map_err(|error| {
                tracing::warn!(%error, "messages could not be replayed");
                refused("Realtime was unable to replay messages")
            })?
        }
    };
    let mut prepared = Prepared {
        rights,
        replayed,
        joining,
        subscriptions: Vec::new(),
        messages: Vec::new(),
        took_too_long: false,
        generation,
    };
    if !request.changes.is_empty() {
        match realtime.changes.prepare(identity, &request.changes, request.has_config, compared, &shared.keys).await {
            Ok(subscriptions) => {
                prepared.subscriptions = subscriptions;
                prepared.messages.push((true, "Subscribed to PostgreSQL".to_owned()));
            }
            Err(NotSubscribed::Starting) => {
                return Err(Refused::starting());
            }
            Err(NotSubscribed::Refused(text) | NotSubscribed::TooSlow(text)) if request.changes_wait.is_some() => {
                return Err(Refused::not_subscribed(text));
            }
            Err(NotSubscribed::Refused(text)) => prepared.messages.push((false, text)),
            Err(NotSubscribed::TooSlow(text)) => {
                prepared.messages.push((false, text));
                prepared.took_too_long = true;
            }
        }
    }
    Ok(prepared)
}
