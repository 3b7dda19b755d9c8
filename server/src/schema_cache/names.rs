//! Names as the database spells them.

use std::fmt;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

/// An identifier, unquoted, case kept. Shared, so that plans can keep it without copying.
pub type Name = Arc<str>;

/// `schema.name` of a relation, function or type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct QualifiedName {
    pub schema: Name,
    pub name: Name,
}

impl QualifiedName {
    pub fn new(schema: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }

    pub fn is(&self, schema: &str, name: &str) -> bool {
        &*self.schema == schema && &*self.name == name
    }
}

impl fmt::Display for QualifiedName {
    /// For messages, unquoted; SQL text quotes its identifiers itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// Database objects by schema and name, looked up by borrowed text.
#[derive(Clone, Debug)]
pub struct ByName<T> {
    schemas: HashMap<Name, HashMap<Name, T>>,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self { schemas: HashMap::new() }
    }
}

impl<T> ByName<T> {
    pub fn get(&self, schema: &str, name: &str) -> Option<&T> {
        self.schemas.get(schema)?.get(name)
    }

    pub fn insert(&mut self, key: QualifiedName, value: T) -> Option<T> {
        self.schemas.entry(key.schema).or_default().insert(key.name, value)
    }

    /// The value under `key`, created if missing.
    pub fn entry(&mut self, key: QualifiedName) -> &mut T
    where
        T: Default,
    {
        self.schemas.entry(key.schema).or_default().entry(key.name).or_default()
    }

    /// All names in `schema`, in no order.
    pub fn in_schema<'a>(&'a self, schema: &str) -> impl Iterator<Item = (&'a Name, &'a T)> {
        self.schemas.get(schema).into_iter().flatten()
    }

    /// Everything, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name, &T)> {
        self.schemas
            .iter()
            .flat_map(|(schema, objects)| objects.iter().map(move |(name, object)| (schema, name, object)))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.schemas.values_mut().flat_map(HashMap::values_mut)
    }

    pub fn len(&self) -> usize {
        self.schemas.values().map(HashMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.schemas.values().all(HashMap::is_empty)
    }
}
