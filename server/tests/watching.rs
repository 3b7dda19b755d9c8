//! Monitoring: every metric in the dashboard, the alerts and the manual; slow queries with their request; the
//! administrators' audit log; `doctor --json`; and the drain announcement for load balancers.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ferrobase::config::{DEVELOPMENT_S3_KEYS, DEVELOPMENT_SECRET_KEY};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::{House, until};
use crate::support::cluster::{Database, Template, connect};

/// A file of the repository.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of metrics in any text.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_name = |word: &&str| {
        let prefixed = ["ferrobase_", "process_", "pgrst_"].iter().any(|prefix| word.starts_with(prefix));
        prefixed && word.matches('_').count() > 1
    };
    words.filter(is_name).map(str::to_owned).collect()
}

/// The metric families in `/metrics`.
fn families(figures: &str) -> BTreeSet<String> {
    let lines = figures.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The family of a series; a histogram's series belong to it.
fn family_of(name: &str, families: &BTreeSet<String>) -> bool {
    let stems = ["", "_bucket", "_sum", "_count"].iter().filter_map(|suffix| name.strip_suffix(suffix));
    stems.into_iter().any(|stem| families.contains(stem))
}

async fn send(method: Method, house: &House, path: &str, id: &str, body: Value) -> u16 {
    let url = format!("http://127.0.0.1:{}{path}", house.ports[0]);
    let request = reqwest::Client::new().request(method, url).header("apikey", DEVELOPMENT_SECRET_KEY);
    request.header("x-request-id", id).json(&body).send().await.expect("an answer").status().as_u16()
}

/// A command's output.
fn printed(house: &House, arguments: &[&str]) -> (bool, String) {
    let output = house.command(arguments).env("FERROBASE_DEV", "true").output().expect("the binary runs");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The audit log.
fn entries(house: &House) -> Vec<Value> {
    let (done, text) = printed(house, &["audit", "--json"]);
    assert!(done, "{text}");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[actix_web::test]
async fn every_documented_metric_is_exported_and_vice_versa() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut house = House::started_before("watched");
    house.serve_set(&[("FERROBASE_SLOW_QUERY", "0s")]);
    let [api, _, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    assert_eq!(house.get(api, "/health").0, 200);

    let user = json!({ "email": "watched@example.com", "password": "correct-Horse-7" });
    assert_eq!(send(Method::POST, &house, "/auth/v1/admin/users", "made-1", user).await, 200);
    for id in ["bucket-1", "bucket-2"] {
        let bucket = json!({ "name": id, "id": id });
        assert_eq!(send(Method::POST, &house, "/storage/v1/bucket", id, bucket).await, 200);
    }
    assert_eq!(send(Method::GET, &house, "/auth/v1/admin/users", "read-1", json!({})).await, 200);

    let (status, figures) = house.get(admin, "/metrics");
    assert_eq!(status, 200);
    let exported = families(&figures);
    let dashboard = file("packaging/monitoring/grafana-dashboard.json");
    let alerts = file("packaging/monitoring/alerts.yml");
    // Only if there are some, or if the log is archived.
    let sometimes = ["ferrobase_jobs_requests_waiting", "ferrobase_backup_log_reached_timestamp_seconds"];
    for (place, text) in [("the dashboard", &dashboard), ("alerts.yml", &alerts)] {
        let asked = metrics_in(text);
        assert!(asked.len() > 10, "{place} asks for {asked:?}");
        let is_unknown = |name: &&String| !family_of(name, &exported) && !sometimes.contains(&name.as_str());
        let unknown: Vec<_> = asked.iter().filter(is_unknown).collect();
        assert!(unknown.is_empty(), "{place} asks for what is not exported: {unknown:?}\n{figures}");
    }
    let explained = metrics_in(&file("docs/monitoring.md"));
    let silent: Vec<_> = exported.iter().filter(|name| !explained.contains(*name)).collect();
    assert!(silent.is_empty(), "docs/monitoring.md does not explain {silent:?}");
    let gone: Vec<_> = explained.iter().filter(|name| !family_of(name, &exported)).collect();
    assert!(gone.iter().all(|name| sometimes.contains(&name.as_str())), "not exported: {gone:?}");

    for line in [
        "ferrobase_http_requests_total{api=\"storage\",status=\"2xx\"} 2",
        "ferrobase_http_requests_in_flight{api=\"auth\"} 0",
        "ferrobase_database_up 1",
        "ferrobase_database_is_replica 0",
        "ferrobase_mail_waiting{channel=\"mail\"} 0",
        "ferrobase_db_pool_waiting{pool=\"auth\"} 0",
    ] {
        assert!(figures.lines().any(|known| known == line), "{line} is missing in\n{figures}");
    }
    let alerts_in_manual = file("docs/monitoring.md");
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(
            alerts_in_manual.contains(&format!("`{alert}`")),
            "docs/monitoring.md does not say what to do at {alert}"
        );
    }

    // Every query is slow with this setting: each line names its request.
    let log = house.log();
    let slow = |id: &str, query: &str| {
        let of_request = format!("request{{id=\"{id}\"");
        log.lines().any(|line| line.contains(&of_request) && line.contains("a query was slow") && line.contains(query))
    };
    assert!(slow("made-1", "auth.users") || slow("made-1", "users"), "{log}");
    assert!(slow("bucket-1", "storage.buckets"), "{log}");
    assert!(!log.contains("correct-Horse-7") && !log.contains("watched@example.com"), "no values are logged");

    // Two buckets within a minute are one entry (or two at the turn of a minute). The read is not logged.
    let entries = || entries(&house);
    let counted = |target: &str| -> i64 {
        let entries = entries();
        let of_target = entries.iter().filter(|entry| entry["target"] == target && entry["action"] == "POST");
        of_target.map(|entry| entry["count"].as_i64().expect("a count")).sum()
    };
    // The key is named wherever it is: in the query, and in a presigned URL of S3, whose signature is wrong here.
    let base = format!("http://127.0.0.1:{api}/storage/v1");
    let bucket = reqwest::Client::new().post(format!("{base}/bucket?apikey={DEVELOPMENT_SECRET_KEY}"));
    let made = bucket.json(&json!({ "name": "bucket-3", "id": "bucket-3" })).send().await.expect("an answer");
    assert_eq!(made.status(), 200);
    let at = chrono::Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
    let signed = format!(
        "{base}/s3/bucket-3/a.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}%2F{}%2Flocal%2Fs3%2Faws4_request\
         &X-Amz-Date={at}&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00",
        DEVELOPMENT_S3_KEYS.0,
        &at[..8]
    );
    assert_eq!(reqwest::Client::new().put(signed).send().await.expect("an answer").status(), 403);
    until("the audit log is written", || counted("/storage/v1/bucket") == 3);
    let actor_of = |target: &str| -> BTreeSet<String> {
        let entries = entries();
        let of_target = entries.iter().filter(|entry| entry["target"] == target);
        of_target.map(|entry| entry["actor"].as_str().expect("an actor").to_owned()).collect()
    };
    let keys = actor_of("/storage/v1/bucket");
    assert!(keys.len() == 1 && keys.iter().all(|key| key.starts_with("key ")), "{keys:?}");
    let expected = BTreeSet::from([format!("s3 {}", DEVELOPMENT_S3_KEYS.0)]);
    until("the presigned request is noted", || actor_of("/storage/v1/s3/bucket-3") == expected);
    assert_eq!(counted("/auth/v1/admin/users"), 1);
    let all = entries();
    assert!(all.iter().all(|entry| entry["action"] != "GET"), "{all:?}");
    let made = all.iter().find(|entry| entry["target"] == "/auth/v1/admin/users").expect("an entry");
    assert_eq!(
        (&made["outcome"], &made["request_id"], &made["address"]),
        (&json!("2xx"), &json!("made-1"), &json!("127.0.0.1"))
    );
    assert!(made["actor"].as_str().is_some_and(|actor| actor.starts_with("key ") && !actor.contains("secret")));

    let folder = house.root.join("migrations");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("1_notes.sql"), "create table notes (id int)").expect("a file");
    assert!(printed(&house, &["migrate", "--dir", folder.to_str().expect("a path")]).0);
    let command = entries().into_iter().find(|entry| entry["action"] == "migrate").expect("the command is noted");
    assert_eq!(command["outcome"], "ok");
    assert!(command["actor"].as_str().is_some_and(|actor| actor.starts_with("user ")), "{command}");

    let (_, text) = printed(&house, &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let problems = findings.iter().filter(|finding| finding["level"] == "problem").count();
    assert_eq!(report["problems"], json!(problems));
    assert!(findings.iter().any(|finding| finding["text"].as_str().is_some_and(|text| text.contains("PostgreSQL"))));

    house.signal(Signal::TERM);
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
}

/// Regression: neither log had a request whose client left before the answer, even if it had taken effect.
#[actix_web::test]
async fn a_request_that_its_client_abandons_is_in_both_logs() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut house = House::started_before("abandoned");
    house.serve_set(&[]);
    let [_, database, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    let sql = connect(&format!("postgresql://postgres:postgres@127.0.0.1:{database}/postgres")).await;
    // A sequence keeps its number although the transaction does not end.
    let functions = "create sequence public.calls;
        create function public.is_known() returns void language sql as '';
        create function public.rests() returns void language plpgsql security definer as $$
          begin perform nextval('public.calls'); perform pg_sleep(60); end $$;
        notify pgrst, 'reload schema'";
    sql.batch_execute(functions).await.expect("functions");
    let began = std::time::Instant::now();
    while send(Method::POST, &house, "/rest/v1/rpc/is_known", "asked", json!({})).await >= 400 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", house.log());
    }
    let url = format!("http://127.0.0.1:{}/rest/v1/rpc/rests", house.ports[0]);
    let request = reqwest::Client::new().post(url).header("apikey", DEVELOPMENT_SECRET_KEY);
    let call = tokio::spawn(request.header("x-request-id", "left-1").json(&json!({})).send());
    while !sql.query_one("select is_called from public.calls", &[]).await.expect("a row").get::<_, bool>(0) {
        assert!(!call.is_finished(), "{}", house.log());
    }
    call.abort();
    // The runtime closes the connection meanwhile.
    while !house.get(admin, "/metrics").1.contains("ferrobase_http_requests_in_flight{api=\"rest\"} 0\n") {
        assert!(began.elapsed() < Duration::from_secs(120), "{}", house.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let is_logged = |line: &str| {
        line.contains("request abandoned") && line.contains("id=\"left-1\"") && line.contains("role=\"service_role\"")
    };
    until("the access log has it", || house.log().lines().any(is_logged));
    let mut noted = None;
    until("the audit log has it", || {
        noted = entries(&house).into_iter().find(|entry| entry["request_id"] == "left-1");
        noted.is_some()
    });
    let noted = noted.expect("an entry");
    assert_eq!(
        (&noted["outcome"], &noted["action"], &noted["target"], &noted["count"]),
        (&json!("abandoned"), &json!("POST"), &json!("/rest/v1/rpc/rests"), &json!(1))
    );
    let log = house.log();
    assert_eq!(log.lines().filter(|line| line.contains("request abandoned")).count(), 1, "{log}");
}

#[tokio::test]
async fn the_servers_login_can_append_to_the_audit_log_but_not_change_it() {
    let database = Database::new(Template::Platform).await;
    let server = connect(&database.logins().service_url).await;
    let entry = |at: i64| {
        json!([{ "at": at, "instance": "i", "actor": "key a", "address": "", "action": "POST", "target": "/x", "outcome": "2xx",
                 "count": 2, "request_id": "r" }])
    };
    let now = chrono::Utc::now().timestamp() / 60 * 60;
    for at in [now, now, now - 40 * 86_400] {
        server.execute("select ferrobase.note_admin_actions($1::jsonb)", &[&entry(at)]).await.expect("noted");
    }
    for statement in [
        "select * from _supavisor.admin_audit",
        "update _supavisor.admin_audit set actor = 'nobody'",
        "delete from _supavisor.admin_audit",
        "truncate _supavisor.admin_audit",
    ] {
        let refused = server.batch_execute(statement).await.expect_err(statement);
        assert_eq!(refused.code().map(|code| code.code().to_owned()).as_deref(), Some("42501"), "{statement}");
    }
    let owner = connect(&database.url).await;
    let counts = async || -> Vec<i64> {
        let rows = owner.query("select count from _supavisor.admin_audit order by at", &[]).await.expect("rows");
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(counts().await, [2, 4]);
    // Entries older than 30 days are removed, and nothing younger, whatever the argument.
    server.execute("select ferrobase.sweep_admin_audit(0)", &[]).await.expect("swept");
    assert_eq!(counts().await, [4]);
}

#[test]
fn a_stopping_server_drains_load_balancers_first() {
    let mut house = House::started_before("drained");
    house.serve_set(&[("FERROBASE_DRAIN", "3s")]);
    let [api, _, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    let (head, _) = house.ask(api, "/auth/v1/.well-known/jwks.json");
    assert!(!head.to_ascii_lowercase().contains("connection: close"), "{head}");
    let asked = std::time::Instant::now();
    house.signal(Signal::TERM);
    until("load balancers are notified", || house.get(admin, "/ready").0 == 503);
    assert_eq!(house.get(api, "/health").0, 503);
    let (head, _) = house.ask(api, "/auth/v1/.well-known/jwks.json");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_ascii_lowercase().contains("connection: close"), "{head}");
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
    assert!(asked.elapsed() >= Duration::from_secs(3), "it went at once");
}

#[test]
fn a_second_signal_stops_it_without_waiting() {
    let mut house = House::started_before("urged");
    house.serve_set(&[("FERROBASE_DRAIN", "1h")]);
    let [api, _, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    house.signal(Signal::TERM);
    until("load balancers are notified", || house.get(admin, "/ready").0 == 503);
    let (head, _) = house.ask(api, "/auth/v1/.well-known/jwks.json");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    house.signal(Signal::TERM);
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
}

/// A load balancer without active health checks sends on until it is refused. Connections that the server had not begun to read were
/// reset when it closed the port.
#[test]
fn every_connection_that_begins_before_the_port_closes_is_answered() {
    let mut house = House::started_before("last-connections");
    house.serve_set(&[("FERROBASE_DRAIN", "500ms")]);
    let [api, _, _, admin] = house.ports;
    until("the server is ready", || house.get(admin, "/ready").0 == 200);
    let answered = AtomicUsize::new(0);
    let lost = Mutex::new(Vec::new());
    let client = || {
        while let Ok(mut stream) = TcpStream::connect(("127.0.0.1", api)) {
            let mut answer = Vec::new();
            let request =
                "POST /auth/v1/none HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let sent = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer));
            match sent {
                Ok(_) if answer.starts_with(b"HTTP/1.1 ") => {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                outcome => lost.lock().expect("unlocked").push(format!("{outcome:?}")),
            }
        }
    };
    thread::scope(|clients| {
        for _ in 0..16 {
            clients.spawn(client);
        }
        until("there is traffic", || answered.load(Ordering::Relaxed) > 100);
        house.signal(Signal::TERM);
    });
    assert_eq!(house.exit_code(), Some(0), "{}", house.log());
    let (answered, lost) = (answered.into_inner(), lost.into_inner().expect("unlocked"));
    assert!(lost.is_empty(), "{} of {} were lost: {lost:?}", lost.len(), answered + lost.len());
}
