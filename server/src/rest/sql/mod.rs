//! Third stage: a plan becomes one statement that returns one row.
//!
//! That row is `total, page, location, body, response.headers, response.status, inserted`. PostgreSQL builds the body, so that
//! values are formatted once, by the database.
//!
//! Reference: PostgREST `src/library/PostgREST/Query/Statements.hs`.

pub mod builder;
mod call;
mod fragments;
mod read;
pub mod settings;
#[cfg(test)]
mod tests;
mod write;

use builder::Sql;
use bytes::BytesMut;

use super::plan::call::Call;
use super::plan::mutate::WriteKind;
use super::plan::negotiate::Handler;
use super::plan::types::{Logic, SOURCE};
use super::plan::{DatabasePlan, Work};
use super::request::media::{MediaType, PlanOption};
use super::request::prefer::{Count, Resolution, Return};
use super::request::range::RowRange;
use super::request::types::{OpExpr, Operation, QuantOp};
use super::request::{ApiRequest, Mutation};
use crate::db::Row;
use crate::schema_cache::{Function, Name, SchemaCache, Table};

/// The statements of one transaction after its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statements {
    pub main: Sql,
    /// `EXPLAIN` of the counting query, for planned and estimated counts of a relation.
    pub explain: Option<Sql>,
}

pub fn statements(plan: &DatabasePlan, request: &ApiRequest, max_rows: Option<u64>) -> Statements {
    let mut main = Sql::new();
    if let MediaType::Plan { json, options, .. } = &plan.media {
        explain(&mut main, *json, options);
    }
    let count = request.preferences.count;
    match &plan.work {
        Work::Read { .. } => main_read(&mut main, plan, Total::of(count, request.range, max_rows)),
        Work::Write { mutation, .. } => main_write(&mut main, plan, *mutation, request),
        Work::Call { call, .. } => main_call(&mut main, plan, call, Total::of(count, request.range, max_rows)),
    }
    let explain = match &plan.work {
        Work::Read { .. } if count.is_some_and(Count::explains) => {
            let mut sql = Sql::new();
            explain(&mut sql, true, &[]);
            read::count_query(&mut sql, &plan.read);
            Some(sql)
        }
        _ => None,
    };
    Statements { main, explain }
}

/// The statements of a read whose rows are streamed.
#[derive(Clone, Debug)]
pub struct StreamStatements {
    /// Returns one row per row of the result, see [`RowFormat`].
    pub rows: Sql,
    pub format: RowFormat,
    /// Whether the result has a limit.
    pub is_limited: bool,
    /// `response.headers` and `response.status`, read after the rows and, if there is a pre-request, before them.
    pub response: Sql,
}

/// How rows become a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// The first column is the row as a JSON object.
    Json,
    /// The first column is the row's line; the second, of the first row only, the line of names above it.
    Csv,
}

impl RowFormat {
    /// Appends a row; `number` counts from 0.
    pub fn encode(self, number: u64, row: &Row, out: &mut BytesMut) {
        let column = |column: usize| row.slice(column);
        match self {
            Self::Json => {
                out.extend_from_slice(if number == 0 { b"[" } else { b", \n " });
                out.extend_from_slice(column(0).unwrap_or(b"null"));
            }
            Self::Csv => {
                out.extend_from_slice(column(1).unwrap_or_default());
                out.extend_from_slice(b"\n");
                out.extend_from_slice(column(0).unwrap_or_default());
            }
        }
    }

    /// The text after the last of `rows` rows.
    pub fn end(self, rows: u64) -> &'static [u8] {
        match (self, rows) {
            (Self::Json, 0) => b"[]",
            (Self::Json, _) => b"]",
            (Self::Csv, 0) => b"\n",
            (Self::Csv, _) => b"",
        }
    }
}

/// Reads with a smaller limit than this are answered whole.
const STREAMED_FROM: i128 = 10_000;

/// The statements for streaming, if `plan` is a plain read that may return many rows and does not need all of
/// them before the first is sent.
pub fn stream_statements(plan: &DatabasePlan, request: &ApiRequest, cache: &SchemaCache) -> Option<StreamStatements> {
    let Work::Read { relation, head: false } = &plan.work else { return None };
    let format = match (&plan.handler, &plan.media) {
        (Handler::Json, MediaType::Json) => RowFormat::Json,
        (Handler::Csv, MediaType::Csv) => RowFormat::Csv,
        _ => return None,
    };
    let limit = plan.read.range.limit();
    let long = limit.is_none_or(|limit| limit > STREAMED_FROM);
    if request.preferences.count.is_some()
        || !long
        || names_one_row(plan, cache.find_table(&relation.schema, &relation.name)?)
    {
        return None;
    }
    let mut rows = Sql::new();
    rows.raw(match format {
        RowFormat::Json => "SELECT row_to_json(_postgrest_t) FROM (",
        RowFormat::Csv => {
            "SELECT substring(_postgrest_t::text, 2, length(_postgrest_t::text) - 2), \
             CASE WHEN row_number() OVER () = 1 THEN (SELECT coalesce(string_agg(a.k, ','), '') \
             FROM json_object_keys(row_to_json(_postgrest_t)) a(k)) END FROM ("
        }
    });
    read::read_query(&mut rows, &plan.read);
    rows.raw(") _postgrest_t");
    let mut response = Sql::new();
    response.raw("SELECT ");
    response_settings(&mut response);
    Some(StreamStatements { rows, format, is_limited: limit.is_some(), response })
}

