//! Runs the jobs of pg_cron: each on its own connection as the role that created it, one run of a job at a time. Of
//! several servers on one database, one runs the schedule. Runs that are due while their job runs, or too many do, wait.
//!
//! PostgreSQL continues a job's statement after its server has gone. So each run's connection holds a lock on its job:
//! while it lives, the next server neither starts the job again nor marks the run as failed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::JobsConfig;
use super::listen::{self, ANSWER, Link, WORK, stopped};
use super::metrics::{HAS_SCHEDULE, RUNS};
use super::minutes::{Minutes, Which};
use super::pending::{Missed, Pending};
use super::schedule::Schedule;
use crate::db::{self, Canceller, NOTICE_OUR_DEATH, Value, replaced};

/// The advisory lock of the server that runs the schedule ("cron" in ASCII).
const LOCK: i64 = 0x63_72_6f_6e;
/// The first key of the advisory lock of a run ("cjob" in ASCII), in the job's database; [`key_of`] gives the second.
const JOB_LOCK: i32 = 0x63_6a_6f_62;
/// The most concurrent runs.
const AT_ONCE: u16 = 32;
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How often a server without the schedule tries to get it, and one with it checks that the extension is installed.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// By how many seconds PostgreSQL's clock may be behind that of a server: a run may seem to begin before its minute.
const CLOCK_DIFFERENCE: i64 = 10;
/// After how many missing answers in a row, a minute, a run ends because its server has gone. A paused machine comes back.
const MISSING: u32 = 4;

/// What remains when the connection is lost.
struct Progress {
    /// Of [`replaced::times`].
    database: u64,
    /// None before this server had the schedule, and after another one had it.
    minutes: Option<Minutes>,
    pending: Pending,
    /// Jobs that are running.
    busy: Arc<Mutex<HashSet<i64>>>,
    /// The ids of the runs that made up for missed ones.
    made_up: Arc<Mutex<Vec<i64>>>,
    /// The start of PostgreSQL for which the jobs of the start were due.
    begun: Option<DateTime<Utc>>,
    /// The processes of our connections that had the schedule.
    sessions: Vec<i32>,
}

impl Progress {
    fn new(database: u64) -> Self {
        Self {
            database,
            minutes: None,
            pending: Pending::default(),
            busy: Arc::default(),
            made_up: Arc::default(),
            begun: None,
            sessions: Vec::new(),
        }
    }
}

#[derive(Clone)]
struct Job {
    id: i64,
    schedule: Schedule,
    command: String,
    database: String,
    username: String,
}

pub async fn run(config: JobsConfig, mut stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(usize::from(AT_ONCE)));
    let first = replaced::times();
    let mut progress = Progress::new(first);
    loop {
        let database = tokio::select! {
            database = replaced::current() => database,
            () = stopped(&mut stop) => break,
        };
        if progress.database != database {
            progress = Progress::new(database);
        }
        let outcome = tokio::select! {
            // The jobs of a new copy of a project have missed nothing.
            outcome = serve(&config, &mut progress, database == first, &places) => outcome,
            () = stopped(&mut stop) => break,
        };
        HAS_SCHEDULE.store(false, Ordering::Relaxed);
        if replaced::times() != database {
            continue;
        }
        if let Err(error) = outcome {
            tracing::warn!(%error, "scheduled jobs cannot be run at the moment; trying again");
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN_AFTER) => {}
            () = stopped(&mut stop) => break,
        }
    }
    HAS_SCHEDULE.store(false, Ordering::Relaxed);
    // Another server has the schedule now. Runs of this one that end soon are recorded.
    let _ = places.acquire_many(u32::from(AT_ONCE)).await;
}

