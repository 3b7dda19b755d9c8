//! `/storage/v1` compared with the reference: buckets, copies, moves, listings, reads.

use crate::support::{Actor, Reply, TestApp, send};
use reqwest::Method;
use serde_json::{Value, json};

/// Objects in `private` belong to the user whose id is their first folder. `open` is public and has no owner.
const SCHEMA: &str = "
    insert into storage.buckets (id, name, public) values ('private', 'private', false), ('open', 'open', true);
    insert into storage.buckets (id, name, file_size_limit, allowed_mime_types) values ('small', 'small', 3, array['text/*']);
    create policy own on storage.objects for all to authenticated
      using (bucket_id in ('private', 'small') and (storage.foldername(name))[1] = auth.uid()::text)
      with check (bucket_id in ('private', 'small') and (storage.foldername(name))[1] = auth.uid()::text);
";

async fn upload(actor: &Actor<'_>, path: &str, mime: &str, body: &str) -> Reply {
    let path = format!("/storage/v1/object/{path}");
    send(actor.request(Method::POST, &path).header("content-type", mime).body(body.to_owned())).await
}

async fn post(actor: &Actor<'_>, path: &str, body: Value) -> Reply {
    actor.post(&format!("/storage/v1/{path}"), body).await
}

fn refusal(reply: &Reply) -> (u16, &str, &str, &str, &str) {
    let text = |name: &str| reply.body[name].as_str().unwrap_or("");
    (reply.status, text("statusCode"), text("error"), text("code"), text("message"))
}

#[actix_web::test]
async fn buckets_are_created_listed_changed_and_removed() {
    let app = TestApp::start().await;
    let service = app.service();
    let made = post(&service, "bucket", json!({ "name": "b1", "public": "true", "file_size_limit": "20MB" })).await;
    assert_eq!((made.status, &made.body), (200, &json!({ "name": "b1" })));
    let again = post(&service, "bucket", json!({ "id": "b1", "name": "b1" })).await;
    let duplicate = (400, "409", "Duplicate", "BucketAlreadyExists", "The resource already exists");
    assert_eq!(refusal(&again), duplicate);

    let shown = service.get("/storage/v1/bucket/b1").await;
    assert_eq!(shown.status, 200, "{}", shown.body);
    let fields: Vec<&String> = shown.body.as_object().expect("a bucket").keys().collect();
    let expected =
        ["id", "name", "owner", "public", "file_size_limit", "allowed_mime_types", "created_at", "updated_at"];
    assert_eq!(fields, expected);
    assert_eq!((&shown.body["owner"], &shown.body["file_size_limit"]), (&json!(""), &json!(20_000_000)));
    assert_eq!(shown.body["public"], true);

    let put = |body: Value| service.put("/storage/v1/bucket/b1", body);
    let changed = put(json!({ "public": false, "file_size_limit": "", "allowed_mime_types": ["", "image/*"] })).await;
    assert_eq!((changed.status, &changed.body), (200, &json!({ "message": "Successfully updated" })));
    let shown = service.get("/storage/v1/bucket/b1").await;
    assert_eq!(
        (&shown.body["public"], &shown.body["file_size_limit"], &shown.body["allowed_mime_types"]),
        (&json!(false), &Value::Null, &json!(["image/*"]))
    );
    put(json!({ "public": true })).await;
    assert_eq!(service.get("/storage/v1/bucket/b1").await.body["allowed_mime_types"], json!(["image/*"]));

    let listed = service.get("/storage/v1/bucket?search=1&limit=5&sortColumn=id&sortOrder=desc").await;
    assert_eq!((&listed.body[0]["id"], &listed.body[0]["type"]), (&json!("b1"), &json!("STANDARD")));
    assert!(listed.body[1].is_null());
    let old =
        service.request(Method::GET, "/storage/v1/bucket?search=b1").header("x-client-info", "supabase-py/2.17.3");
    assert!(send(old).await.body[0]["type"].is_null());

    upload(&service, "b1/a", "image/png", "x").await;
    let full = service.delete("/storage/v1/bucket/b1").await;
    let not_empty = "The bucket you tried to delete is not empty";
    assert_eq!(refusal(&full), (400, "409", "ResourceNotEmpty", "ResourceNotEmpty", not_empty));
    let emptied = post(&service, "bucket/b1/empty", json!({})).await;
    let queued = "Empty bucket has been queued. Completion may take up to an hour.";
    assert_eq!((emptied.status, &emptied.body["message"]), (200, &json!(queued)));
    let gone = service.delete("/storage/v1/bucket/b1").await;
    assert_eq!((gone.status, &gone.body), (200, &json!({ "message": "Successfully deleted" })));
    let missing = (400, "404", "Bucket not found", "NoSuchBucket", "Bucket not found");
    for reply in [service.get("/storage/v1/bucket/b1").await, service.delete("/storage/v1/bucket/b1").await] {
        assert_eq!(refusal(&reply), missing);
    }
    assert_eq!(refusal(&post(&service, "bucket/b1/empty", json!({})).await), missing);
    assert_eq!(refusal(&put(json!({ "public": true })).await), missing);
}

