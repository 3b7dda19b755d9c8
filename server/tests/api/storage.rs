//! `/storage/v1`: permissions, refusals, and what is stored.

use crate::support::{Actor, Reply, TestApp, send};
use ferrobase::storage::sweep;
use reqwest::Method;
use serde_json::{Value, json};

const SCHEMA: &str = "
    insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types) values
      ('private', 'private', false, 1000, array['text/*', 'application/pdf']), ('open', 'open', true, null, null);
    create policy \"users keep files in their folder\" on storage.objects for all to authenticated
      using (bucket_id in ('private', 'open') and (storage.foldername(name))[1] = auth.uid()::text)
      with check (bucket_id in ('private', 'open') and (storage.foldername(name))[1] = auth.uid()::text);
";

async fn upload(actor: &Actor<'_>, path: &str, mime: &str, body: &str) -> Reply {
    send(actor.request(Method::POST, path).header("content-type", mime).body(body.to_owned())).await
}

#[actix_web::test]
async fn only_owners_upload_read_sign_and_remove() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    let object = format!("/storage/v1/object/private/{}/fee letter.txt", alice.id);

    let refused = upload(&bob.actor, &object, "text/plain", "mine?").await;
    assert_eq!((refused.status, &refused.body["statusCode"]), (400, &json!("403")));
    let stored = upload(&alice.actor, &object, "text/plain", "hello").await;
    assert_eq!((stored.status, &stored.body["Key"]), (200, &json!(format!("private/{}/fee letter.txt", alice.id))));
    let again = upload(&alice.actor, &object, "text/plain", "hello").await;
    assert_eq!((again.status, &again.body["error"]), (400, &json!("Duplicate")));

    let read = alice.actor.get(&object).await;
    assert_eq!((read.status, &read.body, read.header("content-type")), (200, &json!("hello"), "text/plain"));
    assert_eq!(read.header("x-content-type-options"), "nosniff");
    assert_eq!(bob.actor.get(&object).await.body["error"], "not_found");
    assert_eq!(app.anon().get(&object).await.body["error"], "not_found");

    let sign = format!("/storage/v1/object/sign/private/{}/fee letter.txt", alice.id);
    assert_eq!(bob.actor.post(&sign, json!({ "expiresIn": 60 })).await.body["error"], "not_found");
    let signed = alice.actor.post(&sign, json!({ "expiresIn": 60 })).await;
    let url = format!("/storage/v1{}", signed.body["signedURL"].as_str().expect("signed url"));
    let by_link = send(app.plain(Method::GET, &url).header("range", "bytes=1-2")).await;
    assert_eq!((by_link.status, &by_link.body, by_link.header("content-range")), (206, &json!("el"), "bytes 1-2/5"));
    let tampered = send(app.plain(Method::GET, &url.replace("fee", "foe"))).await;
    assert_eq!(tampered.body["code"], "InvalidSignature");

    let prefixes = json!({ "prefixes": [format!("{}/fee letter.txt", alice.id)] });
    let remove = |actor: Actor<'_>| send(actor.request(Method::DELETE, "/storage/v1/object/private").json(&prefixes));
    assert_eq!(remove(bob.actor.clone()).await.body, json!([]));
    assert_eq!(remove(alice.actor.clone()).await.body[0]["name"], format!("{}/fee letter.txt", alice.id));
    assert_eq!(alice.actor.get(&object).await.body["error"], "not_found");

    // A plan made with few objects must also be good for many.
    let explain = "set plan_cache_mode = force_generic_plan;
                   prepare find(text, text) as select id from storage.objects where bucket_id = $1 and name = $2;
                   explain execute find('open', 'a')";
    let plan = format!("{:?}", app.owner.simple_query(explain).await.expect("a plan"));
    assert!(plan.contains("using bucketid_objname"), "{plan}");
}

