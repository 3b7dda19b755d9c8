//! `/storage/v1` keeps no former versions of objects: what clients that name versions are told.

use crate::support::{Actor, Reply, TestApp, send};
use reqwest::Method;
use serde_json::{Value, json};

/// Objects belong to whoever `owner_id` names.
const SCHEMA: &str = "
    insert into storage.buckets (id, name, public) values ('private', 'private', false), ('open', 'open', true);
    create policy own on storage.objects for all to authenticated
      using (bucket_id = 'private' and owner_id = auth.uid()::text)
      with check (bucket_id = 'private' and owner_id = auth.uid()::text);
";
const NO_KEY: (u16, &str, &str, &str, &str) = (400, "404", "not_found", "NoSuchKey", "Object not found");
/// A version that no object has.
const FORMER: &str = "00000000-0000-0000-0000-000000000000";

async fn app() -> TestApp {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    app
}

async fn upload(actor: &Actor<'_>, path: &str, body: &str) {
    let request = actor.request(Method::POST, &format!("/storage/v1/object/{path}")).header("x-upsert", "true");
    assert_eq!(send(request.header("content-type", "text/plain").body(body.to_owned())).await.status, 200);
}

/// The version of an object.
async fn version(actor: &Actor<'_>, path: &str) -> String {
    let info = actor.get(&format!("/storage/v1/object/info/{path}")).await;
    info.body["version"].as_str().expect("a version").to_owned()
}

async fn post(actor: &Actor<'_>, path: &str, body: Value) -> Reply {
    actor.post(&format!("/storage/v1/object/{path}"), body).await
}

