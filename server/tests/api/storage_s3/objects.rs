//! Buckets and objects: the operations, versions, conditions and multipart uploads.

use reqwest::Method;
use serde_json::json;

use super::{SCHEMA, Signer, between, code, header, sweep, text};
use crate::support::TestApp;

#[actix_web::test]
async fn the_projects_keys_manage_buckets_and_objects() {
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
    for date in ["2030-01-01T00%3A00%3A00Z", "Tue%2C%2001%20Jan%202030%2000%3A00%3A00%20GMT"] {
        let got = s3.send(Method::GET, "/b1/a%20b/c.txt", &format!("response-expires={date}"), &[], b"").await;
        assert_eq!((got.status().as_u16(), header(&got, "expires")), (200, "Tue, 01 Jan 2030 00:00:00 GMT"), "{date}");
    }
    let never = s3.get("/b1/a%20b/c.txt", "response-expires=never").await;
    assert_eq!(code(&never), (400, "InvalidParameter"));
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
    for body in [&b"<x/>"[..], b"<Delete/>"] {
        let refused = text(s3.send(Method::POST, "/b1", "delete=", &[], body).await).await;
        assert_eq!(code(&refused), (400, "MalformedXML"));
    }
    assert_eq!(s3.send(Method::DELETE, "/b1/none", "", &[], b"").await.status(), 204);
    assert_eq!(code(&text(s3.send(Method::DELETE, "/b1", "", &[], b"").await).await), (409, "ResourceNotEmpty"));
    for name in ["a%20b/c.txt", "copy", "d/2", "e"] {
        assert_eq!(s3.send(Method::DELETE, &format!("/b1/{name}"), "", &[], b"").await.status(), 204);
    }
    assert_eq!(s3.send(Method::DELETE, "/b1", "", &[], b"").await.status(), 204);
}

/// S3's answer for buckets without versioning, as `rclone purge` and `aws s3api list-object-versions` expect it.
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
async fn parts_become_one_object_on_completion() {
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
    assert_eq!(code(&complete(whole("<Part><PartNumber>1</PartNumber></Part>")).await), (400, "MalformedXML"));
    for list in ["encoding-type=xml&uploads=", "encoding-type=xml&list-type=2"] {
        assert_eq!(code(&s3.get("/private", list).await).0, 400, "{list}");
    }
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
    // Unlike a range that is read, it must be complete and lie within the source.
    for range in ["bytes=-5", "bytes=2-", "bytes=0-99", "bytes=4-2", "bytes=+0-1", "0-4"] {
        let source = [("x-amz-copy-source", "private/big"), ("x-amz-copy-source-range", range)];
        let refused = s3.send(Method::PUT, "/private/other", &query, &source, b"").await;
        assert_eq!(code(&text(refused).await), (400, "InvalidRange"), "{range}");
    }
    let elsewhere = s3.send(Method::PUT, "/private/another", &query, &[], b"x").await;
    assert_eq!(code(&text(elsewhere).await), (404, "NoSuchUpload"));
    let large = s3.send(Method::PUT, "/private/other", &query, &[], &vec![b'x'; 10_000_001]).await;
    assert_eq!(code(&text(large).await), (413, "EntityTooLarge"));
    assert_eq!(s3.send(Method::DELETE, "/private/other", &format!("uploadId={id}"), &[], b"").await.status(), 204);
    assert!(!s3.get("/private", "uploads=").await.1.contains("other"));
}

