//! The part of Go's `html/template` that mail templates use.
//!
//! Actions: `{{ .Field.key }}`, `{{ if }}`/`{{ else if }}`/`{{ else }}`, `{{ range }}` (with `$i, $v :=`),
//! `{{ with }}`, `{{ end }}`, variables, comments, trim markers, pipelines with `eq ne lt le gt ge and or not
//! len index printf print urlquery html js`, parentheses and literals. Values are escaped by where they stand:
//! text, attribute, or URL. Reference: <https://pkg.go.dev/html/template>.

use serde_json::{Map, Value};

/// Why a text is no template, or cannot be rendered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("unclosed action")]
    Unclosed,
    #[error("unexpected {0}")]
    Unexpected(String),
    #[error("missing {{{{ end }}}}")]
    MissingEnd,
    #[error("function {0:?} not defined")]
    Function(String),
    #[error("undefined variable {0:?}")]
    Variable(String),
    #[error("{0}")]
    Value(&'static str),
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    nodes: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Text(String),
    Print(Pipeline, Context),
    Assign(String, Pipeline),
    If { branches: Vec<(Pipeline, Vec<Node>)>, otherwise: Vec<Node> },
    With { over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    Range { key: Option<String>, item: Option<String>, over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
}

/// Where a value stands in the HTML around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Text,
    /// In a tag, not in an attribute whose value is a URL.
    Attribute,
    /// In an attribute without quotes.
    Unquoted,
    /// At the beginning of a URL: its scheme is checked.
    UrlStart,
    /// Later in a URL's path.
    UrlPath,
    /// In the query or fragment of a URL.
    UrlQuery,
}

/// Commands joined by `|`.
#[derive(Debug)]
struct Pipeline(Vec<Vec<Operand>>);

#[derive(Debug)]
enum Operand {
    Dot,
    Literal(Value),
    /// `.A.b`, `$.A`, `$x.b`.
    Field {
        variable: Option<String>,
        path: Vec<String>,
    },
    Function(String),
    Nested(Pipeline, Vec<String>),
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parser = Parser { pieces: pieces(text)?, at: 0, html: HtmlState::default() };
        let (nodes, end) = parser.nodes()?;
        match end {
            None => Ok(Self { nodes }),
            Some(word) => Err(TemplateError::Unexpected(format!("{{{{ {word} }}}}"))),
        }
    }

    /// The text with `data` filled in.
    pub fn render(&self, data: &Map<String, Value>) -> Result<String, TemplateError> {
        let root = Value::Object(data.clone());
        let mut out = String::new();
        let mut scope = Scope { root: &root, variables: Vec::new() };
        render(&self.nodes, &root, &mut scope, &mut out)?;
        Ok(out)
    }
}

// ---------------------------------------------------------------- reading

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

struct Parser {
    pieces: Vec<Piece>,
    at: usize,
    html: HtmlState,
}

impl Parser {
    /// Nodes up to the end or to the action that ends this block, whose words are returned.
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<String>), TemplateError> {
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

// ---------------------------------------------------------------- where in the HTML

#[derive(Clone, Debug, Default)]
struct HtmlState {
    in_tag: bool,
    /// The attribute being read.
    attribute: String,
    /// `"`, `'`, or a blank for a value without quotes.
    quote: Option<char>,
    /// What of the attribute's value is known.
    value: String,
    value_has_holes: bool,
    after_equals: bool,
}

impl HtmlState {
    fn read(&mut self, text: &str) {
        for c in text.chars() {
            match (self.in_tag, self.quote) {
                (false, _) => {
                    if c == '<' {
                        *self = Self { in_tag: true, ..Self::default() };
                    }
                }
                (true, Some(' ')) if c.is_whitespace() => self.close_value(),
                (true, Some(' ')) if c == '>' => *self = Self::default(),
                (true, Some(quote)) if c == quote => self.close_value(),
                (true, Some(_)) => self.value.push(c),
                (true, None) => match c {
                    '>' => *self = Self::default(),
                    '=' => self.after_equals = true,
                    '"' | '\'' if self.after_equals => self.open_value(c),
                    c if c.is_whitespace() => {
                        if !self.after_equals {
                            self.attribute.clear();
                        }
                    }
                    c if self.after_equals => {
                        self.open_value(' ');
                        self.value.push(c);
                    }
                    c => self.attribute.push(c.to_ascii_lowercase()),
                },
            }
        }
    }

    fn open_value(&mut self, quote: char) {
        self.quote = Some(quote);
        self.value.clear();
        self.value_has_holes = false;
        self.after_equals = false;
    }

    fn close_value(&mut self) {
        self.quote = None;
        self.attribute.clear();
    }

    fn wrote_value(&mut self) {
        if self.in_tag && self.quote.is_none() && self.after_equals {
            self.open_value(' ');
        }
        self.value_has_holes = true;
    }

    fn context(&self) -> Context {
        const URL_ATTRIBUTES: [&str; 10] =
            ["href", "src", "action", "cite", "formaction", "longdesc", "poster", "background", "usemap", "data"];
        if !self.in_tag {
            return Context::Text;
        }
        if self.quote.is_none() || self.quote == Some(' ') {
            return Context::Unquoted;
        }
        if !URL_ATTRIBUTES.contains(&self.attribute.as_str()) {
            return Context::Attribute;
        }
        if self.value.contains(['?', '#']) {
            Context::UrlQuery
        } else if self.value.trim().is_empty() && !self.value_has_holes {
            Context::UrlStart
        } else {
            Context::UrlPath
        }
    }
}

// ---------------------------------------------------------------- writing

struct Scope<'a> {
    root: &'a Value,
    variables: Vec<(String, Value)>,
}

