//! The migrations of a project: which files are used, and the names of new ones.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{Project, ProjectError};

/// Initial migrations with an older version were made by the first CLI; the base image has replaced them.
const FIRST_OF_TODAY: u64 = 20_211_209_000_000;

/// The content of `supabase/migrations`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationFiles {
    /// In name order.
    pub paths: Vec<PathBuf>,
    /// Messages about files that are skipped, with the reason.
    pub skipped: Vec<String>,
}

impl MigrationFiles {
    /// The version of each path, in order.
    pub fn versions(&self) -> Vec<String> {
        let names = self.paths.iter().filter_map(|path| path.file_name()?.to_str());
        names.filter_map(version).map(str::to_owned).collect()
    }
}

impl Project {
    pub fn migrations_dir(&self) -> PathBuf {
        self.folder().join("migrations")
    }

    /// A project without the folder has no migrations. Two files of one version are an error.
    pub fn migrations(&self) -> Result<MigrationFiles, ProjectError> {
        let dir = self.migrations_dir();
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(MigrationFiles::default()),
            Err(error) => return Err(ProjectError::Read { path: dir, reason: error.to_string() }),
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        let mut files = MigrationFiles::default();
        let mut last: Option<(&str, &str)> = None;
        for (place, name) in names.iter().enumerate() {
            let Some(version) = version(name) else {
                files.skipped.push(format!(
                    "Skipping migration {name}... (file name must match pattern \"<timestamp>_name.sql\")"
                ));
                continue;
            };
            let is_replaced = version.len() == 14
                && version.parse::<u64>().is_ok_and(|version| version < FIRST_OF_TODAY)
                && name.ends_with("_init.sql");
            if place == 0 && is_replaced {
                files.skipped.push(format!("Skipping migration {name}... (replaced by the base image)"));
                continue;
            }
            // In name order, files of one version are next to each other.
            if let Some((_, first)) = last.replace((version, name)).filter(|(known, _)| *known == version) {
                return Err(ProjectError::Invalid(format!(
                    "the files {first} and {name} have the same version {version}: rename one of them"
                )));
            }
            files.paths.push(dir.join(name));
        }
        Ok(files)
    }
}

/// The digits of `<digits>_<name>.sql`.
pub fn version(name: &str) -> Option<&str> {
    let (digits, _) = name.strip_suffix(".sql")?.split_once('_')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// The path of a new migration called `name`.
pub fn new_migration_path(project: &Project, name: &str, now: DateTime<Utc>) -> PathBuf {
    let safe: String = name.chars().map(|c| if c == '/' || c.is_whitespace() { '_' } else { c }).collect();
    project.migrations_dir().join(format!("{}_{safe}.sql", now.format("%Y%m%d%H%M%S")))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    #[test]
    fn two_migrations_of_one_version_are_refused() {
        let folder = Folder::new(
            "migrations-twice",
            &[
                ("supabase/migrations/20260101000000_a.sql", ""),
                ("supabase/migrations/20260101000000_b.sql", ""),
                ("supabase/migrations/20260102000000_a.sql", ""),
                ("supabase/migrations/202601010000000_a.sql", ""),
                ("supabase/migrations/20260101000000_aa.txt", ""),
            ],
        );
        let error = folder.load(&[]).migrations().expect_err("refused").to_string();
        assert_eq!(
            error,
            "the files 20260101000000_a.sql and 20260101000000_b.sql have the same version 20260101000000: rename one of them"
        );
        // A skipped file has no version.
        let skipped = [("supabase/migrations/1_init.sql", ""), ("supabase/migrations/1.sql", "")];
        assert!(Folder::new("migrations-once", &skipped).load(&[]).migrations().is_ok());
    }

    #[test]
    fn files_without_a_version_and_folders_are_skipped() {
        let folder = Folder::new(
            "migrations",
            &[
                ("supabase/migrations/20200101000000_init.sql", ""),
                ("supabase/migrations/20230101000000_init.sql", ""),
                ("supabase/migrations/1_first.sql", ""),
                ("supabase/migrations/README.md", ""),
                ("supabase/migrations/notes.sql", ""),
                ("supabase/migrations/old/1_x.sql", ""),
                ("supabase/migrations/.gitkeep", ""),
            ],
        );
        let files = folder.load(&[]).migrations().expect("files");
        let names: Vec<_> =
            files.paths.iter().map(|path| path.file_name().expect("a name").to_string_lossy()).collect();
        // Only the very first file is skipped as replaced by the base image.
        assert_eq!(names, ["1_first.sql", "20200101000000_init.sql", "20230101000000_init.sql"]);
        assert_eq!(files.skipped.len(), 2, "{:?}", files.skipped);
        let old = Folder::new("migrations-old", &[("supabase/migrations/20200101000000_init.sql", "")]);
        assert!(old.load(&[]).migrations().expect("files").paths.is_empty());
        assert!(Folder::new("migrations-none", &[]).load(&[]).migrations().expect("none").paths.is_empty());
    }
}
