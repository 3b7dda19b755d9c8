//! Frames of the Phoenix protocol, serializers 1.0.0 and 2.0.0, read and written.
//!
//! 1.0.0 is a JSON object per message; 2.0.0 is a JSON array, and broadcasts may be binary: kind 3 comes from clients,
//! kind 4 goes to them. Phoenix' own kind 0 comes, too, and goes as kind 2. Lengths in binary frames count bytes. Reference: supabase/realtime
//! `lib/realtime_web/socket/v2_serializer.ex`, supabase-js `packages/core/realtime-js/src/lib/serializer.ts`.

use std::fmt::Write as _;
use std::sync::Arc;

use actix_http::ws::OpCode;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frame::frame;

/// The prefix of every channel's topic; the rest is the sub-topic.
pub const TOPIC_PREFIX: &str = "realtime:";

/// The serializer a socket speaks (`vsn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    V1,
    V2,
}

impl Version {
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "1.0.0",
            Self::V2 => "2.0.0",
        }
    }

    /// `vsn` of the handshake; absent means 1.0.0. `None` for an unknown one.
    pub fn parse(vsn: Option<&str>) -> Option<Self> {
        match vsn {
            None | Some("1.0.0") => Some(Self::V1),
            Some("2.0.0") => Some(Self::V2),
            Some(_) => None,
        }
    }
}

/// The longest reference in a text frame, in bytes of JSON. Clients count, so theirs are short; a channel keeps its
/// `join_ref` and repeats it in its messages.
const LONGEST_REF: usize = 256;

/// A reference as written by the client (JSON text), returned unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ref(Option<Arc<str>>);

impl Ref {
    /// Whether both are given and differ.
    pub fn is_other_than(&self, other: &Self) -> bool {
        self.0.is_some() && other.0.is_some() && self != other
    }

    fn from_json(raw: Option<&RawValue>) -> Result<Self, Malformed> {
        match raw.map(RawValue::get) {
            None | Some("null") => Ok(Self(None)),
            Some(text) if text.len() > LONGEST_REF => Err(Malformed::Ref),
            Some(text) => Ok(Self(Some(Arc::from(text)))),
        }
    }

    fn from_text(text: &str) -> Self {
        Self((!text.is_empty()).then(|| Arc::from(Value::from(text).to_string())))
    }

    fn json(&self) -> &str {
        self.0.as_deref().unwrap_or("null")
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |text| text.len())
    }
}

/// The content of a broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// The whole payload (`{type, event, payload}`) as JSON text, relayed unchanged.
    Text(Box<str>),
    /// A user's event with its own payload, JSON text or bytes.
    User { event: Box<str>, payload: UserPayload, meta: Option<Box<str>> },
    /// Bytes that are the whole payload.
    Bytes(Bytes),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPayload {
    Json(Box<str>),
    Binary(Bytes),
}

impl UserPayload {
    pub fn len(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

impl Broadcast {
    /// The size of the sender's content, in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::User { payload, .. } => payload.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// A message from a client.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub join_ref: Ref,
    pub reference: Ref,
    pub topic: String,
    pub event: String,
    pub payload: Payload,
    /// Whether and how long the broadcast is to be stored, as sent: of the metadata of a user's broadcast.
    pub persist: Option<Value>,
}

impl Incoming {
    /// Bytes of its parts.
    pub fn size(&self) -> usize {
        let payload = match &self.payload {
            Payload::Json(raw) => raw.get().len(),
            Payload::Broadcast(broadcast) => broadcast.len(),
        };
        self.join_ref.len() + self.reference.len() + self.topic.len() + self.event.len() + payload
    }
}

#[derive(Clone, Debug)]
pub enum Payload {
    /// JSON text.
    Json(Box<RawValue>),
    /// From a binary frame.
    Broadcast(Broadcast),
}

/// Why a frame is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("not a message in JSON")]
    Json,
    #[error("a binary frame of unknown kind")]
    Kind,
    #[error("a binary frame cut short")]
    Short,
    #[error("text that is not UTF-8")]
    Utf8,
    #[error("a reference that is too long")]
    Ref,
}

/// Reads a text frame.
pub fn parse_text(version: Version, text: &str) -> Result<Incoming, Malformed> {
    #[derive(Deserialize)]
    struct Object<'a> {
        topic: String,
        event: String,
        #[serde(borrow, default)]
        payload: Option<&'a RawValue>,
        #[serde(borrow, rename = "ref", default)]
        reference: Option<&'a RawValue>,
        #[serde(borrow, default)]
        join_ref: Option<&'a RawValue>,
    }
    type Array<'a> = (Option<&'a RawValue>, Option<&'a RawValue>, String, String, Option<&'a RawValue>);
    let (join_ref, reference, topic, event, payload) = match version {
        Version::V1 => {
            let object: Object<'_> = serde_json::from_str(text).map_err(|_| Malformed::Json)?;
            (object.join_ref, object.reference, object.topic, object.event, object.payload)
        }
        Version::V2 => serde_json::from_str::<Array<'_>>(text).map_err(|_| Malformed::Json)?,
    };
    let payload = match payload {
        Some(raw) => raw.to_owned(),
        None => RawValue::from_string("{}".to_owned()).map_err(|_| Malformed::Json)?,
    };
    Ok(Incoming {
        join_ref: Ref::from_json(join_ref)?,
        reference: Ref::from_json(reference)?,
        topic,
        event,
        payload: Payload::Json(payload),
        persist: None,
    })
}

