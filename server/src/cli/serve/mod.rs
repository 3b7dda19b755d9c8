//! `serve`: everything together, or one API alone as a drop-in.

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

pub use full::{Database, Listeners, Started, serve};

use crate::cli::stop::Stop;
use crate::config::{self, Api, Reader, Source};
use crate::db;
use crate::telemetry;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Start one API alone, as a drop-in at '/': 'rest' (PostgREST, configured by PGRST_*), 'auth' (GoTrue, GOTRUE_*),
    /// 'realtime' (Supabase Realtime, DATABASE_URL and API_JWT_SECRET) or 'storage' (Supabase Storage, by its settings)
    #[arg(long, value_name = "API")]
    pub(super) only: Option<Api>,
    /// With '--only rest': PostgREST's own configuration file; the environment wins over it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl ServeArgs {
    /// The file to be read as PostgREST's, if there is one. What `--config` names is one too for the REST API alone, unless
    /// its name says that it is TOML.
    pub(super) fn postgrest_file<'a>(&'a self, config: Option<&'a Path>) -> anyhow::Result<Option<&'a Path>> {
        match (&self.file, self.only, config) {
            (Some(file), Some(Api::Rest), None) => Ok(Some(file)),
            (Some(_), Some(Api::Rest), Some(_)) => anyhow::bail!("there are two settings files: one is enough"),
            (Some(_), _, _) => anyhow::bail!("a settings file without '--config' is for 'serve --only rest'"),
            (None, Some(Api::Rest), Some(file)) => Ok(file.extension().is_none_or(|e| e != "toml").then_some(file)),
            (None, _, _) => Ok(None),
        }
    }
}

/// Lets this process open as many files as the machine allows: every connection is one.
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
    // What is wrong with it is told together with all other problems.
    let telemetry = telemetry::init("info", &telemetry::Settings::read(&mut Reader::new(&source)));
    raise_descriptors();
    db::slow::set_threshold(config::slow_query(&mut Reader::new(&source)));
    // TLS for SMTP, hooks and providers; a second installation changes nothing.
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
