//! The attack suite (`just attack`): what somebody tries who knows the API, the public keys and has an account, at every place
//! where something can be said. `docs/reports/attack.md` is its report, `docs/asvs.md` says which requirement a case holds.
//!
//! | file | what is tried |
//! |---|---|
//! | [`routes`] | two accounts over every route; the routes are read from the source, one without a case fails |
//! | [`tables`] | two accounts over every table, view and function of AidBridge, read from its database |
//! | [`injection`] | SQL at every position of the REST grammar and in the inputs of the other APIs |
//! | [`tokens`] | forged, foreign, expired and confused tokens at every API |
//! | [`wire`] | raw sockets: smuggled requests, headers that lie, line breaks |
//! | [`secrets`] | secrets planted in every place, and all that is logged |
//!
//! Further attacks are in `api::attacks`, `api::storage_attacks`, `realtime::hostile`, `rest_isolation` and `auth`.
//! `ATTACK_SEED` changes what is drawn by chance, `ATTACK_ROUNDS` how often, `ATTACK_REPORT` names a file for the figures.

mod injection;
mod privacy;
mod routes;
mod secrets;
mod tables;
mod tokens;
mod wire;
mod world;

use std::io::Write as _;

/// A whole number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A line of the report: what was tried, how often, and how it ended.
pub fn report(what: &str, tried: usize, outcome: &str) {
    println!("| {what} | {tried} | {outcome} |");
    if let Ok(path) = std::env::var("ATTACK_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a report");
        writeln!(file, "| {what} | {tried} | {outcome} |").expect("a line");
    }
}

/// `docs/asvs.md` names tests that there are.
#[test]
fn every_test_that_a_requirement_names_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../docs/asvs.md")).expect("docs/asvs.md");
    let mut sources = String::new();
    let mut folders = vec![root.join("tests")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push_str(&std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    let name = regex::Regex::new(r"`((?:[a-z_0-9]+::)+)([a-z_0-9]+)`").expect("a pattern");
    let mut found = 0;
    for part in name.captures_iter(&page) {
        let last = &part[2];
        let is_there = sources.contains(&format!("fn {last}(")) || sources.contains(&format!("mod {last};"));
        assert!(is_there, "docs/asvs.md names `{}{last}`, which is no test", &part[1]);
        found += 1;
    }
    assert!(found > 60, "{found} names");
}
