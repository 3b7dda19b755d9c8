//! Resumable uploads by TUS: in pieces, by links, interrupted, and from two clients at once.

use crate::support::{TestApp, send};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ferrobase::storage::sweep;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;
use std::time::{Duration, Instant};

const SCHEMA: &str = "
    insert into storage.buckets (id, name, file_size_limit, allowed_mime_types) values ('private', 'private', 100, array['text/*']);
    create policy own on storage.objects for all to authenticated
      using (bucket_id = 'private' and (storage.foldername(name))[1] = auth.uid()::text)
      with check (bucket_id = 'private' and (storage.foldername(name))[1] = auth.uid()::text);
";
const BASE: &str = "/storage/v1/upload/resumable";

fn metadata(key: &str, mime: &str) -> String {
    let pair = |name: &str, value: &str| format!("{name} {}", STANDARD.encode(value));
    [
        pair("bucketName", "private"),
        pair("objectName", key),
        pair("contentType", mime),
        pair("cacheControl", "60"),
        pair("metadata", "{\"a\":1}"),
    ]
    .join(",")
}

fn tus(request: RequestBuilder) -> RequestBuilder {
    request.header("tus-resumable", "1.0.0")
}

fn patch(request: RequestBuilder, offset: usize, body: impl Into<reqwest::Body>) -> RequestBuilder {
    let request = tus(request).header("content-type", "application/offset+octet-stream");
    request.header("upload-offset", offset.to_string()).body(body)
}

async fn answered(request: RequestBuilder) -> Response {
    request.send().await.expect("an answer")
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn path_of(response: &Response, app: &TestApp) -> String {
    let location = header(response, "location");
    location.strip_prefix(&app.base).unwrap_or_else(|| panic!("an address of this server: {location:?}")).to_owned()
}

#[actix_web::test]
async fn an_upload_continues_on_another_server() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/a b.txt", alice.id);
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "11");
    let created = answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await;
    assert_eq!((created.status().as_u16(), header(&created, "tus-resumable")), (201, "1.0.0"));
    assert!(header(&created, "access-control-expose-headers").contains("Location"));
    assert!(!header(&created, "upload-expires").is_empty());
    let path = path_of(&created, &app);
    let id =
        String::from_utf8(URL_SAFE_NO_PAD.decode(path.rsplit('/').next().expect("id")).expect("base64")).expect("text");
    assert!(id.starts_with(&format!("private/{key}/")), "{id}");

    let first = answered(patch(alice.actor.request(Method::PATCH, &path), 0, "hello ")).await;
    assert_eq!((first.status().as_u16(), header(&first, "upload-offset")), (204, "6"));
    let wrong = send(patch(alice.actor.request(Method::PATCH, &path), 3, "x")).await;
    assert_eq!((wrong.status, &wrong.body), (409, &json!("Upload-Offset conflict\n")));
    let rows = "select count(*) from storage.objects";
    assert_eq!(app.owner.query_one(rows, &[]).await.expect("count").get::<_, i64>(0), 0, "no row before the last byte");
    assert_eq!(sweep::sweep(&app.storage, Duration::ZERO).await.expect("sweep"), 0, "a part of a living upload stays");

    let head = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!(
        (
            head.status().as_u16(),
            header(&head, "upload-offset"),
            header(&head, "upload-length"),
            header(&head, "cache-control")
        ),
        (200, "6", "11", "no-store")
    );
    assert_eq!(header(&head, "upload-metadata"), metadata(&key, "text/plain"));
    // Another server on the same database and files, as after a restart.
    let files = app.files();
    let other = app.another(&[("FERROBASE_STORAGE_DIR", files.to_str().expect("path"))]).await;
    let request = other.plain(Method::PATCH, &path).bearer_auth(alice.actor.token.as_ref().expect("token"));
    let last = answered(patch(request, 6, "world")).await;
    assert_eq!(
        (last.status().as_u16(), header(&last, "upload-offset"), header(&last, "tus-complete")),
        (204, "11", "1")
    );
    let object = format!("/storage/v1/object/private/{key}");
    assert_eq!(alice.actor.get(&object).await.body, "hello world");
    let info = alice.actor.get(&object.replace("/object/", "/object/info/")).await.body;
    assert_eq!(
        (&info["size"], &info["content_type"], &info["cache_control"], &info["metadata"]),
        (&json!(11), &json!("text/plain"), &json!("max-age=60"), &json!({ "a": 1 }))
    );
    // The answer to the last bytes may have been lost.
    let again = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((again.status().as_u16(), header(&again, "upload-offset")), (200, "11"));
    let unnamed = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "0").header("x-upsert", "true");
    let pairs = metadata(&key, "text/plain").replace(&format!(",metadata {}", STANDARD.encode("{\"a\":1}")), "");
    assert_eq!(send(unnamed.header("upload-metadata", pairs)).await.status, 201);
    let info = alice.actor.get(&object.replace("/object/", "/object/info/")).await.body;
    assert_eq!((&info["size"], &info["metadata"]), (&json!(0), &json!({ "a": 1 })), "what is not sent stays");
    let ended = send(tus(alice.actor.request(Method::DELETE, &path))).await;
    assert_eq!((ended.status, &ended.body), (400, &json!("Cannot terminate an already completed upload")));
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "1");
    let taken = send(begin.header("upload-metadata", metadata(&key, "text/plain"))).await;
    assert_eq!((taken.status, &taken.body), (409, &json!("The resource already exists")));
}

