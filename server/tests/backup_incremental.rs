//! Incremental backups: each holds what has changed since the one before, and a chain of them restores as one, also from a bucket and to
//! moments after it. Scheduled backups of an external database.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use reqwest::{Client, Method};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::commands::{DEADLINE, House, killed_once, names, request, root, store_of_backups, to_store};

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/postgres/client/bin")
}

pub fn has_programs() -> bool {
    let installed = programs().join("pg_combinebackup");
    if !installed.exists() {
        eprintln!("not tried: there is no pg_combinebackup (just pg-tools)");
    }
    installed.exists()
}

async fn put(house: &House, http: &Client, name: &str) {
    let sent = request(http, Method::POST, house.url(&format!("/storage/v1/object/b/{name}"))).body(name.to_owned());
    assert_eq!(sent.send().await.expect("an answer").status(), 200);
}

async fn until(what: &str, is_so: &dyn Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The path that `backup` has printed.
fn made(text: &str) -> PathBuf {
    PathBuf::from(text.split(": ").next().expect("a path"))
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Serves what was restored: the numbers of the rows, and the objects that can be read.
async fn holds(house: &mut House, http: &Client) -> (Vec<i32>, Vec<String>) {
    house.serve(http).await;
    let sql = house.sql().await;
    let rows = sql.query("select n from public.ledger order by n", &[]).await.expect("rows");
    let objects = sql.query("select name from storage.objects order by name", &[]).await.expect("rows");
    let objects: Vec<String> = objects.iter().map(|row| row.get(0)).collect();
    for name in &objects {
        let answer = request(http, Method::GET, house.url(&format!("/storage/v1/object/b/{name}"))).send().await;
        assert_eq!(&answer.expect("an answer").text().await.expect("text"), name);
    }
    drop(sql);
    house.stop();
    (rows.iter().map(|row| row.get(0)).collect(), objects)
}

/// Tells an incremental backup to stop while its `pg_basebackup` hangs. Yields whether it ended that, too.
async fn is_stopped_while_it_hangs(house: &House, root: &Path) -> bool {
    let (folder, begun) = (root.join("hanging"), root.join("hangs"));
    std::fs::create_dir(&folder).expect("a folder");
    let other = "pg_combinebackup";
    std::os::unix::fs::symlink(programs().join(other), folder.join(other)).expect("linked");
    let program = folder.join("pg_basebackup");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec '{}' --version\necho $$ > '{}'\nexec sleep 3600\n",
        programs().join("pg_basebackup").display(),
        begun.display()
    );
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let mut command = house.command(&["backup", "--incremental"]);
    let mut child = command
        .env("FERROBASE_PG_TOOLS", &folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let hanging = || std::fs::read_to_string(&begun).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    until("it hangs", &|| hanging().is_some()).await;
    kill_process(Pid::from_child(&child), Signal::TERM).expect("told to stop");
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().expect("asked").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("killed");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let hanging = hanging().expect("a number");
    // If it is left, it ends with the test.
    kill_process(hanging, Signal::KILL).is_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_incremental_backups_restores_each_of_its_states() {
    if !has_programs() {
        return;
    }
    let (root, http) = (root(), Client::new());
    let mut house = House::started_before(root.path(), "data");
    let backups = root.path().join("backups");
    house.backs_up_to(&backups);
    house.serve(&http).await;
    let sql = house.sql().await;
    sql.batch_execute(
        "create table public.ledger (n int primary key);
         create table public.noise as select n, extensions.gen_random_bytes(1024) noise from generate_series(1, 8000) n;
         insert into public.ledger values (1)",
    )
    .await
    .expect("tables");
    let bucket = request(&http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    put(&house, &http, "first").await;

    // There is none to continue from, so it is a full one.
    let (done, text) = house.run(&["backup", "--incremental"]);
    assert!(done && !text.contains("the changes of the database"), "{text}");
    let full = made(&text);
    sql.batch_execute("insert into public.ledger values (2); update public.noise set n = -n where n < 20")
        .await
        .expect("a row");
    put(&house, &http, "second").await;
    // Stopped or killed, it leaves nothing, and the next one continues from the full one all the same.
    let partial = || names(&backups).iter().any(|name| name.ends_with(".partial"));
    assert!(is_stopped_while_it_hangs(&house, root.path()).await && !partial());
    assert!(killed_once(house.command(&["backup", "--incremental"]), partial).await);
    let (done, text) = house.run(&["backup", "--incremental"]);
    assert!(done && text.contains("the changes of the database and"), "{text}");
    let second = made(&text);
    assert!(file_name(&second).contains("-after-"), "{text}");
    let size = |path: &Path| std::fs::metadata(path).expect("an archive").len();
    // Both hold the WAL of their time; the noise of 8 MB is not copied again.
    assert!(size(&second) + (7 << 20) < size(&full), "{} after {}", size(&second), size(&full));

    sql.batch_execute("insert into public.ledger values (3); delete from public.ledger where n = 1")
        .await
        .expect("rows");
    let gone = request(&http, Method::DELETE, house.url("/storage/v1/object/b/first")).send().await.expect("an answer");
    assert_eq!(gone.status(), 200);
    put(&house, &http, "third").await;
    drop(sql);
    // The chain survives a restart.
    house.stop();
    let (done, text) = house.run(&["backup", "--incremental"]);
    assert!(done && text.contains("the changes of the database"), "{text}");
    let third = made(&text);

    let given = |path: &Path| path.display().to_string();
    let (done, text) = house.run(&["backup", "verify", &given(&third), "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
    let states = [
        (&full, vec![1], vec!["first"]),
        (&second, vec![1, 2], vec!["first", "second"]),
        (&third, vec![2, 3], vec!["second", "third"]),
    ];
    for (number, (archive, rows, objects)) in states.into_iter().enumerate() {
        let mut restored = House::new(root.path(), &format!("restored-{number}"));
        let (done, text) = restored.run(&["restore", &given(archive), "--identity", "key.txt"]);
        assert!(done, "{text}");
        assert_eq!(
            names(&restored.data).iter().filter(|name| name.starts_with('.')).count(),
            0,
            "nothing is left behind"
        );
        assert_eq!(holds(&mut restored, &http).await, (rows, objects.into_iter().map(str::to_owned).collect()));
    }

    // What cannot be put together is refused before anything is written.
    let other = House::new(root.path(), "other");
    let aside = root.path().join("aside");
    std::fs::rename(&second, &aside).expect("moved");
    let (done, text) = other.run(&["restore", &given(&third), "--identity", "key.txt"]);
    assert!(!done && text.contains("is missing in the same place"), "{text}");
    let (done, text) = other.run(&["restore", &given(&aside), "--identity", "key.txt"]);
    assert!(!done && text.contains("which its name must state"), "{text}");
    std::fs::rename(&aside, &second).expect("moved back");
    let mut bare = House::new(root.path(), "bare");
    bare.settings = vec![("FERROBASE_PG_TOOLS", given(&root.path().join("nowhere")))];
    let (done, text) = bare.run(&["restore", &given(&third), "--identity", "key.txt"]);
    assert!(!done && text.contains("pg_combinebackup of PostgreSQL 18"), "{text}");
    assert!(!other.data.join("db").exists() && !bare.data.join("db").exists());
    house.settings.push(("FERROBASE_PG_TOOLS", given(&root.path().join("nowhere"))));
    let (done, text) = house.run(&["backup", "--incremental"]);
    assert!(
        !done && text.contains("pg_combinebackup of PostgreSQL 18"),
        "never one that cannot be restored here: {text}"
    );
    house.settings.pop();

    // One that is kept keeps those that it continues from.
    let (done, text) = house.run(&["backup", "--incremental", "--keep", "1"]);
    assert!(done && !text.contains("removed"), "{text}");
    assert_eq!(names(&backups).iter().filter(|name| name.ends_with(".age")).count(), 4);
    // A database that went back is another history: the next backup is a full one, and good.
    let (done, text) = house.run(&["restore", &given(&second), "--identity", "key.txt", "--replace"]);
    assert!(done, "{text}");
    house.serve(&http).await;
    house.sql().await.batch_execute("insert into public.ledger values (7)").await.expect("a row");
    let (done, text) = house.run(&["backup", "--incremental"]);
    assert!(done, "{text}");
    let (done, text) = house.run(&["backup", "verify", &given(&made(&text)), "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
    house.stop();
}

/// Starts a command that writes to this log.
fn spawned(house: &House, arguments: &[&str], log: &Path) -> Child {
    let out = std::fs::File::create(log).expect("a log");
    let mut command = house.command(arguments);
    command.stdout(out.try_clone().expect("the same file")).stderr(out).spawn().expect("it runs")
}

/// The second one chose the archive to continue before it waited. Meanwhile the first one replaced that archive's list, or removed the
/// archive.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_waits_for_another_continues_it() {
    if !has_programs() {
        return;
    }
    let (root, http) = (root(), Client::new());
    let mut house = House::started_before(root.path(), "data");
    let backups = root.path().join("backups");
    house.backs_up_to(&backups);
    house.serve(&http).await;
    house.sql().await.batch_execute("create table public.ledger (n int primary key)").await.expect("a table");
    let bucket = request(&http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    put(&house, &http, "file").await;
    let archives = || names(&backups).into_iter().filter(|name| name.ends_with(".age")).collect::<Vec<_>>();
    let (done, text) = house.run(&["backup", "--incremental"]);
    assert!(done, "{text}");
    // For the commands: incremental ones follow a full one.
    house.settings.push(("FERROBASE_BACKUP_EVERY", "24h".to_owned()));
    house.settings.push(("FERROBASE_BACKUP_FULL_EVERY", "168h".to_owned()));
    let incremental = &["backup", "--incremental"][..];
    for (round, (first, second, kept)) in [
        (&["backup", "--keep", "1"][..], &["backup", "--incremental", "--keep", "1"][..], 2),
        (incremental, incremental, 4),
    ]
    .into_iter()
    .enumerate()
    {
        let held = ferrobase::storage::hold_removals(&house.data.join("storage")).expect("held");
        assert!(held.is_some(), "there is a folder of files");
        let logs = ["first", "second"].map(|name| root.path().join(format!("{name}-{round}")));
        let partial = || names(&backups).iter().filter(|name| name.ends_with(".partial")).count();
        let first = spawned(&house, first, &logs[0]);
        until("the first waits for the files", &|| partial() == 1).await;
        let second = spawned(&house, second, &logs[1]);
        // Time enough to begin an archive, too, if it did not wait.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(partial(), 1, "the second begins once the first has ended");
        house.sql().await.execute("insert into public.ledger values ($1)", &[&(round as i32)]).await.expect("a row");
        drop(held);
        for (mut child, log) in [first, second].into_iter().zip(&logs) {
            let ended = tokio::task::spawn_blocking(move || child.wait().expect("it ends")).await.expect("no panic");
            assert!(ended.success(), "{}", std::fs::read_to_string(log).expect("a log"));
        }
        let found = archives();
        assert_eq!(found.len(), kept, "{found:?}");
        let last = backups.join(&found[kept - 1]).display().to_string();
        let (done, text) = house.run(&["backup", "verify", &last, "--identity", "key.txt"]);
        assert!(done && text.contains("verified: everything was restored"), "{round}: {text}");
    }
    house.stop();
}

/// Both the chain and the log that continues its last archive are in a bucket.
#[tokio::test(flavor = "multi_thread")]
async fn moments_after_an_incremental_backup_in_a_bucket_are_restored() {
    if !has_programs() {
        return;
    }
    let (root, http) = (root(), Client::new());
    let store = store_of_backups(root.path(), &http).await;
    let mut house = House::started_before(root.path(), "data");
    house.settings = to_store(&store, &house.backup_key());
    house.settings.extend([
        ("FERROBASE_BACKUP_EVERY", "24h".to_owned()),
        ("FERROBASE_BACKUP_FULL_EVERY", "168h".to_owned()),
        ("FERROBASE_BACKUP_LOG_EVERY", "100ms".to_owned()),
    ]);
    house.serve(&http).await;
    let sql = house.sql().await;
    sql.batch_execute("create table public.ledger (n int primary key)").await.expect("a table");
    let bucket = request(&http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    let lying = store.data.join("storage/backups/of/house");
    let archives = || names(&lying).into_iter().filter(|name| name.starts_with("ferrobase-2")).collect::<Vec<_>>();
    let state = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(house.data.join("backups").join(name)).unwrap_or_default())
            .unwrap_or_default()
    };
    // An archive that was made before the log was followed is continued by another one at once.
    until("the log's archive is made", &|| {
        let chain = &state("log.json")["chain"];
        chain.is_string() && state("state.json")["made"]["chain"] == *chain
    })
    .await;
    let begun = archives().len();
    let write = async |n: i32| {
        sql.execute("insert into public.ledger values ($1)", &[&n]).await.expect("a row");
        put(&house, &http, &format!("file-{n}")).await;
        Utc::now()
    };
    write(0).await;
    for n in 1..3 {
        let (done, text) = house.run(&["backup", "--incremental"]);
        assert!(done && text.contains("the changes of the database and"), "{text}");
        write(n).await;
    }
    let last = archives().pop().expect("archives");
    assert!(archives().len() == begun + 2 && last.contains("-after-"), "{:?}", archives());
    let between = write(3).await;
    write(4).await;
    let sent = Utc::now();
    until("the log is archived", &|| {
        let reached = state("log.json")["reached"].as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        reached.is_some_and(|reached| reached > sent)
    })
    .await;
    drop(sql);
    house.stop();

    let place = "s3://backups/of/house";
    let between = between.to_rfc3339_opts(SecondsFormat::Micros, true);
    let named = format!("{place}/{last}");
    for (to, files) in [(between.as_str(), 4), ("latest", 5)] {
        let (done, text) = house.run(&["backup", "verify", &named, "--identity", "key.txt", "--to", to]);
        assert!(done && text.contains(&format!("and {files} files, as of ")), "{to}: {text}");
        assert!(text.contains("verified: everything was restored"), "{to}: {text}");
    }
    // The last archive before the moment is found by itself.
    for (number, (archive, to, count)) in
        [(place, between.as_str(), 4), (place, "latest", 5), (named.as_str(), between.as_str(), 4)]
            .into_iter()
            .enumerate()
    {
        let mut restored = House::new(root.path(), &format!("restored-{number}"));
        restored.settings.clone_from(&house.settings);
        let (done, text) = restored.run(&["restore", archive, "--identity", "key.txt", "--to", to]);
        assert!(done, "{text}");
        restored.settings.clear();
        let files = (0..count).map(|n| format!("file-{n}")).collect();
        assert_eq!(holds(&mut restored, &http).await, ((0..count).collect(), files), "{archive} {to}");
    }
    // Without the archive that it continues, the last one is useless, and the error says so.
    let second = format!("/storage/v1/object/backups/of/house/{}", archives()[begun]);
    let removed = request(&http, Method::DELETE, store.url(&second)).send().await.expect("an answer");
    assert_eq!(removed.status(), 200);
    let mut other = House::new(root.path(), "other");
    other.settings.clone_from(&house.settings);
    let (done, text) = other.run(&["restore", &named, "--identity", "key.txt", "--to", "latest"]);
    assert!(!done && text.contains("is missing in the same place") && !other.data.join("db").exists(), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_backups_are_incremental_between_full_ones_and_dumps_of_an_external_database() {
    if !has_programs() {
        return;
    }
    let (root, http) = (root(), Client::new());
    let mut house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    let schedule = |place: &Path| {
        vec![
            ("FERROBASE_BACKUP_TO", place.display().to_string()),
            ("FERROBASE_BACKUP_RECIPIENT", recipient.clone()),
            ("FERROBASE_BACKUP_EVERY", "1s".to_owned()),
        ]
    };
    let (own, dumps) = (root.path().join("own"), root.path().join("dumps"));
    house.settings = schedule(&own);
    house.settings.push(("FERROBASE_BACKUP_FULL_EVERY", "1h".to_owned()));
    house.serve(&http).await;
    let archives = |place: &Path| names(place).into_iter().filter(|name| name.ends_with(".age")).collect::<Vec<_>>();
    until("two incremental ones follow", &|| archives(&own).len() >= 3).await;
    let made = archives(&own);
    assert!(!made[0].contains("-after-") && made[1..].iter().all(|name| name.contains("-after-")), "{made:?}");
    let last = own.join(&made[2]).display().to_string();
    let (done, text) = house.run(&["backup", "verify", &last, "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
    // Those of a daily schedule give way to requests.
    house.stop();
    for full_every in [Some("168h"), None] {
        let state = house.data.join("backups/state.json");
        let mut known: Value = serde_json::from_slice(&std::fs::read(&state).expect("a state")).expect("JSON");
        let long_ago = own.join("ferrobase-20260101T000000000Z.tar.gz.age");
        known["made"]["archive"] = json!(long_ago.display().to_string());
        std::fs::write(&state, known.to_string()).expect("written");
        // One that is made elsewhere by hand does not put it off. (The next one could not continue it.)
        if full_every.is_none() {
            let by_hand = root.path().join("by-hand").display().to_string();
            let (done, text) = house.run(&["backup", "--to", &by_hand]);
            assert!(done, "{text}");
        }
        let before = archives(&own);
        house.settings = schedule(&own);
        house.settings[2].1 = "24h".to_owned();
        house.settings.extend(full_every.map(|every| ("FERROBASE_BACKUP_FULL_EVERY", every.to_owned())));
        house.serve(&http).await;
        until("the one that is due is made", &|| archives(&own).len() > before.len()).await;
        let made: Vec<_> = archives(&own).into_iter().filter(|name| !before.contains(name)).collect();
        assert!(made.len() == 1 && made[0].contains("-after-") == full_every.is_some(), "{made:?}");
        let (done, text) =
            house.run(&["backup", "verify", &own.join(&made[0]).display().to_string(), "--identity", "key.txt"]);
        assert!(done && text.contains("verified: everything was restored"), "{text}");
        // Nor does the metric take it for one of the schedule's.
        if full_every.is_none() {
            let figures = async || {
                let answer = http.get(format!("http://127.0.0.1:{}/metrics", house.ports[3])).send().await;
                let text = answer.expect("an answer").text().await.expect("metrics");
                let is_made = |line: &&str| line.starts_with("ferrobase_backup_last_made_timestamp_seconds ");
                text.lines().find(is_made).expect("the last one made").to_owned()
            };
            let known = || {
                let state = std::fs::read(house.data.join("backups/state.json")).expect("a state");
                let state: Value = serde_json::from_slice(&state).expect("JSON");
                let made_at = state["made"]["made_at"].as_str().expect("a time").parse::<DateTime<Utc>>();
                format!("ferrobase_backup_last_made_timestamp_seconds {}", made_at.expect("a time").timestamp())
            };
            let of_schedule = known();
            assert_eq!(figures().await, of_schedule);
            let (done, text) = house.run(&["backup", "--to", &root.path().join("by-hand").display().to_string()]);
            assert!(done && known() != of_schedule, "{text}");
            assert_eq!(figures().await, of_schedule);
        }
        house.stop();
    }
    house.settings.clear();
    house.serve(&http).await;

    // Two instances on one external database make each backup once.
    let url = format!("postgresql://supabase_admin:postgres@127.0.0.1:{}/postgres", house.ports[1]);
    let files = house.data.join("storage").display().to_string();
    let mut instances = ["one", "two"].map(|name| House::new(root.path(), name));
    for instance in &mut instances {
        instance.settings = schedule(&dumps);
        instance.settings[2].1 = "5s".to_owned();
        instance.settings.push(("DATABASE_URL", url.clone()));
        instance.settings.push(("FERROBASE_STORAGE_DIR", files.clone()));
    }
    // One that was made while the clock was ahead had them follow one another without a pause.
    std::fs::create_dir(&dumps).expect("a folder");
    let ahead =
        (Utc::now() + Duration::from_secs(2 * 60 * 60)).format("ferrobase-%Y%m%dT%H%M%S%3fZ.tar.gz.age").to_string();
    std::fs::write(dumps.join(&ahead), "an archive").expect("written");
    // One of a machine whose clock is a little ahead was just made.
    let soon = (Utc::now() + Duration::from_secs(15)).format("ferrobase-%Y%m%dT%H%M%S%3fZ.tar.gz.age").to_string();
    std::fs::write(dumps.join(&soon), "an archive").expect("written");
    let [one, two] = &mut instances;
    // A folder that nothing can be locked in prevents no dump.
    std::fs::create_dir_all(one.data.join("backups/turn.lock")).expect("a folder");
    one.serve(&http).await;
    two.serve(&http).await;
    let made = || archives(&dumps).into_iter().filter(|name| *name != ahead).collect::<Vec<_>>();
    until("dumps are made", &|| made().len() >= 4).await;
    assert_eq!(made()[0], soon);
    let begun: Vec<_> = made().iter().map(|name| name[10..28].to_owned()).collect();
    let times: Vec<_> = begun
        .iter()
        .map(|text| chrono::NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S%3f").expect("a time"))
        .collect();
    for pair in times.windows(2) {
        let apart = (pair[1] - pair[0]).num_milliseconds();
        assert!(apart >= 4500, "{apart} ms apart: {begun:?}");
    }
    let dump = dumps.join(&made()[1]).display().to_string();
    let (done, text) = one.run(&["backup", "verify", &dump, "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
    two.stop();
    let before = made().len();
    until("one makes a dump without a turn", &|| made().len() > before).await;
    let (done, text) = one.run(&["backup"]);
    assert!(done && text.contains("it is a dump"), "{text}");
    one.stop();
    house.stop();
}
