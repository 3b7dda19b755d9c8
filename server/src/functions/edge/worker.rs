//! A Deno process: starts and ends it. It ends when the last handle is dropped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::task::JoinHandle;

use super::error::RelayError;
use super::metrics::{Process, Received};
use super::turns::Turn;
use super::{EdgeConfig, Limits, PlatformValues, stand_ins};
use crate::project::{FunctionConfig, InspectMode};

const BOOTSTRAP: &str = include_str!("bootstrap.mjs");

/// How long a retired process may work on promises that outlive its responses.
pub const AFTERWARDS: Duration = Duration::from_secs(10);
/// How long to wait for the remaining output of an ended process.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How many requests can each have the processor time of one.
const MOST_TASKS: u32 = 10;
/// Maximum length of a logged line of a function's output, in bytes.
const LOG_LINE: usize = 10_000;

pub struct Worker {
    pub slug: String,
    /// To look at what it uses. Only `end_of` knows whether the id is still its own.
    pub pid: Option<u32>,
    /// The port on loopback where it listens, and since when; empty while it boots.
    listening: OnceLock<(u16, Instant)>,
    /// Sent with every request, so that no other process on this machine can call it.
    pub secret: String,
    /// The generation of the files that it was started from.
    pub generation: u64,
    pub limits: Limits,
    /// Requests of this server in progress.
    open: AtomicI64,
    /// Those whose answer has begun.
    answering: AtomicI64,
    told: Arc<Told>,
    /// The age at which the last request ended, in milliseconds.
    last_used: AtomicU64,
    ended: watch::Receiver<Option<Ended>>,
    process: Arc<Process>,
    is_retired: AtomicBool,
    /// Set when we kill the process, because the system reports its end later.
    is_killed: AtomicBool,
    stdin: Mutex<Option<ChildStdin>>,
    /// Kills the process when it is used or dropped.
    kill: Mutex<Option<oneshot::Sender<()>>>,
    /// The one that its tasks run on. It outlives those of the server's workers.
    runtime: Handle,
}

/// What a process tells about itself.
#[derive(Debug, Default)]
struct Told {
    /// Whether it tells of its requests. It does not if it listens by itself, as `serve` of the old standard library does.
    counts: AtomicBool,
    /// Requests that it handles and has not answered.
    handling: AtomicI64,
    /// Pending `waitUntil` promises.
    promises: AtomicI64,
    /// Grows whenever the process begins or finishes something.
    steps: AtomicU64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// On its own or after an error.
    Exited,
    /// Over V8's heap limit, or over our limits.
    Limit,
}

/// Why a process does not accept requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    Relayed(RelayError),
    /// A module could not be fetched.
    Unreachable,
}

impl StartError {
    pub fn relayed(self) -> RelayError {
        match self {
            Self::Relayed(error) => error,
            Self::Unreachable => RelayError::Boot,
        }
    }
}

