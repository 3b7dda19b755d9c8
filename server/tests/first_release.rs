//! A database of the first release, kept as a dump, is brought up to date while people use it: nothing that was acknowledged is lost,
//! no request fails for good, and the schemas end up like those of a fresh database.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres, Passwords};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::support::PASSWORD;
use crate::support::cluster::{Database, Template, connect};
use crate::support::commands::{DEADLINE, House, root};
use crate::support::ports::free_port;

/// Of `supabase start`.
const ANON_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0";

/// Of the demo data's accounts.
const DEMO_PASSWORD: &str = "aidbridge-demo1A";

/// The schemas of the platform, in place of those of the application.
const PLATFORM: &str =
    "('auth', 'storage', '_supavisor', 'ferrobase', 'realtime', 'graphql_public', 'supabase_functions', 'extensions')";

/// The dump: roles, then the database.
fn released() -> String {
    let packed = include_bytes!("migrations/release_0_1_0.sql.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("a dump");
    text
}

fn options(root: &Path, passwords: Passwords) -> EmbeddedOptions {
    EmbeddedOptions { data_root: root.to_owned(), port: free_port(), passwords, ..EmbeddedOptions::default() }
}

/// A cluster as that release left it: its superuser is called `postgres` and owns everything.
async fn as_released(root: &Path) {
    let running = EmbeddedPostgres::start(&options(root, Passwords::WellKnown)).await.expect("a cluster");
    let admin = connect(&running.admin_url).await;
    admin.batch_execute("create role passing superuser login password 'p'").await.expect("a role");
    let passing = connect(&running.admin_url.replace("supabase_admin:postgres@", "passing:p@")).await;
    passing
        .batch_execute(
            "reassign owned by postgres to supabase_admin; drop owned by postgres; drop role postgres;
             alter role supabase_admin rename to postgres; alter role postgres password 'postgres'",
        )
        .await
        .expect("renamed");
    let postgres = connect(&running.url).await;
    postgres.batch_execute("drop role passing").await.expect("gone");
    postgres.batch_execute(&released()).await.expect("the dump loads");
    for role in ["authenticator", "supabase_auth_admin", "ferrobase_admin", "supabase_replication_admin"] {
        let password = format!("reset search_path; alter role {role} password 'postgres'");
        postgres.batch_execute(&password).await.expect("a password");
    }
    postgres
        .batch_execute(
            "create table public.ledger (n int primary key, who text not null);
             grant select, insert on public.ledger to anon;
             alter table public.ledger enable row level security;
             create policy all_of_it on public.ledger for select using (true);
             create policy add_to_it on public.ledger for insert with check (true)",
        )
        .await
        .expect("a ledger");
    drop((admin, passing, postgres));
    running.stop().await;
}

/// One of the servers for a single API.
struct Alone {
    child: Child,
    base: String,
}

impl Alone {
    fn start(root: &Path, api: &str, settings: &[(&str, &str)]) -> Self {
        let port = free_port().to_string();
        let secret = ferrobase::config::DEVELOPMENT_JWT_SECRET;
        let child = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .args(["serve", "--only", api])
            .current_dir(root)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("RUST_LOG", "error")
            .envs([("PGRST_SERVER_HOST", "127.0.0.1"), ("PGRST_SERVER_PORT", &port), ("PGRST_JWT_SECRET", secret)])
            .envs([("PGRST_DB_SCHEMAS", "public"), ("PGRST_DB_ANON_ROLE", "anon")])
            .envs([("GOTRUE_API_HOST", "127.0.0.1"), ("GOTRUE_API_PORT", &port), ("GOTRUE_JWT_SECRET", secret)])
            .envs([("GOTRUE_SITE_URL", "http://127.0.0.1"), ("GOTRUE_API_EXTERNAL_URL", "http://127.0.0.1")])
            .envs([
                ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
                ("GOTRUE_DB_NAMESPACE", "auth"),
                ("GOTRUE_DB_DRIVER", "postgres"),
            ])
            .envs([("GOTRUE_RATE_LIMIT_ANONYMOUS_USERS", "100000"), ("GOTRUE_RATE_LIMIT_TOKEN_REFRESH", "100000")])
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        Self { child, base: format!("http://127.0.0.1:{port}") }
    }

    async fn ready(self, http: &Client, path: &str) -> Self {
        let deadline = Instant::now() + DEADLINE;
        while !http.get(format!("{}{path}", self.base)).send().await.is_ok_and(|answer| answer.status().is_success()) {
            assert!(Instant::now() < deadline, "{path} never answered");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request until it is answered for good. A 503 must say when to come again.
async fn answered(request: impl Fn() -> RequestBuilder) -> Response {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = request().send().await.expect("an answer: the server that is asked runs throughout");
        if answer.status() != 503 {
            return answer;
        }
        assert!(answer.headers().contains_key("retry-after"), "{answer:?}");
        assert!(Instant::now() < deadline, "it stays unavailable");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Writes one thing after the other until told to stop, and notes what was acknowledged.
async fn notes<T, F: Future<Output = T>>(
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    write: impl Fn(i32) -> F,
) -> Vec<T> {
    let mut ledger = Vec::new();
    while !stop.load(Ordering::Acquire) {
        ledger.push(write(ledger.len() as i32).await);
        written.fetch_add(1, Ordering::AcqRel);
    }
    ledger
}

async fn add_row(http: Client, rest: String, n: i32) -> i32 {
    let row = json!({ "n": n, "who": "rest" });
    let answer = answered(|| http.post(format!("{rest}/ledger")).json(&row)).await;
    // One that was told to come again may have been written all the same.
    assert!([201, 409].contains(&answer.status().as_u16()), "{}", answer.text().await.expect("text"));
    let read = answered(|| http.get(format!("{rest}/ledger?select=n&n=eq.{n}"))).await;
    assert_eq!(read.json::<Value>().await.expect("rows"), json!([{ "n": n }]));
    n
}

/// The session of an answer that has to be one.
async fn session_of(answer: Response) -> Value {
    let status = answer.status();
    let session: Value = answer.json().await.expect("JSON");
    assert_eq!(status, 200, "{session}");
    session
}

/// Signs somebody up and refreshes the session once; yields the address and the refresh token.
async fn sign_up(http: Client, auth: String, n: i32) -> (String, String) {
    let email = format!("person-{n}@x.example");
    let person = json!({ "email": email, "password": PASSWORD });
    let first = session_of(answered(|| http.post(format!("{auth}/signup")).json(&person)).await).await;
    let token = json!({ "refresh_token": first["refresh_token"] });
    let url = format!("{auth}/token?grant_type=refresh_token");
    let next = session_of(answered(|| http.post(&url).json(&token)).await).await;
    (email, next["refresh_token"].as_str().expect("a token").to_owned())
}

/// Those who write, until told to stop; each notes what was acknowledged.
struct Traffic {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    rows: tokio::task::JoinHandle<Vec<i32>>,
    people: tokio::task::JoinHandle<Vec<(String, String)>>,
}

impl Traffic {
    fn start(http: &Client, rest: String, auth: String) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (asks, signs_up) = (http.clone(), http.clone());
        let shared = || (Arc::clone(&stop), Arc::clone(&written));
        let (halt, count) = shared();
        let rows = tokio::spawn(notes(halt, count, move |n| add_row(asks.clone(), rest.clone(), n)));
        let (halt, count) = shared();
        let people = tokio::spawn(notes(halt, count, move |n| sign_up(signs_up.clone(), auth.clone(), n)));
        Self { stop, written, rows, people }
    }

    /// Waits until this much more was written by both.
    async fn goes_on(&self) {
        let wanted = self.written.load(Ordering::Acquire) + 20;
        let deadline = Instant::now() + DEADLINE;
        while self.written.load(Ordering::Acquire) < wanted && !self.rows.is_finished() && !self.people.is_finished() {
            assert!(Instant::now() < deadline, "nobody writes any more");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) -> (Vec<i32>, Vec<(String, String)>) {
        self.stop.store(true, Ordering::Release);
        (self.rows.await.expect("every request was answered"), self.people.await.expect("every request was answered"))
    }
}

/// The platform's schemas, a line per object.
async fn catalog(url: &str) -> BTreeSet<String> {
    let client = connect(url).await;
    client.batch_execute("set search_path = ''").await.expect("a path");
    let query = include_str!("migrations/catalog.sql").replace("('public', 'private', 'functions')", PLATFORM);
    let lines = client.query(&query, &[]).await.expect("the catalogue");
    let lines = lines.iter().map(|row| row.get::<_, String>(0));
    // The application's settings are data here.
    lines.filter(|line| !line.starts_with("setting ")).map(|line| without_days(&line)).collect()
}

/// Partitions for the days around the one on which a database was made (`messages_2026_11_26`) have the same name.
fn without_days(line: &str) -> String {
    let mut pieces = line.split("messages_20");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |line, piece| line + "messages_DAY" + piece.get("26_11_26".len()..).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_release_is_brought_up_to_date_while_people_use_it() {
    let root = root();
    let http = Client::new();
    let data = root.path().join("database");
    as_released(&data).await;

    // What has to be done is known without doing it.
    let mut house = House::new(root.path(), "database");
    house.settings = vec![("FERROBASE_MIGRATIONS", "embedded".to_owned()), ("FERROBASE_SEED", "none".to_owned())];
    let (fine, text) = house.run(&["upgrade", "--check", "--json"]);
    let report: Value = serde_json::from_str(&text).expect(&text);
    assert!(fine && report["pending"] == true, "{report:#}");
    let named = |what: &str, file: &str| {
        report["migrations"][what].as_array().is_some_and(|files| files.iter().any(|name| name == file))
    };
    assert!(named("platform", "42_realtime_channels.sql") && named("auth", "011_unproved_addresses.sql"), "{report:#}");
    assert!(!named("auth", "002_users.sql"), "{report:#}");

    let database = EmbeddedPostgres::start(&options(&data, Passwords::Keep)).await.expect("the next version starts");
    let login = |role: &str| database.admin_url.replace("supabase_admin:", &format!("{role}:"));
    let (rest_url, auth_url) = (login("authenticator"), login("supabase_auth_admin"));
    let rest = Alone::start(root.path(), "rest", &[("PGRST_DB_URI", &rest_url)]).ready(&http, "/ledger").await;
    // This one brings its own schema up to date before it serves.
    let settings = [("GOTRUE_DB_DATABASE_URL", auth_url.as_str())];
    let auth = Alone::start(root.path(), "auth", &settings).ready(&http, "/health").await;
    let admin = connect(&database.admin_url).await;
    // All of its files run once more during the traffic: each can run on any state.
    admin
        .batch_execute("delete from auth.schema_migrations where version like 'ferrobase_%'")
        .await
        .expect("forgotten");
    let traffic = Traffic::start(&http, rest.base.clone(), auth.base.clone());
    traffic.goes_on().await;
    // The platform's files run beside the traffic; those of the application belong to another role.
    let mut beside = House::new(root.path(), "beside");
    beside.settings = vec![("DATABASE_URL", database.admin_url.clone())];
    beside.serve(&http).await;
    traffic.goes_on().await;
    let (rows, people) = traffic.end().await;
    beside.stop();
    drop((rest, auth, admin));
    database.stop().await;

    // Everything that was acknowledged is there, and the new server serves it.
    house.serve(&http).await;
    let url = format!("postgresql://supabase_admin:postgres@127.0.0.1:{}/postgres", house.ports[1]);
    let admin = connect(&url).await;
    let ledger = admin.query("select n from public.ledger order by n", &[]).await.expect("rows");
    let found: Vec<i32> = ledger.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, rows);
    let ask = |path: &str, body: &Value| http.post(house.url(path)).header("apikey", ANON_KEY).json(body).send();
    let mut tokens = BTreeSet::new();
    for (_, token) in &people {
        let body = json!({ "refresh_token": token });
        let session = session_of(ask("/auth/v1/token?grant_type=refresh_token", &body).await.expect("an answer")).await;
        tokens.insert(session["user"]["id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(tokens.len(), people.len());
    // Somebody of the release's demo data, and the request that was sent then.
    let body = json!({ "email": "requester@demo.aidbridge.test", "password": DEMO_PASSWORD });
    let session = session_of(ask("/auth/v1/token?grant_type=password", &body).await.expect("an answer")).await;
    let token = session["access_token"].as_str().expect("a token");
    let asked = house.url("/rest/v1/requests?select=request_number,status&request_number=eq.REQ-001");
    let answer = http.get(asked).header("apikey", ANON_KEY).bearer_auth(token).send().await.expect("an answer");
    let rows: Value = answer.json().await.expect("JSON");
    assert_eq!(rows, json!([{ "request_number": "REQ-001", "status": "pending" }]));

    // The schemas are those of a fresh database.
    let fresh = Database::new(Template::App).await;
    let (expected, upgraded) = (catalog(&fresh.url).await, catalog(&url).await);
    let differing: Vec<_> = expected.symmetric_difference(&upgraded).collect();
    assert!(expected.len() > 300 && differing.is_empty(), "{} lines, {differing:#?}", expected.len());
    let (done, text) = house.run(&["upgrade", "--check"]);
    assert!(done && !text.contains("pending"), "{text}");
    drop(admin);
    house.stop();
}
