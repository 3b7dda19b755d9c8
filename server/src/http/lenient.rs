//! A stream that mends request targets before the HTTP parser sees them.
//!
//! Clients send `?name=eq."x"` or `?a=gt.ü` unescaped, and the reference accepts that; our HTTP library refuses
//! targets with bytes that RFC 3986 requires to be escaped. So these bytes are escaped here, and nothing else is
//! changed. To find request lines, the stream follows the framing of HTTP/1.1. Where it cannot (another protocol,
//! lines without CR), it passes everything on unchanged, so that the library can refuse it at once.
//!
//! A request is passed on after the previous one was answered ([`super::gate`]). A client that has closed its sending
//! side may still wait for an answer, so it is only treated as gone after a moment.
//!
//! A client that takes nothing of an answer for too long loses its connection, because the whole answer waits in memory.
//!
//! A stream that switches to another protocol is taken out here ([`super::takeover`]).
//!
//! A request of a flood is answered here, and the HTTP library never learns of it ([`super::door`]).

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use memchr::{memchr, memchr_iter, memmem};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::connection::KEEP_ALIVE;
use super::door::{Doorway, Refusal};
use super::gate::Gate;
use super::room::{LongHead, Place};
use super::takeover::{Taken, Takeover};

/// Longer heads are passed on unchanged; the HTTP parser refuses them.
const LONGEST_HEAD: usize = 128 << 10;

/// While more than this of a head waits for its end, it needs a [`LongHead`]. So does a line of a chunked body.
const COMMON_HEAD: usize = 16 << 10;

/// When a client that has closed its sending side counts as gone: after the first time if an answer is pending and no
/// byte of it was written, or after the second if none is pending, so that the last bytes can be sent.
const HALF_CLOSED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(50));

/// How long a client may take nothing of what is being written (as over HTTP/2), and how long it may send a body that is dropped.
const STALLED: Duration = KEEP_ALIVE;

static END_OF_HEAD: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"\r\n\r\n"));

/// Mends the request targets read from `S`; writes go through untouched, but not for longer than the client takes them.
pub struct Lenient<S> {
    /// `None` once the connection has been taken over.
    inner: Option<S>,
    mender: FramingRewriter,
    gate: Rc<Gate>,
    takeover: Rc<Takeover>,
    /// Whether the inner stream has ended; collected bytes may still have to be passed on.
    ended: bool,
    /// When something was last written, or when the stream ended.
    moved: Instant,
    /// The delay before the end is reported.
    holding: Option<Pin<Box<Sleep>>>,
    /// While a write is pending: when it fails.
    stalled: Option<Pin<Box<Sleep>>>,
    /// While a long head is gathered.
    long_head: Option<LongHead>,
    /// Until when a body that is dropped has to be there.
    dropping: Option<Pin<Box<Sleep>>>,
    /// [`STALLED`]
    patience: Duration,
}

impl<S> Lenient<S> {
    pub fn new(inner: S) -> Self {
        Self {
            inner: Some(inner),
            mender: FramingRewriter::default(),
            gate: Rc::default(),
            takeover: Rc::default(),
            ended: false,
            moved: Instant::now(),
            holding: None,
            stalled: None,
            long_head: None,
            dropping: None,
            patience: STALLED,
        }
    }

    /// For a protocol that is not HTTP/1.1: passes everything on unchanged.
    pub fn opaque(inner: S) -> Self {
        Self { mender: FramingRewriter { part: Part::Opaque, ..FramingRewriter::default() }, ..Self::new(inner) }
    }

    /// With what may refuse its requests.
    pub fn through(mut self, doorway: Rc<Doorway>) -> Self {
        self.mender.doorway = Some(doorway);
        self
    }

    /// With its place among the connections.
    pub fn at(self, place: Place) -> Self {
        self.takeover.keep(place);
        self
    }

    pub fn doorway(&self) -> Option<&Rc<Doorway>> {
        self.mender.doorway.as_ref()
    }

    /// Shut while an answer is pending.
    pub fn gate(&self) -> &Rc<Gate> {
        &self.gate
    }

    /// For taking over the connection.
    pub fn takeover(&self) -> &Rc<Takeover> {
        &self.takeover
    }

