//! Functions callable under `/rpc/`.

use serde::Serialize;

use super::{Name, QualifiedName};

/// A function of an exposed schema (`prokind = 'f'`), one entry per overload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Function {
    pub name: QualifiedName,
    pub description: Option<Name>,
    /// Input parameters in their order.
    pub parameters: Vec<Parameter>,
    pub returns: ReturnType,
    pub volatility: Volatility,
    pub has_variadic: bool,
    /// Its own `SET default_transaction_isolation`.
    pub isolation: Option<IsolationLevel>,
    /// Its own `SET` clauses that apply to the whole transaction (name, value).
    pub hoisted_settings: Vec<(Name, Name)>,
}

/// An input parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Parameter {
    /// Empty if it has none.
    pub name: Name,
    /// As spelled by `format_type`.
    pub type_name: Name,
    /// The type to bind a value as: `type_name`, but `bit` and `character` as their varying kinds, so that a
    /// longer value is not cut at their length of one.
    pub bind_type: Name,
    /// Has no default.
    pub required: bool,
    pub variadic: bool,
}

/// The result type of a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ReturnType {
    Single(ReturnKind),
    SetOf(ReturnKind),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ReturnKind {
    Scalar(QualifiedName),
    /// A row type, `TABLE (…)` or OUT parameters; `alias`: a domain over a composite type.
    Composite {
        name: QualifiedName,
        alias: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Volatility {
    Volatile,
    Stable,
    Immutable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum IsolationLevel {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl IsolationLevel {
    /// The value of `default_transaction_isolation`; unknown ones (`read uncommitted` among them) are the default.
    pub fn parse(text: &str) -> Self {
        match text.to_lowercase().as_str() {
            "repeatable read" => Self::RepeatableRead,
            "serializable" => Self::Serializable,
            _ => Self::ReadCommitted,
        }
    }

    /// For `BEGIN ISOLATION LEVEL …`.
    pub fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

impl ReturnType {
    pub fn kind(&self) -> &ReturnKind {
        match self {
            Self::Single(kind) | Self::SetOf(kind) => kind,
        }
    }

    pub fn is_set(&self) -> bool {
        matches!(self, Self::SetOf(_))
    }
}

impl Function {
    /// One value that is not a row, void included.
    pub fn returns_scalar(&self) -> bool {
        matches!(self.returns, ReturnType::Single(ReturnKind::Scalar(_)))
    }

    pub fn returns_set_of_scalar(&self) -> bool {
        matches!(self.returns, ReturnType::SetOf(ReturnKind::Scalar(_)))
    }

    pub fn returns_single_composite(&self) -> bool {
        matches!(self.returns, ReturnType::Single(ReturnKind::Composite { .. }))
    }

    /// Not `SETOF`, not `TABLE`.
    pub fn returns_single(&self) -> bool {
        matches!(self.returns, ReturnType::Single(_))
    }

    pub fn returns_void(&self) -> bool {
        matches!(&self.returns, ReturnType::Single(ReturnKind::Scalar(name)) if name.is("pg_catalog", "void"))
    }

    /// Name of the row type returned: the relation under which the result can embed others.
    pub fn returned_relation(&self) -> Option<&QualifiedName> {
        match self.returns.kind() {
            ReturnKind::Composite { name, .. } => Some(name),
            ReturnKind::Scalar(_) => None,
        }
    }

    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| &*parameter.name == name)
    }

    /// Whether a call with exactly these argument names matches this overload.
    ///
    /// `arguments` has no duplicates. A raw body matches no function without parameters.
    pub fn accepts(&self, arguments: &[&str], body: BodyKind) -> bool {
        if self.parameters.is_empty() {
            return arguments.is_empty() && !body.is_raw();
        }
        // An unnamed parameter among others cannot be given; it can only keep its default.
        let can_be_given = |argument: &str| self.parameters.len() == 1 || !argument.is_empty();
        arguments.iter().all(|argument| can_be_given(argument) && self.parameter(argument).is_some())
            && self.parameters.iter().filter(|p| p.required).all(|p| arguments.contains(&&*p.name))
    }

    /// Whether the whole body can be passed to its single, unnamed parameter.
    pub fn accepts_whole_body(&self, body: BodyKind) -> bool {
        match self.parameters.as_slice() {
            [parameter] if parameter.name.is_empty() => match body {
                BodyKind::Json => matches!(&*parameter.type_name, "json" | "jsonb"),
                BodyKind::Text => &*parameter.type_name == "text",
                BodyKind::Xml => &*parameter.type_name == "xml",
                BodyKind::Bytes => &*parameter.type_name == "bytea",
                BodyKind::Other => false,
            },
            _ => false,
        }
    }
}

/// The kind of a POST's body, for choosing a function; `Other` also for GET and HEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    Json,
    Text,
    Xml,
    Bytes,
    /// Forms, CSV, no body.
    Other,
}

impl BodyKind {
    /// Text, XML or bytes: passed whole or not at all.
    pub fn is_raw(self) -> bool {
        matches!(self, Self::Text | Self::Xml | Self::Bytes)
    }
}