#[actix_web::test]
async fn invalid_buckets_get_the_references_errors() {
    let app = TestApp::start().await;
    let service = app.service();
    let invalid = |message| (400, "400", "Error", "InvalidRequest", message);
    let cases = [
        (json!({}), invalid("body must have required property 'name'")),
        (json!({ "name": "b", "public": "yes" }), invalid("body/public must be boolean")),
        (json!({ "name": "b", "type": "VECTOR" }), invalid("body/type must be equal to one of the allowed values")),
        (json!({ "name": "a/b" }), (400, "400", "Invalid Input", "InvalidBucketName", "Bucket name invalid")),
        (json!({ "name": " b" }), (400, "400", "Invalid Input", "InvalidBucketName", "Bucket name invalid")),
        (
            json!({ "name": "b", "allowed_mime_types": ["png"] }),
            (400, "415", "invalid_mime_type", "InvalidMimeType", "mime type png is not supported"),
        ),
        (
            json!({ "name": "b", "file_size_limit": "20GB" }),
            (400, "413", "Payload too large", "EntityTooLarge", "The object exceeded the maximum allowed size"),
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(refusal(&post(&service, "bucket", body.clone()).await), expected, "{body}");
    }
    let query = service.get("/storage/v1/bucket?limit=0").await;
    assert_eq!(refusal(&query), invalid("querystring/limit must be >= 1"));
    let unsigned = send(app.plain(Method::GET, "/storage/v1/bucket")).await;
    assert_eq!(refusal(&unsigned), invalid("headers must have required property 'authorization'"));
    let listing = send(app.plain(Method::POST, "/storage/v1/object/list-v2/b").json(&json!({}))).await;
    assert_eq!(refusal(&listing), (400, "403", "Unauthorized", "AccessDenied", "Invalid Compact JWS"));
}

#[actix_web::test]
async fn buckets_obey_row_level_security() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let refused = post(&alice.actor, "bucket", json!({ "name": "mine" })).await;
    let policy = "new row violates row-level security policy";
    assert_eq!(refusal(&refused), (400, "403", "Unauthorized", "AccessDenied", policy));
    assert_eq!(alice.actor.get("/storage/v1/bucket").await.body, json!([]));
    assert_eq!(alice.actor.get("/storage/v1/bucket/open").await.body["code"], "NoSuchBucket");
    assert_eq!(alice.actor.delete("/storage/v1/bucket/small").await.body["code"], "NoSuchBucket");
    let emptied = post(&alice.actor, "bucket/open/empty", json!({})).await;
    let wrong_role = (403, "403", "Unauthorized", "AccessDenied", "Access denied: Invalid role");
    assert_eq!(refusal(&emptied), wrong_role);

    app.owner
        .batch_execute(
            "create policy make on storage.buckets for insert to authenticated with check (owner_id = auth.uid()::text);
             create policy see on storage.buckets for select to authenticated using (owner_id = auth.uid()::text);
             create policy drop on storage.buckets for delete to authenticated using (name <> 'kept')",
        )
        .await
        .expect("policies");
    assert_eq!(post(&alice.actor, "bucket", json!({ "name": "mine" })).await.status, 200);
    assert_eq!(alice.actor.get("/storage/v1/bucket/mine").await.body["owner"], alice.id);
    let changed = alice.actor.put("/storage/v1/bucket/mine", json!({ "public": true })).await;
    assert_eq!(changed.body["code"], "NoSuchBucket", "no policy lets her change it");
    post(&alice.actor, "bucket", json!({ "name": "kept" })).await;
    assert_eq!(alice.actor.delete("/storage/v1/bucket/kept").await.body["code"], "NoSuchBucket");
    assert_eq!(alice.actor.delete("/storage/v1/bucket/mine").await.status, 200);
}

