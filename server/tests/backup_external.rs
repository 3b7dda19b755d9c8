//! Backups of an external database: a dump, its files, verification, and restoring.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reqwest::{Client, Method};
use serde_json::json;

use crate::support::cluster::connect;
use crate::support::commands::{House, killed_once, names, request, root};
use crate::support::ports::free_port;

/// PostgreSQL's programs, if they are installed.
fn programs() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/postgres/client/bin");
    if folder.join("pg_dump").exists() {
        return Some(folder);
    }
    eprintln!("not tried: there is no pg_dump (just pg-tools)");
    None
}

/// A cluster as `initdb` makes it, with a superuser of this name.
struct Cluster {
    programs: PathBuf,
    data: PathBuf,
    owner: &'static str,
    port: u16,
}

/// PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

impl Cluster {
    fn start(programs: &Path, root: &Path, owner: &'static str) -> Self {
        Self::start_with(programs, root, owner, "")
    }

    /// With further options of the server.
    fn start_with(programs: &Path, root: &Path, owner: &'static str, more: &str) -> Self {
        let folder = root.join(owner);
        std::fs::create_dir(&folder).expect("a folder");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("its owner");
        }
        let cluster = Self { programs: programs.to_owned(), data: folder.join("db"), owner, port: free_port() };
        cluster.run("initdb", &["-U", owner, "-A", "trust", "--no-instructions", "--no-sync"]);
        cluster.serve(more);
        cluster
    }

    fn serve(&self, more: &str) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c wal_level=logical {more}",
            self.port
        );
        let log = self.data.with_file_name("log");
        self.run("pg_ctl", &["-o", &options, "-l", &log.display().to_string(), "-w", "start"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        command.arg("-D").arg(&self.data).args(arguments).current_dir("/").stdout(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        assert!(command.status().expect("it runs").success(), "{program}");
    }

    /// A new folder beside its data.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.data.with_file_name(name);
        std::fs::create_dir(&folder).expect("a folder");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("its owner");
        }
        folder
    }

    fn url(&self) -> String {
        format!("postgresql://{}@127.0.0.1:{}/postgres", self.owner, self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run("pg_ctl", &["-m", "immediate", "-w", "stop"]);
    }
}

