//! The fields of a JSON body or a query, read as the reference's schemas read them.
//!
//! Its validator coerces before it refuses: `"60"` is 60, `60` is `"60"`, `"true"` is true, a single value is a list of
//! one, a list of one is its value. SDKs in several languages rely on it.
//! Reference: Ajv `coerceTypes: "array"`, Fastify's messages (`body/limit must be integer`).

use serde_json::{Map, Value};

use super::error::StorageError;

/// An object whose fields are asked for one by one.
#[derive(Debug)]
pub struct Fields {
    /// How messages call it: `body`, `body/sortBy`, `querystring`.
    at: String,
    fields: Map<String, Value>,
}

/// A field that may be absent, null or there.
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
    /// A JSON object; whatever its content type says.
    pub fn of_body(body: &[u8]) -> Result<Self, StorageError> {
        if body.is_empty() {
            return Err(StorageError::Invalid("body must be object".to_owned()));
        }
        let value = serde_json::from_slice(body).map_err(|_| {
            StorageError::Invalid("Body is not valid JSON but content-type is set to 'application/json'".to_owned())
        })?;
        match value {
            Value::Object(fields) => Ok(Self { at: "body".to_owned(), fields }),
            _ => Err(StorageError::Invalid("body must be object".to_owned())),
        }
    }

    /// The parameters of a query; of one that is repeated all values.
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

    /// Refuses unless all of these are there.
    pub fn require(&self, names: &[&str]) -> Result<(), StorageError> {
        match names.iter().find(|name| !self.fields.contains_key(**name)) {
            Some(name) => Err(self.missing(name)),
            None => Ok(()),
        }
    }

    /// What is said of a field that is not there.
    pub fn missing(&self, name: &str) -> StorageError {
        StorageError::Invalid(format!("{} must have required property '{name}'", self.at))
    }

    /// How messages call the object.
    pub fn at(&self) -> &str {
        &self.at
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
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

    /// A text out of a list.
    pub fn one_of(&self, name: &str, allowed: &[&'static str]) -> Result<Option<&'static str>, StorageError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        let found = allowed.iter().find(|known| **known == text);
        found.map(|known| Some(*known)).ok_or_else(|| self.refuse(name, "must be equal to one of the allowed values"))
    }

    /// A whole number of at least `least`.
    pub fn integer(&self, name: &str, least: i64) -> Result<Option<i64>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let number = as_integer(value).ok_or_else(|| self.refuse(name, "must be integer"))?;
        if number < least {
            return Err(self.refuse(name, &format!("must be >= {least}")));
        }
        Ok(Some(number))
    }

    /// A whole number within bounds.
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

    /// A list of texts, or null.
    pub fn strings(&self, name: &str) -> Result<Given<Vec<String>>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(Given::Absent) };
        let items = match value {
            Value::Array(items) => items.as_slice(),
            Value::Null => return Ok(Given::Null),
            Value::Object(_) => return Err(self.refuse(name, "must be array")),
            single => std::slice::from_ref(single),
        };
        let text = |(position, item)| {
            as_string(item).ok_or_else(|| self.refuse(name, &format!("{position} must be string")).joined(name))
        };
        items.iter().enumerate().map(text).collect::<Result<_, _>>().map(Given::Value)
    }

    /// A list of at least one and at most `most` texts.
    pub fn some_strings(&self, name: &str, most: usize) -> Result<Vec<String>, StorageError> {
        match self.strings(name)? {
            // Null is no list; a schema that takes none makes a list of it.
            Given::Null => Ok(vec![String::new()]),
            Given::Absent => Err(StorageError::Invalid(format!("{} must have required property '{name}'", self.at))),
            Given::Value(list) if list.is_empty() => Err(self.refuse(name, "must NOT have fewer than 1 items")),
            Given::Value(list) if list.len() > most => {
                Err(self.refuse(name, &format!("must NOT have more than {most} items")))
            }
            Given::Value(list) => Ok(list),
        }
    }

    /// A number of bytes or a text such as `20MB`; null, or an empty text, for none.
    pub fn size(&self, name: &str) -> Result<Given<Size>, StorageError> {
        let Some(value) = self.find(name) else { return Ok(Given::Absent) };
        let value = alone(value);
        if value.is_null() || value.as_str() == Some("") {
            return Ok(Given::Null);
        }
        if let Some(bytes) = as_integer(value) {
            if bytes < 0 {
                return Err(self.refuse(name, "must be >= 0"));
            }
            return Ok(Given::Value(Size(bytes.unsigned_abs())));
        }
        let size = value.as_str().and_then(Size::parse);
        size.map(Given::Value).ok_or_else(|| {
            let at = format!("{}/{name}", self.at);
            StorageError::Invalid(format!(
                "{at} must be integer, {at} must match pattern \
                 \"^[0-9]+(?:\\.[0-9]+)?(?:[gG][bB]|[mM][bB]|[kK][bB]|[bB])$\", {at} must match a schema in anyOf"
            ))
        })
    }

    /// An object inside.
    pub fn object(&self, name: &str) -> Result<Option<Fields>, StorageError> {
        match self.find(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self { at: format!("{}/{name}", self.at), fields: fields.clone() })),
            Some(_) => Err(self.refuse(name, "must be object")),
        }
    }
}

