//! Which of several errors is reported, and what errors and plans may reveal.

use crate::rest_isolation::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn result_checks_precede_deferred_constraints() {
    let fixture = Fixture::start(&[("DB_TX_END", "commit-allow-override")]).await;
    let schema = "create table owed (id int primary key, to_id int references owed deferrable initially deferred); \
                  insert into owed values (1), (2); grant all on owed to studio_member; grant select on owed to studio_visitor";
    fixture.reload_with(schema, "/owed").await;
    for end in ["commit", "rollback"] {
        let patch = |prefer: &str| {
            let body = serde_json::json!({ "to_id": 99 });
            let request = fixture.request("member:a", "PATCH", "/owed?id=gt.0").json(&body);
            request.header("Prefer", format!("tx={end}{prefer}"))
        };
        let limited = fixture.send(patch(", handling=strict, max-affected=1")).await;
        assert_eq!((limited.status, limited.json()["code"].as_str()), (400, Some("PGRST124")), "{end}");
        let broken = fixture.send(patch(", handling=strict, max-affected=2")).await;
        assert_eq!((broken.status, broken.json()["code"].as_str()), (409, Some("23503")), "{end}");
        let plain = fixture.send(patch("")).await;
        assert_eq!((plain.status, plain.json()["code"].as_str()), (409, Some("23503")), "{end}");
    }
    let fine = fixture.request("member:a", "PATCH", "/owed?id=eq.1").json(&serde_json::json!({ "to_id": 2 }));
    let fine = fine.header("Prefer", "tx=rollback, handling=strict, max-affected=1");
    assert_eq!(fixture.send(fine).await.status, 204);
    assert_eq!(fixture.one("select count(*) from owed where to_id is not null").await, "0");
    assert_eq!(
        fixture
            .one("select count(*) from pg_stat_activity where state like 'idle in%' and datname = current_database()")
            .await,
        "0"
    );
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_name_only_exposed_objects() {
    let fixture = Fixture::start(&[]).await;
    let schema = "create schema cellar; \
                  create table cellar.projectxx (id int primary key, client_id int references public.clients); \
                  create table cellar.lonelyy (id int primary key, client_id int references public.clients); \
                  create table lonely (id int); grant select on lonely to studio_visitor";
    fixture.reload_with(schema, "/lonely").await;
    for (target, hint) in [
        ("/clients?select=projectxy(*)", Some("Perhaps you meant 'projects' instead of 'projectxy'.")),
        ("/lonely?select=clients(*)", None),
    ] {
        let reply = fixture.send(fixture.request("anon", "GET", target)).await;
        assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("PGRST200")), "{target}");
        assert_eq!(reply.json()["hint"].as_str(), hint, "{}", reply.body);
    }
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_hides_settings_of_our_sessions() {
    let fixture = Fixture::start(&[("DB_POOL", "1")]).await;
    let media = "application/vnd.pgrst.plan+json; options=settings";
    let plan = || fixture.send(fixture.request("anon", "GET", "/clients").header("Accept", media));
    let reply = plan().await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(reply.json()[0]["Settings"]["search_path"].is_string(), "{}", reply.body);
    // The embedded PostgreSQL is started with jit off.
    assert_eq!(reply.json()[0]["Settings"]["jit"].as_str(), Some("off"), "{}", reply.body);
    // If the database sets it and our session overrides it, the plan does not show it.
    fixture.one(&format!("alter database {} set jit = on", fixture.database.name)).await;
    let gone = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                where datname = current_database() and usename = 'studio_gate'";
    fixture.one(gone).await;
    let own = "create function own_jit() returns text language sql volatile as \
               $$ select set_config('jit', 'off', false) $$; grant execute on function own_jit() to studio_visitor";
    fixture.reload_with(own, "/rpc/own_jit").await;
    assert_eq!(fixture.send(fixture.request("anon", "POST", "/rpc/own_jit")).await.json(), "off");
    let reply = plan().await;
    assert!(reply.json()[0]["Settings"]["search_path"].is_string(), "{}", reply.body);
    assert!(reply.json()[0]["Settings"]["jit"].is_null(), "{}", reply.body);
    // Later requests on the connection work as before.
    assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients?id=eq.1")).await.status, 200);
    fixture.stop().await;
}
