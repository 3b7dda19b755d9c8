//! From nodes and data to text: pipelines, and the functions they call.

use serde_json::{Number, Value};

use super::format::{is_printable, sprint, sprintf, sprintln, whole};
use super::html::{Context, escape};
use super::{Node, Operand, Pipeline, TemplateError};

/// How many calls of templates are open, at most.
const MAX_DEPTH: usize = 100;
/// How often `{{ range 10 }}` runs, at most.
const MAX_COUNT: i64 = 10_000;

pub(super) struct Scope<'a> {
    root: &'a Value,
    variables: Vec<(String, Value)>,
    /// The templates that are called.
    called: &'a [Vec<Node>],
    depth: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(root: &'a Value, called: &'a [Vec<Node>]) -> Self {
        Self { root, variables: Vec::new(), called, depth: 0 }
    }

    /// Gives the pipeline's variable a value.
    fn bind(&mut self, name: &str, is_assignment: bool, value: Value) -> Result<(), TemplateError> {
        if !is_assignment {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        let variable = self.variables.iter_mut().rev().find(|(known, _)| known == name);
        let (_, slot) = variable.ok_or_else(|| TemplateError::Variable(format!("${name}")))?;
        *slot = value;
        Ok(())
    }
}

/// What follows some nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

pub(super) fn render(
    nodes: &[Node],
    dot: &Value,
    scope: &mut Scope<'_>,
    out: &mut String,
) -> Result<Flow, TemplateError> {
    let depth = scope.variables.len();
    let mut flow = Flow::Next;
    for node in nodes {
        flow = render_node(node, dot, scope, out)?;
        if flow != Flow::Next {
            break;
        }
    }
    scope.variables.truncate(depth);
    Ok(flow)
}

fn render_node(node: &Node, dot: &Value, scope: &mut Scope<'_>, out: &mut String) -> Result<Flow, TemplateError> {
    match node {
        Node::Text(text) => out.push_str(text),
        Node::Print(pipeline, context) => {
            let value = evaluate(pipeline, dot, scope)?;
            if pipeline.names.is_empty() {
                print(&value, pipeline, *context, out);
            }
        }
        Node::Branches { is_with, branches, otherwise } => {
            let depth = scope.variables.len();
            let mut flow = None;
            for (over, body) in branches {
                let value = evaluate(over, dot, scope)?;
                if truth(&value) {
                    flow = Some(render(body, if *is_with { &value } else { dot }, scope, out)?);
                    break;
                }
            }
            let flow = match flow {
                Some(flow) => flow,
                None => render(otherwise, dot, scope, out)?,
            };
            scope.variables.truncate(depth);
            return Ok(flow);
        }
        Node::Range { over, body, otherwise } => {
            let depth = scope.variables.len();
            let entries = entries(run(over, dot, scope)?)?;
            if entries.is_empty() {
                return render(otherwise, dot, scope, out);
            }
            for (index, value) in entries {
                match over.names.as_slice() {
                    [] => {}
                    [item] => scope.bind(item, over.is_assignment, value.clone())?,
                    [key, item, ..] => {
                        scope.bind(key, over.is_assignment, index)?;
                        scope.bind(item, over.is_assignment, value.clone())?;
                    }
                }
                let flow = render(body, &value, scope, out)?;
                scope.variables.truncate(depth);
                if flow == Flow::Break {
                    break;
                }
            }
        }
        Node::Break => return Ok(Flow::Break),
        Node::Continue => return Ok(Flow::Continue),
        Node::Call { index, argument } => {
            let dot = match argument {
                Some(argument) => evaluate(argument, dot, scope)?,
                None => Value::Null,
            };
            if scope.depth == MAX_DEPTH {
                return Err(TemplateError::Value("templates that call each other without end"));
            }
            let called = scope.called;
            let nodes = called.get(*index).map(Vec::as_slice).unwrap_or_default();
            let mut inside = Scope { root: &dot, variables: Vec::new(), called, depth: scope.depth + 1 };
            render(nodes, &dot, &mut inside, out)?;
        }
    }
    Ok(Flow::Next)
}

fn print(value: &Value, pipeline: &Pipeline, context: Context, out: &mut String) {
    let last = pipeline.commands.last().and_then(|command| command.first());
    match last {
        Some(Operand::Function(name)) if name == "html" && context == Context::Text => {
            out.push_str(&text_of(value));
        }
        Some(Operand::Function(name)) if name == "urlquery" && context == Context::UrlQuery => {
            out.push_str(&text_of(value));
        }
        _ => escape(&text_of(value), context, out),
    }
}

/// What `range` goes through, with keys.
fn entries(value: Value) -> Result<Vec<(Value, Value)>, TemplateError> {
    match value {
        Value::Array(items) => {
            Ok(items.into_iter().enumerate().map(|(index, item)| (Value::from(index), item)).collect())
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(k, v)| (Value::String(k), v)).collect();
            entries.sort_by(|a, b| a.0.as_str().cmp(&b.0.as_str()));
            Ok(entries)
        }
        Value::Null => Ok(Vec::new()),
        Value::Number(number) => match number.as_i64() {
            Some(count) if count <= MAX_COUNT => {
                Ok((0..count).map(|index| (Value::from(index), Value::from(index))).collect())
            }
            _ => Err(TemplateError::Value("range can't iterate over this number")),
        },
        Value::Bool(_) | Value::String(_) => Err(TemplateError::Value("range can't iterate over this value")),
    }
}

