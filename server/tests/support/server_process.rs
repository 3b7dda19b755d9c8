//! A server process with its own database and files, to be killed, stopped and starved of resources.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};

use super::binary::{self, database_url, until_healthy};
use super::ports::free_ports;
use super::{cluster, first_start};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct ServerProcess {
    pub root: PathBuf,
    /// Ports of the API, PostgreSQL, the inbox and the admin listener.
    pub ports: [u16; 4],
    pub child: Option<Child>,
    /// Further settings.
    pub settings: Vec<(String, String)>,
}

impl ServerProcess {
    pub fn new() -> Self {
        let name = format!("ferrobase-server-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self::at(cluster::place().join(name))
    }

    /// After a first start, for tests of what comes later.
    pub fn started_before() -> Self {
        let server = Self::new();
        first_start::copy_to(&server.root.join("data"));
        server
    }

    pub fn at(root: PathBuf) -> Self {
        std::fs::create_dir_all(&root).expect("a folder");
        Self { root, ports: free_ports(), child: None, settings: Vec::new() }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary::command(arguments, &self.root, &self.root.join("data"), self.ports);
        command.env("FERROBASE_STORAGE_DIR", self.root.join("files")).env("RUST_LOG", "warn");
        // Clients sign up and in all the time.
        command.env("FERROBASE_PASSWORD_COST", "4");
        command.envs(self.settings.iter().cloned());
        command
    }

    pub fn serve(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.root.join("log")).expect("a log");
        self.child = Some(self.command(&["serve"]).stdout(Stdio::null()).stderr(log).spawn().expect("it runs"));
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    /// The database URL of the owner.
    pub fn database_url(&self) -> String {
        database_url(self.ports[1])
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.root.join("log")).unwrap_or_default()
    }

    pub async fn ready(&self, http: &Client) {
        until_healthy(http, &self.base(), || self.log()).await;
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("gone");
        }
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        kill_process(Pid::from_child(&child), Signal::TERM).expect("told");
        assert!(child.wait().expect("gone").success(), "{}", self.log());
    }

    /// Restarts it once the port of the killed server is free.
    pub async fn serve_again(&mut self) {
        while TcpStream::connect(("127.0.0.1", self.ports[0])).is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.serve();
    }

    /// The postmaster's process, wherever its cluster is.
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

    /// The postmaster and all its children.
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
            // It may have ended in between.
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

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
        self.signal_database(Signal::CONT);
        self.kill_database();
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
