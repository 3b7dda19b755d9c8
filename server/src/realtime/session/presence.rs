//! Presence from the socket: track and untrack.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Session, Work};
use crate::realtime::policies::{Asked, Extension, PolicyError, readable, writable};
use crate::realtime::presence::{Sizes, Tracked, size};
use crate::realtime::protocol::{Incoming, Payload};

/// A call, `{type, event, payload}`.
#[derive(Debug, Default, Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    payload: Option<&'a RawValue>,
}

/// A member that is there, even if it is null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

impl<'a> Call<'a> {
    /// Anything but an object has neither event nor payload.
    fn parse(raw: &'a RawValue) -> Self {
        let object = Some(raw.get()).filter(|text| text.starts_with('{'));
        object.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    fn event(&self) -> Option<String> {
        let event: String = serde_json::from_str(self.event?.get()).ok()?;
        Some(event.to_ascii_lowercase())
    }

    /// `None` if the payload is not an object. Without one, the empty object is tracked.
    fn tracked(&self) -> Option<Tracked> {
        match self.payload {
            None => Some(Tracked::default()),
            Some(raw) => serde_json::from_str(raw.get()).ok(),
        }
    }
}

impl Session {
    pub(super) fn presence(&mut self, incoming: Incoming) -> Option<Work> {
        const WINDOW: Duration = Duration::from_secs(30);
        let most = self.realtime.config.max_client_presence;
        let Payload::Json(raw) = &incoming.payload else { return None };
        let event = Call::parse(raw).event();
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
                    _ if !is_private => self.track(&incoming),
                    Some(true) => self.track(&incoming),
                    Some(false) => self.reply_empty_error(&incoming),
                    None => return Some(self.ask_to_track(incoming)),
                }
            }
            Some("untrack") => {
                channel.presence_size.set(0);
                let member = Arc::clone(&channel.member);
                let instance = self.realtime.instance;
                let announcing = self.realtime.bus.announcing();
                let gone = self
                    .realtime
                    .hub
                    .change_presence(&member.world, |presences| presences.untrack(instance, member.id));
                if gone.is_some() {
                    self.realtime.announce_absence(&member);
                }
                drop(announcing);
                self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
            }
            Some(_) => self.reply_empty_error(&incoming),
            None => self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({}))),
        }
        None
    }

    /// The first track of a private channel: checks that it may write presence, and read it, which the join may not
    /// have checked.
    pub(super) fn ask_to_track(&self, incoming: Incoming) -> Work {
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
                if write { session.track(&incoming) } else { session.reply_empty_error(&incoming) }
            }) as Box<dyn FnOnce(&mut Session)>
        })
    }

    pub(super) fn reply_empty_error(&self, incoming: &Incoming) {
        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&json!({})));
    }

    pub(super) fn track(&mut self, incoming: &Incoming) {
        let Payload::Json(raw) = &incoming.payload else { return };
        let Some(tracked) = Call::parse(raw).tracked() else {
            let reason = json!({ "reason": "Presence track payload must be a map" });
            self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
            return;
        };
        if raw.get().len() > self.realtime.config.max_payload() {
            self.realtime.metrics.too_large.fetch_add(1, Ordering::Relaxed);
            self.end_channel_at(&incoming.topic, "Track message size exceeded");
            return;
        }
        if self.realtime.presence_events.is_exceeded_by(0) {
            self.realtime.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
            self.end_channel_at(&incoming.topic, "Too many presence messages per second");
            return;
        }
        let of_socket = self.channels.values().map(|channel| channel.presence_size.size()).sum();
        let Some(channel) = self.channels.get_mut(incoming.topic.as_str()) else { return };
        let reference = self.realtime.presence_reference();
        let (instance, member) = (self.realtime.instance, &channel.member);
        let (hub, most) = (&self.realtime.hub, self.realtime.config.max_presences());
        let size = size(&channel.presence_key, &tracked);
        let address = channel.presence_size.total();
        let mut full = None;
        let announcing = self.realtime.bus.announcing();
        let diff = hub.change_presence(&member.world, |presences| {
            let current = Sizes { room: presences.size(), socket: of_socket, address, process: hub.presence_size() };
            full = most.refuse(current, presences.size_of(instance, member.id), size);
            if full.is_some() {
                return None;
            }
            presences.track(instance, member.id, &channel.presence_key, &reference, tracked.clone())
        });
        if let Some(reason) = full {
            self.realtime.metrics.too_large.fetch_add(1, Ordering::Relaxed);
            let reason = json!({ "reason": reason });
            self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Err(&reason));
            return;
        }
        if diff.is_some() {
            self.realtime.presence_events.add(1);
            self.realtime.announce_presence(member, &channel.presence_key, &reference, &tracked);
        }
        drop(announcing);
        channel.presence_enabled = true;
        channel.presence_size.set(size);
        self.reply(&incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&json!({})));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_leniently() {
        let call = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).expect("JSON");
            let call = Call::parse(&raw);
            (call.event(), call.tracked())
        };
        let tracked = |text: &str| serde_json::from_str::<Tracked>(text).ok();
        let empty = Some(Tracked::default());
        assert_eq!(
            call(r#"{"type":"presence","event":"Track","payload":{"a":1}}"#),
            (Some("track".to_owned()), tracked(r#"{"a":1}"#))
        );
        assert_eq!(call(r#"{"event":"track"}"#), (Some("track".to_owned()), empty.clone()));
        for not in ["null", "7", "[]", r#""x""#] {
            assert_eq!(call(&format!(r#"{{"event":7,"payload":{not}}}"#)), (None, None), "{not}");
            assert_eq!(call(not), (None, empty.clone()), "{not}");
        }
        assert_eq!(call(r#"["track",{"a":1}]"#), (None, empty));
    }
}
