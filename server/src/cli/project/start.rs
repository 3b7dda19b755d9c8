//! `start`, `stop` and `status`.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use super::global::WORKDIR;
use super::running::{FAILED, Place, READY, Starting};
use super::serve::{self, Extent, PROGRESS_FILE};
use super::{environment, ephemeral, extras, find, open, say, settings};
use crate::embedded_pg;
use crate::gateway::ApiKeys;
use crate::project::{Format, Project, Status};

#[derive(Args)]
pub struct StartArgs {
    /// Services to leave out; accepted for scripts, since everything is one process here
    #[arg(short = 'x', long, value_name = "SERVICES", value_delimiter = ',')]
    exclude: Vec<String>,
    /// Accepted for scripts
    #[arg(long)]
    ignore_health_check: bool,
    /// Accepted for scripts: there are no preview branches
    #[arg(long, hide = true)]
    preview: bool,
    /// Serve in this process until it is stopped, instead of in the background
    #[arg(long)]
    foreground: bool,
    /// Serve a temporary copy on free ports until this command ends
    #[arg(long, conflicts_with = "foreground")]
    ephemeral: bool,
    /// With --ephemeral, the output format once it is ready: pretty, env, json, yaml or toml
    #[arg(short, long, default_value = "pretty", requires = "ephemeral")]
    output: Format,
    /// With --ephemeral, end when standard input closes, which happens when the parent process ends
    #[arg(long, requires = "ephemeral")]
    until_eof: bool,
    /// Provide a Docker API on this socket, so that the Supabase CLI finds the project running
    #[arg(long, value_name = "PATH", conflicts_with_all = ["ephemeral", "foreground"])]
    docker_socket: Option<PathBuf>,
    /// Serve a copy in this folder
    #[arg(long, value_name = "FOLDER", hide = true, requires = "foreground")]
    copy_in: Option<PathBuf>,
    /// With --copy-in, make the template of copies
    #[arg(long, hide = true)]
    template: bool,
    /// Apply migrations up to this version only
    #[arg(long, value_name = "VERSION", hide = true)]
    until: Option<String>,
    /// Load no seeds
    #[arg(long, hide = true)]
    no_seed: bool,
}

