//! `gen …`: generates types of a database, signing keys and tokens.

use chrono::Duration;
use clap::{Args, Subcommand};

use super::signing_key::{SigningKeyArgs, signing_key};
use super::target::TargetArgs;
use super::token::{TokenArgs, bearer_jwt, duration};
use super::{find, open};
use crate::cli::database::block_on;
use crate::cli::types::{self, FormArgs, Language, SwiftAccess};

#[derive(Subcommand)]
pub enum GenCommand {
    /// Print a token for the project's APIs, for a role and a user
    BearerJwt(TokenArgs),
    /// Generate a private key for signing users' tokens
    SigningKey(SigningKeyArgs),
    /// Print types as 'supabase gen types' does
    Types(TypesArgs),
}

#[derive(Args)]
pub struct TypesArgs {
    /// Language of the types
    #[arg(long, value_enum, default_value_t)]
    lang: Language,
    /// The argument of older CLI versions
    #[arg(value_parser = ["typescript"], hide = true)]
    language: Option<String>,
    /// Schemas, separated by commas [default: public and those of the API]
    #[arg(short, long, value_delimiter = ',')]
    schema: Vec<String>,
    /// With '--lang swift', the access level of the types
    #[arg(long, value_enum, default_value_t)]
    swift_access_control: SwiftAccess,
    /// How long each query of the database may take, as 45s or 2m
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    query_timeout: Duration,
    #[command(flatten)]
    form: FormArgs,
    /// Refused: a project of the hosted platform
    #[arg(long, hide = true, value_name = "ID")]
    project_id: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

pub fn generate(command: GenCommand) -> anyhow::Result<()> {
    match command {
        GenCommand::BearerJwt(args) => bearer_jwt(args),
        GenCommand::SigningKey(args) => signing_key(&args),
        GenCommand::Types(args) => print_types(args),
    }
}

fn print_types(args: TypesArgs) -> anyhow::Result<()> {
    let TypesArgs { lang, mut schema, swift_access_control, query_timeout, form, target, project_id, .. } = args;
    anyhow::ensure!(
        project_id.is_none(),
        "there is no linked project: leave out --project-id for this folder's database, or name another by --db-url"
    );
    // With --db-url a project is optional. If there is one, it determines the default schemas.
    let project = if target.is_local() { Some(open()?) } else { find().ok() };
    let text = block_on(async {
        let target = target.reach(project.as_ref()).await?;
        let limit = format!("set statement_timeout = {}", query_timeout.num_milliseconds().max(1));
        target.client.batch_execute(&limit).await?;
        if schema.is_empty() {
            let exposed = project.map(|project| project.schemas()).unwrap_or_default();
            let of_api =
                "select nspname::text from pg_catalog.pg_namespace where nspname = any ($1) and nspname <> 'public'";
            let found = target.client.query(of_api, &[&exposed]).await?;
            schema = found.iter().map(|row| row.get(0)).chain(["public".to_owned()]).collect();
        }
        types::generate(&target.client, &form.of(schema), lang, swift_access_control).await
    })?;
    crate::cli::print_all(&text)
}
