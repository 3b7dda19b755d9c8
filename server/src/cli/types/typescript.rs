//! Generates the text of `types/database.ts` from the catalog.
//!
//! Reference: `@supabase/postgrest-typegen` 0.2 as postgres-meta 0.99 calls it, with one-to-one relationships detected.
//! [`Form::PostgresMeta098`] follows `src/server/templates/typescript.ts` of postgres-meta up to 0.98, and [`Form::Cli`] the output of
//! the Supabase CLI 3.1. All are formatted with 80 columns and no semicolons.

use std::collections::{BTreeMap, HashMap};

use super::Form;
use super::catalog::{Argument, Catalog, Column, Function, Identity, Kind, Relation, Relationship, Type};
use super::layout::{Member, Ts, member, property, quoted};

/// The part that is the same for every database: `Tables<…>`, `Enums<…>` and so on.
const HELPERS: &str = include_str!("helpers.ts");

const JSON: &str = "export type Json =
  | string
  | number
  | boolean
  | null
  | { [key: string]: Json | undefined }
  | Json[]
";

/// OIDs of json, jsonb and text: an unnamed argument of one of these takes the whole request body.
const WHOLE_BODY_TYPES: [u32; 3] = [114, 3802, 25];

/// Generates the whole file.
pub fn generate(catalog: &Catalog, postgrest_version: &str) -> String {
    let generator = Generator::new(catalog);
    let internal = Member {
        comments: vec![
            "Allows to automatically instantiate createClient with right options",
            "instead of createClient<Database, { PostgrestVersion: 'XX' }>(URL, KEY)",
        ],
        ..Member::new(
            "__InternalSupabase",
            Ts::open(vec![Member::new("PostgrestVersion", Ts::literal(postgrest_version))]),
        )
    };
    let members = (catalog.form != Form::Cli)
        .then_some(internal)
        .into_iter()
        .chain(catalog.schemas.iter().map(|schema| Member::new(schema, generator.schema(schema))));
    let body: String = members.map(|m| member(&m, 2)).collect();
    let helpers = match catalog.form {
        Form::PostgresMeta098 => HELPERS.to_owned(),
        Form::PostgresMeta => newer_helpers("public"),
        Form::Cli => {
            let default = catalog.schemas.iter().find(|schema| *schema == "public").or(catalog.schemas.first());
            newer_helpers(default.map_or("public", String::as_str))
        }
    };
    format!("{JSON}\nexport type Database = {{\n{body}}}\n\n{helpers}\n{}", generator.constants())
}

