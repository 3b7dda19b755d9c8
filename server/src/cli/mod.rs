//! The commands of the binary. Exit codes: 0 ok, 1 failed, 2 bad usage; errors are one line on stderr.

mod card;
mod database;
mod doctor;
mod healthcheck;
mod keys;
mod migrate;
mod serve;
mod serve_auth;
mod serve_rest;
mod stop;
pub mod types;

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
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the APIs and the web app (what happens without a command)
    Serve(serve::ServeArgs),
    /// Bring a database up to date: platform, auth, then a folder of migrations
    Migrate(migrate::MigrateArgs),
    /// Load demo data into a database that holds no accounts of people
    Seed(migrate::SeedArgs),
    /// Generate types from the database, as 'supabase gen types' does
    #[command(subcommand)]
    Types(types::TypesCommand),
    /// API keys: new ones, or those in use
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Look for what is missing or too open in configuration and database
    Doctor,
    /// Ask the running server whether it is well; for containers
    Healthcheck,
}

/// Parses the command line, runs the command and says how it ended.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            // Where only a command is missing, clap's text is the whole help.
            let usage = text.lines().find(|line| line.starts_with("Usage:"));
            let sentence = match (error.kind(), usage) {
                (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, Some(usage)) => {
                    format!("a command is missing; {}", usage.replacen("Usage", "usage", 1))
                }
                _ => text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
            };
            complain(&format!("{sentence} (see 'ferrobase --help')"));
            return ExitCode::from(2);
        }
        // Help and version are asked for, not wrong.
        Err(answer) => {
            let _ = answer.print();
            return ExitCode::SUCCESS;
        }
    };
    let outcome = Source::from_process(cli.config.as_deref()).and_then(|source| {
        match cli.command.unwrap_or_else(|| Command::Serve(serve::ServeArgs::default())) {
            Command::Serve(args) => serve::run(args, source),
            Command::Migrate(args) => migrate::migrate(args, &source),
            Command::Seed(args) => migrate::seed(args, &source),
            Command::Types(command) => types::run(command, &source),
            Command::Keys(command) => keys::run(command, &source),
            Command::Doctor => doctor::run(&source),
            Command::Healthcheck => healthcheck::run(&source),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" "));
            ExitCode::FAILURE
        }
    }
}

/// Says in one line what went wrong; where nobody listens, the exit code still tells.
fn complain(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "ferrobase: {line}");
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
fn print_all(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
