//! Loads a project's folder into a database, as `supabase start` and `db push` do: roles, migrations, seeds.
//!
//! Differs from [`super::dir`] by following the Supabase CLI: only files named `<digits>_<name>.sql` count, a changed
//! file is not refused, and seeds are recorded with a hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::MigrateError;
use super::files::{self, SqlFile};
use super::ledger::Ledger;
use super::locks::Attempt;
use super::runner::{Plan, Set, Step, Unit, WhenChanged, unwatched};
use super::session::Session;

/// What `supabase_functions` needs, on pg_net.
pub(super) const WEBHOOKS: &str = include_str!("../../../sql/project/webhooks.sql");

/// Drops what the project made in a database that cannot be made anew.
const CLEAR: &str = include_str!("clear.sql");

/// The name of the project's roles, in errors and in the record.
const ROLES: &str = "supabase/roles.sql";

/// Receives progress, one line at a time.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

/// The recorded state of a database's project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The project that owns the database; `None` in a new one.
    pub id: Option<String>,
    /// Whether roles, migrations and seeds were completed.
    pub is_complete: bool,
    /// Applied migrations: version and name.
    pub history: BTreeMap<String, String>,
}

/// Reads without changing anything. The history is the project's table, or whatever the project has put in its place,
/// so it is read as the owner.
pub async fn known(admin_url: &str, url: &str) -> Result<Known, MigrateError> {
    let session = Session::connect_for_platform(admin_url).await?;
    let mut known = Known::default();
    // Where an earlier version was the last to run, it is in schema ferrobase.
    let exists = "select coalesce(to_regclass('_supavisor.project'), to_regclass('ferrobase.project'))::text,
                         to_regclass('supabase_migrations.schema_migrations') is not null";
    let row = session.client.query_one(exists, &[]).await?;
    let (table, has_history): (Option<String>, bool) = (row.get(0), row.get(1));
    if let Some(table) = table
        && let Some(row) = session.client.query_opt(&format!("select id, complete from {table}"), &[]).await?
    {
        known.id = Some(row.get(0));
        known.is_complete = row.get(1);
    }
    if has_history {
        known.history = history(url).await?;
    }
    Ok(known)
}

