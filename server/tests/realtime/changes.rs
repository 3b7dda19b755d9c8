//! Changes of tables: recipients and content; broadcasts of the database on the same stream.

use serde_json::{Value, json};

use super::client::{Client, token, user_token};
use crate::support::TestApp;

const ANN: &str = "00000000-0000-4000-8000-000000000001";
const BEN: &str = "00000000-0000-4000-8000-000000000002";

/// A table that everybody may read, and one whose rows belong to users.
const TABLES: &str = "
    create table public.notes (id int primary key, body text, amount numeric, secret text);
    create table public.mine (id int primary key, owner uuid, body text);
    alter table public.mine enable row level security;
    create policy own on public.mine for select to authenticated using (owner = auth.uid());
    alter publication supabase_realtime add table public.notes, public.mine;";

async fn start() -> TestApp {
    let app = TestApp::logical(&[]).await;
    app.owner.batch_execute(TABLES).await.expect("tables");
    app
}

async fn run(app: &TestApp, sql: &str) {
    app.owner.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

fn wants(entries: Value) -> Value {
    json!({ "postgres_changes": entries })
}

#[actix_web::test]
async fn inserts_updates_and_deletes_are_sent_in_upstreams_format() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!({ "event": "*", "schema": "public", "table": "notes" });
    let (join_ref, answer) = client.try_join("room", wants(json!([entry])), None).await;
    let mut echoed = answer["response"]["postgres_changes"][0].clone();
    let id = echoed.as_object_mut().and_then(|entry| entry.remove("id")).expect("an id");
    assert_eq!(echoed, entry);
    // After `SUBSCRIBED`, every commit is delivered.
    run(&app, "insert into notes values (1, 'a \"b\"', 1.50, null)").await;
    let told = client.wait_for_event("system").await;
    assert_eq!(
        told.payload,
        json!({ "message": "Subscribed to PostgreSQL", "status": "ok", "extension": "postgres_changes", "channel": "room" })
    );
    assert_eq!(told.join_ref, json!(join_ref));
    let got = client.change().await;
    assert_eq!(got["ids"], json!([id]));
    let time = got["data"]["commit_timestamp"].as_str().expect("a time").to_owned();
    assert!(time.len() == 24 && time.ends_with('Z') && time.starts_with("20"), "{time}");
    let columns = json!([
        { "name": "id", "type": "int4" }, { "name": "body", "type": "text" },
        { "name": "amount", "type": "numeric" }, { "name": "secret", "type": "text" },
    ]);
    assert_eq!(
        got["data"],
        json!({
            "schema": "public", "table": "notes", "commit_timestamp": time, "type": "INSERT", "columns": columns,
            "record": { "id": 1, "body": "a \"b\"", "amount": 1.50, "secret": null }, "errors": null,
        })
    );
    run(&app, "update notes set body = 'c' where id = 1").await;
    let got = client.change().await["data"].clone();
    assert_eq!((&got["type"], &got["old_record"]), (&json!("UPDATE"), &json!({ "id": 1 })));
    assert_eq!(got["record"]["body"], "c");
    run(&app, "update notes set id = 2").await;
    let got = client.change().await["data"].clone();
    assert_eq!((&got["record"]["id"], &got["old_record"]), (&json!(2), &json!({ "id": 1 })));
    run(&app, "alter table notes replica identity full; update notes set body = 'd'; delete from notes").await;
    let got = client.change().await["data"].clone();
    assert_eq!(got["old_record"], json!({ "id": 2, "body": "c", "amount": 1.50, "secret": null }));
    let got = client.change().await["data"].clone();
    assert_eq!((&got["type"], &got["old_record"]["body"]), (&json!("DELETE"), &json!("d")));
    assert!(got.get("record").is_none());
    run(&app, "insert into notes values (3, 'x', 1, null); truncate notes").await;
    client.change().await;
    assert!(client.rest().await.is_empty(), "a truncation is not reported");
}

