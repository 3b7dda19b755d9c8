//! Why a database could not be brought up to date; each message is one line.

use std::time::Duration;

use tokio_postgres::error::{DbError, ErrorPosition};

use super::statements::Statement;
use crate::db::{OpenError, with_causes};

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("cannot connect to the database: {0}")]
    Connect(String),
    #[error("the database URL is not usable: {0}")]
    Url(String),
    #[error("the database is PostgreSQL {0}; version 15 or newer is needed")]
    OldServer(String),
    #[error("cannot read {path}: {reason}")]
    Read { path: String, reason: String },
    #[error("there is no *.sql file in {0}")]
    NoFiles(String),
    #[error("the files {first} and {second} have the same version {version}: rename one of them")]
    SameVersion { version: String, first: String, second: String },
    #[error(
        "{file} was changed after it was applied on {applied_at}: put the file back as it was and write the change as a \
         new migration"
    )]
    Edited { file: String, applied_at: String },
    #[error(
        "the database was made by a version of the application before 0.1.0 and stands at {file}: start it once with \
         version 0.1.0, then with this one"
    )]
    OldHistory { file: String },
    #[error(
        "{0} is neither a numbered migration nor named functions.sql, views.sql, triggers.sql, policies.sql or rights.sql"
    )]
    UnknownFile(String),
    #[error("{file}:{line}: {message}, at: {statement}{kept}")]
    Sql {
        file: String,
        line: usize,
        message: String,
        /// How the statement begins.
        statement: String,
        /// What remains of this file and the earlier ones.
        kept: String,
    },
    #[error("seeding is refused: the database has {count} user(s) that no seed created (such as {example})")]
    ForeignUsers { count: i64, example: String },
    #[error(
        "role {role} does not accept the password that ferrobase gives the roles it creates: set {setting} to a URL that logs in as it"
    )]
    ForeignRole { role: &'static str, setting: &'static str },
    #[error(
        "the database URL has no password: set JWT_SECRET, from which the passwords of the server's roles are then derived"
    )]
    NoKey,
    #[error(
        "the pooler of FERROBASE_POOLER_URL does not accept role {role}, which the server created at DATABASE_URL: {cause}"
    )]
    Pooler { role: String, cause: String },
    #[error("{0}")]
    Database(String),
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(describe(&error))
    }
}

/// The database's own words on one line: message, detail, hint and SQLSTATE.
pub fn unopened(error: OpenError) -> MigrateError {
    MigrateError::Connect(match error {
        OpenError::Refused(refusal) => describe(&refusal),
        OpenError::Unreachable(text)
        | OpenError::Silent(text)
        | OpenError::Unsuitable(text)
        | OpenError::Failed(text) => text,
    })
}

/// One line about what went wrong.
pub fn describe(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else { return one_line(&with_causes(error)) };
    let mut text = one_line(db.message());
    let hint = unavailable(db.message()).or_else(|| db.hint());
    for more in [db.detail(), hint].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(&one_line(more));
    }
    format!("{text} ({})", db.code().code())
}

/// How to get an extension that Supabase has and that this PostgreSQL has not, by the message that says so.
fn unavailable(message: &str) -> Option<&'static str> {
    let name = message.strip_prefix("extension \"")?.strip_suffix("\" is not available")?;
    Some(match name {
        "vector" => "'just vector' in Ferrobase's checkout installs pgvector for the embedded PostgreSQL",
        "pgtap" => "'just pgtap' in Ferrobase's checkout installs pgTAP for the embedded PostgreSQL",
        _ if name.starts_with("postgis") || name.starts_with("address_standardizer") || name == "pgrouting" => {
            "the embedded PostgreSQL has no PostGIS: 'just postgis' in Ferrobase's checkout installs a server with it on Debian; \
             elsewhere install PostgreSQL 18 with postgresql-18-postgis-3; then name the folder of its programs in PG_BIN_DIR"
        }
        "rum" | "pgroonga" | "pgroonga_database" | "plv8" | "timescaledb" | "pg_stat_monitor" | "wal2json"
        | "orioledb" => {
            "the embedded PostgreSQL has no compiled extensions beside its own: install a PostgreSQL 18 that has it, and name the \
             folder of that server's programs in PG_BIN_DIR"
        }
        _ => return None,
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How much of a failing statement an error shows, in characters.
const SHOWN: usize = 160;

/// A failure of `statement` in the file whose text is `whole`, with the line it points at.
pub fn in_file(file: &str, whole: &str, statement: &Statement<'_>, error: &tokio_postgres::Error) -> MigrateError {
    let position = match error.as_db_error().and_then(DbError::position) {
        Some(ErrorPosition::Original(position)) => statement.offset + (*position as usize).saturating_sub(1),
        _ => statement.offset,
    };
    let line = 1 + whole.chars().take(position).filter(|c| *c == '\n').count();
    let text = one_line(statement.text);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    MigrateError::Sql { file: file.to_owned(), line, message: describe(error), statement: shown, kept: String::new() }
}

impl MigrateError {
    /// Whether the database refused with this SQLSTATE.
    pub(super) fn has_state(&self, code: &str) -> bool {
        match self {
            Self::Sql { message, .. } | Self::Database(message) => message.ends_with(&format!("({code})")),
            _ => false,
        }
    }

    /// Whether other sessions held locks that it needed.
    pub(super) fn is_blocked(&self) -> bool {
        self.has_state("55P03") || self.has_state("40P01")
    }

    /// Adds that it was tried so often.
    pub(super) fn tried(mut self, attempts: u32, elapsed: Duration) -> Self {
        if let Self::Sql { kept: text, .. } | Self::Database(text) = &mut self {
            text.push_str(&format!(
                "; other sessions held locks on what it changes in each of {attempts} attempts within {} s: look for long queries, \
                 open transactions and dumps in pg_stat_activity, and try again",
                elapsed.as_secs()
            ));
        }
        self
    }

    /// Adds that what was committed in the middle of the failing file stays.
    pub(super) fn of_partly_kept_file(&mut self, is_kept: bool) {
        if let Self::Sql { kept, .. } = self {
            kept.push_str(if is_kept {
                " (what the file had committed before it stays)"
            } else {
                " (nothing of the file was kept)"
            });
        }
    }

    /// Adds which files were applied before the failing one.
    pub(super) fn after(mut self, applied: &[String]) -> Self {
        if let Self::Sql { kept, .. } = &mut self
            && let [.., last] = applied
        {
            kept.push_str(&format!("; applied before it: {} file(s), the last {last}", applied.len()));
        }
        self
    }
}
