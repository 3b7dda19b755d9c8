//! Rotations of refresh tokens, several in one statement: those that are asked for while others are being written go
//! together next. Nobody waits who comes alone, and many at once cost the database a fraction of as many statements.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::found::{Found, columns};
use crate::auth::Auth;
use crate::auth::error::Fault;
use crate::auth::models::{now, user};
use crate::auth::store::Db;
use crate::db::{DbError, Pool};

/// Statements under way at a time: some are worked on while another waits for the disk.
const STATEMENTS: usize = 3;

/// Rotations in one statement at most.
const AT_A_TIME: usize = 32;

/// How long a statement may take. Who is in it then tries alone, and has time left for that.
const PATIENCE: Duration = Duration::from_secs(4);

/// The statement finds a few rows by an index, one table after the other as they are written. The planner thinks otherwise
/// where a table was never analyzed, or is small today and grows long before it looks again: it begins with all users,
/// or reads whole tables. Connections of its own, so that no other statement and no hook works under these settings.
const BY_INDEX: &str = "set join_collapse_limit = 1; set enable_seqscan = off; set enable_bitmapscan = off; \
    set enable_hashjoin = off; set enable_mergejoin = off; set jit = off";

/// One that is asked for.
#[derive(Debug)]
pub struct Rotation {
    /// The token that gives way.
    pub token: String,
    /// The new one; no two are alike.
    pub successor: String,
    /// The OAuth client whose session it has to be; `None` for sessions of no client.
    pub client: Option<Uuid>,
    /// The request's `User-Agent`.
    pub agent: Option<String>,
    pub address: Option<IpAddr>,
}

struct Waiting {
    rotation: Rotation,
    /// Dropped without an answer where there is none.
    answer: oneshot::Sender<Found>,
}

/// The rotations of one instance. Shared by all workers.
pub struct Rotations {
    pool: Pool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// How many [`work`] at the moment.
    at_work: usize,
}

/// Held by who works. However that ends, nobody is left waiting for it.
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
    /// The next that are to be done, without those who have gone meanwhile; leaves when there are none.
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
    /// `beside`: the API's connections. A few more are opened to the same database.
    pub fn new(beside: &Pool) -> Result<Self, DbError> {
        Ok(Self { pool: beside.beside(STATEMENTS, Some(BY_INDEX))?, state: Mutex::default() })
    }

    /// Rotates a token if nothing speaks against it; what was found is told as it was before.
    ///
    /// `None` if it was passed over, or if it is not known what became of it.
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

/// Works until nothing is left to do.
async fn work(mut at_work: AtWork) {
    loop {
        let auth = Arc::clone(&at_work.auth);
        // First, so that those who come while it is waited for are taken along.
        let db = Db::acquire(&auth.rotations.pool).await;
        let Some(batch) = at_work.next() else { return };
        let failed = match db {
            Ok(db) => match tokio::time::timeout(PATIENCE, rotate_all(&auth, &db, batch)).await {
                Ok(done) => done.err(),
                Err(_) => {
                    db.discard();
                    Some(Fault::new("the statement took too long"))
                }
            },
            Err(error) => Some(error.into_fault()),
        };
        if let Some(cause) = failed {
            // Each of them is tried by itself now, and told what is wrong.
            tracing::warn!(%cause, "refresh tokens could not be rotated together");
        }
    }
}

async fn rotate_all(auth: &Auth, db: &Db, batch: Vec<Waiting>) -> Result<(), Fault> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        include_str!("rotations.sql").replace("{columns}", &columns()).replace("{of_instance}", user::OF_INSTANCE)
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
            // Who has gone meanwhile is given the successor when the old token comes again.
            Ok(found) => drop(answer.send(found)),
            Err(cause) => tracing::warn!(%cause, "a session that was refreshed cannot be read"),
        }
    }
    Ok(())
}