#[actix_web::test]
async fn rows_are_sent_to_those_who_may_select_them() {
    let app = start().await;
    let entry = json!([{ "event": "*", "schema": "public", "table": "mine" }]);
    let (mut ann, mut ben, mut anon) = (Client::open(&app).await, Client::open(&app).await, Client::open(&app).await);
    ann.join_as("a", wants(entry.clone()), Some(&user_token(ANN))).await;
    ben.join_as("a", wants(entry.clone()), Some(&user_token(BEN))).await;
    anon.join("a", wants(entry.clone())).await;
    let mut service = Client::with_key(&app, &app.service_key).await;
    service.join("a", wants(entry)).await;
    let sql = format!(
        "insert into mine values (1, '{ANN}', 'for ann');
         insert into mine values (2, '{BEN}', 'for ben');
         update mine set owner = '{BEN}' where id = 1;
         alter table mine replica identity full;
         delete from mine where id = 2;"
    );
    // In one transaction: rows are checked in their state after it.
    run(&app, &format!("begin; {sql} commit")).await;
    let told = |messages: Vec<super::client::Got>| {
        let changes = messages.into_iter().filter(|got| got.event == "postgres_changes");
        changes
            .map(|got| {
                let data = &got.payload["data"];
                let id = data["record"]["id"].as_i64().or(data["old_record"]["id"].as_i64());
                (data["type"].as_str().expect("a type").to_owned(), id.expect("an id"))
            })
            .collect::<Vec<_>>()
    };
    let expected =
        |changes: &[(&str, i64)]| changes.iter().map(|(kind, id)| ((*kind).to_owned(), *id)).collect::<Vec<_>>();
    service.wait_for(|got| got.payload["data"]["type"] == "DELETE").await;
    assert_eq!(
        told(service.rest().await),
        expected(&[("INSERT", 1), ("UPDATE", 1)]),
        "row 2 is deleted before it is checked"
    );
    let deleted = ben.wait_for(|got| got.payload["data"]["type"] == "DELETE").await;
    // The WAL has the whole old row, but with policies only its key is sent.
    assert_eq!(deleted.payload["data"]["old_record"], json!({ "id": 2 }));
    assert_eq!(told(ben.rest().await), expected(&[("INSERT", 1), ("UPDATE", 1)]));
    assert_eq!(told(ann.rest().await), expected(&[("DELETE", 2)]), "it is Ben's now");
    assert_eq!(told(anon.rest().await), expected(&[("DELETE", 2)]));
    // Enabled after the table was first used.
    run(&app, "alter table notes enable row level security").await;
}

#[actix_web::test]
async fn enabling_row_level_security_takes_effect_at_once() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    client.join("a", wants(json!([{ "event": "INSERT", "schema": "public", "table": "notes" }]))).await;
    let mut service = Client::with_key(&app, &app.service_key).await;
    service.join("s", wants(json!([{ "event": "INSERT", "schema": "public", "table": "notes" }]))).await;
    run(&app, "insert into notes values (1, 'open', 0, null)").await;
    client.change().await;
    run(
        &app,
        "begin; insert into notes values (2, 'closed', 0, null); alter table notes enable row level security; commit",
    )
    .await;
    run(&app, "insert into notes values (3, 'closed', 0, null)").await;
    // Rows are checked in their current state, so nothing may be reopened before both changes were checked.
    while service.change().await["data"]["record"]["id"] != 3 {}
    run(&app, "alter table notes disable row level security; insert into notes values (4, 'open', 0, null)").await;
    assert_eq!(client.change().await["data"]["record"]["id"], 4);
    // The same for privileges on the table and on columns.
    run(&app, "revoke select on notes from anon; insert into notes values (5, 'closed', 0, null)").await;
    let got = client.change().await["data"].clone();
    assert_eq!((&got["errors"], &got["record"]), (&json!(["Error 401: Unauthorized"]), &json!({})));
    run(&app, "grant select (id, body) on notes to anon; insert into notes values (6, 'part', 0, 'hidden')").await;
    let got = client.change().await["data"].clone();
    assert_eq!(got["record"], json!({ "id": 6, "body": "part" }));
    assert_eq!(got["columns"].as_array().map(Vec::len), Some(2));
    run(&app, "revoke usage on schema public from anon, public; insert into notes values (7, 'closed', 0, null)").await;
    for got in client.rest().await {
        assert!(!got.payload.to_string().contains("closed"), "{got:?}");
    }
}

