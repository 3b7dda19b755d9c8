//! The tree of a read: select, embeds, filters, order and ranges, each on the level it belongs to.
//!
//! Reference: PostgREST `src/library/PostgREST/Plan.hs` (`readPlan` and the steps it composes). The steps and
//! their order are the reference's, because they decide which of several errors is reported.

use super::alias::own_name;
use super::resolve::Resolver;
use super::types::*;
use super::{PlanRules, hoist};
use crate::rest::error::{ApiError, ReadLimitFault};
use crate::rest::request::query::{self, QueryParams};
use crate::rest::request::range::RowRange;
use crate::rest::request::types::*;
use crate::rest::request::{Action, ApiRequest};
use crate::schema_cache::{Cardinality, Name, Relationship, SchemaCache};

/// Plans reading `relation` of the request's schema (for a write or call: reading its result).
pub fn plan_read(
    request: &ApiRequest,
    relation: &str,
    schema: &Name,
    cache: &SchemaCache,
    rules: &PlanRules,
) -> Result<ReadNode, ApiError> {
    let planner = Planner {
        query: &request.query,
        mutates: matches!(request.action, Action::Mutate { .. }),
        reads_relation: matches!(request.action, Action::Read { .. }),
        schema,
        cache,
        rules,
        root: Resolver::new(cache, schema, relation),
    };
    let mut root = planner.tree(relation);
    let (embeds, depth) = root.embedded();
    for (asked, most, kind) in
        [(depth, rules.limit.depth, ReadLimitFault::Depth), (embeds, rules.limit.embeds, ReadLimitFault::Embeds)]
    {
        if most > 0 && asked > most {
            return Err(ApiError::TooDear { kind, asked: asked as f64, most: most as f64 });
        }
    }
    planner.add_filters(&mut root)?;
    planner.add_orders(&mut root)?;
    planner.add_ranges(&mut root)?;
    planner.add_logic(&mut root)?;
    planner.add_relationships(&mut root)?;
    planner.expand_stars(&mut root, false);
    add_aliases(&mut root);
    add_related_orders(&mut root)?;
    add_embed_tests(&mut root);
    add_embed_selects(&mut root);
    if !rules.aggregates {
        refuse_aggregates(&root)?;
    }
    hoist::hoist_aggregates(&mut root);
    order_spreads(&mut root)?;
    if !planner.mutates {
        cap_ranges(&mut root, rules.max_rows);
    }
    Ok(root)
}

struct Planner<'a> {
    query: &'a QueryParams,
    mutates: bool,
    reads_relation: bool,
    schema: &'a Name,
    cache: &'a SchemaCache,
    rules: &'a PlanRules,
    root: Resolver<'a>,
}