#[actix_web::test]
async fn a_buckets_limits_are_checked_before_a_row_is_written() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let path = format!("/storage/v1/object/private/{}/x", alice.id);
    let large = upload(&alice.actor, &path, "text/plain", &"a".repeat(1001)).await;
    assert_eq!(
        (&large.body["statusCode"], &large.body["message"]),
        (&json!("413"), &json!("The object exceeded the maximum allowed size"))
    );
    let kind = upload(&alice.actor, &path, "image/png", "x").await;
    assert_eq!(
        (&kind.body["statusCode"], &kind.body["message"]),
        (&json!("415"), &json!("mime type image/png is not supported"))
    );
    let key = upload(&alice.actor, &format!("/storage/v1/object/private/{}/%C3%A4", alice.id), "text/plain", "x").await;
    assert_eq!(key.body["code"], "InvalidKey");
    let bucket = upload(&alice.actor, "/storage/v1/object/none/x", "text/plain", "x").await;
    assert_eq!(bucket.body["message"], "Bucket not found");
    let rows: i64 = app.owner.query_one("select count(*) from storage.objects", &[]).await.expect("count").get(0);
    assert_eq!(rows, 0);
}

#[actix_web::test]
async fn a_signed_upload_works_without_an_account_once_for_one_key() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let sign = format!("/storage/v1/object/upload/sign/private/{}/doc.pdf", alice.id);
    let signed = alice.actor.post(&sign, json!({})).await;
    let url = format!("/storage/v1{}", signed.body["url"].as_str().expect("url"));
    let put = |url: String| send(app.plain(Method::PUT, &url).header("content-type", "application/pdf").body("%PDF"));
    assert_eq!(put(url.clone()).await.body, json!({ "Key": format!("private/{}/doc.pdf", alice.id) }));
    assert_eq!(put(url.clone()).await.body["error"], "Duplicate");
    assert_eq!(put(url.replace("doc.pdf", "other.pdf")).await.body["code"], "InvalidSignature");
    let download = url.replace("/upload/sign/", "/sign/");
    assert_eq!(send(app.plain(Method::GET, &download)).await.body["message"], "Token is not scoped for download");
    let foreign = app.anon().post(&sign, json!({})).await;
    assert_eq!(foreign.body["statusCode"], "403");
}

#[actix_web::test]
async fn public_buckets_are_readable_and_html_is_served_as_text() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let key = format!("{}/page.html", alice.id);
    upload(&alice.actor, &format!("/storage/v1/object/open/{key}"), "text/html", "<script>1</script>").await;
    let read = send(app.plain(Method::GET, &format!("/storage/v1/object/public/open/{key}"))).await;
    assert_eq!((read.status, read.header("content-type")), (200, "text/plain"));
    let unchanged = send(
        app.plain(Method::GET, &format!("/storage/v1/object/public/open/{key}"))
            .header("if-none-match", read.header("etag")),
    )
    .await;
    assert_eq!(unchanged.status, 304);
    let private = send(app.plain(Method::GET, "/storage/v1/object/public/private/x")).await;
    assert_eq!(private.body["error"], "Bucket not found");
}

#[actix_web::test]
async fn a_form_upload_carries_cache_control_and_metadata() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let path = format!("/storage/v1/object/private/{}/form.txt", alice.id);
    let body = "--X\r\nContent-Disposition: form-data; name=\"cacheControl\"\r\n\r\n60\r\n\
                --X\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{\"a\":1}\r\n\
                --X\r\nContent-Disposition: form-data; name=\"\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nhi\r\n--X--\r\n";
    let stored = upload(&alice.actor, &path, "multipart/form-data; boundary=X", body).await;
    assert_eq!(stored.status, 200, "{}", stored.body);
    let info = alice.actor.get(&path.replace("/object/", "/object/info/")).await;
    assert_eq!(
        (&info.body["metadata"], &info.body["size"], &info.body["cache_control"]),
        (&json!({ "a": 1 }), &json!(2), &json!("max-age=60"))
    );
    let listed = alice.actor.post("/storage/v1/object/list/private", json!({ "prefix": alice.id })).await;
    assert_eq!(listed.body[0]["name"], "form.txt");
}