    /// Whether what has been gathered may wait in memory.
    fn may_gather(&mut self) -> bool {
        // What waits for an earlier answer is no longer than a single read.
        let is_waiting = self.mender.part == Part::Opaque || self.mender.is_held(&self.gate);
        let is_long = !is_waiting && self.mender.gathered.len() > COMMON_HEAD;
        if !is_long {
            self.long_head = None;
        } else if self.long_head.is_none()
            && let Some(place) = self.takeover.place()
        {
            self.long_head = place.long_head();
            return self.long_head.is_some();
        }
        true
    }

    /// Nothing more is read.
    fn end(&mut self) {
        self.ended = true;
        self.moved = Instant::now();
    }

    /// The clock is read only after the client has closed its sending side.
    fn note_written(&mut self) {
        if self.ended {
            self.moved = Instant::now();
        }
    }

    /// Ends a write that has been pending for too long. Each completed one starts the time anew.
    fn bound<T>(&mut self, writing: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if writing.is_ready() {
            self.stalled = None;
            return writing;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client did not read the answer")))
    }

    /// Whether a client has not sent all of a body that is dropped for too long. Otherwise each byte would give it as much time again.
    fn is_body_late(&mut self, context: &mut Context<'_>) -> bool {
        if !matches!(self.mender.part, Part::Dropped(_)) {
            self.dropping = None;
            return false;
        }
        let dropping = self.dropping.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        dropping.as_mut().poll(context).is_ready()
    }

    /// Ready when a client that has closed its sending side counts as gone.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let timeout = if self.gate.is_shut() { HALF_CLOSED.0 } else { HALF_CLOSED.1 };
            let end = self.moved + timeout;
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            self.gate.wait(context.waker());
            let holding = self.holding.get_or_insert_with(|| Box::pin(sleep_until(end)));
            holding.as_mut().reset(end);
            ready!(holding.as_mut().poll(context));
        }
    }
}

impl<S: AsyncWrite + Unpin> Lenient<S> {
    /// Ready when the refusal that is pending has been sent. Its time is waited for unless `is_closing`.
    fn poll_refuse(&mut self, context: &mut Context<'_>, is_closing: bool) -> Poll<io::Result<()>> {
        while let Some(refusal) = &mut self.mender.refusal
            && let Some(inner) = &mut self.inner
        {
            if refusal.sent == 0 && !is_closing {
                ready!(refusal.due.as_mut().poll(context));
            }
            let rest = &refusal.bytes[refusal.sent..];
            if rest.is_empty() {
                let flushing = Pin::new(inner).poll_flush(context);
                ready!(self.bound(flushing, context))?;
                if let Some(refusal) = self.mender.refusal.take() {
                    refusal.note_sent();
                }
                break;
            }
            let writing = Pin::new(inner).poll_write(context, rest);
            let written = ready!(self.bound(writing, context))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if let Some(refusal) = &mut self.mender.refusal {
                refusal.sent += written;
            }
            self.note_written();
        }
        Poll::Ready(Ok(()))
    }
}

/// `pieces` as one mended stream, for property tests.
pub fn mended<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut mender = FramingRewriter::default();
    for piece in pieces {
        mender.feed(piece, &Gate::default());
        // Each request is answered at once.
        while mender.step(&Gate::default()) {}
    }
    mender.end();
    mender.out.to_vec()
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// The remaining bytes of a body.
    Body(u64),
    /// The remaining bytes of a body whose request is refused at the door: they are dropped.
    Dropped(u64),
    /// The line with a chunk's length.
    ChunkLength,
    /// The remaining bytes of a chunk, including its line end.
    Chunk(u64),
    /// Trailer lines after the last chunk, up to an empty one.
    Trailer,
    /// Not HTTP that we follow: upgraded, another protocol, or malformed.
    Opaque,
}

/// The framing, and bytes between in and out.
#[derive(Default)]
struct FramingRewriter {
    part: Part,
    gathered: BytesMut,
    out: BytesMut,
    doorway: Option<Rc<Doorway>>,
    /// The answer to a request that is not passed on. The next one waits for it.
    refusal: Option<Refusal>,
    /// Whether all answers to requests that were passed on have been written, and there was one.
    is_written: bool,
}

impl FramingRewriter {
    fn feed(&mut self, bytes: &[u8], gate: &Gate) {
        if self.part == Part::Opaque && self.gathered.is_empty() {
            self.out.extend_from_slice(bytes);
            return;
        }
        self.gathered.extend_from_slice(bytes);
        while self.step(gate) {}
    }

    /// The parser refuses an incomplete request.
    fn end(&mut self) {
        self.part = Part::Opaque;
        let rest = self.gathered.split();
        self.out.unsplit(rest);
    }