#[actix_web::test]
async fn copies_and_moves_work_within_and_across_buckets() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let at = |name: &str| format!("{}/{name}", alice.id);
    let upload_path = format!("private/{}", at("a.txt"));
    upload(&alice.actor, &upload_path, "text/plain", "abc").await;
    let id = alice.actor.get(&format!("/storage/v1/object/info/{upload_path}")).await.body["id"].clone();

    let ask = |from: &str, to: &str| json!({ "bucketId": "private", "sourceKey": at(from), "destinationKey": at(to) });
    let copied = post(&alice.actor, "object/copy", ask("a.txt", "b.txt")).await;
    assert_eq!(copied.status, 200, "{}", copied.body);
    assert_eq!(copied.body["Key"], format!("private/{}", at("b.txt")));
    assert_eq!((&copied.body["name"], &copied.body["metadata"]["size"]), (&json!(at("b.txt")), &json!(3)));
    assert_eq!(copied.body["Id"], copied.body["id"]);
    assert!(copied.body.get("path_tokens").is_none());
    let duplicate = post(&alice.actor, "object/copy", ask("a.txt", "b.txt")).await;
    let taken = (400, "409", "Duplicate", "KeyAlreadyExists", "The resource already exists");
    assert_eq!(refusal(&duplicate), taken);
    let over = alice.actor.request(Method::POST, "/storage/v1/object/copy").header("x-upsert", "true");
    assert_eq!(send(over.json(&ask("a.txt", "b.txt"))).await.status, 200);
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{}", at("b.txt"))).await.body, "abc");

    let mut changed = ask("a.txt", "c.md");
    changed["copyMetadata"] = json!(false);
    changed["metadata"] = json!({ "mimetype": "text/markdown", "cacheControl": "max-age=7" });
    let request = alice.actor.request(Method::POST, "/storage/v1/object/copy").header("x-metadata", "eyJhIjoxfQ==");
    assert_eq!(send(request.json(&changed)).await.status, 200);
    let info = alice.actor.get(&format!("/storage/v1/object/info/private/{}", at("c.md"))).await.body;
    assert_eq!(
        (&info["content_type"], &info["cache_control"], &info["metadata"]),
        (&json!("text/markdown"), &json!("max-age=7"), &json!({ "a": 1 }))
    );

    let moved = post(&alice.actor, "object/move", ask("a.txt", "moved.txt")).await;
    assert_eq!((moved.status, &moved.body), (200, &json!({ "message": "Successfully moved" })));
    let info = alice.actor.get(&format!("/storage/v1/object/info/private/{}", at("moved.txt"))).await.body;
    assert_eq!(info["id"], id, "the row keeps its id");
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/{upload_path}")).await.body["code"], "NoSuchKey");
    let taken = (400, "409", "Duplicate", "ResourceAlreadyExists", "The resource already exists");
    assert_eq!(refusal(&post(&alice.actor, "object/move", ask("moved.txt", "b.txt")).await), taken);

    let mut across = ask("moved.txt", "there.txt");
    across["destinationBucket"] = json!("small");
    assert_eq!(post(&alice.actor, "object/move", across).await.status, 200);
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/small/{}", at("there.txt"))).await.body, "abc");
    // The destination bucket's restrictions apply to copies too.
    upload(&alice.actor, &format!("private/{}", at("long.txt")), "text/plain", "long").await;
    let mut across = ask("long.txt", "long.txt");
    across["destinationBucket"] = json!("small");
    for verb in ["move", "copy"] {
        assert_eq!(post(&alice.actor, &format!("object/{verb}"), across.clone()).await.body["code"], "EntityTooLarge");
    }
    // What a bucket would not accept any more can still be copied in it, but not as what it does not accept.
    let set = |rules: &str| format!("update storage.buckets set {rules} where id = 'private'");
    let stricter = set("file_size_limit = 1, allowed_mime_types = array['image/*']");
    app.owner.batch_execute(&stricter).await.expect("stricter");
    assert_eq!(post(&alice.actor, "object/copy", ask("b.txt", "d.txt")).await.status, 200);
    let taken = (400, "409", "Duplicate", "KeyAlreadyExists", "The resource already exists");
    assert_eq!(refusal(&post(&alice.actor, "object/copy", ask("b.txt", "d.txt")).await), taken);
    for (kind, code) in [("text/markdown", json!("InvalidMimeType")), ("image/png", json!(null))] {
        let mut changed = ask("b.txt", "e");
        changed["copyMetadata"] = json!(false);
        changed["metadata"] = json!({ "mimetype": kind });
        assert_eq!(post(&alice.actor, "object/copy", changed).await.body["code"], code, "{kind}");
    }
    across["destinationBucket"] = json!("none");
    let nowhere = post(&alice.actor, "object/copy", across).await;
    assert_eq!(refusal(&nowhere).3, "AccessDenied", "as for a bucket that is there");
    let invalid = post(&alice.actor, "object/move", json!({ "bucketId": "private", "sourceKey": "a" })).await;
    let missing = "body must have required property 'destinationKey'";
    assert_eq!(refusal(&invalid), (400, "400", "Error", "InvalidRequest", missing));
}

