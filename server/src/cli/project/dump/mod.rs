//! `db dump`: schema, data or roles of a project's database as SQL that runs on a fresh one.
//!
//! `pg_dump` does the work ([`Programs`]); [`filter`] removes what the platform creates itself. Reference: supabase/cli
//! `pkg/migration/dump.go`.

mod filter;

pub use filter::{is_free as is_free_setting, is_reserved, without_column_versions};

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use clap::Args;

use super::programs::Programs;
use super::say;
use super::target::TargetArgs;
use crate::cli::database::block_on;

/// The owner of the platform.
const ADMIN: &str = "supabase_admin";

/// Schemas of the platform and of extensions, which a schema dump leaves out; `*` is a wildcard.
pub const PLATFORM_SCHEMAS: [&str; 30] = [
    "information_schema",
    "pg_*",
    "_analytics",
    "_realtime",
    "_supavisor",
    "auth",
    "etl",
    "extensions",
    "ferrobase",
    "pgbouncer",
    "realtime",
    "storage",
    "supabase_functions",
    "supabase_migrations",
    "cron",
    "dbdev",
    "graphql",
    "graphql_public",
    "net",
    "pgmq",
    "pgsodium",
    "pgsodium_masks",
    "pgtle",
    "repack",
    "tiger",
    "tiger_data",
    "timescaledb_*",
    "_timescaledb_*",
    "topology",
    "vault",
];

/// Of these, the schemas with rows of the project: accounts, files, jobs, requests, queues, webhooks.
const PLATFORM_SCHEMAS_WITH_DATA: [&str; 6] = ["auth", "storage", "cron", "net", "pgmq", "supabase_functions"];

/// Schemas of the platform whose tables may have policies and triggers of the project.
const ATTACHED_SCHEMAS: [&str; 5] = ["auth", "storage", "realtime", "cron", "net"];

/// Tables in which the platform keeps its own history.
pub const PLATFORM_TABLES: [&str; 3] =
    ["auth.schema_migrations", "storage.migrations", "supabase_functions.migrations"];

/// Roles that every project's database has, or that an extension creates.
const RESERVED_ROLES: [&str; 14] = [
    "anon",
    "authenticated",
    "authenticator",
    "cli_login_*",
    "dashboard_user",
    "ferrobase_*",
    "pgbouncer",
    "postgres",
    "service_role",
    "supabase_*",
    "pgsodium_keyholder",
    "pgsodium_keyiduser",
    "pgsodium_keymaker",
    "pgtle_admin",
];

#[derive(Args)]
pub struct DumpArgs {
    /// Only rows, including those of accounts, files and jobs
    #[arg(long, conflicts_with_all = ["role_only", "keep_comments"])]
    data_only: bool,
    /// With --data-only, use COPY instead of INSERT: faster, but only for psql
    #[arg(long, requires = "data_only")]
    use_copy: bool,
    /// With --data-only, tables to leave out
    #[arg(short = 'x', long, value_name = "SCHEMA.TABLE", value_delimiter = ',', requires = "data_only")]
    exclude: Vec<String>,
    /// Only roles, without passwords
    #[arg(long, conflicts_with = "schema")]
    role_only: bool,
    /// Schemas to include [default: all except the platform's]
    #[arg(short, long, value_delimiter = ',')]
    schema: Vec<String>,
    /// Where to write it [default: standard output]
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// Keep pg_dump's comments, and keep omitted statements as comments
    #[arg(long)]
    keep_comments: bool,
    /// Print the command that would run
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub fn dump(args: &DumpArgs) -> anyhow::Result<()> {
    let (programs, place) = block_on(async {
        let target = args.target.open().await?;
        target.require_schemas(&args.schema).await?;
        Ok((Programs::for_dump(&target.url, target.major)?, target.place))
    })?;
    let (what, command) = if args.data_only {
        ("data", data_command(&programs, args))
    } else if args.role_only {
        ("roles", roles_command(&programs))
    } else {
        ("schemas", schema_command(&programs, &args.schema))
    };
    if args.dry_run {
        say("DRY RUN: only printing the command.");
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        return crate::cli::print_all(&format!("{}\n", words.join(" ")));
    }
    say(&format!("Dumping {what} from {place} database..."));
    let Some(file) = &args.file else { return write_to(args, command, &mut std::io::stdout().lock()) };
    // A dump that fails in the middle keeps the existing file.
    let partial = file.with_extension("partial");
    let mut out = File::create(&partial).with_context(|| format!("cannot write {}", partial.display()))?;
    if let Err(error) = write_to(args, command, &mut out) {
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    std::fs::rename(&partial, file).with_context(|| format!("cannot write {}", file.display()))?;
    say(&format!("Dumped schema to {}.", std::path::absolute(file)?.display()));
    Ok(())
}

/// Whether `schema` belongs to the platform or to an extension.
pub fn is_platform(schema: &str) -> bool {
    PLATFORM_SCHEMAS.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => schema.starts_with(start),
        None => schema == *known,
    })
}