    /// Whether another request has (partly) arrived and must wait.
    fn is_held(&self, gate: &Gate) -> bool {
        self.part == Part::Head && !self.gathered.is_empty() && gate.is_shut()
    }

    /// Whether a refusal has to be sent before anything else. A client may send a whole body before it looks for an answer.
    fn is_refusal_next(&self) -> bool {
        self.refusal.is_some() && !matches!(self.part, Part::Dropped(_))
    }

    /// Passes on what it can; false if it needs more input or the previous answer.
    fn step(&mut self, gate: &Gate) -> bool {
        if self.is_held(gate) || self.is_refusal_next() {
            return false;
        }
        if self.gathered.is_empty() {
            return false;
        }
        match self.part {
            Part::Opaque => {
                let all = self.gathered.split();
                self.out.unsplit(all);
                false
            }
            Part::Body(left) | Part::Chunk(left) => {
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(self.gathered.len());
                let passed = self.gathered.split_to(take);
                self.out.extend_from_slice(&passed);
                let left = left - take as u64;
                self.part = match (self.part, left) {
                    (Part::Body(_), 0) => Part::Head,
                    (Part::Body(_), left) => Part::Body(left),
                    (_, 0) => Part::ChunkLength,
                    (_, left) => Part::Chunk(left),
                };
                true
            }
            Part::Dropped(left) => {
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(self.gathered.len());
                self.gathered.advance(take);
                let left = left - take as u64;
                self.part = if left == 0 { Part::Head } else { Part::Dropped(left) };
                true
            }
            Part::ChunkLength => {
                let Some(line) = self.line() else { return self.give_up_if_long() };
                if self.is_strange_line(&line) {
                    return true;
                }
                let digits = line[..].split(|b| matches!(b, b';' | b'\r' | b' ')).next().unwrap_or_default();
                let length = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
                self.part = match length {
                    Some(0) => Part::Trailer,
                    Some(length) if length < u64::MAX - 2 => Part::Chunk(length + 2),
                    _ => Part::Opaque,
                };
                self.out.extend_from_slice(&line);
                true
            }
            Part::Trailer => {
                let Some(line) = self.line() else { return self.give_up_if_long() };
                if self.is_strange_line(&line) {
                    return true;
                }
                if line.iter().all(|b| matches!(b, b'\r' | b'\n')) {
                    self.part = Part::Head;
                }
                self.out.extend_from_slice(&line);
                true
            }
            Part::Head => {
                // Passed on, they would be a request that is never answered.
                while self.gathered.starts_with(b"\r\n") {
                    self.gathered.advance(2);
                }
                let Some(end) = END_OF_HEAD.find(&self.gathered) else {
                    if is_strange(&self.gathered) {
                        self.part = Part::Opaque;
                        return true;
                    }
                    return self.give_up_if_long();
                };
                // As if it had arrived in pieces.
                if is_strange(&self.gathered[..end + 4]) {
                    self.part = Part::Opaque;
                    return true;
                }
                let head = self.gathered.split_to(end + 4);
                self.refusal = self.doorway.as_ref().and_then(|doorway| doorway.judge(&head, self.is_written));
                self.part = after(&head);
                if self.refusal.is_some() {
                    if let Part::Body(left) = self.part {
                        self.part = Part::Dropped(left);
                    }
                    return true;
                }
                self.is_written = false;
                gate.note_passed();
                mend_head(&head, &mut self.out);
                true
            }
        }
    }

    fn line(&mut self) -> Option<BytesMut> {
        let end = self.gathered.iter().position(|b| *b == b'\n')?;
        Some(self.gathered.split_to(end + 1))
    }

    /// Passes on a line of a chunked body that does not end as the HTTP library expects: only it knows where the body ends then.
    fn is_strange_line(&mut self, line: &[u8]) -> bool {
        let is_strange = !line.ends_with(b"\r\n");
        if is_strange {
            self.out.extend_from_slice(line);
            self.part = Part::Opaque;
        }
        is_strange
    }

    fn give_up_if_long(&mut self) -> bool {
        let too_long = self.gathered.len() > LONGEST_HEAD;
        if too_long {
            self.part = Part::Opaque;
        }
        too_long
    }
}

/// Whether this cannot be the beginning of a head: it does not begin like a method, or a line ends without CR.
fn is_strange(head: &[u8]) -> bool {
    let begins = head.iter().find(|b| !matches!(b, b'\r' | b'\n'));
    let is_method = begins.is_none_or(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b));
    !is_method || memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