/// Applied migrations: version and name. Empty if the table does not exist. Read as the owner.
pub async fn history(url: &str) -> Result<BTreeMap<String, String>, MigrateError> {
    let session = Session::connect(url).await?;
    let there = "select to_regclass('supabase_migrations.schema_migrations') is not null";
    if !session.client.query_one(there, &[]).await?.get::<_, bool>(0) {
        return Ok(BTreeMap::new());
    }
    let applied = "select version, coalesce(name, '') from supabase_migrations.schema_migrations";
    Ok(session.client.query(applied, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Records the database's project and whether it is complete.
pub async fn remember(admin_url: &str, id: &str, is_complete: bool) -> Result<(), MigrateError> {
    let session = Session::connect_for_platform(admin_url).await?;
    session
        .client
        .execute(
            "insert into _supavisor.project (id, complete) values ($1, $2)
             on conflict (id) do update set complete = excluded.complete",
            &[&id, &is_complete],
        )
        .await?;
    Ok(())
}

/// What a new database of a project gets before its migrations.
pub struct ProjectSetup<'a> {
    /// `supabase/roles.sql`, if there is one. It is recorded like a seed, so that it runs once, however often the first start is
    /// interrupted.
    pub roles: Option<&'a Path>,
    /// Whether the API roles get access to new tables in `public`.
    pub exposes_new_tables: bool,
    pub jwt_secret: &'a str,
    pub jwt_expiry: u64,
}

/// Settings, default privileges and roles. Requires the platform.
pub async fn begin(admin_url: &str, url: &str, setup: &ProjectSetup<'_>) -> Result<(), MigrateError> {
    let admin = Session::connect_for_platform(admin_url).await?;
    for (name, value) in [
        ("app.settings.jwt_secret", setup.jwt_secret.to_owned()),
        ("app.settings.jwt_exp", setup.jwt_expiry.to_string()),
    ] {
        let statement = admin
            .client
            .query_one(
                "select format('alter database %I set %I = %L', current_database(), $1::text, $2::text)",
                &[&name, &value],
            )
            .await?;
        admin.client.batch_execute(statement.get(0)).await?;
    }
    // Elsewhere, the installed version is used.
    let is_ours = "select current_user = 'supabase_admin'
                     and exists (select from pg_available_extensions where name = 'pg_net')";
    if admin.client.query_one(is_ours, &[]).await?.get(0) {
        admin.client.batch_execute(WEBHOOKS).await?;
    }
    let session = Session::connect_alone(url).await?;
    session.reset().await?;
    if !setup.exposes_new_tables {
        let roles = "from anon, authenticated, service_role";
        session
            .client
            .batch_execute(&format!(
                "alter default privileges in schema public revoke select, insert, update, delete on tables {roles};
                 alter default privileges in schema public revoke usage, select on sequences {roles};
                 alter default privileges in schema public revoke execute on functions {roles}"
            ))
            .await?;
    }
    if let Some(path) = setup.roles {
        let roles = [SqlFile { file: ROLES.to_owned(), ..files::file(path)? }];
        let set =
            Set { files: &roles, ledger: Ledger::ProjectSeeds, when_changed: WhenChanged::Keep, unit: Unit::File };
        Plan::of(&session, set).await?.carry_out(&session, &unwatched).await?;
    }
    Ok(())
}

/// Runs files that are not recorded, such as roles of `db push` and declared schemas: each in one transaction, in the given order. The names
/// are used in errors.
pub async fn globals(url: &str, named: &[(String, PathBuf)]) -> Result<(), MigrateError> {
    let session = Session::connect_alone(url).await?;
    for (name, path) in named {
        let file = SqlFile { file: name.clone(), ..files::file(path)? };
        session.reset().await?;
        run_unrecorded(&session, &file).await?;
    }
    Ok(())
}

async fn run_unrecorded(session: &Session, file: &SqlFile) -> Result<(), MigrateError> {
    session.client.batch_execute("begin").await?;
    session.statements(file, &mut Attempt::only(Instant::now())).await?;
    session.client.batch_execute("commit").await?;
    Ok(())
}

/// Creates or updates the secrets of `[db.vault]`, as the owner, because the extension may be the project's.
pub async fn vault(url: &str, secrets: &[(String, String)]) -> Result<bool, MigrateError> {
    if secrets.is_empty() {
        return Ok(true);
    }
    let session = Session::connect(url).await?;
    let there = "select to_regprocedure('vault.create_secret(text, text, text, uuid)') is not null";
    if !session.client.query_one(there, &[]).await?.get::<_, bool>(0) {
        return Ok(false);
    }
    for (name, secret) in secrets {
        let changed = session
            .client
            .query("select vault.update_secret(id, $2) from vault.secrets where name = $1", &[name, secret])
            .await?;
        if changed.is_empty() {
            session.client.query_one("select vault.create_secret($2, $1)", &[name, secret]).await?;
        }
    }
    Ok(true)
}

/// The migrations at `paths`, no two of the same version.
fn read(paths: &[PathBuf]) -> Result<Vec<SqlFile>, MigrateError> {
    let files = paths.iter().map(|path| files::file(path)).collect::<Result<Vec<_>, _>>()?;
    files::one_per_version(files.iter().map(|file| (file.version.as_str(), file.file.as_str())))?;
    Ok(files)
}

/// Reads files as [`migrations`] and [`seeds`] do, and does nothing else.
pub fn require_readable(migrations: &[PathBuf], others: &[PathBuf]) -> Result<(), MigrateError> {
    read(migrations)?;
    others.iter().try_for_each(|path| files::file(path).map(drop))
}

/// Applies the files that the history does not list, in name order. `until` is the last version to apply.
pub async fn migrations(
    url: &str,
    paths: &[PathBuf],
    until: Option<&str>,
    tell: Tell<'_>,
) -> Result<Vec<String>, MigrateError> {
    let mut files = Vec::with_capacity(paths.len());
    for file in read(paths)? {
        if until.is_none_or(|until| file.version.as_str() <= until) {
            files.push(file);
        }
    }
    let session = Session::connect_alone(url).await?;
    let set = Set { files: &files, ledger: Ledger::Migrations, when_changed: WhenChanged::Keep, unit: Unit::File };
    let watch = |step: Step, file: &SqlFile| match step {
        Step::Run => tell(&format!("Applying migration {}...", file.file)),
        Step::Keep | Step::Record => tell(&format!(
            "{} was changed after it was applied: 'ferrobase db reset' applies it as it is now",
            file.file
        )),
    };
    let applied = Plan::of(&session, set).await?.carry_out(&session, &watch).await?;
    if !applied.files.is_empty() {
        session.tell_api().await?;
    }
    Ok(applied.files)
}

/// Empties the database of the project at `url`: its objects, accounts and history. Buckets and files stay.
pub async fn clear(url: &str) -> Result<(), MigrateError> {
    let session = Session::connect_alone(url).await?;
    session.reset().await?;
    session.client.batch_execute(&format!("begin; {CLEAR}; commit")).await?;
    session.tell_api().await
}

/// Marks versions as applied (with the statements of their files) or removes them from the history; without versions, the whole
/// history is replaced. In one transaction, so that an error leaves the history as it was.
pub async fn repair(url: &str, files: &[PathBuf], versions: &[String], is_applied: bool) -> Result<(), MigrateError> {
    let files = if is_applied { read(files)? } else { Vec::new() };
    let session = Session::connect_alone(url).await?;
    // Makes the table.
    Ledger::Migrations.entries(&session).await?;
    session.client.batch_execute("begin").await?;
    if versions.is_empty() {
        session.client.batch_execute("truncate supabase_migrations.schema_migrations").await?;
    }
    if !is_applied {
        let delete = "delete from supabase_migrations.schema_migrations where version = any ($1)";
        session.client.execute(delete, &[&versions]).await?;
    }
    for file in files.iter().filter(|file| versions.is_empty() || versions.contains(&file.version)) {
        Ledger::Migrations.record(&session, file).await?;
    }
    session.client.batch_execute("commit").await?;
    Ok(())
}

/// Runs new seeds, each in one transaction. For a changed seed, which has already run, only the hash is updated.
pub async fn seeds(url: &str, seeds: &[(String, PathBuf)], tell: Tell<'_>) -> Result<(), MigrateError> {
    if seeds.is_empty() {
        return Ok(());
    }
    let mut files = Vec::with_capacity(seeds.len());
    for (name, path) in seeds {
        files.push(SqlFile { file: name.clone(), ..files::file(path)? });
    }
    let session = Session::connect_alone(url).await?;
    let set = Set { files: &files, ledger: Ledger::ProjectSeeds, when_changed: WhenChanged::Record, unit: Unit::File };
    let watch = |step: Step, file: &SqlFile| {
        let doing = if step == Step::Run { "Seeding data from" } else { "Updating seed hash to" };
        tell(&format!("{doing} {}...", file.file));
    };
    Plan::of(&session, set).await?.carry_out(&session, &watch).await?;
    Ok(())
}

/// A seed that has not run, or not with its current text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSeed {
    pub name: String,
    pub path: PathBuf,
    /// Whether it ran with another text. If so, only its hash is updated.
    pub is_changed: bool,
}

/// The seeds that [`seeds`] would run or record. Read-only.
pub async fn pending_seeds(url: &str, seeds: &[(String, PathBuf)]) -> Result<Vec<PendingSeed>, MigrateError> {
    let session = Session::connect(url).await?;
    let there = "select to_regclass('supabase_migrations.seed_files') is not null";
    let mut recorded: BTreeMap<String, String> = BTreeMap::new();
    if session.client.query_one(there, &[]).await?.get(0) {
        let hashes = "select path, coalesce(hash, '') from supabase_migrations.seed_files";
        recorded = session.client.query(hashes, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
    }
    let mut pending = Vec::new();
    for (name, path) in seeds {
        let file = SqlFile { file: name.clone(), ..files::file(path)? };
        let hash = Ledger::ProjectSeeds.checksum(&file);
        let known = recorded.get(name);
        if known != Some(&hash) {
            pending.push(PendingSeed { name: name.clone(), path: path.clone(), is_changed: known.is_some() });
        }
    }
    Ok(pending)
}

/// Creates or updates the buckets in a configuration. As the owner, whose triggers may be on the table.
pub async fn buckets(url: &str, buckets: &[DeclaredBucket]) -> Result<(), MigrateError> {
    let session = Session::connect(url).await?;
    for bucket in buckets {
        session
            .client
            .execute(
                "insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
                 values ($1, $1, coalesce($2, false), $3, $4)
                 on conflict (id) do update set public = coalesce($2, buckets.public),
                   file_size_limit = coalesce($3, buckets.file_size_limit),
                   allowed_mime_types = coalesce($4, buckets.allowed_mime_types), updated_at = now()",
                &[&bucket.name, &bucket.public, &bucket.file_size_limit, &bucket.allowed_mime_types],
            )
            .await?;
    }
    Ok(())
}

/// A declared bucket; `None` leaves a property as it is. In a new bucket it is private, and without limits of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredBucket {
    pub name: String,
    pub public: Option<bool>,
    pub file_size_limit: Option<i64>,
    pub allowed_mime_types: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_migrations_of_one_version_are_refused() {
        let root = std::env::temp_dir().join(format!("ferrobase-project-{}-twice", std::process::id()));
        std::fs::create_dir_all(&root).expect("a folder");
        let paths: Vec<PathBuf> = ["1_a.sql", "1_b.sql"].iter().map(|name| root.join(name)).collect();
        for path in &paths {
            std::fs::write(path, "").expect("a file");
        }
        let (one, two) = (read(&paths[..1]), read(&paths));
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(one.expect("one file").len(), 1);
        let error = two.expect_err("refused").to_string();
        assert!(error.starts_with("the files 1_a.sql and 1_b.sql have the same version 1"), "{error}");
    }
}
