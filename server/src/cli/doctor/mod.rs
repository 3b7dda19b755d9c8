//! `doctor`: checks configuration and database. Prints a line for everything that is missing or too permissive, or all findings
//! as JSON.

mod database;
mod pooler;
mod replica;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;

use super::database::{Database, block_on};
use crate::app::Settings;
use crate::backup::{self, Backup, BackupConfig, Catalog, LogState, State};
use crate::config::{Reader, Source};
use crate::embedded_pg;

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
    findings.extend(exposed(Path::new(ENV_FILE)));
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
/// A schedule is reported if there was no backup in as many of its intervals.
const MISSED: u32 = 2;

/// The ages of the last backups. Without a schedule, backups of an external database are its provider's.
fn backups(source: &Source) -> Option<Finding> {
    let mut reader = Reader::new(source);
    let is_external = reader.text(&["DATABASE_URL"]).is_some();
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    // Invalid settings are reported as such.
    let config = BackupConfig::read(&mut reader);
    if is_external && config.every.is_none() {
        return None;
    }
    let state = State::read(&data_dir);
    // A schedule is not kept by what is made elsewhere by hand.
    let mut last = state.last_made(config.every.and(config.to.as_ref())).map(Backup::begun);
    let mut proved = state.proved.as_ref().map(|proved| proved.made_at);
    if let Some(place) = &config.to {
        let catalog = match block_on(async { Ok(Catalog::read(place, &state).await?) }) {
            Ok(catalog) => catalog,
            Err(error) => return Some(Finding::Problem(format!("backups: {error:#}"))),
        };
        if catalog.lacks_last {
            let archive = state.made_in(place).map(|made| made.archive.as_str()).unwrap_or_default();
            return Some(Finding::Problem(format!(
                "backups: the last one, {archive}, is no longer there: is its disk mounted?"
            )));
        }
        proved = proved.max(catalog.proved.as_ref().map(|(begun, _)| *begun));
        // Another instance may have made it, which has a data folder of its own.
        if is_external {
            last = last.max(catalog.last_begun(Utc::now()));
        }
    }
    // Before the first one, as long as there is a database.
    let since = last.or_else(|| created_at(&data_dir).filter(|_| !is_external));
    let is_late = config.every.zip(since).is_some_and(|(every, since)| {
        (Utc::now() - since).to_std().is_ok_and(|age| age > every.saturating_mul(MISSED))
    });
    Some(about_backups(last, proved, is_late))
}

/// When the embedded PostgreSQL's cluster was created or restored.
fn created_at(data_dir: &Path) -> Option<DateTime<Utc>> {
    let version = embedded_pg::cluster_of(data_dir)?.join("PG_VERSION");
    Some(version.metadata().ok()?.modified().ok()?.into())
}

fn about_backups(last: Option<DateTime<Utc>>, proved: Option<DateTime<Utc>>, is_late: bool) -> Finding {
    let days = |time: DateTime<Utc>| (Utc::now() - time).num_days();
    let mut text = match last.map(|last| (days(last), (Utc::now() - last).num_hours())) {
        Some((..=1, hours)) => format!("backups: the last one is {hours} hours old"),
        Some((days, _)) => format!("backups: the last one is {days} days old"),
        None if proved.is_none() && !is_late => {
            return Finding::Note("backups: none yet (ferrobase backup)".to_owned());
        }
        None => "backups: none was made here yet".to_owned(),
    };
    if is_late {
        text.push_str(", although FERROBASE_BACKUP_EVERY asks for more (the server's log says why)");
    }
    let is_proved = proved.is_some_and(|proved| days(proved) <= PROVED_WITHIN_DAYS);
    text.push_str(&match proved {
        Some(proved) => format!(", and the last verified one is {} days old", days(proved)),
        None => ", and none was ever verified".to_owned(),
    });
    if !is_proved {
        text.push_str(" (ferrobase backup verify)");
    }
    match (is_late, is_proved) {
        (true, _) => Finding::Problem(text),
        (false, true) => Finding::Good(text),
        (false, false) => Finding::Note(text),
    }
}

