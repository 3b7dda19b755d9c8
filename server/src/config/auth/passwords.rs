//! Rules for passwords: `GOTRUE_PASSWORD_*`.

use crate::config::Reader;

#[derive(Clone, Debug)]
pub struct PasswordConfig {
    /// `GOTRUE_PASSWORD_MIN_LENGTH`, in bytes, at least 6.
    pub min_length: usize,
    /// `GOTRUE_PASSWORD_REQUIRED_CHARACTERS`: character sets, each of which is required.
    pub required_characters: Vec<String>,
    pub hibp_enabled: bool,
    pub hibp_fail_closed: bool,
    /// `GOTRUE_PASSWORD_HIBP_URL`, default `https://api.pwnedpasswords.com/range/`.
    pub hibp_url: String,
    pub hibp_user_agent: String,
    /// `FERROBASE_PASSWORD_THREADS`: hashes computed at once; default the number of processors.
    pub threads: usize,
    /// `FERROBASE_PASSWORD_COST`: bcrypt's cost of new hashes, from 4 to 10, default 10 as upstream. Less is for development
    /// only, where a test suite signs up hundreds of users. More would tell by the duration of a sign-in which addresses
    /// have accounts with an older hash.
    pub cost: u32,
}

const COST: u32 = 10;

impl PasswordConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let cost = reader.parse_or(&["FERROBASE_PASSWORD_COST"], "a number from 4 to 10", COST);
        if !(4..=COST).contains(&cost) {
            reader.problem("FERROBASE_PASSWORD_COST must be a number from 4 to 10");
        } else if cost < COST && !reader.flag(&["FERROBASE_DEV"], false) {
            reader.problem("FERROBASE_PASSWORD_COST below 10 is for development only (FERROBASE_DEV=true)");
        }
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let required = reader.text_or(&["GOTRUE_PASSWORD_REQUIRED_CHARACTERS", "PASSWORD_REQUIRED_CHARACTERS"], "");
        Self {
            min_length: reader.parse_or(&["GOTRUE_PASSWORD_MIN_LENGTH"], "a number of bytes", 6_usize).max(6),
            required_characters: character_sets(&required),
            hibp_enabled: reader.flag(&["GOTRUE_PASSWORD_HIBP_ENABLED"], false),
            hibp_fail_closed: reader.flag(&["GOTRUE_PASSWORD_HIBP_FAIL_CLOSED"], false),
            hibp_url: reader.text_or(&["GOTRUE_PASSWORD_HIBP_URL"], "https://api.pwnedpasswords.com/range/"),
            hibp_user_agent: reader.text_or(&["GOTRUE_PASSWORD_HIBP_USER_AGENT"], "ferrobase"),
            threads: reader.parse_or(&["FERROBASE_PASSWORD_THREADS"], "a number of threads", processors).max(1),
            cost,
        }
    }
}

/// Sets separated by `:`; `\:` is a colon within a set.
pub(super) fn character_sets(text: &str) -> Vec<String> {
    let mut sets = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek() == Some(&':') => {
                characters.next();
                if let Some(last) = sets.last_mut() {
                    last.push(':');
                }
            }
            ':' => sets.push(String::new()),
            other => {
                if let Some(last) = sets.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    sets.retain(|set| !set.is_empty());
    sets
}
