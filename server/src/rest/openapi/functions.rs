//! Functions in the document.

use serde_json::{Map, Value, json};

use super::{summary, types};
use crate::schema_cache::{Function, Parameter, Volatility};

/// Entry of `paths`: POST, and GET unless it is volatile.
pub fn path(function: &Function) -> Value {
    let operation = |parameters: Vec<Value>| {
        let mut operation = Map::from_iter([
            ("tags".to_owned(), json!([format!("(rpc) {}", function.name.name)])),
            (
                "produces".to_owned(),
                json!([
                    "application/json",
                    "application/vnd.pgrst.object+json;nulls=stripped",
                    "application/vnd.pgrst.object+json",
                ]),
            ),
            ("responses".to_owned(), json!({ "200": { "description": "OK" } })),
        ]);
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), parameters.into());
        }
        summary(&mut operation, function.description.as_deref());
        Value::Object(operation)
    };
    let body = json!({ "name": "args", "required": true, "in": "body", "schema": schema(function) });
    let mut path = json!({ "post": operation(vec![body, json!({ "$ref": "#/parameters/preferParams" })]) });
    if function.volatility != Volatility::Volatile {
        path["get"] = operation(function.parameters.iter().map(query_parameter).collect());
    }
    path
}

fn schema(function: &Function) -> Value {
    let properties: Map<String, Value> = function
        .parameters
        .iter()
        .map(|parameter| (parameter.name.to_string(), types::describe(&parameter.type_name).into()))
        .collect();
    let required: Vec<&str> = function.parameters.iter().filter(|p| p.required).map(|p| &*p.name).collect();
    let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
    if let Some(description) = &function.description {
        schema.insert("description".to_owned(), json!(description));
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), properties.into());
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.into()
}

/// Arrays are literals in braces, so they are strings, except for VARIADIC, which is repeated per item.
fn query_parameter(parameter: &Parameter) -> Value {
    let name = &*parameter.type_name;
    let mut described = json!({ "name": parameter.name, "required": parameter.required, "in": "query" });
    if parameter.variadic {
        let item = name.strip_suffix("[]").unwrap_or(name);
        let mut items = Map::from_iter([("format".to_owned(), json!(types::format(item)))]);
        if let Some(swagger) = types::swagger_type(item) {
            items.insert("type".to_owned(), json!(swagger));
        }
        described["type"] = json!(types::swagger_type(name).unwrap_or("string"));
        described["collectionFormat"] = json!("multi");
        described["items"] = items.into();
    } else {
        described["type"] = json!(types::swagger_type(name).filter(|swagger| *swagger != "array").unwrap_or("string"));
        described["format"] = json!(types::format(name));
    }
    described
}
