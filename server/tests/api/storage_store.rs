//! Files in an S3-compatible server instead of a folder. The store is another server of ours, or the one at
//! `TEST_S3_ENDPOINT` (`just test-tools versitygw`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::storage_s3::{Signer, between, text};
use crate::support::ports::free_port;
use crate::support::valve::Valve;
use crate::support::{TestApp, send};
use ferrobase::storage::sweep;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "625729a08b95bf1b7ff351a663f3a23c"),
    ("AWS_SECRET_ACCESS_KEY", "850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907"),
];

/// A store, and the settings for servers that keep their files in it.
struct Store {
    /// Our own store server; `None` if an external one is configured.
    _server: Option<TestApp>,
    endpoint: String,
    tenant: String,
    client_timeout: &'static str,
}

impl Store {
    async fn start() -> Self {
        let tenant = format!("tenant-{}", uuid::Uuid::new_v4());
        if let Ok(endpoint) = std::env::var("TEST_S3_ENDPOINT") {
            return Self { _server: None, endpoint, tenant, client_timeout: "5000" };
        }
        let server = TestApp::start().await;
        let bucket = "insert into storage.buckets (id, name) values ('files', 'files')";
        server.owner.batch_execute(bucket).await.expect("a bucket");
        let endpoint = format!("{}/storage/v1/s3", server.base);
        Self { _server: Some(server), endpoint, tenant, client_timeout: "5000" }
    }

    /// A server that keeps its files here and reaches the store at `endpoint`.
    async fn app_at(&self, endpoint: &str) -> TestApp {
        self.app_with(endpoint, &[]).await
    }

    async fn app_with(&self, endpoint: &str, further: &[(&str, &str)]) -> TestApp {
        let app = self.empty_app(endpoint, further).await;
        let bucket =
            "insert into storage.buckets (id, name, public) values ('docs', 'docs', true), ('more', 'more', false)";
        app.owner.batch_execute(bucket).await.expect("buckets");
        app
    }

    async fn empty_app(&self, endpoint: &str, further: &[(&str, &str)]) -> TestApp {
        let mut settings = vec![
            ("STORAGE_BACKEND", "s3"),
            ("STORAGE_S3_BUCKET", "files"),
            ("GLOBAL_S3_ENDPOINT", endpoint),
            ("GLOBAL_S3_FORCE_PATH_STYLE", "true"),
            ("STORAGE_S3_REGION", "us-east-1"),
            ("STORAGE_S3_UPLOAD_PART_SIZE", "5242880"),
            ("STORAGE_S3_CLIENT_TIMEOUT", self.client_timeout),
            ("TENANT_ID", &self.tenant),
        ];
        settings.extend(KEYS);
        settings.extend(further);
        TestApp::with_settings(&settings).await
    }

    async fn app(&self) -> TestApp {
        self.app_at(&self.endpoint.clone()).await
    }
}

async fn put(app: &TestApp, key: &str, body: Vec<u8>) -> (u16, Value) {
    let path = format!("/storage/v1/object/docs/{key}");
    let request = app.service().request(Method::POST, &path).header("x-upsert", "true");
    let reply = send(request.header("content-type", "application/octet-stream").body(body)).await;
    (reply.status, reply.body)
}

