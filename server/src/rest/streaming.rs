//! Streams a long answer to a client, which may stop reading.

use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

/// How long a client may not read before its answer is dropped, with its memory and files.
pub const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The rest of a result between two reads.
struct Shelf<S> {
    /// `None` while the next piece is being read, and after the end.
    rest: Option<S>,
    since: Instant,
    is_given_up: bool,
}

/// The pieces of `rows` on demand. If none is requested for `patience`, `rows` is dropped and the next request gets an
/// error.
pub fn pieces<S, E>(rows: S, patience: Duration) -> impl Stream<Item = io::Result<Bytes>> + use<S, E>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin + 'static,
    E: std::fmt::Display,
{
    let shelf = Rc::new(RefCell::new(Shelf { rest: Some(rows), since: Instant::now(), is_given_up: false }));
    actix_web::rt::spawn(watch(Rc::downgrade(&shelf), patience));
    stream::unfold(shelf, |shelf| async move {
        let taken = shelf.borrow_mut().rest.take();
        let Some(mut rows) = taken else {
            let was_given_up = std::mem::take(&mut shelf.borrow_mut().is_given_up);
            return was_given_up.then(|| (Err(io::Error::other("the client did not read for too long")), shelf));
        };
        let piece = rows.next().await?.map_err(|error| io::Error::other(error.to_string()));
        if piece.is_ok() {
            let mut shelf = shelf.borrow_mut();
            (shelf.rest, shelf.since) = (Some(rows), Instant::now());
        }
        Some((piece, shelf))
    })
}

/// Ends with the stream or after the timeout.
async fn watch<S>(shelf: Weak<RefCell<Shelf<S>>>, patience: Duration) {
    let mut pause = patience;
    loop {
        actix_web::rt::time::sleep(pause).await;
        let Some(shelf) = shelf.upgrade() else { return };
        let mut shelf = shelf.borrow_mut();
        let unread = shelf.since.elapsed();
        if shelf.rest.is_none() {
            pause = patience;
        } else if unread < patience {
            pause = patience - unread;
        } else {
            tracing::warn!(seconds = unread.as_secs(), "a client left its result unread: given up");
            shelf.rest = None;
            shelf.is_given_up = true;
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
    async fn who_reads_gets_everything_and_the_end() {
        let (rows, is_free) = rows();
        let read: Vec<_> = pieces(rows, Duration::from_secs(60)).map(|piece| piece.expect("a piece")).collect().await;
        assert_eq!(read, ["a", "b", "c"]);
        assert!(is_free.get());
    }

    #[actix_web::test]
    async fn who_stops_reading_frees_the_rows_and_hears_of_it() {
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
    async fn a_client_that_went_away_leaves_nothing_behind() {
        let (rows, is_free) = rows();
        drop(pieces(rows, Duration::from_secs(60)));
        assert!(is_free.get());
    }

    #[actix_web::test]
    async fn waiting_for_the_database_is_not_the_clients_fault() {
        let slow = stream::once(Box::pin(async {
            actix_web::rt::time::sleep(SOON * 5).await;
            Ok::<_, String>(Bytes::from_static(b"late"))
        }));
        let mut stream = Box::pin(pieces(Box::pin(slow), SOON));
        assert_eq!(stream.next().await.expect("a piece").expect("in time"), "late");
    }
}