/// Reads a binary frame, which only 2.0.0 knows: kind 3, a user's broadcast, or kind 0, any event with bytes.
pub fn parse_binary(version: Version, frame: &Bytes) -> Result<Incoming, Malformed> {
    let (lengths, size) = match frame.first() {
        Some(0) if version == Version::V2 => (4, 5),
        Some(3) if version == Version::V2 => (5, 7),
        _ => return Err(Malformed::Kind),
    };
    let head = frame.get(..size).ok_or(Malformed::Short)?;
    let mut place = size;
    let mut text = |length: u8| {
        let end = place + usize::from(length);
        let part = frame.get(place..end).ok_or(Malformed::Short)?;
        place = end;
        std::str::from_utf8(part).map_err(|_| Malformed::Utf8)
    };
    let (join_ref, reference) = (text(head[1])?, text(head[2])?);
    let (topic, event) = (text(head[3])?, text(head[4])?);
    let is_users = lengths == 5;
    let meta = if is_users { text(head[5])? } else { "" };
    let persist =
        serde_json::from_str::<Value>(meta).ok().and_then(|mut meta| meta.get_mut("persist").map(Value::take));
    let rest = frame.slice(size + head[1..=lengths].iter().map(|length| usize::from(*length)).sum::<usize>()..);
    // Copied, because it lives until the slowest client has read it, and would keep the whole buffer alive.
    let copied = || Bytes::copy_from_slice(&rest);
    let payload = if !is_users {
        Broadcast::Bytes(copied())
    } else if head[6] == 1 {
        let json = std::str::from_utf8(&rest).map_err(|_| Malformed::Utf8)?;
        // It will be embedded in other JSON.
        serde_json::from_str::<&RawValue>(json).map_err(|_| Malformed::Json)?;
        Broadcast::User { event: event.into(), payload: UserPayload::Json(json.into()), meta: None }
    } else {
        Broadcast::User { event: event.into(), payload: UserPayload::Binary(copied()), meta: None }
    };
    Ok(Incoming {
        join_ref: Ref::from_text(join_ref),
        reference: Ref::from_text(reference),
        topic: topic.to_owned(),
        event: if is_users { "broadcast".to_owned() } else { event.to_owned() },
        payload: Payload::Broadcast(payload),
        persist,
    })
}

/// A message to a client as a whole WebSocket frame.
pub fn message(
    version: Version,
    join_ref: &Ref,
    reference: &Ref,
    topic: &str,
    event: &str,
    payload: impl std::fmt::Display,
) -> Bytes {
    let mut text = String::with_capacity(128);
    let (topic, event) = (Value::from(topic), Value::from(event));
    // Writing to a String cannot fail.
    let _ = match version {
        Version::V1 => {
            write!(
                text,
                r#"{{"topic":{topic},"event":{event},"payload":{payload},"ref":{reference}}}"#,
                reference = reference.json()
            )
        }
        Version::V2 => write!(text, "[{},{},{topic},{event},{payload}]", join_ref.json(), reference.json()),
    };
    frame(OpCode::Text, text.as_bytes())
}

/// The answer to a message.
pub fn reply(version: Version, join_ref: &Ref, reference: &Ref, topic: &str, outcome: Result<&Value, &Value>) -> Bytes {
    let (status, response) = match outcome {
        Ok(response) => ("ok", response),
        Err(response) => ("error", response),
    };
    message(version, join_ref, reference, topic, "phx_reply", json!({ "status": status, "response": response }))
}