async fn get(app: &TestApp, bucket: &str, key: &str) -> reqwest::Result<Vec<u8>> {
    let request = app.service().request(Method::GET, &format!("/storage/v1/object/{bucket}/{key}"));
    let response = request.send().await?.error_for_status()?;
    Ok(response.bytes().await?.to_vec())
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

async fn orphans(app: &TestApp) -> usize {
    sweep::sweep(&app.storage, Duration::ZERO).await.expect("a sweep")
}

#[actix_web::test]
async fn every_operation_works_and_leaves_one_file_per_row() {
    let store = Store::start().await;
    let app = store.app().await;
    // Short, spooled, exactly one part, several parts, and a key with an empty segment.
    for (key, length) in [
        ("empty", 0),
        ("a/short.txt", 11),
        ("a//middle", 2_000_000),
        ("one part", 5 << 20),
        ("several", (12 << 20) + 7),
    ] {
        let body = bytes(length);
        let stored = put(&app, key, body.clone()).await;
        assert_eq!(stored.0, 200, "{key}: {}", stored.1);
        assert!(get(&app, "docs", key).await.expect(key) == body, "{key}");
    }
    let ranged =
        app.service().request(Method::GET, "/storage/v1/object/docs/several").header("range", "bytes=5242870-5242890");
    let ranged = ranged.send().await.expect("an answer");
    assert_eq!(
        (ranged.status().as_u16(), ranged.headers()["content-range"].to_str().expect("text")),
        (206, "bytes 5242870-5242890/12582919")
    );
    assert!(ranged.bytes().await.expect("a range")[..] == bytes(12 << 20)[5_242_870..=5_242_890]);

    let route = |to: &str| json!({ "bucketId": "docs", "sourceKey": "several", "destinationBucket": "more", "destinationKey": to });
    assert_eq!(app.service().post("/storage/v1/object/copy", route("copy")).await.status, 200);
    assert_eq!(app.service().post("/storage/v1/object/move", route("moved")).await.status, 200);
    for key in ["copy", "moved"] {
        assert!(get(&app, "more", key).await.expect(key) == bytes((12 << 20) + 7), "{key}");
    }
    assert!(get(&app, "docs", "several").await.is_err());
    assert_eq!(put(&app, "a/short.txt", b"replaced".to_vec()).await.0, 200);
    assert_eq!(get(&app, "docs", "a/short.txt").await.expect("the new one"), b"replaced");
    assert_eq!(orphans(&app).await, 0, "replaced and moved files are removed from the store");

    // Deleting a row directly leaves an orphaned file; many removals are one request.
    app.owner
        .batch_execute("set storage.allow_delete_query = 'true'; delete from storage.objects where name = 'one part'")
        .await
        .expect("gone");
    assert_eq!(orphans(&app).await, 1);
    let all = json!({ "prefixes": ["empty", "a/short.txt", "a//middle", "none"] });
    let removed = send(app.service().request(Method::DELETE, "/storage/v1/object/docs").json(&all)).await;
    assert_eq!(removed.body.as_array().map(Vec::len), Some(3), "{}", removed.body);
    assert!(get(&app, "docs", "empty").await.is_err());
    assert_eq!(orphans(&app).await, 0);
}

#[actix_web::test]
async fn the_sweep_keeps_multipart_uploads_in_progress() {
    let store = Store::start().await;
    let app = store.app().await;
    let body = bytes(12 << 20);
    let (first, rest) = body.split_at(11 << 20);
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<std::io::Result<Vec<u8>>>();
    sender.send(Ok(first.to_vec())).expect("sent");
    let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    let upload = app
        .service()
        .request(Method::POST, "/storage/v1/object/docs/slow")
        .header("content-type", "application/octet-stream")
        .body(reqwest::Body::wrap_stream(stream));
    let upload = tokio::spawn(send(upload));
    // Parts are being uploaded once the store has some.
    let server = store._server.as_ref();
    let begun = async || match server {
        Some(server) => {
            let rows = "select count(*) from storage.s3_multipart_uploads_parts";
            server.owner.query_one(rows, &[]).await.expect("a count").get::<_, i64>(0) > 0
        }
        None => true,
    };
    while !begun().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(orphans(&app).await, 0);
    sender.send(Ok(rest.to_vec())).expect("sent");
    drop(sender);
    let stored = upload.await.expect("an upload");
    assert_eq!(stored.status, 200, "{}", stored.body);
    assert!(get(&app, "docs", "slow").await.expect("the whole") == body);
}

#[actix_web::test]
async fn resumable_uploads_with_short_and_long_parts_are_joined() {
    let store = Store::start().await;
    let app = store.app().await;
    let body = bytes((11 << 20) + 5);
    // Parts of 6 MiB are copied by the store; shorter ones pass through this server.
    for (key, piece) in [("long", 6 << 20), ("short", 1 << 20), ("mixed", 4 << 20)] {
        use base64::Engine as _;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let metadata = format!("bucketName {},objectName {}", encode("docs"), encode(key));
        let tus = |method, path: &str| app.service().request(method, path).header("tus-resumable", "1.0.0");
        let created = tus(Method::POST, "/storage/v1/upload/resumable")
            .header("upload-length", body.len().to_string())
            .header("upload-metadata", metadata);
        let created = created.send().await.expect("created");
        assert_eq!(created.status(), 201);
        let location = created.headers()["location"].to_str().expect("an address").replace(&app.base, "");
        let mut at = 0;
        while at < body.len() {
            let end = (at + piece).min(body.len());
            let patched = tus(Method::PATCH, &location)
                .header("upload-offset", at.to_string())
                .header("content-type", "application/offset+octet-stream")
                .body(body[at..end].to_vec());
            assert_eq!(patched.send().await.expect("an answer").status(), 204, "{key} at {at}");
            at = end;
        }
        assert!(get(&app, "docs", key).await.expect(key) == body, "{key}");
    }
    assert_eq!(orphans(&app).await, 0, "the parts are gone");
}

#[actix_web::test]
async fn a_hanging_store_times_out_and_blocks_nothing_else() {
    let mut store = Store::start().await;
    store.client_timeout = "700";
    let valve = Valve::before(&store.endpoint).await;
    let app = store.app_at(&valve.url(&store.endpoint)).await;
    assert_eq!(put(&app, "there", bytes(1000)).await.0, 200);
    valve.freeze();
    let begun = Instant::now();
    for length in [1000, 12 << 20] {
        let (status, body) = put(&app, "not there", bytes(length)).await;
        assert_eq!((status, body["statusCode"].as_str()), (503, Some("503")), "{body}");
    }
    let read = app.service().get("/storage/v1/object/docs/there").await;
    assert_eq!((read.status, read.header("retry-after")), (503, "1"));
    // Rows are in the database, so metadata is still available.
    let info = app.service().get("/storage/v1/object/info/docs/there").await;
    assert_eq!(info.body["size"], 1000);
    let listed = app.service().post("/storage/v1/object/list/docs", json!({ "prefix": "" })).await;
    assert_eq!(listed.body.as_array().map(Vec::len), Some(1), "{}", listed.body);
    assert!(begun.elapsed() < Duration::from_secs(120), "limits hold");
    valve.thaw();
    assert_eq!(get(&app, "docs", "there").await.expect("again"), bytes(1000));
}

#[actix_web::test]
async fn interrupted_store_downloads_resume_and_never_look_complete() {
    let store = Store::start().await;
    let cutter = Cutter::before(&store.endpoint).await;
    let app = store.app_at(&cutter.url).await;
    let body = bytes(8 << 20);
    assert_eq!(put(&app, "x", body.clone()).await.0, 200);
    cutter.cut(1);
    assert!(get(&app, "docs", "x").await.expect("the whole") == body);
    cutter.cut(usize::MAX);
    assert!(get(&app, "docs", "x").await.is_err(), "it must not end as if it were whole");
    // Regression: a download that was resumed waited for its own connection.
    cutter.cut(0);
    let narrow = store.app_with(&cutter.url, &[("STORAGE_S3_MAX_SOCKETS", "1")]).await;
    assert_eq!(put(&narrow, "x", body.clone()).await.0, 200);
    // The connection of the upload, and the next one in the middle of the download.
    cutter.cut(2);
    assert!(get(&narrow, "docs", "x").await.expect("the whole") == body);
    cutter.cut(usize::MAX);
    // An interrupted upload leaves no row.
    let refused = put(&app, "y", bytes(8 << 20)).await;
    assert_eq!((refused.0, refused.1["statusCode"].as_str()), (503, Some("503")), "{}", refused.1);
    cutter.cut(0);
    let rows = app.service().post("/storage/v1/object/list/docs", json!({ "prefix": "" })).await;
    assert_eq!(rows.body.as_array().map(Vec::len), Some(1), "{}", rows.body);
}

#[actix_web::test]
async fn store_errors_are_reported_at_startup_and_in_answers() {
    let closed = format!("127.0.0.1:{}", free_port());
    let store =
        Store { _server: None, endpoint: format!("http://{closed}"), tenant: "t".to_owned(), client_timeout: "500" };
    let app = store.app().await;
    let (status, body) = put(&app, "x", b"x".to_vec()).await;
    assert_eq!((status, body["statusCode"].as_str()), (503, Some("503")), "{body}");
    assert_eq!(body["message"], "The storage server cannot work at the moment. Please try again later.");

    let none = app.try_another(&[("STORAGE_BACKEND", "s3")]).await.err().expect("refused").to_string();
    for name in ["STORAGE_S3_BUCKET", "AWS_ACCESS_KEY_ID"] {
        assert!(none.contains(name), "{none}");
    }
    let wrong = app.try_another(&[("STORAGE_BACKEND", "ftp")]).await.err().expect("refused").to_string();
    assert!(wrong.contains("STORAGE_BACKEND must be file or s3"), "{wrong}");
}

/// Regression: a transfer failed when it took longer than the client's timeout, however steadily the bytes came.
#[actix_web::test]
async fn a_slow_store_has_time_for_a_transfer_and_a_stalled_one_does_not() {
    let mut store = Store::start().await;
    store.client_timeout = "2000";
    let valve = Valve::before(&store.endpoint).await;
    let app = store.app_at(&valve.url(&store.endpoint)).await;
    // Less than 1 MB/s.
    valve.slow(Duration::from_millis(20));
    let body = bytes(4 << 20);
    let begun = Instant::now();
    let stored = put(&app, "slow", body.clone()).await;
    assert_eq!(stored.0, 200, "{}", stored.1);
    assert!(begun.elapsed() > Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(get(&app, "docs", "slow").await.expect("the whole") == body);
    let request = app.service().request(Method::GET, "/storage/v1/object/docs/slow");
    let response = request.send().await.expect("an answer");
    valve.freeze();
    let begun = Instant::now();
    assert!(response.bytes().await.is_err(), "it must not end as if it were whole");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// Regression: such an object was sent as an empty one.
#[actix_web::test]
async fn an_answer_of_the_store_without_a_length_is_an_error() {
    let store = Store::start().await;
    let liar = Liar::before(&store.endpoint).await;
    let app = store.app_at(&liar.url).await;
    assert_eq!(put(&app, "x", b"hello world".to_vec()).await.0, 200);
    let path = "/storage/v1/object/docs/x";
    liar.answer("/docs/x/", "Connection: close\r\n\r\nhello");
    let read = app.service().get(path).await;
    assert_eq!((read.status, &read.body["statusCode"]), (503, &json!("503")), "{}", read.body);
    liar.answer("/docs/x/", "Content-Length: 5\r\n\r\nhello");
    let read = app.service().get(path).await;
    assert_eq!((read.status, &read.body["statusCode"]), (500, &json!("500")), "{}", read.body);
    liar.answer("nothing", "");
    assert_eq!(app.service().get(path).await.body, "hello world");
}

/// Regression: a page that names no next one was taken for the last, and one that names itself was read for ever.
#[actix_web::test]
async fn a_listing_of_the_store_that_does_not_go_on_is_an_error() {
    let store = Store::start().await;
    let liar = Liar::before(&store.endpoint).await;
    let app = store.app_at(&liar.url).await;
    let page = |root: &str, rest: &str| {
        let body = format!("<{root}><IsTruncated>true</IsTruncated>{rest}</{root}>");
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let uploads = "<NextKeyMarker>a</NextKeyMarker><NextUploadIdMarker>b</NextUploadIdMarker>";
    for (asked, answer) in [
        ("list-type=2", page("ListBucketResult", "")),
        ("list-type=2", page("ListBucketResult", "<NextContinuationToken>a</NextContinuationToken>")),
        ("uploads=", page("ListMultipartUploadsResult", "<NextKeyMarker>a</NextKeyMarker>")),
        ("uploads=", page("ListMultipartUploadsResult", uploads)),
    ] {
        liar.answer(asked, &answer);
        let swept = tokio::time::timeout(Duration::from_secs(20), sweep::sweep(&app.storage, Duration::ZERO)).await;
        let error = swept.expect("an end").expect_err("refused").to_string();
        assert_eq!(error, "The storage server cannot work at the moment. Please try again later.", "{answer}");
    }
}

#[actix_web::test]
async fn only_two_long_joins_of_short_parts_are_made_at_a_time() {
    let store = Store::start().await;
    let Some(server) = &store._server else { return };
    let valve = Valve::before(&store.endpoint).await;
    let app = store.app_at(&valve.url(&store.endpoint)).await;
    let body = bytes(6 << 20);
    let piece = 3 << 20;
    let mut last = Vec::new();
    for key in ["a", "b", "c", "d"] {
        use base64::Engine as _;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let tus = |method, path: &str| app.service().request(method, path).header("tus-resumable", "1.0.0");
        let patch = |path: &str, at: usize| {
            let request = tus(Method::PATCH, path).header("content-type", "application/offset+octet-stream");
            request.header("upload-offset", at.to_string()).body(body[at..at + piece].to_vec())
        };
        let created = tus(Method::POST, "/storage/v1/upload/resumable")
            .header("upload-length", body.len().to_string())
            .header("upload-metadata", format!("bucketName {},objectName {}", encode("docs"), encode(key)));
        let created = created.send().await.expect("created");
        let location = created.headers()["location"].to_str().expect("an address").replace(&app.base, "");
        assert_eq!(patch(&location, 0).send().await.expect("an answer").status(), 204);
        last.push(patch(&location, piece));
    }
    valve.slow(Duration::from_millis(4));
    let joins: Vec<_> = last.into_iter().map(|request| tokio::spawn(send(request))).collect();
    // Only joins begin uploads in parts at the store: each part is sent in one request.
    let mut most = 0;
    while !joins.iter().all(|join| join.is_finished()) {
        let count = "select count(*) from storage.s3_multipart_uploads";
        most = most.max(server.owner.query_one(count, &[]).await.expect("a count").get::<_, i64>(0));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for join in joins {
        let joined = join.await.expect("an answer");
        assert_eq!(joined.status, 204, "{}", joined.body);
    }
    assert_eq!(most, 2);
    valve.slow(Duration::ZERO);
    assert!(get(&app, "docs", "d").await.expect("the whole") == body);
}

/// Regression: a client that hung up ended the join, so that a large upload could never be completed.
#[actix_web::test]
async fn a_completion_goes_on_without_its_client_and_a_repeated_one_waits_for_it() {
    let store = Store::start().await;
    let Some(server) = &store._server else { return };
    let valve = Valve::before(&store.endpoint).await;
    let app = store.app_at(&valve.url(&store.endpoint)).await;
    let s3 = Signer::project(&app);
    let begun = text(s3.send(Method::POST, "/docs/big", "uploads=", &[], b"").await).await;
    let id = between(&begun.1, "UploadId").to_owned();
    let body = bytes((5 << 20) + 1000);
    let mut named = String::new();
    for (number, part) in [(1, &body[..5 << 20]), (2, &body[5 << 20..])] {
        let query = format!("partNumber={number}&uploadId={id}");
        let stored = s3.send(Method::PUT, "/docs/big", &query, &[], part).await;
        assert_eq!(stored.status(), 200);
        let etag = stored.headers()["etag"].to_str().expect("text");
        named.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"));
    }
    let named = format!("<CompleteMultipartUpload>{named}</CompleteMultipartUpload>");
    let query = format!("uploadId={id}");
    let complete = || s3.send(Method::POST, "/docs/big", &query, &[], named.as_bytes());
    let watch = "create table public.begun (id text);
        create function public.note() returns trigger language plpgsql security definer as $$ begin
          insert into public.begun values (new.id); return new; end $$;
        create trigger note before insert on storage.s3_multipart_uploads for each row execute function public.note()";
    server.owner.batch_execute(watch).await.expect("a trigger");
    valve.slow(Duration::from_millis(400));
    assert!(tokio::time::timeout(Duration::from_secs(1), complete()).await.is_err(), "the client hangs up");
    let repeated = text(complete().await).await;
    assert_eq!(repeated.0, 200, "{}", repeated.1);
    let count = "select count(*) from public.begun";
    assert_eq!(server.owner.query_one(count, &[]).await.expect("a count").get::<_, i64>(0), 1);
    valve.slow(Duration::ZERO);
    assert_eq!(text(complete().await).await, repeated, "its answer was lost");
    let other = text(s3.send(Method::POST, "/docs/big", &query, &[], b"").await).await;
    assert_eq!((other.0, between(&other.1, "Code")), (404, "NoSuchUpload"));
    assert!(get(&app, "docs", "big").await.expect("the whole") == body);
    assert_eq!(orphans(&app).await, 0);
}

/// Regression: two clients that did not read their downloads held all connections to the store.
#[actix_web::test]
async fn a_client_that_does_not_read_leaves_connections_for_others() {
    let store = Store::start().await;
    let settings = [("STORAGE_S3_MAX_SOCKETS", "2"), ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1")];
    let app = store.app_with(&store.endpoint, &settings).await;
    // Larger than the socket and stream buffers on the way.
    assert_eq!(put(&app, "large", bytes(40 << 20)).await.0, 200);
    assert_eq!(put(&app, "small", b"small".to_vec()).await.0, 200);
    let mut holding = Vec::new();
    for _ in 0..3 {
        let mut connection = TcpStream::connect(app.base.trim_start_matches("http://")).await.expect("a connection");
        let head =
            "GET /storage/v1/object/public/docs/large HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n";
        connection.write_all(head.as_bytes()).await.expect("sent");
        // The first client has its answer, and so a connection to the store, before the others ask.
        if holding.is_empty() {
            let mut answer = [0; 15];
            connection.read_exact(&mut answer).await.expect("an answer");
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
        }
        holding.push(connection);
    }
    for _ in 0..5 {
        let request =
            app.plain(Method::GET, "/storage/v1/object/public/docs/small").header("x-forwarded-for", "192.0.2.1");
        let read = send(request).await;
        assert_eq!((read.status, &read.body), (200, &json!("small")));
    }
}

/// The output of `pg_dump --data-only` for these tables.
async fn dump(client: &tokio_postgres::Client, tables: &[&str]) -> String {
    let mut text = String::from("SET session_replication_role = replica;\n");
    for table in tables {
        let columns = "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
            where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''";
        let columns: String = client.query_one(columns, &[table]).await.expect("columns").get(0);
        let rows = client.copy_out(&format!("copy {table} ({columns}) to stdout")).await.expect("rows");
        let rows: Vec<bytes::Bytes> = futures_util::TryStreamExt::try_collect(rows).await.expect("rows");
        let rows = String::from_utf8(rows.concat()).expect("text");
        text.push_str(&format!("\nCOPY {table} ({columns}) FROM stdin;\n{rows}\\.\n"));
    }
    text
}

/// A project whose files are in an S3 store moves with just a dump of its database, because the files stay in place.
#[actix_web::test]
async fn a_restored_dump_finds_its_files_in_the_store() {
    let store = Store::start().await;
    let app = store.app().await;
    let alice = app.user("alice@test.example").await;
    let own = "create policy own on storage.objects to authenticated using (owner_id = auth.uid()::text)";
    app.owner.batch_execute(own).await.expect("a policy");
    let metadata = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, r#"{"to":"A\tL."}"#);
    let letter =
        alice.actor.request(Method::POST, "/storage/v1/object/more/a letter.txt").header("x-metadata", metadata);
    let letter = letter.header("content-type", "text/plain").header("cache-control", "max-age=7").body("Dear A");
    assert_eq!(send(letter).await.status, 200);
    let files = [("several", (12 << 20) + 7), ("a//b", 2_000_000), ("empty", 0), ("removed", 3)];
    for (key, length) in files {
        assert_eq!(put(&app, key, bytes(length)).await.0, 200, "{key}");
    }
    assert_eq!(put(&app, "a//b", bytes(1_000)).await.0, 200, "replaced");
    let moved =
        json!({ "bucketId": "docs", "sourceKey": "several", "destinationBucket": "more", "destinationKey": "s" });
    assert_eq!(app.service().post("/storage/v1/object/move", moved).await.status, 200);
    assert_eq!(app.service().delete("/storage/v1/object/docs/removed").await.status, 200);
    // A file in Supabase's layout: tenant, bucket, name, version.
    let version = uuid::Uuid::new_v4();
    if let Some(server) = &store._server {
        let place = format!("/storage/v1/object/files/{}/docs/hosted/by them.txt/{version}", store.tenant);
        let put = server.service().request(Method::POST, &place).header("content-type", "text/plain").body("theirs");
        assert_eq!(send(put).await.status, 200);
        let row =
            "insert into storage.objects (bucket_id, name, version, metadata) values ('docs', 'hosted/by them.txt', $1,
            '{\"eTag\": \"\\\"x\\\"\", \"size\": 6, \"mimetype\": \"text/plain\", \"cacheControl\": \"no-cache\"}')";
        app.owner.execute(row, &[&version.to_string()]).await.expect("a row");
    }
    let tables = ["auth.users", "storage.buckets", "storage.objects", "storage.s3_multipart_uploads"];
    let text = dump(&app.owner, &tables).await;
    let info = "/storage/v1/object/info/authenticated/more/a letter.txt";
    let before = alice.actor.get(info).await.body;
    let token = alice.actor.token.clone().expect("a token");
    drop(alice);
    drop(app);

    let app = store.empty_app(&store.endpoint, &[]).await;
    // The application's own rows come with the dump.
    let none = "set storage.allow_delete_query = 'true'; delete from storage.buckets; reset all";
    app.owner.batch_execute(none).await.expect("no buckets");
    crate::support::dump::restore(&app.owner, &text).await;
    app.owner.batch_execute(own).await.expect("a policy");
    let ask = |path: &str, token: &str| send(app.anon().request(Method::GET, path).bearer_auth(token));
    let after = ask(info, &token).await;
    assert_eq!(
        (after.status, &after.body),
        (200, &before),
        "the row is the same, and its owner's token still opens it"
    );
    assert_eq!(after.body["metadata"], json!({ "to": "A\tL." }));
    assert_eq!(ask("/storage/v1/object/authenticated/more/a letter.txt", &token).await.body, "Dear A");
    assert_eq!(ask("/storage/v1/object/authenticated/more/a letter.txt", &app.anon_key).await.status, 400);
    assert!(get(&app, "more", "s").await.expect("moved") == bytes((12 << 20) + 7));
    assert!(get(&app, "docs", "a//b").await.expect("replaced") == bytes(1_000));
    assert_eq!(get(&app, "docs", "empty").await.expect("empty"), b"");
    assert!(get(&app, "docs", "removed").await.is_err() && get(&app, "docs", "several").await.is_err());
    if store._server.is_some() {
        assert_eq!(get(&app, "docs", "hosted/by them.txt").await.expect("theirs"), b"theirs");
    }
    assert_eq!(orphans(&app).await, 0, "every file is a row's");
    // The copy continues to work with them.
    let route = json!({ "bucketId": "more", "sourceKey": "s", "destinationBucket": "docs", "destinationKey": "again" });
    assert_eq!(app.service().post("/storage/v1/object/copy", route).await.status, 200);
    assert_eq!(app.service().delete("/storage/v1/object/more/s").await.status, 200);
    assert!(get(&app, "docs", "again").await.expect("copied") == bytes((12 << 20) + 7));
    assert_eq!(orphans(&app).await, 0);
}

/// A socket for a proxy to the store, the address of the store, and the store's URL by way of the proxy.
async fn proxy_before(endpoint: &str) -> (TcpListener, (String, u16), url::Url) {
    let mut url = url::Url::parse(endpoint).expect("a URL");
    let inside = (url.host_str().expect("a host").to_owned(), url.port().unwrap_or(80));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    url.set_port(Some(listener.local_addr().expect("address").port())).expect("a port");
    url.set_host(Some("127.0.0.1")).expect("a host");
    (listener, inside, url)
}

/// A proxy to the store that can cut connections in mid-transfer.
struct Cutter {
    url: String,
    /// Number of connections to cut.
    cuts: Arc<AtomicUsize>,
}

/// Bytes that a connection to be cut transfers in either direction.
const CARRIES: usize = 1 << 20;

impl Cutter {
    async fn before(endpoint: &str) -> Self {
        let (listener, inside, url) = proxy_before(endpoint).await;
        let cuts = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&cuts);
        tokio::spawn(async move {
            while let Ok((mut outer, _)) = listener.accept().await {
                let (inside, left) = (inside.clone(), Arc::clone(&left));
                tokio::spawn(async move {
                    let Ok(mut inner) = TcpStream::connect(inside).await else { return };
                    let (mut sent, mut answered) = (vec![0; 16 << 10], vec![0; 16 << 10]);
                    let mut carried = 0;
                    loop {
                        let length = tokio::select! {
                            Ok(length @ 1..) = outer.read(&mut sent) => {
                                if inner.write_all(&sent[..length]).await.is_err() { return }
                                length
                            }
                            Ok(length @ 1..) = inner.read(&mut answered) => {
                                if outer.write_all(&answered[..length]).await.is_err() { return }
                                length
                            }
                            else => return,
                        };
                        carried += length;
                        let one_less = |left: usize| left.checked_sub(1);
                        if carried > CARRIES && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less).is_ok()
                        {
                            return;
                        }
                    }
                });
            }
        });
        Self { url: url.into(), cuts }
    }

    fn cut(&self, connections: usize) {
        self.cuts.store(connections, Ordering::Release);
    }
}

/// A proxy to the store that answers some requests itself.
struct Liar {
    url: String,
    /// Part of the request line, and the rest of the answer after its status.
    answer: tokio::sync::watch::Sender<(String, String)>,
}

impl Liar {
    async fn before(endpoint: &str) -> Self {
        let (listener, inside, url) = proxy_before(endpoint).await;
        let (answer, answers) = tokio::sync::watch::channel(("nothing".to_owned(), String::new()));
        tokio::spawn(async move {
            while let Ok((mut outer, _)) = listener.accept().await {
                let (inside, answers) = (inside.clone(), answers.clone());
                tokio::spawn(async move {
                    let mut head = vec![0; 16 << 10];
                    let Ok(length @ 1..) = outer.read(&mut head).await else { return };
                    let line = String::from_utf8_lossy(&head[..length]).lines().next().unwrap_or_default().to_owned();
                    let (asked, rest) = answers.borrow().clone();
                    if line.contains(&asked) {
                        let _ = outer.write_all(format!("HTTP/1.1 200 OK\r\n{rest}").as_bytes()).await;
                        return;
                    }
                    let Ok(mut inner) = TcpStream::connect(inside).await else { return };
                    // Each request has a connection of its own, so that each is looked at.
                    let rest = &head[line.len()..length];
                    let head = [line.as_bytes(), b"\r\nConnection: close", rest].concat();
                    if inner.write_all(&head).await.is_ok() {
                        let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
                    }
                });
            }
        });
        Self { url: url.into(), answer }
    }

    /// Answers requests whose first line contains `asked`, from now on.
    fn answer(&self, asked: &str, rest: &str) {
        self.answer.send_replace((asked.to_owned(), rest.to_owned()));
    }
}
