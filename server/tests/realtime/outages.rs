//! Lost streams, databases and servers under load: no change is missed silently.
//!
//! Readers behave as applications should: they read the table at each `SUBSCRIBED`, then apply changes. After all
//! kills, each of them has every row.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::migrate::{self, GivenUrls};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::client::{Client, socket_url, token};
use crate::support::TestApp;
use crate::support::cluster::place;
use crate::support::ports::free_port;
use crate::support::valve::until;

const TABLE: &str = "
    create table public.ticks (id int primary key);
    alter table public.ticks enable row level security;
    create policy all_of_them on public.ticks using (true);
    grant select on public.ticks to anon;
    alter publication supabase_realtime add table public.ticks;";

/// Rows written in each test.
const ROWS: i32 = 400;
const PAUSE: Duration = Duration::from_millis(50);

/// A reader's final state.
struct Seen {
    rows: BTreeSet<i32>,
    /// The number of rows received.
    told: usize,
    joins: usize,
}

/// Retries a statement until the database accepts it.
async fn insist(url: &str, sql: &str) -> Vec<i32> {
    for _ in 0..600 {
        if let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await {
            tokio::spawn(connection);
            if let Ok(rows) = client.query(sql, &[]).await {
                return rows.iter().map(|row| row.get(0)).collect();
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("the database does not come back: {sql}");
}

/// Reads until it has the last row.
fn reader(socket: String, database: String) -> JoinHandle<Seen> {
    tokio::spawn(async move {
        let mut seen = Seen { rows: BTreeSet::new(), told: 0, joins: 0 };
        while !seen.rows.contains(&ROWS) {
            if let Ok((stream, _)) = connect_async(&socket).await {
                read(stream, &database, &mut seen).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
        seen
    })
}

type Stream = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// Reads from one socket until it closes.
async fn read(mut stream: Stream, database: &str, seen: &mut Seen) {
    let changes = json!([{ "event": "INSERT", "schema": "public", "table": "ticks" }]);
    let payload = json!({ "config": { "postgres_changes": changes } });
    let mut joined = 0_u32;
    let mut is_wanted = true;
    while !seen.rows.contains(&ROWS) {
        if is_wanted {
            is_wanted = false;
            joined += 1;
            let join = json!([joined.to_string(), joined.to_string(), "realtime:ticks", "phx_join", payload]);
            if stream.send(Message::text(join.to_string())).await.is_err() {
                return;
            }
        }
        let message = match tokio::time::timeout(Duration::from_secs(20), stream.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(_))) => continue,
            Ok(None | Some(Err(_))) => return,
            Err(_) => {
                // SDKs send heartbeats from time to time.
                if stream.send(Message::text(r#"[null,"0","phoenix","heartbeat",{}]"#)).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let message: Value = serde_json::from_str(&message).expect("JSON");
        match message[3].as_str().expect("an event") {
            "phx_reply" if message[2] == "realtime:ticks" => {
                if message[4]["status"] == "ok" {
                    seen.joins += 1;
                    seen.rows.extend(insist(database, "select id from public.ticks").await);
                } else {
                    tokio::time::sleep(PAUSE).await;
                    is_wanted = true;
                }
            }
            // Clients rejoin on this.
            "phx_error" => is_wanted = true,
            "phx_close" => panic!("a channel is closed for good: {message}"),
            "postgres_changes" => {
                let id = message[4]["data"]["record"]["id"].as_i64().expect("an id");
                seen.told += 1;
                seen.rows.insert(i32::try_from(id).expect("small"));
            }
            _ => {}
        }
    }
}

/// Writes rows one by one and calls `at` in between.
async fn write(database: &str, mut at: impl AsyncFnMut(i32)) {
    for id in 1..=ROWS {
        at(id).await;
        insist(database, &format!("insert into public.ticks values ({id}) on conflict do nothing")).await;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

async fn nothing_is_missing(readers: Vec<JoinHandle<Seen>>) {
    for reader in readers {
        let seen = tokio::time::timeout(Duration::from_secs(60), reader).await.expect("it has the last row");
        let seen = seen.expect("a reader");
        assert_eq!(seen.rows, (1..=ROWS).collect(), "an unreported gap, after {} joins", seen.joins);
        assert!(seen.joins > 1 && seen.told > 0, "{} joins, {} told", seen.joins, seen.told);
    }
}

async fn slots(database: &str) -> usize {
    insist(database, "select 1 from pg_replication_slots where database = current_database()").await.len()
}

#[actix_web::test]
async fn repeated_stream_losses_leave_no_silent_gap() {
    let one = TestApp::logical(&[]).await;
    let two = one.another(&[]).await;
    one.owner.batch_execute(TABLE).await.expect("a table");
    let database = one.owner_url.clone();
    let readers = [&one, &two, &two].map(|app| reader(socket_url(app, &app.anon_key, "2.0.0"), database.clone()));
    until("both follow the log", async || slots(&database).await == 2).await;
    write(&database, async |id| {
        if id % 90 == 50 {
            let sql = "select pg_terminate_backend(active_pid)::int from pg_replication_slots
                       where database = current_database() and active_pid is not null";
            insist(&database, sql).await;
        }
    })
    .await;
    nothing_is_missing(readers.into()).await;
    one.realtime.stop();
    two.realtime.stop();
    until("no slot is left", async || slots(&database).await == 0).await;
}

#[actix_web::test]
async fn a_silent_database_counts_as_lost_and_clients_are_notified() {
    let (app, valve) = TestApp::logical_behind_valve(&[("FERROBASE_REALTIME_STREAM_TIMEOUT", "2")]).await;
    app.owner.batch_execute(TABLE).await.expect("a table");
    let mut client = Client::open(&app).await;
    let config = json!({ "postgres_changes": [{ "event": "INSERT", "schema": "public", "table": "ticks" }] });
    let join_ref = client.join("ticks", config.clone()).await;
    assert_eq!(client.wait_for_event("system").await.payload["status"], "ok");
    // Longer silence than the timeout: a database that answers is not lost.
    tokio::time::sleep(Duration::from_secs(4)).await;
    app.owner.batch_execute("insert into public.ticks values (1)").await.expect("a row");
    assert_eq!(client.change().await["data"]["record"]["id"], 1);
    valve.freeze();
    assert_eq!(client.wait_for_event("system").await.payload["message"], "The connection to the database was lost");
    assert_eq!(client.wait_for_event("phx_error").await.join_ref, json!(join_ref));
    app.owner.batch_execute("insert into public.ticks values (2)").await.expect("a row");
    valve.thaw();
    until("one can join again", async || client.try_join("ticks", config.clone(), None).await.1["status"] == "ok")
        .await;
    app.owner.batch_execute("insert into public.ticks values (3)").await.expect("a row");
    let third = |got: &super::client::Got| got.payload["data"]["record"]["id"] == 3;
    client.wait_for(third).await;
}

/// Both were told that their parameters are wrong, and got no change any more.
#[actix_web::test]
async fn subscriptions_that_cannot_be_checked_are_begun_later() {
    let app = TestApp::logical(&[]).await;
    app.owner.batch_execute(TABLE).await.expect("a table");
    let (mut member, mut newcomer) = (Client::open(&app).await, Client::open(&app).await);
    let config = json!({ "postgres_changes": [{ "event": "INSERT", "schema": "public", "table": "ticks" }] });
    let join_ref = member.join("ticks", config.clone()).await;
    assert_eq!(member.wait_for_event("system").await.payload["status"], "ok");
    let connections = async |limit: i32| {
        let sql = format!(
            "do $$ begin execute format('alter database %I connection limit {limit}', current_database()); end $$;
             select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and usename = 'authenticator' and backend_type = 'client backend'"
        );
        app.owner.batch_execute(&sql).await.expect("set");
    };
    connections(0).await;
    let token = json!({ "access_token": super::client::user_token("00000000-0000-4000-8000-000000000001") });
    member.push(&join_ref, "realtime:ticks", "access_token", token).await;
    let (_, answer) = newcomer.try_join("ticks", config.clone(), None).await;
    let reason = answer["response"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(answer["status"] == "error" && reason.starts_with("InitializingProjectConnection"), "{answer}");
    // One that waits for its subscription tries for as long as it said.
    let mut waiting = config.clone();
    waiting["postgres_changes_options"] = json!({ "wait": true, "timeout": 400 });
    let (_, answer) = newcomer.try_join("ticks", waiting.clone(), None).await;
    let reason = "PostgresChangesSubscribeTimeout: Timed out after 400ms waiting for the postgres_changes subscription";
    assert_eq!(answer, json!({ "status": "error", "response": { "reason": reason } }));
    assert_eq!(member.wait_for_event("phx_error").await.join_ref, json!(join_ref));
    connections(-1).await;
    for client in [&mut member, &mut newcomer] {
        until("one can join again", async || client.try_join("ticks", config.clone(), None).await.1["status"] == "ok")
            .await;
        let begun = |got: &super::client::Got| got.event == "system" && got.payload["status"] == "ok";
        client.wait_for(begun).await;
    }
    app.owner.batch_execute("insert into public.ticks values (1)").await.expect("a row");
    for client in [&mut member, &mut newcomer] {
        assert_eq!(client.change().await["data"]["record"]["id"], 1);
    }
}

/// A PostgreSQL that the test may kill.
struct Database {
    folder: PathBuf,
    postgres: Option<EmbeddedPostgres>,
    url: String,
}

impl Database {
    async fn start() -> Self {
        let folder = place().join(format!("ferrobase-outages-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let options = EmbeddedOptions { data_root: folder.clone(), port: free_port(), ..EmbeddedOptions::default() };
        let postgres = EmbeddedPostgres::start(&options).await.expect("PostgreSQL starts");
        let url = postgres.admin_url.clone();
        let secret = ferrobase::config::DEVELOPMENT_JWT_SECRET;
        migrate::prepare(&url, secret, &GivenUrls::default()).await.expect("the platform");
        Self { folder, postgres: Some(postgres), url }
    }

    fn kill(&self) {
        let cluster = &self.postgres.as_ref().expect("it runs").cluster;
        let text = std::fs::read_to_string(cluster.join("postmaster.pid")).expect("a running postmaster");
        let pid = text.lines().next().expect("its process id").to_owned();
        assert!(Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
    }

    async fn stop(mut self) {
        if let Some(postgres) = self.postgres.take() {
            postgres.stop().await;
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// `serve --only realtime` as a process.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(database: &str, port: u16) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .args(["serve", "--only", "realtime"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("DATABASE_URL", database)
            .env("API_JWT_SECRET", ferrobase::config::DEVELOPMENT_JWT_SECRET)
            .env("FERROBASE_LISTEN", format!("127.0.0.1:{port}"))
            // Upstream's rate limit for a whole project is lower than what these readers receive.
            .env("TENANT_MAX_EVENTS_PER_SECOND", "0")
            .env("TENANT_MAX_JOINS_PER_SECOND", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        Self { child, port }
    }

    fn socket(&self) -> String {
        let exp = chrono::Utc::now().timestamp() + 3600;
        let key = token(json!({ "role": "anon", "exp": exp }));
        format!("ws://127.0.0.1:{}/socket/websocket?apikey={key}&vsn=2.0.0", self.port)
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn stop(mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[actix_web::test]
async fn killing_database_and_server_leaves_no_silent_gap() {
    let database = Database::start().await;
    let url = database.url.clone();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client.batch_execute(TABLE).await.expect("a table");
    drop(client);
    let mut one = Server::start(&url, free_port());
    let two = Server::start(&url, free_port());
    let readers = vec![reader(one.socket(), url.clone()), reader(two.socket(), url.clone())];
    until("both follow the log", async || slots(&url).await == 2).await;
    let subscriptions = "select 1 from realtime.subscription";
    write(&url, async |id| match id {
        100 => database.kill(),
        200 => {
            until("both follow it again", async || slots(&url).await == 2).await;
            one.kill();
            // Its slot is gone, although it could not clean up.
            until("its slot is gone", async || slots(&url).await == 1).await;
            until("so is its subscription", async || insist(&url, subscriptions).await.len() == 1).await;
        }
        300 => one = Server::start(&url, one.port),
        _ => {}
    })
    .await;
    nothing_is_missing(readers).await;
    one.stop();
    two.stop();
    until("no slot is left", async || slots(&url).await == 0).await;
    assert!(insist(&url, subscriptions).await.is_empty());
    database.stop().await;
}

/// The WAL is ahead of what others see. An unresponsive synchronous standby makes that last.
#[actix_web::test]
async fn a_commit_is_sent_once_others_can_see_it() {
    let database = Database::start().await;
    let url = database.url.clone();
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client
    };
    let owner = connect().await;
    owner.batch_execute(TABLE).await.expect("a table");
    let server = Server::start(&url, free_port());
    let open = async || {
        until("the server listens", async || connect_async(server.socket()).await.is_ok()).await;
        Client::at(&server.socket()).await
    };
    let config = json!({ "postgres_changes": [{ "event": "INSERT", "schema": "public", "table": "ticks" }] });
    let mut first = open().await;
    first.join("ticks", config.clone()).await;
    for sql in [
        "alter system set synchronous_commit = 'local'",
        "alter system set synchronous_standby_names = 'nobody'",
        "select pg_reload_conf()",
    ] {
        owner.batch_execute(sql).await.expect(sql);
    }
    until("a standby is missing", async || {
        let names = connect().await.query_one("show synchronous_standby_names", &[]).await.expect("a row");
        names.get::<_, &str>(0) == "nobody"
    })
    .await;
    let writer = connect().await;
    let writing = tokio::spawn(async move {
        writer.batch_execute("set synchronous_commit = on; insert into public.ticks values (1)").await
    });
    let waiting = "select 1 from pg_stat_activity where wait_event = 'SyncRep'";
    until("the commit waits for it", async || insist(&url, waiting).await.len() == 1).await;
    assert!(first.rest().await.iter().all(|got| got.event != "postgres_changes"), "nobody sees the row yet");
    // A new reader does not see it either.
    let mut second = open().await;
    second.join("ticks", config).await;
    assert!(insist(&url, "select id from public.ticks").await.is_empty());
    for sql in ["alter system reset synchronous_standby_names", "select pg_reload_conf()"] {
        owner.batch_execute(sql).await.expect(sql);
    }
    writing.await.expect("a task").expect("committed");
    for client in [&mut first, &mut second] {
        assert_eq!(client.change().await["data"]["record"]["id"], 1);
    }
    server.stop();
    database.stop().await;
}
