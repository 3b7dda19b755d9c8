//! What operators do by mistake: a command in the wrong folder, one archive restored twice, archives verified by another path, and a
//! restore beside a store that the settings do not name.

use std::path::{Path, PathBuf};

use reqwest::{Client, Method};
use serde_json::json;

use crate::backup_incremental::has_programs;
use crate::support::commands::{House, names, request, root, store_of_backups};

/// The path that `backup` has printed.
fn made((done, text): &(bool, String)) -> PathBuf {
    assert!(done, "{text}");
    PathBuf::from(text.split(": ").next().expect("a path"))
}

fn archives(place: &Path) -> Vec<String> {
    names(place).into_iter().filter(|name| name.ends_with(".age")).collect()
}

fn verified(house: &House, archive: &Path) {
    let (done, text) = house.run(&["backup", "verify", &archive.display().to_string(), "--identity", "key.txt"]);
    assert!(done && text.contains("verified: everything was restored"), "{text}");
}

/// It created an empty database, backed that up, and removed the good archive.
#[test]
fn a_command_in_the_wrong_folder_creates_no_database_and_removes_no_archive() {
    let root = root();
    let house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    let backups = root.path().join("backups");
    let backup = ["backup", "--to", "backups", "--recipient", &recipient, "--keep", "1"];
    let good = made(&house.run(&backup));
    let wrong = House::new(root.path(), "wrong");
    let reason = format!("there is no database in {}", wrong.data.display());
    let incremental = [&backup[..], &["--incremental"]].concat();
    for arguments in [
        &backup[..],
        &incremental,
        &["doctor"],
        &["audit"],
        &["types", "typescript"],
        &["storage", "sweep"],
        &["upgrade"],
    ] {
        let (done, text) = wrong.run(arguments);
        assert!(!done && text.contains(&reason), "{arguments:?}: {text}");
        assert!(!wrong.data.join("db").exists(), "{arguments:?}");
    }
    assert_eq!(archives(&backups), [good.file_name().expect("a name").to_string_lossy()]);
    // A folder with something else in it is told apart.
    std::fs::create_dir_all(wrong.data.join("db")).expect("a folder");
    let (done, text) = wrong.run(&backup);
    assert!(!done && text.contains("db") && !text.contains("there is no database in"), "{text}");
    verified(&house, &good);
}

/// Both restores go on with timeline 2, so PostgreSQL takes an archive of the first for one of the second.
#[tokio::test(flavor = "multi_thread")]
async fn an_incremental_backup_never_continues_an_archive_of_a_discarded_history() {
    if !has_programs() {
        return;
    }
    let (root, http) = (root(), Client::new());
    let mut house = House::started_before(root.path(), "data");
    let backups = root.path().join("backups");
    house.backs_up_to(&backups);
    house.serve(&http).await;
    let noise = |table: &str, rows: u32| {
        format!(
            "create table {table} as select n, extensions.gen_random_bytes(1024) noise from generate_series(1, {rows}) n"
        )
    };
    house.sql().await.batch_execute(&noise("public.kept", 4000)).await.expect("a table");
    // Otherwise the next reader changes each block, and the archive has all of them.
    house.sql().await.batch_execute("vacuum (freeze) public.kept").await.expect("frozen");
    let first = made(&house.run(&["backup", "--incremental"])).display().to_string();
    house.stop();
    let restore = |house: &House| {
        let (done, text) = house.run(&["restore", &first, "--identity", "key.txt", "--replace"]);
        assert!(done, "{text}");
    };
    let is_continued = |outcome: &(bool, String)| outcome.1.contains("the changes of the database");

    restore(&house);
    // Whatever is known of archives beside the cluster is of the replaced one.
    assert!(!house.data.join("backups/parent.json").exists());
    house.serve(&http).await;
    house.sql().await.batch_execute("update public.kept set n = -n").await.expect("changes");
    let discarded = house.run(&["backup", "--incremental"]);
    assert!(discarded.0 && !is_continued(&discarded), "{}", discarded.1);
    let known = root.path().join("known");
    copy(&house.data.join("backups"), &known);
    // Without another history it is continued.
    house.sql().await.batch_execute(&noise("public.passing", 100)).await.expect("a table");
    let next = house.run(&["backup", "--incremental"]);
    assert!(next.0 && is_continued(&next), "{}", next.1);
    house.stop();

    // Twice: with and without what is known of the discarded history's archives, as after a cluster alone was put back.
    for is_put_back in [false, true] {
        restore(&house);
        if is_put_back {
            copy(&known, &house.data.join("backups"));
        }
        house.serve(&http).await;
        // Beyond where the other history has ended.
        house.sql().await.batch_execute(&noise("public.further", 16_000)).await.expect("a table");
        let outcome = house.run(&["backup", "--incremental"]);
        let last = made(&outcome);
        assert!(!is_continued(&outcome), "{}", outcome.1);
        verified(&house, &last);
        house.stop();
        let mut restored = House::new(root.path(), &format!("restored-{is_put_back}"));
        let (done, text) = restored.run(&["restore", &last.display().to_string(), "--identity", "key.txt"]);
        assert!(done, "{text}");
        restored.serve(&http).await;
        let counts = "select count(*) filter (where n > 0), count(*) from public.kept";
        let row = restored.sql().await.query_one(counts, &[]).await.expect("rows");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (4000, 4000), "only rows of the last history");
        restored.stop();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for name in names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).expect("copied");
    }
}

