//! Aggregates inside to-one spreads belong to the level that shows them.
//!
//! `select=client_id,...invoices(total.sum())` means the sum per client, not per invoice: the aggregate moves
//! up until it reaches the root or a level that becomes an object or an array.
//!
//! Reference: PostgREST `src/library/PostgREST/Plan.hs` (`hoistSpreadAggFunctions`).

use super::types::*;
use crate::rest::request::types::{Aggregate, CastName};

/// An aggregate on its way up: the alias of the join it comes from, the column there, and what to apply.
struct Hoisted {
    from: String,
    column: String,
    aggregate: Aggregate,
    cast: Option<CastName>,
    alias: Option<String>,
}

pub fn hoist_aggregates(root: &mut ReadNode) {
    lift(root);
}

fn lift(node: &mut ReadNode) -> Vec<Hoisted> {
    let from_children: Vec<Hoisted> = node.children.iter_mut().flat_map(lift).collect();
    let to_one_spread = node.spread == Some(Spread::ToOne);
    if node.depth == 0 || !to_one_spread {
        for embed in &mut node.embeds {
            apply(embed, &from_children);
        }
        return Vec::new();
    }
    let mut hoisted = Vec::new();
    for item in &mut node.select {
        let Some(aggregate) = item.aggregate.take() else { continue };
        hoisted.push(Hoisted {
            from: node.aggregate_alias.clone(),
            column: item.alias.clone().unwrap_or_else(|| item.field.name.clone()),
            aggregate,
            cast: item.aggregate_cast.take(),
            alias: item.alias.clone(),
        });
    }
    hoisted.extend(from_children.into_iter().map(|child| Hoisted { from: node.aggregate_alias.clone(), ..child }));
    hoisted
}

fn apply(embed: &mut EmbedSelect, hoisted: &[Hoisted]) {
    let EmbedSelect::Spread { columns, alias } = embed else { return };
    for column in columns {
        if let Some(found) = hoisted.iter().find(|h| h.from == *alias && h.column == column.name) {
            column.aggregate = Some(found.aggregate);
            column.aggregate_cast = found.cast.clone();
            column.alias = found.alias.clone();
        }
    }
}
