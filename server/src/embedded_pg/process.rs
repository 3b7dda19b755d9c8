//! Runs the postmaster as a child process: starts, watches and stops it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::account::{Account, command};
use super::{EmbeddedError, cluster, holder_of, log, roles};

const STOP_LIMIT: Duration = Duration::from_secs(30);

/// PostgreSQL's message about `ssl=on` if it was built without OpenSSL.
const WITHOUT_TLS: &str = "SSL is not supported by this build";

/// Everything a start of the postmaster needs.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: PathBuf,
    pub db: PathBuf,
    pub socket_dir: PathBuf,
    pub log: PathBuf,
    pub port: u16,
    pub account: Option<Account>,
    /// Whether it offers encryption, with the certificate in the cluster's folder.
    pub offers_encryption: bool,
    pub settings: Vec<(String, String)>,
    /// How long a start may take; crash recovery may have gigabytes of WAL to replay.
    pub start_timeout: Duration,
}

/// A postmaster that does not accept connections yet. Ended if dropped.
struct Unready {
    pid: i32,
}

impl Unready {
    /// Passes on the responsibility for ending it.
    fn hand_over(mut self) {
        self.pid = 0;
    }
}

impl Drop for Unready {
    fn drop(&mut self) {
        signal(self.pid, Signal::INT);
    }
}

/// A postmaster and the task that watches it.
#[derive(Debug)]
pub struct Supervised {
    /// Process id of the postmaster, 0 while there is none.
    pid: Arc<AtomicI32>,
    stop: Option<oneshot::Sender<()>>,
    watcher: Option<JoinHandle<()>>,
    account: Option<Account>,
    log: PathBuf,
}

impl Supervised {
    pub async fn start(mut launch: Launch) -> Result<Self, EmbeddedError> {
        log::rotate(&launch.log);
        let pid = Arc::new(AtomicI32::new(0));
        let child = match launch.run(&pid).await {
            // `PG_BIN_DIR` may name binaries without TLS.
            Err(EmbeddedError::Start { reason, .. }) if launch.offers_encryption && reason.contains(WITHOUT_TLS) => {
                tracing::warn!("these PostgreSQL binaries were built without TLS: connections are not encrypted");
                launch.offers_encryption = false;
                launch.run(&pid).await?
            }
            started => started?,
        };
        let (stop, stopped) = oneshot::channel();
        let (account, log) = (launch.account.clone(), launch.log.clone());
        let watcher = tokio::spawn(watch(launch, child, stopped, Arc::clone(&pid)));
        Ok(Self { pid, stop: Some(stop), watcher: Some(watcher), account, log })
    }

    /// The account that it runs as, if not our own.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    pub async fn stop(&mut self) {
        if let (Some(stop), Some(watcher)) = (self.stop.take(), self.watcher.take()) {
            // The watcher has ended only if the runtime is shutting down; `Drop` then ends the postmaster.
            let _ = stop.send(());
            let _ = watcher.await;
        }
    }

    /// Ends the postmaster without a checkpoint.
    pub async fn discard(&mut self) {
        // The watcher is notified too, so that it does not start another.
        signal(self.pid.load(Ordering::Acquire), Signal::QUIT);
        self.stop().await;
    }

    /// Detaches from the postmaster, which keeps running.
    pub fn abandon(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.abort();
        }
        self.pid.store(0, Ordering::Release);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.abort();
        }
        signal(self.pid.load(Ordering::Acquire), Signal::INT);
    }
}

/// Restarts the postmaster if it ends unexpectedly; ends it on request.
async fn watch(launch: Launch, mut child: Child, mut stopped: oneshot::Receiver<()>, pid: Arc<AtomicI32>) {
    let mut pause = Duration::from_secs(1);
    loop {
        tokio::select! {
            _ = &mut stopped => {
                shut_down(&mut child).await;
                pid.store(0, Ordering::Release);
                return;
            }
            () = keep_log_small(&launch.log) => {}
            status = child.wait() => {
                pid.store(0, Ordering::Release);
                let status = status.map_or_else(|e| e.to_string(), |s| s.to_string());
                tracing::error!(%status, "the embedded PostgreSQL ended unexpectedly; restarting it");
            }
        }
        child = loop {
            tokio::select! {
                _ = &mut stopped => return ended(&pid).await,
                started = again(&launch, &pid) => match started {
                    Ok(child) => break child,
                    Err(error) => tracing::error!(%error, "the embedded PostgreSQL cannot be restarted yet"),
                }
            }
            tokio::select! {
                _ = &mut stopped => return,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(30)),
            }
        };
        pause = Duration::from_secs(1);
        tracing::info!("the embedded PostgreSQL is back");
    }
}

/// Never ends.
async fn keep_log_small(path: &Path) {
    loop {
        tokio::time::sleep(log::LOOK).await;
        let path = path.to_owned();
        let trimmed = tokio::task::spawn_blocking(move || log::trim(&path)).await;
        if let Ok(Err(error)) = trimmed {
            tracing::debug!(%error, "PostgreSQL's log was not trimmed");
        }
    }
}

async fn again(launch: &Launch, pid: &AtomicI32) -> Result<Child, EmbeddedError> {
    cluster::clear_leftovers(&launch.db).await?;
    launch.run(pid).await
}

