//! Settings of backups.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{BackupStore, Recipient};
use crate::config::{Reader, parse_go_duration};

/// Settings of backups.
#[derive(Clone, Debug)]
pub struct BackupConfig {
    /// `FERROBASE_BACKUP_TO`: the folder for archives, or `s3://bucket/prefix`.
    pub to: Option<BackupStore>,
    /// `FERROBASE_BACKUP_RECIPIENT`: public keys separated by commas. The owner of any of them can open an archive.
    pub recipients: Vec<Recipient>,
    /// `FERROBASE_BACKUP_KEEP`: how many archives to keep; unset keeps all of them.
    pub keep: Option<NonZeroUsize>,
    /// `FERROBASE_BACKUP_EVERY`, such as `24h`: how often the server makes a backup; unset means never.
    pub every: Option<Duration>,
    /// `FERROBASE_BACKUP_FULL_EVERY`, such as `168h`: how often that backup is a full one; the others hold what has changed since
    /// the one before. Unset means that all are full.
    pub full_every: Option<Duration>,
    /// `FERROBASE_BACKUP_LOG_EVERY`, such as `10s`: how often the server archives new WAL, which allows a restore to any point in
    /// time; unset means never.
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
        let to = place.as_ref().and_then(|text| BackupStore::read(text, reader));
        let mut duration = |name: &'static str, example: &str| {
            let text = reader.text(&[name])?;
            let nanos = parse_go_duration(&text).and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
            if nanos.is_none() {
                reader.problem(format!("{name} must be a duration such as {example}"));
            }
            nanos.map(Duration::from_nanos)
        };
        let every = duration("FERROBASE_BACKUP_EVERY", "24h");
        let full_every = duration("FERROBASE_BACKUP_FULL_EVERY", "168h");
        let log_every = duration("FERROBASE_BACKUP_LOG_EVERY", "10s");
        if log_every.is_some() && reader.find(&["FERROBASE_BACKUP_EVERY"]).is_none() {
            reader.problem(
                "FERROBASE_BACKUP_LOG_EVERY needs FERROBASE_BACKUP_EVERY: a log is only useful after a backup",
            );
        }
        if every.is_some() {
            if place.is_none() {
                reader.problem("FERROBASE_BACKUP_EVERY needs FERROBASE_BACKUP_TO, the destination for archives");
            }
            if reader.find(&["FERROBASE_BACKUP_RECIPIENT"]).is_none() {
                reader.problem(
                    "FERROBASE_BACKUP_EVERY needs FERROBASE_BACKUP_RECIPIENT, a public key ('ferrobase backup key FILE' creates one)",
                );
            }
        }
        for (name, is_set) in
            [("FERROBASE_BACKUP_FULL_EVERY", full_every.is_some()), ("FERROBASE_BACKUP_LOG_EVERY", log_every.is_some())]
        {
            if is_set && reader.find(&["DATABASE_URL"]).is_some() {
                reader.problem(format!(
                    "{name} is only for the embedded PostgreSQL; backups of the one in DATABASE_URL are dumps"
                ));
            }
        }
        if full_every.is_some() && reader.find(&["FERROBASE_BACKUP_EVERY"]).is_none() {
            reader
                .problem("FERROBASE_BACKUP_FULL_EVERY needs FERROBASE_BACKUP_EVERY: how often a backup is made at all");
        }
        let keep = reader.parse(&["FERROBASE_BACKUP_KEEP"], "a number of archives, at least 1");
        Self { to, recipients, keep, every, full_every, log_every }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    #[test]
    fn a_schedule_requires_a_target_and_recipients() {
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
            ("FERROBASE_BACKUP_FULL_EVERY", "168h"),
            ("DATABASE_URL", "postgresql://elsewhere"),
        ]);
        let problems = problems.expect_err("refused");
        for name in ["BACKUP_TO", "BACKUP_RECIPIENT", "BACKUP_FULL_EVERY is only for the embedded", "BACKUP_KEEP"] {
            assert!(problems.iter().any(|problem| problem.contains(name)), "{name}: {problems:?}");
        }
        let problems = read(&[("FERROBASE_BACKUP_FULL_EVERY", "168h")]).expect_err("refused");
        assert!(problems[0].contains("needs FERROBASE_BACKUP_EVERY"), "{problems:?}");
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
