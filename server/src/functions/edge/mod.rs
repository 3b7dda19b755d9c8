//! Edge functions: the folders of a project's `supabase/functions`, run by Deno.
//!
//! Each function has its own process (`worker`). It is started by the first call, receives requests over loopback HTTP and is ended
//! when it is idle, older than its files (`watch`) or over a limit (`usage`). A function that crashes or blocks affects only its own
//! requests. For each request `relay` checks the token, gets a worker of the function and streams body and answer.

mod error;
mod metrics;
mod relay;
mod stand_ins;
mod turns;
mod usage;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch as channel};

pub use metrics::Received;
pub use relay::call;

use crate::config::{Reader, Secret};
use crate::jwt::Issuers;
use crate::outgoing;
use crate::project::{FunctionConfig, Project, ProjectError, Served, find_deno};
use metrics::Metrics;
use turns::Turns;
use worker::{StartError, Worker};

/// How edge functions are run.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    /// What the project's files declare.
    declared: Declared,
    /// `FERROBASE_FUNCTIONS_ENV_FILE`: the environment file, instead of `supabase/functions/.env`.
    env_file: Option<PathBuf>,
    /// `FERROBASE_FUNCTIONS_NO_VERIFY_JWT`: whether all functions can be called without a token.
    are_open: bool,
    /// `supabase/functions`, which functions may read.
    pub folder: PathBuf,
    /// The project's folder, their working directory.
    pub root: PathBuf,
    /// `FERROBASE_DENO`, or else the Deno installed beside the checkout, or else `deno` on PATH.
    pub deno: Option<PathBuf>,
    /// The project's data folder, where a running `functions serve` leaves its options.
    data_dir: PathBuf,
    /// Folder for temporary files of functions.
    pub cache: PathBuf,
    /// `DENO_DIR`: Deno's download cache, inside `cache` unless several servers share it.
    pub deno_dir: PathBuf,
    /// Whether files are watched for changes, and figures are shown.
    pub in_development: bool,
    /// Local ports that functions may not connect to.
    pub closed_ports: Vec<u16>,
    pub limits: Limits,
}

/// What a project's files declare about its functions.
#[derive(Clone, Debug, Default)]
struct Declared {
    functions: Vec<FunctionConfig>,
    /// Their environment, besides the platform's variables.
    environment: BTreeMap<String, String>,
}

impl Declared {
    /// Also returns messages about functions that are not served.
    fn read(project: &Project, served: &Served) -> Result<(Self, Vec<String>), ProjectError> {
        let (environment, mut words) = project.function_environment(served.env_file.as_deref())?;
        let (mut functions, skipped) = project.functions();
        words.extend(skipped);
        for (place, function) in functions.iter_mut().enumerate() {
            function.verify_jwt &= !served.is_open;
            function.inspector = served.inspector.and_then(|inspector| inspector.of(place));
            if let Some(map) = &served.import_map {
                function.imports = Some(map.clone());
                function.package_json = false;
            }
        }
        Ok((Self { functions, environment }, words))
    }
}

/// Loads the project from its current files.
fn load(root: &Path) -> Result<Project, ProjectError> {
    let environment = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Project::load(root, environment.collect())
}

/// Resource limits of a function.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `FERROBASE_FUNCTION_MEMORY_MB`: the JavaScript heap.
    pub memory_mb: u64,
    /// `FERROBASE_FUNCTION_PROCESS_MB`: all memory of a worker, which includes bodies outside the heap; 0 is no limit.
    pub process_mb: u64,
    /// `FERROBASE_FUNCTION_BODY_MB`: a request's body, in bytes; `None` is no limit.
    pub body: Option<u64>,
    /// `FERROBASE_FUNCTION_PROCESSES`: processes of all functions together, at least one.
    pub processes: usize,
    /// `FERROBASE_FUNCTION_CALLS`: calls of a function at once; a client's network has at most half of them.
    pub calls: usize,
    /// `FERROBASE_FUNCTION_CPU_SECONDS`: processor time per request in one stretch, see [`usage`].
    pub cpu: Duration,
    /// `FERROBASE_FUNCTION_BOOT_CPU_SECONDS`: processor time until a new process listens.
    pub boot_cpu: Duration,
    /// `FERROBASE_FUNCTION_WALL_SECONDS`: the age at which a worker gets no more requests, and how long it may take to finish those
    /// that it has.
    pub wall_clock: Duration,
    /// `FERROBASE_FUNCTION_RESPONSE_SECONDS`: deadline for the response head.
    pub response: Duration,
    /// Deadline for a new process to listen.
    pub boot: Duration,
    /// An idle process ends after this time.
    pub idle: Duration,
}

