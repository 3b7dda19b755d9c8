//! The inspector: records the frames of a topic for developers and operators.
//!
//! Frames are recorded only on demand: a topic is watched from the first look until nobody has looked for [`WATCH`].
//! The records are bounded, and tokens are removed first. [`page`] shows them, [`routes`] guards the page.

mod page;
pub mod routes;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::Value;

use super::protocol::{Broadcast, Incoming, Payload, TOPIC_PREFIX, UserPayload};

/// How long a topic is watched after the last look.
const WATCH: Duration = Duration::from_secs(300);
/// The most watched topics; another one replaces the one viewed longest ago.
const TOPICS: usize = 8;
/// Frames stored per topic, and bytes per frame.
const FRAMES: usize = 200;
const SHOWN: usize = 4096;

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a client.
    In,
    /// To clients.
    Out,
}

/// A recorded frame.
#[derive(Clone, Debug)]
pub struct RecordedFrame {
    pub number: u64,
    pub at: DateTime<Utc>,
    pub direction: Direction,
    /// Whether the channel is private; `None` if the channel does not exist (any more).
    pub private: Option<bool>,
    /// Its beginning, without tokens.
    pub text: String,
    /// Bytes of the whole frame.
    pub size: usize,
    pub receivers: usize,
}

struct Watch {
    frames: VecDeque<RecordedFrame>,
    /// Frames so far.
    count: u64,
    looked: Instant,
}

/// The watched topics.
#[derive(Default)]
pub struct Inspector {
    is_watched: AtomicBool,
    watches: Mutex<HashMap<Box<str>, Watch>>,
}

impl Inspector {
    /// The recorded frames of a topic (without its prefix), oldest first. Starts watching it.
    pub fn look(&self, topic: &str) -> Vec<RecordedFrame> {
        let mut watches = self.watches.lock();
        let now = Instant::now();
        if !watches.contains_key(topic) && watches.len() >= TOPICS {
            let oldest = watches.iter().min_by_key(|(_, watch)| watch.looked).map(|(topic, _)| topic.clone());
            if let Some(oldest) = oldest {
                watches.remove(&oldest);
            }
        }
        let new = || Watch { frames: VecDeque::new(), count: 0, looked: now };
        let watch = watches.entry(topic.into()).or_insert_with(new);
        watch.looked = now;
        self.is_watched.store(true, Ordering::Release);
        watch.frames.iter().cloned().collect()
    }

    /// Records a client's message.
    pub fn note_in(&self, incoming: &Incoming, private: Option<bool>) {
        if self.is_watched.load(Ordering::Acquire) {
            let topic = incoming.topic.strip_prefix(TOPIC_PREFIX).unwrap_or(&incoming.topic);
            self.note(topic, Direction::In, private, 1, || (sent(incoming), incoming.size()));
        }
    }

    /// Records a frame and its number of receivers. `topic` is without its prefix.
    pub fn note_out(&self, topic: &str, private: Option<bool>, frame: &Bytes, receivers: usize) {
        if receivers > 0 && self.is_watched.load(Ordering::Acquire) {
            let topic = topic.strip_prefix(TOPIC_PREFIX).unwrap_or(topic);
            self.note(topic, Direction::Out, private, receivers, || {
                let (is_text, content) = inside(frame);
                (if is_text { start_of(content) } else { binary(content) }, content.len())
            });
        }
    }

    fn note(
        &self,
        topic: &str,
        direction: Direction,
        private: Option<bool>,
        receivers: usize,
        written: impl FnOnce() -> (String, usize),
    ) {
        let mut watches = self.watches.lock();
        watches.retain(|_, watch| watch.looked.elapsed() < WATCH);
        if watches.is_empty() {
            self.is_watched.store(false, Ordering::Release);
        }
        let Some(watch) = watches.get_mut(topic) else { return };
        let (text, size) = written();
        let text = without_tokens(&text);
        // The same frame, sent to each client separately.
        if let Some(last) = watch.frames.back_mut()
            && (last.direction, last.private, last.size) == (Direction::Out, private, size)
            && direction == Direction::Out
            && last.text == text
        {
            last.receivers += receivers;
            return;
        }
        if watch.frames.len() >= FRAMES {
            watch.frames.pop_front();
        }
        watch.count += 1;
        let number = watch.count;
        watch.frames.push_back(RecordedFrame { number, at: Utc::now(), direction, private, text, size, receivers });
    }
}

/// The shown form of a client's message: event and payload.
fn sent(incoming: &Incoming) -> String {
    let payload = match &incoming.payload {
        Payload::Json(raw) if matches!(incoming.event.as_str(), "phx_join" | "access_token") => {
            // These are small, and the only ones that regularly contain tokens.
            let mut payload: Value = serde_json::from_str(raw.get()).unwrap_or_default();
            for name in ["access_token", "user_token"] {
                if let Some(token) = payload.get_mut(name).filter(|token| !token.is_null()) {
                    *token = Value::from("(token)");
                }
            }
            payload.to_string()
        }
        Payload::Json(raw) => start_of(raw.get().as_bytes()),
        Payload::Broadcast(Broadcast::Text(text)) => start_of(text.as_bytes()),
        Payload::Broadcast(Broadcast::User { event, payload: UserPayload::Json(text), .. }) => {
            format!("{event} {}", start_of(text.as_bytes()))
        }
        Payload::Broadcast(Broadcast::User { event, payload: UserPayload::Binary(bytes), .. }) => {
            format!("{event} {}", bytes_as_text(bytes))
        }
        Payload::Broadcast(Broadcast::Bytes(bytes)) => bytes_as_text(bytes),
    };
    start_of(format!("{} {payload}", incoming.event).as_bytes())
}

