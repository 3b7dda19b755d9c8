//! `realtime.subscription`, where tools read who has subscribed to what.

use serde_json::{Value, json};

use super::client::{Client, token, user_token};
use crate::support::TestApp;
use crate::support::valve::until;

const ANN: &str = "00000000-0000-4000-8000-000000000001";

async fn start() -> TestApp {
    let app = TestApp::logical(&[]).await;
    app.owner
        .batch_execute(
            "create schema desk;
             create table desk.notes (id int primary key, body text, \"Odd Name\" text);
             create table desk.other (id int primary key);
             grant usage on schema desk to anon, authenticated;
             grant select on all tables in schema desk to anon, authenticated;
             alter publication supabase_realtime add table desk.notes, desk.other",
        )
        .await
        .expect("tables");
    app
}

/// The rows as JSON, oldest first, without values that differ in each run.
async fn rows(app: &TestApp) -> Vec<Value> {
    let sql = "select to_jsonb(s) - 'id' - 'subscription_id' - 'created_at'
               from realtime.subscription s order by s.id";
    let rows = app.owner.query(sql, &[]).await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn until_rows(app: &TestApp, count: usize) -> Vec<Value> {
    until(&format!("{count} rows are there"), async || rows(app).await.len() == count).await;
    rows(app).await
}

#[actix_web::test]
async fn tools_can_read_all_subscriptions() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let claims = json!({ "role": "authenticated", "sub": ANN, "exp": chrono::Utc::now().timestamp() + 60, "x": "ü" });
    let join_ref = client
        .join_as(
            "room",
            json!({ "postgres_changes": [
                { "event": "UPDATE", "schema": "desk", "table": "notes",
                  "filter": "id=gt.3,Odd Name=not.in.(a,b)", "select": ["body"] },
                { "event": "*", "schema": "desk" },
            ] }),
            Some(&token(claims.clone())),
        )
        .await;
    let found = until_rows(&app, 3).await;
    let filters = json!([
        { "column_name": "id", "op": "gt", "value": "3", "negate": false },
        { "column_name": "Odd Name", "op": "in", "value": "{a,b}", "negate": true },
    ]);
    let row = |entity: &str, filters: Value, action: &str, columns: Value| {
        json!({
            "entity": entity, "filters": filters, "claims": claims, "claims_role": "authenticated",
            "action_filter": action, "selected_columns": columns,
        })
    };
    assert_eq!(found[0], row("desk.notes", filters, "UPDATE", json!(["body"])));
    let mut wide = found[1..].to_vec();
    wide.sort_by_key(|row| row["entity"].to_string());
    assert_eq!(wide, [row("desk.notes", json!([]), "*", Value::Null), row("desk.other", json!([]), "*", Value::Null)]);
    // A new token's claims, then none after leaving.
    client.push(&join_ref, "realtime:room", "access_token", json!({ "access_token": user_token(ANN) })).await;
    until("the claims are the new ones", async || {
        let rows = rows(&app).await;
        rows.len() == 3 && rows.iter().all(|row| row["claims"].get("x").is_none())
    })
    .await;
    client.ask(&join_ref, "realtime:room", "phx_leave", json!({})).await;
    until_rows(&app, 0).await;
    // API roles cannot see anybody's claims.
    for role in ["anon", "authenticated"] {
        for table in ["subscription", "noted_subscriptions"] {
            let sql = format!("begin; set local role {role}; select * from realtime.{table}");
            let refused = app.owner.batch_execute(&sql).await.expect_err("refused");
            assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{role} {table}");
            app.owner.batch_execute("rollback").await.expect("rollback");
        }
    }
}

#[actix_web::test]
async fn an_instances_rows_are_removed_with_its_stream() {
    let one = start().await;
    let two = one.another(&[]).await;
    let entry = json!({ "postgres_changes": [{ "event": "*", "schema": "desk", "table": "notes" }] });
    let (mut ann, mut ben) = (Client::open(&one).await, Client::open(&two).await);
    ann.join("room", entry.clone()).await;
    ben.join("room", entry.clone()).await;
    until_rows(&one, 2).await;
    two.realtime.stop();
    until_rows(&one, 1).await;
    // The next instance that opens a stream removes the rows of the lost one.
    let three = one.another(&[]).await;
    let mut cem = Client::open(&three).await;
    cem.join("room", entry).await;
    until_rows(&one, 2).await;
    until("only theirs are left", async || {
        let sql = "select count(*), count(distinct instance) from realtime.noted_subscriptions";
        let row = one.owner.query_one(sql, &[]).await.expect("a row");
        (row.get::<_, i64>(0), row.get::<_, i64>(1)) == (2, 2)
    })
    .await;
}

#[actix_web::test]
async fn unstorable_claims_do_not_hide_other_rows() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!({ "postgres_changes": [{ "event": "*", "schema": "desk", "table": "notes" }] });
    let exp = chrono::Utc::now().timestamp() + 60;
    let odd = token(json!({ "role": "anon", "exp": exp, "name": "a\u{0}b" }));
    client.join_as("odd", entry.clone(), Some(&odd)).await;
    client.join("even", entry).await;
    until_rows(&app, 1).await;
}

#[actix_web::test]
async fn equal_entries_of_a_join_are_one_subscription() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!({ "event": "*", "schema": "desk", "table": "notes" });
    let turned = json!({ "table": "notes", "schema": "desk", "event": "*" });
    let other = json!({ "event": "INSERT", "schema": "desk", "table": "notes" });
    let config = json!({ "postgres_changes": [entry, turned, other, entry] });
    let (_, answer) = client.try_join("room", config, None).await;
    let ids: Vec<&Value> = (0..4).map(|at| &answer["response"]["postgres_changes"][at]["id"]).collect();
    assert!(ids[0].is_number() && ids[0] == ids[1] && ids[0] == ids[3] && ids[0] != ids[2], "{answer}");
    let found = until_rows(&app, 2).await;
    let actions: Vec<&Value> = found.iter().map(|row| &row["action_filter"]).collect();
    assert!(actions.contains(&&json!("*")) && actions.contains(&&json!("INSERT")), "{actions:?}");
    app.owner.batch_execute("insert into desk.notes values (1, 'a')").await.expect("a row");
    client.wait_for_event("system").await;
    let change = client.change().await;
    assert_eq!(change["ids"].as_array().map(Vec::len), Some(2), "{change}");
}