impl Limits {
    /// How long a function waits for its debugger.
    const INSPECTED: Duration = Duration::from_secs(24 * 60 * 60);

    /// Those of a function. One in a debugger has all the time.
    fn of(self, function: &FunctionConfig) -> Self {
        if function.inspector.is_none() {
            return self;
        }
        let time = Self::INSPECTED;
        Self { cpu: time, boot_cpu: time, wall_clock: time, response: time, boot: time, idle: time, ..self }
    }
}

impl EdgeConfig {
    /// `FERROBASE_FUNCTIONS` names a project's folder. Without it, there are no edge functions.
    pub fn read(
        reader: &mut Reader<'_>,
        data_dir: &Path,
        closed_ports: Vec<u16>,
        in_development: bool,
    ) -> Option<Self> {
        let root = PathBuf::from(reader.text(&["FERROBASE_FUNCTIONS"])?);
        let project = match load(&root) {
            Ok(project) => project,
            Err(error) => {
                reader.problem(format!("FERROBASE_FUNCTIONS: {error}"));
                return None;
            }
        };
        let env_file = reader.text(&["FERROBASE_FUNCTIONS_ENV_FILE"]).map(PathBuf::from);
        let are_open = reader.flag(&["FERROBASE_FUNCTIONS_NO_VERIFY_JWT"], false);
        let served = Served { env_file: env_file.clone(), is_open: are_open, ..Served::default() };
        let declared = match Declared::read(&project, &served) {
            Ok((declared, words)) => {
                words.iter().for_each(|line| tracing::info!("{line}"));
                declared
            }
            Err(error) => {
                reader.problem(error.to_string());
                Declared::default()
            }
        };
        let seconds = |reader: &mut Reader<'_>, name, default| {
            Duration::from_secs(reader.parse_or(&[name], "a number of seconds", default))
        };
        let memory_mb: u64 = reader.parse_or(&["FERROBASE_FUNCTION_MEMORY_MB"], "a number of megabytes", 256);
        // The runtime itself and what V8 keeps outside of the heap's old part have to fit besides.
        let roomy = memory_mb.saturating_add(256);
        let body: u64 = reader.parse_or(&["FERROBASE_FUNCTION_BODY_MB"], "a number of megabytes", 100);
        let limits = Limits {
            memory_mb,
            process_mb: reader.parse_or(&["FERROBASE_FUNCTION_PROCESS_MB"], "a number of megabytes", roomy),
            body: (body > 0).then(|| body.saturating_mul(1 << 20)),
            processes: reader.parse_or(&["FERROBASE_FUNCTION_PROCESSES"], "a number of processes", 32).max(1),
            calls: reader.parse_or(&["FERROBASE_FUNCTION_CALLS"], "a number of calls", 1000),
            cpu: seconds(reader, "FERROBASE_FUNCTION_CPU_SECONDS", 2),
            boot_cpu: seconds(reader, "FERROBASE_FUNCTION_BOOT_CPU_SECONDS", 30),
            wall_clock: seconds(reader, "FERROBASE_FUNCTION_WALL_SECONDS", 400),
            response: seconds(reader, "FERROBASE_FUNCTION_RESPONSE_SECONDS", 150),
            boot: Duration::from_secs(60),
            idle: Duration::from_secs(600),
        };
        let deno = reader.text(&["FERROBASE_DENO"]).map(PathBuf::from).or_else(find_deno);
        if deno.is_none() && !declared.functions.is_empty() {
            tracing::warn!(
                functions = declared.functions.len(),
                "there is no Deno, so edge functions are not served: run 'npm ci --prefix tools/deno', or name one in FERROBASE_DENO"
            );
        }
        // Deno requires absolute paths.
        let cache = std::path::absolute(data_dir.join("functions")).unwrap_or_else(|_| data_dir.join("functions"));
        Some(Self {
            folder: project.functions_dir(),
            root: project.root.clone(),
            deno,
            declared,
            env_file,
            are_open,
            data_dir: data_dir.to_owned(),
            deno_dir: cache.join("deno"),
            cache,
            in_development,
            closed_ports,
            limits,
        })
    }
}

