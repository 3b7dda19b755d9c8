//! New tokens of channels: the identity and rights from then on.

use std::sync::Arc;

use serde_json::Value;

use super::joins::{Prepared, Refused, prepare};
use super::{Command, Session, Work};
use crate::realtime::join::JoinRequest;
use crate::realtime::protocol::{Incoming, Payload};
use crate::realtime::token::{self, identify};

impl Session {
    pub(super) fn refresh(&mut self, incoming: &Incoming) -> Option<Work> {
        let Payload::Json(raw) = &incoming.payload else { return None };
        let payload: Value = serde_json::from_str(raw.get()).ok()?;
        let token: Box<str> = payload.get("access_token")?.as_str()?.into();
        let channel = self.channels.get(incoming.topic.as_str())?;
        if token.starts_with("sb_") || channel.token == token {
            return None;
        }
        let identity = match identify(&token, &self.realtime.keys, token::now()) {
            Ok(identity) => identity,
            Err(error) => {
                self.end_channel_at(&incoming.topic, &error.to_string());
                return None;
            }
        };
        let (realtime, headers) = (Arc::clone(&self.realtime), Arc::clone(&self.headers));
        let member = Arc::clone(&channel.member);
        let request = JoinRequest {
            has_config: channel.has_config,
            private: member.world.private,
            presence_enabled: channel.presence_enabled,
            changes: channel.changes.to_vec(),
            ..JoinRequest::default()
        };
        // Rows are checked with the new claims at once, messages with the old rights until the policies have answered.
        member.identity.store(Arc::clone(&identity));
        let topic = incoming.topic.clone();
        let (compared, shared) = (self.compared_besides(&topic), Arc::clone(&self.shared));
        Some(Box::pin(async move {
            let prepared = prepare(&realtime, &member.world, &request, &identity, &headers, compared, &shared).await;
            Box::new(move |session: &mut Session| session.refreshed(&topic, member.id, token, prepared))
                as Box<dyn FnOnce(&mut Session)>
        }))
    }

    pub(super) fn refreshed(&mut self, topic: &str, id: u64, token: Box<str>, prepared: Result<Prepared, Refused>) {
        let Some(channel) = self.channels.get_mut(topic).filter(|channel| channel.member.id == id) else { return };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refused) => {
                // If only the database's state caused the refusal, clients should rejoin.
                let rejoin = refused.is_passing();
                let member = channel.member.id;
                self.obey(Command { member, message: refused.text, extension: "system", rejoin });
                return;
            }
        };
        if prepared.took_too_long {
            // A busy database must not end a subscription without a word.
            let message = prepared.messages.into_iter().map(|(_, text)| text).collect();
            self.obey(Command { member: id, message, extension: "postgres_changes", rejoin: true });
            return;
        }
        let (old, new) = (channel.rights, prepared.rights);
        let is_lost = (old.read_broadcast && !new.read_broadcast)
            || (old.read_presence == Some(true) && new.read_presence == Some(false));
        if channel.member.world.private && is_lost {
            let sub_topic = &channel.member.world.topic;
            let text = format!("You no longer have permission to read from this Channel topic: {sub_topic}");
            self.end_channel_at(topic, &text);
            return;
        }
        channel.token = token;
        channel.rights = new;
        let private = channel.member.world.private;
        channel.member.allow(new.read_broadcast, new.read_presence.unwrap_or(!private));
        let member = Arc::clone(&channel.member);
        self.realtime.changes.replace(&member, prepared.subscriptions);
        for (ok, text) in &prepared.messages {
            member.system("postgres_changes", if *ok { "ok" } else { "error" }, text);
        }
    }
}
