//! Messages between instances, and their signature.
//!
//! A message is split into parts if the transport limits the size. Each part is signed with a key derived from the
//! project's secret and contains its message's number, so that messages can be neither forged nor replayed.

use std::collections::HashMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::realtime::hub::World;
use crate::realtime::presence::Presence;

/// The longest message that is assembled from parts, in bytes.
pub const LONGEST: usize = 64 << 20;
const SIGNATURE: usize = 32;
/// Sender, number of the message, number of the part, number of parts.
const HEAD: usize = 8 + 8 + 4 + 4;

/// The content of a message.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// A new instance, or one that may have missed something: the others answer with their presences.
    Hello,
    /// The sender is alive.
    Here,
    Bye,
    Broadcast {
        topic: String,
        private: bool,
        event: Option<String>,
        /// The payload: a whole JSON text (`event` is `None`) or a user's JSON text; or base64 bytes, also whole or a
        /// user's.
        json: Option<String>,
        bytes: Option<String>,
        /// Of a stored broadcast.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Uuid>,
    },
    Track {
        topic: String,
        private: bool,
        presence: Presence,
    },
    Untrack {
        topic: String,
        private: bool,
        channel: u64,
    },
    /// All presences of the sender in these rooms. After the last of several such messages, it has none in other rooms.
    Present {
        rooms: Vec<Room>,
        is_last: bool,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    pub topic: String,
    pub private: bool,
    pub presences: Vec<Presence>,
}

impl Room {
    pub fn world(&self) -> World {
        World::new(&self.topic, self.private)
    }
}

/// Signs messages and verifies signatures.
pub struct Signer {
    key: Hmac<Sha256>,
}

/// A MAC with a key of any length: as in RFC 2104, longer keys are hashed and shorter ones padded with zeros.
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    let hashed;
    let key = if key.len() > block.len() {
        hashed = Sha256::digest(key);
        &hashed[..]
    } else {
        key
    };
    block[..key.len()].copy_from_slice(key);
    <Hmac<Sha256> as hmac::digest::KeyInit>::new(&block.into())
}

/// A part with a valid signature.
#[derive(Debug, PartialEq)]
pub struct Part {
    pub from: u64,
    message: u64,
    number: u32,
    count: u32,
    content: Bytes,
}

impl Signer {
    pub fn new(secret: &[u8]) -> Self {
        let mut derived = keyed(secret);
        derived.update(b"ferrobase realtime instances");
        Self { key: keyed(&derived.finalize().into_bytes()) }
    }

    /// A name that only instances with this secret can derive.
    #[cfg(any(test, feature = "nats"))]
    pub fn name(&self) -> String {
        let mut mac = self.key.clone();
        mac.update(b"subject");
        hex::encode(&mac.finalize().into_bytes()[..12])
    }

    /// The signed parts of a message, of at most `longest` bytes each.
    pub fn sign(&self, from: u64, message: u64, content: &[u8], longest: usize) -> Vec<Bytes> {
        let room = longest.saturating_sub(SIGNATURE + HEAD).max(1);
        let count = content.len().div_ceil(room).max(1);
        let pieces = (0..count).map(|number| {
            let begin = number * room;
            let piece = &content[begin..content.len().min(begin + room)];
            let mut part = BytesMut::with_capacity(SIGNATURE + HEAD + piece.len());
            part.put_bytes(0, SIGNATURE);
            part.put_u64(from);
            part.put_u64(message);
            // A message has far fewer than 2^32 parts.
            part.put_u32(u32::try_from(number).unwrap_or(u32::MAX));
            part.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
            part.put_slice(piece);
            let mut mac = self.key.clone();
            mac.update(&part[SIGNATURE..]);
            let signature = mac.finalize().into_bytes();
            part[..SIGNATURE].copy_from_slice(&signature);
            part.freeze()
        });
        pieces.collect()
    }

