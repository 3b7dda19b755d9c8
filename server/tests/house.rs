//! Architecture rules: which module may import which, no import cycles between files, and a module comment in every
//! file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each module and the modules that it may import. The APIs (auth, rest, storage, functions, realtime, web) never
/// import one another; shared code belongs in a lower module.
const ROOMS: [(&str, &[&str]); 31] = [
    ("allocator", &[]),
    ("outgoing", &[]),
    ("owner", &[]),
    ("resize", &[]),
    ("secret", &[]),
    ("jwt", &["outgoing", "secret"]),
    ("config", &["jwt", "secret"]), // for the types of keys and of the role claim's path
    ("http", &["config", "outgoing"]),
    ("db", &["config", "http", "jwt", "outgoing"]),
    ("mail", &["config", "http", "jwt", "db", "outgoing"]),
    ("sms", &["config", "db", "http", "mail"]),
    ("schema_cache", &["config", "http", "jwt", "db"]),
    ("auth", &["config", "http", "jwt", "db", "mail", "schema_cache", "sms", "outgoing"]),
    ("rest", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("storage", &["config", "http", "jwt", "db", "mail", "owner", "schema_cache", "outgoing"]),
    ("functions", &["config", "http", "jwt", "db", "mail", "schema_cache", "project", "outgoing"]),
    ("realtime", &["config", "http", "jwt", "db"]),
    ("web", &["config", "http", "jwt", "db", "mail", "schema_cache"]),
    ("gateway", &["config", "http", "jwt"]),
    ("extensions", &[]),
    ("embedded_pg", &["extensions", "owner"]),
    ("project", &["config"]),
    ("jobs", &["db", "http", "outgoing"]),
    ("audit", &["db", "http"]),
    ("migrate", &["config", "db", "extensions"]),
    ("telemetry", &["config", "http", "outgoing"]),
    ("backup", &["config", "db", "embedded_pg", "http", "jwt", "owner", "storage"]), // jwt: which keys follow from others
    ("upgrade", &["backup", "embedded_pg", "migrate", "owner"]),
    (
        "admin",
        &[
            "audit",
            "auth",
            "backup",
            "config",
            "db",
            "functions",
            "http",
            "jobs",
            "mail",
            "realtime",
            "rest",
            "storage",
        ],
    ),
    (
        "app",
        &[
            "admin",
            "audit",
            "auth",
            "config",
            "db",
            "functions",
            "gateway",
            "http",
            "jwt",
            "mail",
            "migrate",
            "outgoing",
            "project",
            "realtime",
            "rest",
            "sms",
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
            "audit",
            "auth",
            "backup",
            "config",
            "db",
            "embedded_pg",
            "gateway",
            "http",
            "jobs",
            "jwt",
            "mail",
            "migrate",
            "outgoing",
            "project",
            "realtime",
            "rest",
            "schema_cache",
            "sms",
            "storage",
            "telemetry",
            "upgrade",
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

/// The modules that code names as `crate::…`, ignoring comments.
fn imports(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
        .collect()
}

#[test]
fn imports_go_in_one_direction_and_no_api_imports_another() {
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
fn imports_are_found_everywhere_except_in_comments() {
    let text = "use crate::auth::Auth;\n//! [`crate::web`]\nlet a: crate::db::Pool = crate::rest::x();";
    assert_eq!(imports(text), ["auth", "db", "rest"]);
}

#[test]
fn every_file_has_a_module_comment() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//!"));
    let silent: Vec<_> = silent.map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

/// The code of a file, without comments and unit tests.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The branches of `a, b::{c, d}`, split at the outermost commas.
fn branches(tree: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&tree[start..]);
    found
}

/// Every path in a `use`: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn spread(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    match tree.split_once('{') {
        Some((start, rest)) => {
            let inside = rest.strip_suffix('}').unwrap_or(rest);
            branches(inside).into_iter().flat_map(spread).map(|path| format!("{start}{path}")).collect()
        }
        None => vec![tree.split(" as ").next().unwrap_or_default().to_owned()],
    }
}

/// Every path in code that begins at the crate or is relative, in a `use` or inline.
fn paths(code: &str) -> Vec<String> {
    let (mut found, mut passing, mut end) = (Vec::new(), String::new(), 0);
    for (at, word) in code.match_indices("use ") {
        let is_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_word && at >= end {
            passing.push_str(&code[end..at]);
            end = code[at..].find(';').map_or(code.len(), |length| at + length);
            let tree = code[at + word.len()..end].split_whitespace().collect::<Vec<_>>().join(" ");
            found.extend(spread(&tree.replace("{ ", "{").replace(", }", "}").replace(" }", "}")));
        }
    }
    passing.push_str(&code[end..]);
    let words = passing.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    found.extend(words.filter(|word| word.starts_with("crate::") || word.starts_with("super::")).map(str::to_owned));
    found
}

/// The modules with their files.
type Modules = BTreeMap<Vec<String>, String>;

fn modules(sources: Vec<(PathBuf, String)>) -> Modules {
    let name_of = |path: &Path| -> Vec<String> {
        let names = path.with_extension("");
        names
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .filter(|part| part != "mod" && part != "lib")
            .collect()
    };
    sources.into_iter().map(|(path, text)| (name_of(&path), code_of(&text))).collect()
}

/// The module that `path` leads to from within `from`.
fn lead(modules: &Modules, from: &[String], path: &str) -> Option<Vec<String>> {
    let mut parts = path.split("::").filter(|part| !part.is_empty()).peekable();
    let mut at = from.to_vec();
    match parts.peek() {
        Some(&"crate") => {
            parts.next();
            at.clear();
        }
        Some(&"self") => drop(parts.next()),
        _ => {}
    }
    while parts.next_if_eq(&"super").is_some() {
        at.pop();
    }
    for part in parts {
        at.push(part.to_owned());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    (at != from && modules.contains_key(&at)).then_some(at)
}

/// The import cycles between files. A folder's `mod.rs` is never part of one, because it declares its files and holds
/// what they share.
fn circles(modules: &Modules) -> Vec<String> {
    let is_folder = |name: &[String]| modules.keys().any(|other| other.len() > name.len() && other.starts_with(name));
    let files: BTreeSet<&Vec<String>> = modules.keys().filter(|name| !is_folder(name)).collect();
    let next_of = |name: &Vec<String>| -> Vec<&Vec<String>> {
        let led = paths(&modules[name]).into_iter().filter_map(|path| lead(modules, name, &path));
        let led: BTreeSet<Vec<String>> = led.collect();
        led.iter().filter_map(|other| files.get(other).copied()).collect()
    };
    let edges: BTreeMap<&Vec<String>, Vec<&Vec<String>>> = files.iter().map(|name| (*name, next_of(name))).collect();
    let mut found = Vec::new();
    let mut done = BTreeSet::new();
    for start in &files {
        // The current path, and the next import to visit of each module on it.
        let mut way: Vec<(&Vec<String>, usize)> = vec![(start, 0)];
        while let Some((name, seen)) = way.last_mut() {
            let next = edges[*name].get(*seen).copied();
            *seen += 1;
            match next {
                None => {
                    done.insert(*name);
                    way.pop();
                }
                Some(next) => match way.iter().position(|(name, _)| *name == next) {
                    Some(at) => {
                        let names = way[at..].iter().map(|(name, _)| *name).chain([next]);
                        found.push(names.map(|name| name.join("/")).collect::<Vec<_>>().join(" → "));
                    }
                    None if !done.contains(next) => way.push((next, 0)),
                    None => {}
                },
            }
        }
    }
    found
}

#[test]
fn files_have_no_import_cycles() {
    let found = circles(&modules(sources()));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn cycles_are_found_for_all_forms_of_paths() {
    let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let around = |second: &str| {
        let files = vec![
            file("lib.rs", "mod room;"),
            file("room/mod.rs", "mod one; mod two; pub use one::One; pub use two::Two;"),
            file("room/one.rs", "use super::two::Two;\n// use crate::room::three;"),
            file("room/two.rs", second),
        ];
        circles(&modules(files))
    };
    for second in [
        "use super::one::One;",
        "use crate::room::one;",
        "use super::{\n    Room,\n    one::{One, Other},\n};",
        "fn two() -> crate::room::one::One { super::Room }",
    ] {
        assert_eq!(around(second), ["room/one → room/two → room/one"], "{second}");
    }
    for second in
        ["use super::One;", "// use super::one::One;", "#[cfg(test)]\nmod tests {\n    use super::super::one;\n}"]
    {
        assert_eq!(around(second), Vec::<String>::new(), "{second}");
    }
}