#[actix_web::test]
async fn an_overwriting_link_cannot_replace_a_submitted_document() {
    let app = TestApp::start().await;
    let alice = app.user("alice@test.example").await;
    let draft =
        alice.actor.post("/rest/v1/rpc/save_draft", json!({ "input": { "description": "Rent for May" } })).await;
    let path = format!("{}/{}.pdf", draft.body["id"].as_str().expect("draft"), alice.id);
    let sign = format!("/storage/v1/object/upload/sign/request-documents/{path}");
    let signed = send(alice.actor.request(Method::POST, &sign).header("x-upsert", "true")).await;
    let url = format!("/storage/v1{}", signed.body["url"].as_str().expect("url"));
    let put =
        |body: &'static str| send(app.plain(Method::PUT, &url).header("content-type", "application/pdf").body(body));
    assert_eq!(put("%PDF first").await.status, 200);
    assert_eq!(put("%PDF other").await.body["statusCode"], "403");
    let read = alice.actor.get(&format!("/storage/v1/object/request-documents/{path}")).await;
    assert_eq!(read.body, json!("%PDF first"));
}

/// A guest's slot for one file, and its signed upload URL.
async fn guest_slot(app: &TestApp, key: &str, name: &str, mime: &str) -> (Value, String) {
    let asked = json!({ "key": key, "name": name, "mime_type": mime, "size_bytes": 9 });
    let slot = app.anon().post("/rest/v1/rpc/create_guest_upload_slot", asked).await.body;
    let path = slot["path"].as_str().expect("path");
    let signed = app.anon().post(&format!("/storage/v1/object/upload/sign/request-documents/{path}"), json!({})).await;
    let url = format!("/storage/v1{}", signed.body["url"].as_str().expect("url"));
    (slot, url)
}

#[actix_web::test]
async fn a_guests_file_is_checked_by_its_bytes_not_its_declared_type() {
    let app = TestApp::start().await;
    let key = uuid::Uuid::new_v4().to_string();
    let put = |url: &str, mime: &'static str, body: Vec<u8>| {
        send(app.plain(Method::PUT, url).header("content-type", mime).body(body))
    };
    let (slot, url) = guest_slot(&app, &key, "fee letter.pdf", "application/pdf").await;
    let script = put(&url, "application/pdf", b"<html><script>1</script>".to_vec()).await;
    assert_eq!(
        (script.status, &script.body["statusCode"], &script.body["message"]),
        (400, &json!("415"), &json!("fee letter.pdf is not an accepted file type."))
    );
    let other = put(&url, "image/png", b"\x89PNG\r\n\x1a\n....".to_vec()).await;
    assert_eq!(other.body["message"], "fee letter.pdf is not an accepted file type.");
    let mut large = b"%PDF-1.7\n".to_vec();
    large.resize(10 * 1024 * 1024 + 1, b' ');
    let large = put(&url, "application/pdf", large).await;
    assert_eq!(large.body["statusCode"], "413");
    let rows: i64 = app.owner.query_one("select count(*) from storage.objects", &[]).await.expect("count").get(0);
    assert_eq!(rows, 0, "nothing refused is kept");

    let real = put(&url, "application/pdf", b"%PDF-1.7\nThe fees for this term".to_vec()).await;
    assert_eq!(real.status, 200, "{}", real.body);
    let id = slot["id"].as_str().expect("id");
    let sizes = "select size_bytes from private.guest_upload_slots where id::text = $1";
    let size: i64 = app.owner.query_one(sizes, &[&id]).await.expect("slot").get(0);
    assert_eq!(size, 31, "nine were announced");
    // A released slot accepts no more uploads, although its link is still valid.
    let (gone, url) = guest_slot(&app, &key, "late.pdf", "application/pdf").await;
    app.anon().post("/rest/v1/rpc/remove_guest_upload_slot", json!({ "id": gone["id"] })).await;
    let late = put(&url, "application/pdf", b"%PDF-1.7".to_vec()).await;
    assert_eq!(late.body["statusCode"], "410", "{}", late.body);
}

