//! `functions new|serve`.

use std::path::PathBuf;

use clap::Subcommand;

use super::init::new_function;
use super::running::Place;
use super::{open, say};
use crate::project::Project;

#[derive(Subcommand)]
pub enum FunctionsCommand {
    /// Create a sample function
    New { slug: String },
    /// Show the output of the project's functions, which its server runs with hot reload
    Serve {
        /// Accepted for scripts: all functions are served
        slugs: Vec<String>,
        /// File with the functions' environment [default: supabase/functions/.env]
        #[arg(long)]
        env_file: Option<PathBuf>,
        /// Allow calls without a token
        #[arg(long)]
        no_verify_jwt: bool,
    },
}

pub fn functions(command: &FunctionsCommand) -> anyhow::Result<()> {
    let project = open()?;
    match command {
        FunctionsCommand::New { slug } => new_function(&project, slug),
        FunctionsCommand::Serve { env_file, no_verify_jwt, .. } => {
            let place = Place::of(&project);
            anyhow::ensure!(
                place.process().is_some() || (env_file.is_none() && !no_verify_jwt),
                "the project is not running: start it with 'ferrobase start'"
            );
            if env_file.is_some() || *no_verify_jwt {
                anyhow::bail!(
                    "start the project with {}: its server runs the functions",
                    match env_file {
                        Some(file) => format!("FERROBASE_FUNCTIONS_ENV_FILE={} ferrobase start", file.display()),
                        None => "FERROBASE_FUNCTIONS_NO_VERIFY_JWT=true ferrobase start".to_owned(),
                    }
                );
            }
            follow(&project, &place)
        }
    }
}

/// Prints the output of functions as it comes, until interrupted or until the server ends.
fn follow(project: &Project, place: &Place) -> anyhow::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let (functions, skipped) = project.functions();
    skipped.iter().for_each(|line| say(line));
    let base = format!("{}/functions/v1", project.api_url());
    say(&format!("Serving functions on {base}/<function-name>"));
    for function in functions.iter().take(5) {
        say(&format!(" - {base}/{}", function.slug));
    }
    let mut file = std::fs::File::open(place.log())?;
    file.seek(SeekFrom::End(0))?;
    let mut rest = String::new();
    while place.process().is_some() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        rest.push_str(&String::from_utf8_lossy(&bytes));
        while let Some(end) = rest.find('\n') {
            let line: String = rest.drain(..=end).collect();
            if line.contains("function=") {
                say(line.trim_end());
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ok(())
}
