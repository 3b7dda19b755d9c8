//! `ferrobase types typescript`: writes the same file as `supabase gen types typescript`.

mod catalog;
mod layout;
mod not_null;
mod order;
mod typescript;

use super::database::{Database, block_on};
use crate::config::{Reader, Source};
use crate::db;
use catalog::Catalog;
pub use catalog::Wanted;
use clap::{Args, Subcommand, ValueEnum};

/// Both are Supabase's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// postgres-meta's, also of hosted projects and of the CLI up to 2.121
    #[default]
    PostgresMeta,
    /// The one that the Supabase CLI 2.122 and 3 print, after a formatter: with ComputedFields, and columns of views that can
    /// hold no null
    Cli,
}

/// How types are printed.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FormArgs {
    /// Whose text is printed
    #[arg(long, value_enum, default_value_t)]
    form: Form,
    /// With '--form postgres-meta' also relationships that views show of tables in schemas that were not asked for
    #[arg(long)]
    all_relationships: bool,
}

impl FormArgs {
    pub fn of(self, schemas: Vec<String>) -> Wanted {
        let has_all_relationships = self.all_relationships || self.form == Form::Cli;
        Wanted { schemas, form: self.form, has_all_relationships }
    }
}

#[derive(Subcommand)]
pub enum TypesCommand {
    /// TypeScript, on standard output
    Typescript {
        /// Schemas to include, comma-separated or repeated [default: those the API exposes]
        #[arg(long = "schema", short = 's', value_delimiter = ',', value_name = "SCHEMA")]
        schemas: Vec<String>,
        #[command(flatten)]
        form: FormArgs,
    },
}

pub fn run(command: TypesCommand, source: &Source) -> anyhow::Result<()> {
    let TypesCommand::Typescript { mut schemas, form } = command;
    if schemas.is_empty() {
        let exposed = Reader::new(source).list(&["PGRST_DB_SCHEMAS", "PGRST_DB_SCHEMA"]);
        schemas = exposed.unwrap_or_else(|| vec!["public".to_owned(), "graphql_public".to_owned()]);
    }
    let wanted = form.of(schemas);
    let text = block_on(Database::with(source, async |database| typescript(&database.url, &wanted).await))?;
    super::print_all(&text)
}

/// What the generated file tells supabase-js about the REST server.
const POSTGREST_VERSION: &str = "14.1";

/// The TypeScript types of the wanted schemas in the database behind `url`; needs its owner's rights.
pub async fn typescript(url: &str, wanted: &Wanted) -> anyhow::Result<String> {
    let client = db::connect_client(&url.parse()?)
        .await
        .map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))?;
    let catalog = Catalog::load(&client, wanted).await?;
    if let Some(missing) = wanted.schemas.iter().find(|name| !catalog.schemas.contains(name)) {
        anyhow::bail!("there is no schema named '{missing}' in the database");
    }
    Ok(typescript::generate(&catalog, POSTGREST_VERSION))
}
