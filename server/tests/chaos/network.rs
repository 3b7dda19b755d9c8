//! Faults of the network to the database.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::writers::writers;
use super::{client, during, furnish, pause, report, setting};
use crate::support::TestApp;
use crate::support::valve::Valve;

/// Networks to the database that are interrupted, slow or silent, chosen by the seed.
#[actix_web::test]
async fn database_network_faults_lose_nothing_acknowledged() {
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6).div_ceil(4), setting("CHAOS_SEED", 7));
    let (app, valve): (TestApp, Valve) = TestApp::behind_valve(&[]).await;
    let http = client();
    let mut random = StdRng::seed_from_u64(seed);
    furnish(&app.owner, &http, &app.base).await;
    let mut writers = writers(&app.base, &http, seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let fault = ["connections cut", "slow connections (30 ms per piece)", "silent connections for seconds"]
            [round as usize % 3];
        *faults.entry(fault).or_default() += 1;
        let pauses = [pause(&mut random, 400), pause(&mut random, 400), pause(&mut random, 400)];
        writers.iter_mut().for_each(|writer| writer.lost_may_be_late = fault.starts_with("silent"));
        let valve = &valve;
        during(&mut writers, async move {
            tokio::time::sleep(pauses[0]).await;
            match round % 3 {
                0 => {
                    for pause in pauses {
                        valve.cut();
                        tokio::time::sleep(pause).await;
                    }
                }
                1 => {
                    valve.slow(Duration::from_millis(30));
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    valve.slow(Duration::ZERO);
                }
                _ => {
                    valve.freeze();
                    tokio::time::sleep(Duration::from_secs(6)).await;
                    valve.thaw();
                }
            }
        })
        .await;
        // Only in this database, because other tests use the same cluster.
        let busy = "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()";
        crate::support::valve::until("statements have ended", async || {
            app.owner.query_one(busy, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 0)
        })
        .await;
        for writer in &mut writers {
            writer.check(&format!("seed {seed}, round {round}, {fault}")).await;
        }
    }
    report(&format!("The network to the database: {rounds} rounds, seed {seed}"), &faults, &writers);
}