/// The schema of a project as `db dump` writes it, and `pg_dump`'s complete output.
pub fn schemas(url: &str, major: u32) -> anyhow::Result<(String, String)> {
    let programs = Programs::for_dump(url, major)?;
    let projects = filter::schema(&output(schema_command(&programs, &[]))?, false, is_platform);
    let mut whole = programs.command("pg_dump");
    whole.args(["--schema-only", "--quote-all-identifiers", "--no-owner", "--no-privileges"]);
    // The other schemas contain no objects of the project, and in hosted projects the owner may not read all of them.
    let closed = PLATFORM_SCHEMAS.iter().filter(|schema| !ATTACHED_SCHEMAS.contains(schema));
    whole.args(closed.map(|schema| format!("--exclude-schema={schema}")));
    Ok((projects, output(whole)?))
}

fn schema_command(programs: &Programs, schemas: &[String]) -> Command {
    let mut command = programs.command("pg_dump");
    command.args(["--schema-only", "--quote-all-identifiers", "--role=postgres"]);
    if schemas.is_empty() {
        command.args(PLATFORM_SCHEMAS.iter().map(|schema| format!("--exclude-schema={schema}")));
    }
    command.args(schemas.iter().map(|schema| format!("--schema={}", pattern(schema))));
    command
}

fn data_command(programs: &Programs, args: &DumpArgs) -> Command {
    let mut command = programs.command("pg_dump");
    command.args(["--data-only", "--quote-all-identifiers", "--role=postgres"]);
    if args.schema.is_empty() {
        let excluded = PLATFORM_SCHEMAS.iter().filter(|schema| !PLATFORM_SCHEMAS_WITH_DATA.contains(schema));
        command.args(excluded.map(|schema| format!("--exclude-schema={schema}")));
    }
    command.args(args.schema.iter().map(|schema| format!("--schema={}", pattern(schema))));
    let excluded = args.exclude.iter().map(String::as_str).chain(PLATFORM_TABLES);
    command.args(excluded.map(|table| format!("--exclude-table={}", pattern(table))));
    if !args.use_copy {
        command.args(["--column-inserts", "--rows-per-insert=100000"]);
    }
    command
}

fn roles_command(programs: &Programs) -> Command {
    let mut command = programs.command("pg_dumpall");
    command.args([
        "--roles-only",
        "--role=postgres",
        "--quote-all-identifiers",
        "--no-role-passwords",
        "--no-comments",
    ]);
    command
}

/// A name as a pattern for `pg_dump`: exactly this one, unless it contains `*`.
fn pattern(name: &str) -> String {
    if name.contains(['*', '?']) {
        return name.to_owned();
    }
    name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect::<Vec<_>>().join(".")
}

fn write_to(args: &DumpArgs, command: Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let written = if args.data_only {
        return write_data(command, out);
    } else if args.role_only {
        filter::roles(&output(command)?, args.keep_comments)
    } else {
        let is_excluded = |schema: &str| args.schema.is_empty() && is_platform(schema);
        filter::schema(&output(command)?, args.keep_comments, is_excluded)
    };
    done(out.write_all(written.as_bytes()))
}

/// Streams rows. Only the first and last lines, which only `psql` understands, are left out.
fn write_data(mut command: Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut child = spawn(&mut command)?;
    let mut lines = BufReader::new(child.stdout.take().context("pg_dump has no output")?);
    // Triggers must not run again on these rows.
    let mut written = out.write_all(b"SET session_replication_role = replica;\n\n");
    let mut line = Vec::new();
    let mut key: Option<Vec<u8>> = None;
    while written.is_ok() && lines.read_until(b'\n', &mut line)? > 0 {
        // The key is random, so no row contains such a line.
        let is_lock = match &key {
            None => line.strip_prefix(b"\\restrict ").inspect(|rest| key = Some(rest.to_vec())).is_some(),
            Some(key) => line.strip_prefix(b"\\unrestrict ").is_some_and(|rest| rest == key),
        };
        if !is_lock {
            written = out.write_all(&line);
        }
        line.clear();
    }
    drop(lines);
    // The reader may have closed the pipe.
    done(written.and_then(|()| out.write_all(b"RESET ALL;\n")))?;
    ended(&command, child.wait()?)
}

/// A reader that closes the pipe early (`| head`) is no error.
fn done(written: std::io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("the dump cannot be written")
        }
        _ => Ok(()),
    }
}

fn output(mut command: Command) -> anyhow::Result<String> {
    let child = spawn(&mut command)?;
    let output = child.wait_with_output()?;
    ended(&command, output.status)?;
    String::from_utf8(output.stdout).context("the dump is not UTF-8")
}

fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().with_context(|| format!("cannot run {}", command.get_program().display()))
}

fn ended(command: &Command, status: std::process::ExitStatus) -> anyhow::Result<()> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().display();
    anyhow::ensure!(status.success(), "{name} failed ({status}); see its message above");
    Ok(())
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:@".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
