//! The payload of a join.
//!
//! Clients in many languages write it: booleans may be strings, entries may be null, and invalid values count as
//! absent. Reference: supabase/realtime `lib/realtime_web/channels/payloads`.

use std::time::Duration;

use serde_json::{Map, Value};
use uuid::Uuid;

/// How long a join waits for its subscription to changes if it asks for that without a time, and at most.
const CHANGES_WAIT: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(20));

/// The payload of `phx_join`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinRequest {
    /// Whether there is a `config`; without one the sub-topic itself names the subscription to changes.
    pub has_config: bool,
    pub private: bool,
    pub broadcast_self: bool,
    pub ack: bool,
    /// `{since, limit}`, whatever it holds.
    pub replay: Option<Value>,
    pub replication_ready: bool,
    pub presence_key: Option<String>,
    pub presence_enabled: bool,
    /// Each entry as sent.
    pub changes: Vec<Map<String, Value>>,
    /// Set if the join fails unless the subscription to changes exists within this time (`postgres_changes_options`).
    pub changes_wait: Option<Duration>,
    pub access_token: Option<String>,
}

impl JoinRequest {
    /// Reads the payload of a join to `sub_topic`.
    pub fn parse(payload: &Value, sub_topic: &str) -> Self {
        let config = payload.get("config").filter(|config| !config.is_null());
        let part = |name: &str| config.and_then(|config| config.get(name));
        let flag = |part: Option<&Value>, name: &str| part.and_then(|part| part.get(name)).is_some_and(is_true);
        let (broadcast, presence) = (part("broadcast"), part("presence"));
        let token = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
        let entries = part("postgres_changes").and_then(Value::as_array);
        Self {
            has_config: payload.get("config").is_some(),
            private: part("private").is_some_and(is_true),
            broadcast_self: flag(broadcast, "self"),
            ack: flag(broadcast, "ack"),
            replay: broadcast.and_then(|broadcast| broadcast.get("replay")).filter(|replay| !replay.is_null()).cloned(),
            replication_ready: flag(broadcast, "replication_ready"),
            presence_key: presence
                .and_then(|presence| presence.get("key"))
                .and_then(|key| match key {
                    Value::String(key) => Some(key.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(key.to_string()),
                    _ => None,
                })
                .filter(|key| !key.is_empty()),
            presence_enabled: flag(presence, "enabled"),
            changes: match entries {
                _ if payload.get("config").is_none() => vec![from_topic(sub_topic)],
                Some(entries) => entries.iter().filter_map(|entry| entry.as_object().cloned()).collect(),
                None => Vec::new(),
            },
            changes_wait: part("postgres_changes_options").and_then(changes_wait),
            access_token: token("user_token").or_else(|| token("access_token")),
        }
    }
}

/// Invalid parts of a payload, in upstream's words.
pub fn problems(payload: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |name: &str, value: Option<&Value>, expected: &str, fits: fn(&Value) -> bool| {
        if value.is_some_and(|value| !value.is_null() && !fits(value)) {
            problems.push(format!("{name}: unable to parse, expected {expected}"));
        }
    };
    let is_flag = |value: &Value| match value {
        Value::Bool(_) => true,
        Value::String(text) => ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)),
        _ => false,
    };
    let at = |path: &str| payload.pointer(path);
    check("payload", Some(payload), "a map", Value::is_object);
    check("access_token", at("/access_token"), "string", Value::is_string);
    check("user_token", at("/user_token"), "string", Value::is_string);
    check("config", at("/config"), "a map", Value::is_object);
    check("private", at("/config/private"), "boolean", is_flag);
    check("broadcast", at("/config/broadcast"), "a map", Value::is_object);
    check("broadcast.self", at("/config/broadcast/self"), "boolean", is_flag);
    check("broadcast.ack", at("/config/broadcast/ack"), "boolean", is_flag);
    check("presence", at("/config/presence"), "a map", Value::is_object);
    check("presence.enabled", at("/config/presence/enabled"), "boolean", is_flag);
    let is_key = |key: &Value| key.is_string() || key.is_number() || key.is_boolean();
    check("presence.key", at("/config/presence/key"), "a string", is_key);
    check("postgres_changes", at("/config/postgres_changes"), "a list", Value::is_array);
    for entry in at("/config/postgres_changes").and_then(Value::as_array).into_iter().flatten() {
        check("postgres_changes", Some(entry), "a map", Value::is_object);
    }
    check("postgres_changes_options", at("/config/postgres_changes_options"), "a map", Value::is_object);
    check("postgres_changes_options.wait", at("/config/postgres_changes_options/wait"), "boolean", is_flag);
    check("postgres_changes_options.timeout", at("/config/postgres_changes_options/timeout"), "integer", |timeout| {
        milliseconds(timeout).is_some()
    });
    problems
}

