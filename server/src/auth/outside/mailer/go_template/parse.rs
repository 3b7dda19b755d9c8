//! From text to nodes.

use serde_json::Value;

use super::html::HtmlState;
use super::{Node, Operand, Pipeline, TemplateError};

pub(super) enum Piece {
    Text(String),
    Action(String),
}

/// Splits into text and actions, applying trim markers and dropping comments.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
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
        let close = action_end(after).ok_or(TemplateError::Unclosed)?;
        let mut inner = &after[..close];
        rest = &after[close + 2..];
        trim_next = inner.ends_with(" -") || inner.ends_with("\t-") || inner.ends_with("\n-");
        if trim_next {
            inner = &inner[..inner.len() - 1];
        }
        let inner = inner.trim();
        if !(inner.starts_with("/*") && inner.ends_with("*/")) {
            out.push(Piece::Action(inner.to_owned()));
        }
    }
}

/// The position of the `}}` that ends an action, past quoted texts.
fn action_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(b'"'), b'\\') => at += 1,
            (Some(q), b) if b == q => quote = None,
            (None, b @ (b'"' | b'`')) => quote = Some(b),
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

pub(super) struct Parser {
    pub(super) pieces: Vec<Piece>,
    pub(super) at: usize,
    pub(super) html: HtmlState,
}

impl Parser {
    /// Nodes up to the end or to the action that ends this block, whose words are returned.
    pub(super) fn nodes(&mut self) -> Result<(Vec<Node>, Option<String>), TemplateError> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.get(self.at) {
            self.at += 1;
            match piece {
                Piece::Text(text) => {
                    self.html.read(text);
                    nodes.push(Node::Text(text.clone()));
                }
                Piece::Action(action) => {
                    let action = action.clone();
                    let word = action.split_whitespace().next().unwrap_or("");
                    let tail = action[word.len()..].trim();
                    match word {
                        "end" | "else" => return Ok((nodes, Some(action))),
                        "if" => nodes.push(self.branch(tail)?),
                        "with" => {
                            let over = pipeline(tail)?;
                            let (body, otherwise) = self.body()?;
                            nodes.push(Node::With { over, body, otherwise });
                        }
                        "range" => {
                            let (names, over) = match tail.split_once(":=") {
                                Some((names, over)) => (names, over),
                                None => ("", tail),
                            };
                            let names: Vec<String> = names
                                .split(',')
                                .map(|name| name.trim().trim_start_matches('$').to_owned())
                                .filter(|name| !name.is_empty())
                                .collect();
                            let (key, item) = match names.as_slice() {
                                [] => (None, None),
                                [item] => (None, Some(item.clone())),
                                [key, item, ..] => (Some(key.clone()), Some(item.clone())),
                            };
                            let over = pipeline(over)?;
                            let (body, otherwise) = self.body()?;
                            nodes.push(Node::Range { key, item, over, body, otherwise });
                        }
                        "" => return Err(TemplateError::Unexpected("missing value for command".to_owned())),
                        _ => match assignment(&action) {
                            Some((name, value)) => nodes.push(Node::Assign(name, pipeline(value)?)),
                            None => {
                                let context = self.html.context();
                                self.html.wrote_value();
                                nodes.push(Node::Print(pipeline(&action)?, context));
                            }
                        },
                    }
                }
            }
        }
        Ok((nodes, None))
    }

    /// The rest of an `if` whose condition is `condition`.
    fn branch(&mut self, condition: &str) -> Result<Node, TemplateError> {
        let mut branches = Vec::new();
        let mut condition = pipeline(condition)?;
        loop {
            let (body, end) = self.nodes()?;
            branches.push((condition, body));
            let end = end.ok_or(TemplateError::MissingEnd)?;
            match end.strip_prefix("else").map(str::trim) {
                None => return Ok(Node::If { branches, otherwise: Vec::new() }),
                Some("") => {
                    let (otherwise, end) = self.nodes()?;
                    return match end.as_deref() {
                        Some("end") => Ok(Node::If { branches, otherwise }),
                        Some(word) => Err(TemplateError::Unexpected(format!("{{{{ {word} }}}}"))),
                        None => Err(TemplateError::MissingEnd),
                    };
                }
                Some(next) => {
                    let next = next.strip_prefix("if").ok_or_else(|| TemplateError::Unexpected(end.clone()))?;
                    condition = pipeline(next)?;
                }
            }
        }
    }

    /// The body and the `else` part of a block.
    fn body(&mut self) -> Result<(Vec<Node>, Vec<Node>), TemplateError> {
        let (body, end) = self.nodes()?;
        match end.as_deref() {
            Some("end") => Ok((body, Vec::new())),
            Some("else") => match self.nodes()? {
                (otherwise, Some(end)) if end == "end" => Ok((body, otherwise)),
                (_, Some(word)) => Err(TemplateError::Unexpected(format!("{{{{ {word} }}}}"))),
                (_, None) => Err(TemplateError::MissingEnd),
            },
            Some(word) => Err(TemplateError::Unexpected(format!("{{{{ {word} }}}}"))),
            None => Err(TemplateError::MissingEnd),
        }
    }
}

/// `$name := value` or `$name = value`.
fn assignment(action: &str) -> Option<(String, &str)> {
    let name_end = action.find([' ', ':', '='])?;
    let name = action.strip_prefix('$')?.get(..name_end.checked_sub(1)?)?;
    let rest = action[name_end..].trim_start();
    let value = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('=').filter(|v| !v.starts_with('=')))?;
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then(|| (name.to_owned(), value))
}

const FUNCTIONS: [&str; 17] = [
    "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "len", "index", "printf", "print", "println", "urlquery",
    "html", "js",
];

fn pipeline(text: &str) -> Result<Pipeline, TemplateError> {
    let characters: Vec<char> = text.chars().collect();
    let mut at = 0;
    let parsed = commands(&characters, &mut at)?;
    if at < characters.len() {
        return Err(TemplateError::Unexpected(characters[at..].iter().collect()));
    }
    Ok(parsed)
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
    Ok(Pipeline(commands))
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
            let path = fields(at);
            if path.is_empty() {
                *at += 1;
                Ok(Operand::Dot)
            } else {
                Ok(Operand::Field { variable: None, path })
            }
        }
        c if c.is_ascii_digit() || c == '-' || c == '+' => {
            let number = word(*at, &|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            *at += number.chars().count();
            number
                .parse::<i64>()
                .map(Value::from)
                .or_else(|_| number.parse::<f64>().map(Value::from))
                .map(Operand::Literal)
                .map_err(|_| TemplateError::Unexpected(format!("bad number {number}")))
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
            '\\' if quote == '"' => {
                let escaped = text.get(*at).copied().unwrap_or('\\');
                *at += 1;
                out.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
            }
            other => out.push(other),
        }
    }
}
