//! Moving files: from one store to another, and to another project with a dump of the database.

use crate::support::cluster::{Database, Template};
use crate::support::dump::restore;
use crate::support::{TestApp, send};
use ferrobase::config::{Reader, Source};
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::storage::migrate::{MoveError, move_files};
use ferrobase::storage::{BackendConfig, Mode, StorageConfig};
use reqwest::Method;
use serde_json::json;

const SCHEMA: &str =
    "insert into storage.buckets (id, name, public) values ('docs', 'docs', false), ('open', 'open', true);";

async fn put(app: &TestApp, path: &str, body: &str) {
    let request = app.service().request(Method::POST, &format!("/storage/v1/object/{path}")).header("x-upsert", "true");
    let reply = send(request.header("content-type", "text/plain").body(body.to_owned())).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

async fn get(app: &TestApp, path: &str) -> serde_json::Value {
    app.service().get(&format!("/storage/v1/object/{path}")).await.body
}

fn pool(app: &TestApp) -> Pool {
    Pool::new(&app.owner_url, &PoolOptions { size: 1, ..PoolOptions::default() }).expect("a pool")
}

/// The store that a server's settings name.
fn store(settings: &[(&str, &str)]) -> BackendConfig {
    let source = Source::from_pairs(settings.iter().copied());
    let mut reader = Reader::new(&source);
    let config = StorageConfig::read(&mut reader, "/nowhere".as_ref(), Mode::Full);
    reader.finish(config).expect("settings").backend
}

fn folder(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("ferrobase-moves-{}-{name}", uuid::Uuid::new_v4()));
    path.display().to_string()
}

#[actix_web::test]
async fn files_move_to_a_store_and_back_with_hash_checks_repeatedly() {
    let holder = TestApp::start().await;
    holder
        .owner
        .batch_execute("insert into storage.buckets (id, name) values ('files', 'files')")
        .await
        .expect("bucket");
    let endpoint = format!("{}/storage/v1/s3", holder.base);
    let (here, back) = (folder("here"), folder("back"));
    let s3 = [
        ("STORAGE_BACKEND", "s3"),
        ("STORAGE_S3_BUCKET", "files"),
        ("STORAGE_S3_ENDPOINT", &endpoint),
        ("STORAGE_S3_FORCE_PATH_STYLE", "true"),
        ("AWS_ACCESS_KEY_ID", "625729a08b95bf1b7ff351a663f3a23c"),
        ("AWS_SECRET_ACCESS_KEY", "850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907"),
    ];
    let app = TestApp::with_settings(&[("FERROBASE_STORAGE_DIR", &here)]).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    for number in 0..5 {
        put(&app, &format!("docs/a//{number}"), &format!("file {number}")).await;
    }
    let (from, to, again) =
        (store(&[("FERROBASE_STORAGE_DIR", &here)]), store(&s3), store(&[("FERROBASE_STORAGE_DIR", &back)]));
    let moved = move_files(&pool(&app), &from, &to, |_| ()).await.expect("moved");
    assert_eq!((moved.copied, moved.already_there, moved.bytes, moved.is_whole()), (5, 0, 30, true));
    let other = app.another(&s3).await;
    assert_eq!(get(&other, "docs/a//3").await, "file 3");

    // Between two runs, one file was replaced and one removed.
    put(&app, "docs/a//3", "another 3").await;
    assert_eq!(send(app.service().request(Method::DELETE, "/storage/v1/object/docs/a//4")).await.status, 200);
    let moved = move_files(&pool(&app), &from, &to, |_| ()).await.expect("moved");
    assert_eq!((moved.copied, moved.already_there, moved.is_whole()), (1, 3, true));
    let returned = move_files(&pool(&app), &to, &again, |_| ()).await.expect("moved");
    assert_eq!((returned.copied, returned.is_whole()), (4, true));

    // A file that was changed in the store is reported, and so is a missing one.
    let files = walk(&back);
    std::fs::write(&files[0], "not what it was").expect("changed");
    std::fs::remove_file(&files[1]).expect("gone");
    let third = folder("third");
    let told =
        move_files(&pool(&app), &again, &store(&[("FERROBASE_STORAGE_DIR", &third)]), |_| ()).await.expect("moved");
    assert_eq!((told.missing.len(), told.differing.len(), told.is_whole()), (1, 1, false), "{told:?}");
    // A wrong copy in the new store is replaced.
    let mended = move_files(&pool(&app), &from, &again, |_| ()).await.expect("moved");
    assert_eq!((mended.copied, mended.already_there, mended.is_whole()), (2, 2, true));
    assert!(matches!(move_files(&pool(&app), &from, &from, |_| ()).await, Err(MoveError::Same)));
    for path in [here, back, third] {
        std::fs::remove_dir_all(path).expect("clean");
    }
}

