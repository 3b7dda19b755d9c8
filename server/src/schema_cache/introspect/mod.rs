//! Reads the schema cache from the system catalogs.
//!
//! The queries of [`rows`] run side by side on the connections given, each in a read-only transaction with an
//! empty search path, so that PostgreSQL spells every name with its schema. [`assemble`] then resolves types,
//! follows keys through views ([`node_tree`], [`keys`]) and names what it found.

mod assemble;
mod keys;
mod node_tree;
mod rows;

use tokio_postgres::{Client, Error};

use super::{Function, SchemaCache};

/// What to read.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Exposed schemas.
    pub schemas: Vec<String>,
    /// Keys are followed through views of these, too.
    pub extra_search_path: Vec<String>,
    /// Regular expressions (PostgreSQL's) over `name=value`: settings of functions that hold for the transaction.
    pub hoisted_settings: Vec<String>,
}

/// Compiling these queries takes longer than running them; sorting 100,000 columns should need no file.
const BEGIN: &str = "begin isolation level read committed read only; set local search_path = ''; \
                     set local jit = off; set local work_mem = '32MB'";

/// Reads the whole cache over two connections; the same one may be given twice.
pub async fn load(first: &Client, second: &Client, scope: &Scope) -> Result<SchemaCache, Error> {
    let shared = std::ptr::eq(first, second);
    first.batch_execute(BEGIN).await?;
    if !shared {
        second.batch_execute(BEGIN).await?;
    }
    let rows = read(first, second, scope).await;
    // A failed transaction is ended all the same; the first error is the one to report.
    let ended = first.batch_execute("commit").await;
    let ended = if shared { ended } else { ended.and(second.batch_execute("commit").await) };
    let rows = rows?;
    ended?;
    Ok(SchemaCache::assemble(assemble::assemble(rows)))
}

async fn read(first: &Client, second: &Client, scope: &Scope) -> Result<assemble::Rows, Error> {
    let schemas = &scope.schemas;
    let view_schemas: Vec<String> = schemas.iter().chain(&scope.extra_search_path).cloned().collect();
    let mut names = rows::Interner::default();
    let mut more_names = rows::Interner::default();
    let wide = async {
        let columns = rows::columns(first, schemas, &mut names).await?;
        let enum_labels = rows::enum_labels(first, &mut names).await?;
        let constraints = rows::constraints(first, &mut names).await?;
        Ok::<_, Error>((columns, enum_labels, constraints))
    };
    let narrow = async {
        let relations = rows::relations(second, schemas, &mut more_names).await?;
        let functions = rows::functions(second, schemas, &scope.hoisted_settings, &mut more_names).await?;
        let views = rows::views(second, &view_schemas)
            .await?
            .iter()
            .map(|row| Ok((row.try_get(0)?, node_tree::origins(row.try_get(1)?))))
            .collect::<Result<_, Error>>()?;
        let representations = rows::representations(second, &mut more_names).await?;
        let media_handlers = rows::media_handlers(second, schemas, &mut more_names).await?;
        let schema_comments = rows::schema_comments(second, schemas, &mut more_names).await?;
        Ok::<_, Error>((relations, functions, views, representations, media_handlers, schema_comments))
    };
    let (wide, narrow) = futures_util::future::join(wide, narrow).await;
    let (columns, enum_labels, constraints) = wide?;
    let (relations, functions, views, representations, media_handlers, schema_comments) = narrow?;
    // Asked for by number: to find them in the catalogs would mean to read all columns once more.
    let types = rows::types(first, &columns, &functions, &mut names).await?;
    Ok(assemble::Rows {
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

/// The functions of `schema` that the acting role may execute, in the transaction that `client` is in; types are
/// spelled as its search path has them.
pub async fn load_executable_functions(client: &Client, schema: &str) -> Result<Vec<Function>, Error> {
    let mut names = rows::Interner::default();
    let schemas = [schema.to_owned()];
    let mut found = rows::functions(client, &schemas, &[], &mut names).await?;
    found.retain(|function| function.executable);
    let types = rows::types(client, &[], &found, &mut names).await?;
    Ok(assemble::functions(&found, &types))
}
