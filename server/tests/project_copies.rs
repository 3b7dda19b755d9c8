//! `ferrobase test -- COMMAND` and `ferrobase start --ephemeral`: copies of a project that nobody keeps.

use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

/// A project's folder, and beside it the folder in which its copies are made.
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
        let folder = std::env::temp_dir().join(format!("ferrobase-copies-{}-{name}", std::process::id()));
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

    /// A copy that is served until its handle is let go.
    fn copy(&self) -> Copy {
        let mut child = self.spawn(&["start", "--ephemeral", "--output", "json", "--until-eof"]);
        let printed = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut values = serde_json::Deserializer::from_reader(printed).into_iter::<Value>();
        let status = values.next().expect("a status").expect("JSON");
        Copy { child, status }
    }

    /// The folders of copies that are there.
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

/// Processes that work below a folder: PostgreSQL's do so in their data directory.
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
async fn a_command_finds_a_copy_in_its_environment_and_hands_on_its_exit_code() {
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
    assert!(
        found["SUPABASE_URL"].starts_with("http://127.0.0.1:") && !found["SUPABASE_URL"].ends_with(":54321"),
        "{text}"
    );

    // From the template, a second start applies nothing; a signal's number is handed on as shells do.
    let (code, _, told) = project.run(&["test", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((code, told.as_str()), (Some(137), ""));
    let (code, _, told) = project.run(&["test", "--", "/no/such/program"]);
    assert_eq!(code, Some(127));
    assert!(told.starts_with("ferrobase: cannot run '/no/such/program': ") && told.lines().count() == 1, "{told}");
    for wrong in [&["test", "--nonsense", "--", "true"][..], &["test"], &["start", "--until-eof"]] {
        let (code, _, told) = project.run(wrong);
        assert_eq!((code, told.lines().count()), (Some(2), 1), "{wrong:?} {told}");
    }

    // Another seed is another template; one that fails leaves nothing.
    project.write("supabase/seed.sql", "insert into nowhere values (1);\n");
    let (code, _, told) = project.run(&["test", "--", "true"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("seed.sql:1: relation \"nowhere\" does not exist"), "{told}");
    assert!(project.is_clean(), "{:?}", project.folders());
    let kept = || std::fs::read_dir(project.root.join(".ferrobase/templates")).expect("a folder").flatten().count();
    assert_eq!(kept(), 2, "the lock and one template");

    // Told to end, it ends the command first.
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
async fn copies_run_beside_each_other_and_are_gone_however_they_end() {
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
    // Hundreds of people come from one address, and nobody is slowed down.
    for number in 0..40 {
        let url = format!("{}/auth/v1/token?grant_type=password", one.text("API_URL"));
        let wrong = serde_json::json!({ "email": "a@b.example", "password": format!("wrong {number}") });
        let answer = reqwest::Client::new().post(url).header("apikey", one.text("ANON_KEY")).json(&wrong).send().await;
        assert_eq!(answer.expect("an answer").status().as_u16(), 400, "{number}");
    }
    assert_eq!(one.end(), Some(0));
    assert_eq!(project.folders().len(), 1);

    // Killed, nobody is left to tidy up but the server.
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

    // Both killed, the next start tidies up, and leaves what is in use.
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
    // A server that was killed alone is told, and what it left is removed.
    let server = project.folders().into_iter().find(|folder| !in_use.contains(folder)).expect("its folder");
    let server = std::fs::read_to_string(server.join("server.lock")).expect("a lock").trim().parse().expect("a pid");
    kill_process(Pid::from_raw(server).expect("a pid"), Signal::KILL).expect("a signal");
    let mut third = third;
    // Waiting closes the pipe, which would be an end in order.
    let pipe = third.child.stdin.take();
    assert_eq!(third.child.wait().expect("it ends").code(), Some(1));
    drop((pipe, third, other));
    until("everything is tidied up", || project.is_clean()).await;
}
