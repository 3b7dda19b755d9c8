//! Continuous archiving and restores to any point in time: rows, and files that existed for less than a second. Covers
//! kills, an unreachable archive, and missing or damaged pieces.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::support::commands::{DEADLINE, House, killed_once, names, request, root};

/// The state at a moment: the row with that number exists, one file per moment is kept, and one exists only then.
struct Moment {
    n: i32,
    at: DateTime<Utc>,
}

fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn log_state(house: &House) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(house.data.join("backups/log.json")).ok()?).ok()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn archived(house: &House, moment: DateTime<Utc>) {
    let reached = || {
        let state = log_state(house)?;
        DateTime::parse_from_rfc3339(state["reached"].as_str()?).ok()
    };
    until("the log is archived", || reached().is_some_and(|reached| reached > moment)).await;
}

/// Writes rows and files. Records a moment during the life of each short-lived file.
async fn work(house: &House, http: &Client, numbers: std::ops::Range<i32>) -> Vec<Moment> {
    let sql = house.sql().await;
    let mut moments = Vec::new();
    for n in numbers {
        sql.execute("insert into public.ledger values ($1)", &[&n]).await.expect("a row");
        for name in ["kept", "passing"] {
            let url = house.url(&format!("/storage/v1/object/b/{name}-{n}"));
            let sent = request(http, Method::POST, url).body(format!("{name} {n}")).send().await.expect("an answer");
            assert_eq!(sent.status(), 200);
        }
        moments.push(Moment { n, at: Utc::now() });
        let url = house.url(&format!("/storage/v1/object/b/passing-{n}"));
        assert_eq!(request(http, Method::DELETE, url).send().await.expect("an answer").status(), 200);
    }
    moments
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    for name in names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).expect("copied");
    }
}

fn pieces(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|name| name.starts_with("ferrobase-log-")).collect()
}