#[actix_web::test]
async fn filters_and_selected_columns_limit_what_is_sent() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let config = wants(json!([
        { "event": "INSERT", "schema": "public", "table": "notes", "filter": "id=gt.10", "select": ["body"] },
        { "event": "*", "schema": "public", "table": "notes", "filter": "amount=eq.2,body=like.a%" },
        { "event": "*", "schema": "public", "table": "notes", "filter": "body=in.(x,\"y,z\")" },
        { "event": "DELETE", "schema": "public", "table": "notes", "filter": "body=eq.x" },
        { "event": "INSERT", "schema": "public", "table": "notes", "filter": "secret=is.null,body=not.eq.a" },
    ]));
    let (_, answer) = client.try_join("room", config, None).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let ids: Vec<Value> = answer["response"]["postgres_changes"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["id"].clone())
        .collect();
    run(
        &app,
        "insert into notes values (1, 'a', 3, 's'), (2, 'ab', 2.00, 's'), (11, 'q', null, 's'), (12, 'y,z', 2, 's'),
                                  (13, 'c', 2, null), (14, null, 2, null)",
    )
    .await;
    let mut told: Vec<(i64, Value, usize)> = Vec::new();
    for got in {
        run(&app, "insert into notes values (99, 'x', 0, 's')").await;
        client.wait_for(|got| got.payload["data"]["record"]["id"] == 99 && got.payload["ids"] == json!([ids[2]])).await;
        client.rest().await
    } {
        if got.event == "postgres_changes" {
            let record = got.payload["data"]["record"].as_object().expect("a record").clone();
            told.push((record["id"].as_i64().expect("an id"), got.payload["ids"].clone(), record.len()));
        }
    }
    told.sort_by_key(|(id, ids, _)| (*id, ids.to_string()));
    let mut expected = vec![
        (2, json!([ids[1]]), 4),
        (11, json!([ids[0]]), 2),
        (12, json!([ids[0]]), 2),
        (12, json!([ids[2]]), 4),
        (13, json!([ids[0]]), 2),
        (13, json!([ids[4]]), 4),
        (14, json!([ids[0]]), 2),
        (99, json!([ids[0]]), 2),
    ];
    expected.sort_by_key(|(id, ids, _)| (*id, ids.to_string()));
    assert_eq!(told, expected);
    // Of a deleted row, only the replica identity is known: without FULL, its key.
    run(&app, "delete from notes where id = 99; alter table notes replica identity full").await;
    run(&app, "insert into notes values (100, 'x', 0, 's'); delete from notes where id = 100").await;
    let got = client.wait_for(|got| got.payload["data"]["type"] == "DELETE").await;
    assert_eq!(got.payload["data"]["old_record"]["id"], 100);
    assert_eq!(got.payload["ids"], json!([ids[2], ids[3]]));
}

/// Regression: all tables' values were compared as the last table's type.
#[actix_web::test]
async fn a_filter_of_several_tables_compares_each_value_as_its_columns_type() {
    let app = TestApp::logical(&[]).await;
    run(
        &app,
        "create schema shop; grant usage on schema shop to anon;
         alter default privileges in schema shop grant select on tables to anon;
         create table shop.a (id int primary key, amount numeric); create table shop.b (id int primary key, amount int);
         create table shop.c (id int primary key, amount numeric(9, 3)); create table shop.d (id int primary key, amount int8);
         alter publication supabase_realtime add table shop.a, shop.b, shop.c, shop.d",
    )
    .await;
    let mut wide = Client::open(&app).await;
    let entry = json!({ "event": "*", "schema": "shop", "table": "*", "filter": "amount=eq.1" });
    wide.join("x", wants(json!([entry]))).await;
    let told = wide.wait_for_event("system").await.payload;
    assert_eq!(told["status"], "ok", "{told}");
    // It asks the same question about the same rows.
    let mut narrow = Client::open(&app).await;
    let entry = json!({ "event": "*", "schema": "shop", "table": "a", "filter": "amount=eq.1" });
    narrow.join("x", wants(json!([entry]))).await;
    assert_eq!(narrow.wait_for_event("system").await.payload["status"], "ok");
    run(
        &app,
        "begin; insert into shop.a values (1, 1.00), (2, 1.5); insert into shop.b values (3, 1), (4, 2);
         insert into shop.c values (5, 1), (6, 2); insert into shop.d values (7, 1), (8, 2); insert into shop.a values (9, 1); commit",
    )
    .await;
    for id in [1, 3, 5, 7, 9] {
        assert_eq!(wide.change().await["data"]["record"]["id"], id);
    }
    for id in [1, 9] {
        assert_eq!(narrow.change().await["data"]["record"]["id"], id);
    }
    // A new table without the column, or of a type that none had, has no such rows.
    run(
        &app,
        "create table shop.e (id int primary key); create table shop.f (id int primary key, amount text);
         alter publication supabase_realtime add table shop.e, shop.f",
    )
    .await;
    run(&app, "insert into shop.e values (10); insert into shop.f values (11, '1')").await;
    assert!(wide.rest().await.is_empty());
    // One that was meant and has another type now means that the filter has to be checked again.
    run(&app, "alter table shop.d alter amount type text").await;
    run(&app, "insert into shop.d values (13, '1')").await;
    let told = wide.wait_for_event("system").await.payload;
    assert_eq!(told["message"], "A table of this channel has changed its columns");
    run(&app, "insert into shop.a values (12, 1)").await;
    assert_eq!(narrow.change().await["data"]["record"]["id"], 12, "others are not affected");
}

