//! Generates Swift structs from the catalog, grouped in an enum per schema.
//!
//! Reference: postgres-meta 0.99, `@supabase/postgrest-typegen` `generation/swift.ts`. Everything is sorted by name.

use super::SwiftAccess;
use super::catalog::{Catalog, Column, Identity, Kind, Relation};
use super::order::by_name;
use super::pascal;

/// Keywords that are quoted. Upstream quotes only these.
const KEYWORDS: [&str; 3] = ["in", "default", "case"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Select,
    Insert,
    Update,
}

/// A member of a struct.
struct Member {
    /// Name in the database.
    raw: String,
    name: String,
    kind: String,
    is_identity: bool,
}

/// The whole file.
pub fn generate(catalog: &Catalog, access: SwiftAccess) -> String {
    let access = match access {
        SwiftAccess::Internal => "internal",
        SwiftAccess::Public => "public",
    };
    let swift = Swift { catalog, access };
    let mut lines = vec!["import Foundation".to_owned(), "import Supabase".to_owned(), String::new()];
    for schema in &catalog.schemas {
        swift.schema(schema, &mut lines);
    }
    lines.join("\n") + "\n"
}

struct Swift<'a> {
    catalog: &'a Catalog,
    access: &'static str,
}

impl Swift<'_> {
    fn schema(&self, schema: &str, lines: &mut Vec<String>) {
        lines.push(format!("{} enum {}Schema {{", self.access, type_name(schema)));
        let mut types: Vec<_> = self.catalog.types.iter().filter(|t| t.schema == schema).collect();
        types.sort_by(|a, b| by_name(&a.name, &b.name));
        for t in types.iter().filter(|t| !t.labels.is_empty()) {
            let cases = t.labels.iter().map(|label| (property(label), label.as_str()));
            self.enumeration(1, &type_name(&t.name), "String, Codable, Hashable, Sendable", cases, lines);
        }
        // Sorted by name already.
        let relations = self.catalog.relations.iter().filter(|relation| relation.schema == schema);
        let (views, tables): (Vec<_>, Vec<_>) = relations.partition(|relation| relation.kind.is_view());
        for table in tables {
            for operation in [Operation::Select, Operation::Insert, Operation::Update] {
                self.relation(table, operation, lines);
            }
        }
        views.iter().for_each(|view| self.relation(view, Operation::Select, lines));
        for t in types.iter().filter(|t| !t.attributes.is_empty()) {
            let members = t.attributes.iter().map(|(name, oid)| {
                let format = self.catalog.types.iter().find(|t| t.oid == *oid).map_or("", |t| t.format.as_str());
                // Upstream writes these in Pascal case.
                Member { raw: name.clone(), name: type_name(name), kind: self.type_of(format), is_identity: false }
            });
            self.structure(&type_name(&t.name), &members.collect::<Vec<_>>(), lines);
        }
        lines.push("}".to_owned());
    }

    fn relation(&self, relation: &Relation, operation: Operation, lines: &mut Vec<String>) {
        let is_optional = |column: &Column| match operation {
            Operation::Select => column.is_nullable,
            Operation::Insert => {
                column.is_nullable || column.identity != Identity::No || column.is_generated || column.has_default
            }
            Operation::Update => true,
        };
        let members = relation.columns.iter().map(|column| Member {
            raw: column.name.clone(),
            name: property(&column.name),
            kind: self.type_of(&column.type_name) + if is_optional(column) { "?" } else { "" },
            is_identity: column.identity != Identity::No,
        });
        let suffix = match operation {
            Operation::Select => "Select",
            Operation::Insert => "Insert",
            Operation::Update => "Update",
        };
        let name = format!("{}{suffix}", type_name(&relation.name));
        self.structure(&name, &members.collect::<Vec<_>>(), lines);
    }

    fn structure(&self, name: &str, members: &[Member], lines: &mut Vec<String>) {
        let access = self.access;
        let identity = members.iter().find(|member| member.is_identity);
        let more = if identity.is_some() { ", Identifiable" } else { "" };
        lines.push(format!("  {access} struct {name}: Codable, Hashable, Sendable{more} {{"));
        if let Some(identity) = identity.filter(|identity| identity.name != "id") {
            lines.push(format!("    {access} var id: {} {{ {} }}", identity.kind, identity.name));
        }
        lines.extend(members.iter().map(|member| format!("    {access} let {}: {}", member.name, member.kind)));
        if !members.is_empty() {
            let cases = members.iter().map(|member| (member.name.clone(), member.raw.as_str()));
            self.enumeration(2, "CodingKeys", "String, CodingKey", cases, lines);
        }
        lines.push("  }".to_owned());
    }

    fn enumeration<'b>(
        &self,
        level: usize,
        name: &str,
        protocols: &str,
        cases: impl Iterator<Item = (String, &'b str)>,
        lines: &mut Vec<String>,
    ) {
        let indent = "  ".repeat(level);
        lines.push(format!("{indent}{} enum {name}: {protocols} {{", self.access));
        lines.extend(cases.map(|(name, raw)| format!("{indent}  case {name} = {}", literal(raw))));
        lines.push(format!("{indent}}}"));
    }

    fn type_of(&self, name: &str) -> String {
        let plain = match name {
            "bool" => "Bool",
            "int2" => "Int16",
            "int4" => "Int32",
            "int8" => "Int64",
            "float4" => "Float",
            "float8" => "Double",
            "numeric" | "decimal" => "Decimal",
            "uuid" => "UUID",
            "bytea" | "bpchar" | "varchar" | "date" | "text" | "citext" | "time" | "timetz" | "timestamp"
            | "timestamptz" | "interval" | "vector" => "String",
            "json" | "jsonb" => "AnyJSON",
            "void" => "Void",
            "record" => "JSONObject",
            _ => return self.named_by_database(name),
        };
        plain.to_owned()
    }

    fn named_by_database(&self, name: &str) -> String {
        if let Some(element) = name.strip_prefix('_') {
            return format!("[{}]", self.type_of(element));
        }
        let is_enum = self.catalog.types.iter().any(|t| t.name == name && !t.labels.is_empty());
        if is_enum {
            return type_name(name);
        }
        // Upstream assumes a struct for every type, even `inet`.
        let is_type = self.catalog.types.iter().any(|t| t.name == name);
        let is_relation = |kind: Kind| matches!(kind, Kind::Table | Kind::View);
        let is_row = self.catalog.relations.iter().any(|r| r.name == name && is_relation(r.kind));
        if is_type || is_row { format!("{}Select", type_name(name)) } else { "AnyJSON".to_owned() }
    }
}

