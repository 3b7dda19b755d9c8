//! `serve --only storage` as a process: Supabase Storage's settings, its routes at `/`, its defaults.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{EncodingKey, Header, encode};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::ports::free_port;
use crate::support::valve::until;

const SECRET: &str = "super-secret-jwt-token-with-at-least-32-characters-long";
const OTHER: &str = "another secret, which is only in the set of keys";

struct Alone {
    process: Child,
    base: String,
    http: Client,
    token: String,
}

const BINARY: &str = env!("CARGO_BIN_EXE_ferrobase");

impl Alone {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--only", "storage"]);
        Self::run(command, settings).await
    }

    async fn run(mut command: Command, settings: &[(&str, &str)]) -> Self {
        let port = free_port();
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").envs(settings.iter().copied());
        command.env("SERVER_HOST", "127.0.0.1").env("SERVER_PORT", port.to_string()).env("AUTH_JWT_SECRET", SECRET);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the binary runs");
        let mut alone =
            Self { process, base: format!("http://127.0.0.1:{port}"), http: Client::new(), token: token(SECRET) };
        while alone.http.get(format!("{}/status", alone.base)).send().await.is_err() {
            assert!(alone.process.try_wait().expect("a child").is_none(), "the server ended");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        alone
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    async fn json(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let answer = self.request(method, path).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn token(secret: &str) -> String {
    let claims = json!({ "role": "service_role", "exp": 4_000_000_000_i64 });
    encode(&Header::default(), &claims, &EncodingKey::from_secret(secret.as_bytes())).expect("a token")
}

#[actix_web::test]
async fn our_server_replaces_supabases_on_its_database_and_files() {
    let app = TestApp::start().await;
    // A database as Supabase's own migrations create it.
    app.owner
        .batch_execute(
            "drop table _supavisor.resumable_parts, _supavisor.resumable_uploads, _supavisor.emptied_buckets cascade",
        )
        .await
        .expect("dropped");
    let files = std::env::temp_dir().join(format!("ferrobase-alone-{}", uuid::Uuid::new_v4()));
    let jwks = json!({ "keys": [{ "kty": "oct", "alg": "HS256", "k": URL_SAFE_NO_PAD.encode(OTHER) }] }).to_string();
    let settings = [
        ("DATABASE_URL", app.owner_url.as_str()),
        ("JWT_JWKS", &jwks),
        ("STORAGE_BACKEND", "file"),
        ("FILE_STORAGE_BACKEND_PATH", files.to_str().expect("text")),
        ("GLOBAL_S3_BUCKET", "stub"),
        ("TENANT_ID", "stub"),
        ("FILE_SIZE_LIMIT", "1000"),
    ];
    let mut alone = Alone::start(&settings).await;
    assert_eq!(
        alone.json(Method::POST, "/bucket", json!({ "name": "b", "public": true })).await,
        (200, json!({ "name": "b" }))
    );
    let stored = alone.request(Method::POST, "/object/b/a.txt").body("hello").send().await.expect("an answer");
    assert_eq!(stored.status(), 200);
    let read = alone.http.get(format!("{}/object/public/b/a.txt", alone.base)).send().await.expect("an answer");
    assert_eq!(read.text().await.expect("a body"), "hello");
    assert!(files.join("stub/stub/b/a.txt").is_dir(), "laid out as Supabase does");
    let large = alone.request(Method::POST, "/object/b/large").body("x".repeat(1001)).send().await.expect("an answer");
    assert_eq!(large.json::<Value>().await.expect("JSON")["statusCode"], "413");

    let (_, signed) = alone.json(Method::POST, "/object/upload/sign/b/c.txt", json!({})).await;
    let claims = signed["token"].as_str().expect("a token").split('.').nth(1).expect("claims").to_owned();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
    assert_eq!(claims["exp"].as_i64().expect("exp") - claims["iat"].as_i64().expect("iat"), 60);

    let metadata = format!("bucketName {},objectName {}", STANDARD.encode("b"), STANDARD.encode("tus"));
    let created = alone.request(Method::POST, "/upload/resumable").header("tus-resumable", "1.0.0");
    let created =
        created.header("upload-length", "5").header("upload-metadata", metadata).send().await.expect("an answer");
    let location = created.headers()["location"].to_str().expect("an address").to_owned();
    assert!(location.starts_with(&format!("{}/upload/resumable/", alone.base)), "{location}");

    // Image transformation is off by default, as upstream.
    let render = alone.request(Method::GET, "/render/image/public/b/a.txt").send().await.expect("an answer");
    assert_eq!(render.status(), 404);
    alone.token = token(OTHER);
    assert_eq!(
        alone.request(Method::GET, "/bucket/b").send().await.expect("an answer").status(),
        200,
        "a key of the set"
    );
    alone.token = token("a secret that nobody has told the server of");
    let (_, refused) = alone.json(Method::GET, "/bucket/b", json!({})).await;
    assert_eq!(refused["statusCode"], "403");
    drop(alone);
    std::fs::remove_dir_all(files).expect("clean");
}

#[actix_web::test]
async fn all_missing_settings_are_reported_at_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
    command.args(["serve", "--only", "storage"]).env_clear().env("STORAGE_BACKEND", "s3").env("MULTI_TENANT", "true");
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut said = String::new();
    process.stderr.take().expect("its output").read_to_string(&mut said).expect("text");
    assert!(!process.wait().expect("it ends").success());
    for name in ["DATABASE_URL", "AUTH_JWT_SECRET", "STORAGE_S3_BUCKET", "AWS_ACCESS_KEY_ID", "MULTI_TENANT"] {
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// The number of files below a folder, and their total size.
fn held(folder: &Path) -> (usize, u64) {
    let (mut count, mut bytes, mut waiting) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let known = entry.metadata().expect("it is there");
            if known.is_dir() {
                waiting.push(entry.path());
            } else {
                (count, bytes) = (count + 1, bytes + known.len());
            }
        }
    }
    (count, bytes)
}

/// The server's files are on a separate file system of 4 MB.
#[actix_web::test]
async fn a_full_disk_is_reported_and_leaves_no_partial_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("text");
    let mount = |then: &str| {
        let mut command = Command::new("unshare");
        // Users other than root use a user namespace, if allowed.
        let is_root = rustix::process::geteuid().is_root();
        command.args([if is_root { "-m" } else { "-rm" }, "sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size=4m none {place} && {then}"));
        command
    };
    if !mount("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("not tried: nothing may be mounted here");
        return;
    }
    let app = TestApp::start().await;
    let settings = [
        ("DATABASE_URL", app.owner_url.as_str()),
        ("STORAGE_BACKEND", "file"),
        ("FILE_STORAGE_BACKEND_PATH", place),
        ("GLOBAL_S3_BUCKET", "stub"),
        ("TENANT_ID", "stub"),
    ];
    let alone = Alone::run(mount(&format!("exec {BINARY} serve --only storage")), &settings).await;
    let seen = Path::new("/proc").join(alone.process.id().to_string()).join("root").join(place.trim_start_matches('/'));
    assert_eq!(alone.json(Method::POST, "/bucket", json!({ "name": "b" })).await.0, 200);
    let upload = async |path: &str, length: usize| {
        let upload = alone.request(Method::POST, path).header("content-type", "text/plain").body(vec![b'x'; length]);
        upload.send().await.expect("an answer")
    };
    assert_eq!(upload("/object/b/kept", 1 << 20).await.status(), 200);
    let before = held(&seen);
    assert_eq!(before, (1, 1 << 20));

    let metadata = format!("bucketName {},objectName {}", STANDARD.encode("b"), STANDARD.encode("tus"));
    let begin = alone.request(Method::POST, "/upload/resumable").header("tus-resumable", "1.0.0");
    let begun = begin.header("upload-length", 6 << 20).header("upload-metadata", metadata).send().await;
    let location = begun.expect("an answer").headers()["location"].to_str().expect("an address").to_owned();
    let part = alone.http.patch(&location).bearer_auth(&alone.token).header("tus-resumable", "1.0.0");
    let part = part.header("content-type", "application/offset+octet-stream").header("upload-offset", 0);
    let part = part.body(vec![b'x'; 6 << 20]).send().await.expect("an answer");
    for refused in [upload("/object/b/large", 6 << 20).await, part] {
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
    }
    // The answer does not wait until the file is removed from disk.
    until("what was begun is removed", async || held(&seen) == before).await;
    let rows = "select string_agg(name, ' ') from storage.objects";
    assert_eq!(app.owner.query_one(rows, &[]).await.expect("rows").get::<_, String>(0), "kept");
    // Small files still fit.
    assert_eq!(upload("/object/b/small", 1 << 20).await.status(), 200);
    let kept = alone.request(Method::GET, "/object/b/kept").send().await.expect("an answer");
    assert_eq!(kept.bytes().await.expect("a file").len(), 1 << 20);
}
