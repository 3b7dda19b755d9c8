//! What takes more than one request to see.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::house::House;
use crate::wire::{Reply, send};

/// A request as `claims` (JSON text; empty for nobody), with one more header if `header` is not empty.
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

/// Asks until the answer is as wished; a reload takes a moment.
async fn wait_for(house: &House, target: &str, wished: impl Fn(&Reply) -> bool) -> Reply {
    let started = Instant::now();
    loop {
        let reply = ask(house, "", "GET", target, "", "").await;
        if wished(&reply) || started.elapsed() > Duration::from_secs(20) {
            return reply;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[actix_web::test]
async fn what_is_refused_after_it_ran_leaves_nothing_behind() {
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
async fn what_is_accepted_stays_and_what_is_asked_to_be_rolled_back_does_not() {
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
async fn a_notification_brings_a_new_table_in() {
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
async fn settings_in_the_database_win_and_are_read_again_when_asked() {
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
async fn without_in_database_configuration_no_role_setting_holds() {
    let house = House::open(&[("PGRST_DB_CONFIG", "false")]).await;
    let slow = r#"{"role":"sky_slow"}"#;
    let reply = ask(&house, slow, "GET", "/rpc/setting?name=statement_timeout", "", "").await;
    assert_eq!(rows(&reply), json!("0"));
}

#[actix_web::test]
async fn stages_are_timed_where_that_is_wanted() {
    let house = House::open(&[("PGRST_SERVER_TIMING_ENABLED", "true")]).await;
    let reply = ask(&house, "", "GET", "/labels?select=id", "", "").await;
    let timing = reply.header("server-timing").expect("a header");
    let stages: Vec<&str> = timing.split(", ").filter_map(|stage| stage.split(";dur=").next()).collect();
    assert_eq!(stages, ["jwt", "parse", "plan", "transaction", "response"]);
}

#[actix_web::test]
async fn plans_are_shown_where_that_is_allowed() {
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
async fn a_token_of_a_key_set_is_checked_with_the_key_it_names() {
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
async fn many_roles_at_once_never_meet() {
    let house = House::open(&[("PGRST_DB_POOL", "3")]).await;
    let one = async |n: usize| {
        let role = ["sky_visitor", "sky_member", "sky_curator"][n % 3];
        let claims = format!(r#"{{"role":"{role}","n":{n}}}"#);
        let reply = ask(&house, &claims, "GET", "/rpc/me", "", "").await;
        assert_eq!(rows(&reply), json!({"role": role, "claims": {"role": role, "n": n}}));
    };
    futures_util::future::join_all((0..300).map(one)).await;
}