#[actix_web::test]
async fn a_profile_photo_must_be_an_image() {
    let app = TestApp::start().await;
    let alice = app.user("alice@test.example").await;
    let path = format!("/storage/v1/object/profile-photos/{}/me.png", alice.id);
    let page = upload(&alice.actor, &path, "image/png", "<svg onload=alert(1)>").await;
    assert_eq!(
        (&page.body["statusCode"], &page.body["message"]),
        (&json!("415"), &json!("This file is not an accepted file type."))
    );
    let gif = upload(&alice.actor, &path, "image/gif", "GIF89a......").await;
    assert_eq!(gif.status, 200, "{}", gif.body);
}

#[actix_web::test]
async fn guests_files_of_unsent_requests_are_swept_hourly() {
    let app = TestApp::start().await;
    let key = uuid::Uuid::new_v4().to_string();
    let (old, url) = guest_slot(&app, &key, "old.pdf", "application/pdf").await;
    let body = send(app.plain(Method::PUT, &url).header("content-type", "application/pdf").body("%PDF-1.7")).await;
    assert_eq!(body.status, 200);
    let (young, url) = guest_slot(&app, &key, "young.pdf", "application/pdf").await;
    let body = send(app.plain(Method::PUT, &url).header("content-type", "application/pdf").body("%PDF-1.7")).await;
    assert_eq!(body.status, 200);
    let age = "update storage.objects set created_at = now() - interval '25 hours' where name = $1";
    app.owner.execute(age, &[&old["path"].as_str().expect("path")]).await.expect("an older file");
    app.owner.execute("insert into ferrobase.hourly values ('public.is_not_there')", &[]).await.expect("a wrong name");

    let failed = sweep::call_hourly(&app.storage).await.expect("the round");
    assert_eq!(failed, [("public.is_not_there".to_owned(), "there is no such function".to_owned())]);
    let left = app.owner.query_one("select array_agg(name) from storage.objects", &[]).await.expect("objects");
    assert_eq!(left.get::<_, Vec<String>>(0), [young["path"].as_str().expect("path")]);
    let removed = sweep::sweep(&app.storage, std::time::Duration::ZERO).await.expect("the files");
    assert_eq!(removed, 1, "the bytes follow the row");
}

/// A statement longer than the login allows a request, a function that goes on in a transaction of its own, and one that fails midway.
#[actix_web::test]
async fn hourly_functions_have_time_and_transactions_of_their_own() {
    let app = TestApp::start().await;
    let functions = "
        create table public.calls (name text, at timestamptz default now());
        create function public.\"A slow\"() returns void language plpgsql security definer as $$
          begin insert into public.calls values ('slow'); perform pg_sleep(1); insert into public.calls values ('slept'); end $$;
        create function public.b_batch(out again boolean) language plpgsql security definer as $$
          begin insert into public.calls values ('batch'); select count(*) < 3 into again from public.calls where name = 'batch'; end $$;
        create function public.c_cancelled() returns void language plpgsql security definer as $$
          begin insert into public.calls values ('cancelled'); raise query_canceled using message = 'no time'; end $$;
        create function public.d_last() returns setof text language sql security definer as $$ insert into public.calls values ('last') returning name $$;
        delete from ferrobase.hourly;
        insert into ferrobase.hourly values ('public.\"A slow\"'), ('public.b_batch'), ('public.c_cancelled'), ('public.d_last'), ('not a name')";
    app.owner.batch_execute(functions).await.expect("functions");
    let limit = "do $$ begin
        execute format('alter role authenticator in database %I set statement_timeout = %L', current_database(), '700ms'); end $$";
    app.owner.batch_execute(limit).await.expect("a limit");
    let limited = app.another(&[]).await;
    let failed = sweep::call_hourly(&limited.storage).await.expect("the round");
    assert_eq!(failed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["not a name", "public.c_cancelled"]);
    assert!(failed[1].1.contains("no time"), "{failed:?}");
    let calls = "select array_agg(name order by at, name), count(distinct at) from public.calls";
    let row = app.owner.query_one(calls, &[]).await.expect("calls");
    assert_eq!(row.get::<_, Vec<String>>(0), ["slept", "slow", "batch", "last", "batch", "batch"]);
    assert_eq!(row.get::<_, i64>(1), 5, "transactions");
}

