//! Requests queued with `pg_net` and jobs of `pg_cron`.

use std::time::Duration;

use actix_web::HttpResponse;
use ferrobase::jobs::{Jobs, JobsConfig, Outbound};
use ferrobase::migrate::{self, GivenUrls};

use super::escalation::{GRAB, assert_plain};
use super::{Fixture, query, wait_for};
use crate::support::cluster::connect;
use crate::support::outside;
use crate::support::valve::{Valve, until};

async fn config(db: &Fixture) -> JobsConfig {
    let urls = migrate::prepare(&db.admin, ferrobase::config::DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await;
    JobsConfig {
        service_url: urls.expect("logins").service_url,
        owner_url: db.url.clone(),
        outbound: Outbound { reaches_private: true, api: "127.0.0.1:1".parse().expect("an address") },
    }
}

/// A server that accepts connections and answers, or stays silent.
fn target(answers: bool) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if answers {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            } else {
                open.push(stream);
            }
        }
    });
    format!("http://{address}/")
}

#[tokio::test]
async fn queued_requests_are_not_blocked_by_hanging_or_unstorable_ones() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    query(&db.url, "create extension pg_net; create extension pg_cron").await.expect("extensions");
    // As in databases of earlier versions, in which everybody might do this.
    query(&db.admin, "grant trigger on net._http_response to postgres").await.expect("a grant");
    query(&db.url, "create trigger grab before insert on net._http_response for each row execute function grab_row()")
        .await
        .expect("a trigger");
    query(&db.admin, "alter table net._http_response add constraint refused check (id <> 2)").await.expect("a check");
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    let (silent, good) = (target(false), target(true));
    query(&db.url, &format!("select net.http_get('{silent}', timeout_milliseconds => 2147483647)")).await.expect("1");
    wait_for(&db, "select count(*) = 0 from net.http_request_queue").await;
    query(&db.url, &format!("select net.http_get('{good}'), net.http_get('{good}')")).await.expect("2 and 3");
    wait_for(&db, "select exists (select from net._http_response where id = 3 and status_code = 200)").await;
    assert_eq!(db.one("select count(*) from net._http_response").await, "1");
    assert_plain(&db, "a trigger on net._http_response").await;
    // A result of several rows is not collected.
    query(&db.url, "select cron.schedule('rows', '1 second', 'select generate_series(1, 1000)')").await.expect("a job");
    wait_for(&db, "select exists (select from cron.job_run_details where return_message = '1000 rows')").await;
    jobs.stop().await;
    db.stop().await;
}

/// Requests with a long timeout leave slots to others.
#[tokio::test]
async fn long_requests_leave_slots_to_short_ones() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_net").await.expect("the extension");
    let (silent, good) = (target(false), target(true));
    let all = format!("select net.http_get('{silent}', timeout_milliseconds => 300000) from generate_series(1, 60)");
    query(&db.url, &all).await.expect("requests");
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    wait_for(&db, "select count(*) = 35 from net.http_request_queue").await;
    query(&db.url, &format!("select net.http_get('{good}') from generate_series(1, 30)")).await.expect("requests");
    wait_for(&db, "select count(*) = 30 from net._http_response where status_code = 200").await;
    assert_eq!(db.one("select count(*) from net.http_request_queue").await, "35");
    jobs.stop().await;
    db.stop().await;
}

#[tokio::test]
async fn a_request_that_is_being_taken_at_a_stop_is_sent_and_its_response_is_stored() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_net").await.expect("the extension");
    // Taking it takes a second.
    let slow = "create function public.slow() returns trigger language plpgsql as
                  $$ begin perform pg_sleep(1); return old; end $$;
                create trigger slow before delete on net.http_request_queue
                  for each row execute function public.slow()";
    query(&db.admin, slow).await.expect("a trigger");
    let target = outside::serve_apart(|_, _| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        HttpResponse::Ok().body("late")
    });
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    query(&db.url, &format!("select net.http_get('{target}/')")).await.expect("a request");
    let taking = "select exists (select from pg_stat_activity
                                 where datname = current_database() and wait_event = 'PgSleep')";
    wait_for(&db, taking).await;
    jobs.stop().await;
    let response = db.one("select concat(status_code, ' ', content, ' ', error_msg) from net._http_response").await;
    assert_eq!(response, "200 late ");
    assert_eq!(db.one("select count(*) from net.http_request_queue").await, "0");
    db.stop().await;
}

