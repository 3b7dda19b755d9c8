//! WebSocket frames of the server, and the count of bytes of all frames that wait in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix_http::ws::{CloseCode, CloseReason, OpCode, Parser};
use bytes::{Bytes, BytesMut};

/// Bytes of all frames that wait in this process; one that many sockets share counts once.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A frame that counts as long as anybody holds it.
struct Held(Bytes);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// A frame to be queued, counted.
pub fn held(frame: Bytes) -> Bytes {
    HELD.fetch_add(frame.len(), Ordering::Relaxed);
    Bytes::from_owner(Held(frame))
}

/// Bytes of all counted frames.
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// A counted frame, final and unmasked.
pub fn frame(kind: OpCode, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(payload.len() + 10);
    Parser::write_message(&mut out, payload, kind, true, false);
    held(out.freeze())
}

/// The frame that ends a socket.
pub fn close_frame(code: CloseCode, description: &str) -> Bytes {
    let mut out = BytesMut::new();
    let reason = CloseReason { code, description: (!description.is_empty()).then(|| description.to_owned()) };
    Parser::write_close(&mut out, Some(reason), false);
    out.freeze()
}