/// Asserts that a restore has brought back the state at this moment.
async fn is_as_of(house: &mut House, http: &Client, moment: &Moment) {
    house.settings.clear();
    house.serve(http).await;
    let sql = house.sql().await;
    let rows = sql.query("select n from public.ledger order by n", &[]).await.expect("rows");
    let rows: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(rows, (0..=moment.n).collect::<Vec<_>>());
    let objects = sql.query("select name from storage.objects", &[]).await.expect("rows");
    let mut objects: Vec<String> = objects.iter().map(|row| row.get(0)).collect();
    let mut expected: Vec<String> = (0..=moment.n).map(|n| format!("kept-{n}")).collect();
    expected.push(format!("passing-{}", moment.n));
    objects.sort();
    expected.sort();
    assert_eq!(objects, expected);
    for name in &objects {
        let answer = request(http, Method::GET, house.url(&format!("/storage/v1/object/b/{name}")));
        let answer = answer.send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{name}");
        assert_eq!(answer.text().await.expect("text"), name.replace('-', " "));
    }
    house.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_stops_at_any_moment_with_the_files_of_that_moment() {
    let root = root();
    let http = Client::new();
    let mut house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    let backups = root.path().join("backups");
    let settings = |every: &str| {
        vec![
            ("FERROBASE_BACKUP_TO", backups.display().to_string()),
            ("FERROBASE_BACKUP_RECIPIENT", recipient.clone()),
            ("FERROBASE_BACKUP_EVERY", "24h".to_owned()),
            ("FERROBASE_BACKUP_LOG_EVERY", every.to_owned()),
        ]
    };
    house.settings = settings("50ms");
    house.serve(&http).await;
    let sql = house.sql().await;
    sql.batch_execute("create table public.ledger (n int primary key)").await.expect("a table");
    let bucket = request(&http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    // The archive that the WAL continues from is made at once.
    let state = house.data.join("backups/state.json");
    let made_in_chain = || {
        let state: Value = serde_json::from_slice(&std::fs::read(&state).unwrap_or_default()).unwrap_or_default();
        state["made"]["chain"].is_string().then_some(state)
    };
    until("an archive is made", || made_in_chain().is_some()).await;
    let chain = log_state(&house).expect("a log")["chain"].clone();
    let before = Utc::now();

    let mut moments = work(&house, &http, 0..12).await;
    // Killed in the middle, the server continues where it was.
    let mut server = house.server.take().expect("it runs");
    server.kill().expect("killed");
    server.wait().expect("gone");
    house.serve(&http).await;
    moments.extend(work(&house, &http, 12..20).await);
    archived(&house, Utc::now()).await;
    // If the archive cannot be written, the database continues, and the missing WAL is archived later.
    let aside = root.path().join("aside");
    std::fs::rename(&backups, &aside).expect("renamed");
    std::fs::write(&backups, "in the way").expect("a file");
    moments.extend(work(&house, &http, 20..24).await);
    std::fs::remove_file(&backups).expect("removed");
    std::fs::rename(&aside, &backups).expect("renamed");
    moments.extend(work(&house, &http, 24..30).await);
    archived(&house, Utc::now()).await;
    assert_eq!(log_state(&house).expect("a log")["chain"], chain, "one chain, whatever happened");
    let (_, told) = house.run(&["doctor"]);
    assert!(told.contains("points in time: up to 20"), "{told}");
    // Short-lived files are removed once they are archived, by the sweep or later.
    house.stop();

    // Before the first archive, and after the end.
    let mut restored = House::new(root.path(), "restored");
    let restore = |house: &House, from: &Path, to: &str| {
        house.run(&["restore", from.to_str().expect("text"), "--identity", "key.txt", "--to", to])
    };
    for (to, reason) in [
        ("2001-01-01T00:00:00Z".to_owned(), "holds no archive from before that time"),
        (text(Utc::now() + chrono::Duration::hours(1)), "the archived log of changes ends at"),
        ("yesterday".to_owned(), "a time such as"),
    ] {
        let (done, told) = restore(&restored, &backups, &to);
        assert!(!done && told.contains(reason), "{to}: {told}");
    }
    // A missing or damaged piece is reported before anything is put in place.
    let last = moments.last().expect("moments").at;
    let damaged = root.path().join("damaged");
    copy(&backups, &damaged);
    // Pieces were written while the archive was made, which are not needed; a name ends in its time.
    let since = before.format("-%Y%m%dT%H%M%S%3fZ").to_string();
    let mut there = pieces(&damaged);
    there.retain(|name| name.rfind('-').is_some_and(|at| name[at..] > *since));
    let victim = damaged.join(&there[there.len() / 2]);
    let bytes = std::fs::read(&victim).expect("a piece");
    std::fs::write(&victim, &bytes[..bytes.len() / 2]).expect("torn");
    let (done, told) = restore(&restored, &damaged, &text(last));
    assert!(!done && told.contains("is damaged"), "{told}");
    std::fs::remove_file(&victim).expect("removed");
    let (done, told) = restore(&restored, &damaged, &text(last));
    assert!(!done && told.contains("is missing before"), "{told}");
    assert!(!restored.data.join("db").exists() && names(&restored.data.join("storage")).is_empty());

    // Each moment is proved aside, with its files; what cannot be reached is not. The first archive may be older than the log.
    let archive = names(&backups).into_iter().rfind(|name| name.starts_with("ferrobase-2")).expect("an archive");
    let verify = |place: &Path, to: &str| {
        let archive = place.join(&archive).display().to_string();
        house.run(&["backup", "verify", &archive, "--identity", "key.txt", "--to", to])
    };
    for moment in [&moments[3], &moments[22]] {
        let (done, told) = verify(&backups, &text(moment.at));
        let files = format!(" rows and {} files, as of {}", moment.n + 2, moment.at.format("%Y-%m-%d %H:%M:%S UTC"));
        assert!(done && told.contains(&files) && told.contains("verified: everything was restored"), "{told}");
    }
    let (done, told) = verify(&backups, "latest");
    assert!(done && told.contains(" rows and 30 files, as of "), "{told}");
    std::fs::write(&victim, &bytes[..bytes.len() / 2]).expect("torn");
    for (place, to, reason) in [
        (&backups, text(Utc::now() + chrono::Duration::hours(1)), "the archived log of changes ends at"),
        (&backups, "2001-01-01T00:00:00Z".to_owned(), "which is later than the requested time"),
        (&damaged, text(last), "is damaged"),
    ] {
        let (done, told) = verify(place, &to);
        assert!(!done && told.contains(reason) && !told.contains("proved:"), "{to}: {told}");
    }
    assert!(!house.data.join("verify").exists());

    // Killed while PostgreSQL recovers; the next restore starts over.
    let (from, to) = (backups.to_str().expect("text"), text(moments[5].at));
    let arguments = ["restore", from, "--identity", "key.txt", "--to", &to];
    let recovering = restored.data.join(".restoring/db/postmaster.pid");
    assert!(killed_once(restored.command(&arguments), || recovering.exists()).await);
    for moment in [&moments[5], &moments[15], &moments[22], &moments[29]] {
        let mut restored = House::new(root.path(), "restored");
        let (done, told) = restore(&restored, &backups, &text(moment.at));
        assert!(done && told.contains("the database as of"), "{told}");
        is_as_of(&mut restored, &http, moment).await;
        drop(restored);
        std::fs::remove_dir_all(root.path().join("restored")).expect("removed");
    }
    restored = House::new(root.path(), "restored");
    let (done, told) = restore(&restored, &backups, "latest");
    assert!(done, "{told}");
    // A restored database archives a history of its own beside the former one's.
    restored.settings = settings("100ms");
    restored.serve(&http).await;
    let count = "select count(*) from public.ledger";
    assert_eq!(restored.sql().await.query_one(count, &[]).await.expect("rows").get::<_, i64>(0), 30);
    until("another chain is begun", || log_state(&restored).is_some_and(|state| state["chain"] != chain)).await;
    assert!(Utc::now() > before);
    // With archiving or all backups disabled, the database keeps no WAL for it.
    for disabled in [&["FERROBASE_BACKUP_LOG_EVERY"][..], &["FERROBASE_BACKUP_LOG_EVERY", "FERROBASE_BACKUP_EVERY"]] {
        restored.stop();
        restored.settings = settings("100ms");
        restored.serve(&http).await;
        until("the log is archived", || log_state(&restored).is_some()).await;
        restored.stop();
        restored.settings.retain(|(name, _)| !disabled.contains(name));
        restored.serve(&http).await;
        let sql = restored.sql().await;
        let deadline = Instant::now() + DEADLINE;
        let slots = "select count(*) from pg_replication_slots where slot_name like 'ferrobase_log%'";
        while sql.query_one(slots, &[]).await.expect("slots").get::<_, i64>(0) > 0 {
            assert!(Instant::now() < deadline, "the slot stays: {disabled:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(log_state(&restored), None, "{disabled:?}");
    }
}

fn settings(backups: &Path, recipient: &str) -> Vec<(&'static str, String)> {
    vec![
        ("FERROBASE_BACKUP_TO", backups.display().to_string()),
        ("FERROBASE_BACKUP_RECIPIENT", recipient.to_owned()),
        ("FERROBASE_BACKUP_EVERY", "24h".to_owned()),
        ("FERROBASE_BACKUP_LOG_EVERY", "50ms".to_owned()),
    ]
}

/// The chain of the last archive that the data folder knows of.
fn chain_of_archive(house: &House) -> Option<String> {
    let state = std::fs::read(house.data.join("backups/state.json")).ok()?;
    let state: Value = serde_json::from_slice(&state).ok()?;
    state["made"]["chain"].as_str().map(ToOwned::to_owned)
}

async fn rows(house: &House) -> Vec<i32> {
    let rows = house.sql().await.query("select n from public.ledger order by n", &[]).await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

/// The chain went on, although its pieces held WAL that the copy does not have: a restore brought back the discarded rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_was_rolled_back_to_a_copy_begins_a_new_chain() {
    let root = root();
    let http = Client::new();
    let mut house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    let backups = root.path().join("backups");
    house.settings = settings(&backups, &recipient);
    house.serve(&http).await;
    let create = "create table public.ledger (n int primary key); insert into public.ledger values (0)";
    house.sql().await.batch_execute(create).await.expect("a table");
    until("an archive is made", || chain_of_archive(&house).is_some()).await;
    archived(&house, Utc::now()).await;
    let first = chain_of_archive(&house);
    house.stop();
    let copy = root.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(&house.data).arg(&copy).status().expect("it runs");
    assert!(copied.success());

    // This history is discarded. It is short: after the copy's start, its own WAL may be longer.
    house.serve(&http).await;
    house.sql().await.batch_execute("insert into public.ledger values (1)").await.expect("a row");
    archived(&house, Utc::now()).await;
    assert_eq!(chain_of_archive(&house), first, "a restart alone changes nothing");
    house.stop();
    std::fs::remove_dir_all(&house.data).expect("removed");
    std::fs::rename(&copy, &house.data).expect("renamed");

    house.serve(&http).await;
    house.sql().await.batch_execute("insert into public.ledger values (2)").await.expect("a row");
    until("an archive of another chain is made", || chain_of_archive(&house) != first).await;
    house.sql().await.batch_execute("insert into public.ledger values (3)").await.expect("a row");
    archived(&house, Utc::now()).await;
    assert_eq!(log_state(&house).expect("a log")["chain"].as_str().map(ToOwned::to_owned), chain_of_archive(&house));
    house.stop();

    let mut restored = House::new(root.path(), "restored");
    let from = backups.to_str().expect("text");
    let (done, told) = restored.run(&["restore", from, "--identity", "key.txt", "--to", "latest"]);
    assert!(done, "{told}");
    restored.serve(&http).await;
    assert_eq!(rows(&restored).await, [0, 2, 3]);
}

/// The replayed WAL changed the passwords, and the restore knew only those of the archive.
#[tokio::test(flavor = "multi_thread")]
async fn moments_before_and_after_a_change_of_passwords_are_restored() {
    let root = root();
    let http = Client::new();
    let mut house = House::new(root.path(), "data");
    let recipient = house.backup_key();
    let backups = root.path().join("backups");
    // A server that was started as root gives up its rights.
    std::fs::create_dir(&backups).expect("a folder");
    std::fs::set_permissions(&backups, std::fs::Permissions::from_mode(0o777)).expect("its mode");
    let (made, keys) = house.run(&["keys", "generate"]);
    assert!(made, "{keys}");
    std::fs::write(root.path().join("keys.env"), keys).expect("written");
    house.settings = settings(&backups, &recipient);
    house.settings.extend([("FERROBASE_DEV", "false".to_owned()), ("FERROBASE_MAIL", "drop".to_owned())]);
    for pair in dotenvy::from_path_iter(root.path().join("keys.env")).expect("a file") {
        let (name, value) = pair.expect("a pair");
        house.settings.push((String::leak(name), value));
    }
    let run = async |house: &House, sql: &str| {
        let url = ferrobase::embedded_pg::logins_of(&house.data).expect("it runs").url;
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("the database");
        tokio::spawn(connection);
        client.batch_execute(sql).await.expect("done");
        Utc::now()
    };
    house.serve(&http).await;
    run(&house, "create table public.ledger (n int primary key)").await;
    until("an archive is made", || chain_of_archive(&house).is_some()).await;
    let first = run(&house, "insert into public.ledger values (0)").await;
    archived(&house, Utc::now()).await;
    let mut moments = vec![text(first)];
    for n in 1..3 {
        let (done, told) = house.run(&["keys", "rotate", "--database"]);
        assert!(done, "{told}");
        house.stop();
        house.serve(&http).await;
        moments.push(text(run(&house, &format!("insert into public.ledger values ({n})")).await));
        archived(&house, Utc::now()).await;
    }
    moments[2] = "latest".to_owned();
    house.stop();
    for (n, moment) in moments.iter().enumerate() {
        let mut restored = House::new(root.path(), &format!("restored-{n}"));
        let from = backups.to_str().expect("text");
        let (done, told) = restored.run(&["restore", from, "--identity", "key.txt", "--to", moment]);
        assert!(done, "{moment}: {told}");
        let left = names(&restored.data).into_iter().filter(|name| name.ends_with(".next")).collect::<Vec<_>>();
        assert_eq!(left, [""; 0]);
        restored.serve(&http).await;
        assert_eq!(rows(&restored).await, (0..=n as i32).collect::<Vec<_>>(), "{moment}");
        restored.stop();
    }
}
