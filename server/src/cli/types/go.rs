//! Generates Go structs from the catalog.
//!
//! Reference: postgres-meta 0.99, `@supabase/postgrest-typegen` `generation/go.ts`. Everything is sorted by schema and name, except
//! the attributes of composite types.

use super::catalog::{Catalog, Column, Identity, Kind, Relation};
use super::pascal;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Select,
    Insert,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Select => "Select",
            Self::Insert => "Insert",
            Self::Update => "Update",
        }
    }

    /// Whether the value is optional.
    fn takes_nothing(self, column: &Column) -> bool {
        match self {
            Self::Select => column.is_nullable,
            Self::Insert => {
                column.is_nullable || column.identity != Identity::No || column.is_generated || column.has_default
            }
            Self::Update => true,
        }
    }
}

/// The whole file.
pub fn generate(catalog: &Catalog) -> String {
    let of_kind = |kind: Kind, operations: &[Operation]| {
        let relations = super::of_kind(catalog, kind);
        let structs =
            relations.iter().flat_map(|relation| operations.iter().map(move |o| of_relation(catalog, relation, *o)));
        structs.collect::<Vec<_>>().join("\n\n")
    };
    let tables = of_kind(Kind::Table, &[Operation::Select, Operation::Insert, Operation::Update]);
    let views = of_kind(Kind::View, &[Operation::Select]);
    let materialized = of_kind(Kind::MaterializedView, &[Operation::Select]);
    let composites = super::composites(catalog).map(|composite| {
        let fields = composite.attributes.iter().map(|(name, oid)| {
            // The lookup uses the printed name (`integer`, not `int4`), as upstream does.
            let format = catalog.types.iter().find(|t| t.oid == *oid).map_or("", |t| t.format.as_str());
            (name.as_str(), plain(format).unwrap_or("interface{}").to_owned())
        });
        structure(&format!("{}{}", pascal(&composite.schema), pascal(&composite.name)), fields.collect())
    });
    let composites = composites.collect::<Vec<_>>().join("\n\n");
    let text = format!("package database\n\n{tables}\n\n{views}\n\n{materialized}\n\n{composites}");
    text.trim_end().to_owned() + "\n"
}

fn of_relation(catalog: &Catalog, relation: &Relation, operation: Operation) -> String {
    let name = format!("{}{}{}", pascal(&relation.schema), pascal(&relation.name), operation.name());
    let fields = relation
        .columns
        .iter()
        .map(|column| (column.name.as_str(), type_of(catalog, &column.type_name, operation.takes_nothing(column))));
    structure(&name, fields.collect())
}

/// A struct with aligned fields, as gofmt formats it.
fn structure(name: &str, fields: Vec<(&str, String)>) -> String {
    let fields: Vec<(String, String, &str)> =
        fields.into_iter().map(|(name, kind)| (pascal(name), kind, name)).collect();
    let width = |of: fn(&(String, String, &str)) -> usize| fields.iter().map(of).max().unwrap_or(0);
    let (names, kinds) = (width(|field| field.0.len()), width(|field| field.1.len()));
    let lines: Vec<String> =
        fields.iter().map(|(field, kind, name)| format!("  {field:<names$} {kind:<kinds$} {}", tag(name))).collect();
    format!("type {name} struct {{\n{}\n}}", lines.join("\n"))
}

/// The struct tag that names a field in JSON. A raw string cannot contain a backtick.
fn tag(name: &str) -> String {
    let tag = format!("json:{}", super::json(name));
    if tag.contains('`') { super::json(&tag) } else { format!("`{tag}`") }
}

fn type_of(catalog: &Catalog, name: &str, is_nullable: bool) -> String {
    let has = |wanted: fn(&super::catalog::Type) -> bool| catalog.types.iter().any(|t| t.name == name && wanted(t));
    let known = if has(|t| !t.labels.is_empty()) { Some("string") } else { plain(name) };
    if let Some(known) = known {
        // These can be nil already.
        let is_nil = matches!(known, "[]byte" | "interface{}" | "map[string]interface{}");
        return if is_nullable && !is_nil { format!("*{known}") } else { known.to_owned() };
    }
    if has(|t| !t.attributes.is_empty()) {
        return "map[string]interface{}".to_owned();
    }
    match name.strip_prefix('_') {
        Some(element) => format!("[]{} ", type_of(catalog, element, is_nullable)),
        None => "interface{}".to_owned(),
    }
}

/// The Go type for a built-in type.
fn plain(name: &str) -> Option<&'static str> {
    Some(match name {
        "bool" => "bool",
        "int2" => "int16",
        "int4" => "int32",
        "int8" => "int64",
        "float4" => "float32",
        "float8" | "numeric" => "float64",
        "bytea" => "[]byte",
        "bpchar" | "varchar" | "date" | "text" | "citext" | "time" | "timetz" | "timestamp" | "timestamptz"
        | "interval" | "uuid" | "vector" => "string",
        "json" | "jsonb" | "void" => "interface{}",
        "record" => "map[string]interface{}",
        _ if super::is_range(name) => "string",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::catalog;

    #[test]
    fn structs_have_the_columns_to_select_insert_and_update() {
        let expected = r#"package database

type PublicEmptySelect struct {

}

type PublicEmptyInsert struct {

}

type PublicEmptyUpdate struct {

}

type PublicTasksSelect struct {
  Done   bool                   `json:"done"`
  FrOm   interface{}            "json:\"fr`om\""
  Mood   string                 `json:"mood"`
  Moods  []string               `json:"moods"`
  Owner  *string                `json:"owner"`
  Tags   []*string              `json:"tags"`
  TaskId int64                  `json:"task_id"`
  Where  map[string]interface{} `json:"where"`
}

type PublicTasksInsert struct {
  Done   *bool                  `json:"done"`
  FrOm   interface{}            "json:\"fr`om\""
  Mood   string                 `json:"mood"`
  Moods  []string               `json:"moods"`
  Owner  *string                `json:"owner"`
  Tags   []*string              `json:"tags"`
  TaskId *int64                 `json:"task_id"`
  Where  map[string]interface{} `json:"where"`
}

type PublicTasksUpdate struct {
  Done   *bool                  `json:"done"`
  FrOm   interface{}            "json:\"fr`om\""
  Mood   *string                `json:"mood"`
  Moods  []*string              `json:"moods"`
  Owner  *string                `json:"owner"`
  Tags   []*string              `json:"tags"`
  TaskId *int64                 `json:"task_id"`
  Where  map[string]interface{} `json:"where"`
}

type PublicAViewSelect struct {
  N *float64 `json:"n"`
}

type PublicCountsSelect struct {
  Default int32 `json:"default"`
}

type PublicPlace struct {
  City     string      `json:"city"`
  PostCode interface{} `json:"post-code"`
}
"#;
        assert_eq!(super::generate(&catalog()), expected);
    }
}
