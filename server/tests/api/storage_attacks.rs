//! Attacks on storage: pages on our origin, disguised keys, extended links.

use crate::support::valve::until;
use crate::support::{Actor, Reply, TestApp, send};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ferrobase::storage::sweep;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;

const SCHEMA: &str = "
    insert into storage.buckets (id, name, public) values ('open', 'open', true), ('own', 'own', false);
    create policy own on storage.objects for all to authenticated
      using ((storage.foldername(name))[1] = auth.uid()::text) with check ((storage.foldername(name))[1] = auth.uid()::text);
";

async fn upload(actor: &Actor<'_>, path: &str, mime: &str, body: &str) -> Reply {
    let request = actor.request(Method::POST, &format!("/storage/v1/object/{path}")).header("x-upsert", "true");
    send(request.header("content-type", mime).body(body.to_owned())).await
}

/// Regression: such a header overflowed a stack, which ended the process.
#[actix_web::test]
async fn a_header_with_countless_colons_is_refused() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let request = app.service().request(Method::POST, "/storage/v1/object/open/a");
    let refused = send(request.header("x-robots-tag", "a:".repeat(60_000)).body("x")).await;
    assert_eq!((refused.status, &refused.body["error"]), (400, &json!("invalid_x_robots_tag")), "{}", refused.body);
    assert_eq!(upload(&app.service(), "open/a", "text/plain", "x").await.status, 200, "the server is still there");
}

/// An uploaded script must not run on the app's origin, whatever its name or media type and however it is fetched.
#[actix_web::test]
async fn uploads_never_run_on_the_apps_origin() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    let page = "<script>fetch('/rest/v1/')</script>";
    for (name, mime) in [
        ("html", "text/html"),
        ("upper", "TEXT/HTML; charset=utf-8"),
        ("padded", " text/html"),
        ("xhtml", "application/xhtml+xml"),
        ("svg", "image/svg+xml"),
        ("xml", "text/xml"),
        ("xsl", "application/xslt+xml"),
        ("js", "text/javascript"),
        ("mht", "multipart/related"),
        ("none", ""),
        ("two", "image/png, application/xhtml+xml"),
        ("pdf", "application/pdf"),
        ("png", "image/png"),
    ] {
        // Two types in one are refused, but may be in a row of another server.
        let sent = if name == "two" { "image/png" } else { mime };
        let stored = upload(&service, &format!("open/{name}"), sent, page).await;
        assert_eq!(stored.status, 200, "{mime}: {}", stored.body);
        if sent != mime {
            let set = "update storage.objects set metadata = metadata || jsonb_build_object('mimetype', $2::text) where name = $1";
            assert_eq!(app.owner.execute(set, &[&name, &mime]).await.expect("a row"), 1);
        }
        let sign = service.post(&format!("/storage/v1/object/sign/open/{name}"), json!({ "expiresIn": 60 })).await;
        let link = format!("/storage/v1{}", sign.body["signedURL"].as_str().expect("an address"));
        let public = format!("/storage/v1/object/public/open/{name}");
        for request in [
            app.plain(Method::GET, &public),
            app.plain(Method::HEAD, &public),
            app.plain(Method::GET, &public).header("range", "bytes=0-10"),
            app.plain(Method::GET, &link),
            service.request(Method::GET, &format!("/storage/v1/object/authenticated/open/{name}")),
        ] {
            let answer = request.send().await.expect("an answer");
            let header = |name: &str| answer.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("").to_owned();
            assert!(
                !header("content-type").to_ascii_lowercase().contains("html") || ["xhtml", "two"].contains(&name),
                "{}",
                header("content-type")
            );
            // Viewers of these types do not work in a sandbox, and run nothing.
            let policy = if ["pdf", "png"].contains(&name) { "" } else { "default-src 'none'; sandbox" };
            assert_eq!(header("content-security-policy"), policy, "{mime}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{mime}");
            assert_eq!(header("referrer-policy"), "no-referrer", "{mime}: the address may hold a token");
        }
    }
    // A download name cannot add headers or end the quotes.
    let named = app.plain(
        Method::GET,
        "/storage/v1/object/public/open/html?download=a%22%0d%0aSet-Cookie:%20x=1%00%E2%80%AEgpj.exe",
    );
    let named = named.send().await.expect("an answer");
    assert!(!named.headers().contains_key("set-cookie"));
    let disposition = named.headers()["content-disposition"].to_str().expect("text").to_owned();
    assert!(disposition.starts_with("attachment; filename=a%22%0D%0ASet-Cookie%3A%20x%3D1"), "{disposition}");
}

