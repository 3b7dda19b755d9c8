//! Reads the fields of a JSON body or a query with the coercions of the reference's schemas.
//!
//! The reference's validator coerces before it refuses: `"60"` is 60, `60` is `"60"`, `"true"` is true, a single value becomes a
//! list of one, and a list of one becomes its value. SDKs in several languages rely on this. Reference: Ajv `coerceTypes:
//! "array"`, Fastify's messages (`body/limit must be integer`).

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpRequest};
use serde_json::{Map, Value};

use super::error::StorageError;
use super::header_text;
use super::key::is_media_type;
use super::receive::unreadable;
use crate::http::bodies::is_no_room;
use crate::http::json::{JsonFault, parse_json};

/// The unparsed body of a request that takes JSON.
pub struct JsonBody {
    bytes: Bytes,
    /// Lower case, without parameters.
    media_type: Option<String>,
}

impl FromRequest for JsonBody {
    type Error = StorageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, StorageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let media_type = header_text(request, "content-type")
            .map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
            .filter(|text| !text.is_empty());
        let read = Bytes::from_request(request, payload);
        Box::pin(async move {
            let bytes = read.await.map_err(|error| match error.as_error::<PayloadError>() {
                Some(PayloadError::Overflow) => StorageError::BodyTooLarge,
                Some(error) if is_no_room(error) => StorageError::Unavailable(error.to_string()),
                _ => unreadable(error),
            })?;
            Ok(Self { bytes, media_type })
        })
    }
}

const NO_JSON: &str = "Body is not valid JSON but content-type is set to 'application/json'";
const EMPTY: &str = "Body cannot be empty when content-type is set to 'application/json'";

impl JsonBody {
    /// The fields of the body, which must be an object. Handlers drop them before they wait, because the budget for bodies
    /// counts only the text.
    pub fn fields(&self) -> Result<Fields, StorageError> {
        match self.media_type.as_deref() {
            // A text body is not an object, and an absent one is null.
            Some("text/plain") => Err(StorageError::Invalid("body must be object".to_owned())),
            Some("application/json") if self.bytes.is_empty() => Err(StorageError::Unparsed(EMPTY)),
            Some("application/json") | None => Fields::of_body(&self.bytes),
            Some(kind) if !self.bytes.is_empty() && !is_media_type(kind) => Err(StorageError::NotJson),
            // The reference reads no body of any other type.
            Some(_) => Fields::of_body(b""),
        }
    }

    /// Refuses a body that is neither empty nor JSON, on routes that ignore it.
    pub fn check_if_any(&self) -> Result<(), StorageError> {
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(&self.bytes).is_ok();
        match self.media_type.as_deref() {
            _ if self.bytes.is_empty() => Ok(()),
            Some("text/plain") => Ok(()),
            Some("application/json") | None if is_json() => Ok(()),
            Some("application/json") | None => Err(StorageError::Unparsed(NO_JSON)),
            Some(kind) if is_media_type(kind) => Ok(()),
            Some(_) => Err(StorageError::NotJson),
        }
    }
}

/// An object whose fields are read one by one.
#[derive(Debug)]
pub struct Fields {
    /// Its name in messages: `body`, `body/sortBy`, `querystring`.
    at: String,
    fields: Map<String, Value>,
}

/// A field that may be absent, null or present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given<T> {
    Absent,
    Null,
    Value(T),
}

impl<T> Given<T> {
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

impl Fields {
    /// Parses a JSON object.
    fn of_body(body: &[u8]) -> Result<Self, StorageError> {
        if body.is_empty() {
            return Err(StorageError::Invalid("body must be object".to_owned()));
        }
        let value = parse_json(body).map_err(|fault| match fault {
            JsonFault::Syntax(_) => StorageError::Unparsed(NO_JSON),
            JsonFault::TooManyValues => StorageError::BodyTooLarge,
        })?;
        match value {
            Value::Object(fields) => Ok(Self { at: "body".to_owned(), fields }),
            _ => Err(StorageError::Invalid("body must be object".to_owned())),
        }
    }

