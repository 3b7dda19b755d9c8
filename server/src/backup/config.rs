//! Settings of backups.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::Recipient;
use crate::config::{Reader, parse_go_duration};

/// Settings of backups.
#[derive(Clone, Debug)]
pub struct BackupConfig {
    /// `FERROBASE_BACKUP_TO`: the folder for archives.
    pub to: Option<PathBuf>,
    /// `FERROBASE_BACKUP_RECIPIENT`: public keys, separated by commas; the owner of any of them can open an archive.
    pub recipients: Vec<Recipient>,
    /// `FERROBASE_BACKUP_KEEP`: how many archives stay in the folder; without it all do.
    pub keep: Option<NonZeroUsize>,
    /// `FERROBASE_BACKUP_EVERY`, such as `24h`: how often the server makes one; without it never.
    pub every: Option<Duration>,
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
        let to = reader.text(&["FERROBASE_BACKUP_TO"]).map(PathBuf::from);
        let every = reader.text(&["FERROBASE_BACKUP_EVERY"]).and_then(|text| {
            let nanos = parse_go_duration(&text).and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
            if nanos.is_none() {
                reader.problem("FERROBASE_BACKUP_EVERY must be a duration such as 24h");
            }
            nanos.map(Duration::from_nanos)
        });
        if every.is_some() {
            if to.is_none() {
                reader.problem("FERROBASE_BACKUP_EVERY needs FERROBASE_BACKUP_TO, the folder for archives");
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
        Self { to, recipients, keep, every }
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
        for every in ["-1h", "0", "daily"] {
            assert!(
                read(&[("FERROBASE_BACKUP_EVERY", every)]).expect_err("refused")[0].contains("such as 24h"),
                "{every}"
            );
        }
    }
}
