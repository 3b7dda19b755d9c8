//! Commands on a project's running database, as scripts for the Supabase CLI use them.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::project::Project;

/// A program or extension installed by `tools/pg-extras.sh`. Without it, what needs it is skipped with a message.
pub fn installed(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tools/postgres").join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: there is no {}; tools/pg-extras.sh installs it", path.display());
    None
}

const TASKS: &str = r#"
create type mood as enum ('calm', 'busy');
create table tasks (
  id int generated always as identity primary key,
  title text not null unique,
  mood mood not null default 'calm',
  owner uuid references auth.users (id) on delete cascade
);
alter table tasks enable row level security;
create policy "own tasks" on tasks using (auth.uid() = owner);
create view calm_tasks with (security_invoker) as select * from tasks where mood = 'calm';
create function rename(task int, new_title text) returns void language plpgsql as $$
begin
-- a comment of the function
  update tasks set title = new_title where id = task;
end $$;
alter publication supabase_realtime add table tasks;
create schema private;
create table private.notes (body text);
create extension pg_trgm with schema extensions;
create index on tasks using gin (title extensions.gin_trgm_ops);
create extension pg_cron;
select cron.schedule('nightly', '0 3 * * *', 'delete from private.notes');
create role reporter nologin;
grant select on tasks to reporter;
alter role anon set statement_timeout = '7s';
create function private.on_ddl() returns event_trigger language plpgsql as $$ begin null; end $$;
create event trigger watch on ddl_command_end execute function private.on_ddl();
"#;

const SEED: &str = r#"
insert into auth.users (id, instance_id, aud, role, email, encrypted_password) values
  ('11111111-1111-4111-8111-111111111111', '00000000-0000-0000-0000-000000000000', 'authenticated', 'authenticated',
   'ada@example.org', extensions.crypt('secret', extensions.gen_salt('bf', 4)));
insert into tasks (title, owner) values ('first', '11111111-1111-4111-8111-111111111111'), (E'two\nlines', null);
insert into private.notes values (E'one\n\\restrict me\n-- two');
insert into storage.buckets (id, name) values ('papers', 'papers');
"#;

fn psql(program: &PathBuf, url: &str, sql: &str) {
    let mut child = Command::new(program)
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null", url])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql runs");
    child.stdin.take().expect("a pipe").write_all(sql.as_bytes()).expect("psql reads");
    let output = child.wait_with_output().expect("psql ends");
    assert!(output.status.success(), "{}\n{sql}", String::from_utf8_lossy(&output.stderr));
}