/// The platform's addresses and keys, passed to functions.
#[derive(Clone, Debug)]
pub struct PlatformValues {
    pub api_url: String,
    pub anon_key: String,
    pub service_role_key: Secret,
    pub publishable_key: Option<String>,
    pub secret_key: Option<Secret>,
    /// `None` if functions have no access to the database.
    pub database_url: Option<Secret>,
    /// The public signing keys.
    pub jwks: String,
    /// Other issuers whose tokens count, with keys of their own.
    pub issuers: Option<Issuers>,
}

/// All edge functions of a project. Cheap to clone.
#[derive(Clone)]
pub struct Edge {
    inner: Arc<Inner>,
}

struct Inner {
    config: EdgeConfig,
    platform: PlatformValues,
    catalog: RwLock<Arc<Catalog>>,
    http: reqwest::Client,
    /// Incremented when files change. A worker of an older generation gets no more requests.
    generation: AtomicU64,
    metrics: Arc<Metrics>,
    /// All processes, also those that boot or finish their last requests.
    workers: Mutex<Vec<Weak<Worker>>>,
    /// One for each process that may be added.
    places: Arc<Semaphore>,
    /// One for each process that may begin to boot.
    boots: Arc<Semaphore>,
    /// Whether no process is started any more.
    is_stopping: AtomicBool,
    /// Whether websockets are closed, because the server stops.
    closes_sockets: channel::Sender<bool>,
    /// The runtime of the processes' tasks, which outlives those of the server's workers.
    runtime: Handle,
}

/// The functions by name, and their environment.
struct Catalog {
    functions: BTreeMap<String, Arc<Function>>,
    environment: BTreeMap<String, String>,
}

impl Catalog {
    /// An unchanged function keeps its process.
    fn new(declared: Declared, before: Option<&Self>, limits: Limits) -> Self {
        let of = |config: FunctionConfig| {
            let known =
                before.and_then(|before| before.functions.get(&config.slug)).filter(|known| known.config == config);
            let function = known.map_or_else(|| Arc::new(Function::new(config.clone(), limits)), Arc::clone);
            (config.slug, function)
        };
        Self { functions: declared.functions.into_iter().map(of).collect(), environment: declared.environment }
    }
}

struct Function {
    config: FunctionConfig,
    current: Mutex<Current>,
    turns: Turns,
}

impl Function {
    fn new(config: FunctionConfig, limits: Limits) -> Self {
        Self { config, current: Mutex::default(), turns: Turns::new(limits.calls) }
    }
}

#[derive(Default)]
struct Current {
    /// The process that receives requests.
    worker: Option<Arc<Worker>>,
    starting: Option<Starting>,
    /// The last start, if it failed. The next request does not retry immediately.
    failure: Option<Failure>,
    /// The generation and time of the last start with [`stand_ins`], because a registry could not be reached.
    stood_in: Option<(Instant, u64)>,
}

/// A failed start, which answers all requests for a while, unless a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failure {
    generation: u64,
    error: error::RelayError,
    when: Instant,
    kept: Duration,
}

impl Failure {
    /// Kept twice as long as the failure before it, within limits.
    fn after(before: Option<Self>, generation: u64, error: error::RelayError) -> Self {
        let before = before.filter(|before| before.generation == generation);
        let kept = before.map_or(FAILURE_KEPT, |before| (before.kept * 2).min(FAILURE_KEPT_LONGEST));
        Self { generation, error, when: Instant::now(), kept }
    }
}