    /// `None` if the signature is invalid.
    pub fn open(&self, mut part: Bytes) -> Option<Part> {
        if part.len() < SIGNATURE + HEAD {
            return None;
        }
        let signature = part.split_to(SIGNATURE);
        let mut mac = self.key.clone();
        mac.update(&part);
        mac.verify_slice(&signature).ok()?;
        let (from, message, number, count) = (part.get_u64(), part.get_u64(), part.get_u32(), part.get_u32());
        Some(Part { from, message, number, count, content: part })
    }
}

/// Assembles messages from parts, and tracks each sender's last message.
#[derive(Default)]
pub struct Assembler {
    senders: HashMap<u64, Sender>,
}

#[derive(Default)]
struct Sender {
    /// The last complete message.
    last: u64,
    /// The current message: its number, the next part, and the bytes so far.
    partial: (u64, u32, BytesMut),
}

impl Assembler {
    /// Adds a part and returns the message if it is complete. A sender's parts arrive in order; one out of order
    /// is dropped together with its message, as is a repeated one.
    pub fn put(&mut self, part: Part) -> Option<Bytes> {
        let sender = self.senders.entry(part.from).or_default();
        if part.message <= sender.last {
            return None;
        }
        if part.number == 0 {
            sender.partial = (part.message, 0, BytesMut::new());
        }
        let (message, next, content) = &mut sender.partial;
        if (*message, *next) != (part.message, part.number) || content.len() + part.content.len() > LONGEST {
            return None;
        }
        *next += 1;
        let is_whole = part.number + 1 == part.count;
        if is_whole && part.number == 0 {
            sender.last = part.message;
            return Some(part.content);
        }
        content.extend_from_slice(&part.content);
        if !is_whole {
            return None;
        }
        sender.last = part.message;
        Some(std::mem::take(&mut sender.partial).2.freeze())
    }

    pub fn forget(&mut self, sender: u64) {
        self.senders.remove(&sender);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_signed_with_our_secret_are_read() {
        let (ours, theirs) = (Signer::new(b"a secret"), Signer::new(b"another"));
        let signed = ours.sign(1, 1, b"hello", 1000).remove(0);
        assert_eq!(ours.open(signed.clone()).map(|part| (part.from, part.content)), Some((1, "hello".into())));
        assert_eq!(theirs.open(signed.clone()), None);
        for place in 0..signed.len() {
            let mut forged = signed.to_vec();
            forged[place] ^= 1;
            assert_eq!(ours.open(forged.into()), None, "{place}");
        }
        assert_eq!(ours.open(Bytes::from_static(b"short")), None);
        assert_ne!(ours.name(), theirs.name());
    }

    #[test]
    fn keys_of_any_length_give_the_same_hmac() {
        for length in [0, 1, 32, 63, 64, 65, 200] {
            let key = vec![7; length];
            let mut expected = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
            let mut mac = keyed(&key);
            expected.update(b"x");
            mac.update(b"x");
            assert_eq!(mac.finalize().into_bytes(), expected.finalize().into_bytes(), "{length}");
        }
    }

    #[test]
    fn a_long_message_is_sent_in_parts_and_repeated_parts_are_dropped() {
        let signer = Signer::new(b"a secret");
        let content: Vec<u8> = (0..10_000_u32).map(|n| n as u8).collect();
        let parts: Vec<Bytes> = signer.sign(1, 7, &content, 1000);
        assert!(parts.len() > 10 && parts.iter().all(|part| part.len() <= 1000));
        let mut assembler = Assembler::default();
        let mut put = |part: &Bytes| assembler.put(signer.open(part.clone()).expect("ours"));
        // Incomplete without its beginning, or with a gap.
        assert_eq!(put(&parts[1]), None);
        assert!(parts.iter().filter(|part| **part != parts[3]).all(|part| put(part).is_none()));
        let mut whole = parts.iter().filter_map(&mut put);
        assert_eq!(whole.next().as_deref(), Some(&content[..]));
        assert!(whole.next().is_none());
        drop(whole);
        assert!(parts.iter().all(|part| put(part).is_none()), "said again");
        assert_eq!(put(&signer.sign(1, 6, b"old", 1000)[0]), None);
        assert_eq!(put(&signer.sign(1, 8, b"", 1000)[0]).as_deref(), Some(&b""[..]));
    }
}