/// Keys that look alike, lead elsewhere or cannot be written down.
#[actix_web::test]
async fn keys_in_other_encodings_are_refused_and_never_mean_another_object() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let service = app.service();
    assert_eq!(upload(&service, "open/caf-e", "text/plain", "plain").await.status, 200);
    for key in [
        "caf%C3%A9",            // composed
        "cafe%CC%81",           // decomposed
        "%EF%BD%83af-e",        // full width
        "caf%E2%80%8B-e",       // with a zero-width space
        "%E2%80%AEe-fac",       // with a right-to-left override
        "a%2F..%2F..%2Fsecret", // path traversal
        "..%5C..%5Csecret",
        "%2e%2e%2fsecret",
        "a%00.png",
        "a%0A",
        "a%7F",
        "%C0%AE%C0%AE/secret", // overlong dots
        "%ED%A0%80",           // half a surrogate pair
    ] {
        let stored = upload(&service, &format!("open/{key}"), "text/plain", "x").await;
        assert_eq!((stored.status, &stored.body["statusCode"]), (400, &json!("400")), "{key}: {}", stored.body);
        assert_eq!(stored.body["code"], "InvalidKey", "{key}");
    }
    // Rows written by others may contain such names. They must not lead out of the folder.
    for name in ["../../../etc/passwd", "a/../../b", "/etc/passwd"] {
        let row =
            "insert into storage.objects (bucket_id, name, version, metadata) values ('open', $1, '', '{\"size\": 1}')";
        app.owner.execute(row, &[&name]).await.expect("a row");
        let read = app.service().get(&format!("/storage/v1/object/open/{}", name.replace('/', "%2F"))).await;
        assert!(read.status >= 400 && !read.body.to_string().contains("root:"), "{name}: {}", read.body);
        let route = json!({ "bucketId": "open", "sourceKey": name, "destinationKey": "taken" });
        let copied = app.service().post("/storage/v1/object/copy", route).await;
        assert!(copied.status >= 400, "{name}: {}", copied.body);
    }
    assert_eq!(app.service().get("/storage/v1/object/open/caf-e").await.body, "plain");
}

/// The parts of a token.
fn parts(token: &str) -> (Value, Value, String) {
    let mut words = token.split('.');
    let mut json = || {
        let bytes = URL_SAFE_NO_PAD.decode(words.next().expect("a part")).expect("base64");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let (head, claims) = (json(), json());
    (head, claims, token.rsplit('.').next().expect("a signature").to_owned())
}

fn joined(head: &Value, claims: &Value, signature: &str) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", encode(head), encode(claims))
}