/// The same with the parentheses of the newer formatter, and with this schema as the default.
fn newer_helpers(schema: &str) -> String {
    let default = format!("[Extract<keyof Database, {}>]", quoted(schema));
    let lines = HELPERS.replace("[Extract<keyof Database, \"public\">]", &default);
    let lines = lines.lines().map(|line| match line.split_once("Name extends ") {
        Some((name, condition)) if condition.ends_with(" extends {") => format!("{name}Name extends ({condition}"),
        _ if line == "    : never = never," => "    : never) = never,".to_owned(),
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

struct Generator<'a> {
    catalog: &'a Catalog,
    types: HashMap<u32, &'a Type>,
    relations: HashMap<u32, &'a Relation>,
}

/// A function with its input arguments.
struct Callable<'a> {
    function: &'a Function,
    inputs: Vec<&'a Argument>,
}

impl<'a> Generator<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            types: catalog.types.iter().map(|t| (t.oid, t)).collect(),
            relations: catalog.relations.iter().map(|r| (r.oid, r)).collect(),
        }
    }

    fn schema(&self, schema: &str) -> Ts {
        let relations = |views: bool| {
            let wanted = self.catalog.relations.iter().filter(move |r| r.schema == schema && r.kind.is_view() == views);
            wanted.map(|r| Member::new(&r.name, self.relation(r))).collect::<Vec<_>>()
        };
        Ts::open(vec![
            Member::new("Tables", or_none(relations(false))),
            Member::new("Views", or_none(relations(true))),
            Member::new("Functions", or_none(self.functions(schema))),
            Member::new("Enums", or_none(self.enums(schema))),
            Member::new("CompositeTypes", or_none(self.composite_types(schema))),
        ])
    }

    fn relation(&self, relation: &Relation) -> Ts {
        let (row, computed) = (self.row(relation), self.computed(relation));
        let names: Vec<Ts> = computed.iter().map(|(name, _)| Ts::literal(name)).collect();
        let fields = computed.into_iter().map(|(name, value)| Member::new(name, nullable(value, true)));
        let mut members = vec![Member::new("Row", Ts::open(row.into_iter().chain(fields).collect()))];
        if self.has_computed_fields() {
            let names = if names.is_empty() { Ts::text("never") } else { Ts::union(names) };
            members.push(Member::new("ComputedFields", names));
        }
        if relation.kind.is_view() {
            let columns = || relation.columns.iter().map(|c| self.view_input(&relation.schema, c)).collect();
            let (inserts, updates) = if self.is_of_typegen() {
                (relation.takes_inserts, relation.takes_updates)
            } else {
                (relation.is_updatable_view, relation.is_updatable_view)
            };
            if inserts {
                members.push(Member::new("Insert", Ts::open(columns())));
            }
            if updates {
                members.push(Member::new("Update", Ts::open(columns())));
            }
        } else {
            let input = |all_optional: bool| {
                let columns = relation.columns.iter().map(|c| self.table_input(&relation.schema, c, all_optional));
                columns.collect::<Vec<_>>()
            };
            members.push(Member::new("Insert", Ts::open(input(false))));
            members.push(Member::new("Update", Ts::open(input(true))));
        }
        members.push(Member::new("Relationships", self.relationships(relation)));
        Ts::open(members)
    }

    fn is_of_typegen(&self) -> bool {
        self.catalog.form.is_of_typegen()
    }

    fn has_computed_fields(&self) -> bool {
        self.catalog.form == Form::Cli
    }

    fn row(&self, relation: &Relation) -> Vec<Member> {
        relation.columns.iter().map(|c| Member::new(&c.name, self.column_type(&relation.schema, c))).collect()
    }

    /// The functions that compute a field of this row, and their result types.
    fn computed(&self, relation: &Relation) -> Vec<(&'a str, Ts)> {
        let mut found: Vec<(&'a str, Ts)> = Vec::new();
        for callable in self.callables(&relation.schema) {
            let function = callable.function;
            let row = match callable.inputs.as_slice() {
                [only] => self.row_type(only.type_oid).map(|row| row.relation),
                _ => None,
            };
            let is_called_alike = || function.arguments_text == relation.name;
            let is_of_row = match self.catalog.form {
                Form::PostgresMeta098 => is_called_alike(),
                Form::PostgresMeta => row.map_or_else(is_called_alike, |row| row == relation.oid),
                Form::Cli => {
                    row == Some(relation.oid)
                        && !relation.columns.iter().any(|column| column.name == function.name)
                        && !found.iter().any(|(name, _)| *name == function.name)
                }
            };
            if is_of_row {
                found.push((&function.name, self.return_type(function)));
            }
        }
        found
    }

    fn column_type(&self, schema: &str, column: &Column) -> Ts {
        let ts = self.plain_column_type(schema, column);
        if self.is_of_typegen() && !column.is_nullable && ts == Ts::text("Json") {
            return Ts::text("NonNullable<Json>");
        }
        nullable(ts, column.is_nullable)
    }

    /// Among types of the same name, one in the column's own schema or in its relation's schema is preferred.
    fn plain_column_type(&self, schema: &str, column: &Column) -> Ts {
        self.named_type(if self.is_of_typegen() { &column.type_schema } else { schema }, &column.type_name)
    }

    fn table_input(&self, schema: &str, column: &Column, all_optional: bool) -> Member {
        if column.identity == Identity::Always || self.is_of_typegen() && column.is_generated {
            return Member::optional(&column.name, Ts::text("never"));
        }
        let may_be_left_out =
            all_optional || column.is_nullable || column.identity != Identity::No || column.has_default;
        let value = self.column_type(schema, column);
        if may_be_left_out { Member::optional(&column.name, value) } else { Member::new(&column.name, value) }
    }

    fn view_input(&self, schema: &str, column: &Column) -> Member {
        let value = if column.is_updatable {
            nullable(self.plain_column_type(schema, column), true)
        } else {
            Ts::text("never")
        };
        Member::optional(&column.name, value)
    }

    fn relationships(&self, relation: &Relation) -> Ts {
        let own = |r: &&Relationship| {
            r.schema == relation.schema && r.relation == relation.name && r.referenced_schema == relation.schema
        };
        let list = |names: &[String]| Ts::Tuple(names.iter().map(|name| Ts::literal(name)).collect());
        let items = self.catalog.relationships.iter().filter(own).map(|r| {
            let one_to_one = Member::new("isOneToOne", Ts::text(r.is_one_to_one.to_string()));
            let members = [
                Some(Member::new("foreignKeyName", Ts::literal(&r.constraint))),
                Some(Member::new("columns", list(&r.columns))),
                Some(one_to_one).filter(|_| self.catalog.tells_one_to_one),
                Some(Member::new("referencedRelation", Ts::literal(&r.referenced_relation))),
                Some(Member::new("referencedColumns", list(&r.referenced_columns))),
            ];
            Ts::open(members.into_iter().flatten().collect())
        });
        Ts::Tuple(items.collect())
    }

    fn enums(&self, schema: &str) -> Vec<Member> {
        self.sorted_types(schema, |t| !t.labels.is_empty())
            .into_iter()
            .map(|t| Member::new(&t.name, labels(t)))
            .collect()
    }

    fn composite_types(&self, schema: &str) -> Vec<Member> {
        let attribute = |(name, oid): &(String, u32)| Member::new(name, nullable(self.type_of(schema, *oid), true));
        self.sorted_types(schema, |t| !t.attributes.is_empty())
            .into_iter()
            .map(|t| Member::new(&t.name, Ts::open(t.attributes.iter().map(attribute).collect())))
            .collect()
    }

    fn sorted_types(&self, schema: &str, wanted: impl Fn(&Type) -> bool) -> Vec<&'a Type> {
        let mut types: Vec<&Type> = self.catalog.types.iter().filter(|t| t.schema == schema && wanted(t)).collect();
        types.sort_by(|a, b| super::order::by_name(&a.name, &b.name));
        types
    }

    fn constants(&self) -> String {
        let schemas = self.catalog.schemas.iter().map(|schema| {
            let enums = self.sorted_types(schema, |t| !t.labels.is_empty());
            let enums: String = enums.iter().map(|t| constant(t)).collect();
            let enums = if enums.is_empty() { "{}".to_owned() } else { format!("{{\n{enums}    }}") };
            format!("  {}: {{\n    Enums: {enums},\n  }},\n", property(schema))
        });
        format!("export const Constants = {{\n{}}} as const\n", schemas.collect::<String>())
    }

    /// The functions of a schema that a request can call, in name order.
    fn callables(&self, schema: &str) -> Vec<Callable<'a>> {
        let own = self.catalog.functions.iter().filter(|f| f.schema == schema);
        own.map(|function| Callable { function, inputs: function.arguments.iter().filter(|a| a.is_input()).collect() })
            .filter(|callable| self.can_be_called(callable))
            .collect()
    }

    fn can_be_called(&self, Callable { inputs, .. }: &Callable<'_>) -> bool {
        let takes_body = |a: &Argument| WHOLE_BODY_TYPES.contains(&a.type_oid);
        let all_named = inputs.iter().all(|a| !a.name.is_empty());
        let unnamed_have_defaults = inputs.iter().all(|a| !a.name.is_empty() || a.has_default && takes_body(a));
        let single = match inputs.as_slice() {
            [only] => takes_body(only) || self.row_type(only.type_oid).is_some(),
            _ => false,
        };
        all_named || unnamed_have_defaults || single
    }

    fn functions(&self, schema: &str) -> Vec<Member> {
        let mut names: Vec<&str> = Vec::new();
        let mut by_name: BTreeMap<&str, Vec<Callable<'_>>> = BTreeMap::new();
        for callable in self.callables(schema) {
            let name = callable.function.name.as_str();
            if !by_name.contains_key(name) {
                names.push(name);
            }
            by_name.entry(name).or_default().push(callable);
        }
        let overloads = names.into_iter().filter_map(|name| Some((name, by_name.remove(name)?)));
        overloads
            .map(|(name, mut overloads)| {
                let text = |c: &Callable<'_>| (c.function.arguments_text.clone(), c.function.result_text.clone());
                overloads.sort_by(|a, b| {
                    let (a, b) = (text(a), text(b));
                    super::order::by_name(&a.0, &b.0).then_with(|| super::order::by_name(&a.1, &b.1))
                });
                let signatures = overloads.iter().map(|c| self.signature(c, &overloads)).collect();
                Member::new(name, Ts::union(signatures))
            })
            .collect()
    }

    fn signature(&self, callable: &Callable<'_>, overloads: &[Callable<'_>]) -> Ts {
        let Callable { function, inputs } = callable;
        let arguments = if inputs.is_empty() {
            Ts::text(if self.is_of_typegen() { "Record<PropertyKey, never>" } else { "never" })
        } else {
            let argument = |a: &&Argument| {
                let value = self.argument_type(function, a);
                if a.has_default { Member::optional(&a.name, value) } else { Member::new(&a.name, value) }
            };
            Ts::fitting(inputs.iter().map(argument).collect())
        };
        let error = self.conflict(callable, overloads).or_else(|| self.unusable_row_function(callable));
        let is_refused = error.is_some();
        let returned = match error {
            Some(message) => {
                Ts::Intersection(Box::new(Ts::open(vec![Member::new("error", Ts::text("true"))])), quoted(&message))
            }
            None => self.return_type(function),
        };
        let target = self.returned_relation(function);
        let many_rows = function.returns_set && function.rows > 1.0;
        let as_list =
            function.returns_set && (many_rows || target.is_none()) && !(self.has_computed_fields() && is_refused);
        let mut members = vec![
            Member::new("Args", arguments),
            Member::new("Returns", if as_list { Ts::array(returned) } else { returned }),
        ];
        members.extend(self.set_options(function, target, many_rows).map(|o| Member::new("SetofOptions", o)));
        Ts::fitting(members)
    }

    fn argument_type(&self, function: &Function, argument: &Argument) -> Ts {
        let plain = self.type_of(&function.schema, argument.type_oid);
        let Some(relation) = self.row_type(argument.type_oid).and_then(|row| self.relations.get(&row.relation)) else {
            return plain;
        };
        let group = if relation.kind.is_view() { "Views" } else { "Tables" };
        let path = format!("Database[{}][\"{group}\"][{}]", quoted(&relation.schema), quoted(&relation.name));
        if !self.has_computed_fields() || argument.name.is_empty() || plain != Ts::text(format!("{path}[\"Row\"]")) {
            return plain;
        }
        Ts::Generic("Omit", vec![plain, Ts::text(format!("{path}[\"ComputedFields\"]"))])
    }

    /// The options that postgrest-js needs to select within the rows that a function returns.
    fn set_options(&self, function: &Function, target: Option<&str>, many_rows: bool) -> Option<Ts> {
        let target = target?;
        let source = match function.arguments.as_slice() {
            [only] => self.row_type(only.type_oid).map(|t| t.format.as_str()),
            _ => None,
        };
        Some(Ts::open(vec![
            Member::new("from", Ts::literal(source.unwrap_or("*"))),
            Member::new("to", Ts::literal(target)),
            Member::new("isOneToOne", Ts::text((!many_rows).to_string())),
            Member::new("isSetofReturn", Ts::text(function.returns_set.to_string())),
        ]))
    }

    fn return_type(&self, function: &Function) -> Ts {
        let columns: Vec<Member> = function
            .arguments
            .iter()
            .filter(|a| a.mode == 't')
            .map(|a| Member::new(&a.name, self.type_of(&function.schema, a.type_oid)))
            .collect();
        if !columns.is_empty() {
            return Ts::open(columns);
        }
        match self.relations.get(&function.returns_relation) {
            Some(relation) if relation.schema == function.schema => {
                let columns = relation.columns.iter();
                Ts::open(columns.map(|c| Member::new(&c.name, self.column_type(&function.schema, c))).collect())
            }
            _ => self.type_of(&function.schema, function.returns),
        }
    }

    /// Name of the relation or composite type whose rows a function returns.
    fn returned_relation(&self, function: &Function) -> Option<&'a str> {
        if function.returns_relation == 0 {
            return None;
        }
        self.relations
            .get(&function.returns_relation)
            .map(|r| r.name.as_str())
            .or_else(|| self.row_type(function.returns).map(|t| t.name.as_str()))
    }

    /// The type with this OID if it is the row type of a relation or a composite type.
    fn row_type(&self, oid: u32) -> Option<&'a Type> {
        self.types.get(&oid).copied().filter(|t| t.relation != 0)
    }

    /// A function with one unnamed row argument that does not return a row computes a field and cannot be called directly.
    fn unusable_row_function(&self, Callable { function, inputs }: &Callable<'_>) -> Option<String> {
        let [only] = inputs.as_slice() else { return None };
        let unusable = only.name.is_empty()
            && self.row_type(only.type_oid).is_some()
            && (self.has_computed_fields() || self.returned_relation(function).is_none());
        unusable.then(|| {
            format!(
                "the function {}.{} with parameter or with a single unnamed json/jsonb parameter, but no matches were \
                 found in the schema cache",
                function.schema, function.name
            )
        })
    }

    /// An error for overloads that a request cannot tell apart.
    fn conflict(&self, Callable { function, inputs }: &Callable<'_>, overloads: &[Callable<'_>]) -> Option<String> {
        let full_name = format!("{}.{}", function.schema, function.name);
        let type_name = |oid: u32| self.types.get(&oid).map_or("unknown", |t| t.name.as_str());
        let others = || overloads.iter().filter(|c| !std::ptr::eq(c.function, *function));
        let candidates = match inputs.as_slice() {
            [] => {
                let rival =
                    others().find(|c| matches!(c.inputs.as_slice(), [a] if a.name.is_empty() && a.has_default))?;
                format!("{full_name}(), {full_name}( => {})", type_name(rival.function.returns))
            }
            [only] if !only.name.is_empty() => {
                let mut types: Vec<u32> = others()
                    .filter_map(|c| match c.inputs.as_slice() {
                        [a] if a.name == only.name && a.type_oid != only.type_oid => Some(a.type_oid),
                        _ => None,
                    })
                    .collect();
                if types.is_empty() {
                    return None;
                }
                types.push(only.type_oid);
                types.sort_unstable();
                let signature = |oid: &u32| format!("{full_name}({} => {})", only.name, type_name(*oid));
                types.iter().map(signature).collect::<Vec<_>>().join(", ")
            }
            _ => return None,
        };
        Some(format!(
            "Could not choose the best candidate function between: {candidates}. Try renaming the parameters or the \
             function itself in the database so function overloading can be resolved"
        ))
    }

    fn type_of(&self, schema: &str, oid: u32) -> Ts {
        let named = |t: &&Type| self.named_type(if self.is_of_typegen() { &t.schema } else { schema }, &t.name);
        self.types.get(&oid).map_or_else(|| Ts::text("unknown"), named)
    }

    /// The TypeScript type for a `pg_type` name, resolved from `schema`.
    fn named_type(&self, schema: &str, name: &str) -> Ts {
        let plain = match name {
            "bool" => "boolean",
            "int2" | "int4" | "int8" | "float4" | "float8" | "numeric" => "number",
            "bytea" | "bpchar" | "varchar" | "date" | "text" | "citext" | "time" | "timetz" | "timestamp"
            | "timestamptz" | "uuid" | "vector" | "interval" => "string",
            "json" | "jsonb" => "Json",
            "void" => "undefined",
            "record" => "Record<string, unknown>",
            _ => return self.named_by_database(schema, name),
        };
        Ts::text(plain)
    }

    fn named_by_database(&self, schema: &str, name: &str) -> Ts {
        if let Some(element) = name.strip_prefix('_') {
            return Ts::array(self.named_type(schema, element));
        }
        let path = |schema: &str, kind: &str, name: &str| {
            format!("Database[{}][\"{kind}\"][{}]", quoted(schema), quoted(name))
        };
        let is_shown = |schema: &str| self.catalog.schemas.iter().any(|s| s == schema);
        if let Some(t) = prefer(schema, self.catalog.types.iter().filter(|t| t.name == name && !t.labels.is_empty())) {
            return if is_shown(&t.schema) { Ts::text(path(&t.schema, "Enums", name)) } else { labels(t) };
        }
        let composite = self.catalog.types.iter().filter(|t| t.name == name && !t.attributes.is_empty());
        if let Some(t) = prefer(schema, composite) {
            let shown = is_shown(&t.schema);
            return Ts::text(if shown { path(&t.schema, "CompositeTypes", name) } else { "unknown".to_owned() });
        }
        let relation = self.relation_named(schema, name);
        let group = |kind: Kind| if kind.is_view() { "Views" } else { "Tables" };
        relation.map_or_else(
            || Ts::text("unknown"),
            |r| Ts::text(format!("{}[\"Row\"]", path(&r.schema, group(r.kind), name))),
        )
    }

    /// The relation of this name whose row a value holds: typegen looks for one of any kind in `schema` first, its forerunner for a
    /// table in any schema before a view.
    fn relation_named(&self, schema: &str, name: &str) -> Option<&'a Relation> {
        let of_kind = |kind: Kind| self.catalog.relations.iter().filter(move |r| r.name == name && r.kind == kind);
        if self.is_of_typegen() {
            let kinds = [Kind::Table, Kind::ForeignTable, Kind::View, Kind::MaterializedView];
            return prefer(schema, kinds.into_iter().flat_map(of_kind));
        }
        [Kind::Table, Kind::View].into_iter().find_map(|kind| prefer(schema, of_kind(kind)))
    }
}

