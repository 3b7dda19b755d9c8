//! Records of applied files: one table per kind of set, with the columns that other tools expect.

use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};
use tokio_postgres::types::{ToSql, Type};

use super::MigrateError;
use super::files::SqlFile;
use super::session::Session;
use super::statements::{Statement, split};

/// The table that records a set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ledger {
    /// `_supavisor.platform_files`.
    Platform,
    /// `auth.schema_migrations`, shared with Supabase Auth: only versions; ours begin with `ferrobase_`.
    Auth,
    /// `supabase_migrations.schema_migrations`, as in the Supabase CLI, with our checksums added.
    Migrations,
    /// `supabase_migrations.definition_files`: the application's functions, views, triggers, policies and rights.
    Definitions,
    /// `_supavisor.seed_files`.
    DemoSeed,
    /// `supabase_migrations.seed_files`, as in the Supabase CLI.
    ProjectSeeds,
}

/// The record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `None` if another tool wrote the row, or if the ledger keeps none.
    pub checksum: Option<String>,
    /// When it was applied, for messages.
    pub applied_at: String,
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// Records all accounts after a seed: it ran in a database without others.
const REMEMBER_USERS: &str = "do $$ begin
  if to_regclass('auth.users') is not null and to_regclass('_supavisor.seeded_users') is not null then
    insert into _supavisor.seeded_users select id from auth.users on conflict do nothing;
  end if;
end $$";

impl Ledger {
    /// The key of a file's record.
    pub fn key(self, file: &SqlFile) -> String {
        match self {
            Self::Migrations => file.version.clone(),
            Self::Auth => format!("ferrobase_{}", file.file.trim_end_matches(".sql")),
            Self::Platform | Self::Definitions | Self::DemoSeed | Self::ProjectSeeds => file.file.clone(),
        }
    }

    /// The checksum of a file's text.
    pub fn checksum(self, file: &SqlFile) -> String {
        match self {
            // The CLI hashes the exact bytes.
            Self::ProjectSeeds => hex::encode(Sha256::digest(file.text.as_bytes())),
            _ => file.checksum(),
        }
    }

    /// All records by key. Creates the table, unless something else creates it.
    pub async fn entries(self, session: &Session) -> Result<HashMap<String, Entry>, MigrateError> {
        session.client.batch_execute("set client_min_messages = warning").await?;
        if let Some(make) = self.make() {
            session.client.batch_execute(make).await?;
        }
        self.read(session).await
    }

