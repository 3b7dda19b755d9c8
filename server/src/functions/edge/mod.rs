//! Edge functions: the folders of a project's `supabase/functions`, run by Deno.
//!
//! Each function has its own process (`worker`). It is started by the first call, receives requests over loopback HTTP and is ended
//! when it is idle, over a limit or older than its files (`watch`). A function that crashes or blocks affects only its own
//! requests. For each request `relay` checks the token, gets a worker of the function and streams body and answer.

mod error;
mod metrics;
mod relay;
mod stand_ins;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Mutex;

pub use metrics::Received;
pub use relay::call;

use crate::config::{Reader, Secret};
use crate::jwt::Issuers;
use crate::project::{FunctionConfig, Project, ProjectError, Served, find_deno};
use metrics::Metrics;
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
    /// `FERROBASE_FUNCTION_CPU_SECONDS`: processor time per open request.
    pub cpu: Duration,
    /// `FERROBASE_FUNCTION_WALL_SECONDS`: the age at which a worker gets no more requests.
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
        Self { cpu: time, wall_clock: time, response: time, boot: time, idle: time, ..self }
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
        let limits = Limits {
            memory_mb: reader.parse_or(&["FERROBASE_FUNCTION_MEMORY_MB"], "a number of megabytes", 256),
            cpu: seconds(reader, "FERROBASE_FUNCTION_CPU_SECONDS", 2),
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
    /// Whether a registry could not be reached, so that functions start with [`stand_ins`].
    lacks_registries: AtomicBool,
    metrics: Arc<Metrics>,
}

/// The functions by name, and their environment.
struct Catalog {
    functions: BTreeMap<String, Arc<Function>>,
    environment: BTreeMap<String, String>,
}

impl Catalog {
    /// An unchanged function keeps its process.
    fn new(declared: Declared, before: Option<&Self>) -> Self {
        let of = |config: FunctionConfig| {
            let known =
                before.and_then(|before| before.functions.get(&config.slug)).filter(|known| known.config == config);
            let function = known
                .map_or_else(|| Arc::new(Function { config: config.clone(), current: Mutex::default() }), Arc::clone);
            (config.slug, function)
        };
        Self { functions: declared.functions.into_iter().map(of).collect(), environment: declared.environment }
    }
}

struct Function {
    config: FunctionConfig,
    /// The process that receives requests. Locked while one is starting, so that all waiting requests share it.
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    worker: Option<Arc<Worker>>,
    /// The generation and time of the last failed start. The next request does not retry immediately.
    failure: Option<(std::time::Instant, u64)>,
}

/// How long a failed start answers all requests, unless a file changes.
const FAILURE_KEPT: Duration = Duration::from_secs(3);

impl Edge {
    pub fn new(config: EdgeConfig, platform: PlatformValues) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(8)
            .connect_timeout(Duration::from_secs(5))
            .build()?;
        let catalog = RwLock::new(Arc::new(Catalog::new(config.declared.clone(), None)));
        let in_development = config.in_development;
        let inner = Arc::new(Inner {
            config,
            platform,
            catalog,
            http,
            generation: AtomicU64::new(0),
            lacks_registries: AtomicBool::new(false),
            metrics: Arc::default(),
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
                let mut catalog = self.catalog.write();
                *catalog = Arc::new(Catalog::new(declared, Some(&catalog)));
            }
            Err(error) => tracing::warn!(%error, "the project's functions are served as they were"),
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// A process for a request, started if there is none.
    async fn worker(&self, function: &Function) -> Result<Arc<Worker>, error::RelayError> {
        let generation = self.generation();
        let mut current = function.current.lock().await;
        if let Some(worker) = &current.worker {
            let is_old = worker.age() >= self.config.limits.of(&function.config).wall_clock;
            if worker.is_alive() && worker.generation == generation && !is_old {
                return Ok(Arc::clone(worker));
            }
            // It finishes its current requests and then ends.
            worker.retire(if is_old { "wall_clock" } else { "termination" });
            if function.config.inspector.is_some() {
                // Its request may stand at a breakpoint, and its port has to be free.
                worker.kill();
                worker.ended().await;
            }
            current.worker = None;
        }
        if let Some((when, of)) = current.failure
            && of == generation
            && when.elapsed() < FAILURE_KEPT
        {
            return Err(error::RelayError::Boot);
        }
        let jwks = self.platform.all_keys().await;
        // Keys that have just arrived are among them.
        let generation = self.generation();
        match self.start(function, generation, &jwks).await {
            Ok(worker) => {
                current.failure = None;
                let worker = Arc::new(worker);
                current.worker = Some(Arc::clone(&worker));
                Ok(worker)
            }
            Err(error) => {
                current.failure = Some((std::time::Instant::now(), generation));
                Err(error)
            }
        }
    }

    /// Starts a process, with stand-ins once a module could not be fetched.
    async fn start(&self, function: &Function, generation: u64, jwks: &str) -> Result<Worker, error::RelayError> {
        let (config, slug) = (&self.config, function.config.slug.as_str());
        let platform = (&self.platform, jwks);
        let catalog = Arc::clone(&self.catalog.read());
        let environment = &catalog.environment;
        if !self.lacks_registries.load(Ordering::Acquire) {
            let process = self.metrics.process();
            match Worker::start(config, platform, environment, &function.config, generation, None, process).await {
                Err(StartError::Unreachable) => {}
                outcome => return outcome.map_err(StartError::relayed),
            }
        }
        let (cache, sources) = (config.cache.clone(), config.folder.clone());
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
            return Err(error::RelayError::Boot);
        }
        if !self.lacks_registries.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                modules = replaced.join(" "),
                "modules of edge functions cannot be fetched: packages are taken from npm, parts of the standard library from the server"
            );
        }
        let process = self.metrics.process();
        let started = Worker::start(config, platform, environment, &function.config, generation, Some(&map), process);
        let outcome = started.await;
        outcome.map_err(StartError::relayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn figures_are_shown_in_development_only() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let edge = |in_development| {
            let limits = Limits {
                memory_mb: 1,
                cpu: Duration::ZERO,
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
