//! Calls to other services: providers, hooks, captchas, leaked passwords, text messages, mail servers. No request
//! holds a connection during a call, so that a slow service cannot block the database pool.
//!
//! Outside of a transaction, [`OutboundContext::leave`] returns the request's connections to the pool, and the next statement
//! leases one again. Inside a transaction [`Request::ask`](crate::auth::door::request::Request::ask) cannot call: it
//! records the question, the transaction is rolled back, the call made, and the transaction runs again from its
//! beginning ([`Db::transaction`](crate::auth::models::store::Db::transaction)), where it finds the answer. It reads
//! fresh rows. Answers are stored by their question, so that a changed question is asked again. Random values that
//! leave the server (a code, a session's id) are drawn once for all repetitions.

pub mod captcha;
pub mod hooks;
pub mod mailer;
pub mod outbound;
pub mod pace;
pub mod sms;

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::RequestBuilder;
use serde_json::Value;

use crate::auth::Auth;
use crate::auth::error::{AuthError, AuthResult, Fault};
use crate::auth::models::slot::Slot;
use crate::auth::outside::outbound::Outbound;

/// A request's answers and drawn values, and the connections that it holds.
#[derive(Default)]
pub struct Memory {
    slots: Mutex<Vec<Weak<Slot>>>,
    answers: Mutex<HashMap<String, AuthResult<Value>>>,
    drawn: Mutex<HashMap<String, Box<dyn Any + Send>>>,
    pending: Mutex<Option<Pending>>,
}

/// A question that a transaction could not ask.
pub struct Pending {
    about: String,
    call: BoxFuture<'static, AuthResult<Value>>,
}

impl Memory {
    /// Registers a place that may hold a connection of the request.
    pub fn watch(&self, slot: &Arc<Slot>) {
        let mut slots = self.slots.lock();
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(slot));
    }

    /// Returns all connections without an open transaction; true if none is held now.
    pub fn give_back(&self) -> bool {
        let held = self.slots.lock().iter().filter_map(Weak::upgrade).filter(|slot| !slot.give_back()).count();
        held == 0
    }

    pub fn is_pending(&self) -> bool {
        self.pending.lock().is_some()
    }

    pub fn take_pending(&self) -> Option<Pending> {
        self.pending.lock().take()
    }

    /// Makes the call and stores its answer for the next attempt.
    pub async fn settle(&self, pending: Pending) {
        let answer = pending.call.await;
        self.answers.lock().insert(pending.about, answer);
    }

    pub fn answer(&self, about: &str) -> Option<AuthResult<Value>> {
        self.answers.lock().get(about).cloned()
    }

    /// The value drawn for `about` before, or a new one from `draw`.
    pub fn once<T: Clone + Send + 'static>(&self, about: &str, draw: impl FnOnce() -> T) -> T {
        if let Some(drawn) = self.recall(about) {
            return drawn;
        }
        let drawn = draw();
        self.keep(about, drawn.clone());
        drawn
    }

    pub fn recall<T: Clone + 'static>(&self, about: &str) -> Option<T> {
        self.drawn.lock().get(about).and_then(|drawn| drawn.downcast_ref::<T>()).cloned()
    }

    pub fn keep<T: Send + 'static>(&self, about: &str, drawn: T) {
        self.drawn.lock().insert(about.to_owned(), Box::new(drawn));
    }
}

/// Needed for every call to another service; one per request.
#[derive(Clone)]
pub struct OutboundContext {
    auth: Arc<Auth>,
    memory: Arc<Memory>,
}

impl OutboundContext {
    pub fn new(auth: Arc<Auth>, memory: Arc<Memory>) -> Self {
        Self { auth, memory }
    }

    /// Gives the request's connections back.
    ///
    /// Errors: one of them is in a transaction, whose locks would be held during the call. That is a bug in the flow,
    /// which should use [`Request::ask`](crate::auth::door::request::Request::ask).
    pub fn leave(&self) -> Result<(), Fault> {
        if self.memory.give_back() {
            return Ok(());
        }
        debug_assert!(false, "a call to the outside in a transaction");
        Err(Fault::new("a call to the outside in a transaction"))
    }

    /// Records a call for after the transaction.
    pub fn defer(&self, about: String, call: BoxFuture<'static, AuthResult<Value>>) -> AuthError {
        self.memory.pending.lock().get_or_insert(Pending { about, call });
        Fault::new("an answer from the outside is awaited").into()
    }

    pub fn auth(&self) -> &Arc<Auth> {
        &self.auth
    }

    /// The client for hooks.
    pub fn hooks(&self) -> Result<&reqwest::Client, Fault> {
        self.leave()?;
        Ok(&self.auth.hooks)
    }

    /// The client for captchas.
    pub fn http(&self) -> Result<&reqwest::Client, Fault> {
        self.leave()?;
        Ok(&self.auth.http)
    }

    /// The client for providers in the settings.
    pub fn providers(&self) -> Providers<'_> {
        Providers { outbound: &self.auth.providers, away: self }
    }

    /// The client for providers entered by administrators.
    pub fn custom_providers(&self) -> Providers<'_> {
        Providers { outbound: &self.auth.custom_providers, away: self }
    }
}

/// A client for providers; each call first returns the request's connections.
#[derive(Clone, Copy)]
pub struct Providers<'a> {
    outbound: &'a Outbound,
    away: &'a OutboundContext,
}

impl Providers<'_> {
    /// A GET of `url`, if it may be asked.
    pub fn get(&self, url: &str) -> Result<RequestBuilder, Fault> {
        self.away.leave()?;
        self.outbound.get(url)
    }

    /// A POST to `url`, if it may be asked.
    pub fn post(&self, url: &str) -> Result<RequestBuilder, Fault> {
        self.away.leave()?;
        self.outbound.post(url)
    }

    /// Whether `url` may be requested; resolves its name.
    pub async fn check(&self, url: &str) -> AuthResult<()> {
        self.away.leave()?;
        self.outbound.check(url).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_choices_are_stable_per_key() {
        let memory = Memory::default();
        assert_eq!(memory.once("a", || 1), 1);
        assert_eq!(memory.once("a", || 2), 1);
        assert_eq!(memory.once("b", || 2), 2);
        assert_eq!(memory.recall::<i32>("c"), None);
    }
}