async fn remove(actor: &Actor<'_>, prefixes: Value) -> Vec<String> {
    let request = actor.request(Method::DELETE, "/storage/v1/object/private");
    let reply = send(request.json(&json!({ "prefixes": prefixes }))).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let rows = reply.body.as_array().expect("rows").clone();
    rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

fn refusal(reply: &Reply) -> (u16, &str, &str, &str, &str) {
    let text = |name: &str| reply.body[name].as_str().unwrap_or("");
    (reply.status, text("statusCode"), text("error"), text("code"), text("message"))
}

#[actix_web::test]
async fn a_read_of_a_former_version_never_gets_the_current_bytes() {
    let app = app().await;
    let alice = app.user("alice@test.example").await;
    let service = app.service();
    upload(&alice.actor, "private/a", "one").await;
    let former = version(&alice.actor, "private/a").await;
    upload(&alice.actor, "private/a", "two").await;
    let current = version(&alice.actor, "private/a").await;
    assert_ne!(former, current);
    upload(&service, "open/a", "three").await;
    let open = version(&service, "open/a").await;
    let routes = [
        ("private/a", &current, json!("two")),
        ("authenticated/private/a", &current, json!("two")),
        ("public/open/a", &open, json!("three")),
        ("open/a", &open, json!("three")),
    ];
    for (path, current, body) in &routes {
        let read = async |id: &str| alice.actor.get(&format!("/storage/v1/object/{path}?versionId={id}")).await;
        let reply = read(current).await;
        assert_eq!((reply.status, &reply.body), (200, body), "{path}");
        for other in [former.as_str(), FORMER, "", "null"] {
            assert_eq!(refusal(&read(other).await), NO_KEY, "{path} {other:?}");
        }
        let head = async |id: &str| {
            send(alice.actor.request(Method::HEAD, &format!("/storage/v1/object/{path}?versionId={id}"))).await.status
        };
        assert_eq!((head(current).await, head(&former).await), (200, 400), "{path}");
    }
    for path in ["info/private/a", "info/authenticated/private/a", "info/public/open/a"] {
        let id = if path.ends_with("open/a") { &open } else { &current };
        let read = async |id: &str| alice.actor.get(&format!("/storage/v1/object/{path}?versionId={id}")).await;
        assert_eq!(read(id).await.body["version"], json!(id), "{path}");
        assert_eq!(refusal(&read(&former).await), NO_KEY, "{path}");
    }
    let twice = alice.actor.get("/storage/v1/object/private/a?versionId=a&versionId=b").await;
    assert_eq!(twice.body["message"], "querystring/versionId must be string");
}

#[actix_web::test]
async fn a_link_signed_for_a_version_opens_only_that_one() {
    let app = app().await;
    let alice = app.user("alice@test.example").await;
    upload(&alice.actor, "private/a", "one").await;
    let first = version(&alice.actor, "private/a").await;
    let sign = async |id: &str| post(&alice.actor, "sign/private/a", json!({ "expiresIn": 60, "versionId": id })).await;
    let link = sign(&first).await.body["signedURL"].as_str().expect("a link").to_owned();
    let any = post(&alice.actor, "sign/private/a", json!({ "expiresIn": 60 })).await;
    let any = any.body["signedURL"].as_str().expect("a link").to_owned();
    let anon = app.anon();
    let open = async |link: &str| anon.get(&format!("/storage/v1{link}")).await;
    assert_eq!(open(&link).await.body, "one");
    assert_eq!(refusal(&open(&format!("{any}&versionId={FORMER}")).await), NO_KEY);
    upload(&alice.actor, "private/a", "two").await;
    assert_eq!(refusal(&open(&link).await), NO_KEY);
    assert_eq!(refusal(&open(&format!("{link}&versionId=")).await), NO_KEY);
    assert_eq!(open(&any).await.body, "two");
    assert_eq!(refusal(&sign(&first).await), NO_KEY);
}

#[actix_web::test]
async fn copies_and_moves_of_a_former_version_leave_everything_as_it_is() {
    let app = app().await;
    let alice = app.user("alice@test.example").await;
    upload(&alice.actor, "private/a", "one").await;
    let route = async |what: &str, from: &str, to: &str, id: &str| {
        let body = json!({ "bucketId": "private", "sourceKey": from, "destinationKey": to, "sourceVersionId": id });
        post(&alice.actor, what, body).await
    };
    for what in ["copy", "move"] {
        assert_eq!(refusal(&route(what, "a", "b", FORMER).await), NO_KEY, "{what}");
    }
    let listed = post(&alice.actor, "list/private", json!({ "prefix": "" })).await;
    assert_eq!((&listed.body[0]["name"], listed.body.as_array().map(Vec::len)), (&json!("a"), Some(1)));
    let id = version(&alice.actor, "private/a").await;
    assert_eq!(route("copy", "a", "b", &id).await.status, 200);
    assert_eq!(route("move", "a", "c", &id).await.status, 200);
    for path in ["b", "c"] {
        assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{path}")).await.body, "one");
    }
}

#[actix_web::test]
async fn a_removal_of_a_former_version_removes_nothing() {
    let app = app().await;
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    for name in ["a", "b", "c"] {
        upload(&alice.actor, &format!("private/{name}"), name).await;
    }
    let (a, b) = (version(&alice.actor, "private/a").await, version(&alice.actor, "private/b").await);
    // Neither the version of another object, nor somebody else's object.
    let meant =
        json!([{ "path": "a", "versionId": FORMER }, { "path": "a", "versionId": b }, { "path": "d", "versionId": a }]);
    assert!(remove(&alice.actor, meant).await.is_empty());
    assert!(remove(&bob.actor, json!([{ "path": "a", "versionId": a }])).await.is_empty());
    let one = async |actor: &Actor<'_>, name: &str, id: &str| {
        actor.delete(&format!("/storage/v1/object/private/{name}?versionId={id}")).await
    };
    assert_eq!(refusal(&one(&alice.actor, "a", FORMER).await), NO_KEY);
    assert_eq!(refusal(&one(&alice.actor, "a", "%00").await), NO_KEY);
    assert_eq!(alice.actor.get("/storage/v1/object/private/a").await.body, "a");

    let meant = json!(["c", { "path": "a", "versionId": a, "other": 1 }, { "path": "b", "versionId": FORMER }]);
    assert_eq!(remove(&alice.actor, meant).await, ["c", "a"]);
    assert_eq!(refusal(&alice.actor.get("/storage/v1/object/private/a").await), NO_KEY);
    assert_eq!(one(&alice.actor, "b", &b).await.status, 200);
    assert_eq!(refusal(&alice.actor.get("/storage/v1/object/private/b").await), NO_KEY);

    let request = alice.actor.request(Method::DELETE, "/storage/v1/object/private");
    let reply = send(request.json(&json!({ "prefixes": [{ "path": "a" }] }))).await;
    let message = "body/prefixes/0 must be string, body/prefixes/0 must have required property 'versionId', \
                   body/prefixes/0 must match a schema in anyOf";
    assert_eq!(refusal(&reply), (400, "400", "Error", "InvalidRequest", message));
}