impl Worker {
    /// Starts a process, whose tasks run on the current runtime. It has to be watched at once, because it may use anything while it
    /// boots. `platform`: its values, and the keys that sign tokens. `stand_ins`: an import map that replaces the function's own.
    pub async fn spawn(
        config: &EdgeConfig,
        platform: (&PlatformValues, &str),
        environment: &BTreeMap<String, String>,
        function: &FunctionConfig,
        generation: u64,
        stand_ins: Option<&Path>,
        process: Process,
    ) -> Result<(Arc<Self>, Boot), StartError> {
        let process = Arc::new(process);
        let limits = config.limits.of(function);
        let Some(deno) = &config.deno else { return Err(StartError::Relayed(RelayError::NoDeno)) };
        let slug = function.slug.as_str();
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(function = slug, %error, "an edge function cannot be started");
            StartError::Relayed(RelayError::Boot)
        };
        let scratch = config.cache.join("tmp").join(slug);
        let bootstrap = config.cache.join("bootstrap.mjs");
        tokio::fs::create_dir_all(&scratch).await.map_err(|e| failed(&e))?;
        if tokio::fs::read_to_string(&bootstrap).await.ok().as_deref() != Some(BOOTSTRAP) {
            tokio::fs::write(&bootstrap, BOOTSTRAP).await.map_err(|e| failed(&e))?;
        }
        // The lock file is for the original modules, not for their stand-ins.
        let lock = match stand_ins {
            Some(_) => None,
            None => copy_of_lock(config, function).await.map_err(|e| failed(&e))?,
        };
        let (token, secret) = (random(), random());
        let mut command = Command::new(deno);
        command
            .args(arguments(config, function, &scratch, &bootstrap, lock.as_deref(), stand_ins))
            .current_dir(&config.root)
            .env_clear()
            .envs(environment)
            .envs(platform.0.environment(slug, platform.1))
            .envs([
                ("FERROBASE_WORKER_TOKEN", token.as_str()),
                ("FERROBASE_WORKER_SECRET", secret.as_str()),
                ("DENO_TLS_CA_STORE", "mozilla,system"),
                ("NO_COLOR", "1"),
                ("DENO_NO_UPDATE_CHECK", "1"),
            ])
            .env("DENO_DIR", &config.deno_dir)
            .env("TMPDIR", &scratch)
            .env("FERROBASE_WORKER_ENTRY", file_url(&function.entrypoint))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        // Variables that Deno needs to reach registries from this machine.
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NO_PROXY",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "DENO_CERT",
            "NODE_EXTRA_CA_CERTS",
            "SSL_CERT_FILE",
            "NPM_CONFIG_REGISTRY",
            "JSR_URL",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        die_with_us(&mut command);
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        let pid = child.id();
        if let Some(pid) = pid {
            // If memory runs out, the system should end a function rather than the database. An error is no reason not to start.
            let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), "1000");
        }
        let told = Arc::<Told>::default();
        let (tell_port, port) = watch::channel(None::<Result<u16, ()>>);
        let output = child.stdout.take();
        let errors = child.stderr.take();
        let stdin = child.stdin.take();
        let own_slug: Arc<str> = slug.into();
        let (log_slug, heard, mark) = (Arc::clone(&own_slug), Arc::clone(&told), token.clone());
        tokio::spawn(async move {
            let Some(output) = output else { return };
            let mut output = BufReader::new(output);
            let mut request = None;
            while let Some(line) = next_line(&mut output).await {
                let (own, message) = parted(&line, &token);
                if let Some(own) = own {
                    log(&log_slug, request.as_deref(), "info", own);
                }
                match message {
                    None => {}
                    Some(message) => {
                        let mut words = message.split(' ');
                        match (words.next(), words.next(), words.next()) {
                            (Some("for"), id, _) => request = id.map(str::to_owned),
                            (Some("port"), Some(number), how) => {
                                heard.counts.store(how == Some("counting"), Ordering::Release);
                                let _ = tell_port.send(Some(number.parse().map_err(drop)));
                            }
                            (Some("failed"), ..) => drop(tell_port.send(Some(Err(())))),
                            (Some("open"), Some(handling), Some(promises)) => {
                                heard.handling.store(handling.parse().unwrap_or(0), Ordering::Release);
                                heard.promises.store(promises.parse().unwrap_or(0), Ordering::Release);
                                heard.steps.fetch_add(1, Ordering::AcqRel);
                            }
                            _ => {}
                        }
                    }
                }
            }
        });
        let errors_told = tokio::spawn(async move {
            let mut lacks_module = false;
            let Some(errors) = errors else { return lacks_module };
            let mut errors = BufReader::new(errors);
            let mut request = None;
            while let Some(line) = next_line(&mut errors).await {
                let (own, message) = parted(&line, &mark);
                // Not a hint about a default export, which the bootstrap serves.
                if let Some(own) = own.filter(|own| !own.contains("did you mean to run \"deno serve\"")) {
                    lacks_module |= stand_ins::tells_of_failed_fetch(own);
                    log(&own_slug, request.as_deref(), "error", own);
                }
                if let Some(message) = message {
                    request = message.strip_prefix("for ").map(str::to_owned);
                }
            }
            lacks_module
        });
        let (tell_end, ended) = watch::channel(None);
        let (name, ending) = (slug.to_owned(), Arc::clone(&process));
        let (kill, killed) = oneshot::channel();
        tokio::spawn(async move {
            let status = end_of(child, killed).await;
            ending.ends();
            let how = match status.as_ref().ok().map(how_it_ended) {
                Some(Some(limit)) => limit,
                _ => Ended::Exited,
            };
            tracing::debug!(function = name, ?status, "a function's process ended");
            let _ = tell_end.send(Some(how));
        });
        let worker = Arc::new(Self {
            slug: slug.to_owned(),
            pid,
            listening: OnceLock::new(),
            secret,
            generation,
            limits,
            open: AtomicI64::new(0),
            answering: AtomicI64::new(0),
            told,
            last_used: AtomicU64::new(0),
            ended,
            process,
            is_retired: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            stdin: Mutex::new(stdin),
            kill: Mutex::new(Some(kill)),
            runtime: Handle::current(),
        });
        Ok((worker, Boot { port, errors_told, has_stand_ins: stand_ins.is_some() }))
    }

    /// Waits until the process listens. One that does not is killed.
    pub async fn boot(&self, boot: Boot) -> Result<(), StartError> {
        let Boot { mut port, errors_told, has_stand_ins } = boot;
        let listening = async {
            loop {
                if let Some(found) = *port.borrow_and_update() {
                    return Some(found);
                }
                // Its output has ended, and so will the process.
                if port.changed().await.is_err() {
                    return None;
                }
            }
        };
        let found = tokio::select! {
            found = listening => found,
            _ = self.ended() => None,
            () = tokio::time::sleep(self.limits.boot) => Some(Err(())),
        };
        let how = match found {
            Some(Ok(port)) => {
                let _ = self.listening.set((port, Instant::now()));
                self.process.listens();
                return Ok(());
            }
            Some(Err(())) => None,
            None => tokio::time::timeout(LAST_WORDS, self.ended()).await.ok(),
        };
        self.kill();
        // After its end, it prints nothing more.
        let lacks_module = tokio::time::timeout(LAST_WORDS, errors_told).await.is_ok_and(|told| told.unwrap_or(false));
        if lacks_module && !has_stand_ins {
            return Err(StartError::Unreachable);
        }
        tracing::error!(function = self.slug.as_str(), "an edge function did not begin to listen");
        Err(StartError::Relayed(if how == Some(Ended::Limit) { RelayError::Limit } else { RelayError::Boot }))
    }

    /// Keeps `place` until the process has ended.
    pub fn keep(&self, place: OwnedSemaphorePermit) {
        let mut ended = self.ended.clone();
        self.runtime.spawn(async move {
            let _ = ended.wait_for(Option::is_some).await;
            drop(place);
        });
    }

    /// The port on loopback where it listens.
    pub fn port(&self) -> Option<u16> {
        self.listening.get().map(|(port, _)| *port)
    }

    pub fn is_alive(&self) -> bool {
        !self.is_killed.load(Ordering::Acquire) && self.ended.borrow().is_none()
    }

    /// Whether it gets no more requests and has not ended.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire) && self.is_alive()
    }

    /// How long it has listened.
    pub fn age(&self) -> Duration {
        self.listening.get().map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }

    /// How long it has been idle.
    pub fn idle(&self) -> Duration {
        if self.open.load(Ordering::Acquire) > 0 || self.promises() > 0 {
            return Duration::ZERO;
        }
        self.age().saturating_sub(Duration::from_millis(self.last_used.load(Ordering::Acquire)))
    }

    /// Counts a request for as long as the returned value lives, which also keeps its `turn`.
    pub fn enter(self: &Arc<Self>, received: Option<Received>, turn: Turn) -> OpenRequest {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenRequest { worker: Arc::clone(self), is_answering: false, _received: received, _turn: turn }
    }

    pub fn open(&self) -> i64 {
        self.open.load(Ordering::Acquire)
    }

    fn promises(&self) -> i64 {
        self.told.promises.load(Ordering::Acquire)
    }

    /// How much the process works on at once, as far as it has got to it: requests that only wait for a process that does not take
    /// them do not count. Nor do more than [`MOST_TASKS`], because a thousand open websockets would hide a loop that never ends.
    pub fn tasks(&self) -> u32 {
        let requests = if self.told.counts.load(Ordering::Acquire) {
            self.told.handling.load(Ordering::Acquire) + self.answering.load(Ordering::Acquire)
        } else {
            self.open()
        };
        u32::try_from(requests + self.promises()).unwrap_or_default().clamp(1, MOST_TASKS)
    }

    /// Grows whenever the process begins or finishes something.
    pub fn steps(&self) -> u64 {
        self.told.steps.load(Ordering::Acquire)
    }

    /// Waits until the process ends. Returns how.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.ended.clone();
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| *how);
        how.unwrap_or(Ended::Exited)
    }

    /// Kills the process at once. It gets no more requests.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::Release);
        self.process.retires();
        if let Some(kill) = self.kill.lock().take() {
            // An error means that the process has ended already.
            let _ = kill.send(());
        }
    }

    /// Tells the function that it will end, and ends it once its requests and promises are done. Those that go on for as long as a
    /// process may live are cut off.
    pub fn retire(self: &Arc<Self>, reason: &'static str) {
        if self.is_retired.swap(true, Ordering::AcqRel) {
            return;
        }
        self.process.retires();
        let worker = Arc::clone(self);
        self.runtime.spawn(async move {
            let begun = Instant::now();
            let stdin = worker.stdin.lock().take();
            if let Some(mut stdin) = stdin {
                // An error means that the process has ended already.
                let _ = stdin.write_all(format!("{reason}\n").as_bytes()).await;
                let mut quiet_since = None;
                while worker.is_alive() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    if begun.elapsed() > worker.limits.wall_clock {
                        let (function, open) = (worker.slug.as_str(), worker.open());
                        tracing::warn!(
                            function,
                            open,
                            "a retired process of an edge function was still busy and is ended"
                        );
                        break;
                    }
                    if worker.open() > 0 {
                        quiet_since = None;
                        continue;
                    }
                    let since = *quiet_since.get_or_insert_with(Instant::now);
                    let promises = worker.promises();
                    if promises == 0 && since.elapsed() > Duration::from_millis(200) || since.elapsed() > AFTERWARDS {
                        break;
                    }
                }
            }
            worker.kill();
        });
    }
}

