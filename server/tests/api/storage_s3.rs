//! The S3 protocol, signed here by hand: `supabase-compat-tests` and `just test-tools` have clients of others.

use crate::support::TestApp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use hmac::{Hmac, Mac};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const SCHEMA: &str = "
    insert into storage.buckets (id, name, file_size_limit, allowed_mime_types) values ('private', 'private', 10000000, null);
    create policy own on storage.objects for all to authenticated
      using (bucket_id = 'private' and (storage.foldername(name))[1] = auth.uid()::text)
      with check (bucket_id = 'private' and (storage.foldername(name))[1] = auth.uid()::text);
";
const ACCESS_KEY: &str = "625729a08b95bf1b7ff351a663f3a23c";
const SECRET_KEY: &str = "850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907";

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

/// The signer of a request.
struct Signer<'a> {
    app: &'a TestApp,
    access_key: String,
    secret_key: String,
    session: Option<String>,
    region: &'static str,
    /// The path prefix removed by a proxy.
    prefix: &'static str,
}

impl<'a> Signer<'a> {
    fn project(app: &'a TestApp) -> Self {
        Self {
            app,
            access_key: ACCESS_KEY.to_owned(),
            secret_key: SECRET_KEY.to_owned(),
            session: None,
            region: "local",
            prefix: "",
        }
    }

    fn user(app: &'a TestApp, token: &str) -> Self {
        let session = Some(token.to_owned());
        Self { access_key: "local".to_owned(), secret_key: app.anon_key.clone(), session, ..Self::project(app) }
    }

    fn signature(&self, at: &str, canonical: &str) -> (String, String) {
        let scope = format!("{}/{}/s3/aws4_request", &at[..8], self.region);
        let text = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", hex::encode(Sha256::digest(canonical)));
        let mut key = hmac(format!("AWS4{}", self.secret_key).as_bytes(), &at[..8]);
        for part in [self.region, "s3", "aws4_request"] {
            key = hmac(&key, part);
        }
        (scope, hex::encode(hmac(&key, &text)))
    }

    /// Signs in the header, as SDKs do. `query` is written canonically.
    async fn send(&self, method: Method, path: &str, query: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let at = Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
        let host = self.app.base.trim_start_matches("http://").to_owned();
        let hash = hex::encode(Sha256::digest(body));
        let path = format!("/storage/v1/s3{path}");
        let mut signed: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if !signed.iter().any(|(name, _)| name == "x-amz-content-sha256") {
            signed.push(("x-amz-content-sha256".to_owned(), hash));
        }
        signed.push(("host".to_owned(), host));
        signed.push(("x-amz-date".to_owned(), at.clone()));
        signed.extend(self.session.iter().map(|token| ("x-amz-security-token".to_owned(), token.clone())));
        signed.sort();
        let payload = signed.iter().find(|(name, _)| name == "x-amz-content-sha256").expect("a hash").1.clone();
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let prefix = self.prefix;
        let canonical = format!("{method}\n{prefix}{path}\n{query}\n{lines}\n{names}\n{payload}");
        let (scope, signature) = self.signature(&at, &canonical);
        let url = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = self.app.plain(method, &url).header(
            "authorization",
            format!(
                "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
                self.access_key
            ),
        );
        for (name, value) in signed.iter().filter(|(name, _)| name != "host") {
            request = request.header(name, value);
        }
        request.body(body.to_vec()).send().await.expect("an answer")
    }

    async fn get(&self, path: &str, query: &str) -> (u16, String) {
        text(self.send(Method::GET, path, query, &[], b"").await).await
    }

    async fn put(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        text(self.send(Method::PUT, path, "", headers, body).await).await
    }

    /// A link for reading.
    fn presigned(&self, path: &str, seconds: u32) -> String {
        self.presigned_for("GET", path, "", &[], seconds)
    }