/// `catches_up`: after another server, also runs the current minute's jobs that have not begun.
async fn serve(
    config: &JobsConfig,
    progress: &mut Progress,
    catches_up: bool,
    places: &Arc<Semaphore>,
) -> anyhow::Result<()> {
    let database = progress.database;
    let (client, mut told) = listen::open(&config.service_url, "ferrobase_cron").await?;
    // The lock ends with the connection.
    let lock = "select pg_try_advisory_lock($1), pg_backend_pid()";
    loop {
        let row = client.within(ANSWER, client.query_one(lock, &[&LOCK])).await?;
        if row.get(0) {
            // The former ones have ended, or belong to another PostgreSQL.
            progress.sessions = vec![row.get(1)];
            break;
        }
        if progress.minutes.is_some() && client.within(ANSWER, has_other(&client, &progress.sessions)).await? {
            progress.minutes = None;
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    HAS_SCHEDULE.store(true, Ordering::Relaxed);
    let runner = Runner {
        config: config.clone(),
        database,
        busy: Arc::clone(&progress.busy),
        places: Arc::clone(places),
        ended: Arc::default(),
        made_up: Arc::clone(&progress.made_up),
    };
    if progress.pending.is_empty() {
        runner.made_up.lock().clear();
    }
    let mut abandoned: Vec<i64> = Vec::new();
    let (mut jobs, mut asked): (Vec<Job>, Option<Instant>) = (Vec::new(), None);
    let mut is_first = true;
    let mut last_run: HashMap<i64, Instant> = HashMap::new();
    let is_new = progress.minutes.is_none();
    let minutes = progress.minutes.get_or_insert_with(|| Minutes::starting(minute_of(Utc::now())));
    let pending = &mut progress.pending;
    let begun: DateTime<Utc> =
        client.within(ANSWER, client.query_one("select pg_postmaster_start_time()", &[])).await?.get(0);
    let is_after_start = progress.begun != Some(begun);
    loop {
        let mut is_told = false;
        while let Ok(()) = told.try_recv() {
            is_told = true;
        }
        anyhow::ensure!(!client.is_closed() && replaced::times() == database, "the connection was lost");
        if is_told || asked.is_none_or(|when| when.elapsed() > ASK_EVERY) {
            asked = Some(Instant::now());
            jobs = load(&client).await?;
            pending.keep(|id| jobs.iter().any(|job| job.id == id));
            if is_first && !jobs.is_empty() {
                abandoned = client.within(WORK, close_runs(&client, None)).await?;
            } else if !abandoned.is_empty() {
                abandoned = client.within(WORK, close_runs(&client, Some(abandoned.as_slice()))).await?;
            }
        }
        let now = Utc::now();
        let mut due = minutes.until(minute_of(now));
        // The minute began before this server had the schedule.
        if catches_up && is_new && is_first && due.is_empty() {
            due.push((minute_of(now), Which::All));
        }
        for job in &jobs {
            match &job.schedule {
                Schedule::Every(seconds) => {
                    // First after a whole interval, and one at a time, as the original does.
                    let last = last_run.entry(job.id).or_insert_with(Instant::now);
                    if last.elapsed() >= Duration::from_secs(u64::from(*seconds)) && !pending.has(job.id) {
                        pending.add(job.id, None);
                    }
                }
                // Not again because this server has just got the schedule.
                Schedule::AtStart if is_first && is_after_start => {
                    pending.add(job.id, Some(Missed { since: begun, before: None }));
                }
                Schedule::AtStart => {}
                fields @ Schedule::Fields { .. } => {
                    for (of, which) in &due {
                        let time = DateTime::from_timestamp(of * 60, 0);
                        if which.includes(fields) && time.is_some_and(|time| fields.is_due(time)) {
                            // Another server may have had the schedule.
                            pending.add(job.id, is_first.then(|| missed(*of)).flatten());
                        }
                    }
                }
            }
        }
        pending.offer(|id, missed| {
            let Some(job) = jobs.iter().find(|job| job.id == id) else { return false };
            let begins = runner.start(job, missed);
            if begins {
                last_run.insert(id, Instant::now());
            }
            begins
        });
        if asked.is_some() {
            is_first = false;
            progress.begun = Some(begun);
        }
        let until_next = 1_000 - u64::from(Utc::now().timestamp_subsec_millis()).min(999);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(until_next)) => {}
            () = runner.ended.notified() => {}
        }
    }
}

fn minute_of(time: DateTime<Utc>) -> i64 {
    time.timestamp().div_euclid(60)
}

/// When another server would have begun the runs of a minute, as PostgreSQL's clock tells it.
fn missed(minute: i64) -> Option<Missed> {
    let since = DateTime::from_timestamp(minute * 60 - CLOCK_DIFFERENCE, 0)?;
    Some(Missed { since, before: Some(since + chrono::Duration::seconds(60 + CLOCK_DIFFERENCE)) })
}

/// Whether another server has the schedule: not a lost connection of this one, among `sessions`, that PostgreSQL has not
/// noticed yet.
async fn has_other(client: &Client, sessions: &[i32]) -> Result<bool, tokio_postgres::Error> {
    let held = "select exists (
                  select from pg_locks l join pg_database b on b.oid = l.database
                  where l.locktype = 'advisory' and l.classid::bigint << 32 | l.objid::bigint = $1 and l.objsubid = 1
                        and l.granted and b.datname = current_database() and l.pid <> all($2))";
    Ok(client.query_one(held, &[&LOCK, &sessions]).await?.get(0))
}