#[actix_web::test]
async fn invalid_uploads_get_text_errors_with_true_statuses() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    let key = format!("{}/x", alice.id);
    let begin = |length: &'static str, key: &str, mime: &str| {
        let request = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", length);
        send(request.header("upload-metadata", metadata(key, mime)))
    };
    let said = |reply: crate::support::Reply| (reply.status, reply.body.as_str().unwrap_or("JSON").to_owned());
    assert_eq!(said(begin("101", &key, "text/plain").await), (413, "Maximum size exceeded\n".to_owned()));
    assert_eq!(said(begin("1", &key, "image/png").await), (415, "mime type image/png is not supported".to_owned()));
    assert_eq!(said(begin("1", "ä", "text/plain").await), (400, "Invalid key: ä".to_owned()));
    let policy = "new row violates row-level security policy".to_owned();
    assert_eq!(said(begin("1", &format!("{}/x", bob.id), "text/plain").await), (403, policy.clone()));
    let without_version = alice.actor.request(Method::POST, BASE).header("upload-length", "1");
    let refused = send(without_version).await;
    assert_eq!((refused.status, refused.header("tus-version")), (412, "1.0.0"));
    for (name, value) in [
        ("upload-length", "1e3"),
        ("upload-length", "-1"),
        ("upload-defer-length", "2"),
        ("upload-metadata", "a !"),
        ("upload-concat", "some"),
    ] {
        let request = tus(alice.actor.request(Method::POST, BASE)).header(name, value);
        assert_eq!(said(send(request).await), (400, format!("Invalid {name}\n")), "{value}");
    }
    let both = tus(alice.actor.request(Method::POST, BASE)).header("upload-offset", "x").header("upload-length", "x");
    assert_eq!(said(send(both).await), (400, "Invalid upload-length upload-offset\n".to_owned()));
    let bucket = format!("bucketName {},objectName {}", STANDARD.encode("a/b"), STANDARD.encode("x"));
    let begin_there = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "1");
    let there = send(begin_there.header("upload-metadata", bucket)).await;
    assert_eq!(said(there), (400, "Bucket name invalid".to_owned()));
    let nobody = send(tus(app.plain(Method::POST, BASE))).await;
    assert_eq!((nobody.status, &nobody.body["message"]), (400, &json!("Invalid Compact JWS")));
    let concat = tus(alice.actor.request(Method::POST, BASE)).header("upload-concat", "partial");
    assert_eq!(said(send(concat).await).0, 501);
    assert_eq!(said(send(tus(alice.actor.request(Method::HEAD, &format!("{BASE}/bm9uZQ")))).await).0, 404);
    let options = answered(app.plain(Method::OPTIONS, BASE)).await;
    assert_eq!((options.status().as_u16(), header(&options, "tus-version")), (204, "1.0.0"));
    assert_eq!(
        header(&options, "tus-extension"),
        "creation,creation-with-upload,creation-defer-length,termination,expiration"
    );

    // Bob knows the URL but may not write there.
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-defer-length", "1");
    let created = answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await;
    let path = path_of(&created, &app);
    assert_eq!(said(send(patch(bob.actor.request(Method::PATCH, &path), 0, "x")).await), (403, policy.clone()));
    assert_eq!(said(send(tus(bob.actor.request(Method::DELETE, &path))).await), (403, policy));
    let head = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((header(&head, "upload-defer-length"), header(&head, "upload-length")), ("1", ""));
    let no_offset =
        tus(alice.actor.request(Method::PATCH, &path)).header("content-type", "application/offset+octet-stream");
    assert_eq!(said(send(no_offset).await), (403, "Upload-Offset header required\n".to_owned()));
    let other_type = tus(alice.actor.request(Method::PATCH, &path)).header("upload-offset", "0");
    let other_type = other_type.header("content-type", "text/plain").body("x");
    assert_eq!(said(send(other_type).await), (400, "Invalid content-type\n".to_owned()));
    let long = patch(alice.actor.request(Method::PATCH, &path), 0, "x".repeat(101));
    assert_eq!(said(send(long).await), (413, "upload's size exceeded\n".to_owned()));
    let told = patch(alice.actor.request(Method::PATCH, &path), 0, "abc").header("upload-length", "5");
    assert_eq!(answered(told).await.status(), 204);
    let long = patch(alice.actor.request(Method::PATCH, &path), 3, "def");
    assert_eq!(said(send(long).await).0, 413);
    assert_eq!(send(tus(alice.actor.request(Method::DELETE, &path))).await.status, 204);
    assert_eq!(send(tus(alice.actor.request(Method::HEAD, &path))).await.status, 404);
}