#[actix_web::test]
async fn a_signed_link_cannot_be_widened() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    for user in [&alice, &bob] {
        assert_eq!(upload(&user.actor, &format!("own/{}/x", user.id), "text/plain", "own").await.status, 200);
    }
    let path = format!("own/{}/x", alice.id);
    // A signing request cannot add claims to the token.
    let wish = json!({ "expiresIn": 60, "role": "service_role", "url": format!("own/{}/x", bob.id), "scope": "upload",
        "transform": { "width": 5, "format": "webp", "resize": "cover,url:x" } });
    let refused = alice.actor.post(&format!("/storage/v1/object/sign/{path}"), wish.clone()).await;
    assert_eq!(refused.body["message"], "body/transform/resize must be equal to one of the allowed values");
    let mut wish = wish;
    wish["transform"] = json!({});
    let signed = alice.actor.post(&format!("/storage/v1/object/sign/{path}"), wish).await;
    let url = signed.body["signedURL"].as_str().expect("an address").to_owned();
    let token = url.split_once("token=").expect("a token").1.to_owned();
    let (head, claims, signature) = parts(&token);
    assert_eq!((&claims["url"], &claims["scope"], claims.get("role")), (&json!(path), &json!("download"), None));

    let open = |path: &str, token: &str| -> RequestBuilder {
        app.plain(Method::GET, &format!("/storage/v1/object/sign/{path}?token={token}"))
    };
    assert_eq!(send(open(&path, &token)).await.body, "own");
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        joined(&head, &claims, &signature)
    };
    let theirs = format!("own/{}/x", bob.id);
    let none = joined(&json!({ "alg": "none", "typ": "JWT" }), &claims, "");
    for (path, token) in [
        (&theirs, token.clone()),
        (&theirs, changed("url", json!(theirs))),
        (&path, changed("exp", json!(4_000_000_000_i64))),
        (&path, none),
        (&path, format!("{token}A")),
        (&path, String::new()),
        // Tokens for other purposes.
        (&path, alice.actor.token.clone().expect("a token")),
        (&path, app.service_key.clone()),
        (&theirs, app.service_key.clone()),
    ] {
        let refused = send(open(path, &token)).await;
        assert_eq!(refused.status, 400, "{token}: {}", refused.body);
        assert!(
            ["InvalidJWT", "InvalidSignature"].contains(&refused.body["code"].as_str().expect("a code")),
            "{}",
            refused.body
        );
    }
    // Of two tokens, the first one is used; the path is compared after decoding.
    let two = format!("/storage/v1/object/sign/{theirs}?token={token}&token={token}");
    assert_eq!(send(app.plain(Method::GET, &two)).await.body["code"], "InvalidSignature");
    let aside = format!("/storage/v1/object/sign/{path}%2F..%2F..%2F{}%2Fx?token={token}", bob.id);
    assert_eq!(send(app.plain(Method::GET, &aside)).await.body["code"], "InvalidKey");
    // It is not valid as a session.
    let as_user = send(app.plain(Method::GET, &format!("/storage/v1/object/{theirs}")).bearer_auth(&token)).await;
    assert_eq!(as_user.status, 400, "{}", as_user.body);
    let rows = send(app.anon().request(Method::GET, "/rest/v1/").bearer_auth(&token)).await;
    assert!(rows.status == 401 || rows.status == 400, "{} {}", rows.status, rows.body);
}

/// Strangers may add objects and see them, but not change them. The sequence counts their trials, which are rolled back.
const DROP_BOX: &str = "
    insert into storage.buckets (id, name, public) values ('drop', 'drop', true);
    create policy adding on storage.objects for insert to anon with check (bucket_id = 'drop');
    create policy seeing on storage.objects for select to anon using (bucket_id = 'drop');
    create sequence public.trials;
    create function public.count_trial() returns trigger security definer language plpgsql as $$ begin
      perform nextval('public.trials'); return new; end $$;
    create trigger count_trial before insert on storage.objects for each row
      when (current_user = 'anon') execute function public.count_trial();
";

/// How often strangers have been tried.
async fn trials(app: &TestApp) -> i64 {
    let count = "select case when is_called then last_value else 0 end from public.trials";
    app.owner.query_one(count, &[]).await.expect("a count").get(0)
}

/// Sends `before`, and `after` only when the server has tried the caller and somebody else has uploaded the object.
async fn overtaken(
    app: &TestApp,
    request: RequestBuilder,
    key: &str,
    before: &'static str,
    after: &'static str,
) -> Reply {
    let tried = trials(app).await;
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<std::io::Result<&str>>();
    sender.send(Ok(before)).expect("sent");
    let body = futures_util::stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    let upload = tokio::spawn(send(request.body(reqwest::Body::wrap_stream(body))));
    until("the caller is tried", async || trials(app).await > tried).await;
    let victim = upload_as(&app.service(), key).await;
    assert_eq!(victim.status, 200, "{}", victim.body);
    sender.send(Ok(after)).expect("sent");
    drop(sender);
    upload.await.expect("an answer")
}