/// Regression: S3's clients upload encoded files with their coding, which was forgotten.
#[actix_web::test]
async fn an_object_keeps_its_coding_but_not_that_of_the_upload() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let s3 = Signer::project(&app);
    let coding = async |path: &str, query: &str| {
        let head = s3.send(Method::HEAD, path, query, &[], b"").await;
        let read = s3.send(Method::GET, path, query, &[], b"").await;
        assert_eq!(
            (head.status(), header(&head, "content-encoding")),
            (read.status(), header(&read, "content-encoding"))
        );
        header(&read, "content-encoding").to_owned()
    };
    for (sent, kept) in [("gzip", "gzip"), ("aws-chunked", ""), ("gzip,aws-chunked", "gzip")] {
        assert_eq!(s3.put("/private/a", &[("content-encoding", sent)], b"coded").await.0, 200);
        assert_eq!(coding("/private/a", "").await, kept, "{sent}");
    }
    assert_eq!(coding("/private/a", "response-content-encoding=br").await, "br");
    let own = app.service().get("/storage/v1/object/private/a").await;
    assert_eq!((own.header("content-encoding"), &own.body), ("gzip", &json!("coded")));
    assert_eq!(code(&s3.put("/private/b", &[("content-encoding", "a b")], b"x").await), (400, "InvalidRequest"));

    let source = ("x-amz-copy-source", "/private/a");
    let replace = ("x-amz-metadata-directive", "REPLACE");
    for (headers, kept) in
        [(vec![source], "gzip"), (vec![source, replace], ""), (vec![("content-encoding", "br"), source, replace], "br")]
    {
        assert_eq!(s3.put("/private/copy", &headers, b"").await.0, 200);
        assert_eq!(coding("/private/copy", "").await, kept, "{headers:?}");
    }
    let begun = s3.send(Method::POST, "/private/parts", "uploads=", &[("content-encoding", "gzip")], b"").await;
    let id = between(&text(begun).await.1, "UploadId").to_owned();
    let part = format!("partNumber=1&uploadId={id}");
    assert_eq!(s3.send(Method::PUT, "/private/parts", &part, &[], b"coded").await.status(), 200);
    let done = s3.send(Method::POST, "/private/parts", &format!("uploadId={id}"), &[], b"").await;
    assert_eq!((done.status().as_u16(), coding("/private/parts", "").await.as_str()), (200, "gzip"));
}

/// Regression: each of these was ignored, and the write went ahead.
#[actix_web::test]
async fn write_conditions_are_checked_or_refused_but_never_ignored() {
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
        // The ETag condition overrides the time condition.
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

    // Only if the object does not exist.
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
    // Unsupported conditions are refused.
    for refused in [("if-match", etag.as_str()), ("if-none-match", other)] {
        assert_eq!(code(&s3.put("/private/source", &[refused], b"x").await), (501, "NotImplemented"), "{refused:?}");
        assert_eq!(code(&complete(&[refused]).await), (501, "NotImplemented"), "{refused:?}");
    }
    assert_eq!(s3.get("/private/source", "").await.1, "source");
    assert_eq!(complete(&[]).await.0, 200, "the upload is still there");
    assert_eq!(sweep(&app).await, 0);

    // An empty folder is stored as Supabase does.
    assert_eq!(s3.put("/private/folder/", &[], b"").await.0, 200);
    assert_eq!(s3.put("/private/file/", &[], b"x").await.0, 200);
    let listed = s3.get("/private", "list-type=2&prefix=f").await.1;
    assert!(
        listed.contains("<Key>folder/.emptyFolderPlaceholder</Key>") && listed.contains("<Key>file/</Key>"),
        "{listed}"
    );
}

/// Regression: a placeholder may have any type, and could have any size, so its name evaded a bucket's rules.
#[actix_web::test]
async fn a_folders_placeholder_must_be_empty() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let rules = "update storage.buckets set allowed_mime_types = '{image/*}' where id = 'private'";
    app.owner.batch_execute(rules).await.expect("rules");
    app.owner.batch_execute("insert into storage.buckets (id, name) values ('any', 'any')").await.expect("bucket");
    let s3 = Signer::project(&app);
    assert_eq!(s3.put("/any/script", &[], b"<script>").await.0, 200);
    let source = ("x-amz-copy-source", "any/script");
    for headers in [vec![("content-type", "text/html")], vec![source]] {
        let placed = s3.put("/private/a/.emptyFolderPlaceholder", &headers, b"<script>").await;
        assert_eq!(code(&placed), (413, "EntityTooLarge"), "{headers:?}");
    }
    assert_eq!(s3.put("/private/a/.emptyFolderPlaceholder", &[("content-type", "text/html")], b"").await.0, 200);
}

/// The first answer of `ask` that is not `ResourceLocked`.
async fn until_unlocked(ask: impl AsyncFn() -> (u16, String)) -> (u16, String) {
    loop {
        let answer = ask().await;
        if answer.0 != 423 {
            return answer;
        }
    }
}

/// Regression: a copy during uploads of its source answered that the file did not exist.
#[actix_web::test]
async fn copies_and_moves_of_a_replaced_object_contain_one_of_its_versions() {
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