#[actix_web::test]
async fn a_link_uploads_without_an_account_but_never_overwrites() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/by link", alice.id);
    let signed = alice.actor.post(&format!("/storage/v1/object/upload/sign/private/{key}"), json!({})).await;
    let token = signed.body["token"].as_str().expect("token").to_owned();
    let begin = |token: &str, key: &str| {
        let request = tus(app.plain(Method::POST, &format!("{BASE}/sign"))).header("x-signature", token);
        let request = request.header("upload-length", "5").header("upload-metadata", metadata(key, "text/plain"));
        request.header("content-type", "application/offset+octet-stream").body("hello")
    };
    let other = send(begin(&token, &format!("{}/other", alice.id))).await;
    assert_eq!((other.status, &other.body), (400, &json!("Invalid signature")));
    // The creation request contains the bytes.
    let created = answered(begin(&token, &key)).await;
    assert_eq!((created.status().as_u16(), header(&created, "upload-offset")), (201, "5"));
    assert!(header(&created, "location").contains("/upload/resumable/sign/"));
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{key}")).await.body, "hello");
    let again = send(begin(&token, &key)).await;
    assert_eq!((again.status, &again.body), (409, &json!("The resource already exists")));
    let unsigned = send(tus(app.plain(Method::POST, &format!("{BASE}/sign")))).await;
    assert_eq!((unsigned.status, &unsigned.body), (400, &json!("Missing x-signature header")));
}

#[actix_web::test]
async fn an_upload_keeps_the_coding_of_its_bytes() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/coded", alice.id);
    let begin = |coding: &str| {
        let metadata = format!("{},contentEncoding {}", metadata(&key, "text/plain"), STANDARD.encode(coding));
        let request = tus(alice.actor.request(Method::POST, BASE)).header("upload-metadata", metadata);
        let request = request.header("upload-length", "5").header("content-type", "application/offset+octet-stream");
        send(request.body("coded"))
    };
    let refused = begin("a b").await;
    assert_eq!((refused.status, &refused.body), (400, &json!("Invalid contentEncoding")));
    assert_eq!(begin("gzip").await.status, 201);
    let read = alice.actor.get(&format!("/storage/v1/object/private/{key}")).await;
    assert_eq!((read.header("content-encoding"), &read.body), ("gzip", &json!("coded")));
}

