//! Resolves names to column types and domain representations.

use std::sync::Arc;

use super::types::{Logic, OrderTerm, ResolvedField};
use crate::rest::request::types::{Field, Filter, LogicTree, OpExpr, Operation, OrderItem};
use crate::schema_cache::{Column, SchemaCache, Table};

/// Resolves names as columns of one relation, if that is known.
#[derive(Clone, Copy)]
pub struct Resolver<'a> {
    pub cache: &'a SchemaCache,
    pub table: Option<&'a Arc<Table>>,
}

impl<'a> Resolver<'a> {
    pub fn new(cache: &'a SchemaCache, schema: &str, relation: &str) -> Self {
        Self { cache, table: cache.find_table(schema, relation) }
    }

    /// A column as the database declares it.
    pub fn column(column: &Column) -> ResolvedField {
        ResolvedField {
            type_name: column.nominal_type.clone(),
            default: column.default.clone(),
            ..ResolvedField::unknown(&*column.name, Vec::new())
        }
    }

    /// A name in a select list, filter or order. Unknown names pass: PostgreSQL may know them as computed
    /// fields.
    pub fn field(&self, field: &Field, full_text_language: Option<Option<String>>) -> ResolvedField {
        let column = self.table.and_then(|table| table.column(&field.name));
        let mut resolved = match column {
            Some(column) => Self::column(column),
            None => ResolvedField::unknown(&field.name, Vec::new()),
        };
        resolved.path = field.path.clone();
        resolved.to_jsonb = !matches!(&*resolved.type_name, "json" | "jsonb");
        resolved.to_tsvector =
            full_text_language.filter(|_| column.is_some_and(|column| &*column.base_type != "tsvector"));
        resolved
    }

    fn transformed(&self, mut field: ResolvedField, source: &str, target: &str) -> ResolvedField {
        if let Some(function) = self.cache.representations().find(source, target) {
            field.transform = Some(function.clone());
            field.type_name = source.into();
        }
        field
    }

    /// As shown in a JSON answer.
    pub fn output(&self, field: ResolvedField) -> ResolvedField {
        let source = field.type_name.clone();
        self.transformed(field, &source, "json")
    }

    /// As taken from a JSON body.
    pub fn json_input(&self, field: ResolvedField) -> ResolvedField {
        let target = field.type_name.clone();
        self.transformed(field, "json", &target)
    }

    pub fn filter(&self, filter: &Filter) -> Logic {
        let language = match &filter.op {
            OpExpr { operation: Operation::FullText(_, language, _), .. } => Some(language.clone()),
            _ => None,
        };
        let field = self.field(&filter.field, language);
        let target = field.type_name.clone();
        Logic::Filter { field: self.transformed(field, "text", &target), op: filter.op.clone() }
    }

    pub fn logic(&self, tree: &LogicTree) -> Logic {
        match tree {
            LogicTree::Filter(filter) => self.filter(filter),
            LogicTree::Group { negated, op, members } => Logic::Group {
                negated: *negated,
                op: *op,
                members: members.iter().map(|member| self.logic(member)).collect(),
            },
        }
    }

    pub fn order(&self, item: &OrderItem) -> OrderTerm {
        let field = match item.embed {
            Some(_) => ResolvedField::unknown(&item.field.name, item.field.path.clone()),
            None => self.field(&item.field, None),
        };
        OrderTerm { embed: item.embed.clone(), field, direction: item.direction, nulls: item.nulls }
    }
}
