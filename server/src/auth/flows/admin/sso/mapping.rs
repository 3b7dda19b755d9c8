//! Which attributes of an assertion become which claims: `{"keys": {"<claim>": {"name", "names", "default", "array"}}}`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::auth::door::params::Params;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::Json;

#[derive(Deserialize)]
struct Attribute {
    name: Option<String>,
    names: Option<Vec<Option<String>>>,
    default: Option<Value>,
    array: Option<bool>,
}

impl Attribute {
    /// What is said, without what is empty.
    fn shown(self) -> Value {
        let mut shown = Map::new();
        if let Some(name) = self.name.filter(|name| !name.is_empty()) {
            shown.insert("name".to_owned(), json!(name));
        }
        if let Some(names) = self.names.filter(|names| !names.is_empty()) {
            let names: Vec<String> = names.into_iter().map(Option::unwrap_or_default).collect();
            shown.insert("names".to_owned(), json!(names));
        }
        if let Some(default) = self.default {
            shown.insert("default".to_owned(), default);
        }
        if self.array == Some(true) {
            shown.insert("array".to_owned(), json!(true));
        }
        Value::Object(shown)
    }
}

/// The body's `attribute_mapping`, reduced to known fields.
///
/// Errors: 400 `bad_json`.
pub fn read(params: &Params) -> AuthResult<Option<Json>> {
    if params.value("attribute_mapping").is_none() {
        return Ok(None);
    }
    let Some(keys) = params.nested("attribute_mapping")?.object("keys")? else { return Ok(Some(Json::new())) };
    let mut read = Json::new();
    for (claim, value) in keys {
        let attribute = Option::<Attribute>::deserialize(value).map_err(|error| {
            let message = format!("Could not parse request body as JSON: attribute_mapping.keys.{claim}: {error}");
            AuthError::bad_request(Code::BadJson, message)
        })?;
        read.insert(claim, attribute.map_or_else(|| json!({}), Attribute::shown));
    }
    if read.is_empty() {
        return Ok(Some(Json::new()));
    }
    Ok(Some(Json::from_iter([("keys".to_owned(), Value::Object(read))])))
}

pub fn has_keys(mapping: &Json) -> bool {
    mapping.contains_key("keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_mappings_keep_known_keys_and_refuse_wrong_types() {
        for (body, wanted) in [
            (json!({}), json!(null)),
            (json!({ "attribute_mapping": null }), json!(null)),
            (json!({ "attribute_mapping": {} }), json!({})),
            (json!({ "attribute_mapping": { "keys": {} } }), json!({})),
            (
                json!({ "attribute_mapping": { "other": 1, "keys": {
                    "a": { "name": "mail", "names": [], "array": false, "odd": 1 },
                    "b": { "names": ["x", "y"], "default": ["z"], "array": true },
                    "c": null,
                } } }),
                json!({ "keys": {
                    "a": { "name": "mail" },
                    "b": { "names": ["x", "y"], "default": ["z"], "array": true },
                    "c": {},
                } }),
            ),
        ] {
            let params = Params::parse(body.to_string().as_bytes()).expect("JSON");
            let read = read(&params).expect("a mapping").map_or(Value::Null, Value::Object);
            assert_eq!(read, wanted, "{body}");
        }
        for mapping in [
            json!([]),
            json!({ "keys": [] }),
            json!({ "keys": { "a": "mail" } }),
            json!({ "keys": { "a": { "names": "x" } } }),
        ] {
            let body = json!({ "attribute_mapping": mapping });
            let params = Params::parse(body.to_string().as_bytes()).expect("JSON");
            assert_eq!(read(&params).expect_err("refused").code(), Some(Code::BadJson), "{body}");
        }
    }
}