/// Sends three bytes at offset 0 and then nothing more. Returns once they have been read.
async fn hanging(
    app: &TestApp,
    request: RequestBuilder,
) -> actix_web::rt::task::JoinHandle<reqwest::Result<reqwest::Response>> {
    let body = futures_util::StreamExt::chain(
        futures_util::stream::iter([Ok::<_, std::io::Error>("abc")]),
        futures_util::stream::pending(),
    );
    let sending = actix_web::rt::spawn(patch(request, 0, reqwest::Body::wrap_stream(body)).send());
    let writers = "select count(*) from _supavisor.resumable_uploads where writer is not null";
    while app.owner.query_one(writers, &[]).await.expect("count").get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nothing tells when they have been read.
    tokio::time::sleep(Duration::from_secs(1)).await;
    sending
}

#[actix_web::test]
async fn a_new_request_replaces_a_hanging_one_and_received_bytes_are_kept() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/slow", alice.id);
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "6");
    let created = answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await;
    let path = path_of(&created, &app);
    let slow = hanging(&app, alice.actor.request(Method::PATCH, &path)).await;
    let since = Instant::now();
    let head = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((head.status().as_u16(), header(&head, "upload-offset")), (200, "3"));
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    let last = answered(patch(alice.actor.request(Method::PATCH, &path), 3, "def")).await;
    assert_eq!((last.status().as_u16(), header(&last, "tus-complete")), (204, "1"));
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{key}")).await.body, "abcdef");
    slow.abort();
}

/// Regression: a length was set although a request that was still writing had more bytes than that.
#[actix_web::test]
async fn a_late_length_waits_for_the_request_that_is_writing() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/late", alice.id);
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-defer-length", "1");
    let created = answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await;
    let path = path_of(&created, &app);
    let slow = hanging(&app, alice.actor.request(Method::PATCH, &path)).await;
    let said = |reply: crate::support::Reply| (reply.status, reply.body.as_str().unwrap_or("JSON").to_owned());
    let short = patch(alice.actor.request(Method::PATCH, &path), 0, "ab").header("upload-length", "2");
    assert_eq!(said(send(short).await), (409, "Upload-Offset conflict\n".to_owned()));
    let head = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((header(&head, "upload-defer-length"), header(&head, "upload-offset")), ("1", "3"));
    let less = patch(alice.actor.request(Method::PATCH, &path), 3, "").header("upload-length", "2");
    assert_eq!(said(send(less).await), (413, "Maximum size exceeded\n".to_owned()));
    let last = patch(alice.actor.request(Method::PATCH, &path), 3, "d").header("upload-length", "4");
    assert_eq!(header(&answered(last).await, "tus-complete"), "1");
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{key}")).await.body, "abcd");
    slow.abort();
}

#[actix_web::test]
async fn a_locked_upload_is_an_error_after_five_seconds_and_expired_ones_are_removed() {
    let app = TestApp::with_settings(&[("TUS_URL_EXPIRY_MS", "60000")]).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/x", alice.id);
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "6");
    let created = answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await;
    let path = path_of(&created, &app);
    answered(patch(alice.actor.request(Method::PATCH, &path), 0, "abc")).await;
    // A writer on another instance that hangs forever.
    let foreign =
        "update _supavisor.resumable_uploads set writer = gen_random_uuid(), writer_until = now() + interval '1 hour'";
    app.owner.execute(foreign, &[]).await.expect("a lease");
    let since = Instant::now();
    let refused = send(patch(alice.actor.request(Method::PATCH, &path), 3, "def")).await;
    assert_eq!((refused.status, &refused.body), (503, &json!("acquiring lock timeout")));
    assert!((4..20).contains(&since.elapsed().as_secs()), "{:?}", since.elapsed());
    let old = "update _supavisor.resumable_uploads set writer_until = now(), expires_at = now() - interval '1 s'";
    app.owner.execute(old, &[]).await.expect("an old upload");
    assert_eq!(send(tus(alice.actor.request(Method::HEAD, &path))).await.status, 410);
    assert_eq!(sweep::end_expired(&app.storage).await.expect("the round"), 1);
    assert_eq!(send(tus(alice.actor.request(Method::HEAD, &path))).await.status, 404);
    assert_eq!(std::fs::read_dir(app.files().join(".parts")).expect("folder").count(), 0, "its part went with it");
}

