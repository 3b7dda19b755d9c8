//! `import`: imports a project of Supabase, hosted or not, or of another Ferrobase: roles, schema, rows, accounts with passwords
//! and sessions, files and keys. Users stay signed in.
//!
//! The whole content of the database is replaced in one transaction. A failed import changes nothing, and a repeated one ends in
//! the same state. A dump passes through [`stream`] (splits it into statements and rows), [`classify`] (tells the project's parts
//! from the platform's) and [`load`] (runs each part as the right role).

mod classify;
mod keys;
mod load;
mod source;
mod stream;
mod words;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tokio_postgres::Client;

use super::ask::answers_yes;
use super::running::Place;
use super::serve::Extent;
use super::start::in_background;
use super::target::{configuration, logins};
use super::{find, say, source};
use crate::audit::note_command;
use crate::cli::database::Database;
use crate::config::{Reader, Source};
use crate::db;
use crate::embedded_pg::Logins;
use crate::migrate::{self, GivenUrls};
use crate::project::Project;
use crate::storage::fetch::{self, fetch_files};
use crate::storage::{BackendConfig, Mode, StorageConfig};
use keys::Keys;
use load::Loader;
use source::Dump;

/// Records imported and existing accounts whose address was never proved.
const UNPROVED: &str = include_str!("../../../../../sql/auth/011_unproved_addresses.sql");

#[derive(Args)]
pub struct ImportArgs {
    /// The project's database, as postgresql://user:password@host:port/name with special characters percent-encoded. Use a
    /// connection that keeps sessions, such as Supabase's direct connection or session pooler
    #[arg(long, value_name = "URL", env = "FERROBASE_IMPORT_DB_URL", hide_env_values = true, conflicts_with = "dump")]
    db_url: Option<String>,
    /// A dump of it: SQL, an archive of pg_dump, or the output of 'supabase db dump'; several in the order roles, schema, rows
    #[arg(long, value_name = "FILE")]
    dump: Vec<PathBuf>,
    /// The URL of its API, to import files
    #[arg(long, value_name = "URL", env = "FERROBASE_IMPORT_STORAGE_URL", requires = "service_key")]
    storage_url: Option<String>,
    /// Its service_role or secret key
    #[arg(long, value_name = "KEY", env = "FERROBASE_IMPORT_SERVICE_KEY", hide_env_values = true)]
    service_key: Option<String>,
    /// Its JWT secret
    #[arg(long, value_name = "SECRET", env = "FERROBASE_IMPORT_JWT_SECRET", hide_env_values = true)]
    jwt_secret: Option<String>,
    /// Its signing keys, if it has some: a JSON array of private JWKs
    #[arg(long, value_name = "FILE")]
    signing_keys: Option<PathBuf>,
    /// Do not ask before existing data is replaced
    #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    yes: bool,
}

/// Whether a statement creates something of a project that belongs to a platform object or to no schema. Dumps of the project's
/// own schemas do not contain these.
pub fn is_projects_on_platform(sql: &str) -> bool {
    let is_kind = ["CREATE POLICY ", "CREATE TRIGGER ", "CREATE CONSTRAINT TRIGGER ", "CREATE EVENT TRIGGER "]
        .iter()
        .any(|start| sql.starts_with(start));
    is_kind && matches!(classify::classify(sql), classify::Action::Run { by: classify::By::Admin, .. })
}

