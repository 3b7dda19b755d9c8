//! `db diff`: what the project's database or its declared schemas contain in addition to its migrations, as SQL or as a new migration.
//!
//! The migrations are applied to a copy of the project ([`Copy`]), as in `ferrobase test`. Declared schemas
//! ([`Project::declared_schemas`]) are applied to a second copy, made without migrations and seeds. If there are none, the
//! running database is compared. @pgkit/migra, run by Deno or Node, compares the two databases. Reference: supabase/cli `internal/db/diff`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::Args;

use super::ephemeral::Copy;
use super::target::TargetArgs;
use super::{open, say};
use crate::cli::database::block_on;
use crate::cli::print_all;
use crate::migrate;
use crate::project::{Project, find_deno, new_migration_path};

const SCRIPT: &str = include_str!("diff.mjs");

/// The npm packages that compare.
const PACKAGES: &str = "@pgkit/migra@0.6.1 @pgkit/client@0.6.1";

/// Schemas in which only triggers and policies belong to the project.
const MANAGED: [&str; 3] = ["auth", "realtime", "storage"];

/// Schemas that belong entirely to the platform or to an extension.
const EXCLUDED: [&str; 24] = [
    "_analytics",
    "_realtime",
    "_supavisor",
    "cron",
    "ferrobase",
    "graphql",
    "graphql_public",
    "net",
    "pgbouncer",
    "pgroonga",
    "pgsodium",
    "pgsodium_masks",
    "pgtle",
    "repack",
    "supabase_functions",
    "supabase_migrations",
    "tiger_data",
    "timescaledb_experimental",
    "timescaledb_information",
    "_timescaledb_cache",
    "_timescaledb_catalog",
    "_timescaledb_config",
    "_timescaledb_internal",
    "vault",
];

#[derive(Args)]
pub struct DiffArgs {
    /// Write the difference to a new migration of this name [default: standard output]
    #[arg(short, long, value_name = "NAME")]
    file: Option<String>,
    /// Schemas to compare [default: all; in auth, storage and realtime only triggers and policies]
    #[arg(short, long, value_delimiter = ',')]
    schema: Vec<String>,
    /// Accepted for scripts: it is the only engine
    #[arg(long)]
    use_migra: bool,
    #[command(flatten)]
    others: OtherEngines,
    /// Refused: the migrations are always compared with the database or the declared schemas
    #[arg(long, hide = true, num_args = 0..=1)]
    from: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    to: Option<Option<String>>,
    /// Refused: '-f NAME' makes a migration, and standard output goes where the shell says
    #[arg(short, long, hide = true, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

// The Supabase CLI's other ways to compare, which need programs of its containers.
#[derive(Args)]
pub struct OtherEngines {
    #[arg(long, hide = true)]
    use_pg_delta: bool,
    #[arg(long, hide = true)]
    use_pgadmin: bool,
    #[arg(long, hide = true)]
    use_pg_schema: bool,
}

impl OtherEngines {
    pub fn refuse(&self) -> anyhow::Result<()> {
        let chosen = [
            (self.use_pg_delta, "--use-pg-delta"),
            (self.use_pgadmin, "--use-pgadmin"),
            (self.use_pg_schema, "--use-pg-schema"),
        ];
        match chosen.iter().find(|(is_chosen, _)| *is_chosen) {
            Some((_, option)) => anyhow::bail!("{option} is not available: schemas are compared by @pgkit/migra only"),
            None => Ok(()),
        }
    }
}

pub fn diff(args: &DiffArgs) -> anyhow::Result<()> {
    args.others.refuse()?;
    anyhow::ensure!(
        args.from.is_none() && args.to.is_none(),
        "--from and --to are not available: the migrations are compared with the database, or with another one by --db-url"
    );
    anyhow::ensure!(args.output.is_none(), "--output is not available: use '-f NAME' for a migration, or '> FILE'");
    let project = open()?;
    let difference = block_on(async {
        let declared = if args.target.is_local() { project.declared_schemas()? } else { Vec::new() };
        if declared.is_empty() {
            let target = args.target.reach(Some(&project)).await?;
            target.require_schemas(&args.schema).await?;
            return between(&project, &target.url, &args.schema).await;
        }
        // Fails early if the program is missing.
        Program::find(&project)?;
        let copy = Copy::start(&project.without_migrations()?).await?;
        let difference = async {
            say("Creating local database from declarative schemas:");
            declared.iter().for_each(|(name, _)| say(&format!(" • {name}")));
            let url = copy.database_url();
            migrate::project::globals(&url, &declared).await?;
            let client = super::target::connect(&url).await?;
            super::target::require_schemas(&client, &args.schema).await?;
            between(&project, &url, &args.schema).await
        }
        .await;
        copy.end().await?;
        difference
    })?;
    if difference.trim().is_empty() {
        say("No schema changes found");
        return Ok(());
    }
    let drops: Vec<&str> = difference.lines().filter(|line| is_drop(line)).collect();
    if !drops.is_empty() {
        say("Found drop statements in schema diff. Please double check if these are expected:");
        drops.iter().for_each(|line| say(line));
    }
    say(&format!("Finished supabase db diff on branch {}.", project.branch()));
    let Some(name) = &args.file else { return print_all(&difference) };
    let path = new_migration_path(&project, name, chrono::Utc::now());
    std::fs::create_dir_all(project.migrations_dir()).context("cannot create supabase/migrations")?;
    std::fs::write(&path, difference).with_context(|| format!("cannot write {}", path.display()))?;
    let shown = path.strip_prefix(&project.root).unwrap_or(&path);
    print_all(&format!("Created new migration at {}\n", shown.display()))
}

/// The SQL that turns the result of the project's migrations into the database at `target`.
pub async fn between(project: &Project, target: &str, schemas: &[String]) -> anyhow::Result<String> {
    let program = Program::find(project)?;
    say("Creating shadow database...");
    let shadow = Copy::start(project).await?;
    say("Diffing schemas...");
    let difference = program.compare(project, &shadow.database_url(), target, schemas);
    shadow.end().await?;
    difference
}

/// Whether a line of the diff drops something.
fn is_drop(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    line.starts_with("drop ") || (line.starts_with("alter table ") && line.contains(" drop "))
}

/// The program that compares.
struct Program {
    runtime: PathBuf,
    arguments: &'static [&'static str],
    /// A file beside the `node_modules` that hold the packages.
    packages: PathBuf,
}

