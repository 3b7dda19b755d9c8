//! Pieces of SQL: fields, filters, order, casts, aggregates.
//!
//! Reference: PostgREST `src/library/PostgREST/Query/SqlFragment.hs`.

use super::builder::{Sql, array_literal};
use crate::rest::plan::types::*;
use crate::rest::request::range::RowRange;
use crate::rest::request::types::*;

/// A field as used in filters and order: path and `to_tsvector` applied, no representation.
pub fn field(sql: &mut Sql, relation: &Relation, field: &ResolvedField) {
    if let Some(language) = &field.to_tsvector {
        sql.raw("to_tsvector(");
        if let Some(language) = language {
            sql.bind(language).raw(", ");
        }
        bare_field(sql, relation, field);
        sql.raw(")");
    } else {
        bare_field(sql, relation, field);
    }
}

fn bare_field(sql: &mut Sql, relation: &Relation, field: &ResolvedField) {
    if field.full_row {
        sql.ident(&relation.name);
    } else if field.path.is_empty() {
        sql.column(relation, &field.name);
    } else {
        if field.to_jsonb {
            sql.raw("to_jsonb(").column(relation, &field.name).raw(")");
        } else {
            sql.column(relation, &field.name);
        }
        for step in &field.path {
            sql.raw(if step.as_text { "->>" } else { "->" });
            match &step.operand {
                JsonOperand::Key(key) => sql.bind(key),
                JsonOperand::Index(index) => sql.bind(index).raw("::int"),
            };
        }
    }
}

fn represented_field(sql: &mut Sql, relation: &Relation, resolved: &ResolvedField) {
    match &resolved.transform {
        Some(function) => {
            sql.catalog(function).raw("(");
            field(sql, relation, resolved);
            sql.raw(")");
        }
        None => field(sql, relation, resolved),
    }
}

/// Writes `inner` with an optional cast around it.
fn with_cast(sql: &mut Sql, cast: Option<&CastName>, inner: impl FnOnce(&mut Sql)) {
    match cast {
        Some(cast) => {
            sql.raw("CAST( ");
            inner(sql);
            sql.raw(" AS ").cast_name(cast).raw(" )");
        }
        None => inner(sql),
    }
}

fn with_aggregate(sql: &mut Sql, aggregate: Option<Aggregate>, cast: Option<&CastName>, inner: impl FnOnce(&mut Sql)) {
    let Some(aggregate) = aggregate else { return inner(sql) };
    with_cast(sql, cast, |sql| {
        sql.raw(match aggregate {
            Aggregate::Sum => "SUM(",
            Aggregate::Avg => "AVG(",
            Aggregate::Max => "MAX(",
            Aggregate::Min => "MIN(",
            Aggregate::Count => "COUNT(",
        });
        inner(sql);
        sql.raw(")");
    });
}

fn alias(sql: &mut Sql, name: Option<&str>) {
    if let Some(name) = name {
        sql.raw(" AS ").ident(name);
    }
}

/// An item of a select list.
pub fn select_item(sql: &mut Sql, relation: &Relation, item: &SelectField) {
    with_aggregate(sql, item.aggregate, item.aggregate_cast.as_ref(), |sql| {
        with_cast(sql, item.cast.as_ref(), |sql| represented_field(sql, relation, &item.field));
    });
    alias(sql, item.alias.as_deref());
}

fn joined_column(sql: &mut Sql, join: &str, column: &str) {
    sql.column(&Relation::alias(join), column);
}

/// A column lifted from a spread.
pub fn spread_item(sql: &mut Sql, join: &str, column: &SpreadColumn) {
    with_aggregate(sql, column.aggregate, column.aggregate_cast.as_ref(), |sql| {
        joined_column(sql, join, &column.name);
    });
    alias(sql, column.alias.as_deref());
}