/// Regression: what a lost connection was taking left the queue and was never sent.
#[tokio::test]
async fn a_request_that_is_being_taken_when_the_connection_is_lost_stays_in_the_queue() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_net").await.expect("the extension");
    let slow = "create function public.slow() returns trigger language plpgsql as
                  $$ begin perform pg_sleep(2); return old; end $$;
                create trigger slow before delete on net.http_request_queue
                  for each row execute function public.slow()";
    query(&db.admin, slow).await.expect("a trigger");
    let mut config = config(&db).await;
    let valve = Valve::before(&config.service_url).await;
    config.service_url = valve.url(&config.service_url);
    let jobs = Jobs::start(config).expect("jobs");
    query(&db.url, &format!("select net.http_get('{}')", target(true))).await.expect("a request");
    let taking = "select exists (select from pg_stat_activity
                                 where datname = current_database() and wait_event = 'PgSleep')";
    wait_for(&db, taking).await;
    valve.cut();
    wait_for(&db, "select exists (select from net._http_response where status_code = 200)").await;
    jobs.stop().await;
    db.stop().await;
}

/// Regression: a statement that was given up waited on for its lock, and its session kept the schedule.
#[tokio::test]
async fn a_connection_that_waits_for_a_locked_table_gives_the_schedule_back() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    query(&db.url, "select cron.schedule('each second', '1 second', 'select 1')").await.expect("a job");
    let holder = connect(&db.admin).await;
    holder.batch_execute("begin; lock cron.job in access exclusive mode").await.expect("a lock");
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    let waits = "exists (select from pg_locks l join pg_database d on d.oid = l.database
                         where datname = current_database() and relation = 'cron.job'::regclass and not granted)";
    wait_for(&db, &format!("select {waits}")).await;
    let has = "exists (select from pg_locks l join pg_database d on d.oid = l.database
                       where datname = current_database() and locktype = 'advisory' and objid = 1668444014)";
    wait_for(&db, &format!("select not {waits} and not {has}")).await;
    holder.batch_execute("rollback").await.expect("unlocked");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'succeeded')").await;
    jobs.stop().await;
    db.stop().await;
}

/// Regression: five seconds without an answer ended a job of any length, whose statement went on.
#[tokio::test]
async fn a_job_survives_a_short_silence_and_is_cancelled_once_its_connection_is_lost() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    let mut config = config(&db).await;
    let valve = Valve::before(&config.service_url).await;
    config.service_url = valve.url(&config.service_url);
    query(&db.url, "select cron.schedule('long', '1 second', 'select pg_sleep(22)')").await.expect("a job");
    let jobs = Jobs::start(config).expect("jobs");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'running')").await;
    // Over the first question, which is asked after ten seconds.
    tokio::time::sleep(Duration::from_secs(9)).await;
    valve.freeze();
    tokio::time::sleep(Duration::from_secs(7)).await;
    valve.thaw();
    wait_for(&db, "select status <> 'running' from cron.job_run_details order by runid limit 1").await;
    let first = "select status from cron.job_run_details order by runid limit 1";
    assert_eq!(db.one(first).await, "succeeded");

    let second = "from cron.job_run_details where status = 'running' order by runid desc limit 1";
    wait_for(&db, &format!("select exists (select {second})")).await;
    let run = db.one(&format!("select runid {second}")).await;
    valve.cut();
    let outcome = format!("from cron.job_run_details where runid = {run}");
    wait_for(&db, &format!("select status = 'failed' {outcome}")).await;
    let message = db.one(&format!("select return_message {outcome}")).await;
    assert!(message.starts_with("connection lost"), "{message}");
    let runs_on = format!(
        "select exists (select from pg_stat_activity
                                  where datname = current_database() and state = 'active' and query like '%pg_sleep(22)'
                                        and query_start < (select end_time {outcome}))"
    );
    assert_eq!(db.one(&runs_on).await, "f");
    jobs.stop().await;
    db.stop().await;
}

/// Regression: the minutes of an outage were skipped.
#[tokio::test]
async fn each_minute_of_an_outage_is_made_up_for() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    let mut config = config(&db).await;
    let valve = Valve::before(&config.service_url).await;
    config.service_url = valve.url(&config.service_url);
    query(&db.url, "select cron.schedule('each minute', '* * * * *', 'select 1')").await.expect("a job");
    let jobs = Jobs::start(config).expect("jobs");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'succeeded')").await;
    // The connection with the schedule is given up before the minute ends.
    wait_for(&db, "select extract(second from now()) between 15 and 30").await;
    valve.freeze();
    let next = db.one("select date_trunc('minute', now()) + interval '1 minute'").await;
    let before = db.one(&format!("select '{next}'::timestamptz + interval '1 minute'")).await;
    until("the next minute has begun", async || db.one(&format!("select now() > '{next}'")).await == "t").await;
    until("and has ended", async || db.one(&format!("select now() > '{before}'")).await == "t").await;
    valve.thaw();
    wait_for(&db, &format!("select count(*) >= 2 from cron.job_run_details where start_time > '{before}'")).await;
    jobs.stop().await;
    db.stop().await;
}

