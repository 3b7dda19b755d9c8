//! `functions new|serve`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Subcommand;

use super::init::new_function;
use super::running::Place;
use super::{open, say};
use crate::project::{InspectMode, Inspector, Project, Served, ServedLock};

#[derive(Subcommand)]
pub enum FunctionsCommand {
    /// Create a sample function
    New {
        slug: String,
        /// Accepted for scripts: the sample is called with a token of the project
        #[arg(long, hide = true, value_parser = ["none", "apikey", "user"])]
        auth: Option<String>,
    },
    /// Show the output of the project's functions, which its server runs with hot reload
    Serve(ServeArgs),
    /// Commands for functions of the hosted platform, which are refused
    #[command(name = "deploy", hide = true, aliases = ["delete", "download", "list"])]
    Hosted {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct ServeArgs {
    /// Accepted for scripts: all functions are served
    slugs: Vec<String>,
    /// File with the functions' environment [default: supabase/functions/.env]
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Allow calls without a token
    #[arg(long)]
    no_verify_jwt: bool,
    /// Import map for all functions, instead of their own
    #[arg(long, value_name = "FILE")]
    import_map: Option<PathBuf>,
    /// Accepted for scripts: all functions are served
    #[arg(long, hide = true)]
    all: bool,
    /// The same as --inspect-mode brk
    #[arg(long, conflicts_with = "inspect_mode")]
    inspect: bool,
    /// Let debuggers connect at edge_runtime.inspector_port, each next function at the next port, without time limits
    #[arg(long, value_name = "MODE", value_parser = InspectMode::NAMES)]
    inspect_mode: Option<String>,
    /// Accepted for scripts: there is no main worker
    #[arg(long, hide = true)]
    inspect_main: bool,
}

pub fn functions(command: &FunctionsCommand) -> anyhow::Result<()> {
    match command {
        FunctionsCommand::New { slug, .. } => new_function(&open()?, slug),
        FunctionsCommand::Serve(args) => serve(&open()?, args),
        FunctionsCommand::Hosted { .. } => anyhow::bail!(
            "this command is for functions of the hosted platform: here every folder of supabase/functions is served, and 'serve' \
             in production serves those of FERROBASE_FUNCTIONS"
        ),
    }
}

/// The longest time that a server takes to notice the options.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);

/// Hands the options to the project's server, which drops them when this process ends, and shows what the functions print.
fn serve(project: &Project, args: &ServeArgs) -> anyhow::Result<()> {
    let place = Place::of(project);
    place.require_running()?;
    let file = |path: &Option<PathBuf>| -> anyhow::Result<Option<PathBuf>> {
        let found =
            |path: &PathBuf| std::fs::canonicalize(path).with_context(|| format!("cannot read {}", path.display()));
        path.as_ref().map(found).transpose()
    };
    let named = args.inspect_mode.as_deref().and_then(InspectMode::named);
    let mode = named.or(args.inspect.then_some(InspectMode::Brk));
    let inspector = mode.map(|mode| Inspector { mode, port: project.inspector_port() });
    let served = Served {
        env_file: file(&args.env_file)?,
        import_map: file(&args.import_map)?,
        is_open: args.no_verify_jwt,
        inspector,
    };
    let mut log = File::open(place.log()).context("cannot read the server's log")?;
    log.seek(SeekFrom::End(0))?;
    let _lock = if served == Served::default() {
        None
    } else {
        let lock = ServedLock::take(&project.data_dir(), &served)?;
        wait_until_noticed(&place.log(), log.stream_position()?)?;
        Some(lock)
    };
    follow(project, &place, log, inspector)
}

/// Waits until the server has logged that it serves with the options. `from`: where the log ended before.
fn wait_until_noticed(log: &Path, from: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if String::from_utf8_lossy(&bytes).contains(ServedLock::NOTICED) {
            return Ok(());
        }
        if begun.elapsed() > NOTICE_TIMEOUT {
            say(
                "WARN: the project's server has not told that it takes the options; an older version does not know them",
            );
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Prints the output of functions as it comes, until interrupted or until the server ends.
fn follow(project: &Project, place: &Place, mut log: File, inspector: Option<Inspector>) -> anyhow::Result<()> {
    let (functions, skipped) = project.functions();
    skipped.iter().for_each(|line| say(line));
    let base = format!("{}/functions/v1", project.api_url());
    say(&format!("Serving functions on {base}/<function-name>"));
    for function in functions.iter().take(5) {
        say(&format!(" - {base}/{}", function.slug));
    }
    if let Some(inspector) = inspector {
        say("Debuggers connect to");
        for (place, function) in functions.iter().enumerate() {
            if let Some(Inspector { port, .. }) = inspector.of(place) {
                say(&format!(" - 127.0.0.1:{port} ({})", function.slug));
            }
        }
    }
    let mut rest = String::new();
    while place.process().is_some() {
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        rest.push_str(&String::from_utf8_lossy(&bytes));
        while let Some(end) = rest.find('\n') {
            let line: String = rest.drain(..=end).collect();
            if line.contains("function=") {
                say(line.trim_end());
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
