//! A value's text as JSON, as PostgreSQL's `to_jsonb` writes it.
//!
//! The text comes from the type's output function with fixed settings (ISO dates, UTC). bytea loses its `\x`, as
//! upstream. Types come from the catalog: a domain resolves to its base, an array to its elements, a composite to
//! its attributes.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

/// How a type's values are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// Integers, floats, numeric; NaN and infinities become strings.
    Number,
    /// `json` and `jsonb`: already JSON.
    Json,
    /// `timestamp` (a space becomes a `T`).
    Timestamp,
    TimestampTz,
    Bytea,
    /// An array of this type, with this delimiter.
    Array(u32, char),
    /// Attributes in order, dropped ones left out.
    Composite(Vec<(String, u32)>),
    /// The type below a domain.
    Domain(u32),
    /// All others: their text.
    Text,
}

/// Types by oid.
pub type Types = HashMap<u32, Kind>;

/// The deepest nesting of values that is followed.
const DEEPEST: usize = 64;

/// Types with the same oid in every database.
pub fn built_in(oid: u32) -> Option<Kind> {
    Some(match oid {
        16 => Kind::Bool,
        20 | 21 | 23 | 700 | 701 | 1700 => Kind::Number,
        114 | 3802 => Kind::Json,
        1114 => Kind::Timestamp,
        1184 => Kind::TimestampTz,
        17 => Kind::Bytea,
        // "char", name, text, oid, uuid, date, times, inet …
        18 | 19 | 25 | 26 | 2950 | 1082 | 1083 | 1266 | 1186 | 1042 | 1043 | 869 | 650 | 790 => Kind::Text,
        _ => return None,
    })
}

/// Appends the JSON of a value of type `oid` to `out`.
pub fn write(types: &Types, oid: u32, text: &str, out: &mut String) {
    write_at(types, oid, text, out, 0);
}

fn write_at(types: &Types, oid: u32, text: &str, out: &mut String, depth: usize) {
    let kind = types.get(&oid).cloned().or_else(|| built_in(oid)).unwrap_or(Kind::Text);
    if depth > DEEPEST {
        return push_string(out, text);
    }
    match kind {
        Kind::Bool => out.push_str(if text.starts_with('t') { "true" } else { "false" }),
        Kind::Number => {
            let is_number = text.bytes().next_back().is_some_and(|byte| byte.is_ascii_digit());
            if is_number { out.push_str(text) } else { push_string(out, text) }
        }
        Kind::Json => out.push_str(text),
        Kind::Timestamp => push_string(out, &with_t(text)),
        Kind::TimestampTz => push_string(out, &with_minutes(&with_t(text))),
        Kind::Bytea => push_string(out, text.strip_prefix("\\x").unwrap_or(text)),
        Kind::Array(element, delimiter) => match parse_array(text, delimiter) {
            Some(items) => write_items(types, element, &items, out, depth),
            None => push_string(out, text),
        },
        Kind::Composite(attributes) => match parse_record(text) {
            Some(values) if values.len() == attributes.len() => {
                out.push('{');
                for (place, ((name, kind), value)) in attributes.iter().zip(&values).enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    push_string(out, name);
                    out.push(':');
                    match value {
                        Some(value) => write_at(types, *kind, value, out, depth + 1),
                        None => out.push_str("null"),
                    }
                }
                out.push('}');
            }
            _ => push_string(out, text),
        },
        Kind::Domain(base) => write_at(types, base, text, out, depth + 1),
        Kind::Text => push_string(out, text),
    }
}

fn push_string(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{}", Value::from(text));
}

/// `2026-01-01 10:00:00` with a `T` between; special values stay.
fn with_t(text: &str) -> String {
    // "0044-03-15 10:00:00 BC": only the first blank, and only before a time.
    match text.split_once(' ') {
        Some((date, rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("{date}T{rest}"),
        _ => text.to_owned(),
    }
}

/// An offset of whole hours gets its minutes: `+00` becomes `+00:00`.
fn with_minutes(text: &str) -> String {
    let (time, era) = match text.split_once(' ') {
        Some((time, era)) => (time, Some(era)),
        None => (text, None),
    };
    let bytes = time.as_bytes();
    let has_hours_only = bytes.len() > 3 && matches!(bytes[bytes.len() - 3], b'+' | b'-') && time.contains('T');
    let minutes = if has_hours_only { ":00" } else { "" };
    match era {
        Some(era) => format!("{time}{minutes} {era}"),
        None => format!("{time}{minutes}"),
    }
}

/// An element of an array: a value, null, or another dimension.
#[derive(Debug, PartialEq)]
enum ArrayItem {
    Null,
    Value(String),
    Items(Vec<ArrayItem>),
}

fn write_items(types: &Types, element: u32, items: &[ArrayItem], out: &mut String, depth: usize) {
    out.push('[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        match item {
            ArrayItem::Null => out.push_str("null"),
            ArrayItem::Value(text) => write_at(types, element, text, out, depth + 1),
            ArrayItem::Items(items) => write_items(types, element, items, out, depth + 1),
        }
    }
    out.push(']');
}

/// `{1,NULL,"a b",{…}}`, with bounds (`[0:1]={…}`) before it or not.
fn parse_array(text: &str, delimiter: char) -> Option<Vec<ArrayItem>> {
    let body = if text.starts_with('[') { text.split_once('=')?.1 } else { text };
    let mut chars = body.chars().peekable();
    let items = parse_items(&mut chars, delimiter, 0)?;
    chars.next().is_none().then_some(items)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn parse_items(chars: &mut Chars<'_>, delimiter: char, depth: usize) -> Option<Vec<ArrayItem>> {
    // PostgreSQL's arrays have six dimensions at most.
    if chars.next()? != '{' || depth > 6 {
        return None;
    }
    let mut items = Vec::new();
    if chars.peek() == Some(&'}') {
        chars.next();
        return Some(items);
    }
    loop {
        items.push(match chars.peek()? {
            '{' => ArrayItem::Items(parse_items(chars, delimiter, depth + 1)?),
            '"' => {
                chars.next();
                let mut value = String::new();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => value.push(chars.next()?),
                        c => value.push(c),
                    }
                }
                ArrayItem::Value(value)
            }
            _ => {
                let mut value = String::new();
                while let Some(c) = chars.peek().copied().filter(|c| *c != delimiter && *c != '}') {
                    chars.next();
                    value.push(if c == '\\' { chars.next()? } else { c });
                }
                if value == "NULL" { ArrayItem::Null } else { ArrayItem::Value(value) }
            }
        });
        match chars.next()? {
            '}' => return Some(items),
            c if c == delimiter => {}
            _ => return None,
        }
    }
}

