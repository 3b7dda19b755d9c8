//! `ferrobase test -- COMMAND`: runs a command on a fresh copy of the project.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use clap::{Args, Subcommand};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::ephemeral::Copy;
use super::open;
use super::pgtap::{TestDbArgs, new_test, test_db};
use crate::cli::complain;
use crate::cli::database::block_on;
use crate::gateway::RESET;
use crate::outgoing;

/// The exit code of shells if a program does not exist or cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TestArgs {
    #[command(subcommand)]
    action: Option<TestAction>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Subcommand)]
enum TestAction {
    /// Reset the copy that this command runs on to its seed: database, files, jobs and inbox
    Reset,
    /// Run the pgTAP tests of supabase/tests on the project's running database
    Db(TestDbArgs),
    /// Create a pgTAP test
    New {
        name: String,
        /// Accepted for scripts: it is the only template
        #[arg(short, long, value_parser = ["pgtap"])]
        template: Option<String>,
    },
}

/// Asks the server in the environment, which `ferrobase test` has set, for a reset.
fn reset() -> anyhow::Result<ExitCode> {
    const HINT: &str =
        "run this command below 'ferrobase test --', or with the environment of 'ferrobase start --ephemeral'";
    let find = |name: &str| std::env::var(name).map_err(|_| anyhow::anyhow!("{name} is not set: {HINT}"));
    let (url, key) = (find("SUPABASE_URL")?, find("SUPABASE_SERVICE_ROLE_KEY")?);
    block_on(async {
        let http = outgoing::client().no_proxy().build()?;
        let answer = http.post(format!("{}{RESET}", url.trim_end_matches('/'))).header("apikey", key).send().await;
        let answer = answer.with_context(|| format!("{url} does not answer"))?;
        match answer.status().as_u16() {
            204 => Ok(ExitCode::SUCCESS),
            404 => anyhow::bail!("{url} is not a copy that can be reset: {HINT}"),
            status => anyhow::bail!("{url} answers {status}: {}", answer.text().await.unwrap_or_default()),
        }
    })
}

/// Returns the exit code of the command.
pub fn test(args: TestArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        Some(TestAction::Reset) => return reset(),
        Some(TestAction::Db(args)) => return test_db(&args),
        Some(TestAction::New { name, .. }) => return new_test(&name).map(|()| ExitCode::SUCCESS),
        None => {}
    }
    let project = open()?;
    block_on(async {
        // Until then a signal ends this process at once, and the server removes the copy.
        let mut copy = Copy::start(&project).await?;
        // From here on, a signal first ends the command.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        // The terminal sends Ctrl-C to the command as well.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (program, arguments) = args.command.split_first().ok_or_else(|| anyhow::anyhow!("a command is missing"))?;
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).envs(copy.environment());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                complain(&format!("cannot run '{program}': {error}"));
                copy.end().await?;
                let is_missing = error.kind() == std::io::ErrorKind::NotFound;
                return Ok(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_RUNNABLE }));
            }
        };
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let tell = |signal: Signal| {
            if let Some(pid) = pid {
                let _ = kill_process(pid, signal);
            }
        };
        let mut has_lost_server = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                _ = terminate.recv() => tell(Signal::TERM),
                _ = hangup.recv() => tell(Signal::HUP),
                _ = interrupt.recv() => {}
                error = copy.ended(), if !has_lost_server => {
                    has_lost_server = true;
                    complain(&format!("{error:#}; ending the command"));
                    tell(Signal::TERM);
                }
            }
        };
        copy.end().await?;
        Ok(if has_lost_server { ExitCode::FAILURE } else { code(status) })
    })
}

fn code(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        (None, Some(signal)) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)),
        (None, None) => ExitCode::FAILURE,
    }
}
