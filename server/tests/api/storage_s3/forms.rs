//! Signed browser forms.

use reqwest::Method;
use serde_json::json;

use super::{SCHEMA, Signer, between, code, header, submit, sweep, text};
use crate::support::TestApp;

#[actix_web::test]
async fn a_signed_form_uploads_only_what_its_policy_allows() {
    let app = TestApp::start().await;
    let s3 = Signer::project(&app);
    for bucket in ["/open", "/other"] {
        assert_eq!(s3.put(bucket, &[], b"").await.0, 200);
    }
    let conditions = json!([{ "bucket": "open" }, ["starts-with", "$key", "in/"], ["content-length-range", 2, 10],
        { "Content-Type": "text/plain" }, ["eq", "$x-amz-meta-who", "me"], ["starts-with", "$success_action_status", ""],
        ["starts-with", "$success_action_redirect", "https://app.example/"]]);
    let said = [
        ("key", "in/${filename}"),
        ("Content-Type", "text/plain"),
        ("x-amz-meta-who", "me"),
        ("success_action_status", "201"),
        ("success_action_redirect", "https://app.example/done?a=b"),
    ];
    let form = s3.form(conditions.clone(), 60);
    let sent = submit(&app, "open", &form, &said, "hello").await;
    assert_eq!(sent.status(), 303);
    let address =
        "https://app.example/done?a=b&bucket=open&key=in%2Fme.txt&etag=%225d41402abc4b2a76b9719d911017c592%22";
    assert_eq!(header(&sent, "location"), address);
    let got = s3.send(Method::GET, "/open/in/me.txt", "", &[], b"").await;
    assert_eq!((header(&got, "content-type"), header(&got, "x-amz-meta-who")), ("text/plain", "me"));
    assert_eq!(text(got).await.1, "hello");

    let plain = json!([{ "bucket": "open" }, { "key": "a" }, ["starts-with", "$success_action_status", ""],
        ["starts-with", "$x-amz-checksum-sha1", ""]]);
    let form = s3.form(plain, 60);
    let sum = ("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00=");
    let with = async |status: &str, file: &str| {
        submit(&app, "open", &form, &[("key", "a"), ("success_action_status", status), sum], file).await
    };
    let made = text(with("201", "hello").await).await;
    assert_eq!((made.0, between(&made.1, "Location"), between(&made.1, "Key")), (201, "open/a", "a"));
    assert_eq!(with("204", "hello").await.status(), 204);
    let other = with("9", "hello").await;
    assert_eq!((other.status().as_u16(), header(&other, "etag")), (200, "\"5d41402abc4b2a76b9719d911017c592\""));
    assert_eq!(code(&text(with("200", "jello").await).await), (400, "InvalidChecksum"));
    assert_eq!(s3.get("/open/a", "").await.1, "hello");

    // Fields that the signer did not allow.
    let form = s3.form(conditions, 60);
    let changed = |name: &'static str, value: &'static str| {
        said.map(|(known, was)| (known, if known == name { value } else { was })).to_vec()
    };
    let more = [&said[..], &[("Cache-Control", "max-age=9")]].concat();
    let twice = [&said[..], &[("KEY", "in/b")]].concat();
    for (bucket, fields, file, expected) in [
        ("open", changed("key", "out/b"), "hello", (403, "AccessDenied")),
        ("open", changed("key", "in/../b"), "hello", (400, "InvalidKey")),
        ("open", changed("Content-Type", "text/html"), "hello", (403, "AccessDenied")),
        ("open", changed("success_action_redirect", "https://evil.example/"), "hello", (403, "AccessDenied")),
        ("open", more, "hello", (403, "AccessDenied")),
        ("open", twice, "hello", (400, "InvalidSignature")),
        ("open", said.to_vec(), "h", (400, "EntityTooSmall")),
        ("open", said.to_vec(), "hello world", (413, "EntityTooLarge")),
        ("other", said.to_vec(), "hello", (403, "AccessDenied")),
        ("none", said.to_vec(), "hello", (403, "AccessDenied")),
    ] {
        let refused = text(submit(&app, bucket, &form, &fields, file).await).await;
        assert_eq!(code(&refused), expected, "{bucket} {fields:?} {file}: {}", refused.1);
    }
    let old = s3.form(json!([{ "bucket": "open" }, { "key": "b" }]), -1);
    assert_eq!(code(&text(submit(&app, "open", &old, &[("key", "b")], "x").await).await), (400, "ExpiredToken"));
    let wrong = Signer { secret_key: "x".repeat(64), ..Signer::project(&app) };
    let forged = wrong.form(json!([{ "bucket": "open" }, { "key": "b" }]), 60);
    let forged = text(submit(&app, "open", &forged, &[("key", "b")], "x").await).await;
    assert_eq!(code(&forged), (403, "SignatureDoesNotMatch"));
    assert_eq!(code(&text(submit(&app, "open", &[], &[("key", "b")], "x").await).await), (400, "InvalidSignature"));
    let listed = s3.get("/open", "list-type=2").await.1;
    assert_eq!(between(&listed, "KeyCount"), "2", "nothing refused is kept: {listed}");
    assert_eq!(sweep(&app).await, 0, "nor its bytes");
}

#[actix_web::test]
async fn a_form_signed_for_a_user_obeys_their_policies() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    let key = format!("{}/form", alice.id);
    let conditions = json!([{ "bucket": "private" }, ["starts-with", "$key", ""]]);
    let send = async |user: &crate::support::User<'_>| {
        let form = Signer::user(&app, user.actor.token.as_ref().expect("token")).form(conditions.clone(), 60);
        text(submit(&app, "private", &form, &[("key", &key)], "hers").await).await
    };
    assert_eq!(send(&alice).await.0, 200);
    assert_eq!(code(&send(&bob).await), (403, "AccessDenied"));
    let read = alice.actor.get(&format!("/storage/v1/object/private/{key}")).await;
    assert_eq!(read.body, "hers");
    let owner = "select owner_id from storage.objects where name = $1";
    assert_eq!(app.owner.query_one(owner, &[&key]).await.expect("a row").get::<_, String>(0), alice.id);
}
