//! Private channels: policies on `realtime.messages` decide who may read and write.

use serde_json::{Value, json};

use super::client::{Client, token, user_token};
use crate::support::TestApp;

const ANN: &str = "00000000-0000-4000-8000-000000000001";
const BEN: &str = "00000000-0000-4000-8000-000000000002";

/// Members of a room may read it; some may write too.
const RULES: &str = "
    create table public.members (room text, person uuid, writes boolean, present boolean);
    create policy reads on realtime.messages for select to authenticated using (
      exists (select from public.members m where m.room = realtime.topic() and m.person = auth.uid()
              and (messages.extension = 'broadcast' or m.present)));
    create policy writes on realtime.messages for insert to authenticated with check (
      exists (select from public.members m where m.room = realtime.topic() and m.person = auth.uid()
              and case messages.extension when 'broadcast' then m.writes else m.present end));
    insert into public.members values
      ('room', '00000000-0000-4000-8000-000000000001', true, true),
      ('room', '00000000-0000-4000-8000-000000000002', false, false);";

fn private() -> Value {
    json!({ "private": true, "broadcast": { "ack": true, "self": true }, "presence": { "enabled": true, "key": "k" } })
}

fn message(event: &str) -> Value {
    json!({ "type": "broadcast", "event": event, "payload": {} })
}

/// How many checks of policies wait for the lock of their test.
async fn checks_waiting(app: &TestApp) -> i64 {
    let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                   and database = (select oid from pg_database where datname = current_database())";
    app.owner.query_one(waiting, &[]).await.expect("a row").get(0)
}

