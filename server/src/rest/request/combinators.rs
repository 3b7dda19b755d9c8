//! Parser combinators over characters whose errors read as Parsec's, since clients and tests of the reference
//! server match on its parse-error texts.
//!
//! A [`Parser`] carries the position, whether anything was consumed since the current alternative began, and
//! the error that would be reported here. Sequencing is Rust's `?`. The rules that make the texts agree:
//! an alternative that consumed input is not given up for the next one unless it was wrapped in
//! [`Parser::attempt`]; errors at one position add up, the furthest position wins, and consuming input drops
//! what was expected before it.
//!
//! Reference: the Haskell package `parsec` (`Text.Parsec.Prim`, `Text.Parsec.Error`).

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Deepest nesting of one text, so that a parse does not exhaust the stack.
pub const MAX_NESTING: usize = 100;

/// Marks a failed parse; the reason is in the parser ([`Parser::explain`]).
#[derive(Debug, PartialEq, Eq)]
pub struct Failed;

pub type Parsed<T> = Result<T, Failed>;

/// Kinds of message in their order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    FoundInstead,
    Unexpected,
    Expected,
}

#[derive(Clone, Debug)]
struct Message {
    kind: Kind,
    text: Cow<'static, str>,
}

#[derive(Clone, Debug, Default)]
struct Trouble {
    at: usize,
    messages: Vec<Message>,
}

impl Trouble {
    fn unknown(at: usize) -> Self {
        Self { at, messages: Vec::new() }
    }

    fn merge(mut self, other: Self) -> Self {
        if other.messages.is_empty() && !self.messages.is_empty() {
            return self;
        }
        if self.messages.is_empty() && !other.messages.is_empty() {
            return other;
        }
        match self.at.cmp(&other.at) {
            std::cmp::Ordering::Equal => {
                self.messages.extend(other.messages);
                self
            }
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Less => other,
        }
    }

    fn set_expected(&mut self, label: Cow<'static, str>) {
        self.messages.retain(|m| m.kind != Kind::Expected);
        self.messages.insert(0, Message { kind: Kind::Expected, text: label });
    }
}

/// Whether Unicode counts `c` among the letters (categories L…); `char::is_alphabetic` takes in marks and numbers too.
pub fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}$").ok());
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    LETTER.as_ref().is_some_and(|letter| letter.is_match(c.encode_utf8(&mut [0; 4])))
}

/// The state of a parse over `input`.
pub struct Parser<'a> {
    input: &'a [char],
    pos: usize,
    consumed: bool,
    trouble: Trouble,
    /// Messages are built only in a second pass over an input that is known to be wrong.
    explaining: bool,
    /// The number of [`Parser::nested`] around here.
    depth: usize,
    /// Whether a part beyond [`MAX_NESTING`] was met, which fails the whole parse.
    too_deep: bool,
}

