//! `migrate` and `seed`.

use std::path::PathBuf;

use clap::Args;

use super::database::{Database, block_on};
use crate::config::Source as Settings;
use crate::migrate::{self, Seeded, Source};

#[derive(Args)]
pub struct MigrateArgs {
    /// Folder of *.sql files, or a project with supabase/migrations [default: the migrations in this binary]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Args)]
pub struct SeedArgs {
    /// Folder of *.sql files [default: the demo data in this binary]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Platform, auth and the project's migrations, in this order.
pub fn migrate(args: MigrateArgs, settings: &Settings) -> anyhow::Result<()> {
    let source = args.dir.map_or(Source::App, Source::Folder);
    // A folder that cannot be read is known before a database is started.
    source.read()?;
    let secret = secret(settings);
    let applied = block_on(Database::with(settings, async |url| {
        up_to_date(&url, &secret).await?;
        Ok(migrate::dir(&url, &source).await?)
    }))?;
    for file in &applied.files {
        println!("applied {file}");
    }
    println!("{} applied, {} were there already", applied.files.len(), applied.unchanged);
    Ok(())
}

pub fn seed(args: SeedArgs, settings: &Settings) -> anyhow::Result<()> {
    let source = args.dir.map_or(Source::Demo, Source::Folder);
    source.read()?;
    let secret = secret(settings);
    let seeded = block_on(Database::with(settings, async |url| {
        up_to_date(&url, &secret).await?;
        Ok(migrate::seed(&url, &source).await?)
    }))?;
    match seeded {
        Seeded::Loaded(files) => println!("loaded {} file(s)", files.len()),
        Seeded::AlreadyLoaded => println!("the same files were loaded before; nothing to do"),
    }
    Ok(())
}

/// From what the passwords of the server's roles are derived where the owner has none.
fn secret(settings: &Settings) -> String {
    ["JWT_SECRET", "GOTRUE_JWT_SECRET"].iter().find_map(|name| settings.get(name)).unwrap_or("").to_owned()
}

/// What a project's migrations build on.
async fn up_to_date(url: &str, secret: &str) -> anyhow::Result<()> {
    migrate::prepare(url, secret).await?;
    Ok(())
}