/// A broadcast for sockets of this version; `None` if the version cannot express it.
pub fn broadcast(version: Version, topic: &str, broadcast: &Broadcast) -> Option<Bytes> {
    const EVENT: &str = "broadcast";
    let none = Ref::default();
    match (version, broadcast) {
        (_, Broadcast::Text(payload)) => Some(message(version, &none, &none, topic, "broadcast", payload)),
        (Version::V2, Broadcast::User { event, payload, meta }) => {
            let meta = meta.as_deref().unwrap_or_default();
            binary(topic, event, meta, payload).or_else(|| {
                as_text(event, meta, payload).map(|p| message(version, &none, &none, topic, "broadcast", p))
            })
        }
        (Version::V1, Broadcast::User { event, payload, meta }) => {
            let payload = as_text(event, meta.as_deref().unwrap_or_default(), payload)?;
            Some(message(version, &none, &none, topic, "broadcast", payload))
        }
        (Version::V2, Broadcast::Bytes(bytes)) => {
            let mut out = Vec::with_capacity(3 + topic.len() + EVENT.len() + bytes.len());
            out.extend([2, u8::try_from(topic.len()).ok()?, EVENT.len() as u8]);
            for part in [topic.as_bytes(), EVENT.as_bytes(), bytes] {
                out.extend_from_slice(part);
            }
            Some(frame(OpCode::Binary, &out))
        }
        (Version::V1, Broadcast::Bytes(_)) => None,
    }
}

/// Kind 4; `None` if a length does not fit into its byte.
fn binary(topic: &str, event: &str, meta: &str, payload: &UserPayload) -> Option<Bytes> {
    let length = |text: &str| u8::try_from(text.len()).ok();
    let (encoding, payload) = match payload {
        UserPayload::Binary(bytes) => (0, &bytes[..]),
        UserPayload::Json(text) => (1, text.as_bytes()),
    };
    let mut out = Vec::with_capacity(5 + topic.len() + event.len() + meta.len() + payload.len());
    out.extend([4, length(topic)?, length(event)?, length(meta)?, encoding]);
    for part in [topic.as_bytes(), event.as_bytes(), meta.as_bytes(), payload] {
        out.extend_from_slice(part);
    }
    Some(frame(OpCode::Binary, &out))
}

