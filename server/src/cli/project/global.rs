//! The Supabase CLI's options that every command takes, and its commands for the hosted platform.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::Context;
use clap::Args;

/// Variable that names the project's folder.
pub const WORKDIR: &str = "SUPABASE_WORKDIR";

/// Where to look for the project, if not in the current folder.
static GIVEN: OnceLock<PathBuf> = OnceLock::new();

#[derive(Args)]
pub struct GlobalArgs {
    /// The project's folder [default: the current one or one above]
    #[arg(long, global = true, env = WORKDIR, value_name = "FOLDER", hide_env_values = true)]
    workdir: Option<OsString>,
    /// Answer yes to all questions
    #[arg(long, global = true, hide = true)]
    yes: bool,
    /// Accepted for scripts: RUST_LOG=debug tells more
    #[arg(long, global = true, hide = true)]
    debug: bool,
    /// Accepted for scripts: there is nothing experimental to unlock
    #[arg(long, global = true, hide = true)]
    experimental: bool,
    /// Accepted for scripts: there are no containers
    #[arg(long, global = true, hide = true, value_name = "ID")]
    network_id: Option<String>,
    /// Accepted for scripts: nothing asks the hosted platform
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    profile: Option<String>,
    /// Accepted for scripts: the system resolves names
    #[arg(long, global = true, hide = true, value_name = "RESOLVER")]
    dns_resolver: Option<String>,
    /// Accepted for scripts: no ticket is made
    #[arg(long, global = true, hide = true)]
    create_ticket: bool,
    /// Accepted for scripts: output is the same for people and agents
    #[arg(long, global = true, hide = true, value_name = "MODE")]
    agent: Option<String>,
}

impl GlobalArgs {
    /// Makes the folder known to the commands.
    pub fn settle(&self) {
        if let Some(folder) = self.workdir.as_ref().filter(|folder| !folder.is_empty()) {
            let _ = GIVEN.set(folder.into());
        }
    }
}

/// The folder in or above which the project is.
pub fn start_folder() -> anyhow::Result<PathBuf> {
    let Some(folder) = GIVEN.get() else { return Ok(std::env::current_dir()?) };
    std::fs::canonicalize(folder).with_context(|| format!("cannot open the folder {}", folder.display()))
}

/// Other names of the refused command: commands of the Supabase CLI that only work on hosted projects.
pub const HOSTED: [&str; 21] = [
    "backups",
    "bootstrap",
    "branches",
    "config",
    "domains",
    "encryption",
    "login",
    "logout",
    "network-bans",
    "network-restrictions",
    "orgs",
    "postgres-config",
    "projects",
    "secrets",
    "services",
    "snippets",
    "ssl-enforcement",
    "sso",
    "telemetry",
    "unlink",
    "vanity-subdomains",
];

#[derive(Args)]
pub struct HostedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

pub fn refuse_hosted() -> anyhow::Result<()> {
    anyhow::bail!(
        "this command of the Supabase CLI works on projects of the hosted platform, and a project here is none: settings and secrets \
         are in supabase/config.toml and .env files, and other databases are named by --db-url"
    )
}