/// Whether the filters fix the whole primary key.
fn names_one_row(plan: &DatabasePlan, table: &Table) -> bool {
    let is_fixed = |column: &Name| {
        plan.read.filters.iter().any(|filter| match filter {
            Logic::Filter { field, op } => {
                field.name == **column
                    && field.path.is_empty()
                    && matches!(
                        op,
                        OpExpr { negated: false, operation: Operation::Quantified(QuantOp::Equal, None, _) }
                    )
            }
            Logic::Group { .. } | Logic::Embedded { .. } => false,
        })
    };
    !table.primary_key.is_empty() && table.primary_key.iter().all(is_fixed)
}

fn explain(sql: &mut Sql, json: bool, options: &[PlanOption]) {
    sql.raw(if json { "EXPLAIN (FORMAT JSON" } else { "EXPLAIN (FORMAT TEXT" });
    for option in options {
        sql.raw(", ").raw(match option {
            PlanOption::Analyze => "ANALYZE",
            PlanOption::Verbose => "VERBOSE",
            PlanOption::Settings => "SETTINGS",
            PlanOption::Buffers => "BUFFERS",
            PlanOption::Wal => "WAL",
        });
    }
    sql.raw(") ");
}

/// How the total is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Total {
    Unasked,
    /// Without any limit the page has all rows, so no separate count is needed.
    Page,
    /// By a separate query, which counts at most this many rows.
    Apart(Option<u64>),
}

impl Total {
    fn of(count: Option<Count>, range: RowRange, max_rows: Option<u64>) -> Self {
        match count {
            Some(Count::Exact) if max_rows.is_some() || range != RowRange::ALL => Self::Apart(None),
            // One more than the limit is enough to know that it is exceeded.
            Some(Count::Estimated) if max_rows.is_some() || range != RowRange::ALL => {
                Self::Apart(max_rows.map(|max_rows| max_rows + 1))
            }
            Some(Count::Exact | Count::Estimated) => Self::Page,
            Some(Count::Planned) | None => Self::Unasked,
        }
    }
}

fn main_read(sql: &mut Sql, plan: &DatabasePlan, total: Total) {
    let needs_source = matches!(total, Total::Apart(_)) || plan.handler == Handler::Csv;
    if !needs_source {
        result_columns(sql, plan, None, total);
        read::read_query(sql, &plan.read);
        sql.raw(") _postgrest_t");
        return;
    }
    sql.raw("WITH ").raw(SOURCE).raw(" AS (");
    read::read_query(sql, &plan.read);
    sql.raw(") ");
    count_apart(sql, plan, total);
    result_columns(sql, plan, None, total);
    sql.raw("SELECT * FROM ").raw(SOURCE).raw(") _postgrest_t");
}

fn main_call(sql: &mut Sql, plan: &DatabasePlan, called: &Call, total: Total) {
    sql.raw("WITH ").raw(SOURCE).raw(" AS (");
    call::call_query(sql, called);
    sql.raw(") ");
    count_apart(sql, plan, total);
    result_columns(sql, plan, Some(&called.function), total);
    read::read_query(sql, &plan.read);
    sql.raw(") _postgrest_t");
}

fn count_apart(sql: &mut Sql, plan: &DatabasePlan, total: Total) {
    let Total::Apart(most) = total else { return };
    sql.raw(", pgrst_source_count AS (");
    read::count_query(sql, &plan.read);
    if let Some(most) = most {
        sql.raw(" LIMIT ").number(most);
    }
    sql.raw(") ");
}

/// The select list of a read or a call, up to the bracket that opens its rows.
fn result_columns(sql: &mut Sql, plan: &DatabasePlan, function: Option<&Function>, total: Total) {
    sql.raw("SELECT ");
    match total {
        Total::Unasked => {
            sql.raw("null");
        }
        Total::Page => page_count(sql, function),
        Total::Apart(_) => {
            sql.raw("(SELECT pg_catalog.count(*) FROM pgrst_source_count)");
        }
    }
    sql.raw("::bigint AS total_result_set, ");
    page_count(sql, function);
    sql.raw("::bigint AS page_total, null::text[] AS header, ");
    body(sql, &plan.handler, function);
    sql.raw(" AS body, ");
    response_settings(sql);
    sql.raw(", null::int AS response_inserted FROM (");
}

fn page_count(sql: &mut Sql, function: Option<&Function>) {
    if function.is_some_and(Function::returns_single) {
        sql.raw("1");
    } else {
        sql.raw("pg_catalog.count(_postgrest_t)");
    }
}

