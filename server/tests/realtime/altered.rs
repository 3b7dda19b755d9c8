//! Tables altered during a subscription: no channel silently continues with an outdated check.

use serde_json::{Value, json};

use super::client::{Client, user_token};
use crate::support::TestApp;

const ANN: &str = "00000000-0000-4000-8000-000000000001";

async fn start() -> TestApp {
    let app = TestApp::logical(&[]).await;
    run(
        &app,
        "create table public.notes (id int primary key, kind int, body text, twice int generated always as (id * 2) stored);
         create table public.mine (id int primary key, owner uuid);
         alter table public.mine enable row level security;
         create policy own on public.mine for select to authenticated using (owner = auth.uid());
         alter publication supabase_realtime add table public.notes, public.mine;",
    )
    .await;
    app
}

async fn run(app: &TestApp, sql: &str) {
    app.owner.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Subscribes again, as clients do. Returns the server's message.
async fn join(client: &mut Client, entry: Value) -> Value {
    client.join_as("a", json!({ "postgres_changes": [entry] }), Some(&user_token(ANN))).await;
    client.wait_for_event("system").await.payload
}

async fn is_told_to_join_again(client: &mut Client) {
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(told["message"], "A table of this channel has changed its columns");
    client.wait_for_event("phx_error").await;
}

#[actix_web::test]
async fn altering_a_filters_column_ends_the_channel() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!({ "event": "INSERT", "schema": "public", "table": "notes", "filter": "kind=eq.1" });
    assert_eq!(join(&mut client, entry.clone()).await["status"], "ok");
    let mut other = Client::open(&app).await;
    join(&mut other, json!({ "event": "INSERT", "schema": "public", "table": "notes" })).await;
    // After a change of type, values compare differently.
    run(&app, "alter table notes alter kind type text; insert into notes values (1, '1', 'a')").await;
    is_told_to_join_again(&mut client).await;
    assert_eq!(join(&mut client, entry.clone()).await["status"], "ok");
    run(&app, "insert into notes values (2, '1', 'b')").await;
    // On a busy machine the first row is still on its way when the channel is there again.
    let mut change = client.change().await;
    if change["data"]["record"]["id"] == 1 {
        change = client.change().await;
    }
    assert_eq!(change["data"]["record"]["id"], 2);
    run(&app, "alter table notes rename kind to sort; insert into notes values (3, '1', 'c')").await;
    is_told_to_join_again(&mut client).await;
    let told = join(&mut client, entry).await;
    let text = told["message"].as_str().expect("a text");
    assert!(told["status"] == "error" && text.ends_with("invalid column for filter kind"), "{told}");
    for id in 1..=3 {
        assert_eq!(other.change().await["data"]["record"]["id"], id, "other clients are not affected");
    }
}

#[actix_web::test]
async fn changes_before_a_rename_are_not_silently_dropped() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!({ "event": "*", "schema": "public", "table": "mine" });
    join(&mut client, entry.clone()).await;
    // When the change is checked, the key has another name than in the WAL.
    run(&app, &format!("begin; insert into mine values (1, '{ANN}'); alter table mine rename id to key; commit")).await;
    is_told_to_join_again(&mut client).await;
    // It may be notified more than once. A channel that stays gets later changes.
    for key in 2.. {
        assert!(key < 10, "no channel stays");
        join(&mut client, entry.clone()).await;
        run(&app, &format!("insert into mine values ({key}, '{ANN}')")).await;
        let told = client.wait_for(|got| ["postgres_changes", "phx_error"].contains(&got.event.as_str())).await;
        if told.event == "postgres_changes" {
            let record = &told.payload["data"]["record"];
            assert!(record["owner"] == ANN && (2..=key).any(|key| record["key"] == key), "{record}");
            break;
        }
    }
}

#[actix_web::test]
async fn columns_missing_from_the_wal_cannot_be_filtered_or_selected() {
    let app = start().await;
    run(&app, "alter publication supabase_realtime set table notes (id, body)").await;
    let mut client = Client::open(&app).await;
    for (entry, reason) in [
        (json!({ "filter": "kind=eq.1" }), "invalid column for filter kind"),
        (json!({ "filter": "twice=eq.2" }), "invalid column for filter twice"),
        (json!({ "select": ["body", "kind"] }), "invalid column for select kind"),
    ] {
        let mut entry = entry;
        for (name, value) in [("event", "*"), ("schema", "public"), ("table", "notes")] {
            entry[name] = value.into();
        }
        let told = join(&mut client, entry).await;
        assert!(told["message"].as_str().is_some_and(|text| text.ends_with(reason)), "{told}");
    }
    let entry =
        json!({ "event": "*", "schema": "public", "table": "notes", "filter": "body=eq.b", "select": ["body"] });
    assert_eq!(join(&mut client, entry).await["status"], "ok");
    run(&app, "insert into notes values (1, 1, 'b')").await;
    assert_eq!(client.change().await["data"]["record"], json!({ "id": 1, "body": "b" }));
}