/// What follows a head.
fn after(head: &[u8]) -> Part {
    let mut part = Part::Head;
    for end in memchr_iter(b'\n', head) {
        let rest = &head[end + 1..];
        // The relevant names begin with one of these.
        if !matches!(rest.first(), Some(b'c' | b'C' | b't' | b'T' | b'u' | b'U')) {
            continue;
        }
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        let Some(colon) = memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            part = match (part, length) {
                (Part::Opaque, _) | (_, None) => Part::Opaque,
                (_, Some(0)) => Part::Head,
                (_, Some(length)) => Part::Body(length),
            };
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return if value.eq_ignore_ascii_case(b"chunked") { Part::ChunkLength } else { Part::Opaque };
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            return Part::Opaque;
        }
    }
    part
}

/// Copies a head, escaping the target of its request line if necessary.
fn mend_head(head: &[u8], out: &mut BytesMut) {
    let line_end = head.iter().position(|b| *b == b'\r').unwrap_or(head.len());
    let line = &head[..line_end];
    let target = line.iter().position(|b| *b == b' ').zip(line.iter().rposition(|b| *b == b' '));
    let Some((start, end)) = target.filter(|(start, end)| start < end) else {
        out.extend_from_slice(head);
        return;
    };
    if line[start + 1..end].iter().all(|b| is_plain(*b)) {
        out.extend_from_slice(head);
        return;
    }
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&head[..=start]);
    for &b in &line[start + 1..end] {
        if is_plain(b) || b == b' ' {
            out.extend_from_slice(&[b]);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
        }
    }
    out.extend_from_slice(&head[end..]);
}

/// Whether the HTTP library accepts the byte in path and query. It would end the target at `#`.
fn is_plain(b: u8) -> bool {
    matches!(b, 0x21 | 0x24..=0x3B | 0x3D | 0x3F..=0x5F | 0x61..=0x7E)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Lenient<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.inner.is_none() {
                return Poll::Ready(Ok(()));
            }
            if !this.mender.out.is_empty() {
                let n = this.mender.out.len().min(buf.remaining());
                buf.put_slice(&this.mender.out[..n]);
                this.mender.out.advance(n);
                return Poll::Ready(Ok(()));
            }
            if buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if this.mender.is_refusal_next() {
                ready!(this.poll_refuse(cx, false))?;
            }
            if !this.mender.gathered.is_empty() {
                while this.mender.step(&this.gate) {}
                if !this.mender.out.is_empty() || this.mender.is_refusal_next() {
                    continue;
                }
                if this.mender.is_held(&this.gate) && !this.ended {
                    this.gate.wait(cx.waker());
                    return Poll::Pending;
                }
            }
            if this.ended {
                ready!(this.poll_end(cx));
                this.mender.end();
                if this.mender.out.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            if this.is_body_late(cx) {
                this.end();
                continue;
            }
            let before = buf.filled().len();
            let Some(inner) = &mut this.inner else { return Poll::Ready(Ok(())) };
            ready!(Pin::new(inner).poll_read(cx, buf))?;
            let read = buf.filled().len() - before;
            if read == 0 {
                this.end();
                continue;
            }
            // Bytes of a body need no second copy.
            if let Part::Body(left) = this.mender.part
                && this.mender.gathered.is_empty()
                && (read as u64) < left
            {
                this.mender.part = Part::Body(left - read as u64);
                return Poll::Ready(Ok(()));
            }
            if this.mender.part == Part::Opaque && this.mender.gathered.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let bytes = buf.filled()[before..].to_vec();
            buf.set_filled(before);
            this.mender.feed(&bytes, &this.gate);
            if !this.may_gather() {
                return Poll::Ready(Err(io::Error::other("too many clients send long heads")));
            }
        }
    }
}

