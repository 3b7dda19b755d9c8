//! The parts of a database's catalog that the type generator needs.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Error;

use crate::db::Client;
use crate::schema_cache::introspect::{Pace, Scope, load};
use crate::schema_cache::{Cardinality, Relationship as Detected};

use super::order::by_name;
use super::{Form, not_null};

type Oid = u32;

/// A table or view with its columns in name order.
#[derive(Debug)]
pub struct Relation {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub kind: Kind,
    /// A view that accepts inserts and updates.
    pub is_updatable_view: bool,
    /// A view that accepts inserts, including through triggers and rules.
    pub takes_inserts: bool,
    pub takes_updates: bool,
    pub columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Table,
    ForeignTable,
    View,
    MaterializedView,
}

impl Kind {
    pub fn is_view(self) -> bool {
        matches!(self, Self::View | Self::MaterializedView)
    }
}

#[derive(Debug)]
pub struct Column {
    pub name: String,
    /// As in `pg_type.typname`; a domain counts as its base type.
    pub type_name: String,
    pub type_schema: String,
    pub is_nullable: bool,
    pub is_generated: bool,
    pub has_default: bool,
    pub identity: Identity,
    pub is_updatable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    No,
    ByDefault,
    Always,
}

#[derive(Debug)]
pub struct Type {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// As PostgreSQL prints it, without the schema if it is on the search path.
    pub format: String,
    /// The relation whose row type it is; 0 if none.
    pub relation: Oid,
    pub labels: Vec<String>,
    pub attributes: Vec<(String, Oid)>,
}

#[derive(Debug)]
pub struct Function {
    pub schema: String,
    pub name: String,
    /// The argument list as PostgreSQL prints it.
    pub arguments_text: String,
    pub result_text: String,
    pub returns: Oid,
    /// The relation whose rows it returns; 0 if none.
    pub returns_relation: Oid,
    pub returns_set: bool,
    /// The planner's row estimate.
    pub rows: f64,
    /// In name order.
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug)]
pub struct Argument {
    /// PostgreSQL's letter: `i`n, `o`ut, `b`oth, `v`ariadic, `t`able.
    pub mode: char,
    pub name: String,
    pub type_oid: Oid,
    pub has_default: bool,
}

impl Argument {
    pub fn is_input(&self) -> bool {
        matches!(self.mode, 'i' | 'b' | 'v')
    }
}

/// A foreign key seen from the referencing relation, followed through views on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relationship {
    pub schema: String,
    pub relation: String,
    pub is_of_view: bool,
    pub constraint: String,
    pub columns: Vec<String>,
    pub is_one_to_one: bool,
    pub referenced_schema: String,
    pub referenced_relation: String,
    pub referenced_columns: Vec<String>,
}

/// What to generate.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub schemas: Vec<String>,
    pub form: Form,
    /// Also relationships that views show of tables in other schemas, as the REST API sees them.
    pub has_all_relationships: bool,
    /// Whether the types tell which relationships are one to one. Clients of PostgREST 9 and older do not know of it.
    pub tells_one_to_one: bool,
}

#[derive(Debug)]
pub struct Catalog {
    pub form: Form,
    pub tells_one_to_one: bool,
    /// The wanted schemas that exist, in name order.
    pub schemas: Vec<String>,
    pub relations: Vec<Relation>,
    /// Types of all schemas.
    pub types: Vec<Type>,
    pub functions: Vec<Function>,
    pub relationships: Vec<Relationship>,
}

impl Catalog {
    pub async fn load(client: &Client, wanted: &Wanted) -> Result<Self, Error> {
        let Wanted { schemas: wanted, form, has_all_relationships, tells_one_to_one } = wanted;
        let mut relationships = relationships(client, wanted).await?;
        if !has_all_relationships {
            let through = form.passes_through(wanted);
            let shown: HashSet<(String, String, String)> = client
                .query(include_str!("view_keys.sql"), &[&wanted, &through, &(*form == Form::Cli)])
                .await?
                .iter()
                .map(|row| (row.get(0), row.get(1), row.get(2)))
                .collect();
            relationships.retain(|r| {
                !r.is_of_view || shown.contains(&(r.schema.clone(), r.relation.clone(), r.constraint.clone()))
            });
        }
        client.batch_execute("set search_path = public, extensions").await?;
        let mut schemas: Vec<String> = client
            .query("select nspname::text from pg_catalog.pg_namespace where nspname = any ($1)", &[&wanted])
            .await?
            .iter()
            .map(|row| row.get(0))
            .collect();
        schemas.sort_by(|a, b| by_name(a, b));
        Ok(Self {
            form: *form,
            tells_one_to_one: *tells_one_to_one,
            relations: relations(client, wanted, *form).await?,
            types: types(client, *form).await?,
            functions: functions(client, wanted).await?,
            schemas,
            relationships,
        })
    }
}

