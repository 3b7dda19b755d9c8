//! The attack suite (`just attack`): attacks by somebody who knows the API and the public keys and has an account, on
//! every input. `docs/reports/attack.md` is its report; `docs/asvs.md` lists which requirement each case covers.
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
//! More attacks are in `api::attacks`, `api::storage_attacks`, `realtime::hostile`, `rest_isolation` and `auth`.
//! `ATTACK_SEED` changes the random choices, `ATTACK_ROUNDS` how many there are, `ATTACK_REPORT` names a file for the
//! figures.

mod injection;
mod privacy;
mod routes;
mod secrets;
mod tables;
mod tokens;
mod wire;
mod world;

use std::io::Write as _;

/// An integer from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A line of the report: what was tried, how often, and the outcome.
pub fn report(what: &str, tried: usize, outcome: &str) {
    println!("| {what} | {tried} | {outcome} |");
    if let Ok(path) = std::env::var("ATTACK_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a report");
        writeln!(file, "| {what} | {tried} | {outcome} |").expect("a line");
    }
}

/// `docs/asvs.md` only names existing tests, and so do the guards that `just attack --prove` removes.
#[test]
fn every_test_named_by_a_requirement_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read =
        |path: &str| std::fs::read_to_string(root.join("..").join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let pages = [read("docs/asvs.md"), read("tools/mutants/guards.mjs")].concat();
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
    let name = regex::Regex::new(r#"[`"]((?:[a-z_0-9]+::)+)([a-z_0-9]+)[`"]"#).expect("a pattern");
    let mut found = 0;
    for part in name.captures_iter(&pages) {
        let last = &part[2];
        let is_there = sources.contains(&format!("fn {last}(")) || sources.contains(&format!("mod {last};"));
        assert!(is_there, "`{}{last}` is no test", &part[1]);
        found += 1;
    }
    assert!(found > 100, "{found} names");
    let proved = regex::Regex::new("proved by ((?:`[a-z0-9-]+`(?:, )?)+)").expect("a pattern");
    let guards: Vec<&str> = proved
        .captures_iter(&pages)
        .filter_map(|part| part.get(1))
        .flat_map(|names| names.as_str().split(", "))
        .collect();
    for guard in &guards {
        let line = format!("name: \"{}\"", guard.trim_matches('`'));
        assert!(pages.contains(&line), "{guard} is no guard of tools/mutants/guards.mjs");
    }
    assert!(guards.len() > 30, "{} guards", guards.len());
}
