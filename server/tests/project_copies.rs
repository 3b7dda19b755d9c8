//! `ferrobase test -- COMMAND` and `ferrobase start --ephemeral`: temporary copies of a project.

use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::support::cluster::place;

/// A project's folder, and beside it the folder for its copies.
struct Project {
    root: PathBuf,
    copies: PathBuf,
}

const FILES: [(&str, &str); 4] = [
    (
        "supabase/config.toml",
        "project_id = \"copied\"\n[storage.buckets.avatars]\npublic = true\nobjects_path = \"./avatars\"\n",
    ),
    (
        "supabase/migrations/1_tasks.sql",
        "create table tasks (id int generated always as identity primary key, title text not null);\n\
         alter table tasks enable row level security;\ncreate policy everybody on tasks using (true) with check (true);\n",
    ),
    ("supabase/seed.sql", "insert into tasks (title) values ('from the seed');\n"),
    ("supabase/avatars/one.txt", "a picture"),
];

impl Project {
    fn new(name: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = place().join(format!("ferrobase-copies-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let project = Self { root: folder.join("project"), copies: folder.join("tmp") };
        std::fs::create_dir_all(&project.copies).expect("a folder");
        for path in [&folder, &project.copies] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        for (path, text) in FILES {
            project.write(path, text);
        }
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
        command.args(arguments).current_dir(&self.root).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TMPDIR", &self.copies);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().expect("the binary runs")
    }

    /// A copy that is served until its handle is dropped.
    fn copy(&self) -> Copy {
        let mut child = self.spawn(&["start", "--ephemeral", "--output", "json", "--until-eof"]);
        let printed = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut values = serde_json::Deserializer::from_reader(printed).into_iter::<Value>();
        let status = values.next().expect("a status").expect("JSON");
        Copy { child, status }
    }

    /// The folders of existing copies.
    fn folders(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.copies).expect("a folder").flatten().map(|entry| entry.path()).collect()
    }

    fn is_clean(&self) -> bool {
        self.folders().is_empty() && processes_below(&self.copies).is_empty()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.root.parent().expect("a folder"));
    }
}

struct Copy {
    child: Child,
    status: Value,
}

impl Copy {
    fn text(&self, key: &str) -> &str {
        self.status[key].as_str().expect(key)
    }

    async fn titles(&self) -> String {
        let url = format!("{}/rest/v1/tasks?select=title&order=id", self.text("API_URL"));
        let answer = reqwest::Client::new().get(url).header("apikey", self.text("ANON_KEY")).send().await;
        answer.expect("an answer").text().await.expect("a body")
    }

    async fn add(&self, title: &str) -> u16 {
        let url = format!("{}/rest/v1/tasks", self.text("API_URL"));
        let request = reqwest::Client::new().post(url).header("apikey", self.text("ANON_KEY"));
        request.json(&serde_json::json!({ "title": title })).send().await.expect("an answer").status().as_u16()
    }

    /// Closes the pipe, as the end of the starting program does, and waits.
    fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes working below a folder, as PostgreSQL's do in their data directory.
fn processes_below(folder: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .collect()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid")
}

#[actix_web::test]
async fn a_command_gets_a_copy_and_its_exit_code_is_returned() {
    let project = Project::new("command");
    let (code, _, told) =
        project.run(&["test", "--", "sh", "-c", "env > env.txt; test -d $FERROBASE_TEST_FOLDER/db && exit 7"]);
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains("Applying migration 1_tasks.sql...") && told.contains("Preparing a template"), "{told}");
    assert!(project.is_clean(), "{:?}", project.folders());
    let text = std::fs::read_to_string(project.root.join("env.txt")).expect("a file");
    let found: std::collections::BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    for prefix in ["", "VITE_", "NEXT_PUBLIC_", "PUBLIC_", "EXPO_PUBLIC_"] {
        for name in ["SUPABASE_URL", "SUPABASE_ANON_KEY", "SUPABASE_PUBLISHABLE_KEY"] {
            assert_eq!(found.get(format!("{prefix}{name}").as_str()), Some(&found[name]), "{prefix}{name}");
        }
    }
    for name in ["SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SECRET_KEY", "SUPABASE_JWT_SECRET", "SUPABASE_DB_URL"] {
        let holders: Vec<&str> =
            found.iter().filter(|(_, value)| **value == found[name]).map(|(name, _)| *name).collect();
        assert_eq!(holders, [name], "a key that passes every policy has one name");
    }
    let smtp: u16 = found["MAILPIT_SMTP_PORT"].parse().expect("a port");
    assert!(smtp != 0 && !found["MAILPIT_URL"].ends_with(&smtp.to_string()), "{text}");
    assert!(
        found["SUPABASE_URL"].starts_with("http://127.0.0.1:") && !found["SUPABASE_URL"].ends_with(":54321"),
        "{text}"
    );

