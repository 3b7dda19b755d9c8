//! Backups by the schedule of the settings, beside the server's own work and after it in line for the processor.
//!
//! One cluster has one server, which holds its lock: so each backup is made once.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::Utc;
use tokio::sync::oneshot;

use crate::backup::{self, Backup, BackupConfig, BackupError, Contents, Files, Made, State};
use crate::cli::stop::Stop;

/// A clock that was set is noticed within this.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long after a failure it is tried again, at most.
const RETRY: Duration = Duration::from_secs(10 * 60);

/// What is backed up, and when.
pub struct Plan {
    pub config: BackupConfig,
    pub contents: Contents,
    pub data_dir: PathBuf,
}

/// The thread that makes backups; none where there is no schedule.
pub struct Backups(Option<Running>);

struct Running {
    thread: JoinHandle<()>,
    /// Dropped, it ends the schedule.
    until: oneshot::Sender<()>,
}

impl Backups {
    /// Begins the schedule, which ends with `stop` at the latest.
    pub fn start(plan: Plan, stop: &Stop) -> anyhow::Result<Self> {
        let (Some(every), Some(folder)) = (plan.config.every, plan.config.to.clone()) else { return Ok(Self(None)) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = stop.clone();
        let (until, over) = oneshot::channel();
        let work = move || {
            // On Linux of this thread, and of those that it starts, alone.
            if cfg!(target_os = "linux") {
                let _ = rustix::process::nice(10);
            }
            runtime.block_on(async {
                tokio::select! {
                    () = stop.asked() => {}
                    _ = over => {}
                    () = keep_on(&plan, every, folder) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("backups".to_owned()).spawn(work)?;
        Ok(Self(Some(Running { thread, until })))
    }

    /// Ends the schedule. A backup that is under way is given up.
    pub async fn ended(self) {
        if let Some(Running { thread, until }) = self.0 {
            drop(until);
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

async fn keep_on(plan: &Plan, every: Duration, folder: PathBuf) {
    let mut known = None;
    loop {
        // What could not be written down counts as well.
        let last = State::read(&plan.data_dir).made.map(|made| made.made_at).max(known);
        // A time to come, from a clock that was set back, is no reason to wait for it.
        let age = last.map(|last| (Utc::now() - last).to_std().unwrap_or(every));
        let wait = age.map_or(Duration::ZERO, |age| every.saturating_sub(age));
        if !wait.is_zero() {
            tokio::time::sleep(wait.min(LOOK_AGAIN)).await;
            continue;
        }
        match backup::make(&plan.contents, &folder, &plan.config.recipients).await {
            Ok(made) => {
                known = Some(made.made_at);
                tracing::info!(archive = %made.archive.display(), bytes = made.size, files = made.files, "a backup was made");
                if let Err(error) = settle(plan, &folder, made) {
                    tracing::error!(%error, "the backup was made, but old ones could not be removed");
                }
            }
            Err(error) => {
                backup::FAILED.increment();
                tracing::error!(%error, "the backup that was due could not be made");
                tokio::time::sleep(every.min(RETRY)).await;
            }
        }
    }
}

/// Writes down what was made, and removes what is too old.
fn settle(plan: &Plan, folder: &Path, made: Made) -> Result<(), BackupError> {
    if let Files::Elsewhere(place) = &plan.contents.files {
        tracing::info!(place, "the files of objects are not in the backup");
    }
    let removed = backup::retain(folder, plan.config.keep, &plan.data_dir);
    State::record_made(&plan.data_dir, Backup::new(&made.archive, made.made_at))?;
    removed.map(drop)
}
