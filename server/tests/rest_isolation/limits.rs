//! Requests beyond a limit get a clear answer, and nothing makes the server fail.

use crate::rest_isolation::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_limits_get_clear_errors() {
    let fixture = Fixture::start(&[]).await;
    let filters = vec!["id=eq.1"; 1001].join("&");
    let nested = format!("({}id.eq.1{}", "and(".repeat(100), ")".repeat(101));
    let long = "x".repeat(61_000);
    let cases = [
        (format!("/clients?{filters}"), 400, "Too many query parameters"),
        (format!("/clients?or={nested}"), 400, "The query string is nested too deeply"),
        (format!("/clients?name=eq.{long}"), 414, "The request URL is too long"),
    ];
    for (target, status, message) in cases {
        let reply = fixture.send(fixture.request("anon", "GET", &target)).await;
        assert_eq!((reply.status, reply.json()["message"].as_str()), (status, Some(message)));
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let body = fixture.request("member:a", "POST", "/clients").body(deep).header("Content-Type", "application/json");
    let reply = fixture.send(body).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("PGRST102")));
    fixture.stop().await;
}

/// Random requests with real names never cause a server error: no 500, no SQL syntax error.
#[tokio::test(flavor = "multi_thread")]
async fn random_requests_never_cause_a_server_error() {
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};
    let fixture = Fixture::start(&[]).await;
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    let relations = ["clients", "projects", "tasks", "people", "open_projects", "rpc/cheap", "people_projects"];
    let selects = [
        "*",
        "id",
        "name",
        "id,name::text",
        "clients(*)",
        "projects(*,tasks(*))",
        "...clients(name)",
        "tasks(id,title)",
        "x:meta->stage",
        "meta->>n",
        "count()",
        "budget.sum()",
        "shout",
        "people(name)",
        "...projects(id)",
        "count",
        "head_client(name)",
        "reviewer:people!reviewer_id(name)",
        "\"id\"",
        "",
        "clients!inner(id)",
        "id,,name",
        "a:b:c",
    ];
    let values = [
        "eq.1",
        "neq.x",
        "in.(1,2)",
        "in.()",
        "is.null",
        "is.not_null",
        "not.eq.2",
        "like.A*",
        "ilike(any).{a*,b*}",
        "gt.0",
        "cs.{a}",
        "cd.{}",
        "fts.cut",
        "fts(english).cut",
        "match.^A",
        "isdistinct.1",
        "eq",
        ".",
        "eq.",
        "ov.[1,2)",
        "adj.(1,2)",
        "is.true",
        "eq(any).{1,2}",
        "not.in.(a,\"b,c\")",
        "wfts.\"x",
        "💥",
        "%00",
        "eq.%00",
    ];
    let keys = [
        "id",
        "name",
        "client_id",
        "meta->stage",
        "clients.name",
        "clients",
        "tasks",
        "nope",
        "\"a b\"",
        "most",
        "words",
    ];
    let others = [
        "order=id",
        "order=name.desc.nullslast,id",
        "order=clients(name)",
        "limit=2",
        "limit=0",
        "offset=1",
        "limit=-1",
        "or=(id.eq.1,name.eq.x)",
        "and=(id.gt.0,or(id.eq.1,id.eq.2))",
        "not.or=(id.is.null)",
        "clients.limit=1",
        "tasks.order=title",
        "columns=id",
        "on_conflict=id",
        "or=(",
        "order=",
        "clients.or=(id.eq.1)",
    ];
    let prefers =
        ["", "count=exact", "count=planned", "count=estimated", "handling=strict", "tx=rollback", "timezone=UTC"];
    let accepts =
        ["*/*", "text/csv", "application/vnd.pgrst.object+json", "application/vnd.pgrst.array+json;nulls=stripped"];
    for number in 0..1500 {
        let mut parts = vec![format!("select={}", selects.choose(&mut random).expect("one"))];
        for _ in 0..random.random_range(0..3) {
            let (key, value) = (keys.choose(&mut random).expect("one"), values.choose(&mut random).expect("one"));
            parts.push(format!("{key}={value}"));
        }
        for _ in 0..random.random_range(0..2) {
            parts.push((*others.choose(&mut random).expect("one")).to_owned());
        }
        let target = format!("/{}?{}", relations.choose(&mut random).expect("one"), parts.join("&"));
        let request = fixture
            .request("anon", "GET", &target)
            .header("Prefer", *prefers.choose(&mut random).expect("one"))
            .header("Accept", *accepts.choose(&mut random).expect("one"));
        let reply = fixture.send(request).await;
        assert!(reply.status < 500, "request {number} {target}: {} {}", reply.status, reply.body);
        assert!(!reply.body.contains("\"42601\""), "request {number} {target}: {}", reply.body);
    }
    fixture.stop().await;
}

