//! `/storage/v1`: effects of settings, request settings for policies, and rendering of database errors.

use crate::support::{Actor, Reply, TestApp, send};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ferrobase::storage::sweep;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

async fn upload(actor: &Actor<'_>, path: &str, body: &str) -> Reply {
    let request = actor.request(Method::POST, &format!("/storage/v1/object/{path}"));
    send(request.header("content-type", "text/plain").body(body.to_owned())).await
}

fn refusal(reply: &Reply) -> (u16, &str, &str, &str, &str) {
    let text = |name: &str| reply.body[name].as_str().unwrap_or("");
    (reply.status, text("statusCode"), text("error"), text("code"), text("message"))
}

#[actix_web::test]
async fn limits_are_settings() {
    let settings = [
        ("UPLOAD_FILE_SIZE_LIMIT", "100"),
        ("UPLOAD_FILE_SIZE_LIMIT_STANDARD", "10"),
        ("STORAGE_EMPTY_BUCKET_MAX", "2"),
        ("REQUEST_HARD_LIMITS_ENABLED", "true"),
        ("RESPONSE_S_MAXAGE", "9"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "b", "public": true })).await.status, 200);
    let too_large = (400, "413", "Payload too large", "EntityTooLarge", "The object exceeded the maximum allowed size");
    assert_eq!(refusal(&upload(&service, "b/long", &"x".repeat(11)).await), too_large);
    // Without an announced length, bytes are counted as they arrive.
    let pieces = futures_util::stream::iter((0..20).map(|_| Ok::<_, std::io::Error>("x")));
    let unknown = service.request(Method::POST, "/storage/v1/object/b/long").header("content-type", "text/plain");
    assert_eq!(refusal(&send(unknown.body(reqwest::Body::wrap_stream(pieces))).await), too_large);
    let form = format!(
        "--X\r\nContent-Disposition: form-data; name=\"\"; filename=\"f\"\r\n\r\n{}\r\n--X--\r\n",
        "x".repeat(11)
    );
    let form = service.request(Method::POST, "/storage/v1/object/b/long").body(form);
    let form = form.header("content-type", "multipart/form-data; boundary=X");
    assert_eq!(refusal(&send(form).await), too_large);
    assert_eq!(sweep::sweep(&app.storage, Duration::ZERO).await.expect("a sweep"), 0, "nothing is half-written");
    // Resumable uploads only have the larger limit.
    let tus = |length: &'static str| {
        let metadata = format!("bucketName {},objectName {}", STANDARD.encode("b"), STANDARD.encode("tus"));
        let request = service.request(Method::POST, "/storage/v1/upload/resumable").header("tus-resumable", "1.0.0");
        send(request.header("upload-length", length).header("upload-metadata", metadata))
    };
    assert_eq!((tus("100").await.status, tus("101").await.status), (201, 413));
    let bucket = service.post("/storage/v1/bucket", json!({ "name": "c", "file_size_limit": 101 })).await;
    assert_eq!(refusal(&bucket), too_large);

    // A folder placeholder is empty and may have any type.
    let bucket = json!({ "name": "pictures", "allowed_mime_types": ["image/*"] });
    assert_eq!(service.post("/storage/v1/bucket", bucket).await.status, 200);
    assert_eq!(upload(&service, "pictures/a/.emptyFolderPlaceholder", "").await.status, 200);
    assert_eq!(refusal(&upload(&service, "pictures/b/.emptyFolderPlaceholder", "x").await), too_large);
    // A copy or move to its name does not evade the bucket's rules.
    assert_eq!(upload(&service, "b/text", "x").await.status, 200);
    let to = |verb: &str, from: &str, name: &str| {
        let body = json!({
            "bucketId": "b", "sourceKey": from, "destinationBucket": "pictures", "destinationKey": name,
        });
        let path = format!("/storage/v1/object/{verb}");
        let service = &service;
        async move { service.post(&path, body).await }
    };
    for verb in ["copy", "move"] {
        assert_eq!(refusal(&to(verb, "text", "c/.emptyFolderPlaceholder").await), too_large, "{verb}");
    }
    assert_eq!(upload(&service, "b/empty", "").await.status, 200);
    assert_eq!(to("copy", "empty", "c/.emptyFolderPlaceholder").await.status, 200);
    assert_eq!(to("move", "empty", "d/.emptyFolderPlaceholder").await.status, 200);

    for name in ["1", "2"] {
        assert_eq!(upload(&service, &format!("b/{name}"), "x").await.status, 200);
    }
    let full = service.post("/storage/v1/bucket/b/empty", json!({})).await;
    let many = "Unable to empty the bucket because it contains too many objects";
    assert_eq!(refusal(&full), (400, "409", "InvalidRequest", "InvalidRequest", many));
    let names: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
    let remove = service.request(Method::DELETE, "/storage/v1/object/b").json(&json!({ "prefixes": names }));
    let limited = "Bulk object requests are limited to 1000 objects per request.";
    assert_eq!(refusal(&send(remove).await), (400, "400", "InvalidRequest", "InvalidRequest", limited));

    let read = app.plain(Method::GET, "/storage/v1/object/public/b/1").header("if-none-match", "\"x\"");
    assert_eq!(send(read).await.header("cache-control"), "no-cache, s-maxage=9, stale-while-revalidate=30");
}

