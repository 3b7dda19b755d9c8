//! The commands of the binary. Exit codes: 0 ok, 1 failed, 2 bad usage; errors are one line on stderr.

mod card;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

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
}

/// Parses the command line, runs the command and says how it ended.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let outcome = Source::from_process(cli.config.as_deref()).and_then(|source| {
        match cli.command.unwrap_or_else(|| Command::Serve(serve::ServeArgs::default())) {
            Command::Serve(args) => serve::run(args, source),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ferrobase: {error:#}");
            ExitCode::FAILURE
        }
    }
}
