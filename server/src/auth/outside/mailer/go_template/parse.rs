//! From text to nodes.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::html::HtmlState;
use super::{Node, Operand, Pipeline, Template, TemplateError};

/// How many templates with a place in HTML are parsed, at most.
const MAX_DERIVED: usize = 100;

enum Piece {
    Text(String),
    Action(String),
}

/// Splits into text and actions, applying trim markers and dropping comments.
fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut trim_next = false;
    loop {
        let (before, after) = match rest.split_once("{{") {
            Some((before, after)) => (before, Some(after)),
            None => (rest, None),
        };
        let mut before = if trim_next { before.trim_start() } else { before };
        let Some(after) = after else {
            out.push(Piece::Text(before.to_owned()));
            return Ok(out);
        };
        let (trim_before, after) = match after.strip_prefix('-') {
            Some(tail) if tail.starts_with(char::is_whitespace) => (true, tail),
            _ => (false, after),
        };
        if trim_before {
            before = before.trim_end();
        }
        out.push(Piece::Text(before.to_owned()));
        if let Some((is_trimming, after)) = comment(after)? {
            (trim_next, rest) = (is_trimming, after);
            continue;
        }
        let close = action_end(after).ok_or(TemplateError::Unclosed)?;
        let mut inner = &after[..close];
        rest = &after[close + 2..];
        trim_next = [" -", "\t-", "\r-", "\n-"].iter().any(|marker| inner.ends_with(marker));
        if trim_next {
            inner = &inner[..inner.len() - 1];
        }
        out.push(Piece::Action(inner.trim().to_owned()));
    }
}

/// Reads a comment, in which quotes and braces mean nothing: whether the text after it is trimmed, and that text.
fn comment(text: &str) -> Result<Option<(bool, &str)>, TemplateError> {
    let Some(comment) = text.trim_start().strip_prefix("/*") else { return Ok(None) };
    let (_, after) =
        comment.split_once("*/").ok_or_else(|| TemplateError::Unexpected("unclosed comment".to_owned()))?;
    let end = after.trim_start();
    let is_trimming = end.len() < after.len() && end.starts_with('-');
    let end = if is_trimming { &end[1..] } else { end };
    let rest = end.strip_prefix("}}");
    let rest = rest.ok_or_else(|| TemplateError::Unexpected("text after a comment".to_owned()))?;
    Ok(Some((is_trimming, rest)))
}

/// The position of the `}}` that ends an action, past quoted texts.
fn action_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(b'"' | b'\''), b'\\') => at += 1,
            (Some(q), b) if b == q => quote = None,
            (None, b @ (b'"' | b'`' | b'\'')) => quote = Some(b),
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The first word of an action, and the rest.
fn first_word(action: &str) -> (&str, &str) {
    let end = action.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(action.len());
    (&action[..end], action[end..].trim())
}

/// The bodies of templates that are defined in a text, by name.
fn definitions(pieces: &[Piece]) -> Result<HashMap<String, usize>, TemplateError> {
    let mut found = HashMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        let Piece::Action(action) = piece else { continue };
        if let ("define" | "block", tail) = first_word(action) {
            let (name, _) = template_name(tail)?;
            if found.insert(name, at + 1).is_some() {
                return Err(TemplateError::Unexpected(format!("second definition: {tail}")));
            }
        }
    }
    Ok(found)
}

/// The quoted name at the beginning of `text`, and the rest.
fn template_name(text: &str) -> Result<(String, String), TemplateError> {
    let characters: Vec<char> = text.chars().collect();
    let mut at = 0;
    let Some('"' | '`') = characters.first() else {
        return Err(TemplateError::Unexpected(format!("{text}: the name of a template is a quoted text")));
    };
    let Operand::Literal(Value::String(name)) = literal_text(&characters, &mut at)? else {
        return Err(TemplateError::Unexpected(text.to_owned()));
    };
    Ok((name, characters[at..].iter().collect::<String>().trim().to_owned()))
}

/// A template as it is called at one kind of place in HTML.
struct Derived {
    /// `None` while it is being parsed, which a recursive one meets.
    nodes: Option<Vec<Node>>,
    end: HtmlState,
}

pub(super) struct Parser {
    pieces: Rc<[Piece]>,
    at: usize,
    html: HtmlState,
    /// Where the body of each defined template begins.
    definitions: HashMap<String, usize>,
    derived: Vec<Derived>,
    known: HashMap<(String, HtmlState), usize>,
    /// How many blocks are open, and how many of them are loops.
    depth: usize,
    loops: usize,
}