/// Waits for a postmaster that is ending but not watched yet. The runtime reaps it.
async fn ended(pid: &AtomicI32) {
    let Some(process) = Pid::from_raw(pid.load(Ordering::Acquire)) else { return };
    let gone = async {
        while test_kill_process(process).is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(STOP_LIMIT, gone).await.is_ok() {
        pid.store(0, Ordering::Release);
    }
}

async fn shut_down(child: &mut Child) {
    for (how, limit) in [(Signal::INT, STOP_LIMIT), (Signal::QUIT, STOP_LIMIT)] {
        signal(raw_pid(child), how);
        if tokio::time::timeout(limit, child.wait()).await.is_ok() {
            return;
        }
    }
    let _ = child.kill().await;
}

fn raw_pid(child: &Child) -> i32 {
    child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0)
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Already gone is fine.
        let _ = kill_process(pid, signal);
    }
}

impl Launch {
    /// Spawns the postmaster and waits until it takes connections. `pid` is its process id from its first moment on.
    async fn run(&self, pid: &AtomicI32) -> Result<Child, EmbeddedError> {
        self.remove_stale_socket();
        let (log, begin) = log::open(&self.log)?;
        let errors = log.try_clone().map_err(EmbeddedError::io("cannot write", &self.log))?;
        let mut command = command(&self.program, self.account.as_ref());
        command.arg("-D").arg(&self.db);
        for (name, value) in self.own_settings().iter().chain(&self.settings) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let mut child = command
            .current_dir(&self.db)
            .env("LC_ALL", "C")
            .env_remove("PGDATA")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            // Ctrl-C reaches the whole foreground group: the server first drains, then stops PostgreSQL itself.
            .process_group(0)
            .spawn()
            .map_err(|e| EmbeddedError::Start { reason: e.to_string(), log: self.log.clone() })?;
        pid.store(raw_pid(&child), Ordering::Release);
        let unready = Unready { pid: raw_pid(&child) };
        match self.wait_until_ready(&mut child, begin).await {
            Ok(()) => {
                unready.hand_over();
                Ok(child)
            }
            Err(error) => {
                shut_down(&mut child).await;
                pid.store(0, Ordering::Release);
                unready.hand_over();
                Err(error)
            }
        }
    }

    /// A killed postmaster leaves its socket and the socket's lock file. PostgreSQL treats the lock as valid while the
    /// process exists, even as an unreaped zombie (in a container whose first process does not reap).
    fn remove_stale_socket(&self) {
        for suffix in ["", ".lock"] {
            // Usually there is none.
            let _ = std::fs::remove_file(self.socket_dir.join(format!(".s.PGSQL.{}{suffix}", self.port)));
        }
    }

    fn own_settings(&self) -> Vec<(String, String)> {
        let socket_dir = format!("\"{}\"", self.socket_dir.display());
        // Other binaries may lack contrib.
        let library = "pg_stat_statements.so";
        let folder = self.program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let has_statistics = ["lib/postgresql", "lib"].iter().any(|lib| folder.join(lib).join(library).is_file());
        let preloaded = if has_statistics { "pg_stat_statements" } else { "" };
        [
            ("port", self.port.to_string()),
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("ssl", if self.offers_encryption { "on" } else { "off" }.to_owned()),
            ("unix_socket_directories", socket_dir),
            ("max_connections", "200".to_owned()),
            ("timezone", "UTC".to_owned()),
            ("log_timezone", "UTC".to_owned()),
            // JIT compilation costs more than it gains on an API's short queries.
            ("jit", "off".to_owned()),
            // On solid state disks a random page costs little more than the next one; with the default of 4, small
            // lists would use sequential scans.
            ("random_page_cost", "1.1".to_owned()),
            // Realtime reads changes by logical decoding; switching later would need a restart.
            ("wal_level", "logical".to_owned()),
            ("shared_preload_libraries", preloaded.to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    async fn wait_until_ready(&self, child: &mut Child, log_begin: u64) -> Result<(), EmbeddedError> {
        let begun = tokio::time::Instant::now();
        let mut told = begun;
        loop {
            if child.try_wait().ok().flatten().is_some() {
                return Err(self.failure(log_begin));
            }
            match roles::answers(self.port).await {
                Ok(()) => return Ok(()),
                Err(_) if begun.elapsed() < self.start_timeout => {}
                Err(error) => {
                    return Err(EmbeddedError::Start { reason: error.to_string(), log: self.log.clone() });
                }
            }
            if told.elapsed() > Duration::from_secs(5) {
                told = tokio::time::Instant::now();
                tracing::info!(seconds = begun.elapsed().as_secs(), "waiting for the database to recover");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Why the postmaster ended, from its log since `begin`.
    fn failure(&self, begin: u64) -> EmbeddedError {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let since = text.get(usize::try_from(begin).unwrap_or(0)..).unwrap_or_default();
        let text = String::from_utf8_lossy(since);
        if text.contains("No space left on device") {
            return cluster::disk_full(&self.db, 48);
        }
        if text.contains("Address already in use") {
            return EmbeddedError::PortTaken { port: self.port, holder: holder_of(self.port) };
        }
        EmbeddedError::Start { reason: cluster::telling_line(&text), log: self.log.clone() }
    }
}