#[actix_web::test]
async fn a_value_that_cannot_be_compared_does_not_hide_others() {
    let app = TestApp::logical(&[]).await;
    run(
        &app,
        "create domain public.price as numeric; create table public.goods (id int primary key, cost price);
         alter publication supabase_realtime add table goods",
    )
    .await;
    let mut client = Client::open(&app).await;
    let entry = json!({ "event": "*", "schema": "public", "table": "goods", "filter": "cost=gt.1.5" });
    client.join("x", wants(json!([entry]))).await;
    assert_eq!(client.wait_for_event("system").await.payload["status"], "ok");
    // When the rows are compared, the second one's value is no longer valid.
    run(
        &app,
        "begin; insert into goods values (1, 2), (2, -2), (3, 1), (4, 3);
         alter domain price add constraint positive check (value > 0) not valid; commit",
    )
    .await;
    for id in [1, 4] {
        assert_eq!(client.change().await["data"]["record"]["id"], id);
    }
    assert!(client.rest().await.is_empty());
}

#[actix_web::test]
async fn invalid_subscriptions_get_upstreams_errors() {
    let app = start().await;
    run(&app, "create table public.unpublished (id int primary key)").await;
    run(&app, "revoke select (secret) on notes from anon; revoke select on notes from anon; grant select (id, body) on notes to anon").await;
    let mut client = Client::open(&app).await;
    for (entry, expected) in [
        (
            json!({ "event": "*", "schema": "public", "table": "unpublished" }),
            "Unable to subscribe to changes with given parameters. Please check Realtime is enabled for the given \
             connect parameters: [event: *, schema: public, table: unpublished, filters: [], select: nil]",
        ),
        (
            json!({ "event": "*", "schema": "public", "table": "notes", "filter": "secret=eq.1" }),
            "Unable to subscribe to changes with given parameters. An exception happened so please check your connect \
             parameters: [event: *, schema: public, table: notes, filters: [{\"secret\", \"eq\", \"1\", false}], \
             select: nil]. Exception: ERROR P0001 (raise_exception) invalid column for filter secret",
        ),
        (
            json!({ "event": "*", "schema": "public", "table": "notes", "filter": "id=eq.x" }),
            "ERROR 22P02 (invalid_text_representation) invalid input syntax for type integer: \"x\"",
        ),
        (
            json!({ "event": "*", "schema": "public", "table": "notes", "filter": "id=like.x" }),
            "ERROR P0001 (raise_exception) operator like requires a text-compatible column type, got int4",
        ),
        (
            json!({ "event": "*", "schema": "public", "table": "notes", "filter": "body=match.(" }),
            "invalid regular expression for match filter: ",
        ),
        (
            json!({ "event": "*", "schema": "public", "table": "notes", "filter": "id=foo.hey" }),
            "Error parsing `filter` params: [\"foo\", \"hey\"]",
        ),
        (json!({ "event": "*" }), "No subscription params provided."),
    ] {
        client.join("room", wants(json!([entry]))).await;
        let told = client.wait_for_event("system").await.payload;
        assert_eq!((&told["status"], &told["extension"]), (&json!("error"), &json!("postgres_changes")), "{entry}");
        let message = told["message"].as_str().expect("a text");
        assert!(message.contains(expected), "{entry}: {message}");
    }
}

#[actix_web::test]
async fn a_join_that_waits_for_its_subscription_fails_with_it() {
    let app = start().await;
    run(&app, "create table public.unpublished (id int primary key)").await;
    let mut client = Client::open(&app).await;
    let waiting = |entries: Value| {
        let mut config = wants(entries);
        config["postgres_changes_options"] = json!({ "wait": true, "timeout": 10_000 });
        config
    };
    let good = json!({ "event": "*", "schema": "public", "table": "notes" });
    let mut witness = Client::open(&app).await;
    witness.join("other", wants(json!([good]))).await;
    for (entry, expected) in [
        (
            json!({ "event": "*", "schema": "public", "table": "unpublished" }),
            "RealtimeDisabledForConfiguration: Unable to subscribe to changes with given parameters. Please check Realtime is \
             enabled for the given connect parameters: [event: *, schema: public, table: unpublished, filters: [], select: nil]",
        ),
        (
            json!({ "event": "*", "schema": "public", "table": "notes", "filter": "id=foo.hey" }),
            "RealtimeDisabledForConfiguration: Error parsing `filter` params: [\"foo\", \"hey\"]",
        ),
    ] {
        let (join_ref, answer) = client.try_join("room", waiting(json!([good, entry])), None).await;
        assert_eq!(answer, json!({ "status": "error", "response": { "reason": expected } }), "{entry}");
        // There is no channel: neither for messages nor for the valid entry.
        let message = json!({ "type": "broadcast", "event": "e", "payload": {} });
        client.push(&join_ref, "realtime:room", "broadcast", message).await;
    }
    run(&app, "insert into notes (id, body) values (1, 'missed')").await;
    assert_eq!(witness.change().await["data"]["record"]["id"], 1);
    // A join that succeeds is answered as others, and without entries there is nothing to wait for.
    client.join("empty", waiting(json!([]))).await;
    client.join("room", waiting(json!([good]))).await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!((&told["status"], &told["message"]), (&json!("ok"), &json!("Subscribed to PostgreSQL")));
    run(&app, "insert into notes (id, body) values (2, 'seen')").await;
    let change = client.wait_for_event("postgres_changes").await.payload;
    assert_eq!(change["data"]["record"]["id"], 2, "{change}");
}