#[actix_web::test]
async fn dumps_of_schema_data_and_roles_recreate_the_database() {
    let project =
        Project::new("dumped", "", &[("supabase/migrations/1_tasks.sql", TASKS), ("supabase/seed.sql", SEED)]);
    assert_eq!(
        project.run(&["db", "dump"]).2,
        "ferrobase: the project is not running: start it with 'ferrobase start'\n"
    );
    project.ok(&["start"]);

    // Without the programs: the error says what to install.
    let none = project.command(&["db", "dump"]).env("FERROBASE_PG_TOOLS", &project.root).output().expect("it runs");
    let told = String::from_utf8_lossy(&none.stderr);
    for word in [
        "pg_dump of PostgreSQL 18 or later is needed",
        "FERROBASE_PG_TOOLS",
        "postgresql-client-18 from apt.postgresql.org",
    ] {
        assert!(!none.status.success() && told.contains(word), "{told}");
    }
    let old = project.root.join("old/pg_dump");
    project.write("old/pg_dump", "#!/bin/sh\necho 'pg_dump (PostgreSQL) 15.18'\n");
    std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let older = project.command(&["db", "dump"]).env("FERROBASE_PG_TOOLS", project.root.join("old")).output();
    let told = String::from_utf8_lossy(&older.expect("it runs").stderr).into_owned();
    assert!(told.contains("old/pg_dump is of version 15"), "{told}");

    let Some(program) = installed("client/bin/psql") else { return };
    let dumps = |project: &Project| {
        ["--role-only", "", "--data-only"].map(|kind| {
            let arguments: Vec<&str> = ["db", "dump", kind].into_iter().filter(|word| !word.is_empty()).collect();
            project.ok(&arguments).0
        })
    };
    let [roles, schema, data] = dumps(&project);
    assert!(roles.contains("CREATE ROLE \"reporter\"") && !roles.contains("CREATE ROLE \"anon\""), "{roles}");
    assert!(schema.contains("CREATE TABLE IF NOT EXISTS \"public\".\"tasks\""), "{schema}");
    assert!(schema.contains("-- a comment of the function") && !schema.contains("-- Name:"), "{schema}");
    assert!(data.contains("INSERT INTO \"auth\".\"users\"") && data.ends_with("RESET ALL;\n"), "{data}");

    let fresh = Project::new("restored", "", &[]);
    fresh.ok(&["start"]);
    let url = fresh.status()["DB_URL"].as_str().expect("a URL").to_owned();
    for dump in [&roles, &schema, &data] {
        psql(&program, &url, dump);
    }
    for (before, after) in [roles, schema, data].into_iter().zip(dumps(&fresh)) {
        assert_eq!(before, after);
    }
    let login = "select count(*)::text from auth.users where encrypted_password = extensions.crypt('secret', encrypted_password)";
    assert_eq!(fresh.one(login).await, "1");

    // Parts of the database, into a file.
    let (printed, told) =
        project.ok(&["db", "dump", "--local", "-s", "private", "-f", "private.sql", "--keep-comments"]);
    assert!(printed.is_empty() && told.contains("Dumped schema to ") && told.contains("/private.sql."), "{told}");
    let file = std::fs::read_to_string(project.root.join("private.sql")).expect("the dump");
    assert!(file.contains("-- Name: notes; Type: TABLE") && !file.contains("tasks"), "{file}");
    let (rows, _) = project.ok(&["db", "dump", "--data-only", "--use-copy", "-x", "public.tasks"]);
    assert!(rows.contains("COPY \"private\".\"notes\"") && !rows.contains("\"tasks\" ("), "{rows}");
    let (command, _) = project.ok(&["db", "dump", "--dry-run"]);
    assert!(command.contains("pg_dump --dbname") && !command.contains("postgres:postgres"), "{command}");
    for (wrong, word) in [
        (vec!["db", "dump", "-s", "nowhere"], "there is no schema named 'nowhere'"),
        (vec!["db", "dump", "--linked"], "pass its database with --db-url"),
        (vec!["db", "dump", "--use-copy"], "--data-only"),
        (vec!["db", "dump", "--db-url", "postgresql://postgres:no@127.0.0.1:1/x"], "cannot connect to the database"),
    ] {
        let (success, _, told) = project.run(&wrong);
        assert!(!success && told.contains(word) && told.lines().count() == 1, "{wrong:?}: {told}");
    }
}

