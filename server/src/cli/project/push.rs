//! `db push`: applies pending migrations, roles and seeds to a database. Reference: supabase/cli `internal/db/push`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::ask::defaults_to_yes;
use super::pending::pending;
use super::target::{TargetArgs, store_secrets};
use super::{open, say};
use crate::cli::database::block_on;
use crate::cli::print_all;
use crate::migrate;
use crate::migrate::project::PendingSeed;

#[derive(Args)]
pub struct PushArgs {
    /// Print what would be pushed, without changing anything
    #[arg(long)]
    dry_run: bool,
    /// Also push migrations that are older than the last applied one
    #[arg(long)]
    include_all: bool,
    /// Also push the roles of supabase/roles.sql
    #[arg(long)]
    include_roles: bool,
    /// Also push the seeds of supabase/config.toml
    #[arg(long)]
    include_seed: bool,
    /// Do not ask
    #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    yes: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub fn push(args: &PushArgs) -> anyhow::Result<()> {
    let project = open()?;
    if args.dry_run {
        say("DRY RUN: migrations will *not* be pushed to the database.");
    }
    block_on(async {
        let target = args.target.reach(Some(&project)).await?;
        let (url, place) = (&target.text, target.place);
        let migrations = if project.has_migrations_enabled() {
            pending(&project.migrations()?, &migrate::project::history(url).await?, args.include_all)?
        } else {
            say("Skipping migrations because it is disabled in config.toml (db.migrations.enabled)");
            Vec::new()
        };
        let mut seeds = Vec::new();
        if args.include_seed && project.has_seeds_enabled() {
            let (files, unmatched) = project.seeds()?;
            unmatched.iter().for_each(|pattern| say(&format!("WARN: no files matched pattern: {pattern}")));
            let files: Vec<(String, PathBuf)> = files.into_iter().map(|seed| (seed.name, seed.path)).collect();
            seeds = migrate::project::pending_seeds(url, &files).await?;
        } else if args.include_seed {
            say("Skipping seed because it is disabled in config.toml (db.seed.enabled)");
        }
        let roles = project.folder().join("roles.sql");
        let has_roles = args.include_roles && roles.is_file();
        if migrations.is_empty() && seeds.is_empty() && !has_roles {
            let name = if place == "local" { "Local" } else { "Remote" };
            return print_all(&format!("{name} database is up to date.\n"));
        }
        if args.dry_run {
            if has_roles {
                say("Would create custom roles supabase/roles.sql...");
            }
            tell("Would push these migrations:", migrations.iter().map(|path| file_name(path)));
            tell("Would seed these files:", seeds.iter().map(seed_name));
            return print_all("Finished supabase db push.\n");
        }
        let confirmed = |question: String| -> anyhow::Result<()> {
            anyhow::ensure!(defaults_to_yes(&question, args.yes), "not confirmed: the rest was not pushed");
            Ok(())
        };
        if has_roles {
            confirmed("Do you want to create custom roles in the database cluster?".to_owned())?;
            say("Seeding globals from roles.sql...");
            migrate::project::globals(url, &[("supabase/roles.sql".to_owned(), roles)]).await?;
        }
        if migrations.is_empty() {
            say("Schema migrations are up to date.");
        } else {
            let names = list(migrations.iter().map(|path| file_name(path)));
            confirmed(format!("Do you want to push these migrations to the {place} database?\n{names}"))?;
            store_secrets(&project, url).await?;
            migrate::project::migrations(url, &migrations, None, &|line| say(line)).await?;
        }
        if !seeds.is_empty() {
            let names = list(seeds.iter().map(seed_name));
            confirmed(format!("Do you want to seed the {place} database with these files?\n{names}"))?;
            let seeds: Vec<(String, PathBuf)> = seeds.into_iter().map(|seed| (seed.name, seed.path)).collect();
            migrate::project::seeds(url, &seeds, &|line| say(line)).await?;
        } else if args.include_seed {
            say("Seed files are up to date.");
        }
        print_all("Finished supabase db push.\n")
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn seed_name(seed: &PendingSeed) -> String {
    // The earlier text has run. The new one will not.
    if seed.is_changed { format!("{} (hash update)", seed.name) } else { seed.name.clone() }
}

fn list(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!(" • {name}\n")).collect()
}

fn tell(heading: &str, names: impl Iterator<Item = String>) {
    let names = list(names);
    if !names.is_empty() {
        say(&format!("{heading}\n{}", names.trim_end_matches('\n')));
    }
}
