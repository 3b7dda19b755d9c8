//! The types of a plan, which is resolved against the schema cache and ready to be written as SQL.

use crate::rest::request::range::RowRange;
use crate::rest::request::types::*;
use crate::schema_cache::{Name, QualifiedName, Relationship};
use std::sync::Arc;

/// The common table expression with the result of a write or call.
pub const SOURCE: &str = "pgrst_source";

/// How a relation is named in SQL; an empty schema means an alias or a common table expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub schema: Name,
    pub name: Name,
}

impl Relation {
    pub fn new(schema: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }

    pub fn alias(name: impl Into<Name>) -> Self {
        Self::new("", name)
    }
}

impl From<&QualifiedName> for Relation {
    fn from(name: &QualifiedName) -> Self {
        Self { schema: name.schema.clone(), name: name.name.clone() }
    }
}

/// A column (or any name that PostgreSQL may resolve) with its known type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedField {
    pub name: String,
    pub path: Vec<JsonStep>,
    /// Arrows apply to `to_jsonb(column)` because the column is not known to be json.
    pub to_jsonb: bool,
    /// Wrap in `to_tsvector([language,] column)`.
    pub to_tsvector: Option<Option<String>>,
    /// The declared type, or the one a representation starts from; empty if unknown.
    pub type_name: Name,
    /// The function (SQL text) of a domain representation.
    pub transform: Option<Name>,
    /// SQL of the column's default.
    pub default: Option<Name>,
    /// The whole row rather than a column: what `count()` counts in a spread.
    pub full_row: bool,
}

impl ResolvedField {
    /// A name without known type.
    pub fn unknown(name: impl Into<String>, path: Vec<JsonStep>) -> Self {
        Self {
            name: name.into(),
            path,
            to_jsonb: false,
            to_tsvector: None,
            type_name: "".into(),
            transform: None,
            default: None,
            full_row: false,
        }
    }

    pub fn is_star(&self) -> bool {
        self.name == "*"
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectField {
    pub field: ResolvedField,
    pub aggregate: Option<Aggregate>,
    pub aggregate_cast: Option<CastName>,
    pub cast: Option<CastName>,
    pub alias: Option<String>,
}

impl SelectField {
    pub fn plain(field: ResolvedField) -> Self {
        Self { field, aggregate: None, aggregate_cast: None, cast: None, alias: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logic {
    Group {
        negated: bool,
        op: LogicOp,
        members: Vec<Logic>,
    },
    Filter {
        field: ResolvedField,
        op: OpExpr,
    },
    /// Whether the embedded resource under this alias has rows (`exists`) or none.
    Embedded {
        exists: bool,
        alias: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTerm {
    /// The alias of an embedded to-one resource that the field belongs to.
    pub embed: Option<String>,
    pub field: ResolvedField,
    pub direction: Option<Direction>,
    pub nulls: Option<Nulls>,
}

/// `left.column = right.column`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCondition {
    pub left: (Relation, Name),
    pub right: (Relation, Name),
}

/// How an embedded resource appears in its parent's select list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedSelect {
    Json {
        name: String,
        alias: String,
        to_one: bool,
        /// Joined for filtering only, shows nothing.
        hidden: bool,
    },
    Spread {
        columns: Vec<SpreadColumn>,
        alias: String,
    },
}

impl EmbedSelect {
    pub fn alias(&self) -> &str {
        match self {
            Self::Json { alias, .. } | Self::Spread { alias, .. } => alias,
        }
    }
}

/// A column lifted from a spread resource, with an aggregate that was hoisted to the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadColumn {
    pub name: String,
    pub aggregate: Option<Aggregate>,
    pub aggregate_cast: Option<CastName>,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    ToOne,
    /// Each column becomes an array; `extra` are columns selected only to order those arrays by (with the
    /// embedded resource they come from, if any).
    ToMany {
        extra: Vec<(Option<String>, SelectField)>,
        order: Vec<OrderTerm>,
    },
}

/// One level of a read: a relation, what is selected from it, and the resources embedded in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadNode {
    pub select: Vec<SelectField>,
    pub from: Relation,
    pub from_alias: Option<Name>,
    pub filters: Vec<Logic>,
    pub order: Vec<OrderTerm>,
    pub range: RowRange,
    /// The name under which the request embeds it.
    pub target: String,
    pub alias: Option<String>,
    pub hint: Option<String>,
    pub join: Option<JoinType>,
    pub spread: Option<Spread>,
    /// The relationship to the parent; none at the root.
    pub relationship: Option<Arc<Relationship>>,
    /// For a computed relationship: the name of the parent's row in SQL.
    pub row_argument: Option<Name>,
    pub join_conditions: Vec<JoinCondition>,
    /// The alias of the lateral join.
    pub aggregate_alias: String,
    pub embeds: Vec<EmbedSelect>,
    pub depth: usize,
    /// Referenced by its relation name although it has an alias.
    pub legacy_reference: bool,
    pub children: Vec<ReadNode>,
}

impl ReadNode {
    /// The number of embedded resources, and the depth of their nesting.
    pub fn embedded(&self) -> (usize, usize) {
        let of = |child: &Self| {
            let (count, depth) = child.embedded();
            (count + 1, depth + 1)
        };
        self.children.iter().map(of).fold((0, 0), |(count, depth), (more, deep)| (count + more, depth.max(deep)))
    }

    /// The key under which it appears, and by which filters refer to it.
    pub fn shown_name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.target)
    }
}