/// `schema[:table[:filter]]`.
fn from_topic(sub_topic: &str) -> Map<String, Value> {
    ["schema", "table", "filter"]
        .into_iter()
        .zip(sub_topic.splitn(3, ':'))
        .map(|(name, part)| (name.to_owned(), Value::from(part)))
        .collect()
}

/// The time that `{wait, timeout}` asks for, if it waits at all. The timeout is in milliseconds.
fn changes_wait(options: &Value) -> Option<Duration> {
    let (default, most) = CHANGES_WAIT;
    let timeout = options.get("timeout").and_then(milliseconds).unwrap_or(default);
    options.get("wait").is_some_and(is_true).then_some(timeout.min(most))
}

fn milliseconds(value: &Value) -> Option<Duration> {
    value.as_u64().filter(|milliseconds| *milliseconds > 0).map(Duration::from_millis)
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// Which messages are to be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The newest messages since a time (milliseconds since 1970), up to a number.
    Since { since: i64, limit: i64 },
    /// All that may have come after the client's last message.
    After(Uuid),
}

/// The bounds of a replay, or `None` if invalid.
pub fn replay_bounds(replay: &Value) -> Option<Replay> {
    if let Some(after) = replay.get("after").filter(|after| !after.is_null()) {
        return after.as_str()?.parse().ok().map(Replay::After);
    }
    let since = replay.get("since")?.as_i64()?;
    let limit = match replay.get("limit") {
        None | Some(Value::Null) => 25,
        Some(limit) => limit.as_i64()?,
    };
    (1..=25).contains(&limit).then_some(Replay::Since { since, limit })
}

