//! A server as a process, with a database and files of its own, that is killed, stopped and starved.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};

/// That of `supabase start`.
pub const SERVICE_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";

static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct House {
    pub root: PathBuf,
    /// Of the API, PostgreSQL, the inbox and the admin listener.
    pub ports: [u16; 4],
    pub child: Option<Child>,
    /// Further settings.
    pub settings: Vec<(String, String)>,
}

impl House {
    pub fn new() -> Self {
        let name = format!("ferrobase-house-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self::at(std::env::temp_dir().join(name))
    }

    pub fn at(root: PathBuf) -> Self {
        std::fs::create_dir_all(&root).expect("a folder");
        let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let ports = listeners.each_ref().map(|listener| listener.local_addr().expect("address").port());
        Self { root, ports, child: None, settings: Vec::new() }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let [api, database, inbox, admin] = self.ports;
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
        command.args(arguments).current_dir(&self.root).env_clear().env("PATH", "/usr/bin:/bin");
        command
            .env("FERROBASE_DEV", "true")
            .env("FERROBASE_MIGRATIONS", "none")
            .env("FERROBASE_DATA_DIR", self.root.join("data"))
            .env("FERROBASE_STORAGE_DIR", self.root.join("files"))
            .env("FERROBASE_LISTEN", format!("127.0.0.1:{api}"))
            .env("FERROBASE_DB_PORT", database.to_string())
            .env("FERROBASE_INBOX_LISTEN", format!("127.0.0.1:{inbox}"))
            .env("FERROBASE_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
            .env("RUST_LOG", "warn")
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    pub fn serve(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.root.join("log")).expect("a log");
        self.child = Some(self.command(&["serve"]).stdout(Stdio::null()).stderr(log).spawn().expect("it runs"));
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    /// The owner's URL of the database.
    pub fn database_url(&self) -> String {
        format!("postgresql://postgres:postgres@127.0.0.1:{}/postgres", self.ports[1])
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.root.join("log")).unwrap_or_default()
    }

    pub async fn ready(&self, http: &Client) {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let health = http.get(format!("{}/health", self.base())).send().await;
            if health.is_ok_and(|response| response.status() == 200) {
                return;
            }
            assert!(Instant::now() < deadline, "it never came back:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn kill_server(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("gone");
        }
    }

    /// Starts it again, once the port of what was killed is free.
    pub async fn serve_again(&mut self) {
        while TcpStream::connect(("127.0.0.1", self.ports[0])).is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.serve();
    }

    /// The postmaster's process, wherever its cluster lies.
    pub fn postmaster(&self) -> Option<Pid> {
        let port = format!("{}", self.ports[1]);
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let command = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let arguments: Vec<&str> = command.split('\0').collect();
            if !arguments.first().is_some_and(|program| program.ends_with("postgres")) {
                continue;
            }
            let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let lines = std::fs::read_to_string(folder.join("postmaster.pid")).unwrap_or_default();
            let lines: Vec<&str> = lines.lines().collect();
            if lines.first() == Some(&pid.to_string().as_str()) && lines.get(3) == Some(&port.as_str()) {
                return Pid::from_raw(pid);
            }
        }
        None
    }

    /// The postmaster and all that it started.
    pub fn database_processes(&self) -> Vec<Pid> {
        let Some(postmaster) = self.postmaster() else { return Vec::new() };
        let parent = format!("PPid:\t{}", postmaster.as_raw_nonzero());
        let mut found = vec![postmaster];
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            if status.lines().any(|line| line == parent) {
                found.extend(Pid::from_raw(pid));
            }
        }
        found
    }

    pub fn kill_database(&self) {
        if let Some(pid) = self.postmaster() {
            // It may have gone between the two.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Sends a signal to every process of the database.
    pub fn signal_database(&self, signal: Signal) {
        for pid in self.database_processes() {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.kill_server();
        self.signal_database(Signal::CONT);
        self.kill_database();
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