/// The verified archive was told by its whole path, so one that was verified through a link or in a copy was removed.
#[test]
fn the_verified_archive_stays_however_it_was_named() {
    let root = root();
    let house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    let (backups, link) = (root.path().join("backups"), root.path().join("link"));
    let backup = ["backup", "--to", "backups", "--recipient", &recipient, "--keep", "1"];
    let first = made(&house.run(&backup));
    let first = first.file_name().expect("a name").to_owned();
    std::os::unix::fs::symlink(&backups, &link).expect("a link");
    verified(&house, &link.join(&first));
    for _ in 0..2 {
        made(&house.run(&backup));
        assert!(backups.join(&first).exists(), "{:?}", names(&backups));
    }
    assert_eq!(archives(&backups).len(), 2);

    // What another machine verifies is noted beside the archive.
    let second = made(&house.run(&backup));
    let other = House::new(root.path(), "other");
    verified(&other, &second);
    let note = PathBuf::from(format!("{}.proved", second.display()));
    for _ in 0..2 {
        made(&house.run(&backup));
        assert!(second.exists() && note.exists(), "{:?}", names(&backups));
    }
    assert!(!backups.join(&first).exists(), "{:?}", names(&backups));
    let state = std::fs::read_to_string(house.data.join("backups/state.json")).expect("a state");
    assert!(state.contains(&format!("{:?}", second.display().to_string())), "{state}");
    let last = made(&house.run(&backup));
    verified(&house, &last);
    made(&house.run(&backup));
    assert!(!second.exists() && !note.exists(), "{:?}", names(&backups));
}

/// The files were put into a folder that nobody reads, and nothing was said of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_says_that_the_settings_read_files_from_a_bucket() {
    let (root, http) = (root(), Client::new());
    let store = store_of_backups(root.path(), &http).await;
    let mut house = House::started_before(root.path(), "data");
    let recipient = house.backup_key();
    house.serve(&http).await;
    let bucket = request(&http, Method::POST, house.url("/storage/v1/bucket")).json(&json!({ "name": "b" }));
    assert_eq!(bucket.send().await.expect("an answer").status(), 200);
    let sent = request(&http, Method::POST, house.url("/storage/v1/object/b/letter")).body("a letter");
    assert_eq!(sent.send().await.expect("an answer").status(), 200);
    let archive = made(&house.run(&["backup", "--to", "backups", "--recipient", &recipient])).display().to_string();
    house.stop();

    let mut restored = House::new(root.path(), "restored");
    let access = ferrobase::config::DEVELOPMENT_S3_KEYS;
    restored.settings = vec![
        ("STORAGE_BACKEND", "s3".to_owned()),
        ("STORAGE_S3_BUCKET", "backups".to_owned()),
        ("STORAGE_S3_ENDPOINT", store.url("/storage/v1/s3")),
        ("STORAGE_S3_REGION", "local".to_owned()),
        ("STORAGE_S3_FORCE_PATH_STYLE", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", access.0.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", access.1.to_owned()),
    ];
    let (done, text) = restored.run(&["restore", &archive, "--identity", "key.txt"]);
    let folder = restored.data.join("storage").display().to_string();
    let advice = format!("ferrobase storage migrate --from {folder} --to s3");
    assert!(done && text.contains(&advice), "{text}");
    let (done, text) = restored.run(&["storage", "migrate", "--from", &folder, "--to", "s3"]);
    assert!(done && text.starts_with("1 copied"), "{text}");
    restored.serve(&http).await;
    let letter = request(&http, Method::GET, restored.url("/storage/v1/object/b/letter")).send().await;
    assert_eq!(letter.expect("an answer").text().await.expect("text"), "a letter");
    restored.stop();
}