    /// A link for one method, with further parameters and headers that are signed; all written canonically.
    fn presigned_for(
        &self,
        method: &str,
        path: &str,
        parameters: &str,
        headers: &[(&str, &str)],
        seconds: u32,
    ) -> String {
        let at = Utc::now().format("%Y%m%dT%H%M%SZ").to_string();
        let scope = format!("{}%2Flocal%2Fs3%2Faws4_request", &at[..8]);
        let names: String =
            std::iter::once("host").chain(headers.iter().map(|(name, _)| *name)).collect::<Vec<_>>().join(";");
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}%2F{scope}&X-Amz-Date={at}&X-Amz-Expires={seconds}\
             &X-Amz-SignedHeaders={}{parameters}",
            self.access_key,
            names.replace(';', "%3B"),
        );
        let host = self.app.base.trim_start_matches("http://");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical =
            format!("{method}\n/storage/v1/s3{path}\n{query}\nhost:{host}\n{lines}\n{names}\nUNSIGNED-PAYLOAD");
        let (_, signature) = self.signature(&at, &canonical);
        format!("/storage/v1/s3{path}?{query}&X-Amz-Signature={signature}")
    }

    /// The signed fields of a form for a browser.
    fn form(&self, conditions: Value, seconds: i64) -> Vec<(String, String)> {
        let now = Utc::now();
        let at = now.format("%Y%m%dT%H%M%SZ").to_string();
        let expiration =
            (now + chrono::Duration::seconds(seconds)).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let policy = STANDARD.encode(json!({ "expiration": expiration, "conditions": conditions }).to_string());
        let mut key = hmac(format!("AWS4{}", self.secret_key).as_bytes(), &at[..8]);
        for part in ["local", "s3", "aws4_request"] {
            key = hmac(&key, part);
        }
        let credential = format!("{}/{}/local/s3/aws4_request", self.access_key, &at[..8]);
        let signature = hex::encode(hmac(&key, &policy));
        let mut fields = vec![
            ("Policy".to_owned(), policy),
            ("X-Amz-Algorithm".to_owned(), "AWS4-HMAC-SHA256".to_owned()),
            ("X-Amz-Credential".to_owned(), credential),
            ("X-Amz-Date".to_owned(), at),
            ("X-Amz-Signature".to_owned(), signature),
        ];
        fields.extend(self.session.iter().map(|token| ("X-Amz-Security-Token".to_owned(), token.clone())));
        fields
    }
}

/// Sends a form as a browser does that follows no redirects.
async fn submit(
    app: &TestApp,
    bucket: &str,
    signed: &[(String, String)],
    more: &[(&str, &str)],
    file: &str,
) -> Response {
    let mut body = String::new();
    let own = signed.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain(more.iter().copied()) {
        body.push_str(&format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"));
    }
    body.push_str(&format!(
        "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"up/me.txt\"\r\n\
         Content-Type: text/html\r\n\r\n{file}\r\n--X--\r\n"
    ));
    let request = app.plain(Method::POST, &format!("/storage/v1/s3/{bucket}"));
    let request = request.header("content-type", "multipart/form-data; boundary=X").body(body);
    request.send().await.expect("an answer")
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

async fn text(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.expect("a text"))
}

fn between<'a>(text: &'a str, name: &str) -> &'a str {
    text.split(&format!("<{name}>")).nth(1).and_then(|rest| rest.split(&format!("</{name}>")).next()).unwrap_or("")
}

fn code(answer: &(u16, String)) -> (u16, &str) {
    (answer.0, between(&answer.1, "Code"))
}