#[actix_web::test]
async fn versioning_and_rules_for_former_versions_are_refused() {
    let app = app().await;
    let service = app.service();
    let off = |feature: &str| format!("The feature {feature} is not enabled for this resource");
    let (versioning, lifecycle) = (off("object versioning"), off("object lifecycles"));
    let code = "FeatureNotEnabled";
    for status in ["ENABLED", "SUSPENDED"] {
        let made = service.post("/storage/v1/bucket", json!({ "name": "b", "versioning_status": status })).await;
        assert_eq!(refusal(&made), (400, "409", code, code, versioning.as_str()));
        for body in [json!({ "versioning_status": status }), json!({ "versioning_status": status, "public": true })] {
            let changed = service.put("/storage/v1/bucket/private", body).await;
            assert_eq!(refusal(&changed), (400, "409", code, code, versioning.as_str()));
        }
    }
    assert_eq!(service.get("/storage/v1/bucket/b").await.body["code"], "NoSuchBucket");
    assert_eq!(service.get("/storage/v1/bucket/private").await.body["public"], false);
    let unknown = service.post("/storage/v1/bucket", json!({ "name": "b", "versioning_status": "ON" })).await;
    assert_eq!(unknown.body["message"], "body/versioning_status must be equal to one of the allowed values");
    let made = service.post("/storage/v1/bucket", json!({ "name": "b", "versioning_status": "DISABLED" })).await;
    assert_eq!((made.status, &made.body), (200, &json!({ "name": "b" })));
    let changed = service.put("/storage/v1/bucket/b", json!({ "versioning_status": "DISABLED" })).await;
    assert_eq!((changed.status, &changed.body), (200, &json!({ "message": "Successfully updated" })));

    let rules = json!({ "rules": [{ "status": "Enabled", "filter": {}, "noncurrentVersionExpiration": { "noncurrentDays": 1 } }] });
    for (method, body) in [(Method::GET, None), (Method::PUT, Some(rules)), (Method::DELETE, Some(json!({})))] {
        let request = service.request(method.clone(), "/storage/v1/bucket/private/lifecycle");
        let reply = send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await;
        assert_eq!(refusal(&reply), (400, "409", code, code, lifecycle.as_str()), "{method}");
    }
    let none = service.put("/storage/v1/bucket/private/lifecycle", json!({})).await;
    assert_eq!(none.body["message"], "body must have required property 'rules'");
    let stranger = send(app.plain(Method::GET, "/storage/v1/bucket/private/lifecycle")).await;
    assert_eq!(stranger.body["message"], "headers must have required property 'authorization'");
}