#[actix_web::test]
async fn the_sweep_keeps_files_of_versionless_and_of_new_rows() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let insert = "insert into storage.objects (bucket_id, name, version, metadata) values ('open', $1, $2, '{}')";
    // As another server left them: the file's path is the object's name, which may end in what looks like a version.
    let (hyphens, bare) = (uuid::Uuid::new_v4().to_string(), uuid::Uuid::new_v4().simple().to_string());
    let (version, orphan) = (uuid::Uuid::new_v4().to_string(), uuid::Uuid::new_v4().to_string());
    let capitals = uuid::Uuid::new_v4().to_string().to_uppercase();
    let folder = app.files().join("open/avatars");
    std::fs::create_dir_all(folder.join("late")).expect("a folder");
    std::fs::create_dir_all(folder.join("loud")).expect("a folder");
    let files = [hyphens.clone(), bare.clone(), format!("late/{version}"), format!("loud/{capitals}"), orphan];
    for file in &files {
        std::fs::write(folder.join(file), "bytes").expect("a file");
    }
    // Leading and trailing slashes of a name are not part of the path.
    let slashes = uuid::Uuid::new_v4().to_string();
    std::fs::create_dir_all(folder.join("slashes")).expect("a folder");
    std::fs::write(folder.join("slashes").join(&slashes), "bytes").expect("a file");
    app.owner.execute(insert, &[&"//avatars/slashes///", &Some(&slashes)]).await.expect("a row");
    let none = None::<String>;
    for (name, version) in [(&hyphens, &none), (&bare, &none), (&"loud".to_owned(), &Some(capitals))] {
        app.owner.execute(insert, &[&format!("avatars/{name}"), version]).await.expect("a row");
    }
    let pause = async || {
        app.owner.execute(insert, &[&"avatars/late", &Some(&version)]).await.expect("a row that was on its way");
    };
    let removed = sweep::sweep_after(&app.storage, std::time::Duration::ZERO, pause).await.expect("a sweep");
    assert_eq!(removed, 1);
    let left: Vec<bool> = files.iter().map(|file| folder.join(file).exists()).collect();
    assert_eq!(left, [true, true, true, true, false]);
    assert!(folder.join("slashes").join(&slashes).exists());
}

#[actix_web::test]
async fn a_move_whose_row_is_deleted_concurrently_fails() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let object = format!("/storage/v1/object/private/{}/a.txt", alice.id);
    assert_eq!(upload(&alice.actor, &object, "text/plain", "hello").await.status, 200);
    // Simulates a concurrent deletion of the row between the check and the write as service_role.
    let gone = "create function public.gone() returns trigger language plpgsql as $$ begin
                  if current_user = 'service_role' then return null; end if; return new; end $$;
                create trigger gone before update on storage.objects for each row execute function public.gone()";
    app.owner.batch_execute(gone).await.expect("a trigger");
    let [from, to] = ["a.txt", "b.txt"].map(|name| format!("{}/{name}", alice.id));
    let route = json!({ "bucketId": "private", "sourceKey": from, "destinationKey": to });
    let moved = alice.actor.post("/storage/v1/object/move", route).await;
    assert_eq!((moved.status, &moved.body["code"]), (400, &json!("NoSuchKey")), "{}", moved.body);
    assert_eq!(sweep::sweep(&app.storage, std::time::Duration::ZERO).await.expect("a sweep"), 0, "no second file");
    assert_eq!(alice.actor.get(&object).await.body, "hello");
}

