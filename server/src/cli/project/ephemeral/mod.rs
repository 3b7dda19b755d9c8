//! A temporary copy of a project: on free ports, in a temporary folder, made from a template.
//!
//! [`Copy::start`] has the template copied into a new folder and starts the copy's server ([`server`]) with a pipe as its
//! standard input. However the starting process ends, the pipe closes, and the server then removes everything. If both are
//! killed, the next start cleans up ([`folder::sweep`]).

mod folder;
mod reset;
mod server;
mod template;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::global::WORKDIR;
use super::running::Place;
use super::serve::PROGRESS_FILE;
use super::start::follow;
use super::{extras, settings};
use crate::cli::database::block_on;
use crate::cli::stop::Stop;
use crate::gateway::ApiKeys;
use crate::project::{CopyTarget, Format, Project, Status};
use folder::Folder;
pub use folder::MARK;

/// A running copy.
pub struct Copy {
    folder: Folder,
    server: Child,
    project: Project,
    keys: ApiKeys,
}

/// Serves a copy, as `--copy-in` requests.
pub fn serve(project: &Project, folder: &Path, is_template: bool) -> anyhow::Result<()> {
    server::run(project, folder, is_template)
}

/// `start --ephemeral`: serves until a signal arrives or, on request, until standard input closes.
pub fn start(project: &Project, output: Format, until_eof: bool) -> anyhow::Result<()> {
    block_on(async {
        // Until then a signal ends this process at once, which closes the pipe.
        let mut copy = Copy::start(project).await?;
        let stop = Stop::watch_with(async move {
            if !until_eof {
                return std::future::pending().await;
            }
            let (ended, end) = tokio::sync::oneshot::channel::<()>();
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
                drop(ended);
            });
            let _ = end.await;
        })?;
        let printed = crate::cli::print_all(&copy.status().render(output, &BTreeMap::new()));
        let outcome = match printed {
            Ok(()) => tokio::select! {
                () = stop.asked() => Ok(()),
                ended = copy.ended() => Err(ended),
            },
            Err(error) => Err(error),
        };
        copy.end().await?;
        outcome
    })
}

impl Copy {
    pub async fn start(project: &Project) -> anyhow::Result<Self> {
        folder::sweep().await;
        extras::install_for(project);
        Place::of(project).prepare()?;
        let folder = Folder::make()?;
        let started = async {
            template::copy_into(project, &folder.path).await?;
            let mut server = server_of(project, &folder, false)?;
            let ports = follow(&mut server, &Place::at(&folder.path))?;
            let ports: Vec<u16> = ports.split(' ').filter_map(|port| port.parse().ok()).collect();
            let [api, db, inbox, smtp] = ports[..] else { anyhow::bail!("the server has not reported its ports") };
            let data_dir = folder.path.clone();
            let project = project.served_at(CopyTarget { data_dir, api, db, inbox, smtp });
            let keys = ApiKeys::from_config(&settings(&project)?.1.server);
            Ok((server, project, keys))
        }
        .await;
        match started {
            Ok((server, project, keys)) => Ok(Self { folder, server, project, keys }),
            Err(error) => {
                folder.remove().await?;
                Err(error)
            }
        }
    }

    pub fn status(&self) -> Status {
        Status::of(&self.project, self.keys.anon(), self.keys.service_role())
    }

    pub fn database_url(&self) -> String {
        format!("postgresql://postgres:postgres@127.0.0.1:{}/postgres", self.project.db_port())
    }

    /// Environment variables for a command. Bundlers expose names with these prefixes to browsers, so the secret keys do not get
    /// them.
    pub fn environment(&self) -> Vec<(String, String)> {
        const PREFIXES: [&str; 4] = ["VITE_", "NEXT_PUBLIC_", "PUBLIC_", "EXPO_PUBLIC_"];
        let project = &self.project;
        let inbox = format!("http://127.0.0.1:{}", project.inbox_port());
        let public = [
            ("SUPABASE_URL", project.api_url()),
            ("SUPABASE_ANON_KEY", self.keys.anon().to_owned()),
            ("SUPABASE_PUBLISHABLE_KEY", project.publishable_key()),
        ];
        let private = [
            ("SUPABASE_SERVICE_ROLE_KEY", self.keys.service_role().to_owned()),
            ("SUPABASE_SECRET_KEY", project.secret_key()),
            ("SUPABASE_JWT_SECRET", project.jwt_secret()),
            ("SUPABASE_DB_URL", self.database_url()),
            ("MAILPIT_URL", inbox.clone()),
            ("INBUCKET_URL", inbox),
            (MARK, self.folder.path.display().to_string()),
        ];
        let prefixed = PREFIXES
            .iter()
            .flat_map(|prefix| public.iter().map(move |(name, value)| (format!("{prefix}{name}"), value.clone())));
        let mut all: Vec<(String, String)> = prefixed.collect();
        if let Some(port) = project.smtp_port() {
            all.push(("MAILPIT_SMTP_PORT".to_owned(), port.to_string()));
        }
        all.extend(public.iter().chain(&private).map(|(name, value)| ((*name).to_owned(), value.clone())));
        all
    }

    /// Resolves if the server ends unexpectedly.
    pub async fn ended(&mut self) -> anyhow::Error {
        loop {
            match self.server.try_wait() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(Some(status)) => return anyhow::anyhow!("the server ended ({status})"),
                Err(error) => return error.into(),
            }
        }
    }

    /// Ends the server, which removes the copy. If the server was killed, removes it here.
    pub async fn end(mut self) -> anyhow::Result<()> {
        if let Some(mut pipe) = self.server.stdin.take() {
            let _ = writeln!(pipe, "{}", server::DONE);
        }
        while self.server.try_wait()?.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.folder.remove().await
    }
}

/// Starts the process that serves the copy in `folder`, or that makes a template there.
fn server_of(project: &Project, folder: &Folder, is_template: bool) -> anyhow::Result<Child> {
    let place = Place::at(&folder.path);
    let log = place.create_log()?;
    std::fs::write(place.progress(), "").with_context(|| format!("cannot write {}", place.progress().display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["start", "--foreground", "--copy-in"]).arg(&folder.path);
    if is_template {
        command.arg("--template");
    }
    command
        .current_dir(&project.root)
        .env(PROGRESS_FILE, place.progress())
        .envs(project.overrides())
        .env_remove(MARK)
        .env_remove(WORKDIR)
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        // A separate process group, so that Ctrl-C in this terminal does not reach it.
        .process_group(0);
    command.spawn().context("the server cannot be started")
}
