//! `migrate` and `seed`.

use std::path::PathBuf;

use clap::Args;

use super::database::{Database, block_on};
use crate::audit::note_command;
use crate::config::{Reader, Source as Settings};
use crate::migrate::{self, GivenUrls, Seeded, Source};

#[derive(Args)]
pub struct MigrateArgs {
    /// Folder of *.sql files, or a project with supabase/migrations [default: the migrations in this binary]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Args)]
pub struct SeedArgs {
    /// The buckets of a project's folder and their files
    #[command(subcommand)]
    pub target: Option<super::project::SeedTarget>,
    /// Folder of *.sql files, or a project with supabase/seed.sql [default: the demo data in this binary]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the migrations of the platform, of auth and of the project, in this order.
pub fn migrate(args: MigrateArgs, settings: &Settings) -> anyhow::Result<()> {
    let source = args.dir.map_or(Source::App, Source::Folder);
    // An unreadable folder is reported before a database is started.
    source.read()?;
    let logins = Logins::read(settings);
    let applied = block_on(Database::with_or_new(settings, async |database| {
        up_to_date(&database.admin_url, &logins).await?;
        let applied = migrate::dir(&database.url, &source).await;
        note_command(&database.admin_url, "migrate", &source.to_string(), applied.is_ok()).await;
        Ok(applied?)
    }))?;
    let mut text: String = applied.files.iter().map(|file| format!("applied {file}\n")).collect();
    text.push_str(&format!("{} applied, {} unchanged\n", applied.files.len(), applied.unchanged));
    super::print_all(&text)
}

pub fn seed(args: SeedArgs, settings: &Settings) -> anyhow::Result<()> {
    if let Some(super::project::SeedTarget::Buckets { linked, .. }) = args.target {
        return super::project::seed_buckets(linked);
    }
    let source = args.dir.map_or(Source::Demo, Source::SeedFolder);
    source.read()?;
    let logins = Logins::read(settings);
    let seeded = block_on(Database::with_or_new(settings, async |database| {
        up_to_date(&database.admin_url, &logins).await?;
        let seeded = migrate::seed(&database.url, &source).await;
        note_command(&database.admin_url, "seed", &source.to_string(), seeded.is_ok()).await;
        Ok(seeded?)
    }))?;
    super::print_all(&match seeded {
        Seeded::Loaded(files) => format!("loaded {} file(s)\n", files.len()),
        Seeded::AlreadyLoaded => "the same files were loaded before; nothing to do\n".to_owned(),
    })
}

/// How the server's roles log in.
pub struct Logins {
    /// If the owner has no password, the roles' passwords are derived from this.
    secret: String,
    given: GivenUrls,
}

impl Logins {
    pub fn read(settings: &Settings) -> Self {
        let reader = Reader::new(settings);
        Self { secret: reader.text_or(&["JWT_SECRET", "GOTRUE_JWT_SECRET"], ""), given: GivenUrls::read(&reader) }
    }
}

/// Brings the schemas that a project's migrations build on up to date.
pub async fn up_to_date(url: &str, logins: &Logins) -> anyhow::Result<()> {
    let urls = migrate::prepare(url, &logins.secret, &logins.given).await?;
    Ok(migrate::auth(&urls.auth_url).await.map(drop)?)
}
