//! Compares a value with an expected one that may contain placeholders. What a placeholder matches can be named.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::values::{Values, unix_now};

/// Tolerance for times, in seconds.
const TOLERANCE: i64 = 60;

/// Objects shared by many answers, by name. `{"...": "user", …}` includes one and changes it.
pub type Shapes = BTreeMap<String, Value>;

pub struct Expected<'a> {
    pub values: &'a mut Values,
    pub shapes: &'a Shapes,
}

impl Expected<'_> {
    /// Why `found` differs from `wanted`. With `partly`, only the named members are compared.
    pub fn fault(&mut self, wanted: &Value, found: Option<&Value>, partly: bool, path: &str) -> Option<String> {
        if let Value::Object(object) = wanted
            && object.contains_key("...")
        {
            let whole = self.spread(object);
            return self.fault(&whole, found, partly, path);
        }
        if wanted.as_str() == Some("<absent>") {
            return found.map(|found| format!("{path}: {found} should be absent"));
        }
        let Some(found) = found else { return Some(format!("{path}: absent instead of {wanted}")) };
        match (wanted, found) {
            (Value::String(wanted), found) => self.text_fault(wanted, found, path),
            (Value::Object(wanted), Value::Object(found)) => {
                for (key, wanted) in wanted {
                    let fault = self.fault(wanted, found.get(key), partly, &format!("{path}.{key}"));
                    if fault.is_some() {
                        return fault;
                    }
                }
                let unknown = found.keys().find(|key| !partly && !wanted.contains_key(*key))?;
                Some(format!("{path}.{unknown}: {} was not expected", found[unknown]))
            }
            (Value::Array(wanted), Value::Array(found)) => {
                if wanted.len() != found.len() {
                    return Some(format!("{path}: {} entries instead of {}", found.len(), wanted.len()));
                }
                let (mut wanted, mut found) = (wanted.clone(), found.clone());
                if path.ends_with(".amr") {
                    // Newest first by whole seconds, in any order within the same second.
                    let method = |entry: &Value| entry["method"].as_str().map(str::to_owned);
                    wanted.sort_by_key(method);
                    found.sort_by_key(method);
                }
                let pairs = wanted.iter().zip(&found).enumerate();
                pairs.map(|(i, (w, f))| self.fault(w, Some(f), partly, &format!("{path}[{i}]"))).find_map(|fault| fault)
            }
            (wanted, found) if wanted == found => None,
            (wanted, found) => Some(format!("{path}: {found} instead of {wanted}")),
        }
    }

    fn spread(&mut self, object: &Map<String, Value>) -> Value {
        let name = object.get("...").and_then(Value::as_str).unwrap_or_default();
        let (name, suffix) = name.split_once(' ').unwrap_or((name, ""));
        let shape = self.shapes.get(name).unwrap_or_else(|| panic!("no shape {name}"));
        let text = self.values.expand(&shape.to_string().replace('§', suffix));
        let mut whole: Value = serde_json::from_str(&text).expect("shapes are JSON");
        if let Some(members) = whole.as_object().filter(|members| members.contains_key("...")).cloned() {
            whole = self.spread(&members);
        }
        for (key, value) in object.iter().filter(|(key, _)| *key != "...") {
            whole[key] = value.clone();
        }
        whole
    }

    fn text_fault(&mut self, wanted: &str, found: &Value, path: &str) -> Option<String> {
        let wrong = || Some(format!("{path}: {found} instead of {wanted:?}"));
        if let Some((kind, name)) = placeholder(wanted) {
            if !is_kind(&kind, found) {
                return wrong();
            }
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            let other = self.values.bind(&name, &text);
            return other.map(|known| format!("{path}: {found} instead of <{name}> {known}"));
        }
        let Some(found_text) = found.as_str() else { return wrong() };
        let holds = match (wanted.strip_suffix('…'), wanted.strip_prefix('…')) {
            (Some(start), _) => found_text.starts_with(start),
            (None, Some(end)) => found_text.ends_with(end),
            (None, None) => found_text == wanted,
        };
        if holds { None } else { wrong() }
    }
}

/// `<kind name>`: the expected kind, and the name that the value gets.
fn placeholder(text: &str) -> Option<(String, String)> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?;
    let (kind, name) = inner.split_once(' ').unwrap_or((inner, ""));
    let known = kind.split(['+', '-']).next().is_some_and(|kind| KINDS.contains(&kind));
    known.then(|| (kind.to_owned(), name.to_owned()))
}

const KINDS: [&str; 18] = [
    "any", "string", "uuid", "time", "unix", "jwt", "refresh", "refresh2", "hash", "code", "int", "base32", "b64url",
    "svg", "bcrypt", "object", "array", "true",
];

fn is_kind(kind: &str, found: &Value) -> bool {
    let (name, offset) = match kind.find(['+', '-']) {
        Some(at) => (&kind[..at], kind[at..].parse::<i64>().expect("an offset in seconds")),
        None => (kind, 0),
    };
    let near = |seconds: i64| (seconds - unix_now() - offset).abs() <= TOLERANCE;
    let text = found.as_str().unwrap_or_default();
    let made_of = |length: usize, set: &str| text.len() == length && text.chars().all(|c| set.contains(c));
    match name {
        "any" => true,
        "string" => !text.is_empty(),
        "int" => found.is_i64(),
        "object" => found.is_object(),
        "array" => found.is_array(),
        "true" => found == &Value::Bool(true),
        "unix" => found.as_i64().is_some_and(near),
        "time" => {
            let parsed = chrono::DateTime::parse_from_rfc3339(text).map(|time| time.timestamp());
            let naive = || chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f");
            parsed.is_ok_and(near) || naive().is_ok_and(|time| near(time.and_utc().timestamp()))
        }
        "uuid" => {
            uuid::Uuid::parse_str(text).is_ok_and(|id| id.get_version_num() == 4) && text == text.to_ascii_lowercase()
        }
        "jwt" => text.split('.').count() == 3 && text.starts_with("eyJ"),
        "refresh" => made_of(12, "abcdefghijklmnopqrstuvwxyz234567"),
        "refresh2" => text.len() >= 51 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
        "hash" => {
            let digits = text.strip_prefix("pkce_").unwrap_or(text);
            digits.len() == 56 && digits.chars().all(|c| "0123456789abcdef".contains(c))
        }
        "code" => (6..=10).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit()),
        "base32" => made_of(32, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
        "b64url" => text.len() >= 16 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
        "svg" => text.contains("<svg") && text.contains("</svg>"),
        // With the cost that the servers of all files but `passwords.case` have.
        "bcrypt" => text.starts_with("$2a$04$") && text.len() == 60,
        _ => false,
    }
}