impl Parser {
    pub(super) fn new(text: &str) -> Result<Self, TemplateError> {
        let pieces: Rc<[Piece]> = pieces(text)?.into();
        Ok(Self {
            definitions: definitions(&pieces)?,
            pieces,
            at: 0,
            html: HtmlState::default(),
            derived: Vec::new(),
            known: HashMap::new(),
            depth: 0,
            loops: 0,
        })
    }

    pub(super) fn whole(mut self) -> Result<Template, TemplateError> {
        match self.nodes()? {
            (nodes, None) => {
                let called = self.derived.into_iter().map(|derived| derived.nodes.unwrap_or_default()).collect();
                Ok(Template { nodes, called })
            }
            (_, Some(end)) => Err(unexpected(&end)),
        }
    }

    /// Nodes up to the end or to the action that ends this block, which is returned.
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<String>), TemplateError> {
        let mut nodes = Vec::new();
        let pieces = Rc::clone(&self.pieces);
        while let Some(piece) = pieces.get(self.at) {
            self.at += 1;
            let action = match piece {
                Piece::Text(text) => {
                    self.html.read(text);
                    nodes.push(Node::Text(text.clone()));
                    continue;
                }
                Piece::Action(action) => action,
            };
            let (word, tail) = first_word(action);
            match word {
                "end" | "else" => return Ok((nodes, Some(action.clone()))),
                "if" | "with" => nodes.push(self.branches(word, tail)?),
                "range" => {
                    let over = pipeline(tail)?;
                    self.loops += 1;
                    let (body, end) = self.block()?;
                    self.loops -= 1;
                    let otherwise = self.otherwise(&end)?;
                    nodes.push(Node::Range { over, body, otherwise });
                }
                "break" | "continue" if !tail.is_empty() || self.loops == 0 => return Err(unexpected(action)),
                "break" => nodes.push(Node::Break),
                "continue" => nodes.push(Node::Continue),
                "define" if self.depth > 0 => return Err(unexpected(action)),
                "define" => self.skip_definition()?,
                "block" => {
                    let (name, argument) = template_name(tail)?;
                    nodes.push(self.call(name, Some(&argument))?);
                    self.skip_definition()?;
                }
                "template" => {
                    let (name, argument) = template_name(tail)?;
                    nodes.push(self.call(name, Some(argument.as_str()).filter(|argument| !argument.is_empty()))?);
                }
                _ => {
                    let printed = pipeline(action)?;
                    let context = self.html.context();
                    if printed.names.is_empty() {
                        self.html.wrote_value();
                    }
                    nodes.push(Node::Print(printed, context));
                }
            }
        }
        Ok((nodes, None))
    }

    /// The nodes of a block, and the action that ends it.
    fn block(&mut self) -> Result<(Vec<Node>, String), TemplateError> {
        self.depth += 1;
        let (nodes, end) = self.nodes()?;
        self.depth -= 1;
        Ok((nodes, end.ok_or(TemplateError::MissingEnd)?))
    }

    /// The rest of an `if` or `with`, whose first pipeline is `first`.
    fn branches(&mut self, word: &str, first: &str) -> Result<Node, TemplateError> {
        let mut branches = Vec::new();
        let mut over = pipeline(first)?;
        let otherwise = loop {
            let (body, end) = self.block()?;
            branches.push((over, body));
            match first_word(&end) {
                ("else", tail) if first_word(tail).0 == word => over = pipeline(first_word(tail).1)?,
                _ => break self.otherwise(&end)?,
            }
        };
        let is_with = word == "with";
        Ok(Node::Branches { is_with, branches, otherwise })
    }

    /// The `else` part of a block, if its body ended with one.
    fn otherwise(&mut self, end: &str) -> Result<Vec<Node>, TemplateError> {
        match first_word(end) {
            ("end", "") => Ok(Vec::new()),
            ("else", "") => match self.block()? {
                (otherwise, end) if first_word(&end) == ("end", "") => Ok(otherwise),
                (_, end) => Err(unexpected(&end)),
            },
            _ => Err(unexpected(end)),
        }
    }

    /// Passes over the body of a template, which is parsed where it is called.
    fn skip_definition(&mut self) -> Result<(), TemplateError> {
        let mut open = 1;
        while let Some(piece) = self.pieces.get(self.at) {
            self.at += 1;
            let Piece::Action(action) = piece else { continue };
            match first_word(action).0 {
                "if" | "with" | "range" | "block" => open += 1,
                "define" => return Err(unexpected(action)),
                "end" => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
        }
        Err(TemplateError::MissingEnd)
    }

    /// A call of a defined template. Its values are escaped for the place of the call.
    fn call(&mut self, name: String, argument: Option<&str>) -> Result<Node, TemplateError> {
        let argument = argument.map(pipeline).transpose()?;
        let key = (name, self.html.clone());
        let index = match self.known.get(&key) {
            Some(index) => *index,
            None => self.derive(key)?,
        };
        // One that is being parsed is taken to end where it begins.
        self.html = self.derived.get(index).map(|derived| derived.end.clone()).unwrap_or_default();
        Ok(Node::Call { index, argument })
    }

    fn derive(&mut self, key: (String, HtmlState)) -> Result<usize, TemplateError> {
        let begin = self.definitions.get(&key.0).copied();
        let begin = begin.ok_or_else(|| TemplateError::NoTemplate(key.0.clone()))?;
        let index = self.derived.len();
        if index == MAX_DERIVED {
            return Err(TemplateError::Value("templates that call each other without end"));
        }
        self.derived.push(Derived { nodes: None, end: self.html.clone() });
        self.known.insert(key, index);
        let outside = (self.at, self.loops);
        (self.at, self.loops) = (begin, 0);
        let (nodes, end) = self.block()?;
        (self.at, self.loops) = outside;
        if first_word(&end) != ("end", "") {
            return Err(unexpected(&end));
        }
        if let Some(derived) = self.derived.get_mut(index) {
            *derived = Derived { nodes: Some(nodes), end: self.html.clone() };
        }
        Ok(index)
    }
}