/// Runs without an outcome, all or among `$1`.
const UNFINISHED: &str = "status in ('starting', 'connecting', 'sending', 'running')
  and ($1::bigint[] is null or runid = any($1))";

/// Marks runs of former servers as failed: all, or `among` these. Returns those that PostgreSQL still runs, to be asked
/// about again: their outcome will not be known either.
async fn close_runs(client: &Client, among: Option<&[i64]>) -> Result<Vec<i64>, tokio_postgres::Error> {
    let close = format!(
        "update cron.job_run_details d set status = 'failed', return_message = 'server restarted', end_time = now()
         where {UNFINISHED} and not exists (
           select from pg_locks l join pg_database b on b.oid = l.database
           where l.locktype = 'advisory' and l.classid::bigint = $2 and l.objid::bigint = d.jobid & 2147483647
                 and l.objsubid = 2 and l.granted and b.datname = d.database)"
    );
    client.execute(&close, &[&among, &i64::from(JOB_LOCK)]).await?;
    let left = format!("select runid from cron.job_run_details where {UNFINISHED}");
    Ok(client.query(&left, &[&among]).await?.iter().map(|row| row.get(0)).collect())
}

/// The active jobs; none without our extension (the real one has its own worker).
async fn load(client: &Link) -> anyhow::Result<Vec<Job>> {
    if !listen::is_ours(client, "pg_cron", "cron", "_tell", "ferrobase_cron").await? {
        return Ok(Vec::new());
    }
    let active = "select jobid, schedule, command, database, username from cron.job where active";
    let rows = client.within(ANSWER, client.query(active, &[])).await?;
    Ok(rows
        .iter()
        .filter_map(|row| {
            let schedule: String = row.get(1);
            Some(Job {
                id: row.get(0),
                schedule: Schedule::parse(&schedule)?,
                command: row.get(2),
                database: row.get(3),
                username: row.get(4),
            })
        })
        .collect())
}

struct Runner {
    config: JobsConfig,
    /// Where the jobs come from.
    database: u64,
    /// Jobs that are running.
    busy: Arc<Mutex<HashSet<i64>>>,
    places: Arc<Semaphore>,
    /// Told when a run has ended.
    ended: Arc<Notify>,
    /// See [`Progress`].
    made_up: Arc<Mutex<Vec<i64>>>,
}

impl Runner {
    /// False if the job is still running, or too many are. `missed`: not if another run began then.
    fn start(&self, job: &Job, missed: Option<Missed>) -> bool {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return false };
        if !self.busy.lock().insert(job.id) {
            return false;
        }
        let (config, busy, job, database) = (self.config.clone(), Arc::clone(&self.busy), job.clone(), self.database);
        let (ended, made_up) = (Arc::clone(&self.ended), Arc::clone(&self.made_up));
        tokio::spawn(async move {
            if let Err(error) = record_and_run(&config, &job, missed, &made_up, database).await
                && replaced::times() == database
            {
                tracing::warn!(job = job.id, %error, "a run of a job could not be recorded");
            }
            busy.lock().remove(&job.id);
            drop(place);
            ended.notify_one();
        });
        true
    }
}

async fn record_and_run(
    config: &JobsConfig,
    job: &Job,
    missed: Option<Missed>,
    made_up: &Mutex<Vec<i64>>,
    database: u64,
) -> anyhow::Result<()> {
    let (mut admin, _told) = listen::connect(&config.service_url).await?;
    let Some(session) = Session::open(config, job).await.transpose() else {
        tracing::debug!(job = job.id, "a job is not started: a run that a former server began has not ended");
        return Ok(());
    };
    if replaced::times() != database {
        return Ok(());
    }
    if let Some(Missed { since, before }) = missed {
        // A run is recorded before its lock is released, so that the lock makes this certain.
        let begun = "select exists (select from cron.job_run_details
                                    where jobid = $1 and start_time >= $2 and ($3::timestamptz is null or start_time < $3)
                                          and runid <> all($4))";
        let made_up = made_up.lock().clone();
        if admin.within(WORK, admin.query_one(begun, &[&job.id, &since, &before, &made_up])).await?.get(0) {
            return Ok(());
        }
    }
    let insert = "insert into cron.job_run_details (jobid, database, username, command, status, start_time)
                  values ($1, $2, $3, $4, 'running', now()) returning runid";
    let values: [Value<'_>; 4] = [&job.id, &job.database, &job.username, &job.command];
    let run: i64 = admin.within(WORK, admin.query_one(insert, &values)).await?.get(0);
    if missed.is_some() {
        made_up.lock().push(run);
    }
    let outcome = match &session {
        Ok(session) => tokio::select! {
            outcome = session.run(&job.command) => outcome,
            // The command may take its time, but the server has to answer others.
            error = db::lost_after(&admin, "select 1", MISSING) => {
                // It would go on, and the next run would be left out.
                if let Err(error) = session.canceller.cancel().await {
                    tracing::debug!(job = job.id, %error, "a job on a lost connection could not be cancelled");
                }
                (admin, _) = listen::connect(&config.service_url).await?;
                Err(format!("connection lost: {error}"))
            }
        },
        Err(error) => Err(error.clone()),
    };
    RUNS.note(outcome.is_ok());
    let (status, message) = match outcome {
        Ok(message) => ("succeeded", message),
        Err(error) => {
            tracing::warn!(job = job.id, error, "a job failed");
            ("failed", error)
        }
    };
    let update = "update cron.job_run_details set status = $2, return_message = $3, end_time = now() where runid = $1";
    admin.within(WORK, admin.execute(update, &[&run, &status, &message])).await?;
    if let Ok(session) = session {
        session.close(job).await;
    }
    Ok(())
}

