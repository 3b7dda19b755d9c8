//! Scheduled backups and continuous archiving of the WAL, beside the server and at a lower priority.
//!
//! Only one server holds a cluster's lock, so each backup is made once.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;

use crate::backup::{
    self, Backup, BackupConfig, BackupError, BackupStore, Catalog, Contents, Files, Follower, LogFiles, LogState, Made,
    Parent, State, Turn,
};
use crate::cli::backup::{make_dump, make_next};
use crate::cli::stop::Stop;
use crate::db;

/// How long to sleep at most, so that changes of the system clock are noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The longest wait before a failed backup is tried again.
const RETRY: Duration = Duration::from_secs(10 * 60);
/// The shortest wait before failed WAL archiving is tried again.
const LOG_RETRY: Duration = Duration::from_secs(1);
/// With at least this long between backups, each may take some minutes longer, so that requests notice less of it.
const UNHURRIED: Duration = Duration::from_secs(60 * 60);
/// How often the same error is logged.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// What is backed up, and when.
pub struct Plan {
    pub config: BackupConfig,
    pub contents: Contents,
    pub data_dir: PathBuf,
    /// The database, if it is external: then dumps are made.
    pub external: Option<String>,
}

/// Key of the advisory lock that lets one instance at a time dump an external database ("ferro" and "b" in ASCII).
const LOCK: i64 = 0x66_65_72_72_6f_62;

/// The thread that makes backups; `None` if there is nothing to do for it.
pub struct Backups(Option<Running>);

struct Running {
    /// Ends with the thread. It is not joined, because whoever stops the server twice does not wait for it.
    done: oneshot::Receiver<Infallible>,
    /// Dropping this ends the schedule.
    until: oneshot::Sender<()>,
}

