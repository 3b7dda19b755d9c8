//! Runs the jobs of pg_cron: each on its own connection as the role that created it, one run of a job at a time. Of
//! several servers on one database, one runs the schedule.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chrono::{DateTime, Timelike, Utc};
use futures_util::TryStreamExt;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::JobsConfig;
use super::listen::{self, stopped};
use super::metrics::{HAS_SCHEDULE, RUNS};
use super::schedule::Schedule;
use crate::db::replaced;

/// The advisory lock of the server that runs the schedule ("cron" in ASCII).
const LOCK: i64 = 0x63_72_6f_6e;
/// The most concurrent runs.
const AT_ONCE: usize = 32;
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How often a server without the schedule tries to get it, and one with it checks that the extension is installed.
const ASK_EVERY: Duration = Duration::from_secs(15);

#[derive(Clone)]
struct Job {
    id: i64,
    schedule: Schedule,
    command: String,
    database: String,
    username: String,
}

pub async fn run(config: JobsConfig, mut stop: watch::Receiver<bool>) {
    loop {
        let database = tokio::select! {
            database = replaced::current() => database,
            () = stopped(&mut stop) => return,
        };
        let outcome = tokio::select! {
            outcome = serve(&config, database) => outcome,
            () = stopped(&mut stop) => return,
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
            () = stopped(&mut stop) => return,
        }
    }
}

/// `database`: of [`replaced::times`].
async fn serve(config: &JobsConfig, database: u64) -> anyhow::Result<()> {
    let (client, mut told) = listen::open(&config.service_url, "ferrobase_cron").await?;
    // The lock ends with the connection.
    while !client.query_one("select pg_try_advisory_lock($1)", &[&LOCK]).await?.get::<_, bool>(0) {
        tokio::time::sleep(ASK_EVERY).await;
    }
    HAS_SCHEDULE.store(true, Ordering::Relaxed);
    let runner =
        Runner { config: config.clone(), database, busy: Arc::default(), places: Arc::new(Semaphore::new(AT_ONCE)) };
    let (mut jobs, mut asked): (Vec<Job>, Option<Instant>) = (Vec::new(), None);
    let mut is_first = true;
    let mut last_run: HashMap<i64, Instant> = HashMap::new();
    let mut last_minute = minute_of(Utc::now());
    loop {
        let mut is_told = false;
        while let Ok(()) = told.try_recv() {
            is_told = true;
        }
        anyhow::ensure!(!client.is_closed() && replaced::times() == database, "the connection was lost");
        if is_told || asked.is_none_or(|when| when.elapsed() > ASK_EVERY) {
            asked = Some(Instant::now());
            jobs = load(&client).await?;
            if is_first && !jobs.is_empty() {
                client
                    .execute(
                        "update cron.job_run_details set status = 'failed', return_message = 'server restarted',
                           end_time = now() where status in ('starting', 'connecting', 'sending', 'running')",
                        &[],
                    )
                    .await?;
            }
        }
        let now = Utc::now();
        let is_new_minute = minute_of(now) != last_minute;
        last_minute = minute_of(now);
        for job in &jobs {
            let is_due = match &job.schedule {
                Schedule::Every(seconds) => {
                    // First after a whole interval, as the original does.
                    let last = last_run.entry(job.id).or_insert_with(Instant::now);
                    last.elapsed() >= Duration::from_secs(u64::from(*seconds))
                }
                Schedule::AtStart => is_first,
                fields @ Schedule::Fields { .. } => is_new_minute && fields.is_due(now),
            };
            if is_due && runner.start(job) {
                last_run.insert(job.id, Instant::now());
            }
        }
        if asked.is_some() {
            is_first = false;
        }
        let until_next = 1_000 - u64::from(Utc::now().timestamp_subsec_millis()).min(999);
        tokio::time::sleep(Duration::from_millis(until_next)).await;
    }
}

fn minute_of(time: DateTime<Utc>) -> i64 {
    time.with_second(0).map_or_else(|| time.timestamp() / 60, |time| time.timestamp() / 60)
}

/// The active jobs; none without our extension (the real one has its own worker).
async fn load(client: &Client) -> anyhow::Result<Vec<Job>> {
    if !listen::is_ours(client, "pg_cron", "cron", "_tell", "ferrobase_cron").await? {
        return Ok(Vec::new());
    }
    let rows =
        client.query("select jobid, schedule, command, database, username from cron.job where active", &[]).await?;
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
}

impl Runner {
    /// False if the job is still running, or too many are.
    fn start(&self, job: &Job) -> bool {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return false };
        if !self.busy.lock().insert(job.id) {
            return false;
        }
        let (config, busy, job, database) = (self.config.clone(), Arc::clone(&self.busy), job.clone(), self.database);
        tokio::spawn(async move {
            if let Err(error) = record_and_run(&config, &job, database).await
                && replaced::times() == database
            {
                tracing::warn!(job = job.id, %error, "a run of a job could not be recorded");
            }
            busy.lock().remove(&job.id);
            drop(place);
        });
        true
    }
}

async fn record_and_run(config: &JobsConfig, job: &Job, database: u64) -> anyhow::Result<()> {
    let (admin, _told) = listen::connect(&config.service_url).await?;
    if replaced::times() != database {
        return Ok(());
    }
    let run: i64 = admin
        .query_one(
            "insert into cron.job_run_details (jobid, database, username, command, status, start_time)
             values ($1, $2, $3, $4, 'running', now()) returning runid",
            &[&job.id, &job.database, &job.username, &job.command],
        )
        .await?
        .get(0);
    let outcome = execute(config, job, database).await;
    RUNS.note(outcome.is_ok());
    let (status, message) = match outcome {
        Ok(message) => ("succeeded", message),
        Err(error) => {
            tracing::warn!(job = job.id, error, "a job failed");
            ("failed", error)
        }
    };
    admin
        .execute(
            "update cron.job_run_details set status = $2, return_message = $3, end_time = now() where runid = $1",
            &[&run, &status, &message],
        )
        .await?;
    Ok(())
}

/// Runs the command; the result is in `psql`'s words.
async fn execute(config: &JobsConfig, job: &Job, database: u64) -> Result<String, String> {
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
    let (client, connection) =
        crate::db::connect(&login).await.map_err(|error| format!("connection failed: {error}"))?;
    if replaced::times() != database {
        return Err("connection failed: the database was replaced".to_owned());
    }
    let driver = tokio::spawn(connection);
    let outcome = count(&client, &job.command).await;
    drop(client);
    driver.abort();
    let (rows, affected) = outcome.map_err(|error| words(&error))?;
    let verb = job.command.split_whitespace().next().unwrap_or_default().to_uppercase();
    Ok(match (rows, verb.as_str()) {
        (1, _) => "1 row".to_owned(),
        (rows, "SELECT") => format!("{rows} rows"),
        (_, verb) => affected.map_or_else(|| verb.to_owned(), |count| format!("{verb} {count}")),
    })
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