/// The connection of a run, with the lock on its job.
struct Session {
    client: Client,
    canceller: Canceller,
    /// The task of the connection; ends with this.
    _driver: JoinSet<Result<(), tokio_postgres::Error>>,
}

/// The second key of a job's lock. Job ids of more than 31 bits may share one.
fn key_of(job: &Job) -> i32 {
    i32::try_from(job.id & i64::from(i32::MAX)).unwrap_or_default()
}

impl Session {
    /// None if a run of this job has not ended.
    async fn open(config: &JobsConfig, job: &Job) -> Result<Option<Self>, String> {
        let mut login: tokio_postgres::Config = config.owner_url.parse().map_err(|_| "connection failed".to_owned())?;
        // The server knows only the owner's password. If it switched to other roles, a job could become superuser.
        if login.get_user() != Some(job.username.as_str()) {
            return Err(format!(
                "connection failed: jobs of role {} are not run, only those of {}",
                job.username,
                login.get_user().unwrap_or_default()
            ));
        }
        login.dbname(&job.database).application_name("pg_cron");
        let (client, connection, canceller) =
            db::connect_cancellable(&login).await.map_err(|error| format!("connection failed: {error}"))?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let begun = async {
            client.batch_execute(NOTICE_OUR_DEATH).await?;
            let lock = "select pg_catalog.pg_try_advisory_lock($1, $2)";
            client.query_one(lock, &[&JOB_LOCK, &key_of(job)]).await
        };
        let Ok(begun) = timeout(ANSWER, begun).await else {
            return Err("connection failed: the database does not answer".to_owned());
        };
        let locked: bool = begun.map_err(|error| format!("connection failed: {}", words(&error)))?.get(0);
        Ok(locked.then_some(Self { client, canceller, _driver: driver }))
    }

    /// Runs the command; the result is in `psql`'s words.
    async fn run(&self, command: &str) -> Result<String, String> {
        let (rows, affected) = count(&self.client, command).await.map_err(|error| words(&error))?;
        let verb = command.split_whitespace().next().unwrap_or_default().to_uppercase();
        Ok(match (rows, verb.as_str()) {
            (1, _) => "1 row".to_owned(),
            (rows, "SELECT") => format!("{rows} rows"),
            (_, verb) => affected.map_or_else(|| verb.to_owned(), |count| format!("{verb} {count}")),
        })
    }

    /// Unlocks the job at once: PostgreSQL may notice only after the job's next second that the connection has ended.
    async fn close(self, job: &Job) {
        // It fails in a transaction that the command left behind, which ends with the connection.
        let unlock = format!("select pg_catalog.pg_advisory_unlock({JOB_LOCK}, {})", key_of(job));
        let _ = timeout(ANSWER, self.client.batch_execute(&unlock)).await;
    }
}

/// Runs statements; returns the row count of the last one with rows, and of the rows affected by the last one. Rows are
/// discarded as they arrive.
async fn count(client: &Client, command: &str) -> Result<(u64, Option<u64>), tokio_postgres::Error> {
    let mut messages = std::pin::pin!(client.simple_query_raw(command).await?);
    let (mut rows, mut affected) = (0, None);
    while let Some(message) = messages.try_next().await? {
        match message {
            SimpleQueryMessage::Row(_) => rows += 1,
            SimpleQueryMessage::RowDescription(_) => rows = 0,
            SimpleQueryMessage::CommandComplete(count) => affected = Some(count),
            _ => {}
        }
    }
    Ok((rows, affected))
}

fn words(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |db| format!("{}:  {}", db.severity(), db.message()))
}