fn render(nodes: &[Node], dot: &Value, scope: &mut Scope<'_>, out: &mut String) -> Result<(), TemplateError> {
    let depth = scope.variables.len();
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Print(pipeline, context) => {
                let value = evaluate(pipeline, dot, scope)?;
                let already = pipeline.0.last().and_then(|command| command.first());
                match already {
                    Some(Operand::Function(name)) if name == "html" && *context == Context::Text => {
                        out.push_str(&text_of(&value));
                    }
                    Some(Operand::Function(name)) if name == "urlquery" && *context == Context::UrlQuery => {
                        out.push_str(&text_of(&value));
                    }
                    _ => escape(&text_of(&value), *context, out),
                }
            }
            Node::Assign(name, pipeline) => {
                let value = evaluate(pipeline, dot, scope)?;
                match scope.variables.iter_mut().rev().find(|(known, _)| known == name) {
                    Some((_, slot)) => *slot = value,
                    None => scope.variables.push((name.clone(), value)),
                }
            }
            Node::If { branches, otherwise } => {
                let mut chosen = otherwise;
                for (condition, body) in branches {
                    if truth(&evaluate(condition, dot, scope)?) {
                        chosen = body;
                        break;
                    }
                }
                render(chosen, dot, scope, out)?;
            }
            Node::With { over, body, otherwise } => {
                let value = evaluate(over, dot, scope)?;
                if truth(&value) {
                    render(body, &value, scope, out)?;
                } else {
                    render(otherwise, dot, scope, out)?;
                }
            }
            Node::Range { key, item, over, body, otherwise } => {
                let value = evaluate(over, dot, scope)?;
                let entries: Vec<(Value, Value)> = match value {
                    Value::Array(items) => {
                        items.into_iter().enumerate().map(|(index, item)| (Value::from(index), item)).collect()
                    }
                    Value::Object(map) => {
                        let mut entries: Vec<_> = map.into_iter().map(|(k, v)| (Value::String(k), v)).collect();
                        entries.sort_by(|a, b| a.0.as_str().cmp(&b.0.as_str()));
                        entries
                    }
                    Value::Null => Vec::new(),
                    _ => return Err(TemplateError::Value("range can't iterate over this value")),
                };
                if entries.is_empty() {
                    render(otherwise, dot, scope, out)?;
                }
                for (index, value) in entries {
                    let depth = scope.variables.len();
                    if let Some(key) = key {
                        scope.variables.push((key.clone(), index));
                    }
                    if let Some(item) = item {
                        scope.variables.push((item.clone(), value.clone()));
                    }
                    render(body, &value, scope, out)?;
                    scope.variables.truncate(depth);
                }
            }
        }
    }
    scope.variables.truncate(depth);
    Ok(())
}

fn evaluate(pipeline: &Pipeline, dot: &Value, scope: &Scope<'_>) -> Result<Value, TemplateError> {
    let mut piped: Option<Value> = None;
    for command in &pipeline.0 {
        let (first, rest) = command.split_first().ok_or(TemplateError::Value("missing value for command"))?;
        piped = Some(match first {
            Operand::Function(name) => {
                let mut arguments = Vec::with_capacity(rest.len() + 1);
                for operand in rest {
                    arguments.push(resolve(operand, dot, scope)?);
                }
                arguments.extend(piped);
                call(name, &arguments)?
            }
            _ if !rest.is_empty() || piped.is_some() => {
                return Err(TemplateError::Value("can't give argument to non-function"));
            }
            operand => resolve(operand, dot, scope)?,
        });
    }
    piped.ok_or(TemplateError::Value("missing value for command"))
}

