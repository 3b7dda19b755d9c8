//! Reads from a streaming replica of PostgreSQL: who may see an older state, and who never does, at any instance.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ferrobase::app::{self, App, Settings};
use ferrobase::config::{DEVELOPMENT_JWT_SECRET, Source};
use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres, copy_folder};
use ferrobase::http::listen::Listener;
use ferrobase::migrate::{self, GivenUrls, PlatformUrls};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio_postgres::Client as Sql;

use crate::support::binary::command;
use crate::support::cluster::{connect, place};
use crate::support::ports::{free_port, free_ports};
use crate::support::valve::{Valve, until};
use crate::support::{PASSWORD, Reply, send};

/// `here` says which server answers, and what that knows of the reader.
const SCHEMA: &str = "
    create table public.notes (
      id bigint generated always as identity primary key,
      author uuid not null default auth.uid(),
      number int not null);
    alter table public.notes enable row level security;
    create policy own on public.notes to authenticated using (author = auth.uid()) with check (author = auth.uid());
    grant select, insert on public.notes to authenticated, service_role;
    create view public.here with (security_invoker) as
      select pg_is_in_recovery() as is_replica, coalesce((select max(number) from public.notes), 0) as number;
    grant select on public.here to authenticated, service_role;
    create view public.place as select pg_is_in_recovery() as is_replica;
    grant select on public.place to anon, authenticated;
    create function public.writes_nothing() returns boolean stable language sql as 'select pg_is_in_recovery()';
    create function public.says_nothing_of_writing() returns boolean volatile language sql as 'select pg_is_in_recovery()';
    create function public.wants_the_primary() returns boolean stable language plpgsql as $$
      begin perform pg_current_wal_lsn(); return pg_is_in_recovery(); end $$;
    create function public.rests(seconds float) returns boolean stable language plpgsql as $$
      begin perform pg_sleep(case when pg_is_in_recovery() then seconds else 0 end); return pg_is_in_recovery(); end $$;
    create function public.lingers() returns void language sql as 'select pg_sleep(60)';
    create table public.guests (name text);
    grant insert on public.guests to anon;
    create view public.me with (security_barrier) as
      select pg_is_in_recovery() as is_replica, count(*)::int as accounts from auth.users where id = auth.uid();
    grant select on public.me to authenticated;
    create table public.many as select g as n, repeat('x', 1000) as filling from generate_series(1, 5000) g;
    grant select on public.many to anon;
    create table public.boxes (id int primary key, within int references public.boxes);
    grant select on public.boxes to anon;
";

/// A primary and its replica, each with a folder of its own.
struct Servers {
    root: PathBuf,
    primary: Option<EmbeddedPostgres>,
    replica: Option<Child>,
    replica_port: u16,
    urls: PlatformUrls,
}

