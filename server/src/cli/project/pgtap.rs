//! `test db`: runs pgTAP files with `psql` and reports like `pg_prove`. `test new` creates one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::Context;
use clap::Args;

use super::programs::Programs;
use super::tap::Tap;
use super::target::{Target, TargetArgs};
use super::{find, say};
use crate::cli::database::block_on;
use crate::cli::print_all;

/// As `pg_prove` runs it: prints rows only, and stops at the first error.
const PSQL: [&str; 8] = [
    "--no-psqlrc",
    "--no-align",
    "--quiet",
    "--pset=pager=off",
    "--pset=tuples_only=true",
    "--set=ON_ERROR_ROLLBACK=1",
    "--set=ON_ERROR_STOP=1",
    "--set=QUIET=1",
];

#[derive(Args)]
pub struct TestDbArgs {
    /// Files, or folders of *.sql and *.pg files [default: supabase/tests]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs all files, even if one fails. The exit code tells whether all passed.
pub fn test_db(args: &TestDbArgs) -> anyhow::Result<ExitCode> {
    let paths = if args.paths.is_empty() { vec![find()?.folder().join("tests")] } else { args.paths.clone() };
    let mut files = Vec::new();
    for path in &paths {
        anyhow::ensure!(
            path.exists(),
            "there is no {}: 'ferrobase test new NAME' creates a first test",
            path.display()
        );
        collect(path, &mut files)?;
    }
    anyhow::ensure!(!files.is_empty(), "there are no *.sql or *.pg files in {}", paths[0].display());
    // Tests include files by `\i` relative to this folder.
    let first = std::path::absolute(&paths[0])?;
    let folder = if first.is_dir() { first } else { first.parent().unwrap_or(Path::new("/")).to_owned() };
    block_on(async {
        let target = args.target.open().await?;
        let programs = Programs::for_psql(&target.url, target.major)?;
        let is_new = enable(&target).await?;
        let outcome = run(&programs, &files, &folder);
        if is_new {
            target.client.batch_execute("drop extension if exists pgtap").await?;
        }
        outcome
    })
}

/// Creates an empty test and prints its path.
pub fn new_test(name: &str) -> anyhow::Result<()> {
    let project = find()?;
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    anyhow::ensure!(!name.is_empty() && is_plain, "a test's name may contain only letters, digits, '_' and '-'");
    let path = project.folder().join("tests").join(format!("{name}_test.sql"));
    anyhow::ensure!(!path.exists(), "the test {} already exists", path.display());
    std::fs::create_dir_all(path.parent().context("a folder")?)?;
    std::fs::write(&path, TEST).with_context(|| format!("cannot write {}", path.display()))?;
    let shown = path.strip_prefix(&project.root).unwrap_or(&path);
    print_all(&format!("Created new pgtap test at {}.\n", shown.display()))
}

const TEST: &str =
    "begin;\nselect plan(1);\n\n-- Assertions: https://pgtap.org/documentation.html\nselect has_table('my_table');\n
select * from finish();\nrollback;\n";

/// Collects the tests below `path` in name order.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let is_test = path.extension().is_some_and(|extension| extension == "sql" || extension == "pg");
        if path.is_dir() || is_test {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// Creates the extension pgTAP if it is missing. Returns whether it was created for these tests.
async fn enable(target: &Target) -> anyhow::Result<bool> {
    let state = "select exists (select from pg_extension where extname = 'pgtap'),
                        exists (select from pg_available_extensions where name = 'pgtap')";
    let row = target.client.query_one(state, &[]).await?;
    let (is_there, is_available): (bool, bool) = (row.get(0), row.get(1));
    if is_there {
        return Ok(false);
    }
    anyhow::ensure!(
        is_available,
        "pgTAP is not installed for this PostgreSQL: in Ferrobase's checkout run 'just pgtap' and start the project again; \
         elsewhere install postgresql-{}-pgtap (apt.postgresql.org) on the database's server",
        target.major
    );
    let make = "create schema if not exists extensions; create extension pgtap with schema extensions";
    target.client.batch_execute(make).await.context("pgTAP cannot be enabled")?;
    Ok(true)
}

/// The outcome of one file.
struct Outcome {
    name: String,
    tap: Tap,
    status: ExitStatus,
}

impl Outcome {
    fn passed(&self) -> bool {
        self.status.success() && self.tap.passed()
    }

    /// The text after the dots.
    fn verdict(&self) -> String {
        let Tap { planned, ran, failed, skipped, .. } = &self.tap;
        match skipped {
            _ if !self.status.success() => format!("Dubious, test returned {}", self.status.code().unwrap_or(-1)),
            Some(reason) => format!("skipped: {reason}"),
            None if self.passed() => "ok".to_owned(),
            None => {
                let total = planned.unwrap_or(*ran).max(*ran);
                format!("Failed {}/{total} subtests", failed.len() + total - ran)
            }
        }
    }
}

fn run(programs: &Programs, files: &[PathBuf], folder: &Path) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let here = std::env::current_dir()?;
    let names: Vec<String> = files
        .iter()
        .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
        .map(|file| {
            file.strip_prefix(&here).map_or_else(|_| file.display().to_string(), |path| format!("./{}", path.display()))
        })
        .collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) + 3;
    let mut outcomes = Vec::new();
    for (file, name) in files.iter().zip(names) {
        let mut psql = programs.command("psql");
        psql.args(PSQL).arg("--file").arg(std::path::absolute(file)?).current_dir(folder);
        let mut child = psql.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("psql cannot be run")?;
        let mut tap = Tap::default();
        // Printed only above a subtest's diagnostics.
        let mut heading = None;
        for line in BufReader::new(child.stdout.take().context("psql has no output")?).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            tap.read(&line);
            if line.trim_start().starts_with("# Subtest:") {
                heading = Some(line.into_owned());
            } else if line.trim_start().starts_with('#') {
                heading.take().iter().for_each(|heading| say(heading));
                say(&line);
            }
        }
        let outcome = Outcome { tap, status: child.wait()?, name };
        print_all(&format!("{:.<width$} {}\n", format!("{} ", outcome.name), outcome.verdict()))?;
        outcomes.push(outcome);
    }
    print_all(&summary(&outcomes, begun.elapsed().as_secs()))?;
    let passed = outcomes.iter().all(Outcome::passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(outcomes: &[Outcome], seconds: u64) -> String {
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.passed()).collect();
    let mut text = String::new();
    if failed.is_empty() {
        text.push_str("All tests successful.\n");
    } else {
        text.push_str("\nTest Summary Report\n-------------------\n");
        for Outcome { name, tap, status } in &failed {
            let code = status.code().unwrap_or(-1);
            let wait = if code == 0 { "0".to_owned() } else { format!("{} (exited {code})", code << 8) };
            text.push_str(&format!("{name} (Wstat: {wait} Tests: {} Failed: {})\n", tap.ran, tap.failed.len()));
            if code != 0 {
                text.push_str(&format!("  Non-zero exit status: {code}\n"));
            }
            tap.problems().iter().for_each(|problem| text.push_str(&format!("  {problem}\n")));
        }
    }
    let tests: usize = outcomes.iter().map(|outcome| outcome.tap.ran).sum();
    let result = if !failed.is_empty() {
        "FAIL"
    } else if outcomes.iter().all(|outcome| outcome.tap.ran == 0) {
        "NOTESTS"
    } else {
        "PASS"
    };
    text.push_str(&format!("Files={}, Tests={tests}, {seconds} wallclock secs\nResult: {result}\n", outcomes.len()));
    text
}
