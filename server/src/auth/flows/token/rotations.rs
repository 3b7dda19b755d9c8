//! Batches rotations of refresh tokens. Rotations requested while a statement runs go together into the next one. A single request
//! does not wait for others, and many at once cost the database a fraction of as many statements.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::found::{Found, columns};
use super::rotation;
use crate::auth::Auth;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;
use crate::auth::models::{now, user};
use crate::db::{DbError, Pool};

/// Statements that may run at a time, so that some run while another waits for the disk.
const STATEMENTS: usize = 3;

/// The most rotations in one statement.
const AT_A_TIME: usize = 32;

/// How long a statement may take. PostgreSQL ends it first (`statement_timeout` in [`BY_INDEX`]); if it does not, we cancel it.
/// Each token is then tried alone, with time left for that.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(4);

/// Makes the planner find the few rows by index, in the order in which the tables are written. Without these settings it starts
/// with all users, or reads whole tables, if a table was never analyzed or has grown since. These connections are used for nothing
/// else, so no other statement and no hook runs under these settings.
const BY_INDEX: &str = "set statement_timeout = '3500ms'; set join_collapse_limit = 1; set enable_seqscan = off; set enable_bitmapscan = off; \
    set enable_hashjoin = off; set enable_mergejoin = off; set jit = off";

/// A rotation requested by a client.
#[derive(Debug)]
pub struct Rotation {
    /// The token to replace.
    pub token: String,
    /// The new token, which is unique.
    pub successor: String,
    /// The OAuth client that must own the session; `None` for sessions without one.
    pub client: Option<Uuid>,
    /// The request's `User-Agent`.
    pub agent: Option<String>,
    pub address: Option<IpAddr>,
}

struct Waiting {
    rotation: Rotation,
    /// Dropped without an answer if the rotation was not made.
    answer: oneshot::Sender<Found>,
}

/// The batcher of one server process, shared by all workers.
pub struct Rotations {
    pool: Pool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// The number of tasks in [`work`] now.
    at_work: usize,
}

/// Held by a task in [`work`]. However the task ends, no request is left waiting for it.
struct AtWork {
    auth: Arc<Auth>,
    has_left: bool,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.has_left {
            let mut state = self.auth.rotations.state.lock();
            state.at_work -= 1;
            state.waiting.clear();
        }
    }
}

impl AtWork {
    /// The next batch, without requests that have gone meanwhile. Without any, the task leaves.
    fn next(&mut self) -> Option<Vec<Waiting>> {
        let mut state = self.auth.rotations.state.lock();
        state.forget_the_gone();
        if state.waiting.is_empty() {
            state.at_work -= 1;
            self.has_left = true;
            return None;
        }
        let count = state.waiting.len().min(AT_A_TIME);
        Some(state.waiting.drain(..count).collect())
    }
}

impl State {
    fn forget_the_gone(&mut self) {
        self.waiting.retain(|waiting| !waiting.answer.is_closed());
    }
}

impl Rotations {
    /// `beside` is the API's pool. A few more connections are opened to the same database.
    pub fn new(beside: &Pool) -> Result<Self, DbError> {
        Ok(Self { pool: beside.beside(STATEMENTS, Some(BY_INDEX))?, state: Mutex::default() })
    }

    /// Rotates a token if nothing speaks against it. Returns the rows as they were before.
    ///
    /// `None` if the token was not rotated, or if the outcome is unknown.
    pub async fn rotate(auth: &Arc<Auth>, rotation: Rotation) -> Option<Found> {
        let (answer, found) = oneshot::channel();
        let begins = {
            let mut state = auth.rotations.state.lock();
            state.forget_the_gone();
            state.waiting.push(Waiting { rotation, answer });
            let begins = state.at_work < STATEMENTS;
            state.at_work += usize::from(begins);
            begins
        };
        if begins {
            actix_web::rt::spawn(work(AtWork { auth: Arc::clone(auth), has_left: false }));
        }
        found.await.ok()
    }
}

/// Runs batches until the queue is empty.
async fn work(mut at_work: AtWork) {
    loop {
        let auth = Arc::clone(&at_work.auth);
        // Lease first: requests that arrive during the wait join this batch.
        let db = Db::acquire(&auth.rotations.pool).await;
        let Some(batch) = at_work.next() else { return };
        let failed = match db {
            // A lease that is dropped during a statement cancels it.
            Ok(db) => match tokio::time::timeout(STATEMENT_TIMEOUT, rotate_all(&auth, &db, batch)).await {
                Ok(done) => done.err(),
                Err(_) => Some(Fault::new("the statement took too long")),
            },
            Err(error) => Some(error.into_fault()),
        };
        if let Some(cause) = failed {
            // Each token is now tried alone and gets its own error.
            tracing::warn!(%cause, "refresh tokens could not be rotated together");
        }
    }
}

async fn rotate_all(auth: &Auth, db: &Db, batch: Vec<Waiting>) -> Result<(), Fault> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        rotation::within(include_str!("rotations.sql"), "$8::timestamptz")
            .replace("{columns}", &columns())
            .replace("{of_instance}", user::OF_INSTANCE)
    });
    fn each<'a, T>(batch: &'a [Waiting], part: impl Fn(&'a Rotation) -> T) -> Vec<T> {
        batch.iter().map(|waiting| part(&waiting.rotation)).collect()
    }
    let entry = |_: &Rotation| (!auth.config.audit_log_only).then(Uuid::new_v4);
    let rows = db
        .query(
            &SQL,
            &[
                &each(&batch, |rotation| rotation.token.as_str()),
                &each(&batch, |rotation| rotation.client),
                &each(&batch, |rotation| rotation.successor.as_str()),
                &each(&batch, |rotation| rotation.agent.as_deref()),
                &each(&batch, |rotation| rotation.address),
                &each(&batch, entry),
                &each(&batch, entry),
                &now(),
            ],
        )
        .await?;
    let mut answers: HashMap<String, oneshot::Sender<Found>> =
        batch.into_iter().map(|waiting| (waiting.rotation.successor, waiting.answer)).collect();
    for row in &rows {
        let Some(answer) = answers.remove(row.try_get::<_, &str>("successor")?) else { continue };
        match Found::from_row(row) {
            // A client that has gone gets the successor when it presents the old token again.
            Ok(found) => drop(answer.send(found)),
            Err(cause) => tracing::warn!(%cause, "a session that was refreshed cannot be read"),
        }
    }
    Ok(())
}
