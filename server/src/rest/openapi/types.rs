//! Swagger's forms of PostgreSQL types and defaults.

use serde_json::{Map, Value, json};

/// The Swagger type; none for json, which may be anything.
pub fn swagger_type(name: &str) -> Option<&'static str> {
    match name {
        "json" | "jsonb" => None,
        "boolean" => Some("boolean"),
        "smallint" | "integer" | "bigint" => Some("integer"),
        "numeric" | "real" | "double precision" => Some("number"),
        _ if name.ends_with("[]") => Some("array"),
        _ => Some("string"),
    }
}

pub fn format(name: &str) -> &str {
    match name {
        "smallint" | "integer" => "int32",
        "bigint" => "int64",
        other => other,
    }
}

/// `format`, `type` and, for arrays, `items`.
pub fn describe(name: &str) -> Map<String, Value> {
    let mut description = Map::from_iter([("format".to_owned(), json!(format(name)))]);
    if let Some(swagger) = swagger_type(name) {
        description.insert("type".to_owned(), json!(swagger));
    }
    if let Some(item) = name.strip_suffix("[]") {
        let item = swagger_type(item).map_or_else(|| json!({}), |swagger| json!({ "type": swagger }));
        description.insert("items".to_owned(), item);
    }
    description
}

/// The value of a default, if its SQL is a literal.
pub fn default_value(base_type: &str, sql: &str) -> Option<Value> {
    if swagger_type(base_type) != Some("string") {
        return serde_json::from_str(sql).ok();
    }
    let text = match sql.strip_suffix(base_type).and_then(|rest| rest.strip_suffix("::")) {
        Some(literal) => literal.trim_matches('\''),
        None => sql,
    };
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_that_are_literals_are_shown() {
        for (base_type, sql, value) in [
            ("text", "'a b'::text", Some(json!("a b"))),
            ("text", "now()::text", Some(json!("now()"))),
            ("text", "'say \"x\"'::text", None),
            ("integer", "7", Some(json!(7))),
            ("integer", "nextval('s')", None),
            ("boolean", "true", Some(json!(true))),
            ("jsonb", "'{}'::jsonb", None),
            ("text[]", "'{}'::text[]", None),
        ] {
            assert_eq!(default_value(base_type, sql), value, "{sql}");
        }
    }

    #[test]
    fn array_schemas_state_their_item_type() {
        assert_eq!(
            Value::Object(describe("text[]")),
            json!({"format": "text[]", "type": "array", "items": {"type": "string"}})
        );
        assert_eq!(Value::Object(describe("jsonb[]")), json!({"format": "jsonb[]", "type": "array", "items": {}}));
        assert_eq!(Value::Object(describe("jsonb")), json!({"format": "jsonb"}));
        assert_eq!(Value::Object(describe("bigint")), json!({"format": "int64", "type": "integer"}));
    }
}
