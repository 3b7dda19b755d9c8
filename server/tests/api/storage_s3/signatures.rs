//! Signatures in headers and links: which are accepted, and as whom they act.

use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{SCHEMA, Signer, between, code, submit, text};
use crate::support::TestApp;

#[actix_web::test]
async fn invalid_signatures_are_refused() {
    let app = TestApp::start().await;
    let s3 = Signer::project(&app);
    s3.put("/b1", &[], b"").await;
    s3.put("/b1/a", &[("content-type", "text/html")], b"<script>").await;
    let wrong = Signer { secret_key: "x".repeat(64), ..Signer::project(&app) };
    assert_eq!(code(&wrong.get("/b1/a", "").await), (403, "SignatureDoesNotMatch"));
    let unknown = Signer { access_key: "nobody".to_owned(), ..Signer::project(&app) };
    assert_eq!(code(&unknown.get("/b1/a", "").await), (403, "InvalidAccessKeyId"));
    let unsigned = app.plain(Method::GET, "/storage/v1/s3/b1/a").send().await.expect("an answer");
    assert_eq!(code(&text(unsigned).await), (403, "AccessDenied"));
    let other = hex::encode(Sha256::digest(b"other"));
    assert_eq!(
        code(&s3.put("/b1/b", &[("x-amz-content-sha256", &other)], b"this").await),
        (400, "XAmzContentSHA256Mismatch")
    );
    assert_eq!(
        code(&s3.put("/b1/b", &[("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")], b"this").await),
        (400, "BadDigest")
    );
    assert_eq!(code(&s3.get("/b1/b", "").await), (404, "NoSuchKey"), "nothing of it is kept");

    let link = s3.presigned("/b1/a", 60);
    let read = app.plain(Method::GET, &link).send().await.expect("an answer");
    assert_eq!(read.headers()["content-security-policy"], "default-src 'none'; sandbox");
    assert_eq!(read.headers()["referrer-policy"], "no-referrer");
    assert_eq!(text(read).await, (200, "<script>".to_owned()));
    // What is sent instead, or is no type, does not decide.
    for kind in ["image%2Fpng%0A", "image%2Fpng%C3%A4"] {
        let link = s3.presigned_for("GET", "/b1/a", &format!("&response-content-type={kind}"), &[], 60);
        let read = app.plain(Method::GET, &link).send().await.expect("an answer");
        assert_eq!(read.status(), 200, "{kind}");
        assert_eq!(read.headers()["content-security-policy"], "default-src 'none'; sandbox", "{kind}");
    }
    for changed in [link.replace("/b1/a", "/b1/b"), link.replace("Expires=60", "Expires=600"), link.replace("b1", "b2")]
    {
        let refused = app.plain(Method::GET, &changed).send().await.expect("an answer");
        assert_eq!(code(&text(refused).await), (403, "SignatureDoesNotMatch"), "{changed}");
    }
    let put = app.plain(Method::PUT, &link).body("mine").send().await.expect("an answer");
    assert_eq!(code(&text(put).await), (403, "SignatureDoesNotMatch"));
}

#[actix_web::test]
async fn the_signed_region_and_prefix_are_configurable() {
    let settings =
        [("S3_PROTOCOL_ENFORCE_REGION", "true"), ("REGION", "eu-1"), ("S3_PROTOCOL_PREFIX", "/behind/a/proxy")];
    let app = TestApp::with_settings(&settings).await;
    let right = Signer { region: "eu-1", prefix: "/behind/a/proxy", ..Signer::project(&app) };
    assert_eq!(right.put("/b1", &[], b"").await.0, 200);
    assert!(right.get("/b1", "location=").await.1.contains(">eu-1</LocationConstraint>"));
    let elsewhere = Signer { region: "local", prefix: "/behind/a/proxy", ..Signer::project(&app) };
    assert_eq!(code(&elsewhere.get("/b1", "").await), (400, "AuthorizationHeaderMalformed"));
    let form = elsewhere.form(json!([{ "bucket": "b1" }, { "key": "a" }]), 60);
    let refused = text(submit(&app, "b1", &form, &[("key", "a")], "x").await).await;
    assert_eq!(code(&refused), (400, "AuthorizationHeaderMalformed"));
    let inside = Signer { region: "eu-1", ..Signer::project(&app) };
    assert_eq!(code(&inside.get("/b1", "").await), (403, "SignatureDoesNotMatch"));
}

