//! Generates Pydantic models from the catalog.
//!
//! Reference: postgres-meta 0.99, `@supabase/postgrest-typegen` `generation/python.ts`. Everything is sorted by schema and name, except
//! the attributes of composite types. Enums of all schemas are included.

use std::collections::HashMap;

use super::catalog::{Catalog, Column, Identity, Kind, Relation, Type};
use super::pascal;

const HEAD: &str = "from __future__ import annotations

import datetime
import uuid
from typing import (
    Annotated,
    Any,
    List,
    Literal,
    Optional,
    TypedDict,
)
from typing_extensions import NotRequired, TypeAlias

from pydantic import BaseModel, Field, JsonValue";

/// The whole file.
pub fn generate(catalog: &Catalog) -> String {
    let names = Names::of(catalog);
    let of_kind = |kind: Kind, make: &dyn Fn(&Relation) -> Vec<String>| {
        super::of_kind(catalog, kind).into_iter().flat_map(make).collect::<Vec<_>>().join("\n\n")
    };
    let tables = of_kind(Kind::Table, &|table| {
        vec![names.model(table), names.dictionary(table, false), names.dictionary(table, true)]
    });
    let views = of_kind(Kind::View, &|view| vec![names.model(view)]);
    let materialized = of_kind(Kind::MaterializedView, &|view| vec![names.model(view)]);
    let composites = super::composites(catalog).map(|composite| {
        let attributes = composite.attributes.iter().map(|(name, oid)| {
            let kind = catalog.types.iter().find(|t| t.oid == *oid).map_or("", |t| t.name.as_str());
            // Attributes have no NOT NULL.
            format!("    {}: Optional[{}] = Field(alias={})", attribute(name), names.type_of(kind), super::json(name))
        });
        class(&format!("{}(BaseModel)", class_name(&composite.schema, &composite.name)), attributes.collect())
    });
    let composites = composites.collect::<Vec<_>>().join("\n\n");
    let enums: Vec<String> = names.enums.iter().map(|t| alias(t)).collect();
    let parts = [HEAD.to_owned(), enums.join("\n\n"), tables, views, materialized, composites];
    parts.join("\n\n").trim_end().to_owned() + "\n"
}

/// Types by name. Of two types with the same name the later one wins, as upstream.
struct Names<'a> {
    all: HashMap<&'a str, &'a Type>,
    enums: Vec<&'a Type>,
}

impl<'a> Names<'a> {
    fn of(catalog: &'a Catalog) -> Self {
        let mut enums: Vec<&Type> = Vec::new();
        let types = super::sorted_types(catalog);
        for t in types.iter().copied().filter(|t| !t.labels.is_empty()) {
            match enums.iter_mut().find(|known| known.name == t.name) {
                Some(known) => *known = t,
                None => enums.push(t),
            }
        }
        Self { all: types.into_iter().map(|t| (t.name.as_str(), t)).collect(), enums }
    }

    fn type_of(&self, name: &str) -> String {
        if let Some(element) = name.strip_prefix('_') {
            return format!("List[{}]", self.type_of(element));
        }
        if let Some(t) = self.enums.iter().find(|t| t.name == name) {
            return class_name(&t.schema, &t.name);
        }
        match (plain(name), self.all.get(name)) {
            (Some(plain), _) => plain.to_owned(),
            (None, Some(t)) => class_name(&t.schema, &t.name),
            (None, None) => "Any".to_owned(),
        }
    }

    fn column_type(&self, column: &Column) -> String {
        let plain = self.type_of(&column.type_name);
        if column.is_nullable { format!("Optional[{plain}]") } else { plain }
    }

    /// The model of a row.
    fn model(&self, relation: &Relation) -> String {
        let fields = relation.columns.iter().map(|column| {
            let (name, kind) = (attribute(&column.name), self.column_type(column));
            format!("    {name}: {kind} = Field(alias={})", super::json(&column.name))
        });
        class(&format!("{}(BaseModel)", class_name(&relation.schema, &relation.name)), fields.collect())
    }

    /// The dictionary for inserts, or for updates with `is_update`.
    fn dictionary(&self, relation: &Relation, is_update: bool) -> String {
        let fields = relation.columns.iter().map(|column| {
            let value = format!("Annotated[{}, Field(alias={})]", self.column_type(column), super::json(&column.name));
            let may_be_missing =
                is_update || column.is_nullable || column.identity != Identity::No || column.has_default;
            let value = if may_be_missing { format!("NotRequired[{value}]") } else { value };
            format!("    {}: {value}", attribute(&column.name))
        });
        let operation = if is_update { "Update" } else { "Insert" };
        class(&format!("{}{operation}(TypedDict)", class_name(&relation.schema, &relation.name)), fields.collect())
    }
}