/// A string literal.
fn literal(text: &str) -> String {
    let mut literal = String::from('"');
    for c in text.chars() {
        match c {
            '\\' => literal.push_str("\\\\"),
            '"' => literal.push_str("\\\""),
            '\t' => literal.push_str("\\t"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            c if c.is_ascii_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                literal.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// Like [`pascal`], but keeps a leading underscore.
fn type_name(name: &str) -> String {
    match name.strip_prefix('_') {
        Some(rest) => format!("_{}", pascal(rest)),
        None => pascal(name),
    }
}

/// Camel case: `victory-road` becomes `victoryRoad`. Each word is converted to lower case first.
fn property(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase);
    let words = words.enumerate().map(|(place, word)| if place == 0 { word } else { pascal(&word) });
    let property: String = words.collect();
    if KEYWORDS.contains(&property.as_str()) { format!("`{property}`") } else { property }
}

#[cfg(test)]
mod tests {
    use super::super::testing::catalog;
    use super::*;

    #[test]
    fn structs_have_the_columns_to_select_insert_and_update() {
        let made = generate(&catalog(), SwiftAccess::Internal);
        let begin = r#"import Foundation
import Supabase

internal enum PublicSchema {
  internal enum Mood: String, Codable, Hashable, Sendable {
    case calm = "calm"
    case veryBusy = "very busy"
  }
  internal struct EmptySelect: Codable, Hashable, Sendable {
  }
  internal struct EmptyInsert: Codable, Hashable, Sendable {
  }
  internal struct EmptyUpdate: Codable, Hashable, Sendable {
  }
  internal struct FarAwaySelect: Codable, Hashable, Sendable {
    internal let id: String
    internal enum CodingKeys: String, CodingKey {
      case id = "id"
    }
  }
"#;
        assert!(made.starts_with(begin), "{made}");
        let tasks = r#"
  internal struct TasksInsert: Codable, Hashable, Sendable, Identifiable {
    internal var id: Int64? { taskId }
    internal let done: Bool?
    internal let frOm: InetSelect
    internal let mood: Mood
    internal let moods: [Mood]
    internal let owner: UUID?
    internal let tags: [String]?
    internal let taskId: Int64?
    internal let `where`: PlaceSelect
"#
        .replace("`where`", "where");
        assert!(made.contains(&tasks), "{made}");
        let end = r#"
  internal struct AViewSelect: Codable, Hashable, Sendable {
    internal let n: Decimal?
    internal enum CodingKeys: String, CodingKey {
      case n = "n"
    }
  }
  internal struct CountsSelect: Codable, Hashable, Sendable {
    internal let `default`: Int32
    internal enum CodingKeys: String, CodingKey {
      case `default` = "default"
    }
  }
  internal struct Place: Codable, Hashable, Sendable {
    internal let City: String
    internal let PostCode: AnyJSON
    internal enum CodingKeys: String, CodingKey {
      case City = "city"
      case PostCode = "post-code"
    }
  }
}
"#;
        assert!(made.ends_with(end), "{made}");
        assert!(generate(&catalog(), SwiftAccess::Public).contains("\npublic enum PublicSchema {\n  public enum Mood"));
    }

    #[test]
    fn literals_are_escaped() {
        assert_eq!(literal("say \"no\"\\(x)\n\u{1}"), r#""say \"no\"\\(x)\n\u{1}""#);
    }

    #[test]
    fn names_are_in_camel_case() {
        for (name, expected) in
            [("pokemon_center", "pokemonCenter"), ("Case", "`case`"), ("userID", "userid"), ("_a", "A")]
        {
            assert_eq!(property(name), expected, "{name}");
        }
        assert_eq!((type_name("_key_id_context"), type_name("a__b")), ("_KeyIdContext".to_owned(), "AB".to_owned()));
    }
}