#[actix_web::test]
async fn buckets_and_objects_by_the_projects_keys() {
    let app = TestApp::start().await;
    let s3 = Signer::project(&app);
    assert_eq!(s3.put("/b1", &[], b"").await.0, 200);
    assert_eq!(code(&s3.put("/b1", &[], b"").await), (409, "BucketAlreadyExists"));
    assert!(s3.get("/", "").await.1.contains("<Name>b1</Name>"));
    assert!(s3.get("/b1", "location=").await.1.contains(">local</LocationConstraint>"));
    assert_eq!(s3.send(Method::HEAD, "/b1/", "", &[], b"").await.status(), 200);
    assert_eq!(s3.send(Method::HEAD, "/none", "", &[], b"").await.status(), 404);
    assert_eq!(code(&s3.get("/none", "").await), (404, "NoSuchBucket"));
    assert_eq!(code(&s3.get("/b1", "policy=").await), (501, "NotImplemented"));

    let put = s3
        .send(Method::PUT, "/b1/a%20b/c.txt", "", &[("content-type", "text/plain"), ("x-amz-meta-who", "me")], b"hello")
        .await;
    assert_eq!((put.status().as_u16(), header(&put, "etag")), (200, "\"5d41402abc4b2a76b9719d911017c592\""));
    let got = s3.send(Method::GET, "/b1/a%20b/c.txt", "response-content-type=text%2Fcsv", &[], b"").await;
    assert_eq!((header(&got, "content-type"), header(&got, "x-amz-meta-who")), ("text/csv", "me"));
    assert_eq!(text(got).await, (200, "hello".to_owned()));
    let part = s3.send(Method::GET, "/b1/a%20b/c.txt", "", &[("range", "bytes=1-2")], b"").await;
    assert_eq!(text(part).await, (206, "el".to_owned()));
    let head = s3.send(Method::HEAD, "/b1/a%20b/c.txt", "", &[], b"").await;
    assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, "5"));
    let same = [("if-none-match", "\"5d41402abc4b2a76b9719d911017c592\"")];
    assert_eq!(s3.send(Method::GET, "/b1/a%20b/c.txt", "", &same, b"").await.status(), 304);
    assert_eq!(code(&s3.put("/b1/a%20b/c.txt", &[("if-none-match", "*")], b"x").await), (412, "PreconditionFailed"));
    assert_eq!(code(&s3.get("/b1/none", "").await), (404, "NoSuchKey"));
    assert_eq!(s3.send(Method::HEAD, "/b1/none", "", &[], b"").await.status(), 404);

    let copied = s3.put("/b1/copy", &[("x-amz-copy-source", "/b1/a%20b/c.txt")], b"").await;
    assert_eq!((copied.0, between(&copied.1, "ETag")), (200, "&quot;5d41402abc4b2a76b9719d911017c592&quot;"));
    for name in ["d/1", "d/2", "e"] {
        assert_eq!(s3.put(&format!("/b1/{name}"), &[], b"").await.0, 200, "{name}");
    }
    let page = s3.get("/b1", "delimiter=%2F&list-type=2&max-keys=2").await.1;
    assert_eq!((between(&page, "KeyCount"), between(&page, "IsTruncated")), ("2", "true"));
    assert!(page.contains("<CommonPrefixes><Prefix>a b/</Prefix></CommonPrefixes>"), "{page}");
    let token = percent_encoding::utf8_percent_encode(
        between(&page, "NextContinuationToken"),
        percent_encoding::NON_ALPHANUMERIC,
    );
    let rest = s3.get("/b1", &format!("continuation-token={token}&delimiter=%2F&list-type=2")).await.1;
    assert!(rest.contains("<Prefix>d/</Prefix>") && rest.contains("<Key>e</Key>") && !rest.contains("a b"), "{rest}");
    let older = s3.get("/b1", "delimiter=%2F&encoding-type=url&marker=d%2F").await.1;
    assert!(older.contains("<Key>e</Key>") && !older.contains("<Prefix>d/</Prefix>"), "{older}");

    let body = b"<Delete><Object><Key>d/1</Key></Object><Object><Key>none</Key></Object></Delete>";
    let deleted = text(s3.send(Method::POST, "/b1", "delete=", &[], body).await).await;
    assert!(deleted.1.contains("<Deleted><Key>d/1</Key></Deleted><Deleted><Key>none</Key></Deleted>"), "{}", deleted.1);
    assert_eq!(code(&text(s3.send(Method::POST, "/b1", "delete=", &[], b"<x/>").await).await), (400, "MalformedXML"));
    assert_eq!(s3.send(Method::DELETE, "/b1/none", "", &[], b"").await.status(), 204);
    assert_eq!(code(&text(s3.send(Method::DELETE, "/b1", "", &[], b"").await).await), (409, "ResourceNotEmpty"));
    for name in ["a%20b/c.txt", "copy", "d/2", "e"] {
        assert_eq!(s3.send(Method::DELETE, &format!("/b1/{name}"), "", &[], b"").await.status(), 204);
    }
    assert_eq!(s3.send(Method::DELETE, "/b1", "", &[], b"").await.status(), 204);
}

