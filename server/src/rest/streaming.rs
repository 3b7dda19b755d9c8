//! Streams a long answer to a client, which may stop reading.

use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

/// How long a client may not read before its answer is dropped, with its memory and files.
pub const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A client may take this time for its answer, extended by what it has read at this rate, in bytes per second: as for
/// bodies that are passed on. Waiting for PostgreSQL does not count.
const SLOWEST: (Duration, u64) = (Duration::from_secs(120), 8 << 10);

/// The rest of a result between two reads.
struct Remainder<S> {
    /// `None` while the next piece is being read, and after the end.
    rest: Option<S>,
    since: Instant,
    /// How many bytes the client has got, and how long all of them waited for it.
    delivered: u64,
    waited: Duration,
    is_given_up: bool,
}

impl<S> Remainder<S> {
    fn of(rows: S) -> Self {
        let (delivered, waited) = (0, Duration::ZERO);
        Self { rest: Some(rows), since: Instant::now(), delivered, waited, is_given_up: false }
    }

    /// The rows, for reading the next piece.
    fn take(&mut self) -> Option<S> {
        let rows = self.rest.take()?;
        self.waited += self.since.elapsed();
        Some(rows)
    }

    /// After `length` bytes were read.
    fn put_back(&mut self, rows: S, length: usize) {
        self.delivered += length as u64;
        (self.rest, self.since) = (Some(rows), Instant::now());
    }

    /// Whether the client reads, but too slowly. `unread` is how long the next piece has been waiting.
    fn is_too_slow(&self, unread: Duration) -> bool {
        self.waited + unread > SLOWEST.0 + Duration::from_secs(self.delivered / SLOWEST.1)
    }
}

/// The pieces of `rows` on demand. If none is requested for `idle_timeout`, or over a long time too little, `rows` is dropped
/// and the next request gets an error.
pub fn pieces<S, E>(rows: S, idle_timeout: Duration) -> impl Stream<Item = io::Result<Bytes>> + use<S, E>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin + 'static,
    E: std::fmt::Display,
{
    let remainder = Rc::new(RefCell::new(Remainder::of(rows)));
    actix_web::rt::spawn(watch(Rc::downgrade(&remainder), idle_timeout));
    stream::unfold(remainder, |remainder| async move {
        let taken = remainder.borrow_mut().take();
        let Some(mut rows) = taken else {
            let was_given_up = std::mem::take(&mut remainder.borrow_mut().is_given_up);
            return was_given_up
                .then(|| (Err(io::Error::other("the client did not read for too long, or too slowly")), remainder));
        };
        let piece = rows.next().await?.map_err(|error| io::Error::other(error.to_string()));
        if let Ok(piece) = &piece {
            remainder.borrow_mut().put_back(rows, piece.len());
        }
        Some((piece, remainder))
    })
}

/// Ends with the stream or after the timeout.
async fn watch<S>(remainder: Weak<RefCell<Remainder<S>>>, idle_timeout: Duration) {
    let mut pause = idle_timeout;
    loop {
        actix_web::rt::time::sleep(pause).await;
        let Some(remainder) = remainder.upgrade() else { return };
        let mut remainder = remainder.borrow_mut();
        let unread = remainder.since.elapsed();
        if remainder.rest.is_none() {
            pause = idle_timeout;
        } else if unread < idle_timeout && !remainder.is_too_slow(unread) {
            pause = idle_timeout - unread;
        } else {
            tracing::warn!(
                seconds = unread.as_secs(),
                "a client left its result unread or read it too slowly: given up"
            );
            remainder.rest = None;
            remainder.is_given_up = true;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const SOON: Duration = Duration::from_millis(20);

    /// Three pieces, and a flag that is set when they are dropped.
    fn rows() -> (impl Stream<Item = Result<Bytes, String>> + Unpin + 'static, Rc<Cell<bool>>) {
        struct Held(Rc<Cell<bool>>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let is_free = Rc::new(Cell::new(false));
        let held = Held(is_free.clone());
        let rows = stream::iter(["a", "b", "c"]).map(move |text| {
            let _ = &held;
            Ok(Bytes::from_static(text.as_bytes()))
        });
        (rows, is_free)
    }

    #[actix_web::test]
    async fn readers_get_all_rows_and_the_end() {
        let (rows, is_free) = rows();
        let read: Vec<_> = pieces(rows, Duration::from_secs(60)).map(|piece| piece.expect("a piece")).collect().await;
        assert_eq!(read, ["a", "b", "c"]);
        assert!(is_free.get());
    }

    #[actix_web::test]
    async fn a_reader_that_stops_frees_the_rows_and_gets_an_error() {
        let (rows, is_free) = rows();
        let mut stream = Box::pin(pieces(rows, SOON));
        assert_eq!(stream.next().await.expect("a piece").expect("read"), "a");
        while !is_free.get() {
            actix_web::rt::time::sleep(SOON).await;
        }
        assert!(stream.next().await.expect("an answer").is_err());
        assert!(stream.next().await.is_none());
    }

    #[actix_web::test]
    async fn a_disconnected_client_leaves_nothing_behind() {
        let (rows, is_free) = rows();
        drop(pieces(rows, Duration::from_secs(60)));
        assert!(is_free.get());
    }

    #[actix_web::test]
    async fn waiting_for_the_database_does_not_count_against_the_client() {
        let slow = stream::once(Box::pin(async {
            actix_web::rt::time::sleep(SOON * 5).await;
            Ok::<_, String>(Bytes::from_static(b"late"))
        }));
        let mut stream = Box::pin(pieces(Box::pin(slow), SOON));
        assert_eq!(stream.next().await.expect("a piece").expect("in time"), "late");
    }

    #[test]
    fn only_a_long_time_below_the_lowest_rate_is_too_slow() {
        let minute = Duration::from_secs(60);
        let after = |waited: Duration, delivered: u64| Remainder { waited, delivered, ..Remainder::of(()) };
        assert!(!after(2 * minute, 0).is_too_slow(Duration::ZERO), "any rate at first");
        assert!(!after(3 * minute, 60 * SLOWEST.1).is_too_slow(Duration::ZERO));
        assert!(after(3 * minute, 60 * SLOWEST.1).is_too_slow(Duration::from_secs(1)), "the piece that waits counts");
        assert!(!after(60 * minute, 1 << 30).is_too_slow(minute));
    }

    /// Regression: a client that read a little now and then kept the answer's files for hours.
    #[actix_web::test]
    async fn a_reader_below_the_lowest_rate_is_given_up() {
        let timeout = Duration::from_secs(1);
        for delivered in [1 << 30, 1 << 20] {
            let (rows, is_free) = rows();
            let remainder = Rc::new(RefCell::new(Remainder::of(rows)));
            actix_web::rt::spawn(watch(Rc::downgrade(&remainder), timeout));
            actix_web::rt::time::sleep(timeout / 2).await;
            let rows = remainder.borrow_mut().take().expect("rows");
            assert!(remainder.borrow().waited >= timeout / 2);
            remainder.borrow_mut().put_back(rows, delivered);
            remainder.borrow_mut().waited = Duration::from_secs(3600);
            // Not unread for long, when the watch looks.
            actix_web::rt::time::sleep(timeout * 3 / 4).await;
            assert_eq!(is_free.get(), delivered == 1 << 20);
        }
    }
}
