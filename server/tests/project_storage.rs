//! `storage ls|cp|mv|rm`: on the storage of the folder's project, and on one that is known by its address and key.

use std::fs;
use std::process::Output;

use crate::project::Project;
use crate::support::ports::free_port;

const CONFIG: &str = "[storage.buckets.docs]\npublic = true\nfile_size_limit = \"1MiB\"\n\
                      allowed_mime_types = [\"text/plain\", \"image/png\"]\n[storage.buckets.logs]\n";

const FILES: [(&str, &str); 4] = [
    ("notes/a b+c.txt", "first"),
    ("notes/deep/two.txt", "second"),
    ("notes/deep/er/three.txt", "third"),
    ("page.html", "<p>a page</p>"),
];

impl Project {
    /// Runs a command on objects that must succeed; its lines in order, and what it told on stderr.
    fn storage(&self, arguments: &[&str]) -> (Vec<String>, String) {
        let (printed, told) = self.ok(&[&["storage"], arguments].concat());
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        (lines, told)
    }

    /// Runs one that must fail for this reason, and returns what it said.
    fn refused(&self, arguments: &[&str], reason: &str) {
        let (success, printed, told) = self.run(&[&["storage"], arguments].concat());
        assert!(!success && printed.is_empty() && told.contains(reason), "{arguments:?}: {printed}{told}");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn bucket(&self, name: &str) -> String {
        let sql = format!(
            "select concat_ws(' ', public, file_size_limit, allowed_mime_types) from storage.buckets where id = '{name}'"
        );
        self.one(&sql).await
    }
}

#[actix_web::test]
async fn objects_of_the_project_are_listed_copied_moved_and_deleted() {
    let project = Project::new("objects", CONFIG, &FILES);
    project.refused(&["rm", "-r", "--yes"], "the project is not running: start it with 'ferrobase start'");
    project.ok(&["start"]);

    // One file. Nothing is overwritten without `-r`, and the bucket's rules apply.
    assert_eq!(project.storage(&["ls"]).0, ["docs/", "logs/"]);
    project.storage(&["cp", "notes/a b+c.txt", "ss:///docs/one/a b+c.txt", "--cache-control", "max-age=60"]);
    for (path, found) in [
        ("ss:///docs", "docs/"),
        ("ss:///docs/", "one/"),
        ("ss:///docs/on", "one/"),
        ("SS:///docs/one/", "a b+c.txt"),
        ("ss:///docs/one/a", "a b+c.txt"),
    ] {
        assert_eq!(project.storage(&["ls", path]).0, [found], "{path}");
    }
    assert_eq!(project.storage(&["ls", "ss:///docs/two"]).0, [""; 0]);
    assert_eq!(project.storage(&["ls", "-r"]).0, ["/docs/one/a b+c.txt", "/logs/"]);
    let kept = "select concat_ws(' ', metadata->>'mimetype', metadata->>'cacheControl', metadata->>'size') from storage.objects";
    assert_eq!(project.one(kept).await, "text/plain max-age=60 5");
    project.refused(&["cp", "page.html", "ss:///docs/one/a b+c.txt", "--content-type", "text/plain"], "already exists");
    project.refused(&["cp", "page.html", "ss:///docs/page.html"], "mime type text/html is not supported");
    project.storage(&["cp", "page.html", "ss:///docs/page.png", "--content-type", "image/png"]);
    project.refused(&["cp", "no-such-file", "ss:///docs/x.txt"], "cannot read no-such-file");

    // A folder: into one that is there under its own name, otherwise as the new one.
    let (_, told) = project.storage(&["cp", "-r", "notes", "ss:///docs", "-j", "4"]);
    assert_eq!(told.lines().filter(|line| line.starts_with("Uploading: ")).count(), 3, "{told}");
    project.storage(&["cp", "--recursive", "notes", "ss:///docs/copy"]);
    let files = ["a b+c.txt", "deep/er/three.txt", "deep/two.txt"];
    for folder in ["/docs/notes", "/docs/copy"] {
        let expected = files.map(|file| format!("{folder}/{file}"));
        assert_eq!(project.storage(&["ls", "-r", &format!("ss://{folder}/")]).0, expected);
    }

    // Back to this machine.
    fs::create_dir(project.root.join("out")).expect("a folder");
    project.storage(&["cp", "ss:///docs/copy/deep/two.txt", "out"]);
    assert_eq!(project.read("out/two.txt"), "second");
    project.refused(&["cp", "ss:///docs/copy/a b+c.txt", "out/two.txt"], "cannot write out/two.txt");
    assert_eq!(project.read("out/two.txt"), "second");
    project.storage(&["cp", "-r", "ss:///docs/copy", "fetched", "--jobs", "3"]);
    project.write("out/copy/deep/two.txt", "to be overwritten, and longer");
    project.storage(&["cp", "-r", "ss:///docs/copy", "out"]);
    for folder in ["fetched", "out/copy"] {
        assert_eq!(files.map(|file| project.read(&format!("{folder}/{file}"))), ["first", "third", "second"]);
    }
    project.refused(&["cp", "ss:///docs/none.txt", "none.txt"], "Object not found");
    project.refused(&["cp", "-r", "ss:///docs/none", "none"], "Object not found: /docs/none");
    assert!(!project.root.join("none.txt").exists() && !project.root.join("none").exists());
    project.refused(&["cp", "ss:///docs/page.png", "ss:///logs/page.png"], "Copying between buckets is not supported");
    project.refused(&["cp", "page.html", "other.html"], "one of the two must be a URL such as ss:///bucket/path");
    project.refused(&["cp", "page.html", "ss://docs/page.txt"], "URL must match pattern ss:///bucket/[prefix]");
    project.refused(&["ls", "docs"], "URL must match pattern ss:///bucket/[prefix]");

    // Moves.
    project.storage(&["mv", "ss:///docs/copy/deep/two.txt", "ss:///docs/moved.txt"]);
    project.refused(&["mv", "ss:///docs/copy", "ss:///docs/there"], "Object not found");
    let (_, told) = project.storage(&["mv", "-r", "ss:///docs/copy", "ss:///docs/there"]);
    assert!(told.contains("Moving object: /docs/copy/deep/er/three.txt => /docs/there/deep/er/three.txt"), "{told}");
    assert_eq!(project.storage(&["ls", "ss:///docs/"]).0, ["moved.txt", "notes/", "one/", "page.png", "there/"]);
    assert_eq!(
        project.storage(&["ls", "-r", "ss:///docs/there/"]).0,
        ["/docs/there/a b+c.txt", "/docs/there/deep/er/three.txt"]
    );
    project.refused(&["mv", "-r", "ss:///docs/none", "ss:///docs/there"], "Object not found: /docs/none/");
    project.refused(&["mv", "ss:///docs/moved.txt", "ss:///logs/moved.txt"], "Moving between buckets is unsupported");
    project.refused(&["mv", "ss:///docs", "ss:///docs/"], "You must specify an object path");

    // Deletes only if that is confirmed, and folders only with `-r`.
    let (_, told) = project.storage(&["rm", "ss:///docs/moved.txt"]);
    assert_eq!(told, "Confirm deleting files in bucket docs?\nNothing was deleted.\n");
    let (_, told) =
        project.storage(&["rm", "--yes", "ss:///docs/moved.txt", "ss:///docs/there", "ss:///docs/none.txt"]);
    assert!(told.ends_with("Object not found: there\nObject not found: none.txt\n"), "{told}");
    project.refused(&["rm", "--yes", "ss:///docs/there/"], "You must specify -r flag to delete directories.");
    project.refused(&["rm", "--yes"], "You must specify -r flag to delete directories.");
    project.refused(&["rm", "-r", "--yes", "ss:///"], "You must specify a bucket to delete.");
    project.refused(&["rm", "-r", "--yes", "ss:///docs/none"], "Object not found: docs/none/");
    project.storage(&["rm", "-r", "--yes", "ss:///docs/there", "ss:///docs/page.png"]);
    assert_eq!(project.storage(&["ls", "ss:///docs/"]).0, ["notes/", "one/"]);

    // A listing has several pages, and a bucket is deleted with all that is in it. A later upload makes it as the configuration declares it.
    let many: Vec<String> = (0..230).map(|number| format!("{number:03}.txt")).collect();
    for name in &many {
        project.write(&format!("many/{name}"), name);
    }
    project.storage(&["cp", "-r", "-j", "8", "many", "ss:///docs/many"]);
    assert_eq!(project.storage(&["ls", "ss:///docs/many/"]).0, many);
    let declared = project.bucket("docs").await;
    assert_eq!(declared, "t 1048576 {text/plain,image/png}");
    let (_, told) = project.storage(&["rm", "-r", "--yes", "ss:///docs"]);
    assert!(told.ends_with("Deleting bucket: docs\nSuccessfully deleted\n"), "{told}");
    assert_eq!(project.storage(&["ls", "-r"]).0, ["/logs/"]);
    assert_eq!(project.one("select count(*) from storage.objects").await, "0");
    project.storage(&["cp", "-r", "notes", "ss:///docs/again", "-j", "3"]);
    assert_eq!(project.bucket("docs").await, declared);
    assert_eq!(project.get("/storage/v1/object/public/docs/again/a%20b+c.txt", "").await, (200, "first".to_owned()));
    project.storage(&["rm", "-r", "--yes"]);
    assert_eq!(project.storage(&["ls"]).0, [""; 0]);
}

#[actix_web::test]
async fn objects_of_another_project_are_reached_by_its_address_and_key() {
    let project = Project::new("objects-elsewhere", CONFIG, &FILES);
    project.ok(&["start"]);
    let status = project.status();
    let text = |name: &str| status[name].as_str().expect(name).to_owned();
    let (url, key) = (text("API_URL"), text("SERVICE_ROLE_KEY"));
    // There is no project in this folder.
    let away = tempfile::tempdir().expect("a folder");
    let from = |arguments: &[&str], key: Option<&str>| {
        let mut command = project.command(&[&["storage"], arguments].concat());
        command.current_dir(away.path()).envs(key.map(|key| ("FERROBASE_SERVICE_KEY", key)));
        let Output { status, stdout, stderr } = command.output().expect("it runs");
        (status.code(), String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned())
    };

    let file = project.root.join("notes/a b+c.txt");
    let file = file.to_str().expect("a path");
    let (code, _, told) = from(&["cp", file, "ss:///docs/in/a.txt", "--url", &url, "--service-key", &key], None);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    // The key may come from the environment, and may be a secret key.
    for key in [&key, &text("SECRET_KEY")] {
        let (code, found, told) = from(&["ls", "-r", "ss:///docs/", "--url", &format!("{url}/")], Some(key));
        assert_eq!((code, found.as_str()), (Some(0), "/docs/in/a.txt\n"), "{told}");
    }
    let on = |arguments: &[&str]| {
        let (code, _, told) = from(&[arguments, &["--url", &url]].concat(), Some(&key));
        assert_eq!(code, Some(0), "{arguments:?}: {told}");
    };
    on(&["mv", "ss:///docs/in/a.txt", "ss:///docs/b.txt"]);
    on(&["cp", "ss:///docs/b.txt", "b.txt"]);
    assert_eq!(fs::read_to_string(away.path().join("b.txt")).expect("a file"), "first");
    // What no configuration here declares becomes a private bucket.
    on(&["cp", "-r", ".", "ss:///fresh/some"]);
    assert_eq!(project.bucket("fresh").await, "f");
    assert_eq!(project.storage(&["ls", "-r", "ss:///fresh/"]).0, ["/fresh/some/b.txt"]);
    on(&["rm", "--yes", "ss:///docs/b.txt"]);
    assert_eq!(project.one("select string_agg(name, ',') from storage.objects").await, "some/b.txt");

    let nobody = format!("http://127.0.0.1:{}", free_port());
    for (arguments, key, code, reason) in [
        (&["ls"][..], None, 1, "there is no folder 'supabase' here or above"),
        (&["ls", "--linked"], None, 1, "there is no linked project: pass its URL with --url"),
        (&["ls", "--url", &url], None, 2, "--service-key"),
        (&["ls", "--local", "--url", &url], Some(&key), 2, "--local"),
        (&["ls", "--url", &nobody], Some(&key), 1, "the storage API does not answer"),
        (&["ls", "--url", "nonsense"], Some(&key), 1, "the storage API does not answer"),
        (&["ls", "--url", &url], Some(&"sb_secret_wrong".to_owned()), 1, "Invalid Compact JWS"),
    ] {
        let (found, printed, told) = from(arguments, key.map(String::as_str));
        assert_eq!((found, printed.as_str()), (Some(code), ""), "{arguments:?}: {told}");
        assert!(told.contains(reason), "{arguments:?}: {told}");
    }
}