/// Parses all of `text` as far as `grammar` goes; on failure says where (`line`, `column`, from 1) and why.
pub fn parse<T>(text: &str, grammar: impl Fn(&mut Parser<'_>) -> Parsed<T>) -> Result<T, ParseFault> {
    let input: Vec<char> = text.chars().collect();
    let mut parser = Parser::new(&input, false);
    let parsed = grammar(&mut parser);
    if parser.too_deep {
        return Err(ParseFault::TooDeep);
    }
    if let Ok(value) = parsed {
        return Ok(value);
    }
    let mut parser = Parser::new(&input, true);
    match grammar(&mut parser) {
        Ok(value) => Ok(value),
        Err(Failed) => Err(parser.explain()),
    }
}

/// Why a text could not be parsed.
#[derive(Debug, PartialEq, Eq)]
pub enum ParseFault {
    Syntax {
        line: usize,
        column: usize,
        /// `unexpected … expecting …`, on one line.
        details: String,
    },
    /// Nested deeper than [`MAX_NESTING`].
    TooDeep,
}

impl<'a> Parser<'a> {
    fn new(input: &'a [char], explaining: bool) -> Self {
        Self { input, pos: 0, consumed: false, trouble: Trouble::unknown(0), explaining, depth: 0, too_deep: false }
    }

    fn fail(&mut self, kind: Kind, text: impl Into<Cow<'static, str>>) -> Failed {
        if self.explaining {
            let trouble = Trouble { at: self.pos, messages: vec![Message { kind, text: text.into() }] };
            self.note(trouble);
        }
        Failed
    }

    fn note(&mut self, trouble: Trouble) {
        if self.explaining {
            self.trouble = std::mem::take(&mut self.trouble).merge(trouble);
        }
    }

    fn advance(&mut self, n: usize) {
        self.pos += n;
        self.consumed = true;
        if self.explaining {
            self.trouble = Trouble::unknown(self.pos);
        }
    }

    /// Runs `inner` from a clean state; returns whether it consumed input, and its errors.
    fn alone<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> (Parsed<T>, bool, Trouble) {
        let outer_consumed = std::mem::replace(&mut self.consumed, false);
        if !self.explaining {
            let result = inner(self);
            let consumed = std::mem::replace(&mut self.consumed, outer_consumed);
            return (result, consumed, Trouble::default());
        }
        let fresh = Trouble::unknown(self.pos);
        let outer_trouble = std::mem::replace(&mut self.trouble, fresh);
        let result = inner(self);
        let consumed = std::mem::replace(&mut self.consumed, outer_consumed);
        let trouble = std::mem::replace(&mut self.trouble, outer_trouble);
        (result, consumed, trouble)
    }

    fn settle(&mut self, consumed: bool, trouble: Trouble) {
        if consumed {
            self.consumed = true;
            self.trouble = trouble;
        } else {
            self.note(trouble);
        }
    }

    /// A character that satisfies `test`.
    pub fn satisfy(&mut self, test: impl Fn(char) -> bool) -> Parsed<char> {
        match self.input.get(self.pos) {
            Some(&c) if test(c) => {
                self.advance(1);
                Ok(c)
            }
            Some(&c) => {
                let found = if self.explaining { show_string(&[c]) } else { String::new() };
                Err(self.fail(Kind::FoundInstead, found))
            }
            None => Err(self.fail(Kind::FoundInstead, "")),
        }
    }

    /// Exactly `c`.
    pub fn char(&mut self, c: char) -> Parsed<char> {
        let name = if self.explaining { show_string(&[c]) } else { String::new() };
        self.label(name, |p| p.satisfy(|found| found == c))
    }

    /// Exactly `text`; a mismatch after its first character counts as consumed.
    pub fn string(&mut self, text: &'static str) -> Parsed<()> {
        for (n, wanted) in text.chars().enumerate() {
            let found = self.input.get(self.pos + n).copied();
            if found != Some(wanted) {
                if n > 0 {
                    self.consumed = true;
                }
                if self.explaining {
                    let found = found.map_or_else(String::new, |c| show_string(&[c]));
                    let messages = vec![
                        Message { kind: Kind::Expected, text: show_string(&text.chars().collect::<Vec<_>>()).into() },
                        Message { kind: Kind::FoundInstead, text: found.into() },
                    ];
                    let trouble = Trouble { at: self.pos, messages };
                    if n > 0 {
                        self.trouble = trouble;
                    } else {
                        self.note(trouble);
                    }
                }
                return Err(Failed);
            }
        }
        self.advance(text.chars().count());
        Ok(())
    }

    /// `inner`, one level deeper. Every production that contains itself goes through here.
    pub fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_NESTING {
            self.too_deep = true;
            return Err(Failed);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// `inner`, as if nothing had been consumed when it fails.
    pub fn attempt<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let start = self.pos;
        let (result, consumed, trouble) = self.alone(inner);
        if result.is_err() {
            self.pos = start;
            self.note(trouble);
        } else {
            self.settle(consumed, trouble);
        }
        result
    }

    /// The first of two; the second only if the first failed without consuming.
    pub fn either<T>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Parsed<T>,
        second: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        let (result, consumed, trouble) = self.alone(first);
        self.settle(consumed, trouble);
        if result.is_ok() || consumed { result } else { second(self) }
    }

    /// `inner`, or `None` if it failed without consuming.
    pub fn optional<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Option<T>> {
        self.either(|p| inner(p).map(Some), |_| Ok(None))
    }

    /// Names what `inner` stands for in errors at its beginning.
    pub fn label<T>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        inner: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        if !self.explaining {
            return inner(self);
        }
        let (result, consumed, mut trouble) = self.alone(inner);
        if !consumed && (result.is_err() || !trouble.messages.is_empty()) {
            trouble.set_expected(name.into());
        }
        self.settle(consumed, trouble);
        result
    }

    /// `inner` as often as it goes.
    pub fn many<T>(&mut self, mut inner: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        loop {
            let (result, consumed, trouble) = self.alone(&mut inner);
            match result {
                Ok(item) => {
                    items.push(item);
                    if !consumed {
                        // A grammar that matches nothing would repeat for ever.
                        self.settle(false, trouble);
                        return Ok(items);
                    }
                    self.consumed = true;
                }
                Err(Failed) if consumed => {
                    self.settle(true, trouble);
                    return Err(Failed);
                }
                Err(Failed) if items.is_empty() => {
                    self.note(trouble);
                    return Ok(items);
                }
                Err(Failed) => {
                    self.trouble = trouble;
                    return Ok(items);
                }
            }
        }
    }

    /// The characters from here on that satisfy `test`, without tracking what else was expected; none while an error
    /// is being explained, when they are to be parsed one by one.
    pub fn unexplained_run(&mut self, test: impl Fn(char) -> bool) -> Option<String> {
        if self.explaining {
            return None;
        }
        let rest = &self.input[self.pos..];
        let length = rest.iter().position(|c| !test(*c)).unwrap_or(rest.len());
        if length > 0 {
            self.advance(length);
        }
        Some(rest[..length].iter().collect())
    }

    /// Characters that satisfy `test`, as often as they come.
    pub fn run(&mut self, test: impl Fn(char) -> bool) -> Parsed<String> {
        match self.unexplained_run(&test) {
            Some(run) => Ok(run),
            None => self.many(|p| p.satisfy(&test)).map(|chars| chars.into_iter().collect()),
        }
    }

    /// `inner` at least once.
    pub fn many1<T>(&mut self, mut inner: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let first = inner(self)?;
        let mut items = vec![first];
        items.extend(self.many(inner)?);
        Ok(items)
    }

    /// `inner` at least once, with `separator` between.
    pub fn separated1<T, S>(
        &mut self,
        mut inner: impl FnMut(&mut Self) -> Parsed<T>,
        mut separator: impl FnMut(&mut Self) -> Parsed<S>,
    ) -> Parsed<Vec<T>> {
        let first = inner(self)?;
        let mut items = vec![first];
        items.extend(self.many(|p| {
            separator(p)?;
            inner(p)
        })?);
        Ok(items)
    }

    /// Like [`Parser::separated1`], or nothing at all.
    pub fn separated<T, S>(
        &mut self,
        inner: impl FnMut(&mut Self) -> Parsed<T>,
        separator: impl FnMut(&mut Self) -> Parsed<S>,
    ) -> Parsed<Vec<T>> {
        self.either(|p| p.separated1(inner, separator), |_| Ok(Vec::new()))
    }

    /// Succeeds where `inner` would, consuming nothing.
    pub fn look_ahead<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let start = self.pos;
        let (result, consumed, trouble) = self.alone(inner);
        if result.is_ok() {
            self.pos = start;
        } else {
            self.settle(consumed, trouble);
        }
        result
    }

    /// Succeeds, consuming nothing, where `test` does not hold for the next character (or there is none).
    ///
    /// The error is positioned after the found character, as in Parsec.
    pub fn not_followed_by(&mut self, test: impl Fn(char) -> bool) -> Parsed<()> {
        match self.input.get(self.pos) {
            Some(&c) if test(c) => Err(self.unexpected(c, self.pos + 1)),
            _ => Ok(()),
        }
    }

    /// The end of the input.
    pub fn eof(&mut self) -> Parsed<()> {
        self.label("end of input", |p| match p.input.get(p.pos) {
            Some(&c) => Err(p.unexpected(c, p.pos)),
            None => Ok(()),
        })
    }

    fn unexpected(&mut self, c: char, at: usize) -> Failed {
        if self.explaining {
            self.note(Trouble { at, messages: vec![Message { kind: Kind::Unexpected, text: show_char(c).into() }] });
        }
        Failed
    }

    /// A failure without a reason of its own.
    pub fn reject<T>(&mut self) -> Parsed<T> {
        Err(Failed)
    }

    /// A letter of any script.
    pub fn letter(&mut self) -> Parsed<char> {
        self.label("letter", |p| p.satisfy(is_letter))
    }

    /// An ASCII digit.
    pub fn digit(&mut self) -> Parsed<char> {
        self.label("digit", |p| p.satisfy(|c| c.is_ascii_digit()))
    }

    fn explain(&self) -> ParseFault {
        let (mut line, mut column) = (1, 1);
        for &c in &self.input[..self.trouble.at.min(self.input.len())] {
            match c {
                '\n' => {
                    line += 1;
                    column = 1;
                }
                '\t' => column += 8 - (column - 1) % 8,
                _ => column += 1,
            }
        }
        ParseFault::Syntax { line, column, details: self.trouble.describe() }
    }
}

