//! Backups by the schedule of the settings, and the log of changes between them, beside the server's own work and after it in line for the processor.
//!
//! One cluster has one server, which holds its lock: so each backup is made once.

use std::convert::Infallible;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chrono::Utc;
use tokio::sync::oneshot;

use crate::backup::{
    self, Backup, BackupConfig, BackupError, Contents, Depot, Files, Follower, LogFiles, LogState, Made, State,
};
use crate::cli::stop::Stop;

/// A clock that was set is noticed within this.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long after a failure it is tried again, at most.
const RETRY: Duration = Duration::from_secs(10 * 60);
/// The same of the log of changes, at least.
const LOG_RETRY: Duration = Duration::from_secs(1);
/// How often the same trouble is logged.
const TELL_AGAIN: Duration = Duration::from_secs(60);

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
        let (Some(every), Some(depot)) = (plan.config.every, plan.config.to.clone()) else { return Ok(Self(None)) };
        // Before anything is served that could remove a file.
        let files = match (&plan.contents.files, plan.config.log_every) {
            (Files::Folder(root), Some(_)) => Some(LogFiles::hold(root)?),
            _ => None,
        };
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
                    () = keep_on(&plan, every, &depot) => {}
                    () = follow(&plan, &depot, files) => {}
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

async fn keep_on(plan: &Plan, every: Duration, depot: &Depot) {
    let mut known = None;
    let mut tried = None;
    loop {
        // What could not be written down counts as well.
        let made = State::read(&plan.data_dir).made;
        let last = made.as_ref().map(|made| made.made_at).max(known);
        // A log without an archive that it goes on from is of no use.
        let chain = plan.config.log_every.and_then(|_| LogState::read(&plan.data_dir)).map(|log| log.chain);
        let begins_chain = chain.is_some() && made.and_then(|made| made.chain) != chain && tried != chain;
        // A time to come, from a clock that was set back, is no reason to wait for it.
        let age = last.map(|last| (Utc::now() - last).to_std().unwrap_or(every));
        let wait =
            if begins_chain { Duration::ZERO } else { age.map_or(Duration::ZERO, |age| every.saturating_sub(age)) };
        if !wait.is_zero() {
            // The log is looked at more often: no point in time is safe before its archive.
            tokio::time::sleep(wait.min(plan.config.log_every.map_or(LOOK_AGAIN, |every| every.min(LOOK_AGAIN)))).await;
            continue;
        }
        match backup::make(&plan.contents, depot, &plan.config.recipients).await {
            Ok(made) => {
                known = Some(made.made_at);
                tried = chain;
                tracing::info!(archive = made.archive, bytes = made.size, files = made.files, "a backup was made");
                if let Err(error) = settle(plan, depot, made).await {
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
async fn settle(plan: &Plan, depot: &Depot, made: Made) -> Result<(), BackupError> {
    if let Files::Elsewhere(place) = &plan.contents.files {
        tracing::info!(place, "the files of objects are not in the backup");
    }
    let removed = backup::retain(depot, plan.config.keep, &plan.data_dir).await;
    State::record_made(&plan.data_dir, Backup::new(&made.archive, made.made_at).in_chain(made.chain))?;
    removed.map(drop)
}

/// Archives the log of changes for as long as the server runs, if the settings say so.
async fn follow(plan: &Plan, depot: &Depot, mut files: Option<LogFiles>) {
    let admin_url = &plan.contents.admin_url;
    let Some(every) = plan.config.log_every else {
        LogState::forget(&plan.data_dir);
        // The database keeps its log for whoever has a slot.
        if let Err(error) = backup::forget_slots(admin_url).await {
            tracing::warn!(%error, "the database may keep its log for an archive that is not written any more");
        }
        return std::future::pending().await;
    };
    let mut told = None;
    loop {
        let Err(error) = follow_chain(plan, depot, every, &mut files).await;
        let error = error.to_string();
        // As long as it stays the same it is told now and then.
        if told.as_ref().is_none_or(|(last, at): &(String, Instant)| *last != error || at.elapsed() > TELL_AGAIN) {
            tracing::error!(error, "the log of changes is not archived at the moment");
            told = Some((error, Instant::now()));
        }
        tokio::time::sleep(every.max(LOG_RETRY)).await;
    }
}

/// Until it fails. The files stay held then, for what is not archived yet must not be removed.
async fn follow_chain(
    plan: &Plan,
    depot: &Depot,
    every: Duration,
    files: &mut Option<LogFiles>,
) -> Result<Infallible, BackupError> {
    let mut follower = Follower::start(&plan.contents.admin_url, files, depot).await?;
    let failed = loop {
        match step(plan, depot, &mut follower).await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(every.max(follower.pause())).await,
            Err(error) => break error,
        }
    };
    *files = follower.end();
    Err(failed)
}

/// Whether there is more to do at once.
async fn step(plan: &Plan, depot: &Depot, follower: &mut Follower) -> Result<bool, BackupError> {
    let Some(step) = follower.step(depot, &plan.config.recipients).await? else { return Ok(false) };
    let state = LogState { chain: follower.chain().to_owned(), reached: step.piece.time };
    state.write(&plan.data_dir)?;
    Ok(step.is_behind)
}