/// Regression: deleting a hidden object said `Access denied`, and a missing one `Object not found`.
#[actix_web::test]
async fn hidden_objects_are_indistinguishable_from_missing_ones() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    upload(&alice.actor, &format!("private/{}/secret", alice.id), "text/plain", "x").await;
    let here = format!("{}/secret", alice.id);
    let absent = format!("{}/nothing", alice.id);
    for verb in ["copy", "move"] {
        let ask =
            |key: &str| json!({ "bucketId": "private", "sourceKey": key, "destinationKey": format!("{}/x", bob.id) });
        let (seen, none) = (
            post(&bob.actor, &format!("object/{verb}"), ask(&here)).await,
            post(&bob.actor, &format!("object/{verb}"), ask(&absent)).await,
        );
        assert_eq!((seen.status, seen.body), (none.status, none.body), "{verb}");
    }
    let delete = |key: &str| format!("/storage/v1/object/private/{key}");
    let (seen, none) = (bob.actor.delete(&delete(&here)).await, bob.actor.delete(&delete(&absent)).await);
    assert_eq!((seen.status, &seen.body), (none.status, &none.body));
    assert_eq!(refusal(&none), (400, "404", "not_found", "NoSuchKey", "Object not found"));
    assert_eq!(alice.actor.delete(&delete(&here)).await.body, json!({ "message": "Successfully deleted" }));
}

#[actix_web::test]
async fn pages_of_a_listing_have_no_gaps_in_any_order() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    for name in ["a/1", "a/2", "a.txt", "b", "c/d/e", "c/d/f", "c0", "B"] {
        upload(&service, &format!("open/x/{name}"), "text/plain", "x").await;
    }
    // An object and a folder with the same name are two entries.
    upload(&service, "open/x/a", "text/plain", "x").await;
    let expected = |delimited: bool| -> Vec<&'static str> {
        match delimited {
            true => vec!["x/B", "x/a", "x/a.txt", "x/a/", "x/b", "x/c/", "x/c0"],
            false => vec!["x/B", "x/a", "x/a.txt", "x/a/1", "x/a/2", "x/b", "x/c/d/e", "x/c/d/f", "x/c0"],
        }
    };
    for (delimited, order) in [(true, "asc"), (true, "desc"), (false, "asc"), (false, "desc")] {
        let mut names = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..20 {
            let mut ask = json!({ "prefix": "x/", "limit": 2, "with_delimiter": delimited,
                                  "sortBy": { "column": "name", "order": order } });
            if !cursor.is_null() {
                ask["cursor"] = cursor.clone();
            }
            let page = post(&service, "object/list-v2/open", ask).await.body;
            let entries = ["folders", "objects"].map(|kind| page[kind].as_array().expect("a list").clone()).concat();
            let mut entries: Vec<String> =
                entries.iter().map(|e| e["name"].as_str().expect("a name").to_owned()).collect();
            entries.sort();
            if order == "desc" {
                entries.reverse();
            }
            names.extend(entries);
            if page["hasNext"] == false {
                assert!(page.get("nextCursor").is_none());
                break;
            }
            cursor = page["nextCursor"].clone();
        }
        let mut wanted = expected(delimited);
        if order == "desc" {
            wanted.reverse();
        }
        assert_eq!(names, wanted, "{delimited} {order}");
    }
    let page = post(&service, "object/list-v2/open", json!({ "prefix": "x/c/", "with_delimiter": true })).await.body;
    assert_eq!((&page["folders"][0]["key"], &page["folders"][0]["name"]), (&json!("d"), &json!("x/c/d/")));
    let mut times = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut ask = json!({ "prefix": "x/", "limit": 2, "sortBy": { "column": "created_at", "order": "desc" } });
        if !cursor.is_null() {
            ask["cursor"] = cursor.clone();
        }
        let page = post(&service, "object/list-v2/open", ask).await.body;
        times.extend(page["objects"].as_array().expect("objects").iter().map(|o| o["created_at"].to_string()));
        if page["hasNext"] == false {
            break;
        }
        cursor = page["nextCursor"].clone();
    }
    assert_eq!(times.len(), 9);
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    // An object whose name ends like a folder's keeps its name in every sort order.
    upload(&service, "open/y/z/", "text/plain", "x").await;
    for column in ["name", "created_at"] {
        let ask = json!({ "prefix": "y/z/", "with_delimiter": true, "sortBy": { "column": column } });
        let page = post(&service, "object/list-v2/open", ask).await.body;
        assert_eq!(page["objects"][0]["name"], "y/z/", "{column}");
    }
    let refused = post(&service, "object/list-v2/open", json!({ "cursor": "nonsense" })).await;
    let continuation = "Invalid Parameter continuation token";
    assert_eq!(refusal(&refused), (400, "400", "InvalidParameter", "InvalidParameter", continuation));
}

