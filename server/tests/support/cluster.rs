//! The PostgreSQL of the tests: one cluster per test program, one database per test.
//!
//! The cluster starts with the first test that needs it and ends with the program. It is a copy of a prepared one, which
//! is kept in Cargo's target folder under a hash of all its inputs, so migrations run again only if one of these changes.
//! Every test gets a copy of a template database, dropped at the end of the test.
//!
//! `TEST_DATABASE_URL` (of a superuser) replaces the embedded PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::ports::free_port;
use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::migrate::{self, GivenUrls, PlatformUrls};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_postgres::{Client, NoTls};

/// Settings of a throw-away cluster.
const SETTINGS: [(&str, &str); 12] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
    // Several tests run at once, each with its own servers and pools.
    ("max_connections", "500"),
    ("shared_buffers", "64MB"),
    // Every test copies a database. Without these settings, the WAL of the copies alone would fill a gigabyte.
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "64MB"),
    ("wal_recycle", "off"),
    // Thousands of logins, none of which has to withstand guessing.
    ("scram_iterations", "1"),
    // The tests' relays have to read the traffic.
    ("ssl", "off"),
];

/// Settings of a second cluster with logical WAL, for the tests of realtime.
const LOGICAL: [(&str, &str); 4] =
    [("wal_level", "logical"), ("max_wal_senders", "60"), ("max_replication_slots", "60"), ("max_wal_size", "256MB")];

/// The initial state of a test's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Nothing.
    Empty,
    /// The platform's schemas.
    Platform,
    /// The platform, the schema of the auth API and the application.
    App,
    /// `rest/schema.sql`.
    Observatory,
    /// `rest_isolation/schema.sql`.
    Studio,
}

impl Template {
    const ALL: [Self; 5] = [Self::Empty, Self::Platform, Self::App, Self::Observatory, Self::Studio];

    /// Name of the template database.
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "template_empty",
            Self::Platform => "template_platform",
            Self::App => "template_app",
            Self::Observatory => "template_observatory",
            Self::Studio => "template_studio",
        }
    }

    /// Fills the database `url`, which logs in as a superuser; migrations run as the owner at `owner_url`.
    async fn fill(self, url: &str, owner_url: &str) {
        match self {
            Self::Empty => {}
            Self::Platform => {
                prepare(url).await;
            }
            Self::App => {
                let urls = prepare(url).await;
                migrate::auth(&urls.auth_url).await.expect("auth schema");
                migrate::dir(owner_url, &migrate::Source::App).await.expect("application migrations");
            }
            Self::Observatory => load(url, include_str!("../rest/schema.sql")).await,
            Self::Studio => load(url, include_str!("../rest_isolation/schema.sql")).await,
        }
    }
}

async fn load(url: &str, schema: &str) {
    connect(url).await.batch_execute(schema).await.expect("the schema loads");
}

async fn prepare(url: &str) -> PlatformUrls {
    migrate::prepare(url, ferrobase::config::DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await.expect("platform")
}

/// The cluster of this test program.
#[derive(Debug)]
pub struct Cluster {
    /// URLs of the database `postgres` as superuser and as owner.
    url: String,
    owner_url: String,
    /// Logins of the platform, without a database.
    urls: PlatformUrls,
    /// Folder for files of the tests; removed after the program has ended.
    pub folder: PathBuf,
    /// Names of databases to drop.
    done: UnboundedSender<String>,
}

static CLUSTER: OnceLock<Cluster> = OnceLock::new();
static LOGICAL_CLUSTER: OnceLock<Cluster> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The cluster of this program, started on first use.
pub fn cluster() -> &'static Cluster {
    CLUSTER.get_or_init(|| launch("", &[]))
}

/// A second cluster of this program, with logical WAL.
pub fn logical_cluster() -> &'static Cluster {
    if std::env::var_os("TEST_DATABASE_URL").is_some() {
        return cluster();
    }
    LOGICAL_CLUSTER.get_or_init(|| launch("-logical", &LOGICAL))
}

fn launch(suffix: &'static str, settings: &'static [(&'static str, &'static str)]) -> Cluster {
    {
        // The cluster outlives the runtime of the test that happened to need it first.
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("runtime");
            runtime.block_on(async {
                let (done, mut databases) = unbounded_channel::<String>();
                let (cluster, _postgres) = open(done, suffix, settings).await;
                let owner = connect(&cluster.url).await;
                send.send(cluster).expect("the first test waits");
                while let Some(name) = databases.recv().await {
                    // A replication slot in use blocks dropping its database.
                    let end = "select pg_terminate_backend(active_pid) from pg_replication_slots
                               where database = $1 and active_pid is not null";
                    let _ = owner.execute(end, &[&name]).await;
                    // A test may have dropped it itself.
                    let _ = owner.batch_execute(&format!("drop database {name} with (force)")).await;
                }
            });
        });
        receive.recv().expect("the cluster starts")
    }
}

