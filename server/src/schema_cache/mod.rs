//! The database schema: relations, relationships and functions. It is loaded in the background and replaced as a whole.
//!
//! [`SchemaCache`] has everything that planning a request needs, without a query. [`introspect`] reads it from the catalogs.
//! [`SchemaCacheHandle`] holds the newest one.
//! Reference: PostgREST `SchemaCache.hs`.

mod error;
mod function;
mod hints;
pub mod introspect;
mod names;
mod relationship;
mod representation;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

pub use error::LookupError;
pub use function::{BodyKind, Function, IsolationLevel, Parameter, ReturnKind, ReturnType, Volatility};
pub use names::{ByName, Name, QualifiedName};
pub use relationship::{Cardinality, ColumnPair, Junction, Relationship};
pub use representation::{HandlerTarget, MediaHandler, MediaHandlers, Representations};
pub use table::{Column, Table, TableKind};

/// The database as seen by requests. Immutable.
#[derive(Debug, Default)]
pub struct SchemaCache {
    /// The number of this load; plans from an older one are invalid. Set by [`SchemaCacheHandle::store`].
    pub epoch: u64,
    tables: ByName<Arc<Table>>,
    /// By origin; sorted.
    relationships: ByName<Vec<Arc<Relationship>>>,
    /// Overloads together, fewest parameters first.
    functions: ByName<Vec<Arc<Function>>>,
    representations: Representations,
    media_handlers: MediaHandlers,
    /// Comments on the exposed schemas.
    schema_comments: HashMap<Name, Name>,
}

/// The parts of a [`SchemaCache`].
#[derive(Debug, Default)]
pub struct CacheParts {
    pub tables: Vec<Table>,
    pub relationships: Vec<Relationship>,
    pub functions: Vec<Function>,
    pub representations: Representations,
    pub media_handlers: MediaHandlers,
    pub schema_comments: HashMap<Name, Name>,
}

impl SchemaCache {
    pub fn assemble(parts: CacheParts) -> Self {
        let mut cache = Self {
            representations: parts.representations,
            media_handlers: parts.media_handlers,
            schema_comments: parts.schema_comments,
            ..Self::default()
        };
        for table in parts.tables {
            cache.tables.insert(table.name.clone(), Arc::new(table));
        }
        for relationship in parts.relationships {
            cache.relationships.entry(relationship.origin().clone()).push(Arc::new(relationship));
        }
        for relationships in cache.relationships.values_mut() {
            relationships.sort();
            relationships.shrink_to_fit();
        }
        for function in parts.functions {
            cache.functions.entry(function.name.clone()).push(Arc::new(function));
        }
        for overloads in cache.functions.values_mut() {
            overloads.sort_by(|a, b| a.parameters.len().cmp(&b.parameters.len()).then_with(|| a.cmp(b)));
        }
        cache
    }

    /// The relation, or `PGRST205`.
    pub fn require_table(&self, schema: &str, name: &str) -> Result<&Arc<Table>, LookupError> {
        self.find_table(schema, name).ok_or_else(|| LookupError::TableNotFound {
            schema: schema.into(),
            table: name.into(),
            suggestion: hints::similar_table(self, schema, name),
        })
    }

    pub fn find_table(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(schema, name)
    }

