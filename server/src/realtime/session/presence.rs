//! Presence from the socket: track and untrack.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{Session, Work};
use crate::realtime::policies::{Asked, Extension, PolicyError, readable, writable};
use crate::realtime::protocol::{Incoming, Payload};

impl Session {
    pub(super) fn presence(&mut self, incoming: Incoming) -> Option<Work> {
        const WINDOW: Duration = Duration::from_secs(30);
        let most = self.realtime.config.max_client_presence;
        let Payload::Json(raw) = &incoming.payload else { return None };
        let payload: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let event = payload.get("event").and_then(Value::as_str).map(str::to_ascii_lowercase);
        let channel = self.channels.get_mut(incoming.topic.as_str())?;
        if event.is_some() {
            let now = Instant::now();
            let (since, calls) = &mut channel.presence_calls;
            if since.is_none_or(|since| now.duration_since(since) > WINDOW) {
                (*since, *calls) = (Some(now), 0);
            }
            *calls += 1;
            if most > 0 && *calls > most {
                self.realtime.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
                self.end_channel_at(&incoming.topic, "Client presence rate limit exceeded");
                return None;
            }
        }
        match event.as_deref() {
            Some("track") => {
                let is_private = channel.member.world.private;
                match channel.rights.write_presence {
                    _ if !is_private => self.track(&incoming, &payload),
                    Some(true) => self.track(&incoming, &payload),
                    Some(false) => self.reply_empty_error(&incoming),
                    None => return Some(self.ask_to_track(incoming, payload)),
                }
            }
            Some("untrack") => {
                let member = Arc::clone(&channel.member);
                let instance = self.realtime.instance;
                let gone = self
                    .realtime
                    .hub
                    .change_presence(&member.world, |presences| presences.untrack(instance, member.id));
                if gone.is_some() {
                    self.realtime.announce_absence(&member);
                }
                self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
            }
            Some(_) => self.reply_empty_error(&incoming),
            None => self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({}))),
        }
        None
    }

    /// The first track of a private channel: checks that it may write presence, and read it, which the join may not
    /// have checked.
    pub(super) fn ask_to_track(&self, incoming: Incoming, payload: Value) -> Work {
        let (realtime, headers) = (Arc::clone(&self.realtime), Arc::clone(&self.headers));
        let channel = self.channels.get(incoming.topic.as_str());
        let member = channel.map(|channel| Arc::clone(&channel.member));
        let known = channel.and_then(|channel| channel.rights.read_presence);
        Box::pin(async move {
            let rights = async {
                let Some(member) = &member else { return Ok((false, false)) };
                let identity = member.identity.load_full();
                let asked = Asked { identity: &identity, topic: &member.world.topic, headers: &headers };
                let read = match known {
                    Some(read) => read,
                    None => readable(&realtime.db, asked, &[Extension::Presence]).await?.first() == Some(&true),
                };
                Ok((read, writable(&realtime.db, asked, Extension::Presence).await?))
            };
            let rights: Result<(bool, bool), PolicyError> = rights.await;
            Box::new(move |session: &mut Session| {
                let Ok((read, write)) = rights else { return session.reply_empty_error(&incoming) };
                if let Some(channel) = session.channels.get_mut(incoming.topic.as_str()) {
                    channel.rights.read_presence = Some(read);
                    channel.rights.write_presence = Some(write);
                    channel.member.allow(channel.rights.read_broadcast, read);
                }
                if write { session.track(&incoming, &payload) } else { session.reply_empty_error(&incoming) }
            }) as Box<dyn FnOnce(&mut Session)>
        })
    }

    pub(super) fn reply_empty_error(&self, incoming: &Incoming) {
        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&json!({})));
    }

    pub(super) fn track(&mut self, incoming: &Incoming, payload: &Value) {
        let empty = Map::new();
        let entry = match payload.get("payload") {
            None => &empty,
            Some(Value::Object(entry)) => entry,
            Some(_) => {
                let reason = json!({ "reason": "Presence track payload must be a map" });
                self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
                return;
            }
        };
        let size = match &incoming.payload {
            Payload::Json(raw) => raw.get().len(),
            Payload::Broadcast(_) => 0,
        };
        if size > self.realtime.config.max_payload() {
            self.realtime.metrics.too_large.fetch_add(1, Ordering::Relaxed);
            self.end_channel_at(&incoming.topic, "Track message size exceeded");
            return;
        }
        if self.realtime.presence_events.is_exceeded_by(0) {
            self.realtime.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
            self.end_channel_at(&incoming.topic, "Too many presence messages per second");
            return;
        }
        let Some(channel) = self.channels.get_mut(incoming.topic.as_str()) else { return };
        let reference = self.realtime.presence_reference();
        let (instance, member) = (self.realtime.instance, &channel.member);
        // Everybody who joins gets the whole state, and an update contains both entries.
        let most = self.realtime.config.max_queue() / 2;
        let mut is_full = false;
        let diff = self.realtime.hub.change_presence(&member.world, |presences| {
            is_full = presences.size_with(instance, member.id, &channel.presence_key, entry) > most;
            if is_full {
                return None;
            }
            presences.track(instance, member.id, &channel.presence_key, &reference, entry.clone())
        });
        if is_full {
            self.realtime.metrics.too_large.fetch_add(1, Ordering::Relaxed);
            let reason = json!({ "reason": "Too many presences on this channel" });
            self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
            return;
        }
        channel.presence_enabled = true;
        if diff.is_some() {
            self.realtime.presence_events.add(1);
            self.realtime.announce_presence(member, &channel.presence_key, &reference, entry);
        }
        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
    }
}