#[actix_web::test]
async fn form_fields_before_the_file_are_its_metadata() {
    let app = TestApp::start().await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "b" })).await.status, 200);
    let field =
        |name: &str, value: &str| format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let file = "--X\r\nContent-Disposition: form-data; name=\"upload\"; filename=\"f\"\r\nContent-Type: text/html\r\n\r\nhi\r\n";
    let sent = async |body: String| {
        let request = service.request(Method::PUT, "/storage/v1/object/b/form").body(format!("{body}--X--\r\n"));
        send(request.header("content-type", "multipart/form-data; boundary=X")).await
    };
    let info = async || service.get("/storage/v1/object/info/b/form").await.body;
    let first = [field("userMetadata", "{\"a\":1}"), field("contentType", "text/markdown"), file.to_owned()].concat();
    assert_eq!(sent(first).await.status, 200);
    let known = info().await;
    assert_eq!((&known["metadata"], &known["content_type"]), (&json!({ "a": 1 }), &json!("text/markdown")));
    assert_eq!(known["cache_control"], "no-cache");
    // Invalid JSON is ignored, and so are fields after the file.
    let late = [field("metadata", "{a"), file.to_owned(), field("cacheControl", "9")].concat();
    assert_eq!(sent(late).await.status, 200);
    let known = info().await;
    assert_eq!(
        (&known["metadata"], &known["content_type"], &known["cache_control"]),
        (&json!({}), &json!("text/html"), &json!("no-cache"))
    );
    let none = sent(field("cacheControl", "9")).await;
    assert_eq!(refusal(&none), (400, "400", "InvalidRequest", "InvalidRequest", "No content provided"));
    // Values that would take much more memory than their text.
    let countless = sent([field("metadata", &format!("[{}0]", "0,".repeat(30_000))), file.to_owned()].concat()).await;
    let too_large = (400, "413", "Payload too large", "EntityTooLarge", "The object exceeded the maximum allowed size");
    assert_eq!(refusal(&countless), too_large);

    // A raw body has the same metadata in headers, and its token may have no scheme.
    let raw = app.plain(Method::POST, "/storage/v1/object/b/raw").header("authorization", &app.service_key);
    let raw = raw.header("x-metadata", STANDARD.encode("{\"b\":[2]}")).header("cache-control", "private");
    assert_eq!(send(raw.header("apikey", &app.anon_key).body("{}")).await.status, 200);
    let known = service.get("/storage/v1/object/info/b/raw").await.body;
    assert_eq!(
        (&known["metadata"], &known["content_type"], &known["cache_control"]),
        (&json!({ "b": [2] }), &json!("application/octet-stream"), &json!("private"))
    );
}