impl Planner<'_> {
    fn node(&self, target: &str, depth: usize) -> ReadNode {
        ReadNode {
            select: Vec::new(),
            from: Relation::new(self.schema.clone(), target),
            from_alias: None,
            filters: Vec::new(),
            order: Vec::new(),
            range: RowRange::ALL,
            target: target.to_owned(),
            alias: None,
            hint: None,
            join: None,
            spread: None,
            relationship: None,
            row_argument: None,
            join_conditions: Vec::new(),
            aggregate_alias: String::new(),
            embeds: Vec::new(),
            depth,
            legacy_reference: false,
            children: Vec::new(),
        }
    }

    fn resolver(&self, node: &ReadNode) -> Resolver<'_> {
        Resolver::new(self.cache, &node.from.schema, &node.from.name)
    }

    fn tree(&self, relation: &str) -> ReadNode {
        let mut root = self.node(relation, 0);
        self.add_items(&mut root, &self.query.select);
        root
    }

    fn add_items(&self, node: &mut ReadNode, items: &[SelectItem]) {
        let resolver = self.resolver(node);
        for item in items {
            match item {
                SelectItem::Field { field, aggregate, aggregate_cast, cast, alias } => {
                    let field = resolver.output(resolver.field(field, None));
                    node.select.push(SelectField {
                        field,
                        aggregate: *aggregate,
                        aggregate_cast: aggregate_cast.clone(),
                        cast: cast.clone(),
                        alias: alias.clone(),
                    });
                }
                SelectItem::Embed { target, alias, hint, join, spread, select } => {
                    let mut child = self.node(target, node.depth + 1);
                    child.alias = alias.clone();
                    child.hint = hint.clone();
                    child.join = *join;
                    child.spread = spread.then_some(Spread::ToOne);
                    self.add_items(&mut child, select);
                    node.children.push(child);
                }
            }
        }
    }

    /// The node that `path` leads to. Each node on the way moves to the front of its siblings, as in the
    /// reference, where that decides the order of columns.
    fn find<'n>(&self, node: &'n mut ReadNode, path: &[String]) -> Result<&'n mut ReadNode, ApiError> {
        let Some((name, rest)) = path.split_first() else { return Ok(node) };
        let legacy = self.rules.legacy_target_names;
        let matches = |child: &ReadNode| child.shown_name() == name || (legacy && child.target == *name);
        let Some(position) = node.children.iter().position(matches) else {
            let renamed = node
                .children
                .iter()
                .find(|child| !legacy && child.target == *name)
                .and_then(|child| child.alias.clone().map(|alias| (child.target.clone(), alias)));
            return Err(ApiError::NotEmbedded { name: name.clone(), renamed });
        };
        node.children[..=position].rotate_right(1);
        let child = &mut node.children[0];
        if child.target == *name && child.alias.as_ref().is_some_and(|alias| alias != name) {
            child.legacy_reference = true;
        }
        self.find(child, rest)
    }

    fn add_filters(&self, root: &mut ReadNode) -> Result<(), ApiError> {
        // In reverse, each prepended, so that the last wrong path is reported.
        for (path, filter) in self.query.filters.iter().rev().filter(|(path, _)| !self.mutates || !path.is_empty()) {
            let node = self.find(root, path)?;
            let filter = self.resolver(node).filter(filter);
            node.filters.insert(0, filter);
        }
        Ok(())
    }

    fn add_logic(&self, root: &mut ReadNode) -> Result<(), ApiError> {
        for (path, tree) in self.query.logic.iter().rev().filter(|(path, _)| !self.mutates || !path.is_empty()) {
            let node = self.find(root, path)?;
            let tree = self.resolver(node).logic(tree);
            node.filters.insert(0, tree);
        }
        Ok(())
    }

    fn add_orders(&self, root: &mut ReadNode) -> Result<(), ApiError> {
        // In reverse, so that the first `order` of a level wins.
        for (path, items) in self.query.order.iter().rev() {
            let node = self.find(root, path)?;
            node.order = items.iter().map(|item| self.root.order(item)).collect();
        }
        Ok(())
    }

    fn add_ranges(&self, root: &mut ReadNode) -> Result<(), ApiError> {
        if self.mutates {
            return Ok(());
        }
        let mut ranges = Vec::new();
        for (level, range) in &self.query.ranges {
            ranges.push((query::range_path(level)?, *range));
        }
        for (path, range) in &ranges {
            self.find(root, path)?.range = *range;
        }
        Ok(())
    }

    fn add_relationships(&self, root: &mut ReadNode) -> Result<(), ApiError> {
        if !self.reads_relation {
            let relation = std::mem::replace(&mut root.from, Relation::alias(SOURCE));
            root.from_alias = Some(relation.name);
        }
        self.join_children(root)
    }

    fn join_children(&self, parent: &mut ReadNode) -> Result<(), ApiError> {
        // An alias may stand for the relation only at the root, where it names the result of a write or call.
        let origin = match &parent.from_alias {
            Some(alias) if parent.depth == 0 => alias.clone(),
            _ => parent.from.name.clone(),
        };
        let parent_alias = parent.from_alias.clone();
        for child in &mut parent.children {
            let relationship =
                self.cache.require_relationship(self.schema, &origin, &child.target, child.hint.as_deref())?;
            join(child, relationship, parent_alias.as_ref());
            self.join_children(child)?;
        }
        Ok(())
    }

    /// Replaces `*` by the columns if a representation, an aggregate or a to-many spread needs their names.
    fn expand_stars(&self, node: &mut ReadNode, within_aggregate: bool) {
        let named = within_aggregate
            || node.select.iter().any(|item| item.aggregate.is_some())
            || matches!(node.spread, Some(Spread::ToMany { .. }));
        let table = match (&node.from, &node.from_alias) {
            (from, Some(alias)) if from.schema.is_empty() && &*from.name == SOURCE => {
                self.cache.find_table(self.schema, alias)
            }
            (from, _) => self.cache.find_table(&from.schema, &from.name),
        };
        let columns = table.map(|table| table.columns()).unwrap_or_default();
        let resolver = Resolver { cache: self.cache, table };
        let spread = node.spread.is_some();
        let has_star = node.select.iter().any(|item| {
            item.field.is_star() && (item.aggregate.is_none() || spread && item.aggregate == Some(Aggregate::Count))
        });
        let represented = || {
            !self.cache.representations().is_empty()
                && columns.iter().any(|c| self.cache.representations().find(&c.nominal_type, "json").is_some())
        };
        if has_star && (named || represented()) {
            let mut select = Vec::with_capacity(node.select.len());
            for mut item in std::mem::take(&mut node.select) {
                let star = item.field.is_star() && item.field.path.is_empty();
                match item.aggregate {
                    None if star => select.extend(columns.iter().map(|column| SelectField {
                        field: resolver.output(Resolver::column(column)),
                        ..item.clone()
                    })),
                    Some(Aggregate::Count) if star && spread => {
                        item.field.full_row = true;
                        select.push(item);
                    }
                    _ => select.push(item),
                }
            }
            node.select = select;
        }
        for child in &mut node.children {
            self.expand_stars(child, named);
        }
    }
}

