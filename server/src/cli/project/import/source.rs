//! The source of an import: a database that `pg_dump` reads, or files that it has written.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use super::stream::Stream;
use crate::cli::project::dump::{PLATFORM_SCHEMAS, PLATFORM_TABLES};
use crate::cli::project::programs::Programs;
use crate::cli::project::target;

/// Platform schemas that contain a project's rows, policies, triggers or functions.
const READ: [&str; 5] = ["auth", "cron", "realtime", "storage", "supabase_migrations"];

/// The PostgreSQL release whose `pg_restore` reads all dumps.
const NEWEST: u32 = 18;

/// A dump, and the program that writes it.
pub struct Dump {
    pub name: String,
    pub stream: Stream,
    program: Option<(&'static str, Child)>,
}

impl Dump {
    /// Called after the last statement: checks that the program succeeded.
    pub fn end(self) -> anyhow::Result<()> {
        let Some((name, mut child)) = self.program else { return Ok(()) };
        drop(self.stream);
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "{name} failed ({status}); see its message above");
        Ok(())
    }

    fn of(name: &'static str, mut command: Command, shown: String) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let output = child.stdout.take().with_context(|| format!("{name} has no output"))?;
        let stream = Stream::new(Box::new(BufReader::with_capacity(1 << 18, output)));
        Ok(Self { name: shown, stream, program: Some((name, child)) })
    }

    /// Opens a file of SQL, or an archive of `pg_dump`.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        let restore = |shown: String| {
            let mut command = Programs::restore(NEWEST)?;
            command.args(["--file=-"]).arg(path);
            Self::of("pg_restore", command, shown)
        };
        if path.join("toc.dat").is_file() {
            return restore(shown);
        }
        let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        let mut lines = BufReader::with_capacity(1 << 18, file);
        let head = lines.fill_buf().with_context(|| format!("cannot read {shown}"))?;
        if head.starts_with(b"PGDMP") || head.starts_with(b"toc.dat\0") {
            return restore(shown);
        }
        anyhow::ensure!(!head.starts_with(&[0x1f, 0x8b]), "{shown} is compressed: unpack it with 'gunzip' first");
        Ok(Self { name: shown, stream: Stream::new(Box::new(lines)), program: None })
    }
}

/// The dumps of a database: first its roles, then everything else. The second starts when the first has been read.
pub struct Database {
    programs: Programs,
}

impl Database {
    pub async fn open(url: &str) -> anyhow::Result<(Self, crate::db::Client)> {
        let client = target::connect(url).await.context("the project to be imported")?;
        let row = client.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?;
        let major = u32::try_from(row.get::<_, i32>(0))?;
        Ok((Self { programs: Programs::for_dump(url, major)? }, client))
    }

    pub fn roles(&self) -> anyhow::Result<Dump> {
        let mut command = self.programs.command("pg_dumpall");
        command.args(["--roles-only", "--quote-all-identifiers", "--no-role-passwords", "--no-comments"]);
        Dump::of("pg_dumpall", command, "roles".to_owned())
    }

    pub fn everything(&self) -> anyhow::Result<Dump> {
        let mut command = self.programs.command("pg_dump");
        command.args([
            "--quote-all-identifiers",
            "--no-security-labels",
            "--no-tablespaces",
            "--lock-wait-timeout=60s",
        ]);
        let unread = PLATFORM_SCHEMAS.iter().filter(|schema| !READ.contains(schema));
        command.args(unread.map(|schema| format!("--exclude-schema={schema}")));
        command.args(PLATFORM_TABLES.iter().map(|table| format!("--exclude-table-data={table}")));
        command.args(["--exclude-table-data=realtime.*", "--exclude-table-data=cron.job_run_details"]);
        Dump::of("pg_dump", command, "the database".to_owned())
    }
}

/// Opens the dumps in order. Roles and schema must come before rows.
pub fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<Dump>> {
    paths.iter().map(|path| Dump::open(path)).collect()
}

/// Reads a file that contains a secret or a key.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let opened = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    opened.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}