    /// All relations, in no order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.iter().map(|(_, _, table)| table)
    }

    /// Relations of `schema`, in no order.
    pub fn tables_in(&self, schema: &str) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.in_schema(schema).map(|(_, table)| table)
    }

    /// What `origin?select=target!hint(…)` means in `schema`: one relationship, or `PGRST200`, `PGRST201`.
    pub fn require_relationship<'a>(
        &'a self,
        schema: &str,
        origin: &str,
        target: &str,
        hint: Option<&str>,
    ) -> Result<&'a Arc<Relationship>, LookupError> {
        let found: Vec<_> = self.relationships_of(schema, origin).filter(|r| r.matches(target, hint)).collect();
        match found.as_slice() {
            [] => Err(LookupError::RelationshipNotFound {
                origin: origin.into(),
                target: target.into(),
                hint: hint.map(Into::into),
                schema: schema.into(),
                suggestion: hints::similar_relation(self, schema, origin, target),
            }),
            [one] => Ok(*one),
            _ => Err(LookupError::AmbiguousRelationship {
                origin: origin.into(),
                target: target.into(),
                candidates: found.into_iter().cloned().collect(),
            }),
        }
    }

    /// Relationships of a relation that can be seen when `schema` is the active one, in their order.
    pub fn relationships_of<'a, 's>(
        &'a self,
        schema: &'s str,
        origin: &str,
    ) -> impl Iterator<Item = &'a Arc<Relationship>> + use<'a, 's> {
        self.relationships
            .get(schema, origin)
            .into_iter()
            .flatten()
            .filter(move |relationship| &**relationship.seen_from() == schema)
    }

    /// Every relationship, in no order.
    pub fn relationships(&self) -> impl Iterator<Item = &Arc<Relationship>> {
        self.relationships.iter().flat_map(|(_, _, relationships)| relationships)
    }

    /// The overload that takes exactly these arguments, or `PGRST202`, `PGRST203`.
    ///
    /// `arguments` is sorted and has no duplicates. If no overload matches by names, a function with a
    /// single unnamed parameter is used if it accepts the body (`BodyKind::Other` for GET). Types are never
    /// considered. `is_post` only affects the error's text.
    pub fn require_function(
        &self,
        schema: &str,
        name: &str,
        arguments: &[&str],
        body: BodyKind,
        is_post: bool,
    ) -> Result<&Arc<Function>, LookupError> {
        let overloads = self.overloads(schema, name);
        let mut found: Vec<_> = overloads.iter().filter(|function| function.accepts(arguments, body)).collect();
        if found.is_empty() && is_post {
            found = overloads.iter().filter(|function| function.accepts_whole_body(body)).collect();
        }
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(LookupError::FunctionNotFound {
                schema: schema.into(),
                function: name.into(),
                arguments: error::shown_list(arguments),
                body,
                is_post,
                suggestion: hints::similar_function(self, schema, name, arguments),
            }),
            _ => Err(LookupError::AmbiguousFunction { candidates: found.into_iter().cloned().collect() }),
        }
    }

    /// All functions of that name, fewest parameters first.
    pub fn overloads(&self, schema: &str, name: &str) -> &[Arc<Function>] {
        self.functions.get(schema, name).map_or(&[], Vec::as_slice)
    }

    /// All functions, in no order, overloads one after another.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.iter().flat_map(|(_, _, overloads)| overloads)
    }

    /// Functions of `schema`, in no order, overloads one after another.
    pub fn functions_in(&self, schema: &str) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.in_schema(schema).flat_map(|(_, overloads)| overloads)
    }

    pub fn representations(&self) -> &Representations {
        &self.representations
    }

    pub fn media_handlers(&self) -> &MediaHandlers {
        &self.media_handlers
    }

    /// `COMMENT ON SCHEMA`.
    pub fn schema_comment(&self, schema: &str) -> Option<&Name> {
        self.schema_comments.get(schema)
    }

    /// The number of objects of each kind, for the log.
    pub fn summary(&self) -> String {
        format!(
            "{} relations, {} relationships, {} functions, {} domain representations, {} media type handlers",
            self.tables.len(),
            self.relationships().count(),
            self.functions().count(),
            self.representations.iter().count(),
            self.media_handlers.iter().count(),
        )
    }
}

/// Holds the newest cache; empty until the first load succeeds. Cheap to clone.
#[derive(Clone, Default)]
pub struct SchemaCacheHandle {
    current: Arc<ArcSwapOption<SchemaCache>>,
    epoch: Arc<AtomicU64>,
}

impl SchemaCacheHandle {
    /// The current cache; a request keeps one for all its stages.
    pub fn load(&self) -> Option<Arc<SchemaCache>> {
        self.current.load_full()
    }

    /// Makes an earlier cache current again; returns the replaced one.
    pub fn put_back(&self, cache: Arc<SchemaCache>) -> Option<Arc<SchemaCache>> {
        self.current.swap(Some(cache))
    }

    /// Makes `cache` the newest, with the next number; returns the previous one.
    pub fn store(&self, mut cache: SchemaCache) -> Option<Arc<SchemaCache>> {
        cache.epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        self.current.swap(Some(Arc::new(cache)))
    }
}