/// More clients than connections request a long result and never read it.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_do_not_block_the_database() {
    use tokio::io::AsyncWriteExt;
    let fixture = Fixture::start(&[("DB_POOL", "4"), ("DB_POOL_ACQUISITION_TIMEOUT", "20")]).await;
    let address = fixture.base.trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    for _ in 0..6 {
        let mut client = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        client.write_all(b"GET /long_story HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        idle.push(client);
    }
    let held = "select count(*) from pg_stat_activity where datname = current_database() and query ilike '%long_story%'
                and state <> 'idle' and pid <> pg_backend_pid()";
    // They may also have come to their end between two looks.
    for _ in 0..100 {
        if fixture.one(held).await != "0" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    for _ in 0..8 {
        assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients?select=id")).await.status, 200);
    }
    drop(idle);
    fixture.stop().await;
}

/// Announces a body of `length` bytes and sends only `sent` of them.
async fn begin_body(fixture: &Fixture, actor: &str, target: &str, length: usize, sent: usize) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt;
    let token = actor
        .split_once(':')
        .map(|(role, sub)| format!("Authorization: Bearer {}\r\n", crate::rest_isolation::fixture::token(role, sub)));
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{}Content-Length: {length}\r\n\r\n",
        token.unwrap_or_default()
    );
    let mut client = fixture.raw(&head).await;
    client.write_all(&vec![b' '; sent]).await.expect("sent");
    client
}

/// The head of the answer.
async fn answer(client: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    use tokio::io::AsyncReadExt;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("an answer"));
    }
    String::from_utf8_lossy(&head).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_share_a_budget_without_blocking_small_ones() {
    use tokio::io::AsyncWriteExt;
    let fixture = Fixture::start(&[("FERROBASE_BODIES_MB", "8")]).await;
    let mut too_long = begin_body(&fixture, "member:a", "/bare", 7 << 20, 0).await;
    assert!(answer(&mut too_long).await.starts_with("HTTP/1.1 413"));
    let mut first = begin_body(&fixture, "member:a", "/bare", 5 << 20, 4 << 20).await;
    // Until it has been read.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let second = begin_body(&fixture, "member:a", "/bare", 4 << 20, 0).await;
    let (mut second, mut second_body) = second.into_split();
    // A body without room is not read.
    tokio::spawn(async move { second_body.write_all(&vec![b' '; 4 << 20]).await });
    let small = fixture.request("member:a", "POST", "/bare").json(&serde_json::json!({ "a": 1 }));
    assert_eq!(fixture.send(small).await.status, 201);
    let refused = answer(&mut second).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.to_lowercase().contains("retry-after: 5"), "{refused}");
    // A discarded body does not count.
    let unused = fixture.request("member:a", "DELETE", "/bare?a=eq.1").body(vec![b'x'; 4 << 20]);
    assert_eq!(fixture.send(unused).await.status, 204);
    first.write_all(&[&vec![b' '; (1 << 20) - 2], &b"[]"[..]].concat()).await.expect("sent");
    assert!(answer(&mut first).await.starts_with("HTTP/1.1 201"));
    let mut third = begin_body(&fixture, "member:a", "/bare", 4 << 20, (4 << 20) - 2).await;
    third.write_all(b"[]").await.expect("sent");
    assert!(answer(&mut third).await.starts_with("HTTP/1.1 201"));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_unauthorized_body_is_refused_before_it_arrives() {
    let fixture = Fixture::start(&[]).await;
    let schema = "create table walled (id int); alter table walled enable row level security; \
                  grant select, insert, update on walled to studio_visitor; create table sealed (id int); \
                  create function hidden(a int) returns int language sql as 'select a'; \
                  revoke execute on function hidden from public";
    fixture.reload_with(schema, "/walled").await;
    for (actor, target, status) in [
        ("anon", "/sealed", "401"),
        ("member:a", "/sealed", "403"),
        ("anon", "/walled", "401"),
        ("anon", "/rpc/hidden", "401"),
        ("anon", "/a/b/c", "404"),
    ] {
        let mut client = begin_body(&fixture, actor, target, 5 << 20, 0).await;
        let head = tokio::time::timeout(std::time::Duration::from_secs(10), answer(&mut client)).await;
        let head = head.unwrap_or_else(|_| panic!("{target} is waited for"));
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{target}: {head}");
        // With the same message as a small one.
        if target == "/walled" || target == "/sealed" {
            let body = serde_json::json!({ "id": 1 });
            let small = fixture.send(fixture.request(actor, "POST", target).json(&body)).await;
            assert_eq!(small.status.to_string(), status, "{target}: {}", small.body);
        }
    }
    let rows: Vec<_> = (0..30_000).map(|n| serde_json::json!({ "a": n })).collect();
    assert_eq!(fixture.send(fixture.request("member:a", "POST", "/bare").json(&rows)).await.status, 201);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_would_be_stored_differently_are_refused() {
    let fixture = Fixture::start(&[]).await;
    let csv =
        fixture.request("member:a", "POST", "/bare").header("Content-Type", "text/csv").body(&b"a,b\n1,caf\xe9\n"[..]);
    let reply = fixture.send(csv).await;
    assert_eq!((reply.status, reply.json()["message"].as_str()), (400, Some("The CSV body is not UTF-8")));
    assert_eq!(fixture.one("select count(*) from bare").await, "0");
    let schema = "create function kind(text) returns text language sql immutable as $$ select 'text' $$; \
                  create function kind(bytea) returns text language sql immutable as $$ select 'bytea ' || encode($1, 'hex') $$; \
                  create view kinds as select 1 as x; grant select on kinds to studio_visitor";
    fixture.reload_with(schema, "/kinds").await;
    for (media, body, answer) in
        [("application/octet-stream", &b"\x00\xff"[..], "\"bytea 00ff\""), ("text/plain", b"x", "\"text\"")]
    {
        let call = fixture.request("anon", "POST", "/rpc/kind").header("Content-Type", media).body(body);
        let reply = fixture.send(call).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, answer), "{media}");
    }
    fixture.stop().await;
}