/// After a takeover, writes are discarded (HTTP writes nothing more).
impl<S: AsyncRead + AsyncWrite + Unpin + 'static> AsyncWrite for Lenient<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(Ok(buf.len())) };
        let writing = Pin::new(inner).poll_write(cx, buf);
        let written = ready!(this.bound(writing, cx));
        this.note_written();
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(Ok(())) };
        let flushing = Pin::new(inner).poll_flush(cx);
        ready!(this.bound(flushing, cx))?;
        this.mender.is_written |= !this.gate.is_shut() && this.gate.has_passed();
        if this.takeover.is_due()
            && let Some(wire) = this.inner.take()
        {
            this.mender.end();
            let early = std::mem::take(&mut this.mender.out);
            this.takeover.hand_over(Taken { wire: Box::new(wire), early });
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refuse(cx, true))?;
        let Some(inner) = &mut this.inner else { return Poll::Ready(Ok(())) };
        let closing = Pin::new(inner).poll_shutdown(cx);
        this.bound(closing, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum())) };
        let writing = Pin::new(inner).poll_write_vectored(cx, bufs);
        let written = ready!(this.bound(writing, cx));
        this.note_written();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    /// The stream after mending, fed in pieces of `step` bytes.
    fn mended(input: &str, step: usize) -> String {
        let mut mender = FramingRewriter::default();
        for piece in input.as_bytes().chunks(step) {
            mender.feed(piece, &Gate::default());
            while mender.step(&Gate::default()) {}
        }
        String::from_utf8_lossy(&mender.out).into_owned()
    }

    #[test]
    fn impossible_requests_are_passed_on_at_once() {
        let ended_otherwise = "GET /\" HTTP/1.1\nHost: h\r\n\r\n";
        for strange in ["\x16\x03\x01\x02", "GET / HTTP/1.1\nHost: h\n\n", "\n", "(", "GET /\n", ended_otherwise] {
            for step in [1, 7, strange.len()] {
                assert_eq!(mended(strange, step), strange, "{strange:?}");
            }
        }
        for begun in ["GET / HTTP/1.1\r\nHost: h\r\n", "\r\nGET", "get"] {
            assert_eq!(mended(begun, 1), "", "{begun:?} may become one");
        }
    }

    /// Regression: `\r\n\r\n` counted as a head, whose answer everything after it waited for, even the end of the connection.
    #[test]
    fn blank_lines_before_a_head_are_left_out() {
        let request = "GET / HTTP/1.1\r\n\r\n";
        let input = format!("\r\n{request}\r\n\r\n\r\n{request}\r\n");
        for step in [1, 3, input.len()] {
            assert_eq!(mended(&input, step), [request; 2].concat(), "in steps of {step}");
        }
    }

    /// The HTTP library reads on to the next line end of its kind, so what follows here may be no request.
    #[test]
    fn lines_of_a_chunked_body_that_end_otherwise_are_not_followed() {
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let hidden = "GET /\" HTTP/1.1\r\n\r\n";
        for body in ["0\n\r\n", "0\r\n\n", "0\r\nX: a\n\r\n", "1;\nx\r\n0\r\n\r\n"] {
            let input = [head, body, hidden].concat();
            for step in [1, 7, input.len()] {
                assert_eq!(mended(&input, step), input, "{body:?} in steps of {step}");
            }
        }
        let followed = [head, "0\r\nX: a\r\n\r\n", hidden].concat();
        assert!(mended(&followed, 1).ends_with("GET /%22 HTTP/1.1\r\n\r\n"));
    }

    #[test]
    fn a_request_waits_for_the_answer_to_the_one_before() {
        let (mut mender, gate) = (FramingRewriter::default(), Rc::<Gate>::default());
        mender.feed(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\nnonsense\n", &gate);
        assert_eq!(&mender.out[..], b"GET /1 HTTP/1.1\r\n\r\n");
        drop(super::super::gate::Opening::of(&gate));
        mender.feed(b"", &gate);
        assert!(mender.out.ends_with(b"close\r\n\r\n"));
        drop(super::super::gate::Opening::of(&gate));
        mender.feed(b"", &gate);
        assert!(mender.out.ends_with(b"nonsense\n"));
    }

    #[test]
    fn targets_are_escaped_and_bodies_are_not() {
        let cases = [
            ("GET /t?a=eq.\"x\" HTTP/1.1\r\nHost: h\r\n\r\n", "GET /t?a=eq.%22x%22 HTTP/1.1\r\nHost: h\r\n\r\n"),
            ("GET /ü?a=<>`#f HTTP/1.1\r\n\r\n", "GET /%C3%BC?a=%3C%3E%60%23f HTTP/1.1\r\n\r\n"),
            ("GET /plain?a=eq.1 HTTP/1.1\r\n\r\n", "GET /plain?a=eq.1 HTTP/1.1\r\n\r\n"),
            (
                "POST /t HTTP/1.1\r\nContent-Length: 19\r\n\r\nGET /\" HTTP/1.1\r\n\r\nGET /\" HTTP/1.1\r\n\r\n",
                "POST /t HTTP/1.1\r\nContent-Length: 19\r\n\r\nGET /\" HTTP/1.1\r\n\r\nGET /%22 HTTP/1.1\r\n\r\n",
            ),
            (
                "POST /t HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n/\"a\r\n0\r\n\r\nGET /\" HTTP/1.1\r\n\r\n",
                "POST /t HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n/\"a\r\n0\r\n\r\nGET /%22 HTTP/1.1\r\n\r\n",
            ),
            (
                "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\nGET /\" x\r\n\r\n",
                "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\nGET /\" x\r\n\r\n",
            ),
        ];
        for (input, output) in cases {
            for step in [1, 7, input.len()] {
                assert_eq!(mended(input, step), output, "in steps of {step}");
            }
        }
    }

    #[tokio::test]
    async fn a_stream_that_ends_in_mid_head_ends_for_the_reader_too() {
        use tokio::io::AsyncReadExt;
        let mut text = String::new();
        let stream = tokio::io::join(&b"GET / HTTP/1.1\r\nHost"[..], tokio::io::sink());
        Lenient::new(stream).read_to_string(&mut text).await.expect("read");
        assert_eq!(text, "GET / HTTP/1.1\r\nHost");
    }

    const SHORT: Duration = Duration::from_millis(400);

    /// Regression: such an answer stayed in memory until the client left.
    #[tokio::test]
    async fn a_client_that_stops_reading_loses_its_connection() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        for is_vectored in [false, true] {
            let (server, mut client) = tokio::io::duplex(1 << 10);
            let mut stream = Lenient { patience: SHORT, ..Lenient::new(server) };
            let begun = Instant::now();
            let writing = async {
                let answer = vec![b'a'; 8 << 10];
                if is_vectored {
                    while stream.write_vectored(&[io::IoSlice::new(&answer)]).await? > 0 {}
                }
                stream.write_all(&answer).await
            };
            let reading = async {
                tokio::time::sleep(SHORT / 2).await;
                client.read_exact(&mut [0; 1 << 10]).await
            };
            let both = tokio::time::timeout(SHORT * 20, async { tokio::join!(writing, reading) });
            let (written, read) = both.await.expect("given up");
            assert!(read.is_ok());
            assert!(written.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
            let lasted = begun.elapsed();
            assert!(lasted >= SHORT * 3 / 2, "{lasted:?} since the last byte it took");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_dropped_comes_in_time_or_is_the_last() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (server, mut client) = tokio::io::duplex(16);
        let mut stream = Lenient { patience: SHORT, ..Lenient::new(server) };
        stream.mender.part = Part::Dropped(1 << 10);
        let begun = Instant::now();
        let dribbling = async {
            while client.write_all(b"a").await.is_ok() {
                sleep(SHORT / 8).await;
            }
        };
        let mut read = [0; 8];
        let ended = tokio::select! {
            ended = tokio::time::timeout(SHORT * 20, stream.read(&mut read)) => ended,
            () = dribbling => panic!("the stream is there"),
        };
        assert_eq!(ended.expect("given up").expect("an end"), 0);
        assert!(begun.elapsed() >= SHORT);
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_keeps_its_connection() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (server, mut client) = tokio::io::duplex(1 << 10);
        let mut stream = Lenient { patience: SHORT, ..Lenient::new(server) };
        let writing = async {
            for _ in 0..2 {
                stream.write_all(&[b'a'; 4 << 10]).await?;
                stream.flush().await?;
                assert!(stream.stalled.is_none(), "only while a write is pending");
                tokio::time::sleep(SHORT * 2).await;
            }
            stream.shutdown().await
        };
        let reading = async {
            let mut all = 0;
            loop {
                tokio::time::sleep(SHORT / 4).await;
                match client.read(&mut [0; 512]).await.expect("read") {
                    0 => return all,
                    read => all += read,
                }
            }
        };
        let (written, read) = tokio::join!(writing, reading);
        written.expect("written");
        assert_eq!(read, 8 << 10);
    }

    /// A flush that is never done, as of an encrypted stream whose client does not read.
    struct Stuck;

    impl AsyncRead for Stuck {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_flush_is_bounded_too() {
        use tokio::io::AsyncWriteExt;
        let mut stream = Lenient { patience: SHORT, ..Lenient::new(Stuck) };
        stream.write_all(b"a").await.expect("taken");
        for is_closing in [false, true] {
            let ending = async { if is_closing { stream.shutdown().await } else { stream.flush().await } };
            let ended = tokio::time::timeout(SHORT * 20, ending).await.expect("given up");
            assert!(ended.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        }
    }
}