/// Regression: roles that are superusers were not made, so nothing of theirs could be restored, not even to verify it; and settings and
/// some memberships of roles were lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_superusers_database_is_restored_to_another_cluster_with_the_settings_of_its_roles() {
    let Some(programs) = programs() else { return };
    let root = root();
    let (from, to) =
        (Cluster::start(&programs, root.path(), "dbadmin"), Cluster::start(&programs, root.path(), "postgres"));
    let mut house = House::new(root.path(), "house");
    house.settings = vec![("DATABASE_URL", from.url())];
    house.serve(&Client::new()).await;
    house.stop();
    let sql = connect(&from.url()).await;
    // The other cluster has no such tablespace.
    let tablespace = format!("create tablespace faster location '{}'", from.folder("faster").display());
    sql.batch_execute(&tablespace).await.expect("a tablespace");
    sql.batch_execute(
        r#"create table public.placed (n int primary key using index tablespace faster) tablespace faster;
           create table public.mine (n int); insert into public.mine values (1);
           create materialized view public.waiting as select n from public.mine with no data;
           create role boss superuser; create table public.of_boss (n int); alter table public.of_boss owner to boss;
           create role idle superuser; grant anon to idle;
           create role "odd Role"; grant boss to "odd Role"; grant pg_monitor to "odd Role" with admin option, inherit false;
           alter role "odd Role" set search_path = "$user", "My, Sch""ema", public;
           alter role "odd Role" set session_preload_libraries = 'nowhere';
           alter role anon set statement_timeout = '7s'; alter role anon in database postgres set work_mem = '5MB';
           alter role dbadmin set default_transaction_read_only = on;
           alter database postgres set app.settings.x = 'it''s 100%I $r$ \ y'; alter database postgres set search_path = '';
           create publication "All of it" for all tables with (publish = 'insert'); comment on publication "All of it" is 'all';
           create function public.noted() returns event_trigger language plpgsql as 'begin null; end';
           create event trigger noted on ddl_command_end when tag in ('CREATE TABLE', 'DROP TABLE') execute function public.noted();
           comment on event trigger noted is 'it''s noted'; alter event trigger noted disable"#,
    )
    .await
    .expect("a project");
    let recipient = house.backup_key();
    let (done, text) = house.run(&["backup", "--to", "dumps", "--recipient", &recipient]);
    assert!(done, "{text}");
    let archive = text.split(": ").next().expect("a name").to_owned();
    let (done, text) = house.run(&["backup", "verify", &archive, "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");

    // A role that is there keeps its own settings, and nobody becomes a member of a superuser.
    let target = connect(&to.url()).await;
    let before = "create role anon; alter role anon set statement_timeout = '1s'; create role boss superuser";
    target.batch_execute(before).await.expect("roles");
    house.settings =
        vec![("DATABASE_URL", to.url()), ("FERROBASE_STORAGE_DIR", root.path().join("files").display().to_string())];
    let (done, text) = house.run(&["restore", &archive, "--identity", "key.txt"]);
    assert!(done && text.matches("was not restored").count() == 1, "{text}");
    assert!(text.contains("role anon: its setting statement_timeout was not restored"), "{text}");
    let facts = "select string_agg(fact, E'\n' order by fact) from (
        select concat_ws(' ', coalesce(r.rolname, 'all'), setdatabase <> 0, setting) as fact
        from pg_db_role_setting s cross join unnest(setconfig) setting left join pg_roles r on r.oid = s.setrole
        where coalesce(r.rolname, '') in ('anon', 'odd Role', 'authenticator', 'dbadmin', '')
        union all
        select concat_ws(' ', m.member::regrole, 'of', m.roleid::regrole, admin_option, inherit_option) from pg_auth_members m
        where m.member::regrole::text in ('dbadmin', '\"odd Role\"', 'authenticator')
        union all
        select concat_ws(' ', evtname, evtevent, evttags, evtenabled, evtfoid::regprocedure::text ~ 'noted', obj_description(oid)) from pg_event_trigger
        union all
        select concat_ws(' ', pubname, puballtables, pubinsert, pubdelete, obj_description(oid, 'pg_publication')) from pg_publication) facts";
    let row = |client: tokio_postgres::Client| async move {
        client.query_one(facts, &[]).await.expect("facts").get::<_, String>(0)
    };
    let expected = row(sql).await.replace("anon f statement_timeout=7s", "anon f statement_timeout=1s");
    let expected: Vec<&str> =
        expected.lines().filter(|line| !line.ends_with("of boss f t") && !line.contains("_preload_")).collect();
    assert_eq!(row(connect(&to.url()).await).await.lines().collect::<Vec<_>>(), expected);
    let bare = "select string_agg(concat_ws(' ', rolname, rolsuper, rolcanlogin, rolcreaterole, rolbypassrls), ', ' order by rolname)
                from pg_roles where rolname in ('dbadmin', 'idle', 'supabase_admin')";
    let bare: String = target.query_one(bare, &[]).await.expect("roles").get(0);
    assert_eq!(bare, "dbadmin f f f f, supabase_admin f f f f");
    let owners = "select string_agg(relowner::regrole::text, ', ' order by relname) from pg_class where relname in ('mine', 'of_boss')";
    let owners: String = target.query_one(owners, &[]).await.expect("tables").get(0);
    assert_eq!(owners, "dbadmin, boss");
    drop((from, to));
}