impl Cluster {
    /// Logins of the platform for the database `name`.
    pub fn logins(&self, name: &str) -> PlatformUrls {
        PlatformUrls {
            rest_url: with_database(&self.urls.rest_url, name),
            auth_url: with_database(&self.urls.auth_url, name),
            service_url: with_database(&self.urls.service_url, name),
            replication_url: with_database(&self.urls.replication_url, name),
            pooled: None,
            replica_url: None,
        }
    }

    /// The superuser's URL of the database `name`.
    pub fn superuser_url(&self, name: &str) -> String {
        with_database(&self.url, name)
    }

    /// Drops a database even if it has connections.
    pub async fn drop_database(&self, name: &str) {
        let drop = format!("drop database {name} with (force)");
        connect(&self.url).await.batch_execute(&drop).await.expect("the database goes");
    }
}

/// A separate database, dropped with this value.
#[derive(Debug)]
pub struct Database {
    pub name: String,
    /// The superuser's URL.
    pub url: String,
    /// The URL of the owner, who runs migrations.
    pub owner_url: String,
    pub cluster: &'static Cluster,
}

impl Database {
    pub async fn new(template: Template) -> Self {
        let owner = owner_of(&cluster().owner_url);
        Self::made(|name| create(name, template, &owner)).await
    }

    /// On the cluster with logical WAL.
    pub async fn logical(template: Template) -> Self {
        let owner = owner_of(&logical_cluster().owner_url);
        Self::made_on(logical_cluster(), |name| create(name, template, &owner)).await
    }

    /// Created by the statement that `create` returns for a name.
    pub async fn made(create: impl FnOnce(&str) -> String) -> Self {
        Self::made_on(cluster(), create).await
    }

    async fn made_on(cluster: &'static Cluster, create: impl FnOnce(&str) -> String) -> Self {
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let create = create(&name);
        let owner = connect(&cluster.url).await;
        // A template can be copied only while it has no connections.
        for attempt in 0.. {
            match owner.batch_execute(&create).await {
                Ok(()) => break,
                Err(error) if attempt > 200 => panic!("{create}: {error:?}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        let owner_url = with_database(&cluster.owner_url, &name);
        Self { url: cluster.superuser_url(&name), owner_url, name, cluster }
    }

    /// Logins of the platform.
    pub fn logins(&self) -> PlatformUrls {
        self.cluster.logins(&self.name)
    }
}

/// Copied as files: a third of the processor time of a copy through the WAL, which all streams would have to read.
fn create(name: &str, template: Template, owner: &str) -> String {
    format!("create database {name} template {} owner {owner} strategy file_copy", template.name())
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.cluster.done.send(std::mem::take(&mut self.name));
    }
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connection");
    tokio::spawn(connection);
    client
}

pub fn with_database(url: &str, database: &str) -> String {
    let mut parsed = url::Url::parse(url).expect("url");
    parsed.set_path(&format!("/{database}"));
    parsed.into()
}

/// Where clusters lie. `tools/test.sh` names a folder in memory. Projects are no place for it: Deno reads nothing below /dev.
pub fn place() -> PathBuf {
    std::env::var_os("TEST_CLUSTERS").map_or_else(std::env::temp_dir, PathBuf::from)
}

async fn open(
    done: UnboundedSender<String>,
    suffix: &str,
    settings: &[(&str, &str)],
) -> (Cluster, Option<EmbeddedPostgres>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = place().join(format!("ferrobase-tests-{}{suffix}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary folder");
    let (url, owner_url, postgres) = if let Ok(url) = std::env::var("TEST_DATABASE_URL") {
        make_templates(&url, &url).await;
        remove_with_this_program(&folder, None);
        (url.clone(), url, None)
    } else {
        prepared().await.copy_to(&folder.join("db"));
        let postgres = start(&folder, settings).await;
        remove_with_this_program(&folder, Some(&postgres.cluster));
        (postgres.admin_url.clone(), postgres.url.clone(), Some(postgres))
    };
    // The platform exists already: this only derives the logins.
    let urls = prepare(&with_database(&url, Template::App.name())).await;
    (Cluster { url, owner_url, urls, folder, done }, postgres)
}

async fn start(folder: &Path, others: &[(&str, &str)]) -> EmbeddedPostgres {
    let own = SETTINGS.iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name));
    let options = EmbeddedOptions {
        data_root: folder.to_owned(),
        port: free_port(),
        bin_dir: std::env::var_os("PG_BIN_DIR").map(PathBuf::from),
        settings: own.chain(others).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..EmbeddedOptions::default()
    };
    EmbeddedPostgres::start(&options).await.expect("PostgreSQL starts (tools/install.sh postgres installs it)")
}

/// The role that a URL logs in as.
fn owner_of(url: &str) -> String {
    url::Url::parse(url).expect("url").username().to_owned()
}

async fn make_templates(url: &str, owner_url: &str) {
    let superuser = connect(url).await;
    let owner = owner_of(owner_url);
    for template in Template::ALL {
        let name = template.name();
        superuser.batch_execute(&format!("drop database if exists {name}")).await.expect("no old template");
        let create =
            format!("create database {name} template template0 encoding 'UTF8' locale 'C.UTF-8' owner {owner}");
        superuser.batch_execute(&create).await.expect("a template");
        template.fill(&with_database(url, name), &with_database(owner_url, name)).await;
    }
}

/// A stopped cluster with all templates, locked against replacement.
struct Prepared {
    cluster: PathBuf,
    _lock: std::fs::File,
}

impl Prepared {
    fn copy_to(&self, target: &Path) {
        copy(&self.cluster, target);
    }
}

/// With owners and modes, because PostgreSQL may run as another user and requires its files to be private.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().expect("cp");
    assert!(status.success(), "{} cannot be copied to {}", from.display(), to.display());
}

