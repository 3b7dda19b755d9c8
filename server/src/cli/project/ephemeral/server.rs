//! The server of a copy: a separate process that ends and removes the copy once the process that started it has ended.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use super::folder::{Folder, end_marked};
use super::reset::Seed;
use crate::app::App;
use crate::cli::project::running::{FAILED, Place, READY};
use crate::cli::project::serve::{Extent, Present, Progress, fill_buckets, prepare};
use crate::cli::project::settings;
use crate::cli::serve::{Database, Listeners, Ports, Started, raise_descriptors, serve};
use crate::cli::stop::Stop;
use crate::config::Reader;
use crate::embedded_pg::{self, EmbeddedError};
use crate::gateway::{ApiKeys, Reset};
use crate::migrate::{self, GivenUrls};
use crate::project::{CopyTarget, Project};
use crate::telemetry;

/// Written to the pipe by the starting process before it closes it in order.
pub const DONE: &str = "done";

/// PostgreSQL settings for data that may be lost.
const THROW_AWAY: [(&str, &str); 7] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("wal_recycle", "off"),
    ("min_wal_size", "32MB"),
    ("max_wal_size", "256MB"),
    // Several copies run at the same time.
    ("shared_buffers", "64MB"),
];

/// How many ports are tried for PostgreSQL, since another process may take one first.
const PORTS: usize = 5;

/// Serves the copy in `folder` until standard input closes, or makes a template there.
pub fn run(project: &Project, folder: &Path, is_template: bool) -> anyhow::Result<()> {
    let folder = Folder::hold(folder)?.context("the folder of this copy is being removed")?;
    let _taken = Place::at(&folder.path).take()?;
    let progress = Progress::from_environment();
    let telemetry = telemetry::init("info", &telemetry::Settings::default());
    raise_descriptors();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = actix_web::rt::System::new().block_on(async {
        let (ended, end) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut said = String::new();
            let _ = std::io::stdin().read_to_string(&mut said);
            let _ = ended.send(said.trim() == DONE);
        });
        let (left_alone, is_left_alone) = tokio::sync::watch::channel(false);
        let stop = Stop::watch_with(async move {
            let is_done = end.await.unwrap_or(false);
            let _ = left_alone.send(!is_done);
        })?;
        let outcome = serve_copy(project, &folder.path, is_template, &progress, &stop).await;
        if *is_left_alone.borrow() && !is_template {
            end_marked(&folder.path).await;
        }
        // A complete template is moved away by the caller.
        if !matches!(outcome, Ok(Ended::Complete)) {
            folder.remove().await?;
        }
        outcome.map(drop)
    });
    telemetry.close();
    if let Err(error) = &outcome {
        let line = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
        progress.tell(&format!("{FAILED} {line}"));
    }
    outcome
}

async fn serve_copy(
    project: &Project,
    folder: &Path,
    is_template: bool,
    progress: &Progress,
    stop: &Stop,
) -> anyhow::Result<Ended> {
    let listeners = Listeners::anywhere()?;
    let Ports { api, inbox, smtp } = listeners.ports()?;
    let mut tries = 0;
    let (project, source, settings, database) = loop {
        tries += 1;
        let db = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let project = project.served_at(CopyTarget { data_dir: folder.to_owned(), api, db, inbox, smtp });
        let (source, mut settings) = settings(&project)?;
        if let Some(edge) = &mut settings.edge {
            // Deno's cache is shared by all copies.
            edge.deno_dir = project.own_dir().join("functions/deno");
        }
        if is_template {
            // Its only requests are our own. What they noted was written a second later, in some copies after their seed was kept.
            settings.server.audit_days = 0;
        }
        let mut own = project.db_settings();
        own.extend(THROW_AWAY.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let Some(opened) = stop.before(Database::open_with(&settings.server, own)).await else {
            return Ok(Ended::Stopped);
        };
        match opened {
            Ok(database) => break (project, source, settings, database),
            Err(error) => match error.downcast_ref() {
                Some(EmbeddedError::PortTaken { .. }) if tries < PORTS => {}
                Some(EmbeddedError::OtherMajorVersion { cluster, binaries, .. }) => anyhow::bail!(
                    "the template of this project is of PostgreSQL {cluster}, these binaries are PostgreSQL {binaries}: remove {}, \
                     and the next start makes another",
                    project.own_dir().join("templates").display()
                ),
                _ => return Err(error),
            },
        }
    };
    let outcome = async {
        if let Some(place) = database.relocated() {
            anyhow::bail!(
                "the user that PostgreSQL runs as cannot enter {} (the database went to {}): set TMPDIR to a folder open \
                 to all",
                folder.display(),
                place.display()
            );
        }
        let prepared = async {
            if is_template {
                let extent = Extent { until: None, has_seeds: true };
                let prepared = prepare(&project, &extent, &source, &settings, &database, progress).await;
                return prepared.map(|prepared| prepared.urls);
            }
            let given = GivenUrls::read(&Reader::new(&source));
            Ok(migrate::prepare(&database.logins.admin_url, settings.server.jwt_secret.reveal(), &given).await?)
        };
        let Some(urls) = stop.before(prepared).await else { return Ok(Ended::Stopped) };
        let urls = urls?;
        let has_files = project.buckets().iter().any(|bucket| !bucket.files().is_empty());
        if is_template && !has_files {
            return Ok(Ended::Complete);
        }
        let mut app = App::build(&source, &settings, &urls).await?;
        let mut seed = None;
        if !is_template {
            let kept = Arc::new(Seed::keep(&database.logins.admin_url, folder, &app).await?);
            seed = Some(Arc::clone(&kept));
            let parts = app.clone();
            app.reset = Some(Reset::new(Box::new(move || {
                let (seed, parts) = (Arc::clone(&kept), parts.clone());
                Box::pin(async move { seed.restore(&parts).await })
            })));
        }
        let api = format!("http://{}", settings.server.listen);
        let (filled, is_filled) = tokio::sync::oneshot::channel();
        let ready = async |keys: &ApiKeys| {
            if is_template {
                let _ = filled.send(fill_buckets(&project, &api, keys, Present::Replace, progress).await);
            } else {
                if let Some(seed) = &seed {
                    seed.prepare().await;
                }
                let db = project.db_port();
                progress.tell(&format!("{READY} {} {db} {inbox} {smtp}", project.api_port()));
            }
        };
        let started = Started { app, listeners, set_aside: Vec::new() };
        let served = serve(&source, &settings, &database.logins, &urls, started, stop, ready);
        tokio::select! {
            Ok(filled) = is_filled => filled.map(|()| Ended::Complete),
            served = served => served.map(|()| Ended::Stopped),
        }
    }
    .await;
    if matches!(outcome, Ok(Ended::Complete)) {
        let kept = embedded_pg::keep_as_seed(&database.logins.admin_url).await;
        database.close().await;
        kept?;
        progress.tell(READY);
    } else {
        database.discard().await;
    }
    outcome
}

/// Why serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Stopped,
    /// The template is complete.
    Complete,
}
