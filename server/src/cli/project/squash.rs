//! `migration squash`: replaces migrations, all or those up to a version, by one file with the resulting schema, and updates the
//! history.
//!
//! The schema comes from a copy of the project ([`Copy`]) that gets these migrations, and is written as in `db dump`. That leaves
//! out what a fresh project could not run as it stands; the migration adds it: policies and triggers on the platform's tables,
//! and event triggers. Reference: supabase/cli `internal/migration/squash`.

use std::path::Path;

use anyhow::Context;

use super::dump;
use super::ephemeral::Copy;
use super::import::is_projects_on_platform;
use super::say;
use super::target::logins;
use crate::cli::database::block_on;
use crate::migrate;
use crate::project::Project;

/// `until` is the last version to squash.
pub fn squash(project: &Project, until: Option<&str>) -> anyhow::Result<()> {
    let logins = logins(project)?;
    let files = project.migrations()?;
    let (mut paths, mut versions) = (files.paths.as_slice(), files.versions());
    if let Some(until) = until {
        let last = versions.iter().position(|version| version == until);
        let last = last.with_context(|| format!("there is no migration of version {until}"))?;
        versions.truncate(last + 1);
        paths = paths.get(..=last).context("a migration has no version")?;
    }
    let Some((newest, others)) = paths.split_last() else { anyhow::bail!("there is no migration to squash") };
    anyhow::ensure!(!others.is_empty(), "{} is already the earliest migration", shown(newest));
    let known = block_on(async { Ok(migrate::project::known(&logins.admin_url, &logins.url).await?) })?;
    if let Some(pending) = versions.iter().find(|version| !known.history.contains_key(*version)) {
        anyhow::bail!(
            "migration {pending} is not applied: run 'ferrobase migration up' first, so that the history can be updated"
        );
    }
    let (schema, rows) = block_on(async {
        say("Creating shadow database...");
        let shadow = Copy::start(&project.without_migrations()?).await?;
        let squashed = async {
            let url = shadow.database_url();
            migrate::project::migrations(&url, paths, None, &|line| say(line)).await?;
            let rows = [rows_beside(&url, project).await?, own_rows(&url).await?].concat();
            Ok((schema_of(&url).await?, rows))
        }
        .await;
        shadow.end().await?;
        squashed
    })?;
    // The new file is complete before the first old one is removed.
    let partial = newest.with_extension("partial");
    std::fs::write(&partial, &schema).with_context(|| format!("cannot write {}", partial.display()))?;
    std::fs::rename(&partial, newest).with_context(|| format!("cannot write {}", newest.display()))?;
    for path in others {
        std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let (last, gone) = versions.split_last().context("a migration has no version")?;
    block_on(async {
        migrate::project::repair(&logins.url, &[], gone, false).await?;
        Ok(migrate::project::repair(&logins.url, std::slice::from_ref(newest), std::slice::from_ref(last), true)
            .await?)
    })?;
    say(&format!("Squashed local migrations to {}", shown(newest)));
    if !rows.is_empty() {
        say(&format!(
            "WARN: the rows that migrations inserted into {} are not in it: write them into the file or into supabase/seed.sql, or \
             take the former files back from git.",
            rows.join(", ")
        ));
    }
    Ok(())
}

/// The schema as SQL.
pub async fn schema_of(url: &str) -> anyhow::Result<String> {
    let client = super::target::connect(url).await?;
    let major: i32 = client.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?.get(0);
    let (mut schema, whole) = dump::schemas(url, u32::try_from(major)?)?;
    for statement in
        migrate::split_statements(&whole).iter().filter(|statement| is_projects_on_platform(statement.text))
    {
        schema.push_str(&format!("{};\n\n", statement.text));
    }
    Ok(schema)
}

/// The platform's tables that a schema is not complete without, and that have other rows than those of the project's configuration.
pub async fn rows_beside(url: &str, project: &Project) -> anyhow::Result<Vec<String>> {
    let client = super::target::connect(url).await?;
    let buckets: Vec<String> = project.buckets().into_iter().map(|bucket| bucket.name).collect();
    let secrets: Vec<String> = project.vault().into_iter().map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for (table, name, declared) in [
        ("storage.buckets", "name", buckets),
        ("cron.job", "null::text", vec![]),
        ("vault.secrets", "name", secrets),
        ("pgmq.meta", "null::text", vec![]),
    ] {
        if !client.query_one("select to_regclass($1) is not null", &[&table]).await?.get::<_, bool>(0) {
            continue;
        }
        let others = format!("select exists (select from {table} where {name} is null or {name} <> all ($1))");
        if client.query_one(&others, &[&declared]).await?.get(0) {
            found.push(table.to_owned());
        }
    }
    Ok(found)
}

/// The project's own tables that have rows.
async fn own_rows(url: &str) -> anyhow::Result<Vec<String>> {
    let client = super::target::connect(url).await?;
    let tables = "select n.nspname, format('%I.%I', n.nspname, c.relname)
                  from pg_class c join pg_namespace n on n.oid = c.relnamespace
                  where c.relkind = 'r' and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
                    and not exists (select from pg_depend d
                                    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
                  order by 2";
    let mut found = Vec::new();
    for row in client.query(tables, &[]).await? {
        let (schema, table): (String, String) = (row.get(0), row.get(1));
        if !dump::is_platform(&schema)
            && client.query_one(&format!("select exists (select from {table})"), &[]).await?.get(0)
        {
            found.push(table);
        }
    }
    Ok(found)
}

fn shown(path: &Path) -> String {
    format!("supabase/migrations/{}", path.file_name().unwrap_or_default().display())
}
