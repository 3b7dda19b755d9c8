//! Checks whether PostgreSQL answers, with one query on a dedicated connection.
//!
//! Used by health checks and by every connection whose answer is overdue: a statement may be slow, but a
//! database that answers nobody is down. With several hosts, one of them may be down while another one is well, so
//! what was found belongs to an address.

use std::sync::Arc;

use foldhash::HashMap;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use super::address::{Address, Place, SilentAddresses};
use super::limits::{DOWN, LOGIN_AGE, PULSE, PULSE_AGE};
use super::open::{OpenError, answers_at, open_for_pulse};
use super::pool::named;
use super::{Client, DbError, with_causes};

const NO_ANSWER: &str = "the database does not answer";

/// The check. Clones share the connection and the last result.
#[derive(Clone)]
pub struct Pulse {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    /// The server behind the pooler that `config` names. A pooler lets statements wait for a connection, so that only
    /// its login is checked, and the server beside it.
    behind: Option<Pulse>,
    state: Mutex<State>,
    /// When PostgreSQL was last found silent.
    silent: parking_lot::Mutex<Option<Instant>>,
    addresses: SilentAddresses,
    /// When an address that was found silent was last asked again in vain.
    asked_again: Mutex<HashMap<Address, Instant>>,
}

#[derive(Default)]
struct State {
    client: Option<(Client, Address)>,
    /// Goes on while nobody asks: a silent host takes longer than a caller waits.
    opening: Option<JoinHandle<Opened>>,
    last: Option<(Instant, Sign)>,
}

/// How opening a connection ended, and when.
struct Opened {
    outcome: Result<(Client, Address), OpenError>,
    at: Instant,
}

/// What an attempt found.
#[derive(Clone, Debug)]
enum Sign {
    /// It works at this address.
    Well(Address),
    /// It answers with an error: starting up, out of connections, no primary among the hosts. Or it could not be asked,
    /// for which it is not to blame.
    Refuses(String),
    /// A connection is being opened; some host may be silent, others were not tried yet.
    Connecting,
    /// No answer: no host, no process, or a hanging one.
    Silent(String),
}

impl Pulse {
    pub(super) fn new(config: Config) -> Self {
        Self::of(config, None)
    }

    /// The check of a pooler that hands connections on between transactions, and of the `server` behind it.
    pub fn of_pooler(url: &str, server: &Self) -> Result<Self, DbError> {
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| DbError::Url(with_causes(&e)))?;
        // Whether a session may write, only the server knows.
        config.target_session_attrs(TargetSessionAttrs::Any);
        Ok(Self::of(named(config, "ferrobase health"), Some(server.clone())))
    }

    fn of(config: Config, behind: Option<Self>) -> Self {
        let (state, silent) = (Mutex::default(), parking_lot::Mutex::default());
        let (addresses, asked_again) = (SilentAddresses::default(), Mutex::default());
        Self { shared: Arc::new(Shared { config, behind, state, silent, addresses, asked_again }) }
    }

    /// Whether PostgreSQL works. Takes at most [`PULSE`], plus the wait for concurrent callers.
    pub async fn answers(&self) -> Result<(), DbError> {
        let (own, behind) = futures_util::join!(self.ask(), self.ask_behind());
        for sign in [Some(own), behind].into_iter().flatten() {
            match sign {
                Sign::Well(_) => {}
                Sign::Refuses(text) | Sign::Silent(text) => return Err(DbError::Connect(text)),
                Sign::Connecting => return Err(DbError::Connect(NO_ANSWER.to_owned())),
            }
        }
        Ok(())
    }

    /// Whether anything answers at `place`. Where that is not known yet, yes.
    pub(super) async fn is_alive(&self, place: &Place) -> bool {
        let silent = &self.shared.addresses;
        // A single failed attempt, maybe long ago, says little about the connections there.
        let was_silent = silent.has(&place.address);
        let (own, behind, ()) = futures_util::join!(self.ask(), self.ask_behind(), self.ask_again(place));
        let is_silent = match own {
            Sign::Well(here) if here == place.address => false,
            // All hosts have just been tried, or none could be.
            Sign::Silent(_) => silent.is_empty() || silent.has(&place.address),
            Sign::Well(_) | Sign::Refuses(_) | Sign::Connecting => was_silent && silent.has(&place.address),
        };
        !is_silent && !matches!(behind, Some(Sign::Silent(_)))
    }

    /// Asks at a place where nothing answered earlier. Callers share the result.
    async fn ask_again(&self, place: &Place) {
        let Shared { config, addresses, asked_again, .. } = &*self.shared;
        if !addresses.has(&place.address) {
            return;
        }
        let mut asked_again = asked_again.lock().await;
        let is_known = asked_again.get(&place.address).is_some_and(|at| at.elapsed() < PULSE_AGE);
        if is_known || !addresses.has(&place.address) {
            return;
        }
        if answers_at(config, place).await {
            asked_again.remove(&place.address);
            addresses.forget(&place.address);
        } else {
            asked_again.insert(place.address.clone(), Instant::now());
        }
    }

    /// Notes that a caller waited for PostgreSQL without an answer.
    pub(super) fn note_silence(&self) {
        *self.shared.silent.lock() = Some(Instant::now());
    }

    /// Whether PostgreSQL was found silent a moment ago, so that another attempt is pointless.
    pub(super) fn is_known_silent(&self) -> bool {
        self.shared.silent.lock().is_some_and(|at| at.elapsed() < DOWN)
            || self.shared.behind.as_ref().is_some_and(Self::is_known_silent)
    }

    pub(super) fn addresses(&self) -> &SilentAddresses {
        &self.shared.addresses
    }

    fn ask_behind(&self) -> BoxFuture<'_, Option<Sign>> {
        Box::pin(async move {
            match &self.shared.behind {
                Some(server) => Some(server.ask().await),
                None => None,
            }
        })
    }

    async fn ask(&self) -> Sign {
        let mut state = self.shared.state.lock().await;
        if let Some((at, sign)) = &state.last
            && at.elapsed() < PULSE_AGE
        {
            return sign.clone();
        }
        let sign = state.ask(&self.shared).await;
        match &sign {
            Sign::Silent(_) => self.note_silence(),
            Sign::Well(_) | Sign::Refuses(_) => *self.shared.silent.lock() = None,
            Sign::Connecting => {}
        }
        state.last = Some((Instant::now(), sign.clone()));
        sign
    }
}

