//! Jumps of the server's clock.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::{client, during, report, setting, settled, started};
use crate::support::server_process::ServerProcess;

/// Debian's libfaketime, if installed.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// The server's clock jumps back and forth by hours. Sessions may end, but nothing is lost.
#[actix_web::test]
async fn clock_jumps_lose_nothing() {
    if !Path::new(FAKETIME).exists() {
        println!("libfaketime is not installed (Debian: apt-get install libfaketime): not tried");
        return;
    }
    let (rounds, seed) = (setting("CHAOS_ROUNDS", 6).div_ceil(3), setting("CHAOS_SEED", 7));
    let http = client();
    let mut server = ServerProcess::started_before();
    let clock = server.root.join("clock");
    std::fs::write(&clock, "+0").expect("a clock");
    for (name, value) in [
        ("LD_PRELOAD", FAKETIME.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ] {
        server.settings.push((name.to_owned(), value));
    }
    let (url, mut writers) = started(&mut server, &http, seed).await;
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds {
        let jump = ["+3h", "-3h", "+40s", "-40s", "+30d", "+0"][round as usize % 6];
        *faults.entry("clock jumped").or_default() += 1;
        let clock = clock.clone();
        during(&mut writers, async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            std::fs::write(&clock, jump).expect("a clock");
            tokio::time::sleep(Duration::from_millis(900)).await;
        })
        .await;
        server.ready(&http).await;
        settled(&url).await;
        for writer in &mut writers {
            writer.check(&format!("seed {seed}, round {round}, the clock jumped by {jump}")).await;
        }
    }
    report(&format!("Clocks: {rounds} jumps, seed {seed}"), &faults, &writers);
}
