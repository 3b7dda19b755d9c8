//! Edge functions: the folders of a project's `supabase/functions`, run by Deno.
//!
//! Each function has its own process (`worker`). It is started by the first call, receives requests over loopback HTTP and is ended
//! when it is idle, over a limit or older than its files (`watch`). A function that crashes or blocks affects only its own
//! requests. For each request `relay` checks the token, gets a worker of the function and streams body and answer.

mod error;
mod relay;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

pub use relay::call;

use crate::config::{Reader, Secret};
use crate::project::{FunctionConfig, Project, find_deno};
use worker::Worker;

/// How edge functions are run.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    pub functions: Vec<FunctionConfig>,
    /// `supabase/functions`, which they may read.
    pub folder: PathBuf,
    /// The project's folder, where they are run.
    pub root: PathBuf,
    /// `FERROBASE_DENO`, else the one installed beside the checkout, else `deno` on PATH.
    pub deno: Option<PathBuf>,
    /// What they find in their environment beside names of the platform.
    pub environment: BTreeMap<String, String>,
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
        let environment = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        let project = match Project::load(&root, environment.collect()) {
            Ok(project) => project,
            Err(error) => {
                reader.problem(format!("FERROBASE_FUNCTIONS: {error}"));
                return None;
            }
        };
        let file = reader.text(&["FERROBASE_FUNCTIONS_ENV_FILE"]).map(PathBuf::from);
        let environment = match project.function_environment(file.as_deref()) {
            Ok((environment, skipped)) => {
                for line in skipped {
                    tracing::warn!("{line}");
                }
                environment
            }
            Err(error) => {
                reader.problem(error.to_string());
                BTreeMap::new()
            }
        };
        let (mut functions, skipped) = project.functions();
        for line in skipped {
            tracing::info!("{line}");
        }
        if reader.flag(&["FERROBASE_FUNCTIONS_NO_VERIFY_JWT"], false) {
            functions.iter_mut().for_each(|function| function.verify_jwt = false);
        }
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
        if deno.is_none() && !functions.is_empty() {
            tracing::warn!(
                functions = functions.len(),
                "there is no Deno, so edge functions are not served: run 'npm ci --prefix tools/deno', or name one in FERROBASE_DENO"
            );
        }
        // Deno wants whole paths.
        let cache = std::path::absolute(data_dir.join("functions")).unwrap_or_else(|_| data_dir.join("functions"));
        Some(Self {
            folder: project.functions_dir(),
            root: project.root.clone(),
            deno,
            environment,
            deno_dir: cache.join("deno"),
            cache,
            is_watched,
            closed_ports,
            limits,
            functions,
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
    functions: BTreeMap<String, Function>,
    http: reqwest::Client,
    /// Grows with every change of the files; a worker of an older one takes no more requests.
    generation: AtomicU64,
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
        let functions = config
            .functions
            .iter()
            .map(|function| (function.slug.clone(), Function { config: function.clone(), current: Mutex::default() }))
            .collect();
        let is_watched = config.is_watched;
        let inner = Arc::new(Inner { config, platform, functions, http, generation: AtomicU64::new(0) });
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
        self.inner.functions.contains_key(slug)
    }

    /// Names of the functions.
    pub fn slugs(&self) -> Vec<&str> {
        self.inner.functions.keys().map(String::as_str).collect()
    }
}

impl Inner {
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
        match Worker::start(&self.config, &self.platform, &function.config, generation).await {
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
}