async fn upload_as(actor: &Actor<'_>, key: &str) -> Reply {
    upload(actor, &format!("drop/{key}"), "text/plain", "theirs").await
}

async fn read(app: &TestApp, key: &str) -> Value {
    app.anon().get(&format!("/storage/v1/object/public/drop/{key}")).await.body
}

/// Regression: policies were checked before the bytes arrived, and the row was then written whatever stood there.
#[actix_web::test]
async fn an_upsert_replaces_no_object_that_came_while_its_bytes_were_sent() {
    let app = TestApp::start().await;
    app.owner.batch_execute(DROP_BOX).await.expect("schema");
    let post = |key: &str| {
        let request = app.anon().request(Method::POST, &format!("/storage/v1/object/drop/{key}"));
        request.header("x-upsert", "true").header("content-type", "text/plain")
    };
    let tus = |method, path: &str| {
        let request = app.anon().request(method, path).header("tus-resumable", "1.0.0");
        request.header("x-upsert", "true").header("content-type", "application/offset+octet-stream")
    };
    let patch = async |key: &str| {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let metadata = format!("bucketName {},objectName {}", encode("drop"), encode(key));
        let begin = app.anon().request(Method::POST, "/storage/v1/upload/resumable").header("tus-resumable", "1.0.0");
        let begin = begin.header("x-upsert", "true").header("upload-length", "4").header("upload-metadata", metadata);
        let begun = begin.send().await.expect("an answer");
        assert_eq!(begun.status(), 201);
        let path = begun.headers()["location"].to_str().expect("an address").replace(&app.base, "");
        tus(Method::PATCH, &path).header("upload-offset", "0")
    };

    let refused = overtaken(&app, post("rest"), "rest", "mi", "ne").await;
    assert_eq!((refused.status, &refused.body["statusCode"]), (400, &json!("403")), "{}", refused.body);
    assert_eq!(refused.body["message"], "new row violates row-level security policy");
    let refused = overtaken(&app, patch("tus").await, "tus", "mi", "ne").await;
    assert_eq!((refused.status, &refused.body), (403, &json!("new row violates row-level security policy")));
    for key in ["rest", "tus"] {
        assert_eq!(read(&app, key).await, "theirs", "{key}");
    }
    let ended = "select count(*) from _supavisor.resumable_uploads";
    assert_eq!(app.owner.query_one(ended, &[]).await.expect("a count").get::<_, i64>(0), 0);
    assert_eq!(sweep::sweep(&app.storage, Duration::ZERO).await.expect("a sweep"), 0, "the refused bytes are gone");

    // Callers who may change objects notice nothing.
    let policy = "create policy changing on storage.objects for update to anon using (bucket_id = 'drop')";
    app.owner.batch_execute(policy).await.expect("a policy");
    for (key, request) in [("rest", post("rest")), ("tus", patch("tus").await)] {
        let stored = overtaken(&app, request, key, "mi", "ne").await;
        assert!([200, 204].contains(&stored.status), "{key}: {}", stored.body);
        assert_eq!(read(&app, key).await, "mine", "{key}");
    }
    let crowd = (0..20).map(|_| send(post("rest").body("one of many")));
    for stored in futures_util::future::join_all(crowd).await {
        assert_eq!(stored.status, 200, "{}", stored.body);
    }
    assert_eq!(sweep::sweep(&app.storage, Duration::ZERO).await.expect("a sweep"), 0);

    // To replace an object, one must be permitted to add it too. So it does not matter if it has gone meanwhile.
    app.owner.batch_execute("drop policy adding on storage.objects").await.expect("gone");
    let refused = upload(&app.anon(), "drop/rest", "text/plain", "x").await;
    assert_eq!((refused.status, &refused.body["statusCode"]), (400, &json!("403")), "{}", refused.body);
}
