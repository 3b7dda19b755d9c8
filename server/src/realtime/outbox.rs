//! The outgoing queue of a socket: bounded, filled from any thread.
//!
//! A client that falls behind by more than the bound is disconnected, because all share the memory.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_http::ws::CloseCode;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::frame::{close_frame, held_bytes};

/// Frames are passed to the connection in portions of about this many bytes.
const PORTION: usize = 32 << 10;

/// A client that is behind by less than this is not closed because of others.
const FAIR: usize = 64 << 10;

/// A socket's queue.
pub struct Outbox {
    queue: Mutex<Queue>,
    /// The connection that writes.
    writer: AtomicWaker,
    /// Notified once nothing can be sent any more.
    pub gone: Notify,
    /// Most bytes that may wait.
    capacity: usize,
    /// Most bytes that may wait for all sockets before those that are behind are closed.
    budget: usize,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Bytes>,
    bytes: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// No further frames are queued.
    Closing,
    Gone,
}

impl Outbox {
    pub fn new(capacity: usize, budget: usize) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::default(), writer: AtomicWaker::new(), gone: Notify::new(), capacity, budget })
    }

    /// Queues a frame; false if the socket is gone, or is closed because its client is too slow.
    pub fn push(&self, frame: Bytes) -> bool {
        let mut queue = self.queue.lock();
        if queue.state != State::Open {
            return false;
        }
        // A single frame may be larger than the bound.
        let size = queue.bytes + frame.len();
        let is_behind = size > FAIR && held_bytes() > self.budget;
        let is_full = queue.bytes > 0 && (size > self.capacity || is_behind);
        if is_full {
            queue.frames.clear();
            queue.bytes = 0;
            queue.state = State::Closing;
            queue.frames.push_back(close_frame(CloseCode::Again, "the reader is too slow"));
        } else {
            queue.bytes += frame.len();
            queue.frames.push_back(frame);
        }
        drop(queue);
        self.writer.wake();
        if is_full {
            self.gone.notify_one();
        }
        !is_full
    }

    /// Closes the socket after the queued frames.
    pub fn close(&self, code: CloseCode, description: &str) {
        let mut queue = self.queue.lock();
        if queue.state == State::Open {
            queue.state = State::Closing;
            queue.frames.push_back(close_frame(code, description));
        }
        drop(queue);
        self.writer.wake();
        self.gone.notify_one();
    }

    pub fn is_open(&self) -> bool {
        self.queue.lock().state == State::Open
    }
}

/// The queue's end at the connection; without it nothing more is queued.
pub struct Outgoing(pub Arc<Outbox>);

impl Outgoing {
    /// The next portion to write; `None` once the socket has ended.
    pub async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let outbox = &self.0;
        outbox.writer.register(cx.waker());
        let mut queue = outbox.queue.lock();
        let Some(first) = queue.frames.pop_front() else {
            return if queue.state == State::Open { Poll::Pending } else { Poll::Ready(None) };
        };
        queue.bytes = queue.bytes.saturating_sub(first.len());
        if queue.frames.is_empty() || first.len() >= PORTION {
            return Poll::Ready(Some(first));
        }
        let mut portion = Vec::with_capacity(PORTION.min(first.len() + queue.bytes));
        portion.extend_from_slice(&first);
        while portion.len() < PORTION
            && let Some(next) = queue.frames.pop_front()
        {
            queue.bytes = queue.bytes.saturating_sub(next.len());
            portion.extend_from_slice(&next);
        }
        // Frees memory after a burst.
        if queue.frames.is_empty() && queue.frames.capacity() > 64 {
            queue.frames = VecDeque::new();
        }
        Poll::Ready(Some(portion.into()))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.state = State::Gone;
        queue.frames = VecDeque::new();
        queue.bytes = 0;
        drop(queue);
        self.0.gone.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::frame::held;
    use std::task::Waker;

    fn take(outgoing: &mut Outgoing) -> Option<Bytes> {
        match outgoing.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(bytes)) => Some(bytes),
            _ => None,
        }
    }

    #[test]
    fn frames_leave_in_order_and_together() {
        let outbox = Outbox::new(100, usize::MAX);
        let mut outgoing = Outgoing(Arc::clone(&outbox));
        assert_eq!(take(&mut outgoing), None);
        assert!(outbox.push(Bytes::from_static(b"ab")) && outbox.push(Bytes::from_static(b"c")));
        assert_eq!(take(&mut outgoing).as_deref(), Some(&b"abc"[..]));
    }

    #[test]
    fn a_slow_reader_loses_its_socket_and_queued_messages() {
        let outbox = Outbox::new(10, usize::MAX);
        let mut outgoing = Outgoing(Arc::clone(&outbox));
        assert!(outbox.push(Bytes::from(vec![0; 50])), "a frame alone may be large");
        assert!(!outbox.push(Bytes::from_static(b"x")));
        assert!(!outbox.is_open());
        let last = take(&mut outgoing).expect("a frame");
        assert_eq!(&last[..4], &[0x88, last.len() as u8 - 2, 0x03, 0xf5], "1013, try again later");
        assert!(matches!(outgoing.poll_next(&mut Context::from_waker(Waker::noop())), Poll::Ready(None)));
    }

    #[test]
    fn queues_are_bounded_in_total_and_fast_readers_stay() {
        let (behind, quick) = (Outbox::new(1 << 20, 1 << 20), Outbox::new(1 << 20, 1 << 20));
        assert!(behind.push(Bytes::from(vec![0; FAIR])));
        let others = held(Bytes::from(vec![0; 2 << 20]));
        assert!(!behind.push(Bytes::from_static(b"x")));
        assert!(quick.push(Bytes::from_static(b"x")) && quick.push(Bytes::from_static(b"y")));
        assert_eq!(others.len(), 2 << 20);
    }

    #[test]
    fn nothing_is_queued_for_a_connection_that_ended() {
        let outbox = Outbox::new(10, usize::MAX);
        drop(Outgoing(Arc::clone(&outbox)));
        assert!(!outbox.push(Bytes::from_static(b"x")));
    }
}