/// The recorded beginning of a text.
fn start_of(bytes: &[u8]) -> String {
    let part = &bytes[..bytes.len().min(SHOWN)];
    // A character may have been cut in two.
    let valid = std::str::from_utf8(part).map_or_else(|error| error.valid_up_to(), str::len);
    let mut text = String::from_utf8_lossy(&part[..valid]).into_owned();
    if bytes.len() > SHOWN {
        text.push('…');
    }
    text
}

/// The content of an unmasked WebSocket frame, and whether it is text.
fn inside(frame: &[u8]) -> (bool, &[u8]) {
    let head = match frame.get(1) {
        Some(126) => 4,
        Some(127) => 10,
        _ => 2,
    };
    let is_text = frame.first().is_some_and(|first| first & 0x0f == 1);
    (is_text, frame.get(head..).unwrap_or_default())
}

/// The shown form of a binary frame: the parts of a broadcast, or its bytes.
fn binary(content: &[u8]) -> String {
    let parts = || {
        let [4, topic, event, meta, encoding, rest @ ..] = content else { return None };
        let (topic, event, meta) = (usize::from(*topic), usize::from(*event), usize::from(*meta));
        let event = rest.get(topic..topic + event)?;
        let meta_at = topic + event.len();
        let meta = rest.get(meta_at..meta_at + meta)?;
        let payload = rest.get(meta_at + meta.len()..)?;
        let payload = if *encoding == 1 { start_of(payload) } else { bytes_as_text(payload) };
        Some(format!("(binary) broadcast {} {payload} {}", start_of(event), start_of(meta)))
    };
    parts().unwrap_or_else(|| format!("(binary) {}", bytes_as_text(content)))
}

fn bytes_as_text(bytes: &[u8]) -> String {
    let part = hex::encode(&bytes[..bytes.len().min(SHOWN / 8)]);
    if bytes.len() > SHOWN / 8 { part + "…" } else { part }
}

/// The text without anything that could be a token or secret key.
fn without_tokens(text: &str) -> String {
    const SHORT: usize = 20;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = ["eyJ", "sb_secret_"].iter().filter_map(|mark| rest.find(mark)).min() {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
        let (word, behind) = from.split_at(end.unwrap_or(from.len()));
        out.push_str(before);
        out.push_str(if word.len() > SHORT { "(token)" } else { word });
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::protocol::{Version, parse_binary, parse_text};

    const TOKEN: &str = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmF0dXJl";

    fn text(text: &str) -> Incoming {
        parse_text(Version::V2, text).expect("a message")
    }

    #[test]
    fn topics_without_viewers_are_not_recorded() {
        let inspector = Inspector::default();
        inspector.note_in(&text(r#"["1","1","realtime:a","x",{}]"#), None);
        assert!(inspector.look("a").is_empty());
        for topic in ["a", "b"] {
            inspector.note_in(&text(&format!(r#"["1","1","realtime:{topic}","x",{{}}]"#)), Some(true));
        }
        let seen = inspector.look("a");
        assert_eq!((seen.len(), seen[0].text.as_str(), seen[0].private), (1, "x {}", Some(true)));
        assert!(inspector.look("b").is_empty());
    }

    #[test]
    fn recorded_frames_are_bounded() {
        let inspector = Inspector::default();
        for n in 0..20 {
            inspector.look(&n.to_string());
        }
        assert_eq!(inspector.watches.lock().len(), TOPICS);
        let long = format!(r#"["1","1","realtime:19","x",{{"a":"{}"}}]"#, "é".repeat(100_000));
        for _ in 0..FRAMES + 50 {
            inspector.note_in(&text(&long), None);
        }
        let seen = inspector.look("19");
        assert_eq!((seen.len(), seen.last().map(|noted| noted.number)), (FRAMES, Some(FRAMES as u64 + 50)));
        assert!(seen.iter().all(|noted| noted.text.len() <= SHOWN + 3 && noted.size > 200_000));
    }

    #[test]
    fn tokens_are_not_kept() {
        let inspector = Inspector::default();
        inspector.look("a");
        for message in [
            format!(r#"["1","1","realtime:a","phx_join",{{"config":{{}},"access_token":"{TOKEN}"}}]"#),
            r#"["1","1","realtime:a","access_token",{"access_token":"an opaque one"}]"#.to_owned(),
            format!(r#"["1","1","realtime:a","broadcast",{{"payload":{{"t":"Bearer {TOKEN}"}}}}]"#),
            format!(r#"["1","1","realtime:a","presence",{{"k":"sb_secret_{}"}}]"#, "x".repeat(30)),
        ] {
            inspector.note_in(&text(&message), None);
        }
        let seen = inspector.look("a");
        assert_eq!(seen.len(), 4);
        for noted in seen {
            let hidden = ["eyJhbGci", "opaque", "sb_secret_", "c2lnbmF0dXJl"];
            assert!(hidden.iter().all(|part| !noted.text.contains(part)), "{}", noted.text);
            assert!(noted.text.contains("(token)"), "{}", noted.text);
        }
    }

    #[test]
    fn binary_frames_are_read() {
        let push = b"\x03\x01\x01\x0a\x01\x00\x0111realtime:te{\"a\":1}";
        let incoming = parse_binary(Version::V2, &Bytes::from_static(push)).expect("a push");
        assert_eq!(sent(&incoming), r#"broadcast e {"a":1}"#);
        assert_eq!(binary(b"\x04\x0a\x01\x00\x01realtime:te{\"a\":1}"), r#"(binary) broadcast e {"a":1} "#);
        assert_eq!(binary(b"\x04\x0a\x01\x00\x00realtime:te\x00\xff"), "(binary) broadcast e 00ff ");
        assert_eq!(binary(b"\x04\xff"), "(binary) 04ff");
    }
}
