//! Files larger than the memory budget of all request bodies, which are written as they arrive.

use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::support::valve::until;
use crate::support::{TestApp, send};

/// A body of this length exceeds the budget in [`SETTINGS`].
const LENGTH: usize = 12 << 20;
const SETTINGS: [(&str, &str); 1] = [("FERROBASE_BODIES_MB", "4")];

#[actix_web::test]
async fn an_upload_may_exceed_the_memory_budget() {
    let app = TestApp::with_settings(&SETTINGS).await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "long" })).await.status, 200);
    let plain = service.request(Method::POST, "/storage/v1/object/long/plain").header("content-type", "text/plain");
    let plain = send(plain.body(vec![b'a'; LENGTH])).await;
    assert_eq!(plain.status, 200, "{}", plain.body);
    // "long" and "resumed" in base64.
    let made = service
        .request(Method::POST, "/storage/v1/upload/resumable")
        .header("tus-resumable", "1.0.0")
        .header("upload-length", LENGTH)
        .header("upload-metadata", "bucketName bG9uZw==,objectName cmVzdW1lZA==")
        .send()
        .await
        .expect("an answer");
    assert_eq!(made.status(), 201);
    let place = made.headers().get("location").and_then(|place| place.to_str().ok()).expect("a place").to_owned();
    let place = place.trim_start_matches(&app.base);
    let path = url::Url::parse(place).map_or_else(|_| place.to_owned(), |url| url.path().to_owned());
    let written = service
        .request(Method::PATCH, &path)
        .header("tus-resumable", "1.0.0")
        .header("upload-offset", 0)
        .header("content-type", "application/offset+octet-stream")
        .body(vec![b'b'; LENGTH])
        .send()
        .await
        .expect("an answer");
    assert_eq!(written.status(), 204, "{}", written.text().await.unwrap_or_default());
    for (name, byte) in [("plain", b'a'), ("resumed", b'b')] {
        let file = service.request(Method::GET, &format!("/storage/v1/object/long/{name}"));
        let file = file.send().await.expect("an answer").bytes().await.expect("a file");
        assert!(file.len() == LENGTH && file.iter().all(|found| *found == byte), "{name}: {} bytes", file.len());
    }
    // Stalled uploads that hold the whole budget; refusing an unsigned form needs none of it.
    let address = app.base.trim_start_matches("http://");
    let mut holding = Vec::new();
    for number in 0..3 {
        let mut upload = tokio::net::TcpStream::connect(address).await.expect("the server accepts");
        let head = format!(
            "POST /storage/v1/object/long/held-{number} HTTP/1.1\r\nHost: x\r\napikey: {0}\r\n\
             Authorization: Bearer {0}\r\nContent-Type: text/plain\r\nContent-Length: {LENGTH}\r\n\r\n",
            app.service_key
        );
        upload.write_all(head.as_bytes()).await.expect("sent");
        holding.push(upload);
    }
    // They hold their share once a fourth finds no room.
    let waits = || async {
        let fourth = service.request(Method::PUT, "/storage/v1/object/long/fourth").body(vec![b'a'; 1 << 20]);
        fourth.timeout(std::time::Duration::from_millis(300)).send().await.is_err()
    };
    until("the budget is used up", async || waits().await).await;
    let form = "--X\r\nContent-Disposition: form-data; name=\"policy\"\r\n\r\nnone\r\n\
                --X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    let since = std::time::Instant::now();
    let form = app.plain(Method::POST, "/storage/v1/s3/long").body([form.as_bytes(), &[b'a'; 2 << 20]].concat());
    let form = send(form.header("content-type", "multipart/form-data; boundary=X")).await;
    assert!(form.status == 400 || form.status == 403, "{} {}", form.status, form.body);
    assert!(since.elapsed() < std::time::Duration::from_secs(4), "it does not wait for memory");
    drop(holding);
    let refused = service.request(Method::POST, "/rest/v1/nothing").header("content-type", "application/json");
    assert_eq!(send(refused.body(vec![b' '; LENGTH])).await.status, 413, "a body that is buffered is limited");
}