/// A process that is being started, for all requests that wait. It goes on even if none of them waits any longer.
#[derive(Clone)]
struct Starting {
    generation: u64,
    outcome: channel::Receiver<Option<Result<Arc<Worker>, error::RelayError>>>,
}

/// How long the first failed start answers all requests, and how long any of those that follow.
const FAILURE_KEPT: Duration = Duration::from_secs(3);
const FAILURE_KEPT_LONGEST: Duration = Duration::from_secs(30);
/// How long a start waits until a process of another function has ended, if there may not be more of them.
const PLACE_WAIT: Duration = Duration::from_secs(10);
/// How often it looks for a process that is idle.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a booting process counts as one. Later it waits for something outside, and others may boot.
const BOOT_TURN: Duration = Duration::from_secs(10);
/// How long a function starts with stand-ins at once, unless a file changes. Then the registries are tried again.
const STAND_INS_KEPT: Duration = Duration::from_secs(10 * 60);
/// How many processes of a function may finish their last requests at a time. The oldest is ended before there are more.
const MOST_RETIRED: usize = 4;

impl Edge {
    /// Must be called on the runtime that serves to the end.
    pub fn new(config: EdgeConfig, platform: PlatformValues) -> anyhow::Result<Self> {
        let http = outgoing::client()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(8)
            .connect_timeout(Duration::from_secs(5))
            .build()?;
        let catalog = RwLock::new(Arc::new(Catalog::new(config.declared.clone(), None, config.limits)));
        let places = Arc::new(Semaphore::new(config.limits.processes.min(Semaphore::MAX_PERMITS)));
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let in_development = config.in_development;
        let inner = Arc::new(Inner {
            config,
            platform,
            catalog,
            http,
            generation: AtomicU64::new(0),
            metrics: Arc::default(),
            workers: Mutex::default(),
            places,
            boots: Arc::new(Semaphore::new(processors.max(2))),
            is_stopping: AtomicBool::new(false),
            closes_sockets: channel::Sender::new(false),
            runtime: Handle::current(),
        });
        if in_development {
            watch::spawn(Arc::downgrade(&inner));
        }
        watch::end_idle(Arc::downgrade(&inner));
        Ok(Self { inner })
    }

    /// Gives each function a new process at its next request.
    pub fn renew(&self) {
        self.inner.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Closes the functions' websockets, which never end by themselves.
    pub fn close_sockets(&self) {
        self.inner.closes_sockets.send_replace(true);
    }

    /// Ends all processes, once their requests and promises are done. Call it when no more requests come.
    pub async fn stop(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        let workers = self.inner.living();
        for worker in &workers {
            worker.retire("termination");
        }
        let all = futures_util::future::join_all(workers.iter().map(|worker| worker.ended()));
        if tokio::time::timeout(worker::AFTERWARDS + Duration::from_secs(1), all).await.is_err() {
            tracing::warn!("processes of edge functions were still busy and are ended");
        }
        workers.iter().for_each(|worker| worker.kill());
    }

    /// Counts a request for as long as the returned value lives.
    pub fn receive(&self) -> Received {
        self.inner.metrics.receive()
    }

    /// What `/_internal/metric` answers. Only in development: it would tell strangers how busy a server is.
    pub fn metrics(&self) -> Option<serde_json::Value> {
        self.inner.config.in_development.then(|| self.inner.metrics.to_json())
    }

    /// Whether a function of this name exists.
    pub fn has(&self, slug: &str) -> bool {
        self.inner.function(slug).is_some()
    }
}

impl PlatformValues {
    /// The public keys that sign tokens, also those of other issuers, as a JWK set.
    async fn all_keys(&self) -> String {
        let Some(issuers) = &self.issuers else { return self.jwks.clone() };
        let mut keys = issuers.keys().await;
        if let Ok(serde_json::Value::Object(own)) = serde_json::from_str(&self.jwks) {
            keys.extend(own.get("keys").and_then(serde_json::Value::as_array).into_iter().flatten().cloned());
        }
        serde_json::json!({ "keys": keys }).to_string()
    }
}

impl Inner {
    /// Changes with the files of the functions, and with the keys that functions know.
    fn generation(&self) -> u64 {
        let keys = self.platform.issuers.as_ref().map_or(0, Issuers::key_changes);
        self.generation.load(Ordering::Acquire) + keys
    }

