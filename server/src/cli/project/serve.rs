//! A project's server: prepares database, roles, migrations and seeds in the order of `supabase start`, then serves everything
//! that the project uses.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;

use super::objects::{Client, Kept};
use super::running::{FAILED, Place, READY};
use super::{docker, say, settings, source};
use crate::app::{App, Settings};
use crate::cli::serve::{Database, Listeners, PortNames, Started, raise_descriptors, serve, taken};
use crate::cli::stop::Stop;
use crate::config::{Reader, Source};
use crate::embedded_pg::EmbeddedError;
use crate::gateway::ApiKeys;
use crate::migrate::project::{DeclaredBucket, ProjectSetup};
use crate::migrate::{self, GivenUrls, MigrateError, PlatformUrls};
use crate::project::Project;
use crate::telemetry;

/// How much of a project is loaded into a new database.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The last migration to apply.
    pub until: Option<String>,
    pub has_seeds: bool,
}

/// Serves until asked to stop.
pub fn run(project: &Project, extent: &Extent) -> anyhow::Result<()> {
    let progress = Progress::from_environment();
    let outcome = serve_all(project, extent, &progress);
    if let Err(error) = &outcome {
        let line = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
        progress.tell(&format!("{FAILED} {line}"));
    }
    outcome
}

fn serve_all(project: &Project, extent: &Extent, progress: &Progress) -> anyhow::Result<()> {
    let place = Place::of(project);
    let _taken = place.take()?;
    let source = source(project)?;
    let telemetry = telemetry::init("info", &telemetry::Settings::read(&mut Reader::new(&source)));
    raise_descriptors();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = actix_web::rt::System::new().block_on(async {
        let stop = Stop::watch()?;
        let (source, settings) = settings(project)?;
        let listeners = Listeners::bind(&settings.server, &settings.mail, &PortNames::PROJECT)?;
        let _docker = place.docker_socket().map(|path| docker::listen(&project.id, &path)).transpose()?;
        let opened = stop.before(Database::open_with(&settings.server, project.db_settings())).await;
        let Some(database) = opened else { return Ok(()) };
        let database = database.map_err(|error| match error.downcast_ref() {
            Some(EmbeddedError::PortTaken { port, holder }) => {
                let address = SocketAddr::from(([127, 0, 0, 1], *port));
                taken(address, PortNames::PROJECT.database, holder.clone())
            }
            _ => error,
        })?;
        let outcome = match stop.before(prepare(project, extent, &source, &settings, &database, progress)).await {
            Some(Ok(Prepared { urls, is_new })) => {
                let present = if is_new { Present::Replace } else { Present::Keep };
                let api = format!("http://{}", settings.server.listen);
                let ready = async |keys: &ApiKeys| {
                    if let Err(error) = fill_buckets(project, &api, keys, present, progress).await {
                        progress.tell(&format!("WARN: {error:#}"));
                    }
                    progress.tell(READY);
                };
                match App::build(&source, &settings, &urls).await {
                    Ok(app) => {
                        let started = Started { app, listeners, set_aside: database.set_aside() };
                        serve(&source, &settings, &database.logins, &urls, started, &stop, ready).await
                    }
                    Err(error) => Err(error),
                }
            }
            Some(Err(error)) => Err(with_next_step(error)),
            None => Ok(()),
        };
        database.close().await;
        outcome
    });
    telemetry.close();
    outcome
}

/// An error in a file of the project says how to continue: what was applied stays.
fn with_next_step(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(MigrateError::Sql { .. }) => {
            anyhow::anyhow!("{error:#}; fix it and run 'ferrobase start', which continues from there")
        }
        _ => error,
    }
}

/// A database in the state that the project's files describe.
pub struct Prepared {
    /// The server's logins.
    pub urls: PlatformUrls,
    /// Whether it was completed just now.
    pub is_new: bool,
}

