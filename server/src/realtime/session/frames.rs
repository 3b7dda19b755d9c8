//! Reads frames from the connection, and messages from frames.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::ready;

use actix_codec::Decoder as _;
use actix_http::ws::{CloseCode, Codec, Frame, Item, ProtocolError};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf, ReadHalf};

use crate::http::takeover::Wire;
use crate::realtime::Inner;

/// The longest frame of a client, and the longest message in several frames, in bytes.
pub const MAX_FRAME: usize = 5_000_000;

thread_local! {
    /// The shared read buffer. A socket has its own buffer only for unfinished frames.
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; 16 << 10].into());
}

/// A complete message.
pub enum Whole {
    Text(Bytes),
    Binary(Bytes),
}

pub enum Read {
    Message(Whole),
    Ping(Bytes),
    /// Nothing to answer.
    Nothing,
    /// The socket is to be closed.
    End(CloseCode, &'static str),
}

/// Reads frames from the connection.
pub struct Reader {
    realtime: Arc<Inner>,
    wire: ReadHalf<Box<dyn Wire>>,
    buffer: BytesMut,
    codec: Codec,
    parts: Parts,
    /// This socket's share of the common budget, in bytes.
    counted: usize,
    /// Bytes of messages that were read but not handled yet.
    pub waiting: usize,
    pub is_open: bool,
}

impl Reader {
    /// `early` are bytes already read.
    pub fn new(wire: ReadHalf<Box<dyn Wire>>, early: BytesMut, realtime: Arc<Inner>) -> Self {
        let codec = Codec::new().max_size(MAX_FRAME);
        Self { realtime, wire, buffer: early, codec, parts: Parts::default(), counted: 0, waiting: 0, is_open: true }
    }

    /// Cancel-safe.
    pub async fn next(&mut self) -> Read {
        loop {
            match self.codec.decode(&mut self.buffer) {
                Ok(Some(frame)) => {
                    self.count();
                    if let Some(read) = self.parts.take(frame) {
                        return read;
                    }
                }
                Ok(None) => {
                    if !self.is_open {
                        return Read::End(CloseCode::Normal, "");
                    }
                    self.read().await;
                    if !self.count() {
                        return Read::End(CloseCode::Again, "too much is being received");
                    }
                }
                Err(ProtocolError::Overflow) => return Read::End(CloseCode::Size, ""),
                Err(_) => return Read::End(CloseCode::Protocol, ""),
            }
        }
    }

    /// Reads what there is.
    async fn read(&mut self) {
        let (wire, buffer) = (&mut self.wire, &mut self.buffer);
        let read = poll_fn(|cx| {
            READ.with_borrow_mut(|space| {
                let mut space = ReadBuf::new(space);
                ready!(Pin::new(&mut *wire).poll_read(cx, &mut space))?;
                buffer.extend_from_slice(space.filled());
                std::task::Poll::Ready(Ok::<_, std::io::Error>(space.filled().len()))
            })
        });
        self.is_open = read.await.is_ok_and(|length| length > 0);
    }

    /// Reads and discards until the client's end.
    pub async fn drain(&mut self) {
        while self.is_open {
            self.buffer.clear();
            self.read().await;
        }
    }

    /// Counts the bytes of unfinished frames; false if all sockets together hold too much.
    fn count(&mut self) -> bool {
        const FREE: usize = 64 << 10;
        const BUDGET: usize = 256 << 20;
        if self.buffer.is_empty() {
            // An idle socket holds no buffer.
            self.buffer = BytesMut::new();
        }
        let held = self.waiting + self.buffer.len() + self.parts.len();
        let held = held.saturating_sub(FREE);
        let total = &self.realtime.buffered;
        if held > self.counted {
            let added = held - self.counted;
            self.counted = held;
            return total.fetch_add(added, Ordering::Relaxed) + added <= BUDGET;
        }
        total.fetch_sub(self.counted - held, Ordering::Relaxed);
        self.counted = held;
        true
    }
}

/// A message in several frames: whether it is text, and its bytes so far.
#[derive(Default)]
pub struct Parts(Option<(bool, BytesMut)>);

impl Parts {
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |(_, parts)| parts.len())
    }

    /// What a frame completes.
    pub fn take(&mut self, frame: Frame) -> Option<Read> {
        match frame {
            Frame::Text(bytes) => Some(Read::Message(Whole::Text(bytes))),
            Frame::Binary(bytes) => Some(Read::Message(Whole::Binary(bytes))),
            Frame::Ping(bytes) => Some(Read::Ping(bytes)),
            Frame::Pong(_) => Some(Read::Nothing),
            Frame::Close(_) => Some(Read::End(CloseCode::Normal, "")),
            Frame::Continuation(item) => {
                let (bytes, is_last) = match item {
                    Item::FirstText(bytes) | Item::FirstBinary(bytes) if self.0.is_some() => (bytes, false),
                    Item::FirstText(bytes) => {
                        self.0 = Some((true, BytesMut::new()));
                        (bytes, false)
                    }
                    Item::FirstBinary(bytes) => {
                        self.0 = Some((false, BytesMut::new()));
                        (bytes, false)
                    }
                    Item::Continue(bytes) => (bytes, false),
                    Item::Last(bytes) => (bytes, true),
                };
                let (_, parts) = self.0.as_mut()?;
                if parts.len() + bytes.len() > MAX_FRAME {
                    return Some(Read::End(CloseCode::Size, ""));
                }
                parts.extend_from_slice(&bytes);
                if !is_last {
                    return None;
                }
                let (is_text, parts) = self.0.take()?;
                let bytes = parts.freeze();
                Some(Read::Message(if is_text { Whole::Text(bytes) } else { Whole::Binary(bytes) }))
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.realtime.buffered.fetch_sub(self.counted, Ordering::Relaxed);
    }
}