#[derive(Args)]
pub struct StopArgs {
    /// Delete the project's database and files
    #[arg(long)]
    no_backup: bool,
    /// Accepted for scripts: data is kept, unless this is false
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    backup: Option<bool>,
    /// Stop the project of this id, which this user serves from whatever folder
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    project_id: Option<String>,
    /// Stop all projects that this user serves
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
pub struct StatusArgs {
    /// pretty, env, json, yaml or toml
    #[arg(short, long, default_value = "pretty")]
    output: Format,
    /// Other names for the keys, e.g. api.url=NEXT_PUBLIC_SUPABASE_URL
    #[arg(long, value_name = "NAME=KEY", value_delimiter = ',')]
    override_name: Vec<String>,
}

pub fn start(args: &StartArgs) -> anyhow::Result<()> {
    // The command that started a copy's server has printed the warnings.
    let project = if args.copy_in.is_some() { find()? } else { open()? };
    let place = Place::of(&project);
    place.prepare()?;
    let extent = Extent { until: args.until.clone(), has_seeds: !args.no_seed };
    if let Some(folder) = &args.copy_in {
        return ephemeral::serve(&project, folder, args.template);
    }
    if args.ephemeral {
        return ephemeral::start(&project, args.output, args.until_eof);
    }
    if args.foreground {
        if std::env::var_os(PROGRESS_FILE).is_none() {
            extras::install_for(&project);
        }
        return serve::run(&project, &extent);
    }
    let starting = place.starting()?;
    if place.process().is_some() {
        say("supabase start is already running.");
        if args.docker_socket.is_some() {
            say("WARN: --docker-socket takes effect with the next start");
        }
    } else {
        let socket = args.docker_socket.as_ref().map(std::path::absolute).transpose()?;
        place.set_docker_socket(socket.as_deref())?;
        in_background(&project, &extent, &starting)?;
    }
    drop(starting);
    if let Some(socket) = place.docker_socket() {
        say(&format!("The Supabase CLI finds this project with DOCKER_HOST=unix://{}", socket.display()));
    }
    print_status(&project, Format::Pretty, &BTreeMap::new())
}

/// [`start`] without options, as `db start` does.
pub fn start_plainly() -> anyhow::Result<()> {
    let project = open()?;
    let place = Place::of(&project);
    let starting = place.starting()?;
    if place.process().is_some() {
        say("Postgres database is already running.");
        return Ok(());
    }
    place.set_docker_socket(None)?;
    in_background(&project, &Extent { until: None, has_seeds: true }, &starting)
}

/// Starts the server in the background and prints its progress until it is ready.
pub fn in_background(project: &Project, extent: &Extent, _starting: &Starting) -> anyhow::Result<()> {
    extras::install_for(project);
    let place = Place::of(project);
    let log = place.create_log()?;
    std::fs::write(place.progress(), "").with_context(|| format!("cannot write {}", place.progress().display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["start", "--foreground"]).current_dir(&project.root).env(PROGRESS_FILE, place.progress());
    command.env_remove(WORKDIR);
    if let Some(until) = &extent.until {
        command.args(["--until", until]);
    }
    if !extent.has_seeds {
        command.arg("--no-seed");
    }
    let errors = log.try_clone()?;
    // A separate process group, so that Ctrl-C in this terminal does not reach it.
    command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    let mut server = command.spawn().context("the server cannot be started")?;
    follow(&mut server, &place).map(drop)
}

/// Prints the progress of the server starting in `place` until it is ready. Returns its final message.
pub fn follow(server: &mut Child, place: &Place) -> anyhow::Result<String> {
    let mut told = 0;
    loop {
        let ended = server.try_wait()?;
        let mut file = std::fs::File::open(place.progress())?;
        file.seek(SeekFrom::Start(told))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        told += whole as u64;
        for line in text[..whole].lines() {
            if let Some(said) = line.strip_prefix(READY) {
                return Ok(said.trim().to_owned());
            }
            match line.strip_prefix(FAILED) {
                Some(why) => {
                    let _ = server.wait();
                    anyhow::bail!("{}", why.trim());
                }
                None => say(line),
            }
        }
        if let Some(status) = ended
            && whole == 0
        {
            let log = place.log();
            anyhow::bail!("the server ended ({status}); its log is {}", log.display());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn stop(args: &StopArgs) -> anyhow::Result<()> {
    let mut projects = vec![];
    match &args.project_id {
        _ if args.all => projects = served()?,
        Some(id) => {
            // Of this folder also if it does not run: its data may be deleted.
            projects.extend(find().ok().filter(|project| project.id == *id));
            projects.extend(served()?.into_iter().filter(|project| project.id == *id));
            anyhow::ensure!(!projects.is_empty(), "no project of the id '{id}' is running, and none is in this folder");
        }
        None => projects.push(find()?),
    }
    let mut was_running = false;
    for project in projects {
        was_running |= Place::of(&project).stop()?;
        if args.no_backup || args.backup == Some(false) {
            delete_data(&project)?;
        }
    }
    say(if was_running { "Stopped supabase local development setup." } else { "It was not running." });
    Ok(())
}

/// The projects that processes of this user serve. A server's working folder is its project's.
fn served() -> anyhow::Result<Vec<Project>> {
    let processes =
        std::fs::read_dir("/proc").context("running projects are only found on Linux: stop them in their folders")?;
    let mut projects: Vec<Project> = Vec::new();
    for process in processes.flatten() {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let is_server = words.split(|byte| *byte == 0).skip(1).take(2).eq([&b"start"[..], b"--foreground"]);
        let folder = is_server.then(|| std::fs::read_link(process.path().join("cwd")).ok()).flatten();
        let Some(project) = folder.and_then(|folder| Project::find(&folder, environment()).ok()) else { continue };
        let is_new = projects.iter().all(|known| known.root != project.root);
        if is_new && Place::of(&project).process().is_some() {
            projects.push(project);
        }
    }
    Ok(projects)
}

/// Removes database and files. Other content of the folder, such as caches of functions, stays.
pub fn delete_data(project: &Project) -> anyhow::Result<()> {
    embedded_pg::delete_cluster(&project.data_dir())?;
    match std::fs::remove_dir_all(project.data_dir().join("storage")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("cannot delete the files"),
        _ => Ok(()),
    }
}

pub fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let project = find()?;
    Place::of(&project).require_running()?;
    let mut names = BTreeMap::new();
    for pair in &args.override_name {
        let (name, key) = pair.split_once('=').with_context(|| format!("'{pair}' is not of the form NAME=KEY"))?;
        names.insert(name.to_owned(), key.to_owned());
    }
    print_status(&project, args.output, &names)
}

fn print_status(project: &Project, format: Format, names: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let (_, settings) = settings(project)?;
    let keys = ApiKeys::from_config(&settings.server);
    crate::cli::print_all(&Status::of(project, keys.anon(), keys.service_role()).render(format, names))
}
