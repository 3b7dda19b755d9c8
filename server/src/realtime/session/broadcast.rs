//! Broadcasts from the socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use uuid::Uuid;

use super::{Rights, Session, Work};
use crate::realtime::persistence::{self, InvalidTtl, Ttl};
use crate::realtime::policies::{Asked, Extension, PolicyError, writable};
use crate::realtime::protocol::{Broadcast, Incoming, Payload};

impl Session {
    pub(super) fn broadcast(&mut self, incoming: Incoming) -> Option<Work> {
        let channel = self.channels.get(incoming.topic.as_str())?;
        if channel.member.world.private {
            match Ttl::parse(incoming.persist.as_ref()) {
                Ok(None) => {}
                Ok(Some(ttl)) if self.realtime.config.persistence => return self.store_and_relay(incoming, ttl),
                // As upstream without its flag `broadcast_persistence`.
                Ok(Some(_)) => {}
                Err(InvalidTtl) => {
                    tracing::info!("persist ttl must be a positive integer of seconds from 1 to 259200");
                    if channel.ack {
                        let error = json!({ "error": "invalid_persist_ttl" });
                        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&error));
                    }
                    return None;
                }
            }
        }
        if !channel.member.world.private || channel.rights.write_broadcast == Some(true) {
            self.relay(incoming);
            return None;
        }
        if channel.rights.write_broadcast == Some(false) {
            self.refuse_broadcast(&incoming);
            return None;
        }
        Some(self.ask_to_write(incoming, Extension::Broadcast, |session, incoming, allowed| {
            if let Some(channel) = session.channels.get_mut(incoming.topic.as_str()) {
                // If the database did not answer, the check is repeated next time.
                channel.rights.write_broadcast = allowed.as_ref().ok().copied();
            }
            if allowed == Ok(true) { session.relay(incoming) } else { session.refuse_broadcast(&incoming) }
        }))
    }

    /// Stores a broadcast if the policies allow it, and sends it then. Whether it was stored changes only the answer, which then
    /// has its id. It waits for the turns of the client's address, as joins do.
    fn store_and_relay(&mut self, incoming: Incoming, ttl: Ttl) -> Option<Work> {
        let channel = self.channels.get(incoming.topic.as_str())?;
        let mut rights = channel.rights;
        if rights.write_broadcast == Some(false) {
            self.refuse_broadcast(&incoming);
            return None;
        }
        let (realtime, shared) = (Arc::clone(&self.realtime), Arc::clone(&self.shared));
        let (member, headers) = (Arc::clone(&channel.member), Arc::clone(&self.headers));
        let except = (!channel.echo).then_some(member.id);
        Some(Box::pin(async move {
            let turn = shared.turn(&realtime.checks).await;
            let identity = member.identity.load_full();
            let asked = Asked { identity: &identity, topic: &member.world.topic, headers: &headers };
            let mut id = None;
            if rights.write_broadcast.is_none() {
                // If the database did not answer, the check is repeated next time.
                rights.write_broadcast = writable(&realtime.db, asked, Extension::Broadcast).await.ok();
            }
            if rights.write_broadcast == Some(true)
                && let Payload::Broadcast(Broadcast::User { event, payload, .. }) = &incoming.payload
                && payload.len() <= realtime.config.max_payload()
            {
                if rights.persist.is_none() {
                    rights.persist = writable(&realtime.db, asked, Extension::Persistence).await.ok();
                }
                if rights.persist == Some(true) {
                    id = persistence::keep_and_send(&realtime, turn, &member.world, event, payload, ttl, except).await;
                }
            }
            let answered = move |session: &mut Session| session.stored(incoming, &rights, id);
            Box::new(answered) as Box<dyn FnOnce(&mut Session)>
        }))
    }

    fn stored(&mut self, incoming: Incoming, rights: &Rights, id: Option<Uuid>) {
        if let Some(channel) = self.channels.get_mut(incoming.topic.as_str()) {
            channel.rights.write_broadcast = rights.write_broadcast;
            channel.rights.persist = rights.persist;
        }
        match id {
            _ if rights.write_broadcast != Some(true) => self.refuse_broadcast(&incoming),
            None => self.relay(incoming),
            Some(id) => {
                if self.channels.get(incoming.topic.as_str()).is_some_and(|channel| channel.ack) {
                    self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({ "id": id })));
                }
            }
        }
    }

    /// Checks the policies, then continues with the message.
    pub(super) fn ask_to_write(
        &self,
        incoming: Incoming,
        extension: Extension,
        then: fn(&mut Session, Incoming, Result<bool, PolicyError>),
    ) -> Work {
        let (realtime, headers) = (Arc::clone(&self.realtime), Arc::clone(&self.headers));
        let member = self.channels.get(incoming.topic.as_str()).map(|channel| Arc::clone(&channel.member));
        Box::pin(async move {
            let allowed = match &member {
                Some(member) => {
                    let identity = member.identity.load_full();
                    let asked = Asked { identity: &identity, topic: &member.world.topic, headers: &headers };
                    writable(&realtime.db, asked, extension).await
                }
                None => Ok(false),
            };
            Box::new(move |session: &mut Session| then(session, incoming, allowed)) as Box<dyn FnOnce(&mut Session)>
        })
    }

    pub(super) fn relay(&mut self, incoming: Incoming) {
        let Some(channel) = self.channels.get(incoming.topic.as_str()) else { return };
        let message = match incoming.payload {
            Payload::Json(raw) => Broadcast::Text(raw.get().into()),
            Payload::Broadcast(broadcast) => broadcast,
        };
        if message.len() > self.realtime.config.max_payload() {
            self.realtime.metrics.too_large.fetch_add(1, Ordering::Relaxed);
            if channel.ack {
                let reason = json!({ "reason": "payload_size_exceeded", "error": "payload_size_exceeded" });
                self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
            }
            return;
        }
        let except = (!channel.echo).then_some(channel.member.id);
        self.realtime.broadcast(&channel.member.world, message, except);
        if channel.ack {
            self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
        }
    }

    /// Upstream sends nothing; here a client that asked for an answer gets one.
    pub(super) fn refuse_broadcast(&self, incoming: &Incoming) {
        self.realtime.metrics.unauthorized.fetch_add(1, Ordering::Relaxed);
        let Some(channel) = self.channels.get(incoming.topic.as_str()) else { return };
        if channel.ack {
            let topic = &channel.member.world.topic;
            let text = format!("Unauthorized: You do not have permissions to write to this Channel topic: {topic}");
            self.reply(
                &incoming.join_ref,
                &incoming.reference,
                &incoming.topic,
                Err(&json!({ "reason": text, "error": "unauthorized" })),
            );
        }
    }
}