/// Regression: a form with slow fields reserved its share before its sender was authorized, and one client could take
/// all of it.
#[actix_web::test]
async fn a_slow_sender_does_not_block_others() {
    let settings = [SETTINGS[0], ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1")];
    let app = TestApp::with_settings(&settings).await;
    let service = app.service();
    assert_eq!(service.post("/storage/v1/bucket", json!({ "name": "long" })).await.status, 200);
    let address = app.base.trim_start_matches("http://");
    let begin = async |key: &str, from: &str, kind: &str, body: &str| {
        let mut upload = tokio::net::TcpStream::connect(address).await.expect("the server accepts");
        let head = format!(
            "POST /storage/v1/object/long/slow HTTP/1.1\r\nHost: x\r\napikey: {key}\r\nX-Forwarded-For: {from}\r\n\
             X-Upsert: true\r\nContent-Type: {kind}\r\nContent-Length: {LENGTH}\r\n\r\n{body}"
        );
        upload.write_all(head.as_bytes()).await.expect("sent");
        upload
    };
    let other = async |name: &str| {
        let upload = service.request(Method::POST, &format!("/storage/v1/object/long/{name}"));
        let upload = upload.header("x-forwarded-for", "192.0.2.9").header("content-type", "text/plain");
        let reply = send(upload.body(vec![b'a'; 1 << 20])).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
    };
    // These are not permitted: no policy lets anon upload.
    let field = "--X\r\nContent-Disposition: form-data; name=\"cacheControl\"\r\n\r\n36";
    let mut holding = Vec::new();
    for number in 0..8 {
        let from = format!("192.0.2.{number}");
        holding.push(begin(&app.anon_key, &from, "multipart/form-data; boundary=X", field).await);
    }
    for name in ["first", "second", "third"] {
        other(name).await;
    }
    // These are permitted, but belong to one client.
    for _ in 0..4 {
        holding.push(begin(&app.service_key, "198.51.100.1", "text/plain", "a").await);
    }
    for name in ["fourth", "fifth", "sixth"] {
        other(name).await;
    }
}

/// The connection breaks while PostgreSQL commits. It is unknown whether the row exists, so the file stays.
#[actix_web::test]
async fn an_upload_with_an_unknown_commit_outcome_keeps_its_file() {
    let (app, valve) = TestApp::behind_valve(&[]).await;
    assert_eq!(app.service().post("/storage/v1/bucket", json!({ "name": "papers" })).await.status, 200);
    app.owner
        .batch_execute(
            "create function public.wait() returns trigger language plpgsql as
            $$ begin perform pg_advisory_xact_lock(4712); return null; end $$;
            create constraint trigger wait after insert on storage.objects deferrable initially deferred
              for each row execute function public.wait();
            select pg_advisory_lock(4712)",
        )
        .await
        .expect("a commit that waits");
    let is = async |sql: &str| app.owner.query_one(sql, &[]).await.expect(sql).get::<_, bool>(0);
    let uploading = async {
        let upload = app.service().request(Method::POST, "/storage/v1/object/papers/a.txt").body("kept");
        let reply = send(upload.header("content-type", "text/plain")).await;
        assert!(reply.status >= 400, "{}", reply.body);
    };
    let breaking = async {
        let waiting = "select count(*) > 0 from pg_stat_activity where datname = current_database() \
                       and wait_event_type = 'Lock' and wait_event = 'advisory'";
        until("the commit waits", async || is(waiting).await).await;
        valve.freeze();
        app.owner.batch_execute("select pg_advisory_unlock(4712)").await.expect("it goes on");
        until("it is committed", async || is("select exists (select from storage.objects where name = 'a.txt')").await)
            .await;
    };
    futures_util::join!(uploading, breaking);
    valve.thaw();
    let file = async || app.service().get("/storage/v1/object/papers/a.txt").await;
    until("the database is back", async || file().await.status == 200).await;
    assert_eq!(file().await.body, json!("kept"));
}