fn response_settings(sql: &mut Sql) {
    sql.raw(
        "nullif(current_setting('response.headers', true), '') AS response_headers, \
         nullif(current_setting('response.status', true), '') AS response_status",
    );
}

fn main_write(sql: &mut Sql, plan: &DatabasePlan, mutation: Mutation, request: &ApiRequest) {
    let Work::Write { write, .. } = &plan.work else { return };
    sql.raw("WITH ").raw(SOURCE).raw(" AS (");
    write::write_query(sql, write);
    sql.raw(") SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, ");
    match &write.kind {
        WriteKind::Insert { primary_key, .. }
            if request.preferences.returning == Some(Return::HeadersOnly) && !primary_key.is_empty() =>
        {
            sql.raw(
                "CASE WHEN pg_catalog.count(_postgrest_t) = 1 THEN coalesce((\
                 WITH data AS (SELECT row_to_json(_) AS row FROM pgrst_source AS _ LIMIT 1) \
                 SELECT array_agg(json_data.key || '=' || coalesce('eq.' || json_data.value, 'is.null')) \
                 FROM data CROSS JOIN json_each_text(data.row) AS json_data WHERE json_data.key IN (",
            );
            sql.list(", ", primary_key, |sql, name| {
                sql.bind(name);
            });
            sql.raw(")), array[]::text[]) ELSE array[]::text[] END");
        }
        _ => {
            sql.raw("null::text[]");
        }
    }
    sql.raw(" AS header, ");
    body(sql, &plan.handler, None);
    sql.raw(" AS body, ");
    response_settings(sql);
    let upserts = request.preferences.resolution == Some(Resolution::MergeDuplicates);
    let counts_inserted = match mutation {
        Mutation::SingleUpsert => true,
        Mutation::Insert => upserts,
        Mutation::Update | Mutation::Delete => false,
    };
    sql.raw(if counts_inserted { ", nullif(current_setting('pgrst.inserted', true), '')::int" } else { ", null::int" });
    sql.raw(" AS response_inserted FROM (");
    if plan.handler == Handler::Nothing {
        // Without a body, selected columns are not needed and may not exist.
        sql.raw("SELECT * FROM ").raw(SOURCE);
    } else {
        read::read_query(sql, &plan.read);
    }
    sql.raw(") _postgrest_t");
}

/// The expression that makes the body out of `_postgrest_t`.
fn body(sql: &mut Sql, handler: &Handler, function: Option<&Function>) {
    let scalar = function.is_some_and(Function::returns_scalar);
    match handler {
        Handler::Json => json_body(sql, function, false),
        Handler::ArrayStripped => json_body(sql, function, true),
        Handler::Singular { stripped } => {
            let item = if scalar { "json_agg(_postgrest_t.pgrst_scalar)->0" } else { "json_agg(_postgrest_t)->0" };
            coalesced(sql, item, *stripped, ", 'null')");
        }
        Handler::GeoJson => {
            sql.raw(
                "json_build_object('type', 'FeatureCollection', 'features', \
                 coalesce(json_agg(ST_AsGeoJSON(_postgrest_t)::json), '[]'))",
            );
        }
        Handler::Csv => {
            sql.raw(
                "(SELECT coalesce(string_agg(a.k, ','), '') FROM (SELECT json_object_keys(r)::text as k \
                 FROM (SELECT row_to_json(hh) as r from pgrst_source as hh limit 1) s) a) || E'\\n' || \
                 coalesce(string_agg(substring(_postgrest_t::text, 2, length(_postgrest_t::text) - 2), E'\\n'), '')",
            );
        }
        Handler::Custom { function: handler, row } => {
            sql.qualified(&handler.schema, &handler.name);
            match row {
                _ if scalar => sql.raw("(_postgrest_t.pgrst_scalar)"),
                None => sql.raw("(_postgrest_t)"),
                Some(row) => sql.raw("(_postgrest_t::").qualified(&row.schema, &row.name).raw(")"),
            };
        }
        Handler::Nothing => {
            sql.raw("''::text");
        }
    }
}

fn json_body(sql: &mut Sql, function: Option<&Function>, stripped: bool) {
    let is = |test: fn(&Function) -> bool| function.is_some_and(test);
    let (item, otherwise) = if is(Function::returns_single_composite) {
        ("json_agg(_postgrest_t)->0", ", 'null')")
    } else if is(Function::returns_scalar) {
        ("json_agg(_postgrest_t.pgrst_scalar)->0", ", 'null')")
    } else if is(Function::returns_set_of_scalar) {
        ("json_agg(_postgrest_t.pgrst_scalar)", ", '[]')")
    } else {
        ("json_agg(_postgrest_t)", ", '[]')")
    };
    coalesced(sql, item, stripped, otherwise);
}

fn coalesced(sql: &mut Sql, item: &'static str, stripped: bool, otherwise: &'static str) {
    if stripped {
        sql.raw("coalesce(json_strip_nulls(").raw(item).raw(")").raw(otherwise);
    } else {
        sql.raw("coalesce(").raw(item).raw(otherwise);
    }
}
