//! Faults under a server with concurrent writes over REST, auth and storage (`just chaos-server`): kills, a stalled
//! database, full, read-only and stalled disks, interrupted and slow networks, a jumping clock. (`storage_crash` covers
//! storage in more detail, `frontend/e2e/chaos.spec.ts` AidBridge's pages.)
//!
//! Each writer keeps a ledger of the possible values of each of its keys. An acknowledged write leaves one value, a
//! lost answer adds one, a refused write changes nothing. While PostgreSQL or the network to it stands still, a lost
//! write may even be executed after an acknowledged one. After each fault the server has to recover by itself or after a
//! restart, and every key must have one of its possible values. `CHAOS_ROUNDS` and `CHAOS_SEED` make the run longer,
//! `CHAOS_REPORT` names a file for its figures.

mod clocks;
mod disks;
mod kills;
mod network;
mod stalls;
mod starts;
mod writers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::Rng as _;
use rand::rngs::StdRng;
use reqwest::Client;
use serde_json::json;
use tokio_postgres::NoTls;

use crate::support::binary::SERVICE_KEY;
use crate::support::server_process::ServerProcess;
use writers::{Counts, Writer, writers};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn client() -> Client {
    // A second installation has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(Duration::from_secs(30)).build().expect("a client")
}

/// Creates the table and the bucket.
async fn furnish(owner: &tokio_postgres::Client, http: &Client, base: &str) {
    owner
        .batch_execute(
            "create table if not exists public.chaos (id bigint primary key, value bigint not null);
             grant all on public.chaos to service_role; notify pgrst, 'reload schema'",
        )
        .await
        .expect("a table");
    let made = http.post(format!("{base}/storage/v1/bucket")).bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY);
    let made = made.json(&json!({ "name": "chaos" })).send().await.expect("an answer");
    assert_eq!(made.status(), 200);
    let rows = http.get(format!("{base}/rest/v1/chaos")).bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY);
    let deadline = Instant::now() + Duration::from_secs(30);
    while rows.try_clone().expect("no body").send().await.is_ok_and(|answer| answer.status() != 200) {
        assert!(Instant::now() < deadline, "the table is not known");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Lets the writers work while `fault` happens.
async fn during(writers: &mut Vec<Writer>, fault: impl Future<Output = ()>) {
    let stop = Arc::new(AtomicBool::new(false));
    let working: Vec<_> =
        writers.drain(..).map(|writer| actix_web::rt::spawn(writer.work(Arc::clone(&stop)))).collect();
    fault.await;
    stop.store(true, Ordering::Release);
    for task in working {
        writers.push(task.await.expect("a writer"));
    }
}

/// After the fault every writer gets further, and what it wrote is there.
async fn writes_again(writers: &mut Vec<Writer>, fault: &str) {
    let before: Vec<u64> = writers.iter().map(|writer| writer.counts[0]).collect();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        during(writers, tokio::time::sleep(Duration::from_secs(2))).await;
        let Some((stuck, _)) = writers.iter().zip(&before).find(|(writer, before)| writer.counts[0] <= **before) else {
            break;
        };
        assert!(Instant::now() < deadline, "{fault}: {:?} does not write again", stuck.api);
    }
    for writer in writers {
        writer.check(fault).await;
    }
}

/// Waits until no statement of a request is running. Until then, a lost write may still be executed.
async fn settled(url: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let busy = "select count(*) from pg_stat_activity where backend_type = 'client backend' and state <> 'idle' \
                and pid <> pg_backend_pid()";
    loop {
        if let Ok((owner, connection)) = tokio_postgres::connect(url, NoTls).await {
            tokio::spawn(connection);
            if owner.query_one(busy, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 0) {
                return;
            }
        }
        assert!(Instant::now() < deadline, "statements do not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn pause(random: &mut StdRng, most: u64) -> Duration {
    Duration::from_millis(random.random_range(5..most))
}

fn report(title: &str, faults: &BTreeMap<&str, usize>, writers: &[Writer]) {
    let mut counts = Counts::new();
    for writer in writers {
        let sum = counts.entry(writer.api).or_default();
        (0..3).for_each(|at| sum[at] += writer.counts[at]);
    }
    let mut text = format!("## {title}\n\n| fault | times |\n|---|---|\n");
    for (fault, times) in faults {
        text.push_str(&format!("| {fault} | {times} |\n"));
    }
    if !counts.is_empty() {
        text.push_str("\n| writes over | acknowledged | refused | answer lost |\n|---|---|---|---|\n");
    }
    for (api, [done, refused, unknown]) in counts {
        text.push_str(&format!("| {api:?} | {done} | {refused} | {unknown} |\n"));
    }
    println!("{text}");
    if let Ok(path) = std::env::var("CHAOS_REPORT") {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a report");
        writeln!(file, "{text}").expect("written");
    }
}

/// Starts a server, creates the table and the bucket, and returns the owner's URL and the writers.
async fn started(server: &mut ServerProcess, http: &Client, seed: u64) -> (String, Vec<Writer>) {
    server.serve();
    server.ready(http).await;
    let url = server.database_url();
    let owner = crate::support::cluster::connect(&url).await;
    furnish(&owner, http, &server.base()).await;
    (url, writers(&server.base(), http, seed))
}
