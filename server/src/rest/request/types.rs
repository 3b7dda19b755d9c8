//! The types of a parsed query string. Names are as written; nothing is known to exist yet.

/// A column with an optional path into its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub path: Vec<JsonStep>,
}

/// One arrow of a JSON path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonStep {
    /// `->>` (text) rather than `->` (json).
    pub as_text: bool,
    pub operand: JsonOperand,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonOperand {
    Key(String),
    /// A signed integer as text; PostgreSQL does the range check.
    Index(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Sum,
    Avg,
    Max,
    Min,
    Count,
}

impl Aggregate {
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Sum => "sum",
            Aggregate::Avg => "avg",
            Aggregate::Max => "max",
            Aggregate::Min => "min",
            Aggregate::Count => "count",
        }
    }
}

/// The name of a type in a cast. The grammar allows only letters, digits, `_`, `$` and spaces, so it is
/// safe unquoted in SQL (`int`, `double precision` would not work quoted).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastName(String);

impl CastName {
    /// `None` if `text` has any other character.
    pub fn new(text: &str) -> Option<Self> {
        let safe = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ' ');
        text.chars().all(safe).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
}

/// One item of `select`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectItem {
    Field {
        field: Field,
        aggregate: Option<Aggregate>,
        aggregate_cast: Option<CastName>,
        cast: Option<CastName>,
        alias: Option<String>,
    },
    Embed {
        target: String,
        alias: Option<String>,
        hint: Option<String>,
        join: Option<JoinType>,
        /// `...target(…)`: its columns are lifted into the parent.
        spread: bool,
        select: Vec<SelectItem>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Asc,
    Desc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    First,
    Last,
}

/// One item of `order`; with `embed`, a column of that embedded to-one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderItem {
    pub embed: Option<String>,
    pub field: Field,
    pub direction: Option<Direction>,
    pub nulls: Option<Nulls>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub field: Field,
    pub op: OpExpr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpExpr {
    pub negated: bool,
    pub operation: Operation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Simple(SimpleOp, String),
    Quantified(QuantOp, Option<Quantifier>, String),
    In(Vec<String>),
    Is(IsValue),
    IsDistinct(String),
    FullText(FtsOp, Option<String>, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Any,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsValue {
    Null,
    NotNull,
    True,
    False,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimpleOp {
    NotEqual,
    Contains,
    Contained,
    Overlap,
    StrictlyLeft,
    StrictlyRight,
    NotExtendsRight,
    NotExtendsLeft,
    Adjacent,
}

/// Operators that take `(any)` and `(all)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantOp {
    Equal,
    GreaterOrEqual,
    Greater,
    LessOrEqual,
    Less,
    Like,
    ILike,
    Match,
    IMatch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtsOp {
    Plain,
    PlainTo,
    PhraseTo,
    WebSearch,
}

/// `and(…)`, `or(…)` and what they join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogicTree {
    Group { negated: bool, op: LogicOp, members: Vec<LogicTree> },
    Filter(Filter),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicOp {
    And,
    Or,
}

/// Where a filter, order or limit belongs: the names of the embedded levels, from the root; empty = the root.
pub type EmbedPath = Vec<String>;