    fn function(&self, slug: &str) -> Option<Arc<Function>> {
        self.catalog.read().functions.get(slug).cloned()
    }

    /// Reloads the project's files. If they cannot be read, the previous state stays. The options of a running `functions serve`
    /// count besides the settings.
    fn read_again(&self, served: Option<Served>) {
        let config = &self.config;
        let served = served.unwrap_or_default();
        let served = Served {
            env_file: served.env_file.or_else(|| config.env_file.clone()),
            is_open: served.is_open || config.are_open,
            ..served
        };
        let declared = load(&config.root).and_then(|project| Declared::read(&project, &served));
        match declared {
            Ok((declared, words)) => {
                words.iter().for_each(|line| tracing::info!("{line}"));
                let former = {
                    let mut catalog = self.catalog.write();
                    let now = Arc::new(Catalog::new(declared, Some(&catalog), config.limits));
                    std::mem::replace(&mut *catalog, now)
                };
                let catalog = Arc::clone(&self.catalog.read());
                for (slug, function) in &former.functions {
                    let is_kept = catalog.functions.get(slug).is_some_and(|now| Arc::ptr_eq(now, function));
                    let worker = if is_kept { None } else { function.current.lock().worker.take() };
                    if let Some(worker) = worker {
                        self.retire(&worker, "termination");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "the project's functions are served as they were"),
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// All processes that have not ended, the oldest first.
    fn living(&self) -> Vec<Arc<Worker>> {
        self.workers.lock().iter().filter_map(Weak::upgrade).filter(|worker| worker.is_alive()).collect()
    }

    /// Lets a process finish its current requests and then end. A function with too many of them loses the oldest.
    fn retire(&self, worker: &Arc<Worker>, reason: &'static str) {
        worker.retire(reason);
        let slug = worker.slug.as_str();
        let retired: Vec<_> =
            self.living().into_iter().filter(|other| other.slug == slug && other.is_retired()).collect();
        for oldest in retired.iter().take(retired.len().saturating_sub(MOST_RETIRED)) {
            let open = oldest.open();
            tracing::warn!(
                function = slug,
                open,
                "too many retired processes of an edge function: the oldest is ended"
            );
            oldest.kill();
        }
    }

    /// A process for a request, started if there is none.
    async fn worker(self: &Arc<Self>, function: &Arc<Function>) -> Result<Arc<Worker>, error::RelayError> {
        loop {
            let generation = self.generation();
            let (begun, mut outcome) = match self.find_or_start(function, generation)? {
                Found::Worker(worker) => return Ok(worker),
                Found::Starting(Starting { generation, outcome }) => (generation, outcome),
            };
            let outcome = match outcome.wait_for(Option::is_some).await {
                Ok(outcome) => outcome.clone().unwrap_or(Err(error::RelayError::Boot)),
                Err(_) => Err(error::RelayError::Boot),
            };
            let started_from = outcome.as_ref().map_or(begun, |worker| worker.generation);
            if started_from >= generation {
                return outcome;
            }
            // Files have changed since it was started, so it is replaced.
        }
    }

    fn find_or_start(self: &Arc<Self>, function: &Arc<Function>, generation: u64) -> Result<Found, error::RelayError> {
        let mut current = function.current.lock();
        // A start that has failed in an unexpected way has no outcome.
        if let Some(starting) = current.starting.as_ref().filter(|starting| starting.outcome.has_changed().is_ok()) {
            return Ok(Found::Starting(starting.clone()));
        }
        let mut in_debugger = None;
        if let Some(worker) = &current.worker {
            let is_old = worker.age() >= worker.limits.wall_clock;
            if worker.is_alive() && worker.generation == generation && !is_old {
                return Ok(Found::Worker(Arc::clone(worker)));
            }
            self.retire(worker, if is_old { "wall_clock" } else { "termination" });
            in_debugger = current.worker.take().filter(|_| function.config.inspector.is_some());
        }
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(error::RelayError::Boot);
        }
        if let Some(failure) = current.failure
            && failure.generation == generation
            && failure.when.elapsed() < failure.kept
        {
            return Err(failure.error);
        }
        let (tell, outcome) = channel::channel(None);
        let starting = Starting { generation, outcome };
        current.starting = Some(starting.clone());
        let (inner, function) = (Arc::clone(self), Arc::clone(function));
        self.runtime.spawn(async move {
            if let Some(worker) = in_debugger {
                // Its request may stand at a breakpoint, and its port has to be free.
                worker.kill();
                worker.ended().await;
            }
            let jwks = inner.platform.all_keys().await;
            // Keys that have just arrived are among them.
            let generation = inner.generation();
            let outcome = inner.start(&function, generation, &jwks).await;
            let mut current = function.current.lock();
            current.starting = None;
            match &outcome {
                Ok(worker) => {
                    current.failure = None;
                    current.worker = Some(Arc::clone(worker));
                }
                // There may be a place for it at once.
                Err(error::RelayError::Full) => {}
                Err(error) => current.failure = Some(Failure::after(current.failure, generation, *error)),
            }
            drop(current);
            let _ = tell.send(Some(outcome));
        });
        Ok(Found::Starting(starting))
    }

    /// Starts a process, with stand-ins if a module cannot be fetched.
    async fn start(&self, function: &Function, generation: u64, jwks: &str) -> Result<Arc<Worker>, error::RelayError> {
        let stood_in = function.current.lock().stood_in;
        let stands_in = stood_in.is_some_and(|(when, of)| of == generation && when.elapsed() < STAND_INS_KEPT);
        if !stands_in {
            match self.start_with(function, generation, jwks, None).await {
                Err(StartError::Unreachable) => {}
                outcome => return outcome.map_err(StartError::relayed),
            }
        }
        let slug = function.config.slug.as_str();
        let (cache, sources) = (self.config.cache.clone(), self.config.folder.clone());
        let (name, own) = (slug.to_owned(), function.config.imports.clone());
        let written =
            tokio::task::spawn_blocking(move || stand_ins::write(&cache, &name, &sources, own.as_deref())).await;
        let (map, replaced) = match written {
            Ok(Ok(written)) => written,
            Ok(Err(error)) => {
                tracing::error!(function = slug, %error, "the stand-ins of modules cannot be written");
                return Err(error::RelayError::Boot);
            }
            Err(_) => return Err(error::RelayError::Boot),
        };
        if replaced.is_empty() {
            tracing::error!(function = slug, "an edge function did not begin to listen: a module cannot be fetched");
            return Err(error::RelayError::Boot);
        }
        if !stands_in {
            tracing::warn!(
                function = slug,
                modules = replaced.join(" "),
                "modules of edge functions cannot be fetched: packages are taken from npm, parts of the standard library from the server"
            );
        }
        let worker = self.start_with(function, generation, jwks, Some(&map)).await.map_err(StartError::relayed)?;
        if !stands_in {
            function.current.lock().stood_in = Some((Instant::now(), generation));
        }
        Ok(worker)
    }

    async fn start_with(
        &self,
        function: &Function,
        generation: u64,
        jwks: &str,
        stand_ins: Option<&Path>,
    ) -> Result<Arc<Worker>, StartError> {
        let place = self.place().await?;
        let Ok(turn) = Arc::clone(&self.boots).acquire_owned().await else {
            return Err(StartError::Relayed(error::RelayError::Boot));
        };
        let catalog = Arc::clone(&self.catalog.read());
        let (platform, process) = ((&self.platform, jwks), self.metrics.process());
        let (config, environment) = (&self.config, &catalog.environment);
        let (worker, boot) =
            Worker::spawn(config, platform, environment, &function.config, generation, stand_ins, process).await?;
        usage::watch(&worker);
        worker.keep(place);
        self.note(&worker);
        {
            let mut booting = std::pin::pin!(worker.boot(boot));
            let early = tokio::time::timeout(BOOT_TURN, &mut booting).await;
            drop(turn);
            match early {
                Ok(booted) => booted?,
                Err(_) => booting.await?,
            }
        }
        if self.is_stopping.load(Ordering::Acquire) {
            worker.retire("termination");
        }
        Ok(worker)
    }

    fn note(&self, worker: &Arc<Worker>) {
        let mut workers = self.workers.lock();
        workers.retain(|other| other.upgrade().is_some_and(|other| other.is_alive()));
        workers.push(Arc::downgrade(worker));
    }

    /// A place for another process. If there is none, the process that has been idle for the longest time leaves its own.
    async fn place(&self) -> Result<OwnedSemaphorePermit, StartError> {
        let begun = Instant::now();
        let mut leaving: Option<Arc<Worker>> = None;
        loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return Ok(place);
            }
            if leaving.as_ref().is_none_or(|worker| !worker.is_alive() || worker.open() > 0) {
                leaving = self.take_idlest();
                if let Some(worker) = &leaving {
                    self.retire(worker, "early_drop");
                }
            }
            let next = tokio::time::timeout(LOOK_EVERY, Arc::clone(&self.places).acquire_owned()).await;
            if let Ok(Ok(place)) = next {
                return Ok(place);
            }
            if begun.elapsed() > PLACE_WAIT {
                let processes = self.config.limits.processes;
                tracing::warn!(
                    processes,
                    "an edge function is not started: there are as many processes as there may be"
                );
                return Err(StartError::Relayed(error::RelayError::Full));
            }
        }
    }

    /// The process that has been idle for the longest time. Its function does not have it any more.
    fn take_idlest(&self) -> Option<Arc<Worker>> {
        let catalog = Arc::clone(&self.catalog.read());
        let idle = |function: &Arc<Function>| function.current.lock().worker.as_ref().map(|worker| worker.idle());
        let idlest = catalog.functions.values().filter_map(|function| Some((idle(function)?, function)));
        let (_, function) = idlest.filter(|(idle, _)| !idle.is_zero()).max_by_key(|(idle, _)| *idle)?;
        function.current.lock().worker.take_if(|worker| !worker.idle().is_zero())
    }
}

/// A process for a request, or its start.
enum Found {
    Worker(Arc<Worker>),
    Starting(Starting),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_keeps_failing_is_started_less_and_less_often() {
        let failed = |before, generation| Failure::after(before, generation, error::RelayError::Limit);
        let mut failure = failed(None, 1);
        assert_eq!((failure.kept, failure.error), (FAILURE_KEPT, error::RelayError::Limit));
        for seconds in [6, 12, 24, 30, 30] {
            failure = failed(Some(failure), 1);
            assert_eq!(failure.kept, Duration::from_secs(seconds));
        }
        assert_eq!(failed(Some(failure), 2).kept, FAILURE_KEPT, "its files have changed");
    }

