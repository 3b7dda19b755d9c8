//! Rows that leave a subscriber's view: only their key is sent, and only to subscribers that asked for it and have seen
//! the row.

use serde_json::{Value, json};

use super::client::{Client, user_token};
use crate::support::TestApp;

const ANN: &str = "00000000-0000-4000-8000-000000000001";
const BEN: &str = "00000000-0000-4000-8000-000000000002";
const CEM: &str = "00000000-0000-4000-8000-000000000003";

async fn start() -> TestApp {
    let app = TestApp::logical(&[]).await;
    run(
        &app,
        "create table public.mine (kind char(3), id int, owner uuid, body text, open boolean default true,
                                   primary key (kind, id));
         alter table public.mine enable row level security;
         create policy own on public.mine for select to authenticated using (owner = auth.uid());
         create table public.barrier (id serial primary key);
         alter publication supabase_realtime add table public.mine, public.barrier;",
    )
    .await;
    app
}

async fn run(app: &TestApp, sql: &str) {
    app.owner.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn subscribe(app: &TestApp, person: &str, entry: Value) -> (Client, String) {
    let mut client = Client::open(app).await;
    let config = json!({ "postgres_changes": [entry, { "event": "*", "schema": "public", "table": "barrier" }] });
    let join_ref = client.join_as("a", config, Some(&user_token(person))).await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(told["status"], "ok", "{told}");
    (client, join_ref)
}

/// All changes so far: kind, key, and the names in the old record.
async fn told(app: &TestApp, client: &mut Client) -> Vec<(String, i64, usize)> {
    let barrier = app.owner.query_one("insert into barrier default values returning id", &[]).await.expect("a row");
    let barrier: i32 = barrier.get(0);
    let mut all = Vec::new();
    loop {
        let data = client.change().await["data"].clone();
        if data["table"] == "barrier" {
            if data["record"]["id"] == barrier {
                return all;
            }
            continue;
        }
        let old = data["old_record"].as_object().map_or(0, serde_json::Map::len);
        let id = data["record"]["id"].as_i64().or(data["old_record"]["id"].as_i64()).expect("an id");
        all.push((data["type"].as_str().expect("a type").to_owned(), id, old));
    }
}

fn row(kind: &str, id: i64, old: usize) -> (String, i64, usize) {
    (kind.to_owned(), id, old)
}

#[actix_web::test]
async fn a_row_leaving_the_view_is_reported_only_to_those_who_saw_it() {
    let app = start().await;
    run(&app, &format!("insert into mine values ('k', 1, '{ANN}', 'there before'), ('k', 2, '{BEN}', 'not hers')"))
        .await;
    // The WAL has the whole old row, but only the key is sent.
    run(&app, "alter table mine replica identity full").await;
    let entry = json!({ "event": "*", "schema": "public", "table": "mine", "leaves": true });
    let (mut ann, join_ref) = subscribe(&app, ANN, entry.clone()).await;
    let (mut cem, _) = subscribe(&app, CEM, entry.clone()).await;
    let (mut plain, _) = subscribe(&app, ANN, json!({ "event": "*", "schema": "public", "table": "mine" })).await;
    run(&app, &format!("insert into mine values ('k', 3, '{ANN}', 'told')")).await;
    assert_eq!(told(&app, &mut ann).await, [row("INSERT", 3, 0)]);
    // Two of her rows become Ben's, one from before the subscription and one from after it; one of his changes without
    // concerning her.
    run(&app, &format!("update mine set owner = '{BEN}' where id in (1, 3); update mine set body = 'x' where id = 2"))
        .await;
    assert_eq!(told(&app, &mut ann).await, [row("DELETE", 1, 2), row("DELETE", 3, 2)]);
    assert!(told(&app, &mut cem).await.is_empty(), "never in view: not even the key is sent");
    assert_eq!(told(&app, &mut plain).await, [row("INSERT", 3, 0)], "off unless asked for");
    // A row that has left is not reported again until it comes back.
    run(&app, "update mine set body = 'y'").await;
    assert!(told(&app, &mut ann).await.is_empty());
    run(&app, &format!("update mine set owner = '{ANN}' where id = 1")).await;
    assert_eq!(told(&app, &mut ann).await, [row("UPDATE", 1, 5)]);
    // If the key changes too, the old key is reported.
    run(&app, &format!("update mine set owner = '{BEN}', id = 10 where id = 1")).await;
    assert_eq!(told(&app, &mut ann).await, [row("DELETE", 1, 2)]);
    // A new token keeps what was seen.
    run(&app, &format!("insert into mine values ('k', 4, '{ANN}', 'kept')")).await;
    assert_eq!(told(&app, &mut ann).await, [row("INSERT", 4, 0)]);
    ann.push(&join_ref, "realtime:a", "access_token", json!({ "access_token": user_token(CEM) })).await;
    ann.wait_for_event("system").await;
    run(&app, &format!("update mine set owner = '{BEN}' where id = 4")).await;
    assert_eq!(told(&app, &mut ann).await, [row("DELETE", 4, 2)]);
}

#[actix_web::test]
async fn leaving_a_filter_is_reported_and_deletions_respect_filters() {
    let app = start().await;
    run(&app, &format!("insert into mine values ('k', 1, '{ANN}', 'a', true), ('k', 2, '{ANN}', 'b', false)")).await;
    let entry = |event: &str| {
        json!({ "event": event, "schema": "public", "table": "mine", "leaves": true,
                "filter": "open=is.true,body=like.a%,kind=in.(k,\"x,y\")" })
    };
    let (mut ann, _) = subscribe(&app, ANN, entry("*")).await;
    let (mut leaver, _) = subscribe(&app, ANN, entry("DELETE")).await;
    run(&app, &format!("insert into mine values ('k', 3, '{ANN}', 'ab'), ('k', 4, '{ANN}', 'ac')")).await;
    run(&app, "update mine set open = false where id in (1, 2, 3); update mine set body = 'a' where id = 2").await;
    let expected = [row("INSERT", 3, 0), row("INSERT", 4, 0), row("DELETE", 1, 2), row("DELETE", 3, 2)];
    assert_eq!(told(&app, &mut ann).await, expected);
    assert_eq!(told(&app, &mut leaver).await, expected[2..]);
    // The WAL has only the key, without the filter's columns.
    run(&app, "delete from mine where id in (2, 4)").await;
    assert_eq!(told(&app, &mut ann).await, [row("DELETE", 4, 2)]);
    assert_eq!(told(&app, &mut leaver).await, [row("DELETE", 4, 2)]);
}

#[actix_web::test]
async fn subscriptions_that_cannot_be_tracked_are_refused() {
    let app = start().await;
    run(
        &app,
        &format!(
            "create table keyless (a int); create table shut (id int primary key);
             revoke all on shut from anon, authenticated;
             alter publication supabase_realtime add table keyless, shut;
             insert into mine select 'k', n, '{ANN}', 'a' from generate_series(1, 1001) n"
        ),
    )
    .await;
    let mut client = Client::open(&app).await;
    for (table, reason) in [
        ("mine", "Rows that leave cannot be told: there are too many rows to remember; narrow them by a filter"),
        ("keyless", "Rows that leave cannot be told: the table has no primary key"),
        ("*", "Rows that leave are told of one table. Provide an explicit schema and table name."),
    ] {
        let entry = json!({ "event": "*", "schema": "public", "table": table, "leaves": true });
        client.join_as("a", json!({ "postgres_changes": [entry] }), Some(&user_token(ANN))).await;
        let told = client.wait_for_event("system").await.payload;
        assert_eq!((&told["status"], &told["message"]), (&json!("error"), &json!(reason)));
    }
    let (mut client, _) = subscribe(
        &app,
        ANN,
        json!({ "event": "*", "schema": "public", "table": "mine", "leaves": true, "filter": "id=lte.1000" }),
    )
    .await;
    run(&app, "update mine set id = -5 where id = 1001").await;
    assert_eq!(told(&app, &mut client).await.len(), 1);
    let told = client.wait_for_event("system").await.payload;
    let text = "There are too many rows in view to remember: some will leave it without a word";
    assert_eq!((&told["status"], &told["message"]), (&json!("error"), &json!(text)));
    // Nothing of it is visible, so nothing can leave.
    subscribe(&app, ANN, json!({ "event": "*", "schema": "public", "table": "shut", "leaves": true })).await;
}