#[actix_web::test]
async fn every_type_category_is_sent_as_postgresqls_json() {
    let app = start().await;
    run(
        &app,
        "create type public.mood as enum ('ok', 'so so');
         create domain public.positive as int check (value > 0);
         create type public.pair as (a int, b text);
         create table public.kinds (
           id uuid primary key, flag bool, small int2, big int8, real4 float4, real8 float8, exact numeric(20, 5),
           name varchar(20), padded char(4), doc json, docb jsonb, at timestamptz, local timestamp, day date, hour time,
           span interval, ip inet, feel mood, plus positive, both_ pair, numbers int[], words text[], moods mood[],
           pairs pair[], between_ int4range, bits bit(3), ts tsvector, cash money, point_ point, nothing text,
           deep int[][], times timestamptz[], dom positive[]);
         alter publication supabase_realtime add table kinds;
         insert into kinds values (
           '11111111-2222-4333-8444-555555555555', true, -2, 9007199254740993, 1.5, 'NaN', 12.30000,
           'Ünï \"q\"', 'ab', '{\"a\" : [1, null]}', '{\"b\": {\"c\": \"\\u00e9\"}}', '2026-08-21 12:00:00.123456+02',
           '2026-08-21 12:00:00', '2026-08-21', '12:34:56', '1 day 02:00', '10.0.0.1/8', 'so so', 7, row(1, 'x, \"y\"'),
           '{1,NULL,3}', array['a,b', 'NULL', null, 'c\"d'], '{ok,\"so so\"}', array[row(1, 'p')::pair, row(null, '')::pair],
           '[1,5)', B'101', 'a:1 b:2', 12.5, '(1,2)', null, '{{1,2},{3,4}}',
           array['2026-01-01 00:00:00+00'::timestamptz, 'infinity'], '{1,2}');",
    )
    .await;
    let mut client = Client::open(&app).await;
    client.join("room", wants(json!([{ "event": "*", "schema": "public", "table": "kinds" }]))).await;
    run(&app, "update kinds set small = small").await;
    let got = client.change().await["data"].clone();
    let row = app
        .owner
        .query_one("select to_jsonb(k)::text, array(select c.typname::text from pg_attribute a join pg_type c on c.oid = a.atttypid where a.attrelid = 'kinds'::regclass and a.attnum > 0 order by a.attnum) from kinds k", &[])
        .await
        .expect("a row");
    let expected: Value = serde_json::from_str(row.get(0)).expect("JSON");
    assert_eq!(got["record"], expected);
    let as_numbers = expected;
    let types: Vec<_> = got["columns"].as_array().expect("columns").iter().map(|c| c["type"].clone()).collect();
    let expected: Vec<String> = row.get(1);
    assert_eq!(types, expected);
    // Large numbers as strings for clients that ask for it.
    let mut careful = Client::open(&app).await;
    let entry = json!([{ "event": "*", "schema": "public", "table": "kinds", "numbers": "text" }]);
    careful.join("room", wants(entry)).await;
    run(&app, "update kinds set small = small").await;
    let got = careful.change().await["data"].clone();
    assert_eq!(
        (&got["record"]["big"], &got["record"]["exact"], &got["record"]["small"]),
        (&json!("9007199254740993"), &json!("12.30000"), &json!(-2))
    );
    assert_eq!(
        (&got["columns"][3], &got["columns"][2]["type"]),
        (&json!({ "name": "big", "type": "text" }), &json!("int2"))
    );
    assert_eq!(client.change().await["data"]["record"], as_numbers);
    // bytea is hex without its prefix.
    run(&app, "alter table kinds add raw bytea; update kinds set raw = '\\x0102'").await;
    assert_eq!(client.change().await["data"]["record"]["raw"], "0102");
}