/// Brings the database to the state that the project's files describe.
pub async fn prepare(
    project: &Project,
    extent: &Extent,
    source: &Source,
    settings: &Settings,
    database: &Database,
    progress: &Progress,
) -> anyhow::Result<Prepared> {
    let (admin, url) = (&database.logins.admin_url, &database.logins.url);
    let secret = settings.server.jwt_secret.reveal();
    let known = migrate::project::known(admin, url).await?;
    let files = project.migrations()?;
    belongs(project, &known, &files.paths)?;
    let urls = migrate::prepare(admin, secret, &GivenUrls::read(&Reader::new(source))).await?;
    migrate::auth(&urls.auth_url).await?;
    if known.id.is_none() {
        migrate::project::remember(admin, &project.id, false).await?;
    }
    let secrets = project.vault();
    if !migrate::project::vault(url, &secrets).await? {
        progress.tell("WARN: supabase/config.toml: db.vault is not supported: the extension supabase_vault is missing");
    }
    if !known.is_complete {
        let roles = project.folder().join("roles.sql");
        if project.exposes_new_tables() && !project.says_what_is_exposed() {
            progress.tell(
                "New tables of public are open to the API roles, as most projects expect; api.auto_expose_new_tables says otherwise",
            );
        }
        let setup = ProjectSetup {
            roles: Some(roles.as_path()).filter(|path| path.is_file()),
            exposes_new_tables: project.exposes_new_tables(),
            jwt_secret: secret,
            jwt_expiry: Reader::new(source).text_or(&["GOTRUE_JWT_EXP"], "3600").parse().unwrap_or(3600),
        };
        migrate::project::begin(admin, url, &setup).await?;
    }
    let tell = |line: &str| progress.tell(line);
    if project.has_migrations_enabled() {
        if !known.is_complete {
            files.skipped.iter().for_each(|line| progress.tell(line));
        }
        migrate::project::migrations(url, &files.paths, extent.until.as_deref(), &tell).await?;
    }
    if !known.is_complete {
        if extent.has_seeds {
            let (seeds, unmatched) = project.seeds()?;
            for pattern in unmatched {
                progress.tell(&format!("WARN: no files matched pattern: {pattern}"));
            }
            let seeds: Vec<(String, PathBuf)> = seeds.into_iter().map(|seed| (seed.name, seed.path)).collect();
            migrate::project::seeds(url, &seeds, &tell).await?;
        }
        migrate::project::remember(admin, &project.id, true).await?;
    }
    declare_buckets(project, url).await?;
    Ok(Prepared { urls, is_new: !known.is_complete })
}

/// Refuses a database that was made from another project's files.
fn belongs(project: &Project, known: &migrate::project::Known, files: &[PathBuf]) -> anyhow::Result<()> {
    let dir = project.data_dir();
    let dir = dir.display();
    if let Some(id) = &known.id {
        anyhow::ensure!(
            *id == project.id,
            "the database in {dir} was made by the project '{id}', and this one is '{}': move the folder away, or give the \
             project its old project_id",
            project.id
        );
        return Ok(());
    }
    let is_ours = |version: &str| {
        files.iter().any(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.split('_').next() == Some(version)
        })
    };
    let foreign = known.history.keys().find(|version| !is_ours(version));
    if let Some(version) = foreign {
        anyhow::bail!(
            "the database in {dir} holds the migration {version}, which is not a file of this project: it was created by another \
             one, so move that folder away"
        );
    }
    Ok(())
}

pub async fn declare_buckets(project: &Project, url: &str) -> anyhow::Result<()> {
    let buckets: Vec<DeclaredBucket> = project
        .buckets()
        .into_iter()
        .map(|bucket| DeclaredBucket {
            file_size_limit: bucket.file_size_limit.and_then(|size| i64::try_from(size).ok()),
            allowed_mime_types: bucket.allowed_mime_types.clone(),
            public: bucket.public,
            name: bucket.name,
        })
        .collect();
    if !buckets.is_empty() {
        migrate::project::buckets(url, &buckets).await?;
    }
    Ok(())
}

/// What becomes of an object that is in a bucket and in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// At a later start, for the sake of its speed and of what users have changed.
    Keep,
    /// In a new database and by `seed buckets`, as with the CLI.
    Replace,
}

/// Uploads the files in the buckets' folders.
pub async fn fill_buckets(
    project: &Project,
    api: &str,
    keys: &ApiKeys,
    present: Present,
    progress: &Progress,
) -> anyhow::Result<()> {
    let store = Client::new(api, keys.service_role())?;
    for bucket in project.buckets() {
        for (name, path) in bucket.files() {
            let key = format!("{}/{name}", bucket.name);
            if present == Present::Keep && store.exists(&key).await? {
                continue;
            }
            progress.tell(&format!("Uploading: {} => {key}", path.display()));
            let kept = Kept { overwrites: true, ..Kept::default() };
            let uploaded = store.upload(&path, &key, &kept).await;
            uploaded.with_context(|| format!("cannot upload {}", path.display()))?;
        }
    }
    Ok(())
}

/// Environment variable of a background server: the file for progress, which the starting command reads.
pub const PROGRESS_FILE: &str = "FERROBASE_PROGRESS_FILE";

/// Where the progress of a start is reported: stderr, or the file that the starting command reads.
pub enum Progress {
    Terminal,
    File(PathBuf),
}

impl Progress {
    pub fn from_environment() -> Self {
        std::env::var_os(PROGRESS_FILE).map_or(Self::Terminal, |path| Self::File(path.into()))
    }

    pub fn tell(&self, line: &str) {
        match self {
            // Marked lines are meant for a waiting command.
            Self::Terminal if line.starts_with('\u{4}') => {}
            Self::Terminal => say(line),
            Self::File(path) => {
                use std::io::Write;
                // The waiting command may have ended; the server continues.
                if let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path) {
                    let _ = writeln!(file, "{line}");
                }
            }
        }
    }
}
