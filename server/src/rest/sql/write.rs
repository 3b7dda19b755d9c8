//! Writing queries and the JSON body as a source of rows.
//!
//! Reference: PostgREST `src/library/PostgREST/Query/QueryBuilder.hs` (`mutatePlanToQuery`),
//! `Query/SqlFragment.hs` (`fromJsonBodyF`).

use bytes::Bytes;

use super::builder::Sql;
use super::fragments::{joined_embed_test, logic};
use crate::rest::plan::mutate::{Write, WriteKind};
use crate::rest::plan::types::*;
use crate::rest::request::prefer::Resolution;
use crate::schema_cache::Name;

/// How the body is turned into rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BodyUse {
    /// A whole `SELECT … FROM …`.
    Select,
    /// The `FROM …` of an update.
    From,
    /// The `FROM …` of a call: only the first row.
    FirstRow,
}

/// A column taken from the body: its name, and the SQL type to read it as.
pub struct BodyColumn<'a> {
    pub name: &'a str,
    pub type_name: &'a Name,
    pub transform: Option<&'a Name>,
    pub default: Option<&'a Name>,
}

impl<'a> From<&'a ResolvedField> for BodyColumn<'a> {
    fn from(field: &'a ResolvedField) -> Self {
        Self {
            name: &field.name,
            type_name: &field.type_name,
            transform: field.transform.as_ref(),
            default: field.default.as_ref(),
        }
    }
}