#[actix_web::test]
async fn unchanged_large_values_and_large_rows_are_sent() {
    let app = TestApp::logical(&[("FERROBASE_REALTIME_MAX_RECORD_KB", "100")]).await;
    run(&app, TABLES).await;
    run(
        &app,
        "alter table notes alter body set storage external; insert into notes values (1, repeat('x', 50000), 1, null)",
    )
    .await;
    let mut client = Client::open(&app).await;
    client.join("room", wants(json!([{ "event": "UPDATE", "schema": "public", "table": "notes" }]))).await;
    run(&app, "update notes set amount = 2").await;
    let got = client.change().await["data"].clone();
    assert_eq!(got["record"], json!({ "id": 1, "amount": 2, "secret": null }), "the log does not hold it");
    run(&app, "alter table notes replica identity full; update notes set amount = 3").await;
    let got = client.change().await["data"].clone();
    assert_eq!(got["record"]["body"].as_str().map(str::len), Some(50000), "taken from the old row");
    run(&app, "update notes set secret = repeat('y', 60000)").await;
    let got = client.change().await["data"].clone();
    assert_eq!(got["errors"], json!(["Error 413: Payload Too Large"]));
    assert_eq!(got["record"], json!({ "id": 1, "amount": 3 }));
}

#[actix_web::test]
async fn partitions_keyless_tables_and_changed_publications_work() {
    let app = start().await;
    run(
        &app,
        "create table public.parted (id int primary key, body text) partition by range (id);
         create table public.parted_low partition of parted for values from (0) to (100);
         create table public.keyless (body text);
         alter publication supabase_realtime add table parted, keyless;",
    )
    .await;
    let mut client = Client::open(&app).await;
    client.join("room", wants(json!([{ "event": "*", "schema": "public" }]))).await;
    run(&app, "insert into parted values (1, 'a')").await;
    assert_eq!(client.change().await["data"]["table"], "parted_low");
    run(&app, "insert into keyless values ('k')").await;
    let got = client.change().await["data"].clone();
    assert_eq!(got["errors"], json!(["Error 400: Bad Request, no primary key"]));
    assert!(!got.to_string().contains("\"k\""), "{got}");
    // Published and unpublished while the stream runs.
    run(&app, "create table public.later (id int primary key); insert into later values (1)").await;
    run(&app, "alter publication supabase_realtime add table later; insert into later values (2)").await;
    assert_eq!(client.change().await["data"]["record"], json!({ "id": 2 }));
    run(&app, "alter publication supabase_realtime drop table later; insert into later values (3)").await;
    run(&app, "insert into notes values (1, 'n', 0, null)").await;
    assert_eq!(client.change().await["data"]["table"], "notes");
    // Dropped and recreated, as a dashboard's migration does.
    run(&app, "begin; drop publication supabase_realtime; create publication supabase_realtime; commit; alter publication supabase_realtime add table notes").await;
    run(&app, "insert into notes values (2, 'n', 0, null)").await;
    assert_eq!(client.change().await["data"]["record"]["id"], 2);
    // Column lists and row filters of the publication.
    run(&app, "alter publication supabase_realtime set table notes (id, body) where (id > 10)").await;
    run(&app, "insert into notes values (3, 'n', 0, 's'), (11, 'n', 0, 's')").await;
    assert_eq!(client.change().await["data"]["record"], json!({ "id": 11, "body": "n" }));
}

#[actix_web::test]
async fn unpublishing_a_table_ends_its_channels() {
    let app = start().await;
    let (mut client, mut other) = (Client::open(&app).await, Client::open(&app).await);
    let entry = json!([{ "event": "*", "schema": "public", "table": "notes" }]);
    let join_ref = client.join("room", wants(entry.clone())).await;
    client.wait_for_event("system").await;
    other.join("room", wants(json!([{ "event": "*", "schema": "public", "table": "mine" }]))).await;
    other.wait_for_event("system").await;
    run(&app, "alter publication supabase_realtime drop table notes").await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(
        (&told["status"], &told["message"]),
        (&json!("error"), &json!("A table of this channel is not published any more"))
    );
    assert_eq!(client.wait_for_event("phx_error").await.join_ref, json!(join_ref));
    client.join("room", wants(entry)).await;
    let told = client.wait_for_event("system").await.payload;
    assert!(told["message"].as_str().expect("a text").starts_with("Unable to subscribe to changes"), "{told}");
    assert!(other.rest().await.is_empty(), "its table is still there");
}