async fn relations(client: &Client, wanted: &[String], form: Form) -> Result<Vec<Relation>, Error> {
    let not_null = match form {
        Form::PostgresMeta | Form::PostgresMeta098 => HashSet::new(),
        Form::Cli => not_null::view_columns(client).await?,
    };
    let mut relations: HashMap<Oid, Relation> = HashMap::new();
    for row in client.query(include_str!("tables.sql"), &[&wanted]).await? {
        let oid = row.get(0);
        let relation = relations.entry(oid).or_insert_with(|| Relation {
            oid,
            schema: row.get(1),
            name: row.get(2),
            kind: match row.get::<_, &str>(3) {
                "f" => Kind::ForeignTable,
                "v" => Kind::View,
                "m" => Kind::MaterializedView,
                _ => Kind::Table,
            },
            is_updatable_view: row.get(4),
            takes_inserts: row.get(14),
            takes_updates: row.get(15),
            columns: Vec::new(),
        });
        // A relation without columns still has one row, with null.
        let Some(name) = row.get::<_, Option<String>>(5) else { continue };
        let is_view_of_cli = form == Form::Cli && relation.kind.is_view();
        let is_proven = is_view_of_cli && (not_null.contains(&(oid, row.get(11))) || row.get(17));
        relation.columns.push(Column {
            name,
            type_name: row.get(6),
            type_schema: row.get(12),
            is_nullable: row.get::<_, bool>(7) && !is_proven,
            is_generated: row.get(13),
            has_default: row.get(8),
            identity: match row.get::<_, &str>(9) {
                "a" => Identity::Always,
                "d" => Identity::ByDefault,
                _ => Identity::No,
            },
            is_updatable: row.get(10) || form.is_of_typegen() && row.get(16),
        });
    }
    let mut relations: Vec<Relation> = relations.into_values().collect();
    relations.sort_by(|a, b| by_name(&a.name, &b.name).then_with(|| by_name(&a.schema, &b.schema)));
    for relation in &mut relations {
        relation.columns.sort_by(|a, b| by_name(&a.name, &b.name));
    }
    Ok(relations)
}

async fn types(client: &Client, form: Form) -> Result<Vec<Type>, Error> {
    let rows = client.query(include_str!("types.sql"), &[&form.is_of_typegen()]).await?;
    Ok(rows
        .iter()
        .map(|row| Type {
            oid: row.get(0),
            schema: row.get(1),
            name: row.get(2),
            format: row.get(3),
            relation: row.get(4),
            labels: row.get(5),
            attributes: std::iter::zip(row.get::<_, Vec<String>>(6), row.get::<_, Vec<Oid>>(7)).collect(),
        })
        .collect())
}

async fn functions(client: &Client, wanted: &[String]) -> Result<Vec<Function>, Error> {
    let rows = client.query(include_str!("functions.sql"), &[&wanted]).await?;
    let functions = rows.iter().map(|row| {
        let inputs: i32 = row.get(11);
        let defaults: i32 = row.get(12);
        let types: Vec<Oid> = row.get(10);
        let mut arguments: Vec<Argument> = types
            .iter()
            .zip(row.get::<_, Vec<String>>(8))
            .zip(row.get::<_, Vec<String>>(9))
            .enumerate()
            .map(|(position, ((type_oid, mode), name))| {
                let position = i32::try_from(position).unwrap_or(i32::MAX);
                Argument {
                    mode: mode.chars().next().unwrap_or('i'),
                    name,
                    type_oid: *type_oid,
                    has_default: position >= inputs - defaults && position < inputs,
                }
            })
            .collect();
        arguments.sort_by(|a, b| by_name(&a.name, &b.name));
        Function {
            schema: row.get(0),
            name: row.get(1),
            arguments_text: row.get(2),
            returns: row.get(3),
            result_text: row.get(4),
            returns_relation: row.get(5),
            returns_set: row.get(6),
            rows: row.get(7),
            arguments,
        }
    });
    let mut functions: Vec<Function> = functions.collect();
    functions.sort_by(|a, b| by_name(&a.name, &b.name));
    Ok(functions)
}

/// Foreign keys from the referencing side, in the generator's order.
async fn relationships(client: &Client, wanted: &[String]) -> Result<Vec<Relationship>, Error> {
    // The generator follows keys through views of every schema, unlike the REST server.
    let all = client
        .query(
            "select nspname::text from pg_catalog.pg_namespace where nspname !~ '^pg_' and nspname <> all ($1)",
            &[&wanted],
        )
        .await?;
    let others = all.iter().map(|row| row.get(0)).filter(|name| name != "information_schema").collect();
    let scope = Scope { schemas: wanted.to_vec(), extra_search_path: others, hoisted_settings: Vec::new() };
    let cache = load(client, None, &scope, Pace::AtOnce).await?;
    let mut found: Vec<Relationship> = cache
        .relationships()
        .filter_map(|relationship| {
            let Detected::Detected { origin, target, cardinality, origin_is_view, .. } = &**relationship else {
                return None;
            };
            let (constraint, pairs, is_one_to_one) = match cardinality {
                Cardinality::ManyToOne { constraint, columns } => (constraint, columns, false),
                Cardinality::OneToOne { constraint, columns, is_parent: false } => (constraint, columns, true),
                Cardinality::OneToOne { is_parent: true, .. }
                | Cardinality::OneToMany { .. }
                | Cardinality::ManyToMany(_) => return None,
            };
            Some(Relationship {
                schema: origin.schema.to_string(),
                relation: origin.name.to_string(),
                is_of_view: *origin_is_view,
                constraint: constraint.to_string(),
                columns: pairs.iter().map(|(own, _)| own.to_string()).collect(),
                is_one_to_one,
                referenced_schema: target.schema.to_string(),
                referenced_relation: target.name.to_string(),
                referenced_columns: pairs.iter().map(|(_, other)| other.to_string()).collect(),
            })
        })
        .collect();
    // Lists of columns are sorted as their JSON text is.
    let list = |columns: &[String]| serde_json::Value::from(columns).to_string();
    found.sort_by(|a, b| {
        by_name(&a.constraint, &b.constraint)
            .then_with(|| by_name(&a.referenced_relation, &b.referenced_relation))
            .then_with(|| by_name(&list(&a.referenced_columns), &list(&b.referenced_columns)))
            .then_with(|| by_name(&list(&a.columns), &list(&b.columns)))
    });
    Ok(found)
}