    /// The parameters of a query. A repeated parameter becomes a list.
    pub fn of_query(query: &str) -> Self {
        let mut fields = Map::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = Value::String(value.into_owned());
            match fields.get_mut(name.as_ref()) {
                Some(Value::Array(values)) => values.push(value),
                Some(first) => *first = Value::Array(vec![first.take(), value]),
                None => drop(fields.insert(name.into_owned(), value)),
            }
        }
        Self { at: "querystring".to_owned(), fields }
    }

    /// Refuses the object unless it has all of these fields.
    pub fn require(&self, names: &[&str]) -> Result<(), StorageError> {
        match names.iter().find(|name| !self.fields.contains_key(**name)) {
            Some(name) => Err(self.missing(name)),
            None => Ok(()),
        }
    }

    /// The error for a missing field.
    pub fn missing(&self, name: &str) -> StorageError {
        StorageError::Invalid(format!("{} must have required property '{name}'", self.at))
    }

    /// The object's name in messages.
    pub fn at(&self) -> &str {
        &self.at
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub fn refuse(&self, name: &str, must: &str) -> StorageError {
        StorageError::Invalid(format!("{}/{name} {must}", self.at))
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    pub fn string(&self, name: &str) -> Result<Option<String>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        as_string(value).map(Some).ok_or_else(|| self.refuse(name, "must be string"))
    }

    /// A string from a list of allowed ones.
    pub fn one_of(&self, name: &str, allowed: &[&'static str]) -> Result<Option<&'static str>, StorageError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        let found = allowed.iter().find(|known| **known == text);
        found.map(|known| Some(*known)).ok_or_else(|| self.refuse(name, "must be equal to one of the allowed values"))
    }

    /// An integer of at least `least`.
    pub fn integer(&self, name: &str, least: i64) -> Result<Option<i64>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let number = as_integer(value).ok_or_else(|| self.refuse(name, "must be integer"))?;
        if number < least {
            return Err(self.refuse(name, &format!("must be >= {least}")));
        }
        Ok(Some(number))
    }

    /// An integer within bounds.
    pub fn integer_within(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, StorageError> {
        match self.integer(name, least)? {
            Some(number) if number > most => Err(self.refuse(name, &format!("must be <= {most}"))),
            number => Ok(number),
        }
    }

    /// Any number.
    pub fn decimal(&self, name: &str) -> Result<Option<f64>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let number = as_number(value).filter(|number| number.is_finite());
        number.map(Some).ok_or_else(|| self.refuse(name, "must be number"))
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let value = alone(value);
        let known = match value {
            Value::Bool(known) => Some(*known),
            Value::Null => Some(false),
            Value::String(text) if text == "true" => Some(true),
            Value::String(text) if text == "false" => Some(false),
            Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
            Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
            _ => None,
        };
        known.map(Some).ok_or_else(|| self.refuse(name, "must be boolean"))
    }

    /// A list of strings, or null.
    pub fn strings(&self, name: &str) -> Result<Given<Vec<String>>, StorageError> {
        self.items(name, |position, item| {
            as_string(item).ok_or_else(|| self.refuse(name, &format!("{position} must be string")).joined(name))
        })
    }

    /// A list whose items `read` understands, or null.
    fn items<T>(
        &self,
        name: &str,
        read: impl Fn(usize, &Value) -> Result<T, StorageError>,
    ) -> Result<Given<Vec<T>>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(Given::Absent) };
        let items = match value {
            Value::Array(items) => items.as_slice(),
            Value::Null => return Ok(Given::Null),
            Value::Object(_) => return Err(self.refuse(name, "must be array")),
            single => std::slice::from_ref(single),
        };
        items
            .iter()
            .enumerate()
            .map(|(position, item)| read(position, item))
            .collect::<Result<_, _>>()
            .map(Given::Value)
    }

    /// A list of one to `most` strings.
    pub fn some_strings(&self, name: &str, most: usize) -> Result<Vec<String>, StorageError> {
        self.some(name, most, self.strings(name)?, String::new())
    }

    /// A list of one or more strings and objects. Of each string comes the string, of each object the strings in its two fields.
    pub fn some_pairs(
        &self,
        name: &str,
        [first, second]: [&str; 2],
    ) -> Result<Vec<(String, Option<String>)>, StorageError> {
        let pairs = self.items(name, |position, item| {
            if let Some(text) = as_string(item) {
                return Ok((text, None));
            }
            let at = format!("{}/{name}/{position}", self.at);
            let refused = |fault: String| {
                // Both alternatives of the schema say what they lack.
                let faults = [format!("{at} must be string"), fault, format!("{at} must match a schema in anyOf")];
                StorageError::Invalid(faults.join(", "))
            };
            let Value::Object(fields) = alone(item) else { return Err(refused(format!("{at} must be object"))) };
            let text = |name: &str| match fields.get(name) {
                Some(value) => as_string(value).ok_or_else(|| refused(format!("{at}/{name} must be string"))),
                None => Err(refused(format!("{at} must have required property '{name}'"))),
            };
            Ok((text(first)?, Some(text(second)?)))
        })?;
        self.some(name, usize::MAX, pairs, (String::new(), None))
    }

    /// A list of one to `most` items.
    fn some<T>(&self, name: &str, most: usize, items: Given<Vec<T>>, empty: T) -> Result<Vec<T>, StorageError> {
        match items {
            // The schema does not allow null here, so it becomes a list with an empty string.
            Given::Null => Ok(vec![empty]),
            Given::Absent => Err(StorageError::Invalid(format!("{} must have required property '{name}'", self.at))),
            Given::Value(list) if list.is_empty() => Err(self.refuse(name, "must NOT have fewer than 1 items")),
            Given::Value(list) if list.len() > most => {
                Err(self.refuse(name, &format!("must NOT have more than {most} items")))
            }
            Given::Value(list) => Ok(list),
        }
    }

    /// A number of bytes or a text such as `20MB`; null or an empty text means no limit.
    pub fn size(&self, name: &str) -> Result<Given<Size>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(Given::Absent) };
        let value = alone(value);
        if value.is_null() || value.as_str() == Some("") {
            return Ok(Given::Null);
        }
        // Of two alternatives, a list with one number is neither.
        let listed = self.find(name).is_some_and(Value::is_array);
        let bytes = as_integer(value).filter(|_| !listed).and_then(|bytes| u64::try_from(bytes).ok()).map(Size);
        let size = bytes.or_else(|| value.as_str().and_then(Size::parse));
        size.map(Given::Value).ok_or_else(|| {
            let pattern = "must match pattern \"^[0-9]+(?:\\.[0-9]+)?(?:[gG][bB]|[mM][bB]|[kK][bB]|[bB])$\"";
            let finite = "must pass \"finite\" keyword validation";
            // Both alternatives of the schema say what they lack.
            let faults = match value {
                _ if as_integer(value).is_some() && !listed => vec!["must be >= 0", pattern],
                Value::Number(_) => vec!["must be integer", pattern],
                Value::Array(_) | Value::Object(_) => vec!["must be integer", finite, "must be string"],
                _ => vec!["must be integer", finite, pattern],
            };
            let at = format!("{}/{name}", self.at);
            let faults = faults.into_iter().chain(["must match a schema in anyOf"]);
            StorageError::Invalid(faults.map(|fault| format!("{at} {fault}")).collect::<Vec<_>>().join(", "))
        })
    }

    /// A nested object.
    pub fn object(&self, name: &str) -> Result<Option<Fields>, StorageError> {
        match self.find(name).map(alone) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self { at: format!("{}/{name}", self.at), fields: fields.clone() })),
            Some(_) => Err(self.refuse(name, "must be object")),
        }
    }
}

