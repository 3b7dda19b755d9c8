//! Keeps messages in memory, for tests.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{MailError, Message, Sender};

/// A sender that stores messages, shared by its clones.
#[derive(Clone, Default)]
pub struct Memory {
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Memory {
    /// All messages so far, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.lock().clone()
    }

    /// The messages to one address, oldest first.
    pub fn to(&self, address: &str) -> Vec<Message> {
        self.messages.lock().iter().filter(|m| m.to.eq_ignore_ascii_case(address)).cloned().collect()
    }
}

impl Sender for Memory {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        self.messages.lock().push(message.clone());
        Box::pin(async { Ok(()) })
    }
}