impl Program {
    fn find(project: &Project) -> anyhow::Result<Self> {
        let starts = [Some(project.root.clone()), std::env::current_exe().ok()];
        let around = starts.iter().flatten().flat_map(|start| start.ancestors());
        let packages = around.flat_map(|around| [around.to_owned(), around.join("tools/diff")]).find(|folder| {
            ["migra", "client"].iter().all(|name| folder.join("node_modules/@pgkit").join(name).is_dir())
        });
        let Some(packages) = packages else {
            anyhow::bail!(
                "'db diff' compares by @pgkit/migra, which is not installed: run 'npm install --save-dev {PACKAGES}' in this \
                 project, or 'tools/install.sh diff' in Ferrobase's checkout"
            );
        };
        let packages = packages.join("package.json");
        let given = std::env::var_os("FERROBASE_DENO").filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(runtime) = given.or_else(find_deno) {
            let arguments: &[&str] = &[
                "run",
                "--quiet",
                "--no-prompt",
                "--no-config",
                "--allow-env",
                "--allow-net",
                "--allow-read",
                "--allow-sys",
            ];
            return Ok(Self { runtime, arguments, packages });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let node = std::env::split_paths(&path).map(|folder| folder.join("node")).find(|file| file.is_file());
        match node {
            Some(runtime) => Ok(Self { runtime, arguments: &[], packages }),
            None => anyhow::bail!("'db diff' needs Deno or Node.js on PATH, or a Deno named in FERROBASE_DENO"),
        }
    }

    fn compare(&self, project: &Project, base: &str, target: &str, schemas: &[String]) -> anyhow::Result<String> {
        let mut script = tempfile::Builder::new().suffix(".mjs").tempfile().context("no temporary file can be made")?;
        script.write_all(SCRIPT.as_bytes()).context("a temporary file cannot be written")?;
        let mut command = Command::new(&self.runtime);
        command.args(self.arguments).arg(script.path());
        command.env("BASE", base).env("TARGET", target).env("MIGRA_FROM", &self.packages);
        command.env("DENO_DIR", project.own_dir().join("deno"));
        command.env("INCLUDED", serde_json::to_string(schemas)?);
        command.env("EXCLUDED", serde_json::to_string(&EXCLUDED)?).env("MANAGED", serde_json::to_string(&MANAGED)?);
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot run {}", self.runtime.display()))?;
        let name = self.runtime.file_name().unwrap_or(Path::new("").as_os_str()).display();
        anyhow::ensure!(output.status.success(), "{name} failed ({}); see its message above", output.status);
        String::from_utf8(output.stdout).context("the difference is not UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destructive_lines_are_recognized() {
        for (line, is) in [
            ("drop view if exists \"public\".\"v\";", true),
            ("alter table \"public\".\"t\" drop column \"c\";", true),
            ("ALTER TABLE t ALTER COLUMN c DROP NOT NULL;", true),
            ("create table \"drop \" ();", false),
            ("-- drop it", false),
        ] {
            assert_eq!(is_drop(line), is, "{line}");
        }
    }
}
