//! `ferrobase serve --only rest` as a process: ports, sockets, signals, environment.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rest::house::{Ground, SECRET, connect};
use crate::support::cluster::place;
use crate::support::ports::free_port;
use crate::support::valve::{Valve, until};
use crate::support::wire::{Reply, parse, send};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A running server; stopped when dropped.
struct Server {
    child: Child,
    folder: PathBuf,
    address: String,
    admin: String,
}

impl Server {
    /// On free ports, with `settings` and only `PATH` from this process's environment.
    fn start(settings: &[(&str, &str)]) -> Self {
        let (port, admin) = (free_port(), free_port());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = place().join(format!("ferrobase-process-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("ferrobase.toml"), "").expect("written");
        let file = |name: &str| Stdio::from(File::create(folder.join(name)).expect("a file"));
        let child = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .args(["serve", "--only", "rest"])
            .current_dir(&folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PGRST_SERVER_HOST", "127.0.0.1")
            .env("PGRST_SERVER_PORT", port.to_string())
            .env("PGRST_ADMIN_SERVER_PORT", admin.to_string())
            .env("PGRST_DB_SCHEMAS", "sky")
            .env("PGRST_DB_ANON_ROLE", "sky_visitor")
            .env("PGRST_JWT_SECRET", SECRET)
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .expect("the server starts");
        Self { child, folder, address: format!("127.0.0.1:{port}"), admin: format!("127.0.0.1:{admin}") }
    }

    async fn get(&self, target: &str) -> Option<Reply> {
        ask(&self.address, target).await
    }

    /// Repeats a request until the answer is as expected.
    async fn wait_for(&mut self, address: &str, target: &str, wished: impl Fn(&Reply) -> bool) -> Reply {
        let started = Instant::now();
        let mut last = None;
        while started.elapsed() < Duration::from_secs(60) {
            if let Some(reply) = ask(address, target).await {
                if wished(&reply) {
                    return reply;
                }
                last = Some(reply);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the server ended with {status}: {}", self.file("stderr"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{target} of {address} stayed {last:?}\n{}", self.file("stderr"));
    }

    /// Waits until it answers requests.
    async fn ready(mut self) -> Self {
        let address = self.address.clone();
        self.wait_for(&address, "/labels?select=id&id=eq.1", |reply| reply.status == 200).await;
        self
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Waits until it ends by itself.
    async fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server did not end\n{}", self.file("stderr"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// `None` if nothing listens.
async fn ask(address: &str, target: &str) -> Option<Reply> {
    tokio::net::TcpStream::connect(address).await.ok()?;
    Some(send(address, "GET", target, &[], b"").await)
}

/// A value in `/metrics`.
fn figure(metrics: &Reply, name: &str) -> f64 {
    let text = metrics.text();
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("no figure {name} in {text}"))
}

#[actix_web::test]
async fn the_admin_port_reports_liveness_readiness_and_metrics() {
    let ground = Ground::new(None).await;
    let server = Server::start(&[("PGRST_DB_URI", &ground.login_url("sky_gate", "gate")), ("PGRST_DB_POOL", "7")]);
    let server = server.ready().await;
    for (path, status) in
        [("/live", 200), ("/ready", 200), ("/metrics", 200), ("/schema_cache", 200), ("/config", 404), ("/", 404)]
    {
        let reply = ask(&server.admin, path).await.expect("an answer");
        assert_eq!(reply.status, status, "{path}");
        assert_eq!(reply.body.is_empty(), !matches!(path, "/metrics" | "/schema_cache"), "{path}");
    }
    let token = crate::rest::house::House::token(r#"{"role":"sky_member"}"#);
    let bearer = [("Authorization".to_owned(), format!("Bearer {token}"))];
    for _ in 0..3 {
        assert_eq!(send(&server.address, "GET", "/labels?select=id", &bearer, b"").await.status, 200);
    }
    let metrics = ask(&server.admin, "/metrics").await.expect("an answer");
    assert_eq!(metrics.header("content-type").as_deref(), Some("text/plain; charset=utf-8"));
    assert_eq!(figure(&metrics, "pgrst_schema_cache_loads_total{status=\"SUCCESS\"}"), 1.0);
    assert_eq!(figure(&metrics, "pgrst_schema_cache_loads_total{status=\"FAIL\"}"), 0.0);
    assert!(figure(&metrics, "pgrst_schema_cache_query_time_seconds") > 0.0);
    assert_eq!(figure(&metrics, "pgrst_db_pool_max"), 7.0);
    assert_eq!(figure(&metrics, "pgrst_db_pool_available"), 7.0);
    assert_eq!(figure(&metrics, "pgrst_db_pool_waiting"), 0.0);
    assert_eq!(figure(&metrics, "pgrst_db_pool_timeouts_total"), 0.0);
    assert_eq!(figure(&metrics, "pgrst_jwt_cache_requests_total"), 3.0);
    assert_eq!(figure(&metrics, "pgrst_jwt_cache_hits_total"), 2.0);
    assert_eq!(figure(&metrics, "pgrst_jwt_cache_evictions_total"), 0.0);
    let cache = ask(&server.admin, "/schema_cache").await.expect("an answer");
    let cache: serde_json::Value = serde_json::from_slice(&cache.body).expect("JSON");
    for part in ["dbTables", "dbRelationships", "dbRoutines", "dbRepresentations", "dbMediaHandlers"] {
        assert!(cache[part].as_array().is_some_and(|part| !part.is_empty()), "{part}");
    }
}

/// The parts of `/schema_cache`, sorted.
async fn sorted_cache(admin: &str) -> Vec<Vec<String>> {
    let cache = ask(admin, "/schema_cache").await.expect("an answer");
    let cache: serde_json::Value = serde_json::from_slice(&cache.body).expect("JSON");
    let parts = cache.as_object().expect("an object").values();
    let sorted = |part: &serde_json::Value| {
        let mut items: Vec<String> = part.as_array().expect("a list").iter().map(ToString::to_string).collect();
        items.sort();
        items
    };
    parts.map(sorted).collect()
}

#[actix_web::test]
async fn a_reload_yields_the_same_as_the_first_load() {
    // More columns and keys than are fetched at once.
    let many = "do $$ begin for n in 1..300 loop
        execute format('create table sky.moon_%s (id integer primary key, star_id integer references sky.stars,
                                                  word text default %L)', n, n);
        execute format('comment on column sky.moon_%s.word is %L', n, n); end loop; end $$";
    let ground = Ground::new(Some(many)).await;
    let mut server = Server::start(&[("PGRST_DB_URI", &ground.login_url("sky_gate", "gate"))]).ready().await;
    let first = sorted_cache(&server.admin).await;
    assert!(first.iter().any(|part| part.len() > 300));
    connect(&ground.owner_url).await.batch_execute("notify pgrst").await.expect("notified");
    let twice = |reply: &Reply| figure(reply, "pgrst_schema_cache_loads_total{status=\"SUCCESS\"}") == 2.0;
    let admin = server.admin.clone();
    server.wait_for(&admin, "/metrics", twice).await;
    let again = sorted_cache(&server.admin).await;
    for (first, again) in first.iter().zip(&again) {
        assert_eq!(first, again);
    }
}

#[actix_web::test]
async fn readiness_follows_the_schema_cache() {
    let ground = Ground::new(None).await.behind_relay(None).await;
    let relay = ground.relay.as_ref().expect("a relay");
    relay.close();
    let mut server = Server::start(&[("PGRST_DB_URI", &ground.login_url("sky_gate", "gate"))]);
    let (address, admin) = (server.address.clone(), server.admin.clone());
    server.wait_for(&admin, "/ready", |reply| reply.status == 503).await;
    let reply = server.wait_for(&address, "/labels", |reply| reply.status == 503).await;
    assert!(reply.text().contains("PGRST002"), "{}", reply.text());
    assert!(reply.header("retry-after").is_some());
    assert_eq!(ask(&admin, "/live").await.map(|reply| reply.status), Some(200));
    relay.open();
    server.wait_for(&admin, "/ready", |reply| reply.status == 200).await;
    server.wait_for(&address, "/labels", |reply| reply.status == 200).await;
    let metrics = ask(&admin, "/metrics").await.expect("an answer");
    assert!(figure(&metrics, "pgrst_schema_cache_loads_total{status=\"FAIL\"}") >= 1.0);
}

#[actix_web::test]
async fn signals_reload_schema_and_configuration() {
    let ground = Ground::new(None).await;
    let mut server = Server::start(&[
        ("PGRST_DB_URI", &ground.login_url("sky_gate", "gate")),
        ("PGRST_DB_CHANNEL_ENABLED", "false"),
    ])
    .ready()
    .await;
    let address = server.address.clone();
    let owner = connect(&ground.owner_url).await;
    let change = format!(
        "create table sky.comets (id integer primary key); grant select on sky.comets to sky_visitor;
         alter role sky_gate in database {} set pgrst.db_max_rows = '1'; notify pgrst",
        ground.database()
    );
    owner.batch_execute(&change).await.expect("ddl");
    assert_eq!(server.get("/comets").await.map(|reply| reply.status), Some(404), "nobody listens");
    assert_eq!(
        server.get("/stars?select=id").await.map(|reply| reply.header("content-range")),
        Some(Some("0-6/*".into()))
    );
    // SIGUSR2: only the configuration.
    server.signal("USR2");
    let capped = |reply: &Reply| reply.header("content-range").as_deref() == Some("0-0/*");
    server.wait_for(&address, "/stars?select=id", capped).await;
    assert_eq!(server.get("/comets").await.map(|reply| reply.status), Some(404), "the schema was not loaded");
    // The settings file is read again too; the environment and the database override it.
    let reset = format!("alter role sky_gate in database {} reset pgrst.db_max_rows", ground.database());
    owner.batch_execute(&reset).await.expect("setting");
    let file = "[pgrst]\ndb_max_rows = 2\ndb_anon_role = \"nobody\"\n";
    std::fs::write(server.folder.join("ferrobase.toml"), file).expect("written");
    server.signal("USR2");
    let capped = |reply: &Reply| reply.header("content-range").as_deref() == Some("0-1/*");
    server.wait_for(&address, "/stars?select=id", capped).await;
    // SIGUSR1: the schema.
    server.signal("USR1");
    server.wait_for(&address, "/comets", |reply| reply.status == 200).await;
    // SIGTERM: an orderly end.
    server.signal("TERM");
    assert!(server.end().await.success());
}

#[actix_web::test]
async fn stopping_waits_for_an_answer_being_sent() {
    // Larger than the buffers between a server that writes and a client that does not read.
    let long = "create view sky.horizon as select n, repeat('x', 1000) as word from generate_series(1, 40000) as n;
                grant select on sky.horizon to sky_visitor";
    let ground = Ground::new(Some(long)).await;
    let mut server = Server::start(&[("PGRST_DB_URI", &ground.login_url("sky_gate", "gate"))]).ready().await;
    let mut stream = tokio::net::TcpStream::connect(&server.address).await.expect("a connection");
    stream.write_all(b"GET /horizon HTTP/1.1\r\nHost: sky.example\r\n\r\n").await.expect("sent");
    let mut answer = vec![0; 1000];
    stream.read_exact(&mut answer).await.expect("the answer has begun");
    server.signal("TERM");
    while !server.file("stderr").contains("requests in flight are finished first") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stream.read_to_end(&mut answer).await.expect("the rest");
    let rows: serde_json::Value = serde_json::from_slice(&parse(&answer).body).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(40_000));
    assert!(server.end().await.success());
}

#[actix_web::test]
async fn an_empty_connection_string_uses_libpqs_environment() {
    let ground = Ground::new(None).await;
    let url = url::Url::parse(&ground.owner_url).expect("url");
    let (host, port) = (url.host_str().expect("host").to_owned(), url.port().unwrap_or(5432).to_string());
    let database = ground.database();
    let environment = [
        ("PGHOST", host.as_str()),
        ("PGPORT", &port),
        ("PGUSER", "sky_gate"),
        ("PGPASSWORD", "gate"),
        ("PGDATABASE", &database),
        ("PGAPPNAME", "from-the-environment"),
    ];
    let owner = connect(&ground.owner_url).await;
    for uri in [None, Some(("PGRST_DB_URI", "postgresql://"))] {
        let settings: Vec<(&str, &str)> = environment.into_iter().chain(uri).collect();
        let server = Server::start(&settings).ready().await;
        let names = "select count(*) from pg_stat_activity where datname = current_database() and usename = 'sky_gate'
                     and application_name = 'from-the-environment'";
        let connections: i64 = owner.query_one(names, &[]).await.expect("count").get(0);
        assert!(connections > 0, "{uri:?}");
        drop(server);
    }
}

#[actix_web::test]
async fn several_processes_can_share_a_port() {
    let ground = Ground::new(None).await;
    let port = free_port().to_string();
    let uri = ground.login_url("sky_gate", "gate");
    let shared = [("PGRST_DB_URI", uri.as_str()), ("PGRST_SERVER_PORT", &port), ("PGRST_SERVER_REUSEPORT", "true")];
    let address = format!("127.0.0.1:{port}");
    let mut first = Server::start(&shared);
    first.wait_for(&address, "/labels?select=id&id=eq.1", |reply| reply.status == 200).await;
    let mut second = Server::start(&shared);
    let admin = second.admin.clone();
    second.wait_for(&admin, "/ready", |reply| reply.status == 200).await;
    // Each works alone.
    drop(first);
    second.wait_for(&address, "/labels?select=id&id=eq.1", |reply| reply.status == 200).await;
    // Without the setting, a port belongs to one process.
    let mut third = Server::start(&[("PGRST_DB_URI", &uri), ("PGRST_SERVER_PORT", &port)]);
    assert!(!third.end().await.success());
    assert!(third.file("stderr").contains("cannot listen on"), "{}", third.file("stderr"));
}

#[actix_web::test]
async fn a_shared_port_is_opened_only_once_the_schema_is_loaded() {
    let ground = Ground::new(None).await.behind_relay(None).await;
    let relay = ground.relay.as_ref().expect("a relay");
    relay.close();
    let uri = ground.login_url("sky_gate", "gate");
    let mut server = Server::start(&[("PGRST_DB_URI", &uri), ("PGRST_SERVER_REUSEPORT", "true")]);
    let started = Instant::now();
    while !server.file("stderr").contains("could not be loaded") && started.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(server.get("/labels").await.is_none(), "nobody listens yet");
    relay.open();
    let address = server.address.clone();
    server.wait_for(&address, "/labels", |reply| reply.status == 200).await;
}

#[actix_web::test]
async fn without_recovery_a_lost_database_ends_the_process() {
    let ground = Ground::new(None).await.behind_relay(None).await;
    let relay = ground.relay.as_ref().expect("a relay");
    let uri = ground.login_url("sky_gate", "gate");
    let settings = [("PGRST_DB_URI", uri.as_str()), ("PGRST_DB_POOL_AUTOMATIC_RECOVERY", "false")];
    let mut server = Server::start(&settings).ready().await;
    relay.close();
    assert!(!server.end().await.success());
    assert!(server.file("stderr").contains("automatic recovery is disabled"), "{}", server.file("stderr"));
    // A database that was never reachable ends it too.
    let mut server = Server::start(&settings);
    assert!(!server.end().await.success());
}

async fn over_socket(path: &Path, target: &str) -> Option<String> {
    let mut stream = tokio::net::UnixStream::connect(path).await.ok()?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: sky.example\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("received");
    Some(answer)
}

#[actix_web::test]
async fn unix_sockets_have_the_configured_mode() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new(None).await;
    let folder = place().join(format!("ferrobase-sockets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (api, admin) = (folder.join("api"), folder.join("admin"));
    let server = Server::start(&[
        ("PGRST_DB_URI", &ground.login_url("sky_gate", "gate")),
        ("PGRST_SERVER_UNIX_SOCKET", api.to_str().expect("a path")),
        ("PGRST_SERVER_UNIX_SOCKET_MODE", "640"),
        ("PGRST_ADMIN_SERVER_UNIX_SOCKET", admin.to_str().expect("a path")),
    ]);
    let started = Instant::now();
    while over_socket(&admin, "/ready").await.is_none_or(|answer| !answer.starts_with("HTTP/1.1 200")) {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", server.file("stderr"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let answer = over_socket(&api, "/labels?select=id&id=eq.1").await.expect("an answer");
    assert!(answer.ends_with("[{\"id\":1}]"), "{answer}");
    let mode = |path: &Path| std::fs::metadata(path).expect("a socket").permissions().mode() & 0o777;
    assert_eq!((mode(&api), mode(&admin)), (0o640, 0o660));
    drop(server);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[actix_web::test]
async fn requests_and_sql_are_logged_by_level() {
    let ground = Ground::new(None).await;
    let uri = ground.login_url("sky_gate", "gate");
    for (level, seen) in [("crit", [false, false]), ("warn", [false, true]), ("info", [true, true])] {
        let settings = [("PGRST_DB_URI", uri.as_str()), ("PGRST_LOG_LEVEL", level), ("PGRST_LOG_QUERY", "true")];
        let server = Server::start(&settings).ready().await;
        assert_eq!(server.get("/labels?select=id&id=eq.3").await.map(|reply| reply.status), Some(200));
        assert_eq!(server.get("/labels?select=id&id=eq.x").await.map(|reply| reply.status), Some(400));
        let (lines, statements) = (server.file("stdout"), server.file("stderr"));
        let found = [lines.contains("id=eq.3 HTTP/1.1\" 200"), lines.contains("id=eq.x HTTP/1.1\" 400")];
        assert_eq!(found, seen, "{level}: {lines}");
        assert_eq!(lines.contains(" - sky_visitor ["), seen[1], "{level}: {lines}");
        let logged = statements.matches("\"sky\".\"labels\"").count();
        assert_eq!(logged > 0, seen[1], "{level}: {statements}");
        assert!(!statements.contains("eq.x"), "no values: {statements}");
    }
}

#[actix_web::test]
async fn readiness_reports_a_hanging_database() {
    let ground = Ground::new(None).await;
    let valve = Valve::before(&ground.owner_url).await;
    let url = valve.url(&ground.login_url("sky_gate", "gate"));
    let mut server = Server::start(&[("PGRST_DB_URI", &url)]).ready().await;
    let admin = server.admin.clone();
    assert_eq!(ask(&admin, "/ready").await.expect("an answer").status, 200);
    valve.freeze();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = Instant::now();
    assert_eq!(ask(&admin, "/ready").await.expect("an answer").status, 503);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let reply = server.get("/labels?select=id&id=eq.1").await.expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some() && started.elapsed() < Duration::from_secs(25));
    valve.thaw();
    server.wait_for(&admin, "/ready", |reply| reply.status == 200).await;
}

#[actix_web::test]
async fn statements_outliving_the_drain_are_cancelled() {
    let nap = "create function sky.nap() returns void language sql as 'select pg_sleep(120)'; \
               grant execute on function sky.nap to public";
    let ground = Ground::new(Some(nap)).await;
    let owner = connect(&ground.owner_url).await;
    let mut server = Server::start(&[("PGRST_DB_URI", &ground.login_url("sky_gate", "gate"))]).ready().await;
    let address = server.address.clone();
    actix_web::rt::spawn(async move { ask(&address, "/rpc/nap").await });
    let napping = "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' \
                   and pid <> pg_backend_pid() and query like '%nap%'";
    let is_napping = async || owner.query_one(napping, &[]).await.expect("who works").get::<_, i64>(0) > 0;
    until("it runs", async || is_napping().await).await;
    server.signal("TERM");
    server.end().await;
    until("it is cancelled", async || !is_napping().await).await;
}