fn resolve(operand: &Operand, dot: &Value, scope: &Scope<'_>) -> Result<Value, TemplateError> {
    match operand {
        Operand::Dot => Ok(dot.clone()),
        Operand::Literal(value) => Ok(value.clone()),
        Operand::Field { variable: None, path } => Ok(member(dot, path)),
        Operand::Field { variable: Some(name), path } if name.is_empty() => Ok(member(scope.root, path)),
        Operand::Field { variable: Some(name), path } => scope
            .variables
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| member(value, path))
            .ok_or_else(|| TemplateError::Variable(format!("${name}"))),
        Operand::Nested(pipeline, path) => Ok(member(&evaluate(pipeline, dot, scope)?, path)),
        Operand::Function(name) => call(name, &[]),
    }
}

/// A missing key is null, as for Go's maps.
fn member(value: &Value, path: &[String]) -> Value {
    let mut at = value;
    for key in path {
        match at.get(key) {
            Some(next) => at = next,
            None => return Value::Null,
        }
    }
    at.clone()
}

fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(nested_text).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            let entries: Vec<_> = keys.iter().map(|key| format!("{key}:{}", nested_text(&map[key.as_str()]))).collect();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}

fn nested_text(value: &Value) -> String {
    if value.is_null() { "<nil>".to_owned() } else { text_of(value) }
}

fn call(name: &str, arguments: &[Value]) -> Result<Value, TemplateError> {
    use std::cmp::Ordering;
    let wrong = TemplateError::Value("wrong number of arguments");
    let two = || match arguments {
        [a, b] => Ok((a, b)),
        _ => Err(TemplateError::Value("wrong number of arguments")),
    };
    let order = |a: &Value, b: &Value| -> Result<Ordering, TemplateError> {
        let incomparable = TemplateError::Value("incompatible types for comparison");
        match (a, b) {
            (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
            _ => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => a.partial_cmp(&b).ok_or(incomparable),
                _ => Err(incomparable),
            },
        }
    };
    let equal = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    };
    Ok(match name {
        "eq" => {
            let (first, rest) = arguments.split_first().ok_or(wrong)?;
            Value::Bool(rest.iter().any(|other| equal(first, other)))
        }
        "ne" => two().map(|(a, b)| Value::Bool(!equal(a, b)))?,
        "lt" => Value::Bool(two().and_then(|(a, b)| order(a, b))? == Ordering::Less),
        "le" => Value::Bool(two().and_then(|(a, b)| order(a, b))? != Ordering::Greater),
        "gt" => Value::Bool(two().and_then(|(a, b)| order(a, b))? == Ordering::Greater),
        "ge" => Value::Bool(two().and_then(|(a, b)| order(a, b))? != Ordering::Less),
        "and" => arguments.iter().find(|a| !truth(a)).or(arguments.last()).cloned().ok_or(wrong)?,
        "or" => arguments.iter().find(|a| truth(a)).or(arguments.last()).cloned().ok_or(wrong)?,
        "not" => Value::Bool(!truth(arguments.first().ok_or(wrong)?)),
        "len" => Value::from(match arguments.first().ok_or(wrong)? {
            Value::String(text) => text.len(),
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            _ => return Err(TemplateError::Value("len of this value")),
        }),
        "index" => {
            let (first, keys) = arguments.split_first().ok_or(wrong)?;
            let mut at = first;
            for key in keys {
                at = match key {
                    Value::String(key) => at.get(key),
                    key => key.as_u64().and_then(|index| at.get(usize::try_from(index).ok()?)),
                }
                .unwrap_or(&Value::Null);
            }
            at.clone()
        }
        "printf" => {
            let (format, values) = arguments.split_first().ok_or(wrong)?;
            Value::String(printf(format.as_str().unwrap_or(""), values))
        }
        "print" | "println" => {
            let texts: Vec<_> = arguments.iter().map(nested_text).collect();
            let glue = if name == "println" { " " } else { "" };
            Value::String(texts.join(glue) + if name == "println" { "\n" } else { "" })
        }
        "urlquery" => {
            let text: String = arguments.iter().map(text_of).collect();
            Value::String(url::form_urlencoded::byte_serialize(text.as_bytes()).collect())
        }
        "html" => {
            let mut out = String::new();
            escape(&arguments.iter().map(text_of).collect::<String>(), Context::Text, &mut out);
            Value::String(out)
        }
        "js" => Value::String(serde_json::to_string(arguments.first().ok_or(wrong)?).unwrap_or_default()),
        other => return Err(TemplateError::Function(other.to_owned())),
    })
}

fn printf(format: &str, values: &[Value]) -> String {
    let mut values = values.iter();
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match characters.next() {
            Some('%') => out.push('%'),
            Some('q') => out.push_str(&format!("{:?}", values.next().map(text_of).unwrap_or_default())),
            Some(_) => out.push_str(&values.next().map(nested_text).unwrap_or_default()),
            None => {}
        }
    }
    out
}