#[actix_web::test]
async fn database_errors_have_the_references_codes() {
    let app = TestApp::start().await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "b" })).await.status, 200);
    app.owner
        .batch_execute(
            "create function public.refuse() returns trigger language plpgsql as
             $$ begin raise exception 'not so' using errcode = split_part(new.name, '-', 2); end $$;
             create trigger refuse before insert on storage.objects for each row
               when (new.name like 'code-%') execute function public.refuse()",
        )
        .await
        .expect("a trigger");
    let locked = ("423", "ResourceLocked", "ResourceLocked", "The resource is locked");
    let slow = ("544", "DatabaseTimeout", "DatabaseTimeout", "The connection to the database timed out");
    let read_only = "The database is currently in read-only mode. Please try again later.";
    let definition = "The database schema is invalid or incompatible.";
    let mismatch = "There is a database schema mismatch in a trigger or RLS policy";
    let busy = "Too many connections issued to the database";
    for (code, status, (in_body, error, name, message)) in [
        ("42501", 400, ("403", "Unauthorized", "AccessDenied", "not so")),
        ("23505", 400, ("409", "Duplicate", "KeyAlreadyExists", "The resource already exists")),
        ("23503", 400, ("404", "InvalidRequest", "InvalidRequest", "The related resource does not exist")),
        ("55P03", 400, locked),
        ("57014", 544, slow),
        ("25006", 400, ("503", "DatabaseReadOnly", "DatabaseReadOnly", read_only)),
        ("42P17", 400, ("503", "DatabaseInvalidObjectDefinition", "DatabaseInvalidObjectDefinition", definition)),
        ("42703", 400, ("503", "DatabaseSchemaMismatch", "DatabaseSchemaMismatch", mismatch)),
        ("42P01", 400, ("503", "DatabaseSchemaMismatch", "DatabaseSchemaMismatch", mismatch)),
        ("22P02", 400, ("400", "InvalidParameter", "InvalidParameter", "not so")),
        ("53300", 429, ("429", "too_many_connections", "SlowDown", busy)),
        ("P0001", 400, ("400", "InvalidRequest", "InvalidRequest", "not so")),
        ("PT418", 400, ("418", "Error", "InvalidRequest", "not so")),
        ("XX000", 500, ("500", "DatabaseError", "DatabaseError", "database error, code: XX000")),
    ] {
        let refused = upload(&service, &format!("b/code-{code}"), "x").await;
        assert_eq!(refusal(&refused), (status, in_body, error, name, message), "{code}");
    }
    assert_eq!(sweep::sweep(&app.storage, Duration::ZERO).await.expect("a sweep"), 0, "no file without a row");

    // A bucket that a multipart upload still refers to, and a row whose file is missing.
    let pending = "insert into storage.s3_multipart_uploads (id, upload_signature, bucket_id, key, version)
                   values ('u', '', 'b', 'k', 'v')";
    app.owner.batch_execute(pending).await.expect("an upload");
    let pending = "The bucket could not be updated because it is referenced by a pending multipart upload.";
    let kept = service.delete("/storage/v1/bucket/b").await;
    assert_eq!(refusal(&kept), (400, "409", "ResourceReferenced", "ResourceReferenced", pending));
    let row =
        "insert into storage.objects (bucket_id, name, version, metadata) values ('b', 'lost', 'v', '{\"size\": 1}')";
    app.owner.execute(row, &[]).await.expect("a row");
    let lost = service.get("/storage/v1/object/b/lost").await;
    assert_eq!(refusal(&lost), (400, "404", "Not found", "NoSuchKey", "The resource was not found"));
    assert_eq!(lost.header("cache-control"), "no-store");
}

