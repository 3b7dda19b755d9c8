//! Checks whether PostgreSQL answers, with one query on a dedicated connection.
//!
//! Used by health checks and by every connection whose answer is overdue: a statement may be slow, but a
//! database that answers nobody is down.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::Config;

use super::limits::{DOWN, PULSE, PULSE_AGE};
use super::open::{OpenError, open};
use super::{Client, DbError, with_causes};

/// The check. Clones share the connection and the last result.
#[derive(Clone)]
pub struct Pulse {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    state: Mutex<State>,
    /// When PostgreSQL was last found silent.
    silent: parking_lot::Mutex<Option<Instant>>,
}

#[derive(Default)]
struct State {
    client: Option<Client>,
    last: Option<(Instant, Sign)>,
}

/// What an attempt found.
#[derive(Clone, Debug)]
enum Sign {
    Well,
    /// It answers with an error: starting up, out of connections.
    Refuses(String),
    /// No answer: no host, no process, or a hanging one.
    Silent(String),
}

impl Pulse {
    pub(super) fn new(config: Config) -> Self {
        Self { shared: Arc::new(Shared { config, state: Mutex::default(), silent: parking_lot::Mutex::default() }) }
    }

    /// Whether PostgreSQL works. Takes at most [`PULSE`], plus the wait for concurrent callers.
    pub async fn answers(&self) -> Result<(), DbError> {
        match self.ask().await {
            Sign::Well => Ok(()),
            Sign::Refuses(text) | Sign::Silent(text) => Err(DbError::Connect(text)),
        }
    }

    /// Whether anything answers at all.
    pub(super) async fn is_alive(&self) -> bool {
        !matches!(self.ask().await, Sign::Silent(_))
    }

    /// Notes that a caller waited for PostgreSQL without an answer.
    pub(super) fn note_silence(&self) {
        *self.shared.silent.lock() = Some(Instant::now());
    }

    /// Whether PostgreSQL was found silent a moment ago, so that another attempt is pointless.
    pub(super) fn is_known_silent(&self) -> bool {
        self.shared.silent.lock().is_some_and(|at| at.elapsed() < DOWN)
    }

    async fn ask(&self) -> Sign {
        let mut state = self.shared.state.lock().await;
        if let Some((at, sign)) = &state.last
            && at.elapsed() < PULSE_AGE
        {
            return sign.clone();
        }
        let sign = match timeout(PULSE, state.ask(&self.shared.config)).await {
            Ok(sign) => sign,
            Err(_) => {
                state.client = None;
                Sign::Silent("the database does not answer".to_owned())
            }
        };
        match sign {
            Sign::Silent(_) => self.note_silence(),
            Sign::Well | Sign::Refuses(_) => *self.shared.silent.lock() = None,
        }
        state.last = Some((Instant::now(), sign.clone()));
        sign
    }
}

impl State {
    async fn ask(&mut self, config: &Config) -> Sign {
        if let Some(client) = self.client.take()
            && client.batch_execute("select 1").await.is_ok()
        {
            self.client = Some(client);
            return Sign::Well;
        }
        let client = match open(config, None).await {
            Ok(opened) => opened.into_client(),
            Err(OpenError::Refused(error)) => return Sign::Refuses(with_causes(&error)),
            Err(error) => return Sign::Silent(error.to_string()),
        };
        match client.batch_execute("select 1").await {
            Ok(()) => {
                self.client = Some(client);
                Sign::Well
            }
            Err(error) if error.as_db_error().is_some() => Sign::Refuses(with_causes(&error)),
            Err(error) => Sign::Silent(with_causes(&error)),
        }
    }
}