fn class(head: &str, lines: Vec<String>) -> String {
    let body = if lines.is_empty() { "    pass".to_owned() } else { lines.join("\n") };
    format!("class {head}:\n{body}")
}

fn alias(enumeration: &Type) -> String {
    let labels: Vec<String> = enumeration.labels.iter().map(|label| super::json(label)).collect();
    let name = class_name(&enumeration.schema, &enumeration.name);
    format!("{name}: TypeAlias = Literal[{}]", labels.join(", "))
}

fn class_name(schema: &str, name: &str) -> String {
    pascal(schema) + &pascal(name)
}

/// Snake case: other characters than ASCII letters and digits become one underscore.
fn attribute(name: &str) -> String {
    let mut attribute = String::new();
    let mut is_between = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            attribute.push(c.to_ascii_lowercase());
        } else if !is_between {
            attribute.push('_');
        }
        is_between = !c.is_ascii_alphanumeric();
    }
    attribute
}

/// The Python type for a built-in type.
fn plain(name: &str) -> Option<&'static str> {
    Some(match name {
        "bool" => "bool",
        "int2" | "int4" | "int8" => "int",
        "float4" | "float8" | "numeric" => "float",
        "bytea" => "bytes",
        "bpchar" | "varchar" | "string" | "text" | "citext" | "interval" => "str",
        "date" => "datetime.date",
        "time" | "timetz" => "datetime.time",
        "timestamp" | "timestamptz" => "datetime.datetime",
        "uuid" => "uuid.UUID",
        "vector" => "list[Any]",
        "json" | "jsonb" => "JsonValue",
        "void" => "None",
        "record" => "dict[str, Any]",
        _ if super::is_range(name) => "str",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::catalog;
    use super::*;

    #[test]
    fn models_have_the_columns_to_select_insert_and_update() {
        let expected = r#"

PublicMood: TypeAlias = Literal["calm", "very busy"]

class PublicEmpty(BaseModel):
    pass

class PublicEmptyInsert(TypedDict):
    pass

class PublicEmptyUpdate(TypedDict):
    pass

class PublicTasks(BaseModel):
    done: bool = Field(alias="done")
    fr_om: PgCatalogInet = Field(alias="fr`om")
    mood: PublicMood = Field(alias="mood")
    moods: List[PublicMood] = Field(alias="moods")
    owner: Optional[uuid.UUID] = Field(alias="owner")
    tags: Optional[List[str]] = Field(alias="tags")
    task_id: int = Field(alias="task_id")
    where: PublicPlace = Field(alias="where")

class PublicTasksInsert(TypedDict):
    done: NotRequired[Annotated[bool, Field(alias="done")]]
    fr_om: Annotated[PgCatalogInet, Field(alias="fr`om")]
    mood: Annotated[PublicMood, Field(alias="mood")]
    moods: Annotated[List[PublicMood], Field(alias="moods")]
    owner: NotRequired[Annotated[Optional[uuid.UUID], Field(alias="owner")]]
    tags: NotRequired[Annotated[Optional[List[str]], Field(alias="tags")]]
    task_id: NotRequired[Annotated[int, Field(alias="task_id")]]
    where: Annotated[PublicPlace, Field(alias="where")]

class PublicTasksUpdate(TypedDict):
    done: NotRequired[Annotated[bool, Field(alias="done")]]
    fr_om: NotRequired[Annotated[PgCatalogInet, Field(alias="fr`om")]]
    mood: NotRequired[Annotated[PublicMood, Field(alias="mood")]]
    moods: NotRequired[Annotated[List[PublicMood], Field(alias="moods")]]
    owner: NotRequired[Annotated[Optional[uuid.UUID], Field(alias="owner")]]
    tags: NotRequired[Annotated[Optional[List[str]], Field(alias="tags")]]
    task_id: NotRequired[Annotated[int, Field(alias="task_id")]]
    where: NotRequired[Annotated[PublicPlace, Field(alias="where")]]

class PublicAView(BaseModel):
    n: Optional[float] = Field(alias="n")

class PublicCounts(BaseModel):
    default: int = Field(alias="default")

class PublicPlace(BaseModel):
    city: Optional[str] = Field(alias="city")
    post_code: Optional[int] = Field(alias="post-code")
"#;
        let made = generate(&catalog());
        assert_eq!(made.strip_prefix(HEAD), Some(expected));
    }

    #[test]
    fn attributes_are_in_snake_case() {
        for (name, expected) in
            [("Pokedex", "pokedex"), ("victory-road", "victory_road"), ("a  b", "a_b"), ("_x", "_x")]
        {
            assert_eq!(attribute(name), expected, "{name}");
        }
    }
}