/// Here the policies put the request's operation into their error.
#[actix_web::test]
async fn policies_can_read_the_operation() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "insert into storage.buckets (id, name) values ('b', 'b');
             insert into storage.objects (bucket_id, name, version) values ('b', 'x', 'v');
             insert into storage.s3_multipart_uploads (id, upload_signature, bucket_id, key, version)
               values ('u', '', 'b', 'x', 'v');
             create function public.tell() returns boolean language plpgsql as $$ begin
               raise exception '%', concat_ws(' ', storage.operation(), current_setting('request.method'),
                 current_setting('request.headers')::jsonb ->> 'x-who', auth.role(),
                 current_setting('request.jwt')) using errcode = 'PT418'; end $$;
             create policy tell on storage.objects for all to authenticated using (public.tell()) with check (public.tell());
             create policy tell on storage.buckets for all to authenticated using (public.tell()) with check (public.tell())",
        )
        .await
        .expect("policies");
    let alice = app.user("alice@test.example").await;
    let token = alice.actor.token.clone().expect("a token");
    let route = json!({ "bucketId": "b", "sourceKey": "x", "destinationKey": "y" });
    let (get, head, put, post, delete) = (Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE);
    for (method, path, body, operation) in [
        (&post, "object/b/y", json!("y"), "storage.object.upload"),
        (&put, "object/b/x", json!("y"), "storage.object.upload_update"),
        (&get, "object/b/x", Value::Null, "storage.object.get_authenticated"),
        (&get, "object/authenticated/b/x", Value::Null, "storage.object.get_authenticated"),
        (&get, "object/info/b/x", Value::Null, "object.get_authenticated_info"),
        (&get, "object/info/authenticated/b/x", Value::Null, "object.get_authenticated_info"),
        (&get, "render/image/authenticated/b/x", Value::Null, "storage.render.image_authenticated"),
        (&delete, "object/b/x", Value::Null, "storage.object.delete"),
        (&delete, "object/b", json!({ "prefixes": ["x"] }), "storage.object.delete_many"),
        (&post, "object/move", route.clone(), "storage.object.move"),
        (&post, "object/copy", route, "storage.object.copy"),
        (&post, "object/list/b", json!({ "prefix": "" }), "storage.object.list"),
        (&post, "object/list-v2/b", json!({}), "storage.object.list_v2"),
        (&post, "object/sign/b/x", json!({ "expiresIn": 9 }), "storage.object.sign"),
        (&post, "object/sign/b", json!({ "expiresIn": 9, "paths": ["x"] }), "storage.object.sign_many"),
        (&post, "object/upload/sign/b/y", Value::Null, "storage.object.sign_upload_url"),
        (&post, "bucket", json!({ "name": "c" }), "storage.bucket.create"),
        (&get, "bucket", Value::Null, "storage.bucket.list"),
        (&get, "bucket/b", Value::Null, "storage.bucket.get"),
        (&put, "bucket/b", json!({ "public": true }), "storage.bucket.update"),
        (&delete, "bucket/b", json!({}), "storage.bucket.delete"),
    ] {
        let request = alice.actor.request(method.clone(), &format!("/storage/v1/{path}")).header("x-who", "me");
        let reply = send(if body.is_null() { request } else { request.json(&body) }).await;
        let told = format!("{operation} {method} me authenticated {token}");
        assert_eq!(refusal(&reply), (400, "418", "Error", "InvalidRequest", told.as_str()), "{method} {path}");
    }
    // The answer to HEAD has no body for the message.
    app.owner
        .batch_execute(
            "create policy heads on storage.objects for select to anon
               using (storage.allow_only_operation('object.head_authenticated_info'))",
        )
        .await
        .expect("a policy");
    for path in ["object/b/x", "object/authenticated/b/x"] {
        let ask = |method: &Method| {
            let request = app.plain(method.clone(), &format!("/storage/v1/{path}")).bearer_auth(&app.anon_key);
            async { send(request).await.status }
        };
        assert_eq!((ask(&head).await, ask(&get).await), (200, 400), "{path}");
    }

    let metadata = format!("bucketName {},objectName {}", STANDARD.encode("b"), STANDARD.encode("y"));
    let tus = alice.actor.request(post, "/storage/v1/upload/resumable").header("tus-resumable", "1.0.0");
    let tus = tus.header("upload-length", "1").header("upload-metadata", metadata).header("x-who", "me");
    let tus = send(tus).await;
    let told = format!("storage.tus.upload.create POST me authenticated {token}");
    assert_eq!((tus.status, &tus.body), (418, &json!(told)));
}