#[actix_web::test]
async fn the_older_listing_is_relative_to_its_prefix_and_ignores_case() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    for name in ["Docs/One.txt", "docs/deep/two.txt", "docs/deep/three.txt", "docs/zz", "other"] {
        upload(&service, &format!("open/{name}"), "text/plain", "x").await;
    }
    let names = |body: Value| async {
        let rows = post(&app.service(), "object/list/open", body).await.body;
        let rows = rows.as_array().unwrap_or_else(|| panic!("{rows}")).clone();
        rows.iter()
            .map(|row| format!("{}{}", row["name"].as_str().expect("name"), if row["id"].is_null() { "/" } else { "" }))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(json!({ "prefix": "DOCS" })).await, ["deep/", "One.txt", "zz"]);
    assert_eq!(names(json!({ "prefix": "docs", "limit": "1", "offset": 1 })).await, ["One.txt"]);
    assert_eq!(names(json!({ "prefix": "docs", "search": "on" })).await, ["One.txt"]);
    assert_eq!(names(json!({ "prefix": "docs", "search": "deep/t" })).await, ["deep/three.txt", "deep/two.txt"]);
    let descending = json!({ "prefix": "docs", "sortBy": { "column": "name", "order": "desc" } });
    assert_eq!(names(descending).await, ["zz", "One.txt", "deep/"]);
    let by_time = json!({ "prefix": "docs", "sortBy": { "column": "created_at" } });
    assert_eq!(names(by_time).await, ["deep/", "One.txt", "zz"]);
    // One folder, spelled as in the first of its names.
    assert_eq!(names(json!({ "prefix": "" })).await, ["docs/", "other"]);
    let refused = post(&service, "object/list/open", json!({ "prefix": "", "sortBy": { "order": "asc" } })).await;
    assert_eq!(refused.body["message"], "body/sortBy must have required property 'column'");
}