trait InSchema {
    fn schema(&self) -> &str;
}

impl InSchema for Type {
    fn schema(&self) -> &str {
        &self.schema
    }
}

impl InSchema for Relation {
    fn schema(&self) -> &str {
        &self.schema
    }
}

/// The candidate in `schema`, or else the first.
fn prefer<'a, T: InSchema>(schema: &str, candidates: impl Iterator<Item = &'a T>) -> Option<&'a T> {
    let candidates: Vec<&T> = candidates.collect();
    candidates.iter().find(|c| c.schema() == schema).or_else(|| candidates.first()).copied()
}

fn labels(enumeration: &Type) -> Ts {
    Ts::union(enumeration.labels.iter().map(|label| Ts::literal(label)).collect())
}

/// `unknown` includes null already.
fn nullable(ts: Ts, is_nullable: bool) -> Ts {
    if !is_nullable || ts == Ts::text("unknown") { ts } else { Ts::union(vec![ts, Ts::text("null")]) }
}

/// An empty group gets a type whose indexing yields nothing.
fn or_none(members: Vec<Member>) -> Ts {
    if members.is_empty() {
        return Ts::open(vec![Member {
            key: "[_ in never]".to_owned(),
            value: Ts::text("never"),
            comments: Vec::new(),
        }]);
    }
    Ts::open(members)
}

/// `name: ["a", "b"],` in `Constants`, one label per line if they do not fit.
fn constant(enumeration: &Type) -> String {
    let list = Ts::Tuple(enumeration.labels.iter().map(|label| Ts::literal(label)).collect());
    // The trailing comma counts towards the line width.
    let key = property(&enumeration.name);
    let flat = enumeration.labels.iter().map(|label| quoted(label)).collect::<Vec<_>>().join(", ");
    if 6 + key.chars().count() + 2 + flat.chars().count() + 3 <= 80 {
        return format!("      {key}: [{flat}],\n");
    }
    let lines = member(&Member { key, value: list, comments: Vec::new() }, 6);
    format!("{},\n", lines.trim_end_matches('\n'))
}
