//! Relationships between relations, as embedding resolves them.

use serde::Serialize;

use super::{Name, QualifiedName};

/// A column of the origin and the one of the target (or junction) that it is joined to.
pub type ColumnPair = (Name, Name);

/// A relationship from one relation (`origin`) to another (`target`).
///
/// The order is the one in which candidates of an ambiguous embedding are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Relationship {
    /// From foreign keys.
    Detected {
        origin: QualifiedName,
        target: QualifiedName,
        /// Origin and target are the same relation.
        is_self: bool,
        cardinality: Cardinality,
        origin_is_view: bool,
        target_is_view: bool,
    },
    /// A function of one argument, from a row of `origin` to rows of `target`.
    Computed { function: QualifiedName, origin: QualifiedName, target: QualifiedName, to_one: bool, is_self: bool },
}

/// The cardinality. Column pairs are (origin's, target's), in the order of the foreign key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Cardinality {
    OneToMany {
        constraint: Name,
        columns: Vec<ColumnPair>,
    },
    ManyToOne {
        constraint: Name,
        columns: Vec<ColumnPair>,
    },
    /// `is_parent`: the foreign key lies in the target.
    OneToOne {
        constraint: Name,
        columns: Vec<ColumnPair>,
        is_parent: bool,
    },
    ManyToMany(Junction),
}

/// The table between the two sides of a many-to-many relationship.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Junction {
    pub table: QualifiedName,
    /// Foreign key from the junction to the origin.
    pub origin_constraint: Name,
    /// Foreign key from the junction to the target.
    pub target_constraint: Name,
    /// (origin's column, junction's column)
    pub origin_columns: Vec<ColumnPair>,
    /// (target's column, junction's column)
    pub target_columns: Vec<ColumnPair>,
}

impl Relationship {
    pub fn origin(&self) -> &QualifiedName {
        match self {
            Self::Detected { origin, .. } | Self::Computed { origin, .. } => origin,
        }
    }

    pub fn target(&self) -> &QualifiedName {
        match self {
            Self::Detected { target, .. } | Self::Computed { target, .. } => target,
        }
    }

    pub fn is_self(&self) -> bool {
        match self {
            Self::Detected { is_self, .. } | Self::Computed { is_self, .. } => *is_self,
        }
    }

    /// At most one target row per origin row.
    pub fn is_to_one(&self) -> bool {
        match self {
            Self::Detected { cardinality, .. } => {
                matches!(cardinality, Cardinality::ManyToOne { .. } | Cardinality::OneToOne { .. })
            }
            Self::Computed { to_one, .. } => *to_one,
        }
    }

    /// The schema that must be active for the relationship to be visible.
    pub fn seen_from(&self) -> &Name {
        match self {
            Self::Detected { target, .. } => &target.schema,
            Self::Computed { function, .. } => &function.schema,
        }
    }

    /// Whether `select=target!hint(…)` on the origin means this relationship.
    ///
    /// Reference: PostgREST `Plan.hs`, `findRel`.
    pub fn matches(&self, wanted: &str, hint: Option<&str>) -> bool {
        match self {
            Self::Computed { function, .. } => &*function.name == wanted,
            Self::Detected { target, is_self: true, cardinality, .. } => match hint {
                None => match cardinality {
                    Cardinality::OneToMany { .. } => &*target.name == wanted,
                    Cardinality::ManyToOne { .. } => cardinality.has_origin_column(wanted),
                    _ => false,
                },
                Some(hint) => {
                    &*target.name == wanted
                        && matches!(cardinality, Cardinality::OneToMany { .. })
                        && cardinality.has_target_column(hint)
                }
            },
            Self::Detected { target, is_self: false, cardinality, target_is_view, .. } => match hint {
                None => {
                    &*target.name == wanted
                        || !target_is_view
                            && (cardinality.has_constraint(wanted) || cardinality.has_origin_column(wanted))
                }
                Some(hint) => {
                    &*target.name == wanted
                        && (cardinality.has_constraint(hint)
                            || cardinality.has_origin_column(hint)
                            || cardinality.has_target_column(hint)
                            || cardinality.has_junction(hint))
                }
            },
        }
    }
}

impl Cardinality {
    /// Pairs of a foreign-key relationship; none for many-to-many.
    pub fn columns(&self) -> &[ColumnPair] {
        match self {
            Self::OneToMany { columns, .. } | Self::ManyToOne { columns, .. } | Self::OneToOne { columns, .. } => {
                columns
            }
            Self::ManyToMany(_) => &[],
        }
    }

    /// Name of the foreign key; none for many-to-many.
    pub fn constraint(&self) -> Option<&Name> {
        match self {
            Self::OneToMany { constraint, .. }
            | Self::ManyToOne { constraint, .. }
            | Self::OneToOne { constraint, .. } => Some(constraint),
            Self::ManyToMany(_) => None,
        }
    }

    /// As error details spell it.
    pub fn label(&self) -> &'static str {
        match self {
            Self::OneToMany { .. } => "one-to-many",
            Self::ManyToOne { .. } => "many-to-one",
            Self::OneToOne { .. } => "one-to-one",
            Self::ManyToMany(_) => "many-to-many",
        }
    }

    fn has_constraint(&self, name: &str) -> bool {
        self.constraint().is_some_and(|constraint| &**constraint == name)
    }

    fn has_origin_column(&self, name: &str) -> bool {
        matches!(self.columns(), [(column, _)] if &**column == name)
    }

    fn has_target_column(&self, name: &str) -> bool {
        matches!(self.columns(), [(_, column)] if &**column == name)
    }

    fn has_junction(&self, name: &str) -> bool {
        matches!(self, Self::ManyToMany(junction) if &*junction.table.name == name)
    }
}
