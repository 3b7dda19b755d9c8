//! Domain representations and media-type handlers.

use std::collections::HashMap;

use serde::Serialize;

use super::{ByName, Name, QualifiedName};

/// Implicit casts between domains and json or text, by (source type, target type) as `format_type` spells them.
#[derive(Clone, Debug, Default)]
pub struct Representations {
    functions: HashMap<(Name, Name), Name>,
}

impl Representations {
    /// `function` is SQL text: quoted where necessary.
    pub fn insert(&mut self, source: Name, target: Name, function: Name) {
        self.functions.insert((source, target), function);
    }

    /// The cast function (SQL text) from one type to another.
    pub fn find(&self, source: &str, target: &str) -> Option<&Name> {
        if self.functions.is_empty() {
            return None;
        }
        self.functions.get(&(Name::from(source), Name::from(target)))
    }

    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name, &Name)> {
        self.functions.iter().map(|((source, target), function)| (source, target, function))
    }
}

/// A domain named like a media type, and its handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MediaHandler {
    /// An aggregate over a relation's rows; for a function that returns the domain itself, the domain.
    pub function: QualifiedName,
    /// The handler's input: a relation's row, any row, or the result of a function.
    pub target: HandlerTarget,
    /// The media type the response names by default: that of the domain, `application/octet-stream` for `*/*`.
    pub content_type: Name,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum HandlerTarget {
    /// A relation or a function of that name.
    Named(QualifiedName),
    AnyElement,
}

/// Handlers by input and media type (lower case, including `*/*`).
#[derive(Clone, Debug, Default)]
pub struct MediaHandlers {
    named: ByName<HashMap<Name, MediaHandler>>,
    any: HashMap<Name, MediaHandler>,
}

impl MediaHandlers {
    pub fn insert(&mut self, media_type: Name, handler: MediaHandler) {
        match &handler.target {
            HandlerTarget::Named(name) => self.named.entry(name.clone()).insert(media_type, handler),
            HandlerTarget::AnyElement => self.any.insert(media_type, handler),
        };
    }

    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.named.is_empty()
    }

    /// For the rows of one relation, or the result of one function.
    pub fn named(&self, schema: &str, name: &str, media_type: &str) -> Option<&MediaHandler> {
        self.named.get(schema, name)?.get(media_type)
    }

    /// For any row.
    pub fn any(&self, media_type: &str) -> Option<&MediaHandler> {
        self.any.get(media_type)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, &MediaHandler)> {
        self.named.iter().flat_map(|(_, _, handlers)| handlers).chain(&self.any)
    }
}