#[actix_web::test]
async fn channels_refused_without_a_stream_rejoin_once_there_is_one() {
    let app = start().await;
    let drop = "drop publication supabase_realtime; drop publication supabase_realtime_messages_publication";
    run(&app, drop).await;
    let mut client = Client::open(&app).await;
    let entry = json!([{ "event": "*", "schema": "public", "table": "notes" }]);
    client.join("room", wants(entry.clone())).await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(told["message"], "Realtime cannot follow the database: publication supabase_realtime does not exist");
    run(&app, "create publication supabase_realtime for table notes").await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(told["message"], "Realtime follows the database now");
    client.wait_for_event("phx_error").await;
    client.join("room", wants(entry)).await;
    assert_eq!(client.wait_for_event("system").await.payload["status"], "ok");
    run(&app, "insert into notes values (1, 'n', 0, null)").await;
    assert_eq!(client.change().await["data"]["record"]["id"], 1);
}

#[actix_web::test]
async fn a_new_token_changes_the_checked_claims() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!([{ "event": "*", "schema": "public", "table": "mine" }]);
    let join_ref = client.join_as("a", wants(entry), Some(&user_token(ANN))).await;
    client.wait_for_event("system").await;
    run(&app, &format!("insert into mine values (1, '{ANN}', 'a'), (2, '{BEN}', 'b')")).await;
    assert_eq!(client.change().await["data"]["record"]["id"], 1);
    client.push(&join_ref, "realtime:a", "access_token", json!({ "access_token": user_token(BEN) })).await;
    client.wait_for_event("system").await;
    run(&app, &format!("insert into mine values (3, '{ANN}', 'a'), (4, '{BEN}', 'b')")).await;
    assert_eq!(client.change().await["data"]["record"]["id"], 4);
    assert!(client.rest().await.is_empty());
}

#[actix_web::test]
async fn many_claims_take_one_round_trip_and_a_failing_policy_affects_no_other() {
    let app = start().await;
    // A claim that is not a uuid makes auth.uid() fail, but only for its owner.
    let mut broken = Client::open(&app).await;
    let entry = json!([{ "event": "INSERT", "schema": "public", "table": "mine" }]);
    let exp = chrono::Utc::now().timestamp() + 60;
    let bad = token(json!({ "role": "authenticated", "sub": "no uuid", "exp": exp }));
    broken.join_as("a", wants(entry.clone()), Some(&bad)).await;
    let mut client = Client::open(&app).await;
    for n in 0..40 {
        let subject = if n == 7 { ANN.to_owned() } else { format!("00000000-0000-4000-9000-0000000000{n:02}") };
        client.join_as(&format!("c{n}"), wants(entry.clone()), Some(&user_token(&subject))).await;
    }
    run(&app, &format!("insert into mine values (1, '{ANN}', 'a')")).await;
    client.change().await;
    let trips = |text: String| {
        let line = text
            .lines()
            .find(|line| line.starts_with("ferrobase_realtime_visibility_round_trips_total"))
            .map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).expect("a figure")
    };
    let before = trips(app.realtime.metrics());
    run(&app, &format!("insert into mine values (2, '{ANN}', 'a')")).await;
    let got = client.change().await;
    assert_eq!(got["data"]["record"]["id"], 2);
    assert_eq!(trips(app.realtime.metrics()) - before, 1);
    let told: Vec<_> = client.rest().await.into_iter().filter(|got| got.event == "postgres_changes").collect();
    assert!(told.is_empty(), "only Ann's channel");
    assert!(broken.rest().await.iter().all(|got| got.event != "postgres_changes"));
}