fn unexpected(action: &str) -> TemplateError {
    TemplateError::Unexpected(format!("{{{{ {action} }}}}"))
}

/// Go's builtin functions.
const FUNCTIONS: [&str; 19] = [
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print", "printf",
    "println", "slice", "urlquery",
];

fn pipeline(text: &str) -> Result<Pipeline, TemplateError> {
    let (names, is_assignment, commands_text) = declaration(text).unwrap_or((Vec::new(), false, text));
    let characters: Vec<char> = commands_text.chars().collect();
    let mut at = 0;
    let parsed = commands(&characters, &mut at)?;
    if at < characters.len() {
        return Err(TemplateError::Unexpected(characters[at..].iter().collect()));
    }
    Ok(Pipeline { names, is_assignment, ..parsed })
}

/// `$name :=`, `$name =`, or either with two names, at the beginning of a pipeline: the names, whether they have to be
/// there already, and the rest.
fn declaration(text: &str) -> Option<(Vec<String>, bool, &str)> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let variable = rest.strip_prefix('$')?;
        let (name, _) = first_word(variable);
        names.push(name.to_owned());
        rest = variable[name.len()..].trim_start();
        match rest.strip_prefix(',') {
            Some(after) if names.len() < 2 => rest = after.trim_start(),
            _ => break,
        }
    }
    match rest.strip_prefix(":=") {
        Some(value) => Some((names, false, value)),
        None => rest.strip_prefix('=').map(|value| (names, true, value)),
    }
}

fn commands(text: &[char], at: &mut usize) -> Result<Pipeline, TemplateError> {
    let mut commands = vec![Vec::new()];
    loop {
        while text.get(*at).is_some_and(|c| c.is_whitespace()) {
            *at += 1;
        }
        match text.get(*at) {
            None | Some(')') => break,
            Some('|') => {
                *at += 1;
                commands.push(Vec::new());
            }
            Some(_) => {
                let operand = operand(text, at)?;
                if let Some(command) = commands.last_mut() {
                    command.push(operand);
                }
            }
        }
    }
    if commands.iter().any(Vec::is_empty) {
        return Err(TemplateError::Unexpected("missing value for command".to_owned()));
    }
    Ok(Pipeline { names: Vec::new(), is_assignment: false, commands })
}

