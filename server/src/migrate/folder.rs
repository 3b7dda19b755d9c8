//! Migrations of a project: each file once, recorded where the Supabase CLI records them.

use std::collections::HashMap;

use super::files::Source;
use super::session::{Record, Session};
use super::statements::split;
use super::{Applied, MigrateError};

struct Known {
    /// `None` for rows that another tool has written.
    checksum: Option<String>,
    applied_at: String,
}

/// Applies the files of `source` that `supabase_migrations.schema_migrations` does not list, in name order.
///
/// Refuses to go on when a listed file was changed. The API is told to reload its schema cache.
pub async fn dir(url: &str, source: &Source) -> Result<Applied, MigrateError> {
    let files = source.read()?;
    let mut applied = Applied::default();
    if files.is_empty() {
        return Ok(applied);
    }
    let session = Session::connect_alone(url).await?;
    let known = known(&session).await?;
    for file in &files {
        let checksum = file.checksum();
        match known.get(&file.version) {
            Some(Known { checksum: Some(recorded), applied_at }) if *recorded != checksum => {
                return Err(MigrateError::Edited { file: file.file.clone(), applied_at: applied_at.clone() });
            }
            Some(_) => applied.unchanged += 1,
            None => {}
        }
    }
    for file in files.iter().filter(|file| !known.contains_key(&file.version)) {
        let statements: Vec<&str> = split(&file.text).iter().map(|s| s.text).collect();
        let checksum = file.checksum();
        let record = Record {
            sql: "insert into supabase_migrations.schema_migrations (version, statements, name, checksum, applied_at)
                  values ($1, $2, $3, $4, now())",
            values: &[&file.version, &statements, &file.name, &checksum],
        };
        session.run(file, &record).await?;
        applied.files.push(file.file.clone());
    }
    if !applied.files.is_empty() {
        session.reset().await?;
        session.client.batch_execute("notify pgrst, 'reload schema'").await?;
    }
    Ok(applied)
}

/// What is recorded, by version. Makes the table, or adds our columns to the CLI's.
async fn known(session: &Session) -> Result<HashMap<String, Known>, MigrateError> {
    let rows = {
        session
            .client
            .batch_execute(
                "set client_min_messages = warning;
                 create schema if not exists supabase_migrations;
                 create table if not exists supabase_migrations.schema_migrations (
                   version text primary key, statements text[], name text);
                 alter table supabase_migrations.schema_migrations
                   add column if not exists checksum text,
                   add column if not exists applied_at timestamptz",
            )
            .await?;
        session
            .client
            .query(
                "select version, checksum,
                        coalesce(to_char(applied_at at time zone 'utc', 'YYYY-MM-DD HH24:MI \"UTC\"'), 'an earlier day')
                 from supabase_migrations.schema_migrations",
                &[],
            )
            .await?
    };
    Ok(rows.iter().map(|row| (row.get(0), Known { checksum: row.get(1), applied_at: row.get(2) })).collect())
}