#[actix_web::test]
async fn the_database_sends_broadcasts_at_commit() {
    let app = start().await;
    let mut public = Client::open(&app).await;
    let mut private = Client::with_key(&app, &app.service_key).await;
    public.join("room", json!({ "broadcast": { "replication_ready": true } })).await;
    assert_eq!(public.wait_for_event("system").await.payload["message"], "Replication connection established");
    private.join("room", json!({ "private": true })).await;
    run(&app, "begin; select realtime.send('{\"a\": 1}', 'e', 'room', false); select realtime.send('{\"b\": 2}', 'p', 'room'); rollback").await;
    run(&app, "select realtime.send('{\"a\": 1}', 'e', 'room', false); select realtime.send('{\"b\": 2, \"id\": \"x\"}', 'p', 'room')").await;
    let got = public.wait_for_event("broadcast").await.payload;
    assert_eq!((&got["event"], &got["payload"]["a"]), (&json!("e"), &json!(1)));
    assert_eq!(got["meta"]["id"], got["payload"]["id"]);
    let got = private.wait_for_event("broadcast").await.payload;
    assert_eq!((&got["event"], &got["payload"]), (&json!("p"), &json!({ "b": 2, "id": "x" })));
    run(&app, "select realtime.send_binary('\\x00ff', 'raw', 'room', false)").await;
    assert_eq!(public.wait_for_event("broadcast").await.bytes, Some(vec![0, 255]));
    // From a trigger.
    run(
        &app,
        "create function public.tell() returns trigger language plpgsql security definer as $$
         begin
           perform realtime.broadcast_changes('notes:' || new.id, tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
           return null;
         end $$;
         create trigger tell after insert on notes for each row execute function tell();",
    )
    .await;
    private.join("notes:5", json!({ "private": true })).await;
    run(&app, "insert into notes values (5, 'five', 0, null)").await;
    let got = private.wait_for_event("broadcast").await.payload;
    assert_eq!(got["event"], "INSERT");
    assert_eq!((&got["payload"]["record"]["body"], &got["payload"]["old_record"]), (&json!("five"), &Value::Null));
    assert!(public.rest().await.is_empty());
    // Replayed oldest first, and not sent again live.
    let mut late = Client::with_key(&app, &app.service_key).await;
    late.join("room", json!({ "private": true, "broadcast": { "replay": { "since": 0, "limit": 10 } } })).await;
    let got = late.wait_for_event("broadcast").await.payload;
    assert_eq!((&got["event"], &got["meta"]["replayed"], &got["payload"]["b"]), (&json!("p"), &json!(true), &json!(2)));
    let config = json!({ "broadcast": { "replay": { "since": 0 } } });
    let (_, answer) = late.try_join("x", config, None).await;
    assert_eq!(answer["response"]["reason"], "UnableToReplayMessages: Replay is not allowed for public channels");
    let config = json!({ "private": true, "broadcast": { "replay": { "since": 0, "limit": 26 } } });
    let (_, answer) = late.try_join("x", config, None).await;
    assert_eq!(answer["response"]["reason"], "UnableToReplayMessages: Replay params are not valid");
}

#[actix_web::test]
async fn a_lost_stream_makes_all_clients_rejoin_the_next_one() {
    let app = start().await;
    let mut client = Client::open(&app).await;
    let entry = json!([{ "event": "INSERT", "schema": "public", "table": "notes" }]);
    let join_ref = client.join("room", wants(entry.clone())).await;
    client.wait_for_event("system").await;
    run(&app, "select pg_terminate_backend(active_pid) from pg_replication_slots where database = current_database() and active_pid is not null").await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(
        (&told["status"], &told["message"]),
        (&json!("error"), &json!("The connection to the database was lost"))
    );
    assert_eq!(client.wait_for_event("phx_error").await.join_ref, json!(join_ref));
    client.join("room", wants(entry)).await;
    run(&app, "insert into notes values (1, 'after', 0, null)").await;
    assert_eq!(client.change().await["data"]["record"]["id"], 1);
    // Slots are removed with their streams.
    app.realtime.stop();
    let slots = "select count(*) from pg_replication_slots where database = current_database()";
    for _ in 0..100 {
        if app.owner.query_one(slots, &[]).await.expect("a row").get::<_, i64>(0) == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("a slot is left");
}

#[actix_web::test]
async fn without_logical_wal_the_error_names_the_setting() {
    // The other cluster of the tests has wal_level minimal.
    let app = TestApp::start().await;
    run(&app, TABLES).await;
    let mut client = Client::open(&app).await;
    client.join("room", wants(json!([{ "event": "*", "schema": "public", "table": "notes" }]))).await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!((&told["status"], &told["extension"]), (&json!("error"), &json!("postgres_changes")));
    assert!(told["message"].as_str().expect("a text").contains("wal_level"), "{told}");
}

#[actix_web::test]
async fn the_oldest_clients_subscribe_by_topic() {
    let app = start().await;
    let mut client = Client::with(&app, &app.anon_key, "1.0.0").await;
    let topic = "realtime:public:notes:id=eq.2";
    let payload = json!({ "user_token": app.anon_key });
    let text = json!({ "topic": topic, "event": "phx_join", "payload": payload, "ref": "1" });
    client.send_text(&text.to_string()).await;
    assert_eq!(client.reply("1").await["status"], "ok");
    run(&app, "insert into notes values (1, 'one', 0, null), (2, 'two', 0, null)").await;
    let got = client.wait_for_event("INSERT").await;
    assert_eq!((got.topic.as_str(), &got.payload["record"]["body"]), (topic, &json!("two")));
}
