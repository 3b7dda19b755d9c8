//! From nodes and data to text: pipelines, and the functions they call.

use serde_json::Value;

use super::html::{Context, escape};
use super::{Node, Operand, Pipeline, TemplateError};

pub(super) struct Scope<'a> {
    pub(super) root: &'a Value,
    pub(super) variables: Vec<(String, Value)>,
}

pub(super) fn render(
    nodes: &[Node],
    dot: &Value,
    scope: &mut Scope<'_>,
    out: &mut String,
) -> Result<(), TemplateError> {
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
