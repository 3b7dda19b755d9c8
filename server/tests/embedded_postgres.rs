//! The embedded PostgreSQL: startup, recovery after every kind of abrupt end, and clear errors if it cannot start.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::cluster::place;
use crate::support::ports::free_port;
use ferrobase::db;
use ferrobase::embedded_pg::{EmbeddedError, EmbeddedOptions, EmbeddedPostgres, Passwords};
use ferrobase::migrate::{self, GivenUrls};
use rustls::pki_types::pem::PemObject as _;
use tokio_postgres::NoTls;

/// A temporary directory, removed when dropped.
struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Self {
        let path = place().join(format!("ferrobase-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn options(&self) -> EmbeddedOptions {
        EmbeddedOptions { data_root: self.0.clone(), port: free_port(), ..EmbeddedOptions::default() }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn query(url: &str, sql: &str) -> Result<String, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    for message in client.simple_query(sql).await? {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
            return Ok(row.get(0).unwrap_or("").to_owned());
        }
    }
    Ok(String::new())
}

fn postmaster(cluster: &Path) -> String {
    let text = std::fs::read_to_string(cluster.join("postmaster.pid")).expect("a running postmaster");
    text.lines().next().expect("its process id").to_owned()
}

fn kill(pid: &str) {
    assert!(std::process::Command::new("kill").args(["-9", pid]).status().expect("kill").success());
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode");
}

/// Only our user and PostgreSQL's can access a data root.
fn assert_closed(running: &EmbeddedPostgres) {
    let metadata = |path: &Path| std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (db, root) = (&running.cluster, running.cluster.parent().expect("a root"));
    let (top, cluster) = (metadata(root), metadata(db));
    // A different PostgreSQL user enters by its group.
    let expected = if top.uid() == cluster.uid() { 0o700 } else { 0o710 };
    assert_eq!(top.mode() & 0o7777, expected, "{}", root.display());
    assert!(expected == 0o700 || top.gid() == cluster.gid());
    for (name, mode) in [("run", 0o700), ("db", 0o700), ("postgres.log", 0o600), ("embedded.lock", 0o600)] {
        assert_eq!(metadata(&root.join(name)).mode() & 0o7777, mode, "{name}");
    }
}

#[tokio::test]
async fn a_cluster_is_created_once_with_its_properties_and_keeps_its_data() {
    let root = Root::new("once");
    // The modes of an older server.
    set_mode(&root.0, 0o755);
    std::fs::write(root.0.join("postgres.log"), "").expect("a log");
    set_mode(&root.0.join("postgres.log"), 0o644);
    let first = EmbeddedPostgres::start(&root.options()).await.expect("first start");
    assert_eq!(first.url, format!("postgresql://postgres:postgres@127.0.0.1:{}/postgres", first.port));
    for (sql, expected) in [
        ("show data_checksums", "on"),
        ("show password_encryption", "scram-sha-256"),
        ("show listen_addresses", "127.0.0.1"),
        ("select pg_encoding_to_char(encoding) from pg_database where datname = 'postgres'", "UTF8"),
        (
            "select datlocprovider::text || coalesce(datlocale, '') from pg_database where datname = 'postgres'",
            "bC.UTF-8",
        ),
        ("select rolpassword ~ '^SCRAM-SHA-256' from pg_authid where rolname = 'postgres'", "t"),
    ] {
        assert_eq!(query(&first.admin_url, sql).await.expect(sql), expected, "{sql}");
    }
    assert_closed(&first);
    let refused = query(&first.url.replace("postgres:postgres@", "postgres:wrong@"), "select 1").await;
    assert!(refused.is_err(), "a wrong password must be refused on loopback too");
    query(&first.url, "create table t as select 42 as n").await.expect("write");
    first.stop().await;

    let second = EmbeddedPostgres::start(&root.options()).await.expect("second start");
    assert_eq!(query(&second.url, "select n from t").await.expect("read"), "42");
    second.stop().await;
}

#[tokio::test]
async fn a_killed_postmaster_is_restarted_with_all_commits() {
    let root = Root::new("killed");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    query(&running.url, "create table t as select 7 as n").await.expect("write");
    kill(&postmaster(&running.cluster));
    let deadline = Instant::now() + Duration::from_secs(30);
    let answer = loop {
        match query(&running.url, "select n from t").await {
            Ok(answer) => break answer,
            Err(error) if Instant::now() > deadline => panic!("it did not come back: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    assert_eq!(answer, "7");
    running.stop().await;
}

#[tokio::test]
async fn a_postmaster_that_outlived_its_server_is_replaced() {
    let root = Root::new("orphan");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    query(&running.url, "create table t as select 9 as n").await.expect("write");
    let orphan = postmaster(&running.cluster);
    // The state after `kill -9` of the server: no handle, no lock, the postmaster alive.
    let port = running.port;
    let root_path = root.0.clone();
    running.abandon();
    let options = EmbeddedOptions { data_root: root_path, port, ..EmbeddedOptions::default() };
    let next = EmbeddedPostgres::start(&options).await.expect("the next start copes");
    assert_ne!(postmaster(&next.cluster), orphan);
    assert_eq!(query(&next.url, "select n from t").await.expect("read"), "9");
    next.stop().await;
}

/// Regression, in a container whose first process reaps no orphans: the killed postmaster stayed in the process table.
#[tokio::test]
async fn a_stale_socket_lock_of_a_listed_process_does_not_block_startup() {
    let root = Root::new("socket");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let (port, cluster) = (running.port, running.cluster.clone());
    running.stop().await;
    // Another postmaster of the same user stands in for the process that stays listed.
    let other_root = Root::new("socket-other");
    let other = EmbeddedPostgres::start(&other_root.options()).await.expect("another cluster");
    // Beside the cluster, which may have been moved out of a private home.
    let run = cluster.parent().expect("a folder").join("run");
    let lock = run.join(format!(".s.PGSQL.{port}.lock"));
    let text = format!("{}\n{}\n0\n{port}\n{}\n\n", postmaster(&other.cluster), cluster.display(), run.display());
    std::fs::write(&lock, text).expect("a stale lock");
    let options = EmbeddedOptions { port, ..root.options() };
    let next = EmbeddedPostgres::start(&options).await.expect("start over a stale socket lock");
    next.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_stale_pid_file_with_a_reused_pid_does_not_block_startup() {
    let root = Root::new("stale");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let cluster = running.cluster.clone();
    running.stop().await;
    // Our own process id: alive, but no postmaster.
    std::fs::write(cluster.join("postmaster.pid"), format!("{}\n{}\n", std::process::id(), cluster.display()))
        .expect("a stale pid file");
    let next = EmbeddedPostgres::start(&root.options()).await.expect("start over a stale pid file");
    next.stop().await;
}

#[tokio::test]
async fn a_second_server_and_a_port_in_use_are_reported() {
    let root = Root::new("taken");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let again = EmbeddedPostgres::start(&root.options()).await.expect_err("in use");
    assert!(
        matches!(&again, EmbeddedError::InUse { pid: Some(pid), .. } if *pid == std::process::id().to_string()),
        "{again}"
    );
    let other = Root::new("taken-other");
    let options = EmbeddedOptions { port: running.port, ..other.options() };
    let taken = EmbeddedPostgres::start(&options).await.expect_err("port taken");
    assert!(taken.to_string().starts_with(&format!("port {} on 127.0.0.1 is taken", running.port)), "{taken}");
    running.stop().await;
}

#[tokio::test]
async fn a_cluster_of_another_major_version_is_refused_unchanged() {
    let root = Root::new("major");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let version = running.cluster.join("PG_VERSION");
    running.stop().await;
    std::fs::write(&version, "14\n").expect("another version");
    let error = EmbeddedPostgres::start(&root.options()).await.expect_err("another major version").to_string();
    assert!(error.contains("was made by PostgreSQL 14") && !error.contains('\n'), "{error}");
    assert_eq!(std::fs::read_to_string(&version).expect("untouched"), "14\n");
}

#[tokio::test]
async fn an_interrupted_creation_does_not_block_the_next() {
    let root = Root::new("partial");
    let before = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let cluster = before.cluster.clone();
    before.stop().await;
    std::fs::remove_dir_all(&cluster).expect("no cluster any more");
    let partial = cluster.with_file_name("db.partial");
    std::fs::create_dir_all(partial.join("base")).expect("half a cluster");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    assert!(!partial.exists());
    running.stop().await;
}

/// Regression: when the server was killed during its very first start, `initdb` continued, and the next start found its
/// files.
#[tokio::test]
async fn an_initdb_that_outlived_its_server_is_ended() {
    let root = Root::new("orphaned-creation");
    let canonical = std::fs::canonicalize(&root.0).expect("a folder");
    let partial = canonical.join("db.partial-1");
    let mut writing = std::process::Command::new("sh")
        .args(["-c", "while :; do mkdir -p \"$0/base\"; echo x > \"$0/base/file\"; done"])
        .arg(&partial)
        .spawn()
        .expect("a process that writes");
    while !partial.join("base/file").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let ended = writing.try_wait().expect("asked");
    let _ = writing.kill();
    assert!(ended.is_some() && !partial.exists(), "{ended:?}");
    running.stop().await;
}

/// Functions of a project and other users of the machine must not get in with a well-known password.
#[tokio::test]
async fn both_passwords_are_private_if_configured() {
    let root = Root::new("private");
    let options = |passwords| EmbeddedOptions { passwords, ..root.options() };
    let secret = |url: &str| url.split('@').next().map(str::to_owned);
    let running = EmbeddedPostgres::start(&options(Passwords::Private)).await.expect("start");
    query(&running.admin_url, "select 1").await.expect("the superuser");
    query(&running.url, "select 1").await.expect("the owner");
    assert_ne!(secret(&running.admin_url), secret(&running.url));
    for (role, file) in [("supabase_admin", "admin.password"), ("postgres", "owner.password")] {
        let known = format!("postgresql://{role}:postgres@127.0.0.1:{}/postgres", running.port);
        assert!(query(&known, "select 1").await.is_err(), "{role}");
        let file = running.cluster.with_file_name(file);
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600, "{role}");
    }
    let private = running.logins();
    running.stop().await;
    let kept = EmbeddedPostgres::start(&options(Passwords::Keep)).await.expect("as they are");
    assert_eq!(secret(&kept.admin_url), secret(&private.admin_url));
    assert_eq!(secret(&kept.url), secret(&private.url));
    query(&kept.url, "select 1").await.expect("the owner");
    kept.stop().await;
    let open = EmbeddedPostgres::start(&options(Passwords::WellKnown)).await.expect("known again");
    assert!(open.admin_url.starts_with("postgresql://supabase_admin:postgres@"), "{}", open.admin_url);
    assert!(open.url.starts_with("postgresql://postgres:postgres@"), "{}", open.url);
    query(&open.url, "select 1").await.expect("the owner");
    open.stop().await;
}

#[tokio::test]
async fn a_cluster_below_a_private_home_moves_only_if_its_user_cannot_enter() {
    let home = Root::new("home");
    std::fs::set_permissions(&home.0, std::fs::Permissions::from_mode(0o700)).expect("mode");
    let data_root = home.0.join("checkout/.ferrobase");
    let options = EmbeddedOptions { data_root: data_root.clone(), port: free_port(), ..EmbeddedOptions::default() };
    let running = EmbeddedPostgres::start(&options).await.expect("start");
    query(&running.url, "create table t as select 5 as n").await.expect("write");
    let is_root = std::fs::metadata(&home.0).expect("home").uid() == 0;
    let owner = std::fs::metadata(&running.cluster).expect("cluster").uid();
    if is_root {
        let moved = running.relocated.clone().expect("root's home is closed to PostgreSQL's user");
        assert!(moved.starts_with("/var/lib/ferrobase") && running.cluster.starts_with(&moved), "{}", moved.display());
        assert_ne!(owner, 0, "PostgreSQL never runs as root");
    } else {
        assert_eq!(running.relocated, None);
        assert_eq!(owner, std::fs::metadata(&home.0).expect("home").uid());
    }
    let moved = running.relocated.clone();
    running.stop().await;
    let again = EmbeddedPostgres::start(&options).await.expect("the same place is found again");
    assert_eq!(query(&again.url, "select n from t").await.expect("read"), "5");
    again.stop().await;
    if let Some(moved) = moved {
        let _ = std::fs::remove_dir_all(moved);
    }
}

/// A new cluster was created elsewhere, and served or backed up in place of the one that could not be entered.
#[tokio::test]
async fn a_cluster_that_its_user_cannot_enter_any_more_is_not_replaced_by_a_new_one() {
    let home = Root::new("closed");
    let data_root = home.0.join("data");
    let options = EmbeddedOptions { data_root: data_root.clone(), port: free_port(), ..EmbeddedOptions::default() };
    let running = EmbeddedPostgres::start(&options).await.expect("start");
    assert_eq!(running.relocated, None);
    running.stop().await;
    if std::fs::metadata(&home.0).expect("home").uid() != 0 {
        return;
    }
    set_mode(&home.0, 0o700);
    let refused = EmbeddedPostgres::start(&options).await.expect_err("refused");
    assert!(matches!(&refused, EmbeddedError::UnreachableCluster { dir, .. } if *dir == data_root), "{refused}");
    set_mode(&home.0, 0o711);
    EmbeddedPostgres::start(&options).await.expect("the same one").stop().await;
}

/// Connects as our server does. Returns whether the connection is encrypted.
async fn is_encrypted(url: &str) -> Result<bool, String> {
    let client = db::connect_client(&url.parse().expect("a url")).await.map_err(|error| error.to_string())?;
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    Ok(client.query_one(sql, &[]).await.expect("a row").get(0))
}

#[tokio::test]
async fn encryption_is_offered_with_a_permanent_certificate() {
    let root = Root::new("encrypted");
    let running = EmbeddedPostgres::start(&root.options()).await.expect("start");
    let asked = format!("{}?sslmode=require", running.url);
    assert_eq!(is_encrypted(&asked).await, Ok(true));
    assert_eq!(is_encrypted(&running.logins().url).await, Ok(false), "our own connections are not encrypted");
    let cluster = running.cluster.clone();
    let read = |name: &str| std::fs::read_to_string(cluster.join(name)).expect(name);
    let (key, certificate) = (read("server.key"), read("server.crt"));
    assert_eq!(std::fs::metadata(cluster.join("server.key")).expect("a key").mode() & 0o777, 0o600);
    running.stop().await;
    let again = EmbeddedPostgres::start(&root.options()).await.expect("second start");
    assert_eq!((read("server.key"), read("server.crt")), (key, certificate));
    // A cluster from before certificates.
    std::fs::remove_file(cluster.join("server.crt")).expect("a file");
    again.stop().await;
    let renewed = EmbeddedPostgres::start(&root.options()).await.expect("third start");
    assert_eq!(is_encrypted(&format!("{}?sslmode=require", renewed.url)).await, Ok(true));
    // The certificate names the addresses on which the server listens.
    let trusted = rustls::pki_types::CertificateDer::from_pem_file(cluster.join("server.crt")).expect("pem");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted).expect("a certificate");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = tokio_postgres_rustls::MakeRustlsConnect::new(config);
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("{}?sslmode=require", renewed.url.replace("127.0.0.1", host));
        let connected = tokio_postgres::connect(&url, tls.clone()).await;
        drop(connected.unwrap_or_else(|error| panic!("{host}: {error:?}")));
    }
    renewed.stop().await;
}

#[tokio::test]
async fn binaries_without_tls_serve_unencrypted() {
    let root = Root::new("no-tls");
    let ours = ferrobase::embedded_pg::Binaries::find(None).expect("binaries").dir;
    let bin_dir = root.0.join("bin");
    std::fs::create_dir(&bin_dir).expect("a folder");
    std::os::unix::fs::symlink(ours.join("initdb"), bin_dir.join("initdb")).expect("a link");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *ssl=on*) echo 'FATAL:  SSL is not supported by this build' >&2; exit 1;; esac\n\
         exec '{}' \"$@\"\n",
        ours.join("postgres").display()
    );
    std::fs::write(bin_dir.join("postgres"), script).expect("a program");
    for (path, mode) in [(root.0.clone(), 0o755), (bin_dir.clone(), 0o755), (bin_dir.join("postgres"), 0o755)] {
        set_mode(&path, mode);
    }
    let options = EmbeddedOptions { bin_dir: Some(bin_dir), ..root.options() };
    let running = EmbeddedPostgres::start(&options).await.expect("start");
    assert_eq!(query(&running.url, "show ssl").await.expect("a setting"), "off");
    assert_eq!(is_encrypted(&running.url).await, Ok(false));
    running.stop().await;
}

#[tokio::test]
async fn local_stack_passwords_are_dropped_in_production() {
    let root = Root::new("local");
    let roles = [
        "authenticator",
        "supabase_auth_admin",
        "supabase_storage_admin",
        "supabase_functions_admin",
        "supabase_read_only_user",
        "supabase_replication_admin",
        "pgbouncer",
    ];
    for (passwords, is_taken) in
        [(Passwords::WellKnown, true), (Passwords::Private, false), (Passwords::WellKnown, true)]
    {
        let running = EmbeddedPostgres::start(&EmbeddedOptions { passwords, ..root.options() }).await.expect("start");
        let urls = migrate::prepare(&running.logins().admin_url, "a secret of its own", &GivenUrls::default()).await;
        let urls = urls.expect("the platform");
        query(&urls.rest_url, "select 1").await.expect("our own login");
        for role in roles {
            let known = format!("postgresql://{role}:postgres@127.0.0.1:{}/postgres", running.port);
            assert_eq!(query(&known, "select 1").await.is_ok(), is_taken, "{role} {passwords:?}");
        }
        running.stop().await;
    }
}