/// A column of a to-many spread, aggregated into an array.
pub fn spread_array(sql: &mut Sql, join: &str, ordering: &[OrderTerm], column: &SpreadColumn) {
    sql.raw("COALESCE(json_agg(");
    joined_column(sql, join, &column.name);
    sql.raw(" ");
    order_by(sql, &Relation::alias(join), ordering);
    sql.raw("),'[]')::jsonb AS ").ident(column.alias.as_deref().unwrap_or(&column.name));
}

/// `GROUP BY` where anything is aggregated; needs every other selected column.
pub fn group_by(sql: &mut Sql, relation: &Relation, node: &ReadNode) {
    let spread_aggregates = node.embeds.iter().any(|embed| match embed {
        EmbedSelect::Spread { columns, .. } => columns.iter().any(|column| column.aggregate.is_some()),
        EmbedSelect::Json { .. } => false,
    });
    if !spread_aggregates && node.select.iter().all(|item| item.aggregate.is_none()) {
        return;
    }
    let mut first = true;
    let mut next = |sql: &mut Sql| {
        sql.raw(if first { " GROUP BY " } else { ", " });
        first = false;
    };
    for item in node.select.iter().filter(|item| item.aggregate.is_none()) {
        next(sql);
        match &item.alias {
            Some(alias) => {
                sql.ident(alias);
            }
            None => field(sql, relation, &item.field),
        }
    }
    for embed in &node.embeds {
        match embed {
            EmbedSelect::Json { name, .. } => {
                next(sql);
                sql.ident(name);
            }
            EmbedSelect::Spread { columns, alias } => {
                for column in columns.iter().filter(|column| column.aggregate.is_none()) {
                    next(sql);
                    sql.ident(alias).raw(".").ident(column.alias.as_deref().unwrap_or(&column.name));
                }
            }
        }
    }
}

pub fn order_by(sql: &mut Sql, relation: &Relation, terms: &[OrderTerm]) {
    if terms.is_empty() {
        return;
    }
    sql.raw("ORDER BY ").list(", ", terms, |sql, term| {
        match &term.embed {
            Some(embed) => field(sql, &Relation::alias(embed.as_str()), &term.field),
            None => field(sql, relation, &term.field),
        }
        match term.direction {
            Some(Direction::Asc) => sql.raw(" ASC"),
            Some(Direction::Desc) => sql.raw(" DESC"),
            None => sql,
        };
        match term.nulls {
            Some(Nulls::First) => sql.raw(" NULLS FIRST"),
            Some(Nulls::Last) => sql.raw(" NULLS LAST"),
            None => sql,
        };
    });
}

pub fn limit_offset(sql: &mut Sql, range: RowRange) {
    if range == RowRange::ALL {
        return;
    }
    sql.raw("LIMIT ");
    match range.limit() {
        Some(limit) => sql.bind(&limit.to_string()),
        None => sql.raw("ALL"),
    };
    sql.raw(" OFFSET ").bind(&range.lower.to_string());
}

pub fn join_condition(sql: &mut Sql, condition: &JoinCondition) {
    let ((left, left_column), (right, right_column)) = (&condition.left, &condition.right);
    sql.column(left, left_column).raw(" = ").column(right, right_column);
}

/// A condition; `embedded` writes the test whether an embedded resource has rows.
pub fn logic(sql: &mut Sql, relation: &Relation, tree: &Logic, embedded: &dyn Fn(&mut Sql, bool, &str)) {
    match tree {
        Logic::Group { negated, op, members } => {
            sql.raw(if *negated { "NOT (" } else { "(" });
            let separator = match op {
                LogicOp::And => " AND ",
                LogicOp::Or => " OR ",
            };
            sql.list(separator, members, |sql, member| logic(sql, relation, member, embedded));
            sql.raw(")");
        }
        Logic::Filter { field, op } => filter(sql, relation, field, op),
        Logic::Embedded { exists, alias } => embedded(sql, *exists, alias),
    }
}

