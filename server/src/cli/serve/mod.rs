//! `serve`: everything together, or one API as a drop-in replacement.

mod auth;
mod backups;
mod full;
mod listen;
mod realtime;
mod rest;
mod rights;
mod storage;

use std::path::{Path, PathBuf};

use clap::Args;

pub use full::{Database, Listeners, Ports, Started, serve};
pub use listen::{PortNames, taken};

use crate::cli::stop::Stop;
use crate::config::{self, Api, Reader, Source};
use crate::db;
use crate::telemetry;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Serve one API at '/', as a drop-in: 'rest' (PostgREST, configured by PGRST_*), 'auth' (GoTrue, GOTRUE_*), 'realtime'
    /// (Supabase Realtime, DATABASE_URL and API_JWT_SECRET) or 'storage' (Supabase Storage, its settings)
    #[arg(long, value_name = "API")]
    pub(super) only: Option<Api>,
    /// With '--only rest': PostgREST's configuration file; the environment overrides it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl ServeArgs {
    /// The file to read as PostgREST's configuration, if any. With `--only rest`, the `--config` file is one too, unless its name
    /// ends in `.toml`.
    pub(super) fn postgrest_file<'a>(&'a self, config: Option<&'a Path>) -> anyhow::Result<Option<&'a Path>> {
        match (&self.file, self.only, config) {
            (Some(file), Some(Api::Rest), None) => Ok(Some(file)),
            (Some(_), Some(Api::Rest), Some(_)) => anyhow::bail!("two settings files are given: use only one"),
            (Some(_), _, _) => anyhow::bail!("a settings file without '--config' is for 'serve --only rest'"),
            (None, Some(Api::Rest), Some(file)) => Ok(file.extension().is_none_or(|e| e != "toml").then_some(file)),
            (None, _, _) => Ok(None),
        }
    }
}

/// Raises the limit of open files to the maximum, because every connection needs one.
pub fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = limit.current, "the limit of open files cannot be raised");
    }
}

pub fn run(args: ServeArgs, source: Source) -> anyhow::Result<()> {
    // Errors in these settings are reported together with all others.
    let telemetry = telemetry::init("info", &telemetry::Settings::read(&mut Reader::new(&source)));
    raise_descriptors();
    db::slow::set_threshold(config::slow_query(&mut Reader::new(&source)));
    // TLS for SMTP, hooks and providers. A second installation has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = actix_web::rt::System::new().block_on(async {
        let stop = Stop::watch()?;
        match args.only {
            None => full::run(source, &stop).await,
            Some(Api::Auth) => auth::run(source, &stop).await,
            Some(Api::Rest) => rest::run(source, &stop).await,
            Some(Api::Storage) => storage::run(source, &stop).await,
            Some(Api::Realtime) => realtime::run(source, &stop).await,
        }
    });
    telemetry.close();
    outcome
}
