//! The binary with a data folder and ports of its own, as a process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;

/// The service key of `supabase start`.
pub const SERVICE_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
/// How long a process may take to start or to end.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// A command of `program` on the data folder `data`, run in `folder`. The ports are those of the API, PostgreSQL, the inbox and the
/// admin listener.
pub fn command_of(program: &str, arguments: &[&str], folder: &Path, data: &Path, ports: [u16; 4]) -> Command {
    let [api, database, inbox, admin] = ports;
    let mut command = Command::new(program);
    // PostgreSQL's binaries are found around the executable; a ferrobase.toml would be read from here.
    command.args(arguments).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin");
    command
        .env("FERROBASE_DATA_DIR", data)
        .env("FERROBASE_LISTEN", format!("127.0.0.1:{api}"))
        .env("FERROBASE_DB_PORT", database.to_string())
        .env("FERROBASE_INBOX_LISTEN", format!("127.0.0.1:{inbox}"))
        .env("FERROBASE_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
        .stdin(Stdio::null());
    command
}

/// The same of the binary, in development and without migrations of an application.
pub fn command(arguments: &[&str], folder: &Path, data: &Path, ports: [u16; 4]) -> Command {
    let mut command = command_of(env!("CARGO_BIN_EXE_ferrobase"), arguments, folder, data, ports);
    command.env("FERROBASE_DEV", "true").env("FERROBASE_MIGRATIONS", "none");
    command
}

/// The URL with which the owner logs in to the database on this port.
pub fn database_url(port: u16) -> String {
    format!("postgresql://postgres:postgres@127.0.0.1:{port}/postgres")
}

/// Waits until the server at `base` is healthy; `log` is printed if that takes too long.
pub async fn until_healthy(http: &Client, base: &str, log: impl Fn() -> String) {
    let deadline = Instant::now() + DEADLINE;
    while !http.get(format!("{base}/health")).send().await.is_ok_and(|answer| answer.status() == 200) {
        assert!(Instant::now() < deadline, "it never served:\n{}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