/// Whether the first character that is not blank opens an object; PostgreSQL checks the rest.
fn is_object(body: &Bytes) -> bool {
    body.iter().find(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r')) == Some(&b'{')
}

fn body_alias() -> Relation {
    Relation::alias("pgrst_body")
}

/// The rows of a JSON body, as `pgrst_body`.
pub fn from_body(sql: &mut Sql, body: &Bytes, columns: &[BodyColumn<'_>], how: BodyUse, defaults: bool) {
    let object = is_object(body);
    if how == BodyUse::Select {
        sql.raw("SELECT ").list(", ", columns, |sql, column| {
            sql.column(&body_alias(), column.name);
        });
        sql.raw(" ");
    }
    sql.raw("FROM (SELECT ").bind_bytes(body);
    sql.raw(if defaults { "::jsonb AS json_data) pgrst_payload, " } else { "::json AS json_data) pgrst_payload, " });
    if defaults {
        if object {
            sql.raw("LATERAL (SELECT ");
            default_object(sql, columns);
            sql.raw(" || pgrst_payload.json_data AS val) pgrst_json_defs, ");
        } else {
            sql.raw("LATERAL (SELECT jsonb_agg(");
            default_object(sql, columns);
            sql.raw(" || elem) AS val from jsonb_array_elements(pgrst_payload.json_data) elem) pgrst_json_defs, ");
        }
    }
    let source = if defaults { "pgrst_json_defs.val" } else { "pgrst_payload.json_data" };
    sql.raw("LATERAL (SELECT ").list(", ", columns, |sql, column| match column.transform {
        Some(function) => {
            sql.catalog(function).raw("(").ident(column.name).raw(") AS ").ident(column.name);
        }
        None => {
            sql.ident(column.name);
        }
    });
    sql.raw(" FROM ");
    if columns.is_empty() {
        if object {
            sql.raw("(values(1)) _ ");
        } else {
            sql.raw(if defaults { "jsonb_array_elements(" } else { "json_array_elements(" }).raw(source).raw(") _ ");
        }
    } else {
        sql.raw(match (defaults, object) {
            (true, true) => "jsonb_to_record(",
            (true, false) => "jsonb_to_recordset(",
            (false, true) => "json_to_record(",
            (false, false) => "json_to_recordset(",
        });
        sql.raw(source).raw(") AS _(").list(", ", columns, |sql, column| {
            sql.ident(column.name).raw(" ").catalog(column.type_name);
        });
        sql.raw(") ");
        if how == BodyUse::FirstRow {
            sql.raw("LIMIT 1");
        }
    }
    sql.raw(") pgrst_body ");
}

fn default_object(sql: &mut Sql, columns: &[BodyColumn<'_>]) {
    let with_default = columns.iter().filter_map(|column| Some((column.name, column.default?)));
    sql.raw("jsonb_build_object(").list(", ", with_default, |sql, (name, default)| {
        sql.bind(name).raw("::text, ").catalog(default);
    });
    sql.raw(")");
}

/// Counts inserted rows in a setting: up before a row is inserted, down again if it turned out to exist.
/// Always true.
fn count_inserted(sql: &mut Sql, up: bool) {
    sql.raw(if up {
        "set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) + 1)\
         ::text, true) <> '0'"
    } else {
        "set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) - 1)\
         ::text, true) <> '-1'"
    });
}

pub fn write_query(sql: &mut Sql, write: &Write) {
    match &write.kind {
        WriteKind::Insert { columns, body, conflict, guarded, defaults, .. } => {
            insert(sql, write, columns, body, *defaults);
            let merges = conflict.as_ref().is_some_and(|c| c.resolution == Resolution::MergeDuplicates);
            if *guarded {
                sql.raw("WHERE ");
                count_inserted(sql, true);
                sql.raw(" AND ");
                filters(sql, &body_alias(), &write.filters);
            } else if merges {
                sql.raw("WHERE ");
                count_inserted(sql, true);
            }
            if let Some(conflict) = conflict.as_ref().filter(|conflict| !conflict.columns.is_empty()) {
                sql.raw(" ON CONFLICT(").list(", ", &conflict.columns, |sql, name| {
                    sql.ident(name);
                });
                sql.raw(") ");
                if !merges || columns.is_empty() {
                    sql.raw("DO NOTHING");
                } else {
                    sql.raw("DO UPDATE SET ").list(", ", columns, |sql, column| {
                        sql.ident(&column.name).raw(" = EXCLUDED.").ident(&column.name);
                    });
                    sql.raw(" WHERE ");
                    count_inserted(sql, false);
                }
            }
        }
        // Nothing to set: returns no row, but the columns of the representation.
        WriteKind::Update { columns, .. } if columns.is_empty() => {
            sql.raw("SELECT ");
            if write.returning.is_empty() {
                sql.raw("NULL");
            } else {
                let row = Relation::alias(write.table.name.clone());
                sql.list(", ", &write.returning, |sql, name| {
                    sql.column(&row, name);
                });
            }
            sql.raw(" FROM ").relation(&write.table).raw(" WHERE false");
            return;
        }
        WriteKind::Update { columns, body, defaults } => {
            sql.raw("UPDATE ").relation(&write.table).raw(" SET ").list(", ", columns, |sql, column| {
                sql.ident(&column.name).raw(" = ").column(&body_alias(), &column.name);
            });
            sql.raw(" ");
            let columns: Vec<BodyColumn<'_>> = columns.iter().map(BodyColumn::from).collect();
            from_body(sql, body, &columns, BodyUse::From, *defaults);
            where_filters(sql, write);
        }
        WriteKind::Delete => {
            sql.raw("DELETE FROM ").relation(&write.table).raw(" ");
            where_filters(sql, write);
        }
    }
    returning(sql, write);
}

fn insert(sql: &mut Sql, write: &Write, columns: &[ResolvedField], body: &Bytes, defaults: bool) {
    sql.raw("INSERT INTO ").relation(&write.table);
    if columns.is_empty() {
        sql.raw(" ");
    } else {
        sql.raw("(").list(", ", columns, |sql, column| {
            sql.ident(&column.name);
        });
        sql.raw(") ");
    }
    let columns: Vec<BodyColumn<'_>> = columns.iter().map(BodyColumn::from).collect();
    from_body(sql, body, &columns, BodyUse::Select, defaults);
}

fn filters(sql: &mut Sql, row: &Relation, filters: &[Logic]) {
    sql.list(" AND ", filters, |sql, filter| logic(sql, row, filter, &joined_embed_test));
}

fn where_filters(sql: &mut Sql, write: &Write) {
    if !write.filters.is_empty() {
        sql.raw(" WHERE ");
        filters(sql, &write.table, &write.filters);
    }
}

fn returning(sql: &mut Sql, write: &Write) {
    sql.raw(" RETURNING ");
    if write.returning.is_empty() {
        sql.raw("1");
    } else {
        sql.list(", ", &write.returning, |sql, name| {
            sql.column(&write.table, name);
        });
    }
}
