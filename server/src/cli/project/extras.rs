//! Installs what a project's files need beside the embedded PostgreSQL (`tools/pg-extras.sh`), where this binary is in a checkout.
//! Elsewhere the error of the migration says what to install.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::say;
use crate::project::Project;

/// Extensions that the script can install: their names in SQL, its parts, and names for messages.
const PARTS: [(&str, &str, &str); 2] = [("vector", "vector", "pgvector"), ("pgtap", "pgtap", "pgTAP")];

/// Installs the extensions that the project's migrations and seeds create and the embedded PostgreSQL lacks. If that fails, the
/// start goes on: the statement may never run.
pub fn install_for(project: &Project) {
    let Some(script) = script() else { return };
    let wanted = wanted(project);
    for (name, part, called) in PARTS.iter().filter(|(name, ..)| wanted.contains(name)) {
        let control = format!("postgres/extensions/extension/{name}.control");
        if script.with_file_name(control).is_file() {
            continue;
        }
        say(&format!("Installing {called} for the embedded PostgreSQL..."));
        // Its output goes where ours does, but standard output is for results.
        let done = Command::new(&script).arg(part).stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !done.is_ok_and(|status| status.success()) {
            say(&format!("WARN: {called} was not installed"));
        }
    }
}

/// The script of the checkout around this binary, unless another PostgreSQL is used.
fn script() -> Option<PathBuf> {
    if std::env::var_os("PG_BIN_DIR").is_some_and(|folder| !folder.is_empty()) {
        return None;
    }
    let binary = std::env::current_exe().ok()?;
    binary.ancestors().map(|around| around.join("tools/pg-extras.sh")).find(|script| script.is_file())
}

/// The extensions that the project's files create.
fn wanted(project: &Project) -> Vec<&'static str> {
    let mut paths = project.migrations().map(|files| files.paths).unwrap_or_default();
    paths.extend(project.seeds().map(|(files, _)| files).unwrap_or_default().into_iter().map(|seed| seed.path));
    // An unreadable file is reported when it is applied.
    paths.iter().flat_map(|path| created(&std::fs::read_to_string(path).unwrap_or_default())).collect()
}

/// The names after `create extension`, of those that can be installed.
fn created(text: &str) -> Vec<&'static str> {
    let mut words = text.split_whitespace().peekable();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        // The statement may follow another one without a blank.
        let is_create = word.rsplit([';', '(', ')']).next().is_some_and(|word| word.eq_ignore_ascii_case("create"));
        if !is_create || words.next_if(|word| word.eq_ignore_ascii_case("extension")).is_none() {
            continue;
        }
        for filler in ["if", "not", "exists"] {
            words.next_if(|word| word.eq_ignore_ascii_case(filler));
        }
        let name = words.peek().and_then(|word| word.split(';').next()).unwrap_or_default().trim_matches('"');
        found.extend(PARTS.iter().map(|(known, ..)| *known).filter(|known| name.eq_ignore_ascii_case(known)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_that_files_create_are_found() {
        for (text, names) in [
            ("create extension vector;", vec!["vector"]),
            (
                "CREATE EXTENSION IF NOT EXISTS \"vector\" WITH SCHEMA \"extensions\";create\nextension  pgTAP",
                vec!["vector", "pgtap"],
            ),
            ("create extension vectorscale; create extension \"vectors\"; drop extension vector;", vec![]),
            ("select 'create table'", vec![]),
        ] {
            assert_eq!(created(text), names, "{text}");
        }
    }
}