/// The files below a folder whose names are versions, in order.
fn walk(root: &str) -> Vec<std::path::PathBuf> {
    let (mut folders, mut files) = (vec![std::path::PathBuf::from(root)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Output of `pg_dump --data-only` for schema `storage` of a Supabase project, and files below `stub/stub` in the
/// layout of its server.
#[actix_web::test]
async fn a_dump_and_files_of_another_project_are_served() {
    let source = folder("supabase");
    let database = Database::new(Template::App).await;
    let settings =
        [("STORAGE_FILE_BACKEND_PATH", source.as_str()), ("GLOBAL_S3_BUCKET", "stub"), ("TENANT_ID", "stub")];
    let app = TestApp::on(database, &settings).await;
    // The owner of the rows.
    let ada = app.user("ada@test.example").await;
    let rows = include_str!("storage_dump/rows.sql").replace("00000001-0000-4000-8000-000000000001", &ada.id);
    restore(&app.owner, &rows).await;
    let letter = format!("papers/{}/letter.txt", ada.id);
    for (key, version, bytes) in [
        ("avatars/u 1/me.txt", "5a1f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d11", "it is me"),
        (&letter, "6b2f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d22", "Dear Ada\n"),
        ("avatars/u 1/.emptyFolderPlaceholder", "7c3f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d33", ""),
    ] {
        let place = format!("{source}/stub/stub/{key}");
        std::fs::create_dir_all(&place).expect("folder");
        std::fs::write(format!("{place}/{version}"), bytes).expect("file");
    }
    app.owner
        .batch_execute(
            "create policy own on storage.objects for all to authenticated
               using (bucket_id = 'papers' and owner_id = auth.uid()::text)",
        )
        .await
        .expect("a policy");
    let read = send(app.plain(Method::GET, "/storage/v1/object/public/avatars/u 1/me.txt")).await;
    assert_eq!((read.status, &read.body), (200, &json!("it is me")));
    let listed = app.service().post("/storage/v1/object/list/avatars", json!({ "prefix": "u 1" })).await;
    let names: Vec<_> = listed.body.as_array().expect("rows").iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, [".emptyFolderPlaceholder", "me.txt"]);
    // The owner can still use it.
    let letter = format!("/storage/v1/object/authenticated/{letter}");
    let owned = ada.actor.get(&letter).await;
    assert_eq!(
        (owned.status, &owned.body, owned.header("etag")),
        (200, &json!("Dear Ada\n"), "\"5f6557e89d3365adbafdd90211fb711e\"")
    );
    let info = app.service().get(&letter.replace("/object/", "/object/info/")).await;
    assert_eq!(info.body["metadata"], json!({ "to": "Ada\tL." }), "{}", info.body);
    assert_eq!(app.user("other@test.example").await.actor.get(&letter).await.body["message"], "Object not found");
    let route = json!({ "bucketId": "avatars", "sourceKey": "u 1/me.txt", "destinationKey": "u 1/again.txt" });
    assert_eq!(app.service().post("/storage/v1/object/copy", route).await.status, 200);
    // Then on into a folder of our own.
    let own = folder("own");
    let (from, to) = (store(&settings), store(&[("FERROBASE_STORAGE_DIR", &own)]));
    let moved = move_files(&pool(&app), &from, &to, |_| ()).await.expect("moved");
    assert_eq!((moved.copied, moved.is_whole()), (4, true), "{moved:?}");
    let served = app.another(&[("FERROBASE_STORAGE_DIR", &own)]).await;
    assert_eq!(get(&served, "avatars/u 1/again.txt").await, "it is me");
    for path in [source, own] {
        std::fs::remove_dir_all(path).expect("clean");
    }
}