#[actix_web::test]
async fn an_object_overwritten_during_reads_is_always_found() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let path = "/storage/v1/object/open/often.txt";
    let service = app.service();
    let write = async || {
        let request = service.request(Method::POST, path).header("x-upsert", "true");
        send(request.header("content-type", "text/plain").body("hello")).await.status
    };
    assert_eq!(write().await, 200);
    let done = std::cell::Cell::new(false);
    let writer = async {
        for _ in 0..150 {
            assert_eq!(write().await, 200);
        }
        done.set(true);
    };
    let reader = async || {
        while !done.get() {
            let read = service.get(path).await;
            assert_eq!((read.status, &read.body), (200, &json!("hello")), "{}", read.body);
        }
    };
    futures_util::join!(writer, reader(), reader(), reader(), reader());
}

#[actix_web::test]
async fn refusals_and_settings_are_never_sniffed_as_html() {
    let app = TestApp::start().await;
    for path in [
        "/app-config.json",
        "/assets/none.js",
        "/health",
        "/storage/v1/object/none/x",
        "/storage/v1/nowhere",
        "/rest/v1/nothing",
        "/auth/v1/user",
        "/functions/v1/none",
    ] {
        for reply in [app.anon().get(path).await, send(app.plain(Method::GET, path)).await] {
            assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path} {}", reply.status);
        }
    }
}

#[actix_web::test]
async fn unstorable_characters_are_client_errors() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let path = format!("/storage/v1/object/private/{}/form.txt", alice.id);
    let form = |cache: &str| {
        format!(
            "--X\r\nContent-Disposition: form-data; name=\"cacheControl\"\r\n\r\n{cache}\r\n--X\r\nContent-Disposition: form-data; \
             name=\"\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nhi\r\n--X--\r\n"
        )
    };
    let refused = upload(&alice.actor, &path, "multipart/form-data; boundary=X", &form("60\u{1}")).await;
    assert_eq!((refused.status, &refused.body["message"]), (400, &json!("Invalid cacheControl")));
    assert_eq!(upload(&alice.actor, &path, "multipart/form-data; boundary=X", &form("60")).await.status, 200);
    // An object stored before such characters were refused.
    app.owner
        .execute(
            "update storage.objects set metadata = jsonb_set(metadata, '{cacheControl}', to_jsonb(E'a\\u0001b'::text))",
            &[],
        )
        .await
        .expect("an object");
    let read = alice.actor.get(&path).await;
    assert_eq!((read.status, read.header("cache-control")), (200, "private, no-cache"));
    let listed = alice.actor.post("/storage/v1/object/list/private", json!({ "prefix": "a\u{0}b" })).await;
    assert_eq!((listed.status, &listed.body["statusCode"]), (400, &json!("400")), "{}", listed.body);
}

#[actix_web::test]
async fn a_thousand_long_names_fit_in_one_request_and_unsupported_routes_say_so() {
    let app = TestApp::start().await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    let alice = app.user("alice@test.example").await;
    let names: Vec<String> = (0..1000).map(|n| format!("{}/{n}{}", alice.id, "/a".repeat(400))).collect();
    let removed =
        send(alice.actor.request(Method::DELETE, "/storage/v1/object/private").json(&json!({ "prefixes": names })))
            .await;
    assert_eq!((removed.status, &removed.body), (200, &json!([])));
    let service = app.service();
    for (actor, path, code, message) in [
        (&alice.actor, "iceberg/v1/config", "AccessDenied", "Access denied: Invalid role"),
        (&service, "iceberg/bucket", "FeatureNotEnabled", "feature not enabled for this tenant"),
        (&alice.actor, "vector/ListIndexes", "FeatureNotEnabled", "feature not enabled for this tenant"),
        (&service, "vector/ListVectorBuckets", "FeatureNotEnabled", "feature not enabled for this tenant"),
    ] {
        let reply = actor.post(&format!("/storage/v1/{path}"), json!({ "prefix": "" })).await;
        assert_eq!((reply.status, &reply.body["statusCode"]), (403, &json!("403")), "{path}: {}", reply.body);
        assert_eq!((&reply.body["code"], &reply.body["message"]), (&json!(code), &json!(message)), "{path}");
    }
}
