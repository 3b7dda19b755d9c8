//! `ferrobase types typescript`: writes the same file as `supabase gen types typescript`.

mod catalog;
mod layout;
mod order;
mod typescript;

use super::database::{Database, block_on};
use crate::config::{Reader, Source};
use crate::db;
use catalog::Catalog;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum TypesCommand {
    /// TypeScript, on standard output
    Typescript {
        /// Schemas to include, comma-separated or repeated [default: those the API exposes]
        #[arg(long = "schema", short = 's', value_delimiter = ',', value_name = "SCHEMA")]
        schemas: Vec<String>,
    },
}

pub fn run(command: TypesCommand, source: &Source) -> anyhow::Result<()> {
    let TypesCommand::Typescript { mut schemas } = command;
    if schemas.is_empty() {
        let exposed = Reader::new(source).list(&["PGRST_DB_SCHEMAS", "PGRST_DB_SCHEMA"]);
        schemas = exposed.unwrap_or_else(|| vec!["public".to_owned(), "graphql_public".to_owned()]);
    }
    let text = block_on(Database::with(source, async |database| typescript(&database.url, &schemas).await))?;
    super::print_all(&text)
}

/// What the generated file tells supabase-js about the REST server.
const POSTGREST_VERSION: &str = "14.1";

/// The TypeScript types of `schemas` in the database behind `url`; needs its owner's rights.
pub async fn typescript(url: &str, schemas: &[String]) -> anyhow::Result<String> {
    let client = db::connect_client(&url.parse()?)
        .await
        .map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))?;
    let catalog = Catalog::load(&client, schemas).await?;
    if let Some(missing) = schemas.iter().find(|name| !catalog.schemas.contains(name)) {
        anyhow::bail!("there is no schema named '{missing}' in the database");
    }
    Ok(typescript::generate(&catalog, POSTGREST_VERSION))
}