#[actix_web::test]
async fn small_routes_answer_as_the_reference_does() {
    let app = TestApp::start().await;
    let get = |path: &str| send(app.plain(Method::GET, &format!("/storage/v1/{path}")));
    assert_eq!((get("status").await.status, get("version").await.status), (200, 200));
    assert_eq!(get("health").await.body, json!({ "healthy": true }));
    let purge = app.service().delete("/storage/v1/cdn/b/x?transformations=true").await;
    assert_eq!((purge.status, &purge.body), (200, &json!({ "message": "success", "statusCode": "200" })));
    let alice = app.user("alice@test.example").await;
    let refused = alice.actor.delete("/storage/v1/cdn").await;
    assert_eq!(refusal(&refused), (403, "403", "Unauthorized", "AccessDenied", "Access denied: Invalid role"));
    // Invalid or oversized JSON gets the errors of the reference's framework.
    let service = app.service();
    let ask = |kind: &'static str, body: Vec<u8>| {
        send(service.request(Method::POST, "/storage/v1/bucket").header("content-type", kind).body(body))
    };
    let invalid = "Body is not valid JSON but content-type is set to 'application/json'";
    let empty = "Body cannot be empty when content-type is set to 'application/json'";
    let large = "Request body is too large";
    for (kind, body, expected) in [
        ("application/json", b"{\"name\":".to_vec(), (400, "400", "FastifyError", "InvalidRequest", invalid)),
        ("application/json; charset=utf-8", Vec::new(), (400, "400", "FastifyError", "InvalidRequest", empty)),
        ("text/plain", b"{}".to_vec(), (400, "400", "Error", "InvalidRequest", "body must be object")),
        (
            "application/x-www-form-urlencoded",
            b"name=b".to_vec(),
            (400, "400", "Error", "InvalidRequest", "body must be object"),
        ),
        (
            "form",
            b"name=b".to_vec(),
            (400, "415", "invalid_mime_type", "InvalidMimeType", "Invalid Content-Type header"),
        ),
        ("application/json", vec![b' '; 5 << 20], (413, "413", "FastifyError", "EntityTooLarge", large)),
    ] {
        let reply = ask(kind, body).await;
        assert_eq!(refusal(&reply), expected, "{kind}");
    }
    let nowhere = app.service().get("/storage/v1/bucket/a/b/c").await;
    assert_eq!((nowhere.status, &nowhere.body["error"]), (404, &json!("Not Found")));

    // A value that is not an object is spread into one, as in the reference.
    app.owner.batch_execute("insert into storage.buckets (id, name) values ('m', 'm')").await.expect("a bucket");
    for (metadata, kept) in
        [("[1,2]", json!({ "0": 1, "1": 2 })), ("\"ab\"", json!({ "0": "a", "1": "b" })), ("5", json!({}))]
    {
        let request = app.service().request(Method::PUT, "/storage/v1/object/m/x").body("x");
        assert_eq!(send(request.header("x-metadata", STANDARD.encode(metadata))).await.status, 200);
        assert_eq!(app.service().get("/storage/v1/object/info/m/x").await.body["metadata"], kept, "{metadata}");
    }
    // A key may look like the beginning of a route.
    let strange = "m/object/info/authenticated/m/x";
    assert_eq!(upload(&app.service(), strange, "xyz").await.status, 200);
    let info = app.service().get(&format!("/storage/v1/object/info/{strange}")).await;
    assert_eq!((&info.body["name"], &info.body["size"]), (&json!("object/info/authenticated/m/x"), &json!(3)));

    // So may the name of a bucket.
    let named = "insert into storage.buckets (id, name) values ('authenticated', 'authenticated')";
    app.owner.batch_execute(named).await.expect("a bucket");
    assert_eq!(upload(&app.service(), "authenticated/x", "xy").await.status, 200);
    let info = app.service().get("/storage/v1/object/info/authenticated/x").await;
    assert_eq!((&info.body["bucket_id"], &info.body["name"]), (&json!("authenticated"), &json!("x")));

    // The cache lifetime of a link's answer ends when the link expires.
    app.owner.batch_execute("insert into storage.buckets (id, name) values ('b', 'b')").await.expect("a bucket");
    assert_eq!(upload(&app.service(), "b/x", "x").await.status, 200);
    let sign = async |seconds: i64| {
        let signed = app.service().post("/storage/v1/object/sign/b/x", json!({ "expiresIn": seconds })).await;
        format!("/storage/v1{}", signed.body["signedURL"].as_str().expect("an address"))
    };
    let read = send(app.plain(Method::GET, &sign(60).await)).await;
    assert_eq!((read.header("expires").is_empty(), read.header("cache-control")), (false, ""));
    let long = send(app.plain(Method::GET, &sign(8_000_000_000_000).await)).await;
    assert_eq!(long.header("expires"), "Fri, 31 Dec 9999 23:59:59 GMT");
    let short = sign(1).await;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let late = send(app.plain(Method::GET, &short)).await;
    let expired = "\"exp\" claim timestamp check failed";
    assert_eq!(refusal(&late), (400, "400", "InvalidJWT", "InvalidJWT", expired));
}

