//! Typed reading of settings with all problems collected.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Source;
use crate::jwt::{ACCEPTED_KEYS, AcceptedKeys, IssuerSetting, THIRD_PARTY_ISSUERS};
use crate::secret::Secret;

/// All problems of a configuration, each a sentence that names its setting.
#[derive(Debug)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for Problems {}

/// Reads typed values by one or more names, the first that is set and not empty winning.
pub struct Reader<'a> {
    source: &'a Source,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    pub fn new(source: &'a Source) -> Self {
        Self { source, problems: Vec::new() }
    }

    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// Adds a problem; reading continues so that all are reported together.
    pub fn problem(&mut self, sentence: impl Into<String>) {
        self.problems.push(sentence.into());
    }

    /// Everything noted so far; ends the reading.
    pub fn into_problems(self) -> Vec<String> {
        self.problems
    }

    /// The value if nothing was wrong, else every problem.
    pub fn finish<T>(self, value: T) -> Result<T, Problems> {
        if self.problems.is_empty() { Ok(value) } else { Err(Problems(self.problems)) }
    }

    /// The first of `names` that is set and not empty, with the name under which it was found.
    pub fn find(&self, names: &[&'static str]) -> Option<(&'static str, &'a str)> {
        names.iter().find_map(|name| self.source.get(name).filter(|v| !v.is_empty()).map(|v| (*name, v)))
    }

    pub fn text(&self, names: &[&'static str]) -> Option<String> {
        self.find(names).map(|(_, v)| v.to_owned())
    }

    pub fn text_or(&self, names: &[&'static str], default: &str) -> String {
        self.text(names).unwrap_or_else(|| default.to_owned())
    }

    pub fn secret(&self, names: &[&'static str]) -> Option<Secret> {
        self.find(names).map(|(_, v)| Secret::new(v))
    }

    /// A number, address or anything that parses; `what` names the expected kind in the problem.
    pub fn parse<T: FromStr>(&mut self, names: &[&'static str], what: &str) -> Option<T> {
        let (name, value) = self.find(names)?;
        match value.trim().parse() {
            Ok(parsed) => Some(parsed),
            Err(_) => {
                self.problem(format!("{name} must be {what}"));
                None
            }
        }
    }

    pub fn parse_or<T: FromStr>(&mut self, names: &[&'static str], what: &str, default: T) -> T {
        self.parse(names, what).unwrap_or(default)
    }

    /// `true/false` in any case, `1/0`, `t/f`, `yes/no`, `on/off`.
    pub fn flag(&mut self, names: &[&'static str], default: bool) -> bool {
        let Some((name, value)) = self.find(names) else { return default };
        match value.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "t" | "yes" | "on" => true,
            "false" | "0" | "f" | "no" | "off" => false,
            _ => {
                self.problem(format!("{name} must be true or false"));
                default
            }
        }
    }

    /// Comma-separated items, trimmed, without empty ones.
    pub fn list(&self, names: &[&'static str]) -> Option<Vec<String>> {
        self.find(names)
            .map(|(_, v)| v.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }

    /// `FERROBASE_ACCEPTED_KEYS`: former keys and those that come next.
    pub fn accepted_keys(&mut self) -> Vec<AcceptedKeys> {
        let Some((_, text)) = self.find(&[ACCEPTED_KEYS]) else { return Vec::new() };
        AcceptedKeys::parse(text).unwrap_or_else(|problem| {
            self.problem(problem);
            Vec::new()
        })
    }

    /// `FERROBASE_THIRD_PARTY_ISSUERS`: other issuers whose tokens count.
    pub fn third_party_issuers(&mut self) -> Vec<IssuerSetting> {
        let Some((_, text)) = self.find(&[THIRD_PARTY_ISSUERS]) else { return Vec::new() };
        IssuerSetting::parse(text).unwrap_or_else(|problem| {
            self.problem(problem);
            Vec::new()
        })
    }

    /// A whole number of seconds.
    pub fn seconds_or(&mut self, names: &[&'static str], default: Duration) -> Duration {
        self.parse::<u64>(names, "a whole number of seconds").map_or(default, Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_reported_at_once() {
        let source = Source::from_pairs([("A", "x"), ("B", "maybe")]);
        let mut reader = Reader::new(&source);
        let a: u16 = reader.parse_or(&["A"], "a port", 1);
        let b = reader.flag(&["B"], true);
        let problems = reader.finish((a, b)).expect_err("two problems");
        assert_eq!(problems.to_string(), "A must be a port; B must be true or false");
    }

    #[test]
    fn the_more_specific_name_wins_and_an_empty_one_is_unset() {
        let source = Source::from_pairs([("SPECIFIC", ""), ("GENERAL", "g")]);
        assert_eq!(Reader::new(&source).text(&["SPECIFIC", "GENERAL"]).as_deref(), Some("g"));
    }

    #[test]
    fn a_secret_does_not_print() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
    }
}