fn operand(text: &[char], at: &mut usize) -> Result<Operand, TemplateError> {
    let word = |from: usize, fits: &dyn Fn(char) -> bool| -> String {
        text[from..].iter().copied().take_while(|c| fits(*c)).collect()
    };
    let name = |c: char| c.is_alphanumeric() || c == '_';
    let fields = |at: &mut usize| -> Vec<String> {
        let mut path = Vec::new();
        while text.get(*at) == Some(&'.') && text.get(*at + 1).is_some_and(|c| name(*c)) {
            let field = word(*at + 1, &name);
            *at += 1 + field.chars().count();
            path.push(field);
        }
        path
    };
    match text[*at] {
        '(' => {
            *at += 1;
            let inner = commands(text, at)?;
            if text.get(*at) != Some(&')') {
                return Err(TemplateError::Unexpected("unclosed left paren".to_owned()));
            }
            *at += 1;
            Ok(Operand::Nested(inner, fields(at)))
        }
        '"' | '`' => literal_text(text, at),
        '$' => {
            let variable = word(*at + 1, &name);
            *at += 1 + variable.chars().count();
            Ok(Operand::Field { variable: Some(variable), path: fields(at) })
        }
        '.' => {
            if text.get(*at + 1).is_some_and(char::is_ascii_digit) {
                let digits = word(*at, &|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
                *at += digits.chars().count();
                return number(&digits).map(Operand::Literal);
            }
            let path = fields(at);
            if path.is_empty() {
                *at += 1;
                Ok(Operand::Dot)
            } else {
                Ok(Operand::Field { variable: None, path })
            }
        }
        '\'' => {
            let Operand::Literal(Value::String(character)) = literal_text(text, at)? else {
                return Err(TemplateError::Unexpected("malformed character constant".to_owned()));
            };
            let mut characters = character.chars();
            match (characters.next(), characters.next()) {
                (Some(c), None) => Ok(Operand::Literal(Value::from(u32::from(c)))),
                _ => Err(TemplateError::Unexpected("malformed character constant".to_owned())),
            }
        }
        c if c.is_ascii_digit() || c == '-' || c == '+' => {
            let digits = word(*at, &|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
            *at += digits.chars().count();
            number(&digits).map(Operand::Literal)
        }
        c if name(c) => {
            let word = word(*at, &name);
            *at += word.chars().count();
            match word.as_str() {
                "true" => Ok(Operand::Literal(Value::Bool(true))),
                "false" => Ok(Operand::Literal(Value::Bool(false))),
                "nil" => Ok(Operand::Literal(Value::Null)),
                _ if FUNCTIONS.contains(&word.as_str()) => Ok(Operand::Function(word)),
                _ => Err(TemplateError::Function(word)),
            }
        }
        other => Err(TemplateError::Unexpected(format!("{other:?} in command"))),
    }
}

fn literal_text(text: &[char], at: &mut usize) -> Result<Operand, TemplateError> {
    let quote = text[*at];
    *at += 1;
    let mut out = String::new();
    loop {
        let Some(&c) = text.get(*at) else {
            return Err(TemplateError::Unexpected("unterminated quoted string".to_owned()));
        };
        *at += 1;
        match c {
            c if c == quote => return Ok(Operand::Literal(Value::String(out))),
            '\\' if quote != '`' => out.push(escaped(text, at)?),
            '\n' if quote != '`' => {
                return Err(TemplateError::Unexpected("unterminated quoted string".to_owned()));
            }
            other => out.push(other),
        }
    }
}

/// What the characters after a backslash stand for.
fn escaped(text: &[char], at: &mut usize) -> Result<char, TemplateError> {
    let malformed = || TemplateError::Unexpected("unknown escape in a quoted text".to_owned());
    let kind = *text.get(*at).ok_or_else(malformed)?;
    let (radix, length) = match kind {
        'x' => (16, 2),
        'u' => (16, 4),
        'U' => (16, 8),
        '0'..='7' => (8, 3),
        _ => {
            *at += 1;
            return Ok(match kind {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                other => other,
            });
        }
    };
    *at += usize::from(radix == 16);
    let digits: String = text.iter().skip(*at).take(length).collect();
    *at += length;
    let code = u32::from_str_radix(&digits, radix).ok().filter(|_| digits.chars().count() == length);
    code.and_then(char::from_u32).ok_or_else(malformed)
}

/// A number as Go writes it: a whole one is an integer, even if it has an exponent.
fn number(text: &str) -> Result<Value, TemplateError> {
    let malformed = || TemplateError::Unexpected(format!("bad number {text}"));
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let lower = digits.to_ascii_lowercase();
    let whole = match lower.get(..2) {
        Some("0x") => i64::from_str_radix(&lower[2..], 16).ok(),
        Some("0o") => i64::from_str_radix(&lower[2..], 8).ok(),
        Some("0b") => i64::from_str_radix(&lower[2..], 2).ok(),
        _ => digits.parse().ok(),
    };
    if let Some(whole) = whole {
        return Ok(Value::from(sign * whole));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(malformed());
    }
    let float: f64 = plain.parse().map_err(|_| malformed())?;
    Ok(if float.fract() == 0.0 && float.abs() < 1e15 { Value::from(float as i64) } else { Value::from(float) })
}
