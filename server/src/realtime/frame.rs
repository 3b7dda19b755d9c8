//! The server's WebSocket frames, and the total of their bytes in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix_http::ws::{CloseCode, CloseReason, OpCode, Parser};
use bytes::{Bytes, BytesMut};

/// Bytes of all waiting frames in this process; a frame shared by many sockets counts once.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A frame that is counted while it is referenced.
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

/// A counted frame for a queue.
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
