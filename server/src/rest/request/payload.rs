//! Request bodies: JSON, CSV, forms and raw bytes, with the keys they bring.
//!
//! JSON is passed on as sent; it is scanned once for its keys and never parsed into values.
//!
//! Reference: PostgREST `src/library/PostgREST/ApiRequest/Payload.hs`.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::csv::{self, CsvFault};
use super::media::MediaType;
use super::query::split_pairs;
use crate::rest::error::{ApiError, Limit};

/// The deepest nesting of a JSON body. PostgreSQL's limit, with its default stack, is somewhat higher.
pub const MAX_BODY_NESTING: usize = 10_000;

/// Longest request body, in bytes.
pub const MAX_BODY: usize = 128 << 20;
/// The most keys of an object or form, since each takes many times its length in memory. Tables have at most 1,600
/// columns.
pub const MAX_KEYS: usize = 20_000;

/// A body in the form that the database gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// JSON with the same keys in all its objects.
    Json { raw: Bytes, keys: BTreeSet<String> },
    /// JSON that was not scanned, because `columns` names the keys.
    UncheckedJson(Bytes),
    /// Arguments of a function.
    Form(Vec<(String, String)>),
    /// The whole body as one argument.
    Raw(Bytes),
}

impl Payload {
    /// The bytes handed to the database; a form has none.
    pub fn raw(&self) -> Option<&Bytes> {
        match self {
            Self::Json { raw, .. } | Self::UncheckedJson(raw) | Self::Raw(raw) => Some(raw),
            Self::Form(_) => None,
        }
    }
}

/// What the body is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Rows,
    Arguments,
}

/// Reads `body` as `content_type` says. `columns_given`: the client names the columns, so that JSON is not
/// checked here. Returns the payload and the keys it names.
pub fn parse(
    body: Bytes,
    content_type: &MediaType,
    purpose: Purpose,
    columns: Option<&[String]>,
) -> Result<(Payload, BTreeSet<String>), ApiError> {
    let arguments = purpose == Purpose::Arguments;
    if *content_type == MediaType::Json && is_too_deep(&body) {
        return Err(ApiError::TooLarge(Limit::BodyNesting));
    }
    match content_type {
        MediaType::Json => match columns {
            Some(columns) => Ok((Payload::UncheckedJson(body), columns.iter().cloned().collect())),
            None if body.is_empty() && arguments => {
                Ok((Payload::Json { raw: body, keys: BTreeSet::new() }, BTreeSet::new()))
            }
            None => json(body),
        },
        MediaType::Csv => {
            let (raw, keys) = csv::to_json(&body, MAX_BODY, MAX_KEYS).map_err(|fault| match fault {
                CsvFault::Syntax(text) => ApiError::Body(text),
                CsvFault::Uneven => ApiError::Body("All lines must have same number of fields".to_owned()),
                CsvFault::NotUtf8 => ApiError::Body("The CSV body is not UTF-8".to_owned()),
                CsvFault::TooManyNames => ApiError::TooLarge(Limit::BodyKeys),
                CsvFault::TooLong => ApiError::TooLarge(Limit::Body),
            })?;
            Ok((Payload::Json { raw: raw.into(), keys: keys.clone() }, keys))
        }
        MediaType::UrlEncoded => {
            let mut pairs = Vec::new();
            let form = body.strip_prefix(b"?").unwrap_or(&body);
            if form.iter().filter(|b| matches!(b, b'&' | b';')).count() >= MAX_KEYS {
                return Err(ApiError::TooLarge(Limit::BodyKeys));
            }
            for (key, value) in split_pairs(form) {
                let utf8 = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| ApiError::NotUtf8);
                pairs.push((utf8(key)?, utf8(value.unwrap_or_default())?));
            }
            let keys: BTreeSet<String> = pairs.iter().map(|(key, _)| key.clone()).collect();
            if arguments {
                return Ok((Payload::Form(pairs), keys));
            }
            let row: serde_json::Map<String, serde_json::Value> =
                pairs.into_iter().map(|(key, value)| (key, value.into())).collect();
            let raw = Bytes::from(serde_json::Value::Object(row).to_string());
            Ok((Payload::Json { raw, keys: keys.clone() }, keys))
        }
        MediaType::PlainText | MediaType::Xml | MediaType::OctetStream if arguments => {
            Ok((Payload::Raw(body), BTreeSet::new()))
        }
        other => Err(ApiError::Body(format!("Content-Type not acceptable: {}", other.mime()))),
    }
}

