//! Passwords known from leaks, by the range protocol of Have I Been Pwned: only the first five hex digits of
//! the SHA-1 leave this machine.

use std::time::Duration;

use crate::auth::error::Fault;
use crate::auth::outside::OutboundContext;
use crate::config::PasswordConfig;
use crate::http::answer_body::read_answer;
use crate::outgoing;

/// The longest list that is read. Real ones have about 40 kB.
const MOST_BYTES: usize = 1 << 20;

/// Queries a range server. Reference: <https://haveibeenpwned.com/API/v3#PwnedPasswords>.
pub struct LeakedPasswords {
    client: reqwest::Client,
    url: String,
}

impl LeakedPasswords {
    /// `None` unless the check is on.
    pub fn new(config: &PasswordConfig) -> Result<Option<Self>, reqwest::Error> {
        if !config.hibp_enabled {
            return Ok(None);
        }
        let client = outgoing::client().timeout(Duration::from_secs(5)).user_agent(&config.hibp_user_agent).build()?;
        Ok(Some(Self { client, url: config.hibp_url.clone() }))
    }

    /// Whether the password was seen in a leak at least once. Padding lines with a count of 0 do not count.
    pub async fn contains(&self, away: &OutboundContext, password: &str) -> Result<bool, Fault> {
        away.leave()?;
        let digest = sha1_hex(password);
        let (prefix, suffix) = digest.split_at(5);
        let asked = self.client.get(format!("{}{prefix}", self.url)).header("Add-Padding", "true").send();
        let answer = asked.await.and_then(reqwest::Response::error_for_status);
        let answer = answer.map_err(|error| Fault::new(error.without_url().to_string()))?;
        let body = read_answer(answer, MOST_BYTES).await.map_err(|fault| Fault::new(fault.to_string()))?;
        Ok(String::from_utf8_lossy(&body).lines().filter_map(|line| line.trim().split_once(':')).any(
            |(hash, count)| {
                hash.eq_ignore_ascii_case(suffix) && count.trim().parse::<u64>().is_ok_and(|count| count > 0)
            },
        ))
    }
}

/// SHA-1 in upper-case hex.
fn sha1_hex(text: &str) -> String {
    use sha1::{Digest as _, Sha1};
    hex::encode_upper(Sha1::digest(text.as_bytes()))
}
