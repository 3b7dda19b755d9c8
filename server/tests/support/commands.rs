//! A data folder with the binary's commands on it, including the server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::json;
use tokio_postgres::NoTls;

pub use super::binary::DEADLINE;
use super::binary::{self, SERVICE_KEY, database_url, until_healthy};
use super::cluster::place;
use super::first_start;
use super::ports::free_ports;

/// A folder that PostgreSQL's user passes through; from here on HTTPS works too.
pub fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir_in(place()).expect("a folder");
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let _ = rustls::crypto::ring::default_provider().install_default();
    root
}

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
        Self { data: root.join(name), ports: free_ports(), settings: Vec::new(), server: None }
    }

    /// After a first start with the settings of development, for tests of what comes later.
    pub fn started_before(root: &Path, name: &str) -> Self {
        let house = Self::new(root, name);
        first_start::copy_to(&house.data);
        house
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let folder = self.data.parent().expect("a folder");
        let mut command = binary::command(arguments, folder, &self.data, self.ports);
        command.env("RUST_LOG", "error").envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A command's output, and whether it succeeded.
    pub fn run(&self, arguments: &[&str]) -> (bool, String) {
        told(self.command(arguments).output().expect("it runs"))
    }

    /// Makes the pair of keys `key.txt` for backups; yields the public one.
    pub fn backup_key(&self) -> String {
        let (made, line) = self.run(&["backup", "key", "key.txt"]);
        assert!(made, "{line}");
        line.trim().strip_prefix("FERROBASE_BACKUP_RECIPIENT=").expect(&line).to_owned()
    }

    /// Has it back up to a folder, for a key of its own, instead of all its settings.
    pub fn backs_up_to(&mut self, folder: &Path) {
        let recipient = self.backup_key();
        let folder = folder.display().to_string();
        self.settings = vec![("FERROBASE_BACKUP_TO", folder), ("FERROBASE_BACKUP_RECIPIENT", recipient)];
    }

    pub async fn serve(&mut self, http: &Client) {
        self.server = Some(self.command(&["serve"]).stdout(Stdio::null()).spawn().expect("it runs"));
        until_healthy(http, &self.url(""), String::new).await;
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
        let (client, connection) =
            tokio_postgres::connect(&database_url(self.ports[1]), NoTls).await.expect("the database");
        tokio::spawn(connection);
        client
    }
}

/// A server whose S3 protocol is the store of others' backups, with a bucket for them.
pub async fn store_of_backups(root: &Path, http: &Client) -> House {
    let mut store = House::started_before(root, "store");
    store.settings = vec![("UPLOAD_FILE_SIZE_LIMIT", (1_u64 << 30).to_string())];
    store.serve(http).await;
    let bucket = request(http, Method::POST, store.url("/storage/v1/bucket")).json(&json!({ "name": "backups" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    store
}

/// Settings for backups to that store.
pub fn to_store(store: &House, recipient: &str) -> Vec<(&'static str, String)> {
    let access = ferrobase::config::DEVELOPMENT_S3_KEYS;
    vec![
        ("FERROBASE_BACKUP_S3_ENDPOINT", store.url("/storage/v1/s3")),
        ("FERROBASE_BACKUP_S3_REGION", "local".to_owned()),
        ("FERROBASE_BACKUP_S3_FORCE_PATH_STYLE", "true".to_owned()),
        ("FERROBASE_BACKUP_S3_ACCESS_KEY_ID", access.0.to_owned()),
        ("FERROBASE_BACKUP_S3_SECRET_ACCESS_KEY", access.1.to_owned()),
        ("FERROBASE_BACKUP_TO", "s3://backups/of/house".to_owned()),
        ("FERROBASE_BACKUP_RECIPIENT", recipient.to_owned()),
    ]
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop();
        // The cluster may be elsewhere if PostgreSQL's user cannot enter the folder.
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

/// Starts a command and kills it once `begun` is true. Returns whether it was still running.
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
