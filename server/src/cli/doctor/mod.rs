//! `doctor`: checks configuration and database. Prints a line for everything that is missing or too permissive, or all findings
//! as JSON.

mod database;
mod pooler;
mod replica;

use std::path::Path;

use chrono::Utc;
use clap::Args;
use serde_json::json;

use super::database::{Database, block_on};
use crate::app::Settings;
use crate::backup::{Backup, BackupConfig, LogState, State};
use crate::config::{Reader, Source};

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Good(String),
    /// Works, with a limitation worth knowing.
    Note(String),
    /// Broken or unsafe; the command fails.
    Problem(String),
}

impl Finding {
    /// The level, as in JSON and at the beginning of the line, and the message.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Good(text) => ("ok", text),
            Self::Note(text) => ("note", text),
            Self::Problem(text) => ("problem", text),
        }
    }
}

#[derive(Args)]
pub struct DoctorArgs {
    /// Print one JSON object, for monitoring
    #[arg(long)]
    json: bool,
}

pub fn run(args: &DoctorArgs, source: &Source) -> anyhow::Result<()> {
    let mut findings = configuration(source);
    let schemas = Reader::new(source)
        .list(&["PGRST_DB_SCHEMAS", "PGRST_DB_SCHEMA"])
        .unwrap_or_else(|| vec!["public".to_owned(), "graphql_public".to_owned()]);
    match block_on(Database::with(source, async |found| database::examine(&found.admin_url, &schemas).await)) {
        Ok(found) => {
            findings.extend(found);
            findings.extend(
                block_on(pooler::examine(source)).unwrap_or_else(|error| vec![Finding::Problem(format!("{error:#}"))]),
            );
            findings.extend(
                block_on(replica::examine(source)).unwrap_or_else(|error| Some(Finding::Problem(format!("{error:#}")))),
            );
        }
        Err(error) => findings.push(Finding::Problem(format!("{error:#}"))),
    }
    findings.extend(backups(source));
    findings.extend(points_in_time(source));
    super::print_all(&if args.json { as_json(&findings) } else { as_lines(&findings) })?;
    let problems = findings.iter().filter(|finding| matches!(finding, Finding::Problem(_))).count();
    anyhow::ensure!(problems == 0, "{problems} problem(s) found");
    Ok(())
}

fn as_lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let (level, text) = finding.parts();
        format!("{level:<8} {text}\n")
    };
    findings.iter().map(line).collect()
}

fn as_json(findings: &[Finding]) -> String {
    let count = |wanted: &str| findings.iter().filter(|finding| finding.parts().0 == wanted).count();
    let each = findings.iter().map(|finding| {
        let (level, text) = finding.parts();
        json!({ "level": level, "text": text })
    });
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "problems": count("problem"),
        "notes": count("note"),
        "findings": each.collect::<Vec<_>>(),
    });
    format!("{report:#}\n")
}

/// A backup verified longer ago than this is reported.
const PROVED_WITHIN_DAYS: i64 = 31;

/// The age of the last backups. Without a schedule, backups of an external database are its provider's.
fn backups(source: &Source) -> Option<Finding> {
    let reader = Reader::new(source);
    if reader.text(&["DATABASE_URL"]).is_some() && reader.text(&["FERROBASE_BACKUP_EVERY"]).is_none() {
        return None;
    }
    let state = State::read(Path::new(&reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase")));
    let days = |backup: &Backup| (Utc::now() - backup.made_at).num_days();
    Some(match (&state.made, &state.proved) {
        (_, Some(proved)) if days(proved) <= PROVED_WITHIN_DAYS => {
            Finding::Good(format!("backups: the last verified one is {} days old", days(proved)))
        }
        (_, Some(proved)) => Finding::Note(format!(
            "backups: the last verified one is {} days old (ferrobase backup verify)",
            days(proved)
        )),
        (Some(made), None) => Finding::Note(format!(
            "backups: the last one is {} days old, and none was ever verified (ferrobase backup verify)",
            days(made)
        )),
        (None, None) => Finding::Note("backups: none yet (ferrobase backup)".to_owned()),
    })
}

/// WAL that was last archived longer ago than this indicates a failure.
const LOG_WITHIN_MINUTES: i64 = 15;

/// The latest point in time that can be restored, if continuous archiving is enabled.
fn points_in_time(source: &Source) -> Option<Finding> {
    let reader = Reader::new(source);
    reader.text(&["FERROBASE_BACKUP_LOG_EVERY"])?;
    let data_dir = reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase");
    let Some(log) = LogState::read(Path::new(&data_dir)) else {
        return Some(Finding::Note("points in time: the log of changes has not been archived yet".to_owned()));
    };
    let has_archive =
        State::read(Path::new(&data_dir)).made.is_some_and(|made| made.chain.as_ref() == Some(&log.chain));
    let minutes = (Utc::now() - log.reached).num_minutes();
    Some(match (has_archive, minutes) {
        (false, _) => {
            Finding::Note("points in time: the archive that the log continues from does not exist yet".to_owned())
        }
        (true, ..=LOG_WITHIN_MINUTES) => Finding::Good(format!("points in time: up to {}", log.reached.to_rfc3339())),
        (true, _) => Finding::Note(format!(
            "points in time: only up to {} ({minutes} minutes ago; the server's log says why)",
            log.reached.to_rfc3339()
        )),
    })
}

/// All invalid settings.
fn configuration(source: &Source) -> Vec<Finding> {
    let mut source = source.clone();
    let mut findings = match Settings::read(&mut source) {
        Ok(settings) if settings.server.development => {
            vec![Finding::Note("configuration: development mode, with well-known keys".to_owned())]
        }
        Ok(_) => vec![Finding::Good("configuration".to_owned())],
        Err(problems) => problems.0.into_iter().map(Finding::Problem).collect(),
    };
    let mut reader = Reader::new(&source);
    BackupConfig::read(&mut reader);
    findings.extend(reader.into_problems().into_iter().map(Finding::Problem));
    findings.extend(source.unread().iter().map(|name| Finding::Note(format!("unknown setting {name}"))));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_printed_as_lines_or_as_json() {
        let findings =
            [Finding::Good("fine".to_owned()), Finding::Note("limited".to_owned()), Finding::Problem("bad".to_owned())];
        assert_eq!(as_lines(&findings), "ok       fine\nnote     limited\nproblem  bad\n");
        let report: serde_json::Value = serde_json::from_str(&as_json(&findings)).expect("JSON");
        assert_eq!((&report["problems"], &report["notes"]), (&json!(1), &json!(1)));
        assert_eq!(report["findings"][2], json!({ "level": "problem", "text": "bad" }));
    }
}
