//! Broadcasts from the socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::{Session, Work};
use crate::realtime::policies::{Asked, Extension, PolicyError, writable};
use crate::realtime::protocol::{Broadcast, Incoming, Payload};

impl Session {
    pub(super) fn broadcast(&mut self, incoming: Incoming) -> Option<Work> {
        let channel = self.channels.get(incoming.topic.as_str())?;
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
                let reason = json!({ "reason": "payload_size_exceeded" });
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
            self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&json!({ "reason": text })));
        }
    }
}
