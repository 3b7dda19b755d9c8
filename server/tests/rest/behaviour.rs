//! Behaviour that needs more than one request to observe.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rest::house::{Ground, House, connect};
use crate::support::cluster::Database;
use crate::support::wire::{Reply, send};

/// A request with `claims` (JSON text; empty for anonymous), and with an extra header if `header` is not empty.
async fn ask(house: &House, claims: &str, method: &str, target: &str, header: &str, body: &str) -> Reply {
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    if !claims.is_empty() {
        headers.push(("Authorization".to_owned(), format!("Bearer {}", House::token(claims))));
    }
    if let Some((name, value)) = header.split_once(": ") {
        headers.push((name.to_owned(), value.to_owned()));
    }
    send(&house.address, method, target, &headers, body.as_bytes()).await
}

fn rows(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or(Value::Null)
}

const MEMBER: &str = r#"{"role":"sky_member"}"#;

/// Repeats a request until the answer is as expected, because a reload takes a moment.
async fn wait_for(house: &House, target: &str, wished: impl Fn(&Reply) -> bool) -> Reply {
    let started = Instant::now();
    loop {
        let reply = ask(house, "", "GET", target, "", "").await;
        if wished(&reply) || started.elapsed() > Duration::from_secs(60) {
            return reply;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[actix_web::test]
async fn statements_refused_after_execution_are_rolled_back() {
    let house = House::open(&[("PGRST_DB_TX_END", "commit")]).await;
    let two = r#"[{"hall": 7, "seat": 1}, {"hall": 7, "seat": 2}]"#;
    let single = "Accept: application/vnd.pgrst.object+json";
    let strict = "Prefer: handling=strict, max-affected=1";
    for (method, target, prefer, body, status) in [
        ("POST", "/slots", single, two, 406),
        ("PATCH", "/slots?hall=eq.1", single, r#"{"guest": "gone"}"#, 406),
        ("DELETE", "/slots?hall=eq.1", single, "", 406),
        ("PATCH", "/slots?hall=eq.1", strict, r#"{"guest": "gone"}"#, 400),
        ("DELETE", "/slots?hall=eq.1", strict, "", 400),
        ("PUT", "/slots?hall=eq.7&seat=eq.1", "", r#"{"hall": 8, "seat": 1}"#, 400),
        ("POST", "/rpc/answer_with", "", r#"{"status": "x"}"#, 500),
    ] {
        let reply = ask(&house, MEMBER, method, target, prefer, body).await;
        assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
    }
    let found = house.owner.query_one("select json_agg(s order by hall, seat)::text from sky.slots s", &[]).await;
    let found: Value = serde_json::from_str(found.expect("rows").get(0)).expect("json");
    assert_eq!(
        found,
        json!([
            {"hall": 1, "seat": 1, "guest": "Ada"}, {"hall": 1, "seat": 2, "guest": null},
            {"hall": 2, "seat": 1, "guest": "Bea"},
        ])
    );
}

#[actix_web::test]
async fn accepted_writes_stay_unless_a_rollback_is_requested() {
    let house = House::open(&[("PGRST_DB_TX_END", "commit-allow-override")]).await;
    let body = r#"{"hall": 7, "seat": 1}"#;
    let rolled_back = ask(&house, MEMBER, "POST", "/slots", "Prefer: tx=rollback", body).await;
    assert_eq!((rolled_back.status, rolled_back.header("preference-applied").as_deref()), (201, Some("tx=rollback")));
    let target = "/slots?hall=eq.7&select=seat";
    assert_eq!(rows(&ask(&house, "", "GET", target, "", "").await), json!([]));
    assert_eq!(ask(&house, MEMBER, "POST", "/slots", "", body).await.status, 201);
    assert_eq!(rows(&ask(&house, "", "GET", target, "", "").await), json!([{"seat": 1}]));
}

#[actix_web::test]
async fn a_notification_makes_a_new_table_available() {
    let house = House::open(&[]).await;
    assert_eq!(ask(&house, "", "GET", "/comets", "", "").await.status, 404);
    house
        .owner
        .batch_execute(
            "create table sky.comets (id integer primary key, star_id integer references sky.stars);
             insert into sky.comets values (1, 1); grant select on sky.comets to sky_visitor;
             notify pgrst, 'reload schema'",
        )
        .await
        .expect("ddl");
    let reply = wait_for(&house, "/comets?select=id,stars(name)", |reply| reply.status == 200).await;
    assert_eq!(rows(&reply), json!([{"id": 1, "stars": {"name": "Rigel"}}]));
}

#[actix_web::test]
async fn a_changed_column_does_not_break_prepared_statements() {
    let house = House::open(&[]).await;
    for _ in 0..3 {
        assert_eq!(ask(&house, "", "GET", "/labels?id=eq.1", "", "").await.status, 200);
    }
    house
        .owner
        .batch_execute(
            "alter table sky.labels add column rank integer default 5; alter table sky.labels alter word type varchar;
             notify pgrst",
        )
        .await
        .expect("ddl");
    let reply = wait_for(&house, "/labels?id=eq.1", |reply| reply.text().contains("rank")).await;
    assert_eq!(rows(&reply), json!([{"id": 1, "word": "navigation", "rank": 5}]));
}

#[actix_web::test]
async fn settings_in_the_database_win_and_are_reloaded_on_request() {
    let house = House::open(&[("PGRST_DB_MAX_ROWS", "3")]).await;
    let count = |reply: &Reply| rows(reply).as_array().map_or(0, Vec::len);
    assert_eq!(count(&ask(&house, "", "GET", "/stars?select=id", "", "").await), 3);
    let name: String = house.owner.query_one("select current_database()", &[]).await.expect("name").get(0);
    house
        .owner
        .batch_execute(&format!(
            "alter role sky_gate in database {name} set pgrst.db_max_rows = '1'; notify pgrst, 'reload config'"
        ))
        .await
        .expect("setting");
    let reply = wait_for(&house, "/stars?select=id", |reply| count(reply) == 1).await;
    assert_eq!(count(&reply), 1);
    let other = "alter role sky_gate in database {} set pgrst.db_max_rows = 'no number'; notify pgrst, 'reload config'";
    house.owner.batch_execute(&other.replace("{}", &name)).await.expect("setting");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(count(&ask(&house, "", "GET", "/stars?select=id", "", "").await), 1, "a wrong one changes nothing");
}

#[actix_web::test]
async fn without_in_database_configuration_role_settings_are_ignored() {
    let house = House::open(&[("PGRST_DB_CONFIG", "false")]).await;
    let slow = r#"{"role":"sky_slow"}"#;
    let reply = ask(&house, slow, "GET", "/rpc/setting?name=statement_timeout", "", "").await;
    assert_eq!(rows(&reply), json!("0"));
}

#[actix_web::test]
async fn jit_is_off_unless_it_is_configured() {
    let jit = async |house: &House| rows(&ask(house, "", "GET", "/rpc/setting?name=jit", "", "").await);
    let house = House::open(&[]).await;
    let found = "select setting, source from pg_settings where name = 'jit'";
    let found = house.owner.query_one(found, &[]).await.expect("the setting");
    let (setting, source): (String, String) = (found.get(0), found.get(1));
    // The embedded PostgreSQL sets it at startup; other servers usually do not.
    assert_eq!(jit(&house).await, json!(if source == "default" { "off" } else { setting.as_str() }));
    let shared = House::open(&[("PGRST_DB_PREPARED_STATEMENTS", "false")]).await;
    assert_eq!(jit(&shared).await, json!(setting), "the session behind a pooler is not ours");
    let ground = Ground::new(None).await;
    let alter = format!("alter database {} set jit = on", ground.database());
    connect(&ground.owner_url).await.batch_execute(&alter).await.expect("setting");
    assert_eq!(jit(&House::build(&[], &ground).await).await, json!("on"));
}

#[actix_web::test]
async fn stages_are_timed_if_enabled() {
    let house = House::open(&[("PGRST_SERVER_TIMING_ENABLED", "true")]).await;
    for (method, target) in [("GET", "/labels?select=id"), ("GET", "/"), ("OPTIONS", "/labels"), ("OPTIONS", "/")] {
        let reply = ask(&house, "", method, target, "", "").await;
        let timing = reply.header("server-timing").expect("a header");
        let stages: Vec<&str> = timing.split(", ").filter_map(|stage| stage.split(";dur=").next()).collect();
        assert_eq!(stages, ["jwt", "parse", "plan", "transaction", "response"], "{method} {target}");
    }
}

#[actix_web::test]
async fn plans_are_shown_if_enabled() {
    let house = House::open(&[("PGRST_DB_PLAN_ENABLED", "true")]).await;
    let accept = "Accept: application/vnd.pgrst.plan+json; options=verbose";
    let reply = ask(&house, "", "GET", "/labels?id=eq.1", accept, "").await;
    assert_eq!(
        reply.header("content-type").as_deref(),
        Some("application/vnd.pgrst.plan+json; for=\"application/json\"; options=verbose; charset=utf-8")
    );
    assert!(rows(&reply)[0]["Plan"].is_object(), "{}", reply.text());
}

#[actix_web::test]
async fn tokens_are_verified_with_the_named_key_of_the_set() {
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
    let key = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text);
    let set = json!({"keys": [
        {"kty": "oct", "kid": "old", "k": key("an old key of more than thirty-two bytes")},
        {"kty": "oct", "kid": "new", "k": key("a new key that has more than thirty-two bytes")},
    ]});
    let house = House::open(&[("PGRST_JWT_SECRET", &set.to_string())]).await;
    let token = |kid: &str, secret: &str| {
        let mut header = Header::new(Algorithm::HS512);
        header.kid = Some(kid.to_owned());
        encode(&header, &json!({"role": "sky_member"}), &EncodingKey::from_secret(secret.as_bytes())).expect("token")
    };
    for (kid, secret, status) in [
        ("old", "an old key of more than thirty-two bytes", 200),
        ("new", "a new key that has more than thirty-two bytes", 200),
        ("new", "an old key of more than thirty-two bytes", 401),
        ("other", "an old key of more than thirty-two bytes", 401),
    ] {
        let header = ("Authorization".to_owned(), format!("Bearer {}", token(kid, secret)));
        let reply = send(&house.address, "GET", "/labels?select=id", &[header], b"").await;
        assert_eq!(reply.status, status, "{kid}: {}", reply.text());
    }
}

#[actix_web::test]
async fn concurrent_requests_never_share_a_role() {
    let house = House::open(&[("PGRST_DB_POOL", "3")]).await;
    let one = async |n: usize| {
        let role = ["sky_visitor", "sky_member", "sky_curator"][n % 3];
        let claims = format!(r#"{{"role":"{role}","n":{n}}}"#);
        let reply = ask(&house, &claims, "GET", "/rpc/me", "", "").await;
        assert_eq!(rows(&reply), json!({"role": role, "claims": {"role": role, "n": n}}));
    };
    futures_util::future::join_all((0..300).map(one)).await;
}

#[actix_web::test]
async fn an_event_trigger_makes_a_new_table_available() {
    let trigger = "create function public.told() returns event_trigger language plpgsql as
                   $$ begin notify pgrst, 'reload schema'; end $$;
                   create event trigger told on ddl_command_end execute function public.told();";
    let ground = Ground::new(Some(trigger)).await;
    let house = House::build(&[], &ground).await;
    assert_eq!(ask(&house, "", "GET", "/comets", "", "").await.status, 404);
    let ddl =
        "begin; create table sky.comets (id integer primary key); grant select on sky.comets to sky_visitor; commit";
    house.owner.batch_execute(ddl).await.expect("ddl");
    assert_eq!(rows(&wait_for(&house, "/comets", |reply| reply.status == 200).await), json!([]));
    house.owner.batch_execute("drop table sky.comets").await.expect("ddl");
    let reply = wait_for(&house, "/comets", |reply| reply.text().contains("PGRST205")).await;
    assert_eq!(reply.status, 404);
}

#[actix_web::test]
async fn the_notification_channel_is_configurable() {
    let house = House::open(&[("PGRST_DB_CHANNEL", "Sky News")]).await;
    let ddl =
        "create table sky.comets (id integer primary key); grant select on sky.comets to sky_visitor; notify pgrst";
    house.owner.batch_execute(ddl).await.expect("ddl");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(ask(&house, "", "GET", "/comets", "", "").await.status, 404, "not listened to, so not reloaded");
    house.owner.batch_execute("notify \"Sky News\", 'something else'").await.expect("notify");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(ask(&house, "", "GET", "/comets", "", "").await.status, 404, "other payloads mean nothing");
    house.owner.batch_execute("notify \"Sky News\"").await.expect("notify");
    assert_eq!(wait_for(&house, "/comets", |reply| reply.status == 200).await.status, 200);
}

#[actix_web::test]
async fn a_lost_database_is_reconnected() {
    let ground = Ground::new(None).await.behind_relay(None).await;
    let house = House::build(&[("PGRST_DB_POOL_ACQUISITION_TIMEOUT", "5")], &ground).await;
    let relay = ground.relay.as_ref().expect("a relay");
    assert_eq!(ask(&house, "", "GET", "/labels?select=id", "", "").await.status, 200);
    relay.close();
    let reply = wait_for(&house, "/labels?select=id", |reply| reply.status != 200).await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some() && reply.text().contains("PGRST00"), "{}", reply.text());
    // Changes made meanwhile are noticed afterwards, although their notification was missed.
    let ddl =
        "create table sky.comets (id integer primary key); grant select on sky.comets to sky_visitor; notify pgrst";
    house.owner.batch_execute(ddl).await.expect("ddl");
    relay.open();
    assert_eq!(wait_for(&house, "/labels?select=id", |reply| reply.status == 200).await.status, 200);
    assert_eq!(wait_for(&house, "/comets", |reply| reply.status == 200).await.status, 200);
}

#[actix_web::test]
async fn ten_thousand_tables_are_served() {
    let tables = "do $$ begin for n in 1..10000 loop
                    execute format('create table sky.t%s (id integer, up integer)', n); end loop; end $$;
                  alter table sky.t1 add primary key (id);
                  alter table sky.t9999 add foreign key (up) references sky.t1;
                  insert into sky.t1 values (1, 1); insert into sky.t9999 values (7, 1);
                  grant select on sky.t1, sky.t9999, sky.t10000 to sky_visitor;";
    let ground = Ground::new(Some(tables)).await;
    let house = House::build(&[], &ground).await;
    let cache = house.live.cache().expect("a cache");
    assert!(cache.tables().count() > 10_000);
    let reply = ask(&house, "", "GET", "/t9999?select=id,t1(id)", "", "").await;
    assert_eq!(rows(&reply), json!([{"id": 7, "t1": {"id": 1}}]));
    assert_eq!(rows(&ask(&house, "", "GET", "/t10000", "", "").await), json!([]));
    // With that many tables, no similar names are searched for.
    let reply = ask(&house, "", "GET", "/t10001", "", "").await;
    assert_eq!((reply.status, rows(&reply)["hint"].clone()), (404, Value::Null));
    let reply = ask(&house, r#"{"role":"sky_visitor"}"#, "GET", "/", "", "").await;
    let document = rows(&reply);
    assert!(document["paths"]["/t9999"].is_object() && document["paths"]["/t5"].is_null(), "what may be read");
}

#[actix_web::test]
async fn request_settings_are_empty_in_the_next_request() {
    // One connection, so that leftovers of one request would be visible to the next.
    let note = "create function sky.note(name text, value text) returns text language sql volatile as
                $$ select set_config(name, value, true) $$;";
    let ground = Ground::new(Some(note)).await;
    let house = House::build(&[("PGRST_DB_POOL", "1"), ("PGRST_DB_TX_END", "commit")], &ground).await;
    let setting = "/rpc/setting?name=sky.note";
    assert_eq!(rows(&ask(&house, "", "GET", setting, "", "").await), Value::Null, "never set");
    let body = r#"{"name": "sky.note", "value": "left behind"}"#;
    assert_eq!(rows(&ask(&house, "", "POST", "/rpc/note", "", body).await), json!("left behind"));
    assert_eq!(rows(&ask(&house, "", "GET", setting, "", "").await), json!(""), "empty, not null");
    let status = r#"{"name": "response.status", "value": "202"}"#;
    assert_eq!(ask(&house, "", "POST", "/rpc/note", "", status).await.status, 202);
    assert_eq!(ask(&house, "", "GET", setting, "", "").await.status, 200);
    let claims = "/rpc/request_says?what=jwt.claims";
    let member = r#"{"role":"sky_member","sub":"x"}"#;
    assert_eq!(rows(&ask(&house, member, "GET", claims, "", "").await), json!(r#"{"role":"sky_member","sub":"x"}"#));
    assert_eq!(rows(&ask(&house, "", "GET", claims, "", "").await), json!(r#"{"role":"sky_visitor"}"#));
}

#[actix_web::test]
async fn a_function_can_provide_the_settings() {
    let function = "create function public.settings() returns void language plpgsql as $$ begin
                      perform set_config('pgrst.db_max_rows', '2', true);
                      perform set_config('pgrst.server_trace_header', 'X-Trace', true); end $$;
                    grant usage on schema public to sky_gate;";
    let ground = Ground::new(Some(function)).await;
    let house = House::build(&[("PGRST_DB_PRE_CONFIG", "public.settings")], &ground).await;
    let reply = ask(&house, "", "GET", "/stars?select=id", "X-Trace: t-1", "").await;
    assert_eq!((rows(&reply).as_array().map(Vec::len), reply.header("x-trace").as_deref()), (Some(2), Some("t-1")));
    // Settings of the login role in this database override the function's.
    let alter = format!(
        "alter role sky_gate in database {} set pgrst.db_max_rows = '1'; notify pgrst, 'reload config'",
        ground.database()
    );
    house.owner.batch_execute(&alter).await.expect("setting");
    let one = |reply: &Reply| rows(reply).as_array().map(Vec::len) == Some(1);
    assert_eq!(wait_for(&house, "/stars?select=id", one).await.status, 200);
}

#[actix_web::test]
async fn the_settings_function_can_be_named_in_the_database() {
    let function = "create function public.settings() returns void language plpgsql as $$ begin
                      perform set_config('pgrst.db_max_rows', '2', true); end $$;
                    grant usage on schema public to sky_gate;";
    let ground = Ground::new(Some(function)).await;
    let alter =
        format!("alter role sky_gate in database {} set pgrst.db_pre_config = 'public.settings'", ground.database());
    connect(&ground.owner_url).await.batch_execute(&alter).await.expect("setting");
    let house = House::build(&[], &ground).await;
    let reply = ask(&house, "", "GET", "/stars?select=id", "", "").await;
    assert_eq!(rows(&reply).as_array().map(Vec::len), Some(2));
}

#[actix_web::test]
async fn without_its_settings_function_the_server_starts_with_the_other_settings() {
    let house = House::open(&[("PGRST_DB_PRE_CONFIG", "public.gone"), ("PGRST_DB_MAX_ROWS", "2")]).await;
    let reply = ask(&house, "", "GET", "/stars?select=id", "", "").await;
    assert_eq!(rows(&reply).as_array().map(Vec::len), Some(2));
    let timeout = "/rpc/setting?name=statement_timeout";
    let of = async |role: &str| rows(&ask(&house, role, "GET", timeout, "", "").await);
    assert_ne!(of("").await, of(r#"{"role":"sky_slow"}"#).await, "settings of roles hold");
}

#[actix_web::test]
async fn a_missing_settings_function_keeps_the_databases_settings() {
    let ground = Ground::new(None).await;
    let (owner, database) = (connect(&ground.owner_url).await, ground.database());
    for setting in ["pgrst.db_pre_config = 'public.gone'", "pgrst.db_max_rows = '2'"] {
        let alter = format!("alter role sky_gate in database {database} set {setting}");
        owner.batch_execute(&alter).await.expect("setting");
    }
    let house = House::build(&[], &ground).await;
    let reply = ask(&house, "", "GET", "/stars?select=id", "", "").await;
    assert_eq!(rows(&reply).as_array().map(Vec::len), Some(2));
}

#[actix_web::test]
async fn after_the_first_load_one_session_listens_and_one_reloads() {
    let house = House::open(&[]).await;
    let sessions = "select count(*) from pg_stat_activity
                    where datname = current_database() and usename = 'sky_gate'";
    let count = async || house.owner.query_one(sessions, &[]).await.expect("count").get::<_, i64>(0);
    for _ in 0..500 {
        if count().await == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Not just in passing.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(count().await, 2);
}

#[actix_web::test]
async fn a_database_of_another_encoding_is_served() {
    // The observatory's roles exist in the cluster already.
    let latin = |name: &str| format!("create database {name} template template0 encoding 'LATIN1' locale 'C'");
    let ground = Ground::on(Database::made(latin).await);
    let tables = "create schema sky; create schema workshop; grant usage on schema sky to sky_visitor;
                  create table sky.\"größen\" (id integer primary key, \"maß\" text);
                  insert into sky.\"größen\" values (1, 'für'); grant select on sky.\"größen\" to sky_visitor;";
    connect(&ground.owner_url).await.batch_execute(tables).await.expect("tables");
    let house = House::build(&[], &ground).await;
    let of = async |value: &str| {
        let target = format!("/gr%C3%B6%C3%9Fen?ma%C3%9F=eq.{value}");
        ask(&house, "", "GET", &target, "", "").await
    };
    assert_eq!(rows(&of("f%C3%BCr").await), json!([{ "id": 1, "maß": "für" }]));
    let beyond = of("%E6%BC%A2").await;
    assert_eq!((beyond.status, &rows(&beyond)["code"]), (400, &json!("22P05")));
}

#[actix_web::test]
async fn an_exhausted_pool_answers_504() {
    let sleep = "create function sky.nap() returns text language sql stable as $$ select pg_sleep(6)::text $$;";
    let ground = Ground::new(Some(sleep)).await;
    let house = House::build(&[("PGRST_DB_POOL", "1"), ("PGRST_DB_POOL_ACQUISITION_TIMEOUT", "2")], &ground).await;
    wait_for(&house, "/labels?select=id", |reply| reply.status == 200).await;
    let napping = ask(&house, "", "GET", "/rpc/nap", "", "");
    let active = "select count(*) from pg_stat_activity where datname = current_database() and query like '%\"nap\"%'
                  and state = 'active' and pid <> pg_backend_pid()";
    let waiting = async {
        while house.owner.query_one(active, &[]).await.expect("count").get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ask(&house, "", "GET", "/labels?select=id", "", "").await
    };
    let (napped, refused) = futures_util::future::join(napping, waiting).await;
    assert_eq!(napped.status, 200);
    assert_eq!(refused.status, 504);
    assert_eq!(
        rows(&refused),
        json!({"code": "PGRST003", "details": null, "hint": null,
               "message": "Timed out acquiring connection from connection pool."})
    );
}

#[actix_web::test]
async fn function_settings_apply_only_if_hoisted() {
    let function = "create function sky.memory() returns json language sql stable
                      set work_mem = '7MB' set statement_timeout = '77s'
                      as $$ select json_build_object('x', 1) $$;
                    create function sky.after() returns setof sky.labels language sql stable
                      set statement_timeout = '66s' as $$ select * from sky.labels $$;";
    let ground = Ground::new(Some(function)).await;
    // Seen by the statement around the function; inside it, its own settings apply in any case.
    let house = House::build(&[("PGRST_DB_HOISTED_TX_SETTINGS", "work_.*")], &ground).await;
    let reply = ask(&house, "", "POST", "/rpc/timed", "", "").await;
    assert_eq!(rows(&reply), json!("4321ms"), "inside, in any case");
    let cache = house.live.cache().expect("a cache");
    let hoisted = |name: &str| {
        let function = cache.functions().find(|function| &*function.name.name == name).expect("the function");
        function.hoisted_settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(hoisted("memory"), ["work_mem=7MB"]);
    assert_eq!(hoisted("after"), [] as [&str; 0]);
}

/// Named prepared statements on the server's own connections.
async fn prepared(house: &House) -> Value {
    let text = "select count(*) from pg_prepared_statements where name <> ''";
    let function = format!(
        "create or replace function sky.prepared() returns bigint language sql volatile security definer as $$ {text} $$"
    );
    house.owner.batch_execute(&format!("{function}; notify pgrst")).await.expect("function");
    wait_for(house, "/rpc/plus?a=1&b=1", |reply| reply.status == 200).await;
    for _ in 0..200 {
        let reply = ask(house, "", "POST", "/rpc/prepared", "", "").await;
        if reply.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    for _ in 0..5 {
        assert_eq!(ask(house, "", "GET", "/labels?select=id&id=eq.1", "", "").await.status, 200);
    }
    rows(&ask(house, "", "POST", "/rpc/prepared", "", "").await)
}

#[actix_web::test]
async fn nothing_is_prepared_if_disabled() {
    let house = House::open(&[("PGRST_DB_POOL", "1"), ("PGRST_DB_PREPARED_STATEMENTS", "false")]).await;
    assert_eq!(prepared(&house).await, json!(0));
    let house = House::open(&[("PGRST_DB_POOL", "1")]).await;
    assert!(prepared(&house).await.as_i64().is_some_and(|number| number > 0));
}

#[actix_web::test]
async fn connections_are_closed_by_age_and_idle_time() {
    let backend = "create function sky.backend() returns integer language sql stable as $$ select pg_backend_pid() $$;";
    for (name, value, stays) in [
        ("PGRST_DB_POOL_MAX_IDLETIME", "1", false),
        ("PGRST_DB_POOL_MAX_LIFETIME", "1", false),
        ("PGRST_DB_POOL_MAX_LIFETIME", "1000", true),
    ] {
        let ground = Ground::new(Some(backend)).await;
        let house = House::build(&[("PGRST_DB_POOL", "1"), (name, value)], &ground).await;
        let first = rows(&ask(&house, "", "GET", "/rpc/backend", "", "").await);
        tokio::time::sleep(Duration::from_millis(1300)).await;
        let later = rows(&ask(&house, "", "GET", "/rpc/backend", "", "").await);
        assert!(later.is_number() && (later == first) == stays, "{name}: {first} then {later}");
    }
}

/// A token with a signature made by `sign`.
fn signed(algorithm: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    use base64::Engine;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let head = json!({"alg": algorithm, "typ": "JWT"}).to_string();
    let message = format!("{}.{}", encode(head.as_bytes()), encode(MEMBER.as_bytes()));
    let signature = encode(&sign(message.as_bytes()));
    format!("{message}.{signature}")
}

#[actix_web::test]
async fn tokens_of_every_key_type_are_verified() {
    use base64::Engine;
    use ed25519_dalek::Signer as _;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let hmac = "a symmetric key of more than sixty-four bytes, as the longest of the three wants";
    let p256 = p256::ecdsa::SigningKey::from_slice(&[7; 32]).expect("key");
    let p521 = p521::ecdsa::SigningKey::from_slice(&[&[0][..], &[7; 65]].concat()).expect("key");
    let ed25519 = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let (a, b) = (p256.verifying_key().to_encoded_point(false), p521::ecdsa::VerifyingKey::from(&p521));
    let b = b.to_encoded_point(false);
    let set = json!({"keys": [
        {"kty": "oct", "k": encode(hmac.as_bytes())},
        {"kty": "EC", "crv": "P-256", "x": encode(a.x().expect("x")), "y": encode(a.y().expect("y"))},
        {"kty": "EC", "crv": "P-521", "x": encode(b.x().expect("x")), "y": encode(b.y().expect("y"))},
        {"kty": "OKP", "crv": "Ed25519", "x": encode(ed25519.verifying_key().as_bytes())},
    ]});
    let house = House::open(&[("PGRST_JWT_SECRET", &set.to_string())]).await;
    let by_secret = |algorithm| {
        let key = jsonwebtoken::EncodingKey::from_secret(hmac.as_bytes());
        let claims: Value = serde_json::from_str(MEMBER).expect("claims");
        jsonwebtoken::encode(&jsonwebtoken::Header::new(algorithm), &claims, &key).expect("token")
    };
    let by_p256 = |message: &[u8]| {
        let signature: p256::ecdsa::Signature = p256.sign(message);
        signature.to_bytes().to_vec()
    };
    let by_p521 = |message: &[u8]| {
        let signature: p521::ecdsa::Signature = p521::ecdsa::signature::Signer::sign(&p521, message);
        signature.to_bytes().to_vec()
    };
    let by_ed25519 = |message: &[u8]| ed25519.sign(message).to_bytes().to_vec();
    for (kind, token, status) in [
        ("HS256", by_secret(jsonwebtoken::Algorithm::HS256), 200),
        ("HS384", by_secret(jsonwebtoken::Algorithm::HS384), 200),
        ("HS512", by_secret(jsonwebtoken::Algorithm::HS512), 200),
        ("ES256", signed("ES256", by_p256), 200),
        ("ES512", signed("ES512", by_p521), 200),
        ("EdDSA", signed("EdDSA", by_ed25519), 200),
        // A signature of another key, and one with another algorithm than stated.
        ("ES256 by Ed25519", signed("ES256", by_ed25519), 401),
        ("ES512 by P-256", signed("ES512", by_p256), 401),
        ("EdDSA by nobody", signed("EdDSA", |_| vec![0; 64]), 401),
        ("none", signed("none", |_| Vec::new()), 401),
    ] {
        let header = ("Authorization".to_owned(), format!("Bearer {token}"));
        let reply = send(&house.address, "GET", "/labels?select=id", &[header], b"").await;
        assert_eq!(reply.status, status, "{kind}: {}", reply.text());
        let challenge = reply.header("www-authenticate");
        assert_eq!(challenge.is_some_and(|text| text.starts_with("Bearer error=")), status == 401, "{kind}");
    }
}

/// Regression: the estimate of a write's cost called the pre-request once more, and committed what that wrote.
#[actix_web::test]
async fn a_cost_estimate_leaves_nothing_behind() {
    let log = "create table public.requests (said text);
               create function sky.note_request() returns void language plpgsql security definer as $$ begin
                 insert into public.requests values (current_setting('request.path')); end $$;
               grant insert on sky.constellations to sky_visitor;";
    let ground = Ground::new(Some(log)).await;
    let settings = [("PGRST_DB_PRE_REQUEST", "sky.note_request"), ("PGRST_DB_TX_END", "commit-allow-override")];
    let house = House::build(&settings, &ground).await;
    let noted = async || -> i64 {
        house.owner.query_one("select count(*) from public.requests", &[]).await.expect("count").get(0)
    };
    let target = "/constellations?select=id,stars(id,observations(night,telescopes(id)))";
    let post = async |prefer: &str, body: &str| {
        let prefer = format!("Prefer: return=representation{prefer}");
        ask(&house, "", "POST", target, &prefer, body).await
    };
    let reply = post(", tx=rollback", r#"{"id": 70, "name": "Mensa"}"#).await;
    assert_eq!((reply.status, noted().await), (201, 0), "{}", reply.text());
    // Other columns, so the statement is another one and is estimated, too.
    let reply = post("", r#"{"id": 71, "name": "Pyxis", "area": 220.83}"#).await;
    assert_eq!((reply.status, noted().await), (201, 1), "{}", reply.text());
    let reply = post("", r#"{"id": 72}"#).await;
    assert_eq!((reply.status, noted().await), (400, 1), "{}", reply.text());
}

/// Regression: what a pre-request set for the answer was read only after all rows, and so never applied to a long answer.
#[actix_web::test]
async fn a_pre_request_sets_status_and_headers_of_a_long_answer() {
    let long = r#"create view sky.horizon as select n, repeat('x', 100) as word from generate_series(1, 20000) as n;
                  grant select on sky.horizon to sky_visitor;
                  create function sky.mark() returns void language plpgsql as $$ begin
                    perform set_config('response.headers', '[{"X-Pre": "yes"}, {"Cache-Control": "no-store"}]', true),
                      set_config('response.status', coalesce(current_setting('request.headers')::json ->> 'x-status', '203'), true);
                  end $$;"#;
    let house = House::build(&[("PGRST_DB_PRE_REQUEST", "sky.mark")], &Ground::new(Some(long)).await).await;
    for (target, header) in [
        ("/horizon", ""),
        ("/horizon", "Accept: text/csv"),
        // The second and the third time it is prepared.
        ("/horizon", ""),
        ("/horizon", ""),
        ("/horizon?limit=15000", ""),
        ("/horizon?limit=2", ""),
    ] {
        let reply = ask(&house, "", "GET", target, header, "").await;
        assert_eq!(reply.status, 203, "{target} {header}");
        let found = ["x-pre", "cache-control"].map(|name| reply.header(name).unwrap_or_default());
        assert_eq!(found, ["yes", "no-store"], "{target} {header}");
        assert_eq!(reply.body.len() > 1 << 20, !target.ends_with("=2"), "{target} {header}: {}", reply.body.len());
    }
    let reply = ask(&house, "", "GET", "/horizon", "X-Status: nonsense", "").await;
    assert_eq!((reply.status, &rows(&reply)["code"]), (500, &json!("PGRST112")));
    assert_eq!(ask(&house, "", "GET", "/labels?select=id", "", "").await.status, 203, "the connection is usable");
}

/// Regression: a longer body was refused for the token's role before the pre-request could switch to another one.
#[actix_web::test]
async fn a_role_chosen_by_a_pre_request_may_send_a_long_body() {
    let switch = "create function sky.switch() returns void language plpgsql as $$ begin
                    if current_setting('request.headers')::json ->> 'x-key' = 'right' then
                      set local role sky_member; end if; end $$;";
    let ground = Ground::new(Some(switch)).await;
    let house = House::build(&[("PGRST_DB_PRE_REQUEST", "sky.switch")], &ground).await;
    let plain = House::build(&[], &ground).await;
    for (house, key, length, status) in [
        (&house, "right", 10, 201),
        (&house, "right", 200_000, 201),
        (&house, "wrong", 10, 401),
        (&house, "wrong", 200_000, 401),
        (&plain, "right", 200_000, 401),
    ] {
        let body = json!({"id": 90, "t": "t".repeat(length)}).to_string();
        let reply = ask(house, "", "POST", "/zoo", &format!("X-Key: {key}"), &body).await;
        assert_eq!(reply.status, status, "{key} {length}: {}", reply.text());
        assert_eq!(reply.text().contains("42501"), status == 401, "{key} {length}: {}", reply.text());
    }
}
