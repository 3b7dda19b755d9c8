//! Relations in the document: definition, path, parameters.

use serde_json::{Map, Value, json};

use super::{summary, types};
use crate::schema_cache::{Cardinality, Column, Relationship, SchemaCache, Table};

/// Entry of `definitions`.
pub fn definition(table: &Table, cache: &SchemaCache) -> Value {
    let properties: Map<String, Value> =
        table.columns().iter().map(|column| (column.name.to_string(), property(table, column, cache).into())).collect();
    let required: Vec<&str> = table.columns().iter().filter(|c| !c.nullable).map(|c| &*c.name).collect();
    let mut definition = Map::from_iter([("type".to_owned(), json!("object"))]);
    if let Some(description) = &table.description {
        definition.insert("description".to_owned(), json!(description));
    }
    if !properties.is_empty() {
        definition.insert("properties".to_owned(), properties.into());
    }
    if !required.is_empty() {
        definition.insert("required".to_owned(), json!(required));
    }
    definition.into()
}

fn property(table: &Table, column: &Column, cache: &SchemaCache) -> Map<String, Value> {
    let mut property = types::describe(&column.base_type);
    if let Some(default) = column.default.as_deref().and_then(|sql| types::default_value(&column.base_type, sql)) {
        property.insert("default".to_owned(), default);
    }
    if !column.enum_labels.is_empty() {
        property.insert("enum".to_owned(), json!(column.enum_labels));
    }
    if let Some(length) = column.max_length {
        property.insert("maxLength".to_owned(), json!(length));
    }
    let mut notes = Vec::new();
    if table.primary_key.contains(&column.name) {
        notes.push("This is a Primary Key.<pk/>".to_owned());
    }
    if let Some((target, target_column)) = foreign_key(table, column, cache) {
        notes.push(format!(
            "This is a Foreign Key to `{target}.{target_column}`.<fk table='{target}' column='{target_column}'/>"
        ));
    }
    let own = column.description.as_deref();
    let description = match (own, notes.is_empty()) {
        (own, true) => own.map(str::to_owned),
        (Some(own), false) => Some(format!("{own}\n\nNote:\n{}", notes.join("\n"))),
        (None, false) => Some(format!("Note:\n{}", notes.join("\n"))),
    };
    if let Some(description) = description {
        property.insert("description".to_owned(), json!(description));
    }
    property
}

/// The target of a column that alone forms a foreign key; tables before views.
fn foreign_key<'a>(table: &Table, column: &Column, cache: &'a SchemaCache) -> Option<(&'a str, &'a str)> {
    let lead = |relationship: &'a Relationship| match relationship {
        Relationship::Detected {
            target,
            target_is_view,
            cardinality:
                Cardinality::ManyToOne { columns, .. } | Cardinality::OneToOne { columns, is_parent: false, .. },
            ..
        } => match columns.as_slice() {
            [(own, other)] if *own == column.name => Some((*target_is_view, &*target.name, &**other)),
            _ => None,
        },
        _ => None,
    };
    let leads: Vec<_> = cache.relationships_of(&table.name.schema, &table.name.name).filter_map(|r| lead(r)).collect();
    let (_, target, target_column) = leads.iter().find(|(is_view, ..)| !is_view).or_else(|| leads.first()).copied()?;
    Some((target, target_column))
}

/// Entry of `paths`: reading always, writing if the relation can be written in any way.
pub fn path(table: &Table) -> Value {
    let name = &table.name.name;
    let filters: Vec<String> = table.columns().iter().map(|c| format!("rowFilter.{name}.{}", c.name)).collect();
    let body = format!("body.{name}");
    let operation = |parameters: &[&str], filtered: bool, responses: Value| {
        let filters = filters.iter().map(String::as_str).filter(|_| filtered);
        let references: Vec<Value> =
            filters.chain(parameters.iter().copied()).map(|p| json!({ "$ref": reference("parameters", p) })).collect();
        let mut operation = Map::from_iter([
            ("tags".to_owned(), json!([name])),
            ("parameters".to_owned(), references.into()),
            ("responses".to_owned(), responses),
        ]);
        summary(&mut operation, table.description.as_deref());
        Value::Object(operation)
    };
    let rows = json!({ "type": "array", "items": { "$ref": reference("definitions", name) } });
    let mut path = json!({
        "get": operation(
            &["select", "order", "range", "rangeUnit", "offset", "limit", "preferCount"],
            true,
            json!({ "200": { "description": "OK", "schema": rows }, "206": { "description": "Partial Content" } }),
        ),
    });
    if table.insertable || table.updatable || table.deletable {
        let empty = json!({ "204": { "description": "No Content" } });
        path["post"] =
            operation(&[&body, "select", "preferPost"], false, json!({ "201": { "description": "Created" } }));
        path["patch"] = operation(&[&body, "preferReturn"], true, empty.clone());
        path["delete"] = operation(&["preferReturn"], true, empty);
    }
    path
}

/// Entries of `parameters`: the body and a filter per column.
pub fn parameters(table: &Table) -> Vec<(String, Value)> {
    let name = &table.name.name;
    let body = json!({
        "name": name,
        "description": name,
        "required": false,
        "in": "body",
        "schema": { "$ref": reference("definitions", name) },
    });
    let filter = |column: &Column| {
        let mut parameter = json!({ "name": column.name, "required": false, "in": "query", "type": "string" });
        if let Some(description) = &column.description {
            parameter["description"] = json!(description);
        }
        (format!("rowFilter.{name}.{}", column.name), parameter)
    };
    std::iter::once((format!("body.{name}"), body)).chain(table.columns().iter().map(filter)).collect()
}

fn reference(kind: &str, name: &str) -> String {
    format!("#/{kind}/{name}")
}
