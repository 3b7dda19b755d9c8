//! Kills and stalls of server, PostgreSQL and single backends.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rustix::process::{Signal, kill_process};

use super::{client, during, pause, report, setting, settled, started};
use crate::support::server_process::ServerProcess;

/// Kills and stalls, one per round, chosen by the seed.
#[actix_web::test]
async fn kills_and_stalls_lose_nothing_acknowledged() {
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6), setting("CHAOS_SEED", 7));
    let http = client();
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = ServerProcess::started_before();
    let (url, mut writers) = started(&mut server, &http, seed).await;
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let fault = match round % 6 {
            0 => "server killed",
            1 => "PostgreSQL killed",
            2 => "both killed",
            3 => "one backend killed",
            4 => "both killed, and again while they start",
            // Stalls take longer than the other faults; in between, one kills a backend.
            _ if round % 12 == 5 => "PostgreSQL stopped for seconds (SIGSTOP)",
            _ => "server stopped for a second (SIGSTOP)",
        };
        *faults.entry(fault).or_default() += 1;
        let until = pause(&mut random, 500);
        let again = pause(&mut random, 1500);
        writers.iter_mut().for_each(|writer| writer.lost_may_be_late = fault.starts_with("PostgreSQL stopped"));
        let (server, random, http) = (&mut server, &mut random, &http);
        during(&mut writers, async move {
            tokio::time::sleep(until).await;
            match fault {
                "server killed" => server.kill(),
                "PostgreSQL killed" => server.kill_database(),
                "both killed" => {
                    server.kill();
                    server.kill_database();
                }
                "one backend killed" => {
                    let all = server.database_processes();
                    if let Some(pid) = all.get(1..).and_then(|backends| backends.choose(random)) {
                        let _ = kill_process(*pid, Signal::KILL);
                    }
                }
                "both killed, and again while they start" => {
                    server.kill();
                    server.kill_database();
                    server.serve_again().await;
                    tokio::time::sleep(again).await;
                    server.kill();
                    server.kill_database();
                }
                "PostgreSQL stopped for seconds (SIGSTOP)" => {
                    server.signal_database(Signal::STOP);
                    tokio::time::sleep(Duration::from_secs(7)).await;
                    server.signal_database(Signal::CONT);
                }
                _ => {
                    let pid = server.child.as_ref().and_then(|child| rustix::process::Pid::from_raw(child.id() as i32));
                    let pid = pid.expect("a server");
                    kill_process(pid, Signal::STOP).expect("stopped");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    kill_process(pid, Signal::CONT).expect("going on");
                }
            }
            if server.child.is_none() {
                server.serve_again().await;
            }
            server.ready(http).await;
        })
        .await;
        settled(&url).await;
        for writer in &mut writers {
            writer.check(&format!("seed {seed}, round {round}, {fault}")).await;
        }
    }
    assert!(writers.iter().all(|writer| writer.counts[0] > rounds / 4), "every writer has written");
    report(&format!("Kills and stalls: {rounds} rounds, seed {seed}"), &faults, &writers);
}