#[tokio::test]
async fn a_run_that_a_dead_server_left_in_postgresql_is_neither_repeated_nor_marked_as_failed_while_it_goes_on() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    let config = config(&db).await;
    // The job runs until this lock is released.
    let holder = connect(&db.admin).await;
    holder.batch_execute("select pg_advisory_lock(4715)").await.expect("a lock");
    let job = "select cron.schedule('long', '1 second', 'select pg_advisory_xact_lock(4715)')";
    query(&db.url, job).await.expect("a job");
    let dying = tokio::runtime::Runtime::new().expect("a runtime");
    let dead = {
        let _inside = dying.enter();
        Jobs::start(config.clone()).expect("jobs")
    };
    let waiting = "select exists (select from pg_locks l join pg_database d on d.oid = l.database
                                  where datname = current_database() and objid = 4715 and not granted)";
    wait_for(&db, waiting).await;
    // As if the process were killed.
    dying.shutdown_background();
    drop(dead);
    assert_eq!(db.one(waiting).await, "t");
    let other = "insert into cron.job_run_details (jobid, database, username, command, status, start_time)
                 values (999, current_database(), 'postgres', 'select 9', 'running', now())";
    query(&db.admin, other).await.expect("a run of which nothing is left");
    query(&db.url, "select cron.schedule('witness', '1 second', 'select 2')").await.expect("another job");

    let jobs = Jobs::start(config).expect("jobs");
    let seen = "select count(*) >= 3 from cron.job_run_details where command = 'select 2' and status = 'succeeded'";
    wait_for(&db, seen).await;
    let of = |command: &str| {
        format!(
            "select string_agg(concat_ws(' ', status, return_message), ', ' order by runid)
             from cron.job_run_details where command like '{command}'"
        )
    };
    assert_eq!(db.one(&of("%4715%")).await, "running");
    assert_eq!(db.one(&of("select 9")).await, "failed server restarted");
    // Its outcome will not be known. The job goes on.
    holder.batch_execute("select pg_advisory_unlock(4715)").await.expect("unlocked");
    wait_for(&db, &format!("select ({}) like 'failed server restarted, succeeded 1 row%'", of("%4715%"))).await;
    jobs.stop().await;
    db.stop().await;
}

/// Regression: after a failover the schedule stayed on a former primary that hangs, so that no server ran jobs.
#[tokio::test]
async fn the_schedule_leaves_a_host_that_hangs() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    query(&db.url, "select cron.schedule('each second', '1 second', 'select 1')").await.expect("a job");
    let mut config = config(&db).await;
    let valve = Valve::before(&config.service_url).await;
    config.service_url = valve.before_own_host(&config.service_url);
    let jobs = Jobs::start(config).expect("jobs");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'succeeded')").await;
    valve.freeze();
    let sessions = "from pg_stat_activity where datname = current_database() and application_name = 'ferrobase jobs'";
    let former = db.one(&format!("select string_agg(pid::text, ', ') {sessions}")).await;
    // For the lock, then for who has it.
    let asking = format!("{sessions} and query ~ 'pg_try_advisory_lock|pg_locks' and pid not in ({former})");
    until("it asks for the schedule at the other host", async || {
        db.one(&format!("select exists (select {asking})")).await == "t"
    })
    .await;
    // The two hosts are one server, where the former session still has the lock.
    let ended = format!("select pg_terminate_backend(pid) {sessions} and pid in ({former})");
    query(&db.admin, &ended).await.expect("ended");
    let now = db.one("select now()").await;
    until("the job runs again", async || {
        let run = format!("cron.job_run_details where status = 'succeeded' and start_time > '{now}'");
        db.one(&format!("select exists (select from {run})")).await == "t"
    })
    .await;
    jobs.stop().await;
    db.stop().await;
}

/// Regression: each server that got the schedule ran such a job once more.
#[tokio::test]
async fn a_job_of_the_start_runs_once_after_a_start_of_postgresql() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    query(&db.url, "select cron.schedule('at start', '@reboot', 'select 1')").await.expect("a job");
    let config = config(&db).await;
    let runs = "select count(*) from cron.job_run_details where command = 'select 1'";
    for witness in ["select 2", "select 3"] {
        let jobs = Jobs::start(config.clone()).expect("jobs");
        let job = format!("select cron.schedule('{witness}', '1 second', '{witness}')");
        query(&db.url, &job).await.expect("another job");
        let seen = format!(
            "select count(*) >= 2 from cron.job_run_details where command = '{witness}' and status = 'succeeded'"
        );
        wait_for(&db, &seen).await;
        assert_eq!(db.one(runs).await, "1", "{witness}");
        jobs.stop().await;
    }
    db.stop().await;
}

