//! `/storage/v1` where the reference's answer is not the obvious one: owners, metadata, names, types, headers.

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

async fn app() -> TestApp {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    app
}

fn object(path: &str) -> String {
    format!("/storage/v1/object/{path}")
}

async fn upload(actor: &Actor<'_>, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let request = actor.request(Method::POST, &object(path)).body(body.to_owned());
    send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

async fn info(actor: &Actor<'_>, path: &str) -> Value {
    actor.get(&object(&format!("info/{path}"))).await.body
}

fn refusal(reply: &Reply) -> (u16, &str, &str, &str, &str) {
    let text = |name: &str| reply.body[name].as_str().unwrap_or("");
    (reply.status, text("statusCode"), text("error"), text("code"), text("message"))
}

const NO_KEY: (u16, &str, &str, &str, &str) = (400, "404", "not_found", "NoSuchKey", "Object not found");
const NO_NAME: (u16, &str, &str, &str, &str) =
    (400, "400", "Invalid Input", "InvalidBucketName", "Bucket name invalid");

/// Regression: the object became nobody's, and its owner lost it.
#[actix_web::test]
async fn an_object_that_a_server_overwrites_stays_its_owners() {
    let app = app().await;
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    assert_eq!(upload(&alice.actor, "private/a", &[("content-type", "text/plain")], "one").await.status, 200);
    let over = [("content-type", "text/plain"), ("x-upsert", "true")];
    assert_eq!(upload(&app.service(), "private/a", &over, "two").await.status, 200);
    assert_eq!(alice.actor.get(&object("private/a")).await.body, "two");
    let owner = async || {
        let row = app.owner.query_one("select owner::text, owner_id from storage.objects where name = 'a'", &[]).await;
        let row = row.expect("a row");
        (row.get::<_, Option<String>>(0), row.get::<_, Option<String>>(1))
    };
    assert_eq!(owner().await, (Some(alice.id.clone()), Some(alice.id.clone())));

    app.service()
        .post("/storage/v1/object/copy", json!({ "bucketId": "private", "sourceKey": "a", "destinationKey": "b" }))
        .await;
    let copy = app.service().request(Method::POST, "/storage/v1/object/copy").header("x-upsert", "true");
    let back = copy.json(&json!({ "bucketId": "private", "sourceKey": "b", "destinationKey": "a" }));
    assert_eq!(send(back).await.status, 200);
    assert_eq!(owner().await.1, Some(alice.id.clone()));

    // Another person who may overwrite it becomes its owner.
    app.owner
        .batch_execute("create policy all_may on storage.objects for all to authenticated using (name = 'a') with check (name = 'a')")
        .await
        .expect("a policy");
    assert_eq!(upload(&bob.actor, "private/a", &over, "three").await.status, 200);
    assert_eq!(owner().await, (Some(bob.id.clone()), Some(bob.id.clone())));
}

/// Regression: such a copy erased the user metadata of its destination, and a new one had `{}`.
#[actix_web::test]
async fn a_copy_that_brings_no_user_metadata_leaves_it_as_it_is() {
    let app = app().await;
    let service = app.service();
    upload(&service, "private/a", &[("content-type", "text/plain"), ("x-metadata", "eyJhIjoxfQ==")], "x").await;
    let copy = async |to: &str| {
        let request = service.request(Method::POST, "/storage/v1/object/copy").header("x-upsert", "true");
        send(request.json(&json!({
            "bucketId": "private", "sourceKey": "a", "destinationKey": to,
            "copyMetadata": false, "metadata": { "cacheControl": "max-age=9" },
        })))
        .await
        .status
    };
    assert_eq!((copy("a").await, copy("b").await), (200, 200));
    let same = info(&service, "private/a").await;
    assert_eq!((&same["metadata"], &same["cache_control"]), (&json!({ "a": 1 }), &json!("max-age=9")));
    assert_eq!(info(&service, "private/b").await["metadata"], Value::Null);
    let row = app.owner.query_one("select user_metadata is null from storage.objects where name = 'b'", &[]).await;
    assert!(row.expect("a row").get::<_, bool>(0));

    // A source without any replaces what its destination has.
    let over = service.request(Method::POST, "/storage/v1/object/copy").header("x-upsert", "true");
    let over = over.json(&json!({ "bucketId": "private", "sourceKey": "b", "destinationKey": "a" }));
    assert_eq!(send(over).await.status, 200);
    assert_eq!(info(&service, "private/a").await["metadata"], json!({}));

    // Written without padding, as some clients do.
    upload(&service, "private/c", &[("content-type", "text/plain"), ("x-metadata", "eyJhIjoxfQ")], "x").await;
    assert_eq!(info(&service, "private/c").await["metadata"], json!({ "a": 1 }));

    let missing = service.post("/storage/v1/object/copy", json!({})).await;
    assert_eq!(missing.body["message"], "body must have required property 'sourceKey'");
    let missing = service.post("/storage/v1/object/move", json!({})).await;
    assert_eq!(missing.body["message"], "body must have required property 'bucketId'");
}

/// Regression: an empty key was an unknown route, and an impossible bucket name a missing bucket.
#[actix_web::test]
async fn empty_keys_and_impossible_bucket_names_have_errors_of_their_own() {
    let app = app().await;
    let service = app.service();
    let empty = (400, "400", "InvalidKey", "InvalidKey", "Invalid key: ");
    assert_eq!(refusal(&upload(&service, "private/", &[], "x").await), empty);
    assert_eq!(refusal(&service.get(&object("private/")).await), empty);
    assert_eq!(refusal(&service.post(&object("sign/private/"), json!({ "expiresIn": 60 })).await), empty);
    assert_eq!(refusal(&service.delete(&object("private/")).await), NO_KEY);

    let long = "b".repeat(101);
    for bucket in ["b%5B1%5D", "%C3%A4", &long] {
        assert_eq!(refusal(&upload(&service, &format!("{bucket}/a"), &[], "x").await), NO_NAME, "{bucket}");
        assert_eq!(refusal(&service.delete(&object(&format!("{bucket}/a"))).await), NO_NAME, "{bucket}");
        let listed = service.post(&object(&format!("list/{bucket}")), json!({ "prefix": "" })).await;
        assert_eq!(refusal(&listed), NO_NAME, "{bucket}");
        let listed = service.post(&object(&format!("list-v2/{bucket}")), json!({})).await;
        assert_eq!(refusal(&listed), NO_NAME, "{bucket}");
        let signed = service.post(&object(&format!("sign/{bucket}")), json!({ "expiresIn": 9, "paths": ["a"] })).await;
        assert_eq!(refusal(&signed), NO_NAME, "{bucket}");
        let read = service.get(&object(&format!("{bucket}/a"))).await;
        assert_eq!(read.body["code"], "NoSuchBucket", "{bucket}");
    }
    let moved = json!({ "bucketId": "b[1]", "sourceKey": "a", "destinationKey": "b" });
    assert_eq!(refusal(&service.post("/storage/v1/object/move", moved).await), NO_NAME);

    // Nobody learns from a refusal which buckets exist.
    let related = (400, "404", "InvalidRequest", "InvalidRequest", "The related resource does not exist");
    let denied = (400, "403", "Unauthorized", "AccessDenied", "new row violates row-level security policy");
    upload(&service, "private/a", &[], "x").await;
    let signed = "/storage/v1/object/upload/sign/none/a";
    assert_eq!(refusal(&service.post(signed, json!({})).await), related);
    assert_eq!(refusal(&app.anon().post(signed, json!({})).await), denied);
    let copied = json!({ "bucketId": "private", "sourceKey": "a", "destinationBucket": "none", "destinationKey": "b" });
    assert_eq!(refusal(&service.post("/storage/v1/object/copy", copied).await), related);

    let finite = "body/file_size_limit must pass \"finite\" keyword validation";
    let pattern =
        "body/file_size_limit must match pattern \"^[0-9]+(?:\\.[0-9]+)?(?:[gG][bB]|[mM][bB]|[kK][bB]|[bB])$\"";
    let any = "body/file_size_limit must match a schema in anyOf";
    for (limit, faults) in [
        (json!("abc"), vec!["body/file_size_limit must be integer", finite, pattern, any]),
        (json!(-1), vec!["body/file_size_limit must be >= 0", pattern, any]),
        (json!([5]), vec!["body/file_size_limit must be integer", pattern, any]),
        (json!(1.5), vec!["body/file_size_limit must be integer", pattern, any]),
        (json!({}), vec!["body/file_size_limit must be integer", finite, "body/file_size_limit must be string", any]),
    ] {
        let refused = service.post("/storage/v1/bucket", json!({ "name": "b", "file_size_limit": limit })).await;
        assert_eq!(refused.body["message"], faults.join(", "), "{limit}");
    }
    let unread = service.request(Method::POST, "/storage/v1/bucket").header("content-type", "application/vnd.a+json");
    assert_eq!(send(unread.body("{\"name\":\"b\"}")).await.body["message"], "body must be object");

    let analytics = service.post("/storage/v1/bucket", json!({ "name": "lake", "type": "ANALYTICS" })).await;
    let message = "The feature Iceberg buckets are not enabled for this tenant is not enabled for this resource";
    assert_eq!(refusal(&analytics), (400, "409", "FeatureNotEnabled", "FeatureNotEnabled", message));
    let unknown = service.get("/storage/v1/bucket/a/b/c?d=e").await;
    let message = "Route GET:/bucket/a/b/c?d=e not found";
    assert_eq!(refusal(&unknown), (404, "404", "Not Found", "InvalidRequest", message));
    let none = service.put("/storage/v1/bucket/private", json!({})).await;
    let message = "body must have required property 'public', body must have required property 'file_size_limit', \
                   body must have required property 'allowed_mime_types', body must match a schema in anyOf";
    assert_eq!(refusal(&none), (400, "400", "Error", "InvalidRequest", message));
}

/// Regression: a row whose key could not be written today could not be removed alone.
#[actix_web::test]
async fn objects_with_keys_of_other_servers_can_be_removed() {
    let app = app().await;
    app.owner
        .batch_execute("insert into storage.objects (bucket_id, name) values ('open', 'ä[1].txt'), ('open', '../up')")
        .await
        .expect("rows");
    for key in ["%C3%A4%5B1%5D.txt", "..%2Fup"] {
        let gone = app.service().delete(&object(&format!("open/{key}"))).await;
        assert_eq!((gone.status, &gone.body), (200, &json!({ "message": "Successfully deleted" })), "{key}");
        assert_eq!(refusal(&app.service().delete(&object(&format!("open/{key}"))).await), NO_KEY, "{key}");
    }
}

/// Regression: a part's parameters were kept in its type, and a file without a name was a field.
#[actix_web::test]
async fn the_file_of_a_form_has_a_bare_type() {
    let app = app().await;
    let service = app.service();
    let form = async |head: &str| {
        let body = format!("--X\r\nContent-Disposition: form-data; {head}\r\n\r\nhi\r\n--X--\r\n");
        let sent = [("content-type", "multipart/form-data; boundary=X"), ("x-upsert", "true")];
        let stored = upload(&service, "open/f", &sent, &body).await;
        match stored.status {
            200 => info(&service, "open/f").await["content_type"].as_str().expect("a type").to_owned(),
            _ => stored.body["message"].as_str().expect("a message").to_owned(),
        }
    };
    assert_eq!(form("name=\"\"; filename=\"f\"\r\nContent-Type: Text/Plain;charset=UTF-8").await, "text/plain");
    assert_eq!(form("name=\"\"; filename=\"f\"").await, "text/plain");
    assert_eq!(form("name=\"file\"\r\nContent-Type: application/octet-stream").await, "application/octet-stream");
    assert_eq!(form("name=\"\"; filename=\"f\"\r\nContent-Type: weird").await, "weird");
    assert_eq!(form("name=\"file\"").await, "No content provided");
    // Further fields than are read do not hide the file.
    let many: String =
        (0..12).map(|n| format!("name=\"k{n}\"\r\n\r\nv\r\n--X\r\nContent-Disposition: form-data; ")).collect();
    assert_eq!(form(&format!("{many}name=\"\"; filename=\"f\"\r\nContent-Type: a/b")).await, "a/b");
}

/// Regression: the coding was forgotten, and browsers showed the encoded bytes.
#[actix_web::test]
async fn an_object_is_sent_with_the_coding_that_it_was_stored_in() {
    let app = app().await;
    let (alice, service) = (app.user("alice@test.example").await, app.service());
    let gzip = [("content-type", "text/plain"), ("content-encoding", "gzip"), ("x-upsert", "true")];
    let form = async |path: &str, coding: &str| {
        let part =
            |name: &str, value: &str| format!("--X\r\nContent-Disposition: form-data; {name}\r\n\r\n{value}\r\n");
        let body = [part("name=\"contentEncoding\"", coding), part("name=\"\"; filename=\"f\"", "coded")].concat();
        let sent = [("content-type", "multipart/form-data; boundary=X"), ("x-upsert", "true")];
        upload(&alice.actor, path, &sent, &format!("{body}--X--\r\n")).await
    };
    assert_eq!(upload(&alice.actor, "private/raw", &gzip, "coded").await.status, 200);
    assert_eq!(form("private/form", "gzip").await.status, 200);
    assert_eq!(upload(&service, "open/raw", &gzip, "coded").await.status, 200);
    let signed = alice.actor.post(&object("upload/sign/private/link"), json!({})).await;
    let link = format!("/storage/v1{}", signed.body["url"].as_str().expect("a link"));
    let put = app.plain(Method::PUT, &link).header("content-type", "text/plain").header("content-encoding", "gzip");
    assert_eq!(send(put.body("coded")).await.status, 200);
    let change = alice.actor.request(Method::PUT, &object("private/changed")).header("content-type", "text/plain");
    assert_eq!(send(change.header("content-encoding", "br").body("coded")).await.status, 200);

    let link = alice.actor.post(&object("sign/private/raw"), json!({ "expiresIn": 60 })).await;
    let link = link.body["signedURL"].as_str().expect("a link").to_owned();
    let addresses = [
        (object("private/raw"), "gzip"),
        (object("authenticated/private/form"), "gzip"),
        (object("private/link"), "gzip"),
        (object("private/changed"), "br"),
        (object("public/open/raw"), "gzip"),
        (format!("/storage/v1{link}"), "gzip"),
    ];
    for (path, coding) in &addresses {
        let whole = alice.actor.get(path).await;
        assert_eq!(
            (whole.status, whole.header("content-encoding"), &whole.body),
            (200, *coding, &json!("coded")),
            "{path}"
        );
        let head = send(alice.actor.request(Method::HEAD, path)).await;
        assert_eq!((head.header("content-encoding"), head.header("content-length")), (*coding, "5"), "{path}");
        let part = send(alice.actor.request(Method::GET, path).header("range", "bytes=1-2")).await;
        assert_eq!((part.status, part.header("content-encoding"), &part.body), (206, *coding, &json!("od")), "{path}");
        let beyond = send(alice.actor.request(Method::GET, path).header("range", "bytes=9-")).await;
        assert_eq!((beyond.status, beyond.header("content-encoding")), (416, ""), "{path}");
        let same = alice.actor.request(Method::GET, path).header("if-none-match", whole.header("etag"));
        assert_eq!(send(same).await.status, 304, "{path}");
    }
    let told = alice.actor.get(&object("info/private/raw")).await;
    assert_eq!((&told.body["content_encoding"], told.header("content-encoding")), (&json!("gzip"), ""));
    let listed = alice.actor.post(&object("list/private"), json!({ "prefix": "" })).await;
    assert_eq!(listed.body[1]["metadata"]["contentEncoding"], "gzip", "{}", listed.body);

    // A copy and a move keep it, unless the copy changes it.
    let coding = async |name: &str| info(&alice.actor, &format!("private/{name}")).await["content_encoding"].clone();
    let copy = async |to: &str, metadata: Option<Value>| {
        let mut body = json!({ "bucketId": "private", "sourceKey": "raw", "destinationKey": to });
        if let Some(metadata) = metadata {
            body["copyMetadata"] = json!(false);
            body["metadata"] = metadata;
        }
        alice.actor.post(&object("copy"), body).await
    };
    for (to, metadata, expected) in [
        ("same", None, json!("gzip")),
        ("kept", Some(json!({ "mimetype": "text/plain" })), json!("gzip")),
        ("other", Some(json!({ "contentEncoding": "br" })), json!("br")),
        ("cleared", Some(json!({ "contentEncoding": "" })), Value::Null),
    ] {
        assert_eq!(copy(to, metadata).await.status, 200, "{to}");
        assert_eq!(coding(to).await, expected, "{to}");
    }
    assert_eq!(alice.actor.get(&object("private/cleared")).await.header("content-encoding"), "");
    let moved = json!({ "bucketId": "private", "sourceKey": "same", "destinationKey": "moved" });
    assert_eq!(alice.actor.post(&object("move"), moved).await.status, 200);
    assert_eq!(coding("moved").await, "gzip");

    // An upload without one has none, and one that does not fit into a header is refused.
    upload(&alice.actor, "private/raw", &[("content-type", "text/plain"), ("x-upsert", "true")], "plain").await;
    assert_eq!(coding("raw").await, Value::Null);
    let row = app.owner.query_one(
        "select metadata ? 'contentEncoding' from storage.objects where name = 'raw' and bucket_id = 'private'",
        &[],
    );
    assert!(!row.await.expect("a row").get::<_, bool>(0));
    let refused = (400, "400", "InvalidRequest", "InvalidRequest", "Invalid contentEncoding");
    assert_eq!(refusal(&form("private/form", "a b").await), refused);
    assert_eq!(refusal(&copy("bad", Some(json!({ "contentEncoding": "a\nb" }))).await), refused);
    app.owner
        .batch_execute("update storage.objects set metadata = jsonb_set(metadata, '{contentEncoding}', '\"a b\"') where name = 'form'")
        .await
        .expect("a row");
    let odd = alice.actor.get(&object("private/form")).await;
    assert_eq!((odd.status, odd.header("content-encoding")), (200, ""));
}

#[actix_web::test]
async fn a_malformed_content_type_is_refused_whatever_the_bucket_allows() {
    let app = app().await;
    let service = app.service();
    let refused = (400, "415", "invalid_mime_type", "InvalidMimeType", "Invalid Content-Type header");
    for kind in ["png", "image/\tpng", "image/"] {
        assert_eq!(refusal(&upload(&service, "open/a", &[("content-type", kind)], "x").await), refused, "{kind}");
    }
    assert_eq!(upload(&service, "open/a", &[("content-type", "image/png;")], "x").await.status, 200);
    assert_eq!(upload(&service, "open/b", &[("content-type", "")], "x").await.status, 200);
    assert_eq!(info(&service, "open/b").await["content_type"], "application/octet-stream");
}

/// Regression: an empty `Cache-Control` was sent; `info` had no tag.
#[actix_web::test]
async fn answers_about_an_object_have_its_headers() {
    let app = app().await;
    let service = app.service();
    upload(&service, "open/a", &[("cache-control", "")], "x").await;
    let read = send(app.plain(Method::GET, &object("public/open/a"))).await;
    assert_eq!((read.status, read.header("cache-control")), (200, "no-cache"));
    app.owner.execute("update storage.objects set metadata = metadata - 'cacheControl'", &[]).await.expect("a row");
    let read = send(app.plain(Method::GET, &object("public/open/a"))).await;
    assert_eq!((read.status, read.headers.get("cache-control")), (200, None));
    upload(&service, "open/b", &[("cache-control", "max-age=5")], "x").await;
    for (method, path) in [(Method::GET, "info/open/b"), (Method::HEAD, "info/open/b"), (Method::HEAD, "open/b")] {
        let told = send(service.request(method.clone(), &object(path))).await;
        let headers = ["etag", "cache-control"].map(|name| told.header(name).to_owned());
        assert_eq!(
            headers,
            ["\"9dd4e461268c8034f5c8564e155c67a6\"", "max-age=5"].map(str::to_owned),
            "{method} {path}"
        );
        assert!(!told.header("last-modified").is_empty(), "{method} {path}");
    }
    let told = service.get(&object("info/open/b")).await;
    assert_eq!(told.header("content-type"), "application/json");

    let head = send(service.request(Method::HEAD, "/storage/v1/bucket/open")).await;
    assert_eq!(head.status, 200);
    let forged = send(app.plain(Method::GET, "/storage/v1/bucket").bearer_auth("e30.e30.x")).await;
    assert_eq!(refusal(&forged), (400, "403", "Unauthorized", "AccessDenied", "signature verification failed"));
    for token in ["", "Bearer ", "Basic x", "a.b"] {
        let refused = send(app.plain(Method::GET, "/storage/v1/bucket").header("authorization", token)).await;
        let invalid = (400, "403", "Unauthorized", "AccessDenied", "Invalid Compact JWS");
        assert_eq!(refusal(&refused), invalid, "{token}");
    }
    let unsigned = send(app.plain(Method::GET, "/storage/v1/render/image/authenticated/open/a?width=1")).await;
    assert_eq!(refusal(&unsigned), (400, "403", "Unauthorized", "AccessDenied", "Invalid Compact JWS"));
    let sign = async |transform: Value| {
        let signed = service.post(&object("sign/open/a"), json!({ "expiresIn": 60, "transform": transform })).await;
        signed.body["signedURL"].as_str().expect("a link").to_owned()
    };
    assert!(sign(json!({ "format": "origin" })).await.starts_with("/object/sign/"));
    assert!(sign(json!({ "format": "origin", "width": 1 })).await.starts_with("/render/image/sign/"));
}

/// Regression: the question mark in such a link ended its path.
#[actix_web::test]
async fn links_to_names_with_question_marks_open_them() {
    let app = app().await;
    let service = app.service();
    upload(&service, "private/why%3F.txt", &[], "because").await;
    let one = service.post(&object("sign/private/why%3F.txt"), json!({ "expiresIn": 60 })).await;
    let many = service.post(&object("sign/private"), json!({ "expiresIn": 60, "paths": ["why?.txt"] })).await;
    for link in [&one.body["signedURL"], &many.body[0]["signedURL"]] {
        let link = link.as_str().expect("a link");
        assert!(link.starts_with("/object/sign/private/why%3F.txt?token="), "{link}");
        let read = send(app.plain(Method::GET, &format!("/storage/v1{link}"))).await;
        assert_eq!((read.status, &read.body), (200, &json!("because")));
    }
    let link = service.post(&object("upload/sign/private/how%3F.txt"), json!({})).await;
    let link = link.body["url"].as_str().expect("a link").to_owned();
    assert_eq!(send(app.plain(Method::PUT, &format!("/storage/v1{link}")).body("so")).await.status, 200);
    assert_eq!(service.get(&object("private/how%3F.txt")).await.body, "so");
}
