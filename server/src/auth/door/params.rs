//! Bodies: JSON objects read field by field, as Go reads them into a struct.
//!
//! Names are case-insensitive, unknown fields are ignored, null counts as absent, and a value of the wrong
//! type makes the whole body invalid.

use serde_json::Value;

use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::Json;
use crate::http::json::{JsonFault, parse_json};

const PREFIX: &str = "Could not parse request body as JSON: ";

/// A parsed body.
#[derive(Clone, Debug, Default)]
pub struct Params(Json);

impl Params {
    pub fn parse(body: &[u8]) -> AuthResult<Self> {
        Self::parse_as(body, PREFIX)
    }

    /// The same, with another prefix for the message about invalid JSON.
    pub fn parse_as(body: &[u8], prefix: &str) -> AuthResult<Self> {
        let bad = |what: &str| AuthError::bad_request(Code::BadJson, format!("{prefix}{what}"));
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(bad("EOF"));
        }
        match parse_json(String::from_utf8_lossy(body).as_bytes()) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(Value::Null) => Ok(Self::default()),
            Ok(_) => Err(bad("the body must be an object")),
            Err(JsonFault::Syntax(error)) if error.is_eof() => Err(bad("unexpected EOF")),
            Err(JsonFault::Syntax(error)) => Err(bad(&error.to_string())),
            Err(JsonFault::TooManyValues) => Err(bad("too many values")),
        }
    }

    /// The raw value; null is absent.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// The raw value, null included.
    pub fn raw(&self, name: &str) -> Option<&Value> {
        let exact = self.0.get(name);
        exact.or_else(|| {
            self.0.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next_back()
        })
    }

    /// A text, empty when absent.
    pub fn text(&self, name: &str) -> AuthResult<String> {
        Ok(self.optional_text(name)?.unwrap_or_default())
    }

    pub fn optional_text(&self, name: &str) -> AuthResult<Option<String>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong_type(name, "string", other)),
        }
    }

    pub fn flag(&self, name: &str, default: bool) -> AuthResult<bool> {
        match self.value(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong_type(name, "bool", other)),
        }
    }

    pub fn object(&self, name: &str) -> AuthResult<Option<Json>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object.clone())),
            Some(other) => Err(wrong_type(name, "object", other)),
        }
    }

    /// A list of texts; nulls among them are empty texts.
    pub fn texts(&self, name: &str) -> AuthResult<Option<Vec<String>>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    Value::Null => Ok(String::new()),
                    other => Err(wrong_type(name, "string", other)),
                })
                .collect::<AuthResult<Vec<_>>>()
                .map(Some),
            Some(other) => Err(wrong_type(name, "array", other)),
        }
    }

    /// An object of its own, read the same way.
    pub fn nested(&self, name: &str) -> AuthResult<Self> {
        Ok(Self(self.object(name)?.unwrap_or_default()))
    }
}

fn wrong_type(name: &str, wanted: &str, got: &Value) -> AuthError {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    AuthError::bad_request(Code::BadJson, format!("{PREFIX}cannot read the {got} in field {name} as {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> AuthResult<Params> {
        Params::parse(text.as_bytes())
    }

    #[test]
    fn names_match_in_any_case_and_null_is_absent() {
        let params = parse(r#"{"EMAIL": "a", "password": null}"#).expect("params");
        assert_eq!(params.text("email").expect("text"), "a");
        assert_eq!(params.optional_text("password").expect("text"), None);
    }

    #[test]
    fn a_body_that_would_take_much_memory_is_bad_json() {
        let body = format!(r#"{{"email": "a", "data": [{}0]}}"#, r#"{"":0},"#.repeat(140_000));
        assert_eq!(parse(&body).expect_err("too many values").code(), Some(Code::BadJson));
        let honest = format!(r#"{{"data": {{"text": "{}"}}}}"#, "x".repeat(1_000_000));
        assert!(parse(&honest).is_ok());
    }

    #[test]
    fn non_objects_and_wrong_types_are_bad_json() {
        for body in ["", "  ", "[]", "\"x\"", "{", "{} x"] {
            assert_eq!(parse(body).expect_err(body).code(), Some(Code::BadJson), "{body}");
        }
        let params = parse(r#"{"email": 1, "data": []}"#).expect("params");
        assert_eq!(params.text("email").expect_err("number").code(), Some(Code::BadJson));
        assert_eq!(params.object("data").expect_err("array").code(), Some(Code::BadJson));
        assert!(parse("null").is_ok());
    }
}