/// Regression: a lost connection repeated such a job if the list of runs had been cleaned.
#[tokio::test]
async fn a_lost_connection_is_no_start_of_postgresql() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    query(&db.url, "select cron.schedule('at start', '@reboot', 'select 1')").await.expect("a job");
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'succeeded')").await;
    query(&db.admin, "delete from cron.job_run_details").await.expect("cleaned");
    let sessions = "from pg_stat_activity where datname = current_database() and application_name = 'ferrobase jobs'";
    query(&db.admin, &format!("select pg_terminate_backend(pid) {sessions}")).await.expect("ended");
    query(&db.url, "select cron.schedule('witness', '1 second', 'select 2')").await.expect("another job");
    wait_for(&db, "select count(*) >= 2 from cron.job_run_details where status = 'succeeded'").await;
    assert_eq!(db.one("select count(*) from cron.job_run_details where command = 'select 1'").await, "0");
    jobs.stop().await;
    db.stop().await;
}

#[tokio::test]
async fn a_server_that_takes_over_the_schedule_runs_the_jobs_of_this_minute_once() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    let config = config(&db).await;
    query(&db.url, "select cron.schedule('each minute', '* * * * *', 'select 1')").await.expect("a job");
    // Not shortly before the next minute, in which it would run anyway.
    wait_for(&db, "select extract(second from now()) < 40").await;
    let minute = db.one("select date_trunc('minute', now())").await;
    let jobs = Jobs::start(config.clone()).expect("jobs");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'succeeded')").await;
    let first = "select date_trunc('minute', min(start_time)) from cron.job_run_details";
    assert_eq!(db.one(first).await, minute);
    jobs.stop().await;

    query(&db.url, "select cron.schedule('witness', '1 second', 'select 2')").await.expect("another job");
    let jobs = Jobs::start(config).expect("jobs");
    let seen = "select exists (select from cron.job_run_details where command = 'select 2' and status = 'succeeded')";
    wait_for(&db, seen).await;
    let repeated = "select count(*) - count(distinct date_trunc('minute', start_time))
                    from cron.job_run_details where command = 'select 1'";
    assert_eq!(db.one(repeated).await, "0");
    jobs.stop().await;
    db.stop().await;
}

#[tokio::test]
async fn a_run_that_ends_soon_after_a_stop_is_recorded() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    query(&db.url, "select cron.schedule('short', '1 second', 'select pg_sleep(2)')").await.expect("a job");
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    wait_for(&db, "select exists (select from cron.job_run_details where status = 'running')").await;
    jobs.stop().await;
    assert_eq!(db.one("select count(*) from cron.job_run_details where status <> 'succeeded'").await, "0");
    db.stop().await;
}

/// Regression: with more jobs in a minute than may run at once, some were never run.
#[tokio::test]
async fn runs_that_find_no_place_wait_for_one() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    let all = "select cron.schedule('job ' || n, '* * * * *', 'select pg_sleep(3)') from generate_series(1, 40) n";
    query(&db.url, all).await.expect("jobs");
    // Not shortly before the next minute, in which the rest would run anyway.
    wait_for(&db, "select extract(second from now()) < 30").await;
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    wait_for(&db, "select count(distinct jobid) = 40 from cron.job_run_details where status = 'succeeded'").await;
    assert_eq!(db.one("select count(*) - count(distinct jobid) from cron.job_run_details").await, "0");
    jobs.stop().await;
    db.stop().await;
}

/// Regression: a run that was due while its job ran was lost.
#[tokio::test]
async fn a_run_begins_as_soon_as_the_one_before_has_ended() {
    let db = Fixture::with_platform().await;
    query(&db.url, "create extension pg_cron").await.expect("the extension");
    query(&db.url, "select cron.schedule('long', '1 second', 'select pg_sleep(1.2)')").await.expect("a job");
    let jobs = Jobs::start(config(&db).await).expect("jobs");
    wait_for(&db, "select count(*) >= 4 from cron.job_run_details where status = 'succeeded'").await;
    let pause = "select min(begun - ended) < interval '500 ms' and min(begun - ended) >= interval '0'
                 from (select start_time as begun, lag(end_time) over (order by runid) as ended from cron.job_run_details) r";
    assert_eq!(db.one(pause).await, "t");
    jobs.stop().await;
    db.stop().await;
}