#[actix_web::test]
async fn an_upload_whose_completion_hits_a_lock_is_completed_on_retry() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let refuse = async |code: &str| {
        let text = format!(
            "create or replace function public.refuse() returns trigger language plpgsql as $$ begin
               if current_user = 'service_role' then raise exception 'not now' using errcode = '{code}'; end if;
               return new; end $$;
             create or replace trigger refuse before insert on storage.objects
               for each row execute function public.refuse()"
        );
        app.owner.batch_execute(&text).await.expect("a trigger");
    };
    let begin = async |key: &str| {
        let request = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "11");
        path_of(&answered(request.header("upload-metadata", metadata(key, "text/plain"))).await, &app)
    };
    let whole = async |path: &str| {
        answered(patch(alice.actor.request(Method::PATCH, path), 0, "hello world")).await.status().as_u16()
    };
    let head = async |path: &str| answered(tus(alice.actor.request(Method::HEAD, path))).await;

    // A lock that another session holds for too long.
    refuse("55P03").await;
    let key = format!("{}/kept.txt", alice.id);
    let path = begin(&key).await;
    assert_eq!(whole(&path).await, 423);
    assert_eq!(head(&path).await.status(), 423, "with the full length a client would consider it finished");
    assert_eq!(sweep::sweep(&app.storage, Duration::ZERO).await.expect("sweep"), 0);
    app.owner.batch_execute("drop trigger refuse on storage.objects").await.expect("gone");
    let done = head(&path).await;
    assert_eq!((done.status().as_u16(), header(&done, "upload-offset")), (200, "11"));
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{key}")).await.body, "hello world");

    // Only writing requests must repeat `x-upsert`. Others may omit it, and the upload may still overwrite.
    let again = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "11").header("x-upsert", "true");
    let path = path_of(&answered(again.header("upload-metadata", metadata(&key, "text/plain"))).await, &app);
    refuse("55P03").await;
    let last = patch(alice.actor.request(Method::PATCH, &path), 0, "HELLO WORLD").header("x-upsert", "true");
    assert_eq!(answered(last).await.status(), 423);
    app.owner.batch_execute("drop trigger refuse on storage.objects").await.expect("gone");
    let done = head(&path).await;
    assert_eq!((done.status().as_u16(), header(&done, "upload-offset")), (200, "11"));
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{key}")).await.body, "HELLO WORLD");

    // Regression: an upload of as many parts as there may be could not be completed any more.
    refuse("55P03").await;
    let key = format!("{}/many.txt", alice.id);
    let path = begin(&key).await;
    assert_eq!(whole(&path).await, 423);
    let more = "insert into _supavisor.resumable_parts (upload, number, id, size, md5)
                  select p.upload, n, gen_random_uuid(), 0, '' from _supavisor.resumable_parts p, generate_series(1, 9999) n
                  returning upload::text, id::text";
    for row in app.owner.query(more, &[]).await.expect("parts") {
        let (upload, part): (String, String) = (row.get(0), row.get(1));
        std::fs::write(app.files().join(".parts").join(upload).join(part), "").expect("a part");
    }
    app.owner.batch_execute("drop trigger refuse on storage.objects").await.expect("gone");
    let done = head(&path).await;
    assert_eq!((done.status().as_u16(), header(&done, "upload-offset")), (200, "11"));
    assert_eq!(alice.actor.get(&format!("/storage/v1/object/private/{key}")).await.body, "hello world");

    // A refusal is final.
    refuse("PT422").await;
    let path = begin(&format!("{}/refused.txt", alice.id)).await;
    assert_eq!(whole(&path).await, 422);
    assert_eq!(head(&path).await.status(), 404);
}