/// A slow policy or filter of one address kept the connections from everybody's changes.
#[actix_web::test]
async fn an_address_has_two_checks_of_joins_at_a_time() {
    let app = TestApp::start().await;
    let rule = "create function public.slow() returns boolean language plpgsql security definer as
                $$ begin perform pg_advisory_xact_lock_shared(77); return true; end $$;
                create policy slow on realtime.messages for select to anon using (public.slow())";
    app.owner.batch_execute(rule).await.expect("a policy");
    app.owner.batch_execute("select pg_advisory_lock(77)").await.expect("held");
    let mut clients = Vec::new();
    for n in 0..5 {
        let mut client = Client::open(&app).await;
        client.send_text(&format!(r#"["1","1","realtime:r{n}","phx_join",{{"config":{{"private":true}}}}]"#)).await;
        clients.push(client);
    }
    crate::support::valve::until("two wait", async || checks_waiting(&app).await == 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(checks_waiting(&app).await, 2);
    // A channel that needs no check does not wait.
    Client::open(&app).await.join("open", json!({})).await;
    app.owner.batch_execute("select pg_advisory_unlock(77)").await.expect("released");
    for client in &mut clients {
        assert_eq!(client.reply("1").await["status"], "ok");
    }
}

#[actix_web::test]
async fn private_broadcasts_by_http_wait_for_the_turns_of_their_address() {
    let app = TestApp::start().await;
    let rule = "create function public.slow() returns boolean language plpgsql security definer as
                $$ begin perform pg_advisory_xact_lock_shared(77); return true; end $$;
                create policy slow on realtime.messages for insert to anon with check (public.slow())";
    app.owner.batch_execute(rule).await.expect("a policy");
    app.owner.batch_execute("select pg_advisory_lock(77)").await.expect("held");
    let post = |host: u8, path: &str, body: Value| {
        let client = reqwest::Client::builder().local_address(std::net::IpAddr::from([127, 0, 0, host])).build();
        let request = client.expect("a client").post(format!("{}/realtime/v1/api/broadcast{path}", app.base));
        let request = request.header("apikey", &app.anon_key).json(&body);
        tokio::spawn(async move { request.send().await.expect("an answer").status().as_u16() })
    };
    let batch = json!({ "messages": [{ "topic": "room", "event": "e", "payload": {}, "private": true }] });
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(post(1, "/room/events/e?private=true&persist=true", json!({})));
        answers.push(post(1, "", batch.clone()));
    }
    crate::support::valve::until("two wait", async || checks_waiting(&app).await == 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(checks_waiting(&app).await, 2);
    // Another address does not wait for them, nor do public messages.
    answers.push(post(2, "/room/events/e?private=true", json!({})));
    crate::support::valve::until("a third waits", async || checks_waiting(&app).await == 3).await;
    assert_eq!(post(1, "/room/events/e", json!({})).await.expect("an answer"), 202);
    app.owner.batch_execute("select pg_advisory_unlock(77)").await.expect("released");
    for answer in answers {
        assert_eq!(answer.await.expect("an answer"), 202);
    }
}

#[actix_web::test]
async fn policies_decide_who_joins_and_writes() {
    let app = TestApp::start().await;
    app.owner.batch_execute(RULES).await.expect("rules");
    let mut client = Client::open(&app).await;
    let refused = "Unauthorized: You do not have permissions to read from this Channel topic: ";
    let (_, answer) = client.try_join("room", private(), None).await;
    assert_eq!(answer["response"]["reason"], format!("{refused}room"), "anon");
    let ann = user_token(ANN);
    let (_, answer) = client.try_join("elsewhere", private(), Some(&ann)).await;
    assert_eq!(answer["response"]["reason"], format!("{refused}elsewhere"));
    let ann_ref = client.join_as("room", private(), Some(&ann)).await;
    client.wait_for_event("presence_state").await;
    assert_eq!(client.ask(&ann_ref, "realtime:room", "broadcast", message("a")).await["status"], "ok");
    client.wait_for_event("broadcast").await;
    let track = json!({ "event": "track", "payload": {} });
    assert_eq!(client.ask(&ann_ref, "realtime:room", "presence", track.clone()).await["status"], "ok");

    let mut other = Client::open(&app).await;
    let ben_ref = other.join_as("room", private(), Some(&user_token(BEN))).await;
    let answer = other.ask(&ben_ref, "realtime:room", "broadcast", message("b")).await;
    let told = "Unauthorized: You do not have permissions to write to this Channel topic: room";
    assert_eq!(answer, json!({ "status": "error", "response": { "reason": told, "error": "unauthorized" } }));
    assert_eq!(
        other.ask(&ben_ref, "realtime:room", "presence", track).await,
        json!({ "status": "error", "response": {} })
    );
    client.ask(&ann_ref, "realtime:room", "broadcast", message("c")).await;
    assert_eq!(other.wait_for_event("broadcast").await.payload["event"], "c");
    assert!(other.rest().await.is_empty(), "no presence without the right to read it");
    assert_eq!(client.wait_for_event("broadcast").await.payload["event"], "c");
    assert_eq!(
        app.owner.query_one("select count(*) from realtime.messages", &[]).await.expect("a row").get::<_, i64>(0),
        0
    );
}

#[actix_web::test]
async fn public_and_private_channels_of_one_name_are_separate() {
    let app = TestApp::start().await;
    let mut public = Client::open(&app).await;
    let mut private_one = Client::with_key(&app, &app.service_key).await;
    let public_ref = public.join("room", json!({ "presence": { "enabled": true } })).await;
    let private_ref = private_one.join("room", private()).await;
    private_one.wait_for_event("presence_state").await;
    public.wait_for_event("presence_state").await;
    private_one.ask(&private_ref, "realtime:room", "broadcast", message("secret")).await;
    private_one.ask(&private_ref, "realtime:room", "presence", json!({ "event": "track", "payload": {} })).await;
    public.push(&public_ref, "realtime:room", "broadcast", message("forged")).await;
    assert!(public.rest().await.is_empty());
    let got: Vec<_> = private_one.rest().await.into_iter().map(|got| got.payload["event"].clone()).collect();
    assert_eq!(got, [json!("secret"), Value::Null], "its own message and diff");
}

#[actix_web::test]
async fn permissions_are_checked_again_when_the_token_changes() {
    let app = TestApp::start().await;
    app.owner.batch_execute(RULES).await.expect("rules");
    let mut client = Client::open(&app).await;
    let join_ref = client.join_as("room", private(), Some(&user_token(BEN))).await;
    assert_eq!(client.ask(&join_ref, "realtime:room", "broadcast", message("a")).await["status"], "error");
    // Allowed in the meantime, but cached until the token changes.
    app.owner.batch_execute("update public.members set writes = true").await.expect("update");
    assert_eq!(client.ask(&join_ref, "realtime:room", "broadcast", message("b")).await["status"], "error");
    let exp = chrono::Utc::now().timestamp() + 1800;
    let renewed = token(json!({ "role": "authenticated", "sub": BEN, "exp": exp }));
    client.push(&join_ref, "realtime:room", "access_token", json!({ "access_token": renewed })).await;
    assert_eq!(client.ask(&join_ref, "realtime:room", "broadcast", message("c")).await["status"], "ok");
    // Revoked with the next token.
    app.owner.batch_execute("delete from public.members").await.expect("delete");
    client.push(&join_ref, "realtime:room", "access_token", json!({ "access_token": user_token(ANN) })).await;
    let told = client.wait_for_event("system").await.payload["message"].clone();
    assert_eq!(told, "You do not have permissions to read from this Channel topic: room");
    client.wait_for_event("phx_close").await;
}

#[actix_web::test]
async fn an_unreachable_database_during_a_token_change_allows_rejoining() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "create function public.ask() returns boolean language plpgsql as
               $$ begin if auth.uid() = '00000000-0000-4000-8000-000000000002' then
                 raise exception 'canceled' using errcode = '57014'; end if; return true; end $$;
             create policy reads on realtime.messages for select to authenticated using (public.ask())",
        )
        .await
        .expect("rules");
    let mut client = Client::open(&app).await;
    let join_ref = client.join_as("room", private(), Some(&user_token(ANN))).await;
    client.push(&join_ref, "realtime:room", "access_token", json!({ "access_token": user_token(BEN) })).await;
    let told = client.wait_for_event("system").await.payload["message"].clone();
    assert_eq!(told, "Query was cancelled, please try again");
    // Clients rejoin on this event, but not on phx_close.
    assert_eq!(client.wait_for_event("phx_error").await.join_ref, json!(join_ref));
}

#[actix_web::test]
async fn a_failing_policy_admits_nobody() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "create policy reads on realtime.messages for select using (1 / 0 = 1);
             create policy writes on realtime.messages for insert with check (true)",
        )
        .await
        .expect("rules");
    let mut client = Client::open(&app).await;
    let (_, answer) = client.try_join("room", private(), None).await;
    let told = answer["response"]["reason"].as_str().expect("a reason");
    assert!(told.starts_with("Unauthorized: "), "{told}");
    // A role that the login may not switch to.
    let exp = chrono::Utc::now().timestamp() + 60;
    for role in ["postgres", "no_such_role", "supabase_realtime_admin"] {
        let (_, answer) = client.try_join("room", private(), Some(&token(json!({ "role": role, "exp": exp })))).await;
        assert!(
            answer["response"]["reason"].as_str().expect("a reason").starts_with("Unauthorized: "),
            "{role}: {answer}"
        );
    }
}