#[actix_web::test]
async fn listings_find_an_exact_name_and_no_former_versions() {
    let app = app().await;
    let alice = app.user("alice@test.example").await;
    let bob = app.user("bob@test.example").await;
    for name in ["f/a.txt", "f/a.txt.bak", "f/A.txt", "f/a.txt/b"] {
        upload(&alice.actor, &format!("private/{name}"), name).await;
    }
    let list = async |actor: &Actor<'_>, body: Value| post(actor, "list/private", body).await;
    let page = async |actor: &Actor<'_>, body: Value| post(actor, "list-v2/private", body).await;
    let exact = json!({ "prefix": "f/a.txt", "exactMatch": true });
    let found = list(&alice.actor, exact.clone()).await;
    let names: Vec<&Value> = found.body.as_array().expect("entries").iter().map(|entry| &entry["name"]).collect();
    assert_eq!((names, &found.body[0]["metadata"]["size"]), (vec![&json!("f/a.txt")], &json!(7)));
    let found = page(&alice.actor, exact.clone()).await;
    assert_eq!((&found.body["hasNext"], &found.body["folders"]), (&json!(false), &json!([])));
    assert_eq!((&found.body["objects"][0]["name"], &found.body["objects"][1]), (&json!("f/a.txt"), &Value::Null));
    let fields: Vec<&String> = found.body["objects"][0].as_object().expect("an object").keys().collect();
    let plain = page(&alice.actor, json!({ "prefix": "f/a.txt.b" })).await;
    assert_eq!(fields, plain.body["objects"][0].as_object().expect("an object").keys().collect::<Vec<_>>());
    let with_delimiter = json!({ "prefix": "f/a.txt", "exactMatch": true, "with_delimiter": true });
    assert_eq!(page(&alice.actor, with_delimiter).await.body["objects"][0]["name"], "f/a.txt");

    // Neither folders, nor other people's objects, nor what the search or the offset leaves out.
    for none in [
        json!({ "prefix": "f", "exactMatch": true }),
        json!({ "prefix": "", "exactMatch": true }),
        json!({ "prefix": "f/a.txt", "exactMatch": true, "search": "bak" }),
        json!({ "prefix": "f/a.txt", "exactMatch": true, "offset": 1 }),
        json!({ "prefix": "f", "noncurrentVersions": "only" }),
        json!({ "prefix": "f", "deleteMarkers": "only", "noncurrentVersions": "include" }),
    ] {
        assert_eq!(list(&alice.actor, none.clone()).await.body, json!([]), "{none}");
    }
    assert_eq!(list(&bob.actor, exact.clone()).await.body, json!([]));
    assert_eq!(page(&bob.actor, exact).await.body["objects"], json!([]));
    let searched = json!({ "prefix": "f/a.txt", "exactMatch": true, "search": "A.T" });
    assert_eq!(list(&alice.actor, searched).await.body[0]["name"], "f/a.txt");
    for none in [json!({ "noncurrentVersions": "only" }), json!({ "deleteMarkers": "only", "limit": 1 })] {
        let found = page(&alice.actor, none.clone()).await;
        assert_eq!(found.body, json!({ "hasNext": false, "folders": [], "objects": [] }), "{none}");
    }

    // With `include` they are what there is: the current ones.
    let all = json!({ "prefix": "f", "noncurrentVersions": "include", "deleteMarkers": "include" });
    assert_eq!(list(&alice.actor, all.clone()).await.body, list(&alice.actor, json!({ "prefix": "f" })).await.body);
    let first = page(&alice.actor, json!({ "limit": 1, "noncurrentVersions": "include" })).await;
    let cursor = first.body["nextCursor"].as_str().expect("a cursor");
    let next = page(&alice.actor, json!({ "cursor": cursor, "noncurrentVersions": "include" })).await;
    assert_eq!(next.body["objects"].as_array().map(Vec::len), Some(3));
    let mixed = page(&alice.actor, json!({ "cursor": cursor, "exactMatch": true, "prefix": "f/a.txt" })).await;
    let message = "exactMatch must match the value used to obtain this continuation token (expected \"false\")";
    assert_eq!(refusal(&mixed), (400, "400", "InvalidParameter", "InvalidParameter", message));
    let unknown = list(&alice.actor, json!({ "prefix": "", "noncurrentVersions": "yes" })).await;
    assert_eq!(unknown.body["message"], "body/noncurrentVersions must be equal to one of the allowed values");
}
