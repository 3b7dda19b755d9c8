//! WebSocket frames and Phoenix messages made of any bytes. `server/fuzz` and the properties below share this entry point.

use actix_codec::Decoder as _;
use actix_http::ws::Codec;
use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::frames::{MAX_FRAME, Parts, Read, Whole};
use crate::realtime::join::{JoinRequest, entry_id, problems, replay_bounds};
use crate::realtime::protocol::{Incoming, Malformed, Payload, Version, parse_binary, parse_text, reply};

/// A socket's bytes, after one that says how long the pieces are in which they come: whatever they are, they are the same
/// messages in any pieces, and each is read or refused.
pub fn socket(data: &[u8]) {
    let [first, bytes @ ..] = data else { return };
    let whole = messages(bytes, bytes.len().max(1));
    assert_eq!(whole, messages(bytes, usize::from(*first).max(1)), "in pieces of {first}");
    // What is in no frame is a message as well.
    for message in whole.into_iter().chain([Message::Text(bytes.to_vec()), Message::Binary(bytes.to_vec())]) {
        for version in [Version::V1, Version::V2] {
            match &message {
                Message::Text(text) => {
                    if let Ok(text) = std::str::from_utf8(text) {
                        examine(version, parse_text(version, text));
                    }
                }
                Message::Binary(frame) => examine(version, parse_binary(version, &Bytes::copy_from_slice(frame))),
                Message::Other(_) => {}
            }
        }
    }
}

#[derive(Debug, PartialEq)]
enum Message {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// A ping, nothing or the end.
    Other(String),
}

/// The messages in `bytes` that come in pieces of `length`, to the first end.
fn messages(bytes: &[u8], length: usize) -> Vec<Message> {
    let (mut codec, mut parts) = (Codec::new().max_size(MAX_FRAME), Parts::default());
    let (mut buffer, mut messages) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(length) {
        buffer.extend_from_slice(piece);
        loop {
            let read = match codec.decode(&mut buffer) {
                Ok(Some(frame)) => parts.take(frame),
                Ok(None) => break,
                Err(_) => {
                    messages.push(Message::Other("refused".to_owned()));
                    return messages;
                }
            };
            messages.push(match read {
                Some(Read::Message(Whole::Text(text))) => Message::Text(text.to_vec()),
                Some(Read::Message(Whole::Binary(bytes))) => Message::Binary(bytes.to_vec()),
                Some(Read::Ping(bytes)) => Message::Other(format!("ping {bytes:?}")),
                Some(Read::Nothing) | None => Message::Other(String::new()),
                Some(Read::End(code, _)) => {
                    messages.push(Message::Other(format!("{code:?}")));
                    return messages;
                }
            });
        }
    }
    messages
}

fn examine(version: Version, incoming: Result<Incoming, Malformed>) {
    let Ok(incoming) = incoming else { return };
    // Its references and topic come back within JSON of ours.
    let answer = reply(version, &incoming.join_ref, &incoming.reference, &incoming.topic, Ok(&Value::Null));
    // The head of a frame takes two bytes and those of a longer length.
    let head = match answer[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    let text = &answer[head..];
    assert!(serde_json::from_slice::<Value>(text).is_ok(), "{}", String::from_utf8_lossy(text));
    if let Payload::Json(raw) = &incoming.payload
        && let Ok(payload) = serde_json::from_str::<Value>(raw.get())
    {
        let _ = problems(&payload);
        let join = JoinRequest::parse(&payload, &incoming.topic);
        join.changes.iter().for_each(|entry| assert_ne!(entry_id(entry), 0));
        let _ = join.replay.as_ref().and_then(replay_bounds);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::{collection, sample};

    use super::socket;

    /// A client's frame; its mask is of zeros, so that its text can be read.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("a short one").to_be_bytes();
        [&[first, 0x80 | 126, length[0], length[1], 0, 0, 0, 0], payload].concat()
    }

    fn payload() -> impl Strategy<Value = Vec<u8>> {
        let known = sample::select(vec![
            r#"["1","1","realtime:room","phx_join",{"config":{"postgres_changes":[{"event":"*","schema":"public"}]}}]"#,
            r#"[null,null,"phoenix","heartbeat",{}]"#,
            r#"{"topic":"realtime:room","event":"phx_leave","payload":{},"ref":"1"}"#,
            r#"["1",{"a":[]},"\u0000","broadcast",{"config":{"broadcast":{"replay":{"since":1,"limit":25}}}}]"#,
            "\u{3}\u{1}\u{1}\u{4}\u{1}\u{0}\u{1}11roome{}",
            "\u{0}\u{1}\u{1}\u{4}\u{1}11roome",
        ]);
        let any = collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            3 => known.clone().prop_map(|text| text.as_bytes().to_vec()),
            2 => any.clone(),
            1 => (known, any, 0..100_usize).prop_map(|(text, bytes, at)| {
                let mut text = text.as_bytes().to_vec();
                let at = at.min(text.len());
                text.splice(at..at, bytes);
                text
            }),
        ]
    }

    proptest! {
        #[test]
        fn socket_bytes_are_read_the_same_in_any_pieces_and_cause_no_panic(
            piece: u8,
            // Text, binary, continued and last ones, pings, the end, and what is none.
            frames in collection::vec((sample::select(vec![0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8a, 0x88, 0xc1, 0x8f]), payload()), 1..6),
            rest in collection::vec(any::<u8>(), 0..16),
        ) {
            let frames: Vec<u8> = frames.iter().flat_map(|(first, payload)| frame(*first, payload)).collect();
            socket(&[&[piece], &frames[..], &rest].concat());
            socket(&[&[piece], &rest[..]].concat());
        }
    }
}