/// Imports into the running project of this folder, or else into the database of the settings.
pub fn import(args: &ImportArgs, settings: &Source) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.db_url.is_some() || !args.dump.is_empty(),
        "name the project to be imported: its database by --db-url, or its dump by --dump"
    );
    let keys = Keys::read(args.jwt_secret.as_deref(), args.signing_keys.as_deref())?;
    let files = match (&args.storage_url, &args.service_key) {
        (Some(url), Some(key)) => Some((url.as_str(), key.as_str())),
        _ => None,
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let system = actix_web::rt::System::new();
    match find() {
        Ok(project) => {
            let logins = logins(&project)?;
            let store = store(&source(&project)?)?;
            let outcome = system.block_on(async {
                let outcome = bring_all(args, &logins, &store, files, &keys).await;
                note_command(&logins.admin_url, "import", "", outcome.is_ok()).await;
                outcome
            });
            // The imported data is served even if files are missing.
            if matches!(outcome, Ok(_) | Err(Failure::Files(_))) {
                serve_anew(&project, &keys)?;
            }
            Ok(outcome?)
        }
        Err(error) if error.is::<crate::project::ProjectError>() && !has_folder() => {
            let store = store(settings)?;
            let reader = Reader::new(settings);
            let secret = reader.text_or(&["JWT_SECRET", "GOTRUE_JWT_SECRET"], "");
            let given = GivenUrls::read(&reader);
            system.block_on(Database::with_or_new(settings, async |logins| {
                let urls = migrate::prepare(&logins.admin_url, &secret, &given).await?;
                migrate::auth(&urls.auth_url).await?;
                let outcome = bring_all(args, &logins, &store, files, &keys).await;
                note_command(&logins.admin_url, "import", "", outcome.is_ok()).await;
                Ok(outcome?)
            }))?;
            if !keys.is_empty() {
                say("Start the server with the same JWT_SECRET and GOTRUE_JWT_KEYS that the project had.");
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Whether there is a project whose configuration cannot be read.
fn has_folder() -> bool {
    let here = std::env::current_dir().unwrap_or_default();
    here.ancestors().any(|folder| folder.join("supabase").is_dir())
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Import(#[from] anyhow::Error),
    #[error(
        "{0} files could not be downloaded; the database is imported, and running the import again fetches the missing files"
    )]
    Files(usize),
}

async fn bring_all(
    args: &ImportArgs,
    logins: &Logins,
    store: &BackendConfig,
    files: Option<(&str, &str)>,
    keys: &Keys,
) -> Result<(), Failure> {
    let owner = owner_of(&logins.url)?;
    let client = connect(&logins.admin_url).await?;
    ask(&client, args.yes).await?;
    let mut loader = Loader::begin(client, &owner).await?;
    loader.clear().await?;
    match &args.db_url {
        Some(url) => {
            let (database, _client) = source::Database::open(url).await?;
            load(&mut loader, database.roles()?).await?;
            load(&mut loader, database.everything()?).await?;
        }
        None => {
            for dump in source::files(&args.dump)? {
                load(&mut loader, dump).await?;
            }
        }
    }
    let (client, left_out) = loader.commit(UNPROVED).await?;
    if let Some(secret) = &keys.secret {
        set_secret(&client, secret).await?;
    }
    client.batch_execute("analyze").await.map_err(anyhow::Error::from)?;
    for what in &left_out {
        say(&format!("Left out: {what}"));
    }
    say(&summary(&client).await?);
    let Some((url, key)) = files else { return Ok(()) };
    let source = fetch::Source::new(url, key)?;
    let fetched = fetch_files(&client, &source, store, |so_far| {
        say(&format!("{} files...", so_far.files + so_far.already_there));
    })
    .await?;
    fetched.missing.iter().for_each(|file| say(&format!("Missing: {file}")));
    say(&format!(
        "Downloaded {} files ({} bytes), {} already existed.",
        fetched.files, fetched.bytes, fetched.already_there
    ));
    if fetched.missing.is_empty() { Ok(()) } else { Err(Failure::Files(fetched.missing.len())) }
}

/// The secret is also a database setting, which functions of projects read.
async fn set_secret(client: &Client, secret: &str) -> anyhow::Result<()> {
    let text = "select format('alter database %I set app.settings.jwt_secret = %L', current_database(), $1::text)";
    let statement: String = client.query_one(text, &[&secret]).await?.get(0);
    Ok(client.batch_execute(&statement).await?)
}

async fn load(loader: &mut Loader, mut dump: Dump) -> anyhow::Result<()> {
    say(&format!("Importing {}...", dump.name));
    loader.load(&dump.name, &mut dump.stream).await.context("nothing was changed")?;
    dump.end()
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let mut config = configuration(url)?;
    if config.get_tcp_user_timeout().is_none() {
        // A trigger may keep PostgreSQL from reading a table's rows for longer.
        config.tcp_user_timeout(std::time::Duration::ZERO);
    }
    let (client, connection) =
        db::connect(&config).await.map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))?;
    actix_web::rt::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection of the import ended");
        }
    });
    Ok(client)
}

fn owner_of(url: &str) -> anyhow::Result<String> {
    Ok(configuration(url)?.get_user().context("the database's connection string names no user")?.to_owned())
}

/// Asks for confirmation if the database contains data.
async fn ask(client: &Client, is_confirmed: bool) -> anyhow::Result<()> {
    let row = client
        .query_one(
            "select (select count(*) from auth.users), (select count(*) from storage.objects),
               (select count(*) from pg_catalog.pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p'))",
            &[],
        )
        .await?;
    let (accounts, files, tables): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if accounts + files + tables == 0 || is_confirmed {
        return Ok(());
    }
    say(&format!(
        "The database here has {tables} tables, {accounts} accounts and {files} files. The import replaces all of them."
    ));
    anyhow::ensure!(answers_yes()?, "nothing was imported: confirm at the terminal, or with --yes");
    Ok(())
}

async fn summary(client: &Client) -> anyhow::Result<String> {
    let row = client
        .query_one(
            "select (select count(*) from auth.users), (select count(*) from auth.sessions), (select count(*) from storage.objects),
               (select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where c.relkind in ('r', 'p') and n.nspname = 'public')",
            &[],
        )
        .await?;
    let [accounts, sessions, files, tables] = [0, 1, 2, 3].map(|place| row.get::<_, i64>(place));
    Ok(format!(
        "Imported {accounts} accounts, {sessions} sessions, {tables} tables of public and the rows of {files} files."
    ))
}

fn store(source: &Source) -> anyhow::Result<BackendConfig> {
    let mut reader = Reader::new(source);
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = StorageConfig::read(&mut reader, &data_dir, Mode::Full);
    Ok(reader.finish(config)?.backend)
}

/// Stores the keys and restarts the server, so that it keeps nothing from before.
fn serve_anew(project: &Project, keys: &Keys) -> anyhow::Result<()> {
    if !keys.is_empty() {
        keys.keep(project)?;
    }
    let project = find()?;
    let place = Place::of(&project);
    let starting = place.starting()?;
    place.stop()?;
    in_background(&project, &Extent { until: None, has_seeds: false }, &starting)
}