/// Ties `child` to its parent by `relationship`.
fn join(child: &mut ReadNode, relationship: &std::sync::Arc<Relationship>, parent_alias: Option<&Name>) {
    let target = relationship.target();
    let depth = child.depth;
    let alias: Name = own_name(format!("{}_{depth}", target.name)).into();
    child.aggregate_alias = own_name(format!("{}_{}_{depth}", relationship.origin().name, child.shown_name()));
    child.from = target.into();
    let parent = |qualified: &crate::schema_cache::QualifiedName| {
        parent_alias.map_or_else(|| qualified.into(), |alias| Relation::alias(alias.clone()))
    };
    match &**relationship {
        Relationship::Computed { origin, .. } => {
            child.from_alias = Some(alias);
            child.row_argument = Some(parent_alias.unwrap_or(&origin.name).clone());
        }
        Relationship::Detected { origin, cardinality: Cardinality::ManyToMany(junction), .. } => {
            let through = Relation::from(&junction.table);
            let target_side = junction.target_columns.iter().map(|(column, junction_column)| JoinCondition {
                left: (through.clone(), junction_column.clone()),
                right: (Relation::from(target), column.clone()),
            });
            let origin_side = junction.origin_columns.iter().map(|(column, junction_column)| JoinCondition {
                left: (through.clone(), junction_column.clone()),
                right: (parent(origin), column.clone()),
            });
            child.join_conditions = target_side.chain(origin_side).collect();
        }
        Relationship::Detected { origin, cardinality, .. } => {
            child.join_conditions = cardinality
                .columns()
                .iter()
                .map(|(column, target_column)| JoinCondition {
                    left: (Relation::alias(alias.clone()), target_column.clone()),
                    right: (parent(origin), column.clone()),
                })
                .collect();
            child.from_alias = Some(alias);
        }
    }
    if child.spread.is_some() && !relationship.is_to_one() {
        child.spread = Some(Spread::ToMany { extra: Vec::new(), order: Vec::new() });
    }
    child.relationship = Some(relationship.clone());
}

/// Adds names that the client did not give: for JSON paths, representations, and aggregates in spreads.
fn add_aliases(node: &mut ReadNode) {
    let spread = node.spread.is_some();
    for item in &mut node.select {
        if item.alias.is_some() {
            continue;
        }
        item.alias = match item.aggregate {
            Some(aggregate) => spread.then(|| aggregate.name().to_owned()),
            None if !item.field.path.is_empty() => last_key(&item.field),
            None if item.field.transform.is_some() => Some(item.field.name.clone()),
            None => None,
        };
    }
    node.children.iter_mut().for_each(add_aliases);
}

/// The last key of a JSON path; for an index, the key before it, else the column.
fn last_key(field: &ResolvedField) -> Option<String> {
    let key = field.path.iter().rev().find_map(|step| match &step.operand {
        JsonOperand::Key(key) => Some(key.clone()),
        JsonOperand::Index(_) => None,
    });
    key.or_else(|| Some(field.name.clone()))
}

fn add_related_orders(node: &mut ReadNode) -> Result<(), ApiError> {
    let children = &node.children;
    for term in &mut node.order {
        let Some(wanted) = &term.embed else { continue };
        let Some(child) = children.iter().find(|child| child.shown_name() == wanted) else {
            return Err(ApiError::NotEmbedded { name: wanted.clone(), renamed: None });
        };
        if !child.relationship.as_ref().is_some_and(|relationship| relationship.is_to_one()) {
            return Err(ApiError::RelatedOrder {
                origin: node.from.name.to_string(),
                target: child.shown_name().to_owned(),
            });
        }
        term.embed = Some(child.aggregate_alias.clone());
    }
    node.children.iter_mut().try_for_each(add_related_orders)
}