/// The id under which a subscription's changes are announced: the same for equal entries, never 0, and small enough
/// for every client's integers.
pub fn entry_id(entry: &Map<String, Value>) -> u32 {
    let mut sorted = Value::Object(entry.clone());
    sorted.sort_all_objects();
    // FNV-1a: the same on every instance and after every start.
    let hash = sorted
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash & 0x07ff_ffff).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn flags_may_be_words_and_null_entries_are_dropped() {
        let payload = json!({
            "config": {
                "broadcast": { "self": "TRUE", "ack": false },
                "presence": { "key": "", "enabled": "true" },
                "postgres_changes": [null, { "event": "*", "schema": "public" }],
                "private": 1,
            },
            "access_token": "t",
        });
        let join = JoinRequest::parse(&payload, "x");
        assert!(join.broadcast_self && join.presence_enabled && !join.ack && !join.private);
        assert_eq!((join.presence_key, join.changes.len(), join.access_token.as_deref()), (None, 1, Some("t")));
    }

    #[test]
    fn parse_errors_name_the_field_without_its_value() {
        for (payload, expected) in [
            (json!({ "config": { "private": "True", "presence": { "key": 7, "enabled": null } } }), vec![]),
            (json!({ "config": null, "access_token": null }), vec![]),
            (json!("x"), vec!["payload: unable to parse, expected a map"]),
            (json!({ "access_token": 1 }), vec!["access_token: unable to parse, expected string"]),
            (json!({ "config": { "private": "yes" } }), vec!["private: unable to parse, expected boolean"]),
            (
                json!({ "config": { "broadcast": [], "presence": { "key": {} }, "postgres_changes": [null, 3] } }),
                vec![
                    "broadcast: unable to parse, expected a map",
                    "presence.key: unable to parse, expected a string",
                    "postgres_changes: unable to parse, expected a map",
                ],
            ),
        ] {
            assert_eq!(problems(&payload), expected, "{payload}");
        }
        let join = JoinRequest::parse(&json!({ "config": { "presence": { "key": 7 } } }), "x");
        assert_eq!(join.presence_key.as_deref(), Some("7"));
    }

    #[test]
    fn a_join_waits_for_its_subscription_only_if_asked_to() {
        for (options, expected) in [
            (json!({ "wait": true, "timeout": 10_000 }), Some(10_000)),
            (json!({ "wait": "true" }), Some(15_000)),
            (json!({ "wait": true, "timeout": 200_000 }), Some(20_000)),
            (json!({ "wait": true, "timeout": 0 }), Some(15_000)),
            (json!({ "wait": true, "timeout": "soon" }), Some(15_000)),
            (json!({ "wait": false, "timeout": 10 }), None),
            (json!({ "timeout": 10 }), None),
            (json!({}), None),
            (json!(3), None),
        ] {
            let join = JoinRequest::parse(&json!({ "config": { "postgres_changes_options": options } }), "x");
            assert_eq!(join.changes_wait, expected.map(Duration::from_millis), "{options}");
        }
        let odd = json!({ "config": { "postgres_changes_options": { "wait": 1, "timeout": "soon" } } });
        assert_eq!(
            problems(&odd),
            [
                "postgres_changes_options.wait: unable to parse, expected boolean",
                "postgres_changes_options.timeout: unable to parse, expected integer",
            ]
        );
    }

    #[test]
    fn any_join_payload_is_handled() {
        for payload in
            [json!(null), json!([]), json!("x"), json!({ "config": 1 }), json!({ "config": { "private": {} } })]
        {
            let join = JoinRequest::parse(&payload, "x");
            assert!(!join.private, "{payload}");
        }
    }

    #[test]
    fn the_oldest_clients_use_the_topic() {
        let join = JoinRequest::parse(&json!({ "user_token": "t" }), "public:todos:id=eq.1:2");
        assert!(!join.has_config);
        let entry: Value = join.changes[0].clone().into();
        assert_eq!(entry, json!({ "schema": "public", "table": "todos", "filter": "id=eq.1:2" }));
    }

    #[test]
    fn equal_entries_share_an_id_that_is_never_zero() {
        let entry = |value: Value| entry_id(value.as_object().expect("object"));
        assert_eq!(entry(json!({ "a": 1, "b": 2 })), entry(json!({ "b": 2, "a": 1 })));
        assert_ne!(entry(json!({ "a": 1 })), entry(json!({ "a": 2 })));
        assert!((1..=0x07ff_ffff).contains(&entry(json!({}))));
    }

    #[test]
    fn replays_have_bounds() {
        assert_eq!(replay_bounds(&json!({ "since": 5 })), Some(Replay::Since { since: 5, limit: 25 }));
        assert_eq!(replay_bounds(&json!({ "since": 5, "limit": 3 })), Some(Replay::Since { since: 5, limit: 3 }));
        let id = Uuid::from_u128(7);
        assert_eq!(replay_bounds(&json!({ "after": id, "since": 5 })), Some(Replay::After(id)));
        for bad in [
            json!({}),
            json!({ "since": "5" }),
            json!({ "since": 5, "limit": 26 }),
            json!({ "since": 5, "limit": 0 }),
            json!({ "after": "x" }),
        ] {
            assert_eq!(replay_bounds(&bad), None, "{bad}");
        }
    }
}
