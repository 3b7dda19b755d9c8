//! Function calls.
//!
//! Reference: PostgREST `src/library/PostgREST/Query/QueryBuilder.hs` (`callPlanToQuery`).

use super::builder::{Sql, array_literal};
use super::write::{BodyColumn, BodyUse, from_body};
use crate::db::Param;
use crate::rest::plan::call::{Arguments, Call, DirectValue};
use crate::rest::plan::types::Relation;
use crate::schema_cache::Parameter;

pub fn call_query(sql: &mut Sql, call: &Call) {
    let function = &call.function;
    sql.raw("SELECT ");
    if function.returns_scalar() || function.returns_set_of_scalar() {
        sql.raw("pgrst_call.pgrst_scalar ");
    } else {
        let row = Relation::alias("pgrst_call");
        match call.returning.as_slice() {
            [] => {
                sql.raw("*");
            }
            names => {
                sql.list(", ", names, |sql, name| {
                    sql.column(&row, name);
                });
            }
        }
        sql.raw(" ");
    }
    if !matches!(&call.arguments, Arguments::FromJson { parameters, .. } if !parameters.is_empty()) {
        sql.raw("FROM ");
    }
    match &call.arguments {
        Arguments::Whole { parameter, body } => invoke(sql, call, |sql| {
            if &*parameter.type_name == "bytea" {
                // The cast prevents a call of an overload that takes text.
                sql.bind_param(Param::Binary(body.clone())).raw("::bytea");
            } else {
                sql.bind_text(body).raw("::").catalog(&parameter.type_name);
            }
        }),
        Arguments::Direct(arguments) => invoke(sql, call, |sql| {
            sql.list(", ", arguments, |sql, (parameter, value)| {
                name_argument(sql, parameter);
                match value {
                    DirectValue::One(text) => sql.bind(text),
                    // Elements are cast one by one, since not every type separates them by commas.
                    DirectValue::Many(texts) => sql.bind(&array_literal(texts)).raw("::text[]"),
                };
                sql.raw("::").catalog(&parameter.bind_type);
            });
        }),
        Arguments::FromJson { parameters, .. } if parameters.is_empty() => invoke(sql, call, |_| {}),
        Arguments::FromJson { parameters, body } => {
            let columns: Vec<BodyColumn<'_>> = parameters
                .iter()
                .map(|p| BodyColumn { name: &p.name, type_name: &p.bind_type, transform: None, default: None })
                .collect();
            from_body(sql, body, &columns, BodyUse::FirstRow, false);
            sql.raw(", LATERAL ");
            invoke(sql, call, |sql| {
                sql.list(", ", parameters, |sql, parameter| {
                    name_argument(sql, parameter);
                    sql.raw("pgrst_body.").ident(&parameter.name);
                });
            });
        }
    }
}

fn name_argument(sql: &mut Sql, parameter: &Parameter) {
    if parameter.variadic {
        sql.raw("VARIADIC ");
    }
    sql.ident(&parameter.name).raw(" := ");
}

fn invoke(sql: &mut Sql, call: &Call, arguments: impl FnOnce(&mut Sql)) {
    let function = &call.function;
    let scalar = function.returns_scalar() || function.returns_set_of_scalar();
    if scalar {
        sql.raw("(SELECT ");
    }
    sql.qualified(&function.name.schema, &function.name.name).raw("(");
    arguments(sql);
    sql.raw(if scalar { ") pgrst_scalar) pgrst_call" } else { ") pgrst_call" });
}