    #[tokio::test]
    async fn figures_are_shown_in_development_only() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let edge = |in_development| {
            let limits = Limits {
                memory_mb: 1,
                process_mb: 0,
                body: None,
                processes: 1,
                calls: 1,
                cpu: Duration::ZERO,
                boot_cpu: Duration::ZERO,
                wall_clock: Duration::ZERO,
                response: Duration::ZERO,
                boot: Duration::ZERO,
                idle: Duration::ZERO,
            };
            let folder = PathBuf::from("/none");
            let config = EdgeConfig {
                declared: Declared::default(),
                env_file: None,
                are_open: false,
                folder: folder.clone(),
                root: folder.clone(),
                deno: None,
                data_dir: folder.clone(),
                cache: folder.clone(),
                deno_dir: folder,
                in_development,
                closed_ports: vec![],
                limits,
            };
            let platform = PlatformValues {
                api_url: String::new(),
                anon_key: String::new(),
                service_role_key: Secret::new(""),
                publishable_key: None,
                secret_key: None,
                database_url: None,
                jwks: String::new(),
                issuers: None,
            };
            Edge::new(config, platform).expect("edge functions")
        };
        assert!(edge(true).metrics().is_some_and(|figures| figures["receivedRequestsCount"] == 0));
        assert_eq!(edge(false).metrics(), None);
    }
}