/// What is heard of a process that boots.
pub struct Boot {
    port: watch::Receiver<Option<Result<u16, ()>>>,
    /// Whether its errors told of a module that could not be fetched.
    errors_told: JoinHandle<bool>,
    has_stand_ins: bool,
}

/// Lets the system end the process when this thread ends, which serves as long as the server runs. A function that blocks does not
/// notice that its server is gone.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "between fork and exec, only calls that are safe in a signal handler are allowed")]
fn die_with_us(command: &mut Command) {
    let die = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: it makes one system call and allocates nothing.
    unsafe { command.pre_exec(die) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_command: &mut Command) {}

/// Waits until the process ends, and ends it when `killed` says so or its sender is dropped. Only here is it known whether the
/// process id is still that of the process.
async fn end_of(mut child: Child, killed: oneshot::Receiver<()>) -> std::io::Result<std::process::ExitStatus> {
    tokio::select! {
        biased;
        status = child.wait() => return status,
        _ = killed => {}
    }
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let Some(pid) = pid {
        // An error means that the process has ended already.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    child.wait().await
}

/// A request in progress.
pub struct OpenRequest {
    pub worker: Arc<Worker>,
    is_answering: bool,
    _received: Option<Received>,
    _turn: Turn,
}

impl OpenRequest {
    /// The answer has begun.
    pub fn answers(&mut self) {
        if !std::mem::replace(&mut self.is_answering, true) {
            self.worker.answering.fetch_add(1, Ordering::AcqRel);
            self.worker.told.steps.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let now = u64::try_from(self.worker.age().as_millis()).unwrap_or(u64::MAX);
        self.worker.last_used.store(now, Ordering::Release);
        if self.is_answering {
            self.worker.answering.fetch_sub(1, Ordering::AcqRel);
        }
        self.worker.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Maximum length of a line's part that is buffered, in bytes.
const LINE: u64 = 64 << 10;

/// The next line, or its next part if it is too long; `None` at the end. Output is always read, because a function whose output
/// pipe is full blocks.
async fn next_line(output: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    output.take(LINE).read_until(b'\n', &mut line).await.ok().filter(|read| *read > 0)?;
    let text = String::from_utf8_lossy(&line);
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The function's own output of a line, and the message to the server after the `token`. A function may write without an end of
/// line before it.
fn parted<'a>(line: &'a str, token: &str) -> (Option<&'a str>, Option<&'a str>) {
    match line.split_once(token) {
        None => (Some(line), None),
        Some((own, message)) => ((!own.is_empty()).then_some(own), Some(message.trim())),
    }
}

/// `request`: the id of the request that the function was handling, if known.
fn log(slug: &str, request: Option<&str>, level: &str, line: &str) {
    let shown = line.get(..line.floor_char_boundary(LOG_LINE)).unwrap_or(line);
    if level == "error" {
        tracing::warn!(function = slug, request_id = request, "[Error] {shown}");
    } else {
        tracing::info!(function = slug, request_id = request, "[Info] {shown}");
    }
}

/// V8 ends a process over its heap limit with a trap. The system kills one over its memory limit, and so do we for processor
/// time.
fn how_it_ended(status: &std::process::ExitStatus) -> Option<Ended> {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(4 | 5 | 6 | 9 | 24), _) | (None, Some(132..=134 | 137)) => Some(Ended::Limit),
        _ => None,
    }
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

fn file_url(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    url::Url::from_file_path(&whole).map_or_else(|()| whole.display().to_string(), String::from)
}

fn arguments(
    config: &EdgeConfig,
    function: &FunctionConfig,
    scratch: &Path,
    bootstrap: &Path,
    lock: Option<&Path>,
    stand_ins: Option<&Path>,
) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "--no-prompt", "--quiet", "--no-check", "--allow-import", "--allow-net"]
        .iter()
        .map(|argument| (*argument).to_owned())
        .collect();
    if let Some(inspector) = function.inspector {
        let flag = match inspector.mode {
            InspectMode::Run => "--inspect",
            InspectMode::Brk => "--inspect-brk",
            InspectMode::Wait => "--inspect-wait",
        };
        arguments.push(format!("{flag}=127.0.0.1:{}", inspector.port));
    }
    if !config.closed_ports.is_empty() {
        let hosts = ["127.0.0.1", "localhost", "0.0.0.0", "[::1]"];
        let closed: Vec<String> =
            config.closed_ports.iter().flat_map(|port| hosts.map(|host| format!("{host}:{port}"))).collect();
        arguments.push(format!("--deny-net={}", closed.join(",")));
    }
    let mut readable =
        [&config.folder, &config.cache, &config.deno_dir].map(|folder| folder.display().to_string()).to_vec();
    readable.extend(function.static_files.iter().filter_map(|pattern| {
        // The path up to the first segment with a wildcard.
        let text = pattern.display().to_string();
        let plain = text.split('*').next().unwrap_or_default();
        let folder =
            if plain.len() < text.len() { plain.rsplit_once('/').map_or(plain, |(folder, _)| folder) } else { plain };
        (!folder.is_empty()).then(|| folder.to_owned())
    }));
    if let Some(folder) = function.entrypoint.parent() {
        readable.push(folder.display().to_string());
    }
    arguments.push(format!("--allow-read={}", readable.join(",")));
    arguments.push(format!("--allow-write={}", scratch.display()));
    arguments.push("--allow-env".to_owned());
    arguments.push("--allow-sys=hostname".to_owned());
    arguments.push(format!("--v8-flags=--max-old-space-size={}", config.limits.memory_mb));
    match &function.imports {
        Some(file) if is_configuration(file) => {
            arguments.push(format!("--config={}", file.display()));
        }
        Some(file) => {
            arguments.push("--no-config".to_owned());
            if stand_ins.is_none() {
                arguments.push(format!("--import-map={}", file.display()));
            }
        }
        None if function.package_json => {}
        None => arguments.push("--no-config".to_owned()),
    }
    if let Some(map) = stand_ins {
        arguments.push(format!("--import-map={}", map.display()));
    }
    arguments.push("--node-modules-dir=none".to_owned());
    match lock {
        Some(lock) => arguments.push(format!("--lock={}", lock.display())),
        None => arguments.push("--no-lock".to_owned()),
    }
    // The function's module is the main one, as `import.meta.main` reports.
    arguments.push(format!("--preload={}", bootstrap.display()));
    arguments.push(function.entrypoint.display().to_string());
    arguments
}

/// Copies the lock file beside a `deno.json`, because Deno writes to the one that it uses.
async fn copy_of_lock(config: &EdgeConfig, function: &FunctionConfig) -> std::io::Result<Option<PathBuf>> {
    let beside = function.imports.as_deref().filter(|file| is_configuration(file)).and_then(Path::parent);
    let Some(lock) = beside.map(|folder| folder.join("deno.lock")).filter(|lock| lock.is_file()) else {
        return Ok(None);
    };
    let folder = config.cache.join("locks");
    tokio::fs::create_dir_all(&folder).await?;
    let copy = folder.join(format!("{}.lock", function.slug));
    tokio::fs::copy(lock, &copy).await?;
    Ok(Some(copy))
}

/// Whether the file is a `deno.json` rather than an import map.
fn is_configuration(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("deno.json"))
}

impl PlatformValues {
    fn environment(&self, slug: &str, jwks: &str) -> Vec<(&'static str, String)> {
        let keyed = |key: &str| serde_json::json!({ "default": key }).to_string();
        let mut values = vec![
            ("SUPABASE_URL", self.api_url.clone()),
            ("SUPABASE_ANON_KEY", self.anon_key.clone()),
            ("SUPABASE_SERVICE_ROLE_KEY", self.service_role_key.reveal().to_owned()),
            ("SUPABASE_JWKS", jwks.to_owned()),
            ("SB_EXECUTION_ID", uuid::Uuid::new_v4().to_string()),
            ("SB_REGION", "local".to_owned()),
            ("SUPABASE_FUNCTION_SLUG", slug.to_owned()),
        ];
        if let Some(key) = &self.publishable_key {
            values.push(("SUPABASE_PUBLISHABLE_KEYS", keyed(key)));
        }
        if let Some(key) = &self.secret_key {
            values.push(("SUPABASE_SECRET_KEYS", keyed(key.reveal())));
        }
        if let Some(url) = &self.database_url {
            values.push(("SUPABASE_DB_URL", url.reveal().to_owned()));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a function that wrote without an end of line hid the message that it listens.
    #[test]
    fn messages_are_found_after_output_without_an_end_of_line() {
        for (line, own, message) in [
            ("plain", Some("plain"), None),
            ("", Some(""), None),
            ("token port 1 counting", None, Some("port 1 counting")),
            ("starting..token port 1 ", Some("starting.."), Some("port 1")),
        ] {
            assert_eq!(parted(line, "token"), (own, message), "{line}");
        }
    }

    #[tokio::test]
    async fn output_with_any_bytes_and_line_lengths_is_read() {
        let mut written = b"one\r\n\xff\n".to_vec();
        written.extend(vec![b'x'; 3 * LINE as usize]);
        written.extend(b"\nlast");
        let mut output = BufReader::new(written.as_slice());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut output).await {
            lines.push(line);
        }
        assert_eq!(
            (lines[0].as_str(), lines[1].as_str(), lines[lines.len() - 1].as_str()),
            ("one", "\u{fffd}", "last")
        );
        assert!(lines.iter().all(|line| line.len() as u64 <= LINE), "a whole line was held");
        assert_eq!(
            lines.iter().filter(|line| line.starts_with('x')).map(|line| line.len() as u64).sum::<u64>(),
            3 * LINE
        );
    }
}
