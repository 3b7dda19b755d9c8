//! The plan of the house: which room may import which, and that every file says what it is for.

#![allow(clippy::expect_used)]

use std::path::{Path, PathBuf};

/// Each room and the rooms it may import, beside itself. The APIs (auth, rest, storage, functions, web) never import
/// one another: what two of them need lies below them.
const ROOMS: [(&str, &[&str]); 19] = [
    ("secret", &[]),
    ("jwt", &["secret"]),
    ("config", &["jwt", "secret"]), // keys and the role's path are read into their types
    ("http", &["config"]),
    ("db", &["config", "http", "jwt"]),
    ("mail", &["config", "http", "jwt", "db"]),
    ("schema_cache", &["config", "http", "jwt", "db"]),
    ("auth", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("rest", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("storage", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("functions", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("web", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("gateway", &["config", "http", "jwt"]),
    ("embedded_pg", &[]),
    ("migrate", &["config", "db"]),
    ("telemetry", &["config"]),
    ("admin", &["config", "http", "db", "auth", "rest", "storage", "functions"]),
    (
        "app",
        &[
            "admin",
            "auth",
            "config",
            "db",
            "functions",
            "gateway",
            "http",
            "jwt",
            "mail",
            "migrate",
            "rest",
            "storage",
            "telemetry",
            "web",
        ],
    ),
    (
        "cli",
        &[
            "admin",
            "app",
            "auth",
            "config",
            "db",
            "embedded_pg",
            "gateway",
            "http",
            "mail",
            "migrate",
            "rest",
            "schema_cache",
            "storage",
            "telemetry",
        ],
    ),
];

fn sources() -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    let inside = |path: &Path| path.strip_prefix(&root).expect("below src").to_owned();
    paths.iter().map(|path| (inside(path), std::fs::read_to_string(path).expect("a source file"))).collect()
}

/// The rooms that code names by `crate::…`; comments may point anywhere.
fn imports(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
        .collect()
}

#[test]
fn imports_go_one_way_and_no_api_imports_another() {
    let mut astray = Vec::new();
    for (path, text) in sources() {
        let room = path.iter().next().expect("a name").to_string_lossy().trim_end_matches(".rs").to_owned();
        if room == "lib" || room == "main" {
            continue;
        }
        let allowed = ROOMS.iter().find(|(name, _)| *name == room);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("the room {room} is not on the plan"));
        let wrong = imports(&text).into_iter().filter(|other| *other != room && !allowed.contains(other));
        astray.extend(wrong.map(|other| format!("{} imports {other}", path.display())));
    }
    assert!(astray.is_empty(), "{astray:#?}");
}

#[test]
fn an_import_is_found_wherever_it_stands_and_a_comment_is_none() {
    let text = "use crate::auth::Auth;\n//! [`crate::web`]\nlet a: crate::db::Pool = crate::rest::x();";
    assert_eq!(imports(text), ["auth", "db", "rest"]);
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//!"));
    let silent: Vec<_> = silent.map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}