/// The prepared cluster; created if there is none with this hash.
async fn prepared() -> Prepared {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clusters");
    std::fs::create_dir_all(&kept).expect("a folder in target");
    let lock = std::fs::File::create(kept.join("lock")).expect("a lock");
    lock.lock().expect("a lock");
    let cluster = kept.join(hash_of_inputs());
    if !cluster.exists() {
        for old in std::fs::read_dir(&kept).expect("a folder").flatten().filter(|entry| entry.path().is_dir()) {
            std::fs::remove_dir_all(old.path()).expect("an old cluster goes");
        }
        let folder = place().join(format!("ferrobase-template-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("temporary folder");
        let postgres = start(&folder, &[]).await;
        make_templates(&postgres.admin_url, &postgres.url).await;
        let made = postgres.cluster.clone();
        postgres.stop().await;
        let partial = kept.join("partial");
        copy(&made, &partial);
        std::fs::rename(&partial, &cluster).expect("the cluster is kept");
        let _ = std::fs::remove_dir_all(made);
        let _ = std::fs::remove_dir_all(folder);
    }
    Prepared { cluster, _lock: lock }
}

/// A hash of the SQL, the code that runs it, and PostgreSQL's version.
fn hash_of_inputs() -> String {
    let server = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut hash = Sha256::new();
    let mut inputs = vec![
        server.join("../sql"),
        server.join("../tools/postgres/package-lock.json"),
        server.join("src/migrate"),
        server.join("src/embedded_pg"),
        server.join("tests/support/cluster.rs"),
        server.join("tests/rest/schema.sql"),
        server.join("tests/rest_isolation/schema.sql"),
    ];
    while let Some(path) = inputs.pop() {
        if path.is_dir() {
            let mut entries: Vec<_> =
                std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()).collect();
            entries.sort();
            inputs.extend(entries);
        } else {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
    }
    hash.update(std::env::var("PG_BIN_DIR").unwrap_or_default());
    hex::encode(&hash.finalize()[..8])
}

/// However this program ends, PostgreSQL is stopped and the folder removed.
#[allow(clippy::zombie_processes, reason = "the shell waits for our end, not we for its")]
pub fn remove_with_this_program(folder: &Path, cluster: Option<&Path>) {
    let stop = cluster.map_or_else(String::new, |cluster| {
        let pid_file = cluster.join("postmaster.pid");
        let pid_file = pid_file.display();
        format!(
            "kill -QUIT $(head -n 1 '{pid_file}'); \
             n=0; while [ -e '{pid_file}' ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; "
        )
    });
    // The pipe is closed with this program, as no other process inherits its end.
    let script = format!("read -r _; {stop} rm -rf '{folder}'", folder = folder.display());
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell to clean up");
    std::mem::forget(shell.stdin.take());
}
