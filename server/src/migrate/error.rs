//! Why a database could not be brought up to date; each message is one line.

use tokio_postgres::error::{DbError, ErrorPosition};

use crate::db::with_causes;

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
    #[error("{file}:{line}: {message}")]
    Sql { file: String, line: usize, message: String },
    #[error("seeding is refused: the database holds {count} user(s) that no seed made (such as {example})")]
    ForeignUsers { count: i64, example: String },
    #[error(
        "role {role} refuses the password that ferrobase gives the roles it makes: set {setting} to a URL that logs in as it"
    )]
    ForeignRole { role: &'static str, setting: &'static str },
    #[error(
        "the database URL has no password: set JWT_SECRET, from which those of the server's roles are then derived"
    )]
    NoKey,
    #[error("{0}")]
    Database(String),
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(describe(&error))
    }
}

/// The database's own words on one line: message, detail, hint and SQLSTATE.
pub fn describe(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else { return one_line(&with_causes(error)) };
    let mut text = one_line(db.message());
    for more in [db.detail(), db.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(&one_line(more));
    }
    format!("{text} ({})", db.code().code())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A failure of `sql`, which begins at character `offset` of `whole`, with the line it points at.
pub fn in_file(file: &str, whole: &str, offset: usize, error: &tokio_postgres::Error) -> MigrateError {
    let position = match error.as_db_error().and_then(DbError::position) {
        Some(ErrorPosition::Original(position)) => offset + (*position as usize).saturating_sub(1),
        _ => offset,
    };
    let line = 1 + whole.chars().take(position).filter(|c| *c == '\n').count();
    MigrateError::Sql { file: file.to_owned(), line, message: describe(error) }
}