impl Trouble {
    fn describe(&self) -> String {
        if self.messages.is_empty() {
            return "unknown parse error".to_owned();
        }
        let of = |kind: Kind| {
            let mut texts: Vec<&str> = Vec::new();
            for m in self.messages.iter().filter(|m| m.kind == kind && !m.text.is_empty()) {
                if !texts.contains(&m.text.as_ref()) {
                    texts.push(&m.text);
                }
            }
            texts
        };
        let mut parts = Vec::new();
        let unexpected = of(Kind::Unexpected);
        let has_unexpected = self.messages.iter().any(|m| m.kind == Kind::Unexpected);
        if let (false, Some(found)) = (has_unexpected, self.messages.iter().find(|m| m.kind == Kind::FoundInstead)) {
            let found = if found.text.is_empty() { "end of input" } else { found.text.as_ref() };
            parts.push(format!("unexpected {found}"));
        }
        if !unexpected.is_empty() {
            parts.push(format!("unexpected {}", join_or(&unexpected)));
        }
        let expected = of(Kind::Expected);
        if !expected.is_empty() {
            parts.push(format!("expecting {}", join_or(&expected)));
        }
        parts.join(" ").trim().to_owned()
    }
}

fn join_or(texts: &[&str]) -> String {
    match texts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} or {last}", init.join(", ")),
    }
}