#[actix_web::test]
async fn reads_honour_conditions_ranges_and_download_names() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    let robots = service.request(Method::POST, "/storage/v1/object/open/a.txt").header("x-robots-tag", "noindex");
    let stored =
        send(robots.header("cache-control", "max-age=60").header("content-type", "text/plain").body("0123456789"))
            .await;
    assert_eq!(stored.status, 200, "{}", stored.body);
    let url = "/storage/v1/object/public/open/a.txt";
    let get = |headers: &[(&str, &str)]| {
        let mut request = app.plain(Method::GET, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(request)
    };
    let whole = get(&[]).await;
    let etag = whole.header("etag").to_owned();
    assert_eq!(etag, "\"781e5e245d69b566979b86e28d23f2c7\"", "the MD5 of the bytes");
    assert_eq!((whole.header("x-robots-tag"), whole.header("cache-control")), ("noindex", "max-age=60"));
    assert_eq!(get(&[("if-none-match", &etag)]).await.status, 304);
    let other = get(&[("if-none-match", "\"x\"")]).await;
    assert_eq!((other.status, other.header("cache-control")), (200, "max-age=60, stale-while-revalidate=30"));
    assert_eq!(get(&[("if-match", "\"x\"")]).await.status, 412);
    assert_eq!(get(&[("if-modified-since", whole.header("last-modified"))]).await.status, 304);
    let part = get(&[("range", "bytes=-3"), ("if-range", &etag)]).await;
    assert_eq!((part.status, &part.body, part.header("content-range")), (206, &json!(789), "bytes 7-9/10"));
    assert_eq!(get(&[("range", "bytes=-3"), ("if-range", "\"x\"")]).await.status, 200);
    let beyond = get(&[("range", "bytes=10-")]).await;
    assert_eq!(refusal(&beyond), (416, "416", "invalid_range", "InvalidRange", "invalid range provided"));
    let named = send(app.plain(Method::GET, &format!("{url}?download=custom_name.svg"))).await;
    let disposition = "attachment; filename=custom_name.svg; filename*=UTF-8''custom_name.svg";
    assert_eq!(named.header("content-disposition"), disposition);

    let head = send(app.plain(Method::HEAD, url)).await;
    assert_eq!((head.status, head.header("content-length"), head.header("etag")), (200, "10", etag.as_str()));
    let missing = send(app.plain(Method::HEAD, "/storage/v1/object/public/open/none")).await;
    assert_eq!((missing.status, &missing.body), (400, &json!("")));
    let info = send(app.plain(Method::GET, "/storage/v1/object/info/public/open/a.txt")).await;
    assert_eq!(
        (&info.body["etag"], &info.body["size"], &info.body["metadata"]),
        (&json!(etag), &json!(10), &json!({}))
    );
    assert_eq!(send(app.plain(Method::HEAD, "/storage/v1/object/info/public/open/a.txt")).await.header("etag"), etag);
    let hidden = send(app.plain(Method::GET, "/storage/v1/object/info/public/private/a")).await;
    assert_eq!(hidden.body["code"], "NoSuchBucket");
}

/// Regression: both answered 500.
#[actix_web::test]
async fn impossible_names_are_refused_and_never_cause_a_500() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    upload(&service, "open/a", "text/plain", "x").await;
    let version = service.get("/storage/v1/object/info/open/a").await.body["version"].clone();
    let below = upload(&service, &format!("open/a/{}/x", version.as_str().expect("version")), "text/plain", "x").await;
    assert_eq!(below.body["code"], "InvalidKey", "{}", below.body);
    for (method, path) in [
        (Method::GET, "object/open/a%00b"),
        (Method::POST, "object/open/%00"),
        (Method::DELETE, "object/open/a%00"),
        (Method::GET, "object/a%00b/c"),
        (Method::GET, "bucket/a%00"),
        (Method::GET, "object/open/%ff"),
        (Method::GET, "object/open/..%2f..%2fetc"),
        (Method::GET, "object/public/open/%2e%2e/x"),
    ] {
        let reply = send(service.request(method.clone(), &format!("/storage/v1/{path}"))).await;
        assert!(reply.status == 400, "{method} {path}: {} {}", reply.status, reply.body);
    }
    for (path, body) in [
        ("object/copy", json!({ "bucketId": "open", "sourceKey": "a\0", "destinationKey": "b" })),
        ("object/move", json!({ "bucketId": "open\0", "sourceKey": "a", "destinationKey": "b" })),
        ("object/sign/open", json!({ "expiresIn": 60, "paths": ["a\0"] })),
        ("object/list/open", json!({ "prefix": "a\0" })),
        ("object/list-v2/open", json!({ "prefix": "a\0" })),
        ("bucket", json!({ "name": "a\0" })),
    ] {
        let reply = post(&service, path, body).await;
        assert!(reply.status < 500, "{path}: {} {}", reply.status, reply.body);
    }
}

#[actix_web::test]
async fn many_urls_are_signed_with_one_query() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let name = format!("{}/a b.txt", alice.id);
    upload(&alice.actor, &format!("private/{name}"), "text/plain", "x").await;
    let ask = json!({ "expiresIn": "60", "paths": [name, "none"] });
    let signed = post(&alice.actor, "object/sign/private", ask).await.body;
    assert_eq!(signed[0]["path"], name);
    assert_eq!(signed[1]["error"], "Either the object does not exist or you do not have access to it");
    let url = format!("/storage/v1{}", signed[0]["signedURL"].as_str().expect("url"));
    assert_eq!(send(app.plain(Method::GET, &url)).await.body, "x");
    let refused = post(&alice.actor, "object/sign/private", json!({ "expiresIn": 60, "paths": [] })).await;
    assert_eq!(refused.body["message"], "body/paths must NOT have fewer than 1 items");
    let refused = post(&alice.actor, &format!("object/sign/private/{name}"), json!({})).await;
    assert_eq!(refused.body["message"], "body must have required property 'expiresIn'");
    let refused = post(&alice.actor, &format!("object/sign/private/{name}"), json!({ "expiresIn": 1e13 })).await;
    assert_eq!(refused.body["message"], "Invalid Parameter expiresIn");
}