fn escape(text: &str, context: Context, out: &mut String) {
    match context {
        Context::Text | Context::Attribute => escape_html(text, out),
        Context::Unquoted => {
            for c in text.chars() {
                match c {
                    ' ' | '\t' | '\n' | '\r' | '=' | '`' | '\0' => out.push_str(&format!("&#{};", c as u32)),
                    c => escape_html(c.encode_utf8(&mut [0; 4]), out),
                }
            }
        }
        Context::UrlStart if has_unsafe_scheme(text) => out.push_str("#ZgotmplZ"),
        Context::UrlStart | Context::UrlPath => escape_html(&encode_url(text, false), out),
        Context::UrlQuery => escape_html(&encode_url(text, true), out),
    }
}

fn escape_html(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&#39;"),
            '+' => out.push_str("&#43;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}

/// Schemes other than http, https and mailto are not linked to.
fn has_unsafe_scheme(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.contains('/') && !["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Percent-encodes what may not stand in a URL; with `all` also what has a meaning there.
fn encode_url(text: &str, all: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(bytes.len());
    for (index, &byte) in bytes.iter().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let meaningful = b"!#$&*+,/:;=?@[]".contains(&byte);
        let escaped =
            byte == b'%' && bytes.get(index + 1..index + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        if plain || (!all && (meaningful || escaped)) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(template: &str, data: Value) -> String {
        let Value::Object(data) = data else { panic!("an object") };
        Template::parse(template).expect("template").render(&data).expect("rendered")
    }

    #[test]
    fn fields_branches_and_loops() {
        let data = json!({"Email": "a@b", "Data": {"name": "Ann", "groups": ["x", "y"], "vip": true}});
        for (template, expected) in [
            ("Hi {{ .Data.name }} <{{.Email}}>", "Hi Ann <a@b>"),
            ("{{ if .Data.vip }}vip{{ else }}plain{{ end }}", "vip"),
            ("{{ if .Data.none }}a{{ else if eq .Email \"a@b\" }}b{{ else }}c{{ end }}", "b"),
            ("{{ range .Data.groups }}<{{ . }}>{{ end }}", "<x><y>"),
            ("{{ range $i, $g := .Data.groups }}{{ $i }}={{ $g }};{{ end }}", "0=x;1=y;"),
            ("{{ range .Data.none }}x{{ else }}none{{ end }}", "none"),
            ("{{ with .Data }}{{ .name }} {{ $.Email }}{{ end }}", "Ann a@b"),
            ("a {{- /* note */ -}} b", "ab"),
            ("{{ len .Data.groups | printf \"%d groups\" }}", "2 groups"),
            ("{{ index .Data.groups 1 }}{{ .Data.missing }}", "y"),
            ("{{ if and .Data.vip (not .Data.none) }}yes{{ end }}", "yes"),
            ("{{ $x := .Email }}{{ $x }}", "a@b"),
        ] {
            assert_eq!(rendered(template, data.clone()), expected, "{template}");
        }
    }

    #[test]
    fn values_are_escaped_for_where_they_stand() {
        let data = json!({"V": "a+b <c> \"d\" & 'e'", "U": "https://x/?a=b&c=d+e", "J": "javascript:alert(1)"});
        for (template, expected) in [
            ("<p>{{ .V }}</p>", "<p>a&#43;b &lt;c&gt; &#34;d&#34; &amp; &#39;e&#39;</p>"),
            ("<a href=\"{{ .U }}\">", "<a href=\"https://x/?a=b&amp;c=d&#43;e\">"),
            ("<a href=\"{{ .J }}\">", "<a href=\"#ZgotmplZ\">"),
            ("<a href='/r?to={{ .U }}'>", "<a href='/r?to=https%3a%2f%2fx%2f%3fa%3db%26c%3dd%2be'>"),
            ("<i title={{ .V }}>", "<i title=a&#43;b&#32;&lt;c&gt;&#32;&#34;d&#34;&#32;&amp;&#32;&#39;e&#39;>"),
            (
                "<a href=\"https://x/?q={{ urlquery .V }}\">",
                "<a href=\"https://x/?q=a%2Bb+%3Cc%3E+%22d%22+%26+%27e%27\">",
            ),
        ] {
            assert_eq!(rendered(template, data.clone()), expected, "{template}");
        }
    }

    #[test]
    fn what_does_not_parse_is_an_error() {
        for template in
            ["{{", "{{ .A", "{{ if .A }}", "{{ end }}", "{{ frob .A }}", "{{ }}", "{{ if }}x{{ end }}", "{{ \"x }}"]
        {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