/// A text in quotes with Haskell's escapes, as its `show` writes it.
pub fn show_string(text: &[char]) -> String {
    let mut out = String::from("\"");
    for (n, &c) in text.iter().enumerate() {
        let next = text.get(n + 1).copied();
        escape_into(&mut out, c, next, '"');
    }
    out.push('"');
    out
}

fn show_char(c: char) -> String {
    let mut out = String::from("'");
    escape_into(&mut out, c, None, '\'');
    out.push('\'');
    out
}

fn escape_into(out: &mut String, c: char, next: Option<char>, quote: char) {
    const CONTROL: [&str; 32] = [
        "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "a", "b", "t", "n", "v", "f", "r", "SO", "SI", "DLE", "DC1",
        "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
    ];
    match c {
        '\\' => out.push_str("\\\\"),
        c if c == quote => {
            out.push('\\');
            out.push(c);
        }
        c if (c as usize) < 32 => {
            out.push('\\');
            out.push_str(CONTROL[c as usize]);
            if c == '\u{e}' && next == Some('H') {
                out.push_str("\\&");
            }
        }
        '\u{7f}' => out.push_str("\\DEL"),
        c if (c as u32) > 0x7f => {
            out.push_str(&format!("\\{}", c as u32));
            if next.is_some_and(|n| n.is_ascii_digit()) {
                out.push_str("\\&");
            }
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault<T: std::fmt::Debug>(text: &str, grammar: impl Fn(&mut Parser<'_>) -> Parsed<T>) -> String {
        match parse(text, grammar).expect_err("should fail") {
            ParseFault::Syntax { line, column, details } => format!("{line}:{column} {details}"),
            ParseFault::TooDeep => panic!("{text} is not nested"),
        }
    }

    #[test]
    fn expectations_at_one_position_add_up() {
        let grammar = |p: &mut Parser<'_>| p.either(|p| p.char('a'), |p| p.digit());
        assert_eq!(fault("x", grammar), "1:1 unexpected \"x\" expecting \"a\" or digit");
    }

    #[test]
    fn a_consumed_alternative_is_not_given_up_unless_attempted() {
        let plain = |p: &mut Parser<'_>| p.either(|p| p.string("not"), |p| p.string("null"));
        assert_eq!(fault("null", plain), "1:1 unexpected \"u\" expecting \"not\"");
        let attempted = |p: &mut Parser<'_>| p.either(|p| p.attempt(|p| p.string("not")), |p| p.string("null"));
        assert_eq!(parse("null", attempted), Ok(()));
    }

    #[test]
    fn errors_name_the_end_of_input() {
        let grammar = |p: &mut Parser<'_>| {
            p.many(|p| p.digit())?;
            p.char(',')
        };
        assert_eq!(fault("12", grammar), "1:3 unexpected end of input expecting digit or \",\"");
        let whole = |p: &mut Parser<'_>| {
            p.char('a')?;
            p.eof()
        };
        assert_eq!(fault("ab", whole), "1:2 unexpected 'b' expecting end of input");
    }

    #[test]
    fn characters_are_shown_with_escapes() {
        assert_eq!(show_string(&['ü', '1', '"', '\n']), "\"\\252\\&1\\\"\\n\"");
    }

    #[test]
    fn lines_and_tabs_count_as_in_an_editor() {
        let grammar = |p: &mut Parser<'_>| {
            p.many(|p| p.satisfy(char::is_whitespace))?;
            p.char('x')
        };
        assert_eq!(fault("\n\t!", grammar), "2:9 unexpected \"!\" expecting \"x\"");
    }
}
