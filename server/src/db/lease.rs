//! A leased connection.
//!
//! On drop, a clean connection returns to its pool, and an open transaction is rolled back first. If a statement is
//! still running, it is cancelled and the connection is closed. So no role, claim or open transaction reaches the
//! next holder, and PostgreSQL does no work for abandoned requests.

use std::ops::Deref;
use std::time::Instant;

use deadpool::managed::Object;
use tokio::time::timeout;

use super::Client;
use super::limits::CANCEL;
use super::line::{Line, Turn};
use super::pool::Opener;

/// A connection for exclusive use. Do not hold it across a call to another service.
pub struct Lease {
    /// Until it is dropped.
    held: Option<Object<Opener>>,
    since: Instant,
    /// Where requests wait in line: the line, which learns how long it was held, and the turn, which ends with it.
    turn: Option<(Line, Turn)>,
}

impl Lease {
    pub(super) fn new(held: Object<Opener>, turn: Option<(Line, Turn)>) -> Self {
        Self { held: Some(held), since: Instant::now(), turn }
    }

    /// Closes the connection instead of giving it back.
    pub fn close(mut self) {
        if let Some(held) = self.held.take() {
            Object::take(held).abandon();
        }
    }
}

impl Deref for Lease {
    type Target = Client;

    fn deref(&self) -> &Client {
        match &self.held {
            Some(held) => held,
            None => unreachable!("a lease has its connection until it is dropped"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let turn = self.turn.take().map(|(line, turn)| {
            line.note_hold(&turn, self.since.elapsed());
            turn
        });
        let Some(held) = self.held.take() else { return };
        if held.is_busy() || held.is_closed() {
            return Object::take(held).abandon();
        }
        if !held.in_transaction() {
            return held.rest();
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(clean(held, turn))),
            Err(_) => Object::take(held).abandon(),
        }
    }
}

/// Ends the transaction that was left open, then gives the connection and its turn back.
async fn clean(held: Object<Opener>, _turn: Option<Turn>) {
    match timeout(CANCEL, held.batch_execute("rollback")).await {
        Ok(Ok(())) => held.rest(),
        Ok(Err(_)) | Err(_) => Object::take(held).abandon(),
    }
}
