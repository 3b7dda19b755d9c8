//! Edge functions: the folders of a project's `supabase/functions`, run by Deno.
//!
//! Each function has its own process (`worker`). It is started by the first call, receives requests over loopback HTTP and is ended
//! when it is idle, over a limit or older than its files (`watch`). A function that crashes or blocks affects only its own
//! requests. For each request `relay` checks the token, gets a worker of the function and streams body and answer.

mod error;
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

pub use relay::call;

use crate::config::{Reader, Secret};
use crate::project::{FunctionConfig, Project, ProjectError, find_deno};
use worker::{StartError, Worker};

/// How edge functions are run.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    /// What the project says of them.
    declared: Declared,
    /// `FERROBASE_FUNCTIONS_ENV_FILE`: their environment instead of `supabase/functions/.env`.
    env_file: Option<PathBuf>,
    /// `FERROBASE_FUNCTIONS_NO_VERIFY_JWT`: whether all are called without a token.
    are_open: bool,
    /// `supabase/functions`, which they may read.
    pub folder: PathBuf,
    /// The project's folder, where they are run.
    pub root: PathBuf,
    /// `FERROBASE_DENO`, else the one installed beside the checkout, else `deno` on PATH.
    pub deno: Option<PathBuf>,
    /// Where functions keep their temporary files.
    pub cache: PathBuf,
    /// `DENO_DIR`: what Deno has fetched, in the cache unless it is shared by several servers.
    pub deno_dir: PathBuf,
    /// Whether changed files are seen while the server runs.
    pub is_watched: bool,
    /// Addresses on this machine that functions may not reach.
    pub closed_ports: Vec<u16>,
    pub limits: Limits,
}

/// What a project's files say of its functions.
#[derive(Clone, Debug, Default)]
struct Declared {
    functions: Vec<FunctionConfig>,
    /// What they find in their environment beside names of the platform.
    environment: BTreeMap<String, String>,
}

impl Declared {
    /// With words about what is not served.
    fn read(project: &Project, env_file: Option<&Path>, are_open: bool) -> Result<(Self, Vec<String>), ProjectError> {
        let (environment, mut words) = project.function_environment(env_file)?;
        let (mut functions, skipped) = project.functions();
        words.extend(skipped);
        if are_open {
            functions.iter_mut().for_each(|function| function.verify_jwt = false);
        }
        Ok((Self { functions, environment }, words))
    }
}

/// The project of a folder, as its files are now.
fn load(root: &Path) -> Result<Project, ProjectError> {
    let environment = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Project::load(root, environment.collect())
}

/// What one function may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `FERROBASE_FUNCTION_MEMORY_MB`: JavaScript's heap.
    pub memory_mb: u64,
    /// `FERROBASE_FUNCTION_CPU_SECONDS`: of processor time per open request.
    pub cpu: Duration,
    /// `FERROBASE_FUNCTION_WALL_SECONDS`: age at which a worker takes no more requests.
    pub wall_clock: Duration,
    /// `FERROBASE_FUNCTION_RESPONSE_SECONDS`: until the head of an answer.
    pub response: Duration,
    /// Until a new process listens.
    pub boot: Duration,
    /// Without requests for this long, a process ends.
    pub idle: Duration,
}