/// `(1,,"a ""b""")`: values in order, empty ones null.
fn parse_record(text: &str) -> Option<Vec<Option<String>>> {
    let body = text.strip_prefix('(')?.strip_suffix(')')?;
    if body.is_empty() {
        return Some(vec![None]);
    }
    let mut values = Vec::new();
    let mut chars = body.chars().peekable();
    loop {
        let mut value = String::new();
        let mut is_null = true;
        let mut quoted = false;
        loop {
            match chars.peek().copied() {
                None => break,
                Some(',') if !quoted => break,
                Some('"') => {
                    chars.next();
                    is_null = false;
                    if quoted && chars.peek() == Some(&'"') {
                        chars.next();
                        value.push('"');
                    } else {
                        quoted = !quoted;
                    }
                }
                Some('\\') => {
                    chars.next();
                    is_null = false;
                    value.push(chars.next()?);
                }
                Some(c) => {
                    chars.next();
                    is_null = false;
                    value.push(c);
                }
            }
        }
        if quoted {
            return None;
        }
        values.push((!is_null).then_some(value));
        if chars.next().is_none() {
            return Some(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(oid: u32, text: &str) -> String {
        let mut types = Types::new();
        types.insert(1007, Kind::Array(23, ','));
        types.insert(1009, Kind::Array(25, ','));
        types.insert(50_000, Kind::Domain(23));
        let attributes = vec![("a".to_owned(), 23), ("b".to_owned(), 25), ("c".to_owned(), 1009)];
        types.insert(50_001, Kind::Composite(attributes));
        types.insert(50_002, Kind::Array(50_001, ','));
        let mut out = String::new();
        write(&types, oid, text, &mut out);
        out
    }

    #[test]
    fn simple_values_become_json() {
        for (oid, text, expected) in [
            (16, "t", "true"),
            (16, "f", "false"),
            (20, "9223372036854775807", "9223372036854775807"),
            (1700, "-1.50", "-1.50"),
            (701, "1e+20", "1e+20"),
            (701, "NaN", "\"NaN\""),
            (701, "-Infinity", "\"-Infinity\""),
            (3802, "{\"a\": [1]}", "{\"a\": [1]}"),
            (25, "a\"b\n", "\"a\\\"b\\n\""),
            (17, "\\x0102", "\"0102\""),
            (1114, "2026-08-21 10:00:00.5", "\"2026-08-21T10:00:00.5\""),
            (1184, "2026-08-21 10:00:00+00", "\"2026-08-21T10:00:00+00:00\""),
            (1184, "infinity", "\"infinity\""),
            (1184, "0044-03-15 00:00:00+00 BC", "\"0044-03-15T00:00:00+00:00 BC\""),
            (1082, "2026-08-21", "\"2026-08-21\""),
            (50_000, "7", "7"),
            (99_999, "[1,2)", "\"[1,2)\""),
        ] {
            assert_eq!(json(oid, text), expected, "{oid} {text}");
        }
    }

    #[test]
    fn arrays_and_composites_become_json() {
        for (oid, text, expected) in [
            (1007, "{}", "[]"),
            (1007, "{1,NULL,3}", "[1,null,3]"),
            (1007, "{{1,2},{3,4}}", "[[1,2],[3,4]]"),
            (1007, "[0:1]={1,2}", "[1,2]"),
            (1009, r#"{a,"b,c","NULL","q\"\\",""}"#, r#"["a","b,c","NULL","q\"\\",""]"#),
            (50_001, r#"(1,"x, ""y""","{a,b}")"#, r#"{"a":1,"b":"x, \"y\"","c":["a","b"]}"#),
            (50_001, "(,,)", r#"{"a":null,"b":null,"c":null}"#),
            (50_002, r#"{"(1,\"x y\",{})"}"#, r#"[{"a":1,"b":"x y","c":[]}]"#),
            // Unparsable values stay strings.
            (1007, "{1", "\"{1\""),
            (50_001, "(1)", "\"(1)\""),
        ] {
            assert_eq!(json(oid, text), expected, "{oid} {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_value_becomes_valid_json(text: String) {
            for oid in [16, 25, 17, 1114, 1184, 1007, 1009, 50_000, 50_001, 50_002] {
                // Numbers keep PostgreSQL's format.
                if oid == 50_000 { continue; }
                let out = json(oid, &text);
                if !text.bytes().any(|byte| byte.is_ascii_digit()) {
                    proptest::prop_assert!(serde_json::from_str::<Value>(&out).is_ok(), "{oid} {out}");
                }
            }
        }
    }
}
