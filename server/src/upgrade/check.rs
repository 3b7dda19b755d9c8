//! What this binary would do to a database, and what prevents an upgrade. Nothing is changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::facts::{connect, connect_to, databases_of};
use super::programs::{Places, Programs, number};
use super::{UpgradeError, major};
use crate::backup::State;
use crate::embedded_pg::{self, Binaries, EmbeddedError, EmbeddedOptions, EmbeddedPostgres, Logins, Passwords};
use crate::migrate::{self, Pending};

/// The database that is looked at.
#[derive(Clone, Debug)]
pub enum Subject {
    Embedded {
        options: EmbeddedOptions,
        places: Places,
    },
    /// Somebody else runs it; its URL.
    External(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Of this binary.
    pub version: &'static str,
    /// The folder of the cluster, or `DATABASE_URL`.
    pub database: String,
    /// Major version of the PostgreSQL that made the database; absent where there is no database yet.
    pub postgres: Option<u32>,
    /// Major version of the binaries that would run it.
    pub binaries: Option<u32>,
    /// Files that would run; absent where the database could not be read.
    pub migrations: Option<Migrations>,
    /// Installed extensions that the binaries cannot provide.
    pub missing_extensions: Vec<String>,
    pub disk: Option<Disk>,
    /// The moment that the last proved backup holds.
    pub proved_backup: Option<DateTime<Utc>>,
    /// Whether an upgrade would change anything.
    pub pending: bool,
    /// How many problems prevent an upgrade.
    pub problems: usize,
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Migrations {
    pub platform: Vec<String>,
    pub auth: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    pub free_mib: u64,
    pub needed_mib: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// An upgrade does this.
    Pending,
    /// Works, with a limit that one should know.
    Note,
    /// Must be mended first.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub text: String,
}

/// Room that a start needs for the log of the database, in MiB.
const NEEDED_TO_START: u64 = 48;
/// A verification older than this is reported.
const PROVED_WITHIN_DAYS: i64 = 31;

impl Report {
    fn add(&mut self, level: Level, text: impl Into<String>) {
        self.pending |= level == Level::Pending;
        self.problems += usize::from(level == Level::Problem);
        self.findings.push(Finding { level, text: text.into() });
    }

    /// A line per finding.
    pub fn lines(&self) -> String {
        let line = |Finding { level, text }: &Finding| {
            let level = match level {
                Level::Ok => "ok",
                Level::Pending => "pending",
                Level::Note => "note",
                Level::Problem => "problem",
            };
            format!("{level:<8} {text}\n")
        };
        self.findings.iter().map(line).collect()
    }
}

/// Looks at the database; `data_dir` knows of backups.
pub async fn check(subject: &Subject, data_dir: &Path) -> Report {
    let mut report = Report { version: env!("CARGO_PKG_VERSION"), ..Report::default() };
    let outcome = match subject {
        Subject::Embedded { options, places } => embedded(&mut report, options, places).await,
        Subject::External(url) => external(&mut report, url).await,
    };
    if let Err(error) = outcome {
        report.add(Level::Problem, error.to_string());
    }
    backups(&mut report, data_dir);
    report
}

async fn external(report: &mut Report, url: &str) -> Result<(), UpgradeError> {
    report.database = "DATABASE_URL".to_owned();
    let client = connect(url).await?;
    let major = "select current_setting('server_version_num')::int / 10000";
    let major: i32 = client.query_one(major, &[]).await?.get(0);
    report.postgres = u32::try_from(major).ok();
    report.add(Level::Ok, format!("PostgreSQL {major}, upgraded by its provider"));
    migrations(report, url).await;
    let lacking = "select extname::text from pg_extension e
                   where not exists (select from pg_available_extensions a where a.name = e.extname) order by 1";
    let lacking = client.query(lacking, &[]).await?.iter().map(|row| row.get(0)).collect();
    extensions(report, lacking);
    Ok(())
}

async fn embedded(report: &mut Report, options: &EmbeddedOptions, places: &Places) -> Result<(), UpgradeError> {
    let binaries = Binaries::find(options.bin_dir.as_deref())?;
    let to = binaries.major_version(None, Path::new("/")).await?;
    report.binaries = to.parse().ok();
    let Some(db) = embedded_pg::cluster_of(&options.data_root) else {
        report.database = options.data_root.display().to_string();
        report.add(Level::Ok, format!("there is no database yet: the first start creates one with PostgreSQL {to}"));
        return Ok(());
    };
    report.database = db.display().to_string();
    let from = embedded_pg::version_of(&db).unwrap_or_default();
    report.postgres = from.parse().ok();
    let (cluster, target) = (number(&from), number(&to));
    let mut bin_dir = options.bin_dir.clone();
    let mut current = None;
    if cluster > target {
        return Err(UpgradeError::Newer { dir: db, cluster: from, binaries: to });
    }
    if cluster < target {
        report.add(
            Level::Pending,
            format!("PostgreSQL {from} will be upgraded to {to} ('ferrobase upgrade', with the server stopped)"),
        );
        let (found, missing) = major_programs(places, &from, &to).await;
        for error in missing {
            report.add(Level::Problem, error.to_string());
        }
        // Without the former binaries the database is not read.
        bin_dir = found.0.map(|former| former.folder);
        current = found.1;
    } else {
        report.add(Level::Ok, format!("PostgreSQL {to}"));
    }
    disk(report, &db, cluster < target);
    if cluster == target || bin_dir.is_some() {
        let look = EmbeddedOptions { port: 0, bin_dir, passwords: Passwords::Look, ..options.clone() };
        let (logins, started) = open(&look).await?;
        let read = read(report, &logins, &binaries, &to, &db, current.as_ref()).await;
        if let Some(started) = started {
            started.stop().await;
        }
        read?;
    }
    Ok(())
}

/// The programs of both versions that were found, and why not where they were not.
async fn major_programs(
    places: &Places,
    from: &str,
    to: &str,
) -> ((Option<Programs>, Option<Programs>), Vec<UpgradeError>) {
    let mut missing = Vec::new();
    let mut take = |found: Result<Programs, UpgradeError>| found.map_err(|error| missing.push(error)).ok();
    let former = places.former(from).await;
    let former = take(former.map_err(|found| UpgradeError::NoFormerPrograms { major: from.to_owned(), found }));
    let current = places.current(to).await;
    let current = take(current.map_err(|found| UpgradeError::NoPrograms { major: to.to_owned(), found }));
    ((former, current), missing)
}

/// The running database, or one started for us.
async fn open(options: &EmbeddedOptions) -> Result<(Logins, Option<EmbeddedPostgres>), UpgradeError> {
    match EmbeddedPostgres::start(options).await {
        Ok(started) => Ok((started.logins(), Some(started))),
        Err(EmbeddedError::InUse { dir, pid }) => match embedded_pg::logins_of_running(&dir) {
            Some(logins) => Ok((logins, None)),
            None => Err(EmbeddedError::InUse { dir, pid }.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// What the database itself says.
async fn read(
    report: &mut Report,
    logins: &Logins,
    binaries: &Binaries,
    major: &str,
    db: &Path,
    programs: Option<&Programs>,
) -> Result<(), UpgradeError> {
    migrations(report, &logins.admin_url).await;
    let available = embedded_pg::available_extensions(binaries, major, db);
    let (mut lacking, mut libraries) = (BTreeSet::new(), BTreeSet::new());
    let names = databases_of(&connect(&logins.admin_url).await?).await?;
    for name in names {
        let client = connect_to(&logins.admin_url, &name).await?;
        let installed = client.query("select extname::text from pg_extension", &[]).await?;
        lacking.extend(installed.iter().map(|row| row.get::<_, String>(0)).filter(|name| !available.contains(name)));
        let used = "select distinct substr(probin, 9) from pg_proc where probin like '$libdir/%'";
        libraries.extend(client.query(used, &[]).await?.iter().map(|row| row.get::<_, String>(0)));
    }
    extensions(report, lacking.into_iter().collect());
    if let Some(programs) = programs {
        let folders = library_folders(&programs.folder);
        for name in libraries {
            let file =
                if name.ends_with(".so") { name.clone() } else { format!("{name}{}", std::env::consts::DLL_SUFFIX) };
            if !folders.iter().any(|folder| folder.join(&file).is_file()) {
                report.add(
                    Level::Problem,
                    format!(
                        "functions of the database need the library {name}, which {} lacks",
                        programs.folder.display()
                    ),
                );
            }
        }
    }
    Ok(())
}

/// Where the libraries of the server in `bin` may lie.
fn library_folders(bin: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(bin).unwrap_or_else(|_| bin.to_owned());
    let above = real.parent().map(Path::to_owned).unwrap_or_default();
    ["lib/postgresql", "lib", "lib64"].map(|name| above.join(name)).to_vec()
}

async fn migrations(report: &mut Report, url: &str) {
    match migrate::pending(url).await {
        Ok(Pending { platform, auth }) => {
            for (what, files) in [("platform", &platform), ("auth", &auth)] {
                match files.as_slice() {
                    [] => report.add(Level::Ok, format!("{what}: up to date")),
                    files => report.add(
                        Level::Pending,
                        format!(
                            "{what}: {} schema file(s) will run at the next start: {}",
                            files.len(),
                            files.join(", ")
                        ),
                    ),
                }
            }
            report.migrations = Some(Migrations { platform, auth });
        }
        Err(error) => report.add(Level::Note, format!("the state of the schemas is not known: {error}")),
    }
}

fn extensions(report: &mut Report, lacking: Vec<String>) {
    if lacking.is_empty() {
        report.add(Level::Ok, "every installed extension has its package");
    } else {
        let text = format!(
            "no package provides the installed extension(s) {}: install them beside the binaries, or drop them",
            lacking.join(", ")
        );
        report.add(Level::Problem, text);
    }
    report.missing_extensions = lacking;
}

fn disk(report: &mut Report, db: &Path, is_copied: bool) {
    let (for_copy, free_mib) = major::room(db);
    let needed_mib = if is_copied { for_copy } else { NEEDED_TO_START };
    let text = format!("{needed_mib} MiB are needed on the disk of the database, and {free_mib} MiB are free");
    report.add(if free_mib < needed_mib { Level::Problem } else { Level::Ok }, text);
    report.disk = Some(Disk { free_mib, needed_mib });
}

fn backups(report: &mut Report, data_dir: &Path) {
    let proved = State::read(data_dir).proved;
    report.proved_backup = proved.as_ref().map(|backup| backup.made_at);
    match proved.map(|backup| (Utc::now() - backup.made_at).num_days()) {
        Some(days) if days <= PROVED_WITHIN_DAYS => {
            report.add(Level::Ok, format!("the last verified backup is {days} days old"));
        }
        Some(days) => {
            report.add(Level::Note, format!("the last verified backup is {days} days old: make and verify one first"))
        }
        None => report.add(Level::Note, "no backup was ever verified (ferrobase backup, ferrobase backup verify)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_pending_steps_and_obstacles() {
        let mut report = Report::default();
        report.add(Level::Ok, "fine");
        assert!(!report.pending && report.problems == 0);
        report.add(Level::Pending, "to do");
        report.add(Level::Problem, "bad");
        assert!(report.pending && report.problems == 1);
        assert_eq!(report.lines(), "ok       fine\npending  to do\nproblem  bad\n");
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(json["findings"][1], serde_json::json!({ "level": "pending", "text": "to do" }));
    }
}