/// Whether the brackets of a JSON text, outside of strings, are nested more than [`MAX_BODY_NESTING`] deep.
fn is_too_deep(body: &[u8]) -> bool {
    let opening = |b: &u8| matches!(b, b'[' | b'{');
    if body.iter().filter(|b| opening(b)).count() <= MAX_BODY_NESTING {
        return false;
    }
    let (mut depth, mut in_string, mut bytes) = (0usize, false, body.iter());
    while let Some(b) = bytes.next() {
        match (in_string, b) {
            (_, b'"') => in_string = !in_string,
            (true, b'\\') => drop(bytes.next()),
            (true, _) => {}
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
        if depth > MAX_BODY_NESTING {
            return true;
        }
    }
    false
}

/// Whether a valid JSON text has half a surrogate pair (`\ud83c`), which is not a character and which the database
/// would refuse with its own message.
fn has_half_character(body: &[u8]) -> bool {
    let half = |at: usize| -> Option<u16> {
        let digits = body.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    let mut at = 0;
    while let Some(escape) = body.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'\\')) {
        at += escape;
        match half(at) {
            Some(high @ ..0xdc00) if half(at + 6).is_some_and(|low| low > high && low >= 0xdc00) => at += 12,
            Some(_) => return true,
            None => at += 2,
        }
    }
    false
}

fn json(body: Bytes) -> Result<(Payload, BTreeSet<String>), ApiError> {
    let invalid = || ApiError::Body("Empty or invalid json".to_owned());
    let text = std::str::from_utf8(&body).map_err(|_| invalid())?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // A single number may be larger than any Rust type.
    let shape = match text.trim_start().as_bytes().first() {
        Some(b'{' | b'[') => deserializer.deserialize_any(ShapeVisitor).map_err(|error| {
            if error.to_string().starts_with(TOO_MANY_KEYS) { ApiError::TooLarge(Limit::BodyKeys) } else { invalid() }
        })?,
        _ => IgnoredAny::deserialize(&mut deserializer).map(|_| Shape::Nothing).map_err(|_| invalid())?,
    };
    deserializer.end().map_err(|_| invalid())?;
    if has_half_character(&body) {
        return Err(invalid());
    }
    match shape {
        Shape::Uniform(keys) => {
            let set: BTreeSet<String> = keys.into_iter().collect();
            Ok((Payload::Json { raw: body, keys: set.clone() }, set))
        }
        Shape::Mixed => Err(ApiError::Body("All object keys must match".to_owned())),
        // Anything that is neither an object nor an array counts as no rows.
        Shape::Nothing => {
            Ok((Payload::Json { raw: Bytes::from_static(b"[]"), keys: BTreeSet::new() }, BTreeSet::new()))
        }
    }
}

/// The result of scanning a JSON body.
enum Shape {
    /// An object, or an array of objects that all have these keys.
    Uniform(Vec<String>),
    /// An array with something else in it.
    Mixed,
    /// A scalar or an empty array.
    Nothing,
}

/// The error of a scan that finds too many keys.
const TOO_MANY_KEYS: &str = "too many keys";

fn push_key<E: serde::de::Error>(keys: &mut Vec<String>, key: String) -> Result<(), E> {
    if keys.len() >= MAX_KEYS {
        return Err(E::custom(TOO_MANY_KEYS));
    }
    keys.push(key);
    Ok(())
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            push_key(&mut keys, key)?;
        }
        Ok(Shape::Uniform(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let keys = match seq.next_element_seed(RowSeed { expected: None })? {
            None => return Ok(Shape::Nothing),
            Some(Row::First(keys)) => keys,
            Some(Row::Same | Row::Other) => return mixed(seq),
        };
        let expected = Expected::of(&keys);
        while let Some(row) = seq.next_element_seed(RowSeed { expected: Some(&expected) })? {
            match row {
                Row::Same => {}
                Row::First(_) | Row::Other => return mixed(seq),
            }
        }
        Ok(Shape::Uniform(keys))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
}

/// Reads the rows after one that differs: only their syntax counts.
fn mixed<'de, A: SeqAccess<'de>>(mut rows: A) -> Result<Shape, A::Error> {
    while rows.next_element::<IgnoredAny>()?.is_some() {}
    Ok(Shape::Mixed)
}

/// The keys of the first row, which all rows must have.
struct Expected<'k> {
    /// Each once, in the order of the row.
    order: Vec<&'k str>,
    /// The place of each in `order`.
    places: HashMap<&'k str, usize>,
}