impl StorageError {
    /// `body/paths 3 must …` becomes `body/paths/3 must …`.
    fn joined(self, name: &str) -> Self {
        match self {
            Self::Invalid(text) => Self::Invalid(text.replacen(&format!("/{name} "), &format!("/{name}/"), 1)),
            other => other,
        }
    }
}

/// A limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    /// Parses `20MB`, `1.5gb`, `3B`: decimal units, three significant digits.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(digits);
        let factor = match unit.to_ascii_lowercase().as_str() {
            "gb" => 1e9,
            "mb" => 1e6,
            "kb" => 1e3,
            "b" => 1.0,
            _ => return None,
        };
        let well_formed = number.split('.').count() <= 2 && number.split('.').all(|part| !part.is_empty());
        let value: f64 = number.parse().ok().filter(|_| well_formed)?;
        let rounded: f64 = format!("{value:.2e}").parse().ok()?;
        Some(Self((rounded * factor) as u64))
    }
}

/// A list of one counts as its value.
fn alone(value: &Value) -> &Value {
    match value {
        Value::Array(items) if items.len() == 1 => &items[0],
        other => other,
    }
}

fn as_string(value: &Value) -> Option<String> {
    match alone(value) {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        Value::Bool(known) => Some(known.to_string()),
        // 1.0 equals 1 in JavaScript.
        Value::Number(number) => Some(match number.as_f64() {
            Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < 1e21 => format!("{whole:.0}"),
            _ => number.to_string(),
        }),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match alone(value) {
        Value::Number(number) => number.as_f64(),
        Value::Bool(known) => Some(f64::from(u8::from(*known))),
        Value::Null => Some(0.0),
        // Rust parses "inf" and "nan" as numbers, JavaScript does not.
        Value::String(text) if text.trim().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            text.trim().parse().ok().filter(|number: &f64| number.is_finite())
        }
        Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn as_integer(value: &Value) -> Option<i64> {
    let number = as_number(value)?;
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(value: Value) -> Fields {
        Fields::of_body(value.to_string().as_bytes()).expect("an object")
    }

    fn said<T: std::fmt::Debug>(outcome: Result<T, StorageError>) -> String {
        outcome.expect_err("refused").to_string()
    }

    #[test]
    fn values_are_coerced_as_by_the_reference() {
        let fields = body(json!({
            "text": 60, "whole": 6e1, "number": "60", "object": [{ "a": "b" }], "list": "one", "yes": "true", "no": 0, "alone": [7], "null": null, "blank": ""
        }));
        assert_eq!(fields.string("text").expect("text").as_deref(), Some("60"));
        assert_eq!(fields.string("whole").expect("text").as_deref(), Some("60"));
        let alone = fields.object("object").expect("an object").expect("there");
        assert_eq!(alone.string("a").expect("text").as_deref(), Some("b"));
        assert_eq!(fields.integer("number", 1).expect("number"), Some(60));
        assert_eq!(fields.integer("alone", 1).expect("number"), Some(7));
        assert_eq!(fields.integer("null", 0).expect("number"), Some(0));
        assert_eq!(fields.strings("list").expect("list"), Given::Value(vec!["one".to_owned()]));
        assert_eq!(fields.strings("null").expect("list"), Given::Null);
        assert_eq!(fields.boolean("yes").expect("flag"), Some(true));
        assert_eq!(fields.boolean("no").expect("flag"), Some(false));
        assert_eq!(fields.size("blank").expect("size"), Given::Null);
        assert_eq!(fields.size("number").expect("size"), Given::Value(Size(60)));
        assert_eq!(fields.string("absent").expect("text"), None);
        let pairs =
            body(json!({ "keys": ["one", 2, { "path": "three", "id": 4 }, [{ "path": "five", "id": "six" }]] }));
        let pair = |path: &str, id: Option<&str>| (path.to_owned(), id.map(str::to_owned));
        assert_eq!(
            pairs.some_pairs("keys", ["path", "id"]).expect("pairs"),
            [pair("one", None), pair("2", None), pair("three", Some("4")), pair("five", Some("six"))]
        );
        assert!(said(fields.size("alone")).starts_with("body/alone must be integer, body/alone must match pattern"));
    }

    #[test]
    fn values_that_cannot_be_coerced_get_the_references_messages() {
        let fields =
            body(json!({ "limit": "many", "few": 0, "on": "yes", "paths": ["a", {}], "by": "name", "none": [] }));
        assert_eq!(said(fields.integer("limit", 1)), "body/limit must be integer");
        assert_eq!(said(fields.integer("few", 1)), "body/few must be >= 1");
        assert_eq!(said(fields.boolean("on")), "body/on must be boolean");
        assert_eq!(said(fields.strings("paths")), "body/paths/1 must be string");
        assert_eq!(said(fields.object("by")), "body/by must be object");
        assert_eq!(said(fields.some_strings("none", 9)), "body/none must NOT have fewer than 1 items");
        assert_eq!(said(fields.some_pairs("none", ["a", "b"])), "body/none must NOT have fewer than 1 items");
        let lacks = "body/paths/1 must be string, body/paths/1 must have required property 'a', \
                     body/paths/1 must match a schema in anyOf";
        assert_eq!(said(fields.some_pairs("paths", ["a", "b"])), lacks);
        assert_eq!(said(fields.some_strings("paths2", 9)), "body must have required property 'paths2'");
        assert_eq!(said(fields.require(&["limit", "prefix"])), "body must have required property 'prefix'");
        assert_eq!(said(fields.one_of("by", &["id"])), "body/by must be equal to one of the allowed values");
        assert_eq!(said(Fields::of_body(b"")), "body must be object");
        assert_eq!(said(Fields::of_body(b"[]")), "body must be object");
        assert_eq!(said(Fields::of_query("limit=x").integer("limit", 1)), "querystring/limit must be integer");
    }

    /// Regression: values take sixty times the memory of a text such as this, before anything is known of the caller.
    #[test]
    fn a_body_of_countless_values_is_refused_and_one_of_many_names_is_not() {
        let list = |item: &str, count: usize| format!("{{\"prefixes\":[{}]}}", vec![item; count].join(","));
        for item in ["0", "[]", "{}", "{\"\":0}", "\"\""] {
            assert_eq!(said(Fields::of_body(list(item, 600_000).as_bytes())), StorageError::BodyTooLarge.to_string());
        }
        let nested = format!("{{\"a\":{}}}", list("0", 20_000));
        assert!(matches!(Fields::of_body(nested.as_bytes()), Err(StorageError::BodyTooLarge)));
        let keys: Vec<String> = (0..100_000).map(|key| format!("\"{key}\":0")).collect();
        assert!(matches!(
            Fields::of_body(format!("{{{}}}", keys.join(",")).as_bytes()),
            Err(StorageError::BodyTooLarge)
        ));
        for (name, count) in [("\"a\"", 10_000), ("\"12345.txt\"", 30_000), ("\"folder/picture.png\"", 180_000)] {
            let fields = Fields::of_body(list(name, count).as_bytes()).expect("fields");
            assert_eq!(fields.some_strings("prefixes", usize::MAX).expect("names").len(), count, "{name}");
        }
        for broken in ["{", "{\"a\":}", "{} {}", "{\"a\":\"\\ud800\"}", &"[".repeat(1 << 20)] {
            assert!(matches!(Fields::of_body(broken.as_bytes()), Err(StorageError::Unparsed(NO_JSON))), "{broken:.9}");
        }
    }

    #[test]
    fn sizes_have_decimal_units_and_three_significant_digits() {
        for (text, bytes) in [("20MB", 20_000_000), ("1.5gb", 1_500_000_000), ("3B", 3), ("12345kb", 12_300_000)] {
            assert_eq!(Size::parse(text), Some(Size(bytes)), "{text}");
        }
        for text in ["20", "MB", "1.MB", "1..2MB", "20 MB", "-1MB", "20TB"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