#[actix_web::test]
async fn an_upload_link_accepts_no_unsigned_headers() {
    let app = TestApp::start().await;
    let s3 = Signer::project(&app);
    for bucket in ["/private-papers", "/uploads"] {
        assert_eq!(s3.put(bucket, &[], b"").await.0, 200);
    }
    assert_eq!(s3.put("/private-papers/passport", &[], b"secret").await.0, 200);
    let source = ("x-amz-copy-source", "/private-papers/passport");
    let sent = async |link: &str, headers: &[(&str, &str)], body: &'static str| {
        let mut request = app.plain(Method::PUT, link).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        text(request.send().await.expect("an answer")).await
    };

    let link = s3.presigned_for("PUT", "/uploads/mine", "", &[], 60);
    assert_eq!(code(&sent(&link, &[source], "").await), (403, "AccessDenied"));
    assert_eq!(code(&sent(&link, &[("x-amz-meta-who", "me")], "mine").await), (403, "AccessDenied"));
    assert_eq!(code(&s3.get("/uploads/mine", "").await), (404, "NoSuchKey"));
    // Headers added by clients and the payload's hash change nothing.
    let harmless = [("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), ("x-amz-user-agent", "sdk")];
    assert_eq!(sent(&link, &harmless, "mine").await.0, 200);
    assert_eq!(s3.get("/uploads/mine", "").await, (200, "mine".to_owned()));

    let begun = text(s3.send(Method::POST, "/uploads/parts", "uploads=", &[], b"").await).await;
    let parameters = format!("&partNumber=1&uploadId={}", between(&begun.1, "UploadId"));
    let link = s3.presigned_for("PUT", "/uploads/parts", &parameters, &[], 60);
    assert_eq!(code(&sent(&link, &[source], "").await), (403, "AccessDenied"));
    assert_eq!(sent(&link, &[], "mine").await.0, 200);

    let link = s3.presigned_for("PUT", "/uploads/copy", "", &[source], 60);
    assert_eq!(sent(&link, &[source], "").await.0, 200, "the signer wanted a copy");
    assert_eq!(s3.get("/uploads/copy", "").await, (200, "secret".to_owned()));
    let another = [("x-amz-copy-source", "/uploads/mine")];
    assert_eq!(code(&sent(&link, &another, "").await), (403, "SignatureDoesNotMatch"));

    // A token that only accompanies a link says nothing about its bearer, so policies and triggers must not see it.
    app.owner
        .batch_execute(
            "create function public.tell() returns trigger language plpgsql as $$ begin
               raise exception '<%>', current_setting('request.jwt', true) using errcode = 'PT418'; end $$;
             create trigger tell before insert on storage.objects for each row execute function public.tell()",
        )
        .await
        .expect("a trigger");
    let link = s3.presigned_for("PUT", "/uploads/told", "", &[], 60);
    let told =
        text(app.plain(Method::PUT, &link).bearer_auth("junk.of.somebody").body("x").send().await.expect("an answer"));
    let told = told.await;
    assert_eq!((told.0, between(&told.1, "Message")), (418, "&lt;&gt;"), "{}", told.1);
}

#[actix_web::test]
async fn a_session_token_acts_as_its_user_under_their_policies() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    let hers = Signer::user(&app, alice.actor.token.as_ref().expect("token"));
    let his = Signer::user(&app, bob.actor.token.as_ref().expect("token"));
    let path = format!("/private/{}/a", alice.id);
    assert_eq!(hers.put(&path, &[], b"hers").await.0, 200);
    assert_eq!(hers.get(&path, "").await, (200, "hers".to_owned()));
    assert_eq!(code(&his.get(&path, "").await), (404, "NoSuchKey"));
    assert_eq!(code(&his.put(&path, &[], b"his").await), (403, "AccessDenied"));
    assert_eq!(his.send(Method::DELETE, &path, "", &[], b"").await.status(), 204, "as if there were nothing");
    assert_eq!(between(&his.get("/private", "list-type=2").await.1, "KeyCount"), "0");
    assert_eq!(between(&hers.get("/private", "list-type=2").await.1, "KeyCount"), "1");
    assert_eq!(code(&his.put("/mine", &[], b"").await), (403, "AccessDenied"));
    let forged = Signer::user(&app, "not.a.token");
    assert_eq!(code(&forged.get(&path, "").await), (403, "AccessDenied"));
    // The anon key is public; without a user's token it grants nothing.
    let public = Signer { session: None, ..Signer::user(&app, "") };
    assert_eq!(code(&public.get(&path, "").await), (403, "InvalidAccessKeyId"));
}