impl<'k> Expected<'k> {
    fn of(keys: &'k [String]) -> Self {
        let (mut order, mut places) = (Vec::with_capacity(keys.len()), HashMap::with_capacity(keys.len()));
        for key in keys {
            places.entry(key.as_str()).or_insert_with(|| {
                order.push(key.as_str());
                order.len() - 1
            });
        }
        Self { order, places }
    }
}

enum Row {
    /// The first row, an object with these keys.
    First(Vec<String>),
    /// An object with the keys of the first one.
    Same,
    /// Anything else.
    Other,
}

struct RowSeed<'a> {
    /// `None` for the first row.
    expected: Option<&'a Expected<'a>>,
}

impl<'de> serde::de::DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Row;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Row, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let Some(expected) = self.expected else {
            let mut keys = Vec::new();
            while let Some(key) = map.next_key::<String>()? {
                map.next_value::<IgnoredAny>()?;
                push_key(&mut keys, key)?;
            }
            return Ok(Row::First(keys));
        };
        // Rows usually have the order of the first one; from where a row departs from it, its keys are marked.
        let mut in_order = 0;
        let mut marked: Option<Vec<bool>> = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            map.next_value::<IgnoredAny>()?;
            if marked.is_none() && expected.order.get(in_order).is_some_and(|next| *next == key) {
                in_order += 1;
                continue;
            }
            let Some(place) = expected.places.get(&*key) else {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(Row::Other);
            };
            let marks = marked.get_or_insert_with(|| (0..expected.order.len()).map(|place| place < in_order).collect());
            if let Some(mark) = marks.get_mut(*place) {
                *mark = true;
            }
        }
        let has_all = match marked {
            None => in_order == expected.order.len(),
            Some(marks) => marks.into_iter().all(|mark| mark),
        };
        Ok(if has_all { Row::Same } else { Row::Other })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Row, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Row::Other)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Row, E> {
        Ok(Row::Other)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Row, E> {
        Ok(Row::Other)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Row, E> {
        Ok(Row::Other)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Row, E> {
        Ok(Row::Other)
    }
    fn visit_str<E>(self, _: &str) -> Result<Row, E> {
        Ok(Row::Other)
    }
    fn visit_unit<E>(self) -> Result<Row, E> {
        Ok(Row::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(body: &str) -> Result<Vec<String>, String> {
        parse(Bytes::copy_from_slice(body.as_bytes()), &MediaType::Json, Purpose::Rows, None)
            .map(|(_, keys)| keys.into_iter().collect())
            .map_err(|error| error.message())
    }

    #[test]
    fn a_body_may_be_large_but_not_deep() {
        let nested = |depth: usize| Bytes::from(format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(!is_too_deep(&nested(MAX_BODY_NESTING)));
        assert!(is_too_deep(&nested(MAX_BODY_NESTING + 1)));
        let wide = format!("[{}]", r#"{"a":"\"[[{"},"#.repeat(MAX_BODY_NESTING));
        assert!(!is_too_deep(wide.as_bytes()));
        let refused = parse(nested(1_000_000), &MediaType::Json, Purpose::Rows, Some(&["a".to_owned()]));
        assert!(matches!(refused, Err(ApiError::TooLarge(Limit::BodyNesting))));
    }

    #[test]
    fn an_object_or_a_form_has_a_bounded_number_of_keys() {
        let refused = |body: String, kind: &MediaType| {
            let parsed = parse(body.into(), kind, Purpose::Rows, None);
            matches!(parsed, Err(ApiError::TooLarge(Limit::BodyKeys)))
        };
        let object = |keys: usize| format!("{{{}\"b\":1}}", "\"a\":1,".repeat(keys - 1));
        assert!(!refused(object(MAX_KEYS), &MediaType::Json) && refused(object(MAX_KEYS + 1), &MediaType::Json));
        assert!(refused(format!("[{}]", object(MAX_KEYS + 1)), &MediaType::Json));
        assert!(refused("a=1&".repeat(MAX_KEYS), &MediaType::UrlEncoded));
        let csv = |names: usize| format!("{}b\n1\n", "a,".repeat(names - 1));
        assert!(!refused(csv(MAX_KEYS), &MediaType::Csv) && refused(csv(MAX_KEYS + 1), &MediaType::Csv));
    }

    #[test]
    fn keys_of_a_body_must_be_the_same_in_every_row() {
        let same = Ok(vec!["a".to_owned(), "b".to_owned()]);
        let mixed = Err("All object keys must match".to_owned());
        let invalid = Err("Empty or invalid json".to_owned());
        let cases = [
            (r#"{"b":1,"a":{"x":[1]}}"#, same.clone()),
            (r#"[{"a":1,"b":2},{"b":3,"a":4}]"#, same.clone()),
            (r#" [{"a":1,"b":2},{"a":1,"b":2,"a":3}] "#, same),
            (r#"[{"a":1,"b":2,"a":3},{"a":1,"b":2},{"b":2,"b":2,"a":3}]"#, Ok(vec!["a".to_owned(), "b".to_owned()])),
            (r#"[{"a":1,"b":2},{"b":1,"b":2}]"#, mixed.clone()),
            (r#"[{"a":1,"b":2},{"a":1,"a":2}]"#, mixed.clone()),
            (r#"[{"a":1},{"b":2,"a":1},{"c":[}]"#, invalid.clone()),
            (r#"[2,{"a":1]"#, invalid.clone()),
            (r#"[{"a":1},{"b":1},{"\ud83c":1}]"#, invalid.clone()),
            (r#"[{"a":1},{"a":1,"b":2}]"#, mixed.clone()),
            (r#"[{"a":1},2]"#, mixed.clone()),
            (r#"[2,{"a":1}]"#, mixed.clone()),
            ("[1,2]", mixed),
            ("[]", Ok(vec![])),
            ("5", Ok(vec![])),
            ("null", Ok(vec![])),
            ("1e99999", Ok(vec![])),
            (r#"{"a":"\ud83c\udf31\\ud83c"}"#, Ok(vec!["a".to_owned()])),
            (r#"{"a":"\ud83c"}"#, invalid.clone()),
            (r#"{"a":"\udf31\ud83c"}"#, invalid.clone()),
            (r#"{"a":"\ud83c\ud83c\udf31"}"#, invalid.clone()),
            ("[{}]", Ok(vec![])),
            ("", invalid.clone()),
            ("{", invalid.clone()),
            ("\u{feff}{}", invalid.clone()),
            ("{} x", invalid),
        ];
        for (body, expected) in cases {
            assert_eq!(keys(body), expected, "{body}");
        }
    }

    #[test]
    fn rows_that_differ_from_a_wide_first_row_are_read_in_linear_time() {
        let wide =
            |name: &str, keys: usize| (0..keys).map(|n| format!("\"{name}{n}\":1")).collect::<Vec<_>>().join(",");
        let first = wide("k", MAX_KEYS);
        let mixed = Err("All object keys must match".to_owned());
        // Comparing sets for each of these rows would take minutes.
        for row in [r#"{"z":1}"#, r#"{"k1":1}"#, r#"{"k0":1,"k0":1}"#, "1", "{}"] {
            let body = format!("[{{{first}}},{}{row}]", format!("{row},").repeat(200_000));
            assert_eq!(keys(&body), mixed, "{row}");
        }
    }

    #[test]
    fn a_scalar_counts_as_no_rows() {
        let (payload, _) = parse(Bytes::from_static(b"7"), &MediaType::Json, Purpose::Rows, None).expect("payload");
        assert_eq!(payload.raw().map(|raw| &raw[..]), Some(&b"[]"[..]));
    }

    #[test]
    fn raw_bodies_are_for_functions_only() {
        let body = Bytes::from_static(b"x");
        assert!(parse(body.clone(), &MediaType::PlainText, Purpose::Arguments, None).is_ok());
        let error = parse(body, &MediaType::PlainText, Purpose::Rows, None).expect_err("refused");
        assert_eq!(error.message(), "Content-Type not acceptable: text/plain");
    }
}
