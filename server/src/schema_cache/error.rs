//! Errors for names that are missing or ambiguous in the cache: `PGRST200` to `PGRST205`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BodyKind, Cardinality, Function, Name, Relationship};

/// A name of the request that the cache cannot resolve. Rendered by the REST API's error type; the texts are
/// the reference's (PostgREST `Error.hs`).
#[derive(Clone, Debug, PartialEq)]
pub enum LookupError {
    RelationshipNotFound {
        origin: Name,
        target: Name,
        hint: Option<Name>,
        schema: Name,
        suggestion: Option<String>,
    },
    AmbiguousRelationship {
        origin: Name,
        target: Name,
        candidates: Vec<Arc<Relationship>>,
    },
    FunctionNotFound {
        schema: Name,
        function: Name,
        /// Sorted, see [`shown_list`].
        arguments: Vec<Name>,
        body: BodyKind,
        is_post: bool,
        suggestion: Option<String>,
    },
    AmbiguousFunction {
        candidates: Vec<Arc<Function>>,
    },
    ColumnNotFound {
        table: Name,
        column: Name,
    },
    TableNotFound {
        schema: Name,
        table: Name,
        suggestion: Option<String>,
    },
}

/// How much of the names that a request made up is repeated in an error, in bytes: a body has them at any length. The names of
/// the 100 parameters that a function can have fit. PostgREST has no limit.
const SHOWN: usize = 8 << 10;

/// The argument names of a call for its error: together cut at [`SHOWN`], with an ellipsis.
pub(super) fn shown_list(names: &[&str]) -> Vec<Name> {
    let (mut shown, mut room) = (Vec::new(), SHOWN);
    for name in names {
        shown.push(cut(name, room));
        if name.len() > room {
            break;
        }
        room = room.saturating_sub(name.len() + ", ".len());
    }
    shown
}

fn cut(name: &str, room: usize) -> Name {
    if name.len() <= room { name.into() } else { format!("{}…", &name[..name.floor_char_boundary(room)]).into() }
}

impl LookupError {
    /// `column`, however long, is not one of `table`.
    pub fn column_not_found(table: &Name, column: &str) -> Self {
        Self::ColumnNotFound { table: table.clone(), column: cut(column, SHOWN) }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::RelationshipNotFound { .. } => "PGRST200",
            Self::AmbiguousRelationship { .. } => "PGRST201",
            Self::FunctionNotFound { .. } => "PGRST202",
            Self::AmbiguousFunction { .. } => "PGRST203",
            Self::ColumnNotFound { .. } => "PGRST204",
            Self::TableNotFound { .. } => "PGRST205",
        }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::AmbiguousRelationship { .. } | Self::AmbiguousFunction { .. } => 300,
            Self::RelationshipNotFound { .. } | Self::ColumnNotFound { .. } => 400,
            Self::FunctionNotFound { .. } | Self::TableNotFound { .. } => 404,
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::RelationshipNotFound { origin, target, .. } => {
                format!("Could not find a relationship between '{origin}' and '{target}' in the schema cache")
            }
            Self::AmbiguousRelationship { origin, target, .. } => {
                format!("Could not embed because more than one relationship was found for '{origin}' and '{target}'")
            }
            Self::FunctionNotFound { schema, function, arguments, body, is_post, .. } => {
                let list = if *is_post && body.is_raw() {
                    String::new()
                } else if arguments.is_empty() {
                    " without parameters".to_owned()
                } else {
                    format!("({})", arguments.join(", "))
                };
                format!("Could not find the function {schema}.{function}{list} in the schema cache")
            }
            Self::AmbiguousFunction { candidates } => {
                let signatures: Vec<String> = candidates.iter().map(|function| signature(function)).collect();
                format!("Could not choose the best candidate function between: {}", signatures.join(", "))
            }
            Self::ColumnNotFound { table, column } => {
                format!("Could not find the '{column}' column of '{table}' in the schema cache")
            }
            Self::TableNotFound { schema, table, .. } => {
                format!("Could not find the table '{schema}.{table}' in the schema cache")
            }
        }
    }

    /// A text, or a list of candidates.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::RelationshipNotFound { origin, target, hint, schema, .. } => {
                let hint = hint.as_ref().map(|hint| format!("' using the hint '{hint}")).unwrap_or_default();
                Some(Value::String(format!(
                    "Searched for a foreign key relationship between '{origin}' and '{target}{hint}' \
                     in the schema '{schema}', but no matches were found."
                )))
            }
            Self::AmbiguousRelationship { candidates, .. } => {
                Some(candidates.iter().map(|relationship| describe(relationship)).collect())
            }
            Self::FunctionNotFound { schema, function, arguments, body, is_post, .. } => {
                let named = if arguments.is_empty() {
                    " without parameters".to_owned()
                } else {
                    let plural = if arguments.len() > 1 { "s" } else { "" };
                    format!(" with parameter{plural} {}", arguments.join(", "))
                };
                let searched = match (is_post, body) {
                    (true, BodyKind::Text) => " with a single unnamed text parameter".to_owned(),
                    (true, BodyKind::Xml) => " with a single unnamed xml parameter".to_owned(),
                    (true, BodyKind::Bytes) => " with a single unnamed bytea parameter".to_owned(),
                    (true, BodyKind::Json) => format!("{named} or with a single unnamed json/jsonb parameter"),
                    (true, BodyKind::Other) | (false, _) => named,
                };
                Some(Value::String(format!(
                    "Searched for the function {schema}.{function}{searched}, \
                     but no matches were found in the schema cache."
                )))
            }
            Self::AmbiguousFunction { .. } | Self::ColumnNotFound { .. } | Self::TableNotFound { .. } => None,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::RelationshipNotFound { suggestion, .. } => suggestion.clone(),
            Self::AmbiguousRelationship { target, candidates, .. } => {
                let choices: Vec<String> = candidates.iter().map(|r| disambiguation(r)).collect();
                Some(format!(
                    "Try changing '{target}' to one of the following: {}. \
                     Find the desired relationship in the 'details' key.",
                    choices.join(", ")
                ))
            }
            Self::FunctionNotFound { body, is_post, .. } if *is_post && body.is_raw() => None,
            Self::FunctionNotFound { suggestion, .. } | Self::TableNotFound { suggestion, .. } => suggestion.clone(),
            Self::AmbiguousFunction { .. } => Some(
                "Try renaming the parameters or the function itself in the database \
                 so function overloading can be resolved"
                    .to_owned(),
            ),
            Self::ColumnNotFound { .. } => None,
        }
    }
}