/// It was verified, and nobody said what a server needs to restore it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_too_few_locks_for_a_dump_is_told_how_many_it_needs() {
    let Some(programs) = programs() else { return };
    let root = root();
    let from = Cluster::start(&programs, root.path(), "dbadmin");
    let small = "-c max_connections=20 -c max_worker_processes=0 -c max_wal_senders=0 -c wal_level=minimal";
    let to =
        Cluster::start_with(&programs, root.path(), "postgres", &format!("{small} -c max_locks_per_transaction=10"));
    connect(&from.url())
        .await
        .batch_execute(
            "do $$ begin for n in 1..700 loop
               execute format('create table public.many_%s (a serial primary key, b text unique, c int unique)', n);
             end loop; end $$",
        )
        .await
        .expect("tables");
    let mut house = House::new(root.path(), "house");
    house.settings = vec![("DATABASE_URL", from.url())];
    let recipient = house.backup_key();
    let (done, text) = house.run(&["backup", "--to", "dumps", "--recipient", &recipient]);
    assert!(done, "{text}");
    let archive = text.split(": ").next().expect("a name").to_owned();
    house.settings =
        vec![("DATABASE_URL", to.url()), ("FERROBASE_STORAGE_DIR", root.path().join("files").display().to_string())];
    let (done, text) = house.run(&["restore", &archive, "--identity", "key.txt"]);
    let needed = text.split("max_locks_per_transaction = ").nth(1).and_then(|rest| rest.split('\'').next());
    let needed: i64 = needed.and_then(|number| number.parse().ok()).expect(&text);
    assert!(!done && text.contains("cannot lock the 4900 tables") && needed > 200, "{text}");

    // It can be tried again with so many.
    to.run("pg_ctl", &["-m", "fast", "-w", "stop"]);
    to.serve(&format!("{small} -c max_locks_per_transaction={needed}"));
    let (done, text) = house.run(&["restore", &archive, "--identity", "key.txt"]);
    assert!(done, "{text}");
    drop((from, to));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_an_external_database_is_restored_with_its_files() {
    if programs().is_none() {
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
    // As libpq reads it: with a machine that is dead, and a certificate to check.
    let parameters = format!(
        "target_session_attrs=read-write&sslmode=verify-full&sslrootcert={}",
        elsewhere.data.join("db/server.crt").display()
    );
    let hosts = format!("127.0.0.1:1,127.0.0.1:{}", elsewhere.ports[1]);
    house.settings[0].1 = format!("postgresql://supabase_admin:postgres@{hosts}/postgres?{parameters}");
    let backup = ["backup", "--to", "dumps", "--recipient", &recipient];
    let dumps = root.path().join("dumps");
    assert!(killed_once(house.command(&backup), || !names(&dumps).is_empty()).await);
    assert!(names(&dumps).iter().all(|name| name.ends_with(".partial")));
    // A program that is too old, or that fails.
    house.settings.push(("FERROBASE_PG_TOOLS", root.path().display().to_string()));
    let (done, text) = house.run(&backup);
    assert!(!done && text.contains("pg_dump of PostgreSQL"), "{text}");
    std::fs::write(root.path().join("pg_dump"), "#!/bin/sh\n[ \"$1\" = --version ] && echo 'pg_dump (PostgreSQL) 99' || { echo half; echo \"pg_dump: error: no more $*\" >&2; exit 1; }\n").expect("a program");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.path().join("pg_dump"), executable).expect("its mode");
    let (done, text) = house.run(&backup);
    assert!(!done && text.contains("pg_dump failed: pg_dump: error: no more"), "{text}");
    let wanted = format!("host='127.0.0.1,127.0.0.1' port='1,{}'", elsewhere.ports[1]);
    assert!(text.contains(&wanted) && text.contains("sslmode='verify-full'") && !text.contains("password="), "{text}");
    assert_eq!(names(&dumps), [""; 0], "a partial dump is not kept");
    house.settings.pop();
    // The programs of the tests cannot encrypt.
    house.settings[0].1 = format!(
        "postgresql://supabase_admin:postgres@{hosts}/postgres?target_session_attrs=read-write&passfile=/nowhere"
    );
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
    house.settings[0].1 =
        format!("host=127.0.0.1 port={} user=supabase_admin password=postgres dbname=other", elsewhere.ports[1]);
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