/// The numbers of user data as floating point, as Go reads them, except those that it would round.
pub(super) fn as_go_reads(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|float| float.abs() <= 9_007_199_254_740_992.0);
            if let Some(float) = float.and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_go_reads),
        Value::Object(map) => map.values_mut().for_each(as_go_reads),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The value of a pipeline, which its variable gets.
fn evaluate(pipeline: &Pipeline, dot: &Value, scope: &mut Scope<'_>) -> Result<Value, TemplateError> {
    let value = run(pipeline, dot, scope)?;
    if let Some(name) = pipeline.names.first() {
        scope.bind(name, pipeline.is_assignment, value.clone())?;
    }
    Ok(value)
}

fn run(pipeline: &Pipeline, dot: &Value, scope: &Scope<'_>) -> Result<Value, TemplateError> {
    let mut piped: Option<Value> = None;
    for command in &pipeline.commands {
        let (first, rest) = command.split_first().ok_or(TemplateError::Value("missing value for command"))?;
        piped = Some(match first {
            Operand::Function(name) if name == "and" || name == "or" => {
                first_deciding(name == "or", rest, piped, dot, scope)?
            }
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

/// `and` and `or`: the first operand that decides, else the last one. Those after it are not evaluated.
fn first_deciding(
    decides: bool,
    operands: &[Operand],
    piped: Option<Value>,
    dot: &Value,
    scope: &Scope<'_>,
) -> Result<Value, TemplateError> {
    let mut last = None;
    for operand in operands {
        let value = resolve(operand, dot, scope)?;
        if truth(&value) == decides {
            return Ok(value);
        }
        last = Some(value);
    }
    piped.or(last).ok_or(TemplateError::Value("wrong number of arguments"))
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
        Operand::Nested(pipeline, path) => Ok(member(&run(pipeline, dot, scope)?, path)),
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
        Value::Number(number) => match number.as_f64() {
            // Without the exponent that Go writes from a million on.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e21 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        Value::Bool(flag) => flag.to_string(),
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
                    key => whole(key).and_then(|index| at.get(usize::try_from(index).ok()?)),
                }
                .unwrap_or(&Value::Null);
            }
            at.clone()
        }
        "slice" => slice(arguments)?,
        "printf" => {
            let (format, values) = arguments.split_first().ok_or(wrong)?;
            let format = format.as_str().ok_or(TemplateError::Value("printf needs a text as its format"))?;
            Value::String(sprintf(format, values))
        }
        "print" => Value::String(sprint(arguments)),
        "println" => Value::String(sprintln(arguments)),
        "urlquery" => {
            let text = joined(arguments);
            Value::String(url::form_urlencoded::byte_serialize(text.as_bytes()).collect())
        }
        "html" => {
            let mut out = String::new();
            escape(&joined(arguments), Context::Text, &mut out);
            Value::String(out)
        }
        "js" => Value::String(escaped_for_scripts(&joined(arguments))),
        // No value here is a function.
        "call" => return Err(TemplateError::Value("call of a non-function")),
        other => return Err(TemplateError::Function(other.to_owned())),
    })
}

/// The text that `html`, `js` and `urlquery` escape.
fn joined(arguments: &[Value]) -> String {
    match arguments {
        [one] => text_of(one),
        several => sprint(several),
    }
}

/// A part of a text or list. Texts are counted in bytes.
fn slice(arguments: &[Value]) -> Result<Value, TemplateError> {
    let range = TemplateError::Value("slice index out of range");
    let (sliced, indexes) = arguments.split_first().ok_or(TemplateError::Value("wrong number of arguments"))?;
    let length = match sliced {
        Value::String(text) if indexes.len() < 3 => text.len(),
        Value::Array(items) if indexes.len() < 4 => items.len(),
        _ => return Err(TemplateError::Value("can't slice this value")),
    };
    let mut bounds = vec![0, length];
    for (at, index) in indexes.iter().enumerate() {
        let index = index.as_u64().and_then(|index| usize::try_from(index).ok()).filter(|index| *index <= length);
        let index = index.ok_or(TemplateError::Value("slice index out of range"))?;
        match bounds.get_mut(at) {
            Some(bound) => *bound = index,
            None => bounds.push(index),
        }
    }
    if !bounds.is_sorted() {
        return Err(range);
    }
    let (start, end) = (bounds[0], bounds[1]);
    Ok(match sliced {
        Value::Array(items) => Value::Array(items[start..end].to_vec()),
        other => {
            let bytes = other.as_str().unwrap_or_default().as_bytes();
            Value::String(String::from_utf8_lossy(&bytes[start..end]).into_owned())
        }
    })
}

fn escaped_for_scripts(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '\'' | '"' => out.extend(['\\', c]),
            '<' | '>' | '&' | '=' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c if c >= ' ' && (c.is_ascii() || is_printable(c)) => out.push(c),
            c => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    out
}
