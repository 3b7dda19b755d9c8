//! Searches of the inbox, in Mailpit's syntax.
//!
//! `to:`, `cc:`, `bcc:`, `reply-to:`, `from:`, `addressed:`, `subject:`, `message-id:`, `is:read`, `is:unread`, `has:attachment`,
//! `has:inline`, `before:`, `after:`, `larger:`, `smaller:`, and text; several have to match together. A leading `-` or `!`
//! excludes, `"…"` quotes a phrase. Tags, which no mail here has, match none.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, TimeZone};
use serde::Serialize;

/// One condition of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    field: &'static str,
    word: String,
    excluded: bool,
}

impl Term {
    pub fn new(field: &'static str, word: impl Into<String>, excluded: bool) -> Self {
        Self { field, word: word.into(), excluded }
    }

    pub fn parse_all(query: &str) -> Vec<Self> {
        words(query).iter().filter_map(|word| Self::parse(word)).collect()
    }

    fn parse(word: &str) -> Option<Self> {
        const FIELDS: [&str; 8] = ["to", "cc", "bcc", "reply-to", "from", "addressed", "subject", "message-id"];
        let (word, excluded) = match word.strip_prefix(['-', '!']) {
            Some(rest) if !rest.is_empty() => (rest, true),
            _ => (word, false),
        };
        let lower = word.to_lowercase();
        let (name, value) = lower.split_once(':').unwrap_or(("", &lower));
        let cleaned = cleaned(value);
        if let Some(field) = FIELDS.into_iter().find(|field| *field == name) {
            let word = if field == "subject" { value.to_owned() } else { cleaned };
            return (!word.is_empty()).then(|| Self::new(field, word, excluded));
        }
        if name == "tag" {
            return (!cleaned.is_empty()).then(|| Self::new("none", "", excluded));
        }
        match (name, value) {
            ("is", "read") => return Some(Self::new("read", "", excluded)),
            ("is", "unread") => return Some(Self::new("read", "", !excluded)),
            ("is", "tagged") => return Some(Self::new("none", "", excluded)),
            ("has", "inline" | "inlines") => return Some(Self::new("inline", "", excluded)),
            ("has", "attachment" | "attachments") => return Some(Self::new("attachment", "", excluded)),
            ("after", value) => return time(value).map(|time| Self::new("after", time, excluded)),
            ("before", value) => return time(value).map(|time| Self::new("before", time, excluded)),
            ("larger", value) if bytes(value) > 0 => {
                return Some(Self::new("larger", bytes(value).to_string(), excluded));
            }
            ("smaller", value) if bytes(value) > 0 => {
                return Some(Self::new("smaller", bytes(value).to_string(), excluded));
            }
            _ => {}
        }
        let text = self::cleaned(&lower);
        (!text.is_empty()).then(|| Self::new("text", text, excluded))
    }
}

/// Splits at spaces outside of quotes, and removes the quotes.
fn words(query: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in query.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().into_iter().for_each(|word| word.push(letter)),
        }
    }
    words.into_iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Removes characters that searches ignore.
fn cleaned(text: &str) -> String {
    let text = text.to_lowercase().replace(['\u{feff}', '\r', '\n', '\t', '<', '>', '"', ',', ';', '(', ')'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A day or time, in the local zone unless one is given.
pub fn time(text: &str) -> Option<String> {
    let text = text.trim().to_uppercase();
    // Years of more than four digits have a sign, and PostgreSQL does not accept all of them.
    if text.starts_with(['+', '-']) {
        return None;
    }
    let local = |time: NaiveDateTime| Local.from_local_datetime(&time).earliest().map(|time| time.to_rfc3339());
    if let Ok(time) = DateTime::parse_from_rfc3339(&text) {
        return Some(time.to_rfc3339());
    }
    let day = ["%Y-%m-%d", "%Y/%m/%d"].into_iter().find_map(|form| NaiveDate::parse_from_str(&text, form).ok());
    if let Some(day) = day {
        return local(day.and_hms_opt(0, 0, 0)?);
    }
    ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"]
        .into_iter()
        .find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok())
        .and_then(local)
}

/// `2kb`, `1.5M`; 0 if invalid.
fn bytes(text: &str) -> i64 {
    let text = text.trim();
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match text[number.len()..].trim() {
        "" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        _ => return 0,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a size that people write; the largest is larger than any mail"
    )]
    number.trim().parse::<f64>().map_or(0, |number| (number * factor) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(query: &str) -> Vec<(&'static str, String, bool)> {
        Term::parse_all(query).into_iter().map(|term| (term.field, term.word, term.excluded)).collect()
    }

    #[test]
    fn all_terms_of_a_search_must_match() {
        let of = |field, word: &str, excluded| (field, word.to_owned(), excluded);
        for (query, expected) in [
            ("to:Ada@Example.com", vec![of("to", "ada@example.com", false)]),
            (r#"to:"ada@example.com""#, vec![of("to", "ada@example.com", false)]),
            (
                r#"subject:"Confirm Your" -from:<x@y.z>"#,
                vec![of("subject", "confirm your", false), of("from", "x@y.z", true)],
            ),
            ("!is:read is:unread", vec![of("read", "", true), of("read", "", true)]),
            ("Hello, (World)", vec![of("text", "hello", false), of("text", "world", false)]),
            ("tag:x -has:attachment", vec![of("none", "", false), of("attachment", "", true)]),
            ("has:inlines bcc:Ada", vec![of("inline", "", false), of("bcc", "ada", false)]),
            ("larger:1.5k larger:much", vec![of("larger", "1536", false), of("text", "larger:much", false)]),
            ("larger:99999999999999999999m", vec![of("larger", "9223372036854775807", false)]),
            ("x after:+99999-01-01", vec![of("text", "x", false)]),
            ("to: - after:never", vec![of("text", "-", false)]),
            ("12:30", vec![of("text", "12:30", false)]),
        ] {
            assert_eq!(terms(query), expected, "{query}");
        }
        assert_eq!(terms("before:2026-01-02T03:04:05Z"), [("before", "2026-01-02T03:04:05+00:00".to_owned(), false)]);
    }
}