/// Regression: a lock or a lost connection ended the removal for good.
#[actix_web::test]
async fn emptying_a_bucket_is_tried_again_after_a_passing_error() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "insert into storage.buckets (id, name) values ('full', 'full');
             insert into storage.objects (bucket_id, name) values ('full', 'a'), ('full', 'b');
             create function public.refuse() returns trigger language plpgsql as $$ begin
               raise exception 'not now' using errcode = '55P03'; end $$;
             create trigger refuse before delete on storage.objects for each row execute function public.refuse()",
        )
        .await
        .expect("objects");
    let emptied = post(&app.service(), "bucket/full/empty", json!({})).await;
    assert_eq!(emptied.status, 200, "{}", emptied.body);
    let left = async || {
        let count = "select count(*) from storage.objects where bucket_id = 'full'";
        app.owner.query_one(count, &[]).await.expect("a count").get::<_, i64>(0)
    };
    assert_eq!(left().await, 2);
    app.owner.batch_execute("drop trigger refuse on storage.objects").await.expect("gone");
    crate::support::valve::until("the bucket is empty", async || left().await == 0).await;
}

/// Regression: a restart ended the removal for good, if there were more than a few objects.
#[actix_web::test]
async fn emptying_a_bucket_continues_after_a_restart() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "insert into storage.buckets (id, name) values ('full', 'full'), ('other', 'other'), ('third', 'third');
             insert into storage.objects (bucket_id, name) select 'full', n::text from generate_series(1, 1200) n;
             insert into storage.objects (bucket_id, name) values ('other', 'a'), ('third', 'a');
             create function public.refuse() returns trigger language plpgsql as $$ begin
               raise exception 'not now' using errcode = '55P03'; end $$;
             create trigger refuse before delete on storage.objects for each row execute function public.refuse()",
        )
        .await
        .expect("objects");
    assert_eq!(post(&app.service(), "bucket/full/empty", json!({})).await.status, 200);
    let count = async |of: &str| app.owner.query_one(of, &[]).await.expect("a count").get::<_, i64>(0);
    let noted = "select count(*) from _supavisor.emptied_buckets where bucket_id = 'full'";
    assert_eq!(count(noted).await, 1);
    app.owner
        .batch_execute(
            // Written again after the request, as an upsert does.
            "drop trigger refuse on storage.objects;
             insert into storage.objects (bucket_id, name) values ('full', 'later');
             insert into storage.objects (bucket_id, name, created_at) values ('full', 'again', '2026-01-01');
             insert into _supavisor.emptied_buckets values ('other', now())",
        )
        .await
        .expect("what a restart finds");
    crate::support::valve::until("the bucket is empty", async || {
        app.storage.empty_noted_buckets().await.expect("the round");
        count(noted).await == 0
    })
    .await;
    assert_eq!(count("select count(*) from storage.objects where bucket_id = 'full'").await, 2, "the later ones");
    assert_eq!(
        count("select count(*) from storage.objects where bucket_id = 'other'").await,
        0,
        "a note alone suffices"
    );
    assert_eq!(count("select count(*) from storage.objects where bucket_id = 'third'").await, 1);
    assert_eq!(count("select count(*) from _supavisor.emptied_buckets").await, 0);

    // What cannot be removed is not removed later, when it is something else.
    app.owner
        .batch_execute(
            "create or replace function public.refuse() returns trigger language plpgsql as $$ begin
               raise exception 'never'; end $$;
             create trigger refuse before delete on storage.objects for each row execute function public.refuse()",
        )
        .await
        .expect("refused for good");
    assert_eq!(post(&app.service(), "bucket/third/empty", json!({})).await.status, 200);
    assert_eq!(count("select count(*) from storage.objects where bucket_id = 'third'").await, 1);
    assert_eq!(count("select count(*) from _supavisor.emptied_buckets").await, 0);
}