/// WAL that was last archived longer ago than this indicates a failure: while nothing changes, it is archived every five minutes.
const LOG_WITHIN: Duration = Duration::from_secs(15 * 60);
/// The same for longer intervals, as a multiple of the interval.
const LOG_MISSED: u32 = 3;

/// The latest point in time that can be restored, if continuous archiving is enabled.
fn points_in_time(source: &Source) -> Option<Finding> {
    let mut reader = Reader::new(source);
    reader.text(&["FERROBASE_BACKUP_LOG_EVERY"])?;
    let data_dir = reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase");
    let config = BackupConfig::read(&mut reader);
    let Some(log) = LogState::read(Path::new(&data_dir)) else {
        return Some(Finding::Note("points in time: the log of changes has not been archived yet".to_owned()));
    };
    let state = State::read(Path::new(&data_dir));
    let made = config.to.as_ref().and_then(|place| state.made_in(place));
    let has_archive = made.is_some_and(|made| made.chain.as_ref() == Some(&log.chain));
    let age = (Utc::now() - log.reached).to_std().unwrap_or_default();
    let allowed = config.log_every.map_or(LOG_WITHIN, |every| every.saturating_mul(LOG_MISSED).max(LOG_WITHIN));
    let reached = log.reached.to_rfc3339();
    if age > allowed {
        let late = format!("points in time: only up to {reached} ({} minutes ago", age.as_secs() / 60);
        return Some(match embedded_pg::is_running(Path::new(&data_dir)) {
            Ok(true) => Finding::Problem(format!("{late}; the server's log says why)")),
            Ok(false) => Finding::Note(format!("{late}; the server is not running)")),
            Err(error) => Finding::Problem(format!(
                "{late}; postmaster.pid, which tells whether the server runs, cannot be read: {error})"
            )),
        });
    }
    Some(if has_archive {
        Finding::Good(format!("points in time: up to {reached}"))
    } else {
        Finding::Note("points in time: the archive that the log continues from does not exist yet".to_owned())
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

/// Where the documentation has 'keys generate' write to.
const ENV_FILE: &str = ".env";

const READ_BY_ALL: u32 = 0o004;

/// A settings file that has keys and that everybody on this machine can read.
fn exposed(file: &Path) -> Option<Finding> {
    let mode = file.metadata().ok()?.permissions().mode();
    let text = std::fs::read_to_string(file).ok().filter(|_| mode & READ_BY_ALL != 0)?;
    let settings = Source::from_pairs(dotenvy::from_read_iter(text.as_bytes()).flatten());
    let has_keys = !backup::keys::collect(&settings).is_empty();
    let shown = file.display();
    has_keys.then(|| Finding::Note(format!("keys: everybody on this machine can read {shown} (chmod 600 {shown})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_keys_that_everybody_can_read_is_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(".env");
        let found = |text: &str, mode: u32| {
            std::fs::write(&file, text).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("its mode");
            exposed(&file)
        };
        let note = found("SITE_URL=x\nJWT_SECRET=secret\n", 0o644).expect("a note");
        assert!(note.parts().0 == "note" && note.parts().1.contains("chmod 600"), "{note:?}");
        assert_eq!(found("JWT_SECRET=secret\n", 0o640), None, "its group is somebody's choice");
        assert_eq!(found("SITE_URL=x\n", 0o644), None);
        assert_eq!(exposed(&folder.path().join("none")), None);
    }

    #[test]
    fn a_report_is_printed_as_lines_or_as_json() {
        let findings =
            [Finding::Good("fine".to_owned()), Finding::Note("limited".to_owned()), Finding::Problem("bad".to_owned())];
        assert_eq!(as_lines(&findings), "ok       fine\nnote     limited\nproblem  bad\n");
        let report: serde_json::Value = serde_json::from_str(&as_json(&findings)).expect("JSON");
        assert_eq!((&report["problems"], &report["notes"]), (&json!(1), &json!(1)));
        assert_eq!(report["findings"][2], json!({ "level": "problem", "text": "bad" }));
    }

    /// It said "ok" of a verified backup while the schedule had failed for weeks.
    #[test]
    fn a_schedule_that_fails_is_a_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("archives");
        let data_dir = folder.path().to_str().expect("text");
        let found = |more: &[(&str, &str)]| {
            let settings = [("FERROBASE_DATA_DIR", data_dir), ("FERROBASE_BACKUP_TO", place.to_str().expect("text"))];
            backups(&Source::from_pairs([&settings, more].concat()))
        };
        let every = ("FERROBASE_BACKUP_EVERY", "24h");
        let aged = |hours: i64| {
            let time = Utc::now() - chrono::Duration::hours(hours);
            Backup::new(&place.join(crate::backup::archive_name(time)).display().to_string(), time)
        };
        let is = |finding: Option<Finding>, level: &str, text: &str| {
            let finding = finding.expect("a finding");
            assert!(finding.parts().0 == level && finding.parts().1.contains(text), "{finding:?}");
        };
        let record_made = |hours: i64| {
            let _ = std::fs::remove_dir_all(&place);
            std::fs::create_dir(&place).expect("a folder");
            let made = aged(hours);
            std::fs::write(&made.archive, "an archive").expect("a file");
            State::record_made(folder.path(), made).expect("recorded");
        };
        is(found(&[every]), "note", "none yet");
        std::fs::create_dir(folder.path().join("db")).expect("a folder");
        let version = folder.path().join("db/PG_VERSION");
        std::fs::write(&version, "18").expect("a file");
        is(found(&[every]), "note", "none yet");
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 24 * 60 * 60);
        std::fs::File::options().write(true).open(&version).and_then(|file| file.set_modified(long_ago)).expect("set");
        is(found(&[every]), "problem", "none was made here yet, although FERROBASE_BACKUP_EVERY asks for more");

        record_made(10 * 24 + 1);
        State::record_proved(folder.path(), aged(10 * 24 + 1)).expect("recorded");
        is(found(&[]), "ok", "the last one is 10 days old, and the last verified one is 10 days old");
        is(found(&[every]), "problem", "the last one is 10 days old, although");
        is(found(&[("FERROBASE_BACKUP_EVERY", "168h")]), "ok", "");
        record_made(47);
        is(found(&[every]), "ok", "the last one is 47 hours old, and the last verified one is 10 days old");
        State::record_proved(folder.path(), aged(40 * 24)).expect("recorded");
        is(found(&[every]), "ok", "10 days old");

        // What is made elsewhere by hand is none of the schedule's.
        record_made(60);
        let by_hand = folder.path().join("by-hand").join(crate::backup::archive_name(Utc::now())).display().to_string();
        State::record_made(folder.path(), Backup::new(&by_hand, Utc::now())).expect("recorded");
        is(found(&[every]), "problem", "the last one is 2 days old, although");
        is(found(&[]), "ok", "the last one is 0 hours old");

        // Of an external database, another instance may have made it.
        record_made(60);
        let external = ("DATABASE_URL", "postgresql://elsewhere");
        assert_eq!(found(&[external]), None);
        is(found(&[external, every]), "problem", "although");
        let other = aged(1).archive;
        std::fs::write(&other, "an archive").expect("a file");
        is(found(&[external, every]), "ok", "1 hours old");
        // One of a clock that was ahead hides none of the others.
        let ahead = aged(-2).archive;
        std::fs::write(&ahead, "an archive").expect("a file");
        is(found(&[external, every]), "ok", "1 hours old");
        std::fs::remove_file(&ahead).expect("removed");
        // … or verified it.
        std::fs::write(format!("{other}.proved"), "verified").expect("a file");
        is(found(&[external, every]), "ok", "the last verified one is 0 days old");

        // What was mounted there is not at the moment.
        std::fs::remove_dir_all(&place).expect("removed");
        is(found(&[every]), "problem", "is no longer there: is its disk mounted?");
    }

    /// It was a mere note, so nobody was told.
    #[test]
    fn a_log_that_is_no_longer_archived_is_a_problem_of_a_server_that_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("archives");
        let found = |log_every: &str| {
            points_in_time(&Source::from_pairs([
                ("FERROBASE_DATA_DIR", folder.path().to_str().expect("text")),
                ("FERROBASE_BACKUP_TO", place.to_str().expect("text")),
                ("FERROBASE_BACKUP_LOG_EVERY", log_every),
            ]))
        };
        let reached = |minutes: i64| {
            let reached = Utc::now() - chrono::Duration::minutes(minutes);
            LogState { chain: "c".to_owned(), reached }.write(folder.path()).expect("recorded");
        };
        let is_with = |log_every: &str, level: &str, text: &str| {
            let finding = found(log_every).expect("a finding");
            assert!(finding.parts().0 == level && finding.parts().1.contains(text), "{finding:?}");
        };
        let is = |level: &str, text: &str| is_with("10s", level, text);
        is("note", "has not been archived yet");
        reached(6);
        is("note", "does not exist yet");
        let made_in = |place: &Path| {
            let archive = place.join(crate::backup::archive_name(Utc::now())).display().to_string();
            let made = Backup::new(&archive, Utc::now()).in_chain(Some("c".to_owned()));
            State::record_made(folder.path(), made).expect("recorded");
        };
        made_in(&folder.path().join("elsewhere"));
        is("note", "does not exist yet");
        made_in(&place);
        is("ok", "up to");
        reached(16);
        is("note", "16 minutes ago; the server is not running");
        let db = folder.path().canonicalize().expect("a folder").join("db");
        let pid_file = db.join("postmaster.pid");
        std::fs::create_dir(&db).expect("a folder");
        // Each waits for a line that never comes, and ends with the test.
        let [mut process, mut other] = [db.as_path(), Path::new("/")].map(|work_in| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", "read line", "postgres"]).arg(work_in).current_dir(work_in);
            command.stdin(std::process::Stdio::piped()).spawn().expect("it runs")
        });
        // The process is gone, and its number was given to another one.
        std::fs::write(&pid_file, format!("{}\n", other.id())).expect("a file");
        is("note", "16 minutes ago; the server is not running");
        std::fs::write(&pid_file, format!("{}\n", process.id())).expect("a file");
        is("problem", "16 minutes ago; the server's log says why");
        // Longer intervals are honest settings, too.
        reached(179);
        is_with("1h", "ok", "up to");
        is("problem", "179 minutes ago");
        reached(181);
        is_with("1h", "problem", "181 minutes ago");
        reached(16);
        std::fs::remove_file(folder.path().join("backups/state.json")).expect("removed");
        is("problem", "16 minutes ago");
        for process in [&mut process, &mut other] {
            process.kill().and_then(|()| process.wait()).expect("ended");
        }
        is("note", "16 minutes ago; the server is not running");
        // Whether the server runs cannot be told.
        std::fs::remove_file(&pid_file).expect("removed");
        std::fs::create_dir(&pid_file).expect("not to be read");
        is("problem", "postmaster.pid, which tells whether the server runs, cannot be read: ");
    }

    /// It called settings unknown that only commands read.
    #[test]
    fn no_documented_setting_is_unknown() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let mut names = std::collections::BTreeSet::new();
        for entry in std::fs::read_dir(&docs).expect("the documentation").flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let words = text.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
            let is_name = |word: &&str| word.starts_with("FERROBASE_") && !word.ends_with('_');
            names.extend(words.filter(is_name).map(str::to_owned));
        }
        assert!(names.len() > 50, "{names:?}");
        // Of compose.yaml.
        names.retain(|name| !["FERROBASE_IMAGE", "FERROBASE_PORT"].contains(&name.as_str()));
        let value = |name: &str| if name.ends_with("_URL") { "postgresql://x@127.0.0.1:1/x" } else { "x" };
        let mut settings = Source::from_pairs(names.iter().map(|name| (name.as_str(), value(name))));
        // Without these, some of the others have no effect.
        settings.set("FERROBASE_BACKUP_TO", "s3://bucket/prefix");
        settings.set("GOTRUE_SECURITY_CAPTCHA_ENABLED", "true");
        // Every command reads it first of all.
        settings.get("FERROBASE_REPLICATION_URL");
        let unknown: Vec<String> = configuration(&settings)
            .into_iter()
            .filter_map(|finding| finding.parts().1.strip_prefix("unknown setting ").map(str::to_owned))
            .collect();
        assert_eq!(unknown, [""; 0]);
    }
}
