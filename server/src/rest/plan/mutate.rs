//! Writes: the values, the affected rows, and the returned columns.
//!
//! Reference: PostgREST `src/library/PostgREST/Plan.hs` (`mutatePlan`, `inferColsEmbedNeeds`).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::resolve::Resolver;
use super::types::*;
use crate::rest::error::ApiError;
use crate::rest::request::prefer::{Missing, Resolution, Return};
use crate::rest::request::types::*;
use crate::rest::request::{ApiRequest, Mutation};
use crate::schema_cache::{Cardinality, LookupError, Name, Relationship, SchemaCache, Table};

#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub table: Relation,
    pub kind: WriteKind,
    /// Conditions on the written rows.
    pub filters: Vec<Logic>,
    /// Returned columns; empty: only the number of rows.
    pub returning: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WriteKind {
    Insert {
        columns: Vec<ResolvedField>,
        body: Bytes,
        conflict: Option<Conflict>,
        /// PUT: the row is inserted only if it matches the filters.
        guarded: bool,
        /// For `Location`; empty for PUT.
        primary_key: Vec<Name>,
        defaults: bool,
    },
    Update {
        columns: Vec<ResolvedField>,
        body: Bytes,
        defaults: bool,
    },
    Delete,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    pub resolution: Resolution,
    /// May be empty: then there is no conflict target and the insert is a plain one.
    pub columns: Vec<String>,
}

pub fn plan_write(
    mutation: Mutation,
    table: &Arc<Table>,
    request: &ApiRequest,
    cache: &SchemaCache,
    read: &ReadNode,
) -> Result<Write, ApiError> {
    let query = &request.query;
    let preferences = &request.preferences;
    let resolver = Resolver { cache, table: Some(table) };
    let primary_key = &table.primary_key;
    let returning = match preferences.returning {
        None | Some(Return::Minimal) => Vec::new(),
        Some(Return::Representation | Return::HeadersOnly) => needed_columns(read, primary_key),
    };
    let filters: Vec<Logic> = query
        .root_filters()
        .map(|filter| resolver.filter(filter))
        .chain(query.logic.iter().map(|(_, tree)| resolver.logic(tree)))
        .collect();
    let body = || request.payload.as_ref().and_then(|payload| payload.raw()).cloned().unwrap_or_default();
    let defaults = preferences.missing == Some(Missing::Default);
    let columns = || -> Result<Vec<ResolvedField>, ApiError> {
        request.columns.iter().map(|name| body_column(&resolver, table, name)).collect()
    };
    let (kind, filters) = match mutation {
        Mutation::Insert => {
            let conflict = preferences.resolution.map(|resolution| Conflict {
                resolution,
                columns: query
                    .on_conflict
                    .clone()
                    .unwrap_or_else(|| primary_key.iter().map(|name| name.to_string()).collect()),
            });
            let kind = WriteKind::Insert {
                columns: columns()?,
                body: body(),
                conflict,
                guarded: false,
                primary_key: primary_key.clone(),
                defaults,
            };
            (kind, Vec::new())
        }
        Mutation::SingleUpsert => {
            if !filters_are_primary_key(request, primary_key) {
                return Err(ApiError::PutFilters);
            }
            let conflict = Conflict {
                resolution: Resolution::MergeDuplicates,
                columns: primary_key.iter().map(|name| name.to_string()).collect(),
            };
            let kind = WriteKind::Insert {
                columns: columns()?,
                body: body(),
                conflict: Some(conflict),
                guarded: true,
                primary_key: Vec::new(),
                defaults: false,
            };
            (kind, filters)
        }
        Mutation::Update => (WriteKind::Update { columns: columns()?, body: body(), defaults }, filters),
        Mutation::Delete => (WriteKind::Delete, filters),
    };
    Ok(Write { table: Relation::from(&table.name), kind, filters, returning })
}

fn body_column(resolver: &Resolver<'_>, table: &Table, name: &str) -> Result<ResolvedField, ApiError> {
    match table.column(name) {
        Some(column) => Ok(resolver.json_input(Resolver::column(column))),
        None => Err(LookupError::column_not_found(&table.name.name, name).into()),
    }
}

/// A PUT names exactly the primary key, each column with a plain `eq`.
fn filters_are_primary_key(request: &ApiRequest, primary_key: &[Name]) -> bool {
    let query = &request.query;
    let keys: BTreeSet<&str> = query.filter_keys.iter().map(String::as_str).collect();
    let wanted: BTreeSet<&str> = primary_key.iter().map(|name| &**name).collect();
    query.logic.is_empty()
        && !wanted.is_empty()
        && keys == wanted
        && query.root_filters().all(|filter| {
            matches!(&filter.op, OpExpr { negated: false, operation: Operation::Quantified(QuantOp::Equal, None, _) })
        })
}

/// The columns that reading the result needs: those selected, those that embeds join on, and the primary key.
pub fn needed_columns(read: &ReadNode, primary_key: &[Name]) -> Vec<String> {
    if read.select.iter().any(|item| item.field.is_star()) {
        return vec!["*".to_owned()];
    }
    let mut names: BTreeSet<String> = read.select.iter().map(|item| item.field.name.clone()).collect();
    for child in &read.children {
        match child.relationship.as_deref() {
            // It is unknown which columns a function reads.
            Some(Relationship::Computed { .. }) => return vec!["*".to_owned()],
            Some(Relationship::Detected { cardinality: Cardinality::ManyToMany(junction), .. }) => {
                names.extend(junction.origin_columns.iter().map(|(column, _)| column.to_string()));
            }
            Some(Relationship::Detected { cardinality, .. }) => {
                names.extend(cardinality.columns().iter().map(|(column, _)| column.to_string()));
            }
            None => {}
        }
    }
    names.extend(primary_key.iter().map(|name| name.to_string()));
    names.into_iter().collect()
}