/// Regression: any client could choose the host in the address of its upload.
#[actix_web::test]
async fn forwarded_hosts_of_strangers_are_ignored() {
    let settings = [("API_EXTERNAL_URL", "https://known.example"), ("FERROBASE_TRUSTED_PROXIES", "192.0.2.7")];
    let app = TestApp::with_settings(&settings).await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "b" })).await.status, 200);
    let location = async |host: &str| {
        let metadata = format!("bucketName {},objectName {}", STANDARD.encode("b"), STANDARD.encode(host));
        let made = service.request(Method::POST, "/storage/v1/upload/resumable").header("host", host);
        let made = made.header("tus-resumable", "1.0.0").header("upload-length", "2");
        let made = made.header("upload-metadata", metadata).header("forwarded", "host=evil.example;proto=https");
        let made = made.header("x-forwarded-host", "evil.example").header("x-forwarded-port", "81");
        let made = made.header("x-forwarded-proto", "https").send().await.expect("an answer");
        made.headers()["location"].to_str().expect("text").to_owned()
    };
    let path = "/storage/v1/upload/resumable/";
    for (host, origin) in [("a.example:81", "http://a.example:81"), ("known.example", "https://known.example")] {
        let found = location(host).await;
        assert!(found.starts_with(&format!("{origin}{path}")), "{found}");
    }
}

/// Clients that only use GET and POST, behind a proxy that terminates TLS.
#[actix_web::test]
async fn resumable_uploads_support_method_override() {
    let app = TestApp::with_settings(&[("FERROBASE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "b" })).await.status, 200);
    let metadata = format!("bucketName {},objectName {}", STANDARD.encode("b"), STANDARD.encode("x"));
    let base = "/storage/v1/upload/resumable";
    let made = service.request(Method::POST, base).header("tus-resumable", "1.0.0").header("upload-length", "2");
    let made = made.header("upload-metadata", metadata).header("x-forwarded-proto", "https");
    let made = made.header("x-forwarded-host", "files.example").send().await.expect("an answer");
    let location = made.headers()["location"].to_str().expect("text");
    let path = location.strip_prefix("https://files.example").unwrap_or_else(|| panic!("{location}"));
    let sent = service.request(Method::POST, path).header("x-http-method-override", "PATCH").body("hi");
    let sent = sent.header("tus-resumable", "1.0.0").header("upload-offset", "0");
    assert_eq!(send(sent.header("content-type", "application/offset+octet-stream")).await.status, 204);
    assert_eq!(service.get("/storage/v1/object/b/x").await.body, "hi");
}
