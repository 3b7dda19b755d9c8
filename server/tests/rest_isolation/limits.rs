//! What is too much is refused with a clear answer, and nothing makes the server fail.

use crate::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn too_much_is_refused_with_a_clear_answer() {
    let fixture = Fixture::start(&[]).await;
    let filters = vec!["id=eq.1"; 1001].join("&");
    let nested = format!("{}{}", "(".repeat(101), ")".repeat(101));
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

/// Random requests over real names: whatever comes, it is never our fault (no 500, no syntax error in SQL).
#[tokio::test(flavor = "multi_thread")]
async fn random_requests_are_never_a_fault_of_the_server() {
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

/// As many clients as there are connections, and some more, ask for a long result and never read it.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_keep_nobody_from_the_database() {
    use tokio::io::AsyncWriteExt;
    let fixture = Fixture::start(&[("DB_POOL", "4"), ("DB_POOL_ACQUISITION_TIMEOUT", "20")]).await;
    let address = fixture.base.trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    for _ in 0..6 {
        let mut client = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        client.write_all(b"GET /long_story HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        idle.push(client);
    }
    let held = "select count(*) from pg_stat_activity where query ilike '%long_story%' and state <> 'idle' and pid <> pg_backend_pid()";
    while fixture.one(held).await == "0" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    for _ in 0..8 {
        assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients?select=id")).await.status, 200);
    }
    drop(idle);
    fixture.stop().await;
}
