//! Kills during first starts and migrations.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::{client, furnish, pause, report, setting};
use crate::support::server_process::ServerProcess;

/// An interrupted first start is continued by the next one, and so are migrations.
#[actix_web::test]
async fn interrupted_first_starts_and_migrations_are_continued() {
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6).div_ceil(6), setting("CHAOS_SEED", 7));
    let http = client();
    let mut random = StdRng::seed_from_u64(seed);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let mut server = ServerProcess::new();
        let kills = random.random_range(1..4);
        for _ in 0..kills {
            server.serve();
            tokio::time::sleep(pause(&mut random, 3000)).await;
            server.kill();
            if random.random_ratio(1, 2) {
                server.kill_database();
            }
            *faults.entry("first start killed").or_default() += 1;
        }
        server.serve();
        server.ready(&http).await;
        let owner = crate::support::cluster::connect(&server.database_url()).await;
        furnish(&owner, &http, &server.base()).await;
        // Twenty files that each count themselves, with kills in between.
        let folder = server.root.join("project");
        std::fs::create_dir_all(&folder).expect("a folder");
        owner
            .batch_execute("create table public.steps (n int, at timestamptz default clock_timestamp())")
            .await
            .expect("a table");
        for n in 1..=20 {
            let text = format!(
                "insert into public.steps (n) values ({n}); select pg_sleep(0.03); create table public.of_step_{n} (a int);"
            );
            std::fs::write(folder.join(format!("20260101{n:06}_step.sql")), text).expect("written");
        }
        let dir = folder.display().to_string();
        for _ in 0..kills {
            let mut child = server
                .command(&["migrate", "--dir", &dir])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("it runs");
            tokio::time::sleep(pause(&mut random, 700)).await;
            child.kill().expect("killed");
            child.wait().expect("gone");
            *faults.entry("migrations killed").or_default() += 1;
        }
        let done = server.command(&["migrate", "--dir", &dir]).output().expect("it runs");
        assert!(done.status.success(), "seed {seed}, round {round}: {}", String::from_utf8_lossy(&done.stderr));
        let row = owner.query_one("select count(*), count(distinct n) from public.steps", &[]).await.expect("steps");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (20, 20), "each file ran once");
    }
    report(&format!("First starts and migrations: {rounds} servers, seed {seed}"), &faults, &[]);
}
