//! Throttling of guesses: `FERROBASE_GUESS_*`. Upstream leaves that to a proxy.

use std::time::Duration;

use super::values::duration;
use crate::config::Reader;

#[derive(Clone, Debug)]
pub struct GuessesConfig {
    /// `FERROBASE_GUESS_LIMITS`, default true: whether wrong passwords and codes delay the next ones.
    pub enabled: bool,
    /// `FERROBASE_GUESS_FREE_TRIES`, default 5: wrong passwords or second factors of one account before delays begin.
    pub free_tries: u32,
    /// `FERROBASE_GUESS_MAX_DELAY`, default 5 s: the longest delay caused by a guess.
    pub max_delay: Duration,
    /// `FERROBASE_GUESS_CODE_TRIES`, default 10: wrong tries of one code by one client; ten times as many in an hour by all
    /// clients at all codes of an account.
    pub code_tries: u32,
}

impl GuessesConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            enabled: reader.flag(&["FERROBASE_GUESS_LIMITS"], true),
            free_tries: reader.parse_or(&["FERROBASE_GUESS_FREE_TRIES"], "a number", 5),
            max_delay: duration(reader, &["FERROBASE_GUESS_MAX_DELAY"], Duration::from_secs(5)),
            code_tries: reader.parse_or(&["FERROBASE_GUESS_CODE_TRIES"], "a number", 10),
        }
    }
}
