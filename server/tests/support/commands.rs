//! A data folder of its own with the binary's commands on it, the server among them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use tokio_postgres::NoTls;

/// The key of `supabase start`.
const SERVICE_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
pub const DEADLINE: Duration = Duration::from_secs(120);

/// A data folder and the commands on it.
pub struct House {
    pub data: PathBuf,
    pub ports: [u16; 4],
    /// Further settings.
    pub settings: Vec<(&'static str, String)>,
    pub server: Option<Child>,
}

impl House {
    pub fn new(root: &Path, name: &str) -> Self {
        let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let ports = listeners.each_ref().map(|listener| listener.local_addr().expect("address").port());
        Self { data: root.join(name), ports, settings: Vec::new(), server: None }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let [api, database, inbox, admin] = self.ports;
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
        command
            .args(arguments)
            .current_dir(self.data.parent().expect("a folder"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command
            .env("FERROBASE_DEV", "true")
            .env("FERROBASE_MIGRATIONS", "none")
            .env("FERROBASE_DATA_DIR", &self.data)
            .env("FERROBASE_LISTEN", format!("127.0.0.1:{api}"))
            .env("FERROBASE_DB_PORT", database.to_string())
            .env("FERROBASE_INBOX_LISTEN", format!("127.0.0.1:{inbox}"))
            .env("FERROBASE_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
            .env("RUST_LOG", "error")
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// A command's output, and whether it succeeded.
    pub fn run(&self, arguments: &[&str]) -> (bool, String) {
        told(self.command(arguments).output().expect("it runs"))
    }

    pub async fn serve(&mut self, http: &Client) {
        self.server = Some(self.command(&["serve"]).stdout(Stdio::null()).spawn().expect("it runs"));
        let deadline = Instant::now() + DEADLINE;
        while !http.get(self.url("/health")).send().await.is_ok_and(|answer| answer.status() == 200) {
            assert!(Instant::now() < deadline, "it never served");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[0])
    }

    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let pid = rustix::process::Pid::from_child(&server);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = server.wait();
        }
    }

    pub async fn sql(&self) -> tokio_postgres::Client {
        let url = format!("postgresql://postgres:postgres@127.0.0.1:{}/postgres", self.ports[1]);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("the database");
        tokio::spawn(connection);
        client
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop();
        // Where PostgreSQL's user cannot enter the folder, the cluster is elsewhere.
        let _ = ferrobase::embedded_pg::delete_cluster(&self.data);
    }
}

pub fn told(output: Output) -> (bool, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

pub fn request(http: &Client, method: Method, url: String) -> RequestBuilder {
    http.request(method, url).bearer_auth(SERVICE_KEY).header("apikey", SERVICE_KEY)
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Starts a command, kills it once `begun` says so, and tells whether it was still at work.
pub async fn killed_once(mut command: Command, begun: impl Fn() -> bool) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let deadline = Instant::now() + DEADLINE;
    while !begun() && child.try_wait().expect("asked").is_none() {
        assert!(Instant::now() < deadline, "it never began");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    child.kill().expect("killed");
    !child.wait().expect("gone").success()
}