#[actix_web::test]
async fn an_upload_is_finished_in_its_objects_transaction() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    app.owner
        .batch_execute(
            "create function public.refuse() returns trigger language plpgsql as $$ begin
               raise exception 'not now' using errcode = '55P03'; end $$;
             create trigger refuse before update on _supavisor.resumable_uploads
               for each row when (new.finished_at is not null) execute function public.refuse()",
        )
        .await
        .expect("a trigger");
    let key = format!("{}/x.txt", alice.id);
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "11");
    let path = path_of(&answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await, &app);
    assert_eq!(answered(patch(alice.actor.request(Method::PATCH, &path), 0, "hello world")).await.status(), 423);
    let object = format!("/storage/v1/object/private/{key}");
    assert_eq!(alice.actor.get(&object).await.body["message"], "Object not found");

    // Without `x-upsert`: an object that the failed attempt had left would be in the way.
    app.owner.batch_execute("drop trigger refuse on _supavisor.resumable_uploads").await.expect("gone");
    let done = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((done.status().as_u16(), header(&done, "upload-offset")), (200, "11"));
    assert_eq!(alice.actor.get(&object).await.body, "hello world");
    let parts = "select count(*) from _supavisor.resumable_parts";
    assert_eq!(app.owner.query_one(parts, &[]).await.expect("count").get::<_, i64>(0), 0);
}

/// Regression: a client that resumed after one long request was told that the upload had expired.
#[actix_web::test]
async fn an_upload_does_not_expire_while_it_is_written() {
    let app = TestApp::with_settings(&[("TUS_URL_EXPIRY_MS", "2000")]).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "6");
    let created = answered(begin.header("upload-metadata", metadata(&format!("{}/x", alice.id), "text/plain"))).await;
    let path = path_of(&created, &app);
    let slow = hanging(&app, alice.actor.request(Method::PATCH, &path)).await;
    let expired = "select expires_at < now() from _supavisor.resumable_uploads";
    while !app.owner.query_one(expired, &[]).await.expect("a row").get::<_, bool>(0) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(sweep::end_expired(&app.storage).await.expect("the round"), 0);
    let head = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((head.status().as_u16(), header(&head, "upload-offset")), (200, "3"));
    let last = answered(patch(alice.actor.request(Method::PATCH, &path), 3, "def")).await;
    assert_eq!((last.status().as_u16(), header(&last, "tus-complete")), (204, "1"));
    slow.abort();
}

#[actix_web::test]
async fn a_writer_that_lost_its_lease_does_not_complete_an_upload() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    // Another instance takes the lease just before the row is written.
    app.owner
        .batch_execute(
            "create function public.take_over() returns trigger language plpgsql as $$ begin
               update _supavisor.resumable_uploads set writer = gen_random_uuid(); return new; end $$;
             create trigger take_over before insert on storage.objects for each row
               when (current_user = 'service_role') execute function public.take_over()",
        )
        .await
        .expect("a trigger");
    let key = format!("{}/x.txt", alice.id);
    let begin = tus(alice.actor.request(Method::POST, BASE)).header("upload-length", "11");
    let path = path_of(&answered(begin.header("upload-metadata", metadata(&key, "text/plain"))).await, &app);
    let refused = answered(patch(alice.actor.request(Method::PATCH, &path), 0, "hello world")).await;
    assert_eq!(refused.status(), 503);
    let unfinished =
        "select count(*) from _supavisor.resumable_uploads u join _supavisor.resumable_parts p on p.upload = u.id
        where u.finished_at is null";
    assert_eq!(app.owner.query_one(unfinished, &[]).await.expect("count").get::<_, i64>(0), 1);
    let object = format!("/storage/v1/object/private/{key}");
    assert_eq!(alice.actor.get(&object).await.body["message"], "Object not found");

    app.owner.batch_execute("drop trigger take_over on storage.objects").await.expect("gone");
    let done = answered(tus(alice.actor.request(Method::HEAD, &path))).await;
    assert_eq!((done.status().as_u16(), header(&done, "upload-offset")), (200, "11"));
    assert_eq!(alice.actor.get(&object).await.body, "hello world");
}
