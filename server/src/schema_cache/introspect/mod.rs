//! Reads the schema cache from the system catalogs.
//!
//! The queries of [`rows`] run concurrently on the given connections, each in a read-only transaction with an empty search path, so
//! that PostgreSQL qualifies every name. [`assemble`] then resolves types, follows keys through views ([`node_tree`], [`keys`]) and
//! builds the cache.

mod assemble;
mod keys;
pub mod node_tree;
mod reader;
mod rows;

use tokio_postgres::Error;

pub use reader::Pace;
use reader::Reader;

use super::{Function, SchemaCache};
use crate::db::Client;

/// What to read.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Exposed schemas.
    pub schemas: Vec<String>,
    /// Further schemas whose views are followed for keys.
    pub extra_search_path: Vec<String>,
    /// Regular expressions (PostgreSQL's) over `name=value`: function settings that apply to the whole transaction.
    pub hoisted_settings: Vec<String>,
}

/// Compiling these queries takes longer than running them; sorting 100,000 columns should need no file.
const BEGIN: &str = "begin isolation level read committed read only; set local search_path = ''; \
                     set local jit = off; set local work_mem = '32MB'; set local cursor_tuple_fraction = 1";

/// Reads the whole cache over two connections, the second if there is one.
pub async fn load(first: &Client, second: Option<&Client>, scope: &Scope, pace: Pace) -> Result<SchemaCache, Error> {
    first.batch_execute(BEGIN).await?;
    if let Some(second) = second {
        second.batch_execute(BEGIN).await?;
    }
    let reader = |client| Reader { client, pace };
    let rows = read(reader(first), second.map(reader), scope).await;
    // End the transaction even if it failed; the first error is reported.
    let ended = first.batch_execute("commit").await;
    let ended = match second {
        Some(second) => ended.and(second.batch_execute("commit").await),
        None => ended,
    };
    let rows = rows?;
    ended?;
    Ok(SchemaCache::assemble(assemble::assemble(rows)))
}

async fn read(first: Reader<'_>, second: Option<Reader<'_>>, scope: &Scope) -> Result<assemble::Rows, Error> {
    let is_alone = second.is_none();
    let second = second.unwrap_or(first);
    let schemas = &scope.schemas;
    let view_schemas: Vec<String> = schemas.iter().chain(&scope.extra_search_path).cloned().collect();
    let mut names = rows::Interner::default();
    let mut more_names = rows::Interner::default();
    let wide = async {
        let columns = rows::columns(first, schemas, &mut names).await?;
        let enum_labels = rows::enum_labels(first, &mut names).await?;
        let constraints = rows::constraints(first, &mut names).await?;
        let representations = rows::representations(first, &mut names).await?;
        let schema_comments = rows::schema_comments(first, schemas, &mut names).await?;
        Ok::<_, Error>((columns, enum_labels, constraints, representations, schema_comments))
    };
    let narrow = async {
        let relations = rows::relations(second, schemas, &mut more_names).await?;
        let functions = rows::functions(second, schemas, &scope.hoisted_settings, &mut more_names).await?;
        let views = rows::views(second, &view_schemas)
            .await?
            .iter()
            .map(|row| Ok((row.try_get(0)?, node_tree::origins(row.try_get(1)?))))
            .collect::<Result<_, Error>>()?;
        let media_handlers = rows::media_handlers(second, schemas, &mut more_names).await?;
        Ok::<_, Error>((relations, functions, views, media_handlers))
    };
    let (wide, narrow) =
        if is_alone { (wide.await, narrow.await) } else { futures_util::future::join(wide, narrow).await };
    let (columns, enum_labels, constraints, representations, schema_comments) = wide?;
    let (relations, functions, views, media_handlers) = narrow?;
    // By oid: finding them in the catalogs would mean reading all columns again.
    let types = rows::types(first, &columns, &functions, &mut names).await?;
    Ok(assemble::Rows {
        schemas: schemas.clone(),
        relations,
        columns,
        types,
        enum_labels,
        constraints,
        views,
        functions,
        representations,
        media_handlers,
        schema_comments,
    })
}

/// The functions of `schema` that the current role may execute, in `client`'s transaction; types are spelled
/// according to its search path.
pub async fn load_executable_functions(client: &Client, schema: &str) -> Result<Vec<Function>, Error> {
    let mut names = rows::Interner::default();
    let schemas = [schema.to_owned()];
    let client = Reader { client, pace: Pace::AtOnce };
    let mut found = rows::functions(client, &schemas, &[], &mut names).await?;
    found.retain(|function| function.executable);
    let types = rows::types(client, &[], &found, &mut names).await?;
    Ok(assemble::functions(&found, &types))
}