fn as_text(event: &str, meta: &str, payload: &UserPayload) -> Option<String> {
    let UserPayload::Json(payload) = payload else { return None };
    let meta = if meta.is_empty() { String::new() } else { format!(r#","meta":{meta}"#) };
    Some(format!(r#"{{"type":"broadcast","event":{},"payload":{payload}{meta}}}"#, Value::from(event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of an unmasked frame of less than 64 KiB.
    fn inside(frame: &[u8]) -> &[u8] {
        match frame[1] {
            126 => &frame[4..],
            _ => &frame[2..],
        }
    }

    fn text(frame: &Bytes) -> String {
        String::from_utf8(inside(frame).to_vec()).expect("text")
    }

    #[test]
    fn both_versions_are_parsed_and_references_are_echoed() {
        let v2 = parse_text(Version::V2, r#"["1","2","realtime:a:b","phx_join",{"x":1}]"#).expect("a message");
        assert_eq!((v2.topic.as_str(), v2.event.as_str()), ("realtime:a:b", "phx_join"));
        assert_eq!(
            text(&reply(Version::V2, &v2.join_ref, &v2.reference, &v2.topic, Ok(&json!({})))),
            r#"["1","2","realtime:a:b","phx_reply",{"status":"ok","response":{}}]"#
        );
        let v1 = parse_text(Version::V1, r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":7}"#);
        let v1 = v1.expect("a message");
        assert_eq!(v1.join_ref, Ref::default());
        assert_eq!(
            text(&reply(Version::V1, &v1.join_ref, &v1.reference, "phoenix", Ok(&json!({})))),
            r#"{"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":7}"#
        );
    }

    #[test]
    fn references_are_short_and_count_in_the_size_of_a_message() {
        let sent = |reference: &str| format!(r#"[{reference},{reference},"t","e",{{}}]"#);
        let text = |length: usize| format!("\"{}\"", "1".repeat(length - 2));
        let fits = parse_text(Version::V2, &sent(&text(LONGEST_REF))).expect("a message");
        assert_eq!(fits.size(), 2 * LONGEST_REF + "te{}".len());
        let long = text(LONGEST_REF + 1);
        assert_eq!(parse_text(Version::V2, &sent(&long)).err(), Some(Malformed::Ref));
        for name in ["ref", "join_ref"] {
            let text = format!(r#"{{"topic":"t","event":"e","payload":{{}},"{name}":{long}}}"#);
            assert_eq!(parse_text(Version::V1, &text).err(), Some(Malformed::Ref), "{name}");
        }
        let push = [&[3, 2, 1, 1, 1, 0, 1][..], b"12", b"3", b"t", b"e", b"{}"].concat();
        let binary = parse_binary(Version::V2, &push.into()).expect("a broadcast");
        assert_eq!(binary.size(), r#""12""3"tbroadcast{}"#.len());
    }

    #[test]
    fn invalid_messages_are_refused() {
        for bad in ["", "{}", "[]", "[1,2,3,4,5]", r#"["1","2","t","e",{}"#, r#"["1","2","t","e",{},6]"#] {
            assert!(parse_text(Version::V2, bad).is_err(), "{bad}");
        }
        for bad in [
            &b""[..],
            &[3],
            &[3, 1, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0],
            &[0, 0, 0, 9, 0, b'x'],
            &[1, 0, 0, 0, 0, 0, 0],
            &[3, 1, 0, 0, 0, 0, 0, 0xff],
        ] {
            assert!(parse_binary(Version::V2, &Bytes::copy_from_slice(bad)).is_err(), "{bad:?}");
        }
        // Invalid JSON would break the message of every receiver.
        assert_eq!(
            parse_binary(Version::V2, &Bytes::from_static(b"\x03\0\0\x01\x01\0\x01te{\"a\"")).err(),
            Some(Malformed::Json)
        );
    }

    #[test]
    fn a_users_broadcast_is_converted_from_kind_3_to_4_with_byte_lengths() {
        let topic = "realtime:größe";
        let mut push = vec![3, 1, 2, u8::try_from(topic.len()).expect("short"), 3, 0, 1];
        push.extend_from_slice(b"1");
        push.extend_from_slice(b"12");
        push.extend_from_slice(topic.as_bytes());
        push.extend_from_slice("ü!".as_bytes());
        push.extend_from_slice(br#"{"a":1}"#);
        let incoming = parse_binary(Version::V2, &push.into()).expect("a broadcast");
        assert_eq!((incoming.topic.as_str(), incoming.event.as_str()), (topic, "broadcast"));
        let Payload::Broadcast(sent) = incoming.payload else { panic!("a broadcast") };
        let frame = broadcast(Version::V2, topic, &sent).expect("a frame");
        let expected = [&[4, 16, 3, 0, 1][..], topic.as_bytes(), "ü!".as_bytes(), br#"{"a":1}"#].concat();
        assert_eq!(inside(&frame), expected);
        assert_eq!(
            text(&broadcast(Version::V1, topic, &sent).expect("text")),
            r#"{"topic":"realtime:größe","event":"broadcast","payload":{"type":"broadcast","event":"ü!","payload":{"a":1}},"ref":null}"#
        );
    }

    #[test]
    fn binary_broadcasts_are_converted_from_kind_0_to_2() {
        let push = b"\x00\x01\x02\x0a\x09112realtime:tbroadcast\x00\xff";
        let incoming = parse_binary(Version::V2, &Bytes::from_static(push)).expect("a push");
        assert_eq!((incoming.topic.as_str(), incoming.event.as_str()), ("realtime:t", "broadcast"));
        assert_eq!(incoming.reference.json(), "\"12\"");
        let Payload::Broadcast(sent) = incoming.payload else { panic!("bytes") };
        let frame = broadcast(Version::V2, "realtime:t", &sent).expect("a frame");
        assert_eq!(inside(&frame), b"\x02\x0a\x09realtime:tbroadcast\x00\xff");
        assert!(broadcast(Version::V1, "realtime:t", &sent).is_none());
        assert!(broadcast(Version::V2, &"t".repeat(256), &sent).is_none());
    }

    #[test]
    fn binary_is_not_sent_to_the_old_version_and_long_names_are_sent_as_text() {
        let bytes = UserPayload::Binary(Bytes::from_static(&[0, 255]));
        let sent = Broadcast::User { event: "e".into(), payload: bytes, meta: None };
        assert!(broadcast(Version::V1, "realtime:t", &sent).is_none());
        let long = "n".repeat(300);
        assert!(broadcast(Version::V2, &format!("realtime:{long}"), &sent).is_none());
        let payload = UserPayload::Json("1".into());
        let sent = Broadcast::User { event: long.into(), payload, meta: Some(r#"{"id":"x"}"#.into()) };
        let frame = broadcast(Version::V2, "realtime:t", &sent).expect("a frame");
        assert!(text(&frame).ends_with(r#""payload":1,"meta":{"id":"x"}}]"#), "{}", text(&frame));
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_cause_no_panic(bytes: Vec<u8>, text: String) {
            let _ = parse_binary(Version::V2, &bytes.into());
            let _ = parse_text(Version::V1, &text);
            let _ = parse_text(Version::V2, &text);
        }
    }
}