/// Turns `embed=is.null` into a test on the join.
fn add_embed_tests(node: &mut ReadNode) {
    fn rewrite(logic: &mut Logic, children: &[ReadNode]) {
        match logic {
            Logic::Group { members, .. } => members.iter_mut().for_each(|member| rewrite(member, children)),
            Logic::Filter { field, op } if field.path.is_empty() => {
                let child = children.iter().find(|child| child.shown_name() == field.name);
                if let (Some(child), Operation::Is(IsValue::Null)) = (child, &op.operation) {
                    *logic = Logic::Embedded { exists: op.negated, alias: child.aggregate_alias.clone() };
                }
            }
            Logic::Filter { .. } | Logic::Embedded { .. } => {}
        }
    }
    for logic in &mut node.filters {
        rewrite(logic, &node.children);
    }
    node.children.iter_mut().for_each(add_embed_tests);
}

fn add_embed_selects(node: &mut ReadNode) {
    node.children.iter_mut().for_each(add_embed_selects);
    node.embeds = node.children.iter().map(embed_select).collect();
}

fn embed_select(child: &ReadNode) -> EmbedSelect {
    let alias = child.aggregate_alias.clone();
    if child.spread.is_some() {
        return EmbedSelect::Spread { columns: spread_columns(child), alias };
    }
    EmbedSelect::Json {
        name: child.shown_name().to_owned(),
        alias,
        to_one: child.relationship.as_ref().is_some_and(|relationship| relationship.is_to_one()),
        hidden: selects_nothing(child),
    }
}

/// Whether neither it nor its embeds select a column.
fn selects_nothing(node: &ReadNode) -> bool {
    node.select.is_empty() && node.children.iter().all(selects_nothing)
}

fn spread_columns(node: &ReadNode) -> Vec<SpreadColumn> {
    let column =
        |name: &str| SpreadColumn { name: name.to_owned(), aggregate: None, aggregate_cast: None, alias: None };
    let own = node.select.iter().map(|item| column(item.alias.as_deref().unwrap_or(&item.field.name)));
    let embedded = node.embeds.iter().flat_map(|embed| match embed {
        EmbedSelect::Json { name, .. } => vec![column(name)],
        EmbedSelect::Spread { columns, .. } => columns.clone(),
    });
    own.chain(embedded).collect()
}

fn refuse_aggregates(node: &ReadNode) -> Result<(), ApiError> {
    if node.select.iter().any(|item| item.aggregate.is_some()) {
        return Err(ApiError::Aggregates);
    }
    node.children.iter().try_for_each(refuse_aggregates)
}

/// A to-many spread is ordered where its arrays are made; the ordering columns are selected for that.
fn order_spreads(node: &mut ReadNode) -> Result<(), ApiError> {
    if let Some(Spread::ToMany { .. }) = node.spread {
        let aggregated = node.select.iter().any(|item| item.aggregate.is_some())
            || node.embeds.iter().any(|embed| match embed {
                EmbedSelect::Spread { columns, .. } => columns.iter().any(|column| column.aggregate.is_some()),
                EmbedSelect::Json { .. } => false,
            });
        if aggregated {
            return Err(ApiError::SpreadAggregates);
        }
        let (mut extra, mut order) = (Vec::new(), Vec::new());
        for (n, term) in std::mem::take(&mut node.order).into_iter().enumerate() {
            let alias = own_name(format!("{}_{}_{}", node.aggregate_alias, term.field.name, n + 1));
            let item = SelectField { alias: Some(alias.clone()), ..SelectField::plain(term.field) };
            extra.push((term.embed, item));
            order.push(OrderTerm {
                embed: None,
                field: ResolvedField::unknown(alias, Vec::new()),
                direction: term.direction,
                nulls: term.nulls,
            });
        }
        node.spread = Some(Spread::ToMany { extra, order });
    }
    node.children.iter_mut().try_for_each(order_spreads)
}

fn cap_ranges(node: &mut ReadNode, max_rows: Option<u64>) {
    node.range = node.range.cap(max_rows);
    node.children.iter_mut().for_each(|child| cap_ranges(child, max_rows));
}
