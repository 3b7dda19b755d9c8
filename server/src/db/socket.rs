//! The socket, encrypted or not, and the watch for overdue answers.
//!
//! A caller that awaits an answer raises the [`Watch`]. If nothing was read for [`SILENCE`], the [`Pulse`] is
//! checked; if PostgreSQL does not answer that either at this connection's address, reading fails. So it does if
//! PostgreSQL is well and this connection alone gets no acknowledgements any more. Requests do not touch the timer: every three
//! seconds it checks whether anything was read since.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep, sleep};

use super::Pulse;
use super::acknowledgements::Acknowledgements;
use super::address::Place;
use super::limits::{SILENCE, UNACKNOWLEDGED};

/// Whether an answer is awaited on a connection. Clones share the state.
#[derive(Clone, Default)]
pub struct Watch(Arc<AtomicBool>);

impl Watch {
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn lower(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection's stream under watch.
pub struct Socket {
    pub stream: Stream,
    pub watch: Watch,
    /// None for the pulse's own connection.
    pub guard: Option<Guard>,
    /// The number of reads that returned data.
    reads: u64,
    silence: Option<Silence>,
}

/// What tells whether an answer may still come.
pub struct Guard {
    /// The check of the database.
    pub pulse: Pulse,
    /// Where this connection goes.
    pub place: Place,
    /// None if the connection string limits how long they may be missing.
    pub acknowledgements: Option<Acknowledgements>,
}

/// The timer for silence.
struct Silence {
    timer: Pin<Box<Sleep>>,
    /// [`Socket::reads`] when the timer was set.
    reads: u64,
    asked: Option<BoxFuture<'static, bool>>,
}

impl Socket {
    pub fn new(stream: Stream, watch: Watch, guard: Option<Guard>) -> Self {
        Self { stream, watch, guard, reads: 0, silence: None }
    }

    /// Ready once PostgreSQL has been silent for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(guard) = self.guard.as_ref().filter(|_| self.watch.is_raised()) else { return Poll::Pending };
        let reads = self.reads;
        let silence =
            self.silence.get_or_insert_with(|| Silence { timer: Box::pin(sleep(SILENCE)), reads, asked: None });
        loop {
            if silence.reads != reads {
                silence.asked = None;
            }
            if let Some(asked) = &mut silence.asked {
                let is_alive = ready!(asked.as_mut().poll(cx));
                let missing = |seen: &Acknowledgements| seen.are_missing(UNACKNOWLEDGED);
                if !is_alive || guard.acknowledgements.as_ref().is_some_and(missing) {
                    return Poll::Ready(());
                }
                silence.asked = None;
                silence.timer.as_mut().reset(Instant::now() + SILENCE);
            }
            ready!(silence.timer.as_mut().poll(cx));
            if silence.reads == reads {
                let (pulse, place) = (guard.pulse.clone(), guard.place.clone());
                silence.asked = Some(Box::pin(async move { pulse.is_alive(&place).await }));
            } else {
                silence.reads = reads;
                silence.timer.as_mut().reset(Instant::now() + SILENCE);
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(cx, out) {
            this.reads = this.reads.wrapping_add(1);
            return Poll::Ready(read);
        }
        ready!(this.poll_silence(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the database does not answer")))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Any stream.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// How PostgreSQL is reached.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<dyn Duplex>),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, out),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, out),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, out),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
