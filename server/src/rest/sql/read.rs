//! Reading queries: one `SELECT` per level, embeds joined laterally.
//!
//! Reference: PostgREST `src/library/PostgREST/Query/QueryBuilder.hs`.

use super::builder::Sql;
use super::fragments::*;
use crate::rest::plan::types::*;
use crate::rest::request::types::JoinType;
use crate::schema_cache::{Cardinality, Relationship};

/// The name that qualifies the level's columns.
fn row_name(node: &ReadNode) -> Relation {
    match &node.from_alias {
        Some(alias) => Relation::alias(alias.clone()),
        None => node.from.clone(),
    }
}

fn from(sql: &mut Sql, node: &ReadNode) {
    sql.raw(" FROM ");
    match (node.relationship.as_deref(), &node.row_argument) {
        // The cast picks the overload for this relation.
        (Some(Relationship::Computed { function, origin, .. }), Some(row)) => {
            sql.qualified(&function.schema, &function.name).raw("(").ident(row).raw("::");
            sql.qualified(&origin.schema, &origin.name).raw(")");
        }
        _ => {
            sql.relation(&node.from);
        }
    }
    if let Some(alias) = &node.from_alias {
        sql.raw(" AS ").ident(alias);
    }
    if let Some(Relationship::Detected { cardinality: Cardinality::ManyToMany(junction), .. }) =
        node.relationship.as_deref()
    {
        sql.raw(", ").qualified(&junction.table.schema, &junction.table.name);
    }
}

/// The query of one level with everything embedded in it.
pub fn read_query(sql: &mut Sql, node: &ReadNode) {
    let row = row_name(node);
    sql.raw("SELECT ");
    let mut first = true;
    let mut comma = |sql: &mut Sql| {
        if !first {
            sql.raw(", ");
        }
        first = false;
    };
    if node.select.is_empty() && node.children.is_empty() {
        comma(sql);
        sql.column(&row, "*");
    }
    for item in &node.select {
        comma(sql);
        select_item(sql, &row, item);
    }
    if let Some(Spread::ToMany { extra, .. }) = &node.spread {
        for (embed, item) in extra {
            comma(sql);
            match embed {
                Some(embed) => select_item(sql, &Relation::alias(embed.as_str()), item),
                None => select_item(sql, &row, item),
            }
        }
    }
    for embed in &node.embeds {
        match embed {
            EmbedSelect::Json { hidden: true, .. } => {}
            EmbedSelect::Json { name, alias, to_one: true, .. } => {
                comma(sql);
                sql.raw("row_to_json(").ident(alias).raw(".*)::jsonb AS ").ident(name);
            }
            EmbedSelect::Json { name, alias, to_one: false, .. } => {
                comma(sql);
                sql.raw("COALESCE( ").ident(alias).raw(".").ident(alias).raw(", '[]') AS ").ident(name);
            }
            EmbedSelect::Spread { columns, alias } => {
                for column in columns {
                    comma(sql);
                    spread_item(sql, alias, column);
                }
            }
        }
    }
    from(sql, node);
    joins(sql, node);
    conditions(sql, node, &row, &joined_embed_test, &mut false);
    sql.raw(" ");
    group_by(sql, &row, node);
    sql.raw(" ");
    order_by(sql, &row, &node.order);
    sql.raw(" ");
    limit_offset(sql, node.range);
}

/// `WHERE` with the filters and join conditions of a level; `started` tells and remembers whether there is one.
fn conditions(
    sql: &mut Sql,
    node: &ReadNode,
    row: &Relation,
    embedded: &dyn Fn(&mut Sql, bool, &str),
    started: &mut bool,
) {
    for filter in &node.filters {
        and(sql, started);
        logic(sql, row, filter, embedded);
    }
    for condition in &node.join_conditions {
        and(sql, started);
        join_condition(sql, condition);
    }
}

fn and(sql: &mut Sql, started: &mut bool) {
    sql.raw(if *started { " AND " } else { " WHERE " });
    *started = true;
}

fn joins(sql: &mut Sql, node: &ReadNode) {
    for embed in &node.embeds {
        // PostgreSQL reports two embeds with the same alias. To get the reference's error, this must take the first.
        let Some(child) = node.children.iter().find(|child| child.aggregate_alias == embed.alias()) else { continue };
        let inner = child.join == Some(JoinType::Inner);
        let alias = embed.alias();
        sql.raw(if inner { " INNER JOIN LATERAL ( " } else { " LEFT JOIN LATERAL ( " });
        let arrays: Option<(&[SpreadColumn], &[OrderTerm])> = match (embed, &child.spread) {
            (EmbedSelect::Spread { columns, .. }, Some(Spread::ToMany { order, .. })) => Some((columns, order)),
            (EmbedSelect::Json { to_one: false, .. }, _) => Some((&[], &[])),
            _ => None,
        };
        match arrays {
            None => {
                read_query(sql, child);
                sql.raw(" ) AS ").ident(alias).raw(" ON TRUE");
            }
            Some((columns, ordering)) => {
                sql.raw("SELECT json_agg(").ident(alias).raw(")::jsonb AS ").ident(alias);
                for column in columns {
                    sql.raw(", ");
                    spread_array(sql, alias, ordering, column);
                }
                sql.raw(" FROM (");
                read_query(sql, child);
                sql.raw(" ) AS ").ident(alias).raw(" ) AS ").ident(alias).raw(" ON ");
                if inner {
                    sql.ident(alias).raw(" IS NOT NULL");
                } else {
                    sql.raw("TRUE");
                }
            }
        }
    }
}

/// Counts the rows of `read_query` without its range: one row per match. Inner joins become `EXISTS`, so
/// that they filter without multiplying.
pub fn count_query(sql: &mut Sql, node: &ReadNode) {
    let row = row_name(node);
    sql.raw("SELECT 1 ");
    from(sql, node);
    let embedded = |sql: &mut Sql, exists: bool, alias: &str| {
        if let Some(child) = node.children.iter().find(|child| child.aggregate_alias == alias) {
            sql.raw(if exists { "EXISTS (" } else { "NOT EXISTS (" });
            count_query(sql, child);
            sql.raw(")");
        }
    };
    let mut started = false;
    conditions(sql, node, &row, &embedded, &mut started);
    for child in node.children.iter().filter(|child| child.join == Some(JoinType::Inner)) {
        and(sql, &mut started);
        sql.raw("EXISTS (");
        count_query(sql, child);
        sql.raw(" )");
    }
}