/// The test for an embedded resource where it is joined.
pub fn joined_embed_test(sql: &mut Sql, exists: bool, alias: &str) {
    sql.ident(alias).raw(if exists { " IS DISTINCT FROM NULL" } else { " IS NOT DISTINCT FROM NULL" });
}

/// A value, through the representation of its field if that has one.
fn value(sql: &mut Sql, resolved: &ResolvedField, text: &str) {
    match &resolved.transform {
        Some(function) => sql.catalog(function).raw("(").bind(text).raw(")"),
        None => sql.bind(text),
    };
}

fn filter(sql: &mut Sql, relation: &Relation, resolved: &ResolvedField, op: &OpExpr) {
    if op.negated {
        sql.raw("NOT ");
    }
    field(sql, relation, resolved);
    match &op.operation {
        Operation::Simple(simple, text) => {
            sql.raw(match simple {
                SimpleOp::NotEqual => " <> ",
                SimpleOp::Contains => " @> ",
                SimpleOp::Contained => " <@ ",
                SimpleOp::Overlap => " && ",
                SimpleOp::StrictlyLeft => " << ",
                SimpleOp::StrictlyRight => " >> ",
                SimpleOp::NotExtendsRight => " &< ",
                SimpleOp::NotExtendsLeft => " &> ",
                SimpleOp::Adjacent => " -|- ",
            });
            value(sql, resolved, text);
        }
        Operation::Quantified(quantified, quantifier, text) => {
            sql.raw(match quantified {
                QuantOp::Equal => " = ",
                QuantOp::GreaterOrEqual => " >= ",
                QuantOp::Greater => " > ",
                QuantOp::LessOrEqual => " <= ",
                QuantOp::Less => " < ",
                QuantOp::Like => " like ",
                QuantOp::ILike => " ilike ",
                QuantOp::Match => " ~ ",
                QuantOp::IMatch => " ~* ",
            });
            sql.raw(match quantifier {
                Some(Quantifier::Any) => "ANY(",
                Some(Quantifier::All) => "ALL(",
                None => "",
            });
            if matches!(quantified, QuantOp::Like | QuantOp::ILike) {
                sql.bind(&text.replace('*', "%"));
            } else {
                value(sql, resolved, text);
            }
            if quantifier.is_some() {
                sql.raw(")");
            }
        }
        // The operand of IS cannot be a parameter.
        Operation::Is(is) => {
            sql.raw(match is {
                IsValue::Null => " IS NULL",
                IsValue::NotNull => " IS NOT NULL",
                IsValue::True => " IS TRUE",
                IsValue::False => " IS FALSE",
                IsValue::Unknown => " IS UNKNOWN",
            });
        }
        Operation::IsDistinct(text) => {
            sql.raw(" IS DISTINCT FROM ").bind(text);
        }
        // One array parameter instead of a list: one statement whatever the length, and an empty one is legal.
        Operation::In(values) if values.len() == 1 && values[0].is_empty() => {
            sql.raw(" = ANY('{}')");
        }
        Operation::In(values) => {
            let literal = array_literal(values);
            match &resolved.transform {
                Some(function) => {
                    sql.raw(" = ANY ((SELECT ").catalog(function).raw("(unnest(").bind(&literal).raw("::text[]))))")
                }
                None => sql.raw(" = ANY (").bind(&literal).raw(")"),
            };
        }
        Operation::FullText(fts, language, text) => {
            sql.raw(match fts {
                FtsOp::Plain => " @@ to_tsquery(",
                FtsOp::PlainTo => " @@ plainto_tsquery(",
                FtsOp::PhraseTo => " @@ phraseto_tsquery(",
                FtsOp::WebSearch => " @@ websearch_to_tsquery(",
            });
            if let Some(language) = language {
                sql.bind(language).raw(", ");
            }
            sql.bind(text).raw(")");
        }
    }
}