impl EdgeConfig {
    /// `FERROBASE_FUNCTIONS` names a project's folder; without it there are none.
    pub fn read(reader: &mut Reader<'_>, data_dir: &Path, closed_ports: Vec<u16>, is_watched: bool) -> Option<Self> {
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
        let declared = match Declared::read(&project, env_file.as_deref(), are_open) {
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
        // Deno wants whole paths.
        let cache = std::path::absolute(data_dir.join("functions")).unwrap_or_else(|_| data_dir.join("functions"));
        Some(Self {
            folder: project.functions_dir(),
            root: project.root.clone(),
            deno,
            declared,
            env_file,
            are_open,
            deno_dir: cache.join("deno"),
            cache,
            is_watched,
            closed_ports,
            limits,
        })
    }
}

/// What functions are told of the platform.
#[derive(Clone, Debug)]
pub struct PlatformValues {
    pub api_url: String,
    pub anon_key: String,
    pub service_role_key: Secret,
    pub publishable_key: Option<String>,
    pub secret_key: Option<Secret>,
    /// `None` where functions do not reach the database.
    pub database_url: Option<Secret>,
    /// The public halves of the signing keys.
    pub jwks: String,
}

/// All functions of a project. Cheap to clone.
#[derive(Clone)]
pub struct Edge {
    inner: Arc<Inner>,
}

struct Inner {
    config: EdgeConfig,
    platform: PlatformValues,
    catalog: RwLock<Arc<Catalog>>,
    http: reqwest::Client,
    /// Grows with every change of the files; a worker of an older one takes no more requests.
    generation: AtomicU64,
    /// Whether a registry could not be reached, so that functions start with [`stand_ins`].
    lacks_registries: AtomicBool,
}

/// The functions by name, and their environment.
struct Catalog {
    functions: BTreeMap<String, Arc<Function>>,
    environment: BTreeMap<String, String>,
}

impl Catalog {
    /// A function that stays as it is keeps its process, which ends in order.
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
    /// The process that takes requests now. Held while one is started, so that all who wait share it.
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    worker: Option<Arc<Worker>>,
    /// Why the last start failed, and when: the next request does not try again at once.
    failure: Option<(std::time::Instant, u64)>,
}

/// For how long a failed start answers all requests, unless a file changes.
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
        let is_watched = config.is_watched;
        let inner = Arc::new(Inner {
            config,
            platform,
            catalog,
            http,
            generation: AtomicU64::new(0),
            lacks_registries: AtomicBool::new(false),
        });
        if is_watched {
            watch::spawn(Arc::downgrade(&inner));
        }
        watch::end_idle(Arc::downgrade(&inner));
        Ok(Self { inner })
    }

    /// Gives the next request of each function a new process.
    pub fn renew(&self) {
        self.inner.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether there is a function of this name.
    pub fn has(&self, slug: &str) -> bool {
        self.inner.function(slug).is_some()
    }
}

impl Inner {
    fn function(&self, slug: &str) -> Option<Arc<Function>> {
        self.catalog.read().functions.get(slug).cloned()
    }

    /// Takes the project's files as they are now; where they cannot be read, what they said before goes on.
    fn read_again(&self) {
        let config = &self.config;
        let declared = load(&config.root)
            .and_then(|project| Declared::read(&project, config.env_file.as_deref(), config.are_open));
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

    /// A process that may take a request, started if there is none.
    async fn worker(&self, function: &Function) -> Result<Arc<Worker>, error::RelayError> {
        let generation = self.generation.load(Ordering::Acquire);
        let mut current = function.current.lock().await;
        if let Some(worker) = &current.worker {
            let is_fresh = worker.generation == generation && worker.age() < self.config.limits.wall_clock;
            if worker.is_alive() && is_fresh {
                return Ok(Arc::clone(worker));
            }
            // It goes on with the requests it has, and ends with them.
            worker.retire(if is_fresh { "termination" } else { "wall_clock" });
            current.worker = None;
        }
        if let Some((when, of)) = current.failure
            && of == generation
            && when.elapsed() < FAILURE_KEPT
        {
            return Err(error::RelayError::Boot);
        }
        match self.start(function, generation).await {
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
    async fn start(&self, function: &Function, generation: u64) -> Result<Worker, error::RelayError> {
        let (config, platform, slug) = (&self.config, &self.platform, function.config.slug.as_str());
        let catalog = Arc::clone(&self.catalog.read());
        let environment = &catalog.environment;
        if !self.lacks_registries.load(Ordering::Acquire) {
            match Worker::start(config, platform, environment, &function.config, generation, None).await {
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
        let outcome = Worker::start(config, platform, environment, &function.config, generation, Some(&map)).await;
        outcome.map_err(StartError::relayed)
    }
}
