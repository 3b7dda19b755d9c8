//! Backups of an external database: a dump, its files, verification, and restoring.

use std::path::Path;

use reqwest::{Client, Method};
use serde_json::json;

use crate::support::cluster::connect;
use crate::support::commands::{House, killed_once, names, request, root};

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_an_external_database_is_restored_with_its_files() {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/postgres/client/bin/pg_dump");
    if !installed.exists() {
        eprintln!("not tried: there is no pg_dump (just pg-tools)");
        return;
    }
    let root = root();
    let http = Client::new();
    let mut elsewhere = House::new(root.path(), "elsewhere");
    elsewhere.serve(&http).await;
    let sql = elsewhere.sql().await;
    sql.batch_execute(
        "create table public.ledger as select n, md5(n::text) noise from generate_series(1, 50000) n;
         create function functions.mine() returns text language sql return 'mine';
         create table public.notices (queued bigint default ferrobase.send_mail('a@x.example', 's', 't', 'h'));
         create role of_the_project nologin; grant select on public.ledger to of_the_project, anon",
    )
    .await
    .expect("a table");
    let bucket = request(&http, Method::POST, elsewhere.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    let sent = request(&http, Method::POST, elsewhere.url("/storage/v1/object/b/letter")).body("a letter");
    assert_eq!(sent.send().await.expect("an answer").status(), 200);

    let url = |name: &str| format!("postgresql://supabase_admin:postgres@127.0.0.1:{}/{name}", elsewhere.ports[1]);
    let mut house = House::new(root.path(), "house");
    let recipient = house.backup_key();
    let of = |database: &str, files: &Path| {
        vec![("DATABASE_URL", url(database)), ("FERROBASE_STORAGE_DIR", files.display().to_string())]
    };
    house.settings = of("postgres", &elsewhere.data.join("storage"));
    let backup = ["backup", "--to", "dumps", "--recipient", &recipient];
    let dumps = root.path().join("dumps");
    assert!(killed_once(house.command(&backup), || !names(&dumps).is_empty()).await);
    assert!(names(&dumps).iter().all(|name| name.ends_with(".partial")));
    // A program that is too old, or that fails.
    house.settings.push(("FERROBASE_PG_TOOLS", root.path().display().to_string()));
    let (done, text) = house.run(&backup);
    assert!(!done && text.contains("pg_dump of PostgreSQL"), "{text}");
    std::fs::write(root.path().join("pg_dump"), "#!/bin/sh\n[ \"$1\" = --version ] && echo 'pg_dump (PostgreSQL) 99' || { echo half; echo 'pg_dump: error: no more' >&2; exit 1; }\n").expect("a program");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.path().join("pg_dump"), executable).expect("its mode");
    let (done, text) = house.run(&backup);
    assert!(!done && text.contains("pg_dump failed: pg_dump: error: no more"), "{text}");
    assert_eq!(names(&dumps), [""; 0], "a partial dump is not kept");
    house.settings.pop();
    let (done, text) = house.run(&backup);
    assert!(done && text.contains("it is a dump") && text.contains("1 files"), "{text}");
    let archive = text.split(": ").next().expect("a name").to_owned();
    let (done, text) = house.run(&["backup", "verify", &archive, "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");

    let (done, text) = house.run(&["backup", "verify", &archive, "--identity", "key.txt", "--to", "latest"]);
    assert!(!done && text.contains("only the database's provider"), "{text}");

    // Each refused for its reason.
    let restore = |house: &House, more: &[&str]| {
        house.run(&[&["restore", archive.as_str(), "--identity", "key.txt"], more].concat())
    };
    let (done, text) = restore(&house, &[]);
    assert!(!done && text.contains("database already has"), "{text}");
    let (done, text) = restore(&house, &["--to", "latest"]);
    assert!(!done && text.contains("only its provider"), "{text}");
    house.settings.clear();
    let (done, text) = restore(&house, &[]);
    assert!(!done && text.contains("set DATABASE_URL"), "{text}");
    let (done, text) = elsewhere.run(&backup);
    assert!(done, "{text}");
    let copy = text.split(": ").next().expect("a name").to_owned();
    sql.batch_execute("create database other").await.expect("a database");
    let files = root.path().join("files");
    house.settings = of("other", &files);
    let (done, text) = house.run(&["restore", &copy, "--identity", "key.txt"]);
    assert!(!done && text.contains("is a copy of the embedded PostgreSQL's files"), "{text}");

    // A restore that fails half-way can be tried again.
    let failing = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'pg_restore (PostgreSQL) 99' || { echo 'pg_restore: error: no extension' >&2; exit 1; }\n";
    std::fs::write(root.path().join("pg_restore"), failing).expect("a program");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.path().join("pg_restore"), executable).expect("its mode");
    house.settings.push(("FERROBASE_PG_TOOLS", root.path().display().to_string()));
    let (done, text) = restore(&house, &[]);
    assert!(!done && text.contains("pg_restore failed: pg_restore: error: no extension"), "{text}");
    house.settings.pop();
    let (done, text) = restore(&house, &[]);
    assert!(done && text.contains("and 1 files to"), "{text}");
    assert_eq!(names(&files), ["b"], "nothing marks an unfinished restore");
    let other = connect(&url("other")).await;
    let count = "select count(*) from public.ledger where noise = md5(n::text)";
    assert_eq!(other.query_one(count, &[]).await.expect("rows").get::<_, i64>(0), 50_000);
    let right = "select has_table_privilege('of_the_project', 'public.ledger', 'select')";
    assert!(other.query_one(right, &[]).await.expect("a right").get::<_, bool>(0));
    // A dump has neither the schema nor the function that these need.
    let needed = "select functions.mine(), (select count(*) from information_schema.columns where column_default like '%send_mail%')";
    let row = other.query_one(needed, &[]).await.expect("a project's own");
    assert_eq!((row.get(0), row.get::<_, i64>(1)), ("mine", 1));
    let version = "select version from storage.objects where name = 'letter'";
    let version: String = other.query_one(version, &[]).await.expect("a row").get(0);
    let file = files.join("b/letter").join(version);
    assert_eq!(std::fs::read_to_string(file).expect("its file"), "a letter");
    let (done, text) = restore(&house, &["--replace"]);
    assert!(!done && text.contains("create an empty one"), "{text}");
}