/// `people` and `projects` embedded in each other `depth` times.
fn circle(depth: usize) -> String {
    let mut select = "name".to_owned();
    for level in (0..depth).rev() {
        let relation = if level % 2 == 0 { "projects" } else { "people" };
        select = format!("name,{relation}({select})");
    }
    format!("/people?select={select}")
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_with_too_many_embeds_or_too_high_a_cost_are_refused() {
    let fixture = Fixture::start(&[("FERROBASE_REST_ANON_EMBEDS", "8"), ("FERROBASE_REST_ANON_COST", "5")]).await;
    let ask = async |actor: &str, target: &str| {
        let reply = fixture.send(fixture.request(actor, "GET", target)).await;
        let message = if reply.status == 200 { String::new() } else { reply.json()["message"].to_string() };
        (reply.status, message)
    };
    let served = (200, String::new());
    let refused = |message: &str| (400, format!("\"{message}\""));
    assert_eq!(ask("anon", &circle(7)).await, refused("The embedded resources are nested too deeply"));
    assert_eq!(ask("member:a", &circle(7)).await, served);
    assert_eq!(ask("member:a", &circle(11)).await, refused("The embedded resources are nested too deeply"));
    let many: Vec<_> = (0..9).map(|n| format!("p{n}:projects(name)")).collect();
    let many = format!("/people?select={}", many.join(","));
    assert_eq!(ask("anon", &many).await, refused("There are too many embedded resources"));
    assert_eq!(ask("member:a", &many).await, served);
    // Two levels are not estimated, and neither are other roles; three levels exceed this limit.
    assert_eq!(ask("anon", &circle(2)).await, served);
    for _ in 0..2 {
        assert_eq!(ask("anon", &circle(3)).await, refused("The request is estimated to cost too much"));
    }
    assert_eq!(ask("member:a", &circle(3)).await, served);
    fixture.stop().await;
    let usual = Fixture::start(&[]).await;
    assert_eq!(usual.send(usual.request("anon", "GET", &circle(6))).await.status, 200, "tables never analyzed");
    // Regression: a request of 227 bytes with six levels of a many-to-many cycle took three seconds.
    let crowd = "insert into people select n, 'p' || n from generate_series(1000, 1999) n; \
                 insert into projects (id, name) select n, 'p' || n from generate_series(1000, 1999) n; \
                 insert into people_projects select p, 1000 + (p * 7 + n * 13) % 1000 from generate_series(1000, 1999) p, \
                 generate_series(1, 20) n; analyze people; analyze projects; analyze people_projects";
    usual.reload_with(crowd, "/people?id=eq.1999&select=id").await;
    let usual_read = usual.request("anon", "GET", "/people?select=name,projects(name,people(name))&limit=5");
    assert_eq!(usual.send(usual_read).await.status, 200);
    // A different statement than above, whose estimate is cached.
    let dear = format!("{}&order=name", circle(6));
    let dear = usual.send(usual.request("anon", "GET", &dear).timeout(std::time::Duration::from_secs(5))).await;
    assert_eq!(
        (dear.status, dear.json()["message"].as_str()),
        (400, Some("The request is estimated to cost too much"))
    );
    usual.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_requests_pass_500_slow_ones_of_the_same_client() {
    let fixture = std::sync::Arc::new(Fixture::start(&[("DB_POOL", "5"), ("DB_POOL_ACQUISITION_TIMEOUT", "60")]).await);
    let quick = async || {
        let since = std::time::Instant::now();
        assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients?select=id")).await.status, 200);
        since.elapsed()
    };
    // Until they are known to be quick, also if a busy machine makes the first ones slow.
    for _ in 0..20 {
        quick().await;
    }
    let slow: Vec<_> = (0..500)
        .map(|_| {
            let nap = fixture.request("anon", "POST", "/rpc/nap").json(&serde_json::json!({ "seconds": 1.5 }));
            tokio::spawn(async move { nap.send().await.map(|answer| answer.status().as_u16()) })
        })
        .collect();
    let napping = "select count(*) from pg_stat_activity where query ilike '%nap%' and state = 'active' \
                   and datname = current_database() and pid <> pg_backend_pid()";
    for _ in 0..500 {
        if fixture.one(napping).await == "3" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut took = Vec::new();
    for _ in 0..20 {
        took.push(quick().await);
    }
    // A busy machine may delay some of them.
    took.sort_unstable();
    assert!(took[15] < std::time::Duration::from_secs(1), "{took:?}");
    assert_eq!(fixture.one(napping).await, "3", "one stays free for quick requests, one for other clients");
    slow.iter().for_each(tokio::task::JoinHandle::abort);
    drop(slow);
    let fixture = std::sync::Arc::into_inner(fixture).expect("alone");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lasting_flood_is_refused_and_nobody_is_afterwards() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let fixture = std::sync::Arc::new(
        Fixture::start(&[
            ("DB_POOL", "2"),
            ("DB_POOL_ACQUISITION_TIMEOUT", "60"),
            ("FERROBASE_REFUSE_OVERLOAD", "true"),
        ])
        .await,
    );
    let is_refused = std::sync::Arc::new(AtomicBool::new(false));
    let flood: Vec<_> = (0..80)
        .map(|_| {
            let (fixture, is_refused) = (fixture.clone(), is_refused.clone());
            tokio::spawn(async move {
                while !is_refused.load(Ordering::Relaxed) {
                    let nap = fixture.request("anon", "POST", "/rpc/nap").json(&serde_json::json!({ "seconds": 0.02 }));
                    let reply = fixture.send(nap).await;
                    if reply.status == 503 {
                        assert_eq!(reply.header("retry-after"), Some("1"));
                        assert_eq!(reply.json()["code"], "PGRST003");
                        is_refused.store(true, Ordering::Relaxed);
                    } else {
                        assert!((200..300).contains(&reply.status), "{}: {}", reply.status, reply.body);
                    }
                }
            })
        })
        .collect();
    for asking in flood {
        tokio::time::timeout(std::time::Duration::from_secs(120), asking)
            .await
            .expect("refused in time")
            .expect("asked");
    }
    assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients?select=id")).await.status, 200);
    let fixture = std::sync::Arc::into_inner(fixture).expect("alone");
    fixture.stop().await;
}
