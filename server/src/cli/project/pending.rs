//! Which migrations a database lacks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::project::MigrationFiles;

/// The files that are not in `history`, in the order in which they run. Fails if a version has no file or, unless `has_all`, if
/// a file is older than the last applied one.
pub fn pending(
    files: &MigrationFiles,
    history: &BTreeMap<String, String>,
    has_all: bool,
) -> anyhow::Result<Vec<PathBuf>> {
    let versions = files.versions();
    let gone: Vec<&str> =
        history.keys().map(String::as_str).filter(|version| !versions.iter().any(|v| v == version)).collect();
    if !gone.is_empty() {
        anyhow::bail!(
            "Remote migration versions not found in local migrations directory. Make sure your local git repo is \
             up-to-date, or repair the history: ferrobase migration repair --status reverted {} (with the same --db-url, if any); or \
             write the files anew: ferrobase migration fetch",
            gone.join(" ")
        );
    }
    let newest = history.keys().next_back();
    let lacking = || versions.iter().zip(&files.paths).filter(|(version, _)| !history.contains_key(*version));
    let late: Vec<&str> = lacking()
        .filter(|(version, _)| newest.is_some_and(|newest| *version < newest))
        .map(|(version, _)| version.as_str())
        .collect();
    if !late.is_empty() && !has_all {
        anyhow::bail!(
            "Found local migration files to be inserted before the last migration on remote database. Rerun the \
             command with --include-all flag to apply these migrations: {}",
            late.join(", ")
        );
    }
    Ok(lacking().map(|(_, path)| path.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_migrations_are_pending_and_out_of_order_ones_are_refused() {
        let files =
            MigrationFiles { paths: ["1_a.sql", "2_b.sql", "3_c.sql"].map(PathBuf::from).into(), skipped: Vec::new() };
        let history = |versions: &[&str]| versions.iter().map(|v| ((*v).to_owned(), String::new())).collect();
        let names = |versions: &[&str], has_all: bool| {
            pending(&files, &history(versions), has_all)
                .map(|paths| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" "))
                .map_err(|error| error.to_string())
        };
        assert_eq!(names(&[], false).as_deref(), Ok("1_a.sql 2_b.sql 3_c.sql"));
        assert_eq!(names(&["1", "2", "3"], false).as_deref(), Ok(""));
        assert_eq!(names(&["2"], true).as_deref(), Ok("1_a.sql 3_c.sql"));
        let late = names(&["2"], false).expect_err("a late one");
        assert!(late.contains("--include-all flag to apply these migrations: 1"), "{late}");
        let gone = names(&["1", "7"], true).expect_err("a file is gone");
        assert!(
            gone.contains("not found in local migrations directory") && gone.contains("--status reverted 7"),
            "{gone}"
        );
    }
}
