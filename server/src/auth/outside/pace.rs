//! Measures how long messages take to send, so that answers that send none take equally long.
//!
//! If mail is sent within the request, a recovery for an unknown address would otherwise be answered at once, and the
//! response time would reveal who has an account.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::Rng as _;

use crate::auth::outside::hooks::Hook;

/// How many messages are remembered.
const KEPT: usize = 64;

/// How long the last messages of one kind took.
#[derive(Default)]
pub struct Pace {
    recent: Mutex<VecDeque<Duration>>,
}

impl Pace {
    /// Sends a message and records how long it took, even if it failed.
    pub async fn measured<T>(&self, sending: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let sent = sending.await;
        let mut recent = self.recent.lock();
        recent.push_back(begun.elapsed());
        if recent.len() > KEPT {
            recent.pop_front();
        }
        sent
    }

    /// Waits as long as one of the last messages took, chosen at random each time; not at all if none was sent.
    pub async fn wait(&self) {
        let drawn = {
            let recent = self.recent.lock();
            if recent.is_empty() { None } else { recent.get(rand::rng().random_range(0..recent.len())).copied() }
        };
        if let Some(duration) = drawn {
            tokio::time::sleep(duration).await;
        }
    }
}

/// The paces of all messages that are sent within a request.
#[derive(Default)]
pub struct Paces {
    pub mails: Pace,
    pub texts: Pace,
}

impl Paces {
    /// The pace of a hook's messages, if it sends any.
    pub fn of_hook(&self, hook: Hook) -> Option<&Pace> {
        match hook {
            Hook::SendEmail => Some(&self.mails),
            Hook::SendSms => Some(&self.texts),
            Hook::CustomAccessToken
            | Hook::MfaVerification
            | Hook::PasswordVerification
            | Hook::BeforeUserCreated
            | Hook::AfterUserCreated => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_without_mail_take_as_long_as_those_with_mail() {
        let (pace, took) = (Pace::default(), Duration::from_millis(40));
        pace.measured(tokio::time::sleep(took)).await;
        let begun = Instant::now();
        pace.wait().await;
        assert!(begun.elapsed() >= took);
        for _ in 0..2 * KEPT {
            pace.measured(async {}).await;
        }
        assert_eq!(pace.recent.lock().len(), KEPT, "old entries are removed");
    }
}