#[actix_web::test]
async fn inspection_lint_diff_and_migration_commands_work() {
    let project = Project::new(
        "inspected",
        "",
        &[
            (
                "supabase/migrations/1_tasks.sql",
                "create table tasks (id int primary key);\n\
                 create function whoami() returns text language sql as 'select auth.uid() || auth.role()';",
            ),
            ("supabase/migrations/2_more.sql", "create table more (id int);"),
            ("supabase/seed.sql", "insert into tasks select generate_series(1, 100);"),
        ],
    );
    project.ok(&["start"]);
    let reports: [(&str, &str, &str); 13] = [
        ("bloat", "Type | Name | Bloat | Waste", ""),
        (
            "blocking",
            "blocked pid | blocking statement | blocking duration | blocking pid | blocked statement | blocked duration",
            "",
        ),
        ("calls", "Query | Total Execution Time | Proportion of total exec time | Number Calls | Sync IO time", "set "),
        (
            "db-stats",
            "Name | Database Size | Total Index Size | Total Table Size | Total Toast Size | Time Since Stats Reset | \
             Index Hit Rate | Table Hit Rate | WAL Size",
            "postgres",
        ),
        ("index-stats", "Name | Size | Percent used | Index scans | Seq scans | Unused", "public.tasks_pkey"),
        ("locks", "pid | relname | transaction id | granted | stmt | age", ""),
        ("long-running-queries", "pid | Duration | Query", ""),
        ("outliers", "Query | Execution Time | Proportion of exec time | Number Calls | Sync IO time", "%"),
        ("replication-slots", "Name | Active | State | Replication Client Address | Replication Lag GB", ""),
        ("role-stats", "Role name | Active connections | Connection limit | Custom config", "statement_timeout=3s"),
        (
            "table-stats",
            "Name | Table size | Index size | Total size | Estimated row count | Seq scans",
            "public.tasks",
        ),
        ("traffic-profile", "Schema | Table | Blocks Read | Write Tuples | Blocks Write | Activity Ratio", ""),
        (
            "vacuum-stats",
            "Table | Last Vacuum | Last Auto Vacuum | Last Analyze | Last Auto Analyze | Row count | Dead row count | \
             Expect autovacuum? | Expect autoanalyze?",
            "public.tasks",
        ),
    ];
    for (report, columns, content) in reports {
        let (printed, _) = project.ok(&["inspect", "db", report]);
        let heading = printed.lines().nth(1).unwrap_or_default();
        let found: Vec<&str> = heading.split('|').map(str::trim).collect();
        assert_eq!(found.join(" | "), columns, "{report}");
        assert!(printed.to_lowercase().contains(content), "{report}: {printed}");
    }
    let (_, told) = project.ok(&["inspect", "db", "cache-hit", "--local"]);
    assert_eq!(told, "Command \"cache-hit\" is deprecated, use \"db-stats\" instead.\n");
    let (success, _, told) = project.run(&["inspect", "db", "weather"]);
    assert!(!success && told.contains("invalid value 'weather'"), "{told}");

    // One session that waits, and one that blocks it.
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let holder = crate::support::cluster::connect(&url).await;
    holder.batch_execute("begin; lock table tasks").await.expect("a lock");
    let waiter = crate::support::cluster::connect(&url).await;
    let wait = waiter.batch_execute("select count(*) as waits from tasks");
    let look = async {
        let begun = Instant::now();
        loop {
            // Lets the other task on this thread run.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let (printed, _) = project.ok(&["inspect", "db", "blocking"]);
            if printed.contains("lock table tasks") && printed.contains("as waits from tasks") {
                return holder.batch_execute("rollback").await.expect("it ends");
            }
            assert!(begun.elapsed().as_secs() < 60, "{printed}");
        }
    };
    let (waited, ()) = futures_util::join!(wait, look);
    waited.expect("an answer");

    // A token for a user without an account.
    let person = "22222222-2222-4222-8222-222222222222";
    let (token, _) =
        project.ok(&["gen", "bearer-jwt", "--role", "authenticated", "--sub", person, "--valid-for", "5m"]);
    let status = project.status();
    let whoami = format!("{}/rest/v1/rpc/whoami", status["API_URL"].as_str().expect("a URL"));
    let key = status["ANON_KEY"].as_str().expect("a key");
    let request = reqwest::Client::new().get(whoami).header("apikey", key).bearer_auth(token.trim());
    let answer = request.send().await.expect("an answer").text().await.expect("a body");
    assert_eq!(answer, format!("\"{person}authenticated\""));
    let (success, _, told) = project.run(&["gen", "bearer-jwt"]);
    assert!(!success && told.contains("--role"), "{told}");

    // Functions that have become invalid.
    let (_, told) = project.ok(&["db", "lint"]);
    assert!(told.contains("Linting schema: public\n") && told.ends_with("\nNo schema errors found\n"), "{told}");
    project
        .one(
            "set check_function_bodies = off;
             create function lost() returns int language sql as 'select 1 from nowhere';
             create function shadow(x int) returns int language plpgsql as $$ declare x int; begin return x; end $$",
        )
        .await;
    let (printed, _) = project.ok(&["db", "lint", "-s", "public"]);
    let found: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let issue = |place: usize, name: &str| found[place]["issues"][0][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(found[0]["function"], "public.lost");
    assert_eq!(
        (issue(0, "level"), issue(0, "sqlState"), issue(0, "message")),
        ("error".to_owned(), "42P01".to_owned(), "relation \"nowhere\" does not exist".to_owned())
    );
    assert_eq!((&found[1]["function"], issue(1, "level").as_str()), (&"public.shadow".into(), "warning"));
    let (success, printed, told) = project.run(&["db", "lint", "--level", "error", "--fail-on", "error"]);
    assert!(
        !success && !printed.contains("shadow") && told.ends_with("fail-on is set to error, non-zero exit\n"),
        "{told}"
    );
    project.one("drop function lost, shadow").await;
    if installed("extensions/extension/plpgsql_check.control").is_some() {
        // Its body compiles. A database from before has the interface alone.
        let interface = "create extension plpgsql_check; create function wrong() returns int language plpgsql as
                         $$ begin return (select total from missing_orders); end $$";
        project.one(interface).await;
        let (printed, told) = project.ok(&["db", "lint", "-s", "public"]);
        assert!(printed.contains("public.wrong") && printed.contains("missing_orders"), "{printed}{told}");
        assert!(!told.contains("not installed"), "{told}");
        project.one("drop function wrong; drop extension plpgsql_check").await;
    }

    // Changes made outside of the migrations.
    if installed("../diff/node_modules/@pgkit/migra").is_some() {
        let (printed, told) = project.ok(&["db", "diff"]);
        assert!(printed.is_empty() && told.ends_with("No schema changes found\n"), "{printed}{told}");
        project
            .one(
                "alter table tasks add column title text; drop table more;
                 create policy \"all files\" on storage.objects for select using (true)",
            )
            .await;
        let (printed, told) = project.ok(&["db", "diff", "-f", "title"]);
        assert!(told.contains("Please double check") && told.contains("drop table \"public\".\"more\""), "{told}");
        let path = printed.trim().strip_prefix("Created new migration at ").expect("a path");
        let file = std::fs::read_to_string(project.root.join(path)).expect("the migration");
        for part in ["alter table \"public\".\"tasks\" add column \"title\" text;", "create policy \"all files\""] {
            assert!(file.contains(part), "{file}");
        }
        std::fs::remove_file(project.root.join(path)).expect("removed");
        let (success, _, told) = project.run(&["db", "diff", "-s", "nowhere"]);
        assert!(!success && told.contains("there is no schema named 'nowhere'"), "{told}");
    }

    // Back to the first migration, with the seed's data.
    project.one("delete from tasks where id > 1").await;
    let (success, _, told) = project.run(&["migration", "down"]);
    assert!(!success && told.contains(" • 2\n") && told.contains("nothing was reverted"), "{told}");
    for (wrong, word) in [
        (vec!["migration", "down", "--last", "2"], "--last must be smaller than total applied migrations: 2"),
        (vec!["migration", "down", "--last", "0"], "--last must be greater than 0"),
        (vec!["migration", "down", "7"], "the database has no migration of version 7"),
        (vec!["migration", "down", "1", "--last", "1"], "cannot be used with"),
    ] {
        let (success, _, told) = project.run(&wrong);
        assert!(!success && told.contains(word), "{wrong:?}: {told}");
    }
    let state = "select count(*) || ' ' || (to_regclass('more') is not null) from tasks";
    assert!(project.one(state).await.starts_with("1 "), "nothing is done before it is confirmed");
    let (_, told) = project.ok(&["migration", "down", "--yes"]);
    assert!(told.contains("Resetting database to version: 1"), "{told}");
    assert_eq!(project.one(state).await, "100 false");
    project.ok(&["migration", "up"]);
    assert_eq!(project.one(state).await, "100 true");
    if installed("client/bin/pg_dump").is_some() {
        migrations_become_one_file(&project).await;
    }
}

/// Regression: the database was deleted before the configuration and the files were read.
#[actix_web::test]
async fn a_project_that_cannot_be_loaded_is_not_deleted() {
    let project = Project::new(
        "unloadable",
        "",
        &[
            ("supabase/migrations/1_tasks.sql", "create table tasks (id int primary key);"),
            ("supabase/migrations/2_more.sql", "create table more ();"),
            ("supabase/seed.sql", "insert into tasks values (1);"),
        ],
    );
    project.ok(&["start"]);
    project.one("insert into tasks values (2)").await;
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let config = std::fs::read_to_string(project.root.join("supabase/config.toml")).expect("a configuration");
    let mail = "[auth.email.template.invite]\ncontent_path = \"./supabase/templates/none.html\"\n";
    let twice = ("supabase/migrations/1_again.sql", "select 1;");
    let packed = "[db.seed]\nsql_paths = [\"./packed.sql.gz\"]\n";
    for (more, (file, text), told) in [
        (mail, ("supabase/notes.md", ""), "auth.email.template.invite.content_path names the file"),
        ("[db.seed]\nsql_paths = [\"***\"]\n", ("supabase/notes.md", ""), "*** is not a pattern"),
        ("", twice, "have the same version 1"),
        (packed, ("supabase/packed.sql.gz", "not packed"), "packed.sql.gz"),
    ] {
        project.write("supabase/config.toml", &format!("{config}{more}"));
        project.write(file, text);
        for command in [&["db", "reset"][..], &["migration", "down", "--yes"]] {
            let (success, _, stderr) = project.run(command);
            assert!(!success && stderr.contains(told), "{command:?}: {stderr}");
        }
        std::fs::remove_file(project.root.join(file)).expect("removed");
        // It still runs, with its rows.
        let client = crate::support::cluster::connect(&url).await;
        let rows = client.query_one("select count(*) from tasks", &[]).await.expect("the table");
        assert_eq!(rows.get::<_, i64>(0), 2, "{told}");
    }
    project.write("supabase/config.toml", &config);
    project.ok(&["db", "reset"]);
    assert_eq!(project.one("select count(*) from tasks").await, "1");
}

async fn migrations_become_one_file(project: &Project) {
    let more = "create policy \"own files\" on storage.objects for select using (owner_id = auth.uid()::text);
                create function on_ddl() returns event_trigger language plpgsql as $$ begin null; end $$;
                create event trigger watch on ddl_command_end execute function on_ddl();
                insert into storage.buckets (id, name) values ('papers', 'papers');
                create table plans (name text);
                insert into plans values ('free');";
    project.write("supabase/migrations/3_files.sql", more);
    let (success, _, told) = project.run(&["migration", "squash"]);
    assert!(!success && told.contains("migration 3 is not applied"), "{told}");
    project.ok(&["migration", "up"]);
    let schema = project.ok(&["db", "dump"]).0;
    let files = || {
        let folder = std::fs::read_dir(project.root.join("supabase/migrations")).expect("a folder");
        let mut names: Vec<_> = folder.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    // Only those up to a version: the second one's table stands in its own file, and the third one's policy does not.
    let (success, _, told) = project.run(&["migration", "squash", "--version", "7"]);
    assert!(!success && told.contains("there is no migration of version 7"), "{told}");
    let (success, _, told) = project.run(&["migration", "squash", "--version", "1"]);
    assert!(!success && told.contains("is already the earliest migration"), "{told}");
    let before = files();
    let (_, told) = project.ok(&["migration", "squash", "--version", "2"]);
    assert!(told.contains("Squashed local migrations to supabase/migrations/2_"), "{told}");
    assert_eq!(files(), before[1..]);
    let second = std::fs::read_to_string(project.root.join("supabase/migrations").join(&before[1])).expect("a file");
    assert!(second.contains("\"tasks\"") && second.contains("\"more\"") && !second.contains("own files"), "{second}");
    assert_eq!(
        project
            .one("select string_agg(version, ' ' order by version) from supabase_migrations.schema_migrations")
            .await,
        "2 3"
    );

    let (_, told) = project.ok(&["migration", "squash", "--local"]);
    assert!(told.contains("Squashed local migrations to supabase/migrations/3_files.sql"), "{told}");
    let named = "WARN: the rows that migrations inserted into storage.buckets, public.plans are not in it";
    assert!(told.contains(named), "{told}");
    assert_eq!(files(), ["3_files.sql"]);
    let (listed, _) = project.ok(&["migration", "list"]);
    let rows: Vec<&str> = listed.lines().skip(3).map(str::trim).collect();
    assert_eq!(rows, ["3              | 3              | 3"]);
    let recorded = "select (array_to_string(statements, ';') like '%CREATE TABLE%tasks%own files%') || ' ' || name
                    from supabase_migrations.schema_migrations";
    assert_eq!(project.one(recorded).await, "true files");
    let (_, told) = project.ok(&["migration", "up"]);
    assert_eq!(told, "Local database is up to date.\n");
    // A new database from the squashed file is the same.
    project.ok(&["db", "reset", "--no-seed"]);
    assert_eq!(project.ok(&["db", "dump"]).0, schema);
    let beside = "select (select count(*) from pg_policies where policyname = 'own files') || ' '
                  || (select count(*) from pg_event_trigger where evtname = 'watch')";
    assert_eq!(project.one(beside).await, "1 1");
    let (success, _, told) = project.run(&["migration", "squash"]);
    assert!(!success && told.contains("3_files.sql is already the earliest migration"), "{told}");
}

#[actix_web::test]
async fn pgtap_files_are_run_and_evaluated() {
    let project = Project::new(
        "tapped",
        "",
        &[
            (
                "supabase/tests/1_pass.sql",
                "begin;\nselect plan(2);\n\\i shared/ok.psql\nselect is(1, 1, 'one');\nselect * from finish();\nrollback;\n",
            ),
            ("supabase/tests/shared/ok.psql", "select ok(true, 'included');\n"),
            ("supabase/tests/shared/none.pg", "select plan(0);\nselect skip_all('not today');\n"),
        ],
    );
    let (success, _, told) = project.run(&["test", "db"]);
    assert!(!success && told.contains("the project is not running"), "{told}");
    project.ok(&["start"]);
    if installed("extensions/extension/pgtap.control").is_none() {
        let (success, _, told) = project.run(&["test", "db"]);
        assert!(!success && told.contains("just pgtap"), "{told}");
        return;
    }
    project.write(
        "supabase/tests/shared/none.pg",
        "begin;\nselect plan(1);\nselect pass();\nselect * from finish();\nrollback;\n",
    );
    let (printed, told) = project.ok(&["test", "db"]);
    assert!(
        printed.contains("./supabase/tests/1_pass.sql ...... ok\n./supabase/tests/shared/none.pg .. ok\n"),
        "{printed}{told}"
    );
    assert!(
        printed.contains("All tests successful.\nFiles=2, Tests=3, ") && printed.ends_with("Result: PASS\n"),
        "{printed}"
    );
    // It was created only for the tests.
    assert_eq!(project.one("select count(*)::text from pg_extension where extname = 'pgtap'").await, "0");

    let (printed, _) = project.ok(&["test", "new", "more"]);
    assert_eq!(printed, "Created new pgtap test at supabase/tests/more_test.sql.\n");
    project.write("supabase/tests/error.sql", "begin;\nselect plan(1);\nselect 1 / 0;\n");
    let (success, printed, told) = project.run(&["test", "db", "supabase/tests"]);
    assert!(!success, "{printed}");
    assert!(told.contains("# Failed test 1:") && told.contains("division by zero"), "{told}");
    for line in [
        "./supabase/tests/error.sql ....... Dubious, test returned 3\n",
        "./supabase/tests/more_test.sql ... Failed 1/1 subtests\n",
        "./supabase/tests/more_test.sql (Wstat: 0 Tests: 1 Failed: 1)\n  Failed test:  1\n",
        "./supabase/tests/error.sql (Wstat: 768 (exited 3) Tests: 0 Failed: 0)\n  Non-zero exit status: 3\n",
        "  Parse errors: Bad plan.  You planned 1 tests but ran 0.\n",
        "Result: FAIL\n",
    ] {
        assert!(printed.contains(line), "{line}{printed}");
    }
    // Regression: the indented lines of subtests counted as tests of their own, and their diagnostics were lost.
    for (name, second) in [("good", 2), ("bad", 3)] {
        let tests = format!(
            "create schema {name};\ncreate function {name}.test_it() returns setof text language plpgsql as $$ begin\n\
             return next ok(true, 'one');\nreturn next is(2, {second}, 'two');\nreturn next ok(true, 'three');\nend $$;"
        );
        let file = format!("supabase/tests/{name}_subtests.sql");
        project.write(&file, &format!("begin;\n{tests}\nselect * from runtests('{name}'::name);\nrollback;\n"));
        let (success, printed, told) = project.run(&["test", "db", &file]);
        assert_eq!(success, name == "good", "{printed}{told}");
        assert!(printed.contains("Files=1, Tests=1, "), "{printed}{told}");
        let diagnostics = ["# Subtest: bad.test_it()", "# Failed test 2: \"two\"", "have: 2"];
        assert!(diagnostics.iter().all(|line| told.contains(line) != success), "{told}");
    }
    let (success, _, told) = project.run(&["test", "db", "nowhere.sql"]);
    assert!(!success && told.contains("there is no nowhere.sql"), "{told}");
}