impl Backups {
    /// Starts the schedule, which ends with `stop` at the latest.
    pub fn start(plan: Plan, stop: &Stop) -> anyhow::Result<Self> {
        let schedule = plan.config.every.zip(plan.config.to.clone());
        if schedule.is_none() && plan.external.is_some() {
            return Ok(Self(None));
        }
        // Taken before anything is served that could remove a file.
        let files = match (&plan.contents.files, plan.config.log_every.filter(|_| schedule.is_some())) {
            (Files::Folder(root), Some(_)) => Some(LogFiles::hold(root)?),
            _ => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = stop.clone();
        let (until, over) = oneshot::channel();
        let (working, done) = oneshot::channel();
        let work = move || {
            // On Linux this affects only this thread and those that it starts.
            if cfg!(target_os = "linux") {
                let _ = rustix::process::nice(10);
            }
            runtime.block_on(async {
                tokio::select! {
                    () = stop.asked() => {}
                    _ = over => {}
                    () = work_on(&plan, schedule, files) => {}
                }
            });
            // Waits for its programs.
            drop(runtime);
            drop(working);
        };
        std::thread::Builder::new().name("backups".to_owned()).spawn(work)?;
        Ok(Self(Some(Running { done, until })))
    }

    /// Ends the schedule. A backup in progress is abandoned.
    pub async fn ended(self) {
        if let Some(Running { done, until }) = self.0 {
            drop(until);
            // Nothing is ever sent.
            let _ = done.await;
        }
    }
}

async fn work_on(plan: &Plan, schedule: Option<(Duration, BackupStore)>, files: Option<LogFiles>) {
    match schedule {
        // There may have been one before.
        None => forget_log(plan).await,
        Some((every, backup_store)) => tokio::select! {
            () = keep_on(plan, every, &backup_store) => {}
            () = follow(plan, &backup_store, files), if plan.external.is_none() => {}
        },
    }
}

/// Ends the archiving of WAL that former settings asked for.
async fn forget_log(plan: &Plan) {
    LogState::forget(&plan.data_dir);
    // A leftover slot would make the database keep its WAL.
    if let Err(error) = backup::forget_slots(&plan.contents.admin_url).await {
        tracing::warn!(%error, "the database may keep its log for an archive that is no longer written");
    }
}

async fn keep_on(plan: &Plan, every: Duration, backup_store: &BackupStore) {
    let mut known = None;
    let mut tried = None;
    let mut has_failed = false;
    loop {
        let state = State::read(&plan.data_dir);
        let made = state.made_in(backup_store);
        // Other instances on an external database have data folders of their own.
        let others = if plan.external.is_some() { last_in(backup_store).await } else { None };
        // The known one includes a backup whose state file could not be written. One well in the future, left by a clock that was set back,
        // must not delay the next backup, nor hide that it was made.
        let now = Utc::now();
        let last = backup::last_begun([made.map(Backup::begun), known, others].into_iter().flatten(), now);
        // Without an archive of its chain, the archived WAL is useless.
        let chain = plan.config.log_every.and_then(|_| LogState::read(&plan.data_dir)).map(|log| log.chain);
        let begins_chain = chain.is_some() && made.and_then(|made| made.chain.clone()) != chain && tried != chain;
        let age = last.map(|last| backup::age_of(last, now));
        let wait =
            if begins_chain { Duration::ZERO } else { age.map_or(Duration::ZERO, |age| every.saturating_sub(age)) };
        if !wait.is_zero() {
            // With continuous archiving, check more often: no point in time can be restored before the chain's archive exists.
            tokio::time::sleep(wait.min(plan.config.log_every.map_or(LOOK_AGAIN, |every| every.min(LOOK_AGAIN)))).await;
            continue;
        }
        // Until there is an archive, nothing can be restored.
        let gives_way = every >= UNHURRIED && last.is_some() && !begins_chain && !has_failed;
        backup::warn_if_gone(backup_store, &plan.data_dir).await;
        let outcome = take_turn(plan, backup_store, every, gives_way).await;
        has_failed = outcome.is_err();
        match outcome {
            // Another instance is making it, or has made it.
            Ok(None) => tokio::time::sleep(LOOK_AGAIN.min(every)).await,
            Ok(Some(begun)) => {
                known = Some(begun);
                tried = chain;
            }
            Err(error) => {
                backup::FAILED.increment();
                tracing::error!(%error, "the scheduled backup failed");
                tokio::time::sleep(every.min(RETRY)).await;
            }
        }
    }
}

/// When the last archive in `backup_store` was started, if that can be told.
async fn last_in(backup_store: &BackupStore) -> Option<DateTime<Utc>> {
    match Catalog::read(backup_store, &State::default()).await {
        Ok(catalog) => catalog.last_begun(Utc::now()),
        Err(error) => {
            tracing::warn!(%error, "the destination for backups cannot be read at the moment");
            None
        }
    }
}

/// Makes the backup that is due, records it and removes old ones. Returns when it was started, or `None` as [`make`] does.
async fn take_turn(
    plan: &Plan,
    backup_store: &BackupStore,
    every: Duration,
    gives_way: bool,
) -> anyhow::Result<Option<DateTime<Utc>>> {
    let _turn = match &plan.external {
        None => Some(Turn::wait(&plan.data_dir).await?),
        Some(_) => Turn::wait_for_dump(&plan.data_dir).await,
    };
    let Some(made) = make(plan, backup_store, every, gives_way).await? else { return Ok(None) };
    let begun = Backup::new(&made.archive, made.made_at).begun();
    tracing::info!(archive = made.archive, bytes = made.size, files = made.files, "a backup was made");
    if let Err(error) = settle(plan, backup_store, made).await {
        tracing::error!(%error, "the backup was made, but old ones could not be removed");
    }
    Ok(Some(begun))
}

/// Makes the backup that is due: a full one, an incremental one or a dump; the first two may give way to requests. `None` if another instance is making it, or has just made it.
async fn make(
    plan: &Plan,
    backup_store: &BackupStore,
    every: Duration,
    gives_way: bool,
) -> anyhow::Result<Option<Made>> {
    let Plan { config, contents, data_dir, external } = plan;
    let recipients = &config.recipients;
    if let Some(url) = external {
        let (client, connection) = db::connect(&url.parse()?).await?;
        tokio::spawn(connection);
        // Held until the connection ends.
        let row = client.query_one("select pg_try_advisory_lock($1)", &[&LOCK]).await?;
        if !row.get::<_, bool>(0) {
            return Ok(None);
        }
        // The other instance may have made it between our look at the archives and the lock.
        let last = last_in(backup_store).await;
        if last.is_some_and(|last| backup::age_of(last, Utc::now()) < every) {
            return Ok(None);
        }
        return Ok(Some(make_dump(url, contents, backup_store, recipients).await?));
    }
    let contents = &Contents { gives_way, ..contents.clone() };
    let made = match config.full_every {
        Some(_) => make_next(contents, backup_store, recipients, data_dir, config.full_every).await?,
        None => backup::make(contents, backup_store, recipients).await?,
    };
    // The archive is complete. The next one continues an earlier one instead, or is a full one.
    if let Err(error) = Parent::record(data_dir, &made) {
        tracing::error!(%error, "the next archive cannot continue this one");
    }
    Ok(Some(made))
}

/// Records a backup, and removes archives that are too old.
async fn settle(plan: &Plan, backup_store: &BackupStore, made: Made) -> Result<(), BackupError> {
    if let Files::Elsewhere(place) = &plan.contents.files {
        tracing::info!(place, "the files of objects are not in the backup");
    }
    let removed = backup::retain(backup_store, plan.config.keep, &made, &plan.data_dir).await;
    State::record_made(&plan.data_dir, Backup::new(&made.archive, made.made_at).in_chain(made.chain))?;
    removed.map(drop)
}

/// Archives the WAL as long as the server runs, if enabled.
async fn follow(plan: &Plan, backup_store: &BackupStore, mut files: Option<LogFiles>) {
    let Some(every) = plan.config.log_every else {
        forget_log(plan).await;
        return std::future::pending().await;
    };
    let mut told = None;
    loop {
        let Err(error) = follow_chain(plan, backup_store, every, &mut files).await;
        let error = error.to_string();
        // The same error is logged only from time to time.
        if told.as_ref().is_none_or(|(last, at): &(String, Instant)| *last != error || at.elapsed() > TELL_AGAIN) {
            tracing::error!(error, "the log of changes is not archived at the moment");
            told = Some((error, Instant::now()));
        }
        tokio::time::sleep(every.max(LOG_RETRY)).await;
    }
}

/// Archives until an error. The files stay held then, because files that are not archived yet must not be removed.
async fn follow_chain(
    plan: &Plan,
    backup_store: &BackupStore,
    every: Duration,
    files: &mut Option<LogFiles>,
) -> Result<Infallible, BackupError> {
    let mut follower = Follower::start(&plan.contents.admin_url, files, backup_store).await?;
    let failed = loop {
        match step(plan, backup_store, &mut follower).await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(every.max(follower.pause())).await,
            Err(error) => break error,
        }
    };
    *files = follower.end();
    Err(failed)
}

/// Returns whether there is more to archive at once.
async fn step(plan: &Plan, backup_store: &BackupStore, follower: &mut Follower) -> Result<bool, BackupError> {
    let Some(step) = follower.step(backup_store, &plan.config.recipients).await? else { return Ok(false) };
    let state = LogState { chain: follower.chain().to_owned(), reached: step.piece.time };
    state.write(&plan.data_dir)?;
    Ok(step.is_behind)
}
