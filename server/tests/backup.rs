//! Backups of a running server: acknowledged rows and files are restored and match. Damaged, unreadable or busy targets
//! are refused. A full disk or a kill leaves nothing behind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use reqwest::{Client, Method};
use serde_json::json;

use crate::support::cluster::connect;
use crate::support::commands::{DEADLINE, House, killed_once, names, request, root, store_of_backups, to_store, told};

fn object(name: &str) -> Vec<u8> {
    format!("the content of {name} ").repeat(400).into_bytes()
}

/// Acknowledged writes, and when they were acknowledged.
#[derive(Default)]
struct Ledger {
    rows: Vec<(i32, DateTime<Utc>)>,
    objects: Vec<(String, DateTime<Utc>)>,
}

async fn write_rows(sql: tokio_postgres::Client, stop: Arc<AtomicBool>) -> Ledger {
    let mut ledger = Ledger::default();
    while !stop.load(Ordering::Acquire) {
        let next = ledger.rows.len() as i32;
        sql.execute("insert into public.ledger values ($1)", &[&next]).await.expect("a row");
        ledger.rows.push((next, Utc::now()));
    }
    ledger
}

/// Uploads, replaces and removes objects, so that files disappear while they are copied.
async fn write_objects(http: Client, base: String, stop: Arc<AtomicBool>) -> Ledger {
    let mut ledger = Ledger::default();
    for number in 0.. {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let url = |name: &str| format!("{base}/storage/v1/object/b/{name}");
        let (kept, passing) = (format!("kept-{number}"), format!("passing-{number}"));
        for name in [&kept, &passing] {
            let sent = request(&http, Method::POST, url(name)).body(object(name)).send().await.expect("an answer");
            assert_eq!(sent.status(), 200);
        }
        ledger.objects.push((kept, Utc::now()));
        let replaced = request(&http, Method::PUT, url("replaced")).header("x-upsert", "true");
        assert_eq!(replaced.body(object("replaced")).send().await.expect("an answer").status(), 200);
        let removed = request(&http, Method::DELETE, url(&passing)).send().await.expect("an answer");
        assert_eq!(removed.status(), 200);
    }
    ledger
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_are_restored_with_their_files() {
    let root = root();
    let http = Client::new();
    let mut house = House::started_before(root.path(), "data");
    house.serve(&http).await;
    let sql = house.sql().await;
    // A view without rows yet cannot be counted.
    sql.batch_execute(
        "create table public.ledger (n int primary key); select vault.create_secret('a secret', 's');
         create materialized view public.waiting as select n from public.ledger with no data",
    )
    .await
    .expect("a table, a secret and a view");
    let bucket = request(&http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);

    let backups = root.path().join("backups");
    let (to, key, other) = ("backups", "key.txt", "other.txt");
    let recipient = house.backup_key();
    assert!(house.run(&["backup", "key", other]).0);
    assert!(!house.run(&["backup", "key", key]).0, "a key is never overwritten");
    let (made, text) = house.run(&["backup", "--to", to]);
    assert!(!made && text.contains("FERROBASE_BACKUP_RECIPIENT"), "never without a key: {text}");
    let backup = ["backup", "--to", to, "--recipient", &recipient];

    // A killed backup leaves no archive, and the next one removes its remains.
    let partial = || names(&backups).iter().any(|name| name.ends_with(".partial"));
    assert!(killed_once(house.command(&backup), partial).await);
    assert!(names(&backups).iter().all(|name| name.ends_with(".partial")) && partial());

    let stop = Arc::new(AtomicBool::new(false));
    let rows = tokio::spawn(write_rows(sql, Arc::clone(&stop)));
    let objects = tokio::spawn(write_objects(http.clone(), house.url(""), Arc::clone(&stop)));
    let files = house.data.join("storage/b/replaced");
    let deadline = Instant::now() + DEADLINE;
    while !files.exists() {
        assert!(Instant::now() < deadline, "nobody writes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut command = house.command(&backup);
    let output = tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.expect("a command");
    let (made, text) = told(output);
    stop.store(true, Ordering::Release);
    let (rows, objects) = (rows.await.expect("rows").rows, objects.await.expect("objects").objects);
    assert!(made, "{text}");
    let archives = names(&backups);
    assert!(matches!(archives.as_slice(), [one] if one.ends_with(".tar.gz.age")), "{archives:?}");
    let archive = backups.join(&archives[0]);
    let given = archive.to_str().expect("text");
    assert_eq!(std::fs::metadata(&archive).expect("a file").permissions().mode() & 0o777, 0o600);

    // Each refused for its reason before anything is written.
    let bytes = std::fs::read(&archive).expect("an archive");
    let damaged = |name: &str, bytes: &[u8]| std::fs::write(root.path().join(name), bytes).expect("a file");
    damaged("cut.age", &bytes[..bytes.len() / 2]);
    let mut altered = bytes.clone();
    altered[bytes.len() / 3] ^= 1;
    damaged("altered.age", &altered);
    let mut restored = House::new(root.path(), "restored");
    for (house, arguments, reason) in [
        (&house, [given, "--identity", key], "is running the database"),
        (&restored, [given, "--identity", other], "none of the given private keys"),
        (&restored, ["cut.age", "--identity", key], "is damaged (it is cut off or was altered)"),
        (&restored, ["altered.age", "--identity", key], "is damaged (it was altered)"),
        (&restored, ["key.txt", "--identity", key], "is not encrypted in the age format"),
    ] {
        let (done, text) = house.run(&["restore", arguments[0], arguments[1], arguments[2]]);
        assert!(!done && text.contains(reason), "{arguments:?}: {text}");
    }
    assert!(!restored.data.join("db").exists() && !restored.data.join("storage").exists());

    // Verified while the server runs, and reported to the operator.
    let (_, text) = house.run(&["doctor"]);
    assert!(text.contains("none was ever verified"), "{text}");
    let (done, text) = house.run(&["backup", "verify", given, "--identity", key]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
    assert!(!house.data.join("verify").exists());
    let (_, text) = house.run(&["doctor"]);
    assert!(text.contains("the last verified one is 0 days old"), "{text}");
    let metrics = http.get(format!("http://127.0.0.1:{}/metrics", house.ports[3])).send().await.expect("an answer");
    let metrics = metrics.text().await.expect("text");
    let proved = |line: &str| line.starts_with("ferrobase_backup_last_proved_timestamp_seconds 1");
    assert!(metrics.lines().any(proved), "{metrics}");
    house.stop();
    let (done, text) = house.run(&["restore", given, "--identity", key]);
    assert!(!done && text.contains("--replace"), "{text}");

    // Killed in the middle: no database is in place, and the next restore is not blocked.
    let staging = restored.data.join(".restoring/db/base");
    assert!(killed_once(restored.command(&["restore", given, "--identity", key]), || staging.exists()).await);
    assert!(!restored.data.join("db").exists());
    let (done, text) = restored.run(&["restore", given, "--identity", key]);
    assert!(done, "{text}");
    assert_eq!(names(&restored.data).iter().filter(|name| name.starts_with('.')).count(), 0, "nothing is left behind");

    restored.serve(&http).await;
    let sql = restored.sql().await;
    let secret = "select decrypted_secret from vault.decrypted_secrets where name = 's'";
    assert_eq!(sql.query_one(secret, &[]).await.expect("the vault").get::<_, String>(0), "a secret");
    let made_at = text.split("as of ").nth(1).and_then(|rest| rest.split(" UTC").next()).expect("a time");
    let made_at = chrono::NaiveDateTime::parse_from_str(made_at, "%Y-%m-%d %H:%M:%S").expect("a time").and_utc();
    let there = sql.query("select n from public.ledger", &[]).await.expect("rows");
    let there: Vec<i32> = there.iter().map(|row| row.get(0)).collect();
    let lost: Vec<_> = rows.iter().filter(|(n, at)| *at < made_at && !there.contains(n)).collect();
    assert!(lost.is_empty() && !there.is_empty(), "{lost:?} of {}", rows.len());
    assert!(rows.iter().any(|(_, at)| *at >= made_at), "writers were at work");
    let known = sql.query("select name from storage.objects where bucket_id = 'b'", &[]).await.expect("rows");
    let known: Vec<String> = known.iter().map(|row| row.get(0)).collect();
    let lost: Vec<_> = objects.iter().filter(|(name, at)| *at < made_at && !known.contains(name)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(known.iter().any(|name| name == "replaced"));
    // Every row has its file, including objects replaced or removed during the copy.
    for name in &known {
        let url = restored.url(&format!("/storage/v1/object/b/{name}"));
        let answer = request(&http, Method::GET, url).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{name}");
        assert!(answer.bytes().await.expect("a file") == object(name), "{name}");
    }
    restored.stop();

    // Replaces an existing database, which is moved aside.
    let (done, text) = house.run(&["restore", given, "--identity", key, "--replace"]);
    assert!(done && text.contains("the former database is in"), "{text}");
    let scheduled = root.path().join("scheduled");
    house.settings = vec![
        ("FERROBASE_BACKUP_EVERY", "1s".to_owned()),
        ("FERROBASE_BACKUP_TO", scheduled.display().to_string()),
        ("FERROBASE_BACKUP_RECIPIENT", recipient.clone()),
        ("FERROBASE_BACKUP_KEEP", "2".to_owned()),
    ];
    house.serve(&http).await;
    let count = "select count(*) from public.ledger";
    let count: i64 = house.sql().await.query_one(count, &[]).await.expect("rows").get(0);
    assert_eq!(count, there.len() as i64);

    // Scheduled backups, and no more of them than should be kept.
    let archives = || names(&scheduled).into_iter().filter(|name| name.ends_with(".age")).collect::<Vec<_>>();
    let deadline = Instant::now() + DEADLINE;
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 3 || archives().len() > 2 {
        assert!(Instant::now() < deadline, "{seen:?}");
        seen.extend(archives());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.stop();
    assert!(names(&scheduled).iter().all(|name| name.ends_with(".age")), "one under way is given up");
    house.settings.clear();
    // It has the keys that are set, not those that follow from them: with the same settings nothing differs.
    let again = House::new(root.path(), "again");
    let newest = scheduled.join(archives().pop().expect("an archive"));
    let (done, text) = again.run(&["restore", newest.to_str().expect("text"), "--identity", key]);
    assert!(done && !text.contains("other settings"), "{text}");
    assert!(!again.data.join("restored-keys.env").exists());

    // A file that was changed behind its row is backed up as it is, and found by the verification.
    let versions = house.data.join("storage/b/replaced");
    for version in names(&versions) {
        let file = versions.join(version);
        let mut bytes = std::fs::read(&file).expect("a file");
        bytes[7] ^= 1;
        std::fs::write(&file, bytes).expect("written");
    }
    let (done, text) = house.run(&backup);
    assert!(done, "{text}");
    let rotten = text.split(": ").next().expect("a path").to_owned();
    let (done, text) = house.run(&["backup", "verify", &rotten, "--identity", key]);
    assert!(!done && text.contains("its content differs from its row"), "{text}");
    assert!(!text.contains("proved:"), "{text}");

    full_disk(&house, root.path(), &recipient);
}

/// A disk of 1 MB, mounted only for the command.
fn full_disk(house: &House, root: &Path, recipient: &str) {
    let place = root.join("small");
    std::fs::create_dir(&place).expect("a folder");
    let place = place.to_str().expect("text");
    let mount = |then: &str| {
        let mut command = house.command(&[]);
        let settings: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        command = Command::new("unshare");
        command.args([if rustix::process::geteuid().is_root() { "-m" } else { "-rm" }, "sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size=1m none {place} && {then}"));
        command.envs(settings.into_iter().filter_map(|(name, value)| Some((name, value?))));
        told(command.output().expect("it runs"))
    };
    if !mount("true").0 {
        eprintln!("not tried: nothing may be mounted here");
        return;
    }
    let program = env!("CARGO_BIN_EXE_ferrobase");
    let (_, text) = mount(&format!("{program} backup --to {place} --recipient {recipient}; ls -A {place} | wc -l"));
    assert!(text.contains(&format!("the disk that holds {place} is full")), "{text}");
    assert_eq!(text.lines().next(), Some("0"), "nothing half-written stays: {text}");
}

/// All tables and indexes were locked at once to count rows, for which the memory did not suffice.
#[tokio::test(flavor = "multi_thread")]
async fn many_tables_are_counted_with_few_locks() {
    let (root, http) = (root(), Client::new());
    let mut house = House::started_before(root.path(), "data");
    house.serve(&http).await;
    house
        .sql()
        .await
        .batch_execute(
            "do $$ begin for n in 1..900 loop
               execute format('create table public.many_%s (a int primary key, b int unique, c int unique, d int unique)', n);
             end loop; end $$;
             insert into public.many_7 values (1, 1, 1, 1)",
        )
        .await
        .expect("tables");
    let admin = connect(&format!("postgresql://supabase_admin:postgres@127.0.0.1:{}/postgres", house.ports[1])).await;
    admin.batch_execute("alter system set max_locks_per_transaction = 10").await.expect("set");
    drop(admin);
    house.stop();
    let recipient = house.backup_key();
    let (done, text) = house.run(&["backup", "--to", "backups", "--recipient", &recipient]);
    assert!(done, "{text}");
    let archive = text.split(": ").next().expect("a path").to_owned();
    let (done, text) = house.run(&["backup", "verify", &archive, "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_are_stored_in_a_bucket_and_restored_from_it() {
    let root = root();
    let http = Client::new();
    let store = store_of_backups(root.path(), &http).await;
    let lying = store.data.join("storage/backups/of/house");

    let mut house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    let settings = |house: &mut House| {
        house.settings = to_store(&store, &recipient);
        house.settings.push(("FERROBASE_BACKUP_KEEP", "1".to_owned()));
    };
    settings(&mut house);
    house.settings.push(("FERROBASE_BACKUP_S3_SECRET_ACCESS_KEY", "no secret of theirs".to_owned()));
    let (made, text) = house.run(&["backup"]);
    assert!(!made && text.contains("s3://backups/of/house: "), "{text}");
    assert!(!text.contains("no secret of theirs"), "{text}");
    settings(&mut house);
    house.serve(&http).await;
    let sql = house.sql().await;
    // Large enough to be uploaded in parts.
    sql.batch_execute(
        "create table public.ledger as select n, extensions.gen_random_bytes(1024) noise from generate_series(1, 24000) n",
    )
    .await
    .expect("a table");

    // Killed after a part was stored: no archive exists.
    let parts = store.data.join("storage/.parts");
    assert!(killed_once(house.command(&["backup"]), || !names(&parts).is_empty()).await);
    assert_eq!(names(&lying), [""; 0]);

    let (made, text) = house.run(&["backup"]);
    assert!(made, "{text}");
    let first = text.split(": ").next().expect("a name").to_owned();
    assert!(first.starts_with("s3://backups/of/house/ferrobase-"), "{text}");
    let (done, text) = house.run(&["backup", "verify", &first, "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
    let note = first.replace("s3://backups/of/house/", "") + ".proved";
    assert!(names(&lying).contains(&note), "{:?}", names(&lying));
    let kept_names = || names(&lying).into_iter().filter(|name| *name != note).count();
    let (made, text) = house.run(&["backup"]);
    assert!(made && kept_names() == 2, "the proved one stays: {text}");
    let (made, text) = house.run(&["backup"]);
    assert!(made && text.contains("removed s3://backups/of/house/ferrobase-") && kept_names() == 2, "{text}");
    let left = || names(&house.data).into_iter().filter(|name| name.starts_with(".fetched")).collect::<Vec<_>>();
    assert_eq!(left(), [""; 0]);

    let mut restored = House::new(root.path(), "restored");
    settings(&mut restored);
    let (done, text) = restored.run(&["restore", &first, "--identity", "key.txt"]);
    assert!(done, "{text}");
    let (done, text) = restored.run(&["restore", "s3://backups/of/house/none.tar.gz.age", "--identity", "key.txt"]);
    assert!(!done && text.contains("none.tar.gz.age"), "{text}");
    restored.serve(&http).await;
    let count = "select count(*) from public.ledger where length(noise) = 1024";
    assert_eq!(restored.sql().await.query_one(count, &[]).await.expect("rows").get::<_, i64>(0), 24_000);
}
