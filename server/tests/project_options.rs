//! Options and commands as scripts of public projects have them for the Supabase CLI.

use crate::project::Project;

const TABLES: &str = "create table notes (id int primary key, done boolean, body jsonb);
insert into notes values (1, true, '{\"a\": 1}'), (2, null, null);";

#[actix_web::test]
async fn scripts_made_for_the_supabase_cli_run() {
    let project = Project::new(
        "options",
        "",
        &[("supabase/migrations/1_notes.sql", TABLES), ("elsewhere/note.sql", "select 7 as n")],
    );
    let elsewhere = project.root.join("elsewhere");
    let from = |arguments: &[&str], name: &str, value: &str| {
        let mut command = project.command(arguments);
        command.current_dir(std::env::temp_dir()).env(name, value);
        command.output().expect("it runs")
    };
    let root = project.root.to_str().expect("a path");

    // `supabase db start` starts the database; here that is all of it.
    let (_, told) = project.ok(&["--debug", "db", "start"]);
    assert!(told.contains("Applying migration 1_notes.sql..."), "{told}");
    let (_, told) = project.ok(&["db", "start", "--network-id", "x"]);
    assert!(told.contains("Postgres database is already running."), "{told}");
    let refused = project.run(&["db", "start", "--from-backup", "all.dump"]).2;
    assert!(refused.contains("'ferrobase import --dump FILE'"), "{refused}");

    // The project may be named from anywhere. Files are relative to where the command runs.
    let found = from(&["--workdir", root, "status", "-o", "env"], "A", "b");
    assert!(String::from_utf8_lossy(&found.stdout).contains("API_URL=\"http://127.0.0.1:"), "{found:?}");
    let found = from(&["migrations", "list", "--local"], "SUPABASE_WORKDIR", root);
    assert!(String::from_utf8_lossy(&found.stdout).contains("   1              | 1 "), "{found:?}");
    let found = from(&["status", "--workdir", "/no such folder"], "A", "b");
    assert!(String::from_utf8_lossy(&found.stderr).contains("cannot open the folder /no such folder"), "{found:?}");
    let mut command = project.command(&["db", "query", "--workdir", "..", "-f", "note.sql", "-o", "csv"]);
    let found = command.current_dir(&elsewhere).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "n\n7\n", "{found:?}");

    for (output, printed) in [
        ("table", "\n  id | done | body\n ----|------|----------\n  1  | t    | {\"a\": 1}\n  2  | NULL | NULL\n"),
        ("csv", "id,done,body\n1,t,\"{\"\"a\"\": 1}\"\n2,NULL,NULL\n"),
    ] {
        let (found, _) = project.ok(&["db", "query", "select * from notes order by id", "--local", "-o", output]);
        assert_eq!(found, printed, "{output}");
    }
    let (found, _) = project.ok(&["db", "query", "select * from notes order by id", "--output", "json"]);
    let found: serde_json::Value = serde_json::from_str(&found).expect("JSON");
    let rows =
        serde_json::json!([{ "id": 1, "done": true, "body": { "a": 1 } }, { "id": 2, "done": null, "body": null }]);
    assert_eq!(found, rows);
    // Statements without rows, and the last result of several.
    assert_eq!(project.ok(&["db", "query", "update notes set done = true; delete from notes where id = 2"]).0, "");
    assert_eq!(project.ok(&["db", "query", "select 1 as a; select 2 as b", "-o", "csv"]).0, "b\n2\n");
    let (success, _, told) = project.run(&["db", "query", "select nothing"]);
    assert!(!success && told.contains("column \"nothing\" does not exist (SQLSTATE 42703)"), "{told}");
    let (success, _, told) = project.run(&["db", "query"]);
    assert!(!success && told.contains("there is no SQL"), "{told}");

    project.ok(&["seed", "buckets", "--local"]);
    project.ok(&["--yes", "migration", "up", "--local"]);
    project.ok(&["functions", "new", "hello", "--auth", "apikey"]);
    let (_, told) = project.ok(&["inspect", "report", "--output-dir", "reports", "--local"]);
    let folder = told.lines().find_map(|line| line.strip_prefix("Reports saved to ")).expect("a folder").to_owned();
    let report = |name: &str| std::fs::read_to_string(project.root.join(&folder).join(name)).expect(name);
    assert!(report("table_stats.csv").contains("public.notes,"), "{}", report("table_stats.csv"));
    for name in ["bloat", "blocking", "calls", "locks", "outliers", "traffic_profile", "vacuum_stats"] {
        assert!(report(&format!("{name}.csv")).starts_with(|c: char| c == '"' || c.is_alphabetic()), "{name}");
    }

    // What needs the hosted platform or a container is refused with its reason.
    for (arguments, reason) in [
        (&["link", "--project-ref", "abc"][..], "works on projects of the hosted platform"),
        (&["secrets", "set", "--env-file", ".env"], "works on projects of the hosted platform"),
        (&["functions", "deploy", "hello", "--no-verify-jwt"], "functions of the hosted platform"),
        (&["db", "push", "-p", "secret"], "there is no linked project: pass its database with --db-url"),
        (&["db", "reset", "--linked", "--yes"], "there is no linked project: pass its database with --db-url"),
        (&["migration", "squash", "--linked"], "'ferrobase migration repair --db-url'"),
        (&["db", "diff", "--use-pg-delta"], "--use-pg-delta is not available"),
        (&["db", "diff", "--from", "local", "--to", "migrations"], "--from and --to are not available"),
        (&["db", "pull", "--use-pg-delta"], "--use-pg-delta is not available"),
        (&["gen", "types", "typescript", "--project-id", "abc"], "there is no linked project"),
        (&["seed", "buckets", "--linked"], "there is no linked project"),
        (&["init", "--use-orioledb"], "OrioleDB is not available here"),
    ] {
        let (success, _, told) = project.run(arguments);
        assert!(!success && told.contains(reason), "{arguments:?}: {told}");
    }

    // Stopped by its id, from elsewhere.
    let stopped = from(&["stop", "--project-id", "no-such-project"], "A", "b");
    assert!(!stopped.status.success(), "{stopped:?}");
    assert!(project.run(&["status"]).0, "it runs on");
    let stopped = from(&["stop", "--project-id", "options"], "A", "b");
    assert!(
        String::from_utf8_lossy(&stopped.stderr).contains("Stopped supabase local development setup."),
        "{stopped:?}"
    );
    assert!(!project.run(&["status"]).0, "it has stopped");
}
