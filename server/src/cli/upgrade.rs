//! `upgrade`: brings a database to this binary: the embedded PostgreSQL to its major version, then the platform's schemas.

use std::path::{Path, PathBuf};

use clap::Args;

use super::backup::binaries;
use super::database::{Database, block_on};
use super::migrate::{Logins as Roles, up_to_date};
use super::project::program_folders;
use super::stop::Stop;
use crate::audit::note_command;
use crate::config::{PG_TOOLS, Reader, Source};
use crate::embedded_pg::{self, Binaries, EmbeddedOptions};
use crate::upgrade::{self, Outcome, Places, Subject, UpgradeError, Upgraded};

#[derive(Args)]
pub struct UpgradeArgs {
    /// Only report what would be done and what prevents it; exit code 1 if something does
    #[arg(long, conflicts_with = "back")]
    check: bool,
    /// Print one JSON object, for programs that watch
    #[arg(long, requires = "check")]
    json: bool,
    /// Put the database from before the last upgrade of PostgreSQL back in place; what was written since stays aside
    #[arg(long)]
    back: bool,
    /// Programs of the PostgreSQL that made the database (postgres, pg_ctl) [default: FERROBASE_UPGRADE_FROM_BIN, then the usual
    /// places]
    #[arg(long, value_name = "FOLDER")]
    from_bin: Option<PathBuf>,
}

pub fn run(args: &UpgradeArgs, source: &Source) -> anyhow::Result<()> {
    let external = Reader::new(source).text(&["DATABASE_URL"]);
    let embedded = binaries(source);
    if args.back {
        anyhow::ensure!(external.is_none(), "DATABASE_URL names an external database");
        return go_back(&embedded);
    }
    let places = block_on(async { Ok(places(&embedded, args.from_bin.clone(), source).await) })?;
    if args.check {
        return look(args, external, embedded, places);
    }
    if external.is_none() {
        major(&embedded, &places, source)?;
    }
    let roles = Roles::read(source);
    block_on(Database::with(source, async |logins| {
        up_to_date(&logins.admin_url, &roles).await?;
        note_command(&logins.admin_url, "upgrade", env!("CARGO_PKG_VERSION"), true).await;
        Ok(())
    }))?;
    super::print_all("the schemas of platform and auth are up to date\n")
}

fn look(args: &UpgradeArgs, external: Option<String>, embedded: EmbeddedOptions, places: Places) -> anyhow::Result<()> {
    let data_dir = embedded.data_root.clone();
    let subject = match external {
        Some(url) => Subject::External(url),
        None => Subject::Embedded { options: embedded, places },
    };
    let report = block_on(async { Ok(upgrade::check(&subject, &data_dir).await) })?;
    super::print_all(&if args.json {
        format!("{}\n", serde_json::to_string_pretty(&report)?)
    } else {
        report.lines()
    })?;
    anyhow::ensure!(report.problems == 0, "{} problem(s) prevent an upgrade", report.problems);
    Ok(())
}

fn major(embedded: &EmbeddedOptions, places: &Places, source: &Source) -> anyhow::Result<()> {
    let roles = Roles::read(source);
    let outcome = block_on(async {
        let stop = Stop::watch()?;
        let say = |line: &str| eprintln!("{line}");
        let bring_up = async |logins: &embedded_pg::Logins| {
            up_to_date(&logins.admin_url, &roles).await.map_err(|error| UpgradeError::Database(format!("{error:#}")))
        };
        let outcome = stop.before(upgrade::major(embedded, places, &say, bring_up)).await;
        match outcome {
            Some(outcome) => Ok(outcome?),
            None => {
                upgrade::clear(embedded).await?;
                Err(UpgradeError::Stopped.into())
            }
        }
    })?;
    let text = match outcome {
        Outcome::Current { major } => format!("the database is already PostgreSQL {major}\n"),
        Outcome::Upgraded(upgraded) => told(&upgraded),
    };
    super::print_all(&text)
}

fn told(Upgraded { from, to, former, tables, rows, lost_slots, notes }: &Upgraded) -> String {
    let mut text = format!(
        "the database was upgraded from PostgreSQL {from} to {to}: {tables} tables with {rows} rows are the same\n\
         the former one is in {}: remove it when you no longer need it; 'ferrobase upgrade --back' restores it\n",
        former.display()
    );
    if !lost_slots.is_empty() {
        text.push_str(&format!("replication slots that have to be created again: {}\n", lost_slots.join(", ")));
    }
    text.extend(notes.iter().map(|note| format!("{note}\n")));
    text
}

fn go_back(embedded: &EmbeddedOptions) -> anyhow::Result<()> {
    let (version, aside) = block_on(async { Ok(upgrade::back(embedded).await?) })?;
    super::print_all(&format!(
        "the database of PostgreSQL {version} is back in place: set PG_BIN_DIR to its binaries\n\
         the upgraded one, with everything written since, is in {}\n",
        aside.display()
    ))
}

/// Where programs are looked for: those of the version of the database, and those of the binaries'.
async fn places(embedded: &EmbeddedOptions, from_bin: Option<PathBuf>, source: &Source) -> Places {
    let reader = Reader::new(source);
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let given = from_bin.or_else(|| reader.text(&["FERROBASE_UPGRADE_FROM_BIN"]).map(PathBuf::from));
    let cluster = embedded_pg::cluster_of(&embedded.data_root).and_then(|db| embedded_pg::version_of(&db));
    let former = match given {
        Some(folder) => {
            // Programs that do not run are reported as missing.
            let _ = Binaries::complete(&folder);
            vec![folder]
        }
        None => program_folders(cluster.as_deref().map_or(0, number)),
    };
    let mut current: Vec<PathBuf> = std::env::var_os(PG_TOOLS).map(PathBuf::from).into_iter().collect();
    current.extend(embedded.bin_dir.clone());
    if let Ok(binaries) = Binaries::find(embedded.bin_dir.as_deref())
        && let Ok(major) = binaries.major_version(None, Path::new("/")).await
    {
        current.extend(program_folders(number(&major)));
    }
    Places { former, current }
}