#[actix_web::test]
async fn a_signature_that_is_not_right_opens_nothing() {
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
    assert_eq!(text(read).await, (200, "<script>".to_owned()));
    for changed in [link.replace("/b1/a", "/b1/b"), link.replace("Expires=60", "Expires=600"), link.replace("b1", "b2")]
    {
        let refused = app.plain(Method::GET, &changed).send().await.expect("an answer");
        assert_eq!(code(&text(refused).await), (403, "SignatureDoesNotMatch"), "{changed}");
    }
    let put = app.plain(Method::PUT, &link).body("mine").send().await.expect("an answer");
    assert_eq!(code(&text(put).await), (403, "SignatureDoesNotMatch"));
}

#[actix_web::test]
async fn region_and_prefix_of_what_is_signed_are_settings() {
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
async fn a_link_for_writing_takes_no_header_that_its_signer_did_not_sign() {
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

    // A token that only stands beside a link says nothing of its bearer: policies and triggers do not see it.
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
async fn a_signed_form_uploads_what_its_policy_allows_and_nothing_else() {
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

async fn sweep(app: &TestApp) -> usize {
    ferrobase::storage::sweep::sweep(&app.storage, std::time::Duration::ZERO).await.expect("a sweep")
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

/// As S3 answers for buckets that keep no versions; `rclone purge` and `aws s3api list-object-versions` ask.
#[actix_web::test]
async fn each_object_is_the_only_version_of_itself() {
    let app = TestApp::start().await;
    let s3 = Signer::project(&app);
    assert_eq!(s3.put("/b1", &[], b"").await.0, 200);
    for name in ["a", "d/1", "d/2", "e"] {
        assert_eq!(s3.put(&format!("/b1/{name}"), &[], name.as_bytes()).await.0, 200);
    }
    let status = s3.get("/b1", "versioning=").await;
    assert_eq!((status.0, between(&status.1, "Status")), (200, "Suspended"));
    let set = s3.send(Method::PUT, "/b1", "versioning=", &[], b"<VersioningConfiguration/>").await;
    assert_eq!(code(&text(set).await), (501, "NotImplemented"));

    let page = s3.get("/b1", "delimiter=%2F&max-keys=2&versions=").await.1;
    assert!(page.contains("<Version><Key>a</Key><VersionId>null</VersionId><IsLatest>true</IsLatest>"), "{page}");
    assert!(page.contains("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"), "{page}");
    assert_eq!((between(&page, "IsTruncated"), between(&page, "NextKeyMarker")), ("true", "d/"));
    let rest = s3.get("/b1", "delimiter=%2F&key-marker=d%2F&version-id-marker=null&versions=").await.1;
    assert!(rest.contains("<Version><Key>e</Key>") && !rest.contains("<Key>a</Key>"), "{rest}");
    assert_eq!(between(&rest, "IsTruncated"), "false");
    assert_eq!(code(&s3.get("/none", "versions=").await), (404, "NoSuchBucket"));

    assert_eq!(s3.get("/b1/a", "versionId=null").await, (200, "a".to_owned()));
    assert_eq!(code(&s3.get("/b1/a", "versionId=older").await), (404, "NoSuchVersion"));
    let source = [("x-amz-copy-source", "/b1/a?versionId=older")];
    assert_eq!(code(&s3.put("/b1/copy", &source, b"").await), (404, "NoSuchVersion"));
    let delete = async |query: &str| text(s3.send(Method::DELETE, "/b1/a", query, &[], b"").await).await;
    assert_eq!(code(&delete("versionId=older").await), (404, "NoSuchVersion"));
    let body = b"<Delete><Object><Key>a</Key><VersionId>older</VersionId></Object>\
                 <Object><Key>e</Key><VersionId>null</VersionId></Object></Delete>";
    let deleted = text(s3.send(Method::POST, "/b1", "delete=", &[], body).await).await.1;
    assert!(deleted.contains("<Deleted><Key>e</Key></Deleted>"), "{deleted}");
    assert_eq!((between(&deleted, "Code"), between(&deleted, "VersionId")), ("NoSuchVersion", "older"));
    assert_eq!(s3.get("/b1/a", "").await.0, 200, "the one that is there stays");
    assert_eq!(delete("versionId=null").await.0, 204);
    assert_eq!(s3.get("/b1/a", "").await.0, 404);
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
    // The anon key is public knowledge; without a user's token it opens nothing.
    let public = Signer { session: None, ..Signer::user(&app, "") };
    assert_eq!(code(&public.get(&path, "").await), (403, "InvalidAccessKeyId"));
}

#[actix_web::test]
async fn parts_become_one_object_when_the_client_says_so() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let s3 = Signer::project(&app);
    let begun =
        text(s3.send(Method::POST, "/private/big", "uploads=", &[("content-type", "text/plain")], b"").await).await;
    let id = between(&begun.1, "UploadId").to_owned();
    assert_eq!((begun.0, id.len()), (200, 32), "{}", begun.1);
    let part = async |number: u32, body: &[u8]| {
        s3.send(Method::PUT, "/private/big", &format!("partNumber={number}&uploadId={id}"), &[], body).await
    };
    assert_eq!(part(2, b"world").await.status(), 200);
    assert_eq!(part(1, b"wrong").await.status(), 200);
    let first = part(1, b"hello ").await.headers()["etag"].to_str().expect("etag").to_owned();
    assert_eq!(part(0, b"x").await.status(), 400);
    let listed = s3.get("/private/big", &format!("uploadId={id}")).await.1;
    assert!(listed.contains("<PartNumber>1</PartNumber>") && listed.matches("<Part>").count() == 2, "{listed}");
    assert!(s3.get("/private", "uploads=").await.1.contains("<Key>big</Key>"));
    assert_eq!(code(&s3.get("/private/big", "").await), (404, "NoSuchKey"));

    let complete = async |body: String| {
        text(s3.send(Method::POST, "/private/big", &format!("uploadId={id}"), &[], body.as_bytes()).await).await
    };
    let named = |number: u32, etag: &str| format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
    let whole = |parts: &str| format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    let second = "7d793037a0760186574b0282f2f435e7";
    assert_eq!(code(&complete(whole(&named(1, "none"))).await), (400, "InvalidPart"));
    let backwards = complete(whole(&format!("{}{}", named(2, second), named(1, &first)))).await;
    assert_eq!(code(&backwards), (400, "InvalidPartOrder"));
    let done = complete(whole(&format!("{}{}", named(1, &first), named(2, second)))).await;
    assert_eq!(done.0, 200, "{}", done.1);
    assert!(between(&done.1, "ETag").ends_with("-2&quot;"));
    assert_eq!(s3.get("/private/big", "").await, (200, "hello world".to_owned()));
    assert_eq!(code(&complete(whole("")).await), (404, "NoSuchUpload"));
    let rows = "select count(*) from storage.s3_multipart_uploads_parts";
    assert_eq!(app.owner.query_one(rows, &[]).await.expect("count").get::<_, i64>(0), 0);

    let begun = text(s3.send(Method::POST, "/private/other", "uploads=", &[], b"").await).await;
    let id = between(&begun.1, "UploadId").to_owned();
    let query = format!("partNumber=1&uploadId={id}");
    let source = [("x-amz-copy-source", "private/big"), ("x-amz-copy-source-range", "bytes=0-4")];
    assert_eq!(s3.send(Method::PUT, "/private/other", &query, &source, b"").await.status(), 200);
    let elsewhere = s3.send(Method::PUT, "/private/another", &query, &[], b"x").await;
    assert_eq!(code(&text(elsewhere).await), (404, "NoSuchUpload"));
    let large = s3.send(Method::PUT, "/private/other", &query, &[], &vec![b'x'; 10_000_001]).await;
    assert_eq!(code(&text(large).await), (413, "EntityTooLarge"));
    assert_eq!(s3.send(Method::DELETE, "/private/other", &format!("uploadId={id}"), &[], b"").await.status(), 204);
    assert!(!s3.get("/private", "uploads=").await.1.contains("other"));
}

/// Found: each of these was ignored, and the write went ahead.
#[actix_web::test]
async fn conditions_of_writes_hold_or_are_refused_and_never_ignored() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let s3 = Signer::project(&app);
    assert_eq!(s3.put("/private/source", &[], b"source").await.0, 200);
    let found = s3.send(Method::HEAD, "/private/source", "", &[], b"").await;
    let (etag, at) = (header(&found, "etag").to_owned(), header(&found, "last-modified").to_owned());
    let (past, other) = ("Wed, 21 Oct 2015 07:28:00 GMT", "\"d41d8cd98f00b204e9800998ecf8427e\"");
    let begun = text(s3.send(Method::POST, "/private/parts", "uploads=", &[], b"").await).await;
    let part = format!("partNumber=1&uploadId={}", between(&begun.1, "UploadId"));
    for (conditions, status) in [
        (vec![("if-match", etag.as_str())], 200),
        (vec![("if-match", other)], 412),
        (vec![("if-none-match", other)], 200),
        (vec![("if-none-match", &etag)], 412),
        (vec![("if-unmodified-since", at.as_str())], 200),
        (vec![("if-unmodified-since", past)], 412),
        (vec![("if-modified-since", past)], 200),
        (vec![("if-modified-since", &at)], 412),
        // A tag counts instead of the time beside it.
        (vec![("if-match", &etag), ("if-unmodified-since", past)], 200),
        (vec![("if-none-match", &etag), ("if-modified-since", past)], 412),
    ] {
        let named: Vec<(String, &str)> =
            conditions.iter().map(|(name, value)| (format!("x-amz-copy-source-{name}"), *value)).collect();
        let mut headers = vec![("x-amz-copy-source", "private/source")];
        headers.extend(named.iter().map(|(name, value)| (name.as_str(), *value)));
        let copied = s3.put("/private/copy", &headers, b"").await;
        assert_eq!(copied.0, status, "{conditions:?}: {}", copied.1);
        let copied = text(s3.send(Method::PUT, "/private/parts", &part, &headers, b"").await).await;
        assert_eq!(copied.0, status, "a part, {conditions:?}: {}", copied.1);
    }

    // Only where nothing is.
    let absent = ("if-none-match", "*");
    assert_eq!(code(&s3.put("/private/source", &[absent], b"x").await), (412, "PreconditionFailed"));
    let from = ("x-amz-copy-source", "private/source");
    assert_eq!(code(&s3.put("/private/copy", &[absent, from], b"").await), (412, "PreconditionFailed"));
    assert_eq!(s3.put("/private/copy-2", &[absent, from], b"").await.0, 200);
    assert_eq!(s3.put("/private/parts", &[], b"came first").await.0, 200);
    let id = part.split_once('&').expect("two parameters").1;
    let complete =
        async |headers: &[(&str, &str)]| text(s3.send(Method::POST, "/private/parts", id, headers, b"").await).await;
    assert_eq!(code(&complete(&[absent]).await), (412, "PreconditionFailed"));
    assert_eq!(s3.get("/private/parts", "").await.1, "came first");
    // What is not understood is said.
    for refused in [("if-match", etag.as_str()), ("if-none-match", other)] {
        assert_eq!(code(&s3.put("/private/source", &[refused], b"x").await), (501, "NotImplemented"), "{refused:?}");
        assert_eq!(code(&complete(&[refused]).await), (501, "NotImplemented"), "{refused:?}");
    }
    assert_eq!(s3.get("/private/source", "").await.1, "source");
    assert_eq!(complete(&[]).await.0, 200, "the upload is still there");
    assert_eq!(sweep(&app).await, 0);

    // An empty folder is kept as Supabase keeps it.
    assert_eq!(s3.put("/private/folder/", &[], b"").await.0, 200);
    assert_eq!(s3.put("/private/file/", &[], b"x").await.0, 200);
    let listed = s3.get("/private", "list-type=2&prefix=f").await.1;
    assert!(
        listed.contains("<Key>folder/.emptyFolderPlaceholder</Key>") && listed.contains("<Key>file/</Key>"),
        "{listed}"
    );
}

/// The first answer of `ask` that is no `ResourceLocked`.
async fn until_unlocked(ask: impl AsyncFn() -> (u16, String)) -> (u16, String) {
    loop {
        let answer = ask().await;
        if answer.0 != 423 {
            return answer;
        }
    }
}

/// Found by a copy beside uploads of its source: it answered that the file was not there.
#[actix_web::test]
async fn what_is_copied_or_moved_while_it_is_replaced_is_one_of_its_versions() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let s3 = Signer::project(&app);
    let body = |number: usize| format!("{number:06}").repeat(2000);
    let is_whole = |text: &str| text.len() == 12_000 && text == text[..6].repeat(2000);
    assert_eq!(s3.put("/private/source", &[], body(0).as_bytes()).await.0, 200);
    let begun = text(s3.send(Method::POST, "/private/parts", "uploads=", &[], b"").await).await;
    let query = format!("partNumber=1&uploadId={}", between(&begun.1, "UploadId"));
    let is_over = std::cell::Cell::new(false);
    let replace = async {
        let mut number = 0;
        while !is_over.get() {
            number += 1;
            assert_eq!(s3.put("/private/source", &[], body(number).as_bytes()).await.0, 200);
        }
    };
    let copy = async {
        let from = [("x-amz-copy-source", "private/source")];
        for number in 0..40 {
            // On a busy machine the source may be locked for longer than a request waits.
            let copied = until_unlocked(async || s3.put("/private/copy", &from, b"").await).await;
            assert_eq!(copied.0, 200, "{}", copied.1);
            let part = async || text(s3.send(Method::PUT, "/private/parts", &query, &from, b"").await).await;
            let part = until_unlocked(part).await;
            assert_eq!(part.0, 200, "{}", part.1);
            assert!(is_whole(&s3.get("/private/copy", "").await.1));
            // It may be replaced again and again, but its file is never missing.
            let route =
                json!({ "bucketId": "private", "sourceKey": "source", "destinationKey": format!("moved/{number}") });
            let moved = app.service().post("/storage/v1/object/move", route).await;
            let refused = &moved.body["code"];
            assert!(moved.status == 200 || refused == "NoSuchKey" || refused == "ResourceLocked", "{}", moved.body);
            if moved.status == 200 {
                assert!(is_whole(&s3.get(&format!("/private/moved/{number}"), "").await.1));
                assert_eq!(s3.put("/private/source", &[], body(0).as_bytes()).await.0, 200);
            }
        }
        is_over.set(true);
    };
    futures_util::join!(replace, copy);
}
