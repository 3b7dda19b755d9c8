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
    let declared: Vec<String> = project.buckets().into_iter().map(|bucket| bucket.name).collect();
    let (schema, has_rows) = block_on(async {
        say("Creating shadow database...");
        let shadow = Copy::start(&project.without_migrations()?).await?;
        let squashed = async {
            let url = shadow.database_url();
            migrate::project::migrations(&url, paths, None, &|line| say(line)).await?;
            schema_of(&url, &declared).await
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
    if has_rows {
        say(
            "WARN: rows that migrations inserted, such as buckets, jobs of cron and secrets of the vault, are not in it: write them \
             into the file or into supabase/seed.sql, or take the former files back from git.",
        );
    }
    Ok(())
}

/// The schema as SQL, and whether the migrations also created buckets or jobs. `declared`: buckets of the configuration.
pub async fn schema_of(url: &str, declared: &[String]) -> anyhow::Result<(String, bool)> {
    let client = super::target::connect(url).await?;
    let major: i32 = client.query_one("select current_setting('server_version_num')::int / 10000", &[]).await?.get(0);
    let others =
        "select exists (select from storage.buckets where name <> all ($1)), to_regclass('cron.job') is not null";
    let row = client.query_one(others, &[&declared]).await?;
    let (has_buckets, has_cron): (bool, bool) = (row.get(0), row.get(1));
    let has_jobs = has_cron && client.query_one("select exists (select from cron.job)", &[]).await?.get(0);
    let has_rows = has_buckets || has_jobs;
    let (mut schema, whole) = dump::schemas(url, u32::try_from(major)?)?;
    for statement in
        migrate::split_statements(&whole).iter().filter(|statement| is_projects_on_platform(statement.text))
    {
        schema.push_str(&format!("{};\n\n", statement.text));
    }
    Ok((schema, has_rows))
}

fn shown(path: &Path) -> String {
    format!("supabase/migrations/{}", path.file_name().unwrap_or_default().display())
}