fn signature(function: &Function) -> String {
    let parameters: Vec<String> =
        function.parameters.iter().map(|p| format!("{} => {}", p.name, p.type_name)).collect();
    format!("{}({})", function.name, parameters.join(", "))
}

fn describe(relationship: &Relationship) -> Value {
    let Relationship::Detected { origin, target, cardinality, .. } = relationship else { return json!({}) };
    fn list<'a>(names: impl Iterator<Item = &'a Name>) -> String {
        format!("({})", names.map(|name| &**name).collect::<Vec<_>>().join(", "))
    }
    let text = match cardinality {
        Cardinality::ManyToMany(junction) => format!(
            "{} using {}{} and {}{}",
            junction.table.name,
            junction.origin_constraint,
            list(junction.origin_columns.iter().map(|(_, column)| column)),
            junction.target_constraint,
            list(junction.target_columns.iter().map(|(_, column)| column)),
        ),
        Cardinality::OneToMany { constraint, columns }
        | Cardinality::ManyToOne { constraint, columns }
        | Cardinality::OneToOne { constraint, columns, .. } => format!(
            "{constraint} using {}{} and {}{}",
            origin.name,
            list(columns.iter().map(|(column, _)| column)),
            target.name,
            list(columns.iter().map(|(_, column)| column)),
        ),
    };
    json!({
        "cardinality": cardinality.label(),
        "embedding": format!("{} with {}", origin.name, target.name),
        "relationship": text,
    })
}

/// Computed relationships are candidates too, but have no text here.
fn disambiguation(relationship: &Relationship) -> String {
    let Relationship::Detected { target, cardinality, .. } = relationship else { return String::new() };
    let hint = match cardinality {
        Cardinality::ManyToMany(junction) => &junction.table.name,
        Cardinality::OneToMany { constraint, .. }
        | Cardinality::ManyToOne { constraint, .. }
        | Cardinality::OneToOne { constraint, .. } => constraint,
    };
    format!("'{}!{hint}'", target.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nothing_can_have_are_cut() {
        let texts = |names: &[&str]| shown_list(names).iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(texts(&["a", "b"]), ["a", "b"]);
        let long = "ä".repeat(SHOWN);
        let shown = texts(&["a", &long, "b"]);
        assert_eq!((shown.len(), shown[0].as_str(), shown[1].ends_with("ä…")), (2, "a", true));
        let shown = texts(&vec!["a"; 20_000]);
        assert_eq!(shown.last().map(String::as_str), Some("…"));
        assert!(shown.join(", ").len() < SHOWN + 10, "{}", shown.join(", ").len());
        // The longest call that there can be.
        let names: Vec<String> = (0..100).map(|n| format!("{n:0>63}")).collect();
        assert_eq!(texts(&names.iter().map(String::as_str).collect::<Vec<_>>()), names);
        let message = LookupError::column_not_found(&"plants".into(), &long).message();
        assert!(message.ends_with("ä…' column of 'plants' in the schema cache") && message.len() < SHOWN + 100);
    }
}
