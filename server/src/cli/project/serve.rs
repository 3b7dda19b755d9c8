//! The server of a project: database, roles, migrations and seeds as `supabase start` orders them, then everything that
//! the project uses.

use std::path::PathBuf;

use anyhow::Context;

use super::running::{FAILED, Place, READY};
use super::{docker, say, source};
use crate::app::{App, Settings};
use crate::cli::serve::{Database, Listeners, Started, raise_descriptors, serve};
use crate::cli::stop::Stop;
use crate::config::{Reader, Source};
use crate::gateway::ApiKeys;
use crate::migrate::project::{DeclaredBucket, Outset};
use crate::migrate::{self, GivenUrls, PlatformUrls};
use crate::project::Project;
use crate::telemetry;

/// How much of a project is loaded into a new database.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The last version of a migration that is applied.
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
    let mut source = source(project)?;
    let telemetry = telemetry::init("info", &telemetry::Settings::read(&mut Reader::new(&source)));
    raise_descriptors();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = actix_web::rt::System::new().block_on(async {
        let stop = Stop::watch()?;
        let settings = Settings::read(&mut source)?;
        let listeners = Listeners::bind(&settings.server, &settings.mail)?;
        let _docker = place.docker_socket().map(|path| docker::listen(&project.id, &path)).transpose()?;
        let opened = stop.before(Database::open_with(&settings.server, project.db_settings())).await;
        let Some(database) = opened else { return Ok(()) };
        let database = database?;
        let outcome = match stop.before(prepare(project, extent, &source, &settings, &database, progress)).await {
            Some(Ok(urls)) => {
                let api = format!("http://{}", settings.server.listen);
                let ready = async |keys: &ApiKeys| {
                    if let Err(error) = fill_buckets(project, &api, keys, progress).await {
                        progress.tell(&format!("WARN: {error:#}"));
                    }
                    progress.tell(READY);
                };
                match App::build(&source, &settings, &urls).await {
                    Ok(app) => {
                        let started = Started { app, listeners };
                        serve(&source, &settings, &database.logins, &urls, started, &stop, ready).await
                    }
                    Err(error) => Err(error),
                }
            }
            Some(Err(error)) => Err(error),
            None => Ok(()),
        };
        database.close().await;
        outcome
    });
    telemetry.close();
    outcome
}

/// Brings the database to the state that the project's files describe. Yields the server's logins.
pub async fn prepare(
    project: &Project,
    extent: &Extent,
    source: &Source,
    settings: &Settings,
    database: &Database,
    progress: &Progress,
) -> anyhow::Result<PlatformUrls> {
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
        progress.tell("WARN: supabase/config.toml: db.vault is not served: the extension supabase_vault is missing");
    }
    if !known.is_complete {
        let roles = project.folder().join("roles.sql");
        if project.exposes_new_tables() {
            tracing::info!("new tables in public are open to the API roles (api.auto_expose_new_tables)");
        }
        // Interrupted in its first start, a project's roles are there already.
        let is_first = known.id.is_none();
        let outset = Outset {
            roles: Some(roles.as_path()).filter(|path| is_first && path.is_file()),
            exposes_new_tables: project.exposes_new_tables(),
            jwt_secret: secret,
            jwt_expiry: Reader::new(source).text_or(&["GOTRUE_JWT_EXP"], "3600").parse().unwrap_or(3600),
        };
        migrate::project::begin(admin, url, &outset).await.context("supabase/roles.sql")?;
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
    Ok(urls)
}

/// A database that another project's files have made is not for this one.
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
            "the database in {dir} holds the migration {version}, which is no file of this project: it was made by another \
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

/// Uploads what the buckets' folders hold; files that are there already stay as they are.
pub async fn fill_buckets(project: &Project, api: &str, keys: &ApiKeys, progress: &Progress) -> anyhow::Result<()> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    for bucket in project.buckets() {
        for (key, path) in bucket.files() {
            let encoded: Vec<String> = key
                .split('/')
                .map(|part| percent_encoding::utf8_percent_encode(part, percent_encoding::NON_ALPHANUMERIC).to_string())
                .collect();
            let url = format!("{api}/storage/v1/object/{}/{}", bucket.name, encoded.join("/"));
            let head = http.head(&url).bearer_auth(keys.service_role()).send().await?;
            if head.status().is_success() {
                continue;
            }
            progress.tell(&format!("Uploading: {} => {}/{key}", path.display(), bucket.name));
            let body = tokio::fs::read(&path).await.with_context(|| format!("cannot read {}", path.display()))?;
            let kind = mime_guess::from_path(&path).first_or_octet_stream();
            let answer = http
                .post(&url)
                .bearer_auth(keys.service_role())
                .header("x-upsert", "true")
                .header("content-type", kind.as_ref())
                .body(body)
                .send()
                .await?;
            let status = answer.status();
            anyhow::ensure!(status.is_success(), "cannot upload {}: {}", path.display(), answer.text().await?);
        }
    }
    Ok(())
}

/// In the environment of a server in the background: names the file that the starting command reads.
pub const PROGRESS_FILE: &str = "FERROBASE_PROGRESS_FILE";

/// Where the steps of a start are told: standard error, or the file that the starting command reads.
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
            // The marks are for a waiting command.
            Self::Terminal if line.starts_with('\u{4}') => {}
            Self::Terminal => say(line),
            Self::File(path) => {
                use std::io::Write;
                // Whoever waited may have gone, and the server serves all the same.
                if let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path) {
                    let _ = writeln!(file, "{line}");
                }
            }
        }
    }
}
