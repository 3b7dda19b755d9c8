//! The commands of the binary. Exit codes: 0 success, 1 failure, 2 wrong usage. Errors are one line on stderr.

mod audit;
mod backup;
mod card;
mod connection;
mod database;
mod doctor;
mod healthcheck;
mod keys;
mod migrate;
mod project;
mod restore;
mod serve;
mod stop;
mod storage;
pub mod types;
mod upgrade;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::config::Source;

#[derive(Parser)]
#[command(name = "ferrobase", version, about = "A self-hosted, Supabase-compatible backend on PostgreSQL")]
struct Cli {
    /// Settings file; the environment wins over it [default: ferrobase.toml if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    like_supabase: project::GlobalArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the APIs and the web app (the default command)
    Serve(serve::ServeArgs),
    /// Bring a database up to date: platform, auth, then a folder of migrations
    Migrate(migrate::MigrateArgs),
    /// Load demo data into a database that holds no accounts of people
    Seed(migrate::SeedArgs),
    /// Generate types from the database, as 'supabase gen types' does
    #[command(subcommand)]
    Types(types::TypesCommand),
    /// Generate, show or rotate API keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// The files behind /storage/v1
    #[command(subcommand)]
    Storage(storage::StorageCommand),
    /// Copy database, files and keys into one encrypted archive, while the server runs
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty data folder
    Restore(restore::RestoreArgs),
    /// Upgrade a database to this version: the embedded PostgreSQL's major version, and the platform's schemas
    Upgrade(upgrade::UpgradeArgs),
    /// Check configuration and database for what is missing or too permissive
    Doctor(doctor::DoctorArgs),
    /// Show who changed something with a service key or by a command
    Audit(audit::AuditArgs),
    /// Check that the running server is healthy; for containers
    Healthcheck,
    /// Make a new project in this folder: supabase/config.toml with the defaults
    Init(project::InitArgs),
    /// Serve the project of this folder (supabase/) in the background, as 'supabase start' does
    Start(project::StartArgs),
    /// Stop what 'start' has started; the data is kept
    Stop(project::StopArgs),
    /// Run a command, such as a test suite, with a fresh copy of this folder's project
    Test(project::TestArgs),
    /// Show where the project of this folder is served, and its keys
    Status(project::StatusArgs),
    /// The project's database
    #[command(subcommand)]
    Db(project::DbCommand),
    /// Import a hosted or self-hosted Supabase project: accounts, sessions, tables, rows, files
    Import(project::ImportArgs),
    /// The project's migrations
    #[command(subcommand, alias = "migrations")]
    Migration(project::MigrationCommand),
    /// The project's edge functions
    #[command(subcommand)]
    Functions(project::FunctionsCommand),
    /// Reports about the project's database
    #[command(subcommand)]
    Inspect(project::InspectCommand),
    /// Types of the project's database, signing keys, and tokens
    #[command(subcommand)]
    Gen(project::GenCommand),
    /// Commands of the Supabase CLI for its hosted platform, which are refused
    #[command(name = "link", hide = true, aliases = project::HOSTED)]
    Hosted(project::HostedArgs),
}

/// Parses the command line, runs the command and returns its exit code.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            // If only a subcommand is missing, clap's message is the whole help.
            let usage = text.lines().find(|line| line.starts_with("Usage:"));
            let sentence = match (error.kind(), usage) {
                (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, Some(usage)) => {
                    format!("a command is missing; {}", usage.replacen("Usage", "usage", 1))
                }
                (ErrorKind::MissingRequiredArgument, _) => {
                    // The first line ends in a colon; the names follow.
                    let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
                    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
                }
                _ => text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
            };
            complain(&format!("{sentence} (see 'ferrobase --help')"));
            return ExitCode::from(2);
        }
        // Help and version are requested, not errors.
        Err(answer) => {
            let _ = answer.print();
            return ExitCode::SUCCESS;
        }
    };
    cli.like_supabase.settle();
    let command = cli.command.unwrap_or_else(|| Command::Serve(serve::ServeArgs::default()));
    let (only, postgrest_file) = match &command {
        Command::Serve(args) => (args.only, args.postgrest_file(cli.config.as_deref())),
        _ => (None, Ok(None)),
    };
    let source = postgrest_file.and_then(|file| match file {
        Some(file) => Source::with_postgrest_file(file),
        None => Source::from_process(cli.config.as_deref()),
    });
    let outcome = source.and_then(|mut source| {
        connection::settle(&mut source, only)?;
        let done: anyhow::Result<()> = match command {
            Command::Test(args) => return project::test(args),
            Command::Db(command) => return project::db(&command),
            Command::Serve(args) => serve::run(args, source),
            Command::Migrate(args) => migrate::migrate(args, &source),
            Command::Seed(args) => migrate::seed(args, &source),
            Command::Types(command) => types::run(command, &source),
            Command::Keys(command) => keys::run(command, &source),
            Command::Storage(command) => storage::run(command, &source),
            Command::Backup(args) => backup::run(args, &source),
            Command::Restore(args) => restore::run(&args, &source),
            Command::Upgrade(args) => upgrade::run(&args, &source),
            Command::Doctor(args) => doctor::run(&args, &source),
            Command::Audit(args) => audit::run(&args, &source),
            Command::Healthcheck => healthcheck::run(&source),
            Command::Start(args) => project::start(&args),
            Command::Stop(args) => project::stop(&args),
            Command::Status(args) => project::status(&args),
            Command::Import(args) => project::import(&args, &source),
            Command::Migration(command) => project::migration(command),
            Command::Inspect(command) => project::inspect(&command),
            Command::Functions(command) => project::functions(&command),
            Command::Gen(command) => project::generate(command),
            Command::Init(args) => project::init(&args),
            Command::Hosted(_) => project::refuse_hosted(),
        };
        done.map(|()| ExitCode::SUCCESS)
    });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" "));
            ExitCode::FAILURE
        }
    }
}

/// Prints an error on one line. If stderr is closed, the exit code still tells.
fn complain(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "ferrobase: {line}");
}

/// Writes to stdout. A reader that closes the pipe early (`| head`) is no error.
fn print_all(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
