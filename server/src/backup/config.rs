//! Settings of backups.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Depot, Recipient};
use crate::config::{Reader, parse_go_duration};

/// Settings of backups.
#[derive(Clone, Debug)]
pub struct BackupConfig {
    /// `FERROBASE_BACKUP_TO`: the folder for archives, or `s3://bucket/prefix`.
    pub to: Option<Depot>,
    /// `FERROBASE_BACKUP_RECIPIENT`: public keys, separated by commas; the owner of any of them can open an archive.
    pub recipients: Vec<Recipient>,
    /// `FERROBASE_BACKUP_KEEP`: how many archives stay in the folder; without it all do.
    pub keep: Option<NonZeroUsize>,
    /// `FERROBASE_BACKUP_EVERY`, such as `24h`: how often the server makes one; without it never.
    pub every: Option<Duration>,
    /// `FERROBASE_BACKUP_LOG_EVERY`, such as `10s`: how often the server archives what has changed since, so that a restore may stop
    /// at any moment; without it never.
    pub log_every: Option<Duration>,
}

impl BackupConfig {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let mut recipients = Vec::new();
        for text in reader.list(&["FERROBASE_BACKUP_RECIPIENT"]).unwrap_or_default() {
            match text.parse() {
                Ok(recipient) => recipients.push(recipient),
                Err(error) => reader.problem(format!("FERROBASE_BACKUP_RECIPIENT: {error}")),
            }
        }
        let place = reader.text(&["FERROBASE_BACKUP_TO"]);
        let to = place.as_ref().and_then(|text| Depot::read(text, reader));
        let mut duration = |name: &'static str, example: &str| {
            let text = reader.text(&[name])?;
            let nanos = parse_go_duration(&text).and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
            if nanos.is_none() {
                reader.problem(format!("{name} must be a duration such as {example}"));
            }
            nanos.map(Duration::from_nanos)
        };
        let every = duration("FERROBASE_BACKUP_EVERY", "24h");
        let log_every = duration("FERROBASE_BACKUP_LOG_EVERY", "10s");
        if log_every.is_some() && reader.find(&["FERROBASE_BACKUP_EVERY"]).is_none() {
            reader.problem(
                "FERROBASE_BACKUP_LOG_EVERY needs FERROBASE_BACKUP_EVERY: a log is of use after a backup only",
            );
        }
        if every.is_some() {
            if place.is_none() {
                reader.problem("FERROBASE_BACKUP_EVERY needs FERROBASE_BACKUP_TO, the place for archives");
            }
            if reader.find(&["FERROBASE_BACKUP_RECIPIENT"]).is_none() {
                reader.problem(
                    "FERROBASE_BACKUP_EVERY needs FERROBASE_BACKUP_RECIPIENT, a public key ('ferrobase backup key FILE' makes one)",
                );
            }
            if reader.find(&["DATABASE_URL"]).is_some() {
                reader.problem(
                    "FERROBASE_BACKUP_EVERY is for the embedded PostgreSQL, and DATABASE_URL names another one",
                );
            }
        }
        let keep = reader.parse(&["FERROBASE_BACKUP_KEEP"], "a number of archives, at least 1");
        Self { to, recipients, keep, every, log_every }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    #[test]
    fn a_schedule_asks_for_what_it_needs() {
        let read = |pairs: &[(&str, &str)]| {
            let source = Source::from_pairs(pairs.iter().copied());
            let mut reader = Reader::new(&source);
            let config = BackupConfig::read(&mut reader);
            reader.finish(config).map_err(|problems| problems.0)
        };
        assert!(read(&[]).expect("nothing is needed").every.is_none());
        let problems = read(&[
            ("FERROBASE_BACKUP_EVERY", "24h"),
            ("FERROBASE_BACKUP_KEEP", "0"),
            ("DATABASE_URL", "postgresql://elsewhere"),
        ]);
        let problems = problems.expect_err("refused");
        for name in ["BACKUP_TO", "BACKUP_RECIPIENT", "DATABASE_URL", "BACKUP_KEEP"] {
            assert!(problems.iter().any(|problem| problem.contains(name)), "{name}: {problems:?}");
        }
        let problems = read(&[("FERROBASE_BACKUP_LOG_EVERY", "10s")]).expect_err("refused");
        assert!(problems[0].contains("needs FERROBASE_BACKUP_EVERY"), "{problems:?}");
        for every in ["-1h", "0", "daily"] {
            assert!(
                read(&[("FERROBASE_BACKUP_EVERY", every)]).expect_err("refused")[0].contains("such as 24h"),
                "{every}"
            );
        }
    }
}