impl StorageError {
    /// `body/paths 3 must …` says `body/paths/3 must …`.
    fn joined(self, name: &str) -> Self {
        match self {
            Self::Invalid(text) => Self::Invalid(text.replacen(&format!("/{name} "), &format!("/{name}/"), 1)),
            other => other,
        }
    }
}

/// A limit of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    /// `20MB`, `1.5gb`, `3B`: decimal units, three significant digits.
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

/// A list of one is its value where a value is wanted.
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
        Value::Number(number) => Some(number.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match alone(value) {
        Value::Number(number) => number.as_f64(),
        Value::Bool(known) => Some(f64::from(u8::from(*known))),
        Value::Null => Some(0.0),
        // "inf" and "nan" are numbers to Rust and none to JavaScript.
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
    fn values_are_coerced_as_the_reference_does() {
        let fields = body(json!({
            "text": 60, "number": "60", "list": "one", "yes": "true", "no": 0, "alone": [7], "null": null, "blank": ""
        }));
        assert_eq!(fields.string("text").expect("text").as_deref(), Some("60"));
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
    }

    #[test]
    fn what_cannot_be_coerced_is_refused_in_the_references_words() {
        let fields =
            body(json!({ "limit": "many", "few": 0, "on": "yes", "paths": ["a", {}], "by": "name", "none": [] }));
        assert_eq!(said(fields.integer("limit", 1)), "body/limit must be integer");
        assert_eq!(said(fields.integer("few", 1)), "body/few must be >= 1");
        assert_eq!(said(fields.boolean("on")), "body/on must be boolean");
        assert_eq!(said(fields.strings("paths")), "body/paths/1 must be string");
        assert_eq!(said(fields.object("by")), "body/by must be object");
        assert_eq!(said(fields.some_strings("none", 9)), "body/none must NOT have fewer than 1 items");
        assert_eq!(said(fields.some_strings("paths2", 9)), "body must have required property 'paths2'");
        assert_eq!(said(fields.require(&["limit", "prefix"])), "body must have required property 'prefix'");
        assert_eq!(said(fields.one_of("by", &["id"])), "body/by must be equal to one of the allowed values");
        assert_eq!(said(Fields::of_body(b"")), "body must be object");
        assert_eq!(said(Fields::of_body(b"[]")), "body must be object");
        assert_eq!(said(Fields::of_query("limit=x").integer("limit", 1)), "querystring/limit must be integer");
    }

    #[test]
    fn sizes_have_decimal_units_and_three_digits() {
        for (text, bytes) in [("20MB", 20_000_000), ("1.5gb", 1_500_000_000), ("3B", 3), ("12345kb", 12_300_000)] {
            assert_eq!(Size::parse(text), Some(Size(bytes)), "{text}");
        }
        for text in ["20", "MB", "1.MB", "1..2MB", "20 MB", "-1MB", "20TB"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