impl State {
    /// Within [`PULSE`].
    async fn ask(&mut self, shared: &Arc<Shared>) -> Sign {
        let deadline = Instant::now() + PULSE;
        loop {
            if let Some((client, address)) = self.client.take() {
                match timeout_at(deadline, client.batch_execute("select 1")).await {
                    Ok(Ok(())) => {
                        shared.addresses.forget(&address);
                        self.client = Some((client, address.clone()));
                        return Sign::Well(address);
                    }
                    // The connection has ended. A new one will show why.
                    Ok(Err(_)) => {}
                    Err(_) => {
                        shared.addresses.note(&address);
                        self.opening(shared);
                        return Sign::Silent(NO_ANSWER.to_owned());
                    }
                }
            }
            let Ok(ended) = timeout_at(deadline, self.opening(shared)).await else { return Sign::Connecting };
            self.opening = None;
            let Opened { outcome, at } = match ended {
                Ok(opened) => opened,
                Err(error) => return Sign::Silent(error.to_string()),
            };
            let age = at.elapsed();
            match outcome {
                Ok((client, address)) if shared.behind.is_none() => {
                    self.client = Some((client, address.clone()));
                    if age < PULSE_AGE {
                        return Sign::Well(address);
                    }
                    // It was opened long before anybody asked, and is asked now.
                }
                Ok((_, address)) if age < LOGIN_AGE => return Sign::Well(address),
                // Long ago, it says nothing.
                Ok(_) => {}
                Err(_) if age >= PULSE_AGE => {}
                Err(OpenError::Refused(error)) => return Sign::Refuses(with_causes(&error)),
                Err(OpenError::Unsuitable(text) | OpenError::Failed(text)) => return Sign::Refuses(text),
                Err(error @ (OpenError::Silent(_) | OpenError::Unreachable(_))) => {
                    return Sign::Silent(error.to_string());
                }
            }
        }
    }

    fn opening(&mut self, shared: &Arc<Shared>) -> &mut JoinHandle<Opened> {
        self.opening.get_or_insert_with(|| {
            let shared = shared.clone();
            tokio::spawn(async move { Opened { outcome: opened(&shared).await, at: Instant::now() } })
        })
    }
}

/// Opens a connection to the first host that accepts one, and has it answer a query where that tells more than the login.
async fn opened(shared: &Shared) -> Result<(Client, Address), OpenError> {
    let (client, address) = open_for_pulse(&shared.config, &shared.addresses).await?;
    if shared.behind.is_some() {
        return Ok((client, address));
    }
    match timeout(PULSE, client.batch_execute("select 1")).await {
        Ok(Ok(())) => Ok((client, address)),
        Ok(Err(error)) if error.as_db_error().is_some() => Err(OpenError::Refused(error)),
        Ok(Err(error)) => Err(OpenError::Unreachable(with_causes(&error))),
        Err(_) => {
            shared.addresses.note(&address);
            Err(OpenError::Silent(NO_ANSWER.to_owned()))
        }
    }
}