    // A second start uses the template and applies nothing. A signal's exit code is the same as in shells.
    let (code, _, told) = project.run(&["test", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((code, told.as_str()), (Some(137), ""));
    // A template of another version, and half of one, as from a CI cache.
    let templates = project.root.join(".ferrobase/templates");
    let template =
        std::fs::read_dir(&templates).expect("a folder").flatten().find(|e| e.path().is_dir()).expect("one").path();
    std::fs::write(template.join("db/PG_VERSION"), "14\n").expect("a file");
    let (code, _, told) = project.run(&["test", "--", "true"]);
    assert_eq!((code, told.lines().count()), (Some(1), 1), "{told}");
    assert!(told.contains("is of PostgreSQL 14") && told.contains(&templates.display().to_string()), "{told}");
    assert!(project.is_clean(), "{:?}", project.folders());
    std::fs::remove_file(template.join("db/PG_VERSION")).expect("a file");
    let (code, _, told) = project.run(&["test", "--", "true"]);
    assert!(code == Some(0) && told.starts_with("The template of this project is incomplete"), "{code:?} {told}");
    let (code, _, told) = project.run(&["test", "--", "/no/such/program"]);
    assert_eq!(code, Some(127));
    assert!(told.starts_with("ferrobase: cannot run '/no/such/program': ") && told.lines().count() == 1, "{told}");
    for wrong in [&["test", "--nonsense", "--", "true"][..], &["test"], &["start", "--until-eof"]] {
        let (code, _, told) = project.run(wrong);
        assert_eq!((code, told.lines().count()), (Some(2), 1), "{wrong:?} {told}");
    }

    // Another seed needs another template. A failing one leaves nothing.
    project.write("supabase/seed.sql", "insert into nowhere values (1);\n");
    let (code, _, told) = project.run(&["test", "--", "true"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("seed.sql:1: relation \"nowhere\" does not exist"), "{told}");
    assert!(project.is_clean(), "{:?}", project.folders());
    let kept = || std::fs::read_dir(project.root.join(".ferrobase/templates")).expect("a folder").flatten().count();
    assert_eq!(kept(), 2, "the lock and one template");

    // On SIGTERM, it first ends the command.
    project.write("supabase/seed.sql", FILES[2].1);
    let mut child = project.spawn(&[
        "test",
        "--",
        "sh",
        "-c",
        "trap 'echo told; exit 3' TERM; echo up > up; while :; do sleep 0.1; done",
    ]);
    until("the command runs", || project.root.join("up").exists()).await;
    kill_process(pid(&child), Signal::TERM).expect("a signal");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    assert!(project.is_clean(), "{:?}", project.folders());
}

#[actix_web::test]
async fn copies_run_side_by_side_and_are_always_removed() {
    let project = Project::new("beside");
    let (one, two) = std::thread::scope(|scope| {
        let other = scope.spawn(|| project.copy());
        (project.copy(), other.join().expect("a copy"))
    });
    let seed = r#"[{"title":"from the seed"}]"#;
    assert_eq!((one.titles().await, two.titles().await), (seed.to_owned(), seed.to_owned()));
    assert_eq!(one.add("mine").await, 201);
    assert_eq!(one.titles().await, "[{\"title\":\"from the seed\"}, \n {\"title\":\"mine\"}]");
    assert_eq!(two.titles().await, seed, "each has a database of its own");
    let file = format!("{}/storage/v1/object/public/avatars/one.txt", two.text("API_URL"));
    assert_eq!(reqwest::get(file).await.expect("an answer").text().await.expect("a body"), "a picture");
    // Many people sign up from one address, and no rate limit applies.
    for number in 0..40 {
        let url = format!("{}/auth/v1/token?grant_type=password", one.text("API_URL"));
        let wrong = serde_json::json!({ "email": "a@b.example", "password": format!("wrong {number}") });
        let answer = reqwest::Client::new().post(url).header("apikey", one.text("ANON_KEY")).json(&wrong).send().await;
        assert_eq!(answer.expect("an answer").status().as_u16(), 400, "{number}");
    }
    assert_eq!(one.end(), Some(0));
    assert_eq!(project.folders().len(), 1);

    // After a kill, only the server can clean up.
    kill_process(pid(&two.child), Signal::KILL).expect("a signal");
    until("the server of a killed start tidies up", || project.is_clean()).await;
    let mut child = project.spawn(&["test", "--", "sh", "-c", "echo $$ > pid; exec sleep 1000"]);
    until("the command runs", || {
        std::fs::read_to_string(project.root.join("pid")).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    let command = std::fs::read_to_string(project.root.join("pid")).expect("a file").trim().parse().expect("a pid");
    kill_process(pid(&child), Signal::KILL).expect("a signal");
    child.wait().expect("it has ended");
    until("a killed run is tidied up", || project.is_clean()).await;
    until("its command ends", || Pid::from_raw(command).is_none_or(|pid| test_kill_process(pid).is_err())).await;

    // If both are killed, the next start cleans up, and keeps what is in use.
    let other = project.copy();
    let in_use = project.folders();
    let killed = project.copy();
    let folder = project.folders().into_iter().find(|folder| !in_use.contains(folder)).expect("its folder");
    let server = std::fs::read_to_string(folder.join("server.lock")).expect("a lock").trim().parse().expect("a pid");
    for pid in [Pid::from_raw(server).expect("a pid"), pid(&killed.child)] {
        kill_process(pid, Signal::KILL).expect("a signal");
    }
    drop(killed);
    until("both have ended", || std::fs::File::open(folder.join("use.lock")).is_ok_and(|lock| lock.try_lock().is_ok()))
        .await;
    let third = project.copy();
    assert!(!folder.exists() && processes_below(&folder).is_empty(), "the leftovers are gone");
    assert_eq!(other.titles().await, seed);
    // A killed server is reported, and its remains are removed.
    let server = project.folders().into_iter().find(|folder| !in_use.contains(folder)).expect("its folder");
    let server = std::fs::read_to_string(server.join("server.lock")).expect("a lock").trim().parse().expect("a pid");
    kill_process(Pid::from_raw(server).expect("a pid"), Signal::KILL).expect("a signal");
    let mut third = third;
    // Waiting closes the pipe, which would be an orderly end.
    let pipe = third.child.stdin.take();
    assert_eq!(third.child.wait().expect("it ends").code(), Some(1));
    drop((pipe, third, other));
    until("everything is tidied up", || project.is_clean()).await;
}

/// The complete content of the database: rows, sequences, columns, policies, functions and roles.
const DUMP: &str = "
    select string_agg(line, E'\\n' order by line) from (
      select format('%s.%s %s', schemaname, tablename,
                    query_to_xml(format('select * from %I.%I t order by t::text', schemaname, tablename), true, false, '')) as line
        from pg_tables where schemaname not in ('pg_catalog', 'information_schema')
                         and (schemaname, tablename) <> ('realtime', 'subscription')
      union all select format('sequence %s.%s %s', schemaname, sequencename, last_value) from pg_sequences
      union all select format('column %s.%s %s %s', attrelid::regclass, attname, atttypid::regtype, attacl)
        from pg_attribute where attrelid >= 16384 and attnum > 0
      union all select format('policy %s %s %s', tablename, policyname, qual) from pg_policies
      union all select format('function %s %s', oid::regprocedure, md5(prosrc)) from pg_proc where oid >= 16384
      union all select format('role %s', a) from pg_authid a
      union all select format('member %s %s %s', roleid::regrole, member::regrole, admin_option) from pg_auth_members
      union all select format('comment %s %s', classoid::regclass, description) from pg_shdescription
        where classoid = 'pg_authid'::regclass or objoid = (select oid from pg_database where datname = 'postgres')
      union all select format('database %s %s', datname, datacl) from pg_database where datname not like 'ferrobase%'
      union all select format('setting %s', setconfig) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
        where datname = 'postgres'
      union all select format('slot %s', count(*)) from pg_replication_slots where not temporary
    ) lines";

impl Copy {
    async fn superuser(&self) -> tokio_postgres::Client {
        let url = self.text("DB_URL").replace("//postgres:", "//supabase_admin:");
        crate::support::cluster::connect(&url).await
    }

    async fn dump(&self) -> String {
        self.superuser().await.query_one(DUMP, &[]).await.expect("a dump").get(0)
    }

    /// Sends a mail as an app does.
    async fn receive_mail(&self) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let port: u16 = self.text("MAILPIT_SMTP_PORT").parse().expect("a port");
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
        let mail =
            "EHLO me\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nSubject: Hi\r\n\r\n.\r\nQUIT\r\n";
        stream.write_all(mail.as_bytes()).await.expect("sent");
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await.expect("answers");
        assert!(heard.contains("queued as"), "{heard}");
        let found = reqwest::get(format!("{}/api/messages?to=c@d.example", self.text("MAILPIT_URL"))).await;
        assert!(found.expect("mails").text().await.expect("JSON").contains("\"Hi\""));
    }

    async fn reset(&self) -> (u16, String) {
        self.post("/ferrobase/v1/reset", "SECRET_KEY", "").await
    }

    async fn post(&self, path: &str, key: &str, body: &str) -> (u16, String) {
        let request = reqwest::Client::new().post(format!("{}{path}", self.text("API_URL")));
        let request =
            request.header("apikey", self.text(key)).header("authorization", format!("Bearer {}", self.text(key)));
        let answer = request.header("content-type", "application/json").body(body.to_owned()).send().await;
        let answer = answer.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }
}

#[actix_web::test]
async fn a_reset_restores_the_state_of_a_fresh_start() {
    let project = Project::new("reset");
    project.write("supabase/roles.sql", "create role reporter nologin;\nalter role reporter set work_mem = '8MB';");
    let copy = project.copy();
    let fresh = copy.dump().await;
    assert!(fresh.contains("from the seed") && fresh.contains("app.settings.jwt_secret"), "{fresh}");
    assert!(
        !fresh.contains("/storage/v1/object/avatars"),
        "filling the buckets is no change by an administrator: {fresh}"
    );
    let socket = format!(
        "{}/realtime/v1/websocket?apikey={}&vsn=1.0.0",
        copy.text("API_URL").replace("http:", "ws:"),
        copy.text("ANON_KEY")
    );
    let (mut socket, _) = tokio_tungstenite::connect_async(socket).await.expect("a socket");
    let log = std::fs::read_to_string(project.folders()[0].join("server.log")).expect("a log");
    assert!(!log.contains("unknown setting"), "{log}");
    for round in 0..3 {
        let owner = crate::support::cluster::connect(copy.text("DB_URL")).await;
        let changes = "insert into tasks (title) values ('mine'); alter table tasks rename column title to name;
             create table public.later (id int); drop policy everybody on tasks; create role passer_by;
             alter role reporter set work_mem = '9MB'; grant select on tasks to passer_by; comment on role reporter is 'mine';
             grant reporter to passer_by; alter role reporter with password 'secret' login; alter role reporter rename to teller;
             create role reporter; comment on database postgres is 'mine';
             alter database postgres set statement_timeout = '1h'; create function public.later() returns int language sql as 'select 1'";
        owner.batch_execute(changes).await.expect("changes");
        owner.batch_execute("create database other").await.expect("another database");
        let person = r#"{"email":"a@b.example","password":"secret words"}"#;
        assert_eq!(copy.post("/auth/v1/signup", "ANON_KEY", person).await.0, 200, "{round}");
        assert_eq!(copy.post("/auth/v1/recover", "ANON_KEY", r#"{"email":"a@b.example"}"#).await.0, 200);
        copy.receive_mail().await;
        let (uploaded, told) = copy.post("/storage/v1/object/avatars/two.txt", "SECRET_KEY", "two").await;
        assert_eq!(uploaded, 200, "{told}");
        assert_ne!(copy.dump().await, fresh);
        if round == 0 {
            assert_eq!(copy.post("/ferrobase/v1/reset", "ANON_KEY", "").await.0, 401);
            assert_eq!(copy.reset().await, (204, String::new()));
        } else {
            // Two concurrent resets run one after the other.
            let (one, two) = tokio::join!(copy.reset(), copy.reset());
            assert_eq!((one, two), ((204, String::new()), (204, String::new())));
        }
        // The schema is loaded again, and only the seed's row is left.
        assert_eq!(copy.titles().await, r#"[{"title":"from the seed"}]"#, "{round}");
        let public = format!("{}/storage/v1/object/public/avatars/", copy.text("API_URL"));
        assert_eq!(reqwest::get(format!("{public}one.txt")).await.expect("an answer").status(), 200);
        assert_eq!(reqwest::get(format!("{public}two.txt")).await.expect("an answer").status(), 400);
        assert_eq!(
            reqwest::get(format!("{}/api/messages", copy.text("MAILPIT_URL")))
                .await
                .expect("mails")
                .text()
                .await
                .expect("JSON"),
            "[]"
        );
        let found = copy.dump().await;
        let new: Vec<&str> = found.lines().filter(|line| !fresh.contains(line)).collect();
        let gone: Vec<&str> = fresh.lines().filter(|line| !found.contains(line)).collect();
        assert!(found == fresh, "new: {new:#?}, gone: {gone:#?}");
        let heartbeat = r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}"#;
        socket.send(tokio_tungstenite::tungstenite::Message::text(heartbeat)).await.expect("the socket is open");
        let answer = socket.next().await.expect("an answer").expect("a frame");
        assert!(answer.to_string().contains("\"ok\""), "{answer}");
    }
    // If the files cannot be restored, the reset fails, and the copy continues with the new database.
    let in_the_way = project.folders()[0].join("storage.former");
    let _ = std::fs::remove_dir_all(&in_the_way);
    std::fs::write(&in_the_way, "").expect("a file");
    assert_eq!(copy.reset().await.0, 500);
    assert_eq!(copy.titles().await, r#"[{"title":"from the seed"}]"#);
    std::fs::remove_file(&in_the_way).expect("the file");
    assert_eq!(copy.reset().await, (204, String::new()));
    drop(copy);

    let reset = format!("{} test reset", env!("CARGO_BIN_EXE_ferrobase"));
    let (code, _, told) = project.run(&["test", "--", "sh", "-c", &reset]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let (code, _, told) = project.run(&["test", "reset"]);
    assert_eq!(code, Some(1));
    assert!(told.starts_with("ferrobase: SUPABASE_URL is not set: ") && told.lines().count() == 1, "{told}");
    until("everything is tidied up", || project.is_clean()).await;
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// Joins a channel until it stays joined, then adds tasks until the channel receives one.
async fn hear_of_a_task(socket: &mut Socket, joins: &mut u32, add: impl AsyncFn()) {
    let mut is_to_join = true;
    loop {
        if is_to_join {
            *joins += 1;
            let join = serde_json::json!({
                "topic": "realtime:tasks", "event": "phx_join", "ref": joins.to_string(), "join_ref": joins.to_string(),
                "payload": {"config": {"postgres_changes": [{"event": "INSERT", "schema": "public", "table": "tasks"}]}},
            });
            socket
                .send(tokio_tungstenite::tungstenite::Message::text(join.to_string()))
                .await
                .expect("the socket is open");
            is_to_join = false;
        }
        let frame = tokio::time::timeout(Duration::from_secs(60), socket.next()).await.expect("a frame in time");
        let frame: Value =
            serde_json::from_str(&frame.expect("a frame").expect("the socket is open").to_string()).expect("JSON");
        let is_of_this_join = frame["ref"].as_str() == Some(&joins.to_string());
        match frame["event"].as_str() {
            Some("system")
                if frame["payload"]["extension"] == "postgres_changes" && frame["payload"]["status"] == "ok" =>
            {
                add().await;
            }
            Some("phx_reply") if is_of_this_join => is_to_join = frame["payload"]["status"] != "ok",
            Some("phx_error") => is_to_join = true,
            Some("postgres_changes") => {
                assert_eq!(frame["payload"]["data"]["record"]["title"], "mine", "{frame}");
                return;
            }
            _ => {}
        }
    }
}

/// `just bench test` does a hundred of these.
#[actix_web::test]
async fn repeated_resets_keep_sockets_open_and_allow_sign_in() {
    let project = Project::new("row");
    project.write("supabase/migrations/2_published.sql", "alter publication supabase_realtime add table tasks;");
    let copy = project.copy();
    let url = copy.text("API_URL").replace("http:", "ws:");
    let socket = format!("{url}/realtime/v1/websocket?apikey={}&vsn=1.0.0", copy.text("ANON_KEY"));
    let (mut socket, _) = tokio_tungstenite::connect_async(socket).await.expect("a socket");
    let mut joins = 0;
    for round in 0..12 {
        let person = r#"{"email":"a@b.example","password":"secret words"}"#;
        let (status, session) = copy.post("/auth/v1/signup", "ANON_KEY", person).await;
        assert_eq!(status, 200, "{round} {session}");
        let session: Value = serde_json::from_str(&session).expect("JSON");
        let token = session["access_token"].as_str().expect("a token");
        let add = async || {
            let request = reqwest::Client::new().post(format!("{}/rest/v1/tasks", copy.text("API_URL")));
            let request = request.header("apikey", copy.text("ANON_KEY")).bearer_auth(token);
            let answer = request.json(&serde_json::json!({ "title": "mine" })).send().await.expect("an answer");
            assert_eq!(answer.status().as_u16(), 201, "{round}");
        };
        hear_of_a_task(&mut socket, &mut joins, add).await;
        assert_eq!(copy.reset().await, (204, String::new()), "{round}");
        assert_eq!(copy.titles().await, r#"[{"title":"from the seed"}]"#, "{round}");
        let user = reqwest::Client::new().get(format!("{}/auth/v1/user", copy.text("API_URL")));
        let user = user.header("apikey", copy.text("ANON_KEY")).bearer_auth(token).send().await.expect("an answer");
        assert_eq!(user.status().as_u16(), 403, "the person is gone");
    }
    assert!(joins < 60, "{joins}");
}
