//! Parses the Test Anything Protocol, version 12, as pgTAP writes it: a plan, and lines of `ok` and `not ok`.

use std::fmt::Write as _;

/// The parsed output of a test file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tap {
    /// From the line `1..n`.
    pub planned: Option<usize>,
    /// Number of tests that ran.
    pub ran: usize,
    /// Numbers of the failed tests, without those expected to fail (`# TODO`).
    pub failed: Vec<usize>,
    /// Why everything was skipped (`1..0 # SKIP reason`).
    pub skipped: Option<String>,
    /// Why the file gave up (`Bail out!`).
    pub bailed: Option<String>,
}

impl Tap {
    /// Parses one line of output. Lines that are not TAP are ignored. So are those of subtests, which are indented: one line with
    /// the result follows. Only `Bail out!` counts there as well, as with `pg_prove`.
    pub fn read(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(reason) = line.trim_start().strip_prefix("Bail out!") {
            self.bailed = Some(reason.trim().to_owned());
        } else if let Some(plan) = line.strip_prefix("1..") {
            let (count, directive) = plan.split_once('#').unwrap_or((plan, ""));
            if let Ok(count) = count.trim().parse() {
                self.planned = Some(count);
            }
            if starts_with_word(directive, "skip") && self.planned == Some(0) {
                self.skipped = Some(directive.trim()[4..].trim().to_owned());
            }
        } else if let Some(test) = after_word(line, "not ok") {
            self.ran += 1;
            if !directive(test).is_some_and(|directive| starts_with_word(directive, "todo")) {
                self.failed.push(number(test).unwrap_or(self.ran));
            }
        } else if after_word(line, "ok").is_some() {
            self.ran += 1;
        }
    }

    /// Whether the file ran to its end and all planned tests passed.
    pub fn passed(&self) -> bool {
        self.problems().is_empty()
    }

    /// The problems, in sentences for the summary.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(reason) = &self.bailed {
            problems.push(format!("Bailed out: {reason}"));
        }
        if !self.failed.is_empty() {
            let label = if self.failed.len() == 1 { "Failed test: " } else { "Failed tests: " };
            problems.push(format!("{label} {}", ranges(&self.failed)));
        }
        match self.planned {
            None => problems.push("Parse errors: No plan found in TAP output".to_owned()),
            Some(planned) if planned != self.ran => {
                problems.push(format!("Parse errors: Bad plan.  You planned {planned} tests but ran {}.", self.ran))
            }
            Some(_) => {}
        }
        problems
    }
}

/// What follows `word`, if a space or nothing comes next.
fn after_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)).map(str::trim_start)
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.trim_start().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn number(test: &str) -> Option<usize> {
    test.split_whitespace().next()?.parse().ok()
}

/// The text after the last `#` that is not escaped by a backslash.
fn directive(test: &str) -> Option<&str> {
    let at = test.rmatch_indices('#').map(|(at, _)| at).find(|at| !test[..*at].ends_with('\\'))?;
    test.get(at + 1..)
}

/// `1-3, 5`
fn ranges(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let length = rest.iter().zip(*first..).take_while(|(number, expected)| *number == expected).count();
        let last = first + length - 1;
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = if last > *first { write!(text, "{comma}{first}-{last}") } else { write!(text, "{comma}{first}") };
        rest = &rest[length..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Tap {
        let mut tap = Tap::default();
        text.lines().for_each(|line| tap.read(line));
        tap
    }

    #[test]
    fn output_is_judged_as_by_pg_prove() {
        for (text, ran, problems) in [
            ("1..2\nok 1 - a\nok 2\n", 2, vec![]),
            ("ok 1\nok 2\n1..2\n", 2, vec![]),
            ("1..0 # SKIP no such thing\n", 0, vec![]),
            ("1..1\nnot ok 1 - later # TODO when we can\n", 1, vec![]),
            ("1..1\nnot ok 1 - says \\# TODO\n", 1, vec!["Failed test:  1"]),
            ("1..1\nokay then\nok 1\n", 1, vec![]),
            ("1..5\nnot ok 1\nnot ok 2\nnot ok 3\nok 4\nnot ok 5\n# Failed", 5, vec!["Failed tests:  1-3, 5"]),
            ("1..3\nok 1\n", 1, vec!["Parse errors: Bad plan.  You planned 3 tests but ran 1."]),
            ("ok 1\n", 1, vec!["Parse errors: No plan found in TAP output"]),
            ("1..2\r\nok 1\r\n    1..1\r\n    ok 1\r\nok 2 - inside\r\n", 2, vec![]),
            ("    1..3\n    ok 1\n    not ok 2\n    ok 3\nnot ok 1\n1..1\n", 1, vec!["Failed test:  1"]),
            ("    ok 1\n\tok 2\n    1..2\n", 0, vec!["Parse errors: No plan found in TAP output"]),
            ("1..1\n    Bail out! no table\nok 1\n", 1, vec!["Bailed out: no table"]),
            ("1..1\nok 1\nBail out! no table\n", 1, vec!["Bailed out: no table"]),
        ] {
            let tap = read(text);
            assert_eq!(
                (tap.ran, tap.problems()),
                (ran, problems.iter().map(|text| (*text).to_owned()).collect()),
                "{text}"
            );
        }
        assert_eq!(read("1..0 # SKIP no such thing\n").skipped.as_deref(), Some("no such thing"));
    }
}