impl Servers {
    async fn start(name: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let root = place().join(format!("ferrobase-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).expect("a folder");
        let settings =
            [("wal_level", "replica"), ("max_wal_senders", "4"), ("fsync", "off"), ("shared_buffers", "32MB")];
        let options = EmbeddedOptions {
            data_root: root.join("primary"),
            port: free_port(),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..EmbeddedOptions::default()
        };
        let primary = EmbeddedPostgres::start(&options).await.expect("the primary starts");
        // The same port again after the stop.
        let options = EmbeddedOptions { port: primary.port, ..options };
        let urls = migrate::prepare(&primary.logins().admin_url, DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await;
        let urls = urls.expect("the platform");
        migrate::auth(&urls.auth_url).await.expect("the auth schema");
        connect(&primary.admin_url).await.batch_execute(SCHEMA).await.expect("the schema");
        let cluster = primary.cluster.clone();
        primary.stop().await;
        let copy = cluster.with_file_name("replica");
        copy_folder(&cluster, &copy).expect("a copy");
        let primary = EmbeddedPostgres::start(&options).await.expect("the primary starts again");
        std::fs::write(copy.join("standby.signal"), "").expect("the signal");
        let mut servers = Self { root, primary: Some(primary), replica: None, replica_port: free_port(), urls };
        servers.start_replica().await;
        servers
    }

    fn primary(&self) -> &EmbeddedPostgres {
        self.primary.as_ref().expect("it runs")
    }

    fn copy(&self) -> PathBuf {
        self.primary().cluster.with_file_name("replica")
    }

    async fn start_replica(&mut self) {
        self.replica = Some(self.standby(&self.copy(), self.replica_port).spawn().expect("the replica starts"));
        answers(&self.replica_url()).await;
    }

    /// PostgreSQL on a copy of the primary's folder that has a `standby.signal`.
    fn standby(&self, folder: &Path, port: u16) -> Command {
        let primary = self.primary();
        let pid_file = std::fs::read_to_string(primary.cluster.join("postmaster.pid")).expect("it runs");
        let pid = pid_file.lines().next().expect("its process");
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).expect("its program");
        let sender = format!("{} application_name=replica", conninfo(&primary.admin_url));
        let log = std::fs::File::create(self.root.join(format!("{port}.log"))).expect("a log");
        let mut command = Command::new(program);
        command.arg("-D").arg(folder).args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "unix_socket_directories=", "-c", "hot_standby=on", "-c", "fsync=off", "-c", "ssl=off"]);
        command.args(["-c", &format!("primary_conninfo={sender}"), "-c", "shared_buffers=32MB"]);
        // No less than the primary has.
        command.args(["-c", "max_connections=500", "-c", "max_worker_processes=32"]);
        if let Some(account) = primary.account() {
            command.uid(account.uid).gid(account.gid);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// Without a checkpoint, as if its machine had gone.
    fn kill_replica(&mut self) {
        if let Some(mut replica) = self.replica.take() {
            let pid = replica.id().to_string();
            let _ = Command::new("kill").args(["-QUIT", &pid]).status();
            let _ = replica.wait();
        }
    }

    /// The superuser's.
    fn replica_url(&self) -> String {
        let mut url = url::Url::parse(&self.primary().admin_url).expect("a URL");
        url.set_port(Some(self.replica_port)).expect("a port");
        url.into()
    }

    async fn pause(&self) {
        connect(&self.replica_url()).await.batch_execute("select pg_wal_replay_pause()").await.expect("paused");
        let state = "select pg_get_wal_replay_pause_state()";
        let sql = connect(&self.replica_url()).await;
        until("replay is paused", async || {
            sql.query_one(state, &[]).await.expect("the state").get::<_, &str>(0) == "paused"
        })
        .await;
    }

    async fn resume(&self) {
        connect(&self.replica_url()).await.batch_execute("select pg_wal_replay_resume()").await.expect("resumed");
    }

    /// An instance that reads from the replica at `url`.
    async fn instance(&self, url: &str, more: &[(&str, &str)]) -> Instance {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let mut source = Source::from_pairs([("FERROBASE_DEV", "true"), ("FERROBASE_READ_REPLICA_URL", url)]);
        source.set("FERROBASE_LISTEN", address.to_string());
        source.set("FERROBASE_DATA_DIR", self.root.join(address.port().to_string()).display().to_string());
        source.set("DATABASE_URL", self.primary().url.as_str());
        for (name, value) in more {
            source.set(name, *value);
        }
        let settings = Settings::read(&mut source).expect("settings");
        let login = self.urls.rest_url.split_once("://").and_then(|(_, rest)| rest.split_once('@')).expect("a login").0;
        let mut replica = url::Url::parse(url).expect("a URL");
        let (user, password) = login.split_once(':').expect("with a password");
        replica.set_username(user).expect("a user");
        replica.set_password(Some(password)).expect("a password");
        let urls = PlatformUrls { replica_url: Some(replica.into()), ..self.urls.clone() };
        let app = App::build(&source, &settings, &urls).await.expect("the server builds");
        let (anon_key, service_key) = (app.keys.anon().to_owned(), app.keys.service_role().to_owned());
        let metrics = app.rest.clone();
        let server = app::serve(app, vec![Listener::Tcp(listener)], 1).expect("it listens");
        let stop = server.handle();
        actix_web::rt::spawn(server);
        let instance = Instance {
            base: format!("http://{address}"),
            anon_key,
            service_key,
            rest: metrics,
            http: Client::new(),
            stop,
        };
        until("reads go to the replica", async || instance.is_replica(None).await).await;
        instance
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.kill_replica();
        let _ = std::fs::remove_dir_all(self.copy_if_any());
        drop(self.primary.take());
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

impl Servers {
    fn copy_if_any(&self) -> PathBuf {
        self.primary
            .as_ref()
            .map_or_else(|| Path::new("/nonexistent").to_owned(), |primary| primary.cluster.with_file_name("replica"))
    }
}

async fn answers(url: &str) {
    until("the replica answers", async || tokio_postgres::connect(url, tokio_postgres::NoTls).await.is_ok()).await;
}

/// The connection string of a URL in the form that `primary_conninfo` takes.
fn conninfo(url: &str) -> String {
    let url = url::Url::parse(url).expect("a URL");
    let password = url.password().unwrap_or_default();
    format!(
        "host=127.0.0.1 port={} user={} password={password} sslmode=disable",
        url.port().expect("a port"),
        url.username()
    )
}

struct Instance {
    base: String,
    anon_key: String,
    service_key: String,
    rest: ferrobase::rest::Rest,
    http: Client,
    stop: actix_web::dev::ServerHandle,
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.stop.stop(false));
    }
}

impl Instance {
    async fn ask(&self, method: Method, path: &str, token: Option<&str>, body: Option<Value>) -> Reply {
        let request = self.http.request(method, format!("{}{path}", self.base)).header("apikey", &self.anon_key);
        let request = request.bearer_auth(token.unwrap_or(&self.anon_key));
        send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
    }

    async fn get(&self, path: &str, token: Option<&str>) -> Value {
        let reply = self.ask(Method::GET, path, token, None).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.body
    }

    async fn is_replica(&self, token: Option<&str>) -> bool {
        self.get("/rest/v1/place", token).await[0]["is_replica"].as_bool().expect("a boolean")
    }

    async fn note(&self, token: &str, number: i32) {
        let reply = self.ask(Method::POST, "/rest/v1/notes", Some(token), Some(json!({ "number": number }))).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    /// The reader's highest number, and whether the replica says so.
    async fn here(&self, token: &str) -> (i64, bool) {
        let answer = &self.get("/rest/v1/here", Some(token)).await[0];
        (answer["number"].as_i64().expect("a number"), answer["is_replica"].as_bool().expect("a boolean"))
    }

    fn metric(&self, line: &str) -> u64 {
        self.figure(line).parse().expect("a number")
    }

    /// How far the replica is behind, in seconds.
    fn age(&self) -> f64 {
        self.figure("ferrobase_replica_age_seconds").parse().expect("a number")
    }

    fn figure(&self, line: &str) -> String {
        let text = ferrobase::db::replica::ReadReplica::metrics(self.rest.replica.as_ref());
        let found = text.lines().find_map(|known| known.strip_prefix(line));
        found.unwrap_or_else(|| panic!("{line} in {text}")).trim().to_owned()
    }
}

/// A user's token; the user need not have an account.
fn token(n: u8) -> String {
    let claims = json!({
        "sub": format!("00000000-0000-4000-8000-0000000000{n:02}"), "role": "authenticated", "aud": "authenticated",
        "exp": chrono::Utc::now().timestamp() + 3600,
    });
    let key = jsonwebtoken::EncodingKey::from_secret(DEVELOPMENT_JWT_SECRET.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token")
}

/// The session that calls a function.
async fn pid_of(sql: &Sql, function: &str) -> Option<i32> {
    let running = "select pid from pg_stat_activity
        where query like '%' || $1 || '%' and state = 'active' and pid <> pg_backend_pid()";
    sql.query_opt(running, &[&function]).await.expect("the activity").map(|row| row.get(0))
}

#[actix_web::test]
async fn writers_see_their_writes_at_every_instance_and_others_may_see_an_older_state() {
    let servers = Servers::start("replica-marks").await;
    let one = servers.instance(&servers.replica_url(), &[("FERROBASE_READ_REPLICA_MAX_AGE", "1h")]).await;
    let two = servers.instance(&servers.replica_url(), &[("FERROBASE_READ_REPLICA_MAX_AGE", "1h")]).await;
    let (ada, bob) = (token(1), token(2));
    one.note(&ada, 1).await;
    until("the replica has the note", async || two.here(&ada).await == (1, true)).await;
    assert_eq!(one.here(&bob).await, (0, true));

    servers.pause().await;
    one.note(&ada, 2).await;
    for instance in [&two, &one] {
        assert_eq!(instance.here(&ada).await, (2, false), "the writer reads at the primary");
        assert_eq!(instance.here(&bob).await, (0, true), "others read at the replica");
        assert!(instance.is_replica(None).await, "and so do guests");
    }
    // The service role is one subject; a guest is known by the address.
    let reply = one
        .ask(
            Method::POST,
            "/rest/v1/notes",
            Some(&one.service_key),
            Some(json!({ "number": 9, "author": "00000000-0000-4000-8000-000000000009" })),
        )
        .await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(two.here(&two.service_key).await, (9, false));
    assert_eq!(one.here(&bob).await, (0, true));
    let reply = one.ask(Method::POST, "/rest/v1/guests", None, Some(json!({ "name": "Gwen" }))).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert!(!one.is_replica(None).await);
    until("the other instance hears of the guest", async || !two.is_replica(None).await).await;

    servers.resume().await;
    until("the replica has caught up", async || two.here(&ada).await == (2, true) && one.here(&ada).await == (2, true))
        .await;
    until("for guests as well", async || one.is_replica(None).await && two.is_replica(None).await).await;

    // Under way, with nothing paused: each number is read at the instance that did not write it.
    for number in 3..300 {
        let (writer, reader) = if number % 2 == 0 { (&one, &two) } else { (&two, &one) };
        writer.note(&ada, number).await;
        assert_eq!(reader.here(&ada).await.0, i64::from(number));
    }
    assert!(one.metric("ferrobase_replica_reads_total{outcome=\"answered\"}") > 0);
}

#[actix_web::test]
async fn writes_of_the_other_apis_count_too() {
    let servers = Servers::start("replica-accounts").await;
    let one = servers.instance(&servers.replica_url(), &[("FERROBASE_READ_REPLICA_MAX_AGE", "1h")]).await;
    let two = servers.instance(&servers.replica_url(), &[("FERROBASE_READ_REPLICA_MAX_AGE", "1h")]).await;
    servers.pause().await;
    let body = json!({ "email": "ada@replica.example", "password": PASSWORD });
    let reply = one.ask(Method::POST, "/auth/v1/signup", None, Some(body)).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let ada = reply.body["access_token"].as_str().expect("a token").to_owned();
    assert_eq!(two.get("/rest/v1/me", Some(&ada)).await, json!([{ "is_replica": false, "accounts": 1 }]));
    assert!(two.is_replica(Some(&token(3))).await, "others are not concerned");
    servers.resume().await;
    until("the replica knows the account", async || {
        two.get("/rest/v1/me", Some(&ada)).await == json!([{ "is_replica": true, "accounts": 1 }])
    })
    .await;
}

/// Its commit may have taken effect.
#[actix_web::test]
async fn a_write_that_its_client_abandons_counts_too() {
    let servers = Servers::start("replica-abandoned").await;
    let one = servers.instance(&servers.replica_url(), &[("FERROBASE_READ_REPLICA_MAX_AGE", "1h")]).await;
    let two = servers.instance(&servers.replica_url(), &[("FERROBASE_READ_REPLICA_MAX_AGE", "1h")]).await;
    let (ada, bob) = (token(1), token(2));
    servers.pause().await;
    one.note(&bob, 1).await;
    assert_eq!(two.here(&ada).await, (0, true));
    let at_primary = connect(&servers.primary().admin_url).await;
    let call = one.ask(Method::POST, "/rest/v1/rpc/lingers", Some(&ada), Some(json!({})));
    let under_way = until("it is under way", async || pid_of(&at_primary, "lingers").await.is_some());
    tokio::select! {
        reply = call => panic!("{}", reply.status),
        () = under_way => {}
    }
    until("the writer reads at the primary", async || !two.here(&ada).await.1).await;
    servers.resume().await;
}

#[actix_web::test]
async fn only_reads_use_the_replica_and_none_is_too_old() {
    let servers = Servers::start("replica-reads").await;
    let settings = [("FERROBASE_READ_REPLICA_MAX_AGE", "5s"), ("FERROBASE_REST_ANON_COST", "0.001")];
    let one = servers.instance(&servers.replica_url(), &settings).await;
    let call = |method: Method, name: &'static str| {
        let one = &one;
        async move { one.ask(method, &format!("/rest/v1/rpc/{name}"), None, None).await.body }
    };
    until("the replica answers", async || call(Method::GET, "writes_nothing").await == json!(true)).await;
    assert_eq!(call(Method::POST, "writes_nothing").await, json!(false));
    assert_eq!(call(Method::GET, "says_nothing_of_writing").await, json!(false));
    let failed = one.metric("ferrobase_replica_reads_total{outcome=\"failed\"}");
    // A busy machine may let the replica fall behind, and the primary answer at once.
    until("a read is begun at the replica and answered by the primary", async || {
        assert_eq!(call(Method::GET, "wants_the_primary").await, json!(false));
        one.metric("ferrobase_replica_reads_total{outcome=\"failed\"}") > failed
    })
    .await;
    let answered = one.metric("ferrobase_replica_reads_total{outcome=\"answered\"}");
    until("a read that is too expensive is refused by the replica's estimate", async || {
        let deep = one.ask(Method::GET, "/rest/v1/boxes?select=id,within(id,within(id,within(id)))", None, None).await;
        assert_eq!((deep.status, &deep.body["code"]), (400, &json!("PGRST100")), "{}", deep.body);
        one.metric("ferrobase_replica_reads_total{outcome=\"answered\"}") > answered
    })
    .await;
    // A long answer, which is passed on while it is read.
    assert_eq!(one.get("/rest/v1/many?limit=5000", None).await.as_array().map(Vec::len), Some(1000));

    servers.pause().await;
    one.note(&token(1), 1).await;
    assert!(one.is_replica(None).await, "it is not too old yet");
    until("the replica is too old", async || !one.is_replica(None).await).await;
    until("its age is told all the same", async || (5.0..60.0).contains(&one.age())).await;
    servers.resume().await;
    until("the replica is new enough", async || one.is_replica(None).await).await;
}

#[actix_web::test]
async fn the_primary_answers_for_a_replica_that_hangs_or_is_gone() {
    let mut servers = Servers::start("replica-outages").await;
    let valve = Valve::before(&servers.replica_url()).await;
    let one = servers.instance(&valve.url(&servers.replica_url()), &[]).await;
    let at_replica = connect(&servers.replica_url()).await;
    let slow = async { one.ask(Method::GET, "/rest/v1/rpc/rests?seconds=30", None, None).await };
    let freezing = async {
        until("it reads at the replica", async || pid_of(&at_replica, "rests").await.is_some()).await;
        valve.freeze();
        Instant::now()
    };
    let (reply, frozen) = tokio::join!(slow, freezing);
    assert_eq!((reply.status, &reply.body), (200, &json!(false)), "the primary has answered");
    let took = frozen.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(!one.is_replica(None).await);
    assert_eq!(one.metric("ferrobase_replica_up"), 0);
    valve.thaw();
    until("it is used again", async || one.is_replica(None).await).await;

    servers.kill_replica();
    for _ in 0..20 {
        // Each is answered, by whomever.
        one.is_replica(None).await;
    }
    until("it is known to be gone", async || one.metric("ferrobase_replica_up") == 0).await;
    servers.start_replica().await;
    until("it is used once more", async || one.is_replica(None).await).await;
}

/// A standby that was behind becomes the primary. The replica has replayed more of the former primary's log, so it cannot follow, and
/// its position is greater than those of new writes.
#[actix_web::test]
async fn a_replica_that_did_not_follow_a_failover_is_not_used() {
    let mut servers = Servers::start("replica-failover").await;
    let one = servers.instance(&servers.replica_url(), &[]).await;
    let ada = token(1);
    one.note(&ada, 1).await;
    until("the replica has the note", async || one.here(&ada).await == (1, true)).await;
    servers.kill_replica();
    let (copy, admin_url, port) = (servers.copy(), servers.primary().admin_url.clone(), servers.primary().port);
    let (standby, other) = (copy.with_file_name("standby"), copy.with_file_name("other"));
    copy_folder(&copy, &standby).expect("a copy");
    copy_folder(&copy, &other).expect("another copy");
    servers.start_replica().await;
    until("the replica is used again", async || one.here(&ada).await == (1, true)).await;
    let at_replica = connect(&servers.replica_url()).await;
    let filling = "insert into public.guests select repeat('x', 1000) from generate_series(1, 3000)";
    connect(&admin_url).await.batch_execute(filling).await.expect("more of the log");
    until("the replica has it", async || {
        at_replica.query_one("select count(*) from public.guests", &[]).await.expect("a count").get::<_, i64>(0) == 3000
    })
    .await;

    let (mut promoted, mut follower) = (servers.standby(&standby, port), servers.standby(&other, servers.replica_port));
    let (cluster, replica_url) = (servers.primary().cluster.clone(), servers.replica_url());
    servers.primary.take().expect("it runs").stop().await;
    let _promoted = Killed(promoted.spawn().expect("it starts"));
    answers(&admin_url).await;
    connect(&admin_url).await.batch_execute("select pg_promote()").await.expect("promoted");
    until("writes arrive at the new primary", async || {
        let note = Some(json!({ "number": 2 }));
        one.ask(Method::POST, "/rest/v1/notes", Some(&ada), note).await.status == 201
    })
    .await;
    until("the replica is not used", async || one.metric("ferrobase_replica_up") == 0).await;
    for _ in 0..20 {
        assert_eq!(one.here(&ada).await, (2, false));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // One that follows is used after its next restart point.
    servers.kill_replica();
    let _follower = Killed(follower.spawn().expect("it starts"));
    answers(&replica_url).await;
    let at_follower = connect(&replica_url).await;
    until("it is used", async || {
        at_follower.batch_execute("checkpoint").await.expect("a restart point");
        one.here(&ada).await == (2, true)
    })
    .await;
    for folder in [cluster, copy, standby, other] {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[actix_web::test]
async fn the_rest_api_alone_reads_from_a_replica_too_and_counts_its_own_writes() {
    let servers = Servers::start("replica-alone").await;
    let [port, _, _, admin] = free_ports();
    let mut replica = url::Url::parse(&servers.replica_url()).expect("a URL");
    // Its login is replaced by that of PGRST_DB_URI.
    replica.set_username("nobody").expect("a user");
    let server = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
        .args(["serve", "--only", "rest"])
        .current_dir(&servers.root)
        .env_clear()
        .env("PGRST_DB_URI", &servers.urls.rest_url)
        .env("PGRST_DB_SCHEMAS", "public")
        .env("PGRST_DB_ANON_ROLE", "anon")
        .env("PGRST_JWT_SECRET", DEVELOPMENT_JWT_SECRET)
        .env("PGRST_SERVER_HOST", "127.0.0.1")
        .env("PGRST_SERVER_PORT", port.to_string())
        .env("PGRST_ADMIN_SERVER_PORT", admin.to_string())
        .env("FERROBASE_READ_REPLICA_URL", replica.as_str())
        .env("FERROBASE_READ_REPLICA_MAX_AGE", "1h")
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(servers.root.join("rest.log")).expect("a log"))
        .spawn()
        .expect("it starts");
    let _server = Killed(server);
    let http = Client::new();
    let here = async |token: &str| {
        let answer = http.get(format!("http://127.0.0.1:{port}/here")).bearer_auth(token).send().await.ok()?;
        let body: Value = answer.json().await.ok()?;
        Some((body[0]["number"].as_i64()?, body[0]["is_replica"].as_bool()?))
    };
    let (ada, bob) = (token(1), token(2));
    until("reads go to the replica", async || here(&ada).await == Some((0, true))).await;
    servers.pause().await;
    let note = http.post(format!("http://127.0.0.1:{port}/notes")).bearer_auth(&ada).json(&json!({ "number": 1 }));
    assert_eq!(note.send().await.expect("an answer").status(), 201);
    assert_eq!(here(&ada).await, Some((1, false)), "the writer reads at the primary");
    assert_eq!(here(&bob).await, Some((0, true)));
    servers.resume().await;
    until("the replica has the note", async || here(&ada).await == Some((1, true))).await;
    let metrics = http.get(format!("http://127.0.0.1:{admin}/metrics")).send().await.expect("an answer");
    assert!(metrics.text().await.expect("text").contains("ferrobase_replica_up 1"));
}

/// A process that is killed at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `doctor` says of the replica at `url`.
fn examined(servers: &Servers, url: &str) -> (String, String) {
    let data = servers.root.join("doctor");
    let mut command = command(&["doctor", "--json"], &servers.root, &data, free_ports());
    command.env("DATABASE_URL", &servers.primary().admin_url).env("FERROBASE_READ_REPLICA_URL", url);
    let output = command.output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").clone();
    let of_replica = |finding: &&Value| {
        finding["text"].as_str().is_some_and(|text| text.contains("read replica") || text.contains("READ_REPLICA"))
    };
    let found = findings.iter().find(of_replica).unwrap_or_else(|| panic!("nothing of the replica: {report}"));
    let text = |name: &str| found[name].as_str().expect("text").to_owned();
    (text("level"), text("text"))
}

#[actix_web::test]
async fn doctor_distinguishes_a_replica_from_other_servers() {
    let mut servers = Servers::start("replica-doctor").await;
    let (level, text) = examined(&servers, &servers.replica_url());
    assert_eq!(level, "ok", "{text}");
    let primary = servers.primary().admin_url.clone();
    let (level, text) = examined(&servers, &primary);
    assert!(level == "problem" && text.contains("not a replica"), "{text}");
    let other =
        EmbeddedOptions { data_root: servers.root.join("other"), port: free_port(), ..EmbeddedOptions::default() };
    let other = EmbeddedPostgres::start(&other).await.expect("another PostgreSQL");
    migrate::prepare(&other.logins().admin_url, DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await.expect("prepared");
    let (level, text) = examined(&servers, &other.admin_url);
    assert!(level == "problem" && text.contains("is not a copy"), "{text}");
    other.stop().await;
    servers.kill_replica();
    let (level, text) = examined(&servers, &servers.replica_url());
    assert!(level == "problem" && text.contains("cannot be reached"), "{text}");
}
