//! Rotations of refresh tokens, several in one statement: those that are asked for while others are being written go
//! together next. Nobody waits who comes alone, and many at once cost the database a fraction of as many statements.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::refresh::{Found, columns};
use crate::auth::Auth;
use crate::auth::error::AuthResult;
use crate::auth::models::{now, user};
use crate::auth::store::Db;

/// Statements under way at a time: some are worked on while another waits for the disk.
const STATEMENTS: usize = 3;

/// Rotations in one statement at most.
const AT_A_TIME: usize = 32;

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
    /// Dropped without an answer where nothing was done.
    answer: oneshot::Sender<Found>,
}

/// The rotations of one instance. Shared by all workers.
#[derive(Default)]
pub struct Rotations {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// How many [`work`] at the moment.
    at_work: usize,
}

/// Held by who works; nobody is left waiting for who has ended, however it ended.
struct AtWork<'a>(&'a Rotations);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.at_work -= 1;
        if state.at_work == 0 {
            state.waiting.clear();
        }
    }
}

impl Rotations {
    /// Rotates a token if nothing speaks against it; what was found is told as it was before.
    ///
    /// `None` if it was passed over, or if the statement failed: then nothing was done.
    pub async fn rotate(&self, auth: &Arc<Auth>, rotation: Rotation) -> Option<Found> {
        let (answer, found) = oneshot::channel();
        let begins = {
            let mut state = self.state.lock();
            state.waiting.push(Waiting { rotation, answer });
            let begins = state.at_work < STATEMENTS;
            state.at_work += usize::from(begins);
            begins
        };
        if begins {
            actix_web::rt::spawn(work(Arc::clone(auth)));
        }
        found.await.ok()
    }

    /// The next that are to be done; who has gone meanwhile is left out.
    fn next(&self) -> Vec<Waiting> {
        let mut state = self.state.lock();
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        let count = state.waiting.len().min(AT_A_TIME);
        state.waiting.drain(..count).collect()
    }
}

/// Works until nothing is left to do.
async fn work(auth: Arc<Auth>) {
    let at_work = AtWork(&auth.rotations);
    loop {
        let batch = at_work.0.next();
        if batch.is_empty() {
            return;
        }
        if let Err(error) = rotate_all(&auth, batch).await {
            // Each of them is tried by itself now, and told what is wrong.
            tracing::debug!(?error, "refresh tokens could not be rotated together");
        }
    }
}

async fn rotate_all(auth: &Auth, batch: Vec<Waiting>) -> AuthResult<()> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        include_str!("rotations.sql").replace("{columns}", &columns()).replace("{of_instance}", user::OF_INSTANCE)
    });
    fn each<'a, T>(batch: &'a [Waiting], part: impl Fn(&'a Rotation) -> T) -> Vec<T> {
        batch.iter().map(|waiting| part(&waiting.rotation)).collect()
    }
    let entry = |_: &Rotation| (!auth.config.audit_log_only).then(Uuid::new_v4);
    let db = Db::acquire(&auth.pool).await?;
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
    drop(db);
    let mut answers: HashMap<String, oneshot::Sender<Found>> =
        batch.into_iter().map(|waiting| (waiting.rotation.successor, waiting.answer)).collect();
    for row in &rows {
        if let Some(answer) = answers.remove(row.try_get::<_, &str>("successor")?) {
            // Who has gone meanwhile finds the successor when the old token comes again.
            let _ = answer.send(Found::from_row(row)?);
        }
    }
    Ok(())
}
