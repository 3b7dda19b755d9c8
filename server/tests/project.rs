//! `ferrobase start` in a folder of the Supabase CLI, as developers and their scripts use it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::cluster;
use crate::support::first_start;
use crate::support::ports::{free_port, free_ports};
use serde_json::Value;

/// A project's folder with free ports; stopped and removed when dropped.
pub struct Project {
    pub root: PathBuf,
    api: u16,
}

impl Project {
    /// `config` is appended to a `config.toml` with free ports. The database has the platform's schemas already and nothing of the
    /// project, as after a first start that was interrupted.
    pub fn new(name: &str, config: &str, files: &[(&str, &str)]) -> Self {
        let project = Self::without_database(name, config, files);
        first_start::copy_to(&project.root.join(".ferrobase"));
        project
    }

    /// Without a data folder.
    pub fn without_database(name: &str, config: &str, files: &[(&str, &str)]) -> Self {
        // The test program has two TLS providers, so it must choose one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Deno reads nothing below /dev, where memory is.
        let has_functions = files.iter().any(|(path, _)| path.contains("/functions/"));
        let place = if has_functions { std::env::temp_dir() } else { cluster::place() };
        let root = place.join(format!("ferrobase-start-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let [api, database, inbox] = free_ports();
        let ports = format!(
            "project_id = \"{name}\"\n[api]\nport = {api}\n[db]\nport = {database}\n[local_smtp]\nport = {inbox}\n{config}"
        );
        let project = Self { root, api };
        project.write("supabase/config.toml", &ports);
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
        command.args(arguments).current_dir(&self.root).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        command.envs(self.root.parent().map(|place| ("TMPDIR", place)));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> (bool, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (status.success(), text(stdout), text(stderr))
    }

    /// Runs a command that must succeed; returns its stderr and stdout.
    pub fn ok(&self, arguments: &[&str]) -> (String, String) {
        let (success, stdout, stderr) = self.run(arguments);
        let log = std::fs::read_to_string(self.root.join(".ferrobase/server.log")).unwrap_or_default();
        assert!(success, "{arguments:?}: {stderr}\n{log}");
        (stdout, stderr)
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.ok(&["status", "-o", "json"]).0).expect("JSON")
    }

    pub async fn get(&self, path: &str, key: &str) -> (u16, String) {
        let url = format!("http://127.0.0.1:{}{path}", self.api);
        let mut request = reqwest::Client::new().get(url);
        if !key.is_empty() {
            request = request.header("apikey", key);
        }
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }

    pub async fn one(&self, sql: &str) -> String {
        let url = self.status()["DB_URL"].as_str().expect("a URL").to_owned();
        let client = cluster::connect(&url).await;
        let rows = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .unwrap_or_default()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = self.run(&["stop", "--no-backup"]);
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[actix_web::test]
async fn a_project_starts_with_migrations_seeds_and_buckets_and_stops() {
    let project = Project::without_database(
        "todo-list",
        "[storage.buckets.avatars]\npublic = true\nobjects_path = \"./avatars\"\n[auth]\nsite_url = \"env(SITE)\"\n",
        &[
            (".env", "SITE=http://localhost:4321\n"),
            ("supabase/roles.sql", "create role reporter nologin;"),
            (
                "supabase/migrations/20240101000000_tasks.sql",
                "create table tasks (id uuid primary key default uuid_generate_v4(), title text not null);\n\
                 alter table tasks enable row level security;\n\
                 create policy \"all read\" on tasks for select using (true);\ngrant select on tasks to reporter;\n",
            ),
            ("supabase/migrations/README.md", "not a migration"),
            ("supabase/seed.sql", "insert into tasks (title) values ('from the seed');"),
            ("supabase/avatars/one.txt", "a picture"),
        ],
    );
    let (printed, told) = project.ok(&["start"]);
    for log in ["server.log", "postgres.log"] {
        let mode = std::fs::metadata(project.root.join(".ferrobase").join(log)).expect(log).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{log} is for its owner alone");
    }
    assert!(told.contains("Applying migration 20240101000000_tasks.sql..."), "{told}");
    assert!(told.contains("Skipping migration README.md..."), "{told}");
    assert!(told.contains("Seeding data from supabase/seed.sql..."), "{told}");
    assert!(
        printed.contains("Project URL") && printed.contains(&format!("http://127.0.0.1:{}", project.api)),
        "{printed}"
    );
    let status = project.status();
    let key = status["PUBLISHABLE_KEY"].as_str().expect("a key");
    assert_eq!(
        project.get("/rest/v1/tasks?select=title", key).await,
        (200, r#"[{"title":"from the seed"}]"#.to_owned())
    );
    // A local stack's gateway does not require an API key.
    assert_eq!(project.get("/rest/v1/tasks?select=title", "").await.0, 200);
    assert_eq!(project.get("/storage/v1/object/public/avatars/one.txt", "").await, (200, "a picture".to_owned()));
    assert_eq!(project.one("select current_setting('app.settings.jwt_exp')").await, "3600");
    let (env, _) = project.ok(&["status", "-o", "env", "--override-name", "api.url=VITE_URL"]);
    assert!(env.lines().any(|line| line == format!("VITE_URL=\"http://127.0.0.1:{}\"", project.api)), "{env}");
    assert_eq!(std::fs::read_to_string(project.root.join(".ferrobase/.gitignore")).expect("a file"), "*\n");
    let (_, told) = project.ok(&["start"]);
    assert!(told.contains("already running"), "{told}");

    // A new migration is applied at the next start. The seed is not run again.
    project.ok(&["stop"]);
    assert!(!project.run(&["status"]).0, "it is not running");
    project.write(
        "supabase/migrations/20240102000000_done.sql",
        "alter table tasks add column done boolean default false;",
    );
    let (_, told) = project.ok(&["start"]);
    assert!(told.contains("Applying migration 20240102000000_done.sql...") && !told.contains("Seeding"), "{told}");
    assert_eq!(project.one("select count(*) from tasks where not done").await, "1");
    let (list, _) = project.ok(&["migration", "list"]);
    assert!(list.contains("20240102000000 | 20240102000000 | 2024-01-02 00:00:00"), "{list}");

    // A reset starts from scratch, up to a version if one is given.
    project.one("insert into tasks (title) values ('mine')").await;
    let (_, told) = project.ok(&["db", "reset", "--version", "20240101000000"]);
    assert!(told.contains("Finished supabase db reset on branch main."), "{told}");
    assert_eq!(project.one("select string_agg(title, ',') from tasks").await, "from the seed");
    project.ok(&["migration", "up"]);
    assert_eq!(project.one("select count(done) from tasks").await, "1");
    let (types, _) = project.ok(&["gen", "types", "--lang", "typescript", "--local"]);
    assert!(types.contains("done: boolean | null"), "{types}");
    project.ok(&["stop", "--no-backup"]);
    assert!(!exists(&project.root.join(".ferrobase/db")), "the data is gone");
}

/// Regression: one of several starts ended with an error, and another one waited for ever.
#[actix_web::test]
async fn starts_at_once_have_one_server_and_all_succeed() {
    let migration = ("supabase/migrations/1_slow.sql", "select pg_sleep(1);");
    let project = Project::new("crowded", "", &[migration]);
    let start = |command: &[&str]| {
        let mut command = project.command(command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut starts = vec![start(&["start"]), start(&["start"]), start(&["db", "start"])];
    let begun = std::time::Instant::now();
    while !starts.iter_mut().all(|start| start.try_wait().expect("its state").is_some()) {
        if begun.elapsed().as_secs() > 100 {
            starts.iter_mut().for_each(|start| drop(start.kill()));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut applied = 0;
    let mut refused = 0;
    for start in starts {
        let output = start.wait_with_output().expect("its output");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        let is_whole = output.stdout.is_empty() || String::from_utf8_lossy(&output.stdout).contains("Project URL");
        assert!(is_whole, "{told}");
        applied += told.matches("Applying migration 1_slow.sql...").count();
        refused += told.matches("already running").count();
    }
    assert_eq!((applied, refused), (1, 2));
}

/// Regression: roles were never made if the first start failed at them or after them.
#[actix_web::test]
async fn roles_are_made_by_a_later_start_and_only_once() {
    let migration = "supabase/migrations/1_notes.sql";
    let files = [
        ("supabase/roles.sql", "create role reporter nologi;"),
        (migration, "create table notes (id int);\ngrant oops;"),
    ];
    let project = Project::new("roles", "", &files);
    let (success, _, told) = project.run(&["start"]);
    assert!(!success && told.contains("supabase/roles.sql") && told.contains("continues from there"), "{told}");
    project.write("supabase/roles.sql", "create role reporter nologin;");
    let (success, _, told) = project.run(&["start"]);
    assert!(!success && told.contains("1_notes.sql"), "{told}");
    project.write(migration, "create table notes (id int);\ngrant select on notes to reporter;");
    project.ok(&["start"]);
    assert_eq!(project.one("select has_table_privilege('reporter', 'notes', 'select')").await, "t");
}

/// Regressions: a start closed buckets whose configuration does not say whether they are public; and `seed buckets` kept files that
/// have changed.
#[actix_web::test]
async fn later_starts_keep_what_is_in_buckets_and_seed_buckets_replaces_it() {
    let config = "[storage.buckets.shared]\nobjects_path = \"./shared\"\n[storage.buckets.closed]\npublic = false\n";
    let project = Project::new("buckets", config, &[("supabase/shared/one.txt", "first")]);
    project.ok(&["start"]);
    let state =
        "select string_agg(concat_ws(' ', name, public, file_size_limit, allowed_mime_types), ', ' order by name)
                 from storage.buckets";
    assert_eq!(project.one(state).await, "closed f, shared f");
    project
        .one("update storage.buckets set public = true, file_size_limit = 9, allowed_mime_types = '{text/plain}'")
        .await;
    project.write("supabase/shared/one.txt", "second");
    project.write("supabase/shared/two.txt", "more");
    project.ok(&["stop"]);
    project.ok(&["start"]);
    assert_eq!(project.one(state).await, "closed f 9 {text/plain}, shared t 9 {text/plain}");
    let stored = async |name: &str| project.get(&format!("/storage/v1/object/public/shared/{name}"), "").await;
    assert_eq!(stored("one.txt").await, (200, "first".to_owned()));
    assert_eq!(stored("two.txt").await, (200, "more".to_owned()));
    project.ok(&["seed", "buckets"]);
    assert_eq!(stored("one.txt").await, (200, "second".to_owned()));
}

/// Processes that work below a folder: PostgreSQL's do so in their data directory, a server in its project.
fn processes_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .count()
}

#[actix_web::test]
async fn a_port_in_use_is_reported_with_its_setting_and_holder() {
    let smtp = free_port();
    let project = Project::new("taken", &format!("smtp_port = {smtp}\n"), &[]);
    let config = std::fs::read_to_string(project.root.join("supabase/config.toml")).expect("a file");
    let port_of = |section: &str, key: &str| -> u16 {
        let section = config.split(&format!("[{section}]\n")).nth(1).expect(section);
        let line = section.lines().find_map(|line| line.strip_prefix(&format!("{key} = "))).expect(key);
        line.parse().expect("a port")
    };
    let process = std::process::id();
    for (section, key) in [("api", "port"), ("db", "port"), ("local_smtp", "port"), ("local_smtp", "smtp_port")] {
        let port = port_of(section, key);
        let holder = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port");
        let (success, printed, told) = project.run(&["start"]);
        assert!(!success && printed.is_empty() && told.lines().count() == 1, "{section}.{key}: {printed} {told}");
        let named = format!("ferrobase: cannot listen on 127.0.0.1:{port} ({section}.{key} in supabase/config.toml): ");
        assert!(told.starts_with(&named), "{told}");
        if cfg!(target_os = "linux") {
            assert!(told.contains(&format!("(process {process}, in ")), "{told}");
        }
        assert_eq!(processes_below(&project.root), 0, "{section}.{key} leaves a process");
        assert!(!project.run(&["status"]).0, "nothing runs");
        drop(holder);
    }
    // Once the port is free it starts, with all of them; nothing uses Studio's port here.
    let studio = std::net::TcpListener::bind(("127.0.0.1", 54323));
    project.ok(&["start"]);
    assert_eq!(project.status()["MAILPIT_SMTP_PORT"], smtp.to_string());
    let greeting = tokio::task::spawn_blocking(move || {
        use std::io::BufRead as _;
        let stream = std::net::TcpStream::connect(("127.0.0.1", smtp)).expect("a connection");
        let mut line = String::new();
        std::io::BufReader::new(stream).read_line(&mut line).map(|_| line)
    });
    assert!(greeting.await.expect("a thread").expect("a line").starts_with("220 "));
    drop(studio);
}

#[actix_web::test]
async fn a_failing_migration_ends_the_start_with_its_position_and_what_was_applied() {
    let project = Project::new(
        "broken",
        "",
        &[
            ("supabase/migrations/1_good.sql", "create table good ();"),
            ("supabase/migrations/2_bad.sql", "create table half ();\n\nselect missing();\n"),
        ],
    );
    let (success, _, told) = project.run(&["start"]);
    assert!(!success);
    assert!(told.contains("2_bad.sql:3: function missing() does not exist"), "{told}");
    assert!(
        told.contains("applied before it: 1 file(s), the last 1_good.sql; fix it and run 'ferrobase start'"),
        "{told}"
    );
    // After the file is fixed, the next start continues there.
    project.write("supabase/migrations/2_bad.sql", "create table whole ();");
    project.ok(&["start"]);
    assert_eq!(project.one("select to_regclass('whole') is not null and to_regclass('half') is null").await, "t");
    // The data folder belongs to this project only.
    project.ok(&["stop"]);
    let config = std::fs::read_to_string(project.root.join("supabase/config.toml")).expect("a file");
    project.write("supabase/config.toml", &config.replace("broken", "another"));
    let (success, _, told) = project.run(&["start"]);
    assert!(!success && told.contains("was made by the project 'broken'"), "{told}");
    project.write("supabase/config.toml", &config);
}

/// pg_jsonschema, keyword by keyword.
async fn schemas_of_json_are_judged(project: &Project) {
    let references = r##"{"$defs": {"n": {"type": "integer"}, "t/x": {"properties": {"next": {"$ref": "#/$defs/t~1x"}, "n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/t~1x"}"##;
    let cases: [(&str, &str, usize); 31] = [
        ("true", "1", 0),
        ("false", "1", 1),
        (r#"{"type": ["string", "null"]}"#, "null", 0),
        (r#"{"type": "integer"}"#, "1.0", 0),
        (r#"{"type": "integer"}"#, "1.5", 1),
        (r#"{"enum": [1, "a"]}"#, r#""b""#, 1),
        (r#"{"const": {"a": 1}}"#, r#"{"a": 1.0}"#, 0),
        (r#"{"minimum": 1, "exclusiveMaximum": 3, "multipleOf": 0.5}"#, "2.5", 0),
        (r#"{"minimum": 1, "exclusiveMaximum": 3}"#, "3", 1),
        (r#"{"minimum": 1}"#, r#""no number""#, 0),
        (r#"{"minLength": 2, "maxLength": 3, "pattern": "^é"}"#, r#""éé""#, 0),
        (r#"{"minLength": 3, "pattern": "^a"}"#, r#""éé""#, 2),
        (r#"{"items": {"type": "number"}, "minItems": 1, "uniqueItems": true}"#, "[1, 2]", 0),
        (r#"{"items": {"type": "number"}, "uniqueItems": true}"#, r#"["a", "a"]"#, 3),
        (r#"{"prefixItems": [{"type": "string"}], "items": false}"#, r#"["a"]"#, 0),
        (r#"{"items": [{"type": "string"}], "additionalItems": false}"#, r#"["a", 1]"#, 1),
        (r#"{"contains": {"type": "string"}, "maxContains": 1}"#, r#"[1, "a"]"#, 0),
        (r#"{"contains": {"type": "string"}}"#, "[1]", 1),
        (
            r#"{"required": ["a"], "properties": {"a": {"type": "string"}}, "additionalProperties": false}"#,
            r#"{"a": "x"}"#,
            0,
        ),
        (r#"{"required": ["a", "b"], "additionalProperties": false}"#, r#"{"c": 1}"#, 3),
        (
            r#"{"patternProperties": {"^x_": {"type": "number"}}, "additionalProperties": {"type": "string"}}"#,
            r#"{"x_a": 1, "b": 2}"#,
            1,
        ),
        (r#"{"propertyNames": {"maxLength": 1}, "maxProperties": 1}"#, r#"{"aa": 1}"#, 1),
        (r#"{"dependentRequired": {"a": ["b"]}}"#, r#"{"a": 1}"#, 1),
        (r#"{"allOf": [{"type": "number"}, {"minimum": 3}]}"#, "2", 1),
        (r#"{"anyOf": [{"type": "number"}, {"type": "string"}]}"#, "null", 1),
        (r#"{"oneOf": [{"minimum": 1}, {"minimum": 2}]}"#, "3", 1),
        (r#"{"not": {"type": "string"}}"#, r#""a""#, 1),
        (r#"{"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 5}}"#, "4", 1),
        (r#"{"if": {"type": "string"}, "then": {"minLength": 2}}"#, r#""a""#, 1),
        (references, r#"{"next": {"next": {"n": "x"}}}"#, 1),
        (references, r#"{"next": {"next": {"n": 1}}}"#, 0),
    ];
    let list = |of: fn(&(&str, &str, usize)) -> String| cases.iter().map(of).collect::<Vec<_>>().join(", ");
    let (schemas, instances) =
        (list(|(schema, ..)| format!("'{schema}'")), list(|(_, instance, _)| format!("'{instance}'")));
    let counts = project
        .one(&format!(
            "select string_agg(concat(cardinality(extensions.jsonschema_validation_errors(schema::json, instance::json)),
               case when extensions.jsonb_matches_schema(schema::json, instance::jsonb) then '+' else '-' end), ' ' order by at)
             from unnest(array[{schemas}], array[{instances}]) with ordinality as judged (schema, instance, at)"
        ))
        .await;
    let expected = cases.map(|(_, _, count)| format!("{count}{}", if count == 0 { '+' } else { '-' })).join(" ");
    assert_eq!(counts, expected);
    let valid = "select concat_ws(' ', extensions.jsonschema_is_valid('{\"type\": \"nothing\"}'),
                   extensions.jsonschema_is_valid('{\"properties\": {\"a\": {\"minLength\": 1}}}'),
                   extensions.jsonschema_is_valid('{\"properties\": {\"a\": {\"minLength\": -1}}}'))";
    assert_eq!(project.one(valid).await, "f t f");
    let kept = "with kept as (insert into shapes values ('{}') returning 1) select count(*) from kept";
    assert_eq!(project.one(kept).await, "1");
}

/// Objects that public projects' migrations create, and how they work here.
#[actix_web::test]
async fn supabases_extensions_work() {
    let project = Project::new(
        "extensions",
        "[db.vault]\nstripe = \"env(STRIPE)\"\nunset = \"env(NOT_THERE)\"\n[storage.buckets.files]\npublic = false\n",
        &[
            (".env", "STRIPE=sk_test\n"),
            (
                "supabase/migrations/1_extensions.sql",
                "create extension if not exists pg_cron with schema extensions;\n\
                 create extension if not exists pg_net with schema extensions;\n\
                 create extension if not exists \"pgjwt\" with schema extensions;\n\
                 create extension if not exists pgmq;\ncreate extension if not exists http with schema extensions;\n\
                 create extension if not exists pg_graphql;\ncreate extension if not exists pgsodium;\n\
                 create extension if not exists moddatetime schema extensions;\n\
                 create extension index_advisor with schema extensions cascade;\n\
                 create extension plpgsql_check with schema extensions;\ncreate extension pg_jsonschema with schema extensions;\n\
                 create extension pg_hashids with schema extensions;\n\
                 create table shapes (body jsonb check (extensions.jsonb_matches_schema('{\"type\": \"object\"}', body)));\n\
                 create function grab() returns trigger language plpgsql as $$ begin\n\
                   if (select rolsuper from pg_roles where rolname = current_user) then alter role postgres superuser; end if;\n\
                   return new; end $$;\n\
                 create trigger grab before insert on storage.buckets for each row execute function grab();\n\
                 create table ticks (at timestamptz default now());\n\
                 create table orders (id int primary key);\n\
                 create trigger on_order after insert on orders for each row execute function\n\
                   supabase_functions.http_request('http://host.docker.internal:API/rest/v1/rpc/hook', 'POST',\n\
                     '{\"Content-Type\":\"application/json\"}', '{}', '5000');\n\
                 create table hooked (body json);\n\
                 create function hook(json) returns void language sql security definer as\n\
                   $$ insert into public.hooked values ($1) $$;\n\
                 select cron.schedule('tick', '1 second', 'insert into public.ticks default values');\n",
            ),
        ],
    );
    let path = "supabase/migrations/1_extensions.sql";
    let text = std::fs::read_to_string(project.root.join(path)).expect("a file");
    project.write(path, &text.replace("API", &project.api.to_string()));
    project.ok(&["start"]);
    assert_eq!(
        project.one("select string_agg(name || '=' || decrypted_secret, ',') from vault.decrypted_secrets").await,
        "stripe=sk_test"
    );
    assert_eq!(project.one("select valid from extensions.verify(extensions.sign('{}', 's'), 's')").await, "t");
    let buckets =
        "select count(*) || ' ' || bool_or(rolsuper) from storage.buckets, pg_roles where rolname = 'postgres'";
    assert_eq!(project.one(buckets).await, "1 false", "a declared bucket is made with its owner's rights");
    schemas_of_json_are_judged(&project).await;
    crate::project_extensions::numbers_become_the_texts_of_hashids(&project).await;
    let advice = "select array_to_string(errors, ',') || (total_cost_before > '0'::jsonb) || coalesce(total_cost_after::text, ' none')
                  from extensions.index_advisor('select * from orders where id = $1')";
    assert_eq!(project.one(advice).await, "hypothetical indexes are not served here, so no index is advisedtrue none");
    // The real one checks; see `project_commands`.
    let has_check = crate::project_commands::installed("extensions/extension/plpgsql_check.control").is_some();
    let interfaces = ["hypopg_create_index('create index on orders (id)')", "plpgsql_check_function('public.grab()')"];
    for refused in &interfaces[..if has_check { 1 } else { 2 }] {
        let tried = format!(
            "create function tried() returns text language plpgsql as $$ begin perform * from extensions.{refused}; return 'done';
             exception when feature_not_supported then return sqlerrm; end $$"
        );
        project.one(&tried).await;
        let told = project.one("select tried()").await;
        assert!(told.ends_with("here"), "{refused}: {told}");
        project.one("drop function tried").await;
    }
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let examined = project.command(&["doctor"]).env("DATABASE_URL", url).output().expect("it runs");
    let told = String::from_utf8_lossy(&examined.stdout).into_owned();
    let unserved = ["hypopg: HypoPG: hypothetical indexes (not served", "pg_graphql: ", "plpgsql_check: "];
    for word in &unserved[..unserved.len() - usize::from(has_check)] {
        assert!(told.contains(&format!("the extension {word}")), "{told}");
    }
    assert!(!told.contains("the extension pg_jsonschema"), "{told}");
    let (_, told) = project.ok(&["db", "lint"]);
    assert_eq!(!told.contains("plpgsql_check is not installed on the database's server"), has_check, "{told}");
    project.one("insert into orders values (7)").await;
    let begun = std::time::Instant::now();
    loop {
        let hooked = project.one("select body -> 'record' ->> 'id' from hooked").await;
        let ticks: i64 = project.one("select count(*) from ticks").await.parse().expect("a number");
        let runs = project.one("select count(*) > 0 from cron.job_run_details where status = 'succeeded'").await;
        if hooked == "7" && ticks > 1 && runs == "t" {
            break;
        }
        assert!(
            begun.elapsed().as_secs() < 60,
            "{hooked} {ticks} {runs} {}",
            project.one("select array_agg(r) from net._http_response r").await
        );
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Calls a function. Returns the status, whether the relay answered, and the body.
async fn invoke(project: &Project, path: &str, token: &str, body: Option<&str>) -> (u16, bool, String) {
    let url = format!("http://127.0.0.1:{}/functions/v1/{path}", project.api);
    let mut request = reqwest::Client::new().post(url);
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_owned());
    }
    let answer = request.send().await.expect("an answer");
    let is_relay = answer.headers().get("x-relay-error").is_some_and(|value| value == "true");
    (answer.status().as_u16(), is_relay, answer.text().await.expect("a body"))
}

/// Two concurrent requests with distinguishable log lines.
async fn logs_name_the_request(project: &Project) {
    let url = format!("http://127.0.0.1:{}/functions/v1/open", project.api);
    let call = async |id: &'static str| {
        let request = reqwest::Client::new().post(&url).header("x-request-id", id).body(format!("from {id}"));
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 200);
    };
    futures_util::join!(call("request-one"), call("request-two"));
    let log = project.root.join(".ferrobase/server.log");
    let begun = std::time::Instant::now();
    loop {
        let text = std::fs::read_to_string(&log).expect("a log");
        let of = |words: &str| text.lines().find(|line| line.contains(words)).unwrap_or_default();
        let is_named = ["request-one", "request-two"].iter().all(|id| {
            ["[Info] from", "[Error] forgets from"].iter().all(|words| {
                let line = of(&format!("{words} {id}"));
                line.contains(&format!("request_id=\"{id}\"")) && line.contains("function=\"open\"")
            })
        });
        if is_named && of("begun by nobody").contains("function") && !of("begun by nobody").contains("request_id") {
            return;
        }
        assert!(begun.elapsed().as_secs() < 30, "{text}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// What the runtime tells of itself.
async fn metrics(project: &Project) -> Value {
    let (code, body) = project.get("/functions/v1/_internal/metric", "").await;
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

#[actix_web::test]
async fn edge_functions_run_on_deno_in_separate_processes() {
    let hello = |word: &str| {
        format!(
            "import {{ greeting }} from '../_shared/words.ts';\nimport name from 'named';\n\
             Deno.serve(async (request) => {{\n  const {{ pathname, searchParams }} = new URL(request.url);\n\
             if (pathname.endsWith('/throw')) throw new Error('boom');\n\
             if (pathname.endsWith('/heap')) {{ const all = []; while (true) all.push(new Array(1e6).fill(Math.random())); }}\n\
             if (pathname.endsWith('/cpu')) while (true) {{ Math.sqrt(Math.random()); }}\n\
             const text = await request.text();\n\
             const input = text ? JSON.parse(text) : null;\n\
             return Response.json({{ word: greeting('{word}'), name, pathname, q: searchParams.get('q'), input,\n\
               secret: Deno.env.get('MY_SECRET'), url: Deno.env.get('SUPABASE_URL'), home: Deno.env.get('HOME') ?? null }});\n}});\n"
        )
    };
    let project = Project::new(
        "functions",
        "[functions.open]\nverify_jwt = false\n",
        &[
            ("supabase/functions/_shared/words.ts", "export const greeting = (word: string): string => `${word}!`;"),
            ("supabase/functions/hello/index.ts", &hello("hi")),
            ("supabase/functions/hello/deno.json", "{\"imports\": {\"named\": \"./name.ts\"}}"),
            ("supabase/functions/hello/name.ts", "export default 'from the import map';"),
            ("supabase/functions/.env", "MY_SECRET=s3cret\nSUPABASE_URL=ignored\n"),
            (
                "supabase/functions/open/index.ts",
                "console.log('begun by nobody');\n\
                 export default { fetch: async (request) => { const text = await request.text();\n\
                 console.log('hears\\n' + text); await new Promise((done) => setTimeout(done, 20)); console.warn(`forgets ${text}`);\n\
                 return answer(); } };\nconst answer = () => new Response(new ReadableStream({ async start(c) {\n\
                 for (const part of ['one ', 'two ', 'three']) { c.enqueue(new TextEncoder().encode(part)); \
                 await new Promise((done) => setTimeout(done, 20)); } c.close(); } }), \
                 { headers: { 'content-type': 'text/event-stream', 'x-relay-error': 'true' } });",
            ),
            (
                "supabase/functions/keyless/index.ts",
                "if (!Deno.env.get(\"NOT_THERE\")) throw new Error(\"no key\");\nDeno.serve(() => new Response(\"never\"));\n",
            ),
            ("supabase/functions/broken/index.ts", "import './missing.ts';\nDeno.serve(() => new Response());"),
            (
                "supabase/migrations/1_f.sql",
                "create function functions.open_pg(jsonb) returns jsonb language sql as $$ select '\"pg\"'::jsonb $$;",
            ),
        ],
    );
    project.ok(&["start"]);
    let status = project.status();
    let key = status["ANON_KEY"].as_str().expect("a key").to_owned();
    let (code, is_relay, body) = invoke(&project, "hello/deep?q=1", &key, Some("{\"a\":[1]}")).await;
    let reply: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{code} {body}"));
    assert_eq!((code, is_relay), (200, false), "{body}");
    assert_eq!(
        reply,
        serde_json::json!({ "word": "hi!", "name": "from the import map", "pathname": "/hello/deep", "q": "1",
            "input": { "a": [1] }, "secret": "s3cret", "url": format!("http://127.0.0.1:{}", project.api), "home": null })
    );
    assert_eq!(
        project.get("/functions/v1/_internal/health", "").await,
        (200, r#"{"message":"ok"}"#.to_owned()),
        "as Supabase's runtime answers"
    );
    // The call, the question above and this one, which is not answered yet.
    let figures = metrics(&project).await;
    let counted = |figures: &Value| {
        ["activeUserWorkers", "retiredUserWorkers", "receivedRequests", "handledRequests"]
            .map(|what| figures[format!("{what}Count")].as_u64().expect("a count"))
    };
    assert_eq!(counted(&figures), [1, 0, 3, 2]);
    assert_eq!(
        (&figures["eventWorkerHeapStats"], &figures["mainWorkerHeapStats"]["usedHeapSize"]),
        (&Value::Null, &0.into())
    );
    // A token is required unless configured otherwise; the relay's own errors are marked.
    let (code, is_relay, body) = invoke(&project, "hello", "", None).await;
    assert_eq!(
        (code, is_relay, body.as_str()),
        (401, true, r#"{"code":401,"message":"Missing authorization header"}"#)
    );
    assert_eq!(invoke(&project, "hello", "no.such.token", None).await.0, 401);
    assert_eq!(invoke(&project, "open", "", None).await, (200, false, "one two three".to_owned()));
    assert_eq!(invoke(&project, "open_pg", &key, None).await.2, "\"pg\"", "PostgreSQL functions are served beside");
    logs_name_the_request(&project).await;
    let (code, is_relay, body) = invoke(&project, "nowhere", &key, None).await;
    assert_eq!((code, is_relay), (404, true), "{body}");
    let (code, is_relay, body) = invoke(&project, "broken", &key, None).await;
    assert_eq!((code, is_relay), (503, true), "{body}");
    assert!(body.contains("BOOT_ERROR"), "{body}");
    // One that throws when it is loaded is not waited for.
    let begun = std::time::Instant::now();
    let (code, is_relay, body) = invoke(&project, "keyless", &key, None).await;
    assert_eq!((code, is_relay, body.contains("BOOT_ERROR")), (503, true, true), "{body}");
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    let (code, is_relay, body) = invoke(&project, "hello/throw", &key, None).await;
    assert_eq!((code, is_relay, body.as_str()), (500, false, "Internal Server Error"));
    // Exceeding a limit ends only that request, and the next one gets a new process.
    for path in ["hello/heap", "hello/cpu"] {
        let (code, is_relay, body) = invoke(&project, path, &key, None).await;
        assert_eq!((code, is_relay), (546, true), "{path}: {body}");
    }
    assert_eq!(invoke(&project, "hello", &key, None).await.0, 200);
    // `hello` and `open` have a process each, and two of `hello` were over a limit. Those that did not begin do not count.
    let begun = std::time::Instant::now();
    while counted(&metrics(&project).await)[..2] != [2, 2] {
        assert!(begun.elapsed().as_secs() < 30, "{}", metrics(&project).await);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    // A changed file is used within a second.
    project.write("supabase/functions/hello/index.ts", &hello("bye"));
    let begun = std::time::Instant::now();
    while !invoke(&project, "hello", &key, None).await.2.contains("bye!") {
        assert!(begun.elapsed().as_secs() < 30, "the change is not served");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