    /// All records by key; none where there is no table.
    pub async fn read(self, session: &Session) -> Result<HashMap<String, Entry>, MigrateError> {
        // Where an earlier version was the last to run, the platform's is in schema ferrobase.
        let former = if self == Self::Platform { "ferrobase.platform_files" } else { self.table() };
        let found = "select coalesce(to_regclass($1), to_regclass($2))::text";
        let found = session.client.query_one(found, &[&self.table(), &former]).await?;
        let Some(table) = found.get::<_, Option<String>>(0) else { return Ok(HashMap::new()) };
        let (key, checksum, applied_at) = match self {
            Self::Auth => ("version", "null::text", "null::timestamptz"),
            Self::Migrations => ("version", "checksum", "applied_at"),
            Self::ProjectSeeds => ("path", "coalesce(hash, '')", "null::timestamptz"),
            Self::Platform | Self::Definitions | Self::DemoSeed => ("name", "checksum", "applied_at"),
        };
        let read = format!(
            "select {key}::text, {checksum},
                    coalesce(to_char({applied_at} at time zone 'utc', 'YYYY-MM-DD HH24:MI \"UTC\"'), 'an earlier day')
             from {table}"
        );
        let rows = session.client.query(&read, &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), Entry { checksum: row.get(1), applied_at: row.get(2) })).collect())
    }

    /// Treats files with the recorded statements as unchanged. `migration fetch` writes such files: it does not know the blanks
    /// between statements, nor the comments after the last one.
    pub async fn accept_equal_statements(
        self,
        session: &Session,
        files: &[SqlFile],
        known: &mut HashMap<String, Entry>,
    ) -> Result<(), MigrateError> {
        if self != Self::Migrations {
            return Ok(());
        }
        let is_changed =
            |entry: &Entry, file| entry.checksum.as_ref().is_some_and(|known| *known != self.checksum(file));
        let changed: HashMap<&str, &SqlFile> = files
            .iter()
            .filter(|file| known.get(&file.version).is_some_and(|entry| is_changed(entry, file)))
            .map(|file| (file.version.as_str(), file))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let recorded = "select version, statements from supabase_migrations.schema_migrations
                        where version = any ($1) and statements is not null";
        let versions: Vec<&str> = changed.keys().copied().collect();
        for row in session.client.query(recorded, &[&versions]).await? {
            let (version, recorded): (String, Vec<Option<String>>) = (row.get(0), row.get(1));
            let (Some(file), Some(entry)) = (changed.get(version.as_str()), known.get_mut(&version)) else { continue };
            // As in the checksum, the kind of line ends does not count.
            let now = split(&file.text);
            let are_equal = now.len() == recorded.len()
                && now.iter().zip(&recorded).all(|(now, recorded)| {
                    recorded.as_ref().is_some_and(|recorded| lines_of(&now.recorded()).eq(lines_of(recorded)))
                });
            if are_equal {
                entry.checksum = Some(self.checksum(file));
            }
        }
        Ok(())
    }

    /// Records a file with its current text.
    pub async fn record(self, session: &Session, file: &SqlFile) -> Result<(), MigrateError> {
        let (key, checksum, client) = (self.key(file), self.checksum(file), &session.client);
        let table = self.table();
        match self {
            Self::Auth => {
                let insert = "insert into auth.schema_migrations (version) values ($1) on conflict do nothing";
                client.execute(insert, &[&key]).await?;
            }
            Self::Migrations => {
                let statements: Vec<Cow<'_, str>> = split(&file.text).iter().map(Statement::recorded).collect();
                let insert = "insert into supabase_migrations.schema_migrations as m
                                (version, statements, name, checksum, applied_at)
                              values ($1, $2, $3, $4, now())
                              on conflict (version) do update
                                set statements = excluded.statements, name = excluded.name, checksum = excluded.checksum,
                                    applied_at = coalesce(m.applied_at, excluded.applied_at)";
                // In one round trip.
                let values: [(&(dyn ToSql + Sync), Type); 4] = [
                    (&key, Type::TEXT),
                    (&statements, Type::TEXT_ARRAY),
                    (&file.name, Type::TEXT),
                    (&checksum, Type::TEXT),
                ];
                client.execute_typed(insert, &values).await?;
            }
            Self::ProjectSeeds => {
                let insert = "insert into supabase_migrations.seed_files (path, hash) values ($1, $2)
                              on conflict (path) do update set hash = excluded.hash";
                client.execute(insert, &[&key, &checksum]).await?;
            }
            Self::Platform | Self::Definitions | Self::DemoSeed => {
                let insert = format!(
                    "insert into {table} (name, checksum) values ($1, $2)
                     on conflict (name) do update set checksum = excluded.checksum, applied_at = now()"
                );
                client.execute(&insert, &[&key, &checksum]).await?;
            }
        }
        Ok(())
    }

    /// Deletes records of files that are no longer in the set.
    pub async fn forget_others(self, session: &Session, files: &[&SqlFile]) -> Result<(), MigrateError> {
        let keys: Vec<String> = files.iter().map(|file| self.key(file)).collect();
        let delete = format!("delete from {} where name <> all ($1)", self.table());
        session.client.execute(&delete, &[&keys]).await?;
        Ok(())
    }

    /// Records what the whole set has created: the accounts of the demo data.
    pub async fn finish(self, session: &Session) -> Result<(), MigrateError> {
        if self == Self::DemoSeed {
            session.client.batch_execute(REMEMBER_USERS).await?;
        }
        Ok(())
    }

    fn table(self) -> &'static str {
        match self {
            Self::Platform => "_supavisor.platform_files",
            Self::Auth => "auth.schema_migrations",
            Self::Migrations => "supabase_migrations.schema_migrations",
            Self::Definitions => "supabase_migrations.definition_files",
            Self::DemoSeed => "_supavisor.seed_files",
            Self::ProjectSeeds => "supabase_migrations.seed_files",
        }
    }

    /// The platform's ledger creates the table of the demo data. The first file of `sql/auth` creates its own.
    fn make(self) -> Option<&'static str> {
        match self {
            Self::Platform => Some(
                // Earlier versions had them in schema ferrobase.
                "create schema if not exists _supavisor;
                 do $$ declare
                   name text;
                 begin
                   foreach name in array array['platform_files', 'seeded_users', 'seed_files'] loop
                     if to_regclass('_supavisor.' || name) is null and to_regclass('ferrobase.' || name) is not null then
                       execute format('alter table ferrobase.%I set schema _supavisor', name);
                     end if;
                   end loop;
                 end $$;
                 create table if not exists _supavisor.platform_files (
                   name text primary key, checksum text not null, applied_at timestamptz not null default now());
                 create table if not exists _supavisor.seeded_users (user_id uuid primary key);
                 create table if not exists _supavisor.seed_files (
                   name text primary key, checksum text not null, applied_at timestamptz not null default now())",
            ),
            // The CLI's columns come first. Rows that it wrote have neither checksum nor time.
            Self::Migrations => Some(
                "create schema if not exists supabase_migrations;
                 create table if not exists supabase_migrations.schema_migrations (
                   version text primary key, statements text[], name text);
                 alter table supabase_migrations.schema_migrations
                   add column if not exists checksum text,
                   add column if not exists applied_at timestamptz",
            ),
            Self::Definitions => Some(
                "create schema if not exists supabase_migrations;
                 create table if not exists supabase_migrations.definition_files (
                   name text primary key, checksum text not null, applied_at timestamptz not null default now())",
            ),
            Self::ProjectSeeds => Some(
                "create schema if not exists supabase_migrations;
                 create table if not exists supabase_migrations.seed_files (path text primary key, hash text)",
            ),
            Self::Auth | Self::DemoSeed => None,
        }
    }
}
